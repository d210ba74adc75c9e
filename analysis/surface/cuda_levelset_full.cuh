/* FULL: the nearest patches of the whole band, by a search that computes D of tiles of TILE x TILE
 * patches and leaves out tiles that cannot hold a nearer one. Patches lie in the order of their
 * sums: as D(x, y) >= (sum x - sum y)^2 / n^3, those far away in this order are far away in D. A
 * block holds a tile and goes through the others from near to far, one *round* a tile; what it has
 * found is kept between launches, so that a launch may end after any round.
 *
 * A *key* is D's bits and the number of y: keys in rising order are a voxel's list. The lists are
 * those of all pairs, whatever the order in which a block's threads note what they find. */
#ifndef OCT_ANALYSIS_SURFACE_CUDA_LEVELSET_FULL_CUH
#define OCT_ANALYSIS_SURFACE_CUDA_LEVELSET_FULL_CUH

#include "analysis/surface/cuda_levelset_types.cuh"

#define OCT_LEVELSET_TILE 128u
#define OCT_LEVELSET_VALUES 16u /* of patches that are in shared memory at once */
#define OCT_LEVELSET_QUARTERS (OCT_LEVELSET_VALUES * OCT_LEVELSET_TILE / 4) /* float4 of these */
#define OCT_LEVELSET_ROOM 128u      /* keys beyond those kept before the list is cut */
#define OCT_LEVELSET_MOST_KEPT 512u /* keys of a list in the end: a power of two */

struct oct_levelset_search {
    uint32_t n, n_tiles;   /* patches */
    uint32_t n_values;     /* of a patch, as a multiple of VALUES: the rest is 0 */
    uint32_t patch_values; /* n^3 */
    uint32_t kept, n_keys; /* keys of a list in the end, and room for them */
    const float *patches;  /* [n_tiles][n_values][TILE] */
    const float *sums;     /* [n], rising */
    const uint32_t *order; /* [n] numbers of the voxels */
    uint64_t *keys;        /* [n][n_keys] */
    uint32_t *n_found;     /* [n] */
    uint64_t *limits;      /* [n]: the largest key kept, UINT64_MAX before there are enough */
};

/* ---- patches ---- */

/* The sum of each voxel's patch. */
static __global__ void oct_levelset_sums_kernel(struct oct_levelset_shape s, const float *phi,
                                                const uint32_t *index, uint32_t n, float *sums)
{
    const uint64_t x = (uint64_t)blockIdx.x * OCT_LEVELSET_THREADS + threadIdx.x;
    if (x >= n)
        return;
    const int32_t at = (int32_t)index[x], r = (int32_t)s.radius;
    const int32_t d = at % (int32_t)s.n_d, line = at / (int32_t)s.n_d;
    const int32_t b = line / (int32_t)s.n_j, j = line % (int32_t)s.n_j;
    double sum = 0;
    for (int32_t pb = -r; pb <= r; pb++)
        for (int32_t pj = -r; pj <= r; pj++)
            for (int32_t pd = -r; pd <= r; pd++)
                sum += (double)phi[oct_levelset_at(s, b + pb, j + pj, d + pd)];
    sums[x] = (float)sum;
}

/* A block a tile: patches in order, their sums, and empty lists. by_number: sums as above. */
static __global__ void oct_levelset_gather_kernel(struct oct_levelset_shape s, const float *phi,
                                                  const uint32_t *index, const float *by_number,
                                                  struct oct_levelset_search to, float *patches,
                                                  float *sums)
{
    const uint32_t k = threadIdx.x % OCT_LEVELSET_TILE;
    const uint64_t x = (uint64_t)blockIdx.x * OCT_LEVELSET_TILE + k;
    const bool is_one = x < to.n;
    const uint32_t number = is_one ? to.order[x] : 0;
    const int32_t at = (int32_t)index[number], p = (int32_t)s.patch, r = (int32_t)s.radius;
    const int32_t d = at % (int32_t)s.n_d, line = at / (int32_t)s.n_d;
    const int32_t b = line / (int32_t)s.n_j, j = line % (int32_t)s.n_j;
    float *tile = patches + (size_t)blockIdx.x * to.n_values * OCT_LEVELSET_TILE;
    for (uint32_t v = threadIdx.x / OCT_LEVELSET_TILE; v < to.n_values;
         v += OCT_LEVELSET_THREADS / OCT_LEVELSET_TILE) {
        const int32_t i = (int32_t)v;
        float value = 0;
        if (is_one && v < to.patch_values)
            value = phi[oct_levelset_at(s, b + i / (p * p) - r, j + i / p % p - r, d + i % p - r)];
        tile[v * OCT_LEVELSET_TILE + k] = value;
    }
    if (!is_one || threadIdx.x >= OCT_LEVELSET_TILE)
        return;
    sums[x] = by_number[number];
    to.n_found[x] = 0;
    to.limits[x] = UINT64_MAX;
}

