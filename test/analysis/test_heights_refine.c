/* The last smoothing of heights: what it keeps, what it averages, what it leaves out. */
#include "analysis/layers/denoise/heights.h"

#include "test/rig/surface_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_B = 40, N_J = 50, N = N_B * N_J };

struct maps {
    float truth[N], found[N], refined[N], other[N];
};

static struct maps *draw(double height, double width, double noise)
{
    const struct oct_surface_scene scene = {OCT_SURFACE_PIT, N_B, N_J, height, width, noise, 0, 11};
    struct maps *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    oct_surface_scene_draw(&scene, m->truth, m->found);
    memcpy(m->refined, m->truth, sizeof(m->truth));
    return m;
}

static void refine_alike(const float *found, double alike, double noise, float *refined)
{
    struct oct_error err = {0};
    if (oct_heights_refine(found, N_B, N_J, alike, noise, noise, refined, &err) != OCT_OK)
        fail_msg("%s", err.text);
}

static void refine(const float *found, double noise, double stray_noise, float *refined)
{
    struct oct_error err = {0};
    if (oct_heights_refine(found, N_B, N_J, 0, noise, stray_noise, refined, &err) != OCT_OK)
        fail_msg("%s", err.text);
}

/* Where nothing bends, the widest of Gaussians counts: little noise is left. */
static void a_plane_loses_its_noise(void **state)
{
    struct maps *m = draw(0, 20, 1);
    refine(m->found, 1, 1, m->refined);
    const double rms = oct_surface_rms(m->refined, m->truth, N);
    printf("# a plane, noise 1: %.3f\n", rms);
    assert_true(rms < 0.12);
    free(m);
}

/* A tip of 2 A-lines is hardly bent, though the plane around it is smoothed widely. */
static void a_tip_stays(void **state)
{
    struct maps *m = draw(20, 2, 0.3);
    float most = 0, tip = 0;
    refine(m->found, 0.3, 0.3, m->refined);
    for (int i = 0; i < N; i++) {
        most = fmaxf(most, m->truth[i]);
        tip = fmaxf(tip, m->refined[i]);
    }
    const size_t plane = (size_t)8 * N_J;
    const double rms = oct_surface_rms(m->refined, m->truth, plane);
    printf("# a tip, noise 0.3: %.2f of %.2f; around it %.3f\n", (double)tip, (double)most, rms);
    assert_true(fabsf(most - tip) < 1);
    assert_true(rms < 0.06);
    free(m);
}

/* Strays and missing heights are those of the surface, and spoil nothing around them. */
static void strays_are_left_out(void **state)
{
    struct maps *m = draw(10, 12, 0.5);
    memcpy(m->other, m->truth, sizeof(m->truth));
    refine(m->found, 0.5, 0.5, m->other);
    for (int i = 3; i < N; i += 17)
        m->found[i] = i % 2 ? NAN : m->found[i] + 1000;
    refine(m->found, 0.5, 0.5, m->refined);
    const double without = oct_surface_rms(m->other, m->truth, N);
    const double with = oct_surface_rms(m->refined, m->truth, N);
    printf("# strays: %.4f without, %.4f with\n", without, with);
    assert_true(with < 1.05 * without);
    free(m);
}

static void mirrored_heights_give_a_mirrored_surface(void **state)
{
    struct maps *m = draw(15, 6, 1);
    float *found = calloc(N, sizeof(*found));
    assert_non_null(found);
    for (int i = 0; i < N; i++) {
        const int at = (N_B - 1 - i / N_J) * N_J + N_J - 1 - i % N_J;
        found[at] = m->found[i];
        m->other[at] = m->truth[i];
    }
    refine(m->found, 1, 1, m->refined);
    refine(found, 1, 1, m->other);
    for (int i = 0; i < N; i++) {
        const int at = (N_B - 1 - i / N_J) * N_J + N_J - 1 - i % N_J;
        assert_true(fabsf(m->other[at] - m->refined[i]) < 1e-3f);
    }
    free(found);
    free(m);
}

/* Noise of 0 changes nothing; noise whose powers are too small for a float is no harm. */
static void little_noise_changes_little(void **state)
{
    struct maps *m = draw(30, 5, 0.5);
    refine(m->found, 0, 0.5, m->refined);
    assert_memory_equal(m->refined, m->truth, sizeof(m->truth));
    memcpy(m->refined, m->found, sizeof(m->found));
    refine(m->found, 1e-3, 0.5, m->refined);
    assert_true(oct_surface_rms(m->refined, m->found, N) < 1e-3);
    memcpy(m->refined, m->found, sizeof(m->found));
    for (int i = 0; i < N; i++)
        m->found[i] = m->refined[i] = 60;
    refine(m->found, 1e-25, 1e-25, m->refined);
    for (int i = 0; i < N; i++)
        assert_true(fabsf(m->refined[i] - 60) < 1e-3f);
    free(m);
}

