/* The line that pipeline.dc = running subtracts from a B-scan: the mean over the A-lines that came
 * of this and the n - 1 B-scans before it in the volume, by their numbers,
 *
 *     dc[i] = sum over B-scans v - n < w <= v, lines j that came, of A[w][j][i] / number of these
 *
 * so that a flat layer of one B-scan, whose phase drifts over n of them, is not part of it and is
 * not subtracted from itself. It begins anew with each volume and acquisition, as percentile
 * smoothing does: the volume's samples alone decide it, wherever it is run. A B-scan that never
 * came leaves its place in the window empty. The first of a volume gets its own mean, as with
 * dc=bscan, to the byte.
 *
 * Sums are integers and exact, so nothing drifts however long it runs. One thread uses it. */
#ifndef OCT_PIPELINE_FLOW_RUNNING_DC_H
#define OCT_PIPELINE_FLOW_RUNNING_DC_H

#include "pipeline/base/err.h"
#include "pipeline/flow/frame.h"
#include "pipeline/plan/plan.h"

struct oct_running_dc;

/* For plan->chain.dc_bscans B-scans, or those of a volume where it has fewer: N * 4 bytes each.
 * OCT_E_NO_MEMORY. *dc is NULL on error. */
enum oct_err oct_running_dc_create(struct oct_running_dc **dc, const struct oct_plan *plan,
                                   struct oct_error *err);

/* Takes the next B-scan, in order of submission, and writes its line: [2][N], whole counts, then
 * the rest, as struct oct_engine_job wants it. A number that is not above the one before begins the
 * mean anew. Allocates nothing. */
void oct_running_dc_push(struct oct_running_dc *dc, const struct oct_raw_frame *frame, float *line);

/* For who asks an engine without a pipeline: the line of this B-scan alone, the caller's to free;
 * *line stays NULL unless plan->chain.dc is OCT_DC_RUNNING. OCT_E_NO_MEMORY. */
enum oct_err oct_running_dc_alone(float **line, const struct oct_plan *plan,
                                  const struct oct_raw_frame *frame, struct oct_error *err);

/* NULL is fine. */
void oct_running_dc_destroy(struct oct_running_dc *dc);

#endif
