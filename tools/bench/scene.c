#include "tools/bench/scene.h"

#include "numeric/order.h"
#include "pipeline/flow/running_dc.h"
#include "pipeline/plan/grid.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

/* A spectrometer of 50 nm around 850 nm, k not linear in pixels, some dispersion. */
enum oct_err oct_bench_calibration(struct oct_calibration *cal, uint32_t n)
{
    cal->wavelengths_nm = malloc(n * sizeof(double));
    if (!cal->wavelengths_nm)
        return OCT_E_NO_MEMORY;
    cal->n_wavelengths = n;
    for (uint32_t i = 0; i < n; i++) {
        double t = (double)i / n;
        cal->wavelengths_nm[i] = 825 + 52 * t - 2.5 * t * t;
    }
    cal->coefficient[2] = 12;
    cal->coefficient[3] = -3;
    return OCT_OK;
}

/* Fringes of a few reflectors under a Gaussian source, and noise, 12 bits. */
static void fill_spectra(const struct oct_geometry *g, uint16_t *spectra, uint32_t seed)
{
    for (uint32_t j = 0; j < g->n_lines; j++)
        for (uint32_t i = 0; i < g->n_samples; i++) {
            double t = (double)i / g->n_samples, envelope = exp(-8 * (t - 0.5) * (t - 0.5));
            double fringes = 0;
            for (uint32_t r = 1; r <= 4; r++)
                fringes += cos(2 * PI * (r * 45.3 * t + 0.37 * j * r + seed)) * 60 / r;
            seed = seed * 1664525u + 1013904223u;
            double noise = (double)(seed >> 24) / 8 - 16;
            double value = 300 + 2600 * envelope + fringes * envelope + noise;
            spectra[(size_t)j * g->n_samples + i] = (uint16_t)value;
        }
}

static enum oct_err make_frame(struct oct_bench_scene *scene, unsigned f)
{
    const struct oct_geometry *g = &scene->plan->geometry;
    struct oct_raw_frame *in = &scene->in[f];
    scene->samples[f] = in->spectra = malloc(oct_geometry_spectra_bytes(g));
    in->line_valid = malloc(g->n_lines);
    scene->out[f].pixels = malloc(oct_geometry_image_bytes(g));
    if (!in->spectra || !in->line_valid || !scene->out[f].pixels)
        return OCT_E_NO_MEMORY;
    memset(in->line_valid, 1, g->n_lines);
    fill_spectra(g, in->spectra, f + 1);
    return oct_running_dc_alone(&scene->dc[f], scene->plan, in, NULL);
}

enum oct_err oct_bench_scene_fill(struct oct_bench_scene *scene, struct oct_error *err)
{
    for (unsigned f = 0; f < OCT_BENCH_FRAMES; f++)
        if (make_frame(scene, f))
            return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the benchmark's B-scans");
    return OCT_OK;
}

enum oct_err oct_bench_scene_pack(struct oct_bench_scene *scene, enum oct_lines_format format,
                                  struct oct_error *err)
{
    const struct oct_geometry *g = &scene->plan->geometry;
    const size_t n = (size_t)g->n_lines * g->n_samples;
    for (unsigned f = 0; f < OCT_BENCH_FRAMES; f++) {
        struct oct_raw_frame *in = &scene->in[f];
        in->format = (uint16_t)format;
        for (size_t i = 0; i < n && format == OCT_LINES_U8; i++)
            scene->samples[f][i] >>= 4;
        in->spectra = malloc(oct_raw_bytes(in, g));
        if (!in->spectra)
            return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the benchmark's B-scans");
        oct_samples_pack(in->spectra, scene->samples[f], n, format);
    }
    return OCT_OK;
}

void oct_bench_scene_finish(struct oct_bench_scene *scene)
{
    for (unsigned f = 0; f < OCT_BENCH_FRAMES; f++) {
        if (scene->in[f].spectra != scene->samples[f])
            free(scene->in[f].spectra);
        free(scene->samples[f]);
        free(scene->in[f].line_valid);
        free(scene->out[f].pixels);
        free(scene->dc[f]);
    }
    oct_plan_destroy(scene->plan);
    *scene = (struct oct_bench_scene){0};
}

/* ---- the check ---- */

/* u[p] of the 2x upsampled line by direct interpolation with the periodic kernel whose spectrum is
 * 1 below and 1/2 at the Nyquist frequency (contract step 3). */
