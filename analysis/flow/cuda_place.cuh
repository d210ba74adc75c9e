/* Motion contrast of places on a device: the steps of place.h, method `complex`, of several places
 * at once, and what all of its kernels know. Part of cuda.cu.
 *
 *     put -> B, power, blocks           a B-scan as it comes
 *     shift -> step                     a block a pair (cuda_shift.cuh)
 *     plan -> lines, depths, n0, Q      a block a place
 *     lines -> sums, along the depth smooth; a block an A-line
 *     judge -> d, isnr
 *     bulk -> b and what it is of       a block a place
 *     score -> z, projected, shown      a block an A-line
 *
 * B of repeat r of place k of a group of K places is B-scan r K + k, [M][D], zeros in lines that
 * did not come. Turns of B (step 3) are never made: Re(B_r conj B_r-1) of turned ones is that of B
 * as it came, turned by the pair's own phase. Sums are in another order than the CPU's. */
#ifndef OCT_ANALYSIS_FLOW_CUDA_PLACE_CUH
#define OCT_ANALYSIS_FLOW_CUDA_PLACE_CUH

extern "C" {
#include "analysis/flow/engine.h"
}
#include "kernels/device/cuda_stream.cuh"

#include <cmath>

#define OCT_FLOW_PLACES 64u /* of a batch, at most */
#define OCT_FLOW_THREADS 256u
#define OCT_FLOW_WARPS (OCT_FLOW_THREADS / 32)
#define OCT_FLOW_MANY 1024u /* threads of a block that has a place to itself */
#define OCT_FLOW_MANY_WARPS (OCT_FLOW_MANY / 32)
#define OCT_FLOW_CHUNK 1024u /* depths of a line that lie in shared memory */
#define OCT_FLOW_QUAD 4u     /* depths that a thread smooths */
#define OCT_FLOW_TILE 8u     /* A-lines that a thread judges */
#define OCT_FLOW_COLUMNS 128u
#define OCT_FLOW_SPAN (4 * OCT_FLOW_COLUMNS) /* depths of a block that judges */
#define OCT_FLOW_RHO_LAGS (OCT_FLOW_BLOCK / 2 + 1)
#define OCT_FLOW_REACH (2 * OCT_FLOW_MOST_RADIUS + 1)

/* A pair of repeats, the second of it. */
#define OCT_FLOW_IS_PAIR 1u /* there is one before it */
#define OCT_FLOW_IS_SAME 2u /* and its bytes are the same */
#define OCT_FLOW_IS_LIT 4u  /* it has lines */

/* What is found of a place beside its maps; it comes to the host as it is. */
struct oct_flow_cuda_place {
    double shift[OCT_FLOW_MOST_REPEATS][2]; /* onto the first */
    double step[OCT_FLOW_MOST_REPEATS][2];  /* onto the one before */
    double alike[OCT_FLOW_MOST_REPEATS][3]; /* of a pair: in common, mean power, lines */
    int32_t lines[OCT_FLOW_MOST_REPEATS], depths[OCT_FLOW_MOST_REPEATS];
    uint32_t pair[OCT_FLOW_MOST_REPEATS];
    double noise, samples; /* n0, Q */
    double bulk, snr;      /* snr: the sum of 1 / isnr in tissue */
    uint32_t n_looked, n_tissue;
};

/* What an A-line's sums are of, as struct sums of place.c. */
struct oct_flow_cuda_line {
    uint64_t repeats, pairs;
    uint32_t first, end;
};

/* All that kernels take. */
struct oct_flow_cuda {
    uint32_t n_lines, depth, n_repeats, n_places; /* M, D, R, K */
    uint32_t first;                               /* place of the batch */
    uint32_t n_blocks, look_step, look_row, reach;
    uint32_t slab_first, slab_end; /* depths of `row` */
    int radius_lines, radius_depth;
    bool is_kept; /* z, projected and intensity are */
    float projection, min_z;
    double noise, samples;                 /* 0: found */
    double rho_weight[OCT_FLOW_RHO_LAGS];  /* 1 / Q of |rho|^2 at one lag */
    uint64_t came[OCT_FLOW_PLACES];        /* bit r: repeat r */
    float taps_lines[OCT_FLOW_REACH + 14]; /* the whole window, 7 zeros before and behind it */
    float taps_depth[OCT_FLOW_REACH + 12]; /* 3 zeros before it, 9 behind */
    float below[OCT_FLOW_REACH + 1];       /* sums of the taps along the depth before each */

    float2 *b;                         /* [R K][M][D] */
    float *power;                      /* [R K][M] */
    float *blocks;                     /* [R K][M][n_blocks] */
    struct oct_flow_cuda_place *place; /* [n], of the batch, as what follows */
    struct oct_flow_cuda_line *line;   /* [n][M] */
    float2 *alike;                     /* [n][M][R] */
    float *sums[3];                    /* [n][M][D] same, both, intensity */
    float *d, *isnr;                   /* [n][M][D] */
    float2 *look;                      /* [n][M][look_row] d, isnr; NaN: not looked at */
    double *dark;                      /* [n][n_blocks] mean powers of blocks of depths */
    double *looks;                     /* [n][R][OCT_SHIFT_N_Z] the first look at a pair */
    float *z, *projected, *intensity;  /* [n][M][D]; NULL: not kept; z may be projected */
    float *row;                        /* [n][M] the largest z, projected; NULL: not asked for */
    float *shown;                      /* [n][M][D]; NULL, as the next: not shown so */
    uint8_t *bytes;
};

/* ---- of blocks ---- */

