/* What goes wrong with GPUs, played by the stand-in for CUDA (test/cuda_host/): nothing hangs,
 * nothing leaks, every B-scan is handed back, what is handed back as done is right, and with
 * backend=auto the CPU engine goes on. */
#include "kernels/engines.h"
#include "test/rig/cuda_rig.h"
#include "test/rig/engine_rig.h"
#include "test/rig/tap.h"

#include "kernels/device/cuda_memory.h"
#include "kernels/recon/cuda_recon.h"
#include "pipeline/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_JOBS 7u
#if defined(__SANITIZE_THREAD__)
#define HANG_MS 15000 /* kernels that do not hang take seconds then */
#define STRIDE 37u    /* and not every fault can be played */
#else
#define STRIDE 1u
#define HANG_MS 2000
#endif

static const struct oct_scene_recipe recipe = {.name = "faults",
                                               .n_samples = 120,
                                               .n_lines = 3,
                                               .crop_last = 90,
                                               .dispersion = OCT_DISPERSION_COEFFICIENTS};
static const struct oct_scene_recipe long_lines = {
    .name = "long lines", .n_samples = 4097, .n_lines = 2, .crop_last = 20};

static const struct oct_display displays[] = {
    {.log = true, .range = OCT_RANGE_MANUAL, .lo = 0, .hi = 60},
    {.log = true, .range = OCT_RANGE_AUTO},
    {.log = true, .range = OCT_RANGE_PERCENTILE, .percentile_lo = 20, .percentile_hi = 99},
};

static struct oct_scene scene;
/* [N_JOBS] pictures and values: of fused and plain kernels, of the CPU engine */
static uint8_t *wanted[3], *wanted_values[3];
static size_t picture_bytes, values_bytes;

/* ---- jobs ---- */

struct load {
    struct oct_slot slots[N_JOBS];
    struct oct_raw_frame in[N_JOBS];
    unsigned n_submitted, n_collected, n_done, n_lost;
    enum oct_err refused; /* by submit */
};

static void open_load(struct load *load, const struct oct_rig *rig)
{
    *load = (struct load){.refused = OCT_OK};
    for (unsigned i = 0; i < N_JOBS; i++) {
        oct_slot_open(&load->slots[i], rig);
        load->in[i] = oct_rig_input(&scene);
        load->slots[i].frame.info = (struct oct_bscan_info){.id = i, .number = 100 + i};
    }
}

static void close_load(struct load *load)
{
    for (unsigned i = 0; i < N_JOBS; i++) {
        oct_slot_check(&load->slots[i]);
        oct_slot_close(&load->slots[i]);
    }
}

static bool submit_next(struct load *load, const struct oct_rig *rig)
{
    unsigned i = load->n_submitted;
    if (i % 3 != 1) /* of a batch of two often one */
        oct_slot_ask_values(&load->slots[i]);
    struct oct_engine_job job = {
        .in = &load->in[i], .out = &load->slots[i].frame, .display = displays[i % 3]};
    enum oct_err e = rig->ops->submit(rig->engine, &job, 1);
    if (e == OCT_OK)
        load->n_submitted++;
    else if (e != OCT_E_AGAIN)
        load->refused = e;
    return e == OCT_OK;
}

static void check_picture(const struct load *load, unsigned i)
{
    const struct oct_image_frame *frame = &load->slots[i].frame;
    for (int w = 0; w < 3; w++)
        if (memcmp(frame->pixels, wanted[w] + i * picture_bytes, picture_bytes) == 0 &&
            (!frame->values ||
             memcmp(frame->values, wanted_values[w] + i * values_bytes, values_bytes) == 0))
            return;
    fail_msg("B-scan %u is handed back as done and is wrong", i);
}

static void collect_all(struct load *load, const struct oct_rig *rig)
{
    while (load->n_collected < load->n_submitted) {
        struct oct_image_frame *done;
        double begun = seconds();
        assert_int_equal(rig->ops->collect(rig->engine, 120000000, &done), OCT_OK);
        assert_true(seconds() - begun < 60);
        unsigned i = load->n_collected++;
        assert_ptr_equal(done, &load->slots[i].frame);
        if (done->status == OCT_OK) {
            check_picture(load, i);
            load->n_done++;
        } else {
            assert_int_equal(done->status, OCT_E_BACKEND);
            load->n_lost++;
        }
    }
}

