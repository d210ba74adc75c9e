/* What `surfaces` and `slab` share of their settings: both trace by them. For live.c and
 * slab_live.c only. */
#ifndef OCT_ANALYSIS_SURFACE_LIVE_PARTS_H
#define OCT_ANALYSIS_SURFACE_LIVE_PARTS_H

#include "analysis/surface/live.h"
#include "analysis/surface/sequence.h"

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

static inline struct oct_sequence_setup
oct_surfaces_sequence_setup(const struct oct_image_form *input, const struct oct_spacing *spacing,
                            struct oct_workers *workers,
                            const struct oct_surfaces_settings *settings)
{
    return (struct oct_sequence_setup){
        .input = input,
        .spacing = *spacing,
        .least_um = settings->least_um,
        .most_um = settings->most_um,
        .min_quality = settings->min_quality,
        .workers = workers,
    };
}

#endif
