/* An engine until it dies, then another: itself an engine, so that nothing around it needs to know.
 * Any two tables will do; the first and the second engine are here called `first` and `then`.
 * oct_engine_failover is the CUDA engine and the CPU engine.
 *
 *     ON_FIRST --(submit or collect meets a dead device)--> DRAINING --(first is gone)--> ON_THEN
 *
 * Every job is kept here until it is collected. Spectra stay in their slots until then, so whatever
 * the first engine had and was not collected is computed again: a device that dies costs time, no
 * B-scan. Depth and batch stay as the first engine gave them, because rings were sized by them;
 * what is beyond the second one's depth waits here. The second engine is created by the collecting
 * thread, which the failure has stopped anyway. Percentile limits start afresh with it. */
#include "kernels/device/cuda_memory.h"
#include "kernels/recon/tables.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"
#include "pipeline/base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4096

enum state { ON_FIRST, DRAINING, ON_THEN, ALL_DEAD };

struct oct_engine {
    const struct oct_plan *plan;
    struct oct_engine_options options; /* for the second engine; strings are copies below */
    char wisdom_dir[PATH_BYTES];
    char simd[16];
    unsigned depth, max_batch;
    int gpu; /* the first engine's */
    struct oct_failover of;
    struct oct_engine *first_engine, *then_engine;

    /* Guards what follows. Never held across a call into an engine, except submit and create. */
    pthread_mutex_t lock;
    pthread_cond_t arrived; /* a job, while no engine is there */
    enum state state;
    struct oct_engine_job *jobs; /* [depth] submitted and not collected, at % depth */
    uint64_t first, last;
    uint64_t fed; /* the first that the second engine does not have yet */

    char on_first[320], on_then[320];
    _Atomic(const char *) description; /* one of them; read by any thread */
};

static void keep_jobs(struct oct_engine *engine, const struct oct_engine_job *jobs, unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        engine->jobs[engine->last++ % engine->depth] = jobs[k];
    pthread_cond_signal(&engine->arrived);
}

/* Submits kept jobs to the second engine until it takes no more; it has no GPU. Lock held. */
static void feed_then(struct oct_engine *engine)
{
    unsigned most = engine->of.then->depth(engine->then_engine);
    while (engine->fed != engine->last && engine->fed - engine->first < most) {
        struct oct_engine_job *job = &engine->jobs[engine->fed % engine->depth];
        job->out->complex_device = NULL;
        if (engine->of.then->submit(engine->then_engine, job, 1) != OCT_OK)
            break;
        engine->fed++;
    }
}

/* Allocates memory that is never freed: a device that hangs may write to it at any time. NULL: out
 * of memory. */
static void *new_place(size_t bytes)
{
    return oct_aligned_alloc(4096, bytes, 1);
}

static enum oct_err move_picture(struct oct_image_frame *out, const struct oct_geometry *g)
{
    const size_t bytes = (size_t)g->n_lines * g->depth * sizeof(float);
    const bool has_own_values = out->values && g->sample_type != OCT_SAMPLE_F32;
    void *pixels = new_place(oct_geometry_image_bytes(g));
    float *values = has_own_values ? new_place(bytes) : pixels;
    float *complex_values = out->complex_values ? new_place(2 * bytes) : NULL;
    if (!pixels || !values || (out->complex_values && !complex_values))
        return OCT_E_NO_MEMORY;
    out->pixels = pixels;
    if (has_own_values)
        out->values_room = values;
    if (out->values)
        out->values = values;
    if (out->complex_values)
        out->complex_values = out->complex_room = complex_values;
    return OCT_OK;
}

/* A device that hangs may still write into what it was given: pictures and values move. Lock
 * held. */
static enum oct_err move_pictures(struct oct_engine *engine)
{
    enum oct_err e = OCT_OK;
    for (uint64_t i = engine->first; i < engine->last && !e; i++)
        e = move_picture(engine->jobs[i % engine->depth].out, &engine->plan->geometry);
    return e;
}

/* Replaces the dead first engine by the second. Lock held, released while engines are destroyed and
 * created; jobs that arrive meanwhile are kept and were never submitted to the first engine. */
