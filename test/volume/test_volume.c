/* Recordings: writing, round trips, and what happens when the system refuses.
 *
 * `test_volume --writer PATH ROWS` is the program that test_volume_file.py kills: it records ROWS
 * B-scans of 9 lines, 101 samples and 33 pixels and prints the number that oct_volume_written
 * reports whenever it changes. */
#define _GNU_SOURCE
#include "test/rig/disk_rig.h"
#include "test/rig/tap.h"
#include "test/rig/volume_cases.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- system calls that fail when told to ---- */

static struct {
    unsigned n_calls;
    unsigned eintr_every; /* every n-th write is interrupted first */
    size_t short_bytes;   /* a write moves at most so many bytes */
    size_t room_bytes;    /* then the disk is full; 0: never */
    bool no_direct;       /* O_DIRECT writes are refused */
    unsigned n_direct, n_buffered;
    bool fail_sync;
} fault;

static ssize_t write_when_told(int fd, const void *data, size_t bytes, off_t offset)
{
    fault.n_calls++;
    if (fault.eintr_every && fault.n_calls % fault.eintr_every == 0) {
        errno = EINTR;
        return -1;
    }
    bool direct = fcntl(fd, F_GETFL) & O_DIRECT;
    if (direct && fault.no_direct) {
        errno = EINVAL;
        return -1;
    }
    direct ? fault.n_direct++ : fault.n_buffered++;
    if (fault.short_bytes && bytes > fault.short_bytes && !direct)
        bytes = fault.short_bytes;
    if (fault.short_bytes && direct && bytes > 8192)
        bytes = 4096 * (1 + fault.n_calls % 2);
    if (fault.room_bytes == 1) {
        errno = ENOSPC;
        return -1;
    }
    if (fault.room_bytes)
        fault.room_bytes -= fault.room_bytes - 1 < bytes ? fault.room_bytes - 1 : bytes;
    return disk_pwrite(fd, data, bytes, offset);
}

static int sync_when_told(int fd)
{
    if (fault.fail_sync) {
        errno = EIO;
        return -1;
    }
    return disk_fdatasync(fd);
}

static int reset_faults(void **state)
{
    memset(&fault, 0, sizeof(fault));
    return 0;
}

/* ---- helpers ---- */

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Writes the rows that `keeps` says, syncs where `syncs` says, checks the file, removes it. */
static void round_trip(const struct oct_plan *plan, bool spectra, bool bscans, unsigned gap_every,
                       unsigned gap_length, unsigned sync_every)
{
    uint32_t n = plan->geometry.n_bscans;
    uint8_t *written = calloc(n, 1);
    struct oct_volume_writer *w = volume_make("trip.h5", plan, spectra, bscans);
    uint64_t n_put = 0;
    for (uint32_t v = 0; v < n; v++) {
        if (gap_every && v % gap_every < gap_length)
            continue;
        volume_add(w, plan, v, spectra, bscans);
        written[v] = 1;
        n_put++;
        if (sync_every && v % sync_every == 0) {
            volume_sync(w);
            assert_int_equal(oct_volume_written(w), n_put);
            if (v % (4 * sync_every) == 0)
                volume_expect("trip.h5.part", &plan->geometry, written, spectra, bscans);
        }
    }
    volume_close(w);
    volume_expect("trip.h5", &plan->geometry, written, spectra, bscans);
    unlink("trip.h5");
    free(written);
}

#define CASE(name) TEST_WITH(name, reset_faults, NULL)

/* ---- round trips ---- */

CASE(a_recording_reads_back_exactly_whatever_its_shape)
{
    static const struct {
        uint32_t n, m, v, d;
    } shapes[] = {
        {37, 5, 300, 11},   {4, 1, 3000, 1},      {512, 4, 100, 512},
        {2049, 16, 60, 99}, {832, 240, 12, 1024}, {101, 9, 500, 33},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int type = OCT_SAMPLE_U8; type <= OCT_SAMPLE_F32; type++) {
            struct oct_plan plan = volume_plan(shapes[i].n, shapes[i].m, shapes[i].v, shapes[i].d,
                                               (enum oct_sample_type)type);
            round_trip(&plan, true, true, 0, 0, 0);
            round_trip(&plan, true, false, 0, 0, 7);
            round_trip(&plan, false, true, 0, 0, 0);
        }
}