/* All jobs through the engine, as far as it takes them. */
static void run_load(struct load *load, const struct oct_rig *rig)
{
    while (load->n_submitted < N_JOBS && load->refused == OCT_OK)
        if (!submit_next(load, rig) && load->refused == OCT_OK)
            collect_all(load, rig);
    collect_all(load, rig);
}

static void make_plan(struct oct_rig *rig, const struct oct_scene *of)
{
    struct oct_error err;
    assert_int_equal(oct_scene_plan(of, OCT_SAMPLE_U8, &rig->plan, &err), OCT_OK);
}

static enum oct_err try_create(struct oct_rig *rig, const struct oct_engine_ops *ops,
                               const struct oct_scene *of, const struct oct_engine_options *options,
                               struct oct_error *err)
{
    *rig = (struct oct_rig){.ops = ops};
    make_plan(rig, of);
    return ops->create(&rig->engine, rig->plan, options, err);
}

static int make_scene(void **state)
{
    static const struct oct_engine_ops *const engines[3] = {&oct_engine_cuda, &oct_engine_cuda,
                                                            &oct_engine_cpu};
    static const struct oct_engine_options options[3] = {
        {.cuda = "fused", .deadline_ms = PATIENCE_MS},
        {.cuda = "plain", .deadline_ms = PATIENCE_MS},
        {.simd = "auto"}};
    cuda_host_reset(1, MEMORY);
    if (!oct_scene_create(&scene, &recipe, 5))
        return 1;
    for (int w = 0; w < 3; w++) {
        struct oct_rig rig;
        struct load load;
        assert_true(oct_rig_open(&rig, engines[w], &options[w], &scene, OCT_SAMPLE_U8));
        open_load(&load, &rig);
        picture_bytes = load.slots[0].bytes;
        values_bytes = load.slots[0].values_bytes;
        wanted[w] = malloc(N_JOBS * picture_bytes);
        wanted_values[w] = malloc(N_JOBS * values_bytes);
        for (unsigned i = 0; i < N_JOBS; i++) {
            struct oct_slot *slot = &load.slots[i];
            oct_rig_run_for_values(&rig, &scene, &displays[i % 3], slot);
            memcpy(wanted[w] + i * picture_bytes, slot->memory, picture_bytes);
            memcpy(wanted_values[w] + i * values_bytes, slot->values_memory, values_bytes);
        }
        close_load(&load);
        oct_rig_close(&rig);
    }
    return 0;
}

static int free_scene(void **state)
{
    oct_scene_finish(&scene);
    for (int w = 0; w < 3; w++) {
        free(wanted[w]);
        free(wanted_values[w]);
    }
    return 0;
}

/* ---- what is refused at start ---- */

static void check_refusal(const struct oct_scene *of, struct oct_engine_options options,
                          enum oct_err code, const char *word)
{
    struct oct_rig rig;
    struct oct_error err = {.text = ""};
    assert_int_equal(try_create(&rig, &oct_engine_cuda, of, &options, &err), code);
    assert_null(rig.engine);
    assert_non_null(strstr(err.text, word));
    oct_plan_destroy(rig.plan);
    check_nothing_left();
}

static void test_refusals(void **state)
{
    cuda_host_reset(2, MEMORY);
    check_refusal(&scene, (struct oct_engine_options){.gpus = "2"}, OCT_E_CONFIG, "has 2 GPUs");
    check_refusal(&scene, (struct oct_engine_options){.gpus = "0,0"}, OCT_E_CONFIG, "twice");
    check_refusal(&scene, (struct oct_engine_options){.gpus = "0,"}, OCT_E_CONFIG, "0,1");
    check_refusal(&scene, (struct oct_engine_options){.gpus = "-1"}, OCT_E_CONFIG, "'-1'");
    check_refusal(&scene, (struct oct_engine_options){.gpus = "0 1"}, OCT_E_CONFIG, "'0 1'");
    check_refusal(&scene, (struct oct_engine_options){.cuda = "fast"}, OCT_E_CONFIG, "'fast'");
}

