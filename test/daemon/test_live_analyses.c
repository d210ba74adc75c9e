/* A changed live key reaches the analysis that it belongs to, and no other. */
#include "analysis/average/average.h"
#include "analysis/enface/enface.h"
#include "daemon/analyses.h"
#include "pipeline/base/clock.h"
#include "pipeline/flow/slots.h"
#include "test/rig/fake_engine.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4, M = 20, ENFACE = 0, AVERAGE = 1, N_ANALYSES = 2 };

/* An analysis that counts; it takes the name of one that ships, and with it that one's keys. */
struct oct_analysis {
    atomic_uint n_pushed, n_configured;
    union {
        struct oct_enface_settings enface;
        struct oct_average_settings average;
    } settings;
};

struct rig {
    struct oct_config config;
    struct oct_plan *plan;
    struct fake_watch watch;
    struct oct_pipeline *pipeline;
    struct oct_daemon_analyses all;
    unsigned n_fed;
};

static struct oct_analysis counters[N_ANALYSES];

static enum oct_err make(struct oct_analysis *a, struct oct_analysis **out, const char *name,
                         struct oct_image_form *form)
{
    memset(a, 0, sizeof(*a));
    *out = a;
    *form = (struct oct_image_form){.quantity = OCT_QUANTITY_LENGTH,
                                    .type = OCT_SAMPLE_F32,
                                    .rank = 1,
                                    .dims = {1},
                                    .axes = {"column"}};
    snprintf(form->name, sizeof(form->name), "%s", name);
    return OCT_OK;
}

static enum oct_err create_enface(struct oct_analysis **out, const struct oct_analysis_setup *setup,
                                  struct oct_image_form *form, struct oct_error *err)
{
    (void)setup;
    (void)err;
    return make(&counters[ENFACE], out, "enface", form);
}

static enum oct_err create_average(struct oct_analysis **out,
                                   const struct oct_analysis_setup *setup,
                                   struct oct_image_form *form, struct oct_error *err)
{
    (void)setup;
    (void)err;
    return make(&counters[AVERAGE], out, "average", form);
}

static enum oct_err push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                         struct oct_error *err)
{
    (void)bscan;
    (void)err;
    a->n_pushed++;
    return OCT_OK;
}

static enum oct_err take(struct oct_analysis *a, struct oct_image_frame *result,
                         struct oct_error *err)
{
    (void)a;
    (void)result;
    (void)err;
    return OCT_E_AGAIN;
}

static enum oct_err configure(struct oct_analysis *a, const void *settings, struct oct_error *err)
{
    (void)err;
    memcpy(&a->settings, settings,
           a == &counters[ENFACE] ? sizeof(a->settings.enface) : sizeof(a->settings.average));
    a->n_configured++;
    return OCT_OK;
}

static void forget(struct oct_analysis *a)
{
    (void)a;
}

#define RUN                                                                                        \
    {                                                                                              \
        .push = push, .take = take, .reset = forget, .configure = configure, .destroy = forget     \
    }
static const struct oct_analysis_ops enface = {.name = "enface",
                                               .backend = "cpu",
                                               .settings_bytes = sizeof(struct oct_enface_settings),
                                               .create = create_enface,
                                               .run = RUN},
                                     average = {.name = "average",
                                                .backend = "cpu",
                                                .settings_bytes =
                                                    sizeof(struct oct_average_settings),
                                                .create = create_average,
                                                .run = RUN};
static const struct oct_analysis_ops *const tables[N_ANALYSES] = {
    [ENFACE] = &enface, [AVERAGE] = &average};

