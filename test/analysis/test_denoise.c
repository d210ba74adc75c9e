/* Heights denoised as a level set: surfaces that are known, with noise and stray heights, against
 * the best Gaussian and the best median; gaps, shifts, crossings. */
#include "analysis/layers/denoise/denoise.h"

#include "analysis/layers/denoise/heights.h"
#include "test/rig/surface_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 96, N = SIDE * SIDE };

struct maps {
    float truth[N], noisy[N], found[N], other[N], between[N];
};

static struct maps *open_maps(void)
{
    struct maps *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    return m;
}

static void denoise_with(float *heights, const double *shift_px, double strength,
                         struct oct_denoise_report *report)
{
    struct oct_error err = {0};
    struct oct_denoise_setup setup = {
        .n_bscans = SIDE, .n_lines = SIDE, .backend = "cpu", .strength = strength};
    oct_levelset_params_default(&setup.params, OCT_LEVELSET_PROFILE_LOCAL);
    if (oct_denoise_heights(&setup, heights, shift_px, report, &err) != OCT_OK)
        fail_msg("%s", err.text);
}

/* ---- what others reach ---- */

static float at(const float *map, int b, int j)
{
    b = b < 0 ? 0 : b >= SIDE ? SIDE - 1 : b;
    j = j < 0 ? 0 : j >= SIDE ? SIDE - 1 : j;
    return map[b * SIDE + j];
}

static void smooth(const float *from, float *to, double sigma, int db, int dj)
{
    const int far = (int)ceil(4 * sigma);
    for (int b = 0; b < SIDE; b++)
        for (int j = 0; j < SIDE; j++) {
            double sum = 0, weights = 0;
            for (int k = -far; k <= far; k++) {
                const double w = exp(-0.5 * k * k / (sigma * sigma));
                sum += w * (double)at(from, b + k * db, j + k * dj);
                weights += w;
            }
            to[b * SIDE + j] = (float)(sum / weights);
        }
}

static double best_gaussian(struct maps *m)
{
    double best = INFINITY;
    for (double sigma = 0.6; sigma < 6; sigma *= 1.2) {
        smooth(m->noisy, m->between, sigma, 0, 1);
        smooth(m->between, m->other, sigma, 1, 0);
        best = fmin(best, oct_surface_rms(m->other, m->truth, N));
    }
    return best;
}

static int ascending(const void *a, const void *b)
{
    const float p = *(const float *)a, q = *(const float *)b;
    return (p > q) - (p < q);
}

static double best_median(struct maps *m)
{
    double best = INFINITY;
    for (int far = 1; far <= 4; far++) {
        for (int i = 0; i < N; i++) {
            float values[81];
            size_t n = 0;
            for (int b = -far; b <= far; b++)
                for (int j = -far; j <= far; j++)
                    values[n++] = at(m->noisy, i / SIDE + b, i % SIDE + j);
            qsort(values, n, sizeof(*values), ascending);
            m->other[i] = values[n / 2];
        }
        best = fmin(best, oct_surface_rms(m->other, m->truth, N));
    }
    return best;
}

/* ---- quality ---- */

static void judge(const struct oct_surface_scene *scene, double most)
{
    static const char *const names[] = {"sheet", "pit", "drusen"};
    struct maps *m = open_maps();
    struct oct_denoise_report report;
    oct_surface_scene_draw(scene, m->truth, m->noisy);
    memcpy(m->found, m->noisy, sizeof(m->found));
    denoise_with(m->found, NULL, 0, &report);
    const double rms = oct_surface_rms(m->found, m->truth, N);
    const double gaussian = best_gaussian(m), median = best_median(m);
    printf(
        "# %-6s noise %.1f, %.0f %% outliers: %.3f; Gaussian %.3f, median %.3f; noise said %.2f, "
        "%llu lost\n",
        names[scene->kind], scene->noise, 100 * scene->outliers, rms, gaussian, median,
        report.noise_px, (unsigned long long)report.n_lost);
    assert_true(rms <= most);
    assert_true(report.n_lost * 1000 <= N);
    assert_true(fabs(report.noise_px - scene->noise) < 0.1 * scene->noise);
    assert_true(rms < gaussian && rms < median);
    free(m);
}

static void judge_all(enum oct_surface_kind kind, double height, double width,
                      const double most[3][2])
{
    static const double noises[3] = {0.5, 1, 2};
    for (unsigned i = 0; i < 3; i++)
        for (unsigned with = 0; with < 2; with++) {
            const struct oct_surface_scene scene = {
                .kind = kind,
                .n_b = SIDE,
                .n_j = SIDE,
                .height = height,
                .width = width,
                .noise = noises[i],
                .outliers = with ? 0.05 : 0,
                .seed = 3,
            };
            judge(&scene, most[i][with]);
        }
}

static void drusen_keep_their_shape(void **state)
{
    /* Without and with outliers. */
    static const double most[3][2] = {{0.17, 0.17}, {0.28, 0.28}, {0.46, 0.47}};
    judge_all(OCT_SURFACE_DRUSEN, 20, 6, most);
}

