/* register --as volume: each B-scan of a volume onto those before it. */
#include "analysis/align/volume.h"
#include "formats/csv.h"
#include "formats/result_files.h"
#include "formats/results.h"
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/analyse/register.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct summary {
    uint64_t bscans, used;
    bool lateral;
    double score; /* median */
    struct oct_register_range range;
    const char *backend;
};

#define S struct summary
static const struct oct_result_field summary_fields[] = {
    {OCT_RESULT("bscans", S, bscans)},
    {OCT_RESULT("used", S, used)},
    {OCT_RESULT("lateral", S, lateral), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("score", S, score), .is_optional = true},
    {OCT_RESULT_LIST("dy_px", S, range.dy)},
    {OCT_RESULT_LIST("dx_px", S, range.dx)},
    {OCT_RESULT("dy_most", S, range.dy[1]), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("dx_most", S, range.dx[1]), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("backend", S, backend)},
};
#undef S
static const struct oct_result_fields all_summary_fields = OCT_RESULT_FIELDS(summary_fields);

static const char summary_sentence[] =
    "{used} of {bscans} B-scans used[, median score {score:.3f}], depth {dx_px:.2f} to "
    "{dx_most:.2f} px[{lateral?}, A-lines {dy_px:.2f} to {dy_most:.2f}]";

struct volume {
    struct oct_volume_shift *shifts; /* [n] */
    const char *running;             /* "cpu", "cuda" or "given" */
    struct oct_render render;
    float *moved;    /* [render.height][render.width] */
    float *section;  /* [n][render.width]: the middle A-line of each; NULL: no --png */
    double *dy, *dx; /* [height] */
    struct summary summary;
};

static bool is_used(const struct oct_volume_shift *s)
{
    return s->fate == OCT_VOLUME_USED || s->fate == OCT_VOLUME_NEW;
}

static enum oct_err read_bscan(void *context, uint32_t b, struct oct_picture *picture,
                               struct oct_error *err)
{
    return oct_register_read(context, b, picture, err);
}

/* ---- shifts ---- */

/* The shifts of --shifts: that of a B-scan's first A-line is that of the B-scan. */
static enum oct_err take_given(struct oct_register *r, struct oct_error *err)
{
    struct volume *v = r->own;
    struct oct_strip *given;
    const enum oct_err e = oct_register_read_shifts(r, &given, err);
    for (uint64_t b = 0; !e && b < r->n; b++) {
        const struct oct_strip *s = &given[b * r->height];
        const bool is_skipped = !s->ok || (r->skip && r->skip[b]);
        v->shifts[b] = is_skipped
                           ? (struct oct_volume_shift){NAN, NAN, NAN, NAN, NAN, OCT_VOLUME_SKIPPED}
                           : (struct oct_volume_shift){(double)s->dy, (double)s->dx,  NAN, NAN,
                                                       NAN,           OCT_VOLUME_USED};
    }
    free(given);
    v->running = "given";
    return e;
}

static enum oct_err find_shifts(struct oct_register *r, struct oct_error *err)
{
    struct volume *v = r->own;
    const struct oct_volume_source source = {.context = r,
                                             .n_bscans = (uint32_t)r->n,
                                             .read = read_bscan,
                                             .progress = oct_register_show};
    const struct oct_volume_setup setup = {
        .height = r->height,
        .width = r->width,
        .lateral = r->given.lateral,
        .max_dy = r->settings.search,
        .max_dx = r->settings.search,
        .min_score = r->setup.min_score,
        .skip = r->skip,
        .backend = r->setup.backend,
        .gpus = r->setup.gpus,
    };
    if (r->given.shifts)
        return take_given(r, err);
    return oct_volume_register(&setup, &source, v->shifts, &v->running, err);
}

static void sum_up(struct oct_register *r)
{
    struct volume *v = r->own;
    struct summary *s = &v->summary;
    double *scores = oct_alloc(r->n, sizeof(*scores));
    size_t n = 0;
    *s = (struct summary){.bscans = r->n,
                          .lateral = r->given.lateral,
                          .range = {{HUGE_VAL, -HUGE_VAL}, {HUGE_VAL, -HUGE_VAL}},
                          .backend = v->running};
    for (uint64_t b = 0; b < r->n; b++) {
        const struct oct_volume_shift *shift = &v->shifts[b];
        if (!is_used(shift))
            continue;
        s->used++;
        oct_register_range_grow(&s->range, shift->dy, shift->dx);
        if (!isnan(shift->score))
            scores[n++] = shift->score;
    }
    s->score = oct_register_median(scores, n);
    free(scores);
}

/* ---- the moved volume ---- */

static void fill_shift(struct oct_register *r, uint64_t b)
{
    struct volume *v = r->own;
    for (uint32_t y = 0; y < r->height; y++) {
        v->dy[y] = v->shifts[b].dy;
        v->dx[y] = v->shifts[b].dx;
    }
}

