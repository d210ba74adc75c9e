/* The CUDA engine: a worker (kernels/device/cuda_task.h) whose tasks are a B-scan that comes in and
 * a batch of places. A group's places are found in batches; what is found lies in pinned memory
 * until the next task. */
#include "analysis/flow/cuda_shift.cuh"
#include "kernels/device/cuda_task.h"
#include "pipeline/flow/frame.h"

#include <cstdlib>
#include <cstring>

#define BATCH_BYTES ((size_t)512 << 20) /* of a batch's maps, more gains nothing */

enum { MAP_D, MAP_Z, MAP_PROJECTED, MAP_INTENSITY, N_MAPS }; /* that are kept */

struct oct_flow_engine {
    struct oct_cuda_tasks *tasks;
    struct oct_flow_engine_setup setup;
    uint64_t *came;                     /* [K] bit r: repeat r */
    unsigned n_batch;                   /* places at once */
    unsigned first, n_found;            /* the batch that has been found; n_found 0: none */
    struct oct_flow_show of;            /* as it is shown */
    struct oct_flow_cuda_place *places; /* [n_found], as what follows the context's */
    const float *maps[N_MAPS];          /* NULL: not kept */
    const float *shown;
    const uint8_t *bytes;
};

struct task {
    bool is_put;
    unsigned i;        /* put: the B-scan; else the first place */
    const float *host; /* put: where it lies; NULL: on the device */
    const void *device;
    unsigned gpu;         /* whose memory that is */
    const uint64_t *came; /* else: [n] */
    unsigned n;
    struct oct_flow_show show;
    struct oct_flow_engine *engine; /* to which the results go */
};

struct context {
    struct oct_cuda_stream *stream;
    struct oct_flow_cuda f;
    unsigned n_batch;
    bool is_put, is_f32;
    unsigned i, n; /* of the task */
    const float2 *from;
    float *h_values; /* a B-scan that is uploaded */
    float2 *d_values;
    bool uploads, moves; /* put: from the host, from another GPU */
    struct oct_flow_cuda_place *h_places;
    float *d_shown, *h_shown, *h_maps; /* h_maps: [N_MAPS][n_batch][M][D] */
    uint8_t *d_bytes, *h_bytes;
};

/* ---- a task ---- */

static size_t n_values(const struct oct_flow_cuda *f)
{
    return (size_t)f->n_lines * f->depth;
}

static void take(void *argument, const void *from)
{
    struct context *c = (struct context *)argument;
    const struct task *task = (const struct task *)from;
    c->is_put = task->is_put;
    c->i = task->i;
    c->n = task->n;
    c->uploads = task->is_put && task->host;
    c->moves = task->is_put && !task->host && (int)task->gpu != c->stream->device;
    c->from = c->uploads ? c->d_values : (const float2 *)task->device;
    if (c->uploads)
        memcpy(c->h_values, task->host, n_values(&c->f) * sizeof(float2));
    if (task->is_put)
        return;
    c->f.first = task->i;
    memcpy(c->f.came, task->came, task->n * sizeof(*task->came));
    c->f.min_z = task->show.min_z;
    c->is_f32 = task->show.values != NULL;
    c->f.shown = c->is_f32 ? c->d_shown : NULL;
    c->f.bytes = task->show.bytes ? c->d_bytes : NULL;
}

static enum oct_err begin_put(struct context *c, struct oct_error *err)
{
    const size_t bytes = n_values(&c->f) * sizeof(float2);
    enum oct_err e = OCT_OK;
    if (c->uploads)
        e = oct_cuda_stream_upload(c->stream, c->d_values, c->h_values, bytes, err);
    if (c->moves)
        TRY_STREAM(c->stream, "copy",
                   cudaMemcpyAsync(c->d_values, c->from, bytes, cudaMemcpyDeviceToDevice,
                                   c->stream->stream));
    if (e)
        return e;
    OCT_LAUNCH((oct_flow_put_kernel), dim3(c->f.n_lines), dim3(OCT_FLOW_THREADS), 0,
               c->stream->stream, c->f, c->moves ? c->d_values : c->from, c->i);
    return OCT_OK;
}

