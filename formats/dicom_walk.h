/* The elements of a DICOM file (PS3.5, PS3.10) in their order, whatever they lie in. Private to
 * this room.
 *
 * The bytes are checked here, not by DCMTK: its reader calls itself for each sequence within
 * another, without a bound, and makes an object of each element before it is known how many there
 * are. What has been walked may be given to it (dicom_file.h). */
#ifndef OCT_FORMATS_DICOM_WALK_H
#define OCT_FORMATS_DICOM_WALK_H

#include "formats/picture_file.h"

#define OCT_DICOM_ITEM 0xfffee000u   /* of a sequence, or a fragment of packed pixels */
#define OCT_DICOM_SYNTAX 0x00020010u /* Transfer Syntax UID */
#define OCT_DICOM_PIXELS 0x7fe00010u
#define OCT_DICOM_VALUE_BYTES 128u

struct oct_dicom_element {
    uint32_t tag;               /* OCT_DICOM_ITEM: one of `sequence` begins */
    uint32_t sequence, outer;   /* directly around it, and around all; 0: none */
    unsigned n_around;          /* sequences around it; packed pixels count as one */
    uint64_t offset;            /* of its value in the file */
    uint32_t n_bytes;           /* UINT32_MAX: a sequence that ends with a mark, or packed pixels */
    const unsigned char *value; /* of n_bytes up to OCT_DICOM_VALUE_BYTES; else NULL. Valid until
                                   the call returns */
};

typedef enum oct_err oct_dicom_taker(void *context, const struct oct_dicom_element *element,
                                     struct oct_error *err);

/* Calls take for each element, items too; its error ends the walk. Explicit and implicit VR, little
 * endian. OCT_E_FORMAT: damaged or truncated (says where), in another order of bytes, deflated, or
 * with more elements or deeper sequences than any image has; OCT_E_IO. */
enum oct_err oct_dicom_walk(const struct oct_picture_file *file, oct_dicom_taker *take,
                            void *context, struct oct_error *err);

#endif
