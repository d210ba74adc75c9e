#include "test/rig/levelset_oracle.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct voxel {
    int b, j, d;
    size_t at;
};

struct pair {
    double distance;
    uint32_t y;
};

struct run {
    struct oct_levelset_oracle *o;
    struct voxel *voxels;
    uint32_t n;
    double *patches; /* [n][patch^3] */
    unsigned n_patch;
    struct pair **pairs; /* [n][n_pairs], ascending */
    uint32_t *n_pairs;
};

static int clamped(int i, uint32_t n)
{
    return i < 0 ? 0 : i >= (int)n ? (int)n - 1 : i;
}

static void *get(size_t n, size_t size)
{
    void *memory = calloc(n + 1, size);
    assert(memory);
    return memory;
}

static void find_band(struct run *r)
{
    const uint32_t *dims = r->o->dims;
    size_t at = 0;
    r->voxels = get((size_t)dims[0] * dims[1] * dims[2], sizeof(*r->voxels));
    for (int b = 0; b < (int)dims[0]; b++)
        for (int j = 0; j < (int)dims[1]; j++)
            for (int d = 0; d < (int)dims[2]; d++, at++)
                if (fabsf(r->o->phi[at]) <= (float)r->o->params.delta)
                    r->voxels[r->n++] = (struct voxel){b, j, d, at};
}

static void cut_patches(struct run *r)
{
    const uint32_t *dims = r->o->dims;
    const int half = (int)r->o->params.patch / 2;
    r->n_patch = r->o->params.patch * r->o->params.patch * r->o->params.patch;
    r->patches = get((size_t)r->n * r->n_patch, sizeof(*r->patches));
    double *to = r->patches;
    for (uint32_t i = 0; i < r->n; i++)
        for (int b = -half; b <= half; b++)
            for (int j = -half; j <= half; j++)
                for (int d = -half; d <= half; d++) {
                    const size_t pb = (size_t)clamped(r->voxels[i].b + b, dims[0]);
                    const size_t pj = (size_t)clamped(r->voxels[i].j + j, dims[1]);
                    const size_t pd = (size_t)clamped(r->voxels[i].d + d, dims[2]);
                    *to++ = (double)r->o->phi[(pb * dims[1] + pj) * dims[2] + pd];
                }
}

