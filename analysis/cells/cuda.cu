/* The CUDA engine: a worker (kernels/device/cuda_task.h) whose tasks are a picture, more of its
 * peaks, cells to follow, or its map. What needs the whole list of peaks, and masks, is computed on
 * the host: their order, merging, and what is near masked pixels. So are B-splines. */
#include "analysis/cells/cuda_cells.cuh"
#include "kernels/device/cuda_task.h"

#include <cmath>

enum what { LOOK, MORE, FOLLOW, MAP };

struct task {
    enum what what;
    /* LOOK */
    const struct oct_picture *picture;
    const struct oct_cells_mask *mask;
    bool searches;
    float *gradient; /* NULL: it is not wanted */
    /* LOOK, MORE */
    uint32_t first;              /* MORE */
    struct oct_cells_list *list; /* of the result */
    /* FOLLOW */
    const struct oct_cells_snake *snakes;
    unsigned n;
    struct oct_cell_end *ends;
    float *fields; /* [n][most], or NULL */
    /* MAP */
    float *score;
    uint8_t *best;
};

struct oct_cells_engine {
    struct oct_cuda_tasks *tasks;
    struct oct_cells_engine_setup setup;
    struct oct_cells_mask mask;
    bool has_picture, has_map;
    struct oct_cells_list list;
    std::vector<float> gradient; /* [2][height][width], with REFINE_SPLINE */
    std::vector<struct oct_cell> cells;
    std::vector<struct oct_cells_snake> snakes; /* of the last follow, */
    std::vector<float> fields;                  /* with keeps_fields */
    size_t most;
};

struct context {
    struct oct_cells_device device;
    struct task task; /* what it points at is read by take and give alone */
};

/* What a function returns, or that there was no memory for it. */
template <class F> static enum oct_err without_throw(F &&function, struct oct_error *err)
{
    try {
        return function();
    } catch (const std::bad_alloc &) {
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for an engine");
    }
}

/* ---- a task ---- */

static void take_picture(struct oct_cells_device *d, const struct task *task)
{
    d->is_masked = task->mask->any;
    if (task->mask->is_empty) {
        memset(d->h_picture, 0, d->n * sizeof(float));
        return;
    }
    memcpy(d->h_picture, task->picture->pixels, d->n * sizeof(float));
    if (!d->is_masked)
        return;
    oct_cells_mask_fill(task->mask, d->h_picture, d->shape.width);
    memcpy(d->h_valid, task->mask->valid, d->n);
    memcpy(d->h_near, task->mask->near, d->n);
}

static void take(void *argument, const void *from)
{
    struct context *c = (struct context *)argument;
    c->task = *(const struct task *)from;
    if (c->task.what == LOOK)
        take_picture(&c->device, &c->task);
    else if (c->task.what == FOLLOW)
        memcpy(c->device.h_snakes, c->task.snakes, c->task.n * sizeof(*c->task.snakes));
}

static enum oct_err begin_look(struct oct_cells_device *d, bool searches, struct oct_error *err)
{
    enum oct_err e = oct_cells_upload(d, err);
    if (e)
        return e;
    oct_cells_queue_prepare(d);
    oct_cells_queue_scores(d); /* the ends of snakes have some, too */
    if (!searches)
        return OCT_OK;
    oct_cells_queue_peaks(d);
    e = oct_cells_queue_refine(d, 0, err);
    if (!e && d->h_gradient)
        e = oct_cuda_stream_download(d->stream, d->h_gradient, d->planes.gx,
                                     2 * d->n * sizeof(float), err);
    return e;
}

/* To where pictures are taken. */
static enum oct_err begin_map(struct oct_cells_device *d, struct oct_error *err)
{
    enum oct_err e = oct_cuda_stream_download(d->stream, d->h_picture, d->planes.score,
                                              d->n * sizeof(float), err);
    return e ? e : oct_cuda_stream_download(d->stream, d->h_valid, d->planes.best, d->n, err);
}

static enum oct_err begin(void *argument, struct oct_error *err)
{
    struct context *c = (struct context *)argument;
    switch (c->task.what) {
    case LOOK:
        return begin_look(&c->device, c->task.searches, err);
    case MORE:
        return oct_cells_queue_refine(&c->device, c->task.first, err);
    case FOLLOW:
        return oct_cells_queue_follow(&c->device, c->task.n, err);
    default:
        return begin_map(&c->device, err);
    }
}

static void give(void *argument, void *to)
{
    const struct oct_cells_device *d = &((const struct context *)argument)->device;
    const struct task *task = (const struct task *)to;
    if (task->list)
        *task->list = *d->h_list;
    if (task->gradient)
        memcpy(task->gradient, d->h_gradient, 2 * d->n * sizeof(float));
    if (task->ends)
        memcpy(task->ends, d->h_ends, task->n * sizeof(*task->ends));
    if (task->fields)
        memcpy(task->fields, d->h_fields, task->n * d->most * sizeof(float));
    if (task->what == MAP) {
        memcpy(task->score, d->h_picture, d->n * sizeof(float));
        memcpy(task->best, d->h_valid, d->n);
    }
}

