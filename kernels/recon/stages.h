/* The per-sample stages of the CPU engine, in several builds of one source: plain C, AVX2 + FMA and
 * AVX-512. The build is chosen at run time, so that one package runs anywhere.
 *
 * Pointers to tables and scratch are 64-byte aligned; lines of spectra and pixels need not be.
 * Lengths may be any; nothing is written beyond them except where said. */
#ifndef OCT_KERNELS_RECON_STAGES_H
#define OCT_KERNELS_RECON_STAGES_H

#include "kernels/recon/lanes.h"
#include "kernels/recon/spread_blocks.h"
#include "pipeline/plan/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_RESAMPLE_BLOCK 8u /* outputs that share one base in the resampling tables */
#define OCT_RESAMPLE_SPAN 16u /* complex inputs from that base that a block reaches by permutes */

#define OCT_SIFT_SLACK 16u /* floats behind what sift keeps, of any value */

/* Bounds: from <= value < to. {0}: none are known, and nothing lies between them. */
struct oct_percentile_bounds {
    float from, to;
};

/* What one worker found between the bounds of one percentile. */
struct oct_sieve {
    struct oct_percentile_bounds bounds;
    float *kept; /* [room + OCT_SIFT_SLACK] */
    size_t room, n, below;
    bool full; /* not all were kept */
};

/* The plan's taps for a pair of lines. The upsampled line u lies in two arrays, its even samples
 * (the padded line itself) and its odd ones; consecutive taps alternate between them. Output q is
 *
 *     sum over t < n_taps/2 of  even_weight[t][q] * even[even_first[q] + t]
 *                             + odd_weight[t][q] * odd[odd_first[q] + t]
 *
 * and block b of 8 outputs reads even[even_base[b] + ...] and odd[odd_base[b] + ...]; the offsets
 * are within the block. direct[b] is 0 when a block reaches beyond the span (k changes very fast
 * there) and must gather. Weights and phase are stored as they are multiplied: every weight twice,
 * the phase re, im. All arrays are 64-byte aligned. */
struct oct_resample {
    uint32_t n;                        /* P2, a multiple of 8 */
    unsigned n_half_taps;              /* 1 or 2 */
    int32_t *even_first, *odd_first;   /* [P2] */
    int32_t *even_base, *odd_base;     /* [P2/8] */
    uint8_t *even_offset, *odd_offset; /* [P2] */
    uint8_t *direct;                   /* [P2/8] */
    float *even_weight, *odd_weight;   /* [n_half_taps][2 * P2] */
    float *phase;                      /* [2 * P2] */
};

struct oct_stages {
    const char *name;              /* "avx512", "avx2", "plain" */
    const struct oct_lanes *lanes; /* transforms of our own; NULL: FFTW's */

    /* sum[i] / n_lines in double precision as an integer part and a remainder, each a float; zeros
     * when n_lines is 0. Divided, not multiplied by 1/n: a constant column leaves exactly nothing.
     * The same bits from every build. */
    void (*mean)(float *whole, float *rest, const uint32_t *sum, uint32_t n_lines, size_t n);

    /* z[i] = (a[i] - whole[i]) - rest[i]: the DC line comes as an integer part and a remainder, so
     * that the difference keeps all its digits. whole may be NULL: nothing to subtract. */
    void (*subtract)(float *z, const uint16_t *a, const float *whole, const float *rest, size_t n);

    /* Two lines as one complex signal: z[i] = a'[i] + i b'[i], a' and b' as above. whole may be
     * NULL (nothing to subtract), b too (zero). z is interleaved. */
    void (*subtract_pair)(float *z, const uint16_t *a, const uint16_t *b, const float *whole,
                          const float *rest, size_t n);

    /* Sum of re^2 and of im^2 over n complex values, n a multiple of 8. */
    void (*energy)(const float *z, size_t n, float energy[2]);

    /* z[k] *= h[k], both interleaved. */
    void (*multiply)(float *z, const float *h, size_t n);

    /* va[q] + i vb[q] is output q of both lines; each times the phase, interleaved, [P2]. even and
     * odd are interleaved [P1] with OCT_RESAMPLE_SPAN complex values of slack behind (any value,
     * read but never used). */
    void (*resample_pair)(float *va, float *vb, const float *even, const float *odd,
                          const struct oct_resample *r);

    /* nufft: fa, fb: the grid points of lines a and b, interleaved, [16 * n_blocks]. Around a and
     * b lie n_ahead and OCT_SPREAD_SLACK more floats (spread_blocks.h). */
    void (*spread_pair)(float *fa, float *fb, const float *a, const float *b,
                        const struct oct_spread_blocks *blocks);

    /* z[d] = re[d] + i im[d], times factor[d] where that is not NULL; z and factor interleaved. */
    void (*compose)(float *z, const float *re, const float *im, const float *factor, size_t n);

    /* value[d] = gain[d] * |z[d]|^2, z interleaved. */
    void (*intensity_gained)(float *value, const float *z, const float *gain, size_t n);

    /* value[d] = |z[d]|^2, z interleaved. */
    void (*intensity)(float *value, const float *z, size_t n);

    /* value[d] = 10 * log10(max(|z[d]|^2, 1e-12)). Error below 1e-5 dB + 1 ulp. */
    void (*intensity_db)(float *value, const float *z, size_t n);

    /* value[d] = 10 * log10(max(intensity[d], 1e-12)), as exact. */
    void (*decibels)(float *value, const float *intensity, size_t n);

    void (*min_max)(const float *value, size_t n, float *min, float *max);

    /* The values from `from` to below `to`, in their order; returns how many. *below grows by how
     * many are less than `from`. No value is NaN. `kept` has room for n + OCT_SIFT_SLACK. */
    size_t (*sift)(float *kept, const float *value, size_t n, float from, float to, size_t *below);

    /* The same of both percentiles' sieves, with finite bounds and room for n values more each:
     * what is kept lies behind what they have kept. Fast where few values reach those of `high`. */
    void (*sift_both)(struct oct_sieve *low, struct oct_sieve *high, const float *value, size_t n);

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
