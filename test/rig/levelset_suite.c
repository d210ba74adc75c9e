#include "test/rig/levelset_suite.h"

#include "test/rig/levelset_oracle.h"
#include "test/rig/surface_scene.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct oct_levelset_ops *ops;
static unsigned deadline_ms;

static size_t n_voxels(const uint32_t dims[3])
{
    return (size_t)dims[0] * dims[1] * dims[2];
}

static float *make_box(const uint32_t dims[3])
{
    float *box = malloc(n_voxels(dims) * sizeof(*box));
    assert_non_null(box);
    return box;
}

void oct_levelset_suite_draw(const uint32_t dims[3], double noise, uint32_t seed, float *phi)
{
    const struct oct_surface_scene scene = {.kind = OCT_SURFACE_SHEET,
                                            .n_b = dims[0],
                                            .n_j = dims[1],
                                            .height = 0.58 * dims[2],
                                            .width = 1.7 * dims[1],
                                            .noise = noise,
                                            .outliers = 0.02,
                                            .seed = seed};
    float *heights = malloc(sizeof(*heights) * dims[0] * dims[1]);
    assert_non_null(heights);
    oct_surface_scene_draw(&scene, NULL, heights);
    for (size_t i = 0; i < n_voxels(dims); i++) {
        const double s = (double)heights[i / dims[2]] - 60 + 0.5 * dims[2];
        phi[i] = (float)fmax(-9, fmin(9, (s - (double)(i % dims[2])) / 1.2));
    }
    free(heights);
}

/* A plane without noise: all voxels of a depth have equal patches. */
static void draw_plane(const uint32_t dims[3], float *phi)
{
    for (size_t i = 0; i < n_voxels(dims); i++)
        phi[i] = 0.5f * (float)dims[2] - (float)(i % dims[2]);
}

void oct_levelset_suite_compare(const struct oct_levelset_setup *setup, const float *phi,
                                const float *result, const float *wanted)
{
    size_t n_band = 0, n_far = 0;
    double most = 0;
    for (size_t i = 0; i < n_voxels(setup->dims); i++) {
        const bool is_in = fabs((double)phi[i]) <= setup->params.delta;
        const double difference = fabs((double)result[i] - (double)wanted[i]);
        if (!is_in)
            assert_true(result[i] == phi[i]);
        n_band += is_in;
        n_far += !(difference <= 1e-5);
        most = fmax(most, difference);
    }
    if (n_far > (setup->params.weights == OCT_LEVELSET_FULL ? n_band / 100 : 0))
        fail_msg("%zu of %zu voxels differ, by up to %.3g", n_far, n_band, most);
}

static struct oct_levelset_engine *open_engine(const struct oct_levelset_setup *setup)
{
    struct oct_levelset_engine *engine;
    must(ops->create(&engine, setup, &failure));
    return engine;
}

static struct oct_levelset_setup make_setup(const uint32_t dims[3],
                                            enum oct_levelset_profile profile)
{
    struct oct_levelset_setup setup = {.dims = {dims[0], dims[1], dims[2]},
                                       .deadline_ms = deadline_ms};
    oct_levelset_params_default(&setup.params, profile);
    return setup;
}

static void denoise(struct oct_levelset_engine *engine, const float *phi, float *result,
                    struct oct_levelset_report *report)
{
    must(ops->denoise(engine, phi, result, report, &failure));
}

/* ---- against the definition ---- */

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

static void check_oracle(const struct oct_levelset_setup *setup, const float *phi,
                         const struct oct_levelset_oracle *o, const float *result,
                         const struct oct_levelset_report *report)
{
    const struct oct_levelset_params *p = &setup->params;
    double most = 0;
    for (size_t i = 0; i < n_voxels(setup->dims); i++) {
        const double difference = fabs((double)result[i] - o->result[i]);
        most = o->unsure[i] ? most : fmax(most, difference);
        assert_true(fabs((double)phi[i]) <= p->delta || result[i] == phi[i]);
    }
    printf("# n %u reach %u m %u steps %u: band %llu, unsure %llu, c2 %.4g, phi within %.2g\n",
           p->patch, p->reach, p->most, p->steps, (unsigned long long)report->n_band,
           (unsigned long long)o->n_unsure, report->c2, most);
    assert_true(most <= 1e-5);
    assert_true(o->n_unsure * 50 <= o->n_band);
    assert_int_equal(report->n_band, o->n_band);
    assert_true(p->c2 > 0 || is_near(report->base, o->base));
    assert_true(is_near(report->c2, o->c2));
    assert_true(is_near(report->largest_sum, o->largest_sum));
    assert_int_equal(report->n_patches,
                     p->weights == OCT_LEVELSET_LOCAL ? o->n_pairs : o->n_band * (o->n_band - 1));
}

