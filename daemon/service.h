/* What the service manager is told: READY=1 when lines can be taken, STATUS= in one line,
 * STOPPING=1 when the daemon begins to end, and WATCHDOG=1.
 *
 * The watchdog is fed from progress. Within WATCHDOG_USEC either B-scans must leave the engine, or
 * there must be none for it, and then the ingest thread must have looked for lines: idle, no lines,
 * or the engine waits for a sink (a disk that stalls is no reason to be killed, what is in memory
 * would be lost). An engine that has B-scans and finishes none is wedged, whatever its threads look
 * like, and so is an ingest that looks no more; then nothing is sent, and the manager restarts the
 * daemon. So it is when the main loop itself hangs. Main thread only. */
#ifndef OCT_DAEMON_SERVICE_H
#define OCT_DAEMON_SERVICE_H

#include "daemon/daemon.h"
#include "daemon/notify.h"

struct oct_service_progress {
    uint64_t moves; /* of the pipeline */
    uint64_t looks; /* of the ingest for lines */
};

struct oct_service {
    struct oct_notify notify;
    uint64_t watchdog_ns; /* 0: none */
    uint64_t fed_ns, status_ns;
    struct oct_service_progress seen; /* when last looked at */
    bool alive; /* progress, or nothing to do, since the watchdog was last fed */
    bool told_ready, told_stopping;
    enum oct_state told_state;
};

void oct_service_init(struct oct_service *service);
void oct_service_finish(struct oct_service *service);

/* Several times within WATCHDOG_USEC. */
void oct_service_look_around(struct oct_service *service, const struct oct_daemon *daemon);

/* Whether there is progress: pure, for the above and its tests. NULL: no pipeline stands. */
bool oct_service_is_alive(const struct oct_pipeline_progress *progress, uint64_t looks,
                          struct oct_service_progress *seen);

#endif
