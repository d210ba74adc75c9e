#include "pipeline/publish/publisher.h"

#include "pipeline/base/clock.h"
#include "pipeline/base/thread.h"
#include "pipeline/flow/spectrum.h"
#include "pipeline/net/subscriptions.h"
#include "pipeline/net/zsocket.h"
#include "pipeline/wire/image_header.h"
#include "pipeline/wire/wire.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zmq.h>

#define LINGER_MS 300 /* for the last pictures; a hanging subscriber delays the end by no more */
#define SPECTRUM_EVERY_NS UINT64_C(250000000)
#define WAIT_US 100000 /* for a picture or a result; then new subscriptions are looked for */
#define LAST_LOOK_NS 5000000
#define MOST_KEEPERS 40u                /* more than a slow subscriber's queue */
#define KEPT_BYTES (UINT64_C(32) << 20) /* most memory for them */
#define LEAST_KEPT_BYTES 16384u         /* less is copied sooner */
#define TOPIC_SCAN "scan"
#define MORE_COMPLEX 4u /* asked for beyond what is under way: none is missed */

/* A message on its way out. While ZeroMQ sends, it also handles subscriptions, for as long as any
 * arrive. If the slot were lent during that time, a viewer could block a driver whose shared memory
 * it is. So what is sent is first copied into the messages that ZeroMQ takes over; zmq_send makes
 * as many copies. Pictures, for whose slots nobody waits, are not copied but kept until ZeroMQ has
 * sent them, as many as there are keepers. */
struct parcel {
    zmq_msg_t part[3];
    bool is_timed;
    uint64_t arrival_ns; /* of what counts for the latency */
};

enum packed {
    PACKED,
    NOT_TO_SEND, /* the engine lost it, or nobody wants it */
    NOT_POSSIBLE,
};

struct topic {
    const char *name;
    struct oct_ring *ring;
    struct oct_ring_reader *reader;
    const struct oct_image_form *form; /* of a source's images; else NULL */
    uint64_t every_ns, taken_ns;       /* no more often than that; when it was */
    bool is_over;                      /* its ring is closed and read */
    atomic_uint_fast64_t published, unwanted, failed;
    /* Copies what is in the slot, which the caller gives back. */
    enum packed (*pack)(struct oct_publisher *pub, struct topic *topic, struct parcel *parcel);
};

struct oct_publisher {
    struct oct_geometry geometry;
    struct topic *topics; /* [n_topics] as in oct_publisher_topic */
    unsigned n_topics;
    struct oct_ring_reader *keepers[MOST_KEEPERS]; /* of pictures under way */
    unsigned n_keepers, keeper;                    /* keeper: the thread's: tried next */
    unsigned turn;  /* the thread's: of the topics behind the first */
    uint32_t limit; /* of the spectra */
    uint16_t *line; /* [N] one of samples that are not u16 */
    struct oct_pipeline *pipeline;
    struct oct_image_form complex_form;
    void *socket; /* the thread's own once it runs */
    struct oct_door *door;
    struct oct_subscriptions *subscriptions; /* the thread's */
    char endpoint[OCT_ENDPOINT_BYTES];
    char session[32];
    pthread_t thread;
    atomic_bool ending;   /* destroy waits */
    pthread_mutex_t lock; /* guards scan_text */
    char *scan_text;      /* NULL: none yet */
    atomic_bool must_say_scan;
    uint32_t acquisition; /* the thread's: of the picture before */
    struct oct_latency latency;
};

/* ---- packing ---- */

static bool fill_part(zmq_msg_t *part, const void *bytes, size_t n)
{
    if (zmq_msg_init_size(part, n) != 0)
        return false;
    if (n > 0)
        memcpy(zmq_msg_data(part), bytes, n);
    return true;
}

/* n_json: 0 if the header could not be written. */
static bool fill_head(struct parcel *parcel, const struct topic *topic, const char *json,
                      size_t n_json)
{
    return n_json && fill_part(&parcel->part[0], topic->name, strlen(topic->name)) &&
           fill_part(&parcel->part[1], json, n_json);
}

static enum packed fill_all(struct parcel *parcel, const struct topic *topic, const char *json,
                            size_t n_json, const void *values, size_t n_values)
{
    return fill_head(parcel, topic, json, n_json) && fill_part(&parcel->part[2], values, n_values)
               ? PACKED
               : NOT_POSSIBLE;
}

