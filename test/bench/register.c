/* Registration of frames of 512 x 512: rigid with a kept reference beside the bare padded
 * transforms of FFTW and beside OpenCV's phase correlation of the same pictures, and strips. */
#include "analysis/align/rigid.h"
#include "analysis/align/strips.h"
#include "analysis/correlate/fft2.h"
#include "kernels/device/workers.h"
#include "test/bench/bench.h"
#include "test/rig/waves.h"

#include <fftw3.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 512, SHIFT = SIDE / 3, N_FRAMES = 16 };

struct bench {
    struct oct_picture pictures[1 + N_FRAMES]; /* the reference, frames */
    double seconds;
    struct oct_bench_rows *rows;
    struct oct_rigid *rigid;
    unsigned next;
    struct oct_strips *strips;
    struct oct_strip *found;
};

/* ---- whole frames ---- */

static enum oct_err find_rigid(void *context, struct oct_error *err)
{
    struct bench *b = context;
    struct oct_shift shift;
    return oct_rigid_find(b->rigid, &b->pictures[1 + b->next++ % N_FRAMES], &shift, err);
}

static double run_opencv(const struct bench *b)
{
    static const char script[] =
        "import sys,time,numpy as np,cv2;cv2.setNumThreads(1);"
        "a=np.fromfile(sys.argv[1],np.float32).reshape(2,512,512);"
        "w=cv2.createHanningWindow((512,512),cv2.CV_32F);t=[]\n"
        "for i in range(40):\n"
        "  s=time.perf_counter();cv2.phaseCorrelate(a[1],a[0],w);t.append(time.perf_counter()-s)\n"
        "print(min(t)*1e3)";
    return bench_python(script, b->pictures, 2);
}

static enum oct_err bench_rigid(struct bench *b, struct oct_error *err)
{
    const struct oct_rigid_setup setup = {.height = SIDE,
                                          .width = SIDE,
                                          .max_dy = SHIFT,
                                          .max_dx = SHIFT,
                                          .min_overlap = 0.3,
                                          .backend = "cpu"};
    const uint32_t n = oct_fft2_size(SIDE + SHIFT);
    struct bench_bare bare;
    struct bench_turn turns[2] = {{.run = bench_bare_run, .context = &bare},
                                  {.run = find_rigid, .context = b}};
    if (!bench_bare_open(&bare, n, n, FFTW_MEASURE))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the bare transforms");
    enum oct_err e = oct_rigid_create(&b->rigid, &setup, err);
    e = e ? e : oct_rigid_set_reference(b->rigid, &b->pictures[0], err);
    e = e ? e : bench_turns(turns, 2, 4 * N_FRAMES, b->seconds, err);
    oct_rigid_destroy(b->rigid);
    bench_bare_close(&bare);
    for (unsigned i = 0; i < 2 && !e; i++) {
        struct oct_bench_row *row = bench_add(
            b->rows, "register", i == 0 ? "bare padded pair of FFTW" : "OpenCV phaseCorrelate",
            "ms", turns[1].thread_s * 1e3, i == 0 ? turns[0].thread_s * 1e3 : run_opencv(b),
            i ? 1.3 : 1.5);
        snprintf(row->what, sizeof(row->what), "rigid, 512 x 512, one core");
        if (row->limit == 0) {
            row->goal = 0;
            snprintf(row->note, sizeof(row->note), "not installed: python3-opencv");
        }
    }
    return e;
}

/* ---- strips ---- */

static enum oct_err find_strips(void *context, struct oct_error *err)
{
    struct bench *b = context;
    return oct_strips_find(b->strips, b->pictures + 1, N_FRAMES, b->found, err);
}

static enum oct_err bench_strips(struct bench *b, struct oct_error *err)
{
    const unsigned n_cores = oct_bench_n_cores();
    const uint32_t n_strips = oct_strips_count(SIDE, OCT_STRIP_ROWS, OCT_STRIP_STEP);
    struct bench_turn turn = {.run = find_strips, .context = b};
    struct oct_strips_setup setup = {.height = SIDE,
                                     .width = SIDE,
                                     .max_dy = SHIFT,
                                     .max_dx = SHIFT,
                                     .rows = OCT_STRIP_ROWS,
                                     .step = OCT_STRIP_STEP,
                                     .search = OCT_STRIP_SEARCH,
                                     .far = OCT_STRIP_FAR,
                                     .min_score = OCT_STRIP_MIN_SCORE,
                                     .n_batch = N_FRAMES,
                                     .backend = "cpu"};
    b->found = calloc((size_t)N_FRAMES * n_strips, sizeof(*b->found));
    if (!b->found)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for strips");
    enum oct_err e = bench_workers(&setup.workers, err);
    e = e ? e : oct_strips_create(&b->strips, &setup, err);
    e = e ? e : oct_strips_set_reference(b->strips, &b->pictures[0], err);
    e = e ? e : bench_turns(&turn, 1, 3, b->seconds, err);
    if (!e) {
        struct oct_bench_row *row = bench_add(b->rows, "register", "30 frames a second", "frames/s",
                                              N_FRAMES / turn.wall_s, 30, 1);
        snprintf(row->what, sizeof(row->what), "strips, 512 x 512, %u a frame, %u cores", n_strips,
                 n_cores);
    }
    oct_strips_destroy(b->strips);
    oct_workers_destroy(setup.workers);
    free(b->found);
    return e;
}

enum oct_err bench_register(const struct oct_config *config,
                            const struct oct_bench_options *options, struct oct_bench_rows *rows,
                            struct oct_error *err)
{
    struct bench b = {.seconds = options->seconds, .rows = rows};
    struct oct_waves waves;
    uint64_t random = 7;
    (void)config;
    oct_waves_init(&waves, 7, 8, 48);
    b.pictures[0] = oct_waves_picture(&waves, SIDE, SIDE, 0, 0, 0.3, &random);
    for (unsigned i = 0; i < N_FRAMES; i++)
        b.pictures[1 + i] =
            oct_waves_picture(&waves, SIDE, SIDE, 9.3 - 1.31 * i, -17.2 + 2.23 * i, 0.3, &random);
    enum oct_err e = bench_rigid(&b, err);
    e = e ? e : bench_strips(&b, err);
    for (unsigned i = 0; i < 1 + N_FRAMES; i++)
        oct_picture_finish(&b.pictures[i]);
    return e;
}
