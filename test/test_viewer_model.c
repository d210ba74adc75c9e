/* What the viewer makes of pictures and of the daemon's words, without zmq and SDL. */
#include "test/tap.h"
#include "test/viewer_scene.h"
#include "viewer/clock.h"
#include "viewer/model.h"
#include "viewer/settings.h"
#include "viewer/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define S OCT_NS_PER_S
#define MS OCT_NS_PER_MS

/* ---- keys ---- */

static void every_action_has_a_key_and_no_key_has_two(void **state)
{
    (void)state;
    bool bound[OCT_VIEW_N_ACTIONS] = {false};
    char keys[4096] = " ", help[128], word[64], *rest;

    for (size_t i = 0; i < oct_view_n_keys; i++) {
        bound[oct_view_keys[i].action] = true;
        char row[64];
        snprintf(row, sizeof(row), "%s", oct_view_keys[i].keys);
        for (char *key = strtok_r(row, " ", &rest); key; key = strtok_r(NULL, " ", &rest)) {
            snprintf(word, sizeof(word), " %s ", key);
            assert_null(strstr(keys, word));
            strcat(keys, word);
        }
    }
    for (int action = OCT_VIEW_NOTHING + 1; action < OCT_VIEW_N_ACTIONS; action++)
        assert_true(bound[action]);
    assert_true(oct_view_key_help(2, help, sizeof(help)));
    assert_string_equal(help, ", .");
    assert_false(oct_view_key_help(3, help, sizeof(help)));
}

static void the_operator_profile_leaves_recording_and_contrast(void **state)
{
    (void)state;
    struct oct_view_model model;

    oct_view_model_init(&model, "x", true);
    model.has_control = true;
    oct_view_model_apply(&model, OCT_VIEW_LOCK, 1);
    assert_true(model.settings.operators);
    oct_view_model_apply(&model, OCT_VIEW_FREEZE, 1);
    oct_view_model_apply(&model, OCT_VIEW_LAYOUT, 1);
    oct_view_model_apply(&model, OCT_VIEW_ZOOM_IN, 3);
    oct_view_model_apply(&model, OCT_VIEW_MEASURE, 1);
    assert_false(model.frozen || model.measuring);
    assert_int_equal(model.settings.arrangement, OCT_VIEW_ALONE);
    assert_true(model.lens.zoom == 1);
    oct_view_model_apply(&model, OCT_VIEW_LEVEL_UP, 5);
    assert_true(model.contrast.lo == 5);
    oct_view_model_apply(&model, OCT_VIEW_RECORD, 1);
    assert_int_equal(model.wish, OCT_VIEW_WISH_RECORD);
    oct_view_model_apply(&model, OCT_VIEW_LOCK, 1);
    oct_view_model_apply(&model, OCT_VIEW_FREEZE, 1);
    assert_true(model.frozen);
    oct_view_model_finish(&model);
}

/* ---- contrast ---- */

static double lightness(uint32_t argb)
{
    static const double weight[] = {0.2126, 0.7152, 0.0722};
    double y = 0;

    for (int i = 0; i < 3; i++) {
        double v = (argb >> (16 - 8 * i) & 255) / 255.0;
        y += weight[i] * (v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4));
    }
    return y > 0.008856 ? 116 * cbrt(y) - 16 : 903.3 * y;
}

static void the_colour_map_rises_evenly_in_lightness(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 256; i++) {
        double l = lightness(oct_view_palette_argb(OCT_VIEW_UNIFORM, (uint8_t)i));
        assert_true(fabs(l - i / 2.55) < 1.0);
        assert_int_equal(oct_view_palette_argb(OCT_VIEW_INVERTED, (uint8_t)i),
                         0xff000000u | (255 - i) * 0x010101u);
    }
}

static void gamma_bends_the_middle_and_leaves_the_ends(void **state)
{
    (void)state;
    struct oct_view_contrast c;
    uint32_t argb[256];

    oct_view_contrast_init(&c, true);
    oct_view_contrast_set_gamma(&c, 2);
    oct_view_contrast_colours(&c, argb);
    assert_int_equal(argb[0] & 255, 0);
    assert_int_equal(argb[255] & 255, 255);
    assert_int_equal(argb[128] & 255, 64);
    oct_view_contrast_set_gamma(&c, 1e9);
    assert_true(c.gamma == OCT_VIEW_MOST_GAMMA);
    oct_view_contrast_set_gamma(&c, NAN);
    assert_true(c.gamma == 1);
}

