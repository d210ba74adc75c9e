/* The passes over a tile, for the instruction set that the file is compiled for. */
#include "analysis/surface/levelset_local.h"
#include "analysis/surface/levelset_vector.h"

#include <math.h>

/* The voxels z that D(z, z + o) is made for. */
struct region {
    int32_t least[3], n[3];
    size_t row, plane; /* floats of the sums: an A-line, a B-scan */
};

static struct region region_of(const struct oct_levelset_work *work, const int8_t o[3], int32_t n)
{
    struct region r;
    for (unsigned i = 0; i < 3; i++) {
        const int32_t least = work->tile->least[i], end = work->tile->end[i];
        r.least[i] = o[i] > 0 ? least - o[i] : least;
        r.n[i] = (o[i] < 0 ? end - o[i] : end) - r.least[i];
    }
    r.row = (size_t)((r.n[2] + n - 1 + WIDTH - 1) / WIDTH * WIDTH);
    r.plane = (size_t)(r.n[1] + n - 1) * r.row;
    return r;
}

INLINE vec square(const float *x, const float *y)
{
    const vec difference = load(x) - load(y);
    return difference * difference;
}

/* Sums over n values, each of which comes once: by pairs, which overlapping windows share. */
struct window {
    vec pair[6], last;
};

INLINE vec slide(struct window *w, vec next, int n)
{
    vec sum = next;
    w->pair[n - 2] = w->last + next;
    w->last = next;
    UNROLL
    for (int i = 0; i < n - 2; i += 2)
        sum += w->pair[i];
    UNROLL
    for (int i = 0; i < n - 2; i++)
        w->pair[i] = w->pair[i + 1];
    return sum;
}

/* A register of depths of one A-line, in all B-scans. */
INLINE void sum_along_b(float *to, const float *x, ptrdiff_t to_y, ptrdiff_t step,
                        const struct region *r, int n)
{
    struct window w = {.last = square(x, x + to_y)};
    UNROLL
    for (int i = 1; i < n - 1; i++)
        slide(&w, square(x + i * step, x + i * step + to_y), n);
    x += (n - 1) * step;
    for (int32_t b = 0; b < r->n[0]; b++, x += step, to += r->plane)
        store(to, slide(&w, square(x, x + to_y), n));
}

/* In place: what is written has been read. */
INLINE void sum_along_j(float *values, const struct region *r, int n)
{
    struct window w = {.last = load(values)};
    const float *from = values + r->row;
    UNROLL
    for (int i = 1; i < n - 1; i++, from += r->row)
        slide(&w, load(from), n);
    for (int32_t j = 0; j < r->n[1]; j++, from += r->row, values += r->row)
        store(values, slide(&w, load(from), n));
}

/* scratch[b][j][d]: sums over b and j; d begins half a patch before the region. */
INLINE void sum_squares(const struct oct_levelset_work *work, const struct region *r,
                        const int8_t o[3], int n)
{
    const struct oct_levelset_grid *g = work->grid;
    const ptrdiff_t to_y = o[0] * g->plane + o[1] * g->row + o[2];
    const float *x = g->phi + (r->least[0] - n / 2) * g->plane + (r->least[1] - n / 2) * g->row +
                     (r->least[2] - n / 2);
    for (int32_t j = 0; j < r->n[1] + n - 1; j++)
        for (size_t d = 0; d < r->row; d += WIDTH)
            sum_along_b(work->scratch + (size_t)j * r->row + d, x + j * g->row + d, to_y, g->plane,
                        r, n);
    for (int32_t b = 0; b < r->n[0]; b++)
        for (size_t d = 0; d < r->row; d += WIDTH)
            sum_along_j(work->scratch + (size_t)b * r->plane + d, r, n);
}

/* D of a register of voxels. */
INLINE vec sum_along_d(const float *from, int n)
{
    vec sum = load(from) + load(from + 1);
    UNROLL
    for (int i = 2; i < n; i++)
        sum += load(from + i);
    return sum;
}

/* What a segment needs of an offset. */
struct place {
    const float *ahead, *back;         /* sums of D(x, x + o), D(x - o, x) */
    const float *now_ahead, *now_back; /* x + o, x - o */
};

INLINE struct place place_of(const struct oct_levelset_work *work, const struct region *r,
                             const struct oct_levelset_segment *s, const int8_t o[3])
{
    const struct oct_levelset_grid *g = work->grid;
    const ptrdiff_t plane = (ptrdiff_t)r->plane, row = (ptrdiff_t)r->row;
    const float *sums = work->scratch + (s->b - r->least[0]) * plane + (s->j - r->least[1]) * row +
                        (s->d - r->least[2]);
    const float *now = g->now + s->b * g->plane + s->j * g->row + s->d;
    const ptrdiff_t to_y = o[0] * g->plane + o[1] * g->row + o[2];
    return (struct place){sums, sums - (o[0] * plane + o[1] * row + o[2]), now + to_y, now - to_y};
}

INLINE unsigned count(lanes present, unsigned mask)
{
    return (unsigned)__builtin_popcount(bits_of(present) & mask);
}

INLINE lanes in_band(vec now)
{
    return below(now, all(0.1f * OCT_LEVELSET_NOT_IN_BAND));
}

/* ---- the smallest D ---- */

