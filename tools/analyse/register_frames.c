/* register --as frames: a sequence of pictures, rigid or by strips. --as bscans: the same. */
#include "formats/csv.h"
#include "formats/result_files.h"
#include "formats/results.h"
#include "kernels/device/workers.h"
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/analyse/register.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DRAWN 64u /* lines of a frame: enough to see a saccade */

/* What is said of all. */
struct summary {
    uint64_t frames, used, reference, strips_dropped, strips;
    bool has_reference, is_by_strips;
    double score_before, score_after; /* medians */
    struct oct_register_range range;  /* of all lines of used frames */
    const char *backend;
};

#define S struct summary
static const struct oct_result_field summary_fields[] = {
    {OCT_RESULT("frames", S, frames)},
    {OCT_RESULT("used", S, used)},
    {OCT_RESULT("has_reference", S, has_reference), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("reference", S, reference), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("strips_dropped", S, strips_dropped)},
    {OCT_RESULT("strips", S, strips), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("is_by_strips", S, is_by_strips), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("score_before", S, score_before)},
    {OCT_RESULT("score_after", S, score_after)},
    {OCT_RESULT_LIST("dy_px", S, range.dy)},
    {OCT_RESULT_LIST("dx_px", S, range.dx)},
    {OCT_RESULT("dy_most", S, range.dy[1]), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("dx_most", S, range.dx[1]), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("backend", S, backend)},
};
#undef S
static const struct oct_result_fields all_summary_fields = OCT_RESULT_FIELDS(summary_fields);

static const char summary_sentence[] =
    "{used} of {frames} frames used[{is_by_strips?}, {strips_dropped} of {strips} strips dropped]"
    "[, median score {score_after:.3f} ({score_before:.3f} before)], dy {dy_px:.2f} to "
    "{dy_most:.2f} px, dx {dx_px:.2f} to {dx_most:.2f} px[{has_reference?}, reference {reference}]";

struct frames {
    struct oct_picture reference; /* of --reference FILE */
    struct oct_sequence sequence;
    struct oct_strip *given;
    float *average, *weight; /* [render.height][render.width]; NULL: shifts only */
    double *dy, *dx;         /* [height], of the frame in hand */
    unsigned stack;          /* dataset; UINT32_MAX: none yet */
    struct summary summary;
};

static enum oct_err read_frame(void *context, uint64_t frame, struct oct_picture *picture,
                               struct oct_error *err)
{
    return oct_register_read(context, frame, picture, err);
}

/* The shift of every line of a frame, into f->dy and f->dx. False: it is not used. */
static bool find_lines(struct frames *f, uint64_t frame)
{
    return oct_sequence_lines(&f->sequence, frame, f->dy, f->dx);
}

/* ---- the work ---- */

static enum oct_err read_reference(struct oct_register *r, struct oct_error *err)
{
    struct frames *f = r->own;
    const char *path = r->reference_path;
    struct oct_pictures *pictures;
    const struct oct_pictures_options options = {.what = OCT_PICTURES_FRAMES};
    if (!path)
        return OCT_OK;
    enum oct_err e = oct_pictures_open(&pictures, &path, 1, &options, err);
    if (e)
        return e;
    e = oct_pictures_read(pictures, 0, &f->reference, NULL, err);
    oct_pictures_close(pictures);
    if (!e && (f->reference.height != r->height || f->reference.width != r->width))
        e = oct_fail(err, OCT_E_FORMAT, "%s is %u x %u pixels, but %s is %u x %u", path,
                     f->reference.width, f->reference.height, oct_pictures_path(r->pictures, 0),
                     r->width, r->height);
    r->setup.reference = &f->reference;
    return e;
}

