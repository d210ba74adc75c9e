/* The control socket: a ZeroMQ ROUTER in the libuv loop; one JSON object each way. */
#ifndef OCT_DAEMON_CONTROL_H
#define OCT_DAEMON_CONTROL_H

#include "daemon/daemon.h"

#include <uv.h>

struct oct_control;

/* Binds config.control.endpoint and watches it. */
enum oct_err oct_control_create(struct oct_control **control, uv_loop_t *loop,
                                struct oct_daemon *daemon, struct oct_error *err);

/* Answers requests that have arrived, a bounded number at a time, and clients whose command was
 * under way. ZMQ_FD is edge-triggered, so a timer calls this too, every 10 ms: a reply is held back
 * for 30 ms at most, then it says "pending". */
void oct_control_serve(struct oct_control *control);

/* Stops watching and closes the socket; memory is freed by the loop's next turn. NULL is fine. */
void oct_control_destroy(struct oct_control *control);

/* What a reply may wait for, at most 30 ms. */
enum oct_under_way {
    OCT_UNDER_WAY_NOTHING,
    OCT_UNDER_WAY_CHANGE, /* a start, a stop, a recording's start */
    OCT_UNDER_WAY_LAST,   /* the file of the last seconds is being opened */
};

/* The reply (malloc'd by cJSON) to one request of n_bytes, any bytes. NULL when out of memory.
 * *under_way: what was granted is not done yet; the reply says so, a later one is the outcome. */
char *oct_control_answer(struct oct_daemon *daemon, const char *request, size_t n_bytes,
                         enum oct_under_way *under_way);

/* Whether the command under way has ended. */
bool oct_control_is_done(const struct oct_daemon *daemon, enum oct_under_way what);

/* The reply with the outcome of the granted command, or with "pending" if it is still under way. */
char *oct_control_outcome(struct oct_daemon *daemon, enum oct_under_way what);

#endif
