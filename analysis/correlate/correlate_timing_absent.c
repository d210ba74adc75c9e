/* In place of correlate_timing.cu in a build without CUDA. */
#include "analysis/correlate/correlate_timing.h"

enum oct_err oct_correlate_time_cuda(const struct oct_correlator_setup *setup, unsigned device,
                                     struct oct_correlate_times *times, struct oct_error *err)
{
    (void)setup, (void)device, (void)times;
    return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA");
}
