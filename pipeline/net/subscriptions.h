/* The subscriptions of each connection, as an XPUB socket reports them (ZMQ_XPUB_VERBOSER), so that
 * a connection with more of them than any viewer needs is shut down,
 * and so that nobody computes what nobody subscribes to. connections.h bounds their rate before.
 *
 * ZeroMQ may report a subscription after its connection was closed. So only a subscription over a
 * descriptor that belongs to a viewer now is charged, to that viewer; the number is not reused for
 * some hundred connections (connections.h). One thread,
 * but for oct_subscriptions_wants. */
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
 * nothing is done; -1: the connection has none). False: its connection has too many and was shut
 * down. */
bool oct_subscriptions_note(struct oct_subscriptions *all, int fd, bool begins,
                            const uint8_t *topic, size_t n_bytes);

/* ---- what is wanted ---- */

/* Looks out for subscribers to messages of this topic from now on. The name is borrowed. Before any
 * subscription is noted. False: out of memory. */
bool oct_subscriptions_watch(struct oct_subscriptions *all, const char *topic);

/* Whether somebody subscribes to the topic, which is watched: to its name or to what it begins with
 * (as ZeroMQ compares them), over a connection that stands. Becomes true when the subscription is
 * noted, and false some time after the last end (oct_subscriptions_review). What somebody without a
 * descriptor (inproc) once wanted stays wanted: ZeroMQ does not say whose the ends are. Any
 * thread. */
bool oct_subscriptions_wants(const struct oct_subscriptions *all, const char *topic);

/* Looks again at what is wanted when an end was noted OCT_SUBSCRIPTIONS_REVIEW_MS ago, by when
 * ZeroMQ has closed the descriptors of connections that have gone. To be called all the while;
 * costs nothing else. */
#define OCT_SUBSCRIPTIONS_REVIEW_MS 250
void oct_subscriptions_review(struct oct_subscriptions *all);

#endif
