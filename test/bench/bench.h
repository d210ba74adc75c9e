/* octbench: the analyses, each timed beside a limit taken in the same run. That they are right is
 * what their suites in test/ prove; GPUs are timed by scripts/gpu-check (test/gpu/). */
#ifndef OCT_TEST_BENCH_BENCH_H
#define OCT_TEST_BENCH_BENCH_H

#include "numeric/picture.h"
#include "tools/bench/part.h"

struct oct_workers;

oct_bench_part bench_correlate, bench_register, bench_average, bench_cells, bench_surfaces,
    bench_layers, bench_flow, bench_warp;

/* Adds a row of values that are there already; seconds, milliseconds and microseconds must be less
 * than the limit, rates more. `what` is set by the caller. */
struct oct_bench_row *bench_add(struct oct_bench_rows *rows, const char *part, const char *limit_is,
                                const char *unit, double value, double limit, double goal);

/* "", of one core "s". */
const char *bench_plural(unsigned n);

/* As many workers as there are cores, without the caller; NULL for one core. */
enum oct_err bench_workers(struct oct_workers **workers, struct oct_error *err);

/* ---- one timing loop ---- */

/* What is timed, and the least time that it took, s: by the clock, of this thread's CPU time and of
 * that of all threads. */
struct bench_turn {
    enum oct_err (*run)(void *context, struct oct_error *err);
    void *context;
    double wall_s, thread_s, cpu_s;
};

/* Runs all in turns, so that what disturbs one disturbs the others: `least` times at least, and
 * until `seconds` are over. */
enum oct_err bench_turns(struct bench_turn *turns, unsigned n, unsigned least, double seconds,
                         struct oct_error *err);

/* ---- live analyses ---- */

/* octd's pictures beside an analysis, in turn with pictures alone. */
enum oct_err bench_live(const struct oct_config *config, const char *part, double seconds,
                        struct oct_bench_rows *rows, struct oct_error *err);
/* Layers of one B-scan on one core. */
enum oct_err bench_layers_alone(const struct oct_config *config, double seconds,
                                struct oct_bench_rows *rows, struct oct_error *err);

/* ---- limits ---- */

/* Multiply-adds of f32 a second of CPU time, in registers, with the instruction set "avx512",
 * "avx2" (with FMA) or any other: vectors of four. The best of runs of about `seconds` together.
 * The CPU must have the set. */
double bench_multiply_adds(const char *simd, double seconds);

/* Bytes read and written a second by a[i] = b[i] + s c[i] of f32, each array of 64 MiB, by the
 * caller and the workers (NULL: the caller alone); as STREAM counts, 12 bytes an element. The best
 * of runs of about `seconds` together. OCT_E_NO_MEMORY. */
enum oct_err bench_triad(struct oct_workers *workers, double seconds, double *bytes_per_s,
                         struct oct_error *err);

/* The transforms of FFTW from a picture and back, and nothing else. */
struct bench_bare {
    int height, width;
    float *in;
    void *out, *forward, *inverse; /* of FFTW's types */
};

bool bench_bare_open(struct bench_bare *bare, uint32_t height, uint32_t width, unsigned how);
void bench_bare_close(struct bench_bare *bare);
enum oct_err bench_bare_run(void *bare, struct oct_error *err); /* for bench_turns */

/* What a script of Python prints: ms. It gets the n pictures, f32, in a file whose name is its
 * argument. 0: it fails, as where a module is not installed. */
double bench_python(const char *script, const struct oct_picture *pictures, unsigned n);

#endif
