#include "analysis/cells/engine.h"

#include <math.h>

/* Pixels first .. last of one axis; false: fewer than two. */
static bool find_span(double at, double reach, uint32_t n, int32_t *first, int32_t *last)
{
    const double low = at - reach + 0.5, high = at + reach + 0.5, end = (double)n - 1;
    *first = *last = 0;
    if (!(low < end) || !(high >= 0)) /* NaN too */
        return false;
    *first = (int32_t)fmax(low, 0);
    *last = (int32_t)fmin(high, end);
    return *last > *first;
}

bool oct_cell_window_find(const struct oct_cells_params *params, uint32_t height, uint32_t width,
                          double x, double y, struct oct_cell_window *window)
{
    const bool has_width = find_span(x, 4 * params->radius, width, &window->u1, &window->u2);
    const bool has_height = find_span(y, 2 * params->radius, height, &window->v1, &window->v2);
    return has_width && has_height;
}

/* Between two sums that are rounded each for itself lie 8 R + 1 whole numbers and one more. */
uint32_t oct_cell_window_most(const struct oct_cells_params *params)
{
    return ((uint32_t)ceil(8 * params->radius) + 2) * ((uint32_t)ceil(4 * params->radius) + 2);
}
