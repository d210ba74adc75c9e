/* Peaks of the scores, in raster order: rows are searched and counted, then each row writes its own
 * behind those of the rows before. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_PEAKS_CUH
#define OCT_ANALYSIS_CELLS_CUDA_PEAKS_CUH

#include "analysis/cells/cuda_types.cuh"

static __device__ inline bool oct_cells_is_sought(enum oct_cells_polarity polarity, float s)
{
    return polarity == OCT_CELLS_BOTH || (polarity == OCT_CELLS_DARK ? s > 0 : s < 0);
}

/* disk [n_disk]: the nearest first. */
static __device__ inline bool oct_cells_is_largest(const struct oct_cells_shape &s,
                                                   const float *score,
                                                   const struct oct_cells_offset *disk, int x,
                                                   int y)
{
    const float own = fabsf(score[(size_t)y * s.width + (size_t)x]);
#pragma unroll 4
    for (unsigned i = 0; i < s.n_disk; i++) {
        const int u = x + disk[i].dx, v = y + disk[i].dy;
        const bool inside = u >= 0 && v >= 0 && u < (int)s.width && v < (int)s.height;
        if (inside && fabsf(score[(size_t)v * s.width + (size_t)u]) > own)
            return false;
    }
    return true;
}

/* A block a row of those between the borders. near: NULL, none is. is_peak [height][width], n_row
 * [height] of the rows between. */
static __global__ void oct_cells_peaks_kernel(const struct oct_cells_shape s, const float *score,
                                              const uint8_t *near,
                                              const struct oct_cells_offset *disk,
                                              struct oct_cells_facts *facts, uint8_t *is_peak,
                                              uint32_t *n_row)
{
    __shared__ uint32_t n, highest;
    const uint32_t y = s.border + blockIdx.x;
    uint32_t own_n = 0, own_highest = 0;
    if (threadIdx.x == 0)
        n = highest = 0;
    __syncthreads();
    for (uint32_t x = s.border + threadIdx.x; x < s.width - s.border; x += OCT_CELLS_THREADS) {
        const size_t at = (size_t)y * s.width + x;
        const float value = score[at];
        const bool sought = oct_cells_is_sought(s.polarity, value) && !(near && near[at]);
        const bool peak = sought && (double)fabsf(value) > s.threshold &&
                          oct_cells_is_largest(s, score, disk, (int)x, (int)y);
        is_peak[at] = peak;
        own_n += peak;
        own_highest = sought ? max(own_highest, oct_cells_bits(value)) : own_highest;
    }
    if (own_n)
        atomicAdd(&n, own_n);
    if (own_highest)
        atomicMax(&highest, own_highest);
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    n_row[blockIdx.x] = n;
    if (highest)
        atomicMax(&facts->highest, highest);
}

/* A block a row, as above. peaks [height * width]: their pixels. */
static __global__ void oct_cells_list_kernel(const struct oct_cells_shape s, const uint8_t *is_peak,
                                             const uint32_t *n_row, struct oct_cells_facts *facts,
                                             uint32_t *peaks)
{
    __shared__ uint32_t before;
    __shared__ uint8_t flags[OCT_CELLS_THREADS];
    const uint32_t y = s.border + blockIdx.x, n_rows = s.height - 2 * s.border;
    const bool is_last = blockIdx.x + 1 == n_rows;
    if (n_row[blockIdx.x] == 0 && !is_last)
        return;
    if (threadIdx.x == 0)
        before = 0;
    __syncthreads();
    uint32_t own = 0;
    for (uint32_t i = threadIdx.x; i < blockIdx.x; i += OCT_CELLS_THREADS)
        own += n_row[i];
    atomicAdd(&before, own);
    __syncthreads();
    uint32_t first = before;
    if (is_last && threadIdx.x == 0)
        facts->n_peaks = first + n_row[blockIdx.x];
    for (uint32_t x0 = s.border; x0 < s.width - s.border; x0 += OCT_CELLS_THREADS) {
        const uint32_t x = x0 + threadIdx.x, end = first + n_row[blockIdx.x];
        const size_t at = (size_t)y * s.width + x;
        flags[threadIdx.x] = x < s.width - s.border && is_peak[at];
        __syncthreads();
        uint32_t to = first;
        for (unsigned i = 0; i < threadIdx.x && to < end; i++)
            to += flags[i];
        if (flags[threadIdx.x])
            peaks[to] = (uint32_t)at;
        for (unsigned i = threadIdx.x; i < OCT_CELLS_THREADS; i++)
            to += flags[i];
        first = to; /* the same for all threads */
        __syncthreads();
    }
}

#endif
