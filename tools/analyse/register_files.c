#include "tools/analyse/register_files.h"

#include "config/version.h"
#include "formats/csv.h"
#include "formats/results.h"
#include "numeric/order.h"
#include "plot/plot.h"
#include "tools/commands.h"
#include "tools/outputs.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *oct_register_motion_path(const char *png)
{
    size_t n = strlen(png), stem = n > 4 && strcmp(png + n - 4, ".png") == 0 ? n - 4 : n;
    char *path = malloc(stem + sizeof("-motion.png"));
    if (path) {
        memcpy(path, png, stem);
        memcpy(path + stem, "-motion.png", sizeof("-motion.png"));
    }
    return path;
}

enum oct_err oct_register_check_files(const struct oct_register *r, bool has_motion,
                                      struct oct_error *err)
{
    const struct oct_register_options *o = &r->options;
    char *motion = o->png && has_motion ? oct_register_motion_path(o->png) : NULL;
    const struct oct_output_file files[] = {
        {.path = r->out}, {.path = o->csv}, {.path = o->png}, {.path = motion}};
    const struct oct_input_files read = {
        r->inputs, r->n_inputs, {o->mask, r->reference_path, o->shifts}};
    enum oct_err e = oct_outputs_check(files, 4, o->force, &read, err);
    free(motion);
    return e;
}

/* A frame's file, for oct_results_texts. */
static const char *path_of(const void *pictures, uint64_t frame)
{
    return oct_pictures_path(pictures, frame);
}

void oct_register_write_paths(struct oct_results *results, const char *name, uint64_t n,
                              const struct oct_pictures *pictures)
{
    oct_results_texts(results, name, n, path_of, pictures);
}

static void write_text(struct oct_results *results, const char *name, const char *text)
{
    if (text)
        oct_results_text(results, NULL, name, text);
}

/* What decides how strips and frames are found. */
static void write_search(struct oct_results *f, const struct oct_register *r, bool is_volume)
{
    const struct oct_sequence_setup *s = &r->setup;
    const bool by_strips = s->model == OCT_SEQUENCE_STRIPS;
    if (by_strips || s->max_dy) /* else a third of the sides */
        oct_results_count(f, NULL, "search_px", by_strips ? s->search : s->max_dy);
    if (is_volume)
        return;
    write_text(f, "reference", r->options.reference ? r->options.reference : "auto");
    oct_results_count(f, NULL, "passes", s->n_passes);
    if (!by_strips)
        return;
    oct_results_count(f, NULL, "strip_lines", s->rows);
    oct_results_count(f, NULL, "strip_step", s->step);
    oct_results_count(f, NULL, "far_px", s->far);
}

void oct_register_write_settings(struct oct_results *f, const struct oct_register *r)
{
    const struct oct_register_options *o = &r->options;
    const struct oct_sequence_setup *s = &r->setup;
    const char *as = o->as ? o->as : "frames";
    const bool registers = s->model == OCT_SEQUENCE_RIGID || s->model == OCT_SEQUENCE_STRIPS;
    const bool is_mosaic = strcmp(as, "mosaic") == 0, is_volume = strcmp(as, "volume") == 0;
    oct_outputs_source(f, r->inputs, r->n_inputs);
    write_text(f, "as", as);
    write_text(f, "asked_backend", s->backend);
    if (registers)
        oct_results_number(f, NULL, "min_score", s->min_score);
    if (registers && !is_mosaic)
        write_search(f, r, is_volume);
    if (!is_mosaic) {
        write_text(f, "crop", o->crop ? o->crop : "all");
        write_text(f, "domain", o->domain ? o->domain : "linear");
        write_text(f, "interpolation", o->interpolation ? o->interpolation : "linear");
    }
    write_text(f, "roi", o->roi);
    write_text(f, "mask", o->mask);
    write_text(f, "skip", o->skip);
    write_text(f, "shifts", o->shifts);
    write_text(f, "en_face", o->en_face);
    write_text(f, "um", o->um);
    if (!isnan(o->invalid))
        oct_results_number(f, NULL, "invalid", o->invalid);
}

