#define _GNU_SOURCE /* sched_getaffinity */
#include "kernels/device/workers.h"

#include "pipeline/base/thread.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

struct worker {
    struct oct_workers *pool;
    unsigned number;
    pthread_t thread;
};

struct oct_workers {
    unsigned n_threads, n_started;
    bool yields; /* its threads, to all others */

    pthread_mutex_t lock; /* guards what follows, and what the sources guard by it */
    pthread_cond_t work;
    bool stopping;
    unsigned n_asleep;               /* workers that wait for work */
    unsigned n_called;               /* signals that no worker has answered yet */
    struct oct_work_source *sources; /* of the circle the one to be asked next */
    struct worker workers[];
};

/* ---- sleeping and calling: with the lock held, but for oct_workers_call ---- */

unsigned oct_workers_to_call(struct oct_workers *pool, const struct oct_work_source *source,
                             unsigned n_pieces, unsigned n_own)
{
    if (n_pieces && source->calls_all) {
        pool->n_called = pool->n_asleep;
        pthread_cond_broadcast(&pool->work);
        return 0;
    }
    unsigned n_free = pool->n_asleep - pool->n_called;
    unsigned n_more = n_pieces > n_own ? n_pieces - n_own : 0;
    unsigned n = n_more < n_free ? n_more : n_free;
    pool->n_called += n;
    return n;
}

void oct_workers_call(struct oct_workers *pool, unsigned n)
{
    while (n--)
        pthread_cond_signal(&pool->work);
}

static void sleep_until_called(struct oct_workers *pool)
{
    pool->n_asleep++;
    pthread_cond_wait(&pool->work, &pool->lock);
    pool->n_asleep--;
    pool->n_called -= pool->n_called > 0; /* none after a wake-up out of nothing */
}

/* ---- sources ---- */

static void link_source(struct oct_workers *pool, struct oct_work_source *source)
{
    struct oct_work_source **first = &pool->sources;
    if (!*first)
        *first = source->next = source->previous = source;
    source->next = *first;
    source->previous = (*first)->previous;
    source->previous->next = source->next->previous = source;
}

static void unlink_source(struct oct_workers *pool, struct oct_work_source *source)
{
    struct oct_work_source **first = &pool->sources;
    if (*first == source)
        *first = source->next == source ? NULL : source->next;
    source->previous->next = source->next;
    source->next->previous = source->previous;
}

static void add_source(struct oct_workers *pool, struct oct_work_source *source)
{
    source->n_at_work = 0;
    source->is_leaving = false;
    pthread_cond_init(&source->left, NULL);
    link_source(pool, source);
}

static void remove_source(struct oct_workers *pool, struct oct_work_source *source)
{
    unlink_source(pool, source);
    source->is_leaving = true;
    while (source->n_at_work > 0)
        pthread_cond_wait(&source->left, &pool->lock);
    pthread_cond_destroy(&source->left);
}

void oct_workers_add(struct oct_workers *pool, struct oct_work_source *source)
{
    pthread_mutex_lock(&pool->lock);
    add_source(pool, source);
    pthread_mutex_unlock(&pool->lock);
}

void oct_workers_remove(struct oct_workers *pool, struct oct_work_source *source)
{
    pthread_mutex_lock(&pool->lock);
    remove_source(pool, source);
    pthread_mutex_unlock(&pool->lock);
}

/* Lock held. NULL: nobody has a piece for this worker. */
static struct oct_work_source *take_source(struct oct_workers *pool, unsigned worker)
{
    struct oct_work_source *first = pool->sources, *source = first;
    if (!first)
        return NULL;
    do {
        if (source->ops->take(source, worker)) {
            pool->sources = source->next;
            source->n_at_work++;
            return source;
        }
        source = source->next;
    } while (source != first);
    return NULL;
}

/* Lock held, released while others are woken: the source stays until then. */
static void finish_piece(struct oct_workers *pool, struct oct_work_source *source, unsigned worker)
{
    bool wakes = false;
    unsigned n = 0;
    if (source->ops->finish) {
        n = source->ops->finish(source, worker, &wakes);
        n = oct_workers_to_call(pool, source, n, 1);
    }
    if (n || wakes) {
        pthread_mutex_unlock(&pool->lock);
        if (wakes)
            source->ops->wake(source);
        oct_workers_call(pool, n);
        pthread_mutex_lock(&pool->lock);
    }
    if (--source->n_at_work == 0 && source->is_leaving)
        pthread_cond_signal(&source->left);
}

/* Does the piece that was taken. Lock held, released meanwhile. */
static void do_piece(struct oct_workers *pool, struct oct_work_source *source, unsigned worker)
{
    pthread_mutex_unlock(&pool->lock);
    source->ops->run(source, worker);
    pthread_mutex_lock(&pool->lock);
    finish_piece(pool, source, worker);
}

