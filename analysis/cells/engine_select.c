/* Which engine searches, and what happens when its GPU fails: itself an engine, so that nothing
 * around it needs to know. The picture last taken is borrowed until the next look, so that the
 * CPU's engine can take over at any call. Fields that were kept go with the engine that has failed:
 * after a look that failed over, field asks for a new follow. */
#include "analysis/cells/engine.h"
#include "pipeline/base/log.h"

#include <stdlib.h>
#include <string.h>

struct oct_cells_engine {
    const struct oct_cells_engine_ops *now;
    struct oct_cells_engine *engine; /* of `now`; NULL: both have failed */
    struct oct_cells_engine_setup setup;
    char *gpus;
    struct oct_picture picture; /* its pixels are the caller's; none: nothing was taken */
    bool searched;
};

static void failover_destroy(struct oct_cells_engine *c)
{
    if (!c)
        return;
    if (c->engine)
        c->now->destroy(c->engine);
    free(c->gpus);
    free(c);
}

/* The picture again, of which the caller has the cells already. */
static enum oct_err look_again(struct oct_cells_engine *c, struct oct_error *err)
{
    struct oct_cell cell;
    unsigned n;
    if (!c->picture.pixels)
        return OCT_OK;
    return c->now->look(c->engine, &c->picture, &cell, c->searched ? 1 : 0, &n, err);
}

/* The device is gone. OCT_OK: the CPU's engine stands, with the same picture. */
static enum oct_err change_engines(struct oct_cells_engine *c, const struct oct_error *why,
                                   struct oct_error *err)
{
    if (c->now == &oct_cells_cpu_engine)
        return oct_fail(err, OCT_E_BACKEND, "%s", why->text);
    c->now->destroy(c->engine);
    c->engine = NULL;
    c->now = &oct_cells_cpu_engine;
    enum oct_err e = c->now->create(&c->engine, &c->setup, err);
    if (!e)
        e = look_again(c, err);
    if (!e)
        oct_log(OCT_LOG_WARNING, "cells: %s; the CPU goes on", why->text);
    return e;
}

/* After a call that returned e with *why. OCT_E_AGAIN: the same call on the CPU's engine. */
static enum oct_err judge(struct oct_cells_engine *c, enum oct_err e, const struct oct_error *why,
                          struct oct_error *err)
{
    if (e == OCT_OK)
        return OCT_OK;
    if (e != OCT_E_BACKEND)
        return oct_fail(err, e, "%s", why->text);
    e = change_engines(c, why, err);
    return e ? e : OCT_E_AGAIN;
}

static enum oct_err check_engine(const struct oct_cells_engine *c, struct oct_error *err)
{
    return c->engine
               ? OCT_OK
               : oct_fail(err, OCT_E_BACKEND,
                          "the GPU has failed and the search for cells on the CPU did not start");
}

static enum oct_err failover_look(struct oct_cells_engine *c, const struct oct_picture *picture,
                                  struct oct_cell *cells, unsigned most, unsigned *n,
                                  struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    *n = 0;
    c->picture.pixels = NULL; /* the one before is the caller's again */
    enum oct_err e = check_engine(c, err);
    if (!e)
        e = judge(c, c->now->look(c->engine, picture, cells, most, n, &why), &why, err);
    if (e == OCT_E_AGAIN)
        e = c->now->look(c->engine, picture, cells, most, n, err);
    if (!e) {
        c->picture = *picture;
        c->searched = most > 0;
    }
    return e;
}

static enum oct_err failover_follow(struct oct_cells_engine *c, const struct oct_cell_start *starts,
                                    unsigned n, struct oct_cell_end *ends, struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    enum oct_err e = check_engine(c, err);
    if (!e)
        e = judge(c, c->now->follow(c->engine, starts, n, ends, &why), &why, err);
    return e == OCT_E_AGAIN ? c->now->follow(c->engine, starts, n, ends, err) : e;
}

static enum oct_err failover_map(struct oct_cells_engine *c, float *score, uint8_t *best,
                                 struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    enum oct_err e = check_engine(c, err);
    if (!e)
        e = judge(c, c->now->map(c->engine, score, best, &why), &why, err);
    return e == OCT_E_AGAIN ? c->now->map(c->engine, score, best, err) : e;
}

static double failover_highest(const struct oct_cells_engine *c)
{
    return c->engine ? c->now->highest(c->engine) : 0;
}

static enum oct_err failover_field(struct oct_cells_engine *c, unsigned i,
                                   struct oct_cell_window *window, float *field,
                                   struct oct_error *err)
{
    enum oct_err e = check_engine(c, err);
    return e ? e : c->now->field(c->engine, i, window, field, err); /* asks no device */
}

static const char *failover_running(const struct oct_cells_engine *c)
{
    return c->now->name;
}

static const struct oct_cells_engine_ops failover_ops = {
    .name = "cuda",
    .look = failover_look,
    .follow = failover_follow,
    .map = failover_map,
    .highest = failover_highest,
    .field = failover_field,
    .running = failover_running,
    .destroy = failover_destroy,
};

static enum oct_err create_failover(struct oct_cells_engine **engine,
                                    const struct oct_cells_engine_setup *setup,
                                    struct oct_error *err)
{
    struct oct_cells_engine *c = calloc(1, sizeof(*c));
    *engine = NULL;
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for an engine");
    c->now = &oct_cells_cuda_engine;
    c->setup = *setup;
    c->gpus = strdup(setup->gpus ? setup->gpus : "");
    c->setup.gpus = c->gpus;
    enum oct_err e = c->gpus ? c->now->create(&c->engine, &c->setup, err)
                             : oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory");
    if (e)
        failover_destroy(c);
    else
        *engine = c;
    return e;
}

enum oct_err oct_cells_engine_select(const struct oct_cells_engine_ops **ops,
                                     struct oct_cells_engine **engine, const char *backend,
                                     const struct oct_cells_engine_setup *setup,
                                     struct oct_error *err)
{
    struct oct_error no_gpu = {.text = ""};
    if (strcmp(backend, "cpu") != 0) {
        enum oct_err e = create_failover(engine, setup, &no_gpu);
        if (!e) {
            *ops = &failover_ops;
            return OCT_OK;
        }
        const bool cpu_may = e == OCT_E_BACKEND || e == OCT_E_NO_MEMORY;
        if (!cpu_may || strcmp(backend, "cuda") == 0)
            return oct_fail(err, e, "%s", no_gpu.text);
    }
    *ops = &oct_cells_cpu_engine;
    return oct_cells_cpu_engine.create(engine, setup, err);
}