/* The file was begun before the others. */
static enum oct_err publish_results(void *context, const char *path, bool force,
                                    struct oct_error *err)
{
    struct oct_results **results = context, *taken = *results;
    (void)force;
    *results = NULL;
    return oct_results_publish_as(taken, path, err);
}

static enum oct_err write_files(const struct oct_register *r, struct oct_results **results,
                                const struct oct_register_writers *writers, const char *motion,
                                struct oct_error *err)
{
    const struct oct_register_options *o = &r->options;
    void *context = writers->context;
    const struct oct_output_file files[] = {
        {r->out, publish_results, results},
        {o->csv, writers->csv, context},
        {writers->picture ? o->png : NULL, writers->picture, context},
        {motion, writers->motion, context}};
    return oct_outputs_write(files, 4, o->force, err);
}

enum oct_err oct_register_publish(const struct oct_register *r, struct oct_results **results,
                                  const struct oct_register_writers *writers, struct oct_error *err)
{
    const struct oct_register_options *o = &r->options;
    const bool has_motion = o->png && writers->motion;
    char *motion = has_motion ? oct_register_motion_path(o->png) : NULL;
    enum oct_err e = has_motion && !motion
                         ? oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a plot")
                         : write_files(r, results, writers, motion, err);
    free(motion);
    oct_results_discard(*results);
    *results = NULL;
    if (!e && o->json)
        e = writers->print_json(writers->context, err);
    else if (!e)
        writers->print(writers->context);
    return e;
}

enum oct_err oct_register_read(const struct oct_register *r, struct oct_pictures *pictures,
                               uint64_t frame, struct oct_picture *picture,
                               struct oct_pictures_info *info, struct oct_error *err)
{
    if (*r->cancel)
        return oct_fail(err, OCT_E_STATE, "interrupted; nothing was written");
    return oct_pictures_read(pictures, frame, picture, info, err);
}

double oct_register_seconds(const uint64_t *time_ns, const uint8_t *is_read, uint64_t n, uint64_t i)
{
    uint64_t first = 0, last = n - 1;
    while (is_read && first < last && !is_read[first])
        first++;
    while (is_read && last > first && !is_read[last])
        last--;
    if (time_ns[last] <= time_ns[first] || (is_read && !is_read[i]))
        return NAN;
    return (double)(int64_t)(time_ns[i] - time_ns[first]) * 1e-9;
}

/* ---- a sequence being written ---- */

struct writer {
    const struct oct_register *r;
    struct oct_sequence *q;
    const struct oct_register_frames_info *info;
    struct oct_results *results;
    unsigned stack;           /* dataset */
    float *average, *weight;  /* [render.height][render.width]; NULL: shifts only */
    double *dy, *dx;          /* [height] */
    double least[2], most[2]; /* of all lines of used frames */
    double before, after;     /* median scores */
};

static enum oct_err look_over(struct writer *w, struct oct_error *err)
{
    struct oct_sequence *q = w->q;
    uint64_t n = 0, n_before = 0;
    float *after = calloc(w->info->n_frames, sizeof(float));
    float *before = calloc(w->info->n_frames, sizeof(float));
    w->least[0] = w->least[1] = HUGE_VAL;
    w->most[0] = w->most[1] = -HUGE_VAL;
    w->before = w->after = NAN;
    for (uint64_t i = 0; i < w->info->n_frames && before && after; i++) {
        if (!oct_sequence_lines(q, i, w->dy, w->dx))
            continue;
        if (!isnan(q->frames[i].score) && i != q->reference)
            after[n++] = q->frames[i].score;
        if (!isnan(q->frames[i].before) && i != q->reference)
            before[n_before++] = q->frames[i].before;
        for (uint32_t y = 0; y < q->setup.height; y++) {
            w->least[0] = fmin(w->least[0], w->dy[y]);
            w->most[0] = fmax(w->most[0], w->dy[y]);
            w->least[1] = fmin(w->least[1], w->dx[y]);
            w->most[1] = fmax(w->most[1], w->dx[y]);
        }
    }
    enum oct_err e = before && after ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    if (!e && n) {
        oct_floats_sort(after, n);
        w->after = (double)after[n / 2];
    }
    if (!e && n_before) {
        oct_floats_sort(before, n_before);
        w->before = (double)before[n_before / 2];
    }
    free(before);
    free(after);
    return e;
}

