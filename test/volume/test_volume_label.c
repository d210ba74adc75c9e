/* The label of a closed recording: what is changed is read back, all else stays to the byte, and
 * whatever ends the change (a kill, a power cut, a disk that refuses) leaves the old label or the
 * new one in a file that is whole.
 *
 * The C library's writing and syncing are replaced in this program (disk_rig.h). */
#define _GNU_SOURCE /* fork's neighbours, flock */
#include "pipeline/volume/hdf5_lock.h"
#include "pipeline/volume/label.h"
#include "test/rig/disk_rig.h"
#include "test/rig/tap.h"
#include "test/rig/volume_cases.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { V = 3, SECTOR = 512, MAX_NOTES = 16 };

/* A call that the disk got. */
struct note {
    bool is_sync;
    uint64_t offset;
    size_t n_bytes;
    unsigned char bytes[16384];
};

/* What the disk does, and what it was asked. */
static struct {
    int kill_at, fail_at; /* the number of a call; -1: none */
    bool in_the_middle;   /* killed behind half of what is to be written */
    int errnum;
    int n_calls;
    bool notes_calls;
    struct note notes[MAX_NOTES];
    unsigned n_notes;
} disk = {.kill_at = -1, .fail_at = -1};

/* ---- the disk ---- */

static void disk_is_well(void)
{
    disk.kill_at = disk.fail_at = -1;
    disk.n_calls = 0;
    disk.notes_calls = false;
    disk.n_notes = 0;
}

static void note(bool is_sync, const void *data, size_t n_bytes, off_t offset)
{
    if (!disk.notes_calls)
        return;
    assert_true(disk.n_notes < MAX_NOTES && n_bytes <= sizeof(disk.notes[0].bytes));
    struct note *new = &disk.notes[disk.n_notes++];
    new->is_sync = is_sync;
    new->offset = (uint64_t)offset;
    new->n_bytes = n_bytes;
    if (n_bytes > 0)
        memcpy(new->bytes, data, n_bytes);
}

static ssize_t told_pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    const int call = disk.n_calls++;
    if (call == disk.kill_at) {
        if (disk.in_the_middle && bytes > 8)
            disk_pwrite(fd, data, bytes / 2, offset);
        raise(SIGKILL);
    }
    if (call == disk.fail_at) {
        errno = disk.errnum;
        return -1;
    }
    note(false, data, bytes, offset);
    return disk_pwrite(fd, data, bytes, offset);
}

static int told_sync(int fd)
{
    const int call = disk.n_calls++;
    if (call == disk.kill_at)
        raise(SIGKILL);
    if (call == disk.fail_at) {
        errno = disk.errnum;
        return -1;
    }
    note(true, NULL, 0, 0);
    (void)fd; /* no disk is cut off here, and waiting for it takes most of this test's time */
    return 0;
}

static int no_sync(int fd)
{
    (void)fd;
    return 0;
}

/* ---- files ---- */

static struct oct_plan make(const char *path, bool with_spectra, bool with_bscans)
{
    struct oct_plan plan = volume_plan(37, 5, V, 11, OCT_SAMPLE_U8);
    unlink(path);
    struct oct_volume_writer *w = volume_make(path, &plan, with_spectra, with_bscans);
    for (uint32_t v = 0; v < V; v++)
        volume_add(w, &plan, v, with_spectra, with_bscans);
    volume_close(w);
    return plan;
}

static void expect_content(const char *path)
{
    static const uint8_t all[V] = {1, 1, 1};
    const struct oct_plan plan = volume_plan(37, 5, V, 11, OCT_SAMPLE_U8);
    volume_expect(path, &plan.geometry, all, true, true);
}

static void put_file(const char *path, const unsigned char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(disk_pwrite(fd, bytes, n, 0), n);
    close(fd);
}

static struct oct_volume_label read_label(const char *path)
{
    struct oct_volume_label label;
    must(oct_volume_label_read(path, &label, &failure));
    return label;
}

static void expect_label(const char *path, const char *eye, const char *pseudonym,
                         enum oct_volume_mark mark)
{
    const struct oct_volume_label label = read_label(path);
    assert_string_equal(label.eye, eye);
    assert_string_equal(label.pseudonym, pseudonym);
    assert_int_equal(label.mark, mark);
}

