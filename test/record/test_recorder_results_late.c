/* How long a file waits for results of analyses: for what is on its way, never for what hangs. */
#include "test/rig/results_rig.h"

enum { PATIENT_MS = 600000 }; /* of a file: however slow the machine is */

/* While the analysis is at work at the last B-scan of volume v, the next volumes are recorded, and
 * the file of v still gets what comes of it. */
TEST(a_file_waits_in_the_background_for_what_is_outstanding)
{
    struct scene s;
    struct oct_recorder_status status;
    char paths[8][256];
    open_scene_awaiting(&s, V, 4096, PATIENT_MS);
    start(&s.rig);
    put_all(&s, 0, V - 1);
    put_bscan(&s, V - 1);
    deal(&s, ENFACE, V - 1);
    WAIT(&s.rig, status, status.results[ENFACE].written == V);
    /* Of the next volume the analysis skips all but the last. */
    for (uint64_t n = V; n < 2 * V; n++) {
        put_bscan(&s, n);
        deal(&s, ENFACE, n);
        WAIT(&s.rig, status, status.results[ENFACE].written == n + 1);
    }
    sleep_us(600000); /* more than a quarter of a second, which it was once */
    status = status_of(&s.rig);
    assert_true(status.volumes_written == 0 && status.file_open && status.active);
    WAIT(&s.rig, status, status.bscans_written == 2 * V); /* both are synced meanwhile */
    put_result(&s, TABLE, V - 1);
    deal(&s, TABLE, 2 * V - 1);
    await_volumes(&s, 2);
    assert_int_equal(list_files(&s.rig, paths, 8), 2);
    assert_int_equal(cells_of(paths[0], 0), (1u << V) - 1);
    assert_int_equal(cells_of(paths[1], 1), 1u << (V - 1));
    for (uint64_t v = 0; v < 2; v++) {
        expect_file(paths[v], 1, v, 0, V);
        assert_int_equal(enface_of(paths[v], v * V), V);
    }
    status = status_of(&s.rig);
    assert_true(status.account.offered == 2 * V && status.account.written == 2 * V);
    assert_true(status.results[TABLE].missed == 0 && !status.file_open);
    close_scene(&s);
}

/* Volumes much shorter than the work at one of them: the oldest file keeps waiting, the newest ones
 * make room, and what the other analysis says of them is not lost. */
TEST(of_many_files_that_wait_the_oldest_is_kept)
{
    enum { MANY = 9, WAITING = 4 };
    struct scene s;
    struct oct_recorder_status status;
    char paths[MANY + 1][256];
    open_scene_awaiting(&s, V, 4096, PATIENT_MS);
    start(&s.rig);
    for (uint64_t n = 0; n < MANY * V; n++) {
        put_bscan(&s, n);
        deal(&s, ENFACE, n);
        WAIT(&s.rig, status, status.results[ENFACE].written == n + 1);
    }
    WAIT(&s.rig, status, status.volumes_written == MANY - WAITING);
    put_result(&s, TABLE, V - 1);
    deal(&s, TABLE, MANY * V - 1);
    await_volumes(&s, MANY);
    assert_int_equal(list_files(&s.rig, paths, MANY + 1), MANY);
    assert_int_equal(cells_of(paths[0], 0), 1u << (V - 1));
    assert_int_equal(cells_of(paths[MANY - 1], MANY - 1), 1u << (V - 1));
    for (uint64_t v = 0; v < MANY; v++)
        assert_int_equal(enface_of(paths[v], v * V), V);
    close_scene(&s);
}

TEST(stop_waits_for_the_results_of_the_last_bscan)
{
    struct scene s;
    struct oct_recorder_status status;
    char paths[8][256];
    open_scene_awaiting(&s, V, 16, PATIENT_MS);
    start(&s.rig);
    put_all(&s, 0, 3);
    WAIT(&s.rig, status, status.bscans_in_file == 3);
    put_bscan(&s, 3);
    oct_recorder_stop(s.rig.recorder);
    for (uint64_t n = 4; n < 70; n++) { /* more than memory is for: somebody reads on */
        put_bscan(&s, n);
        WAIT(&s.rig, status, status.bscans_passed == n + 1);
    }
    put_result(&s, ENFACE, 5); /* nobody's */
    sleep_us(600000);
    assert_true(status_of(&s.rig).active && status_of(&s.rig).keeper.n_dropped == 0);
    deal(&s, TABLE, 3);
    WAIT(&s.rig, status, !status.active);
    assert_int_equal(list_files(&s.rig, paths, 8), 1);
    expect_file(paths[0], 1, 0, 0, 4);
    assert_true(cells_of(paths[0], 0) == 0xf && enface_of(paths[0], 0) == 3);
    assert_int_equal(status.results[ENFACE].missed, 0);
    close_scene(&s);
}

