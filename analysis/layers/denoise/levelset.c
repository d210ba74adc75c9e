#include "analysis/layers/denoise/levelset.h"

#include "analysis/layers/denoise/levelset_band.h"
#include "analysis/layers/denoise/patch_search.h"
#include "kernels/device/workers.h"
#include "numeric/order.h"
#include "pipeline/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 2048u /* voxels */
#define NONE UINT32_MAX

/* ---- parameters ---- */

void oct_levelset_params_default(struct oct_levelset_params *params,
                                 enum oct_levelset_profile profile)
{
    const bool local = profile == OCT_LEVELSET_PROFILE_LOCAL;
    *params = (struct oct_levelset_params){
        .weights = local ? OCT_LEVELSET_LOCAL : OCT_LEVELSET_FULL,
        .delta = 2.5,
        .patch = 5,
        .reach = 4,
        .most = 96,
        .c1 = local ? 20 : INFINITY,
        .beta = 0.5,
        .rank = 24,
        .steps = 2,
        .common_step = profile == OCT_LEVELSET_PROFILE_PAPER,
    };
}

#define REQUIRE(condition, ...)                                                                    \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return oct_fail(err, OCT_E_ARG, "level set: " __VA_ARGS__);                            \
    } while (0)

enum oct_err oct_levelset_params_check(const struct oct_levelset_params *p, struct oct_error *err)
{
    const bool is_local = p->weights == OCT_LEVELSET_LOCAL;
    const bool is_full = p->weights == OCT_LEVELSET_FULL;
    REQUIRE(p->delta >= 0.5 && p->delta <= 16, "delta is %g voxels; give 0.5 to 16", p->delta);
    REQUIRE(p->patch == 3 || p->patch == 5 || p->patch == 7, "patches of %u voxels; give 3, 5 or 7",
            p->patch);
    REQUIRE(p->steps >= 1 && p->steps <= 100, "%u steps; give 1 to 100", p->steps);
    REQUIRE(is_local || is_full, "weights are local or full");
    REQUIRE(!is_local || (p->reach >= 1 && p->reach <= 8), "a reach of %u voxels; give 1 to 8",
            p->reach);
    REQUIRE(!is_full || (p->most >= 24 && p->most <= 512), "%u patches; give 24 to 512", p->most);
    REQUIRE(p->rank >= 1 && p->rank <= 96, "rank %u; give 1 to 96", p->rank);
    REQUIRE(p->c1 > 0, "c1 is %g; give more than 0", p->c1);
    REQUIRE(p->beta > 0 && isfinite(p->beta), "beta is %g; give more than 0", p->beta);
    REQUIRE(p->c2 >= 0 && isfinite(p->c2),
            "c2 is %g; give more than 0, or 0 for beta times what the data say", p->c2);
    return OCT_OK;
}

enum oct_err oct_levelset_setup_check(const struct oct_levelset_setup *setup, struct oct_error *err)
{
    const uint32_t *dims = setup->dims;
    const enum oct_err e = oct_levelset_params_check(&setup->params, err);
    if (e != OCT_OK)
        return e;
    for (unsigned i = 0; i < 3; i++)
        REQUIRE(dims[i] >= setup->params.patch && dims[i] < 16384,
                "a box of %u x %u x %u voxels; give sides of %u to 16383", dims[0], dims[1],
                dims[2], setup->params.patch);
    REQUIRE((uint64_t)dims[0] * dims[1] * dims[2] < OCT_LEVELSET_MOST_VOXELS,
            "a box of %u x %u x %u voxels; fewer than %llu go", dims[0], dims[1], dims[2],
            (unsigned long long)OCT_LEVELSET_MOST_VOXELS);
    return OCT_OK;
}

/* ---- the CPU's engine ---- */

struct oct_levelset_engine {
    struct oct_levelset_setup setup;
    struct oct_levelset_tiles *tiles; /* LOCAL; else NULL */
    struct oct_levelset_band band;
    unsigned most;    /* FULL: of a list: m, or the rank where that is more */
    uint32_t *number; /* [n][most] in the band, by rising D */
    float *distance;  /* [n][most] D */
    uint64_t n_patches;
    double c2;
};

static void cpu_destroy(struct oct_levelset_engine *l)
{
    if (!l)
        return;
    oct_levelset_tiles_destroy(l->tiles);
    free(l);
}

