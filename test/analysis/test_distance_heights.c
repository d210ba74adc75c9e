/* Distances to the triangles of a height map: against each triangle by its definition, in double
 * precision. */
#include "analysis/layers/denoise/distance.h"

#include "kernels/device/workers.h"
#include "test/rig/surface_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_B = 9, N_J = 12, N_D = 60, N = N_B * N_J * N_D };
static const uint32_t box[3] = {N_B, N_J, N_D};

typedef double point[3];

static double dot(const point a, const point b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void from_to(const point a, const point b, point c)
{
    for (unsigned i = 0; i < 3; i++)
        c[i] = b[i] - a[i];
}

static double to_segment(const point x, const point a, const point b)
{
    point ab, ax;
    from_to(a, b, ab);
    from_to(a, x, ax);
    const double t = fmax(0, fmin(1, dot(ax, ab) / dot(ab, ab)));
    double sum = 0;
    for (unsigned i = 0; i < 3; i++)
        sum += pow(ax[i] - t * ab[i], 2);
    return sqrt(sum);
}

/* By barycentric coordinates of the foot. */
static double to_triangle(const point x, const point a, const point b, const point c)
{
    point u, v, w;
    from_to(a, b, u);
    from_to(a, c, v);
    from_to(a, x, w);
    const double uu = dot(u, u), uv = dot(u, v), vv = dot(v, v), wu = dot(w, u), wv = dot(w, v);
    const double area = uu * vv - uv * uv;
    const double s = (vv * wu - uv * wv) / area, t = (uu * wv - uv * wu) / area;
    if (s >= 0 && t >= 0 && s + t <= 1) {
        double sum = 0;
        for (unsigned i = 0; i < 3; i++)
            sum += pow(w[i] - s * u[i] - t * v[i], 2);
        return sqrt(sum);
    }
    return fmin(to_segment(x, a, b), fmin(to_segment(x, b, c), to_segment(x, a, c)));
}

static double height(const float *heights, int b, int j)
{
    b = b < 0 ? 0 : b >= N_B ? N_B - 1 : b;
    j = j < 0 ? 0 : j >= N_J ? N_J - 1 : j;
    return (double)heights[b * N_J + j];
}

static double distance(const float *heights, int b, int j, int d, int far)
{
    const point x = {b, j, d};
    double least = INFINITY;
    for (int k = b - far; k < b + far; k++)
        for (int l = j - far; l < j + far; l++) {
            const point p = {k, l, height(heights, k, l)};
            const point q = {k + 1, l + 1, height(heights, k + 1, l + 1)};
            const point r = {k + 1, l, height(heights, k + 1, l)};
            const point s = {k, l + 1, height(heights, k, l + 1)};
            least = fmin(least, fmin(to_triangle(x, p, r, q), to_triangle(x, p, s, q)));
        }
    return height(heights, b, j) > d ? least : -least;
}

static void draw(float *heights, double noise, double outliers, uint32_t seed)
{
    const struct oct_surface_scene scene = {.kind = OCT_SURFACE_DRUSEN,
                                            .n_b = N_B,
                                            .n_j = N_J,
                                            .height = 9,
                                            .width = 3,
                                            .noise = noise,
                                            .outliers = outliers,
                                            .seed = seed};
    oct_surface_scene_draw(&scene, NULL, heights);
    for (unsigned i = 0; i < N_B * N_J; i++)
        heights[i] -= 30;
}

static void distances_are_those_to_the_nearest_triangle(void **state)
{
    static const struct {
        double noise, outliers, reach;
    } cases[] = {{0, 0, 6}, {0.5, 0, 6}, {2, 0.05, 6.5}, {5, 0.2, 9}, {1, 0.05, 0.7}};
    float heights[N_B * N_J], *phi = malloc(N * sizeof(*phi));
    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct oct_error err;
        double largest = 0;
        const double reach = cases[i].reach;
        draw(heights, cases[i].noise, cases[i].outliers, i);
        assert_int_equal(oct_distance_of_heights(heights, box, reach, NULL, phi, &err), OCT_OK);
        for (int b = 0; b < N_B; b++)
            for (int j = 0; j < N_J; j++)
                for (int d = 0; d < N_D; d++) {
                    const double exact = distance(heights, b, j, d, 10);
                    const double limited = fmax(-reach, fmin(reach, exact));
                    const double found = (double)phi[(b * N_J + j) * N_D + d];
                    largest = fmax(largest, fabs(found - limited));
                }
        printf("# noise %g, outliers %g, reach %g: differs by %.2g\n", cases[i].noise,
               cases[i].outliers, reach, largest);
        assert_true(largest <= 1e-4);
    }
    free(phi);
}

