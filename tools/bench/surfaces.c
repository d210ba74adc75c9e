/* Surfaces denoised as level sets, on all cores: 240 x 240 A-lines by local weights, and the most
 * similar patches of 175,000 voxels beside the times of Lee et al. 2012; with pipeline.backend =
 * cuda both on a GPU too. Then layers live (surfaces_live.c). */
#include "analysis/surface/distance.h"
#include "analysis/surface/levelset.h"
#include "analysis/surface/patch_search.h"
#include "kernels/device/workers.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/simd.h"
#include "tools/bench/multiply_add.h"
#include "tools/bench/part.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 240, DEPTH = 48, VOXELS = LINES * LINES * DEPTH };
#define DELTA 2.5F
#define PATCH 5
#define MOST 96u
#define BAND 175000u      /* as in the paper */
#define SHORT_BAND 20000u /* in less than a second a figure */
#define PAPER_CPU_S (7.3 * 3600)
#define PAPER_GPU_S (4.6 * 60)
#define WIDTH (PATCH * PATCH * PATCH)
#define CHECKED 16u /* voxels that are computed by the definition */
#define PI 3.14159265358979323846

static const uint32_t dims[3] = {LINES, LINES, DEPTH};

struct bench {
    float *phi, *result, *distance;
    uint32_t *voxels, *number;
    uint32_t n;      /* voxels of the band */
    uint32_t n_full; /* of those that are searched for similar patches */
    struct oct_workers *workers;
    unsigned n_cores;
    double seconds;
    struct oct_bench_rows *rows;
};

static struct oct_bench_row *add(struct bench *b, const char *limit_is, const char *unit,
                                 double value, double limit, double goal)
{
    struct oct_bench_row *row = oct_bench_add(b->rows, "surfaces", limit_is, unit, goal);
    row->value = value;
    row->limit = limit;
    row->less_is_better = unit[1] == '\0'; /* "s" */
    return row;
}

static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

/* A sine sheet, normal noise of one voxel. */
static enum oct_err make_scene(struct bench *b, struct oct_error *err)
{
    float *heights = calloc((size_t)LINES * LINES, sizeof(*heights));
    uint64_t seed = 1;
    if (!heights)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a surface");
    for (int i = 0; i < LINES * LINES; i++) {
        const double noise = sqrt(-2 * log(uniform(&seed))) * cos(2 * PI * uniform(&seed));
        heights[i] =
            (float)(DEPTH / 2.0 + 5 * sin(i / LINES * 0.05) * cos(i % LINES * 0.04) + noise);
    }
    const enum oct_err e = oct_distance_of_heights(heights, dims, 8, b->workers, b->phi, err);
    free(heights);
    for (uint32_t i = 0; i < VOXELS && !e; i++)
        if (fabsf(b->phi[i]) <= DELTA)
            b->voxels[b->n++] = i;
    if (!e && b->n < BAND)
        return oct_fail(err, OCT_E_STATE, "a band of %u voxels is too small", b->n);
    return e;
}

static double value_at(const struct bench *b, int z, int y, int x)
{
    z = z < 0 ? 0 : z >= LINES ? LINES - 1 : z;
    y = y < 0 ? 0 : y >= LINES ? LINES - 1 : y;
    x = x < 0 ? 0 : x >= DEPTH ? DEPTH - 1 : x;
    return (double)b->phi[(z * LINES + y) * DEPTH + x];
}

/* D by its definition. */
static double difference(const struct bench *b, uint32_t u, uint32_t v)
{
    const int z = (int)u / DEPTH / LINES, y = (int)u / DEPTH % LINES, x = (int)u % DEPTH;
    const int r = (int)v / DEPTH / LINES, q = (int)v / DEPTH % LINES, p = (int)v % DEPTH;
    double sum = 0;
    for (int k = 0; k < WIDTH; k++) {
        const int i = k / PATCH / PATCH - PATCH / 2, j = k / PATCH % PATCH - PATCH / 2;
        const int d = k % PATCH - PATCH / 2;
        const double apart = value_at(b, z + i, y + j, x + d) - value_at(b, r + i, q + j, p + d);
        sum += apart * apart;
    }
    return sum;
}

