#include "analysis/flow/cuda_group.cuh"
#include "kernels/device/cuda_clock.cuh"
#include "kernels/recon/cuda_recon.h"
#include "pipeline/base/clock.h"

#include "test/gpu/flow_timing.h"

#define N_RECONS 4u
#define N_ROUNDS 3
#define BATCH OCT_FLOW_PUTS /* B-scans of a submission */
#define N_BATCHES 240u
#define N_ROOMS 2u /* of a recon: one is filled while the other is read */

/* ---- kernels of places ---- */

struct bench {
    struct oct_cuda_stream *stream;
    struct oct_cuda_clock clock;
    struct oct_flow_cuda_group group;
    const float2 *from[OCT_FLOW_MOST_REPEATS]; /* [R] on the device */
};

/* Places of the batch have the same B-scans. */
static enum oct_err put_all(const struct bench *b)
{
    const struct oct_flow_cuda &f = b->group.f;
    const unsigned n = f.n_repeats * f.n_places;
    for (unsigned first = 0; first < n; first += OCT_FLOW_PUTS) {
        const float2 *from[OCT_FLOW_PUTS];
        uint32_t i[OCT_FLOW_PUTS];
        const unsigned n_puts = n - first < OCT_FLOW_PUTS ? n - first : OCT_FLOW_PUTS;
        for (unsigned k = 0; k < n_puts; k++) {
            i[k] = first + k;
            from[k] = b->from[(first + k) / f.n_places];
        }
        oct_flow_queue_puts(&b->group, from, i, n_puts, true);
    }
    return OCT_OK;
}

static void queue_step(const struct bench *b, unsigned n, int step)
{
    const struct oct_flow_cuda &f = b->group.f;
    const struct oct_cuda_stream *on = b->stream;
    const dim3 lines(f.n_lines, n);
    if (step == 1)
        oct_flow_queue_shift(f, n, on);
    else if (step == 2)
        oct_flow_queue_lines(f, n, on);
    else if (step == 3)
        oct_flow_queue_judge(f, n, on);
    else if (step == 4)
        OCT_LAUNCH_NEXT((oct_flow_bulk_kernel), dim3(n), dim3(OCT_FLOW_MANY), 0, on, f);
    else
        OCT_LAUNCH_NEXT((oct_flow_score_kernel), lines, dim3(OCT_FLOW_SCORE_THREADS), 0, on, f);
}

static enum oct_err time_places(struct bench *b, struct oct_flow_times *times,
                                struct oct_error *err)
{
    const unsigned n = b->group.n_batch, n_bscans = n * b->group.f.n_repeats;
    const auto all = [&] {
        put_all(b);
        oct_flow_queue_places(&b->group, n);
        return OCT_OK;
    };
    const auto one = [&] {
        oct_flow_queue_places(&b->group, 1);
        return OCT_OK;
    };
    enum oct_err e = oct_cuda_clock_time(&b->clock, all, &times->places_us, err);
    e = e ? e : oct_cuda_clock_time(&b->clock, one, &times->one_place_us, err);
    e = e ? e
          : oct_cuda_clock_time(
                &b->clock, [&] { return put_all(b); }, &times->step_us[0], err);
    for (int step = 1; step < OCT_FLOW_TIMED_STEPS && !e; step++) {
        const auto queue = [&] {
            queue_step(b, n, step);
            return OCT_OK;
        };
        e = oct_cuda_clock_time(&b->clock, queue, &times->step_us[step], err);
        times->step_us[step] /= n_bscans;
    }
    times->n_bscans = n_bscans;
    times->places_us /= n_bscans;
    times->step_us[0] /= n_bscans;
    return e;
}

static void all_came(struct oct_flow_cuda_group *g)
{
    for (unsigned k = 0; k < OCT_FLOW_PLACES; k++)
        g->f.came[k] = ((uint64_t)1 << g->f.n_repeats) - 1;
    g->f.bytes = (uint8_t *)g->d_shown;
    g->f.min_z = 3;
}

static enum oct_err open_group(struct bench *b, const struct oct_flow_engine_setup *setup,
                               const float *values, struct oct_error *err)
{
    struct oct_flow_cuda *f = &b->group.f;
    enum oct_err e = oct_flow_group_make(&b->group, b->stream, setup, err);
    for (unsigned r = 0; r < setup->place.n_repeats && !e; r++) {
        const size_t n = oct_flow_n_values(f);
        float2 *to = NULL;
        e = oct_stream_alloc(b->stream, &to, n, err);
        if (!e)
            TRY_STREAM(
                b->stream, "upload",
                cudaMemcpy(to, values + 2 * r * n, n * sizeof(float2), cudaMemcpyHostToDevice));
        b->from[r] = to;
    }
    all_came(&b->group);
    return e;
}

/* ---- reconstruction, and both ---- */

