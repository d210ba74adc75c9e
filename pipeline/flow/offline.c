#include "pipeline/flow/offline.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/thread.h"
#include "pipeline/flow/slots.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define POLL_US 100000u
/* With stages there are several rings to read, and one of them is waited for. It is that of the
 * pictures, because a stage that goes on frees a slot of it; only one that makes more results of a
 * B-scan than its ring holds waits for us so long. */
#define POLL_STAGES_US 2000u
#define PROGRESS_NS UINT64_C(100000000)

struct run {
    const struct oct_offline_setup *setup;
    struct oct_ring_reader *pictures;
    struct oct_ring_reader *results[OCT_OFFLINE_MAX_STAGES];
    pthread_t source;
    uint64_t n_pictures, n_skipped; /* the first is the sink's, the second the source's */
    uint64_t shown_ns;
    atomic_bool failed;

    pthread_mutex_t lock; /* guards what follows */
    struct oct_error why; /* the first error */
    uint64_t *index;      /* [n_published]: of the B-scan in this slot of the raw ring */
    size_t n_published, n_room;
};

/* Keeps the first error. The source sees it before its next B-scan. */
static void fail(struct run *r, enum oct_err code, const struct oct_error *why)
{
    pthread_mutex_lock(&r->lock);
    if (!r->failed) {
        r->why = *why;
        r->why.code = code;
    }
    r->failed = true;
    pthread_mutex_unlock(&r->lock);
}

/* ---- the source ---- */

static enum oct_err note_index(struct run *r, uint64_t index, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    pthread_mutex_lock(&r->lock);
    if (r->n_published == r->n_room) {
        size_t n = r->n_room ? r->n_room * 2 : 1024;
        uint64_t *more = realloc(r->index, n * sizeof(*more));
        if (more) {
            r->index = more;
            r->n_room = n;
        } else {
            e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the numbers of B-scans");
        }
    }
    if (!e)
        r->index[r->n_published++] = index;
    pthread_mutex_unlock(&r->lock);
    return e;
}

/* Fills the slot with the next B-scan that there is, unless the source has ended. */
static enum oct_err fill_slot(struct run *r, uint64_t slot, uint64_t *index, bool *ended,
                              struct oct_error *err)
{
    const struct oct_offline_source *source = &r->setup->source;
    const struct oct_pipeline *pipeline = r->setup->pipeline;
    struct oct_raw_frame *frame = oct_raw_slot(oct_pipeline_raw(r->setup->pipeline), slot,
                                               &oct_pipeline_plan(pipeline)->geometry);
    enum oct_offline_next next = OCT_OFFLINE_SKIP;
    enum oct_err e = OCT_OK;

    for (; !r->failed && !e && next == OCT_OFFLINE_SKIP; ++*index) {
        frame->info = (struct oct_bscan_info){.id = slot};
        e = source->read(source->context, *index, frame, &next, err);
        r->n_skipped += !e && next == OCT_OFFLINE_SKIP;
    }
    *ended = e || next != OCT_OFFLINE_BSCAN;
    if (*ended)
        return e;
    frame->info.id = slot;
    frame->info.arrival_ns = oct_clock_ns();
    return note_index(r, *index - 1, err);
}

static void *run_source(void *argument)
{
    struct run *r = argument;
    const struct oct_offline_setup *setup = r->setup;
    struct oct_ring *raw = oct_pipeline_raw(setup->pipeline);
    struct oct_error err = {.text = ""};
    uint64_t slot, index = 0;
    bool ended = false;

    while (!ended && !r->failed) {
        if (oct_ring_acquire(raw, POLL_US, &slot))
            continue;
        enum oct_err e = fill_slot(r, slot, &index, &ended, &err);
        if (e)
            fail(r, e, &err);
        else if (!ended)
            oct_ring_publish(raw);
    }
    oct_ring_close(raw);
    oct_pipeline_drain(setup->pipeline);
    for (unsigned k = 0; k < setup->n_stages; k++)
        oct_stage_drain(setup->stages[k]);
    return NULL;
}

/* ---- the sink ---- */

static bool is_cancelled(const struct run *r, struct oct_error *err)
{
    if (!r->setup->cancel || !*r->setup->cancel)
        return false;
    oct_fail(err, OCT_E_CLOSED, "interrupted: nothing is left behind");
    return true;
}

/* False: no such B-scan came. */
static bool find_index(struct run *r, uint64_t id, uint64_t *index)
{
    pthread_mutex_lock(&r->lock);
    bool known = id < r->n_published;
    *index = known ? r->index[id] : 0;
    pthread_mutex_unlock(&r->lock);
    return known;
}

static enum oct_err give_picture(struct run *r, uint64_t slot,
                                 const struct oct_image_frame *picture, struct oct_error *err)
{
    const struct oct_offline_setup *setup = r->setup;
    uint64_t index;

    find_index(r, slot, &index); /* slots of both rings have the same numbers */
    if (is_cancelled(r, err))
        return err->code;
    if (picture->status)
        return oct_fail(err, picture->status, "%s: the engine lost B-scan %llu", setup->source.name,
                        (unsigned long long)index);
    return setup->sink.picture ? setup->sink.picture(setup->sink.context, index, picture, err)
                               : OCT_OK;
}

static enum oct_err give_result(struct run *r, unsigned k, const struct oct_image_frame *result,
                                struct oct_error *err)
{
    const struct oct_offline_setup *setup = r->setup;
    uint64_t index;

