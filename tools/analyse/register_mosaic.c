/* register --as mosaic: pictures that overlap, into one. */
#include "analysis/align/matcher.h"
#include "analysis/align/mosaic.h"
#include "formats/result_files.h"
#include "formats/results.h"
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/analyse/register.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_PICTURES 1000u

/* A picture, and where it lies. */
struct place_row {
    uint32_t picture, component, with;
    double y_px, x_px, y_um, x_um;
    double neighbour; /* as `with`; NaN: the first of its component */
    double score;
    const char *file, *reason;
};

#define R struct place_row
#define NOT_H5 .not_in = OCT_RESULT_H5
static const struct oct_result_field place_fields[] = {
    {OCT_RESULT("picture", R, picture), .not_in = OCT_RESULT_H5 | OCT_RESULT_JSON},
    {OCT_RESULT("file", R, file), NOT_H5},
    {OCT_RESULT("component", R, component)},
    {OCT_RESULT("y_px", R, y_px), NOT_H5},
    {OCT_RESULT("x_px", R, x_px), NOT_H5},
    {OCT_RESULT("y_um", R, y_um), .not_in = OCT_RESULT_H5 | OCT_RESULT_JSON},
    {OCT_RESULT("x_um", R, x_um), .not_in = OCT_RESULT_H5 | OCT_RESULT_JSON},
    {OCT_RESULT("with", R, neighbour), NOT_H5, .is_optional = true},
    {OCT_RESULT("with", R, with), .not_in = OCT_RESULT_CSV | OCT_RESULT_JSON},
    {OCT_RESULT("score", R, score), .is_optional = true},
    {OCT_RESULT("reason", R, reason), .not_in = OCT_RESULT_H5 | OCT_RESULT_CSV,
     .is_optional = true},
};
#undef NOT_H5
#undef R
static const struct oct_result_fields all_place_fields = OCT_RESULT_FIELDS(place_fields);

/* What is said of all. */
struct summary {
    uint64_t pictures;
    uint32_t placed, components;
    uint32_t height, width; /* 0: nothing was blended */
    double weakest;         /* edge that the mosaic hangs on */
};

#define S struct summary
static const struct oct_result_field summary_fields[] = {
    {OCT_RESULT("n", S, pictures), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("placed", S, placed)},
    {OCT_RESULT("components", S, components)},
    {OCT_RESULT("weakest_score", S, weakest)},
    {OCT_RESULT("height", S, height), .is_optional = true, .zero_is_none = true},
    {OCT_RESULT("width", S, width), .is_optional = true, .zero_is_none = true},
};
#undef S
static const struct oct_result_fields all_summary_fields = OCT_RESULT_FIELDS(summary_fields);

struct mosaic {
    struct oct_picture *pictures; /* [n] */
    struct oct_mosaic mosaic;
    struct oct_picture canvas;
    float *weight;
    double origin[2];
    struct summary summary;
};

/* ---- the work ---- */

/* All pictures are kept: each is needed for every pair. */
static enum oct_err read_pictures(struct oct_register *r, struct oct_error *err)
{
    struct mosaic *m = r->own;
    r->options.allow_sizes = true;
    enum oct_err e = oct_register_open(r, err);
    if (!e && (r->n < 2 || r->n > MOST_PICTURES))
        e = oct_fail(err, OCT_E_ARG, "%llu pictures: a mosaic is of 2 to %u",
                     (unsigned long long)r->n, MOST_PICTURES);
    if (e)
        return e;
    m->pictures = oct_alloc(r->n, sizeof(*m->pictures));
    for (uint64_t i = 0; !e && i < r->n; i++)
        e = oct_register_read(r, i, &m->pictures[i], err);
    return e;
}

static bool show(void *context, unsigned done, unsigned of)
{
    struct oct_register *r = context;
    oct_register_show(r, done, of);
    return !*r->job.cancel;
}

static enum oct_err register_mosaic(struct oct_register *r, struct oct_error *err)
{
    struct mosaic *m = r->own;
    const struct oct_mosaic_setup setup = {.min_score = r->setup.min_score};
    enum oct_err e = read_pictures(r, err);
    if (e)
        return e;
    e = oct_mosaic_find(&m->mosaic, m->pictures, (unsigned)r->n, &setup, show, r, err);
    if (e && *r->job.cancel)
        return oct_job_go_on(&r->job, err);
    if (!e && m->mosaic.n_placed < 2)
        e = oct_fail(err, OCT_E_ARG, "no two of the %u pictures overlap", (unsigned)r->n);
    if (!e && !r->given.shifts_only)
        e = oct_mosaic_blend(&m->mosaic, m->pictures, &m->canvas, &m->weight, &m->origin[0],
                             &m->origin[1], err);
    if (e)
        return e;
    m->summary = (struct summary){.pictures = r->n,
                                  .placed = m->mosaic.n_placed,
                                  .components = m->mosaic.n_components,
                                  .height = m->canvas.height,
                                  .width = m->canvas.width,
                                  .weakest = NAN};
    for (uint64_t i = 0; i < r->n; i++)
        if (m->mosaic.places[i].component == 0) /* fmin leaves NaN out */
            m->summary.weakest = fmin(m->summary.weakest, m->mosaic.places[i].score);
    return oct_register_create_h5(r, err);
}

