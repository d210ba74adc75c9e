/* The CUDA engine of the whole-pixel search: its calls, which hand tasks to a worker
 * on the device. Whole pictures go through the transforms of
 * analysis/correlate/cuda_correlation.cuh, windows through direct sums (cuda_windows.cuh). */
#include "analysis/align/cuda_windows.cuh"
#include "kernels/device/cuda_task.h"

#include <cstdlib>

/* ---- on the device ----
 *
 * What the worker (kernels/device/cuda_task.h) keeps there, how that is made, and its tasks. Host
 * memory named h_ is pinned, and all memory is the stream's. */

enum oct_match_what { OCT_MATCH_REFERENCE, OCT_MATCH_LOAD, OCT_MATCH_FIND, OCT_MATCH_LOOK };

struct oct_match_task {
    enum oct_match_what what;
    const struct oct_picture *pictures; /* [n] reference, load */
    const struct oct_search *searches;  /* [n] look */
    unsigned n;
    struct oct_match *matches; /* [n] find, look */
    uint64_t *n_valid;         /* of the reference */
};

/* The most that a launch takes. */
struct oct_match_room {
    unsigned n_searches, n_tiles; /* no tiles: no windows are asked for */
    size_t n_scores;
};

struct oct_match_setup {
    struct oct_correlator_setup correlator;
    struct oct_match_room room;
    uint32_t max_dy, max_dx; /* sought, of the correlator's */
};

struct oct_match_context {
    struct oct_correlation correlation;
    struct oct_match_room room;
    enum oct_match_what what; /* of the task */
    unsigned n, n_tiles;
    bool refused; /* the task's reference */
    struct oct_search *h_searches, *d_searches, *d_whole;
    struct oct_search_tile *h_tiles, *d_tiles;
    struct oct_match *h_matches, *d_matches;
    float *d_scores;
    float *h_samples, *d_samples; /* [n pictures][OCT_MATCH_SAMPLES] */
};

/* ---- tasks ---- */

/* A picture that is not usable is zero on the device, and matches nowhere. */
static void oct_match_take_pictures(struct oct_match_context *c, const struct oct_match_task *task)
{
    for (unsigned i = 0; i < task->n; i++) {
        const struct oct_normal *normal =
            oct_planes_take(&c->correlation.planes, i, &task->pictures[i], false);
        if (task->what == OCT_MATCH_LOAD) {
            c->correlation.h_factors[i] = 0;
        } else {
            c->refused = !normal->usable;
            *task->n_valid = normal->n_valid;
        }
    }
}

static void oct_match_take_searches(struct oct_match_context *c, const struct oct_match_task *task)
{
    c->n_tiles = 0;
    memcpy(c->h_searches, task->searches, task->n * sizeof(*task->searches));
    for (uint32_t i = 0; i < task->n; i++)
        c->n_tiles += oct_window_list_tiles(c->h_tiles + c->n_tiles, i, task->searches[i]);
}

static void oct_match_take(void *argument, const void *from)
{
    struct oct_match_context *c = (struct oct_match_context *)argument;
    const struct oct_match_task *task = (const struct oct_match_task *)from;
    c->what = task->what;
    c->n = task->n;
    c->refused = false;
    if (task->what == OCT_MATCH_LOOK)
        oct_match_take_searches(c, task);
    else if (task->what != OCT_MATCH_FIND)
        oct_match_take_pictures(c, task);
}

static enum oct_err oct_match_queue_best(struct oct_match_context *c,
                                         const struct oct_search *d_searches, const float *d_scores,
                                         struct oct_error *err)
{
    struct oct_cuda_stream *stream = c->correlation.stream;
    oct_best_queue(stream, d_searches, d_scores, c->n, c->d_matches);
    return oct_cuda_stream_download(stream, c->h_matches, c->d_matches,
                                    c->n * sizeof(*c->h_matches), err);
}

/* The matches of whole pictures, and samples of their scores. */
static enum oct_err oct_match_begin_find(struct oct_match_context *c, struct oct_error *err)
{
    const struct oct_correlation *of = &c->correlation;
    const size_t bytes = (size_t)c->n * OCT_MATCH_SAMPLES * sizeof(float);
    enum oct_err e = oct_correlation_queue(&c->correlation, false, err);
    if (e)
        return e;
    OCT_LAUNCH((oct_best_sample_kernel), dim3(c->n), dim3(OCT_BEST_THREADS), 0, of->stream->stream,
               c->d_whole, of->d_c2d, of->shape.height, of->shape.width, c->d_samples);
    e = oct_cuda_stream_download(of->stream, c->h_samples, c->d_samples, bytes, err);
    return e ? e : oct_match_queue_best(c, c->d_whole, of->d_c2d, err);
}