    if (is_cancelled(r, err))
        return err->code;
    if (!find_index(r, result->info.id, &index))
        return oct_fail(err, OCT_E_ARG, "%s: analysis %s: a result of a B-scan that never came",
                        setup->source.name, oct_stage_name(setup->stages[k]));
    return setup->sink.result ? setup->sink.result(setup->sink.context, k, index, result, err)
                              : OCT_OK;
}

/* As oct_ring_read, with the slot dealt with and released. */
static enum oct_err take_picture(struct run *r, uint64_t timeout_us)
{
    struct oct_error err = {.text = ""};
    uint64_t slot;
    enum oct_err e = oct_ring_read(r->pictures, timeout_us, &slot);
    if (e)
        return e;
    const struct oct_image_frame *picture = oct_image_held(r->pictures);
    if (!r->failed && (e = give_picture(r, slot, picture, &err)))
        fail(r, e, &err);
    oct_ring_release(r->pictures);
    r->n_pictures++;
    return OCT_OK;
}

static enum oct_err take_result(struct run *r, unsigned k, uint64_t timeout_us)
{
    struct oct_error err = {.text = ""};
    uint64_t slot;
    enum oct_err e = oct_ring_read(r->results[k], timeout_us, &slot);
    if (e)
        return e;
    while (take_picture(r, 0) == OCT_OK) /* what the result was made of is in the ring by now */
        ;
    if (!r->failed && (e = give_result(r, k, oct_image_held(r->results[k]), &err)))
        fail(r, e, &err);
    oct_ring_release(r->results[k]);
    return OCT_OK;
}

static void show_progress(struct run *r)
{
    const struct oct_offline_setup *setup = r->setup;
    uint64_t now_ns = oct_clock_ns();
    if (!setup->progress || now_ns - r->shown_ns < PROGRESS_NS)
        return;
    r->shown_ns = now_ns;
    setup->progress(setup->progress_context, r->n_pictures, setup->source.n_bscans);
}

/* A cancelled run waits for no analysis: called until all rings are closed. */
static void heed_cancel(struct run *r)
{
    struct oct_error err;
    if (!is_cancelled(r, &err))
        return;
    if (!r->failed)
        fail(r, err.code, &err);
    for (unsigned k = 0; k < r->setup->n_stages; k++)
        oct_stage_cancel(r->setup->stages[k]);
}

/* Reads all rings to their end: one slot of each in turn, so that none fills up while another is
 * waited for. Only when none had anything is the first that is open waited for. */
static void run_sink(struct run *r)
{
    const uint64_t poll_us = r->setup->n_stages ? POLL_STAGES_US : POLL_US;
    bool open = true, idle = false;

    while (open) {
        bool waits = idle;
        open = false;
        idle = true;
        for (unsigned k = 0; k <= r->setup->n_stages; k++) {
            uint64_t timeout_us = waits && !open ? poll_us : 0;
            enum oct_err e = k ? take_result(r, k - 1, timeout_us) : take_picture(r, timeout_us);
            open = open || e != OCT_E_CLOSED;
            idle = idle && e != OCT_OK;
        }
        if (open)
            heed_cancel(r);
        show_progress(r);
    }
}

/* ---- the run ---- */

static enum oct_err create_readers(struct run *r, struct oct_error *err)
{
    const struct oct_offline_setup *setup = r->setup;
    bool all = true;
    if (setup->n_stages > OCT_OFFLINE_MAX_STAGES)
        return oct_fail(err, OCT_E_ARG, "%u analyses at once: %u at most", setup->n_stages,
                        OCT_OFFLINE_MAX_STAGES);
    r->pictures = oct_ring_reader_create(oct_pipeline_images(setup->pipeline), true, 0);
    for (unsigned k = 0; k < setup->n_stages; k++) {
        r->results[k] = oct_ring_reader_create(oct_stage_results(setup->stages[k]).ring, true, 0);
        all = all && r->results[k];
    }
    return r->pictures && all ? OCT_OK
                              : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a reader");
}

static enum oct_err start_source(struct run *r, struct oct_error *err)
{
    return oct_thread_start(&r->source, "octd-source", run_source, r, "source thread", err);
}

enum oct_err oct_offline_run(const struct oct_offline_setup *setup,
                             struct oct_offline_counts *counts, struct oct_error *err)
{
    struct run r = {.setup = setup, .shown_ns = oct_clock_ns()};

    pthread_mutex_init(&r.lock, NULL);
    enum oct_err e = create_readers(&r, &r.why);
    if (!e)
        e = start_source(&r, &r.why);
    if (e) {
        fail(&r, e, &r.why);
        run_source(&r); /* which only drains what is empty */
    } else {
        run_sink(&r);
        pthread_join(r.source, NULL);
    }
    oct_ring_reader_destroy(r.pictures);
    for (unsigned k = 0; k < setup->n_stages && k < OCT_OFFLINE_MAX_STAGES; k++)
        oct_ring_reader_destroy(r.results[k]);
    pthread_mutex_destroy(&r.lock);
    free(r.index);
    *counts = (struct oct_offline_counts){.n_pictures = r.n_pictures, .n_skipped = r.n_skipped};
    return r.failed ? oct_fail(err, r.why.code, "%s", r.why.text) : OCT_OK;
}
