/* What every picture is matched by, in all rooms: the picture less its background, a Gaussian
 * of 15 px. Light that is fixed to the sensor, and slow slopes of brightness, would otherwise hold
 * pictures where they are, and make pictures of different places alike. A logarithm before it does
 * not help (measured with noise on photoreceptors, lit 5 : 1): what is left of uneven light then is
 * a weight. Offsets and gains of a picture stay without effect. */
#ifndef OCT_ANALYSIS_ALIGN_PREPARE_H
#define OCT_ANALYSIS_ALIGN_PREPARE_H

#include "analysis/correlate/flatten.h"

#define OCT_ALIGN_BACKGROUND_PX 15.0

/* In place; masked pixels are 0 then. OCT_E_NO_MEMORY. Any thread. */
static inline enum oct_err oct_align_prepare(struct oct_picture *picture, struct oct_error *err)
{
    return oct_picture_flatten_coarse(picture, OCT_ALIGN_BACKGROUND_PX, err);
}

#endif
