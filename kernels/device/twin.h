/* An engine with two twins: the CUDA engine computes until its GPU fails, then the CPU's. A table
 * whose engine is a twin is itself a table of that kind, so that nothing around it needs to know.
 *
 *     ON_GPU --(a call meets a dead device)--> ON_CPU --(it cannot begin)--> all calls fail
 *
 * The CPU's engine is created at that moment, from a copy of the setup; `replay` gives it what the
 * CUDA engine had been given and keeps between two calls. Then the same call is made again, so no
 * result is lost. One thread uses a twin at a time. */
#ifndef OCT_KERNELS_DEVICE_TWIN_H
#define OCT_KERNELS_DEVICE_TWIN_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct oct_twin;

struct oct_twin_kind {
    const char *name;   /* in the log: "cells" */
    size_t bytes;       /* of the struct whose first member is the struct oct_twin */
    size_t setup_bytes; /* copied; text in it (gpus) is for the CUDA engine alone, the rest is lent
                           until destroy */

    /* Of the kind's two tables: the CUDA engine's with on_gpu, else the CPU's. */
    enum oct_err (*create)(void **engine, bool on_gpu, const void *setup, struct oct_error *err);
    void (*destroy)(void *engine, bool on_gpu);

    /* On twin->engine, the CPU's. NULL: an engine keeps nothing between two calls. */
    enum oct_err (*replay)(struct oct_twin *twin, struct oct_error *err);
};

struct oct_twin {
    const struct oct_twin_kind *kind;
    void *engine; /* of the table of on_gpu; NULL: both have failed */
    void *setup;
    bool on_gpu;
    bool is_auto; /* the CPU computes what has no room on the GPU, too */
};

/* backend: "auto", "cpu" or "cuda"; NULL: "cpu". *twin: a struct of kind->bytes, all 0 behind the
 * twin, whose CUDA engine is at work. OCT_OK and NULL: the CPU computes alone, and *reason says why
 * ("asked for"). has_cuda: this build has the CUDA engine. OCT_E_BACKEND: "cuda", and no GPU
 * answers; else what create says. */
enum oct_err oct_twin_create(struct oct_twin **twin, const struct oct_twin_kind *kind,
                             bool has_cuda, const char *backend, const void *setup,
                             struct oct_error *reason, struct oct_error *err);

void oct_twin_destroy(struct oct_twin *twin); /* NULL is fine */

/* "cuda" or "cpu": what computes at present. */
const char *oct_twin_running(const struct oct_twin *twin);

/* A call of an operation, once or, when the GPU fails, twice:
 *
 *     struct oct_twin_call c = {&engine->twin, err};
 *     while (oct_twin_tries(&c))
 *         c.e = tables[c.twin->on_gpu]->operation(c.twin->engine, ..., &c.why);
 *     return c.e;
 */
struct oct_twin_call {
    struct oct_twin *twin;
    struct oct_error *err;
    bool tried;
    enum oct_err e;
    struct oct_error why;
};

/* Whether the operation is to be made. False: it is done, and e and *err say how it ended. */
bool oct_twin_tries(struct oct_twin_call *call);

#endif
