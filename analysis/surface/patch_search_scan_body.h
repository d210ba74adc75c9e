/* The scan of patch_search_index.h for the instruction set that the file is compiled for: included
 * with OCT_SCAN_TABLE, OCT_SCAN_NAME and WIDTH, floats a register.
 *
 * Blocks come in the order of the distance between boxes, so that limits fall early. A pair is
 * ruled out by the distance of its first 8, 16 or 32 coordinates, 16 pairs at a time, or of 64;
 * what is left is computed. */
#include "analysis/surface/patch_search_index.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")
#define BLOCK OCT_PATCH_BLOCK
#define PARTS (BLOCK / WIDTH) /* registers of a block */
#define BUCKETS 128u
#define AHEAD 4u /* blocks whose coordinates are fetched */
#define HALF (WIDTH / 2)

typedef float vec __attribute__((vector_size(4 * WIDTH), may_alias));
typedef float half __attribute__((vector_size(4 * HALF), may_alias));
typedef double wide __attribute__((vector_size(8 * HALF), may_alias));
typedef int32_t bits __attribute__((vector_size(4 * WIDTH), may_alias));

/* A value for each patch of a block. */
struct lanes {
    vec part[PARTS];
};

INLINE vec all(float x)
{
    return x - (vec){0};
}

INLINE struct lanes load(const float *from)
{
    struct lanes v;
    memcpy(&v, from, sizeof(v));
    return v;
}

/* A bit for each lane that is not above the limit. */
INLINE unsigned not_above(struct lanes v, float limit)
{
    unsigned mask = 0;
    UNROLL
    for (unsigned p = 0; p < PARTS; p++) {
#if WIDTH == 16 && defined(__AVX512F__)
        mask |= _mm512_cmp_ps_mask((__m512)v.part[p], _mm512_set1_ps(limit), _CMP_NGT_UQ);
#elif WIDTH == 8 && defined(__AVX2__)
        const __m256 is = _mm256_cmp_ps((__m256)v.part[p], _mm256_set1_ps(limit), _CMP_NGT_UQ);
        mask |= (unsigned)_mm256_movemask_ps(is) << (p * WIDTH);
#else
        const bits is = ~(v.part[p] > all(limit));
        for (unsigned i = 0; i < WIDTH; i++)
            mask |= (unsigned)(is[i] & 1) << (p * WIDTH + i);
#endif
    }
    return mask;
}

/* sum += (other - x)^2 over the coordinates from .. to - 1 */
INLINE void add_squares(struct lanes *sum, const float *others, const float *x, unsigned from,
                        unsigned to)
{
    UNROLL
    for (unsigned c = from; c < to; c++) {
        const struct lanes other = load(others + (size_t)c * BLOCK);
        UNROLL
        for (unsigned p = 0; p < PARTS; p++) {
            const vec difference = other.part[p] - all(x[(size_t)c * BLOCK]);
            sum->part[p] += difference * difference;
        }
    }
}

INLINE double distance(const float *a, const float *b, size_t n)
{
    wide sums[4] = {{0}};
    double result = 0;
    for (size_t i = 0; i < n; i += 16)
        UNROLL
    for (unsigned k = 0; k < 16 / HALF; k++) {
        half x, y;
        memcpy(&x, a + i + (size_t)k * HALF, sizeof(x));
        memcpy(&y, b + i + (size_t)k * HALF, sizeof(y));
        const wide d = __builtin_convertvector(x, wide) - __builtin_convertvector(y, wide);
        sums[k % 4] += d * d;
    }
    const wide sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (unsigned i = 0; i < HALF; i++)
        result += sum[i];
    return result;
}

/* Squares of the differences of two tails. */
INLINE float distance_of_tails(const float *a, const float *b)
{
    vec sum = {0};
    float result = 0;
    UNROLL
    for (unsigned c = 0; c < OCT_PATCH_TAIL; c += WIDTH) {
        vec x, y;
        memcpy(&x, a + c, sizeof(x));
        memcpy(&y, b + c, sizeof(y));
        sum += (x - y) * (x - y);
    }
#if WIDTH == 16 && defined(__AVX512F__)
    result = _mm512_reduce_add_ps((__m512)sum);
#else
    for (unsigned i = 0; i < WIDTH; i++)
        result += sum[i];
#endif
    return result;
}

