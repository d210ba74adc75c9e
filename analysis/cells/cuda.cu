/* The CUDA engine: a worker (kernels/device/cuda_task.h) whose tasks are a picture, more of its
 * peaks, cells to follow, or its map. What needs the whole list of peaks, and masks, is computed on
 * the host: merging, and what is near masked pixels. So are B-splines. */
#include "analysis/cells/cuda_cells.cuh"
#include "kernels/device/cuda_task.h"
extern "C" {
#include "analysis/cells/prepare.h"
}

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

enum what { LOOK, MORE, FOLLOW, MAP };

struct oct_cells_engine {
    struct oct_cuda_tasks *tasks;
    struct oct_cells_engine_setup setup;
    struct oct_cells_mask mask;
    bool has_picture, has_map;
    double highest, scale;
    std::vector<float> gradient;                 /* [2][height][width], with REFINE_SPLINE */
    std::vector<struct oct_cells_d_found> peaks; /* before it is known which stay */
    std::vector<struct oct_cell> cells;
    std::vector<struct oct_cells_snake_start> starts;
    std::vector<struct oct_cells_snake_end> ends;
    /* Of the last follow. */
    std::vector<struct oct_cell_window> windows;
    std::vector<float> fields;
    size_t most;
};

struct task {
    enum what what;
    /* LOOK */
    const struct oct_picture *picture;
    struct oct_cells_mask *mask; /* NULL: no pixel is masked */
    bool is_empty;               /* no pixel is valid */
    bool searches;
    float *gradient; /* NULL: it is not wanted */
    /* LOOK, MORE */
    uint32_t first;              /* MORE */
    struct oct_cells_list *list; /* of the result */
    /* FOLLOW */
    const struct oct_cells_snake_start *starts;
    unsigned n;
    struct oct_cells_snake_end *ends;
    float *fields; /* [n][most], or NULL */
    /* MAP */
    float *score;
    uint8_t *best;
};

struct context {
    struct oct_cells_device device;
    enum what what;
    bool searches;
    uint32_t first;
    unsigned n;
    float *h_score;
    uint8_t *h_best;
};

/* ---- a task ---- */

static void take_picture(struct oct_cells_device *d, const struct task *task)
{
    d->is_masked = task->mask != NULL;
    d->has_map = task->searches;
    if (task->is_empty) {
        memset(d->h_picture, 0, d->n * sizeof(float));
        return;
    }
    memcpy(d->h_picture, task->picture->pixels, d->n * sizeof(float));
    if (!task->mask)
        return;
    oct_cells_mask_fill(task->mask, d->h_picture, d->shape.width);
    memcpy(d->h_valid, task->mask->valid, d->n);
    memcpy(d->h_near, task->mask->near, d->n);
}

static void take(void *argument, const void *from)
{
    struct context *c = (struct context *)argument;
    const struct task *task = (const struct task *)from;
    c->what = task->what;
    c->searches = task->searches;
    c->first = task->first;
    c->n = task->n;
    if (task->what == LOOK)
        take_picture(&c->device, task);
    else if (task->what == FOLLOW)
        memcpy(c->device.h_starts, task->starts, task->n * sizeof(*task->starts));
}

static enum oct_err begin_look(struct context *c, struct oct_error *err)
{
    struct oct_cells_device *d = &c->device;
    enum oct_err e = oct_cells_upload(d, err);
    if (e)
        return e;
    oct_cells_queue_prepare(d);
    if (!c->searches)
        return OCT_OK;
    oct_cells_queue_scores(d);
    oct_cells_queue_peaks(d);
    e = oct_cells_queue_refine(d, 0, err);
    if (!e && d->h_gradient)
        e = oct_cuda_stream_download(d->stream, d->h_gradient, d->planes.gx,
                                     2 * d->n * sizeof(float), err);
    return e;
}

static enum oct_err begin(void *argument, struct oct_error *err)
{
    struct context *c = (struct context *)argument;
    struct oct_cells_device *d = &c->device;
    enum oct_err e = OCT_OK;
    switch (c->what) {
    case LOOK:
        return begin_look(c, err);
    case MORE:
        return oct_cells_queue_refine(d, c->first, err);
    case FOLLOW:
        return oct_cells_queue_follow(d, c->n, err);
    default:
        e = oct_cuda_stream_download(d->stream, c->h_score, d->planes.score, d->n * sizeof(float),
                                     err);
        return e ? e : oct_cuda_stream_download(d->stream, c->h_best, d->planes.best, d->n, err);
    }
}

