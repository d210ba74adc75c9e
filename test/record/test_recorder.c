/* The recorder between two rings that the test feeds. */
#include "test/rig/recorder_rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* ---- cases ---- */

RIG_TEST(every_volume_and_every_acquisition_gets_its_file)
{
    struct oct_recorder_status s;
    char paths[8][256];
    start(r);
    put(r, 2, 0, 2 * V + 2);
    put(r, 3, V + 1, 2 * V); /* another acquisition that begins inside a volume */
    WAIT(r, s, s.volumes_written == 4);
    assert_true(s.active && !s.file_open && !s.stopping);
    assert_int_equal(s.bscans_written, 3 * V + 1);
    assert_int_equal(s.volumes_incomplete, 2);
    assert_int_equal(s.bscans_unsaved, 0);
    assert_int_equal(s.failure.code, OCT_OK);
    assert_int_equal(list_files(r, paths, 8), 4);
    uint64_t bytes = 0;
    for (int i = 0; i < 4; i++) {
        struct stat st;
        assert_int_equal(stat(paths[i], &st), 0);
        bytes += (uint64_t)st.st_size;
    }
    assert_true(s.bytes_written > 3 * V * (M * N * 2 + M * D) && s.bytes_written <= bytes);
    expect_file(paths[0], 2, 0, 0, V);
    expect_file(paths[1], 2, 1, 0, V);
    expect_file(paths[2], 2, 2, 0, 2);
    expect_file(paths[3], 3, 1, 1, V);
}

RIG_TEST(a_volume_under_way_is_left_alone)
{
    struct oct_recorder_status s;
    char paths[8][256];
    start(r);
    put(r, 1, 0, 2);
    oct_recorder_stop(r->recorder);
    WAIT(r, s, !s.active); /* now it has seen them */
    put_raw(r, 1, 2);      /* its picture comes after the start: it changes nothing */
    start(r);
    put_image_of(r, 1, 2, OCT_OK);
    put(r, 1, 3, 2 * V);
    WAIT(r, s, s.volumes_written == 2);
    assert_int_equal(s.bscans_written, 2 + V);
    assert_int_equal(list_files(r, paths, 8), 2);
    expect_file(paths[0], 1, 0, 0, 2);
    expect_file(paths[1], 1, 1, 0, V);
}

RIG_TEST(stop_takes_what_is_in_the_raw_ring_and_no_more)
{
    struct oct_recorder_status s;
    struct oct_error err;
    char paths[8][256];
    start(r);
    put(r, 1, 0, 2);
    for (uint64_t n = 2; n < 5; n++)
        put_raw(r, 1, n);
    oct_recorder_stop(r->recorder);
    oct_recorder_stop(r->recorder); /* again: nothing new */
    s = status_of(r);
    assert_true(s.active && s.stopping);
    assert_int_equal(start_in(r, r->directory, true, true, &err), OCT_E_STATE);
    put_raw(r, 1, 5);
    for (uint64_t n = 2; n < 6; n++)
        put_image_of(r, 1, n, OCT_OK);
    WAIT(r, s, !s.active);
    assert_false(s.stopping || s.file_open);
    assert_int_equal(s.bscans_written, 5);
    assert_int_equal(s.volumes_incomplete, 1);
    assert_int_equal(list_files(r, paths, 8), 1);
    expect_file(paths[0], 1, 0, 0, 5);
    start(r); /* and again */
    put(r, 1, V, 2 * V);
    WAIT(r, s, s.volumes_written == 2);
}

RIG_TEST(stop_without_anything_recorded_ends_at_once)
{
    struct oct_recorder_status s;
    char paths[8][256];
    oct_recorder_stop(r->recorder); /* not active: nothing to do */
    for (int round = 0; round < 20; round++) {
        start(r);
        oct_recorder_stop(r->recorder);
        WAIT(r, s, !s.active);
    }
    assert_int_equal(list_files(r, paths, 8), 0);
}

