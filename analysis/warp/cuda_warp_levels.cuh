/* Volumes of a level and displacements from a level to a finer one, as levels.h says. */
#ifndef OCT_ANALYSIS_WARP_CUDA_WARP_LEVELS_CUH
#define OCT_ANALYSIS_WARP_CUDA_WARP_LEVELS_CUH

#include "analysis/warp/cuda_warp_energy.cuh"

namespace oct_warp
{
/* Along one axis of a volume [outer][side][inner]: voxel i of the level is the sum of n_taps voxels
 * from factor i + first on, constant beyond the border. */
struct shrinking {
    uint32_t outer, inner, side, level_side, factor, n_taps;
    int32_t first;
};

/* One of `volume` and `mask`, or the volume where the mask is 1. */
struct source {
    const float *volume;
    const uint8_t *mask;
};

static __device__ inline float value(const struct source &from, size_t at)
{
    if (!from.mask)
        return from.volume[at];
    return from.mask[at] == 0 ? 0.0f : from.volume ? from.volume[at] : 1.0f;
}

static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    shrink_kernel(struct shrinking s, const float *taps, struct source from, float *to)
{
    const uint32_t i = blockIdx.x * OCT_WARP_THREADS + threadIdx.x;
    if (i >= s.outer * s.level_side * s.inner)
        return;
    const uint32_t line = i / s.inner, outer = line / s.level_side;
    const int32_t first = (int32_t)((line - outer * s.level_side) * s.factor) + s.first;
    const uint32_t at = outer * s.side * s.inner + (i - line * s.inner);
    float sum = 0;
    for (uint32_t t = 0; t < s.n_taps; t++) {
        const uint32_t there = at + inside(first + (int32_t)t, s.side) * s.inner;
        sum = fmaf(taps[t], value(from, there), sum);
    }
    to[i] = sum;
}

/* With a mask: sums over weights; NaN where too little weight is left. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    divide_kernel(const float *sums, const float *weights, size_t n, float *level)
{
    const size_t i = (size_t)blockIdx.x * OCT_WARP_THREADS + threadIdx.x;
    if (i < n)
        level[i] = weights[i] >= OCT_WARP_LEAST_WEIGHT ? sums[i] / weights[i] : NAN;
}

/* Of the finest volume, which is taken as it is: NaN where the mask is 0. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    hide_kernel(const uint8_t *mask, size_t n, float *volume)
{
    const size_t i = (size_t)blockIdx.x * OCT_WARP_THREADS + threadIdx.x;
    if (i < n && mask[i] == 0)
        volume[i] = NAN;
}

/* Finite or not, in the blocks' sums. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    check_kernel(const float *volume, size_t n, uint32_t n_blocks, struct sums *sums)
{
    struct sums own = sums_none();
    for (size_t i = (size_t)blockIdx.x * OCT_WARP_THREADS + threadIdx.x; i < n;
         i += (size_t)n_blocks * OCT_WARP_THREADS)
        own.n_bad += !(fabsf(volume[i]) < INFINITY);
    own = sums_of_block(own);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = own;
}

/* ---- displacements ---- */

/* Where a voxel of the finer level lies between two of the coarser one. */
static __device__ inline uint32_t spread_at(uint32_t i, uint32_t from, uint32_t to, uint32_t side,
                                            float *part)
{
    const double at = ((double)to * i + (to - 1) / 2.0 - (from - 1) / 2.0) / from;
    const double inside = fmax(0.0, fmin(at, side - 1.0));
    const uint32_t low = (uint32_t)inside < side - 1 ? (uint32_t)inside : side - 2;
    *part = (float)(inside - (double)low);
    return low;
}

/* From the level of factor `from`, coarse [3][coarse_box], to that of factor `to`. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    spread_kernel(struct box coarse_box, uint32_t from, struct box box, uint32_t to,
                  const float *coarse, float *fine)
{
    const size_t i = (size_t)blockIdx.x * OCT_WARP_THREADS + threadIdx.x;
    if (i >= box.n)
        return;
    const struct place p = place_of(box, i);
    struct cell cell;
    uint32_t low[3];
    for (int k = 0; k < 3; k++)
        low[k] = spread_at(p.x[k], from, to, coarse_box.side[k], &cell.part[k]);
    cell.at = index_of(coarse_box, low[0], low[1], low[2]);
    const float ratio = (float)from / (float)to;
    for (int k = 0; k < 3; k++)
        fine[k * box.n + i] = ratio * sample(coarse + k * coarse_box.n, coarse_box, cell);
}

/* (1 2 1) / 4 along each axis, the border's beyond the border; fields are [3][box]. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    soften_kernel(struct box box, const float *u, float *soft)
{
    const size_t i = (size_t)blockIdx.x * OCT_WARP_THREADS + threadIdx.x;
    if (i >= box.n)
        return;
    const struct place p = place_of(box, i);
    float sums[3] = {0, 0, 0};
    for (int k = 0; k < 27; k++) {
        const int shift[3] = {k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1};
        uint32_t x[3];
        float weight = 1;
        for (int a = 0; a < 3; a++) {
            const int at = (int)p.x[a] + shift[a], last = (int)box.side[a] - 1;
            x[a] = (uint32_t)(at < 0 ? 0 : at > last ? last : at);
            weight *= shift[a] == 0 ? 0.5F : 0.25F;
        }
        for (int c = 0; c < 3; c++)
            sums[c] += weight * u[c * box.n + index_of(box, x[0], x[1], x[2])];
    }
    for (int c = 0; c < 3; c++)
        soft[c * box.n + i] = sums[c];
}

} // namespace oct_warp

#endif
