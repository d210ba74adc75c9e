#include "analysis/align/estimator.h"

#include "analysis/align/rigid.h"
#include "analysis/align/zncc_sums.h"
#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_OVERLAP 0.3

/* What a worker needs for itself. */
struct worker {
    struct oct_rigid *rigid; /* NULL with strips */
    struct oct_level level;
    struct oct_zncc_sums overlap;
    enum oct_err code;
    struct oct_error err;
};

struct oct_estimator {
    struct oct_sequence_setup setup;
    struct oct_strips *strips; /* NULL: rigid */
    unsigned n_workers;
    struct worker *workers;
    struct oct_level reference;
    const struct oct_picture *pictures; /* while find runs */
    struct oct_strip *found;
    float *before;
};

static enum oct_err create_strips(struct oct_estimator *e, struct oct_error *err)
{
    const struct oct_sequence_setup *s = &e->setup;
    const struct oct_strips_setup setup = {
        .height = s->height,
        .width = s->width,
        .max_dy = s->max_dy,
        .max_dx = s->max_dx,
        .rows = s->rows,
        .step = s->step,
        .search = s->search,
        .far = s->far,
        .min_score = s->min_score,
        .masked = s->masked,
        .n_batch = OCT_ESTIMATOR_BATCH,
        .workers = s->workers,
        .backend = s->backend,
        .gpus = s->gpus,
        .deadline_ms = s->deadline_ms,
    };
    return oct_strips_create(&e->strips, &setup, err);
}

static enum oct_err create_worker(struct oct_estimator *e, struct worker *w, struct oct_error *err)
{
    const struct oct_sequence_setup *s = &e->setup;
    const struct oct_rigid_setup setup = {
        .height = s->height,
        .width = s->width,
        .max_dy = s->max_dy,
        .max_dx = s->max_dx,
        .min_overlap = LEAST_OVERLAP,
        .masked = s->masked,
        .backend = s->backend,
        .smooth_px = s->smooth_px,
        .gpus = s->gpus,
        .deadline_ms = s->deadline_ms,
    };
    enum oct_err code = oct_level_init(&w->level, s->height, s->width, s->masked, err);
    if (!code)
        code = oct_zncc_sums_init(&w->overlap, s->width, err);
    if (!code && s->model == OCT_SEQUENCE_RIGID)
        code = oct_rigid_create(&w->rigid, &setup, err);
    return code;
}

enum oct_err oct_estimator_create(struct oct_estimator **out,
                                  const struct oct_sequence_setup *setup, struct oct_error *err)
{
    *out = NULL;
    struct oct_estimator *e = calloc(1, sizeof(*e));
    if (!e)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    e->setup = *setup;
    e->n_workers = setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1;
    e->workers = calloc(e->n_workers, sizeof(*e->workers));
    enum oct_err code =
        e->workers ? oct_level_init(&e->reference, setup->height, setup->width, setup->masked, err)
                   : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    for (unsigned i = 0; i < e->n_workers && !code; i++)
        code = create_worker(e, &e->workers[i], err);
    if (!code && setup->model == OCT_SEQUENCE_STRIPS)
        code = create_strips(e, err);
    if (code) {
        oct_estimator_destroy(e);
        return code;
    }
    *out = e;
    return OCT_OK;
}

void oct_estimator_destroy(struct oct_estimator *e)
{
    if (!e)
        return;
    for (unsigned i = 0; e->workers && i < e->n_workers; i++) {
        oct_rigid_destroy(e->workers[i].rigid);
        oct_level_finish(&e->workers[i].level);
        oct_zncc_sums_finish(&e->workers[i].overlap);
    }
    oct_strips_destroy(e->strips);
    oct_level_finish(&e->reference);
    free(e->workers);
    free(e);
}

enum oct_err oct_estimator_set_reference(struct oct_estimator *e,
                                         const struct oct_picture *reference, struct oct_error *err)
{
    enum oct_err code = OCT_OK;
    oct_level_set(&e->reference, reference);
    for (unsigned i = 0; i < e->n_workers; i++)
        oct_zncc_sums_forget(&e->workers[i].overlap);
    if (e->strips)
        return oct_strips_set_reference(e->strips, reference, err);
    for (unsigned i = 0; i < e->n_workers && !code; i++)
        code = oct_rigid_set_reference(e->workers[i].rigid, reference, err);
    return code;
}

/* How alike the two are as they lie; the shift of a rigid frame. */
static void do_one(void *context, unsigned piece, unsigned worker)
{
    struct oct_estimator *e = context;
    struct worker *w = &e->workers[worker];
    struct oct_shift shift;
    oct_level_set(&w->level, &e->pictures[piece]);
    e->before[piece] = NAN;
    if (w->level.has_contrast) {
        oct_zncc_sums_begin(&w->overlap, &w->level, &e->reference, 0, w->level.height,
                            LEAST_OVERLAP);
        e->before[piece] = oct_zncc_sums_score_at(&w->overlap, 0, 0);
    }
    if (e->strips)
        return;
    enum oct_err code = oct_rigid_find(w->rigid, &e->pictures[piece], &shift, &w->err);
    w->code = code ? code : w->code;
    if (!code)
        e->found[piece] = (struct oct_strip){(float)shift.dy, (float)shift.dx, (float)shift.score,
                                             shift.is_match && shift.score >= e->setup.min_score};
}

enum oct_err oct_estimator_find(struct oct_estimator *e, const struct oct_picture *pictures,
                                unsigned n, struct oct_strip *strips, float *before,
                                struct oct_error *err)
{
    e->pictures = pictures;
    e->found = strips;
    e->before = before;
    for (unsigned i = 0; i < e->n_workers; i++)
        e->workers[i].code = OCT_OK;
    oct_workers_run(e->setup.workers, n, do_one, e);
    for (unsigned i = 0; i < e->n_workers; i++)
        if (e->workers[i].code)
            return oct_fail(err, e->workers[i].code, "%s", e->workers[i].err.text);
    return e->strips ? oct_strips_find(e->strips, pictures, n, strips, err) : OCT_OK;
}

const char *oct_estimator_running(const struct oct_estimator *e)
{
    return e->strips ? oct_strips_running(e->strips) : oct_rigid_running(e->workers[0].rigid);
}
