#include "viewer/net/subscriber.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"
#include "pipeline/base/thread.h"
#include "viewer/model/enface.h"
#include "viewer/model/overlay.h"
#include "viewer/net/control.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#define MONITOR_ENDPOINT "inproc://octview-monitor"
/* Two B-scans, each with its row of the quality. The thread drains the queue faster than a network
 * fills it; a longer one would only keep old pictures. */
#define QUEUE_MESSAGES 4
/* The largest picture there can be, as f32. ZeroMQ itself disconnects a sender of more. */
#define MOST_PART_BYTES ((int64_t)OCT_MAX_BSCAN_SAMPLES * 4)
/* The kernel finds out that a peer went away without closing (cable, power). ZeroMQ's own
 * heartbeats are left off: with libzmq 4.3.4 a subscription under load, large messages on their
 * way, came to a standstill in several test runs with them and in none without. */
#define KEEPALIVE_IDLE_S 5
#define KEEPALIVE_INTERVAL_S 2
#define KEEPALIVE_PROBES 3
#define RECONNECT_MS 100
#define WANTS_MS 100 /* how soon a topic on demand is subscribed to */
#define RECONNECT_MOST_MS 1000

enum { PART_TOPIC, PART_HEADER, PART_VALUES, N_PARTS };

/* ---- topics ---- */

enum { BSCAN, SPECTRUM, QUALITY, N_OWN, MOST_TOPICS = N_OWN + OCT_VIEW_MOST_OVERLAYS };
enum kind { PICTURES, SPECTRA, IMAGES };

/* A topic's mailbox holds its newest message; messages that must not be lost between two takes go
 * to the archive as they come. */
struct topic {
    const char *name;
    enum kind kind;
    bool on_demand; /* only while oct_subscriber_want says so */
    /* Of images. check refuses a form that octview has no use for. keep puts the image into the
     * archive; NULL: the newest in the mailbox is enough. */
    enum oct_err (*check)(const struct oct_image_header *header, struct oct_error *err);
    void (*keep)(struct oct_view_archive *archive, const struct oct_view_image *image);
};

static const struct topic own[N_OWN] = {
    [BSCAN] = {.name = OCT_TOPIC_BSCAN, .kind = PICTURES},
    [SPECTRUM] = {.name = OCT_TOPIC_SPECTRUM, .kind = SPECTRA},
    [QUALITY] = {OCT_VIEW_TOPIC_QUALITY, IMAGES, false, oct_view_quality_check,
                 oct_view_archive_add_quality},
};

/* A message, decoded, as its topic's kind says. */
union letter {
    struct oct_view_picture picture;
    struct oct_view_spectrum spectrum;
    struct oct_view_image image;
};

struct mailbox {
    struct topic topic;
    union letter filling; /* the thread's */
    union letter ready;   /* the newest, where has_ready; the mutex guards both */
    bool has_ready;
    bool is_wanted;     /* of topics on demand; the mutex guards it */
    bool is_subscribed; /* the thread's */
};

struct oct_subscriber {
    void *zmq;     /* shut down by destroy, which is what ends the thread */
    void *socket;  /* the thread's from its start on */
    void *monitor; /* the thread's too */
    void (*notify)(void *context);
    void *notify_context;
    struct oct_view_archive *archive; /* NULL: none */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the rest, but for what is filled */
    pthread_cond_t arrived;
    struct mailbox box[MOST_TOPICS];
    size_t n_boxes;
    struct oct_subscriber_report report;
};

/* Checks and copies untrusted parts. After an error the letter is filled again. */
static enum oct_err decode_letter(union letter *letter, const struct topic *topic,
                                  zmq_msg_t parts[N_PARTS], struct oct_error *err)
{
    const char *json = zmq_msg_data(&parts[PART_HEADER]);
    const size_t json_bytes = zmq_msg_size(&parts[PART_HEADER]);
    const void *values = zmq_msg_data(&parts[PART_VALUES]);
    const size_t n_bytes = zmq_msg_size(&parts[PART_VALUES]);
    const uint64_t now_ns = oct_clock_ns();
    struct oct_picture_header picture;
    struct oct_image_header image;
    enum oct_err code;
    switch (topic->kind) {
    case PICTURES:
        letter->picture.arrival_ns = now_ns;
        code = oct_picture_decode(&picture, json, json_bytes, n_bytes, err);
        return code ? code : oct_view_picture_set(&letter->picture, &picture, values, n_bytes, err);
    case SPECTRA:
        letter->spectrum.arrival_ns = now_ns;
        return oct_view_spectrum_set(&letter->spectrum, json, json_bytes, values, n_bytes, err);
    default:
        letter->image.arrival_ns = now_ns;
        code = oct_image_header_decode(&image, json, json_bytes, n_bytes, err);
        code = code || !topic->check ? code : topic->check(&image, err);
        return code ? code : oct_view_image_set(&letter->image, &image, values, n_bytes, err);
    }
}

