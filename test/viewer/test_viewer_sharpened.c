/* The sharpest dispersion in the viewer: asked for, shown before and after, left again. No zmq, no
 * SDL. */
#include "test/rig/tap.h"
#include "viewer/model/clock.h"
#include "viewer/model/model.h"

#include <math.h>
#include <string.h>

struct scene {
    struct oct_view_model model;
    struct oct_view_picture picture;
    struct oct_view_image image;
    char text[160];
};

static const uint8_t pixels[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static void send_bscan(struct scene *s, uint64_t frame_num)
{
    const struct oct_picture_header header = {.frame_num = frame_num,
                                              .acquisition_id = "x-1",
                                              .sample_type = OCT_SAMPLE_U8,
                                              .n_lines = 2,
                                              .depth = 3,
                                              .hi = 9};
    assert_int_equal(oct_view_picture_set(&s->picture, &header, pixels, 6, NULL), OCT_OK);
    s->picture.arrival_ns = s->model.now_ns;
    oct_view_model_offer(&s->model, &s->picture);
}

static void send_result(struct scene *s, double a4)
{
    struct oct_image_header h = {
        .type = OCT_SAMPLE_U8, .rank = 2, .dims = {4, 3}, .lo = -20, .hi = 30, .frame_num = 77};
    h.n_numbers = 3;
    h.numbers[0] = (struct oct_image_header_number){"dispersion", 4, {14.856, -1.8055, a4, 0}};
    h.numbers[1] = (struct oct_image_header_number){"sharpness", 2, {19.91, 35.97}};
    h.numbers[2] = (struct oct_image_header_number){"width_px", 2, {7.358, 4.612}};
    assert_int_equal(oct_view_overlay_sharpened.check(&h, NULL), OCT_OK);
    assert_int_equal(oct_view_image_set(&s->image, &h, pixels, sizeof(pixels), NULL), OCT_OK);
    s->image.arrival_ns = s->model.now_ns;
    oct_view_sharpened_offer(&s->model, &s->image, &s->picture);
}

static void open_scene(struct scene *s)
{
    *s = (struct scene){.text = ""};
    oct_view_model_init(&s->model, "x", true);
    s->model.has_control = true;
    s->model.daemon.known = s->model.daemon.reachable = true;
    oct_view_model_tick(&s->model, 1000);
    send_bscan(s, 40);
}

static void close_scene(struct scene *s)
{
    oct_view_picture_finish(&s->picture);
    oct_view_image_finish(&s->image);
    oct_view_model_finish(&s->model);
}

static void must_say(struct scene *s, unsigned i, const char *text)
{
    assert_int_equal(oct_view_sharpened_text(&s->model, i, s->text, sizeof(s->text)), text != NULL);
    if (text)
        assert_string_equal(s->text, text);
}

/* Presses D; the wish goes out, and octd grants it. */
static void ask(struct scene *s)
{
    char text[OCT_VIEW_LABEL_BYTES];
    const struct oct_view_daemon daemon = s->model.daemon;
    const struct oct_view_answer granted = {.wish = OCT_WISH_CALIBRATE, .ok = true};
    oct_view_model_apply(&s->model, OCT_ACTION_SHARPEN, 1);
    assert_int_equal(oct_view_model_take_wish(&s->model, text), OCT_WISH_CALIBRATE);
    oct_view_model_hear(&s->model, &daemon, &granted);
    assert_true(s->model.sharpening.waits);
}

static void before_and_after_are_shown_and_left_again(void **state)
{
    static struct scene s;
    open_scene(&s);
    send_result(&s, 0); /* nobody asked for it */
    assert_int_equal(s.model.shown.header.frame_num, 40);
    ask(&s);
    send_bscan(&s, 41); /* the stream goes on meanwhile */
    assert_int_equal(s.model.shown.header.frame_num, 41);
    send_result(&s, 0);
    assert_int_equal(s.model.shown.header.frame_num, 77);
    assert_int_equal(s.model.shown.header.n_lines, 4);
    assert_string_equal(s.model.shown.header.acquisition_id, ""); /* no layers over it */
    assert_true(s.model.frozen && !s.model.sharpening.waits);
    must_say(&s, 0, "before | after: sharpness 19.9 -> 36.0; width 7.36 -> 4.61 px");
    must_say(&s, 1, "[calibration] dispersion_over = spectrum");
    must_say(&s, 2, "dispersion_a2 = 14.8560  dispersion_a3 = -1.8055");
    must_say(&s, 3, NULL);
    send_bscan(&s, 42);
    assert_int_equal(s.model.shown.header.frame_num, 77); /* until D is pressed again */
    oct_view_model_apply(&s.model, OCT_ACTION_SHARPEN, 1);
    assert_false(s.model.frozen);
    assert_int_equal(s.model.shown.header.frame_num, 42);
    must_say(&s, 0, NULL);
    ask(&s);
    send_result(&s, 0.25); /* with what the configuration had */
    must_say(&s, 3, "dispersion_a4 = 0.2500  dispersion_a5 = 0.0000");
    close_scene(&s);
}

static void a_failure_ends_the_wait_and_is_told(void **state)
{
    static struct scene s;
    char text[OCT_VIEW_LABEL_BYTES];
    open_scene(&s);
    struct oct_view_daemon daemon = s.model.daemon;
    const struct oct_view_answer none = {.wish = OCT_WISH_NONE};
    const struct oct_view_answer no = {.wish = OCT_WISH_CALIBRATE, .text = "none come"};

    oct_view_model_apply(&s.model, OCT_ACTION_SHARPEN, 1);
    assert_int_equal(oct_view_model_take_wish(&s.model, text), OCT_WISH_CALIBRATE);
    oct_view_model_hear(&s.model, &daemon, &no);
    assert_false(s.model.sharpening.waits);
    assert_string_equal(s.model.message, "octd refused the sharpest dispersion: none come");

    ask(&s);
    daemon.errand.number = 1;
    daemon.errand.pending = true;
    oct_view_model_hear(&s.model, &daemon, &none);
    assert_true(s.model.sharpening.waits);
    daemon.errand.pending = false;
    strcpy(daemon.errand.why, "nothing to sharpen");
    oct_view_model_hear(&s.model, &daemon, &none);
    assert_false(s.model.sharpening.waits);
    assert_string_equal(s.model.message, "no sharper dispersion: nothing to sharpen");

    ask(&s); /* the failure before it is not taken for this one's */
    oct_view_model_hear(&s.model, &daemon, &none);
    assert_true(s.model.sharpening.waits);
    oct_view_model_tick(&s.model, 61 * OCT_NS_PER_S);
    oct_view_model_hear(&s.model, &daemon, &none);
    assert_false(s.model.sharpening.waits);
    close_scene(&s);
}

static void what_is_no_such_picture_is_refused(void **state)
{
    struct oct_image_header h = {.type = OCT_SAMPLE_U8, .rank = 2, .dims = {3, 3}};
    assert_int_equal(oct_view_overlay_sharpened.check(&h, NULL), OCT_E_FORMAT);
    h.dims[0] = 0;
    assert_int_equal(oct_view_overlay_sharpened.check(&h, NULL), OCT_E_FORMAT);
    h.dims[0] = 4;
    h.rank = 1;
    assert_int_equal(oct_view_overlay_sharpened.check(&h, NULL), OCT_E_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_and_after_are_shown_and_left_again),
        cmocka_unit_test(a_failure_ends_the_wait_and_is_told),
        cmocka_unit_test(what_is_no_such_picture_is_refused),
    };
    return cmocka_run_group_tests_name("sharpened", tests, NULL, NULL);
}
