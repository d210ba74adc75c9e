/* The seven borders of the retina's layers in one B-scan.
 *
 * Two of them, the ILM and the lower border of the RPE, are found first and at once, as the pair of
 * paths along the A-lines of least total cost, on a coarse grid: the cost of a place is low where
 * the brightness rises with depth (ILM) or falls (RPE); a step from A-line to A-line is bounded and
 * has a price a pixel; their distance lies between a least and a greatest one. After S. J. Chiu et
 * al., Optics Express 18 (2010) 19413, whose two searches, one after the other, jump between the
 * layers where either fades. The ellipsoid zone is then sought above the RPE, and the borders
 * between it and the ILM all at once from the light of the tissues between them (trace_inner.c).
 * Each border is at last found at full resolution in a corridor about its path.
 *
 * A border is where the light, linear and as blurred as the device blurs it, changes fastest, to a
 * part of a pixel: enum oct_layer says which way. Light that is given in dB is taken back to what
 * it was; of brightness whose unit is not known the contrast is taken as a usual one.
 *
 *     create -> run ... -> destroy
 *
 * Positions are depth pixels, 0 in the middle of the first one, downward, and in order: a border
 * lies nowhere above the one before it. In the fovea's pit those of the inner layers lie on the
 * ILM. What is not found is NaN, never a guess: A-lines without evidence, but for a gap that is
 * narrower than gap_um between A-lines that are found (a vessel's shadow), where the path itself
 * is given with its low quality. Where less than three in ten A-lines outside of an optic disc have
 * an RPE nothing is found: it is none.
 *
 * Same B-scan, same numbers. One thread uses a trace at a time. */
#ifndef OCT_ANALYSIS_LAYERS_FIND_TRACE_H
#define OCT_ANALYSIS_LAYERS_FIND_TRACE_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum oct_layer {
    OCT_LAYER_ILM,      /* vitreous to RNFL: dark to bright */
    OCT_LAYER_RNFL_GCL, /* nerve fibres to ganglion cells: bright to dark */
    OCT_LAYER_IPL_INL,  /* inner plexiform to inner nuclear layer: bright to dark */
    OCT_LAYER_INL_OPL,  /* inner nuclear to outer plexiform layer: dark to bright */
    OCT_LAYER_OPL_ONL,  /* outer plexiform to outer nuclear layer: bright to dark */
    OCT_LAYER_IS_OS,    /* inner segments to the ellipsoid zone: dark to bright */
    OCT_LAYER_RPE,      /* RPE with Bruch's membrane to the choroid: bright to dark */
    OCT_N_LAYERS
};
extern const char *const oct_layer_names[OCT_N_LAYERS]; /* "ilm", "rnfl_gcl", ... */

/* Lengths in micrometres of tissue. */
struct oct_trace_params {
    double depth_um, line_um; /* of a pixel; NaN or 0: not known, and taken as those of
                                 OCT_TRACE_DEPTH_UM and OCT_TRACE_LINE_UM */
    double unit_db;           /* of the brightness; NaN: not known */
    double least_um, most_um; /* from the ILM to the RPE */
    double max_slope;         /* of a layer, um a um along the B-scan */
    double price;  /* of a step by 2.5 um between A-lines 5 um apart, as a share of the cost of a
                      place without contrast; the RPE, which is level, pays twice that or more */
    double gap_um; /* see above */
    double min_quality; /* of 0 to 10, that a border needs in an A-line */
};
#define OCT_TRACE_DEPTH_UM 2.5
#define OCT_TRACE_LINE_UM 5.0
void oct_trace_params_default(struct oct_trace_params *params);

#define OCT_TRACE_MIN_QUALITY 3.0
/* Where a border may be in each A-line, in pixels; NULL, or NaN in an A-line: anywhere. */
struct oct_trace_bounds {
    const float *least[OCT_N_LAYERS], *most[OCT_N_LAYERS]; /* [n_lines] each */
};

/* The caller's memory, [n_lines] each. */
struct oct_traced {
    float *position[OCT_N_LAYERS]; /* px; NaN: not found */
    float
        *quality[OCT_N_LAYERS]; /* 0 to 10, never NaN: by how much the tissues on both sides differ,
                                      over some 80 um along the border (200 um between ILM and
                                      IS/OS), in what chance makes of the same measure; and no more
                                      than how sure it is that there is a retina about the A-line.
                                      Noise reaches 2. 0 where the A-line is missing or lies within
                                      an optic disc */
    float *path[OCT_N_LAYERS];  /* px: the whole path, whatever its quality; NaN where the picture
                                      has no contrast at all. NULL: not asked for */
};

/* How alike noise is from A-line to A-line in the positions of a border: as white noise that a
 * Gaussian of so many A-lines, `line_um` apart, has smoothed: the window in which it is sought. */
double oct_trace_alike(enum oct_layer layer, double line_um);

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
