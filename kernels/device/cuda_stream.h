/* A stream on a device and the memory that goes with it, as plain C sees them; so that an analysis'
 * own .cu file (with cuda_stream.cuh) launches its kernels and nothing else.
 *
 *     create -> alloc, pin ... -> { upload, kernels, download, mark, poll ... } -> destroy
 *
 * All calls for a stream come from one thread, a worker's (cuda_worker.h); any of them may block
 * for ever when the device hangs. Each notes in the worker's signs that it came back. Errors
 * are OCT_E_BACKEND, or OCT_E_NO_MEMORY, and name the device and the reason. */
#ifndef OCT_KERNELS_DEVICE_CUDA_STREAM_H
#define OCT_KERNELS_DEVICE_CUDA_STREAM_H

#include "kernels/device/cuda_device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct oct_cuda_stream;

/* The device is the thread's current one from here on. *stream is NULL on error. signs outlive the
 * stream. */
enum oct_err oct_cuda_stream_create(struct oct_cuda_stream **stream, unsigned device,
                                    struct oct_cuda_signs *signs, struct oct_error *err);

/* Waits for all that was queued, as the driver does: for ever if the device hangs. */
void oct_cuda_stream_drain(struct oct_cuda_stream *stream);

/* Drains the stream and frees all memory of the stream. NULL is fine. */
void oct_cuda_stream_destroy(struct oct_cuda_stream *stream);

/* Allocates memory that the stream owns until destroy, on the device or pinned on the host. It is
 * not zeroed. A single piece cannot be freed before the stream. */
enum oct_err oct_cuda_stream_alloc(struct oct_cuda_stream *stream, void **d_memory, size_t bytes,
                                   struct oct_error *err);
enum oct_err oct_cuda_stream_pin(struct oct_cuda_stream *stream, void **h_memory, size_t bytes,
                                 struct oct_error *err);

/* Queue a copy. Host memory should be the stream's, pinned: a late thread or a device that hangs
 * may still read and write it when nobody waits any more. */
enum oct_err oct_cuda_stream_upload(struct oct_cuda_stream *stream, void *d_to, const void *h_from,
                                    size_t bytes, struct oct_error *err);
enum oct_err oct_cuda_stream_download(struct oct_cuda_stream *stream, void *h_to,
                                      const void *d_from, size_t bytes, struct oct_error *err);

/* Queues zeros. */
enum oct_err oct_cuda_stream_clear(struct oct_cuda_stream *stream, void *d_memory, size_t bytes,
                                   struct oct_error *err);

/* Ends what was queued; an error of a launch since the last mark is found here. */
enum oct_err oct_cuda_stream_mark(struct oct_cuda_stream *stream, struct oct_error *err);

/* Whether all up to the last mark is done. OCT_E_AGAIN: still at work. Never waits. */
enum oct_err oct_cuda_stream_poll(struct oct_cuda_stream *stream, struct oct_error *err);

#ifdef __cplusplus
}
#endif

#endif
