/* The CUDA engine: workers that take submissions in turn, each worker a thread with its own stream,
 * buffers and FFT plans on a device (cuda_recon.h).
 *
 *   submit -> queue -> worker: upload, kernels, [limits in job order], pixels, download -> collect
 *
 * Upload, kernels and download of different workers overlap; a worker has one submission at a
 * time, so its buffers have one user. Several GPUs get submissions in turn. Percentile limits are
 * found on the device and smoothed in job order: of one GPU there, so that a worker queues all of a
 * submission at once; of several on the host, between two halves.
 *
 * Only the engine's own threads make CUDA calls: one that looks for devices, then the workers' (the
 * rings' memory is asked for by its owner). Collect, submit, create and destroy wait for them with
 * a deadline (kernels/device/cuda_worker.h). When a worker is given up, as one that hangs or
 * reports an error, the engine is dead and what was in flight is collected as lost. Threads that
 * never come back keep the engine's memory, its plan with it. Until they do they touch nothing of
 * the jobs' but spectra and pixels, and the memory these lie in is not given back (struct
 * oct_memory_ops). */
#include "kernels/device/cuda_choice.h"
#include "kernels/device/cuda_memory.h"
#include "kernels/device/cuda_worker.h"
#include "kernels/recon/cuda_recon.h"
#include "kernels/recon/percentile.h"
#include "kernels/recon/tables.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which GPUs and which kernels the CUDA engine takes, by its options. */

static const char *const kernel_names[] = {[OCT_CUDA_FUSED] = "fused", [OCT_CUDA_PLAIN] = "plain"};

static bool find_kernels(const char *name, enum oct_cuda_kernels *kernels)
{
    for (int i = OCT_CUDA_FUSED; i <= OCT_CUDA_PLAIN; i++)
        if (strcmp(name, kernel_names[i]) == 0) {
            *kernels = (enum oct_cuda_kernels)i;
            return true;
        }
    return false;
}

/* What can be judged without a GPU: names and numbers. OCT_E_CONFIG names the option. */
static enum oct_err cuda_kernels_check(const struct oct_engine_options *options,
                                       struct oct_error *err)
{
    static const char *const simd[] = {"auto", "avx512", "avx2", "plain"};
    bool known = !options->simd;
    for (size_t i = 0; i < sizeof(simd) / sizeof(simd[0]); i++)
        known = known || strcmp(options->simd, simd[i]) == 0;
    if (!known)
        return oct_fail(err, OCT_E_CONFIG, "pipeline.simd is %s: use auto, avx512, avx2 or plain",
                        options->simd);
    const char *cuda = options->cuda;
    enum oct_cuda_kernels kernels;
    if (cuda && strcmp(cuda, "auto") && !find_kernels(cuda, &kernels))
        return oct_fail(err, OCT_E_CONFIG, "CUDA kernels '%s': use auto, fused or plain", cuda);
    return OCT_OK;
}

/* What is wanted of the devices, and the kernels that were found. */
struct wish {
    const struct oct_plan *plan;
    const char *wanted; /* NULL or "auto": whatever runs */
    enum oct_cuda_kernels kernels;
};

/* All of them run the same. */
static enum oct_err can_do(void *context, const struct oct_cuda_choice *choice,
                           struct oct_error *err)
{
    struct wish *wish = context;
    wish->kernels = OCT_CUDA_FUSED;
    bool automatic = !wish->wanted || !find_kernels(wish->wanted, &wish->kernels);
    for (unsigned i = 0; i < choice->n_gpus; i++) {
        enum oct_err e = oct_cuda_can_run(choice->devices[i], wish->plan, wish->kernels, err);
        if (!e)
            continue;
        if (!automatic || wish->kernels == OCT_CUDA_PLAIN)
            return e;
        wish->kernels = OCT_CUDA_PLAIN;
        i = (unsigned)-1; /* from the first again */
    }
    return OCT_OK;
}

/* *kernels: the same on all devices of the choice. OCT_E_BACKEND: no GPU answers, or none can run
 * the kernels. OCT_E_CONFIG: pipeline.gpus names what is not there. */
