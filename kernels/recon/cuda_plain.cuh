/* The plain variant: one kernel a step around cuFFT's transforms, the readable twin of the fused
 * kernel and the way for other line lengths. Lines go through in chunks that share one set of
 * buffers and FFT plans; lines beyond the last are transformed too, and not looked at. */
#ifndef OCT_KERNELS_CUDA_PLAIN_CUH
#define OCT_KERNELS_CUDA_PLAIN_CUH

#include "kernels/device/cuda_library.cuh"
#include "kernels/recon/cuda_types.cuh"

#define OCT_PLAIN_THREADS 128
#define OCT_PLAIN_CHUNK_BYTES ((size_t)16 << 20) /* 292 lines of P1 = 2048 */

enum oct_plain_step { FORWARD, FORWARD_REAL, INVERSE_REAL, N_TRANSFORMS }; /* nufft: the first */

struct oct_plain {
    struct oct_cufft fft;
    unsigned n_plans;
    cufftHandle plan[N_TRANSFORMS]; /* P2 c2c, P1 r2c, P1 c2r; nufft: P1 c2c alone */
    unsigned chunk;                 /* lines */
    float *x;         /* [chunk][P1] the line less DC, zeros at both ends: the even samples */
    float2 *spectrum; /* [chunk][P1/2 + 1]; nufft: NULL */
    float *odd;       /* [chunk][P1]; nufft: NULL */
    float2 *v;        /* [chunk][P2]; nufft: [chunk][P1] */
};

/* A chunk: lines first_line .. first_line + n_lines - 1 of one B-scan. */
struct oct_plain_lines {
    unsigned bscan, first, n;
};

/* grid (ceil(P1 / 128), lines): steps 1 and 2. */
static __global__ void oct_plain_load_kernel(struct oct_cuda_tables t, struct oct_cuda_batch batch,
                                             struct oct_plain_lines lines, float *x)
{
    const unsigned at = blockIdx.x * OCT_PLAIN_THREADS + threadIdx.x;
    const unsigned line = lines.first + blockIdx.y, i = at - t.left;
    const struct oct_cuda_job &job = batch.job[lines.bscan];
    const size_t row = (size_t)lines.bscan * t.n_lines + line;
    const bool came = !(job.flags & OCT_JOB_MISSING) || t.valid[row];

    if (at >= t.p1)
        return;
    float value = 0;
    if (came && i < t.n_samples) { /* also false left of the line: i wraps around */
        float2 dc = t.dc[(size_t)lines.bscan * t.dc_stride + i];
        value = ((float)t.spectra[row * t.n_samples + i] - dc.x) - dc.y;
    }
    x[(size_t)blockIdx.y * t.p1 + at] = value;
}

/* grid (ceil((P1/2 + 1) / 128), lines): step 3, between the transforms. */
static __global__ void oct_plain_shift_kernel(struct oct_cuda_tables t, float2 *spectrum)
{
    const unsigned k = blockIdx.x * OCT_PLAIN_THREADS + threadIdx.x, n = t.p1 / 2 + 1;
    if (k >= n)
        return;
    float2 *z = &spectrum[(size_t)blockIdx.y * n + k], s = t.shift[k];
    *z = make_float2(z->x * s.x - z->y * s.y, z->x * s.y + z->y * s.x);
}

/* grid (P2 / 128, lines): steps 4 and 5. */
static __global__ void oct_plain_resample_kernel(struct oct_cuda_tables t, const float *x,
                                                 const float *odd, float2 *v)
{
    const unsigned q = blockIdx.x * OCT_PLAIN_THREADS + threadIdx.x;
    const size_t row = (size_t)blockIdx.y * t.p1;
    if (q >= t.p2)
        return;
    float sum = 0;
    for (unsigned tap = 0; tap < t.n_taps; tap++) {
        unsigned p = t.tap_first[q] + tap; /* into the samples, odd and even in turn */
        const float *from = p % 2 ? odd : x;
        sum += t.weight[(size_t)tap * t.p2 + q] * from[row + p / 2];
    }
    float2 phase = t.phase[q];
    v[(size_t)blockIdx.y * t.p2 + q] = make_float2(sum * phase.x, sum * phase.y);
}

/* grid (P1 / 128, lines): nufft's f in place of steps 3 to 5. */
static __global__ void oct_plain_spread_kernel(struct oct_cuda_tables t, const float *x, float2 *v)
{
    const unsigned g = blockIdx.x * OCT_PLAIN_THREADS + threadIdx.x;
    if (g >= t.p1)
        return;
    const size_t row = (size_t)blockIdx.y * t.p1;
    unsigned i = t.spread_first[g];
    float2 sum = make_float2(0, 0);
    for (uint32_t tap = t.spread_at[g]; tap < t.spread_at[g + 1]; tap++, i++) {
        const float2 w = t.spread_weight[tap];
        const float sample = x[row + t.left + (i < t.n_samples ? i : i - t.n_samples)];
        sum = make_float2(fmaf(w.x, sample, sum.x), fmaf(w.y, sample, sum.y));
    }
    v[row + g] = sum;
}

