#include "analysis/flow/optics.h"

#include "pipeline/plan/grid.h"
#include "pipeline/plan/plan.h"

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846
#define NM_PER_UM 1e3

/* Of the samples. */
struct line {
    uint32_t n;
    double *q, *gain; /* [n] places on the P2 steps; (W w)_i */
};

static enum oct_err init_line(struct line *line, const struct oct_plan *plan,
                              const struct oct_k_grid *grid, struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    const struct oct_calibration *cal = &plan->calibration;
    struct oct_shape shape;
    *line = (struct line){.n = g->n_samples};
    line->q = malloc(2 * (size_t)line->n * sizeof(double));
    if (!line->q)
        return oct_fail(err, OCT_E_NO_MEMORY, "flow: out of memory");
    line->gain = line->q + line->n;
    for (uint32_t i = 0; i < line->n; i++)
        line->q[i] = oct_k_grid_place(grid, 2 * (g->left + i));
    const enum oct_err e =
        oct_shape_init(&shape, &plan->chain.shaping, line->q, line->n,
                       cal->n_background == line->n ? cal->background : NULL, err);
    for (uint32_t i = 0; i < line->n && !e; i++)
        line->gain[i] = oct_place_slope(line->q, line->n, i) * oct_shape_at(&shape, line->q[i]);
    oct_shape_finish(&shape);
    return e;
}

/* Mean k, rad/um. */
static double mean_k(const struct line *line, const struct oct_plan *plan,
                     const struct oct_k_grid *grid, const double *source)
{
    double sum = 0, weights = 0;
    if (!grid->is_wavelength)
        return plan->calibration.lambda_nm > 0 ? 2 * PI * NM_PER_UM / plan->calibration.lambda_nm
                                               : NAN;
    for (uint32_t i = 0; i < line->n; i++) {
        const double weight = pow((source ? source[i] : 1) * line->gain[i], 2);
        sum += weight * 2 * PI * NM_PER_UM / grid->axis[2 * (plan->geometry.left + i)];
        weights += weight;
    }
    return sum / weights;
}

/* Shot noise: its variance is as the source. */
static void correlate_noise(struct oct_flow_optics *o, const struct line *line,
                            const struct oct_plan *plan, const double *source)
{
    double all = 0;
    for (uint32_t i = 0; i < line->n; i++)
        all += source[i] * line->gain[i] * line->gain[i];
    o->has_rho = all > 0;
    for (unsigned lag = 0; lag < OCT_FLOW_LAGS && o->has_rho; lag++) {
        double re = 0, im = 0;
        for (uint32_t i = 0; i < line->n; i++) {
            const double power = source[i] * line->gain[i] * line->gain[i] / all;
            const double turn = 2 * PI * lag * line->q[i] / plan->geometry.upsampled;
            re += power * cos(turn);
            im += power * sin(turn);
        }
        o->rho2[lag] = re * re + im * im;
    }
}

enum oct_err oct_flow_optics_init(struct oct_flow_optics *o, const struct oct_plan *plan,
                                  const double *source, double refractive_index, bool falls,
                                  struct oct_error *err)
{
    struct oct_k_grid grid = {.n = 0};
    struct line line = {.q = NULL};
    *o = (struct oct_flow_optics){.rad_um = NAN, .turns = {0, 1}};
    if (!plan)
        return OCT_OK;
    const struct oct_calibration *cal = &plan->calibration;
    const struct oct_geometry *g = &plan->geometry;
    if (!source && cal->n_background == g->n_samples)
        source = cal->background;
    enum oct_err e = oct_k_grid_init(&grid, g, cal, err);
    e = e ? e : init_line(&line, plan, &grid, err);
    if (!e) {
        const double *axis = grid.axis + 2 * (size_t)g->left;
        o->is_sign_known = grid.is_wavelength;
        falls = grid.is_wavelength ? axis[2] < axis[0] : falls;
        o->rad_um = (falls ? 2 : -2) * mean_k(&line, plan, &grid, source) * refractive_index;
        o->turns[0] = line.q[0] / g->upsampled;
        o->turns[1] = line.q[line.n - 1] / g->upsampled;
        if (source)
            correlate_noise(o, &line, plan, source);
    }
    oct_k_grid_finish(&grid);
    free(line.q);
    return e;
}
