/* Recordings: results of analyses beside the B-scans, and what a crash leaves of them.
 *
 * `test_volume_results --writer PATH` makes the file that test_volume_results.py reads. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "pipeline/base/crc32c.h"
#include "pipeline/volume/hdf5_lock.h"
#include "test/rig/disk_rig.h"
#include "test/rig/result_forms.h"
#include "test/rig/tap.h"
#include "test/rig/volume_cases.h"

#include <hdf5.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a system that ends after so many calls ---- */

#define MOST_UNSYNCED 64u

static struct {
    pthread_mutex_t lock;
    unsigned ends_at; /* the call that is not made any more; 0: none */
    bool power_cut;   /* then of what was not synced only the newest write is on the disk */
    unsigned n_calls;
    int fd; /* the first one written to: it can be read */
    struct {
        void *before;
        size_t bytes;
        off_t offset;
    } unsynced[MOST_UNSYNCED];
    unsigned n_unsynced;
} machine = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void end_if_due(void)
{
    if (machine.ends_at == 0 || ++machine.n_calls < machine.ends_at)
        return;
    for (unsigned i = machine.n_unsynced; machine.power_cut && i-- > 0;)
        if (i + 1 < machine.n_unsynced)
            disk_pwrite(machine.fd, machine.unsynced[i].before, machine.unsynced[i].bytes,
                        machine.unsynced[i].offset);
    _exit(0);
}

static ssize_t write_when_told(int fd, const void *data, size_t bytes, off_t offset)
{
    pthread_mutex_lock(&machine.lock);
    if (machine.n_calls == 0)
        machine.fd = fd;
    end_if_due();
    if (machine.ends_at && machine.n_unsynced < MOST_UNSYNCED) {
        void *before = calloc(bytes, 1);
        if (pread(machine.fd, before, bytes, offset) < 0)
            abort();
        machine.unsynced[machine.n_unsynced].before = before;
        machine.unsynced[machine.n_unsynced].bytes = bytes;
        machine.unsynced[machine.n_unsynced++].offset = offset;
    }
    ssize_t n = disk_pwrite(fd, data, bytes, offset);
    pthread_mutex_unlock(&machine.lock);
    return n;
}

static void note_sync(void)
{
    pthread_mutex_lock(&machine.lock);
    end_if_due();
    machine.n_unsynced = 0;
    pthread_mutex_unlock(&machine.lock);
}

static int sync_when_told(int fd)
{
    note_sync();
    return machine.ends_at ? 0 : disk_fdatasync(fd);
}

static int sync_all_when_told(int fd)
{
    note_sync();
    return machine.ends_at ? 0 : disk_fsync(fd);
}

/* ---- the scene ---- */

static const struct oct_image_form *const forms[] = {&form_table, &form_picture, &form_enface,
                                                     &form_shadow};
enum { TABLE, PICTURE, ENFACE, SHADOW, N_FORMS };

static struct oct_volume_writer *make(const char *path, const struct oct_plan *plan)
{
    struct oct_volume_about about = volume_about;
    struct oct_volume_writer *w;
    about.forms = forms;
    about.n_forms = N_FORMS;
    must(oct_volume_create(&w, path, plan, &about, true, true, &failure));
    return w;
}

/* A result whose values follow from its B-scan: value i is bscan + 1 + i / 100, a pixel its low
 * byte; a table has bscan % (ROWS + 1) rows. Of a volume every value is bscan + 1. */
static enum oct_err put(struct oct_volume_writer *w, unsigned i, uint32_t bscan,
                        struct oct_error *err)
{
    const struct oct_image_form *form = forms[i];
    size_t n = oct_image_form_bytes(form) / (form->type == OCT_SAMPLE_F32 ? sizeof(float) : 1);
    float *f32 = calloc(n, sizeof(*f32));
    unsigned char *u8 = (unsigned char *)f32;
    for (size_t k = 0; k < n; k++) {
        if (form->type == OCT_SAMPLE_F32)
            f32[k] = (float)(bscan + 1) + (form->of_volume ? 0 : (float)k / 100);
        else
            u8[k] = (unsigned char)(bscan + 1 + (form->of_volume ? 0 : k));
    }
    struct oct_image_frame frame = {
        .info = {.bscan = bscan},
        .form = form,
        .lo = bscan,
        .hi = bscan + 10.0,
        .pixels = f32,
    };
    memcpy(frame.dims, form->dims, sizeof(frame.dims));
    if (i == TABLE)
        frame.dims[0] = bscan % (ROWS + 1);
    enum oct_err e = oct_volume_write_result(w, i, &frame, err);
    free(f32);
    return e;
}

