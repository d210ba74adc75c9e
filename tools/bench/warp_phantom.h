/* A pair of textured volumes whose displacement is known: the moving one is T, a sum of cubic
 * B-splines with random coefficients every 4 and every 12 voxels; the fixed one is T(x - u(x)),
 * computed and not interpolated, u a sum of products of sines of a voxel or two. Both have normal
 * noise of 2 % of their range of 0 to 1. The same numbers each time. */
#ifndef OCT_TOOLS_BENCH_WARP_PHANTOM_H
#define OCT_TOOLS_BENCH_WARP_PHANTOM_H

#include "pipeline/base/err.h"

#include <stdint.h>

struct oct_workers;

#define OCT_BENCH_WARP_TERMS 2u

struct oct_bench_warp_phantom {
    uint32_t side;
    float *fixed, *moving; /* [side][side][side] */
    double mean;           /* of |u|, voxels */

    /* u_c(v, m, d) = amplitude sum_t of the product of wave[c][t][axis][place] */
    double amplitude;
    double *wave[3][OCT_BENCH_WARP_TERMS][3]; /* [side] each */
};

/* *phantom is empty on error. OCT_E_NO_MEMORY. */
enum oct_err oct_bench_warp_phantom_make(struct oct_bench_warp_phantom *phantom, uint32_t side,
                                         struct oct_workers *workers, struct oct_error *err);
void oct_bench_warp_phantom_finish(struct oct_bench_warp_phantom *phantom); /* empty is fine */

/* |found - u| over voxels at least 8 from the border: the mean, and what 95 % are below. */
void oct_bench_warp_phantom_error(const struct oct_bench_warp_phantom *phantom, const float *found,
                                  double *mean, double *p95);

#endif
