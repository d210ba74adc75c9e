/* The forecast as the daemon keeps it, when what was measured is no more. */
#include "config/apply.h"
#include "daemon/forecast.h"
#include "test/rig/fake_engine.h"
#include "test/rig/tap.h"

#include <stdatomic.h>
#include <string.h>

enum { N = 4, M = 20 };

static atomic_bool has_failed_over;

static const char *running(const struct oct_engine *engine)
{
    (void)engine;
    return has_failed_over ? "cpu" : "cuda";
}

TEST(what_a_gpu_computed_is_not_forecast_of_the_cpu_that_took_over)
{
    const struct oct_calibration cal = {.wavelengths_nm = (double[]){800, 800.01, 800.02, 800.03},
                                        .n_wavelengths = N};
    struct oct_engine_ops ops = fake_engine;
    struct oct_geometry g;
    struct oct_plan *plan;
    struct oct_session session = {.engine_rates = {2, {12345, 12345}, {0}}, .engine_name = "cuda"};
    struct oct_daemon_forecast forecast = {.in_hz = 0};
    struct oct_config config;
    struct fake_watch watch = {.n_wrong = 0};
    ops.running = running;
    oct_config_init(&config);
    oct_config_display(&config, &session.engine_display);
    config.record.spectra = config.record.bscans = false;
    assert_int_equal(oct_geometry_init(&g, N, M, 1, 0, 0, OCT_SAMPLE_U8, NULL), OCT_OK);
    assert_int_equal(oct_plan_create(&plan, &g, &cal, &oct_chain_thesis, NULL), OCT_OK);
    const struct fake_script script = {.plan = plan, .depth = 4, .max_batch = 2};
    const struct oct_pipeline_setup setup = {
        .plan = plan, .ops = &ops, .engine = fake_engine_create(&script, &watch), .ring_bscans = 8};
    assert_int_equal(oct_pipeline_create(&session.pipeline, &setup, NULL), OCT_OK);

    session.engine_rates.n_taken = 1; /* one measurement warns of nothing */
    oct_daemon_forecast_measure(&forecast, &config, &session);
    assert_float_equal(forecast.result.engine_hz, 12345, 0);
    assert_false(forecast.result.slow_engine);
    assert_string_equal(forecast.warning, "");
    session.engine_rates.n_taken = 2;
    oct_daemon_forecast_measure(&forecast, &config, &session);
    assert_float_equal(forecast.result.engine_hz, 12345, 0);
    assert_float_equal(forecast.result.wanted_hz, 100000, 0);
    assert_false(forecast.result.slow_engine); /* built in: nobody wants that */
    assert_string_equal(forecast.warning, "");
    forecast.camera_hz = 50000; /* there was a camera, and it may go on */
    oct_daemon_forecast_changed(&forecast, &config, &session);
    assert_float_equal(forecast.result.wanted_hz, 50000, 0);
    assert_true(forecast.result.slow_engine);
    forecast.in_hz = 60000; /* what comes */
    oct_daemon_forecast_changed(&forecast, &config, &session);
    assert_float_equal(forecast.result.wanted_hz, 60000, 0);
    assert_true(forecast.result.slow_engine);
    forecast.in_hz = 0;
    assert_int_equal(oct_config_set_assignment(&config, "scan.line_rate_hz=100000", NULL), OCT_OK);
    oct_daemon_forecast_changed(&forecast, &config, &session);
    assert_float_equal(forecast.result.wanted_hz, 100000, 0);
    assert_true(forecast.result.slow_engine);
    for (unsigned n = 0; n < 2; n++) /* the machine was busy: found out while nothing comes */
        session.engine_rates.waited[n] = 0.5;
    oct_daemon_forecast_measured(&forecast, &config, &session);
    assert_true(forecast.result.busy);
    assert_string_equal(forecast.warning, "");
    oct_forecast_series_add(&session.engine_rates, 185167, 0);
    oct_daemon_forecast_measured(&forecast, &config, &session);
    assert_float_equal(forecast.result.engine_hz, 185167, 0);
    assert_string_equal(forecast.warning, "");
    session.engine_rates = (struct oct_forecast_series){2, {12345, 12345}, {0}};
    has_failed_over = true;
    oct_daemon_forecast_measure(&forecast, &config, &session);
    assert_float_equal(forecast.result.engine_hz, 0, 0);
    assert_false(forecast.result.slow_engine);
    assert_string_equal(forecast.warning, "");

    oct_pipeline_destroy(session.pipeline);
    oct_plan_destroy(plan);
}

TEST(the_engine_is_tried_seldom_and_only_while_nothing_comes)
{
    struct oct_daemon_forecast_idle idle = {0};
    const uint64_t s = 1000000000;
    uint64_t now_ns = 5 * s, n = 0, last_ns = now_ns;
    assert_false(oct_daemon_forecast_is_due(&idle, false, now_ns));
    for (; now_ns < 10000 * s; now_ns += s / 100) {
        if (!oct_daemon_forecast_is_due(&idle, true, now_ns))
            continue;
        if (n++ < 5)
            assert_int_equal(now_ns - last_ns, (s << n));
        else
            assert_int_equal(now_ns - last_ns, 60 * s);
        last_ns = now_ns;
    }
    assert_in_range(n, 168, 172);
    assert_false(oct_daemon_forecast_is_due(&idle, false, now_ns)); /* lines come */
    assert_false(oct_daemon_forecast_is_due(&idle, true, now_ns + 60 * s));
    assert_false(oct_daemon_forecast_is_due(&idle, true, now_ns + 62 * s - 1));
    assert_true(oct_daemon_forecast_is_due(&idle, true, now_ns + 62 * s));
}
