/* LOCAL: D of every voxel of the band to all within reach, a row a voxel; then what is wanted of
 * the rows. A block computes the rows of a segment from a tile of phi in shared memory: a thread
 * holds D of all voxels of the segment to THREE neighbouring depths of one A-line, whose patches
 * overlap, so that one difference serves up to n of them.
 *
 * Entry i * n_units + t of a row: unit t = (A-line of the reach, group of THREE depths), depth i of
 * the group. What is no candidate is OCT_LEVELSET_NONE. */
#ifndef OCT_ANALYSIS_SURFACE_CUDA_LEVELSET_LOCAL_CUH
#define OCT_ANALYSIS_SURFACE_CUDA_LEVELSET_LOCAL_CUH

#include "analysis/surface/cuda_levelset_band.cuh"

#define OCT_LEVELSET_THREE 3u

/* Of a tile: A-lines [side][side], a row of them every row_pitch floats, an A-line every pitch. */
struct oct_levelset_layout {
    uint32_t reach, width;      /* 2 reach + 1 */
    uint32_t n_groups, n_units; /* of depths; A-lines times groups */
    uint32_t n_row;             /* entries of a row */
    uint32_t side, depth, pitch, row_pitch;
};

/* Entries of a row: where y lies from x, and |x - y|^2 / c1. */
struct oct_levelset_offset {
    int32_t step;
    float near;
};

/* Segments of which rows are kept at once, and the voxels they begin and end with. */
struct oct_levelset_piece {
    uint32_t first, n; /* segments */
    uint32_t n_segments, n_band;
};

static __device__ inline uint32_t oct_levelset_piece_begin(const struct oct_levelset_piece &p,
                                                           const struct oct_levelset_run *segments)
{
    return segments[p.first].first;
}

static __device__ inline uint32_t oct_levelset_piece_end(const struct oct_levelset_piece &p,
                                                         const struct oct_levelset_run *segments)
{
    return p.first + p.n < p.n_segments ? segments[p.first + p.n].first : p.n_band;
}

/* ---- rows ---- */

template <int RADIUS> struct oct_levelset_patch {
    static const int n = 2 * RADIUS + 1;
    static const int depths = (int)OCT_LEVELSET_SPAN + 2 * RADIUS; /* of a segment's patches */
    static const int pitch = (depths + 3) / 4 * 4;
    static const int most = n * n * pitch;
};

/* The tile around (b, j, d), and in `own` the patches of the segment. */
template <int RADIUS>
static __device__ inline void
oct_levelset_load(const struct oct_levelset_shape &s, const struct oct_levelset_layout &l,
                  const float *phi, int32_t b, int32_t j, int32_t d, float *tile, float *own)
{
    typedef oct_levelset_patch<RADIUS> patch;
    const int32_t border = (int32_t)l.reach + RADIUS;
    const uint32_t lane = threadIdx.x % 32;
    uint32_t row = 0, column = threadIdx.x / 32;
    while (row < l.side) {
        if (column >= l.side) {
            column -= l.side;
            row++;
            continue;
        }
        const float *from =
            phi + oct_levelset_at(s, b + (int32_t)row - border, j + (int32_t)column - border, 0);
        float *to = tile + row * l.row_pitch + column * l.pitch;
        for (uint32_t k = lane; k < l.depth; k += 32)
            to[k] = from[oct_levelset_clamp(d + (int32_t)k - border, s.n_d)];
        column += OCT_LEVELSET_WARPS;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < (uint32_t)patch::most; i += OCT_LEVELSET_THREADS) {
        const uint32_t line = i / patch::pitch, k = i % patch::pitch;
        own[i] = k < (uint32_t)patch::depths
                     ? tile[(l.reach + line / patch::n) * l.row_pitch +
                            (l.reach + line % patch::n) * l.pitch + l.reach + k]
                     : 0;
    }
    __syncthreads();
}