INLINE bool is_before(struct oct_patch_kept a, struct oct_patch_kept b)
{
    return a.distance < b.distance || (a.distance == b.distance && a.number < b.number);
}

static void replace_top(struct oct_patch_kept *heap, unsigned n, struct oct_patch_kept with)
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

/* No pair whose f32 distance is above it can be nearer than `distance`. */
static float limit_of(double distance, double margin)
{
    const double root = sqrt(distance) + margin;
    return (float)(root * root * OCT_PATCH_ROUNDING);
}

/* A block that is searched for, and its scratch. */
struct scan {
    const struct oct_patch_index *index;
    const struct oct_patch_scratch *scratch;
    uint32_t block;
    unsigned n, most; /* patches of the block; kept of each */
};

static unsigned n_of(const struct oct_patch_index *index, uint32_t block)
{
    const uint32_t left = index->n - block * BLOCK;
    return left < BLOCK ? left : BLOCK;
}

/* Pairs of a block that are not ruled out yet. What they need is fetched while others are looked
 * at. */
struct pair {
    uint32_t at; /* in the index */
    unsigned i;  /* of the block that is searched for */
    float distance;
};
struct pairs {
    unsigned n;
    struct pair pair[BLOCK * BLOCK];
};

INLINE void fetch(const float *from, size_t n)
{
    for (size_t i = 0; i < n; i += 16)
        __builtin_prefetch(from + i);
}

/* Adds the pairs of patch i with those of the block in `mask`. */
static void add_pairs(const struct scan *s, struct pairs *pairs, unsigned i, uint32_t block,
                      unsigned mask, struct lanes sum)
{
    float distances[BLOCK];
    memcpy(distances, &sum, sizeof(distances));
    for (; mask; mask &= mask - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(mask);
        const uint32_t at = block * BLOCK + lane;
        pairs->pair[pairs->n++] = (struct pair){at, i, distances[lane]};
        fetch(s->index->tails + (size_t)at * OCT_PATCH_TAIL, OCT_PATCH_TAIL);
    }
}

/* By their first coordinates. */
static void scan_heads(const struct scan *s, uint32_t block, float bound, struct pairs *pairs)
{
    const size_t floats = (size_t)OCT_PATCH_HEAD * BLOCK;
    const float *x = s->index->heads + s->block * floats;
    const float *others = s->index->heads + block * floats;
    const unsigned there = (1U << n_of(s->index, block)) - 1;
    for (unsigned i = 0; i < s->n; i++) {
        const float limit = s->scratch->limit[i];
        struct lanes sum = {{{0}}};
        if (bound > limit)
            continue;
        add_squares(&sum, others, x + i, 0, 8);
        unsigned mask = not_above(sum, limit) & there;
        if (block == s->block)
            mask &= ~(1U << i);
        if (!mask)
            continue;
        add_squares(&sum, others, x + i, 8, 16);
        if (!(mask &= not_above(sum, limit)))
            continue;
        add_squares(&sum, others, x + i, 16, OCT_PATCH_HEAD);
        if (mask &= not_above(sum, limit))
            add_pairs(s, pairs, i, block, mask, sum);
    }
}

/* By all coordinates; those that are left move to the front. */
static void scan_tails(const struct scan *s, struct pairs *pairs)
{
    const struct oct_patch_index *index = s->index;
    const float *tails = index->tails + (size_t)s->block * BLOCK * OCT_PATCH_TAIL;
    unsigned n = 0;
    for (unsigned k = 0; k < pairs->n; k++) {
        const struct pair p = pairs->pair[k];
        const float rest = distance_of_tails(tails + (size_t)p.i * OCT_PATCH_TAIL,
                                             index->tails + (size_t)p.at * OCT_PATCH_TAIL);
        if (p.distance + rest > s->scratch->limit[p.i])
            continue;
        pairs->pair[n++] = p;
        fetch(index->patches + p.at * index->stride, index->stride);
    }
    pairs->n = n;
}

