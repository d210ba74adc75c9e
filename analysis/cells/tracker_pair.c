#include "analysis/cells/tracker_parts.h"

#include <math.h>

/* Whether a cell of that pixel can be found. */
static bool is_searchable(const struct oct_cells_tracker *t, double x, double y)
{
    const double border = oct_cells_border(&t->setup.params);
    const double px = floor(x + 0.5), py = floor(y + 0.5);
    return px >= border && px < t->setup.width - border && py >= border &&
           py < t->setup.height - border;
}

static void predict(struct oct_cells_tracker *t)
{
    for (unsigned i = 0; i < t->n_tracks; i++) {
        struct oct_track *track = &t->tracks[i];
        oct_track_predict(track, &t->setup.params, t->frames);
        track->has_left =
            t->setup.params.predicts && !is_searchable(t, track->predicted_x, track->predicted_y);
        track->pair = track->end = -1;
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
            t->links[n++] = (struct oct_link_track){t->tracks[i].predicted_x,
                                                    t->tracks[i].predicted_y, t->tracks[i].gate};
    const enum oct_err e = oct_cells_link(t->links, n, t->link_cells, t->n_cells, t->pair, err);
    if (e)
        return e;
    n = 0;
    for (unsigned i = 0; i < t->n_tracks; i++) {
        if (t->tracks[i].has_left)
            continue;
        const int32_t cell = t->pair[n++];
        t->tracks[i].pair = cell;
        if (cell >= 0)
            t->is_paired[cell] = true;
    }
    return OCT_OK;
}