static void test_no_driver(void **state)
{
    struct oct_error err = {.text = ""};
    struct oct_engine_options options = {.simd = "auto"};
    const struct oct_engine_ops *ops;
    struct oct_rig rig = {.ops = NULL};
    char why[256];
    cuda_host_reset(1, MEMORY);
    cuda_host_remove_driver();
    check_refusal(&scene, options, OCT_E_BACKEND, "driver version is insufficient");
    make_plan(&rig, &scene);
    assert_int_equal(
        oct_engine_select("cuda", rig.plan, &options, &ops, &rig.engine, why, sizeof(why), &err),
        OCT_E_BACKEND);
    assert_null(rig.engine);
    assert_non_null(strstr(err.text, "driver version is insufficient"));
    assert_int_equal(
        oct_engine_select("auto", rig.plan, &options, &ops, &rig.engine, why, sizeof(why), &err),
        OCT_OK);
    assert_ptr_equal(ops, &oct_engine_cpu);
    assert_non_null(strstr(why, "engine cpu"));
    assert_non_null(strstr(why, "driver version is insufficient"));
    ops->destroy(rig.engine);
    oct_plan_destroy(rig.plan);
    cuda_host_reset(0, MEMORY);
    check_refusal(&scene, options, OCT_E_BACKEND, "no GPU answers");
}

static void test_select_gpu(void **state)
{
    static const char *const backends[] = {"auto", "cuda"};
    struct oct_error err = {.text = ""};
    struct oct_engine_options options = {.simd = "auto"};
    struct oct_rig rig = {.ops = NULL};
    char why[256];
    for (int b = 0; b < 2; b++) {
        cuda_host_reset(1, MEMORY);
        make_plan(&rig, &scene);
        assert_int_equal(oct_engine_select(backends[b], rig.plan, &options, &rig.ops, &rig.engine,
                                           why, sizeof(why), &err),
                         OCT_OK);
        assert_string_equal(rig.ops->name, "cuda");
        assert_non_null(strstr(why, "engine cuda (GPU 0: host stand-in 0; fused kernels"));
        oct_rig_close(&rig);
    }
    options.gpus = "1"; /* a wrong option stays an error, whatever auto could do instead */
    make_plan(&rig, &scene);
    assert_int_equal(oct_engine_select("auto", rig.plan, &options, &rig.ops, &rig.engine, why,
                                       sizeof(why), &err),
                     OCT_E_CONFIG);
    assert_non_null(strstr(err.text, "pipeline.gpus"));
    assert_null(rig.engine);
    oct_plan_destroy(rig.plan);
}

static void test_little_memory(void **state)
{
    cuda_host_reset(1, (size_t)3 << 20);
    check_refusal(&scene, (struct oct_engine_options){.max_batch = 16}, OCT_E_NO_MEMORY,
                  "MiB free of 3 MiB; lower pipeline.batch");
}

static void test_no_cufft(void **state)
{
    struct oct_rig rig;
    struct oct_error err;
    struct oct_scene four_k;
    assert_true(oct_scene_create(&four_k, &long_lines, 1));
    cuda_host_reset(1, MEMORY);
    cuda_host_set_cufft(false);
    check_refusal(&scene, (struct oct_engine_options){.cuda = "plain"}, OCT_E_BACKEND, "cuFFT");
    check_refusal(&four_k, (struct oct_engine_options){.cuda = "auto"}, OCT_E_BACKEND, "cuFFT");
    check_refusal(&four_k, (struct oct_engine_options){.cuda = "fused"}, OCT_E_CONFIG, "4097");
    assert_int_equal(
        try_create(&rig, &oct_engine_cuda, &scene, &(struct oct_engine_options){0}, &err),
        OCT_OK); /* fused kernels need no library */
    oct_rig_close(&rig);
    cuda_host_set_cufft(true);
    oct_scene_finish(&four_k);
}

static void test_small_blocks(void **state)
{
    struct oct_rig rig;
    struct load load;
    cuda_host_reset(1, MEMORY);
    cuda_host_set_shared_limit(32 << 10);
    check_refusal(&scene, (struct oct_engine_options){.cuda = "fused"}, OCT_E_BACKEND,
                  "shared memory");
    assert_true(oct_rig_open(&rig, &oct_engine_cuda, &(struct oct_engine_options){0}, &scene,
                             OCT_SAMPLE_U8));
    assert_non_null(strstr(rig.ops->describe(rig.engine), "plain kernels"));
    open_load(&load, &rig);
    oct_rig_run(&rig, &scene, &displays[0], &load.slots[0]);
    close_load(&load);
    oct_rig_close(&rig);
    check_nothing_left();
}

