/* nufft on the CUDA kernels, on the host (test/cuda_host/), beside what test_engine_cuda_host.c
 * sees against the oracle: maps so steep that hundreds of samples reach one point of the grid, by
 * three engines whose tables differ; and the CPU, which goes on where a GPU fails. */
#include "kernels/engines.h"
#include "test/cuda_host/cuda_host.h"
#include "test/rig/engine_bounds.h"
#include "test/rig/engine_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MEMORY ((size_t)256 << 20)
#define PATIENCE_MS 120000

static const struct oct_engine_options fused = {
    .cuda = "fused", .max_batch = 1, .n_streams = 1, .deadline_ms = PATIENCE_MS};
static const struct oct_engine_options plain = {
    .cuda = "plain", .max_batch = 1, .n_streams = 1, .deadline_ms = PATIENCE_MS};

/* Camera coordinate at t of the k axis, 0 to 1, both ways:
 * steep where it begins, and in its middle. */
static double steep_at_first(double t)
{
    return 0.2 * t + 0.8 * -expm1(-300 * t);
}

static double steep_in_the_middle(double t)
{
    return 0.2 * t + 0.4 * (1 + tanh(150 * (t - 0.5)));
}

/* The scene's samples under another map; what the oracle said of it holds no longer. */
static void bend(struct oct_scene *scene, double (*map)(double))
{
    struct oct_calibration *cal = &scene->cal;
    for (size_t i = 0; i < cal->n_kmap; i++)
        cal->kmap_px[i] =
            (scene->recipe.n_samples - 1) * map((double)i / (double)(cal->n_kmap - 1)) + 0.3;
}

/* Intensities by one engine: [M][D] in the slot. */
static void run(const struct oct_scene *scene, const struct oct_engine_ops *ops,
                const struct oct_engine_options *options, struct oct_slot *slot,
                struct oct_spread *shape)
{
    static const struct oct_display display = {.range = OCT_RANGE_AUTO};
    struct oct_rig rig;
    assert_true(oct_rig_open(&rig, ops, options, scene, OCT_SAMPLE_F32));
    *shape = rig.plan->spread; /* its numbers alone are looked at */
    shape->first = NULL;
    for (uint32_t g = 0; g < shape->n_grid; g++)
        if (rig.plan->spread.at[g + 1] - rig.plan->spread.at[g] > shape->n_taps)
            shape->n_taps = rig.plan->spread.at[g + 1] - rig.plan->spread.at[g];
    oct_slot_open(slot, &rig);
    oct_rig_run(&rig, scene, &display, slot);
    oct_rig_close(&rig);
}

/* Largest difference of amplitudes, of the largest. */
static double difference(const struct oct_slot *a, const struct oct_slot *b)
{
    const float *x = a->frame.pixels, *y = b->frame.pixels;
    double most = 0, largest = 0;
    for (size_t i = 0; i < a->bytes / sizeof(float); i++) {
        double of_x = sqrt((double)x[i]), of_y = sqrt((double)y[i]);
        most = fmax(most, fabs(of_x - of_y));
        largest = fmax(largest, of_x);
    }
    assert_true(largest > 0);
    return most / largest;
}

static void test_steep(void **state)
{
    static const struct {
        uint32_t n_samples;
        double (*map)(double);
        uint32_t most_at_least, wrap_at_least; /* samples of one point; read again */
    } of[] = {{832, steep_in_the_middle, 200, 0},
              {2048, steep_in_the_middle, 200, 1},
              {2048, steep_at_first, 300, 200},
              {4096, steep_at_first, 300, 200}};
    cuda_host_reset(1, MEMORY);
    for (size_t k = 0; k < sizeof(of) / sizeof(of[0]); k++) {
        const struct oct_scene_recipe recipe = {.name = "steeper",
                                                .n_samples = of[k].n_samples,
                                                .n_lines = 3,
                                                .crop_last = 60,
                                                .axis = OCT_AXIS_KMAP_RISING,
                                                .dc = OCT_DC_NONE,
                                                .interpolation = OCT_INTERPOLATION_NUFFT,
                                                .light = OCT_LIGHT_RANDOM};
        struct oct_scene scene;
        struct oct_slot slots[3];
        struct oct_spread shape;
        assert_true(oct_scene_create(&scene, &recipe, 7));
        bend(&scene, of[k].map);
        run(&scene, &oct_engine_cuda, &fused, &slots[0], &shape);
        run(&scene, &oct_engine_cuda, &plain, &slots[1], &shape);
        run(&scene, &oct_engine_cpu, &(struct oct_engine_options){.n_threads = 1}, &slots[2],
            &shape);
        double apart = difference(&slots[0], &slots[1]), of_cpu = difference(&slots[2], &slots[1]);
        printf("# %u samples: up to %u a point, %u read again; fused off plain %.1e, CPU %.1e\n",
               of[k].n_samples, shape.n_taps, shape.n_wrap, apart, of_cpu);
        assert_true(shape.n_taps >= of[k].most_at_least && shape.n_wrap >= of[k].wrap_at_least);
        assert_true(apart < 2e-6 && of_cpu < 2e-6);
        for (int i = 0; i < 3; i++)
            oct_slot_close(&slots[i]);
        oct_scene_finish(&scene);
    }
}

/* Whichever engine makes a picture, it is that of nufft, which linear's would not pass for. */
static void test_failover(void **state)
{
    static const struct oct_scene_recipe recipe = {.name = "a GPU that fails",
                                                   .n_samples = 300,
                                                   .n_lines = 4,
                                                   .crop_last = 1024,
                                                   .dispersion = OCT_DISPERSION_COEFFICIENTS,
                                                   .interpolation = OCT_INTERPOLATION_NUFFT,
                                                   .light = OCT_LIGHT_RANDOM};
    static const struct oct_display display = {.range = OCT_RANGE_AUTO};
    struct oct_scene scene;
    struct oct_worst worst = {.accuracy = 0};
    assert_true(oct_scene_create(&scene, &recipe, 7));
    for (int v = 0; v < 2; v++) {
        struct oct_rig rig;
        struct oct_slot slot;
        cuda_host_reset(1, MEMORY);
        assert_true(
            oct_rig_open(&rig, &oct_engine_failover, v ? &plain : &fused, &scene, OCT_SAMPLE_F32));
        oct_slot_open(&slot, &rig);
        for (int round = 0; round < 3; round++) {
            assert_string_equal(rig.ops->running(rig.engine), round < 2 ? "cuda" : "cpu");
            if (round == 1)
                cuda_host_set_fault(CUDA_HOST_WORK_FAILS, 2);
            oct_rig_run(&rig, &scene, &display, &slot);
            assert_true(oct_bound_float(&worst, &scene, false, slot.frame.pixels));
        }
        oct_slot_close(&slot);
        oct_rig_close(&rig);
        assert_int_equal(cuda_host_bytes_in_use(), 0);
    }
    assert_true(worst.accuracy > 0);
    oct_scene_finish(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"steep maps: fused and plain kernels and the CPU agree", test_steep, NULL, NULL, NULL},
        {"the CPU goes on with nufft where a GPU fails", test_failover, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests_name("nufft on CUDA", tests, NULL, NULL) > 0;
}
