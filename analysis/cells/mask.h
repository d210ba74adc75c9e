/* Pixels of which nothing is known: filled, and kept away from. */
#ifndef OCT_ANALYSIS_CELLS_MASK_H
#define OCT_ANALYSIS_CELLS_MASK_H

#include "numeric/picture.h"

struct oct_cells_mask {
    uint32_t height, width;
    double reach;   /* px: 2 R */
    bool any;       /* some pixel is masked; else the arrays are not set */
    uint8_t *valid; /* [height][width] */
    uint8_t *near;  /* [height][width]: 1 within `reach` of a masked pixel */
    uint32_t *gap;  /* [height][width], scratch */
};

/* Allocates nothing yet. */
void oct_cells_mask_init(struct oct_cells_mask *mask, uint32_t height, uint32_t width,
                         double reach);
void oct_cells_mask_finish(struct oct_cells_mask *mask);

/* Masks what the picture masks and what is not finite; at least one pixel is valid.
 * OCT_E_NO_MEMORY. */
enum oct_err oct_cells_mask_set(struct oct_cells_mask *mask, const struct oct_picture *picture,
                                struct oct_error *err);

/* Masked pixels become the nearest valid one of their column, the upper one of two; in a column
 * without any, those of the nearest column that has one, the left one of two. */
void oct_cells_mask_fill(struct oct_cells_mask *mask, float *pixels, size_t stride);

/* Whether a masked pixel lies within `reach` of (x, y), of any place. */
bool oct_cells_mask_is_near(const struct oct_cells_mask *mask, double x, double y);

#endif
