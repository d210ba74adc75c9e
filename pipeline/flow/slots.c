#include "pipeline/flow/slots.h"

#define PAGE 4096u

/* The frame's struct and the mask of M lines, rounded up to whole pages. */
static size_t raw_header_bytes(const struct oct_geometry *g)
{
    return (sizeof(struct oct_raw_frame) + g->n_lines + PAGE - 1) / PAGE * PAGE;
}

size_t oct_raw_slot_bytes(const struct oct_geometry *g)
{
    return raw_header_bytes(g) + oct_geometry_spectra_bytes(g);
}

size_t oct_image_slot_bytes(const struct oct_geometry *g)
{
    return PAGE + oct_geometry_image_bytes(g);
}

struct oct_raw_frame *oct_raw_slot(struct oct_ring *ring, uint64_t slot,
                                   const struct oct_geometry *g)
{
    unsigned char *payload = oct_ring_payload(ring, slot);
    struct oct_raw_frame *frame = (struct oct_raw_frame *)(void *)payload;
    uint8_t *line_valid = payload + sizeof(*frame);
    if (frame->line_valid != line_valid) { /* the writer's first call: readers only look */
        frame->line_valid = line_valid;
        frame->spectra = oct_raw_slot_spectra(ring, slot, g);
    }
    return frame;
}

uint16_t *oct_raw_slot_spectra(struct oct_ring *ring, uint64_t slot, const struct oct_geometry *g)
{
    unsigned char *payload = oct_ring_payload(ring, slot);
    return (uint16_t *)(void *)(payload + raw_header_bytes(g));
}

struct oct_image_frame *oct_image_slot(struct oct_ring *ring, uint64_t slot)
{
    unsigned char *payload = oct_ring_payload(ring, slot);
    struct oct_image_frame *frame = (struct oct_image_frame *)(void *)payload;
    void *pixels = frame->elsewhere ? frame->elsewhere : payload + PAGE;
    if (frame->pixels != pixels) /* the writer's first call: readers only look */
        frame->pixels = pixels;
    return frame;
}
