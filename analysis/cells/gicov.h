/* Scores of circles at all pixels (engine.h has the definition), for three instruction sets.
 *
 * f32 suffices, |S| up to 10 included: of each circle a few samples give p, near m, and sums are
 * taken of g - p and (g - p)^2, in portions of 32 samples. Samples that fall onto one pixel are
 * taken together, exactly: n unit vectors e that lie symmetrically about u add W (G . u) to the
 * sum, W = |sum e|, and a (G . u)^2 + c (|G|^2 - (G . u)^2) to the squares, a and c the sums of
 * their squares along u and across. With t = sqrt(a - c) (G . u) and w = W / sqrt(a - c)
 *   sum (g - p) = w (t - w p) - (n - w^2) p
 *   sum (g - p)^2 = (t - w p)^2 + c |G|^2 + (n - w^2) p^2
 * Of seven circles about a radius of 10 px 672 groups are left of 1050 samples. */
#ifndef OCT_ANALYSIS_CELLS_GICOV_H
#define OCT_ANALYSIS_CELLS_GICOV_H

#include "analysis/cells/params.h"
#include "pipeline/base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Where the samples of circles lie: offsets to whole pixels, the same for both engines. */

/* Sample i of a circle of radius rho lies at rho (cos t_i, sin t_i), t_i = 2 pi i / 150, truncated
 * toward zero or rounded, halves away from zero. The product is that of doubles: what is exactly
 * whole or half on paper falls to either side, as it does in any program that computes it so (of
 * 8 cos 120 deg = -4 + 2e-15 the truncation is -3). */
struct oct_cells_circle {
    double radius; /* px */
    int32_t dx[OCT_CELLS_SAMPLES], dy[OCT_CELLS_SAMPLES];
};

struct oct_cells_circles {
    unsigned n;
    uint32_t border; /* oct_cells_border */
    double cosine[OCT_CELLS_SAMPLES], sine[OCT_CELLS_SAMPLES];
    struct oct_cells_circle circle[OCT_CELLS_MOST_CIRCLES];
};

void oct_cells_circles_init(struct oct_cells_circles *circles,
                            const struct oct_cells_params *params);

/* The planes that are read beyond the last pixel of a row, finite numbers, by so many floats. */
#define OCT_CELLS_GICOV_BEYOND 32u

/* Rows of gx, gy and gx^2 + gy^2, one after another: row y of plane i begins at
 * values + y * row + i * plane. */
struct oct_cells_gradient {
    float *values;
    size_t row, plane;      /* floats */
    uint32_t height, width; /* px */
};

/* t = a gx + b gy. */
struct oct_cells_group {
    ptrdiff_t offset; /* floats */
    float a, b, w, c;
};

#define OCT_CELLS_SCOUTS 8

struct oct_cells_gicov_circle {
    unsigned n_single, n_joint;                      /* with w 1 and c 0; with any */
    float excess;                                    /* the sum of n - w^2 of groups */
    struct oct_cells_group scout[OCT_CELLS_SCOUTS];  /* they add up to p; no w, no c */
    struct oct_cells_group group[OCT_CELLS_SAMPLES]; /* the single ones first */
};

struct oct_cells_gicov {
    unsigned n;
    uint32_t border;
    size_t row, plane;
    struct oct_cells_gicov_circle circle[OCT_CELLS_MOST_CIRCLES];
};

void oct_cells_gicov_init(struct oct_cells_gicov *gicov, const struct oct_cells_circles *circles,
                          const struct oct_cells_gradient *gradient);

/* Rows y0 .. y1 - 1, columns x0 .. x1 - 1 of score and best, [][stride], from (x0, y0) on; all
 * where S is defined. |S| is at most 1e6: a variance of nothing is taken as 1e-12 m^2. */
struct oct_cells_part {
    uint32_t x0, x1, y0, y1;
    float v0;
    size_t stride;
    float *score;
    uint8_t *best;
};

struct oct_cells_scorer {
    const char *name; /* "avx512", "avx2", "plain" */
    void (*run)(const struct oct_cells_gicov *gicov, const struct oct_cells_gradient *gradient,
                const struct oct_cells_part *part);
};

extern const struct oct_cells_scorer oct_cells_scorer_plain;
#if defined(__x86_64__)
extern const struct oct_cells_scorer oct_cells_scorer_avx2, oct_cells_scorer_avx512;
#endif

/* By name, or the best that this CPU can run with "auto"; NULL: it cannot run that. */
const struct oct_cells_scorer *oct_cells_scorer_select(const char *name);

/* Peaks of a map of scores. */

struct oct_workers;
struct oct_cells_peaks;

struct oct_cells_peak {
    uint32_t x, y;
};

/* OCT_E_NO_MEMORY. */
enum oct_err oct_cells_peaks_create(struct oct_cells_peaks **peaks,
                                    const struct oct_cells_params *params, uint32_t height,
                                    uint32_t width, struct oct_workers *workers,
                                    struct oct_error *err);
void oct_cells_peaks_destroy(struct oct_cells_peaks *peaks); /* NULL is fine */

/* score: S [height][width], 0 where it is not defined. near: [height][width], pixels that are no
 * peaks (but may outdo one), or NULL. A peak has |S| above the threshold, S of the polarity, and no
 * larger |S| within round(spacing R); with params.merges of several within 0.6 R the first one
 * stays. *found [n], in raster order, is valid until the next call. *highest: the largest |S| of
 * the polarity, not near. OCT_E_NO_MEMORY. */
enum oct_err oct_cells_peaks_find(struct oct_cells_peaks *peaks, const float *score,
                                  const uint8_t *near, const struct oct_cells_peak **found,
                                  unsigned *n, double *highest, struct oct_error *err);

#endif
