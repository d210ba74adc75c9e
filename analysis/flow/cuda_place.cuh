/* Motion contrast of places on a device: the steps of place.h, method `complex`, of several places
 * at once, and what all of its kernels know. Part of cuda.cu.
 *
 *     put -> B, power, blocks           a B-scan as it comes
 *     look, near, shift -> lines, depths, n0, Q       cuda_shift.cuh
 *     lines -> sums, along the depth smooth; a block some A-lines
 *     judge, bulk, score -> d, z        cuda_judge.cuh
 *
 * B of repeat r of place k of a group of K places is B-scan r K + k, [M][D], with anything in lines
 * that did not come. Turns of B (step 3) are never made: Re(B_r conj B_r-1) of turned ones is that
 * of B as it came, turned by the pair's own phase. Sums are in another order than the CPU's. */
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
#define OCT_FLOW_CHUNK 1024u /* depths of a line that lie in shared memory */
#define OCT_FLOW_QUAD 4u     /* depths that a thread smooths */
#define OCT_FLOW_TILE 8u     /* A-lines that a thread judges */
#define OCT_FLOW_LINES_OF 4u /* A-lines that a block sums, one after another */
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
    uint32_t n_planned; /* blocks of oct_flow_shift_kernel that have come to their end */
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
    uint32_t n_puts;               /* of so many times OCT_FLOW_PUT_LINES lines */
    uint32_t n_looks, n_nears;     /* lines of the first look at a pair, and of the second */
    uint32_t slab_first, slab_end; /* depths of `row` */
    int radius_lines, radius_depth;
    bool is_kept; /* z, projected and intensity are */
    float projection, min_z;
    double noise, samples;                                      /* 0: found */
    double rho_weight[OCT_FLOW_RHO_LAGS];                       /* 1 / Q of |rho|^2 at one lag */
    uint64_t came[OCT_FLOW_PLACES];                             /* bit r: repeat r */
    float taps_lines[OCT_FLOW_REACH + 2 * (OCT_FLOW_TILE - 1)]; /* the whole window between zeros */
    float taps_depth[OCT_FLOW_REACH + 12];                      /* 3 zeros before it, 9 behind */
    float below[OCT_FLOW_REACH + 1]; /* sums of the taps along the depth before each */

    const float2 **b;                  /* [R K] B-scans, [M][D] each */
    float *power;                      /* [R K][M]; 0: the line did not come */
    float *blocks;                     /* [R K][n_puts][n_blocks] sums over some lines each */
    struct oct_flow_cuda_place *place; /* [n], of the batch, as what follows */
    struct oct_flow_cuda_line *line;   /* [n][M] */
    float2 *alike;                     /* [n][M][R] */
    float *sums[3];                    /* [n][M][D] same, both, intensity */
    float *d, *isnr;                   /* [n][M][D] */
    float2 *look;                      /* [n][M][look_row] d, isnr; NaN: not looked at */
    double *dark;                      /* [n][n_blocks] mean powers of blocks of depths */
    float *looks;                      /* [n][R][n_looks][OCT_SHIFT_N_Z] the first look at a pair */
    float *nears;                      /* [n][R][n_nears][OCT_SHIFT_NEAR] at what lies about that */
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

/* Of N values, a power of 2: v[0] becomes the sum of v[oct_flow_sum_of<N>(lane)]. */
template <unsigned N> static __device__ __forceinline__ void oct_flow_warp_sums(float (&v)[N])
{
    unsigned mask = 1;
#pragma unroll
    for (unsigned n = N / 2; n > 0; n /= 2) {
        const bool is_upper = threadIdx.x & mask;
#pragma unroll
        for (unsigned i = 0; i < n; i++) {
            const float given = is_upper ? v[i] : v[i + n], kept = is_upper ? v[i + n] : v[i];
            v[i] = kept + __shfl_xor_sync(0xffffffffu, given, (int)mask);
        }
        mask *= 2;
    }
#pragma unroll
    for (; mask < 32; mask *= 2)
        v[0] += __shfl_xor_sync(0xffffffffu, v[0], (int)mask);
}

