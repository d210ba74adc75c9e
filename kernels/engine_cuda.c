/* The CUDA engine: lanes that take submissions in turn, each lane a thread with its own stream,
 * buffers and FFT plans on a device (kernels/cuda_device.h).
 *
 *     submit -> queue -> lane: upload, kernels, [limits in job order, pixels], download -> collect
 *
 * Upload, kernels and download of different lanes overlap; a lane works at one submission at a
 * time, so its buffers have one user. Several GPUs get submissions in turn. Percentile limits are
 * found on the device and smoothed here, on the host, in job order: that serves one GPU and several
 * alike.
 *
 * A CUDA call may block for ever when a device hangs, so only the lanes' own threads make any;
 * collect, submit and destroy wait for them with a deadline. A lane that shows no progress for
 * the deadline is given up like one that reports an error: the engine is dead, what was in flight
 * is collected as lost. Threads that never come back keep the engine's memory; nothing else waits
 * for them. */
#define _GNU_SOURCE /* pthread_setname_np, prctl */
#include "kernels/cuda_choice.h"
#include "kernels/cuda_device.h"
#include "kernels/percentile.h"
#include "pipeline/clock.h"
#include "pipeline/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define DEFAULT_STREAMS 6u      /* upload, kernels, download, and as many in the host's hands */
#define DEFAULT_BATCH 16u       /* B-scans */
#define BATCH_BYTES (16u << 20) /* of spectra: more per batch gains nothing and costs latency */
#define MAX_STREAMS 16u
#define DEADLINE_MS 2000u  /* no progress for so long: the device hangs */
#define START_US 60000000u /* contexts of many GPUs, code made for a new one */
#define SPIN_US 30u        /* a lane looks this long before it sleeps between looks */
#define NAP_US 15u
#define LONGEST_NAP_US 1000u
#define TICK_US 50000u /* collect looks at the lanes' clocks */

enum progress { WAITING, AT_WORK, FINISHED };

struct submission {
    struct oct_engine_job *jobs; /* [max_batch] */
    unsigned n, n_collected;
    unsigned gpu;
    enum progress progress;
    bool limits_known; /* nobody's smoothing waits for it any more */
};

struct lane {
    struct oct_engine *engine;
    unsigned gpu; /* index into choice.devices */
    pthread_t thread;
    struct oct_cuda_lane *device; /* the thread's own */
    uint64_t busy_since_ns;       /* 0: idle, or waiting for another lane */
    bool ready, ended;
};

struct oct_engine {
    struct oct_cuda_choice choice;
    unsigned n_lanes, n_started, max_batch, depth;
    uint64_t deadline_us;
    char description[256];
    const struct oct_plan *plan; /* while lanes start */

    pthread_mutex_t lock;
    pthread_cond_t work, finished;
    bool stopping, dead, abandoned;
    struct oct_error why;           /* of dead */
    struct submission *submissions; /* [depth] */
    struct oct_engine_job *jobs;    /* [depth][max_batch] */
    uint64_t first, last;           /* submissions in flight, at % depth */
    unsigned n_jobs;                /* in flight */
    struct oct_smoothed_range smoothed;
    struct lane lanes[];
};

/* ---- faults; all with the lock held ---- */

static struct submission *submission_at(struct oct_engine *engine, uint64_t number)
{
    return &engine->submissions[number % engine->depth];
}

/* The engine ends here: everything that is not done is lost. A hanging device may still write into
 * the pictures of lost jobs; they are marked so that nobody reads them. */
static void give_up(struct oct_engine *engine, const struct oct_error *why)
{
    unsigned n_lost = 0;
    uint64_t first_lost = 0, last_lost = 0;

    if (engine->dead)
        return;
    engine->dead = true;
    engine->why = *why;
    for (uint64_t s = engine->first; s < engine->last; s++) {
        struct submission *sub = submission_at(engine, s);
        if (sub->progress == FINISHED)
            continue;
        for (unsigned k = 0; k < sub->n; k++) {
            struct oct_image_frame *out = sub->jobs[k].out;
            out->status = OCT_E_BACKEND;
            last_lost = out->info.number;
            first_lost = n_lost++ == 0 ? last_lost : first_lost;
        }
        sub->progress = FINISHED;
    }
    if (n_lost == 0)
        oct_log(OCT_LOG_ERROR, "CUDA engine given up: %s; no B-scan was lost", why->text);
    else
        oct_log(OCT_LOG_ERROR, "CUDA engine given up: %s; %u B-scan%s lost: %llu to %llu",
                why->text, n_lost, n_lost == 1 ? "" : "s", (unsigned long long)first_lost,
                (unsigned long long)last_lost);
    pthread_cond_broadcast(&engine->work);
    pthread_cond_broadcast(&engine->finished);
}

