/* What is said of a match. */
#include "analysis/align/matcher.h"

#include "numeric/order.h"

#include <math.h>

#define LEAST_SAMPLES 16u

bool oct_match_is_inside(const struct oct_match *match, uint32_t max_dy, uint32_t max_dx)
{
    for (unsigned i = 0; i < 9; i++) {
        const bool is_sought = (i / 3 == 1 || max_dy > 0) && (i % 3 == 1 || max_dx > 0);
        if (is_sought && isnan(match->around[i / 3][i % 3]))
            return false;
    }
    return true;
}

float oct_match_significance(float *samples, float peak)
{
    size_t n = 0;
    for (size_t i = 0; i < OCT_MATCH_SAMPLES; i++)
        if (!isnan(samples[i]))
            samples[n++] = samples[i];
    if (n < LEAST_SAMPLES)
        return NAN;
    const float median = oct_floats_select(samples, n, n / 2);
    for (size_t i = 0; i < n; i++)
        samples[i] = fabsf(samples[i] - median);
    return (peak - median) / (1.4826F * fmaxf(oct_floats_select(samples, n, n / 2), 1e-9F));
}