struct runner {
    const struct oct_plan *plan;
    struct oct_cuda_signs signs;
    struct oct_cuda_recon *recon[N_RECONS];
    uint16_t *spectra;         /* [BATCH][M][N] pinned */
    uint8_t *pixels[N_RECONS]; /* [BATCH][M][D] pinned */
    float *rooms[N_RECONS];    /* [N_ROOMS][BATCH][M][D][2] on the device */
    struct oct_raw_frame in[BATCH];
    struct oct_image_frame out[BATCH];
    struct oct_cuda_stream *stream[N_RECONS]; /* of flow: each of what one recon makes */
    struct oct_flow_cuda_group group[N_RECONS];
    uint8_t *shown[N_RECONS];    /* [BATCH / R][M][D] pinned */
    cudaEvent_t taken[N_RECONS]; /* what its room had last is done with */
    unsigned n_events;
    size_t n_values, complex_bytes;
};

static enum oct_err begin_batch(struct runner *r, unsigned i, unsigned room, bool with_complex,
                                struct oct_error *err)
{
    struct oct_engine_job jobs[BATCH];
    bool needs_end;
    for (unsigned k = 0; k < BATCH; k++) {
        r->out[k].pixels = r->pixels[i] + k * r->n_values;
        r->out[k].complex_device =
            with_complex ? r->rooms[i] + 2 * (room * BATCH + k) * r->n_values : NULL;
        r->complex_bytes += r->out[k].complex_values ? r->n_values * sizeof(float2) : 0;
        jobs[k] = {};
        jobs[k].in = &r->in[k];
        jobs[k].out = &r->out[k];
        jobs[k].display.log = true;
        jobs[k].display.range = OCT_RANGE_MANUAL;
        jobs[k].display.hi = 60;
    }
    oct_cuda_recon_take(r->recon[i], jobs, BATCH);
    return oct_cuda_recon_begin(r->recon[i], &needs_end, err);
}

static enum oct_err wait_for(struct oct_cuda_recon *recon, struct oct_error *err)
{
    enum oct_err e;
    while ((e = oct_cuda_recon_poll(recon, err)) == OCT_E_AGAIN)
        ;
    return e;
}

/* B-scans of a batch that was reconstructed, as places one after another. */
static enum oct_err find_batch(struct runner *r, unsigned i, unsigned room, struct oct_error *err)
{
    const struct oct_flow_cuda_group *g = &r->group[i];
    const struct oct_flow_cuda &f = g->f;
    const unsigned n = f.n_places * f.n_repeats;
    const float2 *from[OCT_FLOW_PUTS];
    uint32_t which[OCT_FLOW_PUTS];
    for (unsigned k = 0; k < n; k++) {
        from[k] = (const float2 *)(r->rooms[i] + 2 * (room * BATCH + k) * r->n_values);
        which[k] = k % f.n_repeats * f.n_places + k / f.n_repeats;
    }
    oct_flow_queue_puts(g, from, which, n, true);
    oct_flow_queue_places(g, f.n_places);
    TRY_STREAM(g->stream, "event", cudaEventRecord(r->taken[i], g->stream->stream));
    return oct_cuda_stream_download(g->stream, r->shown[i], f.bytes, f.n_places * r->n_values, err);
}

/* All batches, in turn on all streams. While a batch is reconstructed, the flow of the one before
 * is found from the other room. */
static enum oct_err run_all(struct runner *r, bool with_flow, double *us, struct oct_error *err)
{
    const uint64_t begun_ns = oct_clock_ns();
    enum oct_err e = OCT_OK;
    for (unsigned at = 0; at < N_BATCHES + N_RECONS && !e; at++) {
        const unsigned i = at % N_RECONS, room = at / N_RECONS % N_ROOMS;
        if (at >= N_RECONS)
            e = wait_for(r->recon[i], err);
        while (!e && with_flow && cudaEventQuery(r->taken[i]) == cudaErrorNotReady)
            ;
        if (!e && at < N_BATCHES)
            e = begin_batch(r, i, room, with_flow, err);
        if (!e && with_flow && at >= N_RECONS)
            e = find_batch(r, i, (room + N_ROOMS - 1) % N_ROOMS, err);
    }
    for (unsigned i = 0; i < N_RECONS && !e; i++)
        TRY_STREAM(r->stream[i], "flow", cudaStreamSynchronize(r->stream[i]->stream));
    *us = 1e-3 * (double)(oct_clock_ns() - begun_ns) / (N_BATCHES * BATCH);
    return e;
}