static void sum_up(struct oct_register *r)
{
    struct frames *f = r->own;
    struct oct_sequence *q = &f->sequence;
    uint64_t n_after = 0, n_before = 0;
    double *after = oct_alloc(r->n, sizeof(*after)), *before = oct_alloc(r->n, sizeof(*before));
    struct summary *s = &f->summary;
    *s = (struct summary){.frames = r->n,
                          .used = q->n_used,
                          .reference = q->reference,
                          .has_reference = q->reference != UINT64_MAX,
                          .strips_dropped = q->n_strips_dropped,
                          .strips = q->n_used * q->n_strips,
                          .is_by_strips = q->n_strips > 1 && q->setup.model == OCT_SEQUENCE_STRIPS,
                          .range = {{HUGE_VAL, -HUGE_VAL}, {HUGE_VAL, -HUGE_VAL}},
                          .backend = q->running};
    for (uint64_t i = 0; i < r->n; i++) {
        if (!find_lines(f, i))
            continue;
        if (!isnan(q->frames[i].score) && i != q->reference)
            after[n_after++] = (double)q->frames[i].score;
        if (!isnan(q->frames[i].before) && i != q->reference)
            before[n_before++] = (double)q->frames[i].before;
        for (uint32_t y = 0; y < r->height; y++)
            oct_register_range_grow(&s->range, f->dy[y], f->dx[y]);
    }
    s->score_after = oct_register_median(after, n_after);
    s->score_before = oct_register_median(before, n_before);
    free(before);
    free(after);
}

static const char *const picture_axes[3] = {"frame", "row", "column"};

/* --stack */
static enum oct_err write_moved(void *context, uint64_t frame, const float *pixels,
                                struct oct_error *err)
{
    struct oct_register *r = context;
    struct frames *f = r->own;
    if (f->stack == UINT32_MAX) {
        const uint64_t dims[3] = {r->n, f->sequence.render.height, f->sequence.render.width};
        const double um[3] = {NAN, r->um[0], r->um[1]};
        f->stack = oct_results_dataset(r->h5, "/registered", OCT_RESULTS_F32, 3, dims,
                                       r->is_db ? "dB" : NULL);
        oct_results_axes(r->h5, f->stack, picture_axes, um);
    }
    oct_results_write_rows(r->h5, f->stack, frame, 1, pixels);
    return oct_results_error(r->h5, err);
}

static enum oct_err make_average(struct oct_register *r, struct oct_error *err)
{
    struct frames *f = r->own;
    struct oct_sequence *q = &f->sequence;
    const bool is_stacked = r->given.stack && r->h5;
    const enum oct_err e = oct_sequence_render(q, is_stacked ? write_moved : NULL, r, err);
    if (e)
        return e;
    const size_t n = (size_t)q->render.height * q->render.width;
    f->average = oct_alloc(n, sizeof(float));
    f->weight = oct_alloc(n, sizeof(float));
    oct_render_average(&q->render, f->average, f->weight);
    return OCT_OK;
}

static enum oct_err register_frames(struct oct_register *r, struct oct_error *err)
{
    struct frames *f = r->own;
    f->stack = UINT32_MAX;
    enum oct_err e = oct_register_open(r, err);
    if (!e && r->n < 2)
        e = oct_fail(err, OCT_E_FORMAT, "%s: holds one picture; two or more are registered",
                     r->job.inputs[0]);
    e = e ? e : read_reference(r, err);
    if (!e && r->given.shifts)
        e = oct_register_read_shifts(r, &f->given, err);
    if (e)
        return e;
    f->dy = oct_alloc(r->height, sizeof(double));
    f->dx = oct_alloc(r->height, sizeof(double));
    r->setup.height = r->height;
    r->setup.width = r->width;
    r->setup.as_power = r->is_db && r->is_linear;
    r->setup.skip = r->skip;
    r->setup.given = f->given;
    r->setup.workers = r->job.workers;
    const struct oct_sequence_source source = {
        .context = r, .n_frames = r->n, .read = read_frame, .progress = oct_register_show};
    e = oct_sequence_register(&f->sequence, &r->setup, &source, err);
    if (e)
        return e;
    sum_up(r);
    e = oct_register_create_h5(r, err);
    return e || r->given.shifts_only ? e : make_average(r, err);
}

