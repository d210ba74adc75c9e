/* Whitening: every cone counts the same, whatever its brightness and the light around it.
 *
 *     e = -LoG_sigma(u),    then    e / sqrt(G_{8 sigma} * e^2)
 *
 * LoG_sigma is the Laplacian of a Gaussian, G_s * a Gaussian average over s. Both are sums over
 * sampled kernels that end at 4 sigma (4.5 at most, by rounding); beyond the border the picture is
 * its own mirror image, the outermost pixel twice, as in scipy.ndimage's "reflect". That of the
 * Laplacian sums to 0, so that a constant added to u changes nothing. The average over 8 sigma is
 * formed on blocks of 2 sigma at most and interpolated linearly between them.
 *
 * A place without cones has noise, which must not become as high as cones: where the average p of
 * e^2 is below 0.16 m, m its median over the picture, e becomes e p / (0.16 m)^(3/2), and what is
 * above 0 and below 0.3 sqrt(m) becomes 0 everywhere.
 *
 * Masked pixels are filled with the average of the valid ones around them (over sigma) before the
 * Laplacian, and left out of the average of e^2; e is 0 there.
 *
 * One thread uses a whitener at a time. */
#ifndef OCT_ANALYSIS_CONES_WHITEN_H
#define OCT_ANALYSIS_CONES_WHITEN_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_WHITEN_LEAST_SIGMA 0.5
#define OCT_WHITEN_MOST_SIGMA 15.0 /* larger ones: of a smaller picture */

struct oct_whitener;

/* For pictures of one size. *whitener is NULL on error: OCT_E_NO_MEMORY. */
enum oct_err oct_whitener_create(struct oct_whitener **whitener, uint32_t height, uint32_t width,
                                 struct oct_error *err);
void oct_whitener_destroy(struct oct_whitener *whitener); /* NULL is fine */

/* u, valid (NULL: all are; else u is finite where it is 1), e: [height][width]; sigma in pixels,
 * LEAST_SIGMA .. MOST_SIGMA. keeps_weak: no e becomes 0 for being low. False: there is no contrast,
 * and e is not set. */
bool oct_whitener_run(struct oct_whitener *whitener, const float *u, const uint8_t *valid,
                      double sigma, bool keeps_weak, float *e);

#endif
