/* The CPU engine: a pool of workers that share the lines of the B-scans in flight.
 *
 * A job goes through phases; the chunks of a phase may be done by any worker, oldest job first, so
 * that a single B-scan uses all cores (latency) and a backlog keeps them all busy (throughput):
 *
 *     DC     one worker   the DC line, mean over the lines that came (dc=bscan)
 *     LINES  chunks       reconstruction of A-lines; manual range: pixels too
 *     RANGE  one worker   auto or percentile limits; in job order, because limits are smoothed
 *     MAP    chunks       pixels from values (u8 with auto or percentile)
 *     DONE                collected in order
 *
 * All state is under one lock, taken once a chunk. */
#define _GNU_SOURCE /* sched_getaffinity, pthread_setname_np */
#include "kernels/line.h"
#include "kernels/percentile.h"
#include "pipeline/engine.h"

#include <errno.h>
#include <float.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEPTH 4u /* jobs in flight: one finishing, one at work, two waiting */
#define MAX_THREADS 256u
#define NULL_DB (-120.0f) /* 10 * log10(1e-12): a missing line */

enum phase { PHASE_DC, PHASE_LINES, PHASE_RANGE, PHASE_MAP, PHASE_DONE };

struct job {
    struct oct_engine_job todo;
    enum phase phase;
    bool unit_taken;    /* DC or RANGE is being worked on */
    uint32_t next_line; /* LINES, MAP: first line not yet taken */
    uint32_t done_lines;
    float min, max;
    float *values;       /* [M][D] f32: scratch, or the output itself when it is f32 */
    float *scratch;      /* owned; NULL when the output is f32 */
    float *whole, *rest; /* [N] the DC line */
    uint32_t *sums;      /* [N] */
    uint32_t *counts;    /* [n_threads][OCT_HISTOGRAM_BINS] */
};

struct worker {
    struct oct_engine *engine;
    unsigned number;
    pthread_t thread;
    struct oct_line_scratch line;
    float *values;     /* [2][D] a pair of lines, manual range */
    uint32_t *refined; /* [OCT_HISTOGRAM_BINS] */
};

struct oct_engine {
    const struct oct_plan *plan;
    struct oct_line_chain chain;
    unsigned n_threads, n_started;
    uint32_t chunk_lines;
    char description[64];
    float *file_whole, *file_rest; /* [N] dc=file; NULL otherwise */
    float *picked; /* [M * D + OCT_PICK_SLACK] the RANGE at work; there is one at a time */

    pthread_mutex_t lock;
    pthread_cond_t work, finished;
    bool stopping;
    struct job jobs[DEPTH];
    uint64_t first, last; /* jobs first .. last-1 are in flight; job i lies in jobs[i % DEPTH] */
    struct oct_smoothed_range smoothed;
    struct worker workers[];
};

/* ---- one phase of one job ---- */

static void split(double value, float *whole, float *rest)
{
    *whole = (float)(int64_t)value;
    *rest = (float)(value - (double)*whole);
}

static void find_dc_line(const struct oct_engine *engine, struct job *job)
{
    const struct oct_geometry *g = &engine->plan->geometry;
    const struct oct_raw_frame *in = job->todo.in;
    uint32_t n_valid = 0;

    memset(job->sums, 0, g->n_samples * sizeof(*job->sums));
    for (uint32_t j = 0; j < g->n_lines; j++)
        if (in->line_valid[j]) {
            engine->chain.stages->accumulate(job->sums, in->spectra + (size_t)j * g->n_samples,
                                             g->n_samples);
            n_valid++;
        }
    /* Divided, not multiplied by 1/n: a constant column leaves exactly nothing. */
    for (uint32_t i = 0; i < g->n_samples; i++)
        split(n_valid ? (double)job->sums[i] / n_valid : 0, &job->whole[i], &job->rest[i]);
}

/* Lines j and, where it exists, j + 1: values[0], values[1]. Which lines travel together depends on
 * their numbers alone, so that results do not depend on who does them. */
