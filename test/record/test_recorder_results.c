/* Results of analyses in recordings: which rows a file has, and what is refused; whatever becomes
 * of them, no B-scan is lost. */
#include "pipeline/volume/volume.h"
#include "test/rig/results_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

TEST(results_on_time_are_in_the_file_of_their_volume)
{
    struct scene s;
    char paths[8][256];
    open_scene(&s, V, 4096);
    start(&s.rig);
    for (uint64_t v = 0; v < 3; v++) {
        put_all(&s, v * V, (v + 1) * V);
        await_volumes(&s, v + 1);
    }
    struct oct_recorder_status status = status_of(&s.rig);
    assert_int_equal(status.bscans_written, 3 * V);
    assert_int_equal(status.n_results, N_SOURCES);
    assert_string_equal(status.results[TABLE].name, "cells");
    assert_string_equal(status.results[ENFACE].name, "enface");
    for (unsigned i = 0; i < N_SOURCES; i++) {
        assert_int_equal(status.results[i].written, 3 * V);
        assert_int_equal(status.results[i].missed, 0);
        assert_int_equal(status.results[i].refused, 0);
    }
    assert_int_equal(list_files(&s.rig, paths, 8), 3);
    for (uint64_t v = 0; v < 3; v++) {
        expect_file(paths[v], 1, v, 0, V);
        assert_int_equal(cells_of(paths[v], v), (1u << V) - 1);
        assert_int_equal(enface_of(paths[v], v * V), V);
    }
    close_scene(&s);
}

TEST(results_come_to_an_open_file_while_no_bscan_does)
{
    struct scene s;
    struct oct_recorder_status status;
    open_scene(&s, V, 4096);
    start(&s.rig);
    put_bscan(&s, 0);
    put_bscan(&s, 1);
    WAIT(&s.rig, status, status.bscans_in_file == 2);
    deal(&s, TABLE, 0);
    deal(&s, TABLE, 1);
    WAIT(&s.rig, status, status.results[TABLE].written == 2);
    close_scene(&s);
}

TEST(bscans_that_an_analysis_skips_have_no_row_and_hold_up_nothing)
{
    struct scene s;
    struct ear ear;
    char paths[8][256];
    open_scene(&s, V, 4096);
    start(&s.rig);
    listen_to_log(&ear);
    for (uint64_t n = 0; n < V; n++) {
        put_bscan(&s, n);
        s.dealt_below[ENFACE] = n + 1;
        if (n % 2)
            s.dealt_below[TABLE] = n + 1;
        else
            deal(&s, TABLE, n);
    }
    await_volumes(&s, 1);
    expect_log(&ear, "was late", 0);
    assert_int_equal(list_files(&s.rig, paths, 8), 1);
    assert_int_equal(cells_of(paths[0], 0), 0x15);
    assert_int_equal(enface_of(paths[0], 0), 0);
    close_scene(&s);
}

TEST(results_of_closed_files_are_missed_and_others_are_nobodys)
{
    struct scene s;
    struct oct_recorder_status status;
    open_scene(&s, V, 4096);
    put_all(&s, 0, V); /* not recorded */
    WAIT(&s.rig, status, status.bscans_passed == V);
    start(&s.rig);
    for (uint64_t n = V; n < 2 * V; n++) {
        put_bscan(&s, n);
        s.dealt_below[TABLE] = s.dealt_below[ENFACE] = n + 1;
    }
    await_volumes(&s, 1);
    deal(&s, TABLE, V);
    deal(&s, TABLE, V + 1);
    WAIT(&s.rig, status, status.results[TABLE].missed == 2);
    oct_recorder_stop(s.rig.recorder);
    WAIT(&s.rig, status, !status.active);
    put_all(&s, 2 * V, 2 * V + 2); /* not recorded either */
    deal(&s, TABLE, 2 * V - 1);
    WAIT(&s.rig, status, status.bscans_passed == 2 * V + 2 && status.results[TABLE].missed == 3);
    assert_int_equal(status.results[ENFACE].missed, 0);
    assert_int_equal(status.results[TABLE].written + status.results[ENFACE].written, 0);
    close_scene(&s);
}

TEST(a_result_waits_for_a_file_that_is_not_open_yet)
{
    struct scene s;
    char paths[8][256];
    open_scene(&s, V, 4096);
    start(&s.rig);
    for (uint64_t n = 0; n < V; n++) /* faster than the B-scans */
        deal(&s, TABLE, n);
    sleep_us(150000);
    for (uint64_t n = 0; n < V; n++) {
        put_bscan(&s, n);
        deal(&s, ENFACE, n);
    }
    await_volumes(&s, 1);
    assert_int_equal(list_files(&s.rig, paths, 8), 1);
    assert_int_equal(cells_of(paths[0], 0), (1u << V) - 1);
    close_scene(&s);
}

