/* The device side of the CUDA engine: lanes, their buffers, what they queue. */
extern "C" {
#include "kernels/recon/percentile.h"
}
#include "kernels/device/cuda_copies.cuh"
#include "kernels/recon/cuda_lane.cuh"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

/* ---- what can be run ---- */

extern "C" enum oct_err oct_cuda_can_run(unsigned device, const struct oct_plan *plan,
                                         enum oct_cuda_kernels kernels, struct oct_error *err)
{
    enum oct_err e = oct_cuda_answers(device, err);
    if (e)
        return e;
    struct oct_fused_pick pick;
    if (kernels == OCT_CUDA_FUSED)
        return oct_pick_fused(&pick, (int)device, plan, err);
    struct oct_cufft fft;
    e = oct_cufft_open(&fft, err);
    if (!e)
        oct_cufft_close(&fft);
    return e;
}

/* ---- memory ---- */

static size_t lane_bytes(const struct oct_plan *plan, enum oct_cuda_kernels kernels,
                         unsigned max_batch)
{
    const struct oct_geometry *g = &plan->geometry;
    const size_t pixels = (size_t)g->n_lines * g->depth;
    size_t a_bscan = oct_geometry_spectra_bytes(g) + g->n_lines + pixels * 5 +
                     (size_t)g->n_samples * sizeof(float2) + 5 * OCT_BINS * sizeof(uint32_t) +
                     sizeof(struct oct_cuda_limits);
    size_t tables = (size_t)g->upsampled * (sizeof(float) * (1 + plan->n_taps) + sizeof(float2)) +
                    (size_t)g->padded * sizeof(float2) * 9; /* fused: less */
    return a_bscan * max_batch + tables +
           (kernels == OCT_CUDA_PLAIN ? oct_plain_buffer_bytes(g) : (size_t)0);
}

extern "C" enum oct_err oct_cuda_check_memory(unsigned device, const struct oct_plan *plan,
                                              enum oct_cuda_kernels kernels, unsigned max_batch,
                                              unsigned n_lanes, struct oct_error *err)
{
    size_t available = 0, total = 0, work = 0;
    char of_it[64] = "";
    TRY((int)device, "select", cudaSetDevice((int)device));
    enum oct_err e =
        kernels == OCT_CUDA_PLAIN ? oct_plain_work_bytes(&plan->geometry, &work, err) : OCT_OK;
    if (e)
        return e;
    TRY((int)device, "free memory", cudaMemGetInfo(&available, &total));
    const size_t wanted = (lane_bytes(plan, kernels, max_batch) + work) * n_lanes;
    if (wanted <= available)
        return OCT_OK;
    if (work > 0)
        snprintf(of_it, sizeof(of_it), " (%zu MiB of it for cuFFT itself)",
                 ((work * n_lanes) >> 20) + 1);
    return oct_fail(err, OCT_E_NO_MEMORY,
                    "GPU %u has too little memory: %zu MiB wanted%s for %u streams of %u B-scans, "
                    "%zu MiB free of %zu MiB; lower pipeline.batch or the crop",
                    device, (wanted >> 20) + 1, of_it, n_lanes, max_batch, available >> 20,
                    total >> 20);
}

static enum oct_err warm_up(struct oct_cuda_lane *lane, struct oct_error *err);

static enum oct_err make_lane(struct oct_cuda_lane *lane, const struct oct_plan *plan,
                              struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    lane->events[DONE] = lane->done;
    for (; lane->n_events < DONE; lane->n_events++)
        TRY_LANE(lane, "event", cudaEventCreate(&lane->events[lane->n_events]));
    enum oct_err e = make_tables(lane, plan, err);
    if (!e)
        e = make_buffers(lane, g, err);
    if (!e)
        e = lane->kernels == OCT_CUDA_PLAIN ? make_plain(lane, g, err)
                                            : make_fused(lane, plan, err);
    if (!e) /* tables were uploaded outside the stream */
        TRY_LANE(lane, "start", cudaDeviceSynchronize());
    return e ? e : warm_up(lane, err);
}

