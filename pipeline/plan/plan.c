#include "pipeline/plan/plan.h"

#include "pipeline/base/aligned.h"
#include "pipeline/plan/axial.h"
#include "pipeline/plan/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

const struct oct_chain oct_chain_thesis = {
    .dc = OCT_DC_BSCAN,
    .interpolation = OCT_INTERPOLATION_LINEAR,
};

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
static enum oct_err compute_taps(const struct oct_k_grid *grid, unsigned n_taps,
                                 uint32_t *tap_first, float *weight, struct oct_error *err)
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
static enum oct_err find_dispersion_span(struct oct_plan *plan, const struct oct_k_grid *grid,
                                         struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    plan->q_minus = 0;
    plan->q_plus = grid->n - 1;
    if (plan->calibration.dispersion_over == OCT_DISPERSION_OVER_GRID)
        return OCT_OK;
    plan->q_minus = oct_k_grid_place(grid, 2 * g->left);
    plan->q_plus = oct_k_grid_place(grid, 2 * (g->left + g->n_samples - 1));
    if (!(plan->q_plus - plan->q_minus >= 1)) /* less than a step, or no number */
        return oct_fail_key(
            err, OCT_E_CONFIG, "calibration.dispersion_over",
            "calibration.dispersion_over is spectrum, but the camera's samples take "
            "less than one of the P2 = %u steps in k: the wavelengths or the k map are "
            "too uneven, use grid",
            grid->n);
    return OCT_OK;
}

double oct_plan_theta(const struct oct_plan *plan, double q)
{
    double t = 2 * (q - plan->q_minus) / (plan->q_plus - plan->q_minus) - 1;
    return oct_calibration_theta(&plan->calibration, t);
}

/* Contract step 5, times the window and 1/N of step 6. */
static enum oct_err compute_phase(struct oct_plan *plan, const struct oct_shape *shape, float *re,
                                  float *im, struct oct_error *err)
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
        double shaped = scale * oct_shape_at(shape, q);
        re[q] = (float)(c * shaped);
        im[q] = (float)(s * shaped);
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

/* phi at place q: between two entries of the file, or of the polynomial there. */
static void phase_at(const struct oct_plan *plan, double q, double phase[2])
{
    const struct oct_calibration *cal = &plan->calibration;
    if (cal->n_dispersion) {
        uint32_t low = q > 0 ? (uint32_t)q : 0, last = plan->geometry.upsampled - 2;
        low = low > last ? last : low;
        const double *entry = cal->dispersion + 2 * (size_t)low;
        phase[0] = entry[0] + (entry[2] - entry[0]) * (q - low);
        phase[1] = entry[1] + (entry[3] - entry[1]) * (q - low);
    } else {
        double theta = oct_plan_theta(plan, q);
        phase[0] = cos(theta);
        phase[1] = -sin(theta);
    }
}

/* The tables of nufft. phase: memory for [N][2]. */
static enum oct_err compute_spread(struct oct_plan *plan, const struct oct_shape *shape,
                                   const double *q, double *phase, struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    uint32_t n = g->n_samples;
    double accuracy_db = plan->chain.accuracy_db;

    for (uint32_t i = 0; i < n; i++) {
        double w = oct_place_slope(q, n, i) * oct_shape_at(shape, q[i]) / n;
        phase_at(plan, q[i], phase + 2 * (size_t)i);
        phase[2 * (size_t)i] *= w;
        phase[2 * (size_t)i + 1] *= w;
    }
    enum oct_err e =
        oct_spread_init(&plan->spread, q, phase, n, g->upsampled,
                        oct_spread_taps(accuracy_db < 0 ? accuracy_db : OCT_STANDARD_ACCURACY_DB));
    if (e == OCT_E_NO_MEMORY)
        return oct_fail(err, e, "out of memory for the tables of nufft");
    return e ? oct_fail_key(err, e, "calibration.dispersion",
                            "calibration.dispersion: too large for a phase")
             : OCT_OK;
}

