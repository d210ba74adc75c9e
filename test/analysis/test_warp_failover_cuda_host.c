/* The engine that oct_warp_select gives, on the stand-in for CUDA (test/cuda_host/): it stands what
 * engines must, and the CPU goes on when the device is small, fails or hangs. */
#include "test/rig/cuda_faults.h"
#include "test/rig/tap.h"
#include "test/rig/warp_phantom.h"
#include "test/rig/warp_suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
#define STRIDE 9u
#else
#define STRIDE 3u
#endif

enum { N_B = 7, N_J = 8, N_D = 9, N = N_B * N_J * N_D };

/* What the calls of an engine give. */
struct results {
    float displacement[3 * N], warped[N], jacobian[N], force[3 * N];
    double energy[3];
};

struct course {
    struct oct_warp_setup setup;
    const struct oct_warp_ops *ops;
    struct oct_warp_engine *engine;
    struct oct_warp_phantom pair;
    struct results wanted, found;
    unsigned first; /* the call that use begins with */
};

static void call(struct course *c, const struct oct_warp_ops *ops, struct oct_warp_engine *engine,
                 unsigned number, struct results *to)
{
    struct oct_error err = {.text = ""};
    const float *fixed = c->pair.fixed, *moving = c->pair.moving, *u = c->pair.displacement;
    enum oct_err e = OCT_OK;
    if (number == 0)
        e = ops->solve(engine, fixed, moving, NULL, to->displacement, NULL, NULL, &err);
    else if (number == 1)
        e = ops->warp(engine, moving, u, to->warped, &err);
    else if (number == 2)
        e = ops->jacobian(engine, u, to->jacobian, &err);
    else
        e = ops->force(engine, fixed, moving, u, to->energy, to->force, &err);
    if (e)
        fail_msg("call %u: %s", number, err.text);
}

static void compare(const float *a, const float *b, size_t n, double most)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= most))
            fail_msg("value %zu is %g, not %g", i, (double)a[i], (double)b[i]);
}

static void prepare(struct course *c)
{
    const struct oct_warp_phantom_setup phantom = {
        .dims = {N_B, N_J, N_D}, .mean_length = 0.4, .noise = 0.02, .seed = 1};
    struct oct_error err = {.text = ""};
    struct oct_warp_engine *engine;
    memset(c, 0, sizeof(*c));
    oct_warp_phantom_make(&phantom, &c->pair);
    c->setup = (struct oct_warp_setup){.grid = c->pair.grid, .deadline_ms = PATIENCE_MS};
    oct_warp_params_default(&c->setup.params, OCT_WARP_OCTD, c->setup.grid.dims);
    c->setup.params.iterations[0] = 2;
    cuda_host_reset(1, MEMORY);
    assert_int_equal(oct_warp_cpu.create(&engine, &c->setup, &err), OCT_OK);
    for (unsigned i = 0; i < 4; i++)
        call(c, &oct_warp_cpu, engine, i, &c->wanted);
    oct_warp_cpu.destroy(engine);
}

static const char *open_course(void *context, unsigned deadline_ms)
{
    struct course *c = context;
    struct oct_error err = {.text = ""};
    c->setup.deadline_ms = deadline_ms;
    if (oct_warp_select(&c->ops, &c->engine, "auto", &c->setup, &err))
        fail_msg("%s", err.text);
    return c->ops == &oct_warp_cpu ? "cpu" : c->ops->running(c->engine);
}

static const char *use_course(void *context)
{
    struct course *c = context;
    memset(&c->found, 0x7f, sizeof(c->found));
    for (unsigned i = 0; i < 4; i++)
        call(c, c->ops, c->engine, (c->first + i) % 4, &c->found);
    compare(c->found.displacement, c->wanted.displacement, 3 * (size_t)N, 0.01);
    compare(c->found.warped, c->wanted.warped, N, 1e-5);
    compare(c->found.jacobian, c->wanted.jacobian, N, 1e-5);
    compare(c->found.force, c->wanted.force, 3 * (size_t)N, 1e-5);
    for (int i = 0; i < 3; i++)
        assert_true(fabs(c->found.energy[i] - c->wanted.energy[i]) <= 1e-4 * c->wanted.energy[i]);
    return c->ops == &oct_warp_cpu ? "cpu" : c->ops->running(c->engine);
}

static void close_course(void *context)
{
    struct course *c = context;
    c->ops->destroy(c->engine);
}

/* Whichever call comes first is the one that meets the fault. */
static void test_failures(void **state)
{
    struct course *c = malloc(sizeof(*c));
    assert_non_null(c);
    const struct oct_cuda_course course = {c, open_course, use_course, close_course};
    prepare(c);
    for (c->first = 0; c->first < 4; c->first++)
        oct_cuda_course_run(&course, c->first == 0 ? STRIDE : 3 * STRIDE);
    oct_warp_phantom_finish(&c->pair);
    free(c);
}