static void reconstruct(const struct oct_engine *engine, struct worker *worker, struct job *job,
                        uint32_t j, float *values[2])
{
    const struct oct_geometry *g = &engine->plan->geometry;
    const struct oct_raw_frame *in = job->todo.in;
    struct oct_line_pair pair = {.log = job->todo.display.log};
    int n = 0;

    for (uint32_t k = 0; k < 2 && j + k < g->n_lines; k++) {
        if (in->line_valid[j + k]) {
            pair.line[n] = in->spectra + (size_t)(j + k) * g->n_samples;
            pair.value[n++] = values[k];
        } else {
            for (uint32_t d = 0; d < g->depth; d++)
                values[k][d] = pair.log ? NULL_DB : 0.0f;
        }
    }
    if (engine->plan->dc == OCT_DC_BSCAN) {
        pair.whole = job->whole;
        pair.rest = job->rest;
    } else if (engine->plan->dc == OCT_DC_FILE) {
        pair.whole = engine->file_whole;
        pair.rest = engine->file_rest;
    }
    if (n)
        oct_line_reconstruct(&engine->chain, &worker->line, &pair);
}

/* Scale of step 9 as a factor; 0 for an empty range: every pixel is then 0. */
static float pixel_scale(double lo, double hi)
{
    return hi > lo ? (float)(255 / (hi - lo)) : 0;
}

static void map_line(const struct oct_engine *engine, struct job *job, uint32_t j,
                     const float *values)
{
    const struct oct_geometry *g = &engine->plan->geometry;
    struct oct_image_frame *out = job->todo.out;
    engine->chain.stages->to_u8((uint8_t *)out->pixels + (size_t)j * g->depth, values, g->depth,
                                (float)out->lo, pixel_scale(out->lo, out->hi));
}

static bool maps_at_once(const struct oct_engine *engine, const struct job *job)
{
    return engine->plan->geometry.sample_type == OCT_SAMPLE_U8 &&
           job->todo.display.range == OCT_RANGE_MANUAL;
}

static void do_lines(struct oct_engine *engine, struct worker *worker, struct job *job,
                     uint32_t from, uint32_t to, float *min, float *max)
{
    const struct oct_stages *stages = engine->chain.stages;
    uint32_t depth = engine->plan->geometry.depth;

    for (uint32_t j = from; j < to; j += 2) {
        uint32_t n = to - j < 2 ? 1 : 2;
        bool at_once = maps_at_once(engine, job);
        float *first = at_once ? worker->values : job->values + (size_t)j * depth;
        float *values[2] = {first, first + depth};
        reconstruct(engine, worker, job, j, values);
        for (uint32_t k = 0; at_once && k < n; k++)
            map_line(engine, job, j + k, values[k]);
        if (at_once)
            continue;
        size_t n_values = (size_t)n * depth;
        if (job->todo.display.range == OCT_RANGE_AUTO)
            stages->min_max(first, n_values, min, max);
        else if (job->todo.display.range == OCT_RANGE_PERCENTILE)
            stages->histogram(job->counts + (size_t)worker->number * OCT_HISTOGRAM_BINS, first,
                              n_values);
    }
}

static void find_range(struct oct_engine *engine, struct worker *worker, struct job *job)
{
    const struct oct_geometry *g = &engine->plan->geometry;
    const struct oct_display *display = &job->todo.display;
    struct oct_image_frame *out = job->todo.out;

    if (display->range == OCT_RANGE_AUTO) {
        out->lo = job->min;
        out->hi = job->max;
    } else if (display->range == OCT_RANGE_PERCENTILE) {
        const struct oct_percentile_values all = {
            .stages = engine->chain.stages,
            .values = job->values,
            .n = (size_t)g->n_lines * g->depth,
            .counts = job->counts,
            .refined = worker->refined,
            .picked = engine->picked,
        };
        for (unsigned t = 1; t < engine->n_threads; t++)
            for (uint32_t b = 0; b < OCT_HISTOGRAM_BINS; b++)
                job->counts[b] += job->counts[(size_t)t * OCT_HISTOGRAM_BINS + b];
        oct_percentiles_find(&all, display->percentile_lo, display->percentile_hi, &out->lo,
                             &out->hi);
        oct_smoothed_range_update(&engine->smoothed, out->info.acquisition, out->info.volume,
                                  display->smoothing_bscans, &out->lo, &out->hi);
    }
}

/* ---- who does what ---- */

static void start_job(const struct oct_engine *engine, struct job *job)
{
    const struct oct_display *display = &job->todo.display;
    struct oct_image_frame *out = job->todo.out;

    job->phase = engine->plan->dc == OCT_DC_BSCAN ? PHASE_DC : PHASE_LINES;
    job->unit_taken = false;
    job->next_line = job->done_lines = 0;
    job->min = FLT_MAX;
    job->max = -FLT_MAX;
    job->values = engine->plan->geometry.sample_type == OCT_SAMPLE_F32 ? out->pixels : job->scratch;
    if (display->range == OCT_RANGE_PERCENTILE)
        memset(job->counts, 0, engine->n_threads * OCT_HISTOGRAM_BINS * sizeof(uint32_t));
    out->status = OCT_OK;
    out->lo = display->lo;
    out->hi = display->hi;
}

