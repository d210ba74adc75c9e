/* Lambert's shading against planes, whose normal is known; the files of figures. */
#include "plot/plot.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

TEST(planes_have_the_cosine_of_their_normal)
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

TEST(gaps_stay_gaps_and_their_sides_are_drawn)
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

/* By the ending of the name, also of one that is published with others. */
TEST(files_are_of_the_kind_that_their_names_say)
{
    static const struct {
        const char *name, *begins;
    } cases[] = {{"a.png", "\x89PNG"},  {"a.svg", "<?xml"},        {"a.pdf", "%PDF"},
                 {"a.name", "\x89PNG"}, {"b.svg.all.77", "<?xml"}, {"svg", "\x89PNG"}};
    static const double x[3] = {0, 1, 2}, y[3] = {1, NAN, 4};
    const struct oct_plot_series series = {x, y, 3, "three", OCT_PLOT_POINTS};
    const struct oct_plot_lines plot = {.title = "t", .series = &series, .n_series = 1};
    char folder[] = "/tmp/octd-plot-XXXXXX", path[64], begins[6] = "";
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, cases[i].name);
        must(oct_plot_write_lines(path, false, &plot, &failure));
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        assert_int_equal(fread(begins, 1, 5, file), 5);
        assert_memory_equal(begins, cases[i].begins, strlen(cases[i].begins));
        fclose(file);
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}
