/* The CUDA engine of the registration of two volumes on the stand-in for CUDA (test/cuda_host/):
 * its numbers, and what becomes of them when the device is small, fails or hangs. */
#include "analysis/warp/pair.h"
#include "test/rig/cuda_faults.h"
#include "test/rig/tap.h"
#include "test/rig/warp_oracle.h"
#include "test/rig/warp_phantom.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
#define STRIDE 25u
#else
#define STRIDE 7u
#endif

/* ---- the same numbers as the CPU's ---- */

struct pair {
    const char *name;
    uint32_t dims[3];
    double spacing[3];
    enum oct_warp_profile profile;
    bool has_mask;
    double sigma, most_step; /* most_step 0: the default */
    unsigned n_levels, factor[OCT_WARP_MOST_LEVELS], iterations[OCT_WARP_MOST_LEVELS];
};

static const struct pair pairs[] = {
    {"three levels", {18, 21, 24}, {1, 1, 1}, OCT_WARP_OCTD, false, 3, 0, 0, {0}, {0}},
    {"a mask", {20, 24, 22}, {1, 1, 1}, OCT_WARP_OCTD, true, 3, 0, 0, {0}, {0}},
    {"spacing", {12, 17, 40}, {4, 2, 1}, OCT_WARP_OCTD, false, 3, 0, 0, {0}, {0}},
    {"more than a tile", {9, 11, 300}, {1, 1, 1}, OCT_WARP_OCTD, false, 2, 0, 1, {1}, {3}},
    {"A-lines beyond a tile", {5, 140, 33}, {1, 1, 1}, OCT_WARP_OCTD, false, 1, 0, 1, {1}, {3}},
    {"B-scans beyond a tile", {140, 5, 33}, {1, 1, 1}, OCT_WARP_OCTD, false, 1, 0, 1, {1}, {3}},
    {"the widest G", {12, 40, 35}, {1, 1, 1}, OCT_WARP_OCTD, false, 32, 0, 1, {1}, {4}},
    {"the narrowest G", {16, 19, 22}, {1, 1, 1}, OCT_WARP_OCTD, false, 0.5, 0, 2, {2, 1}, {5, 5}},
    {"ends at factor 2", {20, 23, 22}, {1, 1, 1}, OCT_WARP_OCTD, true, 3, 0, 2, {5, 2}, {9, 9}},
    {"steps that are cut", {16, 19, 22}, {2, 1, 1}, OCT_WARP_OCTD, false, 3, 0.05, 1, {2}, {12}},
    {"the paper's", {16, 17, 18}, {1, 1, 1}, OCT_WARP_PAPER, false, 3, 0, 2, {2, 1}, {9, 4}},
    {"its mask", {16, 17, 18}, {2, 1, 1}, OCT_WARP_PAPER, true, 2, 0, 2, {2, 1}, {9, 9}},
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
    s->setup = (struct oct_warp_setup){.grid = s->phantom.grid, .deadline_ms = PATIENCE_MS};
    struct oct_warp_params *p = &s->setup.params;
    oct_warp_params_default(p, pair->profile, pair->dims);
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
        assert_true(most < 0.01 && longest > 0.03);
        assert_int_equal(reports[0].n_levels, reports[1].n_levels);
        for (unsigned i = 0; i < reports[0].n_levels; i++)
            compare_levels(&reports[0].level[i], &reports[1].level[i]);
        scene_finish(&s);
    }
}

/* ---- what a caller sees ---- */

static const struct pair small = {"small", {8, 9, 11}, {1, 1, 1}, OCT_WARP_OCTD, false,
                                  2,       0,          2,         {2, 1},        {3, 2}};
static const struct pair small_paper = {"small", {8, 9, 11}, {1, 1, 1}, OCT_WARP_PAPER, true,
                                        2,       0,          2,         {2, 1},         {2, 2}};

