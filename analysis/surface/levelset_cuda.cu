/* The CUDA engine: a worker (kernels/device/cuda_task.h) whose tasks are pieces of a denoising,
 * each far shorter than the deadline. Patches of FULL are put into the order of their sums on the
 * host, as is what comes back into the caller's box. */
#include "analysis/surface/cuda_levelset_device.cuh"
#include "kernels/device/cuda_task.h"
extern "C" {
#include "pipeline/base/clock.h"
}

#include <cstdlib>
#include <new>
#include <utility>

#define SEARCH_PAIRS 5e8    /* of the first launch of a search */
#define SEARCH_SHORT_S 0.02 /* a launch is made longer below, shorter above */
#define SEARCH_LONG_S 0.06

enum what {
    SEND_PHI,
    BAND,
    LIST,
    RANKS, /* LOCAL: of a piece */
    SUMS,  /* FULL: of patches */
    SEND_ORDER,
    GATHER,
    SEARCH,
    FINISH,
    BASE,
    STEP, /* LOCAL: of a piece */
    TURN,
    FETCH
};

struct oct_levelset_engine {
    struct oct_cuda_tasks *tasks;
    struct oct_levelset_setup setup;
    size_t n, stage_bytes; /* voxels; of one copy */
    struct oct_levelset_facts facts;
    uint32_t n_segments, most_segments;
    std::vector<uint32_t> *index; /* of a copy */
};

struct task {
    enum what what;
    const void *from; /* SEND */
    void *to;         /* FETCH */
    size_t at, bytes; /* of a copy */
    enum oct_levelset_rooms room;
    uint32_t first, end; /* segment; rounds */
    enum oct_levelset_mode mode;
    /* Of the result. */
    struct oct_levelset_facts facts;
    uint32_t most_segments;
};

struct context {
    struct oct_levelset_device device;
    struct task task;
};

/* ---- a task ---- */

static void take(void *argument, const void *from)
{
    struct context *c = (struct context *)argument;
    c->task = *(const struct task *)from;
    if (c->task.from)
        memcpy(c->device.h_stage, c->task.from, c->task.bytes);
}

static enum oct_err begin_list(struct oct_levelset_device *d, struct oct_error *err)
{
    d->n_band = d->h_facts->n_band;
    d->n_segments = d->h_facts->n_segments;
    enum oct_err e = oct_levelset_reserve(d, err);
    if (e)
        return e;
    oct_levelset_queue_list(d);
    if (d->params.weights == OCT_LEVELSET_LOCAL)
        TRY_STREAM(d->stream, "copy",
                   cudaMemcpyAsync(d->d_now, d->d_phi, d->n * sizeof(float),
                                   cudaMemcpyDeviceToDevice, d->stream->stream));
    return OCT_OK;
}

static enum oct_err download_facts(struct oct_levelset_device *d, struct oct_error *err)
{
    return oct_cuda_stream_download(d->stream, d->h_facts, d->d_facts, sizeof(*d->h_facts), err);
}

static enum oct_err begin_step(struct oct_levelset_device *d, const struct task *task,
                               struct oct_error *err)
{
    if (d->params.weights == OCT_LEVELSET_LOCAL) {
        oct_levelset_queue_rows(d, task->first);
        oct_levelset_queue_local(d, task->mode);
    } else {
        oct_levelset_queue_full(d, task->mode);
    }
    return download_facts(d, err);
}

static enum oct_err begin_copy(struct oct_levelset_device *d, const struct task *task,
                               struct oct_error *err)
{
    uint8_t *there =
        task->what == SEND_PHI ? (uint8_t *)d->d_phi : (uint8_t *)d->rooms[task->room].d_memory;
    if (task->what == FETCH)
        return oct_cuda_stream_download(d->stream, d->h_stage, there + task->at, task->bytes, err);
    return oct_cuda_stream_upload(d->stream, there + task->at, d->h_stage, task->bytes, err);
}