template <unsigned N> static __device__ __forceinline__ unsigned oct_flow_sum_of(unsigned lane)
{
    unsigned i = 0;
    for (unsigned n = N / 2; n > 0; n /= 2, lane /= 2)
        i += lane % 2 * n;
    return i;
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

static __device__ __forceinline__ void oct_flow_add_cross(float2 *sum, float2 a, float2 b)
{
    sum->x = fmaf(a.x, b.x, fmaf(a.y, b.y, sum->x));
    sum->y = fmaf(a.y, b.x, fmaf(-a.x, b.y, sum->y));
}

/* ---- what comes in ---- */

/* B-scans that come in: where they lie, and which of the group they are. */
#define OCT_FLOW_PUTS 32u
#define OCT_FLOW_PUT_LINES 4u /* a power of 2 */
struct oct_flow_cuda_puts {
    const float2 *from[OCT_FLOW_PUTS];
    uint32_t i[OCT_FLOW_PUTS];
    uint32_t n_lines, depth, n_blocks, n_puts;
    float2 *own;      /* [R K][M][D] into which they are copied; NULL: they stay where they are */
    const float2 **b; /* as in struct oct_flow_cuda, and the next */
    float *power, *blocks;
};

/* The power of four depths of a line from d on; copied to `to`, unless that is NULL. */
static __device__ __forceinline__ float oct_flow_put_four(const float2 *row, float2 *to, uint32_t d,
                                                          uint32_t depth)
{
    float power = 0;
    if (depth % OCT_FLOW_QUAD == 0 && d < depth) { /* all lines lie so that one load takes two */
        const float4 *from = reinterpret_cast<const float4 *>(row + d);
        for (int i = 0; i < 2; i++) {
            const float4 z = __ldg(from + i);
            power += z.x * z.x + z.y * z.y + z.z * z.z + z.w * z.w;
            if (to)
                reinterpret_cast<float4 *>(to + d)[i] = z;
        }
        return power;
    }
    for (uint32_t q = 0; q < OCT_FLOW_QUAD && d + q < depth; q++) {
        const float2 z = __ldg(row + d + q);
        power += z.x * z.x + z.y * z.y;
        if (to)
            to[d + q] = z;
    }
    return power;
}

/* Adds the power of a chunk of four depths a thread, by lines, which is counted where lines[] has
 * not been found to be empty. */
static __device__ __forceinline__ float oct_flow_put_chunk(const float2 *rows, float2 *to,
                                                           uint32_t n, uint32_t d, uint32_t depth,
                                                           float lines[OCT_FLOW_PUT_LINES])
{
    float power[OCT_FLOW_PUT_LINES], sum = 0;
#pragma unroll
    for (uint32_t m = 0; m < OCT_FLOW_PUT_LINES; m++)
        power[m] = m < n && d < depth
                       ? oct_flow_put_four(rows + (size_t)m * depth,
                                           to ? to + (size_t)m * depth : NULL, d, depth)
                       : 0;
#pragma unroll
    for (uint32_t m = 0; m < OCT_FLOW_PUT_LINES; m++) {
        lines[m] += power[m];
        sum += power[m];
    }
    return sum;
}

/* The power of blocks of depths, of the sum of four depths a thread. */
static __device__ __forceinline__ void oct_flow_put_blocks(const struct oct_flow_cuda_puts &f,
                                                           float *blocks, uint32_t d, float sum)
{
    for (int mask = 1; mask < (int)(OCT_FLOW_BLOCK / OCT_FLOW_QUAD); mask *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (d % OCT_FLOW_BLOCK == 0 && d / OCT_FLOW_BLOCK < f.n_blocks)
        blocks[d / OCT_FLOW_BLOCK] = sum;
}

/* A block OCT_FLOW_PUT_LINES lines, and a B-scan. */
static __global__ void __launch_bounds__(OCT_FLOW_THREADS)
    oct_flow_put_kernel(const struct oct_flow_cuda_puts f)
{
    __shared__ float part[OCT_FLOW_PUT_LINES][OCT_FLOW_WARPS];
    __shared__ bool came[OCT_FLOW_PUT_LINES];
    const uint32_t j = blockIdx.x * OCT_FLOW_PUT_LINES, t = threadIdx.x, i = f.i[blockIdx.y];
    const uint32_t n = min(f.n_lines - j, OCT_FLOW_PUT_LINES);
    const float2 *rows = f.from[blockIdx.y] + (size_t)j * f.depth;
    float2 *to = f.own ? f.own + ((size_t)i * f.n_lines + j) * f.depth : NULL;
    float *blocks = f.blocks + ((size_t)i * f.n_puts + blockIdx.x) * f.n_blocks;
    float lines[OCT_FLOW_PUT_LINES] = {};
    const uint32_t step = OCT_FLOW_QUAD * OCT_FLOW_THREADS;
    if (j == 0 && t == 0)
        f.b[i] = to ? to : rows;
    for (uint32_t first = 0; first < f.depth; first += step) {
        const uint32_t d = first + OCT_FLOW_QUAD * t;
        oct_flow_put_blocks(f, blocks, d, oct_flow_put_chunk(rows, to, n, d, f.depth, lines));
    }
    oct_flow_warp_sums(lines);
    if (t % 32 < OCT_FLOW_PUT_LINES)
        part[oct_flow_sum_of<OCT_FLOW_PUT_LINES>(t % 32)][t / 32] = lines[0];
    __syncthreads();
    if (t < OCT_FLOW_PUT_LINES) {
        float sum = 0;
        for (unsigned w = 0; w < OCT_FLOW_WARPS; w++)
            sum += part[t][w];
        came[t] = sum > 0 && sum <= 3.4e38f; /* not NaN either */
        if (t < n)
            f.power[(size_t)i * f.n_lines + j + t] = came[t] ? sum : 0;
    }
    __syncthreads();
    bool all_came = true;
    for (uint32_t m = 0; m < n; m++)
        all_came = all_came && came[m];
    if (all_came)
        return;
    for (uint32_t first = 0; first < f.depth; first += step) {
        const uint32_t d = first + OCT_FLOW_QUAD * t;
        float sum = 0;
        for (uint32_t m = 0; m < n && d < f.depth; m++)
            sum += came[m] ? oct_flow_put_four(rows + (size_t)m * f.depth, NULL, d, f.depth) : 0;
        oct_flow_put_blocks(f, blocks, d, sum);
    }
}

/* ---- where repeats lie, and the noise ---- */

/* By one thread, when all pairs of the place have their step. */
static __device__ void oct_flow_add_steps(const struct oct_flow_cuda &f, uint32_t k)
{
    struct oct_flow_cuda_place *p = &f.place[k];
    double lines = 0, depths = 0;
    for (uint32_t r = 0; r < f.n_repeats; r++) {
        if (!oct_flow_has(f.came[k], r))
            continue;
        const volatile double *step = p->step[r]; /* other blocks have written it */
        lines += step[0];
        depths += step[1];
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
    __shared__ uint32_t part[OCT_FLOW_WARPS];
    __shared__ double sums[OCT_FLOW_WARPS][64];
    const uint32_t t = threadIdx.x, lane = t % 32, warp = t / 32;
    uint32_t n_lines = 0;
#pragma unroll 4
    for (uint32_t row = t; row < f.n_repeats * f.n_lines; row += OCT_FLOW_THREADS) {
        const uint32_t r = row / f.n_lines;
        n_lines += oct_flow_has(f.came[k], r) &&
                   f.power[oct_flow_bscan_of(f, r, k) * f.n_lines + row % f.n_lines] > 0;
    }
    const double n_came = oct_flow_block_sum(n_lines, part);
    for (uint32_t first = 0; first < f.n_blocks; first += 64) { /* two blocks a lane */
        float sum[2] = {0, 0};
#pragma unroll 8
        for (uint32_t row = warp; row < f.n_repeats * f.n_puts; row += OCT_FLOW_WARPS) {
            const uint32_t r = row / f.n_puts;
            const size_t put = oct_flow_bscan_of(f, r, k) * f.n_puts + row % f.n_puts;
            for (uint32_t i = 0; i < 2; i++)
                if (oct_flow_has(f.came[k], r) && first + 32 * i + lane < f.n_blocks)
                    sum[i] += f.blocks[put * f.n_blocks + first + 32 * i + lane];
        }
        sums[warp][lane] = (double)sum[0];
        sums[warp][32 + lane] = (double)sum[1];
        __syncthreads();
        if (t < 64 && first + t < f.n_blocks) {
            double mean = 0;
            for (unsigned w = 0; w < OCT_FLOW_WARPS; w++)
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

/* Adds the products of a block of depths of an A-line with itself, by lag. */
static __device__ __forceinline__ void oct_flow_correlate_block(const float2 *line, bool is_even,
                                                                float2 sum[OCT_FLOW_RHO_LAGS])
{
    float2 a[OCT_FLOW_BLOCK];
#pragma unroll
    for (unsigned d = 0; d < OCT_FLOW_BLOCK; d += 2) {
        if (is_even) {
            const float4 two = __ldg(reinterpret_cast<const float4 *>(line + d));
            a[d] = make_float2(two.x, two.y);
            a[d + 1] = make_float2(two.z, two.w);
        } else {
            a[d] = __ldg(line + d);
            a[d + 1] = __ldg(line + d + 1);
        }
    }
#pragma unroll
    for (unsigned lag = 0; lag < OCT_FLOW_RHO_LAGS; lag++)
#pragma unroll
        for (unsigned d = 0; d + lag < OCT_FLOW_BLOCK; d++)
            oct_flow_add_cross(&sum[lag], a[d], a[d + lag]);
}

/* 1 / Q, of |rho|^2 as it is in that block of depths (noise.c), to the first thread. */
static __device__ double oct_flow_correlate_noise(const struct oct_flow_cuda &f, uint32_t k,
                                                  uint32_t block)
{
    __shared__ float2 part[OCT_FLOW_WARPS][OCT_FLOW_RHO_LAGS];
    __shared__ double rho[OCT_FLOW_RHO_LAGS][2];
    const uint32_t half = (f.n_lines + 1) / 2, t = threadIdx.x;
    float2 sum[OCT_FLOW_RHO_LAGS] = {};
    for (uint32_t row = t; row < f.n_repeats * half; row += OCT_FLOW_THREADS) {
        const uint32_t r = row / half, j = r % 2 + 2 * (row % half);
        const size_t bscan = oct_flow_bscan_of(f, r, k);
        if (j < f.n_lines && oct_flow_has(f.came[k], r) && f.power[bscan * f.n_lines + j] > 0)
            oct_flow_correlate_block(f.b[bscan] + (size_t)j * f.depth + block * OCT_FLOW_BLOCK,
                                     f.depth % 2 == 0, sum);
    }
    for (uint32_t lag = 0; lag < OCT_FLOW_RHO_LAGS; lag++) {
        const float2 all =
            make_float2(oct_flow_warp_sum(sum[lag].x), oct_flow_warp_sum(sum[lag].y));
        if (t % 32 == 0)
            part[t / 32][lag] = all;
    }
    __syncthreads();
    if (t < 2 * OCT_FLOW_RHO_LAGS) {
        double all = 0;
        for (unsigned w = 0; w < OCT_FLOW_WARPS; w++)
            all += t % 2 ? part[w][t / 2].y : part[w][t / 2].x;
        rho[t / 2][t % 2] = all;
    }
    __syncthreads();
    double inverse = f.rho_weight[0];
    for (uint32_t lag = 1; lag < OCT_FLOW_RHO_LAGS && rho[0][0] > 0 && t == 0; lag++) {
        const double share = OCT_FLOW_BLOCK / (OCT_FLOW_BLOCK - (double)lag) / rho[0][0];
        const double re = share * rho[lag][0], im = share * rho[lag][1];
        inverse += f.rho_weight[lag] * (re * re + im * im);
    }
    return inverse;
}

/* By a block of OCT_FLOW_THREADS: n0 and Q. */
static __device__ void oct_flow_plan_noise(const struct oct_flow_cuda &f, uint32_t k)
{
    const struct oct_flow_dark dark = oct_flow_find_noise(f, k);
    const double inverse =
        f.samples > 0 ? 1 / f.samples : oct_flow_correlate_noise(f, k, dark.block);
    if (threadIdx.x == 0) {
        const double noise = f.noise > 0 ? f.noise : dark.noise;
        f.place[k].noise = noise > 1e-12 ? noise : 1e-12;
        f.place[k].samples = 1 / inverse;
    }
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

/* n lines from j0 on; to all threads after the next barrier. */
static __device__ void oct_flow_move_lines(const struct oct_flow_cuda &f, uint32_t k, uint32_t j0,
                                           uint32_t n, struct oct_flow_cuda_moved *lines)
{
    const struct oct_flow_cuda_place *p = &f.place[k];
    for (uint32_t i = threadIdx.x; i < f.n_repeats * n; i += OCT_FLOW_THREADS) {
        const uint32_t r = i % f.n_repeats, j = j0 + i / f.n_repeats;
        struct oct_flow_cuda_moved *m = &lines[i / f.n_repeats];
        m->at[r] = NULL;
        if (!oct_flow_has(f.came[k], r))
            continue;
        const int from = (int)j - p->lines[r];
        if (from < 0 || from >= (int)f.n_lines)
            continue;
        const size_t bscan = oct_flow_bscan_of(f, r, k);
        oct_flow_range(f, p->depths[r], &m->first[r], &m->end[r]);
        m->power[r] = f.power[bscan * f.n_lines + (uint32_t)from];
        if (m->power[r] > 0)
            m->at[r] = f.b[bscan] + (ptrdiff_t)from * f.depth - p->depths[r];
    }
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
            const float square = sum.x * sum.x + sum.y * sum.y;
            const float over = square > 0 ? rsqrtf(square) : 0, length = square * over;
            if (length > 0)
                m->turn[r] = make_float2(sum.x * over, sum.y * over);
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
            oct_flow_add_cross(&sum, __ldg(a + d), __ldg(b + d));
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

/* Rows of a chunk, with what the window reaches on both sides of them, and the window's taps. */
struct oct_flow_cuda_rows {
    alignas(16) float of[3][OCT_FLOW_CHUNK + 2 * OCT_FLOW_MOST_RADIUS + 10];
    alignas(16) float taps[OCT_FLOW_REACH + 13]; /* taps_depth behind a zero */
};

static __device__ __forceinline__ void oct_flow_load_taps(const struct oct_flow_cuda &f,
                                                          struct oct_flow_cuda_rows *rows)
{
    for (uint32_t i = threadIdx.x; i < OCT_FLOW_REACH + 13; i += OCT_FLOW_THREADS)
        rows->taps[i] = i > 0 ? f.taps_depth[i - 1] : 0;
}

/* Smoothed: n depths, four a thread, of a line whose sums begin at `first`. */
static __device__ __forceinline__ void oct_flow_smooth(const struct oct_flow_cuda &f,
                                                       const struct oct_flow_cuda_rows &rows,
                                                       uint32_t n, size_t first)
{
    const int radius = f.radius_depth;
    const uint32_t at = OCT_FLOW_QUAD * threadIdx.x;
    float sum[3][OCT_FLOW_QUAD] = {}, taps[8];
    for (int i = 0; i < 4; i++)
        taps[4 + i] = rows.taps[i];
    for (int o = 0; o < 2 * radius + (int)OCT_FLOW_QUAD; o += (int)OCT_FLOW_QUAD) {
        const float4 next = *reinterpret_cast<const float4 *>(rows.taps + o + 4);
        const float fresh[OCT_FLOW_QUAD] = {next.x, next.y, next.z, next.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            taps[i] = taps[4 + i];
            taps[4 + i] = fresh[i];
        }
#pragma unroll
        for (int row = 0; row < 3; row++) {
            const float4 v = *reinterpret_cast<const float4 *>(rows.of[row] + at + o);
            const float of[OCT_FLOW_QUAD] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int e = 0; e < (int)OCT_FLOW_QUAD; e++)
#pragma unroll
                for (int q = 0; q < (int)OCT_FLOW_QUAD; q++)
                    sum[row][q] += taps[e - q + 4] * of[e];
        }
    }
#pragma unroll
    for (int row = 0; row < 3; row++)
        if (f.depth % OCT_FLOW_QUAD == 0 && at < n)
            *reinterpret_cast<float4 *>(f.sums[row] + first + at) =
                make_float4(sum[row][0], sum[row][1], sum[row][2], sum[row][3]);
        else
            for (uint32_t q = 0; q < OCT_FLOW_QUAD && at + q < n; q++)
                f.sums[row][first + at + q] = sum[row][q];
}

/* The same for MOST repeats at most and lines of one chunk: each value is read once. */
#define OCT_FLOW_OWN ((int)(OCT_FLOW_CHUNK / OCT_FLOW_THREADS)) /* depths of a thread */

template <int MOST> struct oct_flow_cuda_own {
    float2 value[MOST][OCT_FLOW_OWN];
    uint32_t is_in; /* bit r OCT_FLOW_OWN + q */
};

template <int MOST>
static __device__ __forceinline__ void oct_flow_read_own(const struct oct_flow_cuda_moved &m,
                                                         int n_repeats,
                                                         struct oct_flow_cuda_own<MOST> *own)
{
    own->is_in = 0;
#pragma unroll
    for (int r = 0; r < MOST; r++) {
        const float2 *from = r < n_repeats ? m.at[r] : NULL;
        const int first = from ? m.first[r] : 0, end = from ? m.end[r] : 0;
#pragma unroll
        for (int q = 0; q < OCT_FLOW_OWN; q++) {
            const int d = (int)threadIdx.x + q * (int)OCT_FLOW_THREADS;
            own->value[r][q] = make_float2(0, 0);
            if (d >= first && d < end) {
                own->value[r][q] = __ldg(from + d);
                own->is_in |= 1u << (r * OCT_FLOW_OWN + q);
            }
        }
    }
}

/* part: the sums of the warps of what the pairs have in common. */
template <int MOST>
static __device__ __forceinline__ void oct_flow_cross_own(const struct oct_flow_cuda_own<MOST> &own,
                                                          float2 (*part)[OCT_FLOW_WARPS])
{
#pragma unroll
    for (int r = 1; r < MOST; r++) {
        float2 sum = make_float2(0, 0);
#pragma unroll
        for (int q = 0; q < OCT_FLOW_OWN; q++) {
            oct_flow_add_cross(&sum, own.value[r - 1][q], own.value[r][q]);
        }
        sum.x = oct_flow_warp_sum(sum.x);
        sum.y = oct_flow_warp_sum(sum.y);
        if (threadIdx.x % 32 == 0)
            part[r][threadIdx.x / 32] = sum;
    }
    __syncthreads();
}

/* Where all repeats are. */
template <int MOST>
static __device__ __forceinline__ struct oct_flow_cuda_sums
oct_flow_sum_all(const struct oct_flow_cuda_own<MOST> &own, const float2 *turn, int q)
{
    struct oct_flow_cuda_sums s = {0, 0, 0, MOST};
    float first = 0, last = 0;
#pragma unroll
    for (int r = 0; r < MOST; r++) {
        const float2 b = own.value[r][q];
        last = b.x * b.x + b.y * b.y;
        first = r == 0 ? last : first;
        s.intensity += last;
        if (r > 0) {
            const float2 z = oct_flow_cross(own.value[r - 1][q], b);
            s.same = fmaf(z.x, turn[r].x, fmaf(z.y, turn[r].y, s.same));
        }
    }
    s.both = s.intensity - 0.5f * (first + last);
    return s;
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

/* The sums of a line at the depths of the thread, to the rows. */
template <int MOST>
static __device__ __forceinline__ void oct_flow_sum_line(const struct oct_flow_cuda &f, size_t at,
                                                         const struct oct_flow_cuda_own<MOST> &own,
                                                         const float2 *turn,
                                                         struct oct_flow_cuda_rows *rows)
{
    const bool has_all = own.is_in == 0xffffffffu >> (32 - MOST * OCT_FLOW_OWN);
#pragma unroll
    for (int q = 0; q < OCT_FLOW_OWN; q++) {
        const int d = (int)threadIdx.x + q * (int)OCT_FLOW_THREADS;
        const struct oct_flow_cuda_sums s =
            has_all ? oct_flow_sum_all<MOST>(own, turn, q) : oct_flow_sum_own<MOST>(own, turn, q);
        rows->of[0][f.radius_depth + d] = s.same;
        rows->of[1][f.radius_depth + d] = s.both;
        rows->of[2][f.radius_depth + d] = s.intensity;
        if (f.is_kept && d < (int)f.depth)
            f.intensity[at + (uint32_t)d] = s.intensity / s.count;
    }
}

/* Each block takes some lines, and reads the next while it smooths one. */
template <int MOST>
static __global__ void __launch_bounds__(OCT_FLOW_THREADS, MOST > 4 ? 2 : 4)
    oct_flow_short_lines_kernel(const struct oct_flow_cuda f)
{
    __shared__ struct oct_flow_cuda_moved moved[OCT_FLOW_LINES_OF];
    __shared__ float2 part[MOST][OCT_FLOW_WARPS];
    __shared__ struct oct_flow_cuda_rows rows;
    oct_await_before();
    const uint32_t j0 = blockIdx.x * OCT_FLOW_LINES_OF, k = blockIdx.y, t = threadIdx.x;
    const uint32_t n = min(f.n_lines - j0, OCT_FLOW_LINES_OF);
    const int radius = f.radius_depth;
    struct oct_flow_cuda_own<MOST> own;
    oct_flow_load_taps(f, &rows);
    for (int i = (int)t; i < 2 * radius + (int)OCT_FLOW_QUAD; i += (int)OCT_FLOW_THREADS)
        for (unsigned row = 0; row < 3; row++)
            rows.of[row][i < radius ? i : i + (int)OCT_FLOW_CHUNK] = 0;
    oct_flow_move_lines(f, k, j0, n, moved);
    __syncthreads();
    oct_flow_read_own<MOST>(moved[0], (int)f.n_repeats, &own);
    if (t < n)
        oct_flow_note_line(f, k, j0 + t, &moved[t]);
    for (uint32_t i = 0; i < n; i++) {
        const size_t line = (size_t)k * f.n_lines + j0 + i, at = line * f.depth;
        oct_flow_cross_own<MOST>(own, part);
        oct_flow_end_turn(f, line, &moved[i], part);
        oct_flow_sum_line<MOST>(f, at, own, moved[i].turn, &rows);
        if (i + 1 < n)
            oct_flow_read_own<MOST>(moved[i + 1], (int)f.n_repeats, &own);
        __syncthreads();
        oct_flow_smooth(f, rows, f.depth, at);
    }
}

static __global__ void __launch_bounds__(OCT_FLOW_THREADS)
    oct_flow_lines_kernel(const struct oct_flow_cuda f)
{
    __shared__ struct oct_flow_cuda_moved moved;
    __shared__ struct oct_flow_cuda_rows rows;
    oct_await_before();
    const uint32_t j = blockIdx.x, k = blockIdx.y, t = threadIdx.x;
    const size_t line = (size_t)k * f.n_lines + j;
    const int radius = f.radius_depth;
    oct_flow_load_taps(f, &rows);
    oct_flow_move_lines(f, k, j, 1, &moved);
    __syncthreads();
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
            rows.of[0][s] = sums.same;
            rows.of[1][s] = sums.both;
            rows.of[2][s] = sums.intensity;
            if (f.is_kept && s >= radius && s < (int)n + radius)
                f.intensity[line * f.depth + (uint32_t)d] = sums.intensity / sums.count;
        }
        __syncthreads();
        oct_flow_smooth(f, rows, n, line * f.depth + first);
        __syncthreads();
    }
}

#endif
