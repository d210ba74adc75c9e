#include "daemon/daemon.h"

#include "config/analysis.h"
#include "config/apply.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/net/zsocket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <zmq.h>

void oct_daemon_keep_error(struct oct_daemon *d, const struct oct_error *err)
{
    snprintf(d->last_error, sizeof(d->last_error), "%s", err->text);
}

/* Applies an event to the state table; returns NULL, or why it is refused. */
static const char *step(struct oct_daemon *d, enum oct_event event)
{
    enum oct_state before = d->state;
    const char *why = oct_state_apply(&d->state, event);
    if (d->state == before)
        return why;
    if (d->state == OCT_STATE_DRAINING)
        d->drain_by_ns = oct_clock_ns() + (uint64_t)(d->config.daemon.drain_s * 1e9);
    /* A failure of the first start is not logged here: octd ends with a line that says it. */
    if (event != OCT_EVENT_BUILD_FAILED || d->was_ready)
        oct_log(OCT_LOG_INFO, "%s: %s -> %s", oct_event_names[event], oct_state_names[before],
                oct_state_names[d->state]);
    return NULL;
}

void oct_daemon_happens(struct oct_daemon *d, enum oct_event event)
{
    step(d, event);
}

static enum oct_err apply_command(struct oct_daemon *d, enum oct_event event, struct oct_error *err)
{
    const char *why = d->want_shutdown ? "the daemon is ending" : step(d, event);
    if (!why)
        return OCT_OK;
    bool soon = oct_state_is_passing(d->state) && !d->want_shutdown;
    return oct_fail(err, soon ? OCT_E_AGAIN : OCT_E_STATE, "%s", why);
}

/* Runs before anything else is built, so that no socket is ever open to keys that the configuration
 * does not allow. */
static enum oct_err build_security(struct oct_daemon *d, struct oct_error *err)
{
    const struct oct_config *c = &d->config;
    const bool guarded = c->security.server_key[0] != '\0';
    struct oct_error why;
    /* octctl allow uses the folder alone; a daemon with one of the two would be open to
     * everyone. */
    if (guarded != (c->security.allowed[0] != '\0')) {
        oct_fail_key(&why, OCT_E_CONFIG, "security.server_key security.allowed",
                     "security.server_key and security.allowed belong together: give both or none");
        return oct_config_blame(c, &why, err);
    }
    if (oct_zsocket_check(c->ingest.endpoint, "ingest.endpoint", guarded, &why) ||
        oct_zsocket_check(c->publish.endpoint, "publish.endpoint", guarded, &why) ||
        oct_zsocket_check(c->control.endpoint, "control.endpoint", guarded, &why))
        return oct_config_blame(c, &why, err);
    if (guarded && oct_access_create(&d->access, c->security.server_key, c->security.allowed, &why))
        return oct_config_blame(c, &why, err);
    return oct_door_create(&d->door, d->zmq_context, d->access, err);
}

enum oct_err oct_daemon_init(struct oct_daemon *d, uv_loop_t *loop, const struct oct_config *config,
                             struct oct_error *err)
{
    time_t now = time(NULL);
    struct tm utc;

    *d = (struct oct_daemon){.config = *config,
                             .loop = loop,
                             .state = OCT_STATE_STARTING,
                             .must_build = true,
                             .open = config->daemon.autostart,
                             .started_ns = oct_clock_ns()};
    gmtime_r(&now, &utc);
    strftime(d->name, sizeof(d->name), "%Y%m%dT%H%M%SZ", &utc);
    d->zmq_context = zmq_ctx_new();
    if (!d->zmq_context)
        return oct_fail(err, OCT_E_NO_MEMORY, "no ZeroMQ context: %s", zmq_strerror(zmq_errno()));
    zmq_ctx_set(d->zmq_context, ZMQ_MAX_SOCKETS, 64);
    const enum oct_err e = oct_rescan_init(d, err);
    return e ? e : build_security(d, err);
}

