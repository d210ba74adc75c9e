/* One volume onto another: the three models on tissue that was torn and bent in known ways, the
 * units of what comes out, and what cannot be registered. */
#include "test/rig/tap.h"

#include "analysis/warp/pair.h"
#include "kernels/device/workers.h"
#include "test/rig/torn_tissue.h"
#include "test/rig/warp_suite_rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { V = 40, M = 64, D = 72 };
#define N ((size_t)V * M * D)

static const uint32_t sides[3] = {V, M, D};

struct scene {
    struct oct_torn_tissue tissue[2];
    double motion[2][V][3];
    float *volume[2];
    struct oct_warp_pair_setup setup;
    struct oct_warp_pair pair;
    struct oct_error err;
};

/* In dB, so that units show. */
static void draw(struct scene *s, unsigned v)
{
    oct_torn_tissue_draw(&s->tissue[v], s->motion[v], s->volume[v]);
    for (size_t i = 0; i < N; i++)
        s->volume[v][i] = 60 * s->volume[v][i] - 20;
}

static void open_scene(struct scene *s, enum oct_warp_model model, double tear, double bend)
{
    memset(s, 0, sizeof(*s));
    for (unsigned v = 0; v < 2; v++) {
        for (unsigned b = 0; b < V; b++) {
            const double t = b + 60.0 * v;
            s->motion[v][b][0] = tear * (sin(0.07 * t) + 1.3 * v);
            s->motion[v][b][1] = tear * (2 * sin(0.11 * t + 1) + (v == 1 && b > 24 ? 3.3 : 0));
            s->motion[v][b][2] = tear * (sin(0.5 * t) + 1.4 * v);
        }
        s->tissue[v] = (struct oct_torn_tissue){.dims = {V, M, D},
                                                .seed = 5,
                                                .noise_seed = v + 1,
                                                .noise = 0.05,
                                                .bend = v == 1 ? bend : 0};
        s->volume[v] = malloc(N * sizeof(float));
        assert_non_null(s->volume[v]);
        draw(s, v);
    }
    s->setup =
        (struct oct_warp_pair_setup){.solver = {.grid = {.dims = {V, M, D}, .spacing = {1, 1, 1}}},
                                     .model = model,
                                     .backend = "cpu"};
    oct_warp_pair_params_default(&s->setup.solver.params, OCT_WARP_OCTD, model, sides);
}

static enum oct_err run(struct scene *s)
{
    return oct_warp_pair_register(&s->setup, s->volume[0], s->volume[1], NULL, &s->pair, &s->err);
}

static void close_scene(struct scene *s)
{
    oct_warp_pair_finish(&s->pair);
    free(s->volume[0]);
    free(s->volume[1]);
}

/* The mean distance of the displacement from the truth, of voxels that the moving volume shows. */
static double error_of(struct scene *s, double *seen)
{
    double sum = 0;
    size_t n = 0;

    for (unsigned b = 0; b < V; b++)
        for (size_t k = 0; k < (size_t)M * D; k++) {
            const size_t at = b * (size_t)M * D + k;
            const double x[3] = {b, (double)(k / D), (double)(k % D)};
            const float *u = s->pair.displacement + at;
            double truth[3], length = 0;
            if (!oct_torn_tissue_shift(V, s->motion[0], s->motion[1], b, -(double)u[0], truth))
                continue;
            truth[2] += oct_torn_tissue_bend(&s->tissue[1], x[0] + s->motion[0][b][0],
                                             x[1] + s->motion[0][b][1]);
            bool inside = true;
            for (unsigned i = 0; i < 3; i++) {
                inside = inside && x[i] + truth[i] >= 2 && x[i] + truth[i] <= sides[i] - 3.0;
                length += pow(-(double)u[i * N] - truth[i], 2);
            }
            if (inside) {
                sum += sqrt(length);
                n++;
            }
        }
    *seen = (double)n / N;
    return sum / (double)n;
}

/* The moving volume at x - u(x). */
static void expect_warped(const struct scene *s)
{
    double *u = oct_warp_suite_double(s->pair.displacement, 3 * N);
    double *moving = oct_warp_suite_double(s->volume[1], N), *warped = malloc(N * sizeof(double));

    assert_non_null(warped);
    oct_warp_oracle_warp(sides, moving, u, warped);
    assert_true(oct_warp_suite_away(s->pair.warped, warped, N) < 0.02);
    free(u);
    free(moving);
    free(warped);
}

