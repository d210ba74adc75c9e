/* A disk that refuses one call, or every call from one on, at each place where a recording makes
 * one. Whatever is refused, the program ends by itself and not by a signal, says what failed, and
 * the file holds every B-scan that was reported as written. EINTR is no failure at all.
 *
 * The C library's calls are replaced in this program, libhdf5's among them. Each case runs in a
 * child, so that its end is looked at too: libhdf5 has a handler of its own there. */
#define _GNU_SOURCE /* RTLD_NEXT, renameat2, fallocate */
#include "test/rig/disk_rig.h"
#include "test/rig/tap.h"
#include "test/rig/volume_cases.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_BSCANS = 4, N_TRUTH = 300 };
static const char path[] = "disk.h5", part[] = "disk.h5.part";

/* Which calls fail: none, number fail_at, that and all after it, or each at its first try. */
enum which { NONE, ONE, ONWARDS, EVERY_OTHER };

/* Shared with the children. */
static struct {
    atomic_uint n_calls;
    enum which which;
    unsigned fail_at;
    int errnum;
    atomic_bool armed;
    atomic_uint n_safe; /* B-scans reported as written */
    char last_call[32]; /* that failed */
    char error[600];
} * shared;

static bool is_hit(unsigned n)
{
    switch (shared->which) {
    case ONE:
        return n == shared->fail_at;
    case ONWARDS:
        return n >= shared->fail_at;
    case EVERY_OTHER:
        return n % 2;
    default:
        return false;
    }
}

static bool fails(const char *call)
{
    if (!shared || !atomic_load(&shared->armed))
        return false;
    unsigned n = atomic_fetch_add(&shared->n_calls, 1) + 1;
    if (!is_hit(n))
        return false;
    snprintf(shared->last_call, sizeof(shared->last_call), "%s", call);
    errno = shared->errnum;
    return true;
}

/* ---- what stands before the C library ---- */

#define REAL(name)                                                                                 \
    static __typeof__(name) *real;                                                                 \
    if (!real)                                                                                     \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

ssize_t pread(int fd, void *data, size_t n, off_t at)
{
    REAL(pread);
    return fails("pread") ? -1 : real(fd, data, n, at);
}

static ssize_t write_when_told(int fd, const void *data, size_t n, off_t at)
{
    return fails("pwrite") ? -1 : disk_pwrite(fd, data, n, at);
}

size_t fwrite(const void *data, size_t size, size_t n, FILE *file)
{
    REAL(fwrite);
    return file != stderr && file != stdout && fails("fwrite") ? 0 : real(data, size, n, file);
}

int fflush(FILE *file)
{
    REAL(fflush);
    return file && file != stderr && file != stdout && fails("fflush") ? -1 : real(file);
}

FILE *fopen(const char *name, const char *mode)
{
    REAL(fopen);
    return fails("fopen") ? NULL : real(name, mode);
}

int ftruncate(int fd, off_t length)
{
    REAL(ftruncate);
    return fails("ftruncate") ? -1 : real(fd, length);
}

int fallocate(int fd, int mode, off_t at, off_t length)
{
    REAL(fallocate);
    return fails("fallocate") ? -1 : real(fd, mode, at, length);
}

off_t lseek(int fd, off_t at, int whence)
{
    REAL(lseek);
    return fails("lseek") ? -1 : real(fd, at, whence);
}

static int sync_all_when_told(int fd)
{
    return fails("fsync") ? -1 : disk_fsync(fd);
}

static int sync_when_told(int fd)
{
    return fails("fdatasync") ? -1 : disk_fdatasync(fd);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    REAL(linkat);
    return fails("linkat") ? -1 : real(from_fd, from, to_fd, to, flags);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    REAL(renameat2);
    return fails("renameat2") ? -1 : real(from_fd, from, to_fd, to, flags);
}

int open(const char *name, int flags, ...)
{
    REAL(open);
    mode_t mode = 0;
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    return fails("open") ? -1 : real(name, flags, mode);
}

/* ---- what the children do; each returns its exit status ---- */

static int tell(enum oct_err code, const struct oct_error *err)
{
    if (code)
        snprintf(shared->error, sizeof(shared->error), "%s", err->text);
    return code ? 1 : 0;
}

static int record(void)
{
    struct oct_plan plan = volume_plan(64, 5, N_BSCANS, 20, OCT_SAMPLE_U8);
    struct oct_volume_writer *w;
    struct oct_error err = {0}, ignored;
    struct oct_volume_about about = volume_about;
    about.gap_map = true;
    enum oct_err e = oct_volume_create(&w, path, &plan, &about, true, true, &err);
    if (e)
        return tell(e, &err);
    for (uint32_t v = 0; v < N_BSCANS && e == OCT_OK; v++) {
        e = volume_put(w, &plan.geometry, v, true, true, &err);
        if (e == OCT_OK && v % 2)
            e = oct_volume_sync(w, &err);
        atomic_store(&shared->n_safe, (unsigned)oct_volume_written(w));
    }
    enum oct_err c = oct_volume_close(w, e ? &ignored : &err);
    return tell(e ? e : c, &err);
}

