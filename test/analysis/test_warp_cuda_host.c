/* The CUDA engine of the registration of two volumes on the stand-in for CUDA (test/cuda_host/):
 * its numbers beside the CPU's, and its memory. What engines must stand, and what becomes of the
 * calls when the device fails or hangs: test_warp_failover_cuda_host.c. */
#include "analysis/warp/pair.h"
#include "test/rig/cuda_faults.h"
#include "test/rig/tap.h"
#include "test/rig/warp_suite_rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the same numbers as the CPU's ---- */

struct pair {
    const char *name;
    uint32_t dims[3];
    double spacing[3];
    bool has_mask;
    double sigma, most_step; /* most_step 0: the default */
    unsigned n_levels, factor[OCT_WARP_MOST_LEVELS], iterations[OCT_WARP_MOST_LEVELS];
};

static const struct pair pairs[] = {
    {"three levels", {18, 21, 24}, {1, 1, 1}, false, 3, 0, 0, {0}, {0}},
    {"a mask", {20, 24, 22}, {1, 1, 1}, true, 3, 0, 0, {0}, {0}},
    {"spacing", {12, 17, 40}, {4, 2, 1}, false, 3, 0, 0, {0}, {0}},
    {"more than a tile", {9, 11, 300}, {1, 1, 1}, false, 2, 0, 1, {1}, {3}},
    {"A-lines beyond a tile", {5, 140, 33}, {1, 1, 1}, false, 1, 0, 1, {1}, {3}},
    {"B-scans beyond a tile", {140, 5, 33}, {1, 1, 1}, false, 1, 0, 1, {1}, {3}},
    {"the widest G", {12, 40, 35}, {1, 1, 1}, false, 32, 0, 1, {1}, {4}},
    {"the narrowest G", {16, 19, 22}, {1, 1, 1}, false, 0.5, 0, 2, {2, 1}, {5, 5}},
    {"ends at factor 2", {20, 23, 22}, {1, 1, 1}, true, 3, 0, 2, {5, 2}, {9, 9}},
    {"steps that are cut", {16, 19, 22}, {2, 1, 1}, false, 3, 0.05, 1, {2}, {12}},
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
    for (int i = 0; i < 3; i++)
        of.mean_length = fmin(of.mean_length, pair->dims[i] / 20.0);
    memcpy(of.dims, pair->dims, sizeof(of.dims));
    memcpy(of.spacing, pair->spacing, sizeof(of.spacing));
    oct_warp_phantom_make(&of, &s->phantom);
    if (pair->sigma > 16) { /* a G as wide as the volume moves it as a whole, or not at all */
        const size_t n = (size_t)pair->dims[0] * pair->dims[1] * pair->dims[2];
        memmove(s->phantom.moving + 1, s->phantom.moving, (n - 1) * sizeof(float));
    }
    s->setup = (struct oct_warp_setup){.grid = s->phantom.grid, .deadline_ms = PATIENCE_MS};
    struct oct_warp_params *p = &s->setup.params;
    oct_warp_params_default(p, OCT_WARP_OCTD, pair->dims);
    p->sigma = pair->sigma;
    if (pair->most_step > 0)
        p->most_step = pair->most_step;
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
        assert_true(most < 0.01 && longest > 0.03);
        assert_int_equal(reports[0].n_levels, reports[1].n_levels);
        for (unsigned i = 0; i < reports[0].n_levels; i++)
            compare_levels(&reports[0].level[i], &reports[1].level[i]);
        scene_finish(&s);
    }
}

/* ---- what a caller sees ---- */

