/* The most similar patches of a band, exactly: m nearest neighbours in n^3 dimensions.
 *
 *     D(x, y) = sum over the n^3 patch of (phi[x] - phi[y])^2
 *
 * of differences of f32 that are squared and summed in double, so that those kept are those that a
 * sort of the whole band would keep. A patch that reaches beyond the box sees the nearest voxel of
 * the box. */
#ifndef OCT_ANALYSIS_LAYERS_DENOISE_PATCH_SEARCH_H
#define OCT_ANALYSIS_LAYERS_DENOISE_PATCH_SEARCH_H

#include "pipeline/base/err.h"
#include "pipeline/base/simd.h"

#include <stdint.h>

struct oct_workers;

#define OCT_PATCH_SEARCH_MOST_VOXELS (UINT32_C(1) << 24)
#define OCT_PATCH_SEARCH_MOST_KEPT 512u

struct oct_patch_search_setup {
    const float *phi;       /* [n_b][n_j][n_d], finite in every patch of the band */
    const uint32_t *dims;   /* n_b, n_j, n_d */
    const uint32_t *voxels; /* [n] raster indices of the band, ascending */
    uint32_t n;
    unsigned patch, most;        /* 3, 5 or 7; 1 to OCT_PATCH_SEARCH_MOST_KEPT */
    struct oct_workers *workers; /* NULL: the caller alone */
};

/* For each voxel of the band the `most` others of least D, ascending in (D, number): number and
 * distance (D, INFINITY beyond f32), [n][most]; numbers are places in `voxels`. With fewer than
 * `most` others the rest is UINT32_MAX and INFINITY. Equals whose D is rounded differently come in
 * any order. *n_patches: pairs computed or ruled out by a bound; may be NULL. The same bytes for
 * any number of threads. OCT_E_ARG; OCT_E_NO_MEMORY says how many bytes it would take. Any
 * thread. */
enum oct_err oct_patch_search(const struct oct_patch_search_setup *setup, uint32_t *number,
                              float *distance, uint64_t *n_patches, struct oct_error *err);

/* For patch_search*.c: blocks of 16 patches, [n_columns][16] coordinates each. */
#define OCT_PATCH_LANES 16u
#define OCT_PATCH_HEAD 8u /* coordinates of boxes */

struct oct_patch_bounds {
    /* The squared distances of n boxes from the one of number `own`; low, high: [HEAD][n]. */
    void (*boxes)(const float *low, const float *high, uint32_t n, uint32_t own, float *distance);
    /* near[i], bit k: the squared distance of patch k of y from patch i of x does not exceed
     * reach[i], or is no number. */
    void (*compare)(const float *x, const float *y, unsigned n_columns, const float *reach,
                    uint16_t near[OCT_PATCH_LANES]);
};

OCT_SIMD_TABLES(struct oct_patch_bounds, oct_patch_bounds);

#endif
