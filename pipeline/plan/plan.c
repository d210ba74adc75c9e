#include "pipeline/plan/plan.h"

#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

/* Everything of the k grid in double, before it becomes the engines' float tables. */
struct grid {
    uint32_t n;     /* P2 */
    double *axis;   /* [P2] lambda in nm, or s of a k map, at each upsampled position */
    double *target; /* [P2] where on that axis each output q lies */
};

/* Value of the piecewise linear function through (x[i], y[i]) at t, x strictly rising, continued
 * with the end slopes. *hint makes a rising sequence of t cheap. */
static double interpolate(const double *x, const double *y, size_t n, double t, size_t *hint)
{
    size_t i = *hint;
    while (i + 2 < n && x[i + 1] <= t)
        i++;
    *hint = i;
    return y[i] + (y[i + 1] - y[i]) / (x[i + 1] - x[i]) * (t - x[i]);
}

/* Camera coordinate of upsampled position p: c = p * P1 / P2 - left. */
static double camera_px(const struct oct_geometry *g, uint32_t p)
{
    return 0.5 * p - g->left;
}

/* +1 rising, -1 falling, 0 neither. */
static int direction(const double *values, size_t n)
{
    if (n < 2 || values[1] == values[0])
        return 0;
    int sign = values[1] > values[0] ? 1 : -1;
    for (size_t i = 1; i < n; i++)
        if (!((values[i] - values[i - 1]) * sign > 0))
            return 0;
    return sign;
}

static size_t first_turn(const double *values, size_t n)
{
    int sign = values[1] > values[0] ? 1 : -1;
    for (size_t i = 1; i < n; i++)
        if (!((values[i] - values[i - 1]) * sign > 0))
            return i;
    return n;
}

static bool are_nanometres(double first, double last)
{
    return fmin(first, last) >= OCT_MIN_WAVELENGTH_NM && fmax(first, last) <= OCT_MAX_WAVELENGTH_NM;
}

/* Whether the values are whole numbers in steps of one, up or down, that start below any
 * wavelength. */
static bool are_pixel_numbers(const double *values, size_t n)
{
    const double step = values[n - 1] > values[0] ? 1 : -1;
    for (size_t i = 0; i < n; i++)
        if (values[i] != values[0] + step * (double)i || values[i] != nearbyint(values[i]))
            return false;
    return fmin(values[0], values[n - 1]) < OCT_MIN_WAVELENGTH_NM;
}

/* Guesses the unit of the n values, of which the camera sees first to last: each unit in which both
 * ends are wavelengths, at most two; "" if there is none. */
static const char *unit_hint(const double *values, size_t n, double first, double last, char *text,
                             size_t text_bytes)
{
    static const struct {
        double nm; /* nanometres in one unit; `divided`: nm divided by the value */
        bool divided;
        const char *name, *cure;
    } units[] = {
        {1e3, false, "micrometres", "times 1000"},
        {1e9, false, "metres", "times 1e9"},
        {0.1, false, "angstrom", "a tenth of it"},
        {1e7, true, "wave numbers in 1/cm", "1e7 divided by them"},
        {2e3 * PI, true, "wave numbers in rad/um", "2000 pi divided by them"},
        {2 * PI, true, "wave numbers in rad/nm", "2 pi divided by them"},
        {2e9 * PI, true, "wave numbers in rad/m", "2e9 pi divided by them"},
    };
    size_t used = 0;
    text[0] = '\0';
    if (are_pixel_numbers(values, n))
        return ": these are pixel numbers: nanometres are wanted, or give calibration.kmap";
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && used < text_bytes; i++) {
        double nm = units[i].nm;
        if (units[i].divided ? are_nanometres(nm / first, nm / last)
                             : are_nanometres(nm * first, nm * last))
            used += (size_t)snprintf(text + used, text_bytes - used, "%s%s (%s is nm)",
                                     used ? " or " : ": looks like ", units[i].name, units[i].cure);
    }
    return text;
}

