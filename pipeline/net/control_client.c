#include "pipeline/net/control_client.h"

#include "pipeline/base/clock.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

struct oct_control_client {
    void *zmq, *socket; /* socket NULL: the next question opens one */
    char *endpoint;
    struct oct_curve_files keys;
    bool ipv6;
};

/* ---- the connection ---- */

static void close_socket(struct oct_control_client *c)
{
    if (c->socket)
        zmq_close(c->socket);
    c->socket = NULL;
}

static enum oct_err connect_socket(struct oct_control_client *c, struct oct_error *err)
{
    const int no_linger = 0, ipv6 = c->ipv6;
    const int64_t most_bytes = OCT_CONTROL_MOST_REPLY_BYTES;

    c->socket = zmq_socket(c->zmq, ZMQ_REQ);
    if (!c->socket || zmq_setsockopt(c->socket, ZMQ_LINGER, &no_linger, sizeof(no_linger)) ||
        zmq_setsockopt(c->socket, ZMQ_IPV6, &ipv6, sizeof(ipv6)) ||
        zmq_setsockopt(c->socket, ZMQ_MAXMSGSIZE, &most_bytes, sizeof(most_bytes)))
        return oct_fail(err, zmq_errno() == ETERM ? OCT_E_CLOSED : OCT_E_IO,
                        "cannot make a socket: %s", zmq_strerror(zmq_errno()));
    enum oct_err code = oct_curve_set_client(c->socket, &c->keys, err);
    if (!code && zmq_connect(c->socket, c->endpoint) != 0)
        code = oct_fail(err, OCT_E_CONFIG,
                        "control.endpoint: cannot connect to '%s': %s; write tcp://HOST:PORT or "
                        "ipc://PATH",
                        c->endpoint, zmq_strerror(zmq_errno()));
    return code;
}

static enum oct_err open_socket(struct oct_control_client *c, struct oct_error *err)
{
    enum oct_err code = c->socket ? OCT_OK : connect_socket(c, err);
    if (code)
        close_socket(c);
    return code;
}

enum oct_err oct_control_client_create(struct oct_control_client **client,
                                       const struct oct_control_client_setup *setup,
                                       struct oct_error *err)
{
    *client = NULL;
    struct oct_control_client *c = calloc(1, sizeof(*c));
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the control client");
    c->keys = setup->keys;
    c->ipv6 = setup->prefers_ipv6 || strchr(setup->endpoint, '[');
    c->endpoint = strdup(setup->endpoint);
    c->zmq = zmq_ctx_new();
    enum oct_err code = c->endpoint && c->zmq ? open_socket(c, err)
                                              : oct_fail(err, OCT_E_NO_MEMORY,
                                                         "out of memory for the control client");
    if (code)
        oct_control_client_destroy(c);
    else
        *client = c;
    return code;
}

void oct_control_client_end(struct oct_control_client *c)
{
    zmq_ctx_shutdown(c->zmq);
}

void oct_control_client_destroy(struct oct_control_client *c)
{
    if (!c)
        return;
    close_socket(c);
    if (c->zmq)
        zmq_ctx_term(c->zmq);
    free(c->endpoint);
    free(c);
}

/* ---- a question ---- */

static enum oct_err explain(const struct oct_control_client *c, const char *what,
                            struct oct_error *err)
{
    if (zmq_errno() == ETERM)
        return oct_fail(err, OCT_E_CLOSED, "%s: the question was called off", c->endpoint);
    if (zmq_errno() != EAGAIN)
        return oct_fail(err, OCT_E_IO, "%s: %s%s", c->endpoint, what, zmq_strerror(zmq_errno()));
    return oct_fail(err, OCT_E_AGAIN,
                    "no daemon answers at %s (is octd running? --set control.endpoint=...; %s)",
                    c->endpoint,
                    c->keys.client_key && c->keys.client_key[0]
                        ? "does it allow the key of security.client_key?"
                        : "one with keys answers only with security.client_key");
}

/* Tells the socket how long its next call may wait. */
static void set_timeout(struct oct_control_client *c, int option, uint64_t end_ns)
{
    uint64_t now_ns = oct_clock_ns();
    int left_ms = now_ns < end_ns ? (int)((end_ns - now_ns + 999999) / 1000000) : 0;
    zmq_setsockopt(c->socket, option, &left_ms, sizeof(left_ms));
}

static enum oct_err send_request(struct oct_control_client *c, const char *request, uint64_t end_ns,
                                 struct oct_error *err)
{
    int n;
    do {
        set_timeout(c, ZMQ_SNDTIMEO, end_ns);
        n = zmq_send(c->socket, request, strlen(request), 0);
    } while (n < 0 && zmq_errno() == EINTR);
    return n < 0 ? explain(c, "cannot send: ", err) : OCT_OK;
}

/* Further parts of a message are there as soon as the first is. */
static void skip_rest(struct oct_control_client *c, bool more)
{
    while (more) {
        zmq_msg_t rest;
        zmq_msg_init(&rest);
        more = zmq_msg_recv(&rest, c->socket, 0) >= 0 && zmq_msg_more(&rest);
        zmq_msg_close(&rest);
    }
}

static enum oct_err receive_reply(struct oct_control_client *c, uint64_t end_ns, zmq_msg_t *reply,
                                  struct oct_error *err)
{
    int n;
    do {
        set_timeout(c, ZMQ_RCVTIMEO, end_ns);
        n = zmq_msg_recv(reply, c->socket, 0);
    } while (n < 0 && zmq_errno() == EINTR);
    if (n < 0)
        return explain(c, "", err);
    skip_rest(c, zmq_msg_more(reply));
    return OCT_OK;
}

/* malloc'd, with a NUL behind it; NULL when out of memory. */
static char *text_of(zmq_msg_t *message)
{
    size_t n = zmq_msg_size(message);
    char *text = malloc(n + 1);
    if (text) {
        memcpy(text, zmq_msg_data(message), n);
        text[n] = '\0';
    }
    return text;
}

enum oct_err oct_control_client_ask(struct oct_control_client *c, const char *request,
                                    unsigned timeout_ms, char **reply, size_t *n_bytes,
                                    struct oct_error *err)
{
    uint64_t end_ns = oct_clock_ns() + timeout_ms * UINT64_C(1000000);
    zmq_msg_t message;

    *reply = NULL;
    zmq_msg_init(&message);
    enum oct_err code = open_socket(c, err);
    if (!code)
        code = send_request(c, request, end_ns, err);
    if (!code)
        code = receive_reply(c, end_ns, &message, err);
    if (code)
        close_socket(c); /* a REQ socket that waits in vain can never ask again */
    else if (!(*reply = text_of(&message)))
        code = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a reply");
    if (!code && n_bytes)
        *n_bytes = zmq_msg_size(&message);
    zmq_msg_close(&message);
    return code;
}
