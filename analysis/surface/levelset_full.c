#include "analysis/surface/levelset_band.h"
#include "analysis/surface/patch_search.h"
#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 2048u /* voxels */
#define NONE UINT32_MAX

struct oct_levelset_band {
    struct oct_levelset_setup setup;
    unsigned most; /* that are looked for: m, or the rank where that is more */

    uint32_t n;
    uint32_t *voxels;          /* [n] raster indices */
    float *now, *sum, *weight; /* [n] */
    uint32_t *number;          /* [n][most] */
    float *distance;           /* [n][most] D */
    uint64_t n_patches;

    double c2, dt; /* of a run */
};

static void drop_band(struct oct_levelset_band *l)
{
    free(l->voxels);
    free(l->now);
    free(l->sum);
    free(l->weight);
    free(l->number);
    free(l->distance);
    l->voxels = l->number = NULL;
    l->now = l->sum = l->weight = l->distance = NULL;
}

static void destroy(struct oct_levelset_band *l)
{
    if (!l)
        return;
    drop_band(l);
    free(l);
}

static enum oct_err create(struct oct_levelset_band **band, const struct oct_levelset_setup *setup,
                           struct oct_error *err)
{
    const struct oct_levelset_params *p = &setup->params;
    struct oct_levelset_band *l = calloc(1, sizeof(*l));
    *band = l;
    if (!l)
        return oct_fail(err, OCT_E_NO_MEMORY, "level set: out of memory");
    l->setup = *setup;
    l->most = p->c2 > 0 || p->most >= p->rank ? p->most : p->rank;
    return OCT_OK;
}

/* ---- the band ---- */

static uint64_t count_band(const float *phi, uint64_t n_voxels, float delta)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < n_voxels; i++)
        n += oct_levelset_in_band(phi[i], delta);
    return n;
}

static bool allocate(struct oct_levelset_band *l, size_t n)
{
    l->voxels = calloc(n, sizeof(*l->voxels));
    l->now = calloc(n, sizeof(*l->now));
    l->sum = calloc(n, sizeof(*l->sum));
    l->weight = calloc(n, sizeof(*l->weight));
    l->number = calloc(n, l->most * sizeof(*l->number));
    l->distance = calloc(n, l->most * sizeof(*l->distance));
    return l->voxels && l->now && l->sum && l->weight && l->number && l->distance;
}

static enum oct_err load(struct oct_levelset_band *l, const float *phi,
                         struct oct_levelset_report *counts, struct oct_error *err)
{
    const uint32_t *dims = l->setup.dims;
    const uint64_t n_voxels = (uint64_t)dims[0] * dims[1] * dims[2];
    const float delta = (float)l->setup.params.delta;
    const uint64_t n = count_band(phi, n_voxels, delta);
    drop_band(l);
    l->n = 0;
    counts->n_band = n;
    if (n == 0)
        return OCT_OK;
    if (n > OCT_PATCH_SEARCH_MOST_VOXELS)
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "level set: a band of %llu voxels; full weights take %u at most",
                        (unsigned long long)n, OCT_PATCH_SEARCH_MOST_VOXELS);
    if (!allocate(l, n)) {
        drop_band(l);
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "level set: out of memory for a band of %llu voxels, which takes %llu MB",
                        (unsigned long long)n,
                        (unsigned long long)(n * (16 + 8 * (uint64_t)l->most) / 1000000));
    }
    for (uint64_t i = 0; i < n_voxels; i++)
        if (oct_levelset_in_band(phi[i], delta)) {
            l->voxels[l->n] = (uint32_t)i;
            l->now[l->n++] = phi[i];
        }
    const struct oct_patch_search_setup search = {
        .phi = phi,
        .dims = dims,
        .voxels = l->voxels,
        .n = l->n,
        .patch = l->setup.params.patch,
        .most = l->most,
        .workers = l->setup.workers,
    };
    return oct_patch_search(&search, l->number, l->distance, &l->n_patches, err);
}

static double base(struct oct_levelset_band *l)
{
    const unsigned rank = l->setup.params.rank;
    uint64_t n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const size_t at = (size_t)i * l->most + rank - 1;
        if (l->number[at] != NONE)
            l->sum[n++] = l->distance[at];
    }
    return oct_levelset_median(l->sum, n);
}

/* ---- steps ---- */

/* |x - y|^2 of two raster indices. */
static double far(const uint32_t *dims, uint32_t x, uint32_t y)
{
    const uint32_t row = dims[2], plane = dims[1] * dims[2];
    const double b = (double)(x / plane) - (double)(y / plane);
    const double j = (double)(x % plane / row) - (double)(y % plane / row);
    const double d = (double)(x % row) - (double)(y % row);
    return b * b + j * j + d * d;
}

static void sum_piece(void *context, unsigned piece, unsigned worker)
{
    struct oct_levelset_band *l = context;
    const struct oct_levelset_params *p = &l->setup.params;
    const uint32_t first = piece * PIECE, end = l->n - first < PIECE ? l->n : first + PIECE;
    (void)worker;
    for (uint32_t x = first; x < end; x++) {
        double sum = 0, weights = 0;
        for (size_t i = (size_t)x * l->most; i < (size_t)x * l->most + p->most; i++) {
            const uint32_t y = l->number[i];
            if (y == NONE)
                break;
            const double near =
                isfinite(p->c1) ? far(l->setup.dims, l->voxels[x], l->voxels[y]) / p->c1 : 0;
            const double w = exp(-near - (double)l->distance[i] / l->c2);
            sum += w * ((double)l->now[y] - (double)l->now[x]);
            weights += w;
        }
        l->sum[x] = (float)sum;
        l->weight[x] = (float)weights;
    }
}

static unsigned n_pieces(const struct oct_levelset_band *l)
{
    return l->n / PIECE + (l->n % PIECE > 0);
}

static double sums(struct oct_levelset_band *l, double c2, struct oct_levelset_report *counts)
{
    float largest = 0;
    l->c2 = c2;
    counts->n_patches = l->n > 0 ? l->n_patches : 0;
    if (l->n > 0)
        oct_workers_run(l->setup.workers, n_pieces(l), sum_piece, l);
    for (uint32_t i = 0; i < l->n; i++)
        largest = l->weight[i] > largest ? l->weight[i] : largest;
    return (double)largest;
}

static void move(struct oct_levelset_band *l, double dt)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const double share = dt > 0 ? dt : 1 / (1 + (double)l->weight[i]);
        l->now[i] = (float)((double)l->now[i] + share * (double)l->sum[i]);
    }
}

static void result(const struct oct_levelset_band *l, float *phi)
{
    for (uint32_t i = 0; i < l->n; i++)
        phi[l->voxels[i]] = l->now[i];
}

const struct oct_levelset_band_ops oct_levelset_full = {
    .create = create,
    .load = load,
    .base = base,
    .sums = sums,
    .move = move,
    .result = result,
    .destroy = destroy,
};
