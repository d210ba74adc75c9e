/* One received picture: header and pixels, in a buffer that grows and is reused.
 *
 * Pictures move between the subscriber, the model and the window by swapping whole structs, never
 * by copying pixels. A zeroed struct is an empty picture. */
#ifndef OCT_VIEWER_PICTURE_H
#define OCT_VIEWER_PICTURE_H

#include "pipeline/err.h"
#include "pipeline/wire.h"

#include <stddef.h>

struct oct_view_picture {
    struct oct_picture_header header;
    void *pixels; /* [n_lines][depth], u8 or f32 by header.sample_type; owned, malloc'd */
    size_t capacity_bytes;
};

/* Bytes of the pixels that a header announces; 0 when it announces none that we could hold. */
size_t oct_view_picture_bytes(const struct oct_picture_header *header);

/* Fills the picture from a decoded header and the bytes of the image part (copied). OCT_E_FORMAT
 * when their size is not what the header announces: the last check before pixels are trusted. On
 * error the picture is as it was. */
enum oct_err oct_view_picture_set(struct oct_view_picture *picture,
                                  const struct oct_picture_header *header, const void *pixels,
                                  size_t n_bytes, struct oct_error *err);

void oct_view_picture_swap(struct oct_view_picture *a, struct oct_view_picture *b);

/* Frees the pixels and zeroes the struct. */
void oct_view_picture_finish(struct oct_view_picture *picture);

#endif