template <class T> static __device__ __forceinline__ T oct_flow_warp_sum(T v)
{
    for (int mask = 16; mask > 0; mask /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, mask);
    return v;
}

/* Of all threads, to all threads. part: [N], shared: of each warp. */
template <class T, unsigned N>
static __device__ __forceinline__ T oct_flow_block_sum(T v, T (&part)[N])
{
    v = oct_flow_warp_sum(v);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    T sum = 0;
    for (unsigned i = 0; i < N; i++)
        sum += part[i];
    __syncthreads();
    return sum;
}

static __device__ __forceinline__ bool oct_flow_has(uint64_t bits, uint32_t i)
{
    return bits >> i & 1;
}

static __device__ __forceinline__ size_t oct_flow_bscan_of(const struct oct_flow_cuda &f,
                                                           uint32_t r, uint32_t k)
{
    return (size_t)r * f.n_places + f.first + k;
}

static __device__ __forceinline__ float2 oct_flow_cross(float2 a, float2 b) /* a conj b */
{
    return make_float2(a.x * b.x + a.y * b.y, a.y * b.x - a.x * b.y);
}

/* ---- what comes in ---- */

/* B-scans that come in: where they lie, and which of the group they are. */
#define OCT_FLOW_PUTS 32u
struct oct_flow_cuda_puts {
    const float2 *from[OCT_FLOW_PUTS];
    uint32_t i[OCT_FLOW_PUTS];
    uint32_t n_lines, depth, n_blocks;
    float2 *b; /* as in struct oct_flow_cuda, and the next */
    float *power, *blocks;
};

/* A block an A-line, and a B-scan. */
static __global__ void oct_flow_put_kernel(const struct oct_flow_cuda_puts f)
{
    __shared__ float part[OCT_FLOW_WARPS];
    const uint32_t j = blockIdx.x, t = threadIdx.x;
    const size_t line = (size_t)f.i[blockIdx.y] * f.n_lines + j;
    const float2 *row = f.from[blockIdx.y] + (size_t)j * f.depth;
    float2 *to = f.b + line * f.depth;
    float *blocks = f.blocks + line * f.n_blocks;
    float sum = 0;
    for (uint32_t first = 0; first < f.depth; first += OCT_FLOW_THREADS) {
        const uint32_t d = first + t;
        float power = 0;
        if (d < f.depth) {
            const float2 z = row[d];
            to[d] = z;
            power = z.x * z.x + z.y * z.y;
        }
        sum += power;
        for (int mask = (int)OCT_FLOW_BLOCK / 2; mask > 0; mask /= 2)
            power += __shfl_xor_sync(0xffffffffu, power, mask);
        if (d % OCT_FLOW_BLOCK == 0 && d / OCT_FLOW_BLOCK < f.n_blocks)
            blocks[d / OCT_FLOW_BLOCK] = power;
    }
    sum = oct_flow_block_sum(sum, part);
    const bool came = sum > 0 && sum <= 3.4e38f; /* not NaN either */
    if (t == 0)
        f.power[line] = came ? sum : 0;
    for (uint32_t d = t; d < f.depth && !came; d += OCT_FLOW_THREADS) {
        to[d] = make_float2(0, 0);
        if (d % OCT_FLOW_BLOCK == 0 && d / OCT_FLOW_BLOCK < f.n_blocks)
            blocks[d / OCT_FLOW_BLOCK] = 0;
    }
}

/* ---- where repeats lie, and the noise ---- */

static __device__ void oct_flow_add_steps(const struct oct_flow_cuda &f, uint32_t k)
{
    struct oct_flow_cuda_place *p = &f.place[k];
    double lines = 0, depths = 0;
    for (uint32_t r = 0; r < f.n_repeats; r++) {
        if (!oct_flow_has(f.came[k], r))
            continue;
        if (p->pair[r] & OCT_FLOW_IS_PAIR) {
            lines += p->step[r][0];
            depths += p->step[r][1];
        }
        p->shift[r][0] = lines;
        p->shift[r][1] = depths;
        p->lines[r] = (int32_t)lround(lines);
        p->depths[r] = (int32_t)lround(depths);
    }
}

struct oct_flow_dark {
    double noise;
    uint32_t block; /* the darkest */
};

/* Mean powers of all blocks of depths, [n_blocks], to all threads. Returns of how many values. */
static __device__ double oct_flow_mean_blocks(const struct oct_flow_cuda &f, uint32_t k,
                                              double *power)
{
    __shared__ double part[OCT_FLOW_MANY_WARPS];
    __shared__ double sums[OCT_FLOW_MANY_WARPS][32];
    const uint32_t t = threadIdx.x, lane = t % 32, warp = t / 32;
    double n_came = 0;
    for (uint32_t r = 0; r < f.n_repeats; r++)
        for (uint32_t j = t; j < f.n_lines && oct_flow_has(f.came[k], r); j += OCT_FLOW_MANY)
            n_came += f.power[oct_flow_bscan_of(f, r, k) * f.n_lines + j] > 0;
    n_came = oct_flow_block_sum(n_came, part);
    for (uint32_t first = 0; first < f.n_blocks; first += 32) {
        double sum = 0;
        for (uint32_t r = 0; r < f.n_repeats && first + lane < f.n_blocks; r++) {
            const float *of =
                f.blocks + oct_flow_bscan_of(f, r, k) * f.n_lines * f.n_blocks + first + lane;
            if (!oct_flow_has(f.came[k], r))
                continue;
#pragma unroll 4
            for (uint32_t j = warp; j < f.n_lines; j += OCT_FLOW_MANY_WARPS)
                sum += of[(size_t)j * f.n_blocks];
        }
        sums[warp][lane] = sum;
        __syncthreads();
        if (t < 32 && first + t < f.n_blocks) {
            double mean = 0;
            for (unsigned w = 0; w < OCT_FLOW_MANY_WARPS; w++)
                mean += sums[w][t];
            power[first + t] = mean / (n_came * OCT_FLOW_BLOCK);
        }
        __syncthreads();
    }
    return n_came * OCT_FLOW_BLOCK;
}