void oct_levelset_suite_check(const struct oct_levelset_ops *engine_ops,
                              const struct oct_levelset_setup *setup, const float *phi)
{
    const uint32_t *dims = setup->dims;
    struct oct_levelset_oracle oracle = {
        .phi = phi, .dims = {dims[0], dims[1], dims[2]}, .params = setup->params};
    struct oct_levelset_report report;
    ops = engine_ops;
    struct oct_levelset_engine *engine = open_engine(setup);
    float *result = make_box(dims);
    oct_levelset_oracle_run(&oracle);
    denoise(engine, phi, result, &report);
    check_oracle(setup, phi, &oracle, result, &report);
    ops->destroy(engine);
    oct_levelset_oracle_finish(&oracle);
    free(result);
}

static void test_local(void **state)
{
    static const uint32_t dims[3] = {13, 15, 37};
    static const unsigned shapes[][2] = {{5, 4}, {3, 1}, {7, 8}, {3, 5}};
    float *phi = make_box(dims);
    oct_levelset_suite_draw(dims, 0.6, 1, phi);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct oct_levelset_setup setup = make_setup(dims, OCT_LEVELSET_PROFILE_LOCAL);
        setup.params.patch = shapes[i][0];
        setup.params.reach = shapes[i][1];
        setup.params.rank = shapes[i][1] == 1 ? 5 : 24;
        oct_levelset_suite_check(ops, &setup, phi);
        setup.params.common_step = true;
        setup.params.c2 = i == 1 ? 3 : 0;
        setup.params.delta = i == 2 ? 4.1 : 2.5;
        oct_levelset_suite_check(ops, &setup, phi);
    }
    free(phi);
}

static void test_full(void **state)
{
    static const uint32_t dims[3] = {11, 11, 33};
    float *phi = make_box(dims);
    oct_levelset_suite_draw(dims, 0.6, 2, phi);
    struct oct_levelset_setup setup = make_setup(dims, OCT_LEVELSET_PROFILE_FULL);
    setup.params.steps = 1;
    oct_levelset_suite_check(ops, &setup, phi);
    setup.params.common_step = true;
    setup.params.patch = 3;
    setup.params.c1 = 30;
    setup.params.most = 24;
    setup.params.rank = 60; /* beyond those that weigh */
    oct_levelset_suite_check(ops, &setup, phi);
    setup.params.patch = 7;
    setup.params.most = 512;
    oct_levelset_suite_check(ops, &setup, phi);
    setup.params.c2 = 40;
    oct_levelset_suite_check(ops, &setup, phi);
    free(phi);
}

/* Of equal patches the first in the raster count: their distances, and so the sum of weights, show
 * which they are. */
static void test_ties(void **state)
{
    static const uint32_t dims[3] = {17, 16, 12};
    float *phi = make_box(dims);
    struct oct_levelset_setup setup = make_setup(dims, OCT_LEVELSET_PROFILE_FULL);
    struct oct_levelset_report report;
    setup.params.c1 = 40;
    setup.params.c2 = 1;
    draw_plane(dims, phi);
    struct oct_levelset_oracle oracle = {
        .phi = phi, .dims = {dims[0], dims[1], dims[2]}, .params = setup.params};
    struct oct_levelset_engine *engine = open_engine(&setup);
    float *result = make_box(dims);
    oct_levelset_oracle_run(&oracle);
    denoise(engine, phi, result, &report);
    assert_true(report.n_band > 1000);
    assert_true(is_near(report.largest_sum, oracle.largest_sum));
    for (size_t i = 0; i < n_voxels(dims); i++)
        assert_true(fabs((double)result[i] - oracle.result[i]) <= 1e-5);
    ops->destroy(engine);
    oct_levelset_oracle_finish(&oracle);
    free(phi);
    free(result);
}

/* ---- bands of all sizes, with one engine ---- */

static void check_stays(struct oct_levelset_engine *engine, const uint32_t dims[3],
                        const float *phi, uint64_t n_band)
{
    struct oct_levelset_report report;
    float *result = make_box(dims);
    memset(result, 0, n_voxels(dims) * sizeof(*result));
    denoise(engine, phi, result, &report);
    assert_int_equal(report.n_band, n_band);
    assert_true(report.base == 0 && report.c2 == 0);
    assert_memory_equal(result, phi, n_voxels(dims) * sizeof(*result));
    free(result);
}

