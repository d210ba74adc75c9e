/* The CPU engine: rows of the picture, then cells, then snakes are pieces for the workers. */
#include "analysis/cells/engine.h"
#include "analysis/cells/follow.h"
#include "analysis/cells/prepare.h"
#include "analysis/cells/refine.h"
#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 8u  /* of a piece of scores, even */
#define CELLS 4u /* of a piece of refinement */
/* Of scores between two looks whether pictures wait; a multiple of every scorer's block. */
#define COLUMNS 64u
#define NO_CIRCLE 255

/* ---- windows ---- */

/* Pixels first .. last of one axis; false: fewer than two. */
static bool find_span(double at, double reach, uint32_t n, int32_t *first, int32_t *last)
{
    const double low = at - reach + 0.5, high = at + reach + 0.5, end = (double)n - 1;
    *first = *last = 0;
    if (!(low < end) || !(high >= 0)) /* NaN too */
        return false;
    *first = (int32_t)fmax(low, 0);
    *last = (int32_t)fmin(high, end);
    return *last > *first;
}

bool oct_cell_window_find(const struct oct_cells_params *params, uint32_t height, uint32_t width,
                          double x, double y, struct oct_cell_window *window)
{
    const bool has_width = find_span(x, 4 * params->radius, width, &window->u1, &window->u2);
    const bool has_height = find_span(y, 2 * params->radius, height, &window->v1, &window->v2);
    return has_width && has_height;
}

/* Between two sums that are rounded each for itself lie 8 R + 1 whole numbers and one more. */
uint32_t oct_cell_window_most(const struct oct_cells_params *params)
{
    return ((uint32_t)ceil(8 * params->radius) + 2) * ((uint32_t)ceil(4 * params->radius) + 2);
}

struct oct_cells_engine {
    struct oct_cells_engine_setup setup;
    const struct oct_cells_scorer *scorer;
    struct oct_cells_preparation *preparation;
    const struct oct_cells_prepared *prepared;
    struct oct_cells_circles circles;
    struct oct_cells_gicov gicov;
    struct oct_cells_refiner refiner;
    struct oct_cells_slopes slopes; /* the gradient for refinement */
    struct oct_cells_peaks *peaks;
    float *score;  /* [height][width] */
    uint8_t *best; /* [height][width] */
    bool has_picture, has_map;
    double highest;
    struct oct_cell *cells; /* [room] */
    unsigned n_cells, room;
    const struct oct_cells_peak *found; /* [n_cells], while look runs */

    /* Of the follow that runs, or ran last. */
    unsigned n_workers;
    struct oct_cells_follower **followers; /* [n_workers] */
    unsigned n_ends;
    const struct oct_cell_start *starts;
    struct oct_cell_end *ends;
    /* With keeps_fields. */
    size_t most; /* pixels of a field */
    unsigned fields_room;
    float *fields;                   /* [fields_room][most] */
    struct oct_cell_window *windows; /* [fields_room] */
};

/* ---- life ---- */

static void destroy(struct oct_cells_engine *c)
{
    if (!c)
        return;
    for (unsigned i = 0; c->followers && i < c->n_workers; i++)
        oct_cells_follower_destroy(c->followers[i]);
    free(c->followers);
    free(c->fields);
    free(c->windows);
    oct_cells_preparation_destroy(c->preparation);
    oct_cells_peaks_destroy(c->peaks);
    free(c->score);
    free(c->best);
    free(c->cells);
    free(c);
}

static enum oct_err init_parts(struct oct_cells_engine *c, struct oct_error *err)
{
    const struct oct_cells_engine_setup *s = &c->setup;
    enum oct_err e = oct_cells_preparation_create(&c->preparation, &s->params, s->height, s->width,
                                                  s->workers, err);
    if (!e)
        e = oct_cells_peaks_create(&c->peaks, &s->params, s->height, s->width, s->workers, err);
    for (unsigned i = 0; !e && i < c->n_workers; i++)
        e = oct_cells_follower_create(&c->followers[i], &s->params, s->height, s->width, err);
    return e;
}

