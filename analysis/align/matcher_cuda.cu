/* The CUDA engine of the whole-pixel search. Whole pictures go through the transforms of
 * analysis/correlate/cuda_correlation.cuh; windows are small, and their products are summed
 * directly, a block a tile of shifts, exact but for the rounding of f32 sums of 1024 products. */
#include "analysis/correlate/cuda_correlation.cuh"
#include "kernels/device/cuda_task.h"
extern "C" {
#include "analysis/align/matcher.h"
}

#include <cstdlib>
#include <cstring>

/* A block of 128 threads sums at 16 x 32 shifts, a thread at 4 of a row, over chunks of 16 x 64
 * pixels. The pitch keeps the threads of a warp on banks of their own. */
#define TILE_ROWS 16u
#define TILE_COLUMNS 32u
#define PER_THREAD 4u
#define GROUPS (TILE_COLUMNS / PER_THREAD)
#define TILE_THREADS (TILE_ROWS * GROUPS)
#define CHUNK_ROWS 16u
#define CHUNK_COLUMNS 64u
#define G_ROWS (CHUNK_ROWS + TILE_ROWS - 1)
#define G_COLUMNS (CHUNK_COLUMNS + TILE_COLUMNS - 1)
#define G_PITCH 97u
#define TILE_FLOATS (CHUNK_ROWS * CHUNK_COLUMNS + G_ROWS * G_PITCH)
#define BEST_THREADS 256u

/* What a launch takes at most, unless a single window is more. */
#define MOST_WINDOWS 4096u
#define MOST_SCORES ((size_t)8 << 20)
#define MOST_TILES 65536u
#define MOST_WORK 1e12 /* products: some tenths of a second */

/* A search on the device: of a window, or of a whole picture. */
struct search {
    unsigned picture;
    uint32_t y0, n_rows;
    int32_t dy, dx;         /* the first shift */
    uint32_t rows, columns; /* shifts */
    double least;           /* N */
    size_t first;           /* of its scores */
    bool whole;
};

struct tile {
    uint32_t window, y, x;
};

/* ---- kernels ---- */

/* Sums at a thread's four shifts. */
struct sums {
    double products[PER_THREAD], n[PER_THREAD], f[PER_THREAD], g[PER_THREAD], f_squares[PER_THREAD],
        g_squares[PER_THREAD];
};

/* A chunk of f, and of g around it; beyond the pictures and the rows of the window are zeros. */
static __device__ void load_chunk(const struct oct_correlation_shape &s, const float *f,
                                  const float *g, const struct search &w, uint32_t row, uint32_t x,
                                  int dy, int dx, float *shared)
{
    float *shared_g = shared + CHUNK_ROWS * CHUNK_COLUMNS;
    for (uint32_t k = threadIdx.x; k < CHUNK_ROWS * CHUNK_COLUMNS; k += TILE_THREADS) {
        const uint32_t v = row + k / CHUNK_COLUMNS, u = x + k % CHUNK_COLUMNS;
        const bool inside = v < w.n_rows && u < s.width;
        shared[k] = inside ? f[(size_t)(w.y0 + v) * s.padded_width + u] : 0;
    }
    for (uint32_t k = threadIdx.x; k < G_ROWS * G_COLUMNS; k += TILE_THREADS) {
        const int v = (int)(w.y0 + row + k / G_COLUMNS) + dy, u = (int)(x + k % G_COLUMNS) + dx;
        const bool inside = v >= 0 && v < (int)s.height && u >= 0 && u < (int)s.width;
        shared_g[k / G_COLUMNS * G_PITCH + k % G_COLUMNS] =
            inside ? g[(size_t)v * s.padded_width + (size_t)u] : 0;
    }
}

