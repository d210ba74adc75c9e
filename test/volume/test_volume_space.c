/* What a recording that ended early takes of the disk, and one of which memory runs out. fallocate
 * stands between this program and the system, which is asked all the same. */
#define _GNU_SOURCE
#include "test/rig/tap.h"
#include "test/rig/volume_cases.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_BSCANS = 120, N_SAMPLES = 512, N_LINES = 30, DEPTH = 200, N_RESULT = 16384 };

static int n_punched, kill_at; /* kill_at: n: before the n-th hole, -n: behind it; 0: never */
static bool has_no_holes;

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    static int (*real)(int, int, off_t, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fallocate");
    if (!(mode & FALLOC_FL_PUNCH_HOLE))
        return real(fd, mode, offset, bytes);
    n_punched++;
    if (n_punched == kill_at)
        raise(SIGKILL);
    if (has_no_holes) {
        errno = EOPNOTSUPP;
        return -1;
    }
    const int status = real(fd, mode, offset, bytes);
    if (n_punched == -kill_at)
        raise(SIGKILL);
    return status;
}

static const struct oct_image_form depths = {.name = "depths",
                                             .quantity = OCT_QUANTITY_DEPTH,
                                             .type = OCT_SAMPLE_U8,
                                             .rank = 1,
                                             .dims = {N_RESULT},
                                             .spacing_um = {1},
                                             .axes = {"line"}};
static const struct oct_image_form *const forms[] = {&depths};

static struct oct_plan plan_of_test(void)
{
    return volume_plan(N_SAMPLES, N_LINES, N_BSCANS, DEPTH, OCT_SAMPLE_U8);
}

/* A recording with these rows; of each B-scan spectra, picture and result. Not closed. */
static struct oct_volume_writer *record(const char *path, const uint8_t *written)
{
    static uint8_t values[N_RESULT];
    const struct oct_plan plan = plan_of_test();
    struct oct_volume_about about = volume_about;
    struct oct_volume_writer *w;
    about.forms = forms;
    about.n_forms = 1;
    must(oct_volume_create(&w, path, &plan, &about, true, true, &failure));
    for (uint32_t v = 0; v < N_BSCANS; v++) {
        const struct oct_image_frame result = {.form = &depths,
                                               .pixels = values,
                                               .dims = {N_RESULT},
                                               .status = OCT_OK,
                                               .info = {.bscan = v}};
        values[0] = (uint8_t)v;
        must(written[v] && (volume_put(w, &plan.geometry, v, true, true, &failure) ||
                            oct_volume_write_result(w, 0, &result, &failure)));
    }
    return w;
}

static uint64_t on_disk(const char *path, uint64_t *length)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    *length = (uint64_t)st.st_size;
    return (uint64_t)st.st_blocks * 512;
}

static uint64_t bytes_of(const char *path, const uint8_t *written, uint64_t *length)
{
    struct oct_volume_writer *w = record(path, written);
    must(oct_volume_close(w, &failure));
    return on_disk(path, length);
}

static void expect_rows(const char *path, const uint8_t *written)
{
    const struct oct_plan plan = plan_of_test();
    volume_expect(path, &plan.geometry, written, true, true);
}

static uint64_t row_bytes(void)
{
    const struct oct_plan plan = plan_of_test();
    return oct_geometry_spectra_bytes(&plan.geometry) + oct_geometry_image_bytes(&plan.geometry) +
           N_LINES + N_RESULT;
}

static bool can_punch(void)
{
    const int fd = open("probe", O_RDWR | O_CREAT, 0600);
    const bool can = fd >= 0 && ftruncate(fd, 8192) == 0 &&
                     fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0;
    close(fd);
    unlink("probe");
    return can;
}

TEST(a_recording_that_ends_early_gives_its_space_back)
{
    uint8_t written[N_BSCANS];
    uint64_t whole_length, length;
    if (!can_punch())
        skip();
    memset(written, 1, sizeof(written));
    const uint64_t whole = bytes_of("whole.h5", written, &whole_length);
    assert_true(whole >= whole_length); /* a whole one loses nothing */
    memset(written + 10, 0, N_BSCANS - 10);
    const uint64_t early = bytes_of("early.h5", written, &length);
    print_message("whole %llu bytes, 10 of 120 rows %llu, each %llu\n", (unsigned long long)whole,
                  (unsigned long long)early, (unsigned long long)row_bytes());
    assert_true(length == whole_length); /* the layout is that of the whole one */
    assert_true(early < whole - 109 * row_bytes());
    expect_rows("early.h5", written);
    expect_rows("whole.h5", memset(written, 1, sizeof(written)));
}

