/* The CUDA engine: a worker (kernels/device/cuda_task.h) whose tasks are a B-scan that comes in and
 * a batch of places. A group's places are found in batches; what is found lies in pinned memory
 * until the next task. */
#include "analysis/flow/cuda_group.cuh"
#include "kernels/device/cuda_task.h"
#include "pipeline/flow/frame.h"

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
    const void *shown;
    const float *rows; /* [n_found][M] */
};

struct task {
    bool is_put;
    unsigned i;        /* put: the B-scan; else the first place */
    const float *host; /* put: where it lies; NULL: on the device */
    const void *device;
    unsigned gpu;         /* whose memory that is */
    bool keeps;           /* put: it stays as it is */
    const uint64_t *came; /* else: [n] */
    unsigned n;
    struct oct_flow_show show;
    struct oct_flow_engine *engine; /* to which the results go */
};

struct context {
    struct oct_flow_cuda_group group;
    bool is_put;
    unsigned i, n; /* of the task */
    const float2 *from;
    bool uploads, moves; /* put: from the host, from another GPU */
    bool keeps;          /* put: neither, and it stays where it is */
    float *h_values;     /* a B-scan that is uploaded */
    float2 *d_values;    /* or moved */
    struct oct_flow_cuda_place *h_places;
    float *h_maps; /* [N_MAPS][n_batch][M][D], or what is shown, floats or bytes */
    float *h_rows; /* [n_batch][M] */
};

/* ---- a task ---- */

static void take(void *argument, const void *from)
{
    struct context *c = (struct context *)argument;
    const struct task *task = (const struct task *)from;
    struct oct_flow_cuda *f = &c->group.f;
    c->is_put = task->is_put;
    c->i = task->i;
    c->n = task->n;
    c->from = (const float2 *)task->device;
    c->uploads = task->is_put && task->host;
    c->moves = task->is_put && !task->host && (int)task->gpu != c->group.stream->device;
    c->keeps = task->keeps && !c->uploads && !c->moves;
    if (c->uploads)
        memcpy(c->h_values, task->host, oct_flow_n_values(f) * sizeof(float2));
    if (task->is_put)
        return;
    f->first = task->i;
    memcpy(f->came, task->came, task->n * sizeof(*task->came));
    f->min_z = task->show.min_z;
    f->slab_first = task->show.first;
    f->slab_end = task->show.end;
    f->shown = task->show.values ? c->group.d_shown : NULL;
    f->bytes = task->show.bytes ? (uint8_t *)c->group.d_shown : NULL;
}

static enum oct_err begin_put(struct context *c, struct oct_error *err)
{
    struct oct_cuda_stream *stream = c->group.stream;
    const size_t bytes = oct_flow_n_values(&c->group.f) * sizeof(float2);
    const float2 *from = c->uploads || c->moves ? c->d_values : c->from;
    enum oct_err e = c->keeps ? OCT_OK : oct_flow_alloc_own(&c->group, err);
    if (!e && c->uploads)
        e = oct_cuda_stream_upload(stream, c->d_values, c->h_values, bytes, err);
    if (e)
        return e;
    if (c->moves)
        TRY_STREAM(
            stream, "copy",
            cudaMemcpyAsync(c->d_values, c->from, bytes, cudaMemcpyDeviceToDevice, stream->stream));
    oct_flow_queue_puts(&c->group, &from, &c->i, 1, c->keeps);
    return OCT_OK;
}

static enum oct_err download(struct context *c, struct oct_error *err)
{
    const struct oct_flow_cuda &f = c->group.f;
    struct oct_cuda_stream *stream = c->group.stream;
    const float *maps[N_MAPS] = {f.d, f.z, f.projected, f.intensity};
    const size_t one = oct_flow_n_values(&f), n = c->n * one * (f.bytes ? 1 : sizeof(float));
    enum oct_err e =
        oct_cuda_stream_download(stream, c->h_places, f.place, c->n * sizeof(*c->h_places), err);
    for (unsigned i = 0; i < N_MAPS && !e && f.is_kept; i++)
        e = oct_cuda_stream_download(stream, c->h_maps + i * c->group.n_batch * one, maps[i], n,
                                     err);
    if (e || f.is_kept)
        return e;
    e = oct_cuda_stream_download(stream, c->h_rows, f.row, c->n * f.n_lines * sizeof(float), err);
    return e ? e : oct_cuda_stream_download(stream, c->h_maps, c->group.d_shown, n, err);
}

