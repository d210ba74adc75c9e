#include "analysis/calibrate/kmap.h"

#include "pipeline/plan/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define MOST OCT_KMAP_MOST_ORDER
#define CHOSEN_MOST 9u /* the highest order that is tried */
#define CHOSEN_LEAST 2u
#define TURNS 20u /* of alpha and the polynomials */
#define REFINEMENTS 3u
#define SIDES_TRIED 10u  /* mirrors whose sides are tried in all ways */
#define SIDE_GAIN 0.5    /* of the residual: another side is believed below it */
#define LEAST_DOUBT 0.02 /* rad: a residual that needs no explanation */
#define OUTSIDER_GAIN 0.25
#define OUTSIDER_RAD 0.2
#define EDGE_PART 0.05 /* of the light: where the slope at its end is taken */
#define LEAST_PIVOT 1e-14
#define MOST_COEFFICIENTS (OCT_MAX_DISPERSION_ORDER + 1)

/* What least squares need of one mirror: sums over the samples of weight 1 in all, T_0 .. T_MOST,
 * the constant eliminated. */
struct sums {
    double tt[MOST][MOST]; /* of T_a T_b, a, b from 1 */
    double tp[MOST];       /* of T_a phi */
    double pp;
    double t0[MOST], p0; /* means of T_a and phi */
    double slope;        /* the coefficient of a straight line through phi */
};

struct fit {
    unsigned order;
    double kappa[MOST], theta[MOST];
    double alpha[OCT_KMAP_MOST_MIRRORS];
    int side[OCT_KMAP_MOST_MIRRORS];
    double square[OCT_KMAP_MOST_MIRRORS]; /* rad^2 left of each */
    double rms;
};

struct work {
    struct oct_kmap *kmap;
    const struct oct_kmap_setup *setup;
    const struct oct_fringe *fringes;
    uint32_t n;
    struct sums sums[OCT_KMAP_MOST_MIRRORS]; /* [n] */
};

/* ---- polynomials ---- */

/* T_1 .. T_order at sample c, over the samples with light. */
static void chebyshev(const struct oct_kmap *kmap, uint32_t c, unsigned order, double t[MOST])
{
    const double middle = 0.5 * ((double)kmap->first + kmap->last);
    const double half = 0.5 * ((double)kmap->last - kmap->first), u = (c - middle) / half;
    double before = 1, now = u;
    for (unsigned a = 0; a < order; a++) {
        t[a] = now;
        const double next = 2 * u * now - before;
        before = now;
        now = next;
    }
}

/* aliased: the phase that a fringe beyond Nyquist has had. */
static void sum_mirror(const struct work *w, uint32_t m, bool aliased, struct sums *s)
{
    const struct oct_fringe *f = &w->fringes[m];
    double t[MOST];
    *s = (struct sums){.pp = 0};
    for (uint32_t c = f->first; c <= f->last; c++) {
        const double weight = f->weight[c];
        const double p = aliased ? 2 * PI * c - f->phase[c] : f->phase[c];
        chebyshev(w->kmap, c, MOST, t);
        s->p0 += weight * p;
        s->pp += weight * p * p;
        for (unsigned a = 0; a < MOST; a++) {
            s->t0[a] += weight * t[a];
            s->tp[a] += weight * t[a] * p;
            for (unsigned b = 0; b <= a; b++)
                s->tt[a][b] += weight * t[a] * t[b];
        }
    }
    s->pp -= s->p0 * s->p0;
    for (unsigned a = 0; a < MOST; a++) {
        s->tp[a] -= s->t0[a] * s->p0;
        for (unsigned b = 0; b <= a; b++)
            s->tt[b][a] = s->tt[a][b] -= s->t0[a] * s->t0[b];
    }
    s->slope = s->tp[0] / s->tt[0][0];
}

/* ---- least squares ---- */

/* Solves matrix x = right, symmetric and positive definite, [n][n], n <= 2 MOST, by elimination
 * after scaling its diagonal to 1. x takes the place of right, matrix is overwritten. False: it is
 * singular, as far as doubles show. */
