#define _GNU_SOURCE /* pthread_setname_np */
#include "pipeline/publish/publisher.h"

#include "pipeline/base/clock.h"
#include "pipeline/flow/slots.h"
#include "pipeline/flow/spectrum.h"
#include "pipeline/net/subscriptions.h"
#include "pipeline/net/zsocket.h"
#include "pipeline/wire/wire.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#define LINGER_MS 300 /* the last pictures leave with us; a subscriber that hangs costs no more */
#define SPECTRUM_EVERY_NS UINT64_C(250000000)

struct oct_publisher {
    struct oct_geometry geometry;
    struct oct_ring *images;
    struct oct_ring_reader *reader;
    void *socket; /* the thread's own once it runs */
    struct oct_door *door;
    struct oct_subscriptions *subscriptions; /* the thread's */
    char endpoint[OCT_ENDPOINT_BYTES];
    char session[32];
    pthread_t thread;
    uint32_t acquisition; /* the thread's: of the picture before */
    atomic_uint_fast64_t published;
    struct oct_latency latency;
    struct oct_ring *raw; /* of the spectra; NULL: none are sent */
    struct oct_ring_reader *raw_reader;
    uint16_t *spectrum; /* [N], a copy */
    uint32_t limit;
    uint64_t spectrum_ns; /* when the last one was sent */
};

static bool send_part(void *socket, const void *bytes, size_t n, int flags)
{
    int status;
    do
        status = zmq_send(socket, bytes, n, flags);
    while (status < 0 && errno == EINTR);
    return status >= 0;
}

/* A picture on its way out. ZeroMQ obeys subscriptions while it sends, which takes as long as there
 * are any: by then the slot must be back, or a viewer would hold up the engine and the camera. So
 * the picture is copied out first, into the messages that ZeroMQ takes over: no more copies than
 * zmq_send makes. */
struct parcel {
    zmq_msg_t part[3];
    struct oct_bscan_info info;
};

static bool fill(zmq_msg_t *part, const void *bytes, size_t n)
{
    if (zmq_msg_init_size(part, n) != 0)
        return false;
    memcpy(zmq_msg_data(part), bytes, n);
    return true;
}

static bool pack(struct oct_publisher *pub, const struct oct_image_frame *frame,
                 struct parcel *parcel)
{
    const struct oct_geometry *g = &pub->geometry;
    struct oct_picture_header header = {
        .frame_num = frame->info.number,
        .sample_type = g->sample_type,
        .n_lines = g->n_lines,
        .depth = g->depth,
        .time_ns = frame->info.time_ns,
        .missing_lines = frame->info.missing_lines,
        .lo = frame->lo,
        .hi = frame->hi,
        .volume = frame->info.volume,
        .bscan = frame->info.bscan,
    };
    char json[OCT_PICTURE_HEADER_BYTES];

    snprintf(header.acquisition_id, sizeof(header.acquisition_id), "%s-%u", pub->session,
             frame->info.acquisition);
    parcel->info = frame->info;
    for (int i = 0; i < 3; i++)
        zmq_msg_init(&parcel->part[i]);
    size_t n = oct_picture_encode(&header, json, sizeof(json));
    return n && fill(&parcel->part[0], OCT_TOPIC_BSCAN, strlen(OCT_TOPIC_BSCAN)) &&
           fill(&parcel->part[1], json, n) &&
           fill(&parcel->part[2], frame->pixels, oct_geometry_image_bytes(g));
}

static bool send_parcel(struct oct_publisher *pub, struct parcel *parcel)
{
    bool sent = true;
    for (int i = 0; i < 3 && sent; i++) {
        int status;
        do
            status = zmq_msg_send(&parcel->part[i], pub->socket, i < 2 ? ZMQ_SNDMORE : 0);
        while (status < 0 && errno == EINTR);
        sent = status >= 0;
    }
    for (int i = 0; i < 3; i++)
        zmq_msg_close(&parcel->part[i]);
    return sent;
}

