#include "tools/analyse/correlate_report.h"

#include "formats/csv.h"
#include "plot/plot.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAME_SCALE 1e-3 /* of both axes, so that a circle of pixels is a circle */

enum oct_err oct_correlate_report_init(struct oct_correlate_report *report, uint64_t n,
                                       uint32_t max_shift, struct oct_error *err)
{
    *report = (struct oct_correlate_report){
        .n = n,
        .max_shift = max_shift,
        .rows = calloc(n, sizeof(*report->rows)),
        .c1d = calloc((size_t)max_shift + 1, sizeof(double)),
        .radius = calloc((size_t)max_shift + 1, sizeof(double)),
    };
    if (report->rows && report->c1d && report->radius)
        return OCT_OK;
    oct_correlate_report_finish(report);
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %" PRIu64 " pictures", n);
}

void oct_correlate_report_finish(struct oct_correlate_report *report)
{
    for (uint64_t i = 0; report->rows && i < report->n; i++)
        free(report->rows[i].left_out);
    free(report->rows);
    free(report->c1d);
    free(report->radius);
    *report = (struct oct_correlate_report){0};
}

enum oct_err oct_correlate_report_take(struct oct_correlate_report *report,
                                       const struct oct_correlate_result *result,
                                       struct oct_error *err)
{
    const double *um = result->info.um;
    const size_t bytes = ((size_t)report->max_shift + 1) * sizeof(double);
    if (result->info.frame >= report->n)
        return OCT_OK;
    report->rows[result->info.frame] = (struct oct_correlate_row){
        .frame = result->info.frame,
        .time_ns = result->info.time_ns,
        .path = result->info.path,
        .left_out = result->left_out ? strdup(result->left_out) : NULL,
        .um = fabs(um[0] - um[1]) <= SAME_SCALE * um[0] ? um[1] : NAN,
        .peak = result->peak,
    };
    if (result->left_out && !report->rows[result->info.frame].left_out)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    if (result->info.frame > 0)
        return OCT_OK;
    memcpy(report->c1d, result->c1d, bytes);
    memcpy(report->radius, result->radius, bytes);
    return OCT_OK;
}

const char *oct_correlate_report_path(const void *report, uint64_t i)
{
    return ((const struct oct_correlate_report *)report)->rows[i].path;
}

/* A clock that stands still, or is 0 throughout, is none. */
static bool has_time(const struct oct_correlate_report *report)
{
    return report->n > 0 && report->rows[report->n - 1].time_ns > report->rows[0].time_ns;
}

double oct_correlate_report_time(const struct oct_correlate_report *report, uint64_t i)
{
    if (!has_time(report))
        return NAN;
    const uint64_t first = report->rows[0].time_ns, now = report->rows[i].time_ns;
    return now >= first ? (double)(now - first) * 1e-9 : -(double)(first - now) * 1e-9;
}

/* Where picture i stands on the axis of the fit and of the plot. */
static double abscissa(const struct oct_correlate_report *report, uint64_t i)
{
    return has_time(report) ? oct_correlate_report_time(report, i) : (double)i;
}

void oct_correlate_report_fit(struct oct_correlate_report *report)
{
    struct oct_correlate_fit fit = {.slope = NAN, .offset = NAN, .r2 = NAN};
    double x_mean = 0, y_mean = 0, xx = 0, xy = 0, yy = 0;
    for (uint64_t i = 0; i < report->n; i++)
        if (report->rows[i].peak.found) {
            fit.n++;
            x_mean += abscissa(report, i);
            y_mean += report->rows[i].peak.radius_px;
        }
    x_mean /= (double)fit.n;
    y_mean /= (double)fit.n;
    for (uint64_t i = 0; i < report->n; i++)
        if (report->rows[i].peak.found) {
            const double x = abscissa(report, i) - x_mean;
            const double y = report->rows[i].peak.radius_px - y_mean;
            xx += x * x;
            xy += x * y;
            yy += y * y;
        }
    if (fit.n >= 2 && xx > 0) {
        fit.slope = xy / xx;
        fit.offset = y_mean - fit.slope * x_mean;
        fit.r2 = yy > 0 ? xy * xy / (xx * yy) : 1;
    }
    report->fit = fit;
    report->has_fit = true;
}

