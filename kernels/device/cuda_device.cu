/* Devices, pinned memory, and what copies between it and a device can do at best. */
#include "kernels/device/cuda_device.h"
#include "kernels/device/cuda_error.cuh"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <time.h>

/* ---- what is there ---- */

#define OCT_TEXT(x) #x
#define OCT_TEXT_OF(x) OCT_TEXT(x)
#ifndef OCT_CUDA_ARCHS
#define OCT_CUDA_ARCHS "one architecture"
#endif

extern "C" const char *oct_cuda_built_with(void)
{
    return "CUDA runtime " OCT_TEXT_OF(CUDART_VERSION) " for " OCT_CUDA_ARCHS;
}

/* Streams share the driver's queues: with its default what one waits for holds up others
 * (docs/performance.md, blood flow). Before the first call of CUDA, which comes while a program
 * starts; a value that is set already stays. */
static void ask_for_queues(void)
{
    static std::once_flag once;
    std::call_once(once, [] { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); });
}

extern "C" unsigned oct_cuda_count(char *why, size_t why_bytes)
{
    int n = 0;
    ask_for_queues();
    cudaError_t code = cudaGetDeviceCount(&n);
    if (code == cudaSuccess && n > 0)
        return (unsigned)n;
    if (code == cudaSuccess)
        snprintf(why, why_bytes, "the driver knows of none");
    else
        snprintf(why, why_bytes, "%s (%s)", cudaGetErrorString(code), cudaGetErrorName(code));
    cudaGetLastError(); /* not a fault of what comes later */
    return 0;
}

extern "C" enum oct_err oct_cuda_name(unsigned device, char *name, size_t name_bytes,
                                      struct oct_error *err)
{
    cudaDeviceProp properties;
    TRY((int)device, "properties", cudaGetDeviceProperties(&properties, (int)device));
    snprintf(name, name_bytes, "%s", properties.name);
    return OCT_OK;
}

static __global__ void oct_probe_kernel()
{
}

extern "C" enum oct_err oct_cuda_answers(unsigned device, struct oct_error *err)
{
    cudaFuncAttributes attributes;
    TRY((int)device, "select", cudaSetDevice((int)device));
    cudaError_t code = cudaFuncGetAttributes(&attributes, (const void *)oct_probe_kernel);
    if (code == cudaSuccess)
        return OCT_OK;
    cudaGetLastError();
    return cuda_fail(err, (int)device, "this build has no code for it", code);
}

/* ---- pinned memory ---- */

static std::atomic<int> pinning_device{-1};

extern "C" void oct_cuda_pin_through(unsigned device)
{
    pinning_device = (int)device;
}

static void select_for_pinning(void)
{
    const int device = pinning_device;
    if (device >= 0)
        cudaSetDevice(device);
}

extern "C" void *oct_cuda_pin(size_t bytes)
{
    void *memory = NULL;
    select_for_pinning();
    if (cudaHostAlloc(&memory, bytes, cudaHostAllocPortable) == cudaSuccess)
        return memory;
    cudaGetLastError();
    return NULL;
}

extern "C" void oct_cuda_unpin(void *memory)
{
    select_for_pinning();
    cudaFreeHost(memory);
}

extern "C" bool oct_cuda_register(void *memory, size_t bytes)
{
    select_for_pinning();
    if (cudaHostRegister(memory, bytes, cudaHostRegisterPortable) == cudaSuccess)
        return true;
    cudaGetLastError();
    return false;
}

extern "C" void oct_cuda_unregister(void *memory)
{
    select_for_pinning();
    if (cudaHostUnregister(memory) != cudaSuccess)
        cudaGetLastError();
}

extern "C" void *oct_cuda_take_memory(size_t bytes, unsigned device)
{
    void *memory = NULL;
    if (cudaSetDevice((int)device) == cudaSuccess && cudaMalloc(&memory, bytes) == cudaSuccess)
        return memory;
    cudaGetLastError();
    return NULL;
}

extern "C" void oct_cuda_free_memory(void *memory, unsigned device)
{
    cudaSetDevice((int)device);
    cudaFree(memory);
}

/* ---- for the benchmark ---- */

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Two directions of a copy, or one within the device. */
struct copies {
    void *host[2], *device[2];
    cudaStream_t stream[2];
    unsigned n_streams;
};

