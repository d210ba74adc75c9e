/* The CUDA engine: lanes that take submissions in turn, each lane a thread with its own stream,
 * buffers and FFT plans on a device (kernels/device/cuda_device.h).
 *
 *     submit -> queue -> lane: upload, kernels, [limits in job order, pixels], download -> collect
 *
 * Upload, kernels and download of different lanes overlap; a lane works at one submission at a
 * time, so its buffers have one user. Several GPUs get submissions in turn. Percentile limits are
 * found on the device and smoothed here, on the host, in job order: that serves one GPU and several
 * alike.
 *
 * A CUDA call may block for ever when a device hangs, so here only the engine's own threads make
 * any: one that looks for devices, then the lanes' (the rings' memory is asked for by its owner).
 * Collect, submit, create and destroy wait for them with a deadline. A lane that shows no progress
 * for the deadline is given up like one that reports an error: the engine is dead, what was in
 * flight is collected as lost. Threads that never come back keep the engine's memory, its plan with
 * it; nothing else waits for them. Until they do they touch nothing of the jobs' but spectra and
 * pixels, and the memory these lie in is not given back (struct oct_memory_ops). All deadlines but
 * collect's count looks at which nothing moved, not the clock: a machine that stands still or is
 * slow is no device that hangs. */
#include "kernels/recon/engine_cuda_lanes.h"
#include "kernels/recon/tables.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_STREAMS 6u      /* upload, kernels, download, and as many in the host's hands */
#define DEFAULT_BATCH 16u       /* B-scans */
#define BATCH_BYTES (16u << 20) /* of spectra: more per batch gains nothing and costs latency */
#define MAX_STREAMS 16u
#define DEADLINE_MS 2000u  /* no progress for so long: the device hangs */
#define START_US 60000000u /* contexts of many GPUs, code made for a new one */
#define TICK_US 50000u     /* between looks at the lanes' clocks */

/* ---- the contract's functions ---- */

static enum oct_err cuda_submit(struct oct_engine *engine, const struct oct_engine_job *jobs,
                                unsigned n)
{
    enum oct_err e = OCT_OK;
    pthread_mutex_lock(&engine->lock);
    if (engine->dead) {
        e = OCT_E_BACKEND;
    } else if (engine->n_jobs + n > engine->depth) {
        e = OCT_E_AGAIN;
    } else {
        struct oct_lane_submission *sub = oct_lanes_submission(engine, engine->last);
        sub->n = n;
        sub->n_collected = 0;
        sub->gpu = (unsigned)(engine->last % engine->choice.n_gpus);
        sub->progress = WAITING;
        sub->limits_known = true;
        for (unsigned k = 0; k < n; k++) {
            sub->jobs[k] = jobs[k];
            if (jobs[k].display.range == OCT_RANGE_PERCENTILE)
                sub->limits_known = false;
        }
        engine->last++;
        engine->n_jobs += n;
        pthread_cond_broadcast(&engine->work);
    }
    pthread_mutex_unlock(&engine->lock);
    return e;
}

static bool is_done(struct oct_engine *engine)
{
    return engine->first != engine->last &&
           oct_lanes_submission(engine, engine->first)->progress == FINISHED;
}

static enum oct_err cuda_collect(struct oct_engine *engine, uint64_t timeout_us,
                                 struct oct_image_frame **done)
{
    uint64_t begin = oct_clock_ns();
    enum oct_err e = OCT_OK;

    pthread_mutex_lock(&engine->lock);
    while (!is_done(engine)) {
        uint64_t waited_us = (oct_clock_ns() - begin) / 1000;
        if (waited_us >= timeout_us) {
            e = OCT_E_AGAIN;
            break;
        }
        uint64_t left_us = timeout_us - waited_us;
        struct timespec until = oct_clock_deadline(left_us < TICK_US ? left_us : TICK_US);
        pthread_cond_timedwait(&engine->finished, &engine->lock, &until);
        oct_lanes_look(engine);
    }
    if (!e) {
        struct oct_lane_submission *sub = oct_lanes_submission(engine, engine->first);
        *done = sub->jobs[sub->n_collected++].out;
        engine->n_jobs--;
        if (sub->n_collected == sub->n) {
            engine->first++;
            pthread_cond_broadcast(&engine->work);
        }
    }
    pthread_mutex_unlock(&engine->lock);
    return e;
}

static atomic_bool left_hanging; /* of the process, as the driver's exit handlers are */

bool oct_engine_left_hanging(void)
{
    return atomic_load(&left_hanging);
}

