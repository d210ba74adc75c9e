/* The offline runner with stages that return nothing or much, fail, lie, hang: whatever happens, it
 * ends, says why, and leaves no thread. */
#include "pipeline/base/clock.h"
#include "test/rig/offline_rig.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* An analysis of the tests: one in `every` B-scans (0: each) gives `n_each` results. */
struct oct_analysis {
    unsigned n_each, every, n_pushed, n_given;
    uint64_t pause_us;
    bool lies;               /* names B-scans that never came */
    const atomic_bool *gate; /* not NULL: push hangs until it opens */
    atomic_uint *n_freed;
};

static enum oct_err analyse(struct oct_analysis *a, const struct oct_image_frame *bscan,
                            struct oct_error *err)
{
    (void)bscan;
    (void)err;
    bool gives = a->every == 0 || ++a->n_pushed % a->every == 0;
    a->n_given = gives ? 0 : a->n_each;
    if (a->pause_us)
        sleep_us(a->pause_us);
    while (a->gate && !atomic_load(a->gate))
        sleep_us(1000);
    return OCT_OK;
}

static enum oct_err give(struct oct_analysis *a, struct oct_image_frame *result,
                         struct oct_error *err)
{
    (void)err;
    if (a->n_given == a->n_each)
        return OCT_E_AGAIN;
    *(uint8_t *)result->pixels = (uint8_t)a->n_given++;
    result->info.id += a->lies ? ALL : 0;
    return OCT_OK;
}

static void forget(struct oct_analysis *a)
{
    (void)a;
}

static void go(struct oct_analysis *a)
{
    if (a->n_freed)
        atomic_fetch_add(a->n_freed, 1);
}

static const struct oct_stage_ops counting = {
    .push = analyse, .take = give, .reset = forget, .destroy = go};

static struct oct_stage *add_stage(struct rig *r, struct oct_analysis *analysis)
{
    static const struct oct_image_form form = {
        .name = "count", .type = OCT_SAMPLE_U8, .rank = 1, .dims = {4}, .axes = {"line"}};
    const struct oct_stage_setup setup = {.form = &form,
                                          .ops = &counting,
                                          .analysis = analysis,
                                          .pipeline = r->pipeline,
                                          .guaranteed = true};
    struct oct_stage *stage;
    if (oct_stage_create(&stage, &setup, &r->err))
        fail_msg("%s", r->err.text);
    return stage;
}

/* Two stages: the first is as given, the second has no results. */
static enum oct_err run_stages(struct rig *r, struct oct_analysis much)
{
    struct oct_analysis nothing = {.n_each = 0};
    struct oct_stage *stages[2] = {add_stage(r, &much), add_stage(r, &nothing)};
    struct oct_stage_counts counts;

    enum oct_err e = run_offline(r, stages, 2);
    for (int k = 0; k < 2; k++) {
        oct_stage_count(stages[k], &counts);
        assert_int_equal(counts.seen, r->counts.n_pictures);
        oct_stage_destroy(stages[k]);
    }
    assert_int_equal(r->n_results[1], 0);
    close_offline(r);
    return e;
}

static void all_results_reach_the_sink_behind_their_pictures(void **state)
{
    static const unsigned n_each[] = {0, 1, 20}; /* 20: more than the ring of results holds */
    for (size_t i = 0; i < sizeof(n_each) / sizeof(n_each[0]); i++)
        for (uint64_t pause_us = 0; pause_us <= 2000; pause_us += 2000) {
            struct rig r;
            open_offline(&r, (struct fake_script){.job_us = 20});
            r.skip_every = 3;
            assert_int_equal(
                run_stages(&r, (struct oct_analysis){.n_each = n_each[i], .pause_us = pause_us}),
                OCT_OK);
            assert_int_equal(r.n_pictures, ALL - 17);
            assert_int_equal(r.n_results[0], (ALL - 17) * n_each[i]);
        }
}

static void rare_results_wait_for_their_pictures(void **state)
{
    struct rig r;
    open_offline(&r, (struct fake_script){.depth = 1});
    r.sink_pause_us = 1000; /* pictures wait for the sink */
    assert_int_equal(run_stages(&r, (struct oct_analysis){.n_each = 1, .every = 5}), OCT_OK);
    assert_int_equal(r.n_results[0], ALL / 5);
}

static void an_error_at_a_result_ends_the_run(void **state)
{
    static const uint64_t places[] = {0, 10 * ALL, 20 * ALL - 1};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct rig r;
        open_offline(&r, (struct fake_script){.job_us = 20});
        r.result_fails_at = places[i];
        assert_int_equal(run_stages(&r, (struct oct_analysis){.n_each = 20}), OCT_E_NO_SPACE);
        assert_int_equal(r.n_results[0], places[i] + 1);
    }
}

static void what_else_fails_ends_the_stages_too(void **state)
{
    struct rig r;
    open_offline(&r, (struct fake_script){.job_us = 20});
    r.picture_fails_at = 5;
    assert_int_equal(run_stages(&r, (struct oct_analysis){.n_each = 20, .pause_us = 100}),
                     OCT_E_NO_SPACE);
    open_offline(&r, (struct fake_script){.job_us = 20});
    r.fails_at = 5;
    assert_int_equal(run_stages(&r, (struct oct_analysis){.n_each = 20, .pause_us = 100}),
                     OCT_E_FORMAT);
    open_offline(&r, (struct fake_script){.job_us = 20});
    r.n_source = 0;
    assert_int_equal(run_stages(&r, (struct oct_analysis){.n_each = 20, .pause_us = 100}), OCT_OK);
}

