#include "analysis/layers/denoise/levelset_local.h"

#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64
#define LANES OCT_LEVELSET_LANES

/* ---- life ---- */

static int by_distance(const void *a, const void *b)
{
    const int8_t *p = a, *q = b;
    const int n = p[0] * p[0] + p[1] * p[1] + p[2] * p[2];
    const int m = q[0] * q[0] + q[1] * q[1] + q[2] * q[2];
    return n != m ? (n > m) - (n < m) : memcmp(p, q, 3);
}

/* Near ones first: they are mostly the similar ones, and the list of the smallest D rests soon. */
static void list_offsets(struct oct_levelset_tiles *t)
{
    const int r = t->grid.reach;
    for (int b = 0; b <= r; b++)
        for (int j = b > 0 ? -r : 0; j <= r; j++)
            for (int d = b > 0 || j > 0 ? -r : 1; d <= r; d++) {
                int8_t *o = t->offsets[t->n_offsets++];
                o[0] = (int8_t)b;
                o[1] = (int8_t)j;
                o[2] = (int8_t)d;
            }
    qsort(t->offsets, t->n_offsets, sizeof(*t->offsets), by_distance);
}

bool oct_levelset_tiles_use(struct oct_levelset_tiles *t, const char *simd)
{
    static const struct oct_levelset_passes *const sets[OCT_N_SIMD + 1] = {
        OCT_SIMD_ALL(oct_levelset_passes)};
    t->passes = sets[oct_simd_choose(simd)];
    return t->passes != NULL;
}

void oct_levelset_tiles_destroy(struct oct_levelset_tiles *t)
{
    if (!t)
        return;
    free(t->memory);
    free(t->scratch);
    free(t->segments);
    free(t->tiles);
    free(t);
}

static void plan_scratch(struct oct_levelset_tiles *t)
{
    const size_t patch = t->setup.params.patch, reach = t->setup.params.reach;
    const size_t side = OCT_LEVELSET_SIDE + reach, rank = t->setup.params.rank;
    const size_t depth = OCT_LEVELSET_CHUNK + 2 * LANES + reach + patch - 1;
    t->n_scratch = (side * (side + patch - 1) * depth + LANES - 1) / LANES * LANES;
    t->n_thread = t->n_scratch + (rank > 2 ? rank : 2) * OCT_LEVELSET_TILE_SEGMENTS * LANES;
}

enum oct_err oct_levelset_tiles_create(struct oct_levelset_tiles **tiles,
                                       const struct oct_levelset_setup *setup,
                                       struct oct_error *err)
{
    const uint32_t *dims = setup->dims;
    const size_t border = setup->params.patch / 2 + 2 * (size_t)setup->params.reach;
    const size_t row = (border + dims[2] + border + 3 * LANES) / LANES * LANES;
    const size_t plane = (dims[1] + 2 * border) * row, n = (dims[0] + 2 * border) * plane;
    const size_t first = border * plane + border * row + border;
    const size_t n_threads = setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1;
    struct oct_levelset_tiles *t = calloc(1, sizeof(*t));
    *tiles = t;
    if (t) {
        t->setup = *setup;
        oct_levelset_tiles_use(t, "auto");
        plan_scratch(t);
        t->border = (int32_t)border;
        t->memory = oct_aligned_alloc(ALIGNMENT, 2 * n, sizeof(float));
        t->scratch = oct_aligned_calloc(ALIGNMENT, n_threads * t->n_thread, sizeof(float));
    }
    if (!t || !t->memory || !t->scratch) {
        oct_levelset_tiles_destroy(t);
        *tiles = NULL;
        return oct_fail(
            err, OCT_E_NO_MEMORY,
            "level set: out of memory for a box of %u x %u x %u voxels, which takes %zu MB",
            dims[0], dims[1], dims[2], 2 * n * sizeof(float) / 1000000);
    }
    t->grid = (struct oct_levelset_grid){
        .phi = t->memory + first,
        .now = t->memory + n + first,
        .plane = (ptrdiff_t)plane,
        .row = (ptrdiff_t)row,
        .patch = (int32_t)setup->params.patch,
        .reach = (int32_t)setup->params.reach,
    };
    list_offsets(t);
    return OCT_OK;
}

