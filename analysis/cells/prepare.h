/* What the search and the snakes read of a picture: smoothed, its gradient, and the floor.
 *
 * The picture is taken as scale (I - level), level near the mean and the scale a power of two, so
 * that f32 holds its contrasts whatever the range; what is made of it, scores and snakes, does not
 * depend on either. Of integers nothing is rounded. */
#ifndef OCT_ANALYSIS_CELLS_PREPARE_H
#define OCT_ANALYSIS_CELLS_PREPARE_H

#include "analysis/cells/gicov.h"
#include "analysis/cells/mask.h"

struct oct_workers;
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
