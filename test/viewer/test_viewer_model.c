/* What the viewer makes of pictures and of keys, without zmq and SDL. */
#include "test/rig/tap.h"
#include "test/rig/viewer_scene.h"
#include "viewer/model/clock.h"
#include "viewer/model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S OCT_NS_PER_S
#define MS OCT_NS_PER_MS

/* ---- keys ---- */

static void every_action_has_a_key_and_no_key_has_two(void **state)
{
    (void)state;
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
    oct_view_model_apply(&model, OCT_ACTION_LOCK, 1);
    assert_true(model.settings.operators);
    oct_view_model_apply(&model, OCT_ACTION_FREEZE, 1);
    oct_view_model_apply(&model, OCT_ACTION_LAYOUT, 1);
    oct_view_model_apply(&model, OCT_ACTION_ZOOM_IN, 3);
    oct_view_model_apply(&model, OCT_ACTION_MEASURE, 1);
    assert_false(model.frozen || model.measuring);
    assert_int_equal(model.settings.arrangement, OCT_ARRANGEMENT_ALONE);
    assert_true(model.lens.zoom == 1);
    oct_view_model_apply(&model, OCT_ACTION_LEVEL_UP, 5);
    assert_true(model.contrast.lo == 5);
    oct_view_model_apply(&model, OCT_ACTION_RECORD, 1);
    assert_int_equal(model.wish, OCT_WISH_RECORD);
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
    (void)state;
    for (unsigned i = 0; i < 256; i++) {
        double l = lightness(oct_view_palette_argb(OCT_PALETTE_UNIFORM, (uint8_t)i));
        assert_true(fabs(l - i / 2.55) < 1.0);
        assert_int_equal(oct_view_palette_argb(OCT_PALETTE_INVERTED, (uint8_t)i),
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
    (void)state;
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
    assert_int_equal(model.shown.header.frame_num, 15); /* kept: 0 .. 20 */
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

/* ---- en face ---- */

static void hear(struct oct_view_model *model, enum oct_projection projection, double first,
                 double last);

static void en_face_is_octds_picture_row_by_row(void **state)
{
    (void)state;
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

static void en_face_rows_stay_until_they_are_replaced(void **state)
{
    (void)state;
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
    oct_view_enface_forget(&enface);
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

static void a_changed_projection_empties_rows_of_the_one_before(void **state)
{
    (void)state;
    struct oct_view_model model;

    oct_view_model_init(&model, "x", true);
    hear(&model, OCT_PROJECTION_MEAN, 0.4, 0.6);
    offer_growing(&model.enface, 20, 60, "dB");
    hear(&model, OCT_PROJECTION_MEAN, 0.4, 0.6);
    offer_growing(&model.enface, 2, 61, "dB");
    assert_true(oct_view_enface_row(&model.enface, 2)[0] == 60);
    hear(&model, OCT_PROJECTION_MAX, 0.4, 0.6); /* somebody else's setting */
    offer_growing(&model.enface, 3, 70, "dB");
    assert_true(oct_view_enface_row(&model.enface, 2)[0] == 70);
    assert_true(isnan(oct_view_enface_row(&model.enface, 3)[0]));
    oct_view_model_finish(&model);
}

static void en_face_of_many_rows_and_columns_is_thinned_out(void **state)
{
    (void)state;
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

static void en_face_of_hostile_numbers_stays_a_picture(void **state)
{
    (void)state;
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

static void an_image_whose_size_is_wrong_is_refused(void **state)
{
    (void)state;
    struct oct_view_image image = oct_scene_enface(3, 4);
    struct oct_image_header header = image.header;
    struct oct_error err = {0};
    const float values[64] = {7};

    assert_int_equal(oct_view_image_bytes(&header), 48);
    assert_int_equal(oct_view_image_set(&image, &header, values, 47, &err), OCT_E_FORMAT);
    assert_non_null(strstr(err.text, "analysis/enface"));
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

/* ---- quality ---- */

static void blinks_and_motion_stand_on_the_timeline(void **state)
{
    (void)state;
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

static void a_moment_shows_the_worst_of_its_rows(void **state)
{
    (void)state;
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

static void the_quality_of_hostile_rows_is_finite(void **state)
{
    (void)state;
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

/* ---- en face by key ---- */

static void hear(struct oct_view_model *model, enum oct_projection projection, double first,
                 double last)
{
    struct oct_view_daemon d = model->daemon;

    d.known = d.reachable = d.has_enface = d.enface_told = true;
    d.enface = (struct oct_view_enface_settings){projection, {first, last}};
    d.answer_ns++;
    oct_view_model_hear(model, &d, &(struct oct_view_answer){0});
}

static void answer(struct oct_view_model *model, enum oct_view_wish wish, bool ok, const char *text)
{
    struct oct_view_daemon d = model->daemon;
    struct oct_view_answer reply = {.wish = wish, .ok = ok};

    snprintf(reply.text, sizeof(reply.text), "%s", text);
    oct_view_model_hear(model, &d, &reply);
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

static void en_face_keys_are_sent_to_octd_one_at_a_time(void **state)
{
    (void)state;
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

static void a_held_key_moves_the_slab_and_the_newest_place_is_sent(void **state)
{
    (void)state;
    struct oct_view_model model;
    char text[OCT_VIEW_LABEL_BYTES];

    oct_view_model_init(&model, "x", true);
    hear(&model, OCT_PROJECTION_SLAB, 0.4, 0.6);
    oct_view_model_apply(&model, OCT_ACTION_SLAB_DOWN, 1);
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_WISH_SLAB_FIRST);
    for (int i = 0; i < 9; i++) /* octd has not answered yet */
        oct_view_model_apply(&model, OCT_ACTION_SLAB_DOWN, 1);
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_WISH_NONE);
    assert_string_equal(model.message, "");
    /* The eye and the recording do not wait for the slab to come to rest. */
    oct_view_model_apply(&model, OCT_ACTION_RECORD, 1);
    assert_true(oct_view_model_is_recording(&model));
    hear(&model, OCT_PROJECTION_SLAB, 0.41, 0.6); /* a status of meanwhile */
    answer(&model, OCT_WISH_SLAB_FIRST, true, "0.4100");
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_WISH_RECORD);
    answer(&model, OCT_WISH_RECORD, true, "");
    expect_set(&model, OCT_WISH_SLAB_FIRST, "0.5000");
    expect_set(&model, OCT_WISH_SLAB_LAST, "0.7000");
    expect_nothing(&model);
    /* While octd is asked to record, no key interferes. */
    oct_view_model_apply(&model, OCT_ACTION_RECORD, 1);
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_WISH_RECORD);
    oct_view_model_apply(&model, OCT_ACTION_SLAB_UP, 1);
    expect_nothing(&model);
    answer(&model, OCT_WISH_RECORD, true, "");
    expect_set(&model, OCT_WISH_SLAB_FIRST, "0.4900");
    expect_set(&model, OCT_WISH_SLAB_LAST, "0.6900");
    /* Somebody else moves one end beyond the other, which is still wanted: then octd's counts. */
    oct_view_model_apply(&model, OCT_ACTION_SLAB_DOWN, 25);
    expect_set(&model, OCT_WISH_SLAB_LAST, "0.9400");
    hear(&model, OCT_PROJECTION_SLAB, 0.1, 0.2);
    expect_nothing(&model);
    oct_view_model_finish(&model);
}

static void what_octd_refuses_is_wanted_no_more(void **state)
{
    (void)state;
    struct oct_view_model model;
    char text[OCT_VIEW_LABEL_BYTES];

    oct_view_model_init(&model, "x", true);
    hear(&model, OCT_PROJECTION_MEAN, 0.4, 0.6);
    oct_view_model_apply(&model, OCT_ACTION_SLAB_DOWN, 1);
    assert_int_equal(oct_view_model_take_wish(&model, text), OCT_WISH_PROJECTION);
    answer(&model, OCT_WISH_PROJECTION, false, "not while it rains");
    assert_string_equal(model.message, "octd refused: not while it rains");
    expect_nothing(&model);
    assert_int_equal(model.enface_wishes.octds.projection, OCT_PROJECTION_MEAN);
    oct_view_model_apply(&model, OCT_ACTION_PROJECTION, 1); /* on from where octd is */
    expect_set(&model, OCT_WISH_PROJECTION, "max");
    oct_view_model_finish(&model);
}

static void en_face_keys_say_why_they_do_nothing(void **state)
{
    (void)state;
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

/* ---- measuring by key ---- */

static void calipers_are_put_and_moved_by_key(void **state)
{
    (void)state;
    struct oct_view_model model;
    struct oct_view_picture picture = oct_scene_layered(30, 4); /* 120 A-lines of 100 pixels */

    oct_view_model_init(&model, "x", true);
    oct_view_model_apply(&model, OCT_ACTION_MEASURE, 1);
    oct_view_model_apply(&model, OCT_ACTION_LEVEL_UP, 1);
    assert_false(model.has_caliper); /* nothing to measure yet, and no contrast is moved */
    assert_true(model.contrast.lo == 0 && model.message[0]);
    oct_view_model_offer(&model, &picture);
    oct_view_picture_finish(&picture);
    double lo = model.contrast.lo;
    oct_view_model_apply(&model, OCT_ACTION_LEVEL_UP, 3); /* Right */
    assert_true(model.has_caliper && model.contrast.lo == lo);
    assert_true(model.caliper[0].line == 60.5 && model.caliper[0].depth == 35.5);
    assert_true(model.caliper[1].line == 63.5 && model.caliper[1].depth == 65.5);
    oct_view_model_apply(&model, OCT_ACTION_LEVEL_DOWN, 1);   /* Left */
    oct_view_model_apply(&model, OCT_ACTION_WINDOW_WIDER, 5); /* Up */
    assert_true(model.caliper[1].line == 62.5 && model.caliper[1].depth == 60.5);
    oct_view_model_apply(&model, OCT_ACTION_HOLD, 1);
    oct_view_model_apply(&model, OCT_ACTION_WINDOW_CLOSER, 2); /* Down */
    assert_true(model.caliper[0].line == 60.5 && model.caliper[0].depth == 37.5);
    oct_view_model_apply(&model, OCT_ACTION_HOLD, 1); /* no marked point: the first end again */
    oct_view_model_apply(&model, OCT_ACTION_WINDOW_CLOSER, 500);
    assert_true(model.caliper[1].depth == 100 && model.caliper[0].depth == 37.5);
    oct_view_model_apply(&model, OCT_ACTION_CLEAR, 1);
    assert_false(model.has_caliper);
    oct_view_model_apply(&model, OCT_ACTION_ZOOM_IN, 3); /* they come where one looks */
    oct_view_lens_pan(&model.lens, -5, -5);
    oct_view_model_apply(&model, OCT_ACTION_HOLD, 1);
    assert_true(model.caliper[0].depth < model.caliper[1].depth);
    assert_true(model.caliper[1].depth < 100 / model.lens.zoom && model.caliper[1].line < 35);
    oct_view_model_apply(&model, OCT_ACTION_MEASURE, 1);
    oct_view_model_apply(&model, OCT_ACTION_LEVEL_UP, 1); /* contrast again */
    assert_true(model.contrast.lo == lo + 1);
    oct_view_model_finish(&model);
}

static void a_point_is_marked_and_moved_by_key(void **state)
{
    (void)state;
    struct oct_view_model model;
    struct oct_view_picture picture = oct_scene_layered(30, 4);

    oct_view_model_init(&model, "x", true);
    oct_view_model_apply(&model, OCT_ACTION_MARK, 1);
    assert_false(model.has_mark || model.measuring);
    oct_view_model_offer(&model, &picture);
    oct_view_picture_finish(&picture);
    oct_view_model_apply(&model, OCT_ACTION_CURSOR_RIGHT, 20); /* from the middle, A-line 60 */
    oct_view_model_apply(&model, OCT_ACTION_MARK, 1);
    assert_true(model.has_mark && model.measuring && !model.has_caliper);
    assert_true(model.mark.line == 80.5 && model.mark.depth == 50.5);
    oct_view_model_apply(&model, OCT_ACTION_WINDOW_WIDER, 19);
    assert_true(model.mark.depth == 31.5);
    assert_true(oct_view_picture_value(&model.shown, 80, 31) == 70); /* the layer */
    oct_view_model_apply(&model, OCT_ACTION_HOLD, 1); /* calipers come to the point's side */
    assert_true(model.has_caliper);
    oct_view_model_apply(&model, OCT_ACTION_HOLD, 1);
    oct_view_model_apply(&model, OCT_ACTION_HOLD, 1);
    assert_int_equal(model.held, OCT_HELD_MARK);
    oct_view_model_apply(&model, OCT_ACTION_LEVEL_DOWN, 1);
    assert_true(model.mark.line == 79.5);
    oct_view_model_apply(&model, OCT_ACTION_CLEAR, 1);
    assert_false(model.has_mark || model.has_caliper);
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
    (void)state;
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

/* ---- the average ---- */

struct averages {
    struct oct_view_model model;
    struct oct_view_picture picture;
    struct oct_view_image image;
    char text[64];
};

static const float six[6] = {1, 2, 3, 4, 5, 6};

static void send_bscan(struct averages *a, uint64_t frame_num)
{
    const struct oct_picture_header header = {
        .frame_num = frame_num, .sample_type = OCT_SAMPLE_F32, .n_lines = 2, .depth = 3, .hi = 9};
    assert_int_equal(oct_view_picture_set(&a->picture, &header, six, sizeof(six), NULL), OCT_OK);
    a->picture.arrival_ns = a->model.now_ns;
    oct_view_model_offer(&a->model, &a->picture);
}

static void send_average(struct averages *a, uint64_t frame_num, double averaged, double score)
{
    struct oct_image_header h = {.type = OCT_SAMPLE_F32, .rank = 2, .dims = {2, 3}, .hi = 9};
    h.frame_num = frame_num;
    h.n_numbers = 2;
    h.numbers[0] = (struct oct_image_header_number){"averaged", 1, {averaged}};
    h.numbers[1] = (struct oct_image_header_number){"score", 1, {score}};
    assert_int_equal(oct_view_average_check(&h, NULL), OCT_OK);
    assert_int_equal(oct_view_image_set(&a->image, &h, six, sizeof(six), NULL), OCT_OK);
    a->image.arrival_ns = a->model.now_ns;
    oct_view_model_offer_average(&a->model, &a->image, &a->picture);
}

/* What stands in the corner, and whether it stands out. */
static void must_say(struct averages *a, const char *text, bool amiss)
{
    assert_int_equal(oct_view_average_text(&a->model, a->text, sizeof(a->text)), amiss);
    assert_string_equal(a->text, text);
}

static void averages_init(struct averages *a)
{
    *a = (struct averages){.text = ""};
    oct_view_model_init(&a->model, "x", true);
    a->model.daemon.known = true;
    a->model.daemon.average_bscans = 16;
    a->model.daemon.average_min_score = 0.3;
    oct_view_model_tick(&a->model, 1000);
}

static void averages_finish(struct averages *a)
{
    oct_view_picture_finish(&a->picture);
    oct_view_image_finish(&a->image);
    oct_view_model_finish(&a->model);
}

/* The average stands in place of B-scans, with what is said of it; amber below the least score. */
static void the_average_stands_in_place_of_bscans(void **state)
{
    (void)state;
    static struct averages a;
    averages_init(&a);
    send_bscan(&a, 40);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    must_say(&a, "average: none comes", true);
    send_bscan(&a, 41);
    assert_int_equal(a.model.shown.header.frame_num, 41);
    send_average(&a, 41, 14, 0.25);
    must_say(&a, "average 14/16  0.25", true);
    send_bscan(&a, 42);
    send_average(&a, 43, 14, 0.5);
    send_bscan(&a, 44);
    assert_int_equal(a.model.shown.header.frame_num, 43);
    assert_true(oct_view_picture_value(&a.model.shown, 1, 2) == 6);
    must_say(&a, "average 14/16  0.50", false);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    must_say(&a, "average 14/16  0.50", false); /* until a B-scan comes */
    send_average(&a, 45, 14, 0.5);
    assert_int_equal(a.model.shown.header.frame_num, 43);
    send_bscan(&a, 46);
    assert_int_equal(a.model.shown.header.frame_num, 46);
    assert_true(a.model.average.arrival_ns == 0);
    averages_finish(&a);
}

/* An operator who shows an average that octd does not make sees B-scans that move. */
static void bscans_go_on_where_no_average_comes(void **state)
{
    (void)state;
    static struct averages a;
    averages_init(&a);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    send_average(&a, 1, 2, 0.5);
    a.model.daemon.average_bscans = 1;
    send_bscan(&a, 2);
    assert_int_equal(a.model.shown.header.frame_num, 2);
    must_say(&a, "average: off (octctl set average.bscans 16)", true);
    a.model.daemon.average_bscans = 16;
    send_average(&a, 3, 2, 0.5);
    oct_view_model_tick(&a.model, 1000 + OCT_NS_PER_S);
    send_bscan(&a, 4);
    assert_int_equal(a.model.shown.header.frame_num, 3);
    oct_view_model_tick(&a.model, 1000 + 3 * OCT_NS_PER_S);
    send_bscan(&a, 5);
    assert_int_equal(a.model.shown.header.frame_num, 5);
    must_say(&a, "average: none comes", true);
    averages_finish(&a);
}

/* Frozen, the corner speaks of the picture that is shown, whatever comes meanwhile. */
static void a_frozen_picture_keeps_what_is_said_of_it(void **state)
{
    (void)state;
    static struct averages a;
    averages_init(&a);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    send_average(&a, 1, 2, 0.5);
    oct_view_model_apply(&a.model, OCT_ACTION_FREEZE, 1);
    send_average(&a, 2, 3, 0.1);
    must_say(&a, "average 2/16  0.50", false);
    oct_view_model_apply(&a.model, OCT_ACTION_FREEZE, 1);
    assert_int_equal(a.model.shown.header.frame_num, 2);
    must_say(&a, "average 3/16  0.10", true);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    send_bscan(&a, 3);
    oct_view_model_apply(&a.model, OCT_ACTION_FREEZE, 1);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    must_say(&a, "one B-scan, not the average", true);
    averages_finish(&a);
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
        cmocka_unit_test(en_face_is_octds_picture_row_by_row),
        cmocka_unit_test(en_face_rows_stay_until_they_are_replaced),
        cmocka_unit_test(a_changed_projection_empties_rows_of_the_one_before),
        cmocka_unit_test(en_face_of_many_rows_and_columns_is_thinned_out),
        cmocka_unit_test(en_face_of_hostile_numbers_stays_a_picture),
        cmocka_unit_test(an_image_whose_size_is_wrong_is_refused),
        cmocka_unit_test(blinks_and_motion_stand_on_the_timeline),
        cmocka_unit_test(a_moment_shows_the_worst_of_its_rows),
        cmocka_unit_test(the_quality_of_hostile_rows_is_finite),
        cmocka_unit_test(en_face_keys_are_sent_to_octd_one_at_a_time),
        cmocka_unit_test(a_held_key_moves_the_slab_and_the_newest_place_is_sent),
        cmocka_unit_test(what_octd_refuses_is_wanted_no_more),
        cmocka_unit_test(en_face_keys_say_why_they_do_nothing),
        cmocka_unit_test(calipers_are_put_and_moved_by_key),
        cmocka_unit_test(a_point_is_marked_and_moved_by_key),
        cmocka_unit_test(the_average_stands_in_place_of_bscans),
        cmocka_unit_test(bscans_go_on_where_no_average_comes),
        cmocka_unit_test(a_frozen_picture_keeps_what_is_said_of_it),
        cmocka_unit_test(a_line_rate_that_falls_is_seen_and_one_that_lasts_is_the_new_one),
    };
    return cmocka_run_group_tests_name("viewer model", tests, NULL, NULL);
}