/* ---- the band ---- */

static uint32_t clamp(int64_t i, uint32_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : (uint32_t)i;
}

/* A B-scan of the grid, its borders included. */
static void load_plane(void *context, unsigned piece, unsigned worker)
{
    const struct oct_levelset_tiles *t = context;
    const uint32_t *dims = t->setup.dims;
    const struct oct_levelset_grid *g = &t->grid;
    const float delta = (float)t->setup.params.delta;
    const int64_t b = (int64_t)piece - t->border, end = g->row - t->border;
    (void)worker;
    for (int64_t j = -t->border; j < (int64_t)dims[1] + t->border; j++) {
        const bool inside = b >= 0 && b < dims[0] && j >= 0 && j < dims[1];
        const float *from =
            t->source + ((size_t)clamp(b, dims[0]) * dims[1] + clamp(j, dims[1])) * dims[2];
        float *phi = g->phi + b * g->plane + j * g->row, *now = g->now + (phi - g->phi);
        for (int64_t d = -t->border; d < end; d++) {
            phi[d] = from[clamp(d, dims[2])];
            now[d] = OCT_LEVELSET_NOT_IN_BAND;
        }
        for (uint32_t d = 0; inside && d < dims[2]; d++)
            now[d] = oct_levelset_in_band(from[d], delta) ? from[d] : OCT_LEVELSET_NOT_IN_BAND;
    }
}

static float *now_at(const struct oct_levelset_tiles *t, uint32_t b, uint32_t j, uint32_t d)
{
    return t->grid.now + b * t->grid.plane + j * t->grid.row + d;
}

/* The first voxel of the band in an A-line from depth d on; end: there is none before it. */
static uint32_t find_voxel(const struct oct_levelset_tiles *t, uint32_t b, uint32_t j, uint32_t d,
                           uint32_t end)
{
    const float *now = now_at(t, b, j, 0);
    while (d < end && now[d] == OCT_LEVELSET_NOT_IN_BAND)
        d++;
    return d;
}

/* Appends the voxels from depth d on, those before `end`, to the newest tile. */
static void add_segment(struct oct_levelset_tiles *t, uint32_t b, uint32_t j, uint32_t d,
                        uint32_t end)
{
    const float *now = now_at(t, b, j, d);
    const uint32_t *dims = t->setup.dims;
    const int32_t at[3] = {(int32_t)b, (int32_t)j, (int32_t)d};
    struct oct_levelset_tile *tile = t->tiles + t->n_tiles;
    uint32_t mask = 0;
    for (uint32_t i = 0; i < LANES && d + i < end; i++) {
        if (now[i] == OCT_LEVELSET_NOT_IN_BAND)
            continue;
        mask |= 1u << i;
        t->band->voxels[t->n_voxels] = (b * dims[1] + j) * dims[2] + d + i;
        t->band->now[t->n_voxels++] = now[i];
    }
    t->segments[t->n_segments++] = (struct oct_levelset_segment){
        .b = (uint16_t)b, .j = (uint16_t)j, .d = (uint16_t)d, .mask = (uint16_t)mask};
    tile->n++;
    for (unsigned k = 0; k < 3; k++) {
        const int32_t last = at[k] + (k == 2 ? LANES : 1);
        tile->least[k] = at[k] < tile->least[k] ? at[k] : tile->least[k];
        tile->end[k] = last > tile->end[k] ? last : tile->end[k];
    }
}

/* The tile of the A-lines from (b0, j0) on, depths from .. end - 1. Returns the first depth beyond
 * that has a voxel of the band; n_d: none has. */
