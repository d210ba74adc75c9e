/* Registration of frames of 512 x 512 on the CPU: rigid with a kept reference beside the bare
 * padded transforms of FFTW and beside OpenCV's phase correlation of the same pictures, and
 * strips. */
#include "analysis/align/rigid.h"
#include "analysis/align/strips.h"
#include "analysis/correlate/fft2.h"
#include "kernels/device/fftw_planner.h"
#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"
#include "tools/bench/part.h"

#include <fftw3.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 512, SHIFT = SIDE / 3, N_FRAMES = 16, N_WAVES = 48 };
#define PI 3.14159265358979323846

struct bench {
    struct oct_picture reference, frames[N_FRAMES];
    double dy[N_FRAMES], dx[N_FRAMES];
    double seconds;
    struct oct_bench_rows *rows;
};

/* ---- the frames ---- */

static double uniform(uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    return (*random >> 8) / 16777216.0;
}

/* Waves of 8 to 48 px in all directions, moved by (dy, dx), and noise. */
static void draw(struct oct_picture *picture, double dy, double dx, uint32_t seed)
{
    uint32_t random = 7;
    memset(picture->pixels, 0, (size_t)SIDE * SIDE * sizeof(float));
    for (unsigned i = 0; i < N_WAVES; i++) {
        double k = 2 * PI / (8 + 40 * uniform(&random)), angle = 2 * PI * uniform(&random);
        double k_y = k * sin(angle), k_x = k * cos(angle), phase = 2 * PI * uniform(&random);
        for (unsigned y = 0; y < SIDE; y++)
            for (unsigned x = 0; x < SIDE; x++)
                picture->pixels[(size_t)y * SIDE + x] +=
                    cosf((float)(k_y * (y + dy) + k_x * (x + dx) + phase));
    }
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++)
        picture->pixels[i] += (float)(5 * (uniform(&seed) - 0.5));
}

static enum oct_err make_frames(struct bench *b, struct oct_error *err)
{
    enum oct_err e = oct_picture_init(&b->reference, SIDE, SIDE, false, err);
    if (!e)
        draw(&b->reference, 0, 0, 1);
    for (unsigned i = 0; i < N_FRAMES && !e; i++) {
        e = oct_picture_init(&b->frames[i], SIDE, SIDE, false, err);
        b->dy[i] = 9.3 - 1.31 * i;
        b->dx[i] = -17.2 + 2.23 * i;
        if (!e)
            draw(&b->frames[i], b->dy[i], b->dx[i], 2 + i);
    }
    return e;
}

/* ---- limits ---- */

/* Best time of a forward and an inverse transform, padded as for this search, ms; 0: out of
 * memory. */
static double bare_pair(double seconds)
{
    const uint32_t n = oct_fft2_size(SIDE + SHIFT);
    float *in = oct_aligned_calloc(64, (size_t)n * n, sizeof(float));
    fftwf_complex *out = oct_aligned_calloc(64, (size_t)n * (n / 2 + 1), sizeof(fftwf_complex));
    double best = HUGE_VAL;
    oct_fftw_planner_lock();
    fftwf_plan forward =
        in && out ? fftwf_plan_dft_r2c_2d((int)n, (int)n, in, out, FFTW_MEASURE) : NULL;
    fftwf_plan inverse =
        in && out ? fftwf_plan_dft_c2r_2d((int)n, (int)n, out, in, FFTW_MEASURE) : NULL;
    oct_fftw_planner_unlock();
    const uint64_t until = oct_clock_ns() + (uint64_t)(seconds * 1e9);
    for (unsigned i = 0; forward && inverse && (i < OCT_BENCH_REPEATS || oct_clock_ns() < until);
         i++) {
        memset(in, 0, (size_t)n * n * sizeof(float));
        in[i % n] = 1;
        const uint64_t begin = oct_clock_ns();
        fftwf_execute(forward);
        fftwf_execute(inverse);
        best = fmin(best, (double)(oct_clock_ns() - begin) * 1e-6);
    }
    oct_fftw_planner_lock();
    if (forward)
        fftwf_destroy_plan(forward);
    if (inverse)
        fftwf_destroy_plan(inverse);
    oct_fftw_planner_unlock();
    free(in);
    free(out);
    return isfinite(best) ? best : 0;
}

