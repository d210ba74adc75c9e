#include "pipeline/net/door.h"

#include "pipeline/base/thread.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zmq.h>

#define ZAP_ENDPOINT "inproc://zeromq.zap.01"
#define ZAP_DOMAIN "octd"
#define MOST_GUARDED 8
#define PEER_BYTES 64
#define PEERS 64 /* peers whose address is kept until their handshake is over */

struct guarded {
    void *monitor; /* the thread's; NULL: free */
    enum oct_refusal failed;
    bool has_failed; /* the event before this one was a failure; the next event names its
                        descriptor */
};

struct oct_door {
    void *context, *zap;
    struct oct_access *access;
    pthread_t thread;
    int wake_fd;
    atomic_bool ending;
    unsigned n_guarded; /* so far */
    struct {
        int fd;
        char peer[PEER_BYTES];
    } peers[PEERS]; /* [fd % PEERS] */

    pthread_mutex_t lock; /* guards incoming */
    void *incoming[MOST_GUARDED];
    struct guarded guarded[MOST_GUARDED]; /* the thread's */
};

/* ---- the question about a key ---- */

enum {
    ZAP_VERSION,
    ZAP_ID,
    ZAP_DOMAIN_PART,
    ZAP_ADDRESS,
    ZAP_IDENTITY,
    ZAP_MECHANISM,
    ZAP_KEY,
    ZAP_PARTS
};

struct zap_request {
    char part[ZAP_PARTS][256];
    int length[ZAP_PARTS];
};

/* False: no request is there. A malformed request has no key and is refused. */
static bool take_request(void *zap, struct zap_request *r)
{
    int n = 0, more = 1;
    memset(r, 0, sizeof(*r));
    while (more) {
        char rest[256];
        char *to = n < ZAP_PARTS ? r->part[n] : rest;
        int length = zmq_recv(zap, to, sizeof(rest) - 1, n ? 0 : ZMQ_DONTWAIT);
        size_t bytes = sizeof(more);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0 || zmq_getsockopt(zap, ZMQ_RCVMORE, &more, &bytes) != 0)
            return false;
        if (n < ZAP_PARTS)
            r->length[n] = length < (int)sizeof(rest) ? length : 0;
        n++;
    }
    return true;
}

/* ---- connections that failed before a key was seen ---- */

static void name_peer(int fd, char peer[PEER_BYTES])
{
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof(address);
    char text[INET6_ADDRSTRLEN] = "";
    /* The connection may be closed already, and its address gone. */
    if (getpeername(fd, (struct sockaddr *)&address, &bytes) != 0)
        snprintf(peer, PEER_BYTES, "a peer that has gone");
    else if (address.ss_family == AF_INET)
        inet_ntop(AF_INET, &((struct sockaddr_in *)&address)->sin_addr, text, sizeof(text));
    else if (address.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&address)->sin6_addr, text, sizeof(text));
    else
        snprintf(peer, PEER_BYTES, "this machine");
    if (text[0])
        snprintf(peer, PEER_BYTES, "%s", text);
}

static enum oct_refusal why_failed(uint16_t event, uint32_t value)
{
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
        return OCT_REFUSED_BROKEN_OFF;
    return value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH ? OCT_REFUSED_PLAIN
                                                               : OCT_REFUSED_PROTOCOL;
}

/* ZeroMQ reports a failed handshake without a descriptor; the next event reports the end of that
 * connection, with its descriptor. */
static void note_event(struct oct_door *door, struct guarded *g, uint16_t event, uint32_t value)
{
    int fd = (int)value;
    size_t place = (size_t)(fd < 0 ? 0 : fd) % PEERS;
    switch (event) {
    case ZMQ_EVENT_ACCEPTED:
        oct_access_note_accepted(door->access, fd);
        door->peers[place].fd = fd;
        name_peer(fd, door->peers[place].peer);
        return;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
        g->has_failed = true;
        g->failed = why_failed(event, value);
        return;
    case ZMQ_EVENT_DISCONNECTED:
        if (g->has_failed)
            oct_access_note_refusal(door->access, g->failed,
                                    door->peers[place].fd == fd ? door->peers[place].peer
                                                                : "an unknown peer");
        g->has_failed = false;
        return;
    default: /* refused for its key: counted by oct_access_greets */
        g->has_failed = false;
    }
}

