/* Autocorrelation of pictures as in the paper, 750 x 1500 and shifts to 250, on the CPU: one core
 * beside the bare padded transforms of FFTW, and all cores, a picture each; with backend = cuda the
 * GPU too. */
#include "analysis/correlate/correlate.h"
#include "analysis/correlate/correlate_timing.h"
#include "analysis/correlate/fft2.h"
#include "kernels/device/fftw_planner.h"
#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"
#include "tools/bench/part.h"
#include "tools/bench/scene.h"

#include <fftw3.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEIGHT = 1500, WIDTH = 750, SHIFT = 250, SIDE = 2 * SHIFT + 1, N_PICTURES = 4 };
#define N_SHIFTS ((size_t)SIDE * SIDE)
#define MOST_RUNS 1000u
#define MOST_BATCH 32u

/* ---- what is correlated, and by definition ---- */

struct bench {
    struct oct_picture picture[N_PICTURES];
    double seconds;
    struct oct_bench_rows *rows;
    double one_core_ms;
    int bare_height, bare_width; /* the quickest; 0: not looked for yet */
};

/* Waves of a few dozen pixels under noise, 8 bit. */
static enum oct_err make_pictures(struct bench *b, struct oct_error *err)
{
    uint32_t random = 1;
    for (unsigned k = 0; k < N_PICTURES; k++) {
        enum oct_err e = oct_picture_init(&b->picture[k], HEIGHT, WIDTH, false, err);
        if (e)
            return e;
        for (unsigned y = 0; y < HEIGHT; y++)
            for (unsigned x = 0; x < WIDTH; x++) {
                random = random * 1664525u + 1013904223u;
                const double wave = sin(y / (4.0 + k)) * cos(x / 5.0);
                b->picture[k].pixels[(size_t)y * WIDTH + x] =
                    (float)floor(128 + 60 * wave + (random >> 24) / 4.0);
            }
    }
    return OCT_OK;
}

/* C of norm overlap at one shift, dy and dx >= 0, by the direct sum. */
static double direct(const struct oct_picture *p, double mean, double variance, int dy, int dx)
{
    double sum = 0;
    for (int y = 0; y + dy < HEIGHT; y++)
        for (int x = 0; x + dx < WIDTH; x++)
            sum += ((double)p->pixels[y * WIDTH + x] - mean) *
                   ((double)p->pixels[(y + dy) * WIDTH + x + dx] - mean);
    return sum / ((double)(HEIGHT - dy) * (WIDTH - dx)) / variance;
}

/* The largest error of C at some shifts. OCT_E_STATE: beyond the bound. */
static enum oct_err verify(const struct oct_picture *p, const float *c2d, double *worst,
                           struct oct_error *err)
{
    static const int shifts[][2] = {{0, 0}, {0, 1}, {1, 0}, {31, 17}, {250, 250}, {3, 249}};
    struct oct_picture_statistics s;
    oct_picture_look(p, &s);
    *worst = 0;
    for (unsigned i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
        const int dy = shifts[i][0], dx = shifts[i][1];
        const double c = direct(p, s.mean, s.variance, dy, dx);
        const float *centre = c2d + (ptrdiff_t)SHIFT * SIDE + SHIFT;
        const float mirrored = centre[-(ptrdiff_t)dy * SIDE - dx];
        const double error =
            fmax(fabs((double)centre[(ptrdiff_t)dy * SIDE + dx] - c), fabs((double)mirrored - c));
        *worst = fmax(*worst, error);
        if (!(error <= 1e-6 * HEIGHT * WIDTH / ((double)(HEIGHT - dy) * (WIDTH - dx))))
            return oct_fail(err, OCT_E_STATE, "C at (%d, %d) is %.3g off the direct sum", dy, dx,
                            error);
    }
    return OCT_OK;
}

/* ---- the limit: the bare padded pair of FFTW ---- */

struct bare {
    int height, width;
    float *in;
    fftwf_complex *out;
    fftwf_plan forward, inverse;
};

static void close_bare(struct bare *bare)
{
    oct_fftw_planner_lock();
    if (bare->forward)
        fftwf_destroy_plan(bare->forward);
    if (bare->inverse)
        fftwf_destroy_plan(bare->inverse);
    oct_fftw_planner_unlock();
    free(bare->in);
    free(bare->out);
    *bare = (struct bare){0};
}

