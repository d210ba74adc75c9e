/* File descriptors: enough of them, and some that no stranger can have.
 *
 * Whoever connects costs a descriptor before he has said a word. Without any left libzmq 4.3.4 ends
 * the process when it accepts on ipc (its ipc_listener asserts that it is no EMFILE; tcp_listener
 * goes on, in a busy loop), and no recording can be opened. So accept() and accept4() of the whole
 * process are ours, libzmq's and libmicrohttpd's calls too: the dynamic linker takes those of the
 * program first. The kernel gives the lowest number that is free; a connection whose number is so
 * high that less than the reserve is left is closed at once, and the caller is told ECONNABORTED,
 * "gone before it was accepted", which both libraries pass over. Counting connections from outside
 * (zmq_socket_monitor) would come after the fact: a burst is accepted faster than it is counted.
 *
 *     0 ........................ limit - 96 ... limit - 80 ... limit - 64 ........ limit
 *     | everybody                | control and   | the camera   | files, folders,
 *     |                          | the camera    | alone        | new sessions: ours alone
 *
 * ZeroMQ tells whose a message is by the descriptor, and late. So a viewer's connection does not
 * keep the lowest number but gets the next one after the viewer before it, and numbers of
 * connections that have gone come round again only when all up to the bound have been used.
 *
 * recv() of the whole process is ours as well: what is received is bounded before libzmq sees it,
 * by bytes for viewers (intake.h) and by the parts of a message for all that are marked (parts.h).
 *
 * Any thread. */
#ifndef OCT_PIPELINE_NET_DESCRIPTORS_H
#define OCT_PIPELINE_NET_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* No connection has a descriptor as high as this. */
#define OCT_DESCRIPTORS_MOST 8256

/* The values are the socket priorities (socket(7), SO_PRIORITY) that listeners are marked with. */
enum oct_callers {
    OCT_CALLERS_UNKNOWN = 0, /* not marked; as many descriptors as viewers */
    OCT_CALLERS_VIEWERS = 1,
    OCT_CALLERS_CONTROL = 4,
    OCT_CALLERS_CAMERA = 6,
};

/* The soft limit becomes the hard one; a warning where that is little. */
void oct_descriptors_raise(void);

/* Marks the socket that listens at `endpoint` ("tcp://127.0.0.1:5701" or "ipc:///path", as bound)
 * as one for these callers, whose messages are bounded in parts from now on (parts.h). */
void oct_descriptors_mark(const char *endpoint, enum oct_callers callers);

/* The mark of a listener. */
enum oct_callers oct_descriptors_callers(int listener);

/* The kernel's name of the socket behind a descriptor, which no other ever has; 0: it is none. */
uint64_t oct_descriptors_cookie(int fd);

/* Shuts the connection down if the descriptor is still that socket's: ZeroMQ sees the end of the
 * stream and tidies up by itself, the descriptor stays its own. False: it is another's, or none. */
bool oct_descriptors_cut(int fd, uint64_t cookie);

/* Connections closed for want of descriptors since the program's start. */
uint64_t oct_descriptors_not_taken(void);

#endif