static void limits_move_alone_and_never_cross(void **state)
{
    (void)state;
    struct oct_view_contrast c;

    oct_view_contrast_init(&c, true);
    oct_view_contrast_publish(&c, 10, 70);
    oct_view_contrast_move_lo(&c, 5);
    assert_true(c.lo == 15 && c.hi == 70 && c.range == OCT_VIEW_MANUAL);
    oct_view_contrast_move_hi(&c, -500);
    assert_true(c.lo == 15 && c.hi == 16);
    oct_view_contrast_move_lo(&c, 500);
    assert_true(c.lo == 15);
    oct_view_contrast_move_lo(&c, NAN);
    oct_view_contrast_set_range(&c, OCT_VIEW_PUBLISHED);
    assert_true(c.lo == 10 && c.hi == 70);
}

static void automatic_contrast_finds_the_percentiles(void **state)
{
    (void)state;
    struct oct_view_model model;
    struct oct_view_picture picture = oct_scene_layered(10, 1);

    /* 1 of 100 depths is at 255 (70 dB), the rest at 10 (12.35 dB). */
    oct_view_model_init(&model, "x", true);
    oct_view_model_offer(&model, &picture);
    oct_view_model_apply(&model, OCT_VIEW_AUTO_CONTRAST, 1);
    assert_int_equal(model.contrast.range, OCT_VIEW_AUTO);
    assert_true(fabs(model.contrast.lo - (10 + 10 / 255.0 * 60)) < 0.01);
    assert_true(fabs(model.contrast.hi - 70) < 0.01);
    oct_view_model_apply(&model, OCT_VIEW_AUTO_CONTRAST, 1);
    assert_int_equal(model.contrast.range, OCT_VIEW_MANUAL);
    assert_true(fabs(model.contrast.hi - 70) < 0.01);
    oct_view_picture_finish(&picture);
    oct_view_model_finish(&model);
}

/* ---- zoom and lengths ---- */

static void zooming_keeps_the_place_under_the_pointer(void **state)
{
    (void)state;
    struct oct_view_lens lens;
    const struct oct_view_rect area = {10, 20, 400, 300};

    oct_view_lens_init(&lens);
    struct oct_view_rectf before = oct_view_lens_place(&lens, area, 4.0 / 3, false);
    assert_true(before.x == 10 && before.w == 400 && before.h == 300);
    double x = before.x + 0.3 * before.w, y = before.y + 0.6 * before.h;
    oct_view_lens_zoom(&lens, 4, 0.3, 0.6);
    struct oct_view_rectf after = oct_view_lens_place(&lens, area, 4.0 / 3, false);
    assert_true(after.w == 1600 && after.h == 1200);
    assert_true(fabs(after.x + 0.3 * after.w - x) < 1e-6);
    assert_true(fabs(after.y + 0.6 * after.h - y) < 1e-6);
    oct_view_lens_pan(&lens, 100, -100);
    after = oct_view_lens_place(&lens, area, 4.0 / 3, false);
    assert_true(fabs(after.x + after.w - 410) < 1e-6); /* its edge, not beyond */
    assert_true(fabs(after.y - 20) < 1e-6);
    oct_view_lens_zoom(&lens, 1e9, 0.5, 0.5);
    assert_true(lens.zoom == OCT_VIEW_MOST_ZOOM);
    oct_view_lens_zoom(&lens, 1e-9, 0.5, 0.5);
    assert_true(lens.zoom == 1 && lens.x == 0.5 && lens.y == 0.5);
}

static void lengths_are_micrometres_where_spacings_are_known(void **state)
{
    (void)state;
    const struct oct_view_scale full = {2.5, 1.25}, deep = {NAN, 1.25}, none = {NAN, NAN};
    const struct oct_view_point a = {10, 20}, b = {40, 100}, below = {10, 100};
    char text[96];

    assert_true(fabs(oct_view_distance_um(a, b, full) - hypot(75, 100)) < 1e-9);
    assert_true(isnan(oct_view_distance_um(a, b, deep)));
    assert_true(oct_view_distance_um(a, below, deep) == 100);
    oct_view_distance_text(a, b, full, text, sizeof(text));
    assert_string_equal(text, "125.0 \u00b5m (across 75.0, deep 100.0)");
    oct_view_distance_text(a, b, none, text, sizeof(text));
    assert_string_equal(text, "across 30.0 A-lines, deep 80.0 pixels");
    assert_true(oct_view_proportion(240, 2.5, 600, 1.0) == 1);
    assert_true(oct_view_proportion(240, NAN, 600, 1.0) == 0.4);
    assert_true(oct_view_proportion(240, 2.5, 600, NAN) == 0.4);
    assert_true(oct_view_scale_bar_um(199) == 100);
    assert_true(oct_view_scale_bar_um(200) == 200);
    assert_true(oct_view_scale_bar_um(0.6) == 0.5);
    assert_true(oct_view_scale_bar_um(NAN) == 0 && oct_view_scale_bar_um(0) == 0);
    oct_view_length_text(2000, text, sizeof(text));
    assert_string_equal(text, "2 mm");
}

