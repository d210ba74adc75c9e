#include "analysis/calibrate/smooth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_SIGMA 0.3
#define REACH 4.0 /* standard deviations */

enum oct_err oct_smooth(const double *in, double *out, uint32_t n, double sigma,
                        struct oct_error *err)
{
    if (!(sigma >= LEAST_SIGMA)) {
        memcpy(out, in, n * sizeof(*out));
        return OCT_OK;
    }
    const uint32_t half = (uint32_t)fmin(n, ceil(REACH * sigma));
    double *g = malloc((half + 1) * sizeof(*g));
    if (!g)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a smooth line of %u values", n);
    for (uint32_t d = 0; d <= half; d++)
        g[d] = exp(-0.5 * (d / sigma) * (d / sigma));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t from = i > half ? i - half : 0, to = i + half < n ? i + half : n - 1;
        double sum = 0, all = 0;
        for (uint32_t j = from; j <= to; j++) {
            const double w = g[j > i ? j - i : i - j];
            sum += w * in[j];
            all += w;
        }
        out[i] = sum / all;
    }
    free(g);
    return OCT_OK;
}
