#include "test/rig/warp_suite.h"

#include "test/rig/tap.h"
#include "test/rig/warp_suite_rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A pair, a displacement that is not its truth, and both as the oracle takes them. */
struct bench {
    struct oct_warp_setup setup;
    struct oct_warp_phantom pair;
    struct oct_warp_oracle oracle;
    float *u;
    double *of_u;
    size_t n;
};

static void open_bench(struct bench *b, const uint32_t dims[3], double most, double lambda)
{
    const struct oct_warp_phantom_setup phantom = {
        .dims = {dims[0], dims[1], dims[2]}, .noise = 0.02, .seed = dims[0] + dims[2]};
    oct_warp_phantom_make(&phantom, &b->pair);
    b->n = oct_warp_n_voxels(&b->pair.grid);
    b->setup = oct_warp_suite_setup(&b->pair.grid);
    oct_warp_suite_one_level(&b->setup.params, 5);
    b->setup.params.lambda = lambda;
    b->u = oct_warp_suite_get(3 * b->n, sizeof(float));
    oct_warp_suite_field(dims, most, dims[1], b->u);
    b->of_u = oct_warp_suite_double(b->u, 3 * b->n);
    b->oracle = oct_warp_suite_oracle(&b->setup, b->pair.fixed, b->pair.moving, NULL);
}

static void close_bench(struct bench *b)
{
    oct_warp_suite_finish(&b->oracle);
    oct_warp_phantom_finish(&b->pair);
    free(b->u);
    free(b->of_u);
}

/* ---- T(h) and J ---- */

static void check_fields(const uint32_t dims[3], double most)
{
    struct bench b;
    open_bench(&b, dims, most, 5e-4);
    struct oct_warp_suite_engine e = oct_warp_suite_open(&b.setup);
    float *result = oct_warp_suite_get(b.n, sizeof(*result));
    double *wanted = oct_warp_suite_get(b.n, sizeof(*wanted));
    must(e.ops->warp(e.engine, b.pair.moving, b.u, result, &failure));
    oct_warp_oracle_warp(dims, b.oracle.moving, b.of_u, wanted);
    const double warped = oct_warp_suite_away(result, wanted, b.n);
    must(e.ops->jacobian(e.engine, b.u, result, &failure));
    oct_warp_oracle_jacobian(dims, b.of_u, wanted);
    const double changed = oct_warp_suite_away(result, wanted, b.n);
    if (!(warped <= 2e-5 && changed <= 1e-5))
        fail_msg("%u x %u x %u: T(h) within %.3g, J within %.3g", dims[0], dims[1], dims[2], warped,
                 changed);
    free(result);
    free(wanted);
    oct_warp_suite_close(&e);
    close_bench(&b);
}

static const uint32_t shapes[][3] = {{4, 4, 4},  {4, 5, 6},   {7, 4, 5},   {6, 7, 4},
                                     {5, 9, 33}, {11, 8, 16}, {9, 13, 67}, {18, 6, 31}};
enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void test_fields(void **state)
{
    for (size_t i = 0; i < N_SHAPES; i++) {
        check_fields(shapes[i], 1.5);
        check_fields(shapes[i], 0.3);
    }
}

/* Beyond the border T is what it is on it, however far. */
static void test_far(void **state)
{
    static const uint32_t dims[3] = {6, 7, 21};
    struct bench b;
    open_bench(&b, dims, 1, 5e-4);
    struct oct_warp_suite_engine e = oct_warp_suite_open(&b.setup);
    float *result = oct_warp_suite_get(b.n, sizeof(*result));
    for (int corner = 0; corner < 8; corner++) {
        for (size_t x = 0; x < 3 * b.n; x++)
            b.u[x] = corner >> x / b.n & 1 ? -5000 : 40;
        must(e.ops->warp(e.engine, b.pair.moving, b.u, result, &failure));
        const size_t at =
            ((corner & 1 ? 5U : 0) * 7U + (corner & 2 ? 6U : 0)) * 21U + (corner & 4 ? 20U : 0);
        for (size_t v = 0; v < b.n; v++)
            assert_true(result[v] == b.pair.moving[at]);
    }
    free(result);
    oct_warp_suite_close(&e);
    close_bench(&b);
}

