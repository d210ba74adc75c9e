/* Stages whose analysis is slow, hangs, fails or hands out nonsense: nothing else suffers. */
#include "pipeline/base/clock.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/stage_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* Pictures and a guaranteed reader of them go on at their own pace. */
static void a_slow_one_skips_and_holds_up_nobody(void **state)
{
    static const struct script script = {.push_us = 400000};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    open_stage(&r, &script, (struct oct_stage_setup){.give_up_ms = 30000}); /* a busy machine */
    for (unsigned i = 0; i < 100; i++) {
        feed(&r, 10, 1000);
        count_stage(&r); /* the account is right at every moment */
    }
    wait_until(&r.pictures.n, 1000);
    uint64_t longest_ns = r.pictures.longest_ns;
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(r.pictures.n, 1000);
    assert_true(longest_ns < 350000000); /* less than one push: a busy machine alone takes some */
    assert_int_equal(c.seen, 1000);
    assert_true(c.skipped[OCT_STAGE_LATE] > 500);
    assert_true(c.done > 1);
    assert_int_equal(c.results, c.done);
    for (unsigned i = 1; i < r.results.n; i++)
        assert_true(r.results.number[i] > r.results.number[i - 1]);
    close_stage_rig(&r);
}

static void one_that_never_returns_is_left_to_itself(void **state)
{
    static const struct script script = {.hangs = true};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    open_stage(&r, &script, (struct oct_stage_setup){.give_up_ms = 200});
    feed(&r, 200, 500);
    wait_until(&r.pictures.n, 200);
    struct oct_stage_counts c = count_stage(&r);
    assert_true(c.busy_ns > 50000000);
    assert_int_equal(c.done, 0);
    uint64_t begun_ns = oct_clock_ns();
    drain_stage(&r);
    oct_stage_destroy(r.stage);
    oct_pipeline_destroy(r.pipeline);
    assert_true(oct_clock_ns() - begun_ns < UINT64_C(5000000000));
    assert_int_equal(r.watch.n_destroyed, 0);
    atomic_store(&r.watch.gate, true);
    wait_until(&r.watch.n_destroyed, 1);
    assert_int_equal(r.watch.n_pushed, 1);
    assert_int_equal(r.watch.n_taken, 0);
}

static void several_that_hang_are_waited_for_together(void **state)
{
    static const struct script script = {.hangs = true};
    struct rig r, other;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    memset(&other, 0, sizeof(other));
    other.pipeline = r.pipeline;
    other.form = r.form;
    open_stage(&r, &script, (struct oct_stage_setup){.give_up_ms = 1000});
    open_stage(&other, &script, (struct oct_stage_setup){.give_up_ms = 1000});
    feed(&r, 1, 0);
    wait_until(&r.watch.n_pushed, 1);
    wait_until(&other.watch.n_pushed, 1);
    oct_pipeline_drain(r.pipeline);
    uint64_t begun_ns = oct_clock_ns();
    oct_stage_begin_drain(r.stage);
    oct_stage_begin_drain(other.stage);
    assert_false(oct_stage_drain(r.stage));
    assert_false(oct_stage_drain(other.stage));
    uint64_t took_ns = oct_clock_ns() - begun_ns;
    assert_true(took_ns > 990000000 && took_ns < 1900000000);
    drain_stage(&r);
    close_sink(&other.results);
    oct_stage_destroy(other.stage);
    oct_stage_destroy(r.stage);
    oct_pipeline_destroy(r.pipeline);
    atomic_store(&r.watch.gate, true);
    atomic_store(&other.watch.gate, true);
    wait_until(&r.watch.n_destroyed, 1);
    wait_until(&other.watch.n_destroyed, 1);
}

static void *open_gate(void *argument)
{
    struct rig *r = argument;
    sleep_us(20000 + r->n_fed % 7 * 300); /* give_up_ms is 20 */
    atomic_store(&r->watch.gate, true);
    return NULL;
}