static enum oct_err cuda_kernels_choose(struct oct_cuda_choice *choice,
                                        enum oct_cuda_kernels *kernels, const struct oct_plan *plan,
                                        const struct oct_engine_options *options,
                                        struct oct_error *err)
{
    struct wish wish = {.plan = plan, .wanted = options->cuda};
    enum oct_err e = oct_cuda_choose(choice, options->gpus, can_do, &wish, err);
    *kernels = wish.kernels;
    return e;
}

/* "fused", "plain" */
static const char *cuda_kernels_name(enum oct_cuda_kernels kernels)
{
    return kernel_names[kernels];
}

#define DEFAULT_STREAMS 4u      /* upload, kernels, download, and one with the host */
#define DEFAULT_BATCH 24u       /* B-scans: copies of less cost the bus more */
#define BATCH_BYTES (16u << 20) /* of spectra: more per batch gains nothing and costs latency */
#define MAX_STREAMS 16u

enum progress { WAITING, AT_WORK, FINISHED };

struct submission {
    struct oct_engine_job *jobs; /* [max_batch] */
    unsigned n, n_collected;
    unsigned gpu;
    enum progress progress;
    bool limits_known; /* or queued: smoothing of no later submission waits for it */
};

struct worker {
    struct oct_cuda_worker base;
    struct oct_engine *engine;
    unsigned gpu;                  /* index into choice.devices */
    struct oct_cuda_recon *device; /* its thread's own; there under the lock for others */
    struct worker *next_idle;      /* who was idle before */
    pthread_cond_t wake;           /* it is no longer idle, or the engine is over */
    bool is_idle;
};

struct oct_engine {
    struct oct_cuda_choice choice;
    enum oct_cuda_kernels kernels;
    unsigned n_streams, max_batch, depth;
    bool has_complex;
    char description[256];
    struct oct_plan *plan; /* a copy of its own */
    char gpus[256], cuda[16];

    struct oct_cuda_crew crew;              /* its lock guards what follows */
    struct submission *submissions;         /* [depth] */
    struct oct_engine_job *jobs;            /* [depth][max_batch] */
    uint64_t first, last;                   /* submissions in flight, at % depth */
    unsigned n_jobs;                        /* in flight */
    struct oct_smoothed_range smoothed;     /* of several GPUs */
    struct oct_cuda_recon *smoother;        /* of one: who had percentiles last; NULL: nobody yet */
    struct oct_cuda_worker chooser;         /* looks for devices */
    struct worker *idle[OCT_CUDA_MAX_GPUS]; /* of each GPU, who had work last first */
    struct worker workers[];
};

/* The submission of that number. Lock held. */
static struct submission *submission_at(struct oct_engine *engine, uint64_t number)
{
    return &engine->submissions[number % engine->depth];
}

/* Whether for each GPU there is a submission that no worker has taken yet. Lock held. */
static bool each_gpu_has_more_to_do(struct oct_engine *engine)
{
    for (uint64_t i = 1; i <= engine->choice.n_gpus; i++)
        if (engine->first + i > engine->last ||
            submission_at(engine, engine->last - i)->progress != WAITING)
            return false;
    return true;
}

/* The submission that takes n more jobs: the newest if no GPU waits for it, as one batch of several
 * B-scans takes far less time than several batches; else a new one. Lock held. */
static struct submission *submission_for(struct oct_engine *engine, unsigned n)
{
    if (each_gpu_has_more_to_do(engine)) {
        struct submission *newest = submission_at(engine, engine->last - 1);
        if (newest->n + n <= engine->max_batch)
            return newest;
    }
    struct submission *sub = submission_at(engine, engine->last);
    sub->n = sub->n_collected = 0;
    sub->gpu = (unsigned)(engine->last % engine->choice.n_gpus);
    sub->progress = WAITING;
    sub->limits_known = true;
    engine->last++;
    return sub;
}

/* Wakes who had work last, if anybody is idle: its core and its caches are awake sooner than those
 * of others. Lock held. */
static void wake_worker(struct oct_engine *engine, unsigned gpu)
{
    struct worker *worker = engine->idle[gpu];
    if (!worker)
        return;
    engine->idle[gpu] = worker->next_idle;
    worker->is_idle = false;
    pthread_cond_signal(&worker->wake);
}

/* ---- the contract's functions ---- */