/* The products of a chunk at a thread's shifts: sums in f32, added to those in double. */
static __device__ void add_plain(const float *shared, uint32_t row, uint32_t group,
                                 struct sums &sums)
{
    const float *f = shared;
    const float *g = shared + CHUNK_ROWS * CHUNK_COLUMNS + row * G_PITCH + group * PER_THREAD;
    float part[PER_THREAD] = {0, 0, 0, 0};
    for (uint32_t v = 0; v < CHUNK_ROWS; v++, f += CHUNK_COLUMNS, g += G_PITCH) {
        float g0 = g[0], g1 = g[1], g2 = g[2];
#pragma unroll 16
        for (uint32_t u = 0; u < CHUNK_COLUMNS; u++) {
            const float a = f[u], g3 = g[u + 3];
            part[0] = fmaf(a, g0, part[0]);
            part[1] = fmaf(a, g1, part[1]);
            part[2] = fmaf(a, g2, part[2]);
            part[3] = fmaf(a, g3, part[3]);
            g0 = g1;
            g1 = g2;
            g2 = g3;
        }
    }
    for (uint32_t k = 0; k < PER_THREAD; k++)
        sums.products[k] += part[k];
}

/* With masks: the values are 0 where the mask is. masks: a chunk as `values`. */
static __device__ void add_masked(const float *values, const float *masks, uint32_t row,
                                  uint32_t group, struct sums &sums)
{
    const size_t at = CHUNK_ROWS * CHUNK_COLUMNS + row * G_PITCH + group * PER_THREAD;
    for (uint32_t k = 0; k < PER_THREAD; k++) {
        float products = 0, n = 0, f = 0, g = 0, f_squares = 0, g_squares = 0;
        for (uint32_t v = 0; v < CHUNK_ROWS; v++)
            for (uint32_t u = 0; u < CHUNK_COLUMNS; u++) {
                const uint32_t i = v * CHUNK_COLUMNS + u;
                const size_t j = at + v * G_PITCH + u + k;
                const float a = values[i], b = values[j], m = masks[i], o = masks[j];
                const float am = a * o, bm = b * m;
                products = fmaf(a, b, products);
                n = fmaf(m, o, n);
                f += am;
                g += bm;
                f_squares = fmaf(a, am, f_squares);
                g_squares = fmaf(b, bm, g_squares);
            }
        sums.products[k] += products;
        sums.n[k] += n;
        sums.f[k] += f;
        sums.g[k] += g;
        sums.f_squares[k] += f_squares;
        sums.g_squares[k] += g_squares;
    }
}

/* Where a window meets the reference along an axis: in the picture. */
static __device__ struct oct_meeting meet_window(uint32_t first, uint32_t n, uint32_t side,
                                                 int shift)
{
    struct oct_meeting m = oct_meet(side, side, shift);
    m.first = m.first > (int)first ? m.first : (int)first;
    m.end = m.end < (int)(first + n) ? m.end : (int)(first + n);
    m.end = m.end < m.first ? m.first : m.end;
    return m;
}

static __device__ float score(double n, double products, struct oct_moments f, struct oct_moments g,
                              double least)
{
    if (n < least || n < 1)
        return __int_as_float(0x7fc00000);
    return oct_zncc(n, products, f, g, OCT_CORRELATION_LEAST_VARIANCE * n,
                    OCT_CORRELATION_LEAST_VARIANCE * n);
}

static __device__ float score_plain(const struct oct_correlation_shape &s, const struct search &w,
                                    const struct oct_moments *f_boxes,
                                    const struct oct_moments *g_boxes, int dy, int dx,
                                    double products)
{
    const struct oct_meeting rows = meet_window(w.y0, w.n_rows, s.height, dy);
    const struct oct_meeting columns = meet_window(0, s.width, s.width, dx);
    const double n = (double)(rows.end - rows.first) * (columns.end - columns.first);
    if (n < 1)
        return __int_as_float(0x7fc00000);
    return score(n, products, oct_box(f_boxes, s.width, rows, columns),
                 oct_box(g_boxes, s.width, oct_moved(rows, dy), oct_moved(columns, dx)), w.least);
}

