/* Removes uneven light: a picture less its Gaussian background,
 *
 *     I(p) - [G * (m I)](p) / [G * m](p)
 *
 * G of standard deviation sigma_px, cut at 4 sigma; m the mask, 0 beyond the border too. Any
 * thread. */
#ifndef OCT_ANALYSIS_CORRELATE_FLATTEN_H
#define OCT_ANALYSIS_CORRELATE_FLATTEN_H

#include "numeric/picture.h"

/* In place; pixels that are masked are 0 then. OCT_E_ARG: sigma_px is not within 0.5 ..
 * OCT_PICTURE_MOST_SIDE; OCT_E_NO_MEMORY. */
enum oct_err oct_picture_flatten(struct oct_picture *picture, double sigma_px,
                                 struct oct_error *err);

/* The same with a coarser background, found on pixels binned 4 x 4 and linear between them: a
 * hundredth of the work. sigma_px: 8 or more; sides: above 4. OCT_E_NO_MEMORY. */
enum oct_err oct_picture_flatten_coarse(struct oct_picture *picture, double sigma_px,
                                        struct oct_error *err);

#endif