/* J is that of the map, and what is said of it too. */
static void expect_jacobian(const struct scene *s)
{
    double *u = oct_warp_suite_double(s->pair.displacement, 3 * N), *j = malloc(N * sizeof(double));
    size_t n_folded = 0;

    assert_non_null(j);
    const double least = oct_warp_oracle_jacobian(sides, u, j);
    assert_true(oct_warp_suite_away(s->pair.jacobian, j, N) < 1e-4);
    for (size_t i = 0; i < N; i++)
        n_folded += s->pair.jacobian[i] <= 0;
    assert_true(fabs(s->pair.change.least - least) < 1e-4);
    assert_true(s->pair.change.folded == (double)n_folded / N);
    free(u);
    free(j);
}

static void torn_tissue_is_put_together_by_its_bscans(void **state)
{
    struct scene s;
    double seen;

    open_scene(&s, OCT_WARP_BSCANS, 1, 0);
    assert_int_equal(run(&s), OCT_OK);
    const double error = error_of(&s, &seen);
    print_message("mean error %.3f of %.2f, NCC %.3f, before %.3f\n", error, seen, s.pair.after.ncc,
                  s.pair.before.ncc);
    assert_true(error < 0.1 && seen > 0.7);
    assert_true(s.pair.after.ncc > 0.95 && s.pair.before.ncc < 0.8);
    assert_true(s.pair.after.ssd < 0.3 * s.pair.before.ssd);
    assert_true(s.pair.before.n == N && s.pair.after.n < N && (double)s.pair.after.n > 0.7 * N);
    expect_jacobian(&s);
    assert_true(s.pair.change.folded == 0);
    assert_string_equal(s.pair.running, "cpu");
    expect_warped(&s);
    close_scene(&s);
}

/* The field alone is tried too, as octctl does. */
static void try_still(struct scene *s)
{
    oct_warp_pair_params_default(&s->setup.still, OCT_WARP_OCTD, OCT_WARP_NONLINEAR, sides);
}

static void what_is_bent_alone_is_left_without_bscans(void **state)
{
    struct scene s[2];

    open_scene(&s[0], OCT_WARP_NONLINEAR, 0, 3);
    open_scene(&s[1], OCT_WARP_BOTH, 0, 3);
    try_still(&s[1]);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(run(&s[i]), OCT_OK);
    assert_true(s[1].pair.is_still && !s[1].pair.is_rigid && !s[0].pair.is_still);
    assert_null(s[1].pair.bscans);
    assert_memory_equal(s[1].pair.displacement, s[0].pair.displacement, 3 * N * sizeof(float));
    assert_memory_equal(s[1].pair.jacobian, s[0].pair.jacobian, N * sizeof(float));
    assert_memory_equal(s[1].pair.warped, s[0].pair.warped, N * sizeof(float));
    assert_true(s[1].pair.after.ssd == s[0].pair.after.ssd);
    assert_true(s[1].pair.report.n_levels == s[0].pair.report.n_levels);
    expect_warped(&s[1]);
    close_scene(&s[0]);
    close_scene(&s[1]);
}

/* The mean length of the displacement, of B-scans first to V - 1. */
static double length_of(const struct scene *s, size_t first)
{
    double sum = 0;

    for (size_t at = first * M * D; at < N; at++) {
        const float *u = s->pair.displacement + at;
        sum += sqrt((double)(u[0] * u[0] + u[N] * u[N] + u[2 * N] * u[2 * N]));
    }
    return sum / (double)(N - first * M * D);
}

static void what_is_alike_stays_where_it_is(void **state)
{
    struct scene s;

    open_scene(&s, OCT_WARP_BOTH, 0, 0);
    memcpy(s.volume[1], s.volume[0], N * sizeof(float));
    try_still(&s);
    assert_int_equal(run(&s), OCT_OK);
    assert_true(length_of(&s, 0) < 1e-4 && s.pair.after.ncc > 0.999999);
    close_scene(&s);
}

/* A third of the moving volume never came, and a B-scan of the rest. */
static void what_never_came_draws_nothing(void **state)
{
    struct scene s;

    open_scene(&s, OCT_WARP_NONLINEAR, 0, 0);
    memcpy(s.volume[1], s.volume[0], N * sizeof(float));
    for (size_t i = 0; i < N; i++)
        if (i / ((size_t)M * D) < V / 3 || i / ((size_t)M * D) == 25)
            s.volume[1][i] = NAN;
    assert_int_equal(run(&s), OCT_OK);
    print_message("%.3f voxels, NCC %.4f\n", length_of(&s, V / 3 + 2), s.pair.after.ncc);
    assert_true(length_of(&s, V / 3 + 2) < 0.1 && s.pair.after.ncc > 0.99);
    assert_true(s.pair.after.n <= N - (V / 3) * (size_t)M * D);
    close_scene(&s);
}