/* The scores of a tile of shifts; a block a tile. Boxes where there are no masks. */
static __global__ void window_kernel(struct oct_correlation_shape s, const float *planes,
                                     const float *g_planes, const struct oct_moments *f_boxes,
                                     const struct oct_moments *g_boxes,
                                     const struct search *searches, const struct tile *tiles,
                                     float *scores)
{
    OCT_SHARED(float, shared);
    const struct tile tile = tiles[blockIdx.x];
    const struct search w = searches[tile.window];
    const size_t points = oct_correlation_points(s);
    const uint32_t row = threadIdx.x / GROUPS, group = threadIdx.x % GROUPS;
    const int dy = w.dy + (int)(tile.y * TILE_ROWS), dx = w.dx + (int)(tile.x * TILE_COLUMNS);
    const float *f = planes + w.picture * points;
    float *masks = shared + TILE_FLOATS;
    struct sums sums = {};
    for (uint32_t v = 0; v < w.n_rows; v += CHUNK_ROWS)
        for (uint32_t u = 0; u < s.width; u += CHUNK_COLUMNS) {
            load_chunk(s, f, g_planes, w, v, u, dy, dx, shared);
            if (s.masked)
                load_chunk(s, f + s.n * points, g_planes + points, w, v, u, dy, dx, masks);
            __syncthreads();
            if (s.masked)
                add_masked(shared, masks, row, group, sums);
            else
                add_plain(shared, row, group, sums);
            __syncthreads();
        }
    const uint32_t y = tile.y * TILE_ROWS + row;
    for (uint32_t k = 0; k < PER_THREAD; k++) {
        const uint32_t x = tile.x * TILE_COLUMNS + group * PER_THREAD + k;
        if (y >= w.rows || x >= w.columns)
            continue;
        const int at_y = w.dy + (int)y, at_x = w.dx + (int)x;
        scores[w.first + (size_t)y * w.columns + x] =
            s.masked
                ? score(sums.n[k], sums.products[k], {sums.f[k], sums.f_squares[k]},
                        {sums.g[k], sums.g_squares[k]}, w.least)
                : score_plain(s, w, f_boxes + w.picture * (size_t)(s.height + 1) * (s.width + 1),
                              g_boxes, at_y, at_x, sums.products[k]);
    }
}

struct candidate {
    float score;
    uint32_t place;
};

/* The larger one; of equals the first. A place of UINT32_MAX: none. */
static __device__ bool is_better(struct candidate a, struct candidate b)
{
    if (a.place == UINT32_MAX || b.place == UINT32_MAX)
        return a.place != UINT32_MAX;
    return a.score > b.score || (a.score == b.score && a.place < b.place);
}

static __device__ struct oct_match match_at(const struct search &w, const float *scores,
                                            struct candidate best)
{
    const float none = __int_as_float(0x7fc00000);
    const bool found = best.place != UINT32_MAX;
    const int y = found ? (int)(best.place / w.columns) : 0;
    const int x = found ? (int)(best.place % w.columns) : 0;
    struct oct_match match = {
        found ? w.dy + y : 0, found ? w.dx + x : 0, found ? best.score : none, false, {}};
    for (int k = 0; k < 9; k++) {
        const int v = y + k / 3 - 1, u = x + k % 3 - 1;
        const bool inside = found && v >= 0 && v < (int)w.rows && u >= 0 && u < (int)w.columns &&
                            (!w.whole || k == 4);
        match.around[k / 3][k % 3] = inside ? scores[(size_t)v * w.columns + (size_t)u] : none;
    }
    match.on_border =
        found && !w.whole && (y == 0 || x == 0 || y + 1 == (int)w.rows || x + 1 == (int)w.columns);
    return match;
}

/* The largest score of each search; a block a search. */
static __global__ void best_kernel(const struct search *searches, const float *all_scores,
                                   struct oct_match *matches)
{
    OCT_SHARED(struct candidate, part);
    const struct search w = searches[blockIdx.x];
    const float *scores = all_scores + w.first;
    const uint32_t n = w.rows * w.columns, t = threadIdx.x;
    struct candidate best = {0, UINT32_MAX};
    for (uint32_t k = t; k < n; k += BEST_THREADS) {
        const struct candidate c = {scores[k], k};
        if (c.score == c.score && is_better(c, best))
            best = c;
    }
    part[t] = best;
    for (uint32_t half = BEST_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half && is_better(part[t + half], part[t]))
            part[t] = part[t + half];
    }
    if (t == 0)
        matches[blockIdx.x] = match_at(w, scores, part[0]);
}

/* ---- a task ---- */

enum what { REFERENCE, LOAD, FIND, LOOK };

