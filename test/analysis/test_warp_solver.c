/* Registration of two volumes: the oracle against its own definitions, then the CPU engine, by each
 * instruction set. */
#include "analysis/warp/solver_cpu.h"
#include "kernels/device/workers.h"
#include "test/rig/tap.h"
#include "test/rig/warp_oracle.h"
#include "test/rig/warp_phantom.h"
#include "test/rig/warp_suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *get(size_t n)
{
    double *memory = calloc(n, sizeof(*memory));
    assert_non_null(memory);
    return memory;
}

/* ---- the oracle ---- */

/* The same smooth pictures, map and direction at n^3 voxels over a cube of side 1. The moving
 * picture is a trilinear polynomial, whose interpolant is itself; the map ends at the border. */
struct scene {
    struct oct_warp_oracle oracle;
    double *u, *w;
    size_t n;
};

static double wave(const double x[3], double a, double b, double c, double phase)
{
    return sin(2 * (a * x[0] + b * x[1] + c * x[2]) + phase);
}

/* 1 in the middle, 0 with three derivatives at the border. */
static double bump(const double x[3])
{
    double product = 1;
    for (int i = 0; i < 3; i++)
        product *= pow(4 * x[i] * (1 - x[i]), 4);
    return product;
}

static void open_scene(struct scene *s, uint32_t side, double lambda, double most)
{
    s->n = (size_t)side * side * side;
    double *fixed = get(s->n), *moving = get(s->n);
    s->u = get(3 * s->n);
    s->w = get(3 * s->n);
    for (size_t v = 0; v < s->n; v++) {
        const size_t at[3] = {v / side / side, v / side % side, v % side};
        double x[3];
        for (int i = 0; i < 3; i++)
            x[i] = ((double)at[i] + 0.5) / side;
        fixed[v] = 0.5 + 0.3 * wave(x, 1, 2, -1, 0.3);
        moving[v] = 0.2 + 0.4 * x[0] + 0.3 * x[1] - 0.2 * x[2] + 0.5 * x[0] * x[1] * (1 - x[2]);
        for (size_t i = 0; i < 3; i++) {
            const double k = (double)i;
            s->u[i * s->n + v] = side * most * bump(x) * wave(x, 1 + k, 2 - k, 1, k);
            s->w[i * s->n + v] = side * 0.02 * bump(x) * wave(x, 1, 1 - k, 1, 2 * k);
        }
    }
    s->oracle = (struct oct_warp_oracle){
        .grid = {{side, side, side}, {1, 1, 1}, false}, .fixed = fixed, .moving = moving};
    s->oracle.params.lambda = lambda;
}

static void close_scene(struct scene *s)
{
    free((void *)(uintptr_t)s->oracle.fixed);
    free((void *)(uintptr_t)s->oracle.moving);
    free(s->u);
    free(s->w);
}

/* dE along w, of steps that either add it to u or compose h with id - w, per voxel; the product of
 * the force and w. */
static double slope_of(const struct scene *s, bool lagrangian, double step, double *product)
{
    double energy[2], *u = get(3 * s->n), *force = get(3 * s->n);
    for (int side = 0; side < 2; side++) {
        const double scale = side ? step : -step;
        for (size_t x = 0; x < 3 * s->n; x++)
            u[x] = s->u[x] + scale * s->w[x];
        if (!lagrangian)
            oct_warp_oracle_compose(s->oracle.grid.dims, s->w, scale, s->u, u);
        energy[side] = oct_warp_oracle_energy(&s->oracle, u, NULL);
    }
    oct_warp_oracle_force(&s->oracle, s->u, lagrangian, force);
    *product = 0;
    for (size_t x = 0; x < 3 * s->n; x++)
        *product += force[x] * s->w[x] / (double)s->n;
    free(u);
    free(force);
    return (energy[1] - energy[0]) / (2 * step) / (double)s->n;
}

static void the_lagrangian_force_is_the_gradient(void **state)
{
    static const double lambdas[] = {0, 5e-4, 0.3};
    for (int l = 0; l < 3; l++) {
        struct scene s;
        double product;
        open_scene(&s, 20, lambdas[l], 0.1);
        s.oracle.params.profile = OCT_WARP_PAPER;
        for (size_t x = 0; x < 3 * s.n; x++) { /* d_k is its own adjoint away from the border */
            const size_t v = x % s.n, at[3] = {v / 400, v / 20 % 20, v % 20};
            for (int i = 0; i < 3; i++)
                s.w[x] = at[i] < 3 || at[i] > 16 ? 0 : s.w[x];
        }
        const double slope = slope_of(&s, true, 1e-5, &product);
        printf("# lambda %g: dE %.8g, -f w %.8g\n", lambdas[l], slope, -product);
        assert_true(fabs(slope + product) < 1e-6 * fabs(product));
        close_scene(&s);
    }
}

/* The Eulerian force is the gradient of the continuous E: what is left falls with the square of the
 * voxel, and Richardson's limit is 0. */