/* ---- ten seconds ---- */

static void ten_seconds_are_kept_in_bounded_memory(void **state)
{
    (void)state;
    struct oct_view_history history = {.budget_bytes = 50 * 120 * 100}; /* 50 pictures */
    struct oct_view_picture picture = oct_scene_layered(10, 1);

    for (uint64_t i = 0; i < 3000; i++) { /* 30 s of 100 a second */
        picture.header.frame_num = i;
        picture.arrival_ns = S + i * 10 * MS;
        oct_view_history_add(&history, &picture);
    }
    assert_int_equal(history.n_slots, 50);
    unsigned n = oct_view_history_count(&history);
    assert_true(n >= 49 && n <= 50);
    const struct oct_view_picture *newest = oct_view_history_at(&history, 0);
    const struct oct_view_picture *oldest = oct_view_history_at(&history, n - 1);
    assert_true(newest->header.frame_num >= 2980);
    double span_s = (double)(newest->arrival_ns - oldest->arrival_ns) / 1e9;
    assert_true(span_s > 9.5 && span_s <= 10);
    assert_null(oct_view_history_at(&history, n));
    /* Slow pictures are all kept, those older than ten seconds are not offered. */
    for (uint64_t i = 0; i < 20; i++) {
        picture.arrival_ns = 100 * S + i * S;
        oct_view_history_add(&history, &picture);
    }
    assert_int_equal(oct_view_history_count(&history), 11);
    /* Another size empties it. */
    picture.header.n_lines = 60;
    oct_view_history_add(&history, &picture);
    assert_int_equal(oct_view_history_count(&history), 1);
    /* A picture larger than all of the memory is not kept, and does no harm. */
    history.budget_bytes = 100;
    picture.header.n_lines = 50;
    oct_view_history_add(&history, &picture);
    assert_int_equal(oct_view_history_count(&history), 0);
    oct_view_history_finish(&history);
    oct_view_picture_finish(&picture);
}

static void frozen_it_steps_through_what_was_kept(void **state)
{
    (void)state;
    struct oct_view_archive *archive = oct_view_archive_create(1 << 20, true);
    struct oct_view_picture picture = oct_scene_layered(10, 1);
    struct oct_view_model model;

    oct_view_model_init(&model, "x", true);
    oct_view_model_attach(&model, archive);
    for (uint64_t i = 0; i < 40; i++) {
        struct oct_view_picture next = oct_scene_layered(10, 1);
        next.header.frame_num = i;
        next.arrival_ns = S + i * 200 * MS;
        oct_view_archive_add(archive, &next);
        if (i == 20)
            oct_view_model_apply(&model, OCT_VIEW_FREEZE, 1);
        oct_view_model_offer(&model, &next);
        oct_view_picture_finish(&next);
    }
    assert_int_equal(model.shown.header.frame_num, 19);
    oct_view_model_apply(&model, OCT_VIEW_OLDER, 5);
    assert_int_equal(model.shown.header.frame_num, 15); /* kept: 0 .. 20 */
    oct_view_model_apply(&model, OCT_VIEW_OLDER, 1000);
    assert_int_equal(model.shown.header.frame_num, 0);
    oct_view_model_apply(&model, OCT_VIEW_NEWER, 1);
    assert_int_equal(model.shown.header.frame_num, 1);
    oct_view_model_apply(&model, OCT_VIEW_FREEZE, 1);
    assert_int_equal(model.shown.header.frame_num, 39); /* the newest, at once */
    oct_view_model_apply(&model, OCT_VIEW_OLDER, 1);
    assert_int_equal(model.shown.header.frame_num, 39); /* not while live */
    oct_view_picture_finish(&picture);
    oct_view_model_finish(&model);
    oct_view_archive_destroy(archive);
}

