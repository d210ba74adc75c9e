#include "test/gpu/correlate_timing.h"

#include "analysis/correlate/cuda_correlation.cuh"
#include "kernels/device/cuda_clock.cuh"

#include <algorithm>

#define MOST_LENGTHS 5

struct bench {
    struct oct_cuda_stream *stream;
    struct oct_cuda_clock clock;
    struct oct_correlation correlation;
    float *h_c2d;
    float *d_real; /* of bare transforms */
    float2 *d_half;
};

/* ---- bare transforms ---- */

/* The cheapest lengths, and the next power of two. Returns how many. */
static unsigned find_lengths(uint32_t least, uint32_t step, uint32_t lengths[MOST_LENGTHS])
{
    const uint32_t first = (least + step - 1) / step * step, most = least + least / 5;
    uint32_t power = 2;
    unsigned n = 0;
    while (power < least)
        power *= 2;
    if (power <= least + least / 4)
        lengths[n++] = power;
    while (n < MOST_LENGTHS) {
        uint32_t best = 0;
        for (uint32_t length = first; length <= most; length += step) {
            const double cost = oct_transforms_cost(length);
            if (cost > 0 && std::find(lengths, lengths + n, length) == lengths + n &&
                (!best || cost < oct_transforms_cost(best)))
                best = length;
        }
        if (!best)
            break;
        lengths[n++] = best;
    }
    return n;
}

static enum oct_err time_pair(struct bench *b, uint32_t height, uint32_t width, double *us,
                              struct oct_error *err)
{
    struct oct_transforms t = {};
    const unsigned n = b->correlation.shape.n;
    enum oct_err e = oct_cufft_open(&t.fft, err);
    if (!e)
        e = oct_transforms_plan(&t, CUFFT_R2C, height, width, n, b->stream, err);
    if (!e)
        e = oct_transforms_plan(&t, CUFFT_C2R, height, width, n, b->stream, err);
    const auto pair = [&] {
        enum oct_err code = oct_transforms_r2c(&t, 0, b->stream, b->d_real, b->d_half, err);
        return code ? code : oct_transforms_c2r(&t, 1, b->stream, b->d_half, b->d_real, err);
    };
    if (!e)
        e = oct_cuda_clock_time(&b->clock, pair, us, err);
    *us /= n;
    oct_cuda_stream_drain(b->stream);
    oct_transforms_finish(&t);
    return e;
}

static enum oct_err time_pairs(struct bench *b, struct oct_correlate_times *times,
                               struct oct_error *err)
{
    const struct oct_correlation_shape &s = b->correlation.shape;
    uint32_t heights[MOST_LENGTHS], widths[MOST_LENGTHS];
    const unsigned n_heights = find_lengths(s.height + s.max_dy, 1, heights);
    const unsigned n_widths = find_lengths(s.width + s.max_dx, 2, widths);
    const size_t most_height = *std::max_element(heights, heights + n_heights);
    const size_t most_width = *std::max_element(widths, widths + n_widths);
    const size_t most = s.n * most_height * (most_width + 2);
    enum oct_err e = oct_stream_alloc(b->stream, &b->d_real, most, err);
    e = e ? e : oct_stream_alloc(b->stream, &b->d_half, most / 2 + 1, err);
    e = e ? e : oct_cuda_stream_clear(b->stream, b->d_real, most * sizeof(float), err);
    times->pair_us = 1e30;
    for (unsigned i = 0; i < n_heights * n_widths && !e; i++) {
        const uint32_t height = heights[i / n_widths], width = widths[i % n_widths];
        double us = 1e30;
        e = time_pair(b, height, width, &us, err);
        if (us < times->pair_us) {
            times->pair_us = us;
            times->best_height = height;
            times->best_width = width;
        }
    }
    return e ? e : time_pair(b, s.padded_height, s.padded_width, &times->own_pair_us, err);
}

/* ---- the engine ---- */

static enum oct_err time_engine(struct bench *b, struct oct_correlate_times *times,
                                struct oct_error *err)
{
    struct oct_correlation *c = &b->correlation;
    const struct oct_correlation_shape &s = c->shape;
    const size_t picture = (size_t)s.height * s.width, pixels = s.n * picture;
    const size_t bytes = s.n * oct_correlation_shifts(s) * sizeof(float);
    uint32_t random = 1;
    for (size_t i = 0; i < pixels; i++) {
        random = random * 1664525u + 1013904223u;
        c->planes.h_pictures[i] = (float)(random >> 8) * (1.0f / 16777216.0f) - 0.5f;
    }
    for (unsigned i = 0; i < s.n; i++) {
        c->planes.h_normals[i] = {picture, 0, 1, true, true};
        c->h_factors[i] = 1;
    }
    c->alone = true;
    enum oct_err e = oct_correlation_upload(c, s.n, err);
    if (!e)
        e = oct_cuda_clock_time(
            &b->clock, [&] { return oct_correlation_queue(c, true, err); }, &times->kernels_us,
            err);
    const auto all = [&] {
        enum oct_err code = oct_correlation_upload(c, s.n, err);
        if (!code)
            code = oct_correlation_queue(c, true, err);
        return code ? code : oct_cuda_stream_download(b->stream, b->h_c2d, c->d_c2d, bytes, err);
    };
    if (!e)
        e = oct_cuda_clock_time(&b->clock, all, &times->copies_us, err);
    times->kernels_us /= s.n;
    times->copies_us /= s.n;
    return e;
}

static enum oct_err run(struct bench *b, const struct oct_correlator_setup *setup,
                        struct oct_correlate_times *times, struct oct_error *err)
{
    const struct oct_correlation_shape shape = oct_correlation_shape_of(setup);
    enum oct_err e = oct_cuda_clock_init(&b->clock, b->stream, err);
    if (e)
        return e;
    times->height = shape.padded_height;
    times->width = shape.padded_width;
    e = oct_correlation_make(&b->correlation, &shape, b->stream, err);
    if (!e)
        e = oct_stream_pin(b->stream, &b->h_c2d, shape.n * oct_correlation_shifts(shape), err);
    if (!e)
        e = time_pairs(b, times, err);
    return e ? e : time_engine(b, times, err);
}

extern "C" enum oct_err oct_correlate_time_cuda(const struct oct_correlator_setup *setup,
                                                unsigned device, struct oct_correlate_times *times,
                                                struct oct_error *err)
{
    struct oct_cuda_signs signs = {};
    struct bench b = {};
    *times = {};
    enum oct_err e = oct_cuda_stream_create(&b.stream, device, &signs, err);
    if (e)
        return e;
    e = run(&b, setup, times, err);
    oct_cuda_stream_drain(b.stream);
    oct_correlation_finish(&b.correlation);
    oct_cuda_clock_finish(&b.clock);
    oct_cuda_stream_destroy(b.stream);
    return e;
}