static enum oct_err alloc_taps(struct oct_plan *plan, struct oct_error *err)
{
    size_t p2 = plan->geometry.upsampled, half = plan->geometry.padded / 2 + 1;
    plan->tap_first = oct_aligned_calloc(64, p2, sizeof(uint32_t));
    plan->weight = oct_aligned_calloc(64, plan->n_taps * p2, sizeof(float));
    plan->shift_re = oct_aligned_calloc(64, half, sizeof(float));
    plan->shift_im = oct_aligned_calloc(64, half, sizeof(float));
    return plan->tap_first && plan->weight && plan->shift_re && plan->shift_im
               ? OCT_OK
               : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the tables of the plan");
}

/* The tables of linear and cubic. */
static enum oct_err compute_interpolation(struct oct_plan *plan, const struct oct_k_grid *grid,
                                          struct oct_error *err)
{
    enum oct_err e = alloc_taps(plan, err);
    if (e)
        return e;
    compute_shift(plan->geometry.padded, (float *)plan->shift_re, (float *)plan->shift_im);
    return compute_taps(grid, plan->n_taps, (uint32_t *)plan->tap_first, (float *)plan->weight,
                        err);
}

/* All tables but the background, by the places of the camera's samples. memory: [3 N]. */
static enum oct_err compute_k_tables(struct oct_plan *plan, const struct oct_k_grid *grid,
                                     double *memory, struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    const struct oct_calibration *cal = &plan->calibration;
    double *q = memory, *phase = memory + g->n_samples;
    struct oct_shape shape;

    for (uint32_t i = 0; i < g->n_samples; i++)
        q[i] = oct_k_grid_place(grid, 2 * (g->left + i));
    enum oct_err e = oct_shape_init(&shape, &plan->chain.shaping, q, g->n_samples,
                                    cal->n_background ? cal->background : NULL, err);
    if (e == OCT_OK)
        e = compute_phase(plan, &shape, (float *)plan->phase_re, (float *)plan->phase_im, err);
    if (e == OCT_OK)
        e = plan->n_taps ? compute_interpolation(plan, grid, err)
                         : compute_spread(plan, &shape, q, phase, err);
    oct_shape_finish(&shape);
    return e;
}