static void instruction_sets_and_threads_give_the_same(void **state)
{
    static const char *const sets[] = {"plain", "avx2", "avx512"};
    float heights[N_B * N_J], *phi[2] = {malloc(N * sizeof(float)), malloc(N * sizeof(float))};
    struct oct_error err;
    struct oct_workers *workers;
    draw(heights, 1.5, 0.1, 3);
    assert_int_equal(oct_distance_of_heights(heights, box, 6, NULL, phi[0], &err), OCT_OK);
    assert_int_equal(oct_workers_create(&workers, 2, &err), OCT_OK);
    assert_int_equal(oct_distance_of_heights(heights, box, 6, workers, phi[1], &err), OCT_OK);
    assert_memory_equal(phi[0], phi[1], N * sizeof(float));
    oct_workers_destroy(workers);
    /* The middle A-line alone, whose neighbours are all there. */
    const struct oct_distance_map map = {
        .heights = heights + 4 * N_J, .row = N_J, .far = 3, .reach = 3, .n_j = 1, .n_d = N_D};
    struct oct_distance_map middle = map;
    middle.heights += 5;
    for (unsigned i = 0; i < 3; i++) {
        const struct oct_distance_columns *columns = oct_distance_columns_select(sets[i]);
        if (!columns)
            continue;
        columns->run(&middle, 0, phi[1]);
        for (unsigned d = 0; d < N_D; d++) {
            const float near = phi[0][(4 * N_J + 5) * N_D + d];
            assert_true(fabsf(phi[1][d] - fmaxf(-3, fminf(3, near))) <= 1e-5f);
        }
    }
    free(phi[0]);
    free(phi[1]);
}

static void heights_beyond_the_box_and_bad_ones(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float heights[N_B * N_J], *phi = malloc(N * sizeof(*phi));
    struct oct_error err;
    for (int sign = -1; sign <= 1; sign += 2) {
        for (unsigned i = 0; i < N_B * N_J; i++)
            heights[i] = (float)sign * 1e9f;
        assert_int_equal(oct_distance_of_heights(heights, box, 6, NULL, phi, &err), OCT_OK);
        for (unsigned i = 0; i < N; i++)
            assert_true(phi[i] == (float)sign * 6);
    }
    for (unsigned i = 0; i < 3; i++) {
        heights[7] = bad[i];
        assert_int_equal(oct_distance_of_heights(heights, box, 6, NULL, phi, &err), OCT_E_ARG);
    }
    heights[7] = 0;
    assert_int_equal(oct_distance_of_heights(heights, box, 0, NULL, phi, &err), OCT_E_ARG);
    assert_int_equal(oct_distance_of_heights(heights, box, NAN, NULL, phi, &err), OCT_E_ARG);
    assert_int_equal(oct_distance_of_heights(heights, box, 65, NULL, phi, &err), OCT_E_ARG);
    free(phi);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_are_those_to_the_nearest_triangle),
        cmocka_unit_test(instruction_sets_and_threads_give_the_same),
        cmocka_unit_test(heights_beyond_the_box_and_bad_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