static enum oct_err write_label(const char *path, const char *eye, const char *pseudonym,
                                enum oct_volume_mark mark, struct oct_error *err)
{
    const struct oct_volume_label_change change = {eye, pseudonym, &mark};
    return oct_volume_label_write(path, &change, NULL, err);
}

static void expect_write(const char *path, const char *eye, const char *pseudonym,
                         enum oct_volume_mark mark)
{
    must(write_label(path, eye, pseudonym, mark, &failure));
}

/* ---- cases ---- */

TEST(a_new_label_is_read_back_and_all_else_stays)
{
    size_t n_before, n_after;
    make("plain.h5", true, true);
    unsigned char *before = volume_slurp("plain.h5", &n_before);
    expect_label("plain.h5", "OD", volume_about.pseudonym, OCT_MARK_NONE);
    expect_write("plain.h5", "OS", "J\xc3\xbcrgen \xe6\x97\xa5", OCT_MARK_REPEAT);
    expect_label("plain.h5", "OS", "J\xc3\xbcrgen \xe6\x97\xa5", OCT_MARK_REPEAT);
    expect_content("plain.h5");
    unsigned char *after = volume_slurp("plain.h5", &n_after);
    assert_true(n_after > n_before && n_after < n_before + 8192);
    for (size_t i = 0; i < n_before; i++) /* the end of the file, and where its root lies */
        if (before[i] != after[i])
            assert_true((i >= 40 && i < 48) || (i >= 64 && i < 72));
    struct oct_volume_reader *reader;
    assert_int_equal(oct_volume_open(&reader, "plain.h5", NULL), OCT_OK);
    assert_string_equal(oct_volume_config_text(reader), volume_about.config_text);
    assert_string_equal(oct_volume_facts(reader)->start_time, volume_about.start_time);
    assert_string_equal(oct_volume_facts(reader)->mark, "repeat");
    oct_volume_reader_destroy(reader);
    free(before);
    free(after);
}

TEST(only_what_differs_is_written)
{
    struct oct_volume_label label;
    const enum oct_volume_mark keep = OCT_MARK_KEEP;
    const struct oct_volume_label_change nothing = {NULL, NULL, NULL}, mark = {.mark = &keep};
    struct stat before, after;
    make("same.h5", true, false);
    stat("same.h5", &before);
    assert_int_equal(oct_volume_label_write("same.h5", &nothing, &label, NULL), OCT_OK);
    assert_string_equal(label.pseudonym, volume_about.pseudonym);
    expect_write("same.h5", "OD", volume_about.pseudonym, OCT_MARK_NONE);
    stat("same.h5", &after);
    assert_int_equal(after.st_size, before.st_size);
    assert_int_equal(oct_volume_label_write("same.h5", &mark, &label, NULL), OCT_OK);
    assert_string_equal(label.eye, "OD");
    assert_int_equal(label.mark, OCT_MARK_KEEP);
    expect_label("same.h5", "OD", volume_about.pseudonym, OCT_MARK_KEEP);
}

TEST(a_label_may_be_changed_often)
{
    static const char *const eyes[] = {"", "OD", "OS"};
    char text[OCT_LABEL_PSEUDONYM_BYTES] = "";
    make("often.h5", true, true);
    for (unsigned i = 0; i < 60; i++) {
        const enum oct_volume_mark mark = (enum oct_volume_mark)(i % OCT_N_MARKS);
        memset(text, 'a' + (int)(i % 26), (i * 37) % sizeof(text));
        text[(i * 37) % sizeof(text)] = '\0';
        expect_write("often.h5", eyes[i % 3], text, mark);
        expect_label("often.h5", eyes[i % 3], text, mark);
    }
    expect_content("often.h5");
}

/* Changes the label in a child that is killed at the n-th call. False: it came to its end. */
static bool killed_at(const char *path, int call, bool in_the_middle)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        disk_is_well();
        disk.kill_at = call;
        disk.in_the_middle = in_the_middle;
        _exit(write_label(path, "OS", "new", OCT_MARK_KEEP, NULL) != OCT_OK);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

