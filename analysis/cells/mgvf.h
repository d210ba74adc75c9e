/* The MGVF of one window by Jacobi sweeps (follow.h has the equation), in several builds of one
 * source: plain vectors of four, AVX2 and AVX-512. The build is chosen at run time. All give the
 * same bits: nothing is fused, and the sums are taken in the same order.
 *
 * Of the eight neighbours the largest or the smaller of each and w are summed, and eight times w is
 * taken off: max(d, 0) = max(w_e, w) - w. What rounds the sum enters w with a weight of 0.1.
 *
 * Planes are f32 with a border of one pixel that repeats the outermost ones: pixel (x, y) at
 * plane[y * stride + x] for -1 <= x <= columns, -1 <= y <= rows. The left border lies behind the
 * end of the row before. One thread uses a plane at a time. */
#ifndef OCT_ANALYSIS_CELLS_MGVF_H
#define OCT_ANALYSIS_CELLS_MGVF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_MGVF_BLOCK 16u /* columns that are computed together */
#define OCT_MGVF_MOST_ITERATIONS 500u
#define OCT_MGVF_LEAST_CHANGE 1e-5
#define OCT_MGVF_LEAST_DOT 1e-9
#define OCT_MGVF_N_PLANES 3

/* Where cells go: the signs of v . e of e = (1, 0), (0, 1), (1, 1), (1, -1). 0: the pair e, -e lies
 * across and adds half of both differences. */
struct oct_mgvf_flow {
    int8_t sign[4];
};

/* Components of v and v . e below OCT_MGVF_LEAST_DOT count as 0, and so does NaN. */
void oct_mgvf_flow_init(struct oct_mgvf_flow *flow, double vx, double vy);

struct oct_mgvf_grid {
    uint32_t rows, columns; /* at least 1 */
    size_t stride;          /* oct_mgvf_stride(columns) */
};

static inline size_t oct_mgvf_stride(uint32_t columns)
{
    return ((size_t)columns + 2 + OCT_MGVF_BLOCK - 1) / OCT_MGVF_BLOCK * OCT_MGVF_BLOCK;
}

/* Floats of a plane's memory, aligned to 64 bytes; its pixel (0, 0) is at oct_mgvf_first. */
static inline size_t oct_mgvf_plane_floats(uint32_t rows, uint32_t columns)
{
    return ((size_t)rows + 2) * oct_mgvf_stride(columns) + 2 * (size_t)OCT_MGVF_BLOCK;
}

static inline size_t oct_mgvf_first(const struct oct_mgvf_grid *grid)
{
    return OCT_MGVF_BLOCK + grid->stride;
}

/* One instruction set. */
struct oct_mgvf {
    const char *name; /* "avx512", "avx2", "plain" */

    /* to = one iteration from `from` with the edge map (its border is not read), borders included;
     * with `sums` the sum of |change|, else 0. Columns behind the right border hold any finite
     * numbers. */
    double (*sweep)(float *to, const float *from, const float *edge,
                    const struct oct_mgvf_grid *grid, const struct oct_mgvf_flow *flow, bool sums);
};

extern const struct oct_mgvf oct_mgvf_plain;
#if defined(__x86_64__)
extern const struct oct_mgvf oct_mgvf_avx2, oct_mgvf_avx512;
#endif

/* "auto", "avx512", "avx2" or "plain"; NULL when this CPU lacks it or the name is unknown. */
const struct oct_mgvf *oct_mgvf_select(const char *simd);

/* Iterates from w = edge until it rests. Of the planes, all finite, the one with the result is
 * returned. *n: iterations. The change is summed in every
 * eighth sweep, and in each once it is near the bound; where it is below it at once, those since
 * the last sum are repeated one by one. So the first sweep that is small enough ends it, if the
 * mean change does not fall from more than 1.1 times the bound below it and rise above it again
 * within eight sweeps: but for the repeated border each pixel gives what another takes, and the
 * sum of |change| does not rise. */
const float *oct_mgvf_run(const struct oct_mgvf *mgvf, float *const planes[OCT_MGVF_N_PLANES],
                          const float *edge, const struct oct_mgvf_grid *grid,
                          const struct oct_mgvf_flow *flow, uint32_t *n);

/* Repeats the outermost pixels. */
void oct_mgvf_set_border(float *plane, const struct oct_mgvf_grid *grid);

#endif
