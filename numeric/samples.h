/* Samples of A-lines in the forms in which cameras have them, and the way to and from u16. Pure;
 * any thread. */
#ifndef OCT_NUMERIC_SAMPLES_H
#define OCT_NUMERIC_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* As the header of line blocks says (docs/camera-drivers.md). A frame's 0 is u16, too.
 *
 * 12 bits packed is GenICam's Mono12p: two samples in three bytes,
 *     sample 0 = byte0 | (byte1 & 15) << 8,   sample 1 = byte1 >> 4 | byte2 << 4.
 * A line begins with a byte of its own, so that N is even. */
enum oct_lines_format { OCT_LINES_U8 = 1, OCT_LINES_U16 = 2, OCT_LINES_12P = 3 };

static inline unsigned oct_samples_bits(unsigned format)
{
    return format == OCT_LINES_U8 ? 8 : format == OCT_LINES_12P ? 12 : 16;
}

/* "u8", "u16" or "mono12p". */
static inline const char *oct_samples_name(unsigned format)
{
    return format == OCT_LINES_U8 ? "u8" : format == OCT_LINES_12P ? "mono12p" : "u16";
}

/* 0: none of this name. */
static inline uint16_t oct_samples_named(const char *name)
{
    for (uint16_t format = OCT_LINES_U8; format <= OCT_LINES_12P; format++)
        if (strcmp(name, oct_samples_name(format)) == 0)
            return format;
    return 0;
}

/* Whether lines of n samples are whole bytes. */
static inline bool oct_samples_fit(unsigned format, uint64_t n)
{
    return format != OCT_LINES_12P || n % 2 == 0;
}

/* Bytes of n samples that fit; n below 2^60. */
static inline uint64_t oct_samples_bytes(unsigned format, uint64_t n)
{
    return n * oct_samples_bits(format) / 8;
}

/* n samples that fit, at any address, as u16. */
void oct_samples_unpack(uint16_t *to, const void *from, size_t n, unsigned format);

/* The way back. Returns how many samples are beyond the format's bits, of which only the low bits
 * are kept. `to` may be `from`. */
size_t oct_samples_pack(void *to, const uint16_t *from, size_t n, unsigned format);

#endif
