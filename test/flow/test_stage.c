/* Stages: an analysis beside the stream, well-behaved and otherwise. */
#include "pipeline/flow/stage.h"

#include "pipeline/base/clock.h"
#include "test/rig/fake_engine.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { N = 16, M = 4, V = 8, D = 10 };

/* ---- an analysis that does what its script says ---- */

struct script {
    uint64_t push_us;
    unsigned fail_one_in;   /* pushes; 0: none */
    bool hangs;             /* push does, until `gate` opens */
    char hangs_in;          /* t, e, r, c: so does take, end, reset, configure */
    bool endless;           /* take never ends */
    uint32_t rows, columns; /* of results; 0: as the form says */
    double lo;
    bool from_the_future;
    bool refuses_settings;
    bool keeps_until_end; /* the results come at `end` */
    bool of_volume, whole_only;
};

struct oct_analysis {
    const struct script *script;
    struct watch *watch;
    struct oct_bscan_info newest;
    float mean;
    bool has_result, ended;
};

/* What the analysis was asked for; read by the test. */
struct watch {
    atomic_uint n_pushed, n_taken, n_ended, n_reset, n_configured, n_destroyed;
    atomic_bool gate;
    int settings;
    char order[64]; /* p, e, r: push, end, reset */
};

static void note(struct oct_analysis *a, char what)
{
    size_t n = strlen(a->watch->order);
    if (n + 1 < sizeof(a->watch->order))
        a->watch->order[n] = what;
}

static void hang(const struct oct_analysis *a, char where)
{
    while (a->script->hangs_in == where && !atomic_load(&a->watch->gate))
        sleep_us(200);
}

static float mean_of(const struct oct_image_frame *bscan)
{
    float sum = 0;
    for (unsigned i = 0; i < M * D; i++)
        sum += bscan->values ? bscan->values[i] : (float)((const uint8_t *)bscan->pixels)[i];
    return sum / (M * D);
}

static enum oct_err script_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                                struct oct_error *err)
{
    unsigned n = atomic_fetch_add(&a->watch->n_pushed, 1) + 1;
    note(a, 'p');
    if (a->script->push_us)
        sleep_us(a->script->push_us);
    while (a->script->hangs && !atomic_load(&a->watch->gate))
        sleep_us(1000);
    if (a->script->fail_one_in && n % a->script->fail_one_in == 0)
        return oct_fail(err, OCT_E_FORMAT, "push %u fails as the script says", n);
    a->newest = bscan->info;
    a->mean = mean_of(bscan);
    a->has_result = true;
    return OCT_OK;
}

static enum oct_err script_take(struct oct_analysis *a, struct oct_image_frame *result,
                                struct oct_error *err)
{
    (void)err;
    if (!a->has_result || (a->script->keeps_until_end && !a->ended) ||
        (a->script->whole_only && a->newest.bscan + 1 < V && !a->ended))
        return OCT_E_AGAIN;
    hang(a, 't');
    a->has_result = a->script->endless;
    a->ended = false;
    atomic_fetch_add(&a->watch->n_taken, 1);
    ((float *)result->pixels)[0] = a->mean;
    result->dims[0] = a->script->rows ? a->script->rows : result->dims[0];
    result->dims[1] = a->script->columns ? a->script->columns : result->dims[1];
    result->lo = a->script->lo;
    result->info = a->newest;
    result->info.number += a->script->from_the_future;
    return OCT_OK;
}

static void script_end(struct oct_analysis *a)
{
    note(a, 'e');
    hang(a, 'e');
    a->ended = true;
    atomic_fetch_add(&a->watch->n_ended, 1);
}

static void script_reset(struct oct_analysis *a)
{
    note(a, 'r');
    hang(a, 'r');
    a->ended = a->has_result = false;
    atomic_fetch_add(&a->watch->n_reset, 1);
}

static enum oct_err script_configure(struct oct_analysis *a, const void *settings,
                                     struct oct_error *err)
{
    if (a->script->refuses_settings)
        return oct_fail(err, OCT_E_CONFIG, "these settings cannot be");
    hang(a, 'c');
    memcpy(&a->watch->settings, settings, sizeof(int));
    atomic_fetch_add(&a->watch->n_configured, 1);
    return OCT_OK;
}

static void script_destroy(struct oct_analysis *a)
{
    atomic_fetch_add(&a->watch->n_destroyed, 1);
    free(a);
}

