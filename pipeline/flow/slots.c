#include "pipeline/flow/slots.h"

#include <string.h>

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

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

size_t oct_image_slot_bytes(const struct oct_geometry *g)
{
    return PAGE + oct_geometry_image_bytes(g);
}

size_t oct_image_lent_bytes(const struct oct_image_form *form, enum oct_lent what)
{
    const bool is_f32 = form->type == OCT_SAMPLE_F32;
    const size_t values = oct_image_form_bytes(form) * (is_f32 ? 1 : sizeof(float));
    return what != OCT_LENT_VALUES ? 2 * values : is_f32 ? 0 : values;
}

size_t oct_image_slot_bytes_of(const struct oct_image_form *form, const bool *lends)
{
    size_t bytes = PAGE + whole_pages(oct_image_form_bytes(form));
    for (int what = 0; lends && what < OCT_N_LENT; what++)
        bytes += lends[what] ? whole_pages(oct_image_lent_bytes(form, (enum oct_lent)what)) : 0;
    return bytes + whole_pages(form->n_beside * sizeof(float));
}

struct oct_raw_frame *oct_raw_slot(struct oct_ring *ring, uint64_t slot,
                                   const struct oct_geometry *g)
{
    unsigned char *payload = oct_ring_payload(ring, slot);
    struct oct_raw_frame *frame = (struct oct_raw_frame *)(void *)payload;
    uint8_t *line_valid = payload + sizeof(*frame);
    if (frame->line_valid !=
        line_valid) { /* only in the writer's first call: readers must not write */
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
    if (!frame->pixels) /* only in the writer's first call: readers must not write */
        frame->pixels = payload + PAGE;
    return frame;
}

const struct oct_raw_frame *oct_raw_held(const struct oct_ring_reader *reader)
{
    return oct_ring_held(reader);
}

const struct oct_image_frame *oct_image_held(const struct oct_ring_reader *reader)
{
    return oct_ring_held(reader);
}

struct oct_image_frame *oct_image_slot_begin(struct oct_ring *ring, uint64_t slot,
                                             const struct oct_image_form *form, const bool *lends)
{
    struct oct_image_frame *frame = oct_image_slot(ring, slot);
    unsigned char *own = oct_ring_payload(ring, slot);
    float **rooms[OCT_N_LENT] = {&frame->values_room, &frame->complex_room, &frame->device_room};
    frame->form = form;
    memcpy(frame->dims, form->dims, sizeof(frame->dims));
    frame->whole = true;
    frame->status = OCT_OK;
    frame->values = frame->complex_values = frame->complex_device = NULL;
    own += PAGE + whole_pages(oct_image_form_bytes(form));
    for (int what = 0; lends && what < OCT_N_LENT; what++) {
        const size_t bytes = lends[what] ? oct_image_lent_bytes(form, (enum oct_lent)what) : 0;
        if (bytes && !*rooms[what])
            *rooms[what] = (float *)(void *)own;
        own += whole_pages(bytes);
    }
    if (form->n_beside)
        frame->values = (float *)(void *)own;
    return frame;
}
