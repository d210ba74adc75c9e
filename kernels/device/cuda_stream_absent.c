/* In place of cuda_stream.cu in a build without CUDA. No stream can be created, so that nothing but
 * create and destroy is ever called. */
#include "kernels/device/cuda_stream.h"

static enum oct_err refuse(struct oct_error *err)
{
    return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA");
}

enum oct_err oct_cuda_stream_create(struct oct_cuda_stream **stream, unsigned device,
                                    struct oct_cuda_signs *signs, struct oct_error *err)
{
    (void)device, (void)signs;
    *stream = NULL;
    return refuse(err);
}

void oct_cuda_stream_drain(struct oct_cuda_stream *stream)
{
    (void)stream;
}

void oct_cuda_stream_destroy(struct oct_cuda_stream *stream)
{
    (void)stream;
}

enum oct_err oct_cuda_stream_alloc(struct oct_cuda_stream *stream, void **d_memory, size_t bytes,
                                   struct oct_error *err)
{
    (void)stream, (void)d_memory, (void)bytes;
    return refuse(err);
}

enum oct_err oct_cuda_stream_pin(struct oct_cuda_stream *stream, void **h_memory, size_t bytes,
                                 struct oct_error *err)
{
    (void)stream, (void)h_memory, (void)bytes;
    return refuse(err);
}

enum oct_err oct_cuda_stream_upload(struct oct_cuda_stream *stream, void *d_to, const void *h_from,
                                    size_t bytes, struct oct_error *err)
{
    (void)stream, (void)d_to, (void)h_from, (void)bytes;
    return refuse(err);
}

enum oct_err oct_cuda_stream_download(struct oct_cuda_stream *stream, void *h_to,
                                      const void *d_from, size_t bytes, struct oct_error *err)
{
    (void)stream, (void)h_to, (void)d_from, (void)bytes;
    return refuse(err);
}

enum oct_err oct_cuda_stream_clear(struct oct_cuda_stream *stream, void *d_memory, size_t bytes,
                                   struct oct_error *err)
{
    (void)stream, (void)d_memory, (void)bytes;
    return refuse(err);
}

enum oct_err oct_cuda_stream_mark(struct oct_cuda_stream *stream, struct oct_error *err)
{
    (void)stream;
    return refuse(err);
}

enum oct_err oct_cuda_stream_poll(struct oct_cuda_stream *stream, struct oct_error *err)
{
    (void)stream;
    return refuse(err);
}
