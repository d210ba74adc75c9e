#include "analysis/calibrate/source.h"

#include <math.h>

#define PI 3.14159265358979323846
#define STEP_PX 0.125
#define HALVINGS 30

static double power_at(const double *amplitude, const double *place, uint32_t n, uint32_t p2,
                       double d)
{
    double re = 0, im = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t low = i > 0 ? i - 1 : 0, high = i + 1 < n ? i + 1 : n - 1;
        const double a = amplitude[i] * (place[high] - place[low]) / (high - low);
        const double turn = 2 * PI * d * (place[i] - place[0]) / p2;
        re += a * cos(turn);
        im -= a * sin(turn);
    }
    return re * re + im * im;
}

double oct_source_psf(const double *amplitude, const double *place, uint32_t n, uint32_t p2,
                      double d)
{
    return power_at(amplitude, place, n, p2, d) / power_at(amplitude, place, n, p2, 0);
}

double oct_source_limit_px(const double *amplitude, const double *place, uint32_t n, uint32_t p2)
{
    const double half = 0.5 * power_at(amplitude, place, n, p2, 0);
    double inside = 0, outside = STEP_PX;
    if (!(half > 0) || n < 2)
        return NAN;
    while (power_at(amplitude, place, n, p2, outside) > half) {
        inside = outside;
        outside += STEP_PX;
        if (outside > p2)
            return NAN;
    }
    for (unsigned i = 0; i < HALVINGS; i++) {
        const double middle = 0.5 * (inside + outside);
        if (power_at(amplitude, place, n, p2, middle) > half)
            inside = middle;
        else
            outside = middle;
    }
    return inside + outside; /* P is even in d */
}

void oct_source_half(const double *values, uint32_t n, double *first, double *last)
{
    uint32_t from = 0, to = n - 1;
    double most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = fmax(most, values[i]);
    while (from < n && values[from] < most / 2)
        from++;
    while (to > from && values[to] < most / 2)
        to--;
    *first = from == 0 || from == n
                 ? NAN
                 : from - (values[from] - most / 2) / (values[from] - values[from - 1]);
    *last = to + 1 >= n ? NAN : to + (values[to] - most / 2) / (values[to] - values[to + 1]);
}
