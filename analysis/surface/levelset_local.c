#include "analysis/surface/levelset_local.h"

#include "analysis/surface/levelset_band.h"
#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64
#define LANES OCT_LEVELSET_LANES
#define MOST_OFFSETS ((17 * 17 * 17 - 1) / 2)

/* What is found of each tile. */
struct found {
    uint64_t n_pairs;
    float largest;
};

struct oct_levelset_band {
    struct oct_levelset_setup setup;
    const struct oct_levelset_passes *passes;
    struct oct_levelset_grid grid;
    unsigned n_workers;
    float *phi, *now; /* [border + n_b + border][border + n_j + border][row], of grid */
    size_t n_padded;  /* floats of either */
    int32_t border;
    int8_t offsets[MOST_OFFSETS][3];
    uint32_t n_offsets;
    float *scratch; /* [n_workers][n_scratch] */
    size_t n_scratch;
    float *smallest;          /* [n_workers][tile's most segments][rank][16] */
    uint32_t n_tile_segments; /* the most of a tile */

    /* Of the band. */
    uint32_t n_segments, n_tiles;
    uint64_t n_voxels;
    struct oct_levelset_segment *segments; /* [n_segments], by tiles */
    struct oct_levelset_tile *tiles;
    struct found *found; /* [n_tiles] */
    float *sums;         /* [n_segments][2][16] */

    /* Of a run. */
    const float *source;
    double c2, dt;
};

/* ---- life ---- */

size_t oct_levelset_scratch_floats(int32_t patch, int32_t reach)
{
    const size_t side = (size_t)OCT_LEVELSET_SIDE + (size_t)reach;
    const size_t depth =
        (size_t)OCT_LEVELSET_CHUNK + 2 * (size_t)LANES + (size_t)reach + (size_t)patch - 1;
    return side * (side + (size_t)patch - 1) * depth;
}

static int by_distance(const void *a, const void *b)
{
    const int8_t *p = a, *q = b;
    const int n = p[0] * p[0] + p[1] * p[1] + p[2] * p[2];
    const int m = q[0] * q[0] + q[1] * q[1] + q[2] * q[2];
    return n != m ? (n > m) - (n < m) : memcmp(p, q, 3);
}

/* Near ones first: they are mostly the similar ones, and the list of the smallest D rests soon. */
static void list_offsets(struct oct_levelset_band *l)
{
    const int r = l->grid.reach;
    l->n_offsets = 0;
    for (int b = 0; b <= r; b++)
        for (int j = b > 0 ? -r : 0; j <= r; j++)
            for (int d = b > 0 || j > 0 ? -r : 1; d <= r; d++) {
                int8_t *o = l->offsets[l->n_offsets++];
                o[0] = (int8_t)b;
                o[1] = (int8_t)j;
                o[2] = (int8_t)d;
            }
    qsort(l->offsets, l->n_offsets, sizeof(*l->offsets), by_distance);
}

bool oct_levelset_local_use(struct oct_levelset_band *l, const char *simd)
{
    static const struct oct_levelset_passes *const sets[OCT_N_SIMD + 1] = {
        OCT_SIMD_ALL(oct_levelset_passes)};
    l->passes = sets[oct_simd_choose(simd)];
    return l->passes != NULL;
}

static void destroy(struct oct_levelset_band *l)
{
    if (!l)
        return;
    free(l->phi);
    free(l->now);
    free(l->scratch);
    free(l->smallest);
    free(l->segments);
    free(l->tiles);
    free(l->found);
    free(l->sums);
    free(l);
}

static enum oct_err create(struct oct_levelset_band **band, const struct oct_levelset_setup *setup,
                           struct oct_error *err)
{
    struct oct_levelset_band *l = calloc(1, sizeof(*l));
    const uint32_t *dims = setup->dims;
    const size_t border = setup->params.patch / 2 + 2 * (size_t)setup->params.reach;
    const size_t row = (border + dims[2] + border + 3 * LANES) / LANES * LANES;
    const size_t plane = (dims[1] + 2 * border) * row;
    const size_t n = (dims[0] + 2 * border) * plane;
    *band = l;
    if (!l)
        goto fail;
    l->setup = *setup;
    oct_levelset_local_use(l, "auto");
    l->n_workers = setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1;
    l->border = (int32_t)border;
    l->n_padded = n;
    l->n_scratch =
        oct_levelset_scratch_floats((int32_t)setup->params.patch, (int32_t)setup->params.reach);
    l->phi = oct_aligned_alloc(ALIGNMENT, n, sizeof(float));
    l->now = oct_aligned_alloc(ALIGNMENT, n, sizeof(float));
    l->scratch = oct_aligned_calloc(ALIGNMENT, l->n_workers * l->n_scratch, sizeof(float));
    if (!l->phi || !l->now || !l->scratch)
        goto fail;
    const size_t first = border * plane + border * row + border;
    l->grid = (struct oct_levelset_grid){
        .phi = l->phi + first,
        .now = l->now + first,
        .plane = (ptrdiff_t)plane,
        .row = (ptrdiff_t)row,
        .patch = (int32_t)setup->params.patch,
        .reach = (int32_t)setup->params.reach,
    };
    list_offsets(l);
    return OCT_OK;
fail:
    destroy(l);
    *band = NULL;
    return oct_fail(err, OCT_E_NO_MEMORY,
                    "level set: out of memory for a box of %u x %u x %u voxels, which takes %zu MB",
                    dims[0], dims[1], dims[2], 2 * n * sizeof(float) / 1000000);
}

