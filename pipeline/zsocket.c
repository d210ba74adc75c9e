#include "pipeline/zsocket.h"

#include <errno.h>

#include <zmq.h>

static enum oct_err explain(struct oct_error *err, const char *key, const char *endpoint)
{
    int errnum = zmq_errno();
    const char *hint = "";
    if (errnum == EADDRINUSE)
        hint = " (another program, perhaps another octd, has it: stop that one or choose another)";
    else if (errnum == EINVAL || errnum == EPROTONOSUPPORT || errnum == ENODEV)
        hint = " (write it like tcp://127.0.0.1:5701 or ipc:///run/octd/lines)";
    return oct_fail(err, OCT_E_IO, "%s: cannot bind %s: %s%s", key, endpoint, zmq_strerror(errnum),
                    hint);
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
    if (zmq_bind(socket, endpoint) != 0 ||
        zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &bound_bytes) != 0) {
        explain(err, key, endpoint);
        zmq_close(socket);
        return NULL;
    }
    return socket;
}
