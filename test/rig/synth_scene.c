#include "test/rig/synth_scene.h"

#include "test/rig/tap.h"

#include "pipeline/plan/geometry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

struct oct_retina_params synth_params(uint32_t n_samples, uint32_t n_lines, uint32_t n_bscans,
                                      uint64_t seed)
{
    return (struct oct_retina_params){.n_samples = n_samples,
                                      .n_lines = n_lines,
                                      .n_bscans = n_bscans,
                                      .seed = seed,
                                      .line_rate_hz = 100000};
}

struct oct_retina *synth_retina(const struct oct_retina_params *params)
{
    struct oct_retina *retina;

    must(oct_retina_create(&retina, params, &failure));
    return retina;
}

/* Contract step 4: the wavelength of the upsampled position p of the padded line. */
double synth_padded_wavelength(const double *nm, uint32_t n, double p)
{
    uint32_t padded = oct_geometry_padded(n);
    double c = p / 2.0 - (padded - n) / 2;
    double i = fmin(fmax(floor(c), 0.0), n - 2.0);

    return nm[(size_t)i] + (c - i) * (nm[(size_t)i + 1] - nm[(size_t)i]);
}

static void set_axis(struct synth_scene *s)
{
    double n_positions = 2.0 * oct_geometry_padded(SYNTH_N_SAMPLES);
    const double *nm = s->facts->wavelengths_nm;
    double k_first = 2e3 * PI / synth_padded_wavelength(nm, SYNTH_N_SAMPLES, 0);
    double k_last = 2e3 * PI / synth_padded_wavelength(nm, SYNTH_N_SAMPLES, n_positions - 1);

    for (uint32_t i = 0; i < SYNTH_N_SAMPLES; i++) {
        double t, u = (2e3 * PI / nm[i] - k_first) / (k_last - k_first);
        s->q[i] = u * (n_positions - 1);
        t = 2 * u - 1;
        s->theta[i] = s->facts->dispersion_a2 * t * t + s->facts->dispersion_a3 * t * t * t;
    }
}

float complex synth_kernel_at(const struct synth_scene *s, uint32_t i, double depth, double sign)
{
    uint32_t a = i ? i - 1 : 0, b = i + 1 < SYNTH_N_SAMPLES ? i + 1 : i;
    double share = (s->q[b] - s->q[a]) / (b - a);
    double phase = -2 * PI * s->q[i] * depth / (2.0 * oct_geometry_padded(SYNTH_N_SAMPLES));

    phase -= sign * s->theta[i];
    return (float complex)(share * (cos(phase) + I * sin(phase)) / SYNTH_N_SAMPLES);
}

void synth_bscan_mean(const struct synth_scene *s, uint32_t bscan, float *mean)
{
    const uint16_t *spectra = s->spectra + (size_t)bscan * SYNTH_N_LINES * SYNTH_N_SAMPLES;

    memset(mean, 0, SYNTH_N_SAMPLES * sizeof(*mean));
    for (size_t j = 0; j < SYNTH_N_LINES; j++)
        for (size_t i = 0; i < SYNTH_N_SAMPLES; i++)
            mean[i] += (float)spectra[j * SYNTH_N_SAMPLES + i] / SYNTH_N_LINES;
}

float synth_intensity(const float *line, const float complex *kernel)
{
    const float *k = (const float *)kernel;
    float re = 0, im = 0;

    for (size_t i = 0; i < SYNTH_N_SAMPLES; i++) {
        re += line[i] * k[2 * i];
        im += line[i] * k[2 * i + 1];
    }
    return re * re + im * im;
}

void synth_reconstruct(const struct synth_scene *s, uint32_t bscan, uint32_t j, const float *mean,
                       uint32_t first, uint32_t n, float *out)
{
    const uint16_t *samples = s->spectra + ((size_t)bscan * SYNTH_N_LINES + j) * SYNTH_N_SAMPLES;
    float line[SYNTH_N_SAMPLES];

    for (size_t i = 0; i < SYNTH_N_SAMPLES; i++)
        line[i] = (float)samples[i] - mean[i];
    for (uint32_t d = 0; d < n; d++)
        out[d] = synth_intensity(line, s->kernel + (size_t)(first + d) * SYNTH_N_SAMPLES);
}

double synth_surface(const struct synth_scene *s, enum oct_surface which, uint32_t bscan,
                     uint32_t j)
{
    size_t at = (SYNTH_FIRST_BSCAN + bscan) * SYNTH_N_LINES + j;

    return s->truth.surface_px[(size_t)which * SYNTH_N_BSCANS * SYNTH_N_LINES + at];
}

double synth_vessel(const struct synth_scene *s, uint32_t bscan, uint32_t j)
{
    return s->truth.vessel_um[(SYNTH_FIRST_BSCAN + bscan) * SYNTH_N_LINES + j];
}

struct synth_scene *synth_scene_open(const struct oct_retina_params *params, uint32_t first,
                                     uint32_t n)
{
    struct synth_scene *s = calloc(1, sizeof(*s));

    s->retina = synth_retina(params);
    s->facts = oct_retina_facts(s->retina);
    s->spectra = malloc((size_t)n * SYNTH_N_LINES * SYNTH_N_SAMPLES * 2);
    s->kernel = malloc((size_t)SYNTH_DEPTH * SYNTH_N_SAMPLES * sizeof(*s->kernel));
    s->q = calloc(SYNTH_N_SAMPLES, sizeof(double));
    s->theta = calloc(SYNTH_N_SAMPLES, sizeof(double));
    must(oct_retina_render(s->retina, 0, first, n, s->spectra, &s->n_saturated, &failure) ||
         oct_retina_truth(s->retina, 0, &s->truth, &failure));
    set_axis(s);
    for (uint32_t d = 0; d < SYNTH_DEPTH; d++)
        for (uint32_t i = 0; i < SYNTH_N_SAMPLES; i++)
            s->kernel[(size_t)d * SYNTH_N_SAMPLES + i] = synth_kernel_at(s, i, d, 1);
    return s;
}

void synth_scene_close(struct synth_scene *s)
{
    oct_retina_truth_finish(&s->truth);
    oct_retina_destroy(s->retina);
    free(s->spectra);
    free(s->kernel);
    free(s->q);
    free(s->theta);
    free(s);
}

int synth_scene_make(void **state)
{
    struct oct_retina_params params =
        synth_params(SYNTH_N_SAMPLES, SYNTH_N_LINES, SYNTH_N_BSCANS, 1);

    *state = synth_scene_open(&params, SYNTH_FIRST_BSCAN, SYNTH_N_RENDERED);
    return 0;
}

int synth_scene_drop(void **state)
{
    synth_scene_close(*state);
    return 0;
}
