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
 * A CUDA call may block for ever when a device hangs, so only the engine's own threads make any:
 * one that looks for devices, then the lanes'. Collect, submit, create and destroy wait for them
 * with a deadline. A lane that shows no progress for the deadline is given up like one that reports
 * an error: the engine is dead, what was in flight is collected as lost. Threads that never come
 * back keep the engine's memory, which has all that they may still read; nothing else waits for
 * them. The deadline counts looks, not the clock: a machine that stood still is no device that
 * hangs. */
#include "kernels/cuda_choice.h"
#include "kernels/cuda_device.h"
#include "kernels/percentile.h"
#include "pipeline/clock.h"
#include "pipeline/log.h"

#include <pthread.h>
#include <stdatomic.h>
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
#define TICK_US 50000u             /* collect looks at the lanes' clocks */
#define LONGEST_LOOK_NS 200000000u /* more than that between two looks was the machine's doing */

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
    unsigned gpu;                 /* index into choice.devices */
    struct oct_cuda_lane *device; /* its thread's own */
    bool busy;                    /* not idle, and not waiting for another lane */
    uint64_t silent_ns;           /* without progress while busy, as collect has looked */
    bool ready;
};

struct oct_engine {
    struct oct_cuda_choice choice;
    unsigned n_lanes, n_started, n_streams, max_batch, depth;
    uint64_t deadline_us;
    char description[256];
    struct oct_plan *plan; /* a copy of its own */
    char gpus[256], cuda[16];

    pthread_mutex_t lock;
    pthread_cond_t work, finished;
    bool chosen, stopping, dead, abandoned;
    unsigned n_threads;             /* that have not ended */
    uint64_t looked_ns;             /* at the lanes' clocks */
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
        oct_log(OCT_LOG_ERROR, "CUDA engine given up: %s; no B-scan was in flight", why->text);
    else
        oct_log(OCT_LOG_ERROR,
                "CUDA engine given up: %s; it had not finished %u B-scan%s: %llu to %llu",
                why->text, n_lost, n_lost == 1 ? "" : "s", (unsigned long long)first_lost,
                (unsigned long long)last_lost);
    pthread_cond_broadcast(&engine->work);
    pthread_cond_broadcast(&engine->finished);
}

/* Nanoseconds since the last look, and looks. */
static uint64_t since_look(uint64_t *looked_ns)
{
    uint64_t now = oct_clock_ns(), passed_ns = now - *looked_ns;
    *looked_ns = now;
    return passed_ns < LONGEST_LOOK_NS ? passed_ns : LONGEST_LOOK_NS;
}

static void set_busy(struct lane *lane, bool busy)
{
    lane->busy = busy;
    lane->silent_ns = 0;
}

static void look_at_clocks(struct oct_engine *engine)
{
    uint64_t passed_ns = since_look(&engine->looked_ns);
    for (unsigned i = 0; i < engine->n_started; i++) {
        struct lane *lane = &engine->lanes[i];
        lane->silent_ns = lane->busy ? lane->silent_ns + passed_ns : 0;
        if (lane->silent_ns <= engine->deadline_us * 1000)
            continue;
        struct oct_error why;
        oct_fail(&why, OCT_E_BACKEND, "GPU %u has not answered for %.1f s",
                 engine->choice.devices[lane->gpu], (double)lane->silent_ns * 1e-9);
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
    set_busy(lane, true);
    bool go_on = !engine->dead;
    pthread_mutex_unlock(&engine->lock);
    return go_on;
}

/* Polls, because the driver's own waits have no deadline. */
static enum oct_err wait_for_device(struct lane *lane, struct oct_error *err)
{
    uint64_t looked_ns = oct_clock_ns(), waited_ns = 0;
    for (;;) {
        enum oct_err e = oct_cuda_lane_poll(lane->device, err);
        if (e != OCT_E_AGAIN)
            return e;
        waited_ns += since_look(&looked_ns);
        const uint64_t waited_us = waited_ns / 1000;
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
    set_busy(lane, false); /* the lanes before it have clocks of their own */
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
    set_busy(lane, true);
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
    set_busy(lane, false);
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
        set_busy(lane, true);
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
    oct_plan_destroy(engine->plan);
    free(engine->jobs);
    free(engine->submissions);
    free(engine);
}

/* The last act of a thread; of the last one, when destroy has gone without it. */
static void end_thread(struct oct_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    bool is_last = --engine->n_threads == 0 && engine->abandoned;
    pthread_cond_broadcast(&engine->finished);
    pthread_mutex_unlock(&engine->lock);
    if (is_last)
        engine_free(engine);
}

/* The engine cannot start. */
static void refuse(struct oct_engine *engine, const struct oct_error *why)
{
    pthread_mutex_lock(&engine->lock);
    if (!engine->dead) {
        engine->dead = true;
        engine->why = *why;
    }
    pthread_cond_broadcast(&engine->finished);
    pthread_mutex_unlock(&engine->lock);
}

static void *run_lane(void *argument)
{
    struct lane *lane = argument;
    struct oct_engine *engine = lane->engine;
    struct oct_error err;

    prctl(PR_SET_NAME, "octd-cuda");
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul); /* naps of 15 us, not of 65 */
    enum oct_err e =
        oct_cuda_lane_create(&lane->device, engine->choice.devices[lane->gpu], engine->plan,
                             engine->choice.kernels, engine->max_batch, &err);
    if (e) {
        refuse(engine, &err);
    } else {
        pthread_mutex_lock(&engine->lock);
        lane->ready = true;
        pthread_cond_broadcast(&engine->finished);
        pthread_mutex_unlock(&engine->lock);
        serve(lane);
    }
    oct_cuda_lane_destroy(lane->device);
    end_thread(engine);
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

static atomic_bool left_hanging; /* of the process, as the driver's exit handlers are */

bool oct_engine_left_hanging(void)
{
    return atomic_load(&left_hanging);
}

/* Waits for the threads to end; false: one hangs. Lock held. */
static bool wait_for_threads(struct oct_engine *engine)
{
    struct timespec until = oct_clock_deadline(engine->deadline_us + engine->deadline_us / 2);
    while (engine->n_threads > 0)
        if (pthread_cond_timedwait(&engine->finished, &engine->lock, &until))
            return engine->n_threads == 0;
    return true;
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
    pthread_mutex_unlock(&engine->lock);
    if (all_ended) {
        engine_free(engine);
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
    struct timespec until = oct_clock_deadline(START_US);
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
    while (!*reached && !engine->dead)
        if (pthread_cond_timedwait(&engine->finished, &engine->lock, &until))
            return oct_fail(err, OCT_E_BACKEND, "%s did not answer within %u s", what,
                            START_US / 1000000);
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
        struct lane *lane = &engine->lanes[i];
        char gpu[32];
        lane->engine = engine;
        lane->gpu = i % engine->choice.n_gpus;
        snprintf(gpu, sizeof(gpu), "GPU %u", engine->choice.devices[lane->gpu]);
        e = start_thread(engine, run_lane, lane, &lane->ready, gpu, err);
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
        refuse(engine, &err);
    } else {
        pthread_mutex_lock(&engine->lock);
        engine->chosen = true;
        pthread_cond_broadcast(&engine->finished);
        pthread_mutex_unlock(&engine->lock);
    }
    end_thread(engine);
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
    size_t bytes = sizeof(struct oct_engine) + OCT_CUDA_MAX_GPUS * n_streams * sizeof(struct lane);
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
