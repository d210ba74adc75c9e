/* Percentiles of a batch: blocks that count several rounds find what one B-scan alone has. */
#include "kernels/engines.h"
#include "test/cuda_host/cuda_host.h"
#include "test/rig/engine_rig.h"
#include "test/rig/engine_scene.h"
#include "test/rig/tap.h"

#include <stdlib.h>

enum { BATCH = 5 };

static void check_batch(uint32_t n_lines)
{
    const struct oct_scene_recipe recipe = {
        .name = "rounds", .n_samples = 300, .n_lines = n_lines, .crop_last = 500};
    const struct oct_display display = {
        .log = true, .range = OCT_RANGE_PERCENTILE, .percentile_lo = 30, .percentile_hi = 99.8};
    const struct oct_engine_options options = {
        .cuda = "fused", .max_batch = BATCH, .n_streams = 1, .deadline_ms = 120000};
    struct oct_scene scene;
    struct oct_rig rig;
    struct oct_slot alone, slots[BATCH];
    struct oct_engine_job jobs[BATCH];
    assert_true(oct_scene_create(&scene, &recipe, 3));
    assert_true(oct_rig_open(&rig, &oct_engine_cuda, &options, &scene, OCT_SAMPLE_U8));
    const struct oct_raw_frame in = oct_rig_input(&scene);
    oct_slot_open(&alone, &rig);
    oct_rig_run(&rig, &scene, &display, &alone);
    for (int i = 0; i < BATCH; i++) {
        oct_slot_open(&slots[i], &rig);
        jobs[i] = (struct oct_engine_job){.in = &in, .out = &slots[i].frame, .display = display};
    }
    assert_int_equal(rig.ops->submit(rig.engine, jobs, BATCH), OCT_OK);
    for (int i = 0; i < BATCH; i++) {
        assert_ptr_equal(oct_rig_collect(&rig), &slots[i].frame);
        assert_true(slots[i].frame.lo == alone.frame.lo && slots[i].frame.hi == alone.frame.hi);
        assert_memory_equal(slots[i].memory, alone.memory, alone.bytes);
        oct_slot_close(&slots[i]);
    }
    oct_slot_close(&alone);
    oct_rig_close(&rig);
    oct_scene_finish(&scene);
}

/* 10,020 values, two rounds of a block; 35,070, a block and a bit. */
TEST(blocks_of_several_rounds_count_all)
{
    cuda_host_reset(1, (size_t)2 << 30);
    check_batch(20);
    check_batch(70);
}
