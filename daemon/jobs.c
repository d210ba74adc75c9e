#include "daemon/jobs.h"

#include "config/apply.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/thread.h"

#include <pthread.h>

/* What stands is given up only for what can stand. */
static void build(struct oct_job *job)
{
    struct oct_plan *plan;
    if (oct_config_plan(&job->config, &plan, &job->err)) {
        job->refused = job->session != NULL;
        return;
    }
    oct_plan_destroy(plan);
    oct_session_destroy(job->session);
    job->session = NULL;
    if (oct_session_create(&job->session, &job->config, job->keys, job->name, job->open,
                           &job->err) == OCT_OK)
        oct_daemon_forecast_measure(&job->forecast, &job->config, job->session);
}

static void *run_measure(void *argument)
{
    struct oct_job *job = argument;
    oct_session_measure(job->session, &job->config, &job->rates);
    return NULL;
}

/* In a thread of its own: what an engine takes stays with the heap of the thread that made it, and
 * libuv hands a job to any of four; a thread that ends leaves its heap to the next. */
static void measure(struct oct_job *job)
{
    pthread_t thread;
    if (oct_thread_start(&thread, NULL, run_measure, job, "measuring", NULL) == OCT_OK)
        pthread_join(thread, NULL);
}

/* What is refused is refused at once, not after the disk has been measured; and measured is what
 * nobody writes to yet. */
static void record(struct oct_job *job)
{
    if (oct_session_may_record(job->session, &job->config, &job->err))
        return;
    oct_daemon_forecast_measure(&job->forecast, &job->config, job->session);
    oct_session_record(job->session, &job->config, &job->err);
}

static void run(uv_work_t *work)
{
    struct oct_job *job = work->data;
    switch (job->kind) {
    case OCT_JOB_BUILD:
        build(job);
        break;
    case OCT_JOB_RECORD:
        record(job);
        break;
    case OCT_JOB_TRY:
        measure(job);
        break;
    case OCT_JOB_DRAIN:
        oct_session_drain(job->session);
        break;
    case OCT_JOB_END:
        oct_session_destroy(job->session);
        break;
    case OCT_JOB_NONE:
        break;
    }
}

static void after(uv_work_t *work, int status)
{
    struct oct_job *job = work->data;
    (void)status; /* never cancelled */
    job->done(job);
}

void oct_job_begin(struct oct_job *job, uv_loop_t *loop)
{
    job->work.data = job;
    job->begun_ns = oct_clock_ns();
    job->refused = false;
    job->rates = (struct oct_forecast_series){0};
    job->err = (struct oct_error){.code = OCT_OK};
    uv_queue_work(loop, &job->work, run, after);
}
