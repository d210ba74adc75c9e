/* Source, spectrometer and camera: from the transformed depth profile to counts. */
#include "synth/model.h"

#include "pipeline/plan/geometry.h"

#include <stdlib.h>

static const double centre_nm = 850.0, span_nm = 98.0, full_span_samples = 832.0;
/* wavelength = centre + span/2 * (u + quadratic u^2 + cubic u^3), u = -1..1 over the camera. */
static const double quadratic = -0.035, cubic = 0.006;
/* Dispersion mismatch of the arms, rad um^2 and rad um^3 (contract step 5 scales by the k axis). */
static const double dispersion_2 = 90.0, dispersion_3 = -20.0;
/* Counts at 12 bits: dark level, reference arm at the source's peak, fringe of a unit amplitude,
 * read noise, and electrons a count for the shot noise. */
static const double dark_counts = 70.0, reference_counts = 2300.0, fringe_counts = 13.0;
static const float read_counts = 2.5f, electrons_per_count = 45.0f, source_noise = 0.0015f;

/* Two superluminescent diodes side by side: about 50 nm wide together. */
static double source_at(double nm, double stretch)
{
    double a = (nm - (centre_nm - 9.0 * stretch)) / (34.0 * stretch);
    double b = (nm - (centre_nm + 9.5 * stretch)) / (32.0 * stretch);
    return (0.93 * exp(-2.7726 * a * a) + exp(-2.7726 * b * b)) / 1.64;
}

static enum oct_err allocate(struct oct_camera *camera, size_t n, struct oct_error *err)
{
    double *all = calloc(n, sizeof(double) + 9 * sizeof(float) + sizeof(uint32_t));
    if (!all)
        return oct_fail(err, OCT_E_NO_MEMORY, "synth: no memory for a camera of %zu samples", n);
    camera->wavelengths_nm = all; /* owns all */
    camera->kappa = (float *)(void *)(all + n);
    camera->theta = camera->kappa + n;
    camera->weight = camera->theta + n;
    camera->offset = camera->weight + 4 * n;
    camera->dc = camera->offset + n;
    camera->fringe = camera->dc + n;
    camera->tap = (uint32_t *)(void *)(camera->fringe + n);
    return OCT_OK;
}

/* Camera coordinate c of the padded line, continued as contract step 4 does. */
static double wavelength_at(const struct oct_camera *camera, double c)
{
    const double *w = camera->wavelengths_nm;
    double i = fmin(fmax(floor(c), 0.0), (double)camera->n_samples - 2.0);
    return w[(size_t)i] + (c - i) * (w[(size_t)i + 1] - w[(size_t)i]);
}

/* The contract's k axis over the padded line, hence the depth scale and the unit t of a2, a3. */
static void set_axis(struct oct_camera *camera)
{
    double padded = oct_geometry_padded(camera->n_samples), upsampled = 2.0 * padded;
    double left = floor((padded - camera->n_samples) / 2.0);
    double first = 2e3 * OCT_PI / wavelength_at(camera, -left);
    double last =
        2e3 * OCT_PI / wavelength_at(camera, (upsampled - 1.0) * padded / upsampled - left);
    double span = last - first; /* negative: wavelengths rise */
    camera->axial_um = OCT_PI * (upsampled - 1.0) / (fabs(span) * upsampled);
    camera->depth_max_um = camera->axial_um * upsampled / 4.0;
    camera->k_centre = 2e3 * OCT_PI / centre_nm;
    camera->a2 = dispersion_2 * span * span / 4.0;
    camera->a3 = dispersion_3 * fabs(span * span * span) / 8.0;
    for (uint32_t i = 0; i < camera->n_samples; i++) {
        double k = 2e3 * OCT_PI / camera->wavelengths_nm[i];
        double t = 2.0 * (k - first) / span - 1.0;
        camera->kappa[i] = (float)(2.0 * (k - camera->k_centre));
        camera->theta[i] = (float)(t * t * (camera->a2 + t * camera->a3));
    }
}

/* Where each pixel's k lies on the uniform grid that the FFT of a profile gives, whose step in
 * 2k is 2 pi / (OCT_K_GRID * OCT_CELL_UM), and its four-point Lagrange weights. A profile fills
 * 1/7 of the grid's period, so four points are off by less than 1e-3. */
static void set_taps(struct oct_camera *camera)
{
    for (uint32_t i = 0; i < camera->n_samples; i++) {
        double at = camera->kappa[i] * OCT_K_GRID * OCT_CELL_UM / (2.0 * OCT_PI);
        double f = at - floor(at);
        float *w = camera->weight + 4 * (size_t)i;
        camera->tap[i] = (uint32_t)((int64_t)floor(at) - 1 + OCT_K_GRID) % OCT_K_GRID;
        w[0] = (float)(-f * (f - 1) * (f - 2) / 6);
        w[1] = (float)((f + 1) * (f - 1) * (f - 2) / 2);
        w[2] = (float)(-(f + 1) * f * (f - 2) / 2);
        w[3] = (float)((f + 1) * f * (f - 1) / 6);
    }
}

