/* The GPU benchmark's logic, run at a small size on the stand-in for CUDA: its figures mean nothing
 * there, but every step is taken, and wrong pictures stop it. */
#include "test/cuda_host/cuda_host.h"
#include "test/rig/tap.h"

#include "config/config.h"
#include "tools/bench/cuda.h"
#include "tools/commands.h"

#include <stdio.h>
#include <string.h>

#define MEMORY ((size_t)64 << 20) /* a quarter of it is copied to and fro */

static void make_scene(struct oct_bench_scene *scene, enum oct_interpolation interpolation)
{
    const struct oct_chain chain = {.interpolation = interpolation};
    struct oct_geometry geometry;
    struct oct_calibration cal = {.n_wavelengths = 0};
    *scene = (struct oct_bench_scene){.plan = NULL};
    must(oct_geometry_init(&geometry, 200, 2, 1, 0, 100, OCT_SAMPLE_U8, &failure));
    assert_int_equal(oct_bench_calibration(&cal, 200), OCT_OK);
    must(oct_plan_create(&scene->plan, &geometry, &cal, &chain, &failure));
    oct_calibration_finish(&cal);
    must(oct_bench_scene_fill(scene, &failure));
}

TEST(a_row_has_every_figure_for_both_variants)
{
    static const struct {
        const char *kernels, *name;
        enum oct_interpolation interpolation;
        enum oct_range range;
    } of[] = {{"fused", "linear", OCT_INTERPOLATION_LINEAR, OCT_RANGE_MANUAL},
              {"fused", "cubic", OCT_INTERPOLATION_CUBIC, OCT_RANGE_PERCENTILE},
              {"fused", "nufft", OCT_INTERPOLATION_NUFFT, OCT_RANGE_MANUAL},
              {"plain", "nufft", OCT_INTERPOLATION_NUFFT, OCT_RANGE_MANUAL},
              {"plain", "linear", OCT_INTERPOLATION_LINEAR, OCT_RANGE_AUTO}};
    enum { N = sizeof(of) / sizeof(of[0]) };
    struct oct_bench_cuda_row rows[N];
    struct oct_bench_scene scene;
    cuda_host_reset(1, MEMORY);
    for (int i = 0; i < N; i++) {
        struct oct_error err = {.text = ""};
        struct oct_engine_options options = {
            .cuda = of[i].kernels, .max_batch = 2, .n_streams = 2, .deadline_ms = 60000};
        make_scene(&scene, of[i].interpolation);
        enum oct_err e = oct_bench_cuda(&scene, &options, of[i].range, 0.1, &rows[i], &err);
        if (e)
            fail_msg("%s", err.text);
        const struct oct_bench_cuda_row row = rows[i];
        assert_string_equal(row.kernels, of[i].kernels);
        assert_string_equal(row.interpolation, of[i].name);
        assert_true(row.samples == 200 && row.lines == 2 && row.depth == 100);
        assert_true(row.batch == 2 && row.streams == 2);
        assert_true(row.error <= 1);
        assert_true(row.lines_per_s > 1 && row.lines_per_s < row.copy_lines_per_s);
        assert_true(row.device_bytes_per_s > 1);
        for (int s = 0; s < 3; s++)
            assert_true(row.stage_us[s] > 0 && row.stage_us[s] < 1e7);
        assert_true(row.latency_us > 1 && row.latency_us < 1e7);
        assert_int_equal(cuda_host_bytes_in_use(), 0);
        oct_bench_scene_finish(&scene);
    }
    /* nufft stands beside the row that differs in nothing else */
    for (int i = 0; i < N; i++)
        assert_ptr_equal(oct_bench_cuda_linear(rows, N, &rows[i]), i == 2 ? &rows[0] : NULL);
}

TEST(wrong_pictures_are_not_timed)
{
    struct oct_bench_scene scene;
    struct oct_bench_cuda_row row;
    struct oct_engine_options options = {.cuda = "fused", .max_batch = 1, .n_streams = 1};
    cuda_host_reset(1, MEMORY);
    make_scene(&scene, OCT_INTERPOLATION_LINEAR);
    /* after eleven at the start and five for the first picture: the chain of the one checked */
    cuda_host_set_fault(CUDA_HOST_KERNEL_SKIPPED, 18);
    must_fail(oct_bench_cuda(&scene, &options, OCT_RANGE_MANUAL, 0.2, &row, &failure),
              OCT_E_BACKEND, "grey levels: not timed");
    oct_bench_scene_finish(&scene);
    assert_int_equal(cuda_host_bytes_in_use(), 0);
}

TEST(a_cuda_call_that_fails_ends_the_benchmark_with_a_reason)
{
    struct oct_bench_scene scene;
    struct oct_bench_cuda_row row;
    struct oct_engine_options options = {
        .cuda = "fused", .max_batch = 2, .n_streams = 2, .deadline_ms = 60000};
    make_scene(&scene, OCT_INTERPOLATION_LINEAR);
    for (unsigned n = 1; n < 160; n += 9) {
        struct oct_error err = {.text = ""};
        cuda_host_reset(1, MEMORY);
        cuda_host_set_fault(CUDA_HOST_CALL_FAILS, n);
        const enum oct_err e = oct_bench_cuda(&scene, &options, OCT_RANGE_MANUAL, 0.1, &row, &err);
        assert_true(e == OCT_E_BACKEND || e == OCT_E_NO_MEMORY);
        assert_true(strlen(err.text) > 0);
        assert_int_equal(cuda_host_bytes_in_use(), 0);
    }
    oct_bench_scene_finish(&scene);
}

TEST(octctl_bench_backend_cuda_runs_and_fails_without_a_driver)
{
    struct oct_config config;
    char name[] = "bench", seconds[] = "--seconds", least[] = "0.1", json[] = "--json";
    char *argv[2][5] = {{name, seconds, least, json, NULL}, {name, seconds, least, json, NULL}};
#if defined(__SANITIZE_THREAD__)
    skip(); /* the command's own deadline is that of a GPU, not of threads under a sanitizer */
#endif
    cuda_host_reset(1, MEMORY);
    oct_config_init(&config);
    must(oct_config_set(&config, "pipeline.backend", "cuda", "test", &failure));
    must(oct_config_set(&config, "scan.lines", "2", "test", &failure));
    must(oct_config_set(&config, "pipeline.batch", "1", "test", &failure));
    /* A busy machine may miss the command's deadline. */
    int status = 1;
    for (unsigned tries = 0; tries < 5 && status; tries++) {
        char *again[5];
        memcpy(again, argv[0], sizeof(again));
        cuda_host_reset(1, MEMORY);
        status = oct_command_bench.run(&config, 4, again);
    }
    assert_int_equal(status, 0);
    cuda_host_remove_driver();
    assert_int_equal(oct_command_bench.run(&config, 4, argv[1]), 1);
}
