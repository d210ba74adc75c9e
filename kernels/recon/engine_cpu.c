/* The CPU engine: a source of work for a pool of workers (kernels/device/workers.h), which share
 * the B-scans in flight.
 *
 * A job goes through phases; the chunks of a phase may be done by any worker, oldest job first, so
 * that a single B-scan uses all cores (latency):
 *
 *     BEGIN   one worker   the DC line, mean over the lines that came (dc=bscan)
 *     LINES   chunks       reconstruction of A-lines; manual range: pixels too
 *     LIMITS  one worker   the B-scan's own, auto or percentile
 *     TURN    in job order percentile: smoothed, a few sums under the lock
 *     MAP     chunks       pixels from values (u8 with auto or percentile)
 *     DONE                 collected in order
 *
 * Where all workers have B-scans of their own, or where one is so short that handing its pieces
 * around costs more than it saves, a worker takes it whole, BEGIN to MAP without the lock; only
 * TURN, when an older one is not yet there, sends it back to the others.
 *
 * All state is under one lock, the pool's, taken once a piece. */
#include "kernels/device/workers.h"
#include "kernels/recon/bscan.h"
#include "kernels/recon/percentile.h"
#include "kernels/recon/tables.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"

#include <float.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEAST_DEPTH 4u /* jobs in flight: one finishing, one at work, two waiting */
#define MOST_DEPTH 64u
#define MOST_SHARES 1024u /* sieves of all jobs together: 150 MB */

/* In lines of 2048 padded samples, about 5 us each. Handing one B-scan from worker to worker took
 * 24 us, so that of 16 lines two workers at best save what it costs. MOST_WHOLE: of 240 lines 3 %
 * quicker with range=auto, of 1024 no more; pieces finish the oldest B-scan first. WORK_IN_FLIGHT,
 * a worker: short B-scans wait in such numbers that none is without work while the collector
 * sleeps; at least one waits for each that is at work, or sixteen workers would never be behind. */
#define MOST_ALWAYS_WHOLE 16u
#define MOST_WHOLE 256u
#define WORK_IN_FLIGHT 240u

enum phase { PHASE_BEGIN, PHASE_LINES, PHASE_LIMITS, PHASE_TURN, PHASE_MAP, PHASE_DONE };

struct job {
    struct oct_bscan bscan;
    enum phase phase;
    bool whole;         /* by one worker */
    bool unit_taken;    /* BEGIN or LIMITS is being worked on */
    uint32_t next_line; /* LINES, MAP: first line not yet taken */
    uint32_t done_lines;
};

/* What a worker does between two looks at the pool. */
struct piece {
    struct job *job;
    enum phase phase;
    bool whole; /* BEGIN: and all that follows */
    uint32_t from, to;
    float min, max;
};

/* A worker's own data, on cache lines that no other worker writes: it writes to its piece without
 * the lock. */
struct worker {
    alignas(64) struct piece piece;
    struct oct_bscan_scratch scratch;
};

struct oct_engine {
    struct oct_work_source source;       /* first: the pool gives it back */
    struct oct_workers *pool, *own_pool; /* own_pool: NULL when it was lent */
    const struct oct_plan *plan;
    struct oct_bscan_chain chain;
    unsigned n_threads;     /* of the pool */
    unsigned depth;         /* jobs that may be in flight */
    uint32_t chunk_lines;   /* even */
    bool always_whole;      /* too short to be shared */
    bool whole_when_behind; /* short enough to be done whole while others wait */
    char description[64];

    pthread_mutex_t *lock; /* the pool's; guards what follows */
    pthread_cond_t finished;
    unsigned n_new, n_done; /* jobs that nobody has begun; that are done and not collected */
    uint64_t first, last;   /* jobs first .. last-1 are in flight; job i: jobs[i % depth] */
    uint64_t turn;          /* jobs below have had their turn; first <= turn <= last */
    struct oct_smoothed_range smoothed;
    /* Scratch of the B-scans that are not at work: the one used last, which caches still hold, is
     * taken first. */
    float **scratch; /* [depth], n_scratch of them owned */
    unsigned n_scratch;
    struct job *jobs;       /* [depth] */
    struct worker *workers; /* [n_threads] */
};

