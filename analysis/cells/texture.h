/* What a picture's own texture looks like to a search for cells, and the margin above it. Private
 * to the tracker, on the host: the same for both engines.
 *
 * GICOV does not see contrast: a weak round blob of a static texture in a picture with little noise
 * scores as a cell. Its edge is what tells them apart:
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
#ifndef OCT_ANALYSIS_CELLS_TEXTURE_H
#define OCT_ANALYSIS_CELLS_TEXTURE_H

#include "analysis/cells/crowd.h"
#include "analysis/cells/engine.h"

/* Leaves of cells[0 .. n - 1] those that stand above the picture's texture, in their order, and
 * returns how many in *n. crowd is overwritten. OCT_E_NO_MEMORY: cells are as they were. */
enum oct_err oct_cells_above_texture(const struct oct_cells_params *params,
                                     const struct oct_picture *picture, struct oct_crowd *crowd,
                                     struct oct_cell *cells, unsigned *n, struct oct_error *err);

#endif
