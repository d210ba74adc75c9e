#include "tools/analyse/cones_report.h"

#include "formats/csv.h"
#include "formats/results.h"
#include "plot/plot.h"
#include "tools/commands.h"
#include "tools/outputs.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MM2_PER_UM2 1e6

enum oct_err oct_cones_report_init(struct oct_cones_report *report, uint64_t n,
                                   struct oct_error *err)
{
    *report = (struct oct_cones_report){.n = n, .frames = calloc(n, sizeof(*report->frames))};
    return report->frames ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

void oct_cones_report_finish(struct oct_cones_report *report)
{
    for (uint64_t i = 0; report->frames && i < report->n; i++) {
        free(report->frames[i].results);
        free(report->frames[i].left_out);
    }
    free(report->frames);
    free(report->radius);
    free(report->c1d);
    oct_picture_finish(&report->first);
    *report = (struct oct_cones_report){.n = 0};
}

/* A result in the units of the tables; NaN: none, or unknown. */
struct numbers {
    double um, rows_um, per_mm2;
};

static struct numbers numbers_of(const struct oct_cones_frame *frame,
                                 const struct oct_cones_result *result)
{
    const double um = result->spacing_px * frame->um;
    return (struct numbers){um, oct_cones_rows(um), oct_cones_per_area(um) * MM2_PER_UM2};
}

/* ---- files ---- */

enum oct_err oct_cones_report_csv(void *context, const char *path, bool force,
                                  struct oct_error *err)
{
    const struct oct_cones_report *report = context;
    static const char header[] =
        "frame,tile_y,tile_x,spacing_px,spacing_um,rows_um,cells_per_mm2,strength,file";
    struct oct_csv *csv;
    enum oct_err e = oct_csv_create(&csv, path, force, header, err);
    if (e)
        return e;
    for (uint64_t i = 0; i < report->n; i++) {
        const struct oct_cones_frame *f = &report->frames[i];
        for (uint32_t k = 0; k < f->rows * f->columns; k++) {
            const struct numbers n = numbers_of(f, &f->results[k]);
            oct_csv_count(csv, i);
            oct_csv_count(csv, k / f->columns);
            oct_csv_count(csv, k % f->columns);
            oct_csv_number(csv, f->results[k].spacing_px);
            oct_csv_number(csv, n.um);
            oct_csv_number(csv, n.rows_um);
            oct_csv_number(csv, n.per_mm2);
            oct_csv_number(csv, f->results[k].strength);
            oct_csv_text(csv, f->path);
            oct_csv_end_row(csv);
        }
    }
    return oct_csv_publish(csv, err);
}

struct cone_datasets {
    unsigned spacing, density, strength, time_ns, number;
};

static void write_frame(struct oct_results *r, const struct cone_datasets *d, uint64_t i,
                        const struct oct_cones_frame *f, uint32_t columns, double *row[3],
                        size_t n_row)
{
    for (size_t k = 0; k < n_row; k++)
        row[0][k] = row[1][k] = row[2][k] = NAN;
    for (uint32_t k = 0; k < f->rows * f->columns; k++) {
        const size_t at = (size_t)(k / f->columns) * columns + k % f->columns;
        row[0][at] = f->results[k].spacing_px;
        row[1][at] = numbers_of(f, &f->results[k]).per_mm2;
        row[2][at] = f->results[k].strength;
    }
    oct_results_write_rows(r, d->spacing, i, 1, row[0]);
    oct_results_write_rows(r, d->density, i, 1, row[1]);
    oct_results_write_rows(r, d->strength, i, 1, row[2]);
    oct_results_write_rows(r, d->time_ns, i, 1, &f->time_ns);
    oct_results_write_rows(r, d->number, i, 1, &f->index);
}

static const char *path_of(const void *report, uint64_t i)
{
    return ((const struct oct_cones_report *)report)->frames[i].path;
}

enum oct_err oct_cones_report_h5(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct oct_cones_report *report = context;
    uint32_t rows = 1, columns = 1;
    struct oct_results *r;
    struct cone_datasets d;
    for (uint64_t i = 0; i < report->n; i++) {
        const struct oct_cones_frame *f = &report->frames[i];
        rows = f->rows > rows ? f->rows : rows;
        columns = f->columns > columns ? f->columns : columns;
    }
    const size_t n_row = (size_t)rows * columns;
    double *memory = malloc(3 * n_row * sizeof(*memory));
    double *row[3] = {memory, memory + n_row, memory + 2 * n_row};
    enum oct_err e = memory ? oct_results_create(&r, path, "cones", force, err)
                            : oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    if (e) {
        free(memory);
        return e;
    }
    const uint64_t dims[3] = {report->n, rows, columns};
    oct_outputs_source(r, report->inputs, report->n_inputs);
    oct_results_number(r, NULL, "um_px", report->frames[0].um);
    oct_results_count(r, NULL, "tile_px", report->tile);
    oct_results_count(r, NULL, "step_px", report->step);
    d.spacing = oct_results_dataset(r, "/cones/spacing_px", OCT_RESULTS_F64, 3, dims, "px");
    d.density = oct_results_dataset(r, "/cones/cells_per_mm2", OCT_RESULTS_F64, 3, dims, "1/mm^2");
    d.strength = oct_results_dataset(r, "/cones/strength", OCT_RESULTS_F64, 3, dims, NULL);
    const double step_um = report->step > 0 ? report->step * report->frames[0].um : NAN;
    const unsigned maps[3] = {d.spacing, d.density, d.strength};
    for (unsigned i = 0; i < 3; i++)
        oct_results_axes(r, maps[i], (const char *const[3]){"frame", "row", "column"},
                         (const double[3]){NAN, step_um, step_um});
    d.time_ns = oct_results_dataset(r, "/frames/time_ns", OCT_RESULTS_U64, 1, dims, "ns");
    d.number = oct_results_dataset(r, "/frames/number", OCT_RESULTS_U64, 1, dims, NULL);
    oct_results_texts(r, "/files", report->n, path_of, report);
    for (uint64_t i = 0; i < report->n; i++)
        write_frame(r, &d, i, &report->frames[i], columns, row, n_row);
    free(memory);
    return oct_results_publish(r, err);
}

/* ---- plots ---- */

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static enum oct_err plot_profile(const struct oct_cones_report *report, const char *path,
                                 bool force, struct oct_error *err)
{
    const struct oct_cones_frame *f = &report->frames[report->n_first];
    const struct oct_cones_result *r = &f->results[0];
    const double um = r->spacing_px * f->um;
    char text[96];
    if (isnan(um))
        snprintf(text, sizeof(text), "cones %.2f px apart", r->spacing_px);
    else
        snprintf(text, sizeof(text), "cones %.2f px apart (%.3g \302\265m)", r->spacing_px, um);
    const struct oct_plot_series series = {
        .x = report->radius, .y = report->c1d, .n = report->n_profile};
    const struct oct_plot_mark mark = {r->ring_px, r->strength, text};
    const struct oct_plot_lines plot = {.title = name_of(f->path),
                                        .x_label = "R (px)",
                                        .y_label = "C1D of the whitened picture",
                                        .series = &series,
                                        .n_series = 1,
                                        .marks = &mark,
                                        .n_marks = r->found,
                                        .has_y = true,
                                        .y_least = -0.4,
                                        .y_most = 0.5,
                                        .from_zero = true};
    return oct_plot_write_lines(path, force, &plot, err);
}

/* Each tile colours a square of one step around its middle. */
static enum oct_err plot_map(const struct oct_cones_report *report, const char *path, bool force,
                             struct oct_error *err)
{
    const struct oct_cones_frame *f = &report->frames[report->n_first];
    const size_t n = (size_t)f->rows * f->columns;
    const double first = (report->tile - (double)report->step) / 2;
    const bool has_um = !isnan(f->um);
    double *values = malloc(n * sizeof(*values));
    if (!values)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    for (size_t k = 0; k < n; k++)
        values[k] = has_um ? numbers_of(f, &f->results[k]).per_mm2 : f->results[k].spacing_px;
    const struct oct_plot_map map = {.values = values,
                                     .n_y = f->rows,
                                     .n_x = f->columns,
                                     .y = first,
                                     .x = first,
                                     .step_y = report->step,
                                     .step_x = report->step,
                                     .label = has_um ? "cells/mm\302\262" : "spacing (px)"};
    const struct oct_plot_picture plot = {.title = name_of(f->path),
                                          .pixels = report->first.pixels,
                                          .height = report->first.height,
                                          .width = report->first.width,
                                          .um_dx = f->um,
                                          .map = &map};
    enum oct_err e = oct_plot_write_picture(path, force, &plot, err);
    free(values);
    return e;
}

enum oct_err oct_cones_report_plot(void *context, const char *path, bool force,
                                   struct oct_error *err)
{
    const struct oct_cones_report *report = context;
    return report->tile > 0 ? plot_map(report, path, force, err)
                            : plot_profile(report, path, force, err);
}

/* ---- lines ---- */

static void print_result(const struct oct_cones_frame *f, const struct oct_cones_result *r)
{
    const struct numbers n = numbers_of(f, r);
    if (!r->found) {
        printf("no ring");
        if (r->is_split)
            printf(" (pairs of light and dark)");
        else if (isnan(r->seen_px))
            printf(" (none seen)");
        else
            printf(" (strongest %.3f at %.2f px, %.3f is needed)",
                   oct_command_shown(r->seen_strength, 3), r->seen_px, r->needed);
        return;
    }
    printf("spacing %.2f px", r->spacing_px);
    if (!isnan(n.um))
        printf(", %.2f um, rows %.2f um, %.0f cells/mm2", n.um, n.rows_um, n.per_mm2);
    printf(", strength %.3f", r->strength);
}

void oct_cones_report_warn(const struct oct_cones_report *report, const char *name)
{
    uint64_t n = 0, n_split = 0;
    for (uint64_t i = 0; i < report->n; i++)
        for (uint32_t k = 0; k < report->frames[i].rows * report->frames[i].columns; k++, n++)
            n_split += report->frames[i].results[k].is_split;
    if (n_split > 0)
        fprintf(stderr,
                "octctl %s: %" PRIu64 " of %" PRIu64 " %s show cones as pairs of light and dark, "
                "as a split detector does: their rings are no spacings, none is given; take the "
                "confocal channel\n",
                name, n_split, n, report->tile > 0 ? "tiles" : "pictures");
}

static const char *why_left_out(const void *report, uint64_t i)
{
    return ((const struct oct_cones_report *)report)->frames[i].left_out;
}

void oct_cones_report_print(const struct oct_cones_report *report)
{
    double least = INFINITY, most = -INFINITY;
    uint64_t n = 0, n_found = 0;
    if (report->n == 1 && report->tile == 0) {
        printf("%s: ", report->inputs[0]);
        print_result(&report->frames[0], &report->frames[0].results[0]);
        printf("; %.2f s\n", report->seconds);
        return;
    }
    for (uint64_t i = 0; i < report->n; i++)
        for (uint32_t k = 0; k < report->frames[i].rows * report->frames[i].columns; k++) {
            const struct oct_cones_result *r = &report->frames[i].results[k];
            n += !report->frames[i].left_out;
            n_found += r->found;
            least = r->found ? fmin(least, r->spacing_px) : least;
            most = r->found ? fmax(most, r->spacing_px) : most;
        }
    printf("%" PRIu64 " picture%s, %" PRIu64 " %s: ", report->n, report->n > 1 ? "s" : "", n,
           report->tile > 0 ? "tiles" : "spacings");
    if (n_found > 0)
        printf("%.2f to %.2f px, ", least, most);
    printf("no ring in %" PRIu64, n - n_found);
    oct_command_print_left_out(report->n, why_left_out, report);
    printf("; %.2f s\n", report->seconds);
}

static void add_frame(cJSON *rows, uint64_t i, const struct oct_cones_frame *f)
{
    for (uint32_t k = 0; k < f->rows * f->columns; k++) {
        const struct oct_cones_result *r = &f->results[k];
        const struct numbers n = numbers_of(f, r);
        cJSON *o = cJSON_CreateObject();
        oct_command_add_number(o, "frame", (double)i);
        cJSON_AddStringToObject(o, "file", f->path);
        oct_command_add_number(o, "tile_y", k / f->columns);
        oct_command_add_number(o, "tile_x", k % f->columns);
        oct_command_add_number(o, "spacing_px", r->spacing_px);
        oct_command_add_number(o, "spacing_um", n.um);
        oct_command_add_number(o, "rows_um", n.rows_um);
        oct_command_add_number(o, "cells_per_mm2", n.per_mm2);
        oct_command_add_number(o, "strength", r->strength);
        cJSON_AddBoolToObject(o, "is_split", r->is_split);
        oct_command_add_number(o, "seen_px", r->seen_px);
        oct_command_add_number(o, "seen_strength", r->seen_strength);
        cJSON_AddItemToArray(rows, o);
    }
}

bool oct_cones_report_print_json(const struct oct_cones_report *report)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "file", report->inputs[0]);
    oct_command_add_number(o, "pictures", (double)report->n);
    oct_command_add_number(o, "tile_px", report->tile);
    oct_command_add_number(o, "step_px", report->step);
    oct_command_add_number(o, "seconds", report->seconds);
    cJSON *rows = cJSON_AddArrayToObject(o, "spacings");
    for (uint64_t i = 0; i < report->n; i++)
        add_frame(rows, i, &report->frames[i]);
    oct_command_add_left_out(o, report->n, why_left_out, report);
    const bool ok = oct_command_print_json(o);
    cJSON_Delete(o);
    return ok;
}