static enum oct_err init(struct oct_cells_engine *c, struct oct_error *err)
{
    const struct oct_cells_engine_setup *s = &c->setup;
    const size_t n = (size_t)s->height * s->width;
    c->n_workers = s->workers ? oct_workers_n_threads(s->workers) + 1 : 1;
    c->most = oct_cell_window_most(&s->params);
    c->followers = calloc(c->n_workers, sizeof(struct oct_cells_follower *));
    c->score = oct_aligned_calloc(64, n, sizeof(*c->score));
    c->best = oct_aligned_alloc(64, n, sizeof(*c->best));
    if (!c->followers || !c->score || !c->best)
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for scores of %u x %u px",
                        s->width, s->height);
    memset(c->best, NO_CIRCLE, n);
    const enum oct_err e = init_parts(c, err);
    if (e)
        return e;
    c->scorer = oct_cells_scorer_select("auto");
    c->prepared = oct_cells_prepared_of(c->preparation);
    const struct oct_cells_gradient *g = &c->prepared->gradient;
    oct_cells_circles_init(&c->circles, &s->params);
    oct_cells_gicov_init(&c->gicov, &c->circles, g);
    oct_cells_refiner_init(&c->refiner, &s->params, &c->circles);
    c->slopes = (struct oct_cells_slopes){.gx = g->values,
                                          .gy = g->values + g->plane,
                                          .row = g->row,
                                          .height = (int32_t)g->height,
                                          .width = (int32_t)g->width};
    return OCT_OK;
}

static enum oct_err create(struct oct_cells_engine **engine,
                           const struct oct_cells_engine_setup *setup, struct oct_error *err)
{
    *engine = NULL;
    enum oct_err e = oct_cells_params_check(&setup->params, setup->height, setup->width, err);
    if (e)
        return e;
    struct oct_cells_engine *c = calloc(1, sizeof(*c));
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for an engine");
    c->setup = *setup;
    e = init(c, err);
    if (e) {
        destroy(c);
        return e;
    }
    *engine = c;
    return OCT_OK;
}

/* ---- scores ---- */

static void score_rows(void *context, unsigned piece, unsigned worker)
{
    const struct oct_cells_engine *c = context;
    (void)worker;
    const uint32_t border = c->circles.border;
    const uint32_t bottom = c->setup.height - border, right = c->setup.width - border;
    const uint32_t first = border + piece * ROWS;
    for (uint32_t x = border; x < right; x += COLUMNS) {
        const size_t at = (size_t)first * c->setup.width + x;
        const struct oct_cells_part part = {
            .x0 = x,
            .x1 = right - x > COLUMNS ? x + COLUMNS : right,
            .y0 = first,
            .y1 = first + ROWS < bottom ? first + ROWS : bottom,
            .v0 = c->prepared->v0,
            .stride = c->setup.width,
            .score = c->score + at,
            .best = c->best + at,
        };
        c->scorer->run(&c->gicov, &c->prepared->gradient, &part);
    }
}

/* Of a flat picture: 0, by the first circle. */
static void score_nothing(struct oct_cells_engine *c)
{
    const uint32_t border = c->circles.border, width = c->setup.width;
    for (uint32_t y = border; y < c->setup.height - border; y++) {
        memset(c->score + (size_t)y * width + border, 0, (width - 2 * border) * sizeof(float));
        memset(c->best + (size_t)y * width + border, 0, width - 2 * border);
    }
}

static void score_picture(struct oct_cells_engine *c)
{
    const uint32_t n_rows = c->setup.height - 2 * c->circles.border;
    if (c->prepared->is_flat)
        score_nothing(c);
    else
        oct_workers_run(c->setup.workers, (n_rows + ROWS - 1) / ROWS, score_rows, c);
}

/* S of a pixel: of the map, or computed now where there is none.
 * 0: it is not defined. Any thread of follow. */
static float score_at(const struct oct_cells_engine *c, int64_t x, int64_t y)
{
    const int64_t border = c->circles.border, width = c->setup.width, height = c->setup.height;
    float score;
    uint8_t best;
    if (x < border || y < border || x >= width - border || y >= height - border)
        return 0;
    if (c->has_map)
        return c->score[y * width + x];
    const struct oct_cells_part part = {
        .x0 = (uint32_t)x,
        .x1 = (uint32_t)x + 1,
        .y0 = (uint32_t)y,
        .y1 = (uint32_t)y + 1,
        .v0 = c->prepared->v0,
        .stride = 1,
        .score = &score,
        .best = &best,
    };
    c->scorer->run(&c->gicov, &c->prepared->gradient, &part);
    return score;
}

/* ---- cells ---- */

