#include "daemon/daemon.h"

#include "config/apply.h"
#include "pipeline/clock.h"
#include "pipeline/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <zmq.h>

static void keep_error(struct oct_daemon *d, const struct oct_error *err)
{
    snprintf(d->last_error, sizeof(d->last_error), "%s", err->text);
}

static enum oct_err build_session(struct oct_daemon *d, bool open, struct oct_error *err)
{
    enum oct_err e = oct_session_create(&d->session, &d->config, d->name, open, err);
    if (e) {
        keep_error(d, err);
        return e;
    }
    d->stale = false;
    oct_outlook_measure(&d->outlook, &d->config, d->session);
    return OCT_OK;
}

enum oct_err oct_daemon_init(struct oct_daemon *d, const struct oct_config *config,
                             struct oct_error *err)
{
    time_t now = time(NULL);
    struct tm utc;

    *d = (struct oct_daemon){.config = *config, .started_ns = oct_clock_ns()};
    gmtime_r(&now, &utc);
    strftime(d->name, sizeof(d->name), "%Y%m%dT%H%M%SZ", &utc);
    d->zmq_context = zmq_ctx_new();
    if (!d->zmq_context)
        return oct_fail(err, OCT_E_NO_MEMORY, "no ZeroMQ context: %s", zmq_strerror(zmq_errno()));
    zmq_ctx_set(d->zmq_context, ZMQ_MAX_SOCKETS, 64);
    return build_session(d, config->daemon.autostart, err);
}

void oct_daemon_finish(struct oct_daemon *d)
{
    oct_session_destroy(d->session);
    d->session = NULL;
    if (d->zmq_context)
        while (zmq_ctx_term(d->zmq_context) != 0 && zmq_errno() == EINTR)
            ; /* a signal; asked again, it goes on waiting */
    d->zmq_context = NULL;
}

enum oct_state oct_daemon_state(const struct oct_daemon *d)
{
    struct oct_recorder_status recorder;
    if (!d->session)
        return oct_state_of(true, false, false);
    oct_recorder_get_status(d->session->recorder, &recorder);
    return oct_state_of(oct_pipeline_has_failed(d->session->pipeline, NULL),
                        oct_ingest_gate_is_open(d->session->ingest), recorder.active);
}

static enum oct_err refuse(const struct oct_daemon *d, enum oct_action action,
                           struct oct_error *err)
{
    const char *why = oct_state_refuses(oct_daemon_state(d), action);
    return why ? oct_fail(err, OCT_E_STATE, "%s", why) : OCT_OK;
}

enum oct_err oct_daemon_start(struct oct_daemon *d, struct oct_error *err)
{
    enum oct_err e = refuse(d, OCT_ACTION_START, err);
    if (e)
        return e;
    /* What stands is given up only for what can stand. */
    struct oct_plan *plan;
    if (d->stale && (e = oct_config_plan(&d->config, &plan, err))) {
        keep_error(d, err);
        return e;
    }
    if (d->stale)
        oct_plan_destroy(plan);
    if (d->session && (d->stale || oct_pipeline_has_failed(d->session->pipeline, NULL))) {
        oct_session_destroy(d->session);
        d->session = NULL;
    }
    if (!d->session)
        e = build_session(d, true, err);
    else
        oct_ingest_set_gate(d->session->ingest, true);
    if (e == OCT_OK)
        d->last_error[0] = '\0';
    return e;
}

enum oct_err oct_daemon_stop(struct oct_daemon *d, struct oct_error *err)
{
    enum oct_err e = refuse(d, OCT_ACTION_STOP, err);
    if (e || !d->session)
        return e;
    oct_ingest_set_gate(d->session->ingest, false); /* first: what has arrived is recorded too */
    oct_recorder_stop(d->session->recorder);
    return OCT_OK;
}

