/* The whole chain of two neighbouring A-lines in one block: nothing between the samples and the
 * pixels touches device memory.
 *
 * The two lines a, b travel as real and imaginary part of x = a + i b through everything that is
 * linear with real coefficients: the half-sample shift is such a filter (its spectrum is
 * hermitian), so the complex transform of length P1, times shift, and back gives the odd samples of
 * both without any untangling, in the work of two real transforms each way. So is the
 * interpolation: one load of a tap serves both lines. Only after the phase they are transformed one
 * by one.
 *
 *     registers  x[P1]   u16 less DC
 *     shared     P1 forward, times shift, P1 inverse: passes of radix 8 (one of 4 for P1 = 2048);
 *                between forward and inverse nothing is exchanged
 *     shared     u[P2] = even and odd samples of both lines
 *     registers  s[P2] = sum of taps, both lines; then for each line
 *     shared     P2 forward of s * phase: 16 x 16 x 16, or 8 x 8 x 8 x 16
 *     registers  intensity, dB, u8 of the depths wanted; the compiler drops the last pass's other
 *                outputs, of which there are at least half
 *
 * Shared memory: P2 * 17/16 complex numbers, 34 or 68 KiB. */
#ifndef OCT_KERNELS_CUDA_FUSED_CUH
#define OCT_KERNELS_CUDA_FUSED_CUH

#include "kernels/cuda_fft.cuh"
#include "kernels/cuda_types.cuh"

/* Threads a block, radices and table places for each P1. */
template <int P1> struct oct_fused_shape;

template <> struct oct_fused_shape<2048> {
    static constexpr int threads = 256, blocks_per_sm = 2;
    static constexpr int first_radix = 4;               /* of the forward P1 transform */
    static constexpr int radix_in = 16, radix_out = 16; /* first and last of the P2 transform */
};

template <> struct oct_fused_shape<4096> {
    static constexpr int threads = 512, blocks_per_sm = 1;
    static constexpr int first_radix = 8;
    static constexpr int radix_in = 8, radix_out = 16;
};

/* Where a pass's twiddles begin in the table; filled on the host in the same order. */
struct oct_fused_pass {
    int radix, ns;
};

static const struct oct_fused_pass oct_fused_passes_2048[] = {
    {8, 4},   {8, 32},   {8, 256}, /* forward P1: 4 8 8 8 */
    {8, 8},   {8, 64},   {4, 512}, /* inverse P1: 8 8 8 4 */
    {16, 16}, {16, 256},           /* P2: 16 16 16 */
};

static const struct oct_fused_pass oct_fused_passes_4096[] = {
    {8, 8}, {8, 64}, {8, 512},  /* forward and inverse P1: 8 8 8 8 */
    {8, 8}, {8, 64}, {16, 512}, /* P2: 8 8 8 16 */
};

/* Position m of a thread's P points before a first pass of radix R (or after a last one). */
template <int N, int T, int R> static __device__ __forceinline__ int oct_place(int thread, int m)
{
    return thread + (m / R) * T + (m % R) * (N / R);
}

/* x[i] of both lines: samples less DC, zero where there are none. */
template <int P1>
static __device__ __forceinline__ void oct_fused_load(const struct oct_cuda_tables &t,
                                                      unsigned bscan, unsigned line, bool has_a,
                                                      bool has_b, int thread, float2 *x)
{
    constexpr int T = oct_fused_shape<P1>::threads, R = oct_fused_shape<P1>::first_radix;
    const uint16_t *a = t.spectra + ((size_t)bscan * t.n_lines + line) * t.n_samples;
    const float2 *dc = t.dc + (size_t)bscan * t.dc_stride;
#pragma unroll
    for (int m = 0; m < P1 / T; m++) {
        unsigned i = (unsigned)oct_place<P1, T, R>(thread, m) - t.left;
        x[m] = make_float2(0, 0);
        if (i < t.n_samples) { /* also false left of the line: i wraps around */
            float2 d = __ldg(&dc[i]);
            if (has_a)
                x[m].x = ((float)a[i] - d.x) - d.y;
            if (has_b)
                x[m].y = ((float)a[i + t.n_samples] - d.x) - d.y;
        }
    }
}

