/* The CUDA engine: a worker (kernels/device/cuda_task.h) whose tasks are pieces of a denoising,
 * each far shorter than the deadline.
 *
 *     upload phi -> band -> list -> LOCAL { ranks ... }
 *                                   FULL { sums -> order -> gather -> search ... -> finish }
 *                -> base -> step ... -> download
 *
 * A queue_ function is a task's: it runs in the worker's thread and does not wait for the device.
 * Patches of FULL are put into the order of their sums on the host, as is what comes back into the
 * caller's box. */
#include "analysis/layers/denoise/cuda_levelset_full.cuh"
#include "analysis/layers/denoise/cuda_levelset_local.cuh"
#include "kernels/device/cuda_stream.cuh"
#include "kernels/device/cuda_task.h"
extern "C" {
#include "analysis/layers/denoise/levelset.h"
#include "pipeline/base/clock.h"
}

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <new>
#include <utility>
#include <vector>

#define STAGE_BYTES ((size_t)64 << 20) /* pinned, at most */
#define ROWS_BYTES ((size_t)2 << 30)   /* of rows at once, unless a segment's are more */
#define LEAST_SEGMENTS 512u            /* whose rows must fit */
#define SEARCH_PAIRS 5e8               /* of the first launch of a search */
#define SEARCH_SHORT_S 0.02            /* a launch is made longer below, shorter above */
#define SEARCH_LONG_S 0.06

/* ---- memory of the device ---- */

/* It grows when a band needs more, and is kept for the next. Used in the stream's thread while the
 * stream is idle. */
struct room {
    void **at;
    size_t bytes;
};

struct device {
    struct oct_cuda_stream *stream = NULL;
    struct oct_levelset_params params = {};
    struct level level = {};
    struct room rooms[24] = {};
    unsigned n_rooms = 0;
    size_t n = 0, stage_bytes = 0; /* voxels of the box; of one copy */
    size_t tile_bytes = 0;         /* LOCAL */
    uint32_t most_segments = 0;    /* LOCAL: whose rows are kept at once */
    struct facts *h_facts = NULL;
    uint8_t *h_stage = NULL;

    ~device()
    {
        for (unsigned i = 0; i < n_rooms; i++)
            cudaFree(*rooms[i].at);
    }
};

/* n elements at a pointer of level. */
template <class T> static struct room want(T **at, size_t n)
{
    return {(void **)at, n * sizeof(T)};
}

static struct room *room_at(struct device *d, void *at)
{
    struct room *room = d->rooms;
    while (room < d->rooms + d->n_rooms && room->at != at)
        room++;
    if (room == d->rooms + d->n_rooms)
        d->rooms[d->n_rooms++].at = (void **)at;
    return room;
}

static enum oct_err free_bytes(struct oct_cuda_stream *on, size_t *bytes, struct oct_error *err)
{
    size_t total = 0;
    TRY_STREAM(on, "memory", cudaMemGetInfo(bytes, &total));
    return OCT_OK;
}

/* Rooms have the bytes that are wanted, at least. OCT_E_NO_MEMORY, of `what`: some may have
 * nothing. */