/* Adds an A-line of the patches: D to all voxels of the segment from THREE depths on. */
template <int RADIUS>
static __device__ inline void oct_levelset_add(const float *own, const float *y,
                                               float (&sums)[OCT_LEVELSET_THREE][OCT_LEVELSET_SPAN])
{
    typedef oct_levelset_patch<RADIUS> patch;
    float x[patch::pitch], others[patch::depths + OCT_LEVELSET_THREE - 1];
#pragma unroll
    for (int i = 0; i < patch::pitch / 4; i++) {
        const float4 four = reinterpret_cast<const float4 *>(own)[i];
        x[4 * i] = four.x;
        x[4 * i + 1] = four.y;
        x[4 * i + 2] = four.z;
        x[4 * i + 3] = four.w;
    }
#pragma unroll
    for (int i = 0; i < patch::depths + (int)OCT_LEVELSET_THREE - 1; i++)
        others[i] = y[i];
#pragma unroll
    for (int i = 0; i < (int)OCT_LEVELSET_THREE; i++)
#pragma unroll
        for (int q = 0; q < patch::depths; q++) {
            const float difference = x[q] - others[q + i];
#pragma unroll
            for (int k = 0; k < (int)OCT_LEVELSET_SPAN; k++)
                if (k <= q && q <= k + 2 * RADIUS)
                    sums[i][k] = fmaf(difference, difference, sums[i][k]);
        }
}

/* What a thread's unit is, from the segment's first voxel. */
struct oct_levelset_unit {
    int32_t db, dj, dd; /* dd: of the first of the THREE */
    const float *tile;  /* where the patches of its y begin */
};

static __device__ inline struct oct_levelset_unit
oct_levelset_unit_of(const struct oct_levelset_layout &l, uint32_t t, const float *tile)
{
    const uint32_t line = t / l.n_groups, group = t - line * l.n_groups;
    const uint32_t row = line / l.width, column = line - row * l.width;
    const int32_t reach = (int32_t)l.reach;
    return {(int32_t)row - reach, (int32_t)column - reach,
            (int32_t)(OCT_LEVELSET_THREE * group) - reach,
            tile + row * l.row_pitch + column * l.pitch + OCT_LEVELSET_THREE * group};
}

template <int RADIUS>
static __global__ void __launch_bounds__(OCT_LEVELSET_THREADS)
    oct_levelset_rows_kernel(struct oct_levelset_shape s, struct oct_levelset_layout l,
                             const float *phi, const struct oct_levelset_run *segments,
                             struct oct_levelset_piece piece, float *rows)
{
    typedef oct_levelset_patch<RADIUS> patch;
    OCT_SHARED(float, shared);
    float *tile = shared + patch::most;
    const struct oct_levelset_run segment = segments[piece.first + blockIdx.x];
    const int32_t d = (int32_t)(segment.at % s.n_d), line = (int32_t)(segment.at / s.n_d);
    const int32_t b = line / (int32_t)s.n_j, j = line % (int32_t)s.n_j;
    float *row =
        rows + (size_t)(segment.first - oct_levelset_piece_begin(piece, segments)) * l.n_row;
    oct_levelset_load<RADIUS>(s, l, phi, b, j, d, tile, shared);
    for (uint32_t t = threadIdx.x; t < l.n_units; t += OCT_LEVELSET_THREADS) {
        const struct oct_levelset_unit u = oct_levelset_unit_of(l, t, tile);
        float sums[OCT_LEVELSET_THREE][OCT_LEVELSET_SPAN] = {};
        const bool is_beside = b + u.db >= 0 && b + u.db < (int32_t)s.n_b && j + u.dj >= 0 &&
                               j + u.dj < (int32_t)s.n_j;
        for (int pb = 0; pb < patch::n && is_beside; pb++)
#pragma unroll
            for (int pj = 0; pj < patch::n; pj++)
                oct_levelset_add<RADIUS>(shared + (pb * patch::n + pj) * patch::pitch,
                                         u.tile + pb * l.row_pitch + pj * l.pitch, sums);
        const float *y = u.tile + RADIUS * (l.row_pitch + l.pitch + 1);
        float *to = row + t;
#pragma unroll
        for (int k = 0; k < (int)OCT_LEVELSET_SPAN; k++) {
            if (!(segment.mask >> k & 1))
                continue;
#pragma unroll
            for (int i = 0; i < (int)OCT_LEVELSET_THREE; i++) {
                const int32_t dd = u.dd + i, at = d + k + dd;
                const bool is_self = u.db == 0 && u.dj == 0 && dd == 0;
                const bool is_in = is_beside && !is_self && dd <= (int32_t)l.reach && at >= 0 &&
                                   at < (int32_t)s.n_d && fabsf(y[k + i]) <= s.delta;
                to[(size_t)i * l.n_units] = is_in ? sums[i][k] : OCT_LEVELSET_NONE;
            }
            to += l.n_row;
        }
    }
}

