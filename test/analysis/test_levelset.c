/* Level sets denoised by the CPU: the suite of both engines; a step on five surfaces, against Eq.
 * 13 to 15 by their definition in double precision; instruction sets, threads, params. */
#include "analysis/layers/denoise/levelset.h"

#include "analysis/layers/denoise/levelset_band.h"
#include "kernels/device/workers.h"
#include "test/rig/levelset_suite.h"
#include "test/rig/surface_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_B = 19, N_J = 16, N_D = 44, N = N_B * N_J * N_D };
static const uint32_t box[3] = {N_B, N_J, N_D};

enum scene { SHEET, PIT, DRUSEN, SPHERE, OUTLIERS, N_SCENES };

/* Heights as a distance along the depth, over their slope; it is |gradient| 1 but at edges. */
static void fill_heights(float *phi, const struct oct_surface_scene *scene)
{
    float *heights = malloc(sizeof(float) * N_B * N_J);
    assert_non_null(heights);
    oct_surface_scene_draw(scene, NULL, heights);
    for (uint32_t b = 0; b < N_B; b++)
        for (uint32_t j = 0; j < N_J; j++)
            for (uint32_t d = 0; d < N_D; d++) {
                const double s = (double)heights[b * N_J + j] - 40;
                const double distance = (s - d) / 1.2;
                phi[(b * N_J + j) * N_D + d] = (float)fmax(-9, fmin(9, distance));
            }
    free(heights);
}

static float *draw(enum scene scene)
{
    float *phi = malloc(N * sizeof(*phi));
    const struct oct_surface_scene heights = {
        .kind = scene == PIT      ? OCT_SURFACE_PIT
                : scene == DRUSEN ? OCT_SURFACE_DRUSEN
                                  : OCT_SURFACE_SHEET,
        .n_b = N_B,
        .n_j = N_J,
        .height = scene == PIT ? 12 : 6,
        .width = scene == SHEET || scene == OUTLIERS ? 17 : 4,
        .noise = scene == OUTLIERS ? 1.5 : 0.5,
        .outliers = scene == OUTLIERS ? 0.05 : 0,
        .seed = (uint32_t)scene,
    };
    assert_non_null(phi);
    if (scene != SPHERE) {
        fill_heights(phi, &heights);
        return phi;
    }
    uint32_t random = 7;
    for (int b = 0; b < N_B; b++)
        for (int j = 0; j < N_J; j++)
            for (int d = 0; d < N_D; d++) {
                random = random * 1664525u + 1013904223u;
                const double noise = ((random >> 8) / 16777216.0 - 0.5) * 0.8;
                const double r = sqrt(pow(b - 10, 2) + pow(j - 8.5, 2) + pow(d - 20, 2));
                phi[(b * N_J + j) * N_D + d] = (float)(r - 7.3 + noise);
            }
    return phi;
}

static struct oct_levelset_engine *open_engine(const struct oct_levelset_params *params,
                                               const uint32_t *dims, struct oct_workers *workers)
{
    struct oct_error err = {0};
    struct oct_levelset_engine *engine;
    struct oct_levelset_setup setup = {.params = *params, .workers = workers};
    memcpy(setup.dims, dims, sizeof(setup.dims));
    const enum oct_err e = oct_levelset_cpu.create(&engine, &setup, &err);
    if (e != OCT_OK)
        fail_msg("%s", err.text);
    return engine;
}

/* ---- against the definition ---- */

static void compare(const struct oct_levelset_params *params, enum scene scene)
{
    const struct oct_levelset_setup setup = {.dims = {N_B, N_J, N_D}, .params = *params};
    float *phi = draw(scene);
    oct_levelset_suite_check(&oct_levelset_cpu, &setup, phi);
    free(phi);
}

static void one_step_is_that_of_the_definition(void **state)
{
    struct oct_levelset_params params;
    for (enum oct_levelset_profile p = 0; p <= OCT_LEVELSET_PROFILE_FULL; p++)
        for (enum scene scene = 0; scene < N_SCENES; scene++) {
            oct_levelset_params_default(&params, p);
            params.steps = 1;
            compare(&params, scene);
        }
    oct_levelset_params_default(&params, OCT_LEVELSET_PROFILE_PAPER);
    params.steps = 1;
    compare(&params, DRUSEN);
    params.rank = 60;
    params.most = 24;
    params.c1 = 30;
    compare(&params, OUTLIERS);
}

/* ---- the same whatever computes ---- */