static void must_put(struct oct_volume_writer *w, unsigned i, uint32_t bscan)
{
    must(put(w, i, bscan, &failure));
}

/* Row `bscan` of a dataset of B-scans, of which `n_rows` of the first axis are used. */
static void expect_row(unsigned i, const double *row, size_t n, uint32_t bscan, double n_rows)
{
    const struct oct_image_form *form = forms[i];
    size_t used = (size_t)(n_rows * (double)n / form->dims[0]);
    for (size_t k = 0; k < n; k++) {
        if (i == TABLE && k >= used)
            assert_true(isnan(row[k]));
        else if (i == TABLE)
            assert_true(fabs(row[k] - (bscan + 1 + (double)k / 100)) < 1e-5);
        else
            assert_true(row[k] == (unsigned char)(bscan + 1 + k));
    }
}

/* Every valid row is right; which are valid, as bits. */
static unsigned expect_dataset(const char *path, unsigned i)
{
    char name[80];
    size_t n, n_values;
    unsigned found = 0;
    snprintf(name, sizeof(name), "/frames/%s_valid", forms[i]->name);
    double *valid = volume_values(path, name, &n);
    assert_int_equal(n, V);
    snprintf(name, sizeof(name), "/frames/%s_rows", forms[i]->name);
    double *rows = volume_values(path, name, &n);
    snprintf(name, sizeof(name), "/analysis/%s", forms[i]->name);
    double *values = volume_values(path, name, &n_values);
    for (uint32_t v = 0; v < V; v++) {
        assert_true(valid[v] == 0 || valid[v] == 1);
        found |= valid[v] > 0 ? 1u << v : 0;
        if (valid[v] > 0)
            assert_true(rows[v] == (i == TABLE ? v % (ROWS + 1) : forms[i]->dims[0]));
        if (valid[v] > 0)
            expect_row(i, values + v * (n_values / V), n_values / V, v, rows[v]);
    }
    free(valid);
    free(rows);
    free(values);
    return found;
}

/* An image of a volume that is valid is one of those written, whole. Which: its B-scan + 1; 0:
 * none. */
static unsigned expect_volume(const char *path, unsigned i)
{
    char name[80];
    size_t n;
    snprintf(name, sizeof(name), "/analysis/%s_valid", forms[i]->name);
    double *valid = volume_values(path, name, &n);
    assert_int_equal(n, 1);
    bool is_valid = valid[0] == 1;
    assert_true(is_valid || valid[0] == 0);
    snprintf(name, sizeof(name), "/analysis/%s", forms[i]->name);
    double *values = volume_values(path, name, &n);
    unsigned found = is_valid ? (unsigned)values[0] : 0;
    for (size_t k = 0; k < n && is_valid; k++)
        assert_true(values[k] == found);
    if (is_valid && forms[i]->type == OCT_SAMPLE_U8) {
        snprintf(name, sizeof(name), "/analysis/%s_lo", forms[i]->name);
        double *lo = volume_values(path, name, &n);
        assert_true(lo[0] == found - 1);
        free(lo);
    }
    free(valid);
    free(values);
    return found;
}

/* ---- cases ---- */

