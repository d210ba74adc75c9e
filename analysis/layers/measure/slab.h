/* En face slabs that follow layers: "ilm+10:ilm+40" is the mean from 10 to 40 um below the ILM.
 * Pure. */
#ifndef OCT_ANALYSIS_LAYERS_MEASURE_SLAB_H
#define OCT_ANALYSIS_LAYERS_MEASURE_SLAB_H

#include "analysis/layers/find/trace.h"
#include "analysis/param.h"

struct oct_slab_bound {
    enum oct_layer layer;
    double offset_um; /* of tissue, deeper is positive */
};
struct oct_slab {
    struct oct_slab_bound first, last;
    bool is_none; /* there is no slab */
};

/* "LAYER[+-UM]:LAYER[+-UM]", or a name: superficial, deep, avascular, choriocapillaris (those of
 * OCT angiography), retina, rnfl, gcl+ipl. OCT_E_ARG says what is wrong. Bounds of one layer
 * must be in order. */
enum oct_err oct_slab_parse(struct oct_slab *slab, const char *text, struct oct_error *err);

/* Of a slab, or of none: "". */
extern const struct oct_param_form oct_param_slab;

/* Writes the same text, in its shortest form. */
void oct_slab_text(const struct oct_slab *slab, char *text, unsigned text_bytes);

/* Of each A-line the mean of the finite pixels between the bounds, parts of pixels by their share;
 * NaN where a layer is not known, the bounds are not in order or leave the picture altogether.
 * pixels: [n_lines][depth]; position: [n_lines] of each layer, NULL where the slab does not name
 * it. */
void oct_slab_project(const struct oct_slab *slab, const float *pixels, uint32_t n_lines,
                      uint32_t depth, double depth_um, const float *const position[OCT_N_LAYERS],
                      float *values);

#endif
