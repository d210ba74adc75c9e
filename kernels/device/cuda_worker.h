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
 * back frees it. Deadlines count the looks that saw no progress, and of the time between two looks
 * at most 0.2 s: so a machine that was suspended or is slow is not taken for a device that hangs. A
 * process that ends while a worker is left to itself ends without the exit handlers of others, of
 * which the driver's would wait for the device.
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
    uint64_t silent_ns; /* time without progress while busy, summed over the looks */
    uint32_t n_calls;   /* of its signs, at that look */
};

struct oct_cuda_crew_ops {
    const char *name; /* in messages: "CUDA engine" */

    /* Threads use memory that others own. It is not freed (cuda_memory.h) while a crew that was
     * given up still has threads. */
    bool uses_lent_memory;

    /* (locked) The crew is dead: nothing in flight will be done. May be called by any thread. */
    void (*lose)(void *owner, const struct oct_error *why);

    /* (locked) The crew is stopping or was given up: for who waits for conditions of the
     * owner's own. NULL: there are none. */
    void (*wake)(void *owner);

    /* No thread is left. Called once, by crew_finish or by the last thread after it. */
    void (*free)(void *owner);
};

struct oct_cuda_crew {
    pthread_mutex_t lock;
    pthread_cond_t work;    /* the owner's, for its workers; also when stopping or given up */
    pthread_cond_t changed; /* signalled when work is done, a worker is ready or a thread ends */
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

/* Called by a worker's thread: it has started, or the crew cannot start for the reason in why. */
void oct_cuda_worker_is_ready(struct oct_cuda_worker *worker);
void oct_cuda_crew_refuse(struct oct_cuda_crew *crew, const struct oct_error *why);

/* (locked) Starts the worker's clock again. A busy worker is given up when no call of it has come
 * back from the device for the deadline. */
void oct_cuda_worker_set_busy(struct oct_cuda_worker *worker, bool busy);

/* Called by a worker's thread. Calls poll until it returns anything but OCT_E_AGAIN, and sleeps in
 * between, because the driver's own waits have no deadline. OCT_E_BACKEND after the deadline; the
 * message says that `what` has not been finished. */
enum oct_err oct_cuda_worker_wait(const struct oct_cuda_worker *worker,
                                  enum oct_err (*poll)(void *context, struct oct_error *err),
                                  void *context, const char *what, struct oct_error *err);

/* (locked) Waits for `changed`, for a short while and at most for timeout_us, and gives the crew up
 * if a busy worker was silent for longer than the deadline. */
void oct_cuda_crew_wait(struct oct_cuda_crew *crew, uint64_t timeout_us);

/* (locked) Marks the crew as dead and calls lose. Later calls do nothing. */
void oct_cuda_crew_give_up(struct oct_cuda_crew *crew, const struct oct_error *why);

/* Ends the threads and frees the owner; with a device that hangs both happen later. It waits for
 * the threads as long as they make progress, and for one and a half deadlines when none does. */
void oct_cuda_crew_finish(struct oct_cuda_crew *crew);

#endif