/* ---- local weights ---- */

/* A voxel after one step, by the definition. */
static double moved(const struct bench *b, const struct oct_levelset_params *p, double c2,
                    uint32_t voxel)
{
    const int reach = (int)p->reach, z = (int)voxel / DEPTH / LINES;
    const int y = (int)voxel / DEPTH % LINES, x = (int)voxel % DEPTH;
    double sum = (double)b->phi[voxel], weights = 1;
    for (int r = z - reach; r <= z + reach; r++)
        for (int q = y - reach; q <= y + reach; q++)
            for (int d = x - reach; d <= x + reach; d++) {
                const int other = (r * LINES + q) * DEPTH + d;
                if (r < 0 || q < 0 || d < 0 || r >= LINES || q >= LINES || d >= DEPTH ||
                    other == (int)voxel || fabsf(b->phi[other]) > DELTA)
                    continue;
                const int away = (r - z) * (r - z) + (q - y) * (q - y) + (d - x) * (d - x);
                const double w = exp(-away / p->c1 - difference(b, voxel, (uint32_t)other) / c2);
                weights += w;
                sum += w * (double)b->phi[other];
            }
    return sum / weights;
}

static enum oct_err run_local(struct bench *b, unsigned steps, struct oct_levelset_setup *setup,
                              struct oct_levelset_report *report, struct oct_error *err)
{
    struct oct_levelset_engine *engine = NULL;
    *setup = (struct oct_levelset_setup){
        .dims = {LINES, LINES, DEPTH}, .workers = b->workers, .gpus = ""};
    oct_levelset_params_default(&setup->params, OCT_LEVELSET_PROFILE_LOCAL);
    setup->params.steps = steps;
    enum oct_err e = oct_levelset_cpu.create(&engine, setup, err);
    const unsigned least = b->seconds < 1 ? 1 : 3;
    double sum = 0, best = HUGE_VAL;
    for (unsigned i = 0; !e && (i < 1 || (steps > 1 && (i < least || sum < b->seconds))); i++) {
        e = oct_levelset_cpu.denoise(engine, b->phi, b->result, report, err);
        sum += report->seconds;
        best = fmin(best, report->seconds);
    }
    report->seconds = best;
    oct_levelset_cpu.destroy(engine);
    return e;
}

static enum oct_err bench_local(struct bench *b, struct oct_error *err)
{
    struct oct_levelset_setup setup;
    struct oct_levelset_report report;
    double worst = 0;
    enum oct_err e = run_local(b, 1, &setup, &report, err);
    for (unsigned i = 0; i < CHECKED && !e; i++) {
        const uint32_t voxel = b->voxels[(uint64_t)b->n * i / CHECKED];
        const double wanted = moved(b, &setup.params, report.c2, voxel);
        worst = fmax(worst, fabs((double)b->result[voxel] - wanted));
    }
    if (!e && !(worst <= 1e-5))
        e = oct_fail(err, OCT_E_STATE, "local weights: phi is %.2g voxel off", worst);
    if (!e)
        e = run_local(b, 2, &setup, &report, err);
    if (e)
        return e;
    struct oct_bench_row *row = add(b, "2 s", "s", report.seconds, 2, 1);
    snprintf(row->what, sizeof(row->what), "local, 240 x 240, %u core%s", b->n_cores,
             b->n_cores == 1 ? "" : "s");
    snprintf(row->note, sizeof(row->note), "%u voxels, %.2f Gpatch/s; phi within %.1g", b->n,
             (double)report.n_patches / report.seconds * 1e-9, worst);
    return OCT_OK;
}

/* ---- the whole band ---- */

