/* What computes the weights of a band on the CPU: LOCAL or FULL, behind one table for
 * levelset.c. Not for others.
 *
 *     create -> { load -> [base] -> { sums -> move } ... -> result } ... -> destroy
 *
 * All weights are of the phi that was loaded, all sums of what the last move left. */
#ifndef OCT_ANALYSIS_SURFACE_LEVELSET_BAND_H
#define OCT_ANALYSIS_SURFACE_LEVELSET_BAND_H

#include "analysis/surface/levelset.h"

struct oct_levelset_band;

struct oct_levelset_band_ops {
    /* params are checked, dims at least n. */
    enum oct_err (*create)(struct oct_levelset_band **band, const struct oct_levelset_setup *setup,
                           struct oct_error *err);

    /* Finite phi, which must stay until result. counts->n_band is set. OCT_E_NO_MEMORY: says how
     * many bytes the band would take. */
    enum oct_err (*load)(struct oct_levelset_band *band, const float *phi,
                         struct oct_levelset_report *counts, struct oct_error *err);

    /* The median of the rank-th smallest D; 0 without a voxel that has one. */
    double (*base)(struct oct_levelset_band *band);

    /* S = sum w (phi_y - phi_x) and W = sum w of each voxel. Returns the largest W. Sets
     * counts->n_patches. */
    double (*sums)(struct oct_levelset_band *band, double c2, struct oct_levelset_report *counts);

    /* phi += S / (1 + W) with dt 0, dt S else. */
    void (*move)(struct oct_levelset_band *band, double dt);

    /* The moved phi into result, which holds the loaded one. */
    void (*result)(const struct oct_levelset_band *band, float *result);

    void (*destroy)(struct oct_levelset_band *band); /* NULL is fine */
};

extern const struct oct_levelset_band_ops oct_levelset_local, oct_levelset_full;

/* |phi| <= delta, both f32. */
static inline bool oct_levelset_in_band(float phi, float delta)
{
    return phi <= delta && phi >= -delta;
}

/* Of n numbers, which are put in another order; n 0: 0. */
double oct_levelset_median(float *values, uint64_t n);

#endif