/* ZeroMQ has sent a picture, or dropped it; maybe after the publisher and the ring's owner went. */
static void end_keeping(void *pixels, void *keeper)
{
    (void)pixels;
    oct_ring_release(keeper);
    oct_ring_let_go(keeper);
}

/* The picture that the topic's reader holds, where it is. False: all keepers are in use. */
static bool lend_part(struct oct_publisher *pub, const struct topic *topic, zmq_msg_t *part,
                      void *pixels, size_t n)
{
    for (unsigned i = 0; i < pub->n_keepers && n >= LEAST_KEPT_BYTES; i++) {
        struct oct_ring_reader *keeper = pub->keepers[pub->keeper++ % pub->n_keepers];
        if (oct_ring_keeps(keeper))
            continue;
        oct_ring_keep(topic->reader, keeper);
        oct_ring_hold(topic->ring);
        if (zmq_msg_init_data(part, pixels, n, end_keeping, keeper) == 0)
            return true;
        end_keeping(pixels, keeper);
        zmq_msg_init(part);
        return false;
    }
    return false;
}

static void write_acquisition(const struct oct_publisher *pub, uint32_t acquisition, char *id,
                              size_t id_bytes)
{
    snprintf(id, id_bytes, "%s-%u", pub->session, acquisition);
}

static enum packed pack_bscan(struct oct_publisher *pub, struct topic *topic, struct parcel *parcel)
{
    const struct oct_geometry *g = &pub->geometry;
    const struct oct_image_frame *frame = oct_image_held(topic->reader);
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

    if (frame->info.acquisition != pub->acquisition) {
        pub->acquisition = frame->info.acquisition;
        oct_latency_reset(&pub->latency);
    }
    if (frame->status != OCT_OK)
        return NOT_TO_SEND;
    write_acquisition(pub, frame->info.acquisition, header.acquisition_id,
                      sizeof(header.acquisition_id));
    parcel->is_timed = frame->info.missing_lines == 0;
    parcel->arrival_ns = frame->info.arrival_ns;
    const size_t n = oct_picture_encode(&header, json, sizeof(json));
    const size_t n_bytes = oct_geometry_image_bytes(g);
    if (!fill_head(parcel, topic, json, n))
        return NOT_POSSIBLE;
    return lend_part(pub, topic, &parcel->part[2], frame->pixels, n_bytes) ||
                   fill_part(&parcel->part[2], frame->pixels, n_bytes)
               ? PACKED
               : NOT_POSSIBLE;
}

static uint64_t count_saturated(const struct oct_publisher *pub, const struct oct_raw_frame *frame)
{
    const struct oct_geometry *g = &pub->geometry;
    uint64_t n = 0;

    for (uint32_t j = 0; j < g->n_lines; j++) {
        const uint16_t *line = oct_raw_line(frame, g, j, 0, g->n_samples, pub->line);
        for (uint32_t i = 0; i < g->n_samples; i++)
            n += line[i] >= pub->limit;
    }
    return n;
}

static enum packed pack_spectrum(struct oct_publisher *pub, struct topic *topic,
                                 struct parcel *parcel)
{
    const struct oct_geometry *g = &pub->geometry;
    const struct oct_raw_frame *frame = oct_raw_held(topic->reader);
    const struct oct_spectrum_header header = {
        .frame_num = frame->info.number,
        .line = g->n_lines / 2,
        .n_samples = g->n_samples,
        .limit = pub->limit,
        .n_saturated = count_saturated(pub, frame),
    };
    char json[OCT_SPECTRUM_HEADER_BYTES];
    size_t n = oct_spectrum_encode(&header, json, sizeof(json));
    return fill_all(parcel, topic, json, n,
                    oct_raw_line(frame, g, header.line, 0, g->n_samples, pub->line),
                    g->n_samples * sizeof(*frame->spectra));
}

/* Only the first axis may be shorter. */
static bool fits(const struct oct_image_frame *frame, const struct oct_image_form *form)
{
    for (unsigned i = 1; i < form->rank; i++)
        if (frame->dims[i] != form->dims[i])
            return false;
    return frame->dims[0] <= form->dims[0];
}

