/* The CPU engine with each instruction set against the oracle and the engine contract. */
#include "test/engine_rig.h"
#include "test/engine_suite.h"
#include "test/tap.h"

#include <string.h>

/* The suites pass over what a machine lacks; so something must say that these are never lacking. */
static void any_machine_runs_plain_and_auto(void **state)
{
    (void)state;
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

int main(void)
{
    static const struct oct_engine_options variants[] = {
        {.simd = "plain"},
        {.simd = "avx2"},
        {.simd = "avx512"},
    };
    const struct oct_suite suite = {&oct_engine_cpu, variants, 3};
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_machine_runs_plain_and_auto)};
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    n_failed += oct_suite_run_pictures(&suite);
    n_failed += oct_suite_run_flow(&suite);
    return n_failed > 0;
}
