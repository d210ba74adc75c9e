#include "plot/plot.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

enum oct_err oct_plot_shares(const float *values, size_t n, const double *shares, unsigned n_shares,
                             double *at, struct oct_error *err)
{
    float *kept = malloc((n + 1) * sizeof(*kept));
    size_t n_kept = 0;
    if (!kept)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            kept[n_kept++] = values[i];
    qsort(kept, n_kept, sizeof(*kept), by_value);
    for (unsigned i = 0; i < n_shares; i++)
        at[i] = n_kept > 0 ? (double)kept[llround(shares[i] * (double)(n_kept - 1))] : NAN;
    free(kept);
    return OCT_OK;
}

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