static void upsample(const struct oct_geometry *g, const double *x, double *u)
{
    const uint32_t n = g->upsampled; /* the kernel's period, in halves of a sample; a power of 2 */
    double *kernel = calloc(n, sizeof(double));
    if (!kernel)
        abort();
    kernel[0] = 1;
    for (uint32_t p = 1; p < n; p += 2) {
        double away = 0.5 * p;
        kernel[p] =
            sin(PI * away) * cos(PI * away / g->padded) / (g->padded * sin(PI * away / g->padded));
    }
    for (uint32_t p = 0; p < n; p++) {
        u[p] = 0;
        for (uint32_t i = 0; i < g->n_samples; i++)
            u[p] += x[i] * kernel[(p - 2 * (g->left + i)) & (n - 1)];
    }
    free(kernel);
}

/* Dispersion, window and 1/N at place q, between two entries of the plan's table. */
static double complex phase_at(const struct oct_plan *plan, double q)
{
    const uint32_t last = plan->geometry.upsampled - 2, low = q < last ? (uint32_t)q : last;
    const double part = q - low;
    const float *re = plan->phase_re + low, *im = plan->phase_im + low;
    return (1 - part) * ((double)re[0] + I * (double)im[0]) +
           part * ((double)re[1] + I * (double)im[1]);
}

/* nufft: where the camera's samples lie on the P2 steps. */
static bool find_places(const struct oct_plan *plan, double *q)
{
    const struct oct_geometry *g = &plan->geometry;
    struct oct_k_grid grid;
    enum oct_err e = oct_k_grid_init(&grid, g, &plan->calibration, NULL);
    for (uint32_t i = 0; i < g->n_samples && !e; i++)
        q[i] = oct_k_grid_place(&grid, 2 * (g->left + i));
    oct_k_grid_finish(&grid);
    return !e;
}

/* nufft in double, sample by sample: no grid and no kernel (contract section 6). */
static void reconstruct_exactly(const struct oct_plan *plan, const double *x, double *intensity)
{
    const struct oct_geometry *g = &plan->geometry;
    uint32_t n = g->n_samples;
    double *q = malloc(n * sizeof(double));
    double complex *sum = calloc(g->depth, sizeof(double complex));
    if (!q || !sum || !find_places(plan, q))
        abort();
    for (uint32_t i = 0; i < n; i++) {
        uint32_t low = i > 0 ? i - 1 : 0, high = i + 1 < n ? i + 1 : n - 1;
        const double w = x[i] * (q[high] - q[low]) / (high - low);
        const double turn = -2 * PI * q[i] / g->upsampled;
        const double complex step = cexp(I * turn);
        double complex z = w * phase_at(plan, q[i]) * cexp(I * (turn * g->crop_first));
        for (uint32_t d = 0; d < g->depth; d++, z *= step)
            sum[d] += z;
    }
    for (uint32_t d = 0; d < g->depth; d++)
        intensity[d] = creal(sum[d]) * creal(sum[d]) + cimag(sum[d]) * cimag(sum[d]);
    free(q);
    free(sum);
}

/* B-scan line j in double: intensity of the kept pixels. */
static void reconstruct(const struct oct_plan *plan, const double *x, double *intensity)
{
    const struct oct_geometry *g = &plan->geometry;
    const uint32_t n = g->upsampled;
    double *u = malloc(n * sizeof(double));
    double complex *z = malloc(n * sizeof(*z)), *turn = malloc(n * sizeof(*turn));
    if (!u || !z || !turn)
        abort();
    upsample(g, x, u);
    for (uint32_t q = 0; q < n; q++) {
        double sum = 0;
        for (unsigned t = 0; t < plan->n_taps; t++)
            sum += (double)plan->weight[(size_t)t * n + q] * u[plan->tap_first[q] + t];
        z[q] = sum * ((double)plan->phase_re[q] + I * (double)plan->phase_im[q]);
        turn[q] = cexp(-2 * PI * I * q / n);
    }
    for (uint32_t d = 0; d < g->depth; d++) {
        double complex sum = 0;
        for (uint32_t q = 0; q < n; q++)
            sum += z[q] * turn[(g->crop_first + d) * q & (n - 1)];
        intensity[d] = creal(sum) * creal(sum) + cimag(sum) * cimag(sum);
    }
    free(u);
    free(z);
    free(turn);
}

