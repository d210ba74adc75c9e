/* C1D(R) and the characteristic length: Lu et al. 2010, Eq. 2 and Fig. 5.
 *
 *     C1D[k] = mean of C(d) over all d with floor(|d| + 1/2) = k, k = 0 .. R, |dy|, |dx| <= R
 *     radius[k] = mean of |d| over the same d, whether C is NaN there or not (radius[1] = 1.207)
 *
 * NaN of C are left out of C1D; a bin without any value is NaN. Sums in double. */
#ifndef OCT_ANALYSIS_CORRELATE_PROFILE_H
#define OCT_ANALYSIS_CORRELATE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

/* c2d: [2 max_shift + 1][2 max_shift + 1]. radius (may be NULL), shifts (how many d in each bin,
 * whether C is NaN there or not; may be NULL), c1d: [max_shift + 1]. */
void oct_profile(const float *c2d, uint32_t max_shift, double *radius, uint32_t *shifts,
                 double *c1d);

/* The first ring: the first maximum behind the first trough that stands at least `prominence` above
 * that trough; if the first does not, the search goes on from there, with the next trough. A rise
 * that lasts to the last bin has no maximum, and nothing behind a bin that is NaN is looked at. */
struct oct_ring_peak {
    bool found;       /* else all are NaN */
    uint32_t bin;     /* of the maximum */
    double radius_px; /* R_max, by the parabola through three bins */
    double c;         /* C1D at the bin of the maximum */
    double trough_px; /* radius of the trough's bin */
    double height;    /* c less C1D in the trough */
};
#define OCT_PROFILE_PROMINENCE 0.02

struct oct_ring_peak oct_profile_first_ring(const double *radius, const double *c1d,
                                            uint32_t max_shift, double prominence);

#endif