/* ---- HDF5 ---- */

static void write_attributes(struct writer *w)
{
    static const char *const models[] = {"rigid", "strips", "none", "given"};
    const struct oct_sequence *q = w->q;
    oct_register_write_settings(w->results, w->r);
    oct_results_text(w->results, NULL, "model", models[q->setup.model]);
    oct_results_text(w->results, NULL, "backend", q->running);
    oct_results_count(w->results, NULL, "n_averaged", w->average ? q->n_used : 0);
    if (q->reference != UINT64_MAX)
        oct_results_count(w->results, NULL, "reference_frame", q->reference);
    oct_results_numbers(w->results, NULL, "um_px", w->info->um, 2);
    oct_results_text(w->results, NULL, "sign",
                     "shift (dy, dx) puts pixel p of a frame onto p + shift of the reference");
}

static void write_frames(struct writer *w)
{
    const struct oct_sequence *q = w->q;
    const uint64_t n = w->info->n_frames;
    struct oct_results *f = w->results;
    unsigned used = oct_results_dataset(f, "/frames/used", OCT_RESULTS_U8, 1, &n, NULL);
    unsigned score = oct_results_dataset(f, "/frames/score", OCT_RESULTS_F32, 1, &n, NULL);
    unsigned before = oct_results_dataset(f, "/frames/score_before", OCT_RESULTS_F32, 1, &n, NULL);
    unsigned reason = oct_results_dataset(f, "/frames/reason", OCT_RESULTS_U8, 1, &n, NULL);
    unsigned number = oct_results_dataset(f, "/frames/number", OCT_RESULTS_U64, 1, &n, NULL);
    unsigned time = oct_results_dataset(f, "/frames/time_ns", OCT_RESULTS_U64, 1, &n, "ns");
    oct_results_text(f, "/frames/reason", "meaning",
                     "0 used, 1 skipped, 2 no contrast, 3 low score, 4 few strips, 5 no shift");
    for (uint64_t i = 0; i < n; i++) {
        uint8_t is_used = q->frames[i].fate == OCT_FRAME_USED, fate = (uint8_t)q->frames[i].fate;
        oct_results_write_rows(f, used, i, 1, &is_used);
        oct_results_write_rows(f, score, i, 1, &q->frames[i].score);
        oct_results_write_rows(f, before, i, 1, &q->frames[i].before);
        oct_results_write_rows(f, reason, i, 1, &fate);
        oct_results_write_rows(f, number, i, 1, &i);
    }
    oct_results_write(f, time, w->info->time_ns);
    oct_register_write_paths(f, "/frames/files", n, w->info->pictures);
}

static enum oct_err write_shifts(struct writer *w, struct oct_error *err)
{
    struct oct_sequence *q = w->q;
    uint32_t height = q->setup.height;
    const uint64_t dims[3] = {w->info->n_frames, height, 2};
    unsigned shifts = oct_results_dataset(w->results, "/shifts", OCT_RESULTS_F32, 3, dims, "px");
    float(*lines)[2] = calloc(height, sizeof(*lines));
    if (!lines)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for shifts");
    for (uint64_t i = 0; i < w->info->n_frames; i++) {
        bool is_used = oct_sequence_lines(q, i, w->dy, w->dx);
        for (uint32_t y = 0; y < height; y++) {
            lines[y][0] = is_used ? (float)w->dy[y] : NAN;
            lines[y][1] = is_used ? (float)w->dx[y] : NAN;
        }
        oct_results_write_rows(w->results, shifts, i, 1, lines);
    }
    for (uint32_t y = 0; y < height && q->motion_y; y++) {
        lines[y][0] = (float)q->motion_y[y];
        lines[y][1] = (float)q->motion_x[y];
    }
    if (q->motion_y)
        oct_results_write(w->results,
                          oct_results_dataset(w->results, "/reference_motion", OCT_RESULTS_F32, 2,
                                              dims + 1, "px"),
                          lines);
    free(lines);
    return OCT_OK;
}

