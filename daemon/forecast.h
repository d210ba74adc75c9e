/* The forecast (pipeline/flow/forecast.h) as the daemon keeps it: made when a session is built and
 * when a recording is asked for, updated by the rate that really arrives. One thread at a time. */
#ifndef OCT_DAEMON_FORECAST_H
#define OCT_DAEMON_FORECAST_H

#include "config/config.h"
#include "daemon/session.h"
#include "pipeline/flow/forecast.h"

struct oct_daemon_forecast {
    struct oct_forecast result;
    struct oct_forecast_disk disk;
    struct oct_forecast_series disk_rates; /* bytes a second */
    oct_config_string directory;           /* on which they were measured */
    double in_hz;                          /* A-lines a second that come in, over the last second */
    double camera_hz;                      /* the camera's line rate as measured, 0: never; the
                                              owner's to set (line_rate.h) */
    double engine_load;                    /* share of it in which the engine had B-scans */
    uint64_t last_lines, last_ns;          /* when that was last looked at */
    bool was_quiet; /* nothing came then: the next second begins with silence, and tells no rate */
    uint64_t last_done, last_busy_ns;
    struct oct_forecast_load load;      /* at that time */
    char warning[OCT_ERROR_TEXT_BYTES]; /* "": nothing is too slow */
};

/* While lines come, each second tells how fast the CPU engine is beside all that runs then:
 * viewers, analyses, other programs. A GPU may have B-scans all the time and take more at once,
 * and is not judged so. When nothing comes, the engine is measured anew: 2 s after the last line
 * or the start, then after twice that and so on, once a minute in the end. That costs some 50 ms
 * of all cores a minute, and distinguishes a machine that was busy when octd started from one
 * that is too slow. The disk is not measured again: it may hang. */
struct oct_daemon_forecast_idle {
    uint64_t quiet_ns; /* since when nothing has come; 0: something comes */
    uint64_t pause_ns; /* from then, or from the last measurement, to the next */
};
#define OCT_DAEMON_FORECAST_FIRST_NS UINT64_C(2000000000)
#define OCT_DAEMON_FORECAST_PAUSE_NS UINT64_C(60000000000)

/* Returns whether a measurement is due, and counts it as begun. `quiet`: nothing arrives and
 * nothing else is under way. Pure, for the daemon and tests. */
bool oct_daemon_forecast_is_due(struct oct_daemon_forecast_idle *idle, bool quiet, uint64_t now_ns);

/* Measures the disk twice, if anything is recorded, and logs the forecast. Takes as long as the
 * disk does: not for the main thread. */
void oct_daemon_forecast_measure(struct oct_daemon_forecast *forecast,
                                 const struct oct_config *config,
                                 const struct oct_session *session);

/* Call several times a second: follows the rate that arrives and how fast it is computed, and logs
 * when it becomes too much. bytes_free: on the disk, negative while unknown. */
void oct_daemon_forecast_tick(struct oct_daemon_forecast *forecast, const struct oct_config *config,
                              struct oct_session *session, double bytes_free);

/* Call after the session's engine was measured again: logs if that changes the warning. */
void oct_daemon_forecast_measured(struct oct_daemon_forecast *forecast,
                                  const struct oct_config *config,
                                  const struct oct_session *session);

/* Call after a key has changed: a measurement with another directory or other display limits is not
 * used any more. Measures nothing. */
void oct_daemon_forecast_changed(struct oct_daemon_forecast *forecast,
                                 const struct oct_config *config,
                                 const struct oct_session *session);

typedef struct cJSON cJSON;
/* Adds "forecast" to the status. session: NULL if there is none. */
void oct_daemon_forecast_describe(cJSON *reply, const struct oct_daemon_forecast *forecast,
                                  const struct oct_session *session);

#endif
