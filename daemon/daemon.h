/* The daemon: configuration, session and what control may ask of them. Main thread only. */
#ifndef OCT_DAEMON_DAEMON_H
#define OCT_DAEMON_DAEMON_H

#include "daemon/outlook.h"
#include "daemon/session.h"
#include "daemon/state.h"

struct oct_daemon {
    struct oct_config config;
    void *zmq_context;           /* of the control socket; a session has its own */
    struct oct_session *session; /* NULL: the last start failed */
    struct oct_outlook outlook;
    bool stale;               /* a key has changed since the session was built */
    uint64_t refused_senders; /* messages of ended acquisitions when last told */
    const char *engine;       /* that ran when last looked at, of engine_session */
    const struct oct_session *engine_session;
    bool want_shutdown;
    uint64_t started_ns;
    uint64_t record_ns; /* when recording was last started */
    char name[32];      /* of this run: UTC time of its start */
    char last_error[OCT_ERROR_TEXT_BYTES];
};

/* Makes the ZeroMQ context and the first session. config is copied. */
enum oct_err oct_daemon_init(struct oct_daemon *daemon, const struct oct_config *config,
                             struct oct_error *err);

/* Drains, closes files whole, frees. */
void oct_daemon_finish(struct oct_daemon *daemon);

enum oct_state oct_daemon_state(const struct oct_daemon *daemon);

/* What the control commands do. Each refusal fills err. */
enum oct_err oct_daemon_start(struct oct_daemon *daemon, struct oct_error *err);
enum oct_err oct_daemon_stop(struct oct_daemon *daemon, struct oct_error *err);
enum oct_err oct_daemon_record(struct oct_daemon *daemon, bool start, struct oct_error *err);
enum oct_err oct_daemon_set(struct oct_daemon *daemon, const char *key, const char *value,
                            struct oct_error *err);

/* Several times a second: takes note of failures in the threads. */
void oct_daemon_look_around(struct oct_daemon *daemon);

/* The status reply as JSON text, malloc'd by cJSON; NULL when out of memory. */
char *oct_daemon_status(const struct oct_daemon *daemon);

#endif
