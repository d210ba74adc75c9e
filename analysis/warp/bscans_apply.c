/* What follows from the shifts of B-scans. */
#include "analysis/warp/bscans.h"
#include "kernels/device/workers.h"
#include "pipeline/base/wide.h"

#include <math.h>
#include <string.h>

void oct_warp_bscans_displacement(const struct oct_warp_bscan *bscans, const uint32_t dims[3],
                                  float *displacement)
{
    const size_t n_bscan = (size_t)dims[1] * dims[2], n = dims[0] * n_bscan;

    for (unsigned i = 0; i < 3; i++)
        for (uint32_t b = 0; b < dims[0]; b++) {
            float *to = displacement + i * n + b * n_bscan;
            for (size_t k = 0; k < n_bscan; k++)
                to[k] = (float)-bscans[b].shift[i];
        }
}

/* Shifts are the same all over a B-scan: what is left of the determinant is d h / d b along b. */
void oct_warp_bscans_jacobian(const struct oct_warp_bscan *bscans, const uint32_t dims[3],
                              float *jacobian)
{
    const size_t n_bscan = (size_t)dims[1] * dims[2];

    for (uint32_t b = 0; b < dims[0]; b++) {
        const uint32_t low = b > 0 ? b - 1 : 0, high = b + 1 < dims[0] ? b + 1 : b;
        const double rise = bscans[high].shift[0] - bscans[low].shift[0];
        const float j = (float)(1 + (high > low ? rise / (high - low) : 0));
        for (size_t k = 0; k < n_bscan; k++)
            jacobian[b * n_bscan + k] = j;
    }
}

/* ---- align ---- */

struct aligning {
    const struct oct_warp_bscan *bscans;
    const uint32_t *dims;
    const float *moving;
    float *aligned;
};

/* Two samples, and the weight of the second; constant beyond the border. */
struct between {
    size_t at, next;
    float weight;
};

static struct between between(double x, uint32_t n)
{
    const double held = fmax(0, fmin(n - 1.0, x)), whole = fmin(floor(held), fmax(0, n - 2.0));

    return (struct between){.at = (size_t)whole,
                            .next = n > 1 ? (size_t)whole + 1 : 0,
                            .weight = (float)(held - whole)};
}

/* Four A-lines, their weights, and how far along the depth they move. */
struct lines {
    const float *line[4];
    float weight[4];
    int64_t whole;
    float fraction;
};

static float mixed(const struct lines *l, size_t k)
{
    return l->weight[0] * l->line[0][k] + l->weight[1] * l->line[1][k] +
           l->weight[2] * l->line[2][k] + l->weight[3] * l->line[3][k];
}

static size_t held(int64_t k, uint32_t n)
{
    return k < 0 ? 0 : k < n ? (size_t)k : n - 1;
}

/* to[k] = the mixed line at k + whole + fraction, for first <= k < end, where none of it is held at
 * a border. */
OCT_WIDE static void mix_inside(const struct lines *l, int64_t first, int64_t end, float *to)
{
    const float *const p = l->line[0] + l->whole, *const q = l->line[1] + l->whole;
    const float *const r = l->line[2] + l->whole, *const s = l->line[3] + l->whole;
    const float w[4] = {l->weight[0], l->weight[1], l->weight[2], l->weight[3]};
    const float t = l->fraction;

    for (int64_t k = first; k < end; k++) {
        const float a = w[0] * p[k] + w[1] * q[k] + w[2] * r[k] + w[3] * s[k];
        const float b = w[0] * p[k + 1] + w[1] * q[k + 1] + w[2] * r[k + 1] + w[3] * s[k + 1];
        to[k] = a + t * (b - a);
    }
}

static void mix_line(const struct lines *l, uint32_t depth, float *to)
{
    int64_t first = l->whole < 0 ? -l->whole : 0, end = (int64_t)depth - 1 - l->whole;

    end = end > depth ? depth : end;
    if (first >= end)
        first = end = 0;
    mix_inside(l, first, end, to);
    for (int64_t k = 0; k < depth; k++) {
        if (k >= first && k < end) {
            k = end - 1;
            continue;
        }
        const float a = mixed(l, held(k + l->whole, depth));
        to[k] = a + l->fraction * (mixed(l, held(k + l->whole + 1, depth)) - a);
    }
}

static void align_bscan(void *context, unsigned b, unsigned worker)
{
    const struct aligning *a = context;
    const uint32_t n_lines = a->dims[1], depth = a->dims[2];
    const size_t n_bscan = (size_t)n_lines * depth;
    const double *shift = a->bscans[b].shift;
    const struct between z = between(b + shift[0], a->dims[0]);
    const float *first = a->moving + z.at * n_bscan, *second = a->moving + z.next * n_bscan;

    (void)worker;
    for (uint32_t j = 0; j < n_lines; j++) {
        const struct between y = between(j + shift[1], n_lines);
        const struct lines lines = {.line = {first + y.at * depth, first + y.next * depth,
                                             second + y.at * depth, second + y.next * depth},
                                    .weight = {(1 - z.weight) * (1 - y.weight),
                                               (1 - z.weight) * y.weight, z.weight * (1 - y.weight),
                                               z.weight * y.weight},
                                    .whole = (int64_t)floor(shift[2]),
                                    .fraction = (float)(shift[2] - floor(shift[2]))};
        mix_line(&lines, depth, a->aligned + b * n_bscan + j * depth);
    }
}

void oct_warp_bscans_align(const struct oct_warp_bscan *bscans, const uint32_t dims[3],
                           const float *moving, struct oct_workers *workers, float *aligned)
{
    struct aligning aligning = {bscans, dims, moving, aligned};

    oct_workers_run(workers, dims[0], align_bscan, &aligning);
}

/* ---- compose ---- */

struct composing {
    const struct oct_warp_bscan *bscans;
    const uint32_t *dims;
    float *displacement;
};

/* y = x - u and h = y + shift, so that u becomes u - shift of the B-scan nearest to y. */
static void compose_bscan(void *context, unsigned b, unsigned worker)
{
    const struct composing *c = context;
    const size_t n_bscan = (size_t)c->dims[1] * c->dims[2], n = c->dims[0] * n_bscan;
    float *u[3];

    (void)worker;
    for (unsigned i = 0; i < 3; i++)
        u[i] = c->displacement + i * n + b * n_bscan;
    for (size_t k = 0; k < n_bscan; k++) {
        const double y = fmax(0, fmin(c->dims[0] - 1.0, round((double)b - (double)u[0][k])));
        const double *shift = c->bscans[(uint32_t)y].shift;
        for (unsigned i = 0; i < 3; i++)
            u[i][k] = (float)((double)u[i][k] - shift[i]);
    }
}

void oct_warp_bscans_compose(const struct oct_warp_bscan *bscans, const uint32_t dims[3],
                             struct oct_workers *workers, float *displacement)
{
    struct composing composing = {bscans, dims, displacement};

    oct_workers_run(workers, dims[0], compose_bscan, &composing);
}