static bool solve(double *matrix, double *right, unsigned n)
{
    double scale[2 * MOST];
    for (unsigned i = 0; i < n; i++) {
        if (!(matrix[i * n + i] > 0))
            return false;
        scale[i] = 1 / sqrt(matrix[i * n + i]);
    }
    for (unsigned i = 0; i < n; i++) {
        right[i] *= scale[i];
        for (unsigned j = 0; j < n; j++)
            matrix[i * n + j] *= scale[i] * scale[j];
    }
    for (unsigned i = 0; i < n; i++) {
        if (!(matrix[i * n + i] > LEAST_PIVOT))
            return false;
        for (unsigned k = i + 1; k < n; k++) {
            const double factor = matrix[k * n + i] / matrix[i * n + i];
            right[k] -= factor * right[i];
            for (unsigned j = i; j < n; j++)
                matrix[k * n + j] -= factor * matrix[i * n + j];
        }
    }
    for (unsigned i = n; i-- > 0;) {
        for (unsigned k = i + 1; k < n; k++)
            right[i] -= matrix[i * n + k] * right[k];
        right[i] /= matrix[i * n + i];
    }
    for (unsigned i = 0; i < n; i++)
        right[i] *= scale[i];
    return true;
}

/* A polynomial of n coefficients over the light, the constant first: theta over t = 2 kappa - 1,
 * weighted; or kappa over its share of the camera, all samples alike. False: singular, a is 0. */
static bool fit_polynomial(const struct oct_kmap *kmap, bool of_theta, unsigned n,
                           double a[MOST_COEFFICIENTS])
{
    double matrix[MOST_COEFFICIENTS * MOST_COEFFICIENTS] = {0}, t[MOST_COEFFICIENTS] = {1};
    memset(a, 0, MOST_COEFFICIENTS * sizeof(*a));
    for (uint32_t i = kmap->first; i <= kmap->last; i++) {
        const double x = of_theta ? 2 * kmap->k[i] - 1 : (double)i / kmap->n_samples;
        const double y = of_theta ? kmap->theta[i] : kmap->k[i];
        const double weight = of_theta ? kmap->weight[i] : 1;
        for (unsigned p = 1; p < n; p++)
            t[p] = t[p - 1] * x;
        for (unsigned p = 0; p < n; p++) {
            a[p] += weight * t[p] * y;
            for (unsigned q = 0; q < n; q++)
                matrix[p * n + q] += weight * t[p] * t[q];
        }
    }
    if (solve(matrix, a, n))
        return true;
    memset(a, 0, MOST_COEFFICIENTS * sizeof(*a));
    return false;
}

/* kappa and theta for the fit's alpha and sides. */
static bool solve_shapes(const struct work *w, struct fit *fit, bool with_theta)
{
    const unsigned p = fit->order, n = with_theta ? 2 * p : p;
    double matrix[2 * MOST * 2 * MOST] = {0}, right[2 * MOST] = {0};
    for (uint32_t m = 0; m < w->n; m++) {
        const struct sums *s = &w->sums[m];
        const double factor[2] = {fit->alpha[m], fit->side[m]};
        for (unsigned i = 0; i < n; i++) {
            right[i] += factor[i / p] * s->tp[i % p];
            for (unsigned j = 0; j < n; j++)
                matrix[i * n + j] += factor[i / p] * factor[j / p] * s->tt[i % p][j % p];
        }
    }
    if (!solve(matrix, right, n))
        return false;
    memcpy(fit->kappa, right, p * sizeof(double));
    memset(fit->theta, 0, sizeof(fit->theta));
    if (with_theta)
        memcpy(fit->theta, right + p, p * sizeof(double));
    return true;
}

static double product(const struct sums *s, const double *a, const double *b, unsigned order)
{
    double sum = 0;
    for (unsigned i = 0; i < order; i++)
        for (unsigned j = 0; j < order; j++)
            sum += a[i] * s->tt[i][j] * b[j];
    return sum;
}

/* alpha for the fit's kappa and theta; what remains of each mirror. */
static void solve_alpha(const struct work *w, struct fit *fit)
{
    const unsigned p = fit->order;
    double all = 0;
    for (uint32_t m = 0; m < w->n; m++) {
        const struct sums *s = &w->sums[m];
        double kp = 0, y[MOST], yp = 0;
        for (unsigned a = 0; a < p; a++)
            kp += fit->kappa[a] * s->tp[a];
        kp -= fit->side[m] * product(s, fit->kappa, fit->theta, p);
        fit->alpha[m] = kp / product(s, fit->kappa, fit->kappa, p);
        for (unsigned a = 0; a < p; a++) {
            y[a] = fit->alpha[m] * fit->kappa[a] + fit->side[m] * fit->theta[a];
            yp += y[a] * s->tp[a];
        }
        fit->square[m] = fmax(0, s->pp - 2 * yp + product(s, y, y, p));
        all += fit->square[m] / w->n;
    }
    fit->rms = sqrt(all);
}

