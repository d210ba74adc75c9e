/* One of the two pictures of a correlation, as fields that are transformed: its values less their
 * mean, its mask, and the squares of the values, each zero where the mask is.
 *
 * A field is transformed less its mean over the whole rectangle, `level`, as a constant would cost
 * the f32 transforms their accuracy; sums over overlaps are put back in double:
 *
 *     sum a b = sum a' b' + level_b sum a' + level_a sum b' + level_a level_b n
 *
 * with a' = a - level_a, and the sums of a' and b' by oct_boxes. One thread at a time. */
#ifndef OCT_ANALYSIS_CORRELATE_SIDE_H
#define OCT_ANALYSIS_CORRELATE_SIDE_H

#include "analysis/correlate/fft2.h"
#include "numeric/picture.h"

/* ---- sums over overlaps ----
 * At every shift of a window, in double: an integral image kept at the rows where overlaps begin or
 * end. The overlap of f (height x width) with g shifted by d = (dy, dx) is, in f, the rows
 * max(0, -dy) .. min(height, g_height - dy) and the columns likewise. */

/* Where two pictures meet along one axis; first == end: nowhere. */
struct oct_box_overlap {
    uint32_t first, end; /* in f */
};
struct oct_box_overlap oct_box_overlap_at(uint32_t f_side, uint32_t g_side, int64_t shift);

struct oct_boxes {
    uint32_t height, width;
    uint32_t *slot;  /* [height + 1] where the sums of the rows above y are; UINT32_MAX: not kept */
    double *kept;    /* [n_slots][width + 1] */
    double *columns; /* [width] sums of the columns so far */
};

/* Of f against pictures of g_height rows, |dy| <= max_dy. false: out of memory. */
bool oct_boxes_init(struct oct_boxes *boxes, uint32_t height, uint32_t width, uint32_t g_height,
                    uint32_t max_dy);
void oct_boxes_finish(struct oct_boxes *boxes); /* of a zeroed one too */

/* Rows come in order from y = 0, which begins afresh. */
void oct_boxes_add_row(struct oct_boxes *boxes, uint32_t y, const float *row);

/* The sum over some rows and the columns before x: strip[x], [width + 1]. The sum over the columns
 * first .. end is strip[end] - strip[first]. */
void oct_boxes_strip(const struct oct_boxes *boxes, struct oct_box_overlap rows, double *strip);

/* ---- fields ---- */

enum oct_field_kind { OCT_FIELD_VALUES, OCT_FIELD_MASK, OCT_FIELD_SQUARES, OCT_N_FIELDS };

struct oct_field {
    float level;
    bool has_boxes;
    struct oct_boxes boxes; /* of the field less its level */
    double *strip;          /* [width + 1] for oct_boxes_strip */
    float *spectrum;        /* NULL: none is kept */
};

struct oct_side {
    uint32_t height, width;
    bool keep_mean;
    uint64_t n_valid;
    double squares; /* sum of the values' squares */
    struct oct_field field[OCT_N_FIELDS];

    /* value = scale * pixel - mean_hi - mean_lo; scale is a power of two: the pixels' standard
     * deviation becomes about 1, and the mean is split, as one float does not hold it. */
    float scale, mean_hi, mean_lo;
    const struct oct_picture *picture; /* of the last look; the caller's */
};

/* Sizes and keep_mean of *side are set. Boxes for the kinds in boxes_of (bits), for shifts against
 * g_height rows. */
enum oct_err oct_side_init(struct oct_side *side, uint32_t g_height, uint32_t max_dy,
                           unsigned boxes_of, struct oct_error *err);
void oct_side_finish(struct oct_side *side); /* of a zeroed one too */

/* Looks at a picture. OCT_E_ARG: no contrast, pixels that are not finite, less than 10 % valid. */
enum oct_err oct_side_check(const struct oct_picture *picture, struct oct_picture_statistics *look,
                            struct oct_error *err);

/* Checks a picture and finds its mean, scale and levels; it is borrowed until the fields are
 * transformed. OCT_E_ARG: another size, no contrast, or less than 10 % of it valid; *side is as it
 * was then. */
enum oct_err oct_side_look(struct oct_side *side, const struct oct_picture *picture,
                           struct oct_error *err);

/* A field's rows for a transform. Those of the values and of the mask pass through the field's
 * boxes, where it has some; those of the values, squared, through the boxes of the squares too. */
struct oct_field_rows {
    struct oct_side *side;
    enum oct_field_kind kind;
    float *scratch; /* [width] */
};
struct oct_fft2_rows oct_side_rows(struct oct_field_rows *rows);

#endif