static void what_is_torn_keeps_its_bscans(void **state)
{
    static const double bends[] = {0, 2};

    for (unsigned k = 0; k < 2; k++) {
        struct scene s[2];
        for (unsigned i = 0; i < 2; i++) {
            open_scene(&s[i], OCT_WARP_BOTH, 1, bends[k]);
            if (i == 1)
                try_still(&s[i]);
            assert_int_equal(run(&s[i]), OCT_OK);
            assert_false(s[i].pair.is_still);
        }
        assert_memory_equal(s[1].pair.displacement, s[0].pair.displacement, 3 * N * sizeof(float));
        close_scene(&s[0]);
        close_scene(&s[1]);
    }
}

static void what_is_torn_and_bent_needs_both(void **state)
{
    double error[OCT_WARP_N_MODELS], ncc[OCT_WARP_N_MODELS], seen;

    for (enum oct_warp_model model = 0; model < OCT_WARP_N_MODELS; model++) {
        struct scene s;
        open_scene(&s, model, 1, 2);
        assert_int_equal(run(&s), OCT_OK);
        error[model] = error_of(&s, &seen);
        ncc[model] = s.pair.after.ncc;
        print_message("%s: mean error %.3f of %.2f, NCC %.3f, least J %.2f\n",
                      oct_warp_model_names[model], error[model], seen, ncc[model],
                      s.pair.change.least);
        /* Where B-scans tear at the volume's end, voxels that nothing was seen of may fold. */
        assert_true(model == OCT_WARP_BOTH || s.pair.change.least > 0);
        assert_true(s.pair.change.folded < 2e-4 && !s.pair.is_rigid);
        expect_warped(&s);
        expect_jacobian(&s);
        close_scene(&s);
    }
    assert_true(error[OCT_WARP_BOTH] < 0.4);
    assert_true(error[OCT_WARP_BOTH] < 0.5 * error[OCT_WARP_BSCANS]);
    assert_true(error[OCT_WARP_BOTH] < 0.7 * error[OCT_WARP_NONLINEAR]);
    assert_true(ncc[OCT_WARP_BOTH] > ncc[OCT_WARP_BSCANS] + 0.05);
    assert_true(ncc[OCT_WARP_BOTH] > ncc[OCT_WARP_NONLINEAR] + 0.003);
}

static void what_is_torn_alone_is_not_bent(void **state)
{
    struct scene s;
    double seen;

    open_scene(&s, OCT_WARP_BOTH, 1, 0);
    assert_int_equal(run(&s), OCT_OK);
    assert_true(s.pair.is_rigid && s.pair.report.n_levels == 2);
    assert_true(error_of(&s, &seen) < 0.1 && s.pair.after.ncc > 0.95);
    expect_warped(&s);
    expect_jacobian(&s);
    close_scene(&s);
}

/* The eye of FIXED jumped back: the map shows tissue twice. */
static void a_map_that_folds_says_so(void **state)
{
    for (enum oct_warp_model model = 0; model < OCT_WARP_N_MODELS; model++)
        for (unsigned bend = 0; bend < 4 && model != OCT_WARP_NONLINEAR; bend += 2) {
            struct scene s;
            open_scene(&s, model, 1, bend);
            for (unsigned b = V / 2; b < V; b++)
                s.motion[0][b][0] -= 5;
            draw(&s, 0);
            assert_int_equal(run(&s), OCT_OK);
            assert_true(model == OCT_WARP_BSCANS || s.pair.is_rigid == (bend == 0));
            expect_jacobian(&s);
            assert_true(s.pair.change.least < -0.5 && s.pair.change.folded > 0.02);
            close_scene(&s);
        }
}

static void an_eye_at_rest_needs_no_bscans(void **state)
{
    struct scene s;
    double seen;

    open_scene(&s, OCT_WARP_NONLINEAR, 0, 2);
    assert_int_equal(run(&s), OCT_OK);
    const double error = error_of(&s, &seen);
    print_message("mean error %.3f of %.2f, NCC %.3f\n", error, seen, s.pair.after.ncc);
    assert_true(error < 0.2 && s.pair.after.ncc > 0.9);
    assert_null(s.pair.bscans);
    assert_non_null(s.pair.jacobian);
    assert_true(s.pair.report.n_levels == s.setup.solver.params.n_levels);
    close_scene(&s);
}

