/* MGVF and snake of one cell on the CPU, and the reference for the CUDA twin.
 *
 * MGVF (Boyer 2009, spec 1.5 of its method): edge map f = |gradient| of the window alone, one-sided
 * at its border, f = (f - min) / (max - min + 2^-52). From w = f, Jacobi:
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

/* What one iteration of a snake computes from sums and samples: the same lines for both engines.
 * Plain numbers in and out; also device code. */
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

/* The field of the call before, rows one after another; its window. NULL: it was not defined. */
const float *oct_cells_follow_field(const struct oct_cells_follower *follower,
                                    struct oct_cell_window *window);

#endif
