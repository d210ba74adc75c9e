/* What is computed beside the stream: it gets whole B-scans, lets go of the ring when it must, and
 * says what became of it. */
#include "daemon/errand.h"

#include "pipeline/flow/slots.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

enum { N = 8, M = 3 };

struct work {
    unsigned n_taken;
    uint64_t sum;
    bool fails, lingers;
    unsigned *n_destroyed;
};

static void take(void *context, const struct oct_raw_frame *frame)
{
    struct work *work = context;
    work->n_taken++;
    work->sum += frame->spectra[N * M - 1];
}

static enum oct_err compute(void *context, const atomic_bool *cancelled, struct oct_error *err)
{
    struct work *work = context;
    while (work->lingers)
        if (atomic_load(cancelled))
            return oct_fail(err, OCT_E_STATE, "cancelled");
    return work->fails ? oct_fail(err, OCT_E_ARG, "nothing to see") : OCT_OK;
}

static void describe(const void *context, cJSON *result)
{
    cJSON_AddNumberToObject(result, "sum", (double)((const struct work *)context)->sum);
}

static void destroy(void *context)
{
    struct work *work = context;
    (*work->n_destroyed)++;
    free(work);
}

static const struct oct_errand_ops ops = {
    .name = "sum", .take = take, .compute = compute, .describe = describe, .destroy = destroy};

struct scene {
    struct oct_geometry geometry;
    struct oct_ring *raw;
    struct oct_errand errand;
    unsigned n_destroyed;
};

static struct work *new_work(struct scene *s)
{
    struct work *work = calloc(1, sizeof(*work));
    assert_non_null(work);
    work->n_destroyed = &s->n_destroyed;
    return work;
}

static void open_scene(struct scene *s)
{
    memset(s, 0, sizeof(*s));
    assert_int_equal(oct_geometry_init(&s->geometry, N, M, 1, 0, 0, OCT_SAMPLE_U8, NULL), OCT_OK);
    s->raw = open_ring(4, oct_raw_slot_bytes(&s->geometry));
}

static void close_scene(struct scene *s)
{
    oct_errand_finish(&s->errand);
    oct_ring_destroy(s->raw);
}

static void write_bscan(struct scene *s, uint16_t value, uint32_t missing)
{
    uint64_t slot;
    assert_int_equal(oct_ring_acquire(s->raw, 1000000, &slot), OCT_OK);
    struct oct_raw_frame *frame = oct_raw_slot(s->raw, slot, &s->geometry);
    frame->spectra = oct_raw_slot_spectra(s->raw, slot, &s->geometry);
    frame->info = (struct oct_bscan_info){.id = slot, .missing_lines = missing};
    frame->spectra[N * M - 1] = value;
    oct_ring_publish(s->raw);
}

static cJSON *describe_errand(const struct scene *s)
{
    cJSON *reply = cJSON_CreateObject();
    oct_errand_describe(&s->errand, reply);
    return reply;
}

static double number_in(const struct scene *s, const char *key)
{
    cJSON *reply = describe_errand(s);
    double value =
        cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetObjectItem(reply, "errand"), key));
    cJSON_Delete(reply);
    return value;
}

static void expect_error(const struct scene *s, const char *part)
{
    cJSON *reply = describe_errand(s);
    const cJSON *errand = cJSON_GetObjectItem(reply, "errand");
    assert_non_null(strstr(cJSON_GetStringValue(cJSON_GetObjectItem(errand, "error")), part));
    assert_null(cJSON_GetObjectItem(errand, "result"));
    cJSON_Delete(reply);
}

/* Until the errand has taken n B-scans; new ones come, as a lossy reader starts with the next. */
static void feed(struct scene *s, unsigned n, uint32_t missing)
{
    for (unsigned k = 0; k < 500 && number_in(s, "bscans") < n; k++) {
        write_bscan(s, 7, missing);
        sleep_us(2000);
    }
}

static void wait_end(struct scene *s)
{
    for (unsigned k = 0; k < 2000 && oct_errand_look(&s->errand); k++)
        sleep_us(1000);
    assert_false(s->errand.runs);
}

static void begin(struct scene *s, struct work *work, unsigned n, uint64_t timeout_us)
{
    must(oct_errand_begin(&s->errand, &ops, work, s->raw, n, timeout_us, &failure));
}

TEST(it_takes_so_many_b_scans_and_tells_the_result)
{
    struct scene s;
    open_scene(&s);
    assert_int_equal((int)number_in(&s, "number"), 0);
    begin(&s, new_work(&s), 3, 5000000);
    feed(&s, 3, 0);
    wait_end(&s);
    cJSON *reply = describe_errand(&s);
    const cJSON *errand = cJSON_GetObjectItem(reply, "errand");
    const cJSON *result = cJSON_GetObjectItem(errand, "result");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(errand, "command")), "sum");
    assert_int_equal((int)cJSON_GetNumberValue(cJSON_GetObjectItem(result, "sum")), 21);
    assert_int_equal((int)number_in(&s, "bscans"), 3);
    cJSON_Delete(reply);
    begin(&s, new_work(&s), 1, 5000000); /* the result before it is gone */
    assert_int_equal(s.n_destroyed, 1);
    assert_int_equal((int)number_in(&s, "number"), 2);
    close_scene(&s);
    assert_int_equal(s.n_destroyed, 2);
}

TEST(b_scans_with_missing_lines_do_not_count_and_time_runs_out)
{
    struct scene s;
    open_scene(&s);
    begin(&s, new_work(&s), 1, 60000);
    while (oct_errand_look(&s.errand)) {
        write_bscan(&s, 7, 1);
        sleep_us(5000);
    }
    expect_error(&s, "had missing lines");
    begin(&s, new_work(&s), 1, 30000);
    wait_end(&s);
    expect_error(&s, "0 of 1 B-scans came within 0.03 s");
    close_scene(&s);
}

TEST(a_second_one_is_refused_and_a_stop_cancels)
{
    struct scene s;
    open_scene(&s);
    begin(&s, new_work(&s), 1, 60000000);
    must_fail(oct_errand_begin(&s.errand, &ops, new_work(&s), s.raw, 1, 1, &failure), OCT_E_STATE,
              "sum is under way");
    assert_int_equal(s.n_destroyed, 1);
    for (unsigned k = 0; k < 1000 && !oct_errand_leave(&s.errand, "stop came"); k++)
        sleep_us(1000);
    wait_end(&s);
    expect_error(&s, "sum: cancelled: stop came");
    close_scene(&s);
}

TEST(a_failure_is_told_and_what_computes_ends_with_the_daemon)
{
    struct scene s;
    open_scene(&s);
    struct work *work = new_work(&s);
    work->fails = true;
    begin(&s, work, 1, 5000000);
    feed(&s, 1, 0);
    wait_end(&s);
    expect_error(&s, "nothing to see");
    work = new_work(&s);
    work->lingers = true;
    begin(&s, work, 1, 5000000);
    feed(&s, 1, 0);
    for (unsigned k = 0; k < 1000 && !oct_errand_leave(&s.errand, "stop came"); k++)
        sleep_us(1000);
    assert_null(s.errand.stopped_by); /* it computes: the ring may go, the errand stays */
    assert_true(oct_errand_look(&s.errand));
    close_scene(&s);
    assert_int_equal(s.n_destroyed, 2);
}
