/* The fringe of a mirror: its phase over the camera, by the analytic signal.
 *
 * Line j of a recording of one mirror at depth z is, at camera sample c,
 *
 *     x_j(c) = S(c) + A(c) cos(phi(c) + psi_j) + noise,   phi(c) = 2 z k(c) + theta(c)
 *
 * S the source, A the fringe's amplitude, theta the dispersion, psi_j how far the mirror moved. The
 * steps, all in double precision:
 *
 *     detect    the mean power spectrum of the lines under Hann's window; of its part that varies
 *               from line to line where the fringe does (a mirror at rest has the same fringe in
 *               all lines, so that the mean line is not the source)
 *     source    the mean line, smoothed so far that the fringe is gone
 *     band      from where the fringe's spectrum rises out of noise, or out of what the source
 *               leaves, to where it sinks, and some more to both sides
 *     average   X_j(f) exp(-i psi_j) over all lines, psi_j the phase of sum over the band of
 *               X_j(f) conj R(f), R the average before: coherent, so that noise falls as 1/n
 *     F(c)      the inverse transform of the band's positive frequencies: A(c) exp(i phi(c))
 *     phase     of F(c) exp(-i model(c)), smoothed, plus the model, which is a straight line
 *               through the band's middle
 *
 * and with a model from the fit of all mirrors (kmap.h), oct_fringe_refine:
 *
 *     phase     of 2 x(c) exp(-i model(c)), smoothed, plus the model; x the average as a line. A
 *               chirped fringe needs a wide band, the residue a narrow one, which neither the
 *               source nor the negative frequencies reach, not even near Nyquist
 *     source    x less the fringe, smoothed, is what the source had left in x, and is taken off
 *
 * Sources: M. Mujat, B. H. Park, B. Cense, T. C. Chen, J. F. de Boer, "Autocalibration of
 * spectral-domain optical coherence tomography spectrometers for in vivo quantitative retinal nerve
 * fiber layer birefringence determination", J. Biomed. Opt. 12 (2007); X. Attendu, R. M. Ruis,
 * C. Boudoux, T. G. van Leeuwen, D. J. Faber, "Simple and robust calibration procedure for
 * k-linearization and dispersion compensation in optical coherence tomography", J. Biomed. Opt. 24
 * (2019).
 *
 * One thread uses a fringe at a time. */
#ifndef OCT_ANALYSIS_CALIBRATE_FRINGE_H
#define OCT_ANALYSIS_CALIBRATE_FRINGE_H

#include "pipeline/base/err.h"

#include <stdint.h>

#define OCT_FRINGE_LEAST_SAMPLES 128u
#define OCT_FRINGE_LEAST_CYCLES 16.0      /* over the camera: less is depth zero */
#define OCT_FRINGE_LEAST_CONTRAST_DB 13.0 /* of the spectrum's peak over its floor */
#define OCT_FRINGE_SECOND_DB (-10.0)      /* a second peak up to here is a second fringe */

enum oct_fringe_fault {
    OCT_FRINGE_GOOD,
    OCT_FRINGE_SATURATED, /* a thousandth of the samples, or more, at full scale */
    OCT_FRINGE_NONE,      /* nothing stands out of the noise */
    OCT_FRINGE_TWO,       /* two bands, the weaker within 10 dB of the other */
    OCT_FRINGE_ALIASED,   /* the band reaches Nyquist's frequency */
    OCT_FRINGE_SLOW,      /* depth zero: too few cycles to part fringe and source */
};

/* Arrays are owned by the struct; [N] over the camera's samples. */
struct oct_fringe {
    enum oct_fringe_fault fault;
    uint32_t n_samples, n_lines;
    double *source;       /* counts, smooth, with the dark level, less the background given */
    double *background;   /* counts: the source and the background given, which a line has beside
                             its fringe */
    double *mean;         /* counts: the mean line, less the background given */
    double *average;      /* counts: x, the coherent average of the lines without the source */
    double *re, *im;      /* F, counts */
    double *phase;        /* rad, unwrapped, rising */
    double *envelope;     /* counts: A */
    double *weight;       /* A squared, 0 where noise is more than a tenth of it; their sum is 1 */
    uint32_t first, last; /* samples of weight above 0 lie in first .. last */
    double cycles;        /* of the band's middle, over the camera */
    double contrast_db;
    double coherence;    /* 0..1: |mean of X_j exp(-i psi_j)|^2 over the mean of |X_j|^2, in the
                             band; noise is taken off */
    double noise_counts; /* standard deviation of the average */
};

/* lines: [n_lines][n_samples], all there; background: [n_samples] counts, taken off first, or NULL;
 * bits: of a sample. OCT_E_FORMAT: what is wrong with the recording, a sentence without its name;
 * fringe->fault says it to programs. OCT_E_ARG: too few samples. OCT_E_NO_MEMORY. finish is right
 * after a failure too. */
enum oct_err oct_fringe_find(struct oct_fringe *fringe, const uint16_t *lines, uint32_t n_lines,
                             uint32_t n_samples, const double *background, unsigned bits,
                             struct oct_error *err);
void oct_fringe_finish(struct oct_fringe *fringe);

/* Takes phase, envelope and weight anew by a model of the phase, [N] rad, which is right to less
 * than a turn except for a constant. OCT_E_NO_MEMORY. */
enum oct_err oct_fringe_refine(struct oct_fringe *fringe, const double *model,
                               struct oct_error *err);

#endif
