/* Notices what happens by itself: jobs that end, gates that open, recordings, senders, failures.
 * Passes each as an event to the state table, and begins the next job that is due. */
#include "daemon/daemon.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/net/connections.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- jobs ---- */

static void after_build(struct oct_daemon *d, struct oct_daemon_job *job)
{
    d->session = job->session;
    d->source = (struct oct_source){.streaming = false};
    d->driver.watch = NULL; /* the next session's may have the same address */
    d->line_rate.watch = NULL;
    d->failed_over = false;
    if (job->err.code) {
        d->outcome = job->err;
        oct_daemon_keep_error(d, &job->err);
        if (d->was_ready) /* else octd ends with this message */
            oct_log(OCT_LOG_ERROR, "not started: %s", job->err.text);
        oct_daemon_happens(d, job->refused ? OCT_EVENT_BUILD_REFUSED : OCT_EVENT_BUILD_FAILED);
        return;
    }
    /* stop may have come meanwhile, after which any driver is heard (oct_rescan_give_up) */
    d->stale = job->epochs.only_followers && !d->rescan.only_followers;
    d->was_ready = true;
    /* Live keys may have changed meanwhile; on_job_done makes the forecast anew. */
    oct_daemon_apply(d, OCT_APPLIES_DISPLAY | OCT_APPLIES_ANALYSIS);
    oct_ingest_ask_gate(d->session->ingest, d->open);
    if (!d->open)
        oct_daemon_happens(d, OCT_EVENT_BUILT_SHUT);
}

static void after_record(struct oct_daemon *d, const struct oct_daemon_job *job)
{
    bool cancelled = d->record_cancelled;
    d->record_cancelled = false;
    if (job->err.code) {
        d->outcome = job->err;
        oct_daemon_keep_error(d, &job->err);
        oct_log(OCT_LOG_ERROR, "recording not started: %s", job->err.text);
        return;
    }
    d->last_error[0] = '\0';
    d->record_ns = oct_clock_ns();
    oct_recorder_set_volumes(d->session->recorder, d->record_volumes); /* it may have changed */
    if (cancelled)
        oct_recorder_stop(d->session->recorder);
}

static void after_try(struct oct_daemon *d, const struct oct_daemon_job *job)
{
    oct_forecast_series_add(&d->session->engine_rates, job->rates.rate[0], job->rates.waited[0]);
    oct_daemon_forecast_measured(&d->forecast, &d->config, d->session);
}

static void on_job_done(struct oct_daemon_job *job)
{
    struct oct_daemon *d = (struct oct_daemon *)((char *)job - offsetof(struct oct_daemon, job));
    enum oct_job_kind kind = job->kind;

    if (kind == OCT_JOB_BUILD || kind == OCT_JOB_RECORD)
        d->forecast = job->forecast;
    if (kind == OCT_JOB_BUILD)
        after_build(d, job);
    else if (kind == OCT_JOB_RECORD)
        after_record(d, job);
    else if (kind == OCT_JOB_TRY)
        after_try(d, job);
    if (d->session) /* live keys may have changed since the job began to measure */
        oct_daemon_forecast_changed(&d->forecast, &d->config, d->session);
    job->kind = OCT_JOB_NONE;
    job->session = NULL;
    if (kind == OCT_JOB_DRAIN) { /* the counts are final */
        job->session = d->session;
        d->session = NULL;
        job->kind = OCT_JOB_END;
        oct_job_begin(job, d->loop);
    }
    oct_daemon_tick(d);
}

static void begin_job(struct oct_daemon *d, enum oct_job_kind kind)
{
    struct oct_daemon_job *job = &d->job;

    job->kind = kind;
    job->done = on_job_done;
    job->session = d->session;
    job->open = d->open;
    job->forecast = d->forecast;
    job->keys = d->access;
    job->config = d->config;
    if (kind == OCT_JOB_RECORD) { /* the file says what is in force */
        job->config.scan.line_rate_hz = oct_line_rate_hz(&d->line_rate, &d->config);
        job->config.record.volumes = d->record_volumes;
    }
    if (kind == OCT_JOB_BUILD) {
        job->epochs = oct_rescan_next_epochs(d);
        /* Each session counts its acquisitions from 1, and none may be taken for another. */
        snprintf(job->name, sizeof(job->name), "%.20s.%u", d->name, d->rescan.number);
        d->session = NULL;
    }
    oct_job_begin(job, d->loop);
}

/* Whether the engine may be measured again: nothing arrives and nothing is under way. Not with a
 * GPU: a second engine on it takes memory and seconds, and other programs seldom slow it down. */
