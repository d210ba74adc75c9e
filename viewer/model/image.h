/* One received image of any topic but `bscan` and `spectrum`: header and values, in a buffer that
 * grows and is reused. Images move between subscriber, app and model by swapping whole structs. A
 * zeroed struct is none. */
#ifndef OCT_VIEWER_MODEL_IMAGE_H
#define OCT_VIEWER_MODEL_IMAGE_H

#include "pipeline/base/err.h"
#include "pipeline/wire/image_header.h"

#include <stddef.h>
#include <stdint.h>

struct oct_view_image {
    struct oct_image_header header;
    void *values; /* row-major [dims[0]]..[dims[rank - 1]], u8 or f32 by header.type; owned */
    size_t capacity_bytes;
    uint64_t arrival_ns; /* by the viewer's clock; 0: none came */
};

/* Bytes of the values that a header announces; SIZE_MAX when it announces none that we could hold
 * (at most OCT_MAX_BSCAN_SAMPLES values). 0: an image without rows. */
size_t oct_view_image_bytes(const struct oct_image_header *header);

/* Fills the image from a decoded header and the bytes of the values (copied). OCT_E_FORMAT when
 * their size is not what the header announces: the last check before values are trusted.
 * OCT_E_NO_MEMORY. On error the image is as it was. arrival_ns is the caller's. */
enum oct_err oct_view_image_set(struct oct_view_image *image, const struct oct_image_header *header,
                                const void *values, size_t n_bytes, struct oct_error *err);

void oct_view_image_swap(struct oct_view_image *a, struct oct_view_image *b);

/* Frees the values and zeroes the struct. */
void oct_view_image_finish(struct oct_view_image *image);

#endif
