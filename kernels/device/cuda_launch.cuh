/* The few words in which device and host builds of these sources differ. On a GPU they are CUDA's
 * own; the tests' stand-in for cuda_runtime.h (test/cuda_host/) brings its own and defines
 * OCT_LAUNCH first. */
#ifndef OCT_KERNELS_CUDA_LAUNCH_CUH
#define OCT_KERNELS_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>

#ifndef OCT_LAUNCH
/* kernel may be a template instance with commas: wrap it in parentheses. */
#define OCT_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                 \
    (kernel)<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
/* Dynamic shared memory as an array of `type`. */
#define OCT_SHARED(type, name)                                                                     \
    extern __shared__ __align__(16) unsigned char oct_shared_memory[];                             \
    type *name = reinterpret_cast<type *>(oct_shared_memory)
#endif

#endif