static bool may_try(const struct oct_daemon *d)
{
    return (d->state == OCT_STATE_IDLE || d->state == OCT_STATE_ARMED) && d->session && !d->stale &&
           !oct_daemon_is_recording(d) && !d->source.streaming && !d->recorder.history.saving &&
           !d->errand.runs && strcmp(d->session->engine_name, "cpu") == 0 &&
           strcmp(oct_pipeline_engine_name(d->session->pipeline), "cpu") == 0;
}

/* A session that goes must have no errand that reads its ring. */
static bool session_must_stay(struct oct_daemon *d)
{
    const bool goes = d->want_shutdown || (d->must_build && d->state == OCT_STATE_STARTING);
    return goes && d->session &&
           !oct_errand_leave(&d->errand, "the daemon is ending or starting anew");
}

static void begin_what_is_due(struct oct_daemon *d)
{
    bool is_quiet = may_try(d);
    if (d->job.kind != OCT_JOB_NONE || session_must_stay(d))
        return;
    if (d->want_shutdown) {
        if (d->session)
            begin_job(d, OCT_JOB_DRAIN);
        else
            d->has_ended = true;
    } else if (d->must_build && d->state == OCT_STATE_STARTING) {
        d->must_build = false;
        begin_job(d, OCT_JOB_BUILD);
    } else if (d->must_record) {
        d->must_record = false;
        if (d->state == OCT_STATE_RECORDING)
            begin_job(d, OCT_JOB_RECORD);
    } else if (d->must_build && d->state == OCT_STATE_DRAINING) {
        d->must_build = false; /* stopped before it began */
        oct_daemon_happens(d, d->session ? OCT_EVENT_DRAINED : OCT_EVENT_BUILD_FAILED);
    } else if (oct_daemon_forecast_is_due(&d->idle, is_quiet, oct_clock_ns())) {
        begin_job(d, OCT_JOB_TRY);
    }
}

/* ---- failures ---- */

/* Records a failover: the engine that took over goes on, the error stays in the status. */
static void note_failover(struct oct_daemon *d)
{
    const char *engine = oct_pipeline_engine_name(d->session->pipeline);
    const char *before = d->session->engine_name;
    struct oct_error err;
    if (d->failed_over || strcmp(before, engine) == 0)
        return;
    d->failed_over = true;
    oct_fail(&err, OCT_E_BACKEND, "the %s engine failed, the %s engine goes on (%s)", before,
             engine, oct_pipeline_engine_description(d->session->pipeline));
    oct_daemon_keep_error(d, &err);
}

static void note_failures(struct oct_daemon *d)
{
    const struct oct_recorder_status *recorder = &d->recorder;
    struct oct_error failure;

    if (recorder->failure.code)
        oct_daemon_keep_error(d, &recorder->failure);
    else if (recorder->history.failure.code)
        oct_daemon_keep_error(d, &recorder->history.failure);
    if (oct_pipeline_has_failed(d->session->pipeline, &failure)) {
        oct_daemon_keep_error(d, &failure);
        oct_daemon_happens(d, OCT_EVENT_ENGINE_FAILED);
    }
    note_failover(d);
}

/* ---- states that end by themselves ---- */

static void tick_source(struct oct_daemon *d)
{
    const struct oct_plan *plan = oct_pipeline_plan(d->session->pipeline);
    const uint64_t volume_lines =
        (uint64_t)oct_scan_sent_lines(&plan->scan) * plan->geometry.n_bscans;
    double quiet_s = d->config.ingest.idle_s > 0 ? d->config.ingest.idle_s : 1;

    oct_source_look(&d->source, oct_ingest_counts(d->session->ingest), (uint64_t)(quiet_s * 1e9),
                    volume_lines, oct_clock_ns());
    oct_driver_look(&d->driver, oct_ingest_driver(d->session->ingest), &d->config, oct_clock_ns());
    oct_line_rate_look(&d->line_rate, oct_ingest_driver(d->session->ingest), &d->config,
                       oct_clock_ns());
    oct_daemon_happens(d, d->source.streaming ? OCT_EVENT_SOURCE_BEGAN : OCT_EVENT_SOURCE_SILENT);
}

/* Waits for the gate, then stops the recorder, then waits for the B-scans in flight. */
static void tick_drain(struct oct_daemon *d)
{
    if (d->job.kind != OCT_JOB_NONE || oct_ingest_gate_is_open(d->session->ingest))
        return;
    oct_recorder_stop(d->session->recorder); /* after the lines that had arrived */
    if (!oct_daemon_is_recording(d) && oct_session_n_in_flight(d->session) == 0)
        oct_daemon_happens(d, OCT_EVENT_DRAINED);
}