static const struct oct_stage_ops script_ops = {
    .push = script_push,
    .take = script_take,
    .end = script_end,
    .reset = script_reset,
    .configure = script_configure,
    .destroy = script_destroy,
};

/* ---- a pipeline with a stage, a recorder and a reader of the results ---- */

struct sink {
    struct oct_ring *ring;
    struct oct_ring_reader *reader;
    pthread_t thread;
    uint64_t pause_us;
    atomic_uint n;
    struct oct_stage *const *stage; /* not NULL: whose results are counted against its own */
    uint64_t n_uncounted;
    uint64_t longest_ns; /* between a picture's time of feeding and its arrival here */
    uint64_t number[4096];
    float first[4096];
};

struct rig {
    struct oct_plan plan;
    struct fake_watch fake;
    struct oct_pipeline *pipeline;
    struct oct_image_form form;
    struct watch watch;
    struct oct_stage *stage;
    struct sink pictures, results;
    uint64_t n_fed;
    uint32_t acquisition;
};

static void *run_sink(void *argument)
{
    struct sink *s = argument;
    uint64_t slot;
    enum oct_err e;
    while ((e = oct_ring_read(s->reader, s->stage ? 0 : 10000, &slot)) != OCT_E_CLOSED) {
        if (e)
            continue;
        if (s->stage) {
            struct oct_stage_counts c;
            oct_stage_count(*s->stage, &c);
            s->n_uncounted += c.results <= s->n;
        }
        const struct oct_image_frame *frame = oct_image_slot(s->ring, slot);
        uint64_t took_ns = oct_clock_ns() - frame->info.arrival_ns;
        s->longest_ns = took_ns > s->longest_ns ? took_ns : s->longest_ns;
        s->number[s->n % 4096] = frame->info.number;
        if (frame->form->type == OCT_SAMPLE_F32)
            s->first[s->n % 4096] = ((const float *)frame->pixels)[0];
        if (s->pause_us)
            sleep_us(s->pause_us);
        oct_ring_release(s->reader);
        s->n++;
    }
    return NULL;
}

static void open_sink(struct sink *s, struct oct_ring *ring, bool guaranteed, uint64_t pause_us)
{
    s->ring = ring;
    s->pause_us = pause_us;
    s->reader = add_reader(ring, guaranteed, 4);
    assert_int_equal(pthread_create(&s->thread, NULL, run_sink, s), 0);
}

static void close_sink(struct sink *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    oct_ring_reader_destroy(s->reader);
}

static void open_pipeline(struct rig *r, struct fake_script fake, bool lends_values)
{
    struct oct_error err = {.text = ""};
    memset(r, 0, sizeof(*r));
    r->plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    fake.plan = &r->plan;
    fake.depth = fake.depth ? fake.depth : 4;
    fake.max_batch = 1;
    const struct oct_pipeline_setup setup = {
        .plan = &r->plan,
        .ops = &fake_engine,
        .engine = fake_engine_create(&fake, &r->fake),
        .display = {.range = OCT_RANGE_MANUAL, .log = true, .lo = 0, .hi = 255},
        .ring_bscans = 16,
        .lends_values = lends_values,
    };
    if (oct_pipeline_create(&r->pipeline, &setup, &err))
        fail_msg("%s", err.text);
    r->form = (struct oct_image_form){.name = "scripted",
                                      .quantity = OCT_QUANTITY_INTENSITY_DB,
                                      .type = OCT_SAMPLE_F32,
                                      .rank = 2,
                                      .dims = {5, 3},
                                      .axes = {"row", "column"}};
    open_sink(&r->pictures, oct_pipeline_images(r->pipeline), true, 0);
}

static enum oct_err try_stage(struct rig *r, const struct script *script,
                              struct oct_stage_setup setup, struct oct_error *err)
{
    struct oct_analysis *a = calloc(1, sizeof(*a));
    assert_non_null(a);
    a->script = script;
    a->watch = &r->watch;
    r->form.of_volume = script->of_volume;
    setup.form = &r->form;
    setup.ops = &script_ops;
    setup.analysis = a;
    setup.pipeline = r->pipeline;
    setup.settings_bytes = sizeof(int);
    return oct_stage_create(&r->stage, &setup, err);
}

