/* Cells in pictures of 640 x 480: scores of circles and sweeps of the field on one core by CPU
 * time, beside a stream of multiply-adds of the same instruction set; frames a second of about 48
 * cells, detected and linked, on all cores; detection beside scikit-image's of the same picture. */
#include "analysis/cells/cells.h"
#include "analysis/cells/find.h"
#include "analysis/cells/follow.h"
#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"
#include "test/bench/bench.h"
#include "test/rig/cell_film.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEIGHT = 480, WIDTH = 640, N_FRAMES = 20 };
#define R 10.0
#define MOST_FOUND 256u
#define SAMPLE_OPERATIONS 4 /* a gx + b gy, its sum and its square's: 4 multiply-adds */
#define PIXEL_OPERATIONS 23 /* of a sweep: 4 largest, 4 smallest, 15 others */
#define FIELD_ROWS 41
#define FIELD_COLUMNS 81
#define FIELD_ROUNDS 50u /* sweeps between two looks at the clock */

static const char *const simd_names[] = {"plain", "avx2", "avx512", NULL};

struct bench {
    struct oct_picture frames[N_FRAMES];
    double seconds;
    struct oct_bench_rows *rows;
};

/* Six lanes of eight, contrast 60 over a noise of 8, at most 3.8 px a frame. */
static enum oct_err make_film(struct bench *b, struct oct_error *err)
{
    const struct cell_film_setup setup = {.height = HEIGHT,
                                          .width = WIDTH,
                                          .dy = 1,
                                          .dx = 1,
                                          .n_frames = N_FRAMES,
                                          .radius = R,
                                          .cnr = 7.5,
                                          .slowest = 1,
                                          .fastest = 3.8,
                                          .lane = 75.7,
                                          .distance = 80,
                                          .softness = 0.8,
                                          .seed = 11};
    struct cell_film film;
    enum oct_err e = OCT_OK;
    cell_film_init(&film, &setup);
    for (unsigned t = 0; t < N_FRAMES && !e; t++) {
        e = oct_picture_init(&b->frames[t], HEIGHT, WIDTH, false, err);
        if (!e)
            cell_film_draw(&film, t, &b->frames[t]);
    }
    return e;
}

/* ---- scores of circles, one core ---- */

struct scoring {
    const struct oct_cells_scorer *scorer;
    struct oct_cells_gicov gicov;
    struct oct_cells_prepared prepared;
    struct oct_cells_part part;
};

static enum oct_err run_scoring(void *context, struct oct_error *err)
{
    struct scoring *s = context;
    (void)err;
    s->scorer->run(&s->gicov, s->prepared.slopes.gx, &s->part);
    return OCT_OK;
}

static enum oct_err time_scoring(struct bench *b, struct scoring *s, unsigned n_circles,
                                 struct oct_error *err)
{
    struct bench_turn turn = {.run = run_scoring, .context = s};
    const enum oct_err e = bench_turns(&turn, 1, OCT_BENCH_REPEATS, b->seconds, err);
    const struct oct_cells_part *part = &s->part;
    const double samples = (double)(part->x1 - part->x0) * (part->y1 - part->y0) * n_circles *
                           OCT_CELLS_SAMPLES / turn.thread_s;
    const double limits[2] = {
        bench_multiply_adds(simd_names[oct_simd_choose("auto")], b->seconds / 4) /
            SAMPLE_OPERATIONS,
        8e9};
    for (unsigned i = 0; i < 2 && !e; i++) {
        struct oct_bench_row *row =
            bench_add(b->rows, "cells", i == 0 ? "multiply-adds / 4" : "8 G samples a second",
                      "Gsample/s", samples * 1e-9, limits[i] * 1e-9, i == 0 ? 0 : 1);
        snprintf(row->what, sizeof(row->what), "GICOV, 640 x 480, %s, 1 core",
                 simd_names[oct_simd_choose("auto")]);
        if (i == 0)
            snprintf(row->note, sizeof(row->note), "%.2f ms of CPU time", turn.thread_s * 1e3);
    }
    return e;
}

