/* The steps of a search of one picture on the CPU, and what the CUDA engine shares of them: the
 * picture prepared, scores of circles, their peaks, and these to fractions of a pixel. engine.h has
 * the definitions. */
#ifndef OCT_ANALYSIS_CELLS_FIND_H
#define OCT_ANALYSIS_CELLS_FIND_H

#include "analysis/cells/engine.h"
#include "numeric/parabola.h"
#include "pipeline/base/simd.h"

#include <math.h>
#include <stddef.h>

/* ---- pixels of which nothing is known: filled, and kept away from ---- */

struct oct_cells_mask {
    uint32_t height, width;
    double reach;          /* px: 2 R */
    bool any;              /* some pixel is masked, not all; else the arrays are not set */
    bool is_empty;         /* no pixel is valid */
    uint8_t *valid, *near; /* [height][width]; near: 1 within `reach` of a masked pixel */
    uint8_t *is_column;    /* [width], scratch */
};

/* False: out of memory; finish is legal. */
bool oct_cells_mask_init(struct oct_cells_mask *mask, uint32_t height, uint32_t width,
                         double reach);
void oct_cells_mask_finish(struct oct_cells_mask *mask);

/* Masks what the picture masks and what is not finite. */
void oct_cells_mask_set(struct oct_cells_mask *mask, const struct oct_picture *picture);

/* Masked pixels become the nearest valid one of their column, the upper one of two; in a column
 * without any, those of the nearest column that has one, the left one of two. */
void oct_cells_mask_fill(const struct oct_cells_mask *mask, float *pixels, size_t stride);

/* Whether a masked pixel lies within `reach` of (x, y), of any place. */
bool oct_cells_mask_is_near(const struct oct_cells_mask *mask, double x, double y);

/* ---- the picture prepared ----
 *
 * It is taken as scale (I - level), level near the mean and the scale a power of two, so that f32
 * holds its contrasts whatever the range; what is made of it, scores and snakes, does not depend on
 * either. Of integers nothing is rounded. */

/* gx and gy, rows so many floats apart; 2 x 2 px at least. */
struct oct_cells_slopes {
    const float *gx, *gy;
    size_t row;
    int32_t height, width;
};

struct oct_cells_prepared {
    float *pixels; /* I' [height][stride] */
    size_t stride;
    struct oct_cells_slopes slopes; /* gx^2 + gy^2 lies behind gy as gy does behind gx */
    struct oct_cells_mask mask;
    double scale;
    float v0;

    /* Its own. */
    struct oct_workers *workers;
    const struct oct_picture *picture; /* while it is prepared */
    double floor, level;
    unsigned n_taps; /* of half the Gaussian, its middle not counted */
    float *taps;     /* [1 + n_taps] */
    float *along;    /* [height][stride]: smoothed in x; then scratch */
    float *padded;   /* [workers][n_padded]: a row with its border repeated */
    size_t n_padded;
    float *gradient; /* [height]: rows of gx, gy, gx^2 + gy^2 */
    float *values;   /* [2][height][width], scratch */
};

/* False: out of memory; finish is legal. */
bool oct_cells_prepared_init(struct oct_cells_prepared *prepared,
                             const struct oct_cells_params *params, uint32_t height, uint32_t width,
                             struct oct_workers *workers);
void oct_cells_prepared_finish(struct oct_cells_prepared *prepared);

/* The picture, of the size of init, is borrowed until it returns. One value, or no valid pixel:
 * pixels and gradient are 0. */
void oct_cells_prepare(struct oct_cells_prepared *prepared, const struct oct_picture *picture);

/* exp(-t^2 / 2 sigma^2) up to 4 sigma, of sum 1: taps[0 .. n], n returned, at most
 * oct_cells_most_taps(sigma). */
unsigned oct_cells_taps(double sigma, float *taps);
static inline unsigned oct_cells_most_taps(double sigma)
{
    return (unsigned)(4 * sigma + 0.5);
}

/* The exact median of |gx| and |gy|, all together: the mean of the two middle values; 0: none is
 * valid. valid: [height][width], or NULL: all are. values: room for all and for a row more. */
double oct_cells_median(const struct oct_cells_slopes *slopes, const uint8_t *valid, float *values);

#define OCT_CELLS_MEDIAN_TO_SIGMA 1.4826