TEST(a_file_without_forms_is_what_it_was_before_there_were_any)
{
    unsigned major, minor, release;
    oct_hdf5_lock();
    H5get_libversion(&major, &minor, &release);
    oct_hdf5_unlock();
    /* The bytes are libhdf5's, and the version is in them. */
    if (major != 1 || minor != 10 || release != 8 || strcmp(OCT_VERSION, "0.1.0") != 0)
        skip();
    struct oct_plan plan = volume_plan(101, 9, 5, 33, OCT_SAMPLE_U8);
    struct oct_volume_about about = volume_about;
    struct oct_volume_writer *w;
    size_t bytes;
    about.gap_map = about.counted = true;
    about.first_bscan = 15;
    must(oct_volume_create(&w, "old.h5", &plan, &about, true, true, &failure));
    for (uint32_t v = 0; v < 5; v++)
        if (v != 2)
            volume_add(w, &plan, v, true, true);
    const struct oct_gap gap = {
        .acquisition = 3, .first_line = 17 * 9, .n_lines = 9, .reason = OCT_LOSS_SOURCE};
    must(oct_volume_write_gap(w, &gap, &failure));
    volume_close(w);
    unsigned char *file = volume_slurp("old.h5", &bytes);
    assert_int_equal(bytes, 344392);
    assert_int_equal(oct_crc32c(file, bytes), 0xb2182fdc);
    free(file);
}

TEST(results_come_back_late_and_early_ones_too)
{
    struct oct_plan plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = make("results.h5", &plan);
    must_put(w, TABLE, 0); /* before its B-scan */
    for (uint32_t v = 0; v < V; v++) {
        volume_add(w, &plan, v, true, true);
        if (v >= 3 && v != 6)
            must_put(w, PICTURE, v - 3);
        if (v % 5 == 4)
            volume_sync(w);
    }
    for (uint32_t v = 1; v < V; v += 2)
        must_put(w, TABLE, v);
    for (uint32_t v = 2; v < 5; v++)
        must_put(w, ENFACE, v);
    volume_close(w);
    assert_int_equal(expect_dataset("results.h5", TABLE), 0xaaa | 1);
    assert_int_equal(expect_dataset("results.h5", PICTURE), 0x1ff & ~8u);
    assert_int_equal(expect_volume("results.h5", ENFACE), 5);
    assert_int_equal(expect_volume("results.h5", SHADOW), 0); /* nothing came */
    uint8_t written[V];
    memset(written, 1, sizeof(written));
    volume_expect("results.h5", &plan.geometry, written, true, true);
}

/* Whether these values, of the row if there is one a B-scan, are all NaN (or 0). */
static bool are_all(const char *path, const char *name, int row, bool nan)
{
    size_t n;
    bool all = true;
    double *values = volume_values(path, name, &n);
    const size_t first = row < 0 ? 0 : n / V * (size_t)row, end = row < 0 ? n : first + n / V;
    for (size_t k = first; k < end; k++)
        all &= nan ? isnan(values[k]) : values[k] == 0;
    free(values);
    return all;
}

TEST(what_never_came_is_nan_and_not_zero)
{
    struct oct_plan plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = make("never.h5", &plan);
    for (uint32_t v = 0; v < V; v++)
        volume_add(w, &plan, v, true, true);
    for (uint32_t v = 1; v < V - 2; v++) {
        must_put(w, TABLE, v == 5 ? v + 1 : v);
        v += v == 5;
        must_put(w, PICTURE, v);
    }
    volume_close(w);
    assert_int_equal(expect_dataset("never.h5", TABLE), 0x3de);
    assert_int_equal(expect_dataset("never.h5", PICTURE), 0x3de);
    for (int v = 0; v < V; v++) {
        const bool came = 0x3deu >> v & 1;
        assert_true(came || are_all("never.h5", "/analysis/cells", v, true));
        assert_true(came || are_all("never.h5", "/analysis/smooth", v, false)); /* u8 */
        assert_int_equal(are_all("never.h5", "/frames/smooth_lo", v, true), !came);
        assert_int_equal(are_all("never.h5", "/frames/smooth_hi", v, true), !came);
    }
    assert_int_equal(expect_volume("never.h5", ENFACE), 0);
    assert_true(are_all("never.h5", "/analysis/enface", -1, true));
    assert_int_equal(expect_volume("never.h5", SHADOW), 0);
    assert_true(are_all("never.h5", "/analysis/shadow", -1, false));
    assert_true(are_all("never.h5", "/analysis/shadow_lo", -1, true));
    uint8_t written[V];
    memset(written, 1, sizeof(written));
    volume_expect("never.h5", &plan.geometry, written, true, true);
}