static struct job *job_at(const struct oct_engine *engine, uint64_t i)
{
    return &engine->jobs[i % engine->depth];
}

/* ---- a piece, without the lock ---- */

static bool is_smoothed(const struct job *job)
{
    return job->bscan.job.display.range == OCT_RANGE_PERCENTILE;
}

/* Whether pixels are still to be made when the limits are known. */
static bool needs_map(const struct oct_engine *engine, const struct job *job)
{
    return engine->plan->geometry.sample_type == OCT_SAMPLE_U8 &&
           !oct_bscan_maps_at_once(&engine->chain, &job->bscan);
}

static void do_whole(struct oct_engine *engine, struct worker *worker, struct job *job)
{
    const uint32_t n_lines = engine->plan->geometry.n_lines;
    struct oct_bscan_scratch *scratch = &worker->scratch;
    struct oct_bscan *b = &job->bscan;

    oct_bscan_begin(b, &engine->chain, scratch, true);
    oct_bscan_lines(b, &engine->chain, scratch, 0, n_lines, &scratch->sieves, &b->min, &b->max);
    oct_bscan_limits(b, &engine->chain, scratch, true);
    if (!is_smoothed(job) && needs_map(engine, job))
        oct_bscan_map(b, &engine->chain, 0, n_lines);
}

/* Sieves that several workers fill at once: one a worker, or one a chunk where those are
 * fewer. */
static unsigned count_shares(const struct oct_engine *engine)
{
    uint32_t n_lines = engine->plan->geometry.n_lines, chunk = engine->chunk_lines;
    uint32_t n_more = n_lines > chunk ? (n_lines - 1) / chunk : 0; /* chunks after the first */
    return n_more < engine->n_threads ? n_more + 1 : engine->n_threads;
}

static struct oct_sieves *share_of(const struct oct_engine *engine, unsigned number,
                                   const struct piece *p)
{
    const struct oct_bscan *b = &p->job->bscan;
    unsigned share = b->n_shares < engine->n_threads ? p->from / engine->chunk_lines : number;
    return &b->sieves[share];
}

static void do_piece(struct oct_work_source *source, unsigned number)
{
    struct oct_engine *engine = (struct oct_engine *)source;
    struct worker *worker = &engine->workers[number];
    struct piece *p = &worker->piece;
    struct oct_bscan *b = &p->job->bscan;
    switch (p->phase) {
    case PHASE_BEGIN:
        if (p->whole)
            do_whole(engine, worker, p->job);
        else
            oct_bscan_begin(b, &engine->chain, &worker->scratch, false);
        break;
    case PHASE_LINES:
        oct_bscan_lines(b, &engine->chain, &worker->scratch, p->from, p->to,
                        share_of(engine, number, p), &p->min, &p->max);
        break;
    case PHASE_LIMITS:
        oct_bscan_limits(b, &engine->chain, &worker->scratch, false);
        break;
    case PHASE_MAP:
        oct_bscan_map(b, &engine->chain, p->from, p->to);
        break;
    case PHASE_TURN:
    case PHASE_DONE:
        break;
    }
}

/* ---- who does what: all with the lock held ---- */

/* Whether enough B-scans wait that each worker may do one alone and none is without for long: half
 * a B-scan a worker, or a quarter of what may be in flight where that is less. */
static bool is_behind(const struct oct_engine *engine)
{
    unsigned enough =
        engine->n_threads / 2 < engine->depth / 4 ? engine->n_threads / 2 : engine->depth / 4;
    return engine->whole_when_behind && engine->n_new > enough;
}

/* Finds the oldest job that has something to do and takes a piece. */
static bool take_piece(struct oct_work_source *source, unsigned number)
{
    struct oct_engine *engine = (struct oct_engine *)source;
    struct piece *p = &engine->workers[number].piece;
    uint32_t n_lines = engine->plan->geometry.n_lines;
    for (uint64_t i = engine->first; i < engine->last; i++) {
        struct job *job = job_at(engine, i);
        *p = (struct piece){.job = job, .phase = job->phase, .min = FLT_MAX, .max = -FLT_MAX};
        if (job->phase == PHASE_BEGIN || job->phase == PHASE_LIMITS) {
            if (job->unit_taken)
                continue;
            job->unit_taken = true;
            if (job->phase == PHASE_BEGIN) {
                job->whole = engine->always_whole || is_behind(engine);
                engine->n_new--;
                job->bscan.scratch = engine->scratch[--engine->n_scratch];
            }
            p->whole = job->whole;
            return true;
        }
        if ((job->phase == PHASE_LINES || job->phase == PHASE_MAP) && job->next_line < n_lines) {
            p->from = job->next_line;
            p->to = job->whole || n_lines - p->from < engine->chunk_lines
                        ? n_lines
                        : p->from + engine->chunk_lines;
            job->next_line = p->to;
            return true;
        }
    }
    return false;
}

