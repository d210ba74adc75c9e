/* How long each pass of a step of two volumes' registration takes on a device, and its share of the
 * bandwidth of a copy; for test/gpu/warp.c. */
#include "analysis/warp/cuda_warp_device.cuh"
#include "kernels/device/cuda_clock.cuh"

#include <cstdio>

using namespace oct_warp;

struct pass {
    const char *name;
    double floats; /* a voxel, read and written */
};

/* Volumes of zeros: what is moved does not depend on them, and the displacement is 0. */
static enum oct_err clear(struct device *d, struct oct_error *err)
{
    struct oct_warp_setup setup = {};
    setup.grid = d->grid;
    setup.params = d->params;
    enum oct_err e = OCT_OK;
    each_room(d, &setup, [&e, d, err](auto *&room, size_t n) {
        if ((void *)room != d->d_tables)
            e = e ? e : oct_cuda_stream_clear(d->stream, room, n * sizeof(*room), err);
    });
    return e;
}

static enum oct_err time_passes(struct device *d, double copy, struct oct_error *err)
{
    static const struct pass passes[] = {{"energy", 7},
                                         {"force, quotient, depth", 6},
                                         {"A-lines", 6},
                                         {"B-scans, step", 9},
                                         {"a level's volume", 6}};
    struct oct_cuda_clock clock;
    enum oct_err e = clear(d, err);
    e = e ? e : oct_cuda_clock_init(&clock, d->stream, err);
    for (int i = 0; i < 5 && !e; i++) {
        double us = 0;
        const auto step = [d, i]() {
            float *scratch[2] = {d->v, d->v + d->box.n};
            if (i == 0)
                queue_sums(d, d->u, NULL, 0);
            else if (i == 1)
                queue_drive(d, d->trial, NULL);
            else if (i == 2)
                queue_gauss(d, d->trial, d->v, NULL);
            else if (i == 3)
                queue_step(d, 1, d->u, d->trial, NULL);
            else
                queue_shrink(d, {d->fixed, NULL}, 5, -2, scratch, d->moving);
            return OCT_OK;
        };
        e = oct_cuda_clock_time(&clock, step, &us, err);
        if (!e)
            printf("  %-24s %8.1f us, %3.0f %% of a copy\n", passes[i].name, us,
                   100 * passes[i].floats * sizeof(float) * (double)d->box.n / (us * 1e-6) / copy);
    }
    oct_cuda_clock_finish(&clock);
    return e;
}

/* Prints a line for each. copy: bytes a second. */
extern "C" enum oct_err oct_gpu_warp_passes(const struct oct_warp_setup *setup, double copy,
                                            struct oct_error *err)
{
    struct oct_cuda_signs signs = {};
    struct oct_cuda_stream stream = {};
    struct device device = {};
    device.stream = &stream;
    enum oct_err e = oct_cuda_stream_open(&stream, 0, &signs, err);
    e = e ? e : make(&device, setup, err);
    e = e ? e : time_passes(&device, copy, err);
    oct_cuda_stream_drain(&stream);
    oct_cuda_stream_close(&stream);
    return e;
}