static enum oct_err cpu_create(struct oct_levelset_engine **engine,
                               const struct oct_levelset_setup *setup, struct oct_error *err)
{
    const struct oct_levelset_params *p = &setup->params;
    *engine = NULL;
    enum oct_err e = oct_levelset_setup_check(setup, err);
    if (e != OCT_OK)
        return e;
    struct oct_levelset_engine *l = calloc(1, sizeof(*l));
    if (!l)
        return oct_fail(err, OCT_E_NO_MEMORY, "level set: out of memory");
    l->setup = *setup;
    l->most = p->c2 > 0 || p->most >= p->rank ? p->most : p->rank;
    if (p->weights == OCT_LEVELSET_LOCAL)
        e = oct_levelset_tiles_create(&l->tiles, setup, err);
    if (e != OCT_OK)
        cpu_destroy(l);
    else
        *engine = l;
    return e;
}

bool oct_levelset_cpu_use(struct oct_levelset_engine *l, const char *simd)
{
    return oct_levelset_tiles_use(l->tiles, simd);
}

/* ---- the band ---- */

static void close_band(struct oct_levelset_engine *l)
{
    free(l->band.voxels);
    free(l->band.now);
    free(l->band.sum);
    free(l->band.weight);
    free(l->number);
    free(l->distance);
    l->number = NULL;
    l->distance = NULL;
    l->band = (struct oct_levelset_band){0};
}

static bool allocate_band(struct oct_levelset_engine *l, size_t n)
{
    struct oct_levelset_band *b = &l->band;
    const size_t n_listed = l->tiles ? 0 : n * l->most;
    b->voxels = calloc(n, sizeof(*b->voxels));
    b->now = calloc(n, sizeof(*b->now));
    b->sum = calloc(n, sizeof(*b->sum));
    b->weight = calloc(n, sizeof(*b->weight));
    l->number = calloc(n_listed + 1, sizeof(*l->number));
    l->distance = calloc(n_listed + 1, sizeof(*l->distance));
    return b->voxels && b->now && b->sum && b->weight && l->number && l->distance;
}

/* In raster order, and the lists of FULL. */
static enum oct_err list_patches(struct oct_levelset_engine *l, const float *phi, uint64_t n_voxels,
                                 struct oct_error *err)
{
    struct oct_levelset_band *b = &l->band;
    const float delta = (float)l->setup.params.delta;
    uint32_t n = 0;
    for (uint64_t i = 0; i < n_voxels; i++)
        if (oct_levelset_in_band(phi[i], delta)) {
            b->voxels[n] = (uint32_t)i;
            b->now[n++] = phi[i];
        }
    const struct oct_patch_search_setup search = {
        .phi = phi,
        .dims = l->setup.dims,
        .voxels = b->voxels,
        .n = n,
        .patch = l->setup.params.patch,
        .most = l->most,
        .workers = l->setup.workers,
    };
    return oct_patch_search(&search, l->number, l->distance, &l->n_patches, err);
}

static enum oct_err open_band(struct oct_levelset_engine *l, const float *phi, uint64_t n_voxels,
                              struct oct_error *err)
{
    const float delta = (float)l->setup.params.delta;
    uint64_t n = 0;
    for (uint64_t i = 0; i < n_voxels; i++)
        n += oct_levelset_in_band(phi[i], delta);
    if (n == 0)
        return OCT_OK;
    if (!l->tiles && n > OCT_PATCH_SEARCH_MOST_VOXELS)
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "level set: a band of %llu voxels; full weights take %u at most",
                        (unsigned long long)n, OCT_PATCH_SEARCH_MOST_VOXELS);
    if (!allocate_band(l, n))
        return oct_fail(
            err, OCT_E_NO_MEMORY,
            "level set: out of memory for a band of %llu voxels, which takes %llu MB",
            (unsigned long long)n,
            (unsigned long long)(n * (16 + (l->tiles ? 0 : 8 * (uint64_t)l->most)) / 1000000));
    l->band.n = (uint32_t)n;
    return l->tiles ? oct_levelset_tiles_load(l->tiles, phi, &l->band, err)
                    : list_patches(l, phi, n_voxels, err);
}

/* ---- weights ---- */

/* The median of the rank-th smallest D; 0 without a voxel that has one. */
static double base_of(struct oct_levelset_engine *l)
{
    const unsigned rank = l->setup.params.rank;
    float *ranked = l->band.sum;
    uint64_t n = 0;
    if (l->tiles)
        oct_levelset_tiles_pass(l->tiles, &l->band, rank, 0);
    for (uint32_t x = 0; x < l->band.n; x++) {
        const size_t at = (size_t)x * l->most + rank - 1;
        const float d = l->tiles ? ranked[x] : l->number[at] == NONE ? NAN : l->distance[at];
        if (!isnan(d))
            ranked[n++] = d;
    }
    if (n == 0)
        return 0;
    const double low = (double)oct_floats_select(ranked, n, (n - 1) / 2);
    return (low + (double)oct_floats_select(ranked, n, n / 2)) / 2;
}

