/* The viewer's subscription against a real publisher, good and hostile. */
#include "test/rig/tap.h"
#include "viewer/model/clock.h"
#include "viewer/net/subscriber.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#define M 6u
#define D 8u

struct wire {
    void *context, *publisher;
    char endpoint[512];
    struct oct_subscriber *subscriber;
    struct oct_view_archive *archive;
    struct oct_view_picture picture;
    struct oct_subscriber_report report;
    uint64_t n_sent; /* good pictures */
};

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Written here from the contract, so that the encoder of pipeline/ is not its own judge. */
static char *header_json(uint64_t frame_num, const char *dtype, const char *m, const char *d,
                         double dsize)
{
    const char *shape[] = {m, d};
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "frame_num", (double)frame_num);
    cJSON_AddStringToObject(o, "acquisition_id", "test");
    cJSON_AddStringToObject(o, "dtype", dtype);
    cJSON_AddNumberToObject(o, "dsize", dsize);
    cJSON_AddStringToObject(o, "dataset", "bscans");
    cJSON_AddStringToObject(o, "compression", "none");
    cJSON_AddItemToObject(o, "shape", cJSON_CreateStringArray(shape, 2));
    cJSON_AddNumberToObject(o, "time_ns", 5);
    cJSON_AddNumberToObject(o, "missing_lines", 1);
    cJSON_AddNumberToObject(o, "lo", 10);
    cJSON_AddNumberToObject(o, "hi", 60);
    cJSON_AddNumberToObject(o, "volume", 2);
    cJSON_AddNumberToObject(o, "bscan", 3);
    char *text = cJSON_PrintUnformatted(o);
    cJSON_Delete(o);
    assert_non_null(text);
    return text;
}

static void send_part(struct wire *w, const void *bytes, size_t n_bytes, bool more)
{
    assert_int_equal(zmq_send(w->publisher, bytes, n_bytes, more ? ZMQ_SNDMORE : 0), n_bytes);
}

static void send_three(struct wire *w, const char *topic, const char *json, size_t json_bytes,
                       const void *image, size_t image_bytes)
{
    send_part(w, topic, strlen(topic), true);
    send_part(w, json, json_bytes, true);
    send_part(w, image, image_bytes, false);
}

/* A good picture: every pixel is its frame number. */
static void send_good(struct wire *w, uint64_t frame_num)
{
    uint8_t image[M * D];
    char *json = header_json(frame_num, "uint8", "6", "8", M * D);

    memset(image, (int)(frame_num & 255), sizeof(image));
    send_three(w, "bscan", json, strlen(json), image, sizeof(image));
    w->n_sent++;
    free(json);
}

static bool take(struct wire *w)
{
    return oct_subscriber_take(w->subscriber, &w->picture, &w->report);
}

#define LAST_OF_MEETING 999

/* Publishes until the subscription has reached the publisher (PUB drops what nobody wants yet),
 * then until all of that has arrived. */
static void meet(struct wire *w)
{
    for (int i = 0;
         i < TEST_PATIENCE_MS / 10 && !oct_subscriber_wait(w->subscriber, 1, 10 * OCT_NS_PER_MS);
         i++)
        send_good(w, LAST_OF_MEETING - 1);
    assert_true(oct_subscriber_wait(w->subscriber, 1, 0));
    send_good(w, LAST_OF_MEETING);
    for (int i = 0; i < TEST_PATIENCE_MS / 10 && w->picture.header.frame_num != LAST_OF_MEETING;
         i++) {
        take(w);
        pause_ms(10);
    }
    assert_int_equal(w->picture.header.frame_num, LAST_OF_MEETING);
    w->n_sent = w->report.tally.n_received;
    assert_true(w->report.connected);
}

static void open_publisher(struct wire *w)
{
    int linger = 0, queue = 0;

    w->publisher = zmq_socket(w->context, ZMQ_PUB);
    zmq_setsockopt(w->publisher, ZMQ_LINGER, &linger, sizeof(linger));
    zmq_setsockopt(w->publisher, ZMQ_SNDHWM, &queue, sizeof(queue));
    assert_int_equal(zmq_bind(w->publisher, w->endpoint), 0);
}