static void what_is_not_finite_counts_for_nothing(void **state)
{
    struct scene clean, dirty;

    open_scene(&clean, OCT_WARP_BOTH, 1, 1);
    open_scene(&dirty, OCT_WARP_BOTH, 1, 1);
    for (size_t i = 0; i < N; i += 1009) {
        dirty.volume[0][i] = i % 2 ? NAN : INFINITY;
        dirty.volume[1][N - 1 - i] = i % 3 ? NAN : -INFINITY;
    }
    dirty.volume[0][5] = 1e30F;
    dirty.volume[1][9] = -1e30F;
    assert_int_equal(run(&clean), OCT_OK);
    assert_int_equal(run(&dirty), OCT_OK);
    for (unsigned i = 0; i < 2; i++)
        if (fabs(clean.pair.range[i] - dirty.pair.range[i]) >= 0.5)
            fail_msg("range %g, with values that are not finite %g", clean.pair.range[i],
                     dirty.pair.range[i]);
    double most = 0;
    for (size_t i = 0; i < 3 * N; i++)
        most = fmax(most, fabs((double)(clean.pair.displacement[i] - dirty.pair.displacement[i])));
    for (size_t i = 0; i < N; i++)
        assert_true(isfinite(dirty.pair.warped[i]));
    assert_true(most < 1);
    assert_true(dirty.pair.before.n < N && clean.pair.before.n == N);
    close_scene(&clean);
    close_scene(&dirty);
}

/* A background of one value, and so little else that both percentiles are that value. */
static void a_background_of_one_value_leaves_the_rest_its_range(void **state)
{
    static const float backgrounds[] = {0, 5, -1e30F, 1e-30F};
    enum { n = 4000 };
    float *volume[2] = {malloc(n * sizeof(float)), malloc(n * sizeof(float))};
    double range[2];

    assert_true(volume[0] && volume[1]);
    for (unsigned k = 0; k < sizeof(backgrounds) / sizeof(backgrounds[0]); k++) {
        for (unsigned v = 0; v < 2; v++)
            for (unsigned i = 0; i < n; i++)
                volume[v][i] = i % 1000 == 7 + v ? 2 : i == 11 ? 9 : backgrounds[k];
        assert_int_equal(oct_warp_range(volume[0], volume[1], n, range, NULL), OCT_OK);
        assert_true(range[0] == fmin((double)backgrounds[k], 2) && range[1] == 9);
        oct_warp_scale(volume[0], n, range, NULL, volume[1]);
        for (unsigned i = 0; i < n; i++)
            assert_true(volume[1][i] >= 0 && volume[1][i] <= 1);
        assert_true(volume[1][11] == 1);
    }
    free(volume[0]);
    free(volume[1]);
}

static void threads_do_not_change_a_byte(void **state)
{
    struct oct_workers *workers;
    struct scene one, three;

    assert_int_equal(oct_workers_create(&workers, 3, NULL), OCT_OK);
    open_scene(&one, OCT_WARP_BOTH, 1, 1);
    open_scene(&three, OCT_WARP_BOTH, 1, 1);
    three.setup.solver.workers = workers;
    assert_int_equal(run(&one), OCT_OK);
    assert_int_equal(run(&three), OCT_OK);
    assert_memory_equal(one.pair.displacement, three.pair.displacement, 3 * N * sizeof(float));
    assert_memory_equal(one.pair.warped, three.pair.warped, N * sizeof(float));
    assert_memory_equal(one.pair.jacobian, three.pair.jacobian, N * sizeof(float));
    close_scene(&one);
    close_scene(&three);
    oct_workers_destroy(workers);
}

/* ---- what cannot be ---- */

static void expect_refusal(struct scene *s, const char *why)
{
    assert_int_equal(run(s), OCT_E_ARG);
    if (!strstr(s->err.text, why))
        fail_msg("%s", s->err.text);
    assert_null(s->pair.displacement);
    assert_null(s->pair.warped);
    assert_null(s->pair.bscans);
}

