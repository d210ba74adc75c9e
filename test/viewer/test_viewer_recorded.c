/* What the viewer says of recordings that ended, and of what they lack, whoever ended them. No zmq,
 * no SDL. */
#include "test/rig/tap.h"
#include "test/rig/viewer_daemon.h"
#include "viewer/model/clock.h"
#include "viewer/model/model.h"
#include "viewer/model/words.h"

#include <math.h>
#include <string.h>

#define S OCT_NS_PER_S

struct scene {
    struct oct_view_model model;
    struct oct_view_daemon d;
};

static void open_scene(struct scene *s)
{
    *s = (struct scene){.d = {.known = true,
                              .reachable = true,
                              .pid = 7,
                              .state = "running",
                              .disk_bytes_free = NAN,
                              .record = {.disk_left_s = NAN,
                                         .volumes = NAN,
                                         .volumes_written = 3,
                                         .volumes_incomplete = 1,
                                         .file = "c.h5"}}};
    oct_view_model_init(&s->model, "x", true);
    oct_view_model_tick(&s->model, 10 * S);
}

/* octd says how it is half a second later. */
static void hear(struct scene *s, enum oct_view_wish answered)
{
    s->d.answer_ns++;
    oct_view_model_tick(&s->model, s->model.now_ns + S / 2);
    oct_scene_hear(&s->model, &s->d, answered, true, "");
}

static void go_on(struct scene *s, double files, double pieces, double elapsed_s)
{
    s->d.record.active = true;
    s->d.record.elapsed_s = elapsed_s;
    s->d.record.volumes_written += files;
    s->d.record.volumes_incomplete += pieces;
    hear(s, OCT_WISH_NONE);
}

static void stop(struct scene *s, double files, double pieces, enum oct_view_wish answered)
{
    s->d.record.active = false;
    s->d.record.elapsed_s = 0;
    s->d.record.volumes_written += files;
    s->d.record.volumes_incomplete += pieces;
    hear(s, answered);
}

static const char *header(const struct scene *s)
{
    static struct oct_view_phrase p;

    oct_view_recording(&s->model, &p);
    return p.text;
}

static bool alarms(const struct scene *s, const char *words)
{
    struct oct_view_alarm list[OCT_VIEW_MAX_ALARMS];
    unsigned n = oct_view_alarms(&s->model, list);

    for (unsigned i = 0; i < n; i++)
        if (strstr(list[i].what.text, words))
            return true;
    return false;
}

static void volumes_and_pieces_are_told_apart_whoever_stopped(void **state)
{
    struct scene s;

    open_scene(&s);
    hear(&s, OCT_WISH_NONE);
    go_on(&s, 0, 0, 1);
    go_on(&s, 2, 0, 5);
    stop(&s, 1, 1, OCT_WISH_STOP);
    assert_string_equal(header(&s), "SAVED 2 volumes and 1 piece, the last c.h5");
    oct_view_model_tick(&s.model, s.model.now_ns + 60 * S);
    assert_string_equal(header(&s), "not recording");
    go_on(&s, 0, 0, 1);
    stop(&s, 1, 1, OCT_WISH_STOP);
    assert_string_equal(header(&s), "SAVED 1 piece of a volume, the last c.h5");
    go_on(&s, 0, 0, 1);
    stop(&s, 0, 0, OCT_WISH_STOP);
    assert_string_equal(header(&s), "stopped, no volume was saved");
    go_on(&s, 0, 0, 1);
    stop(&s, 4, 0, OCT_WISH_NONE); /* nobody asked here */
    assert_string_equal(header(&s), "SAVED 4 volumes (stopped elsewhere), the last c.h5");
    s.d.record.volumes = 4; /* and that many were ordered */
    go_on(&s, 0, 0, 1);
    stop(&s, 4, 0, OCT_WISH_NONE);
    assert_string_equal(header(&s), "SAVED 4 volumes, the last c.h5");
    oct_view_model_finish(&s.model);
}

static void none_is_missed_between_two_looks(void **state)
{
    struct scene s;

    open_scene(&s);
    hear(&s, OCT_WISH_NONE);
    s.d.record.volumes = 1;
    stop(&s, 1, 0, OCT_WISH_NONE); /* it began and ended within half a second */
    assert_string_equal(header(&s), "SAVED 1 volume, the last c.h5");
    go_on(&s, 0, 0, 10);
    go_on(&s, 3, 0, 20);
    go_on(&s, 1, 0, 0.1); /* that one ended, and this is another */
    s.d.record.volumes = 2;
    stop(&s, 2, 0, OCT_WISH_NONE);
    assert_string_equal(header(&s), "SAVED 2 volumes, the last c.h5");
    oct_view_model_finish(&s.model);
}

/* Opened in its middle, octview counts what came since. */
static void one_that_ran_before_octview_is_counted_from_there(void **state)
{
    struct scene s;

    open_scene(&s);
    go_on(&s, 0, 0, 100);
    go_on(&s, 1, 0, 105);
    stop(&s, 1, 1, OCT_WISH_STOP);
    assert_string_equal(header(&s), "SAVED 1 volume and 1 piece, the last c.h5");
    oct_view_model_finish(&s.model);
}

