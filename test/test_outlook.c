/* The forecast as the daemon keeps it, when what was measured is no more. */
#include "config/apply.h"
#include "daemon/outlook.h"
#include "test/fake_engine.h"
#include "test/tap.h"

#include <stdatomic.h>

enum { N = 4, M = 20 };

static atomic_bool has_failed_over;

static const char *running(const struct oct_engine *engine)
{
    (void)engine;
    return has_failed_over ? "cpu" : "cuda";
}

static void what_a_gpu_computed_is_not_forecast_of_the_cpu_that_took_over(void **state)
{
    const struct oct_calibration cal = {.wavelengths_nm = (double[]){800, 800.01, 800.02, 800.03},
                                        .n_wavelengths = N};
    struct oct_engine_ops ops = fake_engine;
    struct oct_geometry g;
    struct oct_plan *plan;
    struct oct_session session = {.engine_hz = 12345, .engine_name = "cuda"};
    struct oct_outlook outlook = {.in_hz = 0};
    struct oct_config config;
    struct fake_watch watch = {.n_wrong = 0};
    (void)state;
    ops.running = running;
    oct_config_init(&config);
    oct_config_display(&config, &session.engine_display);
    config.record.spectra = config.record.bscans = false;
    assert_int_equal(oct_geometry_init(&g, N, M, 1, 0, 0, OCT_SAMPLE_U8, NULL), OCT_OK);
    assert_int_equal(oct_plan_create(&plan, &g, &cal, OCT_DC_BSCAN, OCT_INTERPOLATION_LINEAR, NULL),
                     OCT_OK);
    const struct fake_script script = {.plan = plan, .depth = 4, .max_batch = 2};
    const struct oct_pipeline_setup setup = {
        .plan = plan, .ops = &ops, .engine = fake_engine_create(&script, &watch), .ring_bscans = 8};
    assert_int_equal(oct_pipeline_create(&session.pipeline, &setup, NULL), OCT_OK);

    oct_outlook_measure(&outlook, &config, &session);
    assert_float_equal(outlook.forecast.engine_hz, 12345, 0);
    assert_true(outlook.forecast.slow_engine); /* 100,000 are wanted */
    has_failed_over = true;
    oct_outlook_measure(&outlook, &config, &session);
    assert_float_equal(outlook.forecast.engine_hz, 0, 0);
    assert_false(outlook.forecast.slow_engine);
    assert_string_equal(outlook.warning, "");

    oct_pipeline_destroy(session.pipeline);
    oct_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_gpu_computed_is_not_forecast_of_the_cpu_that_took_over),
    };
    return cmocka_run_group_tests_name("the outlook", tests, NULL, NULL);
}
