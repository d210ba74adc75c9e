/* The threads between the rings, with an engine that is slow, fails or dies. */
#include "pipeline/base/clock.h"
#include "pipeline/flow/pipeline.h"
#include "pipeline/flow/slots.h"
#include "pipeline/ingest/assembler.h"
#include "test/rig/fake_engine.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { N = 16, M = 4, V = 8, D = 10 };

struct rig {
    struct oct_plan plan;
    struct fake_watch watch;
    struct oct_pipeline *pipeline;
    struct oct_ring *raw, *images;
};

static void open_rig_with(struct rig *r, struct fake_script script, unsigned ring_bscans,
                          const struct oct_engine_ops *ops, enum oct_sample_type type, bool lends)
{
    struct oct_error err = {.text = ""};
    memset(r, 0, sizeof(*r));
    r->plan = volume_plan(N, M, V, D, type);
    r->plan.chain = (struct oct_chain){.dc = script.dc, .dc_bscans = 3};
    script.plan = &r->plan;
    const struct oct_pipeline_setup setup = {
        .plan = &r->plan,
        .ops = ops,
        .engine = fake_engine_create(&script, &r->watch),
        .display = {.range = OCT_RANGE_MANUAL, .lo = 1, .hi = 2},
        .ring_bscans = ring_bscans,
        .lends = {lends, lends},
    };
    assert_non_null(setup.engine);
    if (oct_pipeline_create(&r->pipeline, &setup, &err))
        fail_msg("%s", err.text);
    r->raw = oct_pipeline_raw(r->pipeline);
    r->images = oct_pipeline_images(r->pipeline);
}

static void open_rig(struct rig *r, struct fake_script script, unsigned ring_bscans)
{
    open_rig_with(r, script, ring_bscans, &fake_engine, OCT_SAMPLE_U8, false);
}

static void close_rig(struct rig *r)
{
    oct_pipeline_destroy(r->pipeline);
    assert_int_equal(r->watch.n_wrong, 0);
}

static uint16_t first_sample(uint64_t id)
{
    return (uint16_t)(id * 977 + 3);
}

static enum oct_err feed(struct rig *r, uint64_t timeout_us)
{
    uint64_t slot;
    enum oct_err e = oct_ring_acquire(r->raw, timeout_us, &slot);
    if (e)
        return e;
    struct oct_raw_frame *frame = oct_raw_slot(r->raw, slot, &r->plan.geometry);
    frame->info = (struct oct_bscan_info){.id = slot, .number = slot, .time_ns = slot * 10};
    memset(frame->line_valid, 1, M);
    for (unsigned i = 0; i < M * N; i++)
        frame->spectra[i] = (uint16_t)(first_sample(slot) + i);
    oct_ring_publish(r->raw);
    return OCT_OK;
}

/* A sink: reads to the end and checks every picture. */
struct sink {
    struct rig *rig;
    struct oct_ring_reader *reader;
    pthread_t thread;
    uint64_t pause_us;
    atomic_bool stalled;
    uint64_t n_seen, n_failed, n_wrong, n_new_display;
};

static void check_picture(struct sink *s, uint64_t slot)
{
    const struct oct_image_frame *frame = oct_image_slot(s->rig->images, slot);
    const uint8_t *pixels = frame->pixels;
    bool in_order = s->reader && slot == s->n_seen;
    s->n_wrong += !in_order || frame->info.id != slot || frame->info.time_ns != slot * 10;
    s->n_seen++;
    if (frame->status != OCT_OK) {
        s->n_failed++;
        return;
    }
    for (unsigned i = 0; i < M * D; i++)
        s->n_wrong += pixels[i] != fake_pixel(first_sample(slot), frame->lo);
    s->n_new_display += frame->lo > 1;
}

