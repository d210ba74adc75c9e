/* The offline runner: sources and sinks that skip, end and fail anywhere, engines that lose, stages
 * that return nothing or much; whatever happens, it ends, says why, and leaves no thread. */
#include "pipeline/base/clock.h"
#include "pipeline/flow/offline.h"
#include "test/rig/fake_engine.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { N = 16, M = 4, V = 8, D = 10, RING = 6, ALL = 50, NEVER = 1000000 };

/* What each index of the source is made of. */
static uint16_t first_sample(uint64_t index)
{
    return (uint16_t)(index * 977 + 3);
}

struct rig {
    struct oct_plan plan;
    struct fake_watch watch;
    struct oct_pipeline *pipeline;
    struct oct_offline_setup setup;
    struct oct_offline_counts counts;
    struct oct_error err;
    unsigned n_threads; /* before there was anything */
    volatile sig_atomic_t cancel;

    /* The source's. */
    uint64_t n_source, n_read;
    uint64_t fails_at;   /* index */
    uint64_t skip_every; /* 0: never; skips index % skip_every == 0 */
    uint64_t pause_us;
    bool waits; /* for the sink's failure, before it fails too */

    /* The sink's. */
    uint64_t n_pictures, last_index;
    uint64_t picture_fails_at, cancels_at; /* counted from 0 */
    uint64_t n_results[2], result_fails_at;
    uint64_t n_after_failure;
    atomic_bool failed;
    uint64_t sink_pause_us;

    uint64_t n_shown, shown_done;
};

static void open_rig(struct rig *r, struct fake_script script)
{
    memset(r, 0, sizeof(*r));
    r->n_threads = count_entries("/proc/self/task"); /* the case before has waited for its own */
    r->plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    script.plan = &r->plan;
    script.depth = script.depth ? script.depth : 2;
    script.max_batch = script.max_batch ? script.max_batch : 1;
    const struct oct_pipeline_setup setup = {
        .plan = &r->plan,
        .ops = &fake_engine,
        .engine = fake_engine_create(&script, &r->watch),
        .display = {.range = OCT_RANGE_MANUAL, .lo = 1, .hi = 2},
        .ring_bscans = RING,
    };
    assert_non_null(setup.engine);
    if (oct_pipeline_create(&r->pipeline, &setup, &r->err))
        fail_msg("%s", r->err.text);
    r->n_source = ALL;
    r->fails_at = r->picture_fails_at = r->cancels_at = r->result_fails_at = NEVER;
}

static enum oct_err read_bscan(void *context, uint64_t index, struct oct_raw_frame *frame,
                               enum oct_offline_next *next, struct oct_error *err)
{
    struct rig *r = context;
    assert_int_equal(index, r->n_read);
    assert_int_equal(frame->info.number, 0); /* nothing of the B-scan before */
    r->n_read++;
    if (r->pause_us)
        sleep_us(r->pause_us);
    while (index == r->fails_at && r->waits && !r->failed)
        sleep_us(100);
    if (index == r->fails_at)
        return oct_fail(err, OCT_E_FORMAT, "index %u is torn", (unsigned)index);
    *next = index == r->n_source                          ? OCT_OFFLINE_END
            : r->skip_every && index % r->skip_every == 0 ? OCT_OFFLINE_SKIP
                                                          : OCT_OFFLINE_BSCAN;
    frame->info.number = index;
    frame->info.id = 12345; /* the runner's */
    memset(frame->line_valid, 1, M);
    for (unsigned i = 0; i < M * N; i++)
        frame->spectra[i] = (uint16_t)(first_sample(index) + i);
    return OCT_OK;
}

static enum oct_err fail_here(struct rig *r, struct oct_error *err)
{
    r->failed = true;
    return oct_fail(err, OCT_E_NO_SPACE, "the sink is full");
}

static enum oct_err take_picture(void *context, uint64_t index,
                                 const struct oct_image_frame *picture, struct oct_error *err)
{
    struct rig *r = context;
    const uint8_t *pixels = picture->pixels;
    r->n_after_failure += r->failed;
    assert_int_equal(picture->status, OCT_OK);
    assert_int_equal(picture->info.number, index);
    assert_int_equal(picture->info.id, r->n_pictures);
    assert_true(picture->info.arrival_ns > 0);
    assert_true(r->n_pictures == 0 || index > r->last_index);
    for (unsigned i = 0; i < M * D; i++)
        assert_int_equal(pixels[i], fake_pixel(first_sample(index), 1));
    r->last_index = index;
    if (r->sink_pause_us)
        sleep_us(r->sink_pause_us);
    if (r->n_pictures == r->cancels_at)
        r->cancel = 1;
    return r->n_pictures++ == r->picture_fails_at ? fail_here(r, err) : OCT_OK;
}

