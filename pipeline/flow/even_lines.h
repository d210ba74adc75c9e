/* Pictures of an uneven scan (pipeline/plan/scan.h) on an even grid of lines.
 *
 * Line j of the picture is sum_k w[j][k] * line k: the polygon through the lines where they lie,
 * and at its ends the outermost line, averaged over max(0, 1 - d) of a column around j, where d is
 * the distance of the lines there: where they lie closer than columns all take part. w[j] adds up
 * to 1, so what is even stays as it is; each line takes part in a column. dB are averaged as
 * dB.
 *
 * Lines that did not come have no weight, and a column of which they have more than half is as they
 * are. One thread at a time. */
#ifndef OCT_PIPELINE_FLOW_EVEN_LINES_H
#define OCT_PIPELINE_FLOW_EVEN_LINES_H

#include "pipeline/flow/frame.h"
#include "pipeline/plan/scan.h"

struct oct_even_lines;

/* OCT_E_NO_MEMORY. */
enum oct_err oct_even_lines_create(struct oct_even_lines **even, const struct oct_scan *scan,
                                   const struct oct_geometry *geometry, struct oct_error *err);

/* NULL is fine. */
void oct_even_lines_destroy(struct oct_even_lines *even);

/* Pixels, values and complex values of a B-scan, in place. line_valid: [M]. */
void oct_even_lines_apply(struct oct_even_lines *even, const struct oct_image_frame *frame,
                          const uint8_t *line_valid);

/* The weight of line k in column j. */
double oct_even_lines_weight(const struct oct_even_lines *even, bool is_turned, uint32_t j,
                             uint32_t k);

#endif
