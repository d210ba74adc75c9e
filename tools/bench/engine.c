/* The engine of the configuration beside bare transforms by FFTW with as many threads, checked
 * before it is timed. */
#include "tools/bench/engine.h"
#include "config/apply.h"
#include "kernels/engines.h"
#include "kernels/recon/fft.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/thread.h"
#include "tools/bench/part.h"
#include "tools/bench/scene.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEATS OCT_BENCH_REPEATS
#define MOST_IN_FLIGHT 128u

struct row {
    uint32_t samples, lines, depth;
    unsigned threads;
    const char *range;
    double error;       /* grey levels off the double-precision sums */
    double lines_per_s; /* the engine */
    double fft_per_s;   /* the bare transforms of the chain, by FFTW, same threads */
    double latency_us;  /* one B-scan alone, submit to collect: median */
};

/* ---- the engine ---- */

struct runner {
    struct oct_bench_scene *scene;
    struct oct_image_frame out[MOST_IN_FLIGHT]; /* first the scene's own, then ours */
    unsigned n_out;
    const struct oct_engine_ops *ops;
    struct oct_engine *engine;
};

/* As many pictures as the engine keeps in flight: it may take more short B-scans than there are
 * different ones. */
static bool make_pictures(struct runner *r)
{
    unsigned depth = r->ops->depth(r->engine);
    depth = depth < MOST_IN_FLIGHT ? depth : MOST_IN_FLIGHT;
    memcpy(r->out, r->scene->out, sizeof(r->scene->out));
    for (r->n_out = OCT_BENCH_FRAMES; r->n_out < depth; r->n_out++) {
        r->out[r->n_out].pixels = malloc(oct_geometry_image_bytes(&r->scene->plan->geometry));
        if (!r->out[r->n_out].pixels)
            return false;
    }
    return true;
}

static void close_runner(struct runner *r)
{
    r->ops->destroy(r->engine);
    for (unsigned i = OCT_BENCH_FRAMES; i < r->n_out; i++)
        free(r->out[i].pixels);
}

static void submit_one(struct runner *r, uint64_t number, const struct oct_display *display)
{
    const struct oct_engine_job job = {&r->scene->in[number % OCT_BENCH_FRAMES],
                                       &r->out[number % r->n_out], *display};
    r->ops->submit(r->engine, &job, 1);
}

/* Seconds for n B-scans with the engine kept full. */
static double run_full(struct runner *r, uint64_t n)
{
    unsigned depth = r->ops->depth(r->engine);
    if (depth > r->n_out)
        depth = r->n_out;
    uint64_t begin = oct_clock_ns(), submitted = 0;
    for (uint64_t collected = 0; collected < n;) {
        struct oct_image_frame *done;
        for (; submitted < n && submitted - collected < depth; submitted++)
            submit_one(r, submitted, &r->scene->display);
        if (r->ops->collect(r->engine, 1000000, &done) == OCT_OK)
            collected++;
    }
    return (double)(oct_clock_ns() - begin) * 1e-9;
}

static double single_latency_us(struct runner *r)
{
    enum { N = 101 };
    double us[N];
    for (unsigned i = 0; i < N; i++) {
        struct oct_image_frame *done;
        uint64_t begin = oct_clock_ns();
        submit_one(r, i, &r->scene->display);
        while (r->ops->collect(r->engine, 1000000, &done))
            ;
        us[i] = (double)(oct_clock_ns() - begin) * 1e-3;
    }
    return oct_bench_median(us, N);
}

static void make_picture(struct runner *r, const struct oct_display *display)
{
    struct oct_image_frame *done;
    submit_one(r, 0, display);
    while (r->ops->collect(r->engine, 1000000, &done))
        ;
    r->scene->out[0] = *done; /* where the limits lie that the check reads */
}

/* Checks a picture of the 60 dB below its maximum and one of the range that is timed against double
 * precision, and the limits of the latter against those that the B-scan's own values demand. */
static double verify(struct runner *r)
{
    struct oct_display display = r->scene->display;
    struct oct_image_frame *out = &r->scene->out[0];
    double worst, limits;

    display.log = true;
    display.range = OCT_RANGE_AUTO;
    display.smoothing_bscans = 0;
    make_picture(r, &display);
    worst = oct_bench_scene_error(r->scene, 0);
    if (!oct_bench_scene_limits(r->scene, 0, &r->scene->display, &display.lo, &display.hi))
        return INFINITY;
    limits = out->hi - out->lo > 0 ? (out->hi - out->lo) / 255 : 0; /* one level of this picture */
    const double lo = display.lo, hi = display.hi, most = out->hi;
    display.range = r->scene->display.range;
    make_picture(r, &display);
    worst = fmax(worst, oct_bench_scene_error(r->scene, 0));
    if (fabs(out->lo - lo) > limits || fabs(out->hi - hi) > limits)
        return INFINITY;
    display.range = OCT_RANGE_MANUAL;
    display.hi = most;
    display.lo = most - 60;
    make_picture(r, &display);
    return fmax(worst, oct_bench_scene_error(r->scene, 0));
}

