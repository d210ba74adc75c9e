/* The recorder between two rings that the test feeds. */
#define _GNU_SOURCE /* nftw */
#include "pipeline/clock.h"
#include "pipeline/recorder.h"
#include "pipeline/slots.h"
#include "pipeline/volume.h"
#include "test/pipeline_help.h"
#include "test/tap.h"

#include <ftw.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 40, M = 3, V = 6, D = 20, SLOTS = 64 };

struct rig {
    struct oct_plan plan;
    struct oct_ring *raw, *images;
    struct oct_recorder *recorder;
    atomic_uint_fast64_t ended_at;
    char directory[200];
    struct oct_loss_log *losses;
    uint32_t buffer_bscans, history_bscans;
};

static uint32_t content(uint32_t acquisition, uint64_t number, uint32_t i)
{
    struct dice dice = {acquisition * 1000003ull + number * 4099 + i};
    return (uint32_t)dice_roll(&dice) | 1;
}

static void put_raw(struct rig *r, uint32_t acquisition, uint64_t number)
{
    uint64_t slot;
    assert_int_equal(oct_ring_acquire(r->raw, TEST_PATIENCE_US, &slot), OCT_OK);
    struct oct_raw_frame *f = oct_raw_slot(r->raw, slot, &r->plan.geometry);
    f->info = (struct oct_bscan_info){.id = slot,
                                      .acquisition = acquisition,
                                      .number = number,
                                      .volume = number / V,
                                      .bscan = (uint32_t)(number % V),
                                      .sequence = number + 7};
    memset(f->line_valid, 1, M);
    for (uint32_t i = 0; i < M * N; i++)
        f->spectra[i] = (uint16_t)content(acquisition, number, i);
    oct_ring_publish(r->raw);
}

static void put_image_of(struct rig *r, uint32_t acquisition, uint64_t number, enum oct_err status)
{
    uint64_t slot;
    assert_int_equal(oct_ring_acquire(r->images, TEST_PATIENCE_US, &slot), OCT_OK);
    struct oct_image_frame *f = oct_image_slot(r->images, slot);
    uint8_t *pixels = f->pixels;
    f->info = (struct oct_bscan_info){.id = slot,
                                      .acquisition = acquisition,
                                      .number = number,
                                      .volume = number / V,
                                      .bscan = (uint32_t)(number % V),
                                      .sequence = number + 7};
    f->status = status;
    f->lo = 0;
    f->hi = 1;
    for (uint32_t i = 0; i < M * D; i++)
        pixels[i] = (uint8_t)content(acquisition, number, i + 5000);
    oct_ring_publish(r->images);
}

static void put(struct rig *r, uint32_t acquisition, uint64_t from, uint64_t to)
{
    for (uint64_t number = from; number < to; number++) {
        put_raw(r, acquisition, number);
        put_image_of(r, acquisition, number, OCT_OK);
    }
}

static void open_rings(struct rig *r)
{
    const char *top = getenv("TMPDIR");
    memset(r, 0, sizeof(*r));
    r->buffer_bscans = 4096; /* the disk may be as slow as it likes */
    r->plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    snprintf(r->directory, sizeof(r->directory), "%s/recorder.XXXXXX", top ? top : "/tmp");
    assert_non_null(mkdtemp(r->directory));
    r->raw = open_ring(SLOTS, oct_raw_slot_bytes(&r->plan.geometry));
    r->images = open_ring(SLOTS, oct_image_slot_bytes(&r->plan.geometry));
}

static void open_recorder(struct rig *r)
{
    struct oct_error err = {.text = ""};
    const struct oct_recorder_options options = {
        .plan = &r->plan,
        .raw = r->raw,
        .images = r->images,
        .ended_at = &r->ended_at,
        .engine = "none",
        .losses = r->losses,
        .buffer_bscans = r->buffer_bscans,
        .history_bscans = r->history_bscans,
    };
    if (oct_recorder_create(&r->recorder, &options, &err))
        fail_msg("%s", err.text);
}

