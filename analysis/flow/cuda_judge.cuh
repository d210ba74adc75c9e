/* From the sums of A-lines to what is shown of a place on a device: steps 5 to 8 of place.h. Part
 * of cuda.cu.
 *
 *     judge -> d, isnr                  a block a tile of lines
 *     bulk -> b and what it is of       a block a place
 *     score -> z, projected, shown      a block an A-line */
#ifndef OCT_ANALYSIS_FLOW_CUDA_JUDGE_CUH
#define OCT_ANALYSIS_FLOW_CUDA_JUDGE_CUH

#include "analysis/flow/cuda_place.cuh"

#define OCT_FLOW_COLUMNS 128u
#define OCT_FLOW_SPAN (4 * OCT_FLOW_COLUMNS) /* depths of a block that judges */
#define OCT_FLOW_SCORES 8u                   /* depths that a thread scores */
#define OCT_FLOW_SCORE_THREADS (OCT_FLOW_CHUNK / OCT_FLOW_SCORES)
#define OCT_FLOW_SCORE_WARPS (OCT_FLOW_SCORE_THREADS / 32)
#define OCT_FLOW_MANY 1024u /* threads of a block that has a place to itself */
#define OCT_FLOW_MANY_WARPS (OCT_FLOW_MANY / 32)

/* ---- the window along A-lines, and d ---- */

/* What pairs and repeats weigh in the windows of a tile's lines, and where they are. */
struct oct_flow_cuda_tile {
    uint64_t has[2][OCT_FLOW_TILE + 2 * OCT_FLOW_MOST_RADIUS]; /* of lines that windows reach */
    float taps[2][OCT_FLOW_MOST_REPEATS][OCT_FLOW_TILE];
    int first[2][OCT_FLOW_MOST_REPEATS], end[2][OCT_FLOW_MOST_REPEATS];
    float whole[2][OCT_FLOW_TILE]; /* the weight of windows that all of these have whole: */
    int whole_first, whole_end;    /* at these depths */
    int line_first[OCT_FLOW_TILE], line_end[OCT_FLOW_TILE]; /* depths that a pair has */
    bool is_even; /* all lines have the same of the last three */
    float noise;
};

/* Depths of pair r (what 0), of repeats r and r + 1, or of repeat r. */
static __device__ __forceinline__ void oct_flow_span_of(const struct oct_flow_cuda &f, uint32_t k,
                                                        uint32_t what, uint32_t r, int *first,
                                                        int *end)
{
    const int32_t *depths = f.place[k].depths;
    int other_first, other_end;
    *first = *end = 0;
    if (oct_flow_has(f.came[k], r))
        oct_flow_range(f, depths[r], first, end);
    if (what == 0 && (r + 1 == f.n_repeats || !oct_flow_has(f.came[k], r + 1))) {
        *end = *first;
    } else if (what == 0) {
        oct_flow_range(f, depths[r + 1], &other_first, &other_end);
        *first = max(*first, other_first);
        *end = min(*end, other_end);
    }
}

/* What lines have, and where. */
static __device__ __forceinline__ void oct_flow_begin_tile(const struct oct_flow_cuda &f,
                                                           uint32_t k, uint32_t j0,
                                                           struct oct_flow_cuda_tile *tile)
{
    const struct oct_flow_cuda_line *lines = f.line + (size_t)k * f.n_lines;
    for (int i = (int)threadIdx.x; i < (int)OCT_FLOW_TILE + 2 * f.radius_lines;
         i += (int)OCT_FLOW_COLUMNS) {
        const int j = (int)j0 - f.radius_lines + i, m = i - f.radius_lines;
        struct oct_flow_cuda_line line = {0, 0, 0, 0};
        if (j >= 0 && j < (int)f.n_lines)
            line = lines[j];
        tile->has[0][i] = line.pairs;
        tile->has[1][i] = line.repeats;
        if (m >= 0 && m < (int)OCT_FLOW_TILE) {
            tile->line_first[m] = line.pairs ? (int)line.first : (int)f.depth;
            tile->line_end[m] = (int)line.end;
        }
    }
    if (threadIdx.x == 0) {
        tile->noise = (float)f.place[k].noise;
        tile->whole_first = 0;
        tile->whole_end = (int)f.depth;
        tile->is_even = true;
    }
    __syncthreads();
}

