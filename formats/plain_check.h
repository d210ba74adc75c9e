/* Whether bytes of a plain sample file look like the u16 camera samples they are taken for. It
 * looks at a few windows of the file: cheap for any size, and no proof. It refuses only what real
 * spectra cannot be; file.check_samples=no turns the check off. */
#ifndef OCT_FORMATS_PLAIN_CHECK_H
#define OCT_FORMATS_PLAIN_CHECK_H

#include "pipeline/base/err.h"

#include <stddef.h>
#include <stdint.h>

#define OCT_PLAIN_WINDOWS 8u
#define OCT_PLAIN_WINDOW_SAMPLES 16384u /* a multiple of 4, so that 8-byte numbers stay whole */

enum oct_plain_look {
    OCT_PLAIN_SAMPLES,   /* no sign of anything else */
    OCT_PLAIN_FLOAT32,   /* floats of either byte order, after a header of any length: the upper
                            half of each is an exponent's, and the lower half is noise, or the
                            numbers are whole */
    OCT_PLAIN_FLOAT64,   /* the same of 8 bytes */
    OCT_PLAIN_INTEGERS,  /* of 32 bits or more, as above: every second word is 0 or a sign */
    OCT_PLAIN_SWAPPED,   /* big-endian: neighbours lie far closer together with the bytes swapped */
    OCT_PLAIN_TOO_LARGE, /* a sample is more than 2^bits - 1 */
};

/* Judges n samples; bits is camera.bits. *at: with OCT_PLAIN_TOO_LARGE the index of the first such
 * sample, else 0. */
enum oct_plain_look oct_plain_judge(const uint16_t *samples, size_t n, unsigned bits, size_t *at);

/* Reads windows spread over payload_bytes from first_byte on and judges them. OCT_E_FORMAT: what it
 * looks like, where, and what to do; OCT_E_IO, OCT_E_NO_MEMORY. */
enum oct_err oct_plain_check(int fd, const char *path, uint64_t first_byte, uint64_t payload_bytes,
                             unsigned bits, struct oct_error *err);

#endif
