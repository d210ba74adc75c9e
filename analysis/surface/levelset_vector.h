/* Registers of floats for levelset_local_body.h, of the instruction set that the file is compiled
 * for; without one of x86 gcc's own vectors of four, which any processor has in some way. */
#ifndef OCT_ANALYSIS_SURFACE_LEVELSET_VECTOR_H
#define OCT_ANALYSIS_SURFACE_LEVELSET_VECTOR_H

#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
#define WIDTH 16
typedef __m512 vec;
typedef __mmask16 lanes;
#elif defined(__AVX2__)
#define WIDTH 8
typedef __m256 vec;
typedef __m256 lanes;
#else
#define WIDTH 4
typedef float vec __attribute__((vector_size(16)));
typedef int32_t lanes __attribute__((vector_size(16)));
#endif
#define PARTS (16 / WIDTH) /* registers of a segment */

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

INLINE lanes below(vec a, vec b)
{
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
#elif defined(__AVX2__)
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
#else
    return a < b;
#endif
}

INLINE vec choose(lanes mask, vec yes, vec no)
{
#if defined(__AVX512F__)
    return _mm512_mask_blend_ps(mask, no, yes);
#elif defined(__AVX2__)
    return _mm256_blendv_ps(no, yes, mask);
#else
    return (vec)((mask & (lanes)yes) | (~mask & (lanes)no));
#endif
}

/* Bit i: lane i. */
INLINE unsigned bits_of(lanes mask)
{
#if defined(__AVX512F__)
    return mask;
#elif defined(__AVX2__)
    return (unsigned)_mm256_movemask_ps(mask);
#elif defined(__SSE2__)
    return (unsigned)__builtin_ia32_movmskps((vec)mask);
#else
    return (unsigned)((mask[0] & 1) | (mask[1] & 2) | (mask[2] & 4) | (mask[3] & 8));
#endif
}

INLINE vec smaller(vec a, vec b)
{
#if defined(__AVX512F__)
    return _mm512_min_ps(a, b);
#elif defined(__AVX2__)
    return _mm256_min_ps(a, b);
#else
    return choose(a < b, a, b);
#endif
}

INLINE vec larger(vec a, vec b)
{
#if defined(__AVX512F__)
    return _mm512_max_ps(a, b);
#elif defined(__AVX2__)
    return _mm256_max_ps(a, b);
#else
    return choose(a > b, a, b);
#endif
}

/* 2^x of x <= 0 to 2e-7 of it; x below -126: as of -126. */
INLINE vec power_of_two(vec x)
{
    x = larger(x, all(-126));
#if defined(__AVX512F__)
    const vec whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
    const vec shifted = x + all(12582912.0f); /* 1.5 2^23: its last bits hold the whole number */
    const vec whole = shifted - all(12582912.0f);
#endif
    const vec r = x - whole;
    vec p = all(1.5403530e-4f);
    p = p * r + all(1.3333558e-3f);
    p = p * r + all(9.6181291e-3f);
    p = p * r + all(5.5504109e-2f);
    p = p * r + all(2.4022651e-1f);
    p = p * r + all(6.9314718e-1f);
    p = p * r + all(1);
#if defined(__AVX512F__)
    return _mm512_scalef_ps(p, whole);
#elif defined(__AVX2__)
    const __m256i up = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), up));
#else
    return (vec)((lanes)p + (lanes)((uint32_t __attribute__((vector_size(16))))shifted << 23));
#endif
}

#endif