static __device__ void oct_flow_weigh_tile(const struct oct_flow_cuda &f, uint32_t k, uint32_t j0,
                                           struct oct_flow_cuda_tile *tile)
{
    const uint32_t n = 2 * f.n_repeats;
    oct_flow_begin_tile(f, k, j0, tile);
    for (uint32_t i = threadIdx.x; i < n * OCT_FLOW_TILE; i += OCT_FLOW_COLUMNS) {
        const uint32_t m = i % OCT_FLOW_TILE, what = i / OCT_FLOW_TILE % 2,
                       r = i / OCT_FLOW_TILE / 2;
        float sum = 0;
        for (int at = 0; at <= 2 * f.radius_lines; at++)
            if (oct_flow_has(tile->has[what][(int)m + at], r))
                sum += f.taps_lines[(uint32_t)at + OCT_FLOW_TILE - 1];
        tile->taps[what][r][m] = sum;
        int first, end;
        oct_flow_span_of(f, k, what, r, &first, &end);
        tile->first[what][r] = first;
        tile->end[what][r] = end;
        if (sum > 0) {
            atomicMax(&tile->whole_first, first + f.radius_depth);
            atomicMin(&tile->whole_end, end - f.radius_depth);
        }
    }
    __syncthreads();
    if (threadIdx.x < 2 * OCT_FLOW_TILE) {
        const uint32_t what = threadIdx.x / OCT_FLOW_TILE, m = threadIdx.x % OCT_FLOW_TILE;
        float sum = 0;
        for (uint32_t r = 0; r < f.n_repeats; r++)
            sum += tile->taps[what][r][m] * f.below[2 * f.radius_depth + 1];
        tile->whole[what][m] = sum;
    }
    __syncthreads();
    const uint32_t own = threadIdx.x;
    if (own < OCT_FLOW_TILE && j0 + own < f.n_lines &&
        (tile->line_first[own] != tile->line_first[0] || tile->line_end[own] != tile->line_end[0] ||
         fabsf(tile->whole[0][own] - tile->whole[0][0]) > 0 ||
         fabsf(tile->whole[1][own] - tile->whole[1][0]) > 0))
        tile->is_even = false;
    __syncthreads();
}

/* The share of the window about depth d that lies in first .. end - 1. */
static __device__ __forceinline__ float oct_flow_share(const struct oct_flow_cuda &f, int d,
                                                       int first, int end)
{
    const int radius = f.radius_depth;
    int low = first - d, high = end - 1 - d;
    low = low > -radius ? low : -radius;
    high = high < radius ? high : radius;
    return high < low ? 0 : f.below[high + radius + 1] - f.below[low + radius];
}

struct oct_flow_cuda_window {
    float same, both, intensity;
};

/* d and isnr; share: 1 over the repeats in the window. */
static __device__ __forceinline__ float2 oct_flow_judge_voxel(const struct oct_flow_cuda_window &w,
                                                              float weight, float share,
                                                              float noise)
{
    const float least = OCT_FLOW_LEAST_SHARE * w.both, left = w.both - noise * weight;
    const float signal = w.intensity * share - noise, low = OCT_FLOW_LEAST_SIGNAL * noise;
    return make_float2(1 - __fdividef(w.same, fmaxf(left, least)),
                       __fdividef(noise, fmaxf(signal, low)));
}

/* Sums of the windows of the tile's lines at depth d. RADIUS: that of the window along A-lines;
 * negative: any. */
