/* The CUDA engine of level sets on the stand-in for CUDA (test/cuda_host/): its numbers, and what
 * becomes of them when the device is small, fails or hangs. */
#include "test/rig/cuda_faults.h"
#include "test/rig/levelset_suite.h"
#include "test/rig/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
#define STRIDE 9u
#else
#define STRIDE 3u
#endif

enum { N_B = 7, N_J = 8, N_D = 17, N = N_B * N_J * N_D };

/* A box, its engine and what the CPU makes of it. */
struct course {
    struct oct_levelset_setup setup;
    const struct oct_levelset_ops *ops;
    struct oct_levelset_engine *engine;
    float phi[N], wanted[N], result[N];
};

static void denoise_on(const struct oct_levelset_ops *ops, const struct course *c, float *result)
{
    struct oct_levelset_engine *engine;
    struct oct_error err = {.text = ""};
    if (ops->create(&engine, &c->setup, &err) || ops->denoise(engine, c->phi, result, NULL, &err))
        fail_msg("%s", err.text);
    ops->destroy(engine);
}

static void prepare(struct course *c, enum oct_levelset_profile profile)
{
    memset(c, 0, sizeof(*c));
    c->setup = (struct oct_levelset_setup){.dims = {N_B, N_J, N_D}, .deadline_ms = PATIENCE_MS};
    oct_levelset_params_default(&c->setup.params, profile);
    oct_levelset_suite_draw(c->setup.dims, 0.7, 5, c->phi);
    cuda_host_reset(1, MEMORY);
    denoise_on(&oct_levelset_cpu, c, c->wanted);
    assert_memory_not_equal(c->wanted, c->phi, sizeof(c->phi));
}

/* The same calls in a fraction of the time. */
static void use_small_patches(struct course *c)
{
    c->setup.params.patch = 3;
    c->setup.params.reach = 2;
    denoise_on(&oct_levelset_cpu, c, c->wanted);
}

static const char *open_course(void *context, unsigned deadline_ms)
{
    struct course *c = context;
    struct oct_error err = {.text = ""};
    c->setup.deadline_ms = deadline_ms;
    if (oct_levelset_select(&c->ops, &c->engine, "auto", &c->setup, &err))
        fail_msg("%s", err.text);
    return c->ops == &oct_levelset_cpu ? "cpu" : c->ops->running(c->engine);
}

/* Twice: what failed in the first call has its successor in the second. */
static const char *use_course(void *context)
{
    struct course *c = context;
    struct oct_error err = {.text = ""};
    for (int i = 0; i < 2; i++) {
        memcpy(c->result, c->phi, sizeof(c->phi));
        if (c->ops->denoise(c->engine, c->result, c->result, NULL, &err))
            fail_msg("%s", err.text);
        oct_levelset_suite_compare(&c->setup, c->phi, c->result, c->wanted);
    }
    return c->ops == &oct_levelset_cpu ? "cpu" : c->ops->running(c->engine);
}

static void close_course(void *context)
{
    struct course *c = context;
    c->ops->destroy(c->engine);
}

static struct oct_cuda_course course_of(struct course *c)
{
    return (struct oct_cuda_course){c, open_course, use_course, close_course};
}

static void test_failures(void **state)
{
    struct course *c = malloc(sizeof(*c));
    assert_non_null(c);
    const struct oct_cuda_course course = course_of(c);
    prepare(c, OCT_LEVELSET_PROFILE_LOCAL);
    use_small_patches(c);
    oct_cuda_course_run(&course, STRIDE);
    prepare(c, OCT_LEVELSET_PROFILE_PAPER);
    use_small_patches(c);
    oct_cuda_course_run(&course, STRIDE);
    free(c);
}

static void test_hanging(void **state)
{
    struct course *c = malloc(sizeof(*c));
    assert_non_null(c);
    const struct oct_cuda_course course = course_of(c);
    prepare(c, OCT_LEVELSET_PROFILE_LOCAL);
    oct_cuda_course_hang(&course, CUDA_HOST_WORK_HANGS, 1);
    oct_cuda_course_hang(&course, CUDA_HOST_CALL_BLOCKS, 9);
    oct_cuda_course_hang(&course, CUDA_HOST_CALL_LATE, 2);
    prepare(c, OCT_LEVELSET_PROFILE_FULL);
    oct_cuda_course_hang(&course, CUDA_HOST_WORK_HANGS, 12);
    free(c);
}

