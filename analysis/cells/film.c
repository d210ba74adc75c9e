#include "analysis/cells/cells.h"
#include "analysis/cells/track.h"
#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 16u         /* of a piece of resampling */
#define MOST_RATIO 8.0   /* of the spacings of a picture */
#define EQUAL_RATIO 1.02 /* of spacings that count as equal */
#define MOST_YS 10u      /* Ey of follow.h */
/* [R] Of cells that are nearer than that, one is seen at most, or each at a wrong place. */
#define MERGED 1.5
/* [R] a frame: tracks that separate by less do not pass each other. */
#define PASSING 0.1
/* A cell that is followed is paler than one that is found. */
#define SHARE_OF_THRESHOLD 0.7

const char *const oct_cells_how_names[OCT_CELLS_N_HOWS + 1] = {"detected", "snake", "coasted"};

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
        const float *p = from->pixels;
        const bool is_valid =
            oct_picture_is_valid(from, i) && oct_picture_is_valid(from, i + h.step) &&
            oct_picture_is_valid(from, j) && oct_picture_is_valid(from, j + h.step);
        to->pixels[k] = is_valid ? mix(mix(p[i], p[i + h.step], h.weight),
                                       mix(p[j], p[j + h.step], h.weight), v.weight)
                                 : 0;
        if (to->valid)
            to->valid[k] = is_valid;
    }
}

/* ---- life ---- */

/* One track: what is known of its cell's motion. */
struct track {
    struct oct_cells_found seen;   /* px: now, seen or coasted */
    uint32_t misses, left_out;     /* since it was detected */
    uint32_t frames;               /* since it was last seen, */
    double seen_x, seen_y, seen_s; /* there and then */
    bool has_velocity, is_dark;
    double vx, vy;                   /* px a frame */
    double radii[OCT_CELLS_SNAXELS]; /* the next snake starts with */

    /* Without predicts: where it starts, and the y of the last snakes, newest at n_ys - 1. */
    double snake_x, snake_y;
    double ys[MOST_YS];
    unsigned n_ys;

    /* Of the picture that is being looked at. */
    double predicted_x, predicted_y, gate;
    bool has_left;
    bool is_merged;    /* its detected cell is another track's as well */
    bool is_hidden;    /* it has none, as it passes that other one */
    int32_t pair, end; /* its detected cell, its snake among the ends; -1: none */
};

/* A picture's steps up to the last that can fail only fill what belongs to the picture; then the
 * tracks take it over. So a picture that failed leaves the tracks as they were. */
struct oct_cells_film {
    struct oct_cells_film_setup setup;
    struct oct_cells_params params; /* px of the searched picture */
    struct oct_cells_resample plan;
    double um;       /* of a searched pixel; NaN: unknown */
    double max_step; /* px a frame; 0: 2 R */
    bool copies;
    struct oct_picture copy;        /* the searched picture, where it is not the caller's */
    const struct oct_picture *from; /* while it is resampled */

    const struct oct_cells_engine_ops *ops;
    struct oct_cells_engine *engine;
    double highest;
    double start_s; /* of the last picture whose start is known; NaN: none */
    double n_since; /* frames since */

    uint64_t n_born;
    uint32_t since_search; /* frames; 0: none was searched yet */
    uint32_t left_out;     /* pictures since the last that was taken over */

    struct track *tracks; /* alive, in order of number */
    unsigned n_tracks;
    size_t room; /* of tracks, starts, ends, links, pair, followed and seen */
    struct oct_cells_found *seen;

    /* Of the newest picture. */
    bool is_searched;
    uint32_t frames; /* since the picture before; of the first: 1 */
    struct oct_cell *cells;
    unsigned n_cells;
    struct oct_cell_start *starts;
    struct oct_cell_end *ends;
    uint64_t *followed; /* tracks of the starts */
    unsigned n_followed;
    struct oct_link_track *links;
    int32_t *pair;
    bool *is_paired; /* [OCT_CELLS_MOST] cells */
    struct oct_crowd crowd;
    const struct oct_cells_times *times;
};

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