extern "C" enum oct_err oct_cuda_lane_create(struct oct_cuda_lane **out, unsigned device,
                                             const struct oct_plan *plan,
                                             enum oct_cuda_kernels kernels, unsigned max_batch,
                                             struct oct_cuda_signs *signs, struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    *out = NULL;
    struct oct_cuda_lane *lane = new (std::nothrow) oct_cuda_lane();
    if (!lane)
        return oct_fail(err, OCT_E_NO_MEMORY, "CUDA engine: out of memory");
    lane->kernels = kernels;
    lane->max_batch = max_batch;
    lane->is_f32 = g->sample_type == OCT_SAMPLE_F32;
    lane->dc_bscan = plan->dc == OCT_DC_BSCAN;
    lane->t.n_samples = g->n_samples;
    lane->t.n_lines = g->n_lines;
    lane->t.depth = g->depth;
    lane->t.left = g->left;
    lane->t.crop_first = g->crop_first;
    lane->t.p1 = g->padded;
    lane->t.p2 = g->upsampled;
    lane->t.n_taps = plan->n_taps;
    lane->t.dc_stride = lane->dc_bscan ? g->n_samples : 0;
    enum oct_err e = oct_cuda_stream_open(lane, device, signs, err);
    if (!e)
        e = make_lane(lane, plan, err);
    if (e) {
        oct_cuda_lane_destroy(lane);
        return e;
    }
    oct_cuda_pin_through(device);
    *out = lane;
    return OCT_OK;
}

extern "C" void oct_cuda_lane_destroy(struct oct_cuda_lane *lane)
{
    if (!lane)
        return;
    oct_cuda_stream_drain(lane);
    oct_plain_finish(&lane->plain);
    oct_cuda_signs_note_call(lane->signs);
    for (unsigned i = 0; i < lane->n_events; i++) {
        cudaEventDestroy(lane->events[i]);
        oct_cuda_signs_note_call(lane->signs);
    }
    oct_cuda_stream_close(lane);
    delete lane;
}

/* ---- a batch ---- */

/* Rank of a percentile, and how far it lies towards the next. */
static double percentile_rank(double percent, size_t n)
{
    return percent / 100 * (double)(n - 1);
}

static float pixel_scale(double lo, double hi)
{
    return hi > lo ? (float)(255 / (hi - lo)) : 0;
}

static struct oct_cuda_job describe_job(const struct oct_cuda_lane *lane,
                                        const struct oct_engine_job *from)
{
    const struct oct_display *display = &from->display;
    const size_t n = (size_t)lane->t.n_lines * lane->t.depth;
    struct oct_cuda_job job = {};
    for (uint32_t j = 0; j < lane->t.n_lines; j++)
        job.n_valid += from->in->line_valid[j] != 0;
    job.flags |= display->log ? OCT_JOB_LOG : 0;
    job.flags |= job.n_valid < lane->t.n_lines ? OCT_JOB_MISSING : 0;
    job.flags |= from->out->values && !lane->is_f32 ? OCT_JOB_VALUES : 0;
    if (display->range == OCT_RANGE_AUTO) {
        job.flags |= OCT_JOB_AUTO;
    } else if (display->range == OCT_RANGE_PERCENTILE) {
        job.flags |= OCT_JOB_PERCENTILE;
        job.rank[0] = (uint32_t)percentile_rank(display->percentile_lo, n);
        job.rank[1] = (uint32_t)percentile_rank(display->percentile_hi, n);
    } else {
        job.flags |= lane->is_f32 ? 0 : OCT_JOB_DIRECT;
        job.lo = (float)display->lo;
        job.scale = pixel_scale(display->lo, display->hi);
    }
    return job;
}

static uint32_t all_flags(const struct oct_cuda_batch *batch)
{
    uint32_t flags = 0;
    for (unsigned k = 0; k < batch->n; k++)
        flags |= batch->job[k].flags;
    return flags;
}

static bool all_direct(const struct oct_cuda_batch *batch)
{
    bool all = true;
    for (unsigned k = 0; k < batch->n; k++)
        all = all && (batch->job[k].flags & OCT_JOB_DIRECT);
    return all;
}

/* Before spectra and pixels are touched: calls before may have come back late. */
static enum oct_err check_wanted(const struct oct_cuda_lane *lane, struct oct_error *err)
{
    if (oct_cuda_signs_given_up(lane->signs))
        return oct_fail(err, OCT_E_BACKEND, "GPU %d: the engine was given up meanwhile",
                        lane->device);
    return OCT_OK;
}

