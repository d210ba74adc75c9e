/* The forecast (pipeline/forecast.h) as the daemon keeps it: made when a session is built and when
 * a recording is asked for, kept up to date by what really comes in. One thread at a time. */
#ifndef OCT_DAEMON_OUTLOOK_H
#define OCT_DAEMON_OUTLOOK_H

#include "config/config.h"
#include "daemon/session.h"
#include "pipeline/forecast.h"

struct oct_outlook {
    struct oct_forecast forecast;
    struct oct_forecast_disk disk;
    oct_config_string directory;        /* on which it was measured */
    double in_hz;                       /* A-lines a second that come in, over the last second */
    uint64_t last_lines, last_ns;       /* when that was last looked at */
    char warning[OCT_ERROR_TEXT_BYTES]; /* "": nothing is too slow */
};

/* Measures the disk, if there is something to record, and tells the log what to expect. Takes as
 * long as the disk does: not for the main thread. */
void oct_outlook_measure(struct oct_outlook *outlook, const struct oct_config *config,
                         const struct oct_session *session);

/* Several times a second: follows the rate that comes in, and tells the log when that turns out to
 * be too much. Measures nothing. bytes_free: on the disk, negative while it is not known. */
void oct_outlook_follow(struct oct_outlook *outlook, const struct oct_config *config,
                        const struct oct_session *session, double bytes_free);

/* A key has changed: what was measured with another directory or other display limits is unknown
 * from now on. Measures nothing. */
void oct_outlook_changed(struct oct_outlook *outlook, const struct oct_config *config,
                         const struct oct_session *session);

typedef struct cJSON cJSON;
/* Adds "forecast" to the status. */
void oct_outlook_describe(cJSON *reply, const struct oct_outlook *outlook);

#endif
