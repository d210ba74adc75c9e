#include "kernels/recon/percentile.h"

#include "pipeline/base/aligned.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FEW 24u             /* values that are sorted */
#define SAMPLE 4096u        /* values */
#define MOST_ROOM 16384u    /* of a sieve: 64 KB */
#define ROOM_FOR_ONE_OF 16u /* values */
#define FIRST_WIDTH 128     /* half the width between bounds, of hi - lo: a part of that many */
#define MOST_WIDTH 8
#define DEVIATIONS 8

/* ---- keys: they rise with the float, also below zero; of -0 and 0 the key is that of 0 ---- */

#define CELL_BITS 4 /* lower bits of a key, which are not resolved */

static uint32_t cell_of(float value)
{
    uint32_t bits;
    value += 0.0f;
    memcpy(&bits, &value, sizeof(bits));
    return (bits ^ ((0u - (bits >> 31)) | 0x80000000u)) >> CELL_BITS;
}

static float value_of(uint32_t key)
{
    uint32_t bits = key ^ ((key >> 31) ? 0x80000000u : 0xffffffffu);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static float resolved(float value)
{
    return value_of(cell_of(value) << CELL_BITS | 1u << (CELL_BITS - 1));
}

/* ---- sieves ---- */

enum oct_err oct_sieves_init(struct oct_sieves *sieves, size_t n_values, size_t n_line)
{
    size_t room = n_values / ROOM_FOR_ONE_OF < MOST_ROOM ? n_values / ROOM_FOR_ONE_OF : MOST_ROOM;
    *sieves = (struct oct_sieves){0};
    for (int i = 0; i < 2; i++) {
        struct oct_sieve *s = &sieves->of[i];
        s->room = room + n_line;
        s->kept = oct_aligned_alloc(64, s->room + OCT_SIFT_SLACK, sizeof(float));
        if (!s->kept)
            return OCT_E_NO_MEMORY;
    }
    return OCT_OK;
}

void oct_sieves_finish(struct oct_sieves *sieves)
{
    free(sieves->of[0].kept);
    free(sieves->of[1].kept);
    *sieves = (struct oct_sieves){0};
}

void oct_sieves_empty(struct oct_sieves *sieves, const struct oct_percentile_bounds bounds[2])
{
    for (int i = 0; i < 2; i++) {
        struct oct_sieve *s = &sieves->of[i];
        s->bounds = bounds[i];
        s->n = s->below = 0;
        s->full = !(bounds[i].from < bounds[i].to);
    }
}

void oct_sieves_add(struct oct_sieves *sieves, const struct oct_stages *stages, const float *values,
                    size_t n)
{
    for (int i = 0; i < 2; i++)
        sieves->of[i].full = sieves->of[i].full || sieves->of[i].room - sieves->of[i].n < n;
    if (!sieves->of[0].full && !sieves->of[1].full) {
        stages->sift_both(&sieves->of[0], &sieves->of[1], values, n);
        return;
    }
    for (int i = 0; i < 2; i++) {
        struct oct_sieve *s = &sieves->of[i];
        if (!s->full)
            s->n +=
                stages->sift(s->kept + s->n, values, n, s->bounds.from, s->bounds.to, &s->below);
    }
}

/* ---- ranks ---- */

/* Some of the values, of which `below` others are lower, and those kept are next in order. */
struct part {
    const float *values;
    size_t n, below;
};

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Between the smallest and the largest value: the first cell of the upper half, in turn of the
 * cells, which are finest near zero, and of the line of numbers. */
static float middle_of(float min, float max, bool by_cells)
{
    const uint32_t first = cell_of(min), last = cell_of(max);
    uint32_t cell = by_cells ? first + (last - first + 1) / 2 : cell_of(min / 2 + max / 2);
    cell = cell <= first ? first + 1 : cell > last ? last : cell;
    return value_of(cell << CELL_BITS);
}

static float least_from(const struct part *p, float from)
{
    float least = INFINITY;
    for (size_t i = 0; i < p->n; i++)
        least = p->values[i] >= from && p->values[i] < least ? p->values[i] : least;
    return least;
}

/* at: the values of ranks k and k + 1 of the part, which holds k. */
static void find_ranks(const struct oct_percentile_values *v, struct part p, size_t k, double at[2])
{
    float least_above = INFINITY;
    for (unsigned step = 0; p.n > FEW; step++) {
        float min = FLT_MAX, max = -FLT_MAX, *lower = v->spare[step % 2];
        v->stages->min_max(p.values, p.n, &min, &max);
        if (cell_of(min) >= cell_of(max))
            break;
        const float middle = middle_of(min, max, step % 2);
        size_t below = 0, n = v->stages->sift(lower, p.values, p.n, -INFINITY, middle, &below);
        if (k + 1 == n)
            least_above = least_from(&p, middle);
        if (k >= n) {
            k -= n;
            n = v->stages->sift(lower, p.values, p.n, middle, INFINITY, &below);
        }
        p = (struct part){.values = lower, .n = n};
    }
    float few[FEW] = {FLT_MAX}; /* of infinities, which are not sifted, none may be left */
    const size_t n = p.n < FEW ? p.n : FEW; /* more: all are of one cell */
    memcpy(few, p.values, n * sizeof(*few));
    qsort(few, n, sizeof(*few), by_value);
    const size_t last = n > 0 ? n - 1 : 0;
    at[0] = (double)resolved(few[k < last ? k : last]);
    at[1] = k + 1 < p.n || least_above == INFINITY
                ? (double)resolved(few[k + 1 < last ? k + 1 : last])
                : (double)resolved(least_above);
}

/* Whether the part has the rank and, where there is one, the next. */
static bool has_rank(const struct part *p, size_t rank, size_t n)
{
    return p->n > 0 && rank >= p->below && rank + (rank + 1 < n) < p->below + p->n;
}

/* What the sieves kept for percentile i. */
static bool collect(const struct oct_percentile_values *v, int i, size_t rank, struct part *p)
{
    *p = (struct part){0};
    for (unsigned k = 0; k < v->n_sieves; k++) {
        const struct oct_sieve *s = &v->sieves[k].of[i];
        if (s->full)
            return false;
        if (v->n_sieves == 1)
            p->values = s->kept;
        else if (s->n)
            memcpy(v->spare[1] + p->n, s->kept, s->n * sizeof(float));
        p->n += s->n;
        p->below += s->below;
    }
    if (v->n_sieves > 1)
        p->values = v->spare[1];
    return has_rank(p, rank, v->n);
}

/* The value of a rank of all values by those of a sample; beyond it, an infinity. */
static float sampled(const struct oct_percentile_values *v, double rank)
{
    const size_t stride = v->n / SAMPLE | 1; /* odd: of every depth */
    struct part p = {.values = v->spare[1]};
    double at[2], k = rank / (double)stride;
    for (size_t i = 0; i < v->n; i += stride)
        v->spare[1][p.n++] = v->values[i];
    if (k < 0 || k >= (double)(p.n - 1))
        return k < 0 ? -INFINITY : INFINITY;
    find_ranks(v, p, (size_t)k, at);
    return (float)at[0];
}

/* The part of all values around a rank, by bounds five standard deviations of the sample from it;
 * if it is not between them after all, the part is the whole. */
static void sift_again(const struct oct_percentile_values *v, size_t rank, struct part *p)
{
    const double n = (double)v->n, share = (double)rank / n;
    const double width = n / SAMPLE * (5 * sqrt(share * (1 - share) * SAMPLE) + 5);
    *p = (struct part){.values = v->spare[1]};
    if (v->n > 2 * SAMPLE) {
        float from = sampled(v, (double)rank - width), to = sampled(v, (double)rank + width);
        p->n = v->stages->sift(v->spare[1], v->values, v->n, from, to, &p->below);
    }
    if (!has_rank(p, rank, v->n))
        *p = (struct part){.values = v->values, .n = v->n};
}

/* Half the width between the next bounds: so that they keep a few standard deviations of a rank of
 * as many values, drawn anew; wider at once where they missed. */
static double next_half(const struct oct_percentile_values *v, int i, const struct part *p,
                        bool hit, double found, double span)
{
    const struct oct_percentile_bounds *b = &v->sieves[0].of[i].bounds;
    const bool known = b->from < b->to;
    const double half = ((double)b->to - (double)b->from) / 2, most = span / MOST_WIDTH;
    const double n = (double)v->n, share = ((double)p->below + (double)p->n / 2) / n;
    const double wanted = DEVIATIONS * sqrt(n * share * (1 - share)) + DEVIATIONS;
    double next = span / FIRST_WIDTH;
    if (hit)
        next = half * fmin(fmax(wanted / (double)p->n, 0.95), 1.5);
    else if (known && found >= (double)b->from && found < (double)b->to)
        next = half / 4; /* too many were kept */
    else if (known)
        next = fmax(2 * fabs(found - ((double)b->from + half)), next);
    return fmax(fmin(next, most), fabs(found) * 0x1p-16 + (double)FLT_MIN);
}

void oct_percentiles_find(const struct oct_percentile_values *v, const double percent[2],
                          struct oct_percentile_bounds bounds[2], double found[2])
{
    struct part p[2];
    bool hit[2];
    for (int i = 0; i < 2; i++) {
        double rank = (double)v->n_missing + percent[i] / 100 * (double)(v->n - v->n_missing - 1);
        double at[2];
        size_t r0 = (size_t)rank;
        hit[i] = collect(v, i, r0, &p[i]);
        if (!hit[i])
            sift_again(v, r0, &p[i]);
        find_ranks(v, p[i], r0 - p[i].below, at);
        found[i] = at[0] + (at[1] - at[0]) * (rank - (double)r0);
    }
    for (int i = 0; i < 2; i++) {
        double half = next_half(v, i, &p[i], hit[i], found[i], fabs(found[1] - found[0]));
        bounds[i] =
            (struct oct_percentile_bounds){(float)(found[i] - half), (float)(found[i] + half)};
    }
}

/* Whether a B-scan whose white is hi shows nothing: all of it, but for the resolution of a
 * percentile, at the floor of step 8. */
static bool shows_nothing(double hi, bool log)
{
    return hi < (log ? -119.999 : 1e-12);
}

void oct_smoothed_range_update(struct oct_smoothed_range *range, const struct oct_bscan_info *info,
                               const struct oct_display *display, double *lo, double *hi)
{
    const bool goes_on =
        range->started && range->acquisition == info->acquisition && range->volume == info->volume;
    const bool nothing = shows_nothing(*hi, display->log);
    if (goes_on) {
        /* Written so that limits without smoothing, and those of pictures that are alike, stay
         * exactly what they are: black and white of an even picture would part by a rounding. */
        const double s = display->smoothing_bscans, before = nothing ? 1 : s / (1 + s);
        *lo += (range->lo - *lo) * before;
        *hi += (range->hi - *hi) * before;
    }
    if (!nothing)
        *range = (struct oct_smoothed_range){true, info->acquisition, info->volume, *lo, *hi};
}