static bool is_wanted(struct oct_publisher *pub, struct topic *topic)
{
    const bool is = oct_subscriptions_wants(pub->subscriptions, topic->name);
    atomic_fetch_add(&topic->unwanted, !is);
    return is;
}

static enum packed pack_frame(struct oct_publisher *pub, struct topic *topic,
                              struct oct_image_frame *frame, struct parcel *parcel)
{
    char id[64], json[OCT_IMAGE_HEADER_BYTES];
    frame->form = topic->form;
    if (!fits(frame, topic->form))
        return NOT_POSSIBLE;
    write_acquisition(pub, frame->info.acquisition, id, sizeof(id));
    size_t n = oct_image_header_encode(frame, id, json, sizeof(json));
    size_t n_bytes = oct_image_form_bytes(topic->form) / topic->form->dims[0] * frame->dims[0];
    return fill_all(parcel, topic, json, n, frame->pixels, n_bytes);
}

static enum packed pack_image(struct oct_publisher *pub, struct topic *topic, struct parcel *parcel)
{
    struct oct_image_frame frame = *oct_image_held(topic->reader);
    if (frame.status != OCT_OK || !is_wanted(pub, topic))
        return NOT_TO_SEND;
    return pack_frame(pub, topic, &frame, parcel);
}

/* Those of the B-scans that follow are asked for as long as somebody subscribes. */
static enum packed pack_complex(struct oct_publisher *pub, struct topic *topic,
                                struct parcel *parcel)
{
    struct oct_image_frame frame = *oct_image_held(topic->reader);
    if (frame.status != OCT_OK || !is_wanted(pub, topic))
        return NOT_TO_SEND;
    if (!oct_pipeline_ask(pub->pipeline, OCT_LENT_COMPLEX, OCT_LAST_ASKER,
                          oct_pipeline_depth(pub->pipeline) + MORE_COMPLEX))
        return NOT_POSSIBLE;
    if (!frame.complex_values)
        return NOT_TO_SEND;
    memcpy(frame.dims, topic->form->dims, sizeof(frame.dims));
    frame.pixels = frame.complex_values;
    frame.lo = 0;
    frame.hi = 1;
    return pack_frame(pub, topic, &frame, parcel);
}

/* ---- sending ---- */

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
    return sent;
}

/* Gives the slot back before it sends. */
static void publish(struct oct_publisher *pub, struct topic *topic)
{
    struct parcel parcel = {.is_timed = false};
    for (int i = 0; i < 3; i++)
        zmq_msg_init(&parcel.part[i]);
    enum packed packed = topic->pack(pub, topic, &parcel);
    oct_ring_release(topic->reader);
    if (packed == PACKED && !send_parcel(pub, &parcel))
        packed = NOT_POSSIBLE;
    for (int i = 0; i < 3; i++)
        zmq_msg_close(&parcel.part[i]);
    if (packed == NOT_POSSIBLE)
        atomic_fetch_add(&topic->failed, 1);
    if (packed != PACKED)
        return;
    if (parcel.is_timed)
        oct_latency_add(&pub->latency, (oct_clock_ns() - parcel.arrival_ns) / 1000);
    atomic_fetch_add(&topic->published, 1); /* set last: who reads it finds the latency there */
}

/* Takes one message of the topics behind the first, which take turns. False: none has any. */
static bool publish_another(struct oct_publisher *pub)
{
    uint64_t slot, now_ns = oct_clock_ns();
    for (unsigned i = 1; i < pub->n_topics; i++) {
        struct topic *topic = &pub->topics[1 + pub->turn++ % (pub->n_topics - 1)];
        if (topic->is_over || now_ns - topic->taken_ns < topic->every_ns)
            continue;
        enum oct_err e = oct_ring_read(topic->reader, 0, &slot);
        topic->is_over = e == OCT_E_CLOSED;
        if (e)
            continue;
        topic->taken_ns = now_ns;
        publish(pub, topic);
        return true;
    }
    return false;
}

/* One that began (1) or ended (0), with its connection's descriptor. ZeroMQ makes an end for each
 * that goes, with no key and no descriptor. */