static void subtract_dc(const struct oct_bench_scene *scene, unsigned f, uint32_t j, double *x)
{
    const struct oct_plan *plan = scene->plan;
    const struct oct_geometry *g = &plan->geometry;
    const uint16_t *a = scene->samples[f];
    const bool mean = plan->chain.dc == OCT_DC_BSCAN || plan->chain.dc == OCT_DC_RUNNING;
    for (uint32_t i = 0; i < g->n_samples; i++) {
        double dc = plan->chain.dc == OCT_DC_FILE ? plan->calibration.background[i] : 0;
        for (uint32_t m = 0; mean && m < g->n_lines; m++)
            dc += (double)a[(size_t)m * g->n_samples + i] / g->n_lines;
        x[i] = a[(size_t)j * g->n_samples + i] - dc;
    }
}

/* How far `value` lies outside of low .. high. */
static double outside(double value, double low, double high)
{
    return fmax(fmax(low - value, value - high), 0);
}

/* spread: what the amplitude may be off. */
static double pixel_error(const struct oct_bench_scene *scene, unsigned f, size_t at,
                          double intensity, double most, double spread)
{
    const struct oct_image_frame *out = &scene->out[f];
    double amplitude = sqrt(intensity), db[2];
    for (int k = 0; k < 2; k++)
        db[k] = 20 * log10(fmax(amplitude + (k ? spread : -spread), 1e-6));
    if (scene->plan->geometry.sample_type == OCT_SAMPLE_F32)
        return 20 * log10(amplitude) > most - 80
                   ? outside((double)((const float *)out->pixels)[at], db[0], db[1])
                   : 0;
    for (int k = 0; k < 2; k++)
        db[k] = fmin(fmax(round((db[k] - out->lo) / (out->hi - out->lo) * 255), 0), 255);
    return outside(((const uint8_t *)out->pixels)[at], db[0], db[1]);
}

/* Of the largest amplitude: 0 but with nufft. */
static double accuracy(const struct oct_plan *plan)
{
    return plan->chain.interpolation == OCT_INTERPOLATION_NUFFT
               ? pow(10, oct_spread_error_db(plan->spread.n_taps) / 20)
               : 0;
}

double oct_bench_scene_error(const struct oct_bench_scene *scene, unsigned f)
{
    const struct oct_plan *plan = scene->plan;
    const struct oct_geometry *g = &plan->geometry;
    const uint32_t lines[3] = {0, g->n_lines / 2, g->n_lines - 1};
    double *x = malloc((g->n_samples + g->depth) * sizeof(double)), worst = 0;
    if (!x)
        return INFINITY;
    double *intensity = x + g->n_samples;
    for (unsigned k = 0; k < 3; k++) {
        double most = 0;
        subtract_dc(scene, f, lines[k], x);
        if (plan->chain.interpolation == OCT_INTERPOLATION_NUFFT)
            reconstruct_exactly(plan, x, intensity);
        else
            reconstruct(plan, x, intensity);
        for (uint32_t d = 0; d < g->depth; d++)
            most = fmax(most, intensity[d]);
        for (uint32_t d = 0; d < g->depth; d++)
            worst = fmax(worst,
                         pixel_error(scene, f, (size_t)lines[k] * g->depth + d, intensity[d],
                                     10 * log10(fmax(most, 1e-12)), accuracy(plan) * sqrt(most)));
    }
    free(x);
    return worst;
}

/* ---- figures ---- */

double oct_bench_median(double *values, size_t n)
{
    if (n == 0)
        return 0;
    oct_doubles_sort(values, n);
    return values[n / 2];
}

enum oct_err oct_bench_fastest(oct_bench_timed *timed, void *context, uint64_t first,
                               double seconds, double *per_s, struct oct_error *err)
{
    double took = 1, best = 1e30;
    enum oct_err e = timed(context, first, &took, err);
    const double each = seconds / OCT_BENCH_REPEATS;
    const uint64_t n = (uint64_t)((double)first * each / fmax(took, 1e-6)) + first;
    for (int i = 0; i < OCT_BENCH_REPEATS && !e; i++) {
        e = timed(context, n, &took, err);
        best = fmin(best, took);
    }
    *per_s = (double)n / best;
    return e;
}

const char *oct_bench_range_name(enum oct_range range)
{
    return range == OCT_RANGE_AUTO ? "auto" : range == OCT_RANGE_MANUAL ? "manual" : "percentile";
}
