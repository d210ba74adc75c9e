/* Surfaces denoised as level sets, on all cores: 240 x 240 A-lines by local weights, and the most
 * similar patches of 175,000 voxels beside the times of Lee et al. 2012. And layers: of one B-scan,
 * and live. */
#include "analysis/layers/denoise/distance.h"
#include "analysis/layers/denoise/levelset.h"
#include "kernels/device/workers.h"
#include "test/bench/bench.h"
#include "test/rig/surface_scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINES = 240, DEPTH = 96, VOXELS = LINES * LINES * DEPTH };
#define DELTA 2.5F
#define BAND 175000u      /* as in the paper */
#define SHORT_BAND 20000u /* in less than a second a figure */

struct bench {
    struct oct_workers *workers;
    float *phi, *result;
    uint32_t n; /* voxels of the band */
    double seconds;
    struct oct_bench_rows *rows;
};

/* A sine sheet, normal noise of one voxel. */
static enum oct_err make_scene(struct bench *b, struct oct_error *err)
{
    static const uint32_t dims[3] = {LINES, LINES, DEPTH};
    const struct oct_surface_scene scene = {.kind = OCT_SURFACE_SHEET,
                                            .n_b = LINES,
                                            .n_j = LINES,
                                            .height = 5,
                                            .width = 125,
                                            .noise = 1,
                                            .seed = 1};
    float *heights = calloc((size_t)LINES * LINES, sizeof(*heights));
    if (!heights || !b->phi || !b->result) {
        free(heights);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a surface");
    }
    oct_surface_scene_draw(&scene, NULL, heights);
    const enum oct_err e = oct_distance_of_heights(heights, dims, 8, b->workers, b->phi, err);
    free(heights);
    for (uint32_t i = 0; i < VOXELS && !e; i++)
        b->n += fabsf(b->phi[i]) <= DELTA;
    return e;
}

struct denoising {
    struct bench *bench;
    struct oct_levelset_engine *engine;
    struct oct_levelset_report report;
};

static enum oct_err denoise(void *context, struct oct_error *err)
{
    struct denoising *d = context;
    return oct_levelset_cpu.denoise(d->engine, d->bench->phi, d->bench->result, &d->report, err);
}

/* The first n_bscans of the scene. */
static enum oct_err time_profile(struct bench *b, enum oct_levelset_profile profile,
                                 uint32_t n_bscans, unsigned least, struct denoising *d,
                                 double *best_s, struct oct_error *err)
{
    struct oct_levelset_setup setup = {
        .dims = {n_bscans, LINES, DEPTH}, .workers = b->workers, .gpus = ""};
    struct bench_turn turn = {.run = denoise, .context = d};
    *d = (struct denoising){.bench = b};
    oct_levelset_params_default(&setup.params, profile);
    enum oct_err e = oct_levelset_cpu.create(&d->engine, &setup, err);
    e = e ? e : bench_turns(&turn, 1, least, least == 1 ? 0 : b->seconds, err);
    oct_levelset_cpu.destroy(d->engine);
    *best_s = turn.wall_s;
    return e;
}

static enum oct_err bench_local(struct bench *b, struct oct_error *err)
{
    struct denoising d;
    double best_s;
    const enum oct_err e = time_profile(b, OCT_LEVELSET_PROFILE_LOCAL, LINES,
                                        b->seconds < 1 ? 1 : 3, &d, &best_s, err);
    if (e)
        return e;
    const unsigned n_cores = oct_bench_n_cores();
    struct oct_bench_row *row = bench_add(b->rows, "surfaces", "2 s", "s", best_s, 2, 1);
    snprintf(row->what, sizeof(row->what), "local, 240 x 240, %u core%s", n_cores,
             bench_plural(n_cores));
    snprintf(row->note, sizeof(row->note), "%llu voxels, %.2f Gpatch/s",
             (unsigned long long)d.report.n_band, (double)d.report.n_patches / best_s * 1e-9);
    return OCT_OK;
}

static enum oct_err bench_full(struct bench *b, struct oct_error *err)
{
    static const struct {
        const char *limit_is;
        double limit_s, goal;
    } limits[] = {{"60 s", 60, 1},
                  {"Lee 2012, GTX 480, 4.6 min", 4.6 * 60, 0},
                  {"Lee 2012, CPU, 7.3 h", 7.3 * 3600, 0}};
    const uint32_t band = b->seconds < 1 ? SHORT_BAND : BAND;
    const unsigned n_cores = oct_bench_n_cores();
    struct denoising d;
    double best_s;
    const enum oct_err e =
        time_profile(b, OCT_LEVELSET_PROFILE_FULL, (uint32_t)((uint64_t)LINES * band / b->n), 1, &d,
                     &best_s, err);
    for (unsigned i = 0; i < 3 && !e; i++) {
        struct oct_bench_row *row = bench_add(b->rows, "surfaces", limits[i].limit_is, "s", best_s,
                                              limits[i].limit_s, limits[i].goal);
        snprintf(row->what, sizeof(row->what), "96 of %.0f,000 patches, %u core%s",
                 (double)d.report.n_band * 1e-3, n_cores, bench_plural(n_cores));
        if (i == 0)
            snprintf(row->note, sizeof(row->note), "%.2f Gpatch/s, most ruled out by bounds",
                     (double)d.report.n_patches / best_s * 1e-9);
    }
    return e;
}

enum oct_err bench_surfaces(const struct oct_config *config,
                            const struct oct_bench_options *options, struct oct_bench_rows *rows,
                            struct oct_error *err)
{
    struct bench b = {.phi = calloc(VOXELS, sizeof(float)),
                      .result = calloc(VOXELS, sizeof(float)),
                      .seconds = options->seconds,
                      .rows = rows};
    enum oct_err e = bench_workers(&b.workers, err);
    e = e ? e : make_scene(&b, err);
    e = e ? e : bench_local(&b, err);
    e = e ? e : bench_full(&b, err);
    oct_workers_destroy(b.workers);
    free(b.phi);
    free(b.result);
    return e;
}

enum oct_err bench_layers(const struct oct_config *config, const struct oct_bench_options *options,
                          struct oct_bench_rows *rows, struct oct_error *err)
{
    const enum oct_err e = bench_layers_alone(config, options->seconds, rows, err);
    return e ? e : bench_live(config, "surfaces", options->seconds, rows, err);
}