/* The fit of this order with these sides. */
static void fit_order(const struct work *w, unsigned order, const int *side, struct fit *fit)
{
    const bool with_theta = w->n > 1;
    fit->order = order;
    fit->rms = INFINITY;
    for (uint32_t m = 0; m < w->n; m++) {
        fit->side[m] = side[m];
        fit->alpha[m] = w->sums[m].slope;
    }
    for (unsigned turn = 0; turn < TURNS; turn++) {
        const double before = fit->rms;
        if (!solve_shapes(w, fit, with_theta))
            return;
        solve_alpha(w, fit);
        if (!(fit->rms < (1 - 1e-6) * before))
            return;
    }
}

static void choose_order(const struct work *w, const int *side, struct fit *fit)
{
    struct fit best;
    if (w->setup->order > 0) {
        fit_order(w, w->setup->order, side, fit);
        return;
    }
    fit_order(w, CHOSEN_MOST, side, &best);
    for (unsigned p = CHOSEN_LEAST; p < CHOSEN_MOST; p++) {
        fit_order(w, p, side, fit);
        if (fit->rms <= 1.05 * best.rms + 1e-5)
            return;
    }
    *fit = best;
}

/* ---- sides of zero delay ---- */

static void try_sides(const struct work *w, const int *side, struct fit *best)
{
    struct fit fit;
    choose_order(w, side, &fit);
    if (fit.rms < SIDE_GAIN * best->rms)
        *best = fit;
}

/* All ways for few mirrors; of many each by itself, as long as that helps. */
static void find_sides(const struct work *w, struct fit *best)
{
    int side[OCT_KMAP_MOST_MIRRORS];
    if (w->n <= SIDES_TRIED) {
        for (uint32_t way = 1; way < 1u << (w->n - 1); way++) {
            for (uint32_t m = 0; m < w->n; m++)
                side[m] = way >> m & 1 ? -1 : 1;
            try_sides(w, side, best);
        }
        return;
    }
    for (uint32_t m = 0; m < w->n; m++) {
        memcpy(side, best->side, sizeof(side));
        side[m] = -side[m];
        try_sides(w, side, best);
    }
}

/* The side of most mirrors is 1; of as many, that of the first. */
static void turn_sides(const struct work *w, struct fit *fit)
{
    int sum = 0;
    for (uint32_t m = 0; m < w->n; m++)
        sum += fit->side[m];
    if (sum > 0 || (sum == 0 && fit->side[0] > 0))
        return;
    for (uint32_t m = 0; m < w->n; m++)
        fit->side[m] = -fit->side[m];
    for (unsigned a = 0; a < fit->order; a++)
        fit->theta[a] = -fit->theta[a];
}

static void fit_all(struct work *w, struct fit *fit)
{
    int side[OCT_KMAP_MOST_MIRRORS] = {0};
    for (uint32_t m = 0; m < w->n; m++) {
        side[m] = w->setup->sides ? w->setup->sides[m] : 1;
        sum_mirror(w, m, false, &w->sums[m]);
    }
    choose_order(w, side, fit);
    if (w->setup->sides)
        return;
    if (w->n > 2 && fit->rms > LEAST_DOUBT)
        find_sides(w, fit);
    turn_sides(w, fit);
}

/* ---- what the fit says against the mirrors ---- */

static enum oct_err check_spread(const struct work *w, const struct fit *fit, struct oct_error *err)
{
    double least = INFINITY, most = -INFINITY, deepest = 0;
    for (uint32_t m = 0; m < w->n; m++) {
        const double slope = fit->side[m] * w->sums[m].slope;
        least = fmin(least, slope);
        most = fmax(most, slope);
        deepest = fmax(deepest, fabs(slope));
    }
    if (w->n < 2 || most - least > OCT_KMAP_LEAST_SPREAD * deepest)
        return OCT_OK;
    return oct_fail(err, OCT_E_FORMAT,
                    "all mirrors lie at the same depth (within %.1f %%), which cannot part the k "
                    "map from the dispersion; give one depth alone, or depths that differ by half",
                    100 * (most - least) / deepest);
}

