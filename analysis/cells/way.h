/* Where the pieces of cells give way to pictures: a piece looks whether any wait after every few
 * tens of microseconds of work (kernels/device/workers.h). */
#ifndef OCT_ANALYSIS_CELLS_WAY_H
#define OCT_ANALYSIS_CELLS_WAY_H

#include "kernels/device/workers.h"

#include <stdint.h>

#define OCT_CELLS_WAY_PIXELS 4096u /* of passes over pixels, between two looks */

/* Called before each row of a pass: looks before some of them. */
static inline void oct_cells_way_row(struct oct_workers *workers, unsigned worker, uint32_t row,
                                     uint32_t width)
{
    const uint32_t n = width > 0 ? OCT_CELLS_WAY_PIXELS / width : 0;
    if (n <= 1 || row % n == 0)
        oct_workers_give_way(workers, worker);
}

#endif
