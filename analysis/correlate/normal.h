/* Pictures on their way to a device, on which they become normal: less their mean, divided by
 * their standard deviation, and 0 where they are masked. Constant offsets and scales are removed
 * before any transform in f32; afterwards their rounding would not cancel. */
#ifndef OCT_ANALYSIS_CORRELATE_NORMAL_H
#define OCT_ANALYSIS_CORRELATE_NORMAL_H

#ifdef __cplusplus
extern "C" {
#endif

#include "numeric/picture.h"

/* What makes a picture normal: x = (pixel - offset) * scale, in double. The sum of x^2 is n_valid,
 * except for the rounding of x. */
struct oct_normal {
    uint64_t n_valid;
    double offset, scale;
    bool finite; /* all valid pixels are */
    bool usable; /* they are finite, a tenth of the pixels or more, and not all the same */
};

/* Measures a picture and copies it to to[height][width], NaN where it is masked,
 * in one pass. keep_mean: offset 0, and scale that of the root mean square. Sums in double of the
 * differences to oct_picture_pivot(), so that a small variance at a large mean is kept. Any
 * thread. */
void oct_normal_take(struct oct_normal *normal, const struct oct_picture *picture, bool keep_mean,
                     float *to);

#ifdef __cplusplus
}
#endif

#endif