struct task {
    enum what what;
    const struct oct_picture *pictures; /* [n] REFERENCE, LOAD */
    const struct search *searches;      /* [n] LOOK */
    unsigned n;
    struct oct_match *matches; /* [n] FIND, LOOK */
    uint64_t *n_valid;         /* of the REFERENCE */
};

struct room {
    unsigned n_searches, n_tiles;
    size_t n_scores;
};

struct context {
    struct oct_correlation correlation;
    struct oct_cuda_stream *stream;
    struct room room;
    enum what what; /* of the task */
    unsigned n, n_tiles;
    bool refused; /* the task's reference */
    struct search *h_searches, *d_searches, *d_whole;
    struct tile *h_tiles, *d_tiles;
    struct oct_match *h_matches, *d_matches;
    float *d_scores;
};

struct setup {
    struct oct_correlator_setup correlator;
    struct room room;
};

static uint32_t tiles_of(uint32_t n, uint32_t per_tile)
{
    return (n + per_tile - 1) / per_tile;
}

/* A picture that is not usable is zero on the device, and matches nowhere. */
static void take_pictures(struct context *c, const struct task *task)
{
    for (unsigned i = 0; i < task->n; i++) {
        const struct oct_normal *normal =
            oct_planes_take(&c->correlation.planes, i, &task->pictures[i], false);
        if (task->what == LOAD) {
            c->correlation.h_factors[i] = 0;
        } else {
            c->refused = !normal->usable;
            *task->n_valid = normal->n_valid;
        }
    }
}

static void take_searches(struct context *c, const struct task *task)
{
    c->n_tiles = 0;
    memcpy(c->h_searches, task->searches, task->n * sizeof(*task->searches));
    for (uint32_t i = 0; i < task->n; i++)
        for (uint32_t y = 0; y < tiles_of(task->searches[i].rows, TILE_ROWS); y++)
            for (uint32_t x = 0; x < tiles_of(task->searches[i].columns, TILE_COLUMNS); x++)
                c->h_tiles[c->n_tiles++] = {i, y, x};
}

static void take(void *argument, const void *from)
{
    struct context *c = (struct context *)argument;
    const struct task *task = (const struct task *)from;
    c->what = task->what;
    c->n = task->n;
    c->refused = false;
    if (task->what == LOOK)
        take_searches(c, task);
    else if (task->what != FIND)
        take_pictures(c, task);
}

static enum oct_err queue_best(struct context *c, const struct search *d_searches,
                               const float *d_scores, struct oct_error *err)
{
    OCT_LAUNCH((best_kernel), dim3(c->n), dim3(BEST_THREADS),
               BEST_THREADS * sizeof(struct candidate), c->stream->stream, d_searches, d_scores,
               c->d_matches);
    return oct_cuda_stream_download(c->stream, c->h_matches, c->d_matches,
                                    c->n * sizeof(struct oct_match), err);
}

static enum oct_err begin_look(struct context *c, struct oct_error *err)
{
    const struct oct_correlation &of = c->correlation;
    const size_t floats = of.shape.masked ? 2 * TILE_FLOATS : TILE_FLOATS;
    enum oct_err e = oct_cuda_stream_upload(c->stream, c->d_searches, c->h_searches,
                                            c->n * sizeof(*c->h_searches), err);
    if (!e)
        e = oct_cuda_stream_upload(c->stream, c->d_tiles, c->h_tiles,
                                   c->n_tiles * sizeof(*c->h_tiles), err);
    if (e)
        return e;
    OCT_LAUNCH((window_kernel), dim3(c->n_tiles), dim3(TILE_THREADS), floats * sizeof(float),
               c->stream->stream, of.shape, of.d_planes, of.d_g_planes, of.d_boxes, of.d_g_boxes,
               c->d_searches, c->d_tiles, c->d_scores);
    return queue_best(c, c->d_searches, c->d_scores, err);
}

