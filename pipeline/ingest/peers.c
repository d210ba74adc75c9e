#include "pipeline/ingest/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#define MOST_WAITING 64

struct oct_peers {
    void *socket, *events;
    /* Connections that were accepted and whose handshake is not over, the oldest first. ZeroMQ
     * names no connection when it reports a completed handshake: with several open it may be any of
     * them, so that none of them is reported later. */
    uint32_t waiting[MOST_WAITING];
    unsigned n_waiting;
};

struct oct_peers *oct_peers_watch(void *zmq_context, void *socket)
{
    static const int all = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
                           ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                           ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
    /* Without a high-water mark: ZeroMQ's own thread writes the events and would block when the
     * queue is full. */
    int none = 0;
    char address[64];
    struct oct_peers *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->socket = socket;
    p->events = zmq_socket(zmq_context, ZMQ_PAIR);
    snprintf(address, sizeof(address), "inproc://peers-%p", (void *)p);
    if (!p->events || zmq_setsockopt(p->events, ZMQ_LINGER, &none, sizeof(none)) ||
        zmq_setsockopt(p->events, ZMQ_RCVHWM, &none, sizeof(none)) ||
        zmq_socket_monitor(socket, address, all) || zmq_connect(p->events, address)) {
        oct_peers_end(p);
        return NULL;
    }
    return p;
}

/* Takes entry i out. */
static void forget(struct oct_peers *p, unsigned i)
{
    p->n_waiting--;
    memmove(&p->waiting[i], &p->waiting[i + 1], (p->n_waiting - i) * sizeof(p->waiting[0]));
}

static void follow_event(struct oct_peers *p, uint16_t event, uint32_t connection,
                         struct oct_driver_watch *watch)
{
    unsigned i = 0;
    switch (event) {
    case ZMQ_EVENT_ACCEPTED:
        if (p->n_waiting == MOST_WAITING)
            forget(p, 0);
        p->waiting[p->n_waiting++] = connection;
        break;
    case ZMQ_EVENT_DISCONNECTED: /* its handshake was not over: not a PUSH socket */
        while (i < p->n_waiting && p->waiting[i] != connection)
            i++;
        if (i == p->n_waiting)
            break;
        forget(p, i);
        oct_driver_watch_connection(watch);
        break;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
        oct_driver_watch_connection(watch);
        /* fall through */
    default: /* the handshake succeeded, or a key was missing, which the door counts */
        p->n_waiting = 0;
    }
}

void oct_peers_look(struct oct_peers *p, struct oct_driver_watch *watch)
{
    unsigned char bytes[6];
    for (;;) {
        int n = p ? zmq_recv(p->events, bytes, sizeof(bytes), ZMQ_DONTWAIT) : -1;
        if (n < 0)
            return;
        uint16_t event = 0;
        uint32_t value = 0;
        if (n == sizeof(bytes)) { /* in this machine's byte order; the address follows */
            memcpy(&event, bytes, sizeof(event));
            memcpy(&value, bytes + sizeof(event), sizeof(value));
        }
        int more = 0;
        size_t more_bytes = sizeof(more);
        while (zmq_getsockopt(p->events, ZMQ_RCVMORE, &more, &more_bytes) == 0 && more)
            if (zmq_recv(p->events, NULL, 0, 0) < 0)
                return;
        if (event)
            follow_event(p, event, value, watch);
    }
}

void oct_peers_end(struct oct_peers *p)
{
    if (!p)
        return;
    zmq_socket_monitor(p->socket, NULL, 0);
    if (p->events)
        zmq_close(p->events);
    free(p);
}
