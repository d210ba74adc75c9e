/* What the sweeps of mgvf_body.h do with registers of floats beside pipeline/base/vector.h. */
#ifndef OCT_ANALYSIS_CELLS_MGVF_VECTOR_H
#define OCT_ANALYSIS_CELLS_MGVF_VECTOR_H

#include "pipeline/base/vector.h"

INLINE vec magnitude(vec v)
{
#if defined(__AVX512F__)
    return _mm512_abs_ps(v);
#elif defined(__AVX2__)
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), v);
#else
    const lanes mask = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
    return (vec)((lanes)v & mask);
#endif
}

#endif