/* ---- en face ---- */

static void en_face_is_mean_maximum_and_slab_row_by_row(void **state)
{
    (void)state;
    struct oct_view_enface enface = {0}, copy = {0};
    struct oct_view_picture picture = oct_scene_layered(30, 4);
    double step = 60 / 255.0, lo, hi;

    picture.header.bscan = 7;
    oct_view_enface_add(&enface, &picture, 20, (struct oct_view_slab){0.28, 0.36});
    assert_int_equal(enface.n_rows, 20);
    assert_int_equal(enface.n_columns, 120);
    assert_int_equal(enface.newest_row, 7);
    double mean = 10 + (4 * 255 + 96 * 10) / 100.0 * step;
    double slab = 10 + (4 * 255 + 4 * 10) / 8.0 * step; /* depths 28 .. 35 */
    assert_true(fabs((double)oct_view_enface_row(&enface, OCT_VIEW_MEAN, 7)[60] - mean) < 1e-3);
    assert_true(fabs((double)oct_view_enface_row(&enface, OCT_VIEW_MAX, 7)[60] - 70) < 1e-3);
    assert_true(fabs((double)oct_view_enface_row(&enface, OCT_VIEW_SLAB, 7)[60] - slab) < 1e-3);
    assert_true(isnan(oct_view_enface_row(&enface, OCT_VIEW_MEAN, 8)[60]));
    oct_view_enface_copy(&copy, &enface);
    assert_true(oct_view_enface_row(&copy, OCT_VIEW_MEAN, 7)[60] ==
                oct_view_enface_row(&enface, OCT_VIEW_MEAN, 7)[60]);
    assert_true(oct_view_enface_limits(&copy, OCT_VIEW_MEAN, &lo, &hi));
    assert_true(lo <= mean + 1e-3 && hi > lo);
    assert_int_equal(copy.row_serial[8], 0);
    oct_view_enface_add_slab(&enface, &picture, (struct oct_view_slab){0, 0.1});
    assert_true(fabs((double)oct_view_enface_row(&enface, OCT_VIEW_SLAB, 7)[60] - 10 - 10 * step) <
                1e-3);
    oct_view_enface_copy(&copy, &enface);
    assert_true(oct_view_enface_row(&copy, OCT_VIEW_SLAB, 7)[60] ==
                oct_view_enface_row(&enface, OCT_VIEW_SLAB, 7)[60]);
    oct_view_enface_finish(&enface);
    oct_view_enface_finish(&copy);
    oct_view_picture_finish(&picture);
}

static void en_face_of_hostile_numbers_stays_small(void **state)
{
    (void)state;
    struct oct_view_enface enface = {0};
    struct oct_view_picture picture = oct_scene_layered(30, 4);
    double lo, hi;

    assert_false(oct_view_enface_limits(&enface, OCT_VIEW_MEAN, &lo, &hi));
    picture.header.bscan = UINT32_MAX;
    oct_view_enface_add(&enface, &picture, 0, (struct oct_view_slab){0, 1});
    assert_true(enface.n_rows <= OCT_VIEW_ENFACE_MOST);
    picture.header.bscan = 5000000;
    oct_view_enface_add(&enface, &picture, 0, (struct oct_view_slab){NAN, NAN});
    assert_true(enface.n_rows <= OCT_VIEW_ENFACE_MOST);
    picture.header.bscan = 12;
    oct_view_enface_add(&enface, &picture, 4, (struct oct_view_slab){2, -1});
    assert_true(enface.n_rows <= OCT_VIEW_ENFACE_MOST);
    oct_view_enface_finish(&enface);
    oct_view_picture_finish(&picture);
}

/* ---- quality ---- */

static struct oct_view_picture at_time(unsigned layer, unsigned thick, uint64_t number)
{
    struct oct_view_picture picture = oct_scene_layered(layer, thick);

    picture.header.frame_num = number;
    picture.arrival_ns = 10 * S + number * 20 * MS;
    return picture;
}

