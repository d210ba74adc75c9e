/* Which engine a backend's name gives on this machine, with whatever this build has: device code or
 * none, a driver or none. What a GPU does to it is played in test_faults_cuda_host.c. */
#include "kernels/engines.h"
#include "test/rig/engine_rig.h"
#include "test/rig/tap.h"

#include "kernels/device/cuda_device.h"

#include <string.h>

static const struct oct_scene_recipe recipe = {
    .name = "select", .n_samples = 64, .n_lines = 2, .crop_last = 40};
static const struct oct_engine_options options = {.simd = "auto"};

struct choice {
    struct oct_scene scene;
    struct oct_plan *plan;
    const struct oct_engine_ops *ops;
    struct oct_engine *engine;
    struct oct_error err;
    char why[256];
};

static enum oct_err choose(struct choice *c, const char *backend)
{
    return oct_engine_select(backend, c->plan, &options, &c->ops, &c->engine, c->why,
                             sizeof(c->why), &c->err);
}

static int open_choice(void **state)
{
    static struct choice c;
    *state = &c;
    return !oct_scene_create(&c.scene, &recipe, 1) ||
           oct_scene_plan(&c.scene, OCT_SAMPLE_U8, &c.plan, &c.err);
}

static int close_choice(void **state)
{
    struct choice *c = *state;
    oct_plan_destroy(c->plan);
    oct_scene_finish(&c->scene);
    return 0;
}

static void test_auto(void **state)
{
    struct choice *c = *state;
    char reason[256] = "";
    unsigned n = oct_cuda_count(reason, sizeof(reason));
    assert_int_equal(choose(c, "auto"), OCT_OK);
    assert_string_equal(c->ops->name, n ? "cuda" : "cpu");
    assert_non_null(strstr(c->why, c->ops->describe(c->engine)));
    assert_non_null(strstr(c->why, n ? "auto" : reason));
    c->ops->destroy(c->engine);
}

static void test_cpu(void **state)
{
    struct choice *c = *state;
    assert_int_equal(choose(c, "cpu"), OCT_OK);
    assert_ptr_equal(c->ops, &oct_engine_cpu);
    c->ops->destroy(c->engine);
}

static void test_cuda(void **state)
{
    struct choice *c = *state;
    char reason[256] = "";
    unsigned n = oct_cuda_count(reason, sizeof(reason));
    enum oct_err e = choose(c, "cuda");
    if (n > 0) {
        assert_int_equal(e, OCT_OK);
        c->ops->destroy(c->engine);
        return;
    }
    assert_null(c->engine);
    assert_int_equal(e, oct_cuda_built_with() ? OCT_E_BACKEND : OCT_E_CONFIG);
    assert_non_null(strstr(c->err.text, oct_cuda_built_with() ? reason : "pipeline.backend"));
    struct oct_engine *engine = (struct oct_engine *)c; /* the same where nobody asks select */
    assert_int_equal(oct_engine_cuda.create(&engine, c->plan, &options, &c->err), e);
    assert_null(engine);
    assert_int_equal(oct_engine_failover.create(&engine, c->plan, &options, &c->err), e);
    assert_null(engine);
}

static void test_unknown(void **state)
{
    struct choice *c = *state;
    assert_int_equal(choose(c, "gpu"), OCT_E_CONFIG);
    assert_null(c->engine);
    assert_non_null(strstr(c->err.text, "pipeline.backend is gpu"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"auto takes a GPU that answers, else the CPU, and says why", test_auto, NULL, NULL, NULL},
        {"cpu is the CPU engine", test_cpu, NULL, NULL, NULL},
        {"cuda is a GPU or a clear refusal", test_cuda, NULL, NULL, NULL},
        {"an unknown backend is refused by name", test_unknown, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests_name("select", tests, open_choice, close_choice) > 0;
}
