/* The few words in which device and host builds of these sources differ. On a GPU they are CUDA's
 * own; the tests' stand-in for cuda_runtime.h (test/cuda_host/) brings its own and defines
 * OCT_LAUNCH first. */
#ifndef OCT_KERNELS_CUDA_LAUNCH_CUH
#define OCT_KERNELS_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>

#define OCT_OVERLAP_ARCH 900 /* from which on a kernel can wait by itself for those before it */

#ifndef OCT_LAUNCH
/* kernel may be a template instance with commas: wrap it in parentheses. */
#define OCT_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                 \
    (kernel)<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
/* The launch of a kernel that begins with oct_await_before(), on a struct oct_cuda_stream. Where
 * the device can (programmatic dependent launch) it goes on while the kernel before it still ends:
 * a launch costs a microsecond less. Before it in the stream comes a kernel, or, of the second
 * form, there may come a copy or another stream's event: then it is a plain launch. */
#define OCT_LAUNCH_NEXT(kernel, grid, block, shared_bytes, on, ...)                                \
    OCT_LAUNCH_NEXT_IF(true, kernel, grid, block, shared_bytes, on, __VA_ARGS__)
#define OCT_LAUNCH_NEXT_IF(is_kernel_before, kernel, grid, block, shared_bytes, on, ...)           \
    oct_launch_next((kernel), grid, block, shared_bytes, (on)->stream,                             \
                    (is_kernel_before) && (on)->overlaps, __VA_ARGS__)

template <class... Parameters, class... Arguments>
static inline void oct_launch_next(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                   size_t shared_bytes, cudaStream_t stream, bool overlaps,
                                   const Arguments &...arguments)
{
#if CUDART_VERSION >= 11080
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = grid;
    launch.blockDim = block;
    launch.dynamicSmemBytes = shared_bytes;
    launch.stream = stream;
    launch.attrs = &early;
    launch.numAttrs = overlaps;
    cudaLaunchKernelEx(&launch, kernel, static_cast<Parameters>(arguments)...);
#else
    (void)overlaps;
    kernel<<<grid, block, shared_bytes, stream>>>(arguments...);
#endif
}

/* Dynamic shared memory as an array of `type`. */
#define OCT_SHARED(type, name)                                                                     \
    extern __shared__ __align__(16) unsigned char oct_shared_memory[];                             \
    type *name = reinterpret_cast<type *>(oct_shared_memory)
#endif

/* The first statement of a kernel, by every thread: after it, what was queued before is done and
 * seen, if all kernels that OCT_LAUNCH_NEXT launched before begin with it, too. */
static __device__ __forceinline__ void oct_await_before()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= OCT_OVERLAP_ARCH
    cudaGridDependencySynchronize();
#endif
}

#endif