static enum oct_err reserve(struct device *d, std::initializer_list<struct room> wants,
                            const char *what, struct oct_error *err)
{
    size_t more = 0, all = 0, available = 0;
    for (const struct room &want : wants) {
        struct room *room = room_at(d, want.at);
        all += want.bytes;
        if (want.bytes <= room->bytes)
            continue;
        cudaFree(*room->at);
        *room->at = NULL;
        room->bytes = 0;
        more += want.bytes;
    }
    if (more == 0)
        return OCT_OK;
    enum oct_err e = free_bytes(d->stream, &available, err);
    if (e)
        return e;
    bool fits = more <= available;
    for (const struct room &want : wants) {
        struct room *room = room_at(d, want.at);
        if (!fits || want.bytes <= room->bytes)
            continue;
        const cudaError_t code = cudaMalloc(room->at, want.bytes);
        oct_cuda_signs_note_call(d->stream->signs);
        fits = code != cudaErrorMemoryAllocation;
        if (!fits)
            (void)cudaGetLastError(); /* the next launch's check would find it */
        if (code != cudaSuccess)
            *room->at = NULL;
        if (code != cudaSuccess && fits)
            return cuda_fail(err, d->stream->device, "memory", code);
        room->bytes = fits ? want.bytes : 0;
    }
    return fits ? OCT_OK
                : oct_fail(
                      err, OCT_E_NO_MEMORY,
                      "GPU %d: %s takes %zu MB, of which %zu MB are to be had: narrow it with a "
                      "smaller box or delta",
                      d->stream->device, what, (all + 999999) / 1000000, available / 1000000);
}

/* ---- tasks ---- */

struct task {
    enum oct_err (*queue)(struct device *d, const struct task *task, struct oct_error *err);
    /* A copy, from or to the host. */
    const void *from;
    void *to;
    size_t place, at, bytes; /* place: of the memory in struct level; at: in the memory */
    /* Segments of LOCAL from `first` on; rounds of a search; a step, which turns the box to what it
     * has made when it is the last of its kind. */
    uint32_t first, end;
    enum mode mode;
    bool is_last;
    /* Of the result. */
    struct facts facts;
    uint32_t most_segments;
};

template <class... PARAMS, class... ARGUMENTS>
static void launch(struct device *d, void (*kernel)(struct level, PARAMS...), uint32_t n_blocks,
                   uint32_t n_threads, ARGUMENTS... values)
{
    OCT_LAUNCH(kernel, dim3(n_blocks), dim3(n_threads), 0, d->stream->stream, d->level,
               (PARAMS)values...);
}

static uint8_t *copied(struct device *d, const struct task *task)
{
    return *(uint8_t **)((uint8_t *)&d->level + task->place) + task->at;
}

static enum oct_err queue_upload(struct device *d, const struct task *task, struct oct_error *err)
{
    return oct_cuda_stream_upload(d->stream, copied(d, task), d->h_stage, task->bytes, err);
}

static enum oct_err queue_download(struct device *d, const struct task *task, struct oct_error *err)
{
    return oct_cuda_stream_download(d->stream, d->h_stage, copied(d, task), task->bytes, err);
}

static enum oct_err download_facts(struct device *d, struct oct_error *err)
{
    return oct_cuda_stream_download(d->stream, d->h_facts, d->level.facts, sizeof(*d->h_facts),
                                    err);
}

/* phi is there; facts, and the A-lines' counts and places. */
static enum oct_err queue_band(struct device *d, const struct task *, struct oct_error *err)
{
    enum oct_err e = oct_cuda_stream_clear(d->stream, d->level.facts, sizeof(*d->h_facts), err);
    if (e)
        return e;
    launch(d, count_kernel, groups(d->level.n_columns, WARPS), THREADS);
    launch(d, places_kernel, 1, SCANNERS);
    return download_facts(d, err);
}

/* Bytes of rows: all, or as many as there is room for beside `others`. */
static enum oct_err rows_bytes(struct device *d, size_t others, size_t *bytes,
                               struct oct_error *err)
{
    const size_t row = d->level.n_row * sizeof(float), all = d->level.n_band * row;
    const size_t least = std::min(LEAST_SEGMENTS, d->level.n_segments) * row * SPAN;
    const size_t there = room_at(d, &d->level.rows)->bytes;
    size_t available = 0;
    *bytes = all;
    if (all <= there)
        return OCT_OK;
    enum oct_err e = free_bytes(d->stream, &available, err);
    available += there;
    available -= std::min(available, others);
    *bytes = std::min(all, std::min(ROWS_BYTES, available / 4 * 3));
    *bytes = std::max(*bytes, std::min(least, all));
    return e;
}

