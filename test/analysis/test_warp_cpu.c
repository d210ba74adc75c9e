/* Two volumes registered by the CPU: forces against differences of E, what the number of threads
 * and the instruction set change, both profiles, odd sides, and what cannot be. */
#include "analysis/warp/solver.h"

#include "analysis/warp/solver_cpu.h"
#include "kernels/device/workers.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* fixed(x) = picture(x), moving(x - u(x)) is about the same. */
struct pair {
    struct oct_warp_grid grid;
    size_t n;
    float *fixed, *moving, *u;
};

static void *get(size_t n, size_t size)
{
    void *memory = calloc(n, size);
    assert_non_null(memory);
    return memory;
}

/* Waves of several lengths and directions. */
static double picture(const double x[3])
{
    return 0.5 + 0.12 * sin(0.55 * x[0] + 0.2 * x[1]) + 0.1 * cos(0.5 * x[1] - 0.35 * x[2]) +
           0.1 * sin(0.6 * x[2] + 0.3 * x[0] + 1) + 0.08 * cos(0.3 * x[0] - 0.4 * x[1] + 2);
}

/* `size` voxels at the centre, smooth, 0 at the border. */
static double shift(const uint32_t dims[3], const double x[3], unsigned axis, double size)
{
    static const double phase[3] = {0.3, 1.1, -0.7};
    double u = size;
    for (unsigned i = 0; i < 3; i++)
        u *= sin(3.141592653589793 * x[i] / (dims[i] - 1.0));
    return u * cos(phase[axis] + 0.1 * x[(axis + 1) % 3]);
}

static struct pair make_pair(uint32_t n_b, uint32_t n_j, uint32_t n_d, double size, double noise)
{
    struct pair p = {.grid = {.dims = {n_b, n_j, n_d}, .spacing = {1, 1, 1}}};
    uint32_t random = 5;
    p.n = oct_warp_n_voxels(&p.grid);
    p.fixed = get(p.n, sizeof(float));
    p.moving = get(p.n, sizeof(float));
    p.u = get(3 * p.n, sizeof(float));
    for (size_t i = 0; i < p.n; i++) {
        const double x[3] = {(double)(i / n_d / n_j), (double)(i / n_d % n_j), (double)(i % n_d)};
        double h[3];
        for (unsigned k = 0; k < 3; k++) {
            const double u = shift(p.grid.dims, x, k, size);
            p.u[k * p.n + i] = (float)u;
            h[k] = x[k] - u;
        }
        random = random * 1664525u + 1013904223u;
        p.fixed[i] = (float)(picture(h) + noise * ((random >> 8) / 8388608.0 - 1));
        p.moving[i] = (float)picture(x);
    }
    return p;
}

static void finish_pair(struct pair *p)
{
    free(p->fixed);
    free(p->moving);
    free(p->u);
}

static struct oct_warp_engine *open_engine(const struct oct_warp_setup *setup)
{
    struct oct_error err = {0};
    struct oct_warp_engine *engine;
    const enum oct_err e = oct_warp_cpu.create(&engine, setup, &err);
    if (e != OCT_OK)
        print_error("%s\n", err.text);
    assert_int_equal(e, OCT_OK);
    return engine;
}

static struct oct_warp_setup setup_of(const struct pair *p, enum oct_warp_profile profile)
{
    struct oct_warp_setup setup = {.grid = p->grid};
    oct_warp_params_default(&setup.params, profile, p->grid.dims);
    return setup;
}

static void solve(struct oct_warp_engine *engine, const struct pair *p, const uint8_t *mask,
                  float *u, struct oct_warp_report *report)
{
    struct oct_error err = {0};
    const enum oct_err e =
        oct_warp_cpu.solve(engine, p->fixed, p->moving, mask, u, report, NULL, &err);
    if (e != OCT_OK)
        print_error("%s\n", err.text);
    assert_int_equal(e, OCT_OK);
}