/* ---- memory ---- */

/* Rows of a part of the band at a time: the same bytes as with all at once. */
static void test_pieces(void **state)
{
    struct oct_levelset_setup setup = {.dims = {40, 41, 24}, .deadline_ms = PATIENCE_MS};
    const size_t n = (size_t)40 * 41 * 24, bytes = n * sizeof(float);
    float *phi = malloc(bytes), *results[2] = {malloc(bytes), malloc(bytes)};
    struct oct_levelset_report report;
    struct oct_error err = {.text = ""};
    assert_true(phi && results[0] && results[1]);
    oct_levelset_params_default(&setup.params, OCT_LEVELSET_PROFILE_LOCAL);
    setup.params.reach = 2;
    setup.params.patch = 3;
    setup.params.common_step = true;
    oct_levelset_suite_draw(setup.dims, 0.7, 6, phi);
    for (int i = 0; i < 2; i++) {
        struct oct_levelset_engine *engine;
        cuda_host_reset(1, i == 0 ? MEMORY : (size_t)3 << 20);
        assert_int_equal(oct_levelset_cuda.create(&engine, &setup, &err), OCT_OK);
        const unsigned n_before = cuda_host_n_launches(0);
        if (oct_levelset_cuda.denoise(engine, phi, results[i], &report, &err))
            fail_msg("%s", err.text);
        printf("# %llu voxels, %u launches\n", (unsigned long long)report.n_band,
               cuda_host_n_launches(0) - n_before);
        assert_true(i == 0 || cuda_host_n_launches(0) - n_before > 30);
        oct_levelset_cuda.destroy(engine);
        check_nothing_left();
    }
    assert_memory_equal(results[0], results[1], bytes);
    free(phi);
    free(results[0]);
    free(results[1]);
}

/* A band for which there is no room is refused, and says how many bytes it takes; a smaller one is
 * computed with the same engine. */
static void test_band_too_large(void **state)
{
    struct course *c = malloc(sizeof(*c));
    struct oct_levelset_engine *engine;
    struct oct_error err = {.text = ""};
    assert_non_null(c);
    prepare(c, OCT_LEVELSET_PROFILE_FULL);
    c->setup.params.most = 512;
    denoise_on(&oct_levelset_cpu, c, c->wanted);
    cuda_host_reset(1, (size_t)3 << 20);
    assert_int_equal(oct_levelset_cuda.create(&engine, &c->setup, &err), OCT_OK);
    float *phi = calloc(N, sizeof(*phi));
    assert_non_null(phi);
    assert_int_equal(oct_levelset_cuda.denoise(engine, phi, phi, NULL, &err), OCT_E_NO_MEMORY);
    assert_non_null(strstr(err.text, "952 voxels takes 7 MB"));
    if (oct_levelset_cuda.denoise(engine, c->phi, c->result, NULL, &err))
        fail_msg("%s", err.text);
    oct_levelset_suite_compare(&c->setup, c->phi, c->result, c->wanted);
    oct_levelset_cuda.destroy(engine);
    check_nothing_left();
    free(phi);
    free(c);
}

/* With "auto" the CPU computes a band that has no room on the GPU; "cuda" refuses it, and stays. */
static void test_band_too_large_for_auto(void **state)
{
    struct course *c = malloc(sizeof(*c));
    float *phi = calloc(N, sizeof(*phi)), *wanted = calloc(N, sizeof(*wanted));
    assert_true(c && phi && wanted);
    prepare(c, OCT_LEVELSET_PROFILE_FULL);
    c->setup.params.most = 512;
    denoise_on(&oct_levelset_cpu, c, c->wanted);
    for (int i = 0; i < 2; i++) {
        struct oct_error err = {.text = ""};
        cuda_host_reset(1, (size_t)3 << 20);
        assert_int_equal(
            oct_levelset_select(&c->ops, &c->engine, i ? "auto" : "cuda", &c->setup, &err), OCT_OK);
        assert_string_equal(c->ops->running(c->engine), "cuda");
        assert_int_equal(c->ops->denoise(c->engine, phi, c->result, NULL, &err),
                         i ? OCT_OK : OCT_E_NO_MEMORY);
        assert_true(i ? memcmp(c->result, wanted, sizeof(c->result)) == 0
                      : strstr(err.text, "952 voxels takes 7 MB") != NULL);
        assert_string_equal(c->ops->running(c->engine), i ? "cpu" : "cuda");
        if (c->ops->denoise(c->engine, c->phi, c->result, NULL, &err))
            fail_msg("%s", err.text);
        oct_levelset_suite_compare(&c->setup, c->phi, c->result, c->wanted);
        c->ops->destroy(c->engine);
        check_nothing_left();
    }
    free(phi);
    free(wanted);
    free(c);
}

