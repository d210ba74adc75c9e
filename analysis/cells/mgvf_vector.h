/* Registers of floats for the sweeps of mgvf_body.h, of the instruction set that the file is
 * compiled for; without one of x86 gcc's own vectors of four, which any processor has in some
 * way. */
#ifndef OCT_ANALYSIS_CELLS_MGVF_VECTOR_H
#define OCT_ANALYSIS_CELLS_MGVF_VECTOR_H

#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
#define WIDTH 16
typedef __m512 vec;
#elif defined(__AVX2__)
#define WIDTH 8
typedef __m256 vec;
#else
#define WIDTH 4
typedef float vec __attribute__((vector_size(16)));
typedef int32_t bits __attribute__((vector_size(16)));
#endif

INLINE vec load(const float *from)
{
#if defined(__AVX512F__)
    return _mm512_loadu_ps(from);
#elif defined(__AVX2__)
    return _mm256_loadu_ps(from);
#else
    vec v;
    memcpy(&v, from, sizeof(v));
    return v;
#endif
}

INLINE void store(float *to, vec v)
{
#if defined(__AVX512F__)
    _mm512_storeu_ps(to, v);
#elif defined(__AVX2__)
    _mm256_storeu_ps(to, v);
#else
    memcpy(to, &v, sizeof(v));
#endif
}

INLINE vec all(float x)
{
#if defined(__AVX512F__)
    return _mm512_set1_ps(x);
#elif defined(__AVX2__)
    return _mm256_set1_ps(x);
#else
    return (vec){x, x, x, x};
#endif
}

INLINE vec larger(vec a, vec b)
{
#if defined(__AVX512F__)
    return _mm512_max_ps(a, b);
#elif defined(__AVX2__)
    return _mm256_max_ps(a, b);
#else
    const bits mask = (bits)(a > b);
    return (vec)(((bits)a & mask) | ((bits)b & ~mask));
#endif
}

INLINE vec smaller(vec a, vec b)
{
#if defined(__AVX512F__)
    return _mm512_min_ps(a, b);
#elif defined(__AVX2__)
    return _mm256_min_ps(a, b);
#else
    const bits mask = (bits)(a < b);
    return (vec)(((bits)a & mask) | ((bits)b & ~mask));
#endif
}

INLINE vec magnitude(vec v)
{
#if defined(__AVX512F__)
    return _mm512_abs_ps(v);
#elif defined(__AVX2__)
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), v);
#else
    const bits mask = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
    return (vec)((bits)v & mask);
#endif
}

#endif
