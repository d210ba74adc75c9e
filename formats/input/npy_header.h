/* The header of an array of numpy, .npy of version 1, 2 and 3:
 *
 *     "\x93NUMPY", u8 major, u8 minor, u16 (major 1) or u32 length, little-endian, and then
 *     {'descr': '<u2', 'fortran_order': False, 'shape': (20, 480, 640), }
 *
 * (numpy.lib.format). Any thread. */
#ifndef OCT_FORMATS_INPUT_NPY_HEADER_H
#define OCT_FORMATS_INPUT_NPY_HEADER_H

#include "formats/input/sample.h"
#include "pipeline/base/err.h"

#include <stddef.h>
#include <stdint.h>

#define OCT_NPY_MAGIC_BYTES 6u
#define OCT_NPY_MOST_AXES 8u
#define OCT_NPY_MADE_BYTES 128u /* a multiple of 64, as the format wants */

extern const unsigned char oct_npy_magic[OCT_NPY_MAGIC_BYTES];

struct oct_npy_header {
    uint64_t first_byte;           /* of the values */
    char type[24];                 /* as it is written, for messages */
    struct oct_sample_kind sample; /* kind 0: no plain numbers of 1, 2, 4 or 8 bytes */
    bool is_fortran;               /* the first axis is the fastest */
    unsigned n_axes;
    uint64_t dims[OCT_NPY_MOST_AXES]; /* not compared with anything */
};

/* fd: the file, whose first bytes are the magic ones. OCT_E_FORMAT: damaged, or of a newer version;
 * OCT_E_IO. */
enum oct_err oct_npy_header_read(struct oct_npy_header *header, int fd, const char *name,
                                 struct oct_error *err);

/* The header of an array [n][height][width] in C order; type: "|u1", "<u2", "<f4". */
void oct_npy_header_make(char header[OCT_NPY_MADE_BYTES], const char *type, uint64_t n,
                         uint32_t height, uint32_t width);

#endif
