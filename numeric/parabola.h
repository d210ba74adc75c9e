/* The top of the parabola through three values that are one step apart:
 *
 *     bend = before - 2 middle + after,  top = (before - after) / (2 bend)
 *
 * in steps from the middle. The lowest place of a trough is the top of the negated values. Host and
 * device. */
#ifndef OCT_NUMERIC_PARABOLA_H
#define OCT_NUMERIC_PARABOLA_H

#ifdef __CUDACC__
#define OCT_PARABOLA_MATH static __host__ __device__ inline
#else
#define OCT_PARABOLA_MATH static inline
#endif

/* Within -0.5 .. 0.5, which holds by itself where the middle is the largest; 0 where there is no
 * top, and where a value is NaN. */
OCT_PARABOLA_MATH double oct_parabola_top(double before, double middle, double after)
{
    const double bend = before - 2 * middle + after;
    if (!(bend < 0))
        return 0;
    const double top = (before - after) / (2 * bend);
    return top < -0.5 ? -0.5 : top > 0.5 ? 0.5 : top;
}

#endif
