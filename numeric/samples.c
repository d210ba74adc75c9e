#include "numeric/samples.h"

#include "pipeline/base/wide.h"

#include <string.h>

/* The compiler's vectors: the shuffle is one instruction where the processor has it. */
typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint16_t words8 __attribute__((vector_size(16)));

OCT_WIDE static void widen(uint16_t *restrict to, const uint8_t *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

/* Eight samples are 12 bytes; 16 are read. */
OCT_WIDE static void unpack_12p(uint16_t *restrict to, const uint8_t *restrict from, size_t n)
{
    const words8 up = {16, 1, 16, 1, 16, 1, 16, 1}; /* drops what is above twelve bits */
    const uint8_t *const end = from + n / 2 * 3;
    for (; end - from >= (ptrdiff_t)sizeof(bytes16); from += 12, to += 8) {
        bytes16 bytes;
        memcpy(&bytes, from, sizeof(bytes));
        words8 pairs = (words8)__builtin_shufflevector(bytes, bytes, 0, 1, 1, 2, 3, 4, 4, 5, 6, 7,
                                                       7, 8, 9, 10, 10, 11);
        pairs = pairs * up >> 4;
        memcpy(to, &pairs, sizeof(pairs));
    }
    for (; from < end; from += 3, to += 2) {
        to[0] = (uint16_t)(from[0] | (from[1] & 15) << 8);
        to[1] = (uint16_t)(from[1] >> 4 | from[2] << 4);
    }
}

void oct_samples_unpack(uint16_t *to, const void *from, size_t n, unsigned format)
{
    if (format == OCT_LINES_U8)
        widen(to, from, n);
    else if (format == OCT_LINES_12P)
        unpack_12p(to, from, n);
    else
        memcpy(to, from, n * sizeof(*to));
}

size_t oct_samples_pack(void *to, const uint16_t *from, size_t n, unsigned format)
{
    const unsigned bits = oct_samples_bits(format);
    uint8_t *b = to;
    size_t n_beyond = 0;
    for (size_t i = 0; i < n; i++) {
        const uint16_t x = from[i];
        n_beyond += x >> bits != 0;
        if (format == OCT_LINES_U8) {
            *b++ = (uint8_t)x;
        } else if (format != OCT_LINES_12P) {
            memmove(b, &x, sizeof(x));
            b += sizeof(x);
        } else if (i % 2 == 0) {
            *b++ = (uint8_t)x;
            *b = x >> 8 & 15;
        } else {
            *b++ |= (uint8_t)(x << 4);
            *b++ = (uint8_t)(x >> 4);
        }
    }
    return n_beyond;
}
