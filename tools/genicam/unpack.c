#include "tools/genicam/unpack.h"

#include <string.h>

struct format {
    enum oct_pixel_format format;
    uint32_t pfnc;
    const char *name;
    unsigned bits, stored_bits;
};

static const struct format formats[] = {
    {OCT_PIXEL_MONO8, 0x01080001, "Mono8", 8, 8},
    {OCT_PIXEL_MONO10, 0x01100003, "Mono10", 10, 16},
    {OCT_PIXEL_MONO12, 0x01100005, "Mono12", 12, 16},
    {OCT_PIXEL_MONO14, 0x01100025, "Mono14", 14, 16},
    {OCT_PIXEL_MONO16, 0x01100007, "Mono16", 16, 16},
    {OCT_PIXEL_MONO12P, 0x010c0047, "Mono12p", 12, 12},
    {OCT_PIXEL_MONO12_PACKED, 0x010c0006, "Mono12Packed", 12, 12},
};
#define N_FORMATS (sizeof(formats) / sizeof(*formats))

enum oct_pixel_format oct_pixel_format_of(uint32_t pfnc)
{
    for (size_t i = 0; i < N_FORMATS; i++)
        if (formats[i].pfnc == pfnc)
            return formats[i].format;
    return OCT_PIXEL_NONE;
}

static const struct format *row_of(enum oct_pixel_format format)
{
    static const struct format none = {.name = "none"};
    for (size_t i = 0; i < N_FORMATS; i++)
        if (formats[i].format == format)
            return &formats[i];
    return &none;
}

const char *oct_pixel_format_name(enum oct_pixel_format format)
{
    return row_of(format)->name;
}

unsigned oct_pixel_format_bits(enum oct_pixel_format format)
{
    return row_of(format)->bits;
}

static uint64_t row_bytes(enum oct_pixel_format format, uint32_t n_samples, uint32_t row_padding)
{
    return ((uint64_t)n_samples * row_of(format)->stored_bits + 7) / 8 + row_padding;
}

size_t oct_pixel_bytes(enum oct_pixel_format format, uint32_t n_lines, uint32_t n_samples,
                       uint32_t row_padding)
{
    const uint64_t row = row_bytes(format, n_samples, row_padding);
    const uint64_t most = SIZE_MAX / 2;
    const uint64_t samples = (uint64_t)n_lines * n_samples;
    if (n_lines > 0 && (row > most / n_lines || samples > most / 16))
        return 0;
    return (size_t)(row_padding ? row * n_lines : (samples * row_of(format)->stored_bits + 7) / 8);
}

static void unpack_12p(const uint8_t *bytes, uint64_t at, uint32_t n, uint16_t *samples)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *b = bytes + (at + i) / 2 * 3;
        samples[i] =
            (at + i) % 2 ? (uint16_t)(b[1] >> 4 | b[2] << 4) : (uint16_t)(b[0] | (b[1] & 15) << 8);
    }
}

static void unpack_12_packed(const uint8_t *bytes, uint64_t at, uint32_t n, uint16_t *samples)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *b = bytes + (at + i) / 2 * 3;
        samples[i] =
            (at + i) % 2 ? (uint16_t)(b[2] << 4 | b[1] >> 4) : (uint16_t)(b[0] << 4 | (b[1] & 15));
    }
}

/* n samples from sample `at` on of pixels that begin at `bytes`. */
static void unpack_run(enum oct_pixel_format format, const uint8_t *bytes, uint64_t at, uint32_t n,
                       uint16_t *samples)
{
    if (format == OCT_PIXEL_MONO12P)
        unpack_12p(bytes, at, n, samples);
    else if (format == OCT_PIXEL_MONO12_PACKED)
        unpack_12_packed(bytes, at, n, samples);
    else
        for (uint32_t i = 0; i < n; i++)
            samples[i] = (uint16_t)(bytes[2 * (at + i)] | bytes[2 * (at + i) + 1] << 8);
}

enum oct_lines_format oct_pixel_lines_format(enum oct_pixel_format format, uint32_t n_samples)
{
    return format == OCT_PIXEL_MONO8                           ? OCT_LINES_U8
           : format == OCT_PIXEL_MONO12P && n_samples % 2 == 0 ? OCT_LINES_12P
                                                               : OCT_LINES_U16;
}

void oct_pixel_lines(enum oct_pixel_format format, const uint8_t *bytes, uint32_t first, uint32_t n,
                     uint32_t n_samples, uint32_t row_padding, void *lines)
{
    const uint64_t row = row_bytes(format, n_samples, row_padding);
    const enum oct_lines_format sent = oct_pixel_lines_format(format, n_samples);
    const size_t line_bytes = (size_t)oct_samples_bytes(sent, n_samples);
    for (uint32_t j = 0; j < n; j++) {
        const uint64_t line = (uint64_t)first + j;
        unsigned char *to = (unsigned char *)lines + j * line_bytes;
        if (sent != OCT_LINES_U16)
            memcpy(to, bytes + line * row, line_bytes);
        else if (row_padding)
            unpack_run(format, bytes + line * row, 0, n_samples, (uint16_t *)(void *)to);
        else
            unpack_run(format, bytes, line * n_samples, n_samples, (uint16_t *)(void *)to);
    }
}
