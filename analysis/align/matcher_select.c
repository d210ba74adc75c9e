/* Which engine searches, and what happens when its GPU fails: itself an engine, so that nothing
 * around it needs to know. The reference is kept, and loaded pictures are borrowed until the next
 * load, so that the CPU's engine can take over at any call. */
#include "analysis/align/matcher.h"
#include "pipeline/base/log.h"

#include <stdlib.h>
#include <string.h>

struct oct_matcher {
    const struct oct_matcher_ops *now;
    struct oct_matcher *engine; /* of `now`; NULL: both have failed */
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

/* The device is gone. OCT_OK: the CPU's engine stands, with the same reference and pictures. */
static enum oct_err change_engines(struct oct_matcher *m, const struct oct_error *why,
                                   struct oct_error *err)
{
    if (m->now == &oct_matcher_cpu)
        return oct_fail(err, OCT_E_BACKEND, "%s", why->text);
    m->now->destroy(m->engine);
    m->engine = NULL;
    m->now = &oct_matcher_cpu;
    enum oct_err e = m->now->create(&m->engine, &m->setup, err);
    if (!e && m->reference.pixels)
        e = m->now->set_reference(m->engine, &m->reference, err);
    if (!e && m->n > 0)
        e = m->now->load(m->engine, m->pictures, m->n, err);
    if (!e)
        oct_log(OCT_LOG_WARNING, "registration: %s; the CPU goes on", why->text);
    return e;
}

/* After a call that returned e with *why. OCT_E_AGAIN: the same call on the CPU's engine. */
static enum oct_err judge(struct oct_matcher *m, enum oct_err e, const struct oct_error *why,
                          struct oct_error *err)
{
    if (e == OCT_OK)
        return OCT_OK;
    if (e != OCT_E_BACKEND)
        return oct_fail(err, e, "%s", why->text);
    e = change_engines(m, why, err);
    return e ? e : OCT_E_AGAIN;
}

static enum oct_err check_engine(const struct oct_matcher *m, struct oct_error *err)
{
    return m->engine ? OCT_OK
                     : oct_fail(err, OCT_E_BACKEND,
                                "the GPU has failed and the registration on the CPU did not start");
}

static enum oct_err failover_set_reference(struct oct_matcher *m,
                                           const struct oct_picture *reference,
                                           struct oct_error *err)
{
    const size_t n = (size_t)reference->height * reference->width;
    struct oct_error why = {.text = ""};
    struct oct_picture copy;
    enum oct_err e = check_engine(m, err);
    if (!e)
        e = oct_picture_init(&copy, reference->height, reference->width, reference->valid != NULL,
                             err);
    if (e)
        return e;
    memcpy(copy.pixels, reference->pixels, n * sizeof(float));
    if (copy.valid && reference->valid)
        memcpy(copy.valid, reference->valid, n);
    e = judge(m, m->now->set_reference(m->engine, &copy, &why), &why, err);
    if (e == OCT_E_AGAIN)
        e = m->now->set_reference(m->engine, &copy, err);
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
    struct oct_error why = {.text = ""};
    enum oct_err e = check_engine(m, err);
    if (e)
        return e;
    m->n = 0; /* those before are the caller's again */
    e = judge(m, m->now->load(m->engine, pictures, n, &why), &why, err);
    if (e == OCT_E_AGAIN)
        e = m->now->load(m->engine, pictures, n, err);
    if (!e) {
        m->pictures = pictures;
        m->n = n;
    }
    return e;
}

static enum oct_err failover_find(struct oct_matcher *m, struct oct_match *matches,
                                  struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    enum oct_err e = check_engine(m, err);
    if (!e)
        e = judge(m, m->now->find(m->engine, matches, &why), &why, err);
    return e == OCT_E_AGAIN ? m->now->find(m->engine, matches, err) : e;
}

static enum oct_err failover_look(struct oct_matcher *m, const struct oct_match_window *windows,
                                  unsigned n, struct oct_match *matches, struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    enum oct_err e = check_engine(m, err);
    if (!e)
        e = judge(m, m->now->look(m->engine, windows, n, matches, &why), &why, err);
    return e == OCT_E_AGAIN ? m->now->look(m->engine, windows, n, matches, err) : e;
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
    struct oct_matcher *m = calloc(1, sizeof(*m));
    *matcher = NULL;
    if (!m)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    m->now = &oct_matcher_cuda;
    m->setup = *setup;
    m->gpus = strdup(setup->gpus ? setup->gpus : "");
    m->setup.gpus = m->gpus;
    enum oct_err e = m->gpus ? m->now->create(&m->engine, &m->setup, err)
                             : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
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
    struct oct_error no_gpu = {.text = ""};
    if (backend && strcmp(backend, "cpu") != 0) {
        enum oct_err e = create_failover(matcher, setup, &no_gpu);
        if (!e) {
            *ops = &failover_ops;
            return OCT_OK;
        }
        const bool cpu_may = e == OCT_E_BACKEND || e == OCT_E_NO_MEMORY;
        if (!cpu_may || strcmp(backend, "cuda") == 0)
            return oct_fail(err, e, "%s", no_gpu.text);
    }
    *ops = &oct_matcher_cpu;
    return oct_matcher_cpu.create(matcher, setup, err);
}
