/* Fractions of a pixel: the maximum of the correlation as the trigonometric polynomial that its
 * cross-spectrum is, within one pixel of a whole-pixel shift, and how sure that is.
 *
 * Both pictures are cut to their overlap at the whole pixel, less their means, tapered linearly
 * over 1/16 of each side. Of their transforms F, G
 *
 *     c(d) = sum over k of w(k) Re(conj(F) G exp(i k d))
 *
 * is largest. The weights are those of the likelihood of a shift of pictures with noise (Hannan and
 * Thomson 1973; Knapp and Carter 1976): of the mean powers P_F, P_G and of what the pictures have
 * in common, S, around k
 *
 *     w = S / (P_F P_G - S^2),     S^2 = |mean of conj(F) G|^2 less what chance makes of it.
 *
 * So frequencies count by how sure their phase is: of white noise N, w = S / (2 S N + N^2), all
 * alike where S is above the noise, falling with S below. Speckle that pictures do not share weighs
 * nothing, whichever its size; no scale is to be chosen. Means are of bands of an octave in k_y and
 * k_x each, from 16 bins on; a fraction of a pixel turns the phases in one by little. Noise is a
 * hundredth of the pictures' variance at least: without any, phases of the taper would count.
 *
 * The matrix DFT of Guizar-Sicairos 2008 finds the maximum on a grid of 1/20, then 1/400 px;
 * Newton's method on the same polynomial finds the same maximum faster and is taken where it stays
 * near and the value rises.
 *
 * Its covariance is that of any maximum of a sum (Huber 1967; White 1980, "sandwich")
 *
 *     H^-1 B H^-1,     H: the curvature of c there,     B = r sum of k k' (2 w Im(...))^2
 *
 * over pairs k, -k, of what is left of the imaginary parts, be it noise, speckle or shadows. With
 * the weights above that is the bound of Cramer and Rao, 1 / sum of k k' C / (1 - C), C the
 * coherence S^2 / P_F P_G. r: how many bins share what one of an untapered overlap without padding
 * says. What all bins have in common, as an error of interpolation, is not in it: below 0.003 px it
 * says little.
 *
 * One thread uses a struct oct_subpixel at a time. */
#ifndef OCT_ANALYSIS_ALIGN_SUBPIXEL_H
#define OCT_ANALYSIS_ALIGN_SUBPIXEL_H

#include "analysis/align/level.h"
#include "analysis/align/matcher.h"

struct oct_subpixel;

/* OCT_E_NO_MEMORY. */
enum oct_err oct_subpixel_create(struct oct_subpixel **subpixel, uint32_t height, uint32_t width,
                                 struct oct_error *err);
void oct_subpixel_destroy(struct oct_subpixel *subpixel); /* NULL is fine */

/* From now on all frequencies count alike, as of parts of a mosaic: within each the eye moved, and
 * what the parts share at low frequencies is warped apart from what they share at high ones. */
void oct_subpixel_even(struct oct_subpixel *subpixel);

struct oct_fraction {
    double y, x;       /* px, within one; before, a guess of them */
    double sd_y, sd_x; /* px, standard deviations; NaN: not known */
};

/* f(p) lies on g(p + d), d = (dy, dx), to the pixel; *fraction is what must be added. Where the two
 * overlap by less than two pixels: 0. */
void oct_subpixel_find(struct oct_subpixel *subpixel, const struct oct_level *f,
                       const struct oct_level *g, int32_t dy, int32_t dx,
                       struct oct_fraction *fraction);

/* The maximum of the parabola through the nine scores around a match: *y, *x within one pixel.
 * Along an axis where a score is NaN, or that has no maximum: 0. */
void oct_subpixel_parabola(const struct oct_match *match, double *y, double *x);

#endif