/* ---- scores of circles at all pixels ----
 *
 * Sample i of a circle of radius rho lies at rho (cos t_i, sin t_i), t_i = 2 pi i / 150, truncated
 * toward zero or rounded, halves away from zero. The product is that of doubles: what is exactly
 * whole or half on paper falls to either side, as it does in any program that computes it so (of
 * 8 cos 120 deg = -4 + 2e-15 the truncation is -3).
 *
 * f32 suffices, |S| up to 10 included: of each circle a few samples give p, near m, and sums are
 * taken of g - p and (g - p)^2, in portions of 32 samples. Samples that fall onto one pixel are
 * taken together, exactly: n unit vectors e that lie symmetrically about u add W (G . u) to the
 * sum, W = |sum e|, and a (G . u)^2 + c (|G|^2 - (G . u)^2) to the squares, a and c the sums of
 * their squares along u and across. With t = sqrt(a - c) (G . u) and w = W / sqrt(a - c)
 *   sum (g - p) = w (t - w p) - (n - w^2) p
 *   sum (g - p)^2 = (t - w p)^2 + c |G|^2 + (n - w^2) p^2
 * Of seven circles about a radius of 10 px 672 groups are left of 1050 samples. */

/* The planes are read beyond the last pixel of a row, finite numbers, by so many floats. */
#define OCT_CELLS_GICOV_BEYOND 32u
#define OCT_CELLS_SCOUTS 8

/* t = a gx + b gy. */
struct oct_cells_group {
    ptrdiff_t offset; /* floats */
    float a, b, w, c;
};

struct oct_cells_gicov_circle {
    unsigned n_single, n_joint;                      /* with w 1 and c 0; with any */
    float excess;                                    /* the sum of n - w^2 of groups */
    struct oct_cells_group scout[OCT_CELLS_SCOUTS];  /* they add up to p; no w, no c */
    struct oct_cells_group group[OCT_CELLS_SAMPLES]; /* the single ones first */
};

struct oct_cells_gicov {
    unsigned n;
    double radius[OCT_CELLS_MOST_CIRCLES]; /* px */
    size_t row, plane;                     /* floats from a row to the next, from gx to gy */
    struct oct_cells_gicov_circle circle[OCT_CELLS_MOST_CIRCLES];
};

void oct_cells_gicov_init(struct oct_cells_gicov *gicov, const struct oct_cells_params *params,
                          size_t row, size_t plane);

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
    void (*run)(const struct oct_cells_gicov *gicov, const float *gx,
                const struct oct_cells_part *part);
};
OCT_SIMD_TABLES(struct oct_cells_scorer, oct_cells_scorer);

/* By the name of an instruction set (simd.h); NULL: this CPU cannot run that. */
const struct oct_cells_scorer *oct_cells_scorer_select(const char *name);

/* ---- peaks of a map of scores ---- */

/* A pixel beside one that is looked at. */
struct oct_cells_offset {
    int32_t dx, dy;
};

/* The disk in which a peak is the largest, round(spacing R) about (0, 0), which is left out; the
 * nearest first, so that most pixels see a larger one soon. How many; NULL: out of memory. */
struct oct_cells_offset *oct_cells_disk(const struct oct_cells_params *params, size_t *n);

struct oct_cells_peaks {
    struct oct_cells_params params;
    uint32_t height, width;
    struct oct_cells_offset *disk;
    size_t n_disk;
    struct oct_cell *cells; /* [n]: score, peak_x and peak_y, in raster order */
    unsigned n, room;
    double highest; /* the largest |S| of the polarity, not near */
};

bool oct_cells_peaks_init(struct oct_cells_peaks *peaks, const struct oct_cells_params *params,
                          uint32_t height, uint32_t width); /* as of prepared_init */
void oct_cells_peaks_finish(struct oct_cells_peaks *peaks);

/* score: S [height][width], 0 where it is not defined. near: [height][width], pixels that are no
 * peaks (but may outdo one), or NULL. A peak has |S| above the threshold, S of the polarity, and no
 * larger |S| within the disk; with params.merges of several within 0.6 R the first one stays.
 * OCT_E_NO_MEMORY. */
enum oct_err oct_cells_peaks_find(struct oct_cells_peaks *peaks, const float *score,
                                  const uint8_t *near, struct oct_error *err);

/* Whether one of the peaks before it, in raster order, lies within 0.6 R, if any are merged. */
bool oct_cells_is_merged(const struct oct_cells_params *params, const struct oct_cell *before,
                         size_t n, int32_t x, int32_t y);

/* ---- to fractions of a pixel ----
 *
 * Of C and of CUDA: without tables or memory of their own. */

#ifdef __CUDACC__
#define OCT_CELLS_MATH static inline __host__ __device__
#else
#define OCT_CELLS_MATH static inline
#endif

#define OCT_CELLS_EDGE_SAMPLES 64
#define OCT_CELLS_EDGE_ROUNDS 3

struct oct_cells_slope {
    float x, y;
};

/* The gradient at (x + u, y + v), bilinear, its border repeated. A whole pixel and what is added to
 * it are apart, so that f32 suffices. */
