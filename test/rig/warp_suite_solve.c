/* Registrations whose outcome is known. */
#include "test/rig/tap.h"
#include "test/rig/warp_suite_rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_small(void)
{
    return oct_warp_suite_now()->depth == 0;
}

/* Voxels of the border in which the truth asks for what the moving volume does not hold. */
#define MARGIN 4u

static void check_error(const char *name, const struct oct_warp_phantom *pair, const float *u,
                        double mean, double p95)
{
    struct oct_warp_phantom_error e;
    oct_warp_phantom_judge(&pair->grid, pair->displacement, u, MARGIN, &e);
    const struct oct_warp_suite_change change = oct_warp_suite_look(pair->grid.dims, u);
    printf("# %s: off by %.4f in the mean, p95 %.4f, most %.3f; min J %.3f\n", name, e.mean, e.p95,
           e.most, change.least);
    if (!(e.mean <= mean && e.p95 <= p95))
        fail_msg("%s: off by %.4f in the mean and %.4f at p95; %.4f and %.4f are the most", name,
                 e.mean, e.p95, mean, p95);
    if (!(change.least > 0))
        fail_msg("%s: min J is %.3g", name, change.least);
}

/* ---- accuracy ---- */

static void register_phantom(uint32_t side, uint64_t seed, double mean, double p95)
{
    struct oct_warp_phantom_setup phantom;
    struct oct_warp_phantom pair;
    struct oct_warp_report report;
    char name[64];
    oct_warp_phantom_default(&phantom, side);
    phantom.seed = seed;
    phantom.mean_length *= side < 64 ? side / 64.0 : 1;
    oct_warp_phantom_make(&phantom, &pair);
    const struct oct_warp_setup setup = oct_warp_suite_setup(&pair.grid);
    float *u = oct_warp_suite_get(3 * oct_warp_n_voxels(&pair.grid), sizeof(*u));
    oct_warp_suite_solve(&setup, pair.fixed, pair.moving, NULL, u, &report);
    snprintf(name, sizeof(name), "%u^3, %.2g s", side, report.seconds);
    check_error(name, &pair, u, mean, p95);
    const struct oct_warp_level *last = &report.level[report.n_levels - 1];
    const double least = oct_warp_suite_look(pair.grid.dims, u).least;
    assert_true(fabs(last->least_jacobian - least) < 1e-3);
    assert_true(report.seconds > 0 && last->bytes > 0 && last->seconds <= report.seconds);
    free(u);
    oct_warp_phantom_finish(&pair);
}

static void test_accuracy(void **state)
{
    if (is_small()) {
        register_phantom(28, 1, 0.25, 0.55);
        return;
    }
    register_phantom(64, 1, 0.11, 0.21);
    register_phantom(64, 2, 0.11, 0.21);
    if (oct_warp_suite_now()->depth > 1)
        register_phantom(128, 1, 0.075, 0.14);
}

/* Sides that no factor divides, and levels that end above 1. */
static void test_levels(void **state)
{
    static const struct {
        const char *name;
        uint32_t dims[3];
        unsigned n_levels, factor[4], iterations[4];
        double mean, p95;
    } cases[] = {
        {"odd sides", {37, 35, 43}, 3, {4, 2, 1}, {100, 30, 10}, 0.2, 0.45},
        {"factors 3 and 1", {35, 37, 40}, 2, {3, 1}, {60, 15}, 0.2, 0.45},
        {"factor 2 alone", {37, 34, 35}, 1, {2}, {60}, 0.35, 0.75},
        {"factors 4 and 3", {47, 40, 43}, 2, {4, 3}, {60, 60}, 0.7, 1.5},
    };
    for (size_t i = 0; i < (is_small() ? 1 : sizeof(cases) / sizeof(cases[0])); i++) {
        const struct oct_warp_phantom_setup phantom = {
            .dims = {cases[i].dims[0], cases[i].dims[1], cases[i].dims[2]},
            .mean_length = 1,
            .noise = 0.02,
            .seed = 5};
        struct oct_warp_phantom pair;
        oct_warp_phantom_make(&phantom, &pair);
        struct oct_warp_setup setup = oct_warp_suite_setup(&pair.grid);
        setup.params.n_levels = cases[i].n_levels;
        memcpy(setup.params.factor, cases[i].factor, sizeof(cases[i].factor));
        memcpy(setup.params.iterations, cases[i].iterations, sizeof(cases[i].iterations));
        float *u = oct_warp_suite_get(3 * oct_warp_n_voxels(&pair.grid), sizeof(*u));
        oct_warp_suite_solve(&setup, pair.fixed, pair.moving, NULL, u, NULL);
        check_error(cases[i].name, &pair, u, cases[i].mean, cases[i].p95);
        free(u);
        oct_warp_phantom_finish(&pair);
    }
}