static void give_found(const struct oct_cells_device *d, const struct task *task)
{
    const uint32_t n_peaks = d->h_list->facts.n_peaks;
    const uint32_t n = n_peaks > task->first ? n_peaks - task->first : 0;
    task->list->facts = d->h_list->facts;
    memcpy(task->list->found, d->h_list->found,
           (n < OCT_CELLS_ROOM ? n : OCT_CELLS_ROOM) * sizeof(*task->list->found));
    if (task->gradient)
        memcpy(task->gradient, d->h_gradient, 2 * d->n * sizeof(float));
}

static void give(void *argument, void *to)
{
    const struct context *c = (const struct context *)argument;
    const struct oct_cells_device *d = &c->device;
    const struct task *task = (const struct task *)to;
    if (task->what == MORE || (task->what == LOOK && task->searches))
        give_found(d, task);
    if (task->what == FOLLOW) {
        memcpy(task->ends, d->h_ends, task->n * sizeof(*task->ends));
        if (task->fields)
            memcpy(task->fields, d->h_fields, task->n * d->most * sizeof(float));
    }
    if (task->what == MAP) {
        memcpy(task->score, c->h_score, d->n * sizeof(float));
        memcpy(task->best, c->h_best, d->n);
    }
}

static void unmake(void *argument)
{
    delete (struct context *)argument;
}

/* Every kernel once: a flat picture, with and without a map of which one snake is sought. */
static enum oct_err rehearse(struct context *c, struct oct_error *err)
{
    struct oct_cells_device *d = &c->device;
    struct oct_cells_snake_start *start = d->h_starts;
    memset(d->h_picture, 0, d->n * sizeof(float));
    memset(start, 0, sizeof(*start));
    start->rows = start->columns = 2;
    c->searches = d->has_map = true;
    enum oct_err e = begin_look(c, err);
    d->has_map = false;
    return e ? e : oct_cells_queue_follow(d, 1, err);
}

static enum oct_err make_device(struct context *c, const struct oct_cells_engine_setup *setup,
                                struct oct_error *err)
{
    struct oct_cells_device *d = &c->device;
    try {
        enum oct_err e = oct_cells_make(d, setup, err);
        e = e ? e : oct_stream_pin(d->stream, &c->h_score, d->n, err);
        e = e ? e : oct_stream_pin(d->stream, &c->h_best, d->n, err);
        return e ? e : rehearse(c, err);
    } catch (const std::bad_alloc &) {
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for tables");
    }
}

