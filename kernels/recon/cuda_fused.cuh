/* The whole chain of two neighbouring A-lines in one block: nothing between the samples and the
 * pixels touches device memory.
 *
 * The two lines a, b travel as real and imaginary part of x = a + i b through everything that is
 * linear with real coefficients: the half-sample shift is such a filter (its spectrum is
 * hermitian), so the complex transform of length P1, times shift, and back gives the odd samples of
 * both without any untangling, in the work of two real transforms each way. So is the
 * interpolation: one load of a tap serves both lines. After the phase they are two signals, which
 * share addresses, twiddles and, in the wide form, exchanges.
 *
 *     registers  x[P1]   u16 less DC
 *     shared     P1 forward, times shift, P1 inverse: passes of radix 8 (one of 4 for P1 = 2048);
 *                between forward and inverse nothing is exchanged
 *     shared     u[P2] = even and odd samples of both lines
 *     registers  s[P2] = sum of taps times phase, for each line
 *     shared     P2 forward: 16 x 16 x 16, or 8 x 8 x 8 x 16
 *     registers  intensity, dB, u8 of the depths wanted; the compiler drops the last pass's other
 *                outputs, of which there are at least half
 *
 * Shared memory: P2 complex numbers and gaps, 36 or 72 KiB, used by everything in turn. */
#ifndef OCT_KERNELS_CUDA_FUSED_CUH
#define OCT_KERNELS_CUDA_FUSED_CUH

#include "kernels/recon/cuda_fft.cuh"
#include "kernels/recon/cuda_types.cuh"

#include <type_traits>

/* Threads a block, and the passes of the P1 transforms (forward, inverse) and of the P2 one. The
 * inverse begins with the radix that forward ends with, and ends with the one it began with. */
template <int P1> struct oct_fused_shape;

template <> struct oct_fused_shape<2048> {
    static constexpr int threads = 256, blocks_per_sm = 2;
    using forward = oct_radices<4, 8, 8, 8>;
    using inverse = oct_radices<8, 8, 8, 4>;
    using to_depth = oct_radices<16, 16, 16>;
};

template <> struct oct_fused_shape<4096> {
    static constexpr int threads = 512, blocks_per_sm = 1;
    using forward = oct_radices<8, 8, 8, 8>;
    using inverse = forward;
    using to_depth = oct_radices<8, 8, 8, 16>;
};

/* Where each transform's twiddles begin in the table. */
template <int P1> struct oct_fused_twiddles {
    using shape = oct_fused_shape<P1>;
    static constexpr bool shared =
        std::is_same<typename shape::forward, typename shape::inverse>::value;
    static constexpr int n_forward = oct_count_twiddles(typename shape::forward{});
    static constexpr int inverse = shared ? 0 : n_forward;
    static constexpr int to_depth = inverse + oct_count_twiddles(typename shape::inverse{});
};

/* Bytes of shared memory a block. */
static size_t oct_fused_bytes(size_t p1)
{
    return OCT_EXCHANGE_SIZE(2 * p1) * sizeof(float2);
}

/* Position m of a thread's N/T points before a first pass of radix R (or after a last one). */
template <int N, int T, int R>
static __device__ __forceinline__ constexpr int oct_place(int thread, int m)
{
    return thread + (m / R) * T + (m % R) * (N / R);
}

/* x[i] of both lines: samples less DC, zero where there are none. All loads are issued before the
 * first is needed, at constant distances from one address; a line that is not there reads its
 * neighbour. */
template <int P1>
static __device__ __forceinline__ void oct_fused_load(const struct oct_cuda_tables &t,
                                                      unsigned bscan, unsigned line, bool has_a,
                                                      bool has_b, int thread, float2 *x)
{
    constexpr int T = oct_fused_shape<P1>::threads, R = oct_fused_shape<P1>::forward::first;
    const int first = thread - (int)t.left;
    const uint16_t *a = t.spectra + ((size_t)bscan * t.n_lines + line) * t.n_samples + first;
    const uint16_t *b = has_b ? a + t.n_samples : a;
    const float2 *dc = t.dc + (size_t)bscan * t.dc_stride + first;
    uint16_t sample_a[P1 / T], sample_b[P1 / T];
    float2 d[P1 / T];
#pragma unroll
    for (int m = 0; m < P1 / T; m++) {
        const int at = oct_place<P1, T, R>(0, m);
        const bool inside = (unsigned)(first + at) < t.n_samples; /* also false left of the line */
        sample_a[m] = inside ? __ldg(&a[at]) : (uint16_t)0;
        sample_b[m] = inside ? __ldg(&b[at]) : (uint16_t)0;
        d[m] = inside ? __ldg(&dc[at]) : make_float2(0, 0);
    }
#pragma unroll
    for (int m = 0; m < P1 / T; m++)
        x[m] = make_float2(((float)sample_a[m] - d[m].x) - d[m].y,
                           ((float)sample_b[m] - d[m].x) - d[m].y);
    if (!has_a)
#pragma unroll
        for (int m = 0; m < P1 / T; m++)
            x[m].x = 0;
    if (!has_b)
#pragma unroll
        for (int m = 0; m < P1 / T; m++)
            x[m].y = 0;
}

