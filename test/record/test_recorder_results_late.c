/* How long a file waits for results of analyses: for what is on its way, never for what hangs. */
#include "test/rig/results_rig.h"

#define MAY_STAY_OPEN_NS UINT64_C(250000000)

/* Whether the machine has let the test be as fast as it must be to say anything. */
static bool is_soon_after(uint64_t begin_ns)
{
    return oct_clock_ns() - begin_ns < MAY_STAY_OPEN_NS * 6 / 10;
}

/* The last result of volume v comes 60 ms after all others. False: the machine was too slow. */
static bool waits_for_the_last_result_of(struct scene *s, uint64_t v)
{
    const uint64_t last = (v + 1) * V - 1;
    put_all(s, v * V, last);
    deal(s, ENFACE, last);
    uint64_t begin_ns = oct_clock_ns();
    put_bscan(s, last);
    sleep_us(60000);
    struct oct_recorder_status status = status_of(&s->rig);
    deal(s, TABLE, last);
    bool soon = is_soon_after(begin_ns);
    await_volumes(s, v + 1);
    if (soon)
        assert_true(status.volumes_written == v);
    return soon;
}

static void a_file_waits_for_what_is_outstanding(void **state)
{
    struct scene s;
    char paths[24][256];
    uint64_t v = 0;
    (void)state;
    open_scene(&s, V, 4096);
    start(&s.rig);
    while (v < 20 && !waits_for_the_last_result_of(&s, v))
        v++;
    assert_int_equal(list_files(&s.rig, paths, 24), v + 1);
    assert_int_equal(cells_of(paths[v], v), (1u << V) - 1);
    assert_int_equal(enface_of(paths[v], v * V), V);
    close_scene(&s);
}

/* False: the machine was too slow. */
static bool stop_waits_for_results(void)
{
    struct scene s;
    struct oct_recorder_status status;
    char paths[8][256];
    open_scene(&s, V, 4096);
    start(&s.rig);
    put_all(&s, 0, 3);
    WAIT(&s.rig, status, status.bscans_in_file == 3);
    uint64_t begin_ns = oct_clock_ns();
    put_bscan(&s, 3);
    oct_recorder_stop(s.rig.recorder);
    sleep_us(60000);
    status = status_of(&s.rig);
    deal(&s, TABLE, 3);
    deal(&s, ENFACE, 3);
    bool soon = is_soon_after(begin_ns);
    if (soon)
        assert_true(status.active);
    WAIT(&s.rig, status, !status.active);
    assert_int_equal(list_files(&s.rig, paths, 8), 1);
    expect_file(paths[0], 1, 0, 0, 4);
    if (soon)
        assert_true(cells_of(paths[0], 0) == 0xf && enface_of(paths[0], 0) == 4);
    close_scene(&s);
    return soon;
}

static void stop_waits_for_the_results_of_the_last_bscan(void **state)
{
    unsigned tries = 0;
    (void)state;
    while (!stop_waits_for_results())
        assert_true(++tries < 20);
}

static void a_stop_within_a_volume_keeps_later_results_of_it_out(void **state)
{
    struct scene s;
    struct oct_recorder_status status;
    char paths[8][256];
    (void)state;
    open_scene(&s, V, 4096);
    start(&s.rig);
    put_all(&s, 0, 3);
    WAIT(&s.rig, status, status.bscans_in_file == 3);
    put_bscan(&s, 3);
    oct_recorder_stop(s.rig.recorder); /* and waits for the results of B-scan 3 */
    put_all(&s, 4, 5);
    for (unsigned i = 0; i < N_SOURCES; i++) /* before its B-scan has passed */
        deal(&s, i, 5);
    WAIT(&s.rig, status, !status.active);
    assert_int_equal(list_files(&s.rig, paths, 8), 1);
    expect_file(paths[0], 1, 0, 0, 4);
    assert_int_equal(cells_of(paths[0], 0), 7);
    assert_int_equal(enface_of(paths[0], 0), 3);
    put_bscan(&s, 5);
    WAIT(&s.rig, status, status.bscans_passed == 6);
    for (unsigned i = 0; i < N_SOURCES; i++) {
        assert_int_equal(status.results[i].written, 3);
        assert_int_equal(status.results[i].missed, 0); /* nobody's */
    }
    close_scene(&s);
}

