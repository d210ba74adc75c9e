#include "analysis/cells/room.h"
#include "analysis/cells/texture.h"
#include "analysis/cells/tracker_parts.h"

#include <math.h>
#include <stdlib.h>

const char *const oct_cells_how_names[OCT_CELLS_N_HOWS] = {"detected", "snake", "coasted"};

enum oct_err oct_cells_tracker_create(struct oct_cells_tracker **tracker,
                                      const struct oct_cells_tracker_setup *setup,
                                      struct oct_error *err)
{
    struct oct_cells_tracker *t = calloc(1, sizeof *t);
    *tracker = t;
    if (t) {
        t->setup = *setup;
        t->cells = malloc(OCT_CELLS_MOST * sizeof *t->cells);
        t->link_cells = malloc(OCT_CELLS_MOST * sizeof *t->link_cells);
        t->is_paired = malloc(OCT_CELLS_MOST * sizeof *t->is_paired);
    }
    if (t && t->cells && t->link_cells && t->is_paired)
        return OCT_OK;
    oct_cells_tracker_destroy(t);
    *tracker = NULL;
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the tracker of cells");
}

void oct_cells_tracker_destroy(struct oct_cells_tracker *t)
{
    if (!t)
        return;
    free(t->tracks);
    free(t->seen);
    free(t->cells);
    free(t->starts);
    free(t->ends);
    free(t->followed);
    free(t->links);
    free(t->pair);
    free(t->link_cells);
    free(t->is_paired);
    oct_crowd_finish(&t->crowd);
    free(t);
}

/* ---- room ---- */

/* Room for the tracks and one more for each cell. */
static enum oct_err make_room(struct oct_cells_tracker *t, struct oct_error *err)
{
    const size_t needed = (size_t)t->n_tracks + t->n_cells, n = needed + needed / 2 + 16;
    bool is_whole = true;
    if (needed <= t->n_tracks_most)
        return OCT_OK;
    t->tracks = oct_cells_grown(t->tracks, n, sizeof *t->tracks, &is_whole);
    t->seen = oct_cells_grown(t->seen, n, sizeof *t->seen, &is_whole);
    t->starts = oct_cells_grown(t->starts, n, sizeof *t->starts, &is_whole);
    t->ends = oct_cells_grown(t->ends, n, sizeof *t->ends, &is_whole);
    t->followed = oct_cells_grown(t->followed, n, sizeof *t->followed, &is_whole);
    t->links = oct_cells_grown(t->links, n, sizeof *t->links, &is_whole);
    t->pair = oct_cells_grown(t->pair, n, sizeof *t->pair, &is_whole);
    if (!is_whole)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu tracks", n);
    t->n_tracks_most = n;
    return OCT_OK;
}

/* ---- a picture ---- */

static enum oct_err look(struct oct_cells_tracker *t, const struct oct_picture *picture,
                         struct oct_error *err)
{
    const struct oct_cells_tracker_setup *setup = &t->setup;
    const unsigned most = t->is_searched ? OCT_CELLS_MOST : 0;
    unsigned n = 0;
    const enum oct_err e = setup->ops->look(setup->engine, picture, t->cells, most, &n, err);
    t->n_cells = n < most ? n : most;
    return e ? e
             : oct_cells_above_texture(&setup->params, picture, &t->crowd, t->cells, &t->n_cells,
                                       err);
}

/* Detection alone. */
static void list_cells(struct oct_cells_tracker *t)
{
    for (unsigned c = 0; c < t->n_cells; c++)
        t->seen[c] = (struct oct_cells_seen){.x = t->cells[c].x,
                                             .y = t->cells[c].y,
                                             .radius = t->cells[c].radius,
                                             .score = t->cells[c].score,
                                             .how = OCT_CELLS_DETECTED};
}

static enum oct_err track_cells(struct oct_cells_tracker *t, struct oct_error *err)
{
    enum oct_err e = oct_tracker_pair(t, err);
    if (!e)
        e = oct_tracker_follow(t, err);
    if (!e)
        e = oct_tracker_take_over(t, err);
    return e;
}

static uint32_t sum_of(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

enum oct_err oct_cells_tracker_push(struct oct_cells_tracker *t, const struct oct_picture *picture,
                                    unsigned skipped, const struct oct_cells_seen **seen,
                                    unsigned *n_seen, struct oct_error *err)
{
    const struct oct_cells_params *params = &t->setup.params;
    const bool is_first = t->since_search == 0;
    *seen = NULL;
    *n_seen = 0;
    t->frames = sum_of(sum_of(t->left_out, skipped), 1);
    t->is_searched = t->setup.detect_only || is_first ||
                     sum_of(t->since_search, t->frames) > params->detect_every;
    t->n_followed = 0;
    enum oct_err e = look(t, picture, err);
    if (!e)
        e = make_room(t, err);
    if (!e && t->setup.detect_only)
        list_cells(t);
    else if (!e)
        e = track_cells(t, err);
    if (e) {
        t->left_out = t->frames;
        return e;
    }
    t->left_out = 0;
    t->since_search = t->is_searched ? 1 : sum_of(t->since_search, t->frames);
    *seen = t->seen;
    *n_seen = t->setup.detect_only ? t->n_cells : t->n_tracks;
    return OCT_OK;
}

bool oct_cells_tracker_detected(const struct oct_cells_tracker *t)
{
    return t->is_searched;
}

const uint64_t *oct_cells_tracker_followed(const struct oct_cells_tracker *t, unsigned *n)
{
    *n = t->n_followed;
    return t->followed;
}

const struct oct_cell_end *oct_cells_tracker_ends(const struct oct_cells_tracker *t)
{
    return t->ends;
}

void oct_cells_tracker_set_max_step(struct oct_cells_tracker *t, double max_step)
{
    t->setup.params.max_step = max_step;
}

void oct_cells_tracker_reset(struct oct_cells_tracker *t)
{
    t->n_tracks = 0;
    t->since_search = 0;
    t->left_out = 0;
    t->n_followed = 0;
}
