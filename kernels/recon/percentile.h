/* Percentiles of a B-scan's values and their smoothing over time (contract step 9, `percentile`).
 *
 * A rank is found without a look at most values. While a line is made, and lies in the nearest
 * cache, those between two bounds are kept and those below are counted (sift_both); the bounds
 * stand around what was found in the B-scan before, so that the rank nearly always lies between
 * them, and the few that were kept are halved until one is left. Otherwise bounds come from a
 * sample and all values are sifted again. Whatever the bounds, the value is the same: that of the
 * rank, to 28 bits of its order-preserving key, 2^-19 of it. The CUDA engine, too, smooths its
 * limits by this file.
 */
#ifndef OCT_KERNELS_RECON_PERCENTILE_H
#define OCT_KERNELS_RECON_PERCENTILE_H

#include "kernels/recon/stages.h"
#include "pipeline/flow/frame.h"
#include "pipeline/plan/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sieves of the low and the high percentile. n_values: of those that a B-scan has, n_line: of those
 * that are added at once. finish is right on zeroed memory. */
struct oct_sieves {
    struct oct_sieve of[2];
};
enum oct_err oct_sieves_init(struct oct_sieves *sieves, size_t n_values, size_t n_line);
void oct_sieves_finish(struct oct_sieves *sieves);
void oct_sieves_empty(struct oct_sieves *sieves, const struct oct_percentile_bounds bounds[2]);
void oct_sieves_add(struct oct_sieves *sieves, const struct oct_stages *stages, const float *values,
                    size_t n);

/* A B-scan's values. Those of missing lines take no part: no value is lower, so that all ranks
 * begin after them. */
struct oct_percentile_values {
    const struct oct_stages *stages;
    const float *values;
    size_t n, n_missing; /* n > n_missing */
    const struct oct_sieves
        *sieves;       /* [n_sieves] of the same bounds: given these values together */
    unsigned n_sieves; /* > 0 */
    float *spare[2];   /* [n + OCT_SIFT_SLACK] */
};

/* found[i]: the value at rank percent[i]/100 * (n - n_missing - 1) of the sorted values of lines
 * that came, linear between ranks; bounds[i]: for the sieves of the next B-scan. */
void oct_percentiles_find(const struct oct_percentile_values *v, const double percent[2],
                          struct oct_percentile_bounds bounds[2], double found[2]);

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