/* ---- E and forces ---- */

/* Of the profile. */
static void check_force(struct bench *b, enum oct_warp_profile profile)
{
    const uint32_t *dims = b->setup.grid.dims;
    const bool lagrangian = profile == OCT_WARP_PAPER;
    b->setup.params.profile = b->oracle.params.profile = profile;
    struct oct_warp_suite_engine e = oct_warp_suite_open(&b->setup);
    float *force = oct_warp_suite_get(3 * b->n, sizeof(*force));
    double *wanted = oct_warp_suite_get(3 * b->n, sizeof(*wanted)), energy[3], ssd;
    must(e.ops->force(e.engine, b->pair.fixed, b->pair.moving, b->u, energy, force, &failure));
    const double all = oct_warp_oracle_energy(&b->oracle, b->of_u, &ssd);
    oct_warp_oracle_force(&b->oracle, b->of_u, lagrangian, wanted);
    const double away = oct_warp_suite_away(force, wanted, 3 * b->n);
    const double largest = oct_warp_suite_largest(wanted, 3 * b->n);
    if (!(away <= 1e-4 * largest))
        fail_msg("%u x %u x %u lambda %g, lagrangian %d: force within %.3g of %.3g", dims[0],
                 dims[1], dims[2], b->setup.params.lambda, lagrangian, away, largest);
    const double wanted_energy[3] = {all, ssd / 2, all - ssd / 2};
    for (int i = 0; i < 3; i++)
        if (!(fabs(energy[i] - wanted_energy[i]) <= 1e-4 * wanted_energy[i]))
            fail_msg("part %d of E is %.7g, not %.7g", i, energy[i], wanted_energy[i]);
    oct_warp_suite_close(&e);
    free(force);
    free(wanted);
}

static void test_forces(void **state)
{
    static const double lambdas[] = {5e-4, 0.3};
    for (size_t i = 0; i < N_SHAPES; i++)
        for (size_t l = 0; l < 2; l++) {
            struct bench b;
            open_bench(&b, shapes[i], 1.5, lambdas[l]);
            check_force(&b, OCT_WARP_OCTD);
            if (oct_warp_suite_has_paper())
                check_force(&b, OCT_WARP_PAPER);
            close_bench(&b);
        }
}

static double energy_at(const struct bench *b, struct oct_warp_suite_engine *e, const float *u,
                        float *force)
{
    double energy[3];
    must(e->ops->force(e->engine, b->pair.fixed, b->pair.moving, u, energy, force, &failure));
    return energy[0];
}

/* w falls to 0 three voxels from the border: beyond, d_k of the border layer is not its own
 * adjoint. */
static double *make_direction(const uint32_t dims[3], const float *force)
{
    static const double sigma[3] = {1, 1, 1};
    const size_t n = (size_t)dims[0] * dims[1] * dims[2];
    double *w = oct_warp_suite_double(force, 3 * n);
    for (size_t i = 0; i < 3; i++) {
        oct_warp_oracle_smooth(dims, sigma, w + i * n);
        for (size_t v = 0; v < n; v++) {
            const size_t at[3] = {v / dims[2] / dims[1], v / dims[2] % dims[1], v % dims[2]};
            for (int a = 0; a < 3; a++)
                if (at[a] < 3 || at[a] + 3 >= dims[a])
                    w[i * n + v] = 0;
        }
    }
    const double largest = oct_warp_suite_largest(w, 3 * n);
    for (size_t x = 0; x < 3 * n; x++)
        w[x] /= largest;
    return w;
}

