/* The viewer on the network: its subscription, and what it asks octd. */
#include "pipeline/base/clock.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_wire.h"
#include "viewer/model/enface.h"
#include "viewer/net/control.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

/* ---- pictures ---- */

TEST_WITH(the_newest_picture_wins, open_wire, close_wire)
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

TEST_WITH(hostile_messages_are_counted_and_survived, open_wire, close_wire)
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
TEST_WITH(wild_pictures_are_survived, open_wire, close_wire)
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

TEST_WITH(spectra_arrive_and_hostile_ones_are_counted, open_wire, close_wire)
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

TEST_WITH(it_connects_again_by_itself, open_wire, close_wire)
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

TEST(it_ends_at_once_also_with_nobody_there)
{
    struct oct_subscriber *subscriber;
    struct oct_subscriber_report report;
    struct oct_view_picture picture = {0};
    struct oct_error err = {0};
    uint64_t start_ns = oct_clock_ns();
    assert_int_equal(
        oct_subscriber_create(&subscriber, "tcp://127.0.0.1:1", NULL, NULL, NULL, NULL, NULL),
        OCT_OK);
    assert_false(oct_subscriber_wait(subscriber, 1, 50 * OCT_NS_PER_MS));
    assert_false(oct_subscriber_take(subscriber, &picture, &report));
    assert_false(report.connected);
    oct_subscriber_destroy(subscriber);
    assert_true(oct_clock_ns() - start_ns < 2 * OCT_NS_PER_S);
    assert_int_equal(oct_subscriber_create(&subscriber, "nonsense", NULL, NULL, NULL, NULL, &err),
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

TEST_WITH(it_tells_of_news_once_until_they_are_taken, open_wire, close_wire)
{
    struct wire *w = *state;
    struct counter counter = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    oct_subscriber_destroy(w->subscriber);
    assert_int_equal(
        oct_subscriber_create(&w->subscriber, w->endpoint, NULL, NULL, count, &counter, NULL),
        OCT_OK);
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

/* ---- topics ---- */

/* [3][4], each value the picture's number. */
static void send_enface(struct wire *w, uint64_t number)
{
    float values[12];
    for (int i = 0; i < 12; i++)
        values[i] = (float)number;
    send_image(w, "enface", number, "float", "\"3\",\"4\"", ",\"unit\":\"dB\",\"whole\":false",
               values, sizeof(values));
}

/* Takes until the topic's image has that number. */
static bool take_number(struct wire *w, const char *topic, struct oct_view_image *image,
                        uint64_t number)
{
    for (int i = 0; i < TEST_PATIENCE_MS / 10; i++) {
        if (oct_subscriber_take_image(w->subscriber, topic, image) &&
            image->header.frame_num == number)
            return true;
        pause_ms(10);
    }
    return false;
}

TEST_WITH(every_topic_has_its_own_newest_image, open_wire, close_wire)
{
    struct wire *w = *state;
    struct oct_view_image enface = {0}, quality = {0}, none = {0};
    struct oct_view_spectrum spectrum = {0};
    static const char spectrum_json[] =
        "{\"frame_num\":5,\"line\":3,\"dtype\":\"uint16\",\"shape\":"
        "[\"1\"],\"limit\":4095,\"saturated\":2}";
    const uint16_t sample = 7;
    assert_false(oct_subscriber_take_image(w->subscriber, "enface", &enface));
    for (uint64_t i = 1; i <= 100; i++) {
        send_good(w, i);
        send_enface(w, 1000 + i);
        send_quality(w, 2000 + i, false);
    }
    send_three(w, "spectrum", spectrum_json, strlen(spectrum_json), &sample, sizeof(sample));
    send_good(w, 101); /* when it is there, so is all that went before */
    assert_true(oct_subscriber_wait(w->subscriber, w->n_sent, TEST_PATIENCE_NS));
    assert_true(take_picture(w));
    assert_int_equal(w->picture.header.frame_num, 101);
    assert_true(oct_subscriber_take_image(w->subscriber, "enface", &enface));
    assert_int_equal(enface.header.frame_num, 1100);
    assert_string_equal(enface.header.dataset, "analysis/enface");
    assert_true(enface.header.rank == 2 && enface.header.dims[0] == 3 &&
                enface.header.dims[1] == 4);
    assert_true(enface.header.lo == 10 && enface.header.hi == 60 && !enface.header.whole);
    assert_true(((const float *)enface.values)[11] == 1100 && enface.arrival_ns > 0);
    assert_true(oct_subscriber_take_image(w->subscriber, "quality", &quality));
    assert_int_equal(quality.header.frame_num, 2100);
    assert_true(oct_image_header_value(&quality.header, quality.values, "motions") == 2100);
    assert_true(oct_subscriber_take_spectrum(w->subscriber, &spectrum));
    /* No backlog of any; what one takes is not taken from another. */
    assert_false(take_picture(w));
    assert_false(oct_subscriber_take_image(w->subscriber, "enface", &enface));
    assert_false(oct_subscriber_take_image(w->subscriber, "quality", &quality));
    send_enface(w, 1200);
    assert_true(take_number(w, "enface", &enface, 1200));
    assert_false(oct_subscriber_take_image(w->subscriber, "quality", &quality));
    /* Topics of which no images come, and topics that nobody knows. */
    assert_false(oct_subscriber_take_image(w->subscriber, "bscan", &none));
    assert_false(oct_subscriber_take_image(w->subscriber, "spectrum", &none));
    assert_false(oct_subscriber_take_image(w->subscriber, "surfaces", &none));
    assert_false(oct_subscriber_take_image(w->subscriber, "", &none));
    assert_null(none.values);
    take_picture(w);
    assert_int_equal(w->report.tally.n_bad, 0);
    assert_int_equal(w->report.tally.n_received, w->n_sent); /* B-scans alone are counted */
    oct_view_image_finish(&enface);
    oct_view_image_finish(&quality);
    oct_view_spectrum_finish(&spectrum);
}

/* Nobody takes an image meanwhile: the rows are on the timeline all the same, memory stays. */
TEST_WITH(a_flood_of_images_loses_no_row_of_the_quality, open_wire, close_wire)
{
    struct wire *w = *state;
    struct oct_view_quality *quality = calloc(1, sizeof(*quality));
    struct oct_view_image image = {0};
    unsigned n_marked = 0;
    assert_non_null(quality);
    for (uint64_t i = 1; i <= 5000; i++) {
        send_quality(w, i, i == 2500);
        send_enface(w, i);
    }
    send_good(w, 1);
    assert_true(oct_subscriber_wait(w->subscriber, w->n_sent, TEST_PATIENCE_NS));
    oct_view_archive_copy_quality(w->archive, quality);
    assert_int_equal(quality->n_motions, 5000);
    assert_int_equal(quality->marks, 0); /* of the newest; the one in between is marked */
    for (unsigned i = 0; i < OCT_VIEW_TIMELINE; i++)
        n_marked += quality->moment[i].marks == OCT_MARK_MOTION;
    assert_int_equal(n_marked, 1);
    assert_true(oct_subscriber_take_image(w->subscriber, "enface", &image));
    assert_int_equal(image.header.frame_num, 5000);
    assert_true(oct_subscriber_take_image(w->subscriber, "quality", &image));
    assert_int_equal(image.header.frame_num, 5000);
    take_picture(w);
    assert_int_equal(w->report.tally.n_bad, 0);
    oct_view_image_finish(&image);
    free(quality);
}

TEST_WITH(hostile_images_are_counted_and_survived, open_wire, close_wire)
{
    struct wire *w = *state;
    static const char *const bad_json[] = {
        "", "{", "[]", "null", "{}", "\x01\xff\xfe", "{\"frame_num\":-1}", "{\"shape\":[1,2,3]}",
    };
    static const struct {
        const char *topic, *dtype, *shape, *more;
        size_t n_bytes;
    } bad[] = {
        {"enface", "float", "\"3\",\"4\"", "", 47},
        {"enface", "float", "\"3\",\"4\"", "", 0},
        {"enface", "float", "\"0\",\"4\"", "", 16},
        {"enface", "float", "\"3\",\"0\"", "", 0},
        {"enface", "float", "\"-3\",\"4\"", "", 48},
        {"enface", "float", "3,4", "", 48},
        {"enface", "float", "\"4294967295\",\"4294967295\"", "", 4},
        {"enface", "float", "\"4294967296\",\"1\"", "", 4},
        {"enface", "float", "\"65536\",\"65536\"", "", 0},
        {"enface", "float", "\"12\"", "", 48},            /* good, but no picture */
        {"enface", "float", "\"1\",\"3\",\"4\"", "", 48}, /* nor is this one */
        {"enface", "uint8", "\"3\",\"4\"", "", 12},       /* nor are these its values */
        {"enface", "uint16", "\"3\",\"4\"", "", 24},
        {"quality", "float", "\"3\"", "", 12}, /* without labels */
        {"quality", "float", "\"3\"", ",\"labels\":[\"a\",\"b\"]", 12},
        {"quality", "float", "\"3\"", ",\"labels\":[\"a\",\"b\",5]", 12},
        {"quality", "float", "\"2\",\"3\"", wire_quality_labels, 24}, /* two rows */
        {"quality", "uint8", "\"3\"", wire_quality_labels, 3},
        {"quality", "float", "\"3\"", wire_quality_labels, 8},
        {"enfac", "float", "\"3\",\"4\"", "", 48}, /* never arrives */
        {"enface2", "float", "\"3\",\"4\"", "", 48},
        {"quality.", "float", "\"3\"", wire_quality_labels, 12},
    };
    const size_t n_cases = sizeof(bad) / sizeof(bad[0]), big = 10u << 20;
    const uint8_t bytes[64] = {0};
    struct oct_view_image image = {0};
    uint64_t n_bad = 0;
    for (size_t i = 0; i < sizeof(bad_json) / sizeof(bad_json[0]); i++, n_bad += 2) {
        send_three(w, "enface", bad_json[i], strlen(bad_json[i]), bytes, 48);
        send_three(w, "quality", bad_json[i], strlen(bad_json[i]), bytes, 12);
    }
    for (size_t i = 0; i < n_cases; i++)
        send_image(w, bad[i].topic, i, bad[i].dtype, bad[i].shape, bad[i].more, bytes,
                   bad[i].n_bytes);
    n_bad += n_cases - 1;
    char *huge = malloc(big);
    assert_non_null(huge);
    memset(huge, '[', big);
    send_three(w, "enface", huge, big, bytes, 48);
    send_three(w, "quality", huge, big, huge, big);
    send_image(w, "enface", 1, "float", "\"3\",\"4\"", "", huge, big);
    free(huge);
    send_part(w, "enface", 6, false);
    for (int i = 0; i < 1000; i++)
        send_part(w, "quality", 7, i < 999);
    n_bad += 5;
    assert_int_equal(expect_bad(w, n_bad), n_bad);
    assert_true(strlen(w->report.last_bad.text) > 0);
    assert_false(oct_subscriber_take_image(w->subscriber, "enface", &image));
    assert_false(oct_subscriber_take_image(w->subscriber, "quality", &image));
    send_enface(w, 5);
    assert_true(take_number(w, "enface", &image, 5));
    send_image(w, "enface", 6, "float", "\"0\",\"4\"", "", bytes, 0); /* nothing of it yet: good */
    assert_true(take_number(w, "enface", &image, 6));
    send_quality(w, 7, true);
    assert_true(take_number(w, "quality", &image, 7));
    send_good(w, 2);
    assert_true(oct_subscriber_wait(w->subscriber, w->n_sent, TEST_PATIENCE_NS));
    take_picture(w);
    assert_int_equal(w->report.tally.n_bad, n_bad);
    assert_int_equal(w->report.tally.n_received, w->n_sent);
    oct_view_image_finish(&image);
}

TEST_WITH(a_large_image_and_wild_numbers_are_taken, open_wire, close_wire)
{
    struct wire *w = *state;
    static const char *const limits[] = {"0", "-1e308", "1e308", "1e-320", "60"};
    const size_t n_bytes = (size_t)4 * 3000 * 2500;
    struct oct_view_image image = {0};
    struct oct_view_enface enface = {0};
    struct oct_view_quality *quality = calloc(1, sizeof(*quality));
    uint32_t *values = malloc(n_bytes);
    char json[1024];
    assert_true(values && quality);
    for (size_t i = 0; i < n_bytes / 4; i++) /* floats of all kinds, NaN and infinity among them */
        values[i] = (uint32_t)i * 2654435761u;
    for (unsigned i = 0; i < 5; i++) {
        snprintf(json, sizeof(json), WIRE_IMAGE_JSON, i + 10ull, "float", n_bytes, "enface",
                 "\"3000\",\"2500\"", limits[i], "");
        send_three(w, "enface", json, strlen(json), values, n_bytes);
        send_image(w, "quality", i, "float", "\"3\"", wire_quality_labels, values + 7 * i, 12);
        assert_true(take_number(w, "enface", &image, i + 10));
        oct_view_enface_set(&enface, &image);
        assert_true(enface.n_rows == OCT_VIEW_ENFACE_MOST && enface.lo < enface.hi);
        assert_int_equal(enface.n_columns, OCT_VIEW_ENFACE_MOST);
    }
    assert_int_equal(((const uint32_t *)image.values)[n_bytes / 4 - 1], values[n_bytes / 4 - 1]);
    oct_view_archive_copy_quality(w->archive, quality);
    assert_true(isfinite(quality->snr_db) && isfinite(quality->sharpness));
    take_picture(w);
    assert_int_equal(w->report.tally.n_bad, 0);
    oct_view_enface_finish(&enface);
    oct_view_image_finish(&image);
    free(values);
    free(quality);
}

/* ---- the control socket ---- */

#define STATUS "{\"ok\":true,\"state\":\"running\",\"record\":{\"active\":false}}"

/* A server that answers a status with `status` and all else with `other`; NULL: not at all. */
struct server {
    void *context, *socket;
    const char *endpoint;
    pthread_t thread;
    pthread_mutex_t mutex;
    const char *status, *other;
    size_t status_bytes;
    unsigned n_parts;
    char last[512]; /* the newest request that was no status */
    bool ending;
};

static void answer(struct server *s, zmq_msg_t parts[3], int n)
{
    pthread_mutex_lock(&s->mutex);
    char request[512] = "";
    size_t n_bytes = zmq_msg_size(&parts[2]);
    memcpy(request, zmq_msg_data(&parts[2]), n_bytes < sizeof(request) ? n_bytes : 511);
    bool status = strstr(request, "\"status\"") != NULL;
    if (!status)
        snprintf(s->last, sizeof(s->last), "%s", request);
    const char *text = status ? s->status : s->other;
    size_t text_bytes = status && s->status_bytes ? s->status_bytes : text ? strlen(text) : 0;
    if (text && n == 3) {
        zmq_send(s->socket, zmq_msg_data(&parts[0]), zmq_msg_size(&parts[0]), ZMQ_SNDMORE);
        zmq_send(s->socket, "", 0, ZMQ_SNDMORE);
        for (unsigned i = 0; i < s->n_parts; i++)
            zmq_send(s->socket, text, text_bytes, i + 1 < s->n_parts ? ZMQ_SNDMORE : 0);
    }
    pthread_mutex_unlock(&s->mutex);
}

static void *serve(void *context)
{
    struct server *s = context;
    bool ending = false;
    while (!ending) {
        zmq_msg_t parts[3];
        int n = 0;
        bool more = true;
        for (int i = 0; i < 3; i++)
            zmq_msg_init(&parts[i]);
        while (more && n < 3 && zmq_msg_recv(&parts[n], s->socket, 0) >= 0)
            more = zmq_msg_more(&parts[n++]);
        if (n > 0)
            answer(s, parts, n);
        for (int i = 0; i < 3; i++)
            zmq_msg_close(&parts[i]);
        pthread_mutex_lock(&s->mutex);
        ending = s->ending;
        pthread_mutex_unlock(&s->mutex);
    }
    return NULL;
}

static void start_server(struct server *s)
{
    int wait_ms = 50, linger = 0;
    s->socket = zmq_socket(s->context, ZMQ_ROUTER);
    zmq_setsockopt(s->socket, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms));
    zmq_setsockopt(s->socket, ZMQ_LINGER, &linger, sizeof(linger));
    assert_int_equal(zmq_bind(s->socket, s->endpoint), 0);
    s->ending = false;
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop_server(struct server *s)
{
    pthread_mutex_lock(&s->mutex);
    s->ending = true;
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
    zmq_close(s->socket);
}

static int open_server(void **state)
{
    struct server *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    s->context = zmq_ctx_new();
    pthread_mutex_init(&s->mutex, NULL);
    s->status = STATUS;
    s->other = "{\"ok\":true}";
    s->n_parts = 1;
    s->endpoint = "ipc://control";
    start_server(s);
    *state = s;
    return 0;
}

static int close_server(void **state)
{
    struct server *s = *state;
    stop_server(s);
    zmq_ctx_term(s->context);
    pthread_mutex_destroy(&s->mutex);
    free(s);
    return 0;
}

static void say(struct server *s, const char *status, size_t n_bytes, const char *other,
                unsigned n_parts)
{
    pthread_mutex_lock(&s->mutex);
    s->status = status;
    s->status_bytes = n_bytes;
    s->other = other;
    s->n_parts = n_parts;
    pthread_mutex_unlock(&s->mutex);
}

/* Takes until an answer to a wish came. */
static struct oct_view_answer wait_answer(struct oct_view_control *c)
{
    struct oct_view_daemon daemon;
    struct oct_view_answer reply = {0};
    for (int i = 0; i < TEST_PATIENCE_MS / 10 && reply.wish == OCT_WISH_NONE; i++) {
        oct_view_control_take(c, &daemon, &reply);
        pause_ms(10);
    }
    return reply;
}

static bool wait_reachable(struct oct_view_control *c, bool reachable)
{
    struct oct_view_daemon daemon = {.reachable = !reachable};
    struct oct_view_answer reply;
    for (int i = 0; i < TEST_PATIENCE_MS / 10 && daemon.reachable != reachable; i++) {
        oct_view_control_take(c, &daemon, &reply);
        pause_ms(10);
    }
    return daemon.reachable == reachable;
}

TEST_WITH(a_wish_is_sent_once_and_its_answer_comes_back, open_server, close_server)
{
    struct server *s = *state;
    struct oct_view_control *c;
    struct oct_view_answer reply;
    assert_int_equal(oct_view_control_create(&c, s->endpoint, NULL, NULL, NULL, NULL), OCT_OK);
    assert_true(oct_view_control_wait(c, TEST_PATIENCE_NS));
    assert_true(oct_view_control_ask(c, OCT_WISH_RECORD, ""));
    reply = wait_answer(c);
    assert_true(reply.wish == OCT_WISH_RECORD && reply.ok);
    assert_string_equal(s->last, "{\"cmd\":\"record\",\"action\":\"start\"}");
    say(s, STATUS, 0, "{\"ok\":false,\"error\":\"the folder\\nis gone\"}", 1);
    assert_true(oct_view_control_ask(c, OCT_WISH_PSEUDONYM, "P-\"1\""));
    reply = wait_answer(c);
    assert_true(reply.wish == OCT_WISH_PSEUDONYM && !reply.ok);
    assert_string_equal(reply.text, "the folder?is gone");
    assert_string_equal(s->last,
                        "{\"cmd\":\"set\",\"key\":\"record.pseudonym\",\"value\":\"P-\\\"1\\\"\"}");
    oct_view_control_destroy(c);
}

TEST_WITH(every_wish_sets_its_own_key, open_server, close_server)
{
    struct server *s = *state;
    struct oct_view_control *c;
    static const struct {
        enum oct_view_wish wish;
        const char *text, *request;
    } cases[] = {
        {OCT_WISH_STOP, "", "{\"cmd\":\"record\",\"action\":\"stop\"}"},
        {OCT_WISH_EYE, "OS", "{\"cmd\":\"set\",\"key\":\"record.eye\",\"value\":\"OS\"}"},
        {OCT_WISH_PROJECTION, "slab",
         "{\"cmd\":\"set\",\"key\":\"analysis.enface_projection\",\"value\":\"slab\"}"},
        {OCT_WISH_SLAB_FIRST, "0.4100",
         "{\"cmd\":\"set\",\"key\":\"analysis.enface_slab_first\",\"value\":\"0.4100\"}"},
        {OCT_WISH_ENABLE, "cells.enabled",
         "{\"cmd\":\"set\",\"key\":\"cells.enabled\",\"value\":\"yes\"}"},
        {OCT_WISH_SCAN, "A \"star\"", "{\"cmd\":\"scan\",\"to\":\"A \\\"star\\\"\"}"},
        {OCT_WISH_SCAN, "", "{\"cmd\":\"scan\",\"to\":\"\"}"},
        {OCT_WISH_SCAN_KEYS, "{\"pattern\":\"line\",\"angle_deg\":-3.25}",
         "{\"cmd\":\"scan\",\"set\":{\"pattern\":\"line\",\"angle_deg\":-3.25}}"},
        {OCT_WISH_SLAB_LAST, "0.6100",
         "{\"cmd\":\"set\",\"key\":\"analysis.enface_slab_last\",\"value\":\"0.6100\"}"},
    };
    assert_int_equal(oct_view_control_create(&c, s->endpoint, NULL, NULL, NULL, NULL), OCT_OK);
    assert_true(oct_view_control_wait(c, TEST_PATIENCE_NS));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(oct_view_control_ask(c, cases[i].wish, cases[i].text));
        struct oct_view_answer reply = wait_answer(c);
        assert_true(reply.wish == cases[i].wish && reply.ok);
        assert_string_equal(reply.text, cases[i].text);
        assert_string_equal(s->last, cases[i].request);
    }
    oct_view_control_destroy(c);
}

/* A status as octd gives it after it granted a recording. */
#define AFTER(pending, active, error)                                                              \
    "{\"ok\":true,\"state\":\"running\",\"pending\":" pending ",\"last_error\":\"" error           \
    "\",\"record\":{\"active\":" active "}}"

TEST_WITH(a_recording_is_answered_when_it_has_begun_or_failed, open_server, close_server)
{
    struct server *s = *state;
    struct oct_view_control *c;
    struct oct_view_daemon daemon;
    struct oct_view_answer reply;
    static const char granted[] = "{\"ok\":true,\"pending\":true}";
    static const char *const after[2] = {AFTER("false", "true", ""),
                                         AFTER("false", "false", "the folder is full")};
    assert_int_equal(oct_view_control_create(&c, s->endpoint, NULL, NULL, NULL, NULL), OCT_OK);
    for (int failed = 0; failed < 2; failed++) {
        say(s, AFTER("true", "false", ""), 0, granted, 1);
        assert_true(oct_view_control_ask(c, OCT_WISH_RECORD, ""));
        pause_ms(400);
        oct_view_control_take(c, &daemon, &reply);
        assert_int_equal(reply.wish, OCT_WISH_NONE);
        assert_false(oct_view_control_ask(c, OCT_WISH_RECORD, ""));
        say(s, after[failed], 0, granted, 1);
        for (int i = 0; i < TEST_PATIENCE_MS / 10 && reply.wish == OCT_WISH_NONE; i++) {
            pause_ms(5);
            oct_view_control_take(c, &daemon, &reply);
        }
        assert_true(reply.wish == OCT_WISH_RECORD && reply.ok == !failed);
        assert_string_equal(reply.text, failed ? "the folder is full" : "");
        assert_true(daemon.record.active == !failed);
    }
    oct_view_control_destroy(c);
}

/* octd grants a change before it has built it, and goes on with the scan of before where it cannot;
 * then it says why. */
#define SCANS(pending, refused)                                                                    \
    "{\"ok\":true,\"state\":\"running\",\"pending\":" pending                                      \
    ",\"scan\":{\"number\":2,\"choice\":\"Star\",\"refused\":\"" refused "\"}}"

TEST_WITH(a_scan_is_answered_when_it_runs_or_cannot, open_server, close_server)
{
    struct server *s = *state;
    struct oct_view_control *c;
    static const enum oct_view_wish wishes[] = {OCT_WISH_SCAN, OCT_WISH_SCAN_KEYS};
    assert_int_equal(oct_view_control_create(&c, s->endpoint, NULL, NULL, NULL, NULL), OCT_OK);
    for (int i = 0; i < 4; i++) {
        say(s, SCANS("true", ""), 0, "{\"ok\":true,\"pending\":true}", 1);
        assert_true(oct_view_control_ask(c, wishes[i % 2], "{}"));
        pause_ms(200);
        say(s, i < 2 ? SCANS("false", "") : SCANS("false", "no file"), 0, NULL, 1);
        struct oct_view_answer reply = wait_answer(c);
        assert_true(reply.wish == wishes[i % 2] && reply.ok == (i < 2));
        assert_string_equal(reply.text, i < 2 ? "{}" : "no file");
    }
    oct_view_control_destroy(c);
}

TEST_WITH(a_silent_server_is_told_and_found_again, open_server, close_server)
{
    struct server *s = *state;
    struct oct_view_control *c;
    assert_int_equal(oct_view_control_create(&c, s->endpoint, NULL, NULL, NULL, NULL), OCT_OK);
    assert_true(wait_reachable(c, true));
    say(s, NULL, 0, NULL, 1);
    assert_true(oct_view_control_ask(c, OCT_WISH_STOP, ""));
    struct oct_view_answer reply = wait_answer(c);
    assert_true(reply.wish == OCT_WISH_STOP && !reply.ok);
    assert_string_equal(reply.text, "no answer from octd");
    assert_true(wait_reachable(c, false));
    say(s, STATUS, 0, "{\"ok\":true}", 1);
    assert_true(wait_reachable(c, true));
    stop_server(s); /* gone, and back at the same place */
    assert_true(wait_reachable(c, false));
    start_server(s);
    assert_true(wait_reachable(c, true));
    /* It ends at once, also while it waits for an answer. */
    say(s, NULL, 0, NULL, 1);
    pause_ms(700);
    uint64_t start_ns = oct_clock_ns();
    oct_view_control_destroy(c);
    assert_true(oct_clock_ns() - start_ns < OCT_NS_PER_S); /* of the two that it would wait */
}

TEST_WITH(hostile_answers_are_survived, open_server, close_server)
{
    struct server *s = *state;
    struct oct_view_control *c;
    const size_t big = 900000;
    char *huge = calloc(1, big + 1);
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "null",
                                      "\xff\xfe\x01",
                                      "{\"ok\":true}",
                                      "{\"ok\":true,\"state\":{\"a\":[]}}"};
    assert_non_null(huge);
    memset(huge, '[', big);
    assert_int_equal(oct_view_control_create(&c, s->endpoint, NULL, NULL, NULL, NULL), OCT_OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_true(wait_reachable(c, true));
        say(s, bad[i], 0, bad[i], 1 + (unsigned)i % 3);
        oct_view_control_ask(c, OCT_WISH_EYE, "OS"); /* makes it ask at once */
        assert_true(wait_reachable(c, false));
        say(s, STATUS, 0, "{\"ok\":true}", 1);
        oct_view_control_ask(c, OCT_WISH_EYE, "OS");
    }
    assert_true(wait_reachable(c, true));
    say(s, huge, big, huge, 1);
    oct_view_control_ask(c, OCT_WISH_EYE, "OS");
    assert_true(wait_reachable(c, false));
    say(s, STATUS, 0, "{\"ok\":true}", 500); /* far too many parts */
    assert_true(wait_reachable(c, true));
    oct_view_control_destroy(c);
    free(huge);
}

TEST(an_endpoint_that_is_none_is_refused)
{
    struct oct_view_control *c;
    must_fail(oct_view_control_create(&c, "nonsense", NULL, NULL, NULL, &failure), OCT_E_CONFIG,
              "nonsense");
    assert_null(c);
    oct_view_control_destroy(NULL);
}
