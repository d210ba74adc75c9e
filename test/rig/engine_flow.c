/* The engine contract of pipeline/flow/engine.h: order, batches, loans, limits over time,
 * refusals. */
#include "test/rig/engine_suite.h"

#include "test/rig/engine_bounds.h"
#include "test/rig/engine_rig.h"
#include "test/rig/tap.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_SCENES 6u
#define MAX_DEPTH 128u

static const struct oct_scene_recipe recipe = {.name = "flow",
                                               .n_samples = 300,
                                               .n_lines = 11,
                                               .crop_last = 500,
                                               .dispersion = OCT_DISPERSION_COEFFICIENTS};

static const struct oct_display in_db = {.log = true,
                                         .range = OCT_RANGE_PERCENTILE,
                                         .percentile_lo = 30,
                                         .percentile_hi = 99.8,
                                         .smoothing_bscans = 3};

/* Different B-scans of one lab, what each looks like alone, and an engine. */
struct flow {
    const struct oct_suite *suite;
    const struct oct_engine_options *options;
    struct oct_scene scenes[N_SCENES];
    uint8_t *packed[N_SCENES]; /* the same samples as format_of, at an odd address; NULL: as u16 */
    struct oct_rig rig;
    struct oct_slot slots[MAX_DEPTH];
    unsigned depth, n_slots, n_bscans;
    atomic_ullong n_released; /* two threads: B-scans whose slot may be used again */
};

typedef void (*flow_test)(struct flow *flow);

struct flow_state {
    const struct oct_suite *suite;
    flow_test test;
    enum oct_dc dc;
};

static const struct oct_scene *scene_of(const struct flow *flow, uint64_t id)
{
    return &flow->scenes[id % N_SCENES];
}

/* Neighbours of one format, and of others; not all that are alike are dark (run_flow). */
static uint16_t format_of(uint64_t id)
{
    static const uint16_t formats[N_SCENES] = {OCT_LINES_12P, OCT_LINES_12P, OCT_LINES_U8,
                                               OCT_LINES_U8,  OCT_LINES_U8,  OCT_LINES_U16};
    return formats[id % N_SCENES];
}

/* The same for every engine: display by number, so that it changes between jobs. */
static struct oct_display display_of(const struct flow *flow, uint64_t id)
{
    struct oct_display display = in_db;
    if (id % 4 == 1)
        display = (struct oct_display){.range = OCT_RANGE_AUTO};
    else if (id % 4 == 2)
        display = (struct oct_display){
            .range = OCT_RANGE_MANUAL, .lo = 0, .hi = scene_of(flow, id)->brightest / 10};
    else if (id % 4 == 3)
        display = (struct oct_display){.log = true, .range = OCT_RANGE_MANUAL, .lo = 0, .hi = 60};
    display.smoothing_bscans = 0; /* a picture that does not depend on those before it */
    return display;
}

static bool open_flow(struct flow *flow, const struct oct_engine_options *options)
{
    if (!oct_rig_open(&flow->rig, flow->suite->ops, options, &flow->scenes[0], OCT_SAMPLE_U8))
        return false;
    flow->depth = flow->suite->ops->depth(flow->rig.engine);
    unsigned most = flow->suite->ops->max_batch(flow->rig.engine);
    assert_in_range(flow->depth, 1, MAX_DEPTH);
    assert_in_range(most, 1, flow->depth);
    assert_non_null(flow->suite->ops->describe(flow->rig.engine));
    flow->n_slots = flow->depth;
    for (unsigned i = 0; i < flow->n_slots; i++)
        oct_slot_open(&flow->slots[i], &flow->rig);
    return true;
}

static void close_flow(struct flow *flow)
{
    for (unsigned i = 0; i < flow->n_slots; i++) {
        oct_slot_check(&flow->slots[i]);
        oct_slot_close(&flow->slots[i]);
    }
    oct_rig_close(&flow->rig);
}

