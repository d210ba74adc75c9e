/* What one iteration of a snake computes from sums and samples (follow.h has the equations): the
 * same lines for both engines. Plain numbers in and out; also device code. */
#ifndef OCT_ANALYSIS_CELLS_SNAKE_STEP_H
#define OCT_ANALYSIS_CELLS_SNAKE_STEP_H

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

#endif