/* Called with the lock held. Finds the oldest job that has something to do and takes a piece. */
static struct job *take(struct oct_engine *engine, enum phase *phase, uint32_t *from, uint32_t *to)
{
    uint32_t n_lines = engine->plan->geometry.n_lines;
    for (uint64_t i = engine->first; i < engine->last; i++) {
        struct job *job = &engine->jobs[i % DEPTH];
        *phase = job->phase;
        if (job->phase == PHASE_DC || job->phase == PHASE_RANGE) {
            /* Limits are smoothed from B-scan to B-scan: the one before comes first. */
            bool in_turn = job->phase == PHASE_DC || i == engine->first ||
                           engine->jobs[(i - 1) % DEPTH].phase > PHASE_RANGE;
            if (!job->unit_taken && in_turn) {
                job->unit_taken = true;
                return job;
            }
        } else if (job->phase != PHASE_DONE && job->next_line < n_lines) {
            *from = job->next_line;
            *to = n_lines - *from < engine->chunk_lines ? n_lines : *from + engine->chunk_lines;
            job->next_line = *to;
            return job;
        }
    }
    return NULL;
}

/* Called with the lock held, after a piece of `phase` was done. */
static void advance(struct oct_engine *engine, struct job *job, enum phase phase, uint32_t n_done)
{
    const struct oct_geometry *g = &engine->plan->geometry;
    bool chunks = phase == PHASE_LINES || phase == PHASE_MAP;

    job->done_lines += n_done;
    if (chunks && job->done_lines < g->n_lines)
        return;
    job->unit_taken = false;
    job->next_line = job->done_lines = 0;
    if (phase == PHASE_DC)
        job->phase = PHASE_LINES;
    else if (phase == PHASE_LINES)
        job->phase = PHASE_RANGE;
    else if (phase == PHASE_RANGE && g->sample_type == OCT_SAMPLE_U8 && !maps_at_once(engine, job))
        job->phase = PHASE_MAP;
    else
        job->phase = PHASE_DONE;
    if (job->phase == PHASE_DONE && job == &engine->jobs[engine->first % DEPTH])
        pthread_cond_signal(&engine->finished);
    pthread_cond_broadcast(&engine->work);
}

static void do_piece(struct oct_engine *engine, struct worker *worker, struct job *job,
                     enum phase phase, uint32_t from, uint32_t to, float *min, float *max)
{
    uint32_t depth = engine->plan->geometry.depth;
    switch (phase) {
    case PHASE_DC:
        find_dc_line(engine, job);
        break;
    case PHASE_LINES:
        do_lines(engine, worker, job, from, to, min, max);
        break;
    case PHASE_RANGE:
        find_range(engine, worker, job);
        break;
    case PHASE_MAP:
        for (uint32_t j = from; j < to; j++)
            map_line(engine, job, j, job->values + (size_t)j * depth);
        break;
    case PHASE_DONE:
        break;
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct oct_engine *engine = worker->engine;

    pthread_mutex_lock(&engine->lock);
    while (!engine->stopping) {
        enum phase phase;
        uint32_t from = 0, to = 0;
        struct job *job = take(engine, &phase, &from, &to);
        if (!job) {
            pthread_cond_wait(&engine->work, &engine->lock);
            continue;
        }
        float min = FLT_MAX, max = -FLT_MAX;
        pthread_mutex_unlock(&engine->lock);
        do_piece(engine, worker, job, phase, from, to, &min, &max);
        pthread_mutex_lock(&engine->lock);
        job->min = min < job->min ? min : job->min;
        job->max = max > job->max ? max : job->max;
        advance(engine, job, phase, to - from);
    }
    pthread_mutex_unlock(&engine->lock);
    return NULL;
}

/* ---- the contract's functions ---- */

static enum oct_err cpu_submit(struct oct_engine *engine, const struct oct_engine_job *jobs,
                               unsigned n)
{
    pthread_mutex_lock(&engine->lock);
    if (engine->last - engine->first + n > DEPTH) {
        pthread_mutex_unlock(&engine->lock);
        return OCT_E_AGAIN;
    }
    for (unsigned k = 0; k < n; k++) {
        struct job *job = &engine->jobs[engine->last % DEPTH];
        job->todo = jobs[k];
        start_job(engine, job);
        engine->last++;
    }
    pthread_cond_broadcast(&engine->work);
    pthread_mutex_unlock(&engine->lock);
    return OCT_OK;
}

static struct timespec deadline_after(uint64_t timeout_us)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    uint64_t ns = (uint64_t)at.tv_nsec + timeout_us % 1000000 * 1000;
    at.tv_sec += (time_t)(timeout_us / 1000000 + ns / 1000000000);
    at.tv_nsec = (long)(ns % 1000000000);
    return at;
}

