/* The CUDA engine of flow on the stand-in for CUDA (test/cuda_host/): what it finds is what the
 * CPU's finds, and what becomes of it when the device is small, fails or hangs. */
#include "analysis/flow/engine.h"
#include "pipeline/flow/frame.h"
#include "test/rig/cuda_faults.h"
#include "test/rig/flow_scene.h"
#include "test/rig/flow_suite.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 24, D = 64, R = 3, N = M * D };
#define STRIDE 3u

/* ---- faults: a group that the fault hits may lack repeats, the next is the CPU's ---- */

struct course {
    struct oct_flow_engine_setup setup;
    struct oct_flow_optics optics;
    const struct oct_flow_engine_ops *ops;
    struct oct_flow_engine *engine;
    float *values, wanted[N];
};

/* Returns the pairs that were found. */
static unsigned find(const struct course *c, const struct oct_flow_engine_ops *ops,
                     struct oct_flow_engine *engine, float *d)
{
    struct oct_error err = {.text = ""};
    struct oct_flow_found found;
    ops->clear(engine);
    for (unsigned r = 0; r < R; r++) {
        const struct oct_image_frame frame = {.complex_values = c->values + 2 * r * N};
        if (ops->put(engine, r, &frame, &err))
            fail_msg("%s", err.text);
    }
    if (ops->find(engine, 0, NULL, &found, &err))
        fail_msg("%s", err.text);
    memcpy(d, found.d, N * sizeof(*d));
    return found.n_pairs;
}

static void prepare(struct course *c)
{
    const struct oct_flow_scene scene = {
        .n_lines = M, .depth = D, .n_repeats = R, .top = 10, .snr = 20, .noise = 1, .seed = 1};
    struct oct_flow_engine *engine;
    memset(c, 0, sizeof(*c));
    assert_int_equal(oct_flow_optics_init(&c->optics, NULL, NULL, 1.36, false, NULL), OCT_OK);
    c->setup = (struct oct_flow_engine_setup){.place = {.n_lines = M,
                                                        .depth = D,
                                                        .n_repeats = R,
                                                        .sigma_lines = 1,
                                                        .sigma_depth = 3,
                                                        .max_bulk = 0.3,
                                                        .optics = &c->optics},
                                              .n_places = 1};
    c->values = oct_flow_scene_make(&scene);
    cuda_host_reset(1, MEMORY);
    assert_int_equal(oct_flow_engine_cpu.create(&engine, &c->setup, NULL), OCT_OK);
    assert_int_equal(find(c, &oct_flow_engine_cpu, engine, c->wanted), R - 1);
    oct_flow_engine_cpu.destroy(engine);
}

static const char *running(const struct course *c)
{
    return c->ops == &oct_flow_engine_cpu ? "cpu" : c->ops->running(c->engine);
}

static const char *open_course(void *context, unsigned deadline_ms)
{
    struct course *c = context;
    struct oct_error err = {.text = ""};
    c->setup.deadline_ms = deadline_ms;
    if (oct_flow_engine_select(&c->ops, &c->engine, "auto", &c->setup, &err))
        fail_msg("%s", err.text);
    return running(c);
}

static const char *use_course(void *context)
{
    struct course *c = context;
    float d[N];
    for (unsigned group = 0; group < 2; group++) {
        const bool began_on_gpu = strcmp(running(c), "cuda") == 0;
        const unsigned n_pairs = find(c, c->ops, c->engine, d);
        const bool failed = began_on_gpu && strcmp(running(c), "cpu") == 0;
        if (failed) {
            assert_true(n_pairs <= R - 1);
            continue;
        }
        assert_int_equal(n_pairs, R - 1);
        for (size_t i = 0; i < N; i++)
            if (!(fabs((double)(d[i] - c->wanted[i])) <= 1e-4 + 1e-5 * fabs((double)d[i])))
                fail_msg("d of %zu is %g, not %g", i, (double)d[i], (double)c->wanted[i]);
    }
    return running(c);
}

static void close_course(void *context)
{
    struct course *c = context;
    c->ops->destroy(c->engine);
}

static void the_cpu_goes_on_when_the_device_fails(void **state)
{
    struct course *c = malloc(sizeof(*c));
    assert_non_null(c);
    const struct oct_cuda_course course = {c, open_course, use_course, close_course};
    (void)state;
    prepare(c);
    oct_cuda_course_run(&course, STRIDE);
    oct_cuda_course_hang(&course, CUDA_HOST_WORK_HANGS, 3);
    free(c->values);
    free(c);
}

static void other_methods_are_the_cpus(void **state)
{
    struct course *c = malloc(sizeof(*c));
    assert_non_null(c);
    (void)state;
    prepare(c);
    c->setup.place.method = OCT_FLOW_CDV;
    assert_string_equal(open_course(c, PATIENCE_MS), "cpu");
    close_course(c);
    c->setup.place.method = OCT_FLOW_COMPLEX;
    assert_string_equal(open_course(c, PATIENCE_MS), "cuda");
    close_course(c);
    free(c->values);
    free(c);
}

/* ---- what it finds ---- */

static void it_finds_it_of_the_reference(void **state)
{
    (void)state;
    cuda_host_reset(1, MEMORY);
    oct_flow_suite_run_truth(PATIENCE_MS, oct_flow_truth);
    assert_int_equal(cuda_host_bytes_in_use(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cpu_goes_on_when_the_device_fails),
        cmocka_unit_test(other_methods_are_the_cpus),
        cmocka_unit_test(it_finds_it_of_the_reference),
    };
    cuda_host_reset(2, MEMORY);
    int n_failed = oct_flow_suite_run(PATIENCE_MS, 1, true);
    n_failed += cuda_host_bytes_in_use() > 0;
    n_failed += cmocka_run_group_tests_name("flow on CUDA", tests, NULL, NULL);
    return n_failed;
}
