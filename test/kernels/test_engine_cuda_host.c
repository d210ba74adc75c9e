/* The CUDA engine's kernels and its stream logic on the host (test/cuda_host/): the same tests that
 * the CPU engine passes, over both variants, one GPU and two, small batches and large.
 *
 * Under ThreadSanitizer every GPU thread is a thread to it, which costs it a second a B-scan: there
 * each kernel runs on a few lines only, which is where a missing barrier or atomic shows. */
#include "kernels/engines.h"
#include "test/cuda_host/cuda_host.h"
#include "test/rig/engine_rig.h"
#include "test/rig/engine_suite.h"
#include "test/rig/tap.h"

#define PATIENCE_MS 120000 /* a sanitizer or a busy machine is not a device that hangs */

static const struct oct_engine_options variants[] = {
    {.cuda = "auto", .max_batch = 4, .deadline_ms = PATIENCE_MS},
    {.cuda = "plain", .max_batch = 2, .n_streams = 1, .deadline_ms = PATIENCE_MS},
};

#if defined(__SANITIZE_THREAD__)

static const struct oct_scene_recipe few[] = {
    {.name = "three lines", .n_samples = 100, .n_lines = 3, .crop_last = 50},
    {.name = "three lines, P1 = 4096", .n_samples = 2049, .n_lines = 3, .crop_last = 50},
    {.name = "three lines, nufft",
     .n_samples = 2048,
     .n_lines = 3,
     .crop_last = 50,
     .interpolation = OCT_INTERPOLATION_NUFFT},
};

static void test_races(void **state)
{
    static const struct oct_display displays[] = {
        {.log = true, .range = OCT_RANGE_MANUAL, .hi = 60},
        {.range = OCT_RANGE_AUTO},
        {.range = OCT_RANGE_PERCENTILE, .percentile_lo = 5, .percentile_hi = 99},
    };
    for (size_t r = 0; r < sizeof(few) / sizeof(few[0]); r++) {
        struct oct_scene scene;
        assert_true(oct_scene_create(&scene, &few[r], 3));
        for (int v = 0; v < 2; v++) {
            struct oct_rig rig;
            struct oct_slot slot;
            assert_true(oct_rig_open(&rig, &oct_engine_cuda, &variants[v], &scene, OCT_SAMPLE_U8));
            oct_slot_open(&slot, &rig);
            for (int d = 0; d < 3; d++)
                oct_rig_run(&rig, &scene, &displays[d], &slot);
            oct_slot_close(&slot);
            oct_rig_close(&rig);
        }
        oct_scene_finish(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"no kernel has a race between its threads or blocks", test_races, NULL, NULL, NULL},
    };
    cuda_host_reset(1, (size_t)2 << 30);
    return cmocka_run_group_tests_name("races", tests, NULL, NULL) > 0;
}

#else

/* What differs for these kernels; a GPU sees them all (test/gpu/suite.c). */
static const char *const nufft[] = {
    "nufft, 833 samples, an odd padding, 7 lines",
    "nufft, 832 samples, wavelengths fall, dispersion from a file",
    "nufft, 1001 samples, wavelengths fall, dispersion over the spectrum",
    "nufft, 4 samples: the least",
    "nufft, 17 samples, a k map",
    "nufft, steep k map",
    "nufft, steep k map of a line that fills the grid",
    "nufft, 2047 samples, a single line without DC subtraction",
    "nufft, 2048 samples fill the grid, noise over the full range",
    "nufft, 2049 samples double the grid",
    "nufft, 4096 samples",
    "nufft, 5000 samples, the first pixels of depth",
    "nufft, cropped to 17 .. 1018",
    "nufft, cropped to depth 0",
    "nufft, cropped to the last depth",
    "nufft, missing lines are dark with DC from a file",
    "nufft, missing lines are dark without DC subtraction",
    "nufft, one line came and is its own mean",
    "nufft, no line came",
    "nufft, the coarsest accuracy: four taps",
    "nufft, seven taps, a line that fills the grid",
    NULL,
};

/* Bytes from the device for one B-scan. */
static size_t bytes_of_one(struct oct_rig *rig, const struct oct_scene *scene, bool values,
                           bool complex_values)
{
    static const struct oct_display display = {.log = true, .range = OCT_RANGE_MANUAL, .hi = 60};
    struct oct_slot slot;
    oct_slot_open(&slot, rig);
    if (values)
        oct_slot_ask_values(&slot);
    if (complex_values)
        oct_slot_ask_complex(&slot);
    const struct oct_raw_frame in = oct_rig_input(scene);
    const struct oct_engine_job job = {.in = &in, .out = &slot.frame, .display = display};
    const size_t before = cuda_host_bytes_down();
    assert_int_equal(rig->ops->submit(rig->engine, &job, 1), OCT_OK);
    assert_ptr_equal(oct_rig_collect(rig), &slot.frame);
    oct_slot_check(&slot);
    oct_slot_close(&slot);
    return cuda_host_bytes_down() - before;
}

static void complex_values_cross_the_bus_for_who_asks(void **state)
{
    static const struct oct_scene_recipe recipes[] = {
        {.name = "linear", .n_samples = 100, .n_lines = 4, .crop_first = 3, .crop_last = 50},
        {.name = "nufft",
         .n_samples = 100,
         .n_lines = 4,
         .crop_last = 50,
         .interpolation = OCT_INTERPOLATION_NUFFT}};
    for (int i = 0; i < 4; i++) {
        struct oct_scene scene;
        struct oct_rig rig;
        assert_true(oct_scene_create(&scene, &recipes[i / 2], 3));
        assert_true(oct_rig_open(&rig, &oct_engine_cuda, &variants[i % 2], &scene, OCT_SAMPLE_U8));
        const size_t pixels = scene.n_pixels;
        for (unsigned asked = 0; asked < 4; asked++)
            assert_int_equal(bytes_of_one(&rig, &scene, asked & 1, asked & 2),
                             pixels * (1 + (asked & 1 ? 4u : 0u) + (asked & 2 ? 8u : 0u)));
        oct_rig_close(&rig);
        oct_scene_finish(&scene);
    }
}

