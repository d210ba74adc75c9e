/* What follows from a displacement: its inverse, landmarks, and what is said of it. Any thread. */
#ifndef OCT_ANALYSIS_WARP_INVERSE_H
#define OCT_ANALYSIS_WARP_INVERSE_H

#include "analysis/warp/solver.h"

struct oct_workers;

/* The displacement w of the inverse map: moving voxel y lies at y - w(y) of the fixed volume, so
 * that w(y) = -u(y - w(y)); by fixed-point iteration, halved where it does not contract, until the
 * change is below 1e-3 voxel or after 50 steps. largest: the largest |w(y) + u(y - w(y))| left,
 * voxels; NULL: not asked for. inverse: [3][V][M][D], not displacement. OCT_E_NO_MEMORY. */
enum oct_err oct_warp_invert(const struct oct_warp_grid *grid, const float *displacement,
                             struct oct_workers *workers, float *inverse, double *largest,
                             struct oct_error *err);

/* Place x (voxels: B-scan, A-line, depth) of the fixed volume in the moving one: x - u(x), u
 * trilinear, constant beyond the border. */
void oct_warp_point(const struct oct_warp_grid *grid, const float *displacement, const double x[3],
                    double moved[3]);

struct oct_warp_likeness {
    double ssd; /* sum (a - b)^2 over the voxels compared */
    double ncc; /* their normalised cross-correlation; NaN: one of them is constant */
    uint64_t n; /* compared */
};

/* a, b: [n]; mask [n] 1: compared; NULL: all. What is not finite is left out. */
void oct_warp_compare(const float *a, const float *b, const uint8_t *mask, size_t n,
                      struct oct_workers *workers, struct oct_warp_likeness *likeness);

struct oct_warp_volume_change {
    double least, most;      /* J */
    double mean_log, sd_log; /* log J, of J > 0 */
    double folded;           /* the share of voxels with J <= 0 */
};

void oct_warp_look_at_jacobian(const float *jacobian, const uint8_t *mask, size_t n,
                               struct oct_workers *workers, struct oct_warp_volume_change *change);

#endif