static enum oct_err reserve_local(struct device *d, const char *what, struct oct_error *err)
{
    struct level &l = d->level;
    const size_t n = l.n_band, row = l.n_row * sizeof(float);
    size_t rows;
    enum oct_err e = rows_bytes(d, 12 * n + l.n_segments * sizeof(struct segment), &rows, err);
    if (!e)
        e = reserve(d,
                    {want(&l.index, n), want(&l.segments, l.n_segments), want(&l.ranks, n),
                     want(&l.next, n), want(&l.rows, rows / sizeof(float))},
                    what, err);
    const size_t n_rows = room_at(d, &l.rows)->bytes / row;
    d->most_segments = n_rows >= n ? l.n_segments : (uint32_t)(n_rows / SPAN);
    l.n_kept = 0;
    return e;
}

static enum oct_err reserve_full(struct device *d, const char *what, struct oct_error *err)
{
    const struct oct_levelset_params &p = d->params;
    struct level &l = d->level;
    const size_t n = l.n_band;
    l.n_tiles = groups(l.n_band, TILE);
    l.patch_values = p.patch * p.patch * p.patch;
    l.n_values = groups(l.patch_values, VALUES) * VALUES;
    l.kept = p.c2 > 0 || p.most >= p.rank ? p.most : p.rank;
    l.n_keys = l.kept + 2 * ROOM;
    return reserve(d,
                   {want(&l.index, n), want(&l.ranks, n), want(&l.next, n), want(&l.by_number, n),
                    want(&l.sums, n), want(&l.order, n),
                    want(&l.patches, (size_t)l.n_tiles * TILE * l.n_values),
                    want(&l.keys, n * l.n_keys), want(&l.n_found, n), want(&l.limits, n)},
                   what, err);
}

/* Memory for the band that was counted, and its voxels. */
static enum oct_err queue_list(struct device *d, const struct task *, struct oct_error *err)
{
    const bool is_local = d->params.weights == OCT_LEVELSET_LOCAL;
    char what[96];
    d->level.n_band = d->h_facts->n_band;
    d->level.n_segments = d->h_facts->n_segments;
    snprintf(what, sizeof(what), "a level set's band of %u voxels", d->level.n_band);
    enum oct_err e = is_local ? reserve_local(d, what, err) : reserve_full(d, what, err);
    if (e)
        return e;
    launch(d, list_kernel, groups(d->level.n_columns, WARPS), THREADS, is_local);
    TRY_STREAM(d->stream, "copy",
               cudaMemcpyAsync(d->level.now, d->level.phi, d->n * sizeof(float),
                               cudaMemcpyDeviceToDevice, d->stream->stream));
    return OCT_OK;
}

/* base, with c2 0, and c2. */
static enum oct_err queue_base(struct device *d, const struct task *, struct oct_error *err)
{
    for (int i = 0; i < 2 * PASSES && !(d->params.c2 > 0); i++) {
        launch(d, bins_kernel, BLOCKS, THREADS, i % PASSES);
        launch(d, narrow_kernel, 1, BINS, i % PASSES, i / PASSES);
    }
    launch(d, settle_kernel, 1, 1, d->params.beta, d->params.c2);
    return download_facts(d, err);
}

typedef void (*rows_function)(struct level);

static rows_function rows_of(uint32_t radius)
{
    return radius == 1 ? rows_kernel<1> : radius == 2 ? rows_kernel<2> : rows_kernel<3>;
}

/* LOCAL: the rows of segments `first` to as many as are kept at once, unless they are there.
 * Returns blocks of warps for their voxels. */
static uint32_t queue_rows(struct device *d, uint32_t first)
{
    struct level &l = d->level;
    const uint32_t n = std::min(d->most_segments, l.n_segments - first);
    if (l.n_kept != n || l.first != first) {
        l.first = first;
        l.n_kept = n;
        OCT_LAUNCH((rows_of(l.radius)), dim3(n), dim3(THREADS), d->tile_bytes, d->stream->stream,
                   l);
    }
    return groups(std::min((uint64_t)n * SPAN, (uint64_t)l.n_band), WARPS);
}