static void check_cpu_by_auto(const struct oct_levelset_setup *setup, enum oct_err of_cuda)
{
    const struct oct_levelset_ops *ops;
    struct oct_levelset_engine *engine;
    struct oct_error err;
    assert_int_equal(oct_levelset_select(&ops, &engine, "cuda", setup, &err), of_cuda);
    assert_null(engine);
    assert_int_equal(oct_levelset_select(&ops, &engine, "auto", setup, &err), OCT_OK);
    assert_ptr_equal(ops, &oct_levelset_cpu);
    ops->destroy(engine);
    check_nothing_left();
}

static void test_no_device(void **state)
{
    struct oct_levelset_setup setup = {.dims = {N_B, N_J, N_D}, .deadline_ms = PATIENCE_MS};
    const struct oct_levelset_ops *ops;
    struct oct_levelset_engine *engine;
    struct oct_error err;
    oct_levelset_params_default(&setup.params, OCT_LEVELSET_PROFILE_LOCAL);
    cuda_host_reset(1, MEMORY);
    setup.gpus = "3";
    assert_int_equal(oct_levelset_select(&ops, &engine, "cuda", &setup, &err), OCT_E_CONFIG);
    assert_int_equal(oct_levelset_select(&ops, &engine, "auto", &setup, &err), OCT_E_CONFIG);
    setup.gpus = NULL;
    cuda_host_remove_driver();
    check_cpu_by_auto(&setup, OCT_E_BACKEND);
    cuda_host_reset(1, (size_t)1 << 12); /* too small */
    check_cpu_by_auto(&setup, OCT_E_NO_MEMORY);
    cuda_host_reset(1, MEMORY);
    cuda_host_set_shared_limit((size_t)8 << 10);
    check_cpu_by_auto(&setup, OCT_E_BACKEND);
    assert_int_equal(oct_levelset_select(&ops, &engine, "cpu", &setup, &err), OCT_OK);
    assert_ptr_equal(ops, &oct_levelset_cpu);
    ops->destroy(engine);
    check_nothing_left();
}

/* Tiles lie close where they do not fit spread: the same bytes. */
static void test_little_shared_memory(void **state)
{
    struct course *c = malloc(sizeof(*c));
    assert_non_null(c);
    prepare(c, OCT_LEVELSET_PROFILE_LOCAL);
    denoise_on(&oct_levelset_cuda, c, c->wanted);
    cuda_host_set_shared_limit((size_t)16 << 10);
    denoise_on(&oct_levelset_cuda, c, c->result);
    assert_memory_equal(c->result, c->wanted, sizeof(c->result));
    check_nothing_left();
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"with little shared memory", test_little_shared_memory, NULL, NULL, NULL},
        {"with memory for a part of the rows", test_pieces, NULL, NULL, NULL},
        {"a band without room is refused", test_band_too_large, NULL, NULL, NULL},
        {"with \"auto\" a band without room is the CPU's", test_band_too_large_for_auto, NULL, NULL,
         NULL},
        {"a machine without what it takes is left to the CPU", test_no_device, NULL, NULL, NULL},
        {"whatever fails, the CPU goes on", test_failures, NULL, NULL, NULL},
        {"a device that hangs is given up in time", test_hanging, NULL, NULL, NULL},
    };
    cuda_host_reset(1, MEMORY);
    int n_failed = oct_levelset_suite_run(&oct_levelset_cuda, PATIENCE_MS, false);
    n_failed += cmocka_run_group_tests_name("level sets on CUDA", tests, NULL, NULL);
    return n_failed > 0;
}
