#include "analysis/warp/pair.h"

#include "kernels/device/workers.h"
#include "pipeline/base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The solver's part of SSD, below which it fitted noise. On synthetic eyes that only moved it is
 * -1 to 1.5 %, and the error with it up to four times that without; on one that was bent 64 %. */
#define LEAST_GAIN 0.02

/* The part of the SSD that the solver leaves without B-scans, beside that with them, below which
 * the B-scans are left as they are. Measured at factor 2: 0.98 to 1.05 on synthetic moved eyes,
 * 0.47 to 0.80 on volumes that a smooth field bent, where one shift a B-scan makes steps that the
 * tissue has not. */
#define MOST_OF_STILL 0.9

/* Without noise the coarse level does not decide: 0.93 to 1.06 there, 0.08 to 0.2 of the SSD at the
 * end. Up to this part both are solved to the end. */
#define MOST_TO_COMPARE 1.1

const char *const oct_warp_model_names[OCT_WARP_N_MODELS] = {"bscans", "nonlinear", "both"};

void oct_warp_pair_params_default(struct oct_warp_params *params, enum oct_warp_profile profile,
                                  enum oct_warp_model model, const uint32_t dims[3])
{
    oct_warp_params_default(params, profile, dims);
    if (model != OCT_WARP_BOTH)
        return;
    unsigned n = 0;
    for (unsigned i = 0; i < params->n_levels; i++)
        if (params->factor[i] <= 2) {
            params->factor[n] = params->factor[i];
            params->iterations[n++] = params->iterations[i];
        }
    params->n_levels = n;
    params->lambda = 1e-3; /* of any profile */
}

/* ---- one registration ---- */

struct work {
    const struct oct_warp_pair_setup *setup;
    struct oct_warp_setup solver;
    const uint32_t *dims;
    size_t n;
    const float *raw[2]; /* fixed, moving, the caller's */
    const uint8_t *mask; /* the caller's, may be NULL */
    struct oct_workers *workers;
    float *scaled[2];  /* 0 to 1; NULL while not needed */
    uint8_t *compared; /* [n]: mask, and finite */
    uint8_t *seen;     /* [n]: compared, and with a place in the moving volume */
    struct oct_warp_pair *pair;
};

static void drop(float **values)
{
    free(*values);
    *values = NULL;
}

static enum oct_err no_memory(const struct work *w, struct oct_error *err)
{
    return oct_fail(err, OCT_E_NO_MEMORY,
                    "out of memory for two volumes of %u x %u x %u voxels: %.0f MB are needed",
                    w->dims[0], w->dims[1], w->dims[2],
                    (double)oct_warp_pair_bytes(w->setup) / 1e6);
}

/* scaled[v] becomes `from`, from 0 to 1. */
static enum oct_err scale(struct work *w, unsigned v, const float *from, struct oct_error *err)
{
    if (!w->scaled[v] && !(w->scaled[v] = malloc(w->n * sizeof(float))))
        return no_memory(w, err);
    oct_warp_scale(from, w->n, w->pair->range, w->workers, w->scaled[v]);
    return OCT_OK;
}

/* Of the voxels that are seen. */
static void compare_scaled(const struct work *w, struct oct_warp_likeness *likeness)
{
    oct_warp_compare(w->scaled[0], w->scaled[1], w->seen, w->n, w->workers, likeness);
}

static enum oct_err scale_both(struct work *w, struct oct_error *err)
{
    const enum oct_err e = scale(w, 0, w->raw[0], err);
    return e ? e : scale(w, 1, w->raw[1], err);
}

/* The two volumes from 0 to 1, what of them is compared, and their likeness before. */
static enum oct_err begin_work(struct work *w, struct oct_error *err)
{
    enum oct_err e = oct_warp_range(w->raw[0], w->raw[1], w->n, w->pair->range, err);
    e = e ? e : scale_both(w, err);
    w->compared = malloc(w->n);
    w->seen = malloc(w->n);
    if (e || !w->compared || !w->seen)
        return e ? e : no_memory(w, err);
    for (size_t i = 0; i < w->n; i++) {
        w->compared[i] = isfinite(w->raw[0][i]) && (!w->mask || w->mask[i]);
        w->seen[i] = w->compared[i] && isfinite(w->raw[1][i]);
    }
    compare_scaled(w, &w->pair->before);
    return OCT_OK;
}

