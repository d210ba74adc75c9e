#include "analysis/layers/denoise/distance.h"
#include "pipeline/base/vector.h"

#include <math.h>

/* A register of voxels above one another, (0, 0, d): `depth` from the first one on, which heights
 * are relative to; `best`: the square of the least distance so far. */
struct voxels {
    vec depth, best;
};

/* A place of the surface, relative to the voxels. */
struct corner {
    float b, j, h;
};

INLINE void meet_edge(struct voxels *v, struct corner p, struct corner q)
{
    const float eb = q.b - p.b, ej = q.j - p.j, eh = q.h - p.h;
    const float share = -1 / (eb * eb + ej * ej + eh * eh);
    const vec h = all(p.h) - v->depth;
    vec t = h * all(eh * share) + all((p.b * eb + p.j * ej) * share);
    t = smaller(larger(t, all(0)), all(1));
    const vec b = t * all(eb) + all(p.b), j = t * all(ej) + all(p.j), d = t * all(eh) + h;
    v->best = smaller(v->best, b * b + j * j + d * d);
}

/* The triangle from p to p + (1, 1), on the side of larger b or of larger j; db, dj: its slopes.
 * The foot of the perpendicular counts where it lies in the triangle; else an edge is nearer. */
INLINE void meet_face(struct voxels *v, struct corner p, float db, float dj, int larger_b)
{
    const float share = 1 / (1 + db * db + dj * dj);
    const vec height = all(p.h - db * p.b - dj * p.j) - v->depth, foot = height * all(share);
    const vec b = foot * all(-db) - all(p.b), j = foot * all(-dj) - all(p.j);
    const vec small = larger_b ? j : b, large = larger_b ? b : j;
    const vec inside = smaller(smaller(small, large - small), all(1) - large);
    v->best = smaller(v->best, choose(below(inside, all(0)), v->best, height * foot));
}

INLINE float least_of(float a, float b)
{
    return a < b ? a : b;
}

INLINE float most_of(float a, float b)
{
    return a > b ? a : b;
}

/* The square of A-lines whose first corner is (b, j) from the voxels, at depths `base` to base +
 * WIDTH - 1. */
INLINE void meet_square(struct voxels *v, const struct oct_distance_map *map, const float *at,
                        ptrdiff_t b, ptrdiff_t j, float base)
{
    const float *from = at + b * map->row + j;
    const float h[4] = {from[0] - base, from[1] - base, from[map->row] - base,
                        from[map->row + 1] - base};
    const float low = least_of(least_of(h[0], h[1]), least_of(h[2], h[3]));
    const float high = most_of(most_of(h[0], h[1]), most_of(h[2], h[3]));
    const float gap = most_of(0, most_of(low - (WIDTH - 1), -high));
    const float gap_b = b >= 0 ? (float)b : (float)(-1 - b);
    const float gap_j = j >= 0 ? (float)j : (float)(-1 - j);
    if (gap * gap + gap_b * gap_b + gap_j * gap_j >= map->reach * map->reach)
        return;
    const struct corner p = {(float)b, (float)j, h[0]}, along_j = {p.b, p.j + 1, h[1]};
    const struct corner along_b = {p.b + 1, p.j, h[2]}, across = {p.b + 1, p.j + 1, h[3]};
    meet_edge(v, p, along_j);
    meet_edge(v, p, along_b);
    meet_edge(v, p, across);
    meet_face(v, p, h[3] - h[1], h[1] - h[0], 0);
    meet_face(v, p, h[2] - h[0], h[3] - h[2], 1);
}

static void meet_squares(struct voxels *v, const struct oct_distance_map *map, const float *at,
                         float base)
{
    for (ptrdiff_t b = -map->far; b < map->far; b++)
        for (ptrdiff_t j = -map->far; j < map->far; j++)
            meet_square(v, map, at, b, j, base);
}

/* The depths of heights within reach of an A-line, widened by the reach. */
static void find_depths(const struct oct_distance_map *map, const float *at, uint32_t *first,
                        uint32_t *end)
{
    float low = at[0], high = at[0];
    for (ptrdiff_t b = -map->far; b <= map->far; b++)
        for (ptrdiff_t j = -map->far; j <= map->far; j++) {
            low = least_of(low, at[b * map->row + j]);
            high = most_of(high, at[b * map->row + j]);
        }
    const float n = (float)map->n_d;
    *first = (uint32_t)most_of(0, least_of(n, floorf(low - map->reach)));
    *end = (uint32_t)most_of(0, least_of(n, ceilf(high + map->reach) + 1));
}

static void run(const struct oct_distance_map *map, uint32_t b, float *phi)
{
    vec steps;
    float lane[WIDTH];
    for (unsigned i = 0; i < WIDTH; i++)
        lane[i] = (float)i;
    steps = load(lane);
    for (uint32_t j = 0; j < map->n_j; j++, phi += map->n_d) {
        const float *at = map->heights + b * map->row + j;
        uint32_t first, end;
        find_depths(map, at, &first, &end);
        for (uint32_t d = 0; d < map->n_d; d++)
            phi[d] = at[0] > (float)d ? map->reach : -map->reach;
        for (uint32_t d = first; d < end; d += WIDTH) {
            struct voxels v = {.depth = steps, .best = all(map->reach * map->reach)};
            meet_squares(&v, map, at, (float)d);
            store(lane, v.best);
            for (uint32_t i = 0; i < WIDTH && d + i < end; i++)
                phi[d + i] = copysignf(sqrtf(lane[i]), phi[d + i]);
        }
    }
}

const struct oct_distance_columns OCT_SIMD_TABLE(oct_distance_columns) = {run};