/* With c2 given candidates are counted, and nothing is ranked. */
static enum oct_err queue_ranks(struct device *d, const struct task *task, struct oct_error *)
{
    const uint32_t n_blocks = queue_rows(d, task->first);
    launch(d, rank_kernel, n_blocks, THREADS, d->params.c2 > 0 ? 0 : d->params.rank);
    return OCT_OK;
}

static enum oct_err queue_sums(struct device *d, const struct task *, struct oct_error *)
{
    launch(d, sums_kernel, groups(d->level.n_band, THREADS), THREADS);
    return OCT_OK;
}

/* The order is there. */
static enum oct_err queue_gather(struct device *d, const struct task *, struct oct_error *)
{
    launch(d, gather_kernel, d->level.n_tiles, THREADS);
    return OCT_OK;
}

static enum oct_err queue_search(struct device *d, const struct task *task, struct oct_error *)
{
    launch(d, search_kernel, d->level.n_tiles, THREADS, task->first, task->end);
    return OCT_OK;
}

static enum oct_err queue_finish(struct device *d, const struct task *, struct oct_error *)
{
    launch(d, finish_kernel, groups(d->level.n_band, SORTERS), SORTERS * 32, d->params.rank);
    return OCT_OK;
}

static enum oct_err queue_step(struct device *d, const struct task *task, struct oct_error *err)
{
    const struct oct_levelset_params &p = d->params;
    const uint32_t n = d->level.n_band;
    if (p.weights == OCT_LEVELSET_LOCAL) {
        const uint32_t n_blocks = queue_rows(d, task->first);
        launch(d, local_kernel, n_blocks, THREADS, task->mode);
    } else {
        launch(d, full_kernel, groups(n, WARPS), THREADS, p.most, std::isfinite(p.c1) ? p.c1 : 0,
               task->mode);
    }
    if (task->is_last && task->mode != SUMS)
        launch(d, put_kernel, groups(n, THREADS), THREADS);
    return download_facts(d, err);
}

/* ---- the context ---- */

struct context {
    struct device device;
    struct task task;
};

static void take(void *argument, const void *from)
{
    struct context *c = (struct context *)argument;
    c->task = *(const struct task *)from;
    if (c->task.from)
        memcpy(c->device.h_stage, c->task.from, c->task.bytes);
}

static enum oct_err begin(void *argument, struct oct_error *err)
{
    struct context *c = (struct context *)argument;
    return c->task.queue(&c->device, &c->task, err);
}

static void give(void *argument, void *to)
{
    const struct context *c = (const struct context *)argument;
    struct task *task = (struct task *)to;
    task->facts = *c->device.h_facts;
    task->most_segments = c->device.most_segments;
    if (task->to)
        memcpy(task->to, c->device.h_stage, task->bytes);
}

static void unmake(void *argument)
{
    delete (struct context *)argument;
}

/* Units of neighbouring threads lie in neighbouring banks of shared memory, as far as `is_spread`
 * allows it: groups THREE apart, A-lines 3 n_groups, rows of them 3 n_groups width. Returns the
 * bytes of a tile. */
static size_t plan_tile(struct level *l, uint32_t reach, bool is_spread)
{
    const uint32_t depths = SPAN + 2 * l->radius;
    l->reach = reach;
    l->width = 2 * reach + 1;
    l->n_groups = groups(l->width, THREE);
    l->n_units = l->width * l->width * l->n_groups;
    l->n_row = l->n_units * THREE;
    l->side = l->width + 2 * l->radius;
    l->depth = THREE * l->n_groups - 1 + depths;
    l->pitch = l->depth;
    l->row_pitch = l->side * l->pitch;
    if (is_spread) {
        const uint32_t line = THREE * l->n_groups;
        l->pitch += (line + 32 - l->depth % 32) % 32;
        l->row_pitch = l->side * l->pitch;
        l->row_pitch += (line * l->width % 32 + 32 - l->row_pitch % 32) % 32;
    }
    return (l->patch * l->patch * ((depths + 3) / 4 * 4) + (size_t)l->side * l->row_pitch) *
           sizeof(float);
}

