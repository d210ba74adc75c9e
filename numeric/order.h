/* Order statistics of values in place. No value is NaN: a caller leaves NaN out before, as NaN has
 * no order. Infinite values are fine. Any thread.
 *
 *     rank        what is at values[rank] when the values ascend
 *     median      rank (n - 1) / 2 and n / 2, their mean: of an even number that of both middles
 *
 * Callers that take the upper of two middles, or no mean, sort and index themselves. */
#ifndef OCT_NUMERIC_ORDER_H
#define OCT_NUMERIC_ORDER_H

#include <stddef.h>

void oct_doubles_sort(double *values, size_t n); /* ascending; n may be 0, then values NULL */
void oct_floats_sort(float *values, size_t n);

/* NaN where n is 0. The values are sorted then. */
double oct_doubles_median(double *values, size_t n);
double oct_floats_median(float *values, size_t n); /* the mean is a double's */

/* The value of one rank, rank < n, in time of the order of n; the values change places. */
float oct_floats_select(float *values, size_t n, size_t rank);

#endif
