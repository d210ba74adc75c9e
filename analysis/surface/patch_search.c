#include "analysis/surface/patch_search.h"

#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define QUERIES 64u /* of a piece */

struct kept {
    double distance;
    uint32_t number;
};

struct search {
    const struct oct_patch_search_setup *setup;
    uint32_t *number;
    float *distance;
    size_t width;       /* n^3 */
    float *patches;     /* [n][width] */
    struct kept *heaps; /* [threads][most] */
};

static uint32_t inside(int64_t at, uint32_t n)
{
    return at < 0 ? 0 : at >= n ? n - 1 : (uint32_t)at;
}

static void gather_patch(const struct oct_patch_search_setup *s, uint32_t voxel, float *to)
{
    const int64_t half = s->patch / 2;
    const int64_t d = voxel % s->dims[2], j = voxel / s->dims[2] % s->dims[1];
    const int64_t b = voxel / s->dims[2] / s->dims[1];
    for (int64_t z = b - half; z <= b + half; z++)
        for (int64_t y = j - half; y <= j + half; y++) {
            const size_t row = (size_t)inside(z, s->dims[0]) * s->dims[1] + inside(y, s->dims[1]);
            for (int64_t x = d - half; x <= d + half; x++)
                *to++ = s->phi[row * s->dims[2] + inside(x, s->dims[2])];
        }
}

static bool is_before(struct kept a, struct kept b)
{
    return a.distance < b.distance || (a.distance == b.distance && a.number < b.number);
}

/* The last of a heap of n is at its top; `with` comes in its place. */
static void replace_top(struct kept *heap, unsigned n, struct kept with)
{
    unsigned at = 0;
    for (unsigned child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_before(heap[child], heap[child + 1]))
            child++;
        if (!is_before(with, heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = with;
}

static double distance_of(const float *a, const float *b, size_t width)
{
    double sum = 0;
    for (size_t i = 0; i < width; i++) {
        const double difference = (double)a[i] - (double)b[i];
        sum += difference * difference;
    }
    return sum;
}

static void search_one(const struct search *s, uint32_t query, struct kept *heap)
{
    const unsigned most = s->setup->most;
    const struct kept none = {INFINITY, UINT32_MAX};
    for (unsigned i = 0; i < most; i++)
        heap[i] = none;
    for (uint32_t i = 0; i < s->setup->n; i++) {
        const struct kept other = {
            distance_of(s->patches + query * s->width, s->patches + i * s->width, s->width), i};
        if (i != query && is_before(other, heap[0]))
            replace_top(heap, most, other);
    }
    for (unsigned i = most; i-- > 0;) {
        const struct kept last = heap[0];
        s->number[(size_t)query * most + i] = last.number;
        s->distance[(size_t)query * most + i] = (float)last.distance;
        replace_top(heap, i, heap[i]);
    }
}

static void run_piece(void *context, unsigned piece, unsigned worker)
{
    const struct search *s = context;
    const uint32_t from = piece * QUERIES, left = s->setup->n - from;
    for (uint32_t i = 0; i < (left < QUERIES ? left : QUERIES); i++)
        search_one(s, from + i, s->heaps + (size_t)worker * s->setup->most);
}

static enum oct_err check(const struct oct_patch_search_setup *s, struct oct_error *err)
{
    if (s->patch != 3 && s->patch != 5 && s->patch != 7)
        return oct_fail(err, OCT_E_ARG, "patches of %u voxels: 3, 5 or 7", s->patch);
    if (s->most < 1 || s->most > OCT_PATCH_SEARCH_MOST_KEPT)
        return oct_fail(err, OCT_E_ARG, "%u similar patches a voxel: 1 to %u", s->most,
                        OCT_PATCH_SEARCH_MOST_KEPT);
    if (s->n > OCT_PATCH_SEARCH_MOST_VOXELS)
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "a band of %u voxels, whose patches would take %.1f GB: %u voxels at most",
                        s->n, (double)s->n * s->patch * s->patch * s->patch * 4e-9,
                        OCT_PATCH_SEARCH_MOST_VOXELS);
    return OCT_OK;
}

enum oct_err oct_patch_search(const struct oct_patch_search_setup *setup, uint32_t *number,
                              float *distance, uint64_t *n_patches, struct oct_error *err)
{
    struct search s = {.setup = setup,
                       .number = number,
                       .distance = distance,
                       .width = (size_t)setup->patch * setup->patch * setup->patch};
    enum oct_err e = check(setup, err);
    if (n_patches)
        *n_patches = (uint64_t)setup->n * (setup->n ? setup->n - 1 : 0);
    if (e || setup->n == 0)
        return e;
    const size_t n_threads = setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1;
    s.patches = oct_aligned_alloc(64, setup->n, s.width * sizeof(*s.patches));
    s.heaps = calloc(n_threads * setup->most, sizeof(*s.heaps));
    if (!s.patches || !s.heaps) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "the patches of a band of %u voxels would take %.2f GB",
                     setup->n, (double)setup->n * (double)s.width * 4e-9);
        goto fail;
    }
    for (uint32_t i = 0; i < setup->n; i++)
        gather_patch(setup, setup->voxels[i], s.patches + i * s.width);
    oct_workers_run(setup->workers, (setup->n + QUERIES - 1) / QUERIES, run_piece, &s);
fail:
    free(s.patches);
    free(s.heaps);
    return e;
}
