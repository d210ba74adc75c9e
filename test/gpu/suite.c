/* The engine suite on a real GPU (scripts/gpu-check): fused and plain kernels; and the analyses.
 * With "--small" only the contract's tests and a few pictures of nufft, small enough for
 * compute-sanitizer; with "--analyses" only the analyses, as far as they are small enough; with
 * "--flow" only flow; with "--probe" nothing but the search for a GPU. The last test breaks the
 * device for this process.
 *
 * Exit status: 0 passed, 1 failed, 3 no GPU answers. */
#include "kernels/engines.h"
#include "test/rig/cells_suite.h"
#include "test/rig/correlate_suite.h"
#include "test/rig/engine_suite.h"
#include "test/rig/flow_suite.h"
#include "test/rig/levelset_suite.h"
#include "test/rig/match_suite.h"
#include "test/rig/scale_task.h"
#include "test/rig/tap.h"
#include "test/rig/warp_suite.h"

#include "test/rig/engine_rig.h"

#include "kernels/device/cuda_device.h"
#include "pipeline/base/clock.h"

#include <stdio.h>
#include <string.h>

#ifdef OCT_TEST_GPU_CMOCKA_H

int oct_small_cmocka_run(const char *group, const struct CMUnitTest *tests, size_t n)
{
    volatile int n_failed = 0;
    printf("# %s\n1..%zu\n", group, n);
    for (volatile size_t i = 0; i < n; i++) {
        void *state = tests[i].initial_state;
        int how = setjmp(oct_small_cmocka_out);
        if (how == 0)
            tests[i].test_func(&state);
        n_failed += how == 1;
        printf("%sok %zu - %s%s\n", how == 1 ? "not " : "", (size_t)i + 1, tests[i].name,
               how == 2 ? " # SKIP" : "");
        fflush(stdout);
    }
    return n_failed;
}
#endif

/* Under compute-sanitizer a kernel takes many times longer. */
#define PATIENCE_MS 300000

void oct_gpu_poison(void); /* test/gpu/poison.cu */

/* A real device that fails in mid-flight: every job comes back in order, soon, and is either right
 * or lost; the engine then takes nothing more and can be destroyed. */
static void test_device_fails(void **state)
{
    enum { N = 4 };
    static const struct oct_scene_recipe recipe = {
        .name = "a device that fails", .n_samples = 832, .n_lines = 240, .crop_last = 1024};
    static const struct oct_engine_options options = {
        .cuda = "fused", .max_batch = 1, .n_streams = N};
    const struct oct_display display = {.log = true, .range = OCT_RANGE_MANUAL, .hi = 60};
    struct oct_scene scene;
    struct oct_rig rig;
    struct oct_slot slots[N], right;
    unsigned n_lost = 0, n_done = 0;
    assert_true(oct_scene_create(&scene, &recipe, 1));
    assert_true(oct_rig_open(&rig, &oct_engine_cuda, &options, &scene, OCT_SAMPLE_U8));
    oct_slot_open(&right, &rig);
    oct_rig_run(&rig, &scene, &display, &right);
    for (int i = 0; i < N; i++)
        oct_slot_open(&slots[i], &rig);
    const uint64_t begin_ns = oct_clock_ns();
    struct oct_raw_frame in = oct_rig_input(&scene);
    enum oct_err e = OCT_OK;
    for (int round = 0; round < 1000 && e != OCT_E_BACKEND; round++) {
        unsigned n = 0;
        if (round == 3)
            oct_gpu_poison();
        for (; n < N; n++) {
            struct oct_engine_job job = {.in = &in, .out = &slots[n].frame, .display = display};
            e = rig.ops->submit(rig.engine, &job, 1);
            if (e)
                break;
        }
        for (unsigned i = 0; i < n; i++) {
            struct oct_image_frame *done;
            assert_int_equal(rig.ops->collect(rig.engine, 10000000, &done), OCT_OK);
            assert_true(done == &slots[i].frame);
            n_lost += done->status == OCT_E_BACKEND;
            n_done += done->status == OCT_OK;
            if (done->status == OCT_OK)
                assert_int_equal(memcmp(done->pixels, right.frame.pixels, right.bytes), 0);
        }
    }
    assert_int_equal(e, OCT_E_BACKEND);
    assert_true(n_lost > 0 && n_done >= 2 * N);
    rig.ops->destroy(rig.engine);
    rig.engine = NULL;
    assert_true(oct_clock_ns() - begin_ns < 10000000000u);
    printf("# %u B-scans done, %u lost\n", n_done, n_lost);
    for (int i = 0; i < N; i++)
        oct_slot_close(&slots[i]);
    oct_slot_close(&right);
    oct_rig_close(&rig);
    oct_scene_finish(&scene);
}