/* The same picture with voxels that are longer along one axis. */
static void test_spacing(void **state)
{
    static const double spacings[][3] = {{1, 1, 1}, {2, 1, 1}, {1, 2.5, 1}, {6, 6, 12}};
    const uint32_t side = is_small() ? 28 : 40;
    struct oct_warp_phantom_error first = {0};
    for (size_t i = 0; i < sizeof(spacings) / sizeof(spacings[0]); i++) {
        struct oct_warp_phantom_setup phantom = {
            .mean_length = 1.2 * side / 40, .noise = 0.02, .grain = 2, .seed = 6};
        struct oct_warp_phantom pair;
        struct oct_warp_phantom_error e;
        for (int a = 0; a < 3; a++) {
            const double least = fmin(spacings[i][0], fmin(spacings[i][1], spacings[i][2]));
            phantom.spacing[a] = spacings[i][a];
            phantom.dims[a] = (uint32_t)lround(side * least / spacings[i][a]);
        }
        oct_warp_phantom_make(&phantom, &pair);
        struct oct_warp_setup setup = oct_warp_suite_setup(&pair.grid);
        memcpy(setup.grid.spacing, spacings[i], sizeof(setup.grid.spacing));
        if (setup.params.factor[0] == 4) {
            setup.params.n_levels = 2;
            memcpy(setup.params.factor, (unsigned[4]){2, 1}, sizeof(setup.params.factor));
            memcpy(setup.params.iterations, (unsigned[4]){60, 20}, sizeof(setup.params.factor));
        }
        float *u = oct_warp_suite_get(3 * oct_warp_n_voxels(&pair.grid), sizeof(*u));
        oct_warp_suite_solve(&setup, pair.fixed, pair.moving, NULL, u, NULL);
        oct_warp_phantom_judge(&pair.grid, pair.displacement, u, 1, &e);
        printf("# voxels of %g x %g x %g: off by %.4f in the mean, p95 %.4f\n", spacings[i][0],
               spacings[i][1], spacings[i][2], e.mean, e.p95);
        if (i == 0)
            first = e;
        assert_true(oct_warp_suite_look(pair.grid.dims, u).least > 0);
        if (!(e.mean <= 2 * first.mean && e.p95 <= 2 * first.p95))
            fail_msg("%g x %g x %g: off by %.4f and %.4f, with voxels of one length %.4f and %.4f",
                     spacings[i][0], spacings[i][1], spacings[i][2], e.mean, e.p95, first.mean,
                     first.p95);
        free(u);
        oct_warp_phantom_finish(&pair);
    }
}

/* ---- no bias ---- */