/* grid (ceil(D / 128), lines): steps 7 and 8, and 9 when the limits are known. */
static __global__ void oct_plain_store_kernel(struct oct_cuda_tables t, struct oct_cuda_batch batch,
                                              struct oct_plain_lines lines, const float2 *b)
{
    const unsigned d = blockIdx.x * OCT_PLAIN_THREADS + threadIdx.x;
    const struct oct_cuda_job &job = batch.job[lines.bscan];
    const size_t row = (size_t)lines.bscan * t.n_lines + lines.first + blockIdx.y;
    const bool came = !(job.flags & OCT_JOB_MISSING) || t.valid[row];

    if (d >= t.depth)
        return;
    float2 z = b[(size_t)blockIdx.y * t.n_fft + t.crop_first + d];
    float gain = t.gain ? t.gain[t.crop_first + d] : 1.0f;
    if (job.flags & OCT_JOB_COMPLEX)
        oct_store_complex(t, job, row * t.depth + d, t.crop_first + d, came, z);
    oct_store(t, job, row * t.depth + d,
              came ? oct_intensity(z, gain, job.flags) : oct_darkness(job.flags));
}

/* ---- on the host ---- */

static bool oct_plain_is_nufft(const struct oct_plan *plan)
{
    return plan->chain.interpolation == OCT_INTERPOLATION_NUFFT;
}

/* Bytes of a line's buffers. */
static size_t oct_plain_line_bytes(const struct oct_plan *plan)
{
    const size_t p1 = plan->geometry.padded;
    return oct_plain_is_nufft(plan)
               ? p1 * (sizeof(float) + sizeof(float2))
               : p1 * (sizeof(float) * 2 + sizeof(float2) * 2) + (p1 / 2 + 1) * sizeof(float2);
}

static unsigned oct_plain_chunk(const struct oct_plan *plan)
{
    const struct oct_geometry *g = &plan->geometry;
    size_t each = oct_plain_line_bytes(plan), fits = OCT_PLAIN_CHUNK_BYTES / each;
    fits = fits < 1 ? 1 : fits;
    return fits < g->n_lines ? (unsigned)fits : g->n_lines;
}

static size_t oct_plain_buffer_bytes(const struct oct_plan *plan)
{
    return oct_plain_chunk(plan) * oct_plain_line_bytes(plan);
}

static int oct_plain_n_transforms(const struct oct_plan *plan)
{
    return oct_plain_is_nufft(plan) ? 1 : N_TRANSFORMS;
}

/* One of the transforms as cuFFT wants to hear of it: for a chunk of lines. */
struct oct_plain_shape {
    int size, in, out, batch;
    cufftType type;
};

static struct oct_plain_shape oct_plain_shape_of(const struct oct_plan *plan, int step)
{
    const int p1 = (int)plan->geometry.padded, half = p1 / 2 + 1;
    const int n_fft = oct_plain_is_nufft(plan) ? p1 : 2 * p1, chunk = (int)oct_plain_chunk(plan);
    return step == FORWARD_REAL   ? oct_plain_shape{p1, p1, half, chunk, CUFFT_R2C}
           : step == INVERSE_REAL ? oct_plain_shape{p1, half, p1, chunk, CUFFT_C2R}
                                  : oct_plain_shape{n_fft, n_fft, n_fft, chunk, CUFFT_C2C};
}

/* What cuFFT will take for itself for one transform. Where it does not say, as much as the
 * transform gives out. */
static size_t oct_plain_ask_size(const struct oct_cufft *fft, struct oct_plain_shape s)
{
    cufftHandle plan;
    size_t bytes = 0;
    if (fft->create(&plan) == CUFFT_SUCCESS) {
        cufftResult r = fft->get_size_many(plan, 1, &s.size, &s.in, 1, s.in, &s.out, 1, s.out,
                                           s.type, s.batch, &bytes);
        fft->destroy(plan);
        if (r == CUFFT_SUCCESS)
            return bytes;
    }
    return (size_t)s.batch * (size_t)s.out * sizeof(float2);
}

/* Bytes of cuFFT's work areas on the current device: each plan has one of its own. */
static enum oct_err oct_plain_work_bytes(const struct oct_plan *plan, size_t *bytes,
                                         struct oct_error *err)
{
    struct oct_cufft fft;
    enum oct_err e = oct_cufft_open(&fft, err);
    if (e)
        return e;
    *bytes = 0;
    for (int step = 0; step < oct_plain_n_transforms(plan); step++)
        *bytes += oct_plain_ask_size(&fft, oct_plain_shape_of(plan, step));
    oct_cufft_close(&fft);
    return OCT_OK;
}

