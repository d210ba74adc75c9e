/* Signed distances in voxels, [n_b][n_j][n_d], d fastest: negative in the tissue, positive outside,
 * |gradient| 1. Any thread. */
#ifndef OCT_ANALYSIS_LAYERS_DENOISE_DISTANCE_H
#define OCT_ANALYSIS_LAYERS_DENOISE_DISTANCE_H

#include "pipeline/base/err.h"
#include "pipeline/base/simd.h"

#include <stddef.h>
#include <stdint.h>

struct oct_workers;

/* Of a surface that cuts every A-line once: heights [n_b][n_j], finite, in depth voxels of the box;
 * the tissue is where d is larger. The surface between A-lines is that of the triangles between
 * their heights, of which two make a square cut from (b, j) to (b + 1, j + 1); beyond the sides it
 * goes on level. Exact to 1e-4 voxel where |phi| <= reach; beyond it the sign is right and |phi| is
 * reach. OCT_E_ARG: a height that is not finite, a reach above OCT_DISTANCE_MOST_REACH. */
#define OCT_DISTANCE_MOST_REACH 64.0
enum oct_err oct_distance_of_heights(const float *heights, const uint32_t dims[3], double reach,
                                     struct oct_workers *workers, float *phi,
                                     struct oct_error *err);

/* Of a volume of 0 and others (tissue): the Euclidean distance to the nearest voxel of the other
 * kind, less the half voxel to the border between them; limited to reach, with which time grows.
 * OCT_E_ARG: only one kind is there. */
enum oct_err oct_distance_of_mask(const uint8_t *mask, const uint32_t dims[3], double reach,
                                  struct oct_workers *workers, float *phi, struct oct_error *err);

/* A B-scan of voxels at a time, for three instruction sets. For distance*.c and tests. */
struct oct_distance_map {
    const float *heights; /* of A-line (b, j) at b * row + j; `far` more on all sides */
    ptrdiff_t row, far;   /* far: reach, rounded up */
    float reach;
    uint32_t n_j, n_d;
};

struct oct_distance_columns {
    /* phi: [n_j][n_d] of B-scan b. */
    void (*run)(const struct oct_distance_map *map, uint32_t b, float *phi);
};

OCT_SIMD_TABLES(struct oct_distance_columns, oct_distance_columns);

/* By name, or the best that this CPU can run with "auto"; NULL: it cannot run that. */
const struct oct_distance_columns *oct_distance_columns_select(const char *name);

#endif
