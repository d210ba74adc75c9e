/* The recorder while one of its files is being closed: the next begins meanwhile, and whatever
 * becomes of either, all is counted and told. The disk holds up or refuses what it is told to. */
#define _GNU_SOURCE /* SYS_linkat */
#include "test/rig/disk_rig.h"
#include "test/rig/recorder_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the disk ---- */

#define N_NAMES 64u

struct name {
    ino_t inode;
    char path[256];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const char *held;      /* syncs of files whose name holds this do not begin; NULL: none */
    unsigned n_held;       /* syncs that have come to be held */
    const char *fail_sync; /* syncs of such files fail */
    const char *fail_write;
    const char *fail_name; /* they are not given their name */
    struct name names[N_NAMES];
    unsigned n_names;
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static bool is_in(const char *part, const char *path)
{
    return part && strstr(path, part);
}

/* The name that the file of this descriptor was given first: made without one, it has none under
 * /proc. "": none yet. Lock held. */
static const char *name_of(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0)
        for (unsigned i = disk.n_names; i-- > 0 && disk.n_names - i <= N_NAMES;)
            if (disk.names[i % N_NAMES].inode == st.st_ino)
                return disk.names[i % N_NAMES].path;
    return "";
}

static bool fails(const char *const *part, int fd)
{
    pthread_mutex_lock(&disk.lock);
    bool result = is_in(*part, name_of(fd));
    pthread_mutex_unlock(&disk.lock);
    errno = EIO;
    return result;
}

static int sync_when_told(int fd)
{
    pthread_mutex_lock(&disk.lock);
    if (is_in(disk.held, name_of(fd))) {
        disk.n_held++;
        pthread_cond_broadcast(&disk.changed);
    }
    while (is_in(disk.held, name_of(fd)))
        pthread_cond_wait(&disk.changed, &disk.lock);
    pthread_mutex_unlock(&disk.lock);
    return fails(&disk.fail_sync, fd) ? -1 : disk_fdatasync(fd);
}

static ssize_t write_when_told(int fd, const void *data, size_t bytes, off_t offset)
{
    return fails(&disk.fail_write, fd) ? -1 : disk_pwrite(fd, data, bytes, offset);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    struct stat st;
    pthread_mutex_lock(&disk.lock);
    int status = is_in(disk.fail_name, to) ? -1 : 0;
    errno = EIO;
    if (status == 0)
        status = (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
    if (status == 0 && stat(to, &st) == 0) {
        struct name *name = &disk.names[disk.n_names++ % N_NAMES];
        name->inode = st.st_ino;
        snprintf(name->path, sizeof(name->path), "%s", to);
    }
    pthread_mutex_unlock(&disk.lock);
    return status;
}

static void set_disk(const char **what, const char *part)
{
    pthread_mutex_lock(&disk.lock);
    *what = part;
    pthread_cond_broadcast(&disk.changed);
    pthread_mutex_unlock(&disk.lock);
}

static void hold(const char *part)
{
    pthread_mutex_lock(&disk.lock);
    disk.n_held = 0;
    pthread_mutex_unlock(&disk.lock);
    set_disk(&disk.held, part);
}

static void let_go(void)
{
    set_disk(&disk.held, NULL);
}

static void await_held(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TEST_PATIENCE_MS / 1000;
    pthread_mutex_lock(&disk.lock);
    int status = 0;
    while (disk.n_held == 0 && status == 0)
        status = pthread_cond_timedwait(&disk.changed, &disk.lock, &until);
    pthread_mutex_unlock(&disk.lock);
    assert_int_equal(status, 0);
}

static int reset_disk(void **state)
{
    disk.held = disk.fail_sync = disk.fail_write = disk.fail_name = NULL; /* no thread is left */
    return 0;
}

static void *let_go_soon(void *unused)
{
    (void)unused;
    sleep_us(100000);
    let_go();
    return NULL;
}

static void close_recorder_held_up(struct rig *r)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, let_go_soon, NULL), 0);
    close_recorder(r);
    pthread_join(thread, NULL);
}