/* A tile in shared memory: spread where that fits, close otherwise. */
static enum oct_err choose_tile(struct device *d, struct oct_error *err)
{
    int limit = 0;
    TRY_STREAM(
        d->stream, "shared memory",
        cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, d->stream->device));
    d->tile_bytes = plan_tile(&d->level, d->params.reach, true);
    if (d->tile_bytes > (size_t)limit)
        d->tile_bytes = plan_tile(&d->level, d->params.reach, false);
    if (d->tile_bytes > (size_t)limit)
        return oct_fail(err, OCT_E_BACKEND,
                        "GPU %d: a reach of %u voxels takes %zu bytes of shared memory; it has %d",
                        d->stream->device, d->params.reach, d->tile_bytes, limit);
    TRY_STREAM(d->stream, "shared memory",
               cudaFuncSetAttribute((const void *)rows_of(d->level.radius),
                                    cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    (int)d->tile_bytes));
    return OCT_OK;
}

/* As rows_kernel places its units. */
static enum oct_err upload_offsets(struct device *d, struct oct_error *err)
{
    const struct level &l = d->level;
    const int32_t reach = (int32_t)l.reach;
    std::vector<struct offset> offsets(l.n_row);
    for (uint32_t i = 0; i < l.n_row; i++) {
        const uint32_t t = i % l.n_units, line = t / l.n_groups;
        const int32_t db = (int32_t)(line / l.width) - reach;
        const int32_t dj = (int32_t)(line % l.width) - reach;
        const int32_t dd = (int32_t)(THREE * (t % l.n_groups) + i / l.n_units) - reach;
        const int64_t step = ((int64_t)db * l.n_j + dj) * l.n_d + dd;
        offsets[i] = {(int32_t)step, (float)((db * db + dj * dj + dd * dd) / d->params.c1)};
    }
    enum oct_err e = oct_cuda_stream_upload(d->stream, l.offsets, offsets.data(),
                                            l.n_row * sizeof(struct offset), err);
    oct_cuda_stream_drain(d->stream); /* the offsets are not pinned */
    return e;
}

/* What the box takes, whatever the band. */
static enum oct_err make_box(struct device *d, const struct oct_levelset_setup *setup,
                             struct oct_error *err)
{
    const bool is_local = setup->params.weights == OCT_LEVELSET_LOCAL;
    struct level &l = d->level;
    d->params = setup->params;
    l.n_b = setup->dims[0];
    l.n_j = setup->dims[1];
    l.n_d = setup->dims[2];
    l.n_columns = l.n_b * l.n_j;
    l.patch = setup->params.patch;
    l.radius = l.patch / 2;
    l.delta = (float)setup->params.delta;
    d->n = (size_t)l.n_columns * l.n_d;
    d->stage_bytes = std::min(d->n * sizeof(float), STAGE_BYTES);
    enum oct_err e = is_local ? choose_tile(d, err) : OCT_OK;
    if (!e)
        e = reserve(d,
                    {want(&l.phi, d->n), want(&l.now, d->n), want(&l.columns, l.n_columns),
                     want(&l.bins, BINS), want(&l.facts, 1), want(&l.offsets, l.n_row)},
                    "a level set's box", err);
    e = e ? e : oct_stream_pin(d->stream, &d->h_facts, 1, err);
    e = e ? e : oct_stream_pin(d->stream, &d->h_stage, d->stage_bytes, err);
    e = e ? e : oct_cuda_stream_clear(d->stream, l.bins, BINS * sizeof(*l.bins), err);
    return e || !is_local ? e : upload_offsets(d, err);
}

