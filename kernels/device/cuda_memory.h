/* Host memory that is lent to GPUs: pinned where the driver pins it, plain pages where it refuses,
 * and kept for as long as a device that hangs may still write there. Any thread. */
#ifndef OCT_KERNELS_DEVICE_CUDA_MEMORY_H
#define OCT_KERNELS_DEVICE_CUDA_MEMORY_H

#include "pipeline/flow/engine.h"

#include <stdbool.h>

/* release waits a short while for the device, and not at all while memory is held; then the memory
 * is given back later, if ever. */
extern const struct oct_memory_ops oct_cuda_memory;

/* From hold to let_go no memory is given back: threads that an engine has left to themselves may
 * still use what it was lent. Counted. */
void oct_cuda_memory_hold(void);
void oct_cuda_memory_let_go(void);

/* Whether anybody holds memory: a device may still write to what it was lent. */
bool oct_cuda_memory_is_held(void);

#endif
