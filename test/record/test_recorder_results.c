/* Results of analyses in recordings: on time, late, never; whatever becomes of them, no B-scan is
 * lost and no file stays open for longer than it may. */
#define _GNU_SOURCE /* SYS_pwrite64 */
#include "pipeline/flow/slots.h"
#include "pipeline/volume/volume.h"
#include "test/rig/recorder_rig.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TABLE, ENFACE, N_SOURCES, RESULT_SLOTS = 16, ROWS = 2, COLUMNS = 3 };

#define MAY_STAY_OPEN_NS UINT64_C(250000000)

/* ---- the disk ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool hangs; /* syncs do not end */
    bool fails; /* writes do */
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* These stand before libc's in the link, so the library's calls come here. */
int fdatasync(int fd)
{
    pthread_mutex_lock(&disk.lock);
    while (disk.hangs)
        pthread_cond_wait(&disk.changed, &disk.lock);
    pthread_mutex_unlock(&disk.lock);
    return (int)syscall(SYS_fdatasync, fd);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    pthread_mutex_lock(&disk.lock);
    bool fails = disk.fails;
    pthread_mutex_unlock(&disk.lock);
    errno = EIO;
    return fails ? -1 : syscall(SYS_pwrite64, fd, data, bytes, offset);
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

/* ---- the scene: a recorder between its rings, and two analyses that the test plays ---- */

static const char *const labels[COLUMNS] = {"a", "b", "c"};

struct scene {
    struct rig rig;
    struct oct_image_form forms[N_SOURCES];
    struct oct_image_source sources[N_SOURCES];
    atomic_uint_fast64_t dealt_below[N_SOURCES];
    struct oct_ring_reader *stage_reader; /* of a test with a stage */
};

static void open_scene(struct scene *s, uint32_t n_bscans, uint32_t buffer_bscans)
{
    memset(s, 0, sizeof(*s));
    open_rings(&s->rig);
    s->rig.plan = volume_plan(N, M, n_bscans, D, OCT_SAMPLE_U8);
    s->rig.buffer_bscans = buffer_bscans;
    s->forms[TABLE] = (struct oct_image_form){
        .name = "cells",
        .quantity = OCT_QUANTITY_NUMBERS,
        .type = OCT_SAMPLE_F32,
        .rank = 2,
        .dims = {ROWS, COLUMNS},
        .spacing_um = {NAN, NAN},
        .axes = {"cell", "column"},
        .labels = labels,
    };
    s->forms[ENFACE] = (struct oct_image_form){
        .name = "enface",
        .quantity = OCT_QUANTITY_INTENSITY_DB,
        .type = OCT_SAMPLE_F32,
        .rank = 2,
        .dims = {n_bscans, M},
        .spacing_um = {NAN, NAN},
        .axes = {"bscan", "line"},
        .of_volume = true,
    };
    for (unsigned i = 0; i < N_SOURCES; i++)
        s->sources[i] = (struct oct_image_source){
            .form = &s->forms[i],
            .ring = open_ring(RESULT_SLOTS, oct_image_slot_bytes_of(&s->forms[i], false)),
            .dealt_below = &s->dealt_below[i],
        };
    s->rig.sources = s->sources;
    s->rig.n_sources = N_SOURCES;
    open_recorder(&s->rig);
}

static void close_scene(struct scene *s)
{
    if (s->rig.recorder)
        close_recorder(&s->rig);
    for (unsigned i = 0; i < N_SOURCES; i++)
        oct_ring_destroy(s->sources[i].ring);
    close_rig(&s->rig);
}

static void put_bscan(struct scene *s, uint64_t number)
{
    put(&s->rig, 1, number, number + 1);
}

/* An image of which every value is the B-scan's number within the acquisition + 1. */
static void put_result(struct scene *s, unsigned i, uint64_t number)
{
    uint64_t slot;
    struct oct_ring *ring = s->sources[i].ring;
    assert_int_equal(oct_ring_acquire(ring, TEST_PATIENCE_US, &slot), OCT_OK);
    struct oct_image_frame *f = oct_image_slot_begin(ring, slot, &s->forms[i], false);
    float *values = f->pixels;
    f->info = info_of(&s->rig, number, 1, number);
    f->whole = f->info.bscan + 1 == s->rig.plan.geometry.n_bscans;
    for (size_t k = 0; k < oct_image_form_bytes(&s->forms[i]) / sizeof(float); k++)
        values[k] = (float)(number + 1);
    oct_ring_publish(ring);
}

static void deal(struct scene *s, unsigned i, uint64_t number)
{
    put_result(s, i, number);
    s->dealt_below[i] = number + 1;
}

/* B-scans from .. to - 1 and what both analyses make of them at once. */
static void put_all(struct scene *s, uint64_t from, uint64_t to)
{
    for (uint64_t number = from; number < to; number++) {
        put_bscan(s, number);
        for (unsigned i = 0; i < N_SOURCES; i++)
            deal(s, i, number);
    }
}

/* The valid rows of the table in this file as bits; what they hold must be right. */
static unsigned cells_of(const char *path, uint64_t volume)
{
    size_t n, n_values;
    unsigned found = 0;
    double *valid = volume_values(path, "/frames/cells_valid", &n);
    double *values = volume_values(path, "/analysis/cells", &n_values);
    for (size_t v = 0; v < n; v++) {
        found |= valid[v] > 0 ? 1u << v : 0;
        for (size_t k = 0; k < n_values / n && valid[v] > 0; k++)
            assert_true(values[v * (n_values / n) + k] == (double)(volume * n + v + 1));
    }
    free(valid);
    free(values);
    return found;
}

/* The B-scan within the volume after which this en face was made, + 1; 0: there is none. */
static unsigned enface_of(const char *path, uint64_t first)
{
    size_t n;
    double *valid = volume_values(path, "/analysis/enface_valid", &n);
    double *values = volume_values(path, "/analysis/enface", &n);
    unsigned found = valid[0] > 0 ? (unsigned)(values[0] - (double)first) : 0;
    for (size_t k = 0; k < n && valid[0] > 0; k++)
        assert_true(values[k] == values[0]);
    free(valid);
    free(values);
    return found;
}

static uint64_t await_volumes(struct scene *s, uint64_t n)
{
    struct oct_recorder_status status;
    uint64_t begin_ns = oct_clock_ns();
    WAIT(&s->rig, status, status.volumes_written == n);
    return oct_clock_ns() - begin_ns;
}

/* ---- cases ---- */

static void results_on_time_are_in_the_file_of_their_volume(void **state)
{
    struct scene s;
    char paths[8][256];
    (void)state;
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

static void a_recording_needs_room_for_results_too(void **state)
{
    const double bscans = V * (N * M * 2 + M * D),
                 results = V * ROWS * COLUMNS * sizeof(float) + V * M * sizeof(float);
    struct scene s;
    struct oct_error err;
    double found = 0;
    (void)state;
    open_scene(&s, V, 4096);
    assert_true(oct_record_sources_bytes(s.sources, N_SOURCES, V) == results);
    const struct oct_record_settings settings = {.directory = s.rig.directory,
                                                 .spectra = true,
                                                 .bscans = true,
                                                 .config_text = "",
                                                 .eye = "",
                                                 .pseudonym = ""};
    free_bytes = bscans + results - 1;
    assert_int_equal(oct_recorder_check(s.rig.recorder, &settings, &found, &err), OCT_E_NO_SPACE);
    assert_true(found == free_bytes);
    assert_int_equal(oct_recorder_start(s.rig.recorder, &settings, &err), OCT_E_NO_SPACE);
    free_bytes = bscans + results;
    assert_int_equal(oct_recorder_check(s.rig.recorder, &settings, NULL, &err), OCT_OK);
    free_bytes = 0;
    close_scene(&s);
}

static void results_come_to_an_open_file_while_no_bscan_does(void **state)
{
    struct scene s;
    struct oct_recorder_status status;
    (void)state;
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

static void bscans_that_an_analysis_skips_have_no_row_and_hold_up_nothing(void **state)
{
    struct scene s;
    struct ear ear;
    char paths[8][256];
    (void)state;
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

static void results_of_closed_files_are_missed_and_others_are_nobodys(void **state)
{
    struct scene s;
    struct oct_recorder_status status;
    (void)state;
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

static void a_result_waits_for_a_file_that_is_not_open_yet(void **state)
{
    struct scene s;
    char paths[8][256];
    (void)state;
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

static void a_recorder_that_lags_behind_its_disk_loses_results_at_most(void **state)
{
    struct scene s;
    struct oct_recorder_status status;
    char paths[16][256];
    (void)state;
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

static void wrong_results_are_refused_and_counted(void **state)
{
    struct scene s;
    struct oct_recorder_status status;
    struct ear ear;
    char paths[8][256];
    uint64_t slot;
    (void)state;
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
        struct oct_image_frame *f = oct_image_slot_begin(ring, slot, &s.forms[TABLE], false);
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

static void a_result_of_a_bscan_that_never_comes_blocks_nothing(void **state)
{
    struct scene s;
    struct oct_recorder_status status;
    (void)state;
    open_scene(&s, V, 4096);
    start(&s.rig);
    put_bscan(&s, 0);
    put_result(&s, TABLE, 1000000);
    put_result(&s, TABLE, 0);
    WAIT(&s.rig, status, status.results[TABLE].written == 1);
    close_scene(&s);
}

static void a_write_of_a_result_that_fails_fails_its_file(void **state)
{
    struct scene s;
    struct oct_recorder_status status;
    (void)state;
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
    start(&s.rig); /* and again */
    for (uint64_t n = V; n < 2 * V; n++)
        put_bscan(&s, n);
    await_volumes(&s, 1);
    close_scene(&s);
}

/* A stage as the daemon has it: copies, releases, delivers. */
static void *analyse(void *argument)
{
    struct scene *s = argument;
    struct oct_ring *images = s->rig.images;
    struct oct_ring_reader *reader = s->stage_reader;
    uint64_t slot;
    for (;;) {
        enum oct_err e = oct_ring_read(reader, 100000, &slot);
        if (e == OCT_E_CLOSED)
            break;
        if (e)
            continue;
        uint64_t number = oct_image_slot(images, slot)->info.number;
        oct_ring_release(reader);
        for (unsigned i = 0; i < N_SOURCES; i++)
            deal(s, i, number);
    }
    oct_ring_reader_destroy(reader);
    for (unsigned i = 0; i < N_SOURCES; i++)
        oct_ring_close(s->sources[i].ring);
    return NULL;
}

static void volumes_of_one_bscan_at_a_high_rate_are_all_there(void **state)
{
    enum { MANY = 80 };
    struct scene s;
    struct oct_recorder_status status;
    pthread_t thread;
    static char paths[MANY + 1][256];
    (void)state;
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

static void the_last_seconds_have_no_results(void **state)
{
    struct scene s;
    struct oct_recorder_status status;
    struct oct_volume_dataset datasets[OCT_VOLUME_MAX_FORMS];
    struct oct_volume_reader *reader;
    struct oct_error err;
    unsigned n;
    (void)state;
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
    assert_int_equal(oct_recorder_save_history(s.rig.recorder, &settings, "last", &err), OCT_OK);
    WAIT(&s.rig, status, status.history.n_files == 1);
    assert_int_equal(oct_volume_open(&reader, status.history.file, &err), OCT_OK);
    assert_int_equal(oct_volume_datasets(reader, datasets, &n, &err), OCT_OK);
    assert_int_equal(n, 0);
    oct_volume_reader_destroy(reader);
    close_rig(&s.rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_on_time_are_in_the_file_of_their_volume),
        cmocka_unit_test(a_recording_needs_room_for_results_too),
        cmocka_unit_test(results_come_to_an_open_file_while_no_bscan_does),
        cmocka_unit_test(a_file_waits_for_what_is_outstanding),
        cmocka_unit_test(stop_waits_for_the_results_of_the_last_bscan),
        cmocka_unit_test(bscans_that_an_analysis_skips_have_no_row_and_hold_up_nothing),
        cmocka_unit_test(an_analysis_that_hangs_is_waited_for_once_and_not_again),
        cmocka_unit_test(nothing_is_waited_for_while_much_waits_for_the_disk),
        cmocka_unit_test(a_shutdown_is_held_up_no_longer),
        cmocka_unit_test(analyses_that_have_ended_are_not_waited_for),
        cmocka_unit_test(results_of_closed_files_are_missed_and_others_are_nobodys),
        cmocka_unit_test(a_result_waits_for_a_file_that_is_not_open_yet),
        cmocka_unit_test(a_recorder_that_lags_behind_its_disk_loses_results_at_most),
        cmocka_unit_test(wrong_results_are_refused_and_counted),
        cmocka_unit_test(a_result_of_a_bscan_that_never_comes_blocks_nothing),
        cmocka_unit_test(a_write_of_a_result_that_fails_fails_its_file),
        cmocka_unit_test(volumes_of_one_bscan_at_a_high_rate_are_all_there),
        cmocka_unit_test(the_last_seconds_have_no_results),
    };
    return cmocka_run_group_tests_name("recorder results", tests, NULL, NULL);
}