/* Until something finishes, or for a tick. Lock held, released meanwhile. */
static void wait_a_tick(struct oct_engine *engine)
{
    struct timespec until = oct_clock_deadline(TICK_US);
    pthread_cond_timedwait(&engine->finished, &engine->lock, &until);
}

/* Waits for the threads to end; false: one hangs. Lock held. */
static bool wait_for_threads(struct oct_engine *engine)
{
    struct oct_lanes_patience patience = oct_lanes_begin_patience(engine);
    const uint64_t limit_us = engine->deadline_us + engine->deadline_us / 2;
    while (engine->n_threads > 0 && !oct_lanes_lose_patience(&patience, engine, limit_us))
        wait_a_tick(engine);
    return engine->n_threads == 0;
}

static void cuda_destroy(struct oct_engine *engine)
{
    if (!engine)
        return;
    pthread_mutex_lock(&engine->lock);
    engine->stopping = true;
    pthread_cond_broadcast(&engine->work);
    bool all_ended = wait_for_threads(engine);
    engine->abandoned = !all_ended;
    if (!all_ended)
        oct_lanes_leave(engine);
    pthread_mutex_unlock(&engine->lock);
    if (all_ended) {
        oct_lanes_free(engine);
    } else {
        atomic_store(&left_hanging, true);
        oct_log(OCT_LOG_WARNING, "CUDA engine: the device does not let go; its memory is left");
    }
}

/* ---- creation ---- */

static unsigned choose_batch(const struct oct_plan *plan, unsigned wanted)
{
    if (wanted)
        return wanted < OCT_CUDA_MAX_BATCH ? wanted : OCT_CUDA_MAX_BATCH;
    size_t fits = BATCH_BYTES / oct_geometry_spectra_bytes(&plan->geometry);
    return fits < 1 ? 1 : fits < DEFAULT_BATCH ? (unsigned)fits : DEFAULT_BATCH;
}

static enum oct_err alloc_submissions(struct oct_engine *engine, struct oct_error *err)
{
    if (engine->depth == 0 || engine->max_batch == 0)
        return oct_fail(err, OCT_E_ARG, "CUDA engine: no streams");
    engine->submissions = calloc(engine->depth, sizeof(*engine->submissions));
    engine->jobs = calloc((size_t)engine->depth * engine->max_batch, sizeof(*engine->jobs));
    if (!engine->submissions || !engine->jobs)
        return oct_fail(err, OCT_E_NO_MEMORY, "CUDA engine: out of memory");
    for (unsigned i = 0; i < engine->depth; i++)
        engine->submissions[i].jobs = engine->jobs + (size_t)i * engine->max_batch;
    return OCT_OK;
}

/* Starts a detached thread and waits until it has set *reached. Lock held. */
static enum oct_err start_thread(struct oct_engine *engine, void *(*run)(void *), void *argument,
                                 const bool *reached, const char *what, struct oct_error *err)
{
    pthread_attr_t detached;
    pthread_t thread;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    engine->n_threads++;
    int status = pthread_create(&thread, &detached, run, argument);
    pthread_attr_destroy(&detached);
    if (status) {
        engine->n_threads--;
        return oct_fail_errno(err, OCT_E_IO, status, "CUDA engine: a thread");
    }
    struct oct_lanes_patience patience = oct_lanes_begin_patience(engine);
    while (!*reached && !engine->dead) {
        if (oct_lanes_lose_patience(&patience, engine, START_US))
            return oct_fail(err, OCT_E_BACKEND, "%s did not answer within %u s", what,
                            START_US / 1000000);
        wait_a_tick(engine);
    }
    if (!engine->dead)
        return OCT_OK;
    if (err)
        *err = engine->why;
    return engine->why.code;
}

/* One after the other, so that the first fault is the one that is told. Lock held. */
static enum oct_err start_lanes(struct oct_engine *engine, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < engine->n_lanes && !e; i++) {
        struct oct_lane *lane = &engine->lanes[i];
        char gpu[32];
        lane->engine = engine;
        lane->gpu = i % engine->choice.n_gpus;
        snprintf(gpu, sizeof(gpu), "GPU %u", engine->choice.devices[lane->gpu]);
        e = start_thread(engine, oct_lanes_run, lane, &lane->ready, gpu, err);
        engine->n_started += e == OCT_OK;
    }
    return e;
}

