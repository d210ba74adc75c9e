/* Cells of successive pictures linked to tracks, on the host: the same steps for both engines, in
 * the same order, so that both give the same tracks.
 *
 * With params.predicts, of each picture:
 *  1. Every track predicts its cell: the last position plus its velocity, per frame. The first
 *     displacement is the velocity, later v = (v + displacement) / 2; a displacement is that from
 *     where the cell was last seen, divided by the frames since. A prediction whose pixel lies
 *     outside the part of the picture where S is defined ends the track: the cell has left.
 *  2. Detected cells (every detect_every frames) that stand above the picture's texture (texture.h)
 *     and tracks are paired with the least sum of
 *     (distance / gate)^2; a pair beyond the gate costs as much as none, 1. Gate: max_step (2 R) a
 *     frame while a track has no velocity, else R sqrt(1 + misses + pictures left out); at most the
 *     picture's diagonal.
 *     A cell may be two that cover each other: it is within 1.5 R of the prediction of a track
 *     without a pair, and nearer to its own track's than the two predictions are to each other. Its
 *     own track then coasts, which is no miss; nor is it one of the other track, if the two move
 *     against each other by more than R / 10 a frame. Both have velocities.
 *  3. Tracks without a pair: a snake from the prediction, along (sign of vx, 0) or the flow. It
 *     counts if it stayed in its window and the cell that it gives lies within the gate, at an |S|
 *     of at least 0.7 threshold, with no other cell of this picture within R; of two such snakes
 *     the older track's counts.
 *     Else the cell coasts: it is where it was predicted. A snake starts with the radii of the
 *     snake by which its cell was last seen, or with the refined radius if it was detected.
 *  4. A frame in which it coasted, or was looked for and not detected, is a miss. A detection
 *     forgets the misses, a snake does not. A track stands `memory` misses; the next one ends it
 *     where it was last seen.
 *  5. Detected cells without a pair, farther than R from every track, begin tracks.
 * Without predicts (Boyer 2009): a snake from the last snake's position in every frame after the
 * first, along (1, 1), which always counts while it is defined, with the last snake's radii, at
 * first R; detected cells farther than R from every track begin tracks; a track ends when its snake
 * is not defined.
 *
 * Pictures left out (live) are frames: of the prediction, of displacements and of detect_every;
 * they are no misses.
 *
 * Tracks are numbered from 1 in order of birth, cells of one picture in raster order. Memory:
 * tracks alive and one picture's cells. One thread uses a tracker at a time. */
#ifndef OCT_ANALYSIS_CELLS_TRACKER_H
#define OCT_ANALYSIS_CELLS_TRACKER_H

#include "analysis/cells/engine.h"

#define OCT_CELLS_MOST 65536u /* cells of a picture that are looked at */

enum oct_cells_how { OCT_CELLS_DETECTED, OCT_CELLS_SNAKE, OCT_CELLS_COASTED, OCT_CELLS_N_HOWS };
extern const char *const oct_cells_how_names[OCT_CELLS_N_HOWS + 1]; /* "detected", ..; NULL */

/* A cell of the newest picture. */
struct oct_cells_seen {
    uint64_t track;  /* 0: detection alone */
    uint32_t n_seen; /* pictures in which the track was seen so far, this one included */
    uint32_t before; /* how many frames ago it was last seen before this; 0: it begins here */
    double x, y, radius;
    double last_x, last_y; /* where that was */
    float score;           /* NaN: coasted */
    enum oct_cells_how how;
};

struct oct_cells_tracker_setup {
    uint32_t height, width;
    struct oct_cells_params params;
    bool detect_only; /* no tracks; every picture is searched */
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

/* The newest picture's snakes, in the order of follow, for maps: the numbers of their tracks, and
 * their ends. Valid until the next push. */
const uint64_t *oct_cells_tracker_followed(const struct oct_cells_tracker *tracker, unsigned *n);
const struct oct_cell_end *oct_cells_tracker_ends(const struct oct_cells_tracker *tracker);

/* The longest step of a track without velocity from the next picture on, px a frame; 0: 2 R. For
 * films that know their speed in um/s and their times. */
void oct_cells_tracker_set_max_step(struct oct_cells_tracker *tracker, double max_step);

/* Another film begins: all tracks end; numbers go on; the next picture is searched. */
void oct_cells_tracker_reset(struct oct_cells_tracker *tracker);

#endif
