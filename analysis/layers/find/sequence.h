/* The layers of B-scans that come one after another: each is traced (trace.h) where those of the
 * B-scan before say that they may be.
 *
 *     create -> { run ... | reset } -> destroy
 *
 * The B-scan before is the one that was run last, or of a new volume that of the volume before that
 * lies nearest: of a raster its first one. Its course is moved along the depth to where the picture
 * has most contrast along it, within OCT_SEQUENCE_MOST_SHIFT_UM; from there the layers may be
 * OCT_SEQUENCE_SLACK_UM away, and OCT_SEQUENCE_SLACK_SLOPE of the distance between both B-scans.
 * Gaps of OCT_SEQUENCE_GAP_UM are bridged. A B-scan is traced without bounds when nothing is known
 * within OCT_SEQUENCE_APART_UM, when the course has less than half its contrast wherever it is
 * moved, or when four fifths of the A-lines that had both layers are not reached: then what finds
 * more A-lines holds. Each OCT_SEQUENCE_CHECK-th B-scan is traced both ways, and the stronger one
 * holds: a course that has gone wrong ends there. A B-scan in which less than an eighth of the
 * A-lines have layers (a blink) is no course for others: the one before it stays.
 *
 * Same B-scans, same numbers. One thread uses a sequence at a time. */
#ifndef OCT_ANALYSIS_LAYERS_FIND_SEQUENCE_H
#define OCT_ANALYSIS_LAYERS_FIND_SEQUENCE_H

#include "analysis/layers/find/trace.h"
#include "pipeline/flow/frame.h"

#define OCT_SEQUENCE_MOST_SHIFT_UM 300.0
#define OCT_SEQUENCE_SLACK_UM 30.0
#define OCT_SEQUENCE_SLACK_SLOPE 0.25
#define OCT_SEQUENCE_GAP_UM 300.0
#define OCT_SEQUENCE_APART_UM 300.0
#define OCT_SEQUENCE_BSCAN_UM 25.0 /* where the distance of B-scans is not known */
#define OCT_SEQUENCE_CHECK 32u

struct oct_layer_sequence_setup {
    const struct oct_image_form *input; /* pictures [M][D]; copied */
    struct oct_spacing spacing;         /* NaN: not known */
    double least_um, most_um, min_quality;
};

/* The sequence's own, until the next run. */
struct oct_sequence_layers {
    const float *position[OCT_N_LAYERS], *quality[OCT_N_LAYERS]; /* [M] as struct oct_traced */
    uint32_t n_found;                                            /* A-lines that have both */
    double thickness_px; /* the mean of those; NaN: none has */
    bool bounded;        /* by a B-scan before it */
    unsigned n_traces;   /* 1, or 2: with bounds and without */
};

struct oct_layer_sequence;

/* *sequence is NULL on error. OCT_E_CONFIG: sizes or lengths that cannot be; OCT_E_NO_MEMORY. */
enum oct_err oct_layer_sequence_create(struct oct_layer_sequence **sequence,
                                       const struct oct_layer_sequence_setup *setup,
                                       struct oct_error *err);
void oct_layer_sequence_destroy(struct oct_layer_sequence *sequence); /* NULL is fine */

/* The next B-scan, as it is shown: pixels, lo and hi. */
const struct oct_sequence_layers *oct_layer_sequence_run(struct oct_layer_sequence *sequence,
                                                         const struct oct_image_frame *bscan);

/* Whether the B-scan is the first that has come of `every` neighbours of its volume, the first of
 * which has a number that `every` divides: then it is its turn. */
bool oct_layer_sequence_has_turn(const struct oct_layer_sequence *sequence,
                                 const struct oct_bscan_info *info, unsigned every);

/* Forgets all B-scans. */
void oct_layer_sequence_reset(struct oct_layer_sequence *sequence);

#endif
