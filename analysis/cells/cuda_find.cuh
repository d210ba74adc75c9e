/* Cells of a picture on the device: smoothed, its gradient and noise floor, scores of circles,
 * peaks, and these to fractions of a pixel. find.h has the mathematics. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_FIND_CUH
#define OCT_ANALYSIS_CELLS_CUDA_FIND_CUH

#include "kernels/device/cuda_launch.cuh"
extern "C" {
#include "analysis/cells/find.h"
#include "analysis/cells/follow.h"
}

#include <cfloat>
#include <cmath>

#define OCT_CELLS_THREADS 256u
#define OCT_CELLS_SINGLE 8u /* groups of a portion */
#define OCT_CELLS_JOINT 4u
#define OCT_CELLS_ALL_LANES 0xffffffffu

/* A circle's part of the table of groups (find.h): scouts, single groups, joint groups. A group is
 * a float4, {a, b, offset, w}, a joint one two of them, the second {c}; the offset is an integer in
 * the bits of a float. There are whole portions of single and of joint groups: what is left of the
 * single ones is among the joint ones, which are filled up with groups that add nothing. */
struct oct_cells_circle_groups {
    uint32_t first; /* in the table */
    uint32_t n_single, n_joint;
    float excess;
};

/* What kernels know of the engine. */
struct oct_cells_shape {
    uint32_t height, width, border;
    unsigned n_circles, n_disk;
    struct oct_cells_params params;
    struct oct_snake_angles angles;
    struct oct_cells_refiner refiner;
    double circle_radius[OCT_CELLS_MOST_CIRCLES];
};

/* Found by kernels of one picture for those after them. */
struct oct_cells_facts {
    double level, scale;                  /* find.h */
    uint32_t found, rank, n_equal, least; /* the median */
    uint32_t n_peaks, highest;            /* the bits of the largest |S| sought */
};

/* The picture last taken, on the device; rows `width` apart. */
struct oct_cells_planes {
    float *raw, *along, *pixels; /* as it came; smoothed in x; I' */
    float *gx, *gy;
    float *score;
    uint8_t *best;
    uint8_t *valid, *near; /* of a picture that has masked pixels */
};

static __device__ inline uint32_t oct_cells_bits(float x)
{
    return (uint32_t)__float_as_int(x) & 0x7fffffffu;
}

static __device__ inline float oct_cells_value(uint32_t bits)
{
    return __int_as_float((int)bits);
}

template <class T> static __device__ inline T warp_sum(T x)
{
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(OCT_CELLS_ALL_LANES, x, lanes);
    return x;
}

static inline unsigned oct_cells_blocks(size_t n, unsigned threads)
{
    return (unsigned)((n + threads - 1) / threads);
}

/* ---- the picture ---- */

#define OCT_CELLS_EXTENTS 128u /* blocks that look at a picture; at most OCT_CELLS_THREADS */

struct oct_cells_extent {
    double sum;
    uint32_t n;
    float least, most;
};

static __device__ inline void join(struct oct_cells_extent *a, const struct oct_cells_extent *b)
{
    a->sum += b->sum;
    a->n += b->n;
    a->least = fminf(a->least, b->least);
    a->most = fmaxf(a->most, b->most);
}

/* The extents of all threads into those of thread 0, in the same order each time. */
static __device__ inline void join_all(struct oct_cells_extent *extents)
{
    for (unsigned n = OCT_CELLS_THREADS / 2; n > 0; n /= 2) {
        __syncthreads();
        if (threadIdx.x < n)
            join(&extents[threadIdx.x], &extents[threadIdx.x + n]);
    }
    __syncthreads();
}

