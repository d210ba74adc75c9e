/* The passes of a step: the Eulerian force, divided and smoothed along the depth; G along one axis;
 * and the last axis with the step itself. G: a tile in shared memory, and eight neighbours of a
 * thread's own in registers, so that each value of the tile is read once for eight sums. The field
 * is constant beyond the border. */
#ifndef OCT_ANALYSIS_WARP_CUDA_WARP_STEP_CUH
#define OCT_ANALYSIS_WARP_CUDA_WARP_STEP_CUH

#include "analysis/warp/cuda_warp_energy.cuh"

namespace oct_warp
{
#define OCT_WARP_OWN 8u                                   /* sums of a thread */
#define OCT_WARP_REACH 96                                 /* radius, at most */
#define OCT_WARP_TAPS (2 * OCT_WARP_REACH + OCT_WARP_OWN) /* and their neighbours in memory */
#define OCT_WARP_SPREAD(i) ((i) + (i) / OCT_WARP_OWN)     /* eight-fold steps in different banks */

/* Along one axis: taps[0 .. 2 radius]; 4 divides the radius. */
struct taps {
    const float *taps;
    uint32_t radius;
};

/* sums[k]: of taps[t] times value k + t of the line, t = 0 .. 2 radius; line(t, i) is value t + i,
 * and 8 divides t. Of the first eight values and of the last, half of the products are needed. */
template <class LINE>
static __device__ inline void smooth(const float *taps, uint32_t radius, LINE line,
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

struct tile {
    uint32_t n_tiles, radius;
    uint32_t n_loaded; /* at least OCT_WARP_TILE + 2 radius; as many loads for each thread */
};

static inline struct tile tile_of(uint32_t side, uint32_t radius)
{
    const uint32_t each = OCT_WARP_AT_ONCE * OCT_WARP_ROWS;
    return {groups(side, OCT_WARP_TILE), radius, each * groups(OCT_WARP_TILE + 2 * radius, each)};
}

/* Shared memory of such a block; the taps first. */
static inline size_t tile_bytes(const struct tile &tile)
{
    return (OCT_WARP_TAPS + (size_t)tile.n_loaded * OCT_WARP_LANES) * sizeof(float);
}

static __device__ inline void load_taps(const struct taps &g, uint32_t n_threads, float *taps)
{
    for (uint32_t i = threadIdx.x; i <= 2 * g.radius; i += n_threads)
        taps[i] = g.taps[i];
}

/* line: the axis' voxel 0 at this thread's depth; first: of the tile's own voxels. Some loads are
 * under way at once, whatever the branches around them. */
static __device__ inline void load_tile(const float *line, uint32_t step, uint32_t side,
                                        const struct tile &t, uint32_t first, float *tile)
{
    const int32_t begin = (int32_t)first - (int32_t)t.radius;
    float *to = tile + threadIdx.x;
    for (uint32_t i = threadIdx.x / OCT_WARP_LANES; i < t.n_loaded;
         i += OCT_WARP_AT_ONCE * OCT_WARP_ROWS, to += OCT_WARP_AT_ONCE * OCT_WARP_THREADS) {
        float values[OCT_WARP_AT_ONCE];
#pragma unroll
        for (uint32_t k = 0; k < OCT_WARP_AT_ONCE; k++)
            values[k] = line[inside(begin + (int32_t)(i + k * OCT_WARP_ROWS), side) * step];
#pragma unroll
        for (uint32_t k = 0; k < OCT_WARP_AT_ONCE; k++)
            to[k * OCT_WARP_THREADS] = values[k];
    }
}

static __device__ inline void smooth_tile(const float *taps, const struct tile &t,
                                          const float *tile, float sums[OCT_WARP_OWN])
{
    const uint32_t lane = threadIdx.x % OCT_WARP_LANES;
    const float *own = tile + threadIdx.x / OCT_WARP_LANES * OCT_WARP_OWN * OCT_WARP_LANES + lane;
    smooth(
        taps, t.radius, [own](uint32_t at, uint32_t i) { return own[(at + i) * OCT_WARP_LANES]; },
        sums);
}

/* Blocks of one volume, along `axis` (0 or 1). */
static inline uint64_t tile_blocks(const struct box &box, int axis, const struct tile &tile)
{
    return (uint64_t)groups(box.side[2], OCT_WARP_LANES) * box.side[1 - axis] * tile.n_tiles;
}

/* Along the A-lines of three volumes; the blocks are those of one volume after those of another,
 * tiles of one B-scan follow one another. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    gauss_kernel(struct box box, struct tile t, struct taps g, const float *from, float *to,
                 const struct course *course)
{
    OCT_SHARED(float, shared);
    if (has_ended(course))
        return;
    float *taps = shared, *tile = shared + OCT_WARP_TAPS;
    const uint32_t n_d = groups(box.side[2], OCT_WARP_LANES), n_b = box.side[0];
    const uint32_t d = blockIdx.x % n_d * OCT_WARP_LANES + threadIdx.x % OCT_WARP_LANES;
    const uint32_t rest = blockIdx.x / n_d, first = rest % t.n_tiles * OCT_WARP_TILE;
    const uint32_t b = rest / t.n_tiles % n_b, volume = rest / t.n_tiles / n_b;
    const size_t line = volume * box.n + b * box.step[0] + min(d, box.side[2] - 1);
    float sums[OCT_WARP_OWN];
    load_taps(g, OCT_WARP_THREADS, taps);
    load_tile(from + line, box.step[1], box.side[1], t, first, tile);
    __syncthreads();
    smooth_tile(taps, t, tile, sums);
    const uint32_t own = first + threadIdx.x / OCT_WARP_LANES * OCT_WARP_OWN;
    if (d >= box.side[2])
        return;
#pragma unroll
    for (uint32_t k = 0; k < OCT_WARP_OWN; k++)
        if (own + k < box.side[1])
            to[line + (own + k) * box.step[1]] = sums[k];
}

/* ---- the last axis with the step ---- */

/* u'(x) = v(x) + u(x - v(x)) for |v_i| <= 1: the cell is on one side of the voxel or on the
 * other. */
static __device__ inline void compose_near(const struct box &box, const struct place &p,
                                           const float *v, const float *u, float *moved)
{
    struct cell cell = {p.at, {}};
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const bool below = p.x[i] + 1 == box.side[i] || (v[i] > 0 && p.x[i] > 0);
        cell.at -= below ? box.step[i] : 0;
        cell.part[i] = fminf(fmaxf((below ? 1.0f : 0.0f) - v[i], 0.0f), 1.0f);
    }
#pragma unroll
    for (int i = 0; i < 3; i++)
        moved[i * box.n + p.at] = v[i] + sample(u + i * box.n, box, cell);
}

/* v: smoothed along depth and A-lines; here along the B-scans, and u' of it: `scale` of v, of which
 * `most` at most is taken, in units of the finest spacing. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS, 4)
    step_kernel(struct box box, struct tile t, struct taps g, float scale, float most,
                const float *v, const float *u, float *moved, const struct course *course)
{
    OCT_SHARED(float, shared);
    if (has_ended(course))
        return;
    float *taps = shared, *tile = shared + OCT_WARP_TAPS;
    const uint32_t n_d = groups(box.side[2], OCT_WARP_LANES);
    const uint32_t d = blockIdx.x % n_d * OCT_WARP_LANES + threadIdx.x % OCT_WARP_LANES;
    const uint32_t rest = blockIdx.x / n_d, j = rest % box.side[1];
    const uint32_t first = rest / box.side[1] * OCT_WARP_TILE;
    const uint32_t line = j * box.step[1] + min(d, box.side[2] - 1);
    float sums[3][OCT_WARP_OWN];
    load_taps(g, OCT_WARP_THREADS, taps);
#pragma unroll
    for (int i = 0; i < 3; i++) {
        __syncthreads();
        load_tile(v + i * box.n + line, box.step[0], box.side[0], t, first, tile);
        __syncthreads();
        smooth_tile(taps, t, tile, sums[i]);
    }
    const uint32_t own = first + threadIdx.x / OCT_WARP_LANES * OCT_WARP_OWN;
#pragma unroll
    for (uint32_t k = 0; k < OCT_WARP_OWN; k++) {
        if (d >= box.side[2] || own + k >= box.side[0])
            break;
        const struct place p = {{own + k, j, d}, line + (own + k) * box.step[0]};
        float length2 = 0, here[3];
#pragma unroll
        for (int i = 0; i < 3; i++)
            length2 = fmaf(sums[i][k], sums[i][k], length2);
        const float part = scale * most / fmaxf(sqrtf(length2), most);
#pragma unroll
        for (int i = 0; i < 3; i++)
            here[i] = part * box.per[i] * sums[i][k];
        compose_near(box, p, here, u, moved);
    }
}

/* ---- the force ---- */

#define OCT_WARP_FORCE_LINES 4u /* of a block, each for a warp */
#define OCT_WARP_FORCE_THREADS (OCT_WARP_FORCE_LINES * OCT_WARP_LANES)
#define OCT_WARP_FORCE_SPAN (OCT_WARP_FORCE_THREADS / OCT_WARP_FORCE_LINES * OCT_WARP_OWN)

/* What the force is of; fixed: NaN where it is not compared. */
struct fields {
    const float *warped, *pressure, *fixed; /* T(h), that of J, R */
    float lambda, kappa;
};

/* A line, its neighbours in the other two axes, and by what their differences are multiplied. */
struct line {
    uint32_t at, low[2], high[2]; /* first voxels */
    float by[2];
};

static __device__ inline struct line line_of(const struct box &box, const uint32_t x[2])
{
    struct line line;
    line.at = index_of(box, x[0], x[1], 0);
    for (int i = 0; i < 2; i++) {
        const bool first = x[i] == 0, last = x[i] + 1 == box.side[i];
        line.low[i] = line.at - (first ? 0 : box.step[i]);
        line.high[i] = line.at + (last ? 0 : box.step[i]);
        line.by[i] = (first || last ? 1.0f : 0.5f) * box.per[i];
    }
    return line;
}

/* f at depth d of a line, and what it is divided by, in units of the finest spacing. */
static __device__ inline float force_at(const struct box &box, const struct fields &of,
                                        const struct line &line, uint32_t d, float force[3])
{
    const uint32_t low = d > 0 ? d - 1 : 0, high = min(d + 1, box.side[2] - 1);
    const float r = of.fixed[line.at + d], by = (high - low == 2 ? 0.5f : 1.0f) * box.per[2];
    const float off = r == r ? of.warped[line.at + d] - r : 0.0f;
    const uint32_t lows[3] = {line.low[0] + d, line.low[1] + d, line.at + low};
    const uint32_t highs[3] = {line.high[0] + d, line.high[1] + d, line.at + high};
    float under = fmaf(of.kappa * off, off, 8 * of.lambda + OCT_WARP_CONTRAST2);
    if (of.pressure[line.at + d] < of.lambda * (OCT_WARP_BARRIER_J + OCT_WARP_BARRIER_LOG_J))
        under += 4 * OCT_WARP_BARRIER;
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const float each = i < 2 ? line.by[i] : by;
        const float of_warped = each * (of.warped[highs[i]] - of.warped[lows[i]]);
        force[i] = off * of_warped - each * (of.pressure[highs[i]] - of.pressure[lows[i]]);
        under = fmaf(of_warped, of_warped, under);
    }
    return under;
}

