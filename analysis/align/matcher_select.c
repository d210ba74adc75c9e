/* Which engine searches. The reference is kept, and loaded pictures are borrowed until the next
 * load, so that the CPU's engine can take over at any call. */
#include "analysis/align/matcher.h"
#include "kernels/device/twin.h"

struct oct_matcher {
    struct oct_twin twin;
    struct oct_picture reference;       /* a copy; empty: none */
    const struct oct_picture *pictures; /* [n] loaded */
    unsigned n;
};

static const struct oct_matcher_ops *const tables[] = {&oct_matcher_cpu, &oct_matcher_cuda};

static enum oct_err twin_create(void **engine, bool on_gpu, const void *setup,
                                struct oct_error *err)
{
    struct oct_matcher *made;
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
    const struct oct_matcher *m = (const struct oct_matcher *)twin;
    enum oct_err e = OCT_OK;
    if (m->reference.pixels)
        e = oct_matcher_cpu.set_reference(twin->engine, &m->reference, err);
    if (!e && m->n > 0)
        e = oct_matcher_cpu.load(twin->engine, m->pictures, m->n, err);
    return e;
}

static const struct oct_twin_kind kind = {.name = "registration",
                                          .bytes = sizeof(struct oct_matcher),
                                          .setup_bytes = sizeof(struct oct_matcher_setup),
                                          .create = twin_create,
                                          .destroy = twin_destroy,
                                          .replay = twin_replay};

static void failover_destroy(struct oct_matcher *m)
{
    if (!m)
        return;
    oct_picture_finish(&m->reference);
    oct_twin_destroy(&m->twin);
}

static enum oct_err failover_set_reference(struct oct_matcher *m,
                                           const struct oct_picture *reference,
                                           struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &m->twin, .err = err};
    struct oct_picture copy = {0};
    const enum oct_err e = oct_picture_copy(&copy, reference, err);
    if (e)
        return e;
    while (oct_twin_tries(&c))
        c.e = tables[m->twin.on_gpu]->set_reference(m->twin.engine, reference, &c.why);
    oct_picture_finish(c.e ? &copy : &m->reference);
    if (!c.e)
        m->reference = copy;
    return c.e;
}

static enum oct_err failover_load(struct oct_matcher *m, const struct oct_picture *pictures,
                                  unsigned n, struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &m->twin, .err = err};
    m->n = 0; /* those before are the caller's again */
    while (oct_twin_tries(&c))
        c.e = tables[m->twin.on_gpu]->load(m->twin.engine, pictures, n, &c.why);
    if (!c.e) {
        m->pictures = pictures;
        m->n = n;
    }
    return c.e;
}

static enum oct_err failover_find(struct oct_matcher *m, struct oct_match *matches,
                                  struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &m->twin, .err = err};
    while (oct_twin_tries(&c))
        c.e = tables[m->twin.on_gpu]->find(m->twin.engine, matches, &c.why);
    return c.e;
}

static enum oct_err failover_look(struct oct_matcher *m, const struct oct_match_window *windows,
                                  unsigned n, struct oct_match *matches, struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &m->twin, .err = err};
    while (oct_twin_tries(&c))
        c.e = tables[m->twin.on_gpu]->look(m->twin.engine, windows, n, matches, &c.why);
    return c.e;
}

static const char *failover_running(const struct oct_matcher *m)
{
    return oct_twin_running(&m->twin);
}

static const struct oct_matcher_ops failover_ops = {
    .name = "cuda",
    .set_reference = failover_set_reference,
    .load = failover_load,
    .find = failover_find,
    .look = failover_look,
    .running = failover_running,
    .destroy = failover_destroy,
};

enum oct_err oct_matcher_select(const struct oct_matcher_ops **ops, struct oct_matcher **engine,
                                const char *backend, const struct oct_matcher_setup *setup,
                                struct oct_error *err)
{
    struct oct_twin *twin;
    struct oct_error reason;
    const bool has_cuda = oct_matcher_cuda.create != NULL;
    const enum oct_err e = oct_twin_create(&twin, &kind, has_cuda, backend, setup, &reason, err);
    *engine = (struct oct_matcher *)twin;
    *ops = twin ? &failover_ops : &oct_matcher_cpu;
    return e || twin ? e : oct_matcher_cpu.create(engine, setup, err);
}
