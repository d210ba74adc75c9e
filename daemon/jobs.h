/* Slow work, off the loop: building a session (FFT plans take up to seconds), starting a recording
 * (looks at a disk), draining and ending. One job at a time, in a thread of libuv's pool; the main
 * thread begins it and is called when it ends. So no control reply is delayed.
 *
 * | job    | the session meanwhile                                        |
 * |--------|--------------------------------------------------------------|
 * | BUILD  | is the job's: the old one goes in, the new one comes out     |
 * | RECORD | stays the daemon's too: only the recorder's lock is shared   |
 * | TRY    | stays the daemon's too: its plan alone is read               |
 * | DRAIN  | stays the daemon's too, for status and counts alone          |
 * | END    | is the job's                                                 | */
#ifndef OCT_DAEMON_JOBS_H
#define OCT_DAEMON_JOBS_H

#include "daemon/forecast.h"
#include "daemon/session.h"

#include <uv.h>

enum oct_job_kind {
    OCT_JOB_NONE,
    OCT_JOB_BUILD,
    OCT_JOB_RECORD,
    OCT_JOB_TRY, /* measures the engine while nothing arrives; not requested by a client */
    OCT_JOB_DRAIN,
    OCT_JOB_END
};

struct oct_daemon_job {
    uv_work_t work;
    enum oct_job_kind kind; /* NONE: no job runs */
    uint64_t begun_ns;      /* by oct_job_begin */
    struct oct_session *session;
    struct oct_config config;            /* as it was when the job began */
    char name[32];                       /* of the session: the run's, and its number */
    struct oct_access *keys;             /* BUILD: borrowed; NULL: no keys are configured */
    bool open;                           /* BUILD: take lines at once */
    struct oct_epochs epochs;            /* BUILD: whose lines are heard */
    struct oct_daemon_forecast forecast; /* BUILD, RECORD: in and out */
    struct oct_forecast_series rates;    /* TRY: out */
    bool refused;         /* BUILD: the new configuration was refused; session is the old one */
    struct oct_error err; /* code OCT_OK: done */
    void (*done)(struct oct_daemon_job *job); /* main thread; kind is still set */
};

/* The caller has set job->kind and the members that it needs. */
void oct_job_begin(struct oct_daemon_job *job, uv_loop_t *loop);

#endif