/* What is kept has its D, and no more are nearer than the last. */
static enum oct_err check_search(const struct bench *b, struct oct_error *err)
{
    for (unsigned i = 0; i < CHECKED; i++) {
        const uint32_t query = (uint32_t)((uint64_t)b->n_full * i / CHECKED);
        const uint32_t *number = b->number + (size_t)query * MOST;
        const float *distance = b->distance + (size_t)query * MOST;
        unsigned n_nearer = 0;
        for (uint32_t k = 0; k < b->n_full; k++)
            n_nearer += k != query && difference(b, b->voxels[query], b->voxels[k]) <
                                          (double)distance[MOST - 1] * (1 - 1e-6);
        for (unsigned k = 0; k < MOST; k++) {
            const double d = difference(b, b->voxels[query], b->voxels[number[k]]);
            if (!(fabs((double)distance[k] - d) <= 1e-6 * d))
                return oct_fail(err, OCT_E_STATE, "voxel %u: D is %g, not %g", query, d,
                                (double)distance[k]);
        }
        if (n_nearer >= MOST)
            return oct_fail(err, OCT_E_STATE, "voxel %u: %u are nearer than the last of %u", query,
                            n_nearer, MOST);
    }
    return OCT_OK;
}

static void add_search(struct bench *b, double took_s, double cpu_s, double n_pairs)
{
    static const struct {
        const char *limit_is;
        double limit_s, goal;
    } limits[] = {{"60 s", 60, 1},
                  {"Lee 2012, GTX 480, 4.6 min", PAPER_GPU_S, 0},
                  {"Lee 2012, CPU, 7.3 h", PAPER_CPU_S, 0}};
    static const char *const sets[] = {"plain", "avx2", "avx512"};
    const char *simd = sets[oct_simd_choose("auto")];
    for (unsigned i = 0; i < 3; i++) {
        struct oct_bench_row *row =
            add(b, limits[i].limit_is, "s", took_s, limits[i].limit_s, limits[i].goal);
        snprintf(row->what, sizeof(row->what), "96 of %u,000 patches, %u core%s", b->n_full / 1000,
                 b->n_cores, b->n_cores == 1 ? "" : "s");
        if (i == 0)
            snprintf(row->note, sizeof(row->note), "%u voxels checked against all pairs", CHECKED);
    }
    struct oct_bench_row *row =
        add(b, "multiply-adds / 125", "Gpair/s", n_pairs / cpu_s * 1e-9,
            oct_bench_multiply_adds(simd, b->seconds / 4) / WIDTH * 1e-9, 0);
    snprintf(row->what, sizeof(row->what), "pairs of patches, %s, 1 core", simd);
    snprintf(row->note, sizeof(row->note), "%.1f s of CPU time; most are ruled out by bounds",
             cpu_s);
}

static enum oct_err bench_full(struct bench *b, struct oct_error *err)
{
    const struct oct_patch_search_setup setup = {.phi = b->phi,
                                                 .dims = dims,
                                                 .voxels = b->voxels,
                                                 .n = b->n_full,
                                                 .patch = PATCH,
                                                 .most = MOST,
                                                 .workers = b->workers};
    uint64_t n_pairs = 0;
    const double cpu_s = oct_bench_process_cpu_s();
    const uint64_t begin = oct_clock_ns();
    enum oct_err e = oct_patch_search(&setup, b->number, b->distance, &n_pairs, err);
    const double took_s = (double)(oct_clock_ns() - begin) * 1e-9;
    const double used_s = oct_bench_process_cpu_s() - cpu_s;
    if (!e)
        e = check_search(b, err);
    if (!e)
        add_search(b, took_s, used_s, (double)n_pairs);
    return e;
}

/* ---- a GPU ---- */

/* B-scans of the scene whose band is about that of the paper's. */
static uint32_t bscans_of_paper(const struct bench *b)
{
    return (uint32_t)((uint64_t)LINES * BAND / b->n);
}

/* The best of some calls, copies included; the first one warms up. */
static enum oct_err run_on(const struct oct_levelset_ops *ops,
                           const struct oct_levelset_setup *setup, const struct bench *b,
                           float *result, struct oct_levelset_report *report, double *took_s,
                           struct oct_error *err)
{
    struct oct_levelset_engine *engine = NULL;
    enum oct_err e = ops->create(&engine, setup, err);
    double sum = 0;
    *took_s = HUGE_VAL;
    for (unsigned i = 0; !e && (i < 4 || (sum < b->seconds && i < 100)); i++) {
        const uint64_t begin = oct_clock_ns();
        e = ops->denoise(engine, b->phi, result, report, err);
        const double each_s = (double)(oct_clock_ns() - begin) * 1e-9;
        *took_s = i > 0 ? fmin(*took_s, each_s) : *took_s;
        sum += each_s;
    }
    if (engine)
        ops->destroy(engine);
    return e;
}