/* Every kernel once, on a box with one voxel in its band. */
static enum oct_err rehearse(struct device *d, struct oct_error *err)
{
    const size_t bytes = d->n * sizeof(float);
    struct task task = {};
    enum oct_err e = OCT_OK;
    task.end = 1;
    task.mode = OWN_STEP;
    task.is_last = true;
    std::fill_n((float *)d->h_stage, d->stage_bytes / sizeof(float), FLT_MAX);
    for (size_t at = 0; at < bytes && !e; at += d->stage_bytes)
        e = oct_cuda_stream_upload(d->stream, (uint8_t *)d->level.phi + at, d->h_stage,
                                   std::min(d->stage_bytes, bytes - at), err);
    e = e ? e : oct_cuda_stream_clear(d->stream, d->level.phi, sizeof(float), err);
    e = e ? e : queue_band(d, &task, err);
    oct_cuda_stream_drain(d->stream);
    e = e ? e : oct_cuda_stream_mark(d->stream, err);
    e = e ? e : queue_list(d, &task, err);
    if (e)
        return e;
    if (d->params.weights == OCT_LEVELSET_LOCAL) {
        queue_ranks(d, &task, err);
    } else {
        queue_sums(d, &task, err);
        e = oct_cuda_stream_clear(d->stream, d->level.order, sizeof(uint32_t), err);
        queue_gather(d, &task, err);
        queue_search(d, &task, err);
        queue_finish(d, &task, err);
    }
    e = e ? e : queue_base(d, &task, err);
    e = e ? e : queue_step(d, &task, err);
    oct_cuda_stream_drain(d->stream);
    return e ? e : oct_cuda_stream_mark(d->stream, err);
}

static enum oct_err make(void **out, struct oct_cuda_stream *stream, const void *setup,
                         struct oct_error *err)
{
    *out = NULL;
    struct context *c = new (std::nothrow) context();
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "level set: out of memory for an engine");
    enum oct_err e;
    c->device.stream = stream;
    try {
        e = make_box(&c->device, (const struct oct_levelset_setup *)setup, err);
        e = e ? e : rehearse(&c->device, err);
    } catch (const std::bad_alloc &) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "level set: out of memory for tables");
    }
    oct_cuda_stream_drain(stream);
    if (e)
        unmake(c);
    else
        *out = c;
    return e;
}

static const struct oct_cuda_task_ops task_ops = {"level sets", make, take, begin, give, unmake};

/* ---- the engine ---- */

struct oct_levelset_engine {
    struct oct_cuda_tasks *tasks;
    struct oct_levelset_setup setup;
    size_t n, stage_bytes; /* voxels; of one copy */
    struct facts facts;
    uint32_t most_segments;
};

static enum oct_err run(struct oct_levelset_engine *l, struct task *task, struct oct_error *err)
{
    enum oct_err e = oct_cuda_tasks_do(l->tasks, task, err);
    if (!e) {
        l->facts = task->facts;
        l->most_segments = task->most_segments;
    }
    return e;
}

static enum oct_err run_one(struct oct_levelset_engine *l,
                            enum oct_err (*queue)(struct device *, const struct task *,
                                                  struct oct_error *),
                            struct oct_error *err)
{
    struct task task = {};
    task.queue = queue;
    return run(l, &task, err);
}

/* `bytes` of the memory at a place of struct level from the host, or to it, in pieces. */
static enum oct_err copy(struct oct_levelset_engine *l, size_t place, const void *from, void *to,
                         size_t bytes, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (size_t at = 0; at < bytes && !e; at += l->stage_bytes) {
        struct task task = {};
        task.queue = from ? queue_upload : queue_download;
        task.place = place;
        task.from = from ? (const uint8_t *)from + at : NULL;
        task.to = to ? (uint8_t *)to + at : NULL;
        task.at = at;
        task.bytes = std::min(l->stage_bytes, bytes - at);
        e = run(l, &task, err);
    }
    return e;
}

