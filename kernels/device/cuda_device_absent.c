/* In place of cuda_device.cu in a build without CUDA. */
#include "kernels/device/cuda_device.h"

#include <stdio.h>

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

enum oct_err oct_cuda_answers(unsigned device, struct oct_error *err)
{
    (void)device;
    return refuse(err);
}

void *oct_cuda_pin(size_t bytes)
{
    (void)bytes;
    return NULL;
}

void oct_cuda_unpin(void *memory)
{
    (void)memory;
}

void oct_cuda_pin_through(unsigned device)
{
    (void)device;
}

enum oct_err oct_cuda_time_copies(unsigned device, size_t up, size_t down, unsigned n_rounds,
                                  double *seconds, struct oct_error *err)
{
    (void)device, (void)up, (void)down, (void)n_rounds, (void)seconds;
    return refuse(err);
}

enum oct_err oct_cuda_time_device_copy(unsigned device, size_t most_bytes, unsigned n_rounds,
                                       double *bytes_per_s, struct oct_error *err)
{
    (void)device, (void)most_bytes, (void)n_rounds, (void)bytes_per_s;
    return refuse(err);
}