static void check_bands(enum oct_levelset_profile profile)
{
    static const uint32_t dims[3] = {11, 12, 33};
    const size_t n = n_voxels(dims), bytes = n * sizeof(float);
    const struct oct_levelset_setup setup = make_setup(dims, profile);
    struct oct_levelset_engine *engine = open_engine(&setup);
    float *phi = make_box(dims), *first = make_box(dims), *again = make_box(dims);
    struct oct_levelset_report report;
    struct oct_error err;
    for (size_t i = 0; i < n; i++)
        phi[i] = -7;
    check_stays(engine, dims, phi, 0);
    phi[n / 2] = 1;
    check_stays(engine, dims, phi, 1);
    draw_plane(dims, phi);
    check_stays(engine, dims, phi, 6 * 11 * 12);
    oct_levelset_suite_draw(dims, 0.7, 3, phi);
    denoise(engine, phi, first, &report);
    assert_true(report.c2 > 0 && memcmp(first, phi, bytes) != 0);
    phi[n - 1] = NAN;
    assert_int_equal(ops->denoise(engine, phi, again, &report, &err), OCT_E_ARG);
    phi[n - 1] = -INFINITY;
    assert_int_equal(ops->denoise(engine, phi, again, &report, &err), OCT_E_ARG);
    oct_levelset_suite_draw(dims, 0.7, 3, phi);
    denoise(engine, phi, phi, NULL); /* in place */
    assert_memory_equal(phi, first, bytes);
    ops->destroy(engine);
    free(phi);
    free(first);
    free(again);
}

static void test_bands(void **state)
{
    check_bands(OCT_LEVELSET_PROFILE_LOCAL);
    check_bands(OCT_LEVELSET_PROFILE_PAPER);
}

static void test_refused(void **state)
{
    static const uint32_t dims[][3] = {{4, 9, 9}, {9, 9, 16384}, {2048, 2048, 1024}};
    struct oct_levelset_engine *engine;
    struct oct_error err;
    for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++) {
        const struct oct_levelset_setup setup = make_setup(dims[i], OCT_LEVELSET_PROFILE_LOCAL);
        if (i == 2 && setup.params.patch == 5)
            continue; /* 2^32: beyond a box, and too large to try */
        assert_int_equal(ops->create(&engine, &setup, &err), OCT_E_ARG);
        assert_null(engine);
    }
    struct oct_levelset_setup setup = make_setup(dims[0], OCT_LEVELSET_PROFILE_LOCAL);
    setup.dims[0] = 9;
    setup.params.beta = 0;
    assert_int_equal(ops->create(&engine, &setup, &err), OCT_E_ARG);
}

/* ---- large ---- */

static void check_large(const uint32_t dims[3], enum oct_levelset_profile profile)
{
    const struct oct_levelset_setup setup = make_setup(dims, profile);
    struct oct_levelset_engine *engine = open_engine(&setup), *cpu;
    float *phi = make_box(dims), *result = make_box(dims), *wanted = make_box(dims);
    struct oct_levelset_report report, cpu_report;
    oct_levelset_suite_draw(dims, 1, 4, phi);
    denoise(engine, phi, result, &report);
    must(oct_levelset_cpu.create(&cpu, &setup, &failure));
    must(oct_levelset_cpu.denoise(cpu, phi, wanted, &cpu_report, &failure));
    printf("# band %llu: %.4f s, on one core of the CPU %.2f s\n",
           (unsigned long long)report.n_band, report.seconds, cpu_report.seconds);
    oct_levelset_suite_compare(&setup, phi, result, wanted);
    assert_int_equal(report.n_band, cpu_report.n_band);
    assert_true(is_near(report.c2, cpu_report.c2));
    ops->destroy(engine);
    oct_levelset_cpu.destroy(cpu);
    free(phi);
    free(result);
    free(wanted);
}

static void test_large(void **state)
{
    static const uint32_t local[3] = {100, 90, 64}, full[3] = {60, 50, 48};
    check_large(local, OCT_LEVELSET_PROFILE_LOCAL);
    check_large(full, OCT_LEVELSET_PROFILE_FULL);
}

int oct_levelset_suite_run(const struct oct_levelset_ops *of, unsigned within_ms, bool large)
{
    const struct CMUnitTest tests[] = {
        {"local weights are those of the definition", test_local, NULL, NULL, NULL},
        {"full weights are those of the definition", test_full, NULL, NULL, NULL},
        {"of equal patches the first count", test_ties, NULL, NULL, NULL},
        {"bands of all sizes, in place and not finite", test_bands, NULL, NULL, NULL},
        {"what cannot be is refused", test_refused, NULL, NULL, NULL},
        {"large bands are those of the CPU", test_large, NULL, NULL, NULL},
    };
    ops = of;
    deadline_ms = within_ms;
    if (large)
        return cmocka_run_group_tests_name("level sets", tests, NULL, NULL);
    const struct CMUnitTest small[] = {tests[0], tests[1], tests[2], tests[3], tests[4]};
    return cmocka_run_group_tests_name("level sets", small, NULL, NULL);
}
