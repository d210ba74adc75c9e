/* The CPU's engine, and which of both computes. */
#include "analysis/flow/engine.h"
#include "analysis/flow/slab.h"
#include "kernels/device/twin.h"
#include "pipeline/flow/frame.h"

#include <stdlib.h>
#include <string.h>

/* ---- on the CPU ---- */

struct oct_flow_engine {
    struct oct_flow_engine_setup setup;
    struct oct_flow_bscan *bscans; /* [R K] */
    bool *came;                    /* [R K] */
    struct oct_flow_place *place;
    struct oct_flow_show show; /* of the place at hand */
};

static unsigned n_of_group(const struct oct_flow_engine *f)
{
    return f->setup.place.n_repeats * f->setup.n_places;
}

static void show_line(void *context, uint32_t j, const float *d, const float *projected)
{
    const struct oct_flow_engine *f = context;
    const struct oct_flow_show *show = &f->show;
    const struct oct_flow_kernels *kernels = oct_flow_kernels_best();
    const size_t at = (size_t)j * f->setup.place.depth;
    kernels->show(d, projected, show->min_z, f->setup.place.depth,
                  show->values ? show->values + at : NULL, show->bytes ? show->bytes + at : NULL);
    if (show->row)
        show->row[j] = oct_flow_slab_largest(projected, show->first, show->end);
}

static void cpu_destroy(struct oct_flow_engine *f)
{
    if (!f)
        return;
    for (unsigned i = 0; f->bscans && i < n_of_group(f); i++)
        oct_flow_bscan_finish(&f->bscans[i]);
    oct_flow_place_destroy(f->place);
    free(f->bscans);
    free(f->came);
    free(f);
}

static enum oct_err alloc_engine(struct oct_flow_engine *f, struct oct_error *err)
{
    struct oct_flow_place_setup *place = &f->setup.place;
    const unsigned n = n_of_group(f);
    enum oct_err e = OCT_OK;
    f->bscans = calloc(n, sizeof(*f->bscans));
    f->came = calloc(n, sizeof(*f->came));
    if (!f->bscans || !f->came)
        return oct_fail(err, OCT_E_NO_MEMORY, "flow: out of memory");
    for (unsigned i = 0; i < n && !e; i++)
        e = oct_flow_bscan_init(&f->bscans[i], place->n_lines, place->depth, err);
    place->show = f->setup.shows ? show_line : NULL;
    place->context = f;
    return e ? e : oct_flow_place_create(&f->place, place, err);
}

static enum oct_err cpu_create(struct oct_flow_engine **engine,
                               const struct oct_flow_engine_setup *setup, struct oct_error *err)
{
    struct oct_flow_engine *f = calloc(1, sizeof(*f));
    *engine = NULL;
    if (!f)
        return oct_fail(err, OCT_E_NO_MEMORY, "flow: out of memory");
    f->setup = *setup;
    const enum oct_err e = alloc_engine(f, err);
    if (e)
        cpu_destroy(f);
    else
        *engine = f;
    return e;
}

/* What lies on a device that has failed does not come. */
static enum oct_err cpu_put(struct oct_flow_engine *f, unsigned i,
                            const struct oct_image_frame *bscan, struct oct_error *err)
{
    (void)err;
    f->came[i] = bscan->complex_values != NULL;
    if (f->came[i])
        oct_flow_bscan_put(&f->bscans[i], bscan->complex_values, f->setup.place.workers);
    return OCT_OK;
}

static enum oct_err cpu_find(struct oct_flow_engine *f, unsigned k,
                             const struct oct_flow_show *show, struct oct_flow_found *found,
                             struct oct_error *err)
{
    const struct oct_flow_bscan *repeats[OCT_FLOW_MOST_REPEATS];
    for (unsigned r = 0; r < f->setup.place.n_repeats; r++) {
        const unsigned i = r * f->setup.n_places + k;
        repeats[r] = f->came[i] ? &f->bscans[i] : NULL;
    }
    if (show)
        f->show = *show;
    return oct_flow_place_find(f->place, repeats, found, err);
}