/* dE of the engine's own E against its own force. */
static void test_gradient(void **state)
{
    static const uint32_t dims[3] = {14, 17, 20};
    static const double lambdas[] = {0, 5e-4, 0.3}, step = 4e-3;
    for (int l = 0; l < 3 && oct_warp_suite_has_paper(); l++) {
        struct bench b;
        open_bench(&b, dims, 1.5, lambdas[l]);
        b.setup.params.profile = OCT_WARP_PAPER;
        struct oct_warp_suite_engine e = oct_warp_suite_open(&b.setup);
        float *force = oct_warp_suite_get(3 * b.n, sizeof(*force)), *u[2];
        double product = 0, energy[2];
        energy_at(&b, &e, b.u, force);
        double *w = make_direction(dims, force);
        for (int sign = 0; sign < 2; sign++) {
            u[sign] = oct_warp_suite_get(3 * b.n, sizeof(float));
            for (size_t x = 0; x < 3 * b.n; x++)
                u[sign][x] = (float)(b.of_u[x] + (sign ? step : -step) * w[x]);
        }
        for (size_t x = 0; x < 3 * b.n; x++) /* as far as f32 moved */
            product += (double)force[x] * ((double)u[1][x] - (double)u[0][x]);
        float *other = oct_warp_suite_get(3 * b.n, sizeof(*other));
        for (int sign = 0; sign < 2; sign++)
            energy[sign] = energy_at(&b, &e, u[sign], other);
        const double off = (energy[1] - energy[0] + product) / product;
        printf("# lambda %g: dE %.6g, -f du %.6g, off by %.2g\n", lambdas[l], energy[1] - energy[0],
               -product, off);
        if (!(fabs(off) <= 1e-4))
            fail_msg("lambda %g: dE and -f du differ by %.3g of themselves", lambdas[l], off);
        for (int sign = 0; sign < 2; sign++)
            free(u[sign]);
        free(w);
        free(force);
        free(other);
        oct_warp_suite_close(&e);
        close_bench(&b);
    }
}

/* ---- steps of a level ---- */

struct course {
    const char *name;
    uint32_t dims[3];
    double spacing[3];
    double lambda, sigma, kappa, most_step, mean_length;
    unsigned iterations;
    bool is_masked, is_other; /* the volumes have nothing in common */
};

static uint8_t *make_mask(const uint32_t dims[3])
{
    const size_t n = (size_t)dims[0] * dims[1] * dims[2];
    uint8_t *mask = oct_warp_suite_get(n, 1);
    for (size_t v = 0; v < n; v++)
        mask[v] = v % dims[2] < dims[2] / 2 || v / dims[2] % dims[1] % 5 > 1;
    return mask;
}

