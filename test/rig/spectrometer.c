#include "test/rig/spectrometer.h"

#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846

void oct_spectrometer_rig(struct oct_spectrometer *s, const struct oct_spectrometer_setup *setup)
{
    must(oct_spectrometer_init(s, setup ? setup : &oct_spectrometer_standard, &failure));
}

void oct_spectrometer_rig_line(const struct oct_spectrometer *s, double depth_px, double phase,
                               uint64_t seed, double *counts)
{
    const struct oct_reflector mirror = {depth_px, OCT_SPECTROMETER_SHARE, phase};
    oct_spectrometer_expose(s, &mirror, 1, seed, 0, counts);
}

uint16_t *oct_spectrometer_rig_mirror(const struct oct_spectrometer *s, double depth_px,
                                      uint32_t n_lines, uint64_t seed)
{
    const struct oct_reflector mirror = {depth_px, OCT_SPECTROMETER_SHARE, 0.3};
    uint16_t *samples = malloc((size_t)n_lines * s->setup.n_samples * sizeof(*samples));
    uint64_t n_clipped;
    assert_non_null(samples);
    must(oct_spectrometer_bscan(s, &mirror, 1, 1, n_lines, seed, samples, &n_clipped, &failure));
    return samples;
}

/* What stands before exp(-2 pi I d q / P2) for each sample: [N][2], and q: [N]. */
static void read_line(const struct oct_spectrometer *s, const double *counts,
                      const struct oct_spectrometer_reading *reading, double *pairs, double *q)
{
    uint32_t n = s->setup.n_samples;
    for (uint32_t i = 0; i < n; i++)
        q[i] = reading && reading->place ? reading->place[i] : s->place[i];
    for (uint32_t i = 0; i < n; i++) {
        double t = 2 * s->place[i] / (s->upsampled - 1.0) - 1;
        double theta =
            reading && reading->theta ? reading->theta[i] : t * t * (s->setup.a2 + t * s->setup.a3);
        uint32_t before = i ? i - 1 : 0, after = i + 1 < n ? i + 1 : i;
        double w = fabs((q[after] - q[before]) / (after - before)) / n;
        w *= reading && reading->share ? reading->share[i] : 1;
        double x = counts[i] - s->dark - s->setup.gain * s->source[i];
        pairs[2 * i] = x * w * cos(theta);
        pairs[2 * i + 1] = -x * w * sin(theta);
    }
}

static double intensity_at(const struct oct_spectrometer *s, const double *pairs, const double *q,
                           double d)
{
    double re = 0, im = 0;
    for (uint32_t i = 0; i < s->setup.n_samples; i++) {
        double angle = -2 * PI * d * q[i] / s->upsampled, c = cos(angle), a = sin(angle);
        re += pairs[2 * i] * c - pairs[2 * i + 1] * a;
        im += pairs[2 * i] * a + pairs[2 * i + 1] * c;
    }
    return re * re + im * im;
}

void oct_spectrometer_rig_depths(const struct oct_spectrometer *s, const double *counts,
                                 const struct oct_spectrometer_reading *reading, double first,
                                 double step, uint32_t n, double *intensity)
{
    double *pairs = calloc(3 * (size_t)s->setup.n_samples, sizeof(double));
    assert_non_null(pairs);
    double *q = pairs + 2 * (size_t)s->setup.n_samples;
    read_line(s, counts, reading, pairs, q);
    for (uint32_t d = 0; d < n; d++)
        intensity[d] = intensity_at(s, pairs, q, first + step * d);
    free(pairs);
}

/* Where the intensity falls through `half` between lo, above it, and hi, below it. */
static double crossing(const struct oct_spectrometer *s, const double *pairs, const double *q,
                       double half, double lo, double hi)
{
    for (int i = 0; i < 24; i++) {
        double middle = (lo + hi) / 2;
        if (intensity_at(s, pairs, q, middle) > half)
            lo = middle;
        else
            hi = middle;
    }
    return (lo + hi) / 2;
}

static double half_width(const struct oct_spectrometer *s, const double *pairs, const double *q,
                         double at, double half, double step)
{
    double outside = at + step;
    while (fabs(outside - at) < 100 && intensity_at(s, pairs, q, outside) > half)
        outside += step;
    return fabs(crossing(s, pairs, q, half, outside - step, outside) - at);
}

void oct_spectrometer_rig_peak(const struct oct_spectrometer *s, const double *counts,
                               const struct oct_spectrometer_reading *reading, double depth_px,
                               double *at_px, double *fwhm_px, double *intensity)
{
    double *pairs = calloc(3 * (size_t)s->setup.n_samples, sizeof(double));
    assert_non_null(pairs);
    double *q = pairs + 2 * (size_t)s->setup.n_samples, best = 0, at = depth_px;
    read_line(s, counts, reading, pairs, q);
    for (double d = depth_px - 30; d <= depth_px + 30; d += 0.5) {
        double value = intensity_at(s, pairs, q, d);
        if (value > best) {
            best = value;
            at = d;
        }
    }
    for (double step = 0.25; step > 1e-5; step /= 2) {
        double centre = at;
        for (int side = -1; side <= 1; side += 2) {
            double value = intensity_at(s, pairs, q, centre + side * step);
            if (value > best) {
                best = value;
                at = centre + side * step;
            }
        }
    }
    *at_px = at;
    *intensity = best;
    *fwhm_px =
        half_width(s, pairs, q, at, best / 2, 0.25) + half_width(s, pairs, q, at, best / 2, -0.25);
    free(pairs);
}