/* A worker of an analysis, with a task of its own. */
static void test_tasks(void **state)
{
    enum { N = 100000 };
    static uint32_t in[N], out[N];
    const struct scale_setup setup = {.factor = 7, .n = N};
    struct oct_cuda_tasks *tasks;
    struct oct_error err;
    assert_int_equal(oct_cuda_tasks_create(&tasks, &scale_task_ops, NULL, PATIENCE_MS, &setup,
                                           sizeof(setup), &err),
                     OCT_OK);
    for (uint32_t round = 0; round < 5; round++) {
        struct scale_task task = {.in = in, .out = out};
        uint32_t sum = 0;
        for (uint32_t i = 0; i < N; i++)
            in[i] = round * 2654435761u + i;
        assert_int_equal(oct_cuda_tasks_do(tasks, &task, &err), OCT_OK);
        for (uint32_t i = 0; i < N; i++) {
            assert_int_equal(out[i], 7 * in[i]);
            sum += 7 * in[i];
        }
        assert_int_equal(task.sum, sum);
    }
    oct_cuda_tasks_destroy(tasks);
    assert_int_equal(scale_task_n_contexts(), 0);
}

/* What is small enough for compute-sanitizer. */
static const char *const few_nufft[] = {
    "nufft, steep k map of a line that fills the grid",
    "nufft, 4096 samples",
    "nufft, missing lines are dark without DC subtraction",
    NULL,
};

static int run_analyses(bool large)
{
    int n_failed = oct_correlate_suite_run(&oct_correlator_cuda, PATIENCE_MS, large);
    n_failed += oct_match_suite_run(&oct_matcher_cuda, PATIENCE_MS);
    n_failed += oct_cells_suite_run(&oct_cells_cuda_engine, PATIENCE_MS);
    n_failed += oct_flow_suite_run(PATIENCE_MS, 0, large);
    n_failed += oct_levelset_suite_run(&oct_levelset_cuda, PATIENCE_MS, large);
    const struct oct_warp_suite volumes = {
        .ops = &oct_warp_cuda, .deadline_ms = PATIENCE_MS, .depth = large ? 1 : 0};
    return n_failed + oct_warp_suite_run(&volumes);
}

int main(int argc, char **argv)
{
    static const struct oct_engine_options variants[] = {
        {.cuda = "auto", .deadline_ms = PATIENCE_MS},
        {.cuda = "plain", .max_batch = 4, .deadline_ms = PATIENCE_MS},
    };
    static const struct oct_engine_options flows[] = {
        {.cuda = "fused", .deadline_ms = PATIENCE_MS},
        {.cuda = "fused", .max_batch = 3, .n_streams = 5, .deadline_ms = PATIENCE_MS},
        {.cuda = "plain", .max_batch = 2, .deadline_ms = PATIENCE_MS},
    };
    const bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    const struct oct_suite pictures = {&oct_engine_cuda, variants, 2};
    const struct oct_suite flow = {&oct_engine_cuda, flows, 3};
    char why[256], name[128];
    if (oct_cuda_count(why, sizeof(why)) == 0) {
        printf("no GPU answers: %s\n", why);
        return 3;
    }
    if (argc > 1 && strcmp(argv[1], "--probe") == 0)
        return 0;
    if (oct_cuda_name(0, name, sizeof(name), NULL) == OCT_OK)
        printf("# %s; %s\n", name, oct_cuda_built_with());
    if (argc > 1 && strcmp(argv[1], "--analyses") == 0)
        return run_analyses(false) > 0;
    if (argc > 1 && strcmp(argv[1], "--flow") == 0)
        return oct_flow_suite_run(PATIENCE_MS, 0, true) > 0;
    int n_failed = small ? oct_suite_run_nufft(&pictures, few_nufft) : 0;
    n_failed += oct_suite_run_flow(&flow);
    const struct CMUnitTest tasks[] = {
        {"tasks of an analysis are done right", test_tasks, NULL, NULL, NULL},
    };
    n_failed += cmocka_run_group_tests_name("tasks", tasks, NULL, NULL);
    const struct CMUnitTest faults[] = {
        {"a device that fails in mid-flight is given up in order", test_device_fails, NULL, NULL,
         NULL},
    };
    if (!small) {
        n_failed += run_analyses(true);
        n_failed += oct_suite_run_pictures(&pictures);
        n_failed += oct_suite_run_nufft(&pictures, NULL);
        n_failed += cmocka_run_group_tests_name("faults", faults, NULL, NULL);
    }
    return n_failed > 0;
}
