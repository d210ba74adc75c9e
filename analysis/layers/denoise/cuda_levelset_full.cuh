/* FULL: the nearest patches of the whole band, by a search that computes D of tiles of TILE x TILE
 * patches and leaves out tiles that cannot hold a nearer one. Patches lie in the order of their
 * sums: as D(x, y) >= (sum x - sum y)^2 / n^3, those far away in this order are far away in D. A
 * block holds a tile and goes through the others from near to far, one *round* a tile; what it has
 * found is kept between launches, so that a launch may end after any round.
 *
 * A *key* is D's bits and the number of y: keys in rising order are a voxel's list. The lists are
 * those of all pairs, whatever the order in which a block's threads note what they find. */
#ifndef OCT_ANALYSIS_LAYERS_DENOISE_CUDA_LEVELSET_FULL_CUH
#define OCT_ANALYSIS_LAYERS_DENOISE_CUDA_LEVELSET_FULL_CUH

#include "analysis/layers/denoise/cuda_levelset_band.cuh"

#define TILE 128u
#define VALUES 16u                   /* of patches that are in shared memory at once */
#define QUARTERS (VALUES * TILE / 4) /* float4 of these */
#define ROOM 128u                    /* keys beyond those kept before the list is cut */
#define MOST_KEPT 512u               /* keys of a list in the end: a power of two */

/* ---- patches ---- */

/* The sum of each voxel's patch. */
static __global__ void sums_kernel(struct level l)
{
    const uint64_t x = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (x >= l.n_band)
        return;
    const struct place at = place_of(l, l.index[x]);
    const int32_t r = (int32_t)l.radius;
    double sum = 0;
    for (int32_t pb = -r; pb <= r; pb++)
        for (int32_t pj = -r; pj <= r; pj++)
            for (int32_t pd = -r; pd <= r; pd++)
                sum += (double)l.phi[voxel_at(l, at.b + pb, at.j + pj, at.d + pd)];
    l.by_number[x] = (float)sum;
}

/* A block a tile: patches in order, their sums, and empty lists. */
static __global__ void gather_kernel(struct level l)
{
    const uint32_t k = threadIdx.x % TILE;
    const uint64_t x = (uint64_t)blockIdx.x * TILE + k;
    const bool is_one = x < l.n_band;
    const uint32_t number = is_one ? l.order[x] : 0;
    const struct place at = place_of(l, l.index[number]);
    const int32_t p = (int32_t)l.patch, r = (int32_t)l.radius;
    float *tile = l.patches + (size_t)blockIdx.x * l.n_values * TILE;
    for (uint32_t v = threadIdx.x / TILE; v < l.n_values; v += THREADS / TILE) {
        const int32_t i = (int32_t)v;
        float value = 0;
        if (is_one && v < l.patch_values)
            value =
                l.phi[voxel_at(l, at.b + i / (p * p) - r, at.j + i / p % p - r, at.d + i % p - r)];
        tile[v * TILE + k] = value;
    }
    if (!is_one || threadIdx.x >= TILE)
        return;
    l.sums[x] = l.by_number[number];
    l.n_found[x] = 0;
    l.limits[x] = UINT64_MAX;
}

/* ---- lists ---- */

/* Keeps the least of n >= kept keys; returns the largest of those. A warp. */
static __device__ inline uint64_t cut_list(uint64_t *keys, uint32_t n, uint32_t kept)
{
    const uint32_t lane = threadIdx.x % 32;
    const auto count = [&](uint64_t limit) {
        uint32_t own = 0;
        for (uint32_t i = lane; i < n; i += 32)
            own += keys[i] <= limit;
        return warp_sum(own);
    };
    const uint32_t bits = limit_of(INFINITE, kept, [&](uint32_t middle) {
        return count((uint64_t)middle << 32 | UINT32_MAX);
    });
    uint64_t limit = (uint64_t)bits << 32 | UINT32_MAX, largest = 0;
    if (count(limit) > kept)
        limit = (uint64_t)bits << 32 | limit_of(UINT32_MAX, kept, [&](uint32_t middle) {
                    return count((uint64_t)bits << 32 | middle);
                });
    for (uint32_t first = 0, to = 0; first < n; first += 32) {
        const uint64_t key = first + lane < n ? keys[first + lane] : UINT64_MAX;
        const bool stays = first + lane < n && key <= limit;
        const uint32_t all = __ballot_sync(ALL_LANES, stays);
        if (stays) {
            keys[to + (uint32_t)__popc(all & ((1u << lane) - 1))] = key;
            largest = key > largest ? key : largest;
        }
        to += (uint32_t)__popc(all);
        __syncwarp();
    }
    return warp_max(largest);
}

