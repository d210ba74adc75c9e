#include "analysis/calibrate/fringe_phase.h"

#include "analysis/calibrate/smooth.h"

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846
#define NOISE_SHARE 0.1 /* of the envelope's square */
#define DARK_SHARE 1e-4 /* of its largest: darker samples have no weight */

/* Samples that count: bright enough, and above the noise. */
static void weigh(struct oct_fringe *f, double noise2)
{
    double most = 0, sum = 0;
    uint32_t peak = 0;
    for (uint32_t i = 0; i < f->n_samples; i++)
        if (f->envelope[i] > most) {
            most = f->envelope[i];
            peak = i;
        }
    const double least = fmax(DARK_SHARE * most * most, noise2 / NOISE_SHARE);
    f->first = f->last = peak;
    for (uint32_t i = 0; i < f->n_samples; i++) {
        const double power = f->envelope[i] * f->envelope[i];
        f->weight[i] = power > least ? power : 0;
        sum += f->weight[i];
        if (f->weight[i] > 0) {
            f->first = i < f->first ? i : f->first;
            f->last = i > f->last ? i : f->last;
        }
    }
    for (uint32_t i = 0; i < f->n_samples; i++)
        f->weight[i] /= sum > 0 ? sum : 1;
}

/* The phase of (re, im), unwrapped from the brightest sample to both sides, plus the model. */
static void unwrap(struct oct_fringe *f, const double *re, const double *im, const double *model)
{
    uint32_t peak = 0;
    for (uint32_t i = 0; i < f->n_samples; i++)
        peak = f->envelope[i] > f->envelope[peak] ? i : peak;
    double before = atan2(im[peak], re[peak]);
    f->phase[peak] = before;
    for (uint32_t i = peak + 1; i < f->n_samples; i++) {
        const double now = atan2(im[i], re[i]);
        f->phase[i] = before = now - 2 * PI * round((now - before) / (2 * PI));
    }
    before = f->phase[peak];
    for (uint32_t i = peak; i-- > 0;) {
        const double now = atan2(im[i], re[i]);
        f->phase[i] = before = now - 2 * PI * round((now - before) / (2 * PI));
    }
    for (uint32_t i = 0; i < f->n_samples; i++)
        f->phase[i] += model[i];
}

/* What the phase is taken from: F, or 2 x with im NULL. */
struct signal {
    const double *re, *im;
    double factor;
    double phase_px, envelope_px; /* the Gaussians that smooth it */
};

/* Phase, envelope and weight by a model. */
static enum oct_err take_phase(struct oct_fringe *f, const struct signal *from, const double *model,
                               struct oct_error *err)
{
    const uint32_t n = f->n_samples;
    double *re = calloc(4 * (size_t)n, sizeof(*re));
    if (!re)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a fringe of %u samples", n);
    double *im = re + n, *smooth_re = im + n, *smooth_im = smooth_re + n;
    for (uint32_t i = 0; i < n; i++) {
        const double c = from->factor * cos(model[i]), s = from->factor * sin(model[i]);
        const double imaginary = from->im ? from->im[i] : 0;
        re[i] = from->re[i] * c + imaginary * s;
        im[i] = imaginary * c - from->re[i] * s;
    }
    enum oct_err e = oct_smooth(re, smooth_re, n, from->envelope_px, err);
    e = e ? e : oct_smooth(im, smooth_im, n, from->envelope_px, err);
    for (uint32_t i = 0; i < n && !e; i++)
        f->envelope[i] = hypot(smooth_re[i], smooth_im[i]);
    e = e ? e : oct_smooth(re, smooth_re, n, from->phase_px, err);
    e = e ? e : oct_smooth(im, smooth_im, n, from->phase_px, err);
    if (!e) {
        const double noise = f->noise_counts;
        weigh(f, 4 * noise * noise / fmax(1, 2 * sqrt(PI) * from->phase_px));
        unwrap(f, smooth_re, smooth_im, model);
    }
    free(re);
    return e;
}

/* Takes off the average what is left of it, without the fringe, when it is smoothed. */
static enum oct_err take_off_source(struct oct_fringe *f, struct oct_error *err)
{
    const uint32_t n = f->n_samples;
    double *rest = calloc(2 * (size_t)n, sizeof(*rest));
    if (!rest)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a fringe of %u samples", n);
    for (uint32_t i = 0; i < n; i++)
        rest[i] = f->average[i] - f->envelope[i] * cos(f->phase[i]);
    enum oct_err e = oct_smooth(rest, rest + n, n, 3 * n / (2 * PI * f->cycles), err);
    for (uint32_t i = 0; i < n && !e; i++)
        f->average[i] -= rest[n + i];
    free(rest);
    return e;
}

/* What the source leaves lies as far below the fringe as that has cycles, the negative frequencies
 * twice as far, and of a deep fringe twice as far as it lies below Nyquist. */
enum oct_err oct_fringe_refine(struct oct_fringe *f, const double *model, struct oct_error *err)
{
    const double n = f->n_samples, a_turn = 3 * n / (2 * PI);
    const double from_negative = 2 * fmin(f->cycles, fmax(1, n / 2 - f->cycles));
    const struct signal signal = {
        .re = f->average,
        .factor = 2,
        .phase_px = fmin(n / 30, fmax(n / 100, a_turn / fmin(f->cycles, from_negative))),
        .envelope_px = fmin(n / 60, fmax(n / 300, a_turn / from_negative))};
    const enum oct_err e = take_phase(f, &signal, model, err);
    return e ? e : take_off_source(f, err);
}

enum oct_err oct_fringe_first_phase(struct oct_fringe *f, double middle, double width,
                                    struct oct_error *err)
{
    double *model = calloc(f->n_samples, sizeof(*model));
    if (!model)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a fringe of %u samples",
                        f->n_samples);
    for (uint32_t i = 0; i < f->n_samples; i++)
        model[i] = 2 * PI * middle * i;
    const double px = 0.5 / (2 * PI * fmax(width, 1e-3));
    const struct signal signal = {
        .re = f->re, .im = f->im, .factor = 1, .phase_px = px, .envelope_px = px};
    enum oct_err e = take_phase(f, &signal, model, err);
    free(model);
    return e;
}
