/* The band of the CPU's engine, and its LOCAL weights by tiles (levelset_local.c). For levelset.c
 * and tests. */
#ifndef OCT_ANALYSIS_LAYERS_DENOISE_LEVELSET_BAND_H
#define OCT_ANALYSIS_LAYERS_DENOISE_LEVELSET_BAND_H

#include "analysis/layers/denoise/levelset.h"

struct oct_levelset_band {
    uint32_t n;
    uint32_t *voxels;    /* [n] raster indices */
    float *now;          /* [n] phi, as moved */
    float *sum, *weight; /* [n] sum w (phi_y - phi_x), sum w */
};

/* |phi| <= delta, both f32. */
static inline bool oct_levelset_in_band(float phi, float delta)
{
    return phi <= delta && phi >= -delta;
}

struct oct_levelset_tiles;

/* params are checked, dims at least n. OCT_E_NO_MEMORY: says how many bytes it would take. */
enum oct_err oct_levelset_tiles_create(struct oct_levelset_tiles **tiles,
                                       const struct oct_levelset_setup *setup,
                                       struct oct_error *err);
void oct_levelset_tiles_destroy(struct oct_levelset_tiles *tiles); /* NULL is fine */

/* Fills voxels and now of a band of n voxels, a tile after the other. All weights are of this phi,
 * which is copied. OCT_E_NO_MEMORY. */
enum oct_err oct_levelset_tiles_load(struct oct_levelset_tiles *tiles, const float *phi,
                                     const struct oct_levelset_band *band, struct oct_error *err);

/* rank > 0: sum becomes the rank-th smallest D of each voxel, NaN where it has fewer; rank 0: sum
 * and weight. Returns the number of pairs in the band. */
uint64_t oct_levelset_tiles_pass(struct oct_levelset_tiles *tiles,
                                 const struct oct_levelset_band *band, unsigned rank, double c2);

/* For tests: an engine of oct_levelset_cpu with LOCAL weights computes by this instruction set, not
 * the best. False: the CPU lacks it. */
bool oct_levelset_cpu_use(struct oct_levelset_engine *engine, const char *simd);
bool oct_levelset_tiles_use(struct oct_levelset_tiles *tiles, const char *simd);

#endif