static void change_engines(struct oct_engine *engine)
{
    const struct oct_failover *of = &engine->of;
    struct oct_engine *then = NULL, *first = engine->first_engine;
    struct oct_error why = {.text = ""};

    engine->first_engine = NULL;
    pthread_mutex_unlock(&engine->lock);
    of->first->destroy(first);
    enum oct_err e = of->then->create(&then, engine->plan, &engine->options, &why);
    pthread_mutex_lock(&engine->lock);
    if (!e && oct_cuda_memory_is_held() && (e = move_pictures(engine))) {
        oct_fail(&why, e, "out of memory for the pictures that a hanging %s may still write",
                 of->first_is);
        of->then->destroy(then);
        then = NULL;
    }
    engine->then_engine = then;
    if (e) {
        engine->state = ALL_DEAD;
        oct_log(OCT_LOG_ERROR, "the %s has failed and the %s engine does not start: %s",
                of->first_is, of->then_is, why.text);
        return;
    }
    engine->state = ON_THEN;
    snprintf(engine->on_then, sizeof(engine->on_then), "%s since the %s failed: %s", of->then_is,
             of->first_is, of->then->describe(then));
    atomic_store(&engine->description, engine->on_then);
    oct_log(OCT_LOG_WARNING,
            "going on with the %s engine (%s), which computes what the %s had: %llu B-scans",
            of->then_is, of->then->describe(then), of->first_is,
            (unsigned long long)(engine->last - engine->first));
    engine->fed = engine->first;
    feed_then(engine);
}

static enum oct_err failover_submit(struct oct_engine *engine, const struct oct_engine_job *jobs,
                                    unsigned n)
{
    enum oct_err e = OCT_OK;
    pthread_mutex_lock(&engine->lock);
    if (engine->state == ALL_DEAD) {
        e = OCT_E_BACKEND;
    } else if (engine->last - engine->first + n > engine->depth) {
        e = OCT_E_AGAIN;
    } else {
        if (engine->state == ON_FIRST) {
            e = engine->of.first->submit(engine->first_engine, jobs, n);
            if (e == OCT_E_BACKEND) {
                engine->state = DRAINING;
                e = OCT_OK;
            }
        }
        if (e == OCT_OK)
            keep_jobs(engine, jobs, n);
        if (engine->state == ON_THEN)
            feed_then(engine);
    }
    pthread_mutex_unlock(&engine->lock);
    return e;
}

/* Both engines have failed: collects the waiting jobs as lost, in order. Lock held. */
static enum oct_err lose_one(struct oct_engine *engine, struct oct_image_frame **done)
{
    if (engine->first == engine->last)
        return OCT_E_AGAIN;
    *done = engine->jobs[engine->first++ % engine->depth].out;
    (*done)->status = OCT_E_BACKEND;
    return OCT_OK;
}

static void wait_for_arrival(struct oct_engine *engine, uint64_t until_ns)
{
    uint64_t now = oct_clock_ns();
    oct_condition_wait_us(&engine->arrived, &engine->lock,
                          until_ns > now ? (until_ns - now) / 1000 : 0);
}

/* One look at the engine in charge, for at most slice_us. Lock held, released while waiting. */
static enum oct_err collect_slice(struct oct_engine *engine, uint64_t slice_us,
                                  struct oct_image_frame **done)
{
    if (engine->state == DRAINING)
        change_engines(engine);
    if (engine->state == ALL_DEAD)
        return lose_one(engine, done);
    bool on_first = engine->first_engine != NULL;
    struct oct_engine *now = on_first ? engine->first_engine : engine->then_engine;
    const struct oct_engine_ops *ops = on_first ? engine->of.first : engine->of.then;
    pthread_mutex_unlock(&engine->lock);
    enum oct_err e = ops->collect(now, slice_us, done);
    pthread_mutex_lock(&engine->lock);
    if (e)
        return e;
    if (on_first && (*done)->status == OCT_E_BACKEND) {
        engine->state = DRAINING; /* this one is computed again, too */
        return OCT_E_AGAIN;
    }
    engine->first++;
    if (!on_first)
        feed_then(engine);
    return OCT_OK;
}

#define SLICE_US 20000u /* another thread may change the state meanwhile */