static void *run_sink(void *argument)
{
    struct sink *s = argument;
    uint64_t slot;
    for (;;) {
        enum oct_err e = oct_ring_read(s->reader, 10000, &slot);
        if (e == OCT_E_CLOSED)
            return NULL;
        if (e)
            continue;
        while (s->stalled)
            sleep_us(1000);
        check_picture(s, slot);
        if (s->pause_us)
            sleep_us(s->pause_us);
        oct_ring_release(s->reader);
    }
}

static void open_sink(struct sink *s, struct rig *r, bool stalled)
{
    memset(s, 0, sizeof(*s));
    s->rig = r;
    s->stalled = stalled;
    s->reader = add_reader(r->images, true, 0);
    assert_int_equal(pthread_create(&s->thread, NULL, run_sink, s), 0);
}

static void close_sink(struct sink *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    oct_ring_reader_destroy(s->reader);
    assert_int_equal(s->n_wrong, 0);
}

static void expect_counts(struct rig *r, uint64_t done, uint64_t dropped)
{
    struct oct_pipeline_counts counts = oct_pipeline_count(r->pipeline);
    assert_int_equal(counts.bscans_done, done);
    assert_int_equal(counts.bscans_dropped_engine, dropped);
}

/* ---- cases ---- */

static void every_bscan_comes_out_in_order_whatever_the_engine_takes(void **state)
{
    static const struct fake_script scripts[] = {
        {.depth = 1, .max_batch = 1},
        {.depth = 1, .max_batch = 1, .job_us = 300},
        {.depth = 6, .max_batch = 1, .job_us = 200},
        {.depth = 6, .max_batch = 6, .job_us = 200},
        {.depth = 40, .max_batch = 17, .job_us = 100},
    };
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
        for (unsigned ring = 1; ring <= 64; ring *= 64) { /* 1 is raised to what is needed */
            struct rig r;
            struct sink sink;
            open_rig(&r, scripts[i], ring);
            open_sink(&sink, &r, false);
            for (int n = 0; n < 200; n++)
                assert_int_equal(feed(&r, TEST_PATIENCE_US), OCT_OK);
            oct_pipeline_drain(r.pipeline);
            close_sink(&sink);
            assert_int_equal(sink.n_seen, 200);
            assert_int_equal(r.watch.n_submitted, 200);
            expect_counts(&r, 200, 0);
            assert_false(oct_pipeline_has_failed(r.pipeline, NULL));
            assert_true(r.watch.most_in_flight <= scripts[i].depth);
            /* A backlog goes in batches. */
            assert_true(scripts[i].max_batch == 1 || r.watch.n_batches < 200);
            close_rig(&r);
        }
}

static void a_restarted_pipeline_is_a_new_one_with_the_same_engine(void **state)
{
    static const struct oct_display displays[] = {{.range = OCT_RANGE_MANUAL, .lo = 1, .hi = 2},
                                                  {.range = OCT_RANGE_MANUAL, .lo = 5, .hi = 9}};
    struct rig r;
    struct sink sink;
    open_rig(&r, (struct fake_script){.depth = 6, .max_batch = 3, .dc = OCT_DC_RUNNING}, 8);
    for (uint64_t run = 0; run < 4; run++) {
        open_sink(&sink, &r, false);
        for (uint64_t n = 0; n < 30 + run; n++)
            assert_int_equal(feed(&r, TEST_PATIENCE_US), OCT_OK);
        oct_pipeline_drain(r.pipeline);
        close_sink(&sink);
        assert_int_equal(sink.n_seen, 30 + run);
        assert_int_equal(sink.n_new_display, run % 2 ? 30 + run : 0);
        struct oct_error err = {.text = ""};
        if (oct_pipeline_restart(r.pipeline, &displays[(run + 1) % 2], &err))
            fail_msg("%s", err.text);
    }
    expect_counts(&r, 30 + 31 + 32 + 33, 0);
    assert_int_equal(r.watch.n_submitted, 30 + 31 + 32 + 33);
    close_rig(&r); /* while it waits for a B-scan */
}

