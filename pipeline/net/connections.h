/* Connections to the process: how many there may be, and how much each may send.
 *
 * connections.c replaces accept(), accept4() and recv() for the whole process. Why it must, and
 * what they still do as ever, stands at its beginning; here is what the bounds are.
 *
 * Descriptors. Each connection costs a descriptor before anything was sent over it. When none is
 * left, libzmq 4.3.4 ends the process when it accepts on ipc (its ipc_listener asserts that errno
 * is not EMFILE; tcp_listener goes on, in a busy loop), and no recording can be opened. The kernel
 * gives the lowest number that is free; a connection whose number is so high that less than the
 * reserve is left is closed at once:
 *
 *     0 ........................ limit - 96 ... limit - 80 ... limit - 64 ........ limit
 *     | everybody                | control and   | the camera   | files, folders,
 *     |                          | the camera    | alone        | new sessions: ours alone
 *
 * ZeroMQ names the sender of a message by its descriptor, and late. So a viewer's connection does
 * not keep the lowest number but gets the next one after the viewer before it, and numbers of
 * closed connections are reused only when all up to the bound have been used.
 *
 * Bytes of viewers. Viewers send subscriptions, and libzmq applies each before it reports it: it
 * reads all that are there in one go, in the thread that sends pictures, and makes a node of a tree
 * out of every byte. 20,000 subscriptions of 4,000 bytes took that thread 4 s and 2.4 GiB. libzmq
 * 4.3.4 has no bound for it (ZMQ_MAXMSGSIZE bounds one alone, ZMQ_XPUB_MANUAL makes the same tree).
 * So a connection that came to a listener marked OCT_CALLERS_VIEWERS may send
 *
 *     OCT_VIEWER_BYTES at once, and OCT_VIEWER_BYTES_S more each second, handshake included;
 *
 * one that sends more is shut down and counted. All viewers together may send OCT_VIEWERS_BYTES at
 * once, and as much again each second, which bounds a viewer that connects again and again. When
 * that is used up no new viewer's connection is taken until there is room again, two seconds after
 * the last such byte at most; open ones are not touched. Camera and control have no such bound. The
 * sum of a viewer's subscriptions is bounded by subscriptions.h.
 *
 * Parts of a message: parts.h.
 *
 * Any thread. */
#ifndef OCT_PIPELINE_NET_CONNECTIONS_H
#define OCT_PIPELINE_NET_CONNECTIONS_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No connection has a descriptor as high as this. */
#define OCT_CONNECTIONS_MOST 8256

#define OCT_VIEWER_BYTES 8192
#define OCT_VIEWER_BYTES_S 4000
#define OCT_VIEWERS_BYTES 262144

/* The values are the socket priorities (socket(7), SO_PRIORITY) that listeners are marked with. */
enum oct_callers {
    OCT_CALLERS_UNKNOWN = 0, /* not marked; as many descriptors as viewers */
    OCT_CALLERS_VIEWERS = 1,
    OCT_CALLERS_CONTROL = 4,
    OCT_CALLERS_CAMERA = 6,
};

/* Raises the soft limit of descriptors to the hard one; logs a warning where that is little.
 * OCT_E_CONFIG: so little that everybody would be refused. */
enum oct_err oct_connections_raise(struct oct_error *err);

/* Marks the socket that listens at `endpoint` ("tcp://127.0.0.1:5701" or "ipc:///path", as bound)
 * as one for these callers. libzmq does not tell a listener's descriptor, so this asks each
 * descriptor of the process whether it listens there: a few ms, once a bind. */
void oct_connections_mark(const char *endpoint, enum oct_callers callers);

/* The mark of a listener. */
enum oct_callers oct_connections_callers(int listener);

/* The kernel's name of the socket behind a descriptor, which is never reused; 0: it is no
 * socket. */
uint64_t oct_connections_cookie(int fd);

/* Shuts the connection down if the descriptor still belongs to that socket: ZeroMQ sees the end of
 * the stream and closes the descriptor, which it owns. False: it belongs to another socket, or to
 * none. */
bool oct_connections_cut(int fd, uint64_t cookie);

/* Connections closed for want of descriptors since the program's start. */
uint64_t oct_connections_not_taken(void);

/* A connection was accepted over `fd` from this listener. The listener's mark is looked at when
 * bytes come: ZeroMQ accepts as soon as it has bound, before there is a mark. Connections of
 * listeners that are never marked are not bounded. */
void oct_connections_begin(int fd, int listener);

/* Whether the socket of this cookie came to a viewers' listener, over `fd`. */
bool oct_connections_is_viewer(int fd, uint64_t cookie);

/* Whether viewers have sent so much that no more of them are taken now. */
bool oct_connections_viewers_are_full(uint64_t now_ns);

/* Bytes came: whether they are too many, in which case the connection has been shut down. */
bool oct_connections_viewer_exceeds(int fd, size_t n_bytes, uint64_t now_ns);

/* A viewer's connection was shut down or not taken for what viewers sent: counted below. */
void oct_connections_note_viewer_cut(void);

/* Those, and the connections that exceeded, since the program's start. */
uint64_t oct_connections_viewers_cut(void);

/* Connections cut for too many parts of a message (parts.h), since the program's start. */
uint64_t oct_connections_flooded(enum oct_callers callers);
uint64_t oct_connections_flooded_all(void);

#endif
