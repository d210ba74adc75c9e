/* Two volumes registered in 3D, on all cores: textured pairs of 128^3 and 240^3 voxels with a known
 * displacement, beside the times of Lee et al. 2012; each level beside the bandwidth of a triad of
 * the same threads; and greedy with the same iterations. */
#include "analysis/warp/solver.h"
#include "kernels/device/workers.h"
#include "test/bench/bench.h"
#include "test/bench/greedy.h"
#include "test/rig/warp_phantom.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SHORT_SIDE 64u   /* in less than a second a figure */
#define LEAST_SHARE 0.5  /* of the triad's bandwidth in the finest level */
#define GREEDY_SHARE 0.5 /* of greedy's time */
#define MARGIN 8u        /* voxels from the border that are not judged */

struct paper {
    const char *limit_is;
    double limit_s;
};

/* By their side: on a GPU, and on a CPU. */
static const struct {
    uint32_t side;
    struct paper papers[2];
} sizes[] = {{SHORT_SIDE, {{"the paper has no such size", 0}}},
             {128, {{"Lee 2012, GTX 480, 24 s", 24}, {"Lee 2012, CPU, 35 min", 35 * 60}}},
             {240, {{"Lee 2012, GTX 480, 150 s", 150}, {"Lee 2012, CPU, 7.2 h", 7.2 * 3600}}}};

struct bench {
    struct oct_workers *workers;
    char by[32];
    double triad_bytes_per_s, seconds;
    struct oct_bench_rows *rows;

    /* of one pair */
    struct oct_warp_phantom phantom;
    struct oct_warp_engine *engine;
    struct oct_warp_report report;
    float *found; /* [3][side]^3 */
    double took_s, cpu_s;
    struct oct_warp_phantom_error error;
};

static enum oct_err solve(void *context, struct oct_error *err)
{
    struct bench *b = context;
    return oct_warp_cpu.solve(b->engine, b->phantom.fixed, b->phantom.moving, NULL, b->found,
                              &b->report, NULL, err);
}

static void judge(struct bench *b)
{
    oct_warp_phantom_judge(&b->phantom.grid, b->phantom.displacement, b->found, MARGIN, &b->error);
}

static enum oct_err solve_pair(struct bench *b, struct oct_error *err)
{
    struct oct_warp_setup setup = {.grid = b->phantom.grid, .workers = b->workers, .gpus = ""};
    struct bench_turn turn = {.run = solve, .context = b};
    oct_warp_params_default(&setup.params, OCT_WARP_OCTD, setup.grid.dims);
    enum oct_err e = oct_warp_cpu.create(&b->engine, &setup, err);
    e = e ? e : bench_turns(&turn, 1, 1, b->seconds, err);
    oct_warp_cpu.destroy(b->engine);
    b->took_s = turn.wall_s;
    b->cpu_s = turn.cpu_s;
    if (!e)
        judge(b);
    return e;
}

/* ---- rows ---- */

static void add_times(struct bench *b, uint32_t side, const struct paper papers[2])
{
    for (unsigned i = 0; i < 2 && papers[i].limit_is; i++) {
        struct oct_bench_row *row =
            bench_add(b->rows, "warp", papers[i].limit_is, "s", b->took_s, papers[i].limit_s, 0);
        snprintf(row->what, sizeof(row->what), "%u^3 voxels, %s", side, b->by);
        if (i == 0)
            snprintf(row->note, sizeof(row->note),
                     "off by %.3f voxel in the mean, 95 %% below %.3f", b->error.mean,
                     b->error.p95);
    }
}

static void add_levels(struct bench *b, uint32_t side)
{
    for (unsigned i = 0; i < b->report.n_levels; i++) {
        const struct oct_warp_level *l = &b->report.level[i];
        const double n = pow(floor((double)side / l->factor), 3);
        struct oct_bench_row *row =
            bench_add(b->rows, "warp", "a triad", "GB/s", l->bytes / l->seconds * 1e-9,
                      b->triad_bytes_per_s * 1e-9, i + 1 == b->report.n_levels ? LEAST_SHARE : 0);
        snprintf(row->what, sizeof(row->what), "%u^3, level of factor %u, %s", side, l->factor,
                 b->by);
        snprintf(row->note, sizeof(row->note),
                 "%u step%s in %.3f s, %.0f bytes a voxel and step; E %.3g to %.3g", l->iterations,
                 bench_plural(l->iterations), l->seconds, l->bytes / n / l->iterations,
                 l->energy_first, l->energy);
    }
}

static enum oct_err add_greedy(struct bench *b, uint32_t side, struct oct_error *err)
{
    struct bench_greedy greedy;
    const enum oct_err e = bench_greedy(b->phantom.fixed, b->phantom.moving, side,
                                        oct_bench_n_cores(), b->found, &greedy, err);
    if (e)
        return e;
    struct oct_bench_row *row =
        bench_add(b->rows, "warp", "greedy's steps", "s", b->took_s, greedy.seconds, GREEDY_SHARE);
    snprintf(row->what, sizeof(row->what), "%u^3, at most 100, 30, 10 steps", side);
    if (greedy.seconds > 0) {
        judge(b);
        snprintf(row->note, sizeof(row->note),
                 "greedy is off by %.3f, 95 %% below %.3f; CPU time %.1f s, of greedy %.1f s",
                 b->error.mean, b->error.p95, b->cpu_s, greedy.cpu_s);
    } else {
        snprintf(row->note, sizeof(row->note),
                 "skipped: neither greedy nor Python's picsl_greedy is there");
    }
    return OCT_OK;
}

static enum oct_err bench_side(struct bench *b, uint32_t side, const struct paper papers[2],
                               bool with_greedy, struct oct_error *err)
{
    struct oct_warp_phantom_setup setup;
    oct_warp_phantom_default(&setup, side);
    oct_warp_phantom_make(&setup, &b->phantom);
    b->found = calloc(3 * (size_t)side * side * side, sizeof(*b->found));
    enum oct_err e = b->found ? solve_pair(b, err)
                              : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u^3", side);
    if (!e) {
        add_times(b, side, papers);
        add_levels(b, side);
    }
    if (!e && with_greedy)
        e = add_greedy(b, side, err);
    free(b->found);
    oct_warp_phantom_finish(&b->phantom);
    return e;
}

enum oct_err bench_warp(const struct oct_config *config, const struct oct_bench_options *options,
                        struct oct_bench_rows *rows, struct oct_error *err)
{
    const bool is_short = options->seconds < 1;
    struct bench b = {.seconds = options->seconds, .rows = rows};
    const unsigned n_cores = oct_bench_n_cores(), n_sizes = sizeof(sizes) / sizeof(sizes[0]);
    (void)config;
    snprintf(b.by, sizeof(b.by), "%u core%s", n_cores, bench_plural(n_cores));
    enum oct_err e = bench_workers(&b.workers, err);
    e = e ? e : bench_triad(b.workers, b.seconds / 4, &b.triad_bytes_per_s, err);
    for (unsigned i = is_short ? 0 : 1; i < (is_short ? 1 : n_sizes) && !e; i++)
        e = bench_side(&b, sizes[i].side, sizes[i].papers, i <= 1, err);
    oct_workers_destroy(b.workers);
    return e;
}
