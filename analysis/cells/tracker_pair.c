#include "analysis/cells/tracker_parts.h"

#include <math.h>

/* [R] Of cells that are nearer than that, one is seen at most, or each at a wrong place. */
#define MERGED 1.5
/* [R] a frame: tracks that separate by less do not pass each other. */
#define PASSING 0.1

/* Whether a cell of that pixel can be found. */
static bool is_searchable(const struct oct_cells_tracker *t, double x, double y)
{
    const double border = oct_cells_border(&t->setup.params);
    const double px = floor(x + 0.5), py = floor(y + 0.5);
    return px >= border && px < t->setup.width - border && py >= border &&
           py < t->setup.height - border;
}

/* A gate wider than the picture pairs no more, and of a far wider one the shares that distances are
 * of it would be lost to rounding. */
static void predict(struct oct_cells_tracker *t)
{
    const double diagonal = hypot(t->setup.width, t->setup.height);
    for (unsigned i = 0; i < t->n_tracks; i++) {
        struct oct_track *track = &t->tracks[i];
        oct_track_predict(track, &t->setup.params, t->frames);
        track->gate = fmin(track->gate, diagonal);
        track->has_left =
            t->setup.params.predicts && !is_searchable(t, track->predicted_x, track->predicted_y);
        track->is_merged = track->is_hidden = false;
        track->pair = track->end = -1;
    }
}

/* Distances count as shares of the gate: else a track that is missing, whose gate is wide, would
 * gain more by a cell than the track that has been seen there all the time. */
static struct oct_link_track link_of(const struct oct_cells_tracker *t,
                                     const struct oct_track *track)
{
    const double share = t->setup.params.radius / track->gate;
    return (struct oct_link_track){track->predicted_x, track->predicted_y, track->gate,
                                   share * share};
}

/* `seen` has a cell, `missing` has none, and the cell may be both of them. */
static void merge(const struct oct_cells_tracker *t, struct oct_track *seen,
                  struct oct_track *missing)
{
    const double radius = t->setup.params.radius;
    const struct oct_cell *cell = &t->cells[seen->pair];
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

static void find_merged(struct oct_cells_tracker *t)
{
    for (unsigned i = 0; i < t->n_tracks && t->n_cells > 0; i++) {
        struct oct_track *missing = &t->tracks[i];
        if (missing->has_left || missing->pair >= 0 || !missing->has_velocity)
            continue;
        for (unsigned k = 0; k < t->n_tracks; k++)
            if (t->tracks[k].pair >= 0 && t->tracks[k].has_velocity)
                merge(t, &t->tracks[k], missing);
    }
}

/* The cells of the tracks that have not left, in their order. */
static void take_pairs(struct oct_cells_tracker *t)
{
    unsigned n = 0;
    for (unsigned i = 0; i < t->n_tracks; i++) {
        if (t->tracks[i].has_left)
            continue;
        const int32_t cell = t->pair[n++];
        t->tracks[i].pair = cell;
        if (cell >= 0)
            t->is_paired[cell] = true;
    }
}

enum oct_err oct_tracker_pair(struct oct_cells_tracker *t, struct oct_error *err)
{
    unsigned n = 0;
    for (unsigned c = 0; c < t->n_cells; c++) {
        t->link_cells[c] = (struct oct_link_cell){t->cells[c].x, t->cells[c].y};
        t->is_paired[c] = false;
    }
    predict(t);
    if (!t->setup.params.predicts)
        return OCT_OK; /* its tracks have no pairs */
    for (unsigned i = 0; i < t->n_tracks; i++)
        if (!t->tracks[i].has_left)
            t->links[n++] = link_of(t, &t->tracks[i]);
    const enum oct_err e = oct_cells_link(t->links, n, t->link_cells, t->n_cells, t->pair, err);
    if (e)
        return e;
    take_pairs(t);
    find_merged(t);
    return OCT_OK;
}