static void scan_block(const struct scan *s, uint32_t block, float bound)
{
    const struct oct_patch_index *index = s->index;
    const float *patches = index->patches + s->block * BLOCK * index->stride;
    struct pairs pairs;
    pairs.n = 0;
    scan_heads(s, block, bound, &pairs);
    scan_tails(s, &pairs);
    for (unsigned k = 0; k < pairs.n; k++) {
        const struct pair p = pairs.pair[k];
        struct oct_patch_kept *heap = s->scratch->heaps + (size_t)p.i * s->most;
        const struct oct_patch_kept other = {distance(patches + p.i * index->stride,
                                                      index->patches + p.at * index->stride,
                                                      index->stride),
                                             index->order[p.at]};
        if (is_before(other, heap[0])) {
            replace_top(heap, s->most, other);
            s->scratch->limit[p.i] = limit_of(heap[0].distance, index->margin);
        }
    }
}

/* Squared distances between the boxes. */
static void bound_blocks(const struct scan *s)
{
    const uint32_t n = s->index->n_blocks;
    float *bound = s->scratch->bound;
    memset(bound, 0, n * sizeof(*bound));
    for (unsigned c = 0; c < OCT_PATCH_BOX; c++) {
        const float *low = s->index->low + (size_t)c * n, *high = s->index->high + (size_t)c * n;
        const float l = low[s->block], h = high[s->block];
        for (uint32_t b = 0; b < n; b++) {
            const float below = l - high[b], above = low[b] - h;
            const float gap = below > above ? below : above;
            const float square = gap * gap;
            bound[b] += gap > 0 ? square : 0;
        }
    }
}

static float largest_limit(const struct scan *s)
{
    float most = 0;
    for (unsigned i = 0; i < s->n; i++)
        most = s->scratch->limit[i] > most ? s->scratch->limit[i] : most;
    return most;
}

/* Bounds of values near the largest f32 are infinite. */
static unsigned bucket_of(float place)
{
    return place < BUCKETS - 1 ? (unsigned)place : BUCKETS - 1;
}

/* near = the blocks outside first .. last that may hold something, roughly the nearest first;
 * returns how many. */
static uint32_t sort_blocks(const struct scan *s, uint32_t first, uint32_t last)
{
    const float *bound = s->scratch->bound, most = largest_limit(s);
    const float scale = isfinite(most) && most > 0 ? (BUCKETS - 1) / most : 0;
    uint32_t ends[BUCKETS + 1] = {0};
    for (uint32_t b = 0; b < s->index->n_blocks; b++)
        if ((b < first || b > last) && !(bound[b] > most))
            ends[bucket_of(bound[b] * scale) + 1]++;
    for (unsigned i = 0; i < BUCKETS; i++)
        ends[i + 1] += ends[i];
    for (uint32_t b = 0; b < s->index->n_blocks; b++)
        if ((b < first || b > last) && !(bound[b] > most))
            s->scratch->near[ends[bucket_of(bound[b] * scale)]++] = b;
    return ends[BUCKETS - 1];
}

static void run(const struct oct_patch_index *index, uint32_t block, unsigned most,
                struct oct_patch_scratch *scratch)
{
    const struct scan s = {index, scratch, block, n_of(index, block), most};
    const uint32_t around = most / BLOCK + 1;
    const uint32_t first = block > around ? block - around : 0;
    const uint32_t left = index->n_blocks - 1 - block,
                   last = block + (left < around ? left : around);
    for (unsigned i = 0; i < s.n * most; i++)
        scratch->heaps[i] = (struct oct_patch_kept){INFINITY, UINT32_MAX};
    for (unsigned i = 0; i < s.n; i++)
        scratch->limit[i] = INFINITY;
    for (uint32_t b = first; b <= last; b++) /* neighbours in the tree: they fill the heaps */
        scan_block(&s, b, 0);
    bound_blocks(&s);
    const uint32_t n = sort_blocks(&s, first, last);
    float limit = largest_limit(&s);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t b = scratch->near[i];
        if (i + AHEAD < n)
            fetch(index->heads + (size_t)scratch->near[i + AHEAD] * OCT_PATCH_HEAD * BLOCK,
                  8 * BLOCK);
        if (i % 16 == 0)
            limit = largest_limit(&s);
        if (!(scratch->bound[b] > limit))
            scan_block(&s, b, scratch->bound[b]);
    }
}

const struct oct_patch_scan OCT_SCAN_TABLE = {.name = OCT_SCAN_NAME, .run = run};