static enum oct_err compute_tables(struct oct_plan *plan, struct oct_error *err)
{
    struct oct_k_grid grid;
    double *memory = malloc(3 * (size_t)plan->geometry.n_samples * sizeof(double));
    enum oct_err e = oct_k_grid_init(&grid, &plan->geometry, &plan->calibration, err);
    if (e == OCT_OK && !memory)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the tables of the plan");
    if (e == OCT_OK)
        e = find_dispersion_span(plan, &grid, err);
    if (e == OCT_OK)
        e = compute_k_tables(plan, &grid, memory, err);
    if (e == OCT_OK)
        e = oct_axial_find(&plan->axial_um, &grid, &plan->geometry, &plan->calibration, err);
    oct_k_grid_finish(&grid);
    free(memory);
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

/* Its number of values, where it is used. */
static enum oct_err check_background(const struct oct_geometry *g,
                                     const struct oct_calibration *cal,
                                     const struct oct_chain *chain, struct oct_error *err)
{
    bool is_dc = chain->dc == OCT_DC_FILE;
    bool is_source = !oct_shaping_is_none(&chain->shaping) && cal->n_background > 0;
    if (!(is_dc || is_source) || cal->n_background == g->n_samples)
        return OCT_OK;
    oct_fail_key(err, OCT_E_CONFIG,
                 is_dc ? "calibration.background pipeline.dc camera.samples"
                       : "calibration.background pipeline.window pipeline.flatten camera.samples",
                 "calibration.background has %zu values: with pipeline.%s it must have "
                 "camera.samples (%u",
                 cal->n_background, is_dc ? "dc=file" : "window", g->n_samples);
    return oct_error_go_on(err, OCT_E_CONFIG, "camera.samples", ")");
}

static enum oct_err check(const struct oct_geometry *g, const struct oct_calibration *cal,
                          const struct oct_chain *chain, struct oct_error *err)
{
    const enum oct_dc dc = chain->dc;
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
                            "subtracted from itself; use dc=running, dc=file or dc=none");
    if (dc == OCT_DC_RUNNING && g->n_lines < 2 && g->n_bscans < 2)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.lines scan.bscans pipeline.dc",
                            "scan.lines and scan.bscans are 1: with pipeline.dc=running a volume "
                            "of a single A-line would be subtracted from itself; use dc=file or "
                            "dc=none");
    if ((e = check_background(g, cal, chain, err)))
        return e;
    if (chain->interpolation == OCT_INTERPOLATION_NUFFT && g->crop_last > g->upsampled / 4)
        return oct_fail_key(err, OCT_E_CONFIG, "pipeline.crop_last pipeline.interpolation",
                            "pipeline.crop_last is %u: with pipeline.interpolation=nufft it must "
                            "be at most %u (P2/4, beyond which nothing real lies); use auto, or "
                            "linear or cubic",
                            g->crop_last, g->upsampled / 4);
    if ((e = all_finite(cal->wavelengths_nm, cal->n_wavelengths, "calibration.wavelengths", err)) ||
        (e = all_finite(cal->kmap_px, cal->n_kmap, "calibration.kmap", err)) ||
        (e = all_finite(cal->dispersion, 2 * cal->n_dispersion, "calibration.dispersion", err)) ||
        (e = all_finite(cal->background, cal->n_background, "calibration.background", err)))
        return e;
    return OCT_OK;
}

static enum oct_err fill_background(struct oct_plan *plan, struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    const double *given = plan->calibration.background;
    float *background = oct_aligned_calloc(64, g->n_samples, sizeof(float));
    plan->background = background;
    if (!background)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the tables of the plan");
    for (uint32_t i = 0; i < g->n_samples; i++) {
        background[i] = (float)given[i];
        if (!(fabs(given[i]) < 1e9))
            return oct_fail_key(err, OCT_E_CONFIG, "calibration.background",
                                "calibration.background, value %u: %g are no counts of a camera",
                                i + 1, given[i]);
    }
    return OCT_OK;
}

static enum oct_err fill_tables(struct oct_plan *plan, struct oct_error *err)
{
    size_t p2 = plan->geometry.upsampled;
    plan->phase_re = oct_aligned_calloc(64, p2, sizeof(float));
    plan->phase_im = oct_aligned_calloc(64, p2, sizeof(float));
    if (!plan->phase_re || !plan->phase_im)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the tables of the plan");
    enum oct_err e = plan->chain.dc == OCT_DC_FILE ? fill_background(plan, err) : OCT_OK;
    return e ? e : compute_tables(plan, err);
}

enum oct_err oct_plan_create(struct oct_plan **out, const struct oct_geometry *geometry,
                             const struct oct_calibration *calibration,
                             const struct oct_chain *chain, struct oct_error *err)
{
    *out = NULL;
    enum oct_err e = check(geometry, calibration, chain, err);
    if (e)
        return e;
    struct oct_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the plan");
    plan->geometry = *geometry;
    plan->chain = *chain;
    if (plan->chain.dc_bscans == 0)
        plan->chain.dc_bscans = OCT_STANDARD_DC_BSCANS;
    plan->n_taps = chain->interpolation == OCT_INTERPOLATION_NUFFT   ? 0
                   : chain->interpolation == OCT_INTERPOLATION_CUBIC ? 4
                                                                     : 2;
    e = oct_calibration_copy(&plan->calibration, calibration);
    if (e)
        oct_fail(err, e, "out of memory for the calibration");
    else
        e = fill_tables(plan, err);
    if (e) {
        oct_plan_destroy(plan);
        return e;
    }
    plan->scan = (struct oct_scan){.n_lines = geometry->n_lines, .n_bscans = geometry->n_bscans};
    *out = plan;
    return OCT_OK;
}