static enum oct_err begin(void *argument, struct oct_error *err)
{
    struct context *c = (struct context *)argument;
    struct oct_levelset_device *d = &c->device;
    switch (c->task.what) {
    case BAND:
        return oct_levelset_queue_band(d, err);
    case LIST:
        return begin_list(d, err);
    case RANKS:
        oct_levelset_queue_rows(d, c->task.first);
        oct_levelset_queue_ranks(d);
        return OCT_OK;
    case SUMS:
        oct_levelset_queue_sums(d);
        return OCT_OK;
    case GATHER:
        oct_levelset_queue_gather(d);
        return OCT_OK;
    case SEARCH:
        oct_levelset_queue_search(d, c->task.first, c->task.end);
        return OCT_OK;
    case FINISH:
        oct_levelset_queue_finish(d);
        return OCT_OK;
    case BASE:
        return oct_levelset_queue_base(d, err);
    case STEP:
        return begin_step(d, &c->task, err);
    case TURN:
        oct_levelset_queue_turn(d);
        return OCT_OK;
    default:
        return begin_copy(d, &c->task, err);
    }
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

/* ---- the context ---- */

static void unmake(void *argument)
{
    struct context *c = (struct context *)argument;
    oct_levelset_finish(&c->device);
    delete c;
}

/* A box with one voxel in its band. */
static enum oct_err rehearse_box(struct oct_levelset_device *d, struct oct_error *err)
{
    const size_t bytes = d->n * sizeof(float);
    enum oct_err e = OCT_OK;
    std::fill_n((float *)d->h_stage, d->stage_bytes / sizeof(float), FLT_MAX);
    for (size_t at = 0; at < bytes && !e; at += d->stage_bytes)
        e = oct_cuda_stream_upload(d->stream, (uint8_t *)d->d_phi + at, d->h_stage,
                                   std::min(d->stage_bytes, bytes - at), err);
    if (!e)
        e = oct_cuda_stream_clear(d->stream, d->d_phi, sizeof(float), err);
    if (!e)
        e = oct_levelset_queue_band(d, err);
    oct_cuda_stream_drain(d->stream);
    return e;
}

/* Every kernel once. */
static enum oct_err rehearse(struct oct_levelset_device *d, struct oct_error *err)
{
    struct task task = {};
    enum oct_err e = rehearse_box(d, err);
    e = e ? e : oct_cuda_stream_mark(d->stream, err);
    e = e ? e : begin_list(d, err);
    if (e)
        return e;
    if (d->params.weights == OCT_LEVELSET_LOCAL) {
        oct_levelset_queue_rows(d, 0);
        oct_levelset_queue_ranks(d);
    } else {
        oct_levelset_queue_sums(d);
        e = oct_cuda_stream_clear(d->stream, d->rooms[OCT_LEVELSET_ORDER].d_memory,
                                  sizeof(uint32_t), err);
        oct_levelset_queue_gather(d);
        oct_levelset_queue_search(d, 0, 1);
        oct_levelset_queue_finish(d);
    }
    e = e ? e : oct_levelset_queue_base(d, err);
    task.mode = OCT_LEVELSET_OWN_STEP;
    e = e ? e : begin_step(d, &task, err);
    oct_levelset_queue_turn(d);
    oct_cuda_stream_drain(d->stream);
    return e ? e : oct_cuda_stream_mark(d->stream, err);
}

static enum oct_err make_device(struct oct_levelset_device *d,
                                const struct oct_levelset_setup *setup, struct oct_error *err)
{
    try {
        enum oct_err e = oct_levelset_make(d, setup, err);
        return e ? e : rehearse(d, err);
    } catch (const std::bad_alloc &) {
        return oct_fail(err, OCT_E_NO_MEMORY, "level set: out of memory for tables");
    }
}

static enum oct_err make(void **out, struct oct_cuda_stream *stream, const void *setup,
                         struct oct_error *err)
{
    *out = NULL;
    struct context *c = new (std::nothrow) context();
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "level set: out of memory for an engine");
    c->device.stream = stream;
    enum oct_err e = make_device(&c->device, (const struct oct_levelset_setup *)setup, err);
    oct_cuda_stream_drain(stream);
    if (e) {
        unmake(c);
        return e;
    }
    *out = c;
    return OCT_OK;
}

static const struct oct_cuda_task_ops task_ops = {"level sets", make, take, begin, give, unmake};

/* ---- life ---- */

