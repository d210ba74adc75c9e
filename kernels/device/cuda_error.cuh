/* A CUDA call that fails as one line that names device, step and reason. */
#ifndef OCT_KERNELS_CUDA_ERROR_CUH
#define OCT_KERNELS_CUDA_ERROR_CUH

#include "kernels/device/cuda_device.h"
#include "kernels/device/cuda_launch.cuh"

static inline enum oct_err cuda_fail(struct oct_error *err, int device, const char *what,
                                     cudaError_t code)
{
    return oct_fail(err, code == cudaErrorMemoryAllocation ? OCT_E_NO_MEMORY : OCT_E_BACKEND,
                    "GPU %d: %s: %s (%s)", device, what, cudaGetErrorString(code),
                    cudaGetErrorName(code));
}

/* Returns from a function with `err` and a `device` when a call fails. */
#define TRY(device, what, call)                                                                    \
    do {                                                                                           \
        cudaError_t try_code = (call);                                                             \
        if (try_code != cudaSuccess)                                                               \
            return cuda_fail(err, device, what, try_code);                                         \
    } while (0)

#endif
