/* Spectra out: the header's bytes, hostile ones too, and a publisher that sends them. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "pipeline/base/clock.h"
#include "pipeline/flow/slots.h"
#include "pipeline/flow/spectrum.h"
#include "pipeline/publish/publisher.h"
#include "test/rig/tap.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#define N_SLOTS 8u

static void a_header_comes_back_as_it_went(void **state)
{
    const struct oct_spectrum_header sent = {.frame_num = 9007199254740991u,
                                             .line = 512,
                                             .n_samples = 832,
                                             .limit = 4095,
                                             .n_saturated = 17};
    struct oct_spectrum_header got;
    char json[OCT_SPECTRUM_HEADER_BYTES];

    size_t n = oct_spectrum_encode(&sent, json, sizeof(json));
    assert_int_equal(n, strlen(json));
    assert_true(n > 0);
    assert_int_equal(oct_spectrum_decode(&got, json, n, 832 * 2, NULL), OCT_OK);
    assert_int_equal(got.frame_num, sent.frame_num);
    assert_int_equal(got.line, 512);
    assert_int_equal(got.n_samples, 832);
    assert_int_equal(got.limit, 4095);
    assert_int_equal(got.n_saturated, 17);
    assert_int_equal(oct_spectrum_encode(&sent, json, 40), 0);
    assert_int_equal(oct_spectrum_decode(&got, json, strlen(json), 832 * 2, NULL), OCT_E_FORMAT);
}

static void headers_that_lie_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "null",
        "{}",
        "{\"frame_num\":1,\"line\":0,\"dtype\":\"uint16\",\"shape\":[\"4\"],\"limit\":4095}",
        "{\"frame_num\":-1,\"line\":0,\"dtype\":\"uint16\",\"shape\":[\"4\"],\"limit\":4095,"
        "\"saturated\":0}",
        "{\"frame_num\":1,\"line\":0,\"dtype\":\"uint8\",\"shape\":[\"4\"],\"limit\":4095,"
        "\"saturated\":0}",
        "{\"frame_num\":1,\"line\":0,\"dtype\":\"uint16\",\"shape\":[\"5\"],\"limit\":4095,"
        "\"saturated\":0}",
        "{\"frame_num\":1,\"line\":0,\"dtype\":\"uint16\",\"shape\":[\"-4\"],\"limit\":4095,"
        "\"saturated\":0}",
        "{\"frame_num\":1,\"line\":0,\"dtype\":\"uint16\",\"shape\":[\"4\",\"4\"],\"limit\":4095,"
        "\"saturated\":0}",
        "{\"frame_num\":1,\"line\":0,\"dtype\":\"uint16\",\"shape\":[4],\"limit\":4095,"
        "\"saturated\":0}",
        "{\"frame_num\":1,\"line\":0.5,\"dtype\":\"uint16\",\"shape\":[\"4\"],\"limit\":4095,"
        "\"saturated\":0}",
        "{\"frame_num\":1,\"line\":0,\"dtype\":\"uint16\",\"shape\":[\"4\"],\"limit\":65536,"
        "\"saturated\":0}",
        "{\"frame_num\":1e300,\"line\":0,\"dtype\":\"uint16\",\"shape\":[\"4\"],\"limit\":1,"
        "\"saturated\":0}",
    };
    struct oct_spectrum_header header;
    struct oct_error err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err.text[0] = '\0';
        assert_int_equal(oct_spectrum_decode(&header, bad[i], strlen(bad[i]), 8, &err),
                         OCT_E_FORMAT);
        assert_true(strlen(err.text) > 0);
    }
}

struct rig {
    struct oct_geometry g;
    struct oct_ring *raw, *images;
    struct oct_publisher *publisher;
    void *context, *socket;
};

static void publish_bscan(struct rig *rig, uint64_t number, uint16_t level)
{
    uint64_t slot;

    assert_int_equal(oct_ring_acquire(rig->raw, 1000000, &slot), OCT_OK);
    struct oct_raw_frame *raw = oct_raw_slot(rig->raw, slot, &rig->g);
    raw->info = (struct oct_bscan_info){.number = number};
    for (uint32_t i = 0; i < rig->g.n_lines * rig->g.n_samples; i++)
        raw->spectra[i] = (uint16_t)(i % rig->g.n_samples + level);
    oct_ring_publish(rig->raw);
    assert_int_equal(oct_ring_acquire(rig->images, 1000000, &slot), OCT_OK);
    struct oct_image_frame *image = oct_image_slot(rig->images, slot);
    image->info = raw->info;
    image->status = OCT_OK;
    image->lo = 0;
    image->hi = 1;
    memset(image->pixels, 0, oct_geometry_image_bytes(&rig->g));
    oct_ring_publish(rig->images);
}

static void open_rig(struct rig *rig)
{
    char endpoint[256], bound[1100];
    int wait_ms = 20;

    memset(rig, 0, sizeof(*rig));
    assert_int_equal(oct_geometry_init(&rig->g, 64, 6, 4, 0, 32, OCT_SAMPLE_U8, NULL), OCT_OK);
    assert_int_equal(
        oct_ring_create(&rig->raw, N_SLOTS, oct_raw_slot_bytes(&rig->g), NULL, NULL, NULL), 0);
    assert_int_equal(
        oct_ring_create(&rig->images, N_SLOTS, oct_image_slot_bytes(&rig->g), NULL, NULL, NULL), 0);
    rig->context = zmq_ctx_new();
    snprintf(endpoint, sizeof(endpoint), "inproc://spectrum-%ld", (long)getpid());
    const struct oct_publisher_options options = {
        .zmq_context = rig->context,
        .endpoint = endpoint,
        .queue_bscans = 8,
        .geometry = &rig->g,
        .images = rig->images,
        .session = "test",
        .raw = rig->raw,
        .limit = 80,
    };
    assert_int_equal(oct_publisher_create(&rig->publisher, &options, NULL), OCT_OK);
    snprintf(bound, sizeof(bound), "%s", oct_publisher_endpoint(rig->publisher));
    rig->socket = zmq_socket(rig->context, ZMQ_SUB);
    zmq_setsockopt(rig->socket, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms));
    zmq_setsockopt(rig->socket, ZMQ_SUBSCRIBE, OCT_TOPIC_SPECTRUM, strlen(OCT_TOPIC_SPECTRUM));
    assert_int_equal(zmq_connect(rig->socket, bound), 0);
}

static void close_rig(struct rig *rig)
{
    oct_ring_close(rig->raw);
    oct_ring_close(rig->images);
    oct_publisher_destroy(rig->publisher);
    zmq_close(rig->socket);
    zmq_ctx_term(rig->context);
    oct_ring_destroy(rig->raw);
    oct_ring_destroy(rig->images);
}

static void the_publisher_sends_the_newest_spectrum_a_few_times_a_second(void **state)
{
    struct rig rig;
    struct oct_spectrum_header header = {0};
    char topic[64], json[OCT_SPECTRUM_HEADER_BYTES];
    uint16_t samples[64 + 1];
    unsigned n_came = 0;

    open_rig(&rig);
    const uint64_t begin_ns = oct_clock_ns();
    /* About 50 B-scans a second, for 1.2 s or more: far more than there are slots. */
    for (uint64_t number = 0; number < 60 || n_came < 2; number++) {
        assert_true(oct_clock_ns() - begin_ns < TEST_PATIENCE_NS);
        publish_bscan(&rig, number, (uint16_t)(number % 20));
        if (zmq_recv(rig.socket, topic, sizeof(topic), 0) < 0)
            continue;
        int n = zmq_recv(rig.socket, json, sizeof(json), 0);
        assert_true(n > 0 && n < (int)sizeof(json));
        assert_int_equal(zmq_recv(rig.socket, samples, sizeof(samples), 0), 64 * 2);
        assert_int_equal(oct_spectrum_decode(&header, json, (size_t)n, 64 * 2, NULL), OCT_OK);
        assert_true(header.frame_num + N_SLOTS >= number); /* the newest, not a backlog */
        uint16_t level = (uint16_t)(header.frame_num % 20);
        assert_int_equal(header.line, 3);
        assert_int_equal(header.limit, 80);
        /* Samples level .. level + 63: those from 80 on are at the limit, in each of six lines. */
        assert_int_equal(header.n_saturated, 6 * (level + 63 >= 80 ? level + 63 - 79 : 0));
        for (unsigned i = 0; i < 64; i++)
            assert_int_equal(samples[i], i + level);
        n_came++;
    }
    /* One every 250 ms, the first at once. */
    assert_true(n_came <= 1 + (oct_clock_ns() - begin_ns) / 250000000);
    close_rig(&rig);
}