/* As oct_flow_noise_find does (noise.h), to all threads. */
static __device__ struct oct_flow_dark oct_flow_find_noise(const struct oct_flow_cuda &f,
                                                           uint32_t k)
{
    __shared__ struct oct_flow_dark dark;
    double *power = f.dark + (size_t)k * f.n_blocks;
    const double n_values = oct_flow_mean_blocks(f, k, power);
    if (threadIdx.x < 32) {
        double least = 1e300, sum = 0, n = 0;
        uint32_t block = 0;
        for (uint32_t i = threadIdx.x; i < f.n_blocks && n_values > 0; i += 32) {
            block = power[i] < least ? i : block;
            least = power[i] < least ? power[i] : least;
        }
        for (int mask = 16; mask > 0; mask /= 2) {
            const double other = __shfl_xor_sync(0xffffffffu, least, mask);
            const uint32_t of_other = __shfl_xor_sync(0xffffffffu, block, mask);
            const bool wins = other < least || (other == least && of_other < block);
            least = wins ? other : least;
            block = wins ? of_other : block;
        }
        const double most =
            least * (1 + OCT_FLOW_NOISE_ALIKE * sqrt(OCT_FLOW_NOISE_OVERSAMPLED / n_values));
        for (uint32_t i = threadIdx.x; i < f.n_blocks && n_values > 0; i += 32) {
            sum += power[i] <= most ? power[i] : 0;
            n += power[i] <= most;
        }
        sum = oct_flow_warp_sum(sum);
        n = oct_flow_warp_sum(n);
        if (threadIdx.x == 0)
            dark = {n > 0 ? sum / n : 0, block};
    }
    __syncthreads();
    return dark;
}

/* 1 / Q, of |rho|^2 as it is in that block of depths (noise.c). */
static __device__ double oct_flow_correlate_noise(const struct oct_flow_cuda &f, uint32_t k,
                                                  uint32_t block)
{
    __shared__ double part[OCT_FLOW_MANY_WARPS];
    const uint32_t half = (f.n_lines + 1) / 2;
    double sum[OCT_FLOW_RHO_LAGS][2] = {{0, 0}};
    for (uint32_t row = threadIdx.x; row < f.n_repeats * half; row += OCT_FLOW_MANY) {
        const uint32_t r = row / half, j = r % 2 + 2 * (row % half);
        const size_t line = oct_flow_bscan_of(f, r, k) * f.n_lines + j;
        if (j >= f.n_lines || !oct_flow_has(f.came[k], r) || !(f.power[line] > 0))
            continue;
        const float2 *a = f.b + line * f.depth + block * OCT_FLOW_BLOCK;
        for (uint32_t lag = 0; lag < OCT_FLOW_RHO_LAGS; lag++)
            for (uint32_t d = 0; d + lag < OCT_FLOW_BLOCK; d++) {
                const float2 z = oct_flow_cross(a[d], a[d + lag]);
                sum[lag][0] += z.x;
                sum[lag][1] += z.y;
            }
    }
    double inverse = 0, all = 0;
    for (uint32_t lag = 0; lag < OCT_FLOW_RHO_LAGS; lag++) {
        const double re = oct_flow_block_sum(sum[lag][0], part);
        const double im = oct_flow_block_sum(sum[lag][1], part);
        all = lag == 0 ? re : all;
        if (lag == 0 || !(all > 0)) {
            inverse += lag == 0 ? f.rho_weight[0] : 0;
            continue;
        }
        const double share = OCT_FLOW_BLOCK / (OCT_FLOW_BLOCK - (double)lag) / all;
        inverse += f.rho_weight[lag] * (share * re * share * re + share * im * share * im);
    }
    return inverse;
}

static __global__ void __launch_bounds__(OCT_FLOW_MANY)
    oct_flow_plan_kernel(const struct oct_flow_cuda f)
{
    const uint32_t k = blockIdx.x;
    const struct oct_flow_dark dark = oct_flow_find_noise(f, k);
    const double inverse =
        f.samples > 0 ? 1 / f.samples : oct_flow_correlate_noise(f, k, dark.block);
    if (threadIdx.x > 0)
        return;
    const double noise = f.noise > 0 ? f.noise : dark.noise;
    f.place[k].noise = noise > 1e-12 ? noise : 1e-12;
    f.place[k].samples = 1 / inverse;
    oct_flow_add_steps(f, k);
}

/* ---- sums of an A-line ---- */

/* The repeats of a line, as they lie once they are moved. */
struct oct_flow_cuda_moved {
    const float2 *at[OCT_FLOW_MOST_REPEATS]; /* of depth 0; NULL: it did not come */
    float power[OCT_FLOW_MOST_REPEATS];
    int first[OCT_FLOW_MOST_REPEATS], end[OCT_FLOW_MOST_REPEATS]; /* depths */
    float2 turn[OCT_FLOW_MOST_REPEATS];                           /* of a pair, its second */
};

/* Depths of the picture that a repeat has, moved by so many; end is at least first. */
static __device__ __forceinline__ void oct_flow_range(const struct oct_flow_cuda &f, int shift,
                                                      int *first, int *end)
{
    const int depth = (int)f.depth, from = shift > 0 ? shift : 0;
    const int to = shift < 0 ? depth + shift : depth;
    *first = from < depth ? from : depth;
    *end = to > *first ? to : *first;
}

