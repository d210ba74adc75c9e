/* Scores of circles at all pixels: gicov.h has the sums. A block scores a tile of pixels, each
 * thread several at once, from gradients in shared memory; of circles that are too large for it
 * from memory. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_GICOV_CUH
#define OCT_ANALYSIS_CELLS_CUDA_GICOV_CUH

#include "analysis/cells/cuda_types.cuh"

#define OCT_CELLS_TILE_COLUMNS 64u
#define OCT_CELLS_PER_THREAD 3u
#define OCT_CELLS_ROW_STEP (OCT_CELLS_THREADS / OCT_CELLS_TILE_COLUMNS)
#define OCT_CELLS_TILE_ROWS (OCT_CELLS_ROW_STEP * OCT_CELLS_PER_THREAD)

/* Samples lie within `reach` of a pixel. */
static __host__ __device__ inline uint32_t oct_cells_reach(const struct oct_cells_shape &s)
{
    return s.border - 2;
}

static __host__ __device__ inline uint32_t oct_cells_tile_pitch(const struct oct_cells_shape &s)
{
    return OCT_CELLS_TILE_COLUMNS + 2 * oct_cells_reach(s);
}

static inline size_t oct_cells_tile_bytes(const struct oct_cells_shape &s)
{
    return (size_t)oct_cells_tile_pitch(s) * (OCT_CELLS_TILE_ROWS + 2 * oct_cells_reach(s)) *
           sizeof(float2);
}

/* The gradient at a sample: of a tile, or of the planes. */
struct oct_cells_tile {
    const float2 *g;
    __device__ float2 operator()(int at) const
    {
        return g[at];
    }
};
struct oct_cells_whole {
    const float *gx, *gy;
    __device__ float2 operator()(int at) const
    {
        return make_float2(__ldg(gx + at), __ldg(gy + at));
    }
};

struct oct_cells_best {
    float ratio, m, v;
    uint32_t k;
};

static __device__ inline void oct_cells_compare(struct oct_cells_best *best, float sum,
                                                float squares, float pivot, float excess,
                                                uint32_t k, float v0)
{
    const float n = OCT_CELLS_SAMPLES;
    const float rest = fmaf(-excess, pivot, sum), d = rest * (1 / n), m = pivot + d;
    float v = (squares + excess * (pivot * pivot) - rest * d) * (1 / (n - 1));
    v = fmaxf(fmaxf(v, 0) + v0, m * m * 1e-12f);
    const float ratio = m * m / v; /* 0 / 0 is larger than nothing */
    if (ratio > best->ratio) {
        best->ratio = ratio;
        best->m = m;
        best->v = v;
        best->k = k;
    }
}

/* Circle k at N pixels, whose gradients are at[]. */
template <unsigned N, class G>
static __device__ inline void oct_cells_score_circle(struct oct_cells_best *best, const G &g,
                                                     const int *at,
                                                     const struct oct_cells_circle_groups &circle,
                                                     const float4 *table, uint32_t k, float v0)
{
    float pivot[N], sum[N], squares[N];
    for (unsigned i = 0; i < N; i++)
        pivot[i] = sum[i] = squares[i] = 0;
    const float4 *group = table + circle.scouts;
#pragma unroll 4
    for (unsigned s = 0; s < OCT_CELLS_SCOUTS; s++) {
        const float4 e = __ldg(group + s);
        for (unsigned i = 0; i < N; i++) {
            const float2 v = g(at[i] + __float_as_int(e.z));
            pivot[i] = fmaf(v.x, e.x, fmaf(v.y, e.y, pivot[i]));
        }
    }
    group = table + circle.groups;
#pragma unroll 8
    for (unsigned s = 0; s < circle.n_single; s++) {
        const float4 e = __ldg(group + 2 * s);
        for (unsigned i = 0; i < N; i++) {
            const float2 v = g(at[i] + __float_as_int(e.z));
            const float t = fmaf(v.x, e.x, fmaf(v.y, e.y, -pivot[i]));
            sum[i] += t;
            squares[i] = fmaf(t, t, squares[i]);
        }
    }
    group += 2 * (size_t)circle.n_single;
#pragma unroll 4
    for (unsigned s = 0; s < circle.n_joint; s++) {
        const float4 e = __ldg(group + 2 * s), f = __ldg(group + 2 * s + 1);
        for (unsigned i = 0; i < N; i++) {
            const float2 v = g(at[i] + __float_as_int(e.z));
            const float t = fmaf(v.x, e.x, fmaf(v.y, e.y, -e.w * pivot[i]));
            sum[i] = fmaf(e.w, t, sum[i]);
            squares[i] = fmaf(t, t, fmaf(f.x, fmaf(v.x, v.x, v.y * v.y), squares[i]));
        }
    }
    for (unsigned i = 0; i < N; i++)
        oct_cells_compare(&best[i], sum[i], squares[i], pivot[i], circle.excess, k, v0);
}