static enum oct_err plan_film(struct oct_cells_film *f, struct oct_error *err)
{
    const struct oct_cells_film_setup *s = &f->setup;
    const struct oct_region none = {0, 0, s->width, s->height};
    const bool has_roi = s->roi.width || s->roi.height || s->roi.x || s->roi.y;
    const struct oct_region *roi = has_roi ? &s->roi : &none;
    const enum oct_err e = check_units(s, err);
    if (e)
        return e;
    if (has_roi &&
        (roi->width == 0 || roi->height == 0 || roi->x >= s->width || roi->y >= s->height ||
         roi->width > s->width - roi->x || roi->height > s->height - roi->y))
        return oct_fail(err, OCT_E_ARG,
                        "cells: the region of interest %u,%u,%u,%u does not lie within the picture "
                        "of %u x %u px",
                        roi->x, roi->y, roi->width, roi->height, s->width, s->height);
    oct_cells_resample_plan(&f->plan, roi->x, roi->y, roi->height, roi->width, s->um);
    f->um = is_known(s->um) ? fmin(s->um[0], s->um[1]) : NAN;
    f->params = s->params;
    if (s->radius_um > 0)
        f->params.radius = s->radius_um / f->um;
    f->copies = !oct_cells_resample_is_identity(&f->plan, s->height, s->width);
    return oct_cells_params_check(&f->params, f->plan.height, f->plan.width, err);
}

enum oct_err oct_cells_film_check(const struct oct_cells_film_setup *setup, struct oct_error *err)
{
    struct oct_cells_film f = {.setup = *setup};
    return plan_film(&f, err);
}

static enum oct_err open_film(struct oct_cells_film *f, struct oct_error *err)
{
    const enum oct_err e = plan_film(f, err);
    if (e)
        return e;
    const struct oct_cells_film_setup *s = &f->setup;
    const struct oct_cells_engine_setup setup = {.height = f->plan.height,
                                                 .width = f->plan.width,
                                                 .params = f->params,
                                                 .keeps_fields = s->keeps_fields,
                                                 .workers = s->workers,
                                                 .gpus = s->gpus,
                                                 .deadline_ms = s->deadline_ms};
    f->max_step = f->params.max_step;
    f->cells = malloc(OCT_CELLS_MOST * sizeof *f->cells);
    f->is_paired = malloc(OCT_CELLS_MOST * sizeof *f->is_paired);
    if (!f->cells || !f->is_paired)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a film of cells");
    f->ops = s->ops;
    f->engine = s->engine;
    return f->ops ? OCT_OK : oct_cells_engine_select(&f->ops, &f->engine, s->backend, &setup, err);
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
    const enum oct_err e = open_film(f, err);
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
    if (f->engine && !f->setup.ops)
        f->ops->destroy(f->engine);
    oct_picture_finish(&f->copy);
    oct_crowd_finish(&f->crowd);
    free(f->tracks);
    free(f->seen);
    free(f->cells);
    free(f->starts);
    free(f->ends);
    free(f->followed);
    free(f->links);
    free(f->pair);
    free(f->is_paired);
    free(f);
}

/* ---- a picture ---- */

static void resample_rows(void *context, unsigned piece, unsigned worker)
{
    struct oct_cells_film *f = context;
    (void)worker;
    for (uint32_t y = piece * ROWS; y < (piece + 1) * ROWS && y < f->plan.height; y++)
        oct_cells_resample_row(&f->plan, f->from, &f->copy, y);
}

/* *searched: the picture itself, or the part of it that is searched, with square pixels. */
static enum oct_err take_picture(struct oct_cells_film *f, const struct oct_picture *picture,
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
    *searched = &f->copy;
    return OCT_OK;
}

