/* The plan's dispersion and what remains, as one. */
#include "analysis/calibrate/sharpen.h"

#include "pipeline/plan/grid.h"

#include <math.h>
#include <stdlib.h>

#define ORDER OCT_MAX_DISPERSION_ORDER

/* Adds sum a_m t^m, t = scale * u + shift, as the coefficients of u^2 and higher. */
static void add_in(double *to, const double *a, double scale, double shift)
{
    for (int m = 2; m <= ORDER; m++) {
        double binomial = 1; /* m over k */
        for (int k = 0; k <= m; k++) {
            if (k >= 2)
                to[k] += a[m] * binomial * pow(scale, k) * pow(shift, m - k);
            binomial = binomial * (m - k) / (k + 1);
        }
    }
}

/* Where on the k grid the camera's first and last sample lie. */
static enum oct_err find_ends(const struct oct_plan *plan, double end[2], struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    struct oct_k_grid grid;
    enum oct_err e = oct_k_grid_init(&grid, g, &plan->calibration, err);
    if (e == OCT_OK) {
        end[0] = oct_k_grid_place(&grid, 2 * g->left);
        end[1] = oct_k_grid_place(&grid, 2 * (g->left + g->n_samples - 1));
    }
    oct_k_grid_finish(&grid);
    return e;
}

static enum oct_err combine_table(const struct oct_plan *plan, const double end[2],
                                  const double b[2], struct oct_sharpen_dispersion *c,
                                  struct oct_error *err)
{
    const double *from = plan->calibration.dispersion;
    c->n = plan->geometry.upsampled;
    c->table = malloc(2 * (size_t)c->n * sizeof(*c->table));
    if (!c->table)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a dispersion phase");
    for (uint32_t q = 0; q < c->n; q++) {
        const double t = 2 * (q - end[0]) / (end[1] - end[0]) - 1;
        const double theta = t * t * (b[0] + b[1] * t), re = cos(theta), im = -sin(theta);
        const double *f = from + 2 * (size_t)q;
        c->table[2 * (size_t)q] = f[0] * re - f[1] * im;
        c->table[2 * (size_t)q + 1] = f[0] * im + f[1] * re;
    }
    return OCT_OK;
}

enum oct_err oct_sharpen_combine(const struct oct_plan *plan, const double b[2],
                                 struct oct_sharpen_dispersion *c, struct oct_error *err)
{
    const struct oct_calibration *cal = &plan->calibration;
    double end[2];
    *c = (struct oct_sharpen_dispersion){.is_table = cal->n_dispersion > 0};
    enum oct_err e = find_ends(plan, end, err);
    if (e || c->is_table)
        return e ? e : combine_table(plan, end, b, c, err);
    const double last = plan->geometry.upsampled - 1, remaining[ORDER + 1] = {[2] = b[0], b[1]};
    /* t over the spectrum = scale * t over the grid + shift */
    const double scale = last / (end[1] - end[0]);
    const double shift = (last - end[0] - end[1]) / (end[1] - end[0]);
    const bool over_grid = cal->dispersion_over == OCT_DISPERSION_OVER_GRID;
    add_in(c->over_spectrum, remaining, 1, 0);
    add_in(c->over_grid, remaining, scale, shift);
    add_in(c->over_grid, cal->coefficient, over_grid ? 1 : scale, over_grid ? 0 : shift);
    add_in(c->over_spectrum, cal->coefficient, over_grid ? 1 / scale : 1,
           over_grid ? -shift / scale : 0);
    return OCT_OK;
}