TEST(wrong_results_are_refused_and_counted)
{
    struct scene s;
    struct oct_recorder_status status;
    struct ear ear;
    char paths[8][256];
    uint64_t slot;
    open_scene(&s, V, 4096);
    start(&s.rig);
    put_bscan(&s, 0);
    WAIT(&s.rig, status, status.bscans_in_file == 1);
    listen_to_log(&ear);
    struct oct_image_form other = s.forms[TABLE];
    snprintf(other.name, sizeof(other.name), "other");
    for (int wrong = 0; wrong < 5; wrong++) {
        struct oct_ring *ring = s.sources[TABLE].ring;
        assert_int_equal(oct_ring_acquire(ring, TEST_PATIENCE_US, &slot), OCT_OK);
        struct oct_image_frame *f = oct_image_slot_begin(ring, slot, &s.forms[TABLE], NULL);
        f->info = info_of(&s.rig, 0, 1, 0);
        if (wrong == 0)
            f->dims[0] = 1u << 30; /* more than its memory holds */
        else if (wrong == 1)
            f->dims[1] = COLUMNS + 1;
        else if (wrong == 2)
            f->form = &other;
        else if (wrong == 3)
            f->info.bscan = V;
        else
            f->status = OCT_E_BACKEND;
        oct_ring_publish(ring);
        WAIT(&s.rig, status, status.results[TABLE].refused == (uint64_t)wrong + 1);
    }
    put_result(&s, TABLE, 0);
    put_result(&s, TABLE, 0); /* twice */
    WAIT(&s.rig, status, status.results[TABLE].refused == 6);
    expect_log(&ear, "a result of cells is not recorded", 1);
    assert_int_equal(status.results[TABLE].written, 1);
    s.dealt_below[TABLE] = s.dealt_below[ENFACE] = V;
    for (uint64_t n = 1; n < V; n++)
        put_bscan(&s, n);
    await_volumes(&s, 1);
    assert_int_equal(list_files(&s.rig, paths, 8), 1);
    expect_file(paths[0], 1, 0, 0, V);
    assert_int_equal(cells_of(paths[0], 0), 1);
    close_scene(&s);
}

TEST(a_result_of_a_bscan_that_never_comes_blocks_nothing)
{
    struct scene s;
    struct oct_recorder_status status;
    open_scene(&s, V, 4096);
    start(&s.rig);
    put_bscan(&s, 0);
    put_result(&s, TABLE, 1000000);
    put_result(&s, TABLE, 0);
    WAIT(&s.rig, status, status.results[TABLE].written == 1);
    close_scene(&s);
}

/* A stage as the daemon has it: copies, releases, delivers. */
static void *analyse(void *argument)
{
    struct scene *s = argument;
    struct oct_ring_reader *reader = s->stage_reader;
    uint64_t slot;
    for (;;) {
        enum oct_err e = oct_ring_read(reader, 100000, &slot);
        if (e == OCT_E_CLOSED)
            break;
        if (e)
            continue;
        uint64_t number = oct_image_held(reader)->info.number;
        oct_ring_release(reader);
        for (unsigned i = 0; i < N_SOURCES; i++)
            deal(s, i, number);
    }
    oct_ring_reader_destroy(reader);
    for (unsigned i = 0; i < N_SOURCES; i++)
        oct_ring_close(s->sources[i].ring);
    return NULL;
}

TEST(volumes_of_one_bscan_at_a_high_rate_are_all_there)
{
    enum { MANY = 80 };
    struct scene s;
    struct oct_recorder_status status;
    pthread_t thread;
    static char paths[MANY + 1][256];
    open_scene(&s, 1, 4096);
    start(&s.rig);
    s.stage_reader = add_reader(s.rig.images, false, SLOTS / 2);
    assert_int_equal(pthread_create(&thread, NULL, analyse, &s), 0);
    put_bscan(&s, 0);
    await_volumes(&s, 1);
    for (uint64_t n = 1; n < MANY; n++) {
        put_bscan(&s, n);
        sleep_us(500);
    }
    await_volumes(&s, MANY);
    status = status_of(&s.rig);
    assert_int_equal(status.bscans_written, MANY);
    assert_int_equal(status.bscans_unsaved, 0);
    assert_int_equal(status.keeper.n_dropped, 0);
    oct_ring_close(s.rig.raw);
    oct_ring_close(s.rig.images);
    pthread_join(thread, NULL);
    assert_int_equal(list_files(&s.rig, paths, MANY + 1), MANY);
    uint64_t n_rows = 0;
    for (uint64_t v = 0; v < MANY; v++)
        n_rows += cells_of(paths[v], v);
    assert_int_equal(n_rows, status.results[TABLE].written);
    assert_int_equal(cells_of(paths[0], 0), 1);
    close_scene(&s);
}

TEST(the_last_seconds_have_no_results)
{
    struct scene s;
    struct oct_recorder_status status;
    struct oct_volume_dataset datasets[OCT_VOLUME_MAX_FORMS];
    struct oct_volume_reader *reader;
    unsigned n;
    memset(&s, 0, sizeof(s));
    open_scene(&s, V, 4096);
    close_scene(&s);
    open_rings(&s.rig);
    s.rig.history_bscans = 8;
    open_recorder(&s.rig);
    put(&s.rig, 1, 0, V);
    WAIT(&s.rig, status, status.bscans_passed == V);
    const struct oct_record_settings settings = {.directory = s.rig.directory,
                                                 .bscans = true,
                                                 .config_text = "",
                                                 .eye = "",
                                                 .pseudonym = ""};
    must(oct_recorder_save_history(s.rig.recorder, &settings, "last", &failure));
    WAIT(&s.rig, status, status.history.n_files == 1);
    must(oct_volume_open(&reader, status.history.file, &failure));
    must(oct_volume_datasets(reader, datasets, &n, &failure));
    assert_int_equal(n, 0);
    oct_volume_reader_destroy(reader);
    close_rig(&s.rig);
}