static void enter(struct oct_engine *engine, struct job *job, enum phase phase)
{
    if (phase == PHASE_DONE) {
        engine->n_done++;
        engine->scratch[engine->n_scratch++] = job->bscan.scratch;
        job->bscan.scratch = NULL;
    }
    job->phase = phase;
    job->unit_taken = false;
    job->next_line = job->done_lines = 0;
}

static unsigned chunks_of(const struct oct_engine *engine, const struct job *job)
{
    uint32_t n_lines = engine->plan->geometry.n_lines;
    return job->whole ? 1 : (n_lines + engine->chunk_lines - 1) / engine->chunk_lines;
}

/* Smooths the limits in job order: a B-scan waits for those before it. Returns how many pieces may
 * be mapped now that could not before. */
static unsigned give_turns(struct oct_engine *engine)
{
    unsigned n_maps = 0; /* pieces */
    for (; engine->turn < engine->last; engine->turn++) {
        struct job *job = job_at(engine, engine->turn);
        struct oct_image_frame *out = job->bscan.job.out;
        if (job->phase < PHASE_TURN)
            break;
        if (job->phase > PHASE_TURN)
            continue;
        oct_smoothed_range_update(&engine->smoothed, &out->info, &job->bscan.job.display, &out->lo,
                                  &out->hi);
        enter(engine, job, needs_map(engine, job) ? PHASE_MAP : PHASE_DONE);
        n_maps += job->phase == PHASE_MAP ? chunks_of(engine, job) : 0;
    }
    return n_maps;
}

/* Notes that a piece was done. Returns how many pieces may be begun now that could not before. */
static unsigned advance(struct oct_engine *engine, const struct piece *p)
{
    struct job *job = p->job;
    bool chunks = p->phase == PHASE_LINES || p->phase == PHASE_MAP;

    job->bscan.min = p->min < job->bscan.min ? p->min : job->bscan.min;
    job->bscan.max = p->max > job->bscan.max ? p->max : job->bscan.max;
    job->done_lines += p->to - p->from;
    if (chunks && job->done_lines < engine->plan->geometry.n_lines)
        return 0;
    if (p->phase == PHASE_BEGIN && !p->whole)
        enter(engine, job, PHASE_LINES);
    else if (p->phase == PHASE_LINES)
        enter(engine, job, PHASE_LIMITS);
    else if (p->phase == PHASE_MAP)
        enter(engine, job, PHASE_DONE);
    else if (is_smoothed(job))
        enter(engine, job, PHASE_TURN);
    else
        enter(engine, job, !p->whole && needs_map(engine, job) ? PHASE_MAP : PHASE_DONE);
    unsigned n = job->phase == PHASE_LINES || job->phase == PHASE_MAP ? chunks_of(engine, job)
                 : job->phase == PHASE_LIMITS                         ? 1
                                                                      : 0;
    return n + (job->phase >= PHASE_TURN ? give_turns(engine) : 0);
}

/* Returns whether to wake the collector. Each wake-up takes a core from a worker: short B-scans are
 * collected several at once, as long as enough work is left, which brings another wake-up. */
static bool is_worth_collecting(const struct oct_engine *engine)
{
    return job_at(engine, engine->first)->phase == PHASE_DONE &&
           (engine->n_done >= engine->depth / 8 || engine->n_new < engine->n_threads);
}

static unsigned finish_piece(struct oct_work_source *source, unsigned number, bool *wakes)
{
    struct oct_engine *engine = (struct oct_engine *)source;
    unsigned n = advance(engine, &engine->workers[number].piece);
    *wakes = is_worth_collecting(engine);
    return n;
}