/* Checks the camera's own wavelengths, first to last; those of the padding may lie outside. */
static enum oct_err check_wavelengths(const struct oct_geometry *g,
                                      const struct oct_calibration *cal, struct oct_error *err)
{
    bool padded = cal->n_wavelengths == g->upsampled && g->n_samples != g->upsampled;
    double first = cal->wavelengths_nm[padded ? 2 * g->left : 0];
    double last =
        cal->wavelengths_nm[padded ? 2 * (g->left + g->n_samples - 1) : cal->n_wavelengths - 1];
    char hint[160];
    if (are_nanometres(first, last))
        return OCT_OK;
    return oct_fail_key(
        err, OCT_E_CONFIG, "calibration.wavelengths calibration.kmap",
        "calibration.wavelengths run from %g to %g over the camera, not within %g to "
        "%g nm%s; a spectrometer beyond that takes calibration.kmap",
        first, last, OCT_MIN_WAVELENGTH_NM, OCT_MAX_WAVELENGTH_NM,
        unit_hint(cal->wavelengths_nm, cal->n_wavelengths, first, last, hint, sizeof(hint)));
}

/* Contract step 4, wavelengths: lambda[p], then lambda'[q] = 2 pi / k[q], k in P2 equal steps. */
static enum oct_err grid_from_wavelengths(struct grid *grid, const struct oct_plan *plan,
                                          struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    const struct oct_calibration *cal = &plan->calibration;
    const double *given = cal->wavelengths_nm;
    size_t n = cal->n_wavelengths;

    if (n != g->n_samples && n != g->upsampled) {
        oct_fail_key(err, OCT_E_CONFIG, "calibration.wavelengths camera.samples",
                     "calibration.wavelengths has %zu values: it must have camera.samples (%u", n,
                     g->n_samples);
        return oct_error_go_on(err, OCT_E_CONFIG, "camera.samples", ") or P2 (%u) of them",
                               g->upsampled);
    }
    if (!direction(given, n))
        return oct_fail_key(err, OCT_E_CONFIG, "calibration.wavelengths",
                            "calibration.wavelengths, value %zu: wavelengths must rise or fall "
                            "strictly (%g nm follows %g nm)",
                            first_turn(given, n) + 1, given[first_turn(given, n)],
                            given[first_turn(given, n) - 1]);
    enum oct_err e = check_wavelengths(g, cal, err);
    if (e)
        return e;
    if (n == g->upsampled) {
        memcpy(grid->axis, given, n * sizeof(double));
    } else {
        for (uint32_t p = 0; p < grid->n; p++) {
            double c = camera_px(g, p);
            size_t i = c <= 0 ? 0 : (size_t)c;
            if (i > n - 2)
                i = n - 2;
            grid->axis[p] = given[i] + (given[i + 1] - given[i]) * (c - (double)i);
        }
    }
    double first = grid->axis[0], last = grid->axis[grid->n - 1];
    if (!(first > 0 && last > 0))
        return oct_fail_key(
            err, OCT_E_CONFIG, "calibration.wavelengths",
            "calibration.wavelengths: over the padded line they run from %g to %g nm, "
            "but must stay positive (end slopes too steep, or not nanometres)",
            first, last);
    if (!direction(grid->axis, grid->n))
        return oct_fail_key(
            err, OCT_E_CONFIG, "calibration.wavelengths",
            "calibration.wavelengths: neighbours lie too close together to tell the "
            "positions between them apart");
    double k_first = 2 * PI / first, k_last = 2 * PI / last;
    for (uint32_t q = 0; q < grid->n; q++)
        grid->target[q] = 2 * PI / (k_first + (k_last - k_first) * q / (grid->n - 1));
    return OCT_OK;
}

/* Contract step 4, k map: s runs 0..1 over the K coordinates and takes the place of lambda. */
static enum oct_err grid_from_kmap(struct grid *grid, const struct oct_plan *plan,
                                   struct oct_error *err)
{
    const struct oct_calibration *cal = &plan->calibration;
    size_t n = cal->n_kmap;
    enum oct_err e = OCT_OK;