static struct oct_warp_bscans_setup bscans_setup(const struct oct_warp_pair_setup *setup)
{
    struct oct_warp_bscans_setup of = setup->reach;

    memcpy(of.dims, setup->solver.grid.dims, sizeof(of.dims));
    of.workers = setup->solver.workers;
    return of;
}

static enum oct_err align_bscans(struct work *w, struct oct_error *err)
{
    const struct oct_warp_bscans_setup setup = bscans_setup(w->setup);

    w->pair->bscans = calloc(w->dims[0], sizeof(*w->pair->bscans));
    if (!w->pair->bscans)
        return no_memory(w, err);
    return oct_warp_bscans(&setup, w->scaled[0], w->scaled[1], w->pair->bscans, err);
}

/* ---- what has a place ---- */

static void find_seen_bscan(void *context, unsigned b, unsigned worker)
{
    const struct work *w = context;
    const uint32_t *dims = w->dims;
    const size_t n_bscan = (size_t)dims[1] * dims[2];
    const bool blind = w->pair->bscans && isnan(w->pair->bscans[b].score);

    (void)worker;
    for (size_t k = 0; k < n_bscan; k++) {
        const size_t at = b * n_bscan + k, x[3] = {b, k / dims[2], k % dims[2]};
        bool inside = w->compared[at] && !blind;
        size_t place = 0;
        for (unsigned i = 0; i < 3 && inside; i++) {
            const double y = (double)x[i] - (double)w->pair->displacement[i * w->n + at];
            inside = y >= 0 && y <= dims[i] - 1.0;
            place = inside ? place * dims[i] + (size_t)(y + 0.5) : 0;
        }
        w->seen[at] = inside && isfinite(w->raw[1][place]);
    }
}

/* Fills seen; the displacement is that of the whole map. OCT_E_ARG: too little is. */
static enum oct_err find_seen(struct work *w, struct oct_error *err)
{
    size_t n_seen = 0, n_compared = 0;

    oct_workers_run(w->workers, w->dims[0], find_seen_bscan, w);
    for (size_t i = 0; i < w->n; i++) {
        n_seen += w->seen[i];
        n_compared += w->compared[i];
    }
    return oct_warp_overlap_check(n_compared ? (double)n_seen / (double)n_compared : 0, err);
}

/* ---- the parts of a model ---- */

/* A copy of the moving volume with the range's lower end in place of what is not finite; NULL: out
 * of memory. */
static float *finite_moving(const struct work *w)
{
    float *copy = malloc(w->n * sizeof(float));

    for (size_t i = 0; copy && i < w->n; i++)
        copy[i] = isfinite(w->raw[1][i]) ? w->raw[1][i] : (float)w->pair->range[0];
    return copy;
}

/* The moving volume by the B-scans alone. */
static enum oct_err warp_rigid(struct work *w, float **warped, struct oct_error *err)
{
    float *moving = finite_moving(w);

    *warped = malloc(w->n * sizeof(float));
    if (moving && *warped)
        oct_warp_bscans_align(w->pair->bscans, w->dims, moving, w->workers, *warped);
    const bool fits = moving && *warped;
    free(moving);
    return fits ? OCT_OK : no_memory(w, err);
}

static const struct oct_warp_progress *progress_of(const struct work *w)
{
    return w->setup->progress.call ? &w->setup->progress : NULL;
}

/* The displacement, then of the whole map its J and the warped volume. */
static enum oct_err solve(struct work *w, const struct oct_warp_ops *ops,
                          struct oct_warp_engine *engine, struct oct_error *err)
{
    struct oct_warp_pair *pair = w->pair;

