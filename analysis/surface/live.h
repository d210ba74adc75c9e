/* Layers while they come: the analyses `surfaces` and `slab`.
 *
 * surfaces: ILM and RPE of every n-th B-scan (trace.h), a result each: f32 [4][M], rows ilm_px,
 * rpe_px (depth pixels; NaN: not found), ilm_quality, rpe_quality, and beside it the numbers of
 * enum oct_surfaces_live_number. Where a B-scan before it is known, of the same volume or the one
 * before, its layers bound the search after the median difference is taken away; when that finds
 * less than without bounds, it is traced without.
 *
 * slab: one image a volume, f32 [V][M], as the topic `enface`, of the depths that `slab` names
 * (slab.h): the layers of every n-th B-scan hold for those up to the next. NaN where nothing came
 * or no layer is known. At rest while surfaces.slab is empty.
 *
 * Both compute in pieces of the worker pool that give way to pictures; B-scans that come meanwhile
 * are skipped and counted. */
#ifndef OCT_ANALYSIS_SURFACE_LIVE_H
#define OCT_ANALYSIS_SURFACE_LIVE_H

#include "analysis/analysis.h"
#include "analysis/surface/slab.h"
#include "analysis/surface/trace.h"

enum oct_surfaces_row {
    OCT_SURFACES_ILM,
    OCT_SURFACES_RPE,
    OCT_SURFACES_ILM_QUALITY,
    OCT_SURFACES_RPE_QUALITY,
    OCT_SURFACES_N_ROWS
};

enum oct_surfaces_live_number {
    OCT_SURFACES_FOUND,     /* the share of A-lines that have both layers */
    OCT_SURFACES_THICKNESS, /* their mean distance, um; px where the spacing is not known */
    OCT_SURFACES_DEPTH_UM,  /* of a pixel; NaN: not known */
    OCT_SURFACES_N_NUMBERS
};

struct oct_surfaces_settings {
    bool enabled;             /* no: at rest, and no memory is taken */
    unsigned every;           /* 1: each B-scan */
    double least_um, most_um; /* of the thickness */
    double min_quality;
    bool has_slab;
    struct oct_slab slab;
};

/* OCT_E_CONFIG. */
enum oct_err oct_surfaces_live_check(const struct oct_surfaces_settings *settings,
                                     const struct oct_image_form *input, struct oct_error *err);

extern const struct oct_analysis_ops oct_surfaces_analysis_cpu, oct_slab_analysis_cpu;

#endif
