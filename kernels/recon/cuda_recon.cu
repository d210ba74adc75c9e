/* The device side of the CUDA engine: streams, their buffers, what they queue. */
extern "C" {
#include "kernels/recon/percentile.h"
}
#include "kernels/device/cuda_copies.cuh"
#include "kernels/recon/cuda_recon.cuh"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#define SHARED_UPLOAD 4u /* B-scans of a batch from which on it comes up in the order of all */

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

static size_t table_bytes(const struct oct_plan *plan, enum oct_cuda_kernels kernels)
{
    const struct oct_geometry *g = &plan->geometry;
    if (plan->chain.interpolation == OCT_INTERPOLATION_NUFFT)
        return oct_spread_table_bytes(plan, kernels);
    return (size_t)g->upsampled * (sizeof(float) * (1 + plan->n_taps) + sizeof(float2)) +
           (size_t)g->padded * sizeof(float2) * 9; /* fused: less */
}

static size_t recon_bytes(const struct oct_plan *plan, enum oct_cuda_kernels kernels,
                          unsigned max_batch, bool has_complex)
{
    const struct oct_geometry *g = &plan->geometry;
    const size_t pixels = (size_t)g->n_lines * g->depth;
    size_t a_bscan = oct_geometry_spectra_bytes(g) * 7 / 4 + g->n_lines + pixels * 5 +
                     (has_complex ? pixels * sizeof(float2) : 0) +
                     (size_t)g->n_samples * sizeof(float2) + 5 * OCT_BINS * sizeof(uint32_t) +
                     sizeof(struct oct_cuda_limits);
    return a_bscan * max_batch + table_bytes(plan, kernels) +
           (has_complex ? plan->spread.n_grid / 2 * sizeof(float2) : (size_t)0) +
           (kernels == OCT_CUDA_PLAIN ? oct_plain_buffer_bytes(plan) : (size_t)0);
}

extern "C" enum oct_err oct_cuda_check_memory(unsigned device, const struct oct_plan *plan,
                                              enum oct_cuda_kernels kernels, unsigned max_batch,
                                              unsigned n_streams, bool has_complex,
                                              struct oct_error *err)
{
    size_t available = 0, total = 0, work = 0;
    char of_it[64] = "";
    TRY((int)device, "select", cudaSetDevice((int)device));
    enum oct_err e = kernels == OCT_CUDA_PLAIN ? oct_plain_work_bytes(plan, &work, err) : OCT_OK;
    if (e)
        return e;
    TRY((int)device, "free memory", cudaMemGetInfo(&available, &total));
    const size_t wanted = (recon_bytes(plan, kernels, max_batch, has_complex) + work) * n_streams;
    if (wanted <= available)
        return OCT_OK;
    if (work > 0)
        snprintf(of_it, sizeof(of_it), " (%zu MiB of it for cuFFT itself)",
                 ((work * n_streams) >> 20) + 1);
    return oct_fail(err, OCT_E_NO_MEMORY,
                    "GPU %u has too little memory: %zu MiB wanted%s for %u streams of %u B-scans, "
                    "%zu MiB free of %zu MiB; lower pipeline.batch or the crop",
                    device, (wanted >> 20) + 1, of_it, n_streams, max_batch, available >> 20,
                    total >> 20);
}

static enum oct_err warm_up(struct oct_cuda_recon *recon, struct oct_error *err);

static enum oct_err make_recon(struct oct_cuda_recon *recon, const struct oct_plan *plan,
                               struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    recon->events[DONE] = recon->done;
    for (; recon->n_events < DONE; recon->n_events++)
        TRY_STREAM(recon, "event", cudaEventCreate(&recon->events[recon->n_events]));
    enum oct_err e = make_tables(recon, plan, err);
    if (!e)
        e = make_buffers(recon, g, err);
    if (!e)
        e = recon->kernels == OCT_CUDA_PLAIN ? make_plain(recon, plan, err)
                                             : make_fused(recon, plan, err);
    if (!e) /* tables were uploaded outside the stream */
        TRY_STREAM(recon, "start", cudaDeviceSynchronize());
    return e ? e : warm_up(recon, err);
}

