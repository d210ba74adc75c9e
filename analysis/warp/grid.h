/* Volumes as the registration of two of them takes them, and fields over them: f32, [V][M][D],
 * depth fastest. A displacement is three such fields, [3][V][M][D]: along the B-scans, the A-lines
 * and the depth, in voxels. Fixed voxel x lies at h(x) = x - u(x) of the moving volume. */
#ifndef OCT_ANALYSIS_WARP_GRID_H
#define OCT_ANALYSIS_WARP_GRID_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oct_warp_grid {
    uint32_t dims[3];  /* V, M, D */
    double spacing[3]; /* of a voxel along each: um, or 1 where the file does not know them */
    bool in_um;        /* which of the two */
};

static inline size_t oct_warp_n_voxels(const struct oct_warp_grid *grid)
{
    return (size_t)grid->dims[0] * grid->dims[1] * grid->dims[2];
}

#define OCT_WARP_LEAST_SIDE 4u
#define OCT_WARP_MOST_VOXELS (UINT64_C(1) << 31)

#endif
