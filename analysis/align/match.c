/* What is said of a match, and what engines refuse. */
#include "analysis/align/matcher.h"

#include "numeric/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

enum oct_err oct_matcher_check(const struct oct_matcher_setup *s, struct oct_error *err)
{
    if (s->height > 0 && s->width > 0 && s->height <= OCT_PICTURE_MOST_SIDE &&
        s->width <= OCT_PICTURE_MOST_SIDE && s->max_dy < s->height && s->max_dx < s->width)
        return OCT_OK;
    return oct_fail(err, OCT_E_ARG,
                    "shifts of up to %u, %u of pictures of %u x %u pixels: at most %u, %u",
                    s->max_dy, s->max_dx, s->height, s->width, s->height ? s->height - 1 : 0,
                    s->width ? s->width - 1 : 0);
}

enum oct_err oct_matcher_check_windows(const struct oct_matcher_setup *s, unsigned n_loaded,
                                       const struct oct_match_window *windows, unsigned n,
                                       struct oct_error *err)
{
    for (unsigned i = 0; i < n; i++)
        if (windows[i].picture >= n_loaded || windows[i].radius > s->max_radius ||
            windows[i].n_rows == 0 || windows[i].n_rows > s->max_rows ||
            windows[i].n_rows > s->height || windows[i].y0 > s->height - windows[i].n_rows ||
            (uint32_t)abs(windows[i].dx) > s->max_dx + s->max_radius)
            return oct_fail(err, OCT_E_ARG, "window %u is outside what was set up", i);
    return OCT_OK;
}
