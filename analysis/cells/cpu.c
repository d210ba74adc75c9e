/* The CPU engine: rows of the picture, then cells, then snakes are pieces for the workers. */
#include "analysis/cells/find.h"
#include "analysis/cells/follow.h"
#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"

#include <stdlib.h>
#include <string.h>

#define ROWS 8u  /* of a piece of scores, even */
#define CELLS 4u /* of a piece of refinement */

struct oct_cells_engine {
    struct oct_cells_engine_setup setup;
    const struct oct_cells_scorer *scorer;
    struct oct_cells_prepared prepared;
    uint32_t border; /* oct_cells_border */
    struct oct_cells_gicov gicov;
    struct oct_cells_refiner refiner;
    struct oct_cells_peaks peaks;
    float *score;  /* [height][width] */
    uint8_t *best; /* [height][width] */
    bool has_picture, has_map;

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

static void cpu_destroy(struct oct_cells_engine *c)
{
    if (!c)
        return;
    for (unsigned i = 0; c->followers && i < c->n_workers; i++)
        oct_cells_follower_destroy(c->followers[i]);
    free(c->followers);
    free(c->fields);
    free(c->windows);
    oct_cells_prepared_finish(&c->prepared);
    oct_cells_peaks_finish(&c->peaks);
    free(c->score);
    free(c->best);
    free(c);
}

static enum oct_err init_parts(struct oct_cells_engine *c, struct oct_error *err)
{
    const struct oct_cells_engine_setup *s = &c->setup;
    const size_t n = (size_t)s->height * s->width;
    enum oct_err e = OCT_OK;
    c->n_workers = s->workers ? oct_workers_n_threads(s->workers) + 1 : 1;
    c->most = oct_cell_window_most(&s->params);
    c->followers = calloc(c->n_workers, sizeof(struct oct_cells_follower *));
    c->score = oct_aligned_calloc(64, n, sizeof(*c->score));
    c->best = oct_aligned_alloc(64, n, sizeof(*c->best));
    if (!oct_cells_prepared_init(&c->prepared, &s->params, s->height, s->width, s->workers) ||
        !oct_cells_peaks_init(&c->peaks, &s->params, s->height, s->width) || !c->followers ||
        !c->score || !c->best)
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for pictures of %u x %u px",
                        s->width, s->height);
    for (unsigned i = 0; !e && i < c->n_workers; i++)
        e = oct_cells_follower_create(&c->followers[i], &s->params, s->height, s->width, err);
    return e;
}

static enum oct_err cpu_create(struct oct_cells_engine **engine,
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
    e = init_parts(c, err);
    if (e) {
        cpu_destroy(c);
        return e;
    }
    const struct oct_cells_slopes *g = &c->prepared.slopes;
    memset(c->best, OCT_CELLS_NO_CIRCLE, (size_t)setup->height * setup->width);
    c->scorer = oct_cells_scorer_select("auto");
    c->border = oct_cells_border(&setup->params);
    oct_cells_gicov_init(&c->gicov, &setup->params, g->row, (size_t)(g->gy - g->gx));
    oct_cells_refiner_init(&c->refiner, &setup->params);
    *engine = c;
    return OCT_OK;
}

/* ---- a picture is searched ---- */

static void score_rows(void *context, unsigned piece, unsigned worker)
{
    const struct oct_cells_engine *c = context;
    (void)worker;
    const uint32_t border = c->border, width = c->setup.width;
    const uint32_t bottom = c->setup.height - border, first = border + piece * ROWS;
    const size_t at = (size_t)first * width + border;
    const struct oct_cells_part part = {
        .x0 = border,
        .x1 = width - border,
        .y0 = first,
        .y1 = first + ROWS < bottom ? first + ROWS : bottom,
        .v0 = c->prepared.v0,
        .stride = width,
        .score = c->score + at,
        .best = c->best + at,
    };
    c->scorer->run(&c->gicov, c->prepared.slopes.gx, &part);
}

static void refine_cell(const struct oct_cells_engine *c, struct oct_cell *cell)
{
    const size_t width = c->setup.width;
    const size_t at = (size_t)cell->peak_y * width + (size_t)cell->peak_x;
    struct oct_cells_place place = {cell->peak_x, cell->peak_y, c->gicov.radius[c->best[at]]};
    switch (c->setup.params.refine) {
    case OCT_CELLS_REFINE_PEAK:
        place.x += oct_cells_vertex_at(c->score + at, 1);
        place.y += oct_cells_vertex_at(c->score + at, width);
        break;
    case OCT_CELLS_REFINE_EDGE:
        oct_cells_refine_edge(&c->refiner, &c->prepared.slopes, &place);
        break;
    case OCT_CELLS_REFINE_SPLINE:
        oct_cells_refine_spline(&c->prepared.slopes, c->setup.params.radius, c->prepared.scale,
                                cell->score > 0, cell->peak_x, cell->peak_y, &place);
        break;
    case OCT_CELLS_REFINE_NONE:
    case OCT_CELLS_N_REFINES:
        break;
    }
    cell->x = place.x;
    cell->y = place.y;
    cell->radius = place.radius;
}

static void refine_cells(void *context, unsigned piece, unsigned worker)
{
    struct oct_cells_engine *c = context;
    (void)worker;
    for (unsigned i = piece * CELLS; i < (piece + 1) * CELLS && i < c->peaks.n; i++)
        refine_cell(c, &c->peaks.cells[i]);
}