static void a_pipeline_whose_engine_died_does_not_restart(void **state)
{
    const struct oct_display display = {.range = OCT_RANGE_MANUAL, .lo = 1, .hi = 2};
    struct oct_error err = {.text = ""};
    struct rig r;
    struct sink sink;
    open_rig(&r, (struct fake_script){.depth = 2, .max_batch = 1, .dies_at = 5}, 8);
    open_sink(&sink, &r, false);
    for (int n = 0; n < 10; n++)
        assert_int_equal(feed(&r, TEST_PATIENCE_US), OCT_OK);
    oct_pipeline_drain(r.pipeline);
    close_sink(&sink);
    assert_int_equal(oct_pipeline_restart(r.pipeline, &display, &err), OCT_E_BACKEND);
    assert_non_null(strstr(err.text, "has failed"));
    close_rig(&r);
}

static void every_job_has_the_line_of_its_running_mean(void **state)
{
    static const struct fake_script scripts[] = {
        {.depth = 1, .max_batch = 1, .dc = OCT_DC_RUNNING},
        {.depth = 12, .max_batch = 4, .job_us = 50, .dc = OCT_DC_RUNNING},
        {.depth = 6, .max_batch = 6, .fail_one_in = 7, .dc = OCT_DC_RUNNING},
    };
    for (unsigned k = 0; k < sizeof(scripts) / sizeof(scripts[0]); k++) {
        struct rig r;
        struct sink s;
        open_rig(&r, scripts[k], 3);
        open_sink(&s, &r, false);
        for (unsigned i = 0; i < 200; i++)
            assert_int_equal(feed(&r, TEST_PATIENCE_US), OCT_OK);
        oct_pipeline_drain(r.pipeline);
        close_sink(&s);
        assert_int_equal(s.n_seen, 200);
        assert_int_equal(r.watch.n_submitted, 200);
        close_rig(&r);
    }
}

static void a_lone_bscan_is_not_held_back_for_a_batch(void **state)
{
    struct rig r;
    struct sink sink;
    open_rig(&r, (struct fake_script){.depth = 16, .max_batch = 16}, 32);
    open_sink(&sink, &r, false);
    for (uint64_t n = 1; n <= 5; n++) {
        assert_int_equal(feed(&r, 0), OCT_OK);
        uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
        while (oct_pipeline_count(r.pipeline).bscans_done < n) {
            assert_true(oct_clock_ns() < until_ns);
            sleep_us(100);
        }
    }
    assert_int_equal(r.watch.n_batches, 5);
    oct_pipeline_drain(r.pipeline);
    close_sink(&sink);
    close_rig(&r);
}

static void failing_jobs_are_told_in_place_and_counted(void **state)
{
    struct rig r;
    struct sink sink;
    open_rig(&r, (struct fake_script){.depth = 8, .max_batch = 4, .job_us = 50, .fail_one_in = 7},
             16);
    open_sink(&sink, &r, false);
    for (int n = 0; n < 210; n++)
        assert_int_equal(feed(&r, TEST_PATIENCE_US), OCT_OK);
    oct_pipeline_drain(r.pipeline);
    close_sink(&sink);
    assert_int_equal(sink.n_seen, 210);
    assert_int_equal(sink.n_failed, 30);
    expect_counts(&r, 180, 30);
    assert_false(oct_pipeline_has_failed(r.pipeline, NULL)); /* jobs failed, not the engine */
    close_rig(&r);
}

