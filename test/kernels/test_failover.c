/* Failover between any two engines, with two that do no reconstruction: whatever becomes of the
 * first, every B-scan comes back in order and right. With real ones: test_faults_cuda_host.c. */
#include "kernels/engines.h"
#include "test/rig/engine_rig.h"
#include "test/rig/fake_engine.h"
#include "test/rig/tap.h"

#include "kernels/device/cuda_memory.h"
#include "pipeline/base/clock.h"

#include <stdlib.h>
#include <string.h>

#define N_JOBS 40u
#define MINUTE_US 60000000u

static const struct oct_scene_recipe recipe = {
    .name = "failover", .n_samples = 64, .n_lines = 2, .crop_last = 40};
static struct oct_scene scene;
static struct oct_plan *plan;

/* ---- two engines ---- */

static struct side {
    struct fake_script script;
    struct fake_watch watch;
    bool starts;
    unsigned n_created, n_destroyed;
} first, then;

static enum oct_err create_fake(struct side *side, struct oct_engine **engine,
                                struct oct_error *err)
{
    *engine = NULL;
    if (!side->starts)
        return oct_fail(err, OCT_E_NO_MEMORY, "a fake that does not start");
    side->n_created++;
    *engine = fake_engine_create(&side->script, &side->watch);
    return *engine ? OCT_OK : OCT_E_NO_MEMORY;
}

static enum oct_err create_first(struct oct_engine **engine, const struct oct_plan *of,
                                 const struct oct_engine_options *options, struct oct_error *err)
{
    (void)of, (void)options;
    return create_fake(&first, engine, err);
}

/* What comes second is given the caller's options, but none about GPUs. */
static enum oct_err create_then(struct oct_engine **engine, const struct oct_plan *of,
                                const struct oct_engine_options *options, struct oct_error *err)
{
    assert_ptr_equal(of, plan);
    assert_int_equal(options->n_threads, 3);
    assert_string_equal(options->simd, "plain");
    assert_null(options->gpus);
    return create_fake(&then, engine, err);
}

static void destroy_first(struct oct_engine *engine)
{
    first.n_destroyed += engine != NULL;
    fake_engine.destroy(engine);
}

static void destroy_then(struct oct_engine *engine)
{
    then.n_destroyed += engine != NULL;
    fake_engine.destroy(engine);
}

static struct oct_engine_ops first_ops, then_ops, pair_ops;

static enum oct_err create_pair(struct oct_engine **engine, const struct oct_plan *of,
                                const struct oct_engine_options *options, struct oct_error *err)
{
    const struct oct_failover pair = {&first_ops, &then_ops, "first fake", "second fake"};
    return oct_failover_create(engine, &pair, of, options, err);
}

static enum oct_err open_pair(struct oct_rig *rig, struct fake_script a, struct fake_script b,
                              bool then_starts, struct oct_error *err)
{
    char simd[] = "plain", gpus[] = "0"; /* the caller's, and gone when create has returned */
    const struct oct_engine_options options = {.n_threads = 3, .simd = simd, .gpus = gpus};
    a.plan = b.plan = plan;
    first = (struct side){.script = a, .starts = true};
    then = (struct side){.script = b, .starts = then_starts};
    *rig = (struct oct_rig){.ops = &pair_ops, .plan = plan};
    enum oct_err e = pair_ops.create(&rig->engine, plan, &options, err);
    memset(simd, 'x', sizeof(simd) - 1);
    return e;
}

static int make_all(void **state)
{
    struct oct_error err;
    first_ops = then_ops = fake_engine;
    first_ops.name = "one";
    first_ops.create = create_first;
    first_ops.destroy = destroy_first;
    then_ops.name = "two";
    then_ops.create = create_then;
    then_ops.destroy = destroy_then;
    pair_ops = oct_engine_failover;
    pair_ops.name = "one";
    pair_ops.create = create_pair;
    pair_ops.memory = NULL;
    return !oct_scene_create(&scene, &recipe, 1) ||
           oct_scene_plan(&scene, OCT_SAMPLE_U8, &plan, &err);
}

static int free_all(void **state)
{
    oct_plan_destroy(plan);
    oct_scene_finish(&scene);
    return 0;
}

/* ---- jobs ---- */

struct load {
    struct oct_slot slots[N_JOBS];
    struct oct_raw_frame in[N_JOBS];
    uint16_t *spectra[N_JOBS];
    unsigned n_submitted, n_collected, n_lost;
};

