/* Pictures as transforms in f32 take them: less their mean, divided by their standard deviation,
 * and 0 where they are masked. Constant offsets and scales are removed before any transform;
 * afterwards their rounding would not cancel. */
#ifndef OCT_ANALYSIS_CORRELATE_NORMAL_H
#define OCT_ANALYSIS_CORRELATE_NORMAL_H

#include "analysis/correlate/picture.h"

#ifdef __cplusplus
extern "C" {
#endif

struct oct_normal {
    uint64_t n_valid;
    double offset, scale; /* x = (pixel - offset) * scale */
    bool usable;          /* a tenth of the pixels is valid, and they are not all the same */
};

/* keep_mean: offset 0, and scale that of the root mean square. One pass, sums in double of the
 * differences to a pixel of the picture, so that a small variance at a large mean is kept. */
void oct_normal_measure(struct oct_normal *normal, const struct oct_picture *picture,
                        bool keep_mean);

/* Writes x: to[height][width], and the mask, valid[height][width] (may be NULL: not wanted). The
 * sum of x^2 is n_valid, but for the rounding of x. */
void oct_normal_write(const struct oct_normal *normal, const struct oct_picture *picture, float *to,
                      uint8_t *valid);

#ifdef __cplusplus
}
#endif

#endif