static enum oct_err begin(void *argument, struct oct_error *err)
{
    struct context *c = (struct context *)argument;
    if (c->is_put)
        return begin_put(c, err);
    oct_flow_queue_places(&c->group, c->n);
    return download(c, err);
}

static void give(void *argument, void *to)
{
    struct context *c = (struct context *)argument;
    struct oct_flow_engine *engine = ((struct task *)to)->engine;
    if (c->is_put)
        return;
    engine->places = c->h_places;
    engine->shown = c->h_maps;
    engine->rows = c->h_rows;
    for (unsigned i = 0; i < N_MAPS && c->group.f.is_kept; i++)
        engine->maps[i] = c->h_maps + i * c->group.n_batch * oct_flow_n_values(&c->group.f);
}

/* ---- the context ---- */

/* Every kernel once: B-scans of zeros. */
static enum oct_err rehearse(struct context *c, struct oct_error *err)
{
    struct oct_flow_cuda *f = &c->group.f;
    enum oct_err e = oct_cuda_stream_clear(c->group.stream, c->d_values,
                                           oct_flow_n_values(f) * sizeof(float2), err);
    c->is_put = c->keeps = true;
    c->from = c->d_values;
    for (unsigned r = 0; r < f->n_repeats && !e; r++) {
        c->i = r * f->n_places;
        f->came[0] |= (uint64_t)1 << r;
        e = begin(c, err);
    }
    c->is_put = false;
    c->n = 1;
    f->shown = c->group.d_shown;
    return e ? e : begin(c, err);
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
    enum oct_err e = oct_flow_group_make(&c->group, stream, setup, err);
    const size_t n = oct_flow_n_values(&c->group.f), all = c->group.n_batch * n;
    e = e ? e : oct_stream_alloc(stream, &c->d_values, n, err);
    e = e ? e : oct_stream_pin(stream, &c->h_values, 2 * n, err);
    e = e ? e : oct_stream_pin(stream, &c->h_maps, setup->shows ? all : N_MAPS * all, err);
    e = e ? e : oct_stream_pin(stream, &c->h_rows, c->group.n_batch * c->group.f.n_lines, err);
    e = e ? e : oct_stream_pin(stream, &c->h_places, c->group.n_batch, err);
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
    engine->n_batch = oct_flow_batch_of(setup);
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
    task.keeps = engine->setup.keeps;
    task.host = task.device ? NULL : bscan->complex_values;
    if (!task.device && !task.host)
        return OCT_OK;
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
    struct oct_flow_show wanted = {};
    const struct oct_flow_show *of = &engine->of;
    if (show)
        wanted = *show;
    const bool is_same = wanted.min_z == of->min_z && wanted.first == of->first &&
                         wanted.end == of->end && !wanted.values == !of->values;
    if (k >= engine->first && k - engine->first < engine->n_found && is_same)
        return OCT_OK;
    const unsigned left = engine->setup.n_places - k;
    struct task task = {};
    task.i = k;
    task.came = engine->came + k;
    task.n = left < engine->n_batch ? left : engine->n_batch;
    task.show = wanted;
    task.engine = engine;
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
        memcpy(show->values, (const float *)engine->shown + at, n * sizeof(float));
    else if (show && show->bytes)
        memcpy(show->bytes, (const uint8_t *)engine->shown + at, n);
    if (show && show->row)
        memcpy(show->row, engine->rows + (k - engine->first) * engine->setup.place.n_lines,
               engine->setup.place.n_lines * sizeof(float));
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
