/* The CUDA engine of the registration of two volumes on the stand-in for CUDA (test/cuda_host/):
 * its numbers, and what becomes of them when the device is small, fails or hangs. */
#include "analysis/warp/solver.h"
#include "test/rig/cuda_rig.h"
#include "test/rig/tap.h"
#include "test/rig/warp_phantom.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the same numbers as the CPU's ---- */

struct pair {
    const char *name;
    uint32_t dims[3];
    double spacing[3];
    enum oct_warp_profile profile;
    bool has_mask;
    double sigma;
    unsigned n_levels, factor[OCT_WARP_MOST_LEVELS], iterations[OCT_WARP_MOST_LEVELS];
};

static const struct pair pairs[] = {
    {"three levels", {18, 21, 24}, {1, 1, 1}, OCT_WARP_OCTD, false, 3, 0, {0}, {0}},
    {"a mask", {20, 24, 22}, {1, 1, 1}, OCT_WARP_OCTD, true, 3, 0, {0}, {0}},
    {"spacing", {12, 17, 40}, {4, 2, 1}, OCT_WARP_OCTD, false, 3, 0, {0}, {0}},
    {"more than a tile", {9, 11, 300}, {1, 1, 1}, OCT_WARP_OCTD, false, 2, 1, {1}, {3}},
    {"A-lines beyond a tile", {5, 140, 33}, {1, 1, 1}, OCT_WARP_OCTD, false, 1, 1, {1}, {3}},
    {"B-scans beyond a tile", {140, 5, 33}, {1, 1, 1}, OCT_WARP_OCTD, false, 1, 1, {1}, {3}},
    {"the widest G", {12, 40, 35}, {1, 1, 1}, OCT_WARP_OCTD, false, 32, 1, {1}, {4}},
    {"the narrowest G", {16, 19, 22}, {1, 1, 1}, OCT_WARP_OCTD, false, 0.5, 2, {2, 1}, {5, 5}},
    {"ends at factor 2", {20, 23, 22}, {1, 1, 1}, OCT_WARP_OCTD, true, 3, 2, {5, 2}, {9, 9}},
    {"the paper's", {16, 17, 18}, {1, 1, 1}, OCT_WARP_PAPER, false, 3, 0, {0}, {0}},
    {"the paper's with mask and spacing",
     {16, 17, 18},
     {2, 1, 1},
     OCT_WARP_PAPER,
     true,
     2,
     2,
     {2, 1},
     {9, 9}},
};

/* A pair of volumes, an engine's setup, and room for what two engines make of it. */
struct scene {
    struct oct_warp_phantom phantom;
    struct oct_warp_setup setup;
    size_t n;
    uint8_t *mask;
    float *results[2]; /* [3][n] */
};

/* The mask leaves out a corner and cuts voxels of the levels in half. */
static void scene_make(struct scene *s, const struct pair *pair)
{
    struct oct_warp_phantom_setup of = {.mean_length = 1, .noise = 0.02, .seed = 3};
    memcpy(of.dims, pair->dims, sizeof(of.dims));
    memcpy(of.spacing, pair->spacing, sizeof(of.spacing));
    oct_warp_phantom_make(&of, &s->phantom);
    s->setup = (struct oct_warp_setup){.grid = s->phantom.grid, .deadline_ms = PATIENCE_MS};
    struct oct_warp_params *p = &s->setup.params;
    oct_warp_params_default(p, pair->profile, pair->dims);
    p->sigma = pair->sigma;
    if (pair->n_levels > 0) {
        p->n_levels = pair->n_levels;
        memcpy(p->factor, pair->factor, sizeof(p->factor));
        memcpy(p->iterations, pair->iterations, sizeof(p->iterations));
    }
    s->n = oct_warp_n_voxels(&s->setup.grid);
    s->mask = malloc(s->n);
    assert_non_null(s->mask);
    for (size_t i = 0; i < s->n; i++)
        s->mask[i] = i % pair->dims[2] > 5 || i / pair->dims[2] / pair->dims[1] < pair->dims[0] / 2;
    for (int i = 0; i < 2; i++) {
        s->results[i] = malloc(3 * s->n * sizeof(float));
        assert_non_null(s->results[i]);
    }
}

static void scene_finish(struct scene *s)
{
    oct_warp_phantom_finish(&s->phantom);
    free(s->mask);
    free(s->results[0]);
    free(s->results[1]);
}

static struct oct_warp_engine *create(const struct oct_warp_ops *ops,
                                      const struct oct_warp_setup *setup)
{
    struct oct_warp_engine *engine;
    struct oct_error err = {.text = ""};
    if (ops->create(&engine, setup, &err))
        fail_msg("%s", err.text);
    return engine;
}

static void solve(const struct oct_warp_ops *ops, const struct scene *s, bool has_mask,
                  float *result, struct oct_warp_report *report)
{
    struct oct_error err = {.text = ""};
    struct oct_warp_engine *engine = create(ops, &s->setup);
    if (ops->solve(engine, s->phantom.fixed, s->phantom.moving, has_mask ? s->mask : NULL, result,
                   report, NULL, &err))
        fail_msg("%s", err.text);
    ops->destroy(engine);
}

/* Rounding may decide about the last small steps of a level. */
static void compare_levels(const struct oct_warp_level *cpu, const struct oct_warp_level *cuda)
{
    assert_int_equal(cpu->factor, cuda->factor);
    assert_true(abs((int)cpu->iterations - (int)cuda->iterations) <= 2);
    assert_int_equal(cpu->regrids, cuda->regrids);
    assert_true(fabs(cpu->energy_first - cuda->energy_first) <= 1e-3 * cpu->energy_first);
    assert_true(fabs(cpu->energy - cuda->energy) <= 1e-3 * cpu->energy);
    assert_true(fabs(cpu->ssd - cuda->ssd) <= 1e-3 * cpu->ssd);
    assert_true(fabs(cpu->ssd_first - cuda->ssd_first) <= 1e-3 * cpu->ssd_first);
    assert_true(fabs(cpu->least_jacobian - cuda->least_jacobian) < 1e-2);
    assert_true(cuda->bytes > 0);
}

static void test_twins(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++) {
        struct oct_warp_report reports[2];
        struct scene s;
        double most = 0, longest = 0;
        scene_make(&s, &pairs[k]);
        solve(&oct_warp_cpu, &s, pairs[k].has_mask, s.results[0], &reports[0]);
        solve(&oct_warp_cuda, &s, pairs[k].has_mask, s.results[1], &reports[1]);
        check_nothing_left();
        for (size_t i = 0; i < 3 * s.n; i++) {
            longest = fmax(longest, fabs((double)s.results[0][i]));
            most = fmax(most, fabs((double)s.results[0][i] - (double)s.results[1][i]));
        }
        printf("# %s: %.2g voxels, the twins differ by %.2g at most\n", pairs[k].name, longest,
               most);
        assert_true(most < 0.01 && longest > 0.1);
        assert_int_equal(reports[0].n_levels, reports[1].n_levels);
        for (unsigned i = 0; i < reports[0].n_levels; i++)
            compare_levels(&reports[0].level[i], &reports[1].level[i]);
        scene_finish(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"displacements are those of the CPU", test_twins, NULL, NULL, NULL},
    };
    cuda_host_reset(1, MEMORY);
    return cmocka_run_group_tests_name("warp on CUDA", tests, NULL, NULL);
}
