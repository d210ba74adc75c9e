/* The worker pool: one a process, shared by reconstruction and analysis.
 *
 * Reconstruction always goes first: a worker that is free takes a piece of a B-scan if there is
 * one, else a piece of an analysis. A piece that was begun is finished. */
#ifndef OCT_KERNELS_DEVICE_WORKERS_H
#define OCT_KERNELS_DEVICE_WORKERS_H

#include "pipeline/base/err.h"

struct oct_workers;

/* n_threads 0: one a core that this process may use. Threads are called octd-worker. */
enum oct_err oct_workers_create(struct oct_workers **workers, unsigned n_threads,
                                struct oct_error *err);

/* Nobody may be using it. NULL is fine. */
void oct_workers_destroy(struct oct_workers *workers);

unsigned oct_workers_n_threads(const struct oct_workers *workers);

/* Calls run(context, piece, worker) once for every piece 0 .. n_pieces - 1, each by some thread of
 * the pool or by the caller, and returns when all are done. worker < n_threads + 1 tells which, for
 * scratch memory of its own: the caller is n_threads. Any thread may call, several at once; a piece
 * must not call it. workers NULL: the caller does all pieces, as worker 0. */
void oct_workers_run(struct oct_workers *workers, unsigned n_pieces,
                     void (*run)(void *context, unsigned piece, unsigned worker), void *context);

#endif
