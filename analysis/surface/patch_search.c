#include "analysis/surface/patch_search.h"

#include "analysis/surface/patch_search_index.h"
#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 1024u /* patches that are gathered as one piece */

struct search {
    const struct oct_patch_search_setup *setup;
    const struct oct_patch_scan *scan;
    uint32_t *number;
    float *distance;

    struct oct_patch_index index;
    struct oct_patch_basis basis;
    float *projected; /* [n][OCT_PATCH_COORDINATES], by number */
    double *norms;    /* [pieces], the largest of |patch - mean|^2 */
    size_t n_threads;
    struct oct_patch_scratch *scratch; /* [n_threads] */
};

static uint32_t inside(int64_t at, uint32_t n)
{
    return at < 0 ? 0 : at >= n ? n - 1 : (uint32_t)at;
}

/* The patch about the voxel, and zeros up to the stride. */
static void gather(const struct search *s, uint32_t number, float *to)
{
    const struct oct_patch_search_setup *setup = s->setup;
    const uint32_t n_j = setup->dims[1], n_d = setup->dims[2], voxel = setup->voxels[number];
    const int64_t half = setup->patch / 2, d = voxel % n_d, j = voxel / n_d % n_j;
    const int64_t b = voxel / n_d / n_j;
    float *const end = to + s->index.stride;
    for (int64_t z = b - half; z <= b + half; z++)
        for (int64_t y = j - half; y <= j + half; y++) {
            const size_t row = (size_t)inside(z, setup->dims[0]) * n_j + inside(y, n_j);
            for (int64_t x = d - half; x <= d + half; x++)
                *to++ = setup->phi[row * n_d + inside(x, n_d)];
        }
    while (to < end)
        *to++ = 0;
}

static uint32_t end_of(const struct search *s, unsigned piece)
{
    const uint32_t left = s->index.n - piece * PIECE;
    return piece * PIECE + (left < PIECE ? left : PIECE);
}

static void gather_piece(void *context, unsigned piece, unsigned worker)
{
    struct search *s = context;
    (void)worker;
    for (uint32_t i = piece * PIECE; i < end_of(s, piece); i++)
        gather(s, s->index.order[i], s->index.patches + i * s->index.stride);
}

static void project_piece(void *context, unsigned piece, unsigned worker)
{
    struct search *s = context;
    (void)worker;
    for (uint32_t i = piece * PIECE; i < end_of(s, piece); i++) {
        const double norm =
            oct_patch_basis_project(&s->basis, s->index.patches + i * s->index.stride,
                                    s->projected + (size_t)i * OCT_PATCH_COORDINATES);
        s->norms[piece] = fmax(s->norms[piece], norm);
    }
}

/* Coordinates and box of a block. */
static void fill_block(struct oct_patch_index *index, uint32_t block, const float *projected)
{
    const uint32_t from = block * OCT_PATCH_BLOCK, left = index->n - from;
    const uint32_t n = left < OCT_PATCH_BLOCK ? left : OCT_PATCH_BLOCK;
    float *to = index->heads + (size_t)from * OCT_PATCH_HEAD;
    for (unsigned c = 0; c < OCT_PATCH_HEAD; c++) {
        float low = INFINITY, high = -INFINITY;
        for (uint32_t i = 0; i < n; i++) {
            const float x = projected[(size_t)index->order[from + i] * OCT_PATCH_COORDINATES + c];
            to[(size_t)c * OCT_PATCH_BLOCK + i] = x;
            low = fminf(low, x);
            high = fmaxf(high, x);
        }
        if (c < OCT_PATCH_BOX) {
            index->low[(size_t)c * index->n_blocks + block] = low;
            index->high[(size_t)c * index->n_blocks + block] = high;
        }
    }
    for (uint32_t i = from; i < from + n; i++)
        memcpy(index->tails + (size_t)i * OCT_PATCH_TAIL,
               projected + (size_t)index->order[i] * OCT_PATCH_COORDINATES + OCT_PATCH_HEAD,
               OCT_PATCH_TAIL * sizeof(float));
}

