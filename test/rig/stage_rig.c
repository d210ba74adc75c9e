#include "test/rig/stage_rig.h"

#include "pipeline/base/clock.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <stdlib.h>
#include <string.h>

/* ---- an analysis that does what its script says ---- */

struct oct_analysis {
    const struct script *script;
    struct watch *watch;
    struct oct_bscan_info newest;
    float mean;
    bool has_result, ended;
    struct kept {
        struct oct_image_frame bscan;
        float mean;
    } kept[OCT_STAGE_MOST_KEPT]; /* the newest, in turn */
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
    const float *z = bscan->complex_values;
    float sum = 0;
    assert_int_equal((bscan->pixels != NULL) + (bscan->values != NULL) + (z != NULL), 1);
    for (unsigned i = 0; i < M * D; i++)
        sum += z               ? z[2 * i] + z[2 * i + 1]
               : bscan->values ? bscan->values[i]
                               : (float)((const uint8_t *)bscan->pixels)[i];
    return sum / (M * D);
}

/* What was pushed before is as it was. */
static void look_at_kept(struct oct_analysis *a, const struct oct_image_frame *bscan, unsigned n)
{
    const unsigned keeps = a->script->keeps;
    if (keeps == 0)
        return;
    a->kept[n % keeps] = (struct kept){*bscan, mean_of(bscan)};
    for (unsigned i = 0; i < keeps && n >= keeps; i++)
        a->watch->n_changed += mean_of(&a->kept[i].bscan) != a->kept[i].mean;
}

static enum oct_err script_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                                struct oct_error *err)
{
    unsigned n = atomic_fetch_add(&a->watch->n_pushed, 1) + 1;
    note(a, 'p');
    a->watch->pushed[(n - 1) % 4096] = bscan->info.number;
    if (a->script->push_us &&
        (!a->script->push_one_in || (bscan->info.number + 1) % a->script->push_one_in == 0))
        sleep_us(a->script->push_us);
    while (a->script->hangs && !atomic_load(&a->watch->gate))
        sleep_us(1000);
    if (a->script->fail_one_in && n % a->script->fail_one_in == 0)
        return oct_fail(err, OCT_E_FORMAT, "push %u fails as the script says", n);
    a->newest = bscan->info;
    a->mean = mean_of(bscan);
    a->has_result = true;
    look_at_kept(a, bscan, n);
    return OCT_OK;
}

static enum oct_err script_take(struct oct_analysis *a, struct oct_image_frame *result,
                                struct oct_error *err)
{
    (void)err;
    if (!a->has_result || (a->script->keeps_until_end && !a->ended) ||
        (a->script->whole_only && a->newest.bscan + 1 < V && !a->ended) ||
        (a->script->block && (a->newest.bscan + 1) % a->script->block))
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
    result->info.number -= a->script->block ? a->script->block - 1 : 0;
    result->info.acquisition += a->script->of_another_acquisition;
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
        const struct oct_image_frame *frame = oct_image_held(s->reader);
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

void close_sink(struct sink *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    oct_ring_reader_destroy(s->reader);
}

void open_pipeline(struct rig *r, struct fake_script fake, bool lends)
{
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
        .lends = {lends, lends},
    };
    must(oct_pipeline_create(&r->pipeline, &setup, &failure));
    r->form = (struct oct_image_form){.name = "scripted",
                                      .quantity = OCT_QUANTITY_INTENSITY_DB,
                                      .type = OCT_SAMPLE_F32,
                                      .rank = 2,
                                      .dims = {5, 3},
                                      .axes = {"row", "column"}};
    open_sink(&r->pictures, oct_pipeline_images(r->pipeline), true, 0);
}

enum oct_err try_stage(struct rig *r, const struct script *script, struct oct_stage_setup setup,
                       struct oct_error *err)
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

void open_stage(struct rig *r, const struct script *script, struct oct_stage_setup setup)
{
    must(try_stage(r, script, setup, &failure));
    open_sink(&r->results, oct_stage_results(r->stage).ring, setup.guaranteed, r->results.pause_us);
}

void open_stage_rig(struct rig *r, const struct script *script)
{
    open_pipeline(r, (struct fake_script){.depth = 4}, false);
    open_stage(r, script, (struct oct_stage_setup){.input = OCT_STAGE_PICTURES});
}

/* The first sample of a B-scan decides its pixels (fake_engine.h). */
uint16_t sample_of(uint64_t number)
{
    return (uint16_t)(number % 200);
}

void feed(struct rig *r, unsigned n, uint64_t pause_us)
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

struct oct_stage_counts count_stage(struct rig *r)
{
    struct oct_stage_counts c;
    oct_stage_count(r->stage, &c);
    assert_int_equal(c.seen, c.done + sum_of_skips(&c));
    return c;
}

/* Ends the stream and hands back what the stage had counted. */
struct oct_stage_counts drain_stage(struct rig *r)
{
    oct_pipeline_drain(r->pipeline);
    close_sink(&r->pictures);
    oct_stage_drain(r->stage);
    close_sink(&r->results);
    return count_stage(r);
}

void close_stage_rig(struct rig *r)
{
    oct_stage_destroy(r->stage);
    oct_pipeline_destroy(r->pipeline);
    assert_int_equal(r->fake.n_wrong, 0);
}

void wait_until(const atomic_uint *n, unsigned wanted)
{
    uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    while (atomic_load(n) < wanted) {
        assert_true(oct_clock_ns() < until_ns);
        sleep_us(500);
    }
}

/* One at a time, so that a busy machine makes none late. */
void feed_in_step(struct rig *r, unsigned n)
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

/* Makes the stage of the rig the input of another, which becomes the stage of `second`. */
void open_second(struct rig *r, struct rig *second, const struct script *script,
                 struct oct_stage_setup setup)
{
    const struct oct_image_source first = oct_stage_results(r->stage);
    memset(second, 0, sizeof(*second));
    second->pipeline = r->pipeline;
    second->form = r->form;
    setup.in = &first;
    open_stage(second, script, setup);
}
