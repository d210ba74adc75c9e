/* The viewer's subscription against a real publisher, good and hostile. */
#include "test/rig/tap.h"
#include "viewer/model/clock.h"
#include "viewer/model/enface.h"
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

#define IMAGE_JSON                                                                                 \
    "{\"frame_num\":%llu,\"acquisition_id\":\"t\",\"dtype\":\"%s\",\"dsize\":%zu,"                 \
    "\"dataset\":\"analysis/%s\",\"compression\":\"none\",\"shape\":[%s],\"time_ns\":5,"           \
    "\"missing_lines\":0,\"lo\":%s,\"hi\":60,\"volume\":2,\"bscan\":1%s}"

static void send_image(struct wire *w, const char *topic, uint64_t number, const char *dtype,
                       const char *shape, const char *more, const void *values, size_t n_bytes)
{
    char json[1024];

    snprintf(json, sizeof(json), IMAGE_JSON, (unsigned long long)number, dtype, n_bytes, topic,
             shape, "10", more);
    send_three(w, topic, json, strlen(json), values, n_bytes);
}

/* [3][4], each value the picture's number. */
static void send_enface(struct wire *w, uint64_t number)
{
    float values[12];

    for (int i = 0; i < 12; i++)
        values[i] = (float)number;
    send_image(w, "enface", number, "float", "\"3\",\"4\"", ",\"unit\":\"dB\",\"whole\":false",
               values, sizeof(values));
}

static const char quality_labels[] = ",\"labels\":[\"snr_db\",\"motion\",\"motions\"]";

static void send_quality(struct wire *w, uint64_t number, bool motion)
{
    const float row[] = {(float)number, motion, (float)number};
    send_image(w, "quality", number, "float", "\"3\"", quality_labels, row, sizeof(row));
}

static bool take(struct wire *w)
{
    return oct_subscriber_take(w->subscriber, &w->picture, &w->report);
}

#define LAST_OF_MEETING 999

/* Publishes until the subscriptions, of which that of the quality is the last, have reached the
 * publisher (PUB drops what nobody wants yet), then until all of that has arrived. */
static void meet(struct wire *w)
{
    struct oct_view_image row = {0};
    bool met = false;

    for (int i = 0;
         i < TEST_PATIENCE_MS / 10 && !oct_subscriber_wait(w->subscriber, 1, 10 * OCT_NS_PER_MS);
         i++)
        send_good(w, LAST_OF_MEETING - 1);
    assert_true(oct_subscriber_wait(w->subscriber, 1, 0));
    for (int i = 0; i < TEST_PATIENCE_MS / 10 && !met; i++) {
        send_quality(w, 0, false);
        pause_ms(10);
        met = oct_subscriber_take_image(w->subscriber, "quality", &row);
    }
    assert_true(met);
    send_good(w, LAST_OF_MEETING);
    for (int i = 0; i < TEST_PATIENCE_MS / 10 && w->picture.header.frame_num != LAST_OF_MEETING;
         i++) {
        take(w);
        pause_ms(10);
    }
    assert_int_equal(w->picture.header.frame_num, LAST_OF_MEETING);
    oct_subscriber_take_image(w->subscriber, "quality", &row);
    oct_view_image_finish(&row);
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
    w->archive = oct_view_archive_create(1 << 20);
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
        take(w);
        pause_ms(10);
    }
    assert_int_equal(w->report.tally.n_received + w->report.tally.n_bad, n_before + n_sent);
    assert_true(w->report.tally.n_received > n_before + 50);
    assert_true(oct_view_archive_count(w->archive) > 0);
}

/* ---- images of other topics ---- */

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

static void every_topic_has_its_own_newest_image(void **state)
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
    assert_true(take(w));
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
    assert_false(take(w));
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
    take(w);
    assert_int_equal(w->report.tally.n_bad, 0);
    assert_int_equal(w->report.tally.n_received, w->n_sent); /* B-scans alone are counted */
    oct_view_image_finish(&enface);
    oct_view_image_finish(&quality);
    oct_view_spectrum_finish(&spectrum);
}

/* Nobody takes an image meanwhile: the rows are on the timeline all the same, memory stays. */
static void a_flood_of_images_loses_no_row_of_the_quality(void **state)
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
    take(w);
    assert_int_equal(w->report.tally.n_bad, 0);
    oct_view_image_finish(&image);
    free(quality);
}

static void hostile_images_are_counted_and_survived(void **state)
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
        {"quality", "float", "\"2\",\"3\"", quality_labels, 24}, /* two rows */
        {"quality", "uint8", "\"3\"", quality_labels, 3},
        {"quality", "float", "\"3\"", quality_labels, 8},
        {"enfac", "float", "\"3\",\"4\"", "", 48}, /* never arrives */
        {"enface2", "float", "\"3\",\"4\"", "", 48},
        {"quality.", "float", "\"3\"", quality_labels, 12},
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
    take(w);
    assert_int_equal(w->report.tally.n_bad, n_bad);
    assert_int_equal(w->report.tally.n_received, w->n_sent);
    oct_view_image_finish(&image);
}

static void a_large_image_and_wild_numbers_are_taken(void **state)
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
        snprintf(json, sizeof(json), IMAGE_JSON, i + 10ull, "float", n_bytes, "enface",
                 "\"3000\",\"2500\"", limits[i], "");
        send_three(w, "enface", json, strlen(json), values, n_bytes);
        send_image(w, "quality", i, "float", "\"3\"", quality_labels, values + 7 * i, 12);
        assert_true(take_number(w, "enface", &image, i + 10));
        oct_view_enface_set(&enface, &image);
        assert_true(enface.n_rows == OCT_VIEW_ENFACE_MOST && enface.lo < enface.hi);
        assert_int_equal(enface.n_columns, OCT_VIEW_ENFACE_MOST);
    }
    assert_int_equal(((const uint32_t *)image.values)[n_bytes / 4 - 1], values[n_bytes / 4 - 1]);
    oct_view_archive_copy_quality(w->archive, quality);
    assert_true(isfinite(quality->snr_db) && isfinite(quality->sharpness));
    take(w);
    assert_int_equal(w->report.tally.n_bad, 0);
    oct_view_enface_finish(&enface);
    oct_view_image_finish(&image);
    free(values);
    free(quality);
}

/* ---- the rest ---- */

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
        cmocka_unit_test_setup_teardown(every_topic_has_its_own_newest_image, open_wire,
                                        close_wire),
        cmocka_unit_test_setup_teardown(a_flood_of_images_loses_no_row_of_the_quality, open_wire,
                                        close_wire),
        cmocka_unit_test_setup_teardown(hostile_images_are_counted_and_survived, open_wire,
                                        close_wire),
        cmocka_unit_test_setup_teardown(a_large_image_and_wild_numbers_are_taken, open_wire,
                                        close_wire),
        cmocka_unit_test_setup_teardown(it_connects_again_by_itself, open_wire, close_wire),
        cmocka_unit_test_setup_teardown(it_tells_of_news_once_until_they_are_taken, open_wire,
                                        close_wire),
        cmocka_unit_test(it_ends_at_once_also_with_nobody_there),
    };
    return cmocka_run_group_tests_name("viewer subscriber", tests, NULL, NULL);
}
