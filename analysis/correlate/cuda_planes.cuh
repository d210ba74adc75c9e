/* Pictures from the host to padded planes on a device. The host copies a picture once, as it is,
 * and measures it on the way (normal.h); the device makes it normal and, with masks, spreads its
 * mask and the squares of its values less the mask (1 is their mean) into planes of their own:
 *
 *     take picture 0, 1 ... -> upload -> planes[n_planes][n of the batch][padded] */
#ifndef OCT_ANALYSIS_CORRELATE_CUDA_PLANES_CUH
#define OCT_ANALYSIS_CORRELATE_CUDA_PLANES_CUH

#include "analysis/correlate/normal.h"
#include "kernels/device/cuda_stream.cuh"

#define OCT_PLANES_THREADS 256u

enum oct_correlation_plane {
    OCT_CORRELATION_VALUES,
    OCT_CORRELATION_MASK,
    OCT_CORRELATION_SQUARES
};

/* A rectangle of pixels in a larger one. */
struct oct_padding {
    uint32_t height, width, padded_height, padded_width;
};

/* Room for a batch on its way; memory is the stream's. */
struct oct_planes {
    struct oct_cuda_stream *stream;
    unsigned n_planes;
    float *h_pictures, *d_pictures;           /* [n][height][width]; NaN: masked */
    struct oct_normal *h_normals, *d_normals; /* [n] */
};

/* A thread a pixel; y: row, z: picture. A picture that is not usable is masked as a whole. n_of:
 * the pictures that a plane has room for. */
static __global__ void oct_planes_kernel(const float *pictures, const struct oct_normal *normals,
                                         struct oct_padding p, unsigned n_of, unsigned n_planes,
                                         float *planes)
{
    const uint32_t x = blockIdx.x * OCT_PLANES_THREADS + threadIdx.x, y = blockIdx.y;
    const unsigned i = blockIdx.z;
    if (x >= p.width)
        return;
    const size_t points = (size_t)p.padded_height * p.padded_width;
    const struct oct_normal normal = normals[i];
    const float pixel = pictures[((size_t)i * p.height + y) * p.width + x];
    const bool is_valid = normal.usable && pixel == pixel;
    const float valid = is_valid ? 1.0f : 0.0f;
    const float value = is_valid ? (float)((pixel - normal.offset) * normal.scale) : 0.0f;
    float *at = planes + i * points + (size_t)y * p.padded_width + x;
    at[OCT_CORRELATION_VALUES] = value;
    if (n_planes > OCT_CORRELATION_MASK)
        at[OCT_CORRELATION_MASK * n_of * points] = valid;
    if (n_planes > OCT_CORRELATION_SQUARES)
        at[OCT_CORRELATION_SQUARES * n_of * points] = fmaf(value, value, -valid);
}

/* For n pictures, n_pixels in all. */
static inline enum oct_err oct_planes_alloc(struct oct_planes *p, struct oct_cuda_stream *stream,
                                            unsigned n_planes, unsigned n, size_t n_pixels,
                                            struct oct_error *err)
{
    p->stream = stream;
    p->n_planes = n_planes;
    enum oct_err e = oct_stream_pin(stream, &p->h_pictures, n_pixels, err);
    e = e ? e : oct_stream_pin(stream, &p->h_normals, n, err);
    e = e ? e : oct_stream_alloc(stream, &p->d_pictures, n_pixels, err);
    return e ? e : oct_stream_alloc(stream, &p->d_normals, n, err);
}

/* Copies and measures the i-th picture of a batch. Its normal is valid until the next one takes
 * the place. */
static inline const struct oct_normal *
oct_planes_take(struct oct_planes *p, unsigned i, const struct oct_picture *picture, bool keep_mean)
{
    oct_normal_take(&p->h_normals[i], picture, keep_mean,
                    p->h_pictures + i * (size_t)picture->height * picture->width);
    return &p->h_normals[i];
}

/* Queues n pictures that were taken, on their way to d_planes[n_planes][n_of][padded]. */
static inline enum oct_err oct_planes_upload(struct oct_planes *p,
                                             const struct oct_padding *padding, unsigned n,
                                             unsigned n_of, float *d_planes, struct oct_error *err)
{
    const size_t bytes = n * (size_t)padding->height * padding->width * sizeof(float);
    enum oct_err e = oct_cuda_stream_upload(p->stream, p->d_pictures, p->h_pictures, bytes, err);
    e = e ? e
          : oct_cuda_stream_upload(p->stream, p->d_normals, p->h_normals, n * sizeof(*p->h_normals),
                                   err);
    if (!e)
        OCT_LAUNCH((oct_planes_kernel),
                   dim3((padding->width + OCT_PLANES_THREADS - 1) / OCT_PLANES_THREADS,
                        padding->height, n),
                   dim3(OCT_PLANES_THREADS), 0, p->stream->stream, p->d_pictures, p->d_normals,
                   *padding, n_of, p->n_planes, d_planes);
    return e;
}

#endif