/* x to the samples half way between its own and their right neighbours, at the same places. */
template <int P1>
static __device__ __forceinline__ void oct_fused_shift(float2 *v, const float2 *shift,
                                                       const float2 *w, float2 *shared, int thread)
{
    constexpr int T = oct_fused_shape<P1>::threads;
    if (P1 == 2048) {
        const float2 *back = w + 7 * (4 + 32 + 256);
        oct_pass<P1, T, 4, 1, false>(v, w, thread);
        oct_exchange<P1, T, 4, 1, 8>(v, shared, thread);
        oct_pass<P1, T, 8, 4, false>(v, w, thread);
        oct_exchange<P1, T, 8, 4, 8>(v, shared, thread);
        oct_pass<P1, T, 8, 32, false>(v, w + 7 * 4, thread);
        oct_exchange<P1, T, 8, 32, 8>(v, shared, thread);
        oct_pass<P1, T, 8, 256, false>(v, w + 7 * (4 + 32), thread);
#pragma unroll
        for (int m = 0; m < 8; m++)
            v[m] = oct_mul(v[m], __ldg(&shift[thread + 256 * m]));
        oct_pass<P1, T, 8, 1, true>(v, back, thread);
        oct_exchange<P1, T, 8, 1, 8>(v, shared, thread);
        oct_pass<P1, T, 8, 8, true>(v, back, thread);
        oct_exchange<P1, T, 8, 8, 8>(v, shared, thread);
        oct_pass<P1, T, 8, 64, true>(v, back + 7 * 8, thread);
        oct_exchange<P1, T, 8, 64, 4>(v, shared, thread);
        oct_pass<P1, T, 4, 512, true>(v, back + 7 * (8 + 64), thread);
    } else {
        oct_pass<P1, T, 8, 1, false>(v, w, thread);
        oct_exchange<P1, T, 8, 1, 8>(v, shared, thread);
        oct_pass<P1, T, 8, 8, false>(v, w, thread);
        oct_exchange<P1, T, 8, 8, 8>(v, shared, thread);
        oct_pass<P1, T, 8, 64, false>(v, w + 7 * 8, thread);
        oct_exchange<P1, T, 8, 64, 8>(v, shared, thread);
        oct_pass<P1, T, 8, 512, false>(v, w + 7 * (8 + 64), thread);
#pragma unroll
        for (int m = 0; m < 8; m++)
            v[m] = oct_mul(v[m], __ldg(&shift[thread + 512 * m]));
        oct_pass<P1, T, 8, 1, true>(v, w, thread);
        oct_exchange<P1, T, 8, 1, 8>(v, shared, thread);
        oct_pass<P1, T, 8, 8, true>(v, w, thread);
        oct_exchange<P1, T, 8, 8, 8>(v, shared, thread);
        oct_pass<P1, T, 8, 64, true>(v, w + 7 * 8, thread);
        oct_exchange<P1, T, 8, 64, 8>(v, shared, thread);
        oct_pass<P1, T, 8, 512, true>(v, w + 7 * (8 + 64), thread);
    }
}

/* P2 transform of v; depth d = thread + r * P2/16 is then in v[r]. */
template <int P1>
static __device__ __forceinline__ void oct_fused_transform(float2 *v, const float2 *w,
                                                           float2 *shared, int thread)
{
    constexpr int T = oct_fused_shape<P1>::threads, P2 = 2 * P1;
    if (P1 == 2048) {
        w += 7 * (4 + 32 + 256) + 7 * (8 + 64) + 3 * 512;
        oct_pass<P2, T, 16, 1, false>(v, w, thread);
        oct_exchange<P2, T, 16, 1, 16>(v, shared, thread);
        oct_pass<P2, T, 16, 16, false>(v, w, thread);
        oct_exchange<P2, T, 16, 16, 16>(v, shared, thread);
        oct_pass<P2, T, 16, 256, false>(v, w + 15 * 16, thread);
    } else {
        w += 7 * (8 + 64 + 512);
        oct_pass<P2, T, 8, 1, false>(v, w, thread);
        oct_exchange<P2, T, 8, 1, 8>(v, shared, thread);
        oct_pass<P2, T, 8, 8, false>(v, w, thread);
        oct_exchange<P2, T, 8, 8, 8>(v, shared, thread);
        oct_pass<P2, T, 8, 64, false>(v, w + 7 * 8, thread);
        oct_exchange<P2, T, 8, 64, 16>(v, shared, thread);
        oct_pass<P2, T, 16, 512, false>(v, w + 7 * (8 + 64), thread);
    }
}