static bool open_bare(struct bare *bare, int height, int width, unsigned how)
{
    *bare = (struct bare){.height = height, .width = width};
    bare->in = oct_aligned_calloc(64, (size_t)height * (size_t)width, sizeof(float));
    bare->out =
        oct_aligned_calloc(64, (size_t)height * ((size_t)width / 2 + 1), sizeof(fftwf_complex));
    if (bare->in && bare->out) {
        oct_fftw_planner_lock();
        bare->forward = fftwf_plan_dft_r2c_2d(height, width, bare->in, bare->out, how);
        bare->inverse = fftwf_plan_dft_c2r_2d(height, width, bare->out, bare->in, how);
        oct_fftw_planner_unlock();
    }
    if (bare->forward && bare->inverse)
        return true;
    close_bare(bare);
    return false;
}

static double time_bare(struct bare *bare)
{
    memset(bare->in, 0, (size_t)bare->height * (size_t)bare->width * sizeof(float));
    const uint64_t begin = oct_clock_ns();
    fftwf_execute(bare->forward);
    fftwf_execute(bare->inverse);
    return (double)(oct_clock_ns() - begin) * 1e-6;
}

static double quick_look(struct bare *bare)
{
    double best = INFINITY;
    for (unsigned i = 0; i < OCT_BENCH_REPEATS; i++)
        best = fmin(best, time_bare(bare));
    return best;
}

/* The quickest of all sizes not below picture and shifts, by estimated plans. */
static void find_bare_size(struct bench *b)
{
    double best_ms = INFINITY;
    struct bare bare;
    for (uint32_t h = HEIGHT + SHIFT; h <= 1920; h = oct_fft2_next_size(h + 1))
        for (uint32_t w = WIDTH + SHIFT; w <= 1080; w = oct_fft2_next_size(w + 1)) {
            if (w % 2 || !open_bare(&bare, (int)h, (int)w, FFTW_ESTIMATE))
                continue;
            const double ms = quick_look(&bare);
            if (ms < best_ms) {
                best_ms = ms;
                b->bare_height = (int)h;
                b->bare_width = (int)w;
            }
            close_bare(&bare);
        }
}

/* At that size or the size that the engine takes, whichever is quicker by the plans asked for. */
static bool open_best_bare(struct bench *b, struct bare *bare, unsigned how)
{
    struct bare other;
    if (b->bare_height == 0)
        find_bare_size(b);
    if (b->bare_height == 0 || !open_bare(&other, (int)oct_fft2_size(HEIGHT + SHIFT),
                                          (int)oct_fft2_size(WIDTH + SHIFT), how))
        return false;
    if (!open_bare(bare, b->bare_height, b->bare_width, how) ||
        quick_look(&other) < quick_look(bare)) {
        close_bare(bare);
        *bare = other;
    } else {
        close_bare(&other);
    }
    return true;
}

/* ---- one core ---- */

static struct oct_correlator_setup setup_of(bool measure)
{
    return (struct oct_correlator_setup){.height = HEIGHT,
                                         .width = WIDTH,
                                         .g_height = HEIGHT,
                                         .g_width = WIDTH,
                                         .max_dy = SHIFT,
                                         .max_dx = SHIFT,
                                         .norm = OCT_CORRELATION_OVERLAP,
                                         .measure = measure,
                                         .n_batch = 1};
}

/* Runs both in turns, so that what disturbs one disturbs the other. */
static void take_turns(struct bench *b, struct oct_correlator *c, struct bare *bare, float *c2d,
                       struct oct_bench_row *row)
{
    static double ours[MOST_RUNS], theirs[MOST_RUNS];
    const uint64_t until = oct_clock_ns() + (uint64_t)(b->seconds * 1e9);
    unsigned n = 0, which;
    row->value = row->limit = INFINITY;
    while (n < MOST_RUNS && (n < OCT_BENCH_REPEATS || oct_clock_ns() < until)) {
        theirs[n] = time_bare(bare);
        const uint64_t begin = oct_clock_ns();
        oct_correlator_cpu.run(c, &b->picture[n % N_PICTURES], 1, c2d, &which, NULL);
        ours[n] = (double)(oct_clock_ns() - begin) * 1e-6;
        row->value = fmin(row->value, ours[n]);
        row->limit = fmin(row->limit, theirs[n]);
        n++;
    }
    const double ours_ms = oct_bench_median(ours, n), theirs_ms = oct_bench_median(theirs, n);
    snprintf(row->note, sizeof(row->note), "medians %.2f and %.2f ms, ratio %.2f", ours_ms,
             theirs_ms, ours_ms / theirs_ms);
}

