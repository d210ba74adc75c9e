/* Which engine registers, and what happens when its GPU fails: itself an engine, so that nothing
 * around it needs to know. An engine keeps nothing between two calls, and a result is written when
 * there is one: so the CPU does the same call again. */
#include "analysis/warp/solver.h"
#include "pipeline/base/log.h"

#include <stdlib.h>
#include <string.h>

struct oct_warp_engine {
    const struct oct_warp_ops *now;
    struct oct_warp_engine *engine; /* of `now`; NULL: both have failed */
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

/* The device is gone, or too small. OCT_OK: the CPU's engine stands. */
static enum oct_err change_engines(struct oct_warp_engine *w, const struct oct_error *why,
                                   struct oct_error *err)
{
    w->now->destroy(w->engine);
    w->engine = NULL;
    w->now = &oct_warp_cpu;
    const enum oct_err e = w->now->create(&w->engine, &w->setup, err);
    if (!e)
        oct_log(OCT_LOG_WARNING, "warp: %s; the CPU goes on", why->text);
    return e;
}

/* What came of a call on the GPU. *again: the CPU does the same call. */
static enum oct_err judge(struct oct_warp_engine *w, enum oct_err e, const struct oct_error *why,
                          bool *again, struct oct_error *err)
{
    const bool on_gpu = w->now == &oct_warp_cuda;
    *again = false;
    if (!e)
        return OCT_OK;
    if (!on_gpu || (e != OCT_E_BACKEND && !(e == OCT_E_NO_MEMORY && w->is_auto)))
        return oct_fail(err, e, "%s", why->text);
    const enum oct_err of_change = change_engines(w, why, err);
    *again = !of_change;
    return of_change;
}

static enum oct_err is_there(const struct oct_warp_engine *w, struct oct_error *err)
{
    return w->engine ? OCT_OK
                     : oct_fail(err, OCT_E_BACKEND,
                                "the GPU has failed and the registration on the CPU did not start");
}

static enum oct_err failover_solve(struct oct_warp_engine *w, const float *fixed,
                                   const float *moving, const uint8_t *mask, float *displacement,
                                   struct oct_warp_report *report,
                                   const struct oct_warp_progress *progress, struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    bool again = true;
    enum oct_err e = is_there(w, err);
    while (!e && again) {
        e = w->now->solve(w->engine, fixed, moving, mask, displacement, report, progress, &why);
        e = judge(w, e, &why, &again, err);
    }
    return e;
}

static enum oct_err failover_warp(struct oct_warp_engine *w, const float *moving,
                                  const float *displacement, float *warped, struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    bool again = true;
    enum oct_err e = is_there(w, err);
    while (!e && again) {
        e = w->now->warp(w->engine, moving, displacement, warped, &why);
        e = judge(w, e, &why, &again, err);
    }
    return e;
}

static enum oct_err failover_jacobian(struct oct_warp_engine *w, const float *displacement,
                                      float *jacobian, struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    bool again = true;
    enum oct_err e = is_there(w, err);
    while (!e && again) {
        e = w->now->jacobian(w->engine, displacement, jacobian, &why);
        e = judge(w, e, &why, &again, err);
    }
    return e;
}

static enum oct_err failover_force(struct oct_warp_engine *w, const float *fixed,
                                   const float *moving, const float *displacement, bool lagrangian,
                                   double *energy, float *force, struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    bool again = true;
    enum oct_err e = is_there(w, err);
    while (!e && again) {
        e = w->now->force(w->engine, fixed, moving, displacement, lagrangian, energy, force, &why);
        e = judge(w, e, &why, &again, err);
    }
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
    struct oct_warp_engine *w = calloc(1, sizeof(*w));
    *engine = NULL;
    if (!w)
        return oct_fail(err, OCT_E_NO_MEMORY, "warp: out of memory for an engine");
    w->now = &oct_warp_cuda;
    w->setup = *setup;
    w->is_auto = is_auto;
    w->gpus = strdup(setup->gpus ? setup->gpus : "");
    w->setup.gpus = w->gpus;
    const enum oct_err e = w->gpus ? w->now->create(&w->engine, &w->setup, err)
                                   : oct_fail(err, OCT_E_NO_MEMORY, "warp: out of memory");
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
    struct oct_error no_gpu = {.text = ""};
    const bool is_auto = strcmp(backend, "cuda") != 0;
    *engine = NULL;
    if (strcmp(backend, "cpu") != 0) {
        const enum oct_err e = create_failover(engine, is_auto, setup, &no_gpu);
        if (!e) {
            *ops = &failover_ops;
            return OCT_OK;
        }
        const bool cpu_may = e == OCT_E_BACKEND || e == OCT_E_NO_MEMORY;
        if (!cpu_may || !is_auto)
            return oct_fail(err, e, "%s", no_gpu.text);
        if (e == OCT_E_NO_MEMORY)
            oct_log(OCT_LOG_WARNING, "warp: %s; the CPU computes", no_gpu.text);
    }
    *ops = &oct_warp_cpu;
    return oct_warp_cpu.create(engine, setup, err);
}