static void a_result_of_a_bscan_that_never_came_is_an_error(void **state)
{
    struct rig r;
    open_offline(&r, (struct fake_script){.job_us = 20});
    assert_int_equal(run_stages(&r, (struct oct_analysis){.n_each = 1, .lies = true}), OCT_E_ARG);
    assert_string_equal(r.err.text, "tape: analysis count: a result of a B-scan that never came");
}

/* The run first tells its progress after a tenth of a second. */
static void cancel_soon(void *context, uint64_t done, uint64_t all)
{
    struct rig *r = context;
    (void)done;
    (void)all;
    r->cancel = 1;
}

/* Begins a run with this analysis, cancels it after a tenth of a second, and returns when it has
 * ended. The stages stand. */
static uint64_t run_and_cancel(struct rig *r, struct oct_analysis *analysis,
                               struct oct_stage *stages[2])
{
    static struct oct_analysis nothing = {.n_each = 0};
    struct oct_error err;
    stages[0] = add_stage(r, analysis);
    stages[1] = add_stage(r, &nothing);
    r->setup = (struct oct_offline_setup){
        .pipeline = r->pipeline,
        .stages = stages,
        .n_stages = 2,
        .source = {.name = "tape", .n_bscans = ALL, .context = r, .read = read_bscan},
        .sink = {.context = r, .picture = take_offline_picture, .result = take_result},
        .progress = cancel_soon,
        .progress_context = r,
        .cancel = &r->cancel,
    };
    const uint64_t begun_ns = oct_clock_ns();
    assert_int_equal(oct_offline_run(&r->setup, &r->counts, &err),
                     r->picture_fails_at < ALL ? OCT_E_NO_SPACE : OCT_E_CLOSED);
    return oct_clock_ns() - begun_ns;
}

static void an_analysis_that_hangs_is_left_to_itself_when_cancelled(void **state)
{
    for (int after_failure = 0; after_failure < 2; after_failure++) {
        atomic_bool gate = false;
        atomic_uint n_freed = 0;
        struct oct_analysis hangs = {.n_each = 1, .gate = &gate, .n_freed = &n_freed};
        struct oct_stage *stages[2];
        struct rig r;
        open_offline(&r, (struct fake_script){.depth = 4});
        r.picture_fails_at = after_failure ? 0 : NEVER;
        assert_true(run_and_cancel(&r, &hangs, stages) < UINT64_C(2900000000));
        assert_false(oct_stage_drain(stages[0]));
        assert_true(oct_stage_drain(stages[1]));
        assert_int_equal(r.n_results[0], 0);
        oct_stage_destroy(stages[1]);
        oct_stage_destroy(stages[0]);
        oct_pipeline_destroy(r.pipeline);
        assert_int_equal(atomic_load(&n_freed), 0);
        atomic_store(&gate, true);
        expect_threads(r.n_threads);
        assert_int_equal(atomic_load(&n_freed), 1);
    }
}

/* Six B-scans are in the ring and the stage works half a second at each: it finishes one. */
static void a_slow_analysis_finishes_its_bscan_and_no_other_when_cancelled(void **state)
{
    struct oct_analysis slow = {.n_each = 1, .pause_us = 500000};
    struct oct_stage_counts counts;
    struct oct_stage *stages[2];
    struct rig r;
    open_offline(&r, (struct fake_script){.depth = 4});
    assert_true(run_and_cancel(&r, &slow, stages) < UINT64_C(1500000000));
    oct_stage_count(stages[0], &counts);
    assert_int_equal(counts.done, 1);
    assert_int_equal(counts.seen, 1);
    for (int k = 0; k < 2; k++) {
        assert_true(oct_stage_drain(stages[k]));
        oct_stage_destroy(stages[k]);
    }
    close_offline(&r);
}

static void too_many_stages_are_refused(void **state)
{
    struct rig r;
    struct oct_analysis nothing[OCT_OFFLINE_MAX_STAGES + 1] = {{0}};
    struct oct_stage *stages[OCT_OFFLINE_MAX_STAGES + 1];
    open_offline(&r, (struct fake_script){.depth = 1});
    for (unsigned k = 0; k <= OCT_OFFLINE_MAX_STAGES; k++)
        stages[k] = add_stage(&r, &nothing[k]);
    assert_int_equal(run_offline(&r, stages, OCT_OFFLINE_MAX_STAGES + 1), OCT_E_ARG);
    assert_int_equal(r.n_read, 0);
    for (unsigned k = 0; k <= OCT_OFFLINE_MAX_STAGES; k++)
        oct_stage_destroy(stages[k]);
    close_offline(&r);
}

int main(void)
{
    begin_threads();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_results_reach_the_sink_behind_their_pictures),
        cmocka_unit_test(rare_results_wait_for_their_pictures),
        cmocka_unit_test(an_error_at_a_result_ends_the_run),
        cmocka_unit_test(what_else_fails_ends_the_stages_too),
        cmocka_unit_test(a_result_of_a_bscan_that_never_came_is_an_error),
        cmocka_unit_test(an_analysis_that_hangs_is_left_to_itself_when_cancelled),
        cmocka_unit_test(a_slow_analysis_finishes_its_bscan_and_no_other_when_cancelled),
        cmocka_unit_test(too_many_stages_are_refused),
    };
    return cmocka_run_group_tests_name("offline stages", tests, NULL, NULL);
}