TEST(the_image_of_a_volume_that_was_cut_off_is_not_waited_for)
{
    struct scene s;
    struct oct_recorder_status status;
    open_scene_awaiting(&s, V, 4096, PATIENT_MS);
    start(&s.rig);
    for (uint64_t n = 0; n < 3; n++) {
        put_bscan(&s, n);
        deal(&s, TABLE, n);
    }
    WAIT(&s.rig, status, status.bscans_in_file == 3);
    oct_recorder_stop(s.rig.recorder);
    WAIT(&s.rig, status, !status.active);
    close_scene(&s);
}

/* An image of a volume that lacks its last B-scan comes with the next volume: nothing of it comes
 * after that. */
TEST(a_whole_image_of_a_volume_is_the_last_one)
{
    struct scene s;
    open_scene_awaiting(&s, V, 4096, PATIENT_MS);
    start(&s.rig);
    for (uint64_t n = 0; n < V; n++) {
        put_bscan(&s, n);
        deal(&s, TABLE, n);
    }
    put_whole(&s, ENFACE, V - 3);
    await_volumes(&s, 1);
    close_scene(&s);
}

TEST(a_stop_within_a_volume_keeps_later_results_of_it_out)
{
    struct scene s;
    struct oct_recorder_status status;
    char paths[8][256];
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

TEST(an_analysis_that_hangs_is_waited_for_once_and_not_again)
{
    enum { MORE = 6 };
    struct scene s;
    struct ear ear;
    struct oct_recorder_status status;
    char paths[MORE + 3][256];
    uint64_t took_ns[2] = {0, 0};
    open_scene_awaiting(&s, V, 4096, 300);
    start(&s.rig);
    listen_to_log(&ear);
    for (uint64_t v = 0; v <= MORE; v++) {
        for (uint64_t n = v * V; n < (v + 1) * V; n++) {
            put_bscan(&s, n);
            deal(&s, ENFACE, n);
        }
        took_ns[v > 0] += await_volumes(&s, v + 1);
    }
    assert_true(took_ns[0] > UINT64_C(290000000));
    expect_log(&ear, "cells was late", 1);
    status = status_of(&s.rig);
    assert_int_equal(status.bscans_written, (1 + MORE) * V);
    assert_int_equal(status.bscans_unsaved, 0);
    assert_int_equal(status.results[TABLE].written, 0);
    assert_int_equal(status.results[ENFACE].written, (1 + MORE) * V); /* the other goes on */
    /* It moves again, so much later: from then on it is waited for, four times as long. */
    deal(&s, TABLE, (1 + MORE) * V - 1);
    WAIT(&s.rig, status, status.results[TABLE].missed == 1);
    for (uint64_t n = (1 + MORE) * V; n < (2 + MORE) * V; n++) {
        put_bscan(&s, n);
        deal(&s, ENFACE, n);
    }
    WAIT(&s.rig, status, status.bscans_written == (2 + MORE) * V);
    sleep_us(600000);
    assert_int_equal(status_of(&s.rig).volumes_written, 1 + MORE);
    deal(&s, TABLE, (2 + MORE) * V - 1);
    await_volumes(&s, 2 + MORE);
    assert_int_equal(list_files(&s.rig, paths, MORE + 3), MORE + 2);
    assert_int_equal(cells_of(paths[MORE + 1], MORE + 1), 1u << (V - 1));
    close_scene(&s);
}

TEST(a_shutdown_waits_a_thirtieth_as_long)
{
    struct scene s;
    struct oct_recorder_status status;
    char paths[8][256];
    open_scene_awaiting(&s, V, 4096, 15000);
    start(&s.rig);
    for (uint64_t n = 0; n < 4; n++)
        put_bscan(&s, n);
    deal(&s, TABLE, 0);
    WAIT(&s.rig, status, status.results[TABLE].written == 1);
    uint64_t begin_ns = oct_clock_ns();
    close_recorder(&s.rig); /* the rings of results stay open: nobody ends the analyses */
    uint64_t took_ns = oct_clock_ns() - begin_ns;
    assert_true(took_ns > UINT64_C(490000000));
    assert_int_equal(list_files(&s.rig, paths, 8), 1);
    expect_file(paths[0], 1, 0, 0, 4);
    assert_int_equal(cells_of(paths[0], 0), 1);
    close_scene(&s);
}

TEST(analyses_that_have_ended_are_not_waited_for)
{
    struct scene s;
    struct ear ear;
    char paths[8][256];
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
