/* G of the steps along one axis: a tile in shared memory, and eight neighbours of a thread's own in
 * registers, so that each value of the tile is read once for eight sums. The field is constant
 * beyond the border. */
#ifndef OCT_ANALYSIS_WARP_CUDA_WARP_GAUSS_CUH
#define OCT_ANALYSIS_WARP_CUDA_WARP_GAUSS_CUH

#include "analysis/warp/cuda_warp_course.cuh"

#define OCT_WARP_OWN 8u   /* sums of a thread */
#define OCT_WARP_REACH 96 /* radius, at most */
#define OCT_WARP_TAPS (2 * OCT_WARP_REACH + 1 + OCT_WARP_OWN)
#define OCT_WARP_SPREAD(i) ((i) + (i) / OCT_WARP_OWN) /* eight-fold steps in different banks */

/* Along one axis: taps[0 .. 2 radius], then OCT_WARP_OWN - 1 zeros. */
struct oct_warp_taps {
    const float *taps;
    uint32_t radius;
};

/* The values t to t + 7 of a line, as far as there are n; 8 divides t, and line(t, i) is value
 * t + i. near: the newest taps, by number % 8. */
template <class LINE>
static __device__ inline void oct_warp_smooth_eight(const float *taps, uint32_t t, uint32_t n,
                                                    LINE line, float near[OCT_WARP_OWN],
                                                    float sums[OCT_WARP_OWN])
{
#pragma unroll
    for (uint32_t i = 0; i < OCT_WARP_OWN; i++) {
        if (i >= n)
            break;
        const float x = line(t, i);
        near[i] = taps[t + i];
#pragma unroll
        for (uint32_t k = 0; k < OCT_WARP_OWN; k++)
            sums[k] = fmaf(near[(i + OCT_WARP_OWN - k) % OCT_WARP_OWN], x, sums[k]);
    }
}

/* sums[k]: of taps[t] times value k + t of the line, t = 0 .. 2 radius. */
template <class LINE>
static __device__ inline void oct_warp_smooth(const float *taps, uint32_t radius, LINE line,
                                              float sums[OCT_WARP_OWN])
{
    const uint32_t n = 2 * radius + OCT_WARP_OWN;
    float near[OCT_WARP_OWN];
    uint32_t t = 0;
#pragma unroll
    for (uint32_t k = 0; k < OCT_WARP_OWN; k++)
        sums[k] = near[k] = 0;
    for (; t + OCT_WARP_OWN <= n; t += OCT_WARP_OWN)
        oct_warp_smooth_eight(taps, t, OCT_WARP_OWN, line, near, sums);
    oct_warp_smooth_eight(taps, t, n - t, line, near, sums);
}

/* ---- tiles across the depth: along the A-lines or the B-scans ---- */

/* A tile: 32 depths, OCT_WARP_TILE voxels of the axis and `radius` more at both ends. */
#define OCT_WARP_TILE (OCT_WARP_OWN * OCT_WARP_ROWS)

struct oct_warp_tile {
    uint32_t n_tiles, radius;
};

static inline struct oct_warp_tile oct_warp_tile_of(uint32_t side, uint32_t radius)
{
    return {oct_warp_groups(side, OCT_WARP_TILE), radius};
}

/* Shared memory of such a block; the taps first. */
static inline size_t oct_warp_tile_bytes(const struct oct_warp_tile &tile)
{
    return (OCT_WARP_TAPS + 1 + (size_t)(OCT_WARP_TILE + 2 * tile.radius) * OCT_WARP_LANES) *
           sizeof(float);
}

static __device__ inline void oct_warp_load_taps(const struct oct_warp_taps &g, uint32_t n_threads,
                                                 float *taps)
{
    for (uint32_t i = threadIdx.x; i < 2 * g.radius + OCT_WARP_OWN; i += n_threads)
        taps[i] = g.taps[i];
}

/* line: the axis' voxel 0 at this thread's depth; first: of the tile's own voxels. Some loads are
 * under way at once, whatever the branches around them. */