static void open_load(struct load *load, const struct oct_rig *rig)
{
    const size_t bytes = oct_geometry_spectra_bytes(&plan->geometry);
    *load = (struct load){.n_lost = 0};
    for (unsigned i = 0; i < N_JOBS; i++) {
        oct_slot_open(&load->slots[i], rig);
        load->in[i] = oct_rig_input(&scene);
        load->spectra[i] = malloc(bytes);
        assert_non_null(load->spectra[i]);
        memset(load->spectra[i], (int)(i + 1), bytes);
        load->in[i].spectra = load->spectra[i];
        load->in[i].info = (struct oct_bscan_info){.id = i, .number = i};
        load->slots[i].frame.info = load->in[i].info;
    }
}

static void close_load(struct load *load)
{
    for (unsigned i = 0; i < N_JOBS; i++) {
        oct_slot_close(&load->slots[i]);
        free(load->spectra[i]);
    }
}

static void submit_all(struct load *load, const struct oct_rig *rig, unsigned upto,
                       enum oct_err *refused)
{
    *refused = OCT_OK;
    while (load->n_submitted < upto && !*refused) {
        const unsigned i = load->n_submitted;
        if (i % 2)
            oct_slot_ask_values(&load->slots[i]);
        if (i % 3 != 1)
            oct_slot_ask_complex(&load->slots[i]);
        struct oct_engine_job job = {.in = &load->in[i],
                                     .out = &load->slots[i].frame,
                                     .display = {.range = OCT_RANGE_MANUAL, .lo = 2, .hi = 9}};
        *refused = rig->ops->submit(rig->engine, &job, 1);
        load->n_submitted += *refused == OCT_OK;
    }
}

static void check_picture(const struct load *load, unsigned i)
{
    const uint8_t pixel = fake_pixel(load->spectra[i][0], 2);
    const struct oct_image_frame *frame = &load->slots[i].frame;
    const unsigned char *pixels = frame->pixels;
    const size_t n = (size_t)plan->geometry.n_lines * plan->geometry.depth;
    for (size_t k = 0; k < n; k++)
        assert_int_equal(pixels[k], pixel);
    assert_int_equal(frame->values != NULL, i % 2);
    for (size_t k = 0; frame->values && k < n; k++)
        assert_true(frame->values[k] == fake_value(load->spectra[i][0], 2, k));
    assert_int_equal(frame->complex_values != NULL, i % 3 != 1);
    for (size_t k = 0; frame->complex_values && k < 2 * n; k++)
        assert_true(frame->complex_values[k] == fake_value(load->spectra[i][0], 2, k) + 0.25f);
}

static void collect_all(struct load *load, const struct oct_rig *rig)
{
    while (load->n_collected < load->n_submitted) {
        struct oct_image_frame *done = NULL;
        assert_int_equal(rig->ops->collect(rig->engine, MINUTE_US, &done), OCT_OK);
        assert_ptr_equal(done, &load->slots[load->n_collected].frame);
        if (done->status == OCT_OK)
            check_picture(load, load->n_collected);
        else
            load->n_lost++;
        load->n_collected++;
    }
}

/* All jobs, as many in flight as the engine takes. Returns what submit refused them with. */
static enum oct_err run_load(struct load *load, const struct oct_rig *rig)
{
    enum oct_err refused = OCT_E_AGAIN;
    while (load->n_submitted < N_JOBS && refused == OCT_E_AGAIN) {
        submit_all(load, rig, N_JOBS, &refused);
        collect_all(load, rig);
    }
    return refused;
}

static void close_pair(struct oct_rig *rig, struct load *load)
{
    assert_int_equal(first.watch.n_wrong + then.watch.n_wrong, 0);
    pair_ops.destroy(rig->engine);
    assert_int_equal(first.n_destroyed, first.n_created);
    assert_int_equal(then.n_destroyed, then.n_created);
    close_load(load);
}

/* ---- tests ---- */

static void test_no_failure(void **state)
{
    struct oct_rig rig;
    struct load load;
    struct oct_error err;
    assert_int_equal(open_pair(&rig, (struct fake_script){.depth = 8, .max_batch = 4},
                               (struct fake_script){.depth = 2, .max_batch = 1}, true, &err),
                     OCT_OK);
    open_load(&load, &rig);
    assert_int_equal(pair_ops.depth(rig.engine), 8);
    assert_int_equal(pair_ops.max_batch(rig.engine), 4);
    assert_int_equal(run_load(&load, &rig), OCT_OK);
    assert_int_equal(load.n_lost, 0);
    assert_string_equal(pair_ops.running(rig.engine), "one");
    assert_string_equal(pair_ops.describe(rig.engine), "an engine of the tests");
    assert_int_equal(first.watch.n_submitted, N_JOBS);
    assert_int_equal(then.n_created, 0);
    close_pair(&rig, &load);
}

