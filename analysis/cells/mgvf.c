#include "analysis/cells/mgvf.h"

#include <stdbool.h>
#include <string.h>

#define PIXELS_BETWEEN 32768u /* two pauses */

void oct_mgvf_flow_init(struct oct_mgvf_flow *flow, double vx, double vy)
{
    static const int pairs[4][2] = {{1, 0}, {0, 1}, {1, 1}, {1, -1}};
    unsigned n_ahead = 0;
    flow->n_half = 0;
    for (unsigned i = 0; i < 4; i++) {
        const int ex = pairs[i][0], ey = pairs[i][1];
        const double dot = vx * ex + vy * ey;
        const int sign = dot <= -OCT_MGVF_LEAST_DOT ? -1 : 1;
        const bool directed = dot >= OCT_MGVF_LEAST_DOT || sign < 0;
        const unsigned at = directed ? n_ahead++ : 3 - flow->n_half++;
        flow->dx[at] = sign * ex;
        flow->dy[at] = sign * ey;
    }
}

#if defined(__x86_64__)
static const struct oct_mgvf *best(void)
{
    if (oct_mgvf_select("avx512"))
        return &oct_mgvf_avx512;
    if (oct_mgvf_select("avx2"))
        return &oct_mgvf_avx2;
    return &oct_mgvf_plain;
}

const struct oct_mgvf *oct_mgvf_select(const char *simd)
{
    if (strcmp(simd, "auto") == 0)
        return best();
    if (strcmp(simd, "plain") == 0)
        return &oct_mgvf_plain;
    if (strcmp(simd, "avx2") == 0)
        return __builtin_cpu_supports("avx2") ? &oct_mgvf_avx2 : NULL;
    if (strcmp(simd, "avx512") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
                   ? &oct_mgvf_avx512
                   : NULL;
    return NULL;
}
#else
const struct oct_mgvf *oct_mgvf_select(const char *simd)
{
    return strcmp(simd, "auto") == 0 || strcmp(simd, "plain") == 0 ? &oct_mgvf_plain : NULL;
}
#endif

void oct_mgvf_set_border(float *plane, const struct oct_mgvf_grid *grid)
{
    const size_t bytes = ((size_t)grid->columns + 2) * sizeof(*plane);
    for (size_t y = 0; y < grid->rows; y++) {
        float *row = plane + y * grid->stride;
        row[-1] = row[0];
        row[grid->columns] = row[grid->columns - 1];
    }
    float *last = plane + (size_t)(grid->rows - 1) * grid->stride;
    memcpy(plane - grid->stride - 1, plane - 1, bytes);
    memcpy(last + grid->stride - 1, last - 1, bytes);
}

const float *oct_mgvf_run(const struct oct_mgvf *mgvf, float *const planes[2], const float *edge,
                          const struct oct_mgvf_grid *grid, const struct oct_mgvf_flow *flow,
                          const struct oct_pause *pause, uint32_t *n)
{
    const double least = OCT_MGVF_LEAST_CHANGE * ((double)grid->rows * grid->columns);
    float *from = planes[0], *to = planes[1];
    for (size_t y = 0; y < grid->rows; y++)
        memcpy(from + y * grid->stride, edge + y * grid->stride, grid->columns * sizeof(*edge));
    oct_mgvf_set_border(from, grid);
    const uint64_t n_pixels = (uint64_t)grid->rows * grid->columns;
    uint64_t n_done = 0;
    double change = 0;
    *n = 0;
    do {
        if (pause && n_done > PIXELS_BETWEEN) {
            oct_pause_call(pause);
            n_done = 0;
        }
        n_done += n_pixels;
        change = mgvf->sweep(to, from, edge, grid, flow);
        float *swap = from;
        from = to;
        to = swap;
    } while (++*n < OCT_MGVF_MOST_ITERATIONS && change > least);
    return from;
}
