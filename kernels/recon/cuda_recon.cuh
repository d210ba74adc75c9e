/* The reconstruction on one stream and what it holds on its device: tables, buffers, plans, and the
 * kernel that fits. Part of cuda_recon.cu. */
#ifndef OCT_KERNELS_CUDA_RECON_CUH
#define OCT_KERNELS_CUDA_RECON_CUH

#include "kernels/device/cuda_stream.cuh"
#include "kernels/recon/cuda_pick.cuh"
#include "kernels/recon/cuda_plain.cuh"
#include "kernels/recon/cuda_range.cuh"
#include "kernels/recon/cuda_tables.cuh"
#include "kernels/recon/cuda_unpack.cuh"

#include <atomic>
#include <vector>

enum stage_event { BEGUN, UPLOADED, COMPUTED, DONE, N_EVENTS };

/* Where a recon leaves its limits for the one that has the next batch, which may still read them
 * when the recon has gone. */
struct oct_cuda_turn {
    std::atomic<unsigned> n_holders;
    cudaEvent_t smoothed; /* `after` is there */
    bool has_event;
    struct oct_cuda_smoothed *after; /* on the device: after the last batch with percentiles */
};

/* The stream by which batches of all recons of a device come up; the last to let go frees it. */
struct oct_cuda_uploads {
    std::atomic<unsigned> n_holders;
    cudaStream_t stream;
};

struct oct_cuda_recon : oct_cuda_stream {
    enum oct_cuda_kernels kernels;
    bool is_f32, has_complex, dc_bscan, dc_running;
    unsigned max_batch;
    struct oct_fused_pick fused;
    struct oct_plain plain;
    struct oct_cuda_tables t;
    uint16_t *d_spectra; /* the same memory as t.spectra, t.valid */
    uint8_t *d_valid;
    uint8_t *d_packed;  /* [max_batch][M][3 * N / 2] of samples that are not u16, as they came */
    uint32_t *d_counts; /* [max_batch][5][OCT_BINS] */
    struct oct_cuda_limits *d_limits, *h_limits; /* [max_batch] */
    struct oct_cuda_turn *turn, *before;         /* its own; that of the batch before its last */
    struct oct_cuda_uploads *uploads;            /* NULL: none are shared */
    bool has_smoothed;                           /* its batch at work is smoothed on the device */
    unsigned n_events;                           /* of its own: DONE is the stream's */
    cudaEvent_t events[N_EVENTS];
    struct oct_cuda_batch batch; /* at work, as are the next; copies, not the jobs themselves */
    struct oct_display display[OCT_CUDA_MAX_BATCH];
    uint16_t format[OCT_CUDA_MAX_BATCH]; /* of the jobs' samples */
    uintptr_t h_spectra[OCT_CUDA_MAX_BATCH], h_pixels[OCT_CUDA_MAX_BATCH];
    float *h_values[OCT_CUDA_MAX_BATCH];  /* of jobs with OCT_JOB_VALUES */
    float *h_complex[OCT_CUDA_MAX_BATCH]; /* of jobs with OCT_JOB_COMPLEX; NULL: it stays there */
    uint8_t *h_valid;                     /* [max_batch][M]; of jobs with missing lines */
    float2 *h_dc;                         /* [max_batch][N] dc=running: the jobs' lines */
};

template <class T>
static enum oct_err upload_table(struct oct_cuda_recon *recon, const T **table, const T *values,
                                 size_t n, struct oct_error *err)
{
    T *memory = NULL;
    enum oct_err e = oct_stream_alloc(recon, &memory, n, err);
    if (e)
        return e;
    TRY_STREAM(recon, "upload of tables",
               cudaMemcpy(memory, values, n * sizeof(T), cudaMemcpyHostToDevice));
    *table = memory;
    return OCT_OK;
}

template <class T>
static enum oct_err upload_table(struct oct_cuda_recon *recon, const T **table,
                                 const std::vector<T> &values, struct oct_error *err)
{
    return upload_table(recon, table, values.data(), values.size(), err);
}

/* ---- its life ---- */

