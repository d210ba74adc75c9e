/* Stages: an analysis beside the stream, its input, its results, its settings. */
#include "pipeline/base/clock.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/stage_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <string.h>

static void every_bscan_gives_its_result_in_order(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    open_stage_rig(&r, &script);
    feed_in_step(&r, 100);
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(c.done, 100);
    assert_int_equal(c.results, 100);
    assert_int_equal(c.failure.code, OCT_OK);
    assert_string_equal(c.running, "cpu");
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(r.results.number[i], i);
        assert_true(r.results.first[i] == (float)fake_pixel(sample_of(i), 0));
    }
    assert_int_equal(*oct_stage_results(r.stage).dealt_below, 100);
    close_stage_rig(&r);
    assert_int_equal(r.watch.n_destroyed, 1);
}

static void fewer_rows_are_no_nonsense(void **state)
{
    static const struct script script = {.rows = 2};
    struct rig r;
    open_stage_rig(&r, &script);
    feed_in_step(&r, 10);
    assert_int_equal(drain_stage(&r).done, 10);
    close_stage_rig(&r);
}

static void pictures_that_the_engine_lost_are_skipped(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4, .fail_one_in = 4}, false);
    open_stage(&r, &script, (struct oct_stage_setup){.input = OCT_STAGE_PICTURES});
    feed_in_step(&r, 40);
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(c.skipped[OCT_STAGE_LOST], 10);
    assert_int_equal(c.done, 30);
    close_stage_rig(&r);
}

static float mean_value(uint16_t first_sample)
{
    float sum = 0;
    for (unsigned i = 0; i < M * D; i++)
        sum += fake_value(first_sample, 0, i);
    return sum / (M * D);
}

static void values_come_for_every_bscan_while_it_keeps_up(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4}, true);
    open_stage(&r, &script, (struct oct_stage_setup){.input = OCT_STAGE_VALUES, .asker = 3});
    feed_in_step(&r, 50);
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(c.done, 50);
    for (unsigned i = 0; i < 50; i++)
        assert_true(r.results.first[i] == mean_value(sample_of(i)));
    close_stage_rig(&r);
}

/* And nobody else's. */
static void complex_values_come_alone(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4}, true);
    open_stage(&r, &script, (struct oct_stage_setup){.input = OCT_STAGE_COMPLEX, .asker = 2});
    feed_in_step(&r, 50);
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(c.done, 50);
    assert_int_equal(r.fake.n_with_values, 0);
    assert_int_equal(r.fake.n_with_complex, 50);
    for (unsigned i = 0; i < 50; i++) {
        float sum = 0;
        for (unsigned k = 0; k < M * D; k++)
            sum +=
                fake_value(sample_of(i), 0, 2 * k) + fake_value(sample_of(i), 0, 2 * k + 1) + 0.5f;
        assert_true(fabsf(r.results.first[i] - sum / (M * D)) < 0.01f);
    }
    close_stage_rig(&r);
}

/* A slow one, while the ring comes round many times. */
static void bscans_that_are_kept_stay_as_they_are(void **state)
{
    static const struct script script = {.push_us = 3000, .keeps = 5};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4}, true);
    open_stage(&r, &script, (struct oct_stage_setup){.input = OCT_STAGE_VALUES, .keeps = 5});
    feed(&r, 600, 300);
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(c.seen, 600);
    assert_true(c.done > 10);
    assert_int_equal(r.watch.n_changed, 0);
    close_stage_rig(&r);
}

/* Of a B-scan that nobody wants the values of there are none. */
static void values_are_not_made_for_one_that_is_late(void **state)
{
    static const struct script script = {.push_us = 30000};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4}, true);
    open_stage(&r, &script, (struct oct_stage_setup){.input = OCT_STAGE_VALUES});
    feed(&r, 300, 500);
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(c.seen, 300);
    assert_true(c.done >= 3);
    assert_true(r.fake.n_with_values < 150);
    assert_true(r.fake.n_with_values >= c.done);
    close_stage_rig(&r);
}

