/* The first kernel of samples that are not u16: what crossed the bus as it was sent, as u16. */
#ifndef OCT_KERNELS_CUDA_UNPACK_CUH
#define OCT_KERNELS_CUDA_UNPACK_CUH

extern "C" {
#include "numeric/samples.h"
}
#include "kernels/recon/cuda_types.cuh"

#define OCT_UNPACK_THREADS 256

/* A thread takes two samples, three bytes of Mono12p; lines are whole pairs. grid (x, n), n B-scans
 * of n_samples each one behind the other in both. */
static __global__ void oct_unpack_kernel(uint16_t *to, const uint8_t *from, size_t n_samples,
                                         unsigned format)
{
    const size_t pair = (size_t)blockIdx.x * OCT_UNPACK_THREADS + threadIdx.x, i = 2 * pair;
    to += blockIdx.y * n_samples;
    if (i >= n_samples)
        return;
    if (format == OCT_LINES_U8) {
        from += blockIdx.y * n_samples + i;
        to[i] = from[0];
        if (i + 1 < n_samples)
            to[i + 1] = from[1];
        return;
    }
    from += blockIdx.y * (n_samples / 2 * 3) + 3 * pair;
    const unsigned a = from[0], b = from[1], c = from[2];
    to[i] = (uint16_t)(a | (b & 15) << 8);
    to[i + 1] = (uint16_t)(b >> 4 | c << 4);
}

#endif