static void admit_subscription(struct oct_publisher *pub, zmq_msg_t *message)
{
    const uint8_t *bytes = zmq_msg_data(message);
    size_t n = zmq_msg_size(message);
    if (n == 0 || bytes[0] > 1)
        return;
    if (bytes[0] == 1 && !oct_door_admits(pub->door, message))
        return; /* the door has cut it off */
    oct_subscriptions_note(pub->subscriptions, zmq_msg_get(message, ZMQ_SRCFD), bytes[0] == 1,
                           bytes + 1, n - 1);
    if (bytes[0] == 1 && n - 1 <= strlen(TOPIC_SCAN) && memcmp(bytes + 1, TOPIC_SCAN, n - 1) == 0)
        atomic_store(&pub->must_say_scan, true);
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
    oct_subscriptions_review(pub->subscriptions);
}

/* Says to all who subscribe which scan runs, when it is announced and when one more wants to know:
 * who knows it already sees that its number is the same. */
static void say_scan(struct oct_publisher *pub)
{
    struct parcel parcel = {.is_timed = false};
    bool is_filled = false;
    if (!atomic_exchange(&pub->must_say_scan, false))
        return;
    for (int i = 0; i < 3; i++)
        zmq_msg_init(&parcel.part[i]);
    pthread_mutex_lock(&pub->lock);
    if (pub->scan_text)
        is_filled = fill_part(&parcel.part[0], TOPIC_SCAN, strlen(TOPIC_SCAN)) &&
                    fill_part(&parcel.part[1], pub->scan_text, strlen(pub->scan_text));
    pthread_mutex_unlock(&pub->lock);
    if (is_filled)
        send_parcel(pub, &parcel);
    for (int i = 0; i < 3; i++)
        zmq_msg_close(&parcel.part[i]);
}

/* Sends what is left after the end of the pictures. Results are computed a little longer; once
 * destroy waits, what the rings hold is sent, and nothing more. */
static void publish_the_rest(struct oct_publisher *pub)
{
    bool are_over = false;
    unsigned n_left = 0;
    while (!are_over && !atomic_load(&pub->ending)) {
        take_subscriptions(pub);
        if (!publish_another(pub))
            nanosleep(&(struct timespec){.tv_nsec = LAST_LOOK_NS}, NULL);
        are_over = true;
        for (unsigned i = 1; i < pub->n_topics; i++)
            are_over &= pub->topics[i].is_over || !pub->topics[i].form;
    }
    for (unsigned i = 1; i < pub->n_topics; i++)
        n_left += oct_ring_n_slots(pub->topics[i].ring);
    while (n_left-- > 0 && publish_another(pub))
        ;
}

static void *run_publisher(void *argument)
{
    struct oct_publisher *pub = argument;
    struct topic *pictures = &pub->topics[0];
    bool more = false;
    for (;;) {
        uint64_t slot;
        take_subscriptions(pub);
        say_scan(pub);
        enum oct_err e = oct_ring_read(pictures->reader, more ? 0 : WAIT_US, &slot);
        if (e == OCT_E_CLOSED)
            break;
        if (e == OCT_OK)
            publish(pub, pictures);
        more = publish_another(pub);
    }
    publish_the_rest(pub);
    return NULL;
}

/* ---- topics ---- */

/* Whether a header can be written for such images at all: labels may not be. A table has one row
 * here, as many values as there are labels at most. */
static bool has_header(const struct oct_image_form *form)
{
    float row[OCT_IMAGE_MAX_LABELS] = {0};
    char json[OCT_IMAGE_HEADER_BYTES];
    struct oct_image_frame frame = {.form = form, .pixels = row};
    memcpy(frame.dims, form->dims, sizeof(frame.dims));
    if (form->rank > 1)
        frame.dims[0] = 1;
    return oct_image_header_encode(&frame, "", json, sizeof(json)) > 0;
}

static enum oct_err check_source(const struct oct_publisher *pub, const struct oct_image_form *form,
                                 struct oct_error *err)
{
    enum oct_err e = oct_image_form_check(form, err);
    if (e)
        return e;
    bool is_taken =
        strcmp(form->name, OCT_TOPIC_SPECTRUM) == 0 || strcmp(form->name, TOPIC_SCAN) == 0;
    for (unsigned i = 0; i < pub->n_topics; i++)
        is_taken |= strcmp(form->name, pub->topics[i].name) == 0;
    if (is_taken)
        return oct_fail(err, OCT_E_ARG, "%s: there is a topic of that name already", form->name);
    if (!has_header(form))
        return oct_fail(err, OCT_E_ARG,
                        "%s: a label is not one line of UTF-8 of less than %d bytes", form->name,
                        OCT_IMAGE_LABEL_BYTES);
    return OCT_OK;
}