OCT_CELLS_MATH struct oct_cells_slope oct_cells_slope_at(const struct oct_cells_slopes *slopes,
                                                         int32_t x, int32_t y, float u, float v)
{
    const float whole_u = floorf(u), whole_v = floorf(v);
    float fu = u - whole_u, fv = v - whole_v;
    int32_t px = x + (int32_t)whole_u, py = y + (int32_t)whole_v;
    if (px < 0 || px > slopes->width - 2) {
        fu = px < 0 ? 0.0f : 1.0f;
        px = px < 0 ? 0 : slopes->width - 2;
    }
    if (py < 0 || py > slopes->height - 2) {
        fv = py < 0 ? 0.0f : 1.0f;
        py = py < 0 ? 0 : slopes->height - 2;
    }
    const size_t at = (size_t)py * slopes->row + (size_t)px;
    const float *a = slopes->gx + at, *b = slopes->gy + at;
    const float *c = a + slopes->row, *d = b + slopes->row;
    const float a0 = a[0] + fu * (a[1] - a[0]), a1 = c[0] + fu * (c[1] - c[0]);
    const float b0 = b[0] + fu * (b[1] - b[0]), b1 = d[0] + fu * (d[1] - d[0]);
    struct oct_cells_slope g;
    g.x = a0 + fv * (a1 - a0);
    g.y = b0 + fv * (b1 - b0);
    return g;
}

/* Where the least-squares quadratic of 27 values has its top: f[(k * 3 + j) * 3 + i] at
 * (i - 1, j - 1, k - 1). False: it has none (its Hessian is not negative definite). */
OCT_CELLS_MATH bool oct_cells_top_of_27(const float *f, double top[3])
{
    /* On this grid 1, the three u, the three u^2 - 2/3 and the three u v are orthogonal, with sums
     * of squares of 27, 18, 6 and 12. */
    double g[3] = {0, 0, 0}, h[3] = {0, 0, 0}, xy = 0, xz = 0, yz = 0, all = 0;
    for (int n = 0; n < 27; n++) {
        const int u = n % 3 - 1, v = n / 3 % 3 - 1, w = n / 9 - 1;
        const double value = (double)f[n];
        all += value;
        g[0] += u * value;
        g[1] += v * value;
        g[2] += w * value;
        h[0] += u * u * value;
        h[1] += v * v * value;
        h[2] += w * w * value;
        xy += u * v * value;
        xz += u * w * value;
        yz += v * w * value;
    }
    for (int i = 0; i < 3; i++) {
        g[i] *= 1.0 / 18;
        h[i] = (h[i] - 2.0 / 3 * all) * (1.0 / 3);
    }
    xy *= 1.0 / 12;
    xz *= 1.0 / 12;
    yz *= 1.0 / 12;
    /* Cofactors and determinant of the Hessian; its leading minors must be -, +, -. */
    const double xx = h[1] * h[2] - yz * yz, yy = h[0] * h[2] - xz * xz;
    const double zz = h[0] * h[1] - xy * xy;
    const double c_xy = xz * yz - xy * h[2], c_xz = xy * yz - xz * h[1], c_yz = xy * xz - yz * h[0];
    const double det = h[0] * xx + xy * c_xy + xz * c_xz;
    if (!(h[0] < 0 && zz > 0 && det < 0))
        return false;
    const double scale = -1 / det;
    top[0] = (xx * g[0] + c_xy * g[1] + c_xz * g[2]) * scale;
    top[1] = (c_xy * g[0] + yy * g[1] + c_yz * g[2]) * scale;
    top[2] = (c_xz * g[0] + c_yz * g[1] + zz * g[2]) * scale;
    return true;
}

