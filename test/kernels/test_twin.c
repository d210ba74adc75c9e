/* One failover for every pair of engines: two engines of the test's own, of which the "GPU's" fails
 * when told to. */
#include "kernels/device/twin.h"
#include "test/rig/tap.h"

#include <stdlib.h>
#include <string.h>

struct setup {
    int factor;
    const char *gpus;
};

struct engine {
    int factor, kept;
};

/* What holds for the next calls. */
static struct {
    enum oct_err on_create, on_call, on_cpu_create, on_cpu_call;
    unsigned n_alive, n_calls;
} world;

static enum oct_err create(void **engine, bool on_gpu, const void *setup, struct oct_error *err)
{
    const struct setup *s = setup;
    const enum oct_err e = on_gpu ? world.on_create : world.on_cpu_create;
    struct engine *made;
    *engine = NULL;
    if (e)
        return oct_fail(err, e, "%s does not begin", on_gpu ? "the GPU" : "the CPU");
    assert_non_null(made = calloc(1, sizeof(*made)));
    made->factor = s->factor;
    *engine = made;
    world.n_alive++;
    return OCT_OK;
}

static void destroy(void *engine, bool on_gpu)
{
    (void)on_gpu;
    free(engine);
    world.n_alive--;
}

struct pair {
    struct oct_twin twin;
    int kept;
};

static enum oct_err replay(struct oct_twin *twin, struct oct_error *err)
{
    (void)err;
    ((struct engine *)twin->engine)->kept = ((struct pair *)twin)->kept;
    return OCT_OK;
}

static const struct oct_twin_kind kind = {.name = "pair",
                                          .bytes = sizeof(struct pair),
                                          .setup_bytes = sizeof(struct setup),
                                          .create = create,
                                          .destroy = destroy,
                                          .replay = replay};

static enum oct_err engine_multiply(struct engine *engine, bool on_gpu, int x, int *result,
                                    struct oct_error *err)
{
    const enum oct_err e = on_gpu ? world.on_call : world.on_cpu_call;
    world.n_calls++;
    if (e)
        return oct_fail(err, e, "%s failed", on_gpu ? "the GPU" : "the CPU");
    *result = engine->factor * x + engine->kept;
    return OCT_OK;
}

static enum oct_err multiply(struct oct_twin *twin, int x, int *result, struct oct_error *err)
{
    struct oct_twin_call c = {.twin = twin, .err = err};
    while (oct_twin_tries(&c))
        c.e = engine_multiply(c.twin->engine, c.twin->on_gpu, x, result, &c.why);
    return c.e;
}

static struct oct_twin *begin(const char *backend)
{
    struct setup setup = {.factor = 3};
    struct oct_twin *twin;
    struct oct_error reason, err;
    memset(&world, 0, sizeof(world));
    assert_int_equal(oct_twin_create(&twin, &kind, true, backend, &setup, &reason, &err), OCT_OK);
    assert_non_null(twin);
    setup.factor = 100; /* the setup was copied */
    ((struct engine *)twin->engine)->kept = 1;
    ((struct pair *)twin)->kept = 1;
    assert_string_equal(oct_twin_running(twin), "cuda");
    return twin;
}

static void end(struct oct_twin *twin)
{
    oct_twin_destroy(twin);
    assert_int_equal(world.n_alive, 0);
}

static void the_cpu_does_the_same_call_again(void **state)
{
    const enum oct_err faults[] = {OCT_E_BACKEND, OCT_E_NO_MEMORY};
    for (unsigned i = 0; i < 2; i++) {
        struct oct_twin *twin = begin("auto");
        int result = 0;
        assert_int_equal(multiply(twin, 5, &result, NULL), OCT_OK);
        assert_int_equal(result, 16);
        world.on_call = faults[i];
        assert_int_equal(multiply(twin, 6, &result, NULL), OCT_OK);
        assert_int_equal(result, 19);
        assert_int_equal(world.n_calls, 3);
        assert_int_equal(world.n_alive, 1);
        assert_string_equal(oct_twin_running(twin), "cpu");
        assert_int_equal(multiply(twin, 7, &result, NULL), OCT_OK);
        assert_int_equal(result, 22);
        end(twin);
    }
}