template <int RADIUS>
static __device__ __forceinline__ void
oct_flow_sum_windows(const struct oct_flow_cuda &f, uint32_t k, uint32_t j0, uint32_t d,
                     struct oct_flow_cuda_window w[OCT_FLOW_TILE])
{
    const int radius = RADIUS < 0 ? f.radius_lines : RADIUS, first = (int)j0 - radius;
    [[maybe_unused]] constexpr int UNROLLED = RADIUS < 0 ? 1 : (int)OCT_FLOW_TILE + 2 * RADIUS;
    const size_t at = ((size_t)k * f.n_lines + (uint32_t)max(first, 0)) * f.depth + d;
    const float *sums[3] = {f.sums[0] + at, f.sums[1] + at, f.sums[2] + at};
#pragma unroll UNROLLED
    for (int o = 0; o < (int)OCT_FLOW_TILE + 2 * radius; o++) {
        /* A line beyond the border reads its neighbour: no load waits for another's branch. */
        const bool has = first + o >= 0 && first + o < (int)f.n_lines;
        const uint32_t step = first + o >= 0 && first + o + 1 < (int)f.n_lines ? f.depth : 0;
        float of[3];
        for (int i = 0; i < 3; i++) {
            of[i] = __ldg(sums[i]);
            of[i] = has ? of[i] : 0;
            sums[i] += step;
        }
#pragma unroll
        for (int m = 0; m < (int)OCT_FLOW_TILE; m++) {
            if (RADIUS >= 0 && (o < m || o - m > 2 * RADIUS))
                continue;
            const float tap = f.taps_lines[o - m + (int)OCT_FLOW_TILE - 1];
            w[m].same += tap * of[0];
            w[m].both += tap * of[1];
            w[m].intensity += tap * of[2];
        }
    }
}

/* What pairs, or repeats, weigh in the window of line m at depth d. */
static __device__ __forceinline__ float oct_flow_weight(const struct oct_flow_cuda &f,
                                                        const struct oct_flow_cuda_tile &tile,
                                                        uint32_t what, uint32_t m, uint32_t d)
{
    if ((int)d >= tile.whole_first && (int)d < tile.whole_end)
        return tile.whole[what][m];
    float sum = 0;
    for (uint32_t r = 0; r < f.n_repeats; r++)
        sum += tile.taps[what][r][m] *
               oct_flow_share(f, (int)d, tile.first[what][r], tile.end[what][r]);
    return sum;
}

/* The tile's lines at depth d. */
template <int RADIUS>
static __device__ __forceinline__ void oct_flow_judge_depth(const struct oct_flow_cuda &f,
                                                            const struct oct_flow_cuda_tile &tile,
                                                            uint32_t k, uint32_t j0, uint32_t d)
{
    const size_t line = (size_t)k * f.n_lines + j0;
    const float whole = tile.whole[0][0], share = __fdividef(1.0f, tile.whole[1][0]);
    const float noise = tile.noise;
    const uint32_t n_lines = f.n_lines - j0;
    const bool is_even = tile.is_even && (int)d >= max(tile.whole_first, tile.line_first[0]) &&
                         (int)d < min(tile.whole_end, tile.line_end[0]);
    struct oct_flow_cuda_window w[OCT_FLOW_TILE] = {};
    oct_flow_sum_windows<RADIUS>(f, k, j0, d, w);
    const uint32_t look = d / f.look_step; /* line j is looked at where d + j is a multiple */
    uint32_t left = (d + j0) % f.look_step;
    float *to_d = f.d + line * f.depth + d, *to_isnr = f.isnr + line * f.depth + d;
#pragma unroll
    for (uint32_t m = 0; m < OCT_FLOW_TILE; m++) {
        if (m >= n_lines)
            break;
        float2 value = make_float2(NAN, NAN);
        if (is_even)
            value = oct_flow_judge_voxel(w[m], whole, share, noise);
        else if ((int)d >= tile.line_first[m] && (int)d < tile.line_end[m])
            value = oct_flow_judge_voxel(w[m], oct_flow_weight(f, tile, 0, m, d),
                                         1 / oct_flow_weight(f, tile, 1, m, d), noise);
        *to_d = value.x;
        *to_isnr = value.y;
        to_d += f.depth;
        to_isnr += f.depth;
        if (left == 0)
            f.look[(line + m) * f.look_row + look] = value;
        left = left + 1 == f.look_step ? 0 : left + 1;
    }
}

template <int RADIUS>
static __global__ void __launch_bounds__(OCT_FLOW_COLUMNS, RADIUS < 0 ? 4 : 8)
    oct_flow_judge_kernel(const struct oct_flow_cuda f)
{
    __shared__ struct oct_flow_cuda_tile tile;
    oct_await_before();
    const uint32_t k = blockIdx.z, j0 = blockIdx.y * OCT_FLOW_TILE,
                   first = blockIdx.x * OCT_FLOW_SPAN;
    oct_flow_weigh_tile(f, k, j0, &tile);
    for (uint32_t d = first + threadIdx.x; d < f.depth && d < first + OCT_FLOW_SPAN;
         d += OCT_FLOW_COLUMNS)
        oct_flow_judge_depth<RADIUS>(f, tile, k, j0, d);
}

