/* Cells to fractions of a pixel. */
#ifndef OCT_ANALYSIS_CELLS_REFINE_H
#define OCT_ANALYSIS_CELLS_REFINE_H

#include "analysis/cells/circles.h"
#include "analysis/cells/refine_math.h"

struct oct_cells_refiner {
    double radius, least, most; /* px: R, and the bounds of the radius that is sought */
    double smooth;              /* px */
    float unit[2 * OCT_CELLS_EDGE_SAMPLES];
};

struct oct_cells_place {
    double x, y, radius; /* px */
};

/* Radii are kept within 0.75 of the smallest and 1.25 of the largest circle. */
void oct_cells_refiner_init(struct oct_cells_refiner *refiner,
                            const struct oct_cells_params *params,
                            const struct oct_cells_circles *circles);

/* m, the mean outward gradient of 64 samples of a circle, bilinear as of oct_cells_slope_at, at the
 * 27 points (-h, 0, h)^3 about the place: f[(k * 3 + j) * 3 + i] at (x + (i - 1) h, y + (j - 1) h)
 * with the radius + (k - 1) h. unit[64][2]: cos and sin of 2 pi i / 64. */
void oct_cells_edge_means(const struct oct_cells_slopes *slopes, const float *unit,
                          const struct oct_cells_place *place, double h, float f[27]);

/* Edge: the largest |m| about the place, in three rounds: |m| at the 27 points (-h, 0, h)^3, h of
 * 0.1, 0.06 and 0.04 R (oct_cells_edge_side), then to the top of their least-squares quadratic; the
 * radius is then that of the disk before it was smoothed (oct_cells_edge_radius). */
void oct_cells_refine_edge(const struct oct_cells_refiner *refiner,
                           const struct oct_cells_slopes *slopes, struct oct_cells_place *place);

/* Peak: x and y at the vertices of the parabolas through S^2 of the pixel (x, y) and of its
 * neighbours in both directions; not where one of them has no score (0). score: S, rows `width`
 * apart; (x, y) is not at its border. */
void oct_cells_refine_peak(const float *score, size_t width, uint32_t x, uint32_t y,
                           struct oct_cells_place *place);

#endif
