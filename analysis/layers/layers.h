/* Layers while they come: the analyses `surfaces` and `slab`.
 *
 * surfaces: the seven borders of every n-th B-scan (trace.h), a result each: f32 [14][M], the
 * positions from the ILM down (depth pixels; NaN: not found), then their qualities, and beside it
 * the numbers of enum oct_surfaces_live_number. Traced are B-scans whose number in the volume n
 * divides, and in place of one that was skipped the next of the n. A B-scan before it bounds the
 * search (sequence.h). A-lines that never came have no layers.
 *
 * slab: one image a volume, f32 [V][M], as the topic `enface`, of the depths that `slab` names
 * (slab.h): the layers of every n-th B-scan hold for those up to the next. NaN where nothing came
 * or no layer is known. At rest while surfaces.slab is empty, whether surfaces is or not. Another
 * slab begins the volume anew. More than OCT_ENFACE_MOST_VALUES values are thinned out as those of
 * en face are. Where the spacing of depths is not known, a pixel is taken as OCT_TRACE_DEPTH_UM.
 *
 * Both look at pictures as they are shown, at no cost to the engine: values of their own would be
 * made of all B-scans, also of those that are not traced. What a u8 picture cuts off is noise below
 * its lower limit and the brightest specular spots; its steps of a 255th of the range are far below
 * speckle. Of counts^2 the logarithm is traced.
 *
 * The stage's thread computes; B-scans that come meanwhile wait, and are skipped and counted where
 * they are many. */
#ifndef OCT_ANALYSIS_LAYERS_LAYERS_H
#define OCT_ANALYSIS_LAYERS_LAYERS_H

#include "analysis/analysis.h"
#include "analysis/layers/find/trace.h"
#include "analysis/layers/measure/slab.h"

#define OCT_SURFACES_MOST_EVERY 1000u
#define OCT_SURFACES_LEAST_SIZE 16u /* A-lines and depths of a B-scan */
#define OCT_SURFACES_MOST_SIZE 16384u

#define OCT_SURFACES_N_ROWS (2 * OCT_N_LAYERS)

enum oct_surfaces_live_number {
    OCT_SURFACES_FOUND,     /* the share of A-lines that have ILM and RPE */
    OCT_SURFACES_THICKNESS, /* their mean distance, um; px where the spacing is not known */
    OCT_SURFACES_DEPTH_UM,  /* of a pixel; NaN: not known */
    OCT_SURFACES_N_NUMBERS
};

struct oct_surfaces_settings {
    bool enabled;             /* of surfaces; no: at rest, and no memory is taken */
    bool record;              /* of `surfaces` and `slab` */
    uint32_t every;           /* 1: each B-scan; OCT_SURFACES_MOST_EVERY at most */
    double least_um, most_um; /* of the thickness */
    double min_quality;
    struct oct_slab slab;
};

extern const struct oct_params oct_surfaces_params;

/* Whether B-scans of that size can be traced so; no memory is taken. OCT_E_CONFIG. */
enum oct_err oct_surfaces_live_check(const struct oct_surfaces_settings *settings,
                                     const struct oct_image_form *input, struct oct_error *err);

extern const struct oct_analysis_ops oct_surfaces_analysis_cpu, oct_slab_analysis_cpu;

#endif