/* ---- the search ---- */

/* What a block knows of its tile's lists. */
struct lists {
    float limits[TILE]; /* D; what is above it is too far. -1: no voxel */
    uint64_t keys[TILE];
    uint32_t n[TILE];
};

static __device__ inline void set_limit(struct lists *lists, uint32_t i, uint64_t key)
{
    const uint32_t bits = (uint32_t)(key >> 32);
    lists->keys[i] = key;
    lists->limits[i] = value_of(bits < INFINITE ? bits : INFINITE);
}

/* The tile of a round: itself, then one after and one before it in turn. n_tiles: none. */
static __device__ inline uint32_t other_tile(uint32_t tile, uint32_t round, uint32_t n_tiles)
{
    const uint32_t away = (round + 1) / 2;
    if (round % 2 == 1)
        return tile + away < n_tiles ? tile + away : n_tiles;
    return away <= tile ? tile - away : n_tiles;
}

/* Whether a patch of `other` may be nearer than the farthest D kept. Sums are rounded to 2^-24. */
static __device__ inline bool may_be_near(const struct level &l, uint32_t tile, uint32_t other,
                                          float farthest)
{
    const uint32_t low = tile < other ? tile : other, high = tile < other ? other : tile;
    if (low == high)
        return true;
    const float last = l.sums[(low + 1) * TILE - 1];
    const float first = l.sums[high * TILE];
    const float gap = first - last - 2e-6f * (fabsf(first) + fabsf(last));
    return !(gap > 0) || !(gap * gap > farthest * (1 + 1e-4f) * (float)l.patch_values);
}

