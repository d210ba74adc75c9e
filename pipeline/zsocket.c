#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "pipeline/zsocket.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <zmq.h>

static enum oct_err explain(struct oct_error *err, const char *key, const char *endpoint,
                            int errnum)
{
    const char *hint = "";
    if (errnum == EADDRINUSE)
        hint = " (another program, perhaps another octd, has it: stop that one or choose another)";
    else if (errnum == EINVAL || errnum == EPROTONOSUPPORT || errnum == ENODEV)
        hint = " (write it like tcp://127.0.0.1:5701 or ipc:///run/octd/lines)";
    return oct_fail(err, OCT_E_IO, "%s: cannot bind %s: %s%s", key, endpoint, zmq_strerror(errnum),
                    hint);
}

/* libzmq removes the file of an ipc endpoint before it binds, whoever uses it: a second daemon would
 * take the first one's clients without a word. A file that nobody listens on is stale and may go. */
static bool is_taken(const char *endpoint)
{
    static const char ipc[] = "ipc://";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strncmp(endpoint, ipc, strlen(ipc)) != 0)
        return false;
    const char *path = endpoint + strlen(ipc);
    if (*path == '@' || strlen(path) >= sizeof(address.sun_path))
        return false; /* abstract names cannot be stolen; too long ones fail at the bind */
    memcpy(address.sun_path, path, strlen(path));
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return false;
    bool taken = connect(probe, (const struct sockaddr *)&address, sizeof(address)) == 0;
    close(probe);
    return taken;
}

void *oct_zsocket_bind(void *context, int type, const char *endpoint, const char *key, int queue,
                       int64_t max_message_bytes, char *bound, struct oct_error *err)
{
    int none = 0;
    size_t bound_bytes = OCT_ENDPOINT_BYTES;
    void *socket = zmq_socket(context, type);
    if (!socket) {
        oct_fail(err, OCT_E_IO, "%s: no socket: %s", key, zmq_strerror(zmq_errno()));
        return NULL;
    }
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(socket, ZMQ_RCVHWM, &queue, sizeof(queue));
    zmq_setsockopt(socket, ZMQ_SNDHWM, &queue, sizeof(queue));
    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_message_bytes, sizeof(max_message_bytes));
    if (is_taken(endpoint)) {
        explain(err, key, endpoint, EADDRINUSE);
        zmq_close(socket);
        return NULL;
    }
    if (zmq_bind(socket, endpoint) != 0 ||
        zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &bound_bytes) != 0) {
        explain(err, key, endpoint, zmq_errno());
        zmq_close(socket);
        return NULL;
    }
    return socket;
}
