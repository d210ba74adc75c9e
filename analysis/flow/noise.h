/* The window of all maps of this folder, and what the camera's noise does in it.
 *
 * Window G: a Gaussian along A-lines and one along the depth, cut at three sigma, of sum 1.
 *
 * Noise: n0 = E|B|^2 without light from the sample, taken equal at all depths. Without a word of
 * the caller's it is the least mean of |B|^2 over a block of 16 depths, by all A-lines and repeats
 * (0.95 to 1.01 of the truth; where there is tissue in all blocks, too much).
 *
 * Neighbouring depths share noise: rho(a) = E(B[d] conj B[d+a]) / n0 of lag a, which is the
 * transform of var_i (W w)_i^2 over the places q_i of the samples (optics.h). G leaves
 * Q independent samples of it, 1/Q = sum over a, b of G_a G_b |rho(a - b)|^2. */
#ifndef OCT_ANALYSIS_FLOW_NOISE_H
#define OCT_ANALYSIS_FLOW_NOISE_H

#include "analysis/flow/bscan.h"

#define OCT_FLOW_MOST_SIGMA (OCT_FLOW_MOST_RADIUS / 3.0)
#define OCT_FLOW_LAGS 32u
#define OCT_FLOW_NOISE_ALIKE 2.0       /* deviations between blocks that hold noise alone */
#define OCT_FLOW_NOISE_OVERSAMPLED 4.0 /* values along the depth for one of its own, at most */

struct oct_flow_window {
    unsigned n_lines, n_depth; /* of half, the middle counted */
    float lines[OCT_FLOW_MOST_RADIUS + 1], depth[OCT_FLOW_MOST_RADIUS + 1];
};

/* sigma in px, 0 .. OCT_FLOW_MOST_SIGMA; 0: no window. */
void oct_flow_window_init(struct oct_flow_window *window, double sigma_lines, double sigma_depth);

/* Of `sigma` px: the taps of half, the middle first. Returns how many. */
unsigned oct_flow_taps(double sigma, float taps[OCT_FLOW_MOST_RADIUS + 1]);

/* E|B|^2 without light: the mean of those blocks of depths whose power is the least or differs from
 * it by no more than noise does. The least alone lies 2 to 5 % too low where several are dark.
 * bscans: [n], NULL: lost. *block: the darkest; 0: nothing has come. */
double oct_flow_noise_find(const struct oct_flow_bscan *const *bscans, unsigned n, uint32_t *block);

/* |rho|^2 of lags 0 .. OCT_FLOW_LAGS - 1, as it is found in a block of depths. */
void oct_flow_noise_correlate(const struct oct_flow_bscan *const *bscans, unsigned n,
                              uint32_t block, double rho2[OCT_FLOW_LAGS]);

/* Q, of G without its cut, which is 1 in 300. */
double oct_flow_noise_samples(double sigma_lines, double sigma_depth,
                              const double rho2[OCT_FLOW_LAGS]);

#endif