static void the_eulerian_force_is_the_gradient(void **state)
{
    static const double lambdas[] = {0, 5e-4, 0.3, 5e-4}, mosts[] = {0.1, 0.1, 0.1, 0.14};
    for (int l = 0; l < 4; l++) { /* the last against the barrier */
        double off[2], product, least = 0;
        for (int i = 0; i < 2; i++) {
            struct scene s;
            open_scene(&s, i ? 48 : 24, lambdas[l], mosts[l]);
            const double slope = slope_of(&s, false, 1e-4, &product);
            off[i] = (slope + product) / product;
            double *jacobian = get(s.n);
            least = oct_warp_oracle_jacobian(s.oracle.grid.dims, s.u, jacobian);
            free(jacobian);
            close_scene(&s);
        }
        const double limit = (4 * off[1] - off[0]) / 3;
        printf("# lambda %g, min J %.2f: off by %.3g at 24^3, %.3g at 48^3, %.3g in the limit\n",
               lambdas[l], least, off[0], off[1], limit);
        assert_true(fabs(limit) < (l < 3 ? 1e-4 : 5e-3));
        assert_true(l < 3 ? least > 0.3 : least > 0 && least < 0.2);
    }
}

static void the_oracle_registers_a_phantom(void **state)
{
    const struct oct_warp_phantom_setup setup = {
        .dims = {32, 31, 30}, .mean_length = 0.8, .noise = 0.02, .seed = 1};
    struct oct_warp_phantom pair;
    struct oct_warp_phantom_error error;
    struct oct_warp_report report;
    oct_warp_phantom_make(&setup, &pair);
    assert_true(pair.least_jacobian > 0.3 && pair.longest > pair.mean_length);
    const size_t n = oct_warp_n_voxels(&pair.grid);
    double *fixed = get(n), *moving = get(n), *u = get(3 * n);
    float *rounded = calloc(3 * n, sizeof(*rounded));
    assert_non_null(rounded);
    for (size_t v = 0; v < n; v++) {
        fixed[v] = (double)pair.fixed[v];
        moving[v] = (double)pair.moving[v];
    }
    const struct oct_warp_oracle oracle = {
        .grid = pair.grid,
        .params = {OCT_WARP_OCTD, 5e-4, 3, 1, 0.5, 2, {2, 1}, {60, 10}},
        .fixed = fixed,
        .moving = moving};
    oct_warp_oracle_solve(&oracle, u, &report);
    for (size_t x = 0; x < 3 * n; x++)
        rounded[x] = (float)u[x];
    oct_warp_phantom_judge(&pair.grid, pair.displacement, rounded, 4, &error);
    printf("# off by %.3f of %.2f voxel, p95 %.3f\n", error.mean, pair.mean_length, error.p95);
    assert_true(error.mean < 0.2 && error.p95 < 0.45);
    oct_warp_phantom_finish(&pair);
    free(fixed);
    free(moving);
    free(u);
    free(rounded);
}

/* ---- the CPU engine ---- */

static void instruction_sets_agree(void **state)
{
    static const char *const names[] = {"plain", "avx2", "avx512"};
    const struct oct_warp_phantom_setup of = {
        .dims = {20, 23, 37}, .mean_length = 1, .noise = 0.01, .seed = 2};
    struct oct_warp_phantom pair;
    struct oct_warp_engine *engine;
    struct oct_error err = {.text = ""};
    oct_warp_phantom_make(&of, &pair);
    struct oct_warp_setup setup = {.grid = pair.grid};
    oct_warp_params_default(&setup.params, OCT_WARP_OCTD, of.dims);
    assert_int_equal(setup.params.n_levels, 3);
    assert_int_equal(setup.params.factor[0], 4);
    assert_int_equal(setup.params.iterations[2], 20);
    assert_int_equal(oct_warp_cpu.create(&engine, &setup, &err), OCT_OK);
    const size_t n = 3 * oct_warp_n_voxels(&pair.grid);
    float *u[2] = {calloc(n, sizeof(float)), calloc(n, sizeof(float))};
    assert_true(u[0] && u[1]);
    for (unsigned i = 0; i < 3; i++) {
        const struct oct_warp_passes *passes = oct_warp_passes_select(names[i]);
        if (!passes)
            continue;
        oct_warp_cpu_use(engine, passes);
        assert_int_equal(
            oct_warp_cpu.solve(engine, pair.fixed, pair.moving, NULL, u[i > 0], NULL, NULL, &err),
            OCT_OK);
        for (size_t k = 0; i > 0 && k < n; k++)
            if (!(fabsf(u[0][k] - u[1][k]) < 2e-3F))
                fail_msg("%s: %g at %zu, plain %g", names[i], (double)u[1][k], k, (double)u[0][k]);
    }
    oct_warp_cpu.destroy(engine);
    free(u[0]);
    free(u[1]);
    oct_warp_phantom_finish(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lagrangian_force_is_the_gradient),
        cmocka_unit_test(the_eulerian_force_is_the_gradient),
        cmocka_unit_test(the_oracle_registers_a_phantom),
        cmocka_unit_test(instruction_sets_agree),
    };
    struct oct_warp_suite suite = {.ops = &oct_warp_cpu, .depth = getenv("OCT_LONG") ? 2 : 1};
    struct oct_error err = {.text = ""};
    int n_failed = cmocka_run_group_tests_name("the oracle", tests, NULL, NULL);
    if (oct_workers_create(&suite.workers, 0, &err))
        return 1;
    n_failed += oct_warp_suite_run(&suite);
    oct_workers_destroy(suite.workers);
    return n_failed > 0;
}
