/* Depths of an A-line that are looked at from above, or whose movement is followed: the whole of
 * it, pixels from A to just before B (A:B), or depths between layers, also by name
 * (analysis/layers/measure/slab.h).
 *
 * Pure. */
#ifndef OCT_ANALYSIS_FLOW_SLAB_H
#define OCT_ANALYSIS_FLOW_SLAB_H

#include "analysis/layers/measure/slab.h"

enum oct_flow_slab_kind { OCT_FLOW_SLAB_WHOLE, OCT_FLOW_SLAB_PIXELS, OCT_FLOW_SLAB_LAYERS };

struct oct_flow_slab {
    enum oct_flow_slab_kind kind;
    uint32_t pixels[2]; /* the first, and one past the last */
    struct oct_slab layers;
    char name[48]; /* as given; whole: "" */
};

/* OCT_E_ARG says what is wrong. "": the whole. */
enum oct_err oct_flow_slab_parse(struct oct_flow_slab *slab, const char *text,
                                 struct oct_error *err);

/* OCT_E_CONFIG: pixels beyond the A-line; `what` begins the message. */
enum oct_err oct_flow_slab_check(const struct oct_flow_slab *slab, const char *what, uint32_t depth,
                                 struct oct_error *err);

extern const struct oct_param_form oct_param_flow_slab;
#define OCT_PARAM_TAKES_FLOW_SLAB                                                                  \
    "LAYER[+-UM]:LAYER[+-UM], superficial, deep, avascular, choriocapillaris, pixels A:B, or "     \
    "nothing"

/* What it stands for, "ilm:ilm+80"; of the whole "". */
void oct_flow_slab_text(const struct oct_flow_slab *slab, char *text, unsigned text_bytes);

/* Pixels *first .. *end - 1 of A-line j whose middle lies in it; none: *end is *first. position: of
 * each layer, NULL where no layer is known. */
void oct_flow_slab_span(const struct oct_flow_slab *slab, uint32_t depth, double depth_um,
                        const float *const position[OCT_N_LAYERS], uint32_t j, uint32_t *first,
                        uint32_t *end);

/* The largest of the finite values first .. end - 1, or their mean; NaN where there is none. */
float oct_flow_slab_largest(const float *values, uint32_t first, uint32_t end);
float oct_flow_slab_mean(const float *values, uint32_t first, uint32_t end);

#endif