static enum oct_err oct_match_begin_look(struct oct_match_context *c, struct oct_error *err)
{
    struct oct_cuda_stream *stream = c->correlation.stream;
    enum oct_err e = oct_cuda_stream_upload(stream, c->d_searches, c->h_searches,
                                            c->n * sizeof(*c->h_searches), err);
    if (!e)
        e = oct_cuda_stream_upload(stream, c->d_tiles, c->h_tiles, c->n_tiles * sizeof(*c->h_tiles),
                                   err);
    if (e)
        return e;
    oct_windows_queue(c->correlation, c->d_searches, c->d_tiles, c->n_tiles, c->d_scores);
    return oct_match_queue_best(c, c->d_searches, c->d_scores, err);
}

static enum oct_err oct_match_begin(void *argument, struct oct_error *err)
{
    struct oct_match_context *c = (struct oct_match_context *)argument;
    struct oct_correlation *of = &c->correlation;
    enum oct_err e = OCT_OK;
    if (c->refused)
        return oct_fail(err, OCT_E_ARG, "the reference has no contrast");
    switch (c->what) {
    case OCT_MATCH_REFERENCE:
        e = oct_correlation_upload_g(of, err);
        return e ? e : oct_correlation_queue_g(of, err);
    case OCT_MATCH_LOAD:
        e = oct_correlation_upload(of, c->n, err);
        if (!e)
            oct_correlation_queue_boxes(of, c->n);
        return e;
    case OCT_MATCH_FIND:
        return oct_match_begin_find(c, err);
    default:
        return oct_match_begin_look(c, err);
    }
}

static void oct_match_give(void *argument, void *to)
{
    const struct oct_match_context *c = (const struct oct_match_context *)argument;
    struct oct_match_task *task = (struct oct_match_task *)to;
    if (!task->matches)
        return;
    memcpy(task->matches, c->h_matches, task->n * sizeof(*task->matches));
    for (unsigned i = 0; i < task->n && c->what == OCT_MATCH_FIND; i++) {
        struct oct_match *m = &task->matches[i];
        const struct oct_correlation_shape &s = c->correlation.shape;
        if (m->score == m->score)
            m->significance = oct_match_significance(
                c->h_samples + (size_t)i * OCT_MATCH_SAMPLES,
                oct_match_value(m->score, oct_match_part(m->dy, m->dx, s.height, s.width)));
    }
}

/* ---- life ---- */

/* Whole pictures as searches: they stay. */
static enum oct_err oct_match_put_whole(struct oct_match_context *c,
                                        const struct oct_match_setup *setup, struct oct_error *err)
{
    const struct oct_correlation_shape &s = c->correlation.shape;
    struct oct_cuda_stream *stream = c->correlation.stream;
    for (unsigned i = 0; i < s.n; i++)
        c->h_searches[i] = {i,
                            0,
                            s.height,
                            -(int32_t)s.max_dy,
                            -(int32_t)s.max_dx,
                            2 * s.max_dy + 1,
                            2 * s.max_dx + 1,
                            0,
                            i * oct_correlation_shifts(s),
                            s.max_dy - setup->max_dy,
                            s.max_dx - setup->max_dx};
    enum oct_err e = oct_cuda_stream_upload(stream, c->d_whole, c->h_searches,
                                            s.n * sizeof(*c->h_searches), err);
    oct_cuda_stream_drain(stream); /* the memory is used again */
    return e;
}

static enum oct_err oct_match_alloc(struct oct_match_context *c, struct oct_error *err)
{
    const struct oct_match_room *room = &c->room;
    struct oct_cuda_stream *on = c->correlation.stream;
    enum oct_err e = oct_stream_pin(on, &c->h_searches, room->n_searches, err);
    e = e ? e : oct_stream_pin(on, &c->h_matches, room->n_searches, err);
    e = e ? e : oct_stream_alloc(on, &c->d_searches, room->n_searches, err);
    e = e ? e : oct_stream_alloc(on, &c->d_matches, room->n_searches, err);
    e = e ? e : oct_stream_alloc(on, &c->d_whole, c->correlation.shape.n, err);
    const size_t n_samples = (size_t)c->correlation.shape.n * OCT_MATCH_SAMPLES;
    e = e ? e : oct_stream_pin(on, &c->h_samples, n_samples, err);
    e = e ? e : oct_stream_alloc(on, &c->d_samples, n_samples, err);
    /* Padding comes back too, and members that FIND does not set. */
    e = e ? e
          : oct_cuda_stream_clear(on, c->d_matches, room->n_searches * sizeof(*c->d_matches), err);
    if (room->n_tiles == 0)
        return e;
    e = e ? e : oct_stream_pin(on, &c->h_tiles, room->n_tiles, err);
    e = e ? e : oct_stream_alloc(on, &c->d_tiles, room->n_tiles, err);
    return e ? e : oct_stream_alloc(on, &c->d_scores, room->n_scores, err);
}