/* ---- what fails in flight ---- */

/* The n-th call or operation fails. Returns whether the engine came to it. */
static bool run_with_fault(const struct oct_engine_ops *ops, enum cuda_host_fault fault, unsigned n,
                           const struct oct_engine_options *options)
{
    struct oct_rig rig;
    struct load load;
    struct oct_error err = {.text = ""};
    bool fell = false;
    cuda_host_reset(2, MEMORY);
    cuda_host_set_fault(fault, n);
    enum oct_err e = try_create(&rig, ops, &scene, options, &err);
    if (e) {
        assert_null(rig.engine);
        assert_int_equal(e, OCT_E_BACKEND);
        assert_non_null(strstr(err.text, "launch failure"));
        oct_plan_destroy(rig.plan);
    } else {
        open_load(&load, &rig);
        run_load(&load, &rig);
        if (load.refused)
            assert_int_equal(load.refused, OCT_E_BACKEND);
        else
            assert_int_equal(load.n_submitted, N_JOBS);
        if (ops == &oct_engine_failover) {
            assert_int_equal(load.refused, OCT_OK);
            assert_int_equal(load.n_done, N_JOBS);
            fell = strcmp(rig.ops->running(rig.engine), "cpu") == 0;
        } else if (load.n_lost)
            assert_false(submit_next(&(struct load){0}, &rig) && load.refused == OCT_OK);
        oct_rig_close(&rig);
        close_load(&load);
    }
    check_nothing_left();
    return e || load.n_lost || load.refused || fell;
}

static const struct oct_engine_options few[] = {
    {.cuda = "fused", .max_batch = 2, .n_streams = 2, .deadline_ms = PATIENCE_MS},
    {.cuda = "plain", .max_batch = 2, .n_streams = 1, .gpus = "0,1", .deadline_ms = PATIENCE_MS},
    /* Batches of so many come up by one stream of all. */
    {.cuda = "fused", .max_batch = N_JOBS, .n_streams = 2, .deadline_ms = PATIENCE_MS},
};
#define N_FEW (sizeof(few) / sizeof(few[0]))

/* B-scans that wait become batches: a run has fewer calls than the one that was counted, and later
 * faults do not come. So many do at least, of those that do where batches are of two. */
static const double coming[N_FEW] = {1, 1, 0.25};

static unsigned count_calls(const struct oct_engine_options *options, unsigned *n_operations)
{
    assert_false(run_with_fault(&oct_engine_cuda, CUDA_HOST_NO_FAULT, 0, options));
    *n_operations = cuda_host_n_operations();
    return cuda_host_n_calls();
}

static void test_call_fails(void **state)
{
    for (size_t o = 0; o < N_FEW; o++) {
        unsigned n_operations, n_hit = 0, n_calls = count_calls(&few[o], &n_operations);
        for (unsigned n = 1; n <= n_calls; n += STRIDE)
            n_hit += run_with_fault(&oct_engine_cuda, CUDA_HOST_CALL_FAILS, n, &few[o]);
        assert_true(n_hit > coming[o] * 0.3 * n_calls / STRIDE); /* not: those of destroy */
    }
}

static void test_work_fails(void **state)
{
    for (size_t o = 0; o < N_FEW; o++) {
        unsigned n_operations, n_hit = 0;
        count_calls(&few[o], &n_operations);
        for (unsigned n = 1; n <= n_operations; n += STRIDE)
            n_hit += run_with_fault(&oct_engine_cuda, CUDA_HOST_WORK_FAILS, n, &few[o]);
        /* The last may pass after all are done. */
        assert_true((n_hit + 4) * STRIDE > coming[o] * 0.5 * n_operations);
    }
}

static void test_failover(void **state)
{
    for (size_t o = 0; o < N_FEW; o++) {
        unsigned n_operations, n_hit = 0;
        count_calls(&few[o], &n_operations);
        for (unsigned n = 1; n <= n_operations; n += 3 * STRIDE)
            n_hit += run_with_fault(&oct_engine_failover, CUDA_HOST_WORK_FAILS, n, &few[o]);
        assert_true(n_hit > 0 && n_hit + 1 > coming[o] * n_operations / 12 / STRIDE);
    }
}