static void refine_cell(struct oct_cells_engine *c, unsigned i)
{
    const uint32_t x = c->found[i].x, y = c->found[i].y;
    const size_t at = (size_t)y * c->setup.width + x;
    struct oct_cells_place place = {x, y, c->circles.circle[c->best[at]].radius};
    switch (c->setup.params.refine) {
    case OCT_CELLS_REFINE_PEAK:
        oct_cells_refine_peak(c->score, c->setup.width, x, y, &place);
        break;
    case OCT_CELLS_REFINE_EDGE:
        oct_cells_refine_edge(&c->refiner, &c->slopes, &place);
        break;
    case OCT_CELLS_REFINE_SPLINE:
        oct_cells_refine_spline(&c->slopes, c->setup.params.radius, c->prepared->scale,
                                c->score[at] > 0, (int32_t)x, (int32_t)y, &place);
        break;
    case OCT_CELLS_REFINE_NONE:
    case OCT_CELLS_N_REFINES:
        break;
    }
    c->cells[i] = (struct oct_cell){
        .x = place.x,
        .y = place.y,
        .radius = place.radius,
        .score = c->score[at],
        .peak_x = (int32_t)x,
        .peak_y = (int32_t)y,
    };
}

static void refine_cells(void *context, unsigned piece, unsigned worker)
{
    struct oct_cells_engine *c = context;
    (void)worker;
    for (unsigned i = piece * CELLS; i < (piece + 1) * CELLS && i < c->n_cells; i++)
        refine_cell(c, i);
}

static enum oct_err make_room(struct oct_cells_engine *c, unsigned n, struct oct_error *err)
{
    if (n <= c->room)
        return OCT_OK;
    struct oct_cell *cells = realloc(c->cells, n * sizeof(*cells));
    if (!cells)
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for %u cells", n);
    c->cells = cells;
    c->room = n;
    return OCT_OK;
}

/* Leaves out those that came near masked pixels. */
static void drop_near(struct oct_cells_engine *c)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->n_cells; i++)
        if (!oct_cells_mask_is_near(&c->prepared->mask, c->cells[i].x, c->cells[i].y))
            c->cells[n++] = c->cells[i];
    c->n_cells = n;
}

static enum oct_err search(struct oct_cells_engine *c, struct oct_error *err)
{
    const struct oct_cells_mask *mask = &c->prepared->mask;
    score_picture(c);
    c->has_map = true;
    enum oct_err e = oct_cells_peaks_find(c->peaks, c->score, mask->any ? mask->near : NULL,
                                          &c->found, &c->n_cells, &c->highest, err);
    if (!e)
        e = make_room(c, c->n_cells, err);
    if (e)
        return e;
    oct_workers_run(c->setup.workers, (c->n_cells + CELLS - 1) / CELLS, refine_cells, c);
    if (mask->any)
        drop_near(c);
    return OCT_OK;
}

static enum oct_err look(struct oct_cells_engine *c, const struct oct_picture *picture,
                         struct oct_cell *cells, unsigned most, unsigned *n, struct oct_error *err)
{
    *n = 0;
    c->has_map = c->has_picture = false;
    if (picture->height != c->setup.height || picture->width != c->setup.width)
        return oct_fail(err, OCT_E_ARG, "cells: a picture of %u x %u px: must be %u x %u px",
                        picture->width, picture->height, c->setup.width, c->setup.height);
    enum oct_err e = oct_cells_prepare(c->preparation, picture, err);
    c->has_picture = !e;
    if (!e && most > 0)
        e = search(c, err);
    if (e || most == 0)
        return e;
    *n = c->n_cells;
    for (unsigned i = 0; i < c->n_cells && i < most; i++)
        cells[i] = c->cells[i];
    return OCT_OK;
}

/* ---- snakes ---- */

/* What was kept is lost. */
static enum oct_err make_fields(struct oct_cells_engine *c, unsigned n, struct oct_error *err)
{
    if (n <= c->fields_room)
        return OCT_OK;
    free(c->fields);
    free(c->windows);
    c->fields = calloc(n, c->most * sizeof(*c->fields));
    c->windows = calloc(n, sizeof(*c->windows));
    c->fields_room = c->fields && c->windows ? n : 0;
    if (c->fields_room == 0)
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for %u fields", n);
    return OCT_OK;
}