static void an_engine_that_dies_loses_what_it_has_and_all_after_it_in_order(void **state)
{
    for (uint64_t dies_at = 1; dies_at <= 61; dies_at += 20) {
        struct rig r;
        struct sink sink;
        struct oct_error why = {.text = ""};
        open_rig(
            &r,
            (struct fake_script){.depth = 8, .max_batch = 3, .job_us = 1000, .dies_at = dies_at},
            16);
        open_sink(&sink, &r, false);
        for (int n = 0; n < 150; n++)
            assert_int_equal(feed(&r, TEST_PATIENCE_US), OCT_OK);
        oct_pipeline_drain(r.pipeline);
        close_sink(&sink);
        assert_int_equal(sink.n_seen, 150);
        struct oct_pipeline_counts counts = oct_pipeline_count(r.pipeline);
        assert_int_equal(counts.bscans_done + counts.bscans_dropped_engine, 150);
        assert_int_equal(counts.bscans_dropped_engine, sink.n_failed);
        assert_true(counts.bscans_done < dies_at);
        assert_true(oct_pipeline_has_failed(r.pipeline, &why));
        assert_int_equal(why.code, OCT_E_BACKEND);
        assert_non_null(strstr(why.text, "fake"));
        close_rig(&r);
    }
}

static void a_guaranteed_reader_that_stalls_holds_all_and_nothing_is_lost(void **state)
{
    struct rig r;
    struct sink sink;
    open_rig(&r, (struct fake_script){.depth = 4, .max_batch = 4}, 12);
    open_sink(&sink, &r, true);
    int fed = 0;
    while (feed(&r, 50000) == OCT_OK)
        fed++;
    assert_true(fed >= 12 && fed <= 24); /* two rings of 12 */
    struct oct_pipeline_counts before = oct_pipeline_count(r.pipeline);
    assert_true(before.bscans_done <= 12);
    assert_int_equal(feed(&r, 1000), OCT_E_AGAIN);
    sink.stalled = false;
    for (; fed < 100; fed++)
        assert_int_equal(feed(&r, TEST_PATIENCE_US), OCT_OK);
    oct_pipeline_drain(r.pipeline);
    close_sink(&sink);
    assert_int_equal(sink.n_seen, 100);
    expect_counts(&r, 100, 0);
    close_rig(&r);
}

static void *drain(void *pipeline)
{
    oct_pipeline_drain(pipeline);
    return NULL;
}

static void draining_waits_for_a_stalled_reader_and_then_ends(void **state)
{
    struct rig r;
    struct sink sink;
    pthread_t thread;
    open_rig(&r, (struct fake_script){.depth = 4, .max_batch = 4}, 12);
    open_sink(&sink, &r, true);
    int fed = 0;
    while (fed < 16) /* more than the image ring's 12 */
        fed += feed(&r, 20000) == OCT_OK;
    assert_int_equal(pthread_create(&thread, NULL, drain, r.pipeline), 0);
    sleep_us(150000);
    assert_true(oct_pipeline_count(r.pipeline).bscans_done < (uint64_t)fed);
    sink.stalled = false;
    assert_int_equal(pthread_join(thread, NULL), 0);
    close_sink(&sink);
    assert_int_equal(sink.n_seen, fed);
    close_rig(&r);
}

static void a_lossy_reader_that_stalls_with_or_without_a_slot_stops_nobody(void **state)
{
    struct rig r;
    struct sink sink;
    open_rig(&r, (struct fake_script){.depth = 2, .max_batch = 2}, 8);
    struct oct_ring_reader *lossy = add_reader(r.images, false, 4);
    struct oct_ring_reader *holding = add_reader(r.images, false, 4);
    uint64_t slot;
    open_sink(&sink, &r, false);
    for (int n = 0; n < 300; n++) {
        assert_int_equal(feed(&r, TEST_PATIENCE_US), OCT_OK);
        if (n == 0)
            assert_int_equal(oct_ring_read(holding, TEST_PATIENCE_US, &slot), OCT_OK);
    }
    oct_pipeline_drain(r.pipeline);
    close_sink(&sink);
    assert_int_equal(oct_image_held(holding)->info.id, 0);
    assert_int_equal(oct_ring_read(lossy, 0, &slot), OCT_OK);
    assert_int_equal(slot, 299);
    assert_int_equal(oct_ring_skipped(lossy), 299);
    oct_ring_reader_destroy(lossy);
    close_rig(&r);
}