static void finish_letter(union letter *letter, enum kind kind)
{
    if (kind == PICTURES)
        oct_view_picture_finish(&letter->picture);
    else if (kind == SPECTRA)
        oct_view_spectrum_finish(&letter->spectrum);
    else
        oct_view_image_finish(&letter->image);
}

/* ---- the thread ---- */

/* Puts into the archive what must not be lost, and the letter into its box. */
static void deliver(struct oct_subscriber *s, struct mailbox *box)
{
    const struct topic *topic = &box->topic;
    if (s->archive && topic->kind == PICTURES)
        oct_view_archive_add(s->archive, &box->filling.picture);
    else if (s->archive && topic->keep)
        topic->keep(s->archive, &box->filling.image);
    pthread_mutex_lock(&s->mutex);
    if (topic->kind == PICTURES) {
        const struct oct_view_picture *picture = &box->filling.picture;
        oct_view_tally_add(&s->report.tally, &picture->header, picture->arrival_ns);
        pthread_cond_broadcast(&s->arrived);
    }
    union letter newest = box->filling;
    box->filling = box->ready;
    box->ready = newest;
    bool told = box->has_ready;
    box->has_ready = true;
    pthread_mutex_unlock(&s->mutex);
    if (!told && s->notify)
        s->notify(s->notify_context);
}

/* NULL: octview wants no topic of that name. Subscriptions match by prefix, so that messages of
 * topics that begin alike arrive, too. */
static struct mailbox *find_box(struct oct_subscriber *s, const void *name, size_t n_bytes)
{
    for (size_t i = 0; i < s->n_boxes; i++)
        if (n_bytes == strlen(s->box[i].topic.name) &&
            memcmp(name, s->box[i].topic.name, n_bytes) == 0)
            return &s->box[i];
    return NULL;
}

static enum oct_err take_message(struct oct_subscriber *s, zmq_msg_t parts[N_PARTS],
                                 unsigned n_parts, struct oct_error *err)
{
    if (n_parts != N_PARTS)
        return oct_fail(err, OCT_E_FORMAT, "message of %u parts, octd's have %d", n_parts, N_PARTS);
    struct mailbox *box =
        find_box(s, zmq_msg_data(&parts[PART_TOPIC]), zmq_msg_size(&parts[PART_TOPIC]));
    if (!box)
        return oct_fail(err, OCT_E_FORMAT, "a topic that octview did not ask for");
    enum oct_err code = decode_letter(&box->filling, &box->topic, parts, err);
    if (code == OCT_OK)
        deliver(s, box);
    return code;
}

/* Receives one message whole: parts beyond the third are counted and thrown away one by one.
 * False when the context was shut down. */
static bool receive(struct oct_subscriber *s)
{
    zmq_msg_t parts[N_PARTS + 1];
    unsigned n_parts = 0;
    bool more = true;
    struct oct_error err = {0};
    for (unsigned i = 0; i <= N_PARTS; i++)
        zmq_msg_init(&parts[i]);
    while (more) {
        zmq_msg_t *part = &parts[n_parts < N_PARTS ? n_parts : N_PARTS];
        if (zmq_msg_recv(part, s->socket, 0) < 0) {
            if (errno == EINTR)
                continue;
            break;
        }
        if (n_parts < UINT32_MAX)
            n_parts++;
        more = zmq_msg_more(part);
    }
    if (!more && take_message(s, parts, n_parts, &err)) {
        pthread_mutex_lock(&s->mutex);
        s->report.tally.n_bad++;
        s->report.last_bad = err;
        pthread_mutex_unlock(&s->mutex);
    }
    for (unsigned i = 0; i <= N_PARTS; i++)
        zmq_msg_close(&parts[i]);
    return !more;
}

/* A monitor message: u16 event and u32 value, then the address, which is not needed. */
static void note_connection(struct oct_subscriber *s)
{
    uint8_t bytes[64];
    uint16_t event = 0;
    int more = 1;
    size_t more_bytes = sizeof(more);
    if (zmq_recv(s->monitor, bytes, sizeof(bytes), 0) < (int)sizeof(event))
        return;
    memcpy(&event, bytes, sizeof(event));
    while (zmq_getsockopt(s->monitor, ZMQ_RCVMORE, &more, &more_bytes) == 0 && more)
        if (zmq_recv(s->monitor, bytes, sizeof(bytes), 0) < 0)
            break;
    pthread_mutex_lock(&s->mutex);
    s->report.connected = event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
    pthread_mutex_unlock(&s->mutex);
}

