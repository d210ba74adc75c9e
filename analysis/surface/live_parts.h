/* What `surfaces` and `slab` share: both trace by the same settings. For live.c and slab_live.c
 * only. */
#ifndef OCT_ANALYSIS_SURFACE_LIVE_PARTS_H
#define OCT_ANALYSIS_SURFACE_LIVE_PARTS_H

#include "analysis/surface/live.h"
#include "analysis/surface/sequence.h"

#include <math.h>

/* Neither is NaN. */
static inline bool oct_surfaces_is_equal(double a, double b)
{
    return !(a < b) && !(a > b);
}

/* Whether B-scans are traced alike, so that those that are known stay known. */
static inline bool oct_surfaces_trace_alike(const struct oct_surfaces_settings *a,
                                            const struct oct_surfaces_settings *b)
{
    return oct_surfaces_is_equal(a->least_um, b->least_um) &&
           oct_surfaces_is_equal(a->most_um, b->most_um) &&
           oct_surfaces_is_equal(a->min_quality, b->min_quality);
}

/* What both keep of what they are created with. */
struct oct_surfaces_live {
    struct oct_image_form input;
    struct oct_spacing spacing;
    struct oct_surfaces_settings settings;
};

/* OCT_E_CONFIG: settings that cannot be with such B-scans. */
static inline enum oct_err oct_surfaces_live_init(struct oct_surfaces_live *live,
                                                  const struct oct_analysis_setup *setup,
                                                  struct oct_error *err)
{
    *live = (struct oct_surfaces_live){
        .input = *setup->input,
        .spacing = setup->spacing,
        .settings = *(const struct oct_surfaces_settings *)setup->settings,
    };
    return oct_surfaces_live_check(&live->settings, &live->input, err);
}

/* A sequence by other settings. */
static inline enum oct_err oct_surfaces_live_sequence(struct oct_layer_sequence **sequence,
                                                      const struct oct_surfaces_live *live,
                                                      const struct oct_surfaces_settings *settings,
                                                      struct oct_error *err)
{
    const struct oct_layer_sequence_setup setup = {
        .input = &live->input,
        .spacing = live->spacing,
        .least_um = settings->least_um,
        .most_um = settings->most_um,
        .min_quality = settings->min_quality,
    };
    return oct_layer_sequence_create(sequence, &setup, err);
}

/* um of a depth pixel; NaN: not known. */
static inline double oct_surfaces_live_depth_um(const struct oct_surfaces_live *live)
{
    const double um = live->spacing.depth_um;
    return um > 0 && isfinite(um) ? um : NAN;
}

#endif
