/* What B-scans are registered by, rather than by their pixels. Flat layers say nothing of a shift
 * along the A-lines, and noise hides fractions of a pixel. Masked pixels count for nothing and stay
 * masked. Any thread. */
#ifndef OCT_ANALYSIS_ALIGN_BSCAN_H
#define OCT_ANALYSIS_ALIGN_BSCAN_H

#include "analysis/correlate/picture.h"

#define OCT_BSCAN_SMOOTH_PX 1.5
#define OCT_BSCAN_FLATTEN_LINES 201u

/* Convolves with a Gaussian of sigma_px, at most 3. OCT_E_NO_MEMORY. */
enum oct_err oct_bscan_smooth(struct oct_picture *picture, double sigma_px, struct oct_error *err);

/* Subtracts from every pixel the mean at its depth over the n_lines A-lines around it, fewer at the
 * sides. OCT_E_NO_MEMORY. */
enum oct_err oct_bscan_flatten(struct oct_picture *picture, uint32_t n_lines,
                               struct oct_error *err);

#endif
