/* The B-scans of a group in a device's memory, and what its places are found in: for cuda.cu, and
 * for those who time it. */
#ifndef OCT_ANALYSIS_FLOW_CUDA_GROUP_CUH
#define OCT_ANALYSIS_FLOW_CUDA_GROUP_CUH

#include "analysis/flow/cuda_judge.cuh"
#include "analysis/flow/cuda_shift.cuh"

#include <cstdlib>
#include <cstring>

#define OCT_FLOW_BATCH_BYTES ((size_t)512 << 20) /* of a batch's maps: more gains nothing */

struct oct_flow_cuda_group {
    struct oct_cuda_stream *stream;
    struct oct_flow_cuda f;
    unsigned n_batch; /* places at once */
    float2 *d_own;    /* [R K][M][D] copies of B-scans; NULL: all stay where they are */
    float *d_shown;   /* [n_batch][M][D], or bytes */
};

static size_t oct_flow_n_values(const struct oct_flow_cuda *f)
{
    return (size_t)f->n_lines * f->depth;
}

/* Places at once, of a group of n_places. */
static unsigned oct_flow_batch_of(const struct oct_flow_engine_setup *setup)
{
    const size_t maps = (size_t)setup->place.n_lines * setup->place.depth * sizeof(float) * 8;
    const size_t fits = OCT_FLOW_BATCH_BYTES / maps + 1;
    const size_t most = fits < OCT_FLOW_PLACES ? fits : OCT_FLOW_PLACES;
    return setup->n_places < most ? setup->n_places : (unsigned)most;
}

static void oct_flow_fill_tables(struct oct_flow_cuda *f, const struct oct_flow_place_setup *s)
{
    struct oct_flow_window window;
    oct_flow_window_init(&window, s->sigma_lines, s->sigma_depth);
    f->radius_lines = (int)window.n_lines - 1;
    f->radius_depth = (int)window.n_depth - 1;
    for (int i = -f->radius_lines; i <= f->radius_lines; i++)
        f->taps_lines[i + f->radius_lines + (int)OCT_FLOW_TILE - 1] = window.lines[abs(i)];
    for (int i = -f->radius_depth; i <= f->radius_depth; i++) {
        const int at = i + f->radius_depth;
        f->taps_depth[at + 3] = window.depth[abs(i)];
        f->below[at + 1] = f->below[at] + window.depth[abs(i)];
    }
    for (uint32_t lag = 0; lag < OCT_FLOW_RHO_LAGS; lag++) {
        double rho2[OCT_FLOW_LAGS] = {0};
        rho2[lag] = 1;
        f->rho_weight[lag] = 1 / oct_flow_noise_samples(s->sigma_lines, s->sigma_depth, rho2);
    }
    if (s->optics->has_rho)
        f->samples = oct_flow_noise_samples(s->sigma_lines, s->sigma_depth, s->optics->rho2);
}

static void oct_flow_fill_sizes(struct oct_flow_cuda *f, const struct oct_flow_engine_setup *setup)
{
    const struct oct_flow_place_setup *s = &setup->place;
    f->n_lines = s->n_lines;
    f->depth = s->depth;
    f->n_repeats = s->n_repeats;
    f->n_places = setup->n_places;
    f->n_blocks = s->depth / OCT_FLOW_BLOCK;
    f->look_step = oct_flow_look_step(s->n_lines, s->depth);
    f->look_row = s->depth / f->look_step + 1;
    f->n_puts = (s->n_lines + OCT_FLOW_PUT_LINES - 1) / OCT_FLOW_PUT_LINES;
    f->n_looks = oct_shift_n_looked(s->n_lines, oct_shift_first_step(s->n_lines));
    f->n_nears = oct_shift_n_looked(s->n_lines, oct_shift_near_step(s->n_lines));
    f->reach = (uint32_t)s->projection_px + 1;
    f->is_kept = !setup->shows;
    f->projection = (float)s->projection;
    f->noise = s->noise;
}

