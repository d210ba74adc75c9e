/* Where the samples of circles lie: offsets to whole pixels, the same for both engines. */
#ifndef OCT_ANALYSIS_CELLS_CIRCLES_H
#define OCT_ANALYSIS_CELLS_CIRCLES_H

#include "analysis/cells/params.h"

/* Sample i of a circle of radius rho lies at rho (cos t_i, sin t_i), t_i = 2 pi i / 150, truncated
 * toward zero or rounded, halves away from zero. The product is that of doubles: what is exactly
 * whole or half on paper falls to either side, as it does in any program that computes it so (of
 * 8 cos 120 deg = -4 + 2e-15 the truncation is -3). */
struct oct_cells_circle {
    double radius; /* px */
    int32_t dx[OCT_CELLS_SAMPLES], dy[OCT_CELLS_SAMPLES];
};

struct oct_cells_circles {
    unsigned n;
    uint32_t border; /* oct_cells_border */
    double cosine[OCT_CELLS_SAMPLES], sine[OCT_CELLS_SAMPLES];
    struct oct_cells_circle circle[OCT_CELLS_MOST_CIRCLES];
};

void oct_cells_circles_init(struct oct_cells_circles *circles,
                            const struct oct_cells_params *params);

#endif
