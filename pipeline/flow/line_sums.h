/* Sums over the A-lines of a B-scan, sample by sample: what every mean spectrum is made of. */
#ifndef OCT_PIPELINE_FLOW_LINE_SUMS_H
#define OCT_PIPELINE_FLOW_LINE_SUMS_H

#include "pipeline/flow/frame.h"
#include "pipeline/plan/geometry.h"

/* sums[N] = the sum over the lines that came, exact (65535 * 65536 < 2^32). Returns how many these
 * were. Any thread. */
uint32_t oct_line_sums(uint32_t *sums, const struct oct_raw_frame *frame,
                       const struct oct_geometry *g);

/* mean[i] = total[i] / n_lines as whole counts and a remainder, [2][N], so that sample - whole -
 * rest keeps all digits: the same numbers as an engine's own mean of the same lines. n_lines 0:
 * zeros. total < 2^53. */
void oct_line_mean(float *mean, const uint64_t *total, uint64_t n_lines, uint32_t n_samples);

#endif