/* ---- what hangs ---- */

static const struct oct_engine_options hanging = {
    .cuda = "fused", .max_batch = 2, .n_streams = 2, .deadline_ms = HANG_MS};

static void check_hang(enum cuda_host_fault fault, unsigned n)
{
    struct oct_rig rig;
    struct load load;
    cuda_host_reset(1, MEMORY);
    assert_true(oct_rig_open(&rig, &oct_engine_cuda, &hanging, &scene, OCT_SAMPLE_U8));
    open_load(&load, &rig);
    cuda_host_set_fault(fault, n);
    double begun = seconds();
    run_load(&load, &rig);
    assert_true(load.n_lost > 0);
    assert_true(seconds() - begun > HANG_MS * 0.5e-3 && seconds() - begun < HANG_MS * 4e-3);
    assert_false(submit_next(&(struct load){0}, &rig));
    begun = seconds();
    rig.ops->destroy(rig.engine);
    assert_true(seconds() - begun < HANG_MS * 3e-3);
    rig.engine = NULL;
    let_go();
    oct_rig_close(&rig);
    close_load(&load);
}

static void test_hangs(void **state)
{
    check_hang(CUDA_HOST_WORK_HANGS, 5);
    check_hang(CUDA_HOST_CALL_BLOCKS, 9);
}

static void test_failover_from_hang(void **state)
{
    struct oct_rig rig;
    struct load load;
    cuda_host_reset(1, MEMORY);
    assert_true(oct_rig_open(&rig, &oct_engine_failover, &hanging, &scene, OCT_SAMPLE_U8));
    assert_non_null(strstr(rig.ops->describe(rig.engine), "GPU 0"));
    open_load(&load, &rig);
    cuda_host_set_fault(CUDA_HOST_WORK_HANGS, 12);
    run_load(&load, &rig);
    assert_int_equal(load.refused, OCT_OK);
    assert_int_equal(load.n_done, N_JOBS);
    assert_non_null(strstr(rig.ops->describe(rig.engine), "CPU since the GPU failed"));
    assert_true(oct_cuda_memory_is_held());
    oct_rig_close(&rig);
    let_go(); /* now the device writes what it had not written */
    unsigned n_moved = 0, n_values_moved = 0;
    for (unsigned i = 0; i < N_JOBS; i++) {
        struct oct_slot *slot = &load.slots[i];
        const bool moved = slot->frame.pixels != slot->memory;
        const bool values_moved = (uint8_t *)slot->frame.values_room != slot->values_memory;
        check_picture(&load, i);
        assert_int_equal(values_moved, moved && slot->frame.values);
        assert_true(!slot->frame.values || slot->frame.values == slot->frame.values_room);
        n_moved += moved;
        n_values_moved += values_moved;
        if (moved)
            free(slot->frame.pixels);
        if (values_moved)
            free(slot->frame.values_room);
    }
    assert_true(n_moved > 0 && n_values_moved > 0);
    close_load(&load);
}

static void test_memory_of_a_hanging_device(void **state)
{
    cuda_host_reset(1, MEMORY);
    unsigned char *memory = oct_cuda_memory.alloc(10000, NULL);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 4096, 0);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(memory[i], 0);
    oct_cuda_memory.release(memory, 10000);
    check_nothing_left();
    memory = oct_cuda_memory.alloc(10000, NULL);
    cuda_host_set_fault(CUDA_HOST_CALL_BLOCKS, 1);
    double begun = seconds();
    oct_cuda_memory.release(memory, 10000);
    assert_true(seconds() - begun < 6);
    let_go();
}

/* ---- several GPUs ---- */

static struct oct_display smoothed(unsigned i)
{
    return (struct oct_display){.log = true,
                                .range = OCT_RANGE_PERCENTILE,
                                .percentile_lo = 10 + i,
                                .percentile_hi = 40 + 8 * i,
                                .smoothing_bscans = 2};
}

