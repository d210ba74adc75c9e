/* Cells in pictures of 640 x 480: scores of circles and sweeps of the field on one core by CPU
 * time, beside a stream of multiply-adds of the same instruction set; frames a second of 48 cells,
 * detected and linked, on all cores; detection beside scikit-image's of the same picture; with
 * backend = cuda the GPU too. Then live cells beside the pictures of a real octd. */
#include "analysis/cells/cells_timing.h"
#include "analysis/cells/gicov.h"
#include "analysis/cells/mgvf.h"
#include "analysis/cells/prepare.h"
#include "analysis/cells/tracker.h"
#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"
#include "tools/bench/cells_beside.h"
#include "tools/bench/cells_scene.h"
#include "tools/bench/multiply_add.h"
#include "tools/bench/part.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    HEIGHT = OCT_BENCH_CELLS_HEIGHT,
    WIDTH = OCT_BENCH_CELLS_WIDTH,
    N_FRAMES = OCT_BENCH_CELLS_FRAMES,
    N_CELLS = OCT_BENCH_CELLS
};
#define R OCT_BENCH_CELLS_RADIUS
#define MOST_FOUND 256u
#define SAMPLE_OPERATIONS 4 /* a gx + b gy, its sum and its square's: 4 multiply-adds */
#define PIXEL_OPERATIONS 23 /* of a sweep: 4 largest, 4 smallest, 15 others */
#define FIELD_ROWS 41
#define FIELD_COLUMNS 81
#define FIELD_ROUNDS 50u /* sweeps between two looks at the clock */
#define MOST_ERROR_PX 0.5

struct bench {
    struct oct_bench_cells_film film;
    double seconds;
    struct oct_bench_rows *rows;
    double score_error, field_error;
};

static struct oct_bench_row *add(struct bench *b, const char *limit_is, const char *unit,
                                 double goal)
{
    return oct_bench_add(b->rows, "cells", limit_is, unit, goal);
}

/* ---- scores of circles, one core ---- */

/* CPU seconds of the scores of a whole picture, the best of some. */
static double time_scores(const struct oct_cells_scorer *scorer,
                          const struct oct_cells_gicov *gicov, const struct oct_cells_prepared *p,
                          const struct oct_cells_part *part, double seconds)
{
    double best = HUGE_VAL, sum = 0;
    for (unsigned i = 0; i < OCT_BENCH_REPEATS || sum < seconds; i++) {
        const double begin = oct_bench_cpu_s();
        scorer->run(gicov, &p->gradient, part);
        const double took = oct_bench_cpu_s() - begin;
        best = fmin(best, took);
        sum += took;
    }
    return best;
}

static void add_scores(struct bench *b, const char *simd, double samples, double took_s)
{
    const double adds = oct_bench_multiply_adds(simd, b->seconds / 4);
    struct oct_bench_row *row = add(b, "multiply-adds / 4", "Gsample/s", 0);
    snprintf(row->what, sizeof(row->what), "GICOV, 640 x 480, %s, 1 core", simd);
    snprintf(row->note, sizeof(row->note), "%.2f ms of CPU time; S within %.1g of the direct sum",
             took_s * 1e3, b->score_error);
    row->value = samples / took_s * 1e-9;
    row->limit = adds / SAMPLE_OPERATIONS * 1e-9;
    const double value = row->value;
    row = add(b, "8 G samples a second", "Gsample/s", 1);
    snprintf(row->what, sizeof(row->what), "GICOV, 640 x 480, %s, 1 core", simd);
    row->value = value;
    row->limit = 8;
}