static void copies_finish(struct copies *c)
{
    for (unsigned i = 0; i < 2; i++) {
        cudaFreeHost(c->host[i]);
        cudaFree(c->device[i]);
    }
    for (unsigned i = 0; i < c->n_streams; i++)
        cudaStreamDestroy(c->stream[i]);
}

static enum oct_err time_both_ways(struct copies *c, int device, const struct oct_cuda_way *ways,
                                   unsigned n_rounds, double *seconds, struct oct_error *err)
{
    const struct oct_cuda_way up = ways[0], down = ways[1];
    for (unsigned i = 0; i < 2; i++) {
        const size_t bytes = ways[i].bytes * ways[i].n_places;
        TRY(device, "pinned memory", cudaHostAlloc(&c->host[i], bytes, 0));
        TRY(device, "memory", cudaMalloc(&c->device[i], ways[i].bytes));
        TRY(device, "memory", cudaMemset(c->device[i], 0, ways[i].bytes));
        memset(c->host[i], 1, bytes);
        TRY(device, "stream", cudaStreamCreateWithFlags(&c->stream[i], cudaStreamNonBlocking));
        c->n_streams++;
    }
    TRY(device, "copies", cudaDeviceSynchronize());
    double begin = seconds_now();
    for (unsigned round = 0; round < n_rounds; round++) {
        TRY(device, "copies",
            cudaMemcpyAsync(c->device[0], (char *)c->host[0] + round % up.n_places * up.bytes,
                            up.bytes, cudaMemcpyHostToDevice, c->stream[0]));
        TRY(device, "copies",
            cudaMemcpyAsync((char *)c->host[1] + round % down.n_places * down.bytes, c->device[1],
                            down.bytes, cudaMemcpyDeviceToHost, c->stream[1]));
    }
    TRY(device, "copies", cudaStreamSynchronize(c->stream[0]));
    TRY(device, "copies", cudaStreamSynchronize(c->stream[1]));
    *seconds = seconds_now() - begin;
    return OCT_OK;
}

extern "C" enum oct_err oct_cuda_time_copies(unsigned device, struct oct_cuda_way up,
                                             struct oct_cuda_way down, unsigned n_rounds,
                                             double *seconds, struct oct_error *err)
{
    struct copies c = {};
    const struct oct_cuda_way ways[2] = {up, down};
    TRY((int)device, "select", cudaSetDevice((int)device));
    enum oct_err e = time_both_ways(&c, (int)device, ways, n_rounds, seconds, err);
    copies_finish(&c);
    return e;
}

static enum oct_err time_within(struct copies *c, int device, size_t most_bytes, unsigned n_rounds,
                                double *bytes_per_s, struct oct_error *err)
{
    size_t available, total;
    TRY(device, "free memory", cudaMemGetInfo(&available, &total));
    const size_t bytes = available / 4 < most_bytes ? available / 4 : most_bytes;
    TRY(device, "memory", cudaMalloc(&c->device[0], bytes));
    TRY(device, "memory", cudaMalloc(&c->device[1], bytes));
    TRY(device, "memory", cudaMemset(c->device[0], 0, bytes));
    TRY(device, "stream", cudaStreamCreateWithFlags(&c->stream[0], cudaStreamNonBlocking));
    c->n_streams = 1;
    TRY(device, "copies", cudaDeviceSynchronize());
    double begin = seconds_now();
    for (unsigned round = 0; round < n_rounds; round++)
        TRY(device, "copies",
            cudaMemcpyAsync(c->device[1], c->device[0], bytes, cudaMemcpyDeviceToDevice,
                            c->stream[0]));
    TRY(device, "copies", cudaStreamSynchronize(c->stream[0]));
    *bytes_per_s = 2.0 * (double)bytes * n_rounds / (seconds_now() - begin);
    return OCT_OK;
}

extern "C" enum oct_err oct_cuda_time_device_copy(unsigned device, size_t most_bytes,
                                                  unsigned n_rounds, double *bytes_per_s,
                                                  struct oct_error *err)
{
    struct copies c = {};
    TRY((int)device, "select", cudaSetDevice((int)device));
    enum oct_err e = time_within(&c, (int)device, most_bytes, n_rounds, bytes_per_s, err);
    copies_finish(&c);
    return e;
}
