/* Pinned memory for the rings, and what copies between it and a device can do at best (for the
 * benchmark). Part of cuda_device.cu. */
#ifndef OCT_KERNELS_CUDA_MEMORY_CUH
#define OCT_KERNELS_CUDA_MEMORY_CUH

#include "kernels/device/cuda_device.h"
#include "kernels/device/cuda_error.cuh"

#include <atomic>
#include <cstring>
#include <pthread.h>
#include <time.h>

/* ---- pinned memory ---- */

/* Pinned through the device that computes: another one's context costs memory there, if that one
 * works at all. The last that a lane was made for. */
static std::atomic<int> pinning_device{-1};

static void select_for_pinning(void)
{
    const int device = pinning_device;
    if (device >= 0)
        cudaSetDevice(device);
}

static void *alloc_pinned(size_t bytes)
{
    void *memory = NULL;
    select_for_pinning();
    if (cudaHostAlloc(&memory, bytes, cudaHostAllocPortable) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    memset(memory, 0, bytes);
    return memory;
}

/* Engines whose threads were left to themselves and have not ended. */
static std::atomic<unsigned> n_holding{0};

extern "C" void oct_cuda_memory_hold(void)
{
    n_holding++;
}

extern "C" void oct_cuda_memory_let_go(void)
{
    n_holding--;
}

static bool is_held(void)
{
    return n_holding > 0;
}

#define RELEASE_S 3
#define HELD_NAP_NS 10000000

static void *free_pinned(void *memory)
{
    const struct timespec nap = {0, HELD_NAP_NS};
    while (is_held())
        nanosleep(&nap, NULL);
    select_for_pinning();
    cudaFreeHost(memory);
    return NULL;
}

static void release_pinned(void *memory, size_t bytes)
{
    pthread_t thread;
    struct timespec until;
    (void)bytes;
    if (!memory || pthread_create(&thread, NULL, free_pinned, memory))
        return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += is_held() ? 0 : RELEASE_S;
    if (pthread_timedjoin_np(thread, NULL, &until))
        pthread_detach(thread);
}

extern "C" const struct oct_memory_ops oct_cuda_memory = {alloc_pinned, release_pinned, is_held};

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

static enum oct_err time_both_ways(struct copies *c, int device, const size_t *bytes,
                                   unsigned n_rounds, double *seconds, struct oct_error *err)
{
    for (unsigned i = 0; i < 2; i++) {
        TRY(device, "pinned memory", cudaHostAlloc(&c->host[i], bytes[i], 0));
        TRY(device, "memory", cudaMalloc(&c->device[i], bytes[i]));
        TRY(device, "memory", cudaMemset(c->device[i], 0, bytes[i]));
        memset(c->host[i], 1, bytes[i]);
        TRY(device, "stream", cudaStreamCreateWithFlags(&c->stream[i], cudaStreamNonBlocking));
        c->n_streams++;
    }
    TRY(device, "copies", cudaDeviceSynchronize());
    double begin = seconds_now();
    for (unsigned round = 0; round < n_rounds; round++) {
        TRY(device, "copies",
            cudaMemcpyAsync(c->device[0], c->host[0], bytes[0], cudaMemcpyHostToDevice,
                            c->stream[0]));
        TRY(device, "copies",
            cudaMemcpyAsync(c->host[1], c->device[1], bytes[1], cudaMemcpyDeviceToHost,
                            c->stream[1]));
    }
    TRY(device, "copies", cudaStreamSynchronize(c->stream[0]));
    TRY(device, "copies", cudaStreamSynchronize(c->stream[1]));
    *seconds = seconds_now() - begin;
    return OCT_OK;
}

extern "C" enum oct_err oct_cuda_time_copies(unsigned device, size_t up, size_t down,
                                             unsigned n_rounds, double *seconds,
                                             struct oct_error *err)
{
    struct copies c = {};
    const size_t bytes[2] = {up, down};
    TRY((int)device, "select", cudaSetDevice((int)device));
    enum oct_err e = time_both_ways(&c, (int)device, bytes, n_rounds, seconds, err);
    copies_finish(&c);
    return e;
}

static enum oct_err time_within(struct copies *c, int device, size_t bytes, unsigned n_rounds,
                                double *seconds, struct oct_error *err)
{
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
    *seconds = seconds_now() - begin;
    return OCT_OK;
}

extern "C" enum oct_err oct_cuda_time_device_copy(unsigned device, size_t bytes, unsigned n_rounds,
                                                  double *seconds, struct oct_error *err)
{
    struct copies c = {};
    TRY((int)device, "select", cudaSetDevice((int)device));
    enum oct_err e = time_within(&c, (int)device, bytes, n_rounds, seconds, err);
    copies_finish(&c);
    return e;
}

#endif
