/* Small sides, threads, stops, and what callers do wrong. */
#include "kernels/device/workers.h"
#include "test/rig/tap.h"
#include "test/rig/warp_suite_rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void make_pair(struct oct_warp_phantom *pair, uint32_t n_b, uint32_t n_j, uint32_t n_d,
                      double mean_length)
{
    const struct oct_warp_phantom_setup phantom = {
        .dims = {n_b, n_j, n_d}, .mean_length = mean_length, .noise = 0.02, .seed = 11};
    oct_warp_phantom_make(&phantom, pair);
}

/* ---- sides ---- */

static void test_sides(void **state)
{
    for (uint32_t code = 0; code < 64; code += oct_warp_suite_now()->depth == 0 ? 7 : 3) {
        const uint32_t dims[3] = {4 + code % 4, 4 + code / 4 % 4, 4 + code / 16};
        struct oct_warp_phantom pair;
        struct oct_warp_report report;
        make_pair(&pair, dims[0], dims[1], dims[2], 0.3);
        const size_t n = oct_warp_n_voxels(&pair.grid);
        struct oct_warp_setup setup = oct_warp_suite_setup(&pair.grid);
        float *u = oct_warp_suite_get(3 * n, sizeof(*u));
        assert_int_equal(setup.params.n_levels, 1);
        oct_warp_suite_solve(&setup, pair.fixed, pair.moving, NULL, u, &report);
        assert_true(oct_warp_suite_look(dims, u).least > 0);
        assert_true(report.level[0].energy <= report.level[0].energy_first);
        assert_true(report.level[0].iterations > 0);
        if (oct_warp_suite_has_paper()) {
            setup.params.profile = OCT_WARP_PAPER;
            oct_warp_suite_solve(&setup, pair.fixed, pair.moving, NULL, u, &report);
            assert_true(oct_warp_suite_look(dims, u).least > 0);
        }
        /* A volume onto itself does not move. */
        setup.params.profile = OCT_WARP_OCTD;
        oct_warp_suite_solve(&setup, pair.fixed, pair.fixed, NULL, u, &report);
        for (size_t x = 0; x < 3 * n; x++)
            assert_true(fabsf(u[x]) < 1e-3f);
        free(u);
        oct_warp_phantom_finish(&pair);
    }
}

/* ---- the same bytes ---- */

static void test_bytes(void **state)
{
    const unsigned threads[] = {0, 1, 3};
    struct oct_warp_phantom pair;
    make_pair(&pair, 21, 23, 26, 1);
    const size_t n = oct_warp_n_voxels(&pair.grid);
    float *u[2] = {oct_warp_suite_get(3 * n, sizeof(float)),
                   oct_warp_suite_get(3 * n, sizeof(float))};
    for (int profile = 0; profile < (oct_warp_suite_has_paper() ? 2 : 1); profile++)
        for (int i = 0; i < 3; i++) {
            struct oct_warp_setup setup = oct_warp_suite_setup(&pair.grid);
            struct oct_workers *workers = NULL;
            oct_warp_params_default(&setup.params, profile ? OCT_WARP_PAPER : OCT_WARP_OCTD,
                                    setup.grid.dims);
            if (threads[i] > 0)
                must(oct_workers_create(&workers, threads[i], &failure));
            setup.workers = workers;
            struct oct_warp_suite_engine e = oct_warp_suite_open(&setup);
            for (int again = 0; again < 2; again++) { /* an engine keeps nothing */
                float *to = u[i > 0 || again > 0];
                memset(to, 0x7f, 3 * n * sizeof(float));
                must(e.ops->solve(e.engine, pair.fixed, pair.moving, NULL, to, NULL, NULL,
                                  &failure));
                assert_memory_equal(u[0], to, 3 * n * sizeof(float));
            }
            oct_warp_suite_close(&e);
            oct_workers_destroy(workers);
        }
    free(u[0]);
    free(u[1]);
    oct_warp_phantom_finish(&pair);
}

static void test_memory(void **state)
{
    static const uint32_t sides[][3] = {
        {64, 64, 64}, {128, 128, 128}, {240, 240, 240}, {512, 512, 512}, {40, 300, 500}};
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        const struct oct_warp_grid grid =
            oct_warp_suite_grid(sides[i][0], sides[i][1], sides[i][2]);
        const struct oct_warp_setup setup = oct_warp_suite_setup(&grid);
        const struct oct_warp_ops *ops = oct_warp_suite_now()->ops;
        const double floats =
            (double)ops->bytes(&setup) / 4 / (double)oct_warp_n_voxels(&setup.grid);
        printf("# %u x %u x %u: %.2f floats a voxel\n", sides[i][0], sides[i][1], sides[i][2],
               floats);
        assert_true(floats >= 3 && floats <= 14);
    }
}

/* ---- progress ---- */

struct watch {
    struct oct_warp_params params;
    unsigned calls, stop_at, level, iteration;
    double energy;
};

static bool watch(void *context, unsigned level, unsigned factor, unsigned iteration,
                  unsigned iterations, double energy)
{
    struct watch *w = context;
    assert_true(level < w->params.n_levels);
    assert_int_equal(factor, w->params.factor[level]);
    assert_int_equal(iterations, w->params.iterations[level]);
    assert_true(w->calls == 0 ? level == 0 : level == w->level || level == w->level + 1);
    assert_int_equal(iteration, w->calls > 0 && level == w->level ? w->iteration + 1 : 1);
    assert_true(iteration <= iterations);
    if (w->calls > 0 && level == w->level)
        assert_true(energy <= w->energy);
    w->level = level;
    w->iteration = iteration;
    w->energy = energy;
    return ++w->calls == w->stop_at;
}