CASE(syncs_and_gaps_anywhere_leave_every_other_row_exact)
{
    struct oct_plan plan = volume_plan(101, 9, 150, 33, OCT_SAMPLE_U8);
    for (unsigned sync_every = 0; sync_every < 30; sync_every = sync_every * 3 + 1)
        for (unsigned gap = 1; gap < 80; gap = gap * 4 + 1)
            round_trip(&plan, true, true, gap + 3, gap, sync_every);
    /* Gaps longer than the staging buffers (4 MiB): the file is jumped over. */
    plan = volume_plan(2048, 100, 120, 700, OCT_SAMPLE_F32);
    round_trip(&plan, true, true, 40, 37, 0);
    round_trip(&plan, true, true, 60, 55, 1);
    plan = volume_plan(2047, 101, 120, 701, OCT_SAMPLE_F32);
    round_trip(&plan, true, true, 40, 37, 3);
}

CASE(a_row_may_be_larger_than_the_staging_buffer)
{
    struct oct_plan plan = volume_plan(2047, 2111, 4, 1025, OCT_SAMPLE_F32);
    round_trip(&plan, true, true, 0, 0, 0);
    round_trip(&plan, true, true, 2, 1, 1);
}

CASE(spectra_may_run_ahead_of_pictures)
{
    enum { V = 50, AHEAD = 9 };
    struct oct_plan plan = volume_plan(101, 9, V, 33, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = volume_make("ahead.h5", &plan, true, true);
    struct volume_bscan b;
    uint8_t written[V];
    memset(written, 1, V);
    volume_bscan_init(&b, &plan.geometry);
    for (uint32_t v = 0; v < V + AHEAD; v++) {
        if (v < V) {
            volume_bscan_make(&b, &plan.geometry, v);
            must(oct_volume_write_spectra(w, &b.raw, &failure));
        }
        if (v >= AHEAD) {
            volume_bscan_make(&b, &plan.geometry, v - AHEAD);
            must(oct_volume_write_image(w, &b.image, &failure));
        }
        if (v == 20) {
            volume_sync(w);
            assert_int_equal(oct_volume_written(w), 20 - AHEAD + 1);
        }
    }
    volume_close(w);
    volume_expect("ahead.h5", &plan.geometry, written, true, true);
    volume_bscan_finish(&b);
}

CASE(a_failed_picture_leaves_its_row_invalid_and_its_spectra_in_place)
{
    struct oct_plan plan = volume_plan(101, 9, 3, 33, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = volume_make("failed.h5", &plan, true, true);
    struct volume_bscan b, got;
    bool valid;
    volume_bscan_init(&b, &plan.geometry);
    volume_bscan_init(&got, &plan.geometry);
    for (uint32_t v = 0; v < 3; v++) {
        volume_bscan_make(&b, &plan.geometry, v);
        b.image.status = v == 1 ? OCT_E_BACKEND : OCT_OK;
        must(oct_volume_write_spectra(w, &b.raw, &failure));
        must(oct_volume_write_image(w, &b.image, &failure));
    }
    volume_sync(w);
    assert_int_equal(oct_volume_written(w), 2);
    volume_close(w);

    struct oct_volume_reader *r;
    must(oct_volume_open(&r, "failed.h5", &failure));
    assert_int_equal(oct_volume_facts(r)->n_valid, 2);
    assert_false(oct_volume_facts(r)->whole);
    volume_bscan_make(&b, &plan.geometry, 1);
    must(oct_volume_read_spectra(r, 1, &got.raw, &valid, &failure));
    assert_false(valid);
    assert_memory_equal(got.raw.spectra, b.raw.spectra, oct_geometry_spectra_bytes(&plan.geometry));
    must(oct_volume_read_image(r, 1, got.image.pixels, &valid, &failure));
    assert_false(valid);
    oct_volume_reader_destroy(r);
    volume_bscan_finish(&b);
    volume_bscan_finish(&got);
}

CASE(the_same_input_gives_the_same_bytes)
{
    struct oct_plan plan = volume_plan(101, 9, 20, 33, OCT_SAMPLE_F32);
    const char *names[2] = {"same1.h5", "same2.h5"};
    unsigned char *data[2];
    size_t bytes[2];
    double truth[4] = {1, 2, 3, 4};
    for (int i = 0; i < 2; i++) {
        struct oct_volume_writer *w = volume_make(names[i], &plan, true, true);
        for (uint32_t v = 0; v < 20; v++)
            volume_add(w, &plan, v, true, true);
        volume_close(w);
        must(oct_volume_add_f64(names[i], "/truth/deep/motion", truth, 2, (const size_t[]){2, 2},
                                "um", &failure));
        data[i] = volume_slurp(names[i], &bytes[i]);
        if (i == 0)
            sleep(1); /* times of creation would differ */
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(data[0], data[1], bytes[0]);
    free(data[0]);
    free(data[1]);
}

/* ---- refusals ---- */

CASE(rows_that_come_twice_late_or_from_nowhere_are_refused)
{
    struct oct_plan plan = volume_plan(101, 9, 10, 33, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = volume_make("order.h5", &plan, true, true);
    struct volume_bscan b;
    struct oct_error err;
    uint8_t written[10] = {0};
    volume_bscan_init(&b, &plan.geometry);
    volume_bscan_make(&b, &plan.geometry, 4);
    must_fail(oct_volume_write_image(w, &b.image, &failure), OCT_E_ARG, "spectra must come first");
    volume_add(w, &plan, 4, true, true);
    written[4] = 1;
    must_fail(oct_volume_write_spectra(w, &b.raw, &failure), OCT_E_ARG, "rows must rise");
    assert_int_equal(oct_volume_write_image(w, &b.image, &err), OCT_E_ARG);
    volume_bscan_make(&b, &plan.geometry, 3);
    assert_int_equal(oct_volume_write_spectra(w, &b.raw, &err), OCT_E_ARG);
    b.raw.info.bscan = b.image.info.bscan = 10;
    assert_int_equal(oct_volume_write_spectra(w, &b.raw, &err), OCT_E_ARG);
    must_fail(oct_volume_write_image(w, &b.image, &failure), OCT_E_ARG, "order.h5.part");
    assert_int_equal(oct_volume_write_row(w, &b.raw.info, &err), OCT_E_ARG);
    volume_add(w, &plan, 5, true, true);
    written[5] = 1;
    volume_close(w);
    volume_expect("order.h5", &plan.geometry, written, true, true);
    volume_bscan_finish(&b);
}

CASE(an_existing_file_is_never_overwritten)
{
    struct oct_plan plan = volume_plan(101, 9, 2, 33, OCT_SAMPLE_U8);
    struct oct_volume_writer *w, *other;
    struct oct_error err;
    size_t bytes;
    assert_int_equal(close(open("mine.h5", O_CREAT | O_WRONLY, 0600)), 0);
    assert_int_equal(oct_volume_create(&w, "mine.h5", &plan, &volume_about, true, true, &err),
                     OCT_E_IO);
    assert_null(w);
    assert_non_null(strstr(err.text, "mine.h5: exists already"));
    assert_false(exists("mine.h5.part"));
    unlink("mine.h5");

    w = volume_make("mine.h5", &plan, true, true);
    must_fail(oct_volume_create(&other, "mine.h5", &plan, &volume_about, true, true, &failure),
              OCT_E_IO, "mine.h5.part: exists already");
    volume_add(w, &plan, 0, true, true);
    FILE *out = fopen("mine.h5", "w");
    fputs("somebody's", out);
    fclose(out);
    assert_int_equal(oct_volume_close(w, &err), OCT_E_IO);
    assert_non_null(strstr(err.text, "exists already"));
    assert_non_null(strstr(err.text, "mine.h5.part"));
    unsigned char *data = volume_slurp("mine.h5", &bytes);
    assert_int_equal(bytes, 10);
    free(data);
    volume_expect("mine.h5.part", &plan.geometry, (const uint8_t[]){1, 0}, true, true);
}

CASE(the_file_has_its_final_name_only_when_closed)
{
    struct oct_plan plan = volume_plan(101, 9, 2, 33, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = volume_make("name.h5", &plan, true, true);
    assert_true(exists("name.h5.part"));
    assert_false(exists("name.h5"));
    volume_expect("name.h5.part", &plan.geometry, (const uint8_t[]){0, 0}, true, true);
    volume_close(w);
    assert_false(exists("name.h5.part"));
    assert_true(exists("name.h5"));
}

CASE(a_folder_that_is_not_there_is_named)
{
    struct oct_plan plan = volume_plan(101, 9, 2, 33, OCT_SAMPLE_U8);
    struct oct_volume_writer *w;
    struct oct_error err;
    must_fail(oct_volume_create(&w, "none/a.h5", &plan, &volume_about, true, true, &failure),
              OCT_E_IO, "none/a.h5");
    assert_int_equal(oct_volume_create(&w, "a.h5", &plan, &volume_about, false, false, &err),
                     OCT_E_ARG);
}

/* ---- a system that interrupts, is slow, is full ---- */

CASE(interrupted_and_short_writes_change_nothing)
{
    struct oct_plan plan = volume_plan(101, 9, 400, 33, OCT_SAMPLE_U8);
    for (int i = 0; i < 4; i++) {
        reset_faults(state);
        fault.eintr_every = i & 1 ? 3 : 0;
        fault.short_bytes = i & 2 ? 1000 : 0;
        round_trip(&plan, true, true, 9, 2, 11);
        struct oct_plan large = volume_plan(2047, 701, 4, 1025, OCT_SAMPLE_F32);
        round_trip(&large, true, true, 0, 0, 2);
    }
}

CASE(without_direct_io_the_page_cache_serves)
{
    struct oct_plan plan = volume_plan(832, 240, 24, 1024, OCT_SAMPLE_U8);
    round_trip(&plan, true, true, 5, 1, 3);
    unsigned n_direct = fault.n_direct;
    reset_faults(state);
    fault.no_direct = true;
    round_trip(&plan, true, true, 5, 1, 3);
    assert_int_equal(fault.n_direct, 0);
    if (n_direct == 0)
        print_message("# this file system has no O_DIRECT: only the page cache was tried\n");
}

CASE(a_row_is_not_valid_before_its_samples_are_synced)
{
    struct oct_plan plan = volume_plan(101, 9, 8, 33, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = volume_make("unsynced.h5", &plan, true, true);
    struct oct_volume_reader *r;
    struct oct_error err;
    volume_add(w, &plan, 0, true, true);
    volume_add(w, &plan, 1, true, true);
    volume_sync(w);
    volume_add(w, &plan, 2, true, true);
    fault.fail_sync = true;
    must_fail(oct_volume_sync(w, &failure), OCT_E_IO, "unsynced.h5.part");
    fault.fail_sync = false;
    assert_int_equal(oct_volume_written(w), 2);
    assert_int_equal(oct_volume_open(&r, "unsynced.h5.part", &err), OCT_OK);
    assert_int_equal(oct_volume_facts(r)->n_valid, 2);
    oct_volume_reader_destroy(r);
    /* What a failed sync lost nobody knows: the writer must not go on as if nothing had been. */
    assert_int_equal(volume_put(w, &plan.geometry, 3, true, true, &err), OCT_E_IO);
    assert_int_equal(oct_volume_close(w, &err), OCT_E_IO);
    assert_true(exists("unsynced.h5.part"));
    assert_false(exists("unsynced.h5"));
}

CASE(a_disk_that_fills_later_keeps_what_was_reported)
{
    enum { V = 200 };
    struct oct_plan plan = volume_plan(832, 24, V, 512, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = volume_make("filling.h5", &plan, true, true);
    struct oct_error err;
    enum oct_err e = OCT_OK;
    fault.room_bytes = 4 << 20;
    for (uint32_t v = 0; v < V && e == OCT_OK; v++) {
        e = volume_put(w, &plan.geometry, v, true, true, &err);
        if (e == OCT_OK && v % 10 == 9)
            e = oct_volume_sync(w, &err);
    }
    assert_int_equal(e, OCT_E_NO_SPACE);
    assert_non_null(strstr(err.text, "filling.h5.part"));
    uint64_t n_written = oct_volume_written(w);
    assert_true(n_written >= 10 && n_written < V);
    assert_int_equal(oct_volume_sync(w, &err), OCT_E_NO_SPACE);
    assert_int_equal(oct_volume_close(w, &err), OCT_E_NO_SPACE);
    reset_faults(state);

    struct oct_volume_reader *r;
    struct volume_bscan want, got;
    bool valid;
    volume_bscan_init(&want, &plan.geometry);
    volume_bscan_init(&got, &plan.geometry);
    assert_int_equal(oct_volume_open(&r, "filling.h5.part", &err), OCT_OK);
    assert_int_equal(oct_volume_facts(r)->n_valid, n_written);
    for (uint32_t v = 0; v < n_written; v++) {
        volume_bscan_make(&want, &plan.geometry, v);
        assert_int_equal(oct_volume_read_spectra(r, v, &got.raw, &valid, &err), OCT_OK);
        assert_true(valid);
        assert_memory_equal(got.raw.spectra, want.raw.spectra, 832 * 24 * 2);
    }
    oct_volume_reader_destroy(r);
    volume_bscan_finish(&want);
    volume_bscan_finish(&got);
}

/* In a child: a limit on the length of files, which fails as a full disk does. */
static int try_beyond_limit(const struct oct_plan *plan)
{
    struct rlimit limit = {4 << 20, 4 << 20};
    struct oct_volume_writer *w;
    struct oct_error err;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    enum oct_err e = oct_volume_create(&w, "toolarge.h5", plan, &volume_about, true, true, &err);
    return e == OCT_E_NO_SPACE && !w && strstr(err.text, "toolarge.h5") &&
           strstr(err.text, "bytes wanted");
}

CASE(a_disk_too_small_is_said_at_creation_and_nothing_is_left)
{
    struct oct_plan plan = volume_plan(832, 24, 400, 512, OCT_SAMPLE_U8);
    pid_t child = fork();
    if (child == 0)
        _exit(try_beyond_limit(&plan) ? 0 : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(exists("toolarge.h5"));
    assert_false(exists("toolarge.h5.part"));
}

CASE(a_full_tmpfs_is_said_at_creation_and_nothing_is_left)
{
    struct oct_plan plan = volume_plan(832, 24, 400, 512, OCT_SAMPLE_U8);
    struct oct_plan small = volume_plan(832, 24, 40, 512, OCT_SAMPLE_U8);
    struct oct_volume_writer *w;
    struct oct_error err;
    assert_int_equal(mkdir("tiny", 0700), 0);
    if (mount("none", "tiny", "tmpfs", 0, "size=8m") != 0)
        skip(); /* mounting needs root */
    enum oct_err e = oct_volume_create(&w, "tiny/a.h5", &plan, &volume_about, true, true, &err);
    bool left = exists("tiny/a.h5") || exists("tiny/a.h5.part");
    bool wrote = false;
    if (!oct_volume_create(&w, "tiny/b.h5", &small, &volume_about, true, true, NULL)) {
        wrote = true;
        for (uint32_t v = 0; v < 40; v++)
            wrote = !volume_put(w, &small.geometry, v, true, true, NULL) && wrote;
        wrote = !oct_volume_close(w, NULL) && wrote;
    }
    umount2("tiny", MNT_DETACH);
    assert_int_equal(e, OCT_E_NO_SPACE);
    assert_non_null(strstr(err.text, "tiny/a.h5"));
    assert_non_null(strstr(err.text, "bytes wanted"));
    assert_false(left);
    assert_true(wrote);
}

/* ---- the program that is killed ---- */

static int writer(const char *path, uint32_t n_rows)
{
    struct oct_plan plan = volume_plan(101, 9, n_rows, 33, OCT_SAMPLE_U8);
    struct oct_volume_writer *w;
    struct oct_error err;
    uint64_t reported = 0;
    if (oct_volume_create(&w, path, &plan, &volume_about, true, true, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("created\n");
    fflush(stdout);
    for (uint32_t v = 0; v < n_rows; v++) {
        if (v % 50 == 20) /* some never come */
            continue;
        if (volume_put(w, &plan.geometry, v, true, true, &err) ||
            (v % 13 == 0 && oct_volume_sync(w, &err))) {
            fprintf(stderr, "%s\n", err.text);
            break;
        }
        if (oct_volume_written(w) != reported) {
            reported = oct_volume_written(w);
            printf("%u %llu\n", v, (unsigned long long)reported);
            fflush(stdout);
        }
    }
    if (oct_volume_close(w, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("closed\n");
    return 0;
}

int main(int argc, char **argv)
{
    disk_calls = (struct disk_calls){.pwrite = write_when_told, .fdatasync = sync_when_told};
    if (argc == 4 && strcmp(argv[1], "--writer") == 0)
        return writer(argv[2], (uint32_t)strtoul(argv[3], NULL, 10));
    return test_run();
}
