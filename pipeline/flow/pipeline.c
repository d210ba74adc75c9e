#include "pipeline/flow/pipeline.h"

#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/base/thread.h"
#include "pipeline/flow/even_lines.h"
#include "pipeline/flow/running_dc.h"
#include "pipeline/flow/slots.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define POLL_US 100000u
#define MAX_BATCH 64u
#define PAGE 4096u

/* What is lent beside the pixels. */
struct lent {
    bool is_lent;
    size_t bytes;                   /* of a B-scan, in whole pages; 0: its pixels are that */
    _Atomic(unsigned char *) rooms; /* [buffers of the image ring][bytes]; NULL: not yet, or it is
                                       in the slots */
    atomic_uint asked[OCT_MAX_ASKERS]; /* B-scans of which each still wants it */
};

struct oct_pipeline {
    const struct oct_plan *plan;
    const struct oct_engine_ops *ops;
    struct oct_engine *engine;
    struct oct_ring *raw, *images;
    struct oct_ring_reader *raw_reader;
    struct oct_image_form form;
    struct oct_even_lines *even;       /* collect's; NULL: lines lie evenly */
    struct oct_running_dc *running_dc; /* feed's; NULL unless dc=running, as the next */
    float *dc_lines;                   /* [slots of the image ring][2][N], lent with the jobs */
    bool has_own_rooms; /* what is lent is not kept in the slots, but in its own memory */
    int gpu;            /* on which it may lie; -1: none */
    struct lent lent[OCT_N_LENT];
    bool in_slots[OCT_N_LENT];
    bool pinned;
    bool has_feed, has_collect; /* threads that run */
    pthread_t feed, collect;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t room;  /* in_flight has sunk */
    struct oct_display display;
    unsigned in_flight;
    uint64_t busy_since_ns; /* in_flight is not 0 since then */
    bool feed_ended;
    uint64_t sink_waits; /* times that feed found no place with nothing in flight */
    struct oct_pipeline_counts counts;
    bool failed;
    struct oct_error failure;
};

/* ---- feed ---- */

static void note_failure(struct oct_pipeline *p, enum oct_err code)
{
    struct oct_error failure;
    oct_fail(&failure, code, "the %s engine has failed (%s): B-scans are dropped", p->ops->name,
             p->ops->describe(p->engine));
    pthread_mutex_lock(&p->lock);
    bool first = !p->failed;
    p->failed = true;
    p->failure = failure;
    pthread_mutex_unlock(&p->lock);
    if (first)
        oct_log(OCT_LOG_ERROR, "%s", failure.text);
}

/* With nothing in flight only a sink can hold the image ring. */
static void note_full(struct oct_pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    p->sink_waits += p->in_flight == 0;
    pthread_mutex_unlock(&p->lock);
}

/* Whether any asker wants it of the next B-scan; counts it off for each that does. */
static bool take_request(struct lent *lent)
{
    bool wanted = false;
    for (unsigned i = 0; i < OCT_MAX_ASKERS; i++) {
        unsigned n = atomic_load_explicit(&lent->asked[i], memory_order_relaxed);
        while (n > 0 && n < UINT_MAX && !atomic_compare_exchange_weak(&lent->asked[i], &n, n - 1))
            ;
        wanted = wanted || n > 0;
    }
    return wanted;
}

/* Where the engine puts it of the B-scan in this slot; NULL: nobody asked, or there is no room. */
static float *lend(const struct oct_pipeline *p, struct lent *lent, float **room, uint64_t slot)
{
    if (!lent->is_lent)
        return NULL;
    unsigned char *rooms = atomic_load_explicit(&lent->rooms, memory_order_acquire);
    if (!*room && rooms)
        *room = (float *)(void *)(rooms + oct_ring_buffer(p->images, slot) * lent->bytes);
    return *room && take_request(lent) ? *room : NULL;
}

