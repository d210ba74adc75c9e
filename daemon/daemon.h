/* The daemon: configuration, session, state, and what control may ask of them. Main thread only.
 *
 * Commands change the state (state.h) and return at once; slow work is a job (jobs.h);
 * oct_daemon_tick notices what happens by itself. Nothing here blocks. */
#ifndef OCT_DAEMON_DAEMON_H
#define OCT_DAEMON_DAEMON_H

#include "daemon/backlog.h"
#include "daemon/disk.h"
#include "daemon/driver.h"
#include "daemon/errand.h"
#include "daemon/forecast.h"
#include "daemon/jobs.h"
#include "daemon/line_rate.h"
#include "daemon/rescan.h"
#include "daemon/session.h"
#include "daemon/source.h"
#include "daemon/state.h"
#include "daemon/watch.h"

/* Connections that were refused for one reason: how many at the last log line, and when that
 * was. */
struct oct_turned_away {
    uint64_t n, told_ns;
};

struct oct_daemon {
    struct oct_config config;
    void *zmq_context;           /* of the control socket; a session has its own */
    struct oct_access *access;   /* NULL: no keys are configured */
    struct oct_door *door;       /* of the control socket; NULL likewise */
    struct oct_file_watch watch; /* of the files that the configuration came from */
    uv_loop_t *loop;
    enum oct_state state;
    struct oct_session *session; /* NULL: none stands, or a job has it */
    struct oct_daemon_job job;
    struct oct_errand errand; /* what is computed beside the stream */
    struct oct_disk disk;
    struct oct_daemon_forecast forecast;
    struct oct_daemon_forecast_idle idle;
    struct oct_backlog backlog;
    bool must_build, must_record; /* jobs that are due */
    bool open;                    /* the next session takes lines at once */
    uint32_t record_volumes;      /* of the recording under way, or the next that is due */
    bool record_cancelled;        /* stop came while the recording was being started */
    struct oct_error outcome;     /* of the last start, stop or record start */
    uint64_t drain_by_ns;         /* DRAINING: the deadline */

    bool stale; /* a key has changed since the session was built */
    struct oct_rescan rescan;
    struct oct_turned_away not_taken, viewers_cut, flooded;
    struct oct_source source;
    struct oct_driver driver;
    struct oct_line_rate line_rate;
    bool failed_over; /* another engine than that of the session's start runs */
    /* The session's recorder and image ring at the last tick: the status of a recording must agree
     * with the state that was entered because of it. */
    struct oct_recorder_status recorder;
    uint64_t n_images;

    bool was_ready;     /* the first session came up */
    bool want_shutdown; /* drain, then end */
    bool has_ended;     /* nothing is left to be done */
    bool is_overdue;    /* ending takes longer than daemon.drain_s */
    uint64_t started_ns;
    uint64_t record_ns; /* when recording was last started */
    char name[32];      /* of this run: UTC time of its start */
    char last_error[OCT_ERROR_TEXT_BYTES];
};

/* Makes the ZeroMQ context and begins to build the first session. config is copied. */
enum oct_err oct_daemon_init(struct oct_daemon *daemon, uv_loop_t *loop,
                             const struct oct_config *config, struct oct_error *err);

/* After has_ended, or after init failed. */
void oct_daemon_finish(struct oct_daemon *daemon);

/* The control commands. Each refusal fills err; OCT_E_AGAIN: ask again in a moment. A granted
 * command may still be under way: see oct_daemon_is_settled, then outcome. */
enum oct_err oct_daemon_start(struct oct_daemon *daemon, struct oct_error *err);
enum oct_err oct_daemon_stop(struct oct_daemon *daemon, struct oct_error *err);
/* volumes (NULL: as record.volumes says): of this recording. */
enum oct_err oct_daemon_record(struct oct_daemon *daemon, bool start, const uint32_t *volumes,
                               struct oct_error *err);
/* Saves the last seconds, in any state that has a session. name may be NULL. */
enum oct_err oct_daemon_record_last(struct oct_daemon *daemon, const char *name,
                                    struct oct_error *err);
enum oct_err oct_daemon_set(struct oct_daemon *daemon, const char *key, const char *value,
                            struct oct_error *err);

/* Begins to compute something from the next n_bscans whole B-scans of spectra (errand.h); work
 * becomes the daemon's, on failure too. Refused while no lines come, or while another is under
 * way. */
enum oct_err oct_daemon_errand(struct oct_daemon *daemon, const struct oct_errand_ops *ops,
                               void *work, unsigned n_bscans, uint64_t timeout_us,
                               struct oct_error *err);

/* Ends an errand whose thread has done, and publishes what it has to show. */
void oct_daemon_look_at_errand(struct oct_daemon *daemon);

/* Begins the errand `calibrate`. */
enum oct_err oct_daemon_calibrate(struct oct_daemon *daemon, struct oct_error *err);

/* Drains and ends; then has_ended. */
void oct_daemon_shut_down(struct oct_daemon *daemon);

/* Whether no command is under way any more (or the daemon ends). */
bool oct_daemon_is_settled(const struct oct_daemon *daemon);

/* Call many times a second: notices what has happened and begins the next job that is due. */
void oct_daemon_tick(struct oct_daemon *daemon);

/* Whether a recording is being written, begun or closed. */
bool oct_daemon_is_recording(const struct oct_daemon *daemon);

/* The status reply, which the caller deletes; NULL when out of memory. */
struct cJSON *oct_daemon_status(const struct oct_daemon *daemon);

/* Hands changed LIVE keys to what applies them: flags of enum oct_param_applies. What those of the
 * recording and of the daemon apply to reads the configuration when it next needs it. */
void oct_daemon_apply(struct oct_daemon *daemon, unsigned applies);

/* For daemon/tick.c: applies an event to the state table and logs the change. */
void oct_daemon_happens(struct oct_daemon *daemon, enum oct_event event);
void oct_daemon_keep_error(struct oct_daemon *daemon, const struct oct_error *err);

#endif