/* ---- the scene ---- */

/* Volume 0 is whole and its last sync hangs, `n` B-scans of those after it are in the recorder. */
static void open_while_closing(struct rig *r, uint64_t n)
{
    struct oct_recorder_status s;
    open_rig(r);
    r->sync_interval_s = 1000; /* no sync but of closing */
    hold("_v0000");
    start(r);
    put(r, 1, 0, V);
    await_held();
    put(r, 1, V, V + n);
    WAIT(r, s, s.bscans_passed == V + n);
}

static void expect_account(struct oct_recorder_status s, uint64_t written, uint64_t failed)
{
    assert_int_equal(s.bscans_written, written);
    assert_int_equal(s.bscans_unsaved, failed);
    assert_int_equal(s.account.written, written);
    assert_int_equal(s.account.dropped[OCT_LOSS_WRITE_FAILED], failed);
    assert_int_equal(s.account.offered, written + failed);
    assert_int_equal(s.account.pending, 0);
    assert_int_equal(s.total.offered, written + failed);
}

static void expect_names(const struct rig *r, size_t n, const char *const endings[])
{
    char paths[8][256];
    assert_int_equal(list_files(r, paths, 8), n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(paths[i] + strlen(paths[i]) - strlen(endings[i]), endings[i]) != 0)
            fail_msg("%s does not end in %s", paths[i], endings[i]);
}

/* A thread is there for a moment after it was joined. */
static void expect_count(const char *folder, unsigned n)
{
    uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    while (count_entries(folder) != n && oct_clock_ns() < until_ns)
        sleep_us(1000);
    assert_int_equal(count_entries(folder), n);
}

#define CASE(name) TEST_WITH(name, reset_disk, NULL)

/* ---- cases: nothing fails ---- */

CASE(the_next_file_does_not_wait_for_the_sync_of_the_one_before)
{
    struct rig r;
    struct oct_recorder_status s;
    char paths[8][256];
    open_while_closing(&r, 3);
    s = status_of(&r);
    assert_non_null(strstr(s.file, "_v0001.h5"));
    assert_true(s.active && s.file_open);
    assert_true(s.volumes_written == 0 && s.bscans_written == 0 && s.bscans_in_file == 0);
    assert_int_equal(s.account.pending, V + 3);
    expect_names(&r, 2, (const char *const[]){"_v0000.h5.part", "_v0001.h5.part"});
    let_go();
    WAIT(&r, s, s.volumes_written == 1);
    assert_true(s.file_open && strstr(s.file, "_v0001.h5"));
    assert_true(s.bscans_written == V && s.bscans_in_file == 0 && s.account.pending == 3);
    put(&r, 1, V + 3, 2 * V);
    WAIT(&r, s, s.volumes_written == 2);
    expect_account(s, 2 * V, 0);
    assert_true(s.active && !s.file_open);
    assert_int_equal(s.bscans_in_file, V);
    assert_int_equal(list_files(&r, paths, 8), 2);
    expect_file(paths[0], 1, 0, 0, V);
    expect_file(paths[1], 1, 1, 0, V);
    close_rig(&r);
}

CASE(what_the_old_file_gets_safe_counts_at_once_and_for_itself)
{
    struct rig r;
    struct oct_recorder_status s;
    open_rig(&r);
    start(&r);
    put(&r, 1, 0, 2);
    WAIT(&r, s, s.bscans_in_file == 2);
    uint64_t bytes = s.bytes_written;
    hold("_v0000");
    put(&r, 1, 2, V);
    await_held();
    s = status_of(&r);
    assert_int_equal(s.bscans_written, 2);
    assert_true(s.file_open && s.bscans_in_file == 2 && s.bytes_written >= bytes);
    let_go();
    WAIT(&r, s, s.volumes_written == 1);
    assert_true(!s.file_open && s.bscans_in_file == V && s.bscans_written == V);
    hold("_v0001"); /* its first sync, by the recorder itself */
    put(&r, 1, V, V + 1);
    await_held();
    s = status_of(&r);
    assert_true(s.file_open && s.bscans_in_file == 0 && s.bscans_written == V);
    let_go();
    WAIT(&r, s, s.bscans_in_file == 1);
    assert_true(s.bytes_written > bytes);
    close_rig(&r);
}