    if (n < 2)
        return oct_fail_key(err, OCT_E_CONFIG, "calibration.kmap",
                            "calibration.kmap has %zu values: it must have at least 2", n);
    int sign = direction(cal->kmap_px, n);
    if (!sign)
        return oct_fail_key(err, OCT_E_CONFIG, "calibration.kmap",
                            "calibration.kmap, value %zu: coordinates must rise or fall strictly",
                            first_turn(cal->kmap_px, n) + 1);
    double *coordinate = malloc(2 * n * sizeof(double));
    if (!coordinate)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a k map of %zu values", n);
    double *s = coordinate + n;
    for (size_t m = 0; m < n; m++) { /* a falling map is read from its other end */
        size_t from = sign > 0 ? m : n - 1 - m;
        coordinate[m] = cal->kmap_px[from];
        s[m] = (double)from / (double)(n - 1);
    }
    size_t hint = 0;
    for (uint32_t p = 0; p < grid->n; p++)
        grid->axis[p] = interpolate(coordinate, s, n, camera_px(&plan->geometry, p), &hint);
    double first = grid->axis[0], last = grid->axis[grid->n - 1];
    for (uint32_t q = 0; q < grid->n; q++)
        grid->target[q] = first + (last - first) * q / (grid->n - 1);
    if (!direction(grid->axis, grid->n))
        e = oct_fail_key(
            err, OCT_E_CONFIG, "calibration.kmap",
            "calibration.kmap: neighbouring coordinates lie too close together to tell "
            "k steps apart");
    free(coordinate);
    return e;
}

/* Lagrange weights of n nodes at t: exact for a polynomial of degree n - 1, nodes unequal. n = 2
 * is linear interpolation. */
static void lagrange(const double *node, unsigned n, double t, double *weight)
{
    for (unsigned a = 0; a < n; a++) {
        double w = 1;
        for (unsigned b = 0; b < n; b++)
            if (b != a)
                w *= (t - node[b]) / (node[a] - node[b]);
        weight[a] = w;
    }
}

/* First node and weights for each output. The targets run the same way as the axis, so one sweep
 * finds all intervals l .. l+1. */
static enum oct_err compute_taps(const struct grid *grid, unsigned n_taps, uint32_t *tap_first,
                                 float *weight, struct oct_error *err)
{
    bool rising = grid->axis[1] > grid->axis[0];
    uint32_t l = 0;
    for (uint32_t q = 0; q < grid->n; q++) {
        double t = grid->target[q];
        while (l + 2 < grid->n && (rising ? grid->axis[l + 1] <= t : grid->axis[l + 1] >= t))
            l++;
        uint32_t first = l;
        if (n_taps == 4) {
            first = l ? l - 1 : 0;
            if (first > grid->n - 4)
                first = grid->n - 4;
        }
        double w[OCT_MAX_TAPS];
        lagrange(grid->axis + first, n_taps, t, w);
        tap_first[q] = first;
        for (unsigned k = 0; k < n_taps; k++) {
            weight[(size_t)k * grid->n + q] = (float)w[k];
            if (!isfinite((float)w[k]))
                return oct_fail_key(err, OCT_E_CONFIG, "calibration.wavelengths calibration.kmap",
                                    "calibration.wavelengths or calibration.kmap: values so large, "
                                    "small or uneven that k space cannot be computed");
        }
    }
    return OCT_OK;
}

/* Where t of the coefficients is -1 and +1. Camera sample c lies at upsampled position
 * 2 (c + left), a whole number, so the axis has its value. */
static enum oct_err find_dispersion_span(struct oct_plan *plan, const struct grid *grid,
                                         struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    const uint32_t at[] = {0, grid->n - 1, 2 * g->left, 2 * (g->left + g->n_samples - 1)};
    double k[4];

    plan->q_minus = 0;
    plan->q_plus = grid->n - 1;
    if (plan->calibration.dispersion_over == OCT_DISPERSION_OVER_GRID)
        return OCT_OK;
    for (int i = 0; i < 4; i++)
        k[i] = plan->calibration.n_wavelengths ? 2 * PI / grid->axis[at[i]] : grid->axis[at[i]];
    plan->q_minus = (k[2] - k[0]) / (k[1] - k[0]) * (grid->n - 1);
    plan->q_plus = (k[3] - k[0]) / (k[1] - k[0]) * (grid->n - 1);
    if (!(plan->q_plus - plan->q_minus >= 1)) /* less than a step, or no number */
        return oct_fail_key(
            err, OCT_E_CONFIG, "calibration.dispersion_over",
            "calibration.dispersion_over is spectrum, but the camera's samples take "
            "less than one of the P2 = %u steps in k: the wavelengths or the k map are "
            "too uneven, use grid",
            grid->n);
    return OCT_OK;
}

double oct_plan_theta(const struct oct_plan *plan, uint32_t q)
{
    double t = 2 * (q - plan->q_minus) / (plan->q_plus - plan->q_minus) - 1;
    return oct_calibration_theta(&plan->calibration, t);
}

