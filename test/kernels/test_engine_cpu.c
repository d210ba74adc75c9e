/* The CPU engine with each instruction set against the oracle and the engine contract. */
#include "kernels/device/workers.h"
#include "kernels/engines.h"
#include "test/rig/engine_rig.h"
#include "test/rig/engine_suite.h"
#include "test/rig/tap.h"

#include <stdlib.h>
#include <string.h>

/* The suites pass over what a machine lacks; so something must say that these are never lacking. */
static void any_machine_runs_plain_and_auto(void **state)
{
    static const struct oct_engine_options options[] = {
        {.simd = "plain"}, {.simd = "auto"}, {.simd = NULL}, {.simd = "plain", .n_threads = 3}};
    const struct oct_scene_recipe recipe = {.name = "any", .n_samples = 100, .n_lines = 2};
    struct oct_scene scene;
    assert_true(oct_scene_create(&scene, &recipe, 1));
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        struct oct_rig rig;
        assert_true(oct_rig_open(&rig, &oct_engine_cpu, &options[i], &scene, OCT_SAMPLE_U8));
        const char *described = oct_engine_cpu.describe(rig.engine);
        assert_non_null(strstr(described, "thread"));
        if (options[i].n_threads)
            assert_non_null(strstr(described, "3 threads"));
        oct_rig_close(&rig);
    }
    oct_scene_finish(&scene);
}

/* One picture of a scene by one instruction set; NULL when this machine lacks it. The caller frees
 * it. */
static uint8_t *picture(const struct oct_scene *scene, const char *simd,
                        const struct oct_display *display, enum oct_sample_type sample_type,
                        size_t *bytes)
{
    const struct oct_engine_options options = {.simd = simd};
    struct oct_rig rig;
    struct oct_slot slot;
    if (!oct_rig_open(&rig, &oct_engine_cpu, &options, scene, sample_type))
        return NULL;
    oct_slot_open(&slot, &rig);
    oct_rig_run(&rig, scene, display, &slot);
    uint8_t *copy = malloc(slot.bytes);
    assert_non_null(copy);
    memcpy(copy, slot.frame.pixels, slot.bytes);
    *bytes = slot.bytes;
    oct_slot_close(&slot);
    oct_rig_close(&rig);
    return copy;
}

/* Neither asks FFTW for lines of up to 4096 samples, nufft 8192, and both do the same sums in the
 * same order: what one machine recorded another reconstructs to the byte. */
static void avx2_and_avx512_make_the_same_bytes(void **state)
{
    static const struct oct_scene_recipe recipes[] = {
        {.name = "same", .n_samples = 832, .n_lines = 25, .crop_last = 1018, .crop_first = 3},
        {.name = "same, cubic",
         .n_samples = 2049,
         .n_lines = 4,
         .interpolation = OCT_INTERPOLATION_CUBIC,
         .light = OCT_LIGHT_RANDOM},
        {.name = "same, nufft",
         .n_samples = 833,
         .n_lines = 25,
         .crop_last = 1018,
         .crop_first = 3,
         .dispersion = OCT_DISPERSION_COEFFICIENTS,
         .interpolation = OCT_INTERPOLATION_NUFFT},
        {.name = "same, nufft, 8192 points",
         .n_samples = 8192,
         .n_lines = 3,
         .crop_last = 4096,
         .interpolation = OCT_INTERPOLATION_NUFFT,
         .light = OCT_LIGHT_RANDOM},
    };
    enum { N_RECIPES = sizeof(recipes) / sizeof(recipes[0]) };
    static const struct oct_display displays[] = {
        {.range = OCT_RANGE_AUTO},
        {.log = true, .range = OCT_RANGE_PERCENTILE, .percentile_lo = 5, .percentile_hi = 99}};
    bool both = true;

    for (size_t i = 0; i < 4 * N_RECIPES; i++) {
        enum oct_sample_type type = i / N_RECIPES / 2 ? OCT_SAMPLE_F32 : OCT_SAMPLE_U8;
        const struct oct_display *display = &displays[i / N_RECIPES % 2];
        struct oct_scene scene;
        size_t bytes = 0;
        assert_true(oct_scene_create(&scene, &recipes[i % N_RECIPES], 1));
        uint8_t *narrow = picture(&scene, "avx2", display, type, &bytes);
        uint8_t *wide = picture(&scene, "avx512", display, type, &bytes);
        both = narrow && wide;
        if (both)
            assert_memory_equal(narrow, wide, bytes);
        free(narrow);
        free(wide);
        oct_scene_finish(&scene);
    }
    if (!both)
        skip();
}

int main(void)
{
    static const struct oct_engine_options variants[] = {
        {.simd = "plain"},
        {.simd = "avx2"},
        {.simd = "avx512"},
    };
    const struct oct_suite suite = {&oct_engine_cpu, variants, 3, .is_slow = false};
    struct oct_engine_options lent[4] = {variants[0], variants[1], variants[2], {.simd = "auto"}};
    const struct oct_suite with_lent_pool = {&oct_engine_cpu, lent, 4, .is_slow = false};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_machine_runs_plain_and_auto),
        cmocka_unit_test(avx2_and_avx512_make_the_same_bytes),
    };
    struct oct_error err;
    if (oct_workers_create(&lent[3].workers, 3, &err))
        return 1;
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    n_failed += oct_suite_run_pictures(&suite);
    n_failed += oct_suite_run_nufft(&suite, NULL);
    n_failed += oct_suite_run_flow(&with_lent_pool);
    oct_workers_destroy(lent[3].workers);
    return n_failed > 0;
}
