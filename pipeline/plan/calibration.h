/* Calibration: what a lab measured of its spectrometer, read from text files and checked.
 *
 * Files hold one number a line (dispersion: two, "re im"); blank lines and lines that start with
 * '#' are skipped; LF or CRLF. Anything else is an error that names file and line. */
#ifndef OCT_PIPELINE_PLAN_CALIBRATION_H
#define OCT_PIPELINE_PLAN_CALIBRATION_H

#include "pipeline/base/err.h"

#include <stddef.h>
#include <stdint.h>

#define OCT_MAX_DISPERSION_ORDER 5 /* a2 .. a5 of contract step 5 */

/* What t of the dispersion coefficients runs over, linear in k either way:
 *
 *     q          0 ......... q_first ------------ q_last ......... P2-1     k grid
 *     camera     padding       c = 0              c = N-1       padding
 *     GRID       t = -1                                             +1
 *     SPECTRUM   t < -1          -1                 +1            t > 1
 *
 * q_first and q_last are the places of camera samples 0 and N-1 on the k grid, by the wavelengths
 * or the k map. t follows the samples: -1 at sample 0, whether wavelengths rise or fall. Beyond the
 * samples, where there is only padding, the polynomial continues: so both choices describe the same
 * curve in other units, without a kink at the ends. */
enum oct_dispersion_over { OCT_DISPERSION_OVER_GRID, OCT_DISPERSION_OVER_SPECTRUM };

/* Arrays are owned by the struct; NULL with count 0 where the lab has none. */
struct oct_calibration {
    double *wavelengths_nm; /* [n_wavelengths], N or P2 of them */
    size_t n_wavelengths;
    double *kmap_px; /* [n_kmap], K >= 2 camera coordinates of K equal steps in k */
    size_t n_kmap;
    double *dispersion; /* [n_dispersion][2] re, im; P2 of them */
    size_t n_dispersion;
    double coefficient[OCT_MAX_DISPERSION_ORDER + 1]; /* [m] = a_m in radians; [0], [1] unused */
    enum oct_dispersion_over dispersion_over;         /* of the coefficients */
    double *background;                               /* [n_background], N of them, counts */
    size_t n_background;
    double *positions_um; /* [n_positions][2] x, y of the A-lines of a volume (scan.h: file) */
    size_t n_positions;
    double axial_um;           /* what a lab states of the depth scale; 0: nothing (axial.h) */
    double lambda_nm, band_nm; /* of the band that the N samples span; 0: nothing */
    double span_per_nm;        /* rad/nm of k that they span by the word of a recording's maker,
                                  where a lab states nothing; 0: nothing */
};

/* Reads a text file of n_columns numbers a line (1 or 2). *values is malloc'd [n_rows][n_columns].
 * OCT_E_CONFIG names the file and the line. */
enum oct_err oct_calibration_read_table(const char *path, unsigned n_columns, double **values,
                                        size_t *n_rows, struct oct_error *err);

/* theta of contract step 5 in radians at t: a2 t^2 + a3 t^3 + ... Not finite when the coefficients
 * are too large. */
double oct_calibration_theta(const struct oct_calibration *cal, double t);

/* Frees the arrays and zeroes the struct. */
void oct_calibration_finish(struct oct_calibration *cal);

/* Deep copy; OCT_E_NO_MEMORY leaves dst empty. */
enum oct_err oct_calibration_copy(struct oct_calibration *dst, const struct oct_calibration *src);

#endif
