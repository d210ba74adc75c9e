/* Heights that a level set has denoised, freed of the noise that it leaves. */
#ifndef OCT_ANALYSIS_SURFACE_HEIGHTS_REFINE_H
#define OCT_ANALYSIS_SURFACE_HEIGHTS_REFINE_H

#include "pipeline/base/err.h"

#include <stdint.h>

/* Each height of `refined` becomes a mean of what nine filters make of the heights as found, in
 * four rounds. Eight are K = 2 G - G G, G a Gaussian of sigma s = 0.7, 1, 1.4 .. 8 heights, which
 * bend a surface less than G does; one leaves all as it is. A filter weighs
 * 1 / (bias^2 + variance)^4: bias^2 is the local mean (sigma 3) of (K r - r)^2, r the surface of
 * the round before, variance 0.146 noise^2 / s^2, or noise^2. So a wide filter counts where it
 * would bend the surface by less than the noise that it takes.
 *
 * found: [n_b][n_j], NaN where a height is missing; those and heights off r by more than 2.7
 * stray_noise are replaced by r. refined: [n_b][n_j], finite; in: the denoised surface. noise,
 * stray_noise: standard deviations, in the unit of the heights; with noise 0 nothing changes.
 * Beyond the sides the nearest height counts. Any thread; OCT_E_NO_MEMORY. */
enum oct_err oct_heights_refine(const float *found, uint32_t n_b, uint32_t n_j, double noise,
                                double stray_noise, float *refined, struct oct_error *err);

#endif
