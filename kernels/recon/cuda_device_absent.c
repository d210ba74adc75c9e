/* What stands for the device in a build without CUDA. */
#include "kernels/device/cuda_device.h"

#include <stdio.h>
#include <stdlib.h>

static const char reason[] = "this build has no CUDA engine";

const char *oct_cuda_built_with(void)
{
    return NULL;
}

unsigned oct_cuda_count(char *why, size_t why_bytes)
{
    snprintf(why, why_bytes, "%s", reason);
    return 0;
}

static enum oct_err refuse(struct oct_error *err)
{
    return oct_fail(err, OCT_E_BACKEND, "%s", reason);
}

enum oct_err oct_cuda_name(unsigned device, char *name, size_t name_bytes, struct oct_error *err)
{
    (void)device, (void)name, (void)name_bytes;
    return refuse(err);
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

static void *alloc(size_t bytes)
{
    size_t page = 4096, whole = (bytes + page - 1) / page * page;
    return aligned_alloc(page, whole);
}

static void release(void *memory, size_t bytes)
{
    (void)bytes;
    free(memory);
}

static bool is_held(void)
{
    return false;
}

const struct oct_memory_ops oct_cuda_memory = {
    .alloc = alloc, .release = release, .is_held = is_held};

void oct_cuda_memory_hold(void)
{
}

void oct_cuda_memory_let_go(void)
{
}

enum oct_err oct_cuda_time_copies(unsigned device, size_t up, size_t down, unsigned n_rounds,
                                  double *seconds, struct oct_error *err)
{
    (void)device, (void)up, (void)down, (void)n_rounds, (void)seconds;
    return refuse(err);
}

enum oct_err oct_cuda_time_device_copy(unsigned device, size_t bytes, unsigned n_rounds,
                                       double *seconds, struct oct_error *err)
{
    (void)device, (void)bytes, (void)n_rounds, (void)seconds;
    return refuse(err);
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