/* Best time of OpenCV on one thread, ms; 0: it is not installed. The pictures go through a file. */
static double opencv(const struct bench *b)
{
    static const char script[] =
        "import sys,time,numpy as np,cv2;cv2.setNumThreads(1);"
        "a=np.fromfile(sys.argv[1],np.float32).reshape(2,512,512);"
        "w=cv2.createHanningWindow((512,512),cv2.CV_32F);t=[]\n"
        "for i in range(40):\n"
        "  s=time.perf_counter();cv2.phaseCorrelate(a[0],a[1],w);t.append(time.perf_counter()-s)\n"
        "print(min(t)*1e3)";
    char path[] = "/tmp/octctl-bench-XXXXXX", command[1024];
    double ms = 0;
    int file = mkstemp(path);
    const size_t bytes = (size_t)SIDE * SIDE * sizeof(float);
    if (file < 0)
        return 0;
    if (write(file, b->frames[0].pixels, bytes) == (ssize_t)bytes &&
        write(file, b->reference.pixels, bytes) == (ssize_t)bytes) {
        snprintf(command, sizeof(command), "/usr/bin/python3 -c '%s' %s 2>/dev/null", script, path);
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

/* ---- what is timed ---- */

static enum oct_err time_rigid(struct bench *b, double *best, double *worst, struct oct_error *err)
{
    const struct oct_rigid_setup setup = {
        .height = SIDE,
        .width = SIDE,
        .max_dy = SHIFT,
        .max_dx = SHIFT,
        .min_overlap = 0.3,
        .backend = "cpu",
    };
    struct oct_rigid *rigid;
    struct oct_shift s;
    enum oct_err e = oct_rigid_create(&rigid, &setup, err);
    if (!e)
        e = oct_rigid_set_reference(rigid, &b->reference, err);
    *worst = 0;
    *best = HUGE_VAL;
    for (unsigned i = 0; i < N_FRAMES && !e; i++) {
        e = oct_rigid_find(rigid, &b->frames[i], &s, err);
        *worst = fmax(*worst, fmax(fabs(s.dy - b->dy[i]), fabs(s.dx - b->dx[i])));
    }
    if (!e && !(*worst <= 0.05))
        e = oct_fail(err, OCT_E_STATE, "a shift is %.3f px off", *worst);
    const uint64_t until = oct_clock_ns() + (uint64_t)(b->seconds * 1e9);
    for (unsigned i = 0; !e && (i < 4 * N_FRAMES || oct_clock_ns() < until); i++) {
        const uint64_t begin = oct_clock_ns();
        e = oct_rigid_find(rigid, &b->frames[i % N_FRAMES], &s, err);
        *best = fmin(*best, (double)(oct_clock_ns() - begin) * 1e-6);
    }
    oct_rigid_destroy(rigid);
    return e;
}

static enum oct_err bench_rigid(struct bench *b, struct oct_error *err)
{
    double ms, worst, limit = bare_pair(b->seconds / 2);
    enum oct_err e = time_rigid(b, &ms, &worst, err);
    if (e)
        return e;
    struct oct_bench_row *row =
        oct_bench_add(b->rows, "register", "bare padded pair of FFTW", "ms", 1.5);
    snprintf(row->what, sizeof(row->what), "rigid, 512 x 512, one core");
    snprintf(row->note, sizeof(row->note), "largest error %.4f px", worst);
    row->value = ms;
    row->limit = fmin(limit, bare_pair(b->seconds / 2)); /* before and after */
    row->less_is_better = true;
    row = oct_bench_add(b->rows, "register", "OpenCV phaseCorrelate", "ms", 1.3);
    snprintf(row->what, sizeof(row->what), "rigid, 512 x 512, one core");
    row->value = ms;
    row->limit = opencv(b);
    row->less_is_better = true;
    if (row->limit == 0) {
        row->goal = 0;
        snprintf(row->note, sizeof(row->note), "not installed: python3-opencv");
    }
    return OCT_OK;
}

static enum oct_err verify_strips(const struct bench *b, const struct oct_strip *found,
                                  uint32_t n_strips, struct oct_error *err)
{
    for (unsigned i = 0; i < N_FRAMES; i++)
        for (uint32_t k = 0; k < n_strips; k++) {
            const struct oct_strip *s = &found[i * n_strips + k];
            double y = (double)s->dy - b->dy[i], x = (double)s->dx - b->dx[i];
            if (!s->ok || !(fmax(fabs(y), fabs(x)) <= 0.25))
                return oct_fail(err, OCT_E_STATE, "strip %u of frame %u is %.2f, %.2f px off", k, i,
                                y, x);
        }
    return OCT_OK;
}

static enum oct_err bench_strips(struct bench *b, struct oct_error *err)
{
    const unsigned n_cores = oct_bench_n_cores();
    const uint32_t n_strips = oct_strips_count(SIDE, OCT_STRIP_ROWS, OCT_STRIP_STEP);
    struct oct_strip *found = calloc((size_t)N_FRAMES * n_strips, sizeof(*found));
    struct oct_workers *workers = NULL;
    struct oct_strips *strips = NULL;
    double best = 0;
    if (!found)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for strips");
    enum oct_err e = n_cores > 1 ? oct_workers_create(&workers, n_cores - 1, err) : OCT_OK;
    const struct oct_strips_setup setup = {
        .height = SIDE,
        .width = SIDE,
        .max_dy = SHIFT,
        .max_dx = SHIFT,
        .rows = OCT_STRIP_ROWS,
        .step = OCT_STRIP_STEP,
        .search = OCT_STRIP_SEARCH,
        .far = OCT_STRIP_FAR,
        .min_score = OCT_STRIP_MIN_SCORE,
        .n_batch = N_FRAMES,
        .workers = workers,
        .backend = "cpu",
    };
    if (!e)
        e = oct_strips_create(&strips, &setup, err);
    if (!e)
        e = oct_strips_set_reference(strips, &b->reference, err);
    const uint64_t until = oct_clock_ns() + (uint64_t)(b->seconds * 1e9);
    for (unsigned i = 0; !e && (i < 3 || oct_clock_ns() < until); i++) {
        const uint64_t begin = oct_clock_ns();
        e = oct_strips_find(strips, b->frames, N_FRAMES, found, err);
        best = fmax(best, N_FRAMES / ((double)(oct_clock_ns() - begin) * 1e-9));
        if (!e && i == 0)
            e = verify_strips(b, found, n_strips, err);
    }
    if (!e) {
        struct oct_bench_row *row =
            oct_bench_add(b->rows, "register", "30 frames a second", "frames/s", 1);
        snprintf(row->what, sizeof(row->what), "strips, 512 x 512, %u a frame, %u cores", n_strips,
                 n_cores);
        row->value = best;
        row->limit = 30;
    }
    oct_strips_destroy(strips);
    oct_workers_destroy(workers);
    free(found);
    return e;
}

enum oct_err oct_bench_register(const struct oct_config *config,
                                const struct oct_bench_options *options,
                                struct oct_bench_rows *rows, struct oct_error *err)
{
    struct bench b = {.seconds = options->seconds, .rows = rows};
    (void)config;
    enum oct_err e = make_frames(&b, err);
    if (!e)
        e = bench_rigid(&b, err);
    if (!e)
        e = bench_strips(&b, err);
    oct_picture_finish(&b.reference);
    for (unsigned i = 0; i < N_FRAMES; i++)
        oct_picture_finish(&b.frames[i]);
    return e;
}
