#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "pipeline/zsocket.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <zmq.h>

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
    return oct_fail(err, OCT_E_IO, "%s: cannot bind %s: %s%s", key, endpoint, zmq_strerror(errnum),
                    hint);
}

/* libzmq removes the file of an ipc endpoint before it binds, whatever it is and whoever uses it: a
 * second daemon would take the first one's clients without a word, and a mistyped path a recording.
 * Only a socket that nobody listens on is stale and may go. 0, or why not. */
static int refuse_ipc(const char *endpoint)
{
    static const char ipc[] = "ipc://";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat there;
    if (strncmp(endpoint, ipc, strlen(ipc)) != 0)
        return 0;
    const char *path = endpoint + strlen(ipc);
    if (*path == '@' || strlen(path) >= sizeof(address.sun_path) || lstat(path, &there) != 0)
        return 0; /* abstract names cannot be stolen; too long ones fail at the bind */
    if (!S_ISSOCK(there.st_mode))
        return ENOTSOCK;
    memcpy(address.sun_path, path, strlen(path));
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return errno;
    bool taken = connect(probe, (const struct sockaddr *)&address, sizeof(address)) == 0;
    close(probe);
    return taken ? EADDRINUSE : 0;
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
    int refused = refuse_ipc(endpoint);
    if (refused) {
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
    return socket;
}