static void test_null(void **state)
{
    static const double lambdas[] = {1e-4, 1e-3, 1e-2, 0.1};
    const struct oct_warp_phantom_setup phantom = {
        .dims = {is_small() ? 24 : 48, is_small() ? 25 : 48, is_small() ? 26 : 48},
        .noise = 0.02,
        .seed = 7};
    struct oct_warp_phantom pair;
    double before = INFINITY;
    oct_warp_phantom_make(&phantom, &pair);
    float *u = oct_warp_suite_get(3 * oct_warp_n_voxels(&pair.grid), sizeof(*u));
    for (int l = 0; l < 4; l++) {
        struct oct_warp_setup setup = oct_warp_suite_setup(&pair.grid);
        setup.params.lambda = lambdas[l];
        oct_warp_suite_solve(&setup, pair.fixed, pair.moving, NULL, u, NULL);
        const struct oct_warp_suite_change c = oct_warp_suite_look(pair.grid.dims, u);
        printf("# lambda %g: log J %.5f, sd %.4f, min J %.3f\n", lambdas[l], c.mean_log, c.sd_log,
               c.least);
        if (!(fabs(c.mean_log) <= 0.03))
            fail_msg("lambda %g: log J of a null pair is %.3g in the mean", lambdas[l], c.mean_log);
        if (!(c.sd_log < 0.95 * before))
            fail_msg("lambda %g: log J has a sd of %.4f, not below %.4f", lambdas[l], c.sd_log,
                     before);
        if (!(lambdas[l] < 5e-4 || c.sd_log <= 0.065))
            fail_msg("lambda %g: log J has a sd of %.4f", lambdas[l], c.sd_log);
        before = c.sd_log;
    }
    free(u);
    oct_warp_phantom_finish(&pair);
}

/* Mean |w(x) + u(x - w(x))|, farther than MARGIN from the border. */
static double inconsistency(const uint32_t dims[3], const float *u, const float *w)
{
    const size_t n = (size_t)dims[0] * dims[1] * dims[2];
    const struct oct_warp_grid grid = oct_warp_suite_grid(dims[0], dims[1], dims[2]);
    double *first = oct_warp_suite_double(u, 3 * n), *then = oct_warp_suite_double(w, 3 * n);
    double *both = oct_warp_suite_get(3 * n, sizeof(*both));
    float *left = oct_warp_suite_get(3 * n, sizeof(*left));
    float *zero = oct_warp_suite_get(3 * n, sizeof(*zero));
    struct oct_warp_phantom_error e;
    oct_warp_oracle_compose(dims, then, 1, first, both);
    for (size_t x = 0; x < 3 * n; x++)
        left[x] = (float)both[x];
    oct_warp_phantom_judge(&grid, zero, left, MARGIN, &e);
    free(first);
    free(then);
    free(both);
    free(left);
    free(zero);
    return e.mean;
}

static void test_order(void **state)
{
    const uint32_t side = is_small() ? 28 : 64;
    struct oct_warp_phantom_setup phantom;
    struct oct_warp_phantom pair;
    oct_warp_phantom_default(&phantom, side);
    phantom.seed = 2;
    phantom.mean_length *= side / 64.0;
    oct_warp_phantom_make(&phantom, &pair);
    const size_t n = oct_warp_n_voxels(&pair.grid);
    const struct oct_warp_setup setup = oct_warp_suite_setup(&pair.grid);
    float *u = oct_warp_suite_get(3 * n, sizeof(*u)), *w = oct_warp_suite_get(3 * n, sizeof(*w));
    oct_warp_suite_solve(&setup, pair.fixed, pair.moving, NULL, u, NULL);
    oct_warp_suite_solve(&setup, pair.moving, pair.fixed, NULL, w, NULL);
    const double orders[2] = {inconsistency(pair.grid.dims, u, w),
                              inconsistency(pair.grid.dims, w, u)};
    printf("# there and back: %.4f and %.4f voxel\n", orders[0], orders[1]);
    const double most = is_small() ? 0.16 : 0.11;
    assert_true(orders[0] <= most && orders[1] <= most);
    free(u);
    free(w);
    oct_warp_phantom_finish(&pair);
}

/* ---- folds ---- */

