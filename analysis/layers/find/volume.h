/* The layers of a volume: each B-scan traced (trace.h), then once more between bounds that its
 * neighbours give.
 *
 * With `align`, B-scans are first registered onto each other along the depth (analysis/align/
 * volume.h), so that the eye's jumps do not tear the layers; positions are in pixels of the B-scans
 * as they were read all the same, and shift_px says how each was moved. The bounds of an A-line
 * come from the median of the trusted A-lines around it in the B-scans beside, up to 3 on each side
 * within 100 um, as aligned, and as their own layers and the B-scan's lie: what the registration
 * left is taken away. What the second trace finds counts where nothing else was found, or where it
 * is trusted, so that layers go on through shadows; where a step is real, as at the edge of a
 * druse, nothing is found between bounds, and the first trace stays. A blink is not filled: its
 * B-scan has the layers that it shows. All limits are in micrometres.
 *
 * The volume is read B-scan by B-scan, several times. Same volume, same numbers, whatever the
 * number of threads. */
#ifndef OCT_ANALYSIS_LAYERS_FIND_VOLUME_H
#define OCT_ANALYSIS_LAYERS_FIND_VOLUME_H

#include "analysis/align/volume.h"
#include "analysis/layers/find/trace.h"

struct oct_workers;

struct oct_surfaces_setup {
    uint32_t n_lines, depth;       /* M, D */
    struct oct_trace_params trace; /* depth_um and line_um of the volume */
    double bscan_um;               /* between B-scans; NaN: not known, taken as line_um */
    bool align;
    const uint8_t *skip;         /* [n_bscans], 1: a B-scan to be left out; NULL: none */
    struct oct_workers *workers; /* NULL: the caller alone */
    const char *backend, *gpus;  /* of the registration */
    unsigned deadline_ms;
};

/* Owned by whoever found them; finish. */
struct oct_surfaces {
    uint32_t n_bscans, n_lines;
    float *position[OCT_N_LAYERS]; /* [V][M] px of the B-scan as read; NaN: not found */
    float *quality[OCT_N_LAYERS];  /* [V][M], as in trace.h */
    float *path[OCT_N_LAYERS];     /* [V][M] px: the whole path; NaN: of no B-scan that was read */
    double *shift_px;              /* [V] position + shift_px: aligned; 0 without align, and where a
                                      B-scan did not register */
    enum oct_volume_fate *fate;    /* [V] USED without align */
    uint64_t n_found[OCT_N_LAYERS]; /* A-lines that have it */
};

/* source: as analysis/align/volume.h; pictures [M][D], what is masked counts as the darkest, and an
 * A-line without a valid pixel as missing. OCT_E_ARG: fewer than OCT_SURFACES_LEAST_BSCANS, params
 * that cannot be. A volume without a retina is no error: nothing is found. On error *surfaces is
 * empty. */
enum oct_err oct_surfaces_find(const struct oct_surfaces_setup *setup,
                               const struct oct_volume_source *source,
                               struct oct_surfaces *surfaces, struct oct_error *err);
void oct_surfaces_finish(struct oct_surfaces *surfaces); /* of an empty one too */

/* Moves borders of n A-lines down to the one above where they lie above it. NULL: a border that is
 * left out; NaN stays NaN. */
void oct_surfaces_put_in_order(float *const position[OCT_N_LAYERS], size_t n);

#endif
