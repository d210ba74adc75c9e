/* The en face picture and other images of octd in the viewer, and the keys that set it at octd. No
 * zmq, no SDL. */
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "test/rig/viewer_scene.h"
#include "viewer/model/clock.h"
#include "viewer/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define S OCT_NS_PER_S

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

static void en_face_is_octds_picture_row_by_row(void **state)
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

static void en_face_rows_stay_until_they_are_replaced(void **state)
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

static void en_face_keys_are_sent_to_octd_one_at_a_time(void **state)
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

static void a_held_key_moves_the_slab_and_the_newest_place_is_sent(void **state)
{
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(en_face_is_octds_picture_row_by_row),
        cmocka_unit_test(en_face_rows_stay_until_they_are_replaced),
        cmocka_unit_test(a_changed_projection_empties_rows_of_the_one_before),
        cmocka_unit_test(en_face_of_many_rows_and_columns_is_thinned_out),
        cmocka_unit_test(en_face_of_hostile_numbers_stays_a_picture),
        cmocka_unit_test(an_image_whose_size_is_wrong_is_refused),
        cmocka_unit_test(en_face_keys_are_sent_to_octd_one_at_a_time),
        cmocka_unit_test(a_held_key_moves_the_slab_and_the_newest_place_is_sent),
        cmocka_unit_test(what_octd_refuses_is_wanted_no_more),
        cmocka_unit_test(en_face_keys_say_why_they_do_nothing),
    };
    return cmocka_run_group_tests_name("viewer en face", tests, NULL, NULL);
}
