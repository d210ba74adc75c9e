/* An engine on a bench: plan, engine and guarded output slots for the engine tests. Functions that
 * cannot go on fail the running cmocka test. */
#ifndef OCT_TEST_RIG_ENGINE_RIG_H
#define OCT_TEST_RIG_ENGINE_RIG_H

#include "pipeline/flow/engine.h"
#include "test/rig/engine_scene.h"

struct oct_rig {
    const struct oct_engine_ops *ops;
    struct oct_plan *plan;
    struct oct_engine *engine;
};

/* One output picture with guard bytes behind it, and rooms for what is lent with the same. */
struct oct_slot {
    struct oct_image_frame frame;
    uint8_t *memory, *values_memory, *complex_memory;
    size_t bytes, values_bytes, complex_bytes;
};

/* The engine may be asked for complex values. False when this machine cannot run the engine or
 * the instruction set asked for (the reason is printed as a TAP comment); any other failure fails
 * the test. */
bool oct_rig_open(struct oct_rig *rig, const struct oct_engine_ops *ops,
                  const struct oct_engine_options *options, const struct oct_scene *scene,
                  enum oct_sample_type sample_type);
void oct_rig_close(struct oct_rig *rig);

/* The slot's picture and values are filled with a pattern, status and limits with values that no
 * engine writes, so that what an engine leaves unwritten shows. Nobody asks for values then. */
void oct_slot_open(struct oct_slot *slot, const struct oct_rig *rig);
void oct_slot_refill(struct oct_slot *slot);
/* Call after refill: the next job of this slot asks for values, or complex ones. */
void oct_slot_ask_values(struct oct_slot *slot);
void oct_slot_ask_complex(struct oct_slot *slot);
/* Fails the test when something was written behind the picture or its values, or into a room though
 * nobody asked. */
void oct_slot_check(const struct oct_slot *slot);
void oct_slot_close(struct oct_slot *slot);

/* Makes the scene a slot of the raw ring, which points into the scene. */
struct oct_raw_frame oct_rig_input(const struct oct_scene *scene);

/* Submits one job and waits for it; checks status, order and guards. info is the slot's. */
void oct_rig_run(struct oct_rig *rig, const struct oct_scene *scene,
                 const struct oct_display *display, struct oct_slot *slot);
/* The same, and asks for values and complex ones. */
void oct_rig_run_for_values(struct oct_rig *rig, const struct oct_scene *scene,
                            const struct oct_display *display, struct oct_slot *slot);

/* Collects the next job within a minute; fails the test if none comes or it is not done well. */
struct oct_image_frame *oct_rig_collect(struct oct_rig *rig);

#endif