/* Of linear and cubic. */
static enum oct_err make_tap_tables(struct oct_cuda_recon *recon, const struct oct_plan *plan,
                                    struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    struct oct_cuda_tables *t = &recon->t;
    const bool fused = recon->kernels == OCT_CUDA_FUSED;
    enum oct_err e = upload_table(recon, &t->shift, oct_make_shift(plan, fused), err);
    if (!e && fused)
        e = upload_table(recon, &t->resample, oct_make_resample(plan), err);
    if (!e && !fused)
        e = upload_table(recon, &t->tap_first, plan->tap_first, g->upsampled, err);
    if (!e && !fused)
        e = upload_table(recon, &t->weight, plan->weight, (size_t)plan->n_taps * g->upsampled, err);
    if (!e && !fused)
        e = upload_table(recon, &t->phase, oct_make_phase(plan), err);
    return e;
}

/* Of nufft. */
static enum oct_err make_spread_tables(struct oct_cuda_recon *recon, const struct oct_plan *plan,
                                       struct oct_error *err)
{
    const struct oct_spread *s = &plan->spread;
    struct oct_cuda_tables *t = &recon->t;
    t->n_wrap = s->n_wrap;
    enum oct_err e = upload_table(recon, &t->gain, s->gain, s->n_grid / 2, err);
    if (!e && recon->has_complex)
        e = upload_table(recon, &t->factor, (const float2 *)s->factor, s->n_grid / 2, err);
    if (e)
        return e;
    if (recon->kernels == OCT_CUDA_PLAIN) {
        e = upload_table(recon, &t->spread_at, s->at, s->n_grid + 1, err);
        if (!e)
            e = upload_table(recon, &t->spread_first, s->first, s->n_grid, err);
        return e ? e : upload_table(recon, &t->spread_weight, oct_make_weights(s), err);
    }
    const std::vector<uint32_t> row = oct_slice_rows(s), first = oct_slice_first(plan, row);
    e = upload_table(recon, &t->spread_at, row, err);
    if (!e)
        e = upload_table(recon, &t->spread_first, first, err);
    return e ? e : upload_table(recon, &t->spread_weight, oct_slice_weights(plan, row, first), err);
}

static enum oct_err make_tables(struct oct_cuda_recon *recon, const struct oct_plan *plan,
                                struct oct_error *err)
{
    struct oct_cuda_tables *t = &recon->t;
    const bool nufft = plan->chain.interpolation == OCT_INTERPOLATION_NUFFT;
    enum oct_err e =
        nufft ? make_spread_tables(recon, plan, err) : make_tap_tables(recon, plan, err);
    if (!e && recon->kernels == OCT_CUDA_FUSED)
        e = upload_table(recon, &t->twiddle, oct_make_twiddles(plan), err);
    if (!e && !recon->dc_bscan && !recon->dc_running) {
        const float2 *background;
        e = upload_table(recon, &background, oct_make_background(plan), err);
        t->dc = e ? NULL : const_cast<float2 *>(background);
    }
    return e;
}

static enum oct_err make_turn(struct oct_cuda_recon *recon, struct oct_error *err)
{
    recon->turn = new (std::nothrow) oct_cuda_turn();
    if (!recon->turn)
        return oct_fail(err, OCT_E_NO_MEMORY, "CUDA engine: out of memory");
    recon->turn->n_holders = 1;
    TRY_STREAM(recon, "event", cudaEventCreate(&recon->turn->smoothed));
    recon->turn->has_event = true;
    TRY_STREAM(recon, "limits",
               cudaMalloc((void **)&recon->turn->after, sizeof(*recon->turn->after)));
    return OCT_OK;
}

/* The last one to let go frees it. */
static void release_turn(struct oct_cuda_turn *turn)
{
    if (!turn || --turn->n_holders > 0)
        return;
    if (turn->has_event)
        cudaEventDestroy(turn->smoothed);
    cudaFree(turn->after);
    delete turn;
}