static enum oct_err bench_scores(struct bench *b, struct oct_error *err)
{
    const struct oct_cells_scorer *scorer = oct_cells_scorer_select("auto");
    struct oct_cells_params params;
    struct oct_cells_preparation *preparation = NULL;
    struct oct_cells_circles circles;
    struct oct_cells_gicov *gicov = calloc(1, sizeof(*gicov));
    struct oct_cells_part part = {.stride = WIDTH,
                                  .score = malloc((size_t)HEIGHT * WIDTH * sizeof(float)),
                                  .best = malloc((size_t)HEIGHT * WIDTH)};
    oct_cells_params_octd(&params, R);
    enum oct_err e = oct_cells_preparation_create(&preparation, &params, HEIGHT, WIDTH, NULL, err);
    if (!e)
        e = oct_cells_prepare(preparation, &b->film.frames[0], err);
    if (!e && (!gicov || !part.score || !part.best))
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for scores");
    if (!e) {
        const struct oct_cells_prepared *p = oct_cells_prepared_of(preparation);
        oct_cells_circles_init(&circles, &params);
        oct_cells_gicov_init(gicov, &circles, &p->gradient);
        part.x0 = part.y0 = circles.border;
        part.x1 = WIDTH - circles.border;
        part.y1 = HEIGHT - circles.border;
        part.v0 = p->v0;
        const double samples =
            (double)(part.x1 - part.x0) * (part.y1 - part.y0) * circles.n * OCT_CELLS_SAMPLES;
        add_scores(b, scorer->name, samples, time_scores(scorer, gicov, p, &part, b->seconds));
    }
    oct_cells_preparation_destroy(preparation);
    free(gicov);
    free(part.score);
    free(part.best);
    return e;
}

/* ---- sweeps of the field, one core ---- */

static enum oct_err bench_field(struct bench *b, struct oct_error *err)
{
    const struct oct_mgvf *mgvf = oct_mgvf_select("auto");
    const struct oct_mgvf_grid grid = {FIELD_ROWS, FIELD_COLUMNS, oct_mgvf_stride(FIELD_COLUMNS)};
    const size_t n = oct_mgvf_plane_floats(FIELD_ROWS, FIELD_COLUMNS), at = oct_mgvf_first(&grid);
    struct oct_mgvf_flow flow;
    float *memory = oct_aligned_calloc(64, 3 * n, sizeof(float));
    double best = HUGE_VAL, sum = 0;
    if (!memory)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a field");
    float *edge = memory + at, *from = memory + n + at, *to = memory + 2 * n + at;
    for (unsigned i = 0; i < FIELD_ROWS * FIELD_COLUMNS; i++)
        edge[i / FIELD_COLUMNS * grid.stride + i % FIELD_COLUMNS] = (float)(i * 7919 % 1000) / 1000;
    oct_mgvf_set_border(edge, &grid);
    memcpy(memory + n, memory, n * sizeof(float));
    oct_mgvf_flow_init(&flow, 1, 0.5);
    for (unsigned i = 0; i < OCT_BENCH_REPEATS || sum < b->seconds; i++) {
        const double begin = oct_bench_cpu_s();
        for (unsigned k = 0; k < FIELD_ROUNDS; k++) {
            mgvf->sweep(k % 2 ? from : to, k % 2 ? to : from, edge, &grid, &flow, k % 8 == 0);
        }
        const double took = oct_bench_cpu_s() - begin;
        best = fmin(best, took);
        sum += took;
    }
    free(memory);
    struct oct_bench_row *row = add(b, "multiply-adds / 23", "Gpixel/s", 0);
    snprintf(row->what, sizeof(row->what), "MGVF, 81 x 41, %s, 1 core", mgvf->name);
    snprintf(row->note, sizeof(row->note), "a field within %.1g of its definition", b->field_error);
    row->value = (double)FIELD_ROUNDS * FIELD_ROWS * FIELD_COLUMNS / best * 1e-9;
    row->limit = oct_bench_multiply_adds(mgvf->name, b->seconds / 4) / PIXEL_OPERATIONS * 1e-9;
    return OCT_OK;
}

/* ---- films, all cores ---- */

