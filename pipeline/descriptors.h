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
 * Any thread. */
#ifndef OCT_PIPELINE_DESCRIPTORS_H
#define OCT_PIPELINE_DESCRIPTORS_H

#include <stdint.h>

/* The values are the socket priorities (socket(7), SO_PRIORITY) that listeners are marked with. */
enum oct_callers {
    OCT_CALLERS_OTHERS = 0, /* of listeners that are not marked: they have what viewers have */
    OCT_CALLERS_VIEWERS = 2,
    OCT_CALLERS_CONTROL = 4,
    OCT_CALLERS_CAMERA = 6,
};

/* The soft limit becomes the hard one; a warning where that is little. */
void oct_descriptors_raise(void);

/* Marks the socket that listens at `endpoint` ("tcp://127.0.0.1:5701" or "ipc:///path", as bound)
 * as one for these callers, whose messages are bounded in parts from now on (parts.h). */
void oct_descriptors_mark(const char *endpoint, enum oct_callers callers);

/* Connections closed for want of descriptors since the program's start. */
uint64_t oct_descriptors_not_taken(void);

#endif