static enum oct_err cpu_collect(struct oct_engine *engine, uint64_t timeout_us,
                                struct oct_image_frame **done)
{
    struct timespec deadline = deadline_after(timeout_us);
    enum oct_err e = OCT_OK;

    pthread_mutex_lock(&engine->lock);
    struct job *oldest = &engine->jobs[engine->first % DEPTH];
    while (engine->first == engine->last || oldest->phase != PHASE_DONE)
        if (pthread_cond_timedwait(&engine->finished, &engine->lock, &deadline) == ETIMEDOUT) {
            e = OCT_E_AGAIN;
            break;
        }
    if (engine->first != engine->last && oldest->phase == PHASE_DONE) {
        e = OCT_OK;
        *done = oldest->todo.out;
        engine->first++;
    }
    pthread_mutex_unlock(&engine->lock);
    return e;
}

static void free_jobs(struct oct_engine *engine)
{
    for (unsigned i = 0; i < DEPTH; i++) {
        struct job *job = &engine->jobs[i];
        free(job->scratch);
        free(job->whole);
        free(job->rest);
        free(job->sums);
        free(job->counts);
    }
}

static void cpu_destroy(struct oct_engine *engine)
{
    if (!engine)
        return;
    pthread_mutex_lock(&engine->lock);
    engine->stopping = true;
    pthread_cond_broadcast(&engine->work);
    pthread_mutex_unlock(&engine->lock);
    for (unsigned t = 0; t < engine->n_started; t++)
        pthread_join(engine->workers[t].thread, NULL);
    for (unsigned t = 0; t < engine->n_threads; t++) {
        oct_line_scratch_finish(&engine->workers[t].line);
        free(engine->workers[t].values);
        free(engine->workers[t].refined);
    }
    free_jobs(engine);
    free(engine->file_whole);
    free(engine->file_rest);
    free(engine->picked);
    oct_line_chain_finish(&engine->chain);
    pthread_cond_destroy(&engine->work);
    pthread_cond_destroy(&engine->finished);
    pthread_mutex_destroy(&engine->lock);
    free(engine);
}

static void *alloc_aligned(size_t n, size_t size)
{
    return aligned_alloc(64, (n * size + 63) / 64 * 64);
}

static enum oct_err alloc_jobs(struct oct_engine *engine)
{
    const struct oct_geometry *g = &engine->plan->geometry;
    engine->picked = alloc_aligned((size_t)g->n_lines * g->depth + OCT_PICK_SLACK, sizeof(float));
    if (!engine->picked)
        return OCT_E_NO_MEMORY;
    for (unsigned i = 0; i < DEPTH; i++) {
        struct job *job = &engine->jobs[i];
        job->whole = alloc_aligned(g->n_samples, sizeof(float));
        job->rest = alloc_aligned(g->n_samples, sizeof(float));
        job->sums = alloc_aligned(g->n_samples, sizeof(uint32_t));
        job->counts =
            alloc_aligned((size_t)engine->n_threads * OCT_HISTOGRAM_BINS, sizeof(uint32_t));
        if (!job->whole || !job->rest || !job->sums || !job->counts)
            return OCT_E_NO_MEMORY;
        if (g->sample_type == OCT_SAMPLE_U8) {
            job->scratch = alloc_aligned((size_t)g->n_lines * g->depth, sizeof(float));
            if (!job->scratch)
                return OCT_E_NO_MEMORY;
        }
    }
    return OCT_OK;
}

