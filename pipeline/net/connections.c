/* accept(), accept4() and recv() of the whole process are defined here, and the dynamic linker
 * prefers a program's own to libc's: calls of libzmq and libmicrohttpd come here too.
 *
 * Why: both libraries accept every connection and read all that is sent, and too much of it ends or
 * blocks libzmq 4.3.4 (connections.h and parts.h say how). It has no option against that. Counting
 * from outside (zmq_socket_monitor) comes too late: a burst is accepted faster than it is counted.
 *
 * What a newcomer need not fear: each makes the same system call as libc's and returns what that
 * returned, errno included. The differences, all of them:
 *   - accept: a connection beyond the bounds is closed, and the caller is told ECONNABORTED ("gone
 *     before it was accepted"), which every caller of accept has to expect anyway; a viewer's gets
 *     another number; EMFILE, ENOMEM and ENOBUFS become ENFILE, over which libzmq does not assert;
 *   - recv: of a connection accepted by a marked listener the bytes are counted; one that sends too
 *     much reads as ended (0) or reset (ECONNRESET).
 * Only oct_zsocket_bind marks listeners; files and pipes never come by here. None of the three
 * allocates or locks, or blocks where libc's does not; read(), recvmsg() and poll() are libc's.
 *
 * accept() and recv() have no argument that could carry our state: hence the tables by descriptor
 * below, static and atomic. One thread at a time reads from a descriptor; it may be another one's
 * after it was closed. */
#define _DEFAULT_SOURCE /* syscall, SO_COOKIE */
#include "pipeline/net/connections.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
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

#define RESERVE 64 /* a new session takes some 30, a file or a folder of keys two or three */
#define CAMERA_RESERVE 16
#define CONTROL_RESERVE 16
#define ENOUGH 1024
/* Of octd alone: 29 in use on the CPU, 33 more by CUDA, and some for keys, metrics, shared memory;
 * the rest of it are its first connections. */
#define OWN 96
#define LEAST (OWN + RESERVE + CAMERA_RESERVE + CONTROL_RESERVE)
/* Each connection takes memory too, so there is a bound even where the descriptors are
 * unlimited. */
#define MOST_TAKEN (OCT_CONNECTIONS_MOST - RESERVE)

#define SECOND_NS UINT64_C(1000000000)
#define NS_PER_BYTE (SECOND_NS / OCT_VIEWER_BYTES_S)
#define BURST_NS (NS_PER_BYTE * OCT_VIEWER_BYTES)
#define ALL_NS_PER_BYTE (SECOND_NS / OCT_VIEWERS_BYTES)
#define N_CALLERS 8 /* 3 bits of a struct oct_parts */

/* ---- the tables ---- */

/* What a viewer has sent, by descriptor:
 *     0                    not looked at
 *     IS_NEW | listener    accepted from this listener, no byte has come since it was marked
 *     t                    a viewer: what it has sent, at OCT_VIEWER_BYTES_S, lasts until t */
#define IS_NEW (UINT64_C(1) << 63)
static atomic_uint_fast64_t intake[OCT_CONNECTIONS_MOST];
static atomic_uint_fast64_t cookies[OCT_CONNECTIONS_MOST]; /* of those sockets */
static atomic_uint_fast64_t all_until_ns;                  /* t of all, at OCT_VIEWERS_BYTES */

/* Where each is in the parts of its message, and the listener that it came from. */
static _Atomic(struct oct_parts) followed[OCT_CONNECTIONS_MOST];
static atomic_int listeners[OCT_CONNECTIONS_MOST];

static atomic_int next_viewer; /* the number that the next viewer's connection gets, or a higher */

static atomic_uint_fast64_t n_not_taken, n_viewers_cut, n_flooded[N_CALLERS];

uint64_t oct_connections_not_taken(void)
{
    return atomic_load(&n_not_taken);
}

void oct_connections_note_viewer_cut(void)
{
    atomic_fetch_add(&n_viewers_cut, 1);
}

uint64_t oct_connections_viewers_cut(void)
{
    return atomic_load(&n_viewers_cut);
}

uint64_t oct_connections_flooded(enum oct_callers callers)
{
    return atomic_load(&n_flooded[callers]);
}

uint64_t oct_connections_flooded_all(void)
{
    uint64_t n = 0;
    for (int callers = 0; callers < N_CALLERS; callers++)
        n += oct_connections_flooded((enum oct_callers)callers);
    return n;
}

/* ---- descriptors ---- */