/* Queues the kernels of n places. */
static void launch_places(const struct context *c)
{
    const struct oct_flow_cuda &f = c->f;
    const dim3 threads(OCT_FLOW_THREADS), lines(f.n_lines, c->n);
    const dim3 tiles((f.depth + OCT_FLOW_COLUMNS - 1) / OCT_FLOW_COLUMNS,
                     (f.n_lines + OCT_FLOW_TILE - 1) / OCT_FLOW_TILE, c->n);
    cudaStream_t stream = c->stream->stream;
    OCT_LAUNCH((oct_flow_shift_kernel), dim3(f.n_repeats - 1, c->n), threads, 0, stream, f);
    OCT_LAUNCH((oct_flow_plan_kernel), dim3(c->n), threads, 0, stream, f);
    OCT_LAUNCH((oct_flow_lines_kernel), lines, threads, 0, stream, f);
    OCT_LAUNCH((oct_flow_judge_kernel), tiles, dim3(OCT_FLOW_COLUMNS), 0, stream, f);
    OCT_LAUNCH((oct_flow_bulk_kernel), dim3(c->n), threads, 0, stream, f);
    OCT_LAUNCH((oct_flow_score_kernel), lines, threads, 0, stream, f);
}

static enum oct_err download_maps(struct context *c, struct oct_error *err)
{
    const struct oct_flow_cuda &f = c->f;
    const float *maps[] = {f.d, f.z, f.projected, f.intensity};
    const size_t n = c->n * n_values(&f), room = c->n_batch * n_values(&f);
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < N_MAPS && !e && f.is_kept; i++)
        e = oct_cuda_stream_download(c->stream, c->h_maps + i * room, maps[i], n * sizeof(float),
                                     err);
    if (!e && f.shown)
        e = oct_cuda_stream_download(c->stream, c->h_shown, f.shown, n * sizeof(float), err);
    if (!e && f.bytes)
        e = oct_cuda_stream_download(c->stream, c->h_bytes, f.bytes, n, err);
    return e;
}

static enum oct_err begin(void *argument, struct oct_error *err)
{
    struct context *c = (struct context *)argument;
    if (c->is_put)
        return begin_put(c, err);
    launch_places(c);
    const enum oct_err e = download_maps(c, err);
    return e ? e
             : oct_cuda_stream_download(c->stream, c->h_places, c->f.place,
                                        c->n * sizeof(*c->h_places), err);
}

static void give(void *argument, void *to)
{
    struct context *c = (struct context *)argument;
    struct oct_flow_engine *engine = ((struct task *)to)->engine;
    const size_t room = c->n_batch * n_values(&c->f);
    if (c->is_put)
        return;
    engine->places = c->h_places;
    engine->shown = c->h_shown;
    engine->bytes = c->h_bytes;
    if (c->f.is_kept)
        for (unsigned i = 0; i < N_MAPS; i++)
            engine->maps[i] = c->h_maps + i * room;
}

/* ---- the context ---- */