static void volumes_that_say_nothing_are_refused(void **state)
{
    struct scene s;
    uint64_t seed = 1;

    open_scene(&s, OCT_WARP_BOTH, 1, 0);
    for (size_t i = 0; i < N; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1;
        s.volume[1][i] = (float)(seed >> 40);
    }
    expect_refusal(&s, "of the fixed volume lies in the moving one");
    for (size_t i = 0; i < N; i++)
        s.volume[1][i] = i % 2 ? 4 : NAN;
    expect_refusal(&s, "the moving volume is constant");
    for (size_t i = 0; i < N; i++)
        s.volume[0][i] = NAN;
    expect_refusal(&s, "the fixed volume has nothing finite");
    close_scene(&s);
}

static bool stop(void *context, unsigned level, unsigned factor, unsigned iteration,
                 unsigned iterations, double energy)
{
    unsigned *n = context;

    assert_true(level == 0 && factor == 2 && iteration <= iterations && isfinite(energy));
    return ++*n == 3;
}

static void whoever_follows_can_stop(void **state)
{
    struct scene s;
    unsigned n = 0;

    open_scene(&s, OCT_WARP_BOTH, 1, 2);
    s.setup.progress.call = stop;
    s.setup.progress.context = &n;
    assert_int_equal(run(&s), OCT_E_CLOSED);
    assert_int_equal(n, 3);
    assert_null(s.pair.displacement);
    close_scene(&s);
}

static void the_forecast_holds_the_engine_and_the_results(void **state)
{
    struct oct_warp_pair_setup setup = {
        .solver = {.grid = {.dims = {60, 110, 600}, .spacing = {1, 1, 1}}}, .backend = "cpu"};
    const uint32_t *dims = setup.solver.grid.dims;
    const uint64_t voxel = 60 * 110 * 600 * sizeof(float);
    uint64_t bytes[OCT_WARP_N_MODELS];

    for (enum oct_warp_model model = 0; model < OCT_WARP_N_MODELS; model++) {
        setup.model = model;
        oct_warp_pair_params_default(&setup.solver.params, OCT_WARP_OCTD, model, dims);
        bytes[model] = oct_warp_pair_bytes(&setup);
    }
    const uint64_t engine = oct_warp_cpu.bytes(&setup.solver);
    assert_true(bytes[OCT_WARP_BSCANS] >= 6 * voxel);
    assert_true(bytes[OCT_WARP_BSCANS] < bytes[OCT_WARP_BOTH]);
    assert_true(bytes[OCT_WARP_BOTH] >= engine + 7 * voxel);
    assert_true(bytes[OCT_WARP_BOTH] <= engine + 9 * voxel);
}

/* Of small B-scans the scores of all shifts are more than the volumes: 49 B-scans, 37 A-lines (as
 * far as three quarters of a side) and 33 pixels of each. */
static void the_forecast_holds_the_scores_of_small_bscans(void **state)
{
    struct oct_warp_pair_setup setup = {
        .solver = {.grid = {.dims = {3000, 24, 24}, .spacing = {1, 1, 1}}},
        .model = OCT_WARP_BSCANS,
        .backend = "cpu"};
    const uint64_t scores = UINT64_C(3000) * 49 * 37 * 33 * sizeof(float);

    oct_warp_pair_params_default(&setup.solver.params, OCT_WARP_OCTD, setup.model,
                                 setup.solver.grid.dims);
    assert_true(oct_warp_pair_bytes(&setup) > scores);
    assert_true(oct_warp_pair_bytes(&setup) < scores + scores / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torn_tissue_is_put_together_by_its_bscans),
        cmocka_unit_test(what_is_bent_alone_is_left_without_bscans),
        cmocka_unit_test(what_is_alike_stays_where_it_is),
        cmocka_unit_test(what_never_came_draws_nothing),
        cmocka_unit_test(what_is_torn_keeps_its_bscans),
        cmocka_unit_test(what_is_torn_and_bent_needs_both),
        cmocka_unit_test(what_is_torn_alone_is_not_bent),
        cmocka_unit_test(a_map_that_folds_says_so),
        cmocka_unit_test(an_eye_at_rest_needs_no_bscans),
        cmocka_unit_test(what_is_not_finite_counts_for_nothing),
        cmocka_unit_test(a_background_of_one_value_leaves_the_rest_its_range),
        cmocka_unit_test(threads_do_not_change_a_byte),
        cmocka_unit_test(volumes_that_say_nothing_are_refused),
        cmocka_unit_test(whoever_follows_can_stop),
        cmocka_unit_test(the_forecast_holds_the_engine_and_the_results),
        cmocka_unit_test(the_forecast_holds_the_scores_of_small_bscans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