RIG_TEST(the_end_of_the_acquisition_closes_a_partial_file)
{
    struct oct_recorder_status s;
    char paths[8][256];
    start(r);
    put(r, 1, 0, 4);
    WAIT(r, s, s.bscans_in_file == 4); /* synced while the file is open */
    assert_true(s.file_open);
    r->ended_at = 5;
    WAIT(r, s, !s.file_open);
    assert_true(s.active);
    put(r, 2, 0, 2); /* the end before does not close the file after it */
    WAIT(r, s, s.bscans_written == 6);
    sleep_us(150000);
    assert_true(status_of(r).file_open);
    close_recorder(r); /* as at shutdown: whole files, final names */
    assert_int_equal(list_files(r, paths, 8), 2);
    expect_file(paths[0], 1, 0, 0, 4);
    expect_file(paths[1], 2, 0, 0, 2);
}

TEST(stop_and_shutdown_at_once_lose_nothing)
{
    for (int round = 0; round < 10; round++) {
        struct rig r;
        char paths[8][256];
        open_rig(&r);
        start(&r);
        put(&r, 1, 0, 5);
        oct_recorder_stop(r.recorder);
        close_recorder(&r);
        assert_int_equal(list_files(&r, paths, 8), 1);
        expect_file(paths[0], 1, 0, 0, 5);
        close_rig(&r);
    }
}

RIG_TEST(start_is_refused_while_active_and_where_no_file_can_be)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/a/b", r->directory);
    must_fail(start_in(r, path, true, true, &failure), OCT_E_IO, path);
    snprintf(path, sizeof(path), "%s/file", r->directory);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    must_fail(start_in(r, path, true, true, &failure), OCT_E_IO, "record.directory");
    assert_false(status_of(r).active);
    snprintf(path, sizeof(path), "%s/new", r->directory);
    must(start_in(r, path, true, true, &failure)); /* is made */
    must_fail(start_in(r, path, true, true, &failure), OCT_E_STATE, "already");
    assert_true(status_of(r).active);
}

RIG_TEST(a_picture_that_the_engine_lost_is_unsaved_and_the_rest_is_there)
{
    struct oct_recorder_status s;
    start(r);
    for (uint64_t n = 0; n < V; n++) {
        put_raw(r, 1, n);
        put_image_of(r, 1, n, n == 2 ? OCT_E_BACKEND : OCT_OK);
    }
    WAIT(r, s, s.volumes_written == 1);
    assert_int_equal(s.bscans_written, V - 1);
    assert_int_equal(s.bscans_unsaved, 1);
    assert_int_equal(s.account.dropped[OCT_LOSS_ENGINE], 1);
    assert_true(s.account.offered == V && s.account.written == V - 1 && s.account.pending == 0);
    assert_int_equal(s.volumes_incomplete, 1);
}

RIG_TEST(spectra_or_pictures_alone_are_recorded_alone)
{
    struct oct_recorder_status s;
    char paths[8][256];
    must(start_in(r, r->directory, true, false, &failure));
    put(r, 1, 0, V);
    WAIT(r, s, s.volumes_written == 1);
    oct_recorder_stop(r->recorder);
    WAIT(r, s, !s.active);
    must(start_in(r, r->directory, false, true, &failure));
    put(r, 1, V, 2 * V);
    WAIT(r, s, s.volumes_written == 2);
    assert_int_equal(list_files(r, paths, 8), 2);
    expect_file(paths[0], 1, 0, 0, V);
    expect_file(paths[1], 1, 1, 0, V);
}