void oct_daemon_finish(struct oct_daemon *d)
{
    oct_errand_finish(&d->errand);
    oct_door_destroy(d->door);
    d->door = NULL;
    if (d->zmq_context)
        while (zmq_ctx_term(d->zmq_context) != 0 && zmq_errno() == EINTR)
            ; /* interrupted by a signal: call again to go on waiting */
    d->zmq_context = NULL;
    oct_access_destroy(d->access);
    d->access = NULL;
}

bool oct_daemon_is_recording(const struct oct_daemon *d)
{
    if (d->must_record || d->job.kind == OCT_JOB_RECORD)
        return true;
    return d->session && d->recorder.active;
}

bool oct_daemon_is_settled(const struct oct_daemon *d)
{
    if (d->want_shutdown)
        return true;
    /* A try was not requested; requests wait for its end, some 50 ms. */
    return (d->job.kind == OCT_JOB_NONE || d->job.kind == OCT_JOB_TRY) && !d->must_build &&
           !d->must_record && d->rescan.step == OCT_RESCAN_NONE && !oct_state_is_passing(d->state);
}

/* ---- commands ---- */

enum oct_err oct_daemon_start(struct oct_daemon *d, struct oct_error *err)
{
    enum oct_state before = d->state;
    enum oct_err e = apply_command(d, OCT_EVENT_START, err);
    if (e)
        return e;
    d->last_error[0] = '\0';
    if (before != OCT_STATE_STARTING)
        d->outcome = (struct oct_error){.code = OCT_OK};
    d->open = true;
    if (d->state != OCT_STATE_STARTING || d->must_build || d->job.kind == OCT_JOB_BUILD)
        return OCT_OK;
    if (!d->session || d->stale || oct_pipeline_has_failed(d->session->pipeline, NULL))
        d->must_build = true;
    else
        oct_ingest_ask_gate(d->session->ingest, true);
    return OCT_OK;
}

static void stop_recording(struct oct_daemon *d)
{
    d->must_record = false;
    d->record_cancelled = d->job.kind == OCT_JOB_RECORD;
    if (d->session)
        oct_recorder_stop(d->session->recorder);
}

enum oct_err oct_daemon_stop(struct oct_daemon *d, struct oct_error *err)
{
    enum oct_err e = apply_command(d, OCT_EVENT_STOP, err);
    if (e)
        return e;
    d->outcome = (struct oct_error){.code = OCT_OK};
    d->open = false;
    oct_errand_leave(&d->errand, "stop came before its B-scans had");
    if (d->state == OCT_STATE_ERROR)
        stop_recording(d);
    /* Closes the gate first, so that lines that have arrived are recorded too. tick.c then stops
     * the recorder. */
    if (d->session)
        oct_ingest_ask_gate(d->session->ingest, false);
    return OCT_OK;
}

enum oct_err oct_daemon_record(struct oct_daemon *d, bool start, const uint32_t *volumes,
                               struct oct_error *err)
{
    if (start && !d->want_shutdown && oct_rescan_is_under_way(d))
        return oct_fail(err, OCT_E_AGAIN, "the scan is being changed: ask again in a moment");
    enum oct_err e = apply_command(d, start ? OCT_EVENT_RECORD_START : OCT_EVENT_RECORD_STOP, err);
    if (e)
        return e;
    if (!start) {
        d->rescan.must_record = false;
        stop_recording(d);
        return OCT_OK;
    }
    d->outcome = (struct oct_error){.code = OCT_OK};
    d->must_record = true;
    d->record_volumes = volumes ? *volumes : d->config.record.volumes;
    return OCT_OK;
}

enum oct_err oct_daemon_record_last(struct oct_daemon *d, const char *name, struct oct_error *err)
{
    if (!d->session)
        return oct_fail(err, OCT_E_STATE,
                        "the daemon is in error: see last_error, then send start");
    struct oct_config config = d->config;
    config.scan = d->session->scan; /* another may be configured already */
    config.scan.line_rate_hz = oct_line_rate_hz(&d->line_rate, &config);
    return oct_session_record(d->session, &config, true, name, err);
}

