#include "analysis/cells/tracker_parts.h"

#include <math.h>

/* What the picture said of one track; true: it goes on. */
static bool update(const struct oct_cells_tracker *t, struct oct_track *track)
{
    if (track->has_left)
        return false;
    if (track->is_merged) {
        track->pair = -1;
        oct_track_coast(track, t->frames);
        return true;
    }
    if (track->pair >= 0) {
        oct_track_detect(track, &t->cells[track->pair], t->frames);
        return true;
    }
    if (track->end >= 0)
        oct_track_follow(track, &t->ends[track->end], t->frames);
    else if (t->setup.params.predicts)
        oct_track_coast(track, t->frames);
    else
        return false;
    const bool is_miss = track->end < 0 ? !track->is_hidden : t->is_searched;
    if (t->setup.params.predicts && is_miss)
        oct_track_miss(track, &t->setup.params);
    return !track->has_ended;
}

static struct oct_cells_seen seen_of(const struct oct_cells_tracker *t,
                                     const struct oct_track *track)
{
    struct oct_cells_seen seen = {.track = track->number,
                                  .n_seen = track->n_seen,
                                  .before = track->before,
                                  .x = track->x,
                                  .y = track->y,
                                  .radius = track->radius,
                                  .last_x = track->last_x,
                                  .last_y = track->last_y,
                                  .score = NAN,
                                  .how = OCT_CELLS_COASTED};
    if (track->pair >= 0) {
        seen.score = t->cells[track->pair].score;
        seen.how = OCT_CELLS_DETECTED;
    } else if (track->end >= 0) {
        seen.score = t->ends[track->end].cell.score;
        seen.how = OCT_CELLS_SNAKE;
    }
    return seen;
}

static void begin_tracks(struct oct_cells_tracker *t)
{
    for (unsigned i = 0; i < t->n_tracks; i++)
        oct_crowd_add(&t->crowd, t->tracks[i].x, t->tracks[i].y);
    for (unsigned c = 0; c < t->n_cells; c++) {
        const struct oct_cell *cell = &t->cells[c];
        if (t->is_paired[c] || oct_crowd_is_near(&t->crowd, cell->x, cell->y))
            continue;
        struct oct_track *track = &t->tracks[t->n_tracks++];
        oct_track_begin(track, ++t->n_born, cell, &t->setup.params);
        track->pair = (int32_t)c;
        track->end = -1;
        oct_crowd_add(&t->crowd, cell->x, cell->y);
    }
}

enum oct_err oct_tracker_take_over(struct oct_cells_tracker *t, struct oct_error *err)
{
    const enum oct_err e =
        oct_crowd_reset(&t->crowd, t->setup.params.radius, (size_t)t->n_cells + t->n_tracks, err);
    if (e)
        return e;
    unsigned n = 0;
    for (unsigned i = 0; i < t->n_tracks; i++)
        if (update(t, &t->tracks[i]))
            t->tracks[n++] = t->tracks[i];
    t->n_tracks = n;
    begin_tracks(t);
    for (unsigned i = 0; i < t->n_tracks; i++)
        t->seen[i] = seen_of(t, &t->tracks[i]);
    return OCT_OK;
}
