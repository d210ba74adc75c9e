/* Autocorrelation of pictures as in the paper, 750 x 1500 and shifts to 250: one core beside the
 * bare padded transforms of FFTW, and all cores, a picture each. */
#include "analysis/correlate/correlate.h"
#include "analysis/correlate/fft2.h"
#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"
#include "test/bench/bench.h"
#include "test/rig/waves.h"

#include <fftw3.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEIGHT = 1500, WIDTH = 750, SHIFT = 250, SIDE = 2 * SHIFT + 1, N_PICTURES = 4 };

struct bench {
    struct oct_picture picture[N_PICTURES];
    double seconds;
    struct oct_bench_rows *rows;
    double one_core_s;
    uint32_t bare_height, bare_width; /* the quickest; 0: not looked for yet */
};

/* ---- the limit ---- */

static double quick_look(struct bench_bare *bare)
{
    struct bench_turn turn = {.run = bench_bare_run, .context = bare};
    bench_turns(&turn, 1, 2, 0, NULL);
    return turn.thread_s;
}

/* The quickest of all sizes not below picture and shifts, by estimated plans. */
static void find_bare_size(struct bench *b)
{
    double best_s = INFINITY;
    struct bench_bare bare;
    for (uint32_t h = HEIGHT + SHIFT; h <= 1920; h = oct_fft2_next_size(h + 1))
        for (uint32_t w = WIDTH + SHIFT; w <= 1080; w = oct_fft2_next_size(w + 1)) {
            if (w % 2 || !bench_bare_open(&bare, h, w, FFTW_ESTIMATE))
                continue;
            const double s = quick_look(&bare);
            if (s < best_s) {
                best_s = s;
                b->bare_height = h;
                b->bare_width = w;
            }
            bench_bare_close(&bare);
        }
}

/* At that size or the size that the engine takes, whichever is quicker by the plans asked for; in a
 * short run at the latter. */
static bool open_best_bare(struct bench *b, struct bench_bare *bare, unsigned how)
{
    struct bench_bare other;
    if (b->bare_height == 0 && b->seconds >= 1)
        find_bare_size(b);
    if (!bench_bare_open(bare, oct_fft2_size(HEIGHT + SHIFT), oct_fft2_size(WIDTH + SHIFT), how))
        return false;
    if (b->bare_height == 0 || !bench_bare_open(&other, b->bare_height, b->bare_width, how))
        return true;
    if (quick_look(&other) < quick_look(bare)) {
        bench_bare_close(bare);
        *bare = other;
    } else {
        bench_bare_close(&other);
    }
    return true;
}

/* ---- engines, one a core ---- */

struct crew {
    const struct bench *bench;
    struct oct_workers *workers;
    unsigned n, n_pictures;
    struct {
        struct oct_correlator *correlator;
        float *c2d;
    } * worker; /* [n] */
};

static enum oct_err open_crew(struct crew *crew, struct oct_error *err)
{
    const struct oct_correlator_setup setup = {.height = HEIGHT,
                                               .width = WIDTH,
                                               .g_height = HEIGHT,
                                               .g_width = WIDTH,
                                               .max_dy = SHIFT,
                                               .max_dx = SHIFT,
                                               .norm = OCT_CORRELATION_OVERLAP,
                                               .n_batch = 1};
    crew->worker = calloc(crew->n, sizeof(*crew->worker));
    if (!crew->worker)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u cores", crew->n);
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < crew->n && !e; i++) {
        crew->worker[i].c2d = oct_aligned_calloc(64, (size_t)SIDE * SIDE, sizeof(float));
        e = oct_correlator_cpu.create(&crew->worker[i].correlator, &setup, err);
        if (!e && !crew->worker[i].c2d)
            e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u cores", crew->n);
    }
    return e;
}

static void close_crew(struct crew *crew)
{
    for (unsigned i = 0; i < crew->n && crew->worker; i++) {
        oct_correlator_cpu.destroy(crew->worker[i].correlator);
        free(crew->worker[i].c2d);
    }
    free(crew->worker);
}

static void correlate_piece(void *context, unsigned piece, unsigned worker)
{
    struct crew *crew = context;
    unsigned which;
    oct_correlator_cpu.run(crew->worker[worker].correlator,
                           &crew->bench->picture[piece % N_PICTURES], 1, crew->worker[worker].c2d,
                           &which, NULL);
}

static enum oct_err correlate(void *context, struct oct_error *err)
{
    struct crew *crew = context;
    (void)err;
    oct_workers_run(crew->workers, crew->n_pictures, correlate_piece, crew);
    return OCT_OK;
}

static enum oct_err one_core(struct bench *b, struct oct_error *err)
{
    struct crew crew = {.bench = b, .n = 1, .n_pictures = 1};
    struct bench_bare bare = {0};
    struct bench_turn turns[2] = {{.run = bench_bare_run, .context = &bare},
                                  {.run = correlate, .context = &crew}};
    enum oct_err e = open_crew(&crew, err);
    if (!e && !open_best_bare(b, &bare, FFTW_ESTIMATE))
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the bare transforms");
    e = e ? e : bench_turns(turns, 2, OCT_BENCH_REPEATS, b->seconds, err);
    if (!e) {
        struct oct_bench_row *row = bench_add(b->rows, "correlate", "bare FFTW r2c + c2r", "ms",
                                              turns[1].thread_s * 1e3, turns[0].thread_s * 1e3, 1);
        snprintf(row->what, sizeof(row->what), "750 x 1500, R 250, 1 core, estimated plans");
        snprintf(row->note, sizeof(row->note), "bare at %d x %d", bare.width, bare.height);
        b->one_core_s = turns[1].thread_s;
    }
    close_crew(&crew);
    bench_bare_close(&bare);
    return e;
}

static enum oct_err all_cores(struct bench *b, struct oct_error *err)
{
    struct crew crew = {.bench = b, .n = oct_bench_n_cores()};
    struct bench_turn turn = {.run = correlate, .context = &crew};
    crew.n_pictures = 8 * crew.n;
    enum oct_err e = bench_workers(&crew.workers, err);
    e = e ? e : open_crew(&crew, err);
    e = e ? e : bench_turns(&turn, 1, OCT_BENCH_REPEATS, b->seconds, err);
    if (!e) {
        struct oct_bench_row *row =
            bench_add(b->rows, "correlate", "one core, times the cores", "/s",
                      crew.n_pictures / turn.wall_s, crew.n / b->one_core_s, 0.9);
        snprintf(row->what, sizeof(row->what), "a sequence, %u cores", crew.n);
        snprintf(row->note, sizeof(row->note), "%.2f ms a picture", 1e3 / row->value);
    }
    close_crew(&crew);
    oct_workers_destroy(crew.workers);
    return e;
}

enum oct_err bench_correlate(const struct oct_config *config,
                             const struct oct_bench_options *options, struct oct_bench_rows *rows,
                             struct oct_error *err)
{
    struct bench b = {.seconds = options->seconds, .rows = rows};
    struct oct_waves waves;
    uint64_t random = 1;
    (void)config;
    for (unsigned k = 0; k < N_PICTURES; k++) {
        oct_waves_init(&waves, 1 + k, 20, 60);
        b.picture[k] = oct_waves_picture(&waves, HEIGHT, WIDTH, 0, 0, 0.5, &random);
    }
    enum oct_err e = one_core(&b, err);
    e = e ? e : all_cores(&b, err);
    for (unsigned k = 0; k < N_PICTURES; k++)
        oct_picture_finish(&b.picture[k]);
    return e;
}