static void close_monitor(struct guarded *g)
{
    zmq_close(g->monitor);
    g->monitor = NULL;
}

static void take_events(struct oct_door *door, struct guarded *g)
{
    uint8_t event[6];
    char endpoint[256];
    while (g->monitor && zmq_recv(g->monitor, event, sizeof(event), ZMQ_DONTWAIT) >= 0) {
        uint16_t number;
        uint32_t value;
        memcpy(&number, event, sizeof(number));
        memcpy(&value, event + 2, sizeof(value));
        zmq_recv(g->monitor, endpoint, sizeof(endpoint), 0);
        if (number == ZMQ_EVENT_MONITOR_STOPPED)
            close_monitor(g);
        else
            note_event(door, g, number, value);
    }
}

static void take_incoming(struct oct_door *door)
{
    eventfd_t n;
    eventfd_read(door->wake_fd, &n);
    pthread_mutex_lock(&door->lock);
    for (int i = 0; i < MOST_GUARDED; i++) {
        if (!door->incoming[i])
            continue;
        door->guarded[i] = (struct guarded){.monitor = door->incoming[i]};
        door->incoming[i] = NULL;
    }
    pthread_mutex_unlock(&door->lock);
}

static void take_all_events(struct oct_door *door)
{
    for (int i = 0; i < MOST_GUARDED; i++)
        take_events(door, &door->guarded[i]);
}

/* ---- the answer about a key ---- */

static void answer(struct oct_door *door)
{
    struct zap_request r;
    while (take_request(door->zap, &r)) {
        char key[OCT_CURVE_KEY_BYTES] = "", pass[OCT_PASS_BYTES] = "";
        bool curve = strcmp(r.part[ZAP_MECHANISM], "CURVE") == 0 && r.length[ZAP_KEY] == 32;
        if (curve)
            zmq_z85_encode(key, (const uint8_t *)r.part[ZAP_KEY], 32);
        /* ZeroMQ has reported the connection before it asks about its key: read that report before
         * allowing the key, so that the connection can be cut when the key is revoked. */
        take_incoming(door);
        take_all_events(door);
        /* A peer of an ipc socket has no address. */
        const char *peer = r.part[ZAP_ADDRESS][0] ? r.part[ZAP_ADDRESS] : "this machine";
        bool comes_in = curve && oct_access_greets(door->access, key, peer, pass);
        const char *parts[] = {"1.0", NULL, comes_in ? "200" : "400", comes_in ? "OK" : "no",
                               pass,  ""};
        for (int i = 0; i < 6; i++) {
            const char *part = i == 1 ? r.part[ZAP_ID] : parts[i];
            size_t bytes = i == 1 ? (size_t)r.length[ZAP_ID] : strlen(part);
            zmq_send(door->zap, part, bytes, i < 5 ? ZMQ_SNDMORE : 0);
        }
    }
}

/* ---- the thread ---- */

static void *run_door(void *context)
{
    struct oct_door *door = context;
    while (!atomic_load(&door->ending)) {
        zmq_pollitem_t items[2 + MOST_GUARDED] = {
            {.socket = door->zap, .events = ZMQ_POLLIN},
            {.fd = door->wake_fd, .events = ZMQ_POLLIN},
        };
        int n = 2;
        for (int i = 0; i < MOST_GUARDED; i++)
            if (door->guarded[i].monitor)
                items[n++] =
                    (zmq_pollitem_t){.socket = door->guarded[i].monitor, .events = ZMQ_POLLIN};
        if (zmq_poll(items, n, -1) < 0)
            continue;
        if (items[1].revents)
            take_incoming(door);
        answer(door);
        take_all_events(door);
    }
    take_all_events(door);
    for (int i = 0; i < MOST_GUARDED; i++)
        if (door->guarded[i].monitor)
            close_monitor(&door->guarded[i]);
    zmq_close(door->zap);
    return NULL;
}