static void blinks_and_motion_are_marked(void **state)
{
    (void)state;
    struct oct_view_quality *q = calloc(1, sizeof(*q));

    assert_non_null(q);
    for (uint64_t i = 0; i < 100; i++) {
        /* A layer that drifts slowly; at 50 it jumps by 6 % of the depth; at 70 .. 74 the eye is
         * closed. */
        unsigned layer = 30 + (unsigned)i / 50 * 6;
        struct oct_view_picture p = at_time(layer, 4, i);
        if (i >= 70 && i < 75)
            memset(p.pixels, 10, 120 * 100);
        oct_view_quality_add(q, &p, true);
        oct_view_picture_finish(&p);
        bool blink = q->marks & OCT_VIEW_MARK_BLINK, motion = q->marks & OCT_VIEW_MARK_MOTION;
        assert_int_equal(motion, i == 50);
        assert_int_equal(blink, i >= 70 && i < 75);
        if (i == 60) /* 255 over 10 of 60 dB */
            assert_true(fabs(q->snr_db - 245 / 255.0 * 60) < 1);
    }
    assert_int_equal(q->n_blinks, 1);
    assert_int_equal(q->n_motions, 1);
    const struct oct_view_moment *m = oct_view_quality_moment(q, 500 + 50);
    assert_non_null(m);
    assert_int_equal(m->marks, OCT_VIEW_MARK_MOTION);
    assert_null(oct_view_quality_moment(q, 500 + 100));
    free(q);
}

static void a_new_volume_is_no_motion(void **state)
{
    (void)state;
    struct oct_view_quality *q = calloc(1, sizeof(*q));

    assert_non_null(q);
    for (uint64_t i = 0; i < 2; i++) {
        struct oct_view_picture p = at_time(30 + (unsigned)i * 10, 4, i);
        p.header.volume = i;
        oct_view_quality_add(q, &p, true);
        oct_view_picture_finish(&p);
    }
    assert_int_equal(q->n_motions, 0);
    free(q);
}

/* ---- the daemon's words ---- */

static const char status_text[] =
    "{\"ok\":true,\"state\":\"recording\",\"last_error\":\"\",\"lines_missing\":5,"
    "\"bscans_dropped\":{\"ring_full\":2,\"engine\":1},\"bscans_done\":100,"
    "\"volumes_written\":3,\"volumes_incomplete\":0,\"bytes_written\":1e9,\"bscans_unsaved\":0,"
    "\"record\":{\"active\":true,\"stopping\":false,\"waiting_for_volume\":false,"
    "\"file\":\"/a/b/c.h5\",\"bscans_in_file\":17,\"bytes_per_bscan\":1e6,\"elapsed_s\":75.2,"
    "\"eye\":\"OD\",\"pseudonym\":\"P-1\"},\"latency_us\":{\"p50\":4000,\"p99\":9000,\"max\":1},"
    "\"geometry\":{\"bscans\":240},\"scan\":{\"axial_um\":1.25,\"lateral_um\":2.5,"
    "\"slow_um\":null,\"line_rate_hz\":50000},\"pixels\":{\"log\":true,\"sample\":\"u8\","
    "\"saturation\":4095},\"disk_bytes_free\":6e9}";

static void a_status_is_read_and_a_hostile_one_survived(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "null",
                                      "{\"ok\":false}",
                                      "{\"ok\":true}",
                                      "{\"ok\":true,\"state\":5}",
                                      "\xff\xfe",
                                      "{\"ok\":\"yes\",\"state\":\"idle\"}"};
    static const char *const odd[] = {
        "{\"ok\":true,\"state\":\"idle\",\"record\":[],\"scan\":5,\"pixels\":\"x\","
        "\"disk_bytes_free\":-1,\"bscans_dropped\":{\"a\":\"b\",\"c\":-5}}",
        "{\"ok\":true,\"state\":\"idle\\u0007\",\"scan\":{\"axial_um\":-1,\"lateral_um\":1e300,"
        "\"line_rate_hz\":1e999},\"geometry\":{\"bscans\":1e30},\"record\":{\"file\":5,"
        "\"elapsed_s\":-1,\"eye\":\"a very long eye indeed\"}}"};
    struct oct_view_daemon d = {0};

    assert_int_equal(oct_view_daemon_read(&d, status_text, strlen(status_text), NULL), OCT_OK);
    assert_true(d.known && d.record.active && d.log && d.pixels_told);
    assert_string_equal(d.record.file, "c.h5");
    assert_string_equal(d.record.eye, "OD");
    assert_true(d.bscans_dropped == 3 && d.axial_um == 1.25 && isnan(d.slow_um));
    assert_true(oct_view_daemon_disk_s(&d, 100) == 60);
    assert_true(isnan(oct_view_daemon_disk_s(&d, 0)));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct oct_view_daemon before = d;
        assert_int_equal(oct_view_daemon_read(&d, bad[i], strlen(bad[i]), NULL), OCT_E_FORMAT);
        assert_memory_equal(&before, &d, sizeof(d));
    }
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        assert_int_equal(oct_view_daemon_read(&d, odd[i], strlen(odd[i]), NULL), OCT_OK);
        assert_true(isnan(d.axial_um) && isnan(d.lateral_um) && isnan(d.disk_bytes_free));
        assert_true(d.bscans_dropped == 0 && d.record.elapsed_s == 0);
        assert_true(strlen(d.record.eye) < sizeof(d.record.eye));
    }
}

