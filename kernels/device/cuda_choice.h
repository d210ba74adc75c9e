/* Which GPUs and which kernels the CUDA engine takes, by its options. */
#ifndef OCT_KERNELS_DEVICE_CUDA_CHOICE_H
#define OCT_KERNELS_DEVICE_CUDA_CHOICE_H

#include "kernels/device/cuda_device.h"

#define OCT_CUDA_MAX_GPUS 16u

struct oct_cuda_choice {
    unsigned n_gpus;
    unsigned devices[OCT_CUDA_MAX_GPUS]; /* each once, in the order of pipeline.gpus */
    enum oct_cuda_kernels kernels;       /* the same on all */
};

/* What can be judged without a GPU: names and numbers. OCT_E_CONFIG names the option. */
enum oct_err oct_cuda_check_options(const struct oct_engine_options *options,
                                    struct oct_error *err);

/* OCT_E_BACKEND: no GPU answers, or none can run the kernels. OCT_E_CONFIG: pipeline.gpus names
 * what is not there. */
enum oct_err oct_cuda_choose(struct oct_cuda_choice *choice, const struct oct_plan *plan,
                             const struct oct_engine_options *options, struct oct_error *err);

/* One line: "GPU 0: NAME; fused kernels, 3 streams, batches of 16". */
enum oct_err oct_cuda_describe(const struct oct_cuda_choice *choice, unsigned n_streams,
                               unsigned max_batch, char *text, size_t text_bytes,
                               struct oct_error *err);

#endif