static void *run_worker(void *argument)
{
    const struct worker *worker = argument;
    struct oct_workers *pool = worker->pool;

    if (pool->yields)
        oct_thread_yield_to_others();
    pthread_mutex_lock(&pool->lock);
    while (!pool->stopping) {
        struct oct_work_source *source = take_source(pool, worker->number);
        if (source)
            do_piece(pool, source, worker->number);
        else
            sleep_until_called(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* ---- pieces that do not follow from one another ---- */

struct batch {
    struct oct_work_source source;
    void (*run)(void *context, unsigned piece, unsigned worker);
    void *context;
    unsigned n_pieces, n_taken, n_done;
    unsigned n_most;                  /* workers at once, beside the caller */
    pthread_cond_t done;              /* all are */
    unsigned piece[OCT_MOST_WORKERS]; /* that each worker has */
};

static bool batch_take(struct oct_work_source *source, unsigned worker)
{
    struct batch *batch = (struct batch *)source;
    if (batch->n_taken == batch->n_pieces || source->n_at_work >= batch->n_most)
        return false;
    batch->piece[worker] = batch->n_taken++;
    return true;
}

static void batch_run(struct oct_work_source *source, unsigned worker)
{
    struct batch *batch = (struct batch *)source;
    batch->run(batch->context, batch->piece[worker], worker);
}

static unsigned batch_finish(struct oct_work_source *source, unsigned worker, bool *wakes)
{
    struct batch *batch = (struct batch *)source;
    (void)worker;
    *wakes = ++batch->n_done == batch->n_pieces;
    return 0;
}

static void batch_wake(struct oct_work_source *source)
{
    pthread_cond_signal(&((struct batch *)source)->done);
}

static const struct oct_work_ops batch_ops = {
    .take = batch_take, .run = batch_run, .finish = batch_finish, .wake = batch_wake};

/* The lock is held from add to the first piece, so that the caller is there to give the signals. */
static void run_batch(struct oct_workers *pool, struct batch *batch)
{
    pthread_cond_init(&batch->done, NULL);
    pthread_mutex_lock(&pool->lock);
    add_source(pool, &batch->source);
    unsigned n = oct_workers_to_call(pool, &batch->source, batch->n_pieces, 1);
    while (batch->n_taken < batch->n_pieces) {
        unsigned piece = batch->n_taken++;
        pthread_mutex_unlock(&pool->lock);
        oct_workers_call(pool, n);
        n = 0;
        batch->run(batch->context, piece, pool->n_threads);
        pthread_mutex_lock(&pool->lock);
        batch->n_done++;
    }
    while (batch->n_done < batch->n_pieces)
        pthread_cond_wait(&batch->done, &pool->lock);
    remove_source(pool, &batch->source);
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_destroy(&batch->done);
}

void oct_workers_run(struct oct_workers *pool, unsigned n_pieces,
                     void (*run)(void *context, unsigned piece, unsigned worker), void *context)
{
    if (pool && n_pieces > 1 && pool->n_threads > 1) {
        struct batch batch;
        batch.source =
            (struct oct_work_source){.ops = &batch_ops, .calls_all = n_pieces > pool->n_threads};
        batch.run = run;
        batch.context = context;
        batch.n_pieces = n_pieces;
        batch.n_taken = batch.n_done = 0;
        batch.n_most = pool->n_threads - 1;
        run_batch(pool, &batch);
        return;
    }
    for (unsigned piece = 0; piece < n_pieces; piece++)
        run(context, piece, pool ? pool->n_threads : 0);
}

/* ---- life ---- */

static unsigned count_cores(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
    return n > 0 ? (unsigned)n : 1;
}

static enum oct_err create(struct oct_workers **out, unsigned n_threads, bool yields,
                           struct oct_error *err)
{
    *out = NULL;
    n_threads = n_threads ? n_threads : count_cores();
    if (n_threads > OCT_MOST_WORKERS)
        n_threads = OCT_MOST_WORKERS;
    struct oct_workers *pool = calloc(1, sizeof(*pool) + n_threads * sizeof(struct worker));
    if (!pool)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the workers");
    pool->n_threads = n_threads;
    pool->yields = yields;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    for (unsigned t = 0; t < n_threads; t++) {
        struct worker *worker = &pool->workers[t];
        *worker = (struct worker){.pool = pool, .number = t};
        char what[32];
        snprintf(what, sizeof(what), "worker %u", t);
        enum oct_err e = oct_thread_start(&worker->thread, yields ? "octd-analysis" : "octd-worker",
                                          run_worker, worker, what, err);
        if (e) {
            oct_workers_destroy(pool);
            return e;
        }
        pool->n_started++;
    }
    *out = pool;
    return OCT_OK;
}

enum oct_err oct_workers_create(struct oct_workers **out, unsigned n_threads, struct oct_error *err)
{
    return create(out, n_threads, false, err);
}

enum oct_err oct_workers_create_yielding(struct oct_workers **out, unsigned n_threads,
                                         struct oct_error *err)
{
    return create(out, n_threads, true, err);
}

void oct_workers_destroy(struct oct_workers *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned t = 0; t < pool->n_started; t++)
        pthread_join(pool->workers[t].thread, NULL);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

unsigned oct_workers_n_threads(const struct oct_workers *pool)
{
    return pool->n_threads;
}

pthread_mutex_t *oct_workers_lock(struct oct_workers *pool)
{
    return &pool->lock;
}
