#include "pipeline/plan/grid.h"

#include "pipeline/plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

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
static enum oct_err from_wavelengths(struct oct_k_grid *grid, const struct oct_geometry *g,
                                     const struct oct_calibration *cal, struct oct_error *err)
{
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
static enum oct_err from_kmap(struct oct_k_grid *grid, const struct oct_geometry *g,
                              const struct oct_calibration *cal, struct oct_error *err)
{
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
        grid->axis[p] = interpolate(coordinate, s, n, camera_px(g, p), &hint);
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

enum oct_err oct_k_grid_init(struct oct_k_grid *grid, const struct oct_geometry *g,
                             const struct oct_calibration *cal, struct oct_error *err)
{
    *grid = (struct oct_k_grid){
        .n = g->upsampled,
        .is_wavelength = cal->n_wavelengths > 0,
        .axis = calloc(2 * (size_t)g->upsampled, sizeof(double)),
    };
    if (!grid->axis)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the k grid");
    grid->target = grid->axis + grid->n;
    return grid->is_wavelength ? from_wavelengths(grid, g, cal, err) : from_kmap(grid, g, cal, err);
}

void oct_k_grid_finish(struct oct_k_grid *grid)
{
    free(grid->axis);
    *grid = (struct oct_k_grid){0};
}

double oct_k_grid_place(const struct oct_k_grid *grid, uint32_t p)
{
    const double *axis = grid->axis;
    uint32_t last = grid->n - 1;
    double first = axis[0], at = axis[p], end = axis[last];
    if (grid->is_wavelength) { /* k = 2 pi / lambda */
        first = 2 * PI / first;
        at = 2 * PI / at;
        end = 2 * PI / end;
    }
    return (at - first) / (end - first) * last;
}
