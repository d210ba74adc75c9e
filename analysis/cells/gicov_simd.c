/* The scores of a block of 2 x 2 registers of pixels at once. */
#include "analysis/cells/find.h"
#include "pipeline/base/vector.h"

#define UNROLL _Pragma("GCC unroll 32")
#define BLOCK 4 /* registers: two of a row, in two rows */
#define COLUMNS (2 * WIDTH)
#define PORTION 32

struct sums {
    vec g[BLOCK], squares[BLOCK];
};

struct best {
    vec ratio[BLOCK], m[BLOCK], v[BLOCK], k[BLOCK];
};

INLINE const float *pixel(const float *at, size_t row, unsigned i)
{
    return at + (i / 2) * row + (size_t)(i % 2) * WIDTH;
}

INLINE void clear(struct sums *s)
{
    UNROLL
    for (unsigned i = 0; i < BLOCK; i++)
        s->g[i] = s->squares[i] = all(0);
}

INLINE void add_single(struct sums *s, const vec *pivot, const float *at,
                       const struct oct_cells_gicov *gicov, const struct oct_cells_group *group)
{
    const vec a = all(group->a), b = all(group->b);
    UNROLL
    for (unsigned i = 0; i < BLOCK; i++) {
        const float *p = pixel(at + group->offset, gicov->row, i);
        const vec t = load(p) * a + (load(p + gicov->plane) * b - pivot[i]);
        s->g[i] += t;
        s->squares[i] += t * t;
    }
}

INLINE void add_joint(struct sums *s, const vec *pivot, const float *at,
                      const struct oct_cells_gicov *gicov, const struct oct_cells_group *group)
{
    const vec a = all(group->a), b = all(group->b), w = all(group->w), c = all(group->c);
    UNROLL
    for (unsigned i = 0; i < BLOCK; i++) {
        const float *p = pixel(at + group->offset, gicov->row, i);
        const vec t = load(p) * a + (load(p + gicov->plane) * b - w * pivot[i]);
        s->g[i] += w * t;
        s->squares[i] += t * t;
        s->squares[i] += c * load(p + 2 * gicov->plane);
    }
}

/* The mean of a few samples: sums are taken of g less this. */
INLINE void find_pivot(vec pivot[BLOCK], const float *at, const struct oct_cells_gicov *gicov,
                       const struct oct_cells_gicov_circle *circle)
{
    UNROLL
    for (unsigned i = 0; i < BLOCK; i++)
        pivot[i] = all(0);
    for (unsigned n = 0; n < OCT_CELLS_SCOUTS; n++) {
        const struct oct_cells_group *scout = &circle->scout[n];
        const vec a = all(scout->a), b = all(scout->b);
        UNROLL
        for (unsigned i = 0; i < BLOCK; i++) {
            const float *p = pixel(at + scout->offset, gicov->row, i);
            pivot[i] += load(p) * a;
            pivot[i] += load(p + gicov->plane) * b;
        }
    }
}

/* Adds groups up to `end`, in portions. */
INLINE void add_groups(struct sums *total, const vec *pivot, const struct oct_cells_gicov *gicov,
                       const struct oct_cells_group *group, unsigned n, bool joint, const float *at)
{
    const struct oct_cells_group *end = group + n;
    while (group < end) {
        const struct oct_cells_group *until = end - group > PORTION ? group + PORTION : end;
        struct sums s;
        clear(&s);
        for (; group < until; group++)
            if (joint)
                add_joint(&s, pivot, at, gicov, group);
            else
                add_single(&s, pivot, at, gicov, group);
        UNROLL
        for (unsigned i = 0; i < BLOCK; i++) {
            total->g[i] += s.g[i];
            total->squares[i] += s.squares[i];
        }
    }
}

static void sum_circle(struct sums *total, const vec *pivot, const struct oct_cells_gicov *gicov,
                       const struct oct_cells_gicov_circle *circle, const float *at)
{
    clear(total);
    add_groups(total, pivot, gicov, circle->group, circle->n_single, false, at);
    add_groups(total, pivot, gicov, circle->group + circle->n_single, circle->n_joint, true, at);
}

INLINE void compare(struct best *best, const struct sums *s, const vec *pivot, float excess,
                    unsigned k, float v0)
{
    const float n = OCT_CELLS_SAMPLES;
    UNROLL
    for (unsigned i = 0; i < BLOCK; i++) {
        const vec p = pivot[i], rest = s->g[i] - excess * p, d = rest * (1 / n), m = p + d;
        vec v = (s->squares[i] + excess * (p * p) - rest * d) * (1 / (n - 1));
        v = larger(larger(v, all(0)) + v0, m * m * 1e-12f);
        const vec ratio = m * m / v; /* 0 / 0 is larger than nothing */
        const lanes wins = below(best->ratio[i], ratio);
        best->ratio[i] = choose(wins, ratio, best->ratio[i]);
        best->m[i] = choose(wins, m, best->m[i]);
        best->v[i] = choose(wins, v, best->v[i]);
        best->k[i] = choose(wins, all((float)k), best->k[i]);
    }
}

/* score[2][COLUMNS], number[2][COLUMNS] of the pixels from `at` on. */
static void score_block(const struct oct_cells_gicov *gicov, const float *at, float v0,
                        float *score, float *number)
{
    struct best best;
    float v[BLOCK * WIDTH];
    for (unsigned i = 0; i < BLOCK; i++) {
        best.ratio[i] = best.m[i] = best.k[i] = all(0);
        best.v[i] = all(1);
    }
    for (unsigned k = 0; k < gicov->n; k++) {
        const struct oct_cells_gicov_circle *circle = &gicov->circle[k];
        struct sums s;
        vec pivot[BLOCK];
        find_pivot(pivot, at, gicov, circle);
        sum_circle(&s, pivot, gicov, circle, at);
        compare(&best, &s, pivot, circle->excess, k, v0);
    }
    UNROLL
    for (unsigned i = 0; i < BLOCK; i++) {
        store(score + (size_t)i * WIDTH, best.m[i]);
        store(v + (size_t)i * WIDTH, best.v[i]);
        store(number + (size_t)i * WIDTH, best.k[i]);
    }
    for (unsigned i = 0; i < BLOCK * WIDTH; i++)
        score[i] /= sqrtf(v[i]);
}

static void score_part(const struct oct_cells_gicov *gicov, const float *gx,
                       const struct oct_cells_part *part)
{
    float score[2 * COLUMNS];
    float number[2 * COLUMNS];
    for (uint32_t x = part->x0; x < part->x1; x += COLUMNS) {
        const uint32_t n = part->x1 - x < COLUMNS ? part->x1 - x : COLUMNS;
        for (uint32_t y = part->y0; y < part->y1; y += 2) {
            score_block(gicov, gx + y * gicov->row + x, part->v0, score, number);
            for (unsigned r = 0; r < 2 && y + r < part->y1; r++) {
                const size_t to = (y + r - part->y0) * part->stride + (x - part->x0);
                memcpy(part->score + to, score + (size_t)r * COLUMNS, n * sizeof(*score));
                for (uint32_t i = 0; i < n; i++)
                    part->best[to + i] = (uint8_t)number[r * COLUMNS + i];
            }
        }
    }
}

const struct oct_cells_scorer OCT_SIMD_TABLE(oct_cells_scorer) = {score_part};