/* Every cell is there, where it is. Adds the squares of the errors. */
static enum oct_err check_seen(const struct oct_cells_seen *seen, unsigned n, unsigned frame,
                               double *squares, struct oct_error *err)
{
    for (unsigned i = 0; i < N_CELLS; i++) {
        double nearest = HUGE_VAL, x, y;
        oct_bench_cells_place(i, frame, &x, &y);
        for (unsigned k = 0; k < n; k++)
            nearest = fmin(nearest, hypot(seen[k].x - x, seen[k].y - y));
        *squares += nearest * nearest;
        if (!(nearest <= 4 * MOST_ERROR_PX))
            return oct_fail(err, OCT_E_STATE, "cell %u of frame %u is found %.2f px beside it", i,
                            frame, nearest);
    }
    return n == N_CELLS ? OCT_OK
                        : oct_fail(err, OCT_E_STATE, "frame %u: %u cells of %d", frame, n, N_CELLS);
}

struct run {
    struct oct_cells_tracker *tracker;
    double rmse, frames_per_s;
    double cpu_ms; /* of all threads, a frame */
};

/* Two rounds of the film that are checked, then the best of some that are timed. */
static enum oct_err run_film(struct bench *b, struct run *r, struct oct_error *err)
{
    const struct oct_cells_seen *seen;
    unsigned n;
    double squares = 0;
    enum oct_err e = OCT_OK;
    for (unsigned t = 0; t < 2 * N_FRAMES && !e; t++) {
        e = oct_cells_tracker_push(r->tracker, &b->film.frames[t % N_FRAMES], 0, &seen, &n, err);
        if (!e)
            e = check_seen(seen, n, t, &squares, err);
    }
    r->rmse = sqrt(squares / (2 * N_FRAMES * N_CELLS));
    if (!e && !(r->rmse <= MOST_ERROR_PX))
        e = oct_fail(err, OCT_E_STATE, "the rms error is %.2f px", r->rmse);
    const uint64_t until = oct_clock_ns() + (uint64_t)(b->seconds * 1e9);
    for (unsigned i = 0; !e && (i < 2 || oct_clock_ns() < until); i++) {
        const uint64_t begin = oct_clock_ns();
        const double cpu_s = oct_bench_process_cpu_s();
        for (unsigned t = 0; t < N_FRAMES && !e; t++)
            e = oct_cells_tracker_push(r->tracker, &b->film.frames[t], 0, &seen, &n, err);
        r->cpu_ms = fmin(r->cpu_ms, (oct_bench_process_cpu_s() - cpu_s) * 1e3 / N_FRAMES);
        r->frames_per_s =
            fmax(r->frames_per_s, N_FRAMES / ((double)(oct_clock_ns() - begin) * 1e-9));
    }
    return e;
}

/* By this engine; detect_every as of struct oct_cells_params. */
static enum oct_err film_rate(struct bench *b, const struct oct_cells_engine_ops *ops,
                              struct oct_cells_engine_setup *setup, unsigned detect_every,
                              struct run *r, struct oct_error *err)
{
    struct oct_cells_tracker_setup tracker = {.height = HEIGHT, .width = WIDTH, .ops = ops};
    oct_cells_params_octd(&setup->params, R);
    setup->params.detect_every = detect_every;
    tracker.params = setup->params;
    *r = (struct run){.cpu_ms = HUGE_VAL};
    enum oct_err e = ops->create(&tracker.engine, setup, err);
    if (!e)
        e = oct_cells_tracker_create(&r->tracker, &tracker, err);
    if (!e)
        e = run_film(b, r, err);
    oct_cells_tracker_destroy(r->tracker);
    ops->destroy(tracker.engine);
    return e;
}

