/* Percentiles of a histogram. Pure function; any thread. */
#ifndef OCT_PIPELINE_BASE_HISTOGRAM_H
#define OCT_PIPELINE_BASE_HISTOGRAM_H

#include <stdint.h>

/* counts: [n_bins], n_bins > 0. share: 0..1. Returns the first bin at which the cumulated count
 * reaches share * total, a whole number from 0 to n_bins - 1 to be scaled by the caller; share 0:
 * the first bin that counts anything; nothing counted at all: 0. */
double oct_histogram_percentile(const uint32_t *counts, uint32_t n_bins, double share);

#endif