CASE(a_third_file_waits_until_the_first_is_closed)
{
    struct rig r;
    struct oct_recorder_status s;
    open_while_closing(&r, V - 1);
    put(&r, 1, 2 * V - 1, 3 * V);
    sleep_us(100000);
    s = status_of(&r);
    assert_int_equal(s.bscans_passed, 2 * V - 1); /* the last of volume 1 waits */
    assert_int_equal(s.volumes_written, 0);
    expect_names(&r, 2, (const char *const[]){"_v0000.h5.part", "_v0001.h5.part"});
    let_go();
    WAIT(&r, s, s.volumes_written == 3);
    expect_account(s, 3 * V, 0);
    expect_names(&r, 3, (const char *const[]){"_v0000.h5", "_v0001.h5", "_v0002.h5"});
    close_rig(&r);
}

CASE(stop_waits_for_the_file_being_closed)
{
    for (uint64_t n = 0; n <= 2; n += 2) { /* alone, and with the next open */
        struct rig r;
        struct oct_recorder_status s;
        struct ear ear;
        char paths[8][256];
        open_while_closing(&r, n);
        listen_to_log(&ear);
        oct_recorder_stop(r.recorder);
        sleep_us(100000);
        s = status_of(&r);
        assert_true(s.active && s.stopping && s.file_open);
        must_fail(start_in(&r, r.directory, true, true, &failure), OCT_E_STATE,
                  "still being closed");
        let_go();
        WAIT(&r, s, !s.active);
        expect_log(&ear,
                   n ? "8 B-scans offered = 8 written + 0 dropped; 2 files, 1 of them"
                     : "6 B-scans offered = 6 written + 0 dropped; 1 files, 0 of them",
                   1);
        assert_false(s.stopping || s.file_open);
        expect_account(s, V + n, 0);
        assert_true(s.volumes_written == (n ? 2 : 1) && s.volumes_incomplete == (n ? 1 : 0));
        assert_int_equal(list_files(&r, paths, 8), n ? 2 : 1);
        expect_file(paths[0], 1, 0, 0, V);
        if (n)
            expect_file(paths[1], 1, 1, 0, (uint32_t)n);
        start(&r);
        put(&r, 1, 2 * V, 3 * V);
        WAIT(&r, s, s.account.written == V);
        close_rig(&r);
    }
}

CASE(the_end_of_the_daemon_waits_for_both_files)
{
    struct rig r;
    char paths[8][256];
    open_while_closing(&r, 2);
    close_recorder_held_up(&r);
    assert_int_equal(list_files(&r, paths, 8), 2);
    expect_file(paths[0], 1, 0, 0, V);
    expect_file(paths[1], 1, 1, 0, 2);
    close_rig(&r);
}

CASE(no_descriptor_and_no_thread_is_left)
{
    static const char fds[] = "/proc/self/fd", threads[] = "/proc/self/task";
    struct rig r;
    struct oct_recorder_status s;
    unsigned n_fds = 0;
    open_rings(&r);
    unsigned n_fds_before = count_entries(fds), n_threads_before = count_entries(threads);
    open_recorder(&r);
    start(&r);
    for (uint64_t volume = 0; volume < 40; volume++) {
        put(&r, 1, volume * V, (volume + 1) * V);
        WAIT(&r, s, s.volumes_written == volume + 1);
        if (volume == 0)
            n_fds = count_entries(fds);
    }
    expect_count(fds, n_fds);
    expect_count(threads, n_threads_before + 3); /* keeper, recorder, closer */
    close_recorder(&r);
    expect_count(fds, n_fds_before);
    expect_count(threads, n_threads_before);
    close_rig(&r);
}

