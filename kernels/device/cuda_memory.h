/* Memory that is lent to GPUs: the host's, pinned where the driver pins it, plain pages where it
 * refuses, or a GPU's own, and kept for as long as a device that hangs may still write there. Any
 * thread. */
#ifndef OCT_KERNELS_DEVICE_CUDA_MEMORY_H
#define OCT_KERNELS_DEVICE_CUDA_MEMORY_H

#include "pipeline/flow/engine.h"

#include <stdbool.h>

/* release waits a short while for the device; while memory is held it does not wait. In both cases
 * the memory may be freed later, or never. */
extern const struct oct_memory_ops oct_cuda_memory;

/* Between hold and let_go no memory is freed: threads that an engine has abandoned may still use
 * what it was lent. Calls of hold are counted. */
void oct_cuda_memory_hold(void);
void oct_cuda_memory_let_go(void);

/* Returns whether anybody holds memory, that is, whether a device may still write to it. */
bool oct_cuda_memory_is_held(void);

#endif
