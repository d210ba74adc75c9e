/* Who subscribes to what: the subscriptions that stand, by connection, as an XPUB socket tells of
 * them (ZMQ_XPUB_VERBOSER), so that a connection with more than a viewer has use for is shut down.
 * How quickly they may come is bounded before (intake.h).
 *
 * ZeroMQ tells of a subscription when its connection may have gone. Only what comes over a
 * descriptor that is a viewer's now is charged, to that viewer; its number is not given to another
 * for some hundred connections (descriptors.h). One thread. */
#ifndef OCT_PIPELINE_NET_SUBSCRIPTIONS_H
#define OCT_PIPELINE_NET_SUBSCRIPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_MOST_SUBSCRIPTIONS 64
#define OCT_MOST_TOPIC_BYTES 4096 /* of all of a connection's subscriptions together */

struct oct_subscriptions;

/* NULL: out of memory. */
struct oct_subscriptions *oct_subscriptions_create(void);
void oct_subscriptions_destroy(struct oct_subscriptions *all);

/* A subscription to the topic begins or ends, over the descriptor (one that is no viewer's now:
 * nothing is done). False: its connection has too many and was shut down. */
bool oct_subscriptions_note(struct oct_subscriptions *all, int fd, bool begins,
                            const uint8_t *topic, size_t n_bytes);

#endif
