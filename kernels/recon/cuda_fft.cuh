/* Complex transforms within a block: Stockham passes of radix 4, 8 and 16 in registers, exchanged
 * through shared memory.
 *
 * N points, T threads, N/T points a thread. A pass of radix R after NS = (product of the radices
 * before) does, for its butterflies b = thread + i*T, i < N/(T*R), k = b mod NS:
 *
 *     v[r] = x[b + r*N/R] * W^(r*k),   W = exp(-+2 pi i / (NS*R))     r < R
 *     v    = dft_R(v)
 *     y[(b - k)*R + k + r*NS] = v[r]
 *
 * After the last pass that is y[b + r*N/R]: the input positions of a first pass with the same
 * radix, so that an inverse may follow in the same registers. Points of a thread lie in v[i*R + r].
 *
 * The twiddles W^(r*k) are not applied before the dft but inside, where they cost nothing: in its
 * step that joins transforms of s/2 points to ones of s (s = 2, 4 .. R), output m is
 * even[m] +- w * odd[m], w = exp(-2 pi i (k + m*NS) / (NS*s)), and a complex a +- w*b is six fused
 * multiply-adds (Linzer and Feig, 1993). w for m + s/4 is -i times that for m, so a table of R/2
 * factors a k serves: place 0 for s = 2, place s/4 + m for m < s/4. Tables are computed in double
 * precision: for each pass but the first [R/2][NS]. The inverse uses their conjugates. */
#ifndef OCT_KERNELS_CUDA_FFT_CUH
#define OCT_KERNELS_CUDA_FFT_CUH

#include "kernels/device/cuda_launch.cuh"

