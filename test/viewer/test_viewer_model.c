/* What the viewer makes of pictures and of keys: contrast, zoom, lengths, the last ten seconds,
 * calipers, the line rate. No zmq, no SDL. */
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "viewer/model/clock.h"
#include "viewer/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define S OCT_NS_PER_S
#define MS OCT_NS_PER_MS

/* ---- keys ---- */

static void every_action_has_a_key_and_no_key_has_two(void **state)
{
    bool bound[OCT_N_ACTIONS] = {false};
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
    for (int action = OCT_ACTION_NOTHING + 1; action < OCT_N_ACTIONS; action++)
        assert_true(bound[action]);
    size_t older = 0;
    while (oct_view_keys[older].action != OCT_ACTION_OLDER)
        older++;
    assert_true(oct_view_key_help(older, help, sizeof(help)));
    assert_string_equal(help, ", .");
    assert_false(oct_view_key_help(older + 1, help, sizeof(help)));
}

static void the_operator_profile_leaves_recording_and_contrast(void **state)
{
    struct oct_view_model model;

    oct_view_model_init(&model, "x", true);
    model.has_control = true;
    oct_view_model_apply(&model, OCT_ACTION_LOCK, 1);
    assert_true(model.settings.operators);
    oct_view_model_apply(&model, OCT_ACTION_FREEZE, 1);
    assert_true(model.frozen);
    oct_view_model_apply(&model, OCT_ACTION_FREEZE, 1);
    oct_view_model_apply(&model, OCT_ACTION_LAYOUT, 1);
    oct_view_model_apply(&model, OCT_ACTION_ZOOM_IN, 3);
    oct_view_model_apply(&model, OCT_ACTION_MEASURE, 1);
    oct_view_model_apply(&model, OCT_ACTION_SHARPEN, 1);
    assert_false(model.frozen || model.measuring || model.sharpening.waits);
    assert_int_equal(model.settings.arrangement, OCT_ARRANGEMENT_ALONE);
    assert_true(model.lens.zoom == 1);
    oct_view_model_apply(&model, OCT_ACTION_LEVEL_UP, 5);
    assert_true(model.contrast.lo == 5);
    oct_view_model_apply(&model, OCT_ACTION_RECORD, 1);
    assert_non_null(oct_view_wishes_find(&model.wishes, OCT_WISH_RECORD));
    oct_view_model_apply(&model, OCT_ACTION_LOCK, 1);
    oct_view_model_apply(&model, OCT_ACTION_FREEZE, 1);
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
    for (unsigned i = 0; i < 256; i++) {
        double l = lightness(oct_view_palette_argb(OCT_PALETTE_UNIFORM, (uint8_t)i));
        assert_true(fabs(l - i / 2.55) < 1.0);
        assert_int_equal(oct_view_palette_argb(OCT_PALETTE_INVERTED, (uint8_t)i),
                         0xff000000u | (255 - i) * 0x010101u);
    }
}

static void gamma_bends_the_middle_and_leaves_the_ends(void **state)
{
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
    struct oct_view_contrast c;

    oct_view_contrast_init(&c, true);
    oct_view_contrast_publish(&c, 10, 70);
    oct_view_contrast_move_lo(&c, 5);
    assert_true(c.lo == 15 && c.hi == 70 && c.range == OCT_CONTRAST_MANUAL);
    oct_view_contrast_move_hi(&c, -500);
    assert_true(c.lo == 15 && c.hi == 16);
    oct_view_contrast_move_lo(&c, 500);
    assert_true(c.lo == 15);
    oct_view_contrast_move_lo(&c, NAN);
    oct_view_contrast_set_range(&c, OCT_CONTRAST_PUBLISHED);
    assert_true(c.lo == 10 && c.hi == 70);
}

static void automatic_contrast_finds_the_percentiles(void **state)
{
    struct oct_view_model model;
    struct oct_view_picture picture = oct_scene_layered(10, 1);

    /* 1 of 100 depths is at 255 (70 dB), the rest at 10 (12.35 dB). */
    oct_view_model_init(&model, "x", true);
    oct_view_model_offer(&model, &picture);
    oct_view_model_apply(&model, OCT_ACTION_AUTO_CONTRAST, 1);
    assert_int_equal(model.contrast.range, OCT_CONTRAST_AUTO);
    assert_true(fabs(model.contrast.lo - (10 + 10 / 255.0 * 60)) < 0.01);
    assert_true(fabs(model.contrast.hi - 70) < 0.01);
    oct_view_model_apply(&model, OCT_ACTION_AUTO_CONTRAST, 1);
    assert_int_equal(model.contrast.range, OCT_CONTRAST_MANUAL);
    assert_true(fabs(model.contrast.hi - 70) < 0.01);
    oct_view_picture_finish(&picture);
    oct_view_model_finish(&model);
}

/* ---- zoom and lengths ---- */

