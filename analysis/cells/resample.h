/* A picture of which a part is taken, and stretched along one axis until its pixels are square. */
#ifndef OCT_ANALYSIS_CELLS_RESAMPLE_H
#define OCT_ANALYSIS_CELLS_RESAMPLE_H

#include "numeric/picture.h"

/* Pixel (x, y) of the result lies at (x0 + x dx, y0 + y dy) of the picture. */
struct oct_cells_resample {
    uint32_t x0, y0, from_height, from_width; /* the part that is taken */
    uint32_t height, width;                   /* of the result */
    double dy, dx;                            /* 1, or less along the axis that is stretched */
};

/* Of pixels of spacings um[0] (dy), um[1] (dx) the finer one becomes that of both; the first pixel
 * lies on the first one, and the last is the last that has neighbours. Spacings that differ by no
 * more than 2 %, or are unknown (NaN), count as equal. */
void oct_cells_resample_plan(struct oct_cells_resample *plan, uint32_t x0, uint32_t y0,
                             uint32_t height, uint32_t width, const double um[2]);

/* Whether the result is the whole picture as it is. */
bool oct_cells_resample_is_identity(const struct oct_cells_resample *plan, uint32_t height,
                                    uint32_t width);

/* Bilinear. to: of plan->height x plan->width, with a mask where `from` has one: a pixel is valid
 * if all that it is made of are; else it is 0. */
void oct_cells_resample(const struct oct_cells_resample *plan, const struct oct_picture *from,
                        struct oct_picture *to);

/* The same of row y of the result alone. */
void oct_cells_resample_row(const struct oct_cells_resample *plan, const struct oct_picture *from,
                            struct oct_picture *to, uint32_t y);

#endif