static int open_wire(void **state)
{
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    struct wire *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->context = zmq_ctx_new();
    snprintf(w->endpoint, sizeof(w->endpoint), "ipc://%s/octview-test-%ld", folder, (long)getpid());
    open_publisher(w);
    assert_int_equal(oct_subscriber_create(&w->subscriber, w->endpoint, NULL, NULL, NULL, NULL),
                     OCT_OK);
    w->archive = oct_view_archive_create(1 << 20, true);
    assert_non_null(w->archive);
    oct_subscriber_attach(w->subscriber, w->archive);
    meet(w);
    *state = w;
    return 0;
}

static int close_wire(void **state)
{
    struct wire *w = *state;

    oct_subscriber_destroy(w->subscriber);
    oct_view_picture_finish(&w->picture);
    oct_view_archive_destroy(w->archive);
    if (w->publisher)
        zmq_close(w->publisher);
    zmq_ctx_term(w->context);
    free(w);
    return 0;
}

static void the_newest_picture_wins(void **state)
{
    struct wire *w = *state;

    for (uint64_t i = 1; i <= 200; i++)
        send_good(w, i);
    assert_true(oct_subscriber_wait(w->subscriber, w->n_sent, TEST_PATIENCE_NS));
    assert_true(take(w));
    assert_int_equal(w->picture.header.frame_num, 200);
    assert_int_equal(w->picture.header.n_lines, M);
    assert_int_equal(w->picture.header.depth, D);
    assert_int_equal(w->picture.header.missing_lines, 1);
    assert_true(w->picture.header.lo == 10 && w->picture.header.hi == 60);
    assert_int_equal(((const uint8_t *)w->picture.pixels)[M * D - 1], 200);
    assert_false(take(w)); /* no backlog */
    assert_int_equal(w->report.tally.n_bad, 0);
    assert_int_equal(w->report.tally.n_lost, 0);
    send_good(w, 204);
    assert_true(oct_subscriber_wait(w->subscriber, w->n_sent, TEST_PATIENCE_NS));
    assert_true(take(w));
    assert_int_equal(w->report.tally.n_lost, 3);
}

static uint64_t expect_bad(struct wire *w, uint64_t n_bad)
{
    /* ThreadSanitizer looks at every byte that ZeroMQ sends, which takes it seconds here. */
    for (int i = 0; i < 4000 && w->report.tally.n_bad < n_bad; i++) {
        take(w);
        pause_ms(10);
    }
    return w->report.tally.n_bad;
}

static void send_shape(struct wire *w, const char *dtype, const char *m, const char *d,
                       size_t image_bytes)
{
    char *json = header_json(1, dtype, m, d, (double)image_bytes);
    uint8_t *image = calloc(1, image_bytes + 1);

    assert_non_null(image);
    send_three(w, "bscan", json, strlen(json), image, image_bytes);
    free(image);
    free(json);
}

static void hostile_messages_are_counted_and_survived(void **state)
{
    struct wire *w = *state;
    static const char *const bad_json[] = {
        "", "{", "[]", "null", "{}", "\x01\xff\xfe", "{\"frame_num\":-1}", "{\"shape\":[1,2,3]}",
    };
    const size_t big = 10u << 20;
    uint64_t n_bad = 0;

    for (size_t i = 0; i < sizeof(bad_json) / sizeof(bad_json[0]); i++, n_bad++)
        send_three(w, "bscan", bad_json[i], strlen(bad_json[i]), "x", 1);
    send_shape(w, "uint8", "6", "8", 47);
    send_shape(w, "uint8", "6", "8", 49);
    send_shape(w, "uint8", "6", "8", 0);
    send_shape(w, "float", "6", "8", 48);
    send_shape(w, "uint16", "6", "8", 96);
    send_shape(w, "uint8", "0", "8", 0);
    send_shape(w, "uint8", "-6", "8", 48);
    send_shape(w, "uint8", "4294967295", "4294967295", 1);
    send_shape(w, "uint8", "65536", "65536", 0);
    send_shape(w, "uint8", "6x", "8", 48);
    n_bad += 10;
    char *huge = malloc(big);
    assert_non_null(huge);
    memset(huge, '[', big);
    send_three(w, "bscan", huge, big, "x", 1);
    memset(huge, ' ', big);
    send_three(w, "bscan", huge, big, "x", 1);
    free(huge);
    send_part(w, "bscan", 5, false);
    send_part(w, "bscan", 5, true);
    send_part(w, "{}", 2, false);
    for (int i = 0; i < 1000; i++)
        send_part(w, "bscan", 5, i < 999);
    send_shape(w, "uint8", "6", "8", 48); /* good, but ... */
    w->n_sent++;
    char *json = header_json(1, "uint8", "6", "8", 48);
    uint8_t image[48] = {0};
    send_three(w, "bscanner", json, strlen(json), image, sizeof(image)); /* ... not this topic */
    send_part(w, "bscan", 5, true); /* a good picture and one part more */
    send_part(w, json, strlen(json), true);
    send_part(w, image, sizeof(image), true);
    send_part(w, "", 0, false);
    free(json);
    n_bad += 7;
    assert_int_equal(expect_bad(w, n_bad), n_bad);
    assert_true(strlen(w->report.last_bad.text) > 0);
    send_good(w, 2);
    assert_true(oct_subscriber_wait(w->subscriber, w->n_sent, TEST_PATIENCE_NS));
    take(w);
    assert_int_equal(w->report.tally.n_bad, n_bad);
    assert_int_equal(w->report.tally.n_received, w->n_sent);
    assert_int_equal(w->picture.header.frame_num, 2);
}