/* A large batch first and single B-scans behind it, which other workers have done sooner. */
static void test_smoothing_in_turn(void **state)
{
    static const unsigned sizes[] = {4, 1, 1, 1};
    struct oct_rig rig;
    struct load load;
    double lo[N_JOBS], hi[N_JOBS];
    struct oct_engine_options options = {
        .gpus = "0,1", .max_batch = 4, .n_streams = 2, .deadline_ms = PATIENCE_MS};
    for (int round = 0; round < 12; round++) { /* the first: one after the other */
        cuda_host_reset(2, MEMORY);
        assert_true(oct_rig_open(&rig, &oct_engine_cuda, &options, &scene, OCT_SAMPLE_U8));
        open_load(&load, &rig);
        for (unsigned i = 0, s = 0; i < N_JOBS; i += round ? sizes[s++] : 1) {
            struct oct_engine_job jobs[4];
            unsigned n = round ? sizes[s] : 1;
            for (unsigned k = 0; k < n; k++)
                jobs[k] = (struct oct_engine_job){.in = &load.in[i + k],
                                                  .out = &load.slots[i + k].frame,
                                                  .display = smoothed(i + k)};
            assert_int_equal(rig.ops->submit(rig.engine, jobs, n), OCT_OK);
            if (!round)
                oct_rig_collect(&rig);
        }
        for (unsigned i = 0; i < N_JOBS; i++) {
            const struct oct_image_frame *frame = &load.slots[i].frame;
            if (round)
                assert_ptr_equal(oct_rig_collect(&rig), frame);
            assert_true(!round || (frame->lo == lo[i] && frame->hi == hi[i]));
            lo[i] = frame->lo;
            hi[i] = frame->hi;
        }
        close_load(&load);
        oct_rig_close(&rig);
    }
}

/* pipeline.batch is a limit, so more than the engine takes is no mistake. */
static void test_large_batch(void **state)
{
    struct oct_rig rig;
    struct oct_engine_options options = {.max_batch = 4096, .n_streams = 1};
    cuda_host_reset(1, MEMORY);
    assert_true(oct_rig_open(&rig, &oct_engine_cuda, &options, &scene, OCT_SAMPLE_U8));
    assert_int_equal(rig.ops->max_batch(rig.engine), OCT_CUDA_MAX_BATCH);
    oct_rig_close(&rig);
}

static void test_dealing(void **state)
{
    struct oct_rig rig;
    struct load load;
    cuda_host_reset(3, MEMORY);
    struct oct_engine_options options = {.gpus = "2,0", .max_batch = 4, .deadline_ms = PATIENCE_MS};
    assert_true(oct_rig_open(&rig, &oct_engine_cuda, &options, &scene, OCT_SAMPLE_U8));
    open_load(&load, &rig);
    for (unsigned i = 0; i < 6; i++)
        oct_rig_run(&rig, &scene, &displays[0], &load.slots[i]);
    assert_int_equal(cuda_host_n_launches(1), 0);
    assert_int_equal(cuda_host_n_launches(0), cuda_host_n_launches(2));
    assert_true(cuda_host_n_launches(0) > 0);
    close_load(&load);
    oct_rig_close(&rig);
    check_nothing_left();
}

#define CASE(name, function)                                                                       \
    (struct CMUnitTest)                                                                            \
    {                                                                                              \
        name, function, NULL, NULL, NULL                                                           \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE("options that cannot be are refused by name", test_refusals),
        CASE("without a driver the reason is told and auto takes the CPU", test_no_driver),
        CASE("auto takes a GPU that answers and says which", test_select_gpu),
        CASE("too little memory is found at start, with the sizes", test_little_memory),
        CASE("only the plain kernels need cuFFT", test_no_cufft),
        CASE("a GPU with little shared memory runs the plain kernels", test_small_blocks),
        CASE("whichever call fails, every B-scan is handed back", test_call_fails),
        CASE("whichever operation fails, every B-scan is handed back", test_work_fails),
        CASE("with auto the CPU engine loses nothing after a failure", test_failover),
        CASE("a device that hangs is given up in time", test_hangs),
        CASE("with auto the CPU engine goes on when the device hangs", test_failover_from_hang),
        CASE("pinned memory of a hanging device holds nobody up", test_memory_of_a_hanging_device),
        CASE("a batch is never larger than the kernels take", test_large_batch),
        CASE("percentile limits are smoothed in the order of jobs", test_smoothing_in_turn),
        CASE("several GPUs get B-scans in turn", test_dealing),
    };
    return cmocka_run_group_tests_name("faults of GPUs", tests, make_scene, free_scene) > 0;
}