static enum oct_err may_take(const struct oct_daemon *d, const char *name, struct oct_error *err)
{
    if (d->want_shutdown)
        return oct_fail(err, OCT_E_STATE, "the daemon is ending");
    if (oct_state_is_passing(d->state) || oct_rescan_is_under_way(d))
        return oct_fail(err, OCT_E_AGAIN,
                        "the daemon is starting, stopping or changing its scan: ask again in a "
                        "moment");
    if (d->state == OCT_STATE_ERROR || !d->session)
        return oct_fail(err, OCT_E_STATE,
                        "the daemon is in error: see last_error, then send start");
    if (d->state == OCT_STATE_IDLE)
        return oct_fail(err, OCT_E_STATE,
                        "%s needs lines from the camera, and the daemon is idle: send start", name);
    if (!d->source.streaming)
        return oct_fail(err, OCT_E_STATE, "%s needs lines from the camera, and none come: start it",
                        name);
    return OCT_OK;
}

void oct_daemon_look_at_errand(struct oct_daemon *d)
{
    const bool ran = d->errand.runs;
    if (!oct_errand_look(&d->errand) && ran && d->session)
        oct_calibrate_show(&d->errand, &d->session->calibrate);
}

enum oct_err oct_daemon_errand(struct oct_daemon *d, const struct oct_errand_ops *ops, void *work,
                               unsigned n_bscans, uint64_t timeout_us, struct oct_error *err)
{
    enum oct_err e = may_take(d, ops->name, err);
    if (e) {
        ops->destroy(work);
        return e;
    }
    oct_daemon_look_at_errand(d); /* what the one before computed is shown before it is gone */
    return oct_errand_begin(&d->errand, ops, work, oct_pipeline_raw(d->session->pipeline), n_bscans,
                            timeout_us, err);
}

enum oct_err oct_daemon_calibrate(struct oct_daemon *d, struct oct_error *err)
{
    enum oct_err e = may_take(d, oct_calibrate_ops.name, err);
    if (e)
        return e;
    void *work = oct_calibrate_create(d->session->plan, (1u << d->config.camera.bits) - 1);
    if (!work)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a calibration");
    return oct_daemon_errand(d, &oct_calibrate_ops, work, OCT_CALIBRATE_BSCANS,
                             OCT_CALIBRATE_TIMEOUT_US, err);
}

/* ---- live keys ---- */

void oct_daemon_apply(struct oct_daemon *d, unsigned applies)
{
    struct oct_display display;
    if (!d->session)
        return; /* the next session is built from d->config */
    oct_config_display(&d->config, &display);
    if (applies & OCT_APPLIES_DISPLAY)
        oct_pipeline_set_display(d->session->pipeline, &display);
    if (applies & OCT_APPLIES_ANALYSIS)
        oct_daemon_analyses_configure(&d->session->analyses, &d->config);
    if (applies & OCT_APPLIES_RECORDER) {
        d->record_volumes = d->config.record.volumes;
        oct_recorder_set_volumes(d->session->recorder, d->record_volumes);
    }
    if (applies & OCT_APPLIES_FORECAST)
        oct_daemon_forecast_changed(&d->forecast, &d->config, d->session);
}

static bool is_concerned(const char *analysis, const char *key, const struct oct_config *changed)
{
    return oct_config_analysis_has(analysis, key) &&
           oct_config_analysis_is_asked(changed, analysis);
}

/* Whether the key of an analysis waits for the next start: the daemon is stopped, and the pipeline
 * that it keeps has no such analysis, or is to be built anew anyway. */
static bool waits_for_start(const struct oct_daemon *d, const struct oct_config *changed,
                            const char *key)
{
    for (unsigned i = 0; i < oct_n_analyses && d->state == OCT_STATE_IDLE; i++) {
        const char *name = oct_analyses[i]->name;
        if (is_concerned(name, key, changed) &&
            (d->stale || oct_daemon_analyses_refusal(&d->session->analyses, name) ||
             !oct_daemon_analyses_have(&d->session->analyses, name)))
            return true;
    }
    return false;
}

