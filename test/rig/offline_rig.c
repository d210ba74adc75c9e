#include "test/rig/offline_rig.h"

#include "pipeline/base/clock.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <pthread.h>
#include <string.h>

/* What each index of the source is made of. */
static uint16_t first_sample(uint64_t index)
{
    return (uint16_t)(index * 977 + 3);
}

void open_offline(struct rig *r, struct fake_script script)
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

enum oct_err read_bscan(void *context, uint64_t index, struct oct_raw_frame *frame,
                        enum oct_offline_next *next, struct oct_error *err)
{
    struct rig *r = context;
    assert_int_equal(index, r->n_read);
    assert_int_equal(frame->info.number, 0); /* nothing of the B-scan before */
    r->n_read++;
    if (r->pause_us)
        sleep_us(r->pause_us);
    while (index == r->fails_at && r->waits && !r->told_since)
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
    while (r->waits && r->n_read <= r->fails_at)
        sleep_us(100);
    r->failed = true;
    return oct_fail(err, OCT_E_NO_SPACE, "the sink is full");
}

enum oct_err take_offline_picture(void *context, uint64_t index,
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
    r->told_since = r->failed;
}

enum oct_err take_result(void *context, unsigned stage, uint64_t index,
                         const struct oct_image_frame *result, struct oct_error *err)
{
    struct rig *r = context;
    r->n_after_failure += r->failed;
    assert_int_equal(index, result->info.number);
    assert_true(r->n_pictures > 0 && index <= r->last_index); /* its picture came before */
    uint64_t n = r->n_results[stage]++;
    return stage == 0 && n == r->result_fails_at ? fail_here(r, err) : OCT_OK;
}

/* A thread that was joined may be listed for a moment more. */
void expect_threads(unsigned n)
{
    for (uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
         count_entries("/proc/self/task") != n; sleep_us(100))
        assert_true(oct_clock_ns() < until_ns);
}

/* Runs, and sees that nothing is left and that the counts are those of what was seen. */
enum oct_err run_offline(struct rig *r, struct oct_stage *const *stages, unsigned n_stages)
{
    r->setup = (struct oct_offline_setup){
        .pipeline = r->pipeline,
        .stages = stages,
        .n_stages = n_stages,
        .source = {.name = "tape", .n_bscans = r->n_source, .context = r, .read = read_bscan},
        .sink = {.context = r, .picture = take_offline_picture, .result = take_result},
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

void close_offline(struct rig *r)
{
    oct_pipeline_destroy(r->pipeline);
    expect_threads(r->n_threads);
    assert_int_equal(r->watch.n_wrong, 0);
}

static void *do_nothing(void *argument)
{
    return argument;
}

void begin_threads(void)
{
    pthread_t first;
    if (pthread_create(&first, NULL, do_nothing, NULL) == 0)
        pthread_join(first, NULL);
}