static double mean_distance(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum +=
            sqrt(pow((double)a[i] - (double)b[i], 2) + pow((double)a[n + i] - (double)b[n + i], 2) +
                 pow((double)a[2 * n + i] - (double)b[2 * n + i], 2));
    return sum / (double)n;
}

/* ---- forces ---- */

static double energy_of(struct oct_warp_engine *engine, const struct pair *p, const float *u,
                        bool lagrangian, float *force, double *parts)
{
    struct oct_error err = {0};
    double energy[3];
    assert_int_equal(
        oct_warp_cpu.force(engine, p->fixed, p->moving, u, lagrangian, energy, force, &err),
        OCT_OK);
    assert_true(fabs(energy[0] - energy[1] - energy[2]) < 1e-9 * (1 + energy[0]));
    if (parts)
        memcpy(parts, energy, sizeof(energy));
    return energy[0];
}

/* -f . w against (E(u + e w) - E(u - e w)) / 2 e, for a smooth w that is 0 near the border. */
static void check_lagrangian(double lambda)
{
    struct pair p = make_pair(15, 18, 21, 1.3, 0);
    struct oct_warp_setup setup = setup_of(&p, OCT_WARP_OCTD);
    setup.params.lambda = lambda;
    struct oct_warp_engine *engine = open_engine(&setup);
    float *force = get(3 * p.n, sizeof(float)), *u = get(3 * p.n, sizeof(float));
    double energy[2], slope = 0;
    for (size_t i = 0; i < 3 * p.n; i++)
        p.u[i] *= 0.7F;
    energy_of(engine, &p, p.u, true, force, NULL);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < 3 * p.n; i++) {
            const size_t at = i % p.n;
            const double x[3] = {(double)(at / 21 / 18), (double)(at / 21 % 18), (double)(at % 21)};
            const bool inside =
                x[0] > 2 && x[0] < 12 && x[1] > 2 && x[1] < 15 && x[2] > 2 && x[2] < 18;
            const double w = inside ? shift(p.grid.dims, x, (unsigned)((i / p.n + 1) % 3), 1) : 0;
            slope -= side == 0 ? (double)force[i] * w : 0;
            u[i] = p.u[i] + (float)((side ? 1 : -1) * 2e-3 * w);
        }
        energy[side] = energy_of(engine, &p, u, true, force, NULL);
    }
    const double measured = (energy[1] - energy[0]) / 4e-3;
    if (!(fabs(measured - slope) < 2e-3 * fabs(slope)))
        print_error("lambda %g: %g, measured %g\n", lambda, slope, measured);
    assert_true(fabs(measured - slope) < 2e-3 * fabs(slope));
    free(force);
    free(u);
    oct_warp_cpu.destroy(engine);
    finish_pair(&p);
}

static void the_lagrangian_force_is_the_slope_of_the_energy(void **state)
{
    (void)state;
    check_lagrangian(0);
    check_lagrangian(1e3);
    check_lagrangian(0.05);
}

/* ---- threads and instruction sets ---- */

static void the_number_of_threads_changes_no_byte(void **state)
{
    (void)state;
    static const unsigned n_threads[] = {0, 5, 2, 1};
    struct pair p = make_pair(37, 18, 29, 1.5, 0.01);
    float *u[2] = {get(3 * p.n, sizeof(float)), get(3 * p.n, sizeof(float))};
    for (int profile = OCT_WARP_OCTD; profile <= OCT_WARP_PAPER; profile++)
        for (unsigned i = 0; i < (profile == OCT_WARP_PAPER ? 2 : 4); i++) {
            struct oct_warp_setup setup = setup_of(&p, (enum oct_warp_profile)profile);
            struct oct_warp_report report;
            if (profile == OCT_WARP_PAPER)
                setup.params.iterations[0] = setup.params.iterations[1] = 2;
            if (n_threads[i] > 0)
                assert_int_equal(oct_workers_create(&setup.workers, n_threads[i], NULL), OCT_OK);
            struct oct_warp_engine *engine = open_engine(&setup);
            solve(engine, &p, NULL, u[i > 0], &report);
            if (i > 0)
                assert_memory_equal(u[0], u[1], 3 * p.n * sizeof(float));
            oct_warp_cpu.destroy(engine);
            oct_workers_destroy(setup.workers);
        }
    free(u[0]);
    free(u[1]);
    finish_pair(&p);
}

