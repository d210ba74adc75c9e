/* DICOM (PS3.5) by DCMTK: a data set as bytes, and frames whose pixels are packed.
 *
 * A data set: attributes are put in any order, sequences are
 * nested as they are begun and ended. What an attribute means is its caller's.
 *
 *     create -> { put, begin, end } -> { encode } -> destroy
 *
 * The first failure is kept: what is put after it is left out, and encode returns it. A tag is
 * group << 16 | element, a value representation its two letters. No state of its own, but DCMTK's
 * log, which is switched off; one thread a set. */
#ifndef OCT_FORMATS_DICOM_FILE_H
#define OCT_FORMATS_DICOM_FILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "pipeline/base/err.h"

struct oct_dicom_set;

/* NULL: out of memory. */
struct oct_dicom_set *oct_dicom_set_create(void);
void oct_dicom_set_destroy(struct oct_dicom_set *set); /* NULL is fine */

/* Text, as it is, values with '\' between; "": the attribute is there and empty. A text that the
 * representation does not allow is a failure. */
void oct_dicom_put_text(struct oct_dicom_set *set, uint32_t tag, const char *vr, const char *text);

/* Decimal strings (DS) of ten digits each; n is 6 at most. */
void oct_dicom_put_decimals(struct oct_dicom_set *set, uint32_t tag, const double *values,
                            unsigned n);
void oct_dicom_put_u16(struct oct_dicom_set *set, uint32_t tag, uint16_t value);        /* US */
void oct_dicom_put_u32(struct oct_dicom_set *set, uint32_t tag, const uint32_t *values, /* UL */
                       unsigned n);
void oct_dicom_put_f32(struct oct_dicom_set *set, uint32_t tag, const float *values, /* FL */
                       unsigned n);
void oct_dicom_put_f64(struct oct_dicom_set *set, uint32_t tag, double value);   /* FD */
void oct_dicom_put_tag(struct oct_dicom_set *set, uint32_t tag, uint32_t value); /* AT */

/* Bytes (OB), of which it makes an even number. */
void oct_dicom_put_bytes(struct oct_dicom_set *set, uint32_t tag, const unsigned char *bytes,
                         size_t n);

/* A sequence without items. */
void oct_dicom_put_no_items(struct oct_dicom_set *set, uint32_t tag);

/* Begins an item of the sequence, behind those that it has: what is put from here to the end of
 * the item is in it. An item that follows another of the same sequence takes the same time however
 * many there are. */
void oct_dicom_begin(struct oct_dicom_set *set, uint32_t tag);
void oct_dicom_end(struct oct_dicom_set *set);

/* A file of this data set, in explicit little-endian order, from the preamble to the last
 * attribute: *bytes is the caller's, from malloc. PixelData may follow as it is, for it has the
 * highest tag. SOP class and SOP instance must have been put. OCT_E_IO: DCMTK
 * lacks its dictionary. */
enum oct_err oct_dicom_encode(struct oct_dicom_set *set, unsigned char **bytes, size_t *n,
                              struct oct_error *err);

/* ---- packed frames ----
 *
 * Pixels that are packed by JPEG or JPEG-LS, a fragment a frame. The file has been walked
 * (dicom_walk.h). One thread uses frames at a time. */

struct oct_dicom_frames;

/* OCT_E_FORMAT: DCMTK cannot read it; OCT_E_NO_MEMORY. *frames is NULL on error. */
enum oct_err oct_dicom_frames_open(struct oct_dicom_frames **frames, const char *path,
                                   struct oct_error *err);
void oct_dicom_frames_close(struct oct_dicom_frames *frames); /* NULL is fine */

/* Unpacks frame `number`, from 0, into bytes: the host's samples, row after row. n: of a frame;
 * there is room for an even number. OCT_E_FORMAT: there is no such frame, it is damaged, of another
 * size, or no grey. */
enum oct_err oct_dicom_frames_read(struct oct_dicom_frames *frames, uint32_t number,
                                   unsigned char *bytes, size_t n, struct oct_error *err);

#ifdef __cplusplus
}
#endif

#endif