static enum oct_err open_canvas(struct oct_register *r, struct oct_error *err)
{
    struct volume *v = r->own;
    struct oct_render_box box = {0};
    const bool common = r->setup.common;
    v->dy = oct_alloc(r->height, sizeof(double));
    v->dx = oct_alloc(r->height, sizeof(double));
    for (uint64_t b = 0; b < r->n; b++)
        if (is_used(&v->shifts[b])) {
            fill_shift(r, b);
            oct_render_grow(&box, r->height, r->width, v->dy, v->dx);
        }
    if (common && (box.common_y0 > box.common_y1 || box.common_x0 > box.common_x1))
        return oct_fail(err, OCT_E_ARG, "--crop common: the B-scans have no pixel in common");
    const enum oct_err e = oct_render_init(
        &v->render, common ? box.common_y0 : box.y0, common ? box.common_y1 : box.y1,
        common ? box.common_x0 : box.x0, common ? box.common_x1 : box.x1, r->setup.interpolation,
        r->is_db && r->is_linear, err);
    v->moved = oct_alloc((size_t)v->render.height * v->render.width, sizeof(float));
    if (r->given.png)
        v->section = oct_alloc(r->n * v->render.width, sizeof(float));
    return e;
}

/* Moves B-scan b into v->moved, NaN where it does not reach, or where it is left out. */
static enum oct_err move_bscan(struct oct_register *r, uint64_t b, struct oct_error *err)
{
    struct volume *v = r->own;
    const size_t n = (size_t)v->render.height * v->render.width;
    struct oct_picture picture;
    const enum oct_err e = oct_register_read(r, b, &picture, err);
    if (e)
        return e;
    for (size_t i = 0; i < n; i++)
        v->moved[i] = NAN;
    if (is_used(&v->shifts[b])) {
        fill_shift(r, b);
        oct_render_clear(&v->render);
        oct_render_add(&v->render, &picture, v->dy, v->dx);
        oct_render_average(&v->render, v->moved, NULL);
    }
    if (v->section)
        memcpy(v->section + b * v->render.width,
               v->moved + (size_t)(v->render.height / 2) * v->render.width,
               v->render.width * sizeof(float));
    oct_picture_finish(&picture);
    return OCT_OK;
}

static enum oct_err move_all(struct oct_register *r, struct oct_error *err)
{
    static const char *const axes[3] = {"bscan", "line", "depth"};
    struct volume *v = r->own;
    enum oct_err e = open_canvas(r, err);
    const uint64_t dims[3] = {r->n, v->render.height, v->render.width};
    const double origin[2] = {v->render.origin_y, v->render.origin_x};
    const double um[3] = {NAN, r->um[0], r->um[1]};
    const bool is_written = r->h5 && !r->given.shifts_only;
    unsigned bscans = 0;
    if (!e && is_written) {
        bscans =
            oct_results_dataset(r->h5, "/bscans", OCT_RESULTS_F32, 3, dims, r->is_db ? "dB" : NULL);
        oct_results_numbers(r->h5, "/bscans", "origin_px", origin, 2);
        oct_results_axes(r->h5, bscans, axes, um);
    }
    for (uint64_t b = 0; !e && b < r->n; b++) {
        e = move_bscan(r, b, err);
        if (!e && is_written) {
            oct_results_write_rows(r->h5, bscans, b, 1, v->moved);
            e = oct_results_error(r->h5, err);
        }
    }
    return e;
}

static enum oct_err register_volume(struct oct_register *r, struct oct_error *err)
{
    struct volume *v = r->own;
    enum oct_err e = oct_register_open(r, err);
    if (!e && (r->n < 2 || r->n > UINT32_MAX / 2))
        e = oct_fail(err, OCT_E_FORMAT, "%s: %llu B-scans: a volume has two at least",
                     r->job.inputs[0], (unsigned long long)r->n);
    if (e)
        return e;
    v->shifts = oct_alloc(r->n, sizeof(*v->shifts));
    e = find_shifts(r, err);
    if (!e)
        sum_up(r);
    e = e ? e : oct_register_create_h5(r, err);
    return e ? e : move_all(r, err);
}

/* ---- files ---- */

struct bscan_row {
    double score;
    bool is_used;
    enum oct_volume_fate fate;
    uint64_t time_ns;
};

static const char *const fate_words[] = {
    [OCT_VOLUME_USED] = "used",       [OCT_VOLUME_BLANK] = "blank",
    [OCT_VOLUME_NO_FIT] = "no fit",   [OCT_VOLUME_NEW] = "new place",
    [OCT_VOLUME_SKIPPED] = "skipped", NULL};

#define R struct bscan_row
static const struct oct_result_field bscan_fields[] = {
    {OCT_RESULT("score", R, score)},
    {OCT_RESULT("used", R, is_used)},
    {OCT_RESULT_NAMED("reason", R, fate, fate_words)},
    {OCT_RESULT("time_ns", R, time_ns), .unit = "ns"},
};
#undef R