static enum oct_err upload(struct oct_cuda_lane *lane, struct oct_error *err)
{
    const size_t lines = lane->t.n_lines, bytes = lines * lane->t.n_samples * sizeof(uint16_t);
    for (unsigned k = 0; k < lane->batch.n; k++)
        if (lane->batch.job[k].flags & OCT_JOB_MISSING)
            TRY_LANE(lane, "upload",
                     cudaMemcpyAsync(lane->d_valid + k * lines, lane->h_valid + k * lines, lines,
                                     cudaMemcpyHostToDevice, lane->stream));
    enum oct_err e = check_wanted(lane, err);
    if (e)
        return e;
    TRY_LANE(lane, "upload",
             oct_copy_bscans(lane->h_spectra, lane->batch.n, (uint8_t *)lane->d_spectra, bytes,
                             cudaMemcpyHostToDevice, lane->stream));
    return OCT_OK;
}

static enum oct_err download(struct oct_cuda_lane *lane, struct oct_error *err)
{
    const size_t pixels = (size_t)lane->t.n_lines * lane->t.depth;
    enum oct_err e = check_wanted(lane, err);
    if (e)
        return e;
    TRY_LANE(lane, "download",
             oct_copy_bscans(lane->h_pixels, lane->batch.n,
                             lane->is_f32 ? (uint8_t *)lane->t.values : lane->t.pixels,
                             lane->is_f32 ? pixels * sizeof(float) : pixels, cudaMemcpyDeviceToHost,
                             lane->stream));
    for (unsigned k = 0; k < lane->batch.n; k++)
        if (lane->batch.job[k].flags & OCT_JOB_VALUES)
            TRY_LANE(lane, "download of values",
                     cudaMemcpyAsync(lane->h_values[k], lane->t.values + k * pixels,
                                     pixels * sizeof(float), cudaMemcpyDeviceToHost,
                                     lane->stream));
    return OCT_OK;
}

static unsigned value_blocks(const struct oct_cuda_lane *lane)
{
    const size_t n = (size_t)lane->t.n_lines * lane->t.depth;
    return (unsigned)((n + OCT_VALUES_PER_BLOCK - 1) / OCT_VALUES_PER_BLOCK);
}

static enum oct_err launch_chain(struct oct_cuda_lane *lane, struct oct_error *err)
{
    const struct oct_cuda_tables &t = lane->t;
    const unsigned n = lane->batch.n;
    if (lane->dc_bscan)
        OCT_LAUNCH((oct_mean_kernel),
                   dim3((t.n_samples + OCT_MEAN_COLUMNS - 1) / OCT_MEAN_COLUMNS, n),
                   dim3(OCT_MEAN_COLUMNS, OCT_MEAN_ROWS), 0, lane->stream, t, lane->batch);
    if (lane->kernels == OCT_CUDA_FUSED)
        OCT_LAUNCH((lane->fused.kernel), dim3((t.n_lines + 1) / 2, n), dim3(lane->fused.threads),
                   lane->fused.shared_bytes, lane->stream, t, lane->batch);
    else if (!oct_plain_launch(&lane->plain, t, lane->batch, lane->stream))
        return oct_fail(err, OCT_E_BACKEND, "GPU %d: cuFFT refuses a transform", lane->device);
    TRY_LANE(lane, "kernels", cudaGetLastError());
    return OCT_OK;
}

static enum oct_err launch_percentiles(struct oct_cuda_lane *lane, struct oct_error *err)
{
    const struct oct_cuda_tables &t = lane->t;
    const unsigned n = lane->batch.n, blocks = value_blocks(lane);
    const dim3 block(OCT_RANGE_THREADS);
    const size_t counters = OCT_BINS / 2 * sizeof(uint32_t);
    TRY_LANE(lane, "histogram",
             cudaMemsetAsync(lane->d_counts, 0, (size_t)n * 5 * OCT_BINS * sizeof(uint32_t),
                             lane->stream));
    OCT_LAUNCH((oct_histogram_kernel), dim3(blocks, n), block, counters, lane->stream, t,
               lane->batch, lane->d_counts);
    OCT_LAUNCH((oct_find_upper_kernel), dim3(4, n), block, 0, lane->stream, t, lane->batch,
               lane->d_counts, lane->d_limits);
    OCT_LAUNCH((oct_refine_kernel), dim3(blocks, 4, n), block, counters, lane->stream, t,
               lane->batch, lane->d_limits, lane->d_counts);
    OCT_LAUNCH((oct_find_lower_kernel), dim3(4, n), block, 0, lane->stream, t, lane->batch,
               lane->d_counts, lane->d_limits);
    TRY_LANE(lane, "histogram", cudaGetLastError());
    return OCT_OK;
}