static void one_that_wants_values_where_none_are_lent_is_refused(void **state)
{
    static const struct script script = {.push_us = 0};
    static const enum oct_stage_input inputs[] = {OCT_STAGE_VALUES, OCT_STAGE_COMPLEX};
    struct rig r;
    struct oct_error err;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(try_stage(&r, &script, (struct oct_stage_setup){.input = inputs[i]}, &err),
                         OCT_E_STATE);
        assert_null(r.stage);
        assert_int_equal(r.watch.n_destroyed, i + 1);
    }
    oct_pipeline_drain(r.pipeline);
    close_sink(&r.pictures);
    oct_pipeline_destroy(r.pipeline);
}

static void a_form_that_cannot_be_is_refused(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    struct oct_error err;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    const struct oct_image_form good = r.form;
    for (int i = 0; i < 9; i++) {
        struct oct_image_form *f = &r.form;
        *f = good;
        f->rank = i == 0 ? 0 : i == 1 ? 4 : f->rank;
        f->dims[1] = i == 2 ? 0 : i == 3 ? UINT32_MAX : f->dims[1];
        f->type = i == 4 ? (enum oct_sample_type)7 : f->type;
        f->quantity = i == 5 ? OCT_QUANTITY_NUMBERS : i == 6 ? OCT_N_QUANTITIES : f->quantity;
        if (i == 7)
            memset(f->name, 'a', sizeof(f->name));
        if (i == 8)
            f->name[0] = '/';
        assert_int_equal(try_stage(&r, &script, (struct oct_stage_setup){.asker = 0}, &err),
                         OCT_E_ARG);
    }
    assert_int_equal(r.watch.n_destroyed, 9);
    oct_pipeline_drain(r.pipeline);
    close_sink(&r.pictures);
    oct_pipeline_destroy(r.pipeline);
}

/* Offline a slow analysis and a slow reader of its results hold up all, and nothing is left out. */
static void offline_every_bscan_passes(void **state)
{
    static const struct script script = {.push_us = 3000};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4}, true);
    r.results.pause_us = 5000;
    open_stage(&r, &script,
               (struct oct_stage_setup){.input = OCT_STAGE_VALUES, .guaranteed = true});
    feed(&r, 60, 0);
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(c.done, 60);
    assert_int_equal(c.seen, 60);
    assert_int_equal(r.results.n, 60);
    for (unsigned i = 0; i < 60; i++)
        assert_int_equal(r.results.number[i], i);
    close_stage_rig(&r);
}

/* However late its thread starts. */
static void the_first_bscan_behind_create_has_its_values(void **state)
{
    static const struct script script = {.push_us = 0};
    for (unsigned i = 0; i < 100; i++) {
        struct rig r;
        open_pipeline(&r, (struct fake_script){.depth = 4}, true);
        open_stage(&r, &script,
                   (struct oct_stage_setup){.input = OCT_STAGE_VALUES, .guaranteed = true});
        feed(&r, 3, 0);
        struct oct_stage_counts c = drain_stage(&r);
        assert_int_equal(c.done, 3);
        close_stage_rig(&r);
    }
}

/* Whoever has read n results finds at least n of them counted. */
static void a_result_is_counted_before_it_can_be_read(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    r.results.stage = &r.stage;
    open_stage(&r, &script, (struct oct_stage_setup){.guaranteed = true});
    feed(&r, 20000, 0);
    drain_stage(&r);
    assert_int_equal(r.results.n, 20000);
    assert_int_equal(r.results.n_uncounted, 0);
    close_stage_rig(&r);
}

/* As the recorder does while it opens a file. */
static void small_results_wait_for_a_reader_that_comes_late(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    uint64_t slot;
    open_stage_rig(&r, &script);
    struct oct_ring *ring = oct_stage_results(r.stage).ring;
    struct oct_ring_reader *late = add_reader(ring, false, oct_ring_n_slots(ring) / 2);
    feed_in_step(&r, 200);
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(oct_ring_read(late, 0, &slot), OCT_OK);
        assert_int_equal(oct_image_held(late)->info.number, i);
        oct_ring_release(late);
    }
    assert_int_equal(oct_ring_skipped(late), 0);
    oct_ring_reader_destroy(late);
    drain_stage(&r);
    close_stage_rig(&r);
}