struct watch {
    unsigned n, stop_after;
    double energy;
    pthread_t thread;
};

static bool watch(void *context, unsigned level, unsigned factor, unsigned iteration,
                  unsigned iterations, double energy)
{
    struct watch *w = context;
    assert_true(pthread_equal(w->thread, pthread_self()));
    assert_int_equal(factor, level == 0 ? 2 : 1);
    assert_int_equal(iterations, level == 0 ? 3 : 2);
    assert_true(iteration >= 1 && iteration <= iterations);
    w->energy = energy;
    return ++w->n == w->stop_after;
}

/* Stopped in the middle, then done again by the same engine: as by a new one. */
static void test_progress(void **state)
{
    struct scene s;
    struct oct_warp_report report;
    struct oct_error err = {.text = ""};
    (void)state;
    scene_make(&s, &small);
    solve(&oct_warp_cuda, &s, false, s.results[0], NULL);
    struct oct_warp_engine *engine = create(&oct_warp_cuda, &s.setup);
    for (unsigned stop_after = 4; stop_after != 99; stop_after = stop_after == 4 ? 1 : 99) {
        struct watch w = {.stop_after = stop_after, .thread = pthread_self()};
        const struct oct_warp_progress progress = {watch, &w};
        assert_int_equal(oct_warp_cuda.solve(engine, s.phantom.fixed, s.phantom.moving, NULL,
                                             s.results[1], &report, &progress, &err),
                         OCT_E_CLOSED);
        assert_int_equal(w.n, stop_after);
    }
    struct watch w = {.thread = pthread_self()};
    const struct oct_warp_progress progress = {watch, &w};
    assert_int_equal(oct_warp_cuda.solve(engine, s.phantom.fixed, s.phantom.moving, NULL,
                                         s.results[1], &report, &progress, &err),
                     OCT_OK);
    assert_memory_equal(s.results[0], s.results[1], 3 * s.n * sizeof(float));
    assert_int_equal(w.n, report.level[0].iterations + report.level[1].iterations);
    assert_true(w.energy == report.level[1].energy);
    oct_warp_cuda.destroy(engine);
    check_nothing_left();
    scene_finish(&s);
}

/* As much memory as it says, and no engine where there is less. */
static void test_memory(void **state)
{
    struct oct_warp_setup setup = {.grid = {.dims = {40, 41, 44}, .spacing = {1, 1, 1}},
                                   .deadline_ms = PATIENCE_MS};
    const uint64_t n = oct_warp_n_voxels(&setup.grid);
    struct oct_error err = {.text = ""};
    struct oct_warp_engine *engine;
    (void)state;
    for (int profile = 0; profile < 2; profile++) {
        oct_warp_params_default(&setup.params, profile, setup.grid.dims);
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
    }
    cuda_host_reset(1, MEMORY);
}