/* Only the thread may touch the socket. */
static void follow_wants(struct oct_subscriber *s)
{
    for (size_t i = 0; i < s->n_boxes; i++) {
        struct mailbox *box = &s->box[i];
        const char *name = box->topic.name;
        pthread_mutex_lock(&s->mutex);
        bool wanted = box->is_wanted || !box->topic.on_demand;
        pthread_mutex_unlock(&s->mutex);
        if (wanted != box->is_subscribed)
            zmq_setsockopt(s->socket, wanted ? ZMQ_SUBSCRIBE : ZMQ_UNSUBSCRIBE, name, strlen(name));
        box->is_subscribed = wanted;
    }
}

static void *run_subscriber(void *context)
{
    struct oct_subscriber *s = context;
    zmq_pollitem_t items[] = {
        {.socket = s->socket, .events = ZMQ_POLLIN},
        {.socket = s->monitor, .events = ZMQ_POLLIN},
    };
    bool going = true;
    while (going) {
        follow_wants(s);
        if (zmq_poll(items, 2, WANTS_MS) < 0) {
            going = errno == EINTR;
            continue;
        }
        if (items[1].revents)
            note_connection(s);
        if (items[0].revents)
            going = receive(s);
    }
    zmq_close(s->monitor);
    zmq_close(s->socket);
    return NULL;
}

/* ---- the caller's side ---- */

static void set_int(void *socket, int option, int value)
{
    zmq_setsockopt(socket, option, &value, sizeof(value));
}

static enum oct_err open_sockets(struct oct_subscriber *s, const char *endpoint,
                                 const struct oct_curve_files *keys, struct oct_error *err)
{
    int64_t most_bytes = MOST_PART_BYTES;
    s->socket = zmq_socket(s->zmq, ZMQ_SUB);
    if (!s->socket)
        goto fail;
    set_int(s->socket, ZMQ_LINGER, 0);
    set_int(s->socket, ZMQ_RCVHWM, QUEUE_MESSAGES);
    set_int(s->socket, ZMQ_IPV6, 1);
    set_int(s->socket, ZMQ_TCP_KEEPALIVE, 1);
    set_int(s->socket, ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE_S);
    set_int(s->socket, ZMQ_TCP_KEEPALIVE_INTVL, KEEPALIVE_INTERVAL_S);
    set_int(s->socket, ZMQ_TCP_KEEPALIVE_CNT, KEEPALIVE_PROBES);
    set_int(s->socket, ZMQ_RECONNECT_IVL, RECONNECT_MS);
    set_int(s->socket, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MOST_MS);
    zmq_setsockopt(s->socket, ZMQ_MAXMSGSIZE, &most_bytes, sizeof(most_bytes));
    follow_wants(s); /* no thread runs yet */
    if (zmq_socket_monitor(s->socket, MONITOR_ENDPOINT,
                           ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED) < 0)
        goto fail;
    s->monitor = zmq_socket(s->zmq, ZMQ_PAIR);
    if (!s->monitor || zmq_connect(s->monitor, MONITOR_ENDPOINT) < 0)
        goto fail;
    set_int(s->monitor, ZMQ_LINGER, 0);
    enum oct_err code = oct_curve_set_client(s->socket, keys, err);
    if (code)
        return code;
    if (zmq_connect(s->socket, endpoint) < 0)
        return oct_fail(err, OCT_E_CONFIG,
                        "publish.endpoint '%s': %s; write tcp://HOST:PORT or ipc://PATH", endpoint,
                        zmq_strerror(errno));
    return OCT_OK;
fail:
    return oct_fail(err, OCT_E_IO, "subscription: %s; try again with fewer programs running",
                    zmq_strerror(errno));
}

static void free_subscriber(struct oct_subscriber *s)
{
    zmq_ctx_term(s->zmq);
    pthread_cond_destroy(&s->arrived);
    pthread_mutex_destroy(&s->mutex);
    for (size_t i = 0; i < s->n_boxes; i++) {
        finish_letter(&s->box[i].filling, s->box[i].topic.kind);
        finish_letter(&s->box[i].ready, s->box[i].topic.kind);
    }
    free(s);
}

