/* Tracks judged by others that are known to be right: the CLEAR MOT measures (K. Bernardin, R.
 * Stiefelhagen, "Evaluating multiple object tracking performance: the CLEAR MOT metrics", EURASIP
 * J. Image and Video Processing 2008, 246309) and the error of positions.
 *
 * In each frame true cells and found ones are paired, no farther apart than `distance`: first those
 * whose true track and found track were paired when this true track was last found, if both are
 * there and near enough; then the others, with the least sum of squared distances, where a true
 * cell without a pair counts as distance^2 (link.h).
 *
 *   matches: pairs; misses: true cells without one; false: found cells without one
 *   switches: pairs whose true track was last paired with another found track
 *   precision = matches / found;  recall = matches / true
 *   MOTA = 1 - (misses + false + switches) / true
 *   rmse = sqrt(sum of squared distances of pairs / matches)
 *
 * A ratio whose divisor is 0 is NaN. Cells of track 0 belong to no track: they match, and never
 * switch. */
#ifndef OCT_ANALYSIS_CELLS_SCORE_H
#define OCT_ANALYSIS_CELLS_SCORE_H

#include "pipeline/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct oct_score_cell {
    uint64_t frame, track;
    double x, y; /* finite; of one unit with `distance` */
};

struct oct_cells_score {
    uint64_t n_true, n_found, n_matches, n_misses, n_false, n_switches;
    double precision, recall, mota, rmse;
};

/* Sorts both lists by frame and track. Two cells of one frame and one track other than 0:
 * OCT_E_FORMAT, with the frame and the track. OCT_E_ARG: a distance that is not above 0.
 * OCT_E_NO_MEMORY. */
enum oct_err oct_cells_score(struct oct_score_cell *truth, size_t n_true,
                             struct oct_score_cell *found, size_t n_found, double distance,
                             struct oct_cells_score *score, struct oct_error *err);

#endif