static void open_rig(struct rig *r)
{
    open_rings(r);
    open_recorder(r);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static void remove_folder(const struct rig *r)
{
    nftw(r->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* As the daemon ends: the rings close, then the recorder. */
static void close_recorder(struct rig *r)
{
    oct_ring_close(r->raw);
    oct_ring_close(r->images);
    oct_recorder_destroy(r->recorder);
    r->recorder = NULL;
}

static void close_rig(struct rig *r)
{
    if (r->recorder)
        close_recorder(r);
    oct_ring_destroy(r->raw);
    oct_ring_destroy(r->images);
    remove_folder(r);
}

static enum oct_err start_in(struct rig *r, const char *directory, bool spectra, bool bscans,
                             struct oct_error *err)
{
    const struct oct_recorder_settings settings = {.directory = directory,
                                                   .spectra = spectra,
                                                   .bscans = bscans,
                                                   .sync_interval_s = 0.02,
                                                   .config_text = "[scan]\n",
                                                   .eye = "OS",
                                                   .pseudonym = "P 7/../x",
                                                   .refractive_index = 1.3};
    return oct_recorder_start(r->recorder, &settings, err);
}

static void start(struct rig *r)
{
    struct oct_error err = {.text = ""};
    if (start_in(r, r->directory, true, true, &err))
        fail_msg("%s", err.text);
}

static struct oct_recorder_status status_of(const struct rig *r)
{
    struct oct_recorder_status s;
    oct_recorder_get_status(r->recorder, &s);
    return s;
}

/* Waits until the condition holds for the status `s`, or fails. */
#define WAIT(rig, s, condition)                                                                    \
    do {                                                                                           \
        uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;                                     \
        while ((s) = status_of(rig), !(condition)) {                                               \
            if (oct_clock_ns() > until_ns)                                                         \
                fail_msg("waited in vain for %s; failure: %s", #condition, (s).failure.text);      \
            sleep_us(500);                                                                         \
        }                                                                                          \
    } while (0)

/* Exactly these files, in the order of their names, none of them a .part. */
static size_t list_files(const struct rig *r, char paths[][256], size_t most)
{
    char pattern[256];
    glob_t found;
    size_t n = 0;
    snprintf(pattern, sizeof(pattern), "%s/*", r->directory);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (n = 0; n < found.gl_pathc && n < most; n++)
            snprintf(paths[n], 256, "%s", found.gl_pathv[n]);
        globfree(&found);
    }
    return n;
}

/* Rows from .. to - 1 of volume `volume` are there and right, the others are not valid. */
static void expect_file(const char *path, uint32_t acquisition, uint64_t volume, uint32_t from,
                        uint32_t to)
{
    struct oct_volume_reader *reader;
    struct oct_error err;
    uint16_t spectra[M * N];
    uint8_t valid_lines[M], pixels[M * D];
    if (oct_volume_open(&reader, path, &err))
        fail_msg("%s", err.text);
    const struct oct_volume_facts *facts = oct_volume_facts(reader);
    assert_int_equal(facts->n_valid, to - from);
    for (uint32_t v = 0; v < V; v++) {
        struct oct_raw_frame raw = {.spectra = spectra, .line_valid = valid_lines};
        bool valid, wanted = v >= from && v < to;
        if (facts->n_samples) {
            assert_int_equal(oct_volume_read_spectra(reader, v, &raw, &valid, &err), OCT_OK);
            assert_int_equal(valid, wanted);
            assert_int_equal(raw.info.sequence, wanted ? volume * V + v + 7 : 0);
            for (uint32_t i = 0; wanted && i < M * N; i++)
                assert_int_equal(spectra[i], (uint16_t)content(acquisition, volume * V + v, i));
        }
        if (facts->depth) {
            assert_int_equal(oct_volume_read_image(reader, v, pixels, &valid, &err), OCT_OK);
            assert_int_equal(valid, wanted);
            for (uint32_t i = 0; wanted && i < M * D; i++)
                assert_int_equal(pixels[i],
                                 (uint8_t)content(acquisition, volume * V + v, i + 5000));
        }
    }
    assert_true(facts->n_samples != 0 || facts->depth != 0);
    oct_volume_reader_destroy(reader);
    assert_non_null(strstr(path, "/P-7----x_OS_"));
}

/* ---- cases ---- */

static void every_volume_and_every_acquisition_gets_its_file(void **state)
{
    struct rig r;
    struct oct_recorder_status s;
    char paths[8][256];
    (void)state;
    open_rig(&r);
    start(&r);
    put(&r, 2, 0, 2 * V + 2);
    put(&r, 3, V + 1, 2 * V); /* another acquisition that begins inside a volume */
    WAIT(&r, s, s.volumes_written == 4);
    assert_true(s.active && !s.file_open && !s.stopping);
    assert_int_equal(s.bscans_written, 3 * V + 1);
    assert_int_equal(s.volumes_incomplete, 2);
    assert_int_equal(s.bscans_unsaved, 0);
    assert_int_equal(s.failure.code, OCT_OK);
    assert_int_equal(list_files(&r, paths, 8), 4);
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
    close_rig(&r);
}

static void a_volume_under_way_is_left_alone(void **state)
{
    struct rig r;
    struct oct_recorder_status s;
    char paths[8][256];
    (void)state;
    open_rig(&r);
    start(&r);
    put(&r, 1, 0, 2);
    oct_recorder_stop(r.recorder);
    WAIT(&r, s, !s.active); /* now it has seen them */
    put_raw(&r, 1, 2);      /* its picture comes after the start: it changes nothing */
    start(&r);
    put_image_of(&r, 1, 2, OCT_OK);
    put(&r, 1, 3, 2 * V);
    WAIT(&r, s, s.volumes_written == 2);
    assert_int_equal(s.bscans_written, 2 + V);
    assert_int_equal(list_files(&r, paths, 8), 2);
    expect_file(paths[0], 1, 0, 0, 2);
    expect_file(paths[1], 1, 1, 0, V);
    close_rig(&r);
}

static void stop_takes_what_is_in_the_raw_ring_and_no_more(void **state)
{
    struct rig r;
    struct oct_recorder_status s;
    struct oct_error err;
    char paths[8][256];
    (void)state;
    open_rig(&r);
    start(&r);
    put(&r, 1, 0, 2);
    for (uint64_t n = 2; n < 5; n++)
        put_raw(&r, 1, n);
    oct_recorder_stop(r.recorder);
    oct_recorder_stop(r.recorder); /* again: nothing new */
    s = status_of(&r);
    assert_true(s.active && s.stopping);
    assert_int_equal(start_in(&r, r.directory, true, true, &err), OCT_E_STATE);
    put_raw(&r, 1, 5);
    for (uint64_t n = 2; n < 6; n++)
        put_image_of(&r, 1, n, OCT_OK);
    WAIT(&r, s, !s.active);
    assert_false(s.stopping || s.file_open);
    assert_int_equal(s.bscans_written, 5);
    assert_int_equal(s.volumes_incomplete, 1);
    assert_int_equal(list_files(&r, paths, 8), 1);
    expect_file(paths[0], 1, 0, 0, 5);
    start(&r); /* and again */
    put(&r, 1, V, 2 * V);
    WAIT(&r, s, s.volumes_written == 2);
    close_rig(&r);
}

static void stop_without_anything_recorded_ends_at_once(void **state)
{
    struct rig r;
    struct oct_recorder_status s;
    char paths[8][256];
    (void)state;
    open_rig(&r);
    oct_recorder_stop(r.recorder); /* not active: nothing to do */
    for (int round = 0; round < 20; round++) {
        start(&r);
        oct_recorder_stop(r.recorder);
        WAIT(&r, s, !s.active);
    }
    assert_int_equal(list_files(&r, paths, 8), 0);
    close_rig(&r);
}

static void the_end_of_the_acquisition_closes_a_partial_file(void **state)
{
    struct rig r;
    struct oct_recorder_status s;
    char paths[8][256];
    (void)state;
    open_rig(&r);
    start(&r);
    put(&r, 1, 0, 4);
    WAIT(&r, s, s.bscans_in_file == 4); /* synced while the file is open */
    assert_true(s.file_open);
    r.ended_at = 5;
    WAIT(&r, s, !s.file_open);
    assert_true(s.active);
    put(&r, 2, 0, 2); /* the end before does not close the file after it */
    WAIT(&r, s, s.bscans_written == 6);
    sleep_us(150000);
    assert_true(status_of(&r).file_open);
    close_recorder(&r); /* as at shutdown: whole files, final names */
    assert_int_equal(list_files(&r, paths, 8), 2);
    expect_file(paths[0], 1, 0, 0, 4);
    expect_file(paths[1], 2, 0, 0, 2);
    close_rig(&r);
}

static void stop_and_shutdown_at_once_lose_nothing(void **state)
{
    (void)state;
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

static void start_is_refused_while_active_and_where_no_file_can_be(void **state)
{
    struct rig r;
    struct oct_error err;
    char path[300];
    (void)state;
    open_rig(&r);
    snprintf(path, sizeof(path), "%s/a/b", r.directory);
    assert_int_equal(start_in(&r, path, true, true, &err), OCT_E_IO);
    assert_non_null(strstr(err.text, path));
    snprintf(path, sizeof(path), "%s/file", r.directory);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(start_in(&r, path, true, true, &err), OCT_E_IO);
    assert_non_null(strstr(err.text, "record.directory"));
    assert_false(status_of(&r).active);
    snprintf(path, sizeof(path), "%s/new", r.directory);
    assert_int_equal(start_in(&r, path, true, true, &err), OCT_OK); /* is made */
    assert_int_equal(start_in(&r, path, true, true, &err), OCT_E_STATE);
    assert_non_null(strstr(err.text, "already"));
    assert_true(status_of(&r).active);
    close_rig(&r);
}

static void a_picture_that_the_engine_lost_is_unsaved_and_the_rest_is_there(void **state)
{
    struct rig r;
    struct oct_recorder_status s;
    (void)state;
    open_rig(&r);
    start(&r);
    for (uint64_t n = 0; n < V; n++) {
        put_raw(&r, 1, n);
        put_image_of(&r, 1, n, n == 2 ? OCT_E_BACKEND : OCT_OK);
    }
    WAIT(&r, s, s.volumes_written == 1);
    assert_int_equal(s.bscans_written, V - 1);
    assert_int_equal(s.bscans_unsaved, 1);
    assert_int_equal(s.account.dropped[OCT_LOSS_ENGINE], 1);
    assert_true(s.account.offered == V && s.account.written == V - 1 && s.account.pending == 0);
    assert_int_equal(s.volumes_incomplete, 1);
    close_rig(&r);
}

static void spectra_or_pictures_alone_are_recorded_alone(void **state)
{
    struct rig r;
    struct oct_recorder_status s;
    struct oct_error err;
    char paths[8][256];
    (void)state;
    open_rig(&r);
    assert_int_equal(start_in(&r, r.directory, true, false, &err), OCT_OK);
    put(&r, 1, 0, V);
    WAIT(&r, s, s.volumes_written == 1);
    oct_recorder_stop(r.recorder);
    WAIT(&r, s, !s.active);
    assert_int_equal(start_in(&r, r.directory, false, true, &err), OCT_OK);
    put(&r, 1, V, 2 * V);
    WAIT(&r, s, s.volumes_written == 2);
    assert_int_equal(list_files(&r, paths, 8), 2);
    expect_file(paths[0], 1, 0, 0, V);
    expect_file(paths[1], 1, 1, 0, V);
    close_rig(&r);
}

static void a_folder_that_goes_away_ends_the_recording_and_nothing_else(void **state)
{
    struct rig r;
    struct oct_recorder_status s;
    (void)state;
    open_rig(&r);
    start(&r);
    put(&r, 1, 0, 2);
    WAIT(&r, s, s.bscans_in_file == 2);
    remove_folder(&r);
    put(&r, 1, 2, 5 * SLOTS); /* more than the rings hold: someone must be reading on */
    WAIT(&r, s, !s.active);
    assert_int_not_equal(s.failure.code, OCT_OK);
    assert_non_null(strstr(s.failure.text, r.directory));
    assert_false(s.file_open || s.stopping);
    start(&r); /* makes the folder again */
    assert_int_equal(status_of(&r).failure.code, OCT_OK);
    put(&r, 2, 0, V);
    WAIT(&r, s, s.volumes_written >= 1 && !s.file_open);
    assert_true(s.active && s.failure.code == OCT_OK);
    close_rig(&r);
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_write_that_fails_ends_the_recording_and_counts_what_is_unsaved(void **state)
{
    struct rig r;
    struct oct_recorder_status s;
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    open_rig(&r);
    start(&r);
    put(&r, 1, 0, 2);
    WAIT(&r, s, s.bscans_in_file == 2);
    limit_file_size(100);
    put(&r, 1, 2, 3);
    WAIT(&r, s, !s.active);
    limit_file_size(RLIM_INFINITY);
    assert_int_not_equal(s.failure.code, OCT_OK);
    assert_int_equal(s.bscans_written, 2);
    assert_int_equal(s.bscans_unsaved, 1);
    put(&r, 1, 3, 3 * SLOTS); /* still wanted, still not saved */
    uint64_t unsaved = 1 + 3 * SLOTS - 3;
    WAIT(&r, s, s.bscans_unsaved == unsaved);
    start(&r);
    limit_file_size(100); /* now not even a file can be made */
    put(&r, 2, 0, 1);
    WAIT(&r, s, !s.active);
    limit_file_size(RLIM_INFINITY);
    assert_int_equal(s.bscans_unsaved, unsaved + 1);
    assert_int_equal(s.bscans_written, 2);
    oct_recorder_stop(r.recorder); /* nobody wants a recording any more */
    put(&r, 2, 1, 3 * SLOTS);
    WAIT(&r, s, s.bscans_passed == 6 * SLOTS);
    assert_int_equal(s.bscans_unsaved, unsaved + 1);
    start(&r);
    put(&r, 3, 0, V);
    WAIT(&r, s, s.bscans_written == 2 + V);
    close_rig(&r);
}

static void a_recorder_made_while_bscans_flow_pairs_spectra_with_their_pictures(void **state)
{
    struct rig r;
    struct oct_recorder_status s;
    char paths[8][256];
    (void)state;
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

static void start_and_stop_again_and_again_while_bscans_flow(void **state)
{
    struct rig r;
    struct oct_recorder_status s;
    struct dice dice = {5};
    (void)state;
    open_rig(&r);
    uint64_t number = 0;
    for (int round = 0; round < 40; round++) {
        start(&r);
        uint64_t more = dice_below(&dice, 3 * V);
        put(&r, 1, number, number + more);
        number += more;
        oct_recorder_stop(r.recorder);
        more = dice_below(&dice, 4);
        put(&r, 1, number, number + more);
        number += more;
        WAIT(&r, s, !s.active);
        assert_int_equal(s.failure.code, OCT_OK);
    }
    assert_int_equal(s.bscans_unsaved, 0);
    assert_true(s.volumes_written > 20 && s.bscans_written <= number);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_volume_and_every_acquisition_gets_its_file),
        cmocka_unit_test(a_volume_under_way_is_left_alone),
        cmocka_unit_test(stop_takes_what_is_in_the_raw_ring_and_no_more),
        cmocka_unit_test(stop_without_anything_recorded_ends_at_once),
        cmocka_unit_test(the_end_of_the_acquisition_closes_a_partial_file),
        cmocka_unit_test(stop_and_shutdown_at_once_lose_nothing),
        cmocka_unit_test(start_is_refused_while_active_and_where_no_file_can_be),
        cmocka_unit_test(a_picture_that_the_engine_lost_is_unsaved_and_the_rest_is_there),
        cmocka_unit_test(spectra_or_pictures_alone_are_recorded_alone),
        cmocka_unit_test(a_folder_that_goes_away_ends_the_recording_and_nothing_else),
        cmocka_unit_test(a_write_that_fails_ends_the_recording_and_counts_what_is_unsaved),
        cmocka_unit_test(a_recorder_made_while_bscans_flow_pairs_spectra_with_their_pictures),
        cmocka_unit_test(start_and_stop_again_and_again_while_bscans_flow),
    };
    return cmocka_run_group_tests_name("recorder", tests, NULL, NULL);
}