static void hear(struct oct_view_model *model, const struct oct_view_daemon *daemon,
                 enum oct_view_wish wish, bool ok, const char *text)
{
    struct oct_view_answer answer = {.wish = wish, .ok = ok};

    snprintf(answer.text, sizeof(answer.text), "%s", text);
    oct_view_model_hear(model, daemon, &answer);
}

static void what_the_header_says_is_the_daemons_word(void **state)
{
    (void)state;
    struct oct_view_model model;
    struct oct_view_daemon d = {0};
    struct oct_view_phrase p;
    char text[OCT_VIEW_LABEL_BYTES];

    oct_view_model_init(&model, "x", true);
    oct_view_model_tick(&model, 10 * S);
    oct_view_recording(&model, &p);
    assert_non_null(strstr(p.text, "no control endpoint"));
    hear(&model, &d, OCT_VIEW_WISH_NONE, false, "");
    oct_view_recording(&model, &p);
    assert_non_null(strstr(p.text, "does not answer"));
    assert_int_equal(oct_view_daemon_read(&d, status_text, strlen(status_text), NULL), OCT_OK);
    d.reachable = true;
    d.record.active = false;
    d.answer_ns = 1;
    hear(&model, &d, OCT_VIEW_WISH_NONE, false, "");
    oct_view_recording(&model, &p);
    assert_string_equal(p.text, "not recording");
    oct_view_model_apply(&model, OCT_VIEW_RECORD, 1);
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_VIEW_WISH_RECORD);
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_VIEW_WISH_NONE);
    oct_view_recording(&model, &p); /* wished is not recorded */
    assert_string_equal(p.text, "asking octd to start recording");
    oct_view_model_apply(&model, OCT_VIEW_RECORD, 1);
    assert_int_equal(model.wish, OCT_VIEW_WISH_NONE); /* one at a time */
    hear(&model, &d, OCT_VIEW_WISH_RECORD, false, "no such folder");
    oct_view_recording(&model, &p);
    assert_string_equal(p.text, "NOT DONE: no such folder");
    assert_int_equal(p.tone, OCT_VIEW_BAD);
    d.record.active = true;
    d.answer_ns = 2;
    hear(&model, &d, OCT_VIEW_WISH_RECORD, true, "");
    oct_view_recording(&model, &p);
    assert_string_equal(p.text, "RECORDING 01:15  volume 1, 17 B-scans safe");
    d.record.volumes_written = 5;
    d.answer_ns = 3;
    hear(&model, &d, OCT_VIEW_WISH_NONE, false, "");
    oct_view_recording(&model, &p);
    assert_non_null(strstr(p.text, "volume 3"));
    oct_view_model_apply(&model, OCT_VIEW_RECORD, 1);
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_VIEW_WISH_STOP);
    d.record.active = false;
    d.answer_ns = 4;
    hear(&model, &d, OCT_VIEW_WISH_STOP, true, "");
    oct_view_recording(&model, &p);
    assert_string_equal(p.text, "SAVED 2 volumes, the last c.h5");
    d.reachable = false;
    hear(&model, &d, OCT_VIEW_WISH_NONE, false, "");
    oct_view_recording(&model, &p);
    assert_int_equal(p.tone, OCT_VIEW_BAD);
    oct_view_model_finish(&model);
}