/* Whether the fit becomes right with mirror m's phase as if it lay beyond Nyquist. */
static bool is_aliased(struct work *w, const struct fit *fit, uint32_t m)
{
    const struct sums kept = w->sums[m];
    struct fit other;
    sum_mirror(w, m, true, &w->sums[m]);
    choose_order(w, fit->side, &other);
    w->sums[m] = kept;
    return other.rms < OUTSIDER_GAIN * fit->rms;
}

/* Whether the others agree without mirror m. */
static bool is_outsider(const struct work *w, const struct fit *fit, uint32_t m)
{
    struct work others = *w;
    struct fit without = *fit, other;
    others.n--;
    for (uint32_t i = m; i < others.n; i++) {
        others.sums[i] = w->sums[i + 1];
        without.side[i] = fit->side[i + 1];
    }
    choose_order(&others, without.side, &other);
    return other.rms < OUTSIDER_GAIN * fit->rms;
}

static enum oct_err check_members(struct work *w, const struct fit *fit, uint32_t *which,
                                  struct oct_error *err)
{
    if (fit->rms < OUTSIDER_RAD || w->n < 3)
        return OCT_OK;
    for (*which = 0; *which < w->n; ++*which)
        if (is_aliased(w, fit, *which))
            return oct_fail(err, OCT_E_FORMAT,
                            "fringe beyond Nyquist all over the camera: its phase agrees with the "
                            "others' only if it was aliased; move the mirror closer to zero delay");
    for (*which = w->n > 3 ? 0 : w->n; *which < w->n; ++*which)
        if (is_outsider(w, fit, *which))
            return oct_fail(err, OCT_E_FORMAT,
                            "its phase does not follow the others', which agree without it; leave "
                            "it out (another spectrometer or sample, two fringes, beyond Nyquist)");
    return OCT_OK;
}

/* ---- from polynomials to samples ---- */

static double cubic_at(const double cubic[4], double u)
{
    return cubic[0] + u * (cubic[1] + u * (cubic[2] + u * cubic[3]));
}

/* kappa from one sample to the next by its cubic, at least a fifth of the mean step. */
static double kappa_step(const double *cubic, uint32_t n, uint32_t i, double mean)
{
    const double step =
        cubic ? cubic_at(cubic, (i + 1.0) / n) - cubic_at(cubic, (double)i / n) : mean;
    return fmax(step, 0.2 * mean);
}

/* kappa beyond the light: as steep as its cubic. */
static void continue_kappa(struct oct_kmap *kmap)
{
    const uint32_t n = kmap->n_samples, first = kmap->first, last = kmap->last;
    const double mean = (kmap->k[last] - kmap->k[first]) / (last - first);
    double fitted[MOST_COEFFICIENTS];
    const double *cubic = fit_polynomial(kmap, false, 4, fitted) ? fitted : NULL;
    for (uint32_t i = first; i-- > 0;)
        kmap->k[i] = kmap->k[i + 1] - kappa_step(cubic, n, i, mean);
    for (uint32_t i = last; i + 1 < n; i++)
        kmap->k[i + 1] = kmap->k[i] + kappa_step(cubic, n, i, mean);
}

/* rad per 1 of kappa: theta's slope at the first and at the last sample with light. */
static void end_slopes(const struct oct_kmap *kmap, double slope[2])
{
    uint32_t part = (uint32_t)(EDGE_PART * (kmap->last - kmap->first));
    part = part > 0 ? part : 1;
    slope[0] = (kmap->theta[kmap->first + part] - kmap->theta[kmap->first]) /
               (kmap->k[kmap->first + part] - kmap->k[kmap->first]);
    slope[1] = (kmap->theta[kmap->last] - kmap->theta[kmap->last - part]) /
               (kmap->k[kmap->last] - kmap->k[kmap->last - part]);
}

static void continue_theta(struct oct_kmap *kmap)
{
    double slope[2];
    end_slopes(kmap, slope);
    for (uint32_t i = 0; i < kmap->n_samples; i++)
        if (i < kmap->first || i > kmap->last) {
            const uint32_t end = i < kmap->first ? kmap->first : kmap->last;
            kmap->theta[i] =
                kmap->theta[end] + slope[end == kmap->last] * (kmap->k[i] - kmap->k[end]);
        }
}