/* ---- files ---- */

static void fill_place(const void *context, uint64_t i, void *row)
{
    const struct oct_register *r = context;
    const struct mosaic *m = r->own;
    const struct oct_mosaic_place *p = &m->mosaic.places[i];
    *(struct place_row *)row = (struct place_row){
        .picture = (uint32_t)i,
        .component = p->component,
        .with = p->with,
        .y_px = p->y,
        .x_px = p->x,
        .y_um = p->y * r->um[0],
        .x_um = p->x * r->um[1],
        .neighbour = p->is_first ? (double)NAN : (double)p->with,
        .score = p->score,
        .file = oct_pictures_path(r->pictures, i),
        .reason = oct_picture_has_contrast(&m->pictures[i]) ? NULL : "no contrast"};
}

static struct oct_result_rows all_places(const struct oct_register *r)
{
    return (struct oct_result_rows){.fields = &all_place_fields,
                                    .n = r->n,
                                    .row_bytes = sizeof(struct place_row),
                                    .fill = fill_place,
                                    .context = r};
}

static void write_average(struct oct_register *r)
{
    static const char *const axes[2] = {"row", "column"};
    struct mosaic *m = r->own;
    const uint64_t dims[2] = {m->canvas.height, m->canvas.width};
    const unsigned average = oct_results_dataset(r->h5, "/average", OCT_RESULTS_F32, 2, dims, NULL);
    const unsigned weight = oct_results_dataset(r->h5, "/weight", OCT_RESULTS_F32, 2, dims, NULL);
    oct_results_write(r->h5, average, m->canvas.pixels);
    oct_results_write(r->h5, weight, m->weight);
    oct_results_numbers(r->h5, "/average", "origin_px", m->origin, 2);
    oct_results_axes(r->h5, average, axes, r->um);
    oct_results_axes(r->h5, weight, axes, r->um);
    oct_results_count(r->h5, NULL, "n_averaged", m->mosaic.n_placed);
}

static void write_h5(struct oct_register *r)
{
    const struct mosaic *m = r->own;
    const struct oct_result_rows rows = all_places(r);
    const uint64_t pairs[2] = {r->n, 2};
    const unsigned place =
        oct_results_dataset(r->h5, "/pictures/position_px", OCT_RESULTS_F64, 2, pairs, "px");
    oct_results_text(
        r->h5, "/pictures/position_px", "meaning",
        "row and column of pixel (0, 0), from that of the first picture of the component");
    for (uint64_t i = 0; i < r->n; i++)
        oct_results_write_rows(r->h5, place, i, 1,
                               (const double[2]){m->mosaic.places[i].y, m->mosaic.places[i].x});
    oct_result_datasets(r->h5, "/pictures", &rows);
    if (!r->given.shifts_only)
        write_average(r);
    oct_results_text(r->h5, NULL, "model", "mosaic");
}

static enum oct_err write_csv(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct oct_result_rows rows = all_places(context);
    return oct_result_csv(path, force, &rows, err);
}

static enum oct_err draw_mosaic(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct oct_register *r = context;
    const struct mosaic *m = r->own;
    char footer[80];
    const struct oct_plot_picture plot = {.footer = footer,
                                          .pixels = m->canvas.pixels,
                                          .height = m->canvas.height,
                                          .width = m->canvas.width,
                                          .um_dx = r->um[1]};
    snprintf(footer, sizeof(footer), "mosaic of %u pictures", m->mosaic.n_placed);
    return oct_plot_write_picture(path, force, &plot, err);
}

/* ---- what is said ---- */

static void print_mosaic(const struct oct_register *r)
{
    const struct mosaic *m = r->own;
    const char *before = "; left out, no overlap: ";
    oct_result_print(stdout,
                     "{placed} of {n} pictures[ in {width} x {height} px], weakest overlap "
                     "{weakest_score:.3f}",
                     &all_summary_fields, &m->summary);
    for (uint64_t i = 0; i < r->n; i++) {
        struct place_row p;
        fill_place(r, i, &p);
        if (p.component == 0)
            continue;
        printf("%s%s", before, p.file);
        if (p.reason)
            printf(" (%s)", p.reason);
        else if (!isnan(p.neighbour))
            printf(" (with %s)", oct_pictures_path(r->pictures, p.with));
        before = ", ";
    }
}

static void fill_json(const struct oct_register *r, cJSON *tree)
{
    const struct mosaic *m = r->own;
    const struct oct_result_rows rows = all_places(r);
    oct_result_json(tree, &all_summary_fields, &m->summary);
    oct_result_json_rows(tree, "pictures", &rows);
}

const struct oct_register_mode oct_register_mosaic = {.kind = "mosaic",
                                                      .counted = "pairs",
                                                      .bytes = sizeof(struct mosaic),
                                                      .work = register_mosaic,
                                                      .write_h5 = write_h5,
                                                      .write_csv = write_csv,
                                                      .draw = draw_mosaic,
                                                      .print = print_mosaic,
                                                      .json = fill_json};
