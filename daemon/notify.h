/* Datagrams to the service manager (sd_notify(3)), in the way its manual gives for programs that
 * do not want its library: NOTIFY_SOCKET names a Unix socket, a path or, with '@', an abstract
 * one; each datagram is text, VARIABLE=value a line. Main thread only. */
#ifndef OCT_DAEMON_NOTIFY_H
#define OCT_DAEMON_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

struct oct_notify {
    int fd; /* -1: no service manager */
    struct sockaddr_un to;
    uint32_t to_bytes;
};

/* Reads the environment. Without NOTIFY_SOCKET, or with one that makes no sense (which is logged),
 * nothing will be sent. */
void oct_notify_init(struct oct_notify *notify);
void oct_notify_finish(struct oct_notify *notify);

/* Never blocks. False: not taken now, send it again later. True also without a service manager. */
bool oct_notify_send(const struct oct_notify *notify, const char *text);

/* WATCHDOG_USEC, if it is meant for this process (WATCHDOG_PID); 0: no watchdog. */
uint64_t oct_notify_watchdog_us(void);

#endif