static void eye_and_pseudonym_go_to_the_daemon(void **state)
{
    (void)state;
    struct oct_view_model model;
    struct oct_view_daemon d = {.known = true, .reachable = true};
    struct oct_view_phrase p;
    char text[OCT_VIEW_LABEL_BYTES];

    oct_view_model_init(&model, "x", true);
    hear(&model, &d, OCT_VIEW_WISH_NONE, false, "");
    oct_view_model_apply(&model, OCT_VIEW_EYE, 1);
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_VIEW_WISH_EYE);
    assert_string_equal(text, "OD");
    strcpy(d.record.eye, "OD");
    hear(&model, &d, OCT_VIEW_WISH_EYE, true, "OD");
    assert_string_equal(model.message, "octd confirms: eye OD");
    oct_view_model_apply(&model, OCT_VIEW_PSEUDONYM, 1);
    assert_true(model.typing);
    oct_view_model_type(&model, "P-\u00e4");
    oct_view_model_type(&model, "\n");
    oct_view_label(&model, &p);
    assert_string_equal(p.text, "pseudonym: P-\u00e4_");
    oct_view_model_rub_out(&model);
    oct_view_model_type(&model, "17");
    for (int i = 0; i < 500; i++)
        oct_view_model_type(&model, "");
    oct_view_model_end_typing(&model, true);
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_VIEW_WISH_PSEUDONYM);
    assert_string_equal(text, "P-17");
    for (int i = 0; i < 20; i++)
        oct_view_model_rub_out(&model);
    assert_string_equal(model.typed, "");
    oct_view_model_finish(&model);
}

/* ---- alarms ---- */

static const struct oct_view_alarm *find(const struct oct_view_model *model, const char *words)
{
    static struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    unsigned n = oct_view_alarms(model, alarms);

    for (unsigned i = 0; i < n; i++)
        if (strstr(alarms[i].what.text, words)) {
            assert_true(strlen(alarms[i].remedy.text) > 5);
            return &alarms[i];
        }
    return NULL;
}

static void alarms_say_what_is_wrong_and_go_again(void **state)
{
    (void)state;
    struct oct_view_model model;
    struct oct_view_tally tally = {0};
    struct oct_view_daemon d = {0};
    struct oct_view_picture picture = oct_scene_layered(10, 1);

    oct_view_model_init(&model, "x", true);
    assert_int_equal(oct_view_daemon_read(&d, status_text, strlen(status_text), NULL), OCT_OK);
    d.reachable = true;
    d.answer_ns = 1;
    d.disk_bytes_free = 1e12;
    for (uint64_t i = 0; i < 100; i++) {
        picture.header.frame_num = i;
        oct_view_tally_add(&tally, &picture.header, 10 * S + i * 10 * MS);
    }
    oct_view_model_tick(&model, 11 * S);
    oct_view_model_report(&model, &tally, true);
    hear(&model, &d, OCT_VIEW_WISH_NONE, false, "");
    assert_null(find(&model, "")); /* what was lost before we looked is no news */
    d.lines_missing += 3;
    d.bscans_dropped += 1;
    d.answer_ns = 2;
    hear(&model, &d, OCT_VIEW_WISH_NONE, false, "");
    assert_non_null(find(&model, "A-LINES MISSING: 8"));
    assert_non_null(find(&model, "B-SCANS DROPPED: 4"));
    d.disk_bytes_free = 30e6 * 100;
    d.record.bscans_unsaved = 9;
    strcpy(d.last_error, "No space left on device");
    d.answer_ns = 3;
    hear(&model, &d, OCT_VIEW_WISH_NONE, false, "");
    assert_int_equal(find(&model, "DISK LOW: room for 00:30")->what.tone, OCT_VIEW_BAD);
    assert_non_null(strstr(find(&model, "NOT RECORDED: 9")->remedy.text, "No space"));
    model.spectrum =
        (struct oct_view_spectrum){.n_saturated = 44, .limit = 4095, .arrival_ns = 11 * S};
    assert_non_null(find(&model, "CAMERA SATURATED: 44 samples of a B-scan at 4095"));
    oct_view_model_tick(&model, 40 * S); /* half a minute later */
    assert_null(find(&model, "MISSING"));
    assert_null(find(&model, "SATURATED"));
    assert_non_null(find(&model, "NO SIGNAL"));
    strcpy(d.state, "idle");
    hear(&model, &d, OCT_VIEW_WISH_NONE, false, "");
    d.answer_ns = 4;
    hear(&model, &d, OCT_VIEW_WISH_NONE, false, "");
    assert_non_null(find(&model, "octd is stopped"));
    d.reachable = false;
    hear(&model, &d, OCT_VIEW_WISH_NONE, false, "");
    oct_view_model_report(&model, &tally, false);
    assert_non_null(find(&model, "OCTD IS GONE"));
    oct_view_picture_finish(&picture);
    oct_view_model_finish(&model);
}