static void init_locks(struct oct_engine *engine)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&engine->lock, NULL);
    pthread_cond_init(&engine->work, NULL);
    pthread_cond_init(&engine->finished, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static enum oct_err choose(struct oct_engine *engine, struct oct_error *err)
{
    const struct oct_engine_options options = {.gpus = engine->gpus, .cuda = engine->cuda};
    enum oct_err e = oct_cuda_choose(&engine->choice, engine->plan, &options, err);
    if (!e)
        e = oct_cuda_describe(&engine->choice, engine->n_streams, engine->max_batch,
                              engine->description, sizeof(engine->description), err);
    for (unsigned i = 0; i < engine->choice.n_gpus && !e; i++)
        e = oct_cuda_check_memory(engine->choice.devices[i], engine->plan, engine->choice.kernels,
                                  engine->max_batch, engine->n_streams, err);
    return e;
}

static void *run_choice(void *argument)
{
    struct oct_engine *engine = argument;
    struct oct_error err;
    if (choose(engine, &err)) {
        oct_lanes_refuse(engine, &err);
    } else {
        pthread_mutex_lock(&engine->lock);
        engine->chosen = true;
        pthread_cond_broadcast(&engine->finished);
        pthread_mutex_unlock(&engine->lock);
    }
    oct_lanes_end_thread(engine);
    return NULL;
}

static enum oct_err start(struct oct_engine *engine, struct oct_error *err)
{
    pthread_mutex_lock(&engine->lock);
    enum oct_err e =
        start_thread(engine, run_choice, engine, &engine->chosen, "the CUDA driver", err);
    if (!e) {
        engine->n_lanes = engine->choice.n_gpus * engine->n_streams;
        engine->depth = engine->n_lanes * engine->max_batch;
        e = alloc_submissions(engine, err);
    }
    if (!e)
        e = start_lanes(engine, err);
    pthread_mutex_unlock(&engine->lock);
    return e;
}

/* Threads that start late must not read what is the caller's. */
static enum oct_err copy_input(struct oct_engine *engine, const struct oct_plan *plan,
                               const struct oct_engine_options *options, struct oct_error *err)
{
    if (options->gpus && strlen(options->gpus) >= sizeof(engine->gpus))
        return oct_fail(err, OCT_E_CONFIG, "pipeline.gpus is too long");
    snprintf(engine->gpus, sizeof(engine->gpus), "%s", options->gpus ? options->gpus : "");
    snprintf(engine->cuda, sizeof(engine->cuda), "%s", options->cuda ? options->cuda : "auto");
    return oct_plan_create(&engine->plan, &plan->geometry, &plan->calibration, plan->dc,
                           plan->interpolation, err);
}

static enum oct_err cuda_create(struct oct_engine **out, const struct oct_plan *plan,
                                const struct oct_engine_options *options, struct oct_error *err)
{
    *out = NULL;
    if (!oct_cuda_built_with())
        return oct_fail(err, OCT_E_CONFIG,
                        "this build has no CUDA engine; use another backend or build with nvcc");
    enum oct_err e = oct_cuda_check_options(options, err);
    if (e)
        return e;
    unsigned n_streams = options->n_streams ? options->n_streams : DEFAULT_STREAMS;
    if (n_streams > MAX_STREAMS)
        n_streams = MAX_STREAMS;
    size_t bytes =
        sizeof(struct oct_engine) + OCT_CUDA_MAX_GPUS * n_streams * sizeof(struct oct_lane);
    struct oct_engine *engine = calloc(1, bytes);
    if (!engine)
        return oct_fail(err, OCT_E_NO_MEMORY, "CUDA engine: out of memory");
    engine->n_streams = n_streams;
    engine->looked_ns = oct_clock_ns();
    engine->deadline_us = (options->deadline_ms ? options->deadline_ms : DEADLINE_MS) * 1000ull;
    engine->max_batch = choose_batch(plan, options->max_batch);
    init_locks(engine);
    e = copy_input(engine, plan, options, err);
    if (!e)
        e = start(engine, err);
    if (e) {
        cuda_destroy(engine);
        return e;
    }
    *out = engine;
    return OCT_OK;
}

static const char *cuda_describe(const struct oct_engine *engine)
{
    return engine->description;
}

static unsigned cuda_depth(const struct oct_engine *engine)
{
    return engine->depth;
}

static unsigned cuda_max_batch(const struct oct_engine *engine)
{
    return engine->max_batch;
}

const struct oct_engine_ops oct_engine_cuda = {
    .name = "cuda",
    .create = cuda_create,
    .describe = cuda_describe,
    .depth = cuda_depth,
    .max_batch = cuda_max_batch,
    .submit = cuda_submit,
    .collect = cuda_collect,
    .destroy = cuda_destroy,
    .memory = &oct_cuda_memory,
};
