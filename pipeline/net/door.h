/* The door of one ZeroMQ context: makes its sockets CURVE servers, answers ZeroMQ's request about
 * each key (ZAP, RFC 27), and reports to access.h the connections that fail before that.
 *
 *     context -> oct_door_create -> { oct_door_guard -> bind } ... -> sockets closed
 *             -> oct_door_destroy -> context terminated
 *
 * A thread of its own answers within microseconds and waits for nothing but ZeroMQ. */
#ifndef OCT_PIPELINE_NET_DOOR_H
#define OCT_PIPELINE_NET_DOOR_H

#include "pipeline/net/access.h"

struct oct_door;

/* access is borrowed and must outlive the door; NULL: *door is NULL and all sockets stay plain. */
enum oct_err oct_door_create(struct oct_door **door, void *zmq_context, struct oct_access *access,
                             struct oct_error *err);

/* Makes a socket a CURVE server behind this door; call it before binding. The caller's thread owns
 * the socket. door NULL: does nothing. */
enum oct_err oct_door_guard(struct oct_door *door, void *socket, struct oct_error *err);

/* Returns whether a received message (a zmq_msg_t) may be processed: its key may have been revoked
 * since the handshake. door NULL: yes. Called by the thread that received it. */
bool oct_door_admits(struct oct_door *door, void *message);

/* Every guarded socket must be closed. NULL is fine. */
void oct_door_destroy(struct oct_door *door);

#endif