static enum oct_err bench_scores(struct bench *b, struct oct_error *err)
{
    struct oct_cells_params params;
    struct scoring *s = calloc(1, sizeof(*s));
    float *score = malloc((size_t)HEIGHT * WIDTH * sizeof(float));
    uint8_t *best = malloc((size_t)HEIGHT * WIDTH);
    oct_cells_params_octd(&params, R);
    enum oct_err e =
        s && score && best && oct_cells_prepared_init(&s->prepared, &params, HEIGHT, WIDTH, NULL)
            ? OCT_OK
            : oct_fail(err, OCT_E_NO_MEMORY, "no memory");
    if (!e) {
        const struct oct_cells_slopes *g = &s->prepared.slopes;
        oct_cells_prepare(&s->prepared, &b->frames[0]);
        const uint32_t border = oct_cells_border(&params);
        s->scorer = oct_cells_scorer_select("auto");
        oct_cells_gicov_init(&s->gicov, &params, g->row, (size_t)(g->gy - g->gx));
        s->part = (struct oct_cells_part){.stride = WIDTH,
                                          .score = score,
                                          .best = best,
                                          .x0 = border,
                                          .y0 = border,
                                          .x1 = WIDTH - border,
                                          .y1 = HEIGHT - border,
                                          .v0 = s->prepared.v0};
        e = time_scoring(b, s, s->gicov.n, err);
    }
    if (s)
        oct_cells_prepared_finish(&s->prepared);
    free(s);
    free(score);
    free(best);
    return e;
}

/* ---- sweeps of the field, one core ---- */

struct sweeping {
    const struct oct_mgvf *mgvf;
    struct oct_mgvf_grid grid;
    struct oct_mgvf_flow flow;
    float *edge, *from, *to;
};

static enum oct_err run_sweeps(void *context, struct oct_error *err)
{
    const struct sweeping *s = context;
    (void)err;
    for (unsigned k = 0; k < FIELD_ROUNDS; k++)
        s->mgvf->sweep(k % 2 ? s->from : s->to, k % 2 ? s->to : s->from, s->edge, &s->grid,
                       &s->flow, k % 8 == 0);
    return OCT_OK;
}

static enum oct_err bench_field(struct bench *b, struct oct_error *err)
{
    struct sweeping s = {.mgvf = oct_mgvf_select("auto"),
                         .grid = {FIELD_ROWS, FIELD_COLUMNS, oct_mgvf_stride(FIELD_COLUMNS)}};
    const size_t n = oct_mgvf_plane_floats(FIELD_ROWS, FIELD_COLUMNS), at = oct_mgvf_first(&s.grid);
    struct bench_turn turn = {.run = run_sweeps, .context = &s};
    float *memory = oct_aligned_calloc(64, 3 * n, sizeof(float));
    if (!memory)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a field");
    s.edge = memory + at;
    s.from = memory + n + at;
    s.to = memory + 2 * n + at;
    for (unsigned i = 0; i < FIELD_ROWS * FIELD_COLUMNS; i++)
        s.edge[i / FIELD_COLUMNS * s.grid.stride + i % FIELD_COLUMNS] =
            (float)(i * 7919 % 1000) / 1000;
    oct_mgvf_set_border(s.edge, &s.grid);
    memcpy(memory + n, memory, n * sizeof(float));
    oct_mgvf_flow_init(&s.flow, 1, 0.5);
    const enum oct_err e = bench_turns(&turn, 1, OCT_BENCH_REPEATS, b->seconds, err);
    free(memory);
    struct oct_bench_row *row =
        bench_add(b->rows, "cells", "multiply-adds / 23", "Gpixel/s",
                  (double)FIELD_ROUNDS * FIELD_ROWS * FIELD_COLUMNS / turn.thread_s * 1e-9,
                  bench_multiply_adds(simd_names[oct_simd_choose("auto")], b->seconds / 4) /
                      PIXEL_OPERATIONS * 1e-9,
                  0);
    snprintf(row->what, sizeof(row->what), "MGVF, 81 x 41, %s, 1 core",
             simd_names[oct_simd_choose("auto")]);
    return e;
}

/* ---- films, all cores ---- */

struct playing {
    const struct bench *bench;
    struct oct_cells_film *film;
    unsigned next;
    double n_seen; /* cells, summed over frames */
};

/* To and fro, so that no cell jumps. */
static enum oct_err play(void *context, struct oct_error *err)
{
    struct playing *p = context;
    const struct oct_cells_found *found;
    enum oct_err e = OCT_OK;
    p->n_seen = 0;
    for (unsigned i = 0; i < 2 * N_FRAMES && !e; i++, p->next++) {
        const unsigned t = p->next % (2 * N_FRAMES);
        unsigned n = 0;
        e = oct_cells_film_push(p->film, &p->bench->frames[t < N_FRAMES ? t : 2 * N_FRAMES - 1 - t],
                                NULL, 0, &found, &n, err);
        p->n_seen += n;
    }
    return e;
}

