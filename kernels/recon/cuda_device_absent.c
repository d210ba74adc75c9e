/* In place of cuda_device.cu in a build without CUDA. */
#include "kernels/recon/cuda_lane.h"

static enum oct_err refuse(struct oct_error *err)
{
    return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA engine");
}

enum oct_err oct_cuda_can_run(unsigned device, const struct oct_plan *plan,
                              enum oct_cuda_kernels kernels, struct oct_error *err)
{
    (void)device, (void)plan, (void)kernels;
    return refuse(err);
}

enum oct_err oct_cuda_check_memory(unsigned device, const struct oct_plan *plan,
                                   enum oct_cuda_kernels kernels, unsigned max_batch,
                                   unsigned n_lanes, struct oct_error *err)
{
    (void)device, (void)plan, (void)kernels, (void)max_batch, (void)n_lanes;
    return refuse(err);
}

enum oct_err oct_cuda_lane_create(struct oct_cuda_lane **lane, unsigned device,
                                  const struct oct_plan *plan, enum oct_cuda_kernels kernels,
                                  unsigned max_batch, struct oct_cuda_signs *signs,
                                  struct oct_error *err)
{
    (void)device, (void)plan, (void)kernels, (void)max_batch, (void)signs;
    *lane = NULL;
    return refuse(err);
}

void oct_cuda_lane_take(struct oct_cuda_lane *lane, const struct oct_engine_job *jobs, unsigned n)
{
    (void)lane, (void)jobs, (void)n;
}

enum oct_err oct_cuda_lane_begin(struct oct_cuda_lane *lane, bool *needs_end, struct oct_error *err)
{
    (void)lane, (void)needs_end;
    return refuse(err);
}

enum oct_err oct_cuda_lane_end(struct oct_cuda_lane *lane, const double *lo, const double *hi,
                               struct oct_error *err)
{
    (void)lane, (void)lo, (void)hi;
    return refuse(err);
}

enum oct_err oct_cuda_lane_poll(struct oct_cuda_lane *lane, struct oct_error *err)
{
    (void)lane;
    return refuse(err);
}

void oct_cuda_lane_limits(const struct oct_cuda_lane *lane, unsigned k, double *lo, double *hi)
{
    (void)lane, (void)k, (void)lo, (void)hi;
}

void oct_cuda_lane_destroy(struct oct_cuda_lane *lane)
{
    (void)lane;
}

enum oct_err oct_cuda_lane_repeat(struct oct_cuda_lane *lane, unsigned n_times,
                                  struct oct_error *err)
{
    (void)lane;
    (void)n_times;
    return refuse(err);
}

enum oct_err oct_cuda_lane_stages(struct oct_cuda_lane *lane, double *seconds,
                                  struct oct_error *err)
{
    (void)lane, (void)seconds;
    return refuse(err);
}