static enum oct_err make(void **out, struct oct_cuda_stream *stream, const void *setup,
                         struct oct_error *err)
{
    *out = NULL;
    struct context *c = new (std::nothrow) context();
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for an engine");
    c->device.stream = stream;
    enum oct_err e = make_device(c, (const struct oct_cells_engine_setup *)setup, err);
    oct_cuda_stream_drain(stream);
    if (e) {
        unmake(c);
        return e;
    }
    *out = c;
    return OCT_OK;
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

static enum oct_err init(struct oct_cells_engine *c, struct oct_error *err)
{
    const struct oct_cells_engine_setup *s = &c->setup;
    const size_t n = (size_t)s->height * s->width;
    oct_cells_mask_init(&c->mask, s->height, s->width, 2 * s->params.radius);
    c->most = std::min((size_t)oct_cell_window_most(&s->params), n);
    if (s->params.refine == OCT_CELLS_REFINE_SPLINE)
        c->gradient.resize(2 * n);
    return oct_cuda_tasks_create(&c->tasks, &task_ops, s->gpus, s->deadline_ms, s, sizeof(*s), err);
}

static enum oct_err no_memory(struct oct_error *err)
{
    return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for an engine");
}

static enum oct_err engine_create(struct oct_cells_engine **out,
                                  const struct oct_cells_engine_setup *setup, struct oct_error *err)
{
    *out = NULL;
    enum oct_err e = oct_cells_params_check(&setup->params, setup->height, setup->width, err);
    if (e)
        return e;
    struct oct_cells_engine *c = new (std::nothrow) oct_cells_engine();
    if (!c)
        return no_memory(err);
    c->setup = *setup;
    try {
        e = init(c, err);
    } catch (const std::bad_alloc &) {
        e = no_memory(err);
    }
    if (e)
        engine_destroy(c);
    else
        *out = c;
    return e;
}

/* ---- look ---- */

/* Whether each pixel is valid and finite; *any: one is at least. */
static bool is_whole(const struct oct_picture *picture, bool *any)
{
    const size_t n = (size_t)picture->height * picture->width;
    int32_t most = 0;
    for (size_t i = 0; i < n; i++) { /* as integers bits without sign order floats */
        int32_t bits;
        memcpy(&bits, &picture->pixels[i], sizeof(bits));
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    *any = true;
    if (most < 0x7f800000 && (!picture->valid || !memchr(picture->valid, 0, n)))
        return true;
    *any = false;
    for (size_t i = 0; i < n && !*any; i++)
        *any = (!picture->valid || picture->valid[i]) && std::isfinite(picture->pixels[i]);
    return false;
}

static void keep(struct oct_cells_engine *c, const struct oct_cells_list *list, uint32_t first)
{
    const uint32_t n = std::min(list->facts.n_peaks - first, (uint32_t)OCT_CELLS_ROOM);
    c->peaks.insert(c->peaks.end(), list->found, list->found + n);
}

static enum oct_err send_picture(struct oct_cells_engine *c, const struct oct_picture *picture,
                                 struct oct_cells_list *list, bool searches, struct oct_error *err)
{
    struct task task = {};
    bool any;
    c->mask.any = false;
    if (!is_whole(picture, &any) && any) {
        enum oct_err e = oct_cells_mask_set(&c->mask, picture, err);
        if (e)
            return e;
    }
    task.what = LOOK;
    task.picture = picture;
    task.mask = c->mask.any ? &c->mask : NULL;
    task.is_empty = !any;
    task.searches = searches;
    task.list = list;
    task.gradient = searches && !c->gradient.empty() ? c->gradient.data() : NULL;
    return oct_cuda_tasks_do(c->tasks, &task, err);
}

/* All peaks: those that did not come with the picture too. */
static enum oct_err fetch_peaks(struct oct_cells_engine *c, struct oct_cells_list *list,
                                struct oct_error *err)
{
    struct task task = {};
    c->peaks.clear();
    keep(c, list, 0);
    task.what = MORE;
    task.list = list;
    while (c->peaks.size() < list->facts.n_peaks) {
        task.first = (uint32_t)c->peaks.size();
        enum oct_err e = oct_cuda_tasks_do(c->tasks, &task, err);
        if (e)
            return e;
        keep(c, list, task.first);
    }
    return OCT_OK;
}

/* Whether a peak that stays lies within 0.6 R; n: those that stay are the first. */
static bool is_merged(const struct oct_cells_engine *c, size_t n, uint32_t pixel)
{
    const uint32_t width = c->setup.width;
    const double merged = OCT_CELLS_MERGED * c->setup.params.radius;
    const double x = pixel % width, y = pixel / width;
    for (size_t i = n; i-- > 0;) {
        const uint32_t other = c->peaks[i].pixel;
        const double dx = x - other % width, dy = y - other / width;
        if (dy > merged)
            return false;
        if (dx * dx + dy * dy <= merged * merged)
            return true;
    }
    return false;
}

static void merge(struct oct_cells_engine *c)
{
    size_t n = 0;
    for (const struct oct_cells_d_found &peak : c->peaks)
        if (!is_merged(c, n, peak.pixel))
            c->peaks[n++] = peak;
    c->peaks.resize(n);
}

static void find_cells(struct oct_cells_engine *c)
{
    const uint32_t width = c->setup.width;
    const size_t n = (size_t)c->setup.height * width;
    const bool has_gradient = !c->gradient.empty();
    const struct oct_cells_slopes slopes = {c->gradient.data(),
                                            c->gradient.data() + (has_gradient ? n : 0), width,
                                            (int32_t)c->setup.height, (int32_t)width};
    if (c->setup.params.merges)
        merge(c);
    c->cells.clear();
    for (const struct oct_cells_d_found &peak : c->peaks) {
        const int32_t x = (int32_t)(peak.pixel % width), y = (int32_t)(peak.pixel / width);
        struct oct_cells_place place = peak.place;
        if (has_gradient)
            oct_cells_refine_spline(&slopes, c->setup.params.radius, c->scale, peak.score > 0, x, y,
                                    &place);
        if (!oct_cells_mask_is_near(&c->mask, place.x, place.y))
            c->cells.push_back({place.x, place.y, place.radius, peak.score, x, y});
    }
}

static enum oct_err search(struct oct_cells_engine *c, const struct oct_picture *picture,
                           struct oct_error *err)
{
    struct oct_cells_list list;
    enum oct_err e = send_picture(c, picture, &list, true, err);
    if (!e)
        e = fetch_peaks(c, &list, err);
    if (e)
        return e;
    float highest;
    memcpy(&highest, &list.facts.highest, sizeof(highest));
    c->highest = (double)highest;
    c->scale = list.facts.scale;
    find_cells(c);
    return OCT_OK;
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
    enum oct_err e = OCT_OK;
    try {
        e = most > 0 ? search(c, picture, err) : send_picture(c, picture, NULL, false, err);
    } catch (const std::bad_alloc &) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for peaks");
    }
    c->has_picture = !e;
    c->has_map = !e && most > 0;
    if (!c->has_map)
        return e;
    *n = (unsigned)c->cells.size();
    std::copy_n(c->cells.begin(), std::min(*n, most), cells);
    return OCT_OK;
}

/* ---- follow ---- */

static void set_end(const struct oct_cells_engine *c, const struct oct_cell_start *start,
                    const struct oct_cells_snake_end *from, bool defined, struct oct_cell_end *end)
{
    *end = {};
    end->defined = defined;
    end->left = defined && from->left;
    end->x = defined ? from->x : start->x;
    end->y = defined ? from->y : start->y;
    memcpy(end->radii, defined ? from->radii : start->radii, sizeof(end->radii));
    double radius = 0;
    for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
        radius += end->radii[i] / OCT_CELLS_SNAXELS;
    end->cell = {end->x, end->y, radius, 0, (int32_t)lround(end->x), (int32_t)lround(end->y)};
    if (!defined)
        return;
    end->n_field = from->n_field;
    end->n_snake = from->n_snake;
    end->cell.x = from->place.x;
    end->cell.y = from->place.y;
    end->cell.radius = from->place.radius;
    if (from->score != 0) {
        end->cell.score = from->score;
        end->cell.peak_x = from->peak_x;
        end->cell.peak_y = from->peak_y;
    }
    if (oct_cells_mask_is_near(&c->mask, end->cell.x, end->cell.y))
        end->cell.score = 0;
}

static enum oct_err follow_all(struct oct_cells_engine *c, const struct oct_cell_start *starts,
                               unsigned n, struct oct_cell_end *ends, struct oct_error *err)
{
    const bool keeps = c->setup.keeps_fields;
    const unsigned most = oct_cells_most_starts(c->most);
    c->windows.clear();
    c->starts.resize(n);
    c->ends.resize(n);
    c->fields.resize(keeps ? n * c->most : 0);
    c->windows.resize(n);
    for (unsigned i = 0; i < n; i++)
        c->starts[i] = oct_cells_start_of(&c->setup, &starts[i], &c->windows[i]);
    for (unsigned i = 0; i < n; i += most) {
        struct task task = {};
        task.what = FOLLOW;
        task.starts = c->starts.data() + i;
        task.n = std::min(n - i, most);
        task.ends = c->ends.data() + i;
        task.fields = keeps ? c->fields.data() + i * c->most : NULL;
        enum oct_err e = oct_cuda_tasks_do(c->tasks, &task, err);
        if (e)
            return e;
    }
    for (unsigned i = 0; i < n; i++)
        set_end(c, &starts[i], &c->ends[i], c->starts[i].columns > 0, &ends[i]);
    return OCT_OK;
}

static enum oct_err engine_follow(struct oct_cells_engine *c, const struct oct_cell_start *starts,
                                  unsigned n, struct oct_cell_end *ends, struct oct_error *err)
{
    if (!c->has_picture)
        return oct_fail(err, OCT_E_STATE, "cells: there is no picture to follow cells in");
    enum oct_err e;
    try {
        e = follow_all(c, starts, n, ends, err);
    } catch (const std::bad_alloc &) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for %u snakes", n);
    }
    if (e)
        c->windows.clear();
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
    return c->highest;
}

static enum oct_err engine_field(struct oct_cells_engine *c, unsigned i,
                                 struct oct_cell_window *window, float *field,
                                 struct oct_error *err)
{
    if (!c->setup.keeps_fields || i >= c->windows.size())
        return oct_fail(err, OCT_E_STATE, "cells: field %u was not kept", i);
    const struct oct_cell_window &w = c->windows[i];
    *window = w;
    memcpy(field, c->fields.data() + i * c->most,
           (size_t)(w.u2 - w.u1 + 1) * (size_t)(w.v2 - w.v1 + 1) * sizeof(*field));
    return OCT_OK;
}

extern "C" const struct oct_cells_engine_ops oct_cells_cuda_engine = {
    "cuda",         engine_create, engine_look, engine_follow, engine_map,
    engine_highest, engine_field,  NULL,        engine_destroy};
