/* A CUDA worker for analyses: one thread with a stream on one GPU, which does one task after the
 * other for a caller that waits, and never longer than the deadline.
 *
 *     create: [make]  ->  { do: take | [begin, poll ...] | give }  ->  destroy: [unmake]
 *
 * What is in brackets runs in the worker's thread, the rest in the caller's. Only take and give see
 * the task, so that a thread which comes back late touches nothing of the caller's: take copies the
 * input into the context's pinned memory, begin queues work on that, give copies the result out.
 *
 * Threads: one thread calls do, one task at a time; create and destroy are called while it does
 * not. States: after OCT_E_BACKEND from do the device is gone; only destroy is legal, any further
 * do says so again. What a hanging device may still use (the context, the stream's memory) is kept
 * and freed by the worker's thread when it returns. */
#ifndef OCT_KERNELS_DEVICE_CUDA_TASK_H
#define OCT_KERNELS_DEVICE_CUDA_TASK_H

#include "kernels/device/cuda_stream.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct oct_cuda_tasks;

struct oct_cuda_task_ops {
    const char *name; /* in messages: "registration" */

    /* Makes the context: tables and buffers by the stream's functions, plans, and every kernel
     * once, so that none is loaded within a deadline. setup: create's copy. *context is NULL on
     * error, and what was made is undone. */
    enum oct_err (*make)(void **context, struct oct_cuda_stream *stream, const void *setup,
                         struct oct_error *err);

    /* NULL: the task has no input. It must not call the device and must not block. */
    void (*take)(void *context, const void *task);

    /* Queues the task's work on the stream, and does not wait for it. OCT_E_BACKEND: the device is
     * gone; any other error concerns this task alone. */
    enum oct_err (*begin)(void *context, struct oct_error *err);

    /* NULL: the task has no result. Called after the device has done what begin has queued. */
    void (*give)(void *context, void *task);

    /* Frees what the stream does not own. Called when the stream is drained. */
    void (*unmake)(void *context);
};

/* gpus: as pipeline.gpus; the first of them is taken; NULL or "": the first that answers.
 * deadline_ms 0: 2000. setup_bytes at setup are copied; what pointers in them refer to must outlive
 * the worker, which may run on after it was given up. On error *tasks is NULL: OCT_E_CONFIG for
 * gpus, OCT_E_BACKEND, OCT_E_NO_MEMORY, or what make returns. */
enum oct_err oct_cuda_tasks_create(struct oct_cuda_tasks **tasks,
                                   const struct oct_cuda_task_ops *ops, const char *gpus,
                                   unsigned deadline_ms, const void *setup, size_t setup_bytes,
                                   struct oct_error *err);

/* "GPU 0: NAME". Valid until destroy. */
const char *oct_cuda_tasks_describe(const struct oct_cuda_tasks *tasks);

/* Does a task and blocks until it is done; `task` is passed to take and give. */
enum oct_err oct_cuda_tasks_do(struct oct_cuda_tasks *tasks, void *task, struct oct_error *err);

/* Waits for the thread, but not for a device that hangs. NULL is fine. */
void oct_cuda_tasks_destroy(struct oct_cuda_tasks *tasks);

#ifdef __cplusplus
}
#endif

#endif