/* Contract step 5, times 1/N of step 6. */
static enum oct_err compute_phase(struct oct_plan *plan, float *re, float *im,
                                  struct oct_error *err)
{
    const struct oct_calibration *cal = &plan->calibration;
    uint32_t n = plan->geometry.upsampled;
    double scale = 1.0 / plan->geometry.n_samples;

    if (cal->n_dispersion && cal->n_dispersion != n)
        return oct_fail_key(err, OCT_E_CONFIG, "calibration.dispersion",
                            "calibration.dispersion has %zu values: it must have P2 = %u of them",
                            cal->n_dispersion, n);
    for (uint32_t q = 0; q < n; q++) {
        double c = 1, s = 0;
        if (cal->n_dispersion) {
            c = cal->dispersion[2 * q];
            s = cal->dispersion[2 * q + 1];
        } else {
            double theta = oct_plan_theta(plan, q);
            if (!isfinite(theta))
                return oct_fail_key(err, OCT_E_CONFIG, "calibration.dispersion_a2",
                                    "calibration.dispersion_a2 and following: not finite");
            c = cos(theta);
            s = -sin(theta);
        }
        re[q] = (float)(c * scale);
        im[q] = (float)(s * scale);
        if (!isfinite(re[q]) || !isfinite(im[q]))
            return oct_fail_key(err, OCT_E_CONFIG, "calibration.dispersion",
                                "calibration.dispersion, value %u: too large for a phase", q + 1);
    }
    return OCT_OK;
}

/* Half a sample to the left in the padded grid, and the inverse's 1/P1. */
static void compute_shift(uint32_t padded, float *re, float *im)
{
    for (uint32_t k = 0; k < padded / 2; k++) {
        re[k] = (float)(cos(PI * k / padded) / padded);
        im[k] = (float)(sin(PI * k / padded) / padded);
    }
    re[padded / 2] = im[padded / 2] = 0;
}

/* Micrometres of optical path per depth pixel: the k span of P2 samples is one period of pixel 1,
 * and a reflector at z (one way) makes fringes cos(2 k z). */
static double axial_um(const struct grid *grid)
{
    double k_first = 2 * PI / grid->axis[0], k_last = 2 * PI / grid->axis[grid->n - 1];
    double span = fabs(k_last - k_first) * grid->n / (grid->n - 1); /* rad / nm */
    return PI / span * 1e-3;
}

static enum oct_err compute_k_tables(struct oct_plan *plan, uint32_t *tap_first, float *weight,
                                     struct oct_error *err)
{
    struct grid grid = {.n = plan->geometry.upsampled};
    enum oct_err e;

    grid.axis = calloc(2 * (size_t)grid.n, sizeof(double));
    if (!grid.axis)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the k grid");
    grid.target = grid.axis + grid.n;
    bool from_wavelengths = plan->calibration.n_wavelengths > 0;
    e = from_wavelengths ? grid_from_wavelengths(&grid, plan, err)
                         : grid_from_kmap(&grid, plan, err);
    if (e == OCT_OK)
        e = compute_taps(&grid, plan->n_taps, tap_first, weight, err);
    if (e == OCT_OK)
        e = find_dispersion_span(plan, &grid, err);
    if (e == OCT_OK)
        plan->axial_um = from_wavelengths ? axial_um(&grid) : NAN;
    free(grid.axis);
    return e;
}

static enum oct_err all_finite(const double *values, size_t n, const char *key,
                               struct oct_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return oct_fail_key(err, OCT_E_CONFIG, key, "%s, value %zu: not a finite number", key,
                                i + 1);
    return OCT_OK;
}