static void fill_tables(struct oct_flow_cuda *f, const struct oct_flow_place_setup *s)
{
    struct oct_flow_window window;
    oct_flow_window_init(&window, s->sigma_lines, s->sigma_depth);
    f->radius_lines = (int)window.n_lines - 1;
    f->radius_depth = (int)window.n_depth - 1;
    for (int i = -f->radius_lines; i <= f->radius_lines; i++)
        f->taps_lines[i + f->radius_lines + 7] = window.lines[abs(i)];
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

static void fill_sizes(struct oct_flow_cuda *f, const struct oct_flow_engine_setup *setup)
{
    const struct oct_flow_place_setup *s = &setup->place;
    f->n_lines = s->n_lines;
    f->depth = s->depth;
    f->n_repeats = s->n_repeats;
    f->n_places = setup->n_places;
    f->n_blocks = s->depth / OCT_FLOW_BLOCK;
    f->look_step = oct_flow_look_step(s->n_lines, s->depth);
    f->look_row = s->depth / f->look_step + 1;
    f->reach = (uint32_t)s->projection_px + 1;
    f->is_kept = !setup->shows;
    f->projection = (float)s->projection;
    f->noise = s->noise;
}

static enum oct_err alloc_maps(struct context *c, struct oct_error *err)
{
    struct oct_flow_cuda *f = &c->f;
    const size_t n = c->n_batch * n_values(f), lines = (size_t)c->n_batch * f->n_lines;
    float **maps[] = {&f->sums[0], &f->sums[1],   &f->sums[2],   &f->d,      &f->isnr,
                      &f->z,       &f->projected, &f->intensity, &c->d_shown};
    const unsigned n_maps = f->is_kept ? 8 : 5;
    enum oct_err e = oct_stream_alloc(c->stream, &f->place, c->n_batch, err);
    e = e ? e : oct_stream_alloc(c->stream, &f->line, lines, err);
    e = e ? e : oct_stream_alloc(c->stream, &f->alike, lines * f->n_repeats, err);
    e = e ? e : oct_stream_alloc(c->stream, &f->look, lines * f->look_row, err);
    for (unsigned i = 0; i < n_maps && !e; i++)
        e = oct_stream_alloc(c->stream, maps[i], n, err);
    if (!e && !f->is_kept) {
        e = oct_stream_alloc(c->stream, &c->d_shown, n, err);
        c->d_bytes = (uint8_t *)c->d_shown; /* never both */
        e = e ? e : oct_stream_pin(c->stream, &c->h_shown, n, err);
        c->h_bytes = (uint8_t *)c->h_shown;
    }
    if (!e && f->is_kept)
        e = oct_stream_pin(c->stream, &c->h_maps, N_MAPS * n, err);
    return e ? e : oct_stream_pin(c->stream, &c->h_places, c->n_batch, err);
}

static enum oct_err alloc_bscans(struct context *c, struct oct_error *err)
{
    struct oct_flow_cuda *f = &c->f;
    const size_t lines = (size_t)f->n_repeats * f->n_places * f->n_lines;
    enum oct_err e = oct_stream_alloc(c->stream, &f->b, lines * f->depth, err);
    e = e ? e : oct_stream_alloc(c->stream, &f->power, lines, err);
    e = e ? e : oct_stream_alloc(c->stream, &f->blocks, lines * f->n_blocks, err);
    e = e ? e : oct_stream_alloc(c->stream, &c->d_values, n_values(f), err);
    return e ? e : oct_stream_pin(c->stream, &c->h_values, 2 * n_values(f), err);
}

/* Every kernel once: B-scans of zeros. */
static enum oct_err rehearse(struct context *c, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    memset(c->h_values, 0, n_values(&c->f) * sizeof(float2));
    c->uploads = c->is_put = true;
    c->from = c->d_values;
    for (unsigned r = 0; r < c->f.n_repeats && !e; r++) {
        c->i = r * c->f.n_places;
        c->f.came[0] |= (uint64_t)1 << r;
        e = begin(c, err);
    }
    c->is_put = false;
    c->n = 1;
    c->f.shown = c->d_shown;
    return e ? e : begin(c, err);
}

static unsigned batch_of(const struct oct_flow_engine_setup *setup)
{
    const size_t maps = (size_t)setup->place.n_lines * setup->place.depth * sizeof(float) * 8;
    const size_t fits = BATCH_BYTES / maps + 1;
    const size_t most = fits < OCT_FLOW_PLACES ? fits : OCT_FLOW_PLACES;
    return setup->n_places < most ? setup->n_places : (unsigned)most;
}

static void unmake(void *argument)
{
    free(argument);
}

static enum oct_err make(void **out, struct oct_cuda_stream *stream, const void *from,
                         struct oct_error *err)
{
    const struct oct_flow_engine_setup *setup = (const struct oct_flow_engine_setup *)from;
    struct context *c = (struct context *)calloc(1, sizeof(*c));
    *out = NULL;
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "flow: out of memory");
    c->stream = stream;
    c->n_batch = batch_of(setup);
    fill_sizes(&c->f, setup);
    fill_tables(&c->f, &setup->place);
    enum oct_err e = alloc_bscans(c, err);
    e = e ? e : alloc_maps(c, err);
    e = e ? e : rehearse(c, err);
    if (e)
        unmake(c);
    else
        *out = c;
    return e;
}

static const struct oct_cuda_task_ops task_ops = {"flow", make, take, begin, give, unmake};

/* ---- the engine ---- */

static void cuda_destroy(struct oct_flow_engine *engine)
{
    if (!engine)
        return;
    oct_cuda_tasks_destroy(engine->tasks);
    free(engine->came);
    free(engine);
}

static enum oct_err cuda_create(struct oct_flow_engine **out,
                                const struct oct_flow_engine_setup *setup, struct oct_error *err)
{
    struct oct_flow_engine *engine = (struct oct_flow_engine *)calloc(1, sizeof(*engine));
    *out = NULL;
    if (engine)
        engine->came = (uint64_t *)calloc(setup->n_places, sizeof(*engine->came));
    if (!engine || !engine->came) {
        cuda_destroy(engine);
        return oct_fail(err, OCT_E_NO_MEMORY, "flow: out of memory");
    }
    engine->setup = *setup;
    engine->n_batch = batch_of(setup);
    const enum oct_err e = oct_cuda_tasks_create(&engine->tasks, &task_ops, setup->gpus,
                                                 setup->deadline_ms, setup, sizeof(*setup), err);
    if (e)
        cuda_destroy(engine);
    else
        *out = engine;
    return e;
}

static enum oct_err cuda_put(struct oct_flow_engine *engine, unsigned i,
                             const struct oct_image_frame *bscan, struct oct_error *err)
{
    const unsigned n_places = engine->setup.n_places;
    struct task task = {};
    task.is_put = true;
    task.i = i;
    task.device = bscan->complex_device;
    task.gpu = bscan->complex_gpu;
    task.host = task.device ? NULL : bscan->complex_values;
    engine->n_found = 0;
    const enum oct_err e = oct_cuda_tasks_do(engine->tasks, &task, err);
    if (!e)
        engine->came[i % n_places] |= (uint64_t)1 << (i / n_places);
    return e;
}