/* x to the samples half way between its own and their right neighbours, at the same places. */
template <int P1>
static __device__ __forceinline__ void
oct_fused_shift(float2 (*v)[P1 / oct_fused_shape<P1>::threads], const float2 *shift,
                const float2 *w, float2 *shared, int thread)
{
    using shape = oct_fused_shape<P1>;
    constexpr int T = shape::threads;
    oct_transform<P1, T, false, 1, true>(typename shape::forward{}, v, w, shared, thread);
#pragma unroll
    for (int m = 0; m < P1 / T; m++)
        (*v)[m] = oct_mul((*v)[m], __ldg(&shift[thread + T * m]));
    oct_transform<P1, T, true, 1, false>(typename shape::inverse{}, v,
                                         w + oct_fused_twiddles<P1>::inverse, shared, thread);
}

/* Sum of taps times phase, at the places of the P2 transform's first pass. */
template <int P1, int N_TAPS>
static __device__ __forceinline__ void
oct_fused_resample(const float4 *resample, const float2 *u,
                   float2 (*v)[2 * P1 / oct_fused_shape<P1>::threads], int thread)
{
    constexpr int T = oct_fused_shape<P1>::threads, P2 = 2 * P1;
#pragma unroll
    for (int m = 0; m < P2 / T; m++) {
        const int q = oct_place<P2, T, oct_fused_shape<P1>::to_depth::first>(thread, m);
        float2 sum, phase;
        if (N_TAPS == 2) { /* first, weight of the second, phase: both weights add up to 1 */
            const float4 entry = __ldg(&resample[q]);
            const float2 *at = u + __float_as_int(entry.x);
            const float2 left = at[0], right = at[1];
            sum.x = fmaf(entry.y, right.x - left.x, left.x);
            sum.y = fmaf(entry.y, right.y - left.y, left.y);
            phase = make_float2(entry.z, entry.w);
        } else { /* first, -, phase; four weights */
            const float4 entry = __ldg(&resample[2 * q]), weight = __ldg(&resample[2 * q + 1]);
            const float2 *at = u + __float_as_int(entry.x);
            sum.x =
                weight.x * at[0].x + weight.y * at[1].x + weight.z * at[2].x + weight.w * at[3].x;
            sum.y =
                weight.x * at[0].y + weight.y * at[1].y + weight.z * at[2].y + weight.w * at[3].y;
            phase = make_float2(entry.z, entry.w);
        }
        v[0][m] = make_float2(sum.x * phase.x, sum.x * phase.y);
        v[1][m] = make_float2(sum.y * phase.x, sum.y * phase.y);
    }
}

/* Pixels of line `line` from its intensities, that of depth thread + r * APART in value[r]; a line
 * that did not come is dark. */
template <int APART, int KEEP>
static __device__ __forceinline__ void oct_fused_store(const struct oct_cuda_tables &t,
                                                       const struct oct_cuda_job &job, size_t line,
                                                       bool came, float *value, int thread)
{
    const uint32_t flags = job.flags;
    const unsigned first = (unsigned)thread - t.crop_first; /* of depth; wraps around above it */
    if (flags & OCT_JOB_LOG)
#pragma unroll
        for (int r = 0; r < KEEP; r++)
            value[r] = oct_decibel(value[r]);
    if (!came)
#pragma unroll
        for (int r = 0; r < KEEP; r++)
            value[r] = oct_darkness(flags);
    const size_t at = line * t.depth + thread - t.crop_first;
    if (flags & OCT_JOB_DIRECT) {
        const float scale = job.scale, offset = 0.5f - job.lo * scale;
        uint8_t *pixels = t.pixels + at;
#pragma unroll
        for (int r = 0; r < KEEP; r++)
            if (first + r * APART < t.depth)
                pixels[r * APART] = oct_clamp_u8(fmaf(value[r], scale, offset));
    }
    if (oct_stores_values(flags)) {
        float *values = t.values + at;
#pragma unroll
        for (int r = 0; r < KEEP; r++)
            if (first + r * APART < t.depth)
                values[r * APART] = value[r];
    }
}