static void an_analysis_that_hangs_is_waited_for_once_and_not_again(void **state)
{
    enum { MORE = 12 };
    struct scene s;
    struct ear ear;
    char paths[44][256];
    (void)state;
    open_scene(&s, V, 4096);
    start(&s.rig);
    listen_to_log(&ear);
    for (uint64_t n = 0; n < V; n++) {
        put_bscan(&s, n);
        deal(&s, ENFACE, n);
    }
    assert_true(await_volumes(&s, 1) > MAY_STAY_OPEN_NS * 8 / 10);
    uint64_t took_ns = 0;
    for (uint64_t v = 1; v <= MORE; v++) {
        for (uint64_t n = v * V; n < (v + 1) * V; n++) {
            put_bscan(&s, n);
            deal(&s, ENFACE, n);
        }
        took_ns += await_volumes(&s, v + 1);
    }
    expect_log(&ear, "cells was late", 1);
    assert_true(took_ns < MORE * MAY_STAY_OPEN_NS);
    struct oct_recorder_status status = status_of(&s.rig);
    assert_int_equal(status.bscans_written, (1 + MORE) * V);
    assert_int_equal(status.bscans_unsaved, 0);
    assert_int_equal(status.results[TABLE].written, 0);
    assert_int_equal(status.results[ENFACE].written, (1 + MORE) * V); /* the other goes on */
    assert_int_equal(list_files(&s.rig, paths, 44), 1 + MORE);
    for (uint64_t v = 0; v <= MORE; v++)
        assert_int_equal(enface_of(paths[v], v * V), V);
    /* It moves again: from then on it is waited for. */
    deal(&s, TABLE, (1 + MORE) * V - 1);
    uint64_t v = 1 + MORE;
    while (v < 40 && !waits_for_the_last_result_of(&s, v))
        v++;
    assert_int_equal(list_files(&s.rig, paths, 44), v + 1);
    assert_int_equal(cells_of(paths[v], v), (1u << V) - 1);
    close_scene(&s);
}

static void nothing_is_waited_for_while_much_waits_for_the_disk(void **state)
{
    struct scene s;
    struct ear ear;
    (void)state;
    open_scene(&s, V, 16);
    start(&s.rig);
    listen_to_log(&ear);
    for (uint64_t n = 0; n < V + 5; n++) /* 5 is more than a quarter of 16 */
        put_bscan(&s, n);
    await_volumes(&s, 1);
    expect_log(&ear, "was late", 0);
    close_scene(&s);
}

static void a_shutdown_is_held_up_no_longer(void **state)
{
    struct scene s;
    char paths[8][256];
    (void)state;
    open_scene(&s, V, 4096);
    start(&s.rig);
    for (uint64_t n = 0; n < 4; n++)
        put_bscan(&s, n);
    deal(&s, TABLE, 0);
    uint64_t begin_ns = oct_clock_ns();
    close_recorder(&s.rig); /* the rings of results stay open: nobody ends the analyses */
    assert_true(oct_clock_ns() - begin_ns < 6 * MAY_STAY_OPEN_NS);
    assert_int_equal(list_files(&s.rig, paths, 8), 1);
    expect_file(paths[0], 1, 0, 0, 4);
    assert_int_equal(cells_of(paths[0], 0), 1);
    close_scene(&s);
}

static void analyses_that_have_ended_are_not_waited_for(void **state)
{
    struct scene s;
    struct ear ear;
    char paths[8][256];
    (void)state;
    open_scene(&s, V, 4096);
    start(&s.rig);
    for (uint64_t n = 0; n < 4; n++)
        put_bscan(&s, n);
    deal(&s, TABLE, 2);
    for (unsigned i = 0; i < N_SOURCES; i++)
        oct_ring_close(s.sources[i].ring);
    listen_to_log(&ear);
    close_recorder(&s.rig);
    expect_log(&ear, "was late", 0);
    assert_int_equal(list_files(&s.rig, paths, 8), 1);
    assert_int_equal(cells_of(paths[0], 0), 4);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_waits_for_what_is_outstanding),
        cmocka_unit_test(stop_waits_for_the_results_of_the_last_bscan),
        cmocka_unit_test(a_stop_within_a_volume_keeps_later_results_of_it_out),
        cmocka_unit_test(an_analysis_that_hangs_is_waited_for_once_and_not_again),
        cmocka_unit_test(nothing_is_waited_for_while_much_waits_for_the_disk),
        cmocka_unit_test(a_shutdown_is_held_up_no_longer),
        cmocka_unit_test(analyses_that_have_ended_are_not_waited_for),
    };
    return cmocka_run_group_tests_name("recorder results late", tests, NULL, NULL);
}