static enum oct_err failover_collect(struct oct_engine *engine, uint64_t timeout_us,
                                     struct oct_image_frame **done)
{
    uint64_t until_ns = oct_clock_ns() + timeout_us * 1000;
    pthread_mutex_lock(&engine->lock);
    enum oct_err e;
    for (;;) {
        uint64_t now = oct_clock_ns(), left_us = until_ns > now ? (until_ns - now) / 1000 : 0;
        e = collect_slice(engine, left_us < SLICE_US ? left_us : SLICE_US, done);
        if (e == OCT_OK || (oct_clock_ns() >= until_ns && engine->state != DRAINING))
            break;
        if (engine->state == ALL_DEAD)
            wait_for_arrival(engine, until_ns);
    }
    pthread_mutex_unlock(&engine->lock);
    return e;
}

static void failover_destroy(struct oct_engine *engine)
{
    if (!engine)
        return;
    engine->of.first->destroy(engine->first_engine);
    engine->of.then->destroy(engine->then_engine);
    pthread_cond_destroy(&engine->arrived);
    pthread_mutex_destroy(&engine->lock);
    free(engine->jobs);
    free(engine);
}

/* Copies the options, except those for GPUs: an engine that replaces a GPU needs none of them. */
static void copy_options(struct oct_engine *engine, const struct oct_engine_options *options)
{
    engine->options = *options;
    engine->options.gpus = engine->options.cuda = NULL;
    snprintf(engine->simd, sizeof(engine->simd), "%s", options->simd ? options->simd : "auto");
    engine->options.simd = engine->simd;
    engine->options.wisdom_dir = NULL;
    if (options->wisdom_dir && strlen(options->wisdom_dir) < sizeof(engine->wisdom_dir)) {
        snprintf(engine->wisdom_dir, sizeof(engine->wisdom_dir), "%s", options->wisdom_dir);
        engine->options.wisdom_dir = engine->wisdom_dir;
    }
}

enum oct_err oct_failover_create(struct oct_engine **out, const struct oct_failover *of,
                                 const struct oct_plan *plan,
                                 const struct oct_engine_options *options, struct oct_error *err)
{
    *out = NULL;
    struct oct_engine *engine = calloc(1, sizeof(*engine));
    if (!engine)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the engine");
    pthread_mutex_init(&engine->lock, NULL);
    oct_condition_init(&engine->arrived);
    engine->of = *of;
    engine->plan = plan;
    copy_options(engine, options);
    enum oct_err e = of->first->create(&engine->first_engine, plan, options, err);
    if (e) {
        failover_destroy(engine);
        return e;
    }
    engine->depth = of->first->depth(engine->first_engine);
    engine->max_batch = of->first->max_batch(engine->first_engine);
    engine->gpu = of->first->gpu ? of->first->gpu(engine->first_engine) : -1;
    snprintf(engine->on_first, sizeof(engine->on_first), "%s",
             of->first->describe(engine->first_engine));
    atomic_store(&engine->description, engine->on_first);
    engine->jobs = calloc(engine->depth, sizeof(*engine->jobs));
    if (!engine->jobs) {
        failover_destroy(engine);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the engine's queue");
    }
    *out = engine;
    return OCT_OK;
}

/* The description changes at most once, from the first engine's to the second one's. */
static const char *failover_describe(const struct oct_engine *engine)
{
    return atomic_load(&engine->description);
}

static const char *failover_running(const struct oct_engine *engine)
{
    return atomic_load(&engine->description) == engine->on_first ? engine->of.first->name
                                                                 : engine->of.then->name;
}

static int failover_gpu(const struct oct_engine *engine)
{
    return atomic_load(&engine->description) == engine->on_first ? engine->gpu : -1;
}

static unsigned failover_depth(const struct oct_engine *engine)
{
    return engine->depth;
}

static unsigned failover_max_batch(const struct oct_engine *engine)
{
    return engine->max_batch;
}

static enum oct_err create_cuda_then_cpu(struct oct_engine **engine, const struct oct_plan *plan,
                                         const struct oct_engine_options *options,
                                         struct oct_error *err)
{
    static const struct oct_failover of = {&oct_engine_cuda, &oct_engine_cpu, "GPU", "CPU"};
    return oct_failover_create(engine, &of, plan, options, err);
}

const struct oct_engine_ops oct_engine_failover = {
    .name = "cuda",
    .create = create_cuda_then_cpu,
    .describe = failover_describe,
    .running = failover_running,
    .gpu = failover_gpu,
    .depth = failover_depth,
    .max_batch = failover_max_batch,
    .submit = failover_submit,
    .collect = failover_collect,
    .destroy = failover_destroy,
    .memory = &oct_cuda_memory,
};