/* The batch that has place k, unless it has been found. */
static enum oct_err find_batch(struct oct_flow_engine *engine, unsigned k,
                               const struct oct_flow_show *show, struct oct_error *err)
{
    const struct oct_flow_show wanted = show ? *show : (struct oct_flow_show){0, NULL, NULL};
    const struct oct_flow_show *of = &engine->of;
    const bool is_same = wanted.min_z == of->min_z && !wanted.values == !of->values;
    if (k >= engine->first && k - engine->first < engine->n_found && is_same)
        return OCT_OK;
    const unsigned left = engine->setup.n_places - k;
    struct task task = {false,
                        k,
                        NULL,
                        NULL,
                        0,
                        engine->came + k,
                        left < engine->n_batch ? left : engine->n_batch,
                        wanted,
                        engine};
    engine->n_found = 0;
    const enum oct_err e = oct_cuda_tasks_do(engine->tasks, &task, err);
    if (e)
        return e;
    engine->first = k;
    engine->n_found = task.n;
    engine->of = wanted;
    return OCT_OK;
}

/* A blink leaves nothing of a pair: the share that the worst one lost (place.c). */
static double worst_pair(const struct oct_flow_engine *engine, const struct oct_flow_cuda_place *p)
{
    double worst = 0;
    for (unsigned r = 1; r < engine->setup.place.n_repeats; r++) {
        const double *alike = p->alike[r];
        const double light = alike[1] - alike[2] * p->noise * engine->setup.place.depth;
        if (light > OCT_FLOW_LEAST_LIGHT * alike[1])
            worst = fmax(worst, 1 - alike[0] / light);
    }
    return worst;
}

static bool are_identical(const struct oct_flow_engine *engine, const struct oct_flow_cuda_place *p)
{
    bool any = false;
    for (unsigned r = 1; r < engine->setup.place.n_repeats; r++) {
        if (!(p->pair[r] & OCT_FLOW_IS_PAIR))
            continue;
        if (!(p->pair[r] & OCT_FLOW_IS_SAME))
            return false;
        any = any || (p->pair[r] & OCT_FLOW_IS_LIT);
    }
    return any;
}

static void tell_numbers(const struct oct_flow_engine *engine, unsigned k,
                         struct oct_flow_found *found)
{
    const struct oct_flow_place_setup *setup = &engine->setup.place;
    const struct oct_flow_cuda_place *p = &engine->places[k - engine->first];
    const uint64_t came = engine->came[k];
    for (unsigned r = 0; r < setup->n_repeats; r++) {
        const bool has = came >> r & 1;
        found->shift[r][0] = has ? p->shift[r][0] : NAN;
        found->shift[r][1] = has ? p->shift[r][1] : NAN;
        found->n_pairs += r > 0 && has && (came >> (r - 1) & 1);
    }
    found->noise = p->noise;
    found->bulk = p->bulk;
    found->snr_db = p->n_tissue ? 10 * log10(p->snr / p->n_tissue) : NAN;
    found->tissue = p->n_looked ? (double)p->n_tissue / p->n_looked : 0;
    found->identical = are_identical(engine, p);
    found->moved = p->bulk > setup->max_bulk || worst_pair(engine, p) > 0.5 * (1 + setup->max_bulk);
}

static enum oct_err cuda_find(struct oct_flow_engine *engine, unsigned k,
                              const struct oct_flow_show *show, struct oct_flow_found *found,
                              struct oct_error *err)
{
    const size_t n = (size_t)engine->setup.place.n_lines * engine->setup.place.depth;
    const enum oct_err e = find_batch(engine, k, show, err);
    if (e)
        return e;
    const size_t at = (k - engine->first) * n;
    *found = {};
    if (engine->maps[MAP_D]) {
        found->d = engine->maps[MAP_D] + at;
        found->z = engine->maps[MAP_Z] + at;
        found->projected = engine->maps[MAP_PROJECTED] + at;
        found->intensity = engine->maps[MAP_INTENSITY] + at;
    }
    if (show && show->values)
        memcpy(show->values, engine->shown + at, n * sizeof(float));
    else if (show && show->bytes)
        memcpy(show->bytes, engine->bytes + at, n);
    tell_numbers(engine, k, found);
    return OCT_OK;
}

static void cuda_clear(struct oct_flow_engine *engine)
{
    memset(engine->came, 0, engine->setup.n_places * sizeof(*engine->came));
    engine->n_found = 0;
}

extern "C" const struct oct_flow_engine_ops oct_flow_engine_cuda = {
    "cuda", cuda_create, cuda_put, cuda_find, cuda_clear, NULL, cuda_destroy};
