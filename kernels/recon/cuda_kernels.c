#include "kernels/recon/cuda_kernels.h"

#include <stdio.h>
#include <string.h>

static const char *const kernel_names[] = {[OCT_CUDA_FUSED] = "fused", [OCT_CUDA_PLAIN] = "plain"};

static bool find_kernels(const char *name, enum oct_cuda_kernels *kernels)
{
    for (int i = OCT_CUDA_FUSED; i <= OCT_CUDA_PLAIN; i++)
        if (strcmp(name, kernel_names[i]) == 0) {
            *kernels = (enum oct_cuda_kernels)i;
            return true;
        }
    return false;
}

enum oct_err oct_cuda_kernels_check(const struct oct_engine_options *options, struct oct_error *err)
{
    static const char *const simd[] = {"auto", "avx512", "avx2", "plain"};
    bool known = !options->simd;
    for (size_t i = 0; i < sizeof(simd) / sizeof(simd[0]); i++)
        known = known || strcmp(options->simd, simd[i]) == 0;
    if (!known)
        return oct_fail(err, OCT_E_CONFIG, "pipeline.simd is %s: use auto, avx512, avx2 or plain",
                        options->simd);
    const char *cuda = options->cuda;
    enum oct_cuda_kernels kernels;
    if (cuda && strcmp(cuda, "auto") && !find_kernels(cuda, &kernels))
        return oct_fail(err, OCT_E_CONFIG, "CUDA kernels '%s': use auto, fused or plain", cuda);
    return OCT_OK;
}

/* What is wanted of the devices, and the kernels that were found. */
struct wish {
    const struct oct_plan *plan;
    const char *wanted; /* NULL or "auto": whatever runs */
    enum oct_cuda_kernels kernels;
};

/* All of them run the same. */
static enum oct_err can_do(void *context, const struct oct_cuda_choice *choice,
                           struct oct_error *err)
{
    struct wish *wish = context;
    wish->kernels = OCT_CUDA_FUSED;
    bool automatic = !wish->wanted || !find_kernels(wish->wanted, &wish->kernels);
    for (unsigned i = 0; i < choice->n_gpus; i++) {
        enum oct_err e = oct_cuda_can_run(choice->devices[i], wish->plan, wish->kernels, err);
        if (!e)
            continue;
        if (!automatic || wish->kernels == OCT_CUDA_PLAIN)
            return e;
        wish->kernels = OCT_CUDA_PLAIN;
        i = (unsigned)-1; /* from the first again */
    }
    return OCT_OK;
}

enum oct_err oct_cuda_kernels_choose(struct oct_cuda_choice *choice, enum oct_cuda_kernels *kernels,
                                     const struct oct_plan *plan,
                                     const struct oct_engine_options *options,
                                     struct oct_error *err)
{
    struct wish wish = {.plan = plan, .wanted = options->cuda};
    enum oct_err e = oct_cuda_choose(choice, options->gpus, can_do, &wish, err);
    *kernels = wish.kernels;
    return e;
}

const char *oct_cuda_kernels_name(enum oct_cuda_kernels kernels)
{
    return kernel_names[kernels];
}
