/* Sensitivity roll-off: how a mirror's peak falls with depth, from the largest peak that was seen
 * in each of 64 parts of the depth, and the straight line through them in dB,
 *
 *     peak_db = zero_db + db_per_px (depth_px + first_px)
 *
 * by least squares, all points alike. A spectrometer's roll-off is the transform of its resolution
 * in k, which is no straight line in dB, but what makers and papers state are the line's numbers:
 * dB a mm, and the depth of -6 dB (G. Hausler, M. W. Lindner, "Coherence radar and spectral radar",
 * J. Biomed. Opt. 3 (1998); Z. Hu, Y. Pan, A. M. Rollins, Appl. Opt. 46 (2007)).
 * Pure; one thread at a time. */
#ifndef OCT_ANALYSIS_ROLLOFF_CURVE_H
#define OCT_ANALYSIS_ROLLOFF_CURVE_H

#include <stdbool.h>
#include <stdint.h>

#define OCT_ROLLOFF_MOST_POINTS 64u
#define OCT_ROLLOFF_LEAST_POINTS 3u /* for a line */

struct oct_rolloff_point {
    double depth_px; /* 0: the middle of the picture's first pixel */
    double peak_db;  /* dB of counts^2 */
    double fwhm_px;
    double snr_db;
};

struct oct_rolloff_curve {
    uint32_t depth; /* pixels: 64 parts of it */
    bool has[OCT_ROLLOFF_MOST_POINTS];
    struct oct_rolloff_point part[OCT_ROLLOFF_MOST_POINTS];
};

/* Forgets all points. depth above 0. */
void oct_rolloff_curve_clear(struct oct_rolloff_curve *curve, uint32_t depth);

/* Keeps the point where it is the largest of its part; one outside the picture is none. */
void oct_rolloff_curve_add(struct oct_rolloff_curve *curve, const struct oct_rolloff_point *point);

/* Copies the points in the order of their depths; returns how many there are. */
unsigned oct_rolloff_curve_points(const struct oct_rolloff_curve *curve,
                                  struct oct_rolloff_point points[OCT_ROLLOFF_MOST_POINTS]);

/* All but n NaN with fewer than 3 points. */
struct oct_rolloff_line {
    unsigned n;          /* points */
    double zero_db;      /* at zero delay */
    double db_per_px;    /* below 0: it falls */
    double rms_db;       /* of the points about the line */
    double minus_6db_px; /* pixels behind zero delay where the line is 6 dB lower, also beyond the
                           picture; NaN: it does not fall */
};

/* first_px: pixels between zero delay and the picture's first one. */
struct oct_rolloff_line oct_rolloff_fit(const struct oct_rolloff_point *points, unsigned n,
                                        double first_px);

#endif
