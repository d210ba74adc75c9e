/* The chain with interpolation = nufft (pipeline/plan/spread.h) of two neighbouring A-lines in one
 * block: nothing between the samples and the pixels touches device memory.
 *
 *     shared     x[N] of both lines: u16 less DC, and the samples that are read again behind them
 *     registers  f[P1] of each line: every thread gathers its points of the grid. A weight is
 *                loaded once for both lines; a pair of samples is one load
 *     shared     P1 forward, of both lines one after the other
 *     registers  intensity times gain, dB, u8 of the depths wanted; the compiler drops the last
 *                pass's other outputs, of which there are at least half
 *
 * The table is cut into slices of 32 neighbouring points, a warp's. Each has as many taps as its
 * longest point, so that lanes stay together and their loads lie side by side: weight [tap][32],
 * zero where a point has no more. The counts follow the map and have no bound of their own; points
 * that no sample reaches have none. */
#ifndef OCT_KERNELS_CUDA_SPREAD_CUH
#define OCT_KERNELS_CUDA_SPREAD_CUH

#include "kernels/recon/cuda_fused.cuh"

/* Taps that are loaded before the first is used; a slice's count is a multiple. */
#define OCT_SPREAD_STEP 2

/* Threads a block, and the transform's passes; after the last one a thread has one butterfly. HALF:
 * no sample reaches the second half of the grid. Measured on an H100: fewer passes are faster where
 * half of the first one is left out, more threads where it is not. */
template <int P1, bool HALF> struct oct_spread_shape;

template <> struct oct_spread_shape<2048, true> {
    static constexpr int threads = 128, blocks_per_sm = 4;
    using passes = oct_radices<8, 16, 16>;
};

template <> struct oct_spread_shape<2048, false> {
    static constexpr int threads = 256, blocks_per_sm = 3;
    using passes = oct_radices<4, 8, 8, 8>;
};

template <> struct oct_spread_shape<4096, true> {
    static constexpr int threads = 256, blocks_per_sm = 2;
    using passes = oct_radices<16, 16, 16>;
};

template <> struct oct_spread_shape<4096, false> {
    static constexpr int threads = 512, blocks_per_sm = 2;
    using passes = oct_radices<8, 8, 8, 8>;
};

/* Which of them a plan takes. */
static bool oct_spread_is_half(const struct oct_spread *spread)
{
    return spread->n_used <= spread->n_grid / 2;
}

/* Elements of a line in shared memory: a point that starts late may read zeros behind it. */
static uint32_t oct_spread_row(uint32_t n_samples, uint32_t n_wrap)
{
    return n_samples + n_wrap + OCT_SPREAD_STEP - 1;
}

/* Bytes of shared memory a block: the samples, then the exchanges. */
static size_t oct_spread_bytes(size_t p1, uint32_t n_samples, uint32_t n_wrap)
{
    const size_t row = oct_spread_row(n_samples, n_wrap), exchange = OCT_EXCHANGE_SIZE(p1);
    return (row > exchange ? row : exchange) * sizeof(float2);
}

/* x of both lines to shared memory; a line that is not there is zero, and reads its neighbour. */
template <int T>
static __device__ __forceinline__ void oct_spread_load(const struct oct_cuda_tables &t,
                                                       unsigned bscan, unsigned line, bool has_a,
                                                       bool has_b, int thread, float2 *x)
{
    constexpr int EACH = 8; /* in flight */
    const uint16_t *a = t.spectra + ((size_t)bscan * t.n_lines + line) * t.n_samples;
    const uint16_t *b = has_b ? a + t.n_samples : a;
    const float2 *dc = t.dc + (size_t)bscan * t.dc_stride;
    for (unsigned first = (unsigned)thread; first < t.n_samples; first += EACH * T) {
        uint16_t sample_a[EACH], sample_b[EACH];
        float2 d[EACH];
#pragma unroll
        for (int m = 0; m < EACH; m++) {
            const unsigned i = first + (unsigned)(m * T);
            const bool inside = i < t.n_samples;
            sample_a[m] = inside ? __ldg(&a[i]) : (uint16_t)0;
            sample_b[m] = inside ? __ldg(&b[i]) : (uint16_t)0;
            d[m] = inside ? __ldg(&dc[i]) : make_float2(0, 0);
        }
#pragma unroll
        for (int m = 0; m < EACH; m++) {
            const unsigned i = first + (unsigned)(m * T);
            const float2 pair = make_float2(has_a ? ((float)sample_a[m] - d[m].x) - d[m].y : 0.0f,
                                            has_b ? ((float)sample_b[m] - d[m].x) - d[m].y : 0.0f);
            if (i < t.n_samples)
                x[i] = pair;
            if (i < t.n_wrap)
                x[t.n_samples + i] = pair;
        }
    }
    if (thread < OCT_SPREAD_STEP - 1)
        x[t.n_samples + t.n_wrap + (unsigned)thread] = make_float2(0, 0);
}

