/* The P2 equal steps in k of contract step 4, in double precision, before they become the engines'
 * tables. */
#ifndef OCT_PIPELINE_PLAN_GRID_H
#define OCT_PIPELINE_PLAN_GRID_H

#include "pipeline/plan/calibration.h"
#include "pipeline/plan/geometry.h"

#include <stdbool.h>

struct oct_k_grid {
    uint32_t n;         /* P2 */
    bool is_wavelength; /* else the axis is s of a k map */
    double *axis;       /* [P2] lambda in nm, or s of a k map, at each upsampled position; owned */
    double *target;     /* [P2] where on that axis each output q lies */
};

/* Checks wavelengths or k map (one of them is there) against the geometry. OCT_E_CONFIG names the
 * key; finish is right after a failure too. */
enum oct_err oct_k_grid_init(struct oct_k_grid *grid, const struct oct_geometry *g,
                             const struct oct_calibration *cal, struct oct_error *err);
void oct_k_grid_finish(struct oct_k_grid *grid);

/* q, a real number of steps, of upsampled position p: the inverse of step 4's map, 0 at p = 0 and
 * P2 - 1 at the last. Camera sample i lies at p = 2 (left + i). */
double oct_k_grid_place(const struct oct_k_grid *grid, uint32_t p);

#endif
