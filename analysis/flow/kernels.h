/* Loops over the depths of an A-line that the rooms files share, built once for each instruction
 * set (kernels_simd.c). Complex values lie in planes: n real parts, n imaginary parts. Sums of a
 * line are kept in as many floats as a register has lanes, and added up in order: the same numbers
 * for any number of threads on one machine. */
#ifndef OCT_ANALYSIS_FLOW_KERNELS_H
#define OCT_ANALYSIS_FLOW_KERNELS_H

#include "pipeline/base/simd.h"

#include <stddef.h>
#include <stdint.h>

#define OCT_FLOW_MARGIN 64u                        /* zeros on both sides of an A-line */
#define OCT_FLOW_MOST_RADIUS (OCT_FLOW_MARGIN - 1) /* of a window; sigma a third of it */
#define OCT_FLOW_SHIFTS 4u                         /* of one call of cross_shifts */
#define OCT_FLOW_BLOCK 16u          /* depths of a block of which the power is summed */
#define OCT_FLOW_LEAST_SHARE 0.05f  /* of the intensity, that is left when the noise is taken off */
#define OCT_FLOW_LEAST_SIGNAL 0.05f /* over the noise */
#define OCT_FLOW_LEAST_Z 3.0f       /* of flow that is projected onto what lies below */

/* A complex line, or a part of one. */
struct oct_flow_line {
    const float *re, *im;
};

enum { OCT_FLOW_SAME, OCT_FLOW_BOTH, OCT_FLOW_INTENSITY, OCT_FLOW_N_SUMS };

/* Sums of the A-lines of a window, and its taps. */
struct oct_flow_sums {
    const float *rows[OCT_FLOW_N_SUMS][2 * OCT_FLOW_MOST_RADIUS + 1];
    float taps[2 * OCT_FLOW_MOST_RADIUS + 1];
    unsigned n;
};

/* What a pair of A-lines has at a depth. */
enum { OCT_FLOW_RE, OCT_FLOW_IM, OCT_FLOW_POWER, OCT_FLOW_N_PAIR };

/* Rows of a window, `step` floats apart, about the middle ones, and the taps of half. */
struct oct_flow_around {
    const float *rows[OCT_FLOW_N_PAIR];
    ptrdiff_t step;
    const float *taps;
    unsigned n_taps;
};

struct oct_flow_kernels {
    /* [n][2] to planes; returns the sum of squares, which it adds to power [n], too. */
    float (*split)(const float *values, uint32_t n, float *re, float *im, float *power);

    /* The sums of blocks of OCT_FLOW_BLOCK: [n / OCT_FLOW_BLOCK] */
    void (*sum_blocks)(const float *power, uint32_t n, float *blocks);

    /* sum over d of a[d] conj b[d] */
    void (*cross)(struct oct_flow_line a, struct oct_flow_line b, uint32_t n, float sum[2]);

    /* The same of b[d - i] for i = 0 .. OCT_FLOW_SHIFTS - 1. */
    void (*cross_shifts)(struct oct_flow_line a, struct oct_flow_line b, uint32_t n,
                         float sum[OCT_FLOW_SHIFTS][2]);

    /* Of lines one after another, of n depths each:
     * same += sum over i of Re(lines[i] conj lines[i + 1] conj turns[i + 1])
     * both += sum over i of (|lines[i]|^2 + |lines[i + 1]|^2) / 2
     * intensity += sum over i of |lines[i]|^2 */
    void (*join)(const struct oct_flow_line *lines, const float (*turns)[2], unsigned n_lines,
                 uint32_t n, float *same, float *both, float *intensity);

    /* to = from turn; power = |from|^2 */
    void (*turn)(struct oct_flow_line from, const float turn[2], uint32_t n, float *re, float *im,
                 float *power);

    /* (re, im) = from turn, of whole registers; in place too */
    void (*turn_to)(struct oct_flow_line from, const float turn[2], uint32_t n, float *re,
                    float *im);

    /* both += (power_a + power_b) / 2 */
    void (*powers)(const float *power_a, const float *power_b, uint32_t n, float *both);

    /* re, im = a conj b */
    void (*product)(struct oct_flow_line a, struct oct_flow_line b, uint32_t n, float *re,
                    float *im);

    /* re, im += a conj b, power += (|a|^2 + |b|^2) / 2, and sum = sum over d of a[d] conj b[d] */
    void (*add_pair)(struct oct_flow_line a, struct oct_flow_line b, uint32_t n, float *re,
                     float *im, float *power, float sum[2]);

    /* power += |a|^2 */
    void (*add_power)(struct oct_flow_line a, uint32_t n, float *power);

    /* same += |(re, im)| */
    void (*modulus)(const float *re, const float *im, uint32_t n, float *same);

    /* same += share sqrt(power_a power_b) / ((power_a + power_b) / 2), both += share; without power
     * they count as equal */
    void (*amplitudes)(const float *power_a, const float *power_b, float share, uint32_t n,
                       float *same, float *both);

    /* sum += power */
    void (*add)(const float *power, uint32_t n, float *sum);

    /* mean = sum / count; NaN where the count is 0 */
    void (*mean)(const float *sum, const float *count, uint32_t n, float *mean);

    /* to[d] = taps[0] from[d] + sum over t of taps[t] (from[d - t] + from[d + t]); from has
     * OCT_FLOW_MARGIN values more at both ends, and both have room for four registers more. */
    void (*smooth)(const float *from, const float *taps, unsigned n_taps, uint32_t n, float *to);

    /* to = sum over i of taps[i] rows[i] */
    void (*combine)(const float *const *rows, const float *taps, unsigned n_rows, uint32_t n,
                    float *to);

    /* d = 1 - same / max(both - noise_pairs weight, least both)
     * isnr = noise / max(intensity share - noise, 0.05 noise)
     * Each sum is the sum over i of taps[i] rows[sum][i]. weight: pairs in the window, share: 1
     * over its repeats; NaN where there is no pair */
    void (*judge)(const struct oct_flow_sums *sums, const float *weight, const float *share,
                  float noise, float noise_pairs, uint32_t n, float *d, float *isnr);

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

    /* The largest that is a number; NaN: there is none, or it is -infinity. */
    float (*largest)(const float *values, uint32_t n);

    /* rad = arg(z turn), to 2e-6, of OCT_FLOW_BLOCK depths of every step OCT_FLOW_BLOCK. Returns
     * how many. z is read, and rad written, for a register behind their end. */
    uint32_t (*angles)(struct oct_flow_line z, const float turn[2], uint32_t n, uint32_t step,
                       float *rad);

    /* The median of -pi .. pi, to 1e-6; rad: room for two registers more. */
    float (*median_angle)(float *rad, uint32_t n);

    /* The sum of z where |arg smooth| < 0.2 rad: smooth in the window, z the sum of n_pairs
     * products a conj b, of lines from these on, `stride` floats from one to the next. All are read
     * for four registers behind their end, where a or b is 0. */
    void (*sum_near)(const struct oct_flow_around *window, struct oct_flow_line a,
                     struct oct_flow_line b, size_t stride, uint32_t n_pairs, uint32_t n,
                     float sum[2]);

    /* v = per_rad arg smooth where |smooth| >= least intensity and intensity > dark, else NaN;
     * intensity: the power in the window */
    void (*speed)(const struct oct_flow_around *window, float dark, float least, float per_rad,
                  uint32_t n, float *v);
};

OCT_SIMD_TABLES(struct oct_flow_kernels, oct_flow_kernels_table);

/* Of the best instruction set that this machine has. */
const struct oct_flow_kernels *oct_flow_kernels_best(void);

#endif