static enum oct_err measure_engine(struct row *row, struct oct_bench_scene *scene,
                                   const char *backend, const struct oct_engine_options *options,
                                   double seconds, char *why, size_t why_bytes,
                                   struct oct_error *err)
{
    struct runner r = {.scene = scene};
    enum oct_err e =
        oct_engine_select(backend, scene->plan, options, &r.ops, &r.engine, why, why_bytes, err);
    if (e)
        return e;
    if (!make_pictures(&r)) {
        close_runner(&r);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the benchmark's pictures");
    }
    row->error = verify(&r);
    if (row->error > 1) {
        close_runner(&r);
        return oct_fail(
            err, OCT_E_BACKEND,
            "the %s engine is off by %.1f grey levels with range=%s: not timed; run the "
            "tests",
            r.ops->name, row->error, row->range);
    }
    uint64_t n = 8;
    double took = run_full(&r, n);
    n = (uint64_t)(8 * seconds / REPEATS / took) + 8;
    double best = 1e30;
    for (int i = 0; i < REPEATS; i++) {
        took = run_full(&r, n);
        best = took < best ? took : best;
    }
    row->lines_per_s = (double)n * scene->plan->geometry.n_lines / best;
    row->latency_us = single_latency_us(&r);
    close_runner(&r);
    return OCT_OK;
}

/* ---- the limit: bare transforms by FFTW, measured plans, whoever does the engine's ---- */

struct fft_worker {
    const struct oct_fft *fft;
    uint32_t padded;
    uint64_t n_lines;
    pthread_t thread;
};

static void *run_transforms(void *argument)
{
    const struct fft_worker *w = argument;
    const struct oct_fft *fft = w->fft;
    size_t n = 2 * (size_t)w->padded;
    fftwf_complex *a = oct_aligned_calloc(64, n, sizeof(*a));
    fftwf_complex *b = oct_aligned_alloc(64, n, sizeof(*b));

    if (a && b) {
        for (uint64_t i = 0; i < w->n_lines; i += 2) { /* lines in pairs, as the chain does */
            fftwf_execute_dft(fft->forward_pair, a, b);
            fftwf_execute_dft(fft->inverse_pair, b, a);
            fftwf_execute_dft(fft->forward, a, b);
            fftwf_execute_dft(fft->forward, a, b);
        }
    }
    free(a);
    free(b);
    return NULL;
}

static double time_transforms(struct fft_worker *workers, unsigned n_threads, uint64_t n_lines)
{
    uint64_t begin = oct_clock_ns();
    unsigned started = 0;
    for (; started < n_threads; started++) {
        workers[started].n_lines = n_lines / n_threads;
        if (oct_thread_start(&workers[started].thread, NULL, run_transforms, &workers[started],
                             "transforms", NULL))
            break;
    }
    for (unsigned t = 0; t < started; t++)
        pthread_join(workers[t].thread, NULL);
    return (double)(oct_clock_ns() - begin) * 1e-9;
}

static enum oct_err measure_limit(struct row *row, const struct oct_plan *plan,
                                  const struct oct_engine_options *options, double seconds,
                                  struct oct_error *err)
{
    struct fft_worker workers[64];
    struct oct_fft fft;
    enum oct_err e = oct_fft_init(&fft, OCT_FFT_ALL, plan->geometry.padded, options->wisdom_dir, err);
    if (e)
        return e;
    unsigned n_threads = row->threads < 64 ? row->threads : 64;
    for (unsigned t = 0; t < n_threads; t++)
        workers[t] = (struct fft_worker){.fft = &fft, .padded = plan->geometry.padded};
    uint64_t n = 2000;
    double took = time_transforms(workers, n_threads, n), best = 1e30;
    n = (uint64_t)((double)n * seconds / REPEATS / took) + 100;
    for (int i = 0; i < REPEATS; i++) {
        took = time_transforms(workers, n_threads, n);
        best = took < best ? took : best;
    }
    row->fft_per_s = (double)(n / n_threads * n_threads) / best;
    oct_fft_finish(&fft);
    return OCT_OK;
}

/* ---- the report ---- */

static void print_row(const struct row *row)
{
    printf("%7u %6u %6u %8u %-10s %12.0f %14.0f %8.2f %11.0f %7.2f\n", row->samples, row->lines,
           row->depth, row->threads, row->range, row->lines_per_s, row->fft_per_s,
           row->fft_per_s / row->lines_per_s, row->latency_us, row->error);
}

static void add_row(cJSON *rows, const struct row *row)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "samples", row->samples);
    cJSON_AddNumberToObject(object, "lines", row->lines);
    cJSON_AddNumberToObject(object, "depth", row->depth);
    cJSON_AddNumberToObject(object, "threads", row->threads);
    cJSON_AddStringToObject(object, "range", row->range);
    cJSON_AddNumberToObject(object, "alines_per_s", row->lines_per_s);
    cJSON_AddNumberToObject(object, "bare_fft_alines_per_s", row->fft_per_s);
    cJSON_AddNumberToObject(object, "times_bare_fft", row->fft_per_s / row->lines_per_s);
    cJSON_AddNumberToObject(object, "bscan_latency_us", row->latency_us);
    cJSON_AddNumberToObject(object, "grey_levels_off", row->error);
    cJSON_AddItemToArray(rows, object);
}

