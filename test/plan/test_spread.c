/* The tables of nufft: gridded, transformed by direct sums and divided by the kernel's transform,
 * they give the exact non-uniform sum within what the kernel promises. */
#include "pipeline/plan/plan.h"
#include "test/rig/tap.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define PI 3.14159265358979323846
#define P2 512u
#define GRID (P2 / 2)

/* Places from `first` on over `span` steps, more and more apart by `bend`. */
static void make_places(double *q, uint32_t n, double first, double span, double bend)
{
    for (uint32_t i = 0; i < n; i++) {
        double t = (double)i / (n - 1);
        q[i] = first + span * (t + bend * t * (t - 1));
    }
}

static double sample(uint32_t i, uint32_t n, double place, int kind)
{
    if (kind == 0) /* a reflector */
        return exp(-pow((i - n / 2.0) / (n / 4.0), 2)) * cos(2 * PI * 77.3 * place / P2 + 1);
    if (kind == 1) /* one beyond the depths wanted */
        return cos(2 * PI * (P2 / 4 + 9.4) * place / P2);
    return sin(i * 12.9898 + cos(i * 78.233) * 43.7); /* noise */
}

static double complex turn(double d, double place, double period)
{
    return cexp(-2 * PI * I * d * place / period);
}

/* The exact sum's largest amplitude, and in error the largest difference of amplitudes. */
static double compare(const struct oct_spread *s, const double *q, const double *phase,
                      const double *x, uint32_t n, double *error)
{
    double largest = 0;
    *error = 0;
    for (uint32_t d = 0; d < P2 / 2; d++) {
        double complex exact = 0, gridded = 0;
        for (uint32_t i = 0; i < n; i++)
            exact += (phase[2 * i] + I * phase[2 * i + 1]) * x[i] * turn(d, q[i], P2);
        largest = fmax(largest, cabs(exact));
        for (uint32_t g = 0; d < P2 / 4 && g < GRID; g++)
            for (uint32_t t = s->at[g]; t < s->at[g + 1]; t++) {
                uint32_t i = s->first[g] + (t - s->at[g]);
                assert_true(g < s->n_used && i < n + s->n_wrap);
                gridded += (s->re[t] + I * s->im[t]) * x[i % n] * turn(d, g, GRID);
            }
        if (d < P2 / 4)
            *error = fmax(*error, fabs(sqrt(s->gain[d]) * cabs(gridded) - cabs(exact)));
    }
    return largest;
}

static void check(uint32_t n, double first, double span, double bend, bool wraps)
{
    static const double accuracies[] = {-40, -60, -80, -100, -110};
    double *q = malloc(n * sizeof(*q)), *x = malloc(n * sizeof(*x));
    double *phase = malloc(2 * n * sizeof(*phase));
    assert_true(q && x && phase);
    make_places(q, n, first, span, bend);
    for (uint32_t i = 0; i < n; i++) { /* a dispersion of 20 rad */
        double t = 2.0 * i / n - 1;
        phase[2 * i] = cos(20 * t * t);
        phase[2 * i + 1] = -sin(20 * t * t);
    }
    for (size_t a = 0; a < sizeof(accuracies) / sizeof(accuracies[0]); a++) {
        struct oct_spread s;
        assert_int_equal(oct_spread_init(&s, q, phase, n, P2, oct_spread_taps(accuracies[a])),
                         OCT_OK);
        assert_true(wraps == (s.n_wrap > 0));
        for (int kind = 0; kind < 3; kind++) {
            double error;
            for (uint32_t i = 0; i < n; i++)
                x[i] = sample(i, n, q[i], kind);
            double largest = compare(&s, q, phase, x, n, &error);
            if (20 * log10(error / largest) > accuracies[a])
                fail_msg("%u samples, kind %d: %.1f dB of %g", n, kind, 20 * log10(error / largest),
                         accuracies[a]);
        }
        oct_spread_finish(&s);
    }
    free(q);
    free(x);
    free(phase);
}

TEST(padded_lines_are_exact)
{
    check(100, 150, 210, 0, false);
    check(100, 150, 210, 0.3, false);
    check(100, 150, 210, -0.3, false);
}

TEST(lines_that_fill_the_grid_are_exact)
{
    check(256, 0, P2 - 2, 0, true);
    check(255, 1, P2 - 3, 0.2, true);
    check(256, 0, P2 - 1, -0.2, true);
}

/* Many samples meet at one end, and few or none at the other. */
TEST(steep_axes_are_exact)
{
    check(100, 20, 400, 0.98, false);
    check(256, 0, P2 - 1, 0.99, true);
    check(4, 100, 300, 0.5, false);
}

TEST(a_better_accuracy_takes_more_taps)
{
    assert_int_equal(oct_spread_taps(-40), OCT_SPREAD_LEAST_TAPS);
    assert_int_equal(oct_spread_taps(-70), 6);
    assert_int_equal(oct_spread_taps(OCT_STANDARD_ACCURACY_DB), OCT_SPREAD_MOST_TAPS);
    assert_int_equal(oct_spread_taps(-110), OCT_SPREAD_MOST_TAPS);
}

TEST(numbers_beyond_floats_are_refused)
{
    const double q[] = {10, 12, 14, 16}, phase[] = {1, 0, 1e300, 0, 1, 0, 1, 0};
    struct oct_spread s;
    assert_int_equal(oct_spread_init(&s, q, phase, 4, P2, 6), OCT_E_CONFIG);
    oct_spread_finish(&s);
}
