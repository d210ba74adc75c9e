/* G of the steps along one axis: a tile in shared memory, and eight neighbours of a thread's own in
 * registers, so that each value of the tile is read once for eight sums. The field is constant
 * beyond the border. */
#ifndef OCT_ANALYSIS_WARP_CUDA_WARP_GAUSS_CUH
#define OCT_ANALYSIS_WARP_CUDA_WARP_GAUSS_CUH

#include "analysis/warp/cuda_warp_course.cuh"

#define OCT_WARP_OWN 8u                                   /* sums of a thread */
#define OCT_WARP_REACH 96                                 /* radius, at most */
#define OCT_WARP_TAPS (2 * OCT_WARP_REACH + OCT_WARP_OWN) /* and their neighbours in memory */
#define OCT_WARP_SPREAD(i) ((i) + (i) / OCT_WARP_OWN)     /* eight-fold steps in different banks */

/* Along one axis: taps[0 .. 2 radius]; 4 divides the radius. */
struct oct_warp_taps {
    const float *taps;
    uint32_t radius;
};

/* sums[k]: of taps[t] times value k + t of the line, t = 0 .. 2 radius; line(t, i) is value t + i,
 * and 8 divides t. Of the first eight values and of the last, half of the products are needed. */
template <class LINE>
static __device__ inline void oct_warp_smooth(const float *taps, uint32_t radius, LINE line,
                                              float sums[OCT_WARP_OWN])
{
    const uint32_t last = 2 * radius;
    float near[OCT_WARP_OWN]; /* the newest taps, by number % 8 */
#pragma unroll
    for (uint32_t k = 0; k < OCT_WARP_OWN; k++)
        sums[k] = 0;
#pragma unroll
    for (uint32_t i = 0; i < OCT_WARP_OWN; i++) {
        const float x = line(0, i);
        near[i] = taps[i];
#pragma unroll
        for (uint32_t k = 0; k <= i; k++)
            sums[k] = fmaf(near[i - k], x, sums[k]);
    }
    for (uint32_t t = OCT_WARP_OWN; t < last; t += OCT_WARP_OWN) {
#pragma unroll
        for (uint32_t i = 0; i < OCT_WARP_OWN; i++) {
            const float x = line(t, i);
            near[i] = taps[t + i];
#pragma unroll
            for (uint32_t k = 0; k < OCT_WARP_OWN; k++)
                sums[k] = fmaf(near[(i + OCT_WARP_OWN - k) % OCT_WARP_OWN], x, sums[k]);
        }
    }
    near[0] = taps[last];
#pragma unroll
    for (uint32_t i = 0; i < OCT_WARP_OWN; i++) {
        const float x = line(last, i);
#pragma unroll
        for (uint32_t k = i; k < OCT_WARP_OWN; k++)
            sums[k] = fmaf(near[(i + OCT_WARP_OWN - k) % OCT_WARP_OWN], x, sums[k]);
    }
}

/* ---- tiles across the depth: along the A-lines or the B-scans ---- */

/* A tile: 32 depths, OCT_WARP_TILE voxels of the axis and `radius` more at both ends. */
#define OCT_WARP_TILE (OCT_WARP_OWN * OCT_WARP_ROWS)

#define OCT_WARP_AT_ONCE 11u /* loads of a thread that are under way: all, with a radius of 12 */

struct oct_warp_tile {
    uint32_t n_tiles, radius;
    uint32_t n_loaded; /* at least OCT_WARP_TILE + 2 radius; as many loads for each thread */
};

static inline struct oct_warp_tile oct_warp_tile_of(uint32_t side, uint32_t radius)
{
    const uint32_t each = OCT_WARP_AT_ONCE * OCT_WARP_ROWS;
    return {oct_warp_groups(side, OCT_WARP_TILE), radius,
            each * oct_warp_groups(OCT_WARP_TILE + 2 * radius, each)};
}

/* Shared memory of such a block; the taps first. */
static inline size_t oct_warp_tile_bytes(const struct oct_warp_tile &tile)
{
    return (OCT_WARP_TAPS + (size_t)tile.n_loaded * OCT_WARP_LANES) * sizeof(float);
}

static __device__ inline void oct_warp_load_taps(const struct oct_warp_taps &g, uint32_t n_threads,
                                                 float *taps)
{
    for (uint32_t i = threadIdx.x; i <= 2 * g.radius; i += n_threads)
        taps[i] = g.taps[i];
}