/* ---- cases: something fails ---- */

CASE(a_close_that_fails_ends_the_recording_with_the_old_files_name)
{
    struct rig r;
    struct oct_recorder_status s;
    struct ear ear;
    char paths[8][256];
    open_while_closing(&r, 2);
    listen_to_log(&ear);
    set_disk(&disk.fail_sync, "_v0000");
    let_go();
    WAIT(&r, s, !s.active);
    const char *words[] = {"recording stopped: ", "_v0000.h5.part: cannot sync", "_v0001",
                           "8 B-scans offered = 2 written + 6 dropped (6 write_failed); 1 files, "
                           "1 of them not whole"};
    unsigned counts[4];
    heard(&ear, words, counts, 4);
    assert_true(counts[0] == 1 && counts[1] == 1 && counts[2] == 0 && counts[3] == 1);
    assert_non_null(strstr(s.failure.text, "_v0000.h5.part"));
    assert_false(s.file_open || s.stopping);
    expect_account(s, 2, V); /* what the file after it had is safe and counts */
    assert_true(s.volumes_written == 1 && s.volumes_incomplete == 1);
    expect_names(&r, 2, (const char *const[]){"_v0000.h5.part", "_v0001.h5"});
    list_files(&r, paths, 8);
    expect_file(paths[0], 1, 0, 0, 0);
    expect_file(paths[1], 1, 1, 0, 2);
    put(&r, 1, V + 2, V + 5); /* no recording: nobody's */
    WAIT(&r, s, s.bscans_passed == V + 5);
    expect_account(s, 2, V);
    set_disk(&disk.fail_sync, NULL);
    start(&r);
    put(&r, 2, 0, V);
    WAIT(&r, s, s.account.written == V);
    assert_int_equal(s.failure.code, OCT_OK);
    close_rig(&r);
}

CASE(rows_that_were_synced_before_a_close_that_fails_stay_written)
{
    struct rig r;
    struct oct_recorder_status s;
    char paths[8][256];
    open_rig(&r);
    start(&r);
    put(&r, 1, 0, 2);
    WAIT(&r, s, s.bscans_in_file == 2);
    hold("_v0000");
    put(&r, 1, 2, V);
    await_held();
    set_disk(&disk.fail_sync, "_v0000");
    let_go();
    /* What hung may also be a sync in between: then the account ends before the rest has come. */
    WAIT(&r, s, !s.active);
    assert_in_range(s.account.offered, 3, V);
    expect_account(s, 2, s.account.offered - 2);
    assert_int_equal(s.volumes_written, 0);
    list_files(&r, paths, 8);
    expect_file(paths[0], 1, 0, 0, 2);
    close_rig(&r);
}

CASE(a_name_taken_meanwhile_costs_the_name_and_no_bscan)
{
    struct rig r;
    struct oct_recorder_status s;
    char paths[8][256];
    open_while_closing(&r, 1);
    list_files(&r, paths, 8);
    *strstr(paths[0], ".part") = '\0';
    FILE *file = fopen(paths[0], "w");
    assert_non_null(file);
    fclose(file);
    let_go();
    WAIT(&r, s, !s.active);
    assert_non_null(strstr(s.failure.text, paths[0]));
    expect_account(s, V + 1, 0);
    assert_int_equal(s.volumes_written, 1);
    expect_names(&r, 3, (const char *const[]){"_v0000.h5", "_v0000.h5.part", "_v0001.h5"});
    list_files(&r, paths, 8);
    expect_file(paths[1], 1, 0, 0, V);
    expect_file(paths[2], 1, 1, 0, 1);
    close_rig(&r);
}