static void instruction_sets_agree(void **state)
{
    (void)state;
    static const char *const names[] = {"plain", "avx2", "avx512"};
    struct pair p = make_pair(20, 23, 37, 1.5, 0.01);
    float *u[2] = {get(3 * p.n, sizeof(float)), get(3 * p.n, sizeof(float))};
    struct oct_warp_setup setup = setup_of(&p, OCT_WARP_OCTD);
    struct oct_warp_engine *engine = open_engine(&setup);
    for (unsigned i = 0; i < 3; i++) {
        const struct oct_warp_passes *passes = oct_warp_passes_select(names[i]);
        struct oct_warp_report report;
        if (!passes)
            continue;
        oct_warp_cpu_use(engine, passes);
        solve(engine, &p, NULL, u[i > 0], &report);
        for (size_t k = 0; i > 0 && k < 3 * p.n; k++)
            if (!(fabsf(u[0][k] - u[1][k]) < 2e-3F))
                fail_msg("%s: %g at %zu, plain %g", names[i], (double)u[1][k], k, (double)u[0][k]);
    }
    oct_warp_cpu.destroy(engine);
    free(u[0]);
    free(u[1]);
    finish_pair(&p);
}

/* ---- results ---- */

static void both_profiles_find_the_displacement(void **state)
{
    (void)state;
    struct pair p = make_pair(30, 33, 38, 1.6, 0.005);
    float *u = get(3 * p.n, sizeof(float)), *none = get(3 * p.n, sizeof(float));
    for (int profile = OCT_WARP_OCTD; profile <= OCT_WARP_PAPER; profile++) {
        struct oct_warp_setup setup = setup_of(&p, (enum oct_warp_profile)profile);
        struct oct_warp_engine *engine = open_engine(&setup);
        struct oct_warp_report report;
        solve(engine, &p, NULL, u, &report);
        const double before = mean_distance(none, p.u, p.n), after = mean_distance(u, p.u, p.n);
        const struct oct_warp_level *last = report.level + report.n_levels - 1;
        if (!(after < 0.35 * before))
            print_error("profile %d: %g of %g voxels left\n", profile, after, before);
        assert_true(after < 0.35 * before);
        assert_true(last->least_jacobian > 0 && last->energy < last->energy_first);
        assert_true(last->bytes > 0);
        oct_warp_cpu.destroy(engine);
    }
    free(u);
    free(none);
    finish_pair(&p);
}

/* The same pair, whatever the voxels are called: units of the finest spacing. And voxels that are
 * longer along one axis than along another. */
static void spacing_has_a_say_by_its_ratios(void **state)
{
    (void)state;
    struct pair p = make_pair(22, 26, 30, 1.2, 0.005);
    float *u[3], *none = get(3 * p.n, sizeof(float));
    static const double spacing[3][3] = {{2, 1, 1.5}, {8, 4, 6}, {1, 1, 1}};
    for (unsigned i = 0; i < 3; i++) {
        u[i] = get(3 * p.n, sizeof(float));
        memcpy(p.grid.spacing, spacing[i], sizeof(p.grid.spacing));
        struct oct_warp_setup setup = setup_of(&p, OCT_WARP_OCTD);
        struct oct_warp_engine *engine = open_engine(&setup);
        struct oct_warp_report report;
        solve(engine, &p, NULL, u[i], &report);
        assert_true(mean_distance(u[i], p.u, p.n) < 0.35 * mean_distance(none, p.u, p.n));
        oct_warp_cpu.destroy(engine);
    }
    assert_memory_equal(u[0], u[1], 3 * p.n * sizeof(float));
    assert_true(mean_distance(u[0], u[2], p.n) > 1e-3);
    for (unsigned i = 0; i < 3; i++)
        free(u[i]);
    free(none);
    finish_pair(&p);
}