static enum oct_err bench_film(struct bench *b, unsigned detect_every, double goal,
                               const char *limit_is, double *frames_per_s, struct oct_error *err)
{
    const unsigned n_cores = oct_bench_n_cores();
    struct oct_workers *workers = NULL;
    struct run run;
    enum oct_err e = n_cores > 1 ? oct_workers_create(&workers, n_cores - 1, err) : OCT_OK;
    struct oct_cells_engine_setup setup = {
        .height = HEIGHT, .width = WIDTH, .workers = workers, .gpus = ""};
    if (!e)
        e = film_rate(b, &oct_cells_cpu_engine, &setup, detect_every, &run, err);
    oct_workers_destroy(workers);
    if (e)
        return e;
    struct oct_bench_row *row = add(b, limit_is, "frames/s", 1);
    snprintf(row->what, sizeof(row->what), "%d cells, %s, %u core%s", N_CELLS,
             detect_every == 1 ? "found in each frame" : "found in every 10th", n_cores,
             n_cores == 1 ? "" : "s");
    snprintf(row->note, sizeof(row->note),
             "linked%s; %.1f ms of CPU time a frame; rms error %.2f px",
             detect_every == 1 ? "" : ", snakes between", run.cpu_ms, run.rmse);
    row->value = *frames_per_s = run.frames_per_s;
    row->limit = goal;
    return OCT_OK;
}

/* ---- beside scikit-image ---- */

