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
    if (e)
        keep_error(d, err);
    else
        d->stale = false;
    return e;
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
    if (d->session && (d->stale || oct_pipeline_has_failed(d->session->pipeline, NULL))) {
        oct_session_destroy(d->session);
        d->session = NULL;
    }
    if (!d->session)
        return build_session(d, true, err);
    oct_ingest_set_gate(d->session->ingest, true);
    return OCT_OK;
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
        e = oct_session_record(d->session, &d->config, err);
        if (e)
            keep_error(d, err);
    } else if (d->session) {
        oct_recorder_stop(d->session->recorder);
    }
    return e;
}

/* A change is tried on a copy first: the daemon never holds a configuration that does not stand. */
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
    if (when == OCT_CONFIG_IDLE && (e = refuse(d, OCT_ACTION_SET_IDLE_KEY, err)))
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

void oct_daemon_look_around(struct oct_daemon *d)
{
    struct oct_recorder_status recorder;
    struct oct_error failure;
    if (!d->session)
        return;
    oct_recorder_get_status(d->session->recorder, &recorder);
    if (recorder.failure.code)
        keep_error(d, &recorder.failure);
    if (oct_pipeline_has_failed(d->session->pipeline, &failure))
        keep_error(d, &failure);
}
