/* A picture smoothed, and its gradient: prepare.c on the device. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_PREPARE_CUH
#define OCT_ANALYSIS_CELLS_CUDA_PREPARE_CUH

#include "analysis/cells/cuda_types.cuh"

#include <cfloat>
#include <cmath>

#define OCT_CELLS_EXTENTS 128u /* blocks that look at a picture; at most OCT_CELLS_THREADS */

struct oct_cells_extent {
    double sum;
    uint32_t n;
    float least, most;
};

static __device__ inline void oct_cells_join(struct oct_cells_extent *a,
                                             const struct oct_cells_extent *b)
{
    a->sum += b->sum;
    a->n += b->n;
    a->least = fminf(a->least, b->least);
    a->most = fmaxf(a->most, b->most);
}

/* The extents of all threads into those of thread 0, in the same order each time. */
static __device__ inline void oct_cells_join_all(struct oct_cells_extent *extents)
{
    for (unsigned n = OCT_CELLS_THREADS / 2; n > 0; n /= 2) {
        __syncthreads();
        if (threadIdx.x < n)
            oct_cells_join(&extents[threadIdx.x], &extents[threadIdx.x + n]);
    }
    __syncthreads();
}

/* Of the valid pixels; a block's share to extents[block]. valid: NULL, all are. */
static __global__ void oct_cells_extent_kernel(const float *raw, const uint8_t *valid, uint32_t n,
                                               struct oct_cells_extent *extents)
{
    __shared__ struct oct_cells_extent shared[OCT_CELLS_THREADS];
    struct oct_cells_extent own = {0, 0, FLT_MAX, -FLT_MAX};
    const uint32_t step = OCT_CELLS_EXTENTS * OCT_CELLS_THREADS;
    for (uint32_t i = blockIdx.x * OCT_CELLS_THREADS + threadIdx.x; i < n; i += step) {
        if (valid && !valid[i])
            continue;
        const struct oct_cells_extent pixel = {(double)raw[i], 1, raw[i], raw[i]};
        oct_cells_join(&own, &pixel);
    }
    shared[threadIdx.x] = own;
    oct_cells_join_all(shared);
    if (threadIdx.x == 0)
        extents[blockIdx.x] = shared[0];
}

/* Level and scale (prepare.c), and nothing found yet; one block. */
static __global__ void oct_cells_level_kernel(const struct oct_cells_extent *extents,
                                              struct oct_cells_facts *facts)
{
    __shared__ struct oct_cells_extent shared[OCT_CELLS_THREADS];
    const struct oct_cells_extent none = {0, 0, FLT_MAX, -FLT_MAX};
    shared[threadIdx.x] = threadIdx.x < OCT_CELLS_EXTENTS ? extents[threadIdx.x] : none;
    oct_cells_join_all(shared);
    if (threadIdx.x != 0)
        return;
    const struct oct_cells_extent all = shared[0];
    struct oct_cells_facts found = {};
    found.scale = 1;
    found.least = UINT32_MAX;
    found.is_flat = all.n == 0 || all.least == all.most;
    if (!found.is_flat) {
        int exponent;
        frexp((double)all.most - (double)all.least, &exponent);
        const double unit = ldexp(1.0, exponent - 9);
        found.level = round(all.sum / (double)all.n / unit) * unit;
        found.scale = ldexp(1.0, -exponent);
    }
    *facts = found;
}

/* A segment of OCT_CELLS_THREADS pixels of a row, shifted by the level, scaled, and smoothed in x
 * with its border repeated. */
static __global__ void oct_cells_along_kernel(const float *raw, const struct oct_cells_facts *facts,
                                              const float *taps, unsigned n_taps, uint32_t width,
                                              float *along)
{
    OCT_SHARED(float, segment); /* [n_taps + OCT_CELLS_THREADS + n_taps] */
    const size_t row = (size_t)blockIdx.y * width;
    const int first = (int)(blockIdx.x * OCT_CELLS_THREADS) - (int)n_taps;
    const double level = facts->level, scale = facts->scale;
    for (uint32_t i = threadIdx.x; i < OCT_CELLS_THREADS + 2 * n_taps; i += OCT_CELLS_THREADS) {
        int x = first + (int)i;
        x = x < 0 ? 0 : x < (int)width ? x : (int)width - 1;
        const double value = ((double)raw[row + (size_t)x] - level) * scale;
        segment[i] = facts->is_flat ? 0 : (float)value;
    }
    __syncthreads();
    const uint32_t x = blockIdx.x * OCT_CELLS_THREADS + threadIdx.x;
    if (x >= width)
        return;
    const float *at = segment + n_taps + threadIdx.x;
    float sum = taps[0] * at[0];
    for (int t = 1; t <= (int)n_taps; t++)
        sum += taps[t] * (at[-t] + at[t]);
    along[row + x] = sum;
}

static __global__ void oct_cells_across_kernel(const float *along, const float *taps,
                                               unsigned n_taps, uint32_t height, uint32_t width,
                                               float *pixels)
{
    const uint32_t x = blockIdx.x * OCT_CELLS_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= width)
        return;
    float sum = taps[0] * along[(size_t)y * width + x];
    for (unsigned t = 1; t <= n_taps; t++) {
        const uint32_t above = y > t ? y - t : 0, below = y + t < height ? y + t : height - 1;
        sum += taps[t] * (along[(size_t)above * width + x] + along[(size_t)below * width + x]);
    }
    pixels[(size_t)y * width + x] = sum;
}

static __global__ void oct_cells_gradient_kernel(const float *pixels, uint32_t height,
                                                 uint32_t width, float *gx, float *gy)
{
    const uint32_t x = blockIdx.x * OCT_CELLS_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= width)
        return;
    const uint32_t left = x > 0 ? x - 1 : 0, right = x + 1 < width ? x + 1 : x;
    const uint32_t above = y > 0 ? y - 1 : 0, below = y + 1 < height ? y + 1 : y;
    const size_t row = (size_t)y * width;
    gx[row + x] = (right - left == 2 ? 0.5f : 1.0f) * (pixels[row + right] - pixels[row + left]);
    gy[row + x] = (below - above == 2 ? 0.5f : 1.0f) *
                  (pixels[(size_t)below * width + x] - pixels[(size_t)above * width + x]);
}

#endif
