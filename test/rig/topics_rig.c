#include "test/rig/topics_rig.h"

#include "pipeline/flow/slots.h"
#include "test/rig/tap.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

static const char *const columns[] = {"line", "height um", "angle"};

/* A table of up to 4 rows. */
const struct oct_image_form rows_form = {
    .name = "rows",
    .quantity = OCT_QUANTITY_NUMBERS,
    .type = OCT_SAMPLE_F32,
    .rank = 2,
    .dims = {4, 3},
    .spacing_um = {NAN, NAN},
    .axes = {"row", "column"},
    .labels = columns,
};

const struct oct_image_form map_form = {
    .name = "map",
    .quantity = OCT_QUANTITY_INTENSITY_DB,
    .type = OCT_SAMPLE_U8,
    .rank = 2,
    .dims = {256, 1024},
    .spacing_um = {12.25, 3.5},
    .axes = {"bscan", "line"},
    .of_volume = true,
};

void sleep_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000},
              NULL);
}

static struct oct_ring *open_ring_of(const struct oct_image_form *form)
{
    struct oct_ring *ring;
    assert_int_equal(
        oct_ring_create(&ring, N_SLOTS, oct_image_slot_bytes_of(form, NULL), NULL, NULL, NULL),
        OCT_OK);
    return ring;
}

struct oct_publisher_options options_of(struct rig *rig)
{
    return (struct oct_publisher_options){
        .zmq_context = rig->context,
        .endpoint = "tcp://127.0.0.1:*",
        .queue_bscans = 20,
        .geometry = &rig->g,
        .images = rig->images,
        .session = "test",
    };
}

void open_topics(struct rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    assert_int_equal(oct_geometry_init(&rig->g, 64, 6, 4, 0, 32, OCT_SAMPLE_U8, NULL), OCT_OK);
    assert_int_equal(
        oct_ring_create(&rig->images, N_SLOTS, oct_image_slot_bytes(&rig->g), NULL, NULL, NULL), 0);
    rig->rows = open_ring_of(&rows_form);
    rig->map = open_ring_of(&map_form);
    rig->context = zmq_ctx_new();
    const struct oct_image_source sources[] = {{.form = &rows_form, .ring = rig->rows},
                                               {.form = &map_form, .ring = rig->map}};
    struct oct_publisher_options options = options_of(rig);
    options.sources = sources;
    options.n_sources = 2;
    assert_int_equal(oct_publisher_create(&rig->publisher, &options, NULL), OCT_OK);
}

void close_topics(struct rig *rig)
{
    oct_ring_close(rig->images);
    oct_ring_close(rig->rows);
    oct_ring_close(rig->map);
    oct_publisher_destroy(rig->publisher);
    zmq_ctx_term(rig->context);
    oct_ring_destroy(rig->images);
    oct_ring_destroy(rig->rows);
    oct_ring_destroy(rig->map);
}

struct oct_image_frame *begin_image(struct rig *rig, struct oct_ring *ring,
                                    const struct oct_image_form *form)
{
    uint64_t slot;
    assert_int_equal(oct_ring_acquire(ring, TEST_PATIENCE_US, &slot), OCT_OK);
    struct oct_image_frame *frame = oct_image_slot_begin(ring, slot, form, NULL);
    frame->info = (struct oct_bscan_info){.number = rig->number++, .acquisition = 3};
    frame->lo = 0;
    frame->hi = 60;
    return frame;
}

void publish_rows(struct rig *rig, uint32_t n)
{
    struct oct_image_frame *frame = begin_image(rig, rig->rows, &rows_form);
    float *values = frame->pixels;
    for (uint32_t i = 0; i < 3 * n; i++)
        values[i] = (float)i + 0.5f;
    frame->dims[0] = n;
    oct_ring_publish(rig->rows);
}

void publish_map(struct rig *rig, bool whole)
{
    struct oct_image_frame *frame = begin_image(rig, rig->map, &map_form);
    memset(frame->pixels, 9, MAP_BYTES);
    frame->whole = whole;
    oct_ring_publish(rig->map);
}

void publish_bscan(struct rig *rig)
{
    uint64_t slot;
    assert_int_equal(oct_ring_acquire(rig->images, TEST_PATIENCE_US, &slot), OCT_OK);
    struct oct_image_frame *image = oct_image_slot(rig->images, slot);
    image->info = (struct oct_bscan_info){.number = rig->number++};
    image->status = OCT_OK;
    image->lo = 0;
    image->hi = 1;
    memset(image->pixels, 0, oct_geometry_image_bytes(&rig->g));
    oct_ring_publish(rig->images);
}

void *subscribe(struct rig *rig, const char *topic)
{
    int patience_ms = TEST_PATIENCE_MS, none = 0;
    void *socket = zmq_socket(rig->context, ZMQ_SUB);
    assert_non_null(socket);
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience_ms, sizeof(patience_ms));
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(socket, ZMQ_RCVHWM, &none, sizeof(none));
    zmq_setsockopt(socket, ZMQ_SUBSCRIBE, topic, strlen(topic));
    assert_int_equal(zmq_connect(socket, oct_publisher_endpoint(rig->publisher)), 0);
    return socket;
}

bool is_wanted(const struct rig *rig, const char *name)
{
    struct oct_publisher_topic topic;
    for (unsigned i = 0; (topic = oct_publisher_topic(rig->publisher, i)).name; i++)
        if (strcmp(topic.name, name) == 0)
            return topic.wanted;
    fail_msg("no topic %s", name);
    return false;
}

void wait_until_wanted(const struct rig *rig, const char *topic, bool wanted)
{
    for (int ms = 0; is_wanted(rig, topic) != wanted; ms++) {
        assert_true(ms < TEST_PATIENCE_MS);
        sleep_ms(1);
    }
}

void wait_until_published(const struct rig *rig, unsigned topic, uint64_t n)
{
    for (int ms = 0; oct_publisher_topic(rig->publisher, topic).published < n; ms++) {
        assert_true(ms < TEST_PATIENCE_MS);
        sleep_ms(1);
    }
}

/* Whole messages of three parts. */
void receive(void *socket, struct message *m)
{
    int more = 0;
    size_t bytes = sizeof(more);
    int n = zmq_recv(socket, m->topic, sizeof(m->topic) - 1, 0);
    assert_true(n > 0);
    m->topic[n] = '\0';
    m->n_json = zmq_recv(socket, m->json, sizeof(m->json) - 1, 0);
    m->n_values = zmq_recv(socket, m->values, sizeof(m->values), 0);
    assert_true(m->n_json > 0 && m->n_values >= 0);
    m->json[m->n_json] = '\0';
    zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &bytes);
    assert_int_equal(more, 0);
}

void receive_image(void *socket, struct message *m, struct oct_image_header *header)
{
    receive(socket, m);
    must(
        oct_image_header_decode(header, m->json, (size_t)m->n_json, (size_t)m->n_values, &failure));
}

void receive_nothing(void *socket)
{
    char part[64];
    assert_int_equal(zmq_recv(socket, part, sizeof(part), ZMQ_DONTWAIT), -1);
}
