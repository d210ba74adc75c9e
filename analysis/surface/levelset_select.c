/* Which engine denoises, and what happens when its GPU fails: itself an engine, so that nothing
 * around it needs to know. An engine keeps nothing between two calls, and the result is written
 * when there is one: so the CPU does the same call again. */
#include "analysis/surface/levelset.h"
#include "pipeline/base/log.h"

#include <stdlib.h>
#include <string.h>

struct oct_levelset_engine {
    const struct oct_levelset_ops *now;
    struct oct_levelset_engine *engine; /* of `now`; NULL: both have failed */
    struct oct_levelset_setup setup;
    char *gpus;
    bool is_auto; /* the CPU computes what has no room on the GPU, too */
};

static void failover_destroy(struct oct_levelset_engine *l)
{
    if (!l)
        return;
    if (l->engine)
        l->now->destroy(l->engine);
    free(l->gpus);
    free(l);
}

/* The device is gone, or too small. OCT_OK: the CPU's engine stands. */
static enum oct_err change_engines(struct oct_levelset_engine *l, const struct oct_error *why,
                                   struct oct_error *err)
{
    if (l->now == &oct_levelset_cpu)
        return oct_fail(err, OCT_E_BACKEND, "%s", why->text);
    l->now->destroy(l->engine);
    l->engine = NULL;
    l->now = &oct_levelset_cpu;
    const enum oct_err e = l->now->create(&l->engine, &l->setup, err);
    if (!e)
        oct_log(OCT_LOG_WARNING, "level set: %s; the CPU goes on", why->text);
    return e;
}

static enum oct_err failover_denoise(struct oct_levelset_engine *l, const float *phi, float *result,
                                     struct oct_levelset_report *report, struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    if (!l->engine)
        return oct_fail(err, OCT_E_BACKEND,
                        "the GPU has failed and the level set on the CPU did not start");
    enum oct_err e = l->now->denoise(l->engine, phi, result, report, &why);
    if (!e)
        return OCT_OK;
    const bool no_room = e == OCT_E_NO_MEMORY && l->is_auto && l->now == &oct_levelset_cuda;
    if (e != OCT_E_BACKEND && !no_room)
        return oct_fail(err, e, "%s", why.text);
    e = change_engines(l, &why, err);
    return e ? e : l->now->denoise(l->engine, phi, result, report, err);
}

static const char *failover_running(const struct oct_levelset_engine *l)
{
    return l->now->name;
}

static const struct oct_levelset_ops failover_ops = {
    .name = "cuda",
    .denoise = failover_denoise,
    .running = failover_running,
    .destroy = failover_destroy,
};

static enum oct_err create_failover(struct oct_levelset_engine **engine, bool is_auto,
                                    const struct oct_levelset_setup *setup, struct oct_error *err)
{
    struct oct_levelset_engine *l = calloc(1, sizeof(*l));
    *engine = NULL;
    if (!l)
        return oct_fail(err, OCT_E_NO_MEMORY, "level set: out of memory for an engine");
    l->now = &oct_levelset_cuda;
    l->setup = *setup;
    l->is_auto = is_auto;
    l->gpus = strdup(setup->gpus ? setup->gpus : "");
    l->setup.gpus = l->gpus;
    const enum oct_err e = l->gpus ? l->now->create(&l->engine, &l->setup, err)
                                   : oct_fail(err, OCT_E_NO_MEMORY, "level set: out of memory");
    if (e)
        failover_destroy(l);
    else
        *engine = l;
    return e;
}

enum oct_err oct_levelset_select(const struct oct_levelset_ops **ops,
                                 struct oct_levelset_engine **engine, const char *backend,
                                 const struct oct_levelset_setup *setup, struct oct_error *err)
{
    struct oct_error no_gpu = {.text = ""};
    const bool is_auto = strcmp(backend, "cuda") != 0;
    if (strcmp(backend, "cpu") != 0) {
        const enum oct_err e = create_failover(engine, is_auto, setup, &no_gpu);
        if (!e) {
            *ops = &failover_ops;
            return OCT_OK;
        }
        const bool cpu_may = e == OCT_E_BACKEND || e == OCT_E_NO_MEMORY;
        if (!cpu_may || !is_auto)
            return oct_fail(err, e, "%s", no_gpu.text);
    }
    *ops = &oct_levelset_cpu;
    return oct_levelset_cpu.create(engine, setup, err);
}
