/* The options of octctl surfaces: as given, and what they mean. */
#ifndef OCT_TOOLS_SURFACES_OPTIONS_H
#define OCT_TOOLS_SURFACES_OPTIONS_H

#include "analysis/surface/levelset.h"
#include "analysis/surface/slab.h"
#include "analysis/surface/trace.h"
#include "tools/options.h"

#define OCT_SURFACES_MOST_SLABS 16u

enum oct_surfaces_eye { OCT_SURFACES_EYE_UNKNOWN, OCT_SURFACES_EYE_OD, OCT_SURFACES_EYE_OS };

struct oct_surfaces_given {
    /* As given; NULL, NaN and false where not. */
    const char *layers, *denoise, *profile, *pixel_um, *depth, *skip, *fovea, *eye, *superior;
    const char *mask, *phi, *csv, *png;
    const char **slabs; /* ends with NULL; the caller's room */
    double strength;
    uint64_t steps; /* 0: not given */
    bool align, no_align, json, force;

    /* What they mean: filled by oct_surfaces_given_read. */
    bool has_layer[OCT_N_LAYERS];
    bool is_denoised;
    enum oct_levelset_profile levelset;
    double um[3]; /* B-scan, A-line, depth; 0: not given */
    bool depth_is_given, depth_is_down;
    bool has_fovea;
    double fovea_px[2]; /* B-scan, A-line */
    enum oct_surfaces_eye which_eye;
    bool superior_is_last;
    struct oct_slab slab[OCT_SURFACES_MOST_SLABS];
    unsigned n_slabs;
};

extern const struct oct_option oct_surfaces_options[];
extern const char *const oct_surfaces_denoise_names[]; /* of enum oct_levelset_profile */

/* Returns 0, or 2 once it has said what is wrong. */
int oct_surfaces_given_read(struct oct_surfaces_given *given, const char *name);

/* How the level set is denoised. */
void oct_surfaces_given_levelset(const struct oct_surfaces_given *given,
                                 struct oct_levelset_params *params);

static inline bool oct_surfaces_given_both(const struct oct_surfaces_given *given)
{
    return given->has_layer[OCT_LAYER_ILM] && given->has_layer[OCT_LAYER_RPE];
}

#endif
