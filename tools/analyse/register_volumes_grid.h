/* A volume of another grid, put onto that of the fixed volume: centres together, by the spacing of
 * both where it is known, else voxel for voxel (then, and along axes of one spacing, moved by whole
 * voxels). Voxel x of the fixed grid lies at
 * origin + scale x of the moving volume's own, along each axis. */
#ifndef OCT_TOOLS_REGISTER_VOLUMES_GRID_H
#define OCT_TOOLS_REGISTER_VOLUMES_GRID_H

#include "formats/volumes.h"

struct oct_workers;

struct oct_volumes_placing {
    double scale[3], origin[3];
    bool is_same; /* both grids are: nothing is resampled */
};

/* Whether the spacing of all three axes is known. */
bool oct_volumes_knows_um(const double um[3]);

/* Spacings that differ by less than 0.1 % are the same. OCT_E_CONFIG: the spacing of one is not
 * known; OCT_E_FORMAT: a side or a spacing differs by more than a factor of 2. Both are named. */
enum oct_err oct_volumes_place(const char *fixed_path, const struct oct_volume_info *fixed,
                               const char *moving_path, const struct oct_volume_info *moving,
                               struct oct_volumes_placing *placing, struct oct_error *err);

/* Bytes that oct_volumes_resample takes at most, with `values` and the result. */
uint64_t oct_volumes_resample_bytes(const uint32_t from[3], const uint32_t to[3]);

/* *values: [from], malloc'd; becomes [to], malloc'd. Linear between voxels, constant beyond the
 * border; along an axis where the moving volume is finer, a Gaussian of
 * 0.5 sqrt(scale^2 - 1) of its voxels goes before. What is not finite has no part; NaN where most
 * of what a voxel takes is not. */
void oct_volumes_resample(float **values, const uint32_t from[3], const uint32_t to[3],
                          const struct oct_volumes_placing *placing, struct oct_workers *workers);

#endif
