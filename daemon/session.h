/* A session: plan, engine, pipeline, analyses, ingest, publisher and recorder, built from one
 * configuration. When a key changes that the plan depends on, the daemon ends the session and
 * builds another.
 *
 * One thread at a time calls; see daemon/jobs.h for which. */
#ifndef OCT_DAEMON_SESSION_H
#define OCT_DAEMON_SESSION_H

#include "config/config.h"
#include "daemon/analyses.h"
#include "daemon/calibrate.h"
#include "pipeline/flow/forecast.h"
#include "pipeline/flow/pipeline.h"
#include "pipeline/ingest/ingest.h"
#include "pipeline/net/door.h"
#include "pipeline/publish/publisher.h"
#include "pipeline/record/recorder.h"

struct oct_session {
    struct oct_loss_log *losses; /* from ingest and recorder to the recorder */
    void *zmq_context;           /* the session's own: terminating it waits until the endpoints
                                    are free again */
    struct oct_door *door;       /* NULL: no keys are configured */
    struct oct_plan *plan;
    struct oct_config_scan scan;  /* what the plan was made from */
    struct oct_workers *workers;  /* of engines */
    struct oct_workers *analysts; /* of analyses; they yield to all others */
    struct oct_pipeline *pipeline;
    struct oct_daemon_analyses analyses;
    struct oct_calibrate_topic calibrate;
    struct oct_ingest *ingest;
    struct oct_publisher *publisher;
    struct oct_recorder *recorder;
    struct oct_forecast_series engine_rates; /* A-lines a second, as measured of the engine */
    const char *engine_name;           /* the engine at the start: another may take over when it
                                          fails */
    struct oct_display engine_display; /* the display that the engine was measured with */
    unsigned buffer_bscans;            /* B-scans that a recording may fall behind before it
                                          loses some */
    char engine_why[256];              /* which engine and why, for the log and the status */
};

/* Builds all parts; on failure none is left. keys: borrowed, NULL: no keys are configured. name:
 * what acquisition ids start with. `open`: the gate at the start. epochs: see assembler.h. */
enum oct_err oct_session_create(struct oct_session **session, const struct oct_config *config,
                                struct oct_access *keys, const char *name, bool open,
                                const struct oct_epochs *epochs, struct oct_error *err);

/* Lets a second CPU engine compute noise beside the session, as at the session's start, and adds
 * the measured rate. Reads the session's plan alone; any thread. Takes some 50 ms of all
 * threads. */
void oct_session_measure(const struct oct_session *session, const struct oct_config *config,
                         struct oct_forecast_series *rates);

/* Closes the gate, and waits until all lines that had arrived are reconstructed and recorded and
 * the files are closed. Another thread may read status and counts meanwhile. Only destroy is legal
 * afterwards. */
void oct_session_drain(struct oct_session *session);

/* B-scans begun and neither done nor dropped. */
uint64_t oct_session_n_in_flight(const struct oct_session *session);

/* Closes the gate, reconstructs and records all that had arrived, closes the files, frees. NULL is
 * fine. */
void oct_session_destroy(struct oct_session *session);

/* Whether a recording could start: the folder can be written and holds a volume. Makes the folder.
 * Looks at the disk; any thread. */
enum oct_err oct_session_may_record(const struct oct_session *session,
                                    const struct oct_config *config, struct oct_error *err);

/* Bytes that a B-scan takes in a recording, with its share of what analyses compute; 0: nothing
 * would be recorded. Any thread. */
double oct_session_bscan_bytes(const struct oct_session *session, const struct oct_config *config);

/* Starts a recording as config says, which looks at the disk and may take its time (any thread); or
 * saves the last seconds as file `name` (NULL: one is made) in the record folder. */
enum oct_err oct_session_record(struct oct_session *session, const struct oct_config *config,
                                bool last_seconds, const char *name, struct oct_error *err);

#endif