static __device__ __forceinline__ void oct_fused_dark_line(const struct oct_cuda_tables &t,
                                                           const struct oct_cuda_job &job,
                                                           size_t at, int thread, int n_threads)
{
    for (unsigned d = (unsigned)thread; d < t.depth; d += (unsigned)n_threads)
        oct_store(t, job, at + d, oct_darkness(job.flags));
}

/* grid (ceil(M / 2), n). KEEP: outputs of the last pass that are looked at: 4 while
 * crop_last <= P2/4, else 8. */
template <int P1, int N_TAPS, int KEEP>
__global__ void __launch_bounds__(oct_fused_shape<P1>::threads, oct_fused_shape<P1>::blocks_per_sm)
    oct_fused_kernel(struct oct_cuda_tables t, struct oct_cuda_batch batch)
{
    OCT_SHARED(float2, shared);
    constexpr int T = oct_fused_shape<P1>::threads, P2 = 2 * P1, POINTS = P2 / T;
    const int thread = (int)threadIdx.x;
    const unsigned bscan = blockIdx.y, line = 2 * blockIdx.x;
    const struct oct_cuda_job &job = batch.job[bscan];
    const uint8_t *valid = t.valid + (size_t)bscan * t.n_lines;
    const bool all = !(job.flags & OCT_JOB_MISSING), is_pair = line + 1 < t.n_lines;
    const bool has_a = all || valid[line], has_b = is_pair && (all || valid[line + 1]);
    const size_t at = ((size_t)bscan * t.n_lines + line) * t.depth;

    if (!has_a)
        oct_fused_dark_line(t, job, at, thread, T);
    if (is_pair && !has_b)
        oct_fused_dark_line(t, job, at + t.depth, thread, T);
    if (!has_a && !has_b)
        return; /* the whole block */

    {
        constexpr int R = oct_fused_shape<P1>::first_radix;
        float2 x[P1 / T], odd[P1 / T];
        oct_fused_load<P1>(t, bscan, line, has_a, has_b, thread, x);
#pragma unroll
        for (int m = 0; m < P1 / T; m++)
            odd[m] = x[m];
        oct_fused_shift<P1>(odd, t.shift, t.twiddle, shared, thread);
        __syncthreads();
        float4 *u = reinterpret_cast<float4 *>(shared); /* [P1]: even a b, odd a b */
#pragma unroll
        for (int m = 0; m < P1 / T; m++)
            u[oct_place<P1, T, R>(thread, m)] = make_float4(x[m].x, x[m].y, odd[m].x, odd[m].y);
        __syncthreads();
    }

    constexpr int R_IN = oct_fused_shape<P1>::radix_in;
    float2 v[POINTS];
    float second[POINTS]; /* line b waits while line a is transformed */
#pragma unroll
    for (int m = 0; m < POINTS; m++) {
        int q = oct_place<P2, T, R_IN>(thread, m);
        const float2 *u = shared + __ldg(&t.tap_first[q]);
        float2 sum = make_float2(0, 0);
#pragma unroll
        for (int tap = 0; tap < N_TAPS; tap++) {
            float w = __ldg(&t.weight[tap * P2 + q]);
            sum.x += w * u[tap].x;
            sum.y += w * u[tap].y;
        }
        float2 phase = __ldg(&t.phase[q]);
        v[m] = make_float2(sum.x * phase.x, sum.x * phase.y);
        second[m] = sum.y;
    }

#pragma unroll 1
    for (int l = 0; l < 2; l++) {
        if (l == 1)
#pragma unroll
            for (int m = 0; m < POINTS; m++) {
                float2 phase = __ldg(&t.phase[oct_place<P2, T, R_IN>(thread, m)]);
                v[m] = make_float2(second[m] * phase.x, second[m] * phase.y);
            }
        if (!(l ? has_b : has_a))
            continue;
        oct_fused_transform<P1>(v, t.twiddle, shared, thread);
#pragma unroll
        for (int r = 0; r < KEEP; r++) {
            unsigned d = (unsigned)(thread + r * (P2 / 16)) - t.crop_first;
            if (d < t.depth)
                oct_store(t, job, at + (size_t)l * t.depth + d, oct_intensity(v[r], job.flags));
        }
    }
}

#endif