OCT_CELLS_MATH double oct_cells_within(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

/* Half the sides of the 27 points of a round, in px: 0.1, 0.06 and 0.04 R, but not so small that
 * the kinks of bilinear samples count: of noise-free disks with R 1.5 to 5 px they brought errors
 * of the centre of 0.02 to 0.07 px rms where it is now 0.006 to 0.025 px. */
OCT_CELLS_MATH double oct_cells_edge_side(int round, double radius)
{
    const double share = round == 0 ? 0.1 : round == 1 ? 0.06 : 0.04;
    const double least = round == 0 ? 0.6 : round == 1 ? 0.5 : 0.4;
    return share * radius > least ? share * radius : least;
}

/* The radius of a disk whose |m| is largest at r. A Gaussian of sigma^2 = s draws
 * the steepest place of a round edge inward, to r = radius - s / (2 radius): by 0.2 px of 10 px
 * smoothed by 2 px. To s counts, beside the smoothing, what differences and bilinear samples
 * smooth: 1/3 + 1/6 px^2. */
OCT_CELLS_MATH double oct_cells_edge_radius(double r, double smooth_px)
{
    const double s = smooth_px * smooth_px + 0.5;
    return (r + sqrt(r * r + 2 * s)) / 2;
}

/* The step of a round from its 27 values |m|, in units of the side: to the top of the quadratic,
 * each component within -1.5 .. 1.5, or to the largest value, the first of equals. */
OCT_CELLS_MATH void oct_cells_edge_step(const float *f, double step[3])
{
    int best = 0;
    if (oct_cells_top_of_27(f, step)) {
        for (int i = 0; i < 3; i++)
            step[i] = oct_cells_within(step[i], -1.5, 1.5);
        return;
    }
    for (int n = 1; n < 27; n++)
        best = f[n] > f[best] ? n : best;
    step[0] = best % 3 - 1;
    step[1] = best / 3 % 3 - 1;
    step[2] = best / 9 - 1;
}

/* From a pixel to the vertex of the parabola through S^2 of it and its neighbours `step` floats
 * away; 0 where one of them has no score. */
OCT_CELLS_MATH double oct_cells_vertex_at(const float *at, size_t step)
{
    const double before = (double)*(at - step), middle = (double)*at, after = (double)at[step];
    if (before == 0 || after == 0)
        return 0;
    return oct_parabola_top(before * before, middle * middle, after * after);
}

struct oct_cells_refiner {
    double radius, least, most;             /* px: R, and the bounds of the radius that is sought */
    double smooth;                          /* px */
    float unit[2 * OCT_CELLS_EDGE_SAMPLES]; /* cos and sin of 2 pi i / 64 */
};

struct oct_cells_place {
    double x, y, radius; /* px */
};

/* Radii are kept within 0.75 of the smallest and 1.25 of the largest circle. */
void oct_cells_refiner_init(struct oct_cells_refiner *refiner,
                            const struct oct_cells_params *params);

/* m, the mean outward gradient of 64 samples of a circle, bilinear as of oct_cells_slope_at, at the
 * 27 points (-h, 0, h)^3 about the place: f[(k * 3 + j) * 3 + i] at (x + (i - 1) h, y + (j - 1) h)
 * with the radius + (k - 1) h. */
void oct_cells_edge_means(const struct oct_cells_slopes *slopes, const float *unit,
                          const struct oct_cells_place *place, double h, float f[27]);

/* Edge: the largest |m| about the place, in three rounds: |m| at the 27 points, h of
 * oct_cells_edge_side, then to the top of their least-squares quadratic; the radius is then that of
 * the disk before it was smoothed (oct_cells_edge_radius). */
void oct_cells_refine_edge(const struct oct_cells_refiner *refiner,
                           const struct oct_cells_slopes *slopes, struct oct_cells_place *place);

/* The B-spline snake of Boyer 2009, as it was meant (its published program moves one of nine
 * control points, and takes the inner points with a wrong sign).
 *
 * 9 control points C of a periodic cubic B-spline, 4 samples a segment, begin as the least-squares
 * fit of a circle. With outward normals n_k and delta = 0.3 R
 *   E = sum_k I(X_k + delta n_k) - I(X_k - delta n_k)
 * 20 steps C += 0.02 dE/dC for dark cells, -= for bright ones, gradients taken bilinearly. I counts
 * in grey levels of the picture: the steps are those of 8-bit pictures. */

#define OCT_CELLS_CONTROL_POINTS 9
#define OCT_CELLS_SPLINE_SAMPLES 36 /* 4 a segment */

struct oct_cells_spline {
    double x[OCT_CELLS_CONTROL_POINTS], y[OCT_CELLS_CONTROL_POINTS];
};

/* The circle of that radius about (0, 0). */
void oct_cells_spline_circle(struct oct_cells_spline *spline, double radius);

/* A sample: its place, and the derivative along the spline. */
struct oct_cells_spline_sample {
    double x, y, dx, dy;
};
void oct_cells_spline_samples(const struct oct_cells_spline *spline,
                              struct oct_cells_spline_sample samples[OCT_CELLS_SPLINE_SAMPLES]);

/* dE/dC about the pixel (x, y), times 1 / scale: slopes are those of scale I. */
void oct_cells_spline_gradient(const struct oct_cells_spline *spline,
                               const struct oct_cells_slopes *slopes, int32_t x, int32_t y,
                               double delta, double scale, struct oct_cells_spline *gradient);

/* From a circle of radius R about the pixel (x, y) to the mean of the samples and their mean
 * distance from it. A snake that leaves the circle of 2 R stays at the pixel, with radius R. */
void oct_cells_refine_spline(const struct oct_cells_slopes *slopes, double radius, double scale,
                             bool is_dark, int32_t x, int32_t y, struct oct_cells_place *place);

#endif