/* |x - y|^2 of two raster indices. */
static double far(const uint32_t *dims, uint32_t x, uint32_t y)
{
    const uint32_t row = dims[2], plane = dims[1] * dims[2];
    const double b = (double)(x / plane) - (double)(y / plane);
    const double j = (double)(x % plane / row) - (double)(y % plane / row);
    const double d = (double)(x % row) - (double)(y % row);
    return b * b + j * j + d * d;
}

static void weigh_piece(void *context, unsigned piece, unsigned worker)
{
    struct oct_levelset_engine *l = context;
    const struct oct_levelset_params *p = &l->setup.params;
    const struct oct_levelset_band *band = &l->band;
    (void)worker;
    for (uint32_t x = piece * PIECE; x < band->n && x / PIECE == piece; x++) {
        double sum = 0, weights = 0;
        for (size_t i = (size_t)x * l->most; i < (size_t)x * l->most + p->most; i++) {
            const uint32_t y = l->number[i];
            if (y == NONE)
                break;
            const double near =
                isfinite(p->c1) ? far(l->setup.dims, band->voxels[x], band->voxels[y]) / p->c1 : 0;
            const double w = exp(-near - (double)l->distance[i] / l->c2);
            sum += w * ((double)band->now[y] - (double)band->now[x]);
            weights += w;
        }
        band->sum[x] = (float)sum;
        band->weight[x] = (float)weights;
    }
}

/* Sums of what the last step left. */
static void weigh(struct oct_levelset_engine *l, struct oct_levelset_report *report)
{
    float largest = 0;
    l->c2 = report->c2;
    report->n_patches = l->n_patches;
    if (l->tiles)
        report->n_patches = oct_levelset_tiles_pass(l->tiles, &l->band, 0, l->c2);
    else
        oct_workers_run(l->setup.workers, (l->band.n + PIECE - 1) / PIECE, weigh_piece, l);
    for (uint32_t x = 0; x < l->band.n; x++)
        largest = l->band.weight[x] > largest ? l->band.weight[x] : largest;
    report->largest_sum = (double)largest;
}

/* dt 0: each voxel its own. */
static void step(struct oct_levelset_engine *l, double dt)
{
    const float *sum = l->band.sum, *weight = l->band.weight;
    float *now = l->band.now;
    for (uint32_t x = 0; x < l->band.n; x++)
        if (l->tiles)
            now[x] += sum[x] * (dt > 0 ? (float)dt : 1 / (1 + weight[x]));
        else
            now[x] = (float)((double)now[x] +
                             (dt > 0 ? dt : 1 / (1 + (double)weight[x])) * (double)sum[x]);
}

static void denoise_band(struct oct_levelset_engine *l, struct oct_levelset_report *report)
{
    const struct oct_levelset_params *p = &l->setup.params;
    report->c2 = p->c2;
    if (l->band.n == 0)
        return;
    if (!(p->c2 > 0)) {
        report->base = base_of(l);
        report->c2 = p->beta * report->base;
    }
    for (unsigned i = 0; i < p->steps && report->c2 > 0; i++) {
        weigh(l, report);
        if (!(report->largest_sum > 0))
            return;
        step(l, p->common_step ? 1 / report->largest_sum : 0);
    }
}

static enum oct_err cpu_denoise(struct oct_levelset_engine *l, const float *phi, float *result,
                                struct oct_levelset_report *report, struct oct_error *err)
{
    const uint64_t begin = oct_clock_ns();
    const uint32_t *dims = l->setup.dims;
    const uint64_t n = (uint64_t)dims[0] * dims[1] * dims[2];
    struct oct_levelset_report found = {0};
    float product = 0; /* what is not finite times 0 is not 0 */
    for (uint64_t i = 0; i < n; i++)
        product += phi[i] * 0;
    if (!(product == 0))
        return oct_fail(err, OCT_E_ARG, "level set: a distance is not a finite number");
    enum oct_err e = open_band(l, phi, n, err);
    if (e == OCT_OK) {
        found.n_band = l->band.n;
        denoise_band(l, &found);
        if (result != phi)
            memcpy(result, phi, n * sizeof(*phi));
        for (uint32_t x = 0; x < l->band.n; x++)
            result[l->band.voxels[x]] = l->band.now[x];
        found.seconds = (double)(oct_clock_ns() - begin) * 1e-9;
        if (report)
            *report = found;
    }
    close_band(l);
    return e;
}

const struct oct_levelset_ops oct_levelset_cpu = {
    .name = "cpu",
    .create = cpu_create,
    .denoise = cpu_denoise,
    .destroy = cpu_destroy,
};