static enum oct_err write_strips(struct writer *w, struct oct_error *err)
{
    const struct oct_sequence *q = w->q;
    const uint64_t dims[3] = {w->info->n_frames, q->n_strips, 2};
    struct oct_results *f = w->results;
    unsigned shift = oct_results_dataset(f, "/strips/shift", OCT_RESULTS_F32, 3, dims, "px");
    unsigned score = oct_results_dataset(f, "/strips/score", OCT_RESULTS_F32, 2, dims, NULL);
    unsigned ok = oct_results_dataset(f, "/strips/ok", OCT_RESULTS_U8, 2, dims, NULL);
    oct_results_count(f, "/strips", "lines", q->rows);
    oct_results_count(f, "/strips", "step", q->step);
    oct_results_count(f, "/strips", "first_line", q->first_row);
    float *row = calloc((size_t)q->n_strips * 3, sizeof(float));
    uint8_t *good = calloc(q->n_strips, 1);
    for (uint64_t i = 0; i < w->info->n_frames && row && good; i++) {
        const struct oct_strip *strips = q->strips + i * q->n_strips;
        for (uint32_t k = 0; k < q->n_strips; k++) {
            row[2 * k] = strips[k].dy;
            row[2 * k + 1] = strips[k].dx;
            row[2 * q->n_strips + k] = strips[k].score;
            good[k] = strips[k].ok;
        }
        oct_results_write_rows(f, shift, i, 1, row);
        oct_results_write_rows(f, score, i, 1, row + 2 * (size_t)q->n_strips);
        oct_results_write_rows(f, ok, i, 1, good);
    }
    enum oct_err e = row && good ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    free(row);
    free(good);
    return e;
}

static const char *const picture_axes[3] = {"frame", "row", "column"};

static enum oct_err take_moved(void *context, uint64_t frame, const float *pixels,
                               struct oct_error *err)
{
    struct writer *w = context;
    if (w->stack == UINT32_MAX) {
        const uint64_t dims[3] = {w->info->n_frames, w->q->render.height, w->q->render.width};
        const double um[3] = {NAN, w->info->um[0], w->info->um[1]};
        w->stack = oct_results_dataset(w->results, "/registered", OCT_RESULTS_F32, 3, dims,
                                       w->info->is_db ? "dB" : NULL);
        oct_results_axes(w->results, w->stack, picture_axes, um);
    }
    oct_results_write_rows(w->results, w->stack, frame, 1, pixels);
    return oct_results_error(w->results, err);
}

static enum oct_err make_average(struct writer *w, struct oct_error *err)
{
    struct oct_sequence *q = w->q;
    enum oct_err e =
        oct_sequence_render(q, w->r->options.stack && w->results ? take_moved : NULL, w, err);
    if (e)
        return e;
    size_t n = (size_t)q->render.height * q->render.width;
    w->average = calloc(n, sizeof(float));
    w->weight = calloc(n, sizeof(float));
    if (!w->average || !w->weight)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the average");
    oct_render_average(&q->render, w->average, w->weight);
    return OCT_OK;
}

static void write_average(struct writer *w)
{
    const struct oct_render *r = &w->q->render;
    const uint64_t dims[2] = {r->height, r->width};
    const double origin[2] = {r->origin_y, r->origin_x};
    const char *unit = w->info->is_db ? "dB" : NULL;
    unsigned average = oct_results_dataset(w->results, "/average", OCT_RESULTS_F32, 2, dims, unit);
    unsigned weight = oct_results_dataset(w->results, "/weight", OCT_RESULTS_F32, 2, dims, NULL);
    oct_results_numbers(w->results, "/average", "origin_px", origin, 2);
    oct_results_axes(w->results, average, picture_axes + 1, w->info->um);
    oct_results_axes(w->results, weight, picture_axes + 1, w->info->um);
    oct_results_write(w->results, average, w->average);
    oct_results_write(w->results, weight, w->weight);
}

