/* Maps of heights before they become a level set: gaps, noise, stray heights. [n_b][n_j], at least
 * 3 x 3. Any thread. */
#ifndef OCT_ANALYSIS_SURFACE_HEIGHTS_H
#define OCT_ANALYSIS_SURFACE_HEIGHTS_H

#include "pipeline/base/err.h"

#include <stdint.h>

/* NaN becomes the mean of the neighbours that are known, from the sides of a gap inwards. One
 * height at least is known. OCT_E_NO_MEMORY. */
enum oct_err oct_heights_fill(float *heights, uint32_t n_b, uint32_t n_j, struct oct_error *err);

/* The noise's standard deviation, of the median magnitude of second differences in either
 * direction: slopes do not count, and few strays do not. NaN: left out; 0: too few are known. */
double oct_heights_noise(const float *heights, uint32_t n_b, uint32_t n_j);

/* Stray heights become what their neighbours say. A height strays when it lies off the line through
 * its two neighbours by more than 2.5 times its noise and 0.3 px, in all but one of the four
 * directions at least; at a side the line goes through two heights on one side. Slopes do not
 * count. OCT_E_NO_MEMORY. */
enum oct_err oct_heights_tame(float *heights, uint32_t n_b, uint32_t n_j, double noise,
                              struct oct_error *err);

#endif
