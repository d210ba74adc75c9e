/* A k map as octd takes it: camera coordinates of equal steps, a phase, coefficients. */
#include "analysis/calibrate/kmap_ends.h"
#include "analysis/calibrate/solve.h"
#include "pipeline/plan/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void fill_phase(const struct oct_kmap *kmap, const struct oct_k_grid *grid,
                       const struct oct_geometry *g, int side, double *phase)
{
    const uint32_t n = kmap->n_samples;
    const double q0 = oct_k_grid_place(grid, 2 * g->left);
    const double q1 = oct_k_grid_place(grid, 2 * (g->left + n - 1));
    double slope[2];
    uint32_t i = 0;
    oct_kmap_end_slopes(kmap, slope);
    for (uint32_t q = 0; q < grid->n; q++) {
        const double k = (q - q0) / (q1 - q0);
        double theta;
        while (i + 2 < n && kmap->k[i + 1] <= k)
            i++;
        if (k < 0)
            theta = kmap->theta[0] + slope[0] * k;
        else if (k > 1)
            theta = kmap->theta[n - 1] + slope[1] * (k - 1);
        else
            theta = kmap->theta[i] + (kmap->theta[i + 1] - kmap->theta[i]) * (k - kmap->k[i]) /
                                         (kmap->k[i + 1] - kmap->k[i]);
        phase[2 * (size_t)q] = cos(theta);
        phase[2 * (size_t)q + 1] = -side * sin(theta);
    }
}

enum oct_err oct_kmap_calibration(const struct oct_kmap *kmap, const struct oct_geometry *geometry,
                                  int side, struct oct_calibration *cal, struct oct_error *err)
{
    const uint32_t n = kmap->n_samples;
    const size_t n_phase = kmap->has_theta ? geometry->upsampled : 0;
    struct oct_k_grid grid = {.n = 0};
    uint32_t i = 0;
    *cal = (struct oct_calibration){.n_kmap = n,
                                    .n_dispersion = n_phase,
                                    .kmap_px = calloc(n, sizeof(double)),
                                    .dispersion = calloc(2 * n_phase + 1, sizeof(double))};
    if (!cal->kmap_px || !cal->dispersion)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a k map of %u samples", n);
    for (uint32_t m = 0; m < n; m++) {
        const double k = (double)m / (n - 1);
        while (i + 2 < n && kmap->k[i + 1] <= k)
            i++;
        cal->kmap_px[m] = i + (k - kmap->k[i]) / (kmap->k[i + 1] - kmap->k[i]);
    }
    enum oct_err e = OCT_OK;
    if (kmap->has_theta) {
        e = oct_k_grid_init(&grid, geometry, cal, err);
        if (!e)
            fill_phase(kmap, &grid, geometry, side, cal->dispersion);
    }
    oct_k_grid_finish(&grid);
    return e;
}

/* a_0 .. a_order by weighted least squares; what they leave. */
static double fit_coefficients(const struct oct_kmap *kmap, unsigned order, double *a)
{
    const unsigned n = order + 1;
    double matrix[36] = {0}, right[6] = {0}, t[6], square = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint32_t i = kmap->first; i <= kmap->last; i++) {
            double sum = 0;
            t[0] = 1;
            for (unsigned p = 1; p < n; p++)
                t[p] = t[p - 1] * (2 * kmap->k[i] - 1);
            for (unsigned p = 0; p < n; p++)
                sum += pass ? right[p] * t[p] : 0;
            square += pass ? kmap->weight[i] * pow(kmap->theta[i] - sum, 2) : 0;
            for (unsigned p = 0; p < n && !pass; p++) {
                right[p] += kmap->weight[i] * t[p] * kmap->theta[i];
                for (unsigned q = 0; q < n; q++)
                    matrix[p * n + q] += kmap->weight[i] * t[p] * t[q];
            }
        }
        if (!pass && !oct_solve(matrix, right, n))
            return INFINITY;
    }
    memcpy(a, right, sizeof(right));
    return sqrt(square);
}

void oct_kmap_coefficients(const struct oct_kmap *kmap,
                           double coefficient[OCT_MAX_DISPERSION_ORDER + 1], double *rms_rad)
{
    double a[6] = {0};
    const double least = fit_coefficients(kmap, OCT_MAX_DISPERSION_ORDER, a);
    unsigned order = 2;
    while ((*rms_rad = fit_coefficients(kmap, order, a)) > 1.1 * least + 1e-3 &&
           order < OCT_MAX_DISPERSION_ORDER)
        order++;
    memset(coefficient, 0, (OCT_MAX_DISPERSION_ORDER + 1) * sizeof(double));
    for (unsigned m = 2; m <= order && kmap->has_theta; m++)
        coefficient[m] = a[m];
}