/* Of the valid pixels; a block's share to extents[block]. valid: NULL, all are. */
static __global__ void extent_kernel(const float *raw, const uint8_t *valid, uint32_t n,
                                     struct oct_cells_extent *extents)
{
    __shared__ struct oct_cells_extent shared[OCT_CELLS_THREADS];
    struct oct_cells_extent own = {0, 0, FLT_MAX, -FLT_MAX};
    const uint32_t step = OCT_CELLS_EXTENTS * OCT_CELLS_THREADS;
    for (uint32_t i = blockIdx.x * OCT_CELLS_THREADS + threadIdx.x; i < n; i += step) {
        if (valid && !valid[i])
            continue;
        const struct oct_cells_extent pixel = {(double)raw[i], 1, raw[i], raw[i]};
        join(&own, &pixel);
    }
    shared[threadIdx.x] = own;
    join_all(shared);
    if (threadIdx.x == 0)
        extents[blockIdx.x] = shared[0];
}

/* Level and scale, and nothing found yet; one block. */
static __global__ void level_kernel(const struct oct_cells_extent *extents,
                                    struct oct_cells_facts *facts)
{
    __shared__ struct oct_cells_extent shared[OCT_CELLS_THREADS];
    const struct oct_cells_extent none = {0, 0, FLT_MAX, -FLT_MAX};
    shared[threadIdx.x] = threadIdx.x < OCT_CELLS_EXTENTS ? extents[threadIdx.x] : none;
    join_all(shared);
    if (threadIdx.x != 0)
        return;
    const struct oct_cells_extent all = shared[0];
    struct oct_cells_facts found = {};
    found.level = (double)all.least;
    found.scale = 1;
    found.least = UINT32_MAX;
    if (all.n > 0 && all.least != all.most) {
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
static __global__ void along_kernel(const float *raw, const struct oct_cells_facts *facts,
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
        segment[i] = (float)(((double)raw[row + (size_t)x] - level) * scale);
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

static __global__ void across_kernel(const float *along, const float *taps, unsigned n_taps,
                                     uint32_t height, uint32_t width, float *pixels)
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

static __global__ void gradient_kernel(const float *pixels, uint32_t height, uint32_t width,
                                       float *gx, float *gy)
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

/* ---- the median ----
 *
 * The exact median of |gx| and |gy| by radix selection: a histogram and
 * the search in it, three times; then the least value above. Counts are integers: their order does
 * not matter. */

#define OCT_CELLS_BINS 2048u
#define OCT_CELLS_MEDIAN_BLOCKS 132u
#define OCT_CELLS_MEDIAN_PASSES 3

/* Bits first .. first + n - 1 of the 31 that order floats without sign. */
struct oct_cells_digit {
    unsigned first, n;
};

static __host__ __device__ inline struct oct_cells_digit digit_of(int pass)
{
    struct oct_cells_digit digit = {0, 9};
    if (pass < 2)
        digit = {pass == 0 ? 20u : 9u, 11};
    return digit;
}

static __device__ inline void count(uint32_t *counts, uint32_t bits, uint32_t found,
                                    struct oct_cells_digit digit)
{
    const unsigned until = digit.first + digit.n;
    if (bits >> until == found >> until)
        atomicAdd(&counts[(bits >> digit.first) & ((1u << digit.n) - 1)], 1u);
}

/* Adds to bins [OCT_CELLS_BINS] the values whose bits so far are those found. */
static __global__ void count_kernel(const float *gx, const float *gy, const uint8_t *valid,
                                    uint32_t n, int pass, const struct oct_cells_facts *facts,
                                    uint32_t *bins)
{
    __shared__ uint32_t counts[OCT_CELLS_BINS];
    const uint32_t step = OCT_CELLS_MEDIAN_BLOCKS * OCT_CELLS_THREADS, found = facts->found;
    const struct oct_cells_digit digit = digit_of(pass);
    for (uint32_t i = threadIdx.x; i < OCT_CELLS_BINS; i += OCT_CELLS_THREADS)
        counts[i] = 0;
    __syncthreads();
    for (uint32_t i = blockIdx.x * OCT_CELLS_THREADS + threadIdx.x; i < n; i += step) {
        if (valid && !valid[i])
            continue;
        count(counts, oct_cells_bits(gx[i]), found, digit);
        count(counts, oct_cells_bits(gy[i]), found, digit);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < OCT_CELLS_BINS; i += OCT_CELLS_THREADS)
        if (counts[i])
            atomicAdd(&bins[i], counts[i]);
}

/* The bin of the rank sought; empties the bins. One block. */
static __global__ void narrow_kernel(int pass, struct oct_cells_facts *facts, uint32_t *bins)
{
    enum { EACH = OCT_CELLS_BINS / OCT_CELLS_THREADS };
    __shared__ uint32_t sums[2][OCT_CELLS_THREADS]; /* up to a thread's bins, included */
    const unsigned i = threadIdx.x;
    uint32_t *own = bins + i * EACH, n = 0;
    unsigned from = 0;
    for (unsigned k = 0; k < EACH; k++)
        n += own[k];
    sums[0][i] = n;
    for (unsigned d = 1; d < OCT_CELLS_THREADS; d *= 2, from ^= 1) {
        __syncthreads();
        sums[from ^ 1][i] = sums[from][i] + (i >= d ? sums[from][i - d] : 0);
    }
    const uint32_t first_rank = facts->rank;
    __syncthreads();
    const uint32_t total = sums[from][OCT_CELLS_THREADS - 1], end = sums[from][i];
    uint32_t rank = pass == 0 ? total / 2 - 1 : first_rank; /* the lower one of the two middle */
    if (total > 0 && rank >= end - n && rank < end) {
        rank -= end - n;
        unsigned k = 0;
        while (rank >= own[k])
            rank -= own[k++];
        facts->rank = rank;
        facts->n_equal = own[k];
        facts->found |= (i * EACH + k) << digit_of(pass).first;
    }
    for (unsigned k = 0; k < EACH; k++)
        own[k] = 0;
}

/* The least value above the one found, where that is the other middle one. */
static __global__ void least_kernel(const float *gx, const float *gy, const uint8_t *valid,
                                    uint32_t n, struct oct_cells_facts *facts)
{
    __shared__ uint32_t least;
    const uint32_t step = OCT_CELLS_MEDIAN_BLOCKS * OCT_CELLS_THREADS, found = facts->found;
    if (facts->rank + 1 < facts->n_equal)
        return;
    if (threadIdx.x == 0)
        least = UINT32_MAX;
    __syncthreads();
    uint32_t own = UINT32_MAX;
    for (uint32_t i = blockIdx.x * OCT_CELLS_THREADS + threadIdx.x; i < n; i += step) {
        if (valid && !valid[i])
            continue;
        const uint32_t x = oct_cells_bits(gx[i]), y = oct_cells_bits(gy[i]);
        own = x > found ? min(own, x) : own;
        own = y > found ? min(own, y) : own;
    }
    atomicMin(&least, own);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicMin(&facts->least, least);
}

/* v0 of the median found; 0 of a picture of which none was sought. */
static __device__ inline float floor_of(double floor, const struct oct_cells_facts *facts)
{
    const double middle = (double)oct_cells_value(facts->found);
    const bool is_other = facts->rank + 1 >= facts->n_equal;
    const double next = is_other ? (double)oct_cells_value(facts->least) : middle;
    const double sigma = OCT_CELLS_MEDIAN_TO_SIGMA * ((middle + next) / 2);
    return facts->n_equal == 0 ? 0 : (float)(floor * sigma * floor * sigma);
}

/* ---- scores ----
 *
 * Scores of circles at all pixels: find.h has the sums. A block scores a tile of pixels, each
 * thread several at once, from gradients in shared memory; of circles that are too large for it
 * from memory. */

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

static __host__ __device__ inline uint32_t tile_pitch(const struct oct_cells_shape &s)
{
    return OCT_CELLS_TILE_COLUMNS + 2 * oct_cells_reach(s);
}

static inline size_t tile_bytes(const struct oct_cells_shape &s)
{
    return (size_t)tile_pitch(s) * (OCT_CELLS_TILE_ROWS + 2 * oct_cells_reach(s)) * sizeof(float2);
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

static __device__ inline void compare(struct oct_cells_best *best, float sum, float squares,
                                      float pivot, float excess, uint32_t k, float v0)
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
static __device__ inline void find_pivots(float *pivot, const G &g, const float4 *scout)
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
static __device__ inline void score_circle(struct oct_cells_best *best, const G &g,
                                           const struct oct_cells_circle_groups &circle,
                                           const float4 *table, uint32_t k, float v0)
{
    float pivot[N], sum[N] = {0}, squares[N] = {0};
    const float4 *group = table + circle.first;
    find_pivots<N>(pivot, g, group);
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
        compare(&best[i], sum[i], squares[i], pivot[i], circle.excess, k, v0);
}

static __device__ inline float score_of(const struct oct_cells_best &best)
{
    return best.m / sqrtf(best.v);
}

/* The tile whose first pixel is (x0, y0); beyond the picture its border is repeated. */
static __device__ inline void load_tile(const struct oct_cells_shape &s, const float *gx,
                                        const float *gy, uint32_t x0, uint32_t y0, float2 *tile)
{
    const uint32_t pitch = tile_pitch(s), reach = oct_cells_reach(s);
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
    score_kernel(const struct oct_cells_shape s, const struct oct_cells_circle_groups *circles,
                 const float4 *table, const struct oct_cells_facts *facts,
                 struct oct_cells_planes planes)
{
    OCT_SHARED(float2, shared);
    const uint32_t x0 = s.border + blockIdx.x * OCT_CELLS_TILE_COLUMNS;
    const uint32_t y0 = s.border + blockIdx.y * OCT_CELLS_TILE_ROWS;
    const uint32_t row = threadIdx.x / 32, x = x0 + threadIdx.x % 32, y = y0 + row;
    const uint32_t x_end = s.width - s.border, reach = oct_cells_reach(s);
    const float v0 = floor_of(s.params.floor, facts);
    struct oct_cells_best best[OCT_CELLS_PER_THREAD];
#pragma unroll
    for (unsigned i = 0; i < OCT_CELLS_PER_THREAD; i++)
        best[i] = {0, 0, 1, 0};
    if (TILED)
        load_tile(s, planes.gx, planes.gy, x0, y0, shared);
    if (y >= s.height - s.border)
        return;
    if (TILED) {
        const int at = (int)((row + reach) * tile_pitch(s) + threadIdx.x % 32 + reach);
        const struct oct_cells_tile tile = {shared + at};
        for (uint32_t k = 0; k < s.n_circles; k++)
            score_circle<OCT_CELLS_PER_THREAD>(best, tile, circles[k], table, k, v0);
    }
#pragma unroll
    for (unsigned i = 0; i < OCT_CELLS_PER_THREAD; i++) {
        const size_t at = (size_t)y * s.width + x + 32 * i;
        if (x + 32 * i >= x_end)
            continue;
        if (!TILED) {
            const struct oct_cells_whole whole = {planes.gx + at, planes.gy + at};
            for (uint32_t k = 0; k < s.n_circles; k++)
                score_circle<1>(&best[i], whole, circles[k], table, k, v0);
        }
        planes.score[at] = score_of(best[i]);
        planes.best[at] = (uint8_t)best[i].k;
    }
}

/* No score anywhere. */
static __global__ void no_score_kernel(struct oct_cells_planes planes, uint32_t n)
{
    const uint32_t i = blockIdx.x * OCT_CELLS_THREADS + threadIdx.x;
    if (i >= n)
        return;
    planes.score[i] = 0;
    planes.best[i] = OCT_CELLS_NO_CIRCLE;
}

/* ---- peaks ---- */

static __device__ inline bool is_sought(enum oct_cells_polarity polarity, float s)
{
    return polarity == OCT_CELLS_BOTH || (polarity == OCT_CELLS_DARK ? s > 0 : s < 0);
}

#define OCT_CELLS_NEAREST 8u /* of the disk: each pixel looks at them for itself */

/* Whether none of disk[from .. n - 1], by steps, has a larger |S|. disk: the nearest first. */
static __device__ inline bool is_largest(const struct oct_cells_shape &s, const float *score,
                                         const struct oct_cells_offset *disk, unsigned from,
                                         unsigned n, unsigned step, int x, int y)
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

/* A block a row of those between the borders, whose warps list peaks in any order. near: NULL, none
 * is. peaks: room for all pixels. */
static __global__ void peaks_kernel(const struct oct_cells_shape s, const float *score,
                                    const uint8_t *near, const struct oct_cells_offset *disk,
                                    struct oct_cells_facts *facts, uint32_t *peaks)
{
    __shared__ uint32_t highest;
    const uint32_t y = s.border + blockIdx.x, lane = threadIdx.x % 32;
    const unsigned n_nearest = min(OCT_CELLS_NEAREST, s.n_disk);
    uint32_t own_highest = 0;
    if (threadIdx.x == 0)
        highest = 0;
    __syncthreads();
    for (uint32_t x0 = s.border; x0 < s.width - s.border; x0 += OCT_CELLS_THREADS) {
        const uint32_t x = x0 + threadIdx.x;
        const size_t at = (size_t)y * s.width + x;
        const float value = x < s.width - s.border ? score[at] : 0;
        const bool sought =
            value != 0 && is_sought(s.params.polarity, value) && !(near && near[at]);
        own_highest = sought ? max(own_highest, oct_cells_bits(value)) : own_highest;
        const bool may_be = sought && (double)fabsf(value) > s.params.threshold &&
                            is_largest(s, score, disk, 0, n_nearest, 1, (int)x, (int)y);
        uint32_t left = __ballot_sync(OCT_CELLS_ALL_LANES, may_be);
        for (; left; left &= left - 1) { /* one after another, by the whole warp */
            const uint32_t one = x - lane + (uint32_t)__ffs((int)left) - 1;
            const bool largest =
                is_largest(s, score, disk, n_nearest + lane, s.n_disk, 32, (int)one, (int)y);
            if (__ballot_sync(OCT_CELLS_ALL_LANES, largest) == OCT_CELLS_ALL_LANES && lane == 0)
                peaks[atomicAdd(&facts->n_peaks, 1u)] = y * s.width + one;
        }
    }
    if (own_highest)
        atomicMax(&highest, own_highest);
    __syncthreads();
    if (threadIdx.x == 0 && highest)
        atomicMax(&facts->highest, highest);
}

/* ---- refinement ---- */

#define OCT_CELLS_POINTS 27u /* of a round */
#define OCT_CELLS_PARTS 16u  /* of the samples of a point: lanes of a warp */
#define OCT_CELLS_REFINE_THREADS 448u

/* A part of the samples of point n of a round; refine.h says what their sum is of. */
static __device__ inline float edge_part(const struct oct_cells_refiner &refiner,
                                         const struct oct_cells_slopes *slopes,
                                         const struct oct_cells_place &place, double h,
                                         unsigned point, unsigned part)
{
    const int n = (int)point, x = (int)floor(place.x), y = (int)floor(place.y);
    const float u = (float)(place.x - x + h * (n % 3 - 1));
    const float v = (float)(place.y - y + h * (n / 3 % 3 - 1));
    const float r = (float)(place.radius + h * (n / 9 - 1));
    const unsigned each = OCT_CELLS_EDGE_SAMPLES / OCT_CELLS_PARTS;
    float sum = 0;
#pragma unroll
    for (unsigned k = 0; k < each; k++) {
        const unsigned i = part * each + k;
        const float c = refiner.unit[2 * i], s = refiner.unit[2 * i + 1];
        const struct oct_cells_slope g = oct_cells_slope_at(slopes, x, y, u + r * c, v + r * s);
        sum += g.x * c + g.y * s;
    }
    return sum;
}

/* oct_cells_refine_edge by all THREADS of a block, whole warps. place: in shared
 * memory, set before a barrier; what comes of it is behind one. */
template <unsigned THREADS>
static __device__ inline void refine_edge_by_block(const struct oct_cells_shape &s,
                                                   const struct oct_cells_planes &planes,
                                                   struct oct_cells_place *place)
{
    __shared__ float values[OCT_CELLS_POINTS];
    const struct oct_cells_refiner &refiner = s.refiner;
    const struct oct_cells_slopes slopes = {planes.gx, planes.gy, s.width, (int32_t)s.height,
                                            (int32_t)s.width};
    const unsigned i = threadIdx.x;
    if (i == 0)
        place->radius = oct_cells_within(place->radius, refiner.least, refiner.most);
    __syncthreads();
    for (int round = 0; round < OCT_CELLS_EDGE_ROUNDS; round++) {
        const double h = oct_cells_edge_side(round, refiner.radius);
        for (unsigned k = i; k / 32 * 32 < OCT_CELLS_POINTS * OCT_CELLS_PARTS; k += THREADS) {
            const unsigned point = min(k / OCT_CELLS_PARTS, OCT_CELLS_POINTS - 1);
            float sum = edge_part(refiner, &slopes, *place, h, point, k % OCT_CELLS_PARTS);
            for (int lanes = OCT_CELLS_PARTS / 2; lanes > 0; lanes /= 2)
                sum += __shfl_xor_sync(OCT_CELLS_ALL_LANES, sum, lanes);
            if (k == point * OCT_CELLS_PARTS)
                values[point] = fabsf(sum / OCT_CELLS_EDGE_SAMPLES);
        }
        __syncthreads();
        if (i == 0) {
            double step[3];
            oct_cells_edge_step(values, step);
            place->x += h * step[0];
            place->y += h * step[1];
            place->radius =
                oct_cells_within(place->radius + h * step[2], refiner.least, refiner.most);
        }
        __syncthreads();
    }
    if (i == 0)
        place->radius = oct_cells_edge_radius(place->radius, refiner.smooth);
    __syncthreads();
}

/* Peaks first, first + 1, ... to found[0], found[1], ...; a block each. What B-splines refine stays
 * at the pixel. */
static __global__ void __launch_bounds__(OCT_CELLS_REFINE_THREADS)
    refine_kernel(const struct oct_cells_shape *shape, struct oct_cells_planes planes,
                  const uint32_t *peaks, uint32_t first, const struct oct_cells_facts *facts,
                  struct oct_cell *found)
{
    __shared__ struct oct_cells_place place;
    const struct oct_cells_shape &s = *shape;
    if (first + blockIdx.x >= facts->n_peaks)
        return;
    const uint32_t pixel = peaks[first + blockIdx.x], x = pixel % s.width, y = pixel / s.width;
    if (threadIdx.x == 0) {
        place = {(double)x, (double)y, s.circle_radius[planes.best[pixel]]};
        if (s.params.refine == OCT_CELLS_REFINE_PEAK) {
            place.x += oct_cells_vertex_at(planes.score + pixel, 1);
            place.y += oct_cells_vertex_at(planes.score + pixel, s.width);
        }
    }
    __syncthreads();
    if (s.params.refine == OCT_CELLS_REFINE_EDGE)
        refine_edge_by_block<OCT_CELLS_REFINE_THREADS>(s, planes, &place);
    if (threadIdx.x == 0)
        found[blockIdx.x] = {place.x,    place.y,   place.radius, planes.score[pixel],
                             (int32_t)x, (int32_t)y};
}

#endif