static enum oct_err bench_film(struct bench *b, unsigned detect_every, double goal,
                               const char *limit_is, struct oct_error *err)
{
    const unsigned n_cores = oct_bench_n_cores();
    struct oct_workers *workers;
    struct playing p = {.bench = b};
    struct bench_turn turn = {.run = play, .context = &p};
    enum oct_err e = bench_workers(&workers, err);
    struct oct_cells_film_setup setup = {
        .height = HEIGHT, .width = WIDTH, .um = {NAN, NAN}, .backend = "cpu", .workers = workers};
    oct_cells_params_octd(&setup.params, R);
    setup.params.detect_every = detect_every;
    e = e ? e : oct_cells_film_create(&p.film, &setup, err);
    e = e ? e : play(&p, err); /* the first round begins the tracks */
    e = e ? e : bench_turns(&turn, 1, 2, b->seconds, err);
    oct_cells_film_destroy(p.film);
    oct_workers_destroy(workers);
    if (e)
        return e;
    struct oct_bench_row *row =
        bench_add(b->rows, "cells", limit_is, "frames/s", 2 * N_FRAMES / turn.wall_s, goal, 1);
    snprintf(row->what, sizeof(row->what), "%.0f cells, %s, %u core%s", p.n_seen / (2 * N_FRAMES),
             detect_every == 1 ? "found in each frame" : "found in every 10th", n_cores,
             bench_plural(n_cores));
    snprintf(row->note, sizeof(row->note), "linked%s; %.1f ms of CPU time a frame",
             detect_every == 1 ? "" : ", snakes between", turn.cpu_s * 1e3 / (2 * N_FRAMES));
    return e;
}

/* ---- beside scikit-image ---- */

struct looking {
    struct oct_cells_engine *engine;
    const struct oct_picture *picture;
    struct oct_cell cells[MOST_FOUND];
    unsigned n;
};

static enum oct_err look(void *context, struct oct_error *err)
{
    struct looking *l = context;
    return oct_cells_cpu_engine.look(l->engine, l->picture, l->cells, MOST_FOUND, &l->n, err);
}

static enum oct_err bench_one_picture(struct bench *b, struct oct_error *err)
{
    static const char script[] =
        "import sys,time,numpy as np\n"
        "from skimage.feature import blob_log\n"
        "a=np.fromfile(sys.argv[1],np.float32).reshape(480,640)/255;t=[]\n"
        "for i in range(3):\n"
        "  s=time.perf_counter();n=len(blob_log(a,5,10,7,.05));t.append(time.perf_counter()-s)\n"
        "print(min(t)*1e3 if n else 0)";
    struct oct_cells_engine_setup setup = {.height = HEIGHT, .width = WIDTH, .gpus = ""};
    struct looking l = {.picture = &b->frames[0]};
    struct bench_turn turn = {.run = look, .context = &l};
    oct_cells_params_octd(&setup.params, R);
    enum oct_err e = oct_cells_cpu_engine.create(&l.engine, &setup, err);
    e = e ? e : bench_turns(&turn, 1, OCT_BENCH_REPEATS, b->seconds, err);
    oct_cells_cpu_engine.destroy(l.engine);
    if (e)
        return e;
    struct oct_bench_row *row =
        bench_add(b->rows, "cells", "scikit-image blob_log", "ms", turn.thread_s * 1e3,
                  bench_python(script, &b->frames[0], 1), 0);
    snprintf(row->what, sizeof(row->what), "%u cells found, 1 core", l.n);
    if (row->limit == 0)
        snprintf(row->note, sizeof(row->note), "not installed: python3-skimage");
    return OCT_OK;
}

enum oct_err bench_cells(const struct oct_config *config, const struct oct_bench_options *options,
                         struct oct_bench_rows *rows, struct oct_error *err)
{
    struct bench b = {.seconds = options->seconds, .rows = rows};
    enum oct_err e = make_film(&b, err);
    e = e ? e : bench_scores(&b, err);
    e = e ? e : bench_field(&b, err);
    e = e ? e : bench_film(&b, 1, 50, "50 frames a second", err);
    e = e ? e : bench_film(&b, 10, 70, "70 frames a second", err);
    e = e ? e : bench_one_picture(&b, err);
    e = e ? e : bench_live(config, "cells", options->seconds, rows, err);
    for (unsigned t = 0; t < N_FRAMES; t++)
        oct_picture_finish(&b.frames[t]);
    return e;
}