static void instruction_sets_give_the_same(void **state)
{
    static const char *const sets[] = {"plain", "avx2", "avx512"};
    float *phi = draw(OUTLIERS), *first = malloc(N * sizeof(float));
    float *result = malloc(N * sizeof(float));
    double base = 0;
    assert_true(first && result);
    for (unsigned i = 0; i < 3; i++) {
        struct oct_levelset_params params;
        struct oct_levelset_report report;
        struct oct_error err;
        oct_levelset_params_default(&params, OCT_LEVELSET_PROFILE_LOCAL);
        params.steps = 1;
        struct oct_levelset_engine *engine = open_engine(&params, box, NULL);
        if (oct_levelset_cpu_use(engine, sets[i])) {
            assert_int_equal(oct_levelset_cpu.denoise(engine, phi, result, &report, &err), OCT_OK);
            if (i == 0) {
                memcpy(first, result, N * sizeof(float));
                base = report.base;
            }
            assert_true(report.largest_sum > 1);
            assert_true(fabs(report.base - base) <= 1e-5 * base);
            for (size_t k = 0; k < N; k++)
                assert_true(fabsf(result[k] - first[k]) <= 1e-5f);
        }
        oct_levelset_cpu.destroy(engine);
    }
    free(result);
    free(first);
    free(phi);
}

static void threads_and_repetition_change_no_byte(void **state)
{
    float *phi = draw(OUTLIERS), *first = malloc(N * sizeof(float));
    for (enum oct_levelset_profile p = 0; p <= OCT_LEVELSET_PROFILE_PAPER; p++)
        for (unsigned n = 1; n <= 3; n++) {
            struct oct_error err;
            struct oct_workers *workers = NULL;
            struct oct_levelset_params params;
            float *result = malloc(N * sizeof(float));
            assert_int_equal(oct_workers_create(&workers, n, &err), OCT_OK);
            oct_levelset_params_default(&params, p);
            struct oct_levelset_engine *engine = open_engine(&params, box, workers);
            for (unsigned twice = 0; twice < 2; twice++) {
                memcpy(result, phi, N * sizeof(float));
                assert_int_equal(oct_levelset_cpu.denoise(engine, result, result, NULL, &err),
                                 OCT_OK);
                if (n == 1 && twice == 0)
                    memcpy(first, result, N * sizeof(float));
                assert_memory_equal(result, first, N * sizeof(float));
            }
            assert_true(memcmp(first, phi, N * sizeof(float)) != 0);
            oct_levelset_cpu.destroy(engine);
            oct_workers_destroy(workers);
            free(result);
        }
    free(phi);
    free(first);
}

/* ---- bounds ---- */

static void the_smallest_box_and_a_band_at_its_sides_are_fine(void **state)
{
    struct oct_levelset_setup setup = {.dims = {5, 5, 5}};
    float phi[125];
    for (unsigned i = 0; i < 125; i++)
        phi[i] = 0.01f * (float)(i * i % 37);
    for (enum oct_levelset_profile p = 0; p <= OCT_LEVELSET_PROFILE_PAPER; p++) {
        oct_levelset_params_default(&setup.params, p);
        setup.params.reach = 8;
        oct_levelset_suite_check(&oct_levelset_cpu, &setup, phi);
    }
}

#define REFUSED(field, value)                                                                      \
    do {                                                                                           \
        struct oct_levelset_params params;                                                         \
        oct_levelset_params_default(&params, OCT_LEVELSET_PROFILE_LOCAL);                          \
        assert_int_equal(oct_levelset_params_check(&params, NULL), OCT_OK);                        \
        params.field = value;                                                                      \
        assert_int_equal(oct_levelset_params_check(&params, NULL), OCT_E_ARG);                     \
    } while (0)

static void params_are_checked(void **state)
{
    struct oct_levelset_params p;
    REFUSED(weights, (enum oct_levelset_weights)2);
    REFUSED(delta, 0.4);
    REFUSED(delta, NAN);
    REFUSED(delta, 17);
    REFUSED(patch, 4);
    REFUSED(patch, 9);
    REFUSED(reach, 0);
    REFUSED(reach, 9);
    REFUSED(c1, 0);
    REFUSED(c1, NAN);
    REFUSED(beta, 0);
    REFUSED(beta, INFINITY);
    REFUSED(c2, -1);
    REFUSED(c2, NAN);
    REFUSED(rank, 0);
    REFUSED(rank, 97);
    REFUSED(steps, 0);
    REFUSED(steps, 101);
    oct_levelset_params_default(&p, OCT_LEVELSET_PROFILE_FULL);
    assert_int_equal(oct_levelset_params_check(&p, NULL), OCT_OK);
    p.most = 23;
    assert_int_equal(oct_levelset_params_check(&p, NULL), OCT_E_ARG);
    p.most = 513;
    assert_int_equal(oct_levelset_params_check(&p, NULL), OCT_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_step_is_that_of_the_definition),
        cmocka_unit_test(instruction_sets_give_the_same),
        cmocka_unit_test(threads_and_repetition_change_no_byte),
        cmocka_unit_test(the_smallest_box_and_a_band_at_its_sides_are_fine),
        cmocka_unit_test(params_are_checked),
    };
    int n_failed = oct_levelset_suite_run(&oct_levelset_cpu, 0, false);
    n_failed += cmocka_run_group_tests_name("level sets on the CPU", tests, NULL, NULL);
    return n_failed > 0;
}
