/* Sensitivity roll-off and axial width, live, from a mirror: the analysis `rolloff`.
 *
 * Input: values, dB or counts^2. Each B-scan is searched for a mirror (mirror.h); as the operator
 * moves it over the depth, the largest peak in each of 64 parts of the depth is kept, and a line
 * goes through those. The points begin anew with an acquisition (a new epoch of the
 * camera driver, or its flag "starts"), when the analysis comes out of rest (rolloff.enabled no,
 * then yes), and when octd builds its pipeline anew.
 *
 * Result: one table a B-scan, f32 [64 at most][6], a row for each point, from the shallowest on:
 *   depth_px   in pixels of the picture, 0 in the middle of the first one
 *   depth_um   from zero delay, in air: depth pixels that pipeline.crop_first cut off count
 *   peak_db    dB of counts^2
 *   fwhm_px, fwhm_um   full width at half the intensity; um in air
 *   snr_db     peak over the mean power of the noise
 * and beside it the numbers below, of this B-scan and of the line. In the topic's header the rows
 * are objects too, `curve`. NaN: unknown; of a B-scan without a mirror, all that is of it but
 * `state`; um without the camera's wavelengths. */
#ifndef OCT_ANALYSIS_ROLLOFF_ROLLOFF_H
#define OCT_ANALYSIS_ROLLOFF_ROLLOFF_H

#include "analysis/analysis.h"

/* The curve: how a mirror's peak falls with depth, from the largest peak that was seen
 * in each of 64 parts of the depth, and the straight line through them in dB,
 *
 *     peak_db = zero_db + db_per_px (depth_px + first_px)
 *
 * by least squares, all points alike. A spectrometer's roll-off is the transform of its resolution
 * in k, which is no straight line in dB, but what makers and papers state are the line's numbers:
 * dB a mm, and the depth of -6 dB (G. Hausler, M. W. Lindner, "Coherence radar and spectral radar",
 * J. Biomed. Opt. 3 (1998); Z. Hu, Y. Pan, A. M. Rollins, Appl. Opt. 46 (2007)).
 * Pure; one thread at a time. */
#define OCT_ROLLOFF_MOST_POINTS 64u
#define OCT_ROLLOFF_LEAST_POINTS 3u /* for a line */

struct oct_rolloff_point {
    double depth_px; /* 0: the middle of the picture's first pixel */
    double peak_db;  /* dB of counts^2 */
    double fwhm_px;
    double snr_db;
};

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

/* ---- the analysis ---- */

enum oct_rolloff_column {
    OCT_ROLLOFF_POINT_DEPTH_PX,
    OCT_ROLLOFF_POINT_DEPTH_UM,
    OCT_ROLLOFF_POINT_PEAK_DB,
    OCT_ROLLOFF_POINT_FWHM_PX,
    OCT_ROLLOFF_POINT_FWHM_UM,
    OCT_ROLLOFF_POINT_SNR_DB,
    OCT_ROLLOFF_N_COLUMNS
};

enum oct_rolloff_number {
    OCT_ROLLOFF_STATE, /* enum oct_mirror_state: 0 is a mirror */
    OCT_ROLLOFF_DEPTH_PX,
    OCT_ROLLOFF_DEPTH_UM, /* as in the table */
    OCT_ROLLOFF_PEAK_DB,
    OCT_ROLLOFF_FWHM_PX,
    OCT_ROLLOFF_FWHM_UM,        /* in air */
    OCT_ROLLOFF_FWHM_TISSUE_UM, /* over scan.refractive_index */
    OCT_ROLLOFF_NOISE_DB,       /* mean power of the noise, dB of counts^2 */
    OCT_ROLLOFF_SNR_DB,
    OCT_ROLLOFF_SIDE_LOBE_DB, /* relative to the peak; NaN: none above the noise */
    OCT_ROLLOFF_SIDE_LOBE_PX,
    OCT_ROLLOFF_DYNAMIC_RANGE_DB, /* peak over the side lobe, where there is none over the noise */
    OCT_ROLLOFF_TILT_PX,          /* of the mirror over the B-scan */
    OCT_ROLLOFF_POINTS,           /* of the line; the rest is NaN with fewer than 3 */
    OCT_ROLLOFF_DB_PER_MM,        /* of depth in air */
    OCT_ROLLOFF_DB_PER_100PX,
    OCT_ROLLOFF_ZERO_DB,      /* the line at zero delay */
    OCT_ROLLOFF_MINUS_6DB_PX, /* pixel of the picture where it is 6 dB lower; NaN: it rises */
    OCT_ROLLOFF_MINUS_6DB_UM, /* the same from zero delay, in air */
    OCT_ROLLOFF_RMS_DB,       /* of the points about it */
    OCT_ROLLOFF_N_NUMBERS,    /* at most OCT_IMAGE_MAX_NUMBERS */
};

struct oct_rolloff_settings {
    bool enabled; /* no: at rest */
    bool record;
    uint32_t first_px;   /* of the picture: what lies before is DC */
    uint32_t crop_first; /* pixels between zero delay and the picture's first one */
    double min_snr_db;
    double refractive_index; /* of the tissue that the setup's spacing is in; at least 1 */
};

extern const struct oct_params oct_rolloff_params;

extern const struct oct_analysis_ops oct_rolloff_cpu; /* settings: struct oct_rolloff_settings */

#endif
