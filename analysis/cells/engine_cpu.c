/* The CPU engine: rows of the picture, then cells, are pieces for the workers. */
#include "analysis/cells/engine_cpu.h"

#include "analysis/cells/spline.h"
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

/* ---- life ---- */

static void destroy(struct oct_cells_engine *c)
{
    if (!c)
        return;
    oct_cells_cpu_following_destroy(c->following);
    oct_cells_preparation_destroy(c->preparation);
    oct_cells_peaks_destroy(c->peaks);
    free(c->score);
    free(c->best);
    free(c->cells);
    free(c);
}

static enum oct_err init(struct oct_cells_engine *c, struct oct_error *err)
{
    const struct oct_cells_engine_setup *s = &c->setup;
    const size_t n = (size_t)s->height * s->width;
    enum oct_err e = oct_cells_preparation_create(&c->preparation, &s->params, s->height, s->width,
                                                  s->workers, err);
    if (!e)
        e = oct_cells_peaks_create(&c->peaks, &s->params, s->height, s->width, s->workers, err);
    if (!e)
        e = oct_cells_cpu_following_create(c, err);
    if (e)
        return e;
    c->scorer = oct_cells_scorer_select("auto");
    c->prepared = oct_cells_prepared_of(c->preparation);
    oct_cells_circles_init(&c->circles, &s->params);
    oct_cells_gicov_init(&c->gicov, &c->circles, &c->prepared->gradient);
    oct_cells_refiner_init(&c->refiner, &s->params, &c->circles);
    c->score = oct_aligned_calloc(64, n, sizeof(*c->score));
    c->best = oct_aligned_alloc(64, n, sizeof(*c->best));
    if (!c->score || !c->best)
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for scores of %u x %u px",
                        s->width, s->height);
    memset(c->best, NO_CIRCLE, n);
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

float oct_cells_cpu_score(const struct oct_cells_engine *c, int64_t x, int64_t y, uint8_t *best)
{
    const int64_t border = c->circles.border, width = c->setup.width, height = c->setup.height;
    float score;
    *best = NO_CIRCLE;
    if (x < border || y < border || x >= width - border || y >= height - border)
        return 0;
    if (c->has_map) {
        *best = c->best[y * width + x];
        return c->score[y * width + x];
    }
    const struct oct_cells_part part = {
        .x0 = (uint32_t)x,
        .x1 = (uint32_t)x + 1,
        .y0 = (uint32_t)y,
        .y1 = (uint32_t)y + 1,
        .v0 = c->prepared->v0,
        .stride = 1,
        .score = &score,
        .best = best,
    };
    c->scorer->run(&c->gicov, &c->prepared->gradient, &part);
    return score;
}

/* ---- cells ---- */

struct oct_cells_slopes oct_cells_cpu_slopes(const struct oct_cells_engine *c)
{
    const struct oct_cells_gradient *g = &c->prepared->gradient;
    return (struct oct_cells_slopes){
        .gx = g->values,
        .gy = g->values + g->plane,
        .row = g->row,
        .height = (int32_t)g->height,
        .width = (int32_t)g->width,
    };
}

static void refine_cell(struct oct_cells_engine *c, unsigned i)
{
    const uint32_t x = c->found[i].x, y = c->found[i].y;
    const size_t at = (size_t)y * c->setup.width + x;
    const struct oct_cells_slopes slopes = oct_cells_cpu_slopes(c);
    const double radius = c->setup.params.radius;
    struct oct_cells_place place = {x, y, c->circles.circle[c->best[at]].radius};
    switch (c->setup.params.refine) {
    case OCT_CELLS_REFINE_PEAK:
        oct_cells_refine_peak(c->score, c->setup.width, x, y, &place);
        break;
    case OCT_CELLS_REFINE_EDGE:
        oct_cells_refine_edge(&c->refiner, &slopes, &place);
        break;
    case OCT_CELLS_REFINE_SPLINE:
        oct_cells_refine_spline(&slopes, radius, c->prepared->scale, c->score[at] > 0, (int32_t)x,
                                (int32_t)y, &place);
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

const struct oct_cells_engine_ops oct_cells_cpu_engine = {
    .name = "cpu",
    .create = create,
    .look = look,
    .follow = oct_cells_cpu_follow,
    .map = map,
    .highest = highest,
    .field = oct_cells_cpu_field,
    .destroy = destroy,
};
