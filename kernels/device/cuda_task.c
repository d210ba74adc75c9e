#include "kernels/device/cuda_task.h"

#include "kernels/device/cuda_choice.h"
#include "kernels/device/cuda_worker.h"
#include "pipeline/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define A_WHILE_US 1000000u

struct oct_cuda_tasks {
    const struct oct_cuda_task_ops *ops;
    char gpus[256], description[160];
    void *setup;                    /* a copy */
    struct oct_cuda_crew_ops about; /* the crew has the analysis' name */
    struct oct_cuda_crew crew;      /* its lock guards the next two */
    enum { IDLE, ASKED, DONE } state;
    struct oct_error outcome; /* of the task that is done; the code alone where it is OCT_OK */
    struct oct_cuda_worker worker;
    /* Only the thread uses these, except in take and give, which run while it is idle. */
    struct oct_cuda_stream *stream;
    void *context;
};

/* ---- the worker's thread ---- */

static enum oct_err create_worker(struct oct_cuda_tasks *tasks, struct oct_error *err)
{
    struct oct_cuda_choice choice;
    enum oct_err e = oct_cuda_choose(&choice, tasks->gpus, NULL, NULL, err);
    if (e)
        return e;
    choice.n_gpus = 1;
    tasks->worker.device = choice.devices[0];
    e = oct_cuda_choice_describe(&choice, tasks->description, sizeof(tasks->description), err);
    if (!e)
        e = oct_cuda_stream_create(&tasks->stream, choice.devices[0], &tasks->worker.signs, err);
    return e ? e : tasks->ops->make(&tasks->context, tasks->stream, tasks->setup, err);
}

static void unmake(struct oct_cuda_tasks *tasks)
{
    if (tasks->stream)
        oct_cuda_stream_drain(tasks->stream);
    if (tasks->context)
        tasks->ops->unmake(tasks->context);
    oct_cuda_stream_destroy(tasks->stream);
}

static enum oct_err poll_stream(void *stream, struct oct_error *err)
{
    return oct_cuda_stream_poll(stream, err);
}

/* The stream is idle afterwards, also when begin has queued a part and then refused. */
static enum oct_err process(struct oct_cuda_tasks *tasks, struct oct_error *err)
{
    struct oct_error refusal;
    enum oct_err refused = tasks->ops->begin(tasks->context, &refusal);
    enum oct_err e = refused == OCT_E_BACKEND ? OCT_OK : oct_cuda_stream_mark(tasks->stream, err);
    if (!e && refused != OCT_E_BACKEND)
        e = oct_cuda_worker_wait(&tasks->worker, poll_stream, tasks->stream, "a task", err);
    if (e) { /* the stream may stay busy for any time */
        err->code = OCT_E_BACKEND;
        return OCT_E_BACKEND;
    }
    if (refused)
        *err = refusal;
    return refused;
}

static void serve(struct oct_cuda_tasks *tasks)
{
    struct oct_cuda_crew *crew = &tasks->crew;
    pthread_mutex_lock(&crew->lock);
    while (!crew->stopping && !crew->dead) {
        if (tasks->state != ASKED) {
            pthread_cond_wait(&crew->work, &crew->lock);
            continue;
        }
        struct oct_error err = {.code = OCT_OK};
        oct_cuda_worker_set_busy(&tasks->worker, true);
        pthread_mutex_unlock(&crew->lock);
        enum oct_err e = process(tasks, &err);
        pthread_mutex_lock(&crew->lock);
        oct_cuda_worker_set_busy(&tasks->worker, false);
        if (e == OCT_E_BACKEND) {
            oct_cuda_crew_give_up(crew, &err);
        } else {
            tasks->outcome = err;
            tasks->outcome.code = e;
            tasks->state = DONE;
            pthread_cond_broadcast(&crew->changed);
        }
    }
    pthread_mutex_unlock(&crew->lock);
}

