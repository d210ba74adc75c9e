/* Maps of heights: before they become a level set their gaps, noise and stray heights, and after it
 * the noise that it leaves. [n_b][n_j], at least 3 x 3. Any thread. */
#ifndef OCT_ANALYSIS_LAYERS_DENOISE_HEIGHTS_H
#define OCT_ANALYSIS_LAYERS_DENOISE_HEIGHTS_H

#include "pipeline/base/err.h"

#include <stdint.h>

/* NaN becomes the mean of the neighbours that are known, from the sides of a gap inwards. One
 * height at least is known. OCT_E_NO_MEMORY. */
enum oct_err oct_heights_fill(float *heights, uint32_t n_b, uint32_t n_j, struct oct_error *err);

/* The noise's standard deviation, of the median magnitude of second differences in either
 * direction: slopes do not count, and few strays do not. NaN: left out; 0: too few are known.
 * alike: the noise is as alike along the A-lines as white noise that a Gaussian of so many A-lines
 * has smoothed; 0: it is white. Then the differences are of A-lines that are 2.5 times as far
 * apart, or of B-scans, whichever are smaller for noise: the surface itself bends, too. */
double oct_heights_noise(const float *heights, uint32_t n_b, uint32_t n_j, double alike);

/* Stray heights become what their neighbours say. A height strays when it lies off the line through
 * its two neighbours by more than 2.5 times its noise and 0.3 px, in all but one of the four
 * directions at least; at a side the line goes through two heights on one side. Slopes do not
 * count. OCT_E_NO_MEMORY. */
enum oct_err oct_heights_tame(float *heights, uint32_t n_b, uint32_t n_j, double noise,
                              struct oct_error *err);

/* Each height of `refined` becomes a mean of what nine filters make of the heights as found, in
 * four rounds. Eight are K = 2 G - G G, G a Gaussian of sigma s = 0.7, 1, 1.4 .. 8 heights, which
 * bend a surface less than G does; one leaves all as it is. A filter weighs
 * 1 / (bias^2 + variance)^4: bias^2 is the local mean (sigma 3) of (K r - r)^2, r the surface of
 * the round before, variance 0.146 noise^2 / s^2, or noise^2. So a wide filter counts where it
 * would bend the surface by less than the noise that it takes.
 *
 * alike: see above. What is traced line by line in a window has such noise: averaged along the
 * lines it stays, across the B-scans it goes. Then the Gaussians are of 0.7, 1 .. 4 times `alike`
 * (0.7 at least, 51 A-lines at most) along the lines, and of 0, 0.7, 1 .. 4 B-scans across them,
 * all with all; the variance is what each leaves of such noise, sqrt(2 a^2 / (2 a^2 + s^2 +
 * t^2)) for two Gaussians s and t along the lines, 1 / sqrt(2 pi (s^2 + t^2)) across them (of few
 * B-scans more is left); bias^2 is a mean over 8 A-lines
 * and 2 B-scans. In the first of then three rounds it is the mean of that of r and of what
 * (K x - x)^2 of the heights x themselves, over half as many again, has above what noise leaves:
 * the surface that comes in may have been smoothed both ways alike. For the same reason a stray is
 * in the first round one that lies outside what both neighbouring B-scans have, by more than 14
 * stray_noise.
 *
 * found: [n_b][n_j], NaN where a height is missing; those and heights off r by more than 2.7
 * stray_noise are replaced by r. refined: [n_b][n_j], finite; in: the denoised surface. noise,
 * stray_noise: standard deviations, in the unit of the heights; with noise 0 nothing changes.
 * Beyond the sides heights go on mirrored. Any thread; OCT_E_NO_MEMORY. */
enum oct_err oct_heights_refine(const float *found, uint32_t n_b, uint32_t n_j, double alike,
                                double noise, double stray_noise, float *refined,
                                struct oct_error *err);

#endif