static rlim_t limit_now(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > MOST_TAKEN + RESERVE)
        return MOST_TAKEN + RESERVE;
    return limit.rlim_cur;
}

enum oct_err oct_connections_raise(struct oct_error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return OCT_OK;
    if (limit.rlim_cur < limit.rlim_max) {
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            limit.rlim_cur = before;
    }
    if (limit.rlim_cur < LEAST)
        return oct_fail(err, OCT_E_CONFIG,
                        "only %llu file descriptors are allowed, octd needs %d: it would take no "
                        "connections; raise the limit (ulimit -n %d, LimitNOFILE in the systemd "
                        "unit)",
                        (unsigned long long)limit.rlim_cur, LEAST, ENOUGH);
    if (limit.rlim_cur < ENOUGH)
        oct_log(OCT_LOG_WARNING,
                "only %llu file descriptors are allowed (%d are wanted): octd takes fewer "
                "connections; raise the limit (ulimit -n, LimitNOFILE in the systemd unit)",
                (unsigned long long)limit.rlim_cur, ENOUGH);
    return OCT_OK;
}

enum oct_callers oct_connections_callers(int listener)
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

uint64_t oct_connections_cookie(int fd)
{
    uint64_t cookie = 0;
    socklen_t bytes = sizeof(cookie);
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &bytes) == 0 ? cookie : 0;
}

bool oct_connections_cut(int fd, uint64_t cookie)
{
    return cookie && oct_connections_cookie(fd) == cookie && shutdown(fd, SHUT_RDWR) == 0;
}

/* ---- bytes of viewers ---- */

/* Whether the connection is a viewer's. One whose listener is not marked yet is looked at again. */
static bool is_limited(int fd, uint64_t *until_ns)
{
    if (!(*until_ns & IS_NEW))
        return *until_ns != 0;
    enum oct_callers callers = oct_connections_callers((int)(*until_ns & ~IS_NEW));
    if (callers == OCT_CALLERS_UNKNOWN)
        return false;
    *until_ns = callers == OCT_CALLERS_VIEWERS; /* 1: a time long past */
    atomic_store(&intake[fd], *until_ns);
    return callers == OCT_CALLERS_VIEWERS;
}

bool oct_connections_is_viewer(int fd, uint64_t cookie)
{
    if (fd < 0 || fd >= OCT_CONNECTIONS_MOST || !cookie || atomic_load(&cookies[fd]) != cookie)
        return false;
    uint64_t until_ns = atomic_load(&intake[fd]);
    return is_limited(fd, &until_ns);
}

bool oct_connections_viewers_are_full(uint64_t now_ns)
{
    uint64_t until_ns = atomic_load(&all_until_ns);
    return until_ns > now_ns && until_ns - now_ns >= ALL_NS_PER_BYTE * OCT_VIEWERS_BYTES;
}

static void charge_all(size_t n_bytes, uint64_t now_ns)
{
    uint64_t before = atomic_load(&all_until_ns), after;
    do {
        after = (before < now_ns ? now_ns : before) + n_bytes * ALL_NS_PER_BYTE;
        if (after > now_ns + 2 * SECOND_NS)
            after = now_ns + 2 * SECOND_NS; /* however much was sent, the bound is lifted within
                                               2 s */
    } while (!atomic_compare_exchange_weak(&all_until_ns, &before, after));
}

bool oct_connections_viewer_exceeds(int fd, size_t n_bytes, uint64_t now_ns)
{
    uint64_t until_ns = fd >= 0 && fd < OCT_CONNECTIONS_MOST ? atomic_load(&intake[fd]) : 0;
    if (!until_ns || !is_limited(fd, &until_ns))
        return false;
    charge_all(n_bytes, now_ns);
    if (until_ns < now_ns)
        until_ns = now_ns;
    until_ns += n_bytes * NS_PER_BYTE;
    atomic_store(&intake[fd], until_ns);
    if (until_ns - now_ns <= BURST_NS)
        return false;
    shutdown(fd, SHUT_RDWR);
    oct_connections_note_viewer_cut();
    return true;
}

/* ---- parts of a message ---- */

static struct oct_parts load(int fd)
{
    return atomic_load_explicit(&followed[fd], memory_order_relaxed);
}

static void store(int fd, struct oct_parts parts)
{
    atomic_store_explicit(&followed[fd], parts, memory_order_relaxed);
}