static __device__ inline void oct_warp_load_tile(const float *line, uint32_t step, uint32_t side,
                                                 const struct oct_warp_tile &t, uint32_t first,
                                                 float *tile)
{
    enum { AT_ONCE = 6, APART = OCT_WARP_ROWS };
    const uint32_t own = threadIdx.x / OCT_WARP_LANES, n = OCT_WARP_TILE + 2 * t.radius;
    const int32_t begin = (int32_t)first - (int32_t)t.radius;
    float *to = tile + threadIdx.x;
    for (uint32_t i = own; i < n; i += AT_ONCE * APART, to += AT_ONCE * OCT_WARP_THREADS) {
        float values[AT_ONCE];
#pragma unroll
        for (uint32_t k = 0; k < AT_ONCE; k++)
            values[k] = line[oct_warp_inside(begin + (int32_t)(i + k * APART), side) * step];
#pragma unroll
        for (uint32_t k = 0; k < AT_ONCE; k++)
            if (i + k * APART < n)
                to[k * OCT_WARP_THREADS] = values[k];
    }
}

static __device__ inline void oct_warp_smooth_tile(const float *taps, const struct oct_warp_tile &t,
                                                   const float *tile, float sums[OCT_WARP_OWN])
{
    const uint32_t lane = threadIdx.x % OCT_WARP_LANES;
    const float *own = tile + threadIdx.x / OCT_WARP_LANES * OCT_WARP_OWN * OCT_WARP_LANES + lane;
    oct_warp_smooth(
        taps, t.radius, [own](uint32_t at, uint32_t i) { return own[(at + i) * OCT_WARP_LANES]; },
        sums);
}

/* Blocks of one volume, along `axis` (0 or 1). */
static inline uint64_t oct_warp_tile_blocks(const struct oct_warp_box &box, int axis,
                                            const struct oct_warp_tile &tile)
{
    return (uint64_t)oct_warp_groups(box.side[2], OCT_WARP_LANES) * box.side[1 - axis] *
           tile.n_tiles;
}

/* Along AXIS, 0 or 1, of volumes from `from` on to those from `to` on; the blocks are those of one
 * volume after those of another. */
template <int AXIS>
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    oct_warp_gauss_kernel(struct oct_warp_box box, struct oct_warp_tile t, struct oct_warp_taps g,
                          const float *from, float *to, const struct oct_warp_course *course)
{
    OCT_SHARED(float, shared);
    if (oct_warp_is_over(course))
        return;
    float *taps = shared, *tile = shared + OCT_WARP_TAPS + 1;
    const uint32_t n_d = oct_warp_groups(box.side[2], OCT_WARP_LANES), n_l = box.side[1 - AXIS];
    const uint32_t d = blockIdx.x % n_d * OCT_WARP_LANES + threadIdx.x % OCT_WARP_LANES;
    const uint32_t rest = blockIdx.x / n_d;
    /* Along the A-lines tiles of one B-scan follow one another, else A-lines of one tile. */
    const uint32_t tile_of = AXIS == 1 ? rest % t.n_tiles : rest / n_l % t.n_tiles;
    const uint32_t across = AXIS == 1 ? rest / t.n_tiles % n_l : rest % n_l;
    const uint32_t volume = rest / t.n_tiles / n_l, first = tile_of * OCT_WARP_TILE;
    const size_t line = volume * box.n + across * box.step[1 - AXIS] + min(d, box.side[2] - 1);
    float sums[OCT_WARP_OWN];
    oct_warp_load_taps(g, OCT_WARP_THREADS, taps);
    oct_warp_load_tile(from + line, box.step[AXIS], box.side[AXIS], t, first, tile);
    __syncthreads();
    oct_warp_smooth_tile(taps, t, tile, sums);
    const uint32_t own = first + threadIdx.x / OCT_WARP_LANES * OCT_WARP_OWN;
    if (d >= box.side[2])
        return;
#pragma unroll
    for (uint32_t k = 0; k < OCT_WARP_OWN; k++)
        if (own + k < box.side[AXIS])
            to[line + (own + k) * box.step[AXIS]] = sums[k];
}

/* ---- the last axis with the step ---- */

/* v, in units of the finest spacing, times `scale` is the step; and times most / longest, where
 * that is below 1. */
struct oct_warp_stride {
    float scale, most;
    const float *longest; /* |v|; NULL: it is not known, and scale alone counts */
};