/* ---- HDF5 ---- */

struct frame_row {
    bool is_used;
    float score, before;
    enum oct_frame_fate fate;
    uint64_t number, time_ns;
};

static const char *const fate_words[] = {
    [OCT_FRAME_USED] = "used",
    [OCT_FRAME_SKIPPED] = "skipped",
    [OCT_FRAME_NO_CONTRAST] = "no contrast",
    [OCT_FRAME_LOW_SCORE] = "low score",
    [OCT_FRAME_FEW_STRIPS] = "few strips",
    [OCT_FRAME_NO_SHIFT] = "no shift",
    NULL,
};

#define R struct frame_row
static const struct oct_result_field frame_fields[] = {
    {OCT_RESULT("used", R, is_used)},        {OCT_RESULT("score", R, score)},
    {OCT_RESULT("score_before", R, before)}, {OCT_RESULT_NAMED("reason", R, fate, fate_words)},
    {OCT_RESULT("number", R, number)},       {OCT_RESULT("time_ns", R, time_ns), .unit = "ns"},
};
#undef R

static void fill_frame(const void *context, uint64_t i, void *row)
{
    const struct oct_register *r = context;
    const struct oct_sequence_frame *q = &((const struct frames *)r->own)->sequence.frames[i];
    *(struct frame_row *)row = (struct frame_row){
        q->fate == OCT_FRAME_USED, q->score, q->before, q->fate, i, r->time_ns[i]};
}

static void sd_of(const void *frames, uint64_t i, double pair[2])
{
    memcpy(pair, ((const struct frames *)frames)->sequence.frames[i].sd, 2 * sizeof(*pair));
}

static void write_frames(struct oct_register *r)
{
    static const struct oct_result_fields fields = OCT_RESULT_FIELDS(frame_fields);
    const struct oct_result_rows rows = {.fields = &fields,
                                         .n = r->n,
                                         .row_bytes = sizeof(struct frame_row),
                                         .fill = fill_frame,
                                         .context = r};
    oct_result_datasets(r->h5, "/frames", &rows);
    oct_register_write_pairs(r, "/frames/shift_sd_px", "dy, dx", sd_of);
}

static void write_shifts(struct oct_register *r)
{
    struct frames *f = r->own;
    const struct oct_sequence *q = &f->sequence;
    const uint64_t dims[3] = {r->n, r->height, 2};
    const unsigned shifts = oct_results_dataset(r->h5, "/shifts", OCT_RESULTS_F32, 3, dims, "px");
    float(*lines)[2] = oct_alloc(r->height, sizeof(*lines));
    for (uint64_t i = 0; i < r->n; i++) {
        const bool is_used = find_lines(f, i);
        for (uint32_t y = 0; y < r->height; y++) {
            lines[y][0] = is_used ? (float)f->dy[y] : NAN;
            lines[y][1] = is_used ? (float)f->dx[y] : NAN;
        }
        oct_results_write_rows(r->h5, shifts, i, 1, lines);
    }
    for (uint32_t y = 0; y < r->height && q->motion_y; y++) {
        lines[y][0] = (float)q->motion_y[y];
        lines[y][1] = (float)q->motion_x[y];
    }
    if (q->motion_y)
        oct_results_write(
            r->h5,
            oct_results_dataset(r->h5, "/reference_motion", OCT_RESULTS_F32, 2, dims + 1, "px"),
            lines);
    free(lines);
}

