/* The offline runner: sources and sinks that skip, end and fail anywhere, and engines that lose;
 * whatever happens, it ends, says why, and leaves no thread. */
#include "pipeline/base/clock.h"
#include "test/rig/offline_rig.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <stdio.h>
#include <string.h>

static void all_of_the_source_reaches_the_sink_in_order(void **state)
{
    for (uint64_t skip_every = 0; skip_every <= 3; skip_every++) {
        struct rig r;
        open_offline(&r, (struct fake_script){.depth = 4, .max_batch = 3, .job_us = 50});
        r.skip_every = skip_every;
        assert_int_equal(run_offline(&r, NULL, 0), OCT_OK);
        uint64_t n_skipped = skip_every ? (ALL + skip_every - 1) / skip_every : 0;
        assert_int_equal(r.n_pictures, ALL - n_skipped);
        assert_int_equal(r.counts.n_pictures, ALL - n_skipped);
        assert_int_equal(r.counts.n_skipped, n_skipped);
        assert_int_equal(r.n_read, ALL + 1);
        close_offline(&r);
    }
}

static void a_source_without_bscans_is_fine(void **state)
{
    struct rig r;
    open_offline(&r, (struct fake_script){.depth = 1});
    r.n_source = 0;
    assert_int_equal(run_offline(&r, NULL, 0), OCT_OK);
    assert_int_equal(r.n_pictures, 0);
    close_offline(&r);
}

static void an_error_of_the_source_ends_the_run(void **state)
{
    static const uint64_t places[] = {0, 1, ALL / 2, ALL - 1, ALL};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct rig r;
        char wanted[40];
        open_offline(&r, (struct fake_script){.job_us = 50});
        r.fails_at = places[i];
        snprintf(wanted, sizeof(wanted), "index %u is torn", (unsigned)places[i]);
        assert_int_equal(run_offline(&r, NULL, 0), OCT_E_FORMAT);
        assert_string_equal(r.err.text, wanted);
        assert_int_equal(r.n_read, places[i] + 1);
        assert_true(r.n_pictures <= places[i]);
        close_offline(&r);
    }
}

static void an_error_of_the_sink_ends_the_run(void **state)
{
    static const uint64_t places[] = {0, ALL / 2, ALL - 1};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct rig r;
        open_offline(&r, (struct fake_script){.job_us = 50});
        r.picture_fails_at = places[i];
        assert_int_equal(run_offline(&r, NULL, 0), OCT_E_NO_SPACE);
        assert_string_equal(r.err.text, "the sink is full");
        assert_int_equal(r.n_pictures, places[i] + 1);
        /* The source goes no further than the rings let it. */
        assert_true(r.n_read <= places[i] + 1 + 2 * (RING + 1) + 1 || r.n_read == ALL + 1);
        assert_true(i > 0 || r.n_read < ALL);
        close_offline(&r);
    }
}

static void the_first_error_wins(void **state)
{
    struct rig r;
    open_offline(&r, (struct fake_script){.depth = 1, .max_batch = 1, .job_us = 100000});
    r.fails_at = 2;
    r.picture_fails_at = 1;
    assert_int_equal(run_offline(&r, NULL, 0), OCT_E_FORMAT);
    assert_int_equal(r.n_pictures, 0);
    assert_int_equal(r.counts.n_pictures, 2); /* read to the end all the same */
    close_offline(&r);
    open_offline(&r, (struct fake_script){.depth = 1});
    r.picture_fails_at = 0;
    r.fails_at = 2;
    r.waits = true;
    assert_int_equal(run_offline(&r, NULL, 0), OCT_E_NO_SPACE);
    assert_int_equal(r.n_read, 3);
    close_offline(&r);
}

static void a_bscan_that_the_engine_loses_is_named_by_its_index(void **state)
{
    struct rig r;
    open_offline(&r, (struct fake_script){.fail_one_in = 7});
    r.skip_every = 2; /* the seventh B-scan has index 13 */
    assert_int_equal(run_offline(&r, NULL, 0), OCT_E_BACKEND);
    assert_string_equal(r.err.text, "tape: the engine lost B-scan 13");
    assert_int_equal(r.n_pictures, 6);
    close_offline(&r);
}

static void an_engine_that_dies_ends_the_run(void **state)
{
    struct rig r;
    open_offline(&r, (struct fake_script){.dies_at = 9});
    assert_int_equal(run_offline(&r, NULL, 0), OCT_E_BACKEND);
    assert_non_null(strstr(r.err.text, "tape: the engine lost B-scan "));
    assert_true(r.n_pictures < 9);
    close_offline(&r);
}

static void it_is_cancelled_at_once(void **state)
{
    static const uint64_t places[] = {0, ALL / 2};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct rig r;
        open_offline(&r, (struct fake_script){.job_us = 50});
        r.cancels_at = places[i];
        assert_int_equal(run_offline(&r, NULL, 0), OCT_E_CLOSED);
        assert_string_equal(r.err.text, "interrupted: nothing is left behind");
        assert_int_equal(r.n_pictures, places[i] + 1);
        close_offline(&r);
    }
    struct rig r; /* nothing but gaps: no picture comes that could ask */
    open_offline(&r, (struct fake_script){.depth = 1});
    r.n_source = NEVER;
    r.skip_every = 1;
    r.cancel = 1;
    r.pause_us = 1000;
    assert_int_equal(run_offline(&r, NULL, 0), OCT_E_CLOSED);
    assert_true(r.n_read < NEVER);
    close_offline(&r);
}

static void progress_is_told_ten_times_a_second_at_most(void **state)
{
    struct rig r;
    open_offline(&r, (struct fake_script){.depth = 1});
    r.pause_us = 10000;
    uint64_t began_ns = oct_clock_ns();
    assert_int_equal(run_offline(&r, NULL, 0), OCT_OK);
    uint64_t tenths = (oct_clock_ns() - began_ns) / 100000000;
    assert_true(r.n_shown >= 1 && r.n_shown <= tenths);
    close_offline(&r);
}

int main(void)
{
    begin_threads();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_the_source_reaches_the_sink_in_order),
        cmocka_unit_test(a_source_without_bscans_is_fine),
        cmocka_unit_test(an_error_of_the_source_ends_the_run),
        cmocka_unit_test(an_error_of_the_sink_ends_the_run),
        cmocka_unit_test(the_first_error_wins),
        cmocka_unit_test(a_bscan_that_the_engine_loses_is_named_by_its_index),
        cmocka_unit_test(an_engine_that_dies_ends_the_run),
        cmocka_unit_test(it_is_cancelled_at_once),
        cmocka_unit_test(progress_is_told_ten_times_a_second_at_most),
    };
    return cmocka_run_group_tests_name("offline", tests, NULL, NULL);
}