/* The first dies at its n-th job; the second takes fewer at once. */
static void check_change(struct fake_script a)
{
    struct oct_rig rig;
    struct load load;
    struct oct_error err;
    a.depth = 8;
    a.max_batch = 1;
    assert_int_equal(
        open_pair(&rig, a, (struct fake_script){.depth = 2, .max_batch = 1}, true, &err), OCT_OK);
    open_load(&load, &rig);
    assert_int_equal(run_load(&load, &rig), OCT_OK);
    assert_int_equal(load.n_submitted, N_JOBS);
    assert_int_equal(load.n_lost, 0);
    assert_int_equal(then.n_created, 1);
    assert_true(then.watch.most_in_flight == 2);
    assert_true(first.watch.n_submitted + then.watch.n_submitted >= N_JOBS);
    assert_int_equal(first.n_destroyed, 1); /* before the second one's first job */
    assert_string_equal(pair_ops.running(rig.engine), "two");
    assert_string_equal(pair_ops.describe(rig.engine),
                        "second fake since the first fake failed: an engine of the tests");
    for (unsigned i = 0; i < N_JOBS; i++) /* nobody holds memory: no picture has moved */
        assert_ptr_equal(load.slots[i].frame.pixels, load.slots[i].memory);
    close_pair(&rig, &load);
}

static void test_change(void **state)
{
    for (uint64_t n = 1; n <= 20; n++) {
        check_change((struct fake_script){.dies_at = n});     /* submit says so */
        check_change((struct fake_script){.fail_one_in = n}); /* collect says so */
    }
    check_change((struct fake_script){.dies_at = 13, .job_us = 2000}); /* with jobs in flight */
}

static void test_pictures_that_move(void **state)
{
    struct oct_rig rig;
    struct load load;
    struct oct_error err;
    unsigned n_moved = 0;
    assert_int_equal(
        open_pair(&rig,
                  (struct fake_script){.depth = 8, .max_batch = 1, .dies_at = 20, .job_us = 1000},
                  (struct fake_script){.depth = 8, .max_batch = 1}, true, &err),
        OCT_OK);
    open_load(&load, &rig);
    oct_cuda_memory_hold(); /* as for a device that hangs */
    assert_int_equal(run_load(&load, &rig), OCT_OK);
    oct_cuda_memory_let_go();
    assert_int_equal(load.n_lost, 0);
    for (unsigned i = 0; i < N_JOBS; i++) {
        const struct oct_slot *slot = &load.slots[i];
        const bool moved = slot->frame.pixels != slot->memory;
        n_moved += moved;
        if (slot->frame.values)
            assert_int_equal((uint8_t *)slot->frame.values != slot->values_memory, moved);
        if (slot->frame.complex_values)
            assert_int_equal((uint8_t *)slot->frame.complex_values != slot->complex_memory, moved);
        if (moved) {
            free(slot->frame.pixels);
            free(slot->frame.values);
            free(slot->frame.complex_values);
        }
    }
    assert_in_range(n_moved, 1, 8); /* those in flight, no others */
    close_pair(&rig, &load);
}

static void test_no_second(void **state)
{
    struct oct_rig rig;
    struct load load;
    struct oct_error err;
    assert_int_equal(open_pair(&rig, (struct fake_script){.depth = 8, .max_batch = 1, .dies_at = 5},
                               (struct fake_script){.depth = 8, .max_batch = 1}, false, &err),
                     OCT_OK);
    open_load(&load, &rig);
    enum oct_err refused;
    submit_all(&load, &rig, N_JOBS, &refused);
    assert_int_equal(refused, OCT_E_AGAIN); /* what comes after the failure waits for the second */
    collect_all(&load, &rig);
    assert_true(load.n_lost >= 4 && load.n_lost <= 8);
    submit_all(&load, &rig, N_JOBS, &refused);
    assert_int_equal(refused, OCT_E_BACKEND);
    struct oct_image_frame *done;
    assert_int_equal(pair_ops.collect(rig.engine, 1000, &done), OCT_E_AGAIN);
    close_pair(&rig, &load);
}

static void test_no_first(void **state)
{
    struct oct_engine *engine = (struct oct_engine *)&plan;
    const struct oct_engine_options options = {.n_threads = 1};
    struct oct_error err = {.text = ""};
    first = then = (struct side){.starts = false};
    assert_int_equal(pair_ops.create(&engine, plan, &options, &err), OCT_E_NO_MEMORY);
    assert_null(engine);
    assert_string_equal(err.text, "a fake that does not start");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"while the first engine works the second is not made", test_no_failure, NULL, NULL, NULL},
        {"whenever the first engine dies, no B-scan is lost", test_change, NULL, NULL, NULL},
        {"pictures move where a device may still write", test_pictures_that_move, NULL, NULL, NULL},
        {"without a second engine all come back as lost", test_no_second, NULL, NULL, NULL},
        {"without the first there is no engine", test_no_first, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests_name("failover", tests, make_all, free_all) > 0;
}