INLINE unsigned keep(float *smallest, unsigned rank, const float *sums, const float *now,
                     unsigned mask, int n)
{
    const lanes present = in_band(load(now));
    vec d = choose(present, sum_along_d(sums, n), all(INFINITY));
    if (bits_of(below(d, load(smallest + (rank - 1) * OCT_LEVELSET_LANES))) & mask)
        for (unsigned i = 0; i < rank; i++) {
            float *at = smallest + i * OCT_LEVELSET_LANES;
            const vec was = load(at);
            store(at, smaller(was, d));
            d = larger(was, d);
        }
    return count(present, mask);
}

INLINE uint64_t keep_of_offset(const struct oct_levelset_work *work, const int8_t o[3], int n)
{
    const struct region r = region_of(work, o, n);
    uint64_t n_pairs = 0;
    sum_squares(work, &r, o, n);
    for (uint32_t i = 0; i < work->tile->n; i++) {
        const struct oct_levelset_segment *s = work->segments + i;
        const struct place place = place_of(work, &r, s, o);
        float *smallest = work->smallest + (size_t)i * work->rank * OCT_LEVELSET_LANES;
        UNROLL
        for (unsigned part = 0; part < PARTS; part++) {
            const unsigned at = part * WIDTH, mask = (unsigned)s->mask >> at & ((1u << WIDTH) - 1);
            n_pairs +=
                keep(smallest + at, work->rank, place.ahead + at, place.now_ahead + at, mask, n);
            n_pairs +=
                keep(smallest + at, work->rank, place.back + at, place.now_back + at, mask, n);
        }
    }
    return n_pairs;
}

static void ranks(struct oct_levelset_work *work)
{
    const size_t n = (size_t)work->tile->n * work->rank * OCT_LEVELSET_LANES;
    work->n_pairs = 0;
    for (size_t i = 0; i < n; i++)
        work->smallest[i] = INFINITY;
    for (uint32_t i = 0; i < work->n_offsets; i++)
        switch (work->grid->patch) {
        case 3:
            work->n_pairs += keep_of_offset(work, work->offsets[i], 3);
            break;
        case 5:
            work->n_pairs += keep_of_offset(work, work->offsets[i], 5);
            break;
        default:
            work->n_pairs += keep_of_offset(work, work->offsets[i], 7);
        }
}

/* ---- sums of weights ---- */

/* w = 2^-(scale D + far). */
struct weight {
    float scale, far;
};

struct sums {
    vec differences, weights; /* sum w (phi_y - phi_x), sum w */
};

INLINE lanes add(struct sums *s, vec x, const float *sums, const float *now_at,
                 const struct weight *weight, int n)
{
    const vec now = load(now_at), d = sum_along_d(sums, n);
    const lanes present = in_band(now);
    const vec exponent = all(-weight->far) - d * all(weight->scale);
    const vec w = choose(present, power_of_two(exponent), all(0));
    s->differences += w * (now - x);
    s->weights += w;
    return present;
}

INLINE uint64_t add_of_offset(const struct oct_levelset_work *work, const int8_t o[3],
                              const struct weight *weight, int n)
{
    const struct region r = region_of(work, o, n);
    uint64_t n_pairs = 0;
    sum_squares(work, &r, o, n);
    for (uint32_t i = 0; i < work->tile->n; i++) {
        const struct oct_levelset_segment *s = work->segments + i;
        const struct place place = place_of(work, &r, s, o);
        const float *now =
            work->grid->now + s->b * work->grid->plane + s->j * work->grid->row + s->d;
        float *to = work->sums + (size_t)i * 2 * OCT_LEVELSET_LANES;
        UNROLL
        for (unsigned part = 0; part < PARTS; part++) {
            const unsigned at = part * WIDTH, mask = (unsigned)s->mask >> at & ((1u << WIDTH) - 1);
            const vec x = load(now + at);
            struct sums total = {load(to + at), load(to + OCT_LEVELSET_LANES + at)};
            const lanes ahead = add(&total, x, place.ahead + at, place.now_ahead + at, weight, n);
            const lanes back = add(&total, x, place.back + at, place.now_back + at, weight, n);
            n_pairs += count(ahead, mask) + count(back, mask);
            store(to + at, total.differences);
            store(to + OCT_LEVELSET_LANES + at, total.weights);
        }
    }
    return n_pairs;
}

static struct weight weight_of(const struct oct_levelset_work *work, const int8_t o[3])
{
    const double log2_e = 1.4426950408889634, scale = log2_e / work->c2;
    const double square = o[0] * o[0] + o[1] * o[1] + o[2] * o[2];
    return (struct weight){.scale = scale < 1e30 ? (float)scale : 1e30f,
                           .far = (float)fmin(log2_e * square / work->c1, 1e30)};
}

static void sums(struct oct_levelset_work *work)
{
    work->n_pairs = 0;
    memset(work->sums, 0, (size_t)work->tile->n * 2 * OCT_LEVELSET_LANES * sizeof(*work->sums));
    for (uint32_t i = 0; i < work->n_offsets; i++) {
        const int8_t *o = work->offsets[i];
        const struct weight weight = weight_of(work, o);
        switch (work->grid->patch) {
        case 3:
            work->n_pairs += add_of_offset(work, o, &weight, 3);
            break;
        case 5:
            work->n_pairs += add_of_offset(work, o, &weight, 5);
            break;
        default:
            work->n_pairs += add_of_offset(work, o, &weight, 7);
        }
    }
}

const struct oct_levelset_passes OCT_SIMD_TABLE(oct_levelset_passes) = {ranks, sums};
