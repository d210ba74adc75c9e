#include "analysis/cells/film.h"

#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 16u         /* of a piece of resampling */
#define MOST_RATIO 8.0   /* of the spacings of a picture */
#define EQUAL_RATIO 1.02 /* of spacings that count as equal */

/* ---- square pixels ---- */

/* Pixels at multiples of `step` (1 or less) up to the last of n. The smallest part of a step may be
 * lost by rounding. */
static uint32_t count_of(uint32_t n, double step)
{
    return (uint32_t)floor((n - 1) / step + 1e-9) + 1;
}

void oct_cells_resample_plan(struct oct_cells_resample *plan, uint32_t x0, uint32_t y0,
                             uint32_t height, uint32_t width, const double um[2])
{
    const double ratio = um[0] / um[1]; /* above 1: rows lie farther apart than columns */
    *plan = (struct oct_cells_resample){.x0 = x0,
                                        .y0 = y0,
                                        .from_height = height,
                                        .from_width = width,
                                        .dy = ratio > EQUAL_RATIO ? 1 / ratio : 1,
                                        .dx = ratio < 1 / EQUAL_RATIO ? ratio : 1};
    plan->height = count_of(height, plan->dy);
    plan->width = count_of(width, plan->dx);
}

bool oct_cells_resample_is_identity(const struct oct_cells_resample *plan, uint32_t height,
                                    uint32_t width)
{
    return plan->height == height && plan->width == width && plan->from_height == height &&
           plan->from_width == width && plan->x0 == 0 && plan->y0 == 0;
}

/* Where a pixel lies: between a pixel and the next one, `step` elements on, with the next one's
 * weight. */
struct between {
    size_t first, step;
    float weight;
};

static struct between find_between(double at, uint32_t n, size_t stride)
{
    const uint32_t first = at < n - 1 ? (uint32_t)at : n - 1;
    const float weight = first + 1 < n ? (float)(at - first) : 0;
    return (struct between){first * stride, weight > 0 ? stride : 0, weight};
}

static float mix(float a, float b, float weight)
{
    return weight > 0 ? a + (b - a) * weight : a;
}

void oct_cells_resample_row(const struct oct_cells_resample *plan, const struct oct_picture *from,
                            struct oct_picture *to, uint32_t y)
{
    const size_t origin = (size_t)plan->y0 * from->width + plan->x0;
    const struct between v = find_between(y * plan->dy, plan->from_height, from->width);
    for (uint32_t x = 0; x < plan->width; x++) {
        const struct between h = find_between(x * plan->dx, plan->from_width, 1);
        const size_t i = origin + v.first + h.first, j = i + v.step;
        const size_t k = (size_t)y * plan->width + x;
        const bool is_valid = !from->valid || (from->valid[i] && from->valid[i + h.step] &&
                                               from->valid[j] && from->valid[j + h.step]);
        to->pixels[k] = 0;
        if (is_valid)
            to->pixels[k] = mix(mix(from->pixels[i], from->pixels[i + h.step], h.weight),
                                mix(from->pixels[j], from->pixels[j + h.step], h.weight), v.weight);
        if (to->valid)
            to->valid[k] = is_valid;
    }
}

/* When a track was last seen. */
struct moment {
    uint64_t track;
    double time_s;
};

struct oct_cells_film {
    struct oct_cells_film_setup setup;
    struct oct_cells_params params; /* px of the searched picture */
    struct oct_cells_resample plan;
    double um; /* of a searched pixel; NaN: unknown */
    bool copies;
    struct oct_picture copy;        /* the searched picture, where it is not the caller's */
    const struct oct_picture *from; /* while it is resampled */

    const struct oct_cells_engine_ops *ops;
    struct oct_cells_engine *engine;
    struct oct_cells_tracker *tracker;
    double highest;
    double start_s; /* of the last picture whose start is known; NaN: none */
    double n_since; /* frames since */

    struct oct_cells_found *found;
    struct moment *moments; /* of tracks alive, in order of number */
    unsigned n_moments;
    size_t n_most; /* room in found and moments */
};

/* ---- setup ---- */

static bool is_known(const double um[2])
{
    return isfinite(um[0]) && isfinite(um[1]);
}