/* ---- lists ---- */

/* Keeps the least of n >= kept keys; returns the largest of those. A warp. */
static __device__ inline uint64_t oct_levelset_cut(uint64_t *keys, uint32_t n, uint32_t kept)
{
    const uint32_t lane = threadIdx.x % 32;
    const auto count = [&](uint64_t limit) {
        uint32_t own = 0;
        for (uint32_t i = lane; i < n; i += 32)
            own += keys[i] <= limit;
        return oct_levelset_warp_sum(own);
    };
    const uint32_t bits = oct_levelset_limit(OCT_LEVELSET_INF, kept, [&](uint32_t middle) {
        return count((uint64_t)middle << 32 | UINT32_MAX);
    });
    uint64_t limit = (uint64_t)bits << 32 | UINT32_MAX, largest = 0;
    if (count(limit) > kept)
        limit = (uint64_t)bits << 32 | oct_levelset_limit(UINT32_MAX, kept, [&](uint32_t middle) {
                    return count((uint64_t)bits << 32 | middle);
                });
    for (uint32_t first = 0, to = 0; first < n; first += 32) {
        const uint64_t key = first + lane < n ? keys[first + lane] : UINT64_MAX;
        const bool stays = first + lane < n && key <= limit;
        const uint32_t all = __ballot_sync(OCT_LEVELSET_ALL, stays);
        if (stays) {
            keys[to + (uint32_t)__popc(all & ((1u << lane) - 1))] = key;
            largest = key > largest ? key : largest;
        }
        to += (uint32_t)__popc(all);
        __syncwarp();
    }
    return oct_levelset_warp_max(largest);
}

/* ---- the search ---- */

/* What a block knows of its tile's lists. */
struct oct_levelset_lists {
    float limits[OCT_LEVELSET_TILE]; /* D; what is above it is too far. -1: no voxel */
    uint64_t keys[OCT_LEVELSET_TILE];
    uint32_t n[OCT_LEVELSET_TILE];
};

static __device__ inline void oct_levelset_set_limit(struct oct_levelset_lists *lists, uint32_t i,
                                                     uint64_t key)
{
    const uint32_t bits = (uint32_t)(key >> 32);
    lists->keys[i] = key;
    lists->limits[i] = oct_levelset_value(bits < OCT_LEVELSET_INF ? bits : OCT_LEVELSET_INF);
}

/* The tile of a round: itself, then one after and one before it in turn. n_tiles: none. */
static __device__ inline uint32_t oct_levelset_other(uint32_t tile, uint32_t round,
                                                     uint32_t n_tiles)
{
    const uint32_t away = (round + 1) / 2;
    if (round % 2 == 1)
        return tile + away < n_tiles ? tile + away : n_tiles;
    return away <= tile ? tile - away : n_tiles;
}

/* Whether a patch of `other` may be nearer than the farthest D kept. Sums are rounded to 2^-24. */
static __device__ inline bool oct_levelset_may(const struct oct_levelset_search &s, uint32_t tile,
                                               uint32_t other, float farthest)
{
    const uint32_t low = tile < other ? tile : other, high = tile < other ? other : tile;
    if (low == high)
        return true;
    const float last = s.sums[(low + 1) * OCT_LEVELSET_TILE - 1];
    const float first = s.sums[high * OCT_LEVELSET_TILE];
    const float gap = first - last - 2e-6f * (fabsf(first) + fabsf(last));
    return !(gap > 0) || !(gap * gap > farthest * (1 + 1e-4f) * (float)s.patch_values);
}