static enum oct_err alloc_workers(struct oct_engine *engine, struct oct_error *err)
{
    for (unsigned t = 0; t < engine->n_threads; t++) {
        struct worker *worker = &engine->workers[t];
        worker->engine = engine;
        worker->number = t;
        worker->values = alloc_aligned(2 * (size_t)engine->plan->geometry.depth, sizeof(float));
        worker->refined = alloc_aligned(OCT_HISTOGRAM_BINS, sizeof(uint32_t));
        enum oct_err e = oct_line_scratch_init(&worker->line, &engine->chain, err);
        if (e)
            return e;
        if (!worker->values || !worker->refined)
            return OCT_E_NO_MEMORY;
    }
    return OCT_OK;
}

static enum oct_err split_background(struct oct_engine *engine)
{
    uint32_t n = engine->plan->geometry.n_samples;
    if (engine->plan->dc != OCT_DC_FILE)
        return OCT_OK;
    engine->file_whole = alloc_aligned(n, sizeof(float));
    engine->file_rest = alloc_aligned(n, sizeof(float));
    if (!engine->file_whole || !engine->file_rest)
        return OCT_E_NO_MEMORY;
    for (uint32_t i = 0; i < n; i++)
        split(engine->plan->calibration.background[i], &engine->file_whole[i],
              &engine->file_rest[i]);
    return OCT_OK;
}

static unsigned count_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    return 1;
}

static enum oct_err start_workers(struct oct_engine *engine, struct oct_error *err)
{
    for (unsigned t = 0; t < engine->n_threads; t++) {
        int status = pthread_create(&engine->workers[t].thread, NULL, work, &engine->workers[t]);
        if (status)
            return oct_fail_errno(err, OCT_E_IO, status, "CPU engine: worker %u", t);
        pthread_setname_np(engine->workers[t].thread, "octd-worker");
        engine->n_started++;
    }
    return OCT_OK;
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

static enum oct_err prepare(struct oct_engine *engine, const char *wisdom_dir,
                            const struct oct_stages *stages, struct oct_error *err)
{
    enum oct_err e = oct_line_chain_init(&engine->chain, engine->plan, stages, wisdom_dir, err);
    if (e)
        return e;
    if (alloc_jobs(engine) || split_background(engine) || alloc_workers(engine, err))
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "CPU engine: out of memory for %u B-scans of %u lines and %u pixels", DEPTH,
                        engine->plan->geometry.n_lines, engine->plan->geometry.depth);
    return start_workers(engine, err);
}

static enum oct_err cpu_create(struct oct_engine **out, const struct oct_plan *plan,
                               const struct oct_engine_options *options, struct oct_error *err)
{
    *out = NULL;
    const struct oct_stages *stages = oct_stages_select(options->simd);
    if (!stages)
        return oct_fail(err, OCT_E_CONFIG, "pipeline.simd is %s: this CPU cannot run it; use auto",
                        options->simd);
    unsigned n_threads = options->n_threads ? options->n_threads : count_cores();
    if (n_threads > MAX_THREADS)
        n_threads = MAX_THREADS;
    struct oct_engine *engine = calloc(1, sizeof(*engine) + n_threads * sizeof(struct worker));
    if (!engine)
        return oct_fail(err, OCT_E_NO_MEMORY, "CPU engine: out of memory");
    engine->plan = plan;
    engine->n_threads = n_threads;
    /* Small enough that workers end together, large enough that the lock costs nothing; whole
     * pairs. */
    engine->chunk_lines = plan->geometry.n_lines / (n_threads * 8) / 2 * 2 + 2;
    if (engine->chunk_lines > 16)
        engine->chunk_lines = 16;
    snprintf(engine->description, sizeof(engine->description), "%u thread%s, %s", n_threads,
             n_threads == 1 ? "" : "s", stages->name);
    init_locks(engine);
    enum oct_err e = prepare(engine, options->wisdom_dir, stages, err);
    if (e) {
        cpu_destroy(engine);
        return e;
    }
    *out = engine;
    return OCT_OK;
}

static const char *cpu_describe(const struct oct_engine *engine)
{
    return engine->description;
}

static unsigned cpu_depth(const struct oct_engine *engine)
{
    (void)engine;
    return DEPTH;
}

/* Batches save a CPU nothing: every line is its own transform. */
static unsigned cpu_max_batch(const struct oct_engine *engine)
{
    (void)engine;
    return 1;
}

const struct oct_engine_ops oct_engine_cpu = {
    .name = "cpu",
    .create = cpu_create,
    .describe = cpu_describe,
    .depth = cpu_depth,
    .max_batch = cpu_max_batch,
    .submit = cpu_submit,
    .collect = cpu_collect,
    .destroy = cpu_destroy,
    .memory = NULL,
};