/* Before libzmq's, which obeys subscriptions while it sends, for as long as there are any: the
 * publisher's thread sends nothing while `held` is set. */
static atomic_bool held;
static atomic_uint n_held;

static void hold(void)
{
    bool counted = false;
    while (atomic_load(&held)) {
        atomic_fetch_add(&n_held, !counted);
        counted = true;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

int zmq_msg_send(zmq_msg_t *message, void *socket, int flags)
{
    static int (*real)(zmq_msg_t *, void *, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "zmq_msg_send");
    hold();
    return real(message, socket, flags);
}

int zmq_send(void *socket, const void *bytes, size_t n, int flags)
{
    static int (*real)(void *, const void *, size_t, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "zmq_send");
    hold();
    return real(socket, bytes, n, flags);
}

static void a_publisher_that_is_held_up_holds_up_nobody(void **state)
{
    struct rig rig;
    open_rig(&rig);
    publish_bscan(&rig, 0, 0);
    for (int ms = 0; oct_publisher_published(rig.publisher) < 1; ms++) {
        assert_true(ms < TEST_PATIENCE_MS);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    atomic_store(&held, true);
    publish_bscan(&rig, 1, 0);
    for (int ms = 0; atomic_load(&n_held) == 0; ms++) {
        assert_true(ms < TEST_PATIENCE_MS);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    for (uint64_t number = 2; number < 4 * N_SLOTS; number++)
        publish_bscan(&rig, number, 0); /* finds a slot each time */
    atomic_store(&held, false);
    for (int ms = 0; oct_publisher_published(rig.publisher) < 3; ms++) {
        assert_true(ms < TEST_PATIENCE_MS);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_true(oct_publisher_skipped(rig.publisher) > 0);
    close_rig(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_comes_back_as_it_went),
        cmocka_unit_test(headers_that_lie_are_refused),
        cmocka_unit_test(the_publisher_sends_the_newest_spectrum_a_few_times_a_second),
        cmocka_unit_test(a_publisher_that_is_held_up_holds_up_nobody),
    };
    return cmocka_run_group_tests_name("spectrum", tests, NULL, NULL);
}
