/* Snakes on the CPU: each is a piece for the workers; then what is found at its end. */
#include "analysis/cells/engine_cpu.h"
#include "analysis/cells/follow.h"
#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct oct_cells_cpu_following {
    unsigned n_workers;
    struct oct_cells_follower **followers; /* [n_workers] */
    /* Of the follow that runs, or ran last. */
    unsigned n;
    const struct oct_cell_start *starts;
    struct oct_cell_end *ends;
    /* With keeps_fields. */
    size_t most; /* pixels of a field */
    unsigned room;
    float *fields;                   /* [room][most] */
    struct oct_cell_window *windows; /* [room] */
};

/* ---- life ---- */

enum oct_err oct_cells_cpu_following_create(struct oct_cells_engine *c, struct oct_error *err)
{
    const struct oct_cells_engine_setup *s = &c->setup;
    struct oct_cells_cpu_following *f = calloc(1, sizeof(*f));
    c->following = f;
    if (!f)
        goto fail;
    f->n_workers = s->workers ? oct_workers_n_threads(s->workers) + 1 : 1;
    f->most = oct_cell_window_most(&s->params);
    f->followers = calloc(f->n_workers, sizeof(struct oct_cells_follower *));
    if (!f->followers)
        goto fail;
    for (unsigned i = 0; i < f->n_workers; i++) {
        const enum oct_err e =
            oct_cells_follower_create(&f->followers[i], &s->params, s->height, s->width, err);
        if (e)
            return e;
    }
    return OCT_OK;
fail:
    return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for snakes");
}

void oct_cells_cpu_following_destroy(struct oct_cells_cpu_following *f)
{
    if (!f)
        return;
    for (unsigned i = 0; f->followers && i < f->n_workers; i++)
        oct_cells_follower_destroy(f->followers[i]);
    free(f->followers);
    free(f->fields);
    free(f->windows);
    free(f);
}

/* What was kept is lost. */
static enum oct_err make_room(struct oct_cells_cpu_following *f, unsigned n, struct oct_error *err)
{
    if (n <= f->room)
        return OCT_OK;
    free(f->fields);
    free(f->windows);
    f->fields = calloc(n, f->most * sizeof(*f->fields));
    f->windows = calloc(n, sizeof(*f->windows));
    f->room = f->fields && f->windows ? n : 0;
    if (f->room == 0)
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for %u fields", n);
    return OCT_OK;
}

/* ---- the end of a snake ---- */

static bool is_sought(float score, bool is_dark)
{
    return is_dark ? score > 0 : score < 0;
}

/* The score of the polarity with the largest |S| among pixels within 1 px. */
static void score_end(const struct oct_cells_engine *c, bool is_dark, struct oct_cell *cell)
{
    const int64_t x0 = (int64_t)ceil(cell->x - 1), y0 = (int64_t)ceil(cell->y - 1);
    for (int64_t y = y0; (double)y <= cell->y + 1; y++)
        for (int64_t x = x0; (double)x <= cell->x + 1; x++) {
            const double dx = (double)x - cell->x, dy = (double)y - cell->y;
            uint8_t best;
            if (dx * dx + dy * dy > 1)
                continue;
            const float score = oct_cells_cpu_score(c, x, y, &best);
            if (!is_sought(score, is_dark) || fabsf(score) <= fabsf(cell->score))
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
        const struct oct_cells_slopes slopes = oct_cells_cpu_slopes(c);
        struct oct_cells_place place = {end->x, end->y, radius};
        oct_cells_refine_edge(&c->refiner, &slopes, &place);
        end->cell.x = place.x;
        end->cell.y = place.y;
        end->cell.radius = place.radius;
    }
    if (oct_cells_mask_is_near(&c->prepared->mask, end->cell.x, end->cell.y))
        end->cell.score = 0;
}

/* Of a window that is too small for a snake: no pixels. */
static const struct oct_cell_window no_window = {0, -1, 0, -1};

static size_t n_pixels(const struct oct_cell_window *w)
{
    return (size_t)(w->u2 - w->u1 + 1) * (size_t)(w->v2 - w->v1 + 1);
}

static void follow_one(void *context, unsigned piece, unsigned worker)
{
    const struct oct_cells_engine *c = context;
    struct oct_cells_cpu_following *f = c->following;
    struct oct_cells_follower *follower = f->followers[worker];
    const struct oct_cell_start *start = &f->starts[piece];
    struct oct_cell_end *end = &f->ends[piece];
    oct_cells_follow(follower, c->prepared->pixels, c->prepared->stride, start, end);
    if (c->setup.keeps_fields) {
        struct oct_cell_window w;
        const bool has_field = oct_cell_window_find(&c->setup.params, c->setup.height,
                                                    c->setup.width, start->x, start->y, &w);
        if (has_field)
            memcpy(f->fields + piece * f->most, oct_cells_follow_field(follower, &w),
                   n_pixels(&w) * sizeof(float));
        f->windows[piece] = has_field ? w : no_window;
    }
    find_cell(c, start, end);
}

enum oct_err oct_cells_cpu_follow(struct oct_cells_engine *c, const struct oct_cell_start *starts,
                                  unsigned n, struct oct_cell_end *ends, struct oct_error *err)
{
    struct oct_cells_cpu_following *f = c->following;
    f->n = 0;
    if (!c->has_picture)
        return oct_fail(err, OCT_E_STATE, "cells: there is no picture to follow cells in");
    if (c->setup.keeps_fields) {
        const enum oct_err e = make_room(f, n, err);
        if (e)
            return e;
    }
    f->starts = starts;
    f->ends = ends;
    f->n = n;
    oct_workers_run(c->setup.workers, n, follow_one, c);
    return OCT_OK;
}

enum oct_err oct_cells_cpu_field(struct oct_cells_engine *c, unsigned i,
                                 struct oct_cell_window *window, float *field,
                                 struct oct_error *err)
{
    const struct oct_cells_cpu_following *f = c->following;
    if (!c->setup.keeps_fields || i >= f->n)
        return oct_fail(err, OCT_E_STATE, "cells: field %u was not kept", i);
    *window = f->windows[i];
    memcpy(field, f->fields + i * f->most, n_pixels(window) * sizeof(*field));
    return OCT_OK;
}