TEST(rows_that_never_came_between_others_take_no_space)
{
    uint8_t written[N_BSCANS];
    uint64_t length;
    if (!can_punch())
        skip();
    memset(written, 0, sizeof(written));
    for (unsigned v = 0; v < N_BSCANS; v += 30) /* 0, 30, 60, 90 */
        written[v] = 1;
    const uint64_t bytes = bytes_of("gaps.h5", written, &length);
    assert_true(bytes < length - 115 * row_bytes());
    expect_rows("gaps.h5", written);
}

TEST(without_holes_the_space_stays_and_the_recording_is_right)
{
    uint8_t written[N_BSCANS] = {1, 1, 1};
    uint64_t length;
    has_no_holes = true;
    n_punched = 0;
    const uint64_t bytes = bytes_of("solid.h5", written, &length);
    has_no_holes = false;
    assert_true(n_punched > 0 && bytes >= length);
    expect_rows("solid.h5", written);
}

/* Kills the writer before and behind each hole that it punches. */
TEST(a_kill_meanwhile_leaves_every_row_right)
{
    uint8_t written[N_BSCANS];
    int n_killed = 0;
    memset(written, 0, sizeof(written));
    for (unsigned v = 0; v < 80; v++)
        written[v] = v % 40 < 20;
    for (int at = 1; at < 60; at++) {
        const int sign = at % 2 ? 1 : -1;
        int status;
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            struct oct_volume_writer *w = record("killed.h5", written);
            n_punched = 0;
            kill_at = sign * ((at + 1) / 2);
            _exit(oct_volume_close(w, NULL) ? 1 : 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        const bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        assert_true(is_killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
        const char *name = is_killed ? "killed.h5.part" : "killed.h5";
        expect_rows(name, written);
        assert_int_equal(unlink(name), 0);
        n_killed += is_killed;
        if (!is_killed)
            break;
    }
    print_message("killed %d times\n", n_killed);
    assert_true(n_killed >= 8); /* spectra, pictures and results have holes each */
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* theirs has no limit */

static rlim_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_true(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Ends the process: 0: the recording is whole, 1: a line says why not, 2: none does. */
static void *record_all(void *argument)
{
    const struct oct_plan plan = plan_of_test();
    struct oct_error err = {.text = ""};
    struct oct_volume_writer *w;
    enum oct_err e = oct_volume_create(&w, "memory.h5", &plan, &volume_about, true, true, &err);
    for (uint32_t v = 0; v < N_BSCANS && !e; v++)
        e = volume_put(w, &plan.geometry, v, true, true, &err);
    enum oct_err c = oct_volume_close(w, e ? NULL : &err);
    (void)argument;
    _exit(!e && !c ? 0 : err.text[0] ? 1 : 2);
}

/* With so much more address space, in a thread of its own, as octd does: where there is no room for
 * an arena of it, malloc maps each piece, and what is used after it was freed is not there. */
static void record_within(size_t extra_bytes)
{
    const struct rlimit limit = {address_space() + extra_bytes, RLIM_INFINITY};
    pthread_t thread;
    if (setrlimit(RLIMIT_AS, &limit) || pthread_create(&thread, NULL, record_all, NULL))
        _exit(1);
    pthread_join(thread, NULL);
}

static void open_what_is_there(size_t unused)
{
    struct oct_volume_reader *r;
    struct oct_error err;
    (void)unused;
    const char *path = access("memory.h5", F_OK) == 0 ? "memory.h5" : "memory.h5.part";
    if (access(path, F_OK) == 0 && oct_volume_open(&r, path, &err))
        _exit(2);
    _exit(0);
}

static unsigned status_of_child(void (*act)(size_t), size_t extra_bytes)
{
    int status;
    const pid_t child = fork();
    if (child == 0)
        act(extra_bytes);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
        fail_msg("with %zu KiB: status 0x%x", extra_bytes >> 10, (unsigned)status);
    return (unsigned)WEXITSTATUS(status);
}

/* In steps of 256 KiB, from nothing to more than enough. libhdf5 has not been used in this process:
 * it takes memory as it begins, too. */
TEST(memory_that_runs_out_ends_a_recording_with_a_line)
{
    unsigned n[2] = {0, 0};
    for (size_t extra = 0; extra <= (size_t)160 << 20;
         extra += (size_t)(extra < (size_t)40 << 20 ? 1 << 18 : 1 << 23)) {
        n[status_of_child(record_within, extra)]++;
        status_of_child(open_what_is_there, extra);
        unlink("memory.h5");
        unlink("memory.h5.part");
    }
    assert_true(n[0] > 0 && n[1] > 10);
}
#endif