static enum oct_err oct_plain_plan(struct oct_plain *p, struct oct_plain_shape s,
                                   cudaStream_t stream, struct oct_error *err)
{
    cufftHandle *plan = &p->plan[p->n_plans];
    cufftResult r =
        p->fft.plan_many(plan, 1, &s.size, &s.in, 1, s.in, &s.out, 1, s.out, s.type, s.batch);
    if (r == CUFFT_ALLOC_FAILED) {
        size_t available = 0, total = 0;
        cudaGetLastError();
        cudaMemGetInfo(&available, &total);
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "cuFFT: no room for %zu bytes with %zu MiB free, for %d lines of %d points",
                        oct_plain_ask_size(&p->fft, s), available >> 20, s.batch, s.size);
    }
    if (r != CUFFT_SUCCESS)
        return oct_fail(err, OCT_E_BACKEND, "cuFFT: no plan for %d lines of %d points (error %d)",
                        s.batch, s.size, (int)r);
    p->n_plans++;
    r = p->fft.set_stream(*plan, stream);
    if (r != CUFFT_SUCCESS)
        return oct_fail(err, OCT_E_BACKEND, "cuFFT: a plan refuses its stream (error %d)", (int)r);
    return OCT_OK;
}

static enum oct_err oct_plain_plans(struct oct_plain *p, const struct oct_plan *plan,
                                    cudaStream_t stream, struct oct_error *err)
{
    enum oct_err e = oct_cufft_open(&p->fft, err);
    for (int step = 0; step < oct_plain_n_transforms(plan) && !e; step++)
        e = oct_plain_plan(p, oct_plain_shape_of(plan, step), stream, err);
    return e;
}

static void oct_plain_finish(struct oct_plain *p)
{
    while (p->n_plans > 0)
        p->fft.destroy(p->plan[--p->n_plans]);
    oct_cufft_close(&p->fft);
}

/* Steps 3 to 5 of the lines in x. */
static bool oct_plain_resample(const struct oct_plain *p, const struct oct_cuda_tables &t,
                               cudaStream_t stream, unsigned n_lines)
{
    const dim3 block(OCT_PLAIN_THREADS);
    if (p->fft.r2c(p->plan[FORWARD_REAL], p->x, (cufftComplex *)p->spectrum) != CUFFT_SUCCESS)
        return false;
    OCT_LAUNCH((oct_plain_shift_kernel),
               dim3((t.p1 / 2 + OCT_PLAIN_THREADS) / OCT_PLAIN_THREADS, n_lines), block, 0, stream,
               t, p->spectrum);
    if (p->fft.c2r(p->plan[INVERSE_REAL], (cufftComplex *)p->spectrum, p->odd) != CUFFT_SUCCESS)
        return false;
    OCT_LAUNCH((oct_plain_resample_kernel), dim3(t.p2 / OCT_PLAIN_THREADS, n_lines), block, 0,
               stream, t, p->x, p->odd, p->v);
    return true;
}

/* Steps 3 to 6. */
static bool oct_plain_transforms(const struct oct_plain *p, const struct oct_cuda_tables &t,
                                 cudaStream_t stream, unsigned n_lines)
{
    if (t.gain)
        OCT_LAUNCH((oct_plain_spread_kernel), dim3(t.p1 / OCT_PLAIN_THREADS, n_lines),
                   dim3(OCT_PLAIN_THREADS), 0, stream, t, p->x, p->v);
    else if (!oct_plain_resample(p, t, stream, n_lines))
        return false;
    return p->fft.c2c(p->plan[FORWARD], (cufftComplex *)p->v, (cufftComplex *)p->v,
                      CUFFT_FORWARD) == CUFFT_SUCCESS;
}

/* Queues steps 1 to 8 for a whole batch. False: cuFFT refused; launch errors show in the stream. */
static bool oct_plain_launch(const struct oct_plain *p, const struct oct_cuda_tables &t,
                             const struct oct_cuda_batch &batch, cudaStream_t stream)
{
    const dim3 block(OCT_PLAIN_THREADS);
    for (unsigned b = 0; b < batch.n; b++)
        for (unsigned first = 0; first < t.n_lines; first += p->chunk) {
            unsigned n = t.n_lines - first < p->chunk ? t.n_lines - first : p->chunk;
            struct oct_plain_lines lines = {b, first, n};
            OCT_LAUNCH((oct_plain_load_kernel), dim3(t.p1 / OCT_PLAIN_THREADS, n), block, 0, stream,
                       t, batch, lines, p->x);
            if (!oct_plain_transforms(p, t, stream, n))
                return false;
            OCT_LAUNCH((oct_plain_store_kernel),
                       dim3((t.depth + OCT_PLAIN_THREADS - 1) / OCT_PLAIN_THREADS, n), block, 0,
                       stream, t, batch, lines, p->v);
        }
    return true;
}

#endif
