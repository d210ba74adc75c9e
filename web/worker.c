#include "web/worker.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"
#include "pipeline/base/thread.h"

#include <stdlib.h>

struct queue {
    struct oct_web_job *first, **last;
};

struct oct_web_worker {
    pthread_mutex_t lock; /* guards all down to n_jobs */
    pthread_cond_t asked, ended;
    bool ends, has_ended;
    struct queue waiting, worked;
    unsigned n_jobs; /* that are not the owner's */

    void (*notify)(void *context);
    void *context;
};

static void put_job(struct queue *q, struct oct_web_job *job)
{
    job->next = NULL;
    *q->last = job;
    q->last = &job->next;
}

static struct oct_web_job *take_job(struct queue *q)
{
    struct oct_web_job *job = q->first;
    if (job && !(q->first = job->next))
        q->last = &q->first;
    return job;
}

static void *run_worker(void *context)
{
    struct oct_web_worker *w = context;
    pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        struct oct_web_job *job = take_job(&w->waiting);
        if (!job) {
            pthread_cond_wait(&w->asked, &w->lock);
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        job->work(job);
        pthread_mutex_lock(&w->lock);
        put_job(&w->worked, job);
        if (!w->ends)
            w->notify(w->context);
    }
    w->has_ended = true;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void free_worker(struct oct_web_worker *w)
{
    pthread_cond_destroy(&w->asked);
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

enum oct_err oct_web_worker_create(struct oct_web_worker **worker, const char *name,
                                   void (*notify)(void *context), void *context,
                                   struct oct_error *err)
{
    struct oct_web_worker *w = calloc(1, sizeof(*w));
    *worker = NULL;
    if (!w)
        return oct_fail(err, OCT_E_NO_MEMORY, "octweb: out of memory");
    w->waiting.last = &w->waiting.first;
    w->worked.last = &w->worked.first;
    w->notify = notify;
    w->context = context;
    pthread_mutex_init(&w->lock, NULL);
    oct_condition_init(&w->asked);
    oct_condition_init(&w->ended);
    const enum oct_err code = oct_thread_start_detached(name, run_worker, w, "octweb", err);
    if (code)
        free_worker(w);
    else
        *worker = w;
    return code;
}

bool oct_web_worker_give(struct oct_web_worker *w, struct oct_web_job *job)
{
    pthread_mutex_lock(&w->lock);
    const bool takes = w->n_jobs < OCT_WEB_MOST_JOBS;
    if (takes) {
        w->n_jobs++;
        put_job(&w->waiting, job);
        pthread_cond_signal(&w->asked);
    }
    pthread_mutex_unlock(&w->lock);
    return takes;
}

static void give_back(struct oct_web_worker *w, struct queue *q)
{
    for (;;) {
        pthread_mutex_lock(&w->lock);
        struct oct_web_job *job = take_job(q);
        w->n_jobs -= job != NULL;
        pthread_mutex_unlock(&w->lock);
        if (!job)
            return;
        job->done(job);
    }
}

void oct_web_worker_turn(struct oct_web_worker *w)
{
    give_back(w, &w->worked);
}

bool oct_web_worker_end(struct oct_web_worker *w, uint64_t timeout_ns)
{
    const struct timespec end = oct_clock_deadline(timeout_ns / 1000);
    bool in_time = true;
    if (!w)
        return true;
    pthread_mutex_lock(&w->lock);
    w->ends = true;
    pthread_cond_signal(&w->asked);
    while (!w->has_ended && in_time)
        in_time = oct_condition_wait_until(&w->ended, &w->lock, &end);
    const bool has_ended = w->has_ended;
    pthread_mutex_unlock(&w->lock);
    return has_ended;
}

void oct_web_worker_destroy(struct oct_web_worker *w)
{
    if (!w)
        return;
    give_back(w, &w->worked);
    give_back(w, &w->waiting);
    free_worker(w);
}