static __device__ inline float oct_cells_score_of(const struct oct_cells_best &best)
{
    return best.m / sqrtf(best.v);
}

/* The tile whose first pixel is (x0, y0); beyond the picture its border is repeated. */
static __device__ inline void oct_cells_load_tile(const struct oct_cells_shape &s, const float *gx,
                                                  const float *gy, uint32_t x0, uint32_t y0,
                                                  float2 *tile)
{
    const uint32_t pitch = oct_cells_tile_pitch(s), reach = oct_cells_reach(s);
    const uint32_t rows = OCT_CELLS_TILE_ROWS + 2 * reach;
    const uint32_t own = threadIdx.x % 32;
    for (uint32_t v = threadIdx.x / 32; v < rows; v += OCT_CELLS_THREADS / 32) {
        const size_t row = (size_t)min(y0 - reach + v, s.height - 1) * s.width;
        for (uint32_t u = own; u < pitch; u += 32) {
            const size_t from = row + min(x0 - reach + u, s.width - 1);
            tile[v * pitch + u] = make_float2(gx[from], gy[from]);
        }
    }
    __syncthreads();
}

/* circles [n_circles], table: of the tile's pitch, or of the width. */
template <bool TILED>
static __global__ void __launch_bounds__(OCT_CELLS_THREADS)
    oct_cells_score_kernel(const struct oct_cells_shape s,
                           const struct oct_cells_circle_groups *circles, const float4 *table,
                           const struct oct_cells_facts *facts, struct oct_cells_planes planes)
{
    OCT_SHARED(float2, shared);
    const uint32_t x0 = s.border + blockIdx.x * OCT_CELLS_TILE_COLUMNS;
    const uint32_t y0 = s.border + blockIdx.y * OCT_CELLS_TILE_ROWS;
    const uint32_t column = threadIdx.x % OCT_CELLS_TILE_COLUMNS;
    const uint32_t row = threadIdx.x / OCT_CELLS_TILE_COLUMNS, x = x0 + column;
    const uint32_t x_end = s.width - s.border, y_end = s.height - s.border;
    const float v0 = facts->v0;
    struct oct_cells_best best[OCT_CELLS_PER_THREAD];
    int at[OCT_CELLS_PER_THREAD];
    if (TILED)
        oct_cells_load_tile(s, planes.gx, planes.gy, x0, y0, shared);
    for (unsigned i = 0; i < OCT_CELLS_PER_THREAD; i++) {
        const uint32_t v = row + i * OCT_CELLS_ROW_STEP, reach = oct_cells_reach(s);
        best[i] = {0, 0, 1, 0};
        if (TILED)
            at[i] = (int)((v + reach) * oct_cells_tile_pitch(s) + column + reach);
        else /* outside: of the last one */
            at[i] = (int)(min(y0 + v, y_end - 1) * s.width + min(x, x_end - 1));
    }
    const struct oct_cells_tile tile = {shared};
    const struct oct_cells_whole whole = {planes.gx, planes.gy};
    for (uint32_t k = 0; k < s.n_circles; k++) {
        if (TILED)
            oct_cells_score_circle<OCT_CELLS_PER_THREAD>(best, tile, at, circles[k], table, k, v0);
        else
            oct_cells_score_circle<OCT_CELLS_PER_THREAD>(best, whole, at, circles[k], table, k, v0);
    }
    for (unsigned i = 0; i < OCT_CELLS_PER_THREAD; i++) {
        const uint32_t y = y0 + row + i * OCT_CELLS_ROW_STEP;
        if (x >= x_end || y >= y_end)
            continue;
        planes.score[(size_t)y * s.width + x] = oct_cells_score_of(best[i]);
        planes.best[(size_t)y * s.width + x] = (uint8_t)best[i].k;
    }
}

/* No score anywhere. */
static __global__ void oct_cells_no_score_kernel(struct oct_cells_planes planes, uint32_t n)
{
    const uint32_t i = blockIdx.x * OCT_CELLS_THREADS + threadIdx.x;
    if (i >= n)
        return;
    planes.score[i] = 0;
    planes.best[i] = OCT_CELLS_NO_CIRCLE;
}

#endif