/* Follows what was received. False: libzmq must not see it, and the connection is cut. ZeroMQ
 * accepts as soon as it has bound, before there is a mark: until then a connection is followed and
 * nothing more. */
static bool admit(int fd, const void *bytes, size_t n_bytes)
{
    struct oct_parts parts =
        fd >= 0 && fd < OCT_CONNECTIONS_MOST ? load(fd) : (struct oct_parts){0};
    if (parts.phase == OCT_PARTS_NOT_FOLLOWED)
        return true;
    if (parts.callers == OCT_CALLERS_UNKNOWN)
        parts.callers = (uint64_t)oct_connections_callers(atomic_load(&listeners[fd])) & 7;
    bool ok = oct_parts_take(&parts, bytes, n_bytes);
    store(fd, ok ? parts : (struct oct_parts){0});
    if (ok || parts.callers == OCT_CALLERS_UNKNOWN)
        return true;
    if (parts.n_parts >= OCT_PARTS_MOST)
        atomic_fetch_add(&n_flooded[parts.callers], 1);
    return false;
}

/* ---- a connection begins ---- */

void oct_connections_begin(int fd, int listener)
{
    if (fd < 0 || fd >= OCT_CONNECTIONS_MOST)
        return;
    atomic_store(&cookies[fd], oct_connections_cookie(fd));
    atomic_store(&intake[fd], IS_NEW | (uint64_t)listener);
    atomic_store_explicit(&listeners[fd], listener, memory_order_relaxed);
    store(fd, oct_parts_begin(OCT_CALLERS_UNKNOWN));
}

/* ---- the process's accept() and recv() ---- */

/* Not in the header: glibc's headers declare them with their own attributes. Of a program that
 * libzmq sees, whatever else is hidden; liboctd.so keeps them to itself. */
#define OF_THE_PROCESS __attribute__((visibility("default")))
OF_THE_PROCESS int accept(int listener, struct sockaddr *address, socklen_t *bytes);
OF_THE_PROCESS int accept4(int listener, struct sockaddr *address, socklen_t *bytes, int flags);
OF_THE_PROCESS ssize_t recv(int fd, void *bytes, size_t n, int flags);

/* Whether the connection is accepted; if not, counts why. */
static bool takes(int fd, enum oct_callers callers)
{
    if ((rlim_t)fd >= bound_of(callers)) {
        atomic_fetch_add(&n_not_taken, 1);
        return false;
    }
    if (callers == OCT_CALLERS_VIEWERS && oct_connections_viewers_are_full(oct_clock_ns())) {
        oct_connections_note_viewer_cut();
        return false;
    }
    return true;
}

/* A viewer's connection gets the next number. */
static int move_viewer(int fd)
{
    /* It inherits the listener's mark, which pictures must not be sent with as a priority. */
    setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &(int){0}, sizeof(int));
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, atomic_load(&next_viewer));
    if (moved >= 0 && (rlim_t)moved >= bound_of(OCT_CALLERS_VIEWERS)) {
        close(moved);
        moved = -1;
    }
    atomic_store(&next_viewer, moved + 1); /* when the bound is reached: from the lowest again */
    if (moved < 0)
        return fd;
    close(fd);
    return moved;
}

int accept4(int listener, struct sockaddr *address, socklen_t *bytes, int flags)
{
    int fd = (int)syscall(SYS_accept4, listener, address, bytes, flags);
    if (fd < 0 && (errno == EMFILE || errno == ENOMEM || errno == ENOBUFS))
        errno = ENFILE; /* which libzmq ignores on ipc as well */
    if (fd < 0)
        return fd;
    enum oct_callers callers = oct_connections_callers(listener);
    if (takes(fd, callers)) {
        if (callers == OCT_CALLERS_VIEWERS)
            fd = move_viewer(fd);
        oct_connections_begin(fd, listener);
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
    if (got <= 0 || (flags & MSG_PEEK) || fd >= OCT_CONNECTIONS_MOST)
        return got;
    bool exceeds = oct_connections_viewer_exceeds(fd, (size_t)got, oct_clock_ns());
    if (!admit(fd, bytes, (size_t)got)) {
        errno = ECONNRESET;
        return -1;
    }
    return exceeds ? 0 : got; /* 0: the end of the stream */
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

void oct_connections_mark(const char *endpoint, enum oct_callers callers)
{
    int priority = (int)callers, limit = (int)limit_now();
    for (int fd = 0; fd < limit; fd++)
        if (is_at(fd, endpoint))
            setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
}