static uint32_t add_tile(struct oct_levelset_tiles *t, uint32_t b0, uint32_t j0, uint32_t from,
                         uint32_t end)
{
    const uint32_t *dims = t->setup.dims, last = end < dims[2] ? end : dims[2];
    uint32_t beyond = dims[2];
    t->tiles[t->n_tiles] = (struct oct_levelset_tile){
        .first = t->n_segments,
        .voxel = t->n_voxels,
        .least = {INT32_MAX, INT32_MAX, INT32_MAX},
    };
    for (uint32_t b = b0; b < b0 + OCT_LEVELSET_SIDE && b < dims[0]; b++)
        for (uint32_t j = j0; j < j0 + OCT_LEVELSET_SIDE && j < dims[1]; j++) {
            for (uint32_t d = find_voxel(t, b, j, from, last); d < last;
                 d = find_voxel(t, b, j, d + LANES, last))
                add_segment(t, b, j, d, last);
            beyond = find_voxel(t, b, j, last, beyond > last ? beyond : last);
        }
    t->n_tiles += t->tiles[t->n_tiles].n > 0;
    return beyond;
}

enum oct_err oct_levelset_tiles_load(struct oct_levelset_tiles *t, const float *phi,
                                     const struct oct_levelset_band *band, struct oct_error *err)
{
    const uint32_t *dims = t->setup.dims;
    const size_t n = (size_t)band->n + 1; /* a voxel each, and one that stays empty */
    free(t->segments);
    free(t->tiles);
    t->segments = malloc(n * sizeof(*t->segments));
    t->tiles = malloc(n * sizeof(*t->tiles));
    if (!t->segments || !t->tiles)
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "level set: out of memory for a band of %u voxels, which takes %zu MB",
                        band->n, n * (sizeof(*t->segments) + sizeof(*t->tiles)) / 1000000);
    t->source = phi;
    t->band = band;
    t->n_segments = t->n_tiles = t->n_voxels = 0;
    oct_workers_run(t->setup.workers, dims[0] + 2 * (unsigned)t->border, load_plane, t);
    for (uint32_t b = 0; b < dims[0]; b += OCT_LEVELSET_SIDE)
        for (uint32_t j = 0; j < dims[1]; j += OCT_LEVELSET_SIDE)
            for (uint32_t d = add_tile(t, b, j, 0, 0); d < dims[2];)
                d = add_tile(t, b, j, d, d + OCT_LEVELSET_CHUNK);
    return OCT_OK;
}

/* ---- passes ---- */

/* From the lanes of a tile to the voxels of the band. */
static void pass_tile(void *context, unsigned piece, unsigned worker)
{
    const struct oct_levelset_tiles *t = context;
    struct oct_levelset_tile *tile = t->tiles + piece;
    float *scratch = t->scratch + worker * t->n_thread, *found = scratch + t->n_scratch;
    const size_t n_found = (t->rank > 0 ? t->rank : 2) * (size_t)LANES;
    uint32_t x = tile->voxel;
    tile->n_pairs = (t->rank > 0 ? t->passes->ranks : t->passes->sums)(t, tile, scratch, found);
    if (t->rank > 0)
        found += n_found - LANES; /* the last of each list */
    for (uint32_t i = 0; i < tile->n; i++, found += n_found)
        for (unsigned k = 0; k < LANES; k++) {
            if (!(t->segments[tile->first + i].mask >> k & 1))
                continue;
            t->band->sum[x] = t->rank > 0 && isinf(found[k]) ? NAN : found[k];
            t->band->weight[x++] = t->rank > 0 ? 0 : found[LANES + k];
        }
}

uint64_t oct_levelset_tiles_pass(struct oct_levelset_tiles *t, const struct oct_levelset_band *band,
                                 unsigned rank, double c2)
{
    const float *from = band->now;
    uint64_t n_pairs = 0;
    t->band = band;
    t->rank = rank;
    t->c2 = c2;
    for (uint32_t i = 0; i < t->n_segments; i++) {
        const struct oct_levelset_segment *s = t->segments + i;
        float *now = now_at(t, s->b, s->j, s->d);
        for (unsigned k = 0; k < LANES; k++)
            now[k] = s->mask >> k & 1 ? *from++ : now[k];
    }
    oct_workers_run(t->setup.workers, t->n_tiles, pass_tile, t);
    for (uint32_t i = 0; i < t->n_tiles; i++)
        n_pairs += t->tiles[i].n_pairs;
    return n_pairs;
}
