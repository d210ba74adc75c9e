/* Calibration: what a lab measured of its spectrometer, read from text files and checked.
 *
 * Files hold one number a line (dispersion: two, "re im"); blank lines and lines that start with
 * '#' are skipped; LF or CRLF. Anything else is an error that names file and line. */
#ifndef OCT_PIPELINE_CALIBRATION_H
#define OCT_PIPELINE_CALIBRATION_H

#include "pipeline/err.h"

#include <stddef.h>
#include <stdint.h>

#define OCT_MAX_DISPERSION_ORDER 5 /* a2 .. a5 of contract step 5 */

/* Arrays are owned by the struct; NULL with count 0 where the lab has none. */
struct oct_calibration {
    double *wavelengths_nm; /* [n_wavelengths], N or P2 of them */
    size_t n_wavelengths;
    double *kmap_px; /* [n_kmap], K >= 2 camera coordinates of K equal steps in k */
    size_t n_kmap;
    double *dispersion; /* [n_dispersion][2] re, im; P2 of them */
    size_t n_dispersion;
    double coefficient[OCT_MAX_DISPERSION_ORDER + 1]; /* [m] = a_m in radians; [0], [1] unused */
    double *background;                               /* [n_background], N of them, counts */
    size_t n_background;
};

/* Reads a text file of n_columns numbers a line (1 or 2). *values is malloc'd [n_rows][n_columns].
 * OCT_E_CONFIG names the file and the line. */
enum oct_err oct_calibration_read_table(const char *path, unsigned n_columns, double **values,
                                        size_t *n_rows, struct oct_error *err);

/* theta of contract step 5 in radians, at output q of n = P2: a2 t^2 + a3 t^3 + ..., t from -1 to
 * 1. Not finite when the coefficients are too large. */
double oct_calibration_theta(const struct oct_calibration *cal, uint32_t n, uint32_t q);

/* Frees the arrays and zeroes the struct. */
void oct_calibration_finish(struct oct_calibration *cal);

/* Deep copy; OCT_E_NO_MEMORY leaves dst empty. */
enum oct_err oct_calibration_copy(struct oct_calibration *dst, const struct oct_calibration *src);

#endif
