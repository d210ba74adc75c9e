#include "analysis/warp/solver.h"

#include "pipeline/base/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ---- */

void oct_warp_params_default(struct oct_warp_params *params, enum oct_warp_profile profile,
                             const uint32_t dims[3])
{
    static const unsigned factors[OCT_WARP_MOST_LEVELS] = {8, 4, 2, 1};
    static const unsigned iterations[OCT_WARP_MOST_LEVELS] = {100, 100, 30, 10};
    uint32_t least = dims[0], most = dims[0];
    for (unsigned i = 1; i < 3; i++) {
        least = dims[i] < least ? dims[i] : least;
        most = dims[i] > most ? dims[i] : most;
    }
    *params = (struct oct_warp_params){
        .profile = profile, .lambda = 5e-4, .sigma = 4, .kappa = 1, .most_step = 0.5};
    for (unsigned i = 0; i < OCT_WARP_MOST_LEVELS; i++) {
        const bool fits = least / factors[i] >= OCT_WARP_LEAST_SIDE || factors[i] == 1;
        if (!fits || (factors[i] == 8 && most <= 256))
            continue;
        params->factor[params->n_levels] = factors[i];
        params->iterations[params->n_levels++] = iterations[i];
    }
}

static enum oct_err check_grid(const struct oct_warp_grid *grid, struct oct_error *err)
{
    const uint32_t *dims = grid->dims;
    for (unsigned i = 0; i < 3; i++) {
        if (dims[i] < OCT_WARP_LEAST_SIDE)
            return oct_fail(err, OCT_E_ARG,
                            "warp: a volume of %u x %u x %u voxels; give sides of %u or more",
                            dims[0], dims[1], dims[2], OCT_WARP_LEAST_SIDE);
        if (!(grid->spacing[i] > 0) || !isfinite(grid->spacing[i]))
            return oct_fail(err, OCT_E_ARG, "warp: a spacing of %g; give one above 0",
                            grid->spacing[i]);
    }
    if ((uint64_t)dims[0] * dims[1] > OCT_WARP_MOST_VOXELS / dims[2])
        return oct_fail(err, OCT_E_ARG, "warp: a volume of %u x %u x %u voxels; %llu are the most",
                        dims[0], dims[1], dims[2], (unsigned long long)OCT_WARP_MOST_VOXELS);
    return OCT_OK;
}

static enum oct_err check_levels(const struct oct_warp_params *p, const struct oct_warp_grid *grid,
                                 struct oct_error *err)
{
    if (p->n_levels == 0 || p->n_levels > OCT_WARP_MOST_LEVELS)
        return oct_fail(err, OCT_E_ARG, "warp: %u levels; give 1 to %u", p->n_levels,
                        OCT_WARP_MOST_LEVELS);
    for (unsigned i = 0; i < p->n_levels; i++) {
        const unsigned k = p->factor[i];
        if (k == 0 || k > 64 || (i > 0 && k >= p->factor[i - 1]))
            return oct_fail(err, OCT_E_ARG,
                            "warp: level %u has factor %u; give falling ones of 64 to 1", i + 1, k);
        for (unsigned axis = 0; axis < 3; axis++)
            if (grid->dims[axis] / k < OCT_WARP_LEAST_SIDE)
                return oct_fail(err, OCT_E_ARG,
                                "warp: factor %u leaves %u of a side's %u voxels; %u are the least",
                                k, grid->dims[axis] / k, grid->dims[axis], OCT_WARP_LEAST_SIDE);
        if (p->iterations[i] > 100000)
            return oct_fail(err, OCT_E_ARG, "warp: %u iterations of a level; 100000 are the most",
                            p->iterations[i]);
    }
    return OCT_OK;
}

enum oct_err oct_warp_params_check(const struct oct_warp_params *params,
                                   const struct oct_warp_grid *grid, struct oct_error *err)
{
    const enum oct_err e = check_grid(grid, err);
    if (e != OCT_OK)
        return e;
    if (params->profile != OCT_WARP_OCTD && params->profile != OCT_WARP_PAPER)
        return oct_fail(err, OCT_E_ARG, "warp: there is no profile %d", (int)params->profile);
    if (!(params->lambda >= 0 && params->lambda <= 1e6))
        return oct_fail(err, OCT_E_ARG, "warp: lambda %g; give 0 to 1e6", params->lambda);
    if (!(params->sigma >= 0.5 && params->sigma <= 32))
        return oct_fail(err, OCT_E_ARG, "warp: sigma %g; give 0.5 to 32", params->sigma);
    if (!(params->kappa >= 0 && params->kappa <= 1e6))
        return oct_fail(err, OCT_E_ARG, "warp: kappa %g; give 0 to 1e6", params->kappa);
    if (!(params->most_step > 0 && params->most_step <= 1))
        return oct_fail(err, OCT_E_ARG, "warp: steps of %g voxels at most; give 0 to 1",
                        params->most_step);
    return check_levels(params, grid, err);
}

/* ---- which engine solves, and what happens when its GPU fails ----
 *
 * An engine itself, so that nothing around it needs to know. Engines keep nothing between two calls
 * and write a result when there is one: so the CPU does the same call again. */