/* Patches by number, a basis, coordinates, the order, patches in that order. */
static enum oct_err build_index(struct search *s, struct oct_error *err)
{
    struct oct_patch_index *index = &s->index;
    const unsigned n_pieces = (index->n + PIECE - 1) / PIECE, patch = s->setup->patch;
    const size_t width = (size_t)patch * patch * patch;
    double largest = 0;
    for (uint32_t i = 0; i < index->n; i++)
        index->order[i] = i;
    oct_workers_run(s->setup->workers, n_pieces, gather_piece, s);
    enum oct_err e =
        oct_patch_basis_init(&s->basis, width, index->patches, index->stride, index->n, err);
    if (e)
        return e;
    oct_workers_run(s->setup->workers, n_pieces, project_piece, s);
    for (unsigned i = 0; i < n_pieces; i++)
        largest = fmax(largest, s->norms[i]);
    index->margin = 0x1p-22 * sqrt(largest); /* two coordinates rounded, and as much again */
    e = oct_patch_order(index->order, s->projected, index->n, err);
    if (e)
        return e;
    for (uint32_t b = 0; b < index->n_blocks; b++)
        fill_block(index, b, s->projected);
    oct_workers_run(s->setup->workers, n_pieces, gather_piece, s);
    return OCT_OK;
}

/* ---- the search ---- */