static void show(void *context, uint64_t done, uint64_t all)
{
    struct rig *r = context;
    assert_true(done >= r->shown_done && done <= all);
    assert_int_equal(all, r->n_source);
    r->shown_done = done;
    r->n_shown++;
}

static enum oct_err take_result(void *context, unsigned stage, uint64_t index,
                                const struct oct_image_frame *result, struct oct_error *err);

/* A thread that was joined may be listed for a moment more. */
static void expect_threads(unsigned n)
{
    for (uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
         count_entries("/proc/self/task") != n; sleep_us(100))
        assert_true(oct_clock_ns() < until_ns);
}

/* Runs, and sees that nothing is left and that the counts are those of what was seen. */
static enum oct_err run(struct rig *r, struct oct_stage *const *stages, unsigned n_stages)
{
    r->setup = (struct oct_offline_setup){
        .pipeline = r->pipeline,
        .stages = stages,
        .n_stages = n_stages,
        .source = {.name = "tape", .n_bscans = r->n_source, .context = r, .read = read_bscan},
        .sink = {.context = r, .picture = take_picture, .result = take_result},
        .progress = show,
        .progress_context = r,
        .cancel = &r->cancel,
    };
    enum oct_err e = oct_offline_run(&r->setup, &r->counts, &r->err);
    expect_threads(r->n_threads);
    assert_int_equal(r->n_after_failure, 0);
    assert_int_equal(r->err.code, e);
    struct oct_pipeline_counts counts = oct_pipeline_count(r->pipeline);
    assert_int_equal(r->counts.n_pictures, counts.bscans_done + counts.bscans_dropped_engine);
    return e;
}

static void close_rig(struct rig *r)
{
    oct_pipeline_destroy(r->pipeline);
    expect_threads(r->n_threads);
    assert_int_equal(r->watch.n_wrong, 0);
}

/* ---- source, engine, sink ---- */

static void all_of_the_source_reaches_the_sink_in_order(void **state)
{
    (void)state;
    for (uint64_t skip_every = 0; skip_every <= 3; skip_every++) {
        struct rig r;
        open_rig(&r, (struct fake_script){.depth = 4, .max_batch = 3, .job_us = 50});
        r.skip_every = skip_every;
        assert_int_equal(run(&r, NULL, 0), OCT_OK);
        uint64_t n_skipped = skip_every ? (ALL + skip_every - 1) / skip_every : 0;
        assert_int_equal(r.n_pictures, ALL - n_skipped);
        assert_int_equal(r.counts.n_pictures, ALL - n_skipped);
        assert_int_equal(r.counts.n_skipped, n_skipped);
        assert_int_equal(r.n_read, ALL + 1);
        close_rig(&r);
    }
}

static void a_source_without_bscans_is_fine(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r, (struct fake_script){.depth = 1});
    r.n_source = 0;
    assert_int_equal(run(&r, NULL, 0), OCT_OK);
    assert_int_equal(r.n_pictures, 0);
    close_rig(&r);
}

static void an_error_of_the_source_ends_the_run(void **state)
{
    static const uint64_t places[] = {0, 1, ALL / 2, ALL - 1, ALL};
    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct rig r;
        char wanted[40];
        open_rig(&r, (struct fake_script){.job_us = 50});
        r.fails_at = places[i];
        snprintf(wanted, sizeof(wanted), "index %u is torn", (unsigned)places[i]);
        assert_int_equal(run(&r, NULL, 0), OCT_E_FORMAT);
        assert_string_equal(r.err.text, wanted);
        assert_int_equal(r.n_read, places[i] + 1);
        assert_true(r.n_pictures <= places[i]);
        close_rig(&r);
    }
}

static void an_error_of_the_sink_ends_the_run(void **state)
{
    static const uint64_t places[] = {0, ALL / 2, ALL - 1};
    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct rig r;
        open_rig(&r, (struct fake_script){.job_us = 50});
        r.picture_fails_at = places[i];
        assert_int_equal(run(&r, NULL, 0), OCT_E_NO_SPACE);
        assert_string_equal(r.err.text, "the sink is full");
        assert_int_equal(r.n_pictures, places[i] + 1);
        /* The source goes no further than the rings let it. */
        assert_true(r.n_read <= places[i] + 1 + 2 * (RING + 1) + 1 || r.n_read == ALL + 1);
        assert_true(i > 0 || r.n_read < ALL);
        close_rig(&r);
    }
}

