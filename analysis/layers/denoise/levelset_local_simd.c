/* The passes over a tile, for the instruction set that the file is compiled for. */
#include "analysis/layers/denoise/lanes.h"
#include "analysis/layers/denoise/levelset_local.h"

#include <math.h>

/* 2^x of x <= 0 to 2e-7 of it; x below -126: as of -126. */
INLINE vec power_of_two(vec x)
{
    x = larger(x, all(-126));
#if defined(__AVX512F__)
    const vec whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
    const vec shifted = x + all(12582912.0f); /* 1.5 2^23: its last bits hold the whole number */
    const vec whole = shifted - all(12582912.0f);
#endif
    const vec r = x - whole;
    vec p = all(1.5403530e-4f);
    p = p * r + all(1.3333558e-3f);
    p = p * r + all(9.6181291e-3f);
    p = p * r + all(5.5504109e-2f);
    p = p * r + all(2.4022651e-1f);
    p = p * r + all(6.9314718e-1f);
    p = p * r + all(1);
#if defined(__AVX512F__)
    return _mm512_scalef_ps(p, whole);
#elif defined(__AVX2__)
    const __m256i up = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), up));
#else
    return (vec)((lanes)p + (lanes)((uint32_t __attribute__((vector_size(16))))shifted << 23));
#endif
}

/* The voxels z that D(z, z + o) is made for. */
struct region {
    int32_t least[3], n[3];
    size_t row, plane; /* floats of the sums: an A-line, a B-scan */
};

static struct region region_of(const struct oct_levelset_tile *tile, const int8_t o[3], int32_t n)
{
    struct region r;
    for (unsigned i = 0; i < 3; i++) {
        const int32_t least = tile->least[i], end = tile->end[i];
        r.least[i] = o[i] > 0 ? least - o[i] : least;
        r.n[i] = (o[i] < 0 ? end - o[i] : end) - r.least[i];
    }
    r.row = (size_t)(r.n[2] + n - 1 + WIDTH - 1) / WIDTH * WIDTH;
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
INLINE void sum_squares(const struct oct_levelset_grid *g, const struct region *r,
                        const int8_t o[3], int n, float *scratch)
{
    const ptrdiff_t to_y = o[0] * g->plane + o[1] * g->row + o[2];
    const float *x = g->phi + (r->least[0] - n / 2) * g->plane + (r->least[1] - n / 2) * g->row +
                     (r->least[2] - n / 2);
    for (int32_t j = 0; j < r->n[1] + n - 1; j++)
        for (size_t d = 0; d < r->row; d += WIDTH)
            sum_along_b(scratch + (size_t)j * r->row + d, x + j * g->row + d, to_y, g->plane, r, n);
    for (int32_t b = 0; b < r->n[0]; b++)
        for (size_t d = 0; d < r->row; d += WIDTH)
            sum_along_j(scratch + (size_t)b * r->plane + d, r, n);
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

INLINE struct place place_of(const struct oct_levelset_grid *g, const struct region *r,
                             const struct oct_levelset_segment *s, const int8_t o[3],
                             const float *scratch)
{
    const ptrdiff_t plane = (ptrdiff_t)r->plane, row = (ptrdiff_t)r->row;
    const float *sums =
        scratch + (s->b - r->least[0]) * plane + (s->j - r->least[1]) * row + (s->d - r->least[2]);
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

/* ---- passes ---- */

/* Both y = x + o and y = x - o of all voxels of the tile. weight NULL: `found` are the smallest D,
 * else sums. */
INLINE uint64_t pass_offset(const struct oct_levelset_tiles *t,
                            const struct oct_levelset_tile *tile, const int8_t o[3],
                            const struct weight *weight, int n, float *scratch, float *found)
{
    const struct oct_levelset_grid *g = &t->grid;
    const struct region r = region_of(tile, o, n);
    const unsigned n_found = (weight ? 2 : t->rank) * OCT_LEVELSET_LANES;
    uint64_t n_pairs = 0;
    sum_squares(g, &r, o, n, scratch);
    for (uint32_t i = 0; i < tile->n; i++) {
        const struct oct_levelset_segment *s = t->segments + tile->first + i;
        const struct place p = place_of(g, &r, s, o, scratch);
        const float *now = g->now + s->b * g->plane + s->j * g->row + s->d;
        UNROLL
        for (unsigned part = 0; part < PARTS; part++) {
            const unsigned at = part * WIDTH, mask = (unsigned)s->mask >> at & ((1u << WIDTH) - 1);
            float *to = found + (size_t)i * n_found + at;
            if (!weight) {
                n_pairs += keep(to, t->rank, p.ahead + at, p.now_ahead + at, mask, n);
                n_pairs += keep(to, t->rank, p.back + at, p.now_back + at, mask, n);
                continue;
            }
            const vec x = load(now + at);
            struct sums total = {load(to), load(to + OCT_LEVELSET_LANES)};
            n_pairs += count(add(&total, x, p.ahead + at, p.now_ahead + at, weight, n), mask);
            n_pairs += count(add(&total, x, p.back + at, p.now_back + at, weight, n), mask);
            store(to, total.differences);
            store(to + OCT_LEVELSET_LANES, total.weights);
        }
    }
    return n_pairs;
}

static uint64_t ranks(const struct oct_levelset_tiles *t, const struct oct_levelset_tile *tile,
                      float *scratch, float *smallest)
{
    uint64_t n_pairs = 0;
    for (size_t i = 0; i < (size_t)tile->n * t->rank * OCT_LEVELSET_LANES; i++)
        smallest[i] = INFINITY;
    for (uint32_t i = 0; i < t->n_offsets; i++) {
        const int8_t *o = t->offsets[i];
        n_pairs += t->grid.patch == 3   ? pass_offset(t, tile, o, NULL, 3, scratch, smallest)
                   : t->grid.patch == 5 ? pass_offset(t, tile, o, NULL, 5, scratch, smallest)
                                        : pass_offset(t, tile, o, NULL, 7, scratch, smallest);
    }
    return n_pairs;
}

static uint64_t sums(const struct oct_levelset_tiles *t, const struct oct_levelset_tile *tile,
                     float *scratch, float *to)
{
    const double log2_e = 1.4426950408889634, scale = log2_e / t->c2;
    uint64_t n_pairs = 0;
    memset(to, 0, (size_t)tile->n * 2 * OCT_LEVELSET_LANES * sizeof(*to));
    for (uint32_t i = 0; i < t->n_offsets; i++) {
        const int8_t *o = t->offsets[i];
        const double square = o[0] * o[0] + o[1] * o[1] + o[2] * o[2];
        const struct weight w = {.scale = scale < 1e30 ? (float)scale : 1e30f,
                                 .far = (float)fmin(log2_e * square / t->setup.params.c1, 1e30)};
        n_pairs += t->grid.patch == 3   ? pass_offset(t, tile, o, &w, 3, scratch, to)
                   : t->grid.patch == 5 ? pass_offset(t, tile, o, &w, 5, scratch, to)
                                        : pass_offset(t, tile, o, &w, 7, scratch, to);
    }
    return n_pairs;
}

const struct oct_levelset_passes OCT_SIMD_TABLE(oct_levelset_passes) = {ranks, sums};