/* Adds a topic after the others. most_behind: as for oct_ring_reader_create. */
static struct topic *add_topic(struct oct_publisher *pub, const char *name, struct oct_ring *ring,
                               unsigned most_behind, struct oct_error *err)
{
    struct topic *topic = &pub->topics[pub->n_topics];
    topic->name = name;
    topic->ring = ring;
    topic->reader = oct_ring_reader_create(ring, false, most_behind);
    if (!topic->reader) {
        oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the publisher");
        return NULL;
    }
    pub->n_topics++;
    return topic;
}

static enum oct_err add_source(struct oct_publisher *pub, const struct oct_image_source *source,
                               enum packed (*pack)(struct oct_publisher *, struct topic *,
                                                   struct parcel *),
                               struct oct_error *err)
{
    enum oct_err e = check_source(pub, source->form, err);
    if (e)
        return e;
    struct topic *topic =
        add_topic(pub, source->form->name, source->ring, oct_ring_n_slots(source->ring) / 2, err);
    if (!topic)
        return OCT_E_NO_MEMORY;
    topic->form = source->form;
    topic->pack = pack;
    if (!oct_ring_reader_wakes(topic->reader, pub->topics[0].reader) ||
        !oct_subscriptions_watch(pub->subscriptions, topic->name))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the publisher");
    return OCT_OK;
}

static enum oct_err add_complex(struct oct_publisher *pub,
                                const struct oct_publisher_options *options, struct oct_error *err)
{
    static const char *const labels[] = {"re (counts)", "im (counts)"};
    const struct oct_image_source source = {.form = &pub->complex_form, .ring = options->images};
    if (!options->pipeline)
        return OCT_OK;
    pub->pipeline = options->pipeline;
    pub->complex_form = *oct_pipeline_form(options->pipeline);
    snprintf(pub->complex_form.name, sizeof(pub->complex_form.name), "%s", OCT_TOPIC_COMPLEX);
    pub->complex_form.quantity = OCT_QUANTITY_NUMBERS;
    pub->complex_form.type = OCT_SAMPLE_F32;
    pub->complex_form.rank = 3;
    pub->complex_form.dims[2] = 2;
    pub->complex_form.spacing_um[2] = NAN;
    pub->complex_form.axes[2] = "part";
    pub->complex_form.labels = labels;
    return add_source(pub, &source, pack_complex, err);
}

/* Each brings a buffer. Fewer, or none, where there is no room. */
static void add_keepers(struct oct_publisher *pub, struct oct_ring *images)
{
    const uint64_t fit = KEPT_BYTES / oct_ring_slot_bytes(images);
    while (pub->n_keepers < MOST_KEEPERS && pub->n_keepers < fit &&
           (pub->keepers[pub->n_keepers] = oct_ring_reader_create(images, false, 0)))
        pub->n_keepers++;
}

static enum oct_err add_topics(struct oct_publisher *pub,
                               const struct oct_publisher_options *options, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    struct topic *topic = add_topic(pub, OCT_TOPIC_BSCAN, options->images,
                                    oct_ring_n_slots(options->images) / 2, err);
    if (!topic)
        return OCT_E_NO_MEMORY;
    topic->pack = pack_bscan;
    add_keepers(pub, options->images);
    if (options->raw) {
        topic = add_topic(pub, OCT_TOPIC_SPECTRUM, options->raw, 1, err);
        if (!topic)
            return OCT_E_NO_MEMORY;
        topic->every_ns = SPECTRUM_EVERY_NS;
        topic->pack = pack_spectrum;
    }
    for (unsigned i = 0; i < options->n_sources && !e; i++)
        e = add_source(pub, &options->sources[i], pack_image, err);
    return e ? e : add_complex(pub, options, err);
}

/* ---- the whole ---- */