static __device__ void oct_flow_move_line(const struct oct_flow_cuda &f, uint32_t k, uint32_t j,
                                          struct oct_flow_cuda_moved *m)
{
    const struct oct_flow_cuda_place *p = &f.place[k];
    for (uint32_t r = threadIdx.x; r < f.n_repeats; r += OCT_FLOW_THREADS) {
        m->at[r] = NULL;
        if (!oct_flow_has(f.came[k], r))
            continue;
        const int from = (int)j - p->lines[r];
        if (from < 0 || from >= (int)f.n_lines)
            continue;
        const size_t line = oct_flow_bscan_of(f, r, k) * f.n_lines + (uint32_t)from;
        oct_flow_range(f, p->depths[r], &m->first[r], &m->end[r]);
        m->power[r] = f.power[line];
        if (m->power[r] > 0)
            m->at[r] = f.b + (ptrdiff_t)(line * f.depth) - p->depths[r];
    }
    __syncthreads();
}

/* The depths that both of a pair have; false: one of it did not come. */
static __device__ __forceinline__ bool oct_flow_pair_range(const struct oct_flow_cuda_moved *m,
                                                           uint32_t r, int *first, int *end)
{
    if (r == 0 || !m->at[r] || !m->at[r - 1])
        return false;
    *first = m->first[r] > m->first[r - 1] ? m->first[r] : m->first[r - 1];
    *end = m->end[r] < m->end[r - 1] ? m->end[r] : m->end[r - 1];
    *end = *end > *first ? *end : *first;
    return true;
}

/* The phase of each pair, from the sums of the warps, and what it has in common. */
static __device__ void oct_flow_end_turn(const struct oct_flow_cuda &f, size_t line,
                                         struct oct_flow_cuda_moved *m,
                                         const float2 (*part)[OCT_FLOW_WARPS])
{
    int first, end;
    for (uint32_t r = threadIdx.x; r < f.n_repeats; r += OCT_FLOW_THREADS) {
        float2 sum = make_float2(0, 0), alike = make_float2(0, 0);
        m->turn[r] = make_float2(1, 0);
        if (oct_flow_pair_range(m, r, &first, &end)) {
            for (unsigned w = 0; w < OCT_FLOW_WARPS; w++) {
                sum.x += part[r][w].x;
                sum.y += part[r][w].y;
            }
            const float length = sqrtf(sum.x * sum.x + sum.y * sum.y);
            if (length > 0)
                m->turn[r] = make_float2(sum.x / length, sum.y / length);
            alike = make_float2(length, 0.5f * (m->power[r] + m->power[r - 1]));
        }
        f.alike[line * f.n_repeats + r] = alike;
    }
    __syncthreads();
}

/* The phase of each pair, and what it has in common. */
static __device__ void oct_flow_turn_line(const struct oct_flow_cuda &f, uint32_t k, uint32_t j,
                                          struct oct_flow_cuda_moved *m)
{
    __shared__ float2 part[OCT_FLOW_MOST_REPEATS][OCT_FLOW_WARPS];
    const uint32_t t = threadIdx.x;
    int first, end;
    for (uint32_t r = 1; r < f.n_repeats; r++) {
        float2 sum = make_float2(0, 0);
        if (!oct_flow_pair_range(m, r, &first, &end))
            continue;
        const float2 *a = m->at[r - 1], *b = m->at[r];
        for (int d = first + (int)t; d < end; d += (int)OCT_FLOW_THREADS) {
            const float2 z = oct_flow_cross(__ldg(a + d), __ldg(b + d));
            sum.x += z.x;
            sum.y += z.y;
        }
        sum.x = oct_flow_warp_sum(sum.x);
        sum.y = oct_flow_warp_sum(sum.y);
        if (t % 32 == 0)
            part[r][t / 32] = sum;
    }
    __syncthreads();
    oct_flow_end_turn(f, (size_t)k * f.n_lines + j, m, part);
}

static __device__ void oct_flow_note_line(const struct oct_flow_cuda &f, uint32_t k, uint32_t j,
                                          const struct oct_flow_cuda_moved *m)
{
    struct oct_flow_cuda_line line = {0, 0, f.depth, 0};
    int first, end;
    for (uint32_t r = 0; r < f.n_repeats; r++) {
        line.repeats |= m->at[r] ? (uint64_t)1 << r : 0;
        if (!oct_flow_pair_range(m, r, &first, &end))
            continue;
        line.pairs |= end > first ? (uint64_t)1 << (r - 1) : 0;
        line.first = min(line.first, (uint32_t)first);
        line.end = max(line.end, (uint32_t)end);
    }
    f.line[(size_t)k * f.n_lines + j] = line;
}

struct oct_flow_cuda_sums {
    float same, both, intensity, count;
};

static __device__ __forceinline__ struct oct_flow_cuda_sums
oct_flow_sum_depth(const struct oct_flow_cuda &f, const struct oct_flow_cuda_moved *m, int d)
{
    struct oct_flow_cuda_sums s = {0, 0, 0, 0};
    float2 before = make_float2(0, 0);
    float power_before = 0;
    bool has_before = false;
    for (uint32_t r = 0; r < f.n_repeats; r++) {
        const bool is_in = m->at[r] && d >= m->first[r] && d < m->end[r];
        if (is_in) {
            const float2 b = __ldg(m->at[r] + d);
            const float power = b.x * b.x + b.y * b.y;
            s.intensity += power;
            s.count += 1;
            if (has_before) {
                const float2 z = oct_flow_cross(before, b), turn = m->turn[r];
                s.same += z.x * turn.x + z.y * turn.y;
                s.both += 0.5f * (power_before + power);
            }
            before = b;
            power_before = power;
        }
        has_before = is_in;
    }
    return s;
}

