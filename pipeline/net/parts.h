/* The parts of a message, bounded before ZeroMQ collects them.
 *
 * libzmq delivers a message when its last part has arrived, keeps the earlier parts without a bound
 * (it has no option for one, and its queue counts whole messages), and then the receiver has to
 * take perhaps three million empty parts before any message of others. So the frames of connections
 * that were accepted by marked listeners are followed as they are received (connections.h), and one
 * whose message has more than OCT_PARTS_MOST parts ends: libzmq is told ECONNRESET, and forgets
 * what had come of that message.
 *
 *     greeting   64 bytes (ZMTP 3), 12 (ZMTP 2)        what begins otherwise is cut too, and a
 *                                                      viewer with ZMTP 2: libzmq does not say
 *                                                      whose its subscriptions are
 *     frame      flags (1: more follow, 2: long, 4: command), size of 1 or 8 bytes, so many bytes
 *
 * With keys the frames are encrypted, and their parts cannot be counted: then only the owner of an
 * allowed key can send such a message.
 *
 * Pure functions; any thread. */
#ifndef OCT_PIPELINE_NET_PARTS_H
#define OCT_PIPELINE_NET_PARTS_H

#include "pipeline/net/connections.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_PARTS_MOST 16 /* lines have 2, a request up to 3, a subscription 1 */

#define OCT_PARTS_NOT_FOLLOWED 0 /* a phase */

/* Where in its stream a connection is. All zero: not followed. */
struct oct_parts {
    uint64_t left : 40;   /* bytes of the greeting, of the size or of the body still to come */
    uint64_t phase : 3;   /* enum phase, of parts.c */
    uint64_t n_parts : 5; /* of the message so far */
    uint64_t n_size : 4;  /* bytes of the size still to come; `left` then collects it */
    uint64_t callers : 3;
};

/* Before a connection's first byte. */
struct oct_parts oct_parts_begin(enum oct_callers callers);

/* Follows the next bytes. False: too many parts, or no such stream. */
bool oct_parts_take(struct oct_parts *parts, const void *bytes, size_t n_bytes);

#endif