static void the_first_error_wins(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r, (struct fake_script){.depth = 1, .max_batch = 1, .job_us = 100000});
    r.fails_at = 2;
    r.picture_fails_at = 1;
    assert_int_equal(run(&r, NULL, 0), OCT_E_FORMAT);
    assert_int_equal(r.n_pictures, 0);
    assert_int_equal(r.counts.n_pictures, 2); /* read to the end all the same */
    close_rig(&r);
    open_rig(&r, (struct fake_script){.depth = 1});
    r.picture_fails_at = 0;
    r.fails_at = 2;
    r.waits = true;
    assert_int_equal(run(&r, NULL, 0), OCT_E_NO_SPACE);
    assert_int_equal(r.n_read, 3);
    close_rig(&r);
}

static void a_bscan_that_the_engine_loses_is_named_by_its_index(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r, (struct fake_script){.fail_one_in = 7});
    r.skip_every = 2; /* the seventh B-scan has index 13 */
    assert_int_equal(run(&r, NULL, 0), OCT_E_BACKEND);
    assert_string_equal(r.err.text, "tape: the engine lost B-scan 13");
    assert_int_equal(r.n_pictures, 6);
    close_rig(&r);
}

static void an_engine_that_dies_ends_the_run(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r, (struct fake_script){.dies_at = 9});
    assert_int_equal(run(&r, NULL, 0), OCT_E_BACKEND);
    assert_non_null(strstr(r.err.text, "tape: the engine lost B-scan "));
    assert_true(r.n_pictures < 9);
    close_rig(&r);
}

static void it_is_cancelled_at_once(void **state)
{
    static const uint64_t places[] = {0, ALL / 2};
    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct rig r;
        open_rig(&r, (struct fake_script){.job_us = 50});
        r.cancels_at = places[i];
        assert_int_equal(run(&r, NULL, 0), OCT_E_CLOSED);
        assert_string_equal(r.err.text, "interrupted: nothing is left behind");
        assert_int_equal(r.n_pictures, places[i] + 1);
        close_rig(&r);
    }
    struct rig r; /* nothing but gaps: no picture comes that could ask */
    open_rig(&r, (struct fake_script){.depth = 1});
    r.n_source = NEVER;
    r.skip_every = 1;
    r.cancel = 1;
    r.pause_us = 1000;
    assert_int_equal(run(&r, NULL, 0), OCT_E_CLOSED);
    assert_true(r.n_read < NEVER);
    close_rig(&r);
}

static void progress_is_told_ten_times_a_second_at_most(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r, (struct fake_script){.depth = 1});
    r.pause_us = 10000;
    uint64_t began_ns = oct_clock_ns();
    assert_int_equal(run(&r, NULL, 0), OCT_OK);
    uint64_t tenths = (oct_clock_ns() - began_ns) / 100000000;
    assert_true(r.n_shown >= 1 && r.n_shown <= tenths);
    close_rig(&r);
}

/* ---- with stages ---- */

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

static enum oct_err take_result(void *context, unsigned stage, uint64_t index,
                                const struct oct_image_frame *result, struct oct_error *err)
{
    struct rig *r = context;
    r->n_after_failure += r->failed;
    assert_int_equal(index, result->info.number);
    assert_true(r->n_pictures > 0 && index <= r->last_index); /* its picture came before */
    uint64_t n = r->n_results[stage]++;
    return stage == 0 && n == r->result_fails_at ? fail_here(r, err) : OCT_OK;
}

/* Two stages: the first is as given, the second has no results. */
static enum oct_err run_stages(struct rig *r, struct oct_analysis much)
{
    struct oct_analysis nothing = {.n_each = 0};
    struct oct_stage *stages[2] = {add_stage(r, &much), add_stage(r, &nothing)};
    struct oct_stage_counts counts;

    enum oct_err e = run(r, stages, 2);
    for (int k = 0; k < 2; k++) {
        oct_stage_count(stages[k], &counts);
        assert_int_equal(counts.seen, r->counts.n_pictures);
        oct_stage_destroy(stages[k]);
    }
    assert_int_equal(r->n_results[1], 0);
    close_rig(r);
    return e;
}

static void all_results_reach_the_sink_behind_their_pictures(void **state)
{
    static const unsigned n_each[] = {0, 1, 20}; /* 20: more than the ring of results holds */
    (void)state;
    for (size_t i = 0; i < sizeof(n_each) / sizeof(n_each[0]); i++)
        for (uint64_t pause_us = 0; pause_us <= 2000; pause_us += 2000) {
            struct rig r;
            open_rig(&r, (struct fake_script){.job_us = 20});
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
    (void)state;
    struct rig r;
    open_rig(&r, (struct fake_script){.depth = 1});
    r.sink_pause_us = 1000; /* pictures wait for the sink */
    assert_int_equal(run_stages(&r, (struct oct_analysis){.n_each = 1, .every = 5}), OCT_OK);
    assert_int_equal(r.n_results[0], ALL / 5);
}

static void an_error_at_a_result_ends_the_run(void **state)
{
    static const uint64_t places[] = {0, 10 * ALL, 20 * ALL - 1};
    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct rig r;
        open_rig(&r, (struct fake_script){.job_us = 20});
        r.result_fails_at = places[i];
        assert_int_equal(run_stages(&r, (struct oct_analysis){.n_each = 20}), OCT_E_NO_SPACE);
        assert_int_equal(r.n_results[0], places[i] + 1);
    }
}