static int add(void)
{
    const size_t dims[1] = {N_TRUTH};
    double values[N_TRUTH];
    struct oct_error err = {0};
    for (int i = 0; i < N_TRUTH; i++)
        values[i] = i;
    return tell(oct_volume_add_f64(path, "/truth/motion", values, 1, dims, "um", &err), &err);
}

static int look(void)
{
    struct oct_plan plan = volume_plan(64, 5, N_BSCANS, 20, OCT_SAMPLE_U8);
    struct oct_volume_reader *r;
    struct volume_bscan got;
    struct oct_error err = {0};
    bool valid;
    enum oct_err e = oct_volume_open(&r, path, &err);
    if (e)
        return tell(e, &err);
    volume_bscan_init(&got, &plan.geometry);
    for (uint32_t v = 0; v < N_BSCANS && e == OCT_OK; v++) {
        e = oct_volume_read_spectra(r, v, &got.raw, &valid, &err);
        if (e == OCT_OK)
            e = oct_volume_read_image(r, v, got.image.pixels, &valid, &err);
    }
    volume_bscan_finish(&got);
    oct_volume_reader_destroy(r);
    return tell(e, &err);
}

/* ---- the cases ---- */

static int run(int (*work)(void))
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka has handlers of its own */
        signal(SIGABRT, SIG_DFL);
        atomic_store(&shared->armed, true);
        int result = work();
        exit(result);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    atomic_store(&shared->armed, false);
    return status;
}

/* What was reported is in the file, under one of its names. */
static void expect_reported(unsigned n_safe, bool whole)
{
    struct oct_plan plan = volume_plan(64, 5, N_BSCANS, 20, OCT_SAMPLE_U8);
    struct oct_volume_reader *r;
    struct oct_error err;
    const char *name = access(path, F_OK) == 0 ? path : part;
    if (n_safe == 0 && !whole && access(name, F_OK) != 0)
        return;
    if (oct_volume_open(&r, name, &err))
        fail_msg("%u B-scans were reported: %s", n_safe, err.text);
    uint64_t n_valid = oct_volume_facts(r)->n_valid;
    oct_volume_reader_destroy(r);
    assert_true(n_valid >= n_safe);
    uint8_t written[N_BSCANS];
    for (unsigned v = 0; v < N_BSCANS; v++)
        written[v] = v < n_valid;
    assert_true(!whole || (n_valid == N_BSCANS && name == path));
    if (n_valid == N_BSCANS)
        volume_expect(name, &plan.geometry, written, true, true);
}

static void prepare(int (*work)(void))
{
    unlink(path);
    unlink(part);
    shared->which = NONE;
    if (work != record)
        assert_int_equal(run(record), 0);
    shared->n_calls = 0;
    shared->n_safe = 0;
    shared->error[0] = shared->last_call[0] = '\0';
}

static void try(int (*work)(void), const char *name, enum which which, unsigned n, int errnum)
{
    prepare(work);
    shared->which = which;
    shared->fail_at = n;
    shared->errnum = errnum;
    int status = run(work);
    bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1 || (!ok && !shared->error[0]) ||
        (!ok && errnum == EINTR))
        fail_msg("%s: call %u (%s) fails (%d) with %s: wait status 0x%x, error \"%s\"", name, n,
                 shared->last_call, (int)which, strerror(errnum), status, shared->error);
    if (work == record)
        expect_reported(shared->n_safe, ok);
    else if (work == look || ok)
        expect_reported(N_BSCANS, true);
}

static void every_call_fails(int (*work)(void), const char *name)
{
    prepare(work);
    assert_int_equal(run(work), 0);
    unsigned n_calls = shared->n_calls;
    fprintf(stderr, "# %s: each of %u calls fails\n", name, n_calls);
    assert_true(n_calls > 3);
    for (unsigned n = 1; n <= n_calls; n++) {
        if (work != look || n % 2)
            try(work, name, ONE, n, EIO);
        if (work != look && n % 2)
            try(work, name, ONWARDS, n, ENOSPC);
    }
    try(work, name, EVERY_OTHER, 0, EINTR);
}

TEST(a_recording_survives_any_call_that_fails)
{
    every_call_fails(record, "record");
}

TEST(an_addition_survives_any_call_that_fails)
{
    every_call_fails(add, "add");
}

TEST(a_reader_survives_any_call_that_fails)
{
    every_call_fails(look, "read");
}

int main(void)
{
    disk_calls = (struct disk_calls){
        .pwrite = write_when_told, .fdatasync = sync_when_told, .fsync = sync_all_when_told};
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    return test_run();
}
