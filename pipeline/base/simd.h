/* The instruction sets that loops are built for, and which of them this CPU has: one choice for all
 * tables of such loops. Any thread. */
#ifndef OCT_PIPELINE_BASE_SIMD_H
#define OCT_PIPELINE_BASE_SIMD_H

enum oct_simd {
    OCT_SIMD_PLAIN,  /* C alone */
    OCT_SIMD_AVX2,   /* AVX2 and FMA */
    OCT_SIMD_AVX512, /* F, BW, DQ and VL, with AVX2 and FMA */
    OCT_N_SIMD
};

/* name: "plain", "avx2", "avx512", or "auto" for the best. OCT_N_SIMD: this CPU lacks it, or it is
 * none of these; tables of one entry more end with NULL for that. */
enum oct_simd oct_simd_choose(const char *name);

#endif