static enum oct_err check_units(const struct oct_cells_film_setup *s, struct oct_error *err)
{
    const double *um = s->um;
    if (!isnan(um[0]) && !isnan(um[1]) && !(um[0] > 0 && um[1] > 0 && is_known(um)))
        return oct_fail(err, OCT_E_ARG, "cells: pixels of %g x %g um: must be above 0", um[1],
                        um[0]);
    if (is_known(um) && fmax(um[0], um[1]) > MOST_RATIO * fmin(um[0], um[1]))
        return oct_fail(err, OCT_E_ARG,
                        "cells: pixels of %g x %g um: one side must be at most %g times the other",
                        um[1], um[0], MOST_RATIO);
    if (!(s->radius_um >= 0) || !(s->max_speed_um_s >= 0) || isinf(s->max_speed_um_s))
        return oct_fail(err, OCT_E_ARG,
                        "cells: a radius of %g um or a speed of %g um/s: must be "
                        "0 or more",
                        s->radius_um, s->max_speed_um_s);
    if ((s->radius_um > 0 || s->max_speed_um_s > 0) && !is_known(um))
        return oct_fail(err, OCT_E_ARG,
                        "cells: %s, and the pixels' size in um is unknown: give it, or %s",
                        s->radius_um > 0 ? "a radius in um" : "a speed in um/s",
                        s->radius_um > 0 ? "the radius in px" : "no speed");
    return OCT_OK;
}

static enum oct_err check_roi(const struct oct_cells_film_setup *s, struct oct_error *err)
{
    const struct oct_region *roi = &s->roi;
    if (roi->width == 0 && roi->height == 0 && roi->x == 0 && roi->y == 0)
        return OCT_OK;
    if (roi->width == 0 || roi->height == 0 || roi->x >= s->width || roi->y >= s->height ||
        roi->width > s->width - roi->x || roi->height > s->height - roi->y)
        return oct_fail(err, OCT_E_ARG,
                        "cells: the region of interest %u,%u,%u,%u does not lie within the picture "
                        "of %u x %u px",
                        roi->x, roi->y, roi->width, roi->height, s->width, s->height);
    return OCT_OK;
}

static enum oct_err plan_film(struct oct_cells_film *f, struct oct_error *err)
{
    const struct oct_cells_film_setup *s = &f->setup;
    enum oct_err e = check_units(s, err);
    if (!e)
        e = check_roi(s, err);
    if (e)
        return e;
    const bool has_roi = s->roi.width > 0;
    oct_cells_resample_plan(&f->plan, s->roi.x, s->roi.y, has_roi ? s->roi.height : s->height,
                            has_roi ? s->roi.width : s->width, s->um);
    f->um = is_known(s->um) ? fmin(s->um[0], s->um[1]) : NAN;
    f->params = s->params;
    if (s->radius_um > 0)
        f->params.radius = s->radius_um / f->um;
    f->copies = !oct_cells_resample_is_identity(&f->plan, s->height, s->width);
    return oct_cells_params_check(&f->params, f->plan.height, f->plan.width, err);
}

static enum oct_err open_engine(struct oct_cells_film *f, struct oct_error *err)
{
    const struct oct_cells_engine_setup setup = {.height = f->plan.height,
                                                 .width = f->plan.width,
                                                 .params = f->params,
                                                 .keeps_fields = f->setup.keeps_fields,
                                                 .workers = f->setup.workers,
                                                 .gpus = f->setup.gpus,
                                                 .deadline_ms = f->setup.deadline_ms};
    return oct_cells_engine_select(&f->ops, &f->engine, f->setup.backend, &setup, err);
}

static enum oct_err open_tracker(struct oct_cells_film *f, struct oct_error *err)
{
    const struct oct_cells_tracker_setup setup = {.height = f->plan.height,
                                                  .width = f->plan.width,
                                                  .params = f->params,
                                                  .detect_only = f->setup.detect_only,
                                                  .ops = f->ops,
                                                  .engine = f->engine};
    return oct_cells_tracker_create(&f->tracker, &setup, err);
}

enum oct_err oct_cells_film_check(const struct oct_cells_film_setup *setup, struct oct_error *err)
{
    struct oct_cells_film f = {.setup = *setup};
    return plan_film(&f, err);
}

enum oct_err oct_cells_film_create(struct oct_cells_film **film,
                                   const struct oct_cells_film_setup *setup, struct oct_error *err)
{
    struct oct_cells_film *f = calloc(1, sizeof *f);
    *film = NULL;
    if (!f)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a film of cells");
    f->setup = *setup;
    f->start_s = NAN;
    enum oct_err e = plan_film(f, err);
    if (!e)
        e = open_engine(f, err);
    if (!e)
        e = open_tracker(f, err);
    if (e)
        oct_cells_film_destroy(f);
    else
        *film = f;
    return e;
}