/* The longest step in px a frame, by the time that a frame takes. */
static void set_max_step(struct oct_cells_film *f, double start_s, unsigned skipped)
{
    f->n_since += 1 + (double)skipped;
    const double frame_s = (start_s - f->start_s) / f->n_since;
    f->max_step = f->setup.max_speed_um_s > 0 && frame_s > 0
                      ? f->setup.max_speed_um_s * frame_s / f->um
                      : f->params.max_step;
    if (!isnan(start_s)) {
        f->start_s = start_s;
        f->n_since = 0;
    }
}

/* x, y: of the searched picture. */
static double time_of(const struct oct_cells_film *f, double x, double y)
{
    const struct oct_cells_times *times = f->times;
    if (!times || !times->time_s)
        return times ? times->start_s : NAN;
    const uint32_t n = times->of_columns ? f->setup.width : f->setup.height;
    const double px = times->of_columns ? f->plan.x0 + x * f->plan.dx : f->plan.y0 + y * f->plan.dy;
    const double at = fmin(fmax(px, 0), n - 1);
    const uint32_t first = (uint32_t)at;
    const double a = times->time_s[first], weight = at - first;
    return weight > 0 ? a + (times->time_s[first + 1] - a) * weight : a;
}

/* ---- steps 1 and 2: predictions, pairs ---- */

/* Where the cell will be, and how far from there it is looked for. A gate wider than the picture
 * pairs no more, and of a far wider one the shares that distances are of it would be lost to
 * rounding. */
static void predict(const struct oct_cells_film *f, struct track *track)
{
    const struct oct_cells_params *params = &f->params;
    const double border = oct_cells_border(params);
    const double step = f->max_step > 0 ? f->max_step : 2 * params->radius;
    track->predicted_x = track->seen.x_px + track->vx * f->frames;
    track->predicted_y = track->seen.y_px + track->vy * f->frames;
    track->gate = track->has_velocity
                      ? params->radius * sqrt(track->misses + track->left_out + (double)f->frames)
                      : step * f->frames;
    track->gate = fmin(track->gate, hypot(f->plan.width, f->plan.height));
    const double px = floor(track->predicted_x + 0.5), py = floor(track->predicted_y + 0.5);
    const bool is_searchable =
        px >= border && px < f->plan.width - border && py >= border && py < f->plan.height - border;
    track->has_left = params->predicts && !is_searchable;
    track->is_merged = track->is_hidden = false;
    track->pair = track->end = -1;
}

/* `seen` has a cell, `missing` has none, and the cell may be both of them. */
static void merge(const struct oct_cells_film *f, struct track *seen, struct track *missing)
{
    const double radius = f->params.radius;
    const struct oct_cell *cell = &f->cells[seen->pair];
    const double own = hypot(cell->x - seen->predicted_x, cell->y - seen->predicted_y);
    const double other = hypot(cell->x - missing->predicted_x, cell->y - missing->predicted_y);
    const double apart =
        hypot(seen->predicted_x - missing->predicted_x, seen->predicted_y - missing->predicted_y);
    if (other >= MERGED * radius || own >= apart)
        return;
    seen->is_merged = true;
    if (hypot(seen->vx - missing->vx, seen->vy - missing->vy) > PASSING * radius)
        missing->is_hidden = true;
}

static void find_merged(struct oct_cells_film *f)
{
    for (unsigned i = 0; i < f->n_tracks && f->n_cells > 0; i++) {
        struct track *missing = &f->tracks[i];
        if (missing->has_left || missing->pair >= 0 || !missing->has_velocity)
            continue;
        for (unsigned k = 0; k < f->n_tracks; k++)
            if (f->tracks[k].pair >= 0 && f->tracks[k].has_velocity)
                merge(f, &f->tracks[k], missing);
    }
}

/* Predicts every track and pairs those that have not left with the picture's cells. Distances count
 * as shares of the gate: else a track that is missing, whose gate is wide, would gain more by a
 * cell than the track that has been seen there all the time. */
