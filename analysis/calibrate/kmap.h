/* The k map and the dispersion phase of a spectrometer, from the fringes of a mirror.
 *
 * Mirror m's phase at camera sample c is, except for noise,
 *
 *     phi_m(c) = alpha_m kappa(c) + s_m theta(c) + b_m
 *
 * kappa the wave number, 0 at sample 0 and 1 at N-1, rising; theta the dispersion, common to all;
 * s_m the side of zero delay: of a mirror on the other side the camera sees the same fringe with
 * the phase turned around, alpha_m kappa - theta. kappa and theta are sums of Chebyshev polynomials
 * T_1 .. T_order over the samples that have light. All unknowns by least squares, weighted by the
 * square of each fringe's amplitude, every mirror alike: alpha_m by the slopes of the phases, then
 * in turns kappa, theta and b_m for given alpha, alpha for given kappa and theta. The difference of
 * two depths on one side holds kappa alone, so two depths part kappa from theta; three or more show
 * by what remains whether that model is right, and on which side each lies. theta has no part that
 * is constant or linear in k over the light: such a part is a depth, and belongs to alpha. One
 * mirror alone gives kappa by taking theta as 0.
 *
 * After the first fit each fringe's phase is taken anew with that fit as its model
 * (oct_fringe_refine), and fitted again.
 *
 * Beyond the light kappa follows its own cubic, theta a straight line.
 *
 * Sources: as fringe.h; the bilinear fit is the rank-one factorisation of G. H. Golub, C. F. Van
 * Loan, "Matrix Computations", with an offset common to all rows.
 * One thread uses a k map at a time. */
#ifndef OCT_ANALYSIS_CALIBRATE_KMAP_H
#define OCT_ANALYSIS_CALIBRATE_KMAP_H

#include "analysis/calibrate/fringe.h"
#include "pipeline/plan/calibration.h"
#include "pipeline/plan/geometry.h"

#include <stdbool.h>

#define OCT_KMAP_LEAST_ORDER 1u
#define OCT_KMAP_MOST_ORDER 12u
#define OCT_KMAP_MOST_MIRRORS 64u
#define OCT_KMAP_LEAST_SPREAD 0.03 /* of the deepest: depths closer together are one depth */

struct oct_kmap_setup {
    unsigned order;   /* 0: the least from 2 on that leaves 5 % more than 9 does, or less */
    const int *sides; /* [n_mirrors] 1 or -1; NULL: found, of three mirrors or more */
};

struct oct_kmap_mirror {
    double alpha, offset; /* rad: of kappa 0 to 1; b_m */
    double rms_rad;       /* of what remains, weighted */
    int side;             /* 1, or -1 on the other side of zero delay than most */
};

/* Arrays are owned by the struct. */
struct oct_kmap {
    uint32_t n_samples, n_mirrors;
    unsigned order;
    bool has_theta;       /* two mirrors or more */
    double *k;            /* [N] kappa */
    double *theta;        /* [N] rad; 0 without has_theta */
    double *weight;       /* [N] the mean of the fringes'; their sum is 1 */
    uint32_t first, last; /* samples with light */
    double rms_rad;
    struct oct_kmap_mirror *mirrors; /* [n_mirrors] */
};

/* Fits; the fringes' phases are refined. OCT_E_FORMAT: a sentence that says what is wrong; *which
 * is the number of the mirror at fault, from 0, or n where all are: one depth, a map that falls, a
 * mirror beyond Nyquist all over the camera, a mirror that does not follow the others.
 * OCT_E_ARG: too few samples for the order. OCT_E_NO_MEMORY. finish is right after a failure too.
 */
enum oct_err oct_kmap_find(struct oct_kmap *kmap, struct oct_fringe *fringes, uint32_t n,
                           const struct oct_kmap_setup *setup, uint32_t *which,
                           struct oct_error *err);
void oct_kmap_finish(struct oct_kmap *kmap);

/* What the fit says of mirror m's phase, [N] rad. */
void oct_kmap_model(const struct oct_kmap *kmap, uint32_t m, double *phase);

/* As octd takes it: kmap_px, N camera coordinates from 0 to N-1, and with theta the phase
 * exp(-i side theta) on the P2 steps that this k map gives. The caller finishes *cal. */
enum oct_err oct_kmap_calibration(const struct oct_kmap *kmap, const struct oct_geometry *geometry,
                                  int side, struct oct_calibration *cal, struct oct_error *err);

/* theta as a2 .. a5 over the spectrum, t = 2 kappa - 1: coefficient[m] = a_m, as many as it needs,
 * the others 0. *rms_rad: what they leave, weighted. Their constant and linear parts, which theta
 * has not, move depths: a mirror lies elsewhere with them than with the phase. */
void oct_kmap_coefficients(const struct oct_kmap *kmap,
                           double coefficient[OCT_MAX_DISPERSION_ORDER + 1], double *rms_rad);

#endif
