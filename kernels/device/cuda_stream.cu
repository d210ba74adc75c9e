#include "kernels/device/cuda_stream.cuh"

#include <new>

static __global__ void empty_kernel()
{
}

/* Whether the kernels that this device runs were compiled such that oct_await_before waits. */
static enum oct_err look_for_overlap(struct oct_cuda_stream *on, struct oct_error *err)
{
    cudaFuncAttributes code = {};
    TRY_STREAM(on, "code", cudaFuncGetAttributes(&code, (const void *)empty_kernel));
    on->overlaps = code.ptxVersion * 10 >= OCT_OVERLAP_ARCH;
    return OCT_OK;
}

enum oct_err oct_cuda_stream_open(struct oct_cuda_stream *on, unsigned device,
                                  struct oct_cuda_signs *signs, struct oct_error *err)
{
    on->device = (int)device;
    on->signs = signs;
    TRY_STREAM(on, "select", cudaSetDevice(on->device));
    TRY_STREAM(on, "stream", cudaStreamCreateWithFlags(&on->stream, cudaStreamNonBlocking));
    on->has_stream = true;
    TRY_STREAM(on, "event", cudaEventCreate(&on->done));
    on->has_done = true;
    return look_for_overlap(on, err);
}

static void note(struct oct_cuda_stream *on, cudaError_t)
{
    oct_cuda_signs_note_call(on->signs);
}

extern "C" void oct_cuda_stream_drain(struct oct_cuda_stream *on)
{
    if (on->has_stream)
        note(on, cudaStreamSynchronize(on->stream));
}

void oct_cuda_stream_close(struct oct_cuda_stream *on)
{
    for (unsigned i = 0; i < on->n_owned; i++)
        note(on, cudaFree(on->owned[i]));
    for (unsigned i = 0; i < on->n_pinned; i++)
        note(on, cudaFreeHost(on->pinned[i]));
    if (on->has_done)
        note(on, cudaEventDestroy(on->done));
    if (on->has_stream)
        note(on, cudaStreamDestroy(on->stream));
}

extern "C" enum oct_err oct_cuda_stream_create(struct oct_cuda_stream **out, unsigned device,
                                               struct oct_cuda_signs *signs, struct oct_error *err)
{
    *out = NULL;
    struct oct_cuda_stream *on = new (std::nothrow) oct_cuda_stream();
    if (!on)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a CUDA stream");
    enum oct_err e = oct_cuda_stream_open(on, device, signs, err);
    if (e)
        oct_cuda_stream_destroy(on);
    else
        *out = on;
    return e;
}

extern "C" void oct_cuda_stream_destroy(struct oct_cuda_stream *on)
{
    if (!on)
        return;
    oct_cuda_stream_drain(on);
    oct_cuda_stream_close(on);
    delete on;
}

extern "C" enum oct_err oct_cuda_stream_alloc(struct oct_cuda_stream *on, void **memory,
                                              size_t bytes, struct oct_error *err)
{
    *memory = NULL;
    if (on->n_owned == OCT_CUDA_MAX_OWNED)
        return oct_fail(err, OCT_E_NO_MEMORY, "GPU %d: more than %d pieces of memory", on->device,
                        OCT_CUDA_MAX_OWNED);
    cudaError_t code = cudaMalloc(memory, bytes);
    oct_cuda_signs_note_call(on->signs);
    if (code != cudaSuccess) {
        size_t available = 0, total = 0;
        cudaGetLastError();
        cudaMemGetInfo(&available, &total);
        return oct_fail(err, code == cudaErrorMemoryAllocation ? OCT_E_NO_MEMORY : OCT_E_BACKEND,
                        "GPU %d: no room for %zu bytes with %zu MiB free: %s", on->device, bytes,
                        available >> 20, cudaGetErrorString(code));
    }
    on->owned[on->n_owned++] = *memory;
    return OCT_OK;
}

extern "C" enum oct_err oct_cuda_stream_pin(struct oct_cuda_stream *on, void **memory, size_t bytes,
                                            struct oct_error *err)
{
    *memory = NULL;
    if (on->n_pinned == OCT_CUDA_MAX_OWNED)
        return oct_fail(err, OCT_E_NO_MEMORY, "GPU %d: more than %d pieces of pinned memory",
                        on->device, OCT_CUDA_MAX_OWNED);
    TRY_STREAM(on, "pinned memory", cudaHostAlloc(memory, bytes, 0));
    on->pinned[on->n_pinned++] = *memory;
    return OCT_OK;
}

extern "C" enum oct_err oct_cuda_stream_upload(struct oct_cuda_stream *on, void *d_to,
                                               const void *h_from, size_t bytes,
                                               struct oct_error *err)
{
    TRY_STREAM(on, "upload",
               cudaMemcpyAsync(d_to, h_from, bytes, cudaMemcpyHostToDevice, on->stream));
    return OCT_OK;
}

extern "C" enum oct_err oct_cuda_stream_download(struct oct_cuda_stream *on, void *h_to,
                                                 const void *d_from, size_t bytes,
                                                 struct oct_error *err)
{
    TRY_STREAM(on, "download",
               cudaMemcpyAsync(h_to, d_from, bytes, cudaMemcpyDeviceToHost, on->stream));
    return OCT_OK;
}

extern "C" enum oct_err oct_cuda_stream_clear(struct oct_cuda_stream *on, void *d_memory,
                                              size_t bytes, struct oct_error *err)
{
    TRY_STREAM(on, "clear", cudaMemsetAsync(d_memory, 0, bytes, on->stream));
    return OCT_OK;
}

extern "C" enum oct_err oct_cuda_stream_mark(struct oct_cuda_stream *on, struct oct_error *err)
{
    TRY_STREAM(on, "kernels", cudaGetLastError());
    TRY_STREAM(on, "event", cudaEventRecord(on->done, on->stream));
    return OCT_OK;
}

extern "C" enum oct_err oct_cuda_stream_poll(struct oct_cuda_stream *on, struct oct_error *err)
{
    cudaError_t code = cudaEventQuery(on->done);
    oct_cuda_signs_note_call(on->signs);
    if (code == cudaErrorNotReady) /* taken back, or the next launch's check would find it */
        return (void)cudaGetLastError(), OCT_E_AGAIN;
    TRY_STREAM(on, "work", code);
    return OCT_OK;
}