static void cpu_clear(struct oct_flow_engine *f)
{
    memset(f->came, 0, n_of_group(f) * sizeof(*f->came));
}

const struct oct_flow_engine_ops oct_flow_engine_cpu = {
    .name = "cpu",
    .create = cpu_create,
    .put = cpu_put,
    .find = cpu_find,
    .clear = cpu_clear,
    .destroy = cpu_destroy,
};

/* ---- whichever computes ---- */

static const struct oct_flow_engine_ops *const tables[] = {&oct_flow_engine_cpu,
                                                           &oct_flow_engine_cuda};

static enum oct_err twin_create(void **engine, bool on_gpu, const void *setup,
                                struct oct_error *err)
{
    struct oct_flow_engine *made;
    const enum oct_err e = tables[on_gpu]->create(&made, setup, err);
    *engine = made;
    return e;
}

static void twin_destroy(void *engine, bool on_gpu)
{
    tables[on_gpu]->destroy(engine);
}

static const struct oct_twin_kind kind = {.name = "flow",
                                          .bytes = sizeof(struct oct_twin),
                                          .setup_bytes = sizeof(struct oct_flow_engine_setup),
                                          .create = twin_create,
                                          .destroy = twin_destroy};

static struct oct_twin *twin_of(const struct oct_flow_engine *engine)
{
    return (struct oct_twin *)engine;
}

static enum oct_err failover_put(struct oct_flow_engine *engine, unsigned i,
                                 const struct oct_image_frame *bscan, struct oct_error *err)
{
    struct oct_twin_call c = {.twin = twin_of(engine), .err = err};
    while (oct_twin_tries(&c))
        c.e = tables[c.twin->on_gpu]->put(c.twin->engine, i, bscan, &c.why);
    return c.e;
}

static enum oct_err failover_find(struct oct_flow_engine *engine, unsigned k,
                                  const struct oct_flow_show *show, struct oct_flow_found *found,
                                  struct oct_error *err)
{
    struct oct_twin_call c = {.twin = twin_of(engine), .err = err};
    while (oct_twin_tries(&c))
        c.e = tables[c.twin->on_gpu]->find(c.twin->engine, k, show, found, &c.why);
    return c.e;
}

static void failover_clear(struct oct_flow_engine *engine)
{
    struct oct_twin *twin = twin_of(engine);
    if (twin->engine)
        tables[twin->on_gpu]->clear(twin->engine);
}

static const char *failover_running(const struct oct_flow_engine *engine)
{
    return oct_twin_running(twin_of(engine));
}

static void failover_destroy(struct oct_flow_engine *engine)
{
    oct_twin_destroy(twin_of(engine));
}

static const struct oct_flow_engine_ops failover_ops = {
    .name = "cuda",
    .put = failover_put,
    .find = failover_find,
    .clear = failover_clear,
    .running = failover_running,
    .destroy = failover_destroy,
};

enum oct_err oct_flow_engine_select(const struct oct_flow_engine_ops **ops,
                                    struct oct_flow_engine **engine, const char *backend,
                                    const struct oct_flow_engine_setup *setup,
                                    struct oct_error *err)
{
    struct oct_twin *twin;
    struct oct_error reason;
    const bool has_cuda = oct_flow_engine_cuda.create != NULL;
    const char *wanted = setup->place.method == OCT_FLOW_COMPLEX ? backend : "cpu";
    const enum oct_err e = oct_twin_create(&twin, &kind, has_cuda, wanted, setup, &reason, err);
    *engine = (struct oct_flow_engine *)twin;
    *ops = twin ? &failover_ops : &oct_flow_engine_cpu;
    return e || twin ? e : oct_flow_engine_cpu.create(engine, setup, err);
}
