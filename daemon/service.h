/* What the service manager is told: READY=1 when lines can be taken, STATUS= in one line,
 * STOPPING=1 when the daemon begins to end, and WATCHDOG=1.
 *
 * The watchdog is fed from progress: within WATCHDOG_USEC each of three must have moved, or have
 * had nothing to do for a moment. An engine that has B-scans and finishes none is wedged, whatever
 * its threads look like; so are a keeper that has pictures and takes none, however busy the engine
 * is, and an ingest that looks for lines no more while nothing waits behind it, for whose room it
 * might be waiting. A disk that stalls is no reason to be killed, what is in memory would be lost:
 * the keeper waits for it only when its memory is full, and holds up the engine only while the
 * daemon drains; then neither counts.
 * While a session is built there is nothing to look at; a build that takes longer than any should
 * hangs. Then nothing is sent, and the manager restarts the daemon. So it is when the main loop
 * itself hangs. Main thread only. */
#ifndef OCT_DAEMON_SERVICE_H
#define OCT_DAEMON_SERVICE_H

#include "daemon/daemon.h"
#include "daemon/notify.h"

/* Measured FFT plans take up to seconds, on a machine that is busy tens of them. */
#define OCT_SERVICE_BUILD_S 60

/* What the threads have done so far, and what waits for them. */
struct oct_service_progress {
    uint64_t engine;                 /* B-scans that left the engine */
    uint64_t keeper;                 /* B-scans that the recorder's keeper took off the rings */
    uint64_t ingest;                 /* looks for lines */
    uint64_t for_engine, for_keeper; /* waiting */
};

/* Who has moved, or had nothing to do. */
struct oct_service_life {
    bool engine, keeper, ingest;
};

struct oct_service {
    struct oct_notify notify;
    uint64_t watchdog_ns; /* 0: none */
    uint64_t fed_ns, status_ns;
    struct oct_service_progress seen; /* when last looked at */
    struct oct_service_life life;     /* since the watchdog was last fed */
    bool told_ready, told_stopping, told_hanging;
    enum oct_state told_state;
};

void oct_service_init(struct oct_service *service);
void oct_service_finish(struct oct_service *service);

/* Several times within WATCHDOG_USEC. */
void oct_service_look_around(struct oct_service *service, const struct oct_daemon *daemon);

/* Adds to `life` who has moved since `seen`, which becomes `now`. Whether all have by now: pure,
 * for the above and tests. */
bool oct_service_is_alive(const struct oct_service_progress *now, struct oct_service_progress *seen,
                          struct oct_service_life *life);

#endif
