/* How a frame lies in a ring slot: one header page (or more, for very many lines), then the samples
 * or pixels, page-aligned, so that a GPU copies and a disk writes them in place. */
#ifndef OCT_PIPELINE_FLOW_SLOTS_H
#define OCT_PIPELINE_FLOW_SLOTS_H

#include "pipeline/flow/frame.h"
#include "pipeline/flow/ring.h"
#include "pipeline/plan/geometry.h"

size_t oct_raw_slot_bytes(const struct oct_geometry *g);
size_t oct_image_slot_bytes(const struct oct_geometry *g);

/* The frame in a slot, its pointers set. Contents are whatever the slot held. The writer calls this
 * before anybody else does; then several readers may at the same time. */
struct oct_raw_frame *oct_raw_slot(struct oct_ring *ring, uint64_t slot,
                                   const struct oct_geometry *g);
/* The slot's own memory for spectra, which its frame may have left for other. */
uint16_t *oct_raw_slot_spectra(struct oct_ring *ring, uint64_t slot, const struct oct_geometry *g);
struct oct_image_frame *oct_image_slot(struct oct_ring *ring, uint64_t slot);

#endif