static enum oct_err begin(void *argument, struct oct_error *err)
{
    struct context *c = (struct context *)argument;
    struct oct_correlation *of = &c->correlation;
    enum oct_err e = OCT_OK;
    if (c->refused)
        return oct_fail(err, OCT_E_ARG, "the reference has no contrast");
    switch (c->what) {
    case REFERENCE:
        e = oct_correlation_upload_g(of, err);
        return e ? e : oct_correlation_queue_g(of, err);
    case LOAD:
        e = oct_correlation_upload(of, c->n, err);
        if (!e)
            oct_correlation_queue_boxes(of, c->n);
        return e;
    case FIND:
        e = oct_correlation_queue(of, false, err);
        return e ? e : queue_best(c, c->d_whole, of->d_c2d, err);
    default:
        return begin_look(c, err);
    }
}

static void give(void *argument, void *to)
{
    const struct context *c = (const struct context *)argument;
    struct task *task = (struct task *)to;
    if (task->matches)
        memcpy(task->matches, c->h_matches, task->n * sizeof(*task->matches));
}

/* Whole pictures as searches: they stay. */
static enum oct_err put_whole(struct context *c, struct oct_error *err)
{
    const struct oct_correlation_shape &s = c->correlation.shape;
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
                            true};
    enum oct_err e = oct_cuda_stream_upload(c->stream, c->d_whole, c->h_searches,
                                            s.n * sizeof(*c->h_searches), err);
    oct_cuda_stream_drain(c->stream); /* the memory is used again */
    return e;
}

static enum oct_err alloc(struct context *c, struct oct_error *err)
{
    const struct room *room = &c->room;
    enum oct_err e = oct_stream_pin(c->stream, &c->h_searches, room->n_searches, err);
    e = e ? e : oct_stream_pin(c->stream, &c->h_matches, room->n_searches, err);
    e = e ? e : oct_stream_alloc(c->stream, &c->d_searches, room->n_searches, err);
    e = e ? e : oct_stream_alloc(c->stream, &c->d_matches, room->n_searches, err);
    e = e ? e : oct_stream_alloc(c->stream, &c->d_whole, c->correlation.shape.n, err);
    if (room->n_tiles == 0)
        return e;
    e = e ? e : oct_stream_pin(c->stream, &c->h_tiles, room->n_tiles, err);
    e = e ? e : oct_stream_alloc(c->stream, &c->d_tiles, room->n_tiles, err);
    return e ? e : oct_stream_alloc(c->stream, &c->d_scores, room->n_scores, err);
}

/* Every kernel once, with pictures that are all zero. */
static enum oct_err rehearse(struct context *c, struct oct_error *err)
{
    oct_correlation_blank(&c->correlation);
    enum oct_err e = OCT_OK;
    for (int what = REFERENCE; what <= FIND && !e; what++) {
        c->what = (enum what)what;
        c->n = 1;
        e = begin(c, err);
    }
    if (e || c->room.n_tiles == 0)
        return e;
    c->h_searches[0] = {0, 0, 1, 0, 0, 1, 1, 1, 0, false};
    c->h_tiles[0] = {0, 0, 0};
    c->n_tiles = 1;
    return begin_look(c, err);
}

static enum oct_err complete(struct context *c, const struct setup *setup, struct oct_error *err)
{
    c->stream = c->correlation.stream;
    c->room = setup->room;
    enum oct_err e = alloc(c, err);
    e = e ? e : put_whole(c, err);
    return e ? e : rehearse(c, err);
}

static enum oct_err make(void **out, struct oct_cuda_stream *stream, const void *from,
                         struct oct_error *err)
{
    const struct setup *setup = (const struct setup *)from;
    return oct_correlation_make_context(out, stream, setup->correlator, setup, complete, err);
}

static const struct oct_cuda_task_ops task_ops = {
    "registration", make, take, begin, give, oct_correlation_unmake<struct context>};

/* ---- the engine ---- */

