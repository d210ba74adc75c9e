/* What the viewer makes of pictures, of octd and of keys. No zmq. */
#include "pipeline/base/clock.h"
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "test/rig/viewer_scene.h"
#include "test/rig/viewer_stage.h"
#include "viewer/draw/canvas.h"
#include "viewer/input.h"
#include "viewer/model/buttons.h"
#include "viewer/model/layout.h"
#include "viewer/model/measure.h"
#include "viewer/model/model.h"
#include "viewer/model/picture.h"
#include "viewer/model/words.h"
#include "viewer/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- keys, contrast, zoom, lengths, the last ten seconds ---- */

#define S OCT_NS_PER_S
#define MS OCT_NS_PER_MS

/* ---- keys ---- */

TEST(every_action_has_a_key_and_no_key_has_two)
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

#define MODEL_TEST(name)                                                                           \
    TEST_ON(name, struct oct_view_model, model, oct_view_model_init(model, "x", true),             \
            oct_view_model_finish(model))

MODEL_TEST(the_operator_profile_leaves_recording_and_contrast)
{
    model->has_control = true;
    oct_view_model_apply(model, OCT_ACTION_LOCK, 1);
    assert_true(model->settings.operators);
    oct_view_model_apply(model, OCT_ACTION_FREEZE, 1);
    assert_true(model->frozen);
    oct_view_model_apply(model, OCT_ACTION_FREEZE, 1);
    oct_view_model_apply(model, OCT_ACTION_LAYOUT, 1);
    oct_view_model_apply(model, OCT_ACTION_ZOOM_IN, 3);
    oct_view_model_apply(model, OCT_ACTION_MEASURE, 1);
    oct_view_model_apply(model, OCT_ACTION_SHARPEN, 1);
    assert_false(model->frozen || model->measuring || model->sharpening.waits);
    assert_int_equal(model->settings.arrangement, OCT_ARRANGEMENT_ALONE);
    assert_true(model->lens.zoom == 1);
    oct_view_model_apply(model, OCT_ACTION_LEVEL_UP, 5);
    assert_true(model->contrast.lo == 5);
    oct_view_model_apply(model, OCT_ACTION_RECORD, 1);
    assert_non_null(oct_view_wishes_find(&model->wishes, OCT_WISH_RECORD));
    oct_view_model_apply(model, OCT_ACTION_LOCK, 1);
    oct_view_model_apply(model, OCT_ACTION_FREEZE, 1);
    assert_true(model->frozen);
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

TEST(the_colour_map_rises_evenly_in_lightness)
{
    for (unsigned i = 0; i < 256; i++) {
        double l = lightness(oct_view_palette_argb(OCT_PALETTE_UNIFORM, (uint8_t)i));
        assert_true(fabs(l - i / 2.55) < 1.0);
        assert_int_equal(oct_view_palette_argb(OCT_PALETTE_INVERTED, (uint8_t)i),
                         0xff000000u | (255 - i) * 0x010101u);
    }
}

TEST(gamma_bends_the_middle_and_leaves_the_ends)
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

TEST(limits_move_alone_and_never_cross)
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

MODEL_TEST(automatic_contrast_finds_the_percentiles)
{
    struct oct_view_picture picture = oct_scene_layered(10, 1);
    /* 1 of 100 depths is at 255 (70 dB), the rest at 10 (12.35 dB). */
    oct_view_model_offer(model, &picture);
    oct_view_model_apply(model, OCT_ACTION_AUTO_CONTRAST, 1);
    assert_int_equal(model->contrast.range, OCT_CONTRAST_AUTO);
    assert_true(fabs(model->contrast.lo - (10 + 10 / 255.0 * 60)) < 0.01);
    assert_true(fabs(model->contrast.hi - 70) < 0.01);
    oct_view_model_apply(model, OCT_ACTION_AUTO_CONTRAST, 1);
    assert_int_equal(model->contrast.range, OCT_CONTRAST_MANUAL);
    assert_true(fabs(model->contrast.hi - 70) < 0.01);
    oct_view_picture_finish(&picture);
}

/* ---- zoom and lengths ---- */

TEST(zooming_keeps_the_place_under_the_pointer)
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

TEST(lengths_are_micrometres_where_spacings_are_known)
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

TEST(ten_seconds_are_kept_in_bounded_memory)
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

TEST(frozen_it_steps_through_what_was_kept)
{
    struct oct_view_archive *archive = oct_view_archive_create(1 << 20);
    struct oct_view_picture picture = oct_scene_layered(10, 1);
    struct oct_view_model model;
    oct_view_model_init(&model, "x", true);
    model.archive = archive;
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

TEST(calipers_are_put_and_moved_by_key)
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

MODEL_TEST(a_point_is_marked_and_moved_by_key)
{
    struct oct_view_picture picture = oct_scene_layered(30, 4);
    oct_view_model_apply(model, OCT_ACTION_MARK, 1);
    assert_false(model->has_mark || model->measuring);
    oct_view_model_offer(model, &picture);
    oct_view_picture_finish(&picture);
    oct_view_model_apply(model, OCT_ACTION_CURSOR_RIGHT, 20); /* from the middle, A-line 60 */
    oct_view_model_apply(model, OCT_ACTION_MARK, 1);
    assert_true(model->has_mark && model->measuring &&
                oct_view_calipers_count(&model->calipers) == 0);
    assert_true(model->mark.line == 80.5 && model->mark.depth == 50.5);
    oct_view_model_apply(model, OCT_ACTION_WINDOW_WIDER, 19);
    assert_true(model->mark.depth == 31.5);
    assert_true(oct_view_picture_value(&model->shown, 80, 31) == 70); /* the layer */
    oct_view_model_apply(model, OCT_ACTION_HOLD, 1); /* calipers come to the point's side */
    assert_true(oct_view_calipers_count(&model->calipers) == 1);
    oct_view_model_apply(model, OCT_ACTION_HOLD, 1);
    oct_view_model_apply(model, OCT_ACTION_HOLD, 1);
    assert_int_equal(model->held, OCT_HELD_MARK);
    oct_view_model_apply(model, OCT_ACTION_LEVEL_DOWN, 1);
    assert_true(model->mark.line == 79.5);
    oct_view_model_apply(model, OCT_ACTION_CLEAR, 1);
    assert_false(model->has_mark || oct_view_calipers_held(&model->calipers));
    oct_view_model_apply(model, OCT_ACTION_LOCK, 1); /* the profile measures nothing */
    oct_view_model_apply(model, OCT_ACTION_MARK, 1);
    assert_false(model->has_mark || model->measuring);
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

TEST(a_line_rate_that_falls_is_seen_and_one_that_lasts_is_the_new_one)
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

/* ---- pictures, their count, what the window is ---- */

static void tell(struct oct_view_tally *tally, uint64_t frame_num, const char *acquisition,
                 uint64_t now_ns)
{
    struct oct_picture_header header = oct_scene_header(frame_num, acquisition);
    oct_view_tally_add(tally, &header, now_ns);
}

/* ---- counting ---- */

TEST(skipped_are_the_gaps_within_an_acquisition)
{
    struct oct_view_tally tally = {0};
    tell(&tally, 100, "a", 1 * S); /* joining late is no loss */
    tell(&tally, 101, "a", 2 * S);
    assert_int_equal(tally.n_skipped, 0);
    tell(&tally, 105, "a", 3 * S);
    assert_int_equal(tally.n_skipped, 3);
    tell(&tally, 5000, "b", 4 * S); /* another acquisition */
    assert_int_equal(tally.n_skipped, 3);
    tell(&tally, 5002, "b", 5 * S);
    assert_int_equal(tally.n_skipped, 4);
    tell(&tally, 2, "b", 6 * S); /* started anew */
    tell(&tally, 2, "b", 7 * S); /* twice the same */
    assert_int_equal(tally.n_skipped, 4);
    assert_int_equal(tally.n_received, 7);
    tell(&tally, UINT64_MAX, "b", 8 * S);
    tell(&tally, 0, "b", 9 * S);
    tell(&tally, UINT64_MAX, "b", 10 * S);
    assert_int_equal(tally.n_skipped, UINT64_MAX); /* sticks, does not wrap */
}

TEST(the_rate_is_what_arrives_a_second)
{
    struct oct_view_tally tally = {0};
    assert_true(oct_view_tally_rate_hz(&tally) == 0);
    tell(&tally, 0, "a", 1 * S);
    assert_true(oct_view_tally_rate_hz(&tally) == 0);
    tell(&tally, 1, "a", 1 * S + S / 100);
    assert_true(fabs(oct_view_tally_rate_hz(&tally) - 100) < 0.01);
    for (uint64_t i = 2; i < 200; i++)
        tell(&tally, i, "a", 1 * S + i * S / 100);
    assert_true(fabs(oct_view_tally_rate_hz(&tally) - 100) < 0.01);
    for (uint64_t i = 0; i < 100; i++)
        tell(&tally, 200 + i, "a", 3 * S + i * S / 50);
    assert_true(fabs(oct_view_tally_rate_hz(&tally) - 50) < 1.0);
}

/* ---- model ---- */

TEST(freezing_keeps_the_picture_while_counting_goes_on)
{
    struct oct_view_model model;
    struct oct_view_tally tally = {0};
    oct_view_model_init(&model, "tcp://somewhere:1", true);
    for (uint64_t i = 0; i < 4; i++) {
        struct oct_view_picture picture = oct_scene_layered(10, 1);
        picture.header.frame_num = i;
        oct_view_tally_add(&tally, &picture.header, (i + 1) * S / 10);
        if (i == 1)
            oct_view_model_apply(&model, OCT_ACTION_FREEZE, 1);
        oct_view_model_offer(&model, &picture);
        oct_view_model_report(&model, &tally, true);
        oct_view_picture_finish(&picture);
    }
    assert_true(model.frozen);
    assert_int_equal(model.shown.header.frame_num, 0);
    assert_int_equal(model.serial, 1);
    assert_int_equal(model.tally.n_received, 4);
    oct_view_model_apply(&model, OCT_ACTION_FREEZE, 1);
    assert_int_equal(model.shown.header.frame_num, 3); /* the newest, at once */
    assert_int_equal(model.serial, 2);
    oct_view_model_finish(&model);
}

TEST(silence_turns_live_into_stalled_and_back)
{
    struct oct_view_model model;
    struct oct_view_tally tally = {0};
    struct oct_view_phrase lines[2];
    struct oct_view_alarm alarms[OCT_VIEW_MAX_ALARMS];
    oct_view_model_init(&model, "tcp://somewhere:1", true);
    oct_view_model_tick(&model, 100 * S);
    assert_int_equal(oct_view_model_state(&model), OCT_SIGNAL_WAITING);
    assert_int_equal(oct_view_notice(&model, lines), 2);
    assert_string_equal(lines[0].text, "waiting for tcp://somewhere:1");
    tell(&tally, 0, "a", 100 * S);
    tell(&tally, 1, "a", 100 * S + S / 100);
    oct_view_model_report(&model, &tally, true);
    oct_view_model_tick(&model, 101 * S);
    assert_int_equal(oct_view_model_state(&model), OCT_SIGNAL_LIVE);
    assert_int_equal(oct_view_alarms(&model, alarms), 0);
    oct_view_model_tick(&model, 107 * S);
    assert_int_equal(oct_view_model_state(&model), OCT_SIGNAL_STALLED);
    assert_int_equal(oct_view_alarms(&model, alarms), 1);
    assert_string_equal(alarms[0].what.text, "NO SIGNAL for 6 s");
    tell(&tally, 2, "a", 107 * S);
    oct_view_model_report(&model, &tally, true);
    assert_int_equal(oct_view_model_state(&model), OCT_SIGNAL_LIVE);
    /* A slow scan is not a stall: one B-scan in 2 s, silent for 3 s. */
    memset(&tally, 0, sizeof(tally));
    tell(&tally, 0, "a", 200 * S);
    tell(&tally, 1, "a", 202 * S);
    oct_view_model_report(&model, &tally, true);
    oct_view_model_tick(&model, 205 * S);
    assert_int_equal(oct_view_model_state(&model), OCT_SIGNAL_LIVE);
    oct_view_model_finish(&model);
}

static bool says(const struct oct_view_model *model, const char *words)
{
    struct oct_view_field fields[2 * OCT_VIEW_MOST_FIELDS];
    unsigned n = oct_view_fields(model, fields);
    n += oct_view_details(model, fields + n);
    for (unsigned i = 0; i < n; i++)
        if (strstr(fields[i].phrase.text, words))
            return true;
    return false;
}

TEST(the_status_line_says_state_rate_loss_place_and_contrast)
{
    struct oct_view_model model;
    struct oct_view_tally tally = {0};
    struct oct_view_picture picture = oct_scene_layered(10, 1);
    oct_view_model_init(&model, "tcp://somewhere:1", true);
    assert_true(says(&model, "WAITING"));
    picture.header.volume = 3;
    picture.header.missing_lines = 17;
    tell(&tally, 0, "a", 10 * S);
    tell(&tally, 6, "a", 10 * S + S / 8);
    tally.n_bad++;
    oct_view_model_offer(&model, &picture);
    oct_view_model_report(&model, &tally, true);
    oct_view_model_tick(&model, 11 * S);
    assert_true(says(&model, "LIVE"));
    assert_true(says(&model, "8.0 B-scans/s"));
    assert_true(says(&model, "skipped here 5"));
    assert_true(says(&model, "bad messages 1"));
    assert_true(says(&model, "volume 3 B-scan   7"));
    assert_true(says(&model, "missing lines 17"));
    assert_true(says(&model, "10.0 .. 70.0 dB published"));
    oct_view_model_apply(&model, OCT_ACTION_LEVEL_UP, 5);
    assert_true(says(&model, "15.0 .. 75.0 dB manual"));
    oct_view_model_say(&model, "saved\na file");
    assert_string_equal(model.message, "saved?a file");
    oct_view_model_tick(&model, 16 * S);
    assert_string_equal(model.message, "");
    oct_view_picture_finish(&picture);
    oct_view_model_finish(&model);
}

/* ---- contrast ---- */

TEST(contrast_maps_pixels_through_the_published_limits)
{
    struct oct_view_contrast contrast;
    uint32_t table[256];
    oct_view_contrast_init(&contrast, true);
    oct_view_contrast_publish(&contrast, 20.0, 71.0); /* 0.2 dB a step */
    oct_view_contrast_table(&contrast, table);
    for (unsigned i = 0; i < 256; i++)
        assert_int_equal(table[i], 0xff000000u | i * 0x010101u);
    /* 30 .. 55.5 dB: pixel 50 is 30 dB, pixel 177.5 is 55.5 dB. */
    oct_view_contrast_move(&contrast, 42.75 - 45.5, 25.5 - 51.0);
    assert_int_equal(contrast.range, OCT_CONTRAST_MANUAL);
    assert_true(fabs(contrast.lo - 30.0) < 1e-9 && fabs(contrast.hi - 55.5) < 1e-9);
    oct_view_contrast_table(&contrast, table);
    assert_int_equal(255 & table[50], 0);
    assert_int_equal(255 & table[49], 0);
    assert_int_equal(255 & table[100], 100);
    assert_int_equal(255 & table[178], 255);
    /* The published limits move, the user's stay; the same dB is the same grey. */
    oct_view_contrast_publish(&contrast, 10.0, 61.0);
    oct_view_contrast_table(&contrast, table);
    assert_int_equal(255 & table[150], 100);
    oct_view_contrast_set_range(&contrast, OCT_CONTRAST_PUBLISHED);
    assert_true(contrast.lo == 10.0 && contrast.hi == 61.0);
}

TEST(contrast_stays_a_range_whatever_is_published_or_pressed)
{
    static const double odd[][2] = {{5, 5},     {9, 1},          {NAN, 1},     {1, NAN},
                                    {1e300, 0}, {-1e300, 1e300}, {0, INFINITY}};
    struct oct_view_contrast contrast;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        oct_view_contrast_init(&contrast, true);
        oct_view_contrast_publish(&contrast, odd[i][0], odd[i][1]);
        assert_true(isfinite(contrast.lo) && isfinite(contrast.hi) && contrast.lo < contrast.hi);
        for (int press = 0; press < 300; press++) {
            oct_view_contrast_move(&contrast, 1e29, -10);
            assert_true(isfinite(contrast.lo) && isfinite(contrast.hi));
            assert_true(contrast.lo < contrast.hi);
        }
        assert_int_equal(oct_view_contrast_level(&contrast, NAN), 0);
    }
}

/* ---- conversion ---- */

TEST(conversion_turns_the_picture_upright)
{
    const unsigned sizes[][2] = {{1, 1}, {3, 5}, {17, 65}, {240, 1024}, {5000, 7}};
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        const unsigned m = sizes[k][0], depth = sizes[k][1];
        struct oct_picture_header header = oct_scene_header(0, "a");
        struct oct_view_contrast contrast;
        struct oct_view_picture u8 = {0}, f32 = {0};
        uint8_t *bytes = malloc((size_t)m * depth);
        float *floats = malloc((size_t)m * depth * sizeof(*floats));
        assert_non_null(bytes);
        assert_non_null(floats);
        for (unsigned i = 0; i < m * depth; i++) {
            bytes[i] = (uint8_t)(i * 2654435761u >> 24);
            floats[i] = 10.0f + (float)bytes[i] * 60.0f / 255.0f;
        }
        header.n_lines = m;
        header.depth = depth;
        assert_int_equal(oct_view_picture_set(&u8, &header, bytes, (size_t)m * depth, NULL), 0);
        header.sample_type = OCT_SAMPLE_F32;
        assert_int_equal(oct_view_picture_set(&f32, &header, floats, (size_t)m * depth * 4, NULL),
                         0);
        oct_view_contrast_init(&contrast, true);
        oct_view_contrast_publish(&contrast, 10.0, 70.0);
        struct oct_view_upright up = oct_view_upright_of(&header);
        assert_true(up.n_columns <= OCT_VIEW_MAX_SIDE_PX);
        size_t pitch = up.n_columns + 3;
        uint32_t *argb = calloc(pitch * up.n_rows * 2, sizeof(*argb));
        assert_non_null(argb);
        oct_view_convert(&u8, &contrast, argb, pitch);
        oct_view_convert(&f32, &contrast, argb + pitch * up.n_rows, pitch);
        for (unsigned row = 0; row < up.n_rows; row++)
            for (unsigned column = 0; column < pitch; column++) {
                uint32_t want = 0;
                if (column < up.n_columns)
                    want = 0xff000000u |
                           0x010101u * bytes[column * up.column_step * depth + row * up.row_step];
                assert_int_equal(argb[row * pitch + column], want);
                assert_int_equal(argb[(up.n_rows + row) * pitch + column], want);
            }
        free(argb);
        free(bytes);
        free(floats);
        oct_view_picture_finish(&u8);
        oct_view_picture_finish(&f32);
    }
}

TEST(a_picture_whose_size_is_wrong_is_refused)
{
    struct oct_view_picture picture = oct_scene_layered(10, 1);
    struct oct_picture_header header = oct_scene_header(9, "a");
    uint8_t pixel = 0;
    must_fail(oct_view_picture_set(&picture, &header, &pixel, 1, &failure), OCT_E_FORMAT,
              "120 x 100");
    assert_int_equal(picture.header.frame_num, 1);
    header.n_lines = header.depth = UINT32_MAX;
    assert_int_equal(oct_view_picture_set(&picture, &header, &pixel, 1, NULL), OCT_E_FORMAT);
    header.n_lines = header.depth = 0;
    assert_int_equal(oct_view_picture_set(&picture, &header, &pixel, 0, NULL), OCT_E_FORMAT);
    oct_view_picture_finish(&picture);
}

/* ---- layout ---- */

TEST(layout_keeps_proportions_and_breaks_lines_between_phrases)
{
    struct oct_view_rect area = {10, 20, 400, 100};
    struct oct_view_rect r = oct_view_layout_fit(area, 2.0, false);
    const int widths[] = {30, 30, 50, 200, 10};
    int x[5];
    unsigned line[5];
    assert_true(r.x == 110 && r.y == 20 && r.w == 200 && r.h == 100);
    r = oct_view_layout_fit(area, 8.0, false);
    assert_true(r.x == 10 && r.y == 45 && r.w == 400 && r.h == 50);
    r = oct_view_layout_fit(area, 8.0, true);
    assert_true(r.w == 400 && r.h == 100);
    assert_true(oct_view_layout_fit(area, 1e9, false).h >= 1);
    assert_int_equal(oct_view_layout_flow(widths, 5, 100, 10, x, line), 4);
    assert_true(x[0] == 0 && x[1] == 40 && x[2] == 0 && x[3] == 0 && x[4] == 0);
    assert_true(line[1] == 0 && line[2] == 1 && line[3] == 2 && line[4] == 3);
    assert_int_equal(oct_view_layout_text_px(12, 96, 1280, 720), 16);
    assert_int_equal(oct_view_layout_text_px(12, 96, 3840, 2160), 16); /* it shows more */
    assert_int_equal(oct_view_layout_text_px(12, 192, 3840, 2160), 32);
    assert_int_equal(oct_view_layout_text_px(12, 192, 1280, 720), 18); /* lines have room */
    assert_int_equal(oct_view_layout_text_px(1, 96, 1280, 720), 12);
    assert_true(oct_view_layout_usual_dpi(720) == 96 && oct_view_layout_usual_dpi(1080) == 96);
    assert_true(oct_view_layout_usual_dpi(2160) == 160);
}

/* ---- calipers ---- */

#define MEASURE 0x5cc8ffu

static struct oct_view_point at(double line, double depth)
{
    return (struct oct_view_point){line, depth};
}

static unsigned count(const struct oct_viewer_stage *s)
{
    return oct_view_calipers_count(&s->model.calipers);
}

TEST(a_number_is_the_lowest_free_one)
{
    struct oct_view_calipers *c = calloc(1, sizeof(*c));
    assert_non_null(c);
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS; i++) {
        assert_true(oct_view_calipers_add(c, at(i, 0), at(i, 9)));
        assert_true(c->shown.held == i && oct_view_calipers_count(c) == i + 1);
    }
    assert_false(oct_view_calipers_add(c, at(50, 0), at(50, 9)));
    assert_int_equal(c->shown.held, 8);
    c->shown.held = 3;
    oct_view_calipers_remove(c); /* the fourth; the fifth keeps its number and is held */
    assert_true(c->shown.held == 4 && oct_view_calipers_held(c)->end[0].line == 4);
    assert_true(oct_view_calipers_add(c, at(60, 0), at(60, 9)));
    assert_true(c->shown.held == 3 && oct_view_calipers_held(c)->end[0].line == 60);
    c->shown.held = 8;
    oct_view_calipers_remove(c); /* after the last comes the first */
    assert_int_equal(c->shown.held, 0);
    oct_view_calipers_clear(c);
    assert_true(oct_view_calipers_count(c) == 0 && !oct_view_calipers_held(c));
    oct_view_calipers_remove(c);
    oct_view_calipers_move(c, at(1, 2), at(3, 4));
    assert_true(oct_view_calipers_count(c) == 1 && c->shown.caliper[0].end[1].depth == 4);
    free(c);
}