/* Every kernel once, with pictures that are all zero. */
static enum oct_err oct_match_rehearse(struct oct_match_context *c, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    oct_correlation_blank(&c->correlation);
    for (int what = OCT_MATCH_REFERENCE; what <= OCT_MATCH_FIND && !e; what++) {
        c->what = (enum oct_match_what)what;
        c->n = 1;
        e = oct_match_begin(c, err);
    }
    if (e || c->room.n_tiles == 0)
        return e;
    c->h_searches[0] = {0, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0};
    c->h_tiles[0] = {0, 0, 0};
    c->n_tiles = 1;
    return oct_match_begin_look(c, err);
}

static enum oct_err oct_match_complete(struct oct_match_context *c,
                                       const struct oct_match_setup *setup, struct oct_error *err)
{
    c->room = setup->room;
    enum oct_err e = oct_match_alloc(c, err);
    e = e ? e : oct_match_put_whole(c, setup, err);
    return e ? e : oct_match_rehearse(c, err);
}

static enum oct_err oct_match_make(void **out, struct oct_cuda_stream *stream, const void *from,
                                   struct oct_error *err)
{
    const struct oct_match_setup *setup = (const struct oct_match_setup *)from;
    return oct_correlation_make_context(out, stream, setup->correlator, setup, oct_match_complete,
                                        err);
}

static const struct oct_cuda_task_ops oct_match_task_ops = {
    "registration",  oct_match_make, oct_match_take,
    oct_match_begin, oct_match_give, oct_correlation_unmake<struct oct_match_context>};

/* ---- the engine ---- */

/* What a launch takes at most, unless a single window is more. */
#define MOST_WINDOWS 4096u
#define MOST_SCORES ((size_t)8 << 20)
#define MOST_TILES 65536u
#define MOST_WORK 1e12 /* products: some tenths of a second */

struct oct_matcher {
    struct oct_cuda_tasks *tasks;
    struct oct_matcher_setup setup;
    struct oct_match_room room;
    unsigned n;                  /* pictures loaded */
    uint64_t g_valid;            /* pixels of the reference */
    uint64_t *valid;             /* [n_batch][height + 1] valid pixels in the rows above */
    struct oct_search *searches; /* [room.n_searches] */
};

static void matcher_destroy(struct oct_matcher *m)
{
    if (!m)
        return;
    oct_cuda_tasks_destroy(m->tasks);
    free(m->valid);
    free(m->searches);
    free(m);
}

static struct oct_match_room room_of(const struct oct_matcher_setup *s)
{
    const uint32_t side = 2 * s->max_radius + 1;
    struct oct_match_room room = {s->n_batch, 0, 0};
    if (s->max_rows == 0)
        return room;
    const size_t scores = (size_t)side * side;
    const unsigned tiles = (unsigned)oct_window_n_tiles(side, side);
    room.n_searches = s->n_batch > MOST_WINDOWS ? s->n_batch : MOST_WINDOWS;
    room.n_scores = scores > MOST_SCORES ? scores : MOST_SCORES;
    room.n_tiles = tiles > MOST_TILES ? tiles : MOST_TILES;
    return room;
}

static struct oct_correlator_setup correlator_of(const struct oct_matcher_setup *s)
{
    struct oct_correlator_setup c = {};
    c.height = c.g_height = s->height;
    c.width = c.g_width = s->width;
    c.max_dy = oct_match_reach(s->max_dy, s->height);
    c.max_dx = oct_match_reach(s->max_dx, s->width);
    c.norm = OCT_CORRELATION_ZNCC;
    c.masked = s->masked;
    c.min_overlap = s->min_overlap;
    c.n_batch = s->n_batch;
    return c;
}

static enum oct_err init(struct oct_matcher *m, struct oct_error *err)
{
    const struct oct_matcher_setup *s = &m->setup;
    const enum oct_err refused = oct_matcher_check(s, err);
    if (refused)
        return refused;
    m->room = room_of(s);
    m->searches = (struct oct_search *)calloc(m->room.n_searches, sizeof(*m->searches));
    m->valid = (uint64_t *)calloc((size_t)s->n_batch * (s->height + 1), sizeof(*m->valid));
    if (!m->searches || !m->valid)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    const struct oct_match_setup setup = {correlator_of(s), m->room, s->max_dy, s->max_dx};
    return oct_cuda_tasks_create(&m->tasks, &oct_match_task_ops, s->gpus, s->deadline_ms, &setup,
                                 sizeof(setup), err);
}

static enum oct_err matcher_create(struct oct_matcher **out, const struct oct_matcher_setup *setup,
                                   struct oct_error *err)
{
    *out = NULL;
    struct oct_matcher *m = (struct oct_matcher *)calloc(1, sizeof(*m));
    if (!m)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    m->setup = *setup;
    m->setup.n_batch = setup->n_batch ? setup->n_batch : 1;
    enum oct_err e = init(m, err);
    if (e)
        matcher_destroy(m);
    else
        *out = m;
    return e;
}