/* It may come back before it is left to itself, at that moment, or after all else has gone. */
static void wherever_it_hangs_nothing_waits_for_it(void **state)
{
    static const struct script scripts[] = {
        {.hangs_in = 't'}, {.hangs_in = 'e'}, {.hangs_in = 'r'}, {.hangs_in = 'c'}};
    for (unsigned i = 0; i < 40; i++) {
        struct rig r;
        pthread_t opener;
        bool is_last = i % 10 >= 7; /* back only when all else has gone */
        open_pipeline(&r, (struct fake_script){.depth = 4}, false);
        open_stage(&r, &scripts[i % 4], (struct oct_stage_setup){.give_up_ms = 20});
        feed(&r, 5 + i, 0);
        oct_stage_configure(r.stage, &(int){1});
        r.acquisition = 1;
        feed(&r, 5, 0);
        if (!is_last)
            assert_int_equal(pthread_create(&opener, NULL, open_gate, &r), 0);
        drain_stage(&r);
        oct_stage_destroy(r.stage);
        oct_pipeline_destroy(r.pipeline);
        if (is_last)
            atomic_store(&r.watch.gate, true);
        else
            assert_int_equal(pthread_join(opener, NULL), 0);
        wait_until(&r.watch.n_destroyed, 1);
    }
}

static void one_that_fails_goes_on_with_the_next(void **state)
{
    static const struct script script = {.fail_one_in = 3};
    struct rig r;
    open_stage_rig(&r, &script);
    feed_in_step(&r, 60);
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(c.seen, 60);
    assert_int_equal(r.watch.n_pushed, 60);
    assert_int_equal(c.done, r.watch.n_pushed - r.watch.n_pushed / 3);
    assert_int_equal(c.skipped[OCT_STAGE_FAILED], r.watch.n_pushed / 3);
    assert_int_equal(c.failure.code, OCT_E_FORMAT);
    assert_non_null(strstr(c.failure.text, "fails as the script says"));
    assert_int_equal(r.pictures.n, 60);
    close_stage_rig(&r);
}

static void check_nonsense(const struct script *script, const char *text)
{
    struct rig r;
    open_stage_rig(&r, script);
    feed(&r, 20, 500);
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(c.done, 0);
    assert_int_equal(c.seen, 20);
    assert_int_equal(c.skipped[OCT_STAGE_FAILED] + c.skipped[OCT_STAGE_LATE], 20);
    assert_int_equal(c.failure.code, OCT_E_ARG);
    if (!strstr(c.failure.text, text))
        fail_msg("'%s' does not say '%s'", c.failure.text, text);
    if (!script->endless)
        assert_int_equal(r.results.n, 0);
    assert_int_equal(r.pictures.n, 20);
    close_stage_rig(&r);
}

static void nonsense_is_never_published(void **state)
{
    check_nonsense(&(struct script){.rows = 6}, "axis 'row' has 6, its form 5");
    check_nonsense(&(struct script){.rows = UINT32_MAX}, "nonsense size");
    check_nonsense(&(struct script){.columns = 2}, "axis 'column' has 2, its form 3");
    check_nonsense(&(struct script){.lo = NAN}, "no numbers");
    check_nonsense(&(struct script){.lo = INFINITY}, "no numbers");
    check_nonsense(&(struct script){.from_the_future = true},
                   "which has not come yet: the newest is ");
    check_nonsense(&(struct script){.of_another_acquisition = true}, "of acquisition 1 after a B-");
    check_nonsense(&(struct script){.endless = true}, "without end");
}

/* That its input hangs ends the second too, and the first comes back when nobody reads it. */
static void one_whose_input_hangs_comes_to_its_end(void **state)
{
    static const struct script hanging = {.hangs = true}, script = {.push_us = 0};
    struct rig r, second;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    open_stage(&r, &hanging, (struct oct_stage_setup){.give_up_ms = 20});
    open_second(&r, &second, &script, (struct oct_stage_setup){.give_up_ms = 20});
    feed(&r, 20, 0);
    drain_stage(&r);
    assert_true(oct_stage_drain(second.stage));
    close_sink(&second.results);
    oct_stage_destroy(second.stage);
    oct_stage_destroy(r.stage);
    oct_pipeline_destroy(r.pipeline);
    atomic_store(&r.watch.gate, true);
    wait_until(&r.watch.n_destroyed, 1);
    assert_int_equal(second.watch.n_destroyed, 1);
}

