#include "analysis/warp/solver.h"

#include "kernels/device/twin.h"
#include "pipeline/base/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters ---- */

unsigned oct_warp_iterations(enum oct_warp_profile profile, unsigned factor)
{
    if (profile == OCT_WARP_PAPER)
        return factor >= 4 ? 100 : factor >= 2 ? 30 : 10;
    return factor >= 4 ? 400 : factor >= 2 ? 120 : 20;
}

void oct_warp_params_default(struct oct_warp_params *params, enum oct_warp_profile profile,
                             const uint32_t dims[3])
{
    static const unsigned factors[OCT_WARP_MOST_LEVELS] = {8, 4, 2, 1};
    uint32_t least = dims[0], most = dims[0];
    for (unsigned i = 1; i < 3; i++) {
        least = dims[i] < least ? dims[i] : least;
        most = dims[i] > most ? dims[i] : most;
    }
    *params = (struct oct_warp_params){.profile = profile,
                                       .lambda = profile == OCT_WARP_PAPER ? 5e-4 : 1e-3,
                                       .sigma = 4,
                                       .kappa = 1,
                                       .most_step = 0.5};
    for (unsigned i = 0; i < OCT_WARP_MOST_LEVELS; i++) {
        const bool fits = least / factors[i] >= OCT_WARP_LEAST_SIDE || factors[i] == 1;
        if (!fits || (factors[i] == 8 && most <= 256))
            continue;
        params->factor[params->n_levels] = factors[i];
        params->iterations[params->n_levels++] = oct_warp_iterations(profile, factors[i]);
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
    struct oct_twin twin;
};

static const struct oct_warp_ops *const tables[] = {&oct_warp_cpu, &oct_warp_cuda};

static enum oct_err twin_create(void **engine, bool on_gpu, const void *setup,
                                struct oct_error *err)
{
    struct oct_warp_engine *made;
    const enum oct_err e = tables[on_gpu]->create(&made, setup, err);
    *engine = made;
    return e;
}

static void twin_destroy(void *engine, bool on_gpu)
{
    tables[on_gpu]->destroy(engine);
}

static const struct oct_twin_kind kind = {.name = "warp",
                                          .bytes = sizeof(struct oct_warp_engine),
                                          .setup_bytes = sizeof(struct oct_warp_setup),
                                          .create = twin_create,
                                          .destroy = twin_destroy};

static void failover_destroy(struct oct_warp_engine *w)
{
    oct_twin_destroy(&w->twin);
}

static enum oct_err failover_solve(struct oct_warp_engine *w, const float *fixed,
                                   const float *moving, const uint8_t *mask, float *displacement,
                                   struct oct_warp_report *report,
                                   const struct oct_warp_progress *progress, struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &w->twin, .err = err};
    while (oct_twin_tries(&c))
        c.e = tables[w->twin.on_gpu]->solve(w->twin.engine, fixed, moving, mask, displacement,
                                            report, progress, &c.why);
    return c.e;
}

static enum oct_err failover_warp(struct oct_warp_engine *w, const float *moving,
                                  const float *displacement, float *warped, struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &w->twin, .err = err};
    while (oct_twin_tries(&c))
        c.e = tables[w->twin.on_gpu]->warp(w->twin.engine, moving, displacement, warped, &c.why);
    return c.e;
}

static enum oct_err failover_jacobian(struct oct_warp_engine *w, const float *displacement,
                                      float *jacobian, struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &w->twin, .err = err};
    while (oct_twin_tries(&c))
        c.e = tables[w->twin.on_gpu]->jacobian(w->twin.engine, displacement, jacobian, &c.why);
    return c.e;
}

static enum oct_err failover_force(struct oct_warp_engine *w, const float *fixed,
                                   const float *moving, const float *displacement, double *energy,
                                   float *force, struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &w->twin, .err = err};
    while (oct_twin_tries(&c))
        c.e = tables[w->twin.on_gpu]->force(w->twin.engine, fixed, moving, displacement, energy,
                                            force, &c.why);
    return c.e;
}

/* Of the GPU's memory. */
static uint64_t failover_bytes(const struct oct_warp_setup *setup)
{
    return oct_warp_cuda.bytes(setup);
}

static const char *failover_running(const struct oct_warp_engine *w)
{
    return oct_twin_running(&w->twin);
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

enum oct_err oct_warp_select(const struct oct_warp_ops **ops, struct oct_warp_engine **engine,
                             const char *backend, const struct oct_warp_setup *setup,
                             struct oct_error *err)
{
    struct oct_twin *twin;
    struct oct_error reason;
    const bool is_paper = setup->params.profile == OCT_WARP_PAPER;
    const bool has_cuda = oct_warp_cuda.create != NULL;
    if (is_paper && strcmp(backend, "cuda") == 0)
        oct_log(OCT_LOG_WARNING, "warp: the paper's steps are computed by the CPU");
    backend = is_paper ? "cpu" : backend;
    const enum oct_err e = oct_twin_create(&twin, &kind, has_cuda, backend, setup, &reason, err);
    *engine = (struct oct_warp_engine *)twin;
    *ops = twin ? &failover_ops : &oct_warp_cpu;
    return e || twin ? e : oct_warp_cpu.create(engine, setup, err);
}