/* Rows of a chunk and what the window reaches on both sides of it, smoothed: four depths a
 * thread. */
static __device__ __forceinline__ void oct_flow_smooth(const struct oct_flow_cuda &f,
                                                       const float *row, uint32_t n, float *to)
{
    const uint32_t at = OCT_FLOW_QUAD * threadIdx.x;
    float sum[OCT_FLOW_QUAD] = {0, 0, 0, 0};
    for (int o = 0; o < 2 * f.radius_depth + (int)OCT_FLOW_QUAD; o += (int)OCT_FLOW_QUAD) {
        const float4 v = *reinterpret_cast<const float4 *>(row + at + o);
        const float of[OCT_FLOW_QUAD] = {v.x, v.y, v.z, v.w};
        for (int e = 0; e < (int)OCT_FLOW_QUAD; e++)
            for (int q = 0; q < (int)OCT_FLOW_QUAD; q++)
                sum[q] += f.taps_depth[o + e - q + 3] * of[e];
    }
    for (uint32_t q = 0; q < OCT_FLOW_QUAD; q++)
        if (at + q < n)
            to[at + q] = sum[q];
}

/* The same for MOST repeats at most and lines of one chunk: each value is read once. */
#define OCT_FLOW_OWN ((int)(OCT_FLOW_CHUNK / OCT_FLOW_THREADS)) /* depths of a thread */

template <int MOST> struct oct_flow_cuda_own {
    float2 value[MOST][OCT_FLOW_OWN];
    uint32_t is_in; /* bit r OCT_FLOW_OWN + q */
};

/* part: the sums of the warps of what the pairs have in common. */
template <int MOST>
static __device__ __forceinline__ void
oct_flow_read_own(const struct oct_flow_cuda_moved &m, int n_repeats,
                  struct oct_flow_cuda_own<MOST> *own, float2 (*part)[OCT_FLOW_WARPS])
{
    const uint32_t t = threadIdx.x;
    own->is_in = 0;
    for (int r = 0; r < MOST; r++)
        for (int q = 0; q < OCT_FLOW_OWN; q++) {
            const int d = (int)t + q * (int)OCT_FLOW_THREADS;
            own->value[r][q] = make_float2(0, 0);
            if (r < n_repeats && m.at[r] && d >= m.first[r] && d < m.end[r]) {
                own->value[r][q] = __ldg(m.at[r] + d);
                own->is_in |= 1u << (r * OCT_FLOW_OWN + q);
            }
        }
    for (int r = 1; r < MOST; r++) {
        float2 sum = make_float2(0, 0);
        for (int q = 0; q < OCT_FLOW_OWN; q++) {
            const float2 z = oct_flow_cross(own->value[r - 1][q], own->value[r][q]);
            sum.x += z.x;
            sum.y += z.y;
        }
        sum.x = oct_flow_warp_sum(sum.x);
        sum.y = oct_flow_warp_sum(sum.y);
        if (t % 32 == 0)
            part[r][t / 32] = sum;
    }
    __syncthreads();
}

template <int MOST>
static __device__ __forceinline__ struct oct_flow_cuda_sums
oct_flow_sum_own(const struct oct_flow_cuda_own<MOST> &own, const float2 *turn, int q)
{
    struct oct_flow_cuda_sums s = {0, 0, 0, 0};
    float2 before = make_float2(0, 0);
    float power_before = 0;
    bool has_before = false;
    for (int r = 0; r < MOST; r++) {
        const float2 b = own.value[r][q];
        const float power = b.x * b.x + b.y * b.y;
        const bool has = own.is_in >> (r * OCT_FLOW_OWN + q) & 1;
        if (has && has_before) {
            const float2 z = oct_flow_cross(before, b);
            s.same += z.x * turn[r].x + z.y * turn[r].y;
            s.both += 0.5f * (power_before + power);
        }
        s.intensity += power;
        s.count += has;
        before = b;
        power_before = power;
        has_before = has;
    }
    return s;
}

template <int MOST>
static __global__ void __launch_bounds__(OCT_FLOW_THREADS)
    oct_flow_short_lines_kernel(const struct oct_flow_cuda f)
{
    __shared__ struct oct_flow_cuda_moved moved;
    __shared__ float2 part[MOST][OCT_FLOW_WARPS];
    alignas(16) __shared__ float rows[3][OCT_FLOW_CHUNK + 2 * OCT_FLOW_MOST_RADIUS + 10];
    const uint32_t j = blockIdx.x, k = blockIdx.y, t = threadIdx.x;
    const size_t line = (size_t)k * f.n_lines + j;
    const int radius = f.radius_depth;
    struct oct_flow_cuda_own<MOST> own;
    oct_flow_move_line(f, k, j, &moved);
    oct_flow_read_own<MOST>(moved, (int)f.n_repeats, &own, part);
    oct_flow_end_turn(f, line, &moved, part);
    if (t == 0)
        oct_flow_note_line(f, k, j, &moved);
    for (int q = 0; q < OCT_FLOW_OWN; q++) {
        const int d = (int)t + q * (int)OCT_FLOW_THREADS;
        const struct oct_flow_cuda_sums s = oct_flow_sum_own<MOST>(own, moved.turn, q);
        rows[0][radius + d] = s.same;
        rows[1][radius + d] = s.both;
        rows[2][radius + d] = s.intensity;
        if (f.is_kept && d < (int)f.depth)
            f.intensity[line * f.depth + (uint32_t)d] = s.intensity / s.count;
    }
    for (int at = (int)t; at < 2 * radius + (int)OCT_FLOW_QUAD; at += (int)OCT_FLOW_THREADS)
        for (unsigned i = 0; i < 3; i++)
            rows[i][at < radius ? at : at + (int)OCT_FLOW_CHUNK] = 0;
    __syncthreads();
    for (unsigned i = 0; i < 3; i++)
        oct_flow_smooth(f, rows[i], f.depth, f.sums[i] + line * f.depth);
}