static void fill_bscan(const void *context, uint64_t b, void *row)
{
    const struct oct_register *r = context;
    const struct oct_volume_shift *s = &((const struct volume *)r->own)->shifts[b];
    *(struct bscan_row *)row = (struct bscan_row){s->score, is_used(s), s->fate, r->time_ns[b]};
}

static void shift_of(const void *volume, uint64_t b, double pair[2])
{
    const struct oct_volume_shift *s = &((const struct volume *)volume)->shifts[b];
    pair[0] = s->dy;
    pair[1] = s->dx;
}

static void sd_of(const void *volume, uint64_t b, double pair[2])
{
    const struct oct_volume_shift *s = &((const struct volume *)volume)->shifts[b];
    pair[0] = s->sd_dy;
    pair[1] = s->sd_dx;
}

static void write_h5(struct oct_register *r)
{
    static const struct oct_result_fields fields = OCT_RESULT_FIELDS(bscan_fields);
    const struct volume *v = r->own;
    const struct oct_result_rows rows = {.fields = &fields,
                                         .n = r->n,
                                         .row_bytes = sizeof(struct bscan_row),
                                         .fill = fill_bscan,
                                         .context = r};
    oct_register_write_pairs(r, "/frames/shift_px", "A-lines, depth", shift_of);
    oct_register_write_pairs(r, "/frames/shift_sd_px", "A-lines, depth", sd_of);
    oct_result_datasets(r->h5, "/frames", &rows);
    oct_results_text(r->h5, NULL, "model", r->given.lateral ? "axial and lateral" : "axial");
    oct_results_text(r->h5, NULL, "backend", v->running);
    oct_results_text(r->h5, NULL, "sign",
                     "shift (dy, dx) moves pixel p of a B-scan to p + shift of the moved volume");
}

static enum oct_err write_csv(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct oct_register *r = context;
    const struct oct_volume_shift *s = ((const struct volume *)r->own)->shifts;
    struct oct_csv *csv;
    const enum oct_err e = oct_csv_create(&csv, path, force, OCT_REGISTER_CSV, err);
    if (e)
        return e;
    for (uint64_t b = 0; b < r->n; b++)
        oct_register_put_row(r, csv, b, 0, s[b].dy, s[b].dx,
                             (const double[2]){s[b].sd_dy, s[b].sd_dx}, s[b].score);
    return oct_csv_publish(csv, err);
}

static enum oct_err draw_section(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct oct_register *r = context;
    const struct volume *v = r->own;
    const struct oct_plot_picture section = {.footer = "the middle A-line of each B-scan",
                                             .pixels = v->section,
                                             .height = (uint32_t)r->n,
                                             .width = v->render.width};
    return oct_plot_write_picture(path, force, &section, err);
}

static enum oct_err draw_motion(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct oct_register *r = context;
    const struct volume *v = r->own;
    const size_t n = (size_t)r->n;
    double *x = oct_alloc(3 * n, sizeof(*x)), *dy = x + n, *dx = x + 2 * n;
    for (size_t b = 0; b < n; b++) {
        x[b] = (double)b;
        dy[b] = v->shifts[b].dy;
        dx[b] = v->shifts[b].dx;
    }
    const struct oct_plot_series series[] = {{.x = x, .y = dx, .n = n, .label = "depth"},
                                             {.x = x, .y = dy, .n = n, .label = "A-lines"}};
    const enum oct_err e =
        oct_register_draw_motion(path, force, "B-scan", series, r->given.lateral ? 2 : 1, err);
    free(x);
    return e;
}

/* ---- what is said ---- */

/* NULL: used, onto those before it. */
static const char *why_left_out(const void *volume, uint64_t b)
{
    const enum oct_volume_fate fate = ((const struct volume *)volume)->shifts[b].fate;
    return fate == OCT_VOLUME_USED ? NULL : oct_volume_fate_text(fate);
}

static void print_volume(const struct oct_register *r)
{
    const struct volume *v = r->own;
    oct_result_print(stdout, summary_sentence, &all_summary_fields, &v->summary);
    oct_command_print_runs("; ", r->n, why_left_out, v);
}

static void fill_json(const struct oct_register *r, cJSON *tree)
{
    const struct volume *v = r->own;
    oct_result_json(tree, &all_summary_fields, &v->summary);
    oct_command_add_left_out(tree, r->n, why_left_out, v);
}

const struct oct_register_mode oct_register_volume = {.kind = "volume",
                                                      .counted = "B-scans",
                                                      .bytes = sizeof(struct volume),
                                                      .work = register_volume,
                                                      .write_h5 = write_h5,
                                                      .write_csv = write_csv,
                                                      .draw = draw_section,
                                                      .draw_motion = draw_motion,
                                                      .print = print_volume,
                                                      .json = fill_json};