static enum oct_err pair_tracks(struct oct_cells_film *f, struct oct_error *err)
{
    unsigned n = 0;
    for (unsigned c = 0; c < f->n_cells; c++)
        f->is_paired[c] = false;
    for (unsigned i = 0; i < f->n_tracks; i++) {
        struct track *track = &f->tracks[i];
        predict(f, track);
        const double share = f->params.radius / track->gate;
        if (!track->has_left)
            f->links[n++] = (struct oct_link_track){track->predicted_x, track->predicted_y,
                                                    track->gate, share * share};
    }
    if (!f->params.predicts)
        return OCT_OK; /* its tracks have no pairs */
    const enum oct_err e = oct_cells_link(f->links, n, f->cells, f->n_cells, f->pair, err);
    if (e)
        return e;
    n = 0;
    for (unsigned i = 0; i < f->n_tracks; i++) {
        if (f->tracks[i].has_left)
            continue;
        const int32_t cell = f->tracks[i].pair = f->pair[n++];
        if (cell >= 0)
            f->is_paired[cell] = true;
    }
    find_merged(f);
    return OCT_OK;
}

/* ---- step 3: snakes ---- */

/* Of cos and sin of whole quarters, 0 is meant by 1e-16: the field asks for the sign. */
static double snapped(double v)
{
    return fabs(v) < 1e-9 ? 0 : v;
}

static struct oct_cell_start start_of(const struct oct_cells_film *f, const struct track *track)
{
    const struct oct_cells_params *params = &f->params;
    struct oct_cell_start start = {.x = track->snake_x, .y = track->snake_y, .vx = 1, .vy = 1};
    start.is_dark =
        params->polarity == OCT_CELLS_BOTH ? track->is_dark : params->polarity == OCT_CELLS_DARK;
    memcpy(start.radii, track->radii, sizeof start.radii);
    if (!params->predicts) {
        double sum = 0;
        for (unsigned i = 0; i < track->n_ys; i++)
            sum += track->ys[i];
        start.mean_dy = sum / track->n_ys - track->snake_y;
        return start;
    }
    const double angle = params->flow_deg * (3.14159265358979323846 / 180);
    start.x = track->predicted_x;
    start.y = track->predicted_y;
    start.vx = !isnan(params->flow_deg) ? snapped(cos(angle)) : (track->vx > 0) - (track->vx < 0);
    start.vy = !isnan(params->flow_deg) ? snapped(sin(angle)) : 0;
    return start;
}

/* Whether a snake counts, given the other cells of the picture. */
static bool counts(const struct oct_cells_film *f, const struct track *track,
                   const struct oct_cell_end *end)
{
    const double dx = end->cell.x - track->predicted_x, dy = end->cell.y - track->predicted_y;
    const double least = SHARE_OF_THRESHOLD * f->params.threshold;
    if (!f->params.predicts || !end->defined)
        return end->defined;
    return !end->left && dx * dx + dy * dy <= track->gate * track->gate &&
           fabs((double)end->cell.score) >= least &&
           !oct_crowd_is_near(&f->crowd, end->cell.x, end->cell.y);
}

/* Snakes of the tracks that need one: fills their ends, -1 where there is none or it does not
 * count. */
static enum oct_err follow_tracks(struct oct_cells_film *f, struct oct_error *err)
{
    for (unsigned i = 0; i < f->n_tracks; i++) {
        struct track *track = &f->tracks[i];
        if (track->pair >= 0 || track->has_left)
            continue;
        track->end = (int32_t)f->n_followed;
        f->starts[f->n_followed] = start_of(f, track);
        f->followed[f->n_followed++] = track->seen.track;
    }
    if (f->n_followed == 0)
        return OCT_OK;
    enum oct_err e = f->ops->follow(f->engine, f->starts, f->n_followed, f->ends, err);
    if (!e)
        e = oct_crowd_reset(&f->crowd, f->params.radius, (size_t)f->n_cells + f->n_tracks, err);
    if (e)
        return e;
    for (unsigned c = 0; c < f->n_cells; c++)
        oct_crowd_add(&f->crowd, f->cells[c].x, f->cells[c].y);
    for (unsigned i = 0; i < f->n_tracks; i++) {
        struct track *track = &f->tracks[i];
        if (track->end < 0)
            continue;
        const struct oct_cell_end *end = &f->ends[track->end];
        if (counts(f, track, end))
            oct_crowd_add(&f->crowd, end->cell.x, end->cell.y);
        else
            track->end = -1;
    }
    return OCT_OK;
}