static void write_strips(struct oct_register *r)
{
    const struct oct_sequence *q = &((struct frames *)r->own)->sequence;
    const uint32_t n = q->n_strips;
    const uint64_t dims[3] = {r->n, n, 2};
    const unsigned shift =
        oct_results_dataset(r->h5, "/strips/shift", OCT_RESULTS_F32, 3, dims, "px");
    const unsigned score =
        oct_results_dataset(r->h5, "/strips/score", OCT_RESULTS_F32, 2, dims, NULL);
    const unsigned ok = oct_results_dataset(r->h5, "/strips/ok", OCT_RESULTS_U8, 2, dims, NULL);
    oct_results_count(r->h5, "/strips", "lines", q->rows);
    oct_results_count(r->h5, "/strips", "step", q->step);
    oct_results_count(r->h5, "/strips", "first_line", q->first_row);
    float(*shifts)[2] = oct_alloc(n, sizeof(*shifts)), *scores = oct_alloc(n, sizeof(*scores));
    uint8_t *good = oct_alloc(n, 1);
    for (uint64_t i = 0; i < r->n; i++) {
        for (uint32_t k = 0; k < n; k++) {
            const struct oct_strip *strip = &q->strips[i * n + k];
            shifts[k][0] = strip->dy;
            shifts[k][1] = strip->dx;
            scores[k] = strip->score;
            good[k] = strip->ok;
        }
        oct_results_write_rows(r->h5, shift, i, 1, shifts);
        oct_results_write_rows(r->h5, score, i, 1, scores);
        oct_results_write_rows(r->h5, ok, i, 1, good);
    }
    free(shifts);
    free(scores);
    free(good);
}

static void write_average(struct oct_register *r)
{
    const struct frames *f = r->own;
    const struct oct_render *render = &f->sequence.render;
    const uint64_t dims[2] = {render->height, render->width};
    const double origin[2] = {render->origin_y, render->origin_x};
    const unsigned average =
        oct_results_dataset(r->h5, "/average", OCT_RESULTS_F32, 2, dims, r->is_db ? "dB" : NULL);
    const unsigned weight = oct_results_dataset(r->h5, "/weight", OCT_RESULTS_F32, 2, dims, NULL);
    oct_results_numbers(r->h5, "/average", "origin_px", origin, 2);
    oct_results_axes(r->h5, average, picture_axes + 1, r->um);
    oct_results_axes(r->h5, weight, picture_axes + 1, r->um);
    oct_results_write(r->h5, average, f->average);
    oct_results_write(r->h5, weight, f->weight);
}

static void write_h5(struct oct_register *r)
{
    static const char *const models[] = {"rigid", "strips", "none", "given"};
    const struct frames *f = r->own;
    const struct oct_sequence *q = &f->sequence;
    oct_results_text(r->h5, NULL, "model", models[q->setup.model]);
    oct_results_text(r->h5, NULL, "backend", q->running);
    oct_results_count(r->h5, NULL, "n_averaged", f->average ? q->n_used : 0);
    if (q->reference != UINT64_MAX)
        oct_results_count(r->h5, NULL, "reference_frame", q->reference);
    oct_results_text(r->h5, NULL, "sign",
                     "shift (dy, dx) puts pixel p of a frame onto p + shift of the reference");
    write_frames(r);
    if (f->average)
        write_average(r);
    write_shifts(r);
    write_strips(r);
}

/* ---- CSV ---- */

/* Of the strip whose middle is nearest to a line. */
static double score_of_line(const struct oct_sequence *q, uint64_t frame, uint32_t y)
{
    double at = round((y - (double)q->first_row - 0.5 * (q->rows - 1)) / q->step);
    uint32_t last = q->n_strips - 1;
    uint32_t strip = at < 0 ? 0 : at > last ? last : (uint32_t)at;
    return (double)q->strips[frame * q->n_strips + strip].score;
}

