/* A batch's way to the device and back. Ring slots of neighbouring B-scans lie at equal distances,
 * so that one copy takes a whole run of them: a copy costs some microseconds of the bus by itself.
 * One copy never reaches from one allocation into another, which CUDA refuses: a reader's own
 * buffer, shared memory. Part of cuda_recon.cu. */
#ifndef OCT_KERNELS_CUDA_COPIES_CUH
#define OCT_KERNELS_CUDA_COPIES_CUH

#include "kernels/device/cuda_device.h"
#include "kernels/device/cuda_error.cuh"

#include <cstddef>
#include <cstdint>

/* B-scans from `first` on whose host memory lies at one distance in one allocation. host [n]
 * addresses. */
static unsigned oct_run_length(const uintptr_t *host, unsigned first, unsigned n, size_t bytes,
                               size_t *distance)
{
    unsigned last = first + 1;
    *distance = bytes;
    if (last < n && host[last] >= host[first] + bytes)
        *distance = host[last] - host[first];
    const void *block = last < n ? oct_cuda_memory_block((const void *)host[first]) : NULL;
    while (last < n && host[last] == host[last - 1] + *distance &&
           oct_cuda_memory_block((const void *)host[last]) == block)
        last++;
    return last - first;
}

/* Queues copies of n B-scans of `bytes` between host[k] and device + k * bytes. */
static cudaError_t oct_copy_bscans(const uintptr_t *host, unsigned n, uint8_t *device, size_t bytes,
                                   enum cudaMemcpyKind kind, cudaStream_t stream)
{
    for (unsigned k = 0, length; k < n; k += length) {
        size_t distance;
        length = oct_run_length(host, k, n, bytes, &distance);
        void *there = (void *)host[k], *here = device + k * bytes;
        const bool up = kind == cudaMemcpyHostToDevice;
        cudaError_t code =
            length == 1 || distance == bytes
                ? cudaMemcpyAsync(up ? here : there, up ? there : here, length * bytes, kind,
                                  stream)
                : cudaMemcpy2DAsync(up ? here : there, up ? bytes : distance, up ? there : here,
                                    up ? distance : bytes, bytes, length, kind, stream);
        if (code != cudaSuccess)
            return code;
    }
    return cudaSuccess;
}

#endif