static void expect_two_failures(bool stop)
{
    struct rig r;
    struct oct_recorder_status s;
    struct ear ear;
    open_while_closing(&r, 2);
    listen_to_log(&ear);
    set_disk(&disk.fail_sync, "_v000");
    if (stop) {
        oct_recorder_stop(r.recorder);
        sleep_us(100000); /* the recorder waits for the older file, to close the other */
    }
    let_go();
    WAIT(&r, s, !s.active);
    const char *words[] = {"recording stopped: ", "the file after it failed too: ",
                           "_v0000.h5.part: cannot sync", "_v0001.h5.part: cannot sync"};
    unsigned counts[4];
    heard(&ear, words, counts, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(counts[i], 1);
    assert_true(strstr(s.failure.text, "_v0000.h5.part") && s.volumes_written == 0);
    expect_names(&r, 2, (const char *const[]){"_v0000.h5.part", "_v0001.h5.part"});
    put(&r, 1, V + 2, V + 5);
    WAIT(&r, s, s.bscans_passed == V + 5);
    expect_account(s, 0, V + 2);
    close_rig(&r);
}

CASE(of_two_files_that_fail_both_are_told_the_older_first)
{
    expect_two_failures(false);
    expect_two_failures(true);
}

CASE(a_file_that_cannot_begin_leaves_the_one_before_whole)
{
    for (int old_fails = 0; old_fails <= 1; old_fails++) {
        struct rig r;
        struct oct_recorder_status s;
        struct ear ear;
        reset_disk(NULL);
        open_while_closing(&r, 0);
        listen_to_log(&ear);
        set_disk(&disk.fail_name, "_v0001");
        put(&r, 1, V, V + 1);
        sleep_us(100000);
        assert_true(status_of(&r).active); /* told when the one before is closed */
        set_disk(&disk.fail_sync, old_fails ? "_v0000" : NULL);
        let_go();
        WAIT(&r, s, !s.active);
        const char *words[] = {"recording stopped: ", "_v0000.h5.part: cannot sync",
                               "_v0001.h5.part: cannot give", "failed too"};
        unsigned counts[4];
        heard(&ear, words, counts, 4);
        for (int i = 0; i < 4; i++)
            assert_int_equal(counts[i], i % 2 ? old_fails : 1);
        assert_non_null(strstr(s.failure.text, old_fails ? "_v0000" : "_v0001"));
        expect_account(s, old_fails ? 0 : V, old_fails ? V + 1 : 1);
        assert_int_equal(s.volumes_written, !old_fails);
        expect_names(&r, 1, (const char *const[]){old_fails ? "_v0000.h5.part" : "_v0000.h5"});
        close_rig(&r);
    }
}

CASE(a_write_that_fails_waits_for_the_file_being_closed)
{
    struct rig r;
    struct oct_recorder_status s;
    struct ear ear;
    char paths[8][256];
    open_while_closing(&r, 1);
    listen_to_log(&ear);
    set_disk(&disk.fail_write, "_v0001");
    oct_recorder_stop(r.recorder);
    sleep_us(50000);
    assert_true(status_of(&r).active);
    let_go();
    WAIT(&r, s, !s.active);
    expect_log(&ear, "recording stopped: ", 1);
    assert_non_null(strstr(s.failure.text, "_v0001.h5.part: cannot write"));
    expect_account(s, V, 1);
    assert_int_equal(s.volumes_written, 1);
    list_files(&r, paths, 8);
    expect_file(paths[0], 1, 0, 0, V);
    close_rig(&r);
}

CASE(a_close_that_fails_at_the_end_of_the_daemon_is_told)
{
    struct rig r;
    struct ear ear;
    open_while_closing(&r, 2);
    set_disk(&disk.fail_sync, "_v0000");
    listen_to_log(&ear);
    close_recorder_held_up(&r);
    expect_log(&ear, "8 B-scans offered = 2 written + 6 dropped (6 write_failed)", 1);
    expect_names(&r, 2, (const char *const[]){"_v0000.h5.part", "_v0001.h5"});
    close_rig(&r);
}

int main(void)
{
    disk_calls = (struct disk_calls){.pwrite = write_when_told, .fdatasync = sync_when_told};
    return test_run();
}
