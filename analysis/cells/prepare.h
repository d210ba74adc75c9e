/* What the search and the snakes read of a picture: smoothed, its gradient, and the floor.
 *
 * The picture is taken as scale (I - level), level near the mean and the scale a power of two, so
 * that f32 holds its contrasts whatever the range; what is made of it, scores and snakes, does not
 * depend on either. Of integers nothing is rounded. */
#ifndef OCT_ANALYSIS_CELLS_PREPARE_H
#define OCT_ANALYSIS_CELLS_PREPARE_H

#include "analysis/cells/gicov.h"
#include "numeric/picture.h"

/* Pixels of which nothing is known: filled, and kept away from. */

struct oct_workers;

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

/* The exact median of |gx| and |gy| of a picture, all together. */
struct oct_cells_median;

/* NULL: out of memory. workers: as of oct_workers_run, NULL too. */
struct oct_cells_median *oct_cells_median_create(uint32_t height, uint32_t width,
                                                 struct oct_workers *workers);
void oct_cells_median_destroy(struct oct_cells_median *median); /* NULL is fine */

/* valid: [height][width], or NULL: all are. The mean of the two middle values; 0: none is valid. */
double oct_cells_median_run(struct oct_cells_median *median,
                            const struct oct_cells_gradient *gradient, const uint8_t *valid);

struct oct_cells_preparation;

struct oct_cells_prepared {
    uint32_t height, width;
    const float *pixels; /* I' [height][stride] */
    size_t stride;
    struct oct_cells_gradient gradient;
    struct oct_cells_mask mask;
    double scale;
    float v0;
    bool is_flat; /* one value, or no valid pixel: pixels and gradient are 0 */
};

/* OCT_E_NO_MEMORY. */
enum oct_err oct_cells_preparation_create(struct oct_cells_preparation **preparation,
                                          const struct oct_cells_params *params, uint32_t height,
                                          uint32_t width, struct oct_workers *workers,
                                          struct oct_error *err);
void oct_cells_preparation_destroy(struct oct_cells_preparation *preparation); /* NULL is fine */

/* Reads the picture, of the size of create. OCT_E_NO_MEMORY: for a first mask. */
enum oct_err oct_cells_prepare(struct oct_cells_preparation *preparation,
                               const struct oct_picture *picture, struct oct_error *err);

/* Valid until the next oct_cells_prepare. */
const struct oct_cells_prepared *
oct_cells_prepared_of(const struct oct_cells_preparation *preparation);

#endif