static struct oct_picture_header picture(uint64_t frame_num, uint32_t n_lines)
{
    return (struct oct_picture_header){.frame_num = frame_num, .n_lines = n_lines, .depth = 100};
}

static void show(struct oct_view_calipers *c, uint64_t frame_num, bool stands, const char *source)
{
    struct oct_picture_header header = picture(frame_num, 120);
    oct_view_calipers_show(c, &header, stands, source);
}

/* -1: none; else the A-line of the first. */
static double first_of(const struct oct_view_calipers *c)
{
    return c->shown.caliper[0].is_set ? c->shown.caliper[0].end[0].line : -1;
}

TEST(those_of_a_standing_picture_are_its_own)
{
    struct oct_view_calipers *c = calloc(1, sizeof(*c));
    assert_non_null(c);
    show(c, 1, false, "a");
    oct_view_calipers_add(c, at(10, 0), at(10, 9));
    show(c, 2, false, "a");
    assert_true(first_of(c) == 10); /* the live ones stay */
    show(c, 2, true, "a");          /* frozen: a copy */
    assert_true(first_of(c) == 10);
    oct_view_calipers_move(c, at(20, 0), at(20, 9));
    show(c, 1, true, "a"); /* stepped back */
    assert_true(first_of(c) == -1);
    oct_view_calipers_add(c, at(30, 0), at(30, 9));
    show(c, 2, true, "a");
    assert_true(first_of(c) == 20);
    show(c, 2, true, "b"); /* the same number of another acquisition or file */
    assert_true(first_of(c) == -1);
    show(c, 9, false, "a"); /* live again */
    assert_true(first_of(c) == 10);
    show(c, 1, true, "a"); /* straight to one of before */
    assert_true(first_of(c) == 30);
    oct_view_calipers_clear(c);
    show(c, 2, true, "a");
    show(c, 1, true, "a");
    assert_true(first_of(c) == -1); /* cleared ones do not come back */
    free(c);
}

