/* A picture with square pixels, from one whose rows and columns lie differently far apart. */
#ifndef OCT_ANALYSIS_CONES_SQUARE_H
#define OCT_ANALYSIS_CONES_SQUARE_H

#include "numeric/picture.h"

struct oct_square {
    uint32_t height, width;    /* of what comes */
    uint32_t merge_y, merge_x; /* so many pixels become one first; one of both is 1 */
    double scale_y, scale_x;   /* then so many pixels for one, 1 .. 2; one of both is 1 */
    uint32_t out_height, out_width;
    double um; /* of a pixel that is made */
};

/* um_y, um_x > 0: distances of rows and of columns. Distances that differ by less than 0.1 % are
 * taken as equal. */
void oct_square_plan(struct oct_square *square, uint32_t height, uint32_t width, double um_y,
                     double um_x);

/* values: [height][width], NaN where there is none. *out: out_height x out_width with a mask, made
 * by the caller (oct_picture_init); masked where a neighbour is missing. merged: room for height x
 * width values. */
void oct_square_run(const struct oct_square *square, const float *values, float *merged,
                    struct oct_picture *out);

#endif
