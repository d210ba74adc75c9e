#include "test/bench/bench.h"

#include "kernels/device/fftw_planner.h"
#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"

#include <fftw3.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct oct_bench_row *bench_add(struct oct_bench_rows *rows, const char *part, const char *limit_is,
                                const char *unit, double value, double limit, double goal)
{
    struct oct_bench_row *row = oct_bench_add(rows, part, limit_is, unit, goal);
    row->value = value;
    row->limit = limit;
    row->less_is_better =
        strcmp(unit, "s") == 0 || strcmp(unit, "ms") == 0 || strcmp(unit, "us") == 0;
    return row;
}

const char *bench_plural(unsigned n)
{
    return n == 1 ? "" : "s";
}

enum oct_err bench_workers(struct oct_workers **workers, struct oct_error *err)
{
    const unsigned n = oct_bench_n_cores();
    *workers = NULL;
    return n > 1 ? oct_workers_create(workers, n - 1, err) : OCT_OK;
}

/* ---- one timing loop ---- */

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum oct_err bench_turns(struct bench_turn *turns, unsigned n, unsigned least, double seconds,
                         struct oct_error *err)
{
    const double until = read_clock(CLOCK_MONOTONIC) + seconds;
    enum oct_err e = OCT_OK;
    for (unsigned k = 0; k < n; k++)
        turns[k].wall_s = turns[k].thread_s = turns[k].cpu_s = HUGE_VAL;
    for (unsigned i = 0; !e && (i < least || read_clock(CLOCK_MONOTONIC) < until); i++)
        for (unsigned k = 0; k < n && !e; k++) {
            struct bench_turn *t = &turns[k];
            const double wall_s = read_clock(CLOCK_MONOTONIC);
            const double thread_s = read_clock(CLOCK_THREAD_CPUTIME_ID);
            const double cpu_s = read_clock(CLOCK_PROCESS_CPUTIME_ID);
            e = t->run(t->context, err);
            t->thread_s = fmin(t->thread_s, read_clock(CLOCK_THREAD_CPUTIME_ID) - thread_s);
            t->cpu_s = fmin(t->cpu_s, read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_s);
            t->wall_s = fmin(t->wall_s, read_clock(CLOCK_MONOTONIC) - wall_s);
        }
    return e;
}

/* ---- bare transforms ---- */

bool bench_bare_open(struct bench_bare *bare, uint32_t height, uint32_t width, unsigned how)
{
    *bare = (struct bench_bare){.height = (int)height, .width = (int)width};
    fftwf_complex *out =
        oct_aligned_calloc(64, (size_t)height * (width / 2 + 1), sizeof(fftwf_complex));
    bare->in = oct_aligned_calloc(64, (size_t)height * width, sizeof(float));
    bare->out = out;
    if (bare->in && out) {
        oct_fftw_planner_lock();
        bare->forward = fftwf_plan_dft_r2c_2d(bare->height, bare->width, bare->in, out, how);
        bare->inverse = fftwf_plan_dft_c2r_2d(bare->height, bare->width, out, bare->in, how);
        oct_fftw_planner_unlock();
    }
    if (bare->forward && bare->inverse)
        return true;
    bench_bare_close(bare);
    return false;
}

void bench_bare_close(struct bench_bare *bare)
{
    oct_fftw_planner_lock();
    if (bare->forward)
        fftwf_destroy_plan(bare->forward);
    if (bare->inverse)
        fftwf_destroy_plan(bare->inverse);
    oct_fftw_planner_unlock();
    free(bare->in);
    free(bare->out);
    *bare = (struct bench_bare){0};
}

/* From nothing each time: the inverse would make numbers grow from run to run. */
enum oct_err bench_bare_run(void *context, struct oct_error *err)
{
    struct bench_bare *bare = context;
    (void)err;
    bare->in[0] = 1;
    for (size_t i = 1; i < (size_t)bare->height * (size_t)bare->width; i++)
        bare->in[i] = 0;
    fftwf_execute(bare->forward);
    fftwf_execute(bare->inverse);
    return OCT_OK;
}

/* ---- programs of others ---- */

double bench_python(const char *script, const struct oct_picture *pictures, unsigned n)
{
    char path[] = "/tmp/octbench-XXXXXX", command[1024];
    double ms = 0;
    bool is_written = true;
    int file = mkstemp(path);
    if (file < 0)
        return 0;
    for (unsigned i = 0; i < n && is_written; i++) {
        const size_t bytes = (size_t)pictures[i].height * pictures[i].width * sizeof(float);
        is_written = write(file, pictures[i].pixels, bytes) == (ssize_t)bytes;
    }
    if (is_written) {
        snprintf(command, sizeof(command),
                 "OMP_NUM_THREADS=1 /usr/bin/python3 -c '%s' %s 2>/dev/null", script, path);
        FILE *child = popen(command, "re"); /* NOLINT(cert-env33-c): no text of a user's in it */
        if (child && fscanf(child, "%lf", &ms) != 1)
            ms = 0;
        if (child)
            pclose(child);
    }
    close(file);
    unlink(path);
    return ms;
}