static void results_of_one_are_the_input_of_another(void **state)
{
    static const struct script script = {.push_us = 0, .rows = 2};
    struct rig r, second;
    open_pipeline(&r, (struct fake_script){.depth = 4}, true);
    const struct oct_stage_setup setup = {.input = OCT_STAGE_VALUES, .guaranteed = true};
    open_stage(&r, &script, setup);
    open_second(&r, &second, &script, (struct oct_stage_setup){.guaranteed = true});
    const atomic_uint_fast64_t *dealt = oct_stage_results(second.stage).dealt_below;
    feed(&r, 100, 0);
    drain_stage(&r);
    oct_stage_drain(second.stage);
    assert_true(*dealt >= 100);
    close_sink(&second.results);
    struct oct_stage_counts c = count_stage(&second);
    assert_int_equal(c.done, 100);
    assert_int_equal(c.results, 100);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(second.results.number[i], i);
    oct_stage_destroy(second.stage);
    close_stage_rig(&r);
}

static void an_acquisition_is_ended_before_the_next_is_pushed(void **state)
{
    static const struct script script = {.keeps_until_end = true};
    struct rig r;
    open_stage_rig(&r, &script);
    feed_in_step(&r, 3);
    r.acquisition = 1;
    r.n_fed = 0;
    feed(&r, 1, 0);
    wait_until(&r.watch.n_pushed, 4);
    feed(&r, 1, 0);
    wait_until(&r.watch.n_pushed, 5);
    struct oct_stage_counts c = drain_stage(&r);
    assert_string_equal(r.watch.order, "pppe"
                                       "r"
                                       "pp"
                                       "e");
    assert_int_equal(c.results, 2);
    assert_int_equal(r.results.number[0], 2);
    assert_int_equal(r.results.number[1], 1);
    close_stage_rig(&r);
}

static void settings_reach_it_before_the_next_bscan(void **state)
{
    static const struct script script = {.push_us = 0}, refusing = {.refuses_settings = true};
    struct rig r;
    open_stage_rig(&r, &script);
    feed_in_step(&r, 1);
    oct_stage_configure(r.stage, &(int){41});
    oct_stage_configure(r.stage, &(int){42});
    feed(&r, 1, 1000);
    wait_until(&r.watch.n_pushed, 2);
    assert_int_equal(r.watch.settings, 42);
    oct_stage_configure(r.stage, &(int){43});
    wait_until(&r.watch.n_configured, 2); /* nothing comes: soon all the same */
    drain_stage(&r);
    close_stage_rig(&r);

    open_stage_rig(&r, &refusing);
    oct_stage_configure(r.stage, &(int){1});
    feed(&r, 1, 0);
    wait_until(&r.results.n, 1);
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(c.failure.code, OCT_E_CONFIG);
    assert_int_equal(c.done, 1);
    close_stage_rig(&r);
}

/* Whoever waits for the image of a volume (the recorder) sees that it is still owed. */
static void an_image_of_a_volume_is_owed_until_it_has_the_newest_bscan(void **state)
{
    static const struct script script = {.of_volume = true, .whole_only = true};
    struct rig r;
    open_stage_rig(&r, &script);
    const atomic_uint_fast64_t *dealt = oct_stage_results(r.stage).dealt_below;
    for (unsigned i = 0; i < V - 1; i++) {
        uint64_t fed_ns = oct_clock_ns();
        feed(&r, 1, 0);
        wait_until(&r.watch.n_pushed, i + 1);
        uint64_t below = *dealt;
        if (oct_clock_ns() - fed_ns < 80000000) /* else it may have looked again meanwhile */
            assert_true(below <= i);
    }
    feed(&r, 1, 0);
    wait_until(&r.results.n, 1);
    uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    while (*dealt < V && oct_clock_ns() < until_ns)
        sleep_us(500);
    assert_int_equal(*dealt, V);
    feed(&r, 1, 0); /* nothing becomes of it, which shows when nothing else comes */
    while (*dealt < V + 1 && oct_clock_ns() < until_ns)
        sleep_us(500);
    assert_int_equal(*dealt, V + 1);
    drain_stage(&r);
    close_stage_rig(&r);
}

