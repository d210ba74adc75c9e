/* The parts of the layers of a volume: what the B-scans beside one say about where its layers
 * are. */
#ifndef OCT_ANALYSIS_SURFACE_VOLUME_PARTS_H
#define OCT_ANALYSIS_SURFACE_VOLUME_PARTS_H

#include "analysis/surface/volume.h"

/* Memory of one thread. */
struct oct_surfaces_scratch {
    struct oct_trace *first, *second;                      /* without bounds, between them */
    float *least[OCT_N_LAYERS], *most[OCT_N_LAYERS];       /* [M] */
    float *position[OCT_N_LAYERS], *quality[OCT_N_LAYERS]; /* [M] */
    float *values;                                         /* for medians */
    uint8_t *line_valid;                                   /* [M] */
};
enum oct_err oct_surfaces_scratch_init(struct oct_surfaces_scratch *scratch,
                                       const struct oct_surfaces_setup *setup,
                                       struct oct_error *err);
void oct_surfaces_scratch_finish(struct oct_surfaces_scratch *scratch);

/* Fills least and most of B-scan b from the A-lines of the B-scans beside it that are trusted; NaN
 * where there are too few. False: nothing is known. */
bool oct_surfaces_bound(const struct oct_surfaces_setup *setup, const struct oct_surfaces *surfaces,
                        uint32_t b, struct oct_surfaces_scratch *scratch);

/* Takes what scratch has of B-scan b over what surfaces has, stretch by stretch, where it is as
 * sure. */
void oct_surfaces_merge(const struct oct_surfaces_setup *setup, struct oct_surfaces *surfaces,
                        uint32_t b, const struct oct_surfaces_scratch *scratch);

/* Whether the B-scan's shift is known. */
bool oct_surfaces_is_aligned(const struct oct_surfaces *surfaces, uint32_t b);

#endif
