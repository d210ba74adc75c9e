/* The exact median of |gx| and |gy| of a picture, all together, by radix selection. It is sought
 * where that of the picture before was, and from nothing when it is not there. */
#ifndef OCT_ANALYSIS_CELLS_MEDIAN_H
#define OCT_ANALYSIS_CELLS_MEDIAN_H

#include "analysis/cells/gicov.h"

struct oct_workers;
struct oct_cells_median;

/* NULL: out of memory. workers: as of oct_workers_run, NULL too. */
struct oct_cells_median *oct_cells_median_create(struct oct_workers *workers);
void oct_cells_median_destroy(struct oct_cells_median *median); /* NULL is fine */

/* valid: [height][width], or NULL: all are. The mean of the two middle values; 0: none is valid. */
double oct_cells_median_run(struct oct_cells_median *median,
                            const struct oct_cells_gradient *gradient, const uint8_t *valid);

#endif