TEST(a_picture_of_another_size_has_others)
{
    struct oct_view_calipers *c = calloc(1, sizeof(*c));
    struct oct_picture_header wide = picture(2, 500);
    assert_non_null(c);
    show(c, 1, false, "a");
    oct_view_calipers_add(c, at(10, 0), at(10, 9));
    oct_view_calipers_show(c, &wide, false, "a");
    assert_true(first_of(c) == -1);
    show(c, 3, false, "a");
    assert_true(first_of(c) == 10);
    free(c);
}

TEST(the_last_sets_are_kept_and_the_live_one)
{
    struct oct_view_calipers *c = calloc(1, sizeof(*c));
    const uint64_t n = OCT_VIEW_KEPT_CALIPERS + 10;
    assert_non_null(c);
    show(c, 0, false, "a");
    oct_view_calipers_add(c, at(99, 0), at(99, 9));
    for (uint64_t i = 1; i <= n; i++) {
        show(c, i, true, "a");
        oct_view_calipers_clear(c);
        oct_view_calipers_add(c, at((double)i, 0), at((double)i, 9));
    }
    show(c, 0, false, "a");
    assert_true(first_of(c) == 99);
    show(c, n, true, "a");
    assert_true(first_of(c) == (double)n);
    show(c, n - 15, true, "a");
    assert_true(first_of(c) == (double)(n - 15));
    show(c, 1, true, "a"); /* too long ago */
    assert_true(first_of(c) == -1);
    free(c);
}

/* ---- in the window ---- */

/* Pixels of the calipers' colour in a part of the panel, in shares of it. */
static unsigned blue(const struct oct_viewer_stage *s, double x0, double y0, double x1, double y1)
{
    struct oct_view_rect r = oct_draw_layout(s->draw)->bscan;
    unsigned n = 0;
    for (int y = r.y + (int)(y0 * r.h); y < r.y + (int)(y1 * r.h); y++)
        for (int x = r.x + (int)(x0 * r.w); x < r.x + (int)(x1 * r.w); x++)
            n += (((uint32_t *)((uint8_t *)s->surface->pixels + y * s->surface->pitch))[x] &
                  0xffffff) == MEASURE;
    return n;
}

static void mouse(struct oct_viewer_stage *s, struct oct_view_input *input, uint32_t type, double x,
                  double y)
{
    struct oct_view_rect r = oct_draw_layout(s->draw)->bscan;
    SDL_Event event = {.type = type};
    if (type == SDL_MOUSEMOTION) {
        event.motion.x = r.x + (int)(x * r.w);
        event.motion.y = r.y + (int)(y * r.h);
    } else {
        event.button.button = SDL_BUTTON_LEFT;
        event.button.x = r.x + (int)(x * r.w);
        event.button.y = r.y + (int)(y * r.h);
    }
    oct_view_input_take(input, &event, &s->model, s->draw, 1);
}

static void drag(struct oct_viewer_stage *s, struct oct_view_input *input, double x0, double y0,
                 double x1, double y1)
{
    mouse(s, input, SDL_MOUSEBUTTONDOWN, x0, y0);
    mouse(s, input, SDL_MOUSEMOTION, (x0 + x1) / 2, (y0 + y1) / 2);
    mouse(s, input, SDL_MOUSEMOTION, x1, y1);
    mouse(s, input, SDL_MOUSEBUTTONUP, x1, y1);
}

TEST(drags_make_calipers_and_move_their_ends)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_input *input = calloc(1, sizeof(*input));
    const struct oct_view_caliper *c = s->model.calipers.shown.caliper;
    assert_non_null(input);
    oct_view_model_apply(&s->model, OCT_ACTION_MEASURE, 1);
    oct_viewer_stage_draw(s);
    drag(s, input, 0.2, 0.2, 0.2, 0.6);
    drag(s, input, 0.5, 0.2, 0.5, 0.6);
    assert_int_equal(count(s), 2);
    assert_true(fabs(c[0].end[1].line / 120 - 0.2) < 0.01 && s->model.calipers.shown.held == 1);
    assert_true(fabs(c[1].end[1].line / 120 - 0.5) < 0.01);
    drag(s, input, 0.2, 0.2, 0.3, 0.1); /* the first end of the first one */
    assert_true(count(s) == 2 && s->model.calipers.shown.held == 0);
    assert_true(fabs(c[0].end[1].line / 120 - 0.3) < 0.01 && c[0].end[1].depth < 12);
    assert_true(fabs(c[0].end[0].line / 120 - 0.2) < 0.01 && c[0].end[0].depth > 55);
    mouse(s, input, SDL_MOUSEBUTTONDOWN, 0.8, 0.8); /* a click has no length */
    mouse(s, input, SDL_MOUSEBUTTONUP, 0.8, 0.8);
    assert_int_equal(count(s), 2);
    mouse(s, input, SDL_MOUSEBUTTONDOWN, 0.8, 0.8); /* taken away while they are dragged */
    oct_view_model_apply(&s->model, OCT_ACTION_CLEAR, 1);
    mouse(s, input, SDL_MOUSEMOTION, 0.9, 0.9);
    mouse(s, input, SDL_MOUSEBUTTONUP, 0.9, 0.9);
    assert_int_equal(count(s), 0);
    for (unsigned i = 0; i < OCT_VIEW_MOST_CALIPERS + 2; i++)
        drag(s, input, 0.05 + 0.08 * i, 0.1, 0.05 + 0.08 * i, 0.9);
    assert_int_equal(count(s), OCT_VIEW_MOST_CALIPERS);
    assert_non_null(strstr(s->model.message, "9 calipers are the most"));
    free(input);
    oct_viewer_stage_close(s);
}

