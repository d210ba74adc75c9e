/* interpolation = nufft beside linear on the engine of the configuration, in turns, and both beside
 * the bare transforms of their chains. */
#include "config/apply.h"
#include "tools/bench/part.h"
#include "tools/bench/runner.h"

#include <stdio.h>

#define ROUNDS (2 * OCT_BENCH_REPEATS)
#define GOAL 1.2

/* One way to interpolate, with what it is timed beside. */
struct way {
    struct oct_bench_scene scene;
    struct oct_bench_runner runner;
    struct oct_bench_transforms transforms;
    bool has_runner, has_transforms;
    uint64_t n_bscans, n_fft_lines; /* a round */
    double best, best_fft;          /* seconds */
};

static enum oct_err open_way(struct way *w, const struct oct_config *config,
                             enum oct_interpolation interpolation, uint32_t depth,
                             enum oct_range range, struct oct_error *err)
{
    struct oct_config c = *config;
    struct oct_engine_options options;
    char wisdom_dir[OCT_CONFIG_STRING_BYTES], why[256];
    double off;
    *w = (struct way){.best = 1e30, .best_fft = 1e30};
    c.pipeline.interpolation = interpolation;
    enum oct_err e = oct_bench_scene_init(&w->scene, &c, depth, err);
    if (e)
        return e;
    w->scene.display.range = range;
    oct_config_engine_options(&c, &options, wisdom_dir, sizeof(wisdom_dir));
    e = oct_bench_runner_open(&w->runner, &w->scene, oct_config_backend_names[c.pipeline.backend],
                              &options, why, sizeof(why), err);
    w->has_runner = !e;
    e = e ? e : oct_bench_runner_verify(&w->runner, &off, err);
    if (!e) {
        unsigned n_threads = options.n_threads ? options.n_threads : oct_bench_n_cores();
        e = oct_bench_transforms_open(&w->transforms, w->scene.plan, options.wisdom_dir, n_threads,
                                      err);
        w->has_transforms = !e;
    }
    return e;
}

static void close_way(struct way *w)
{
    if (w->has_transforms)
        oct_bench_transforms_close(&w->transforms);
    if (w->has_runner)
        oct_bench_runner_close(&w->runner);
    oct_bench_scene_finish(&w->scene);
}

/* So many B-scans and lines that a round takes these seconds each. */
static void warm_up(struct way *w, double seconds)
{
    uint64_t n = 2000;
    w->n_bscans = (uint64_t)(8 * seconds / oct_bench_runner_seconds(&w->runner, 8)) + 8;
    w->n_fft_lines =
        (uint64_t)((double)n * seconds / oct_bench_transforms_seconds(&w->transforms, &n)) + 100;
}

static void run_round(struct way *w)
{
    double took = oct_bench_runner_seconds(&w->runner, w->n_bscans);
    w->best = took < w->best ? took : w->best;
    took = oct_bench_transforms_seconds(&w->transforms, &w->n_fft_lines);
    w->best_fft = took < w->best_fft ? took : w->best_fft;
}

static double lines_per_s(const struct way *w)
{
    return (double)w->n_bscans * w->scene.plan->geometry.n_lines / w->best;
}

static double fft_lines_per_s(const struct way *w)
{
    return (double)w->n_fft_lines / w->best_fft;
}

static void fill_row(struct oct_bench_row *row, const struct way *linear, const struct way *nufft)
{
    const struct oct_geometry *g = &nufft->scene.plan->geometry;
    double of_nufft = fft_lines_per_s(nufft) / lines_per_s(nufft);
    double of_linear = fft_lines_per_s(linear) / lines_per_s(linear);
    row->value = lines_per_s(nufft);
    row->limit = lines_per_s(linear);
    snprintf(row->what, sizeof(row->what), "%u x %u, D = %u, %s", g->n_samples, g->n_lines,
             g->depth, oct_bench_range_name(nufft->scene.display.range));
    snprintf(row->note, sizeof(row->note),
             "times their bare FFTs: nufft %.2f, linear %.2f; linear's FFTs %.0f lines/s", of_nufft,
             of_linear, fft_lines_per_s(linear));
}

static enum oct_err measure(const struct oct_config *config, uint32_t depth, enum oct_range range,
                            double seconds, struct oct_bench_row *row, struct oct_error *err)
{
    static struct way linear, nufft; /* large */
    enum oct_err e = open_way(&linear, config, OCT_INTERPOLATION_LINEAR, depth, range, err);
    if (!e) {
        e = open_way(&nufft, config, OCT_INTERPOLATION_NUFFT, depth, range, err);
        if (!e) {
            warm_up(&linear, seconds / ROUNDS);
            warm_up(&nufft, seconds / ROUNDS);
            for (int i = 0; i < ROUNDS; i++) {
                run_round(&linear);
                run_round(&nufft);
            }
            fill_row(row, &linear, &nufft);
        }
        close_way(&nufft);
    }
    close_way(&linear);
    return e;
}

enum oct_err oct_bench_nufft(const struct oct_config *config,
                             const struct oct_bench_options *options, struct oct_bench_rows *rows,
                             struct oct_error *err)
{
    static const struct {
        uint32_t samples, depth;
        enum oct_range range;
    } shapes[] = {{832, 1024, OCT_RANGE_MANUAL},
                  {832, 1024, OCT_RANGE_PERCENTILE},
                  {2048, 1024, OCT_RANGE_MANUAL},
                  {4096, 2048, OCT_RANGE_MANUAL}};
    bool one_camera = oct_config_is_set(config, "camera.samples");
    enum oct_err e = OCT_OK;
    for (size_t i = 0; i < (one_camera ? 2 : sizeof(shapes) / sizeof(shapes[0])) && !e; i++) {
        struct oct_config c = *config;
        if (!one_camera)
            c.camera.samples = shapes[i].samples;
        e = measure(&c, shapes[i].depth, shapes[i].range, options->seconds,
                    oct_bench_add(rows, "nufft", "linear, in turns", "lines/s", GOAL), err);
    }
    return e;
}