static void open_stage(struct rig *r, const struct script *script, struct oct_stage_setup setup)
{
    struct oct_error err = {.text = ""};
    if (try_stage(r, script, setup, &err))
        fail_msg("%s", err.text);
    open_sink(&r->results, oct_stage_results(r->stage).ring, setup.guaranteed, r->results.pause_us);
}

static void open_rig(struct rig *r, const struct script *script)
{
    open_pipeline(r, (struct fake_script){.depth = 4}, false);
    open_stage(r, script, (struct oct_stage_setup){.input = OCT_STAGE_PICTURES});
}

/* The first sample of a B-scan decides its pixels (fake_engine.h). */
static uint16_t sample_of(uint64_t number)
{
    return (uint16_t)(number % 200);
}

static void feed(struct rig *r, unsigned n, uint64_t pause_us)
{
    struct oct_ring *raw = oct_pipeline_raw(r->pipeline);
    for (unsigned i = 0; i < n; i++) {
        uint64_t slot;
        assert_int_equal(oct_ring_acquire(raw, TEST_PATIENCE_US, &slot), OCT_OK);
        struct oct_raw_frame *frame = oct_raw_slot(raw, slot, &r->plan.geometry);
        frame->info = (struct oct_bscan_info){.id = slot,
                                              .acquisition = r->acquisition,
                                              .number = r->n_fed,
                                              .volume = r->n_fed / V,
                                              .bscan = (uint32_t)(r->n_fed % V),
                                              .arrival_ns = oct_clock_ns()};
        memset(frame->line_valid, 1, M);
        for (unsigned k = 0; k < M * N; k++)
            frame->spectra[k] = sample_of(r->n_fed);
        r->n_fed++;
        oct_ring_publish(raw);
        if (pause_us)
            sleep_us(pause_us);
    }
}

static uint64_t sum_of_skips(const struct oct_stage_counts *c)
{
    uint64_t n = 0;
    for (int i = 0; i < OCT_STAGE_N_SKIPS; i++)
        n += c->skipped[i];
    return n;
}

static struct oct_stage_counts count(struct rig *r)
{
    struct oct_stage_counts c;
    oct_stage_count(r->stage, &c);
    assert_int_equal(c.seen, c.done + sum_of_skips(&c));
    return c;
}

/* Ends the stream and hands back what the stage had counted. */
static struct oct_stage_counts drain(struct rig *r)
{
    oct_pipeline_drain(r->pipeline);
    close_sink(&r->pictures);
    oct_stage_drain(r->stage);
    close_sink(&r->results);
    return count(r);
}

static void close_rig(struct rig *r)
{
    oct_stage_destroy(r->stage);
    oct_pipeline_destroy(r->pipeline);
    assert_int_equal(r->fake.n_wrong, 0);
}

static void wait_until(const atomic_uint *n, unsigned wanted)
{
    uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    while (atomic_load(n) < wanted) {
        assert_true(oct_clock_ns() < until_ns);
        sleep_us(500);
    }
}

/* One at a time, so that a busy machine makes none late. */
static void feed_in_step(struct rig *r, unsigned n)
{
    struct oct_stage_counts c;
    uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    for (unsigned i = 0; i < n; i++) {
        feed(r, 1, 0);
        do {
            oct_stage_count(r->stage, &c);
            assert_true(oct_clock_ns() < until_ns);
            sleep_us(50);
        } while (c.seen < r->n_fed);
        wait_until(&r->results.n, (unsigned)c.results);
    }
}

/* ---- cases ---- */

static void every_bscan_gives_its_result_in_order(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    (void)state;
    open_rig(&r, &script);
    feed_in_step(&r, 100);
    struct oct_stage_counts c = drain(&r);
    assert_int_equal(c.done, 100);
    assert_int_equal(c.results, 100);
    assert_int_equal(c.failure.code, OCT_OK);
    assert_string_equal(c.running, "cpu");
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(r.results.number[i], i);
        assert_true(r.results.first[i] == (float)fake_pixel(sample_of(i), 0));
    }
    assert_int_equal(*oct_stage_results(r.stage).dealt_below, 100);
    close_rig(&r);
    assert_int_equal(r.watch.n_destroyed, 1);
}