static void a_change_of_display_reaches_the_next_bscans(void **state)
{
    struct rig r;
    struct sink sink;
    open_rig(&r, (struct fake_script){.depth = 2, .max_batch = 2}, 8);
    open_sink(&sink, &r, false);
    for (int n = 0; n < 20; n++)
        assert_int_equal(feed(&r, TEST_PATIENCE_US), OCT_OK);
    uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    while (oct_pipeline_count(r.pipeline).bscans_done < 20 && oct_clock_ns() < until_ns)
        sleep_us(100);
    const struct oct_display display = {.range = OCT_RANGE_MANUAL, .lo = 40, .hi = 50};
    oct_pipeline_set_display(r.pipeline, &display);
    for (int n = 0; n < 20; n++)
        assert_int_equal(feed(&r, TEST_PATIENCE_US), OCT_OK);
    oct_pipeline_drain(r.pipeline);
    close_sink(&sink);
    assert_int_equal(sink.n_seen, 40);
    assert_int_equal(sink.n_new_display, 20);
    close_rig(&r);
}

static void a_pipeline_ends_in_every_state(void **state)
{
    for (int round = 0; round < 12; round++) {
        struct rig r;
        open_rig(&r, (struct fake_script){.depth = 4, .max_batch = 2, .job_us = 500}, 16);
        assert_string_equal(oct_pipeline_engine_name(r.pipeline), "fake");
        for (int n = 0; n < round; n++)
            feed(&r, 0);
        if (round % 3 == 1)
            oct_pipeline_drain(r.pipeline);
        if (round % 3 == 2) {
            oct_pipeline_drain(r.pipeline);
            oct_pipeline_drain(r.pipeline);
            expect_counts(&r, (uint64_t)round, 0);
        }
        close_rig(&r);
    }
    oct_pipeline_destroy(NULL);
}

/* ---- values ---- */

static void open_lender(struct rig *r, unsigned max_batch, enum oct_sample_type type, bool lends)
{
    open_rig_with(r, (struct fake_script){.depth = 4, .max_batch = max_batch}, 8, &fake_engine,
                  type, lends);
}

static void wait_until_done(struct rig *r, uint64_t n)
{
    uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;
    while (oct_pipeline_count(r->pipeline).bscans_done < n) {
        assert_true(oct_clock_ns() < until_ns);
        sleep_us(100);
    }
}

/* The next picture; whether it has values, which must then be its own. */
static bool read_one(struct rig *r, struct oct_ring_reader *reader, uint64_t id)
{
    uint64_t slot;
    assert_int_equal(oct_ring_read(reader, TEST_PATIENCE_US, &slot), OCT_OK);
    assert_int_equal(slot, id);
    const struct oct_image_frame *frame = oct_image_slot(r->images, slot);
    const bool has_values = frame->values != NULL;
    const uint8_t *pixels = frame->pixels;
    assert_int_equal(frame->status, OCT_OK);
    for (unsigned i = 0; has_values && i < M * D; i++)
        assert_true(frame->values[i] == fake_value(first_sample(id), frame->lo, i));
    for (unsigned i = 0; frame->complex_values && i < 2 * M * D; i++)
        assert_true(frame->complex_values[i] == fake_value(first_sample(id), frame->lo, i) + 0.25f);
    for (unsigned i = 0; i < M * D; i++) /* values lie beside them */
        assert_int_equal(pixels[i], fake_pixel(first_sample(id), frame->lo));
    oct_ring_release(reader);
    return has_values;
}

