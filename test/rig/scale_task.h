/* A small task for a CUDA worker, as an analysis would bring one: every number times a factor, and
 * the sum of all results. Its device half is scale_task.cu. */
#ifndef OCT_TEST_RIG_SCALE_TASK_H
#define OCT_TEST_RIG_SCALE_TASK_H

#include "kernels/device/cuda_task.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Setup. factor 0 cannot be: make refuses it with OCT_E_CONFIG. */
struct scale_setup {
    uint32_t factor;
    size_t n; /* numbers a task */
};

struct scale_task {
    const uint32_t *in; /* [n] */
    uint32_t *out;      /* [n] */
    uint32_t sum;       /* modulo 2^32 */
    bool refused;       /* begin queues a part and then refuses it with OCT_E_ARG */
};

extern const struct oct_cuda_task_ops scale_task_ops;

/* Contexts that there are. */
unsigned scale_task_n_contexts(void);

#ifdef __cplusplus
}
#endif

#endif
