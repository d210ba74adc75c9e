/* Which engine correlates, and what happens when its GPU fails: itself an engine, so that nothing
 * around it needs to know. What create and set_reference got is kept, as the CPU's engine is
 * created late. */
#include "analysis/correlate/correlate.h"

#include "pipeline/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oct_correlator {
    const struct oct_correlator_ops *now;
    struct oct_correlator *engine; /* of `now`; NULL: both have failed */
    struct oct_correlator_setup setup;
    char *gpus;
    struct oct_picture reference; /* a copy; empty: none */
};

static void failover_destroy(struct oct_correlator *c)
{
    if (!c)
        return;
    if (c->engine)
        c->now->destroy(c->engine);
    oct_picture_finish(&c->reference);
    free(c->gpus);
    free(c);
}

/* The device is gone. OCT_OK: the CPU's engine stands, with the same reference. */
static enum oct_err change_engines(struct oct_correlator *c, const struct oct_error *why,
                                   struct oct_error *err)
{
    if (c->now == &oct_correlator_cpu)
        return oct_fail(err, OCT_E_BACKEND, "%s", why->text);
    c->now->destroy(c->engine);
    c->engine = NULL;
    c->now = &oct_correlator_cpu;
    enum oct_err e = c->now->create(&c->engine, &c->setup, err);
    if (!e && c->reference.pixels)
        e = c->now->set_reference(c->engine, &c->reference, err);
    if (!e)
        oct_log(OCT_LOG_WARNING, "correlation: %s; the CPU goes on", why->text);
    return e;
}

static enum oct_err no_engine(struct oct_error *err)
{
    return oct_fail(err, OCT_E_BACKEND,
                    "the GPU has failed and the correlation on the CPU did not start");
}

static enum oct_err failover_set_reference(struct oct_correlator *c, const struct oct_picture *g,
                                           struct oct_error *err)
{
    struct oct_picture copy = {0};
    struct oct_error why = {.text = ""};
    if (!c->engine)
        return no_engine(err);
    enum oct_err e = g ? oct_picture_copy(&copy, g, err) : OCT_OK;
    if (e)
        return e;
    e = c->now->set_reference(c->engine, g, &why);
    if (e == OCT_E_BACKEND) {
        e = change_engines(c, &why, err);
        if (!e)
            e = c->now->set_reference(c->engine, g, err);
    } else if (e) {
        oct_fail(err, e, "%s", why.text);
    }
    if (e) {
        oct_picture_finish(&copy);
        return e;
    }
    oct_picture_finish(&c->reference);
    c->reference = copy;
    return OCT_OK;
}

static enum oct_err failover_run(struct oct_correlator *c, const struct oct_picture *f, unsigned n,
                                 float *c2d, unsigned *which, struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    if (!c->engine)
        return no_engine(err);
    enum oct_err e = c->now->run(c->engine, f, n, c2d, which, &why);
    if (e == OCT_E_BACKEND) {
        e = change_engines(c, &why, err);
        return e ? e : c->now->run(c->engine, f, n, c2d, which, err);
    }
    return e ? oct_fail(err, e, "%s", why.text) : OCT_OK;
}

static const char *failover_running(const struct oct_correlator *c)
{
    return c->now->name;
}

static const struct oct_correlator_ops failover_ops = {
    .name = "cuda",
    .set_reference = failover_set_reference,
    .run = failover_run,
    .running = failover_running,
    .destroy = failover_destroy,
};

static enum oct_err create_failover(struct oct_correlator **correlator,
                                    const struct oct_correlator_setup *setup, struct oct_error *err)
{
    struct oct_correlator *c = calloc(1, sizeof(*c));
    *correlator = NULL;
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a correlation");
    c->now = &oct_correlator_cuda;
    c->setup = *setup;
    c->gpus = strdup(setup->gpus ? setup->gpus : "");
    c->setup.gpus = c->gpus;
    enum oct_err e = c->gpus ? c->now->create(&c->engine, &c->setup, err)
                             : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a correlation");
    if (e)
        failover_destroy(c);
    else
        *correlator = c;
    return e;
}

enum oct_err oct_correlator_select(const struct oct_correlator_ops **ops,
                                   struct oct_correlator **correlator, const char *backend,
                                   const struct oct_correlator_setup *setup, char *why,
                                   size_t why_bytes, struct oct_error *err)
{
    struct oct_error no_gpu = {.text = "asked for"};
    if (strcmp(backend, "cpu") != 0) {
        enum oct_err e = create_failover(correlator, setup, &no_gpu);
        if (!e) {
            *ops = &failover_ops;
            snprintf(why, why_bytes, "correlation on cuda");
            return OCT_OK;
        }
        const bool cpu_may = e == OCT_E_BACKEND || e == OCT_E_NO_MEMORY;
        if (!cpu_may || strcmp(backend, "cuda") == 0)
            return oct_fail(err, e, "%s", no_gpu.text);
    }
    *ops = &oct_correlator_cpu;
    enum oct_err e = oct_correlator_cpu.create(correlator, setup, err);
    if (!e)
        snprintf(why, why_bytes, "correlation on cpu: %s", no_gpu.text);
    return e;
}
