/* Cells of a film in memory: a row a cell and frame, in order of frame and then of track. A track's
 * rows stay only if it was seen often enough, and up to where it was last seen; that is known when
 * it has ended, so rows of other tracks are held until then. One thread. */
#ifndef OCT_TOOLS_CELLS_ROWS_H
#define OCT_TOOLS_CELLS_ROWS_H

#include "analysis/cells/cells.h"

#include <stddef.h>

struct oct_cells_row {
    uint64_t frame, track; /* track 0: detection alone */
    double time_s;         /* NaN: unknown */
    double x_px, y_px;     /* of the original picture */
    double radius_px;      /* of the searched picture */
    double speed_um_s;     /* NaN: unknown, or the track begins */
    double speed_px;       /* a frame, from where it was last seen; NaN: the track begins */
    float score;           /* NaN: coasted */
    enum oct_cells_how how;
};

struct oct_cells_rows_track; /* what is known of a track */

struct oct_cells_rows {
    struct oct_cells_row *rows; /* [n] */
    size_t n, room;
    size_t n_pruned;                     /* rows that the last pruning left */
    struct oct_cells_rows_track *tracks; /* [n_tracks], by number - 1 */
    size_t n_tracks, tracks_room;
    uint64_t frame;      /* the newest */
    unsigned min_frames; /* a track that was seen in fewer is none */
};

void oct_cells_rows_init(struct oct_cells_rows *rows, unsigned min_frames);
void oct_cells_rows_finish(struct oct_cells_rows *rows); /* of an empty one too */

/* What the film gave for this frame; frames rise. OCT_E_NO_MEMORY. */
enum oct_err oct_cells_rows_add(struct oct_cells_rows *rows, uint64_t frame,
                                const struct oct_cells_found *found, unsigned n,
                                struct oct_error *err);

/* The film is over: all tracks have ended. */
void oct_cells_rows_end(struct oct_cells_rows *rows);

/* After the end: rows in order of track and then of frame, as indexes into rows: [rows->n], to be
 * freed. NULL: out of memory. */
size_t *oct_cells_rows_by_track(const struct oct_cells_rows *rows);

#endif
