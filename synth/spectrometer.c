#include "synth/spectrometer.h"

#include "pipeline/plan/geometry.h"
#include "synth/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_REFLECTORS 64u
#define LN2 0.69314718055994531

static const double dark_share = 0.02, source_share = 0.5; /* of full scale */
static const double shot_over_read = 4.0;                  /* variances, at the source's peak */
/* The bump: beside the middle, and narrower, in widths of the source. */
static const double bump_at = 0.42, bump_width = 0.16;

const struct oct_spectrometer_setup oct_spectrometer_standard = {
    .n_samples = 832,
    .bits = 12,
    .centre_nm = 850,
    .span_nm = 90,
    .quadratic = 0.012,
    .cubic = 0.008,
    .source_nm = 45,
    .spot_px = 0.8,
    .a2 = 30,
    .a3 = -6,
    .snr_db = 60,
    .gain = 1,
};

static double wavelength_at(const struct oct_spectrometer_setup *setup, double c)
{
    double u = 2 * c / (setup->n_samples - 1.0) - 1;
    return setup->centre_nm +
           0.5 * setup->span_nm * u * (1 + u * (setup->quadratic + u * setup->cubic));
}

/* rad / nm */
static double wave_number_at(const struct oct_spectrometer_setup *setup, double c)
{
    return 2 * OCT_PI / wavelength_at(setup, c);
}

static enum oct_err check(const struct oct_spectrometer_setup *p, struct oct_error *err)
{
    double reach = fabs(p->span_nm) / 2 * (1 + fabs(p->quadratic) + fabs(p->cubic));
    if (p->n_samples < 64 || !oct_geometry_padded(p->n_samples))
        return oct_fail(err, OCT_E_ARG, "camera.samples: a spectrometer has 64 to %u, not %u",
                        OCT_MAX_SAMPLES, p->n_samples);
    if (p->bits < 1 || p->bits > 16)
        return oct_fail(err, OCT_E_ARG, "camera.bits: %u, of 1 to 16", p->bits);
    if (!(fabs(2 * p->quadratic) + fabs(3 * p->cubic) < 1) || p->span_nm == 0 ||
        !(p->centre_nm - reach > 0) || !(p->source_nm > 0))
        return oct_fail(err, OCT_E_ARG, "synth: wavelengths that neither rise nor fall");
    if (!isfinite(p->bump) || p->bump < 0 || !(p->spot_px >= 0) || !isfinite(p->a2) ||
        !isfinite(p->a3) || !isfinite(p->snr_db) || !(p->gain > 0))
        return oct_fail(err, OCT_E_ARG,
                        "synth: no spectrometer: bump, spot, dispersion, SNR or "
                        "gain out of range");
    return OCT_OK;
}

/* The camera coordinate of wave number k, by bisection. */
static double coordinate_of(const struct oct_spectrometer_setup *setup, double k)
{
    double lo = 0, hi = setup->n_samples - 1.0;
    double sign = wave_number_at(setup, hi) > wave_number_at(setup, lo) ? 1 : -1;
    for (int i = 0; i < 60; i++) {
        double middle = (lo + hi) / 2;
        if (sign * (wave_number_at(setup, middle) - k) < 0)
            lo = middle;
        else
            hi = middle;
    }
    return (lo + hi) / 2;
}

/* k map, places on the P2 steps and depth scale. The map goes on beyond its ends with its end
 * slopes, over the padding (contract step 4). */
