/* In a build without CUDA: tables that create nothing, in the place of those of the .cu files, and
 * no timings. Weak: a test's own come first. */
#include "analysis/align/matcher.h"
#include "analysis/cells/cells_timing.h"
#include "analysis/correlate/correlate_timing.h"
#include "analysis/surface/levelset.h"
#include "analysis/warp/solver.h"

#pragma weak oct_cells_cuda_engine
#pragma weak oct_correlator_cuda
#pragma weak oct_levelset_cuda
#pragma weak oct_matcher_cuda
#pragma weak oct_warp_cuda
#pragma weak oct_cells_time_cuda
#pragma weak oct_correlate_time_cuda

const struct oct_cells_engine_ops oct_cells_cuda_engine = {.name = "cuda"};
const struct oct_correlator_ops oct_correlator_cuda = {.name = "cuda"};
const struct oct_levelset_ops oct_levelset_cuda = {.name = "cuda"};
const struct oct_matcher_ops oct_matcher_cuda = {.name = "cuda"};
const struct oct_warp_ops oct_warp_cuda = {.name = "cuda"};

enum oct_err oct_cells_time_cuda(const struct oct_cells_engine_setup *setup, unsigned device,
                                 const struct oct_picture *picture,
                                 const struct oct_cell_start *starts, unsigned n,
                                 struct oct_cells_device_times *times, struct oct_error *err)
{
    (void)setup, (void)device, (void)picture, (void)starts, (void)n, (void)times;
    return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA");
}

enum oct_err oct_correlate_time_cuda(const struct oct_correlator_setup *setup, unsigned device,
                                     struct oct_correlate_times *times, struct oct_error *err)
{
    (void)setup, (void)device, (void)times;
    return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA");
}