static void an_engine_takes_what_it_says(void **state)
{
    (void)state;
    const uint32_t dims[3] = {240, 240, 240};
    struct oct_warp_setup setup = {.grid = {.dims = {240, 240, 240}, .spacing = {1, 1, 1}}};
    const double n = 240.0 * 240 * 240, lent = 2 + 3 + 0.25;
    for (int profile = OCT_WARP_OCTD; profile <= OCT_WARP_PAPER; profile++) {
        oct_warp_params_default(&setup.params, (enum oct_warp_profile)profile, dims);
        const double floats = (double)oct_warp_cpu.bytes(&setup) / sizeof(float) / n + lent;
        assert_true(floats > 11 && floats < (profile == OCT_WARP_PAPER ? 16 : 14));
    }
}

static void sides_of_four_and_sides_that_no_factor_divides(void **state)
{
    (void)state;
    static const uint32_t sizes[][3] = {{4, 4, 4}, {4, 9, 35}, {19, 4, 6}, {11, 13, 5}};
    for (unsigned i = 0; i < 4; i++) {
        struct pair p = make_pair(sizes[i][0], sizes[i][1], sizes[i][2], 0.5, 0);
        float *u = get(3 * p.n, sizeof(float));
        struct oct_warp_setup setup = setup_of(&p, OCT_WARP_OCTD);
        struct oct_warp_engine *engine = open_engine(&setup);
        struct oct_warp_report report;
        solve(engine, &p, NULL, u, &report);
        for (size_t k = 0; k < 3 * p.n; k++)
            assert_true(fabsf(u[k]) < 3);
        const struct oct_warp_level *last = report.level + report.n_levels - 1;
        assert_true(last->energy < last->energy_first);
        oct_warp_cpu.destroy(engine);
        free(u);
        finish_pair(&p);
    }
}

/* What is masked out may hold anything. */
static void masked_voxels_have_no_part(void **state)
{
    (void)state;
    struct pair p = make_pair(24, 24, 32, 1.2, 0);
    float *u[2] = {get(3 * p.n, sizeof(float)), get(3 * p.n, sizeof(float))};
    uint8_t *mask = get(p.n, 1);
    struct oct_warp_setup setup = setup_of(&p, OCT_WARP_OCTD);
    struct oct_warp_engine *engine = open_engine(&setup);
    for (size_t i = 0; i < p.n; i++)
        mask[i] = i % 32 < 20;
    for (unsigned round = 0; round < 2; round++) {
        struct oct_warp_report report;
        solve(engine, &p, mask, u[round], &report);
        for (size_t i = 0; i < p.n; i++)
            p.fixed[i] = mask[i] ? p.fixed[i] : -1000;
    }
    assert_memory_equal(u[0], u[1], 3 * p.n * sizeof(float));
    oct_warp_cpu.destroy(engine);
    free(u[0]);
    free(u[1]);
    free(mask);
    finish_pair(&p);
}

/* ---- what cannot be ---- */

struct calls {
    unsigned n, most;
};

static bool count_call(void *context, unsigned level, unsigned factor, unsigned iteration,
                       unsigned iterations, double energy)
{
    struct calls *calls = context;
    assert_true(level < 3 && factor >= 1 && iteration >= 1 && iteration <= iterations);
    assert_true(energy >= 0);
    return ++calls->n == calls->most;
}

