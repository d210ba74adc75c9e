/* Lines in: the 64-byte header (contract section 5). Part of the camera driver's client library, so
 * nothing but err.c may be needed here. */
#include "pipeline/wire/wire.h"

#include <string.h>

const char *const oct_bad_names[OCT_N_BAD] = {
    [OCT_BAD_NONE] = "none",
    [OCT_BAD_PARTS] = "parts",
    [OCT_BAD_HEADER_SIZE] = "header_size",
    [OCT_BAD_MAGIC] = "magic",
    [OCT_BAD_VERSION] = "version",
    [OCT_BAD_RESERVED] = "reserved",
    [OCT_BAD_FORMAT] = "format",
    [OCT_BAD_SAMPLES] = "samples",
    [OCT_BAD_LINES] = "lines",
    [OCT_BAD_PAYLOAD_SIZE] = "payload_size",
    [OCT_BAD_CRC] = "crc",
    [OCT_BAD_EPOCH] = "epoch",
    [OCT_BAD_SLOT] = "slot",
    [OCT_BAD_SCAN] = "scan",
};

static const char magic[4] = {'O', 'C', 'T', 'L'};

/* Byte offsets of the fields. */
enum {
    AT_VERSION = 4,
    AT_HEADER_BYTES = 6,
    AT_SEQUENCE = 8,
    AT_TIME_NS = 16,
    AT_FIRST_LINE = 24,
    AT_N_LINES = 32,
    AT_N_SAMPLES = 36,
    AT_FORMAT = 40,
    AT_FLAGS = 42,
    AT_EPOCH = 44,
    AT_CRC32C = 48,
    AT_RESERVED = 52,
};

static void put_number(uint8_t *bytes, uint64_t value, unsigned n_bytes)
{
    for (unsigned i = 0; i < n_bytes; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t take(const uint8_t *bytes, unsigned n_bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n_bytes; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

void oct_lines_encode(const struct oct_lines_header *header, uint8_t bytes[OCT_LINES_HEADER_BYTES])
{
    memset(bytes, 0, OCT_LINES_HEADER_BYTES);
    memcpy(bytes, magic, sizeof(magic));
    put_number(bytes + AT_VERSION, OCT_LINES_VERSION, 2);
    put_number(bytes + AT_HEADER_BYTES, OCT_LINES_HEADER_BYTES, 2);
    put_number(bytes + AT_SEQUENCE, header->sequence, 8);
    put_number(bytes + AT_TIME_NS, header->time_ns, 8);
    put_number(bytes + AT_FIRST_LINE, header->first_line, 8);
    put_number(bytes + AT_N_LINES, header->n_lines, 4);
    put_number(bytes + AT_N_SAMPLES, header->n_samples, 4);
    put_number(bytes + AT_FORMAT, header->format, 2);
    put_number(bytes + AT_FLAGS, header->flags, 2);
    put_number(bytes + AT_EPOCH, header->epoch, 4);
    put_number(bytes + AT_CRC32C, header->crc32c, 4);
}

static enum oct_bad check_header(const struct oct_lines_header *header)
{
    if (header->flags & ~OCT_LINES_ALL_FLAGS)
        return OCT_BAD_RESERVED;
    if (header->format < OCT_LINES_U8 || header->format > OCT_LINES_12P)
        return OCT_BAD_FORMAT;
    if (header->n_samples == 0 || header->n_samples > OCT_MAX_SAMPLES)
        return OCT_BAD_SAMPLES;
    if (header->n_lines == 0 && (header->flags & ~OCT_LINES_FOLLOWS) == 0)
        return OCT_BAD_LINES;
    if (header->first_line > UINT64_MAX - header->n_lines)
        return OCT_BAD_LINES;
    return OCT_BAD_NONE;
}

enum oct_bad oct_lines_decode(struct oct_lines_header *header, const void *bytes, size_t n_bytes)
{
    const uint8_t *in = bytes;
    *header = (struct oct_lines_header){0};
    if (n_bytes != OCT_LINES_HEADER_BYTES)
        return OCT_BAD_HEADER_SIZE;
    if (memcmp(in, magic, sizeof(magic)) != 0)
        return OCT_BAD_MAGIC;
    if (take(in + AT_VERSION, 2) != OCT_LINES_VERSION)
        return OCT_BAD_VERSION;
    if (take(in + AT_HEADER_BYTES, 2) != OCT_LINES_HEADER_BYTES)
        return OCT_BAD_HEADER_SIZE;
    for (unsigned i = AT_RESERVED; i < OCT_LINES_HEADER_BYTES; i++)
        if (in[i] != 0)
            return OCT_BAD_RESERVED;
    header->sequence = take(in + AT_SEQUENCE, 8);
    header->time_ns = take(in + AT_TIME_NS, 8);
    header->first_line = take(in + AT_FIRST_LINE, 8);
    header->n_lines = (uint32_t)take(in + AT_N_LINES, 4);
    header->n_samples = (uint32_t)take(in + AT_N_SAMPLES, 4);
    header->format = (uint16_t)take(in + AT_FORMAT, 2);
    header->flags = (uint16_t)take(in + AT_FLAGS, 2);
    header->epoch = (uint32_t)take(in + AT_EPOCH, 4);
    header->crc32c = (uint32_t)take(in + AT_CRC32C, 4);
    return check_header(header);
}

uint64_t oct_lines_payload_bytes(const struct oct_lines_header *header)
{
    /* n_samples is at most 2^17 once decoded; without that check (2^32 - 1)^2 samples still can be
     * counted, but not their bits: so the result saturates. */
    uint64_t samples = (uint64_t)header->n_lines * header->n_samples;
    return samples > UINT64_MAX / 16 ? UINT64_MAX : oct_samples_bytes(header->format, samples);
}
