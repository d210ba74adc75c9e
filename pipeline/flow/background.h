/* A background line: the mean spectrum of all A-lines of a few B-scans, recorded with the shutter
 * closed or the sample taken away; what calibration.background names. One thread at a time. */
#ifndef OCT_PIPELINE_FLOW_BACKGROUND_H
#define OCT_PIPELINE_FLOW_BACKGROUND_H

#include "pipeline/base/err.h"
#include "pipeline/flow/frame.h"
#include "pipeline/plan/geometry.h"

/* B-scans that it is of, unless somebody says how many, and at most: sums of more are no better. */
#define OCT_BACKGROUND_BSCANS 64u
#define OCT_BACKGROUND_MOST_BSCANS 4096u
#define OCT_BACKGROUND_LEAST_LINES 16u /* the mean of fewer is noise */

struct oct_background {
    struct oct_geometry geometry;
    uint16_t limit;       /* samples from here on are saturated: 2^camera.bits - 1 */
    uint32_t *sums;       /* [N] of a B-scan */
    uint64_t *total;      /* [N] */
    uint16_t *room;       /* [N] a line */
    uint64_t n_bscans;    /* of which lines came */
    uint64_t n_lines;     /* that came */
    uint64_t n_saturated; /* samples, of n_lines * N */
};

/* bits: of a sample, 1 to 16. OCT_E_NO_MEMORY; finish is right after that and on zeroed memory. */
enum oct_err oct_background_init(struct oct_background *b, const struct oct_geometry *geometry,
                                 unsigned bits, struct oct_error *err);
void oct_background_finish(struct oct_background *b);

/* Adds the lines that came. At most OCT_BACKGROUND_MOST_BSCANS B-scans. */
void oct_background_add(struct oct_background *b, const struct oct_raw_frame *frame);

/* Whether it is one: OCT_E_STATE: too few lines came, and what to do. */
enum oct_err oct_background_check(const struct oct_background *b, struct oct_error *err);

/* Counts at sample i; 0: nothing came. */
double oct_background_at(const struct oct_background *b, uint32_t i);

#endif
