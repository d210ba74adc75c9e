/* Fractions of a pixel: the maximum of the correlation as the trigonometric polynomial that its
 * cross-spectrum is, within one pixel of a whole-pixel shift.
 *
 * Both pictures are cut to their overlap at the whole pixel, less their means, tapered linearly
 * over 1/16 of each side. The matrix DFT of Guizar-Sicairos 2008 finds the maximum on a grid of
 * 1/20, then 1/400 px; Newton's method on the same polynomial finds the same maximum faster and is
 * taken where it stays near and the value rises.
 *
 * One thread uses a struct oct_subpixel at a time. */
#ifndef OCT_ANALYSIS_ALIGN_SUBPIXEL_H
#define OCT_ANALYSIS_ALIGN_SUBPIXEL_H

#include "analysis/align/level.h"
#include "analysis/align/matcher.h"

struct oct_subpixel;

/* measure: FFTW's plan, see transforms.h. OCT_E_NO_MEMORY. */
enum oct_err oct_subpixel_create(struct oct_subpixel **subpixel, uint32_t height, uint32_t width,
                                 bool measure, struct oct_error *err);
void oct_subpixel_destroy(struct oct_subpixel *subpixel); /* NULL is fine */

/* f(p) lies on g(p + d), d = (dy, dx), to the pixel. *fraction_y and *fraction_x, within one pixel,
 * are what must be added; before, a guess of them. Where the two overlap by less than two pixels:
 * 0. smooth_px: of both, smoothed by a Gaussian of this standard deviation; 0: not. */
void oct_subpixel_find(struct oct_subpixel *subpixel, const struct oct_level *f,
                       const struct oct_level *g, int32_t dy, int32_t dx, double smooth_px,
                       double *fraction_y, double *fraction_x);

/* The maximum of the parabola through the nine scores around a match: *y, *x within one pixel.
 * Along an axis where a score is NaN, or that has no maximum: 0. */
void oct_subpixel_parabola(const struct oct_match *match, double *y, double *x);

#endif