/* Best time of its blob_log, ms; 0: it is not installed. The picture goes through a file. */
static double scikit_image(const struct bench *b)
{
    static const char script[] =
        "import sys,time,numpy as np\n"
        "from skimage.feature import blob_log\n"
        "a=np.fromfile(sys.argv[1],np.float32).reshape(480,640)/255;t=[]\n"
        "for i in range(3):\n"
        "  s=time.perf_counter();n=len(blob_log(a,5,10,7,.05));t.append(time.perf_counter()-s)\n"
        "print(min(t)*1e3 if n else 0)";
    char path[] = "/tmp/octctl-bench-XXXXXX", command[1024];
    const size_t bytes = (size_t)HEIGHT * WIDTH * sizeof(float);
    double ms = 0;
    int file = mkstemp(path);
    if (file < 0)
        return 0;
    if (write(file, b->film.frames[0].pixels, bytes) == (ssize_t)bytes) {
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

static enum oct_err bench_one_picture(struct bench *b, struct oct_error *err)
{
    struct oct_cells_engine_setup setup = {.height = HEIGHT, .width = WIDTH, .gpus = ""};
    struct oct_cells_engine *engine = NULL;
    struct oct_cell cells[MOST_FOUND];
    double best = HUGE_VAL;
    unsigned n;
    oct_cells_params_octd(&setup.params, R);
    enum oct_err e = oct_cells_cpu_engine.create(&engine, &setup, err);
    const uint64_t until = oct_clock_ns() + (uint64_t)(b->seconds * 1e9);
    for (unsigned i = 0; !e && (i < OCT_BENCH_REPEATS || oct_clock_ns() < until); i++) {
        const uint64_t begin = oct_clock_ns();
        e = oct_cells_cpu_engine.look(engine, &b->film.frames[0], cells, MOST_FOUND, &n, err);
        best = fmin(best, (double)(oct_clock_ns() - begin) * 1e-6);
    }
    oct_cells_cpu_engine.destroy(engine);
    if (e)
        return e;
    struct oct_bench_row *row = add(b, "scikit-image blob_log", "ms", 0);
    snprintf(row->what, sizeof(row->what), "%u cells found, 1 core", n);
    row->value = best;
    row->limit = scikit_image(b);
    row->less_is_better = true;
    if (row->limit == 0)
        snprintf(row->note, sizeof(row->note), "not installed: python3-skimage");
    return OCT_OK;
}

/* ---- the GPU ---- */

static struct oct_bench_row *add_device_ms(struct bench *b, const char *limit_is, double ms,
                                           double limit_ms)
{
    struct oct_bench_row *row = add(b, limit_is, "ms", 1);
    row->value = ms;
    row->limit = limit_ms;
    row->less_is_better = true;
    return row;
}

/* By the device's own clock, without the threads of the engine. */
static enum oct_err on_device(struct bench *b, const char *gpus, struct oct_error *err)
{
    struct oct_cells_engine_setup setup = {.height = HEIGHT, .width = WIDTH};
    struct oct_cell_start starts[N_CELLS] = {{0}};
    struct oct_cells_device_times t;
    oct_cells_params_octd(&setup.params, R);
    for (unsigned i = 0; i < N_CELLS; i++) { /* as predicted from the picture before */
        oct_bench_cells_place(i, N_FRAMES - 1, &starts[i].x, &starts[i].y);
        starts[i].vx = 1;
        for (unsigned k = 0; k < OCT_CELLS_SNAXELS; k++)
            starts[i].radii[k] = R;
    }
    enum oct_err e = oct_cells_time_cuda(&setup, *gpus ? (unsigned)strtoul(gpus, NULL, 10) : 0,
                                         &b->film.frames[0], starts, N_CELLS, &t, err);
    if (e)
        return e;
    struct oct_bench_row *row = add_device_ms(b, "0.13 ms", t.scores_us * 1e-3, 0.13);
    snprintf(row->what, sizeof(row->what), "GICOV, 640 x 480, on the device");
    row = add_device_ms(b, "1 ms", t.frame_us * 1e-3, 1);
    snprintf(row->what, sizeof(row->what), "a frame, %d snakes and copies too", N_CELLS);
    snprintf(row->note, sizeof(row->note), "prepare %.0f, scores %.0f, peaks %.0f, snakes %.0f us",
             t.prepare_us, t.scores_us, t.peaks_us, t.snakes_us);
    return OCT_OK;
}

/* The film by the engine of a GPU, every cell checked, beside all cores. */
static enum oct_err film_on_gpu(struct bench *b, const char *gpus, double cores_per_s,
                                struct oct_error *err)
{
    struct oct_cells_engine_setup setup = {.height = HEIGHT, .width = WIDTH, .gpus = gpus};
    struct run run;
    const enum oct_err e = film_rate(b, &oct_cells_cuda_engine, &setup, 1, &run, err);
    if (e)
        return e;
    struct oct_bench_row *row = add(b, "all cores", "frames/s", 0);
    snprintf(row->what, sizeof(row->what), "%d cells, found in each frame, cuda", N_CELLS);
    snprintf(row->note, sizeof(row->note), "linked; rms error %.2f px", run.rmse);
    row->value = run.frames_per_s;
    row->limit = cores_per_s;
    return OCT_OK;
}

/* ---- putting it together ---- */

enum oct_err oct_bench_cells(const struct oct_config *config,
                             const struct oct_bench_options *options, struct oct_bench_rows *rows,
                             struct oct_error *err)
{
    const bool cuda = strcmp(oct_config_backend_names[config->pipeline.backend], "cuda") == 0;
    struct bench *b = calloc(1, sizeof(*b));
    double each, every_10th;
    if (!b)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a film");
    b->seconds = options->seconds;
    b->rows = rows;
    enum oct_err e = oct_bench_cells_film_init(&b->film, err);
    if (!e)
        e = oct_bench_cells_verify(&b->film, &b->score_error, &b->field_error, err);
    if (!e)
        e = bench_scores(b, err);
    if (!e)
        e = bench_field(b, err);
    if (!e)
        e = bench_film(b, 1, 50, "50 frames a second", &each, err);
    if (!e)
        e = bench_film(b, 10, 70, "70 frames a second", &every_10th, err);
    if (!e)
        e = bench_one_picture(b, err);
    if (!e && cuda)
        e = on_device(b, config->pipeline.gpus, err);
    if (!e && cuda)
        e = film_on_gpu(b, config->pipeline.gpus, each, err);
    if (!e)
        e = oct_bench_cells_beside(config, b->seconds, rows, err);
    oct_bench_cells_film_finish(&b->film);
    free(b);
    return e;
}
