#define _DEFAULT_SOURCE /* syscall, SO_COOKIE */
#include "pipeline/net/descriptors.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/net/intake.h"
#include "pipeline/net/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define RESERVE 64 /* a session built anew takes some 30, a file or a folder of keys two or three */
#define CAMERA_RESERVE 16
#define CONTROL_RESERVE 16
#define ENOUGH 1024
/* Each connection takes memory too, so there is a bound even where descriptors have none. */
#define MOST_TAKEN (OCT_DESCRIPTORS_MOST - RESERVE)

/* accept() has no argument that could lead to a place of ours. */
static atomic_uint_fast64_t n_not_taken;
static atomic_int next_viewer;

uint64_t oct_descriptors_not_taken(void)
{
    return atomic_load(&n_not_taken);
}

static rlim_t limit_now(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > MOST_TAKEN + RESERVE)
        return MOST_TAKEN + RESERVE;
    return limit.rlim_cur;
}

void oct_descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur < limit.rlim_max) {
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            limit.rlim_cur = before;
    }
    if (limit.rlim_cur < ENOUGH)
        oct_log(OCT_LOG_WARNING,
                "only %llu file descriptors are allowed (%d are wanted): octd takes fewer "
                "connections; raise the limit (ulimit -n, LimitNOFILE in the systemd unit)",
                (unsigned long long)limit.rlim_cur, ENOUGH);
}

enum oct_callers oct_descriptors_callers(int listener)
{
    int priority = OCT_CALLERS_UNKNOWN;
    socklen_t bytes = sizeof(priority);
    getsockopt(listener, SOL_SOCKET, SO_PRIORITY, &priority, &bytes);
    return (enum oct_callers)priority;
}

/* The lowest descriptor that these callers may not have. */
static rlim_t bound_of(enum oct_callers callers)
{
    rlim_t limit = limit_now(), reserve = RESERVE;
    if (callers != OCT_CALLERS_CAMERA)
        reserve += CAMERA_RESERVE;
    if (callers != OCT_CALLERS_CAMERA && callers != OCT_CALLERS_CONTROL)
        reserve += CONTROL_RESERVE;
    return limit > reserve ? limit - reserve : 0;
}

/* Not in our header: glibc's own may declare them in its way. */
int accept(int listener, struct sockaddr *address, socklen_t *bytes);
int accept4(int listener, struct sockaddr *address, socklen_t *bytes, int flags);
ssize_t recv(int fd, void *bytes, size_t n, int flags);

/* Whether the connection may stay; if not, why is counted. */
static bool takes(int fd, enum oct_callers callers)
{
    if ((rlim_t)fd >= bound_of(callers)) {
        atomic_fetch_add(&n_not_taken, 1);
        return false;
    }
    if (callers == OCT_CALLERS_VIEWERS && oct_intake_is_full(oct_clock_ns())) {
        oct_intake_note_cut();
        return false;
    }
    return true;
}

/* A viewer's connection gets the next number. */
static int move_viewer(int fd)
{
    /* It has the listener's mark, which is no priority that we want for pictures. */
    setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &(int){0}, sizeof(int));
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, atomic_load(&next_viewer));
    if (moved >= 0 && (rlim_t)moved >= bound_of(OCT_CALLERS_VIEWERS)) {
        close(moved);
        moved = -1;
    }
    atomic_store(&next_viewer, moved + 1); /* at the bound: from the lowest again */
    if (moved < 0)
        return fd;
    close(fd);
    return moved;
}

int accept4(int listener, struct sockaddr *address, socklen_t *bytes, int flags)
{
    int fd = (int)syscall(SYS_accept4, listener, address, bytes, flags);
    if (fd < 0 && (errno == EMFILE || errno == ENOMEM || errno == ENOBUFS))
        errno = ENFILE; /* which libzmq passes over on ipc as well */
    if (fd < 0)
        return fd;
    enum oct_callers callers = oct_descriptors_callers(listener);
    if (takes(fd, callers)) {
        if (callers == OCT_CALLERS_VIEWERS)
            fd = move_viewer(fd);
        oct_intake_begin(fd, listener);
        oct_parts_follow(fd, listener);
        return fd;
    }
    close(fd);
    errno = ECONNABORTED;
    return -1;
}

int accept(int listener, struct sockaddr *address, socklen_t *bytes)
{
    return accept4(listener, address, bytes, 0);
}

ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
    ssize_t got = (ssize_t)syscall(SYS_recvfrom, fd, bytes, n, flags, NULL, NULL);
    if (got <= 0 || (flags & MSG_PEEK) || fd >= OCT_DESCRIPTORS_MOST)
        return got;
    bool exceeds = oct_intake_exceeds(fd, (size_t)got, oct_clock_ns());
    if (!oct_parts_admit(fd, bytes, (size_t)got)) {
        errno = ECONNRESET;
        return -1;
    }
    return exceeds ? 0 : got; /* 0: the end of the stream */
}

/* ---- connections ---- */

uint64_t oct_descriptors_cookie(int fd)
{
    uint64_t cookie = 0;
    socklen_t bytes = sizeof(cookie);
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &bytes) == 0 ? cookie : 0;
}

bool oct_descriptors_cut(int fd, uint64_t cookie)
{
    return cookie && oct_descriptors_cookie(fd) == cookie && shutdown(fd, SHUT_RDWR) == 0;
}

/* ---- which listener is whose ---- */

static bool is_at(int fd, const char *endpoint)
{
    static const char ipc[] = "ipc://";
    union {
        struct sockaddr_storage any;
        struct sockaddr_un local;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } name = {0};
    int listens = 0;
    socklen_t bytes = sizeof(listens), name_bytes = sizeof(name) - 1;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0 || !listens ||
        getsockname(fd, (struct sockaddr *)&name.any, &name_bytes) != 0)
        return false;
    if (strncmp(endpoint, ipc, strlen(ipc)) == 0) {
        bool abstract = name.local.sun_path[0] == '\0';
        if (name.any.ss_family != AF_UNIX)
            return false;
        return strcmp(name.local.sun_path + abstract, endpoint + strlen(ipc) + abstract) == 0;
    }
    const char *colon = strrchr(endpoint, ':');
    unsigned long port = colon ? strtoul(colon + 1, NULL, 10) : 0;
    return (name.any.ss_family == AF_INET && ntohs(name.v4.sin_port) == port) ||
           (name.any.ss_family == AF_INET6 && ntohs(name.v6.sin6_port) == port);
}

void oct_descriptors_mark(const char *endpoint, enum oct_callers callers)
{
    int priority = (int)callers, limit = (int)limit_now();
    for (int fd = 0; fd < limit; fd++)
        if (is_at(fd, endpoint))
            setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
}
