/* NIfTI-1 and -2 files (.nii, .nii.gz) of one volume. Private to this room.
 *
 * The header is read and checked here and the samples come through zlib, not through libnifti's
 * nifti_image_read: that allocates what a header claims before it looks at the file, prints to
 * stderr, opens what the name suggests instead of what the bytes are, goes on with zeros where a
 * file ends early, and turns NaN, our missing A-lines, into 0. What computes and opens nothing is
 * libnifti's: structs, orders of bytes, quaternions, names of types. */
#ifndef OCT_FORMATS_NIFTI_READ_H
#define OCT_FORMATS_NIFTI_READ_H

#include "formats/input/sample.h"
#include "formats/volumes.h"

#include <stddef.h>

#define OCT_NIFTI_START_BYTES 8u

struct oct_nifti_facts {
    struct oct_volume_info volume;
    struct oct_sample_kind sample;
    uint64_t first_byte; /* of the samples, unpacked */
    double slope, inter; /* value = slope * sample + inter */
};

/* Whether a file that begins so is one of NIfTI, of Analyze, or is packed by gzip. */
bool oct_nifti_begins(const unsigned char start[OCT_NIFTI_START_BYTES]);

/* OCT_E_IO; OCT_E_FORMAT: no NIfTI, a pair of .hdr and .img, samples of colours or complex numbers,
 * not three axes, damaged, or shorter than its header claims. What a packed file holds is known
 * when it is loaded; before, it must be as large as the best packing would make it. */
enum oct_err oct_nifti_look(const char *path, struct oct_nifti_facts *facts, struct oct_error *err);

/* values: [V][M][D]. OCT_E_FORMAT also: another volume than facts says. */
enum oct_err oct_nifti_load(const char *path, const struct oct_nifti_facts *facts, float *values,
                            struct oct_error *err);

#endif
