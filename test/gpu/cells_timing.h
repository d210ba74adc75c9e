/* What the device takes for cells, for the benchmarks: detection and following of one picture. */
#ifndef OCT_TEST_GPU_CELLS_TIMING_H
#define OCT_TEST_GPU_CELLS_TIMING_H

#ifdef __cplusplus
extern "C" {
#endif

#include "analysis/cells/engine.h"

struct oct_cells_device_times { /* microseconds */
    double prepare_us;          /* smoothing, gradient, floor */
    double scores_us;           /* GICOV of all pixels */
    double peaks_us;            /* with their refinement */
    double snakes_us;           /* MGVF, snake, score and refinement of all starts */
    double frame_us;            /* all of it, and the copies from and to pinned memory */
};

/* setup: as of create; workers, gpus and deadline_ms are not read. picture: without masked pixels.
 * n starts, at most 512. Calls the driver in this thread, and waits for it. OCT_E_BACKEND,
 * OCT_E_NO_MEMORY. */
enum oct_err oct_cells_time_cuda(const struct oct_cells_engine_setup *setup, unsigned device,
                                 const struct oct_picture *picture,
                                 const struct oct_cell_start *starts, unsigned n,
                                 struct oct_cells_device_times *times, struct oct_error *err);

#ifdef __cplusplus
}
#endif

#endif