static void what_is_no_fault_of_the_gpu_is_said(void **state)
{
    struct oct_twin *twin = begin("cuda");
    struct oct_error err;
    int result;
    const enum oct_err faults[] = {OCT_E_ARG, OCT_E_NO_MEMORY, OCT_E_CLOSED};
    for (unsigned i = 0; i < 3; i++) {
        world.on_call = faults[i];
        assert_int_equal(multiply(twin, 1, &result, &err), faults[i]);
        assert_string_equal(err.text, "the GPU failed");
        assert_string_equal(oct_twin_running(twin), "cuda");
    }
    world.on_call = OCT_E_BACKEND;
    world.on_cpu_call = OCT_E_ARG;
    assert_int_equal(multiply(twin, 1, &result, &err), OCT_E_ARG);
    assert_string_equal(err.text, "the CPU failed");
    world.on_cpu_call = OCT_E_BACKEND; /* there is no third */
    assert_int_equal(multiply(twin, 1, &result, &err), OCT_E_BACKEND);
    assert_string_equal(err.text, "the CPU failed");
    end(twin);
}

static void where_both_fail_every_call_says_so(void **state)
{
    struct oct_twin *twin = begin("auto");
    struct oct_error err;
    int result;
    world.on_call = OCT_E_BACKEND;
    world.on_cpu_create = OCT_E_NO_MEMORY;
    assert_int_equal(multiply(twin, 1, &result, &err), OCT_E_NO_MEMORY);
    assert_string_equal(err.text, "the CPU does not begin");
    assert_int_equal(multiply(twin, 1, &result, &err), OCT_E_BACKEND);
    assert_string_equal(err.text, "pair: the GPU has failed and the CPU's engine did not start");
    assert_int_equal(world.n_calls, 1);
    end(twin);
}

/* What begins by `backend` where the CUDA engine's create returns `fault`. */
static void check_begin(const char *backend, bool has_cuda, enum oct_err fault, enum oct_err wanted,
                        const char *reason_text)
{
    const struct setup setup = {.factor = 3};
    struct oct_twin *twin;
    struct oct_error reason, err = {.text = ""};
    memset(&world, 0, sizeof(world));
    world.on_create = fault;
    assert_int_equal(oct_twin_create(&twin, &kind, has_cuda, backend, &setup, &reason, &err),
                     wanted);
    assert_null(twin);
    assert_string_equal(wanted ? err.text : reason.text, reason_text);
    assert_int_equal(world.n_alive, 0);
    oct_twin_destroy(twin);
}

static void the_cpu_alone(void **state)
{
    const char *no = "the GPU does not begin", *none = "this build has no CUDA";
    check_begin(NULL, true, OCT_OK, OCT_OK, "asked for");
    check_begin("cpu", true, OCT_OK, OCT_OK, "asked for");
    check_begin("auto", false, OCT_OK, OCT_OK, none);
    check_begin("cuda", false, OCT_OK, OCT_E_BACKEND, none);
    check_begin("auto", true, OCT_E_BACKEND, OCT_OK, no);
    check_begin("auto", true, OCT_E_NO_MEMORY, OCT_OK, no);
    check_begin("cuda", true, OCT_E_BACKEND, OCT_E_BACKEND, no);
    check_begin("cuda", true, OCT_E_NO_MEMORY, OCT_E_NO_MEMORY, no);
    check_begin("auto", true, OCT_E_CONFIG, OCT_E_CONFIG, no); /* a wrong list of GPUs */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cpu_does_the_same_call_again),
        cmocka_unit_test(what_is_no_fault_of_the_gpu_is_said),
        cmocka_unit_test(where_both_fail_every_call_says_so),
        cmocka_unit_test(the_cpu_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