/* ---- steps 4 and 5: the tracks take over the picture ---- */

static void set_radii(struct track *track, double radius)
{
    for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
        track->radii[i] = radius;
}

/* Where a track is from now on. */
static void place(const struct oct_cells_film *f, struct track *track, double x, double y)
{
    track->seen.x_px = x;
    track->seen.y_px = y;
    track->seen.time_s = time_of(f, x, y);
}

static void see(const struct oct_cells_film *f, struct track *track, const struct oct_cell *cell,
                enum oct_cells_how how)
{
    struct oct_cells_found *seen = &track->seen;
    place(f, track, cell->x, cell->y);
    track->frames = 0;
    track->seen_x = cell->x;
    track->seen_y = cell->y;
    track->seen_s = seen->time_s;
    seen->radius_px = cell->radius;
    seen->score = (double)cell->score;
    seen->how = how;
    seen->n_seen++;
    if (seen->before == 0)
        return;
    const double dx = (cell->x - seen->last_x) / seen->before;
    const double dy = (cell->y - seen->last_y) / seen->before;
    track->vx = track->has_velocity ? (track->vx + dx) / 2 : dx;
    track->vy = track->has_velocity ? (track->vy + dy) / 2 : dy;
    track->has_velocity = true;
}

static void take_detection(const struct oct_cells_film *f, struct track *track,
                           const struct oct_cell *cell)
{
    see(f, track, cell, OCT_CELLS_DETECTED);
    set_radii(track, cell->radius);
    track->is_dark = cell->score > 0;
    track->misses = track->left_out = 0;
}

static void take_snake(const struct oct_cells_film *f, struct track *track,
                       const struct oct_cell_end *end)
{
    see(f, track, &end->cell, OCT_CELLS_SNAKE);
    track->snake_x = end->x;
    track->snake_y = end->y;
    if (track->n_ys == MOST_YS)
        memmove(track->ys, track->ys + 1, --track->n_ys * sizeof *track->ys);
    track->ys[track->n_ys++] = end->y;
    memcpy(track->radii, end->radii, sizeof track->radii);
}

static void coast(const struct oct_cells_film *f, struct track *track)
{
    place(f, track, track->predicted_x, track->predicted_y);
    track->seen.score = NAN;
    track->seen.how = OCT_CELLS_COASTED;
}

/* What the picture said of one track; true: it goes on. */
static bool update(const struct oct_cells_film *f, struct track *track)
{
    const struct oct_cells_params *params = &f->params;
    if (track->has_left || (!params->predicts && track->end < 0))
        return false;
    /* Where the cell was last seen is from now on where it was before. */
    track->frames += f->frames;
    track->seen.before = track->frames;
    track->seen.last_x = track->seen_x;
    track->seen.last_y = track->seen_y;
    track->seen.last_s = track->seen_s;
    if (track->pair >= 0 && !track->is_merged) {
        take_detection(f, track, &f->cells[track->pair]);
        return true;
    }
    track->left_out += f->frames - 1;
    if (track->end >= 0)
        take_snake(f, track, &f->ends[track->end]);
    else
        coast(f, track);
    const bool is_miss = !track->is_merged && (track->end < 0 ? !track->is_hidden : f->is_searched);
    return !(params->predicts && is_miss && ++track->misses > params->memory);
}

