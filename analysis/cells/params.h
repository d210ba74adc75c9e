/* What a search for cells is told, and the two profiles that fill it in.
 *
 * Method: M. Boyer, D. Tarjan, S. T. Acton, K. Skadron, "Accelerating leukocyte tracking using
 * CUDA" (IPDPS 2009), called Boyer 2009 in this room: circles by the gradient inverse coefficient
 * of variation (GICOV), followed by snakes on the motion gradient vector flow (MGVF).
 *
 * Coordinates: x = column, y = row, downward; pixel centres at whole numbers, the first at 0. All
 * lengths are pixels of the picture that is searched, whose pixels are square; those marked [R] are
 * multiples of the radius. */
#ifndef OCT_ANALYSIS_CELLS_PARAMS_H
#define OCT_ANALYSIS_CELLS_PARAMS_H

#include "analysis/param.h"
#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_CELLS_LEAST_RADIUS 1.5
#define OCT_CELLS_MOST_RADIUS 200.0
#define OCT_CELLS_MOST_CIRCLES 32u
#define OCT_CELLS_SAMPLES 150u /* N: of a circle */
#define OCT_CELLS_SNAXELS 20u
#define OCT_CELLS_MERGED 0.6 /* R: peaks as near as that are of one cell, where any are merged */

enum oct_cells_polarity {
    OCT_CELLS_BRIGHT, /* S < 0: the outward gradient is negative */
    OCT_CELLS_DARK,   /* S > 0 */
    OCT_CELLS_BOTH,
    OCT_CELLS_N_POLARITIES
};

enum oct_cells_refine {
    OCT_CELLS_REFINE_NONE,   /* the pixel of the peak, the radius of its circle */
    OCT_CELLS_REFINE_PEAK,   /* the vertex of the parabolas through S^2 at the peak's neighbours */
    OCT_CELLS_REFINE_EDGE,   /* the largest |m(x, y, r)| between pixels and circles (refine.h) */
    OCT_CELLS_REFINE_SPLINE, /* the B-spline snake of Boyer 2009 (spline.h) */
    OCT_CELLS_N_REFINES
};

struct oct_cells_params {
    /* Detection. */
    double radius;            /* R, px */
    double first, last, step; /* [R] circles: first, first + step, .. up to last */
    bool truncated;           /* samples lie at offsets truncated toward zero; else rounded */
    enum oct_cells_polarity polarity;
    double threshold; /* a peak has |S| above it; above 0 */
    double smooth;    /* [R] sigma of the Gaussian before the gradient; 0: none */
    double floor;     /* kappa: S = m / sqrt(v + (kappa sigma_g)^2); 0: none */
    double spacing;   /* [R] radius of the disk in which a peak is the largest */
    bool merges;      /* of peaks within 0.6 R the first in raster order stays */
    enum oct_cells_refine refine;

    /* Following. */
    uint32_t detect_every; /* frames; 1: each */
    uint32_t memory;       /* frames: see tracker.h */
    uint32_t min_frames;   /* a track that was seen in fewer is none */
    double max_step;       /* px a frame, while a track has no velocity; 0: 2 R */
    double flow_deg; /* cells go so, 0: to the right, 90: downward; NaN: each as it went before */
    bool predicts;   /* the octd tracker; false: Boyer 2009's: no prediction, every snake
                              counts, MGVF along (1, 1) */
    double stop;     /* px: a snake ends when an iteration moves it by no more */
};

/* What a person may set of it; the defaults are the profile octd's. */
extern const struct oct_params oct_cells_search_params;

/* The profiles for cells of that radius, in px; 0: the default. octd: rounded samples, Gaussian
 * 0.2 R, floor 1, refined at the edge, every frame, stop 0.01. boyer: truncated samples, no
 * smoothing, no floor, both polarities, B-splines, every 10th frame, stop 0.1. */
void oct_cells_params_octd(struct oct_cells_params *params, double radius);
void oct_cells_params_boyer(struct oct_cells_params *params, double radius);

/* Circles of the list; at most OCT_CELLS_MOST_CIRCLES; radius[k] in px, ascending. 0: the list is
 * empty or cannot be. */
unsigned oct_cells_circles(const struct oct_cells_params *params,
                           double radius[OCT_CELLS_MOST_CIRCLES]);

/* MaxR: S is defined for MaxR <= x < width - MaxR, and y alike: ceil(largest circle) + 2. */
uint32_t oct_cells_border(const struct oct_cells_params *params);

/* OCT_E_ARG: what cannot be, and what it must be; a picture of height x width is too small: the
 * size that it needs, 2 MaxR + 1. */
enum oct_err oct_cells_params_check(const struct oct_cells_params *params, uint32_t height,
                                    uint32_t width, struct oct_error *err);

#endif