TEST(several_have_numbers_and_a_table_of_lengths)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    oct_view_model_add_caliper(&s->model, at(20, 20), at(20, 40));
    oct_viewer_stage_draw(s);
    unsigned one_beside = blue(s, 0.17, 0.38, 0.6, 0.48);
    assert_true(one_beside > 150);                  /* its length stands beside it */
    assert_int_equal(blue(s, 0.65, 0, 1, 0.19), 0); /* and no table */
    oct_view_model_add_caliper(&s->model, at(60, 20), at(60, 30));
    oct_viewer_stage_draw(s);
    assert_true(blue(s, 0.17, 0.38, 0.45, 0.48) < one_beside / 3); /* a number */
    unsigned two = blue(s, 0.65, 0, 1, 0.19);
    assert_true(two > 300);
    oct_view_model_add_caliper(&s->model, at(80, 20), at(80, 30));
    oct_viewer_stage_draw(s);
    unsigned three = blue(s, 0.65, 0, 1, 0.19);
    assert_true(three > two * 5 / 4 && three < two * 2);
    for (int i = 0; i < 9; i++) /* all of it is within the panel */
        oct_view_model_add_caliper(&s->model, at(90, 20), at(90, 30));
    oct_viewer_stage_draw(s);
    assert_true(blue(s, 0.65, 0, 1, 0.4) > 2 * three);
    oct_viewer_stage_close(s);
}

TEST(keys_add_hold_and_remove)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    const struct oct_view_caliper *c = s->model.calipers.shown.caliper;
    oct_view_model_apply(&s->model, OCT_ACTION_CALIPERS, 1);
    oct_view_model_apply(&s->model, OCT_ACTION_CALIPERS, 1);
    assert_true(count(s) == 2 && s->model.measuring && c[0].end[0].line < c[1].end[0].line);
    double line = c[1].end[1].line, first = c[0].end[1].line;
    oct_view_model_apply(&s->model, OCT_ACTION_LEVEL_UP, 1); /* Right: the last one's end */
    assert_true(c[1].end[1].line == line + 1);
    oct_view_model_apply(&s->model, OCT_ACTION_HOLD, 1); /* its other end */
    oct_view_model_apply(&s->model, OCT_ACTION_HOLD, 1); /* the first one's end */
    oct_view_model_apply(&s->model, OCT_ACTION_LEVEL_UP, 3);
    assert_true(c[0].end[1].line == first + 3 && c[1].end[1].line == line + 1);
    oct_view_model_apply(&s->model, OCT_ACTION_REMOVE, 1);
    assert_true(count(s) == 1 && !c[0].is_set && c[1].is_set);
    oct_view_model_apply(&s->model, OCT_ACTION_MARK, 1);
    oct_view_model_apply(&s->model, OCT_ACTION_REMOVE, 1); /* the point is held */
    assert_true(count(s) == 1 && !s->model.has_mark);
    oct_view_model_apply(&s->model, OCT_ACTION_REMOVE, 1);
    oct_view_model_apply(&s->model, OCT_ACTION_REMOVE, 1);
    assert_int_equal(count(s), 0);
    oct_viewer_stage_close(s);
}

/* By the model's own actions: freeze, measure, go on, freeze again. */
TEST(a_frozen_picture_keeps_its_calipers)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_archive *archive = oct_view_archive_create(1 << 20);
    struct oct_view_picture next = oct_scene_layered(30, 4);
    assert_non_null(archive);
    s->model.archive = archive;
    for (uint64_t i = 0; i < 3; i++) {
        next.header.frame_num = 100 + i;
        next.arrival_ns = s->model.now_ns + i * OCT_NS_PER_S;
        oct_view_archive_add(archive, &next);
    }
    oct_view_model_offer(&s->model, &next); /* the newest one */
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    oct_view_model_add_caliper(&s->model, at(20, 20), at(20, 40));
    oct_view_model_apply(&s->model, OCT_ACTION_OLDER, 1);
    assert_int_equal(s->model.shown.header.frame_num, 101);
    assert_int_equal(count(s), 0);
    oct_view_model_add_caliper(&s->model, at(50, 20), at(50, 40));
    oct_view_model_add_caliper(&s->model, at(60, 20), at(60, 40));
    oct_view_model_apply(&s->model, OCT_ACTION_NEWER, 1);
    assert_int_equal(count(s), 1);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1); /* live */
    assert_int_equal(count(s), 0);
    oct_view_model_apply(&s->model, OCT_ACTION_FREEZE, 1);
    assert_int_equal(count(s), 1);
    oct_view_model_apply(&s->model, OCT_ACTION_OLDER, 1);
    assert_int_equal(count(s), 2);
    oct_view_picture_finish(&next);
    oct_viewer_stage_close(s);
    oct_view_archive_destroy(archive);
}

/* The B-scan of that number of the open file comes. */
static void play(struct oct_viewer_stage *s, uint32_t bscan)
{
    struct oct_view_picture picture = oct_scene_layered(30, 4);
    picture.header.frame_num = bscan;
    oct_view_playback_offer(&s->model, &picture,
                            &(struct oct_view_read){.bscan = bscan, .valid = true});
    oct_view_picture_finish(&picture);
}

static void open_file(struct oct_viewer_stage *s, const char *name)
{
    struct oct_view_file *file = calloc(1, sizeof(*file));
    assert_non_null(file);
    snprintf(file->path, sizeof(file->path), "/data/%s", name);
    snprintf(file->name, sizeof(file->name), "%s", name);
    file->n_bscans = file->n_valid = 40;
    file->n_lines = 120;
    file->depth = 100;
    file->log = true;
    file->axial_um = file->lateral_um = 4;
    oct_view_playback_open(&s->model, file->path, 0, false);
    oct_view_playback_opened(&s->model, file);
    free(file);
}

TEST(a_recordings_bscans_keep_theirs)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    oct_view_model_add_caliper(&s->model, at(10, 20), at(10, 40)); /* live */
    open_file(s, "a.h5");
    play(s, 0);
    assert_int_equal(count(s), 0);
    oct_view_model_add_caliper(&s->model, at(20, 20), at(20, 40));
    oct_view_model_add_caliper(&s->model, at(30, 20), at(30, 40));
    play(s, 1);
    assert_int_equal(count(s), 0);
    play(s, 0);
    assert_int_equal(count(s), 2);
    open_file(s, "b.h5");
    play(s, 0);
    assert_int_equal(count(s), 0);
    oct_view_playback_end(&s->model);
    assert_int_equal(count(s), 1);
    open_file(s, "a.h5");
    play(s, 0);
    assert_int_equal(count(s), 2);
    oct_viewer_stage_close(s);
}

/* ---- the quality ---- */

TEST(blinks_and_motion_stand_on_the_timeline)
{
    struct oct_view_quality *q = calloc(1, sizeof(*q));
    struct oct_view_image row = oct_scene_quality();
    assert_non_null(q);
    for (uint64_t i = 0; i < 100; i++) { /* one in each bin of 20 ms */
        bool motion = i == 50, blink = i >= 70 && i < 75;
        row.arrival_ns = 10 * S + i * 20 * MS;
        oct_scene_quality_put(&row, "snr_db", blink ? 3 : 30 + (double)i / 100);
        oct_scene_quality_put(&row, "sharpness", 5);
        oct_scene_quality_put(&row, "snr_smooth_db", 31.5);
        oct_scene_quality_put(&row, "sharpness_smooth", 4.5);
        oct_scene_quality_put(&row, "level_db", 29);
        oct_scene_quality_put(&row, "blink", blink);
        oct_scene_quality_put(&row, "motion", motion);
        oct_scene_quality_put(&row, "missing", i == 90);
        oct_scene_quality_put(&row, "blinks", i >= 70);
        oct_scene_quality_put(&row, "motions", i >= 50);
        oct_view_quality_add(q, &row);
        assert_int_equal(q->marks, motion    ? OCT_MARK_MOTION
                                   : blink   ? OCT_MARK_BLINK
                                   : i == 90 ? OCT_MARK_MISSING
                                             : 0);
    }
    assert_true(q->known && q->snr_db == 31.5 && q->sharpness == 4.5 && q->level_db == 29);
    assert_int_equal(q->n_blinks, 1);
    assert_int_equal(q->n_motions, 1);
    const struct oct_view_moment *m = oct_view_quality_moment(q, 500 + 50);
    assert_non_null(m);
    assert_int_equal(m->marks, OCT_MARK_MOTION);
    assert_true(fabs((double)m->snr_db - 30.5) < 1e-5 && m->sharpness == 5);
    assert_int_equal(oct_view_quality_moment(q, 500 + 72)->marks, OCT_MARK_BLINK);
    assert_null(oct_view_quality_moment(q, 500 + 100));
    assert_null(oct_view_quality_moment(q, 500 + 50 - OCT_VIEW_TIMELINE)); /* ten seconds before */
    oct_view_image_finish(&row);
    free(q);
}

TEST(a_moment_shows_the_worst_of_its_rows)
{
    static const struct {
        double snr_db, blink, motion;
    } rows[] = {{30, 0, 0}, {12, 1, 0}, {NAN, 0, 1}, {40, 0, 0}};
    struct oct_view_quality *q = calloc(1, sizeof(*q));
    struct oct_view_image row = oct_scene_quality();
    assert_non_null(q);
    row.arrival_ns = 10 * S;
    oct_scene_quality_put(&row, "snr_db", NAN); /* none of it has one yet */
    oct_view_quality_add(q, &row);
    assert_true(isnan(oct_view_quality_moment(q, 500)->snr_db));
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        oct_scene_quality_put(&row, "snr_db", rows[i].snr_db);
        oct_scene_quality_put(&row, "sharpness", 8 - i);
        oct_scene_quality_put(&row, "blink", rows[i].blink);
        oct_scene_quality_put(&row, "motion", rows[i].motion);
        row.arrival_ns += MS;
        oct_view_quality_add(q, &row);
    }
    const struct oct_view_moment *m = oct_view_quality_moment(q, 500);
    assert_true(m->snr_db == 12 && m->sharpness == 0);
    assert_int_equal(m->marks, OCT_MARK_BLINK | OCT_MARK_MOTION);
    /* Ten seconds on the ring is used again. */
    row.arrival_ns += 10 * S;
    oct_view_quality_add(q, &row);
    assert_null(oct_view_quality_moment(q, 500));
    assert_int_equal(oct_view_quality_moment(q, 1000)->marks, 0);
    assert_true(oct_view_quality_moment(q, 1000)->snr_db == 40);
    oct_view_image_finish(&row);
    free(q);
}