static void engine_destroy(struct oct_levelset_engine *l)
{
    if (!l)
        return;
    oct_cuda_tasks_destroy(l->tasks);
    delete l->index;
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
    if (l)
        l->index = new (std::nothrow) std::vector<uint32_t>();
    if (!l || !l->index) {
        engine_destroy(l);
        return oct_fail(err, OCT_E_NO_MEMORY, "level set: out of memory for an engine");
    }
    l->setup = *setup;
    l->n = (size_t)setup->dims[0] * setup->dims[1] * setup->dims[2];
    l->stage_bytes = std::min(l->n * sizeof(float), OCT_LEVELSET_STAGE_BYTES);
    e = oct_cuda_tasks_create(&l->tasks, &task_ops, setup->gpus, setup->deadline_ms, setup,
                              sizeof(*setup), err);
    if (e)
        engine_destroy(l);
    else
        *out = l;
    return e;
}

/* ---- denoise ---- */

static enum oct_err run(struct oct_levelset_engine *l, struct task *task, struct oct_error *err)
{
    enum oct_err e = oct_cuda_tasks_do(l->tasks, task, err);
    if (!e)
        l->facts = task->facts;
    return e;
}

static enum oct_err run_one(struct oct_levelset_engine *l, enum what what, struct oct_error *err)
{
    struct task task = {};
    task.what = what;
    return run(l, &task, err);
}

/* All of `from`, in pieces. */
static enum oct_err send(struct oct_levelset_engine *l, enum what what,
                         enum oct_levelset_rooms room, const void *from, size_t bytes,
                         struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (size_t at = 0; at < bytes && !e; at += l->stage_bytes) {
        struct task task = {};
        task.what = what;
        task.room = room;
        task.from = (const uint8_t *)from + at;
        task.at = at;
        task.bytes = std::min(l->stage_bytes, bytes - at);
        e = run(l, &task, err);
    }
    return e;
}

/* n values of four bytes from `first` on; at most a copy's. */
static enum oct_err fetch(struct oct_levelset_engine *l, enum oct_levelset_rooms room, void *to,
                          size_t first, size_t n, struct oct_error *err)
{
    struct task task = {};
    task.what = FETCH;
    task.room = room;
    task.to = to;
    task.at = 4 * first;
    task.bytes = 4 * n;
    return run(l, &task, err);
}

static enum oct_err find_band(struct oct_levelset_engine *l, const float *phi,
                              struct oct_error *err)
{
    enum oct_err e = send(l, SEND_PHI, OCT_LEVELSET_INDEX, phi, l->n * sizeof(*phi), err);
    if (!e)
        e = run_one(l, BAND, err);
    if (!e && l->facts.n_bad > 0)
        e = oct_fail(err, OCT_E_ARG, "level set: %u distances are not finite numbers",
                     l->facts.n_bad);
    if (e || l->facts.n_band == 0)
        return e;
    struct task task = {};
    task.what = LIST;
    e = run(l, &task, err);
    l->n_segments = l->facts.n_segments;
    l->most_segments = task.most_segments;
    return e;
}

/* A task for each piece of the band. */
static enum oct_err run_pieces(struct oct_levelset_engine *l, enum what what,
                               enum oct_levelset_mode mode, struct oct_error *err)
{
    const bool is_local = l->setup.params.weights == OCT_LEVELSET_LOCAL;
    const uint32_t n = is_local ? l->n_segments : 1, each = is_local ? l->most_segments : 1;
    enum oct_err e = OCT_OK;
    for (uint32_t first = 0; first < n && !e; first += each) {
        struct task task = {};
        task.what = what;
        task.first = first;
        task.mode = mode;
        e = run(l, &task, err);
    }
    return e;
}

/* FULL: the patches in the order of their sums, of equal sums in raster order. */
static enum oct_err put_in_order(struct oct_levelset_engine *l, struct oct_error *err)
{
    const size_t n = l->facts.n_band, most = l->stage_bytes / 4;
    std::vector<float> sums(n);
    std::vector<std::pair<float, uint32_t>> pairs(n);
    std::vector<uint32_t> order(n);
    enum oct_err e = run_one(l, SUMS, err);
    for (size_t first = 0; first < n && !e; first += most)
        e = fetch(l, OCT_LEVELSET_BY_NUMBER, &sums[first], first, std::min(most, n - first), err);
    if (e)
        return e;
    for (size_t i = 0; i < n; i++)
        pairs[i] = {sums[i], (uint32_t)i};
    std::sort(pairs.begin(), pairs.end());
    for (size_t i = 0; i < n; i++)
        order[i] = pairs[i].second;
    return send(l, SEND_ORDER, OCT_LEVELSET_ORDER, order.data(), 4 * n, err);
}

