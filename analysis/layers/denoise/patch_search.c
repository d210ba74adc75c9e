#include "analysis/layers/denoise/patch_search.h"

#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/wide.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A patch is n^2 columns along the depth. Their sums over sqrt(n), by a cosine transform with low
 * frequencies first, are its n^2 coordinates: an orthonormal projection, so that
 *
 *     D(x, y) >= sum over the coordinates of (x_c - y_c)^2
 *
 * and the first few say most. Patches are sorted into blocks of neighbours, the leaves of a k-d
 * tree over the first HEAD coordinates. A block meets the others from its place in the tree
 * outwards: the boxes of both blocks, then HEAD and then all coordinates rule out most patches, and
 * D of the rest is computed. */

#define LANES OCT_PATCH_LANES
#define HEAD OCT_PATCH_HEAD
#define PIECE 1024u /* patches that are gathered as one piece */
#define MOST_N 7
#define PI 3.14159265358979323846
#define MOST_COLUMNS (MOST_N * MOST_N)

/* Registers of AVX2, which gcc splits where there is none. */
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
typedef double four_doubles __attribute__((vector_size(32)));

struct kept {
    double distance;
    uint32_t number;
};

/* Of the thread that searches. */
struct scratch {
    struct kept *heaps; /* [LANES][most], the last in (distance, number) at 0 */
    float reach[LANES]; /* what is above it is ruled out */
    float farthest;     /* the largest of those */
    float *boxes;       /* [n_blocks] squared distances from the block's box */
};

struct key {
    float value;
    uint32_t number;
};

struct search {
    const struct oct_patch_search_setup *setup;
    uint32_t *number;
    float *distance;
    uint32_t n, n_blocks;
    unsigned n_columns;
    size_t stride;                            /* floats of a patch, those past n^3 0 */
    double basis[MOST_COLUMNS][MOST_COLUMNS]; /* [coordinate][column] */
    float *heads;                             /* [n][HEAD], by number */
    struct key *keys;                         /* [n], their numbers in the tree's order */
    float *patches;                           /* [n][stride], in this order */
    float *coordinates;                       /* [n_blocks][n_columns][LANES] */
    float *low, *high;                        /* [HEAD][n_blocks] */
    /* Coordinates are rounded: the root of what they rule out by exceeds that of D by no more than
     * margin, but for a factor of sqrt(ROUNDING). */
    double margin;
    const struct oct_patch_bounds *bounds;
    unsigned n_threads;
    struct scratch *scratch; /* [n_threads] */
};
#define ROUNDING (1 + 0x1p-17)

/* ---- the patches, sorted ---- */

/* By frequency: of both directions together, then of the first. */
static void make_basis(struct search *s)
{
    const unsigned n = s->setup->patch;
    unsigned c = 0;
    for (unsigned both = 0; both <= 2 * (n - 1); both++)
        for (unsigned p = 0; p <= both; p++) {
            const unsigned q = both - p;
            if (p >= n || q >= n)
                continue;
            for (unsigned i = 0; i < n * n; i++)
                s->basis[c][i] = cos(PI * (i / n + 0.5) * p / n) * cos(PI * (i % n + 0.5) * q / n) *
                                 sqrt((p ? 2.0 : 1.0) * (q ? 2.0 : 1.0) / n) / n;
            c++;
        }
}

static uint32_t inside(int64_t at, uint32_t n)
{
    return at < 0 ? 0 : at >= n ? n - 1 : (uint32_t)at;
}

/* The patch about a voxel of the band. */
static void gather(const struct oct_patch_search_setup *setup, uint32_t number, float *to)
{
    const uint32_t n_j = setup->dims[1], n_d = setup->dims[2], voxel = setup->voxels[number];
    const int64_t half = setup->patch / 2, d = voxel % n_d, j = voxel / n_d % n_j;
    const int64_t b = voxel / n_d / n_j;
    for (int64_t z = b - half; z <= b + half; z++)
        for (int64_t y = j - half; y <= j + half; y++) {
            const size_t row = (size_t)inside(z, setup->dims[0]) * n_j + inside(y, n_j);
            for (int64_t x = d - half; x <= d + half; x++)
                *to++ = setup->phi[row * n_d + inside(x, n_d)];
        }
}

