#include "test/rig/oracle_window.h"

#include <math.h>

static const double two_pi = 6.283185307179586476925286766559;

double oct_oracle_slope(const double *place, size_t n, size_t i)
{
    size_t last = n - 1;
    if (i == 0)
        return place[1] - place[0];
    if (i == last)
        return place[last] - place[last - 1];
    return (place[i + 1] - place[i - 1]) / 2;
}

/* The window's shape at place q. */
static double window_shape(const struct oct_oracle_setup *setup, const double *place, double q)
{
    double middle = (place[0] + place[setup->n_samples - 1]) / 2;
    double half = (place[setup->n_samples - 1] - place[0]) / 2;
    double turn = two_pi / 2 * (q - middle) / half;
    double of_span = (q - middle) / (2 * half);
    switch (setup->window) {
    case OCT_ORACLE_HANN:
        return (1 + cos(turn)) / 2;
    case OCT_ORACLE_HAMMING:
        return 0.54 + 0.46 * cos(turn);
    case OCT_ORACLE_BLACKMAN:
        return 0.42 + 0.5 * cos(turn) + 0.08 * cos(2 * turn);
    case OCT_ORACLE_GAUSS:
        return exp(-4 * log(2) * pow(of_span / setup->window_width, 2));
    case OCT_ORACLE_NO_WINDOW:
        break;
    }
    return 1;
}

/* The source at sample i: the background, smoothed. */
static double source_at(const struct oct_oracle_setup *setup, size_t i)
{
    double sum = 0, weights = 0, sigma = (double)setup->n_samples / 64;
    if (!setup->background)
        return 1;
    for (size_t k = 0; k < setup->n_samples; k++) {
        double away = ((double)k - (double)i) / sigma;
        sum += setup->background[k] * exp(-away * away / 2);
        weights += exp(-away * away / 2);
    }
    return fmax(sum / weights, 0);
}

bool oct_oracle_has_window(const struct oct_oracle_setup *setup)
{
    return setup->window != OCT_ORACLE_NO_WINDOW || setup->flatten;
}

void oct_oracle_fill_window(const struct oct_oracle_setup *setup, const double *place, double *flat)
{
    size_t n = setup->n_samples;
    double most = 0, without = 0, with = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, flat[i] = source_at(setup, i));
    for (size_t i = 0; i < n; i++) {
        double source = flat[i], light = source * fabs(oct_oracle_slope(place, n, i));
        flat[i] = 1;
        if (setup->flatten)
            flat[i] = source * most / (source * source + most * most / 400);
        without += light;
        with += light * flat[i] * window_shape(setup, place, place[i]);
    }
    for (size_t i = 0; i < n; i++)
        flat[i] *= without / with;
}

double oct_oracle_window_at(const struct oct_oracle_setup *setup, const double *place,
                            const double *flat, double q)
{
    size_t last = setup->n_samples - 1, i = 0;
    double edge = 5e-10 * (place[last] - place[0]);
    if (!oct_oracle_has_window(setup))
        return 1;
    if (q < place[0] - edge || q > place[last] + edge) /* an end on a step is inside */
        return 0;
    while (i + 1 < last && place[i + 1] < q)
        i++;
    double part = (q - place[i]) / (place[i + 1] - place[i]);
    return ((1 - part) * flat[i] + part * flat[i + 1]) * window_shape(setup, place, q);
}
