/* A changed live key reaches what the key table says applies it, and nothing else. */
#include "daemon/daemon.h"
#include "pipeline/flow/slots.h"
#include "test/rig/fake_engine.h"
#include "test/rig/tap.h"

#include <string.h>

enum { N = 4, M = 20 };

struct rig {
    struct oct_daemon daemon;
    struct oct_session session;
    struct fake_watch watch;
    struct oct_ring_reader *reader;
};

static void set(struct rig *r, const char *key, const char *value)
{
    struct oct_error err = {.text = ""};
    if (oct_daemon_set(&r->daemon, key, value, &err))
        fail_msg("%s=%s: %s", key, value, err.text);
}

static int set_up(void **state)
{
    static struct rig r;
    const struct oct_calibration cal = {.wavelengths_nm = (double[]){800, 800.01, 800.02, 800.03},
                                        .n_wavelengths = N};
    struct oct_geometry g;
    struct oct_plan *plan;
    memset(&r, 0, sizeof(r));
    oct_config_init(&r.daemon.config);
    r.session.engine_name = "cpu";
    r.daemon.state = OCT_STATE_IDLE;
    r.daemon.session = &r.session;
    assert_int_equal(oct_geometry_init(&g, N, M, 1, 0, 0, OCT_SAMPLE_U8, NULL), OCT_OK);
    assert_int_equal(oct_plan_create(&plan, &g, &cal, &oct_chain_thesis, NULL), OCT_OK);
    r.session.plan = plan;
    const struct fake_script script = {.plan = plan, .depth = 4, .max_batch = 2};
    const struct oct_pipeline_setup setup = {.plan = plan,
                                             .ops = &fake_engine,
                                             .engine = fake_engine_create(&script, &r.watch),
                                             .ring_bscans = 8};
    assert_int_equal(oct_pipeline_create(&r.session.pipeline, &setup, NULL), OCT_OK);
    r.reader = oct_ring_reader_create(oct_pipeline_images(r.session.pipeline), true, 0);
    assert_non_null(r.reader);
    set(&r, "pipeline.range", "manual");
    *state = &r;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *r = *state;
    oct_ring_reader_destroy(r->reader);
    oct_pipeline_destroy(r->session.pipeline);
    oct_plan_destroy(r->session.plan);
    return 0;
}

/* White of the next B-scan, as the engine was told. */
static double next_white(struct rig *r)
{
    struct oct_ring *raw = oct_pipeline_raw(r->session.pipeline);
    uint64_t slot, image;
    assert_int_equal(oct_ring_acquire(raw, TEST_PATIENCE_US, &slot), OCT_OK);
    struct oct_raw_frame *frame = oct_raw_slot(raw, slot, &r->session.plan->geometry);
    memset(frame->line_valid, 1, M);
    memset(frame->spectra, 0, M * N * sizeof(*frame->spectra));
    oct_ring_publish(raw);
    assert_int_equal(oct_ring_read(r->reader, TEST_PATIENCE_US, &image), OCT_OK);
    double hi = oct_image_slot(oct_pipeline_images(r->session.pipeline), image)->hi;
    oct_ring_release(r->reader);
    return hi;
}

TEST_WITH(display_limits_reach_the_next_bscan, set_up, tear_down)
{
    struct rig *r = *state;
    set(r, "pipeline.max_db", "50");
    assert_true(next_white(r) == 50);
    set(r, "pipeline.max_db", "70");
    assert_true(next_white(r) == 70);
}

/* Changed behind its back, the configuration shows who takes it over. */
TEST_WITH(keys_of_other_things_do_not_touch_the_display, set_up, tear_down)
{
    struct rig *r = *state;
    static const char *const others[][2] = {
        {"record.eye", "OD"},       {"record.bscans", "no"},
        {"daemon.drain_s", "40"},   {"analysis.enface_projection", "max"},
        {"analysis.run", "enface"}, {"pipeline.threads", "2"},
    };
    set(r, "pipeline.max_db", "50");
    r->daemon.config.pipeline.max_db = 70;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        set(r, others[i][0], others[i][1]);
        assert_true(next_white(r) == 50);
    }
    set(r, "pipeline.smoothing_bscans", "3");
    assert_true(next_white(r) == 70);
}

TEST_WITH(a_key_that_cannot_change_now_is_named, set_up, tear_down)
{
    struct rig *r = *state;
    struct oct_error err;
    r->daemon.state = OCT_STATE_RUNNING;
    assert_int_equal(oct_daemon_set(&r->daemon, "scan.lines", "abc", &err), OCT_E_STATE);
    assert_non_null(strstr(err.text, "scan.lines: "));
    assert_non_null(strstr(err.text, "octctl stop"));
    r->daemon.state = OCT_STATE_RECORDING;
    assert_int_equal(oct_daemon_set(&r->daemon, "pipeline.max_db", "60", &err), OCT_E_STATE);
    assert_non_null(strstr(err.text, "pipeline.max_db: "));
}

TEST_WITH(the_forecast_is_made_anew_for_keys_that_change_it, set_up, tear_down)
{
    struct rig *r = *state;
    static const struct {
        const char *key, *value;
        bool forecast;
    } cases[] = {
        {"record.directory", "/tmp", true},
        {"record.spectra", "no", true},
        {"pipeline.percentile_low", "5", true},
        {"pipeline.range", "auto", true},
        {"pipeline.min_db", "1", false},
        {"record.pseudonym", "x", false},
        {"record.sync_interval_s", "2", false},
        {"daemon.drain_s", "9", false},
        {"analysis.enface_slab_first", "0.1", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        r->daemon.forecast.result.wanted_hz = 0;
        r->daemon.forecast.in_hz = 60000;
        set(r, cases[i].key, cases[i].value);
        if (cases[i].forecast != (r->daemon.forecast.result.wanted_hz == 60000))
            fail_msg("%s", cases[i].key);
    }
}

TEST_WITH(without_a_session_a_live_key_waits_for_the_next, set_up, tear_down)
{
    struct rig *r = *state;
    r->daemon.session = NULL;
    set(r, "pipeline.max_db", "50");
    set(r, "analysis.enface_projection", "slab");
    assert_true(r->daemon.config.pipeline.max_db == 50);
    r->daemon.session = &r->session;
    oct_daemon_apply(&r->daemon, OCT_APPLIES_DISPLAY);
    assert_true(next_white(r) == 50);
}
