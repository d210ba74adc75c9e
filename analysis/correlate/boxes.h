/* Sums over the overlap of two pictures at every shift of a window, in double: an integral image
 * kept at the rows where overlaps begin or end.
 *
 * The overlap of f (height x width) with g shifted by d = (dy, dx) is, in f, the rows
 * max(0, -dy) .. min(height, g_height - dy) and the columns likewise. One thread at a time. */
#ifndef OCT_ANALYSIS_CORRELATE_BOXES_H
#define OCT_ANALYSIS_CORRELATE_BOXES_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