static void values_come_with_exactly_the_next_n_bscans_of_each_asker(void **state)
{
    /* At which B-scan who asks for how many. Two askers' requests overlap, one ends within the
     * other's, one is renewed before its end, one is taken back. */
    static const struct {
        uint64_t at;
        unsigned asker, n;
    } asks[] = {{2, 0, 3},   {3, 1, 5},   {10, 2, 1},   {12, 3, 4}, {14, 3, 6},
                {22, 15, 9}, {24, 15, 0}, {26, 4, 100}, {30, 4, 2}, {30, 5, 1}};
    enum { N_FED = 50 };
    for (unsigned max_batch = 1; max_batch <= 4; max_batch += 3) {
        struct rig r;
        unsigned left[OCT_MAX_ASKERS] = {0};
        size_t a = 0;
        open_lender(&r, max_batch, OCT_SAMPLE_U8, true);
        struct oct_ring_reader *reader = add_reader(r.images, true, 0);
        for (uint64_t id = 0; id < N_FED; id++) {
            bool wanted = false;
            for (; a < sizeof(asks) / sizeof(asks[0]) && asks[a].at == id; a++) {
                assert_true(
                    oct_pipeline_ask(r.pipeline, OCT_LENT_VALUES, asks[a].asker, asks[a].n));
                left[asks[a].asker] = asks[a].n;
            }
            for (unsigned i = 0; i < OCT_MAX_ASKERS; i++) {
                wanted = wanted || left[i] > 0;
                left[i] -= left[i] > 0;
            }
            assert_int_equal(feed(&r, TEST_PATIENCE_US), OCT_OK);
            wait_until_done(&r, id + 1); /* none is under way when the next one asks */
            assert_int_equal(read_one(&r, reader, id), wanted);
        }
        oct_ring_reader_destroy(reader);
        close_rig(&r);
    }
}

/* Whatever is under way when it is asked, and in batches: as many as were asked for in a row, and
 * the first of them within what was under way. */
static void a_request_in_full_flight_is_met_in_a_row(void **state)
{
    enum { N_FED = 300, N_ASKED = 7 };
    struct rig r;
    uint64_t first = 0, n_with = 0, asked_at = 0;
    open_lender(&r, 4, OCT_SAMPLE_U8, true);
    struct oct_ring_reader *reader = add_reader(r.images, true, 0);
    for (uint64_t fed = 0, id = 0; id < N_FED; id++) {
        while (fed < N_FED && feed(&r, 0) == OCT_OK)
            fed++;
        if (id == N_FED / 2) {
            asked_at = id;
            assert_true(oct_pipeline_ask(r.pipeline, OCT_LENT_VALUES, 6, N_ASKED));
        }
        if (!read_one(&r, reader, id))
            continue;
        first = n_with++ == 0 ? id : first;
        assert_int_equal(id, first + n_with - 1);
    }
    assert_int_equal(n_with, N_ASKED);
    /* what could be fed before: both rings */
    assert_in_range(first, asked_at, asked_at + 16);
    oct_ring_reader_destroy(reader);
    close_rig(&r);
}

static void *plain_alloc(size_t bytes, bool *pinned)
{
    void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    assert_non_null(memory);
    if (pinned)
        *pinned = false;
    return memset(memory, 0, bytes);
}

static void plain_release(void *memory, size_t bytes)
{
    (void)bytes;
    free(memory);
}

/* In memory of the pipeline's own, as with an engine of the CPU, and in the slots, as with a
 * device's: complex values are made for who asked for them, whatever is asked of the others. */
