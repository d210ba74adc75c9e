/* What linking the cells of pictures to tracks (cells.h) is made of, on the host: places near one
 * another, least-cost pairs, what stands above a picture's texture. */
#ifndef OCT_ANALYSIS_CELLS_TRACK_H
#define OCT_ANALYSIS_CELLS_TRACK_H

#include "analysis/cells/engine.h"

#include <stddef.h>

/* ---- places in a picture, asked which are near: squares of a distance, by a hash ---- */

struct oct_crowd_place {
    double x, y;
    int32_t next; /* of the same entry of the table, or -1 */
};

struct oct_crowd {
    double distance;
    struct oct_crowd_place *places; /* [n_most] */
    int32_t *table;                 /* [n_table], a power of two; -1: empty */
    size_t n, n_most, n_table;
};

/* Empties it, with room for n_most places. The first call needs *crowd of zeros.
 * OCT_E_NO_MEMORY. */
enum oct_err oct_crowd_reset(struct oct_crowd *crowd, double distance, size_t n_most,
                             struct oct_error *err);
void oct_crowd_finish(struct oct_crowd *crowd);
void oct_crowd_add(struct oct_crowd *crowd, double x, double y);

/* Numbers of places, in the order of add: all that lie within the distance of (x, y), once each,
 * and some farther ones, the first call with a *walk of zeros; -1: no more. */
struct oct_crowd_walk {
    int32_t square, next; /* 1 .. 9; the next place, plus 1 */
};
int32_t oct_crowd_next(const struct oct_crowd *crowd, double x, double y,
                       struct oct_crowd_walk *walk);

/* Whether a place lies within the distance of (x, y), at most. */
bool oct_crowd_is_near(const struct oct_crowd *crowd, double x, double y);

/* ---- least-cost pairs of tracks and detected cells ---- */

#define OCT_CELLS_MOST_PAIRS (1u << 24) /* within gates; of 20 bytes each */

struct oct_link_track {
    double x, y, gate; /* predicted; px */
    double weight;     /* above 0 */
};

/* pair[t]: the cell of track t, or -1. Minimises the sum of weight * distance^2 of pairs and of
 * weight * gate^2 of tracks without one; no pair is farther than the track's gate. Among equal
 * costs it is the pairing that comes first when pairings are compared track by track: the lower
 * cell first, no cell last. Exact, by shortest augmenting paths (Kuhn 1955; Jonker and Volgenant
 * 1987) in the graph of possible pairs: a search never leaves its connected part, so that crowds
 * cost their own size only. Of cells x and y are read, which are finite. OCT_E_ARG: more than
 * OCT_CELLS_MOST_PAIRS are possible; OCT_E_NO_MEMORY. */
enum oct_err oct_cells_link(const struct oct_link_track *tracks, unsigned n_tracks,
                            const struct oct_cell *cells, unsigned n_cells, int32_t *pair,
                            struct oct_error *err);

/* ---- what a picture's own texture looks like to a search, and the margin above it ----
 *
 * GICOV does not see contrast: a weak round blob of a static texture in a picture with little noise
 * scores as a cell. Its edge is what distinguishes them:
 *
 *     c(p, r) = mean of I over circles of r + h {0.6, 1, 1.4} about p, less that of r - h {..}
 *     t^2     = (1.4826 median |c|)^2 - s^2 (1/n_in + 1/n_out)
 *
 * h = R/5 (1 px at least), 48 samples a circle, the nearest pixels. The median is over places 1.5 R
 * apart, some 600 at most, farther than 2 R from every cell found, r of 0.8, 1 and 1.2 R in turns;
 * s is the noise of a pixel, by the median difference of neighbours, n the pixels that the samples
 * fall onto. With fewer than 30 such places, as in a mosaic of cells, t is 0. A cell is dropped
 * where |c| of its own place and radius is
 *   - below 4.5 floor t, or
 *   - below half the median of clear cells, |S| of twice the threshold, if there are three of them,
 *     and its own |S| is below 1.4 thresholds.
 * In films whose texture has a tenth to a seventh of the cells' contrast, blobs had a |c| of 3.3 to
 * 5.6 t, at an |S| of up to 2.3; cells 9 t and more at contrasts to noise of 4 and 8, 6.4 at 2, 5.1
 * at 1, where |S| is that of the blobs and none is clear. Without a floor nothing is dropped. */

/* Leaves of cells[0 .. *n - 1] those that stand above the picture's texture, in their order. crowd
 * is overwritten. OCT_E_NO_MEMORY: cells are as they were. */
enum oct_err oct_cells_above_texture(const struct oct_cells_params *params,
                                     const struct oct_picture *picture, struct oct_crowd *crowd,
                                     struct oct_cell *cells, unsigned *n, struct oct_error *err);

#endif
