/* LOCAL: D of every voxel of the band to all within reach, a row a voxel; then what is wanted of
 * the rows. A block computes the rows of a segment from a tile of phi in shared memory: a thread
 * holds D of all voxels of the segment to THREE neighbouring depths of one A-line, whose patches
 * overlap, so that one difference serves up to n of them.
 *
 * Entry i * n_units + t of a row: unit t = (A-line of the reach, group of THREE depths), depth i of
 * the group. What is no candidate is NONE. */
#ifndef OCT_ANALYSIS_LAYERS_DENOISE_CUDA_LEVELSET_LOCAL_CUH
#define OCT_ANALYSIS_LAYERS_DENOISE_CUDA_LEVELSET_LOCAL_CUH

#include "analysis/layers/denoise/cuda_levelset_band.cuh"

#define THREE 3u

/* The voxels whose rows are kept. */
static __device__ inline uint32_t rows_begin(const struct level &l)
{
    return l.segments[l.first].first;
}

static __device__ inline uint32_t rows_end(const struct level &l)
{
    return l.first + l.n_kept < l.n_segments ? l.segments[l.first + l.n_kept].first : l.n_band;
}

/* ---- rows ---- */

template <int RADIUS> struct patch_of {
    static const int n = 2 * RADIUS + 1;
    static const int depths = (int)SPAN + 2 * RADIUS; /* of a segment's patches */
    static const int pitch = (depths + 3) / 4 * 4;
    static const int most = n * n * pitch;
};

/* The tile around a voxel, and in `own` the patches of the segment. */
template <int RADIUS>
static __device__ inline void load_tile(const struct level &l, const struct place &at, float *tile,
                                        float *own)
{
    typedef patch_of<RADIUS> patch;
    const int32_t border = (int32_t)l.reach + RADIUS;
    for (uint32_t line = threadIdx.x / 32; line < l.side * l.side; line += WARPS) {
        const uint32_t row = line / l.side, column = line % l.side;
        const float *from =
            l.phi + voxel_at(l, at.b + (int32_t)row - border, at.j + (int32_t)column - border, 0);
        float *to = tile + row * l.row_pitch + column * l.pitch;
        for (uint32_t k = threadIdx.x % 32; k < l.depth; k += 32)
            to[k] = from[clamp(at.d + (int32_t)k - border, l.n_d)];
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < (uint32_t)patch::most; i += THREADS) {
        const uint32_t line = i / patch::pitch, k = i % patch::pitch;
        const uint32_t row = l.reach + line / patch::n, column = l.reach + line % patch::n;
        own[i] = k < (uint32_t)patch::depths
                     ? tile[row * l.row_pitch + column * l.pitch + l.reach + k]
                     : 0;
    }
    __syncthreads();
}

/* Adds an A-line of the patches: D to all voxels of the segment from THREE depths on. */
template <int RADIUS>
static __device__ inline void add_line(const float *own, const float *y, float (&sums)[THREE][SPAN])
{
    typedef patch_of<RADIUS> patch;
    float x[patch::pitch], others[patch::depths + THREE - 1];
#pragma unroll
    for (int i = 0; i < patch::pitch / 4; i++) {
        const float4 four = reinterpret_cast<const float4 *>(own)[i];
        x[4 * i] = four.x;
        x[4 * i + 1] = four.y;
        x[4 * i + 2] = four.z;
        x[4 * i + 3] = four.w;
    }
#pragma unroll
    for (int i = 0; i < patch::depths + (int)THREE - 1; i++)
        others[i] = y[i];
#pragma unroll
    for (int i = 0; i < (int)THREE; i++)
#pragma unroll
        for (int q = 0; q < patch::depths; q++) {
            const float difference = x[q] - others[q + i];
#pragma unroll
            for (int k = 0; k < (int)SPAN; k++)
                if (k <= q && q <= k + 2 * RADIUS)
                    sums[i][k] = fmaf(difference, difference, sums[i][k]);
        }
}

/* What a thread's unit is, from the segment's first voxel. */
struct unit {
    int32_t db, dj, dd; /* dd: of the first of the THREE */
    const float *tile;  /* where the patches of its y begin */
};

static __device__ inline struct unit unit_of(const struct level &l, uint32_t t, const float *tile)
{
    const uint32_t line = t / l.n_groups, group = t - line * l.n_groups;
    const uint32_t row = line / l.width, column = line - row * l.width;
    const int32_t reach = (int32_t)l.reach;
    return {(int32_t)row - reach, (int32_t)column - reach, (int32_t)(THREE * group) - reach,
            tile + row * l.row_pitch + column * l.pitch + THREE * group};
}