static void what_else_fails_ends_the_stages_too(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r, (struct fake_script){.job_us = 20});
    r.picture_fails_at = 5;
    assert_int_equal(run_stages(&r, (struct oct_analysis){.n_each = 20, .pause_us = 100}),
                     OCT_E_NO_SPACE);
    open_rig(&r, (struct fake_script){.job_us = 20});
    r.fails_at = 5;
    assert_int_equal(run_stages(&r, (struct oct_analysis){.n_each = 20, .pause_us = 100}),
                     OCT_E_FORMAT);
    open_rig(&r, (struct fake_script){.job_us = 20});
    r.n_source = 0;
    assert_int_equal(run_stages(&r, (struct oct_analysis){.n_each = 20, .pause_us = 100}), OCT_OK);
}

static void a_result_of_a_bscan_that_never_came_is_an_error(void **state)
{
    (void)state;
    struct rig r;
    open_rig(&r, (struct fake_script){.job_us = 20});
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
        .sink = {.context = r, .picture = take_picture, .result = take_result},
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
    (void)state;
    for (int after_failure = 0; after_failure < 2; after_failure++) {
        atomic_bool gate = false;
        atomic_uint n_freed = 0;
        struct oct_analysis hangs = {.n_each = 1, .gate = &gate, .n_freed = &n_freed};
        struct oct_stage *stages[2];
        struct rig r;
        open_rig(&r, (struct fake_script){.depth = 4});
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
    (void)state;
    open_rig(&r, (struct fake_script){.depth = 4});
    assert_true(run_and_cancel(&r, &slow, stages) < UINT64_C(1500000000));
    oct_stage_count(stages[0], &counts);
    assert_int_equal(counts.done, 1);
    assert_int_equal(counts.seen, 1);
    for (int k = 0; k < 2; k++) {
        assert_true(oct_stage_drain(stages[k]));
        oct_stage_destroy(stages[k]);
    }
    close_rig(&r);
}

static void too_many_stages_are_refused(void **state)
{
    (void)state;
    struct rig r;
    struct oct_analysis nothing[OCT_OFFLINE_MAX_STAGES + 1] = {{0}};
    struct oct_stage *stages[OCT_OFFLINE_MAX_STAGES + 1];
    open_rig(&r, (struct fake_script){.depth = 1});
    for (unsigned k = 0; k <= OCT_OFFLINE_MAX_STAGES; k++)
        stages[k] = add_stage(&r, &nothing[k]);
    assert_int_equal(run(&r, stages, OCT_OFFLINE_MAX_STAGES + 1), OCT_E_ARG);
    assert_int_equal(r.n_read, 0);
    for (unsigned k = 0; k <= OCT_OFFLINE_MAX_STAGES; k++)
        oct_stage_destroy(stages[k]);
    close_rig(&r);
}

static void *do_nothing(void *argument)
{
    return argument;
}

int main(void)
{
    pthread_t first; /* a sanitizer starts a thread of its own with the first of ours */
    if (pthread_create(&first, NULL, do_nothing, NULL) == 0)
        pthread_join(first, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_the_source_reaches_the_sink_in_order),
        cmocka_unit_test(a_source_without_bscans_is_fine),
        cmocka_unit_test(an_error_of_the_source_ends_the_run),
        cmocka_unit_test(an_error_of_the_sink_ends_the_run),
        cmocka_unit_test(the_first_error_wins),
        cmocka_unit_test(a_bscan_that_the_engine_loses_is_named_by_its_index),
        cmocka_unit_test(an_engine_that_dies_ends_the_run),
        cmocka_unit_test(it_is_cancelled_at_once),
        cmocka_unit_test(progress_is_told_ten_times_a_second_at_most),
        cmocka_unit_test(all_results_reach_the_sink_behind_their_pictures),
        cmocka_unit_test(rare_results_wait_for_their_pictures),
        cmocka_unit_test(an_error_at_a_result_ends_the_run),
        cmocka_unit_test(what_else_fails_ends_the_stages_too),
        cmocka_unit_test(a_result_of_a_bscan_that_never_came_is_an_error),
        cmocka_unit_test(an_analysis_that_hangs_is_left_to_itself_when_cancelled),
        cmocka_unit_test(a_slow_analysis_finishes_its_bscan_and_no_other_when_cancelled),
        cmocka_unit_test(too_many_stages_are_refused),
    };
    return cmocka_run_group_tests_name("offline", tests, NULL, NULL);
}