extern "C" enum oct_err oct_cuda_recon_create(struct oct_cuda_recon **out, unsigned device,
                                              const struct oct_plan *plan,
                                              enum oct_cuda_kernels kernels, unsigned max_batch,
                                              bool has_complex, struct oct_cuda_signs *signs,
                                              struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    *out = NULL;
    struct oct_cuda_recon *recon = new (std::nothrow) oct_cuda_recon();
    if (!recon)
        return oct_fail(err, OCT_E_NO_MEMORY, "CUDA engine: out of memory");
    recon->kernels = kernels;
    recon->max_batch = max_batch;
    recon->is_f32 = g->sample_type == OCT_SAMPLE_F32;
    recon->has_complex = has_complex;
    recon->dc_bscan = plan->chain.dc == OCT_DC_BSCAN;
    recon->dc_running = plan->chain.dc == OCT_DC_RUNNING;
    recon->t.n_samples = g->n_samples;
    recon->t.n_lines = g->n_lines;
    recon->t.depth = g->depth;
    recon->t.left = g->left;
    recon->t.crop_first = g->crop_first;
    recon->t.p1 = g->padded;
    recon->t.p2 = g->upsampled;
    recon->t.n_taps = plan->n_taps;
    recon->t.n_fft =
        plan->chain.interpolation == OCT_INTERPOLATION_NUFFT ? g->padded : g->upsampled;
    recon->t.dc_stride = recon->dc_bscan || recon->dc_running ? g->n_samples : 0;
    enum oct_err e = oct_cuda_stream_open(recon, device, signs, err);
    if (!e)
        e = make_recon(recon, plan, err);
    if (e) {
        oct_cuda_recon_destroy(recon);
        return e;
    }
    oct_cuda_pin_through(device);
    *out = recon;
    return OCT_OK;
}

extern "C" void oct_cuda_recon_destroy(struct oct_cuda_recon *recon)
{
    if (!recon)
        return;
    oct_cuda_stream_drain(recon);
    if (recon->uploads && recon->uploads->stream) { /* nothing waits for copies of a failed one */
        cudaStreamSynchronize(recon->uploads->stream);
        oct_cuda_signs_note_call(recon->signs);
    }
    oct_plain_finish(&recon->plain);
    oct_cuda_signs_note_call(recon->signs);
    for (unsigned i = 0; i < recon->n_events; i++) {
        cudaEventDestroy(recon->events[i]);
        oct_cuda_signs_note_call(recon->signs);
    }
    release_turn(recon->before);
    release_turn(recon->turn);
    release_uploads(recon->uploads);
    oct_cuda_signs_note_call(recon->signs);
    oct_cuda_stream_close(recon);
    delete recon;
}

/* ---- a batch ---- */

/* Rank of a percentile among all values, and how far it lies towards the next: those of missing
 * lines are the lowest and take no part (percentile.h). */
static double percentile_rank(const struct oct_cuda_recon *recon, const struct oct_cuda_job *job,
                              double percent)
{
    const uint32_t n_valid = job->n_valid ? job->n_valid : recon->t.n_lines;
    const size_t n = (size_t)n_valid * recon->t.depth;
    const size_t n_missing = (size_t)(recon->t.n_lines - n_valid) * recon->t.depth;
    return (double)n_missing + percent / 100 * (double)(n - 1);
}

static float pixel_scale(double lo, double hi)
{
    return hi > lo ? (float)(255 / (hi - lo)) : 0;
}