static struct track track_from(const struct oct_cells_film *f, const struct oct_cell *cell)
{
    struct track track = {.seen = {.last_s = NAN},
                          .snake_x = cell->x,
                          .snake_y = cell->y,
                          .ys = {cell->y},
                          .n_ys = 1};
    take_detection(f, &track, cell);
    if (!f->params.predicts)
        set_radii(&track, f->params.radius);
    return track;
}

static void begin_tracks(struct oct_cells_film *f)
{
    for (unsigned i = 0; i < f->n_tracks; i++)
        oct_crowd_add(&f->crowd, f->tracks[i].seen.x_px, f->tracks[i].seen.y_px);
    for (unsigned c = 0; c < f->n_cells; c++) {
        const struct oct_cell *cell = &f->cells[c];
        if (f->is_paired[c] || oct_crowd_is_near(&f->crowd, cell->x, cell->y))
            continue;
        f->tracks[f->n_tracks] = track_from(f, cell);
        f->tracks[f->n_tracks++].seen.track = ++f->n_born;
        oct_crowd_add(&f->crowd, cell->x, cell->y);
    }
}

/* Those that ended are left out, and new ones begin. */
static enum oct_err take_over(struct oct_cells_film *f, struct oct_error *err)
{
    const enum oct_err e =
        oct_crowd_reset(&f->crowd, f->params.radius, (size_t)f->n_cells + f->n_tracks, err);
    if (e)
        return e;
    unsigned n = 0;
    for (unsigned i = 0; i < f->n_tracks; i++)
        if (update(f, &f->tracks[i]))
            f->tracks[n++] = f->tracks[i];
    f->n_tracks = n;
    begin_tracks(f);
    for (unsigned i = 0; i < f->n_tracks; i++)
        f->seen[i] = f->tracks[i].seen;
    return OCT_OK;
}

/* ---- a picture ---- */

/* The array with room for n elements; without memory as it was, and *is_whole false. */
static void *grown(void *array, size_t n, size_t size, bool *is_whole)
{
    void *larger = realloc(array, n * size);
    if (larger)
        return larger;
    *is_whole = false;
    return array;
}

/* Room for the tracks and one more for each cell. */
static enum oct_err make_room(struct oct_cells_film *f, struct oct_error *err)
{
    const size_t needed = (size_t)f->n_tracks + f->n_cells, n = needed + needed / 2 + 16;
    bool is_whole = true;
    if (needed <= f->room)
        return OCT_OK;
    f->tracks = grown(f->tracks, n, sizeof *f->tracks, &is_whole);
    f->seen = grown(f->seen, n, sizeof *f->seen, &is_whole);
    f->starts = grown(f->starts, n, sizeof *f->starts, &is_whole);
    f->ends = grown(f->ends, n, sizeof *f->ends, &is_whole);
    f->followed = grown(f->followed, n, sizeof *f->followed, &is_whole);
    f->links = grown(f->links, n, sizeof *f->links, &is_whole);
    f->pair = grown(f->pair, n, sizeof *f->pair, &is_whole);
    if (!is_whole)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu tracks", n);
    f->room = n;
    return OCT_OK;
}

static enum oct_err find_cells(struct oct_cells_film *f, const struct oct_picture *picture,
                               struct oct_error *err)
{
    const unsigned most = f->is_searched ? OCT_CELLS_MOST : 0;
    unsigned n = 0;
    enum oct_err e = f->ops->look(f->engine, picture, f->cells, most, &n, err);
    f->n_cells = n < most ? n : most;
    if (!e)
        e = oct_cells_above_texture(&f->params, picture, &f->crowd, f->cells, &f->n_cells, err);
    return e ? e : make_room(f, err);
}

static enum oct_err track_cells(struct oct_cells_film *f, struct oct_error *err)
{
    if (!f->setup.detect_only) {
        enum oct_err e = pair_tracks(f, err);
        if (!e)
            e = follow_tracks(f, err);
        return e ? e : take_over(f, err);
    }
    for (unsigned c = 0; c < f->n_cells; c++) {
        f->seen[c] = track_from(f, &f->cells[c]).seen;
        f->seen[c].n_seen = 0;
    }
    return OCT_OK;
}

