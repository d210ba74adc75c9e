/* The viewer without zmq and SDL: counting, model, contrast, words, layout, conversion. */
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "viewer/model/clock.h"
#include "viewer/model/layout.h"
#include "viewer/model/model.h"
#include "viewer/model/picture.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define S OCT_NS_PER_S

static void tell(struct oct_view_tally *tally, uint64_t frame_num, const char *acquisition,
                 uint64_t now_ns)
{
    struct oct_picture_header header = oct_scene_header(frame_num, acquisition);
    oct_view_tally_add(tally, &header, now_ns);
}

/* ---- counting ---- */

static void skipped_are_the_gaps_within_an_acquisition(void **state)
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

static void the_rate_is_what_arrives_a_second(void **state)
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

static void freezing_keeps_the_picture_while_counting_goes_on(void **state)
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

static void silence_turns_live_into_stalled_and_back(void **state)
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

static void the_status_line_says_state_rate_loss_place_and_contrast(void **state)
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
    oct_view_tally_add_bad(&tally);
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

static void contrast_maps_pixels_through_the_published_limits(void **state)
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

static void contrast_stays_a_range_whatever_is_published_or_pressed(void **state)
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

static void conversion_turns_the_picture_upright(void **state)
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

static void a_picture_whose_size_is_wrong_is_refused(void **state)
{
    struct oct_view_picture picture = oct_scene_layered(10, 1);
    struct oct_picture_header header = oct_scene_header(9, "a");
    struct oct_error err = {0};
    uint8_t pixel = 0;

    assert_int_equal(oct_view_picture_set(&picture, &header, &pixel, 1, &err), OCT_E_FORMAT);
    assert_non_null(strstr(err.text, "120 x 100"));
    assert_int_equal(picture.header.frame_num, 1);
    header.n_lines = header.depth = UINT32_MAX;
    assert_int_equal(oct_view_picture_set(&picture, &header, &pixel, 1, NULL), OCT_E_FORMAT);
    header.n_lines = header.depth = 0;
    assert_int_equal(oct_view_picture_set(&picture, &header, &pixel, 0, NULL), OCT_E_FORMAT);
    oct_view_picture_finish(&picture);
}

/* ---- layout ---- */

static void layout_keeps_proportions_and_breaks_lines_between_phrases(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skipped_are_the_gaps_within_an_acquisition),
        cmocka_unit_test(the_rate_is_what_arrives_a_second),
        cmocka_unit_test(freezing_keeps_the_picture_while_counting_goes_on),
        cmocka_unit_test(silence_turns_live_into_stalled_and_back),
        cmocka_unit_test(the_status_line_says_state_rate_loss_place_and_contrast),
        cmocka_unit_test(contrast_maps_pixels_through_the_published_limits),
        cmocka_unit_test(contrast_stays_a_range_whatever_is_published_or_pressed),
        cmocka_unit_test(conversion_turns_the_picture_upright),
        cmocka_unit_test(a_picture_whose_size_is_wrong_is_refused),
        cmocka_unit_test(layout_keeps_proportions_and_breaks_lines_between_phrases),
    };
    return cmocka_run_group_tests_name("viewer", tests, NULL, NULL);
}
