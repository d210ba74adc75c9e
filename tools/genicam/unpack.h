/* Pixels of GenICam cameras (PFNC, the GenICam Pixel Format Naming Convention) as lines. Pure
 * functions; any thread.
 *
 *     Mono8                     a byte a sample
 *     Mono10, 12, 14, 16        two bytes a sample, little-endian
 *     Mono12p                   three bytes a pair: a = b0 | (b1 & 15) << 8, b = b1 >> 4 | b2 << 4
 *     Mono12Packed              GigE Vision's: a = b0 << 4 | (b1 & 15), b = b2 << 4 | b1 >> 4 */
#ifndef OCT_TOOLS_GENICAM_UNPACK_H
#define OCT_TOOLS_GENICAM_UNPACK_H

#include "numeric/samples.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oct_pixel_format {
    OCT_PIXEL_NONE, /* of no kind that is known */
    OCT_PIXEL_MONO8,
    OCT_PIXEL_MONO10,
    OCT_PIXEL_MONO12,
    OCT_PIXEL_MONO14,
    OCT_PIXEL_MONO16,
    OCT_PIXEL_MONO12P,
    OCT_PIXEL_MONO12_PACKED,
};

/* By PFNC's number. */
enum oct_pixel_format oct_pixel_format_of(uint32_t pfnc);
const char *oct_pixel_format_name(enum oct_pixel_format format);
unsigned oct_pixel_format_bits(enum oct_pixel_format format); /* that count, of a sample */

/* Bytes of n_lines rows of n_samples, each followed by row_padding bytes. Packed pixels run on from
 * row to row where there is no padding, else a row begins with a byte of its own. 0: more than
 * SIZE_MAX / 2. */
size_t oct_pixel_bytes(enum oct_pixel_format format, uint32_t n_lines, uint32_t n_samples,
                       uint32_t row_padding);

/* How octd gets them: as they are where it knows them, Mono8 and, of an even width, Mono12p; else
 * as u16. */
enum oct_lines_format oct_pixel_lines_format(enum oct_pixel_format format, uint32_t n_samples);

/* Rows first .. first + n - 1 of a frame of width n_samples as lines of that format. bytes holds at
 * least oct_pixel_bytes(format, first + n, n_samples, row_padding). */
void oct_pixel_lines(enum oct_pixel_format format, const uint8_t *bytes, uint32_t first, uint32_t n,
                     uint32_t n_samples, uint32_t row_padding, void *lines);

#endif
