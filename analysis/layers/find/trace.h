/* The inner limiting membrane and the outer border of the retinal pigment epithelium in one B-scan.
 *
 * Both are found at once, as the pair of paths along the A-lines of least total cost: the cost of a
 * place is low where the brightness rises with depth (ILM) or falls (RPE); a step from A-line to
 * A-line is bounded and has a price a pixel; their distance lies between a least and a greatest
 * one. After S. J. Chiu et al., Optics Express 18 (2010) 19413, whose two searches, one after the
 * other, jump between the layers where either fades. That is done on a coarse grid; each layer is
 * then found at full resolution in a corridor about its path, to a fraction of a pixel by the
 * parabola through the gradient's peak. The RPE, whose speckle differs from A-line to A-line,
 * is then placed by the whole profile of its bands, over some 85 um of A-lines to each side (and 8
 * at least), less where it bends.
 *
 * What is reported: of the ILM the centre of its thin reflex, where the rise of the brightness
 * ends; of the RPE its outer border (Bruch's membrane), where the fall ends, and where the
 * choriocapillaris shows as a rise behind it, the middle of that. In decibels the gradient's peaks
 * lie above both, farther where the resolution is low (5 um where it is 3 um); how far is read from
 * the mean of the B-scan's A-lines that are found.
 *
 *     create -> run ... -> destroy
 *
 * Positions are depth pixels, 0 in the middle of the first one, downward. What is not found is NaN,
 * never a guess: A-lines without contrast, but for a gap that is narrower than gap_um between
 * A-lines that are found (a vessel's shadow), where the path itself is given with its low quality.
 *
 * Brightness is in dB, or any other scale: what is found does not depend on its zero and unit. Same
 * B-scan, same numbers. One thread uses a trace at a time. */
#ifndef OCT_ANALYSIS_LAYERS_FIND_TRACE_H
#define OCT_ANALYSIS_LAYERS_FIND_TRACE_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum oct_layer { OCT_LAYER_ILM, OCT_LAYER_RPE, OCT_N_LAYERS };
extern const char *const oct_layer_names[OCT_N_LAYERS]; /* "ilm", "rpe" */

/* Lengths in micrometres of tissue. */
struct oct_trace_params {
    double depth_um, line_um; /* of a pixel; NaN or 0: not known, and taken as those of
                                 OCT_TRACE_DEPTH_UM and OCT_TRACE_LINE_UM */
    double smooth_depth_um, smooth_line_um; /* sigma of the Gaussian before the gradient; along the
                                               lines that of the ILM, the RPE's is 3 of it and 3
                                               A-lines at least */
    double least_um, most_um;               /* from the ILM to the RPE */
    double max_slope;                       /* of a layer, um a um along the B-scan */
    double price;  /* of a step by 2.5 um between A-lines 5 um apart, as a share of the cost of a
                      place without contrast; the RPE, which is level, pays twice that or more */
    double gap_um; /* see above */
    double min_quality; /* below it an A-line has no ILM. The RPE needs 0.6 of it beneath an ILM,
                           and 1.5 of it alone */
};
#define OCT_TRACE_DEPTH_UM 2.5
#define OCT_TRACE_LINE_UM 5.0
void oct_trace_params_default(struct oct_trace_params *params);

/* Where a layer may be in each A-line, in pixels, give or take 5 um; NULL, or NaN in an A-line:
 * anywhere. */
struct oct_trace_bounds {
    const float *least[OCT_N_LAYERS], *most[OCT_N_LAYERS]; /* [n_lines] each */
};

/* The caller's memory, [n_lines] each. */
struct oct_traced {
    float *position[OCT_N_LAYERS]; /* px; NaN: not found */
    float *quality[OCT_N_LAYERS];  /* the step of brightness across the layer over some 80 um along
                                      it, in standard deviations of what the same measure gives
                                      beside the layers; paths over noise reach 6, with rows of
                                      fixed pattern 8 (ILM) and 11 (RPE). 0 where the A-line is
                                      missing, the layer at an end of the picture, or tissue above
                                      the ILM; never NaN */
};

struct oct_trace;

struct oct_trace_setup {
    uint32_t n_lines, depth; /* M, D */
    struct oct_trace_params params;
};

/* OCT_E_ARG: params that cannot be, or sides below 16 or above 16384; OCT_E_NO_MEMORY. */
enum oct_err oct_trace_create(struct oct_trace **trace, const struct oct_trace_setup *setup,
                              struct oct_error *err);
void oct_trace_destroy(struct oct_trace *trace); /* NULL is fine */

/* pixels: [n_lines][depth], what is not finite or beyond +-1e15 counts as the darkest; line_valid:
 * [n_lines], 0: the A-line is missing; NULL: none is. bounds NULL: none. Allocates nothing. Returns
 * the number of A-lines that have both layers. */
uint32_t oct_trace_run(struct oct_trace *trace, const float *pixels, const uint8_t *line_valid,
                       const struct oct_trace_bounds *bounds, const struct oct_traced *result);

#endif
