#include "pipeline/plan/axial.h"

#include "pipeline/plan/plan.h"

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846

/* step: rad / nm. */
static double axial_of(const struct oct_k_grid *grid, double step)
{
    return 1e-3 * PI / (step * grid->n);
}

static double by_wavelengths(const struct oct_k_grid *grid)
{
    double k_first = 2 * PI / grid->axis[0], k_last = 2 * PI / grid->axis[grid->n - 1];
    return axial_of(grid, fabs(k_last - k_first) / (grid->n - 1));
}

/* span: of k over the N samples, rad / nm. */
static double by_span(const struct oct_k_grid *grid, const struct oct_geometry *g, double span)
{
    double q_first = oct_k_grid_place(grid, 2 * g->left);
    double q_last = oct_k_grid_place(grid, 2 * (g->left + g->n_samples - 1));
    return axial_of(grid, span / fabs(q_last - q_first));
}

static double by_band(const struct oct_k_grid *grid, const struct oct_geometry *g,
                      const struct oct_calibration *cal)
{
    double half = cal->band_nm / 2;
    return by_span(grid, g, 2 * PI / (cal->lambda_nm - half) - 2 * PI / (cal->lambda_nm + half));
}

static enum oct_err check_band(const struct oct_calibration *cal, struct oct_error *err)
{
    double half = cal->band_nm / 2;
    if (!(cal->lambda_nm > 0) || !(cal->band_nm > 0))
        return oct_fail_key(err, OCT_E_CONFIG, "scan.bandwidth_nm scan.lambda_nm",
                            "scan.%s is not set: scan.lambda_nm and scan.bandwidth_nm belong "
                            "together, give both or none",
                            cal->band_nm > 0 ? "lambda_nm" : "bandwidth_nm");
    if (!(cal->lambda_nm - half >= OCT_MIN_WAVELENGTH_NM &&
          cal->lambda_nm + half <= OCT_MAX_WAVELENGTH_NM))
        return oct_fail_key(err, OCT_E_CONFIG, "scan.bandwidth_nm scan.lambda_nm",
                            "scan.lambda_nm and scan.bandwidth_nm: the samples would span %g to %g "
                            "nm, not within %g to %g nm",
                            cal->lambda_nm - half, cal->lambda_nm + half, OCT_MIN_WAVELENGTH_NM,
                            OCT_MAX_WAVELENGTH_NM);
    return OCT_OK;
}

struct scale {
    double um; /* NaN: not given */
    const char *keys, *text;
};

/* Whether what is stated fits what is known better. */
static enum oct_err compare(const struct scale *known, const struct scale *stated,
                            struct oct_error *err)
{
    if (isnan(known->um) || isnan(stated->um) ||
        fabs(stated->um / known->um - 1) <= OCT_AXIAL_TOLERANCE)
        return OCT_OK;
    return oct_fail_key(err, OCT_E_CONFIG, stated->keys,
                        "%s: a depth pixel of %.5g um of optical path, but %.5g um by %s: remove "
                        "one, or correct it",
                        stated->text, stated->um, known->um, known->text);
}

enum oct_err oct_axial_find(double *axial_um, const struct oct_k_grid *grid,
                            const struct oct_geometry *g, const struct oct_calibration *cal,
                            struct oct_error *err)
{
    struct scale scales[3] = {
        {NAN, "calibration.wavelengths", "calibration.wavelengths"},
        {cal->axial_um > 0 ? cal->axial_um : NAN, "scan.axial_um", "scan.axial_um"},
        {NAN, "scan.bandwidth_nm scan.lambda_nm", "scan.lambda_nm and scan.bandwidth_nm"},
    };
    enum oct_err e = OCT_OK;
    if (grid->is_wavelength)
        scales[0].um = by_wavelengths(grid);
    if (cal->lambda_nm != 0 || cal->band_nm != 0) {
        e = check_band(cal, err);
        scales[2].um = e ? NAN : by_band(grid, g, cal);
    }
    for (unsigned i = 0; i < 2 && !e; i++)
        for (unsigned k = i + 1; k < 3 && !e; k++)
            e = compare(&scales[i], &scales[k], err);
    *axial_um = !isnan(scales[0].um) ? scales[0].um : scales[1].um;
    if (isnan(*axial_um))
        *axial_um = scales[2].um;
    if (isnan(*axial_um) && cal->span_per_nm > 0)
        *axial_um = by_span(grid, g, cal->span_per_nm);
    return e;
}
