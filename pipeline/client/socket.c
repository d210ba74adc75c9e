/* The camera driver's client: everything that knows ZeroMQ. */
#define _DEFAULT_SOURCE
#include "pipeline/client/socket.h"

#include "pipeline/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

static void end_loan(void *lines, void *hint)
{
    struct oct_client_loan *loan = hint;
    if (loan->release)
        loan->release(lines, loan->hint);
    atomic_fetch_sub(&loan->queued->lines, loan->n_lines);
    atomic_fetch_sub(&loan->queued->messages, 1);
    free(loan);
}

enum oct_err oct_client_open_socket(struct oct_client *client)
{
    struct oct_error *err = &client->error;
    int no_linger = 0;
    char address[64];
    client->context = zmq_ctx_new();
    client->socket = client->context ? zmq_socket(client->context, ZMQ_PUSH) : NULL;
    client->monitor = client->socket ? zmq_socket(client->context, ZMQ_PAIR) : NULL;
    if (!client->monitor)
        return oct_fail(err, OCT_E_IO, "cannot make a socket: %s", zmq_strerror(errno));
    snprintf(address, sizeof(address), "inproc://monitor-%p", (void *)client);
    if (zmq_setsockopt(client->socket, ZMQ_LINGER, &no_linger, sizeof(no_linger)) ||
        zmq_setsockopt(client->socket, ZMQ_SNDHWM, &client->queue_messages, sizeof(int)) ||
        zmq_setsockopt(client->socket, ZMQ_SNDTIMEO, &client->wait_ms, sizeof(int)) ||
        zmq_setsockopt(client->monitor, ZMQ_LINGER, &no_linger, sizeof(no_linger)) ||
        zmq_socket_monitor(client->socket, address, ZMQ_EVENT_HANDSHAKE_SUCCEEDED) ||
        zmq_connect(client->monitor, address))
        return oct_fail(err, OCT_E_IO, "cannot set up a socket: %s", zmq_strerror(errno));
    const struct oct_curve_files keys = {client->client_key, client->server_public};
    enum oct_err code = oct_curve_set_client(client->socket, &keys, err);
    if (code)
        return code;
    if (zmq_connect(client->socket, client->endpoint))
        return oct_fail(err, OCT_E_ARG, "cannot connect to '%s': %s", client->endpoint,
                        zmq_strerror(errno));
    return OCT_OK;
}

void oct_client_close_socket(struct oct_client *client)
{
    if (client->monitor) {
        zmq_socket_monitor(client->socket, NULL, 0);
        zmq_close(client->monitor);
    }
    if (client->socket)
        zmq_close(client->socket);
    if (client->context)
        while (zmq_ctx_term(client->context) && errno == EINTR)
            ;
    client->context = client->socket = client->monitor = NULL;
    client->connected = false;
}

enum oct_client_result oct_client_failed(struct oct_client *client, const char *what)
{
    oct_fail(&client->error, OCT_E_IO, "%s: %s", what, zmq_strerror(errno));
    return OCT_CLIENT_FAILED;
}

enum oct_client_result oct_client_send_parts(struct oct_client *client, const uint8_t *header,
                                             void *lines, size_t n_bytes,
                                             struct oct_client_loan *loan, bool wait)
{
    zmq_msg_t payload;
    int flags = wait ? 0 : ZMQ_DONTWAIT;
    if (zmq_msg_init_data(&payload, lines, n_bytes, end_loan, loan)) {
        int why = errno;
        loan->release = NULL;
        end_loan(lines, loan);
        errno = why;
        return oct_client_failed(client, "cannot make a message");
    }
    if (zmq_send(client->socket, header, OCT_LINES_HEADER_BYTES, flags | ZMQ_SNDMORE) < 0) {
        int why = errno;
        loan->release = NULL;
        zmq_msg_close(&payload);
        errno = why;
        if (why == EAGAIN)
            return OCT_CLIENT_TIMEOUT;
        return why == EINTR ? OCT_CLIENT_INTERRUPTED : oct_client_failed(client, "cannot send");
    }
    /* ZeroMQ reserves room for a whole message: the second part does not wait, but a signal may
     * interrupt it. */
    while (zmq_msg_send(&payload, client->socket, 0) < 0) {
        if (errno == EINTR || errno == EAGAIN)
            continue;
        int why = errno;
        loan->release = NULL;
        zmq_msg_close(&payload);
        errno = why;
        return oct_client_failed(client, "cannot send the second part");
    }
    return OCT_CLIENT_OK;
}

enum oct_client_result oct_client_wait_socket(struct oct_client *client, uint64_t end_ns)
{
    if (!client->monitor)
        return oct_client_failed(client, "no socket");
    while (!client->connected) {
        uint64_t now = oct_clock_ns();
        uint64_t left_ms = end_ns > now ? (end_ns - now + 999999) / 1000000 : 0;
        zmq_pollitem_t item = {.socket = client->monitor, .events = ZMQ_POLLIN};
        int n = zmq_poll(&item, 1, (long)left_ms);
        if (n < 0)
            return errno == EINTR ? OCT_CLIENT_INTERRUPTED
                                  : oct_client_failed(client, "cannot wait");
        if (n == 0)
            return OCT_CLIENT_TIMEOUT;
        /* The monitor reports handshakes only, so every message is one: event part, address
         * part. */
        char part[256];
        while (zmq_recv(client->monitor, part, sizeof(part), ZMQ_DONTWAIT) >= 0)
            client->connected = true;
    }
    return OCT_CLIENT_OK;
}