static struct oct_cuda_job describe_job(const struct oct_cuda_recon *recon, unsigned k,
                                        const struct oct_engine_job *from)
{
    const struct oct_image_frame *out = from->out;
    const size_t before = (size_t)k * recon->t.n_lines * recon->t.depth;
    const struct oct_display *display = &from->display;
    struct oct_cuda_job job = {};
    for (uint32_t j = 0; j < recon->t.n_lines; j++)
        job.n_valid += from->in->line_valid[j] != 0;
    job.flags |= display->log ? OCT_JOB_LOG : 0;
    job.flags |= job.n_valid < recon->t.n_lines ? OCT_JOB_MISSING : 0;
    job.flags |= out->values && !recon->is_f32 ? OCT_JOB_VALUES : 0;
    if ((out->complex_values || out->complex_device) && recon->has_complex)
        job.flags |= OCT_JOB_COMPLEX;
    job.complex = out->complex_device ? (float2 *)out->complex_device - before : recon->t.complex;
    if (display->range == OCT_RANGE_AUTO) {
        job.flags |= OCT_JOB_AUTO;
    } else if (display->range == OCT_RANGE_PERCENTILE) {
        job.flags |= OCT_JOB_PERCENTILE;
        job.rank[0] = percentile_rank(recon, &job, display->percentile_lo);
        job.rank[1] = percentile_rank(recon, &job, display->percentile_hi);
        job.before = display->smoothing_bscans / (1 + display->smoothing_bscans);
        job.volume = out->info.volume;
        job.acquisition = out->info.acquisition;
    } else {
        job.flags |= recon->is_f32 ? 0 : OCT_JOB_DIRECT;
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
static enum oct_err check_wanted(const struct oct_cuda_recon *recon, struct oct_error *err)
{
    if (oct_cuda_signs_given_up(recon->signs))
        return oct_fail(err, OCT_E_BACKEND, "GPU %d: the engine was given up meanwhile",
                        recon->device);
    return OCT_OK;
}

static void launch_unpack(struct oct_cuda_recon *recon, uint16_t *to, const uint8_t *from,
                          unsigned n, unsigned format)
{
    const size_t samples = (size_t)recon->t.n_lines * recon->t.n_samples;
    OCT_LAUNCH((oct_unpack_kernel), dim3((unsigned)(samples / (2 * OCT_UNPACK_THREADS) + 1), n),
               dim3(OCT_UNPACK_THREADS), 0, recon->stream, to, from, samples, format);
}

/* How many B-scans from k on have samples of one format. */
static unsigned count_alike(const struct oct_cuda_recon *recon, unsigned k)
{
    unsigned n = 1;
    while (k + n < recon->batch.n && recon->format[k + n] == recon->format[k])
        n++;
    return n;
}

/* Copies samples as they came: u16 to their place, others to where they are unpacked. Neighbours of
 * one format go together. */
static enum oct_err copy_spectra(struct oct_cuda_recon *recon, cudaStream_t stream,
                                 struct oct_error *err)
{
    const size_t samples = (size_t)recon->t.n_lines * recon->t.n_samples;
    const size_t room = recon->t.n_lines * oct_samples_bytes(OCT_LINES_12P, recon->t.n_samples);
    for (unsigned k = 0, n; k < recon->batch.n; k += n) {
        const unsigned format = recon->format[k];
        uint8_t *to = oct_samples_bits(format) == 16 ? (uint8_t *)(recon->d_spectra + k * samples)
                                                     : recon->d_packed + k * room;
        n = count_alike(recon, k);
        TRY_STREAM(recon, "upload",
                   oct_copy_bscans(recon->h_spectra + k, n, to,
                                   recon->t.n_lines * oct_samples_bytes(format, recon->t.n_samples),
                                   cudaMemcpyHostToDevice, stream));
    }
    return OCT_OK;
}

static enum oct_err unpack_spectra(struct oct_cuda_recon *recon, struct oct_error *err)
{
    const size_t samples = (size_t)recon->t.n_lines * recon->t.n_samples;
    const size_t room = recon->t.n_lines * oct_samples_bytes(OCT_LINES_12P, recon->t.n_samples);
    for (unsigned k = 0, n; k < recon->batch.n; k += n) {
        n = count_alike(recon, k);
        if (oct_samples_bits(recon->format[k]) != 16)
            launch_unpack(recon, recon->d_spectra + k * samples, recon->d_packed + k * room, n,
                          recon->format[k]);
    }
    TRY_STREAM(recon, "unpacking", cudaGetLastError());
    return OCT_OK;
}

/* Batches of many B-scans come up one behind the other, by one stream of all recons: those of
 * several streams share the bus, and a later batch's limits wait for an earlier one's. The order is
 * that of the calls, mostly of the jobs. A batch of few is up sooner by its own stream. */
static enum oct_err upload_spectra(struct oct_cuda_recon *recon, struct oct_error *err)
{
    const bool shares = recon->uploads && recon->batch.n >= SHARED_UPLOAD;
    const cudaStream_t stream = shares ? recon->uploads->stream : recon->stream;
    const enum oct_err e = copy_spectra(recon, stream, err);
    if (e)
        return e;
    TRY_STREAM(recon, "event", cudaEventRecord(recon->events[UPLOADED], stream));
    if (shares)
        TRY_STREAM(recon, "order", cudaStreamWaitEvent(recon->stream, recon->events[UPLOADED], 0));
    return unpack_spectra(recon, err);
}

static enum oct_err upload(struct oct_cuda_recon *recon, struct oct_error *err)
{
    const size_t lines = recon->t.n_lines;
    for (unsigned k = 0; k < recon->batch.n; k++)
        if (recon->batch.job[k].flags & OCT_JOB_MISSING)
            TRY_STREAM(recon, "upload",
                       cudaMemcpyAsync(recon->d_valid + k * lines, recon->h_valid + k * lines,
                                       lines, cudaMemcpyHostToDevice, recon->stream));
    if (recon->dc_running)
        TRY_STREAM(recon, "upload",
                   cudaMemcpyAsync(recon->t.dc, recon->h_dc,
                                   recon->batch.n * (size_t)recon->t.n_samples * sizeof(float2),
                                   cudaMemcpyHostToDevice, recon->stream));
    enum oct_err e = check_wanted(recon, err);
    if (e)
        return e;
    return upload_spectra(recon, err);
}

static enum oct_err download(struct oct_cuda_recon *recon, struct oct_error *err)
{
    const size_t pixels = (size_t)recon->t.n_lines * recon->t.depth;
    enum oct_err e = check_wanted(recon, err);
    if (e)
        return e;
    TRY_STREAM(recon, "download",
               oct_copy_bscans(recon->h_pixels, recon->batch.n,
                               recon->is_f32 ? (uint8_t *)recon->t.values : recon->t.pixels,
                               recon->is_f32 ? pixels * sizeof(float) : pixels,
                               cudaMemcpyDeviceToHost, recon->stream));
    for (unsigned k = 0; k < recon->batch.n; k++)
        if (recon->batch.job[k].flags & OCT_JOB_VALUES)
            TRY_STREAM(recon, "download of values",
                       cudaMemcpyAsync(recon->h_values[k], recon->t.values + k * pixels,
                                       pixels * sizeof(float), cudaMemcpyDeviceToHost,
                                       recon->stream));
    for (unsigned k = 0; k < recon->batch.n; k++)
        if ((recon->batch.job[k].flags & OCT_JOB_COMPLEX) && recon->h_complex[k])
            TRY_STREAM(
                recon, "download of complex values",
                cudaMemcpyAsync(recon->h_complex[k], recon->batch.job[k].complex + k * pixels,
                                pixels * sizeof(float2), cudaMemcpyDeviceToHost, recon->stream));
    return OCT_OK;
}

static unsigned value_blocks(const struct oct_cuda_recon *recon, size_t n_of_block)
{
    const size_t n = (size_t)recon->t.n_lines * recon->t.depth;
    return (unsigned)((n + n_of_block - 1) / n_of_block);
}

static enum oct_err launch_chain(struct oct_cuda_recon *recon, struct oct_error *err)
{
    const struct oct_cuda_tables &t = recon->t;
    const unsigned n = recon->batch.n;
    if (recon->dc_bscan)
        OCT_LAUNCH((oct_mean_kernel),
                   dim3((t.n_samples + OCT_MEAN_COLUMNS - 1) / OCT_MEAN_COLUMNS, n),
                   dim3(OCT_MEAN_COLUMNS, OCT_MEAN_ROWS), 0, recon->stream, t, recon->batch);
    if (recon->kernels == OCT_CUDA_FUSED)
        OCT_LAUNCH_NEXT_IF(recon->dc_bscan, (recon->fused.kernel), dim3((t.n_lines + 1) / 2, n),
                           dim3(recon->fused.threads), recon->fused.shared_bytes, recon, t,
                           recon->batch);
    else if (!oct_plain_launch(&recon->plain, t, recon->batch, recon->stream))
        return oct_fail(err, OCT_E_BACKEND, "GPU %d: cuFFT refuses a transform", recon->device);
    TRY_STREAM(recon, "kernels", cudaGetLastError());
    return OCT_OK;
}

/* After a batch, for the next: nobody waits for it. */
static enum oct_err clear_counts(struct oct_cuda_recon *recon, struct oct_error *err)
{
    if (all_flags(&recon->batch) & OCT_JOB_PERCENTILE)
        TRY_STREAM(recon, "histogram",
                   cudaMemsetAsync(recon->d_counts, 0,
                                   (size_t)recon->batch.n * 5 * OCT_BINS * sizeof(uint32_t),
                                   recon->stream));
    return OCT_OK;
}

static enum oct_err launch_percentiles(struct oct_cuda_recon *recon, struct oct_error *err)
{
    const struct oct_cuda_tables &t = recon->t;
    const unsigned n = recon->batch.n;
    const dim3 block(OCT_RANGE_THREADS), finds(OCT_FIND_THREADS);
    const size_t counters = OCT_BINS / 2 * sizeof(uint32_t);
    /* few blocks empty and add fewer counters, many have a single B-scan sooner */
    const unsigned n_rounds = n < OCT_COUNT_ROUNDS ? 1 : OCT_COUNT_ROUNDS;
    OCT_LAUNCH_NEXT(
        (oct_histogram_kernel), dim3(value_blocks(recon, (size_t)n_rounds * OCT_COUNT_VALUES), n),
        dim3(OCT_COUNT_THREADS), counters, recon, t, recon->batch, n_rounds, recon->d_counts);
    OCT_LAUNCH_NEXT((oct_find_upper_kernel), dim3(4, n), finds, 0, recon, t, recon->batch,
                    recon->d_counts, recon->d_limits);
    OCT_LAUNCH_NEXT((oct_refine_kernel), dim3(value_blocks(recon, OCT_VALUES_PER_BLOCK), n), block,
                    0, recon, t, recon->batch, recon->d_limits, recon->d_counts);
    OCT_LAUNCH_NEXT((oct_find_lower_kernel), dim3(4, n), finds, 0, recon, t, recon->batch,
                    recon->d_counts, recon->d_limits);
    TRY_STREAM(recon, "histogram", cudaGetLastError());
    return OCT_OK;
}

static enum oct_err launch_limits(struct oct_cuda_recon *recon, struct oct_error *err)
{
    const unsigned n = recon->batch.n;
    const uint32_t flags = all_flags(&recon->batch);
    if (!(flags & (OCT_JOB_AUTO | OCT_JOB_PERCENTILE)))
        return OCT_OK;
    if (flags & OCT_JOB_AUTO) {
        OCT_LAUNCH((oct_limits_clear_kernel), dim3(n), dim3(1), 0, recon->stream, recon->d_limits);
        OCT_LAUNCH_NEXT((oct_min_max_kernel), dim3(value_blocks(recon, OCT_VALUES_PER_BLOCK), n),
                        dim3(OCT_RANGE_THREADS), 0, recon, recon->t, recon->batch, recon->d_limits);
    }
    return flags & OCT_JOB_PERCENTILE ? launch_percentiles(recon, err) : OCT_OK;
}

static enum oct_err download_limits(struct oct_cuda_recon *recon, struct oct_error *err)
{
    if (all_flags(&recon->batch) & (OCT_JOB_AUTO | OCT_JOB_PERCENTILE))
        TRY_STREAM(recon, "limits",
                   cudaMemcpyAsync(recon->h_limits, recon->d_limits,
                                   recon->batch.n * sizeof(*recon->h_limits),
                                   cudaMemcpyDeviceToHost, recon->stream));
    return OCT_OK;
}

static void launch_smooth(struct oct_cuda_recon *recon, const struct oct_cuda_smoothed *before)
{
    OCT_LAUNCH((oct_smooth_kernel), dim3(1), dim3(OCT_CUDA_MAX_BATCH), 0, recon->stream,
               recon->batch, recon->d_limits, before, recon->turn->after, recon->h_limits);
}

static void launch_map(struct oct_cuda_recon *recon)
{
    OCT_LAUNCH_NEXT_IF(recon->has_smoothed, (oct_map_kernel),
                       dim3(value_blocks(recon, OCT_VALUES_PER_BLOCK), recon->batch.n),
                       dim3(OCT_RANGE_THREADS), 0, recon, recon->t, recon->batch, recon->d_limits,
                       recon->has_smoothed, recon->h_limits);
}

/* Pixels from values where that is still to be done, and everything to the host. */
static enum oct_err launch_end(struct oct_cuda_recon *recon, struct oct_error *err)
{
    if (!recon->is_f32 && !all_direct(&recon->batch))
        launch_map(recon);
    TRY_STREAM(recon, "kernels", cudaGetLastError());
    TRY_STREAM(recon, "event", cudaEventRecord(recon->events[COMPUTED], recon->stream));
    enum oct_err e = download(recon, err);
    if (!e && recon->is_f32 && (all_flags(&recon->batch) & OCT_JOB_AUTO))
        e = download_limits(recon, err); /* else the kernel of the pixels has shown them */
    if (e)
        return e;
    TRY_STREAM(recon, "event", cudaEventRecord(recon->events[DONE], recon->stream));
    return clear_counts(recon, err);
}

/* Every kernel once, on an empty B-scan: their code is loaded at the first launch, which takes long
 * and would fall into the deadline of the first batch. */
static enum oct_err warm_up(struct oct_cuda_recon *recon, struct oct_error *err)
{
    const size_t spectra = (size_t)recon->t.n_lines * recon->t.n_samples;
    recon->batch.n = 1;
    recon->batch.job[0] = {};
    recon->batch.job[0].flags = OCT_JOB_LOG | OCT_JOB_AUTO | OCT_JOB_PERCENTILE;
    recon->batch.job[0].n_valid = recon->t.n_lines;
    TRY_STREAM(recon, "start", cudaMemsetAsync(recon->d_packed, 0, spectra, recon->stream));
    launch_unpack(recon, recon->d_spectra, (const uint8_t *)recon->d_packed, 1, OCT_LINES_U8);
    enum oct_err e = launch_chain(recon, err);
    if (!e)
        e = launch_limits(recon, err);
    if (e)
        return e;
    launch_smooth(recon, NULL);
    if (!recon->is_f32)
        launch_map(recon);
    e = clear_counts(recon, err);
    if (e)
        return e;
    TRY_STREAM(recon, "start", cudaGetLastError());
    TRY_STREAM(recon, "start", cudaStreamSynchronize(recon->stream));
    return OCT_OK;
}

static void take_dc(struct oct_cuda_recon *recon, unsigned k, const float *dc)
{
    const size_t n = recon->t.n_samples;
    for (size_t i = 0; i < n; i++)
        recon->h_dc[k * n + i] = make_float2(dc[i], dc[n + i]);
}

extern "C" void oct_cuda_recon_take(struct oct_cuda_recon *recon, const struct oct_engine_job *jobs,
                                    unsigned n)
{
    const size_t lines = recon->t.n_lines;
    recon->batch.n = n;
    recon->has_smoothed = false;
    for (unsigned k = 0; k < n; k++) {
        recon->batch.job[k] = describe_job(recon, k, &jobs[k]);
        recon->display[k] = jobs[k].display;
        recon->h_spectra[k] = (uintptr_t)jobs[k].in->spectra;
        recon->format[k] = jobs[k].in->format;
        recon->h_pixels[k] = (uintptr_t)jobs[k].out->pixels;
        recon->h_values[k] = jobs[k].out->values;
        recon->h_complex[k] = jobs[k].out->complex_values;
        if (recon->batch.job[k].flags & OCT_JOB_MISSING)
            memcpy(recon->h_valid + k * lines, jobs[k].in->line_valid, lines);
        if (recon->dc_running)
            take_dc(recon, k, jobs[k].dc);
    }
}

extern "C" enum oct_err oct_cuda_recon_begin(struct oct_cuda_recon *recon, bool *needs_end,
                                             struct oct_error *err)
{
    *needs_end = (all_flags(&recon->batch) & OCT_JOB_PERCENTILE) != 0;
    TRY_STREAM(recon, "event", cudaEventRecord(recon->events[BEGUN], recon->stream));
    enum oct_err e = upload(recon, err);
    if (e || (e = launch_chain(recon, err)) || (e = launch_limits(recon, err)))
        return e;
    return *needs_end ? OCT_OK : launch_end(recon, err);
}

extern "C" enum oct_err oct_cuda_recon_open_uploads(struct oct_cuda_recon *recon,
                                                    struct oct_error *err)
{
    recon->uploads = new (std::nothrow) oct_cuda_uploads();
    if (!recon->uploads)
        return oct_fail(err, OCT_E_NO_MEMORY, "CUDA engine: out of memory");
    recon->uploads->n_holders = 1;
    TRY_STREAM(recon, "stream",
               cudaStreamCreateWithFlags(&recon->uploads->stream, cudaStreamNonBlocking));
    return OCT_OK;
}

extern "C" void oct_cuda_recon_share_uploads(struct oct_cuda_recon *recon,
                                             struct oct_cuda_recon *first)
{
    first->uploads->n_holders++;
    recon->uploads = first->uploads;
}

extern "C" struct oct_cuda_turn *oct_cuda_recon_hold_turn(struct oct_cuda_recon *recon)
{
    recon->turn->n_holders++;
    return recon->turn;
}

extern "C" enum oct_err oct_cuda_recon_smooth(struct oct_cuda_recon *recon,
                                              struct oct_cuda_turn *before, struct oct_error *err)
{
    release_turn(recon->before); /* that batch is done */
    recon->before = before;
    if (before && before != recon->turn)
        TRY_STREAM(recon, "order", cudaStreamWaitEvent(recon->stream, before->smoothed, 0));
    launch_smooth(recon, before ? before->after : NULL);
    TRY_STREAM(recon, "event", cudaEventRecord(recon->turn->smoothed, recon->stream));
    recon->has_smoothed = true;
    return launch_end(recon, err);
}

extern "C" enum oct_err oct_cuda_recon_look(struct oct_cuda_recon *recon, struct oct_error *err)
{
    const enum oct_err e = download_limits(recon, err);
    if (e)
        return e;
    TRY_STREAM(recon, "event", cudaEventRecord(recon->events[DONE], recon->stream));
    return OCT_OK;
}

extern "C" enum oct_err oct_cuda_recon_repeat(struct oct_cuda_recon *recon, unsigned n_times,
                                              struct oct_error *err)
{
    TRY_STREAM(recon, "event", cudaEventRecord(recon->events[BEGUN], recon->stream));
    for (unsigned i = 0; i < n_times; i++) {
        enum oct_err e = launch_chain(recon, err);
        if (e)
            return e;
    }
    TRY_STREAM(recon, "event", cudaEventRecord(recon->events[DONE], recon->stream));
    return OCT_OK;
}

extern "C" enum oct_err oct_cuda_recon_end(struct oct_cuda_recon *recon, const double *lo,
                                           const double *hi, struct oct_error *err)
{
    for (unsigned k = 0; k < recon->batch.n; k++)
        if (recon->batch.job[k].flags & OCT_JOB_PERCENTILE) {
            recon->batch.job[k].lo = (float)lo[k];
            recon->batch.job[k].scale = pixel_scale(lo[k], hi[k]);
        }
    return launch_end(recon, err);
}

extern "C" enum oct_err oct_cuda_recon_poll(struct oct_cuda_recon *recon, struct oct_error *err)
{
    cudaError_t code = cudaEventQuery(recon->events[DONE]);
    oct_cuda_signs_note_call(recon->signs);
    if (code == cudaErrorNotReady) /* taken back, or the next launch's check would find it */
        return (void)cudaGetLastError(), OCT_E_AGAIN;
    TRY_STREAM(recon, "a batch", code);
    return OCT_OK;
}

static float value_of_key(uint32_t key)
{
    uint32_t bits = key ^ ((key >> 31) ? 0x80000000u : 0xffffffffu);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

extern "C" void oct_cuda_recon_limits(const struct oct_cuda_recon *recon, unsigned k, double *lo,
                                      double *hi)
{
    const struct oct_display *display = &recon->display[k];
    const struct oct_cuda_limits *own = &recon->h_limits[k];
    *lo = display->lo;
    *hi = display->hi;
    if (display->range == OCT_RANGE_AUTO) {
        *lo = value_of_key(own->low_key);
        *hi = value_of_key(own->high_key);
    } else if (recon->has_smoothed && display->range == OCT_RANGE_PERCENTILE) {
        *lo = own->lo;
        *hi = own->hi;
    } else if (display->range == OCT_RANGE_PERCENTILE) {
        double at[2];
        for (int i = 0; i < 2; i++) {
            double rank = recon->batch.job[k].rank[i];
            double a = own->at[2 * i];
            at[i] = a + ((double)own->at[2 * i + 1] - a) * (rank - (double)(uint32_t)rank);
        }
        *lo = at[0];
        *hi = at[1];
    }
}

extern "C" enum oct_err oct_cuda_recon_stages(struct oct_cuda_recon *recon, double *seconds,
                                              struct oct_error *err)
{
    for (int i = 0; i < OCT_CUDA_N_STAGES; i++) {
        float ms;
        TRY_STREAM(
            recon, "time",
            cudaEventElapsedTime(&ms, recon->events[BEGUN + i], recon->events[BEGUN + i + 1]));
        seconds[i] = ms * 1e-3;
    }
    return OCT_OK;
}