/* Undivided, for each voxel, per voxel. */
static __global__ void __launch_bounds__(OCT_WARP_THREADS)
    force_kernel(struct box box, struct fields of, float *force)
{
    const size_t i = (size_t)blockIdx.x * OCT_WARP_THREADS + threadIdx.x;
    if (i >= box.n)
        return;
    const struct place p = place_of(box, i);
    float here[3];
    force_at(box, of, line_of(box, p.x), p.x[2], here);
    for (int k = 0; k < 3; k++)
        force[k * box.n + i] = here[k] * box.units[k];
}

/* ---- divided and smoothed along the depth ---- */

/* A block's part of the depth; 8 divides it. */
struct span {
    uint32_t own, n_spans, pitch; /* pitch: of a line in shared memory */
};

static inline struct span span_of(uint32_t side, uint32_t radius)
{
    struct span span;
    const uint32_t n = groups(side, OCT_WARP_FORCE_SPAN);
    span.own = groups(groups(side, n), OCT_WARP_OWN) * OCT_WARP_OWN;
    span.n_spans = groups(side, span.own);
    span.pitch = OCT_WARP_SPREAD(span.own + 2 * radius) + 1;
    return span;
}

static inline size_t span_bytes(const struct span &span)
{
    return (OCT_WARP_TAPS + (size_t)3 * OCT_WARP_FORCE_LINES * span.pitch) * sizeof(float);
}

