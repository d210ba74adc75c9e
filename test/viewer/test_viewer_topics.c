/* Images of other topics at the viewer's subscription, from a real publisher, good and hostile. */
#include "test/rig/tap.h"
#include "test/rig/viewer_wire.h"
#include "viewer/model/enface.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    take_picture(w);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_topic_has_its_own_newest_image, open_wire,
                                        close_wire),
        cmocka_unit_test_setup_teardown(a_flood_of_images_loses_no_row_of_the_quality, open_wire,
                                        close_wire),
        cmocka_unit_test_setup_teardown(hostile_images_are_counted_and_survived, open_wire,
                                        close_wire),
        cmocka_unit_test_setup_teardown(a_large_image_and_wild_numbers_are_taken, open_wire,
                                        close_wire),
    };
    return cmocka_run_group_tests_name("viewer topics", tests, NULL, NULL);
}