/* Lines go on coming, so that the stage never has time to look again. */
static void a_volume_that_fails_is_not_waited_for(void **state)
{
    static const struct script script = {.of_volume = true, .whole_only = true, .fail_one_in = 1};
    struct rig r;
    open_stage_rig(&r, &script);
    const atomic_uint_fast64_t *dealt = oct_stage_results(r.stage).dealt_below;
    const uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    while (*dealt == 0 && oct_clock_ns() < until_ns)
        feed(&r, 1, 2000);
    assert_in_range(*dealt, 1, r.n_fed);
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(c.done, 0);
    assert_int_equal(c.results, 0);
    close_stage_rig(&r);
}

static void an_image_of_a_block_may_name_any_of_its_bscans(void **state)
{
    static const struct script script = {.block = 4};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    r.form.bscans_an_image = 4;
    open_stage(&r, &script, (struct oct_stage_setup){.asker = 0});
    feed_in_step(&r, 16);
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(c.done, 16);
    assert_int_equal(c.results, 4);
    assert_int_equal(c.failure.code, OCT_OK);
    close_stage_rig(&r);
}

/* Of each group that it begins it takes a beginning without a gap; returns how many are whole. */
static unsigned check_groups(const struct rig *r, unsigned n)
{
    const uint64_t *pushed = r->watch.pushed;
    unsigned n_whole = 0;
    for (unsigned i = 0; i < r->watch.n_pushed; i++) {
        if (pushed[i] % n)
            assert_true(i > 0 && pushed[i] == pushed[i - 1] + 1);
        n_whole += pushed[i] % n == n - 1;
    }
    return n_whole;
}

/* Its work comes with the last of a group, and lasts for ten B-scans: all groups are whole, but for
 * some on a machine that holds it up as well. */
static void a_late_one_leaves_out_whole_groups(void **state)
{
    static const struct script script = {.push_us = 20000, .push_one_in = 4};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4}, true);
    r.form.bscans_an_image = 4;
    open_stage(&r, &script, (struct oct_stage_setup){.input = OCT_STAGE_COMPLEX});
    feed(&r, 400, 2000);
    struct oct_stage_counts c = drain_stage(&r);
    const unsigned n_whole = check_groups(&r, 4);
    assert_int_equal(c.seen, 400);
    assert_true(c.skipped[OCT_STAGE_LATE] > 100);
    assert_true(n_whole >= 10);
    assert_in_range(r.watch.n_pushed, 4 * n_whole, 4 * n_whole + n_whole / 3);
    close_stage_rig(&r);
}

/* One that is late at each B-scan may have to leave a group that it began, and none in its
 * middle. */
static void a_group_that_is_left_is_left_for_good(void **state)
{
    static const struct script script = {.push_us = 20000};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    r.form.bscans_an_image = 8;
    open_stage(&r, &script, (struct oct_stage_setup){.asker = 0});
    feed(&r, 400, 2000);
    struct oct_stage_counts c = drain_stage(&r);
    check_groups(&r, 8);
    assert_int_equal(c.seen, 400);
    assert_true(c.skipped[OCT_STAGE_LATE] > 100 && c.done > 8);
    close_stage_rig(&r);
}

/* What the engine lost is absent, and the rest of its group comes. */
static void a_group_that_lacks_a_bscan_comes_without_it(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    open_pipeline(&r, (struct fake_script){.depth = 4, .fail_one_in = 5}, false);
    r.form.bscans_an_image = 4;
    open_stage(&r, &script, (struct oct_stage_setup){.asker = 0});
    feed_in_step(&r, 40);
    struct oct_stage_counts c = drain_stage(&r);
    assert_int_equal(c.skipped[OCT_STAGE_LOST], 8);
    assert_int_equal(c.done, 32);
    close_stage_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_one_skips_and_holds_up_nobody),
        cmocka_unit_test(one_that_never_returns_is_left_to_itself),
        cmocka_unit_test(several_that_hang_are_waited_for_together),
        cmocka_unit_test(wherever_it_hangs_nothing_waits_for_it),
        cmocka_unit_test(one_that_fails_goes_on_with_the_next),
        cmocka_unit_test(nonsense_is_never_published),
        cmocka_unit_test(an_image_of_a_block_may_name_any_of_its_bscans),
        cmocka_unit_test(a_late_one_leaves_out_whole_groups),
        cmocka_unit_test(a_group_that_is_left_is_left_for_good),
        cmocka_unit_test(a_group_that_lacks_a_bscan_comes_without_it),
        cmocka_unit_test(one_whose_input_hangs_comes_to_its_end),
        cmocka_unit_test(a_volume_that_fails_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
