/* Dispersion without a mirror: the a2 and a3 that make B-scans of any sample sharpest.
 *
 * Input: B-scans of spectra, u16 [M][N]. Each A-line kept (DC removed as the plan says) is put onto
 * the k grid once, by the tables of interpolation = nufft, with the plan's own dispersion, and
 * transformed to the depths first_px .. P2/4 - 1; the inverse transform of those alone is its
 * analytic signal s over k. A trial then is one product and one FFT of P2/4 points a line:
 *
 *     B[d] = sum_j s[j] exp(-i theta(t_j)) exp(-2 pi i j d / (P2/4)),   theta(t) = b2 t^2 + b3 t^3
 *
 * with t from -1 to 1 over the camera's samples (dispersion_over = spectrum). theta is what remains
 * beside the plan's dispersion.
 *
 * Measure: sharpness S = n sum I^2 / (sum I)^2 of the linear intensities I = |B|^2 of all n pixels
 * kept: 2 for noise and fully developed speckle without layers, and more the less pixels hold the
 * light. theta conserves sum I, so S is largest where the light is in the fewest pixels. Sharpness
 * of this kind: R. A. Muller, A. Buffington, "Real-time correction of atmospherically degraded
 * telescope images through image sharpening", J. Opt. Soc. Am. 64, 1200 (1974); its use for the
 * dispersion of OCT, with another measure (points above a threshold): M. Wojtkowski et al.,
 * "Ultrahigh-resolution, high-speed, Fourier domain optical coherence tomography and methods for
 * dispersion compensation", Opt. Express 12, 2404 (2004). docs/calibration.md has measurements of
 * both, and of entropy.
 *
 * Search: S of a part of the lines on a grid of (b2, b3); from its three highest maxima downhill
 * simplex (Nelder and Mead 1965) on all lines. The same surface, of four groups of interleaved
 * lines each for itself, shows whether there is anything to sharpen: of noise the groups' surfaces
 * have nothing in common. The four optima by themselves give the standard error. */
#ifndef OCT_ANALYSIS_CALIBRATE_SHARPEN_H
#define OCT_ANALYSIS_CALIBRATE_SHARPEN_H

#include "pipeline/base/err.h"
#include "pipeline/plan/plan.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define OCT_SHARPEN_FIRST_PX 16u /* what remains of DC lies before */
#define OCT_SHARPEN_MOST_LINES 2048u
#define OCT_SHARPEN_CURVE 101u
#define OCT_SHARPEN_LEAST_AGREEMENT 0.5

struct oct_sharpen_setup {
    const struct oct_plan *plan; /* its geometry, calibration and chain; copied, may go */
    uint32_t first_px;           /* depths before it are left out; at least 1 */
    uint32_t last_px;            /* one past the last that counts; 0: P2/4 */
    uint32_t n_bscans;           /* that will be added */
    uint32_t n_lines;            /* A-lines to keep of all of them; at most MOST_LINES */
    uint32_t limit;              /* the camera's largest sample: lines that reach it are left out;
                                    0: none are */
    double most_a2, most_a3;     /* search range of b2 and b3, rad, either way */
    bool with_curves;            /* of the result; else they stay zero */
};

/* first_px, 512 lines, 100 rad and 24 rad, with curves; the rest is the caller's. */
extern const struct oct_sharpen_setup oct_sharpen_standard;

enum oct_sharpen_state {
    OCT_SHARPEN_FOUND,
    OCT_SHARPEN_NOTHING,  /* the groups of lines do not agree: noise, or nothing that has depth */
    OCT_SHARPEN_AT_BOUND, /* the best lies at the end of the search range */
};

/* S along one coefficient, the other at its best. */
struct oct_sharpen_curve {
    double at[OCT_SHARPEN_CURVE]; /* rad, over the spectrum, remaining */
    double s[OCT_SHARPEN_CURVE];
};

struct oct_sharpen_result {
    enum oct_sharpen_state state;
    double remaining[2];               /* b2, b3 in radians, over the spectrum */
    double error[2];                   /* standard error of each, from the groups of lines */
    double agreement;                  /* mean correlation of the groups' surfaces, -1..1 */
    double before, after;              /* S with the plan's dispersion, and with theta too */
    struct oct_sharpen_curve curve[2]; /* along b2, along b3 */
    uint32_t n_lines, n_saturated;     /* lines kept; lines left out */
    /* Median over the lines that have one of the width of the brightest layer (peak.h), px; NaN:
     * none has. */
    double width_before_px, width_after_px;
    uint32_t n_widths; /* lines that have one both before and after */
};

struct oct_sharpen;

/* OCT_E_NO_MEMORY; OCT_E_CONFIG as oct_plan_create. */
enum oct_err oct_sharpen_create(struct oct_sharpen **sharpen, const struct oct_sharpen_setup *setup,
                                struct oct_error *err);

/* Takes A-lines of one B-scan, evenly spread over it. line_valid: [M] 0: a line is missing; NULL:
 * all came. The samples may change meanwhile. */
void oct_sharpen_add(struct oct_sharpen *sharpen, const uint16_t *spectra,
                     const uint8_t *line_valid);

/* Searches. *cancelled is looked at before every trial (NULL: never): OCT_E_STATE then. OCT_E_ARG:
 * no lines were added that can be used. The state is in the result. */
enum oct_err oct_sharpen_run(struct oct_sharpen *sharpen, const atomic_bool *cancelled,
                             struct oct_sharpen_result *result, struct oct_error *err);

/* Its own: the calibration of the plan that it was made from. Valid as long as it is. */
const struct oct_plan *oct_sharpen_plan(const struct oct_sharpen *sharpen);

/* Lines of the first B-scan that was added, and its depths (P2/4). */
uint32_t oct_sharpen_picture_lines(const struct oct_sharpen *sharpen);
uint32_t oct_sharpen_depth(const struct oct_sharpen *sharpen);

/* Those lines with the remaining phase b2, b3: linear intensities, counts^2, [lines][depth]; 0
 * before first_px. */
void oct_sharpen_picture(struct oct_sharpen *sharpen, const double remaining[2], float *intensity);

/* NULL is fine. */
void oct_sharpen_destroy(struct oct_sharpen *sharpen);

/* The plan's dispersion and the remaining phase together, as a configuration takes them. */
struct oct_sharpen_dispersion {
    bool is_table; /* the plan's is a file: so must this be */
    /* [m] = a_m in radians, as calibration.dispersion_over says, over the spectrum and over the
     * grid; both only if !is_table. The two differ by a phase linear in k, a shift in depth, which
     * the coefficients cannot express; where `over` is the plan's there is no shift but that of
     * b3 itself. */
    double over_spectrum[OCT_MAX_DISPERSION_ORDER + 1];
    double over_grid[OCT_MAX_DISPERSION_ORDER + 1];
    double *table; /* [n][2] re, im; P2 of them; the caller frees it */
    uint32_t n;
};

/* OCT_E_NO_MEMORY. */
enum oct_err oct_sharpen_combine(const struct oct_plan *plan, const double remaining[2],
                                 struct oct_sharpen_dispersion *combined, struct oct_error *err);

#endif
