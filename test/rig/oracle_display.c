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

/* The values of lines that came, sorted. Returns how many, 0 when there is no memory: where no line
 * came, the one value that all pixels have. */
static size_t sort_values(const struct oct_oracle_values *bscan, bool log, double **sorted)
{
    size_t n = 0, depth = bscan->depth;
    *sorted = malloc(bscan->n_lines * depth * sizeof(double));
    if (!*sorted)
        return 0;
    for (size_t j = 0; j < bscan->n_lines; j++)
        if (bscan->line_valid[j]) {
            memcpy(*sorted + n, bscan->values + j * depth, depth * sizeof(double));
            n += depth;
        }
    if (n == 0)
        (*sorted)[n++] = log ? oct_oracle_db(0) : 0;
    qsort(*sorted, n, sizeof(double), compare_values);
    return n;
}

/* A B-scan of which nothing is left changes no limits, and no volume begins with it. */
static void smooth(const struct oct_oracle_range *range, const struct oct_oracle_values *bscan,
                   bool has_light, struct oct_oracle_memory *memory, double *lo, double *hi)
{
    bool follows = memory->begun && memory->acquisition == bscan->acquisition &&
                   memory->volume == bscan->volume;
    if (!follows && !has_light)
        return;
    if (!follows)
        *memory = (struct oct_oracle_memory){true, bscan->acquisition, bscan->volume, *lo, *hi};
    else if (has_light) {
        memory->lo += (*lo - memory->lo) / (1 + range->smoothing_bscans);
        memory->hi += (*hi - memory->hi) / (1 + range->smoothing_bscans);
    }
    *lo = memory->lo;
    *hi = memory->hi;
}

bool oct_oracle_limits(const struct oct_oracle_range *range, const struct oct_oracle_values *bscan,
                       struct oct_oracle_memory *memory, double *lo, double *hi)
{
    if (range->mode == OCT_ORACLE_MANUAL) {
        *lo = range->lo;
        *hi = range->hi;
        return true;
    }
    double *sorted;
    size_t n = sort_values(bscan, range->log, &sorted);
    if (n == 0)
        return false;
    bool is_auto = range->mode == OCT_ORACLE_AUTO;
    *lo = is_auto ? sorted[0] : percentile(sorted, n, range->percentile_lo);
    *hi = is_auto ? sorted[n - 1] : percentile(sorted, n, range->percentile_hi);
    if (!is_auto)
        smooth(range, bscan, sorted[n - 1] > (range->log ? oct_oracle_db(0) : 0), memory, lo, hi);
    free(sorted);
    return true;
}

double oct_oracle_pixel(double value, double lo, double hi)
{
    if (!(hi > lo))
        return 0;
    return fmin(fmax((value - lo) / (hi - lo) * 255, 0), 255);
}