static void unmake(void *argument)
{
    delete (struct context *)argument;
}

/* The device with its tables, and every kernel once: a flat picture, in which one snake starts. */
static enum oct_err make_device(struct oct_cells_device *d,
                                const struct oct_cells_engine_setup *setup, struct oct_error *err)
{
    enum oct_err e = oct_cells_make(d, setup, err);
    if (e)
        return e;
    memset(d->h_picture, 0, d->n * sizeof(float));
    d->h_snakes[0] = {};
    d->h_snakes[0].window = {0, 1, 0, 1};
    e = begin_look(d, true, err);
    return e ? e : oct_cells_queue_follow(d, 1, err);
}

static enum oct_err make(void **out, struct oct_cuda_stream *stream, const void *setup,
                         struct oct_error *err)
{
    *out = NULL;
    struct context *c = new (std::nothrow) context();
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for an engine");
    c->device.stream = stream;
    const auto device = [&] {
        return make_device(&c->device, (const struct oct_cells_engine_setup *)setup, err);
    };
    enum oct_err e = without_throw(device, err);
    oct_cuda_stream_drain(stream);
    if (e)
        unmake(c);
    else
        *out = c;
    return e;
}

static const struct oct_cuda_task_ops task_ops = {"cells", make, take, begin, give, unmake};

/* ---- life ---- */

static void engine_destroy(struct oct_cells_engine *c)
{
    if (!c)
        return;
    oct_cuda_tasks_destroy(c->tasks);
    oct_cells_mask_finish(&c->mask);
    delete c;
}

static enum oct_err engine_create(struct oct_cells_engine **out,
                                  const struct oct_cells_engine_setup *setup, struct oct_error *err)
{
    *out = NULL;
    enum oct_err e = oct_cells_params_check(&setup->params, setup->height, setup->width, err);
    if (e)
        return e;
    const size_t n = (size_t)setup->height * setup->width;
    struct oct_cells_engine *c = new (std::nothrow) oct_cells_engine();
    const auto init = [&] {
        if (!c ||
            !oct_cells_mask_init(&c->mask, setup->height, setup->width, 2 * setup->params.radius))
            throw std::bad_alloc();
        c->setup = *setup;
        c->most = std::min((size_t)oct_cell_window_most(&setup->params), n);
        c->gradient.resize(setup->params.refine == OCT_CELLS_REFINE_SPLINE ? 2 * n : 0);
        return oct_cuda_tasks_create(&c->tasks, &task_ops, setup->gpus, setup->deadline_ms, setup,
                                     sizeof(*setup), err);
    };
    e = without_throw(init, err);
    if (e)
        engine_destroy(c);
    else
        *out = c;
    return e;
}

/* ---- look ---- */

static enum oct_err send_picture(struct oct_cells_engine *c, const struct oct_picture *picture,
                                 bool searches, struct oct_error *err)
{
    struct task task = {};
    oct_cells_mask_set(&c->mask, picture);
    task.what = LOOK;
    task.picture = picture;
    task.mask = &c->mask;
    task.searches = searches;
    task.list = searches ? &c->list : NULL;
    task.gradient = searches && !c->gradient.empty() ? c->gradient.data() : NULL;
    return oct_cuda_tasks_do(c->tasks, &task, err);
}

/* All peaks, in raster order: those that did not come with the picture too. */
static enum oct_err fetch_peaks(struct oct_cells_engine *c, struct oct_error *err)
{
    const uint32_t n = c->list.facts.n_peaks;
    struct task task = {};
    c->cells.clear();
    task.what = MORE;
    task.list = &c->list;
    for (;;) {
        const size_t n_left = n - c->cells.size();
        c->cells.insert(c->cells.end(), c->list.found,
                        c->list.found + std::min(n_left, (size_t)OCT_CELLS_ROOM));
        if (c->cells.size() == n)
            break;
        task.first = (uint32_t)c->cells.size();
        enum oct_err e = oct_cuda_tasks_do(c->tasks, &task, err);
        if (e)
            return e;
    }
    std::sort(c->cells.begin(), c->cells.end(),
              [](const struct oct_cell &a, const struct oct_cell &b) {
                  return a.peak_y != b.peak_y ? a.peak_y < b.peak_y : a.peak_x < b.peak_x;
              });
    return OCT_OK;
}

