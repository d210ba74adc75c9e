/* Chooses GPUs by pipeline.gpus. It asks the driver, so a call may block for ever. */
#ifndef OCT_KERNELS_DEVICE_CUDA_CHOICE_H
#define OCT_KERNELS_DEVICE_CUDA_CHOICE_H

#include "pipeline/base/err.h"

#include <stddef.h>

#define OCT_CUDA_MAX_GPUS 16u

struct oct_cuda_choice {
    unsigned n_gpus;
    unsigned devices[OCT_CUDA_MAX_GPUS]; /* each once, in the order of pipeline.gpus */
};

/* gpus: "0,1", or NULL or "" for the first that will do. can_do (NULL: every device that answers
 * will do) says whether the devices of a choice, together, can do what they are chosen for.
 * OCT_E_BACKEND: no GPU answers; OCT_E_CONFIG: gpus names what is not there; else can_do's error,
 * of the first device where none will do. */
enum oct_err oct_cuda_choose(struct oct_cuda_choice *choice, const char *gpus,
                             enum oct_err (*can_do)(void *context,
                                                    const struct oct_cuda_choice *choice,
                                                    struct oct_error *err),
                             void *context, struct oct_error *err);

/* "GPU 0: NAME, GPU 1: NAME" */
enum oct_err oct_cuda_choice_describe(const struct oct_cuda_choice *choice, char *text,
                                      size_t text_bytes, struct oct_error *err);

#endif
