/* Peaks of the scores: those of each row, in order. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_PEAKS_CUH
#define OCT_ANALYSIS_CELLS_CUDA_PEAKS_CUH

#include "analysis/cells/cuda_types.cuh"

static __device__ inline bool oct_cells_is_sought(enum oct_cells_polarity polarity, float s)
{
    return polarity == OCT_CELLS_BOTH || (polarity == OCT_CELLS_DARK ? s > 0 : s < 0);
}

#define OCT_CELLS_NEAREST 8u /* of the disk: each pixel looks at them for itself */

/* Whether none of disk[from .. n - 1], by steps, has a larger |S|. disk: the nearest first. */
static __device__ inline bool oct_cells_is_largest(const struct oct_cells_shape &s,
                                                   const float *score,
                                                   const struct oct_cells_offset *disk,
                                                   unsigned from, unsigned n, unsigned step, int x,
                                                   int y)
{
    const float own = fabsf(score[(size_t)y * s.width + (size_t)x]);
    bool largest = true;
#pragma unroll 4
    for (unsigned i = from; i < n; i += step) {
        const int u = x + disk[i].dx, v = y + disk[i].dy;
        const bool inside = u >= 0 && v >= 0 && u < (int)s.width && v < (int)s.height;
        if (inside && fabsf(score[(size_t)v * s.width + (size_t)u]) > own)
            largest = false;
    }
    return largest;
}

/* A block a row of those between the borders; its warps find the peaks, a part of the row each,
 * then they are listed in order. near: NULL, none is. n_row [height] and peaks [height][width]: of
 * the rows between. */
static __global__ void oct_cells_peaks_kernel(const struct oct_cells_shape s, const float *score,
                                              const uint8_t *near,
                                              const struct oct_cells_offset *disk,
                                              struct oct_cells_facts *facts, uint32_t *peaks,
                                              uint32_t *n_row)
{
    __shared__ uint32_t found[OCT_CELLS_THREADS / 32], highest;
    const uint32_t y = s.border + blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned n_nearest = min(OCT_CELLS_NEAREST, s.n_disk);
    uint32_t own_highest = 0, n = 0; /* n: of the row, the same in all threads */
    if (threadIdx.x == 0)
        highest = 0;
    for (uint32_t x0 = s.border; x0 < s.width - s.border; x0 += OCT_CELLS_THREADS) {
        const uint32_t x = x0 + threadIdx.x;
        const size_t at = (size_t)y * s.width + x;
        const float value = x < s.width - s.border ? score[at] : 0;
        const bool sought =
            value != 0 && oct_cells_is_sought(s.polarity, value) && !(near && near[at]);
        own_highest = sought ? max(own_highest, oct_cells_bits(value)) : own_highest;
        const bool may_be = sought && (double)fabsf(value) > s.threshold &&
                            oct_cells_is_largest(s, score, disk, 0, n_nearest, 1, (int)x, (int)y);
        uint32_t left = __ballot_sync(OCT_CELLS_ALL_LANES, may_be), peak = 0;
        while (left) { /* one after another, by the whole warp */
            const uint32_t one = (uint32_t)__ffs((int)left) - 1;
            const bool largest = oct_cells_is_largest(s, score, disk, n_nearest + lane, s.n_disk,
                                                      32, (int)(x - lane + one), (int)y);
            left &= left - 1;
            if (__ballot_sync(OCT_CELLS_ALL_LANES, largest) == OCT_CELLS_ALL_LANES)
                peak |= 1u << one;
        }
        if (lane == 0)
            found[warp] = peak;
        __syncthreads();
        for (uint32_t k = 0; k < OCT_CELLS_THREADS / 32; k++) {
            const uint32_t bits = found[k];
            if (k == warp && (bits >> lane & 1))
                peaks[(size_t)blockIdx.x * s.width + n +
                      (uint32_t)__popc(bits & ((1u << lane) - 1))] = (uint32_t)at;
            n += (uint32_t)__popc(bits);
        }
        __syncthreads();
    }
    if (own_highest)
        atomicMax(&highest, own_highest);
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    n_row[blockIdx.x] = n;
    if (highest)
        atomicMax(&facts->highest, highest);
}

#endif