static double difference(const struct run *r, uint32_t x, uint32_t y)
{
    const double *a = r->patches + (size_t)x * r->n_patch;
    const double *b = r->patches + (size_t)y * r->n_patch;
    double sums[8] = {0}; /* of which the compiler makes vectors */
    unsigned i = 0;
    for (; i + 8 <= r->n_patch; i += 8)
        for (unsigned k = 0; k < 8; k++)
            sums[k] += (a[i + k] - b[i + k]) * (a[i + k] - b[i + k]);
    for (; i < r->n_patch; i++)
        sums[0] += (a[i] - b[i]) * (a[i] - b[i]);
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

static bool is_candidate(const struct run *r, uint32_t x, uint32_t y)
{
    const struct voxel *a = r->voxels + x, *b = r->voxels + y;
    const int reach = (int)r->o->params.reach;
    if (x == y)
        return false;
    if (r->o->params.weights == OCT_LEVELSET_FULL)
        return true;
    return abs(a->b - b->b) <= reach && abs(a->j - b->j) <= reach && abs(a->d - b->d) <= reach;
}

static int by_distance(const void *a, const void *b)
{
    const struct pair *p = a, *q = b;
    if (p->distance != q->distance)
        return p->distance < q->distance ? -1 : 1;
    return (p->y > q->y) - (p->y < q->y);
}

/* FULL keeps those of least D; equal ones are sorted as they come in the raster. */
static void find_pairs(struct run *r, uint32_t x)
{
    const struct oct_levelset_params *p = &r->o->params;
    struct pair *all = get(r->n, sizeof(*all));
    uint32_t n = 0;
    for (uint32_t y = 0; y < r->n; y++)
        if (is_candidate(r, x, y))
            all[n++] = (struct pair){difference(r, x, y), y};
    r->o->n_pairs += n;
    qsort(all, n, sizeof(*all), by_distance);
    if (p->weights == OCT_LEVELSET_FULL && n > p->most)
        r->o->unsure[r->voxels[x].at] =
            all[p->most].distance - all[p->most - 1].distance <= 1e-5 * all[p->most].distance;
    r->pairs[x] = all;
    r->n_pairs[x] = n;
}

static int ascending(const void *a, const void *b)
{
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

static double find_base(const struct run *r)
{
    const unsigned rank = r->o->params.rank;
    double *values = get(r->n, sizeof(*values));
    uint32_t n = 0;
    for (uint32_t x = 0; x < r->n; x++)
        if (r->n_pairs[x] >= rank)
            values[n++] = r->pairs[x][rank - 1].distance;
    qsort(values, n, sizeof(*values), ascending);
    const double base = n > 0 ? (values[(n - 1) / 2] + values[n / 2]) / 2 : 0;
    free(values);
    return base;
}

/* sum w and sum w phi of voxel x. */
static void add_up(const struct run *r, uint32_t x, double *weights, double *sum)
{
    const struct oct_levelset_params *p = &r->o->params;
    const struct voxel *a = r->voxels + x;
    uint32_t n = r->n_pairs[x];
    if (p->weights == OCT_LEVELSET_FULL && n > p->most)
        n = p->most;
    *weights = *sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct voxel *b = r->voxels + r->pairs[x][i].y;
        const double square = pow(a->b - b->b, 2) + pow(a->j - b->j, 2) + pow(a->d - b->d, 2);
        const double w = exp(-square / p->c1) * exp(-r->pairs[x][i].distance / r->o->c2);
        *weights += w;
        *sum += w * r->o->result[b->at];
    }
}

static void step(struct run *r)
{
    const bool common = r->o->params.common_step;
    double *weights = get(r->n, sizeof(*weights)), *sum = get(r->n, sizeof(*sum));
    r->o->largest_sum = 0;
    for (uint32_t x = 0; x < r->n; x++) {
        add_up(r, x, &weights[x], &sum[x]);
        r->o->largest_sum = fmax(r->o->largest_sum, weights[x]);
    }
    for (uint32_t x = 0; x < r->n && r->o->largest_sum > 0; x++) {
        double *phi = &r->o->result[r->voxels[x].at];
        *phi = common ? *phi + (sum[x] - weights[x] * *phi) / r->o->largest_sum
                      : (*phi + sum[x]) / (1 + weights[x]);
    }
    free(weights);
    free(sum);
}

void oct_levelset_oracle_run(struct oct_levelset_oracle *oracle)
{
    const size_t n = (size_t)oracle->dims[0] * oracle->dims[1] * oracle->dims[2];
    struct run r = {.o = oracle};
    oracle->result = get(n, sizeof(*oracle->result));
    oracle->unsure = get(n, sizeof(*oracle->unsure));
    oracle->n_pairs = 0;
    for (size_t i = 0; i < n; i++)
        oracle->result[i] = (double)oracle->phi[i];
    find_band(&r);
    cut_patches(&r);
    oracle->n_band = r.n;
    r.pairs = get(r.n, sizeof(struct pair *));
    r.n_pairs = get(r.n, sizeof(*r.n_pairs));
    for (uint32_t x = 0; x < r.n; x++)
        find_pairs(&r, x);
    oracle->base = find_base(&r);
    oracle->c2 = oracle->params.c2 > 0 ? oracle->params.c2 : oracle->params.beta * oracle->base;
    for (unsigned i = 0; i < oracle->params.steps && oracle->c2 > 0; i++)
        step(&r);
    oracle->n_unsure = 0;
    for (size_t i = 0; i < n; i++)
        oracle->n_unsure += oracle->unsure[i];
    for (uint32_t x = 0; x < r.n; x++)
        free(r.pairs[x]);
    free(r.pairs);
    free(r.n_pairs);
    free(r.patches);
    free(r.voxels);
}

void oct_levelset_oracle_finish(struct oct_levelset_oracle *oracle)
{
    free(oracle->result);
    free(oracle->unsure);
}
