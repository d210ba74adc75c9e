/* What the device is told of a snake to start. */
#ifndef OCT_ANALYSIS_CELLS_CUDA_STARTS_CUH
#define OCT_ANALYSIS_CELLS_CUDA_STARTS_CUH

#include "analysis/cells/cuda_snake.cuh"

#include <cstring>

/* *window: where the snake is; without pixels, and no columns, where it is too small for one. */
static inline struct oct_cells_snake_start
oct_cells_start_of(const struct oct_cells_engine_setup *setup, const struct oct_cell_start *start,
                   struct oct_cell_window *window)
{
    struct oct_cells_snake_start to = {};
    struct oct_mgvf_flow flow;
    if (!oct_cell_window_find(&setup->params, setup->height, setup->width, start->x, start->y,
                              window)) {
        *window = {0, -1, 0, -1};
        return to;
    }
    to.x0 = (uint32_t)window->u1;
    to.y0 = (uint32_t)window->v1;
    to.columns = (uint32_t)(window->u2 - window->u1 + 1);
    to.rows = (uint32_t)(window->v2 - window->v1 + 1);
    to.x = start->x - window->u1;
    to.y = start->y - window->v1;
    to.mean_y = to.y + start->mean_dy;
    memcpy(to.radii, start->radii, sizeof(to.radii));
    oct_mgvf_flow_init(&flow, start->vx, start->vy);
    memcpy(to.flow.sign, flow.sign, sizeof(to.flow.sign));
    to.is_dark = start->is_dark;
    return to;
}

#endif