/* Pictures and a guaranteed reader of them go on at their own pace. */
static void a_slow_one_skips_and_holds_up_nobody(void **state)
{
    static const struct script script = {.push_us = 400000};
    struct rig r;
    (void)state;
    open_rig(&r, &script);
    for (unsigned i = 0; i < 100; i++) {
        feed(&r, 10, 1000);
        count(&r); /* the account is right at every moment */
    }
    wait_until(&r.pictures.n, 1000);
    uint64_t longest_ns = r.pictures.longest_ns;
    struct oct_stage_counts c = drain(&r);
    assert_int_equal(r.pictures.n, 1000);
    assert_true(longest_ns < 350000000); /* less than one push: a busy machine alone takes some */
    assert_int_equal(c.seen, 1000);
    assert_true(c.skipped[OCT_STAGE_LATE] > 500);
    assert_true(c.done > 1);
    assert_int_equal(c.results, c.done);
    for (unsigned i = 1; i < r.results.n; i++)
        assert_true(r.results.number[i] > r.results.number[i - 1]);
    close_rig(&r);
}

static void one_that_never_returns_is_left_to_itself(void **state)
{
    static const struct script script = {.hangs = true};
    struct rig r;
    (void)state;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    open_stage(&r, &script, (struct oct_stage_setup){.give_up_ms = 200});
    feed(&r, 200, 500);
    wait_until(&r.pictures.n, 200);
    struct oct_stage_counts c = count(&r);
    assert_true(c.busy_ns > 50000000);
    assert_int_equal(c.done, 0);
    uint64_t begun_ns = oct_clock_ns();
    drain(&r);
    oct_stage_destroy(r.stage);
    oct_pipeline_destroy(r.pipeline);
    assert_true(oct_clock_ns() - begun_ns < UINT64_C(5000000000));
    assert_int_equal(r.watch.n_destroyed, 0);
    atomic_store(&r.watch.gate, true);
    wait_until(&r.watch.n_destroyed, 1);
    assert_int_equal(r.watch.n_pushed, 1);
    assert_int_equal(r.watch.n_taken, 0);
}

static void several_that_hang_are_waited_for_together(void **state)
{
    static const struct script script = {.hangs = true};
    struct rig r, other;
    (void)state;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    memset(&other, 0, sizeof(other));
    other.pipeline = r.pipeline;
    other.form = r.form;
    open_stage(&r, &script, (struct oct_stage_setup){.give_up_ms = 1000});
    open_stage(&other, &script, (struct oct_stage_setup){.give_up_ms = 1000});
    feed(&r, 1, 0);
    wait_until(&r.watch.n_pushed, 1);
    wait_until(&other.watch.n_pushed, 1);
    oct_pipeline_drain(r.pipeline);
    uint64_t begun_ns = oct_clock_ns();
    oct_stage_begin_drain(r.stage);
    oct_stage_begin_drain(other.stage);
    assert_false(oct_stage_drain(r.stage));
    assert_false(oct_stage_drain(other.stage));
    uint64_t took_ns = oct_clock_ns() - begun_ns;
    assert_true(took_ns > 990000000 && took_ns < 1900000000);
    drain(&r);
    close_sink(&other.results);
    oct_stage_destroy(other.stage);
    oct_stage_destroy(r.stage);
    oct_pipeline_destroy(r.pipeline);
    atomic_store(&r.watch.gate, true);
    atomic_store(&other.watch.gate, true);
    wait_until(&r.watch.n_destroyed, 1);
    wait_until(&other.watch.n_destroyed, 1);
}

static void *open_gate(void *argument)
{
    struct rig *r = argument;
    sleep_us(20000 + r->n_fed % 7 * 300); /* give_up_ms is 20 */
    atomic_store(&r->watch.gate, true);
    return NULL;
}

/* It may come back before it is left to itself, at that moment, or after all else has gone. */
static void wherever_it_hangs_nothing_waits_for_it(void **state)
{
    static const struct script scripts[] = {
        {.hangs_in = 't'}, {.hangs_in = 'e'}, {.hangs_in = 'r'}, {.hangs_in = 'c'}};
    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        struct rig r;
        pthread_t opener;
        bool is_last = i % 10 >= 7; /* back only when all else has gone */
        open_pipeline(&r, (struct fake_script){.depth = 4}, false);
        open_stage(&r, &scripts[i % 4], (struct oct_stage_setup){.give_up_ms = 20});
        feed(&r, 5 + i, 0);
        oct_stage_configure(r.stage, &(int){1});
        r.acquisition = 1;
        feed(&r, 5, 0);
        if (!is_last)
            assert_int_equal(pthread_create(&opener, NULL, open_gate, &r), 0);
        drain(&r);
        oct_stage_destroy(r.stage);
        oct_pipeline_destroy(r.pipeline);
        if (is_last)
            atomic_store(&r.watch.gate, true);
        else
            assert_int_equal(pthread_join(opener, NULL), 0);
        wait_until(&r.watch.n_destroyed, 1);
    }
}

