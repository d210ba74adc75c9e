/* Loops over the depths of an A-line that the rooms files share, built once for each instruction
 * set (kernels_simd.c). Complex values lie in planes: n real parts, n imaginary parts. Sums of a
 * line are kept in as many floats as a register has lanes, and added up in order: the same numbers
 * for any number of threads on one machine. */
#ifndef OCT_ANALYSIS_FLOW_KERNELS_H
#define OCT_ANALYSIS_FLOW_KERNELS_H

#include "pipeline/base/simd.h"

#include <stdint.h>

#define OCT_FLOW_SHIFTS 4u          /* of one call of cross_shifts */
#define OCT_FLOW_BLOCK 16u          /* depths of a block of which the power is summed */
#define OCT_FLOW_LEAST_SHARE 0.05f  /* of the intensity, that is left when the noise is taken off */
#define OCT_FLOW_LEAST_SIGNAL 0.05f /* over the noise */
#define OCT_FLOW_LEAST_Z 3.0f       /* of flow that is projected onto what lies below */

/* A complex line, or a part of one. */
struct oct_flow_line {
    const float *re, *im;
};

struct oct_flow_kernels {
    /* [n][2] to planes; returns the sum of squares. blocks: [n / OCT_FLOW_BLOCK], of each block. */
    float (*split)(const float *values, uint32_t n, float *re, float *im, float *blocks);

    /* sum over d of a[d] conj b[d] */
    void (*cross)(struct oct_flow_line a, struct oct_flow_line b, uint32_t n, float sum[2]);

    /* The same of b[d - i] for i = 0 .. OCT_FLOW_SHIFTS - 1. */
    void (*cross_shifts)(struct oct_flow_line a, struct oct_flow_line b, uint32_t n,
                         float sum[OCT_FLOW_SHIFTS][2]);

    /* to = from turn; power = |from|^2 */
    void (*turn)(struct oct_flow_line from, const float turn[2], uint32_t n, float *re, float *im,
                 float *power);

    /* (re, im) = (re, im) turn */
    void (*turn_own)(float *re, float *im, const float turn[2], uint32_t n);

    /* same += Re(a conj b) */
    void (*alike)(struct oct_flow_line a, struct oct_flow_line b, uint32_t n, float *same);

    /* both += (power_a + power_b) / 2 */
    void (*powers)(const float *power_a, const float *power_b, uint32_t n, float *both);

    /* re, im = a conj b */
    void (*product)(struct oct_flow_line a, struct oct_flow_line b, uint32_t n, float *re,
                    float *im);

    /* re, im += a conj b */
    void (*add_product)(struct oct_flow_line a, struct oct_flow_line b, uint32_t n, float *re,
                        float *im);

    /* power += (|a|^2 + |b|^2) / 2 */
    void (*add_power)(struct oct_flow_line a, struct oct_flow_line b, uint32_t n, float *power);

    /* same += |(re, im)| */
    void (*modulus)(const float *re, const float *im, uint32_t n, float *same);

    /* same += share sqrt(power_a power_b) / ((power_a + power_b) / 2), both += share; without power
     * they count as equal */
    void (*amplitudes)(const float *power_a, const float *power_b, float share, uint32_t n,
                       float *same, float *both);

    /* sum += power, count += 1 */
    void (*add)(const float *power, uint32_t n, float *sum, float *count);

    /* mean = sum / count; NaN where the count is 0 */
    void (*mean)(const float *sum, const float *count, uint32_t n, float *mean);

    /* to[d] = taps[0] from[d] + sum over t of taps[t] (from[d - t] + from[d + t]); from has n_taps
     * values more at both ends, and to room for a register more. */
    void (*smooth)(const float *from, const float *taps, unsigned n_taps, uint32_t n, float *to);

    /* to = sum over i of taps[i] rows[i] */
    void (*combine)(const float *const *rows, const float *taps, unsigned n_rows, uint32_t n,
                    float *to);

    /* d = 1 - same / max(both - noise_pairs weight, least both)
     * isnr = noise / max(intensity / count - noise, 0.05 noise)
     * weight, count: of pairs and of repeats in the window; NaN where there is no pair */
    void (*judge)(const float *same, const float *both, const float *weight, const float *intensity,
                  const float *count, float noise, float noise_pairs, uint32_t n, float *d,
                  float *isnr);

    /* z = (d - bulk) / sqrt(share isnr^2 + floor^2) */
    void (*score)(const float *d, const float *isnr, float bulk, float share, float floor,
                  uint32_t n, float *z);

    /* z less share / sd times the largest d with z > 3 and isnr < 1 that lies `reach` px above or
     * more, where sd = (d - bulk) / z. strongest: room for n values and a register; d, z, isnr are
     * read for a register behind their end. */
    void (*project)(const float *d, float *z, const float *isnr, uint32_t n, uint32_t reach,
                    float bulk, float share, float *strongest);

    /* shown = d where z >= least, else 0; NaN where d is. bytes: the same of 0..1, NaN 0. One of
     * both may be NULL. */
    void (*show)(const float *d, const float *z, float least, uint32_t n, float *shown,
                 uint8_t *bytes);

    /* rad = arg, to 2e-5 */
    void (*angle)(const float *re, const float *im, uint32_t n, float *rad);

    /* The sum of z where |arg smooth| < 0.2 rad. */
    void (*sum_near)(struct oct_flow_line smooth, struct oct_flow_line z, uint32_t n, float sum[2]);

    /* v = per_rad arg smooth where |smooth| >= least intensity and
     * intensity / weight > 2 noise, else NaN */
    void (*speed)(struct oct_flow_line smooth, const float *intensity, float weight, float noise,
                  float least, float per_rad, uint32_t n, float *v);
};

OCT_SIMD_TABLES(struct oct_flow_kernels, oct_flow_kernels_table);

/* Of the best instruction set that this machine has. */
const struct oct_flow_kernels *oct_flow_kernels_best(void);

#endif
