/* A picture as analyses take it: f32 pixels and a mask, [y][x], x fastest. Of a B-scan
 * y is the A-line and x the depth; of an en face picture y is the B-scan and x the A-line. So time
 * runs along y in both. */
#ifndef OCT_NUMERIC_PICTURE_H
#define OCT_NUMERIC_PICTURE_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pictures of 16 x 16 to 16384 x 16384 pixels are analysed. */
#define OCT_PICTURE_LEAST_SIDE 16u
#define OCT_PICTURE_MOST_SIDE 16384u

struct oct_picture {
    uint32_t height, width;
    float *pixels;  /* [height][width]; integers up to 2^24 are exact; what is masked may be NaN */
    uint8_t *valid; /* [height][width], 1 or 0; NULL: every pixel is valid and finite */
};

/* at: of the row-major pixels. */
static inline bool oct_picture_is_valid(const struct oct_picture *picture, size_t at)
{
    return !picture->valid || picture->valid[at];
}

/* Allocates; pixels are not set, those of the mask are 1. OCT_E_NO_MEMORY: *picture is empty. */
enum oct_err oct_picture_init(struct oct_picture *picture, uint32_t height, uint32_t width,
                              bool masked, struct oct_error *err);
void oct_picture_finish(struct oct_picture *picture); /* of an empty one too */

/* A copy with its own memory; the picture as its transpose. OCT_E_NO_MEMORY: *copy is empty, the
 * picture is as before. */
enum oct_err oct_picture_copy(struct oct_picture *copy, const struct oct_picture *picture,
                              struct oct_error *err);
enum oct_err oct_picture_transpose(struct oct_picture *picture, struct oct_error *err);

/* Masks pixels that are NaN or infinite; a mask is made where one is needed. OCT_E_NO_MEMORY. */
enum oct_err oct_picture_mask_not_finite(struct oct_picture *picture, struct oct_error *err);

/* The mean of some valid pixels that are spread over the picture: near enough to the mean of all
 * that, about it, the variance of 60000 +- 50 does not cancel. Equal pixels give exactly their
 * value; no valid pixel among them gives 0. */
double oct_picture_pivot(const struct oct_picture *picture);

struct oct_picture_statistics {
    uint64_t n_valid;
    /* Of the valid pixels; 0 when there are none. The variance of equal pixels is exactly 0; it is
     * NaN where a pixel is neither finite nor masked. */
    double mean, variance, least, most;
};

/* Sums in double of the differences to a mean of some pixels, so that a small variance at a large
 * mean is kept. */
void oct_picture_look(const struct oct_picture *picture, struct oct_picture_statistics *statistics);

#endif