static void look_at_clocks(struct oct_engine *engine)
{
    uint64_t now = oct_clock_ns();
    for (unsigned i = 0; i < engine->n_started; i++) {
        const struct lane *lane = &engine->lanes[i];
        if (!lane->busy_since_ns || now < lane->busy_since_ns ||
            now - lane->busy_since_ns <= engine->deadline_us * 1000)
            continue;
        struct oct_error why;
        oct_fail(&why, OCT_E_BACKEND, "GPU %u has not answered for %.1f s",
                 engine->choice.devices[lane->gpu], (double)(now - lane->busy_since_ns) * 1e-9);
        give_up(engine, &why);
        return;
    }
}

/* ---- a lane ---- */

/* The oldest submission for the lane's GPU that nobody works at. Lock held. */
static struct submission *take(struct lane *lane, uint64_t *number)
{
    struct oct_engine *engine = lane->engine;
    for (uint64_t s = engine->first; s < engine->last; s++) {
        struct submission *sub = submission_at(engine, s);
        if (sub->progress == WAITING && sub->gpu == lane->gpu) {
            *number = s;
            return sub;
        }
    }
    return NULL;
}

/* Whether the engine still wants this lane to go on; starts its clock again. */
static bool show_progress(struct lane *lane)
{
    struct oct_engine *engine = lane->engine;
    pthread_mutex_lock(&engine->lock);
    lane->busy_since_ns = oct_clock_ns();
    bool go_on = !engine->dead;
    pthread_mutex_unlock(&engine->lock);
    return go_on;
}

/* Polls, because the driver's own waits have no deadline. */
static enum oct_err wait_for_device(struct lane *lane, struct oct_error *err)
{
    uint64_t begin = oct_clock_ns();
    for (;;) {
        enum oct_err e = oct_cuda_lane_poll(lane->device, err);
        if (e != OCT_E_AGAIN)
            return e;
        uint64_t waited_us = (oct_clock_ns() - begin) / 1000;
        if (waited_us > lane->engine->deadline_us)
            return oct_fail(err, OCT_E_BACKEND, "GPU %u has not finished a batch in %.1f s",
                            lane->engine->choice.devices[lane->gpu], (double)waited_us * 1e-6);
        if (waited_us < SPIN_US)
            continue;
        /* An eighth late at most, and little to do for a core while a large batch runs. */
        uint64_t nap_us = waited_us / 8 < NAP_US ? NAP_US : waited_us / 8;
        nap_us = nap_us > LONGEST_NAP_US ? LONGEST_NAP_US : nap_us;
        nanosleep(&(struct timespec){.tv_nsec = (long)nap_us * 1000}, NULL);
    }
}

/* Waits until every earlier submission knows its limits, then smooths this one's. */
static bool smooth_in_turn(struct lane *lane, uint64_t number, struct submission *sub, double *lo,
                           double *hi)
{
    struct oct_engine *engine = lane->engine;
    pthread_mutex_lock(&engine->lock);
    lane->busy_since_ns = 0; /* the lanes before it have clocks of their own */
    for (uint64_t s = engine->first; s < number && !engine->dead; s++)
        while (!engine->dead && s >= engine->first && !submission_at(engine, s)->limits_known)
            pthread_cond_wait(&engine->work, &engine->lock);
    bool go_on = !engine->dead;
    for (unsigned k = 0; go_on && k < sub->n; k++) {
        const struct oct_engine_job *job = &sub->jobs[k];
        oct_cuda_lane_limits(lane->device, k, &lo[k], &hi[k]);
        if (job->display.range == OCT_RANGE_PERCENTILE)
            oct_smoothed_range_update(&engine->smoothed, job->out->info.acquisition,
                                      job->out->info.volume, job->display.smoothing_bscans, &lo[k],
                                      &hi[k]);
    }
    sub->limits_known = true;
    lane->busy_since_ns = oct_clock_ns();
    pthread_cond_broadcast(&engine->work);
    pthread_mutex_unlock(&engine->lock);
    return go_on;
}