/* Of the peaks those that stay, refined. */
static void find_cells(struct oct_cells_engine *c)
{
    const struct oct_cells_params *params = &c->setup.params;
    const float *gx = c->gradient.data();
    const struct oct_cells_slopes slopes = {gx, gx + c->gradient.size() / 2, c->setup.width,
                                            (int32_t)c->setup.height, (int32_t)c->setup.width};
    size_t n = 0;
    for (const struct oct_cell &cell : c->cells)
        if (!oct_cells_is_merged(params, c->cells.data(), n, cell.peak_x, cell.peak_y))
            c->cells[n++] = cell;
    c->cells.resize(n);
    for (struct oct_cell &cell : c->cells) {
        struct oct_cells_place place;
        if (c->gradient.empty())
            break;
        oct_cells_refine_spline(&slopes, params->radius, c->list.facts.scale, cell.score > 0,
                                cell.peak_x, cell.peak_y, &place);
        cell.x = place.x;
        cell.y = place.y;
        cell.radius = place.radius;
    }
    const auto is_near = [&](const struct oct_cell &cell) {
        return oct_cells_mask_is_near(&c->mask, cell.x, cell.y);
    };
    c->cells.erase(std::remove_if(c->cells.begin(), c->cells.end(), is_near), c->cells.end());
}

static enum oct_err search(struct oct_cells_engine *c, const struct oct_picture *picture,
                           struct oct_error *err)
{
    enum oct_err e = send_picture(c, picture, true, err);
    if (!e)
        e = fetch_peaks(c, err);
    if (!e)
        find_cells(c);
    return e;
}

static enum oct_err engine_look(struct oct_cells_engine *c, const struct oct_picture *picture,
                                struct oct_cell *cells, unsigned most, unsigned *n,
                                struct oct_error *err)
{
    *n = 0;
    c->has_map = c->has_picture = false;
    if (picture->height != c->setup.height || picture->width != c->setup.width)
        return oct_fail(err, OCT_E_ARG, "cells: a picture of %u x %u px: must be %u x %u px",
                        picture->width, picture->height, c->setup.width, c->setup.height);
    const auto look = [&] {
        return most > 0 ? search(c, picture, err) : send_picture(c, picture, false, err);
    };
    enum oct_err e = without_throw(look, err);
    c->has_picture = !e;
    c->has_map = !e && most > 0;
    if (!c->has_map)
        return e;
    *n = (unsigned)c->cells.size();
    std::copy_n(c->cells.begin(), std::min(*n, most), cells);
    return OCT_OK;
}

/* ---- follow ---- */

static enum oct_err follow_all(struct oct_cells_engine *c, const struct oct_cell_start *starts,
                               unsigned n, struct oct_cell_end *ends, struct oct_error *err)
{
    const bool keeps = c->setup.keeps_fields;
    const unsigned most = oct_cells_most_starts(c->most);
    c->fields.resize(keeps ? n * c->most : 0);
    c->snakes.clear();
    for (unsigned i = 0; i < n; i++)
        c->snakes.push_back(oct_cells_snake_of(&c->setup, &starts[i]));
    for (unsigned i = 0; i < n; i += most) {
        struct task task = {};
        task.what = FOLLOW;
        task.snakes = c->snakes.data() + i;
        task.n = std::min(n - i, most);
        task.ends = ends + i;
        task.fields = keeps ? c->fields.data() + i * c->most : NULL;
        enum oct_err e = oct_cuda_tasks_do(c->tasks, &task, err);
        if (e)
            return e;
    }
    for (unsigned i = 0; i < n; i++)
        if (oct_cells_mask_is_near(&c->mask, ends[i].cell.x, ends[i].cell.y))
            ends[i].cell.score = 0;
    return OCT_OK;
}

static enum oct_err engine_follow(struct oct_cells_engine *c, const struct oct_cell_start *starts,
                                  unsigned n, struct oct_cell_end *ends, struct oct_error *err)
{
    if (!c->has_picture)
        return oct_fail(err, OCT_E_STATE, "cells: there is no picture to follow cells in");
    const auto follow = [&] { return follow_all(c, starts, n, ends, err); };
    enum oct_err e = without_throw(follow, err);
    if (e)
        c->snakes.clear();
    return e;
}

/* ---- what is said of it ---- */

static enum oct_err engine_map(struct oct_cells_engine *c, float *score, uint8_t *best,
                               struct oct_error *err)
{
    struct task task = {};
    if (!c->has_map)
        return oct_fail(err, OCT_E_STATE, "cells: the last picture was not searched");
    task.what = MAP;
    task.score = score;
    task.best = best;
    return oct_cuda_tasks_do(c->tasks, &task, err);
}

static double engine_highest(const struct oct_cells_engine *c)
{
    float highest;
    memcpy(&highest, &c->list.facts.highest, sizeof(highest));
    return (double)highest;
}

static enum oct_err engine_field(struct oct_cells_engine *c, unsigned i,
                                 struct oct_cell_window *window, float *field,
                                 struct oct_error *err)
{
    if (!c->setup.keeps_fields || i >= c->snakes.size())
        return oct_fail(err, OCT_E_STATE, "cells: field %u was not kept", i);
    *window = c->snakes[i].window;
    memcpy(field, c->fields.data() + i * c->most, oct_cell_window_pixels(window) * sizeof(*field));
    return OCT_OK;
}

extern "C" const struct oct_cells_engine_ops oct_cells_cuda_engine = {
    "cuda",         engine_create, engine_look, engine_follow, engine_map,
    engine_highest, engine_field,  NULL,        engine_destroy};
