#include "test/gpu/cells_timing.h"

#include "analysis/cells/cuda_cells.cuh"
#include "kernels/device/cuda_clock.cuh"

#include <algorithm>
#include <cstring>
#include <new>

struct bench {
    struct oct_cuda_clock clock;
    struct oct_cells_device device;
    unsigned n; /* starts */
};

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
    const auto peaks = [&] { /* which are counted from 0 in each picture */
                             enum oct_err e =
                                 oct_cuda_stream_clear(d->stream, &d->d_list->facts.n_peaks,
                                                       sizeof(d->d_list->facts.n_peaks), err);
                             oct_cells_queue_peaks(d);
                             return e ? e : oct_cells_queue_refine(d, 0, err);
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
    e = e ? e : oct_cuda_clock_time(&b->clock, prepare, &times->prepare_us, err);
    e = e ? e : oct_cuda_clock_time(&b->clock, scores, &times->scores_us, err);
    e = e ? e : oct_cuda_clock_time(&b->clock, peaks, &times->peaks_us, err);
    e = e ? e : oct_cuda_clock_time(&b->clock, snakes, &times->snakes_us, err);
    return e ? e : oct_cuda_clock_time(&b->clock, frame, &times->frame_us, err);
}

static enum oct_err run(struct bench *b, const struct oct_cells_engine_setup *setup,
                        const struct oct_picture *picture, const struct oct_cell_start *starts,
                        struct oct_cells_device_times *times, struct oct_error *err)
{
    struct oct_cells_device *d = &b->device;
    enum oct_err e = oct_cuda_clock_init(&b->clock, d->stream, err);
    e = e ? e : oct_cells_make(d, setup, err);
    if (e)
        return e;
    memcpy(d->h_picture, picture->pixels, d->n * sizeof(float));
    b->n = std::min(b->n, d->most_starts);
    for (unsigned i = 0; i < b->n; i++)
        d->h_snakes[i] = oct_cells_snake_of(setup, &starts[i]);
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
    oct_cuda_clock_finish(&b.clock);
    oct_cuda_stream_destroy(b.device.stream);
    return e;
}