/* f of both lines, at the places of the transform's first pass of radix R. HALF: no sample reaches
 * the grid's upper half. */
template <int P1, int T, int R, bool HALF>
static __device__ __forceinline__ void
oct_spread_gather(const struct oct_cuda_tables &t, const float2 *x, float2 (*v)[P1 / T], int thread)
{
#pragma unroll
    for (int m = 0; m < P1 / T; m++) {
        float2 a = make_float2(0, 0), b = a;
        if (!HALF || m % R < R / 2) {
            const int g = oct_place<P1, T, R>(thread, m);
            const uint32_t begin = __ldg(&t.spread_at[g / 32]),
                           end = __ldg(&t.spread_at[g / 32 + 1]);
            const float2 *weight = t.spread_weight + (size_t)begin * 32 + thread % 32;
            const float2 *from = x + __ldg(&t.spread_first[g]);
            for (uint32_t left = end - begin; left > 0; left -= OCT_SPREAD_STEP) {
#pragma unroll
                for (int tap = 0; tap < OCT_SPREAD_STEP; tap++) {
                    const float2 w = __ldg(&weight[tap * 32]), pair = from[tap];
                    a = make_float2(fmaf(w.x, pair.x, a.x), fmaf(w.y, pair.x, a.y));
                    b = make_float2(fmaf(w.x, pair.y, b.x), fmaf(w.y, pair.y, b.y));
                }
                weight += OCT_SPREAD_STEP * 32;
                from += OCT_SPREAD_STEP;
            }
        }
        v[0][m] = a;
        v[1][m] = b;
    }
}

/* Pixels of a line from its transform, where depth thread + r * APART lies in v[r]. */
template <int APART, int KEEP>
static __device__ __forceinline__ void
oct_spread_finish(const struct oct_cuda_tables &t, const struct oct_cuda_job &job, size_t line,
                  bool came, const float2 *v, const float *gain, int thread)
{
    float value[KEEP];
#pragma unroll
    for (int r = 0; r < KEEP; r++)
        value[r] = (v[r].x * v[r].x + v[r].y * v[r].y) * gain[r];
    oct_fused_store<APART, KEEP>(t, job, line, came, value, thread);
}

/* grid (ceil(M / 2), n) */
template <int P1, bool HALF>
__global__ void __launch_bounds__(oct_spread_shape<P1, HALF>::threads,
                                  oct_spread_shape<P1, HALF>::blocks_per_sm)
    oct_spread_kernel(struct oct_cuda_tables t, struct oct_cuda_batch batch)
{
    OCT_SHARED(float2, shared);
    oct_await_before();
    using shape = oct_spread_shape<P1, HALF>;
    using passes = typename shape::passes;
    constexpr int T = shape::threads, KEEP = P1 / T / 2;
    const int thread = (int)threadIdx.x;
    const unsigned bscan = blockIdx.y, line = 2 * blockIdx.x;
    const struct oct_cuda_job &job = batch.job[bscan];
    const uint8_t *valid = t.valid + (size_t)bscan * t.n_lines;
    const bool all = !(job.flags & OCT_JOB_MISSING), is_pair = line + 1 < t.n_lines;
    const bool has_a = all || valid[line], has_b = is_pair && (all || valid[line + 1]);

    oct_spread_load<T>(t, bscan, line, has_a, has_b, thread, shared);
    __syncthreads();
    float2 v[2][P1 / T];
    oct_spread_gather<P1, T, passes::first, HALF>(t, shared, v, thread);
    oct_transform<P1, T, false, 2, false, HALF>(passes{}, v, t.twiddle, shared, thread);

    float gain[KEEP];
#pragma unroll
    for (int r = 0; r < KEEP; r++)
        gain[r] = __ldg(&t.gain[thread + r * T]);
    const size_t at = (size_t)bscan * t.n_lines + line;
    if (job.flags & OCT_JOB_COMPLEX) {
        float2 factor[KEEP];
#pragma unroll
        for (int r = 0; r < KEEP; r++)
            factor[r] = __ldg(&t.factor[thread + r * T]);
        oct_fused_store_complex<T, KEEP>(t, job, at, has_a, v[0], factor, thread);
        if (is_pair)
            oct_fused_store_complex<T, KEEP>(t, job, at + 1, has_b, v[1], factor, thread);
    }
    oct_spread_finish<T, KEEP>(t, job, at, has_a, v[0], gain, thread);
    if (is_pair)
        oct_spread_finish<T, KEEP>(t, job, at + 1, has_b, v[1], gain, thread);
}

#endif