/* Moves what of theta is constant or linear in k over the light into alpha. *linear: per kappa. */
static void level_theta(struct oct_kmap *kmap, double *constant, double *linear)
{
    double k = 0, kk = 0, t = 0, kt = 0;
    for (uint32_t i = kmap->first; i <= kmap->last; i++) {
        k += kmap->weight[i] * kmap->k[i];
        t += kmap->weight[i] * kmap->theta[i];
    }
    for (uint32_t i = kmap->first; i <= kmap->last; i++) {
        kk += kmap->weight[i] * (kmap->k[i] - k) * (kmap->k[i] - k);
        kt += kmap->weight[i] * (kmap->k[i] - k) * (kmap->theta[i] - t);
    }
    *linear = kk > 0 ? kt / kk : 0;
    *constant = t - *linear * k;
    for (uint32_t i = kmap->first; i <= kmap->last; i++)
        kmap->theta[i] -= *constant + *linear * kmap->k[i];
}

static enum oct_err evaluate(const struct work *w, const struct fit *fit, struct oct_error *err)
{
    struct oct_kmap *kmap = w->kmap;
    double t[MOST], constant, linear;
    for (uint32_t i = kmap->first; i <= kmap->last; i++) {
        chebyshev(kmap, i, fit->order, t);
        kmap->k[i] = kmap->theta[i] = 0;
        for (unsigned a = 0; a < fit->order; a++) {
            kmap->k[i] += fit->kappa[a] * t[a];
            kmap->theta[i] += fit->theta[a] * t[a];
        }
        if (i > kmap->first && !(kmap->k[i] > kmap->k[i - 1]))
            return oct_fail(err, OCT_E_FORMAT,
                            "the k map that follows falls at camera sample %u; the mirrors' depths "
                            "are too close together, a fringe is no mirror's, or --order is too "
                            "high",
                            i);
    }
    continue_kappa(kmap);
    const double zero = kmap->k[0], span = kmap->k[kmap->n_samples - 1] - zero;
    for (uint32_t i = 0; i < kmap->n_samples; i++)
        kmap->k[i] = (kmap->k[i] - zero) / span;
    level_theta(kmap, &constant, &linear);
    continue_theta(kmap);
    kmap->order = fit->order;
    kmap->rms_rad = fit->rms;
    for (uint32_t m = 0; m < w->n; m++) {
        struct oct_kmap_mirror *mirror = &kmap->mirrors[m];
        const struct oct_fringe *f = &w->fringes[m];
        *mirror = (struct oct_kmap_mirror){.alpha = fit->alpha[m] * span + fit->side[m] * linear,
                                           .rms_rad = sqrt(fit->square[m]),
                                           .side = fit->side[m]};
        for (uint32_t i = f->first; i <= f->last; i++)
            mirror->offset += f->weight[i] * (f->phase[i] - mirror->alpha * kmap->k[i] -
                                              mirror->side * kmap->theta[i]);
    }
    return OCT_OK;
}

/* ---- all of it ---- */

/* Weights, and which samples have light of any mirror. */
static void find_light(struct work *w)
{
    struct oct_kmap *kmap = w->kmap;
    kmap->first = kmap->n_samples - 1;
    kmap->last = 0;
    memset(kmap->weight, 0, kmap->n_samples * sizeof(double));
    for (uint32_t m = 0; m < w->n; m++) {
        const struct oct_fringe *f = &w->fringes[m];
        kmap->first = f->first < kmap->first ? f->first : kmap->first;
        kmap->last = f->last > kmap->last ? f->last : kmap->last;
        for (uint32_t i = 0; i < kmap->n_samples; i++)
            kmap->weight[i] += f->weight[i] / w->n;
    }
}

static enum oct_err fit_once(struct work *w, uint32_t *which, struct oct_error *err)
{
    struct fit fit;
    find_light(w);
    if (w->kmap->last < w->kmap->first + 4 * MOST)
        return oct_fail(err, OCT_E_FORMAT, "light on %u camera samples only",
                        w->kmap->last + 1 - w->kmap->first);
    fit_all(w, &fit);
    enum oct_err e = check_spread(w, &fit, err);
    e = e ? e : check_members(w, &fit, which, err);
    return e ? e : evaluate(w, &fit, err);
}