/* D of eight by eight patches of a thread: 4 ty + (0 .. 3), and 64 on; 4 tx + ... */
static __device__ inline void add_tile(const struct level &l, uint32_t tile, uint32_t other,
                                       float (&sums)[8][8])
{
    __shared__ float4 mine[QUARTERS], others[QUARTERS];
    const uint32_t i = threadIdx.x, tx = i % 16, ty = i / 16;
    const size_t step = (size_t)l.n_values * TILE / 4;
    const float4 *from = reinterpret_cast<const float4 *>(l.patches) + tile * step;
    const float4 *against = reinterpret_cast<const float4 *>(l.patches) + other * step;
    for (uint32_t v = 0; v < l.n_values; v += VALUES) {
        const float4 a = from[i], b = from[i + THREADS];
        const float4 c = against[i], d = against[i + THREADS];
        __syncthreads();
        mine[i] = a;
        mine[i + THREADS] = b;
        others[i] = c;
        others[i + THREADS] = d;
        __syncthreads();
        from += QUARTERS;
        against += QUARTERS;
#pragma unroll
        for (uint32_t k = 0; k < VALUES; k++) {
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
static __device__ inline void note_near(const struct level &l, uint32_t tile, uint32_t other,
                                        const float (&sums)[8][8], struct lists *lists)
{
    const uint32_t tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
    for (uint32_t p = 0; p < 8; p++) {
        const uint32_t i = p / 4 * 64 + 4 * ty + p % 4, x = tile * TILE + i;
        const float limit = lists->limits[i];
#pragma unroll
        for (uint32_t q = 0; q < 8; q++) {
            const uint32_t y = other * TILE + q / 4 * 64 + 4 * tx + q % 4;
            if (!(sums[p][q] <= limit) || y >= l.n_band || y == x)
                continue;
            const uint64_t key = (uint64_t)bits_of(sums[p][q]) << 32 | l.order[y];
            if (key < lists->keys[i])
                l.keys[(size_t)x * l.n_keys + atomicAdd(&lists->n[i], 1u)] = key;
        }
    }
}

/* Cuts the lists that are long, and those that have enough for the first time. */
static __device__ inline void cut_lists(const struct level &l, uint32_t tile, struct lists *lists)
{
    for (uint32_t i = threadIdx.x / 32; i < TILE; i += WARPS) {
        const uint32_t n = lists->n[i];
        const uint32_t most = lists->keys[i] == UINT64_MAX ? l.kept : l.kept + ROOM;
        if (n < most || lists->limits[i] < 0)
            continue;
        uint64_t *keys = l.keys + (size_t)(tile * TILE + i) * l.n_keys;
        const uint64_t limit = cut_list(keys, n, l.kept);
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            set_limit(lists, i, limit);
            lists->n[i] = l.kept;
        }
    }
}

/* Rounds first .. end - 1 of all tiles, a block each. */
static __global__ void __launch_bounds__(THREADS, 2)
    search_kernel(struct level l, uint32_t first_round, uint32_t end_round)
{
    __shared__ struct lists lists;
    const uint32_t tile = blockIdx.x, i = threadIdx.x, lane = i % 32;
    const uint32_t x = tile * TILE + i;
    if (i < TILE) {
        lists.n[i] = x < l.n_band ? l.n_found[x] : 0;
        set_limit(&lists, i, x < l.n_band ? l.limits[x] : 0);
        if (x >= l.n_band)
            lists.limits[i] = NONE;
    }
    for (uint32_t round = first_round; round < end_round; round++) {
        const uint32_t other = other_tile(tile, round, l.n_tiles);
        if (other == l.n_tiles)
            continue;
        __syncthreads();
        float farthest = 0;
        for (uint32_t k = lane; k < TILE; k += 32)
            farthest = lists.limits[k] > farthest ? lists.limits[k] : farthest;
        if (!may_be_near(l, tile, other, warp_max(farthest)))
            continue;
        float sums[8][8] = {};
        add_tile(l, tile, other, sums);
        note_near(l, tile, other, sums, &lists);
        __syncthreads();
        cut_lists(l, tile, &lists);
    }
    __syncthreads();
    if (i < TILE && x < l.n_band) {
        l.n_found[x] = lists.n[i];
        l.limits[x] = lists.keys[i];
    }
}

/* ---- the ends of the lists ---- */

/* Sorts n keys, a power of two, with a warp. */
static __device__ inline void sort_keys(uint64_t *keys, uint32_t n)
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

#define SORTERS 4u /* warps of a block that sorts */

/* Each list cut and in order, a warp each; the rank-th D of those that have as many. */
static __global__ void finish_kernel(struct level l, uint32_t rank)
{
    __shared__ uint64_t all[SORTERS][MOST_KEPT];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint64_t x = (uint64_t)blockIdx.x * SORTERS + warp;
    if (x >= l.n_band)
        return;
    uint64_t *keys = l.keys + x * l.n_keys, *sorted = all[warp];
    uint32_t n = l.n_found[x], size = 32;
    if (n > l.kept) {
        cut_list(keys, n, l.kept);
        n = l.kept;
    }
    __syncwarp();
    while (size < n)
        size *= 2;
    for (uint32_t i = lane; i < size; i += 32)
        sorted[i] = i < n ? keys[i] : UINT64_MAX;
    sort_keys(sorted, size);
    for (uint32_t i = lane; i < n; i += 32)
        keys[i] = sorted[i];
    if (lane > 0)
        return;
    l.n_found[x] = n;
    l.ranks[l.order[x]] = n >= rank ? value_of((uint32_t)(sorted[rank - 1] >> 32)) : NONE;
}

/* ---- steps ---- */

/* |x - y|^2 of voxels of the box. */
static __device__ inline float squared_apart(const struct level &l, uint32_t x, uint32_t y)
{
    const struct place p = place_of(l, x), q = place_of(l, y);
    const float b = (float)(p.b - q.b), j = (float)(p.j - q.j), d = (float)(p.d - q.d);
    return fmaf(b, b, fmaf(j, j, d * d));
}

/* now: phi before the step, of the box; next: after it, of the band. c1 0: infinite. */
static __global__ void full_kernel(struct level l, uint32_t most, float c1, enum mode mode)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint64_t i = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    const float c2 = l.facts->c2;
    float phi = 0, sum = 0, pull = 0, *to = NULL;
    if (i < l.n_band) {
        const uint32_t number = l.order[i], x = l.index[number];
        const uint32_t n = l.n_found[i] < most ? l.n_found[i] : most;
        const uint64_t *keys = l.keys + i * l.n_keys;
        phi = l.now[x];
        to = l.next + number;
        for (uint32_t k = lane; k < n; k += 32) {
            const uint32_t y = l.index[(uint32_t)keys[k]];
            const float near = c1 > 0 ? squared_apart(l, x, y) / c1 : 0;
            const float w = weight_of(near, value_of((uint32_t)(keys[k] >> 32)), c2);
            sum += w;
            pull = fmaf(w, l.now[y] - phi, pull);
        }
    }
    end_step(mode, phi, sum, pull, to, l.facts);
}

#endif
