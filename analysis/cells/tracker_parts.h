/* The tracker's inside: what its steps share. Private to the tracker.
 *
 * A picture's steps up to the last that can fail only fill what belongs to the picture; then the
 * tracks take it over. So a picture that failed leaves the tracks as they were. */
#ifndef OCT_ANALYSIS_CELLS_TRACKER_PARTS_H
#define OCT_ANALYSIS_CELLS_TRACKER_PARTS_H

#include "analysis/cells/crowd.h"
#include "analysis/cells/link.h"
#include "analysis/cells/track.h"

struct oct_cells_tracker {
    struct oct_cells_tracker_setup setup;
    uint64_t n_born;
    uint32_t since_search; /* frames; 0: none was searched yet */
    uint32_t left_out;     /* pictures since the last that was taken over */

    struct oct_track *tracks; /* alive, in order of number */
    unsigned n_tracks;
    size_t
        n_tracks_most; /* what tracks, starts, ends, links, pair, followed and seen have room for */
    struct oct_cells_seen *seen;

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
    struct oct_link_cell *link_cells; /* [OCT_CELLS_MOST] */
    bool *is_paired;                  /* [OCT_CELLS_MOST] cells */
    struct oct_crowd crowd;
};

/* ---- tracker_pair.c: steps 1 and 2 ---- */

/* Predicts every track and pairs those that have not left with the picture's cells: fills their
 * predictions and pairs. */
enum oct_err oct_tracker_pair(struct oct_cells_tracker *tracker, struct oct_error *err);

/* ---- tracker_follow.c: step 3 ---- */

/* Snakes of the tracks that need one: fills their ends, -1 where there is none or it does not
 * count. */
enum oct_err oct_tracker_follow(struct oct_cells_tracker *tracker, struct oct_error *err);

/* ---- tracker_births.c: steps 4 and 5 ---- */

/* The tracks take over the picture; those that ended are left out, and new ones begin. */
enum oct_err oct_tracker_take_over(struct oct_cells_tracker *tracker, struct oct_error *err);

#endif