/* Submits B-scans id .. id + n - 1 as one batch into the slots id % depth. */
static enum oct_err submit(struct flow *flow, uint64_t id, unsigned n,
                           struct oct_display (*display)(const struct flow *, uint64_t))
{
    struct oct_engine_job jobs[MAX_DEPTH];
    static _Thread_local struct oct_raw_frame in[MAX_DEPTH];
    for (unsigned i = 0; i < n; i++) {
        unsigned at = (unsigned)((id + i) % flow->depth);
        in[at] = oct_rig_input(scene_of(flow, id + i));
        jobs[i] = (struct oct_engine_job){.in = &in[at],
                                          .out = &flow->slots[at].frame,
                                          .display = display(flow, id + i),
                                          .dc = scene_of(flow, id + i)->dc};
        in[at].info = jobs[i].out->info;
        if (flow->packed[(id + i) % N_SCENES]) {
            in[at].format = format_of(id + i);
            in[at].spectra = (uint16_t *)(void *)flow->packed[(id + i) % N_SCENES];
        }
    }
    enum oct_err e = flow->suite->ops->submit(flow->rig.engine, jobs, n);
    memset(jobs, 0xff, sizeof(jobs)); /* the array itself was copied */
    return e;
}

/* Every B-scan alone, one after the other: what all other ways must give, byte for byte. */
struct alone {
    uint8_t *pictures, *values, *complex_values; /* [n_bscans] */
    size_t picture_bytes, values_bytes, complex_bytes;
};

static struct alone run_alone(struct flow *flow)
{
    struct oct_slot *slot = &flow->slots[0];
    struct alone alone = {.picture_bytes = slot->bytes,
                          .values_bytes = slot->values_bytes,
                          .complex_bytes = slot->complex_bytes};
    alone.pictures = malloc(flow->n_bscans * alone.picture_bytes);
    alone.values = malloc(flow->n_bscans * alone.values_bytes);
    alone.complex_values = malloc(flow->n_bscans * alone.complex_bytes);
    assert_true(alone.pictures && alone.values && alone.complex_values);
    for (uint64_t id = 0; id < flow->n_bscans; id++) {
        struct oct_display display = display_of(flow, id);
        slot->frame.info = (struct oct_bscan_info){.id = id};
        oct_rig_run_for_values(&flow->rig, scene_of(flow, id), &display, slot);
        memcpy(alone.values + id * alone.values_bytes, slot->values_memory, alone.values_bytes);
        memcpy(alone.complex_values + id * alone.complex_bytes, slot->complex_memory,
               alone.complex_bytes);
        oct_rig_run(&flow->rig, scene_of(flow, id), &display, slot);
        memcpy(alone.pictures + id * alone.picture_bytes, slot->memory, alone.picture_bytes);
    }
    return alone;
}

static void free_alone(struct alone *alone)
{
    free(alone->pictures);
    free(alone->values);
    free(alone->complex_values);
}

static bool no_values(uint64_t id)
{
    (void)id;
    return false;
}

/* Of a batch one, several or no B-scan, of every kind of display. */
static bool some_values(uint64_t id)
{
    return id % 3 == 1 || id % 7 < 2;
}

static void check_collected(struct flow *flow, uint64_t id, const struct alone *alone)
{
    struct oct_slot *slot = &flow->slots[id % flow->depth];
    const size_t bytes = alone->picture_bytes, values = alone->values_bytes;
    assert_ptr_equal(oct_rig_collect(&flow->rig), &slot->frame);
    assert_int_equal(slot->frame.info.id, id);
    if (memcmp(slot->memory, alone->pictures + id * bytes, bytes) != 0)
        fail_msg("B-scan %u differs from the same B-scan alone", (unsigned)id);
    if (slot->frame.values && memcmp(slot->values_memory, alone->values + id * values, values) != 0)
        fail_msg("values of B-scan %u differ from those of the same B-scan alone", (unsigned)id);
    if (slot->frame.complex_values &&
        memcmp(slot->complex_memory, alone->complex_values + id * alone->complex_bytes,
               alone->complex_bytes) != 0)
        fail_msg("complex values of B-scan %u differ from those alone", (unsigned)id);
    oct_slot_check(slot);
}

/* All B-scans in batches of changing size, the engine kept as full as it can be. */
static void run_in_batches(struct flow *flow, const struct alone *alone,
                           bool (*wants_values)(uint64_t id))
{
    unsigned most = flow->suite->ops->max_batch(flow->rig.engine);
    uint64_t in = 0, out = 0, random = 4;
    while (out < flow->n_bscans) {
        unsigned n = 1 + (unsigned)(oct_random_uniform(&random) * most);
        if (n > flow->n_bscans - in)
            n = (unsigned)(flow->n_bscans - in);
        if (n > 0 && in + n - out <= flow->depth) {
            for (unsigned i = 0; i < n; i++) {
                struct oct_slot *slot = &flow->slots[(in + i) % flow->depth];
                oct_slot_refill(slot);
                slot->frame.info = (struct oct_bscan_info){.id = in + i};
                if (wants_values(in + i))
                    oct_slot_ask_values(slot);
                if (wants_values(in + i + 1))
                    oct_slot_ask_complex(slot);
            }
            assert_int_equal(submit(flow, in, n, display_of), OCT_OK);
            in += n;
        } else {
            check_collected(flow, out++, alone);
        }
    }
}

