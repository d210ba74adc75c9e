/* Scores of circles at all pixels: gicov.h has the sums. A block scores a tile of pixels, each
 * thread several at once, from gradients in shared memory; of circles that are too large for it
 * from memory. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_GICOV_CUH
#define OCT_ANALYSIS_CELLS_CUDA_GICOV_CUH

#include "analysis/cells/cuda_types.cuh"

/* A warp scores a row of a tile, and a thread every 32nd pixel of it. */
#define OCT_CELLS_PER_THREAD 3u
#define OCT_CELLS_TILE_ROWS 8u
#define OCT_CELLS_TILE_COLUMNS (32 * OCT_CELLS_PER_THREAD)
#define OCT_CELLS_SCORE_THREADS (32 * OCT_CELLS_TILE_ROWS)

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

/* The gradient about a pixel, and at pixels 32 apart from there: of a tile, or of the planes. */
struct oct_cells_tile {
    const float2 *g;
    __device__ struct oct_cells_tile at(int offset) const
    {
        return {g + offset};
    }
    __device__ float2 gradient(unsigned i) const
    {
        return g[32 * i];
    }
};
struct oct_cells_whole {
    const float *gx, *gy;
    __device__ struct oct_cells_whole at(int offset) const
    {
        return {gx + offset, gy + offset};
    }
    __device__ float2 gradient(unsigned i) const
    {
        return make_float2(__ldg(gx + 32 * i), __ldg(gy + 32 * i));
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

/* p of N pixels, 32 apart, from a circle's scouts. */
template <unsigned N, class G>
static __device__ inline void oct_cells_find_pivots(float *pivot, const G &g, const float4 *scout)
{
#pragma unroll
    for (unsigned i = 0; i < N; i++)
        pivot[i] = 0;
#pragma unroll
    for (unsigned s = 0; s < OCT_CELLS_SCOUTS; s++) {
        const float4 e = __ldg(scout + s);
        const G at = g.at(__float_as_int(e.z));
#pragma unroll
        for (unsigned i = 0; i < N; i++) {
            const float2 v = at.gradient(i);
            pivot[i] = fmaf(v.x, e.x, fmaf(v.y, e.y, pivot[i]));
        }
    }
}

/* Circle k at N pixels, 32 apart. */
template <unsigned N, class G>
static __device__ inline void oct_cells_score_circle(struct oct_cells_best *best, const G &g,
                                                     const struct oct_cells_circle_groups &circle,
                                                     const float4 *table, uint32_t k, float v0)
{
    float pivot[N], sum[N] = {0}, squares[N] = {0};
    const float4 *group = table + circle.first;
    oct_cells_find_pivots<N>(pivot, g, group);
    group += OCT_CELLS_SCOUTS;
    for (const float4 *end = group + circle.n_single; group < end; group += OCT_CELLS_SINGLE) {
#pragma unroll
        for (unsigned s = 0; s < OCT_CELLS_SINGLE; s++) {
            const float4 e = __ldg(group + s);
            const G at = g.at(__float_as_int(e.z));
#pragma unroll
            for (unsigned i = 0; i < N; i++) {
                const float2 v = at.gradient(i);
                const float t = fmaf(v.x, e.x, fmaf(v.y, e.y, -pivot[i]));
                sum[i] += t;
                squares[i] = fmaf(t, t, squares[i]);
            }
        }
    }
    for (const float4 *end = group + 2 * circle.n_joint; group < end;
         group += 2 * OCT_CELLS_JOINT) {
#pragma unroll
        for (unsigned s = 0; s < OCT_CELLS_JOINT; s++) {
            const float4 e = __ldg(group + 2 * s);
            const float c = __ldg(&group[2 * s + 1].x);
            const G at = g.at(__float_as_int(e.z));
#pragma unroll
            for (unsigned i = 0; i < N; i++) {
                const float2 v = at.gradient(i);
                const float t = fmaf(v.x, e.x, fmaf(v.y, e.y, -e.w * pivot[i]));
                sum[i] = fmaf(e.w, t, sum[i]);
                squares[i] = fmaf(t, t, fmaf(c, fmaf(v.x, v.x, v.y * v.y), squares[i]));
            }
        }
    }
#pragma unroll
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
    for (uint32_t v = threadIdx.x / 32; v < rows; v += OCT_CELLS_TILE_ROWS) {
        const size_t row = (size_t)min(y0 - reach + v, s.height - 1) * s.width;
        for (uint32_t u = own; u < pitch; u += 32) {
            const size_t from = row + min(x0 - reach + u, s.width - 1);
            tile[v * pitch + u] = make_float2(gx[from], gy[from]);
        }
    }
    __syncthreads();
}

/* circles [n_circles], table: of the tile's pitch, or of the width. From memory a thread scores one
 * pixel after another, as its last ones may lie beyond the picture. */
template <bool TILED>
static __global__ void __launch_bounds__(OCT_CELLS_SCORE_THREADS, 3)
    oct_cells_score_kernel(const struct oct_cells_shape s,
                           const struct oct_cells_circle_groups *circles, const float4 *table,
                           const struct oct_cells_facts *facts, struct oct_cells_planes planes)
{
    OCT_SHARED(float2, shared);
    const uint32_t x0 = s.border + blockIdx.x * OCT_CELLS_TILE_COLUMNS;
    const uint32_t y0 = s.border + blockIdx.y * OCT_CELLS_TILE_ROWS;
    const uint32_t row = threadIdx.x / 32, x = x0 + threadIdx.x % 32, y = y0 + row;
    const uint32_t x_end = s.width - s.border, reach = oct_cells_reach(s);
    const float v0 = facts->v0;
    struct oct_cells_best best[OCT_CELLS_PER_THREAD];
#pragma unroll
    for (unsigned i = 0; i < OCT_CELLS_PER_THREAD; i++)
        best[i] = {0, 0, 1, 0};
    if (TILED)
        oct_cells_load_tile(s, planes.gx, planes.gy, x0, y0, shared);
    if (y >= s.height - s.border)
        return;
    if (TILED) {
        const int at = (int)((row + reach) * oct_cells_tile_pitch(s) + threadIdx.x % 32 + reach);
        const struct oct_cells_tile tile = {shared + at};
        for (uint32_t k = 0; k < s.n_circles; k++)
            oct_cells_score_circle<OCT_CELLS_PER_THREAD>(best, tile, circles[k], table, k, v0);
    }
#pragma unroll
    for (unsigned i = 0; i < OCT_CELLS_PER_THREAD; i++) {
        const size_t at = (size_t)y * s.width + x + 32 * i;
        if (x + 32 * i >= x_end)
            continue;
        if (!TILED) {
            const struct oct_cells_whole whole = {planes.gx + at, planes.gy + at};
            for (uint32_t k = 0; k < s.n_circles; k++)
                oct_cells_score_circle<1>(&best[i], whole, circles[k], table, k, v0);
        }
        planes.score[at] = oct_cells_score_of(best[i]);
        planes.best[at] = (uint8_t)best[i].k;
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