TEST(a_kill_leaves_the_old_label_or_the_new_one)
{
    int n_old = 0, n_new = 0;
    for (int i = 0;; i++) {
        make("killed.h5", true, true);
        const bool was_killed = killed_at("killed.h5", i / 2, i % 2);
        const struct oct_volume_label label = read_label("killed.h5");
        const bool is_new = strcmp(label.pseudonym, "new") == 0;
        assert_string_equal(label.eye, is_new ? "OS" : "OD");
        assert_string_equal(label.pseudonym, is_new ? "new" : volume_about.pseudonym);
        assert_int_equal(label.mark, is_new ? OCT_MARK_KEEP : OCT_MARK_NONE);
        expect_content("killed.h5");
        expect_write("killed.h5", "", "later", OCT_MARK_REPEAT); /* what is left does not hinder */
        expect_label("killed.h5", "", "later", OCT_MARK_REPEAT);
        if (!was_killed)
            break;
        n_old += !is_new;
        n_new += is_new;
    }
    assert_int_equal(n_old, 10); /* three writes and two syncs, each before and in the middle */
    assert_int_equal(n_new, 2);
}

/* The file after a cut behind the first n calls. What was not synced may have reached the disk by
 * sectors, or not; the length too. */
static size_t cut_off(unsigned char *image, const unsigned char *before, size_t n_before,
                      unsigned n_calls)
{
    size_t n = n_before;
    unsigned synced = 0;
    memcpy(image, before, n_before);
    for (unsigned i = 0; i < n_calls; i++)
        synced = disk.notes[i].is_sync ? i : synced;
    for (unsigned i = 0; i < n_calls; i++) {
        const struct note *at = &disk.notes[i];
        for (size_t from = 0; from < at->n_bytes;) {
            const size_t room = SECTOR - (at->offset + from) % SECTOR;
            const size_t some = at->n_bytes - from < room ? at->n_bytes - from : room;
            if (i < synced || rand() % 2) {
                memcpy(image + at->offset + from, at->bytes + from, some);
                n = at->offset + from + some > n ? (size_t)at->offset + from + some : n;
            }
            from += some;
        }
    }
    return n;
}

TEST(a_power_cut_leaves_the_old_label_or_the_new_one)
{
    size_t n_before;
    unsigned n_old = 0, n_new = 0;
    make("power.h5", true, true);
    unsigned char *before = volume_slurp("power.h5", &n_before);
    unsigned char *image = calloc(n_before + 65536, 1);
    disk.notes_calls = true;
    expect_write("power.h5", "OS", "new", OCT_MARK_KEEP);
    disk.notes_calls = false;
    for (unsigned i = 0; i < 100; i++) {
        memset(image, 0, n_before + 65536);
        const size_t n = cut_off(image, before, n_before, i % (disk.n_notes + 1));
        put_file("cut.h5", image, n);
        const struct oct_volume_label label = read_label("cut.h5");
        const bool is_new = strcmp(label.pseudonym, "new") == 0;
        assert_string_equal(label.eye, is_new ? "OS" : "OD");
        assert_string_equal(label.pseudonym, is_new ? "new" : volume_about.pseudonym);
        expect_content("cut.h5");
        n_old += !is_new;
        n_new += is_new;
    }
    assert_true(n_old > 0 && n_new > 0);
    disk_is_well();
    free(before);
    free(image);
}

TEST(a_disk_that_refuses_is_reported)
{
    static const int errors[] = {ENOSPC, EIO};
    struct oct_error err;
    for (int i = 0; i < 12; i++) {
        struct stat before, after;
        make("refuses.h5", true, true);
        stat("refuses.h5", &before);
        disk_is_well();
        disk.fail_at = i / 2;
        disk.errnum = errors[i % 2];
        const enum oct_err e = write_label("refuses.h5", "OS", "new", OCT_MARK_KEEP, &err);
        assert_int_equal(e, i % 2 ? OCT_E_IO : OCT_E_NO_SPACE);
        assert_non_null(strstr(err.text, "refuses.h5: cannot"));
        disk_is_well();
        if (i / 2 < 5) /* else the root has moved */
            expect_label("refuses.h5", "OD", volume_about.pseudonym, OCT_MARK_NONE);
        stat("refuses.h5", &after);
        assert_true(i / 2 > 1 || after.st_size == before.st_size);
        expect_content("refuses.h5");
    }
    make("refuses.h5", true, true);
    for (int call = 0; call < 6; call++) { /* EINTR is none */
        disk_is_well();
        disk.fail_at = call;
        disk.errnum = EINTR;
        expect_write("refuses.h5", "OS", call % 2 ? "one" : "other", OCT_MARK_KEEP);
    }
    disk_is_well();
}

