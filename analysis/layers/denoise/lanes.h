/* What NAME_simd.c here does with 16 lanes, beside pipeline/base/vector.h. */
#ifndef OCT_ANALYSIS_LAYERS_DENOISE_LANES_H
#define OCT_ANALYSIS_LAYERS_DENOISE_LANES_H

#include "pipeline/base/vector.h"

#define UNROLL _Pragma("GCC unroll 16")
#define PARTS (16 / WIDTH) /* registers of 16 lanes */

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

#endif