static enum oct_err oct_flow_alloc_maps(struct oct_flow_cuda_group *g, struct oct_error *err)
{
    struct oct_flow_cuda *f = &g->f;
    const size_t n = g->n_batch * oct_flow_n_values(f), lines = (size_t)g->n_batch * f->n_lines;
    float **maps[] = {&f->sums[0], &f->sums[1], &f->sums[2],   &f->d,
                      &f->isnr,    &f->z,       &f->projected, &f->intensity};
    enum oct_err e = oct_stream_alloc(g->stream, &f->place, g->n_batch, err);
    e = e ? e : oct_cuda_stream_clear(g->stream, f->place, g->n_batch * sizeof(*f->place), err);
    e = e ? e : oct_stream_alloc(g->stream, &f->line, lines, err);
    e = e ? e : oct_stream_alloc(g->stream, &f->alike, lines * f->n_repeats, err);
    e = e ? e : oct_stream_alloc(g->stream, &f->look, lines * f->look_row, err);
    if (!e) /* NaN: places of rows beyond the depth */
        TRY_STREAM(g->stream, "start",
                   cudaMemsetAsync(f->look, 0xff, lines * f->look_row * sizeof(float2),
                                   g->stream->stream));
    e = e ? e : oct_stream_alloc(g->stream, &f->dark, (size_t)g->n_batch * f->n_blocks, err);
    const size_t repeats = (size_t)g->n_batch * f->n_repeats;
    e = e ? e : oct_stream_alloc(g->stream, &f->looks, repeats * f->n_looks * OCT_SHIFT_N_Z, err);
    e = e ? e : oct_stream_alloc(g->stream, &f->nears, repeats * f->n_nears * OCT_SHIFT_NEAR, err);
    for (unsigned i = 0; i < (f->is_kept ? 8u : 5u) && !e; i++)
        e = oct_stream_alloc(g->stream, maps[i], n, err);
    if (e || f->is_kept)
        return e;
    e = oct_stream_alloc(g->stream, &g->d_shown, n, err);
    return e ? e : oct_stream_alloc(g->stream, &f->row, lines, err);
}

/* Where B-scans are copied to, unless there is such a place already. */
static enum oct_err oct_flow_alloc_own(struct oct_flow_cuda_group *g, struct oct_error *err)
{
    const size_t bscans = (size_t)g->f.n_repeats * g->f.n_places;
    return g->d_own
               ? OCT_OK
               : oct_stream_alloc(g->stream, &g->d_own, bscans * oct_flow_n_values(&g->f), err);
}

/* Of a zeroed group; the stream frees what it has. OCT_E_NO_MEMORY, OCT_E_BACKEND. */
static enum oct_err oct_flow_group_make(struct oct_flow_cuda_group *g,
                                        struct oct_cuda_stream *stream,
                                        const struct oct_flow_engine_setup *setup,
                                        struct oct_error *err)
{
    struct oct_flow_cuda *f = &g->f;
    g->stream = stream;
    g->n_batch = oct_flow_batch_of(setup);
    oct_flow_fill_sizes(f, setup);
    oct_flow_fill_tables(f, &setup->place);
    const size_t bscans = (size_t)f->n_repeats * f->n_places, lines = bscans * f->n_lines;
    enum oct_err e = oct_stream_alloc(stream, &f->b, bscans, err);
    e = e || setup->keeps ? e : oct_flow_alloc_own(g, err);
    e = e ? e : oct_stream_alloc(stream, &f->power, lines, err);
    e = e ? e : oct_stream_alloc(stream, &f->blocks, bscans * f->n_puts * f->n_blocks, err);
    return e ? e : oct_flow_alloc_maps(g, err);
}

/* Queues that B-scans from[n], on the device, become those with numbers i[n]; n: OCT_FLOW_PUTS at
 * most. keeps: they stay where they are until their places are found; else they are copied. */
static void oct_flow_queue_puts(const struct oct_flow_cuda_group *g, const float2 *const *from,
                                const uint32_t *i, unsigned n, bool keeps)
{
    const struct oct_flow_cuda &f = g->f;
    struct oct_flow_cuda_puts puts = {};
    memcpy(puts.from, from, n * sizeof(*from));
    memcpy(puts.i, i, n * sizeof(*i));
    puts.n_lines = f.n_lines;
    puts.depth = f.depth;
    puts.n_blocks = f.n_blocks;
    puts.n_puts = f.n_puts;
    puts.own = keeps ? NULL : g->d_own;
    puts.b = f.b;
    puts.power = f.power;
    puts.blocks = f.blocks;
    OCT_LAUNCH((oct_flow_put_kernel), dim3(f.n_puts, n), dim3(OCT_FLOW_THREADS), 0,
               g->stream->stream, puts);
}

