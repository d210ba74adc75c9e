/* Two volumes registered in 3D, on all cores: textured pairs of 128^3 and 240^3 voxels with a known
 * displacement, beside the times of Lee et al. 2012; each level beside the bandwidth of a triad of
 * the same threads; and greedy with the same iterations. With pipeline.backend = cuda on a GPU too,
 * beside a copy within the device. */
#include "analysis/warp/solver.h"
#include "kernels/device/cuda_choice.h"
#include "kernels/device/cuda_device.h"
#include "kernels/device/workers.h"
#include "pipeline/base/clock.h"
#include "tools/bench/greedy.h"
#include "tools/bench/multiply_add.h"
#include "tools/bench/part.h"
#include "tools/bench/triad.h"
#include "tools/bench/warp_phantom.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_SIDE 64u  /* in less than a second a figure */
#define MOST_ERROR 0.12 /* voxels in the mean */
#define MOST_P95 0.25
#define LEAST_SHARE 0.5                /* of the triad's bandwidth in the finest level */
#define MOST_APART 0.01                /* voxels of the GPU's displacement from the CPU's */
#define GPU_RUNS 4u                    /* the first one warms up */
#define COPY_BYTES ((size_t)256 << 20) /* no cache holds it */
#define COPY_ROUNDS 4u
#define GREEDY_SHARE 0.5 /* of greedy's time */

static const struct {
    uint32_t side;
    const char *gpu, *cpu;
    double gpu_s, cpu_s;
} papers[] = {{128, "Lee 2012, GTX 480, 24 s", "Lee 2012, CPU, 35 min", 24, 35 * 60},
              {240, "Lee 2012, GTX 480, 150 s", "Lee 2012, CPU, 7.2 h", 150, 7.2 * 3600}};
#define GPU_SIDE 240u
#define GPU_S 1.0 /* with copies, at that side */
enum { N_PAPERS = sizeof(papers) / sizeof(papers[0]) };

/* What computes, and what its memory does. */
struct way {
    const struct oct_warp_ops *ops;
    char by[32];
    const char *limit_is;
    double bytes_per_s;
    unsigned least_runs;
};

struct bench {
    struct oct_workers *workers;
    unsigned n_cores;
    double seconds;
    const char *gpus; /* NULL: no GPU is asked for */
    struct way cpu, gpu;
    struct oct_bench_rows *rows;
};

/* What a pair gave. */
struct solved {
    uint32_t side;
    struct oct_warp_report report;
    double took_s, cpu_s; /* the best */
    double mean, p95, least;
};

static struct oct_bench_row *add(struct bench *b, const char *limit_is, const char *unit,
                                 double value, double limit, double goal)
{
    struct oct_bench_row *row = oct_bench_add(b->rows, "warp", limit_is, unit, goal);
    row->value = value;
    row->limit = limit;
    row->less_is_better = unit[1] == '\0'; /* "s" */
    return row;
}

static const char *plural(unsigned n)
{
    return n == 1 ? "" : "s";
}

/* ---- one pair ---- */

static enum oct_err check_levels(const struct oct_warp_report *report, struct oct_error *err)
{
    for (unsigned i = 0; i < report->n_levels; i++) {
        const struct oct_warp_level *l = &report->level[i];
        if (!(l->energy < l->energy_first) || l->iterations == 0)
            return oct_fail(err, OCT_E_STATE, "E went from %g to %g at factor %u", l->energy_first,
                            l->energy, l->factor);
    }
    return OCT_OK;
}

/* The displacement is the known one, and nothing is folded. jacobian: [side]^3, room. */
static enum oct_err check_pair(const struct oct_warp_ops *ops, struct oct_warp_engine *engine,
                               const struct oct_bench_warp_phantom *phantom, const float *found,
                               float *jacobian, struct solved *solved, struct oct_error *err)
{
    const size_t n = (size_t)phantom->side * phantom->side * phantom->side;
    enum oct_err e = check_levels(&solved->report, err);
    oct_bench_warp_phantom_error(phantom, found, &solved->mean, &solved->p95);
    e = e ? e : ops->jacobian(engine, found, jacobian, err);
    if (e)
        return e;
    solved->least = HUGE_VAL;
    for (size_t i = 0; i < n; i++)
        solved->least = fmin(solved->least, (double)jacobian[i]);
    if (!(solved->least > 0))
        return oct_fail(err, OCT_E_STATE, "%u^3: least J is %.3g", phantom->side, solved->least);
    if (!(solved->mean <= MOST_ERROR && solved->p95 <= MOST_P95))
        return oct_fail(err, OCT_E_STATE,
                        "%u^3: off by %.3f voxel in the mean, 95 %% below %.3f: not timed",
                        phantom->side, solved->mean, solved->p95);
    return OCT_OK;
}

/* The first run is checked; the best is taken of as many as `seconds` hold. room: [4][side]^3, of
 * which the first three are the displacement then. */