TEST(the_quality_of_hostile_rows_is_finite)
{
    static const double wild[] = {NAN, INFINITY, -INFINITY, 3e38, -3e38, 1e-40, -1};
    struct oct_view_quality *q = calloc(1, sizeof(*q));
    struct oct_view_image row = oct_scene_quality();
    assert_non_null(q);
    for (unsigned k = 0; k < 700; k++) {
        float *value = row.values;
        for (unsigned i = 0; i < row.header.n_labels; i++)
            value[i] = (float)wild[(k + i * (1 + k / 100)) % 7];
        row.arrival_ns = k * 7 * MS;
        oct_view_quality_add(q, &row);
        assert_true(isfinite(q->snr_db) && isfinite(q->sharpness) && isfinite(q->level_db));
        assert_true(q->n_blinks <= 1000000000 && q->n_motions <= 1000000000);
        const struct oct_view_moment *m = oct_view_quality_moment(q, k * 7 / 20);
        assert_non_null(m);
        assert_false(isinf(m->snr_db) || isinf(m->sharpness));
    }
    /* A row that lacks labels leaves the numbers before. */
    oct_scene_quality_put(&row, "level_db", 25);
    oct_view_quality_add(q, &row);
    for (unsigned i = 0; i < row.header.n_labels; i++)
        row.header.labels[i][0] = 'X';
    oct_view_quality_add(q, &row);
    assert_true(q->level_db == 25 && q->marks == 0);
    /* What is no such row changes nothing. */
    struct oct_view_quality before = *q;
    struct oct_error err = {0};
    row.header.n_labels = 0;
    assert_int_equal(oct_view_quality_check(&row.header, &err), OCT_E_FORMAT);
    assert_true(err.text[0] != '\0');
    oct_view_quality_add(q, &row);
    row.header.n_labels = row.header.dims[0];
    row.header.type = OCT_SAMPLE_U8;
    oct_view_quality_add(q, &row);
    row.header.type = OCT_SAMPLE_F32;
    row.header.rank = 2;
    row.header.dims[1] = row.header.dims[0];
    row.header.dims[0] = 2;
    oct_view_quality_add(q, &row);
    row.header.dims[0] = 0; /* a good one, without a row */
    assert_int_equal(oct_view_quality_check(&row.header, NULL), OCT_OK);
    oct_view_quality_add(q, &row);
    assert_memory_equal(q, &before, sizeof(before));
    row.header.dims[0] = 1;
    oct_scene_quality_put(&row, "Xlink", 1);
    row.header.labels[3][0] = 'b';
    oct_view_quality_add(q, &row);
    assert_int_equal(q->marks, OCT_MARK_BLINK);
    oct_view_image_finish(&row);
    free(q);
}

/* ---- the en face picture ---- */

/* octd's settings of it have become these. */
static void hear(struct oct_view_model *model, enum oct_projection projection, double first,
                 double last)
{
    struct oct_view_daemon d = model->daemon;
    d.known = d.reachable = d.has_enface = d.enface_told = true;
    d.enface = (struct oct_view_enface_settings){projection, {first, last}};
    d.answer_ns++;
    oct_view_model_hear(model, &d, &(struct oct_view_answer){0});
}

TEST(a_gridded_picture_grows_pixel_by_pixel)
{
    struct oct_view_model model = {.daemon.scan = {.pattern = OCT_SCAN_RADIAL, .n_bscans = 9}};
    struct oct_view_enface enface = {0};
    struct oct_view_image image = oct_scene_enface(4, 6);
    oct_scene_enface_fill(&image, 2, 33);
    oct_view_enface_set(&enface, &image);
    oct_scene_enface_fill(&image, 2, 50);
    ((float *)image.values)[2 * 6 + 4] = NAN;
    enface.keeps_pixels = oct_view_model_enface_is_gridded(&model);
    oct_view_enface_set(&enface, &image);
    assert_true(oct_view_enface_row(&enface, 2)[0] == 50);
    assert_true(!isnan(oct_view_enface_row(&enface, 2)[4])); /* it stays */
    model.daemon.scan.pattern = OCT_SCAN_RASTER;
    enface.keeps_pixels = oct_view_model_enface_is_gridded(&model);
    oct_view_enface_set(&enface, &image);
    assert_true(isnan(oct_view_enface_row(&enface, 2)[4]));
    oct_view_image_finish(&image);
    oct_view_enface_finish(&enface);
}

TEST(en_face_is_octds_picture_row_by_row)
{
    struct oct_view_enface enface = {0};
    struct oct_view_image image = oct_scene_enface(20, 120);
    oct_scene_enface_fill(&image, 7, 33);
    ((float *)image.values)[7 * 120 + 60] = 44;
    image.arrival_ns = 5 * S;
    oct_view_enface_set(&enface, &image);
    assert_true(enface.n_rows == 20 && enface.n_bscans == 20);
    assert_true(enface.n_columns == 120 && enface.n_lines == 120);
    assert_true(enface.newest_row == 7 && enface.arrival_ns == 5 * S);
    assert_true(enface.lo == 10 && enface.hi == 70);
    assert_true(oct_view_enface_row(&enface, 7)[59] == 33);
    assert_true(oct_view_enface_row(&enface, 7)[60] == 44);
    assert_true(isnan(oct_view_enface_row(&enface, 8)[60]));
    /* Only what changed is drawn anew. */
    uint64_t before = enface.serial;
    oct_view_enface_set(&enface, &image);
    assert_true(enface.serial == before);
    oct_scene_enface_fill(&image, 8, 50);
    image.header.lo = 20;
    oct_view_enface_set(&enface, &image);
    assert_true(enface.row_serial[8] > before && enface.row_serial[7] <= before);
    assert_true(enface.serial == enface.row_serial[8] && enface.newest_row == 8);
    assert_true(enface.lo == 20 && oct_view_enface_row(&enface, 8)[0] == 50);
    oct_view_image_finish(&image);
    /* Another size begins anew, none is none. */
    before = enface.serial;
    image = oct_scene_enface(4, 6);
    oct_view_enface_set(&enface, &image);
    assert_true(enface.n_rows == 4 && enface.n_columns == 6 && enface.row_serial[0] > before);
    oct_view_image_finish(&image);
    image = oct_scene_enface(0, 6);
    oct_view_enface_set(&enface, &image);
    assert_int_equal(enface.n_rows, 0);
    oct_view_image_finish(&image);
    oct_view_enface_finish(&enface);
}

/* Fills B-scans 0 .. n - 1 of the next volume's image. */
static void offer_growing(struct oct_view_enface *enface, uint32_t n, float value, const char *unit)
{
    struct oct_view_image image = oct_scene_enface(20, 4);
    for (uint32_t b = 0; b < n; b++)
        oct_scene_enface_fill(&image, b, value);
    snprintf(image.header.unit, sizeof(image.header.unit), "%s", unit);
    oct_view_enface_set(enface, &image);
    oct_view_image_finish(&image);
}

TEST(en_face_rows_stay_until_they_are_replaced)
{
    struct oct_view_enface enface = {0};
    offer_growing(&enface, 20, 60, "dB");
    assert_true(enface.lo == 10 && enface.hi == 70);
    uint64_t before = enface.serial;
    offer_growing(&enface, 3, 50, "dB");
    assert_true(oct_view_enface_row(&enface, 2)[0] == 50 && enface.newest_row == 2);
    assert_true(oct_view_enface_row(&enface, 3)[0] == 60 &&
                oct_view_enface_row(&enface, 19)[3] == 60);
    assert_true(enface.row_serial[2] > before && enface.row_serial[3] <= before);
    /* Black and white are of what is shown. */
    assert_true(enface.lo == 50 && fabs(enface.hi - 60) < 0.1);
    offer_growing(&enface, 20, 50, "dB");
    assert_true(enface.lo == 10 && enface.hi == 70);
    /* Rows of something else do not stay. */
    enface.forget = true;
    offer_growing(&enface, 5, 40, "dB");
    assert_true(oct_view_enface_row(&enface, 4)[0] == 40 &&
                isnan(oct_view_enface_row(&enface, 5)[0]));
    assert_true(enface.lo == 10 && enface.hi == 70);
    offer_growing(&enface, 1, 30, "counts^2");
    assert_true(oct_view_enface_row(&enface, 0)[0] == 30 &&
                isnan(oct_view_enface_row(&enface, 1)[0]));
    offer_growing(&enface, 0, 30, "counts^2");
    assert_true(oct_view_enface_row(&enface, 0)[0] == 30);
    oct_view_enface_finish(&enface);
}

MODEL_TEST(a_changed_projection_empties_rows_of_the_one_before)
{
    hear(model, OCT_PROJECTION_MEAN, 0.4, 0.6);
    offer_growing(&model->enface, 20, 60, "dB");
    hear(model, OCT_PROJECTION_MEAN, 0.4, 0.6);
    offer_growing(&model->enface, 2, 61, "dB");
    assert_true(oct_view_enface_row(&model->enface, 2)[0] == 60);
    hear(model, OCT_PROJECTION_MAX, 0.4, 0.6); /* somebody else's setting */
    offer_growing(&model->enface, 3, 70, "dB");
    assert_true(oct_view_enface_row(&model->enface, 2)[0] == 70);
    assert_true(isnan(oct_view_enface_row(&model->enface, 3)[0]));
}

TEST(en_face_of_many_rows_and_columns_is_thinned_out)
{
    const uint32_t V = 5000, M = 4100;
    struct oct_view_enface enface = {0};
    struct oct_view_image image = oct_scene_enface(V, M);
    for (uint32_t b = 0; b <= 4000; b++)
        oct_scene_enface_fill(&image, b, (float)b);
    ((float *)image.values)[4001 * M] = INFINITY; /* no value either: it did not come */
    image.header.bscan = 10;
    for (uint32_t c = 0; c < M; c++)
        ((float *)image.values)[100 * M + c] = (float)c;
    oct_view_enface_set(&enface, &image);
    assert_int_equal(enface.n_rows, OCT_VIEW_ENFACE_MOST);
    assert_int_equal(enface.n_columns, OCT_VIEW_ENFACE_MOST);
    assert_true(enface.n_bscans == V && enface.n_lines == M);
    for (uint32_t r = 0; r < enface.n_rows; r++) {
        double value = (double)oct_view_enface_row(&enface, r)[0];
        if (r == 100 * enface.n_rows / V) /* B-scans 98 .. 100 */
            continue;
        /* A row shows the last of its B-scans that came; 4001 came. */
        if (isnan(value))
            assert_true((uint64_t)r * V / enface.n_rows >= 4000);
        else
            assert_true((uint32_t)value * (uint64_t)enface.n_rows / V == r);
    }
    assert_true(oct_view_enface_row(&enface, 3999 * 2048 / 5000)[0] == 3999);
    assert_true(oct_view_enface_row(&enface, 4001 * 2048 / 5000)[0] == 4000);
    assert_true(oct_view_enface_row(&enface, 4)[0] == 10); /* of 10 .. 12 */
    const float *across = oct_view_enface_row(&enface, 100 * 2048 / 5000);
    for (uint32_t c = 0; c < enface.n_columns; c++)
        assert_true(fabs((double)across[c] - (double)c * M / enface.n_columns) <= 1);
    assert_int_equal(enface.newest_row, 4);
    /* In a volume that goes over the one before, the newest B-scan is the one that counts. */
    oct_scene_enface_fill(&image, 0, -7);
    oct_view_enface_set(&enface, &image);
    assert_true(oct_view_enface_row(&enface, 0)[0] == -7 && enface.newest_row == 0);
    oct_view_image_finish(&image);
    oct_view_enface_finish(&enface);
}

