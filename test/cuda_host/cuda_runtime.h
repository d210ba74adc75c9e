/* Stands for CUDA's cuda_runtime.h where there is no GPU: with this folder first on the include
 * path the .cu files compile as plain C++ and their kernels run on the host (cuda_host.h).
 *
 * Faithful in what mistakes show in: a block's threads are fibers that change hands only at
 * __syncthreads and __syncwarp, forwards and backwards in turn, so that a missing barrier gives
 * wrong pictures; blocks of a launch run on two threads; a stream is a thread with a queue, so that
 * a missing wait shows; device and shared memory are malloc'd to the byte, so that AddressSanitizer
 * sees what lies outside, and filled with NaNs. Only what the engines use is here. */
#ifndef OCT_TEST_CUDA_RUNTIME_H
#define OCT_TEST_CUDA_RUNTIME_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>

#define CUDART_VERSION 0
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static thread_local

struct float2 {
    float x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct float4 {
    float x, y, z, w;
};
struct cuda_host_index {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    explicit dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure = 719
};
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice
};
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum { cudaStreamNonBlocking = 1, cudaHostAllocPortable = 1, cudaHostRegisterPortable = 1 };

struct cudaDeviceProp {
    char name[256];
};
struct cudaFuncAttributes {
    int numRegs, ptxVersion;
};
typedef struct cuda_host_stream *cudaStream_t;
typedef struct cuda_host_event *cudaEvent_t;

const char *cudaGetErrorString(cudaError_t code);
const char *cudaGetErrorName(cudaError_t code);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel);
cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *memory);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemset(void *memory, int value, size_t bytes);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaEventDestroy(cudaEvent_t event);

/* ---- launches ---- */

/* Arguments are copied at the call, as CUDA does. */
void cuda_host_launch(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                      const void *kernel, std::function<void()> thread);

template <class... P, class... A>
void cuda_host_call(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                    cudaStream_t stream, const A &...arguments)
{
    std::tuple<P...> copied(arguments...);
    cuda_host_launch(grid, block, shared_bytes, stream, (const void *)kernel,
                     [kernel, copied] { std::apply(kernel, copied); });
}

#define OCT_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                 \
    cuda_host_call((kernel), grid, block, shared_bytes, stream, __VA_ARGS__)
#define OCT_LAUNCH_NEXT(kernel, grid, block, shared_bytes, on, ...)                                \
    OCT_LAUNCH(kernel, grid, block, shared_bytes, (on)->stream, __VA_ARGS__)
#define OCT_LAUNCH_NEXT_IF(is_kernel_before, kernel, grid, block, shared_bytes, on, ...)           \
    OCT_LAUNCH(kernel, grid, block, shared_bytes, (on)->stream, __VA_ARGS__)
#define OCT_SHARED(type, name) type *name = static_cast<type *>(cuda_host_shared())

/* ---- inside kernels ---- */

struct cuda_host_thread {
    cuda_host_index thread, block;
    void *shared;
    unsigned n_exchanges; /* with the lanes of its warp */
};

cuda_host_thread *cuda_host_current();
void *cuda_host_shared();
void __syncthreads();
void __syncwarp();
uint64_t *cuda_host_slots();

#define threadIdx (cuda_host_current()->thread)
#define blockIdx (cuda_host_current()->block)

static inline float2 make_float2(float x, float y)
{
    return {x, y};
}
static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}
/* Lanes show each other a value: what each has shown, [32], up to the next exchange but one. Of
 * whole warps, in blocks of one dimension. */
template <class T> static inline const uint64_t *cuda_host_exchange(T value)
{
    cuda_host_thread *t = cuda_host_current();
    const unsigned lane = t->thread.x % 32, first = t->thread.x - lane;
    uint64_t *shown = cuda_host_slots() + 2 * first + t->n_exchanges++ % 2 * 32;
    std::memcpy(&shown[lane], &value, sizeof(value));
    __syncwarp();
    return shown;
}
template <class T> static inline T __shfl_sync(unsigned, T value, int lane)
{
    T other;
    std::memcpy(&other, cuda_host_exchange(value) + (unsigned)lane % 32, sizeof(other));
    return other;
}
template <class T> static inline T __shfl_xor_sync(unsigned lanes, T value, int mask)
{
    return __shfl_sync(lanes, value, (int)(cuda_host_current()->thread.x % 32) ^ mask);
}
static inline uint32_t __ballot_sync(unsigned, bool own)
{
    const uint64_t *shown = cuda_host_exchange((uint64_t)own);
    uint32_t bits = 0;
    for (int lane = 0; lane < 32; lane++)
        bits |= (uint32_t)shown[lane] << lane;
    return bits;
}
static inline double __dadd_rn(double a, double b)
{
    return a + b;
}
static inline double __dsub_rn(double a, double b)
{
    return a - b;
}
static inline double __dmul_rn(double a, double b)
{
    return a * b;
}
static inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}
static inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}
static inline void __threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
template <class T> static inline T __ldg(const T *p)
{
    return *p;
}
static inline float rsqrtf(float v)
{
    return 1 / sqrtf(v);
}
static inline float __fdividef(float a, float b)
{
    return a / b;
}
static inline int __float_as_int(float x)
{
    int i;
    std::memcpy(&i, &x, sizeof(i));
    return i;
}
static inline float __int_as_float(int i)
{
    float x;
    std::memcpy(&x, &i, sizeof(x));
    return x;
}
template <class T> static inline T min(T a, T b)
{
    return a < b ? a : b;
}
template <class T> static inline T max(T a, T b)
{
    return a > b ? a : b;
}
static inline uint32_t atomicAdd(uint32_t *at, uint32_t value)
{
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
static inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long value)
{
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
template <class T> static inline T atomicMin(T *at, T value)
{
    T old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (value < old &&
           !__atomic_compare_exchange_n(at, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return old;
}
template <class T> static inline T atomicMax(T *at, T value)
{
    T old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (value > old &&
           !__atomic_compare_exchange_n(at, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return old;
}

#endif
