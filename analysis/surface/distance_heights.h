/* Distances to the triangles of a height map, a B-scan of voxels at a time, for three instruction
 * sets. Private to distance_heights.c. */
#ifndef OCT_ANALYSIS_SURFACE_DISTANCE_HEIGHTS_H
#define OCT_ANALYSIS_SURFACE_DISTANCE_HEIGHTS_H

#include <stddef.h>
#include <stdint.h>

struct oct_distance_map {
    const float *heights; /* of A-line (b, j) at b * row + j; `far` more on all sides */
    ptrdiff_t row, far;   /* far: reach, rounded up */
    float reach;
    uint32_t n_j, n_d;
};

struct oct_distance_columns {
    const char *name; /* "avx512", "avx2", "plain" */
    /* phi: [n_j][n_d] of B-scan b. */
    void (*run)(const struct oct_distance_map *map, uint32_t b, float *phi);
};

extern const struct oct_distance_columns oct_distance_columns_plain;
#if defined(__x86_64__)
extern const struct oct_distance_columns oct_distance_columns_avx2, oct_distance_columns_avx512;
#endif

/* By name, or the best that this CPU can run with "auto"; NULL: it cannot run that. */
const struct oct_distance_columns *oct_distance_columns_select(const char *name);

#endif