static void complex_values_are_asked_for_apart(void **state)
{
    static const struct oct_memory_ops memory = {.alloc = plain_alloc, .release = plain_release};
    struct oct_engine_ops device = fake_engine;
    device.memory = &memory;
    for (int i = 0; i < 4; i++) {
        const enum oct_sample_type type = i % 2 ? OCT_SAMPLE_F32 : OCT_SAMPLE_U8;
        struct rig r;
        open_rig_with(&r, (struct fake_script){.depth = 4, .max_batch = 1}, 8,
                      i / 2 ? &device : &fake_engine, type, true);
        struct oct_ring_reader *reader = add_reader(r.images, true, 0);
        for (uint64_t id = 0; id < 40; id++) {
            if (id == 3 || id == 30)
                assert_true(oct_pipeline_ask(r.pipeline, OCT_LENT_COMPLEX, OCT_LAST_ASKER, 5));
            if (id == 5)
                assert_true(oct_pipeline_ask(r.pipeline, OCT_LENT_VALUES, OCT_LAST_ASKER, 10));
            assert_int_equal(feed(&r, TEST_PATIENCE_US), OCT_OK);
            wait_until_done(&r, id + 1);
            uint64_t slot = id;
            const struct oct_image_frame *frame = oct_image_slot(r.images, slot);
            assert_int_equal(frame->complex_values != NULL,
                             (id >= 3 && id < 8) || (id >= 30 && id < 35));
            if (type == OCT_SAMPLE_U8)
                assert_int_equal(read_one(&r, reader, id), id >= 5 && id < 15);
            else
                assert_int_equal(oct_ring_read(reader, TEST_PATIENCE_US, &slot), OCT_OK);
            if (type == OCT_SAMPLE_F32)
                oct_ring_release(reader);
        }
        assert_int_equal(r.watch.n_with_complex, 10);
        oct_ring_reader_destroy(reader);
        close_rig(&r);
    }
}

static void a_pipeline_without_room_lends_no_values(void **state)
{
    struct rig r;
    open_lender(&r, 1, OCT_SAMPLE_U8, false);
    struct oct_ring_reader *reader = add_reader(r.images, true, 0);
    assert_false(oct_pipeline_ask(r.pipeline, OCT_LENT_VALUES, 0, 10));
    assert_false(oct_pipeline_ask(r.pipeline, OCT_LENT_COMPLEX, 0, 10));
    for (uint64_t id = 0; id < 20; id++) { /* every slot more than once */
        assert_int_equal(feed(&r, TEST_PATIENCE_US), OCT_OK);
        assert_false(read_one(&r, reader, id));
    }
    oct_ring_reader_destroy(reader);
    close_rig(&r);
}

static void values_of_f32_pictures_are_their_pixels(void **state)
{
    for (int lends = 0; lends < 2; lends++) {
        struct rig r;
        uint64_t slot;
        open_rig_with(&r, (struct fake_script){.depth = 4, .max_batch = 1}, 8, &fake_engine,
                      OCT_SAMPLE_F32, lends);
        struct oct_ring_reader *reader = add_reader(r.images, true, 0);
        assert_true(oct_pipeline_ask(r.pipeline, OCT_LENT_VALUES, 0, 1)); /* one, and all come */
        for (uint64_t id = 0; id < 20; id++) {
            assert_int_equal(feed(&r, TEST_PATIENCE_US), OCT_OK);
            assert_int_equal(oct_ring_read(reader, TEST_PATIENCE_US, &slot), OCT_OK);
            const struct oct_image_frame *frame = oct_image_slot(r.images, slot);
            assert_ptr_equal(frame->values, frame->pixels);
            oct_ring_release(reader);
        }
        oct_ring_reader_destroy(reader);
        close_rig(&r);
    }
}

/* ---- the books ---- */

struct books {
    struct rig *rig;
    struct oct_ingest_counts *counts;
    atomic_bool ended;
    atomic_uint n_looks;
    uint64_t n_wrong;
};

/* Reads as the status does: begun last. */
static void *look_at_books(void *argument)
{
    struct books *b = argument;
    while (!b->ended) {
        struct oct_pipeline_counts counts = oct_pipeline_count(b->rig->pipeline);
        uint64_t delivered = b->counts->bscans_delivered;
        uint64_t dropped = b->counts->bscans_dropped;
        uint64_t begun = b->counts->bscans_begun;
        b->n_wrong += begun < counts.bscans_done + counts.bscans_dropped_engine + dropped;
        b->n_wrong += begun < delivered + dropped;
        b->n_looks++;
    }
    return NULL;
}