void oct_cells_film_destroy(struct oct_cells_film *f)
{
    if (!f)
        return;
    oct_cells_tracker_destroy(f->tracker);
    if (f->engine)
        f->ops->destroy(f->engine);
    oct_picture_finish(&f->copy);
    free(f->found);
    free(f->moments);
    free(f);
}

/* ---- the searched picture ---- */

static void resample_rows(void *context, unsigned piece, unsigned worker)
{
    struct oct_cells_film *f = context;
    (void)worker;
    for (uint32_t y = piece * ROWS; y < (piece + 1) * ROWS && y < f->plan.height; y++) {
        oct_cells_resample_row(&f->plan, f->from, &f->copy, y);
    }
}

/* *searched: the picture itself, or the part of it that is searched, with square pixels. */
static enum oct_err prepare(struct oct_cells_film *f, const struct oct_picture *picture,
                            const struct oct_picture **searched, struct oct_error *err)
{
    *searched = picture;
    if (picture->height != f->setup.height || picture->width != f->setup.width)
        return oct_fail(err, OCT_E_ARG, "cells: a picture of %u x %u px in a film of %u x %u px",
                        picture->width, picture->height, f->setup.width, f->setup.height);
    if (!f->copies)
        return OCT_OK;
    const bool is_masked = picture->valid != NULL;
    if (!f->copy.pixels || is_masked != (f->copy.valid != NULL)) {
        oct_picture_finish(&f->copy);
        const enum oct_err e =
            oct_picture_init(&f->copy, f->plan.height, f->plan.width, is_masked, err);
        if (e)
            return e;
    }
    f->from = picture;
    oct_workers_run(f->setup.workers, (f->plan.height + ROWS - 1) / ROWS, resample_rows, f);
    f->from = NULL;
    *searched = &f->copy;
    return OCT_OK;
}

/* ---- times and steps ---- */

static double time_of(const struct oct_cells_film *f, const struct oct_cells_times *times,
                      double x_px, double y_px)
{
    if (!times || !times->time_s)
        return times ? times->start_s : NAN;
    const uint32_t n = times->of_columns ? f->setup.width : f->setup.height;
    const double at = fmin(fmax(times->of_columns ? x_px : y_px, 0), n - 1);
    const uint32_t first = (uint32_t)at;
    const double a = times->time_s[first], weight = at - first;
    return weight > 0 ? a + (times->time_s[first + 1] - a) * weight : a;
}

/* The longest step in px a frame, by the time that a frame takes. */
static void set_max_step(struct oct_cells_film *f, const struct oct_cells_times *times,
                         unsigned skipped)
{
    const double start_s = times ? times->start_s : NAN;
    f->n_since += 1 + (double)skipped;
    const double frame_s = (start_s - f->start_s) / f->n_since;
    if (f->setup.max_speed_um_s > 0)
        oct_cells_tracker_set_max_step(f->tracker, frame_s > 0
                                                       ? f->setup.max_speed_um_s * frame_s / f->um
                                                       : f->params.max_step);
    if (!isnan(start_s)) {
        f->start_s = start_s;
        f->n_since = 0;
    }
}

/* ---- what was found ---- */

/* Moments are in order of track number, and so are cells: each is sought from the one before, and
 * those that are read already are overwritten. */
static double last_time_of(const struct oct_cells_film *f, uint64_t track, unsigned *from)
{
    while (*from < f->n_moments && f->moments[*from].track < track)
        ++*from;
    const bool is_found = *from < f->n_moments && f->moments[*from].track == track;
    return is_found ? f->moments[*from].time_s : NAN;
}

static double speed_of(const struct oct_cells_film *f, const struct oct_cells_seen *seen,
                       double seconds)
{
    const double dx_um = (seen->x - seen->last_x) * f->plan.dx * f->setup.um[1];
    const double dy_um = (seen->y - seen->last_y) * f->plan.dy * f->setup.um[0];
    return seen->before > 0 && seconds > 0 ? hypot(dx_um, dy_um) / seconds : NAN;
}

