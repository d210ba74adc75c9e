/* Which engine searches. The picture last taken is borrowed until the next look, so that the CPU's
 * engine can take over at any call. Fields that were kept go with the engine that has failed:
 * after a look that failed over, field asks for a new follow. */
#include "analysis/cells/engine.h"
#include "kernels/device/twin.h"

struct oct_cells_engine {
    struct oct_twin twin;
    struct oct_picture picture; /* its pixels are the caller's; none: nothing was taken */
    bool searched;
};

static const struct oct_cells_engine_ops *const tables[] = {&oct_cells_cpu_engine,
                                                            &oct_cells_cuda_engine};

static enum oct_err twin_create(void **engine, bool on_gpu, const void *setup,
                                struct oct_error *err)
{
    struct oct_cells_engine *made;
    const enum oct_err e = tables[on_gpu]->create(&made, setup, err);
    *engine = made;
    return e;
}

static void twin_destroy(void *engine, bool on_gpu)
{
    tables[on_gpu]->destroy(engine);
}

/* The picture again, of which the caller has the cells already. */
static enum oct_err twin_replay(struct oct_twin *twin, struct oct_error *err)
{
    const struct oct_cells_engine *cells = (const struct oct_cells_engine *)twin;
    struct oct_cell cell;
    unsigned n;
    return cells->picture.pixels ? oct_cells_cpu_engine.look(twin->engine, &cells->picture, &cell,
                                                             cells->searched ? 1 : 0, &n, err)
                                 : OCT_OK;
}

static const struct oct_twin_kind kind = {.name = "cells",
                                          .bytes = sizeof(struct oct_cells_engine),
                                          .setup_bytes = sizeof(struct oct_cells_engine_setup),
                                          .create = twin_create,
                                          .destroy = twin_destroy,
                                          .replay = twin_replay};

static void failover_destroy(struct oct_cells_engine *cells)
{
    oct_twin_destroy(&cells->twin);
}

static enum oct_err failover_look(struct oct_cells_engine *cells, const struct oct_picture *picture,
                                  struct oct_cell *found, unsigned most, unsigned *n,
                                  struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &cells->twin, .err = err};
    *n = 0;
    cells->picture.pixels = NULL; /* the one before is the caller's again */
    while (oct_twin_tries(&c))
        c.e = tables[cells->twin.on_gpu]->look(cells->twin.engine, picture, found, most, n, &c.why);
    if (!c.e) {
        cells->picture = *picture;
        cells->searched = most > 0;
    }
    return c.e;
}

static enum oct_err failover_follow(struct oct_cells_engine *cells,
                                    const struct oct_cell_start *starts, unsigned n,
                                    struct oct_cell_end *ends, struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &cells->twin, .err = err};
    while (oct_twin_tries(&c))
        c.e = tables[cells->twin.on_gpu]->follow(cells->twin.engine, starts, n, ends, &c.why);
    return c.e;
}

static enum oct_err failover_map(struct oct_cells_engine *cells, float *score, uint8_t *best,
                                 struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &cells->twin, .err = err};
    while (oct_twin_tries(&c))
        c.e = tables[cells->twin.on_gpu]->map(cells->twin.engine, score, best, &c.why);
    return c.e;
}

static double failover_highest(const struct oct_cells_engine *cells)
{
    const struct oct_twin *twin = &cells->twin;
    return twin->engine ? tables[twin->on_gpu]->highest(twin->engine) : 0;
}

static enum oct_err failover_field(struct oct_cells_engine *cells, unsigned i,
                                   struct oct_cell_window *window, float *field,
                                   struct oct_error *err)
{
    struct oct_twin_call c = {.twin = &cells->twin, .err = err};
    while (oct_twin_tries(&c))
        c.e = tables[cells->twin.on_gpu]->field(cells->twin.engine, i, window, field, &c.why);
    return c.e;
}

static const char *failover_running(const struct oct_cells_engine *cells)
{
    return oct_twin_running(&cells->twin);
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

enum oct_err oct_cells_engine_select(const struct oct_cells_engine_ops **ops,
                                     struct oct_cells_engine **engine, const char *backend,
                                     const struct oct_cells_engine_setup *setup,
                                     struct oct_error *err)
{
    struct oct_twin *twin;
    struct oct_error reason;
    const bool has_cuda = oct_cells_cuda_engine.create != NULL;
    const enum oct_err e = oct_twin_create(&twin, &kind, has_cuda, backend, setup, &reason, err);
    *engine = (struct oct_cells_engine *)twin;
    *ops = twin ? &failover_ops : &oct_cells_cpu_engine;
    return e || twin ? e : oct_cells_cpu_engine.create(engine, setup, err);
}