enum oct_err oct_subscriber_create(struct oct_subscriber **subscriber, const char *endpoint,
                                   const struct oct_curve_files *keys,
                                   struct oct_view_archive *archive, void (*notify)(void *context),
                                   void *context, struct oct_error *err)
{
    char address[OCT_VIEW_ADDRESS_BYTES];
    enum oct_err code;
    *subscriber = NULL;
    struct oct_subscriber *s = calloc(1, sizeof(*s));
    if (!s)
        return oct_fail(err, OCT_E_NO_MEMORY, "subscription: out of memory");
    s->notify = notify;
    s->notify_context = context;
    s->archive = archive;
    for (size_t i = 0; i < N_OWN; i++)
        s->box[s->n_boxes++].topic = own[i];
    for (size_t i = 0; i < oct_view_n_overlays; i++) {
        const struct oct_view_overlay *o = oct_view_overlays[i];
        if (o->topic)
            s->box[s->n_boxes++].topic =
                (struct topic){o->topic, IMAGES, o->wanted || o->setting_name, o->check, o->keep};
    }
    pthread_mutex_init(&s->mutex, NULL);
    oct_condition_init(&s->arrived);
    s->zmq = zmq_ctx_new();
    oct_view_endpoint_connectable(endpoint, address, sizeof(address));
    code = s->zmq ? open_sockets(s, address, keys, err)
                  : oct_fail(err, OCT_E_IO, "subscription: %s", zmq_strerror(errno));
    if (!code)
        code = oct_thread_start(&s->thread, NULL, run_subscriber, s,
                                "subscription: cannot start a thread", err);
    if (code)
        goto fail;
    *subscriber = s;
    return OCT_OK;
fail:
    if (s->monitor)
        zmq_close(s->monitor);
    if (s->socket)
        zmq_close(s->socket);
    free_subscriber(s);
    return code;
}

void oct_subscriber_want(struct oct_subscriber *subscriber, const char *name, bool wanted)
{
    struct mailbox *box = find_box(subscriber, name, strlen(name));
    if (!box || !box->topic.on_demand)
        return;
    pthread_mutex_lock(&subscriber->mutex);
    box->is_wanted = wanted;
    box->has_ready = box->has_ready && wanted;
    pthread_mutex_unlock(&subscriber->mutex);
}

/* Swaps the newest letter of so many bytes. */
static bool take_letter(struct oct_subscriber *s, struct mailbox *box, void *letter, size_t n_bytes)
{
    union letter kept;
    pthread_mutex_lock(&s->mutex);
    const bool came = box->has_ready;
    if (came) {
        memcpy(&kept, letter, n_bytes);
        memcpy(letter, &box->ready, n_bytes);
        memcpy(&box->ready, &kept, n_bytes);
    }
    box->has_ready = false;
    pthread_mutex_unlock(&s->mutex);
    return came;
}

bool oct_subscriber_take_image(struct oct_subscriber *subscriber, const char *name,
                               struct oct_view_image *image)
{
    struct mailbox *box = find_box(subscriber, name, strlen(name));
    return box && box->topic.kind == IMAGES && take_letter(subscriber, box, image, sizeof(*image));
}

bool oct_subscriber_take_spectrum(struct oct_subscriber *subscriber,
                                  struct oct_view_spectrum *spectrum)
{
    return take_letter(subscriber, &subscriber->box[SPECTRUM], spectrum, sizeof(*spectrum));
}

bool oct_subscriber_take(struct oct_subscriber *subscriber, struct oct_view_picture *picture,
                         struct oct_subscriber_report *report)
{
    const bool came = take_letter(subscriber, &subscriber->box[BSCAN], picture, sizeof(*picture));
    pthread_mutex_lock(&subscriber->mutex);
    *report = subscriber->report;
    pthread_mutex_unlock(&subscriber->mutex);
    return came;
}

bool oct_subscriber_wait(struct oct_subscriber *subscriber, uint64_t n_received,
                         uint64_t timeout_ns)
{
    struct timespec until = oct_clock_deadline(timeout_ns / 1000);
    bool in_time = true;
    pthread_mutex_lock(&subscriber->mutex);
    while (subscriber->report.tally.n_received < n_received && in_time)
        in_time = oct_condition_wait_until(&subscriber->arrived, &subscriber->mutex, &until);
    bool enough = subscriber->report.tally.n_received >= n_received;
    pthread_mutex_unlock(&subscriber->mutex);
    return enough;
}

void oct_subscriber_destroy(struct oct_subscriber *subscriber)
{
    if (!subscriber)
        return;
    zmq_ctx_shutdown(subscriber->zmq);
    pthread_join(subscriber->thread, NULL);
    free_subscriber(subscriber);
}