static void oct_flow_queue_shift(const struct oct_flow_cuda &f, unsigned n,
                                 const struct oct_cuda_stream *on)
{
    const uint32_t n_pairs = f.n_repeats - 1;
    const uint32_t near_blocks = (f.n_nears + OCT_SHIFT_NEAR_WARPS - 1) / OCT_SHIFT_NEAR_WARPS;
    OCT_LAUNCH((oct_flow_look_kernel), dim3(f.n_looks, n_pairs, n), dim3(OCT_SHIFT_LOOK_THREADS), 0,
               on->stream, f);
    OCT_LAUNCH_NEXT((oct_flow_near_kernel), dim3(near_blocks, f.n_repeats, n),
                    dim3(OCT_SHIFT_NEAR_THREADS), 0, on, f);
    OCT_LAUNCH_NEXT((oct_flow_shift_kernel), dim3(n_pairs, n), dim3(OCT_SHIFT_THREADS), 0, on, f);
}

static void oct_flow_queue_lines(const struct oct_flow_cuda &f, unsigned n,
                                 const struct oct_cuda_stream *on)
{
    const dim3 some((f.n_lines + OCT_FLOW_LINES_OF - 1) / OCT_FLOW_LINES_OF, n);
    const dim3 threads(OCT_FLOW_THREADS);
    if (f.depth <= OCT_FLOW_CHUNK && f.n_repeats <= 2)
        OCT_LAUNCH_NEXT((oct_flow_short_lines_kernel<2>), some, threads, 0, on, f);
    else if (f.depth <= OCT_FLOW_CHUNK && f.n_repeats <= 4)
        OCT_LAUNCH_NEXT((oct_flow_short_lines_kernel<4>), some, threads, 0, on, f);
    else if (f.depth <= OCT_FLOW_CHUNK && f.n_repeats <= 8)
        OCT_LAUNCH_NEXT((oct_flow_short_lines_kernel<8>), some, threads, 0, on, f);
    else
        OCT_LAUNCH_NEXT((oct_flow_lines_kernel), dim3(f.n_lines, n), threads, 0, on, f);
}

static void oct_flow_queue_judge(const struct oct_flow_cuda &f, unsigned n,
                                 const struct oct_cuda_stream *on)
{
    const dim3 columns(OCT_FLOW_COLUMNS);
    const dim3 tiles((f.depth + OCT_FLOW_SPAN - 1) / OCT_FLOW_SPAN,
                     (f.n_lines + OCT_FLOW_TILE - 1) / OCT_FLOW_TILE, n);
    if (f.radius_lines == 1)
        OCT_LAUNCH_NEXT((oct_flow_judge_kernel<1>), tiles, columns, 0, on, f);
    else if (f.radius_lines == 2)
        OCT_LAUNCH_NEXT((oct_flow_judge_kernel<2>), tiles, columns, 0, on, f);
    else if (f.radius_lines == 3)
        OCT_LAUNCH_NEXT((oct_flow_judge_kernel<3>), tiles, columns, 0, on, f);
    else
        OCT_LAUNCH_NEXT((oct_flow_judge_kernel<-1>), tiles, columns, 0, on, f);
}

/* Queues that n places from the first of the batch on are found, n_batch at most. */
static void oct_flow_queue_places(const struct oct_flow_cuda_group *g, unsigned n)
{
    const struct oct_flow_cuda &f = g->f;
    const dim3 lines(f.n_lines, n);
    const struct oct_cuda_stream *on = g->stream;
    oct_flow_queue_shift(f, n, on);
    oct_flow_queue_lines(f, n, on);
    oct_flow_queue_judge(f, n, on);
    OCT_LAUNCH_NEXT((oct_flow_bulk_kernel), dim3(n), dim3(OCT_FLOW_MANY), 0, on, f);
    OCT_LAUNCH_NEXT((oct_flow_score_kernel), lines, dim3(OCT_FLOW_SCORE_THREADS), 0, on, f);
}

#endif
