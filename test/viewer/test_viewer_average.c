/* octd's average in place of B-scans in the viewer, and what is said of it. No zmq, no SDL. */
#include "test/rig/tap.h"
#include "viewer/model/clock.h"
#include "viewer/model/model.h"

#include <math.h>

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

static void send_average(struct averages *a, uint64_t frame_num, double averaged, double score,
                         double shift)
{
    struct oct_image_header h = {.type = OCT_SAMPLE_F32, .rank = 2, .dims = {2, 3}, .hi = 9};
    h.frame_num = frame_num;
    h.n_numbers = 3;
    h.numbers[0] = (struct oct_image_header_number){"averaged", 1, {averaged}};
    h.numbers[1] = (struct oct_image_header_number){"score", 1, {score}};
    h.numbers[2] = (struct oct_image_header_number){"shift_px", 2, {shift, shift}};
    assert_int_equal(oct_view_overlay_average.check(&h, NULL), OCT_OK);
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
    static struct averages a;
    averages_init(&a);
    send_bscan(&a, 40);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    must_say(&a, "AVERAGE: none comes", true);
    send_bscan(&a, 41);
    assert_int_equal(a.model.shown.header.frame_num, 41);
    send_average(&a, 41, 14, 0.25, NAN);
    must_say(&a, "AVERAGE of 16 (14 in it, the newest left out)  0.25", true);
    send_bscan(&a, 42);
    send_average(&a, 43, 14, 0.5, 1);
    send_bscan(&a, 44);
    assert_int_equal(a.model.shown.header.frame_num, 43);
    assert_true(oct_view_picture_value(&a.model.shown, 1, 2) == 6);
    must_say(&a, "AVERAGE of 16 (14 in it)  0.50", false);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    must_say(&a, "AVERAGE of 16 (14 in it)  0.50", false); /* until a B-scan comes */
    send_average(&a, 45, 14, 0.5, 1);
    assert_int_equal(a.model.shown.header.frame_num, 43);
    send_bscan(&a, 46);
    assert_int_equal(a.model.shown.header.frame_num, 46);
    assert_true(a.model.average.arrival_ns == 0);
    averages_finish(&a);
}

/* An operator who shows an average that octd does not make sees B-scans that move. */
static void bscans_go_on_where_no_average_comes(void **state)
{
    static struct averages a;
    averages_init(&a);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    send_average(&a, 1, 2, 0.5, 1);
    a.model.daemon.average_bscans = 1;
    send_bscan(&a, 2);
    assert_int_equal(a.model.shown.header.frame_num, 2);
    must_say(&a, "AVERAGE: off (octctl set average.bscans 16)", true);
    a.model.daemon.average_bscans = 16;
    send_average(&a, 3, 2, 0.5, 1);
    oct_view_model_tick(&a.model, 1000 + OCT_NS_PER_S);
    send_bscan(&a, 4);
    assert_int_equal(a.model.shown.header.frame_num, 3);
    oct_view_model_tick(&a.model, 1000 + 3 * OCT_NS_PER_S);
    send_bscan(&a, 5);
    assert_int_equal(a.model.shown.header.frame_num, 5);
    must_say(&a, "AVERAGE: none comes", true);
    averages_finish(&a);
}

/* Frozen, the corner speaks of the picture that is shown, whatever comes meanwhile. */
static void a_frozen_picture_keeps_what_is_said_of_it(void **state)
{
    static struct averages a;
    averages_init(&a);
    oct_view_model_apply(&a.model, OCT_ACTION_AVERAGE, 1);
    send_average(&a, 1, 2, 0.5, 1);
    oct_view_model_apply(&a.model, OCT_ACTION_FREEZE, 1);
    send_average(&a, 2, 3, 0.1, NAN);
    must_say(&a, "AVERAGE of 16 (2 in it)  0.50", false);
    oct_view_model_apply(&a.model, OCT_ACTION_FREEZE, 1);
    assert_int_equal(a.model.shown.header.frame_num, 2);
    must_say(&a, "AVERAGE of 16 (3 in it, the newest left out)  0.10", true);
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
        cmocka_unit_test(the_average_stands_in_place_of_bscans),
        cmocka_unit_test(bscans_go_on_where_no_average_comes),
        cmocka_unit_test(a_frozen_picture_keeps_what_is_said_of_it),
    };
    return cmocka_run_group_tests_name("viewer average", tests, NULL, NULL);
}