static void wake_collector(struct oct_work_source *source)
{
    pthread_cond_signal(&((struct oct_engine *)source)->finished);
}

static const struct oct_work_ops work_ops = {
    .take = take_piece, .run = do_piece, .finish = finish_piece, .wake = wake_collector};

/* ---- the contract's functions ---- */

static enum oct_err cpu_submit(struct oct_engine *engine, const struct oct_engine_job *jobs,
                               unsigned n)
{
    pthread_mutex_lock(engine->lock);
    if (engine->last - engine->first + n > engine->depth) {
        pthread_mutex_unlock(engine->lock);
        return OCT_E_AGAIN;
    }
    for (unsigned k = 0; k < n; k++) {
        struct job *job = job_at(engine, engine->last);
        oct_bscan_take(&job->bscan, &engine->chain, &jobs[k]);
        job->whole = false;
        enter(engine, job, PHASE_BEGIN);
        engine->last++;
    }
    engine->n_new += n;
    n = oct_workers_to_call(engine->pool, &engine->source, n, 0);
    pthread_mutex_unlock(engine->lock);
    oct_workers_call(engine->pool, n);
    return OCT_OK;
}

static enum oct_err cpu_collect(struct oct_engine *engine, uint64_t timeout_us,
                                struct oct_image_frame **done)
{
    struct timespec deadline = oct_clock_deadline(timeout_us);
    enum oct_err e = OCT_OK;

    pthread_mutex_lock(engine->lock);
    struct job *oldest = job_at(engine, engine->first);
    while (engine->first == engine->last || oldest->phase != PHASE_DONE)
        if (!oct_condition_wait_until(&engine->finished, engine->lock, &deadline)) {
            e = OCT_E_AGAIN;
            break;
        }
    if (engine->first != engine->last && oldest->phase == PHASE_DONE) {
        e = OCT_OK;
        *done = oldest->bscan.job.out;
        engine->first++;
        engine->n_done--;
    }
    pthread_mutex_unlock(engine->lock);
    return e;
}

/* Frees the engine's memory, also of an engine that never joined the pool. */
static void free_engine(struct oct_engine *engine)
{
    oct_workers_destroy(engine->own_pool);
    for (unsigned t = 0; engine->workers && t < engine->n_threads; t++)
        oct_bscan_scratch_finish(&engine->workers[t].scratch);
    for (unsigned i = 0; engine->jobs && i < engine->depth; i++)
        oct_bscan_finish(&engine->jobs[i].bscan);
    while (engine->n_scratch > 0)
        free(engine->scratch[--engine->n_scratch]);
    free(engine->scratch);
    free(engine->workers);
    free(engine->jobs);
    oct_bscan_chain_finish(&engine->chain);
    pthread_cond_destroy(&engine->finished);
    free(engine);
}

static void cpu_destroy(struct oct_engine *engine)
{
    if (!engine)
        return;
    oct_workers_remove(engine->pool, &engine->source);
    free_engine(engine);
}

/* ---- creation ---- */

static enum oct_err alloc_jobs(struct oct_engine *engine, struct oct_error *err)
{
    unsigned n_shares = engine->always_whole ? 0 : count_shares(engine);
    enum oct_err e = OCT_OK;
    engine->jobs = calloc(engine->depth, sizeof(*engine->jobs));
    engine->scratch = calloc(engine->depth, sizeof(*engine->scratch));
    for (unsigned i = 0; engine->jobs && engine->scratch && i < engine->depth && !e; i++) {
        struct oct_bscan *b = &engine->jobs[i].bscan;
        e = oct_bscan_init(b, &engine->chain, n_shares);
        engine->jobs[i].phase = PHASE_DONE;
        engine->scratch[engine->n_scratch++] = b->scratch;
        b->scratch = NULL;
    }
    if (e || !engine->jobs || !engine->scratch)
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "CPU engine: out of memory for %u B-scans of %u lines and %u pixels",
                        engine->depth, engine->plan->geometry.n_lines,
                        engine->plan->geometry.depth);
    return OCT_OK;
}

