/* A session: plan, engine, pipeline, ingest, publisher and recorder, built from one configuration.
 * When a key changes that the plan depends on, the daemon ends the session and builds another.
 *
 * Everything is called by the main thread. */
#ifndef OCT_DAEMON_SESSION_H
#define OCT_DAEMON_SESSION_H

#include "config/config.h"
#include "pipeline/ingest.h"
#include "pipeline/pipeline.h"
#include "pipeline/publisher.h"
#include "pipeline/recorder.h"

struct oct_session {
    void *zmq_context; /* its own: ending it waits until the endpoints are free again */
    struct oct_plan *plan;
    struct oct_pipeline *pipeline;
    struct oct_ingest *ingest;
    struct oct_publisher *publisher;
    struct oct_recorder *recorder;
    double engine_hz;     /* A-lines a second that the engine was seen to compute; 0: unknown */
    char engine_why[256]; /* which engine and why, for the log and the status */
};

/* Builds all of it; on failure nothing is left. name: what acquisition ids start with. `open`: the
 * gate at the start. */
enum oct_err oct_session_create(struct oct_session **session, const struct oct_config *config,
                                const char *name, bool open, struct oct_error *err);

/* Takes what has arrived, reconstructs and records what is in flight, closes files whole, frees.
 * NULL is fine. */
void oct_session_destroy(struct oct_session *session);

/* Starts a recording as the configuration says now. */
enum oct_err oct_session_record(struct oct_session *session, const struct oct_config *config,
                                struct oct_error *err);

#endif