/* As much memory as it says, and no engine where there is less. */
static void test_memory(void **state)
{
    struct oct_warp_setup setup = {.grid = {.dims = {40, 41, 44}, .spacing = {1, 1, 1}},
                                   .deadline_ms = PATIENCE_MS};
    const uint64_t n = oct_warp_n_voxels(&setup.grid);
    struct oct_error err = {.text = ""};
    struct oct_warp_engine *engine;
    oct_warp_params_default(&setup.params, OCT_WARP_OCTD, setup.grid.dims);
    const uint64_t bytes = oct_warp_cuda.bytes(&setup);
    assert_true(bytes <= 14 * n * sizeof(float));
    cuda_host_reset(1, MEMORY);
    engine = create(&oct_warp_cuda, &setup);
    const size_t pinned = n * sizeof(float), taken = cuda_host_bytes_in_use();
    assert_true(taken >= bytes + pinned && taken <= bytes + pinned + 8192);
    oct_warp_cuda.destroy(engine);
    check_nothing_left();
    cuda_host_reset(1, bytes - 1);
    assert_int_equal(oct_warp_cuda.create(&engine, &setup, &err), OCT_E_NO_MEMORY);
    assert_null(engine);
    assert_non_null(strstr(err.text, "40 x 41 x 44 voxels take 4 MB, of which 3 MB"));
    check_nothing_left();
    setup.params.profile = OCT_WARP_PAPER; /* the CPU's alone */
    cuda_host_reset(1, MEMORY);
    assert_int_equal(oct_warp_cuda.create(&engine, &setup, &err), OCT_E_ARG);
    assert_null(engine);
    cuda_host_reset(1, MEMORY);
}

static void test_no_device(void **state)
{
    struct oct_warp_setup setup = {.grid = {.dims = {8, 9, 10}, .spacing = {1, 1, 1}},
                                   .deadline_ms = PATIENCE_MS};
    struct oct_error err = {.text = ""};
    struct oct_warp_engine *engine;
    oct_warp_params_default(&setup.params, OCT_WARP_OCTD, setup.grid.dims);
    setup.gpus = "3";
    assert_int_equal(oct_warp_cuda.create(&engine, &setup, &err), OCT_E_CONFIG);
    assert_null(engine);
    setup.gpus = NULL;
    cuda_host_remove_driver();
    assert_int_equal(oct_warp_cuda.create(&engine, &setup, &err), OCT_E_BACKEND);
    assert_null(engine);
    cuda_host_reset(2, MEMORY);
    setup.gpus = "1,0";
    engine = create(&oct_warp_cuda, &setup);
    assert_true(cuda_host_n_launches(1) > 0);
    assert_int_equal(cuda_host_n_launches(0), 0);
    oct_warp_cuda.destroy(engine);
    check_nothing_left();
    cuda_host_reset(1, MEMORY);
}

/* ---- the whole map ---- */

/* B-scans 12 on of FIXED are what lay 4 B-scans before: the map jumps back there. */
static void test_map(void **state)
{
    static const struct pair pair = {"", {24, 24, 32}, {1, 1, 1}, false, 4, 0, 0, {0}, {0}};
    const size_t plane = (size_t)24 * 32;
    struct scene s;
    struct oct_warp_pair made;
    struct oct_error err = {.text = ""};
    cuda_host_reset(1, MEMORY);
    scene_make(&s, &pair);
    memmove(s.phantom.fixed + 12 * plane, s.phantom.fixed + 8 * plane, 12 * plane * sizeof(float));
    const struct oct_warp_pair_setup setup = {
        .solver = s.setup, .model = OCT_WARP_BOTH, .backend = "cuda"};
    if (oct_warp_pair_register(&setup, s.phantom.fixed, s.phantom.moving, NULL, &made, &err))
        fail_msg("%s", err.text);
    double *u = oct_warp_suite_double(made.displacement, 3 * s.n);
    double *j = malloc(s.n * sizeof(double));
    assert_true(j && strcmp(made.running, "cuda") == 0 && !made.is_rigid);
    oct_warp_oracle_jacobian(pair.dims, u, j);
    assert_true(oct_warp_suite_away(made.jacobian, j, s.n) < 1e-4);
    assert_true(made.change.folded > 0.01 && made.change.least < -0.5);
    oct_warp_pair_finish(&made);
    scene_finish(&s);
    free(u);
    free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"displacements are those of the CPU", test_twins, NULL, NULL, NULL},
        {"J is that of the whole map", test_map, NULL, NULL, NULL},
        {"memory is what it says, or there is no engine", test_memory, NULL, NULL, NULL},
        {"without its device there is no engine", test_no_device, NULL, NULL, NULL},
    };
    cuda_host_reset(1, MEMORY);
    return cmocka_run_group_tests_name("warp on CUDA", tests, NULL, NULL);
}