static inline uint64_t span_blocks(const struct box &box, const struct span &span)
{
    return (uint64_t)groups(box.side[1], OCT_WARP_FORCE_LINES) * box.side[0] * span.n_spans;
}

/* Of a block: B-scan, first A-line, first depth. */
static __device__ inline struct place span_place(const struct box &box, const struct span &span)
{
    const uint32_t n_j = groups(box.side[1], OCT_WARP_FORCE_LINES);
    const uint32_t rest = blockIdx.x / span.n_spans;
    return {{rest / n_j, rest % n_j * OCT_WARP_FORCE_LINES, blockIdx.x % span.n_spans * span.own},
            0};
}

/* The quotients of a block's lines and of `radius` depths more at both ends; a warp for a line. */
static __device__ inline void load_spans(const struct box &box, const struct fields &of,
                                         const struct span &span, const struct place &first,
                                         uint32_t radius, float *lines)
{
    const uint32_t n = span.own + 2 * radius, own = threadIdx.x / OCT_WARP_LANES;
    const int32_t begin = (int32_t)first.x[2] - (int32_t)radius;
    const uint32_t x[2] = {first.x[0], min(first.x[1] + own, box.side[1] - 1)};
    const struct line line = line_of(box, x);
    const uint32_t lane = threadIdx.x % OCT_WARP_LANES, apart = OCT_WARP_FORCE_LINES * span.pitch;
    float *to = lines + own * span.pitch + OCT_WARP_SPREAD(lane);
    for (uint32_t i = lane; i < n; i += OCT_WARP_LANES, to += OCT_WARP_SPREAD(OCT_WARP_LANES)) {
        const uint32_t d = inside(begin + (int32_t)i, box.side[2]);
        float force[3];
        const float over = __fdividef(OCT_WARP_GAIN, force_at(box, of, line, d, force));
#pragma unroll
        for (uint32_t k = 0; k < 3; k++)
            to[k * apart] = over * force[k];
    }
}