/* ---- bulk decorrelation ---- */

/* Floats above 0 in 24 bits, of 2^-23 each; 2 and more are the same. */
static __device__ __forceinline__ uint32_t oct_flow_key(float v)
{
    return (uint32_t)((v < 1.9999998f ? v : 1.9999998f) * 8388608.0f);
}

/* Shared. */
struct oct_flow_median {
    uint32_t counts[4096]; /* of keys with the same upper or lower half */
    uint32_t warps[OCT_FLOW_MANY_WARPS];
    uint32_t half,
        left; /* the half of the key of the rank, and the rank among those that have it */
    float most[2][OCT_FLOW_MANY_WARPS];
};

/* Calls f with each of a thread's looks; what lies behind the last has no depth. Eight loads are in
 * flight at a time: the block's time is theirs. */
template <class F>
static __device__ __forceinline__ void oct_flow_each_look(const float2 *look, uint32_t n, F f)
{
    constexpr uint32_t AT_ONCE = 8;
    for (uint32_t first = threadIdx.x; first < n; first += AT_ONCE * OCT_FLOW_MANY) {
        float2 v[AT_ONCE];
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            const uint32_t at = first + i * OCT_FLOW_MANY;
            v[i] = at < n ? look[at] : make_float2(0, NAN);
        }
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++)
            f(v[i]);
    }
}

/* Twelve bits of the key of that rank among bright d above 0: of those whose upper bits are
 * `above`, the lower ones; without, the upper ones. */
static __device__ void oct_flow_select(struct oct_flow_median *s, const float2 *look, uint32_t n,
                                       uint32_t rank, bool has_above, uint32_t above)
{
    const uint32_t t = threadIdx.x, lane = t % 32;
    for (uint32_t i = t; i < 4096; i += OCT_FLOW_MANY)
        s->counts[i] = 0;
    __syncthreads();
    oct_flow_each_look(look, n, [&](float2 v) {
        const uint32_t key = v.x > 0 ? oct_flow_key(v.x) : 0;
        if (v.y < OCT_FLOW_BRIGHT && v.x > 0 && (!has_above || key >> 12 == above))
            atomicAdd(&s->counts[has_above ? key & 4095 : key >> 12], 1u);
    });
    __syncthreads();
    uint32_t own = 0;
    for (unsigned i = 0; i < 4; i++)
        own += s->counts[4 * t + i];
    uint32_t sum = own; /* of all threads up to this one */
    for (uint32_t step = 1; step < 32; step *= 2) {
        const uint32_t before = __shfl_sync(0xffffffffu, sum, (int)(lane - step) & 31);
        sum += lane >= step ? before : 0;
    }
    if (lane == 31)
        s->warps[t / 32] = sum;
    __syncthreads();
    for (unsigned w = 0; w < t / 32; w++)
        sum += s->warps[w];
    if (rank < sum && rank >= sum - own) {
        uint32_t i = 4 * t, left = rank - (sum - own);
        for (; left >= s->counts[i]; i++)
            left -= s->counts[i];
        s->half = i;
        s->left = left;
    }
    __syncthreads();
}

/* The median of n_bright d, of which n_dark are not above 0; not below 0. */
static __device__ double oct_flow_find_median(struct oct_flow_median *s, const float2 *look,
                                              uint32_t n, uint32_t n_bright, uint32_t n_dark)
{
    const uint32_t t = threadIdx.x, rank = n_bright / 2;
    if (rank < n_dark)
        return 0;
    oct_flow_select(s, look, n, rank - n_dark, false, 0);
    const uint32_t above = s->half, left = s->left;
    __syncthreads();
    oct_flow_select(s, look, n, left, true, above);
    const uint32_t key = above << 12 | s->half;
    const bool is_first = s->left == 0; /* what has the rank before has another key */
    float most[2] = {-1e30f, -1e30f};   /* of those below, of those that have the key */
    oct_flow_each_look(look, n, [&](float2 v) {
        const uint32_t of = v.x > 0 ? oct_flow_key(v.x) : 0;
        const bool is_in = v.y < OCT_FLOW_BRIGHT && of <= key, has_it = v.x > 0 && of == key;
        most[0] = is_in && !has_it && v.x > most[0] ? v.x : most[0];
        most[1] = is_in && has_it && v.x > most[1] ? v.x : most[1];
    });
    for (unsigned which = 0; which < 2; which++) {
        for (int mask = 16; mask > 0; mask /= 2) {
            const float other = __shfl_xor_sync(0xffffffffu, most[which], mask);
            most[which] = other > most[which] ? other : most[which];
        }
        if (t % 32 == 0)
            s->most[which][t / 32] = most[which];
    }
    __syncthreads();
    for (unsigned which = 0; which < 2; which++)
        for (unsigned w = 0; w < OCT_FLOW_MANY_WARPS; w++)
            most[which] = s->most[which][w] > most[which] ? s->most[which][w] : most[which];
    const double high = most[1], low = n_bright % 2 || !is_first ? high : (double)most[0];
    return 0.5 * (low + high) > 0 ? 0.5 * (low + high) : 0;
}

