/* Percentiles of a B-scan's values and their smoothing over time (contract step 9, `percentile`).
 *
 * Two histograms over order-preserving integer keys of the floats: the first counts all values by
 * the upper 14 bits while they are computed (stages->histogram), the second only those of the one
 * upper bin that holds the wanted rank, picked out of all (stages->pick), and resolves 14 bits
 * more: 2^-19 of a value. The CUDA engine, too, smooths its limits by this file.
 */
#ifndef OCT_KERNELS_RECON_PERCENTILE_H
#define OCT_KERNELS_RECON_PERCENTILE_H

#include "kernels/recon/stages.h"
#include "pipeline/flow/frame.h"
#include "pipeline/plan/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A B-scan's values and what they are counted in. Those of missing lines take no part: no value is
 * lower, so that all ranks begin after them. */
struct oct_percentile_values {
    const struct oct_stages *stages;
    const float *values;
    size_t n, n_missing; /* n > n_missing */
    uint32_t *counts;    /* [OCT_HISTOGRAM_BINS] of exactly these values */
    /* scratch */
    uint32_t *refined; /* [OCT_HISTOGRAM_BINS] */
    float *picked;     /* [n + OCT_PICK_SLACK] */
};

/* *lo and *hi: the values at ranks p/100 * (n - n_missing - 1) of the sorted values of lines that
 * came, linear between ranks. */
void oct_percentiles_find(const struct oct_percentile_values *v, double lo_percent,
                          double hi_percent, double *lo, double *hi);

/* The limits in force, carried from one B-scan to the next. */
struct oct_smoothed_range {
    bool started;
    uint32_t acquisition;
    uint64_t volume;
    double lo, hi;
};

/* Takes the B-scan's own limits and gives back the smoothed ones (plan.h, struct oct_display). */
void oct_smoothed_range_update(struct oct_smoothed_range *range, const struct oct_bscan_info *info,
                               const struct oct_display *display, double *lo, double *hi);

#endif