static enum oct_err solve_pair(const struct bench *b, const struct way *way,
                               const struct oct_warp_setup *setup,
                               const struct oct_bench_warp_phantom *phantom, float *room,
                               struct solved *solved, struct oct_error *err)
{
    const struct oct_warp_ops *ops = way->ops;
    const size_t n = (size_t)phantom->side * phantom->side * phantom->side;
    struct oct_warp_engine *engine = NULL;
    double sum = 0;
    enum oct_err e = ops->create(&engine, setup, err);
    *solved = (struct solved){.side = phantom->side, .took_s = HUGE_VAL, .cpu_s = HUGE_VAL};
    for (unsigned i = 0; !e && (i < way->least_runs || sum < b->seconds); i++) {
        struct oct_warp_report report;
        const double cpu_s = oct_bench_process_cpu_s();
        const uint64_t begin = oct_clock_ns();
        e = ops->solve(engine, phantom->fixed, phantom->moving, NULL, room, &report, NULL, err);
        const double each_s = (double)(oct_clock_ns() - begin) * 1e-9;
        sum += each_s;
        solved->cpu_s = fmin(solved->cpu_s, oct_bench_process_cpu_s() - cpu_s);
        if (!e && each_s < solved->took_s) {
            solved->report = report;
            solved->took_s = each_s;
        }
        if (!e && i == 0)
            e = check_pair(ops, engine, phantom, room, room + 3 * n, solved, err);
    }
    if (engine)
        ops->destroy(engine);
    return e;
}

static void fill_setup(const struct bench *b, uint32_t side, struct oct_warp_setup *setup)
{
    *setup = (struct oct_warp_setup){.grid = {.dims = {side, side, side}, .spacing = {1, 1, 1}},
                                     .workers = b->workers,
                                     .gpus = b->gpus ? b->gpus : ""};
    oct_warp_params_default(&setup->params, OCT_WARP_OCTD, setup->grid.dims);
}

/* ---- rows ---- */

static void add_times(struct bench *b, const struct way *way, const struct solved *s)
{
    const uint32_t side = s->side;
    unsigned paper = 0;
    while (paper + 1 < N_PAPERS && papers[paper].side != side)
        paper++;
    const bool is_known = papers[paper].side == side;
    const char *const names[2] = {is_known ? papers[paper].gpu : "the paper has no such size",
                                  papers[paper].cpu};
    const double limits[2] = {is_known ? papers[paper].gpu_s : 0, papers[paper].cpu_s};
    for (unsigned i = 0; i < (is_known ? 2 : 1); i++) {
        struct oct_bench_row *row = add(b, names[i], "s", s->took_s, limits[i], 0);
        snprintf(row->what, sizeof(row->what), "%u^3 voxels, %s", side, way->by);
        if (i == 0)
            snprintf(row->note, sizeof(row->note),
                     "off by %.3f voxel in the mean, 95 %% below %.3f; J above %.2f", s->mean,
                     s->p95, s->least);
    }
}

static void add_levels(struct bench *b, const struct way *way, const struct solved *s)
{
    for (unsigned i = 0; i < s->report.n_levels; i++) {
        const struct oct_warp_level *l = &s->report.level[i];
        const double n = pow(s->side / l->factor, 3); /* whole voxels */
        const bool is_last = i + 1 == s->report.n_levels;
        struct oct_bench_row *row = add(b, way->limit_is, "GB/s", l->bytes / l->seconds * 1e-9,
                                        way->bytes_per_s * 1e-9, is_last ? LEAST_SHARE : 0);
        snprintf(row->what, sizeof(row->what), "%u^3, level of factor %u, %s", s->side, l->factor,
                 way->by);
        snprintf(row->note, sizeof(row->note),
                 "%u step%s in %.3f s, %.0f bytes a voxel and step; E %.3g to %.3g", l->iterations,
                 plural(l->iterations), l->seconds, l->bytes / n / l->iterations, l->energy_first,
                 l->energy);
    }
}

/* found: [3][side]^3, room. */
static enum oct_err add_greedy(struct bench *b, const struct oct_bench_warp_phantom *phantom,
                               const struct solved *s, float *found, struct oct_error *err)
{
    struct oct_bench_greedy greedy;
    double mean, p95;
    const enum oct_err e = oct_bench_greedy(phantom->fixed, phantom->moving, phantom->side,
                                            b->n_cores, found, &greedy, err);
    if (e)
        return e;
    struct oct_bench_row *row =
        add(b, "greedy's steps", "s", s->took_s, greedy.seconds, GREEDY_SHARE);
    snprintf(row->what, sizeof(row->what), "%u^3, at most 100, 30, 10 steps", phantom->side);
    snprintf(row->note, sizeof(row->note),
             "skipped: neither greedy nor Python's picsl_greedy is there");
    if (!(greedy.seconds > 0))
        return OCT_OK;
    oct_bench_warp_phantom_error(phantom, found, &mean, &p95);
    snprintf(row->note, sizeof(row->note),
             "greedy is off by %.3f, 95 %% below %.3f; CPU time %.1f s, of greedy %.1f s", mean,
             p95, s->cpu_s, greedy.cpu_s);
    return OCT_OK;
}