static void one_that_fails_goes_on_with_the_next(void **state)
{
    static const struct script script = {.fail_one_in = 3};
    struct rig r;
    (void)state;
    open_rig(&r, &script);
    feed_in_step(&r, 60);
    struct oct_stage_counts c = drain(&r);
    assert_int_equal(c.seen, 60);
    assert_int_equal(r.watch.n_pushed, 60);
    assert_int_equal(c.done, r.watch.n_pushed - r.watch.n_pushed / 3);
    assert_int_equal(c.skipped[OCT_STAGE_FAILED], r.watch.n_pushed / 3);
    assert_int_equal(c.failure.code, OCT_E_FORMAT);
    assert_non_null(strstr(c.failure.text, "fails as the script says"));
    assert_int_equal(r.pictures.n, 60);
    close_rig(&r);
}

static void check_nonsense(const struct script *script, const char *text)
{
    struct rig r;
    open_rig(&r, script);
    feed(&r, 20, 500);
    struct oct_stage_counts c = drain(&r);
    assert_int_equal(c.done, 0);
    assert_int_equal(c.seen, 20);
    assert_int_equal(c.skipped[OCT_STAGE_FAILED] + c.skipped[OCT_STAGE_LATE], 20);
    assert_int_equal(c.failure.code, OCT_E_ARG);
    if (!strstr(c.failure.text, text))
        fail_msg("'%s' does not say '%s'", c.failure.text, text);
    if (!script->endless)
        assert_int_equal(r.results.n, 0);
    assert_int_equal(r.pictures.n, 20);
    close_rig(&r);
}

static void nonsense_is_never_published(void **state)
{
    (void)state;
    check_nonsense(&(struct script){.rows = 6}, "axis 'row' has 6, its form 5");
    check_nonsense(&(struct script){.rows = UINT32_MAX}, "nonsense size");
    check_nonsense(&(struct script){.columns = 2}, "axis 'column' has 2, its form 3");
    check_nonsense(&(struct script){.lo = NAN}, "no numbers");
    check_nonsense(&(struct script){.lo = INFINITY}, "no numbers");
    check_nonsense(&(struct script){.from_the_future = true}, "has not come yet");
    check_nonsense(&(struct script){.endless = true}, "without end");
}

static void fewer_rows_are_no_nonsense(void **state)
{
    static const struct script script = {.rows = 2};
    struct rig r;
    (void)state;
    open_rig(&r, &script);
    feed_in_step(&r, 10);
    assert_int_equal(drain(&r).done, 10);
    close_rig(&r);
}

static void pictures_that_the_engine_lost_are_skipped(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    (void)state;
    open_pipeline(&r, (struct fake_script){.depth = 4, .fail_one_in = 4}, false);
    open_stage(&r, &script, (struct oct_stage_setup){.input = OCT_STAGE_PICTURES});
    feed_in_step(&r, 40);
    struct oct_stage_counts c = drain(&r);
    assert_int_equal(c.skipped[OCT_STAGE_LOST], 10);
    assert_int_equal(c.done, 30);
    close_rig(&r);
}

static float mean_value(uint16_t first_sample)
{
    float sum = 0;
    for (unsigned i = 0; i < M * D; i++)
        sum += fake_value(first_sample, 0, i);
    return sum / (M * D);
}

static void values_come_for_every_bscan_while_it_keeps_up(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    (void)state;
    open_pipeline(&r, (struct fake_script){.depth = 4}, true);
    open_stage(&r, &script, (struct oct_stage_setup){.input = OCT_STAGE_VALUES, .asker = 3});
    feed_in_step(&r, 50);
    struct oct_stage_counts c = drain(&r);
    assert_int_equal(c.done, 50);
    for (unsigned i = 0; i < 50; i++)
        assert_true(r.results.first[i] == mean_value(sample_of(i)));
    close_rig(&r);
}