static void zooming_keeps_the_place_under_the_pointer(void **state)
{
    struct oct_view_lens lens;
    const struct oct_view_rect area = {10, 20, 400, 300};

    oct_view_lens_init(&lens);
    struct oct_view_rectf before = oct_view_lens_place(&lens, area, 400, 300);
    assert_true(before.x == 10 && before.w == 400 && before.h == 300);
    double x = before.x + 0.3 * before.w, y = before.y + 0.6 * before.h;
    oct_view_lens_zoom(&lens, 4, 0.3, 0.6);
    struct oct_view_rectf after = oct_view_lens_place(&lens, area, 400, 300);
    assert_true(after.w == 1600 && after.h == 1200);
    assert_true(fabs(after.x + 0.3 * after.w - x) < 1e-6);
    assert_true(fabs(after.y + 0.6 * after.h - y) < 1e-6);
    oct_view_lens_pan(&lens, 100, -100);
    after = oct_view_lens_place(&lens, area, 400, 300);
    assert_true(fabs(after.x + after.w - 410) < 1e-6); /* its edge, not beyond */
    assert_true(fabs(after.y - 20) < 1e-6);
    oct_view_lens_zoom(&lens, 1e9, 0.5, 0.5);
    assert_true(lens.zoom == OCT_VIEW_MOST_ZOOM);
    oct_view_lens_zoom(&lens, 1e-9, 0.5, 0.5);
    assert_true(lens.zoom == 1 && lens.x == 0.5 && lens.y == 0.5);
}

static void lengths_are_micrometres_where_spacings_are_known(void **state)
{
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
    struct oct_view_archive *archive = oct_view_archive_create(1 << 20);
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
            oct_view_model_apply(&model, OCT_ACTION_FREEZE, 1);
        oct_view_model_offer(&model, &next);
        oct_view_picture_finish(&next);
    }
    assert_int_equal(model.shown.header.frame_num, 19);
    oct_view_model_apply(&model, OCT_ACTION_OLDER, 5);
    assert_int_equal(model.shown.header.frame_num, 14); /* kept: 0 .. 20 */
    oct_view_model_apply(&model, OCT_ACTION_OLDER, 1000);
    assert_int_equal(model.shown.header.frame_num, 0);
    oct_view_model_apply(&model, OCT_ACTION_NEWER, 1);
    assert_int_equal(model.shown.header.frame_num, 1);
    oct_view_model_apply(&model, OCT_ACTION_FREEZE, 1);
    assert_int_equal(model.shown.header.frame_num, 39); /* the newest, at once */
    oct_view_model_apply(&model, OCT_ACTION_OLDER, 1);
    assert_int_equal(model.shown.header.frame_num, 39); /* not while live */
    oct_view_picture_finish(&picture);
    oct_view_model_finish(&model);
    oct_view_archive_destroy(archive);
}

/* ---- measuring by key ---- */

static void calipers_are_put_and_moved_by_key(void **state)
{
    struct oct_view_model model;
    const struct oct_view_point *ends = model.calipers.shown.caliper[0].end;
    struct oct_view_picture picture = oct_scene_layered(30, 4); /* 120 A-lines of 100 pixels */

    oct_view_model_init(&model, "x", true);
    oct_view_model_apply(&model, OCT_ACTION_MEASURE, 1);
    oct_view_model_apply(&model, OCT_ACTION_LEVEL_UP, 1);
    assert_null(oct_view_calipers_held(
        &model.calipers)); /* nothing to measure yet, and no contrast is moved */
    assert_true(model.contrast.lo == 0 && model.message[0]);
    oct_view_model_offer(&model, &picture);
    oct_view_picture_finish(&picture);
    double lo = model.contrast.lo;
    oct_view_model_apply(&model, OCT_ACTION_LEVEL_UP, 3); /* Right */
    assert_true(oct_view_calipers_count(&model.calipers) == 1 && model.contrast.lo == lo);
    assert_true(ends[0].line == 60.5 && ends[0].depth == 35.5);
    assert_true(ends[1].line == 63.5 && ends[1].depth == 65.5);
    oct_view_model_apply(&model, OCT_ACTION_LEVEL_DOWN, 1);   /* Left */
    oct_view_model_apply(&model, OCT_ACTION_WINDOW_WIDER, 5); /* Up */
    assert_true(ends[1].line == 62.5 && ends[1].depth == 60.5);
    oct_view_model_apply(&model, OCT_ACTION_HOLD, 1);
    oct_view_model_apply(&model, OCT_ACTION_WINDOW_CLOSER, 2); /* Down */
    assert_true(ends[0].line == 60.5 && ends[0].depth == 37.5);
    oct_view_model_apply(&model, OCT_ACTION_HOLD, 1); /* no marked point: the first end again */
    oct_view_model_apply(&model, OCT_ACTION_WINDOW_CLOSER, 500);
    assert_true(ends[1].depth == 100 && ends[0].depth == 37.5);
    oct_view_model_apply(&model, OCT_ACTION_CLEAR, 1);
    assert_null(oct_view_calipers_held(&model.calipers));
    oct_view_model_apply(&model, OCT_ACTION_ZOOM_IN, 3); /* they come where one looks */
    oct_view_lens_pan(&model.lens, -5, -5);
    oct_view_model_apply(&model, OCT_ACTION_HOLD, 1);
    assert_true(ends[0].depth < ends[1].depth);
    assert_true(ends[1].depth < 100 / model.lens.zoom && ends[1].line < 35);
    oct_view_model_apply(&model, OCT_ACTION_MEASURE, 1);
    oct_view_model_apply(&model, OCT_ACTION_LEVEL_UP, 1); /* contrast again */
    assert_true(model.contrast.lo == lo + 1);
    oct_view_model_finish(&model);
}