static void test_no_device(void **state)
{
    struct oct_warp_setup setup = {.grid = {.dims = {8, 9, 10}, .spacing = {1, 1, 1}},
                                   .deadline_ms = PATIENCE_MS};
    struct oct_error err = {.text = ""};
    struct oct_warp_engine *engine;
    (void)state;
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

static void test_not_finite(void **state)
{
    struct scene s;
    struct oct_error err = {.text = ""};
    (void)state;
    scene_make(&s, &small);
    struct oct_warp_engine *engine = create(&oct_warp_cuda, &s.setup);
    for (int i = 0; i < 2; i++) {
        float *volume = i ? s.phantom.moving : s.phantom.fixed, was = volume[s.n - 1];
        volume[s.n - 1] = i ? INFINITY : NAN;
        assert_int_equal(oct_warp_cuda.solve(engine, s.phantom.fixed, s.phantom.moving, NULL,
                                             s.results[0], NULL, NULL, &err),
                         OCT_E_ARG);
        assert_non_null(strstr(err.text, i ? "1 values of the moving" : "1 values of the fixed"));
        volume[s.n - 1] = was;
    }
    oct_warp_cuda.destroy(engine);
    scene_finish(&s);
}

/* ---- the whole map ---- */

/* B-scans 12 on of FIXED are what lay 4 B-scans before: the map jumps back there. */
static void test_map(void **state)
{
    static const struct pair pair = {"", {24, 24, 32}, {1, 1, 1}, OCT_WARP_OCTD, false, 4, 0,
                                     0,  {0},          {0}};
    const size_t plane = (size_t)24 * 32;
    struct scene s;
    struct oct_warp_pair made;
    struct oct_error err = {.text = ""};
    (void)state;
    cuda_host_reset(1, MEMORY);
    scene_make(&s, &pair);
    memmove(s.phantom.fixed + 12 * plane, s.phantom.fixed + 8 * plane, 12 * plane * sizeof(float));
    const struct oct_warp_pair_setup setup = {
        .solver = s.setup, .model = OCT_WARP_BOTH, .backend = "cuda"};
    if (oct_warp_pair_register(&setup, s.phantom.fixed, s.phantom.moving, NULL, &made, &err))
        fail_msg("%s", err.text);
    double *u = malloc(3 * s.n * sizeof(double)), *j = malloc(s.n * sizeof(double));
    assert_true(u && j && strcmp(made.running, "cuda") == 0 && !made.is_rigid);
    for (size_t i = 0; i < 3 * s.n; i++)
        u[i] = (double)made.displacement[i];
    oct_warp_oracle_jacobian(pair.dims, u, j);
    for (size_t i = 0; i < s.n; i++)
        assert_true(fabs(j[i] - (double)made.jacobian[i]) < 1e-4);
    assert_true(made.change.folded > 0.01 && made.change.least < -0.5);
    oct_warp_pair_finish(&made);
    scene_finish(&s);
    free(u);
    free(j);
}

/* ---- faults ---- */

/* All calls of an engine; after OCT_E_BACKEND they are the CPU's. */
struct course {
    struct scene scene;
    bool has_mask;
    const struct oct_warp_ops *ops;
    struct oct_warp_engine *engine;
    float *wanted[2]; /* u; T(h), J and the force, [8][n] */
};

/* Into results[0] and results[1]. */
static enum oct_err call_all(struct course *c, struct oct_error *err)
{
    struct scene *s = &c->scene;
    double energy[3];
    enum oct_err e = c->ops->solve(c->engine, s->phantom.fixed, s->phantom.moving,
                                   c->has_mask ? s->mask : NULL, s->results[0], NULL, NULL, err);
    e = e ? e : c->ops->warp(c->engine, s->phantom.moving, s->results[0], s->results[1], err);
    e = e ? e : c->ops->jacobian(c->engine, s->results[0], s->results[1] + s->n, err);
    for (int i = 0; i < 2 && !e; i++)
        e = c->ops->force(c->engine, s->phantom.fixed, s->phantom.moving, s->results[0], i == 1,
                          energy, s->results[1] + (2 + 3 * i) * (int)s->n, err);
    return e;
}

static void prepare(struct course *c, const struct pair *pair)
{
    struct oct_error err;
    *c = (struct course){.has_mask = pair->has_mask};
    scene_make(&c->scene, pair);
    free(c->scene.results[1]);
    c->scene.results[1] = malloc(8 * c->scene.n * sizeof(float));
    c->wanted[0] = malloc(3 * c->scene.n * sizeof(float));
    c->wanted[1] = malloc(8 * c->scene.n * sizeof(float));
    assert_true(c->scene.results[1] && c->wanted[0] && c->wanted[1]);
    c->ops = &oct_warp_cpu;
    c->engine = create(c->ops, &c->scene.setup);
    assert_int_equal(call_all(c, &err), OCT_OK);
    c->ops->destroy(c->engine);
    memcpy(c->wanted[0], c->scene.results[0], 3 * c->scene.n * sizeof(float));
    memcpy(c->wanted[1], c->scene.results[1], 8 * c->scene.n * sizeof(float));
}

static void unprepare(struct course *c)
{
    scene_finish(&c->scene);
    free(c->wanted[0]);
    free(c->wanted[1]);
}

static const char *open_course(void *context, unsigned deadline_ms)
{
    struct course *c = context;
    struct oct_error err;
    c->scene.setup.deadline_ms = deadline_ms;
    c->ops = &oct_warp_cuda;
    const enum oct_err e = c->ops->create(&c->engine, &c->scene.setup, &err);
    if (e) {
        assert_true(e == OCT_E_BACKEND || e == OCT_E_NO_MEMORY);
        assert_null(c->engine);
        c->ops = &oct_warp_cpu;
        c->engine = create(c->ops, &c->scene.setup);
    }
    return c->ops->name;
}

static void check_near(const float *got, const float *wanted, size_t n, double most)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)wanted[i]) <= most))
            fail_msg("%g, not %g, at %zu", (double)got[i], (double)wanted[i], i);
}

