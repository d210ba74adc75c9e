/* Which GPUs and which kernels the CUDA engine takes, by its options. */
#ifndef OCT_KERNELS_RECON_CUDA_KERNELS_H
#define OCT_KERNELS_RECON_CUDA_KERNELS_H

#include "kernels/device/cuda_choice.h"
#include "kernels/recon/cuda_recon.h"

/* What can be judged without a GPU: names and numbers. OCT_E_CONFIG names the option. */
enum oct_err oct_cuda_kernels_check(const struct oct_engine_options *options,
                                    struct oct_error *err);

/* *kernels: the same on all devices of the choice. OCT_E_BACKEND: no GPU answers, or none can run
 * the kernels. OCT_E_CONFIG: pipeline.gpus names what is not there. */
enum oct_err oct_cuda_kernels_choose(struct oct_cuda_choice *choice, enum oct_cuda_kernels *kernels,
                                     const struct oct_plan *plan,
                                     const struct oct_engine_options *options,
                                     struct oct_error *err);

/* "fused", "plain" */
const char *oct_cuda_kernels_name(enum oct_cuda_kernels kernels);

#endif
