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

/* The Makefile compiles NAME_simd.c once for each set, with OCT_SIMD as its name: such a source
 * defines OCT_SIMD_TABLE(table), a header declares OCT_SIMD_TABLES(struct type, table), and
 * {OCT_SIMD_ALL(table)} is an array of OCT_N_SIMD + 1 pointers. */
#if !defined(OCT_SIMD)
#define OCT_SIMD plain
#endif
#define OCT_SIMD_PASTE(table, set) table##_##set
#define OCT_SIMD_NAMED(table, set) OCT_SIMD_PASTE(table, set)
#define OCT_SIMD_TABLE(table) OCT_SIMD_NAMED(table, OCT_SIMD)
#if defined(__x86_64__)
#define OCT_SIMD_TABLES(type, table) extern const type table##_plain, table##_avx2, table##_avx512
#define OCT_SIMD_ALL(table) &table##_plain, &table##_avx2, &table##_avx512
#else
#define OCT_SIMD_TABLES(type, table) extern const type table##_plain
#define OCT_SIMD_ALL(table) &table##_plain
#endif

#endif
