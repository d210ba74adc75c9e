/* A synthetic spectrometer with truth for tests of calibration: synth/spectrometer.h, made
 * with cmocka's assertions, and the exact sum that judges what is found. */
#ifndef OCT_TEST_RIG_SPECTROMETER_H
#define OCT_TEST_RIG_SPECTROMETER_H

#include "synth/spectrometer.h"

/* NULL: the standard one. The caller finishes it by oct_spectrometer_finish. */
void oct_spectrometer_rig(struct oct_spectrometer *s, const struct oct_spectrometer_setup *setup);

/* One noisy A-line of a mirror of the standard share: counts [N], not rounded. */
void oct_spectrometer_rig_line(const struct oct_spectrometer *s, double depth_px, double phase,
                               uint64_t seed, double *counts);

/* A B-scan of a mirror, [n_lines][N], its phase once around; the caller frees it. */
uint16_t *oct_spectrometer_rig_mirror(const struct oct_spectrometer *s, double depth_px,
                                      uint32_t n_lines, uint64_t seed);

/* The map and the phase by which samples are read: those of the truth, or what a test found. */
struct oct_spectrometer_reading {
    const double *place; /* [N] q of each sample on the P2 steps; NULL: the truth's */
    const double *theta; /* [N] rad, dispersion at each sample; NULL: the truth's */
    const double *share; /* [N] window; NULL: 1 */
};

/* Contract section 6, in double and by direct sums: intensities (counts^2) at depths first, first +
 * step, ... of `counts` less dark level and source. reading NULL: all of the truth. */
void oct_spectrometer_rig_depths(const struct oct_spectrometer *s, const double *counts,
                                 const struct oct_spectrometer_reading *reading, double first,
                                 double step, uint32_t n, double *intensity);

/* Where those intensities are largest near `depth_px`, within 30 px, and the full width at half
 * maximum there, to 1e-4 px. */
void oct_spectrometer_rig_peak(const struct oct_spectrometer *s, const double *counts,
                               const struct oct_spectrometer_reading *reading, double depth_px,
                               double *at_px, double *fwhm_px, double *intensity);

#endif