/* Of a B-scan that nobody wants the values of there are none. */
static void values_are_not_made_for_one_that_is_late(void **state)
{
    static const struct script script = {.push_us = 30000};
    struct rig r;
    (void)state;
    open_pipeline(&r, (struct fake_script){.depth = 4}, true);
    open_stage(&r, &script, (struct oct_stage_setup){.input = OCT_STAGE_VALUES});
    feed(&r, 300, 500);
    struct oct_stage_counts c = drain(&r);
    assert_int_equal(c.seen, 300);
    assert_true(c.done >= 3);
    assert_true(r.fake.n_with_values < 150);
    assert_true(r.fake.n_with_values >= c.done);
    close_rig(&r);
}

static void one_that_wants_values_where_none_are_lent_is_refused(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    struct oct_error err;
    (void)state;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    assert_int_equal(
        try_stage(&r, &script, (struct oct_stage_setup){.input = OCT_STAGE_VALUES}, &err),
        OCT_E_STATE);
    assert_null(r.stage);
    assert_int_equal(r.watch.n_destroyed, 1);
    oct_pipeline_drain(r.pipeline);
    close_sink(&r.pictures);
    oct_pipeline_destroy(r.pipeline);
}

static void a_form_that_cannot_be_is_refused(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    struct oct_error err;
    (void)state;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    const struct oct_image_form good = r.form;
    for (int i = 0; i < 9; i++) {
        struct oct_image_form *f = &r.form;
        *f = good;
        f->rank = i == 0 ? 0 : i == 1 ? 4 : f->rank;
        f->dims[1] = i == 2 ? 0 : i == 3 ? UINT32_MAX : f->dims[1];
        f->type = i == 4 ? (enum oct_sample_type)7 : f->type;
        f->quantity = i == 5 ? OCT_QUANTITY_NUMBERS : i == 6 ? OCT_N_QUANTITIES : f->quantity;
        if (i == 7)
            memset(f->name, 'a', sizeof(f->name));
        if (i == 8)
            f->name[0] = '/';
        assert_int_equal(try_stage(&r, &script, (struct oct_stage_setup){.asker = 0}, &err),
                         OCT_E_ARG);
    }
    assert_int_equal(r.watch.n_destroyed, 9);
    oct_pipeline_drain(r.pipeline);
    close_sink(&r.pictures);
    oct_pipeline_destroy(r.pipeline);
}

/* Offline a slow analysis and a slow reader of its results hold up all, and nothing is left out. */
static void offline_every_bscan_passes(void **state)
{
    static const struct script script = {.push_us = 3000};
    struct rig r;
    (void)state;
    open_pipeline(&r, (struct fake_script){.depth = 4}, true);
    r.results.pause_us = 5000;
    open_stage(&r, &script,
               (struct oct_stage_setup){.input = OCT_STAGE_VALUES, .guaranteed = true});
    feed(&r, 60, 0);
    struct oct_stage_counts c = drain(&r);
    assert_int_equal(c.done, 60);
    assert_int_equal(c.seen, 60);
    assert_int_equal(r.results.n, 60);
    for (unsigned i = 0; i < 60; i++)
        assert_int_equal(r.results.number[i], i);
    close_rig(&r);
}

/* However late its thread starts. */
static void the_first_bscan_behind_create_has_its_values(void **state)
{
    static const struct script script = {.push_us = 0};
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        struct rig r;
        open_pipeline(&r, (struct fake_script){.depth = 4}, true);
        open_stage(&r, &script,
                   (struct oct_stage_setup){.input = OCT_STAGE_VALUES, .guaranteed = true});
        feed(&r, 3, 0);
        struct oct_stage_counts c = drain(&r);
        assert_int_equal(c.done, 3);
        close_rig(&r);
    }
}

/* Whoever has read n results finds at least n of them counted. */
static void a_result_is_counted_before_it_can_be_read(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    (void)state;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    r.results.stage = &r.stage;
    open_stage(&r, &script, (struct oct_stage_setup){.guaranteed = true});
    feed(&r, 20000, 0);
    drain(&r);
    assert_int_equal(r.results.n, 20000);
    assert_int_equal(r.results.n_uncounted, 0);
    close_rig(&r);
}

