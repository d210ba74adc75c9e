/* Percentiles of a B-scan's values and their smoothing over time (contract step 9, `percentile`).
 *
 * Two histograms over order-preserving integer keys of the floats: the first counts all values by
 * the upper 14 bits while they are computed, the second looks again at the values of the one upper
 * bin that holds the wanted rank and resolves 14 bits more: 2^-19 of a value, in fixed memory.
 * Both engines use this file. */
#ifndef OCT_KERNELS_PERCENTILE_H
#define OCT_KERNELS_PERCENTILE_H

#include "pipeline/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_HISTOGRAM_BINS (1u << 14)

/* counts[OCT_HISTOGRAM_BINS] += values by upper bin. */
void oct_histogram_add(uint32_t *counts, const float *values, size_t n);

/* The value at rank p/100 * (n - 1) of the sorted values, linear between ranks. counts is the
 * finished histogram of exactly these values; refined is scratch [OCT_HISTOGRAM_BINS]. */
double oct_histogram_percentile(const uint32_t *counts, uint32_t *refined, const float *values,
                                size_t n, double percent);

/* The limits in force, carried from one B-scan to the next. */
struct oct_smoothed_range {
    bool started;
    uint32_t acquisition;
    uint64_t volume;
    double lo, hi;
};

/* Takes the B-scan's own limits and gives back the smoothed ones (plan.h, struct oct_display). */
void oct_smoothed_range_update(struct oct_smoothed_range *range, uint32_t acquisition,
                               uint64_t volume, double smoothing_bscans, double *lo, double *hi);

#endif
