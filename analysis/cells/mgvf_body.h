/* The sweep itself. Included by mgvf_plain.c, mgvf_avx2.c and mgvf_avx512.c, which are compiled for
 * their instruction set and name the table (OCT_MGVF_TABLE, OCT_MGVF_NAME). */
#include "analysis/cells/mgvf.h"
#include "analysis/cells/mgvf_vector.h"

/* A register of pixels; returns their |change|. ahead: offsets of the neighbours ahead. */
INLINE vec update(float *to, const float *from, const float *edge, const ptrdiff_t ahead[4],
                  unsigned n_half)
{
    const vec w = load(from), f = load(edge);
    vec pair[4];
    UNROLL
    for (unsigned i = 0; i < 4; i++) {
        const vec a = load(from + ahead[i]) - w, b = load(from - ahead[i]) - w;
        pair[i] = i < 4 - n_half ? above_zero(a) + below_zero(b) : (a + b) * all(0.5F);
    }
    /* What is small is summed first: w is rounded once. */
    const vec spread = ((pair[0] + pair[1]) + (pair[2] + pair[3])) * all(0.1F);
    const vec change = spread - f * all(0.2F) * ((w - f) + spread);
    store(to, w + change);
    return magnitude(change);
}

/* A row; sums[j]: |change| of columns j, j + 16, ... n_half is a constant at
 * each place of call. */
INLINE void sweep_row(float *to, const float *from, const float *edge, uint32_t columns,
                      const ptrdiff_t ahead[4], unsigned n_half, float sums[OCT_MGVF_BLOCK])
{
    static const float keeps[2 * OCT_MGVF_BLOCK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const uint32_t last = (columns - 1) / OCT_MGVF_BLOCK * OCT_MGVF_BLOCK;
    const float *keep = keeps + OCT_MGVF_BLOCK - (columns - last);
    vec sum[PARTS];
    UNROLL
    for (unsigned p = 0; p < PARTS; p++)
        sum[p] = all(0);
    for (uint32_t x = 0; x < last; x += OCT_MGVF_BLOCK) {
        UNROLL
        for (unsigned p = 0; p < PARTS; p++) {
            const uint32_t at = x + p * WIDTH;
            sum[p] += update(to + at, from + at, edge + at, ahead, n_half);
        }
    }
    UNROLL
    for (unsigned p = 0; p < PARTS; p++) {
        const uint32_t at = last + p * WIDTH;
        const vec change = update(to + at, from + at, edge + at, ahead, n_half);
        store(sums + p * WIDTH, sum[p] + change * load(keep + p * WIDTH));
    }
}

INLINE double sweep_flow(float *to, const float *from, const float *edge,
                         const struct oct_mgvf_grid *grid, const ptrdiff_t ahead[4],
                         unsigned n_half)
{
    double totals[OCT_MGVF_BLOCK] = {0}, total = 0;
    for (uint32_t y = 0; y < grid->rows; y++) {
        const size_t at = y * grid->stride;
        float sums[OCT_MGVF_BLOCK];
        sweep_row(to + at, from + at, edge + at, grid->columns, ahead, n_half, sums);
        for (unsigned j = 0; j < OCT_MGVF_BLOCK; j++)
            totals[j] += (double)sums[j];
    }
    oct_mgvf_set_border(to, grid);
    for (unsigned j = 0; j < OCT_MGVF_BLOCK; j++)
        total += totals[j];
    return total;
}

static double sweep(float *to, const float *from, const float *edge,
                    const struct oct_mgvf_grid *grid, const struct oct_mgvf_flow *flow)
{
    ptrdiff_t ahead[4];
    for (unsigned i = 0; i < 4; i++)
        ahead[i] = flow->dy[i] * (ptrdiff_t)grid->stride + flow->dx[i];
    switch (flow->n_half) {
    case 0:
        return sweep_flow(to, from, edge, grid, ahead, 0);
    case 1:
        return sweep_flow(to, from, edge, grid, ahead, 1);
    case 2:
        return sweep_flow(to, from, edge, grid, ahead, 2);
    case 3:
        return sweep_flow(to, from, edge, grid, ahead, 3);
    default:
        return sweep_flow(to, from, edge, grid, ahead, 4);
    }
}

const struct oct_mgvf OCT_MGVF_TABLE = {.name = OCT_MGVF_NAME, .sweep = sweep};
