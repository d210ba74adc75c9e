/* Rigid registration: shifts that are known, to the fraction of a pixel, with noise and without; and
 * what must not change them. */
#include "analysis/align/rigid.h"
#include "test/rig/engine_scene.h"
#include "test/rig/tap.h"
#include "test/rig/waves.h"

#include <math.h>
#include <string.h>

struct rig {
    struct oct_waves waves;
    struct oct_rigid *rigid;
    uint64_t random;
    uint32_t height, width;
};

static void open_rig(struct rig *r, uint32_t height, uint32_t width, uint32_t max_shift,
                     double shortest, bool masked)
{
    struct oct_error err = {.text = ""};
    *r = (struct rig){.random = 7, .height = height, .width = width};
    oct_waves_init(&r->waves, 11, shortest, 60);
    const struct oct_rigid_setup setup = {.height = height,
                                          .width = width,
                                          .max_dy = max_shift,
                                          .max_dx = max_shift,
                                          .min_overlap = 0.3,
                                          .masked = masked,
                                          .backend = "cpu"};
    if (oct_rigid_create(&r->rigid, &setup, &err))
        fail_msg("%s", err.text);
}

static void close_rig(struct rig *r)
{
    oct_rigid_destroy(r->rigid);
}

static struct oct_picture draw(struct rig *r, double dy, double dx, double noise)
{
    return oct_waves_picture(&r->waves, r->height, r->width, dy, dx, noise, &r->random);
}

static struct oct_shift find(struct rig *r, const struct oct_picture *moving,
                             const struct oct_picture *reference)
{
    struct oct_error err = {.text = ""};
    struct oct_shift shift;
    if (oct_rigid_set_reference(r->rigid, reference, &err) ||
        oct_rigid_find(r->rigid, moving, &shift, &err))
        fail_msg("%s", err.text);
    return shift;
}

/* RMS error a coordinate over n pairs with shifts of up to `most` pixels. */
static double rms_error(struct rig *r, double most, double noise, unsigned n)
{
    double sum = 0;
    for (unsigned i = 0; i < n; i++) {
        double dy = most * (2 * oct_random_uniform(&r->random) - 1);
        double dx = most * (2 * oct_random_uniform(&r->random) - 1);
        struct oct_picture reference = draw(r, 0, 0, noise), moving = draw(r, dy, dx, noise);
        struct oct_shift shift = find(r, &moving, &reference);
        sum += (shift.dy - dy) * (shift.dy - dy) + (shift.dx - dx) * (shift.dx - dx);
        oct_picture_finish(&reference);
        oct_picture_finish(&moving);
    }
    return sqrt(sum / (2 * n));
}

static void shifts_are_found_to_the_fraction_of_a_pixel(void **state)
{
    (void)state;
    static const struct {
        double noise, most_error;
    } rows[] = {{0, 0.01}, {0.5, 0.04}, {1, 0.12}};
    struct rig r;
    open_rig(&r, 256, 256, 40, 8, false);
    for (unsigned i = 0; i < 3; i++) {
        double error = rms_error(&r, 20, rows[i].noise, 6);
        print_message("noise %.1f: %.4f px RMS\n", rows[i].noise, error);
        assert_true(error <= rows[i].most_error);
    }
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shifts_are_found_to_the_fraction_of_a_pixel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
