/* Pairs of textured volumes whose deformation is known: cubic B-splines over random lattices of
 * three scales and smooth blobs, drawn through a logistic curve into 0 to 1; the field is a sum of
 * waves, at most one over a side, that falls to 0 at the border. Both volumes are sampled from the
 * same continuous picture P, so that the truth is exact: moving(x) = P(x), fixed(x) = P(x - u(x)),
 * each with noise of its own. Lengths are in units of the finest spacing, in which the picture is
 * isotropic. The same setup gives the same bytes. */
#ifndef OCT_TEST_RIG_WARP_PHANTOM_H
#define OCT_TEST_RIG_WARP_PHANTOM_H

#include "analysis/warp/solver.h"

struct oct_warp_phantom_setup {
    uint32_t dims[3];   /* V, M, D */
    double spacing[3];  /* of a voxel along each; the least is the unit; all 0: 1 */
    double mean_length; /* of the displacement; 0: a null pair */
    double noise;       /* sd of each volume's own */
    double grain;       /* of the texture; 0: 1 */
    uint64_t seed;
    uint64_t other_seed; /* of the moving volume's picture; 0: the same picture */
};

struct oct_warp_phantom {
    struct oct_warp_grid grid;
    float *fixed, *moving; /* [V][M][D] */
    float *displacement;   /* [3][V][M][D], voxels: the truth */
    double mean_length, longest;
    double least_jacobian; /* of x - u(x), by derivatives */
};

/* The pair of the acceptance: 1.78 at 64^3, 2.14 at 128^3, noise 0.02. */
void oct_warp_phantom_default(struct oct_warp_phantom_setup *setup, uint32_t side);

/* Fails the test that runs where a field of that length has J <= 0.3 whatever its shape. */
void oct_warp_phantom_make(const struct oct_warp_phantom_setup *setup,
                           struct oct_warp_phantom *phantom);
void oct_warp_phantom_finish(struct oct_warp_phantom *phantom);

/* How far a displacement is from another, in units of the finest spacing. */
struct oct_warp_phantom_error {
    double mean, p95, most;
};

/* Voxels nearer than `margin` voxels to the border are left out. */
void oct_warp_phantom_judge(const struct oct_warp_grid *grid, const float *truth,
                            const float *displacement, uint32_t margin,
                            struct oct_warp_phantom_error *error);

#endif