TEST(an_image_of_a_volume_is_replaced_by_the_newest)
{
    struct oct_plan plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = make("newest.h5", &plan);
    for (uint32_t v = 0; v < V; v++) {
        volume_add(w, &plan, v, true, true);
        must_put(w, SHADOW, v);
        must_put(w, ENFACE, v);
        if (v < 2)
            continue;
        volume_sync(w);
        assert_int_equal(expect_volume("newest.h5.part", SHADOW), v + 1);
        assert_int_equal(expect_volume("newest.h5.part", ENFACE), v + 1);
    }
    uint64_t bytes = oct_volume_bytes(w);
    must_put(w, SHADOW, 3);
    volume_sync(w);
    assert_int_equal(oct_volume_bytes(w), bytes); /* nothing new */
    volume_close(w);
    assert_int_equal(expect_volume("newest.h5", SHADOW), 4);
    assert_int_equal(expect_volume("newest.h5", ENFACE), V);
}

TEST(a_wrong_result_is_refused_and_changes_nothing)
{
    struct oct_plan plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = make("wrong.h5", &plan);
    struct oct_error err;
    struct oct_image_form other = form_table;
    float values[ROWS * COLUMNS * 2] = {0};
    struct oct_image_frame frame = {.form = &form_table, .dims = {ROWS, COLUMNS}, .pixels = values};
    must_put(w, TABLE, 4);
    must_fail(put(w, TABLE, 4, &failure), OCT_E_ARG, "rise");
    assert_int_equal(put(w, TABLE, 3, &err), OCT_E_ARG);
    assert_int_equal(put(w, TABLE, V, &err), OCT_E_ARG);
    frame.info.bscan = 7;
    assert_int_equal(oct_volume_write_result(w, N_FORMS, &frame, &err), OCT_E_ARG);
    assert_int_equal(oct_volume_write_result(w, ENFACE, &frame, &err), OCT_E_ARG);
    frame.dims[0] = ROWS + 1;
    must_fail(oct_volume_write_result(w, TABLE, &frame, &failure), OCT_E_ARG, "form");
    frame.dims[0] = ROWS;
    frame.dims[1] = COLUMNS - 1;
    assert_int_equal(oct_volume_write_result(w, TABLE, &frame, &err), OCT_E_ARG);
    frame.dims[1] = COLUMNS;
    frame.status = OCT_E_BACKEND;
    assert_int_equal(oct_volume_write_result(w, TABLE, &frame, &err), OCT_E_ARG);
    frame.status = OCT_OK;
    other.type = OCT_SAMPLE_U8;
    frame.form = &other;
    assert_int_equal(oct_volume_write_result(w, TABLE, &frame, &err), OCT_E_ARG);
    frame.form = NULL;
    assert_int_equal(oct_volume_write_result(w, TABLE, &frame, &err), OCT_E_ARG);
    must_put(w, TABLE, 5); /* the writer goes on */
    volume_close(w);
    assert_int_equal(expect_dataset("wrong.h5", TABLE), 0x30);
}

TEST(a_file_without_the_dataset_takes_no_result)
{
    struct oct_plan plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = volume_make("none.h5", &plan, true, true);
    struct oct_error err;
    assert_int_equal(put(w, TABLE, 0, &err), OCT_E_ARG);
    volume_add(w, &plan, 0, true, true);
    volume_close(w);
}

