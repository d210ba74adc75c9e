/* Which build of the fused kernel fits a plan and a device. Part of cuda_recon.cu. */
#ifndef OCT_KERNELS_CUDA_PICK_CUH
#define OCT_KERNELS_CUDA_PICK_CUH

#include "kernels/device/cuda_error.cuh"
#include "kernels/recon/cuda_spread.cuh"

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

template <int P1, bool HALF> static struct oct_fused_pick oct_spread_of(const struct oct_plan *plan)
{
    using shape = oct_spread_shape<P1, HALF>;
    static_assert(oct_last_radix(typename shape::passes{}) == P1 / shape::threads,
                  "one butterfly a thread in the last pass");
    return {oct_spread_kernel<P1, HALF>,
            oct_spread_bytes(P1, plan->geometry.n_samples, plan->spread.n_wrap), shape::threads};
}

template <int P1> static struct oct_fused_pick oct_pick_for(const struct oct_plan *plan)
{
    const struct oct_geometry *g = &plan->geometry;
    return plan->n_taps ? oct_fused_of<P1>(plan->n_taps, g->crop_last <= g->upsampled / 4)
           : oct_spread_is_half(&plan->spread) ? oct_spread_of<P1, true>(plan)
                                               : oct_spread_of<P1, false>(plan);
}

static enum oct_err oct_pick_fused(struct oct_fused_pick *pick, int device,
                                   const struct oct_plan *plan, struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    int most = 0;
    *pick = g->padded == 2048   ? oct_pick_for<2048>(plan)
            : g->padded == 4096 ? oct_pick_for<4096>(plan)
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
