/* Cones of each volume, from above, counted: the live analysis `cones`.
 *
 * Input: pictures, as they are shown. Of each volume that is whole, or has ended, the mean over
 * the depths of the slab (analysis/enface/enface.h) is one picture, in which oct_cones_find
 * (analysis/cones/cones.h) looks for the ring; rows that never came are masked. The spacing of
 * B-scans and that of A-lines may differ: the finer axis is averaged by 2, 4, 8 .. until they
 * differ by less than twice, and the coarser axis is interpolated (cubic, Catmull-Rom) to square
 * pixels (square.h).
 * Without both distances only a picture with as many B-scans as A-lines is taken, its pixels as
 * square, and what is in um is unknown.
 *
 * Result: one row of labelled numbers a volume, f32; NaN: no ring, or unknown:
 *   spacing_px       of the cones counted (count.h), in square pixels
 *   spacing_um       the same
 *   rows_um          distance of their rows, spacing_um sqrt(3) / 2
 *   cells_per_mm2    their density
 *   strength         of the ring, OCT_CONES_LEAST_STRENGTH at least
 *   ring_spacing_px  the spacing by the ring alone
 *   cones            how many were counted
 *   spacing_se_px    standard error of spacing_px
 *   regularity       mean distance of the nearest neighbour / its standard deviation
 * The settings are those of en face; its projection is not used, the slab always is.
 *
 * It works when the volume is whole, on the stage's own thread (it starts no pieces in the worker
 * pool); B-scans that come meanwhile are skipped and counted, and their rows are masked. */
#ifndef OCT_ANALYSIS_CONES_LIVE_H
#define OCT_ANALYSIS_CONES_LIVE_H

#include "analysis/analysis.h"

enum oct_cones_column {
    OCT_CONES_SPACING_PX,
    OCT_CONES_SPACING_UM,
    OCT_CONES_ROWS_UM,
    OCT_CONES_PER_MM2,
    OCT_CONES_STRENGTH,
    OCT_CONES_RING_SPACING_PX,
    OCT_CONES_COUNTED,
    OCT_CONES_SPACING_SE_PX,
    OCT_CONES_REGULARITY,
    OCT_CONES_N_COLUMNS
};

extern const struct oct_analysis_ops oct_cones_cpu; /* settings: struct oct_enface_settings */

#endif