static uint32_t sum_of(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

/* All of a picture that is searched. */
static enum oct_err track_picture(struct oct_cells_film *f, const struct oct_picture *picture,
                                  unsigned skipped, struct oct_error *err)
{
    f->frames = sum_of(sum_of(f->left_out, skipped), 1);
    f->is_searched = f->setup.detect_only || f->since_search == 0 ||
                     sum_of(f->since_search, f->frames) > f->params.detect_every;
    f->n_followed = 0;
    enum oct_err e = find_cells(f, picture, err);
    if (!e)
        e = track_cells(f, err);
    if (e) {
        f->left_out = f->frames;
        return e;
    }
    f->left_out = 0;
    f->since_search = f->is_searched ? 1 : sum_of(f->since_search, f->frames);
    return OCT_OK;
}

/* In place, from the searched picture's pixels. */
static void convert(const struct oct_cells_film *f, struct oct_cells_found *found)
{
    const double *um = f->setup.um, x = found->x_px, y = found->y_px;
    const double dx_um = (x - found->last_x) * f->plan.dx * um[1];
    const double dy_um = (y - found->last_y) * f->plan.dy * um[0];
    const double seconds = found->time_s - found->last_s;
    found->x_px = f->plan.x0 + x * f->plan.dx;
    found->y_px = f->plan.y0 + y * f->plan.dy;
    found->x_um = is_known(um) ? found->x_px * um[1] : NAN;
    found->y_um = is_known(um) ? found->y_px * um[0] : NAN;
    found->radius_um = found->radius_px * f->um;
    found->speed_um_s = found->before > 0 && seconds > 0 ? hypot(dx_um, dy_um) / seconds : NAN;
}

enum oct_err oct_cells_film_push(struct oct_cells_film *f, const struct oct_picture *picture,
                                 const struct oct_cells_times *times, unsigned skipped,
                                 const struct oct_cells_found **found, unsigned *n,
                                 struct oct_error *err)
{
    const struct oct_picture *searched;
    *found = NULL;
    *n = 0;
    enum oct_err e = take_picture(f, picture, &searched, err);
    if (e)
        return e;
    f->times = times;
    set_max_step(f, times ? times->start_s : NAN, skipped);
    e = track_picture(f, searched, skipped, err);
    if (e)
        return e;
    if (f->is_searched && f->ops->highest)
        f->highest = fmax(f->highest, f->ops->highest(f->engine));
    *n = f->setup.detect_only ? f->n_cells : f->n_tracks;
    for (unsigned i = 0; i < *n; i++)
        convert(f, &f->seen[i]);
    *found = f->seen;
    return OCT_OK;
}

void oct_cells_film_reset(struct oct_cells_film *f)
{
    f->n_tracks = f->n_followed = 0;
    f->since_search = f->left_out = 0;
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
    *searched = f->is_searched;
    return *searched ? f->ops->map(f->engine, score, best, err) : OCT_OK;
}

unsigned oct_cells_film_n_fields(const struct oct_cells_film *f)
{
    return f->n_followed;
}

enum oct_err oct_cells_film_field(struct oct_cells_film *f, unsigned i, uint64_t *track,
                                  struct oct_cell_window *window, uint32_t *iterations,
                                  float *field, struct oct_error *err)
{
    if (i >= f->n_followed)
        return oct_fail(err, OCT_E_ARG, "cells: field %u of %u", i, f->n_followed);
    *track = f->followed[i];
    *iterations = f->ends[i].n_field;
    return f->ops->field(f->engine, i, window, field, err);
}

const char *oct_cells_film_running(const struct oct_cells_film *f)
{
    return f->ops->running ? f->ops->running(f->engine) : f->ops->name;
}