/* ---- a GPU ---- */

static enum oct_err begin_gpu(struct bench *b, struct oct_error *err)
{
    struct oct_cuda_choice choice;
    b->gpu = (struct way){.ops = &oct_warp_cuda,
                          .by = "GPU",
                          .limit_is = "a copy within the device",
                          .least_runs = GPU_RUNS};
    enum oct_err e = oct_cuda_choose(&choice, b->gpus, NULL, NULL, err);
    for (unsigned i = 0; i < OCT_BENCH_REPEATS && !e; i++) {
        double each = 0;
        e = oct_cuda_time_device_copy(choice.devices[0], COPY_BYTES, COPY_ROUNDS, &each, err);
        b->gpu.bytes_per_s = fmax(b->gpu.bytes_per_s, each);
    }
    return e;
}

/* found: the CPU's displacement, [3][side]^3. */
static enum oct_err bench_gpu(struct bench *b, const struct oct_warp_setup *setup,
                              const struct oct_bench_warp_phantom *phantom, const float *found,
                              struct oct_error *err)
{
    const size_t n = (size_t)phantom->side * phantom->side * phantom->side;
    struct solved solved;
    double apart = 0;
    float *room = calloc(4 * n, sizeof(*room));
    if (!room)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for volumes of %u^3 voxels",
                        phantom->side);
    enum oct_err e = solve_pair(b, &b->gpu, setup, phantom, room, &solved, err);
    for (size_t i = 0; i < 3 * n && !e; i++)
        apart = fmax(apart, fabs((double)room[i] - (double)found[i]));
    free(room);
    if (!e && !(apart <= MOST_APART))
        e = oct_fail(err, OCT_E_STATE, "%u^3: a GPU's displacement is %.2g voxel from the CPU's",
                     phantom->side, apart);
    if (e)
        return e;
    add_times(b, &b->gpu, &solved);
    if (phantom->side == GPU_SIDE) {
        struct oct_bench_row *row = add(b, "1 s", "s", solved.took_s, GPU_S, 1);
        snprintf(row->what, sizeof(row->what), "%u^3 voxels, GPU, copies too", phantom->side);
        snprintf(row->note, sizeof(row->note), "within %.1g voxel of the CPU's", apart);
    }
    add_levels(b, &b->gpu, &solved);
    return OCT_OK;
}

/* ---- putting it together ---- */

static enum oct_err bench_side(struct bench *b, uint32_t side, bool with_greedy,
                               struct oct_error *err)
{
    const size_t n = (size_t)side * side * side;
    struct oct_bench_warp_phantom phantom;
    struct oct_warp_setup setup;
    struct solved solved;
    float *room = calloc(4 * n, sizeof(*room)); /* displacement, J */
    if (!room)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for volumes of %u^3 voxels", side);
    enum oct_err e = oct_bench_warp_phantom_make(&phantom, side, b->workers, err);
    fill_setup(b, side, &setup);
    e = e ? e : solve_pair(b, &b->cpu, &setup, &phantom, room, &solved, err);
    if (!e) {
        add_times(b, &b->cpu, &solved);
        add_levels(b, &b->cpu, &solved);
    }
    if (!e && b->gpus)
        e = bench_gpu(b, &setup, &phantom, room, err);
    if (!e && with_greedy)
        e = add_greedy(b, &phantom, &solved, room, err);
    free(room);
    oct_bench_warp_phantom_finish(&phantom);
    return e;
}

static enum oct_err begin(struct bench *b, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    b->cpu = (struct way){.ops = &oct_warp_cpu, .limit_is = "a triad", .least_runs = 1};
    snprintf(b->cpu.by, sizeof(b->cpu.by), "%u core%s", b->n_cores, plural(b->n_cores));
    if (b->n_cores > 1)
        e = oct_workers_create(&b->workers, b->n_cores - 1, err);
    e = e ? e : oct_bench_triad(b->workers, b->seconds / 4, &b->cpu.bytes_per_s, err);
    return e || !b->gpus ? e : begin_gpu(b, err);
}

enum oct_err oct_bench_warp(const struct oct_config *config,
                            const struct oct_bench_options *options, struct oct_bench_rows *rows,
                            struct oct_error *err)
{
    const bool is_short = options->seconds < 1;
    const bool has_gpu = strcmp(oct_config_backend_names[config->pipeline.backend], "cuda") == 0;
    struct bench b = {.n_cores = oct_bench_n_cores(),
                      .seconds = options->seconds,
                      .gpus = has_gpu ? config->pipeline.gpus : NULL,
                      .rows = rows};
    enum oct_err e = begin(&b, err);
    if (!e && is_short)
        e = bench_side(&b, SHORT_SIDE, true, err);
    for (unsigned i = 0; i < N_PAPERS && !e && !is_short; i++)
        e = bench_side(&b, papers[i].side, i == 0, err);
    oct_workers_destroy(b.workers);
    return e;
}