static void test_order(struct flow *flow)
{
    struct alone alone = run_alone(flow);
    run_in_batches(flow, &alone, no_values);
    run_in_batches(flow, &alone, no_values);
    free_alone(&alone);
}

static void test_values(struct flow *flow)
{
    struct alone alone = run_alone(flow);
    run_in_batches(flow, &alone, some_values);
    run_in_batches(flow, &alone, some_values);
    free_alone(&alone);
}

static void test_formats(struct flow *flow)
{
    const size_t n = (size_t)flow->scenes[0].recipe.n_lines * recipe.n_samples;
    uint8_t *memory[N_SCENES];
    for (unsigned s = 0; s < N_SCENES; s++) {
        uint16_t *samples = flow->scenes[s].spectra;
        for (size_t i = 0; i < n; i++)
            samples[i] = (uint16_t)(samples[i] >> (format_of(s) == OCT_LINES_U8 ? 4 : 0) & 4095);
    }
    struct alone alone = run_alone(flow);
    for (unsigned s = 0; s < N_SCENES; s++) {
        const bool odd = format_of(s) != OCT_LINES_U16;
        memory[s] = malloc((size_t)oct_samples_bytes(format_of(s), n) + odd);
        assert_non_null(memory[s]);
        flow->packed[s] = memory[s] + odd;
        assert_int_equal(
            oct_samples_pack(flow->packed[s], flow->scenes[s].spectra, n, format_of(s)), 0);
    }
    run_in_batches(flow, &alone, no_values);
    run_in_batches(flow, &alone, some_values);
    for (unsigned s = 0; s < N_SCENES; s++) {
        free(memory[s]);
        flow->packed[s] = NULL;
    }
    free_alone(&alone);
}

static void test_threads_alike(struct flow *flow)
{
    struct alone alone = run_alone(flow);
    for (unsigned n_threads = 1; n_threads <= 5; n_threads += 2) {
        struct oct_engine_options options = *flow->options;
        options.n_threads = n_threads;
        options.max_batch = n_threads;
        close_flow(flow);
        assert_true(open_flow(flow, &options));
        assert_in_range(flow->suite->ops->max_batch(flow->rig.engine), 1, n_threads);
        run_in_batches(flow, &alone, some_values);
    }
    free_alone(&alone);
}

static void test_input_untouched(struct flow *flow)
{
    const struct oct_scene *scene = scene_of(flow, 0);
    size_t bytes = (size_t)scene->recipe.n_lines * recipe.n_samples * sizeof(uint16_t);
    uint16_t *before = malloc(bytes);
    assert_non_null(before);
    memcpy(before, scene->spectra, bytes);
    oct_rig_run(&flow->rig, scene, &in_db, &flow->slots[0]);
    assert_memory_equal(before, scene->spectra, bytes);
    free(before);
}