/* line: the axis' voxel 0 at this thread's depth; first: of the tile's own voxels. Some loads are
 * under way at once, whatever the branches around them. */
static __device__ inline void oct_warp_load_tile(const float *line, uint32_t step, uint32_t side,
                                                 const struct oct_warp_tile &t, uint32_t first,
                                                 float *tile)
{
    const int32_t begin = (int32_t)first - (int32_t)t.radius;
    float *to = tile + threadIdx.x;
    for (uint32_t i = threadIdx.x / OCT_WARP_LANES; i < t.n_loaded;
         i += OCT_WARP_AT_ONCE * OCT_WARP_ROWS, to += OCT_WARP_AT_ONCE * OCT_WARP_THREADS) {
        float values[OCT_WARP_AT_ONCE];
#pragma unroll
        for (uint32_t k = 0; k < OCT_WARP_AT_ONCE; k++)
            values[k] =
                line[oct_warp_inside(begin + (int32_t)(i + k * OCT_WARP_ROWS), side) * step];
#pragma unroll
        for (uint32_t k = 0; k < OCT_WARP_AT_ONCE; k++)
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
    float *taps = shared, *tile = shared + OCT_WARP_TAPS;
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
    float *longest; /* |v|; 0 before */
    bool is_known;  /* else it is found out, and scale alone counts */
};

/* u'(x) = v(x) + u(x - v(x)), for any v. */
static __device__ inline void oct_warp_compose_at(const struct oct_warp_box &box,
                                                  const struct oct_warp_place &p, const float *v,
                                                  const float *u, float *moved)
{
    const struct oct_warp_cell cell = oct_warp_cell_of(box, p.x, v[0], v[1], v[2]);
    for (int i = 0; i < 3; i++)
        moved[i * box.n + p.at] = v[i] + oct_warp_sample(u + i * box.n, box, cell);
}

/* The same for |v_i| <= 1: the cell is on one side of the voxel or on the other. */
static __device__ inline void oct_warp_compose_near(const struct oct_warp_box &box,
                                                    const struct oct_warp_place &p, const float *v,
                                                    const float *u, float *moved)
{
    struct oct_warp_cell cell = {p.at, {}};
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const bool below = p.x[i] + 1 == box.side[i] || (v[i] > 0 && p.x[i] > 0);
        cell.at -= below ? box.step[i] : 0;
        cell.part[i] = fminf(fmaxf((below ? 1.0f : 0.0f) - v[i], 0.0f), 1.0f);
    }
#pragma unroll
    for (int i = 0; i < 3; i++)
        moved[i * box.n + p.at] = v[i] + oct_warp_sample(u + i * box.n, box, cell);
}

/* The largest of a block's threads, in thread 0. All OCT_WARP_THREADS call it, once. */
static __device__ inline float oct_warp_largest_of_block(float own)
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
    return all[t];
}

/* One block. */
static __global__ void oct_warp_longest_kernel(const float *parts, uint32_t n, float *longest)
{
    float own = 0;
    for (uint32_t i = threadIdx.x; i < n; i += OCT_WARP_THREADS)
        own = fmaxf(own, parts[i]);
    own = oct_warp_largest_of_block(own);
    if (threadIdx.x == 0)
        *longest = own;
}

/* v: smoothed along depth and A-lines; here along the B-scans, and u' of it. Where the longest is
 * known, nothing is done if that leaves the step as it is. The largest of all is the same in any
 * order. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS, 4)
    oct_warp_step_kernel(struct oct_warp_box box, struct oct_warp_tile t, struct oct_warp_taps g,
                         struct oct_warp_stride stride, const float *v, const float *u,
                         float *moved, const struct oct_warp_course *course)
{
    OCT_SHARED(float, shared);
    if (oct_warp_is_over(course) || (stride.is_known && !(*stride.longest > stride.most)))
        return;
    const float scale = stride.scale * (stride.is_known ? stride.most / *stride.longest : 1.0f);
    float *taps = shared, *tile = shared + OCT_WARP_TAPS;
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
            here[i] = scale * box.per[i] * sums[i][k];
        }
        longest = fmaxf(longest, length2);
        oct_warp_compose_near(box, p, here, u, moved);
    }
    if (stride.is_known)
        return;
    longest = sqrtf(oct_warp_largest_of_block(longest));
    if (threadIdx.x == 0)
        atomicMax((uint32_t *)stride.longest, (uint32_t)__float_as_int(longest));
}

#endif