static enum oct_err cuda_submit(struct oct_engine *engine, const struct oct_engine_job *jobs,
                                unsigned n)
{
    enum oct_err e = OCT_OK;
    pthread_mutex_lock(&engine->crew.lock);
    if (engine->crew.dead) {
        e = OCT_E_BACKEND;
    } else if (engine->n_jobs + n > engine->depth) {
        e = OCT_E_AGAIN;
    } else {
        struct submission *sub = submission_for(engine, n);
        if (sub->n == 0) /* who takes it is awake else, or nobody was idle */
            wake_worker(engine, sub->gpu);
        for (unsigned k = 0; k < n; k++) {
            sub->jobs[sub->n++] = jobs[k];
            if (jobs[k].display.range == OCT_RANGE_PERCENTILE)
                sub->limits_known = false;
        }
        engine->n_jobs += n;
    }
    pthread_mutex_unlock(&engine->crew.lock);
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

    pthread_mutex_lock(&engine->crew.lock);
    while (!is_done(engine)) {
        uint64_t waited_us = (oct_clock_ns() - begin) / 1000;
        if (waited_us >= timeout_us) {
            e = OCT_E_AGAIN;
            break;
        }
        oct_cuda_crew_wait(&engine->crew, timeout_us - waited_us);
    }
    if (!e) {
        struct submission *sub = submission_at(engine, engine->first);
        *done = sub->jobs[sub->n_collected++].out;
        engine->n_jobs--;
        if (sub->n_collected == sub->n)
            engine->first++;
    }
    pthread_mutex_unlock(&engine->crew.lock);
    return e;
}

static void cuda_destroy(struct oct_engine *engine)
{
    if (engine)
        oct_cuda_crew_finish(&engine->crew);
}

/* ---- the end ---- */

/* Everything that is not done is lost. A hanging device may still write into the pictures of lost
 * jobs; they are marked so that nobody reads them. Lock held. */
static void lose(void *owner, const struct oct_error *why)
{
    struct oct_engine *engine = owner;
    unsigned n_lost = 0;
    uint64_t first_lost = 0, last_lost = 0;

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
}

static void wake_all(void *owner)
{
    struct oct_engine *engine = owner;
    for (unsigned i = 0; i < OCT_CUDA_MAX_GPUS * engine->n_streams; i++)
        pthread_cond_signal(&engine->workers[i].wake);
}

static void free_engine(void *owner)
{
    struct oct_engine *engine = owner;
    for (unsigned i = 0; i < OCT_CUDA_MAX_GPUS * engine->n_streams; i++)
        pthread_cond_destroy(&engine->workers[i].wake);
    oct_plan_destroy(engine->plan);
    free(engine->jobs);
    free(engine->submissions);
    free(engine);
}

static const struct oct_cuda_crew_ops crew_ops = {.name = "CUDA engine",
                                                  .uses_lent_memory = true,
                                                  .lose = lose,
                                                  .wake = wake_all,
                                                  .free = free_engine};

/* ---- a worker ---- */

/* The oldest submission for the worker's GPU that nobody works at. Lock held. */
static struct submission *take_submission(struct worker *worker, uint64_t *number)
{
    struct oct_engine *engine = worker->engine;
    for (uint64_t s = engine->first; s < engine->last; s++) {
        struct submission *sub = submission_at(engine, s);
        if (sub->progress == WAITING && sub->gpu == worker->gpu) {
            *number = s;
            return sub;
        }
    }
    return NULL;
}

/* Whether the engine still wants this worker to go on; starts its clock again. */
static bool show_progress(struct worker *worker)
{
    struct oct_cuda_crew *crew = &worker->engine->crew;
    pthread_mutex_lock(&crew->lock);
    oct_cuda_worker_set_busy(&worker->base, true);
    bool go_on = !crew->dead;
    pthread_mutex_unlock(&crew->lock);
    return go_on;
}

static enum oct_err poll_device(void *device, struct oct_error *err)
{
    return oct_cuda_recon_poll(device, err);
}

static enum oct_err wait_for_device(struct worker *worker, struct oct_error *err)
{
    return oct_cuda_worker_wait(&worker->base, poll_device, worker->device, "a batch", err);
}

/* The engine stops: nobody waits for what is in flight, because workers that come earlier in job
 * order may have ended. */
static bool is_over(const struct oct_engine *engine)
{
    return engine->crew.dead || engine->crew.stopping;
}