static void set_axis(struct oct_spectrometer *s)
{
    const struct oct_spectrometer_setup *p = &s->setup;
    uint32_t n = p->n_samples;
    double last = n - 1.0, k0 = wave_number_at(p, 0), k1 = wave_number_at(p, last);
    double left = floor((s->upsampled / 2.0 - n) / 2);
    for (uint32_t i = 0; i < n; i++) {
        s->wavelengths_nm[i] = wavelength_at(p, i);
        s->kmap_px[i] = coordinate_of(p, k0 + (k1 - k0) * i / last);
    }
    s->kmap_px[0] = 0;
    s->kmap_px[n - 1] = last;
    double first_slope = 1 / s->kmap_px[1], last_slope = 1 / (last - s->kmap_px[n - 2]);
    double begin = -left * first_slope;
    double end = last + ((s->upsampled - 1) / 2.0 - left - last) * last_slope;
    double steps = (s->upsampled - 1) / (end - begin); /* of the grid, in one of the map */
    for (uint32_t i = 0; i < n; i++) {
        double k = wave_number_at(p, i), h = 1e-3;
        double k_slope = (wave_number_at(p, i + h) - wave_number_at(p, i - h)) / (2 * h);
        s->place[i] = ((k - k0) / (k1 - k0) * last - begin) * steps;
        s->slope[i] = k_slope / (k1 - k0) * last * steps;
    }
    s->axial_um = 1e-3 * OCT_PI * last * steps / (s->upsampled * fabs(k1 - k0));
}

static void set_source(struct oct_spectrometer *s)
{
    const struct oct_spectrometer_setup *p = &s->setup;
    double k_centre = 2 * OCT_PI / p->centre_nm, width = k_centre * p->source_nm / p->centre_nm;
    double peak = 0;
    for (uint32_t i = 0; i < p->n_samples; i++) {
        double x = (2 * OCT_PI / s->wavelengths_nm[i] - k_centre) / width;
        double b = (x - bump_at) / bump_width;
        s->source[i] = exp(-4 * LN2 * x * x) + p->bump * exp(-4 * LN2 * b * b);
        peak = fmax(peak, s->source[i]);
    }
    for (uint32_t i = 0; i < p->n_samples; i++)
        s->source[i] *= source_share * s->full_scale / peak;
}

/* See the header: the power of a mirror at depth 0 is (sum w r source / 2)^2, that of the noise
 * sum w^2 variance, w = dq/di. */
static void set_noise(struct oct_spectrometer *s)
{
    double signal = 0, noise = 0, peak = source_share * s->full_scale;
    for (uint32_t i = 0; i < s->setup.n_samples; i++) {
        signal += s->slope[i] * OCT_SPECTROMETER_SHARE * s->source[i] / 2;
        noise += s->slope[i] * s->slope[i] * (1 + shot_over_read * s->source[i] / peak);
    }
    s->read_counts = fabs(signal) / sqrt(noise * pow(10, s->setup.snr_db / 10));
}

/* |sum source dq/di exp(-2 pi I d q / P2)|^2 */
static double intensity_at(const struct oct_spectrometer *s, double d)
{
    double re = 0, im = 0;
    for (uint32_t i = 0; i < s->setup.n_samples; i++) {
        double angle = 2 * OCT_PI * d * s->place[i] / s->upsampled, w = s->source[i] * s->slope[i];
        re += w * cos(angle);
        im += w * sin(angle);
    }
    return re * re + im * im;
}

static void set_limit(struct oct_spectrometer *s)
{
    double half = intensity_at(s, 0) / 2, lo = 0, hi = 0;
    while (intensity_at(s, hi) > half)
        lo = hi, hi += 0.25;
    for (int i = 0; i < 40; i++) {
        double middle = (lo + hi) / 2;
        if (intensity_at(s, middle) > half)
            lo = middle;
        else
            hi = middle;
    }
    s->limit_px = lo + hi;
}

enum oct_err oct_spectrometer_init(struct oct_spectrometer *s,
                                   const struct oct_spectrometer_setup *setup,
                                   struct oct_error *err)
{
    enum oct_err e = check(setup, err);
    *s = (struct oct_spectrometer){.setup = *setup};
    if (e)
        return e;
    size_t n = setup->n_samples;
    double *rows = calloc(5 * n, sizeof(double));
    if (!rows)
        return oct_fail(err, OCT_E_NO_MEMORY, "synth: no memory for a spectrometer");
    s->wavelengths_nm = rows;
    s->kmap_px = rows + n;
    s->place = rows + 2 * n;
    s->slope = rows + 3 * n;
    s->source = rows + 4 * n;
    s->upsampled = 2 * oct_geometry_padded(setup->n_samples);
    s->full_scale = (double)((1u << setup->bits) - 1u);
    s->dark = dark_share * s->full_scale;
    set_axis(s);
    set_source(s);
    set_noise(s);
    set_limit(s);
    return OCT_OK;
}