uint64_t oct_correlate_report_n_far(const struct oct_correlate_report *report)
{
    const uint32_t side = report->height < report->width ? report->height : report->width;
    uint64_t n = 0;
    for (uint64_t i = 0; i < report->n; i++)
        n += report->rows[i].peak.found && report->rows[i].peak.radius_px > side / 4.0;
    return n;
}

/* ---- files ---- */

enum oct_err oct_correlate_report_csv(void *context, const char *path, bool force,
                                      struct oct_error *err)
{
    const struct oct_correlate_report *report = context;
    struct oct_csv *csv;
    enum oct_err e = oct_csv_create(&csv, path, force,
                                    "frame,time_s,r_max_px,r_max_um,c,height,trough_px,file", err);
    if (e)
        return e;
    for (uint64_t i = 0; i < report->n; i++) {
        const struct oct_correlate_row *row = &report->rows[i];
        oct_csv_count(csv, row->frame);
        oct_csv_number(csv, oct_correlate_report_time(report, i));
        oct_csv_number(csv, row->peak.radius_px);
        oct_csv_number(csv, row->peak.radius_px * row->um);
        oct_csv_number(csv, row->peak.c);
        oct_csv_number(csv, row->peak.height);
        oct_csv_number(csv, row->peak.trough_px);
        oct_csv_text(csv, row->path);
        oct_csv_end_row(csv);
    }
    return oct_csv_publish(csv, err);
}

/* C1D of one picture, with R_max as in Fig. 5 of Lu et al. */
static enum oct_err plot_profile(const struct oct_correlate_report *report, const char *path,
                                 bool force, struct oct_error *err)
{
    const struct oct_correlate_row *row = &report->rows[0];
    char title[160], mark_text[96];
    const char *name = strrchr(report->source, '/');
    const struct oct_plot_series series = {
        .x = report->radius, .y = report->c1d, .n = (size_t)report->max_shift + 1};
    const struct oct_plot_mark mark = {row->peak.radius_px, row->peak.c, mark_text};
    snprintf(title, sizeof(title), "%.120s", name ? name + 1 : report->source);
    if (isnan(row->um))
        snprintf(mark_text, sizeof(mark_text), "R_max = %.2f px", row->peak.radius_px);
    else
        snprintf(mark_text, sizeof(mark_text), "R_max = %.2f px (%.4g \302\265m)",
                 row->peak.radius_px, row->peak.radius_px * row->um);
    const struct oct_plot_lines plot = {.title = title,
                                        .x_label = "R (px)",
                                        .y_label = "C1D",
                                        .series = &series,
                                        .n_series = 1,
                                        .marks = &mark,
                                        .n_marks = row->peak.found ? 1 : 0,
                                        .from_zero = true};
    return oct_plot_write_lines(path, force, &plot, err);
}

/* R_max of many pictures over time, as in Fig. 10. */
static enum oct_err plot_lengths(const struct oct_correlate_report *report, const char *path,
                                 bool force, struct oct_error *err)
{
    const size_t n = report->n;
    double *values = malloc(3 * n * sizeof(*values));
    char label[96];
    if (!values)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    double *x = values, *y = values + n, *line = values + 2 * n;
    for (size_t i = 0; i < n; i++) {
        x[i] = abscissa(report, i);
        y[i] = report->rows[i].peak.radius_px;
        line[i] = report->fit.offset + report->fit.slope * x[i];
    }
    snprintf(label, sizeof(label), "%.4g + %.4g %s, r\302\262 %.5f", report->fit.offset,
             report->fit.slope, has_time(report) ? "px/s" : "px a picture", report->fit.r2);
    const struct oct_plot_series series[] = {
        {x, y, n, report->has_fit ? "R_max" : NULL, OCT_PLOT_POINTS},
        {x, line, n, label, OCT_PLOT_DASHES},
    };
    const struct oct_plot_lines plot = {.title = "R_max, mean distance of bright features",
                                        .x_label = has_time(report) ? "time (s)" : "picture",
                                        .y_label = "R_max (px)",
                                        .series = series,
                                        .n_series = report->has_fit ? 2 : 1,
                                        .from_zero = true};
    enum oct_err e = oct_plot_write_lines(path, force, &plot, err);
    free(values);
    return e;
}

enum oct_err oct_correlate_report_plot(void *context, const char *path, bool force,
                                       struct oct_error *err)
{
    const struct oct_correlate_report *report = context;
    return report->n == 1 ? plot_profile(report, path, force, err)
                          : plot_lengths(report, path, force, err);
}

/* ---- lines ---- */

