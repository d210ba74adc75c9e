/* Moved pictures, summed: each line of a picture goes to row y + dy of a canvas, shared between two
 * rows, its pixels to column x + dx. Sums and weights are kept, so that what no picture covers is
 * NaN and never 0, and pictures are moved once from what they were.
 *
 * One thread uses a struct oct_render at a time. */
#ifndef OCT_ANALYSIS_ALIGN_RENDER_H
#define OCT_ANALYSIS_ALIGN_RENDER_H

#include "numeric/picture.h"

enum oct_resampling {
    OCT_RESAMPLING_LINEAR,
    OCT_RESAMPLING_CUBIC, /* Keys 1981, a = -1/2 */
    OCT_RESAMPLING_NONE,  /* whole pixels: values stay what they were */
};

struct oct_render {
    uint32_t height, width;     /* of the canvas */
    int32_t origin_y, origin_x; /* where pixel (0, 0) of an unmoved picture lies in it */
    enum oct_resampling interpolation;
    bool as_power;        /* pictures are dB, and are averaged as powers */
    double *sum, *weight; /* [height][width] */
    float *line, *cover;  /* [width]: a line at its columns, and how much of each is covered */
};

/* The rows and columns that lines moved by dy, dx ([height]) reach; *box grows. */
struct oct_render_box {
    int32_t y0, y1, x0, x1; /* first and last */
    bool is_set;
    int32_t common_y0, common_y1, common_x0, common_x1; /* what all cover */
};
void oct_render_grow(struct oct_render_box *box, uint32_t height, uint32_t width, const double *dy,
                     const double *dx);

/* An empty canvas: rows y0 .. y1, columns x0 .. x1. OCT_E_ARG: sides above
 * OCT_PICTURE_MOST_SIDE, or none; OCT_E_NO_MEMORY. */
enum oct_err oct_render_init(struct oct_render *render, int32_t y0, int32_t y1, int32_t x0,
                             int32_t x1, enum oct_resampling interpolation, bool as_power,
                             struct oct_error *err);
void oct_render_finish(struct oct_render *render); /* of an empty one too */
void oct_render_clear(struct oct_render *render);

/* Adds a picture; dy, dx: [picture->height]. What lies beyond the canvas is left out. */
void oct_render_add(struct oct_render *render, const struct oct_picture *picture, const double *dy,
                    const double *dx);

/* average, weight (may be NULL): [height][width]. */
void oct_render_average(const struct oct_render *render, float *average, float *weight);

#endif