/* Whether the analyses that the key belongs to can take its settings up: they would say so only
 * later, in the status. */
static enum oct_err check_analysis(const struct oct_daemon *d, const struct oct_config *changed,
                                   const char *key, struct oct_error *err)
{
    for (unsigned i = 0; i < oct_n_analyses; i++) {
        const char *name = oct_analyses[i]->name;
        if (!is_concerned(name, key, changed))
            continue;
        const char *why = oct_daemon_analyses_refusal(&d->session->analyses, name);
        if (why)
            return oct_fail(err, OCT_E_STATE, "%s: %s did not start (%s): stop, set it and start",
                            key, name, why);
        if (!oct_daemon_analyses_have(&d->session->analyses, name))
            return oct_fail(err, OCT_E_STATE,
                            "%s: the analysis %s does not run: name it in analysis.run, or stop, "
                            "set this key and start",
                            key, name);
        enum oct_err e =
            oct_config_analysis_check(changed, name, oct_pipeline_form(d->session->pipeline), err);
        if (e)
            return e;
    }
    return OCT_OK;
}

/* A recording under way keeps all keys as its files say, but for those that it is told of. */
static enum oct_err may_set(struct oct_daemon *d, enum oct_param_when when, unsigned applies,
                            struct oct_error *err)
{
    if (d->state == OCT_STATE_RECORDING && !d->want_shutdown && (applies & OCT_APPLIES_RECORDER))
        return OCT_OK;
    return apply_command(
        d, when == OCT_CONFIG_IDLE ? OCT_EVENT_SET_IDLE_KEY : OCT_EVENT_SET_LIVE_KEY, err);
}

/* Tries a change on a copy first. Whether the calibration files fit is checked only at the next
 * start: a new camera takes several keys, and a single one would not fit the rest. */
enum oct_err oct_daemon_set(struct oct_daemon *d, const char *key, const char *value,
                            struct oct_error *err)
{
    struct oct_config changed = d->config;
    struct oct_geometry geometry;
    enum oct_param_when when;
    unsigned applies;

    enum oct_err e = oct_config_when(key, &when, &applies, err);
    if (e)
        return e;
    if (when == OCT_CONFIG_START)
        return oct_fail(err, OCT_E_STATE, "%s can change only at the daemon's start", key);
    struct oct_error why;
    e = may_set(d, when, applies, &why);
    if (e)
        return oct_fail(err, e, "%s: %s", key, why.text);
    if ((e = oct_config_set(&changed, key, value, "control", err)) ||
        (e = oct_config_check(&changed, err)) ||
        (e = oct_config_geometry(&changed, &geometry, err)))
        return e;
    const bool is_live = when == OCT_CONFIG_LIVE;
    const bool waits =
        !is_live || (d->session && waits_for_start(d, &changed, key)); /* for the next start */
    if (d->session && !waits && (e = check_analysis(d, &changed, key, err)))
        return e;
    d->config = changed;
    if (strncmp(key, "scan.", 5) == 0) /* what a change of the scan comes back to has it too */
        oct_rescan_note_set(d, key, value);
    if (waits)
        d->stale = true;
    else
        oct_daemon_apply(d, applies);
    return OCT_OK;
}

void oct_daemon_shut_down(struct oct_daemon *d)
{
    if (d->want_shutdown)
        return;
    step(d, OCT_EVENT_SHUTDOWN);
    d->drain_by_ns = oct_clock_ns() + (uint64_t)(d->config.daemon.drain_s * 1e9);
    d->want_shutdown = true;
    d->open = false;
    d->must_build = false;
    oct_errand_leave(&d->errand, "the daemon is ending");
    if (d->session)
        oct_ingest_ask_gate(d->session->ingest, false);
}
