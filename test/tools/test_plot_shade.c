/* Lambert's shading against planes, whose normal is known. */
#include "plot/plot.h"
#include "test/rig/tap.h"

#include <math.h>

enum { N = 9 };

static void fill_plane(float heights[N * N], double down, double right)
{
    for (int y = 0; y < N; y++)
        for (int x = 0; x < N; x++)
            heights[y * N + x] = (float)(3 + down * y + right * x);
}

static void assert_all(const float shade[N * N], double expected)
{
    for (int i = 0; i < N * N; i++)
        if (!(fabs((double)shade[i] - expected) < 1e-5))
            fail_msg("%d: %g is not %g", i, (double)shade[i], expected);
}

static void planes_have_the_cosine_of_their_normal(void **state)
{
    float heights[N * N], shade[N * N];
    fill_plane(heights, 0, 0);
    oct_plot_shade(heights, N, N, 5, 2, 1, shade);
    assert_all(shade, sqrt(0.5));
    /* Rises by 1 to the right and below: faces the light, (-1, -1, sqrt(2)) / 2, 45 degrees up. */
    fill_plane(heights, 5 * sqrt(0.5), 2 * sqrt(0.5));
    oct_plot_shade(heights, N, N, 5, 2, 1, shade);
    assert_all(shade, 1);
    /* Turned away by more than 45 degrees. */
    fill_plane(heights, -5, -2 * 3);
    oct_plot_shade(heights, N, N, 5, 2, 1, shade);
    assert_all(shade, 0);
    /* Along one axis, and by the gain as much steeper. */
    fill_plane(heights, 0, 2 * 0.1);
    oct_plot_shade(heights, N, N, 5, 2, 4, shade);
    assert_all(shade, (0.4 + sqrt(2)) / (2 * sqrt(1 + 0.16)));
    fill_plane(heights, 5 * -0.4, 0);
    oct_plot_shade(heights, N, N, 5, 2, 1, shade);
    assert_all(shade, (-0.4 + sqrt(2)) / (2 * sqrt(1 + 0.16)));
}

static void gaps_stay_gaps_and_their_sides_are_drawn(void **state)
{
    float heights[N * N], shade[N * N];
    fill_plane(heights, 0.3, 0.2);
    for (int y = 0; y < N; y++) {
        heights[y * N + 4] = NAN;
        heights[y * N + 6] = NAN; /* column 5 has no neighbour along x */
    }
    heights[2 * N + 1] = NAN; /* among known ones; the first one is left without a neighbour */
    oct_plot_shade(heights, N, N, 1, 1, 1, shade);
    const double expected = (0.5 + sqrt(2)) / (2 * sqrt(1 + 0.09 + 0.04));
    for (int i = 0; i < N * N; i++) {
        const int x = i % N;
        if ((x >= 4 && x <= 6) || i == 2 * N || i == 2 * N + 1)
            assert_true(isnan(shade[i]));
        else
            assert_true(fabs((double)shade[i] - expected) < 1e-5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planes_have_the_cosine_of_their_normal),
        cmocka_unit_test(gaps_stay_gaps_and_their_sides_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