/* A task for each piece of the band. */
static enum oct_err run_pieces(struct oct_levelset_engine *l, bool ranks, enum mode mode,
                               struct oct_error *err)
{
    const bool is_local = l->setup.params.weights == OCT_LEVELSET_LOCAL;
    const uint32_t n = is_local ? l->facts.n_segments : 1, each = is_local ? l->most_segments : 1;
    enum oct_err e = OCT_OK;
    for (uint32_t first = 0; first < n && !e; first += each) {
        struct task task = {};
        task.queue = ranks ? queue_ranks : queue_step;
        task.first = first;
        task.is_last = n - first <= each;
        task.mode = mode;
        e = run(l, &task, err);
    }
    return e;
}

/* FULL: the patches in the order of their sums, of equal sums in raster order. */
static enum oct_err put_in_order(struct oct_levelset_engine *l, struct oct_error *err)
{
    const size_t n = l->facts.n_band;
    std::vector<float> sums(n);
    std::vector<std::pair<float, uint32_t>> pairs(n);
    std::vector<uint32_t> order(n);
    enum oct_err e = run_one(l, queue_sums, err);
    if (!e)
        e = copy(l, offsetof(struct level, by_number), NULL, sums.data(), 4 * n, err);
    if (e)
        return e;
    for (size_t i = 0; i < n; i++)
        pairs[i] = {sums[i], (uint32_t)i};
    std::sort(pairs.begin(), pairs.end());
    for (size_t i = 0; i < n; i++)
        order[i] = pairs[i].second;
    return copy(l, offsetof(struct level, order), order.data(), NULL, 4 * n, err);
}

/* FULL: launches of such a length that the deadline is far. */
static enum oct_err search(struct oct_levelset_engine *l, struct oct_error *err)
{
    const uint32_t n_rounds = 2 * groups(l->facts.n_band, TILE) - 1;
    uint32_t each = (uint32_t)std::max(1.0, SEARCH_PAIRS / TILE / l->facts.n_band);
    enum oct_err e = put_in_order(l, err);
    e = e ? e : run_one(l, queue_gather, err);
    for (uint32_t first = 0; first < n_rounds && !e;) {
        const uint64_t begun_ns = oct_clock_ns();
        struct task task = {};
        task.queue = queue_search;
        task.first = first;
        task.end = first + std::min(each, n_rounds - first);
        e = run(l, &task, err);
        first = task.end;
        const double took_s = (double)(oct_clock_ns() - begun_ns) * 1e-9;
        if (took_s < SEARCH_SHORT_S && each < n_rounds)
            each *= 2;
        else if (took_s > SEARCH_LONG_S && each > 1)
            each /= 2;
    }
    return e ? e : run_one(l, queue_finish, err);
}

static enum oct_err step_all(struct oct_levelset_engine *l, struct oct_error *err)
{
    const struct oct_levelset_params &p = l->setup.params;
    enum oct_err e = p.common_step ? run_pieces(l, false, SUMS, err) : OCT_OK;
    for (unsigned i = 0; i < p.steps && !e; i++)
        e = run_pieces(l, false, p.common_step ? COMMON_STEP : OWN_STEP, err);
    return e;
}

/* The band's values into the caller's box. */
static enum oct_err fetch_result(struct oct_levelset_engine *l, float *result,
                                 struct oct_error *err)
{
    const size_t n = l->facts.n_band;
    std::vector<uint32_t> index(n);
    std::vector<float> values(n);
    enum oct_err e = copy(l, offsetof(struct level, next), NULL, values.data(), 4 * n, err);
    if (!e)
        e = copy(l, offsetof(struct level, index), NULL, index.data(), 4 * n, err);
    for (size_t i = 0; i < n && !e; i++)
        result[index[i]] = values[i];
    return e;
}

