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
 * Twiddles come from tables computed in double precision: for each pass but the first
 * [R - 1][NS] factors W^(r*k), r from 1. The inverse uses their conjugates. */
#ifndef OCT_KERNELS_CUDA_FFT_CUH
#define OCT_KERNELS_CUDA_FFT_CUH

#include "kernels/cuda_launch.cuh"

static __device__ __forceinline__ float2 oct_add(float2 a, float2 b)
{
    return make_float2(a.x + b.x, a.y + b.y);
}

static __device__ __forceinline__ float2 oct_sub(float2 a, float2 b)
{
    return make_float2(a.x - b.x, a.y - b.y);
}

static __device__ __forceinline__ float2 oct_mul(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

/* a * exp(-i pi / 2) forward, exp(+i pi / 2) inverse. */
template <bool INVERSE> static __device__ __forceinline__ float2 oct_quarter(float2 a)
{
    return INVERSE ? make_float2(-a.y, a.x) : make_float2(a.y, -a.x);
}

/* a * exp(-+ i phi) for c = cos phi, s = sin phi. */
template <bool INVERSE>
static __device__ __forceinline__ float2 oct_turn(float2 a, float c, float s)
{
    return oct_mul(a, make_float2(c, INVERSE ? s : -s));
}

template <bool INVERSE> static __device__ __forceinline__ void oct_dft4(float2 *v, int step)
{
    float2 a = oct_add(v[0], v[2 * step]), b = oct_sub(v[0], v[2 * step]);
    float2 c = oct_add(v[step], v[3 * step]);
    float2 d = oct_quarter<INVERSE>(oct_sub(v[step], v[3 * step]));
    v[0] = oct_add(a, c);
    v[step] = oct_add(b, d);
    v[2 * step] = oct_sub(a, c);
    v[3 * step] = oct_sub(b, d);
}

/* v[0 .. R-1] to its transform, in natural order. */
template <int R, bool INVERSE> struct oct_dft;

template <bool INVERSE> struct oct_dft<4, INVERSE> {
    static __device__ __forceinline__ void run(float2 *v)
    {
        oct_dft4<INVERSE>(v, 1);
    }
};

template <bool INVERSE> struct oct_dft<8, INVERSE> {
    static __device__ __forceinline__ void run(float2 *v)
    {
        const float h = 0.70710678118654752f;
        float2 even[4] = {v[0], v[2], v[4], v[6]}, odd[4] = {v[1], v[3], v[5], v[7]};
        oct_dft4<INVERSE>(even, 1);
        oct_dft4<INVERSE>(odd, 1);
        odd[1] = oct_turn<INVERSE>(odd[1], h, h);
        odd[2] = oct_quarter<INVERSE>(odd[2]);
        odd[3] = oct_turn<INVERSE>(odd[3], -h, h);
#pragma unroll
        for (int r = 0; r < 4; r++) {
            v[r] = oct_add(even[r], odd[r]);
            v[r + 4] = oct_sub(even[r], odd[r]);
        }
    }
};

/* 4 x 4: rows n2, columns k1. */
template <bool INVERSE> struct oct_dft<16, INVERSE> {
    static __device__ __forceinline__ void run(float2 *v)
    {
        const float h = 0.70710678118654752f, c = 0.92387953251128676f, s = 0.38268343236508977f;
#pragma unroll
        for (int n2 = 0; n2 < 4; n2++)
            oct_dft4<INVERSE>(v + n2, 4); /* now v[4*k1 + n2] */
        v[5] = oct_turn<INVERSE>(v[5], c, s);
        v[6] = oct_turn<INVERSE>(v[6], h, h);
        v[7] = oct_turn<INVERSE>(v[7], s, c);
        v[9] = oct_turn<INVERSE>(v[9], h, h);
        v[10] = oct_quarter<INVERSE>(v[10]);
        v[11] = oct_turn<INVERSE>(v[11], -h, h);
        v[13] = oct_turn<INVERSE>(v[13], s, c);
        v[14] = oct_turn<INVERSE>(v[14], -h, h);
        v[15] = oct_turn<INVERSE>(v[15], -c, -s);
#pragma unroll
        for (int k1 = 0; k1 < 4; k1++)
            oct_dft4<INVERSE>(v + 4 * k1, 1); /* now v[4*k1 + k2] is output k1 + 4*k2 */
#pragma unroll
        for (int a = 0; a < 4; a++)
#pragma unroll
            for (int b = a + 1; b < 4; b++) {
                float2 swap = v[4 * a + b];
                v[4 * a + b] = v[4 * b + a];
                v[4 * b + a] = swap;
            }
    }
};

/* Twiddles and butterflies of one pass. */
template <int N, int T, int R, int NS, bool INVERSE>
static __device__ __forceinline__ void oct_pass(float2 *v, const float2 *twiddle, int thread)
{
#pragma unroll
    for (int i = 0; i < N / (T * R); i++) {
        int k = (thread + i * T) & (NS - 1);
        if (NS > 1) {
#pragma unroll
            for (int r = 1; r < R; r++) {
                float2 w = __ldg(&twiddle[(r - 1) * NS + k]);
                v[i * R + r] = oct_mul(v[i * R + r], make_float2(w.x, INVERSE ? -w.y : w.y));
            }
        }
        oct_dft<R, INVERSE>::run(v + i * R);
    }
}

/* One element in 16 is left free, so that strides of 4, 8 and 16 meet all banks. */
static __device__ __forceinline__ int oct_spread(int at)
{
    return at + (at >> 4);
}

#define OCT_SPREAD_SIZE(n) ((n) + (n) / 16)

/* From the outputs of a pass (R, NS) to the inputs of one of radix R_NEXT. */
template <int N, int T, int R, int NS, int R_NEXT>
static __device__ __forceinline__ void oct_exchange(float2 *v, float2 *shared, int thread)
{
    __syncthreads(); /* whoever still reads what was there */
#pragma unroll
    for (int i = 0; i < N / (T * R); i++) {
        int b = thread + i * T, k = b & (NS - 1);
#pragma unroll
        for (int r = 0; r < R; r++)
            shared[oct_spread((b - k) * R + k + r * NS)] = v[i * R + r];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N / (T * R_NEXT); i++)
#pragma unroll
        for (int r = 0; r < R_NEXT; r++)
            v[i * R_NEXT + r] = shared[oct_spread(thread + i * T + r * (N / R_NEXT))];
}

#endif
