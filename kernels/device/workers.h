/* The worker pool: one a process, shared by reconstruction and analysis.
 *
 * Reconstruction always goes first: a worker that is free takes a piece of a B-scan if there is
 * one, else a piece of an analysis. A piece that was begun is finished, or gives way in its middle
 * (oct_workers_give_way), so one worker of several takes none of analyses while all others are at
 * them: B-scans go on, by that worker alone while the pieces are long. Short ones, of a few
 * milliseconds, leave them nearly all. */
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

/* Calls run(context, piece, worker) once for every piece 0 .. n_pieces - 1, each by some thread of
 * the pool (n_threads - 1 at a time, if more than one) or by the caller, and returns when all are
 * done. While a source of pictures is there the caller begins no piece and waits, so that no more
 * threads compute than the pool has. worker < n_threads + 1 tells which, for scratch memory of its
 * own: the caller is n_threads. Any thread may call, several at once; a piece must not call it.
 * workers NULL: the caller does all pieces, as worker 0. */
void oct_workers_run(struct oct_workers *workers, unsigned n_pieces,
                     void (*run)(void *context, unsigned piece, unsigned worker), void *context);

/* Calls run(context, piece, worker) for the pieces 0 .. n_pieces - 1 one after another, each by
 * some worker, and returns when all are done; the caller only waits. Between two pieces a worker
 * goes to pictures if there are any, so that no more threads compute than the pool has. workers
 * NULL: the caller does all pieces, as worker 0. */
void oct_workers_run_in_turn(struct oct_workers *workers, unsigned n_pieces,
                             void (*run)(void *context, unsigned piece, unsigned worker),
                             void *context);

/* Called within a piece of an analysis, with the worker that it was given: does the pieces of
 * pictures that there are, then returns. A piece that calls it holds pictures up for no longer than
 * from one call to the next. The piece's thread holds no lock. Where that thread is none of the
 * pool's, or workers is NULL, nothing is done. */
void oct_workers_give_way(struct oct_workers *workers, unsigned worker);

/* ---- sources: who has pieces that follow from one another, as an engine's do ---- */

/* Where workers look for pieces. A worker asks the sources of the first rank, then those of the
 * next; sources of one rank take turns, a piece each. The owner keeps what its pieces are under the
 * pool's lock, which each worker takes once a piece.
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

enum oct_work_rank { OCT_WORK_PICTURES, OCT_WORK_ANALYSES, OCT_WORK_N_RANKS };

/* The owner sets ops, rank and calls_all before oct_workers_add. */
struct oct_work_source {
    const struct oct_work_ops *ops;
    enum oct_work_rank rank;
    /* New pieces call all sleeping workers at once; false: as many as there are pieces. Called by
     * ones, two workers often woke on one core and shared it while the other stood idle (0.7 or
     * 1.2 ms a B-scan, by luck). */
    bool calls_all;

    /* The pool's own, guarded by its lock. */
    struct oct_work_source *next, *previous; /* a circle, of the same rank */
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