static void what_is_not_recorded_stays_until_its_end_or_until_noted(void **state)
{
    struct scene s;

    open_scene(&s);
    hear(&s, OCT_WISH_NONE);
    go_on(&s, 0, 0, 1);
    s.d.record.n_lost = 7;
    strcpy(s.d.record.lost_text, "7 disk too slow");
    for (unsigned i = 0; i < 200; i++) {
        go_on(&s, 0, 0, 2 + i);
        assert_true(alarms(&s, "NOT RECORDED: 7 B-scans (7 disk too slow)"));
    }
    oct_view_model_apply(&s.model, OCT_ACTION_ACKNOWLEDGE, 1);
    assert_non_null(strstr(s.model.message, "7 B-scans"));
    assert_null(strstr(s.model.message, "nothing"));
    go_on(&s, 0, 0, 300);
    assert_false(alarms(&s, "NOT RECORDED"));
    assert_non_null(strstr(header(&s), ", 7 NOT RECORDED")); /* it stays in sight */
    s.d.record.n_lost = 9;                                   /* more than were noted */
    go_on(&s, 0, 0, 301);
    assert_true(alarms(&s, "NOT RECORDED: 9 B-scans"));
    stop(&s, 1, 0, OCT_WISH_STOP);
    assert_false(alarms(&s, "NOT RECORDED")); /* it ended with that recording */
    assert_string_equal(header(&s), "SAVED 1 volume, 9 B-scans NOT RECORDED, the last c.h5");
    oct_view_model_tick(&s.model, s.model.now_ns + 600 * S);
    assert_non_null(strstr(header(&s), "9 B-scans NOT RECORDED"));
    oct_view_model_apply(&s.model, OCT_ACTION_ACKNOWLEDGE, 1);
    assert_string_equal(header(&s), "not recording");
    oct_view_model_apply(&s.model, OCT_ACTION_ACKNOWLEDGE, 1);
    assert_string_equal(s.model.message, "there is nothing to take note of");
    s.d.record.n_lost = 0; /* the next one has its own account, of which nothing is noted */
    go_on(&s, 0, 0, 1);
    s.d.record.n_lost = 2;
    go_on(&s, 0, 0, 2);
    assert_true(alarms(&s, "NOT RECORDED: 2 B-scans"));
    oct_view_model_finish(&s.model);
}

static void a_failure_stays_until_noted_or_until_the_next_begins(void **state)
{
    struct scene s;

    open_scene(&s);
    hear(&s, OCT_WISH_NONE);
    go_on(&s, 0, 0, 1);
    s.d.record.failed = true;
    strcpy(s.d.last_error, "no space left");
    s.d.record.n_lost = 3;
    stop(&s, 1, 1, OCT_WISH_NONE);
    oct_view_model_tick(&s.model, s.model.now_ns + 600 * S);
    assert_true(alarms(&s, "RECORDING FAILED: 3 B-scans NOT RECORDED"));
    oct_view_model_apply(&s.model, OCT_ACTION_ACKNOWLEDGE, 1);
    assert_false(alarms(&s, "RECORDING FAILED"));
    hear(&s, OCT_WISH_NONE);
    assert_false(alarms(&s, "RECORDING FAILED"));
    s.d.record.failed = false;
    s.d.record.n_lost = 0;
    go_on(&s, 0, 0, 1);
    s.d.record.failed = true;
    stop(&s, 0, 0, OCT_WISH_NONE);
    assert_true(alarms(&s, "RECORDING FAILED"));
    oct_view_model_finish(&s.model);
}

static void octd_may_go_and_come_back_while_it_records(void **state)
{
    struct scene s;

    open_scene(&s);
    hear(&s, OCT_WISH_NONE);
    go_on(&s, 1, 0, 10);
    s.d.reachable = false;
    hear(&s, OCT_WISH_NONE);
    assert_true(alarms(&s, "OCTD IS GONE, AND IT WAS RECORDING"));
    assert_string_equal(header(&s), "RECORDING? octd does not answer");
    assert_true(oct_view_model_is_recording(&s.model)); /* Escape does not quit */
    s.d = (struct oct_view_daemon){.known = true,
                                   .reachable = true,
                                   .pid = 8,
                                   .answer_ns = 99,
                                   .state = "idle",
                                   .record.disk_left_s = NAN};
    hear(&s, OCT_WISH_NONE);
    assert_true(alarms(&s, "THE RECORDING WAS CUT OFF"));
    assert_string_equal(header(&s), "the recording ended");
    oct_view_model_apply(&s.model, OCT_ACTION_ACKNOWLEDGE, 1);
    assert_false(alarms(&s, "THE RECORDING WAS CUT OFF"));
    assert_string_equal(header(&s), "not recording");
    s.d.reachable = false; /* it did not record: nothing was cut off */
    hear(&s, OCT_WISH_NONE);
    assert_true(alarms(&s, "OCTD IS GONE: no pictures"));
    s.d.reachable = true;
    s.d.pid = 9;
    hear(&s, OCT_WISH_NONE);
    assert_false(alarms(&s, "THE RECORDING WAS CUT OFF"));
    oct_view_model_finish(&s.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(volumes_and_pieces_are_told_apart_whoever_stopped),
        cmocka_unit_test(none_is_missed_between_two_looks),
        cmocka_unit_test(one_that_ran_before_octview_is_counted_from_there),
        cmocka_unit_test(what_is_not_recorded_stays_until_its_end_or_until_noted),
        cmocka_unit_test(a_failure_stays_until_noted_or_until_the_next_begins),
        cmocka_unit_test(octd_may_go_and_come_back_while_it_records),
    };
    return cmocka_run_group_tests_name("viewer, what was recorded", tests, NULL, NULL);
}
