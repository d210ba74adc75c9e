/* The per-sample stages of the CPU engine, in several builds of one source: plain C, AVX2 + FMA and
 * AVX-512. The build is chosen at run time, so that one package runs anywhere.
 *
 * Pointers to tables and scratch are 64-byte aligned; lines of spectra and pixels need not be.
 * Lengths may be any; nothing is written beyond them except where said. */
#ifndef OCT_KERNELS_STAGES_H
#define OCT_KERNELS_STAGES_H

#include "pipeline/plan.h"

#include <stddef.h>
#include <stdint.h>

#define OCT_RESAMPLE_BLOCK 16u /* outputs that share one base in the resampling tables */
#define OCT_RESAMPLE_SPAN 32u  /* inputs from that base that a block can reach by permutes */

/* The plan's taps, laid out for blocks of 16 outputs: output q of block b reads
 * u[base[b] + offset[q] + t]. direct[b] is 0 when a block reaches beyond the span (k changes very
 * fast there) and must gather. Arrays of P2 (P2/16) entries, 64-byte aligned. */
struct oct_resample {
    uint32_t n;                /* P2, a multiple of 16 */
    unsigned n_taps;           /* 2 or 4 */
    uint32_t *base;            /* [P2/16] */
    uint8_t *direct;           /* [P2/16] */
    uint32_t *offset;          /* [P2] */
    const uint32_t *tap_first; /* the plan's own: [P2], [n_taps][P2], [P2] */
    const float *weight;
    const float *phase_re, *phase_im;
};

struct oct_stages {
    const char *name; /* "avx512", "avx2", "plain" */

    /* sum[i] += line[i]; at most 65536 lines fit 32 bits. */
    void (*accumulate)(uint32_t *sum, const uint16_t *line, size_t n);

    /* x[i] = (line[i] - whole[i]) - rest[i]: the DC line as an integer part and a remainder, so
     * that the difference keeps all its digits. whole may be NULL (nothing to subtract). */
    void (*subtract)(float *x, const uint16_t *line, const float *whole, const float *rest,
                     size_t n);

    /* z[k] *= shift[k], z interleaved re im. */
    void (*shift)(float *z, const float *shift_re, const float *shift_im, size_t n);

    /* u[2i] = even[i], u[2i+1] = odd[i], i < n. */
    void (*interleave)(float *u, const float *even, const float *odd, size_t n);

    /* v[q] = phase[q] * sum of taps over u; v interleaved. u has 32 floats of slack at the end
     * (any value), read but never used. */
    void (*resample)(float *v, const float *u, const struct oct_resample *r);

    /* The same for a phase without imaginary part: v real. */
    void (*resample_real)(float *v, const float *u, const struct oct_resample *r);

    /* value[d] = |z[d]|^2, z interleaved. */
    void (*intensity)(float *value, const float *z, size_t n);

    /* value[d] = 10 * log10(max(|z[d]|^2, 1e-12)). Error below 1e-5 dB + 1 ulp. */
    void (*intensity_db)(float *value, const float *z, size_t n);

    void (*min_max)(const float *value, size_t n, float *min, float *max);

    /* pixel = clamp(round((value - lo) * scale), 0, 255); halves round up. */
    void (*to_u8)(uint8_t *pixel, const float *value, size_t n, float lo, float scale);
};

extern const struct oct_stages oct_stages_plain;
#if defined(__x86_64__)
extern const struct oct_stages oct_stages_avx2;
extern const struct oct_stages oct_stages_avx512;
#endif

/* The build for "auto", "avx512", "avx2" or "plain"; NULL when this CPU lacks it or the name is
 * unknown. */
const struct oct_stages *oct_stages_select(const char *simd);

#endif
