/* Smoothing by a Gaussian. */
#ifndef OCT_ANALYSIS_CALIBRATE_SMOOTH_H
#define OCT_ANALYSIS_CALIBRATE_SMOOTH_H

#include "pipeline/base/err.h"

#include <stdint.h>

/* out[i] = sum_j g(i - j) in[j] / sum_j g(i - j), j over the n values there are, g of standard
 * deviation sigma; not in place. sigma below 0.3: a copy. OCT_E_NO_MEMORY. */
enum oct_err oct_smooth(const double *in, double *out, uint32_t n, double sigma,
                        struct oct_error *err);

#endif
