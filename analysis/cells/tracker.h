/* Cells of successive pictures linked to tracks, on the host: the same steps for both engines, in
 * the same order, so that both give the same tracks.
 *
 * With params.predicts, of each picture:
 *  1. Every track predicts its cell: the last position plus its velocity, per frame. The first
 *     displacement is the velocity, later v = (v + displacement) / 2. A prediction outside the part
 *     of the picture where S is defined ends the track: the cell has left.
 *  2. Detected cells (every detect_every frames) and tracks are paired with the least sum of
 *     squared distances; a pair beyond the gate costs as much as none, gate^2. Gate: max_step (2 R),
 *     while a track has no velocity, else R sqrt(1 + misses).
 *  3. Tracks without a pair: a snake from the prediction, along (sign of vx, 0) or the flow. It
 *     counts if it ends within the gate, at an |S| of at least 0.7 threshold, and with no other
 *     cell within R. Else the cell coasts: it is where it was predicted.
 *  4. A frame in which it coasted, or was looked for and not detected, is a miss. After `memory`
 *     misses in a row the track ends where it was last seen.
 *  5. Detected cells without a pair, farther than R from every track, begin tracks.
 * Without predicts (Boyer 2009): a snake from the last position in every frame after the first,
 * along (1, 1), which always counts while it is defined; detected cells farther than R from every
 * track begin tracks; a track ends when its snake is not defined.
 *
 * Tracks are numbered from 1 in order of birth, cells of one picture in raster order. Memory:
 * tracks alive and one picture's cells. One thread uses a tracker at a time. */
#ifndef OCT_ANALYSIS_CELLS_TRACKER_H
#define OCT_ANALYSIS_CELLS_TRACKER_H

#include "analysis/cells/engine.h"

#define OCT_CELLS_MOST 65536u /* cells of a picture that are looked at */

enum oct_cells_how { OCT_CELLS_DETECTED, OCT_CELLS_SNAKE, OCT_CELLS_COASTED, OCT_CELLS_N_HOWS };
extern const char *const oct_cells_how_names[OCT_CELLS_N_HOWS]; /* "detected", ... */

/* A cell of the newest picture. */
struct oct_cells_seen {
    uint64_t track;  /* 0: detection alone */
    uint32_t n_seen; /* pictures in which the track was seen so far, this one included */
    uint32_t before; /* how many pictures ago its previous position was; 0: it begins here */
    double x, y, radius;
    double last_x, last_y; /* that position */
    float score;           /* NaN: coasted */
    enum oct_cells_how how;
};

struct oct_cells_tracker_setup {
    uint32_t height, width;
    struct oct_cells_params params;
    bool detect_only; /* no tracks */
    const struct oct_cells_engine_ops *ops;
    struct oct_cells_engine *engine; /* borrowed; outlives the tracker */
};

struct oct_cells_tracker;

enum oct_err oct_cells_tracker_create(struct oct_cells_tracker **tracker,
                                      const struct oct_cells_tracker_setup *setup,
                                      struct oct_error *err);
void oct_cells_tracker_destroy(struct oct_cells_tracker *tracker); /* NULL is fine */

/* The next picture. (*seen)[0 .. *n_seen - 1], in order of track numbers (detect_only: in raster
 * order), is valid until the next call. `skipped`: pictures left out since the one before (live);
 * they count as frames of the prediction, not as misses. After an error the picture counts as
 * skipped. */
enum oct_err oct_cells_tracker_push(struct oct_cells_tracker *tracker,
                                    const struct oct_picture *picture, unsigned skipped,
                                    const struct oct_cells_seen **seen, unsigned *n_seen,
                                    struct oct_error *err);

/* Whether the newest picture was searched (detect_every). */
bool oct_cells_tracker_detected(const struct oct_cells_tracker *tracker);

/* Of the starts of the newest picture's snakes: track numbers, in the order of follow; for maps. */
const uint64_t *oct_cells_tracker_followed(const struct oct_cells_tracker *tracker, unsigned *n);

/* Another film begins: all tracks end; numbers go on. */
void oct_cells_tracker_reset(struct oct_cells_tracker *tracker);

#endif