/* ---- the band ---- */

static uint32_t clamp(int64_t i, uint32_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : (uint32_t)i;
}

/* A B-scan of the grid, its borders included. */
static void load_plane(void *context, unsigned piece, unsigned worker)
{
    struct oct_levelset_band *l = context;
    const uint32_t *dims = l->setup.dims;
    const struct oct_levelset_grid *g = &l->grid;
    const float delta = (float)l->setup.params.delta;
    const int64_t b = (int64_t)piece - l->border;
    const size_t beyond = (size_t)(g->row - l->border) - dims[2];
    (void)worker;
    for (int64_t j = -l->border; j < (int64_t)dims[1] + l->border; j++) {
        const bool inside = b >= 0 && b < dims[0] && j >= 0 && j < dims[1];
        const float *from =
            l->source + ((size_t)clamp(b, dims[0]) * dims[1] + clamp(j, dims[1])) * dims[2];
        const size_t at = piece * (size_t)g->plane + (size_t)(j + l->border) * (size_t)g->row;
        float *phi = l->phi + at, *now = l->now + at;
        for (int32_t d = 0; d < l->border; d++)
            phi[d] = from[0];
        memcpy(phi + l->border, from, dims[2] * sizeof(*phi));
        for (size_t d = 0; d < beyond; d++)
            phi[(size_t)l->border + dims[2] + d] = from[dims[2] - 1];
        for (ptrdiff_t d = 0; d < g->row; d++)
            now[d] = OCT_LEVELSET_NOT_IN_BAND;
        for (uint32_t d = 0; inside && d < dims[2]; d++)
            now[l->border + (int32_t)d] =
                oct_levelset_in_band(from[d], delta) ? from[d] : OCT_LEVELSET_NOT_IN_BAND;
    }
}

/* The first voxel of the band in an A-line from depth d on; end: there is none before it. */
static uint32_t find_voxel(const struct oct_levelset_band *l, uint32_t b, uint32_t j, uint32_t d,
                           uint32_t end)
{
    const float *now = l->grid.now + b * l->grid.plane + j * l->grid.row;
    while (d < end && now[d] == OCT_LEVELSET_NOT_IN_BAND)
        d++;
    return d;
}

/* Appends the voxels from depth d on, those before `end`. */
static void take_segment(struct oct_levelset_band *l, uint32_t b, uint32_t j, uint32_t d,
                         uint32_t end)
{
    const float *now = l->grid.now + b * l->grid.plane + j * l->grid.row;
    uint32_t mask = 0;
    for (uint32_t i = 0; i < LANES && d + i < end; i++)
        mask |= (uint32_t)(now[d + i] != OCT_LEVELSET_NOT_IN_BAND) << i;
    if (l->segments)
        l->segments[l->n_segments] = (struct oct_levelset_segment){
            .b = (uint16_t)b, .j = (uint16_t)j, .d = (uint16_t)d, .mask = (uint16_t)mask};
    l->n_segments++;
    l->n_voxels += (unsigned)__builtin_popcount(mask);
}

static void take_tile(struct oct_levelset_band *l, uint32_t first)
{
    struct oct_levelset_tile *t = l->tiles ? l->tiles + l->n_tiles : NULL;
    const uint32_t n = l->n_segments - first;
    l->n_tiles += n > 0;
    l->n_tile_segments = n > l->n_tile_segments ? n : l->n_tile_segments;
    if (!t || n == 0)
        return;
    *t = (struct oct_levelset_tile){
        .first = first, .n = n, .least = {INT32_MAX, INT32_MAX, INT32_MAX}};
    for (uint32_t i = 0; i < n; i++) {
        const struct oct_levelset_segment *s = l->segments + first + i;
        const int32_t least[3] = {s->b, s->j, s->d}, end[3] = {s->b + 1, s->j + 1, s->d + LANES};
        for (unsigned k = 0; k < 3; k++) {
            t->least[k] = least[k] < t->least[k] ? least[k] : t->least[k];
            t->end[k] = end[k] > t->end[k] ? end[k] : t->end[k];
        }
    }
}