static void compare_course(const struct course *c, const struct oct_warp_level *wanted,
                           const struct oct_warp_level *level, double away)
{
    printf("# %s: %u steps, %u halvings, E %.4g to %.4g, min J %.3f, u within %.2g\n", c->name,
           wanted->iterations, wanted->halvings, wanted->energy_first, wanted->energy,
           wanted->least_jacobian, away);
    assert_int_equal(level->factor, 1);
    assert_int_equal(level->iterations, wanted->iterations);
    assert_int_equal(level->halvings, wanted->halvings);
    if (!(away <= 1e-3))
        fail_msg("%s: displacements within %.3g voxel of the oracle's", c->name, away);
    const double pairs[][2] = {{level->energy_first, wanted->energy_first},
                               {level->energy, wanted->energy},
                               {level->ssd_first, wanted->ssd_first},
                               {level->ssd, wanted->ssd},
                               {level->least_jacobian, wanted->least_jacobian}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (!(fabs(pairs[i][0] - pairs[i][1]) <= 0.005 * fabs(pairs[i][1])))
            fail_msg("%s: number %zu of the level is %.6g, not %.6g", c->name, i, pairs[i][0],
                     pairs[i][1]);
}

static void run_course(const struct course *c)
{
    const struct oct_warp_phantom_setup phantom = {
        .dims = {c->dims[0], c->dims[1], c->dims[2]},
        .spacing = {c->spacing[0], c->spacing[1], c->spacing[2]},
        .mean_length = c->mean_length,
        .noise = 0.02,
        .seed = 3,
        .other_seed = c->is_other ? 4 : 0};
    struct oct_warp_phantom pair;
    oct_warp_phantom_make(&phantom, &pair);
    const size_t n = oct_warp_n_voxels(&pair.grid);
    struct oct_warp_setup setup = oct_warp_suite_setup(&pair.grid);
    oct_warp_suite_one_level(&setup.params, c->iterations);
    setup.params.lambda = c->lambda;
    setup.params.sigma = c->sigma;
    setup.params.kappa = c->kappa;
    setup.params.most_step = c->most_step;
    uint8_t *mask = c->is_masked ? make_mask(c->dims) : NULL;
    float *u = oct_warp_suite_get(3 * n, sizeof(*u));
    double *wanted = oct_warp_suite_get(3 * n, sizeof(*wanted));
    struct oct_warp_oracle oracle = oct_warp_suite_oracle(&setup, pair.fixed, pair.moving, mask);
    struct oct_warp_level level;
    struct oct_warp_report report;
    oct_warp_oracle_level(&oracle, c->iterations, wanted, &level);
    oct_warp_suite_solve(&setup, pair.fixed, pair.moving, mask, u, &report);
    assert_int_equal(report.n_levels, 1);
    compare_course(c, &level, &report.level[0], oct_warp_suite_away(u, wanted, 3 * n));
    oct_warp_suite_finish(&oracle);
    oct_warp_phantom_finish(&pair);
    free(mask);
    free(u);
    free(wanted);
}

static const struct course courses[] = {
    {"one step", {24, 22, 37}, {0}, 5e-4, 3, 1, 0.5, 1, 1, false, false},
    {"steps", {24, 22, 37}, {0}, 5e-4, 3, 1, 0.5, 1, 8, false, false},
    {"a stiff map", {20, 23, 24}, {0}, 0.05, 2, 1, 0.5, 1, 8, false, false},
    {"stiffer than the pictures", {20, 23, 24}, {0}, 1, 1.5, 1, 0.5, 1.2, 6, false, true},
    {"kappa 0, short steps", {20, 23, 24}, {0}, 5e-4, 2, 0, 0.1, 1, 6, false, false},
    {"kappa 10", {20, 23, 24}, {0}, 5e-4, 2, 10, 0.5, 1, 8, false, false},
    {"a mask", {20, 23, 24}, {0}, 5e-4, 2, 1, 0.5, 1, 8, true, false},
    {"coarse B-scans", {12, 24, 26}, {3, 1, 1}, 5e-4, 3, 1, 0.5, 1, 8, false, false},
    {"coarse A-lines", {24, 11, 26}, {1.5, 3.75, 1.5}, 0.01, 3, 1, 0.5, 1, 8, false, false},
    {"coarse depth", {24, 22, 13}, {5, 5, 10}, 5e-4, 3, 1, 0.5, 1, 8, true, false},
    {"steps that raise E", {14, 15, 18}, {0}, 1, 0.5, 0, 1, 0, 12, false, true},
    {"steps that would fold", {14, 15, 18}, {0}, 1e-6, 1, 0, 1, 0, 8, false, true},
};

static void test_steps(void **state)
{
    for (size_t i = 0; i < sizeof(courses) / sizeof(courses[0]); i++)
        run_course(&courses[i]);
}

int oct_warp_suite_run_parts(void)
{
    const struct CMUnitTest tests[] = {
        {"T(h) and J are the oracle's", test_fields, NULL, NULL, NULL},
        {"far beyond the border T is that of the border", test_far, NULL, NULL, NULL},
        {"E and both forces are the oracle's", test_forces, NULL, NULL, NULL},
        {"the Lagrangian force is the gradient of E", test_gradient, NULL, NULL, NULL},
        {"steps of a level are the oracle's", test_steps, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests_name("parts of a registration", tests, NULL, NULL);
}

int oct_warp_suite_run(const struct oct_warp_suite *suite)
{
    oct_warp_suite_use(suite);
    return oct_warp_suite_run_parts() + oct_warp_suite_run_solves() + oct_warp_suite_run_ends();
}