enum oct_err oct_daemon_record(struct oct_daemon *d, bool start, struct oct_error *err)
{
    enum oct_err e = refuse(d, start ? OCT_ACTION_RECORD_START : OCT_ACTION_RECORD_STOP, err);
    if (e)
        return e;
    if (start) {
        oct_outlook_measure(&d->outlook, &d->config, d->session);
        e = oct_session_record(d->session, &d->config, err);
        if (e) {
            keep_error(d, err);
        } else {
            d->last_error[0] = '\0';
            d->record_ns = oct_clock_ns();
        }
    } else if (d->session) {
        oct_recorder_stop(d->session->recorder);
    }
    return e;
}

/* A change is tried on a copy first. Whether the calibration files fit shows at the next start: a
 * new camera takes several keys, and none of them fits alone. */
enum oct_err oct_daemon_set(struct oct_daemon *d, const char *key, const char *value,
                            struct oct_error *err)
{
    struct oct_config changed = d->config;
    struct oct_geometry geometry;
    enum oct_config_when when;

    enum oct_err e = oct_config_when(key, &when, err);
    if (e)
        return e;
    if (when == OCT_CONFIG_START)
        return oct_fail(err, OCT_E_STATE, "%s can change only at the daemon's start", key);
    e = refuse(d, when == OCT_CONFIG_IDLE ? OCT_ACTION_SET_IDLE_KEY : OCT_ACTION_SET_LIVE_KEY, err);
    if (e)
        return e;
    if ((e = oct_config_set(&changed, key, value, "control", err)) ||
        (e = oct_config_check(&changed, err)) ||
        (e = oct_config_geometry(&changed, &geometry, err)))
        return e;
    d->config = changed;
    if (when == OCT_CONFIG_IDLE) {
        d->stale = true;
    } else if (d->session) {
        struct oct_display display;
        oct_config_display(&d->config, &display);
        oct_pipeline_set_display(d->session->pipeline, &display);
    }
    return OCT_OK;
}

/* A few leftovers of a sender that restarted are as it should be; many are a second camera. */
static void note_refused_sender(struct oct_daemon *d)
{
    enum { MANY = 16 };
    uint64_t refused = oct_ingest_counts(d->session->ingest)->messages_bad[OCT_BAD_EPOCH];
    struct oct_error err;
    if (refused < d->refused_senders) /* a new session counts anew */
        d->refused_senders = 0;
    if (refused < d->refused_senders + MANY)
        return;
    oct_fail(&err, OCT_E_FORMAT,
             "a second sender pushes lines of an acquisition that ended: its messages are refused "
             "(%llu so far); stop one of the two",
             (unsigned long long)refused);
    if (d->refused_senders == 0)
        oct_log(OCT_LOG_WARNING, "%s", err.text);
    keep_error(d, &err);
    d->refused_senders = refused;
}

/* The engine that took over goes on; what happened stays to be seen. */
static void note_failover(struct oct_daemon *d)
{
    const char *engine = oct_pipeline_engine_name(d->session->pipeline);
    struct oct_error err;
    if (d->engine && strcmp(d->engine, engine) != 0 && d->engine_session == d->session) {
        oct_fail(&err, OCT_E_BACKEND, "the %s engine failed, the %s engine goes on (%s)", d->engine,
                 engine, oct_pipeline_engine_description(d->session->pipeline));
        keep_error(d, &err);
    }
    d->engine = engine;
    d->engine_session = d->session;
}

void oct_daemon_look_around(struct oct_daemon *d)
{
    struct oct_recorder_status recorder;
    struct oct_error failure;
    if (!d->session)
        return;
    oct_outlook_follow(&d->outlook, &d->config, d->session);
    oct_recorder_get_status(d->session->recorder, &recorder);
    if (recorder.failure.code)
        keep_error(d, &recorder.failure);
    if (oct_pipeline_has_failed(d->session->pipeline, &failure))
        keep_error(d, &failure);
    note_refused_sender(d);
    note_failover(d);
}
