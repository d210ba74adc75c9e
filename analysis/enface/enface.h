/* En face: one value an A-line, one row a B-scan, of the volume that is being scanned.
 *
 * Input: pictures, as they are shown (of u8 pictures what was cut off at their limits stays cut
 * off). Result: one image a volume, f32 [V][M], dB (or counts^2 without log); NaN where nothing has
 * come. mean: of the A-line's depths; maximum; slab: mean of the depths slab_first .. slab_last.
 * Live, a growing volume is given ten times a second at most, and once more when it is whole or has
 * ended; lo and hi are the 1st and the 99.5th percentile of what is there. All three projections
 * are kept: a change shows at once, but a changed slab only in rows that come after.
 * More than OCT_ENFACE_MOST_VALUES values are thinned out: n B-scans share a row, of which the
 * newest stays; the row spacing says so. */
#ifndef OCT_ANALYSIS_ENFACE_ENFACE_H
#define OCT_ANALYSIS_ENFACE_ENFACE_H

#include "analysis/analysis.h"

#define OCT_ENFACE_MOST_VALUES (1u << 22)

enum oct_projection {
    OCT_PROJECTION_MEAN,
    OCT_PROJECTION_MAX,
    OCT_PROJECTION_SLAB,
    OCT_N_PROJECTIONS
};

struct oct_enface_settings {
    enum oct_projection projection;
    double slab_first, slab_last; /* shares of the depth, 0 <= first < last <= 1 */
};

extern const struct oct_params oct_enface_params; /* section [analysis] */

/* The depths *first .. *first + *n - 1 of a slab, of which the shares are in settings: at least one
 * of depth pixels, whatever the slab. */
void oct_enface_slab(double slab_first, double slab_last, uint32_t depth, uint32_t *first,
                     uint32_t *n);

/* Mean and maximum of the finite ones of n pixels; NaN where there is none. */
struct oct_enface_line {
    double mean, most;
};
struct oct_enface_line oct_enface_line(const float *pixels, uint32_t n);

/* The 1st and the 99.5th percentile of the finite ones of n values, lo < hi; 0 and 1 where there is
 * none. Of many values some are left out. */
void oct_enface_limits(const float *value, size_t n, double *lo, double *hi);

/* How many neighbouring B-scans share a row of the picture. */
uint32_t oct_enface_row_step(uint32_t n_bscans, uint32_t n_lines);

extern const struct oct_analysis_ops oct_enface_cpu;

#endif