static void test_hanging(void **state)
{
    struct course *c = malloc(sizeof(*c));
    assert_non_null(c);
    const struct oct_cuda_course course = {c, open_course, use_course, close_course};
    prepare(c);
    oct_cuda_course_hang(&course, CUDA_HOST_WORK_HANGS, 3);
    oct_cuda_course_hang(&course, CUDA_HOST_CALL_BLOCKS, 9);
    oct_cuda_course_hang(&course, CUDA_HOST_CALL_LATE, 2);
    oct_warp_phantom_finish(&c->pair);
    free(c);
}

static void check_cpu_by_auto(const struct oct_warp_setup *setup, enum oct_err of_cuda)
{
    const struct oct_warp_ops *ops;
    struct oct_warp_engine *engine;
    struct oct_error err;
    assert_int_equal(oct_warp_select(&ops, &engine, "cuda", setup, &err), of_cuda);
    assert_null(engine);
    assert_true(err.text[0]);
    assert_int_equal(oct_warp_select(&ops, &engine, "auto", setup, &err), OCT_OK);
    assert_ptr_equal(ops, &oct_warp_cpu);
    ops->destroy(engine);
    check_nothing_left();
}

static void test_no_device(void **state)
{
    struct oct_warp_setup setup = {.grid = {{24, 25, 26}, {1, 1, 1}, false},
                                   .deadline_ms = PATIENCE_MS};
    const struct oct_warp_ops *ops;
    struct oct_warp_engine *engine;
    struct oct_error err;
    oct_warp_params_default(&setup.params, OCT_WARP_OCTD, setup.grid.dims);
    cuda_host_reset(1, MEMORY);
    setup.gpus = "3";
    assert_int_equal(oct_warp_select(&ops, &engine, "cuda", &setup, &err), OCT_E_CONFIG);
    assert_int_equal(oct_warp_select(&ops, &engine, "auto", &setup, &err), OCT_E_CONFIG);
    setup.gpus = NULL;
    cuda_host_remove_driver();
    check_cpu_by_auto(&setup, OCT_E_BACKEND);
    cuda_host_reset(1, (size_t)1 << 12); /* too small */
    check_cpu_by_auto(&setup, OCT_E_NO_MEMORY);
    cuda_host_reset(1, oct_warp_cuda.bytes(&setup) * 3 / 4);
    check_cpu_by_auto(&setup, OCT_E_NO_MEMORY);
    assert_int_equal(oct_warp_select(&ops, &engine, "cpu", &setup, &err), OCT_OK);
    assert_ptr_equal(ops, &oct_warp_cpu);
    ops->destroy(engine);
    setup.params.profile = OCT_WARP_PAPER;
    assert_int_equal(oct_warp_select(&ops, &engine, "cuda", &setup, &err), OCT_OK);
    assert_ptr_equal(ops, &oct_warp_cpu);
    ops->destroy(engine);
    setup.params.profile = OCT_WARP_OCTD;
    setup.params.sigma = 0; /* no fault of a GPU */
    cuda_host_reset(1, MEMORY);
    assert_int_equal(oct_warp_select(&ops, &engine, "auto", &setup, &err), OCT_E_ARG);
    assert_null(engine);
    check_nothing_left();
}

/* What is no fault of the device is said, and the device stays. */
static void test_faults_of_callers(void **state)
{
    struct course *c = malloc(sizeof(*c));
    struct oct_error err = {.text = ""};
    assert_non_null(c);
    prepare(c);
    assert_string_equal(open_course(c, PATIENCE_MS), "cuda");
    c->pair.fixed[5] = NAN;
    assert_int_equal(c->ops->solve(c->engine, c->pair.fixed, c->pair.moving, NULL,
                                   c->found.displacement, NULL, NULL, &err),
                     OCT_E_ARG);
    assert_non_null(strstr(err.text, "fixed"));
    assert_string_equal(c->ops->running(c->engine), "cuda");
    close_course(c);
    check_nothing_left();
    oct_warp_phantom_finish(&c->pair);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"a machine without what it takes is left to the CPU", test_no_device, NULL, NULL, NULL},
        {"faults of callers are theirs", test_faults_of_callers, NULL, NULL, NULL},
        {"whatever fails, the CPU goes on", test_failures, NULL, NULL, NULL},
        {"a device that hangs is given up in time", test_hanging, NULL, NULL, NULL},
    };
    const struct oct_warp_suite suite = {.ops = &oct_warp_cuda,
                                         .backend = "cuda",
                                         .select = oct_warp_select,
                                         .deadline_ms = PATIENCE_MS};
    cuda_host_reset(1, MEMORY);
    int n_failed = oct_warp_suite_run(&suite);
    n_failed += cmocka_run_group_tests_name("registrations that fail over", tests, NULL, NULL);
    return n_failed > 0;
}
