#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "pipeline/net/zsocket.h"

#include "pipeline/net/connections.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <zmq.h>

#define HANDSHAKE_MS 5000 /* a connection without a handshake is closed after this; libzmq: 30 s */

static enum oct_err explain(struct oct_error *err, const char *key, const char *endpoint,
                            int errnum)
{
    const char *hint = "";
    if (errnum == EADDRINUSE)
        hint = " (another program, perhaps another octd, has it: stop that one or choose another)";
    else if (errnum == ENOTSOCK)
        hint = " (a file of that name exists and is no socket: it is left alone)";
    else if (errnum == EINVAL || errnum == EPROTONOSUPPORT || errnum == ENODEV)
        hint = " (write it like tcp://127.0.0.1:5701 or ipc:///run/octd/lines)";
    return oct_fail_key(err, OCT_E_IO, key, "%s: cannot bind %s: %s%s", key, endpoint,
                        zmq_strerror(errnum), hint);
}

/* libzmq removes the file of an ipc endpoint before it binds, whatever it is and whoever uses it: a
 * second daemon would silently take over the first one's clients, and a mistyped path would delete
 * a recording. Only a socket without a listener is stale and may be removed. Returns 0, or an errno
 * that says why not. */
static int refuse_ipc(const char *endpoint)
{
    static const char ipc[] = "ipc://";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat there;
    if (strncmp(endpoint, ipc, strlen(ipc)) != 0)
        return 0;
    const char *path = endpoint + strlen(ipc);
    if (*path == '@' || strlen(path) >= sizeof(address.sun_path) || lstat(path, &there) != 0)
        return 0; /* abstract names cannot be taken over; the bind refuses names that are too
                     long */
    if (!S_ISSOCK(there.st_mode))
        return ENOTSOCK;
    memcpy(address.sun_path, path, strlen(path));
    /* Non-blocking: a listener that accepts no connection holds the name too (EAGAIN). */
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0)
        return errno;
    bool taken = connect(probe, (const struct sockaddr *)&address, sizeof(address)) == 0 ||
                 errno == EAGAIN || errno == EINPROGRESS;
    close(probe);
    return taken ? EADDRINUSE : 0;
}

bool oct_zsocket_is_local(const char *endpoint)
{
    static const char *const within[] = {"ipc://", "inproc://", "shm://"};
    static const char tcp[] = "tcp://";
    char host[INET6_ADDRSTRLEN + 2];
    struct in_addr v4;
    struct in6_addr v6;
    for (size_t i = 0; i < sizeof(within) / sizeof(within[0]); i++)
        if (strncmp(endpoint, within[i], strlen(within[i])) == 0)
            return true;
    if (strncmp(endpoint, tcp, strlen(tcp)) != 0)
        return false;
    const char *start = endpoint + strlen(tcp), *colon = strrchr(start, ':');
    size_t n = colon ? (size_t)(colon - start) : strlen(start);
    bool in_brackets = n >= 2 && start[0] == '[' && start[n - 1] == ']';
    if (n - 2 * in_brackets >= sizeof(host))
        return false;
    snprintf(host, sizeof(host), "%.*s", (int)(n - 2 * in_brackets), start + in_brackets);
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

enum oct_err oct_zsocket_check(const char *endpoint, const char *key, bool guarded,
                               struct oct_error *err)
{
    if (guarded || oct_zsocket_is_local(endpoint))
        return OCT_OK;
    char keys[OCT_ERROR_KEY_BYTES];
    snprintf(keys, sizeof(keys), "%s security.server_key security.allowed", key);
    return oct_fail_key(err, OCT_E_CONFIG, keys,
                        "%s: %s can be reached from other machines, and no keys are set: set "
                        "security.server_key and security.allowed (see octctl keygen), or bind "
                        "127.0.0.1",
                        key, endpoint);
}

static enum oct_callers callers_of(int type)
{
    if (type == ZMQ_PULL)
        return OCT_CALLERS_CAMERA;
    return type == ZMQ_ROUTER ? OCT_CALLERS_CONTROL : OCT_CALLERS_VIEWERS;
}

void *oct_zsocket_bind(void *context, int type, const char *endpoint, const char *key, int queue,
                       int64_t max_message_bytes, struct oct_door *door, char *bound,
                       struct oct_error *err)
{
    int none = 0, v6 = strchr(endpoint, '[') != NULL, handshake_ms = HANDSHAKE_MS;
    size_t bound_bytes = OCT_ENDPOINT_BYTES;
    if (oct_zsocket_check(endpoint, key, door != NULL, err))
        return NULL;
    void *socket = zmq_socket(context, type);
    if (!socket) {
        oct_fail_key(err, OCT_E_IO, key, "%s: no socket: %s", key, zmq_strerror(zmq_errno()));
        return NULL;
    }
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(socket, ZMQ_HANDSHAKE_IVL, &handshake_ms, sizeof(handshake_ms));
    zmq_setsockopt(socket, ZMQ_RCVHWM, &queue, sizeof(queue));
    zmq_setsockopt(socket, ZMQ_SNDHWM, &queue, sizeof(queue));
    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_message_bytes, sizeof(max_message_bytes));
    zmq_setsockopt(socket, ZMQ_IPV6, &v6, sizeof(v6));
    int refused = refuse_ipc(endpoint);
    if (refused || oct_door_guard(door, socket, err)) {
        if (refused)
            explain(err, key, endpoint, refused);
        zmq_close(socket);
        return NULL;
    }
    if (zmq_bind(socket, endpoint) != 0 ||
        zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &bound_bytes) != 0) {
        explain(err, key, endpoint, zmq_errno());
        zmq_close(socket);
        return NULL;
    }
    oct_connections_mark(bound, callers_of(type));
    return socket;
}

enum oct_err oct_zsocket_bind_again(void *socket, const char *endpoint, const char *key,
                                    struct oct_error *err)
{
    int type = 0, refused = refuse_ipc(endpoint);
    size_t type_bytes = sizeof(type);
    if (refused)
        return explain(err, key, endpoint, refused);
    if (zmq_getsockopt(socket, ZMQ_TYPE, &type, &type_bytes) != 0 ||
        zmq_bind(socket, endpoint) != 0)
        return explain(err, key, endpoint, zmq_errno());
    oct_connections_mark(endpoint, callers_of(type));
    return OCT_OK;
}
