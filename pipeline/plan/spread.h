/* Tables of the exact resampling, `interpolation = nufft`: a non-uniform FFT (type 1) of an A-line.
 *
 * An engine whose line x (N samples, DC removed) takes this way computes, instead of steps 2 to 6,
 *
 *     f[g] = sum over t < at[g+1] - at[g] of (re + i im)[at[g] + t] * x[first[g] + t]    g < n_used
 *     F    = fft(f) over n_grid points, f[g] = 0 for n_used <= g < n_grid
 *     I[d] = gain[d] * |F[d]|^2                                     d < P2/4
 *
 * which is contract section 6:
 *
 *     B[d] = (1/N) sum_i x[i] w[i] phi(q_i) exp(-2 pi i d q_i / P2),   I[d] = |B[d]|^2
 *     B[d] = factor[d] * F[d]
 *
 * q_i is the place of camera sample i on the P2 steps in k, w[i] = |dq/di|, phi the dispersion
 * phase times the window. The depths wanted, 0 .. P2/4 - 1, are half of those that a grid of P2/2
 * points has: it is oversampled twofold about their middle, d0 = P2/8, and exp(-2 pi i d0 ...) is
 * part of the table. The kernel is that of Kaiser and Bessel, n_taps grid points wide,
 *
 *     psi(u) = I0(beta sqrt(1 - (2u/J)^2)) / I0(beta),   beta = pi sqrt((J/2)^2 (3/2)^2 - 0.8)
 *
 * after P. J. Beatty, D. G. Nishimura, J. M. Pauly, "Rapid gridding reconstruction with a minimal
 * oversampling ratio", IEEE Trans. Med. Imaging 24 (2005). factor is 1 over its transform, turned
 * by the place where the grid begins on the P2 steps, q = 2 * origin; gain is its square:
 *
 *     factor[d] = exp(-2 pi i d origin / n_grid) / h(d / n_grid - 1/4)
 *
 * The samples of a grid point are neighbours. Where the line fills the grid (N close to P1) the
 * last ones reach the first points around its end: first[g] + t may then be N .. N + n_wrap - 1,
 * which stand for samples 0 .. n_wrap - 1. */
#ifndef OCT_PIPELINE_PLAN_SPREAD_H
#define OCT_PIPELINE_PLAN_SPREAD_H

#include "pipeline/base/err.h"

#include <stddef.h>
#include <stdint.h>

#define OCT_SPREAD_LEAST_TAPS 4u
#define OCT_SPREAD_MOST_TAPS 8u
#define OCT_SPREAD_LEAST_DB (-110.0) /* beyond, floats end */

/* Arrays are 64-byte aligned and owned by the struct; read-only after init. */
struct oct_spread {
    unsigned n_taps; /* J: grid points that a sample reaches */
    uint32_t n_grid; /* P2/2 */
    uint32_t n_used; /* the samples reach the first n_used grid points and no others */
    uint32_t n_wrap; /* samples that are read again behind the last one; 0 for a padded line */
    uint32_t *first; /* [n_grid] */
    uint32_t *at;    /* [n_grid + 1] */
    float *re, *im;  /* [at[n_grid]], 1/N included */
    float *gain;     /* [P2/4] */
    float *factor;   /* [P2/4][2] re, im */
};

/* The narrowest kernel whose error stays below accuracy_db (negative) of the largest amplitude over
 * all P2/2 depths. */
unsigned oct_spread_taps(double accuracy_db);

/* What a kernel promises. */
double oct_spread_error_db(unsigned n_taps);

/* q: [n] rising places on the p2 steps; phase: [n][2] re and im of w * phi / N * window at each.
 * OCT_E_NO_MEMORY; OCT_E_CONFIG where the numbers are too large for floats. finish is right after a
 * failure too, and on zeroed memory. */
enum oct_err oct_spread_init(struct oct_spread *spread, const double *q, const double *phase,
                             uint32_t n, uint32_t p2, unsigned n_taps);
void oct_spread_finish(struct oct_spread *spread);

#endif