/* Fixed pattern: pixels differ in gain and dark level, taps of the sensor alternate, and a window
 * in front of it ripples the spectrum. */
static void set_counts(struct oct_camera *camera, uint64_t seed, double stretch)
{
    double phase = 2.0 * OCT_PI * oct_uniform(oct_hash(seed, OCT_STREAM_CAMERA, -1, 0));
    for (uint32_t i = 0; i < camera->n_samples; i++) {
        double gain = 1.0 + 0.006 * oct_normal(oct_hash(seed, OCT_STREAM_CAMERA, i, 0)) +
                      (i % 2 ? 0.004 : -0.004);
        double dark = dark_counts + 2.0 * oct_normal(oct_hash(seed, OCT_STREAM_CAMERA, i, 1)) +
                      (i % 4 < 2 ? 3.0 : -3.0);
        double source = source_at(camera->wavelengths_nm[i], stretch) *
                        (1.0 + 0.015 * sin(1.9 * camera->kappa[i] * 10.0 + phase));
        camera->offset[i] = (float)dark * camera->scale;
        camera->dc[i] = (float)(reference_counts * source * gain) * camera->scale;
        camera->fringe[i] = (float)(fringe_counts * source * gain) * camera->scale;
    }
}

enum oct_err oct_camera_init(struct oct_camera *camera, uint64_t seed, uint32_t n_samples,
                             unsigned bits, struct oct_error *err)
{
    double stretch = fmin(1.0, n_samples / full_span_samples);
    enum oct_err e = allocate(camera, n_samples, err);
    if (e)
        return e;
    camera->n_samples = n_samples;
    camera->full_scale = (float)((1u << bits) - 1u);
    camera->scale = (camera->full_scale + 1.0f) / 4096.0f;
    for (uint32_t i = 0; i < n_samples; i++) {
        double u = 2.0 * i / (n_samples - 1.0) - 1.0;
        camera->wavelengths_nm[i] =
            centre_nm + 0.5 * span_nm * stretch * u * (1.0 + u * (quadratic + u * cubic));
    }
    set_axis(camera);
    set_taps(camera);
    set_counts(camera, seed, stretch);
    return OCT_OK;
}

void oct_camera_finish(struct oct_camera *camera)
{
    free(camera->wavelengths_nm);
}

/* Finite pixels and spectrometer resolution: -6 dB at the end of the depth range. */
float oct_camera_rolloff(const struct oct_camera *camera, double depth_um)
{
    double u = depth_um / camera->depth_max_um;
    return (float)exp(-0.69 * u * u);
}

/* About normal, unit variance: four 16-bit uniforms of one hash. */
static inline float noise_at(uint64_t seed, uint32_t i)
{
    uint64_t h = oct_mix64(seed + UINT64_C(0x9e3779b97f4a7c15) * i);
    uint32_t sum =
        (uint32_t)((h & 0xffff) + ((h >> 16) & 0xffff) + ((h >> 32) & 0xffff) + (h >> 48));
    return ((float)sum - 131070.0f) * (1.7320508f / 65536.0f);
}

uint32_t oct_camera_expose(const struct oct_camera *camera, const float *spectrum, double depth_um,
                           uint64_t noise_seed, uint16_t *samples)
{
    float depth = (float)depth_um;
    float carrier = (float)fmod(2.0 * camera->k_centre * depth_um, 2.0 * OCT_PI);
    float power = 1.0f + source_noise * (float)oct_normal(oct_mix64(noise_seed));
    float read = read_counts * camera->scale, shot = camera->scale / electrons_per_count;
    uint32_t n_clipped = 0;
    for (uint32_t i = 0; i < camera->n_samples; i++) {
        const float *w = camera->weight + 4 * (size_t)i;
        float re = 0, im = 0;
        for (uint32_t t = 0; t < 4; t++) {
            const float *e = spectrum + 2 * (size_t)((camera->tap[i] + t) % OCT_K_GRID);
            re += w[t] * e[0];
            im += w[t] * e[1];
        }
        /* k falls along the line, so +theta together with -2kz is a delay that grows with t, as
         * the contract's exp(-i theta) undoes it. */
        float angle = camera->theta[i] - camera->kappa[i] * depth - carrier;
        float fringe = re * cosf(angle) - im * sinf(angle);
        float light = camera->dc[i] * power + camera->fringe[i] * fringe;
        float sigma = sqrtf(read * read + shot * fmaxf(light, 0.0f));
        float counts = camera->offset[i] + light + sigma * noise_at(noise_seed, i) + 0.5f;
        n_clipped += counts < 0.0f || counts >= camera->full_scale + 1.0f;
        samples[i] = (uint16_t)fminf(fmaxf(counts, 0.0f), camera->full_scale);
    }
    return n_clipped;
}
