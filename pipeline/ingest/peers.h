/* Counts the peers that connect to a ZeroMQ socket and do not fit it: a socket of another kind, or
 * a program that does not speak ZeroMQ at all. ZeroMQ closes both connections silently. Which of
 * the two it was cannot be known: either end may close first.
 *
 * The thread that owns the socket makes it, looks, and ends it before the socket is closed. */
#ifndef OCT_PIPELINE_INGEST_PEERS_H
#define OCT_PIPELINE_INGEST_PEERS_H

#include "pipeline/ingest/driver_watch.h"

struct oct_peers;

/* Observes a bound socket without a door: ZeroMQ reports a socket's events to one monitor only.
 * NULL: it cannot be observed (out of memory or sockets). */
struct oct_peers *oct_peers_watch(void *zmq_context, void *socket);

/* Counts the events since the last call in the driver watch; does not wait. peers NULL is fine. */
void oct_peers_look(struct oct_peers *peers, struct oct_driver_watch *watch);

/* NULL is fine. */
void oct_peers_end(struct oct_peers *peers);

#endif
