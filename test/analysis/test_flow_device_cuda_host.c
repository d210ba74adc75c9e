/* Flow of B-scans whose complex values stay on the device, on the stand-in for CUDA
 * (test/cuda_host/): spectra -> CUDA engine -> stage with flow's CUDA twin. It finds what it finds
 * of host values, and not one of their bytes comes over the bus. */
#include "analysis/flow/flow.h"
#include "kernels/engines.h"
#include "pipeline/flow/offline.h"
#include "test/rig/cuda_rig.h"
#include "test/rig/tap.h"
#include "tools/bench/scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 20, SAMPLES = 832, D = 200, R = 3, V = 12 };

struct run {
    struct oct_plan *plan;
    struct oct_pipeline *pipeline;
    struct oct_stage *stage;
    uint8_t *images; /* [V / R][M][D] */
    unsigned n_images;
    uint64_t complex_bytes, lost_from; /* B-scans from here on that the source skips */
    struct oct_stage_counts counts;
    double n_pairs; /* the fewest of an image */
};

/* Layers that move from place to place, the same in all repeats but for those of some lines. */
static enum oct_err read_bscan(void *context, uint64_t index, struct oct_raw_frame *frame,
                               enum oct_offline_next *next, struct oct_error *err)
{
    (void)context, (void)err;
    *next = index < V ? OCT_OFFLINE_BSCAN : OCT_OFFLINE_END;
    uint32_t random = (uint32_t)index + 1;
    for (uint32_t j = 0; j < M && index < V; j++) {
        const double phase = j >= 8 && j < 12 ? 2.1 * (double)index : 0.3 * (double)index;
        for (uint32_t i = 0; i < SAMPLES; i++) {
            double sum = 2000;
            for (int layer = 0; layer < 6; layer++)
                sum += 120 * cos(0.13 * (1 + layer) * i + phase + 1.7 * layer * j);
            random = random * 1664525u + 1013904223u;
            frame->spectra[(size_t)j * SAMPLES + i] = (uint16_t)(sum + (double)(random >> 26));
        }
        frame->line_valid[j] = 1;
    }
    frame->info.number = index;
    frame->info.bscan = (uint32_t)index;
    frame->info.time_ns = index * 1000000;
    return OCT_OK;
}

static enum oct_err keep_result(void *context, unsigned stage, uint64_t index,
                                const struct oct_image_frame *result, struct oct_error *err)
{
    struct run *r = context;
    (void)stage, (void)index, (void)err;
    memcpy(r->images + (size_t)r->n_images++ * M * D, result->pixels, (size_t)M * D);
    r->n_pairs = fmin(r->n_pairs, result->numbers[OCT_FLOW_PAIRS]);
    return OCT_OK;
}

static void make_plan(struct run *r)
{
    struct oct_calibration cal = {.n_wavelengths = 0};
    struct oct_geometry g;
    assert_int_equal(oct_geometry_init(&g, SAMPLES, M, V, 0, D, OCT_SAMPLE_U8, NULL), OCT_OK);
    assert_int_equal(oct_bench_calibration(&cal, SAMPLES), OCT_OK);
    struct oct_chain chain = oct_chain_thesis;
    chain.dc = OCT_DC_NONE; /* layers lie flat */
    assert_int_equal(oct_plan_create(&r->plan, &g, &cal, &chain, NULL), OCT_OK);
    oct_calibration_finish(&cal);
}

static void make_pipeline(struct run *r, const char *backend)
{
    const struct oct_engine_options options = {.has_complex = true, .deadline_ms = PATIENCE_MS};
    struct oct_pipeline_setup setup = {.plan = r->plan, .ring_bscans = 8};
    struct oct_error err = {.text = ""};
    char why[256];
    setup.display = (struct oct_display){.log = true, .range = OCT_RANGE_MANUAL, .hi = 80};
    oct_stage_note_lent(OCT_STAGE_COMPLEX, setup.lends);
    if (oct_engine_select(backend, r->plan, &options, &setup.ops, &setup.engine, why, sizeof(why),
                          &err) ||
        oct_pipeline_create(&r->pipeline, &setup, &err))
        fail_msg("%s", err.text);
}

static void make_stage(struct run *r, bool cpu)
{
    struct oct_flow_settings settings;
    struct oct_stage_setup stage = {.ops = &oct_flow_cpu.run,
                                    .input = OCT_STAGE_COMPLEX,
                                    .pipeline = r->pipeline,
                                    .guaranteed = true,
                                    .settings_bytes = sizeof(settings)};
    struct oct_image_form form;
    struct oct_error err = {.text = ""};
    memset(&settings, 0, sizeof(settings));
    oct_params_set_defaults(&oct_flow_params, &settings);
    settings.enabled = true;
    settings.cpu = cpu;
    const struct oct_analysis_setup setup = {.input = oct_pipeline_form(r->pipeline),
                                             .n_bscans = V,
                                             .spacing = {NAN, NAN, NAN},
                                             .scan = {R, 1, 1},
                                             .settings = &settings,
                                             .plan = r->plan,
                                             .deadline_ms = PATIENCE_MS};
    if (oct_flow_cpu.create(&stage.analysis, &setup, &form, &err))
        fail_msg("%s", err.text);
    stage.form = &form;
    if (oct_stage_create(&r->stage, &stage, &err))
        fail_msg("%s", err.text);
}