/* Complex values of a line whose job asks for them, depth thread + r * APART in v[r]; factor: by
 * which each is still to be multiplied, or NULL. */
template <int APART, int KEEP>
static __device__ __forceinline__ void
oct_fused_store_complex(const struct oct_cuda_tables &t, const struct oct_cuda_job &job,
                        size_t line, bool came, const float2 *v, const float2 *factor, int thread)
{
    const unsigned first = (unsigned)thread - t.crop_first; /* of depth; wraps around above it */
    const float2 nothing = make_float2(nanf(""), nanf(""));
    float2 *to = job.complex + line * t.depth + thread - t.crop_first;
#pragma unroll
    for (int r = 0; r < KEEP; r++)
        if (first + r * APART < t.depth)
            to[r * APART] = !came ? nothing : factor ? oct_mul(v[r], factor[r]) : v[r];
}

/* Intensities of a line from its transform, where depth thread + r * P2/16 lies in v[r]. */
template <int P1, int KEEP>
static __device__ __forceinline__ void oct_fused_finish(const struct oct_cuda_tables &t,
                                                        const struct oct_cuda_job &job, size_t line,
                                                        bool came, const float2 *v, int thread)
{
    float value[KEEP];
    if (job.flags & OCT_JOB_COMPLEX)
        oct_fused_store_complex<2 * P1 / 16, KEEP>(t, job, line, came, v, NULL, thread);
#pragma unroll
    for (int r = 0; r < KEEP; r++)
        value[r] = v[r].x * v[r].x + v[r].y * v[r].y;
    oct_fused_store<2 * P1 / 16, KEEP>(t, job, line, came, value, thread);
}

/* grid (ceil(M / 2), n). KEEP: outputs of the last pass that are looked at: 4 while
 * crop_last <= P2/4, else 8. */
template <int P1, int N_TAPS, int KEEP>
__global__ void __launch_bounds__(oct_fused_shape<P1>::threads, oct_fused_shape<P1>::blocks_per_sm)
    oct_fused_kernel(struct oct_cuda_tables t, struct oct_cuda_batch batch)
{
    OCT_SHARED(float2, shared);
    oct_await_before();
    constexpr int T = oct_fused_shape<P1>::threads, P2 = 2 * P1,
                  R = oct_fused_shape<P1>::forward::first;
    float4 *u = reinterpret_cast<float4 *>(shared);
    const int thread = (int)threadIdx.x;
    const unsigned bscan = blockIdx.y, line = 2 * blockIdx.x;
    const struct oct_cuda_job &job = batch.job[bscan];
    const uint8_t *valid = t.valid + (size_t)bscan * t.n_lines;
    const bool all = !(job.flags & OCT_JOB_MISSING), is_pair = line + 1 < t.n_lines;
    const bool has_a = all || valid[line], has_b = is_pair && (all || valid[line + 1]);

    { /* u [P1]: even a b, odd a b */
        float2 x[P1 / T], odd[1][P1 / T];
        oct_fused_load<P1>(t, bscan, line, has_a, has_b, thread, x);
#pragma unroll
        for (int m = 0; m < P1 / T; m++)
            odd[0][m] = x[m];
        oct_fused_shift<P1>(odd, t.shift, t.twiddle, shared, thread);
        __syncthreads();
#pragma unroll
        for (int m = 0; m < P1 / T; m++)
            u[oct_place<P1, T, R>(thread, m)] =
                make_float4(x[m].x, x[m].y, odd[0][m].x, odd[0][m].y);
        __syncthreads();
    }

    float2 v[2][P2 / T];
    oct_fused_resample<P1, N_TAPS>(t.resample, reinterpret_cast<const float2 *>(u), v, thread);
    oct_transform<P2, T, false, 2, false>(typename oct_fused_shape<P1>::to_depth{}, v,
                                          t.twiddle + oct_fused_twiddles<P1>::to_depth, shared,
                                          thread);

    const size_t at = (size_t)bscan * t.n_lines + line;
    oct_fused_finish<P1, KEEP>(t, job, at, has_a, v[0], thread);
    if (is_pair)
        oct_fused_finish<P1, KEEP>(t, job, at + 1, has_b, v[1], thread);
}

#endif
