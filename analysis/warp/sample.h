/* Values of a volume [V][M][D] between its voxels: trilinear, constant beyond the border. Sides are
 * two or more. */
#ifndef OCT_ANALYSIS_WARP_SAMPLE_H
#define OCT_ANALYSIS_WARP_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* Where a place lies: in the cell of eight voxels that begins at `at`. */
struct oct_warp_cell {
    size_t at, plane, row; /* to the next voxel along the B-scans and the A-lines */
    double part[3];        /* of the higher voxel along each axis */
};

/* Along one axis of n voxels: the lower voxel. */
static inline uint32_t oct_warp_between(double x, uint32_t n, double *part)
{
    const double last = n - 1.0, inside = x > 0 ? (x < last ? x : last) : 0;
    const uint32_t low = inside < last ? (uint32_t)inside : n - 2;
    *part = inside - low;
    return low;
}

static inline struct oct_warp_cell oct_warp_cell_of(const uint32_t dims[3], const double x[3])
{
    struct oct_warp_cell cell = {.plane = (size_t)dims[1] * dims[2], .row = dims[2]};
    for (unsigned i = 0; i < 3; i++)
        cell.at = cell.at * dims[i] + oct_warp_between(x[i], dims[i], &cell.part[i]);
    return cell;
}

static inline double oct_warp_mix(double low, double high, double part)
{
    return low + part * (high - low);
}

static inline double oct_warp_sample(const float *volume, const struct oct_warp_cell *cell)
{
    const float *at = volume + cell->at, *up = at + cell->plane;
    const size_t r = cell->row;
    const double d = cell->part[2], j = cell->part[1];
    const double low = oct_warp_mix(oct_warp_mix((double)at[0], (double)at[1], d),
                                    oct_warp_mix((double)at[r], (double)at[r + 1], d), j);
    const double high = oct_warp_mix(oct_warp_mix((double)up[0], (double)up[1], d),
                                     oct_warp_mix((double)up[r], (double)up[r + 1], d), j);
    return oct_warp_mix(low, high, cell->part[0]);
}

#endif
