/* Threads at work on CUDA devices, and what becomes of them when a device hangs. C alone: what a
 * thread does on its device lies behind its owner's functions.
 *
 *     crew_init -> worker_start ... -> { set_busy, wait | crew_wait } -> crew_finish
 *
 * A *worker* is a thread; a *crew* is all workers of one owner (an engine, an analysis). A CUDA
 * call may block for ever when a device hangs, so only workers make any, and everybody else waits
 * for them with a deadline. A worker that is busy and shows no progress for the deadline is given
 * up, and with it the crew: it is dead, and its owner hands back as lost what was in flight.
 * Threads that never come back keep the owner's memory, the crew within it; the last that does come
 * back frees it. Deadlines count looks at which nothing moved, not the clock: a machine that stands
 * still or is slow is no device that hangs. A process that ends while a worker is left to itself
 * ends without the exit handlers of others, of which the driver's would wait for the device.
 *
 * Locks: fields are read and written under crew.lock but for what a thread alone uses; functions
 * marked (locked) are called with it held, all others without. */
#ifndef OCT_KERNELS_DEVICE_CUDA_WORKER_H
#define OCT_KERNELS_DEVICE_CUDA_WORKER_H

#include "kernels/device/cuda_device.h"
#include "pipeline/base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct oct_cuda_crew;

struct oct_cuda_worker {
    unsigned device;             /* set by the owner before the worker is busy; for messages */
    struct oct_cuda_signs signs; /* between its thread and the others */
    bool ready;                  /* its owner may count on it */
    bool busy;                   /* not idle, and not waiting for another worker */
    /* The rest is the crew's. */
    struct oct_cuda_crew *crew;
    struct oct_cuda_worker *next;
    void (*run)(struct oct_cuda_worker *worker, void *context);
    void *context;
    uint64_t silent_ns; /* without progress while busy, as others have looked */
    uint32_t n_calls;   /* of its signs, at that look */
};

struct oct_cuda_crew_ops {
    const char *name; /* in messages: "CUDA engine" */

    /* Threads use memory that others own: none of it is given back (cuda_memory.h) while a crew
     * that was given up still has threads. */
    bool uses_lent_memory;

    /* (locked) The crew is dead: nothing in flight will be done. May be called by any thread. */
    void (*lose)(void *owner, const struct oct_error *why);

    /* No thread is left. Called once, by crew_finish or by the last thread after it. */
    void (*free)(void *owner);
};

struct oct_cuda_crew {
    pthread_mutex_t lock;
    pthread_cond_t work;    /* the owner's: there is something to do; also stopping, dead */
    pthread_cond_t changed; /* something is done, a worker ready, a thread at its end */
    bool stopping;          /* workers return from run */
    bool dead;              /* because of why: workers return from run */
    struct oct_error why;
    /* The rest is the crew's. */
    const struct oct_cuda_crew_ops *ops;
    void *owner;
    uint64_t deadline_us;
    struct oct_cuda_worker *workers; /* that were started */
    unsigned n_threads;              /* that have not ended */
    uint64_t looked_ns;              /* at the workers' clocks */
    bool holds_memory;
    bool abandoned; /* crew_finish has returned before the threads have ended */
};

/* deadline_ms 0: 2000. */
void oct_cuda_crew_init(struct oct_cuda_crew *crew, const struct oct_cuda_crew_ops *ops,
                        void *owner, unsigned deadline_ms);

/* Starts a thread that calls run, and waits until that has called worker_is_ready. run returns when
 * the crew is stopping or dead, after it has given back what it took from the device. worker:
 * zeroed but for device, in the owner's memory. OCT_E_BACKEND: nothing has moved for a minute;
 * `what` is the subject of the message. After an error only crew_finish is legal. */
enum oct_err oct_cuda_worker_start(struct oct_cuda_crew *crew, struct oct_cuda_worker *worker,
                                   void (*run)(struct oct_cuda_worker *worker, void *context),
                                   void *context, const char *what, struct oct_error *err);

/* By a worker's thread: it has begun well, or the crew cannot start, because of why. */
void oct_cuda_worker_is_ready(struct oct_cuda_worker *worker);
void oct_cuda_crew_refuse(struct oct_cuda_crew *crew, const struct oct_error *why);

/* (locked) Starts the worker's clock again. A busy worker is given up when no call of it has come
 * back from the device for the deadline. */
void oct_cuda_worker_set_busy(struct oct_cuda_worker *worker, bool busy);

/* By a worker's thread: asks poll until it says something else than OCT_E_AGAIN, and naps
 * meanwhile, because the driver's own waits have no deadline. OCT_E_BACKEND after the deadline:
 * `what` has not been finished. */
enum oct_err oct_cuda_worker_wait(const struct oct_cuda_worker *worker,
                                  enum oct_err (*poll)(void *context, struct oct_error *err),
                                  void *context, const char *what, struct oct_error *err);

/* (locked) Waits for `changed`, for a short while and at most for timeout_us, and gives the crew up
 * if a busy worker was silent for longer than the deadline. */
void oct_cuda_crew_wait(struct oct_cuda_crew *crew, uint64_t timeout_us);

/* (locked) The crew is dead from here on; calls lose. Once only, later calls do nothing. */
void oct_cuda_crew_give_up(struct oct_cuda_crew *crew, const struct oct_error *why);

/* Ends the threads and frees the owner, both later if a device hangs: waits for threads while they
 * move, and for one and a half deadlines when nothing does. */
void oct_cuda_crew_finish(struct oct_cuda_crew *crew);

#endif