/* A row a frame, or a line of frames that are used and moved by lines. */
static enum oct_err write_csv(void *context, const char *path, bool force, struct oct_error *err)
{
    struct oct_register *r = context;
    struct frames *f = r->own;
    const struct oct_sequence *q = &f->sequence;
    const enum oct_sequence_model model = q->setup.model;
    const bool by_lines = model == OCT_SEQUENCE_STRIPS || model == OCT_SEQUENCE_GIVEN;
    struct oct_csv *csv;
    const enum oct_err e = oct_csv_create(&csv, path, force, OCT_REGISTER_CSV, err);
    if (e)
        return e;
    for (uint64_t i = 0; i < r->n; i++) {
        const bool is_used = find_lines(f, i);
        const uint32_t n_lines = by_lines && is_used ? r->height : 1;
        for (uint32_t y = 0; y < n_lines; y++)
            oct_register_put_row(r, csv, i, y, is_used ? f->dy[y] : NAN, is_used ? f->dx[y] : NAN,
                                 q->frames[i].sd,
                                 n_lines > 1 ? score_of_line(q, i, y) : (double)q->frames[i].score);
    }
    return oct_csv_publish(csv, err);
}

/* ---- PNG ---- */

static enum oct_err draw_motion(void *context, const char *path, bool force, struct oct_error *err)
{
    struct oct_register *r = context;
    struct frames *f = r->own;
    const uint32_t every = r->height > MOST_DRAWN ? r->height / MOST_DRAWN : 1;
    const size_t n = (size_t)r->n * ((r->height + every - 1) / every);
    double *x = oct_alloc(3 * n, sizeof(*x)), *dy = x + n, *dx = x + 2 * n;
    size_t at = 0;
    for (uint64_t i = 0; i < r->n; i++) {
        const bool is_used = find_lines(f, i);
        for (uint32_t y = 0; y < r->height; y += every, at++) {
            x[at] = (double)i + (double)y / r->height;
            dy[at] = is_used ? f->dy[y] : NAN;
            dx[at] = is_used ? f->dx[y] : NAN;
        }
    }
    const struct oct_plot_series series[] = {{.x = x, .y = dy, .n = n, .label = "dy"},
                                             {.x = x, .y = dx, .n = n, .label = "dx"}};
    const enum oct_err e = oct_register_draw_motion(path, force, "frame", series, 2, err);
    free(x);
    return e;
}

static enum oct_err draw_average(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct oct_register *r = context;
    const struct frames *f = r->own;
    char footer[80];
    snprintf(footer, sizeof(footer), "average of %llu frames",
             (unsigned long long)f->sequence.n_used);
    const struct oct_plot_picture plot = {
        .footer = footer,
        .pixels = f->average,
        .height = f->sequence.render.height,
        .width = f->sequence.render.width,
        .um_dx = r->um[1],
    };
    return oct_plot_write_picture(path, force, &plot, err);
}

/* ---- what is said ---- */

/* NULL: used. */
static const char *why_left_out(const void *sequence, uint64_t frame)
{
    const struct oct_sequence *q = sequence;
    const enum oct_frame_fate fate = q->frames[frame].fate;
    return fate == OCT_FRAME_USED ? NULL : oct_frame_fate_text(fate);
}

static void print_frames(const struct oct_register *r)
{
    const struct frames *f = r->own;
    oct_result_print(stdout, summary_sentence, &all_summary_fields, &f->summary);
    oct_command_print_left_out(r->n, why_left_out, &f->sequence);
}

static void fill_json(const struct oct_register *r, cJSON *tree)
{
    const struct frames *f = r->own;
    oct_result_json(tree, &all_summary_fields, &f->summary);
    if (f->summary.has_reference)
        cJSON_AddNumberToObject(tree, "reference", (double)f->summary.reference);
    oct_command_add_left_out(tree, r->n, why_left_out, &f->sequence);
}

const struct oct_register_mode oct_register_frames = {.kind = "frames",
                                                      .counted = "frames",
                                                      .bytes = sizeof(struct frames),
                                                      .work = register_frames,
                                                      .write_h5 = write_h5,
                                                      .write_csv = write_csv,
                                                      .draw = draw_average,
                                                      .draw_motion = draw_motion,
                                                      .print = print_frames,
                                                      .json = fill_json};
