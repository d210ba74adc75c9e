/* Which engine correlates. The reference that set_reference got is kept, as the CPU's engine is
 * created late. */
#include "analysis/correlate/correlate.h"
#include "kernels/device/twin.h"

#include <stdio.h>

struct oct_correlator {
    struct oct_twin twin;
    struct oct_picture reference; /* a copy; empty: none */
};

static const struct oct_correlator_ops *const tables[] = {&oct_correlator_cpu,
                                                          &oct_correlator_cuda};

static enum oct_err twin_create(void **engine, bool on_gpu, const void *setup,
                                struct oct_error *err)
{
    struct oct_correlator *made;
    const enum oct_err e = tables[on_gpu]->create(&made, setup, err);
    *engine = made;
    return e;
}

static void twin_destroy(void *engine, bool on_gpu)
{
    tables[on_gpu]->destroy(engine);
}

static enum oct_err twin_replay(struct oct_twin *twin, struct oct_error *err)
{
    const struct oct_correlator *k = (const struct oct_correlator *)twin;
    return k->reference.pixels ? oct_correlator_cpu.set_reference(twin->engine, &k->reference, err)
                               : OCT_OK;
}

static const struct oct_twin_kind kind = {.name = "correlation",
                                          .bytes = sizeof(struct oct_correlator),
                                          .setup_bytes = sizeof(struct oct_correlator_setup),
                                          .create = twin_create,
                                          .destroy = twin_destroy,
                                          .replay = twin_replay};

static void failover_destroy(struct oct_correlator *k)
{
    if (!k)
        return;
    oct_picture_finish(&k->reference);
    oct_twin_destroy(&k->twin);
}

static enum oct_err failover_set_reference(struct oct_correlator *k, const struct oct_picture *g,
                                           struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &k->twin, .err = err};
    struct oct_picture copy = {0};
    const enum oct_err e = g ? oct_picture_copy(&copy, g, err) : OCT_OK;
    if (e)
        return e;
    while (oct_twin_tries(&c))
        c.e = tables[k->twin.on_gpu]->set_reference(k->twin.engine, g, &c.why);
    oct_picture_finish(c.e ? &copy : &k->reference);
    if (!c.e)
        k->reference = copy;
    return c.e;
}

static enum oct_err failover_run(struct oct_correlator *k, const struct oct_picture *f, unsigned n,
                                 float *c2d, unsigned *which, struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &k->twin, .err = err};
    while (oct_twin_tries(&c))
        c.e = tables[k->twin.on_gpu]->run(k->twin.engine, f, n, c2d, which, &c.why);
    return c.e;
}

static const char *failover_running(const struct oct_correlator *k)
{
    return oct_twin_running(&k->twin);
}

static const struct oct_correlator_ops failover_ops = {
    .name = "cuda",
    .set_reference = failover_set_reference,
    .run = failover_run,
    .running = failover_running,
    .destroy = failover_destroy,
};

enum oct_err oct_correlator_select(const struct oct_correlator_ops **ops,
                                   struct oct_correlator **correlator, const char *backend,
                                   const struct oct_correlator_setup *setup, char *why,
                                   size_t why_bytes, struct oct_error *err)
{
    struct oct_twin *twin;
    struct oct_error reason;
    const bool has_cuda = oct_correlator_cuda.create != NULL;
    const enum oct_err e = oct_twin_create(&twin, &kind, has_cuda, backend, setup, &reason, err);
    *correlator = (struct oct_correlator *)twin;
    *ops = twin ? &failover_ops : &oct_correlator_cpu;
    if (twin)
        snprintf(why, why_bytes, "correlation on cuda");
    else
        snprintf(why, why_bytes, "correlation on cpu: %s", reason.text);
    return e || twin ? e : oct_correlator_cpu.create(correlator, setup, err);
}