static enum oct_err start_thread(struct oct_publisher *pub,
                                 const struct oct_publisher_options *options, struct oct_error *err)
{
    enum oct_err e = add_topics(pub, options, err);
    if (e)
        return e;
    /* A subscriber sees an XPUB socket as a PUB socket. What subscribers send is subscriptions of a
     * few bytes. */
    pub->socket =
        oct_zsocket_bind(options->zmq_context, ZMQ_XPUB, options->endpoint, "publish.endpoint",
                         (int)options->queue_bscans, 4096, pub->door, pub->endpoint, err);
    if (!pub->socket)
        return err ? err->code : OCT_E_IO;
    int verboser = 1; /* every subscription and every end of one, not only the first and the last */
    zmq_setsockopt(pub->socket, ZMQ_XPUB_VERBOSER, &verboser, sizeof(verboser));
    e = oct_thread_start(&pub->thread, "octd-publisher", run_publisher, pub, "publisher thread",
                         err);
    if (e)
        zmq_close(pub->socket);
    return e;
}

static void free_all(struct oct_publisher *pub)
{
    for (unsigned i = 0; i < pub->n_topics; i++)
        oct_ring_reader_destroy(pub->topics[i].reader);
    for (unsigned i = 0; i < pub->n_keepers; i++)
        if (!oct_ring_keeps(pub->keepers[i])) /* the others go with the ring */
            oct_ring_reader_destroy(pub->keepers[i]);
    oct_subscriptions_destroy(pub->subscriptions);
    pthread_mutex_destroy(&pub->lock);
    free(pub->scan_text);
    free(pub->topics);
    free(pub->line);
    free(pub);
}

enum oct_err oct_publisher_create(struct oct_publisher **out,
                                  const struct oct_publisher_options *options,
                                  struct oct_error *err)
{
    *out = NULL;
    struct oct_publisher *pub = calloc(1, sizeof(*pub));
    if (!pub)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the publisher");
    pthread_mutex_init(&pub->lock, NULL);
    pub->geometry = *options->geometry;
    pub->limit = options->limit;
    pub->door = options->door;
    snprintf(pub->session, sizeof(pub->session), "%s", options->session);
    pub->topics = calloc(options->n_sources + 3u, sizeof(*pub->topics));
    pub->line = calloc(options->geometry->n_samples, sizeof(*pub->line));
    pub->subscriptions = oct_subscriptions_create();
    enum oct_err e = pub->topics && pub->line && pub->subscriptions
                         ? start_thread(pub, options, err)
                         : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the publisher");
    if (e) {
        free_all(pub);
        return e;
    }
    *out = pub;
    return OCT_OK;
}

void oct_publisher_destroy(struct oct_publisher *pub)
{
    if (!pub)
        return;
    atomic_store(&pub->ending, true);
    pthread_join(pub->thread, NULL);
    int linger_ms = LINGER_MS;
    zmq_setsockopt(pub->socket, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
    zmq_close(pub->socket);
    free_all(pub);
}

struct oct_publisher_topic oct_publisher_topic(const struct oct_publisher *pub, unsigned i)
{
    if (i >= pub->n_topics)
        return (struct oct_publisher_topic){.name = NULL};
    const struct topic *topic = &pub->topics[i];
    return (struct oct_publisher_topic){
        .name = topic->name,
        .published = atomic_load(&topic->published),
        /* Most spectra are left out on purpose. */
        .skipped =
            (topic->every_ns ? 0 : oct_ring_skipped(topic->reader)) + atomic_load(&topic->failed),
        .unwanted = atomic_load(&topic->unwanted),
        .wanted = topic->form && oct_subscriptions_wants(pub->subscriptions, topic->name),
    };
}

uint64_t oct_publisher_published(const struct oct_publisher *pub)
{
    return atomic_load(&pub->topics[0].published);
}

uint64_t oct_publisher_skipped(const struct oct_publisher *pub)
{
    return oct_ring_skipped(pub->topics[0].reader);
}

struct oct_latency_summary oct_publisher_latency(const struct oct_publisher *pub)
{
    return oct_latency_summarise(&pub->latency);
}

bool oct_publisher_announce_scan(struct oct_publisher *pub, const char *json)
{
    char *text = strdup(json);
    if (!text)
        return false;
    pthread_mutex_lock(&pub->lock);
    free(pub->scan_text);
    pub->scan_text = text;
    pthread_mutex_unlock(&pub->lock);
    atomic_store(&pub->must_say_scan, true);
    return true;
}

const char *oct_publisher_endpoint(const struct oct_publisher *pub)
{
    return pub->endpoint;
}