template <int RADIUS> static __global__ void __launch_bounds__(THREADS) rows_kernel(struct level l)
{
    typedef patch_of<RADIUS> patch;
    OCT_SHARED(float, shared);
    float *tile = shared + patch::most;
    const struct segment segment = l.segments[l.first + blockIdx.x];
    const struct place at = place_of(l, segment.at);
    float *row = l.rows + (size_t)(segment.first - rows_begin(l)) * l.n_row;
    load_tile<RADIUS>(l, at, tile, shared);
    for (uint32_t t = threadIdx.x; t < l.n_units; t += THREADS) {
        const struct unit u = unit_of(l, t, tile);
        float sums[THREE][SPAN] = {};
        const bool is_beside = at.b + u.db >= 0 && at.b + u.db < (int32_t)l.n_b &&
                               at.j + u.dj >= 0 && at.j + u.dj < (int32_t)l.n_j;
        for (int pb = 0; pb < patch::n && is_beside; pb++)
#pragma unroll
            for (int pj = 0; pj < patch::n; pj++)
                add_line<RADIUS>(shared + (pb * patch::n + pj) * patch::pitch,
                                 u.tile + pb * l.row_pitch + pj * l.pitch, sums);
        const float *y = u.tile + RADIUS * (l.row_pitch + l.pitch + 1);
        float *to = row + t;
#pragma unroll
        for (int k = 0; k < (int)SPAN; k++) {
            if (!(segment.mask >> k & 1))
                continue;
#pragma unroll
            for (int i = 0; i < (int)THREE; i++) {
                const int32_t dd = u.dd + i, d = at.d + k + dd;
                const bool is_self = u.db == 0 && u.dj == 0 && dd == 0;
                const bool is_in = is_beside && !is_self && dd <= (int32_t)l.reach && d >= 0 &&
                                   d < (int32_t)l.n_d && fabsf(y[k + i]) <= l.delta;
                to[(size_t)i * l.n_units] = is_in ? sums[i][k] : NONE;
            }
            to += l.n_row;
        }
    }
}

/* ---- of rows, a warp a voxel ---- */

/* The rank-th smallest D of each row that has as many; rank 0: none. Counts candidates. */
static __global__ void rank_kernel(struct level l, uint32_t rank)
{
    __shared__ uint32_t counts[WARPS];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_row = l.n_row;
    const uint64_t begin = rows_begin(l), x = begin + (uint64_t)blockIdx.x * WARPS + warp;
    uint32_t n = 0;
    if (x < rows_end(l)) {
        const float *row = l.rows + (x - begin) * n_row;
        const auto count = [&](uint32_t limit) {
            uint32_t own = 0;
            for (uint32_t i = lane; i < n_row; i += 32)
                own += bits_of(row[i]) <= limit;
            return warp_sum(own);
        };
        n = count(INFINITE);
        const bool has_rank = rank > 0 && n >= rank;
        const uint32_t limit = has_rank ? limit_of(INFINITE, rank, count) : 0;
        uint32_t largest = 0;
        for (uint32_t i = lane; has_rank && i < n_row; i += 32) {
            const uint32_t bits = bits_of(row[i]);
            largest = bits <= limit && bits > largest ? bits : largest;
        }
        largest = warp_max(largest);
        if (lane == 0)
            l.ranks[x] = has_rank ? value_of(largest) : NONE;
    }
    if (lane == 0)
        counts[warp] = n;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    unsigned long long total = 0;
    for (unsigned i = 0; i < WARPS; i++)
        total += counts[i];
    atomicAdd(&l.facts->n_patches, total);
}

/* now: phi before the step, of the box; next: after it, of the band. */
static __global__ void local_kernel(struct level l, enum mode mode)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint64_t begin = rows_begin(l);
    const uint64_t x = begin + (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    const float c2 = l.facts->c2;
    float phi = 0, sum = 0, pull = 0, *to = NULL;
    if (x < rows_end(l)) {
        const float *row = l.rows + (x - begin) * l.n_row, *here = l.now + l.index[x];
        phi = *here;
        to = l.next + x;
        for (uint32_t i = lane; i < l.n_row; i += 32) {
            const float distance = row[i];
            if (distance < 0)
                continue;
            const struct offset o = l.offsets[i];
            const float w = weight_of(o.near, distance, c2);
            sum += w;
            pull = fmaf(w, here[o.step] - phi, pull);
        }
    }
    end_step(mode, phi, sum, pull, to, l.facts);
}

/* The band's values into the box. */
static __global__ void put_kernel(struct level l)
{
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < l.n_band)
        l.now[l.index[i]] = l.next[i];
}

#endif
