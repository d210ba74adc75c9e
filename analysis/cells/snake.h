/* The snake of one cell on its MGVF field (follow.h has the equations), in double precision. */
#ifndef OCT_ANALYSIS_CELLS_SNAKE_H
#define OCT_ANALYSIS_CELLS_SNAKE_H

#include "analysis/cells/params.h"

#include <stdbool.h>
#include <stddef.h>

/* A pixel of the field: w and the direction of its gradient, of length 1 or 0. */
struct oct_snake_pixel {
    float w, ux, uy, unused;
};

struct oct_snake_field {
    uint32_t rows, columns;         /* at least 2 */
    struct oct_snake_pixel *pixels; /* [rows][columns] */
};

/* cos t_i, sin t_i */
struct oct_snake_angles {
    double cosine[OCT_CELLS_SNAXELS], sine[OCT_CELLS_SNAXELS];
};
void oct_snake_angles_init(struct oct_snake_angles *angles);

struct oct_snake {
    double x, y; /* of the centre; pixels of the field */
    double radii[OCT_CELLS_SNAXELS];
};

/* Fills pixels from w, rows `stride` apart. */
void oct_snake_field_fill(struct oct_snake_field *field, const float *w, size_t stride);

/* Moves the snake until it rests. mean_y: Ey, in pixels of the field; radius: R. *left: a snaxel is
 * outside the field, or the snake has no length: it is as it was then. Returns the number
 * of iterations. */
uint32_t oct_snake_run(struct oct_snake *snake, const struct oct_snake_field *field,
                       const struct oct_snake_angles *angles, double mean_y, double radius,
                       double stop, bool *left);

#endif