/* ---- noise that is alike along the lines ---- */

#define ALIKE 3.0

/* found = truth and noise of that standard deviation, white noise smoothed by ALIKE A-lines. */
static void add_alike(struct maps *m, double noise)
{
    enum { FAR = 12 };
    const struct oct_surface_scene flat = {OCT_SURFACE_PIT, N_B, N_J + 2 * FAR, 0, 20, 1, 0, 12};
    static float level[N_B * (N_J + 2 * FAR)], white[N_B * (N_J + 2 * FAR)];
    double sum2 = 0;
    oct_surface_scene_draw(&flat, level, white);
    for (int k = -FAR; k <= FAR; k++)
        sum2 += exp(-k * k / (ALIKE * ALIKE));
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int k = -FAR; k <= FAR; k++) {
            const int at = i / N_J * (N_J + 2 * FAR) + i % N_J + FAR + k;
            sum += exp(-0.5 * k * k / (ALIKE * ALIKE)) * (double)(white[at] - level[at]);
        }
        m->found[i] = m->truth[i] + (float)(noise * sum / sqrt(sum2));
    }
}

/* Taken for white it would look like the surface. */
static void noise_alike_along_the_lines_goes_across_them(void **state)
{
    struct maps *m = draw(12, 14, 0);
    add_alike(m, 1);
    const double noise = oct_heights_noise(m->found, N_B, N_J, ALIKE);
    const double as_white = oct_heights_noise(m->found, N_B, N_J, 0);
    memcpy(m->other, m->found, sizeof(m->found));
    memcpy(m->refined, m->found, sizeof(m->found));
    refine(m->found, as_white, as_white, m->other);
    refine_alike(m->found, ALIKE, noise, m->refined);
    const double before = oct_surface_rms(m->found, m->truth, N);
    const double white = oct_surface_rms(m->other, m->truth, N);
    const double after = oct_surface_rms(m->refined, m->truth, N);
    printf("# alike: noise said %.2f, as white %.2f; rms %.3f, %.3f as white, %.3f\n", noise,
           as_white, before, white, after);
    assert_true(fabs(noise - before) < 0.15);
    assert_true(after < 0.6 * before && after < 0.75 * white);
    free(m);
}

/* B-scans far apart: what the pilot has lost across them the heights have. */
static void what_the_pilot_has_lost_comes_back(void **state)
{
    struct maps *m = draw(0, 14, 0);
    for (int i = 0; i < N; i++) {
        m->refined[i] = m->truth[i]; /* without the waves */
        m->truth[i] += 2 * sinf((float)(i / N_J)) + sinf((float)(i % N_J) / 9);
    }
    add_alike(m, 0.3);
    const double noise = oct_heights_noise(m->found, N_B, N_J, ALIKE);
    const double pilot = oct_surface_rms(m->refined, m->truth, N);
    refine_alike(m->found, ALIKE, noise, m->refined);
    const double rms = oct_surface_rms(m->refined, m->truth, N);
    printf("# waves: noise said %.2f; pilot %.3f, rms %.3f\n", noise, pilot, rms);
    assert_true(noise < 0.6 && pilot > 1 && rms < 0.35);
    free(m);
}

/* At the ends there is one neighbour: a slope makes no strays of what lies there. */
static void a_slope_across_bscans_keeps_its_ends(void **state)
{
    struct maps *m = draw(0, 14, 0);
    for (int i = 0; i < N; i++) {
        m->truth[i] += 4 * (float)(i / N_J);
        m->refined[i] = m->truth[i] + (i < N_J || i >= N - N_J ? 2 : 0);
    }
    add_alike(m, 0.2);
    refine_alike(m->found, ALIKE, 0.2, m->refined);
    const double first = oct_surface_rms(m->refined, m->truth, N_J);
    const double last = oct_surface_rms(m->refined + N - N_J, m->truth + N - N_J, N_J);
    printf("# a slope: rms %.3f in the first B-scan, %.3f in the last\n", first, last);
    assert_true(first < 0.6 && last < 0.6);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plane_loses_its_noise),
        cmocka_unit_test(a_tip_stays),
        cmocka_unit_test(strays_are_left_out),
        cmocka_unit_test(mirrored_heights_give_a_mirrored_surface),
        cmocka_unit_test(little_noise_changes_little),
        cmocka_unit_test(noise_alike_along_the_lines_goes_across_them),
        cmocka_unit_test(what_the_pilot_has_lost_comes_back),
        cmocka_unit_test(a_slope_across_bscans_keeps_its_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
