/* MGVF and snake of one cell on the CPU, and what the CUDA twin shares of them.
 *
 * MGVF (Boyer 2009): edge map f = |gradient| of the window alone, one-sided at its border,
 * f = (f - min) / (max - min + 2^-52). From w = f, Jacobi:
 *   w' = w + (mu / lambda) sum over the 8 neighbours e of H((w_e - w)(vx ex + vy ey)) (w_e - w)
 *   w  = w' - (1 / lambda) f (w' - f)
 * mu 0.5, lambda 5, borders repeated, until the mean |change| is at most 1e-5, 500 iterations at
 * most. H(z) = atan(z / 1e-10) / pi + 1/2 is taken at its limit: a neighbour with v . e > 0 adds
 * max(d, 0), with v . e < 0 min(d, 0), with 0 d / 2, d = w_e - w. A term is off by less than
 * 3.2e-11 / |v . e|. Diagonal neighbours have e = (+-1, +-1); |v . e| below 1e-9 counts as 0.
 *
 * Snake: 20 snaxels X_i = C + r_i (cos t_i, sin t_i), t_i = 2 pi i / 20, u = grad w / |grad w| (0
 * where w is flat), L the length of the closed polygon, Ey = start y + mean_dy: the mean y of the
 * cell's last ten positions, one a picture, or of those that there are:
 *   xc += 0.2 sum(ux) / L;  yc = (yc + 0.2 sum(uy) / L + 0.01 Ey) / 1.01
 *   r_i = (r_i + 0.2 (w_i + u_i . (X_i - C) - sum(w) / L) / L + 0.04 R) / 1.04
 * all from the values before, w and u bilinear. It ends when |dxc| + |dyc| + sum |dr_i| <= stop,
 * after 1000 iterations, or when a snaxel is outside the window: `left`, and it stays as it is.
 *
 * w and u are f32, all else is double. Where w changes by less than some 1e-7 a pixel, as far from
 * the edges of a picture without noise, the direction u is that of its rounding. */
#ifndef OCT_ANALYSIS_CELLS_FOLLOW_H
#define OCT_ANALYSIS_CELLS_FOLLOW_H

#include "analysis/cells/engine.h"
#include "pipeline/base/simd.h"

#include <stddef.h>

/* ---- one iteration of a snake: of C and of CUDA ---- */

#ifdef __CUDACC__
#define OCT_SNAKE_FUNCTION static __host__ __device__ inline
#else
#define OCT_SNAKE_FUNCTION static inline
#endif

#define OCT_SNAKE_MOST_ITERATIONS 1000u
#define OCT_SNAKE_STEP 0.2  /* of x, y and the radii */
#define OCT_SNAKE_SIZE 0.04 /* the step times 0.2, the weight of the radius R */
#define OCT_SNAKE_PATH 0.01 /* the step times 0.05, the weight of the height Ey */

/* share: 1 / L, L the length of the closed polygon; sum_ux, sum_uy, sum_w: over the snaxels. */
OCT_SNAKE_FUNCTION double oct_snake_next_x(double x, double sum_ux, double share)
{
    return x + OCT_SNAKE_STEP * (sum_ux * share);
}

OCT_SNAKE_FUNCTION double oct_snake_next_y(double y, double sum_uy, double share, double mean_y)
{
    return (y + OCT_SNAKE_STEP * (sum_uy * share) + OCT_SNAKE_PATH * mean_y) *
           (1 / (1 + OCT_SNAKE_PATH));
}

/* w: at the snaxel; outward: u there times the unit vector (cos t_i, sin t_i). */
OCT_SNAKE_FUNCTION double oct_snake_next_radius(double r, double w, double outward, double sum_w,
                                                double share, double radius)
{
    return (r + OCT_SNAKE_STEP * ((w + outward * r - sum_w * share) * share) +
            OCT_SNAKE_SIZE * radius) *
           (1 / (1 + OCT_SNAKE_SIZE));
}

/* cos t_i, sin t_i */
struct oct_snake_angles {
    double cosine[OCT_CELLS_SNAXELS], sine[OCT_CELLS_SNAXELS];
};
void oct_snake_angles_init(struct oct_snake_angles *angles);

/* ---- the field ----
 *
 * All instruction sets give the same bits: nothing is fused, and the sums are taken in the same
 * order. Of the eight neighbours the largest or the smaller of each and w are summed, and eight
 * times w is taken off: max(d, 0) = max(w_e, w) - w. What rounds the sum enters w with a weight of
 * 0.1.
 *
 * Planes are f32 with a border of one pixel that repeats the outermost ones: pixel (x, y) at
 * plane[y * stride + x] for -1 <= x <= columns, -1 <= y <= rows. The left border lies behind the
 * end of the row before. One thread uses a plane at a time. */

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

/* Repeats the outermost pixels. */
void oct_mgvf_set_border(float *plane, const struct oct_mgvf_grid *grid);

/* to = one iteration from `from` with the edge map (its border is not read), borders included; with
 * `sums` the sum of |change|, else 0. Columns behind the right border hold any finite numbers. */
struct oct_mgvf {
    double (*sweep)(float *to, const float *from, const float *edge,
                    const struct oct_mgvf_grid *grid, const struct oct_mgvf_flow *flow, bool sums);
};
OCT_SIMD_TABLES(struct oct_mgvf, oct_mgvf);

/* By the name of an instruction set (simd.h); NULL: this CPU cannot run that. */
const struct oct_mgvf *oct_mgvf_select(const char *name);

/* Iterates from w = edge until it rests. Of the planes, all finite, the one with the result is
 * returned. *n: iterations. The change is summed in every eighth sweep, and in each once it is near
 * the bound; where it is below it at once, those since the last sum are repeated one by one. So the
 * first sweep that is small enough ends it, if the mean change does not fall from more than 1.1
 * times the bound below it and rise above it again within eight sweeps: but for the repeated border
 * each pixel gives what another takes, and the sum of |change| does not rise. A film whose cells
 * are followed took 10 % less by it than with a sum and two planes in each sweep. */
const float *oct_mgvf_run(const struct oct_mgvf *mgvf, float *const planes[OCT_MGVF_N_PLANES],
                          const float *edge, const struct oct_mgvf_grid *grid,
                          const struct oct_mgvf_flow *flow, uint32_t *n);

/* ---- a cell ---- */

/* Room for one window; each thread has its own. */
struct oct_cells_follower;

enum oct_err oct_cells_follower_create(struct oct_cells_follower **follower,
                                       const struct oct_cells_params *params, uint32_t height,
                                       uint32_t width, struct oct_error *err);
void oct_cells_follower_destroy(struct oct_cells_follower *follower); /* NULL is fine */

/* pixels: I' [height][width], rows `stride` apart, all finite. start: radii above 0. Fills *end but
 * for end->cell. */
void oct_cells_follow(struct oct_cells_follower *follower, const float *pixels, size_t stride,
                      const struct oct_cell_start *start, struct oct_cell_end *end);

/* The field of the call before, rows one after another, and its window, which has no pixels where
 * it was not defined. */
void oct_cells_follow_field(const struct oct_cells_follower *follower,
                            struct oct_cell_window *window, float *field);

#endif