static enum oct_err launch_limits(struct oct_cuda_lane *lane, struct oct_error *err)
{
    const unsigned n = lane->batch.n;
    const uint32_t flags = all_flags(&lane->batch);
    if (!(flags & (OCT_JOB_AUTO | OCT_JOB_PERCENTILE)))
        return OCT_OK;
    OCT_LAUNCH((oct_limits_clear_kernel), dim3(n), dim3(1), 0, lane->stream, lane->d_limits);
    if (flags & OCT_JOB_AUTO)
        OCT_LAUNCH((oct_min_max_kernel), dim3(value_blocks(lane), n), dim3(OCT_RANGE_THREADS), 0,
                   lane->stream, lane->t, lane->batch, lane->d_limits);
    if (flags & OCT_JOB_PERCENTILE) {
        enum oct_err e = launch_percentiles(lane, err);
        if (e)
            return e;
    }
    TRY_LANE(lane, "limits",
             cudaMemcpyAsync(lane->h_limits, lane->d_limits, n * sizeof(*lane->h_limits),
                             cudaMemcpyDeviceToHost, lane->stream));
    return OCT_OK;
}

static void launch_map(struct oct_cuda_lane *lane)
{
    OCT_LAUNCH((oct_map_kernel), dim3(value_blocks(lane), lane->batch.n), dim3(OCT_RANGE_THREADS),
               0, lane->stream, lane->t, lane->batch, lane->d_limits);
}

/* Pixels from values where that is still to be done, and everything to the host. */
static enum oct_err launch_end(struct oct_cuda_lane *lane, struct oct_error *err)
{
    if (!lane->is_f32 && !all_direct(&lane->batch))
        launch_map(lane);
    TRY_LANE(lane, "kernels", cudaGetLastError());
    TRY_LANE(lane, "event", cudaEventRecord(lane->events[COMPUTED], lane->stream));
    enum oct_err e = download(lane, err);
    if (e)
        return e;
    TRY_LANE(lane, "event", cudaEventRecord(lane->events[DONE], lane->stream));
    return OCT_OK;
}

/* Every kernel once, on an empty B-scan: their code is loaded at the first launch, which takes long
 * and would fall into the deadline of the first batch. */
static enum oct_err warm_up(struct oct_cuda_lane *lane, struct oct_error *err)
{
    const size_t spectra = (size_t)lane->t.n_lines * lane->t.n_samples * sizeof(uint16_t);
    lane->batch.n = 1;
    lane->batch.job[0] = {};
    lane->batch.job[0].flags = OCT_JOB_LOG | OCT_JOB_AUTO | OCT_JOB_PERCENTILE;
    lane->batch.job[0].n_valid = lane->t.n_lines;
    TRY_LANE(lane, "start", cudaMemsetAsync(lane->d_spectra, 0, spectra, lane->stream));
    enum oct_err e = launch_chain(lane, err);
    if (!e)
        e = launch_limits(lane, err);
    if (e)
        return e;
    if (!lane->is_f32)
        launch_map(lane);
    TRY_LANE(lane, "start", cudaGetLastError());
    TRY_LANE(lane, "start", cudaStreamSynchronize(lane->stream));
    return OCT_OK;
}

extern "C" void oct_cuda_lane_take(struct oct_cuda_lane *lane, const struct oct_engine_job *jobs,
                                   unsigned n)
{
    const size_t lines = lane->t.n_lines;
    lane->batch.n = n;
    for (unsigned k = 0; k < n; k++) {
        lane->batch.job[k] = describe_job(lane, &jobs[k]);
        lane->display[k] = jobs[k].display;
        lane->h_spectra[k] = (uintptr_t)jobs[k].in->spectra;
        lane->h_pixels[k] = (uintptr_t)jobs[k].out->pixels;
        lane->h_values[k] = jobs[k].out->values;
        if (lane->batch.job[k].flags & OCT_JOB_MISSING)
            memcpy(lane->h_valid + k * lines, jobs[k].in->line_valid, lines);
    }
}