    enum oct_err e = ops->solve(engine, w->scaled[0], w->scaled[1], w->seen, pair->displacement,
                                &pair->report, progress_of(w), err);
    drop(&w->scaled[0]);
    drop(&w->scaled[1]);
    if (e)
        return e;
    if (pair->bscans)
        oct_warp_bscans_compose(pair->bscans, w->dims, w->workers, pair->displacement);
    pair->jacobian = malloc(w->n * sizeof(float));
    pair->warped = malloc(w->n * sizeof(float));
    float *moving = finite_moving(w);
    e = pair->jacobian && pair->warped && moving ? OCT_OK : no_memory(w, err);
    e = e ? e : ops->jacobian(engine, pair->displacement, pair->jacobian, err);
    e = e ? e : ops->warp(engine, moving, pair->displacement, pair->warped, err);
    free(moving);
    snprintf(pair->running, sizeof(pair->running), "%s",
             ops->running ? ops->running(engine) : ops->name);
    return e;
}

/* The solver from the volumes as they are, or from B-scans that are aligned. */
static enum oct_err nonlinear(struct work *w, struct oct_error *err)
{
    const struct oct_warp_ops *ops;
    struct oct_warp_engine *engine = NULL;

    oct_warp_fill(w->raw[1], w->dims, w->scaled[1]);
    if (w->pair->bscans) {
        float *aligned = malloc(w->n * sizeof(float));
        if (!aligned)
            return no_memory(w, err);
        oct_warp_bscans_align(w->pair->bscans, w->dims, w->scaled[1], w->workers, aligned);
        drop(&w->scaled[1]);
        w->scaled[1] = aligned;
    }
    enum oct_err e = oct_warp_select(&ops, &engine, w->setup->backend, &w->solver, err);
    if (e)
        return e;
    e = solve(w, ops, engine, err);
    ops->destroy(engine);
    return e;
}

static enum oct_err finish_map(struct work *w, struct oct_error *err)
{
    enum oct_err e = find_seen(w, err);
    if (!e && !w->scaled[0])
        e = scale(w, 0, w->raw[0], err);
    e = e ? e : scale(w, 1, w->pair->warped, err);
    if (!e)
        compare_scaled(w, &w->pair->after);
    return e;
}

/* No shifts where the volumes without them fit each other as well as with them. */
static void leave_what_fits(struct work *w, double ssd)
{
    struct oct_warp_likeness as_is;

    oct_warp_scale(w->raw[1], w->n, w->pair->range, w->workers, w->scaled[1]);
    compare_scaled(w, &as_is);
    for (uint32_t b = 0; b < w->dims[0] && as_is.ssd <= ssd; b++)
        memset(w->pair->bscans[b].shift, 0, sizeof(w->pair->bscans[b].shift));
}

/* With both models: whether the solver gained anything, and the map without it where not. */
static enum oct_err keep_what_gains(struct work *w, struct oct_error *err)
{
    struct oct_warp_pair *pair = w->pair;
    struct oct_warp_likeness of_rigid;
    float *rigid;

    leave_what_fits(w, pair->after.ssd);
    enum oct_err e = warp_rigid(w, &rigid, err);
    if (!e) {
        oct_warp_scale(rigid, w->n, pair->range, w->workers, w->scaled[1]);
        compare_scaled(w, &of_rigid);
        pair->is_rigid = !(pair->after.ssd < (1 - LEAST_GAIN) * of_rigid.ssd);
    }
    if (e || !pair->is_rigid) {
        free(rigid);
        return e;
    }
    free(pair->warped);
    pair->warped = rigid;
    oct_warp_bscans_displacement(pair->bscans, w->dims, pair->displacement);
    oct_warp_bscans_jacobian(pair->bscans, w->dims, pair->jacobian);
    e = find_seen(w, err);
    if (!e)
        compare_scaled(w, &pair->after);
    return e;
}

/* ---- volumes that did not move between B-scans ---- */

/* At which factor the two are compared: the finest above 1 that both have, else 1, which is no
 * cheaper than the solver is; 0: none. */
static unsigned factor_of_trial(const struct oct_warp_params *a, const struct oct_warp_params *b)
{
    unsigned found = 0;

    for (unsigned i = 0; i < a->n_levels; i++)
        for (unsigned k = 0; k < b->n_levels; k++)
            if (a->factor[i] == b->factor[k] && (a->factor[i] > 1 || found == 0))
                found = a->factor[i];
    return found;
}

/* The SSD at that factor of the solver without B-scans, of the voxels that the one with them
 * compares; infinite: there is nothing to compare with. The displacement is overwritten. */