/* Waits until every earlier submission knows its limits. False: the engine is over. Lock held. */
static bool await_turn(struct worker *worker, uint64_t number)
{
    struct oct_engine *engine = worker->engine;
    /* Marks the worker as idle while it waits: the workers before it have clocks of their own. */
    oct_cuda_worker_set_busy(&worker->base, false);
    for (uint64_t s = engine->first; s < number && !is_over(engine); s++)
        while (!is_over(engine) && s >= engine->first && !submission_at(engine, s)->limits_known)
            pthread_cond_wait(&engine->crew.work, &engine->crew.lock);
    oct_cuda_worker_set_busy(&worker->base, true);
    return !is_over(engine);
}

static void end_turn(struct oct_engine *engine, struct submission *sub)
{
    sub->limits_known = true;
    pthread_cond_broadcast(&engine->crew.work);
}

/* Of several GPUs: smooths this submission's limits after all earlier ones. */
static bool smooth_in_turn(struct worker *worker, uint64_t number, struct submission *sub,
                           double *lo, double *hi)
{
    struct oct_engine *engine = worker->engine;
    pthread_mutex_lock(&engine->crew.lock);
    const bool go_on = await_turn(worker, number);
    for (unsigned k = 0; go_on && k < sub->n; k++) {
        const struct oct_engine_job *job = &sub->jobs[k];
        oct_cuda_recon_limits(worker->device, k, &lo[k], &hi[k]);
        if (job->display.range == OCT_RANGE_PERCENTILE)
            oct_smoothed_range_update(&engine->smoothed, &job->out->info, &job->display, &lo[k],
                                      &hi[k]);
    }
    end_turn(engine, sub);
    pthread_mutex_unlock(&engine->crew.lock);
    return go_on;
}

/* Of one GPU: queues it. Nobody waits for a device here, but it may hang in any call: the lock is
 * not held. */
static enum oct_err queue_in_turn(struct worker *worker, uint64_t number, struct submission *sub,
                                  struct oct_error *err)
{
    struct oct_engine *engine = worker->engine;
    pthread_mutex_lock(&engine->crew.lock);
    const bool go_on = await_turn(worker, number);
    struct oct_cuda_turn *before =
        go_on && engine->smoother ? oct_cuda_recon_hold_turn(engine->smoother) : NULL;
    pthread_mutex_unlock(&engine->crew.lock);
    if (!go_on)
        return oct_fail(err, OCT_E_BACKEND, "the engine was given up meanwhile");
    const enum oct_err e = oct_cuda_recon_smooth(worker->device, before, err);
    pthread_mutex_lock(&engine->crew.lock);
    engine->smoother = worker->device;
    end_turn(engine, sub);
    pthread_mutex_unlock(&engine->crew.lock);
    return e;
}

static enum oct_err process(struct worker *worker, uint64_t number, struct submission *sub,
                            double *lo, double *hi, struct oct_error *err)
{
    const bool is_one = worker->engine->choice.n_gpus == 1;
    bool has_percentiles;
    enum oct_err e = oct_cuda_recon_begin(worker->device, &has_percentiles, err);
    if (!e && has_percentiles)
        e = is_one ? queue_in_turn(worker, number, sub, err)
                   : oct_cuda_recon_look(worker->device, err);
    if (!e)
        e = wait_for_device(worker, err);
    if (e || !has_percentiles || is_one) {
        for (unsigned k = 0; !e && k < sub->n; k++)
            oct_cuda_recon_limits(worker->device, k, &lo[k], &hi[k]);
        return e;
    }
    if (!smooth_in_turn(worker, number, sub, lo, hi))
        return oct_fail(err, OCT_E_BACKEND, "the engine was given up meanwhile");
    e = oct_cuda_recon_end(worker->device, lo, hi, err);
    return e || !show_progress(worker) ? e : wait_for_device(worker, err);
}