/* D of eight by eight patches of a thread: 4 ty + (0 .. 3), and 64 on; 4 tx + ... */
static __device__ inline void oct_levelset_tile(const struct oct_levelset_search &s, uint32_t tile,
                                                uint32_t other, float (&sums)[8][8])
{
    __shared__ float4 mine[OCT_LEVELSET_QUARTERS], others[OCT_LEVELSET_QUARTERS];
    const uint32_t i = threadIdx.x, tx = i % 16, ty = i / 16;
    const size_t step = (size_t)s.n_values * OCT_LEVELSET_TILE / 4;
    const float4 *from = reinterpret_cast<const float4 *>(s.patches) + tile * step;
    const float4 *against = reinterpret_cast<const float4 *>(s.patches) + other * step;
    for (uint32_t v = 0; v < s.n_values; v += OCT_LEVELSET_VALUES) {
        const float4 a = from[i], b = from[i + OCT_LEVELSET_THREADS];
        const float4 c = against[i], d = against[i + OCT_LEVELSET_THREADS];
        __syncthreads();
        mine[i] = a;
        mine[i + OCT_LEVELSET_THREADS] = b;
        others[i] = c;
        others[i + OCT_LEVELSET_THREADS] = d;
        __syncthreads();
        from += OCT_LEVELSET_QUARTERS;
        against += OCT_LEVELSET_QUARTERS;
#pragma unroll
        for (uint32_t k = 0; k < OCT_LEVELSET_VALUES; k++) {
            const float4 *row = mine + k * 32, *column = others + k * 32;
            const float4 x0 = row[ty], x1 = row[16 + ty], y0 = column[tx], y1 = column[16 + tx];
            const float x[8] = {x0.x, x0.y, x0.z, x0.w, x1.x, x1.y, x1.z, x1.w};
            const float y[8] = {y0.x, y0.y, y0.z, y0.w, y1.x, y1.y, y1.z, y1.w};
#pragma unroll
            for (int p = 0; p < 8; p++)
#pragma unroll
                for (int q = 0; q < 8; q++) {
                    const float difference = x[p] - y[q];
                    sums[p][q] = fmaf(difference, difference, sums[p][q]);
                }
        }
    }
}

/* Notes what is nearer than the limits. */
static __device__ inline void oct_levelset_note(const struct oct_levelset_search &s, uint32_t tile,
                                                uint32_t other, const float (&sums)[8][8],
                                                struct oct_levelset_lists *lists)
{
    const uint32_t tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
    for (uint32_t p = 0; p < 8; p++) {
        const uint32_t i = p / 4 * 64 + 4 * ty + p % 4, x = tile * OCT_LEVELSET_TILE + i;
        const float limit = lists->limits[i];
#pragma unroll
        for (uint32_t q = 0; q < 8; q++) {
            const uint32_t y = other * OCT_LEVELSET_TILE + q / 4 * 64 + 4 * tx + q % 4;
            if (!(sums[p][q] <= limit) || y >= s.n || y == x)
                continue;
            const uint64_t key = (uint64_t)oct_levelset_bits(sums[p][q]) << 32 | s.order[y];
            if (key < lists->keys[i])
                s.keys[(size_t)x * s.n_keys + atomicAdd(&lists->n[i], 1u)] = key;
        }
    }
}

/* Cuts the lists that are long, and those that have enough for the first time. */
static __device__ inline void oct_levelset_cut_lists(const struct oct_levelset_search &s,
                                                     uint32_t tile,
                                                     struct oct_levelset_lists *lists)
{
    for (uint32_t i = threadIdx.x / 32; i < OCT_LEVELSET_TILE; i += OCT_LEVELSET_WARPS) {
        const uint32_t n = lists->n[i];
        const uint32_t most = lists->keys[i] == UINT64_MAX ? s.kept : s.kept + OCT_LEVELSET_ROOM;
        if (n < most || lists->limits[i] < 0)
            continue;
        uint64_t *keys = s.keys + (size_t)(tile * OCT_LEVELSET_TILE + i) * s.n_keys;
        const uint64_t limit = oct_levelset_cut(keys, n, s.kept);
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            oct_levelset_set_limit(lists, i, limit);
            lists->n[i] = s.kept;
        }
    }
}

/* Rounds first .. end - 1 of all tiles, a block each. */
static __global__ void __launch_bounds__(OCT_LEVELSET_THREADS, 2)
    oct_levelset_search_kernel(struct oct_levelset_search s, uint32_t first_round,
                               uint32_t end_round)
{
    __shared__ struct oct_levelset_lists lists;
    const uint32_t tile = blockIdx.x, i = threadIdx.x, lane = i % 32;
    const uint32_t x = tile * OCT_LEVELSET_TILE + i;
    if (i < OCT_LEVELSET_TILE) {
        lists.n[i] = x < s.n ? s.n_found[x] : 0;
        oct_levelset_set_limit(&lists, i, x < s.n ? s.limits[x] : 0);
        if (x >= s.n)
            lists.limits[i] = OCT_LEVELSET_NONE;
    }
    for (uint32_t round = first_round; round < end_round; round++) {
        const uint32_t other = oct_levelset_other(tile, round, s.n_tiles);
        if (other == s.n_tiles)
            continue;
        __syncthreads();
        float farthest = 0;
        for (uint32_t k = lane; k < OCT_LEVELSET_TILE; k += 32)
            farthest = lists.limits[k] > farthest ? lists.limits[k] : farthest;
        if (!oct_levelset_may(s, tile, other, oct_levelset_warp_max(farthest)))
            continue;
        float sums[8][8] = {};
        oct_levelset_tile(s, tile, other, sums);
        oct_levelset_note(s, tile, other, sums, &lists);
        __syncthreads();
        oct_levelset_cut_lists(s, tile, &lists);
    }
    __syncthreads();
    if (i < OCT_LEVELSET_TILE && x < s.n) {
        s.n_found[x] = lists.n[i];
        s.limits[x] = lists.keys[i];
    }
}