TEST(en_face_of_hostile_numbers_stays_a_picture)
{
    static const double limits[] = {NAN, INFINITY, -INFINITY, 1e308, -1e308, 0, 1e-320, 70};
    struct oct_view_enface enface = {0};
    struct oct_view_image image = oct_scene_enface(3, 4);
    struct oct_error err = {0};
    for (unsigned k = 0; k < 64; k++) {
        image.header.lo = limits[k % 8];
        image.header.hi = limits[k / 8];
        image.header.bscan = k % 2 ? UINT32_MAX : k;
        oct_view_enface_set(&enface, &image);
        assert_true(isfinite(enface.lo) && isfinite(enface.hi) && enface.lo < enface.hi);
        assert_true((float)enface.lo < (float)enface.hi);
        assert_true(enface.newest_row < enface.n_rows);
    }
    image.header.rank = 3;
    image.header.dims[2] = 1;
    assert_int_equal(oct_view_enface_check(&image.header, &err), OCT_E_FORMAT);
    assert_true(err.text[0] != '\0');
    uint64_t before = enface.serial;
    oct_scene_enface_fill(&image, 1, 5);
    oct_view_enface_set(&enface, &image);
    assert_true(enface.serial == before && isnan(oct_view_enface_row(&enface, 1)[0]));
    image.header.rank = 2;
    image.header.type = OCT_SAMPLE_U8;
    assert_int_equal(oct_view_enface_check(&image.header, NULL), OCT_E_FORMAT);
    oct_view_image_finish(&image);
    oct_view_enface_finish(&enface);
}

/* ---- images ---- */

TEST(an_image_whose_size_is_wrong_is_refused)
{
    struct oct_view_image image = oct_scene_enface(3, 4);
    struct oct_image_header header = image.header;
    const float values[64] = {7};
    assert_int_equal(oct_view_image_bytes(&header), 48);
    must_fail(oct_view_image_set(&image, &header, values, 47, &failure), OCT_E_FORMAT,
              "analysis/enface");
    assert_int_equal(oct_view_image_set(&image, &header, values, 49, NULL), OCT_E_FORMAT);
    assert_true(isnan(((const float *)image.values)[0])); /* as it was */
    assert_int_equal(oct_view_image_set(&image, &header, values, 48, NULL), OCT_OK);
    assert_true(((const float *)image.values)[0] == 7);
    header.dims[0] = 0;
    assert_int_equal(oct_view_image_bytes(&header), 0);
    header.dims[0] = header.dims[1] = UINT32_MAX;
    assert_true(oct_view_image_bytes(&header) == SIZE_MAX);
    header.rank = 3;
    header.dims[2] = UINT32_MAX;
    assert_true(oct_view_image_bytes(&header) == SIZE_MAX);
    header.dims[2] = 0;
    assert_true(oct_view_image_bytes(&header) == SIZE_MAX);
    header.rank = 4;
    assert_true(oct_view_image_bytes(&header) == SIZE_MAX);
    header.rank = 0;
    assert_true(oct_view_image_bytes(&header) == SIZE_MAX);
    oct_view_image_finish(&image);
    assert_null(image.values);
}

/* ---- en face by key ---- */

static void answer(struct oct_view_model *model, enum oct_view_wish wish, bool ok, const char *text)
{
    const struct oct_view_daemon d = model->daemon;
    oct_scene_hear(model, &d, wish, ok, text);
}

/* The next setting is this one, with this value; octd takes it. */
static void expect_set(struct oct_view_model *model, enum oct_view_wish wish, const char *value)
{
    char text[OCT_VIEW_LABEL_BYTES] = "";
    assert_int_equal(oct_view_model_take_wish(model, text), wish);
    assert_string_equal(text, value);
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_NONE);
    answer(model, wish, true, value);
}

static void expect_nothing(struct oct_view_model *model)
{
    char text[OCT_VIEW_LABEL_BYTES];
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_NONE);
}

TEST(en_face_keys_are_sent_to_octd_one_at_a_time)
{
    struct oct_view_model model;
    const struct oct_view_enface_wishes *w = &model.enface_wishes;
    oct_view_model_init(&model, "x", true);
    hear(&model, OCT_PROJECTION_MEAN, 0.4, 0.6);
    expect_nothing(&model); /* what octd has is shown, nothing is sent on connecting */
    oct_view_model_apply(&model, OCT_ACTION_PROJECTION, 1);
    assert_int_equal(w->octds.projection, OCT_PROJECTION_MEAN); /* until octd has it */
    expect_set(&model, OCT_WISH_PROJECTION, "max");
    assert_int_equal(w->octds.projection, OCT_PROJECTION_MAX);
    expect_nothing(&model);
    oct_view_model_apply(&model, OCT_ACTION_SLAB_DOWN, 1); /* which shows the slab, too */
    expect_set(&model, OCT_WISH_PROJECTION, "slab");
    expect_set(&model, OCT_WISH_SLAB_FIRST, "0.4100");
    expect_set(&model, OCT_WISH_SLAB_LAST, "0.6100");
    expect_nothing(&model);
    oct_view_model_apply(&model, OCT_ACTION_SLAB_THICKER, 5);
    expect_set(&model, OCT_WISH_SLAB_FIRST, "0.3850");
    expect_set(&model, OCT_WISH_SLAB_LAST, "0.6350");
    /* By the other end first where the slab would lie upside down in between. */
    oct_view_model_apply(&model, OCT_ACTION_SLAB_DOWN, 26);
    expect_set(&model, OCT_WISH_SLAB_LAST, "0.8950");
    expect_set(&model, OCT_WISH_SLAB_FIRST, "0.6450");
    oct_view_model_apply(&model, OCT_ACTION_SLAB_UP, 1000); /* as far as it goes */
    expect_set(&model, OCT_WISH_SLAB_FIRST, "0.0000");
    expect_set(&model, OCT_WISH_SLAB_LAST, "0.2500");
    oct_view_model_apply(&model, OCT_ACTION_SLAB_THINNER, 1000);
    expect_set(&model, OCT_WISH_SLAB_FIRST, "0.1200");
    expect_set(&model, OCT_WISH_SLAB_LAST, "0.1300");
    oct_view_model_apply(&model, OCT_ACTION_SLAB_THICKER, 1000);
    expect_set(&model, OCT_WISH_SLAB_FIRST, "0.0000");
    expect_set(&model, OCT_WISH_SLAB_LAST, "1.0000");
    oct_view_model_apply(&model, OCT_ACTION_PROJECTION, 1);
    expect_set(&model, OCT_WISH_PROJECTION, "mean");
    /* Somebody else sets it: that is what is shown, and where the keys go on. */
    hear(&model, OCT_PROJECTION_SLAB, 0.2, 0.3);
    assert_true(w->octds.projection == OCT_PROJECTION_SLAB && w->octds.slab.first == 0.2);
    oct_view_model_apply(&model, OCT_ACTION_SLAB_UP, 1);
    expect_set(&model, OCT_WISH_SLAB_FIRST, "0.1900");
    expect_set(&model, OCT_WISH_SLAB_LAST, "0.2900");
    expect_nothing(&model);
    oct_view_model_finish(&model);
}

MODEL_TEST(a_held_key_moves_the_slab_and_the_newest_place_is_sent)
{
    char text[OCT_VIEW_LABEL_BYTES];
    hear(model, OCT_PROJECTION_SLAB, 0.4, 0.6);
    oct_view_model_apply(model, OCT_ACTION_SLAB_DOWN, 1);
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_SLAB_FIRST);
    for (int i = 0; i < 9; i++) /* octd has not answered yet */
        oct_view_model_apply(model, OCT_ACTION_SLAB_DOWN, 1);
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_NONE);
    assert_string_equal(model->message, "");
    /* The eye and the recording do not wait for the slab to come to rest. */
    oct_view_model_apply(model, OCT_ACTION_RECORD, 1);
    assert_true(oct_view_model_is_recording(model));
    hear(model, OCT_PROJECTION_SLAB, 0.41, 0.6); /* a status of meanwhile */
    answer(model, OCT_WISH_SLAB_FIRST, true, "0.4100");
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_RECORD);
    answer(model, OCT_WISH_RECORD, true, "");
    expect_set(model, OCT_WISH_SLAB_FIRST, "0.5000");
    expect_set(model, OCT_WISH_SLAB_LAST, "0.7000");
    expect_nothing(model);
    /* While octd is asked to record, no key interferes. */
    oct_view_model_apply(model, OCT_ACTION_RECORD, 1);
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_RECORD);
    oct_view_model_apply(model, OCT_ACTION_SLAB_UP, 1);
    expect_nothing(model);
    answer(model, OCT_WISH_RECORD, true, "");
    expect_set(model, OCT_WISH_SLAB_FIRST, "0.4900");
    expect_set(model, OCT_WISH_SLAB_LAST, "0.6900");
    /* Somebody else moves one end beyond the other, which is still wanted: then octd's counts. */
    oct_view_model_apply(model, OCT_ACTION_SLAB_DOWN, 25);
    expect_set(model, OCT_WISH_SLAB_LAST, "0.9400");
    hear(model, OCT_PROJECTION_SLAB, 0.1, 0.2);
    expect_nothing(model);
}