/* As the recorder does while it opens a file. */
static void small_results_wait_for_a_reader_that_comes_late(void **state)
{
    static const struct script script = {.push_us = 0};
    struct rig r;
    uint64_t slot;
    (void)state;
    open_rig(&r, &script);
    struct oct_ring *ring = oct_stage_results(r.stage).ring;
    struct oct_ring_reader *late = add_reader(ring, false, oct_ring_n_slots(ring) / 2);
    feed_in_step(&r, 200);
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(oct_ring_read(late, 0, &slot), OCT_OK);
        assert_int_equal(oct_image_slot(ring, slot)->info.number, i);
        oct_ring_release(late);
    }
    assert_int_equal(oct_ring_skipped(late), 0);
    oct_ring_reader_destroy(late);
    drain(&r);
    close_rig(&r);
}

/* Makes the stage of the rig the input of another, which becomes the stage of `second`. */
static void open_second(struct rig *r, struct rig *second, const struct script *script,
                        struct oct_stage_setup setup)
{
    const struct oct_image_source first = oct_stage_results(r->stage);
    memset(second, 0, sizeof(*second));
    second->pipeline = r->pipeline;
    second->form = r->form;
    setup.in = first.ring;
    setup.input_form = first.form;
    open_stage(second, script, setup);
}

static void results_of_one_are_the_input_of_another(void **state)
{
    static const struct script script = {.push_us = 0, .rows = 2};
    struct rig r, second;
    (void)state;
    open_pipeline(&r, (struct fake_script){.depth = 4}, true);
    const struct oct_stage_setup setup = {.input = OCT_STAGE_VALUES, .guaranteed = true};
    open_stage(&r, &script, setup);
    open_second(&r, &second, &script, (struct oct_stage_setup){.guaranteed = true});
    assert_null(oct_stage_results(second.stage).dealt_below);
    feed(&r, 100, 0);
    drain(&r);
    oct_stage_drain(second.stage);
    close_sink(&second.results);
    struct oct_stage_counts c = count(&second);
    assert_int_equal(c.done, 100);
    assert_int_equal(c.results, 100);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(second.results.number[i], i);
    oct_stage_destroy(second.stage);
    close_rig(&r);
}

/* That its input hangs ends the second too, and the first comes back when nobody reads it. */
static void one_whose_input_hangs_comes_to_its_end(void **state)
{
    static const struct script hanging = {.hangs = true}, script = {.push_us = 0};
    struct rig r, second;
    (void)state;
    open_pipeline(&r, (struct fake_script){.depth = 4}, false);
    open_stage(&r, &hanging, (struct oct_stage_setup){.give_up_ms = 20});
    open_second(&r, &second, &script, (struct oct_stage_setup){.give_up_ms = 20});
    feed(&r, 20, 0);
    drain(&r);
    assert_true(oct_stage_drain(second.stage));
    close_sink(&second.results);
    oct_stage_destroy(second.stage);
    oct_stage_destroy(r.stage);
    oct_pipeline_destroy(r.pipeline);
    atomic_store(&r.watch.gate, true);
    wait_until(&r.watch.n_destroyed, 1);
    assert_int_equal(second.watch.n_destroyed, 1);
}

static void an_acquisition_is_ended_before_the_next_is_pushed(void **state)
{
    static const struct script script = {.keeps_until_end = true};
    struct rig r;
    (void)state;
    open_rig(&r, &script);
    feed_in_step(&r, 3);
    r.acquisition = 1;
    r.n_fed = 0;
    feed(&r, 1, 0);
    wait_until(&r.watch.n_pushed, 4);
    feed(&r, 1, 0);
    wait_until(&r.watch.n_pushed, 5);
    struct oct_stage_counts c = drain(&r);
    assert_string_equal(r.watch.order, "pppe"
                                       "r"
                                       "pp"
                                       "e");
    assert_int_equal(c.results, 2);
    assert_int_equal(r.results.number[0], 2);
    assert_int_equal(r.results.number[1], 1);
    close_rig(&r);
}