/* If the engine holds nothing, a recording that was told to stop is waiting for its disk. */
static void log_what_is_left(struct oct_daemon *d)
{
    uint64_t n_in_engine =
        d->session ? oct_pipeline_get_progress(d->session->pipeline).n_waiting : 0;
    if (d->session && d->recorder.stopping && n_in_engine == 0)
        oct_fail(&d->outcome, OCT_E_IO,
                 "not drained within %.6g s (daemon.drain_s): the disk has not taken %" PRIu64
                 " B-scans yet, the recording is not closed: allow more time, or record on another "
                 "disk (record.directory)",
                 d->config.daemon.drain_s,
                 d->recorder.account.pending + d->recorder.keeper.n_waiting);
    else
        oct_fail(&d->outcome, OCT_E_IO,
                 "not drained within %.6g s (daemon.drain_s): %" PRIu64
                 " B-scans have not left the engine%s",
                 d->config.daemon.drain_s, n_in_engine,
                 oct_daemon_is_recording(d) ? "; the recording is not closed" : "");
}

static void note_overdue(struct oct_daemon *d)
{
    if (d->state != OCT_STATE_DRAINING || oct_clock_ns() < d->drain_by_ns)
        return;
    log_what_is_left(d);
    oct_daemon_keep_error(d, &d->outcome);
    oct_log(OCT_LOG_ERROR, "%s", d->outcome.text);
    oct_daemon_happens(d, OCT_EVENT_OVERDUE);
}

/* Does nothing while a job measures: the job returns a new forecast. */
static void tick_forecast(struct oct_daemon *d)
{
    double bytes_free;
    if (!oct_disk_bytes_free(&d->disk, d->config.record.directory, &bytes_free))
        bytes_free = -1;
    d->forecast.camera_hz = d->line_rate.measured_hz;
    if (d->job.kind == OCT_JOB_NONE)
        oct_daemon_forecast_tick(&d->forecast, &d->config, d->session, bytes_free);
}

/* Reads the ring after the recorder, so that no B-scan has passed the recorder that the ring does
 * not count. */
static void look_at_recorder(struct oct_daemon *d)
{
    oct_recorder_get_status(d->session->recorder, &d->recorder);
    d->n_images = oct_ring_published(oct_pipeline_images(d->session->pipeline));
}

static void tick_session(struct oct_daemon *d)
{
    oct_daemon_analyses_look(&d->session->analyses);
    look_at_recorder(d);
    oct_backlog_look(&d->backlog, &d->recorder, oct_clock_ns());
    note_failures(d);
    tick_source(d);
    tick_forecast(d);
    if (d->state == OCT_STATE_STARTING && !d->must_build &&
        oct_ingest_gate_is_open(d->session->ingest))
        oct_daemon_happens(d, OCT_EVENT_OPENED);
    if (d->state == OCT_STATE_RECORDING && !oct_daemon_is_recording(d))
        oct_daemon_happens(d, OCT_EVENT_RECORD_ENDED);
    if (d->state == OCT_STATE_DRAINING && !d->want_shutdown)
        tick_drain(d);
}

static void note_changed_files(struct oct_daemon *d)
{
    const char *path;
    while ((path = oct_file_watch_look(&d->watch, d->loop)))
        oct_log(OCT_LOG_WARNING,
                "%s has changed: octd goes on with what it said at the start; start octd anew to "
                "take it over",
                path);
}

/* Once a minute at most, as a refused client may connect again ten times a second. */
static void log_refused_connections(struct oct_turned_away *t, uint64_t n, const char *what)
{
    const uint64_t minute_ns = UINT64_C(60000000000);
    uint64_t now_ns = oct_clock_ns();
    if (n == t->n || (t->told_ns && now_ns - t->told_ns < minute_ns))
        return;
    oct_log(OCT_LOG_WARNING, "%" PRIu64 " connections were %s", n - t->n, what);
    t->n = n;
    t->told_ns = now_ns;
}

void oct_daemon_tick(struct oct_daemon *d)
{
    if (!d->want_shutdown)
        note_changed_files(d);
    log_refused_connections(
        &d->not_taken, oct_connections_not_taken(),
        "closed at once: no file descriptors are left for more (raise ulimit -n, or "
        "look who connects)");
    log_refused_connections(&d->viewers_cut, oct_connections_viewers_cut(),
                            "cut off: a viewer sent or subscribed to more than any needs (look who "
                            "connects to publish.endpoint)");
    log_refused_connections(&d->flooded, oct_connections_flooded_all(),
                            "cut: a message of more than 16 parts (lines have 2, a request 1 to 3; "
                            "look who sends)");
    oct_daemon_look_at_errand(d);
    if (d->session)
        tick_session(d);
    if (d->want_shutdown)
        d->is_overdue = !d->has_ended && oct_clock_ns() > d->drain_by_ns;
    else
        note_overdue(d);
    oct_rescan_tick(d);
    begin_what_is_due(d);
    if (!d->want_shutdown)
        oct_disk_look(&d->disk, d->loop, d->config.record.directory);
}
