#include "daemon/jobs.h"

#include "config/apply.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/thread.h"

#include <pthread.h>

/* Destroys the running session only after the new configuration has produced a plan. */
static void build(struct oct_daemon_job *job)
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
                           &job->epochs, &job->err) == OCT_OK)
        oct_daemon_forecast_measure(&job->forecast, &job->config, job->session);
}

static void *run_measure(void *argument)
{
    struct oct_daemon_job *job = argument;
    oct_session_measure(job->session, &job->config, &job->rates);
    return NULL;
}

/* Measures in a thread of its own: memory that an engine has freed stays in the heap of the thread
 * that made it, and libuv may use each of its four threads in turn; a thread that ends passes its
 * heap on to the next. */
static void measure(struct oct_daemon_job *job)
{
    pthread_t thread;
    if (oct_thread_start(&thread, NULL, run_measure, job, "measuring", NULL) == OCT_OK)
        pthread_join(thread, NULL);
}

/* Checks first, so that a refusal comes at once, not after the disk was measured; and measures
 * before the recording starts to write. */
static void record(struct oct_daemon_job *job)
{
    if (oct_session_may_record(job->session, &job->config, &job->err))
        return;
    oct_daemon_forecast_measure(&job->forecast, &job->config, job->session);
    oct_session_record(job->session, &job->config, false, NULL, &job->err);
}

static void run_job(uv_work_t *work)
{
    struct oct_daemon_job *job = work->data;
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
    struct oct_daemon_job *job = work->data;
    (void)status; /* never cancelled */
    job->done(job);
}

void oct_job_begin(struct oct_daemon_job *job, uv_loop_t *loop)
{
    job->work.data = job;
    job->begun_ns = oct_clock_ns();
    job->refused = false;
    job->rates = (struct oct_forecast_series){0};
    job->err = (struct oct_error){.code = OCT_OK};
    uv_queue_work(loop, &job->work, run_job, after);
}