/* A device keeps room for complex values only where somebody can ask. */
static void room_for_complex_values_is_there_for_who_can_ask(void **state)
{
    static const struct oct_scene_recipe recipe = {
        .name = "room", .n_samples = 100, .n_lines = 4, .crop_last = 50};
    struct oct_engine_options options = {
        .cuda = "fused", .max_batch = 4, .n_streams = 2, .deadline_ms = PATIENCE_MS};
    struct oct_scene scene;
    struct oct_engine *engine;
    struct oct_plan *plan;
    size_t bytes[2];
    assert_true(oct_scene_create(&scene, &recipe, 3));
    assert_int_equal(oct_scene_plan(&scene, OCT_SAMPLE_U8, &plan, NULL), OCT_OK);
    for (int can_ask = 0; can_ask < 2; can_ask++) {
        options.has_complex = can_ask == 1;
        const size_t before = cuda_host_bytes_in_use();
        assert_int_equal(oct_engine_cuda.create(&engine, plan, &options, NULL), OCT_OK);
        bytes[can_ask] = cuda_host_bytes_in_use() - before;
        oct_engine_cuda.destroy(engine);
    }
    assert_int_equal(bytes[1] - bytes[0], 2u * 4u * scene.n_pixels * 8u);
    oct_plan_destroy(plan);
    oct_scene_finish(&scene);
}

/* While all workers are busy B-scans that come one by one wait together, and are one batch: a batch
 * for each would take many times as long. */
static void submit_one_by_one(const char *gpus)
{
    enum { N = 9, BUSY_US = 20000 };
    static const struct oct_scene_recipe recipe = {
        .name = "queue", .n_samples = 100, .n_lines = 4, .crop_last = 50};
    static const struct oct_display display = {.log = true, .range = OCT_RANGE_MANUAL, .hi = 60};
    const struct oct_engine_options options = {
        .cuda = "fused", .gpus = gpus, .max_batch = N, .n_streams = 1, .deadline_ms = PATIENCE_MS};
    struct oct_scene scene;
    struct oct_rig rig;
    struct oct_slot slots[N];
    unsigned n_launches[2] = {0}; /* of one, of all */
    assert_true(oct_scene_create(&scene, &recipe, 3));
    assert_true(oct_rig_open(&rig, &oct_engine_cuda, &options, &scene, OCT_SAMPLE_U8));
    const struct oct_raw_frame in = oct_rig_input(&scene);
    for (unsigned i = 0; i < N; i++)
        oct_slot_open(&slots[i], &rig);
    for (unsigned n = 1; n <= N; n += N - 1) { /* one, then all */
        const unsigned before = cuda_host_n_launches(0) + cuda_host_n_launches(1);
        cuda_host_set_pace(n > 1 ? BUSY_US : 0);
        for (unsigned i = 0; i < n; i++) {
            const struct oct_engine_job job = {
                .in = &in, .out = &slots[i].frame, .display = display};
            assert_int_equal(rig.ops->submit(rig.engine, &job, 1), OCT_OK);
        }
        for (unsigned i = 0; i < n; i++)
            assert_ptr_equal(oct_rig_collect(&rig), &slots[i].frame);
        cuda_host_set_pace(0);
        n_launches[n > 1] = cuda_host_n_launches(0) + cuda_host_n_launches(1) - before;
    }
    /* A batch or two a GPU; more if the submitter was held up. */
    assert_in_range(n_launches[1], n_launches[0], N * n_launches[0] / 2);
    for (unsigned i = 0; i < N; i++) {
        oct_slot_check(&slots[i]);
        oct_slot_close(&slots[i]);
    }
    oct_rig_close(&rig);
    oct_scene_finish(&scene);
}

static void what_waits_becomes_one_batch(void **state)
{
    submit_one_by_one("0");
    submit_one_by_one("0,1");
}

int main(void)
{
    static const struct oct_engine_options flows[] = {
        {.cuda = "fused", .deadline_ms = PATIENCE_MS},
        {.cuda = "fused", .gpus = "1,0", .max_batch = 3, .deadline_ms = PATIENCE_MS},
        {.cuda = "plain", .max_batch = 2, .n_streams = 5, .deadline_ms = PATIENCE_MS},
    };
    const struct oct_suite pictures = {&oct_engine_cuda, variants, 2, .is_slow = true};
    const struct oct_suite flow = {&oct_engine_cuda, flows, 3, .is_slow = true};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complex_values_cross_the_bus_for_who_asks),
        cmocka_unit_test(room_for_complex_values_is_there_for_who_can_ask),
        cmocka_unit_test(what_waits_becomes_one_batch),
    };
    cuda_host_reset(2, (size_t)2 << 30);
    int n_failed = cmocka_run_group_tests_name("complex values", tests, NULL, NULL);
    n_failed += oct_suite_run_pictures(&pictures);
    n_failed += oct_suite_run_nufft(&pictures, nufft);
    n_failed += oct_suite_run_flow(&flow);
    return n_failed > 0;
}

#endif