static void test_progress(void **state)
{
    struct oct_warp_phantom pair;
    struct oct_warp_report report;
    struct oct_error err = {.text = ""};
    make_pair(&pair, 20, 21, 22, 0.8);
    const size_t n = oct_warp_n_voxels(&pair.grid);
    const struct oct_warp_setup setup = oct_warp_suite_setup(&pair.grid);
    float *u = oct_warp_suite_get(3 * n, sizeof(*u)), *v = oct_warp_suite_get(3 * n, sizeof(*v));
    struct oct_warp_suite_engine e = oct_warp_suite_open(&setup);
    struct watch w = {.params = setup.params};
    const struct oct_warp_progress progress = {watch, &w};
    assert_int_equal(
        e.ops->solve(e.engine, pair.fixed, pair.moving, NULL, u, &report, &progress, &err), OCT_OK);
    unsigned total = 0;
    for (unsigned l = 0; l < report.n_levels; l++)
        total += report.level[l].iterations;
    assert_int_equal(w.calls, total);
    assert_true(fabs(w.energy - report.level[report.n_levels - 1].energy) <= 1e-9 * w.energy);
    for (unsigned stop_at = 1; stop_at <= total; stop_at += total - 1) {
        w = (struct watch){.params = setup.params, .stop_at = stop_at};
        assert_int_equal(
            e.ops->solve(e.engine, pair.fixed, pair.moving, NULL, v, NULL, &progress, &err),
            OCT_E_CLOSED);
        assert_int_equal(w.calls, stop_at);
    }
    const struct oct_warp_progress none = {NULL, NULL};
    assert_int_equal(e.ops->solve(e.engine, pair.fixed, pair.moving, NULL, v, NULL, &none, &err),
                     OCT_OK);
    assert_memory_equal(u, v, 3 * n * sizeof(*u));
    oct_warp_suite_close(&e);
    free(u);
    free(v);
    oct_warp_phantom_finish(&pair);
}

/* ---- bad input ---- */

static void test_not_finite(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    struct oct_warp_phantom pair;
    make_pair(&pair, 9, 8, 11, 0.4);
    const size_t n = oct_warp_n_voxels(&pair.grid), places[] = {0, n / 2, n - 1};
    const struct oct_warp_setup setup = oct_warp_suite_setup(&pair.grid);
    float *u = oct_warp_suite_get(3 * n, sizeof(*u));
    struct oct_warp_suite_engine e = oct_warp_suite_open(&setup);
    for (int i = 0; i < 6; i++) {
        float *at = (i < 3 ? pair.fixed : pair.moving) + places[i % 3], was = *at;
        struct oct_error err = {.text = ""};
        *at = bad[i % 3];
        assert_int_equal(e.ops->solve(e.engine, pair.fixed, pair.moving, NULL, u, NULL, NULL, &err),
                         OCT_E_ARG);
        assert_non_null(strstr(err.text, i < 3 ? "fixed" : "moving"));
        *at = was;
        assert_int_equal(e.ops->solve(e.engine, pair.fixed, pair.moving, NULL, u, NULL, NULL, &err),
                         OCT_OK);
    }
    oct_warp_suite_close(&e);
    free(u);
    oct_warp_phantom_finish(&pair);
}

#define REFUSED(field, value)                                                                      \
    do {                                                                                           \
        struct oct_warp_setup setup = oct_warp_suite_setup(&grid);                                 \
        setup.field = value;                                                                       \
        struct oct_error err = {.text = ""};                                                       \
        assert_int_equal(oct_warp_suite_create(&e, &setup, &err), OCT_E_ARG);                      \
        assert_null(e.engine);                                                                     \
        assert_true(err.text[0]);                                                                  \
    } while (0)

static void test_refused(void **state)
{
    const struct oct_warp_grid grid = oct_warp_suite_grid(16, 17, 18);
    struct oct_warp_suite_engine e;
    REFUSED(grid.dims[0], 3);
    REFUSED(grid.dims[1], 0);
    REFUSED(grid.dims[2], 3);
    REFUSED(grid.dims[2], UINT32_MAX);
    REFUSED(grid.spacing[1], 0);
    REFUSED(grid.spacing[2], NAN);
    REFUSED(grid.spacing[0], -1);
    REFUSED(params.profile, (enum oct_warp_profile)2);
    REFUSED(params.lambda, -1e-9);
    REFUSED(params.lambda, NAN);
    REFUSED(params.sigma, 0.4);
    REFUSED(params.sigma, 33);
    REFUSED(params.sigma, NAN);
    REFUSED(params.kappa, -1);
    REFUSED(params.most_step, 0);
    REFUSED(params.most_step, NAN);
    REFUSED(params.n_levels, 0);
    REFUSED(params.n_levels, OCT_WARP_MOST_LEVELS + 1);
    REFUSED(params.factor[0], 5);
    REFUSED(params.factor[0], 2); /* as the second is */
    REFUSED(params.factor[1], 0);
}

int oct_warp_suite_run_ends(void)
{
    const struct CMUnitTest tests[] = {
        {"sides of 4 to 7", test_sides, NULL, NULL, NULL},
        {"threads and repetition change no byte", test_bytes, NULL, NULL, NULL},
        {"memory is bounded", test_memory, NULL, NULL, NULL},
        {"progress is told, and may stop", test_progress, NULL, NULL, NULL},
        {"what is not finite is refused", test_not_finite, NULL, NULL, NULL},
        {"what cannot be is refused", test_refused, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests_name("ends of a registration", tests, NULL, NULL);
}