/* octd took one end after a status in which somebody else had moved the slab: never upside down. */
MODEL_TEST(an_answer_that_does_not_fit_the_slab_waits_for_a_status)
{
    char text[OCT_VIEW_LABEL_BYTES];
    const struct oct_view_enface_wishes *w = &model->enface_wishes;
    hear(model, OCT_PROJECTION_SLAB, 0.4, 0.6);
    oct_view_model_apply(model, OCT_ACTION_SLAB_UP, 35);
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_SLAB_FIRST);
    assert_string_equal(text, "0.0500");
    hear(model, OCT_PROJECTION_SLAB, 0.0, 0.03);
    answer(model, OCT_WISH_SLAB_FIRST, true, text);
    assert_true(w->octds.slab.first == 0 && w->octds.slab.last == 0.03);
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_SLAB_LAST);
    answer(model, OCT_WISH_SLAB_LAST, false, "no");
    assert_true(w->wanted.slab.first == 0 && w->wanted.slab.last == 0.03);
    expect_nothing(model);
}

MODEL_TEST(what_octd_refuses_is_wanted_no_more)
{
    char text[OCT_VIEW_LABEL_BYTES];
    hear(model, OCT_PROJECTION_MEAN, 0.4, 0.6);
    oct_view_model_apply(model, OCT_ACTION_SLAB_DOWN, 1);
    assert_int_equal(oct_view_model_take_wish(model, text), OCT_WISH_PROJECTION);
    answer(model, OCT_WISH_PROJECTION, false, "not while it rains");
    assert_string_equal(model->message, "octd refused: not while it rains");
    expect_nothing(model);
    assert_int_equal(model->enface_wishes.octds.projection, OCT_PROJECTION_MEAN);
    oct_view_model_apply(model, OCT_ACTION_PROJECTION, 1); /* on from where octd is */
    expect_set(model, OCT_WISH_PROJECTION, "max");
}

TEST(en_face_keys_say_why_they_do_nothing)
{
    static const enum oct_view_action keys[] = {OCT_ACTION_PROJECTION, OCT_ACTION_SLAB_UP,
                                                OCT_ACTION_SLAB_DOWN, OCT_ACTION_SLAB_THINNER,
                                                OCT_ACTION_SLAB_THICKER};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct oct_view_model model;
        struct oct_view_daemon d = {.known = true, .reachable = true, .answer_ns = 1};
        oct_view_model_init(&model, "x", true);
        oct_view_model_apply(&model, keys[i], 1);
        assert_non_null(strstr(model.message, "no control endpoint"));
        model.has_control = true;
        oct_view_model_apply(&model, keys[i], 1);
        assert_non_null(strstr(model.message, "has not answered yet"));
        oct_view_model_hear(&model, &d, &(struct oct_view_answer){0});
        oct_view_model_apply(&model, keys[i], 1);
        assert_string_equal(model.message, "no en face from this octd");
        d.has_enface = true;
        d.answer_ns++;
        oct_view_model_hear(&model, &d, &(struct oct_view_answer){0});
        oct_view_model_apply(&model, keys[i], 1);
        assert_non_null(strstr(model.message, "cannot be set"));
        expect_nothing(&model);
        oct_view_model_finish(&model);
    }
}

/* ---- buttons ---- */

static const char *const states[] = {"watching", "idle",     "live",  "recording",
                                     "frozen",   "playback", "asking"};
#define N_STATES (sizeof(states) / sizeof(states[0]))

/* Brings a model into a state, with all that the row could have to offer. */
static void enter(struct oct_view_model *m, unsigned state, bool operators)
{
    m->has_control = m->daemon.known = m->daemon.reachable = true;
    snprintf(m->daemon.state, sizeof(m->daemon.state), "%s", "running");
    snprintf(m->daemon.record.file, sizeof(m->daemon.record.file), "a.h5");
    m->daemon.last.bscans_most = 100;
    m->daemon.last.length_s = 19.8;
    m->daemon.average_bscans = 16;
    m->settings.operators = operators;
    if (state == OCT_SITUATION_WATCHING)
        m->daemon.reachable = false;
    if (state == OCT_SITUATION_IDLE)
        snprintf(m->daemon.state, sizeof(m->daemon.state), "%s", "idle");
    m->daemon.record.active = state == OCT_SITUATION_RECORDING;
    m->frozen = state == OCT_SITUATION_FROZEN;
    m->playback.active = state == OCT_SITUATION_PLAYBACK;
    m->patient.asks = state == OCT_SITUATION_ASKING ? OCT_ASKS_LABEL : OCT_ASKS_NOTHING;
    assert_int_equal(oct_view_situation(m), state);
}

/* The labels of a row in one line. */
static void row_of(const struct oct_view_model *m, enum oct_view_button_row row, char *text,
                   size_t n_bytes)
{
    struct oct_view_button b[OCT_VIEW_MOST_BUTTONS];
    unsigned n = oct_view_buttons(m, b);
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < n; i++)
        if (b[i].row == row)
            used += (size_t)snprintf(text + used, n_bytes - used,
                                     b[i].look == OCT_BUTTON_OFF ? "%s(%s)" : "%s%s",
                                     used ? " | " : "", b[i].label);
}

/* Returns where it is. */
static struct oct_view_rect click(struct oct_viewer_stage *s, struct oct_view_input *input,
                                  enum oct_view_action action)
{
    struct oct_view_button b[OCT_VIEW_MOST_BUTTONS];
    unsigned n = oct_view_buttons(&s->model, b), i = 0;
    SDL_Event event = {.button = {.type = SDL_MOUSEBUTTONDOWN, .button = SDL_BUTTON_LEFT}};
    assert_int_equal(oct_draw_frame(s->draw, &s->model, NULL), OCT_OK);
    while (i < n && b[i].action != action)
        i++;
    assert_true(i < n);
    struct oct_view_rect r = oct_draw_layout(s->draw)->button[i];
    event.button.x = r.x + r.w / 2;
    event.button.y = r.y + r.h / 2;
    oct_view_input_take(input, &event, &s->model, s->draw, 1);
    return r;
}

/* In brackets: off. */
TEST(every_state_has_its_buttons)
{
    static const char *const lab[N_STATES] = {
        "(Record) | (Save) | (Playback) | Freeze | (Back) | (Forward) | (Average) | (Flow) | "
        "(Layers) | Auto | Layout | Measure | Snapshot | Help",
        "(Record) | (Save) | Playback | Start | (Back) | (Forward) | (Average) | (Flow) | "
        "(Layers) | (Auto) | (Layout) | (Measure) | (Snapshot) | Help",
        "Record | Save the last 20 s | Playback | Freeze | Guide | (More) | Average 16 | Flow | "
        "Layers | Auto | Layout | Measure | Snapshot | Help",
        "Stop | Save the last 20 s | (Playback) | Freeze | (Back) | (Forward) | Average 16 | Flow "
        "| Layers | Auto | Layout | Measure | Snapshot | Help",
        "Record | Save the last 20 s | Playback | Go on | Back | Forward | (Average) | (Flow) | "
        "Layers | Auto | Layout | Measure | Snapshot | Help",
        "(Stop) | Export | Live | Play | Back | Forward | Keep | Repeat | Layers | Auto | Report "
        "| Measure | Save PNG | Help",
        "Cancel | Record without a label | (Playback) | (Freeze) | (Back) | (Forward) | (Average) "
        "| (Flow) | (Layers) | (Auto) | (Layout) | (Measure) | (Snapshot) | Help",
    };
    char text[512], wanted[512];
    for (unsigned k = 0; k < 2 * N_STATES; k++) {
        static struct oct_view_model m;
        oct_view_model_init(&m, "x", true);
        enter(&m, k % N_STATES, k >= N_STATES);
        row_of(&m, OCT_BUTTONS_BELOW, text, sizeof(text));
        snprintf(wanted, sizeof(wanted), "%s", lab[k % N_STATES]);
        if (k >= N_STATES) { /* the operator's, which follow no cells */
            char *more = strstr(wanted, "(More)"), rest[512];
            if (more) {
                snprintf(rest, sizeof(rest), "%s", more + strlen("(More)"));
                snprintf(more, sizeof(wanted) - (size_t)(more - wanted), "(Forward)%s", rest);
            }
            const bool off =
                k % N_STATES == OCT_SITUATION_IDLE || k % N_STATES == OCT_SITUATION_ASKING;
            const char *end = strstr(wanted, off ? "(Snapshot)" : "Snapshot");
            char *at = strstr(wanted, "Layout"), tail[64];
            at = at ? at : strstr(wanted, "Report");
            at -= at[-1] == '(';
            end = end ? end : strstr(wanted, "Save PNG");
            snprintf(tail, sizeof(tail), "%s", end);
            snprintf(at, sizeof(wanted) - (size_t)(at - wanted), "%s | %s",
                     off ? "(Brighter) | (Darker)" : "Brighter | Darker", tail);
        }
        assert_string_equal(text, wanted);
        row_of(&m, OCT_BUTTONS_PATIENT, text, sizeof(text));
        assert_string_equal(text, k % N_STATES == OCT_SITUATION_PLAYBACK
                                      ? "OD | OS | no pseudonym | Exams"
                                      : "OD | OS | no pseudonym | Next patient");
        oct_view_model_finish(&m);
    }
}

TEST(what_nobody_can_use_is_off)
{
    static struct oct_view_model m;
    char text[512];
    oct_view_model_init(&m, "x", true);
    row_of(&m, OCT_BUTTONS_PATIENT, text, sizeof(text));
    assert_string_equal(text, ""); /* without a control endpoint there is no patient */
    row_of(&m, OCT_BUTTONS_BELOW, text, sizeof(text));
    assert_non_null(strstr(text, "(Record)"));
    enter(&m, OCT_SITUATION_LIVE, false);
    m.daemon.last.bscans_most = 0;
    m.daemon.record.file[0] = '\0';
    row_of(&m, OCT_BUTTONS_BELOW, text, sizeof(text));
    assert_non_null(strstr(text, "(Save) | (Playback)"));
    enter(&m, OCT_SITUATION_PLAYBACK, false);
    m.daemon.record.active = true; /* what goes on can be stopped from anywhere */
    row_of(&m, OCT_BUTTONS_BELOW, text, sizeof(text));
    assert_int_equal(strncmp(text, "Stop | ", 7), 0);
    oct_view_model_finish(&m);
}

/* Nothing moves: whatever the state, alarms, wishes and labels, every button below the picture has
 * one place, and the picture one size; they are 44 pixels high and wide, 8 apart (96 dpi). */
