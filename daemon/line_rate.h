/* The camera's line rate, measured: A-lines over the camera's own clock where that keeps pace with
 * octd's (between half and twice as fast), else over octd's. Where scan.line_rate_hz was not
 * configured, what is measured takes its place. Main thread only.
 *
 * Each acquisition is measured anew, within some tenths of a second: another sender may have
 * another rate. The rate measured before is used until then, for three seconds of messages at
 * most. */
#ifndef OCT_DAEMON_LINE_RATE_H
#define OCT_DAEMON_LINE_RATE_H

#include "config/config.h"
#include "pipeline/ingest/driver_watch.h"

struct oct_line_rate {
    double by_camera_hz, by_octd_hz; /* over the last second or more, by each clock; 0: unknown */
    double measured_hz; /* by two measurements that agreed; close ones do not change it; 0: none */
    const struct oct_driver_watch *watch; /* of which session */
    struct oct_driver_look look, since;   /* the newest, and where the running measurement began */
    double last_hz;
    uint64_t anew_ns; /* when an acquisition began that is not measured yet; 0: it is */
    uint64_t told_ns;
};

/* Call a few times a second. Logs when the measured rate takes the place of an unconfigured one. */
void oct_line_rate_look(struct oct_line_rate *rate, struct oct_driver_watch *watch,
                        const struct oct_config *config, uint64_t now_ns);

/* The rate in force: the configured, else the measured, else the default one. */
double oct_line_rate_hz(const struct oct_line_rate *rate, const struct oct_config *config);

/* "config", "camera" or "default". */
const char *oct_line_rate_from(const struct oct_line_rate *rate, const struct oct_config *config);

#endif