static void wait_until_at_rest(struct rig *r, bool at_rest)
{
    for (int ms = 0; count_stage(r).at_rest != at_rest; ms++) { /* no B-scan need come */
        assert_true(ms < TEST_PATIENCE_MS);
        sleep_us(1000);
    }
}

/* B-scans that it has not read yet count as seen once it is awake. */
static void wait_until_dealt_with(struct rig *r, uint64_t below)
{
    const atomic_uint_fast64_t *dealt = oct_stage_results(r->stage).dealt_below;
    for (int ms = 0; *dealt < below; ms++) {
        assert_true(ms < TEST_PATIENCE_MS);
        sleep_us(1000);
    }
}

static void a_stage_at_rest_passes_bscans_by_and_forgets_what_it_had(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4}, true);
    open_stage(&r, &script, (struct oct_stage_setup){.rests = true, .input = OCT_STAGE_VALUES});
    assert_true(count_stage(&r).at_rest);
    feed(&r, 5, 0);
    wait_until(&r.pictures.n, 5);
    wait_until_dealt_with(&r, 5);
    assert_int_equal(count_stage(&r).seen, 0);
    oct_stage_rest(r.stage, false);
    wait_until_at_rest(&r, false);
    for (unsigned i = 1; i <= 7; i++) {
        feed(&r, 1, 0);
        wait_until(&r.results.n, i);
    }
    assert_int_equal(count_stage(&r).done, 7);
    assert_int_equal(r.watch.n_reset, 0);
    oct_stage_rest(r.stage, true);
    wait_until_at_rest(&r, true);
    assert_int_equal(r.watch.n_reset, 1);
    feed(&r, 5, 0);
    assert_int_equal(drain_stage(&r).seen, 7);
    assert_int_equal(r.watch.n_pushed, 7);
    assert_int_equal(r.watch.n_ended, 0); /* nothing is left of the acquisition */
    assert_int_equal(r.fake.n_with_complex, 0);
    close_stage_rig(&r);
}

/* Those before it may have passed by. */
static void one_that_wakes_within_a_group_waits_for_the_next(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4}, true);
    r.form.bscans_an_image = 4;
    open_stage(&r, &script, (struct oct_stage_setup){.rests = true, .input = OCT_STAGE_COMPLEX});
    feed(&r, 2, 0);
    wait_until_dealt_with(&r, 2);
    oct_stage_rest(r.stage, false);
    wait_until_at_rest(&r, false);
    for (unsigned i = 0; i < 6; i++) {
        feed(&r, 1, 0);
        wait_until_dealt_with(&r, 2);
        wait_until(&r.watch.n_pushed, i < 2 ? 0 : i - 1);
    }
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(c.skipped[OCT_STAGE_LATE], 2);
    assert_int_equal(c.done, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(r.watch.pushed[i], 4 + i);
    close_stage_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bscan_gives_its_result_in_order),
        cmocka_unit_test(fewer_rows_are_no_nonsense),
        cmocka_unit_test(pictures_that_the_engine_lost_are_skipped),
        cmocka_unit_test(values_come_for_every_bscan_while_it_keeps_up),
        cmocka_unit_test(complex_values_come_alone),
        cmocka_unit_test(bscans_that_are_kept_stay_as_they_are),
        cmocka_unit_test(values_are_not_made_for_one_that_is_late),
        cmocka_unit_test(one_that_wants_values_where_none_are_lent_is_refused),
        cmocka_unit_test(a_form_that_cannot_be_is_refused),
        cmocka_unit_test(offline_every_bscan_passes),
        cmocka_unit_test(the_first_bscan_behind_create_has_its_values),
        cmocka_unit_test(a_result_is_counted_before_it_can_be_read),
        cmocka_unit_test(small_results_wait_for_a_reader_that_comes_late),
        cmocka_unit_test(results_of_one_are_the_input_of_another),
        cmocka_unit_test(an_acquisition_is_ended_before_the_next_is_pushed),
        cmocka_unit_test(settings_reach_it_before_the_next_bscan),
        cmocka_unit_test(an_image_of_a_volume_is_owed_until_it_has_the_newest_bscan),
        cmocka_unit_test(a_stage_at_rest_passes_bscans_by_and_forgets_what_it_had),
        cmocka_unit_test(one_that_wakes_within_a_group_waits_for_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
