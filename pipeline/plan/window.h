/* Spectral shaping: the spectrum is multiplied with a window over k, so that side lobes fall.
 *
 * Over the camera's own samples t runs from -1 (sample 0) to 1 (sample N - 1), linear in k:
 * t = 2 (q - q_0) / (q_(N-1) - q_0) - 1, where q_i is the place of sample i on the P2 steps in k.
 * At place q a spectrum is multiplied with
 *
 *     W(q) = A h(t) F(q)      |t| <= 1, else 0
 *
 *     hann      h = 0.5 + 0.5 cos(pi t)
 *     hamming   h = 0.54 + 0.46 cos(pi t)
 *     blackman  h = 0.42 + 0.5 cos(pi t) + 0.08 cos(2 pi t)
 *     gauss     h = 2^-(t / width)^2: its full width at half maximum is `width` of the span
 *     none      h = 1; without flatten W = 1 everywhere
 *     flat      h = 1, with flatten
 *
 * F = 1, or with flatten the division by the source's spectrum S, which noise does not follow where
 * there is no light:
 *
 *     F = S Smax / (S^2 + (0.05 Smax)^2)
 *
 * S is the recorded background at the samples, smoothed over them by a Gaussian whose sigma is N/64
 * samples (where the line ends its weights are divided by the sum of those left), and 0 where it is
 * below. F is linear in q between samples. A keeps the amplitude of a mirror: with w[i] = |dq/di|
 *
 *     sum_i A h F S w = sum_i S w      S = 1 where there is no background
 *
 * Source of the windows: F. J. Harris, "On the use of windows for harmonic analysis with the
 * discrete Fourier transform", Proc. IEEE 66 (1978). */
#ifndef OCT_PIPELINE_PLAN_WINDOW_H
#define OCT_PIPELINE_PLAN_WINDOW_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum oct_window {
    OCT_WINDOW_NONE,
    OCT_WINDOW_HANN,
    OCT_WINDOW_HAMMING,
    OCT_WINDOW_BLACKMAN,
    OCT_WINDOW_GAUSS,
    OCT_WINDOW_FLAT
};

#define OCT_MIN_WINDOW_WIDTH 0.05
#define OCT_MAX_WINDOW_WIDTH 2.0
#define OCT_STANDARD_WINDOW_WIDTH 0.5

/* All zero: none. */
struct oct_shaping {
    enum oct_window window;
    double width; /* gauss; 0: the standard */
    bool flatten; /* with any window; flat has it anyway */
};

/* Whether the source's spectrum is divided by. */
bool oct_shaping_flattens(const struct oct_shaping *shaping);

/* Whether W is 1 everywhere. */
bool oct_shaping_is_none(const struct oct_shaping *shaping);

/* W of one axis. Read-only after init. */
struct oct_shape {
    struct oct_shaping shaping;
    uint32_t n_samples;
    double scale; /* A */
    double *q;    /* [N] places of the samples; owned */
    double *flat; /* [N] F at each; owned with q */
};

/* h(t), 0 beyond -1 .. 1. */
double oct_window_at(enum oct_window window, double width, double t);

/* S: background and smooth are [n]; n >= 1. OCT_E_NO_MEMORY. */
enum oct_err oct_source_smooth(const double *background, uint32_t n, double *smooth);

/* q: [n] rising places, copied; background: [n] counts, or NULL. OCT_E_CONFIG: flatten without a
 * background or with one without light, or samples that take less than a step of q. finish is right
 * after a failure too. */
enum oct_err oct_shape_init(struct oct_shape *shape, const struct oct_shaping *shaping,
                            const double *q, uint32_t n, const double *background,
                            struct oct_error *err);
void oct_shape_finish(struct oct_shape *shape);

/* W(q), any q. */
double oct_shape_at(const struct oct_shape *shape, double q);

/* |dq/di| at sample i: central differences, one-sided at the ends. */
double oct_place_slope(const double *q, uint32_t n, uint32_t i);

#endif
