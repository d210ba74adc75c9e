/* The viewer's side of the control socket: a thread that asks for the status twice a second and
 * sends what the operator wants, so that the window never waits for the network.
 *
 *     create -> { ask | take ... } -> destroy
 *
 * When no answer comes in time, the thread makes the socket anew, and the daemon counts as gone
 * until something answers. A wish that was on its way then is answered as failed and never sent
 * again. A wish that octd grants before it is done (a recording that begins) is answered when it is
 * done. One thread calls ask, take and destroy. */
#ifndef OCT_VIEWER_NET_CONTROL_H
#define OCT_VIEWER_NET_CONTROL_H

#include "pipeline/net/curve.h"
#include "viewer/model/daemon.h"

struct oct_view_control;

/* Connects, which succeeds with nobody there yet, and starts the thread. keys: NULL or of a daemon
 * that asks for them; the paths outlive the control. `notify` (NULL: none) is
 * called in that thread when there is something new to take; it must not block. OCT_E_CONFIG: the
 * endpoint is none that ZeroMQ understands. */
enum oct_err oct_view_control_create(struct oct_view_control **control, const char *endpoint,
                                     const struct oct_curve_files *keys,
                                     void (*notify)(void *context), void *context,
                                     struct oct_error *err);

/* Puts a wish into the queue. False: an earlier one has not been answered yet. */
bool oct_view_control_ask(struct oct_view_control *control, enum oct_view_wish wish,
                          const char *text);

/* Copies the newest status, and the answer if it was not taken yet. Never waits. */
void oct_view_control_take(struct oct_view_control *control, struct oct_view_daemon *daemon,
                           struct oct_view_answer *answer);

/* Waits until the daemon has answered once or the time runs out; true if it has. */
bool oct_view_control_wait(struct oct_view_control *control, uint64_t timeout_ns);

/* Ends the thread at once and frees everything. NULL is fine. */
void oct_view_control_destroy(struct oct_view_control *control);

#define OCT_VIEW_ADDRESS_BYTES 1200

/* "tcp://" "*" ":PORT" is where a daemon binds; a client finds it on its own machine. Any other
 * endpoint stays as it is. */
void oct_view_endpoint_connectable(const char *endpoint, char *text, size_t text_bytes);

#endif
