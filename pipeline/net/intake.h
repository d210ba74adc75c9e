/* How much a viewer may say. What viewers send us is subscriptions, and libzmq obeys each before we
 * hear of it: it reads all that are there in one go, in the thread that sends pictures, and makes a
 * node of a tree out of every byte. 20,000 subscriptions of 4,000 bytes took that thread 4 s and
 * 2.4 GiB. libzmq 4.3.4 has no bound for it (ZMQ_MAXMSGSIZE bounds one alone, ZMQ_XPUB_MANUAL makes
 * the same tree), so it is bounded before libzmq sees it: recv() of the whole process is ours, as
 * accept() is (descriptors.h). A connection that came to a listener marked OCT_CALLERS_VIEWERS may
 * send
 *
 *     OCT_VIEWER_BYTES at once, and OCT_VIEWER_BYTES_S more each second, handshake included;
 *
 * one that sends more is shut down and counted. Who comes again and again is held back by what all
 * viewers together may send: OCT_VIEWERS_BYTES at once, and as much again each second. When that is
 * used up no new viewer's connection is taken until there is room again, two seconds after the last
 * such byte at most; those that stand are not touched. Camera and control are not looked at.
 *
 * What stays of it in the end is bounded by subscriptions.h. Any thread. */
#ifndef OCT_PIPELINE_NET_INTAKE_H
#define OCT_PIPELINE_NET_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_VIEWER_BYTES 8192
#define OCT_VIEWER_BYTES_S 4000
#define OCT_VIEWERS_BYTES 262144

/* A connection was accepted over `fd` from this listener. The listener's mark is looked at when
 * bytes come: ZeroMQ accepts as soon as it has bound, before there is a mark. */
void oct_intake_begin(int fd, int listener);

/* Whether the socket of this cookie (descriptors.h) came to a viewers' listener, over `fd`. */
bool oct_intake_is_viewer(int fd, uint64_t cookie);

/* Whether viewers have sent so much that no more of them are taken now. */
bool oct_intake_is_full(uint64_t now_ns);

/* Bytes came: whether they are too many, in which case the connection has been shut down. */
bool oct_intake_exceeds(int fd, size_t n_bytes, uint64_t now_ns);

/* A viewer's connection was shut down or not taken for what viewers sent: counted below. */
void oct_intake_note_cut(void);

/* Those, and the connections that exceeded, since the program's start. */
uint64_t oct_intake_viewers_cut(void);

#endif