extern "C" enum oct_err oct_cuda_lane_begin(struct oct_cuda_lane *lane, bool *needs_end,
                                            struct oct_error *err)
{
    *needs_end = (all_flags(&lane->batch) & OCT_JOB_PERCENTILE) != 0;
    TRY_LANE(lane, "event", cudaEventRecord(lane->events[BEGUN], lane->stream));
    enum oct_err e = upload(lane, err);
    if (e)
        return e;
    TRY_LANE(lane, "event", cudaEventRecord(lane->events[UPLOADED], lane->stream));
    if ((e = launch_chain(lane, err)) || (e = launch_limits(lane, err)))
        return e;
    if (!*needs_end)
        return launch_end(lane, err);
    TRY_LANE(lane, "event", cudaEventRecord(lane->events[DONE], lane->stream));
    return OCT_OK;
}

extern "C" enum oct_err oct_cuda_lane_repeat(struct oct_cuda_lane *lane, unsigned n_times,
                                             struct oct_error *err)
{
    TRY_LANE(lane, "event", cudaEventRecord(lane->events[BEGUN], lane->stream));
    for (unsigned i = 0; i < n_times; i++) {
        enum oct_err e = launch_chain(lane, err);
        if (e)
            return e;
    }
    TRY_LANE(lane, "event", cudaEventRecord(lane->events[DONE], lane->stream));
    return OCT_OK;
}

extern "C" enum oct_err oct_cuda_lane_end(struct oct_cuda_lane *lane, const double *lo,
                                          const double *hi, struct oct_error *err)
{
    for (unsigned k = 0; k < lane->batch.n; k++)
        if (lane->batch.job[k].flags & OCT_JOB_PERCENTILE) {
            lane->batch.job[k].lo = (float)lo[k];
            lane->batch.job[k].scale = pixel_scale(lo[k], hi[k]);
        }
    return launch_end(lane, err);
}

extern "C" enum oct_err oct_cuda_lane_poll(struct oct_cuda_lane *lane, struct oct_error *err)
{
    cudaError_t code = cudaEventQuery(lane->events[DONE]);
    oct_cuda_signs_note_call(lane->signs);
    if (code == cudaErrorNotReady) /* taken back, or the next launch's check would find it */
        return (void)cudaGetLastError(), OCT_E_AGAIN;
    TRY_LANE(lane, "a batch", code);
    return OCT_OK;
}

static float value_of_key(uint32_t key)
{
    uint32_t bits = key ^ ((key >> 31) ? 0x80000000u : 0xffffffffu);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

extern "C" void oct_cuda_lane_limits(const struct oct_cuda_lane *lane, unsigned k, double *lo,
                                     double *hi)
{
    const struct oct_display *display = &lane->display[k];
    const struct oct_cuda_limits *own = &lane->h_limits[k];
    const size_t n = (size_t)lane->t.n_lines * lane->t.depth;
    *lo = display->lo;
    *hi = display->hi;
    if (display->range == OCT_RANGE_AUTO) {
        *lo = value_of_key(own->low_key);
        *hi = value_of_key(own->high_key);
    } else if (display->range == OCT_RANGE_PERCENTILE) {
        const double percent[2] = {display->percentile_lo, display->percentile_hi};
        double at[2];
        for (int i = 0; i < 2; i++) {
            double rank = percentile_rank(percent[i], n), a = own->at[2 * i];
            at[i] = a + ((double)own->at[2 * i + 1] - a) * (rank - (double)(uint32_t)rank);
        }
        *lo = at[0];
        *hi = at[1];
    }
}

extern "C" enum oct_err oct_cuda_lane_stages(struct oct_cuda_lane *lane, double *seconds,
                                             struct oct_error *err)
{
    for (int i = 0; i < OCT_CUDA_N_STAGES; i++) {
        float ms;
        TRY_LANE(lane, "time", cudaEventElapsedTime(&ms, lane->events[i], lane->events[i + 1]));
        seconds[i] = ms * 1e-3;
    }
    return OCT_OK;
}