/* u'(x) = v(x) + u(x - v(x)) */
static __device__ inline void oct_warp_compose_at(const struct oct_warp_box &box,
                                                  const struct oct_warp_place &p, const float *v,
                                                  const float *u, float *moved)
{
    const struct oct_warp_cell cell = oct_warp_cell_of(box, p.x, v[0], v[1], v[2]);
    for (int i = 0; i < 3; i++)
        moved[i * box.n + p.at] = v[i] + oct_warp_sample(u + i * box.n, box, cell);
}

/* The largest of a block's threads, to *largest. All OCT_WARP_THREADS call it, once. */
static __device__ inline void oct_warp_largest_of_block(float own, float *largest)
{
    __shared__ float all[OCT_WARP_THREADS];
    const uint32_t t = threadIdx.x;
    all[t] = own;
    __syncthreads();
    for (uint32_t i = t + OCT_WARP_LANES; t < OCT_WARP_LANES && i < OCT_WARP_THREADS;
         i += OCT_WARP_LANES)
        all[t] = fmaxf(all[t], all[i]);
    __syncthreads();
    for (uint32_t i = 1; t == 0 && i < OCT_WARP_LANES; i++)
        all[0] = fmaxf(all[0], all[i]);
    if (t == 0)
        *largest = all[0];
}

/* One block. */
static __global__ void oct_warp_longest_kernel(const float *parts, uint32_t n, float *longest)
{
    float own = 0;
    for (uint32_t i = threadIdx.x; i < n; i += OCT_WARP_THREADS)
        own = fmaxf(own, parts[i]);
    oct_warp_largest_of_block(own, longest);
}

/* v: smoothed along depth and A-lines; here along the B-scans, and u' of it. parts: [blocks], the
 * largest |v| of each; with stride.longest they are not written, and nothing is done where that
 * leaves the step as it is. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS, 4)
    oct_warp_step_kernel(struct oct_warp_box box, struct oct_warp_tile t, struct oct_warp_taps g,
                         struct oct_warp_stride stride, const float *v, const float *u,
                         float *moved, float *parts, const struct oct_warp_course *course)
{
    OCT_SHARED(float, shared);
    if (oct_warp_is_over(course) || (stride.longest && !(*stride.longest > stride.most)))
        return;
    const float scale = stride.scale * (stride.longest ? stride.most / *stride.longest : 1.0f);
    float *taps = shared, *tile = shared + OCT_WARP_TAPS + 1;
    const uint32_t n_d = oct_warp_groups(box.side[2], OCT_WARP_LANES);
    const uint32_t d = blockIdx.x % n_d * OCT_WARP_LANES + threadIdx.x % OCT_WARP_LANES;
    const uint32_t rest = blockIdx.x / n_d, j = rest % box.side[1];
    const uint32_t first = rest / box.side[1] * OCT_WARP_TILE;
    const uint32_t line = j * box.step[1] + min(d, box.side[2] - 1);
    float sums[3][OCT_WARP_OWN];
    oct_warp_load_taps(g, OCT_WARP_THREADS, taps);
#pragma unroll
    for (int i = 0; i < 3; i++) {
        __syncthreads();
        oct_warp_load_tile(v + i * box.n + line, box.step[0], box.side[0], t, first, tile);
        __syncthreads();
        oct_warp_smooth_tile(taps, t, tile, sums[i]);
    }
    const uint32_t own = first + threadIdx.x / OCT_WARP_LANES * OCT_WARP_OWN;
    float longest = 0;
#pragma unroll
    for (uint32_t k = 0; k < OCT_WARP_OWN; k++) {
        if (d >= box.side[2] || own + k >= box.side[0])
            break;
        const struct oct_warp_place p = {{own + k, j, d}, line + (own + k) * box.step[0]};
        float length2 = 0, here[3];
#pragma unroll
        for (int i = 0; i < 3; i++) {
            length2 = fmaf(sums[i][k], sums[i][k], length2);
            here[i] = scale * sums[i][k] / box.units[i];
        }
        longest = fmaxf(longest, length2);
        oct_warp_compose_at(box, p, here, u, moved);
    }
    if (!stride.longest)
        oct_warp_largest_of_block(sqrtf(longest), parts + blockIdx.x);
}

#endif
