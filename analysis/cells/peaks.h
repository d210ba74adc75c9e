/* Peaks of a map of scores. */
#ifndef OCT_ANALYSIS_CELLS_PEAKS_H
#define OCT_ANALYSIS_CELLS_PEAKS_H

#include "analysis/cells/params.h"
#include "pipeline/base/err.h"

#include <stdint.h>

struct oct_workers;
struct oct_cells_peaks;

struct oct_cells_peak {
    uint32_t x, y;
};

/* OCT_E_NO_MEMORY. */
enum oct_err oct_cells_peaks_create(struct oct_cells_peaks **peaks,
                                    const struct oct_cells_params *params, uint32_t height,
                                    uint32_t width, struct oct_workers *workers,
                                    struct oct_error *err);
void oct_cells_peaks_destroy(struct oct_cells_peaks *peaks); /* NULL is fine */

/* score: S [height][width], 0 where it is not defined. near: [height][width], pixels that are no
 * peaks (but may outdo one), or NULL. A peak has |S| above the threshold, S of the polarity, and no
 * larger |S| within round(spacing R); with params.merges of several within 0.6 R the first one
 * stays. *found [n], in raster order, is valid until the next call. *highest: the largest |S| of
 * the polarity, not near. OCT_E_NO_MEMORY. */
enum oct_err oct_cells_peaks_find(struct oct_cells_peaks *peaks, const float *score,
                                  const uint8_t *near, const struct oct_cells_peak **found,
                                  unsigned *n, double *highest, struct oct_error *err);

#endif