TEST(buttons_and_picture_stay_where_they_are)
{
    static const int sizes[][2] = {{1280, 800}, {1920, 1080}, {3840, 2160}};
    struct oct_view_button b[OCT_VIEW_MOST_BUTTONS];
    for (unsigned z = 0; z < 3; z++) {
        struct oct_view_layout first = {.margin = 0};
        for (unsigned k = 0; k < 4 * N_STATES; k++) {
            struct oct_viewer_stage *s = oct_viewer_stage_open_at(sizes[z], NULL);
            enter(&s->model, k % N_STATES, k >= 2 * N_STATES);
            s->model.settings.guide = false; /* its words are beside the picture */
            if (k / N_STATES % 2) {          /* two alarms, long labels */
                s->model.daemon.record.active = true;
                s->model.daemon.last.length_s = 1234;
                oct_view_model_tick(&s->model, UINT64_C(60000000000));
            }
            assert_int_equal(oct_draw_frame(s->draw, &s->model, NULL), OCT_OK);
            const struct oct_view_layout *l = oct_draw_layout(s->draw);
            const unsigned n = oct_view_buttons(&s->model, b);
            if (k == 0)
                first = *l;
            assert_memory_equal(&l->bscan, &first.bscan, sizeof(l->bscan));
            assert_memory_equal(&l->banner, &first.banner, sizeof(l->banner));
            for (unsigned i = 0; i < n && b[i].row == OCT_BUTTONS_BELOW; i++) {
                const struct oct_view_rect r = l->button[i];
                assert_memory_equal(&r, &first.button[i], sizeof(r));
                assert_true(r.w >= 44 && r.h >= 44);
                assert_true(i == 0 || r.x - l->button[i - 1].x - l->button[i - 1].w >= 8);
            }
            oct_viewer_stage_close(s);
        }
    }
}

/* A press on one that is off does nothing. */
TEST(a_button_that_is_off_does_nothing)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_input input;
    oct_view_input_init(&input);
    enter(&s->model, OCT_SITUATION_RECORDING, false);
    s->model.frozen = false;
    click(s, &input, OCT_ACTION_OLDER);
    assert_false(s->model.frozen);
    assert_int_equal(s->model.back, 0);
    enter(&s->model, OCT_SITUATION_IDLE, false);
    click(s, &input, OCT_ACTION_RECORD);
    assert_null(oct_view_wishes_find(&s->model.wishes, OCT_WISH_RECORD));
    assert_int_equal(s->model.patient.asks, OCT_ASKS_NOTHING);
    oct_viewer_stage_close(s);
}

/* No button of the operator profile is refused by it. */
TEST(the_profile_allows_its_own_buttons)
{
    struct oct_view_button b[OCT_VIEW_MOST_BUTTONS];
    for (unsigned k = 0; k < N_STATES; k++) {
        static struct oct_view_model m;
        oct_view_model_init(&m, "x", true);
        enter(&m, k, true);
        unsigned n = oct_view_buttons(&m, b);
        for (unsigned i = 0; i < n; i++)
            assert_true(oct_view_action_is_operators(b[i].action) ||
                        b[i].action == OCT_ACTION_LEAVE || b[i].look == OCT_BUTTON_OFF);
        oct_view_model_finish(&m);
    }
}

/* At 1280 pixels each button has room for its brief label at least, whole. */
TEST(the_row_is_readable_at_1280_pixels)
{
    struct oct_view_button b[OCT_VIEW_MOST_BUTTONS];
    for (unsigned k = 0; k < 2 * N_STATES; k++) {
        struct oct_viewer_stage *s = oct_viewer_stage_open();
        enter(&s->model, k % N_STATES, k >= N_STATES);
        assert_int_equal(oct_draw_frame(s->draw, &s->model, NULL), OCT_OK);
        const struct oct_view_layout *l = oct_draw_layout(s->draw);
        unsigned n = oct_view_buttons(&s->model, b);
        for (unsigned i = 0; i < n; i++) {
            struct oct_view_rect r = l->button[i];
            char lines[2][sizeof(b[i].brief)] = {"", ""};
            sscanf(b[i].brief, "%23s %23[^\n]", lines[0], lines[1]);
            assert_true(oct_draw_text_width(s->draw, OCT_TEXT_NORMAL, lines[0]) < r.w);
            assert_true(oct_draw_text_width(s->draw, OCT_TEXT_NORMAL, lines[1]) < r.w);
            assert_true(r.h > oct_draw_line_height(s->draw, OCT_TEXT_NORMAL));
            assert_true(r.x >= 0 && r.x + r.w <= 1280);
            for (unsigned j = 0; j < i; j++) {
                struct oct_view_rect o = l->button[j];
                assert_true(o.x + o.w <= r.x || r.x + r.w <= o.x || o.y + o.h <= r.y ||
                            r.y + r.h <= o.y);
            }
        }
        oct_viewer_stage_close(s);
    }
}

TEST(clicks_do_what_the_buttons_say)
{
    struct oct_viewer_stage *s = oct_viewer_stage_open();
    struct oct_view_model *m = &s->model;
    struct oct_view_input input;
    oct_view_input_init(&input);
    enter(m, OCT_SITUATION_LIVE, true);
    click(s, &input, OCT_ACTION_RIGHT_EYE);
    assert_string_equal(oct_view_wishes_find(&m->wishes, OCT_WISH_EYE), "OD");
    click(s, &input, OCT_ACTION_PSEUDONYM);
    assert_true(m->typing);
    oct_view_model_type(m, "P-5");
    click(s, &input, OCT_ACTION_RECORD); /* ends the typing, as Enter does */
    assert_false(m->typing);
    assert_string_equal(oct_view_wishes_find(&m->wishes, OCT_WISH_PSEUDONYM), "P-5");
    if (m->patient.asks == OCT_ASKS_SAME) /* nobody heard octd's own label yet */
        click(s, &input, OCT_ACTION_RECORD);
    assert_non_null(oct_view_wishes_find(&m->wishes, OCT_WISH_RECORD));
    oct_view_wishes_drop(&m->wishes, OCT_WISH_NONE);
    click(s, &input, OCT_ACTION_PSEUDONYM);
    oct_view_model_type(m, "nobody");
    click(s, &input, OCT_ACTION_NEXT_PATIENT); /* what was typed goes with the patient */
    assert_null(oct_view_wishes_find(&m->wishes, OCT_WISH_PSEUDONYM));
    struct oct_view_rect record = click(s, &input, OCT_ACTION_RECORD);
    assert_int_equal(m->patient.asks, OCT_ASKS_LABEL);
    /* The second click of a double click records nothing. */
    struct oct_view_rect cancel = click(s, &input, OCT_ACTION_LEAVE);
    assert_true(oct_view_rect_holds(cancel, record.x + record.w / 2, record.y + record.h / 2));
    assert_int_equal(m->patient.asks, OCT_ASKS_NOTHING);
    assert_false(input.quit);
    click(s, &input, OCT_ACTION_FREEZE);
    assert_true(m->frozen);
    oct_viewer_stage_close(s);
}

/* ---- settings ---- */

TEST(settings_come_back_and_wrong_ones_are_passed_over)
{
    static const char path[] = "new/folder/viewer.ini";
    struct oct_view_model a, b;
    struct oct_error err = {0};
    oct_view_model_init(&a, "x", true);
    oct_view_model_init(&b, "x", true);
    assert_int_equal(oct_view_settings_load(&a, path, &err), OCT_OK); /* none yet */
    oct_view_model_apply(&a, OCT_ACTION_LAYOUT, 1);
    oct_view_model_apply(&a, OCT_ACTION_PALETTE, 1);
    oct_view_model_apply(&a, OCT_ACTION_LEVEL_UP, 7);
    oct_view_model_apply(&a, OCT_ACTION_GAMMA_UP, 1);
    oct_view_model_apply(&a, OCT_ACTION_CELLS, 1);
    oct_view_model_apply(&a, OCT_ACTION_AVERAGE, 1);
    for (int i = 0; i < 2; i++)
        oct_view_model_apply(&a, OCT_ACTION_LAYERS, 1);
    oct_view_model_apply(&a, OCT_ACTION_ROLLOFF, 1);
    oct_view_model_apply(&a, OCT_ACTION_DIM, 1);
    oct_view_model_apply(&a, OCT_ACTION_SOUND, 1);
    assert_false(b.settings.sound || b.settings.light != OCT_LIGHT_FULL);
    assert_int_equal(oct_view_settings_save(&a, path, &err), OCT_OK);
    assert_int_equal(oct_view_settings_save(&a, path, &err), OCT_OK);
    assert_int_equal(oct_view_settings_load(&b, path, &err), OCT_OK);
    assert_int_equal(b.settings.arrangement, OCT_ARRANGEMENT_TWO);
    assert_int_equal(b.contrast.palette, OCT_PALETTE_INVERTED);
    assert_true(b.settings.average && !b.settings.cells && !b.settings.layers &&
                !b.settings.rolloff);
    assert_true(b.settings.light == OCT_LIGHT_HALF && b.settings.sound);
    assert_true(b.contrast.range == OCT_CONTRAST_MANUAL && b.contrast.lo == 7 &&
                b.contrast.hi == 67);
    assert_true(fabs(b.contrast.gamma - 1.1) < 1e-5);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("[view]\nlayout = seven\ngamma = nan\nblack = 9\nwhite = 3\nunknown = 1\n", file);
    fclose(file);
    assert_int_equal(oct_view_settings_load(&b, path, &err), OCT_E_FORMAT);
    assert_int_equal(b.settings.arrangement, OCT_ARRANGEMENT_TWO);
    assert_true(b.contrast.hi > b.contrast.lo);
    /* What an octview wrote that made the en face picture itself: octd's now, and no mistake. */
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("[view]\nlayout = four\nen_face = maximum\nslab_first = 0.3\nslab_last = 0.7\n", file);
    fclose(file);
    assert_int_equal(oct_view_settings_load(&b, path, &err), OCT_OK);
    assert_int_equal(b.settings.arrangement, OCT_ARRANGEMENT_FOUR);
    assert_false(b.enface_wishes.wants_projection || b.enface_wishes.wants_first);
    remove(path);
    assert_int_equal(oct_view_settings_save(&a, "/dev/null/a/b.ini", &err), OCT_E_IO);
    oct_view_model_finish(&a);
    oct_view_model_finish(&b);
}
