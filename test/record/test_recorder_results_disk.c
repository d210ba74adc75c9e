/* Results of analyses in recordings on a disk that is full, hangs or fails: no B-scan is lost. */
#include "test/rig/disk_rig.h"
#include "test/rig/results_rig.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- the disk ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool hangs; /* syncs do not end */
    bool fails; /* writes do */
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int sync_when_told(int fd)
{
    pthread_mutex_lock(&disk.lock);
    while (disk.hangs)
        pthread_cond_wait(&disk.changed, &disk.lock);
    pthread_mutex_unlock(&disk.lock);
    return disk_fdatasync(fd);
}

static ssize_t write_when_told(int fd, const void *data, size_t bytes, off_t offset)
{
    pthread_mutex_lock(&disk.lock);
    bool fails = disk.fails;
    pthread_mutex_unlock(&disk.lock);
    errno = EIO;
    return fails ? -1 : disk_pwrite(fd, data, bytes, offset);
}

/* What statvfs says is free, 0: what is. */
static double free_bytes;

int statvfs(const char *restrict path, struct statvfs *restrict fs)
{
    struct statfs of;
    if (statfs(path, &of) != 0)
        return -1;
    *fs = (struct statvfs){.f_frsize = (unsigned long)of.f_frsize, .f_bavail = of.f_bavail};
    if (free_bytes > 0)
        *fs = (struct statvfs){.f_frsize = 1, .f_bavail = (fsblkcnt_t)free_bytes};
    return 0;
}

static void set_disk(bool hangs, bool fails)
{
    pthread_mutex_lock(&disk.lock);
    disk.hangs = hangs;
    disk.fails = fails;
    pthread_cond_broadcast(&disk.changed);
    pthread_mutex_unlock(&disk.lock);
}

TEST(a_recording_needs_room_for_results_too)
{
    const double bscans = V * (N * M * 2 + M * D),
                 columns = sizeof(uint32_t) + 1, /* of float images: rows, valid */
        results = V * (ROWS * COLUMNS * sizeof(float) + columns) + V * M * sizeof(float) + columns;
    struct scene s;
    struct oct_error err;
    double found = 0;
    open_scene(&s, V, 4096);
    struct oct_record_settings settings = {
        .directory = s.rig.directory, .config_text = "", .eye = "", .pseudonym = ""};
    const struct oct_geometry *g = &s.rig.plan.geometry;
    assert_true(oct_record_sources_bytes(s.sources, N_SOURCES, V) == results);
    assert_true(oct_record_bscan_bytes(&settings, g, results) == 0);
    settings.spectra = settings.bscans = true;
    assert_true(oct_record_bscan_bytes(&settings, g, results) == (bscans + results) / V);
    free_bytes = bscans + results - 1;
    assert_int_equal(oct_recorder_check(s.rig.recorder, &settings, &found, &err), OCT_E_NO_SPACE);
    assert_true(found == free_bytes);
    assert_int_equal(oct_recorder_start(s.rig.recorder, &settings, &err), OCT_E_NO_SPACE);
    free_bytes = bscans + results;
    assert_int_equal(oct_recorder_check(s.rig.recorder, &settings, NULL, &err), OCT_OK);
    free_bytes = 0;
    close_scene(&s);
}

TEST(a_recorder_that_lags_behind_its_disk_loses_results_at_most)
{
    struct scene s;
    struct oct_recorder_status status;
    char paths[16][256];
    open_scene(&s, V, 4096);
    start(&s.rig);
    put_all(&s, 0, V);
    await_volumes(&s, 1);
    set_disk(true, false); /* syncs of an open file hang, and closing one does */
    put_all(&s, V, 10 * V);
    sleep_us(100000);
    assert_true(status_of(&s.rig).volumes_written < 10);
    set_disk(false, false);
    await_volumes(&s, 10);
    status = status_of(&s.rig);
    assert_int_equal(status.bscans_written, 10 * V);
    assert_int_equal(status.bscans_unsaved, 0);
    for (unsigned i = 0; i < N_SOURCES; i++) {
        WAIT(&s.rig, status, status.results[i].written + status.results[i].missed == 10 * V);
        assert_int_equal(status.results[i].refused, 0);
        assert_true(status.results[i].written > V);
        assert_true(status.results[i].missed > 0); /* more than the ring holds came meanwhile */
    }
    assert_int_equal(list_files(&s.rig, paths, 16), 10);
    uint64_t n_rows = 0;
    for (uint64_t v = 0; v < 10; v++)
        n_rows += (unsigned)__builtin_popcount(cells_of(paths[v], v));
    assert_int_equal(n_rows, status.results[TABLE].written);
    assert_int_equal(cells_of(paths[9], 9) >> (V - 1), 1); /* the newest is there */
    close_scene(&s);
}

TEST(a_write_of_a_result_that_fails_fails_its_file)
{
    struct scene s;
    struct oct_recorder_status status;
    open_scene(&s, V, 4096);
    start(&s.rig);
    put_bscan(&s, 0);
    put_bscan(&s, 1);
    WAIT(&s.rig, status, status.bscans_in_file == 2);
    set_disk(false, true);
    deal(&s, ENFACE, 1);
    WAIT(&s.rig, status, !status.active);
    set_disk(false, false);
    assert_int_equal(status.failure.code, OCT_E_IO);
    assert_non_null(strstr(status.failure.text, ".part"));
    assert_int_equal(status.bscans_written, 2);
    s.dealt_below[TABLE] = s.dealt_below[ENFACE] = 2 * V;
    start(&s.rig); /* and again */
    for (uint64_t n = V; n < 2 * V; n++)
        put_bscan(&s, n);
    await_volumes(&s, 1);
    close_scene(&s);
}

int main(void)
{
    disk_calls = (struct disk_calls){.pwrite = write_when_told, .fdatasync = sync_when_told};
    return test_run();
}