static enum oct_err find_kmap(struct work *w, struct oct_fringe *fringes, uint32_t *which,
                              struct oct_error *err)
{
    enum oct_err e = fit_once(w, which, err);
    for (unsigned i = 0; i < REFINEMENTS && !e; i++) {
        for (uint32_t m = 0; m < w->n && !e; m++) {
            oct_kmap_model(w->kmap, m, w->kmap->weight); /* found anew by the next fit */
            e = oct_fringe_refine(&fringes[m], w->kmap->weight, err);
        }
        e = e ? e : fit_once(w, which, err);
    }
    return e;
}

enum oct_err oct_kmap_find(struct oct_kmap *kmap, struct oct_fringe *fringes, uint32_t n,
                           const struct oct_kmap_setup *setup, uint32_t *which,
                           struct oct_error *err)
{
    *which = n;
    *kmap = (struct oct_kmap){.n_samples = 0};
    if (n < 1 || n > OCT_KMAP_MOST_MIRRORS || setup->order > MOST)
        return oct_fail(err, OCT_E_ARG, "%u mirrors, order %u: 1 to %u, at most %u", n,
                        setup->order, OCT_KMAP_MOST_MIRRORS, MOST);
    const uint32_t n_samples = fringes[0].n_samples;
    struct work w = {.kmap = kmap, .setup = setup, .fringes = fringes, .n = n};
    *kmap = (struct oct_kmap){.n_samples = n_samples,
                              .n_mirrors = n,
                              .has_theta = n > 1,
                              .k = calloc(3 * (size_t)n_samples, sizeof(double)),
                              .mirrors = calloc(n, sizeof(*kmap->mirrors))};
    if (!kmap->k || !kmap->mirrors)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a k map of %u samples", n_samples);
    kmap->theta = kmap->k + n_samples;
    kmap->weight = kmap->theta + n_samples;
    return find_kmap(&w, fringes, which, err);
}

void oct_kmap_finish(struct oct_kmap *kmap)
{
    free(kmap->k); /* owns theta and weight */
    free(kmap->mirrors);
    *kmap = (struct oct_kmap){.n_samples = 0};
}

void oct_kmap_model(const struct oct_kmap *kmap, uint32_t m, double *phase)
{
    const struct oct_kmap_mirror *mirror = &kmap->mirrors[m];
    for (uint32_t i = 0; i < kmap->n_samples; i++)
        phase[i] = mirror->alpha * kmap->k[i] + mirror->side * kmap->theta[i] + mirror->offset;
}

/* ---- as octd takes it ---- */

static void fill_phase(const struct oct_kmap *kmap, const struct oct_k_grid *grid,
                       const struct oct_geometry *g, int side, double *phase)
{
    const uint32_t n = kmap->n_samples;
    const double q0 = oct_k_grid_place(grid, 2 * g->left);
    const double q1 = oct_k_grid_place(grid, 2 * (g->left + n - 1));
    double slope[2];
    uint32_t i = 0;
    end_slopes(kmap, slope);
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

/* a_0 .. a_order of theta; what they leave. */
static double fit_coefficients(const struct oct_kmap *kmap, unsigned order,
                               double a[MOST_COEFFICIENTS])
{
    double square = 0;
    if (!fit_polynomial(kmap, true, order + 1, a))
        return INFINITY;
    for (uint32_t i = kmap->first; i <= kmap->last; i++) {
        double sum = 0, t = 1;
        for (unsigned p = 0; p <= order; p++, t *= 2 * kmap->k[i] - 1)
            sum += a[p] * t;
        square += kmap->weight[i] * pow(kmap->theta[i] - sum, 2);
    }
    return sqrt(square);
}

void oct_kmap_coefficients(const struct oct_kmap *kmap,
                           double coefficient[OCT_MAX_DISPERSION_ORDER + 1], double *rms_rad)
{
    double a[MOST_COEFFICIENTS];
    const double least = fit_coefficients(kmap, OCT_MAX_DISPERSION_ORDER, a);
    unsigned order = 2;
    while ((*rms_rad = fit_coefficients(kmap, order, a)) > 1.1 * least + 1e-3 &&
           order < OCT_MAX_DISPERSION_ORDER)
        order++;
    memset(coefficient, 0, (OCT_MAX_DISPERSION_ORDER + 1) * sizeof(double));
    for (unsigned m = 2; m <= order && kmap->has_theta; m++)
        coefficient[m] = a[m];
}