static __global__ void __launch_bounds__(OCT_FLOW_THREADS)
    oct_flow_lines_kernel(const struct oct_flow_cuda f)
{
    __shared__ struct oct_flow_cuda_moved moved;
    alignas(16) __shared__ float rows[3][OCT_FLOW_CHUNK + 2 * OCT_FLOW_MOST_RADIUS + 10];
    const uint32_t j = blockIdx.x, k = blockIdx.y, t = threadIdx.x;
    const size_t line = (size_t)k * f.n_lines + j;
    const int radius = f.radius_depth;
    oct_flow_move_line(f, k, j, &moved);
    oct_flow_turn_line(f, k, j, &moved);
    if (t == 0)
        oct_flow_note_line(f, k, j, &moved);
    for (uint32_t first = 0; first < f.depth; first += OCT_FLOW_CHUNK) {
        const uint32_t n = min(f.depth - first, OCT_FLOW_CHUNK);
        const int n_row = (int)OCT_FLOW_CHUNK + 2 * radius + (int)OCT_FLOW_QUAD;
        for (int s = (int)t; s < n_row; s += (int)OCT_FLOW_THREADS) {
            const int d = (int)first - radius + s;
            struct oct_flow_cuda_sums sums = {0, 0, 0, 0};
            if (d >= 0 && d < (int)f.depth && s < (int)n + 2 * radius)
                sums = oct_flow_sum_depth(f, &moved, d);
            rows[0][s] = sums.same;
            rows[1][s] = sums.both;
            rows[2][s] = sums.intensity;
            if (f.is_kept && s >= radius && s < (int)n + radius)
                f.intensity[line * f.depth + (uint32_t)d] = sums.intensity / sums.count;
        }
        __syncthreads();
        for (unsigned i = 0; i < 3; i++)
            oct_flow_smooth(f, rows[i], n, f.sums[i] + line * f.depth + first);
        __syncthreads();
    }
}

/* ---- the window along A-lines, and d ---- */

/* What pairs and repeats weigh in the windows of a tile's lines, and where they are. */
struct oct_flow_cuda_tile {
    float taps[2][OCT_FLOW_MOST_REPEATS][OCT_FLOW_TILE];
    int first[2][OCT_FLOW_MOST_REPEATS], end[2][OCT_FLOW_MOST_REPEATS];
};

/* Pair r is of repeats r and r + 1. */
static __device__ void oct_flow_weigh_tile(const struct oct_flow_cuda &f, uint32_t k, uint32_t j0,
                                           struct oct_flow_cuda_tile *tile)
{
    const struct oct_flow_cuda_place *p = &f.place[k];
    for (uint32_t i = threadIdx.x; i < 2 * f.n_repeats; i += OCT_FLOW_COLUMNS) {
        const uint32_t what = i / f.n_repeats, r = i % f.n_repeats;
        int first = 0, end = 0, a, b;
        if (oct_flow_has(f.came[k], r))
            oct_flow_range(f, p->depths[r], &first, &end);
        if (what == 0 && (r + 1 == f.n_repeats || !oct_flow_has(f.came[k], r + 1))) {
            end = first;
        } else if (what == 0) {
            oct_flow_range(f, p->depths[r + 1], &a, &b);
            first = first > a ? first : a;
            end = end < b ? end : b;
        }
        tile->first[what][r] = first;
        tile->end[what][r] = end;
    }
    for (uint32_t i = threadIdx.x; i < 2 * f.n_repeats * OCT_FLOW_TILE; i += OCT_FLOW_COLUMNS) {
        const uint32_t m = i % OCT_FLOW_TILE, r = i / OCT_FLOW_TILE % f.n_repeats;
        const uint32_t what = i / OCT_FLOW_TILE / f.n_repeats;
        float sum = 0;
        for (int at = -f.radius_lines; at <= f.radius_lines; at++) {
            const int j = (int)(j0 + m) + at;
            if (j < 0 || j >= (int)f.n_lines)
                continue;
            const struct oct_flow_cuda_line *line = &f.line[(size_t)k * f.n_lines + (uint32_t)j];
            if (oct_flow_has(what ? line->repeats : line->pairs, r))
                sum += f.taps_lines[at + f.radius_lines + 7];
        }
        tile->taps[what][r][m] = sum;
    }
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
    float same, both, intensity, weight, count;
};

static __device__ __forceinline__ void oct_flow_judge_voxel(const struct oct_flow_cuda &f,
                                                            uint32_t k, uint32_t j, uint32_t d,
                                                            const struct oct_flow_cuda_window &w,
                                                            bool is_looked)
{
    const size_t line = (size_t)k * f.n_lines + j, at = line * f.depth + d;
    const struct oct_flow_cuda_line l = f.line[line];
    float2 value = make_float2(NAN, NAN);
    if (l.pairs && d >= l.first && d < l.end) {
        const float noise = (float)f.place[k].noise;
        const float least = OCT_FLOW_LEAST_SHARE * w.both, left = w.both - noise * w.weight;
        const float signal = __fdividef(w.intensity, w.count) - noise,
                    low = OCT_FLOW_LEAST_SIGNAL * noise;
        value.x = 1 - w.same / (left > least ? left : least);
        value.y = __fdividef(noise, signal > low ? signal : low);
    }
    f.d[at] = value.x;
    f.isnr[at] = value.y;
    if (is_looked)
        f.look[line * f.look_row + d / f.look_step] = value;
}

