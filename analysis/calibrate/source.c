#include "analysis/calibrate/source.h"

#include <math.h>
#include <stddef.h>

#define PI 3.14159265358979323846
#define STEP_PX 0.125
#define LEAST_STEP_PX 1e-4 /* of a top */
#define HALVINGS 30

/* im NULL: 0. */
struct light {
    const double *re, *im, *place;
    uint32_t n, p2;
};

static double power_at(const struct light *light, double d)
{
    const uint32_t n = light->n;
    const double *place = light->place;
    double re = 0, im = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t low = i > 0 ? i - 1 : 0, high = i + 1 < n ? i + 1 : n - 1;
        const double w = (place[high] - place[low]) / (high - low);
        const double turn = 2 * PI * d * (place[i] - place[0]) / light->p2;
        const double x = w * light->re[i], y = light->im ? w * light->im[i] : 0;
        re += x * cos(turn) + y * sin(turn);
        im += y * cos(turn) - x * sin(turn);
    }
    return re * re + im * im;
}

/* Where power falls to `half`, from `at` in steps of this sign. */
static double edge(const struct light *light, double at, double half, double step)
{
    double inside = at, outside = at + step;
    while (power_at(light, outside) > half) {
        inside = outside;
        outside += step;
        if (fabs(outside - at) > light->p2)
            return NAN;
    }
    for (unsigned i = 0; i < HALVINGS; i++) {
        const double middle = 0.5 * (inside + outside);
        if (power_at(light, middle) > half)
            inside = middle;
        else
            outside = middle;
    }
    return 0.5 * (inside + outside);
}

double oct_source_psf(const double *amplitude, const double *place, uint32_t n, uint32_t p2,
                      double d)
{
    const struct light light = {amplitude, NULL, place, n, p2};
    return power_at(&light, d) / power_at(&light, 0);
}

double oct_source_limit_px(const double *amplitude, const double *place, uint32_t n, uint32_t p2)
{
    const struct light light = {amplitude, NULL, place, n, p2};
    const double half = n > 1 ? 0.5 * power_at(&light, 0) : 0;
    return half > 0 ? 2 * edge(&light, 0, half, STEP_PX) : NAN; /* P is even in d */
}

double oct_source_peak_px(const double *re, const double *im, const double *place, uint32_t n,
                          uint32_t p2, double near_px, double *at_px)
{
    const struct light light = {re, im, place, n, p2};
    double top = 0;
    *at_px = NAN;
    if (n < 2)
        return NAN;
    for (double step = STEP_PX, from = near_px - 2, to = near_px + 2; step > LEAST_STEP_PX;
         step /= 8) {
        for (double d = from; d <= to; d += step) {
            const double power = power_at(&light, d);
            if (power > top) {
                top = power;
                *at_px = d;
            }
        }
        from = *at_px - step;
        to = *at_px + step;
    }
    return top > 0
               ? edge(&light, *at_px, top / 2, STEP_PX) - edge(&light, *at_px, top / 2, -STEP_PX)
               : NAN;
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
