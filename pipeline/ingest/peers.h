/* Who connects to a ZeroMQ socket and is no partner for it: a socket of another kind, or something
 * that does not speak ZeroMQ at all. ZeroMQ turns both away without a word.
 * Which of the two it was cannot be known: whichever end looks first hangs up.
 *
 * The thread that owns the socket makes it, looks, and ends it before the socket is closed. */
#ifndef OCT_PIPELINE_INGEST_PEERS_H
#define OCT_PIPELINE_INGEST_PEERS_H

#include "pipeline/ingest/driver_watch.h"

struct oct_peers;

/* Of a socket that is bound, and that stands behind no door: ZeroMQ tells its events to one only.
 * NULL: it cannot be known (out of memory or sockets). */
struct oct_peers *oct_peers_watch(void *zmq_context, void *socket);

/* Takes what has happened since and counts it in the driver's watch; waits for nothing. peers NULL
 * is fine. */
void oct_peers_look(struct oct_peers *peers, struct oct_driver_watch *watch);

/* NULL is fine. */
void oct_peers_end(struct oct_peers *peers);

#endif