struct oct_warp_engine {
    const struct oct_warp_ops *now;
    struct oct_warp_engine *engine; /* of `now` */
    struct oct_warp_setup setup;
    char *gpus;
    bool is_auto; /* the CPU computes what has no room on the GPU, too */
};

static void failover_destroy(struct oct_warp_engine *w)
{
    if (!w)
        return;
    if (w->engine)
        w->now->destroy(w->engine);
    free(w->gpus);
    free(w);
}

/* After a call that returned *e, with *err: whether the CPU's engine does the same call. Where none
 * can be made that of the GPU stays, which says again that its device is gone. */
static bool change_engines(struct oct_warp_engine *w, enum oct_err *e, struct oct_error *err)
{
    struct oct_warp_engine *cpu;
    const struct oct_error why = *err;
    const bool may = *e == OCT_E_BACKEND || (*e == OCT_E_NO_MEMORY && w->is_auto);

    if (w->now == &oct_warp_cpu || !may || (*e = oct_warp_cpu.create(&cpu, &w->setup, err)))
        return false;
    w->now->destroy(w->engine);
    w->now = &oct_warp_cpu;
    w->engine = cpu;
    oct_log(OCT_LOG_WARNING, "warp: %s; the CPU goes on", why.text);
    return true;
}

static enum oct_err failover_solve(struct oct_warp_engine *w, const float *fixed,
                                   const float *moving, const uint8_t *mask, float *displacement,
                                   struct oct_warp_report *report,
                                   const struct oct_warp_progress *progress, struct oct_error *err)
{
    enum oct_err e;
    do
        e = w->now->solve(w->engine, fixed, moving, mask, displacement, report, progress, err);
    while (e && change_engines(w, &e, err));
    return e;
}

static enum oct_err failover_warp(struct oct_warp_engine *w, const float *moving,
                                  const float *displacement, float *warped, struct oct_error *err)
{
    enum oct_err e;
    do
        e = w->now->warp(w->engine, moving, displacement, warped, err);
    while (e && change_engines(w, &e, err));
    return e;
}

static enum oct_err failover_jacobian(struct oct_warp_engine *w, const float *displacement,
                                      float *jacobian, struct oct_error *err)
{
    enum oct_err e;
    do
        e = w->now->jacobian(w->engine, displacement, jacobian, err);
    while (e && change_engines(w, &e, err));
    return e;
}

static enum oct_err failover_force(struct oct_warp_engine *w, const float *fixed,
                                   const float *moving, const float *displacement, double *energy,
                                   float *force, struct oct_error *err)
{
    enum oct_err e;
    do
        e = w->now->force(w->engine, fixed, moving, displacement, energy, force, err);
    while (e && change_engines(w, &e, err));
    return e;
}

static const char *failover_running(const struct oct_warp_engine *w)
{
    return w->now->name;
}

/* Of the GPU's memory. */
static uint64_t failover_bytes(const struct oct_warp_setup *setup)
{
    return oct_warp_cuda.bytes(setup);
}

static const struct oct_warp_ops failover_ops = {
    .name = "cuda",
    .bytes = failover_bytes,
    .solve = failover_solve,
    .warp = failover_warp,
    .jacobian = failover_jacobian,
    .force = failover_force,
    .running = failover_running,
    .destroy = failover_destroy,
};

static enum oct_err create_failover(struct oct_warp_engine **engine, bool is_auto,
                                    const struct oct_warp_setup *setup, struct oct_error *err)
{
    if (!oct_warp_cuda.create)
        return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA");
    struct oct_warp_engine *w = calloc(1, sizeof(*w));
    char *gpus = strdup(setup->gpus ? setup->gpus : "");
    if (!w || !gpus) {
        free(w);
        free(gpus);
        return oct_fail(err, OCT_E_NO_MEMORY, "warp: out of memory for an engine");
    }
    *w = (struct oct_warp_engine){
        .now = &oct_warp_cuda, .setup = *setup, .gpus = gpus, .is_auto = is_auto};
    w->setup.gpus = gpus;
    const enum oct_err e = w->now->create(&w->engine, &w->setup, err);
    if (e)
        failover_destroy(w);
    else
        *engine = w;
    return e;
}

enum oct_err oct_warp_select(const struct oct_warp_ops **ops, struct oct_warp_engine **engine,
                             const char *backend, const struct oct_warp_setup *setup,
                             struct oct_error *err)
{
    const bool is_auto = strcmp(backend, "cuda") != 0;
    const bool is_paper = setup->params.profile == OCT_WARP_PAPER;
    *engine = NULL;
    if (is_paper && !is_auto)
        oct_log(OCT_LOG_WARNING, "warp: the paper's steps are computed by the CPU");
    if (!is_paper && strcmp(backend, "cpu") != 0) {
        const enum oct_err e = create_failover(engine, is_auto, setup, err);
        const bool cpu_may = is_auto && (e == OCT_E_BACKEND || e == OCT_E_NO_MEMORY);
        *ops = &failover_ops;
        if (!cpu_may)
            return e;
        if (e == OCT_E_NO_MEMORY)
            oct_log(OCT_LOG_WARNING, "warp: %s; the CPU computes", err->text);
    }
    *ops = &oct_warp_cpu;
    return oct_warp_cpu.create(engine, setup, err);
}