static void expect_refusal(const char *path, enum oct_err code, const char *words)
{
    struct oct_error err = {.text = ""};
    assert_int_equal(write_label(path, "OS", "new", OCT_MARK_KEEP, &err), code);
    if (!strstr(err.text, words))
        fail_msg("%s, not: %s", err.text, words);
}

TEST(files_that_cannot_be_changed_are_refused)
{
    size_t n;
    make("open.h5", true, true);
    unlink("open.h5.part");
    unlink("link.h5");
    unsigned char *bytes = volume_slurp("open.h5", &n);
    put_file("open.h5.part", bytes, n);
    expect_refusal("open.h5.part", OCT_E_STATE, "still being written");
    assert_int_equal(symlink("open.h5.part", "link.h5"), 0);
    expect_refusal("link.h5", OCT_E_STATE, "still being written");
    expect_label("open.h5.part", "OD", volume_about.pseudonym, OCT_MARK_NONE);
    int fd = open("open.h5", O_RDWR | O_CLOEXEC); /* as libhdf5 does while it writes */
    assert_int_equal(flock(fd, LOCK_EX), 0);
    expect_refusal("open.h5", OCT_E_STATE, "another program");
    assert_int_equal(flock(fd, LOCK_SH), 0); /* while it reads */
    expect_write("open.h5", "OS", "new", OCT_MARK_KEEP);
    close(fd);
    put_file("cut.h5", bytes, n / 2);
    expect_refusal("cut.h5", OCT_E_FORMAT, "cut.h5: ");
    put_file("text.h5", (const unsigned char *)"no HDF5 file, but text", 22);
    expect_refusal("text.h5", OCT_E_FORMAT, "not an HDF5 file");
    expect_refusal("none.h5", OCT_E_IO, "none.h5");
    expect_refusal(".", OCT_E_IO, ".");
    unlink("open.h5.part");
    free(bytes);
}

TEST(labels_that_cannot_be_are_refused)
{
    static const struct {
        const char *eye, *pseudonym;
    } bad[] = {{"left", "a"},  {"od", "a"},    {"OD", "a\nb"},
               {"OD", "\xff"}, {"OD", "\xc3"}, {"OD", "\xc2\x85"}};
    char longest[OCT_LABEL_PSEUDONYM_BYTES + 1];
    make("labels.h5", false, true);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(
            write_label("labels.h5", bad[i].eye, bad[i].pseudonym, OCT_MARK_NONE, NULL), OCT_E_ARG);
    assert_int_equal(write_label("labels.h5", "OD", "a", OCT_N_MARKS, NULL), OCT_E_ARG);
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(write_label("labels.h5", "OD", longest, OCT_MARK_NONE, NULL), OCT_E_ARG);
    longest[sizeof(longest) - 2] = '\0';
    expect_write("labels.h5", "OD", longest, OCT_MARK_NONE);
    expect_label("labels.h5", "OD", longest, OCT_MARK_NONE);
}

/* Of another program, in the layouts that libhdf5 calls earliest and latest. */
static void make_foreign(const char *path, bool newest)
{
    const hsize_t dims[3] = {2, 3, 8};
    oct_hdf5_lock();
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (newest)
        H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    hid_t space = H5Screate_simple(3, dims, NULL), scalar = H5Screate(H5S_SCALAR);
    hid_t set =
        H5Dcreate2(file, "bscans", H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 0; i < 40; i++) { /* more than the first chunk of a header holds */
        char name[32];
        snprintf(name, sizeof(name), "attribute %d", i);
        hid_t a = H5Acreate2(file, name, H5T_STD_I32LE, scalar, H5P_DEFAULT, H5P_DEFAULT);
        H5Awrite(a, H5T_NATIVE_INT, &i);
        H5Aclose(a);
    }
    H5Dclose(set);
    H5Sclose(scalar);
    H5Sclose(space);
    H5Fclose(file);
    H5Pclose(access);
    oct_hdf5_unlock();
}