static enum oct_err process(struct lane *lane, uint64_t number, struct submission *sub, double *lo,
                            double *hi, struct oct_error *err)
{
    bool needs_end;
    enum oct_err e = oct_cuda_lane_begin(lane->device, sub->jobs, sub->n, &needs_end, err);
    if (!e)
        e = wait_for_device(lane, err);
    if (e || !needs_end) {
        for (unsigned k = 0; !e && k < sub->n; k++)
            oct_cuda_lane_limits(lane->device, k, &lo[k], &hi[k]);
        return e;
    }
    if (!smooth_in_turn(lane, number, sub, lo, hi))
        return oct_fail(err, OCT_E_BACKEND, "the engine was given up meanwhile");
    e = oct_cuda_lane_end(lane->device, lo, hi, err);
    return e || !show_progress(lane) ? e : wait_for_device(lane, err);
}

static void finish(struct lane *lane, struct submission *sub, enum oct_err e, const double *lo,
                   const double *hi, const struct oct_error *err)
{
    struct oct_engine *engine = lane->engine;
    pthread_mutex_lock(&engine->lock);
    lane->busy_since_ns = 0;
    if (engine->dead) /* the jobs were handed back; the slots are not ours any more */
        goto out;
    if (e) {
        give_up(engine, err);
        goto out;
    }
    for (unsigned k = 0; k < sub->n; k++) {
        struct oct_image_frame *out = sub->jobs[k].out;
        out->lo = lo[k];
        out->hi = hi[k];
        out->status = OCT_OK;
    }
    sub->progress = FINISHED;
    if (sub == submission_at(engine, engine->first))
        pthread_cond_broadcast(&engine->finished);
out:
    pthread_mutex_unlock(&engine->lock);
}

static void serve(struct lane *lane)
{
    struct oct_engine *engine = lane->engine;
    double lo[OCT_CUDA_MAX_BATCH] = {0}, hi[OCT_CUDA_MAX_BATCH] = {0};
    struct oct_error err;

    pthread_mutex_lock(&engine->lock);
    while (!engine->stopping && !engine->dead) {
        uint64_t number;
        struct submission *sub = take(lane, &number);
        if (!sub) {
            pthread_cond_wait(&engine->work, &engine->lock);
            continue;
        }
        sub->progress = AT_WORK;
        lane->busy_since_ns = oct_clock_ns();
        pthread_mutex_unlock(&engine->lock);
        enum oct_err e = process(lane, number, sub, lo, hi, &err);
        finish(lane, sub, e, lo, hi, &err);
        pthread_mutex_lock(&engine->lock);
    }
    pthread_mutex_unlock(&engine->lock);
}

static void engine_free(struct oct_engine *engine)
{
    pthread_cond_destroy(&engine->work);
    pthread_cond_destroy(&engine->finished);
    pthread_mutex_destroy(&engine->lock);
    free(engine->jobs);
    free(engine->submissions);
    free(engine);
}

