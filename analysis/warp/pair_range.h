/* Intensities of two volumes on one scale, for pair.c. Any thread. */
#ifndef OCT_ANALYSIS_WARP_PAIR_RANGE_H
#define OCT_ANALYSIS_WARP_PAIR_RANGE_H

#include "pipeline/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct oct_workers;

/* What becomes 0 and 1: the percentiles 0.5 and 99.5 of the finite values of both volumes, or the
 * least and the greatest of them where both percentiles are one value. n: of each. OCT_E_ARG: one
 * of them is constant or has nothing finite; OCT_E_NO_MEMORY. */
enum oct_err oct_warp_range(const float *fixed, const float *moving, size_t n, double range[2],
                            struct oct_error *err);

/* to = from on that scale, within 0 to 1; what is not finite becomes 0. */
void oct_warp_scale(const float *from, size_t n, const double range[2], struct oct_workers *workers,
                    float *to);

/* In place of what is not finite in `from`, [V][M][D], `to` gets what is beside it: of the A-line
 * before it, or behind it; of the B-scan where a depth is nowhere finite in it. Without such a hole
 * an edge appears there, which draws the field. Where nothing is finite at a depth, `to` stays. */
void oct_warp_fill(const float *from, const uint32_t dims[3], float *to);

#endif