enum oct_err oct_plan_set_scan(struct oct_plan *plan, const struct oct_scan *scan,
                               struct oct_error *err)
{
    struct oct_scan its = *scan;
    const struct oct_geometry *g = &plan->geometry;
    const size_t n_rows = plan->calibration.n_positions, n = (size_t)its.n_bscans * g->n_lines;
    its.n_lines = g->n_lines;
    its.file = (const double(*)[2])plan->calibration.positions_um;
    if (its.pattern == OCT_SCAN_FILE && its.file && n_rows != n)
        return oct_fail_key(err, OCT_E_CONFIG, "scan.positions",
                            "scan.positions: has %zu rows, and a volume %zu A-lines (scan.bscans "
                            "times scan.lines): one row each",
                            n_rows, n);
    const enum oct_err e = oct_scan_check(&its, err);
    if (!e)
        plan->scan = its;
    return e;
}

static bool same_values(const double *a, size_t n_a, const double *b, size_t n_b)
{
    return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a * sizeof(*a)) == 0);
}

static bool same_geometry(const struct oct_geometry *a, const struct oct_geometry *b,
                          bool with_bscans)
{
    return a->n_samples == b->n_samples && a->n_lines == b->n_lines &&
           a->crop_first == b->crop_first && a->crop_last == b->crop_last &&
           a->sample_type == b->sample_type && (!with_bscans || a->n_bscans == b->n_bscans);
}

static bool same_calibration(const struct oct_calibration *a, const struct oct_calibration *b)
{
    return same_values(a->wavelengths_nm, a->n_wavelengths, b->wavelengths_nm, b->n_wavelengths) &&
           same_values(a->kmap_px, a->n_kmap, b->kmap_px, b->n_kmap) &&
           same_values(a->dispersion, 2 * a->n_dispersion, b->dispersion, 2 * b->n_dispersion) &&
           same_values(a->background, a->n_background, b->background, b->n_background) &&
           same_values(a->coefficient, OCT_MAX_DISPERSION_ORDER + 1, b->coefficient,
                       OCT_MAX_DISPERSION_ORDER + 1) &&
           a->dispersion_over == b->dispersion_over;
}

/* Whether both put lines onto the same grid: of the scan all that pictures depend on. */
static bool same_grid(const struct oct_scan *a, const struct oct_scan *b)
{
    const bool uneven = oct_scan_is_uneven(a);
    return uneven == oct_scan_is_uneven(b) &&
           (!uneven ||
            (a->pattern == b->pattern && same_values(&a->phase_deg, 1, &b->phase_deg, 1) &&
             a->flyback_lines == b->flyback_lines && a->n_bscans == b->n_bscans &&
             a->first_bscan == b->first_bscan &&
             same_values(&a->delay_lines, 1, &b->delay_lines, 1)));
}

bool oct_plan_is_same(const struct oct_plan *a, const struct oct_plan *b)
{
    const struct oct_chain *x = &a->chain, *y = &b->chain;
    return x->dc == y->dc && x->interpolation == y->interpolation && x->dc_bscans == y->dc_bscans &&
           same_values(&x->accuracy_db, 1, &y->accuracy_db, 1) &&
           x->shaping.window == y->shaping.window && x->shaping.flatten == y->shaping.flatten &&
           same_values(&x->shaping.width, 1, &y->shaping.width, 1) &&
           same_geometry(&a->geometry, &b->geometry, x->dc == OCT_DC_RUNNING) &&
           same_calibration(&a->calibration, &b->calibration) && same_grid(&a->scan, &b->scan);
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
    oct_spread_finish(&plan->spread);
    oct_calibration_finish(&plan->calibration);
    free(plan);
}