/* The line of dc=running; it is lent as long as the slot is. */
static const float *next_dc(struct oct_pipeline *p, const struct oct_raw_frame *in, uint64_t slot)
{
    if (!p->running_dc)
        return NULL;
    const size_t values = 2 * (size_t)p->plan->geometry.n_samples;
    float *line = p->dc_lines + slot % oct_ring_n_slots(p->images) * values;
    oct_running_dc_push(p->running_dc, in, line);
    return line;
}

/* Waits for the next raw slot and a place for its picture. */
static enum oct_err next_job(struct oct_pipeline *p, uint64_t timeout_us,
                             struct oct_engine_job *job)
{
    uint64_t raw_slot, image_slot;
    enum oct_err e = oct_ring_read(p->raw_reader, timeout_us, &raw_slot);
    if (e)
        return e;
    /* A guaranteed reader may hold the ring; a raw slot that was read is never dropped. */
    while ((e = oct_ring_acquire(p->images, POLL_US, &image_slot)) == OCT_E_AGAIN)
        note_full(p);
    if (e)
        return e;
    job->in = oct_raw_slot(p->raw, raw_slot, &p->plan->geometry);
    struct oct_image_frame *out =
        oct_image_slot_begin(p->images, image_slot, &p->form, p->in_slots);
    out->info = job->in->info;
    out->values = p->form.type == OCT_SAMPLE_F32
                      ? out->pixels
                      : lend(p, &p->lent[OCT_LENT_VALUES], &out->values_room, image_slot);
    out->complex_values = lend(p, &p->lent[OCT_LENT_COMPLEX], &out->complex_room, image_slot);
    out->complex_device = lend(p, &p->lent[OCT_LENT_DEVICE], &out->device_room, image_slot);
    out->complex_gpu = (unsigned)p->gpu;
    job->out = out;
    job->dc = next_dc(p, job->in, image_slot);
    return OCT_OK;
}

