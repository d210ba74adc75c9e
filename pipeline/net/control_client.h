/* A client of octd's control endpoint: a request out, its reply in, both of them JSON as text
 * (contract section 5, control).
 *
 *     create -> { ask ... } -> destroy        from any thread meanwhile: end
 *
 * A request is sent once. Nobody knows whether a daemon that does not reply has heard it, so it is
 * never sent again by itself; whoever asks may ask again. After a question without a reply the
 * connection is given up and the next question makes a new one: a reply that comes late is never
 * taken for that to another question. A lost connection comes back by itself.
 *
 * Threads: one at a time calls ask. */
#ifndef OCT_PIPELINE_NET_CONTROL_CLIENT_H
#define OCT_PIPELINE_NET_CONTROL_CLIENT_H

#include "pipeline/base/err.h"
#include "pipeline/net/curve.h"

#include <stdbool.h>
#include <stddef.h>

#define OCT_CONTROL_MOST_REPLY_BYTES (1u << 20) /* ZeroMQ throws larger ones away */

struct oct_control_client;

struct oct_control_client_setup {
    const char *endpoint;        /* "tcp://HOST:PORT", "ipc://PATH"; copied */
    struct oct_curve_files keys; /* the paths outlive the client */
    bool prefers_ipv6;           /* names of hosts; an address in brackets is one of IPv6 anyhow */
};

/* Connects, which succeeds with nobody there yet. OCT_E_CONFIG: ZeroMQ does not understand the
 * endpoint, or a key file is wrong. OCT_E_IO, OCT_E_NO_MEMORY. *client is NULL on error. */
enum oct_err oct_control_client_create(struct oct_control_client **client,
                                       const struct oct_control_client_setup *setup,
                                       struct oct_error *err);

/* Sends the request and waits for its reply for timeout_ms at most, sending included. *reply is
 * malloc'd and NUL-terminated; *n_bytes (may be NULL) does not count the NUL. Of a reply of several
 * parts it is the first. On error *reply is NULL.
 *
 * OCT_E_AGAIN: no reply in time; the text says what to look at. OCT_E_CLOSED: ended by end.
 * OCT_E_IO, OCT_E_CONFIG (a key file is wrong now), OCT_E_NO_MEMORY. */
enum oct_err oct_control_client_ask(struct oct_control_client *client, const char *request,
                                    unsigned timeout_ms, char **reply, size_t *n_bytes,
                                    struct oct_error *err);

/* Makes an ask that waits return OCT_E_CLOSED at once, and every later one too. Any thread. */
void oct_control_client_end(struct oct_control_client *client);

/* No thread may be inside ask. NULL is fine. */
void oct_control_client_destroy(struct oct_control_client *client);

#endif