/* The valid pixels of the rows above each row, rows[height + 1]. */
static void count_rows(const struct oct_picture *picture, uint64_t *rows)
{
    rows[0] = 0;
    for (uint32_t y = 0; y < picture->height; y++) {
        uint64_t n = picture->width;
        if (picture->valid) {
            const uint8_t *valid = picture->valid + (size_t)y * picture->width;
            n = 0;
            for (uint32_t x = 0; x < picture->width; x++)
                n += valid[x] != 0;
        }
        rows[y + 1] = rows[y] + n;
    }
}

static enum oct_err matcher_set_reference(struct oct_matcher *m,
                                          const struct oct_picture *reference,
                                          struct oct_error *err)
{
    uint64_t n_valid = 0;
    struct oct_match_task task = {OCT_MATCH_REFERENCE, reference, NULL, 1, NULL, &n_valid};
    enum oct_err e = oct_cuda_tasks_do(m->tasks, &task, err);
    if (!e)
        m->g_valid = n_valid;
    return e;
}

static enum oct_err matcher_load(struct oct_matcher *m, const struct oct_picture *pictures,
                                 unsigned n, struct oct_error *err)
{
    if (n > m->setup.n_batch)
        return oct_fail(err, OCT_E_ARG, "%u pictures at once, more than %u", n, m->setup.n_batch);
    m->n = n;
    for (unsigned i = 0; i < n; i++)
        count_rows(&pictures[i], m->valid + (size_t)i * (m->setup.height + 1));
    struct oct_match_task task = {OCT_MATCH_LOAD, pictures, NULL, n, NULL, NULL};
    return n ? oct_cuda_tasks_do(m->tasks, &task, err) : OCT_OK;
}

static enum oct_err matcher_find(struct oct_matcher *m, struct oct_match *matches,
                                 struct oct_error *err)
{
    struct oct_match_task task = {OCT_MATCH_FIND, NULL, NULL, m->n, matches, NULL};
    return m->n ? oct_cuda_tasks_do(m->tasks, &task, err) : OCT_OK;
}

static struct oct_search search_of(const struct oct_matcher *m, const struct oct_match_window *w,
                                   size_t first)
{
    const uint64_t *rows = m->valid + (size_t)w->picture * (m->setup.height + 1);
    const uint64_t own = rows[w->y0 + w->n_rows] - rows[w->y0];
    const double least =
        m->setup.min_window_overlap * (double)(own < m->g_valid ? own : m->g_valid);
    const uint32_t side = 2 * w->radius + 1;
    return {w->picture,
            w->y0,
            w->n_rows,
            w->dy - (int32_t)w->radius,
            w->dx - (int32_t)w->radius,
            side,
            side,
            least < 1 ? 1 : least,
            first,
            0,
            0};
}

/* As many windows as fit into a launch, one at least. */
static unsigned fill_launch(struct oct_matcher *m, const struct oct_match_window *windows,
                            unsigned n)
{
    size_t n_scores = 0, n_tiles = 0;
    double work = 0;
    unsigned k = 0;
    for (; k < n && k < m->room.n_searches; k++) {
        const uint32_t side = 2 * windows[k].radius + 1;
        const size_t scores = (size_t)side * side;
        const size_t tiles = oct_window_n_tiles(side, side);
        const double more = (double)scores * windows[k].n_rows * m->setup.width;
        if (k > 0 && (n_scores + scores > m->room.n_scores || n_tiles + tiles > m->room.n_tiles ||
                      work + more > MOST_WORK))
            break;
        m->searches[k] = search_of(m, &windows[k], n_scores);
        n_scores += scores;
        n_tiles += tiles;
        work += more;
    }
    return k;
}

static enum oct_err matcher_look(struct oct_matcher *m, const struct oct_match_window *windows,
                                 unsigned n, struct oct_match *matches, struct oct_error *err)
{
    enum oct_err e = oct_matcher_check_windows(&m->setup, m->n, windows, n, err);
    if (e)
        return e;
    for (unsigned i = 0; i < n;) {
        const unsigned count = fill_launch(m, windows + i, n - i);
        struct oct_match_task task = {OCT_MATCH_LOOK, NULL, m->searches, count, matches + i, NULL};
        e = oct_cuda_tasks_do(m->tasks, &task, err);
        if (e)
            return e;
        i += count;
    }
    return OCT_OK;
}

extern "C" const struct oct_matcher_ops oct_matcher_cuda = {
    "cuda", matcher_create, matcher_set_reference, matcher_load, matcher_find, matcher_look,
    NULL,   NULL,           matcher_destroy};