static void convert(struct oct_cells_film *f, const struct oct_cells_times *times,
                    const struct oct_cells_seen *seen, unsigned n)
{
    unsigned from = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct oct_cells_seen *s = &seen[i];
        const double x = f->plan.x0 + s->x * f->plan.dx, y = f->plan.y0 + s->y * f->plan.dy;
        const double time_s = time_of(f, times, x, y), last_s = last_time_of(f, s->track, &from);
        f->found[i] =
            (struct oct_cells_found){.track = s->track,
                                     .n_seen = s->n_seen,
                                     .time_s = time_s,
                                     .x_px = x,
                                     .y_px = y,
                                     .x_um = is_known(f->setup.um) ? x * f->setup.um[1] : NAN,
                                     .y_um = is_known(f->setup.um) ? y * f->setup.um[0] : NAN,
                                     .radius_px = s->radius,
                                     .radius_um = s->radius * f->um,
                                     .score = (double)s->score,
                                     .speed_um_s = speed_of(f, s, time_s - last_s),
                                     .how = s->how};
        const bool is_seen = s->how != OCT_CELLS_COASTED;
        f->moments[i] = (struct moment){s->track, is_seen ? time_s : last_s};
    }
    f->n_moments = f->setup.detect_only ? 0 : n;
}

static enum oct_err make_room(struct oct_cells_film *f, unsigned n_seen, struct oct_error *err)
{
    const size_t n = n_seen + n_seen / 2 + 16;
    if (n_seen <= f->n_most)
        return OCT_OK;
    struct oct_cells_found *found = realloc(f->found, n * sizeof *found);
    f->found = found ? found : f->found;
    struct moment *moments = realloc(f->moments, n * sizeof *moments);
    f->moments = moments ? moments : f->moments;
    if (!found || !moments)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu cells", n);
    f->n_most = n;
    return OCT_OK;
}

enum oct_err oct_cells_film_push(struct oct_cells_film *f, const struct oct_picture *picture,
                                 const struct oct_cells_times *times, unsigned skipped,
                                 const struct oct_cells_found **found, unsigned *n,
                                 struct oct_error *err)
{
    const struct oct_cells_seen *seen;
    const struct oct_picture *searched;
    unsigned n_seen = 0;
    *found = NULL;
    *n = 0;
    enum oct_err e = prepare(f, picture, &searched, err);
    if (e)
        return e;
    set_max_step(f, times, skipped);
    e = oct_cells_tracker_push(f->tracker, searched, skipped, &seen, &n_seen, err);
    if (e)
        return e;
    e = make_room(f, n_seen, err);
    if (e) {
        f->n_moments = 0; /* the tracks have gone on: their last times are not known */
        return e;
    }
    if (oct_cells_tracker_detected(f->tracker))
        f->highest = fmax(f->highest, f->ops->highest(f->engine));
    convert(f, times, seen, n_seen);
    *found = f->found;
    *n = n_seen;
    return OCT_OK;
}

void oct_cells_film_reset(struct oct_cells_film *f)
{
    oct_cells_tracker_reset(f->tracker);
    f->n_moments = 0;
    f->start_s = NAN;
    f->n_since = 0;
    f->highest = 0;
}

/* ---- questions ---- */

double oct_cells_film_highest(const struct oct_cells_film *f)
{
    return f->highest;
}

void oct_cells_film_grid(const struct oct_cells_film *f, struct oct_cells_grid *grid)
{
    *grid = (struct oct_cells_grid){.height = f->plan.height,
                                    .width = f->plan.width,
                                    .x0 = f->plan.x0,
                                    .y0 = f->plan.y0,
                                    .dx = f->plan.dx,
                                    .dy = f->plan.dy,
                                    .um = f->um};
}

const struct oct_cells_params *oct_cells_film_params(const struct oct_cells_film *f)
{
    return &f->params;
}

enum oct_err oct_cells_film_map(struct oct_cells_film *f, float *score, uint8_t *best,
                                bool *searched, struct oct_error *err)
{
    *searched = oct_cells_tracker_detected(f->tracker);
    return *searched ? f->ops->map(f->engine, score, best, err) : OCT_OK;
}

unsigned oct_cells_film_n_fields(const struct oct_cells_film *f)
{
    unsigned n;
    oct_cells_tracker_followed(f->tracker, &n);
    return n;
}

enum oct_err oct_cells_film_field(struct oct_cells_film *f, unsigned i, uint64_t *track,
                                  struct oct_cell_window *window, uint32_t *iterations,
                                  float *field, struct oct_error *err)
{
    unsigned n;
    const uint64_t *followed = oct_cells_tracker_followed(f->tracker, &n);
    if (i >= n)
        return oct_fail(err, OCT_E_ARG, "cells: field %u of %u", i, n);
    *track = followed[i];
    *iterations = oct_cells_tracker_ends(f->tracker)[i].n_field;
    return f->ops->field(f->engine, i, window, field, err);
}

const char *oct_cells_film_running(const struct oct_cells_film *f)
{
    return f->ops->running ? f->ops->running(f->engine) : f->ops->name;
}