struct oct_matcher {
    struct oct_cuda_tasks *tasks;
    struct oct_matcher_setup setup;
    struct room room;
    unsigned n;              /* pictures loaded */
    uint64_t g_valid;        /* pixels of the reference */
    uint64_t *valid;         /* [n_batch][height + 1] valid pixels in the rows above */
    struct search *searches; /* [room.n_searches] */
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

static struct room room_of(const struct oct_matcher_setup *s)
{
    const uint32_t side = 2 * s->max_radius + 1;
    struct room room = {s->n_batch, 0, 0};
    if (s->max_rows == 0)
        return room;
    const size_t scores = (size_t)side * side;
    const unsigned tiles = tiles_of(side, TILE_ROWS) * tiles_of(side, TILE_COLUMNS);
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
    c.max_dy = s->max_dy;
    c.max_dx = s->max_dx;
    c.norm = OCT_CORRELATION_ZNCC;
    c.masked = s->masked;
    c.min_overlap = s->min_overlap;
    c.n_batch = s->n_batch;
    return c;
}

static enum oct_err init(struct oct_matcher *m, struct oct_error *err)
{
    const struct oct_matcher_setup *s = &m->setup;
    if (s->height == 0 || s->width == 0 || s->height > OCT_PICTURE_MOST_SIDE ||
        s->width > OCT_PICTURE_MOST_SIDE || s->max_dy >= s->height || s->max_dx >= s->width)
        return oct_fail(err, OCT_E_ARG,
                        "shifts to %u x %u of pictures of %u x %u pixels cannot be sought",
                        s->max_dy, s->max_dx, s->height, s->width);
    m->room = room_of(s);
    m->searches = (struct search *)calloc(m->room.n_searches, sizeof(*m->searches));
    m->valid = (uint64_t *)calloc((size_t)s->n_batch * (s->height + 1), sizeof(*m->valid));
    if (!m->searches || !m->valid)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    const struct setup setup = {correlator_of(s), m->room};
    return oct_cuda_tasks_create(&m->tasks, &task_ops, s->gpus, s->deadline_ms, &setup,
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
    struct task task = {REFERENCE, reference, NULL, 1, NULL, &n_valid};
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
    struct task task = {LOAD, pictures, NULL, n, NULL, NULL};
    return n ? oct_cuda_tasks_do(m->tasks, &task, err) : OCT_OK;
}

static enum oct_err matcher_find(struct oct_matcher *m, struct oct_match *matches,
                                 struct oct_error *err)
{
    struct task task = {FIND, NULL, NULL, m->n, matches, NULL};
    return m->n ? oct_cuda_tasks_do(m->tasks, &task, err) : OCT_OK;
}

static struct search search_of(const struct oct_matcher *m, const struct oct_window *w,
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
            false};
}

/* As many windows as fit into a launch, one at least. */
static unsigned fill_launch(struct oct_matcher *m, const struct oct_window *windows, unsigned n)
{
    size_t n_scores = 0, n_tiles = 0;
    double work = 0;
    unsigned k = 0;
    for (; k < n && k < m->room.n_searches; k++) {
        const uint32_t side = 2 * windows[k].radius + 1;
        const size_t scores = (size_t)side * side;
        const size_t tiles = (size_t)tiles_of(side, TILE_ROWS) * tiles_of(side, TILE_COLUMNS);
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

static enum oct_err matcher_look(struct oct_matcher *m, const struct oct_window *windows,
                                 unsigned n, struct oct_match *matches, struct oct_error *err)
{
    const struct oct_matcher_setup *s = &m->setup;
    for (unsigned i = 0; i < n; i++)
        if (windows[i].picture >= m->n || windows[i].radius > s->max_radius ||
            windows[i].n_rows == 0 || windows[i].n_rows > s->max_rows ||
            windows[i].n_rows > s->height || windows[i].y0 > s->height - windows[i].n_rows ||
            (uint32_t)abs(windows[i].dx) > s->max_dx + s->max_radius)
            return oct_fail(err, OCT_E_ARG, "window %u is outside what was set up", i);
    for (unsigned i = 0; i < n;) {
        const unsigned count = fill_launch(m, windows + i, n - i);
        struct task task = {LOOK, NULL, m->searches, count, matches + i, NULL};
        enum oct_err e = oct_cuda_tasks_do(m->tasks, &task, err);
        if (e)
            return e;
        i += count;
    }
    return OCT_OK;
}

extern "C" const struct oct_matcher_ops oct_matcher_cuda = {
    "cuda", matcher_create, matcher_set_reference, matcher_load, matcher_find, matcher_look,
    NULL,   NULL,           matcher_destroy};
