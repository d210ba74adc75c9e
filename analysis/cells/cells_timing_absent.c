/* In place of cells_timing.cu in a build without CUDA. */
#include "analysis/cells/cells_timing.h"

enum oct_err oct_cells_time_cuda(const struct oct_cells_engine_setup *setup, unsigned device,
                                 const struct oct_picture *picture,
                                 const struct oct_cell_start *starts, unsigned n,
                                 struct oct_cells_device_times *times, struct oct_error *err)
{
    (void)setup, (void)device, (void)picture, (void)starts, (void)n, (void)times;
    return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA");
}
