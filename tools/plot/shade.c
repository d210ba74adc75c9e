#include "tools/plot/plot.h"

#include <math.h>

/* The slope between both neighbours, or to the one that is known; NaN: neither is. */
static double slope(const float *at, bool has_before, bool has_after, size_t step, double spacing)
{
    const double here = (double)*at;
    const double before = has_before ? (double)*(at - step) : NAN;
    const double after = has_after ? (double)at[step] : NAN;
    if (isfinite(before) && isfinite(after))
        return (after - before) / (2 * spacing);
    return isfinite(after) ? (after - here) / spacing : (here - before) / spacing;
}

void oct_plot_shade(const float *heights, uint32_t n_y, uint32_t n_x, double spacing_y,
                    double spacing_x, double gain, float *shade)
{
    for (uint32_t y = 0; y < n_y; y++)
        for (uint32_t x = 0; x < n_x; x++) {
            const float *at = heights + (size_t)y * n_x + x;
            const double right = gain * slope(at, x > 0, x + 1 < n_x, 1, spacing_x);
            const double down = gain * slope(at, y > 0, y + 1 < n_y, n_x, spacing_y);
            /* Normal (-right, -down, 1), light from (-1, -1, sqrt(2)) / 2; y points downward. */
            const double cosine =
                (right + down + sqrt(2)) / (2 * sqrt(1 + right * right + down * down));
            shade[(size_t)y * n_x + x] =
                isfinite(*at) && isfinite(cosine) ? (float)fmax(0, cosine) : NAN;
        }
}