/* The tile of the A-lines from (b0, j0) on, depths from .. end - 1. Returns the first depth beyond
 * that has a voxel of the band; n_d: none has. */
static uint32_t take_chunk(struct oct_levelset_band *l, uint32_t b0, uint32_t j0, uint32_t from,
                           uint32_t end)
{
    const uint32_t *dims = l->setup.dims;
    const uint32_t first = l->n_segments, last = end < dims[2] ? end : dims[2];
    uint32_t beyond = dims[2];
    for (uint32_t b = b0; b < b0 + OCT_LEVELSET_SIDE && b < dims[0]; b++)
        for (uint32_t j = j0; j < j0 + OCT_LEVELSET_SIDE && j < dims[1]; j++) {
            for (uint32_t d = find_voxel(l, b, j, from, last); d < last;
                 d = find_voxel(l, b, j, d + LANES, last))
                take_segment(l, b, j, d, last);
            beyond = find_voxel(l, b, j, last, beyond > last ? beyond : last);
        }
    take_tile(l, first);
    return beyond;
}

/* Counts; with memory for segments and tiles, lists them. */
static void take_band(struct oct_levelset_band *l)
{
    const uint32_t *dims = l->setup.dims;
    l->n_segments = l->n_tiles = l->n_tile_segments = 0;
    l->n_voxels = 0;
    for (uint32_t b = 0; b < dims[0]; b += OCT_LEVELSET_SIDE)
        for (uint32_t j = 0; j < dims[1]; j += OCT_LEVELSET_SIDE)
            for (uint32_t d = take_chunk(l, b, j, 0, 0); d < dims[2];)
                d = take_chunk(l, b, j, d, d + OCT_LEVELSET_CHUNK);
}

static void drop_band(struct oct_levelset_band *l)
{
    free(l->segments);
    free(l->tiles);
    free(l->found);
    free(l->sums);
    free(l->smallest);
    l->segments = NULL;
    l->tiles = NULL;
    l->found = NULL;
    l->sums = l->smallest = NULL;
}

static enum oct_err load(struct oct_levelset_band *l, const float *phi,
                         struct oct_levelset_report *counts, struct oct_error *err)
{
    const unsigned rank = l->setup.params.c2 > 0 ? 0 : l->setup.params.rank;
    l->source = phi;
    drop_band(l);
    oct_workers_run(l->setup.workers, l->setup.dims[0] + 2 * (unsigned)l->border, load_plane, l);
    take_band(l);
    counts->n_band = l->n_voxels;
    if (l->n_tiles == 0)
        return OCT_OK;
    const size_t n_smallest = (size_t)l->n_workers * l->n_tile_segments * rank * LANES;
    const size_t n_sums = (size_t)l->n_segments * 2 * LANES;
    l->segments = calloc(l->n_segments, sizeof(*l->segments));
    l->tiles = calloc(l->n_tiles, sizeof(*l->tiles));
    l->found = calloc(l->n_tiles, sizeof(*l->found));
    l->sums = oct_aligned_calloc(ALIGNMENT, n_sums, sizeof(float));
    l->smallest = oct_aligned_alloc(ALIGNMENT, n_smallest + LANES, sizeof(float));
    if (!l->segments || !l->tiles || !l->found || !l->sums || !l->smallest) {
        drop_band(l);
        return oct_fail(
            err, OCT_E_NO_MEMORY,
            "level set: out of memory for a band of %llu voxels, which takes %zu MB",
            (unsigned long long)counts->n_band,
            (l->n_segments * sizeof(*l->segments) + (n_sums + n_smallest) * sizeof(float)) /
                1000000);
    }
    take_band(l);
    return OCT_OK;
}

/* ---- passes ---- */