static enum oct_err denoise(struct oct_levelset_engine *l, const float *phi, float *result,
                            struct oct_error *err)
{
    const size_t bytes = l->n * sizeof(*phi);
    enum oct_err e = copy(l, offsetof(struct level, phi), phi, NULL, bytes, err);
    e = e ? e : run_one(l, queue_band, err);
    if (!e && l->facts.n_bad > 0)
        e = oct_fail(err, OCT_E_ARG, "level set: %u distances are not finite numbers",
                     l->facts.n_bad);
    const bool is_empty = e || l->facts.n_band == 0;
    if (!is_empty) {
        const bool is_local = l->setup.params.weights == OCT_LEVELSET_LOCAL;
        e = run_one(l, queue_list, err);
        e = e ? e : is_local ? run_pieces(l, true, SUMS, err) : search(l, err);
        e = e ? e : run_one(l, queue_base, err);
    }
    const bool stays = is_empty || !(l->facts.c2 > 0);
    if (!e && !stays)
        e = step_all(l, err);
    if (e)
        return e;
    if (result != phi)
        memcpy(result, phi, bytes);
    return stays ? OCT_OK : fetch_result(l, result, err);
}

static void fill_report(const struct oct_levelset_engine *l, struct oct_levelset_report *report)
{
    const struct oct_levelset_params &p = l->setup.params;
    const struct facts &f = l->facts;
    const uint64_t n = f.n_band;
    float largest;
    memcpy(&largest, &f.largest, sizeof(largest));
    *report = {};
    report->n_band = n;
    report->n_patches = p.weights == OCT_LEVELSET_LOCAL ? f.n_patches : n > 0 ? n * (n - 1) : 0;
    report->base = (double)f.base;
    report->c2 = p.c2 > 0 ? p.c2 : p.beta * report->base;
    report->largest_sum = (double)largest;
}

static enum oct_err engine_denoise(struct oct_levelset_engine *l, const float *phi, float *result,
                                   struct oct_levelset_report *report, struct oct_error *err)
{
    const uint64_t begun_ns = oct_clock_ns();
    enum oct_err e;
    try {
        e = denoise(l, phi, result, err);
    } catch (const std::bad_alloc &) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "level set: out of memory for a band of %u voxels",
                     l->facts.n_band);
    }
    if (e || !report)
        return e;
    fill_report(l, report);
    report->seconds = (double)(oct_clock_ns() - begun_ns) * 1e-9;
    return OCT_OK;
}

static void engine_destroy(struct oct_levelset_engine *l)
{
    if (l)
        oct_cuda_tasks_destroy(l->tasks);
    delete l;
}

static enum oct_err engine_create(struct oct_levelset_engine **out,
                                  const struct oct_levelset_setup *setup, struct oct_error *err)
{
    *out = NULL;
    enum oct_err e = oct_levelset_setup_check(setup, err);
    if (e)
        return e;
    struct oct_levelset_engine *l = new (std::nothrow) oct_levelset_engine();
    if (!l)
        return oct_fail(err, OCT_E_NO_MEMORY, "level set: out of memory for an engine");
    l->setup = *setup;
    l->n = (size_t)setup->dims[0] * setup->dims[1] * setup->dims[2];
    l->stage_bytes = std::min(l->n * sizeof(float), STAGE_BYTES);
    e = oct_cuda_tasks_create(&l->tasks, &task_ops, setup->gpus, setup->deadline_ms, setup,
                              sizeof(*setup), err);
    if (e)
        engine_destroy(l);
    else
        *out = l;
    return e;
}

extern "C" const struct oct_levelset_ops oct_levelset_cuda = {"cuda", engine_create, engine_denoise,
                                                              NULL, engine_destroy};