static enum oct_err search(struct oct_cells_engine *c, struct oct_error *err)
{
    const struct oct_cells_mask *mask = &c->prepared.mask;
    const uint32_t n_rows = c->setup.height - 2 * c->border;
    struct oct_cells_peaks *peaks = &c->peaks;
    oct_workers_run(c->setup.workers, (n_rows + ROWS - 1) / ROWS, score_rows, c);
    c->has_map = true;
    const enum oct_err e =
        oct_cells_peaks_find(peaks, c->score, mask->any ? mask->near : NULL, err);
    if (e)
        return e;
    oct_workers_run(c->setup.workers, (peaks->n + CELLS - 1) / CELLS, refine_cells, c);
    unsigned n = 0;
    for (unsigned i = 0; i < peaks->n; i++) /* those that came near masked pixels are left out */
        if (!oct_cells_mask_is_near(mask, peaks->cells[i].x, peaks->cells[i].y))
            peaks->cells[n++] = peaks->cells[i];
    peaks->n = n;
    return OCT_OK;
}

static enum oct_err cpu_look(struct oct_cells_engine *c, const struct oct_picture *picture,
                             struct oct_cell *cells, unsigned most, unsigned *n,
                             struct oct_error *err)
{
    *n = 0;
    c->has_map = c->has_picture = false;
    if (picture->height != c->setup.height || picture->width != c->setup.width)
        return oct_fail(err, OCT_E_ARG, "cells: a picture of %u x %u px: must be %u x %u px",
                        picture->width, picture->height, c->setup.width, c->setup.height);
    oct_cells_prepare(&c->prepared, picture);
    c->has_picture = true;
    const enum oct_err e = most > 0 ? search(c, err) : OCT_OK;
    if (e || most == 0)
        return e;
    *n = c->peaks.n;
    for (unsigned i = 0; i < *n && i < most; i++)
        cells[i] = c->peaks.cells[i];
    return OCT_OK;
}

/* ---- snakes ---- */

/* S of a pixel: of the map, or computed now where there is none. 0: it is not defined. */
static float score_at(const struct oct_cells_engine *c, int64_t x, int64_t y)
{
    const int64_t border = c->border, width = c->setup.width, height = c->setup.height;
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
        .v0 = c->prepared.v0,
        .stride = 1,
        .score = &score,
        .best = &best,
    };
    c->scorer->run(&c->gicov, c->prepared.slopes.gx, &part);
    return score;
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

static void find_cell(const struct oct_cells_engine *c, bool is_dark, struct oct_cell_end *end)
{
    struct oct_cells_place place = {end->x, end->y, 0};
    for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
        place.radius += end->radii[i] / OCT_CELLS_SNAXELS;
    end->cell = (struct oct_cell){
        place.x, place.y, place.radius, 0, (int32_t)lround(end->x), (int32_t)lround(end->y)};
    if (!end->defined)
        return;
    score_end(c, is_dark, &end->cell);
    if (c->setup.params.refine == OCT_CELLS_REFINE_EDGE)
        oct_cells_refine_edge(&c->refiner, &c->prepared.slopes, &place);
    end->cell.x = place.x;
    end->cell.y = place.y;
    end->cell.radius = place.radius;
    if (oct_cells_mask_is_near(&c->prepared.mask, place.x, place.y))
        end->cell.score = 0;
}

static void follow_one(void *context, unsigned piece, unsigned worker)
{
    struct oct_cells_engine *c = context;
    struct oct_cell_end *end = &c->ends[piece];
    oct_cells_follow(c->followers[worker], c->prepared.pixels, c->prepared.stride,
                     &c->starts[piece], end);
    if (c->setup.keeps_fields)
        oct_cells_follow_field(c->followers[worker], &c->windows[piece],
                               c->fields + piece * c->most);
    find_cell(c, c->starts[piece].is_dark, end);
}

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

static enum oct_err cpu_follow(struct oct_cells_engine *c, const struct oct_cell_start *starts,
                               unsigned n, struct oct_cell_end *ends, struct oct_error *err)
{
    c->n_ends = 0;
    if (!c->has_picture)
        return oct_fail(err, OCT_E_STATE, "cells: there is no picture to follow cells in");
    const enum oct_err e = c->setup.keeps_fields ? make_fields(c, n, err) : OCT_OK;
    if (e)
        return e;
    c->starts = starts;
    c->ends = ends;
    c->n_ends = n;
    oct_workers_run(c->setup.workers, n, follow_one, c);
    return OCT_OK;
}

/* ---- what is said of it ---- */

static enum oct_err cpu_map(struct oct_cells_engine *c, float *score, uint8_t *best,
                            struct oct_error *err)
{
    const size_t n = (size_t)c->setup.height * c->setup.width;
    if (!c->has_map)
        return oct_fail(err, OCT_E_STATE, "cells: the last picture was not searched");
    memcpy(score, c->score, n * sizeof(*score));
    memcpy(best, c->best, n);
    return OCT_OK;
}

static double cpu_highest(const struct oct_cells_engine *c)
{
    return c->peaks.highest;
}

static enum oct_err cpu_field(struct oct_cells_engine *c, unsigned i,
                              struct oct_cell_window *window, float *field, struct oct_error *err)
{
    if (!c->setup.keeps_fields || i >= c->n_ends)
        return oct_fail(err, OCT_E_STATE, "cells: field %u was not kept", i);
    *window = c->windows[i];
    memcpy(field, c->fields + i * c->most, oct_cell_window_pixels(window) * sizeof(*field));
    return OCT_OK;
}

const struct oct_cells_engine_ops oct_cells_cpu_engine = {
    .name = "cpu",
    .create = cpu_create,
    .look = cpu_look,
    .follow = cpu_follow,
    .map = cpu_map,
    .highest = cpu_highest,
    .field = cpu_field,
    .destroy = cpu_destroy,
};