/* All B-scans pass the engine `backend` and the twin. */
static void run_all(struct run *r, const char *backend, bool cpu)
{
    struct oct_offline_counts counts;
    struct oct_error err = {.text = ""};
    memset(r, 0, sizeof(*r));
    r->n_pairs = INFINITY;
    r->images = calloc(V / R, (size_t)M * D);
    make_plan(r);
    make_pipeline(r, backend);
    make_stage(r, cpu);
    const struct oct_offline_setup setup = {
        .pipeline = r->pipeline,
        .stages = &r->stage,
        .n_stages = 1,
        .source = {.name = "layers", .n_bscans = V, .read = read_bscan},
        .sink = {.context = r, .result = keep_result},
    };
    if (oct_offline_run(&setup, &counts, &err))
        fail_msg("%s", err.text);
    oct_stage_count(r->stage, &r->counts);
    r->complex_bytes = oct_pipeline_count(r->pipeline).complex_bytes;
    oct_stage_destroy(r->stage);
    oct_pipeline_destroy(r->pipeline);
    oct_plan_destroy(r->plan);
    assert_int_equal(r->counts.seen, V);
    assert_int_equal(r->counts.done + r->counts.skipped[OCT_STAGE_FAILED], V);
    assert_int_equal(r->n_images + r->counts.skipped[OCT_STAGE_FAILED], V / R);
    assert_int_equal(r->n_pairs, R - 1);
}

static void compare(const struct run *a, const struct run *b)
{
    assert_int_equal(a->n_images, V / R);
    assert_int_equal(b->n_images, V / R);
    size_t n_flow = 0, n_other = 0;
    for (size_t i = 0; i < (size_t)(V / R) * M * D; i++) {
        n_flow += a->images[i] > 0;
        n_other += abs(a->images[i] - b->images[i]) > 1;
    }
    assert_true(n_flow > 100);
    assert_true(n_other <= n_flow / 200); /* beside min_z */
}

#define COMPLEX_BYTES ((uint64_t)M * D * 2 * sizeof(float))

TEST(complex_values_stay_on_the_device)
{
    struct run host, device, of_cpu;
    (void)state;
    cuda_host_reset(1, MEMORY);
    run_all(&host, "cuda", true);
    assert_string_equal(host.counts.running, "cpu");
    assert_int_equal(host.complex_bytes, V * COMPLEX_BYTES);
    cuda_host_reset(1, MEMORY);
    const size_t before = cuda_host_bytes_down();
    run_all(&device, "cuda", false);
    assert_string_equal(device.counts.running, "cuda");
    assert_int_equal(device.complex_bytes, 0);
    /* pictures, and a picture a place with its numbers */
    assert_true(cuda_host_bytes_down() - before < COMPLEX_BYTES * V / 3);
    assert_int_equal(cuda_host_bytes_in_use(), 0);
    compare(&host, &device);
    run_all(&of_cpu, "cpu", false); /* the twin uploads what lies on the host */
    assert_string_equal(of_cpu.counts.running, "cuda");
    assert_int_equal(of_cpu.complex_bytes, V * COMPLEX_BYTES);
    compare(&host, &of_cpu);
    free(host.images);
    free(device.images);
    free(of_cpu.images);
}

/* Wherever flow's own GPU fails: of what it had of a place nothing is told but that it is lost; a
 * place of which it had nothing is the CPU's. */
TEST(a_place_that_a_gpu_had_is_lost_aloud)
{
    struct run r;
    unsigned n_lost = 0, n_whole = 0;
    (void)state;
    cuda_host_reset(1, MEMORY);
    run_all(&r, "cpu", false);
    free(r.images);
    const unsigned n_all = cuda_host_n_operations();
    for (unsigned n = n_all; n > 20; n -= n > n_all / 2 ? 9 : 20) {
        cuda_host_reset(1, MEMORY);
        cuda_host_set_fault(CUDA_HOST_WORK_FAILS, n);
        run_all(&r, "cpu", false);
        assert_string_equal(r.counts.running, "cpu");
        n_lost += r.n_images == V / R - 1;
        n_whole += r.n_images == V / R;
        if (r.n_images < V / R)
            assert_non_null(strstr(r.counts.failure.text, "GPU has failed with B-scans of place"));
        free(r.images);
    }
    print_message("# of %u faults a place was lost in %u\n", n_lost + n_whole, n_lost);
    assert_true(n_lost > 0 && n_whole > 0);
}

/* With two GPUs each has some B-scans: they come by the host. */
TEST(several_gpus_lend_nothing_on_a_device)
{
    struct oct_engine_options options = {
        .gpus = "0,1", .has_complex = true, .deadline_ms = PATIENCE_MS};
    struct oct_engine *engine;
    struct run r = {.plan = NULL};
    (void)state;
    cuda_host_reset(2, MEMORY);
    make_plan(&r);
    assert_int_equal(oct_engine_cuda.create(&engine, r.plan, &options, NULL), OCT_OK);
    assert_int_equal(oct_engine_cuda.gpu(engine), -1);
    oct_engine_cuda.destroy(engine);
    options.gpus = "1";
    assert_int_equal(oct_engine_cuda.create(&engine, r.plan, &options, NULL), OCT_OK);
    assert_int_equal(oct_engine_cuda.gpu(engine), 1);
    oct_engine_cuda.destroy(engine);
    oct_plan_destroy(r.plan);
}