static void run_task(struct oct_cuda_worker *worker, void *context)
{
    struct oct_cuda_tasks *tasks = context;
    struct oct_error err;
    if (create_worker(tasks, &err)) {
        oct_cuda_crew_refuse(&tasks->crew, &err);
    } else {
        oct_cuda_worker_is_ready(worker);
        serve(tasks);
    }
    unmake(tasks);
}

/* ---- the caller's ---- */

static void lose(void *owner, const struct oct_error *why)
{
    const struct oct_cuda_tasks *tasks = owner;
    oct_log(OCT_LOG_ERROR, "%s on the GPU given up: %s", tasks->ops->name, why->text);
}

static void free_tasks(void *owner)
{
    struct oct_cuda_tasks *tasks = owner;
    free(tasks->setup);
    free(tasks);
}

enum oct_err oct_cuda_tasks_create(struct oct_cuda_tasks **out, const struct oct_cuda_task_ops *ops,
                                   const char *gpus, unsigned deadline_ms, const void *setup,
                                   size_t setup_bytes, struct oct_error *err)
{
    *out = NULL;
    if (!oct_cuda_built_with())
        return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA");
    struct oct_cuda_tasks *tasks = calloc(1, sizeof(*tasks));
    void *copy = malloc(setup_bytes ? setup_bytes : 1);
    if (!tasks || !copy) {
        free(tasks);
        free(copy);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %s on a GPU", ops->name);
    }
    if (setup_bytes)
        memcpy(copy, setup, setup_bytes);
    tasks->ops = ops;
    tasks->setup = copy;
    tasks->about = (struct oct_cuda_crew_ops){.name = ops->name, .lose = lose, .free = free_tasks};
    oct_cuda_crew_init(&tasks->crew, &tasks->about, tasks, deadline_ms);
    enum oct_err e = OCT_OK;
    if (gpus && strlen(gpus) >= sizeof(tasks->gpus))
        e = oct_fail(err, OCT_E_CONFIG, "pipeline.gpus is too long");
    else if (gpus)
        snprintf(tasks->gpus, sizeof(tasks->gpus), "%s", gpus);
    if (!e)
        e = oct_cuda_worker_start(&tasks->crew, &tasks->worker, run_task, tasks, "the CUDA driver",
                                  err);
    if (e)
        oct_cuda_tasks_destroy(tasks);
    else
        *out = tasks;
    return e;
}

const char *oct_cuda_tasks_describe(const struct oct_cuda_tasks *tasks)
{
    return tasks->description;
}

/* Until the worker has done its task or is given up. */
static enum oct_err wait_for_worker(struct oct_cuda_tasks *tasks, struct oct_error *err)
{
    struct oct_cuda_crew *crew = &tasks->crew;
    pthread_mutex_lock(&crew->lock);
    tasks->state = ASKED;
    pthread_cond_broadcast(&crew->work);
    while (tasks->state != DONE && !crew->dead)
        oct_cuda_crew_wait(crew, A_WHILE_US);
    const struct oct_error *outcome = crew->dead ? &crew->why : &tasks->outcome;
    enum oct_err e = outcome->code;
    if (e && err)
        *err = *outcome;
    pthread_mutex_unlock(&crew->lock);
    return e;
}

static bool is_dead(struct oct_cuda_tasks *tasks, struct oct_error *err)
{
    pthread_mutex_lock(&tasks->crew.lock);
    bool dead = tasks->crew.dead;
    if (dead && err)
        *err = tasks->crew.why;
    pthread_mutex_unlock(&tasks->crew.lock);
    return dead;
}

enum oct_err oct_cuda_tasks_do(struct oct_cuda_tasks *tasks, void *task, struct oct_error *err)
{
    if (is_dead(tasks, err)) /* its context may be gone */
        return OCT_E_BACKEND;
    if (tasks->ops->take)
        tasks->ops->take(tasks->context, task);
    enum oct_err e = wait_for_worker(tasks, err);
    if (!e && tasks->ops->give)
        tasks->ops->give(tasks->context, task);
    return e;
}

void oct_cuda_tasks_destroy(struct oct_cuda_tasks *tasks)
{
    if (tasks)
        oct_cuda_crew_finish(&tasks->crew);
}