static enum oct_err try_still(struct work *w, double *ssd, struct oct_error *err)
{
    const struct oct_warp_ops *ops;
    struct oct_warp_engine *engine = NULL;
    struct oct_warp_setup coarse = w->solver;
    struct oct_warp_report report;

    const unsigned factor = factor_of_trial(&w->solver.params, &w->setup->still);

    *ssd = INFINITY;
    oct_warp_fill(w->raw[1], w->dims, w->scaled[1]);
    if (factor == 0)
        return OCT_OK;
    coarse.params = w->setup->still;
    while (coarse.params.factor[coarse.params.n_levels - 1] != factor)
        coarse.params.n_levels--;
    enum oct_err e = oct_warp_select(&ops, &engine, w->setup->backend, &coarse, err);
    if (e)
        return e;
    e = ops->solve(engine, w->scaled[0], w->scaled[1], w->seen, w->pair->displacement, &report,
                   progress_of(w), err);
    ops->destroy(engine);
    if (!e)
        *ssd = report.level[report.n_levels - 1].ssd;
    return e;
}

/* The part of the SSD of the solver with B-scans; infinite: it has not that factor. */
static double part_of_still(const struct work *w, double ssd)
{
    const struct oct_warp_report *report = &w->pair->report;
    const unsigned factor = factor_of_trial(&w->solver.params, &w->setup->still);

    for (unsigned i = 0; i < report->n_levels; i++)
        if (report->level[i].factor == factor)
            return ssd / report->level[i].ssd;
    return INFINITY;
}

/* The solver after B-scans that are given, or as OCT_WARP_NONLINEAR, instead of what there is: what
 * was found is not kept in memory beside another. */
static enum oct_err solve_anew(struct work *w, struct oct_warp_bscan *bscans, struct oct_error *err)
{
    struct oct_warp_pair *pair = w->pair;

    pair->bscans = bscans;
    pair->is_still = !bscans;
    w->solver.params = bscans ? w->setup->solver.params : w->setup->still;
    drop(&pair->jacobian);
    drop(&pair->warped);
    enum oct_err e = scale_both(w, err);
    if (bscans)
        oct_warp_bscans_displacement(bscans, w->dims, pair->displacement);
    else
        memset(pair->displacement, 0, 3 * w->n * sizeof(float));
    e = e ? e : find_seen(w, err);
    e = e ? e : nonlinear(w, err);
    return e ? e : finish_map(w, err);
}

/* Of the solver with B-scans, which is there, and alone: what leaves less at a voxel. */
static enum oct_err compare_both(struct work *w, struct oct_error *err)
{
    struct oct_warp_pair *pair = w->pair;
    struct oct_warp_bscan *bscans = pair->bscans;
    const double ssd = pair->after.ssd / (double)pair->after.n;

    enum oct_err e = solve_anew(w, NULL, err);
    if (!e && pair->after.ssd / (double)pair->after.n < MOST_OF_STILL * ssd) {
        free(bscans);
        return OCT_OK;
    }
    pair->bscans = bscans;
    return e && e != OCT_E_ARG ? e : solve_anew(w, bscans, err);
}

/* The solver after the B-scans; or alone, where that is better. */
static enum oct_err both(struct work *w, struct oct_error *err)
{
    double still_ssd;

    enum oct_err e = try_still(w, &still_ssd, err);
    e = e ? e : nonlinear(w, err);
    const double part = part_of_still(w, still_ssd);
    if (!e && part < MOST_OF_STILL) {
        drop(&w->scaled[0]);
        drop(&w->scaled[1]);
        free(w->pair->bscans);
        return solve_anew(w, NULL, err);
    }
    e = e ? e : finish_map(w, err);
    e = e ? e : keep_what_gains(w, err);
    return e || w->pair->is_rigid || part > MOST_TO_COMPARE ? e : compare_both(w, err);
}

/* Of the map that is given: fields that do not fold do where B-scans of a jump lie beside them. */
static enum oct_err look_at_map(struct work *w, struct oct_error *err)
{
    struct oct_warp_pair *pair = w->pair;