static void a_point_is_marked_and_moved_by_key(void **state)
{
    struct oct_view_model model;
    struct oct_view_picture picture = oct_scene_layered(30, 4);

    oct_view_model_init(&model, "x", true);
    oct_view_model_apply(&model, OCT_ACTION_MARK, 1);
    assert_false(model.has_mark || model.measuring);
    oct_view_model_offer(&model, &picture);
    oct_view_picture_finish(&picture);
    oct_view_model_apply(&model, OCT_ACTION_CURSOR_RIGHT, 20); /* from the middle, A-line 60 */
    oct_view_model_apply(&model, OCT_ACTION_MARK, 1);
    assert_true(model.has_mark && model.measuring && oct_view_calipers_count(&model.calipers) == 0);
    assert_true(model.mark.line == 80.5 && model.mark.depth == 50.5);
    oct_view_model_apply(&model, OCT_ACTION_WINDOW_WIDER, 19);
    assert_true(model.mark.depth == 31.5);
    assert_true(oct_view_picture_value(&model.shown, 80, 31) == 70); /* the layer */
    oct_view_model_apply(&model, OCT_ACTION_HOLD, 1); /* calipers come to the point's side */
    assert_true(oct_view_calipers_count(&model.calipers) == 1);
    oct_view_model_apply(&model, OCT_ACTION_HOLD, 1);
    oct_view_model_apply(&model, OCT_ACTION_HOLD, 1);
    assert_int_equal(model.held, OCT_HELD_MARK);
    oct_view_model_apply(&model, OCT_ACTION_LEVEL_DOWN, 1);
    assert_true(model.mark.line == 79.5);
    oct_view_model_apply(&model, OCT_ACTION_CLEAR, 1);
    assert_false(model.has_mark || oct_view_calipers_held(&model.calipers));
    oct_view_model_apply(&model, OCT_ACTION_LOCK, 1); /* the profile measures nothing */
    oct_view_model_apply(&model, OCT_ACTION_MARK, 1);
    assert_false(model.has_mark || model.measuring);
    oct_view_model_finish(&model);
}

/* ---- the line rate ---- */

/* `seconds` of lines at a rate, told twice a second. */
static void go_on(struct oct_view_line_rate *r, double *lines, double *time_s, double rate_hz,
                  double seconds)
{
    for (double end = *time_s + seconds; *time_s < end;) {
        *time_s += 0.5;
        *lines += rate_hz / 2;
        oct_view_line_rate_add(r, 1, *lines, *time_s, 240);
    }
}

static void a_line_rate_that_falls_is_seen_and_one_that_lasts_is_the_new_one(void **state)
{
    struct oct_view_line_rate r = {0};
    double lines = 5000, t = 100;

    oct_view_line_rate_add(&r, 1, lines, t, 240);
    go_on(&r, &lines, &t, 20000, 3);
    assert_true(r.rate_hz == 20000 && r.usual_hz == 0 && !r.fell);
    go_on(&r, &lines, &t, 17000, 4); /* not by a fifth */
    assert_true(r.usual_hz > 0 && !r.fell);
    go_on(&r, &lines, &t, 20000, 20);
    assert_true(r.usual_hz == 20000 && !r.fell);
    go_on(&r, &lines, &t, 10000, 1); /* one short measurement says nothing */
    assert_false(r.fell);
    go_on(&r, &lines, &t, 10000, 1);
    assert_true(r.fell && r.rate_hz == 10000 && r.usual_hz == 20000);
    go_on(&r, &lines, &t, 20000, 1);
    assert_false(r.fell);
    go_on(&r, &lines, &t, 0, 10); /* a standstill is no rate */
    assert_true(!r.fell && r.rate_hz == 20000);
    go_on(&r, &lines, &t, 10000, 40);
    assert_true(!r.fell && r.usual_hz == 10000);
    /* Slow lines take longer to measure: blocks of them are not a fall. */
    oct_view_line_rate_add(&r, 2, 0, 0, 240);
    assert_true(r.rate_hz == 0 && r.usual_hz == 0);
    for (int i = 1; i < 200; i++) {
        oct_view_line_rate_add(&r, 2, i / 2 * 240, i * 0.5, 240);
        assert_false(r.fell);
    }
    assert_true(fabs(r.rate_hz - 240) < 60);
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
        cmocka_unit_test(calipers_are_put_and_moved_by_key),
        cmocka_unit_test(a_point_is_marked_and_moved_by_key),
        cmocka_unit_test(a_line_rate_that_falls_is_seen_and_one_that_lasts_is_the_new_one),
    };
    return cmocka_run_group_tests_name("viewer model", tests, NULL, NULL);
}
