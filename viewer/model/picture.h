/* One received picture: header and pixels, in a buffer that grows and is reused.
 *
 * Pictures move between the subscriber, the model and the window by swapping whole structs, never
 * by copying pixels. A zeroed struct is an empty picture. */
#ifndef OCT_VIEWER_MODEL_PICTURE_H
#define OCT_VIEWER_MODEL_PICTURE_H

#include "pipeline/base/err.h"
#include "pipeline/wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oct_view_picture {
    struct oct_picture_header header;
    void *pixels; /* [n_lines][depth], u8 or f32 by header.sample_type; owned, malloc'd */
    size_t capacity_bytes;
    uint64_t arrival_ns; /* when all of it had arrived, by the viewer's clock */
};

/* Bytes of the pixels that a header announces; 0 when it announces none that we could hold. */
size_t oct_view_picture_bytes(const struct oct_picture_header *header);

/* Fills the picture from a decoded header and the bytes of the image part (copied). OCT_E_FORMAT
 * when their size is not what the header announces: the last check before pixels are trusted. On
 * error the picture is as it was. */
enum oct_err oct_view_picture_set(struct oct_view_picture *picture,
                                  const struct oct_picture_header *header, const void *pixels,
                                  size_t n_bytes, struct oct_error *err);

/* The value (dB or counts^2) of a pixel; NaN beyond the picture. */
double oct_view_picture_value(const struct oct_view_picture *picture, uint32_t line,
                              uint32_t depth);

/* Finds two percentiles (shares 0..1) of the values; where there are many A-lines, of some of them.
 * False: the picture has no finite value. */
bool oct_view_picture_percentiles(const struct oct_view_picture *picture, double share_lo,
                                  double share_hi, double *lo, double *hi);

void oct_view_picture_swap(struct oct_view_picture *a, struct oct_view_picture *b);

/* Frees the pixels and zeroes the struct. */
void oct_view_picture_finish(struct oct_view_picture *picture);

#endif