/* ---- of rows, a warp a voxel ---- */

/* The rank-th smallest D of a row, a warp; the row has as many. */
template <class COUNT>
static __device__ inline float oct_levelset_ranked(const float *row, uint32_t n_row, uint32_t rank,
                                                   COUNT count)
{
    const uint32_t limit = oct_levelset_limit(OCT_LEVELSET_INF, rank, count);
    uint32_t largest = 0;
    for (uint32_t i = threadIdx.x % 32; i < n_row; i += 32) {
        const uint32_t bits = oct_levelset_bits(row[i]);
        largest = bits <= limit && bits > largest ? bits : largest;
    }
    return oct_levelset_value(oct_levelset_warp_max(largest));
}

/* The rank-th smallest D of each row that has as many; rank 0: none. Counts candidates. */
static __global__ void oct_levelset_rank_kernel(const float *rows, uint32_t n_row,
                                                const struct oct_levelset_run *segments,
                                                struct oct_levelset_piece piece, uint32_t rank,
                                                float *ranks, struct oct_levelset_facts *facts)
{
    __shared__ uint32_t counts[OCT_LEVELSET_WARPS];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint64_t begin = oct_levelset_piece_begin(piece, segments);
    const uint64_t x = begin + (uint64_t)blockIdx.x * OCT_LEVELSET_WARPS + warp;
    uint32_t n = 0;
    if (x < oct_levelset_piece_end(piece, segments)) {
        const float *row = rows + (x - begin) * n_row;
        const auto count = [&](uint32_t limit) {
            uint32_t own = 0;
            for (uint32_t i = lane; i < n_row; i += 32)
                own += oct_levelset_bits(row[i]) <= limit;
            return oct_levelset_warp_sum(own);
        };
        n = count(OCT_LEVELSET_INF);
        const bool has_rank = rank > 0 && n >= rank;
        const float ranked =
            has_rank ? oct_levelset_ranked(row, n_row, rank, count) : OCT_LEVELSET_NONE;
        if (lane == 0)
            ranks[x] = ranked;
    }
    if (lane == 0)
        counts[warp] = n;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    unsigned long long total = 0;
    for (unsigned i = 0; i < OCT_LEVELSET_WARPS; i++)
        total += counts[i];
    atomicAdd(&facts->n_patches, total);
}

/* now: phi before the step, of the box; next: after it, of the band. */
static __global__ void oct_levelset_local_kernel(
    const float *rows, uint32_t n_row, const struct oct_levelset_offset *offsets,
    const struct oct_levelset_run *segments, struct oct_levelset_piece piece, const uint32_t *index,
    const float *now, enum oct_levelset_mode mode, float *next, struct oct_levelset_facts *facts)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint64_t begin = oct_levelset_piece_begin(piece, segments);
    const uint64_t x = begin + (uint64_t)blockIdx.x * OCT_LEVELSET_WARPS + threadIdx.x / 32;
    const float c2 = facts->c2;
    float phi = 0, sum = 0, pull = 0, *to = NULL;
    if (x < oct_levelset_piece_end(piece, segments)) {
        const float *row = rows + (x - begin) * n_row, *here = now + index[x];
        phi = *here;
        to = next + x;
        for (uint32_t i = lane; i < n_row; i += 32) {
            const float distance = row[i];
            if (distance < 0)
                continue;
            const struct oct_levelset_offset o = offsets[i];
            const float w = oct_levelset_weight(o.near, distance, c2);
            sum += w;
            pull = fmaf(w, here[o.step] - phi, pull);
        }
    }
    oct_levelset_end_step(mode, phi, sum, pull, to, facts);
}

/* The band's values into the box. */
static __global__ void oct_levelset_put_kernel(const float *next, const uint32_t *index, uint32_t n,
                                               float *now)
{
    const uint64_t i = (uint64_t)blockIdx.x * OCT_LEVELSET_THREADS + threadIdx.x;
    if (i < n)
        now[index[i]] = next[i];
}

#endif