/* FULL: launches of such a length that the deadline is far. */
static enum oct_err search(struct oct_levelset_engine *l, struct oct_error *err)
{
    const double n = l->facts.n_band;
    const uint32_t n_rounds = 2 * oct_levelset_groups(l->facts.n_band, OCT_LEVELSET_TILE) - 1;
    uint32_t each = (uint32_t)std::max(1.0, SEARCH_PAIRS / OCT_LEVELSET_TILE / n);
    enum oct_err e = put_in_order(l, err);
    e = e ? e : run_one(l, GATHER, err);
    for (uint32_t first = 0; first < n_rounds && !e;) {
        const uint64_t begun_ns = oct_clock_ns();
        struct task task = {};
        task.what = SEARCH;
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
    return e ? e : run_one(l, FINISH, err);
}

static enum oct_err step_all(struct oct_levelset_engine *l, struct oct_error *err)
{
    const struct oct_levelset_params &p = l->setup.params;
    const enum oct_levelset_mode mode =
        p.common_step ? OCT_LEVELSET_COMMON_STEP : OCT_LEVELSET_OWN_STEP;
    enum oct_err e = p.common_step ? run_pieces(l, STEP, OCT_LEVELSET_SUMS, err) : OCT_OK;
    for (unsigned i = 0; i < p.steps && !e; i++) {
        e = run_pieces(l, STEP, mode, err);
        if (!e)
            e = run_one(l, TURN, err);
    }
    return e;
}

/* The band's values into the caller's box. */
static enum oct_err fetch_result(struct oct_levelset_engine *l, float *result,
                                 struct oct_error *err)
{
    const bool is_local = l->setup.params.weights == OCT_LEVELSET_LOCAL;
    const enum oct_levelset_rooms room = is_local ? OCT_LEVELSET_NEXT : OCT_LEVELSET_NOW;
    const size_t n = l->facts.n_band, most = l->stage_bytes / 4;
    std::vector<uint32_t> &index = *l->index;
    std::vector<float> values(n);
    enum oct_err e = OCT_OK;
    for (size_t first = 0; first < n && !e; first += most)
        e = fetch(l, room, &values[first], first, std::min(most, n - first), err);
    for (size_t first = 0; first < n && !e; first += most) {
        index.resize(std::min(most, n - first));
        e = fetch(l, OCT_LEVELSET_INDEX, index.data(), first, index.size(), err);
        for (size_t i = 0; i < index.size() && !e; i++)
            result[index[i]] = values[first + i];
    }
    return e;
}

static enum oct_err denoise(struct oct_levelset_engine *l, const float *phi, float *result,
                            struct oct_error *err)
{
    const bool is_local = l->setup.params.weights == OCT_LEVELSET_LOCAL;
    enum oct_err e = find_band(l, phi, err);
    const bool is_empty = l->facts.n_band == 0;
    if (!e && !is_empty)
        e = is_local ? run_pieces(l, RANKS, OCT_LEVELSET_SUMS, err) : search(l, err);
    if (!e && !is_empty)
        e = run_one(l, BASE, err);
    const bool stays = is_empty || !(l->facts.c2 > 0);
    if (!e && !stays)
        e = step_all(l, err);
    if (e)
        return e;
    if (result != phi)
        memcpy(result, phi, l->n * sizeof(*phi));
    return stays ? OCT_OK : fetch_result(l, result, err);
}

static void fill(const struct oct_levelset_engine *l, uint64_t begun_ns,
                 struct oct_levelset_report *report)
{
    const struct oct_levelset_params &p = l->setup.params;
    const struct oct_levelset_facts &f = l->facts;
    const uint64_t n = f.n_band;
    float largest;
    memcpy(&largest, &f.largest, sizeof(largest));
    *report = {};
    report->n_band = n;
    report->n_patches = p.weights == OCT_LEVELSET_LOCAL ? f.n_patches : n > 0 ? n * (n - 1) : 0;
    report->base = (double)f.base;
    report->c2 = p.c2 > 0 ? p.c2 : p.beta * report->base;
    report->largest_sum = (double)largest;
    report->seconds = (double)(oct_clock_ns() - begun_ns) * 1e-9;
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
    if (!e && report)
        fill(l, begun_ns, report);
    return e;
}

extern "C" const struct oct_levelset_ops oct_levelset_cuda = {"cuda", engine_create, engine_denoise,
                                                              NULL, engine_destroy};