/* The score of the polarity with the largest |S| among pixels within 1 px. */
static void score_end(const struct oct_cells_engine *c, bool is_dark, struct oct_cell *cell)
{
    const int64_t x0 = (int64_t)ceil(cell->x - 1), y0 = (int64_t)ceil(cell->y - 1);
    for (int64_t y = y0; (double)y <= cell->y + 1; y++)
        for (int64_t x = x0; (double)x <= cell->x + 1; x++) {
            const double dx = (double)x - cell->x, dy = (double)y - cell->y;
            if (dx * dx + dy * dy > 1)
                continue;
            const float score = score_at(c, x, y);
            if (!(is_dark ? score > 0 : score < 0) || fabsf(score) <= fabsf(cell->score))
                continue;
            cell->score = score;
            cell->peak_x = (int32_t)x;
            cell->peak_y = (int32_t)y;
        }
}

static void find_cell(const struct oct_cells_engine *c, const struct oct_cell_start *start,
                      struct oct_cell_end *end)
{
    double radius = 0;
    for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
        radius += end->radii[i] / OCT_CELLS_SNAXELS;
    end->cell = (struct oct_cell){
        .x = end->x,
        .y = end->y,
        .radius = radius,
        .peak_x = (int32_t)lround(end->x),
        .peak_y = (int32_t)lround(end->y),
    };
    if (!end->defined)
        return;
    score_end(c, start->is_dark, &end->cell);
    if (c->setup.params.refine == OCT_CELLS_REFINE_EDGE) {
        struct oct_cells_place place = {end->x, end->y, radius};
        oct_cells_refine_edge(&c->refiner, &c->slopes, &place);
        end->cell.x = place.x;
        end->cell.y = place.y;
        end->cell.radius = place.radius;
    }
    if (oct_cells_mask_is_near(&c->prepared->mask, end->cell.x, end->cell.y))
        end->cell.score = 0;
}

static size_t n_pixels(const struct oct_cell_window *w)
{
    return (size_t)(w->u2 - w->u1 + 1) * (size_t)(w->v2 - w->v1 + 1);
}

static void follow_one(void *context, unsigned piece, unsigned worker)
{
    struct oct_cells_engine *c = context;
    struct oct_cells_follower *follower = c->followers[worker];
    const struct oct_cell_start *start = &c->starts[piece];
    struct oct_cell_end *end = &c->ends[piece];
    oct_cells_follow(follower, c->prepared->pixels, c->prepared->stride, start, end);
    if (c->setup.keeps_fields) {
        struct oct_cell_window *w = &c->windows[piece];
        const float *field = oct_cells_follow_field(follower, w);
        if (field)
            memcpy(c->fields + piece * c->most, field, n_pixels(w) * sizeof(float));
        else /* too small for a snake: no pixels */
            *w = (struct oct_cell_window){0, -1, 0, -1};
    }
    find_cell(c, start, end);
}

static enum oct_err follow(struct oct_cells_engine *c, const struct oct_cell_start *starts,
                           unsigned n, struct oct_cell_end *ends, struct oct_error *err)
{
    c->n_ends = 0;
    if (!c->has_picture)
        return oct_fail(err, OCT_E_STATE, "cells: there is no picture to follow cells in");
    if (c->setup.keeps_fields) {
        const enum oct_err e = make_fields(c, n, err);
        if (e)
            return e;
    }
    c->starts = starts;
    c->ends = ends;
    c->n_ends = n;
    oct_workers_run(c->setup.workers, n, follow_one, c);
    return OCT_OK;
}

/* ---- what is said of it ---- */

static enum oct_err map(struct oct_cells_engine *c, float *score, uint8_t *best,
                        struct oct_error *err)
{
    const size_t n = (size_t)c->setup.height * c->setup.width;
    if (!c->has_map)
        return oct_fail(err, OCT_E_STATE, "cells: the last picture was not searched");
    memcpy(score, c->score, n * sizeof(*score));
    memcpy(best, c->best, n);
    return OCT_OK;
}

static double highest(const struct oct_cells_engine *c)
{
    return c->highest;
}

static enum oct_err field_of(struct oct_cells_engine *c, unsigned i, struct oct_cell_window *window,
                             float *field, struct oct_error *err)
{
    if (!c->setup.keeps_fields || i >= c->n_ends)
        return oct_fail(err, OCT_E_STATE, "cells: field %u was not kept", i);
    *window = c->windows[i];
    memcpy(field, c->fields + i * c->most, n_pixels(window) * sizeof(*field));
    return OCT_OK;
}

const struct oct_cells_engine_ops oct_cells_cpu_engine = {
    .name = "cpu",
    .create = create,
    .look = look,
    .follow = follow,
    .map = map,
    .highest = highest,
    .field = field_of,
    .destroy = destroy,
};