static void project(const struct search *s, const float *patch, unsigned n_coordinates, float *to,
                    size_t step)
{
    const unsigned n = s->setup->patch;
    double sums[MOST_COLUMNS] = {0};
    for (unsigned i = 0; i < n * n * n; i++)
        sums[i / n] += (double)patch[i];
    for (unsigned c = 0; c < n_coordinates; c++) {
        double x = 0;
        for (unsigned i = 0; i < n * n; i++)
            x += s->basis[c][i] * sums[i];
        to[c * step] = (float)x;
    }
}

static uint32_t end_of(const struct search *s, unsigned piece)
{
    const uint32_t left = s->n - piece * PIECE;
    return piece * PIECE + (left < PIECE ? left : PIECE);
}

static void project_piece(void *context, unsigned piece, unsigned worker)
{
    struct search *s = context;
    float patch[MOST_COLUMNS * MOST_N];
    (void)worker;
    for (uint32_t i = piece * PIECE; i < end_of(s, piece); i++) {
        gather(s->setup, i, patch);
        project(s, patch, HEAD, s->heads + (size_t)i * HEAD, 1);
        s->keys[i].number = i;
    }
}

static int by_value(const void *a, const void *b)
{
    const struct key *p = a, *q = b;
    if (p->value < q->value || p->value > q->value)
        return p->value < q->value ? -1 : 1;
    return (p->number > q->number) - (p->number < q->number);
}

/* Halves keys[from .. from + n - 1], by whole blocks, across the coordinate in which they differ
 * most, until a block is left. */