static void settings_reach_it_before_the_next_bscan(void **state)
{
    static const struct script script = {.push_us = 0}, refusing = {.refuses_settings = true};
    struct rig r;
    (void)state;
    open_rig(&r, &script);
    feed_in_step(&r, 1);
    oct_stage_configure(r.stage, &(int){41});
    oct_stage_configure(r.stage, &(int){42});
    feed(&r, 1, 1000);
    wait_until(&r.watch.n_pushed, 2);
    assert_int_equal(r.watch.settings, 42);
    oct_stage_configure(r.stage, &(int){43});
    wait_until(&r.watch.n_configured, 2); /* nothing comes: soon all the same */
    drain(&r);
    close_rig(&r);

    open_rig(&r, &refusing);
    oct_stage_configure(r.stage, &(int){1});
    feed(&r, 1, 0);
    wait_until(&r.results.n, 1);
    struct oct_stage_counts c = drain(&r);
    assert_int_equal(c.failure.code, OCT_E_CONFIG);
    assert_int_equal(c.done, 1);
    close_rig(&r);
}

/* Whoever waits for the image of a volume (the recorder) sees that it is still owed. */
static void an_image_of_a_volume_is_owed_until_it_has_the_newest_bscan(void **state)
{
    static const struct script script = {.of_volume = true, .whole_only = true};
    struct rig r;
    (void)state;
    open_rig(&r, &script);
    const atomic_uint_fast64_t *dealt = oct_stage_results(r.stage).dealt_below;
    for (unsigned i = 0; i < V - 1; i++) {
        uint64_t fed_ns = oct_clock_ns();
        feed(&r, 1, 0);
        wait_until(&r.watch.n_pushed, i + 1);
        uint64_t below = *dealt;
        if (oct_clock_ns() - fed_ns < 80000000) /* else it may have looked again meanwhile */
            assert_true(below <= i);
    }
    feed(&r, 1, 0);
    wait_until(&r.results.n, 1);
    uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    while (*dealt < V && oct_clock_ns() < until_ns)
        sleep_us(500);
    assert_int_equal(*dealt, V);
    feed(&r, 1, 0); /* nothing becomes of it, which shows when nothing else comes */
    while (*dealt < V + 1 && oct_clock_ns() < until_ns)
        sleep_us(500);
    assert_int_equal(*dealt, V + 1);
    drain(&r);
    close_rig(&r);
}

/* Lines go on coming, so that the stage never has time to look again. */
static void a_volume_that_fails_is_not_waited_for(void **state)
{
    static const struct script script = {.of_volume = true, .whole_only = true, .fail_one_in = 1};
    struct rig r;
    (void)state;
    open_rig(&r, &script);
    const atomic_uint_fast64_t *dealt = oct_stage_results(r.stage).dealt_below;
    const uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    while (*dealt == 0 && oct_clock_ns() < until_ns)
        feed(&r, 1, 2000);
    assert_in_range(*dealt, 1, r.n_fed);
    struct oct_stage_counts c = drain(&r);
    assert_int_equal(c.done, 0);
    assert_int_equal(c.results, 0);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bscan_gives_its_result_in_order),
        cmocka_unit_test(a_slow_one_skips_and_holds_up_nobody),
        cmocka_unit_test(one_that_never_returns_is_left_to_itself),
        cmocka_unit_test(several_that_hang_are_waited_for_together),
        cmocka_unit_test(wherever_it_hangs_nothing_waits_for_it),
        cmocka_unit_test(one_that_fails_goes_on_with_the_next),
        cmocka_unit_test(nonsense_is_never_published),
        cmocka_unit_test(fewer_rows_are_no_nonsense),
        cmocka_unit_test(pictures_that_the_engine_lost_are_skipped),
        cmocka_unit_test(values_come_for_every_bscan_while_it_keeps_up),
        cmocka_unit_test(values_are_not_made_for_one_that_is_late),
        cmocka_unit_test(one_that_wants_values_where_none_are_lent_is_refused),
        cmocka_unit_test(a_form_that_cannot_be_is_refused),
        cmocka_unit_test(offline_every_bscan_passes),
        cmocka_unit_test(the_first_bscan_behind_create_has_its_values),
        cmocka_unit_test(a_result_is_counted_before_it_can_be_read),
        cmocka_unit_test(small_results_wait_for_a_reader_that_comes_late),
        cmocka_unit_test(results_of_one_are_the_input_of_another),
        cmocka_unit_test(one_whose_input_hangs_comes_to_its_end),
        cmocka_unit_test(an_acquisition_is_ended_before_the_next_is_pushed),
        cmocka_unit_test(settings_reach_it_before_the_next_bscan),
        cmocka_unit_test(an_image_of_a_volume_is_owed_until_it_has_the_newest_bscan),
        cmocka_unit_test(a_volume_that_fails_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
