#include "analysis/cells/tracker_parts.h"

#include <math.h>
#include <string.h>

/* A cell that is followed is paler than one that is found. */
#define SHARE_OF_THRESHOLD 0.7

static int sign_of(double v)
{
    return (v > 0) - (v < 0);
}

/* Of cos and sin of whole quarters, 0 is meant by 1e-16: the field asks for the sign. */
static double snapped(double v)
{
    return fabs(v) < 1e-9 ? 0 : v;
}

static struct oct_cell_start start_of(const struct oct_cells_tracker *t,
                                      const struct oct_track *track)
{
    const struct oct_cells_params *params = &t->setup.params;
    struct oct_cell_start start = {.x = track->snake_x, .y = track->snake_y, .vx = 1, .vy = 1};
    start.is_dark =
        params->polarity == OCT_CELLS_BOTH ? track->is_dark : params->polarity == OCT_CELLS_DARK;
    memcpy(start.radii, track->radii, sizeof start.radii);
    if (!params->predicts) {
        start.mean_dy = oct_track_mean_y(track) - track->snake_y;
        return start;
    }
    const double angle = params->flow_deg * (3.14159265358979323846 / 180);
    start.x = track->predicted_x;
    start.y = track->predicted_y;
    start.vx = !isnan(params->flow_deg) ? snapped(cos(angle)) : sign_of(track->vx);
    start.vy = !isnan(params->flow_deg) ? snapped(sin(angle)) : 0;
    return start;
}

/* Whether the snake of a predicted cell counts, given the other cells of the picture. */
static bool counts(const struct oct_cells_tracker *t, const struct oct_track *track,
                   const struct oct_cell_end *end)
{
    const double dx = end->cell.x - track->predicted_x, dy = end->cell.y - track->predicted_y;
    const double least = SHARE_OF_THRESHOLD * t->setup.params.threshold;
    return end->defined && !end->left && dx * dx + dy * dy <= track->gate * track->gate &&
           fabs((double)end->cell.score) >= least &&
           !oct_crowd_is_near(&t->crowd, end->cell.x, end->cell.y);
}

static void start_snakes(struct oct_cells_tracker *t)
{
    t->n_followed = 0;
    for (unsigned i = 0; i < t->n_tracks; i++) {
        struct oct_track *track = &t->tracks[i];
        if (track->pair >= 0 || track->has_left)
            continue;
        track->end = (int32_t)t->n_followed;
        t->starts[t->n_followed] = start_of(t, track);
        t->followed[t->n_followed++] = track->number;
    }
}

enum oct_err oct_tracker_follow(struct oct_cells_tracker *t, struct oct_error *err)
{
    const struct oct_cells_tracker_setup *setup = &t->setup;
    start_snakes(t);
    if (t->n_followed == 0)
        return OCT_OK;
    enum oct_err e = setup->ops->follow(setup->engine, t->starts, t->n_followed, t->ends, err);
    if (!e)
        e = oct_crowd_reset(&t->crowd, setup->params.radius, (size_t)t->n_cells + t->n_tracks, err);
    if (e)
        return e;
    for (unsigned c = 0; c < t->n_cells; c++)
        oct_crowd_add(&t->crowd, t->cells[c].x, t->cells[c].y);
    for (unsigned i = 0; i < t->n_tracks; i++) {
        struct oct_track *track = &t->tracks[i];
        if (track->end < 0)
            continue;
        const struct oct_cell_end *end = &t->ends[track->end];
        if (setup->params.predicts ? !counts(t, track, end) : !end->defined)
            track->end = -1;
        else
            oct_crowd_add(&t->crowd, end->cell.x, end->cell.y);
    }
    return OCT_OK;
}
