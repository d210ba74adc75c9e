/* The door of one ZeroMQ context: makes its sockets CURVE servers, answers ZeroMQ's question about
 * every key that knocks (ZAP, RFC 27), and tells access.h of whoever is turned away before that.
 *
 *     context -> oct_door_create -> { oct_door_guard -> bind } ... -> sockets closed
 *             -> oct_door_destroy -> context terminated
 *
 * A thread of its own answers; it takes microseconds and never waits for anything but ZeroMQ. */
#ifndef OCT_PIPELINE_NET_DOOR_H
#define OCT_PIPELINE_NET_DOOR_H

#include "pipeline/net/access.h"

struct oct_door;

/* access is borrowed and outlives the door; NULL: *door is NULL and everything stays plain. */
enum oct_err oct_door_create(struct oct_door **door, void *zmq_context, struct oct_access *access,
                             struct oct_error *err);

/* Makes a socket that is not bound yet a CURVE server behind this door. The caller's thread owns
 * the socket. door NULL: nothing is done. */
enum oct_err oct_door_guard(struct oct_door *door, void *socket, struct oct_error *err);

/* Whether a received message (a zmq_msg_t) still counts: its key may have gone since the handshake.
 * door NULL: yes. The thread that received it. */
bool oct_door_admits(struct oct_door *door, void *message);

/* Every guarded socket must be closed. NULL is fine. */
void oct_door_destroy(struct oct_door *door);

#endif
