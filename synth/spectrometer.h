/* A synthetic spectrometer before a mirror: what a camera records of one or several reflectors,
 * with everything known that a calibration has to find. Double precision.
 *
 * Camera sample i has the wavelength
 *     lambda_i = centre + span/2 (u + quadratic u^2 + cubic u^3),  u = -1 .. 1 over the camera
 * and the wave number k_i = 2 pi / lambda_i. The k map is exact: camera coordinates, 0 .. N-1, of N
 * equal steps in k. q_i is the place of sample i on the P2 steps of contract step 4 that this k map
 * gives; depths are pixels of that grid. A reflector at depth d and of share r adds to the counts
 *     source_i + dark,   source_i r a(f_i) cos(2 pi d q_i / P2 + theta(t_i) + phase)
 * with theta(t) = a2 t^2 + a3 t^3, t = 2 q / (P2 - 1) - 1 (contract step 5, over the grid), and the
 * fall-off of a pixel of width 1 and a Gaussian spot of full width spot_px at half its height,
 *     a(f) = sinc(f) exp(-(pi spot f)^2 / (4 ln 2)),  f_i = |d(argument)/di| / (2 pi)
 * cycles a sample: a fringe beyond Nyquist is aliased as a camera's is.
 *
 * Noise: read noise and shot noise, normal, variance read^2 (1 + 4 source_i / source peak), with
 * `read` such that a reflector at depth 0 has the signal to noise ratio `snr_db`: peak power over
 * mean noise power in the transform of one A-line without a window. */
#ifndef OCT_SYNTH_SPECTROMETER_H
#define OCT_SYNTH_SPECTROMETER_H

#include "pipeline/base/err.h"

#include <stdint.h>

#define OCT_SPECTROMETER_SHARE 0.3 /* fringe over source of a mirror */

struct oct_spectrometer_setup {
    uint32_t n_samples;        /* N */
    unsigned bits;             /* of a sample, 1..16; the source peaks at half of full scale */
    double centre_nm, span_nm; /* span < 0: wavelengths fall along the line */
    double quadratic, cubic;   /* |2 quadratic| + |3 cubic| < 1 */
    double source_nm;          /* full width of the Gaussian source (over k) at half maximum */
    double bump;               /* of a second, narrow source beside it; 0: none, 1: as high */
    double spot_px;
    double a2, a3; /* rad, over the P2 steps */
    double snr_db;
    double gain; /* of all light; 1.6 and more saturates mirrors */
};

/* 832 samples of 12 bits, 850 +- 45 nm, source 45 nm, no bump, spot 0.8 px, a2 30, a3 -6, 60 dB,
 * gain 1. */
extern const struct oct_spectrometer_setup oct_spectrometer_standard;

/* Read-only after init; the arrays are owned by it. */
struct oct_spectrometer {
    struct oct_spectrometer_setup setup;
    uint32_t upsampled;     /* P2 */
    double *wavelengths_nm; /* [N] */
    double *kmap_px;        /* [N] first 0, last N - 1 */
    double *place;          /* [N] q_i */
    double *slope;          /* [N] dq/di */
    double *source;         /* [N] counts, without dark and gain */
    double axial_um;        /* optical path in air of a depth pixel */
    double read_counts;     /* standard deviation of the read noise */
    double dark, full_scale;
    double limit_px; /* full width at half maximum of the intensity of a reflector at depth 0 that
                        `source` gives: the transform of source_i dq/di over q_i */
};

struct oct_reflector {
    double depth_px, share, phase;
};

/* OCT_E_ARG: a setup that is none. finish is right after a failure too. */
enum oct_err oct_spectrometer_init(struct oct_spectrometer *s,
                                   const struct oct_spectrometer_setup *setup,
                                   struct oct_error *err);
void oct_spectrometer_finish(struct oct_spectrometer *s);

/* One A-line before it is digitised: counts [N], noise by seed and `line`; any thread. */
void oct_spectrometer_expose(const struct oct_spectrometer *s,
                             const struct oct_reflector *reflectors, unsigned n, uint64_t seed,
                             int64_t line, double *counts);

/* The same without noise. */
void oct_spectrometer_light(const struct oct_spectrometer *s,
                            const struct oct_reflector *reflectors, unsigned n, double *counts);

/* Rounds to the camera's samples [N]; returns how many were clipped at 0 or full scale. */
uint32_t oct_spectrometer_digitise(const struct oct_spectrometer *s, const double *counts,
                                   uint16_t *samples);

/* One B-scan, [n_lines][N]: the phase of the reflectors advances evenly by `turns` turns over the
 * B-scan, so that with a whole number of turns, not 0, the mean line is the source's. Returns how
 * many samples were clipped. OCT_E_NO_MEMORY. */
enum oct_err oct_spectrometer_bscan(const struct oct_spectrometer *s,
                                    const struct oct_reflector *reflectors, unsigned n,
                                    double turns, uint32_t n_lines, uint64_t seed,
                                    uint16_t *samples, uint64_t *n_clipped, struct oct_error *err);

#endif