/* Every other pair has nothing in common, which asks for any deformation at all. */
static void test_folds(void **state)
{
    /* Of the few, some begin a level with a fold. */
    const unsigned first = is_small() ? 68 : 0, end = is_small() ? 76 : 100;
    double least = INFINITY, longest = 0;
    for (unsigned i = first; i < end; i++) {
        const struct oct_warp_phantom_setup phantom = {.dims = {16 + i % 7, 16 + i % 5, 16 + i % 9},
                                                       .mean_length = i % 2 ? 0 : 0.8,
                                                       .noise = 0.02,
                                                       .seed = 100 + i,
                                                       .other_seed = i % 2 ? 1000 + i : 0};
        struct oct_warp_phantom pair;
        oct_warp_phantom_make(&phantom, &pair);
        const size_t n = oct_warp_n_voxels(&pair.grid);
        struct oct_warp_setup setup = oct_warp_suite_setup(&pair.grid);
        setup.params.lambda = i % 4 < 2 ? 5e-4 : 1e-5;
        setup.params.sigma = i % 3 ? 3 : 1;
        float *u = oct_warp_suite_get(3 * n, sizeof(*u));
        oct_warp_suite_solve(&setup, pair.fixed, pair.moving, NULL, u, NULL);
        const double least_now = oct_warp_suite_look(pair.grid.dims, u).least;
        if (!(least_now > 0.099)) /* no step goes below 0.1, and no level begins below */
            fail_msg("pair %u: min J is %.3g", i, least_now);
        least = fmin(least, least_now);
        for (size_t x = 0; x < 3 * n; x++)
            longest = fmax(longest, fabs((double)u[x]));
        free(u);
        oct_warp_phantom_finish(&pair);
    }
    printf("# %u pairs: min J %.3f, displacements up to %.2f voxels\n", end - first, least,
           longest);
    assert_true(least < 0.11 && longest > 2); /* the threshold was of use */
}

/* ---- masks ---- */

static void test_masks(void **state)
{
    const uint32_t side = 36;
    const struct oct_warp_phantom_setup phantom = {
        .dims = {side, side, side}, .mean_length = 1, .noise = 0.02, .seed = 8};
    struct oct_warp_phantom pair;
    struct oct_warp_phantom_error clean, masked, spoilt;
    oct_warp_phantom_make(&phantom, &pair);
    const size_t n = oct_warp_n_voxels(&pair.grid);
    const struct oct_warp_setup setup = oct_warp_suite_setup(&pair.grid);
    float *u = oct_warp_suite_get(3 * n, sizeof(*u)), *v = oct_warp_suite_get(3 * n, sizeof(*v));
    uint8_t *mask = oct_warp_suite_get(n, 1);
    memset(mask, 1, n);
    oct_warp_suite_solve(&setup, pair.fixed, pair.moving, NULL, u, NULL);
    oct_warp_suite_solve(&setup, pair.fixed, pair.moving, mask, v, NULL);
    for (size_t x = 0; x < 3 * n; x++)
        assert_true(fabs((double)u[x] - (double)v[x]) < 1e-3);
    oct_warp_phantom_judge(&pair.grid, pair.displacement, u, MARGIN, &clean);
    for (uint32_t b = side / 3; b < side / 2; b++) /* tissue from four A-lines farther */
        for (uint32_t j = side / 3; j < 2 * side / 3; j++)
            for (uint32_t d = 0; d < side; d++) {
                const size_t at = ((size_t)b * side + j) * side + d;
                mask[at] = 0;
                pair.fixed[at] = pair.moving[at + (size_t)4 * side];
            }
    oct_warp_suite_solve(&setup, pair.fixed, pair.moving, NULL, u, NULL);
    oct_warp_phantom_judge(&pair.grid, pair.displacement, u, MARGIN, &spoilt);
    oct_warp_suite_solve(&setup, pair.fixed, pair.moving, mask, v, NULL);
    oct_warp_phantom_judge(&pair.grid, pair.displacement, v, MARGIN, &masked);
    printf("# off by %.4f; spoilt %.4f; spoilt and masked %.4f\n", clean.mean, spoilt.mean,
           masked.mean);
    assert_true(spoilt.mean > 1.3 * clean.mean);
    assert_true(masked.mean - clean.mean < 0.5 * (spoilt.mean - clean.mean));
    assert_true(oct_warp_suite_look(pair.grid.dims, v).least > 0);
    memset(mask, 0, n); /* nothing is compared: nothing moves */
    oct_warp_suite_solve(&setup, pair.fixed, pair.moving, mask, u, NULL);
    for (size_t x = 0; x < 3 * n; x++)
        assert_true(u[x] == 0);
    free(u);
    free(v);
    free(mask);
    oct_warp_phantom_finish(&pair);
}