static int set_up(void **state)
{
    static struct rig r;
    const struct oct_calibration cal = {.wavelengths_nm = (double[]){800, 800.01, 800.02, 800.03},
                                        .n_wavelengths = N};
    struct oct_geometry g;
    memset(&r, 0, sizeof(r));
    oct_config_init(&r.config);
    assert_int_equal(oct_geometry_init(&g, N, M, 1, 0, 0, OCT_SAMPLE_U8, NULL), OCT_OK);
    assert_int_equal(oct_plan_create(&r.plan, &g, &cal, &oct_chain_thesis, NULL), OCT_OK);
    const struct fake_script script = {.plan = r.plan, .depth = 4, .max_batch = 2};
    const struct oct_pipeline_setup setup = {.plan = r.plan,
                                             .ops = &fake_engine,
                                             .engine = fake_engine_create(&script, &r.watch),
                                             .ring_bscans = 8};
    assert_int_equal(oct_pipeline_create(&r.pipeline, &setup, NULL), OCT_OK);
    r.all.n = N_ANALYSES;
    for (unsigned i = 0; i < N_ANALYSES; i++)
        r.all.analysis[i].ops = tables[i];
    oct_daemon_analyses_start(&r.all, &r.config, r.pipeline, NULL);
    assert_int_equal(r.all.n_sources, N_ANALYSES);
    *state = &r;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *r = *state;
    oct_pipeline_drain(r->pipeline);
    oct_daemon_analyses_drain(&r->all);
    oct_daemon_analyses_destroy(&r->all);
    oct_pipeline_destroy(r->pipeline);
    oct_plan_destroy(r->plan);
    return 0;
}

/* A B-scan reaches those that are awake after what they were given before it. */
static void feed(struct rig *r)
{
    const uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    struct oct_ring *raw = oct_pipeline_raw(r->pipeline);
    uint64_t slot;
    assert_int_equal(oct_ring_acquire(raw, TEST_PATIENCE_US, &slot), OCT_OK);
    struct oct_raw_frame *frame = oct_raw_slot(raw, slot, &r->plan->geometry);
    frame->info = (struct oct_bscan_info){.id = r->n_fed, .number = r->n_fed, .volume = r->n_fed};
    memset(frame->line_valid, 1, M);
    memset(frame->spectra, 0, M * N * sizeof(*frame->spectra));
    oct_ring_publish(raw);
    r->n_fed++;
    for (unsigned i = 0; i < N_ANALYSES; i++)
        while (!r->all.analysis[i].rests && counters[i].n_pushed < r->n_fed) {
            assert_true(oct_clock_ns() < until_ns);
            sleep_us(200);
        }
}

static void change(struct rig *r, const char *key, const char *value)
{
    struct oct_error err = {.text = ""};
    if (oct_config_set(&r->config, key, value, "test", &err))
        fail_msg("%s=%s: %s", key, value, err.text);
    oct_daemon_analyses_configure(&r->all, &r->config);
    feed(r);
}

static void expect(unsigned n_enface, unsigned n_average)
{
    assert_int_equal(counters[ENFACE].n_configured, n_enface);
    assert_int_equal(counters[AVERAGE].n_configured, n_average);
}

TEST_WITH(settings_reach_the_analysis_that_they_are_of, set_up, tear_down)
{
    struct rig *r = *state;
    feed(r);
    expect(0, 0);
    change(r, "analysis.enface_slab_first", "0.1");
    expect(1, 0);
    assert_true(counters[ENFACE].settings.enface.slab_first == 0.1);
    change(r, "average.min_score", "0.5");
    expect(1, 1);
    assert_true(counters[AVERAGE].settings.average.min_score == 0.5);
    change(r, "average.min_score", "0.4");
    expect(1, 2);
    assert_true(counters[AVERAGE].settings.average.min_score == 0.4);
    change(r, "analysis.enface_projection", "max");
    expect(2, 2);
}

TEST_WITH(what_has_not_changed_reaches_none, set_up, tear_down)
{
    struct rig *r = *state;
    change(r, "average.min_score", "0.5");
    expect(0, 1);
    change(r, "average.min_score", "0.5");
    change(r, "record.eye", "OD");
    expect(0, 1);
    change(r, "average.min_score", "0"); /* as it was at first */
    expect(0, 2);
}
