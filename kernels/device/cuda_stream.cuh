/* What is in a stream, for those who launch kernels on it or hold one within something larger. */
#ifndef OCT_KERNELS_CUDA_STREAM_CUH
#define OCT_KERNELS_CUDA_STREAM_CUH

#include "kernels/device/cuda_error.cuh"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/cuda_stream.h"

#define OCT_CUDA_MAX_OWNED 32

struct oct_cuda_stream {
    int device;
    struct oct_cuda_signs *signs;
    bool has_stream, has_done;
    bool overlaps; /* OCT_LAUNCH_NEXT: kernels wait by themselves */
    cudaStream_t stream;
    cudaEvent_t done;                 /* the last mark */
    unsigned n_owned, n_pinned;       /* memory */
    void *owned[OCT_CUDA_MAX_OWNED];  /* on the device */
    void *pinned[OCT_CUDA_MAX_OWNED]; /* on the host */
};

/* A call that a worker's thread makes: those who watch it see that it came back. */
#define TRY_STREAM(on, what, call)                                                                 \
    do {                                                                                           \
        cudaError_t stream_code = (call);                                                          \
        oct_cuda_signs_note_call((on)->signs);                                                     \
        TRY((on)->device, what, stream_code);                                                      \
    } while (0)

/* create and destroy in place; *on is zeroed. close is legal after an error of open, and comes
 * after oct_cuda_stream_drain. */
enum oct_err oct_cuda_stream_open(struct oct_cuda_stream *on, unsigned device,
                                  struct oct_cuda_signs *signs, struct oct_error *err);
void oct_cuda_stream_close(struct oct_cuda_stream *on);

template <class T>
static enum oct_err oct_stream_alloc(struct oct_cuda_stream *on, T **memory, size_t n,
                                     struct oct_error *err)
{
    void *p = NULL;
    enum oct_err e = oct_cuda_stream_alloc(on, &p, n * sizeof(T), err);
    *memory = (T *)p;
    return e;
}

template <class T>
static enum oct_err oct_stream_pin(struct oct_cuda_stream *on, T **memory, size_t n,
                                   struct oct_error *err)
{
    void *p = NULL;
    enum oct_err e = oct_cuda_stream_pin(on, &p, n * sizeof(T), err);
    *memory = (T *)p;
    return e;
}

#endif