static double worst_of(const float *a, const float *b, size_t n)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    return worst;
}

/* Of FULL, voxels whose last neighbours are as good as equal may differ by more than rounding. */
static enum oct_err bench_gpu(struct bench *b, const char *gpus, enum oct_levelset_profile profile,
                              struct oct_error *err)
{
    const bool local = profile == OCT_LEVELSET_PROFILE_LOCAL;
    struct oct_levelset_setup setup = {.dims = {local ? LINES : bscans_of_paper(b), LINES, DEPTH},
                                       .workers = b->workers,
                                       .gpus = gpus};
    const size_t n = (size_t)setup.dims[0] * LINES * DEPTH;
    struct oct_levelset_report report;
    double took_s, most = local ? 1e-5 : 1e-3;
    float *judge = malloc(n * sizeof(*judge));
    if (!judge)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for surfaces");
    oct_levelset_params_default(&setup.params, profile);
    enum oct_err e = run_on(&oct_levelset_cuda, &setup, b, b->result, &report, &took_s, err);
    struct oct_levelset_engine *cpu = NULL;
    if (!e)
        e = oct_levelset_cpu.create(&cpu, &setup, err);
    if (!e)
        e = oct_levelset_cpu.denoise(cpu, b->phi, judge, NULL, err);
    oct_levelset_cpu.destroy(cpu);
    const double worst = e ? 0 : worst_of(judge, b->result, n);
    free(judge);
    if (!e && !(worst <= most))
        e = oct_fail(err, OCT_E_STATE, "a GPU's phi is %.2g voxel from the CPU's", worst);
    if (e)
        return e;
    struct oct_bench_row *row = add(b, local ? "20 ms" : "1 s", "s", took_s, local ? 0.02 : 1, 1);
    snprintf(row->what, sizeof(row->what), "%s, %u x %u, GPU, copies too", local ? "local" : "full",
             setup.dims[0], setup.dims[1]);
    snprintf(row->note, sizeof(row->note),
             "%llu voxels, %.2f Gpatch/s; phi within %.1g of the CPU's",
             (unsigned long long)report.n_band, (double)report.n_patches / took_s * 1e-9, worst);
    return OCT_OK;
}

/* ---- putting it together ---- */

enum oct_err oct_bench_surfaces(const struct oct_config *config,
                                const struct oct_bench_options *options,
                                struct oct_bench_rows *rows, struct oct_error *err)
{
    struct bench b = {.phi = calloc(VOXELS, sizeof(float)),
                      .result = calloc(VOXELS, sizeof(float)),
                      .voxels = calloc(VOXELS, sizeof(uint32_t)),
                      .number = calloc((size_t)BAND * MOST, sizeof(uint32_t)),
                      .distance = calloc((size_t)BAND * MOST, sizeof(float)),
                      .n_cores = oct_bench_n_cores(),
                      .n_full = options->seconds < 1 ? SHORT_BAND : BAND,
                      .seconds = options->seconds,
                      .rows = rows};
    enum oct_err e = OCT_OK;
    if (!b.phi || !b.result || !b.voxels || !b.number || !b.distance)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for surfaces");
    if (!e && b.n_cores > 1)
        e = oct_workers_create(&b.workers, b.n_cores - 1, err);
    if (!e)
        e = make_scene(&b, err);
    if (!e)
        e = bench_local(&b, err);
    if (!e)
        e = bench_full(&b, err);
    if (!e && strcmp(oct_config_backend_names[config->pipeline.backend], "cuda") == 0) {
        e = bench_gpu(&b, config->pipeline.gpus, OCT_LEVELSET_PROFILE_LOCAL, err);
        if (!e)
            e = bench_gpu(&b, config->pipeline.gpus, OCT_LEVELSET_PROFILE_FULL, err);
    }
    oct_workers_destroy(b.workers);
    free(b.phi);
    free(b.result);
    free(b.voxels);
    free(b.number);
    free(b.distance);
    return e ? e : oct_bench_surfaces_live(config, options, rows, err);
}