void oct_spectrometer_finish(struct oct_spectrometer *s)
{
    free(s->wavelengths_nm); /* the others lie behind it */
    memset(s, 0, sizeof(*s));
}

/* The fall-off at f cycles a sample. */
static double falloff(double f, double spot_px)
{
    double x = OCT_PI * f, g = x * spot_px;
    return (x > 1e-9 ? sin(x) / x : 1) * exp(-g * g / (4 * LN2));
}

void oct_spectrometer_light(const struct oct_spectrometer *s,
                            const struct oct_reflector *reflectors, unsigned n, double *counts)
{
    const struct oct_spectrometer_setup *p = &s->setup;
    double turn = 2 * OCT_PI / s->upsampled, t_slope = 2 / (s->upsampled - 1.0);
    for (uint32_t i = 0; i < p->n_samples; i++) {
        double t = t_slope * s->place[i] - 1;
        double theta = t * t * (p->a2 + t * p->a3);
        double theta_slope = t_slope * t * (2 * p->a2 + 3 * t * p->a3);
        double light = 1;
        for (unsigned r = 0; r < n; r++) {
            double depth = reflectors[r].depth_px;
            double f = fabs((turn * depth + theta_slope) * s->slope[i]) / (2 * OCT_PI);
            light += reflectors[r].share * falloff(f, p->spot_px) *
                     cos(turn * depth * s->place[i] + theta + reflectors[r].phase);
        }
        counts[i] = s->dark + p->gain * s->source[i] * light;
    }
}

void oct_spectrometer_expose(const struct oct_spectrometer *s,
                             const struct oct_reflector *reflectors, unsigned n, uint64_t seed,
                             int64_t line, double *counts)
{
    double peak = source_share * s->full_scale;
    oct_spectrometer_light(s, reflectors, n, counts);
    for (uint32_t i = 0; i < s->setup.n_samples; i++) {
        double shot = shot_over_read * s->setup.gain * s->source[i] / peak;
        counts[i] +=
            s->read_counts * sqrt(1 + shot) * oct_normal(oct_hash(seed, OCT_STREAM_NOISE, line, i));
    }
}

uint32_t oct_spectrometer_digitise(const struct oct_spectrometer *s, const double *counts,
                                   uint16_t *samples)
{
    uint32_t n_clipped = 0;
    for (uint32_t i = 0; i < s->setup.n_samples; i++) {
        double whole = floor(counts[i] + 0.5);
        n_clipped += whole < 0 || whole > s->full_scale;
        samples[i] = (uint16_t)fmin(fmax(whole, 0), s->full_scale);
    }
    return n_clipped;
}

enum oct_err oct_spectrometer_bscan(const struct oct_spectrometer *s,
                                    const struct oct_reflector *reflectors, unsigned n,
                                    double turns, uint32_t n_lines, uint64_t seed,
                                    uint16_t *samples, uint64_t *n_clipped, struct oct_error *err)
{
    struct oct_reflector now[MOST_REFLECTORS];
    double *counts;
    *n_clipped = 0;
    if (n > MOST_REFLECTORS)
        return oct_fail(err, OCT_E_ARG, "synth: %u reflectors, at most %u", n, MOST_REFLECTORS);
    counts = calloc(s->setup.n_samples, sizeof(double));
    if (!counts)
        return oct_fail(err, OCT_E_NO_MEMORY, "synth: no memory for an A-line");
    for (uint32_t j = 0; j < n_lines; j++) {
        for (unsigned r = 0; r < n; r++) {
            now[r] = reflectors[r];
            now[r].phase += 2 * OCT_PI * turns * j / n_lines;
        }
        oct_spectrometer_expose(s, now, n, seed, j, counts);
        *n_clipped +=
            oct_spectrometer_digitise(s, counts, samples + (size_t)j * s->setup.n_samples);
    }
    free(counts);
    return OCT_OK;
}
