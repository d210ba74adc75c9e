#include "analysis/cells/cells_timing.h"

#include "analysis/cells/cuda_cells.cuh"
#include "analysis/cells/cuda_starts.cuh"

#include <algorithm>
#include <cstring>
#include <new>

#define ROUND_US 10000.0 /* of work between two events */
#define ROUNDS 5         /* the best is taken: noise only makes times longer */

struct clock {
    cudaEvent_t from, to;
    bool has_from, has_to;
};

struct bench {
    struct clock clock;
    struct oct_cells_device device;
    unsigned n; /* starts */
};

/* A step, queued n times between two events; us: of one. */
template <class STEP>
static enum oct_err time_rounds(struct bench *b, unsigned n, STEP step, double *us,
                                struct oct_error *err)
{
    struct oct_cuda_stream *on = b->device.stream;
    float ms = 0;
    TRY_STREAM(on, "event", cudaEventRecord(b->clock.from, on->stream));
    for (unsigned i = 0; i < n; i++) {
        enum oct_err e = step();
        if (e)
            return e;
    }
    TRY_STREAM(on, "event", cudaEventRecord(b->clock.to, on->stream));
    TRY_STREAM(on, "work", cudaStreamSynchronize(on->stream));
    TRY_STREAM(on, "kernels", cudaGetLastError());
    TRY_STREAM(on, "time", cudaEventElapsedTime(&ms, b->clock.from, b->clock.to));
    *us = (double)ms * 1000 / n;
    return OCT_OK;
}

template <class STEP>
static enum oct_err time_step(struct bench *b, STEP step, double *us, struct oct_error *err)
{
    double took = 1;
    enum oct_err e = time_rounds(b, 2, step, &took, err); /* the first loads kernels */
    if (!e)
        e = time_rounds(b, 2, step, &took, err);
    const unsigned n = (unsigned)(ROUND_US / std::max(took, 5.0)) + 2;
    *us = 1e30;
    for (int i = 0; i < ROUNDS && !e; i++) {
        e = time_rounds(b, n, step, &took, err);
        *us = std::min(*us, took);
    }
    return e;
}

/* In the order of a frame, so that each finds what it needs. */
static enum oct_err time_steps(struct bench *b, struct oct_cells_device_times *times,
                               struct oct_error *err)
{
    struct oct_cells_device *d = &b->device;
    const auto prepare = [&] {
        oct_cells_queue_prepare(d);
        return OCT_OK;
    };
    const auto scores = [&] {
        oct_cells_queue_scores(d);
        return OCT_OK;
    };
    const auto peaks = [&] {
        oct_cells_queue_peaks(d);
        return oct_cells_queue_refine(d, 0, err);
    };
    const auto snakes = [&] { return oct_cells_queue_snakes(d, b->n, err); };
    const auto frame = [&] {
        enum oct_err e = oct_cells_upload(d, err);
        prepare();
        scores();
        e = e ? e : peaks();
        return e ? e : oct_cells_queue_follow(d, b->n, err);
    };
    enum oct_err e = oct_cells_upload(d, err);
    e = e ? e : time_step(b, prepare, &times->prepare_us, err);
    e = e ? e : time_step(b, scores, &times->scores_us, err);
    e = e ? e : time_step(b, peaks, &times->peaks_us, err);
    e = e ? e : time_step(b, snakes, &times->snakes_us, err);
    return e ? e : time_step(b, frame, &times->frame_us, err);
}

static enum oct_err run(struct bench *b, const struct oct_cells_engine_setup *setup,
                        const struct oct_picture *picture, const struct oct_cell_start *starts,
                        struct oct_cells_device_times *times, struct oct_error *err)
{
    struct oct_cells_device *d = &b->device;
    TRY_STREAM(d->stream, "event", cudaEventCreate(&b->clock.from));
    b->clock.has_from = true;
    TRY_STREAM(d->stream, "event", cudaEventCreate(&b->clock.to));
    b->clock.has_to = true;
    enum oct_err e = oct_cells_make(d, setup, err);
    if (e)
        return e;
    memcpy(d->h_picture, picture->pixels, d->n * sizeof(float));
    d->has_map = true;
    b->n = std::min(b->n, d->most_starts);
    for (unsigned i = 0; i < b->n; i++) {
        struct oct_cell_window window;
        d->h_starts[i] = oct_cells_start_of(setup, &starts[i], &window);
    }
    return time_steps(b, times, err);
}

extern "C" enum oct_err oct_cells_time_cuda(const struct oct_cells_engine_setup *setup,
                                            unsigned device, const struct oct_picture *picture,
                                            const struct oct_cell_start *starts, unsigned n,
                                            struct oct_cells_device_times *times,
                                            struct oct_error *err)
{
    struct oct_cuda_signs signs = {};
    struct bench b = {};
    *times = {};
    b.n = n;
    enum oct_err e = oct_cuda_stream_create(&b.device.stream, device, &signs, err);
    if (e)
        return e;
    try {
        e = run(&b, setup, picture, starts, times, err);
    } catch (const std::bad_alloc &) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for tables");
    }
    oct_cuda_stream_drain(b.device.stream);
    if (b.clock.has_from)
        cudaEventDestroy(b.clock.from);
    if (b.clock.has_to)
        cudaEventDestroy(b.clock.to);
    oct_cuda_stream_destroy(b.device.stream);
    return e;
}
