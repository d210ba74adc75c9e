/* How a frame lies in a ring slot: one header page (or more, for very many lines), then the samples
 * or pixels, page-aligned, so that a GPU copies and a disk writes them in place. */
#ifndef OCT_PIPELINE_FLOW_SLOTS_H
#define OCT_PIPELINE_FLOW_SLOTS_H

#include "pipeline/flow/frame.h"
#include "pipeline/flow/ring.h"
#include "pipeline/plan/geometry.h"

#include <stdatomic.h>

/* Where images come from: a ring of frames of one form. Publisher and recorder take such, by
 * form->name, whatever computed them. All members are borrowed. */
struct oct_image_source {
    const struct oct_image_form *form;
    struct oct_ring *ring;
    /* B-scans: slots of the image ring below this have been processed, and their results are in
     * `ring`. NULL: unknown. */
    const atomic_uint_fast64_t *dealt_below;
};

size_t oct_raw_slot_bytes(const struct oct_geometry *g);

size_t oct_image_slot_bytes(const struct oct_geometry *g);
/* The same for any form, with room for what is lent beside the pixels ([OCT_N_LENT]; NULL: nothing
 * is). The values of f32 pixels are these. */
size_t oct_image_slot_bytes_of(const struct oct_image_form *form, const bool *lends);
/* Bytes of what is lent of an image, wherever it lies; 0 where its pixels are that. */
size_t oct_image_lent_bytes(const struct oct_image_form *form, enum oct_lent what);

/* Returns the frame in a slot that the caller has acquired, or holds by a guaranteed reader, its
 * pointers set; its contents are what the slot held before. The writer calls this first; then
 * several readers may call it at the same time. */
struct oct_raw_frame *oct_raw_slot(struct oct_ring *ring, uint64_t slot,
                                   const struct oct_geometry *g);
/* The slot's own memory for spectra; the frame may point to lent memory instead. */
uint16_t *oct_raw_slot_spectra(struct oct_ring *ring, uint64_t slot, const struct oct_geometry *g);
/* Points the frame's pixels at the slot's memory, unless an engine has given it other memory. */
struct oct_image_frame *oct_image_slot(struct oct_ring *ring, uint64_t slot);
/* The frame in the slot that the reader read last and holds. */
const struct oct_raw_frame *oct_raw_held(const struct oct_ring_reader *reader);
const struct oct_image_frame *oct_image_held(const struct oct_ring_reader *reader);
/* For the writer: sets form and dims too, and the rooms that the slot has. */
struct oct_image_frame *oct_image_slot_begin(struct oct_ring *ring, uint64_t slot,
                                             const struct oct_image_form *form, const bool *lends);

#endif