/* Gives the slot back before it sends. */
static void publish(struct oct_publisher *pub, const struct oct_image_frame *frame)
{
    struct parcel parcel;
    bool is_whole = frame->status == OCT_OK;
    if (frame->info.acquisition != pub->acquisition) {
        pub->acquisition = frame->info.acquisition;
        oct_latency_reset(&pub->latency);
    }
    bool packed = is_whole && pack(pub, frame, &parcel);
    oct_ring_release(pub->reader);
    if (!is_whole)
        return;
    if (!packed || !send_parcel(pub, &parcel))
        return;
    if (parcel.info.missing_lines == 0)
        oct_latency_add(&pub->latency, (oct_clock_ns() - parcel.info.arrival_ns) / 1000);
    atomic_fetch_add(&pub->published, 1); /* last: who sees it published finds its latency */
}

/* ---- spectra ---- */

static uint64_t count_saturated(const struct oct_raw_frame *frame, const struct oct_geometry *g,
                                uint32_t limit)
{
    uint64_t n = 0;

    for (size_t i = 0; i < (size_t)g->n_lines * g->n_samples; i++)
        n += frame->spectra[i] >= limit;
    return n;
}

/* Copies what is sent out of the newest slot and gives it back at once. False: there is none. */
static bool take_spectrum(struct oct_publisher *pub, struct oct_spectrum_header *header)
{
    const struct oct_geometry *g = &pub->geometry;
    uint64_t slot;

    if (oct_ring_read(pub->raw_reader, 0, &slot))
        return false;
    const struct oct_raw_frame *frame = oct_raw_slot(pub->raw, slot, g);
    *header = (struct oct_spectrum_header){
        .frame_num = frame->info.number,
        .line = g->n_lines / 2,
        .n_samples = g->n_samples,
        .limit = pub->limit,
        .n_saturated = count_saturated(frame, g, pub->limit),
    };
    memcpy(pub->spectrum, frame->spectra + (size_t)header->line * g->n_samples,
           g->n_samples * sizeof(*pub->spectrum));
    oct_ring_release(pub->raw_reader);
    return true;
}

static void send_spectrum(struct oct_publisher *pub)
{
    struct oct_spectrum_header header;
    char json[OCT_SPECTRUM_HEADER_BYTES];
    uint64_t now_ns = oct_clock_ns();

    if (!pub->raw_reader || now_ns - pub->spectrum_ns < SPECTRUM_EVERY_NS ||
        !take_spectrum(pub, &header))
        return;
    pub->spectrum_ns = now_ns;
    size_t n = oct_spectrum_encode(&header, json, sizeof(json));
    if (n && send_part(pub->socket, OCT_TOPIC_SPECTRUM, strlen(OCT_TOPIC_SPECTRUM), ZMQ_SNDMORE) &&
        send_part(pub->socket, json, n, ZMQ_SNDMORE))
        send_part(pub->socket, pub->spectrum, header.n_samples * sizeof(*pub->spectrum), 0);
}

/* One that began (1) or ended (0), with its connection's descriptor. ZeroMQ makes an end for each
 * that goes, with no key and no descriptor. */
static void admit_subscription(struct oct_publisher *pub, zmq_msg_t *message)
{
    const uint8_t *bytes = zmq_msg_data(message);
    size_t n = zmq_msg_size(message);
    int fd = zmq_msg_get(message, ZMQ_SRCFD);
    if (n == 0 || bytes[0] > 1 || fd < 0)
        return;
    if (bytes[0] == 1 && !oct_door_admits(pub->door, message))
        return; /* the door has cut it off */
    oct_subscriptions_note(pub->subscriptions, fd, bytes[0] == 1, bytes + 1, n - 1);
}

/* Subscriptions as they come: ZeroMQ has obeyed them already, the door wants to know whose they
 * are, and how many stand is bounded. That is soon enough: a connection whose key goes, or that has
 * too many, is cut, whatever it has subscribed to.
 * (ZMQ_XPUB_MANUAL would let us obey them ourselves, but in libzmq 4.3.4 that follows a dangling
 * pointer when the subscriber has gone in the meantime: libzmq pull request 4137.)
 * The bound keeps subscribers that flood us from holding up the pictures. Looking for them also
 * lets go of subscribers that have gone, which a socket does only while it is used: without it they
 * would pile up in memory as long as no lines come. */
static void take_subscriptions(struct oct_publisher *pub)
{
    enum { AT_ONCE = 4096 };
    for (int i = 0; i < AT_ONCE; i++) {
        zmq_msg_t message;
        zmq_msg_init(&message);
        bool came = zmq_msg_recv(&message, pub->socket, ZMQ_DONTWAIT) >= 0;
        if (came)
            admit_subscription(pub, &message);
        zmq_msg_close(&message);
        if (!came)
            break;
    }
}

