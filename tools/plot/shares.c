#include "tools/plot/plot.h"

#include "numeric/order.h"

#include <math.h>
#include <stdlib.h>

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
    oct_floats_sort(kept, n_kept);
    for (unsigned i = 0; i < n_shares; i++)
        at[i] = n_kept > 0 ? (double)kept[llround(shares[i] * (double)(n_kept - 1))] : NAN;
    free(kept);
    return OCT_OK;
}
