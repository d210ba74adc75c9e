#include "tools/plot/plot.h"

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
