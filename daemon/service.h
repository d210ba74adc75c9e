/* Messages to the service manager: READY=1 when lines can be taken, STATUS= in one line, STOPPING=1
 * when the daemon begins to end, and WATCHDOG=1.
 *
 * The watchdog is fed from progress: within WATCHDOG_USEC each of three must have moved, or have
 * had nothing to do for a moment. An engine that has B-scans and finishes none hangs, whatever its
 * threads do; so does a keeper that has pictures and takes none, however busy the engine is, and an
 * ingest that no longer looks for lines although the stages behind it have nothing waiting, so that
 * it cannot be waiting for their room. A disk that stalls is no reason to restart the daemon, which
 * would lose the B-scans in memory: the keeper waits for the disk only when its memory is full, and
 * delays the engine only while the daemon drains; then neither counts. While a session is built
 * there is no progress to check; a build that takes longer than any should counts as hanging. Then
 * WATCHDOG=1 is not sent, and the manager restarts the daemon. The same happens when the main loop
 * itself hangs. Main thread only. */
#ifndef OCT_DAEMON_SERVICE_H
#define OCT_DAEMON_SERVICE_H

#include "daemon/daemon.h"
#include "daemon/notify.h"

/* Measuring FFT plans takes up to seconds, on a busy machine tens of seconds. */
#define OCT_SERVICE_BUILD_S 60

/* Progress of the threads so far, and the work that waits for them. */
struct oct_service_progress {
    uint64_t engine;                 /* B-scans that left the engine */
    uint64_t keeper;                 /* B-scans that the recorder's keeper took off the rings */
    uint64_t ingest;                 /* looks for lines */
    uint64_t for_engine, for_keeper; /* waiting */
};

/* Which of them have moved or had nothing to do. */
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

/* Adds to `life` the threads that have moved since `seen`, and sets `seen` to `now`. Returns
 * whether all have moved by now. Pure, for the function above and tests. */
bool oct_service_is_alive(const struct oct_service_progress *now, struct oct_service_progress *seen,
                          struct oct_service_life *life);

#endif