static enum oct_err one_core(struct bench *b, bool measure, struct oct_error *err)
{
    const struct oct_correlator_setup setup = setup_of(measure);
    struct oct_correlator *c = NULL;
    struct bare bare = {0};
    double worst;
    unsigned which;
    float *c2d = oct_aligned_alloc(64, N_SHIFTS, sizeof(float));
    enum oct_err e = oct_correlator_cpu.create(&c, &setup, err);
    if (e)
        goto done;
    if (!c2d || !open_best_bare(b, &bare, measure ? FFTW_MEASURE : FFTW_ESTIMATE)) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the bare transforms");
        goto done;
    }
    e = oct_correlator_cpu.run(c, &b->picture[0], 1, c2d, &which, err);
    if (!e)
        e = verify(&b->picture[0], c2d, &worst, err);
    if (e)
        goto done;
    char more[40];
    struct oct_bench_row *row =
        oct_bench_add(b->rows, "correlate", "bare FFTW r2c + c2r", "ms", 1.0);
    row->less_is_better = true;
    snprintf(row->what, sizeof(row->what), "750 x 1500, R 250, 1 core, %s",
             measure ? "measured" : "estimated");
    take_turns(b, c, &bare, c2d, row);
    snprintf(more, sizeof(more), "; %d x %d; error %.1g", bare.width, bare.height, worst);
    strncat(row->note, more, sizeof(row->note) - strlen(row->note) - 1);
    b->one_core_ms = row->value;
done:
    oct_correlator_cpu.destroy(c);
    close_bare(&bare);
    free(c2d);
    return e;
}

/* ---- all cores ---- */

struct crew {
    struct bench *bench;
    unsigned n;
    struct oct_correlator **correlator; /* [n] */
    float **c2d;                        /* [n] */
};

static void correlate_piece(void *context, unsigned piece, unsigned worker)
{
    struct crew *crew = context;
    unsigned which;
    oct_correlator_cpu.run(crew->correlator[worker], &crew->bench->picture[piece % N_PICTURES], 1,
                           crew->c2d[worker], &which, NULL);
}

static enum oct_err open_crew(struct crew *crew, struct oct_error *err)
{
    const struct oct_correlator_setup setup = setup_of(true);
    crew->correlator = calloc(crew->n, sizeof(struct oct_correlator *));
    crew->c2d = calloc(crew->n, sizeof(float *));
    enum oct_err e = OCT_OK;
    if (!crew->correlator || !crew->c2d)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u cores", crew->n);
    for (unsigned i = 0; i < crew->n && !e; i++) {
        crew->c2d[i] = oct_aligned_calloc(64, N_SHIFTS, sizeof(float));
        e = oct_correlator_cpu.create(&crew->correlator[i], &setup, err);
        if (!e && !crew->c2d[i])
            e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u cores", crew->n);
    }
    return e;
}

static void close_crew(struct crew *crew)
{
    for (unsigned i = 0; i < crew->n; i++) {
        if (crew->correlator)
            oct_correlator_cpu.destroy(crew->correlator[i]);
        if (crew->c2d)
            free(crew->c2d[i]);
    }
    free(crew->correlator);
    free(crew->c2d);
}

/* Sequences until the time is up; the best of them, in pictures a second. */
static double best_rate(struct crew *crew, struct oct_workers *workers, double seconds)
{
    const unsigned n_pictures = 8 * crew->n;
    const uint64_t until = oct_clock_ns() + (uint64_t)(seconds * 1e9);
    double best = 0;
    for (unsigned i = 0; i < OCT_BENCH_REPEATS || oct_clock_ns() < until; i++) {
        const uint64_t begin = oct_clock_ns();
        oct_workers_run(workers, n_pictures, correlate_piece, crew);
        best = fmax(best, n_pictures / ((double)(oct_clock_ns() - begin) * 1e-9));
    }
    return best;
}

/* The caller takes pieces too: a thread less than cores. */
static enum oct_err all_cores(struct bench *b, struct oct_error *err)
{
    struct crew crew = {.bench = b, .n = oct_bench_n_cores()};
    struct oct_workers *workers = NULL;
    enum oct_err e = crew.n > 1 ? oct_workers_create(&workers, crew.n - 1, err) : OCT_OK;
    if (!e)
        e = open_crew(&crew, err);
    if (!e) {
        struct oct_bench_row *row =
            oct_bench_add(b->rows, "correlate", "one core, times the cores", "/s", 0.9);
        snprintf(row->what, sizeof(row->what), "a sequence, %u cores", crew.n);
        row->value = best_rate(&crew, workers, b->seconds);
        row->limit = crew.n * 1e3 / b->one_core_ms;
        snprintf(row->note, sizeof(row->note), "%.2f ms a picture", 1e3 / row->value);
    }
    close_crew(&crew);
    oct_workers_destroy(workers);
    return e;
}

/* ---- the GPU ---- */