static void finish_submission(struct worker *worker, struct submission *sub, enum oct_err e,
                              const double *lo, const double *hi, const struct oct_error *err)
{
    struct oct_engine *engine = worker->engine;
    pthread_mutex_lock(&engine->crew.lock);
    oct_cuda_worker_set_busy(&worker->base, false);
    if (engine->crew.dead) /* the jobs were collected; their slots belong to the rings again */
        goto out;
    if (engine->crew.stopping) /* nobody collects any more, and frames may be gone */
        goto out;
    if (e) {
        oct_cuda_crew_give_up(&engine->crew, err);
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
        pthread_cond_broadcast(&engine->crew.changed);
out:
    pthread_mutex_unlock(&engine->crew.lock);
}

/* Lock held. */
static void await_work(struct worker *worker)
{
    struct oct_engine *engine = worker->engine;
    worker->next_idle = engine->idle[worker->gpu];
    engine->idle[worker->gpu] = worker;
    worker->is_idle = true;
    while (worker->is_idle && !is_over(engine))
        pthread_cond_wait(&worker->wake, &engine->crew.lock);
}

static void serve(struct worker *worker)
{
    struct oct_engine *engine = worker->engine;
    double lo[OCT_CUDA_MAX_BATCH] = {0}, hi[OCT_CUDA_MAX_BATCH] = {0};
    struct oct_error err;

    pthread_mutex_lock(&engine->crew.lock);
    while (!is_over(engine)) {
        uint64_t number;
        struct submission *sub = take_submission(worker, &number);
        if (!sub) {
            await_work(worker);
            continue;
        }
        sub->progress = AT_WORK;
        oct_cuda_recon_take(worker->device, sub->jobs, sub->n); /* now: they are still ours */
        oct_cuda_worker_set_busy(&worker->base, true);
        pthread_mutex_unlock(&engine->crew.lock);
        enum oct_err e = process(worker, number, sub, lo, hi, &err);
        finish_submission(worker, sub, e, lo, hi, &err);
        pthread_mutex_lock(&engine->crew.lock);
    }
    pthread_mutex_unlock(&engine->crew.lock);
}

/* The first worker of a GPU is ready when its others start, unless the engine is over. */
static enum oct_err make_recon(struct worker *worker, struct oct_error *err)
{
    struct oct_engine *engine = worker->engine;
    struct worker *first = &engine->workers[worker->gpu];
    struct oct_cuda_recon *recon;
    enum oct_err e =
        oct_cuda_recon_create(&recon, worker->base.device, engine->plan, engine->kernels,
                              engine->max_batch, engine->has_complex, &worker->base.signs, err);
    if (!e && worker == first)
        e = oct_cuda_recon_open_uploads(recon, err);
    pthread_mutex_lock(&engine->crew.lock);
    worker->device = recon;
    if (!e && worker != first && first->device)
        oct_cuda_recon_share_uploads(recon, first->device);
    pthread_mutex_unlock(&engine->crew.lock);
    return e;
}

static void run_worker(struct oct_cuda_worker *base, void *context)
{
    struct worker *worker = context;
    struct oct_engine *engine = worker->engine;
    struct oct_error err;
    if (make_recon(worker, &err)) {
        oct_cuda_crew_refuse(&engine->crew, &err);
    } else {
        oct_cuda_worker_is_ready(base);
        serve(worker);
    }
    pthread_mutex_lock(&engine->crew.lock);
    struct oct_cuda_recon *recon = worker->device;
    if (engine->smoother == recon)
        engine->smoother = NULL;
    worker->device = NULL;
    pthread_mutex_unlock(&engine->crew.lock);
    oct_cuda_recon_destroy(recon);
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

/* Asks the devices one after the other, so that the message names the first fault. */
static enum oct_err start_workers(struct oct_engine *engine, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < engine->choice.n_gpus * engine->n_streams && !e; i++) {
        struct worker *worker = &engine->workers[i];
        char gpu[32];
        worker->engine = engine;
        worker->gpu = i % engine->choice.n_gpus;
        worker->base.device = engine->choice.devices[worker->gpu];
        snprintf(gpu, sizeof(gpu), "GPU %u", worker->base.device);
        e = oct_cuda_worker_start(&engine->crew, &worker->base, run_worker, worker, gpu, err);
    }
    return e;
}

/* "GPU 0: NAME; fused kernels, 3 streams, batches of 16" */
static enum oct_err describe(struct oct_engine *engine, struct oct_error *err)
{
    char *text = engine->description;
    const size_t room = sizeof(engine->description);
    enum oct_err e = oct_cuda_choice_describe(&engine->choice, text, room, err);
    size_t at = strlen(text);
    snprintf(text + at, room - at, "; %s kernels, %u streams, batches of %u",
             cuda_kernels_name(engine->kernels), engine->n_streams, engine->max_batch);
    return e;
}

static enum oct_err choose(struct oct_engine *engine, struct oct_error *err)
{
    const struct oct_engine_options options = {.gpus = engine->gpus, .cuda = engine->cuda};
    enum oct_err e =
        cuda_kernels_choose(&engine->choice, &engine->kernels, engine->plan, &options, err);
    if (!e)
        e = describe(engine, err);
    for (unsigned i = 0; i < engine->choice.n_gpus && !e; i++)
        e = oct_cuda_check_memory(engine->choice.devices[i], engine->plan, engine->kernels,
                                  engine->max_batch, engine->n_streams, engine->has_complex, err);
    return e;
}

static void run_choice(struct oct_cuda_worker *base, void *context)
{
    struct oct_engine *engine = context;
    struct oct_error err;
    if (choose(engine, &err))
        oct_cuda_crew_refuse(&engine->crew, &err);
    else
        oct_cuda_worker_is_ready(base);
}

static enum oct_err start_engine_threads(struct oct_engine *engine, struct oct_error *err)
{
    enum oct_err e = oct_cuda_worker_start(&engine->crew, &engine->chooser, run_choice, engine,
                                           "the CUDA driver", err);
    if (e)
        return e;
    engine->depth = engine->choice.n_gpus * engine->n_streams * engine->max_batch;
    e = alloc_submissions(engine, err);
    return e ? e : start_workers(engine, err);
}

/* Threads that start late must not read what is the caller's. */
static enum oct_err copy_input(struct oct_engine *engine, const struct oct_plan *plan,
                               const struct oct_engine_options *options, struct oct_error *err)
{
    if (options->gpus && strlen(options->gpus) >= sizeof(engine->gpus))
        return oct_fail(err, OCT_E_CONFIG, "pipeline.gpus is too long");
    snprintf(engine->gpus, sizeof(engine->gpus), "%s", options->gpus ? options->gpus : "");
    snprintf(engine->cuda, sizeof(engine->cuda), "%s", options->cuda ? options->cuda : "auto");
    return oct_plan_create(&engine->plan, &plan->geometry, &plan->calibration, &plan->chain, err);
}

static enum oct_err cuda_create(struct oct_engine **out, const struct oct_plan *plan,
                                const struct oct_engine_options *options, struct oct_error *err)
{
    *out = NULL;
    if (!oct_cuda_built_with())
        return oct_fail(err, OCT_E_CONFIG,
                        "this build has no CUDA engine; use another backend or build with nvcc");
    enum oct_err e = cuda_kernels_check(options, err);
    if (e)
        return e;
    unsigned n_streams = options->n_streams ? options->n_streams : DEFAULT_STREAMS;
    if (n_streams > MAX_STREAMS)
        n_streams = MAX_STREAMS;
    size_t bytes =
        sizeof(struct oct_engine) + OCT_CUDA_MAX_GPUS * n_streams * sizeof(struct worker);
    struct oct_engine *engine = calloc(1, bytes);
    if (!engine)
        return oct_fail(err, OCT_E_NO_MEMORY, "CUDA engine: out of memory");
    engine->n_streams = n_streams;
    for (unsigned i = 0; i < OCT_CUDA_MAX_GPUS * n_streams; i++)
        pthread_cond_init(&engine->workers[i].wake, NULL);
    engine->max_batch = choose_batch(plan, options->max_batch);
    engine->has_complex = options->has_complex;
    oct_cuda_crew_init(&engine->crew, &crew_ops, engine, options->deadline_ms);
    e = copy_input(engine, plan, options, err);
    if (!e)
        e = start_engine_threads(engine, err);
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

static int cuda_gpu(const struct oct_engine *engine)
{
    return engine->choice.n_gpus == 1 ? (int)engine->choice.devices[0] : -1;
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
    .gpu = cuda_gpu,
    .depth = cuda_depth,
    .max_batch = cuda_max_batch,
    .submit = cuda_submit,
    .collect = cuda_collect,
    .destroy = cuda_destroy,
    .memory = &oct_cuda_memory,
};