static void test_full(struct flow *flow)
{
    for (unsigned i = 0; i < flow->depth; i++)
        assert_int_equal(submit(flow, i, 1, display_of), OCT_OK);
    assert_int_equal(submit(flow, 0, 1, display_of), OCT_E_AGAIN);
    for (unsigned i = 0; i < flow->depth; i++)
        assert_ptr_equal(oct_rig_collect(&flow->rig), &flow->slots[i].frame);
    unsigned most = flow->suite->ops->max_batch(flow->rig.engine);
    if (most < 2)
        return; /* a batch that does not fit is taken as a whole or not at all */
    for (unsigned i = 0; i < flow->depth - 1; i++)
        assert_int_equal(submit(flow, i, 1, display_of), OCT_OK);
    assert_int_equal(submit(flow, flow->depth - 1, 2, display_of), OCT_E_AGAIN);
    for (unsigned i = 0; i < flow->depth - 1; i++)
        assert_ptr_equal(oct_rig_collect(&flow->rig), &flow->slots[i].frame);
    struct oct_image_frame *none;
    assert_int_equal(flow->suite->ops->collect(flow->rig.engine, 0, &none), OCT_E_AGAIN);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void test_empty(struct flow *flow)
{
    struct oct_image_frame *none;
    double begun = seconds();
    assert_int_equal(flow->suite->ops->collect(flow->rig.engine, 50000, &none), OCT_E_AGAIN);
    double waited = seconds() - begun;
    assert_true(waited >= 0.045 && waited < 5);
    begun = seconds();
    assert_int_equal(flow->suite->ops->collect(flow->rig.engine, 0, &none), OCT_E_AGAIN);
    assert_true(seconds() - begun < 5);
}

static struct oct_display smoothed(const struct flow *flow, uint64_t id)
{
    (void)flow;
    (void)id;
    return in_db;
}

static struct oct_display smoothed_linear(const struct flow *flow, uint64_t id)
{
    struct oct_display display = smoothed(flow, id);
    display.log = false;
    return display;
}

/* B-scans 0..4 are of volume 0, 5..8 of volume 1, 9..13 of volume 1 of the next acquisition. Of 5
 * no line came, of 9 one, which is its own mean; 11 is without lines in the midst of others. */
static struct oct_bscan_info info_of(uint64_t id)
{
    return (struct oct_bscan_info){
        .id = id, .acquisition = id > 8, .volume = id > 4, .bscan = (uint32_t)id % 5};
}

static void check_smoothed(struct flow *flow, uint64_t id, const struct oct_display *display,
                           struct oct_oracle_memory *memory)
{
    const struct oct_scene *scene = scene_of(flow, id);
    struct oct_oracle_range range = oct_scene_range(display);
    struct oct_oracle_values values = oct_scene_values(scene, display->log);
    struct oct_image_frame *done = oct_rig_collect(&flow->rig);
    struct oct_worst worst = {.limits_db = 0};
    double lo, hi;
    values.acquisition = info_of(id).acquisition;
    values.volume = info_of(id).volume;
    assert_true(oct_oracle_limits(&range, &values, memory, &lo, &hi));
    assert_true(oct_bound_limits(&worst, scene, display->log, done->lo, done->hi, lo, hi));
    assert_true(oct_bound_band(&worst, scene, display->log, done->pixels, lo, hi));
}

static void test_smoothing(struct flow *flow)
{
    const unsigned most = flow->suite->ops->max_batch(flow->rig.engine);
    const struct {
        unsigned batch;
        struct oct_display (*display)(const struct flow *, uint64_t);
    } rounds[] = {{1, smoothed}, {most, smoothed}, {most, smoothed_linear}};
    for (unsigned r = 0; r < 3; r++) {
        const struct oct_display display = rounds[r].display(flow, 0);
        struct oct_oracle_memory memory = {.begun = false};
        close_flow(flow);
        assert_true(open_flow(flow, flow->options));
        for (uint64_t id = 0, n; id < 14; id += n) {
            n = 14 - id < rounds[r].batch ? 14 - id : rounds[r].batch;
            for (uint64_t i = id; i < id + n; i++)
                flow->slots[i % flow->depth].frame.info = info_of(i);
            assert_int_equal(submit(flow, id, (unsigned)n, rounds[r].display), OCT_OK);
            for (uint64_t i = id; i < id + n; i++)
                check_smoothed(flow, i, &display, &memory);
        }
    }
}

static void test_destroy(struct flow *flow)
{
    for (unsigned round = 0; round < flow->n_bscans / 4; round++) {
        for (unsigned i = 0; i < flow->depth; i++)
            assert_int_equal(submit(flow, i, 1, display_of), OCT_OK);
        flow->suite->ops->destroy(flow->rig.engine);
        flow->rig.engine = NULL;
        close_flow(flow); /* frees what the jobs were working on */
        assert_true(open_flow(flow, flow->options));
    }
    flow->suite->ops->destroy(NULL);
}

static void *submit_all(void *arg)
{
    struct flow *flow = arg;
    for (uint64_t id = 0; id < 4 * flow->n_bscans;) {
        bool is_free = id < atomic_load(&flow->n_released) + flow->depth;
        enum oct_err e = is_free ? submit(flow, id, 1, display_of) : OCT_E_AGAIN;
        if (e == OCT_OK)
            id++;
        else if (e == OCT_E_AGAIN)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        else
            return arg;
    }
    return NULL;
}

static void test_two_threads(struct flow *flow)
{
    pthread_t thread;
    void *failed;
    atomic_store(&flow->n_released, 0);
    assert_int_equal(pthread_create(&thread, NULL, submit_all, flow), 0);
    for (uint64_t id = 0; id < 4 * flow->n_bscans; id++) {
        assert_ptr_equal(oct_rig_collect(&flow->rig), &flow->slots[id % flow->depth].frame);
        atomic_store(&flow->n_released, id + 1);
    }
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
}

static void test_options(struct flow *flow)
{
    struct oct_engine_options options = *flow->options;
    struct oct_error err = {.text = ""};
    struct oct_engine *engine = (struct oct_engine *)flow;
    options.simd = "mmx";
    assert_int_equal(flow->suite->ops->create(&engine, flow->rig.plan, &options, &err),
                     OCT_E_CONFIG);
    assert_null(engine);
    assert_non_null(strstr(err.text, "mmx"));
}

static const struct {
    const char *name;
    flow_test test;
    enum oct_dc dc;
} flow_tests[] = {
    {"jobs come back in order and alike, whatever the batches", test_order, OCT_DC_BSCAN},
    {"the line of a running mean is that of its job, whatever the batches", test_order,
     OCT_DC_RUNNING},
    {"values and complex ones come with the B-scans that ask for them, whatever the batches",
     test_values, OCT_DC_BSCAN},
    {"pictures are the same bytes from samples of 8 bits, of 12 bits packed, and of 16",
     test_formats, OCT_DC_BSCAN},
    {"pictures are the same bytes with any number of threads", test_threads_alike, OCT_DC_BSCAN},
    {"the input is only read", test_input_untouched, OCT_DC_BSCAN},
    {"a full engine says so and takes nothing", test_full, OCT_DC_BSCAN},
    {"collect waits for its time when nothing is in flight", test_empty, OCT_DC_BSCAN},
    {"percentile limits are smoothed within a volume and start afresh with the next that has lines",
     test_smoothing, OCT_DC_BSCAN},
    {"an engine with jobs in flight can be destroyed", test_destroy, OCT_DC_BSCAN},
    {"one thread submits while another collects", test_two_threads, OCT_DC_BSCAN},
    {"an instruction set that does not exist is refused by name", test_options, OCT_DC_BSCAN},
};

#define N_FLOW (sizeof(flow_tests) / sizeof(flow_tests[0]))

bool oct_suite_is_short(const struct oct_suite *suite)
{
    return suite->is_slow && !getenv("OCT_LONG");
}

static void run_flow(void **state)
{
    const struct flow_state *with = *state;
    struct flow *flow = calloc(1, sizeof(*flow));
    unsigned n_ran = 0;
    assert_non_null(flow);
    flow->suite = with->suite;
    flow->n_bscans = oct_suite_is_short(with->suite) ? 18 : 40;
    for (unsigned i = 0; i < N_SCENES; i++) {
        struct oct_scene_recipe own = recipe; /* other lines are missing in each */
        own.dc = with->dc;
        own.n_lines = oct_suite_is_short(with->suite) ? 4 : own.n_lines;
        own.missing = i == 1 || i == 4 ? OCT_MISSING_SOME
                      : i == 3         ? OCT_MISSING_ALL_BUT_ONE
                      : i == 5         ? OCT_MISSING_ALL
                                       : OCT_MISSING_NONE;
        assert_true(oct_scene_create(&flow->scenes[i], &own, 100 + i));
    }
    for (unsigned v = 0; v < with->suite->n_variants; v++) {
        flow->options = &with->suite->variants[v];
        if (!open_flow(flow, flow->options))
            continue;
        with->test(flow);
        close_flow(flow);
        n_ran++;
    }
    for (unsigned i = 0; i < N_SCENES; i++)
        oct_scene_finish(&flow->scenes[i]);
    free(flow);
    if (n_ran == 0)
        skip();
}

int oct_suite_run_flow(const struct oct_suite *suite)
{
    struct flow_state states[N_FLOW];
    struct CMUnitTest tests[N_FLOW];
    for (size_t i = 0; i < N_FLOW; i++) {
        states[i] = (struct flow_state){suite, flow_tests[i].test, flow_tests[i].dc};
        tests[i] = (struct CMUnitTest){
            .name = flow_tests[i].name, .test_func = run_flow, .initial_state = &states[i]};
    }
    return cmocka_run_group_tests_name("the engine contract", tests, NULL, NULL);
}