static void *run(void *argument)
{
    struct oct_publisher *pub = argument;
    for (;;) {
        uint64_t slot;
        take_subscriptions(pub);
        enum oct_err e = oct_ring_read(pub->reader, 100000, &slot);
        if (e == OCT_E_AGAIN)
            continue;
        if (e)
            return NULL;
        publish(pub, oct_image_slot(pub->images, slot));
        send_spectrum(pub);
    }
}

static enum oct_err start(struct oct_publisher *pub, void *context, const char *endpoint,
                          unsigned queue_bscans, struct oct_error *err)
{
    pub->reader = oct_ring_reader_create(pub->images, false, oct_ring_n_slots(pub->images) / 2);
    if (!pub->reader)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the publisher");
    pub->subscriptions = oct_subscriptions_create();
    if (!pub->subscriptions)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the publisher");
    /* To a subscriber an XPUB is a PUB. What it sends us is subscriptions of a few bytes. */
    pub->socket = oct_zsocket_bind(context, ZMQ_XPUB, endpoint, "publish.endpoint",
                                   (int)queue_bscans, 4096, pub->door, pub->endpoint, err);
    if (!pub->socket)
        return err ? err->code : OCT_E_IO;
    int verboser = 1; /* every subscription and every end of one, not only the first and the last */
    zmq_setsockopt(pub->socket, ZMQ_XPUB_VERBOSER, &verboser, sizeof(verboser));
    int status = pthread_create(&pub->thread, NULL, run, pub);
    if (status) {
        zmq_close(pub->socket);
        return oct_fail_errno(err, OCT_E_IO, status, "publisher thread");
    }
    pthread_setname_np(pub->thread, "octd-publisher");
    return OCT_OK;
}

enum oct_err oct_publisher_create(struct oct_publisher **out, void *zmq_context,
                                  const char *endpoint, unsigned queue_bscans,
                                  const struct oct_geometry *geometry, struct oct_ring *images,
                                  const char *session, struct oct_door *door, struct oct_error *err)
{
    *out = NULL;
    struct oct_publisher *pub = calloc(1, sizeof(*pub));
    if (!pub)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the publisher");
    pub->geometry = *geometry;
    pub->images = images;
    pub->door = door;
    snprintf(pub->session, sizeof(pub->session), "%s", session);
    enum oct_err e = start(pub, zmq_context, endpoint, queue_bscans, err);
    if (e) {
        oct_ring_reader_destroy(pub->reader);
        oct_subscriptions_destroy(pub->subscriptions);
        free(pub);
        return e;
    }
    *out = pub;
    return OCT_OK;
}

enum oct_err oct_publisher_add_spectra(struct oct_publisher *pub, struct oct_ring *raw,
                                       uint32_t limit, struct oct_error *err)
{
    pub->spectrum = malloc(pub->geometry.n_samples * sizeof(*pub->spectrum));
    pub->raw = raw;
    pub->limit = limit;
    pub->raw_reader = pub->spectrum ? oct_ring_reader_create(raw, false, 1) : NULL;
    return pub->raw_reader ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for spectra");
}

void oct_publisher_destroy(struct oct_publisher *pub)
{
    if (!pub)
        return;
    pthread_join(pub->thread, NULL);
    int linger_ms = LINGER_MS;
    zmq_setsockopt(pub->socket, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
    zmq_close(pub->socket);
    oct_ring_reader_destroy(pub->reader);
    oct_ring_reader_destroy(pub->raw_reader);
    oct_subscriptions_destroy(pub->subscriptions);
    free(pub->spectrum);
    free(pub);
}

uint64_t oct_publisher_published(const struct oct_publisher *pub)
{
    return atomic_load(&pub->published);
}

uint64_t oct_publisher_skipped(const struct oct_publisher *pub)
{
    return oct_ring_skipped(pub->reader);
}

struct oct_latency_summary oct_publisher_latency(const struct oct_publisher *pub)
{
    return oct_latency_summarise(&pub->latency);
}

const char *oct_publisher_endpoint(const struct oct_publisher *pub)
{
    return pub->endpoint;
}