static __device__ void oct_flow_sum_alike(const struct oct_flow_cuda &f, uint32_t k)
{
    const uint32_t lane = threadIdx.x % 32;
    for (uint32_t r = threadIdx.x / 32; r < f.n_repeats; r += OCT_FLOW_MANY_WARPS) {
        double sum[3] = {0, 0, 0};
        for (uint32_t j = lane; j < f.n_lines; j += 32) {
            const float2 a = f.alike[((size_t)k * f.n_lines + j) * f.n_repeats + r];
            sum[0] += a.x;
            sum[1] += a.y;
            sum[2] += a.y > 0;
        }
        for (unsigned i = 0; i < 3; i++) {
            sum[i] = oct_flow_warp_sum(sum[i]);
            if (lane == 0)
                f.place[k].alike[r][i] = sum[i];
        }
    }
}

static __global__ void __launch_bounds__(OCT_FLOW_MANY)
    oct_flow_bulk_kernel(const struct oct_flow_cuda f)
{
    __shared__ struct oct_flow_median median;
    __shared__ double part[OCT_FLOW_MANY_WARPS];
    oct_await_before();
    const uint32_t k = blockIdx.x, n = f.n_lines * f.look_row;
    const float2 *look = f.look + (size_t)k * n;
    uint32_t n_looked = 0, n_tissue = 0, n_bright = 0, n_dark = 0;
    double snr = 0;
    oct_flow_sum_alike(f, k);
    oct_flow_each_look(look, n, [&](float2 v) {
        n_looked += v.y == v.y;
        n_tissue += v.y < OCT_FLOW_TISSUE;
        n_bright += v.y < OCT_FLOW_BRIGHT;
        n_dark += v.y < OCT_FLOW_BRIGHT && !(v.x > 0);
        snr += v.y < OCT_FLOW_TISSUE ? (double)(1 / v.y) : 0;
    });
    snr = oct_flow_block_sum(snr, part);
    n_looked = oct_flow_block_sum(n_looked, median.warps);
    n_tissue = oct_flow_block_sum(n_tissue, median.warps);
    n_bright = oct_flow_block_sum(n_bright, median.warps);
    n_dark = oct_flow_block_sum(n_dark, median.warps);
    double bulk = 0;
    if ((uint64_t)n_bright * f.look_step >= OCT_FLOW_LEAST_BRIGHT)
        bulk = oct_flow_find_median(&median, look, n, n_bright, n_dark);
    if (threadIdx.x > 0)
        return;
    struct oct_flow_cuda_place *p = &f.place[k];
    p->bulk = bulk;
    p->snr = snr;
    p->n_looked = n_looked;
    p->n_tissue = n_tissue;
}

/* ---- significance ---- */

struct oct_flow_cuda_score {
    float bulk, share, floor2;
};

static __device__ struct oct_flow_cuda_score oct_flow_score_of(const struct oct_flow_cuda &f,
                                                               uint32_t k, uint64_t pairs)
{
    const struct oct_flow_cuda_place *p = &f.place[k];
    const uint64_t both = pairs & pairs >> 1;
    const float n = (float)(__popc((uint32_t)pairs) + __popc((uint32_t)(pairs >> 32)));
    const float m = (float)(__popc((uint32_t)both) + __popc((uint32_t)(both >> 32)));
    const float share = n > 0 ? (n + m / 2) / (n * n * (float)p->samples) : 1;
    const float least = (float)(p->bulk > OCT_FLOW_LEAST_SD ? p->bulk : OCT_FLOW_LEAST_SD);
    return {(float)p->bulk, share, least * least};
}