TEST(the_reader_lists_what_is_there)
{
    struct oct_plan plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = make("list.h5", &plan);
    struct oct_volume_dataset d[OCT_VOLUME_MAX_FORMS];
    struct oct_volume_reader *r;
    unsigned n;
    must_put(w, TABLE, 2);
    must_put(w, TABLE, 9);
    must_put(w, ENFACE, 0);
    volume_close(w);
    must(oct_volume_open(&r, "list.h5", &failure));
    must(oct_volume_datasets(r, d, &n, &failure));
    oct_volume_reader_destroy(r);
    assert_int_equal(n, N_FORMS);
    assert_string_equal(d[0].name, "cells");
    assert_true(d[0].rank == 3 && d[0].dims[0] == V && d[0].dims[1] == ROWS &&
                d[0].dims[2] == COLUMNS && d[0].n_valid == 2 && !d[0].of_volume);
    assert_string_equal(d[0].quantity, "numbers");
    assert_string_equal(d[1].name, "enface");
    assert_true(d[1].rank == 2 && d[1].dims[0] == V && d[1].n_valid == 1 && d[1].of_volume);
    assert_string_equal(d[1].unit, "dB");
    assert_true(d[2].of_volume && d[2].n_valid == 0 && d[2].type == OCT_SAMPLE_U8);
    assert_string_equal(d[3].name, "smooth");
    assert_int_equal(d[3].rank, 4);
    volume_close(volume_make("nolist.h5", &plan, true, true));
    must(oct_volume_open(&r, "nolist.h5", &failure));
    must(oct_volume_datasets(r, d, &n, &failure));
    assert_int_equal(n, 0);
    oct_volume_reader_destroy(r);
}

/* Writes results and syncs often; *safe: how many rows are. */
static void write_until_the_end(const struct oct_plan *plan, unsigned *safe)
{
    struct oct_volume_writer *w = make("crash.h5", plan);
    for (uint32_t v = 0; v < V; v++) {
        volume_add(w, plan, v, true, true);
        must_put(w, TABLE, v);
        if (v % 3 == 0)
            must_put(w, PICTURE, v);
        must_put(w, SHADOW, v);
        if (v % 2)
            volume_sync(w);
        *safe = v % 2 ? v + 1 : *safe;
    }
    volume_close(w);
    *safe = V + 1;
}

/* false: it came to its end before. */
static bool crash_at(const struct oct_plan *plan, unsigned call, bool power_cut, unsigned *safe,
                     unsigned *n_replaced)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        machine.ends_at = call;
        machine.power_cut = power_cut;
        write_until_the_end(plan, safe);
        _exit(7);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7));
    bool ended = WEXITSTATUS(status) == 0;
    const char *path = access("crash.h5", F_OK) == 0 ? "crash.h5" : "crash.h5.part";
    if (access(path, F_OK) != 0)
        return ended;
    unsigned cells = expect_dataset(path, TABLE), smooth = expect_dataset(path, PICTURE);
    unsigned image = expect_volume(path, SHADOW), n = *safe < V ? *safe : V;
    assert_int_equal(cells & ((1u << n) - 1), (1u << n) - 1);
    assert_int_equal(smooth & ((1u << n) - 1), 0x249 & ((1u << n) - 1));
    *n_replaced += image == 0 && n > 0;
    assert_true(image == 0 || image >= n);
    unlink(path);
    return ended;
}

TEST(what_a_crash_leaves_is_right_after_every_single_call)
{
    struct oct_plan plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    /* Written by the child. */
    unsigned *safe =
        mmap(NULL, sizeof(*safe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(safe != MAP_FAILED);
    for (int power_cut = 0; power_cut < 2; power_cut++) {
        unsigned call = 1, n_replaced = 0;
        for (*safe = 0; crash_at(&plan, call, power_cut, safe, &n_replaced); *safe = 0)
            call++;
        assert_true(call > 60); /* it came in all stages */
        assert_true(n_replaced > 3 && n_replaced < call / 2);
    }
}

static int write_sample(const char *path)
{
    struct oct_plan plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    struct oct_volume_writer *w = make(path, &plan);
    for (uint32_t v = 0; v < V; v++) {
        volume_add(w, &plan, v, true, true);
        if (v != 5)
            must_put(w, TABLE, v);
        if (v >= 2)
            must_put(w, PICTURE, v);
        must_put(w, ENFACE, v);
    }
    volume_close(w);
    return 0;
}

int main(int argc, char **argv)
{
    disk_calls = (struct disk_calls){
        .pwrite = write_when_told, .fdatasync = sync_when_told, .fsync = sync_all_when_told};
    if (argc == 3 && strcmp(argv[1], "--writer") == 0)
        return write_sample(argv[2]);
    return test_run();
}