static void in_every_snapshot_begun_is_at_least_done_and_dropped(void **state)
{
    struct rig r;
    struct sink sink;
    struct oct_assembler *assembler;
    struct oct_error err;
    pthread_t thread;
    uint8_t header[OCT_LINES_HEADER_BYTES], payload[M * N] = {0};
    open_rig(&r, (struct fake_script){.depth = 2, .max_batch = 2, .job_us = 20, .fail_one_in = 5},
             1);
    struct oct_ring_reader *reader = add_reader(r.images, true, 0); /* never reads: rings fill */
    assert_int_equal(oct_assembler_create(&assembler, &r.plan.geometry, r.raw, 0, &err), OCT_OK);
    struct books books = {.rig = &r, .counts = oct_assembler_counts(assembler)};
    assert_int_equal(pthread_create(&thread, NULL, look_at_books, &books), 0);
    for (uint64_t n = 0; n < 20000; n++) {
        struct oct_lines_header h = {.sequence = n,
                                     .first_line = n * M,
                                     .n_lines = M,
                                     .n_samples = N,
                                     .format = OCT_LINES_U8,
                                     .epoch = 1};
        oct_lines_encode(&h, header);
        assert_int_equal(
            oct_assembler_take(assembler, header, sizeof(header), payload, sizeof(payload), 1),
            OCT_BAD_NONE);
        while (books.n_looks < n / 1000) /* the one who looks has a processor, too */
            sched_yield();
        if (n % 100 == 99) { /* lets a few through */
            uint64_t slot;
            if (oct_ring_read(reader, 0, &slot) == OCT_OK)
                oct_ring_release(reader);
        }
    }
    books.ended = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    oct_ring_reader_destroy(reader);
    open_sink(&sink, &r, false);
    oct_pipeline_drain(r.pipeline);
    assert_int_equal(pthread_join(sink.thread, NULL), 0);
    oct_ring_reader_destroy(sink.reader);
    struct oct_pipeline_counts counts = oct_pipeline_count(r.pipeline);
    const struct oct_ingest_counts *c = books.counts;
    assert_int_equal(books.n_wrong, 0);
    assert_true(books.n_looks > 10 && c->bscans_dropped > 0 && counts.bscans_dropped_engine > 0);
    assert_int_equal(c->bscans_begun, 20000);
    assert_int_equal(c->bscans_begun,
                     counts.bscans_done + counts.bscans_dropped_engine + c->bscans_dropped);
    oct_assembler_destroy(assembler);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bscan_comes_out_in_order_whatever_the_engine_takes),
        cmocka_unit_test(a_restarted_pipeline_is_a_new_one_with_the_same_engine),
        cmocka_unit_test(a_pipeline_whose_engine_died_does_not_restart),
        cmocka_unit_test(every_job_has_the_line_of_its_running_mean),
        cmocka_unit_test(a_lone_bscan_is_not_held_back_for_a_batch),
        cmocka_unit_test(failing_jobs_are_told_in_place_and_counted),
        cmocka_unit_test(an_engine_that_dies_loses_what_it_has_and_all_after_it_in_order),
        cmocka_unit_test(a_guaranteed_reader_that_stalls_holds_all_and_nothing_is_lost),
        cmocka_unit_test(draining_waits_for_a_stalled_reader_and_then_ends),
        cmocka_unit_test(a_lossy_reader_that_stalls_with_or_without_a_slot_stops_nobody),
        cmocka_unit_test(a_change_of_display_reaches_the_next_bscans),
        cmocka_unit_test(a_pipeline_ends_in_every_state),
        cmocka_unit_test(values_come_with_exactly_the_next_n_bscans_of_each_asker),
        cmocka_unit_test(a_request_in_full_flight_is_met_in_a_row),
        cmocka_unit_test(complex_values_are_asked_for_apart),
        cmocka_unit_test(a_pipeline_without_room_lends_no_values),
        cmocka_unit_test(values_of_f32_pictures_are_their_pixels),
        cmocka_unit_test(in_every_snapshot_begun_is_at_least_done_and_dropped),
    };
    return cmocka_run_group_tests_name("pipeline", tests, NULL, NULL);
}
