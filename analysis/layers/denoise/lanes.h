/* What NAME_simd.c here does with 16 lanes, beside pipeline/base/vector.h. */
#ifndef OCT_ANALYSIS_LAYERS_DENOISE_LANES_H
#define OCT_ANALYSIS_LAYERS_DENOISE_LANES_H

#include "pipeline/base/vector.h"

#define UNROLL _Pragma("GCC unroll 16")
#define PARTS (16 / WIDTH) /* registers of 16 lanes */

#endif
