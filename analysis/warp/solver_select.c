/* Which engine registers. An engine keeps nothing between two calls, and a result is written when
 * there is one: so the CPU does the same call again. */
#include "analysis/warp/solver.h"
#include "kernels/device/twin.h"

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
                                   const float *moving, const float *displacement, bool lagrangian,
                                   double *energy, float *force, struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &w->twin, .err = err};
    while (oct_twin_tries(&c))
        c.e = tables[w->twin.on_gpu]->force(w->twin.engine, fixed, moving, displacement, lagrangian,
                                            energy, force, &c.why);
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
    const bool has_cuda = oct_warp_cuda.create != NULL;
    const enum oct_err e = oct_twin_create(&twin, &kind, has_cuda, backend, setup, &reason, err);
    *engine = (struct oct_warp_engine *)twin;
    *ops = twin ? &failover_ops : &oct_warp_cpu;
    return e || twin ? e : oct_warp_cpu.create(engine, setup, err);
}
