/* A worker pool. octd has two: one of reconstruction, and one of analyses whose threads yield to
 * all others, so that no piece of an analysis, however long, holds up a picture. octctl has one. */
#ifndef OCT_KERNELS_DEVICE_WORKERS_H
#define OCT_KERNELS_DEVICE_WORKERS_H

#include "pipeline/base/err.h"

#include <pthread.h>
#include <stdbool.h>

struct oct_workers;

/* The most threads that a pool starts. */
#define OCT_MOST_WORKERS 256u

/* n_threads 0: one a core that this process may use. Threads are called octd-worker. */
enum oct_err oct_workers_create(struct oct_workers **workers, unsigned n_threads,
                                struct oct_error *err);

/* A pool whose threads yield to all others, as do those that use it. They are called
 * octd-analysis. */
enum oct_err oct_workers_create_yielding(struct oct_workers **workers, unsigned n_threads,
                                         struct oct_error *err);

/* Nobody may be using it. NULL is fine. */
void oct_workers_destroy(struct oct_workers *workers);

unsigned oct_workers_n_threads(const struct oct_workers *workers);

/* Calls run(context, piece, worker) once for every piece 0 .. n_pieces - 1, each by the caller or
 * by some thread of the pool, n_threads - 1 of them at a time, and returns when all are done.
 * worker < n_threads + 1 tells which, for scratch memory of its own: the caller is n_threads. Any
 * thread may call, several at once; a piece must not call it. workers NULL: the caller does all
 * pieces, as worker 0. */
void oct_workers_run(struct oct_workers *workers, unsigned n_pieces,
                     void (*run)(void *context, unsigned piece, unsigned worker), void *context);

/* ---- sources: who has pieces that follow from one another, as an engine's do ---- */

/* Where workers look for pieces; sources take turns, a piece each. The owner keeps what its pieces
 * are under the pool's lock, which each worker takes once a piece.
 *
 *     oct_workers_add -> { pieces come up: to_call, call } -> oct_workers_remove
 */
struct oct_work_source;

struct oct_work_ops {
    /* Lock held. Takes a piece, which the worker keeps until finish; false: there is none. */
    bool (*take)(struct oct_work_source *source, unsigned worker);

    /* Lock not held. Does the piece that this worker took. */
    void (*run)(struct oct_work_source *source, unsigned worker);

    /* Lock held: the piece is done. Returns how many pieces may be begun now that could not before,
     * and sets *wakes where somebody waits for what was done. NULL: no piece follows from another,
     * and nobody waits. */
    unsigned (*finish)(struct oct_work_source *source, unsigned worker, bool *wakes);

    /* Lock not held. Wakes those who wait, after a finish that set *wakes. */
    void (*wake)(struct oct_work_source *source);
};

/* The owner sets ops and calls_all before oct_workers_add. */
struct oct_work_source {
    const struct oct_work_ops *ops;
    /* New pieces call all sleeping workers at once; false: as many as there are pieces. Called by
     * ones, two workers often woke on one core and shared it while the other stood idle (0.7 or
     * 1.2 ms a B-scan, by luck). */
    bool calls_all;

    /* The pool's own, guarded by its lock. */
    struct oct_work_source *next, *previous; /* a circle */
    unsigned n_at_work;                      /* workers between take and the end of finish, wake */
    bool is_leaving;
    pthread_cond_t left; /* n_at_work is 0 */
};

/* Workers that look for a piece ask this source too from now on; those asleep are called for the
 * pieces that come up later. The source must not move. Other sources may be at work. */
void oct_workers_add(struct oct_workers *workers, struct oct_work_source *source);

/* Removes the source: workers take no more of its pieces. Blocks until those that were begun are
 * finished. */
void oct_workers_remove(struct oct_workers *workers, struct oct_work_source *source);

/* The lock that guards take and finish of all sources of the pool. */
pthread_mutex_t *oct_workers_lock(struct oct_workers *workers);

/* Lock held. Announces n_pieces new pieces of the source, n_own of which the caller itself will do.
 * Returns how many workers must be signalled with oct_workers_call. */
unsigned oct_workers_to_call(struct oct_workers *workers, const struct oct_work_source *source,
                             unsigned n_pieces, unsigned n_own);

/* Signals n workers. Lock not held, so that a woken worker does not block on it at once. */
void oct_workers_call(struct oct_workers *workers, unsigned n);

#endif
