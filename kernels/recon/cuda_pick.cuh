/* Which build of the fused kernel fits a plan and a device. Part of cuda_recon.cu. */
#ifndef OCT_KERNELS_CUDA_PICK_CUH
#define OCT_KERNELS_CUDA_PICK_CUH

#include "kernels/device/cuda_error.cuh"
#include "kernels/recon/cuda_fused.cuh"

struct oct_fused_pick {
    void (*kernel)(struct oct_cuda_tables, struct oct_cuda_batch); /* NULL: none for this plan */
    size_t shared_bytes;
    unsigned threads;
};

template <int P1> static struct oct_fused_pick oct_fused_of(unsigned n_taps, bool shallow)
{
    struct oct_fused_pick pick = {NULL, oct_fused_bytes(P1), oct_fused_shape<P1>::threads};
    if (n_taps == 2)
        pick.kernel = shallow ? oct_fused_kernel<P1, 2, 4> : oct_fused_kernel<P1, 2, 8>;
    else if (n_taps == 4)
        pick.kernel = shallow ? oct_fused_kernel<P1, 4, 4> : oct_fused_kernel<P1, 4, 8>;
    return pick;
}

static enum oct_err oct_pick_fused(struct oct_fused_pick *pick, int device,
                                   const struct oct_plan *plan, struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    const bool shallow = g->crop_last <= g->upsampled / 4;
    int most = 0;
    *pick = g->padded == 2048   ? oct_fused_of<2048>(plan->n_taps, shallow)
            : g->padded == 4096 ? oct_fused_of<4096>(plan->n_taps, shallow)
                                : oct_fused_pick{NULL, 0, 0};
    if (!pick->kernel)
        return oct_fail(err, OCT_E_CONFIG,
                        "fused CUDA kernels take lines of up to 4096 samples, not %u; use auto",
                        g->n_samples);
    TRY(device, "attributes",
        cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    if (pick->shared_bytes > (size_t)most)
        return oct_fail(err, OCT_E_BACKEND,
                        "GPU %d has %d bytes of shared memory a block, the fused kernel needs %zu",
                        device, most, pick->shared_bytes);
    return OCT_OK;
}

#endif