static enum oct_err time_rates(struct runner *r, struct bench *b, unsigned device,
                               struct oct_flow_times *times, struct oct_error *err)
{
    const struct oct_geometry *g = &r->plan->geometry;
    const struct oct_cuda_way up = {(size_t)g->n_lines * g->n_samples * sizeof(uint16_t) * BATCH,
                                    1};
    const struct oct_cuda_way down = {r->n_values * (BATCH + BATCH / b->group.f.n_repeats),
                                      N_RECONS};
    double seconds = 0, us = 0;
    enum oct_err e = OCT_OK;
    times->copies_us = times->recon_us = times->all_us = 1e30;
    for (int round = 0; round < N_ROUNDS && !e; round++) {
        e = oct_cuda_time_copies(device, up, down, N_BATCHES, &seconds, err);
        times->copies_us = std::min(times->copies_us, 1e6 * seconds / (N_BATCHES * BATCH));
        e = e ? e : run_all(r, false, &us, err);
        times->recon_us = std::min(times->recon_us, us);
        e = e ? e : run_all(r, true, &us, err);
        times->all_us = std::min(times->all_us, us);
    }
    times->complex_bytes = r->complex_bytes;
    return e;
}

/* The chain's kernels of one batch, without and with complex values. */
static enum oct_err time_chain(struct runner *r, bool with_complex, double *us,
                               struct oct_error *err)
{
    enum { N = 100 };
    enum oct_err e = OCT_OK;
    *us = 1e30;
    for (int round = 0; round < N_ROUNDS && !e; round++) {
        e = begin_batch(r, 0, 0, with_complex, err);
        e = e ? e : wait_for(r->recon[0], err);
        const uint64_t begun_ns = oct_clock_ns();
        e = e ? e : oct_cuda_recon_repeat(r->recon[0], N, err);
        e = e ? e : wait_for(r->recon[0], err);
        *us = std::min(*us, 1e-3 * (double)(oct_clock_ns() - begun_ns) / (N * BATCH));
    }
    return e;
}

static enum oct_err open_runner(struct runner *r, struct bench *b, unsigned device,
                                const struct oct_raw_frame *frame,
                                const struct oct_flow_engine_setup *setup, struct oct_error *err)
{
    const struct oct_geometry *g = &r->plan->geometry;
    const size_t spectra = (size_t)g->n_lines * g->n_samples;
    r->n_values = (size_t)g->n_lines * g->depth;
    struct oct_flow_engine_setup of_batch = *setup;
    of_batch.n_places = BATCH / setup->place.n_repeats;
    of_batch.keeps = true;
    enum oct_err e = oct_stream_pin(b->stream, &r->spectra, BATCH * spectra, err);
    for (unsigned i = 0; i < N_RECONS && !e; i++) {
        e = oct_cuda_stream_create(&r->stream[i], device, &r->signs, err);
        e = e ? e : oct_flow_group_make(&r->group[i], r->stream[i], &of_batch, err);
        e = e ? e : oct_stream_pin(b->stream, &r->shown[i], BATCH * r->n_values, err);
        all_came(&r->group[i]);
    }
    for (; r->n_events < N_RECONS && !e; r->n_events++)
        TRY_STREAM(b->stream, "event", cudaEventCreate(&r->taken[r->n_events]));
    for (unsigned i = 0; i < N_RECONS && !e; i++) {
        e = oct_cuda_recon_create(&r->recon[i], device, r->plan, OCT_CUDA_FUSED, BATCH, true,
                                  &r->signs, err);
        e = e ? e : oct_stream_pin(b->stream, &r->pixels[i], BATCH * r->n_values, err);
        e = e ? e
              : oct_stream_alloc(b->stream, &r->rooms[i], N_ROOMS * BATCH * 2 * r->n_values, err);
    }
    for (unsigned k = 0; k < BATCH && !e; k++) {
        memcpy(r->spectra + k * spectra, frame->spectra, spectra * sizeof(uint16_t));
        r->in[k] = *frame;
        r->in[k].spectra = r->spectra + k * spectra;
    }
    return e;
}

extern "C" enum oct_err oct_flow_time_cuda(const struct oct_plan *plan,
                                           const struct oct_raw_frame *frame,
                                           const struct oct_flow_engine_setup *setup,
                                           const float *values, unsigned device,
                                           struct oct_flow_times *times, struct oct_error *err)
{
    static struct runner r;
    struct oct_cuda_signs signs = {};
    struct bench b = {};
    r = {};
    r.plan = plan;
    *times = {};
    enum oct_err e = oct_cuda_stream_create(&b.stream, device, &signs, err);
    if (e)
        return e;
    e = oct_cuda_clock_init(&b.clock, b.stream, err);
    e = e ? e : open_group(&b, setup, values, err);
    e = e ? e : time_places(&b, times, err);
    e = e ? e : open_runner(&r, &b, device, frame, setup, err);
    e = e ? e : time_chain(&r, false, &times->chain_us, err);
    e = e ? e : time_chain(&r, true, &times->complex_us, err);
    e = e ? e : time_rates(&r, &b, device, times, err);
    for (unsigned i = 0; i < N_RECONS; i++) {
        oct_cuda_stream_destroy(r.stream[i]);
        oct_cuda_recon_destroy(r.recon[i]);
    }
    for (unsigned i = 0; i < r.n_events; i++)
        cudaEventDestroy(r.taken[i]);
    oct_cuda_clock_finish(&b.clock);
    oct_cuda_stream_destroy(b.stream);
    return e;
}