    if (!pair->jacobian) {
        pair->jacobian = malloc(w->n * sizeof(float));
        if (!pair->jacobian)
            return no_memory(w, err);
        oct_warp_bscans_jacobian(pair->bscans, w->dims, pair->jacobian);
    }
    oct_warp_look_at_jacobian(pair->jacobian, w->mask, w->n, w->workers, &pair->change);
    return OCT_OK;
}

static enum oct_err register_pair(struct work *w, struct oct_error *err)
{
    const enum oct_warp_model model = w->setup->model;
    struct oct_warp_pair *pair = w->pair;

    enum oct_err e = begin_work(w, err);
    if (!e && model != OCT_WARP_NONLINEAR)
        e = align_bscans(w, err);
    if (!e && !(pair->displacement = calloc(3 * w->n, sizeof(float))))
        e = no_memory(w, err);
    if (!e && pair->bscans)
        oct_warp_bscans_displacement(pair->bscans, w->dims, pair->displacement);
    e = e ? e : find_seen(w, err);
    if (!e && model == OCT_WARP_BOTH)
        e = both(w, err);
    else if (!e) {
        snprintf(pair->running, sizeof(pair->running), "cpu");
        e = model == OCT_WARP_BSCANS ? warp_rigid(w, &pair->warped, err) : nonlinear(w, err);
        e = e ? e : finish_map(w, err);
    }
    return e ? e : look_at_map(w, err);
}

enum oct_err oct_warp_pair_register(const struct oct_warp_pair_setup *setup, const float *fixed,
                                    const float *moving, const uint8_t *mask,
                                    struct oct_warp_pair *pair, struct oct_error *err)
{
    const uint64_t begun = oct_clock_ns();
    struct work w = {.setup = setup,
                     .solver = setup->solver,
                     .dims = setup->solver.grid.dims,
                     .n = oct_warp_n_voxels(&setup->solver.grid),
                     .raw = {fixed, moving},
                     .mask = mask,
                     .workers = setup->solver.workers,
                     .pair = pair};

    memset(pair, 0, sizeof(*pair));
    enum oct_err e = oct_warp_params_check(&setup->solver.params, &setup->solver.grid, err);
    if (!e && setup->model == OCT_WARP_BOTH && setup->still.n_levels > 0)
        e = oct_warp_params_check(&setup->still, &setup->solver.grid, err);
    if (!e)
        e = register_pair(&w, err);
    drop(&w.scaled[0]);
    drop(&w.scaled[1]);
    free(w.compared);
    free(w.seen);
    if (e)
        oct_warp_pair_finish(pair);
    pair->seconds = (double)(oct_clock_ns() - begun) * 1e-9;
    return e;
}

/* ---- memory ---- */

uint64_t oct_warp_pair_bytes(const struct oct_warp_pair_setup *setup)
{
    const uint64_t n = oct_warp_n_voxels(&setup->solver.grid), voxel = n * sizeof(float);
    const bool on_gpu = setup->backend && strcmp(setup->backend, "cuda") == 0 &&
                        setup->solver.params.profile == OCT_WARP_OCTD;
    const uint64_t engine = on_gpu ? 0 : oct_warp_cpu.bytes(&setup->solver);
    const uint64_t lent = 2 * voxel + 2 * n; /* the caller's volumes; compared, seen */
    const struct oct_warp_bscans_setup of = bscans_setup(setup);
    const uint64_t bscans =
        setup->model == OCT_WARP_NONLINEAR ? 0 : 2 * voxel + oct_warp_bscans_bytes(&of);
    /* Beside those: both scaled, and what the B-scans take; both scaled, the displacement and the
     * engine; displacement, J, warped, a finite copy and the engine; without it, both scaled and a
     * second warped volume. */
    const uint64_t parts[] = {bscans, 5 * voxel + engine, 6 * voxel + engine, 9 * voxel};
    uint64_t most = 0;

    if (setup->model == OCT_WARP_BSCANS)
        return lent + (bscans > 7 * voxel ? bscans : 7 * voxel);
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        most = parts[i] > most ? parts[i] : most;
    return lent + most;
}

void oct_warp_pair_finish(struct oct_warp_pair *pair)
{
    free(pair->displacement);
    free(pair->jacobian);
    free(pair->warped);
    free(pair->bscans);
    memset(pair, 0, sizeof(*pair));
}
