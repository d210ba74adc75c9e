/* A GPU that fails while it correlates: the CPU goes on with the same picture and the same
 * reference. The CUDA engine here is one of the test's own, before the library's. */
#include "analysis/correlate/correlate.h"
#include "test/rig/correlate_oracle.h"
#include "test/rig/tap.h"

#include <stdlib.h>
#include <string.h>

enum { SHIFT = 5, SIDE = 2 * SHIFT + 1, N_SHIFTS = SIDE * SIDE };

static struct {
    unsigned n_left; /* calls until the device is gone */
    unsigned n_created, n_destroyed;
} device;

struct oct_correlator {
    int unused;
};

static enum oct_err call(struct oct_error *err)
{
    if (device.n_left-- > 0)
        return OCT_OK;
    return oct_fail(err, OCT_E_BACKEND, "the device fell off the bus");
}

static enum oct_err device_create(struct oct_correlator **correlator,
                                  const struct oct_correlator_setup *setup, struct oct_error *err)
{
    (void)setup, (void)err;
    device.n_created++;
    *correlator = calloc(1, sizeof(**correlator));
    return OCT_OK;
}

static enum oct_err device_set_reference(struct oct_correlator *correlator,
                                         const struct oct_picture *g, struct oct_error *err)
{
    (void)correlator, (void)g;
    return call(err);
}

static enum oct_err device_run(struct oct_correlator *correlator, const struct oct_picture *f,
                               unsigned n, float *c2d, unsigned *which, struct oct_error *err)
{
    (void)correlator, (void)f, (void)which;
    enum oct_err e = call(err);
    for (unsigned i = 0; i < n * N_SHIFTS && !e; i++)
        c2d[i] = 7;
    return e;
}

static void device_destroy(struct oct_correlator *correlator)
{
    device.n_destroyed++;
    free(correlator);
}

const struct oct_correlator_ops oct_correlator_cuda = {
    .name = "cuda",
    .create = device_create,
    .set_reference = device_set_reference,
    .run = device_run,
    .destroy = device_destroy,
};

static struct oct_correlator_setup setup_of(void)
{
    return (struct oct_correlator_setup){.height = 20,
                                         .width = 24,
                                         .g_height = 20,
                                         .g_width = 24,
                                         .max_dy = SHIFT,
                                         .max_dx = SHIFT,
                                         .norm = OCT_CORRELATION_ZNCC,
                                         .n_batch = 1};
}

/* n_left: the call that fails, of set_reference, run, run. */
static void check(unsigned n_left)
{
    const struct oct_correlator_setup setup = setup_of();
    const struct oct_correlator_ops *ops;
    struct oct_correlator *c;
    struct oct_picture f, g;
    struct oct_error err = {.text = ""};
    char why[200];
    float got[N_SHIFTS], want[N_SHIFTS];
    unsigned which;
    memset(&device, 0, sizeof(device));
    device.n_left = n_left;
    oct_oracle_picture(&f, 20, 24, OCT_ORACLE_U8, 1);
    oct_oracle_picture(&g, 20, 24, OCT_ORACLE_U8, 2);
    assert_int_equal(oct_correlator_cpu.create(&c, &setup, &err), OCT_OK);
    assert_int_equal(oct_correlator_cpu.set_reference(c, &g, &err), OCT_OK);
    assert_int_equal(oct_correlator_cpu.run(c, &f, 1, want, &which, &err), OCT_OK);
    oct_correlator_cpu.destroy(c);

    assert_int_equal(oct_correlator_select(&ops, &c, "auto", &setup, why, sizeof(why), &err),
                     OCT_OK);
    assert_string_equal(why, "correlation on cuda");
    assert_string_equal(ops->running(c), "cuda");
    assert_int_equal(ops->set_reference(c, &g, &err), OCT_OK);
    oct_picture_finish(&g); /* the reference was lent for the call alone */
    for (unsigned call_n = 1; call_n < 3; call_n++) {
        assert_int_equal(ops->run(c, &f, 1, got, &which, &err), OCT_OK);
        for (unsigned i = 0; i < N_SHIFTS; i++)
            assert_true(got[i] == (call_n < n_left ? 7 : want[i]));
    }
    assert_int_equal(device.n_destroyed, 1);
    assert_string_equal(ops->running(c), "cpu");
    ops->destroy(c);
    assert_int_equal(device.n_created, 1);
    assert_int_equal(device.n_destroyed, 1);
    oct_picture_finish(&f);
}

static void the_cpu_goes_on_when_the_device_fails(void **state)
{
    (void)state;
    for (unsigned n_left = 0; n_left < 3; n_left++)
        check(n_left);
}

static void the_cpu_alone_when_it_is_asked_for(void **state)
{
    (void)state;
    const struct oct_correlator_setup setup = setup_of();
    const struct oct_correlator_ops *ops;
    struct oct_correlator *c;
    struct oct_error err;
    char why[200];
    memset(&device, 0, sizeof(device));
    assert_int_equal(oct_correlator_select(&ops, &c, "cpu", &setup, why, sizeof(why), &err),
                     OCT_OK);
    assert_string_equal(why, "correlation on cpu: asked for");
    assert_string_equal(ops->name, "cpu");
    ops->destroy(c);
    assert_int_equal(device.n_created, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cpu_goes_on_when_the_device_fails),
        cmocka_unit_test(the_cpu_alone_when_it_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