/* Batches until the time is up; the best of them, in ms a picture. */
static double best_batch_ms(struct bench *b, const struct oct_correlator_ops *ops,
                            struct oct_correlator *c, const struct oct_picture *batch, unsigned n,
                            float *c2d, enum oct_err *e, struct oct_error *err)
{
    const uint64_t until = oct_clock_ns() + (uint64_t)(b->seconds * 1e9);
    double best = INFINITY;
    unsigned which;
    for (unsigned i = 0; !*e && (i < OCT_BENCH_REPEATS || oct_clock_ns() < until); i++) {
        const uint64_t begin = oct_clock_ns();
        *e = ops->run(c, batch, n, c2d, &which, err);
        best = fmin(best, (double)(oct_clock_ns() - begin) * 1e-6 / n);
    }
    return best;
}

/* With the copies to the device and back, n pictures at a time. */
static enum oct_err on_gpu(struct bench *b, const struct oct_config *config, unsigned n,
                           struct oct_error *err)
{
    struct oct_correlator_setup setup = setup_of(true);
    const struct oct_correlator_ops *ops = NULL;
    struct oct_correlator *c = NULL;
    struct oct_picture batch[MOST_BATCH];
    char why[200];
    double worst;
    float *c2d = oct_aligned_calloc(64, n * N_SHIFTS, sizeof(float));
    if (!c2d)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u pictures", n);
    setup.n_batch = n;
    setup.gpus = config->pipeline.gpus;
    for (unsigned i = 0; i < n; i++)
        batch[i] = b->picture[i % N_PICTURES];
    enum oct_err e = oct_correlator_select(&ops, &c, "cuda", &setup, why, sizeof(why), err);
    if (e)
        goto done;
    const double ms = best_batch_ms(b, ops, c, batch, n, c2d, &e, err);
    for (unsigned i = 0; i < N_PICTURES && i < n && !e; i++)
        e = verify(&batch[i], c2d + i * N_SHIFTS, &worst, err);
    ops->destroy(c);
    if (e)
        goto done;
    struct oct_bench_row *row = oct_bench_add(b->rows, "correlate", "one core of the CPU", "ms", 0);
    row->less_is_better = true;
    row->value = ms;
    row->limit = b->one_core_ms;
    snprintf(row->what, sizeof(row->what), "750 x 1500, R 250, cuda, %u at a time", n);
done:
    free(c2d);
    return e;
}

/* Without copies, beside the bare transforms of cuFFT at their best padded size. */
static enum oct_err on_device(struct bench *b, const struct oct_config *config, unsigned n,
                              double goal, struct oct_error *err)
{
    struct oct_correlator_setup setup = setup_of(true);
    const char *gpus = config->pipeline.gpus;
    struct oct_correlate_times t;
    setup.n_batch = n;
    enum oct_err e =
        oct_correlate_time_cuda(&setup, *gpus ? (unsigned)strtoul(gpus, NULL, 10) : 0, &t, err);
    if (e)
        return e;
    struct oct_bench_row *row = oct_bench_add(b->rows, "correlate", "bare cuFFT", "us", goal);
    row->less_is_better = true;
    row->value = t.kernels_us;
    row->limit = t.pair_us;
    snprintf(row->what, sizeof(row->what), "on the device, %u at a time", n);
    snprintf(row->note, sizeof(row->note),
             "bare at %u x %u; own %u x %u, bare %.1f us; with copies %.1f us", t.best_height,
             t.best_width, t.height, t.width, t.own_pair_us, t.copies_us);
    return OCT_OK;
}

enum oct_err oct_bench_correlate(const struct oct_config *config,
                                 const struct oct_bench_options *options,
                                 struct oct_bench_rows *rows, struct oct_error *err)
{
    struct bench b = {.seconds = options->seconds, .rows = rows};
    enum oct_err e = make_pictures(&b, err);
    if (!e)
        e = one_core(&b, false, err);
    if (!e)
        e = one_core(&b, true, err);
    if (!e)
        e = all_cores(&b, err);
    const bool cuda = strcmp(oct_config_backend_names[config->pipeline.backend], "cuda") == 0;
    if (!e && cuda)
        e = on_gpu(&b, config, 1, err);
    if (!e && cuda)
        e = on_gpu(&b, config, MOST_BATCH, err);
    if (!e && cuda)
        e = on_device(&b, config, 1, 1.5, err);
    if (!e && cuda)
        e = on_device(&b, config, MOST_BATCH, 1.3, err);
    for (unsigned k = 0; k < N_PICTURES; k++)
        oct_picture_finish(&b.picture[k]);
    return e;
}