/* ---- the owner's side ---- */

enum oct_err oct_door_create(struct oct_door **out, void *zmq_context, struct oct_access *access,
                             struct oct_error *err)
{
    static const char what[] = "security: cannot ask for keys";
    enum oct_err e;
    *out = NULL;
    if (!access)
        return OCT_OK;
    struct oct_door *door = calloc(1, sizeof(*door));
    int none = 0;
    if (!door)
        return oct_fail(err, OCT_E_NO_MEMORY, "security: out of memory");
    door->context = zmq_context;
    door->access = access;
    door->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&door->lock, NULL);
    door->zap = zmq_socket(zmq_context, ZMQ_REP);
    if (door->wake_fd < 0 || !door->zap ||
        zmq_setsockopt(door->zap, ZMQ_LINGER, &none, sizeof(none)) != 0 ||
        zmq_bind(door->zap, ZAP_ENDPOINT) != 0)
        e = oct_fail(err, OCT_E_IO, "%s: %s", what, zmq_strerror(errno));
    else
        e = oct_thread_start(&door->thread, "octd-door", run_door, door, what, err);
    if (e) {
        if (door->zap)
            zmq_close(door->zap);
        if (door->wake_fd >= 0)
            close(door->wake_fd);
        pthread_mutex_destroy(&door->lock);
        free(door);
        return e;
    }
    *out = door;
    return OCT_OK;
}

/* The monitor's other end, handed over to the thread. */
static bool watch_socket(struct oct_door *door, void *socket)
{
    char name[64];
    int none = 0;
    if (door->n_guarded == MOST_GUARDED)
        return false;
    snprintf(name, sizeof(name), "inproc://door-%u", door->n_guarded);
    if (zmq_socket_monitor(socket, name,
                           ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
                               ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                               ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                               ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_MONITOR_STOPPED) != 0)
        return false;
    void *monitor = zmq_socket(door->context, ZMQ_PAIR);
    if (!monitor)
        return false;
    zmq_setsockopt(monitor, ZMQ_LINGER, &none, sizeof(none));
    /* Without a high-water mark: ZeroMQ's own thread would block when the queue is full. */
    zmq_setsockopt(monitor, ZMQ_RCVHWM, &none, sizeof(none));
    if (zmq_connect(monitor, name) != 0) {
        zmq_close(monitor);
        return false;
    }
    pthread_mutex_lock(&door->lock);
    door->incoming[door->n_guarded++] = monitor;
    pthread_mutex_unlock(&door->lock);
    eventfd_write(door->wake_fd, 1);
    return true;
}

enum oct_err oct_door_guard(struct oct_door *door, void *socket, struct oct_error *err)
{
    int on = 1;
    if (!door)
        return OCT_OK;
    const char *secret = oct_access_secret(door->access);
    if (zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &on, sizeof(on)) == 0 &&
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret, OCT_CURVE_KEY_BYTES) == 0 &&
        zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, ZAP_DOMAIN, strlen(ZAP_DOMAIN)) == 0 &&
        watch_socket(door, socket))
        return OCT_OK;
    return oct_fail(err, OCT_E_IO, "security: cannot guard a socket: %s",
                    zmq_strerror(zmq_errno()));
}

bool oct_door_admits(struct oct_door *door, void *message)
{
    if (!door)
        return true;
    /* A peer that connected while nobody answered ZAP has no User-Id, and is refused here. The
     * descriptor is a deprecated property that ZeroMQ still returns; without it (-1) the message is
     * refused as well, but its connection stays open. */
    return oct_access_admits(door->access, zmq_msg_gets(message, "User-Id"),
                             zmq_msg_get(message, ZMQ_SRCFD));
}

void oct_door_destroy(struct oct_door *door)
{
    if (!door)
        return;
    atomic_store(&door->ending, true);
    eventfd_write(door->wake_fd, 1);
    pthread_join(door->thread, NULL);
    close(door->wake_fd);
    pthread_mutex_destroy(&door->lock);
    free(door);
}
