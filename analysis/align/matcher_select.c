/* Which engine searches, and what happens when its GPU fails: itself an engine, so that nothing
 * around it needs to know. The reference is kept, and loaded pictures are borrowed until the next
 * load, so that the CPU's engine can take over at any call. */
#include "analysis/align/matcher.h"
#include "pipeline/base/log.h"

#include <stdlib.h>
#include <string.h>

struct oct_matcher {
    const struct oct_matcher_ops *now;
    struct oct_matcher *engine; /* of `now` */
    struct oct_matcher_setup setup;
    char *gpus;
    struct oct_picture reference;       /* a copy; empty: none */
    const struct oct_picture *pictures; /* [n] loaded */
    unsigned n;
};

static void failover_destroy(struct oct_matcher *m)
{
    if (!m)
        return;
    if (m->engine)
        m->now->destroy(m->engine);
    oct_picture_finish(&m->reference);
    free(m->gpus);
    free(m);
}

/* The device is gone, as *err says: whether the CPU's engine does the same call, with the same
 * reference and pictures. Where none can be made that of the GPU stays, which says so again. */
static bool change_engines(struct oct_matcher *m, enum oct_err *e, struct oct_error *err)
{
    struct oct_matcher *cpu;
    const struct oct_error why = *err;
    if (m->now == &oct_matcher_cpu || *e != OCT_E_BACKEND ||
        (*e = oct_matcher_cpu.create(&cpu, &m->setup, err)))
        return false;
    if (m->reference.pixels)
        *e = oct_matcher_cpu.set_reference(cpu, &m->reference, err);
    if (!*e && m->n > 0)
        *e = oct_matcher_cpu.load(cpu, m->pictures, m->n, err);
    if (*e) {
        oct_matcher_cpu.destroy(cpu);
        return false;
    }
    m->now->destroy(m->engine);
    m->now = &oct_matcher_cpu;
    m->engine = cpu;
    oct_log(OCT_LOG_WARNING, "registration: %s; the CPU goes on", why.text);
    return true;
}

static enum oct_err failover_set_reference(struct oct_matcher *m,
                                           const struct oct_picture *reference,
                                           struct oct_error *err)
{
    struct oct_picture copy;
    enum oct_err e = oct_picture_copy(&copy, reference, err);
    if (e)
        return e;
    do
        e = m->now->set_reference(m->engine, &copy, err);
    while (e && change_engines(m, &e, err));
    if (e) {
        oct_picture_finish(&copy);
        return e;
    }
    oct_picture_finish(&m->reference);
    m->reference = copy;
    return OCT_OK;
}

static enum oct_err failover_load(struct oct_matcher *m, const struct oct_picture *pictures,
                                  unsigned n, struct oct_error *err)
{
    enum oct_err e;
    m->n = 0; /* those before are the caller's again */
    do
        e = m->now->load(m->engine, pictures, n, err);
    while (e && change_engines(m, &e, err));
    if (!e) {
        m->pictures = pictures;
        m->n = n;
    }
    return e;
}

static enum oct_err failover_find(struct oct_matcher *m, struct oct_match *matches,
                                  struct oct_error *err)
{
    enum oct_err e;
    do
        e = m->now->find(m->engine, matches, err);
    while (e && change_engines(m, &e, err));
    return e;
}

static enum oct_err failover_look(struct oct_matcher *m, const struct oct_match_window *windows,
                                  unsigned n, struct oct_match *matches, struct oct_error *err)
{
    enum oct_err e;
    do
        e = m->now->look(m->engine, windows, n, matches, err);
    while (e && change_engines(m, &e, err));
    return e;
}

static const char *failover_running(const struct oct_matcher *m)
{
    return m->now->name;
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

static enum oct_err create_failover(struct oct_matcher **matcher,
                                    const struct oct_matcher_setup *setup, struct oct_error *err)
{
    if (!oct_matcher_cuda.create)
        return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA");
    struct oct_matcher *m = calloc(1, sizeof(*m));
    char *gpus = strdup(setup->gpus ? setup->gpus : "");
    if (!m || !gpus) {
        free(m);
        free(gpus);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    }
    *m = (struct oct_matcher){.now = &oct_matcher_cuda, .setup = *setup, .gpus = gpus};
    m->setup.gpus = gpus;
    const enum oct_err e = m->now->create(&m->engine, &m->setup, err);
    if (e)
        failover_destroy(m);
    else
        *matcher = m;
    return e;
}

enum oct_err oct_matcher_select(const struct oct_matcher_ops **ops, struct oct_matcher **matcher,
                                const char *backend, const struct oct_matcher_setup *setup,
                                struct oct_error *err)
{
    *matcher = NULL;
    if (backend && strcmp(backend, "cpu") != 0) {
        const enum oct_err e = create_failover(matcher, setup, err);
        const bool cpu_may = e == OCT_E_BACKEND || e == OCT_E_NO_MEMORY;
        *ops = &failover_ops;
        if (!cpu_may || strcmp(backend, "cuda") == 0)
            return e;
    }
    *ops = &oct_matcher_cpu;
    return oct_matcher_cpu.create(matcher, setup, err);
}
