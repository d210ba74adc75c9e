/* What levelset_local_body.h does with registers of floats beside pipeline/base/vector.h. */
#ifndef OCT_ANALYSIS_SURFACE_LEVELSET_VECTOR_H
#define OCT_ANALYSIS_SURFACE_LEVELSET_VECTOR_H

#include "pipeline/base/vector.h"

#define UNROLL _Pragma("GCC unroll 16")
#define PARTS (16 / WIDTH) /* registers of a segment */

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