/* The tile's lines at depth d. RADIUS: that of the window along A-lines; negative: any. */
template <int RADIUS>
static __device__ __forceinline__ void oct_flow_judge_depth(const struct oct_flow_cuda &f,
                                                            const struct oct_flow_cuda_tile &tile,
                                                            uint32_t k, uint32_t j0, uint32_t d)
{
    const int radius = RADIUS < 0 ? f.radius_lines : RADIUS;
    [[maybe_unused]] constexpr int UNROLLED = RADIUS < 0 ? 1 : (int)OCT_FLOW_TILE + 2 * RADIUS;
    struct oct_flow_cuda_window w[OCT_FLOW_TILE] = {};
#pragma unroll UNROLLED
    for (int o = 0; o < (int)OCT_FLOW_TILE + 2 * radius; o++) {
        const int j = (int)j0 - radius + o;
        if (j < 0 || j >= (int)f.n_lines)
            continue;
        const size_t at = ((size_t)k * f.n_lines + (uint32_t)j) * f.depth + d;
        const float same = f.sums[0][at], both = f.sums[1][at], intensity = f.sums[2][at];
#pragma unroll
        for (int m = 0; m < (int)OCT_FLOW_TILE; m++) {
            if (RADIUS >= 0 && (o < m || o - m > 2 * RADIUS))
                continue;
            const float tap = f.taps_lines[o - m + 7];
            w[m].same += tap * same;
            w[m].both += tap * both;
            w[m].intensity += tap * intensity;
        }
    }
    for (uint32_t r = 0; r < f.n_repeats; r++) {
        const float pairs = oct_flow_share(f, (int)d, tile.first[0][r], tile.end[0][r]);
        const float repeats = oct_flow_share(f, (int)d, tile.first[1][r], tile.end[1][r]);
        for (unsigned m = 0; m < OCT_FLOW_TILE; m++) {
            w[m].weight += tile.taps[0][r][m] * pairs;
            w[m].count += tile.taps[1][r][m] * repeats;
        }
    }
    uint32_t left = (d + j0) % f.look_step; /* line j is looked at where d + j is a multiple */
    for (unsigned m = 0; m < OCT_FLOW_TILE && j0 + m < f.n_lines; m++) {
        oct_flow_judge_voxel(f, k, j0 + m, d, w[m], left == 0);
        left = left + 1 == f.look_step ? 0 : left + 1;
    }
}