static void wait_for_room(struct oct_pipeline *p, unsigned most)
{
    pthread_mutex_lock(&p->lock);
    while (p->in_flight > most)
        pthread_cond_wait(&p->room, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

/* Books one finished picture and hands it to the sinks. In order of slots. */
static void finish_oldest(struct oct_pipeline *p, bool ok)
{
    pthread_mutex_lock(&p->lock);
    if (ok)
        p->counts.bscans_done++;
    else
        p->counts.bscans_dropped_engine++;
    pthread_mutex_unlock(&p->lock);
    oct_ring_publish(p->images);
    oct_ring_release(p->raw_reader);
}

static void submit(struct oct_pipeline *p, struct oct_engine_job *jobs, unsigned n)
{
    wait_for_room(p, p->ops->depth(p->engine) - n);
    pthread_mutex_lock(&p->lock);
    p->busy_since_ns = p->in_flight > 0 ? p->busy_since_ns : oct_clock_ns();
    p->in_flight += n; /* before submit: collect may finish them before submit returns */
    for (unsigned k = 0; k < n; k++)
        jobs[k].display = p->display;
    pthread_mutex_unlock(&p->lock);
    enum oct_err e = p->ops->submit(p->engine, jobs, n);
    if (e == OCT_OK)
        return;
    note_failure(p, e);
    pthread_mutex_lock(&p->lock);
    p->in_flight -= n;
    pthread_mutex_unlock(&p->lock);
    wait_for_room(p, 0); /* pictures leave in order: those in flight first */
    for (unsigned k = 0; k < n; k++) {
        jobs[k].out->status = e;
        finish_oldest(p, false);
    }
}

static void *run_feed(void *argument)
{
    struct oct_pipeline *p = argument;
    unsigned most = p->ops->max_batch(p->engine);
    struct oct_engine_job jobs[MAX_BATCH];

    if (most > MAX_BATCH)
        most = MAX_BATCH;
    for (;;) {
        unsigned n = 0;
        enum oct_err e = next_job(p, POLL_US, &jobs[0]);
        if (e == OCT_E_AGAIN)
            continue;
        if (e)
            break;
        /* One B-scan at once when live; a backlog goes in batches. */
        for (n = 1; n < most; n++)
            if (next_job(p, 0, &jobs[n]))
                break;
        submit(p, jobs, n);
    }
    pthread_mutex_lock(&p->lock);
    p->feed_ended = true;
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- collect ---- */

static bool is_finished(struct oct_pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    bool finished = p->feed_ended && p->in_flight == 0;
    pthread_mutex_unlock(&p->lock);
    return finished;
}

/* The raw frame of the picture that is collected next: it is held until that is published. */
static const struct oct_raw_frame *raw_of_oldest(struct oct_pipeline *p)
{
    return oct_raw_slot(p->raw, oct_ring_published(p->images), &p->plan->geometry);
}

static void *run_collect(void *argument)
{
    struct oct_pipeline *p = argument;
    while (!is_finished(p)) {
        struct oct_image_frame *done;
        if (p->ops->collect(p->engine, POLL_US, &done))
            continue;
        const bool has_complex = done->complex_values != NULL;
        if (p->even && done->status == OCT_OK)
            oct_even_lines_apply(p->even, done, raw_of_oldest(p)->line_valid);
        finish_oldest(p, done->status == OCT_OK);
        pthread_mutex_lock(&p->lock);
        if (has_complex)
            p->counts.complex_bytes += oct_geometry_complex_bytes(&p->plan->geometry);
        p->in_flight--;
        if (p->in_flight == 0)
            p->counts.busy_ns += oct_clock_ns() - p->busy_since_ns;
        pthread_cond_broadcast(&p->room);
        pthread_mutex_unlock(&p->lock);
    }
    oct_ring_close(p->images);
    return NULL;
}

/* ---- life ---- */

static enum oct_err create_rings(struct oct_pipeline *p, unsigned n_slots, struct oct_error *err)
{
    const struct oct_geometry *g = &p->plan->geometry;
    const struct oct_memory_ops *memory = p->ops->memory;
    unsigned least = p->ops->depth(p->engine) + 4;
    bool raw_pinned, images_pinned;

    if (n_slots < least)
        n_slots = least;
    enum oct_err e =
        oct_ring_create(&p->raw, n_slots, oct_raw_slot_bytes(g), memory, &raw_pinned, err);
    if (e)
        return e;
    e = oct_ring_create(&p->images, n_slots, oct_image_slot_bytes_of(&p->form, p->in_slots), memory,
                        &images_pinned, err);
    if (e)
        return e;
    p->pinned = raw_pinned && images_pinned;
    p->raw_reader = oct_ring_reader_create(p->raw, true, 0);
    return p->raw_reader ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a reader");
}

static enum oct_err create_running_dc(struct oct_pipeline *p, struct oct_error *err)
{
    if (p->plan->chain.dc != OCT_DC_RUNNING)
        return OCT_OK;
    const size_t values = 2 * (size_t)p->plan->geometry.n_samples;
    p->dc_lines = oct_aligned_alloc(64, oct_ring_n_slots(p->images) * values, sizeof(float));
    if (!p->dc_lines)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the lines of the running mean");
    return oct_running_dc_create(&p->running_dc, p->plan, err);
}

static enum oct_err start_threads(struct oct_pipeline *p, struct oct_error *err)
{
    enum oct_err e = oct_thread_start(&p->feed, "octd-feed", run_feed, p, "feed thread", err);
    p->has_feed = e == OCT_OK;
    if (e)
        return e;
    e = oct_thread_start(&p->collect, "octd-collect", run_collect, p, "collect thread", err);
    p->has_collect = e == OCT_OK;
    return e;
}

/* A device wants its memory pinned at the start. */
static void choose_rooms(struct oct_pipeline *p, const struct oct_pipeline_setup *setup)
{
    p->has_own_rooms = p->ops->memory == NULL;
    for (int what = 0; what < OCT_N_LENT; what++) {
        const size_t bytes = oct_image_lent_bytes(&p->form, (enum oct_lent)what);
        p->lent[what].is_lent = setup->lends[what];
        p->lent[what].bytes = (bytes + PAGE - 1) / PAGE * PAGE;
        p->in_slots[what] = setup->lends[what] && !p->has_own_rooms && what != OCT_LENT_DEVICE;
    }
    p->gpu = p->ops->gpu ? p->ops->gpu(p->engine) : -1;
}

/* Beside the rings. A device that has no room for it lends none. */
static void alloc_device_rooms(struct oct_pipeline *p)
{
    const struct oct_memory_ops *memory = p->ops->memory;
    struct lent *lent = &p->lent[OCT_LENT_DEVICE];
    const size_t bytes = oct_ring_most_buffers(p->images) * lent->bytes;
    void *rooms = NULL;
    if (lent->is_lent && !p->even && p->gpu >= 0 && memory && memory->device_alloc)
        rooms = memory->device_alloc(bytes, (unsigned)p->gpu);
    if (rooms)
        oct_ring_own(p->images, rooms, bytes, memory->release);
    atomic_store(&lent->rooms, rooms);
    lent->is_lent = rooms != NULL;
}

static void free_rooms(void *rooms, size_t bytes)
{
    (void)bytes;
    free(rooms);
}

enum oct_err oct_pipeline_create(struct oct_pipeline **out, const struct oct_pipeline_setup *setup,
                                 struct oct_error *err)
{
    *out = NULL;
    struct oct_pipeline *p = calloc(1, sizeof(*p));
    if (!p) {
        setup->ops->destroy(setup->engine);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the pipeline");
    }
    p->plan = setup->plan;
    p->ops = setup->ops;
    p->engine = setup->engine;
    p->display = setup->display;
    oct_image_form_of_bscan(&p->form, &p->plan->geometry, p->display.log, &setup->spacing);
    choose_rooms(p, setup);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->room, NULL);
    enum oct_err e = create_rings(p, setup->ring_bscans, err);
    if (e == OCT_OK && oct_scan_is_uneven(&p->plan->scan))
        e = oct_even_lines_create(&p->even, &p->plan->scan, &p->plan->geometry, err);
    if (e == OCT_OK)
        alloc_device_rooms(p);
    if (e == OCT_OK)
        e = create_running_dc(p, err);
    if (e == OCT_OK)
        e = start_threads(p, err);
    if (e) {
        oct_pipeline_destroy(p);
        return e;
    }
    *out = p;
    return OCT_OK;
}

void oct_pipeline_drain(struct oct_pipeline *p)
{
    if (p->raw)
        oct_ring_close(p->raw);
    if (p->has_feed)
        pthread_join(p->feed, NULL);
    if (p->has_collect)
        pthread_join(p->collect, NULL);
    p->has_feed = p->has_collect = false;
}

enum oct_err oct_pipeline_restart(struct oct_pipeline *p, const struct oct_display *display,
                                  struct oct_error *err)
{
    struct oct_error why;
    if (oct_pipeline_has_failed(p, &why))
        return oct_fail(err, OCT_E_BACKEND, "%s", why.text);
    oct_ring_reopen(p->raw);
    oct_ring_reopen(p->images);
    pthread_mutex_lock(&p->lock);
    p->display = *display;
    p->feed_ended = false;
    pthread_mutex_unlock(&p->lock);
    return start_threads(p, err);
}

void oct_pipeline_destroy(struct oct_pipeline *p)
{
    if (!p)
        return;
    if (p->images && !p->has_collect)
        oct_ring_close(p->images); /* after a failed create: feed must not wait for room */
    oct_pipeline_drain(p);
    p->ops->destroy(p->engine);
    oct_ring_reader_destroy(p->raw_reader);
    oct_ring_destroy(p->raw);
    oct_ring_destroy(p->images);
    oct_even_lines_destroy(p->even);
    oct_running_dc_destroy(p->running_dc);
    free(p->dc_lines);
    pthread_cond_destroy(&p->room);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

struct oct_ring *oct_pipeline_raw(struct oct_pipeline *p)
{
    return p->raw;
}

struct oct_ring *oct_pipeline_images(struct oct_pipeline *p)
{
    return p->images;
}

const struct oct_image_form *oct_pipeline_form(const struct oct_pipeline *p)
{
    return &p->form;
}

/* In the asker's thread: the path of the B-scans allocates nothing. Without a lock, since askers
 * yield to others: of several that come at once one makes them. */
static bool make_rooms(struct oct_pipeline *p, struct lent *lent)
{
    unsigned char *none = NULL, *rooms;
    if (atomic_load(&lent->rooms))
        return true;
    rooms = oct_aligned_alloc(PAGE, oct_ring_most_buffers(p->images), lent->bytes);
    if (rooms && atomic_compare_exchange_strong(&lent->rooms, &none, rooms))
        oct_ring_own(p->images, rooms, lent->bytes, free_rooms);
    else
        free(rooms);
    return atomic_load(&lent->rooms) != NULL;
}

bool oct_pipeline_ask(struct oct_pipeline *p, enum oct_lent what, unsigned asker, unsigned n)
{
    struct lent *lent = &p->lent[what];
    if (lent->bytes) {
        if (!lent->is_lent)
            return false;
        if (what == OCT_LENT_DEVICE && p->ops->gpu(p->engine) < 0)
            return false;
        if (n > 0 && p->has_own_rooms && !make_rooms(p, lent))
            return false;
    }
    atomic_store(&lent->asked[asker], n);
    return true;
}

unsigned oct_pipeline_depth(const struct oct_pipeline *p)
{
    return p->ops->depth(p->engine);
}

const struct oct_plan *oct_pipeline_plan(const struct oct_pipeline *p)
{
    return p->plan;
}

const char *oct_pipeline_engine_name(const struct oct_pipeline *p)
{
    return p->ops->running ? p->ops->running(p->engine) : p->ops->name;
}

const char *oct_pipeline_engine_description(const struct oct_pipeline *p)
{
    return p->ops->describe(p->engine);
}

const struct oct_memory_ops *oct_pipeline_memory(const struct oct_pipeline *p)
{
    return p->ops->memory;
}

bool oct_pipeline_is_pinned(const struct oct_pipeline *p)
{
    return p->pinned;
}

void oct_pipeline_set_display(struct oct_pipeline *p, const struct oct_display *display)
{
    pthread_mutex_lock(&p->lock);
    p->display = *display;
    pthread_mutex_unlock(&p->lock);
}

struct oct_pipeline_counts oct_pipeline_count(struct oct_pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    struct oct_pipeline_counts counts = p->counts;
    counts.busy_ns += p->in_flight > 0 ? oct_clock_ns() - p->busy_since_ns : 0;
    pthread_mutex_unlock(&p->lock);
    return counts;
}

struct oct_pipeline_progress oct_pipeline_get_progress(struct oct_pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    uint64_t finished = p->counts.bscans_done + p->counts.bscans_dropped_engine;
    uint64_t sink_waits = p->sink_waits;
    pthread_mutex_unlock(&p->lock);
    return (struct oct_pipeline_progress){.moves = finished,
                                          .sink_waits = sink_waits,
                                          .n_waiting = oct_ring_published(p->raw) - finished};
}

bool oct_pipeline_has_failed(struct oct_pipeline *p, struct oct_error *why)
{
    pthread_mutex_lock(&p->lock);
    bool failed = p->failed;
    if (failed && why)
        *why = p->failure;
    pthread_mutex_unlock(&p->lock);
    return failed;
}