RIG_TEST(a_folder_that_goes_away_ends_the_recording_and_nothing_else)
{
    struct oct_recorder_status s;
    start(r);
    put(r, 1, 0, 2);
    WAIT(r, s, s.bscans_in_file == 2);
    remove_folder(r);
    put(r, 1, 2, 5 * SLOTS); /* more than the rings hold: someone must be reading on */
    WAIT(r, s, !s.active);
    assert_int_not_equal(s.failure.code, OCT_OK);
    assert_non_null(strstr(s.failure.text, r->directory));
    assert_false(s.file_open || s.stopping);
    start(r); /* makes the folder again */
    assert_int_equal(status_of(r).failure.code, OCT_OK);
    put(r, 2, 0, V);
    WAIT(r, s, s.volumes_written >= 1 && !s.file_open);
    assert_true(s.active && s.failure.code == OCT_OK);
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

RIG_TEST(a_write_that_fails_ends_the_recording_and_counts_what_is_unsaved)
{
    struct oct_recorder_status s;
    signal(SIGXFSZ, SIG_IGN);
    start(r);
    put(r, 1, 0, 2);
    WAIT(r, s, s.bscans_in_file == 2);
    limit_file_size(100);
    put(r, 1, 2, 3);
    WAIT(r, s, !s.active);
    limit_file_size(RLIM_INFINITY);
    assert_int_not_equal(s.failure.code, OCT_OK);
    assert_int_equal(s.bscans_written, 2);
    assert_int_equal(s.bscans_unsaved, 1);
    put(r, 1, 3, 3 * SLOTS); /* no recording: nobody's */
    WAIT(r, s, s.bscans_passed == 3 * SLOTS);
    assert_true(s.bscans_unsaved == 1 && s.account.dropped[OCT_LOSS_WRITE_FAILED] == 1);
    assert_true(s.account.offered == 3 && s.account.pending == 0);
    start(r);
    limit_file_size(100); /* now not even a file can be made */
    put(r, 2, 0, 1);
    WAIT(r, s, !s.active);
    limit_file_size(RLIM_INFINITY);
    assert_int_equal(s.bscans_unsaved, 2);
    assert_int_equal(s.bscans_written, 2);
    oct_recorder_stop(r->recorder); /* nobody wants a recording any more */
    put(r, 2, 1, 3 * SLOTS);
    WAIT(r, s, s.bscans_passed == 6 * SLOTS);
    assert_int_equal(s.bscans_unsaved, 2);
    start(r);
    put(r, 3, 0, V);
    WAIT(r, s, s.bscans_written == 2 + V);
}

TEST(a_recorder_made_while_bscans_flow_pairs_spectra_with_their_pictures)
{
    struct rig r;
    struct oct_recorder_status s;
    char paths[8][256];
    open_rings(&r);
    put(&r, 1, 0, 2);
    for (uint64_t n = 2; n < 5; n++)
        put_raw(&r, 1, n); /* in the engine when the recorder comes */
    open_recorder(&r);
    put_image_of(&r, 1, 2, OCT_OK);
    WAIT(&r, s, s.bscans_passed == 1);
    assert_int_equal(s.next_slot, 5); /* nothing before it will be recorded */
    start(&r);
    for (uint64_t n = 3; n < 5; n++)
        put_image_of(&r, 1, n, OCT_OK);
    put(&r, 1, 5, 2 * V);
    WAIT(&r, s, s.volumes_written == 1 && s.next_slot == 2 * V);
    assert_int_equal(s.bscans_written, V);
    assert_int_equal(list_files(&r, paths, 8), 1);
    expect_file(paths[0], 1, 1, 0, V); /* volume 0 was under way */
    close_rig(&r);
}

RIG_TEST(start_and_stop_again_and_again_while_bscans_flow)
{
    struct oct_recorder_status s;
    struct dice dice = {5};
    uint64_t number = 0;
    for (int round = 0; round < 40; round++) {
        start(r);
        uint64_t more = dice_below(&dice, 3 * V);
        put(r, 1, number, number + more);
        number += more;
        oct_recorder_stop(r->recorder);
        more = dice_below(&dice, 4);
        put(r, 1, number, number + more);
        number += more;
        WAIT(r, s, !s.active);
        assert_int_equal(s.failure.code, OCT_OK);
    }
    assert_int_equal(s.bscans_unsaved, 0);
    assert_true(s.volumes_written > 20 && s.bscans_written <= number);
}
