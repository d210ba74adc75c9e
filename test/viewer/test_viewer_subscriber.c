/* The viewer's subscription against a real publisher, good and hostile: pictures, spectra, and the
 * connection itself. */
#include "test/rig/tap.h"
#include "test/rig/viewer_wire.h"
#include "viewer/model/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

static void the_newest_picture_wins(void **state)
{
    struct wire *w = *state;

    for (uint64_t i = 1; i <= 200; i++)
        send_good(w, i);
    assert_true(oct_subscriber_wait(w->subscriber, w->n_sent, TEST_PATIENCE_NS));
    assert_true(take_picture(w));
    assert_int_equal(w->picture.header.frame_num, 200);
    assert_int_equal(w->picture.header.n_lines, M);
    assert_int_equal(w->picture.header.depth, D);
    assert_int_equal(w->picture.header.missing_lines, 1);
    assert_true(w->picture.header.lo == 10 && w->picture.header.hi == 60);
    assert_int_equal(((const uint8_t *)w->picture.pixels)[M * D - 1], 200);
    assert_false(take_picture(w)); /* no backlog */
    assert_int_equal(w->report.tally.n_bad, 0);
    assert_int_equal(w->report.tally.n_skipped, 0);
    send_good(w, 204);
    assert_true(oct_subscriber_wait(w->subscriber, w->n_sent, TEST_PATIENCE_NS));
    assert_true(take_picture(w));
    assert_int_equal(w->report.tally.n_skipped, 3);
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
    take_picture(w);
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
    uint64_t n_before = w->report.tally.n_received + w->report.tally.n_bad, n_sent = 0;
    float image[M * D];

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
        take_picture(w);
        pause_ms(10);
    }
    assert_int_equal(w->report.tally.n_received + w->report.tally.n_bad, n_before + n_sent);
    assert_true(w->report.tally.n_received > n_before + 50);
    assert_true(oct_view_archive_count(w->archive) > 0);
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
        take_picture(w);
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
    take_picture(w);
    assert_true(w->report.connected);
    assert_true(w->report.tally.n_received > before);
}

static void it_ends_at_once_also_with_nobody_there(void **state)
{
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