TEST(files_of_others_are_changed_or_refused)
{
    make_foreign("early.h5", false);
    expect_label("early.h5", "", "", OCT_MARK_NONE);
    expect_write("early.h5", "OS", "P", OCT_MARK_REPEAT);
    expect_label("early.h5", "OS", "P", OCT_MARK_REPEAT);
    int value = -1;
    oct_hdf5_lock();
    hid_t file = H5Fopen("early.h5", H5F_ACC_RDWR, H5P_DEFAULT); /* libhdf5 goes on with it */
    hid_t a = H5Aopen(file, "attribute 39", H5P_DEFAULT);
    assert_true(a >= 0 && H5Aread(a, H5T_NATIVE_INT, &value) >= 0);
    H5Aclose(a);
    assert_true(H5Adelete(file, "attribute 3") >= 0);
    assert_true(H5Fclose(file) >= 0);
    oct_hdf5_unlock();
    assert_int_equal(value, 39);
    expect_write("early.h5", "OD", "Q", OCT_MARK_NONE);
    expect_label("early.h5", "OD", "Q", OCT_MARK_NONE);
    make_foreign("latest.h5", true);
    expect_refusal("latest.h5", OCT_E_FORMAT, "newer layout of HDF5");
    expect_label("latest.h5", "", "", OCT_MARK_NONE);
}

TEST(two_that_write_wait_for_one_another)
{
    enum { N_WRITERS = 4, N_TIMES = 15 };
    pid_t children[N_WRITERS];
    int status;
    make("both.h5", true, true);
    for (int c = 0; c < N_WRITERS; c++) {
        children[c] = fork();
        assert_true(children[c] >= 0);
        for (int i = 0; children[c] == 0 && i < N_TIMES; i++) {
            char text[20];
            snprintf(text, sizeof(text), "%d", c);
            if (write_label("both.h5", c % 2 ? "OD" : "OS", text, OCT_MARK_NONE, NULL))
                _exit(1);
        }
        if (children[c] == 0)
            _exit(0);
    }
    for (int c = 0; c < N_WRITERS; c++) {
        assert_int_equal(waitpid(children[c], &status, 0), children[c]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    const struct oct_volume_label label = read_label("both.h5");
    assert_string_equal(label.eye, atoi(label.pseudonym) % 2 ? "OD" : "OS");
    expect_content("both.h5");
}

/* Some of these files are as good as before: then the new label is in them. In some libhdf5 loops,
 * until hdf5_probe.h ends it, which takes most of this test's time. */
TEST(damaged_files_never_crash_it)
{
    size_t n;
    unsigned n_refused = 0;
    make("whole.h5", true, true);
    unsigned char *bytes = volume_slurp("whole.h5", &n);
    for (unsigned i = 0; i < 60; i++) {
        unsigned char *copy = malloc(n);
        memcpy(copy, bytes, n);
        for (unsigned k = 0; k <= i % 3; k++) {
            const size_t at = i % 4 ? 4096 + (size_t)rand() % 900 : (size_t)rand() % 96;
            copy[at] = (unsigned char)(rand() % 3 ? copy[at] ^ 1 << rand() % 8 : rand());
        }
        put_file("damaged.h5", copy, n);
        const enum oct_err e = write_label("damaged.h5", "OS", "new", OCT_MARK_KEEP, NULL);
        n_refused += e != OCT_OK;
        if (e == OCT_OK)
            expect_label("damaged.h5", "OS", "new", OCT_MARK_KEEP);
        free(copy);
    }
    assert_true(n_refused > 3 && n_refused < 57);
    free(bytes);
}

TEST(marks_have_names)
{
    enum oct_volume_mark mark;
    for (int i = 0; i < OCT_N_MARKS; i++) {
        assert_true(oct_volume_mark_of(oct_volume_mark_name((enum oct_volume_mark)i), &mark));
        assert_int_equal(mark, i);
    }
    assert_true(oct_volume_mark_of("", &mark) && mark == OCT_MARK_NONE);
    assert_false(oct_volume_mark_of("Keep", &mark) || oct_volume_mark_of("kee", &mark));
}

int main(void)
{
    disk_calls =
        (struct disk_calls){.pwrite = told_pwrite, .fdatasync = told_sync, .fsync = no_sync};
    return test_run();
}