static struct oct_levelset_work work_of(const struct oct_levelset_band *l, unsigned piece,
                                        unsigned worker)
{
    const struct oct_levelset_tile *tile = l->tiles + piece;
    const unsigned rank = l->setup.params.rank;
    return (struct oct_levelset_work){
        .grid = &l->grid,
        .tile = tile,
        .segments = l->segments + tile->first,
        .offsets = l->offsets,
        .n_offsets = l->n_offsets,
        .c1 = l->setup.params.c1,
        .c2 = l->c2,
        .rank = rank,
        .scratch = l->scratch + worker * l->n_scratch,
        .smallest = l->smallest + (size_t)worker * l->n_tile_segments * rank * LANES,
        .sums = l->sums + (size_t)tile->first * 2 * LANES,
    };
}

/* The rank-th smallest D of each voxel to the first half of its sums. */
static void rank_tile(void *context, unsigned piece, unsigned worker)
{
    struct oct_levelset_band *l = context;
    struct oct_levelset_work work = work_of(l, piece, worker);
    l->passes->ranks(&work);
    for (uint32_t i = 0; i < work.tile->n; i++)
        memcpy(work.sums + (size_t)i * 2 * LANES,
               work.smallest + ((size_t)(i + 1) * work.rank - 1) * LANES, LANES * sizeof(float));
    l->found[piece].n_pairs = work.n_pairs;
}

static double base(struct oct_levelset_band *l)
{
    uint64_t n = 0;
    if (l->n_tiles == 0)
        return 0;
    oct_workers_run(l->setup.workers, l->n_tiles, rank_tile, l);
    for (uint32_t i = 0; i < l->n_segments; i++)
        for (unsigned k = 0; k < LANES; k++) {
            const float d = l->sums[(size_t)i * 2 * LANES + k];
            if ((l->segments[i].mask >> k & 1) && isfinite(d))
                l->sums[n++] = d; /* what was there has been read */
        }
    return oct_levelset_median(l->sums, n);
}

static void sum_tile(void *context, unsigned piece, unsigned worker)
{
    struct oct_levelset_band *l = context;
    struct oct_levelset_work work = work_of(l, piece, worker);
    float largest = 0;
    l->passes->sums(&work);
    for (uint32_t i = 0; i < work.tile->n; i++)
        for (unsigned k = 0; k < LANES; k++) {
            const float weights = work.sums[((size_t)i * 2 + 1) * LANES + k];
            if (work.segments[i].mask >> k & 1)
                largest = weights > largest ? weights : largest;
        }
    l->found[piece] = (struct found){.n_pairs = work.n_pairs, .largest = largest};
}

static double sums(struct oct_levelset_band *l, double c2, struct oct_levelset_report *counts)
{
    float largest = 0;
    l->c2 = c2;
    counts->n_patches = 0;
    if (l->n_tiles > 0)
        oct_workers_run(l->setup.workers, l->n_tiles, sum_tile, l);
    for (uint32_t i = 0; i < l->n_tiles; i++) {
        counts->n_patches += l->found[i].n_pairs;
        largest = l->found[i].largest > largest ? l->found[i].largest : largest;
    }
    return (double)largest;
}

static void move_tile(void *context, unsigned piece, unsigned worker)
{
    struct oct_levelset_band *l = context;
    const struct oct_levelset_tile *t = l->tiles + piece;
    const float dt = (float)l->dt;
    (void)worker;
    for (uint32_t i = t->first; i < t->first + t->n; i++) {
        const struct oct_levelset_segment *s = l->segments + i;
        const float *sum = l->sums + (size_t)i * 2 * LANES, *weights = sum + LANES;
        float *phi = l->grid.now + s->b * l->grid.plane + s->j * l->grid.row + s->d;
        for (unsigned k = 0; k < LANES; k++)
            if (s->mask >> k & 1)
                phi[k] += sum[k] * (dt > 0 ? dt : 1 / (1 + weights[k]));
    }
}

static void move(struct oct_levelset_band *l, double dt)
{
    l->dt = dt;
    if (l->n_tiles > 0)
        oct_workers_run(l->setup.workers, l->n_tiles, move_tile, l);
}

static void result(const struct oct_levelset_band *l, float *phi)
{
    const uint32_t *dims = l->setup.dims;
    for (uint32_t i = 0; i < l->n_segments; i++) {
        const struct oct_levelset_segment *s = l->segments + i;
        const float *now = l->grid.now + s->b * l->grid.plane + s->j * l->grid.row + s->d;
        float *to = phi + ((size_t)s->b * dims[1] + s->j) * dims[2] + s->d;
        for (unsigned k = 0; k < LANES; k++)
            if (s->mask >> k & 1)
                to[k] = now[k];
    }
}

const struct oct_levelset_band_ops oct_levelset_local = {
    .create = create,
    .load = load,
    .base = base,
    .sums = sums,
    .move = move,
    .result = result,
    .destroy = destroy,
};