static void a_pit_and_a_sheet_are_smooth(void **state)
{
    static const double pit[3][2] = {{0.09, 0.09}, {0.15, 0.16}, {0.26, 0.31}};
    static const double sheet[3][2] = {{0.12, 0.12}, {0.20, 0.21}, {0.34, 0.36}};
    judge_all(OCT_SURFACE_PIT, 40, 14, pit);
    judge_all(OCT_SURFACE_SHEET, 8, 48, sheet);
}

/* Low and wide ones, where a wide Gaussian has little to lose, and steep ones. */
static void drusen_of_all_sizes_do(void **state)
{
    static const double shapes[][2] = {{5, 12}, {8, 8}, {20, 10}, {12, 4}};
    for (uint32_t i = 0; i < 4; i++)
        for (int with = 0; with < 2; with++) {
            const struct oct_surface_scene scene = {
                OCT_SURFACE_DRUSEN, SIDE, SIDE, shapes[i][0], shapes[i][1], 2, with * 0.05, 40 + i};
            judge(&scene, 0.55);
        }
}

/* ---- what is around it ---- */

static void gaps_stay_and_shifts_are_undone(void **state)
{
    struct maps *m = open_maps();
    double shift_px[SIDE];
    const struct oct_surface_scene scene = {OCT_SURFACE_PIT, SIDE, SIDE, 20, 20, 0.5, 0, 9};
    oct_surface_scene_draw(&scene, m->truth, m->noisy);
    for (int b = 0; b < SIDE; b++)
        shift_px[b] = 15 * sin(b * 1.7);
    for (int i = 0; i < N; i++) {
        m->noisy[i] = (float)((double)m->noisy[i] - shift_px[i / SIDE]);
        if (i % SIDE > 40 && i % SIDE < 47)
            m->noisy[i] = NAN;
    }
    memcpy(m->found, m->noisy, sizeof(m->found));
    denoise_with(m->found, shift_px, 0, NULL);
    for (int i = 0; i < N; i++) {
        assert_int_equal(isnan(m->noisy[i]) != 0, isnan(m->found[i]) != 0);
        m->found[i] = (float)((double)m->found[i] + shift_px[i / SIDE]);
    }
    assert_true(oct_surface_rms(m->found, m->truth, N) < 0.15);
    free(m);
}

static void strength_scales_c2(void **state)
{
    struct maps *m = open_maps();
    struct oct_denoise_report plain, strong;
    const struct oct_surface_scene scene = {OCT_SURFACE_PIT, SIDE, SIDE, 20, 20, 0.5, 0, 9};
    oct_surface_scene_draw(&scene, NULL, m->noisy);
    memcpy(m->found, m->noisy, sizeof(m->found));
    denoise_with(m->found, NULL, 0, &plain);
    memcpy(m->found, m->noisy, sizeof(m->found));
    denoise_with(m->found, NULL, 2 * plain.noise_px, &strong);
    assert_true(plain.levelset.c2 > 0);
    assert_true(fabs(strong.levelset.c2 / plain.levelset.c2 - 4) < 1e-6);
    free(m);
}

static void too_few_heights_are_left_alone(void **state)
{
    struct maps *m = open_maps();
    for (int i = 0; i < N; i++)
        m->noisy[i] = i / SIDE < 4 ? (float)(i % 7) : NAN;
    memcpy(m->found, m->noisy, sizeof(m->found));
    denoise_with(m->found, NULL, 0, NULL);
    assert_memory_equal(m->found, m->noisy, sizeof(m->found));
    free(m);
}

static void the_nearest_crossing_counts(void **state)
{
    static const float phi[3][6] = {
        {1, -3, -1, 1, 0, -2}, {1, 1, 1, 1, 1, 0.5f}, {-1, -1, 2, 1, -1, -1}};
    static const uint32_t dims[3] = {1, 3, 6};
    float first[3] = {2.5f, 1, NAN}, heights[3];
    assert_int_equal(oct_denoise_crossings(phi[0], dims, first, heights), 1);
    assert_true(fabsf(heights[0] - 4) < 1e-6f);
    assert_true(isnan(heights[1]) && isnan(heights[2]));
    first[0] = 1.2f;
    first[2] = 0;
    assert_int_equal(oct_denoise_crossings(phi[0], dims, first, first), 1);
    assert_true(fabsf(first[0] - 0.25f) < 1e-6f && fabsf(first[2] - 3.5f) < 1e-6f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drusen_keep_their_shape),
        cmocka_unit_test(drusen_of_all_sizes_do),
        cmocka_unit_test(a_pit_and_a_sheet_are_smooth),
        cmocka_unit_test(gaps_stay_and_shifts_are_undone),
        cmocka_unit_test(strength_scales_c2),
        cmocka_unit_test(too_few_heights_are_left_alone),
        cmocka_unit_test(the_nearest_crossing_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