template <int RADIUS>
static __global__ void __launch_bounds__(OCT_FLOW_COLUMNS)
    oct_flow_judge_kernel(const struct oct_flow_cuda f)
{
    __shared__ struct oct_flow_cuda_tile tile;
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

/* Twelve bits of the key of that rank among bright d above 0: of those whose upper bits are
 * `above`, the lower ones; without, the upper ones. */
static __device__ void oct_flow_select(struct oct_flow_median *s, const float2 *look, uint32_t n,
                                       uint32_t rank, bool has_above, uint32_t above)
{
    const uint32_t t = threadIdx.x, lane = t % 32;
    for (uint32_t i = t; i < 4096; i += OCT_FLOW_MANY)
        s->counts[i] = 0;
    __syncthreads();
    for (uint32_t i = t; i < n; i += OCT_FLOW_MANY) {
        const float2 v = look[i];
        const uint32_t key = v.x > 0 ? oct_flow_key(v.x) : 0;
        if (v.y < OCT_FLOW_BRIGHT && v.x > 0 && (!has_above || key >> 12 == above))
            atomicAdd(&s->counts[has_above ? key & 4095 : key >> 12], 1u);
    }
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
    for (uint32_t i = t; i < n; i += OCT_FLOW_MANY) {
        const float2 v = look[i];
        const uint32_t of = v.x > 0 ? oct_flow_key(v.x) : 0;
        if (!(v.y < OCT_FLOW_BRIGHT) || of > key)
            continue;
        const unsigned which = v.x > 0 && of == key;
        most[which] = v.x > most[which] ? v.x : most[which];
    }
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
    const uint32_t k = blockIdx.x, n = f.n_lines * f.look_row;
    const float2 *look = f.look + (size_t)k * n;
    uint32_t n_looked = 0, n_tissue = 0, n_bright = 0, n_dark = 0;
    double snr = 0;
    oct_flow_sum_alike(f, k);
    for (uint32_t i = threadIdx.x; i < n; i += OCT_FLOW_MANY) {
        const float2 v = look[i];
        n_looked += v.y == v.y;
        n_tissue += v.y < OCT_FLOW_TISSUE;
        n_bright += v.y < OCT_FLOW_BRIGHT;
        n_dark += v.y < OCT_FLOW_BRIGHT && !(v.x > 0);
        snr += v.y < OCT_FLOW_TISSUE ? (double)(1 / v.y) : 0;
    }
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
    const double n = __popc((uint32_t)pairs) + __popc((uint32_t)(pairs >> 32));
    const double m = __popc((uint32_t)both) + __popc((uint32_t)(both >> 32));
    const double share = n > 0 ? (n + m / 2) / (n * n) / p->samples : 1;
    const float least = (float)(p->bulk > OCT_FLOW_LEAST_SD ? p->bulk : OCT_FLOW_LEAST_SD);
    return {(float)p->bulk, (float)share, least * least};
}

static __device__ __forceinline__ float oct_flow_score(const struct oct_flow_cuda_score &s, float d,
                                                       float isnr)
{
    return (d - s.bulk) / sqrtf(s.share * isnr * isnr + s.floor2);
}

static __device__ __forceinline__ void oct_flow_show_voxel(const struct oct_flow_cuda &f, size_t at,
                                                           float d, float projected)
{
    const bool is_flow = projected >= f.min_z;
    const float value = is_flow && d > 0 ? d : 0;
    if (f.shown)
        f.shown[at] = is_flow ? d : 0 * d;
    if (f.bytes)
        f.bytes[at] = (uint8_t)(int)((value < 1 ? value : 1) * 255 + 0.5f);
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

/* The largest flow of each depth of a chunk and of those above it, four depths a thread; top: the
 * flow of each, then that. *most: of the chunks above, then with this one. */
static __device__ __forceinline__ void oct_flow_scan_tops(float top[OCT_FLOW_QUAD], float *most,
                                                          float (&tops)[OCT_FLOW_WARPS])
{
    const uint32_t t = threadIdx.x, lane = t % 32;
    for (unsigned q = 1; q < OCT_FLOW_QUAD; q++)
        top[q] = top[q] > top[q - 1] ? top[q] : top[q - 1];
    float own = top[OCT_FLOW_QUAD - 1];
    for (uint32_t step = 1; step < 32; step *= 2) {
        const float before = __shfl_sync(0xffffffffu, own, (int)(lane - step) & 31);
        own = lane >= step && before > own ? before : own;
    }
    if (lane == 31)
        tops[t / 32] = own;
    float above = __shfl_sync(0xffffffffu, own, (int)(lane - 1) & 31);
    above = lane == 0 || *most > above ? *most : above;
    __syncthreads();
    for (unsigned w = 0; w < OCT_FLOW_WARPS; w++) {
        above = w < t / 32 && tops[w] > above ? tops[w] : above;
        *most = tops[w] > *most ? tops[w] : *most;
    }
    for (unsigned q = 0; q < OCT_FLOW_QUAD; q++)
        top[q] = above > top[q] ? above : top[q];
}

/* Stores the largest of all threads, NaN where there is none. part: [OCT_FLOW_WARPS], shared. */
static __device__ __forceinline__ void oct_flow_store_largest(float largest, float *part, float *to)
{
    for (int mask = 16; mask > 0; mask /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, mask));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = largest;
    __syncthreads();
    for (unsigned w = 0; w < OCT_FLOW_WARPS && threadIdx.x == 0; w++)
        largest = fmaxf(largest, part[w]);
    if (threadIdx.x == 0)
        *to = largest > -INFINITY ? largest : NAN;
}

static __global__ void __launch_bounds__(OCT_FLOW_THREADS)
    oct_flow_score_kernel(const struct oct_flow_cuda f)
{
    __shared__ float tops[OCT_FLOW_WARPS];
    alignas(16) __shared__ float strongest[OCT_FLOW_CHUNK];
    const uint32_t j = blockIdx.x, k = blockIdx.y;
    const size_t line = (size_t)k * f.n_lines + j;
    const struct oct_flow_cuda_score score = oct_flow_score_of(f, k, f.line[line].pairs);
    const bool is_four = f.depth % OCT_FLOW_QUAD == 0;
    float *above = f.sums[0] + line * f.depth; /* done with: strongest of chunks above */
    float most = 0, largest = -INFINITY;
    for (uint32_t first = 0; first < f.depth; first += OCT_FLOW_CHUNK) {
        const uint32_t at = first + OCT_FLOW_QUAD * threadIdx.x;
        const uint32_t n = at < f.depth ? f.depth - at : 0;
        const size_t i = line * f.depth + at;
        float d[OCT_FLOW_QUAD], isnr[OCT_FLOW_QUAD], z[OCT_FLOW_QUAD], top[OCT_FLOW_QUAD];
        oct_flow_load_four(f.d + i, n, is_four, d);
        oct_flow_load_four(f.isnr + i, n, is_four, isnr);
        for (unsigned q = 0; q < OCT_FLOW_QUAD; q++) {
            z[q] = oct_flow_score(score, d[q], isnr[q]);
            top[q] = z[q] > OCT_FLOW_LEAST_Z && isnr[q] < 1 && d[q] > 0 ? d[q] : 0;
        }
        if (f.projection > 0) {
            oct_flow_scan_tops(top, &most, tops);
            for (unsigned q = 0; q < OCT_FLOW_QUAD; q++) {
                strongest[at - first + q] = top[q];
                if (q < n && f.depth > OCT_FLOW_CHUNK)
                    above[at + q] = top[q];
            }
            __syncthreads();
        }
        for (uint32_t q = 0; q < OCT_FLOW_QUAD && q < n; q++) {
            const uint32_t from = at + q - f.reach;
            const float own = d[q] - score.bulk;
            float projected = z[q];
            if (f.projection > 0 && at + q >= f.reach && fabsf(own) > 0)
                projected -= f.projection *
                             (from >= first ? strongest[from - first] : above[from]) * z[q] / own;
            if (f.is_kept) {
                f.z[i + q] = z[q];
                f.projected[i + q] = projected;
            }
            oct_flow_show_voxel(f, i + q, d[q], projected);
            if (at + q >= f.slab_first && at + q < f.slab_end && projected > largest)
                largest = projected;
        }
        __syncthreads();
    }
    if (f.row)
        oct_flow_store_largest(largest, tops, &f.row[line]);
}

#endif