/* ---- settings ---- */

static void settings_come_back_and_wrong_ones_are_passed_over(void **state)
{
    (void)state;
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    char path[512];
    struct oct_view_model a, b;
    struct oct_error err = {0};

    snprintf(path, sizeof(path), "%s/new-%ld/folder/viewer.ini", folder, (long)getpid());
    oct_view_model_init(&a, "x", true);
    oct_view_model_init(&b, "x", true);
    assert_int_equal(oct_view_settings_load(&a, path, &err), OCT_OK); /* none yet */
    oct_view_model_apply(&a, OCT_VIEW_LAYOUT, 1);
    oct_view_model_apply(&a, OCT_VIEW_SLAB_THICKER, 5);
    oct_view_model_apply(&a, OCT_VIEW_PALETTE, 1);
    oct_view_model_apply(&a, OCT_VIEW_LEVEL_UP, 7);
    oct_view_model_apply(&a, OCT_VIEW_GAMMA_UP, 1);
    assert_int_equal(oct_view_settings_save(&a, path, &err), OCT_OK);
    assert_int_equal(oct_view_settings_save(&a, path, &err), OCT_OK);
    assert_int_equal(oct_view_settings_load(&b, path, &err), OCT_OK);
    assert_int_equal(b.settings.arrangement, OCT_VIEW_TWO);
    assert_int_equal(b.settings.projection, OCT_VIEW_SLAB);
    assert_true(fabs(b.settings.slab.last - a.settings.slab.last) < 1e-5);
    assert_int_equal(b.contrast.palette, OCT_VIEW_INVERTED);
    assert_true(b.contrast.range == OCT_VIEW_MANUAL && b.contrast.lo == 7 && b.contrast.hi == 67);
    assert_true(fabs(b.contrast.gamma - 1.1) < 1e-5);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("[view]\nlayout = seven\ngamma = nan\nblack = 9\nwhite = 3\nen_face = maximum\n"
          "slab_first = 0.9\nslab_last = 0.1\nunknown = 1\n",
          file);
    fclose(file);
    assert_int_equal(oct_view_settings_load(&b, path, &err), OCT_E_FORMAT);
    assert_int_equal(b.settings.arrangement, OCT_VIEW_TWO);
    assert_int_equal(b.settings.projection, OCT_VIEW_MAX);
    assert_true(b.contrast.hi > b.contrast.lo && b.settings.slab.last > b.settings.slab.first);
    remove(path);
    assert_int_equal(oct_view_settings_save(&a, "/dev/null/a/b.ini", &err), OCT_E_IO);
    oct_view_model_finish(&a);
    oct_view_model_finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_action_has_a_key_and_no_key_has_two),
        cmocka_unit_test(the_operator_profile_leaves_recording_and_contrast),
        cmocka_unit_test(the_colour_map_rises_evenly_in_lightness),
        cmocka_unit_test(gamma_bends_the_middle_and_leaves_the_ends),
        cmocka_unit_test(limits_move_alone_and_never_cross),
        cmocka_unit_test(automatic_contrast_finds_the_percentiles),
        cmocka_unit_test(zooming_keeps_the_place_under_the_pointer),
        cmocka_unit_test(lengths_are_micrometres_where_spacings_are_known),
        cmocka_unit_test(ten_seconds_are_kept_in_bounded_memory),
        cmocka_unit_test(frozen_it_steps_through_what_was_kept),
        cmocka_unit_test(en_face_is_mean_maximum_and_slab_row_by_row),
        cmocka_unit_test(en_face_of_hostile_numbers_stays_small),
        cmocka_unit_test(blinks_and_motion_are_marked),
        cmocka_unit_test(a_new_volume_is_no_motion),
        cmocka_unit_test(a_status_is_read_and_a_hostile_one_survived),
        cmocka_unit_test(what_the_header_says_is_the_daemons_word),
        cmocka_unit_test(eye_and_pseudonym_go_to_the_daemon),
        cmocka_unit_test(alarms_say_what_is_wrong_and_go_again),
        cmocka_unit_test(settings_come_back_and_wrong_ones_are_passed_over),
    };
    return cmocka_run_group_tests_name("viewer model", tests, NULL, NULL);
}
