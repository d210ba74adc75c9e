#include "kernels/device/cuda_stream.cuh"
#include "test/rig/scale_task.h"

#include <atomic>
#include <cstring>
#include <new>

#define THREADS 64

static std::atomic<unsigned> n_contexts{0};

struct context {
    struct oct_cuda_stream *stream;
    uint32_t factor, n;
    uint32_t *h_in, *h_out; /* [n + 1]: the sum comes last */
    uint32_t *d_in, *d_out;
    bool refused;
};

static __global__ void scale_kernel(const uint32_t *in, uint32_t *out, uint32_t n, uint32_t factor)
{
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        out[i] = factor * in[i];
}

static __global__ void sum_kernel(uint32_t *out, uint32_t n)
{
    OCT_SHARED(uint32_t, part);
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    part[threadIdx.x] = i < n ? out[i] : 0;
    __syncthreads();
    for (uint32_t half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        atomicAdd(&out[n], part[0]);
}

static void scale_take(void *argument, const void *task)
{
    struct context *c = (struct context *)argument;
    const struct scale_task *from = (const struct scale_task *)task;
    memcpy(c->h_in, from->in, c->n * sizeof(uint32_t));
    c->refused = from->refused;
}

static enum oct_err scale_begin(void *argument, struct oct_error *err)
{
    struct context *c = (struct context *)argument;
    const dim3 grid((c->n + THREADS - 1) / THREADS), block(THREADS);
    const size_t bytes = c->n * sizeof(uint32_t);
    enum oct_err e = oct_cuda_stream_upload(c->stream, c->d_in, c->h_in, bytes, err);
    if (!e)
        e = oct_cuda_stream_clear(c->stream, c->d_out + c->n, sizeof(uint32_t), err);
    if (e)
        return e;
    OCT_LAUNCH((scale_kernel), grid, block, 0, c->stream->stream, c->d_in, c->d_out, c->n,
               c->factor);
    if (c->refused)
        return oct_fail(err, OCT_E_ARG, "a task that is refused");
    OCT_LAUNCH((sum_kernel), grid, block, THREADS * sizeof(uint32_t), c->stream->stream, c->d_out,
               c->n);
    return oct_cuda_stream_download(c->stream, c->h_out, c->d_out, bytes + sizeof(uint32_t), err);
}

static void scale_give(void *argument, void *task)
{
    struct context *c = (struct context *)argument;
    struct scale_task *to = (struct scale_task *)task;
    memcpy(to->out, c->h_out, c->n * sizeof(uint32_t));
    to->sum = c->h_out[c->n];
}

static void scale_unmake(void *argument)
{
    delete (struct context *)argument;
    n_contexts--;
}

static enum oct_err scale_make(void **out, struct oct_cuda_stream *stream, const void *setup,
                               struct oct_error *err)
{
    const struct scale_setup *from = (const struct scale_setup *)setup;
    *out = NULL;
    if (from->factor == 0)
        return oct_fail(err, OCT_E_CONFIG, "factor is 0");
    struct context *c = new (std::nothrow) context();
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    n_contexts++;
    c->stream = stream;
    c->factor = from->factor;
    c->n = (uint32_t)from->n;
    enum oct_err e = oct_stream_pin(stream, &c->h_in, from->n, err);
    if (!e)
        e = oct_stream_pin(stream, &c->h_out, from->n + 1, err);
    if (!e)
        e = oct_stream_alloc(stream, &c->d_in, from->n, err);
    if (!e)
        e = oct_stream_alloc(stream, &c->d_out, from->n + 1, err);
    if (!e) { /* loads the kernels, which takes long on a device */
        memset(c->h_in, 0, from->n * sizeof(uint32_t));
        e = scale_begin(c, err);
    }
    oct_cuda_stream_drain(stream);
    if (e) {
        scale_unmake(c);
        return e;
    }
    *out = c;
    return OCT_OK;
}

extern "C" unsigned scale_task_n_contexts(void)
{
    return n_contexts;
}

extern "C" const struct oct_cuda_task_ops scale_task_ops = {"scaling",   scale_make, scale_take,
                                                            scale_begin, scale_give, scale_unmake};