/* The sums take the place of the first `own` values of their lines. */
static __device__ inline void smooth_spans(const struct span &span, const float *taps,
                                           uint32_t radius, float *lines)
{
    const uint32_t n_groups = span.own / OCT_WARP_OWN, line = threadIdx.x / n_groups;
    const uint32_t first = threadIdx.x % n_groups * OCT_WARP_OWN;
    const bool has_own = line < OCT_WARP_FORCE_LINES;
    for (uint32_t k = 0; k < 3; k++) {
        float *values = lines + (k * OCT_WARP_FORCE_LINES + line) * span.pitch;
        float sums[OCT_WARP_OWN];
        if (has_own)
            smooth(
                taps, radius,
                [values, first](uint32_t t, uint32_t i) {
                    return values[OCT_WARP_SPREAD(first + t) + i];
                },
                sums);
        __syncthreads();
        if (!has_own)
            continue;
#pragma unroll
        for (uint32_t i = 0; i < OCT_WARP_OWN; i++)
            values[OCT_WARP_SPREAD(first) + i] = sums[i];
    }
    __syncthreads();
}

static __global__ void __launch_bounds__(OCT_WARP_FORCE_THREADS)
    drive_kernel(struct box box, struct fields of, struct span span, struct taps g, float *v,
                 const struct course *course)
{
    OCT_SHARED(float, shared);
    if (has_ended(course))
        return;
    float *taps = shared, *lines = shared + OCT_WARP_TAPS;
    const struct place first = span_place(box, span);
    load_taps(g, OCT_WARP_FORCE_THREADS, taps);
    load_spans(box, of, span, first, g.radius, lines);
    __syncthreads();
    smooth_spans(span, taps, g.radius, lines);
    const uint32_t line = threadIdx.x / OCT_WARP_LANES, j = first.x[1] + line;
    if (j >= box.side[1])
        return;
    const uint32_t n = min(span.own, box.side[2] - first.x[2]), lane = threadIdx.x % OCT_WARP_LANES;
    for (uint32_t k = 0; k < 3; k++) {
        const float *from =
            lines + (k * OCT_WARP_FORCE_LINES + line) * span.pitch + OCT_WARP_SPREAD(lane);
        float *to = v + k * box.n + index_of(box, first.x[0], j, first.x[2]);
        for (uint32_t d = lane; d < n; d += OCT_WARP_LANES, from += OCT_WARP_SPREAD(OCT_WARP_LANES))
            to[d] = *from;
    }
}

} // namespace oct_warp

#endif