static void it_stops_where_it_is_told_to(void **state)
{
    (void)state;
    struct pair p = make_pair(24, 24, 24, 1.2, 0);
    float *u = get(3 * p.n, sizeof(float));
    struct oct_warp_setup setup = setup_of(&p, OCT_WARP_OCTD);
    struct oct_warp_engine *engine = open_engine(&setup);
    struct calls calls = {.most = 7};
    const struct oct_warp_progress progress = {count_call, &calls};
    struct oct_error err = {0};
    assert_int_equal(oct_warp_cpu.solve(engine, p.fixed, p.moving, NULL, u, NULL, &progress, &err),
                     OCT_E_CLOSED);
    assert_int_equal(calls.n, 7);
    oct_warp_cpu.destroy(engine);
    free(u);
    finish_pair(&p);
}

static void a_value_that_is_not_finite_is_refused(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    struct pair p = make_pair(8, 8, 8, 0.5, 0);
    float *u = get(3 * p.n, sizeof(float));
    struct oct_warp_setup setup = setup_of(&p, OCT_WARP_OCTD);
    struct oct_warp_engine *engine = open_engine(&setup);
    for (unsigned i = 0; i < 6; i++) {
        struct oct_error err = {0};
        float *volume = i < 3 ? p.fixed : p.moving, was = volume[511];
        volume[511] = bad[i % 3];
        assert_int_equal(oct_warp_cpu.solve(engine, p.fixed, p.moving, NULL, u, NULL, NULL, &err),
                         OCT_E_ARG);
        assert_non_null(strstr(err.text, i < 3 ? "fixed" : "moving"));
        volume[511] = was;
    }
    oct_warp_cpu.destroy(engine);
    free(u);
    finish_pair(&p);
}

static void refused(struct oct_warp_setup setup, const char *why)
{
    struct oct_error err = {0};
    struct oct_warp_engine *engine;
    assert_int_equal(oct_warp_cpu.create(&engine, &setup, &err), OCT_E_ARG);
    assert_null(engine);
    if (!strstr(err.text, why))
        fail_msg("%s: %s", why, err.text);
}

static void what_cannot_be_is_named(void **state)
{
    (void)state;
    const struct oct_warp_grid grid = {.dims = {16, 20, 40}, .spacing = {1, 1, 1}};
    struct oct_warp_setup good = {.grid = grid}, s;
    oct_warp_params_default(&good.params, OCT_WARP_OCTD, grid.dims);
    assert_int_equal(good.params.n_levels, 3);
    assert_int_equal(good.params.factor[0], 4);
    assert_int_equal(good.params.iterations[2], 10);
    oct_warp_cpu.destroy(open_engine(&good));
    s = good;
    s.grid.dims[1] = 3;
    refused(s, "16 x 3 x 40");
    s = good;
    s.grid.spacing[2] = 0;
    refused(s, "spacing");
    s = good;
    s.grid.dims[0] = s.grid.dims[1] = 1U << 16;
    refused(s, "65536 x 65536 x 40");
    s = good;
    s.params.lambda = -1;
    refused(s, "lambda");
    s = good;
    s.params.sigma = 33;
    refused(s, "sigma");
    s = good;
    s.params.kappa = NAN;
    refused(s, "kappa");
    s = good;
    s.params.most_step = 1.5;
    refused(s, "steps");
    s = good;
    s.params.n_levels = 5;
    refused(s, "levels");
    s = good;
    s.params.factor[1] = 4;
    refused(s, "level 2 has factor 4");
    s = good;
    s.params.factor[0] = 5;
    refused(s, "leaves 3");
    s = good;
    s.params.iterations[0] = 1000000;
    refused(s, "iterations");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lagrangian_force_is_the_slope_of_the_energy),
        cmocka_unit_test(the_number_of_threads_changes_no_byte),
        cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(both_profiles_find_the_displacement),
        cmocka_unit_test(spacing_has_a_say_by_its_ratios),
        cmocka_unit_test(an_engine_takes_what_it_says),
        cmocka_unit_test(sides_of_four_and_sides_that_no_factor_divides),
        cmocka_unit_test(masked_voxels_have_no_part),
        cmocka_unit_test(it_stops_where_it_is_told_to),
        cmocka_unit_test(a_value_that_is_not_finite_is_refused),
        cmocka_unit_test(what_cannot_be_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
