/* The engine of the configuration beside bare transforms by FFTW with as many threads, checked
 * before it is timed. */
#include "tools/bench/engine.h"
#include "config/apply.h"
#include "tools/bench/part.h"
#include "tools/bench/runner.h"

#include <cjson/cJSON.h>
#include <stdio.h>

struct row {
    uint32_t samples, lines, depth;
    unsigned threads;
    const char *in; /* the samples */
    const char *range;
    const char *interpolation;
    double error;       /* grey levels off the double-precision sums */
    double lines_per_s; /* the engine */
    double fft_per_s;   /* the bare transforms of the chain, by FFTW, same threads */
    double latency_us;  /* one B-scan alone, submit to collect: median */
};

static const char *interpolation_name(enum oct_interpolation interpolation)
{
    return interpolation == OCT_INTERPOLATION_NUFFT   ? "nufft"
           : interpolation == OCT_INTERPOLATION_CUBIC ? "cubic"
                                                      : "linear";
}

static enum oct_err time_engine(void *runner, uint64_t n, double *took, struct oct_error *err)
{
    (void)err;
    *took = oct_bench_runner_seconds(runner, n);
    return OCT_OK;
}

static enum oct_err measure_engine(struct row *row, struct oct_bench_scene *scene,
                                   const char *backend, const struct oct_engine_options *options,
                                   double seconds, char *why, size_t why_bytes,
                                   struct oct_error *err)
{
    struct oct_bench_runner r;
    double bscans_per_s;
    enum oct_err e = oct_bench_runner_open(&r, scene, backend, options, why, why_bytes, err);
    if (e)
        return e;
    e = oct_bench_runner_verify(&r, &row->error, err);
    e = e ? e : oct_bench_fastest(time_engine, &r, 8, seconds, &bscans_per_s, err);
    if (!e) {
        row->lines_per_s = bscans_per_s * scene->plan->geometry.n_lines;
        row->latency_us = oct_bench_runner_latency_us(&r);
    }
    oct_bench_runner_close(&r);
    return e;
}

/* n: lines for each thread. */
static enum oct_err time_transforms(void *transforms, uint64_t n, double *took,
                                    struct oct_error *err)
{
    const struct oct_bench_transforms *t = transforms;
    (void)err;
    n *= t->n_threads;
    *took = oct_bench_transforms_seconds(t, &n);
    return OCT_OK;
}

static enum oct_err measure_limit(struct row *row, const struct oct_plan *plan,
                                  const struct oct_engine_options *options, double seconds,
                                  struct oct_error *err)
{
    struct oct_bench_transforms t;
    enum oct_err e = oct_bench_transforms_open(&t, plan, options->wisdom_dir, row->threads, err);
    if (e)
        return e;
    e = oct_bench_fastest(time_transforms, &t, 2000 / t.n_threads + 1, seconds, &row->fft_per_s,
                          err);
    row->fft_per_s *= t.n_threads;
    oct_bench_transforms_close(&t);
    return e;
}

/* ---- the report ---- */

static void print_row(const struct row *row)
{
    printf("%7u %-7s %6u %6u %8u %-13s %-10s %12.0f %14.0f %8.2f %11.0f %7.2f\n", row->samples,
           row->in, row->lines, row->depth, row->threads, row->interpolation, row->range,
           row->lines_per_s, row->fft_per_s, row->fft_per_s / row->lines_per_s, row->latency_us,
           row->error);
}

static void add_row(cJSON *rows, const struct row *row)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "samples", row->samples);
    cJSON_AddStringToObject(object, "in", row->in);
    cJSON_AddNumberToObject(object, "lines", row->lines);
    cJSON_AddNumberToObject(object, "depth", row->depth);
    cJSON_AddNumberToObject(object, "threads", row->threads);
    cJSON_AddStringToObject(object, "interpolation", row->interpolation);
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
    bool packed; /* 12 bits */
};

/* The thesis geometry with each display range first; then one core alone, from u16 and from 12 bits
 * packed; a shallow crop, and other cameras. */
static const struct shape shapes[] = {
    {.samples = 832, .depth = 1024, .range = OCT_RANGE_MANUAL},
    {.samples = 832, .depth = 1024, .range = OCT_RANGE_AUTO},
    {.samples = 832, .depth = 1024, .range = OCT_RANGE_PERCENTILE},
    {.samples = 832, .depth = 1024, .range = OCT_RANGE_MANUAL, .one_thread = true},
    {.samples = 832, .depth = 1024, .range = OCT_RANGE_MANUAL, .one_thread = true, .packed = true},
    {.samples = 832, .depth = 256, .range = OCT_RANGE_MANUAL},
    {.samples = 1024, .depth = 1024, .range = OCT_RANGE_MANUAL},
    {.samples = 2048, .depth = 1024, .range = OCT_RANGE_MANUAL},
    {.samples = 4096, .depth = 1024, .range = OCT_RANGE_MANUAL},
    {.samples = 4096, .depth = 2048, .range = OCT_RANGE_MANUAL},
};
enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]), N_THESIS = 5 };

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
    if (shape->packed && (e = oct_bench_scene_pack(&scene, OCT_LINES_12P, err))) {
        oct_bench_scene_finish(&scene);
        return e;
    }
    *row = (struct row){
        .samples = scene.plan->geometry.n_samples,
        .lines = scene.plan->geometry.n_lines,
        .depth = scene.plan->geometry.depth,
        .in = oct_samples_name(scene.in[0].format),
        .threads = options.n_threads ? options.n_threads : oct_bench_n_cores(),
        .range = oct_bench_range_name(scene.display.range),
        .interpolation = interpolation_name(scene.plan->chain.interpolation),
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
        if ((one_range && i > 0 && shape.range != OCT_RANGE_MANUAL) ||
            (shape.packed && config->camera.samples % 2))
            continue;
        shape.as_configured = one_range;
        enum oct_err e = measure(config, &shape, seconds, &row, why, sizeof(why), err);
        if (e)
            return e;
        if (i == 0 && !json)
            printf("%s\n%s out; best of %d\n%7s %-7s %6s %6s %8s %-13s %-10s %12s %14s %8s %11s "
                   "%7s\n",
                   why, config->output.sample == OCT_SAMPLE_F32 ? "f32" : "u8", OCT_BENCH_REPEATS,
                   "samples", "in", "lines", "depth", "threads", "interpolation", "range",
                   "A-lines/s", "bare FFTs/s", "x FFTs", "1 B-scan us", "off by");
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
