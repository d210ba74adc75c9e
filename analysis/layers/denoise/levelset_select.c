/* Which engine denoises. An engine keeps nothing between two calls, and the result is written when
 * there is one: so the CPU does the same call again. */
#include "analysis/layers/denoise/levelset.h"
#include "kernels/device/twin.h"

struct oct_levelset_engine {
    struct oct_twin twin;
};

static const struct oct_levelset_ops *const tables[] = {&oct_levelset_cpu, &oct_levelset_cuda};

static enum oct_err twin_create(void **engine, bool on_gpu, const void *setup,
                                struct oct_error *err)
{
    struct oct_levelset_engine *made;
    const enum oct_err e = tables[on_gpu]->create(&made, setup, err);
    *engine = made;
    return e;
}

static void twin_destroy(void *engine, bool on_gpu)
{
    tables[on_gpu]->destroy(engine);
}

static const struct oct_twin_kind kind = {.name = "level set",
                                          .bytes = sizeof(struct oct_levelset_engine),
                                          .setup_bytes = sizeof(struct oct_levelset_setup),
                                          .create = twin_create,
                                          .destroy = twin_destroy};

static void failover_destroy(struct oct_levelset_engine *l)
{
    oct_twin_destroy(&l->twin);
}

static enum oct_err failover_denoise(struct oct_levelset_engine *l, const float *phi, float *result,
                                     struct oct_levelset_report *report, struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &l->twin, .err = err};
    while (oct_twin_tries(&c))
        c.e = tables[l->twin.on_gpu]->denoise(l->twin.engine, phi, result, report, &c.why);
    return c.e;
}

static const char *failover_running(const struct oct_levelset_engine *l)
{
    return oct_twin_running(&l->twin);
}

static const struct oct_levelset_ops failover_ops = {
    .name = "cuda",
    .denoise = failover_denoise,
    .running = failover_running,
    .destroy = failover_destroy,
};

enum oct_err oct_levelset_select(const struct oct_levelset_ops **ops,
                                 struct oct_levelset_engine **engine, const char *backend,
                                 const struct oct_levelset_setup *setup, struct oct_error *err)
{
    struct oct_twin *twin;
    struct oct_error reason;
    const bool has_cuda = oct_levelset_cuda.create != NULL;
    const enum oct_err e = oct_twin_create(&twin, &kind, has_cuda, backend, setup, &reason, err);
    *engine = (struct oct_levelset_engine *)twin;
    *ops = twin ? &failover_ops : &oct_levelset_cpu;
    return e || twin ? e : oct_levelset_cpu.create(engine, setup, err);
}