static int compare_kept(const void *a, const void *b)
{
    const struct oct_patch_kept *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void search_block(void *context, unsigned block, unsigned worker)
{
    const struct search *s = context;
    const unsigned most = s->setup->most;
    struct oct_patch_scratch *scratch = &s->scratch[worker];
    s->scan->run(&s->index, block, most, scratch);
    for (uint32_t i = 0; i < OCT_PATCH_BLOCK && block * OCT_PATCH_BLOCK + i < s->index.n; i++) {
        struct oct_patch_kept *kept = scratch->heaps + (size_t)i * most;
        const size_t to = (size_t)s->index.order[block * OCT_PATCH_BLOCK + i] * most;
        qsort(kept, most, sizeof(*kept), compare_kept);
        for (unsigned k = 0; k < most; k++) {
            s->number[to + k] = kept[k].number;
            s->distance[to + k] = (float)kept[k].distance;
        }
    }
}

/* ---- memory ---- */

static double bytes_of(const struct search *s)
{
    const double n = s->index.n, n_blocks = s->index.n_blocks;
    return n * (double)(s->index.stride + 2 * OCT_PATCH_COORDINATES + 1) * sizeof(float) +
           n_blocks * (OCT_PATCH_BOX + (double)s->n_threads) * 2 * sizeof(float);
}

static bool allocate_scratch(struct search *s)
{
    s->scratch = calloc(s->n_threads, sizeof(*s->scratch));
    for (size_t i = 0; s->scratch && i < s->n_threads; i++) {
        struct oct_patch_scratch *scratch = &s->scratch[i];
        scratch->heaps = calloc((size_t)OCT_PATCH_BLOCK * s->setup->most, sizeof(*scratch->heaps));
        scratch->limit = calloc(OCT_PATCH_BLOCK, sizeof(*scratch->limit));
        scratch->bound = calloc(s->index.n_blocks, sizeof(*scratch->bound));
        scratch->near = calloc(s->index.n_blocks, sizeof(*scratch->near));
        if (!scratch->heaps || !scratch->limit || !scratch->bound || !scratch->near)
            return false;
    }
    return s->scratch != NULL;
}

static enum oct_err allocate(struct search *s, struct oct_error *err)
{
    struct oct_patch_index *index = &s->index;
    const size_t n = index->n, n_blocks = index->n_blocks;
    index->order = calloc(n, sizeof(*index->order));
    index->patches = oct_aligned_alloc(64, n, index->stride * sizeof(*index->patches));
    index->heads =
        oct_aligned_calloc(64, n_blocks * OCT_PATCH_BLOCK * OCT_PATCH_HEAD, sizeof(float));
    index->tails = oct_aligned_alloc(64, n * OCT_PATCH_TAIL, sizeof(float));
    index->low = calloc(OCT_PATCH_BOX * n_blocks, sizeof(*index->low));
    index->high = calloc(OCT_PATCH_BOX * n_blocks, sizeof(*index->high));
    s->projected = oct_aligned_alloc(64, n * OCT_PATCH_COORDINATES, sizeof(*s->projected));
    s->norms = calloc(n / PIECE + 1, sizeof(*s->norms));
    if (allocate_scratch(s) && index->order && index->patches && index->heads && index->tails &&
        index->low && index->high && s->projected && s->norms)
        return OCT_OK;
    return oct_fail(err, OCT_E_NO_MEMORY, "the search in a band of %u voxels would take %.2f GB",
                    s->index.n, bytes_of(s) * 1e-9);
}

static void finish(struct search *s)
{
    for (size_t i = 0; s->scratch && i < s->n_threads; i++) {
        free(s->scratch[i].heaps);
        free(s->scratch[i].limit);
        free(s->scratch[i].bound);
        free(s->scratch[i].near);
    }
    free(s->scratch);
    free(s->index.order);
    free(s->index.patches);
    free(s->index.heads);
    free(s->index.tails);
    free(s->index.low);
    free(s->index.high);
    free(s->projected);
    free(s->norms);
    oct_patch_basis_finish(&s->basis);
}

static enum oct_err check(const struct oct_patch_search_setup *setup, struct oct_error *err)
{
    if (setup->patch != 3 && setup->patch != 5 && setup->patch != 7)
        return oct_fail(err, OCT_E_ARG, "patches of %u voxels: 3, 5 or 7", setup->patch);
    if (setup->most < 1 || setup->most > OCT_PATCH_SEARCH_MOST_KEPT)
        return oct_fail(err, OCT_E_ARG, "%u similar patches a voxel: 1 to %u", setup->most,
                        OCT_PATCH_SEARCH_MOST_KEPT);
    return OCT_OK;
}

enum oct_err oct_patch_search_by(const struct oct_patch_scan *scan,
                                 const struct oct_patch_search_setup *setup, uint32_t *number,
                                 float *distance, uint64_t *n_patches, struct oct_error *err)
{
    enum oct_err e = check(setup, err);
    if (n_patches)
        *n_patches = (uint64_t)setup->n * (setup->n ? setup->n - 1 : 0);
    if (e || setup->n == 0)
        return e;
    const size_t width = (size_t)setup->patch * setup->patch * setup->patch;
    struct search s = {
        .setup = setup,
        .scan = scan,
        .number = number,
        .distance = distance,
        .index = {.n = setup->n,
                  .n_blocks = (setup->n + OCT_PATCH_BLOCK - 1) / OCT_PATCH_BLOCK,
                  .stride = (width + 15) / 16 * 16},
        .n_threads = setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1,
    };
    if (setup->n > OCT_PATCH_SEARCH_MOST_VOXELS)
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "the search in a band of %u voxels would take %.1f GB: %u voxels at most",
                        setup->n, bytes_of(&s) * 1e-9, OCT_PATCH_SEARCH_MOST_VOXELS);
    e = allocate(&s, err);
    if (!e)
        e = build_index(&s, err);
    if (!e)
        oct_workers_run(setup->workers, s.index.n_blocks, search_block, &s);
    finish(&s);
    return e;
}

enum oct_err oct_patch_search(const struct oct_patch_search_setup *setup, uint32_t *number,
                              float *distance, uint64_t *n_patches, struct oct_error *err)
{
    return oct_patch_search_by(oct_patch_scan_select("auto"), setup, number, distance, n_patches,
                               err);
}