static __device__ __forceinline__ float oct_flow_score(const struct oct_flow_cuda_score &s, float d,
                                                       float isnr)
{
    return (d - s.bulk) * rsqrtf(s.share * isnr * isnr + s.floor2);
}

/* Four values from there on, of which n are there; *is_four: all of the line's lie so that one load
 * takes them. */
static __device__ __forceinline__ void oct_flow_load_four(const float *at, uint32_t n, bool is_four,
                                                          float to[OCT_FLOW_QUAD])
{
    if (is_four && n > 0) {
        const float4 v = *reinterpret_cast<const float4 *>(at);
        to[0] = v.x;
        to[1] = v.y;
        to[2] = v.z;
        to[3] = v.w;
        return;
    }
    for (uint32_t q = 0; q < OCT_FLOW_QUAD; q++)
        to[q] = q < n ? at[q] : NAN;
}

/* The largest flow of each depth of a chunk and of those above it; top: the flow of each of a
 * thread's, then that. *most: of the chunks above, then with this one. */
static __device__ __forceinline__ void oct_flow_scan_tops(float top[OCT_FLOW_SCORES], float *most,
                                                          float (&tops)[OCT_FLOW_SCORE_WARPS])
{
    const uint32_t t = threadIdx.x, lane = t % 32;
    for (unsigned q = 1; q < OCT_FLOW_SCORES; q++)
        top[q] = fmaxf(top[q], top[q - 1]);
    float own = top[OCT_FLOW_SCORES - 1];
    for (uint32_t step = 1; step < 32; step *= 2) {
        const float before = __shfl_sync(0xffffffffu, own, (int)(lane - step) & 31);
        own = lane >= step ? fmaxf(own, before) : own;
    }
    if (lane == 31)
        tops[t / 32] = own;
    const float before = __shfl_sync(0xffffffffu, own, (int)(lane - 1) & 31);
    float above = lane == 0 ? *most : fmaxf(*most, before);
    __syncthreads();
    for (unsigned w = 0; w < OCT_FLOW_SCORE_WARPS; w++) {
        above = w < t / 32 ? fmaxf(above, tops[w]) : above;
        *most = fmaxf(*most, tops[w]);
    }
    for (unsigned q = 0; q < OCT_FLOW_SCORES; q++)
        top[q] = fmaxf(top[q], above);
}

/* Stores the largest of all threads, NaN where there is none. part: shared, of each warp. */
static __device__ __forceinline__ void oct_flow_store_largest(float largest, float *part, float *to)
{
    for (int mask = 16; mask > 0; mask /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, mask));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = largest;
    __syncthreads();
    for (unsigned w = 0; w < OCT_FLOW_SCORE_WARPS && threadIdx.x == 0; w++)
        largest = fmaxf(largest, part[w]);
    if (threadIdx.x == 0)
        *to = largest > -INFINITY ? largest : NAN;
}

/* d of n depths from voxel `at` on where z, projected, is flow. */
static __device__ __forceinline__ void oct_flow_show_depths(const struct oct_flow_cuda &f,
                                                            size_t at, uint32_t n,
                                                            const float d[OCT_FLOW_SCORES],
                                                            const float projected[OCT_FLOW_SCORES])
{
    uint32_t packed[2] = {0, 0};
    if (f.shown)
        for (uint32_t q = 0; q < OCT_FLOW_SCORES && q < n; q++)
            f.shown[at + q] = projected[q] >= f.min_z ? d[q] : 0 * d[q];
    if (!f.bytes || n == 0)
        return;
#pragma unroll
    for (uint32_t q = 0; q < OCT_FLOW_SCORES; q++) {
        const float value = projected[q] >= f.min_z ? fminf(fmaxf(d[q], 0.0f), 1.0f) : 0;
        packed[q / 4] |= (uint32_t)(value * 255 + 0.5f) << 8 * (q % 4);
    }
    if (f.depth % OCT_FLOW_SCORES == 0)
        *reinterpret_cast<uint2 *>(f.bytes + at) = make_uint2(packed[0], packed[1]);
    else
        for (uint32_t q = 0; q < OCT_FLOW_SCORES && q < n; q++)
            f.bytes[at + q] = (uint8_t)(packed[q / 4] >> 8 * (q % 4));
}