/* Good by its form, wild by its numbers: each reaches the archive. */
static void wild_pictures_are_survived(void **state)
{
    struct wire *w = *state;
    static const char *const limits[] = {"0", "-1e308", "1e308", "1e-320", "70"};
    static const char *const numbers[] = {"0", "7", "4294967295", "1048575"};
    struct oct_view_enface enface = {0};
    struct oct_view_quality *quality = calloc(1, sizeof(*quality));
    uint64_t n_before = w->report.tally.n_received + w->report.tally.n_bad, n_sent = 0;
    float image[M * D];

    assert_non_null(quality);
    for (unsigned i = 0; i < M * D; i++)
        image[i] = i % 5 == 0   ? NAN
                   : i % 5 == 1 ? INFINITY
                   : i % 5 == 2 ? -INFINITY
                   : i % 5 == 3 ? 3e38f
                                : -3e38f;
    for (unsigned k = 0; k < 5 * 5 * 4 * 2; k++, n_sent++) {
        bool f32 = k & 1;
        char json[512];
        snprintf(json, sizeof(json),
                 "{\"frame_num\":%u,\"acquisition_id\":\"t\",\"dtype\":\"%s\",\"dsize\":%u,"
                 "\"dataset\":\"bscans\",\"compression\":\"none\",\"shape\":[\"6\",\"8\"],"
                 "\"time_ns\":1,\"missing_lines\":%s,\"lo\":%s,\"hi\":%s,\"volume\":%s,"
                 "\"bscan\":%s}",
                 k, f32 ? "float" : "uint8", M * D * (f32 ? 4 : 1), k & 2 ? "6" : "0",
                 limits[k / 8 % 5], limits[k / 40 % 5], numbers[k / 2 % 4], numbers[k / 2 % 4]);
        send_three(w, "bscan", json, strlen(json), image, M * D * (f32 ? 4 : 1));
    }
    for (int i = 0; i < TEST_PATIENCE_MS / 10 &&
                    w->report.tally.n_received + w->report.tally.n_bad < n_before + n_sent;
         i++) {
        take(w);
        pause_ms(10);
    }
    assert_int_equal(w->report.tally.n_received + w->report.tally.n_bad, n_before + n_sent);
    assert_true(w->report.tally.n_received > n_before + 50);
    oct_view_archive_copy(w->archive, &enface, quality);
    assert_true(isfinite(quality->snr_db) && isfinite(quality->sharpness));
    assert_true(enface.n_rows <= OCT_VIEW_ENFACE_MOST);
    assert_true(oct_view_archive_count(w->archive) > 0);
    oct_view_enface_finish(&enface);
    free(quality);
}

static void spectra_arrive_and_hostile_ones_are_counted(void **state)
{
    struct wire *w = *state;
    struct oct_view_spectrum spectrum = {0};
    static const char good[] = "{\"frame_num\":5,\"line\":3,\"dtype\":\"uint16\",\"shape\":"
                               "[\"4\"],\"limit\":4095,\"saturated\":2}";
    const uint16_t samples[] = {1, 2, 4095, 4095};
    char *huge = malloc(10u << 20);

    assert_non_null(huge);
    memset(huge, '{', 10u << 20);
    send_three(w, "spectrum", good, strlen(good), samples, 7);
    send_three(w, "spectrum", "{}", 2, samples, 8);
    send_three(w, "spectrum", huge, 10u << 20, samples, 8);
    send_three(w, "spectrums", good, strlen(good), samples, 8);
    free(huge);
    send_three(w, "spectrum", good, strlen(good), samples, 8);
    assert_int_equal(expect_bad(w, 4), 4);
    for (int i = 0;
         i < TEST_PATIENCE_MS / 10 && !oct_subscriber_take_spectrum(w->subscriber, &spectrum); i++)
        pause_ms(10);
    assert_int_equal(spectrum.n_samples, 4);
    assert_int_equal(spectrum.n_saturated, 2);
    assert_int_equal(spectrum.sample[2], 4095);
    assert_false(oct_subscriber_take_spectrum(w->subscriber, &spectrum));
    oct_view_spectrum_finish(&spectrum);
}