static enum oct_err check(const struct oct_geometry *g, const struct oct_calibration *cal,
                          enum oct_dc dc, struct oct_error *err)
{
    enum oct_err e;
    if (cal->n_wavelengths && cal->n_kmap)
        return oct_fail_key(
            err, OCT_E_CONFIG, "calibration.wavelengths calibration.kmap",
            "calibration.wavelengths and calibration.kmap are both given: one of them "
            "decides, remove the other");
    if (!cal->n_wavelengths && !cal->n_kmap)
        return oct_fail_key(
            err, OCT_E_CONFIG, "calibration.wavelengths calibration.kmap",
            "calibration.wavelengths is not set: name a file of wavelengths (nm, one a "
            "line) there, or a k map in calibration.kmap");
    if (dc == OCT_DC_BSCAN && g->n_lines < 2)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.lines pipeline.dc",
                            "scan.lines is 1: with pipeline.dc=bscan a single A-line would be "
                            "subtracted from itself; use dc=file or dc=none");
    if (dc == OCT_DC_FILE && cal->n_background != g->n_samples) {
        oct_fail_key(err, OCT_E_CONFIG, "calibration.background pipeline.dc camera.samples",
                     "calibration.background has %zu values: with pipeline.dc=file it must have "
                     "camera.samples (%u",
                     cal->n_background, g->n_samples);
        return oct_error_go_on(err, OCT_E_CONFIG, "camera.samples", ")");
    }
    if ((e = all_finite(cal->wavelengths_nm, cal->n_wavelengths, "calibration.wavelengths", err)) ||
        (e = all_finite(cal->kmap_px, cal->n_kmap, "calibration.kmap", err)) ||
        (e = all_finite(cal->dispersion, 2 * cal->n_dispersion, "calibration.dispersion", err)) ||
        (e = all_finite(cal->background, cal->n_background, "calibration.background", err)))
        return e;
    return OCT_OK;
}

static enum oct_err fill_tables(struct oct_plan *plan, struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    size_t p2 = g->upsampled, half = g->padded / 2 + 1;
    uint32_t *tap_first = oct_aligned_calloc(64, p2, sizeof(*tap_first));
    float *weight = oct_aligned_calloc(64, plan->n_taps * p2, sizeof(float));
    float *phase_re = oct_aligned_calloc(64, p2, sizeof(float)),
          *phase_im = oct_aligned_calloc(64, p2, sizeof(float));
    float *shift_re = oct_aligned_calloc(64, half, sizeof(float)),
          *shift_im = oct_aligned_calloc(64, half, sizeof(float));
    float *background = oct_aligned_calloc(64, g->n_samples, sizeof(float));

    plan->tap_first = tap_first;
    plan->weight = weight;
    plan->phase_re = phase_re;
    plan->phase_im = phase_im;
    plan->shift_re = shift_re;
    plan->shift_im = shift_im;
    plan->background = background;
    if (!tap_first || !weight || !phase_re || !phase_im || !shift_re || !shift_im || !background)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the tables of the plan");
    if (plan->dc == OCT_DC_FILE) {
        for (uint32_t i = 0; i < g->n_samples; i++) {
            background[i] = (float)plan->calibration.background[i];
            if (!(fabs(plan->calibration.background[i]) < 1e9))
                return oct_fail_key(
                    err, OCT_E_CONFIG, "calibration.background",
                    "calibration.background, value %u: %g are no counts of a camera", i + 1,
                    plan->calibration.background[i]);
        }
    } else {
        free(background);
        plan->background = NULL;
    }
    compute_shift(g->padded, shift_re, shift_im);
    enum oct_err e = compute_k_tables(plan, tap_first, weight, err);
    return e ? e : compute_phase(plan, phase_re, phase_im, err);
}

enum oct_err oct_plan_create(struct oct_plan **out, const struct oct_geometry *geometry,
                             const struct oct_calibration *calibration, enum oct_dc dc,
                             enum oct_interpolation interpolation, struct oct_error *err)
{
    *out = NULL;
    enum oct_err e = check(geometry, calibration, dc, err);
    if (e)
        return e;
    struct oct_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the plan");
    plan->geometry = *geometry;
    plan->dc = dc;
    plan->interpolation = interpolation;
    plan->n_taps = interpolation == OCT_INTERPOLATION_CUBIC ? 4 : 2;
    e = oct_calibration_copy(&plan->calibration, calibration);
    if (e)
        oct_fail(err, e, "out of memory for the calibration");
    else
        e = fill_tables(plan, err);
    if (e) {
        oct_plan_destroy(plan);
        return e;
    }
    *out = plan;
    return OCT_OK;
}

void oct_plan_destroy(struct oct_plan *plan)
{
    if (!plan)
        return;
    free((void *)plan->tap_first);
    free((void *)plan->weight);
    free((void *)plan->phase_re);
    free((void *)plan->phase_im);
    free((void *)plan->shift_re);
    free((void *)plan->shift_im);
    free((void *)plan->background);
    oct_calibration_finish(&plan->calibration);
    free(plan);
}