/* z of a thread's depths less what lies above them: above those of the chunk, which begins at
 * `first`, or of chunks above. own: d - b. */
static __device__ __forceinline__ void oct_flow_project(const struct oct_flow_cuda &f,
                                                        const float *strongest, const float *above,
                                                        uint32_t first, uint32_t at,
                                                        const float own[OCT_FLOW_SCORES],
                                                        float z[OCT_FLOW_SCORES])
{
#pragma unroll
    for (uint32_t q = 0; q < OCT_FLOW_SCORES; q++) {
        const uint32_t from = at + q - f.reach;
        if (at + q >= f.reach && at + q < f.depth && fabsf(own[q]) > 0)
            z[q] -= __fdividef(f.projection *
                                   (from >= first ? strongest[from - first] : above[from]) * z[q],
                               own[q]);
    }
}

static __global__ void __launch_bounds__(OCT_FLOW_SCORE_THREADS, 10)
    oct_flow_score_kernel(const struct oct_flow_cuda f)
{
    alignas(16) __shared__ float strongest[OCT_FLOW_CHUNK];
    __shared__ float tops[OCT_FLOW_SCORE_WARPS];
    oct_await_before();
    const uint32_t j = blockIdx.x, k = blockIdx.y;
    const size_t line = (size_t)k * f.n_lines + j;
    const bool is_four = f.depth % OCT_FLOW_QUAD == 0;
    const struct oct_flow_cuda_score score = oct_flow_score_of(f, k, f.line[line].pairs);
    float *above = f.sums[0] + line * f.depth; /* done with: strongest of chunks above */
    float most = 0, largest = -INFINITY;
    for (uint32_t first = 0; first < f.depth; first += OCT_FLOW_CHUNK) {
        const uint32_t at = first + OCT_FLOW_SCORES * threadIdx.x;
        const uint32_t n = at < f.depth ? f.depth - at : 0;
        const size_t i = line * f.depth + at;
        float d[OCT_FLOW_SCORES], isnr[OCT_FLOW_SCORES], z[OCT_FLOW_SCORES], top[OCT_FLOW_SCORES];
        for (uint32_t q = 0; q < OCT_FLOW_SCORES; q += OCT_FLOW_QUAD) {
            oct_flow_load_four(f.d + i + q, n > q ? n - q : 0, is_four, d + q);
            oct_flow_load_four(f.isnr + i + q, n > q ? n - q : 0, is_four, isnr + q);
        }
        for (unsigned q = 0; q < OCT_FLOW_SCORES; q++) {
            z[q] = oct_flow_score(score, d[q], isnr[q]);
            top[q] = z[q] > OCT_FLOW_LEAST_Z && isnr[q] < 1 && d[q] > 0 ? d[q] : 0;
            if (f.is_kept && q < n)
                f.z[i + q] = z[q];
        }
        if (f.projection > 0) {
            oct_flow_scan_tops(top, &most, tops);
            for (unsigned q = 0; q < OCT_FLOW_SCORES; q += OCT_FLOW_QUAD)
                *reinterpret_cast<float4 *>(&strongest[at - first + q]) =
                    make_float4(top[q], top[q + 1], top[q + 2], top[q + 3]);
            if (f.depth > OCT_FLOW_CHUNK)
                for (unsigned q = 0; q < OCT_FLOW_SCORES && q < n; q++)
                    above[at + q] = top[q];
            __syncthreads();
            for (unsigned q = 0; q < OCT_FLOW_SCORES; q++)
                top[q] = d[q] - score.bulk;
            oct_flow_project(f, strongest, above, first, at, top, z);
        }
        if (f.is_kept)
            for (unsigned q = 0; q < OCT_FLOW_SCORES && q < n; q++)
                f.projected[i + q] = z[q];
        if (f.row)
            for (unsigned q = 0; q < OCT_FLOW_SCORES && q < n; q++)
                if (at + q >= f.slab_first && at + q < f.slab_end && z[q] > largest)
                    largest = z[q];
        oct_flow_show_depths(f, i, n, d, z);
        if (first + OCT_FLOW_CHUNK < f.depth)
            __syncthreads();
    }
    if (f.row) {
        __syncthreads();
        oct_flow_store_largest(largest, tops, &f.row[line]);
    }
}

#endif