static void *run_lane(void *argument)
{
    struct lane *lane = argument;
    struct oct_engine *engine = lane->engine;
    struct oct_error err;

    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul); /* naps of 15 us, not of 65 */
    enum oct_err e =
        oct_cuda_lane_create(&lane->device, engine->choice.devices[lane->gpu], engine->plan,
                             engine->choice.kernels, engine->max_batch, &err);
    pthread_mutex_lock(&engine->lock);
    if (e && !engine->dead) {
        engine->dead = true;
        engine->why = err;
    }
    lane->ready = e == OCT_OK;
    pthread_cond_broadcast(&engine->finished);
    pthread_mutex_unlock(&engine->lock);
    if (!e)
        serve(lane);
    oct_cuda_lane_destroy(lane->device);

    pthread_mutex_lock(&engine->lock);
    lane->ended = true;
    bool is_last = engine->abandoned;
    for (unsigned i = 0; i < engine->n_started; i++)
        is_last = is_last && engine->lanes[i].ended;
    pthread_cond_broadcast(&engine->finished);
    pthread_mutex_unlock(&engine->lock);
    if (is_last)
        engine_free(engine); /* destroy has long returned */
    return NULL;
}

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
        struct submission *sub = submission_at(engine, engine->last);
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
           submission_at(engine, engine->first)->progress == FINISHED;
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
        look_at_clocks(engine);
    }
    if (!e) {
        struct submission *sub = submission_at(engine, engine->first);
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

/* Waits for the lanes to end; false: one hangs. Lock held. */
static bool wait_for_lanes(struct oct_engine *engine)
{
    struct timespec until = oct_clock_deadline(engine->deadline_us + engine->deadline_us / 2);
    for (unsigned i = 0; i < engine->n_started; i++)
        while (!engine->lanes[i].ended)
            if (pthread_cond_timedwait(&engine->finished, &engine->lock, &until))
                return false;
    return true;
}

static void cuda_destroy(struct oct_engine *engine)
{
    if (!engine)
        return;
    pthread_mutex_lock(&engine->lock);
    engine->stopping = true;
    pthread_cond_broadcast(&engine->work);
    bool all_ended = wait_for_lanes(engine);
    engine->abandoned = !all_ended;
    for (unsigned i = 0; i < engine->n_started; i++)
        if (!all_ended)
            pthread_detach(engine->lanes[i].thread);
    pthread_mutex_unlock(&engine->lock);
    if (!all_ended) {
        oct_log(OCT_LOG_WARNING, "CUDA engine: the device does not let go; its memory is left");
        return;
    }
    for (unsigned i = 0; i < engine->n_started; i++)
        pthread_join(engine->lanes[i].thread, NULL);
    engine_free(engine);
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

/* One after the other, so that the first fault is the one that is told. */
static enum oct_err start_lanes(struct oct_engine *engine, struct oct_error *err)
{
    struct timespec until = oct_clock_deadline(START_US);
    enum oct_err e = OCT_OK;

    pthread_mutex_lock(&engine->lock);
    for (unsigned i = 0; i < engine->n_lanes && !e; i++) {
        struct lane *lane = &engine->lanes[i];
        lane->engine = engine;
        lane->gpu = i % engine->choice.n_gpus;
        int status = pthread_create(&lane->thread, NULL, run_lane, lane);
        if (status) {
            e = oct_fail_errno(err, OCT_E_IO, status, "CUDA engine: thread %u", i);
            break;
        }
        pthread_setname_np(lane->thread, "octd-cuda");
        engine->n_started++;
        while (!lane->ready && !engine->dead && !e)
            if (pthread_cond_timedwait(&engine->finished, &engine->lock, &until))
                e = oct_fail(err, OCT_E_BACKEND, "GPU %u did not start within %u s",
                             engine->choice.devices[lane->gpu], START_US / 1000000);
        if (engine->dead) {
            e = engine->why.code;
            if (err)
                *err = engine->why;
        }
    }
    pthread_mutex_unlock(&engine->lock);
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

static enum oct_err prepare(struct oct_engine *engine, const struct oct_engine_options *options,
                            unsigned n_streams, struct oct_error *err)
{
    enum oct_err e = oct_cuda_choose(&engine->choice, engine->plan, options, err);
    if (!e)
        e = oct_cuda_describe(&engine->choice, n_streams, engine->max_batch, engine->description,
                              sizeof(engine->description), err);
    if (e)
        return e;
    engine->n_lanes = engine->choice.n_gpus * n_streams;
    engine->depth = engine->n_lanes * engine->max_batch;
    for (unsigned i = 0; i < engine->choice.n_gpus; i++)
        if ((e = oct_cuda_check_memory(engine->choice.devices[i], engine->plan,
                                       engine->choice.kernels, engine->max_batch, n_streams, err)))
            return e;
    if ((e = alloc_submissions(engine, err)))
        return e;
    return start_lanes(engine, err);
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
    size_t bytes = sizeof(struct oct_engine) + OCT_CUDA_MAX_GPUS * n_streams * sizeof(struct lane);
    struct oct_engine *engine = calloc(1, bytes);
    if (!engine)
        return oct_fail(err, OCT_E_NO_MEMORY, "CUDA engine: out of memory");
    engine->plan = plan;
    engine->deadline_us = (options->deadline_ms ? options->deadline_ms : DEADLINE_MS) * 1000ull;
    engine->max_batch = choose_batch(plan, options->max_batch);
    init_locks(engine);
    e = prepare(engine, options, n_streams, err);
    if (e) {
        cuda_destroy(engine);
        return e;
    }
    engine->plan = NULL; /* all that lanes need is on the devices */
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