/* ---- the paper's profile ---- */

static double ssd_of(const struct oct_warp_phantom *pair, const float *u)
{
    const struct oct_warp_setup setup = oct_warp_suite_setup(&pair->grid);
    struct oct_warp_oracle oracle = oct_warp_suite_oracle(&setup, pair->fixed, pair->moving, NULL);
    double *displacement = oct_warp_suite_double(u, 3 * oct_warp_n_voxels(&pair->grid)), ssd;
    oct_warp_oracle_energy(&oracle, displacement, &ssd);
    free(displacement);
    oct_warp_suite_finish(&oracle);
    return ssd;
}

/* A map so strong that the template is regridded: what is returned is the composition of all. */
static void test_paper(void **state)
{
    const uint32_t side = 24;
    const struct oct_warp_phantom_setup phantom = {
        .dims = {side, side, side}, .mean_length = side / 20.0, .noise = 0.01, .seed = 9};
    struct oct_warp_phantom pair;
    struct oct_warp_report report;
    if (!oct_warp_suite_has_paper())
        return;
    oct_warp_phantom_make(&phantom, &pair);
    const size_t n = oct_warp_n_voxels(&pair.grid);
    struct oct_warp_setup setup = oct_warp_suite_setup(&pair.grid);
    oct_warp_params_default(&setup.params, OCT_WARP_PAPER, pair.grid.dims);
    oct_warp_suite_one_level(&setup.params, 80);
    setup.params.lambda = 1e-5;
    float *u = oct_warp_suite_get(3 * n, sizeof(*u)), *zero = oct_warp_suite_get(3 * n, sizeof(*u));
    oct_warp_suite_solve(&setup, pair.fixed, pair.moving, NULL, u, &report);
    struct oct_warp_phantom_error e;
    oct_warp_phantom_judge(&pair.grid, pair.displacement, u, MARGIN, &e);
    const double left = ssd_of(&pair, u), first = ssd_of(&pair, zero);
    const struct oct_warp_level *last = &report.level[report.n_levels - 1];
    unsigned regrids = 0;
    for (unsigned l = 0; l < report.n_levels; l++)
        regrids += report.level[l].regrids;
    printf("# paper: %u regrids, min J %.3f of the truth %.3f, SSD %.4g to %.4g (%.4g), off by "
           "%.3f in the mean\n",
           regrids, oct_warp_suite_look(pair.grid.dims, u).least, pair.least_jacobian, first, left,
           last->ssd, e.mean);
    assert_true(regrids > 0);
    assert_true(oct_warp_suite_look(pair.grid.dims, u).least > 0);
    assert_true(left < 0.25 * first && e.mean < 0.3 * pair.mean_length);
    /* What the engine saw was resampled once more with each template. */
    assert_true(last->ssd < 1.8 * left && left < 1.3 * last->ssd);
    free(u);
    free(zero);
    oct_warp_phantom_finish(&pair);
}

int oct_warp_suite_run_solves(void)
{
    const struct CMUnitTest tests[] = {
        {"known deformations are found", test_accuracy, NULL, NULL, NULL},
        {"sides and factors of any size", test_levels, NULL, NULL, NULL},
        {"voxels that are longer along one axis", test_spacing, NULL, NULL, NULL},
        {"noise alone changes no volume", test_null, NULL, NULL, NULL},
        {"by either order", test_order, NULL, NULL, NULL},
        {"no fold in random pairs", test_folds, NULL, NULL, NULL},
        {"what is masked has no part", test_masks, NULL, NULL, NULL},
        {"the paper's profile composes what it regrids", test_paper, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests_name("registrations", tests, NULL, NULL);
}
