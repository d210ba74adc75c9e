/* Memory of GPUs that is too little, played by the stand-in for CUDA (test/cuda_host/), whose plans
 * take work areas as cuFFT's do: all of it is asked for before anything is begun. */
#include "kernels/engines.h"
#include "test/cuda_host/cuda_host.h"
#include "test/rig/engine_rig.h"
#include "test/rig/tap.h"

#include <string.h>

#define MUCH ((size_t)1 << 30)
#define SLACK ((size_t)512 << 10) /* tables are counted generously */

static const struct oct_scene_recipe recipe = {
    .name = "memory", .n_samples = 120, .n_lines = 60, .crop_last = 90};
static const struct oct_engine_options fused = {.cuda = "fused", .max_batch = 2, .n_streams = 1};
static const struct oct_engine_options plain = {.cuda = "plain", .max_batch = 2, .n_streams = 2};
static const struct oct_scene_recipe nufft_recipe = {.name = "memory, nufft",
                                                     .n_samples = 2048,
                                                     .n_lines = 60,
                                                     .crop_last = 90,
                                                     .interpolation = OCT_INTERPOLATION_NUFFT};
static struct oct_scene scene;

static int make_scene(void **state)
{
    return oct_scene_create(&scene, &recipe, 5) ? 0 : 1;
}

static int make_nufft_scene(void **state)
{
    return oct_scene_create(&scene, &nufft_recipe, 5) ? 0 : 1;
}

static int free_scene(void **state)
{
    oct_scene_finish(&scene);
    return 0;
}

/* On a GPU with so much memory. in_use: what it takes where it starts; else the reason is in err,
 * and nothing is left. */
static enum oct_err try_engine(const struct oct_engine_options *options, size_t bytes,
                               size_t *in_use, struct oct_error *err)
{
    struct oct_rig rig = {.ops = &oct_engine_cuda};
    cuda_host_reset(1, bytes);
    *err = (struct oct_error){.text = ""};
    assert_int_equal(oct_scene_plan(&scene, OCT_SAMPLE_U8, &rig.plan, err), OCT_OK);
    enum oct_err e = rig.ops->create(&rig.engine, rig.plan, options, err);
    *in_use = cuda_host_bytes_in_use();
    oct_rig_close(&rig);
    assert_int_equal(cuda_host_bytes_in_use(), 0);
    assert_int_equal(cuda_host_n_objects(), 0);
    return e;
}

/* Whatever is missing, the check at the start finds it, and not the allocation that fails. */
static void check_limits(const struct oct_engine_options *options)
{
    struct oct_error err;
    size_t needed, in_use;
    assert_int_equal(try_engine(options, MUCH, &needed, &err), OCT_OK);
    for (unsigned part = 1; part <= 16; part++) {
        assert_int_equal(try_engine(options, needed / 16 * part - 4096, &in_use, &err),
                         OCT_E_NO_MEMORY);
        assert_non_null(strstr(err.text, "too little memory"));
        assert_non_null(strstr(err.text, "MiB wanted"));
        assert_non_null(strstr(err.text, "MiB free of"));
    }
    assert_int_equal(try_engine(options, needed + SLACK, &in_use, &err), OCT_OK);
}

static void test_fused(void **state)
{
    check_limits(&fused);
}

static void test_plain(void **state)
{
    check_limits(&plain);
}

static void test_message(void **state)
{
    struct oct_error err;
    size_t in_use;
    assert_int_equal(try_engine(&plain, (size_t)1 << 20, &in_use, &err), OCT_E_NO_MEMORY);
    /* 60 lines, 2 streams: 2 * 60 * 2048 * 28 bytes come out of the three transforms */
    assert_non_null(strstr(err.text, "(7 MiB of it for cuFFT itself) for 2 streams of 2 B-scans"));
    assert_int_equal(try_engine(&fused, (size_t)1 << 18, &in_use, &err), OCT_E_NO_MEMORY);
    assert_null(strstr(err.text, "cuFFT"));
}

/* cuFFT's answer is no promise. */
static void test_surplus(void **state)
{
    struct oct_error err;
    size_t needed, in_use;
    assert_int_equal(try_engine(&plain, MUCH, &needed, &err), OCT_OK);
    cuda_host_set_cufft_surplus((size_t)1 << 20);
    assert_int_equal(try_engine(&plain, needed + SLACK, &in_use, &err), OCT_E_NO_MEMORY);
    assert_non_null(strstr(err.text, "cuFFT: no room for"));
    assert_non_null(strstr(err.text, "MiB free, for 60 lines of"));
    cuda_host_set_cufft_surplus(0);
}

/* One transform, which gives out P1 points a line. */
static void test_nufft_message(void **state)
{
    struct oct_error err;
    size_t in_use;
    assert_int_equal(try_engine(&plain, (size_t)1 << 20, &in_use, &err), OCT_E_NO_MEMORY);
    /* 60 lines, 2 streams: 2 * 60 * 2048 * 8 bytes */
    assert_non_null(strstr(err.text, "(2 MiB of it for cuFFT itself) for 2 streams of 2 B-scans"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"fused kernels: whatever memory is missing is found at start", test_fused, NULL, NULL,
         NULL},
        {"plain kernels: whatever memory is missing is found at start", test_plain, NULL, NULL,
         NULL},
        {"the message holds the sizes, cuFFT's too", test_message, NULL, NULL, NULL},
        {"a work area larger than cuFFT said is an error with its size", test_surplus, NULL, NULL,
         NULL},
    };
    const struct CMUnitTest of_nufft[] = {
        {"nufft, fused kernels: whatever memory is missing is found at start", test_fused, NULL,
         NULL, NULL},
        {"nufft, plain kernels: whatever memory is missing is found at start", test_plain, NULL,
         NULL, NULL},
        {"nufft has one transform of cuFFT", test_nufft_message, NULL, NULL, NULL},
    };
    int n_failed = cmocka_run_group_tests_name("memory of GPUs", tests, make_scene, free_scene);
    n_failed += cmocka_run_group_tests_name("memory of GPUs, nufft", of_nufft, make_nufft_scene,
                                            free_scene);
    return n_failed > 0;
}