static __device__ __forceinline__ float2 oct_mul(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

/* a, b to a + w*b, a - w*b; the inverse takes the conjugate of w. */
template <bool INVERSE>
static __device__ __forceinline__ void oct_butterfly(float2 &a, float2 &b, float2 w)
{
    const float wy = INVERSE ? -w.y : w.y;
    float2 sum;
    sum.x = fmaf(-wy, b.y, fmaf(w.x, b.x, a.x));
    sum.y = fmaf(wy, b.x, fmaf(w.x, b.y, a.y));
    b.x = fmaf(2.0f, a.x, -sum.x);
    b.y = fmaf(2.0f, a.y, -sum.y);
    a = sum;
}

/* The same for w = 1 and for w = -i (inverse: i), which need no product. */
static __device__ __forceinline__ void oct_butterfly_1(float2 &a, float2 &b)
{
    const float2 from = a;
    a = make_float2(from.x + b.x, from.y + b.y);
    b = make_float2(from.x - b.x, from.y - b.y);
}

template <bool INVERSE> static __device__ __forceinline__ void oct_butterfly_i(float2 &a, float2 &b)
{
    b = INVERSE ? make_float2(-b.y, b.x) : make_float2(b.y, -b.x);
    oct_butterfly_1(a, b);
}

/* Step s of a transform whose k is 0: exp(-2 pi i m / s) are constants. */
template <int S, bool INVERSE>
static __device__ __forceinline__ void oct_join_plain(float2 &a, float2 &b, int m)
{
    const float h = 0.70710678118654752f, c = 0.92387953251128676f, s = 0.38268343236508977f;
    const int at = m * (16 / S); /* sixteenths of a turn */
    if (at == 0)
        oct_butterfly_1(a, b);
    else if (at == 4)
        oct_butterfly_i<INVERSE>(a, b);
    else
        oct_butterfly<INVERSE>(a, b,
                               at == 1   ? make_float2(c, -s)
                               : at == 2 ? make_float2(h, -h)
                               : at == 3 ? make_float2(s, -c)
                               : at == 5 ? make_float2(-s, -c)
                               : at == 6 ? make_float2(-h, -h)
                                         : make_float2(-c, -s));
}

/* The same for any k: w holds the R/2 factors of the pass. */
template <int S, bool INVERSE>
static __device__ __forceinline__ void oct_join_turned(float2 &a, float2 &b, int m, const float2 *w)
{
    if (S == 2) {
        oct_butterfly<INVERSE>(a, b, w[0]);
    } else if (m < S / 4) {
        oct_butterfly<INVERSE>(a, b, w[S / 4 + m]);
    } else {
        const float2 turn = w[m]; /* S/4 + (m - S/4) */
        oct_butterfly<INVERSE>(a, b, make_float2(turn.y, -turn.x));
    }
}

/* v[0 .. R-1] to its transform, in natural order. HALF: v[R/2 .. R-1] is zero, so that the first
 * step, of pairs R/2 apart, has nothing to add. */
template <int R, bool TURNED, bool INVERSE, bool HALF> struct oct_dft {
    static __device__ __forceinline__ void run(float2 *v, const float2 *w)
    {
        float2 even[R / 2], odd[R / 2];
#pragma unroll
        for (int m = 0; m < R / 2; m++) {
            even[m] = v[2 * m];
            odd[m] = v[2 * m + 1];
        }
        oct_dft<R / 2, TURNED, INVERSE, HALF>::run(even, w);
        oct_dft<R / 2, TURNED, INVERSE, HALF>::run(odd, w);
#pragma unroll
        for (int m = 0; m < R / 2; m++) {
            if (HALF && R == 2)
                odd[m] = even[m];
            else if (TURNED)
                oct_join_turned<R, INVERSE>(even[m], odd[m], m, w);
            else
                oct_join_plain<R, INVERSE>(even[m], odd[m], m);
            v[m] = even[m];
            v[m + R / 2] = odd[m];
        }
    }
};

template <bool TURNED, bool INVERSE, bool HALF> struct oct_dft<1, TURNED, INVERSE, HALF> {
    static __device__ __forceinline__ void run(float2 *, const float2 *)
    {
    }
};

/* Butterflies of one pass, for LINES signals in v[0], v[1] ..: they share the twiddles. */
template <int N, int T, int R, int NS, bool INVERSE, int LINES, bool HALF>
static __device__ __forceinline__ void oct_pass(float2 (*v)[N / T], const float2 *twiddle,
                                                int thread)
{
#pragma unroll
    for (int i = 0; i < N / (T * R); i++) {
        float2 w[R / 2];
        if (NS > 1) {
            const int k = (thread + i * T) & (NS - 1);
#pragma unroll
            for (int j = 0; j < R / 2; j++)
                w[j] = __ldg(&twiddle[j * NS + k]);
        }
#pragma unroll
        for (int l = 0; l < LINES; l++)
            oct_dft<R, (NS > 1), INVERSE, HALF>::run(v[l] + i * R, w);
    }
}

/* Where an exchange after a pass (R, NS) keeps point `at`: with gaps, so that the writes of
 * neighbouring threads, NS*R apart, meet all banks, which 16 elements of 8 bytes fill once. */
template <int R, int NS> struct oct_gaps {
    static constexpr int every = NS * R > 16 ? NS *R : 16, gap = NS < 16 ? NS : 0;
    static __device__ __forceinline__ constexpr int place(int at)
    {
        return at + at / every * gap;
    }
};

/* Elements that an exchange of n points needs at most. */
#define OCT_EXCHANGE_SIZE(n) ((n) + (n) / 8)

/* The two halves of an exchange: outputs of a pass (R, NS) to shared memory, and inputs of a pass
 * of radix R_NEXT from there. One address a thread for each; the rest are constants, because what
 * is added here either stays between two gaps (r*NS) or brings whole numbers of them. */
template <int N, int T, int R, int NS>
static __device__ __forceinline__ void oct_put(const float2 *v, float2 *shared, int thread)
{
    using gaps = oct_gaps<R, NS>;
    static_assert(T % NS == 0 && T * R % gaps::every == 0, "one address a thread");
    const int k = thread & (NS - 1);
    float2 *at = shared + gaps::place((thread - k) * R + k);
#pragma unroll
    for (int i = 0; i < N / (T * R); i++)
#pragma unroll
        for (int r = 0; r < R; r++)
            at[gaps::place(i * T * R) + r * NS] = v[i * R + r];
}

template <int N, int T, int R, int NS, int R_NEXT>
static __device__ __forceinline__ void oct_get(float2 *v, const float2 *shared, int thread)
{
    using gaps = oct_gaps<R, NS>;
    static_assert(gaps::gap == 0 || (T % gaps::every == 0 && N / R_NEXT % gaps::every == 0),
                  "one address a thread");
    const float2 *at = shared + gaps::place(thread);
#pragma unroll
    for (int i = 0; i < N / (T * R_NEXT); i++)
#pragma unroll
        for (int r = 0; r < R_NEXT; r++)
            v[i * R_NEXT + r] = at[gaps::place(i * T + r * (N / R_NEXT))];
}

/* FREE: nobody reads these places of shared any more. */
template <int N, int T, int R, int NS, int R_NEXT, bool FREE>
static __device__ __forceinline__ void oct_exchange(float2 *v, float2 *shared, int thread)
{
    if (!FREE)
        __syncthreads();
    oct_put<N, T, R, NS>(v, shared, thread);
    __syncthreads();
    oct_get<N, T, R, NS, R_NEXT>(v, shared, thread);
}

/* Radices of a transform's passes, in order. */
template <int R, int... REST> struct oct_radices {
    static constexpr int first = R;
};

template <int... R> static constexpr int oct_last_radix(oct_radices<R...>)
{
    int last = 0;
    for (int radix : {R...})
        last = radix;
    return last;
}

/* Factors that its passes need, all but the first. */
template <int... R> static constexpr int oct_count_twiddles(oct_radices<R...>)
{
    int n = 0, ns = 1;
    for (int radix : {R...}) {
        n += ns > 1 ? radix / 2 * ns : 0;
        ns *= radix;
    }
    return n;
}

/* A whole transform of LINES signals from pass (R, NS) on. HALF: their points N/2 .. N-1 are zero,
 * which saves the first pass a step. The signals go through the same places one after the other:
 * side by side in twice the memory took fewer waits and more time, as the
 * tables then fit the rest of the cache less well (measured on an H200). */
template <int N, int T, bool INVERSE, int LINES, bool FREE, bool HALF = false, int NS = 1, int R,
          int... REST>
static __device__ __forceinline__ void oct_transform(oct_radices<R, REST...>, float2 (*v)[N / T],
                                                     const float2 *twiddle, float2 *shared,
                                                     int thread)
{
    static_assert(!FREE || LINES == 1, "the second signal meets the first one's places");
    oct_pass<N, T, R, NS, INVERSE, LINES, HALF>(v, twiddle, thread);
    if constexpr (sizeof...(REST) > 0) {
        using rest = oct_radices<REST...>;
#pragma unroll
        for (int l = 0; l < LINES; l++)
            oct_exchange<N, T, R, NS, rest::first, FREE>(v[l], shared, thread);
        oct_transform<N, T, INVERSE, LINES, false, false, NS * R>(
            rest{}, v, twiddle + (NS > 1 ? R / 2 * NS : 0), shared, thread);
    }
}

#endif
