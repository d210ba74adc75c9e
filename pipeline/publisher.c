#define _GNU_SOURCE /* pthread_setname_np */
#include "pipeline/publisher.h"

#include "pipeline/clock.h"
#include "pipeline/slots.h"
#include "pipeline/spectrum.h"
#include "pipeline/wire.h"
#include "pipeline/zsocket.h"

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

static bool send_picture(struct oct_publisher *pub, const struct oct_image_frame *frame)
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
    size_t n = oct_picture_encode(&header, json, sizeof(json));
    return n && send_part(pub->socket, OCT_TOPIC_BSCAN, strlen(OCT_TOPIC_BSCAN), ZMQ_SNDMORE) &&
           send_part(pub->socket, json, n, ZMQ_SNDMORE) &&
           send_part(pub->socket, frame->pixels, oct_geometry_image_bytes(g), 0);
}

static void publish(struct oct_publisher *pub, const struct oct_image_frame *frame)
{
    if (frame->info.acquisition != pub->acquisition) {
        pub->acquisition = frame->info.acquisition;
        oct_latency_reset(&pub->latency);
    }
    if (frame->status != OCT_OK || !send_picture(pub, frame))
        return;
    if (frame->info.missing_lines == 0)
        oct_latency_add(&pub->latency, (oct_clock_ns() - frame->info.arrival_ns) / 1000);
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

/* Subscribers that came and went are let go by a socket only while it is used: without this they
 * would pile up in memory as long as no lines come. */
static void let_go_subscribers(struct oct_publisher *pub)
{
    int events;
    size_t bytes = sizeof(events);
    zmq_getsockopt(pub->socket, ZMQ_EVENTS, &events, &bytes);
}

/* Subscriptions as they come: ZeroMQ has obeyed them already, the door wants to know whose they
 * are. That is soon enough: a connection whose key goes is cut, whatever it has subscribed to.
 * (ZMQ_XPUB_MANUAL would let us obey them ourselves, but in libzmq 4.3.4 that follows a dangling
 * pointer when the subscriber has gone in the meantime: libzmq pull request 4137.)
 * An end of a subscription is not asked about: ZeroMQ makes one, with no key, for each that goes.
 * The bound keeps a subscriber that floods us from holding up the pictures. */
static void take_subscriptions(struct oct_publisher *pub)
{
    enum { AT_ONCE = 256 };
    for (int i = 0; pub->door && i < AT_ONCE; i++) {
        zmq_msg_t message;
        zmq_msg_init(&message);
        bool came = zmq_msg_recv(&message, pub->socket, ZMQ_DONTWAIT) >= 0;
        if (came && zmq_msg_size(&message) > 0 && *(const uint8_t *)zmq_msg_data(&message) == 1)
            oct_door_admits(pub->door, &message);
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
        if (e == OCT_E_AGAIN) {
            let_go_subscribers(pub);
            continue;
        }
        if (e)
            return NULL;
        publish(pub, oct_image_slot(pub->images, slot));
        oct_ring_release(pub->reader);
        send_spectrum(pub);
    }
}

static enum oct_err start(struct oct_publisher *pub, void *context, const char *endpoint,
                          unsigned queue_bscans, struct oct_error *err)
{
    pub->reader = oct_ring_reader_create(pub->images, false, oct_ring_n_slots(pub->images) / 2);
    if (!pub->reader)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the publisher");
    /* What subscribers send us is subscriptions of a few bytes. */
    pub->socket =
        oct_zsocket_bind(context, pub->door ? ZMQ_XPUB : ZMQ_PUB, endpoint, "publish.endpoint",
                         (int)queue_bscans, 4096, pub->door, pub->endpoint, err);
    if (!pub->socket)
        return err ? err->code : OCT_E_IO;
    int verbose = 1; /* every subscription, not only the first to a topic */
    if (pub->door)
        zmq_setsockopt(pub->socket, ZMQ_XPUB_VERBOSE, &verbose, sizeof(verbose));
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