struct shape {
    uint32_t samples, depth; /* 0: as configured */
    bool one_thread;
    bool as_configured; /* the range */
    enum oct_range range;
};

/* The thesis geometry with each display range first; then one core alone, a shallow crop, and other
 * cameras. */
static const struct shape shapes[] = {
    {832, 1024, false, false, OCT_RANGE_MANUAL},     {832, 1024, false, false, OCT_RANGE_AUTO},
    {832, 1024, false, false, OCT_RANGE_PERCENTILE}, {832, 1024, true, false, OCT_RANGE_MANUAL},
    {832, 256, false, false, OCT_RANGE_MANUAL},      {1024, 1024, false, false, OCT_RANGE_MANUAL},
    {2048, 1024, false, false, OCT_RANGE_MANUAL},    {4096, 1024, false, false, OCT_RANGE_MANUAL},
    {4096, 2048, false, false, OCT_RANGE_MANUAL},
};
enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]), N_THESIS = 4 };

static enum oct_err measure(const struct oct_config *config, const struct shape *shape,
                            double seconds, struct row *row, char *why, size_t why_bytes,
                            struct oct_error *err)
{
    struct oct_config c = *config;
    struct oct_engine_options options;
    struct oct_bench_scene scene;
    char wisdom_dir[OCT_CONFIG_STRING_BYTES];

    if (shape->samples && !oct_config_is_set(config, "camera.samples"))
        c.camera.samples = shape->samples;
    enum oct_err e = oct_bench_scene_init(&scene, &c, shape->depth, err);
    if (e)
        return e;
    oct_config_engine_options(&c, &options, wisdom_dir, sizeof(wisdom_dir));
    if (shape->one_thread)
        options.n_threads = 1;
    if (!shape->as_configured)
        scene.display.range = shape->range;
    *row = (struct row){
        .samples = scene.plan->geometry.n_samples,
        .lines = scene.plan->geometry.n_lines,
        .depth = scene.plan->geometry.depth,
        .threads = options.n_threads ? options.n_threads : oct_bench_n_cores(),
        .range = oct_bench_range_name(scene.display.range),
    };
    e = measure_engine(row, &scene, oct_config_backend_names[c.pipeline.backend], &options, seconds,
                       why, why_bytes, err);
    if (e == OCT_OK)
        e = measure_limit(row, scene.plan, &options, seconds, err);
    oct_bench_scene_finish(&scene);
    return e;
}

enum oct_err oct_bench_engine_table(const struct oct_config *config, double seconds, bool json,
                                    cJSON *report, struct oct_error *err)
{
    char why[256] = "";
    /* If the user gives a camera, only that one is measured; the same holds for a range. */
    bool one_range = oct_config_is_set(config, "pipeline.range");
    size_t n = oct_config_is_set(config, "camera.samples") ? N_THESIS : N_SHAPES;
    cJSON *rows = cJSON_AddArrayToObject(report, "engine");

    for (size_t i = 0; i < n; i++) {
        struct shape shape = shapes[i];
        struct row row;
        if (one_range && i > 0 && shape.range != OCT_RANGE_MANUAL)
            continue;
        shape.as_configured = one_range;
        enum oct_err e = measure(config, &shape, seconds, &row, why, sizeof(why), err);
        if (e)
            return e;
        if (i == 0 && !json)
            printf("%s\nu16 in, %s out; best of %d\n%7s %6s %6s %8s %-10s %12s %14s %8s %11s %7s\n",
                   why, config->output.sample == OCT_SAMPLE_F32 ? "f32" : "u8", REPEATS, "samples",
                   "lines", "depth", "threads", "range", "A-lines/s", "bare FFTs/s", "x FFTs",
                   "1 B-scan us", "off by");
        if (!json)
            print_row(&row);
        fflush(stdout);
        add_row(rows, &row);
        if (i == 0)
            cJSON_AddStringToObject(report, "engine_is", why);
    }
    return OCT_OK;
}

enum oct_err oct_bench_engine(const struct oct_config *config, uint32_t lines, unsigned n_threads,
                              double seconds, double *lines_per_s, double *bscan_us,
                              struct oct_error *err)
{
    struct oct_config c = *config;
    const struct shape shape = {.as_configured = true};
    struct row row;
    char why[256];
    if (lines)
        c.scan.lines = lines;
    if (n_threads)
        c.pipeline.threads = n_threads;
    enum oct_err e = measure(&c, &shape, seconds, &row, why, sizeof(why), err);
    *lines_per_s = e ? 0 : row.lines_per_s;
    *bscan_us = e ? 0 : row.latency_us;
    return e;
}
