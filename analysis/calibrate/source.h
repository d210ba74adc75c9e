/* What a source's spectrum allows: the width of a mirror without any error of phase.
 *
 *     P(d) = |sum_i A_i w_i exp(-2 pi I d q_i / P2)|^2,   w_i = |dq/di|
 *
 * A the amplitude of the fringe at camera sample i, q_i its place on the P2 steps in k: the sum of
 * contract section 6 for a fringe whose phase is linear in k. The limit is P's full width at half
 * maximum about d = 0.
 *
 * Source: W. Drexler, J. G. Fujimoto (editors), Optical Coherence Tomography, 2nd edition, 2015,
 * chapter 2: the axial point spread function is the transform of the spectrum. Pure; any thread. */
#ifndef OCT_ANALYSIS_CALIBRATE_SOURCE_H
#define OCT_ANALYSIS_CALIBRATE_SOURCE_H

#include <stdint.h>

/* Depth pixels, to 1e-6 of them; NaN: no light. amplitude, place: [n], place rising. */
double oct_source_limit_px(const double *amplitude, const double *place, uint32_t n, uint32_t p2);

/* The width of the peak that |sum_i (re + I im)_i w_i exp(-2 pi I d q_i / P2)|^2 has within two
 * pixels of near_px, and where it is: what the depth pixels of a line that fills its padding are
 * too coarse for. NaN: no light. */
double oct_source_peak_px(const double *re, const double *im, const double *place, uint32_t n,
                          uint32_t p2, double near_px, double *at_px);

/* P(d) / P(0): the side lobes of a lumpy source. */
double oct_source_psf(const double *amplitude, const double *place, uint32_t n, uint32_t p2,
                      double d);

/* The full width at half maximum of n values over camera samples, from the outermost sample above
 * half of the largest on one side to that on the other, between samples linear: *first and *last.
 * NaN where a side lies beyond the camera. */
void oct_source_half(const double *values, uint32_t n, double *first, double *last);

#endif
