/* The oracle's steps 8 and 9: decibels, limits and pixels. */
#include "test/rig/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double oct_oracle_db(double intensity)
{
    return 10 * log10(fmax(intensity, 1e-12));
}

static int compare_values(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value at rank p/100 * (n-1), linear between ranks. */
static double percentile(const double *sorted, size_t n, double percent)
{
    double rank = percent / 100 * (double)(n - 1);
    size_t below = (size_t)floor(rank);
    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (rank - (double)below) * (sorted[below + 1] - sorted[below]);
}

bool oct_oracle_limits(const struct oct_oracle_range *range, const double *values, size_t n,
                       uint32_t acquisition, uint64_t volume, struct oct_oracle_memory *memory,
                       double *lo, double *hi)
{
    if (range->mode == OCT_ORACLE_MANUAL) {
        *lo = range->lo;
        *hi = range->hi;
        return true;
    }
    double *sorted = malloc(n * sizeof(double));
    if (!sorted)
        return false;
    memcpy(sorted, values, n * sizeof(double));
    qsort(sorted, n, sizeof(double), compare_values);
    if (range->mode == OCT_ORACLE_AUTO) {
        *lo = sorted[0];
        *hi = sorted[n - 1];
    } else {
        double own_lo = percentile(sorted, n, range->percentile_lo);
        double own_hi = percentile(sorted, n, range->percentile_hi);
        if (memory->begun && memory->acquisition == acquisition && memory->volume == volume) {
            memory->lo += (own_lo - memory->lo) / (1 + range->smoothing_bscans);
            memory->hi += (own_hi - memory->hi) / (1 + range->smoothing_bscans);
        } else {
            *memory = (struct oct_oracle_memory){true, acquisition, volume, own_lo, own_hi};
        }
        *lo = memory->lo;
        *hi = memory->hi;
    }
    free(sorted);
    return true;
}

double oct_oracle_pixel(double value, double lo, double hi)
{
    if (!(hi > lo))
        return 0;
    return fmin(fmax((value - lo) / (hi - lo) * 255, 0), 255);
}