/* Twice: what failed in the first call has its successor in the second. */
static const char *use_course(void *context)
{
    struct course *c = context;
    struct oct_error err = {.text = ""};
    for (int i = 0; i < 2; i++) {
        enum oct_err e = call_all(c, &err);
        if (e == OCT_E_BACKEND && c->ops == &oct_warp_cuda) {
            assert_int_equal(call_all(c, &err), OCT_E_BACKEND); /* it stays gone */
            c->ops->destroy(c->engine);
            c->ops = &oct_warp_cpu;
            c->engine = create(c->ops, &c->scene.setup);
            e = call_all(c, &err);
        }
        if (e)
            fail_msg("%s", err.text);
        check_near(c->scene.results[0], c->wanted[0], 3 * c->scene.n, 1e-3);
        check_near(c->scene.results[1], c->wanted[1], 8 * c->scene.n, 1e-3);
    }
    return c->ops->name;
}

static void close_course(void *context)
{
    struct course *c = context;
    c->ops->destroy(c->engine);
}

static void test_failures(void **state)
{
    struct course c;
    const struct oct_cuda_course course = {&c, open_course, use_course, close_course};
    (void)state;
    prepare(&c, &small);
    oct_cuda_course_run(&course, STRIDE);
    unprepare(&c);
    prepare(&c, &small_paper);
    oct_cuda_course_run(&course, 3 * STRIDE);
    unprepare(&c);
}

static void test_hanging(void **state)
{
    struct course c;
    const struct oct_cuda_course course = {&c, open_course, use_course, close_course};
    (void)state;
    prepare(&c, &small);
    oct_cuda_course_hang(&course, CUDA_HOST_WORK_HANGS, 1);
    oct_cuda_course_hang(&course, CUDA_HOST_WORK_HANGS, 40);
    oct_cuda_course_hang(&course, CUDA_HOST_CALL_BLOCKS, 9);
    oct_cuda_course_hang(&course, CUDA_HOST_CALL_LATE, 2);
    unprepare(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"displacements are those of the CPU", test_twins, NULL, NULL, NULL},
        {"J is that of the whole map", test_map, NULL, NULL, NULL},
        {"progress is told, and stops it", test_progress, NULL, NULL, NULL},
        {"memory is what it says, or there is no engine", test_memory, NULL, NULL, NULL},
        {"without its device there is no engine", test_no_device, NULL, NULL, NULL},
        {"what is not finite is refused", test_not_finite, NULL, NULL, NULL},
        {"whatever fails, the CPU can go on", test_failures, NULL, NULL, NULL},
        {"a device that hangs is given up in time", test_hanging, NULL, NULL, NULL},
    };
    cuda_host_reset(1, MEMORY);
    return cmocka_run_group_tests_name("warp on CUDA", tests, NULL, NULL);
}