static void sort_keys(struct search *s, uint32_t from, uint32_t n)
{
    struct key *keys = s->keys + from;
    double most = -1;
    unsigned widest = 0;
    if (n <= LANES)
        return;
    for (unsigned c = 0; c < HEAD; c++) {
        double sum = 0, squares = 0;
        for (uint32_t i = 0; i < n; i++) {
            const double x = (double)s->heads[(size_t)keys[i].number * HEAD + c];
            sum += x;
            squares += x * x;
        }
        if (squares - sum * sum / n > most) {
            most = squares - sum * sum / n;
            widest = c;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        keys[i].value = s->heads[(size_t)keys[i].number * HEAD + widest];
    qsort(keys, n, sizeof(*keys), by_value);
    const uint32_t left = (n + LANES - 1) / LANES / 2 * LANES;
    sort_keys(s, from, left);
    sort_keys(s, from + left, n - left);
}

static void fill_block(void *context, unsigned block, unsigned worker)
{
    struct search *s = context;
    float *to = s->coordinates + (size_t)block * s->n_columns * LANES;
    (void)worker;
    for (uint32_t i = block * LANES; i < (block + 1) * LANES && i < s->n; i++) {
        float *patch = s->patches + i * s->stride;
        gather(s->setup, s->keys[i].number, patch);
        project(s, patch, s->n_columns, to + i % LANES, LANES);
        for (unsigned c = 0; c < HEAD; c++) {
            float *low = s->low + c * s->n_blocks + block;
            float *high = s->high + c * s->n_blocks + block;
            const float x = to[c * LANES + i % LANES];
            *low = i % LANES ? fminf(*low, x) : x;
            *high = i % LANES ? fmaxf(*high, x) : x;
        }
    }
}

static void sort_patches(struct search *s)
{
    double largest = 0;
    make_basis(s);
    oct_workers_run(s->setup->workers, (s->n + PIECE - 1) / PIECE, project_piece, s);
    sort_keys(s, 0, s->n);
    oct_workers_run(s->setup->workers, s->n_blocks, fill_block, s);
    for (uint32_t i = 0; i < s->n; i++) {
        double norm = 0;
        for (size_t k = i * s->stride; k < (i + 1) * s->stride; k++)
            norm += (double)s->patches[k] * (double)s->patches[k];
        largest = fmax(largest, norm);
    }
    s->margin = 0x1p-22 * sqrt(largest); /* two coordinates rounded, and as much again */
}

/* ---- the search ---- */

static inline bool is_before(struct kept a, struct kept b)
{
    return a.distance < b.distance || (a.distance <= b.distance && a.number < b.number);
}

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

OCT_WIDE static double distance_of(const float *a, const float *b, size_t n)
{
    four_doubles sums[4] = {{0}};
    for (size_t i = 0; i < n; i += 16)
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++) {
            const four x = *(const four *)(a + i + 4 * k), y = *(const four *)(b + i + 4 * k);
            const four_doubles d =
                __builtin_convertvector(x, four_doubles) - __builtin_convertvector(y, four_doubles);
            sums[k] += d * d;
        }
    const four_doubles sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    return sum[0] + sum[1] + sum[2] + sum[3];
}

static void meet_block(const struct search *s, struct scratch *scratch, uint32_t own,
                       uint32_t block)
{
    const unsigned most = s->setup->most;
    const size_t step = (size_t)s->n_columns * LANES;
    uint16_t near[LANES];
    s->bounds->compare(s->coordinates + own * step, s->coordinates + block * step, s->n_columns,
                       scratch->reach, near);
    for (unsigned i = 0; i < LANES; i++) {
        const float *patch = s->patches + (size_t)(own * LANES + i) * s->stride;
        struct kept *heap = scratch->heaps + (size_t)i * most;
        for (unsigned bits = near[i]; bits; bits &= bits - 1) {
            const uint32_t at = block * LANES + (unsigned)__builtin_ctz(bits);
            if (at >= s->n || at == own * LANES + i)
                continue;
            const struct kept other = {distance_of(patch, s->patches + at * s->stride, s->stride),
                                       s->keys[at].number};
            if (!is_before(other, heap[0]))
                continue;
            replace_top(heap, most, other);
            const double root = sqrt(heap[0].distance) + s->margin;
            scratch->reach[i] = (float)(root * root * ROUNDING);
        }
    }
    scratch->farthest = -1;
    for (unsigned i = 0; i < LANES; i++)
        scratch->farthest = fmaxf(scratch->farthest, scratch->reach[i]);
}

static int by_distance(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    return is_before(*x, *y) ? -1 : is_before(*y, *x);
}

static void search_block(void *context, unsigned block, unsigned worker)
{
    const struct search *s = context;
    const unsigned most = s->setup->most;
    struct scratch *scratch = &s->scratch[worker];
    for (unsigned i = 0; i < LANES * most; i++)
        scratch->heaps[i] = (struct kept){INFINITY, UINT32_MAX};
    for (unsigned i = 0; i < LANES; i++)
        scratch->reach[i] = block * LANES + i < s->n ? INFINITY : -1;
    s->bounds->boxes(s->low, s->high, s->n_blocks, block, scratch->boxes);
    meet_block(s, scratch, block, block);
    for (uint32_t away = 1; away < s->n_blocks; away++) {
        if (away <= block && !(scratch->boxes[block - away] > scratch->farthest))
            meet_block(s, scratch, block, block - away);
        if (away < s->n_blocks - block && !(scratch->boxes[block + away] > scratch->farthest))
            meet_block(s, scratch, block, block + away);
    }
    for (uint32_t i = 0; i < LANES && block * LANES + i < s->n; i++) {
        struct kept *kept = scratch->heaps + (size_t)i * most;
        const size_t to = (size_t)s->keys[block * LANES + i].number * most;
        qsort(kept, most, sizeof(*kept), by_distance);
        for (unsigned k = 0; k < most; k++) {
            s->number[to + k] = kept[k].number;
            s->distance[to + k] = (float)kept[k].distance;
        }
    }
}

/* ---- memory ---- */

static double bytes_of(const struct search *s)
{
    return (double)s->n * ((double)(s->stride + HEAD) * sizeof(float) + sizeof(struct key)) +
           (double)s->n_blocks * (double)(LANES * s->n_columns + 2 * HEAD) * sizeof(float);
}

static enum oct_err allocate(struct search *s, struct oct_error *err)
{
    bool is_there = true;
    s->heads = calloc(s->n, HEAD * sizeof(*s->heads));
    s->keys = calloc(s->n, sizeof(*s->keys));
    s->patches = oct_aligned_calloc(64, s->n, s->stride * sizeof(*s->patches));
    s->coordinates = oct_aligned_calloc(64, s->n_blocks, s->n_columns * LANES * sizeof(float));
    s->low = calloc(s->n_blocks, HEAD * sizeof(*s->low));
    s->high = calloc(s->n_blocks, HEAD * sizeof(*s->high));
    s->scratch = calloc(s->n_threads, sizeof(*s->scratch));
    for (unsigned i = 0; s->scratch && i < s->n_threads; i++) {
        s->scratch[i].heaps = calloc((size_t)LANES * s->setup->most, sizeof(struct kept));
        s->scratch[i].boxes = calloc(s->n_blocks, sizeof(float));
        is_there = is_there && s->scratch[i].heaps && s->scratch[i].boxes;
    }
    if (is_there && s->heads && s->keys && s->patches && s->coordinates && s->low && s->high &&
        s->scratch)
        return OCT_OK;
    return oct_fail(err, OCT_E_NO_MEMORY, "the search in a band of %u voxels would take %.2f GB",
                    s->n, bytes_of(s) * 1e-9);
}

static void finish(struct search *s)
{
    for (unsigned i = 0; s->scratch && i < s->n_threads; i++) {
        free(s->scratch[i].heaps);
        free(s->scratch[i].boxes);
    }
    free(s->scratch);
    free(s->heads);
    free(s->keys);
    free(s->patches);
    free(s->coordinates);
    free(s->low);
    free(s->high);
}

enum oct_err oct_patch_search(const struct oct_patch_search_setup *setup, uint32_t *number,
                              float *distance, uint64_t *n_patches, struct oct_error *err)
{
    static const struct oct_patch_bounds *const sets[OCT_N_SIMD + 1] = {
        OCT_SIMD_ALL(oct_patch_bounds)};
    const unsigned n = setup->patch;
    if (n != 3 && n != 5 && n != 7)
        return oct_fail(err, OCT_E_ARG, "patches of %u voxels: 3, 5 or 7", n);
    if (setup->most < 1 || setup->most > OCT_PATCH_SEARCH_MOST_KEPT)
        return oct_fail(err, OCT_E_ARG, "%u similar patches a voxel: 1 to %u", setup->most,
                        OCT_PATCH_SEARCH_MOST_KEPT);
    if (n_patches)
        *n_patches = (uint64_t)setup->n * (setup->n ? setup->n - 1 : 0);
    if (setup->n == 0)
        return OCT_OK;
    struct search s = {
        .setup = setup,
        .number = number,
        .distance = distance,
        .n = setup->n,
        .n_blocks = (setup->n + LANES - 1) / LANES,
        .n_columns = n * n,
        .stride = ((size_t)n * n * n + 15) / 16 * 16,
        .bounds = sets[oct_simd_choose("auto")],
        .n_threads = setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1,
    };
    if (setup->n > OCT_PATCH_SEARCH_MOST_VOXELS)
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "the search in a band of %u voxels would take %.1f GB: %u voxels at most",
                        setup->n, bytes_of(&s) * 1e-9, OCT_PATCH_SEARCH_MOST_VOXELS);
    enum oct_err e = allocate(&s, err);
    if (!e) {
        sort_patches(&s);
        oct_workers_run(setup->workers, s.n_blocks, search_block, &s);
    }
    finish(&s);
    return e;
}