static void it_connects_again_by_itself(void **state)
{
    struct wire *w = *state;

    zmq_close(w->publisher);
    for (int i = 0; i < TEST_PATIENCE_MS / 10 && w->report.connected; i++) {
        take(w);
        pause_ms(10);
    }
    assert_false(w->report.connected);
    open_publisher(w);
    uint64_t before = w->report.tally.n_received;
    for (uint64_t i = 1; i < TEST_PATIENCE_MS / 10; i++) {
        send_good(w, i);
        if (oct_subscriber_wait(w->subscriber, before + 1, 10 * OCT_NS_PER_MS))
            break;
    }
    take(w);
    assert_true(w->report.connected);
    assert_true(w->report.tally.n_received > before);
}

static void it_ends_at_once_also_with_nobody_there(void **state)
{
    (void)state;
    struct oct_subscriber *subscriber;
    struct oct_subscriber_report report;
    struct oct_view_picture picture = {0};
    struct oct_error err = {0};
    uint64_t start_ns = oct_view_now_ns();

    assert_int_equal(
        oct_subscriber_create(&subscriber, "tcp://127.0.0.1:1", NULL, NULL, NULL, NULL), OCT_OK);
    assert_false(oct_subscriber_wait(subscriber, 1, 50 * OCT_NS_PER_MS));
    assert_false(oct_subscriber_take(subscriber, &picture, &report));
    assert_false(report.connected);
    oct_subscriber_destroy(subscriber);
    assert_true(oct_view_now_ns() - start_ns < 2 * OCT_NS_PER_S);
    assert_int_equal(oct_subscriber_create(&subscriber, "nonsense", NULL, NULL, NULL, &err),
                     OCT_E_CONFIG);
    assert_null(subscriber);
    assert_non_null(strstr(err.text, "nonsense"));
    oct_subscriber_destroy(NULL);
}

struct counter {
    pthread_mutex_t mutex;
    unsigned n;
};

static void count(void *context)
{
    struct counter *counter = context;

    pthread_mutex_lock(&counter->mutex);
    counter->n++;
    pthread_mutex_unlock(&counter->mutex);
}

static void it_tells_of_news_once_until_they_are_taken(void **state)
{
    struct wire *w = *state;
    struct counter counter = {.mutex = PTHREAD_MUTEX_INITIALIZER};

    oct_subscriber_destroy(w->subscriber);
    assert_int_equal(
        oct_subscriber_create(&w->subscriber, w->endpoint, NULL, count, &counter, NULL), OCT_OK);
    for (uint64_t i = 0; i < TEST_PATIENCE_MS / 10; i++) {
        send_good(w, i);
        if (oct_subscriber_wait(w->subscriber, 5, 10 * OCT_NS_PER_MS))
            break;
    }
    assert_true(oct_subscriber_wait(w->subscriber, 5, 0));
    pause_ms(20);
    oct_subscriber_destroy(w->subscriber); /* joins: no call after this */
    w->subscriber = NULL;
    assert_int_equal(counter.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_newest_picture_wins, open_wire, close_wire),
        cmocka_unit_test_setup_teardown(hostile_messages_are_counted_and_survived, open_wire,
                                        close_wire),
        cmocka_unit_test_setup_teardown(wild_pictures_are_survived, open_wire, close_wire),
        cmocka_unit_test_setup_teardown(spectra_arrive_and_hostile_ones_are_counted, open_wire,
                                        close_wire),
        cmocka_unit_test_setup_teardown(it_connects_again_by_itself, open_wire, close_wire),
        cmocka_unit_test_setup_teardown(it_tells_of_news_once_until_they_are_taken, open_wire,
                                        close_wire),
        cmocka_unit_test(it_ends_at_once_also_with_nobody_there),
    };
    return cmocka_run_group_tests_name("viewer subscriber", tests, NULL, NULL);
}