static void print_one(const struct oct_correlate_report *report)
{
    const struct oct_correlate_row *row = &report->rows[0];
    printf("%s: R_max ", report->source);
    if (!row->peak.found)
        printf("none");
    else
        printf("%.2f px", row->peak.radius_px);
    if (row->peak.found && !isnan(row->um))
        printf(" (%.4g um)", row->peak.radius_px * row->um);
    if (row->peak.found)
        printf(", C %.4f, %.4f above the trough at %.1f px", oct_command_shown(row->peak.c, 4),
               row->peak.height, row->peak.trough_px);
}

static const char *why_left_out(const void *report, uint64_t i)
{
    return ((const struct oct_correlate_report *)report)->rows[i].left_out;
}

static void print_many(const struct oct_correlate_report *report)
{
    double least = INFINITY, most = -INFINITY;
    uint64_t n = 0, n_left_out = 0;
    for (uint64_t i = 0; i < report->n; i++)
        n_left_out += report->rows[i].left_out != NULL;
    for (uint64_t i = 0; i < report->n; i++)
        if (report->rows[i].peak.found) {
            least = fmin(least, report->rows[i].peak.radius_px);
            most = fmax(most, report->rows[i].peak.radius_px);
            n++;
        }
    printf("%" PRIu64 " pictures: R_max ", report->n);
    if (n == 0)
        printf("none");
    else
        printf("%.2f to %.2f px", least, most);
    if (n > 0 && n + n_left_out < report->n)
        printf(", none in %" PRIu64, report->n - n - n_left_out);
    oct_command_print_left_out(report->n, why_left_out, report);
}

void oct_correlate_report_print(const struct oct_correlate_report *report)
{
    if (report->n == 1)
        print_one(report);
    else
        print_many(report);
    if (report->has_fit && report->fit.n < 2)
        printf("; no fit, too few R_max");
    else if (report->has_fit)
        printf("; %.5g + %.5g %s, r2 %.5f", report->fit.offset, report->fit.slope,
               has_time(report) ? "px/s" : "px a picture", report->fit.r2);
    printf("; %u x %u, R 0 to %u, %s, mean %s, %.2f s\n", report->width, report->height,
           report->max_shift, report->norm, report->mean, report->seconds);
}

static void add_rows(cJSON *o, const struct oct_correlate_report *report)
{
    cJSON *rows = cJSON_AddArrayToObject(o, "frames");
    for (uint64_t i = 0; i < report->n; i++) {
        const struct oct_correlate_row *row = &report->rows[i];
        cJSON *r = cJSON_CreateObject();
        oct_command_add_number(r, "frame", (double)row->frame);
        cJSON_AddStringToObject(r, "file", row->path);
        oct_command_add_number(r, "time_s", oct_correlate_report_time(report, i));
        oct_command_add_number(r, "r_max_px", row->peak.radius_px);
        oct_command_add_number(r, "r_max_um", row->peak.radius_px * row->um);
        oct_command_add_number(r, "c", row->peak.c);
        oct_command_add_number(r, "height", row->peak.height);
        oct_command_add_number(r, "trough_px", row->peak.trough_px);
        cJSON_AddItemToArray(rows, r);
    }
}

bool oct_correlate_report_print_json(const struct oct_correlate_report *report)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "file", report->source);
    oct_command_add_number(o, "pictures", (double)report->n);
    oct_command_add_number(o, "width", report->width);
    oct_command_add_number(o, "height", report->height);
    oct_command_add_number(o, "max_shift_px", report->max_shift);
    cJSON_AddStringToObject(o, "norm", report->norm);
    cJSON_AddStringToObject(o, "mean", report->mean);
    cJSON_AddStringToObject(o, "engine", report->engine);
    oct_command_add_number(o, "seconds", report->seconds);
    add_rows(o, report);
    oct_command_add_left_out(o, report->n, why_left_out, report);
    if (report->has_fit) {
        cJSON *fit = cJSON_AddObjectToObject(o, "fit");
        cJSON_AddStringToObject(fit, "over", has_time(report) ? "time_s" : "frame");
        oct_command_add_number(fit, "n", (double)report->fit.n);
        oct_command_add_number(fit, "slope_px", report->fit.slope);
        oct_command_add_number(fit, "offset_px", report->fit.offset);
        oct_command_add_number(fit, "r2", report->fit.r2);
    }
    const bool ok = oct_command_print_json(o);
    cJSON_Delete(o);
    return ok;
}
