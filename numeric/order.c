#include "numeric/order.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void oct_doubles_sort(double *values, size_t n)
{
    if (n > 0)
        qsort(values, n, sizeof(*values), compare_doubles);
}

void oct_floats_sort(float *values, size_t n)
{
    if (n > 0)
        qsort(values, n, sizeof(*values), compare_floats);
}

double oct_doubles_median(double *values, size_t n)
{
    oct_doubles_sort(values, n);
    return n > 0 ? (values[(n - 1) / 2] + values[n / 2]) / 2 : NAN;
}

double oct_floats_median(float *values, size_t n)
{
    oct_floats_sort(values, n);
    return n > 0 ? ((double)values[(n - 1) / 2] + (double)values[n / 2]) / 2 : NAN;
}

/* Hoare 1961, FIND: each pass keeps the part that holds the rank, on one side of a pivot. */
float oct_floats_select(float *values, size_t n, size_t rank)
{
    size_t low = 0, high = n - 1;
    while (low < high) {
        const float pivot = values[low + (high - low) / 2];
        size_t i = low, k = high;
        for (;;) {
            while (values[i] < pivot)
                i++;
            while (values[k] > pivot)
                k--;
            if (i >= k)
                break;
            const float swap = values[i];
            values[i++] = values[k];
            values[k--] = swap;
        }
        if (rank <= k)
            high = k;
        else
            low = k + 1;
    }
    return values[low];
}
