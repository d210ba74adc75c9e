/* The registration of analysis/warp/solver.h by its definitions alone, double precision, one
 * thread. Volumes are [V][M][D], fields [3][V][M][D], displacements in voxels. What the contract
 * leaves open is so: a Gaussian is sampled to three sigma and sums to 1, and what lies beyond the
 * border is what lies on it; (d_i T)(h) is the derivative of the trilinear interpolant; a velocity
 * longer than most_step is as long as that, where it is. */
#ifndef OCT_TEST_RIG_WARP_ORACLE_H
#define OCT_TEST_RIG_WARP_ORACLE_H

#include "analysis/warp/solver.h"

struct oct_warp_oracle {
    struct oct_warp_grid grid;
    struct oct_warp_params params;
    const double *fixed, *moving;
    const uint8_t *mask; /* NULL: all */
};

/* E; infinite where J <= 0. ssd: sum (T(h) - R)^2; NULL: not asked for. */
double oct_warp_oracle_energy(const struct oct_warp_oracle *o, const double *displacement,
                              double *ssd);
/* -dE/du per voxel, or the Eulerian one: neither knows the spacing. */
void oct_warp_oracle_force(const struct oct_warp_oracle *o, const double *displacement,
                           bool lagrangian, double *force);
void oct_warp_oracle_warp(const uint32_t dims[3], const double *volume, const double *displacement,
                          double *warped);
/* Returns the least. */
double oct_warp_oracle_jacobian(const uint32_t dims[3], const double *displacement,
                                double *jacobian);
/* sigma: voxels along each axis. */
void oct_warp_oracle_smooth(const uint32_t dims[3], const double sigma[3], double *volume);

/* v, voxels, |v| <= most_step. */
void oct_warp_oracle_velocity(const struct oct_warp_oracle *o, const double *displacement,
                              double *velocity);
/* u'(x) = s v(x) + u(x - s v(x)). */
void oct_warp_oracle_compose(const uint32_t dims[3], const double *velocity, double scale,
                             const double *displacement, double *composed);

/* A volume as the level of factor k takes it: voxel i lies at k i + (k - 1) / 2; with a mask
 * of what is known about it. The caller frees. */
double *oct_warp_oracle_coarse(const uint32_t dims[3], unsigned k, const double *volume,
                               const uint8_t *mask, uint32_t coarse[3]);

/* Iterates at this grid from the displacement given; level: what came of it. */
void oct_warp_oracle_level(const struct oct_warp_oracle *o, unsigned iterations,
                           double *displacement, struct oct_warp_level *level);

/* All levels of params, from u = 0, as OCT_WARP_OCTD without a mask. */
void oct_warp_oracle_solve(const struct oct_warp_oracle *o, double *displacement,
                           struct oct_warp_report *report);

#endif