static void release_uploads(struct oct_cuda_uploads *uploads)
{
    if (!uploads || --uploads->n_holders > 0)
        return;
    if (uploads->stream)
        cudaStreamDestroy(uploads->stream);
    delete uploads;
}

static enum oct_err make_buffers(struct oct_cuda_recon *recon, const struct oct_geometry *g,
                                 struct oct_error *err)
{
    struct oct_cuda_tables *t = &recon->t;
    const size_t n = recon->max_batch, pixels = n * g->n_lines * g->depth;
    enum oct_err e = oct_stream_alloc(recon, &recon->d_spectra, n * g->n_lines * g->n_samples, err);
    if (!e)
        e = oct_stream_alloc(
            recon, &recon->d_packed,
            n * g->n_lines * (size_t)oct_samples_bytes(OCT_LINES_12P, g->n_samples), err);
    if (!e)
        e = oct_stream_alloc(recon, &recon->d_valid, n * g->n_lines, err);
    if (!e)
        e = oct_stream_alloc(recon, &t->values, pixels, err);
    if (!e && recon->has_complex)
        e = oct_stream_alloc(recon, &t->complex, pixels, err);
    if (!e && !recon->is_f32)
        e = oct_stream_alloc(recon, &t->pixels, pixels, err);
    if (!e && (recon->dc_bscan || recon->dc_running))
        e = oct_stream_alloc(recon, &t->dc, n * g->n_samples, err);
    if (!e)
        e = oct_stream_alloc(recon, &recon->d_counts, n * 5 * OCT_BINS, err);
    if (!e)
        e = oct_stream_alloc(recon, &recon->d_limits, n, err);
    if (!e)
        e = make_turn(recon, err);
    if (e)
        return e;
    t->spectra = recon->d_spectra;
    t->valid = recon->d_valid;
    if (recon->dc_running) /* kernels run once before a line has come */
        TRY_STREAM(recon, "DC line", cudaMemset(t->dc, 0, n * g->n_samples * sizeof(*t->dc)));
    TRY_STREAM(recon, "limits", cudaMemset(recon->d_limits, 0, n * sizeof(*recon->d_limits)));
    TRY_STREAM(recon, "histogram",
               cudaMemset(recon->d_counts, 0, n * 5 * OCT_BINS * sizeof(*recon->d_counts)));
    e = oct_stream_pin(recon, &recon->h_limits, n, err);
    if (!e)
        e = oct_stream_pin(recon, &recon->h_valid, n * g->n_lines, err);
    return e || !recon->dc_running ? e : oct_stream_pin(recon, &recon->h_dc, n * g->n_samples, err);
}

static enum oct_err make_plain(struct oct_cuda_recon *recon, const struct oct_plan *plan,
                               struct oct_error *err)
{
    struct oct_plain *p = &recon->plain;
    p->chunk = oct_plain_chunk(plan);
    const size_t chunk = p->chunk, p1 = plan->geometry.padded;
    const bool nufft = oct_plain_is_nufft(plan);
    enum oct_err e = oct_stream_alloc(recon, &p->x, chunk * p1, err);
    if (!e && !nufft)
        e = oct_stream_alloc(recon, &p->spectrum, chunk * (p1 / 2 + 1), err);
    if (!e && !nufft)
        e = oct_stream_alloc(recon, &p->odd, chunk * p1, err);
    if (!e)
        e = oct_stream_alloc(recon, &p->v, chunk * recon->t.n_fft, err);
    if (e)
        return e;
    TRY_STREAM(recon, "plain buffers", cudaMemset(p->x, 0, chunk * p1 * sizeof(float)));
    return oct_plain_plans(p, plan, recon->stream, err);
}

static enum oct_err make_fused(struct oct_cuda_recon *recon, const struct oct_plan *plan,
                               struct oct_error *err)
{
    enum oct_err e = oct_pick_fused(&recon->fused, recon->device, plan, err);
    if (e)
        return e;
    TRY_STREAM(recon, "shared memory",
               cudaFuncSetAttribute((const void *)recon->fused.kernel,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    (int)recon->fused.shared_bytes));
    return OCT_OK;
}

#endif