/* ---- the ends of the lists ---- */

/* Sorts n keys, a power of two, with a warp. */
static __device__ inline void oct_levelset_sort(uint64_t *keys, uint32_t n)
{
    for (uint32_t size = 2; size <= n; size *= 2)
        for (uint32_t apart = size / 2; apart > 0; apart /= 2) {
            __syncwarp();
            for (uint32_t pair = threadIdx.x % 32; pair < n / 2; pair += 32) {
                const uint32_t i = pair / apart * 2 * apart + pair % apart;
                const bool rises = (i & size) == 0;
                const uint64_t a = keys[i], b = keys[i + apart];
                if ((a > b) == rises) {
                    keys[i] = b;
                    keys[i + apart] = a;
                }
            }
        }
    __syncwarp();
}

#define OCT_LEVELSET_SORTERS 4u /* warps of a block that sorts */

/* Each list cut and in order, a warp each; the rank-th D of those that have as many. */
static __global__ void oct_levelset_finish_kernel(struct oct_levelset_search s, uint32_t rank,
                                                  float *ranks)
{
    __shared__ uint64_t all[OCT_LEVELSET_SORTERS][OCT_LEVELSET_MOST_KEPT];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint64_t x = (uint64_t)blockIdx.x * OCT_LEVELSET_SORTERS + warp;
    if (x >= s.n)
        return;
    uint64_t *keys = s.keys + x * s.n_keys, *sorted = all[warp];
    uint32_t n = s.n_found[x], size = 32;
    if (n > s.kept) {
        oct_levelset_cut(keys, n, s.kept);
        n = s.kept;
    }
    __syncwarp();
    while (size < n)
        size *= 2;
    for (uint32_t i = lane; i < size; i += 32)
        sorted[i] = i < n ? keys[i] : UINT64_MAX;
    oct_levelset_sort(sorted, size);
    for (uint32_t i = lane; i < n; i += 32)
        keys[i] = sorted[i];
    if (lane > 0)
        return;
    s.n_found[x] = n;
    ranks[s.order[x]] =
        n >= rank ? oct_levelset_value((uint32_t)(sorted[rank - 1] >> 32)) : OCT_LEVELSET_NONE;
}

/* ---- steps ---- */

/* |x - y|^2 of voxels of the box. */
static __device__ inline float oct_levelset_apart(const struct oct_levelset_shape &s, uint32_t x,
                                                  uint32_t y)
{
    const uint32_t line_x = x / s.n_d, line_y = y / s.n_d;
    const float d = (float)(int32_t)(x % s.n_d - y % s.n_d);
    const float j = (float)(int32_t)(line_x % s.n_j - line_y % s.n_j);
    const float b = (float)(int32_t)(line_x / s.n_j - line_y / s.n_j);
    return fmaf(b, b, fmaf(j, j, d * d));
}

/* now, next: phi of the band before and after the step. c1 0: infinite. */
static __global__ void oct_levelset_full_kernel(struct oct_levelset_shape shape,
                                                struct oct_levelset_search s, uint32_t most,
                                                float c1, const uint32_t *index, const float *now,
                                                enum oct_levelset_mode mode, float *next,
                                                struct oct_levelset_facts *facts)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint64_t i = (uint64_t)blockIdx.x * OCT_LEVELSET_WARPS + threadIdx.x / 32;
    const float c2 = facts->c2;
    float phi = 0, sum = 0, pull = 0, *to = NULL;
    if (i < s.n) {
        const uint32_t x = s.order[i], n = s.n_found[i] < most ? s.n_found[i] : most;
        const uint64_t *keys = s.keys + i * s.n_keys;
        phi = now[x];
        to = next + x;
        for (uint32_t k = lane; k < n; k += 32) {
            const uint32_t y = (uint32_t)keys[k];
            const float near = c1 > 0 ? oct_levelset_apart(shape, index[x], index[y]) / c1 : 0;
            const float w =
                oct_levelset_weight(near, oct_levelset_value((uint32_t)(keys[k] >> 32)), c2);
            sum += w;
            pull = fmaf(w, now[y] - phi, pull);
        }
    }
    oct_levelset_end_step(mode, phi, sum, pull, to, facts);
}

/* phi of the band. */
static __global__ void oct_levelset_take_kernel(const float *phi, const uint32_t *index, uint32_t n,
                                                float *band)
{
    const uint64_t i = (uint64_t)blockIdx.x * OCT_LEVELSET_THREADS + threadIdx.x;
    if (i < n)
        band[i] = phi[index[i]];
}

#endif
