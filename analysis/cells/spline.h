/* The B-spline snake of Boyer 2009, as it was meant (its published program moves one of nine
 * control points, and takes the inner points with a wrong sign).
 *
 * 9 control points C of a periodic cubic B-spline, 4 samples a segment, begin as the least-squares
 * fit of a circle. With outward normals n_k and delta = 0.3 R
 *   E = sum_k I(X_k + delta n_k) - I(X_k - delta n_k)
 * 20 steps C += 0.02 dE/dC for dark cells, -= for bright ones, gradients taken bilinearly. I counts
 * in grey levels of the picture: the steps are those of 8-bit pictures. */
#ifndef OCT_ANALYSIS_CELLS_SPLINE_H
#define OCT_ANALYSIS_CELLS_SPLINE_H

#include "analysis/cells/refine.h"

#define OCT_CELLS_CONTROL_POINTS 9
#define OCT_CELLS_SPLINE_SAMPLES 36 /* 4 a segment */

struct oct_cells_spline {
    double x[OCT_CELLS_CONTROL_POINTS], y[OCT_CELLS_CONTROL_POINTS];
};

/* The circle of that radius about (0, 0). */
void oct_cells_spline_circle(struct oct_cells_spline *spline, double radius);

/* A sample: its place, and the derivative along the spline. */
struct oct_cells_spline_sample {
    double x, y, dx, dy;
};
void oct_cells_spline_samples(const struct oct_cells_spline *spline,
                              struct oct_cells_spline_sample samples[OCT_CELLS_SPLINE_SAMPLES]);

/* dE/dC about the pixel (x, y), times 1 / scale: slopes are those of scale I. */
void oct_cells_spline_gradient(const struct oct_cells_spline *spline,
                               const struct oct_cells_slopes *slopes, int32_t x, int32_t y,
                               double delta, double scale, struct oct_cells_spline *gradient);

/* From a circle of radius R about the pixel (x, y) to the mean of the samples and their mean
 * distance from it. A snake that leaves the circle of 2 R stays at the pixel, with radius R. */
void oct_cells_refine_spline(const struct oct_cells_slopes *slopes, double radius, double scale,
                             bool is_dark, int32_t x, int32_t y, struct oct_cells_place *place);

#endif