static enum oct_err alloc_workers(struct oct_engine *engine, struct oct_error *err)
{
    engine->workers =
        oct_aligned_calloc(alignof(struct worker), engine->n_threads, sizeof(*engine->workers));
    if (!engine->workers)
        return oct_fail(err, OCT_E_NO_MEMORY, "CPU engine: out of memory for %u workers",
                        engine->n_threads);
    for (unsigned t = 0; t < engine->n_threads; t++) {
        enum oct_err e = oct_bscan_scratch_init(&engine->workers[t].scratch, &engine->chain, err);
        if (e)
            return e;
    }
    return OCT_OK;
}

/* Chooses how B-scans of this size are shared out among the workers. */
static void share_out(struct oct_engine *engine, const struct oct_geometry *g)
{
    /* Work in lines of 2048 samples: one takes about 5 us. */
    const uint64_t work = (uint64_t)g->n_lines * g->padded / 2048;
    /* Small enough that workers end together, large enough that the lock costs nothing; whole
     * pairs. */
    engine->chunk_lines = g->n_lines / (engine->n_threads * 8) / 2 * 2 + 2;
    if (engine->chunk_lines > 16)
        engine->chunk_lines = 16;
    engine->always_whole = work <= MOST_ALWAYS_WHOLE;
    engine->whole_when_behind = work <= MOST_WHOLE;
    engine->depth = LEAST_DEPTH;
    if (!engine->whole_when_behind)
        return;
    uint64_t depth = (uint64_t)WORK_IN_FLIGHT * engine->n_threads / work;
    if (depth < 2 * engine->n_threads)
        depth = 2 * engine->n_threads;
    unsigned most = engine->always_whole ? MOST_DEPTH : MOST_SHARES / count_shares(engine);
    most = most < MOST_DEPTH ? most : MOST_DEPTH;
    if (depth > LEAST_DEPTH)
        engine->depth = depth < most ? (unsigned)depth : most;
}

static enum oct_err choose_pool(struct oct_engine *engine, const struct oct_engine_options *options,
                                struct oct_error *err)
{
    engine->pool = options->workers;
    if (!engine->pool) {
        enum oct_err e = oct_workers_create(&engine->own_pool, options->n_threads, err);
        if (e)
            return e;
        engine->pool = engine->own_pool;
    }
    engine->n_threads = oct_workers_n_threads(engine->pool);
    engine->lock = oct_workers_lock(engine->pool);
    return OCT_OK;
}

/* B-scans that are always whole call as many workers as they are. One that may be shared out calls
 * all, its single pieces too, for more will follow. */
static void join_pool(struct oct_engine *engine)
{
    engine->source = (struct oct_work_source){.ops = &work_ops, .calls_all = !engine->always_whole};
    oct_workers_add(engine->pool, &engine->source);
}

static enum oct_err cpu_create(struct oct_engine **out, const struct oct_plan *plan,
                               const struct oct_engine_options *options, struct oct_error *err)
{
    *out = NULL;
    const struct oct_stages *stages = oct_stages_select(options->simd);
    if (!stages)
        return oct_fail(err, OCT_E_CONFIG, "pipeline.simd is %s: this CPU cannot run it; use auto",
                        options->simd);
    struct oct_engine *engine = calloc(1, sizeof(*engine));
    if (!engine)
        return oct_fail(err, OCT_E_NO_MEMORY, "CPU engine: out of memory");
    engine->plan = plan;
    oct_condition_init(&engine->finished);
    enum oct_err e = choose_pool(engine, options, err);
    if (!e) {
        share_out(engine, &plan->geometry);
        e = oct_bscan_chain_init(&engine->chain, plan, stages, options->wisdom_dir, err);
    }
    if (!e)
        e = alloc_jobs(engine, err);
    if (!e)
        e = alloc_workers(engine, err);
    if (e) {
        free_engine(engine);
        return e;
    }
    snprintf(engine->description, sizeof(engine->description), "%u thread%s, %s", engine->n_threads,
             engine->n_threads == 1 ? "" : "s", stages->name);
    join_pool(engine);
    *out = engine;
    return OCT_OK;
}

static const char *cpu_describe(const struct oct_engine *engine)
{
    return engine->description;
}

static unsigned cpu_depth(const struct oct_engine *engine)
{
    return engine->depth;
}

/* A CPU gains nothing from batches: every line is its own transform. */
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