static enum oct_err write_results(struct writer *w, struct oct_error *err)
{
    const struct oct_register *r = w->r;
    enum oct_err e = OCT_OK;
    bool averages = !r->options.shifts_only;
    if (r->out)
        e = oct_results_create(&w->results, r->out, "frames", r->options.force, err);
    if (!e && averages)
        e = make_average(w, err);
    if (e || !w->results)
        return e;
    write_attributes(w);
    write_frames(w);
    if (averages)
        write_average(w);
    e = write_shifts(w, err);
    return e ? e : write_strips(w, err);
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

static void write_csv_frame(const struct writer *w, struct oct_csv *csv, uint64_t frame,
                            uint32_t n_lines, bool is_used)
{
    const struct oct_register_frames_info *info = w->info;
    const double seconds =
        oct_register_seconds(info->time_ns, info->is_read, info->n_frames, frame);
    const double *um = w->info->um;
    for (uint32_t y = 0; y < n_lines; y++) {
        double dy = is_used ? w->dy[y] : NAN, dx = is_used ? w->dx[y] : NAN;
        oct_csv_count(csv, frame);
        oct_csv_count(csv, y);
        oct_csv_number(csv, seconds);
        oct_csv_number(csv, dy);
        oct_csv_number(csv, dx);
        oct_csv_number(csv, dy * um[0]);
        oct_csv_number(csv, dx * um[1]);
        oct_csv_number(csv, n_lines > 1 ? score_of_line(w->q, frame, y)
                                        : (double)w->q->frames[frame].score);
        oct_csv_text(csv, oct_pictures_path(info->pictures, frame));
        oct_csv_end_row(csv);
    }
}

static enum oct_err write_csv(void *context, const char *path, bool force, struct oct_error *err)
{
    struct writer *w = context;
    struct oct_csv *csv;
    enum oct_sequence_model model = w->q->setup.model;
    bool by_lines = model == OCT_SEQUENCE_STRIPS || model == OCT_SEQUENCE_GIVEN;
    enum oct_err e = oct_csv_create(&csv, path, force,
                                    "frame,line,time_s,dy_px,dx_px,dy_um,dx_um,score,file", err);
    if (e)
        return e;
    for (uint64_t i = 0; i < w->info->n_frames; i++) {
        bool is_used = oct_sequence_lines(w->q, i, w->dy, w->dx);
        write_csv_frame(w, csv, i, by_lines && is_used ? w->q->setup.height : 1, is_used);
    }
    return oct_csv_publish(csv, err);
}

/* ---- PNG ---- */

static enum oct_err plot_motion(void *context, const char *path, bool force, struct oct_error *err)
{
    struct writer *w = context;
    const uint32_t height = w->q->setup.height;
    /* Enough points to see a saccade, few enough to draw. */
    uint32_t every = height > 64 ? height / 64 : 1, n_lines = (height + every - 1) / every;
    size_t n = (size_t)w->info->n_frames * n_lines, at = 0;
    double *all = calloc(n * 3 + 1, sizeof(double));
    if (!all)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a plot");
    for (uint64_t i = 0; i < w->info->n_frames; i++) {
        bool is_used = oct_sequence_lines(w->q, i, w->dy, w->dx);
        for (uint32_t y = 0; y < height; y += every, at++) {
            all[at] = (double)i + (double)y / height;
            all[n + at] = is_used ? w->dy[y] : NAN;
            all[2 * n + at] = is_used ? w->dx[y] : NAN;
        }
    }
    const struct oct_plot_series series[2] = {
        {.x = all, .y = all + n, .n = n, .label = "dy"},
        {.x = all, .y = all + 2 * n, .n = n, .label = "dx"},
    };
    const struct oct_plot_lines plot = {.title = "Motion",
                                        .x_label = "frame",
                                        .y_label = "shift (px)",
                                        .series = series,
                                        .n_series = 2};
    enum oct_err e = oct_plot_write_lines(path, force, &plot, err);
    free(all);
    return e;
}

static enum oct_err plot_average(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct writer *w = context;
    char footer[80];
    snprintf(footer, sizeof(footer), "average of %llu frames", (unsigned long long)w->q->n_used);
    const struct oct_plot_picture plot = {
        .footer = footer,
        .pixels = w->average,
        .height = w->q->render.height,
        .width = w->q->render.width,
        .um_dx = w->info->um[1],
    };
    return oct_plot_write_picture(path, force, &plot, err);
}

/* ---- the summary ---- */

/* NULL: used. */
static const char *why_left_out(const void *sequence, uint64_t frame)
{
    const struct oct_sequence *q = sequence;
    const enum oct_frame_fate fate = q->frames[frame].fate;
    return fate == OCT_FRAME_USED ? NULL : oct_frame_fate_text(fate);
}

static enum oct_err print_json(void *context, struct oct_error *err)
{
    const struct writer *w = context;
    const struct oct_sequence *q = w->q;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "frames", (double)w->info->n_frames);
    cJSON_AddNumberToObject(o, "used", (double)q->n_used);
    if (q->reference != UINT64_MAX)
        cJSON_AddNumberToObject(o, "reference", (double)q->reference);
    cJSON_AddNumberToObject(o, "strips_dropped", (double)q->n_strips_dropped);
    oct_command_add_number(o, "score_before", w->before);
    oct_command_add_number(o, "score_after", w->after);
    static const char *const names[] = {"dy_px", "dx_px"};
    for (unsigned i = 0; i < 2; i++) {
        double range[2] = {w->least[i], w->most[i]};
        cJSON_AddItemToObject(o, names[i], cJSON_CreateDoubleArray(range, 2));
    }
    oct_command_add_left_out(o, w->info->n_frames, why_left_out, q);
    cJSON_AddStringToObject(o, "backend", q->running);
    if (w->r->out)
        cJSON_AddStringToObject(o, "out", w->r->out);
    bool printed = oct_command_print_json(o);
    cJSON_Delete(o);
    return printed ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

static void print_summary(void *context)
{
    const struct writer *w = context;
    const struct oct_sequence *q = w->q;
    printf("%s%s%llu of %llu frames used", w->r->out ? w->r->out : "", w->r->out ? ": " : "",
           (unsigned long long)q->n_used, (unsigned long long)w->info->n_frames);
    if (q->n_strips > 1 && q->setup.model == OCT_SEQUENCE_STRIPS)
        printf(", %llu of %llu strips dropped", (unsigned long long)q->n_strips_dropped,
               (unsigned long long)q->n_used * q->n_strips);
    if (isfinite(w->after) && isfinite(w->before))
        printf(", median score %.3f (%.3f before)", oct_command_shown(w->after, 3),
               oct_command_shown(w->before, 3));
    printf(", dy %.2f to %.2f px, dx %.2f to %.2f px", oct_command_shown(w->least[0], 2),
           oct_command_shown(w->most[0], 2), oct_command_shown(w->least[1], 2),
           oct_command_shown(w->most[1], 2));
    if (q->reference != UINT64_MAX)
        printf(", reference %llu", (unsigned long long)q->reference);
    oct_command_print_left_out(w->info->n_frames, why_left_out, q);
    printf("\n");
}

enum oct_err oct_register_write(const struct oct_register *r, struct oct_sequence *sequence,
                                const struct oct_register_frames_info *info, struct oct_error *err)
{
    struct writer w = {.r = r, .q = sequence, .info = info, .stack = UINT32_MAX};
    w.dy = calloc(sequence->setup.height, sizeof(double));
    w.dx = calloc(sequence->setup.height, sizeof(double));
    if (!w.dy || !w.dx) {
        free(w.dy);
        free(w.dx);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for shifts");
    }
    enum oct_err e = look_over(&w, err);
    if (!e)
        e = write_results(&w, err);
    const struct oct_register_writers writers = {
        write_csv, w.average ? plot_average : NULL, plot_motion, print_json, print_summary, &w};
    if (!e)
        e = oct_register_publish(r, &w.results, &writers, err);
    oct_results_discard(w.results);
    free(w.average);
    free(w.weight);
    free(w.dy);
    free(w.dx);
    return e;
}
