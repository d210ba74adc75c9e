/* How long work takes on a device: queued many times between two events, the best of some rounds,
 * as noise only makes times longer. For benchmarks; used in the stream's thread. */
#ifndef OCT_KERNELS_DEVICE_CUDA_CLOCK_CUH
#define OCT_KERNELS_DEVICE_CUDA_CLOCK_CUH

#include "kernels/device/cuda_stream.cuh"

#include <algorithm>

#define OCT_CUDA_CLOCK_ROUND_US 10000.0 /* of work between the events */
#define OCT_CUDA_CLOCK_ROUNDS 5

struct oct_cuda_clock {
    struct oct_cuda_stream *on;
    cudaEvent_t from, to;
    bool has_from, has_to;
};

/* oct_cuda_clock_finish is called after a failure too. */
static inline enum oct_err oct_cuda_clock_init(struct oct_cuda_clock *clock,
                                               struct oct_cuda_stream *on, struct oct_error *err)
{
    *clock = {};
    clock->on = on;
    TRY_STREAM(on, "event", cudaEventCreate(&clock->from));
    clock->has_from = true;
    TRY_STREAM(on, "event", cudaEventCreate(&clock->to));
    clock->has_to = true;
    return OCT_OK;
}

static inline void oct_cuda_clock_finish(struct oct_cuda_clock *clock)
{
    if (clock->has_from)
        cudaEventDestroy(clock->from);
    if (clock->has_to)
        cudaEventDestroy(clock->to);
    *clock = {};
}

/* step() queues its work, and is called n times; us: of one. */
template <class STEP>
static enum oct_err oct_cuda_clock_round(struct oct_cuda_clock *clock, unsigned n, STEP step,
                                         double *us, struct oct_error *err)
{
    struct oct_cuda_stream *on = clock->on;
    float ms = 0;
    TRY_STREAM(on, "event", cudaEventRecord(clock->from, on->stream));
    for (unsigned i = 0; i < n; i++) {
        enum oct_err e = step();
        if (e)
            return e;
    }
    TRY_STREAM(on, "event", cudaEventRecord(clock->to, on->stream));
    TRY_STREAM(on, "work", cudaStreamSynchronize(on->stream));
    TRY_STREAM(on, "kernels", cudaGetLastError());
    TRY_STREAM(on, "time", cudaEventElapsedTime(&ms, clock->from, clock->to));
    *us = (double)ms * 1000 / n;
    return OCT_OK;
}

template <class STEP>
static enum oct_err oct_cuda_clock_time(struct oct_cuda_clock *clock, STEP step, double *us,
                                        struct oct_error *err)
{
    double took = 1;
    enum oct_err e = oct_cuda_clock_round(clock, 2, step, &took, err); /* it loads kernels */
    if (!e)
        e = oct_cuda_clock_round(clock, 2, step, &took, err);
    const unsigned n = (unsigned)(OCT_CUDA_CLOCK_ROUND_US / std::max(took, 5.0)) + 2;
    *us = 1e30;
    for (int i = 0; i < OCT_CUDA_CLOCK_ROUNDS && !e; i++) {
        e = oct_cuda_clock_round(clock, n, step, &took, err);
        *us = std::min(*us, took);
    }
    return e;
}

#endif
