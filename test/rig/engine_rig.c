#include "test/rig/engine_rig.h"

#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 256
#define PATTERN 0xa5
#define MINUTE_US 60000000u

bool oct_rig_open(struct oct_rig *rig, const struct oct_engine_ops *ops,
                  const struct oct_engine_options *options, const struct oct_scene *scene,
                  enum oct_sample_type sample_type)
{
    struct oct_error err = {.text = ""};
    *rig = (struct oct_rig){.ops = ops};
    if (oct_scene_plan(scene, sample_type, &rig->plan, &err))
        fail_msg("no plan: %s", err.text);
    struct oct_engine_options with_complex = *options;
    with_complex.has_complex = true;
    enum oct_err e = ops->create(&rig->engine, rig->plan, &with_complex, &err);
    if (e == OCT_OK) {
        assert_non_null(rig->engine);
        return true;
    }
    assert_null(rig->engine);
    bool lacks_simd = e == OCT_E_CONFIG && strstr(err.text, "CPU") != NULL;
    if (!lacks_simd && e != OCT_E_BACKEND)
        fail_msg("engine %s, simd %s: %s", ops->name, options->simd, err.text);
    printf("# %s %s: %s\n", ops->name, options->simd ? options->simd : "", err.text);
    oct_plan_destroy(rig->plan);
    rig->plan = NULL;
    return false;
}

void oct_rig_close(struct oct_rig *rig)
{
    rig->ops->destroy(rig->engine);
    oct_plan_destroy(rig->plan);
    *rig = (struct oct_rig){.ops = rig->ops};
}

static uint8_t *alloc_guarded(size_t bytes)
{
    uint8_t *memory = aligned_alloc(4096, (bytes + GUARD_BYTES + 4095) / 4096 * 4096);
    assert_non_null(memory);
    return memory;
}

void oct_slot_open(struct oct_slot *slot, const struct oct_rig *rig)
{
    const struct oct_geometry *g = &rig->plan->geometry;
    *slot = (struct oct_slot){.bytes = oct_geometry_image_bytes(g),
                              .values_bytes = (size_t)g->n_lines * g->depth * sizeof(float)};
    slot->complex_bytes = 2 * slot->values_bytes;
    slot->memory = alloc_guarded(slot->bytes);
    slot->values_memory = alloc_guarded(slot->values_bytes);
    slot->complex_memory = alloc_guarded(slot->complex_bytes);
    slot->frame.pixels = slot->memory;
    slot->frame.values_room = (float *)(void *)slot->values_memory;
    slot->frame.complex_room = (float *)(void *)slot->complex_memory;
    oct_slot_refill(slot);
}

void oct_slot_refill(struct oct_slot *slot)
{
    memset(slot->memory, PATTERN, slot->bytes + GUARD_BYTES);
    memset(slot->values_memory, PATTERN, slot->values_bytes + GUARD_BYTES);
    memset(slot->complex_memory, PATTERN, slot->complex_bytes + GUARD_BYTES);
    slot->frame.status = OCT_E_STATE;
    slot->frame.lo = slot->frame.hi = NAN;
    slot->frame.values = slot->frame.complex_values = NULL;
}

void oct_slot_ask_values(struct oct_slot *slot)
{
    slot->frame.values = slot->frame.values_room;
}

void oct_slot_ask_complex(struct oct_slot *slot)
{
    slot->frame.complex_values = slot->frame.complex_room;
}

static void check_untouched(const uint8_t *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != PATTERN)
            fail_msg("byte %zu was written, which is not the engine's", i);
}

void oct_slot_check(const struct oct_slot *slot)
{
    const size_t values = slot->frame.values ? slot->values_bytes : 0;
    const size_t in_complex = slot->frame.complex_values ? slot->complex_bytes : 0;
    check_untouched(slot->memory + slot->bytes, GUARD_BYTES);
    check_untouched(slot->values_memory + values, slot->values_bytes - values + GUARD_BYTES);
    check_untouched(slot->complex_memory + in_complex,
                    slot->complex_bytes - in_complex + GUARD_BYTES);
}

void oct_slot_close(struct oct_slot *slot)
{
    free(slot->memory);
    free(slot->values_memory);
    free(slot->complex_memory);
    *slot = (struct oct_slot){.bytes = 0};
}

struct oct_raw_frame oct_rig_input(const struct oct_scene *scene)
{
    struct oct_raw_frame in = {.spectra = scene->spectra, .line_valid = scene->line_valid};
    for (uint32_t j = 0; j < scene->recipe.n_lines; j++)
        in.info.missing_lines += !scene->line_valid[j];
    return in;
}

struct oct_image_frame *oct_rig_collect(struct oct_rig *rig)
{
    struct oct_image_frame *done = NULL;
    assert_int_equal(rig->ops->collect(rig->engine, MINUTE_US, &done), OCT_OK);
    assert_non_null(done);
    assert_int_equal(done->status, OCT_OK);
    assert_false(isnan(done->lo) || isnan(done->hi));
    return done;
}

static void run_one(struct oct_rig *rig, const struct oct_scene *scene,
                    const struct oct_display *display, struct oct_slot *slot)
{
    struct oct_raw_frame in = oct_rig_input(scene);
    slot->frame.info.missing_lines = in.info.missing_lines;
    in.info = slot->frame.info;
    struct oct_engine_job job = {
        .in = &in, .out = &slot->frame, .display = *display, .dc = scene->dc};
    assert_int_equal(rig->ops->submit(rig->engine, &job, 1), OCT_OK);
    memset(&job, 0xff, sizeof(job)); /* the array itself is copied by submit */
    assert_ptr_equal(oct_rig_collect(rig), &slot->frame);
    assert_ptr_equal(slot->frame.pixels, slot->memory);
    assert_memory_equal(&slot->frame.info, &in.info, sizeof(in.info));
    oct_slot_check(slot);
}

void oct_rig_run(struct oct_rig *rig, const struct oct_scene *scene,
                 const struct oct_display *display, struct oct_slot *slot)
{
    oct_slot_refill(slot);
    run_one(rig, scene, display, slot);
}

void oct_rig_run_for_values(struct oct_rig *rig, const struct oct_scene *scene,
                            const struct oct_display *display, struct oct_slot *slot)
{
    oct_slot_refill(slot);
    oct_slot_ask_values(slot);
    oct_slot_ask_complex(slot);
    run_one(rig, scene, display, slot);
}
