#include "pipeline/flow/frame.h"

const uint16_t *oct_raw_line(const struct oct_raw_frame *frame, const struct oct_geometry *g,
                             uint32_t j, uint32_t first, uint32_t n, uint16_t *room)
{
    if (oct_samples_bits(frame->format) == 16)
        return frame->spectra + (size_t)j * g->n_samples + first;
    const uint8_t *line = (const uint8_t *)oct_raw_at(frame, g, j);
    oct_samples_unpack(room, line + oct_samples_bytes(frame->format, first), n, frame->format);
    return room;
}
