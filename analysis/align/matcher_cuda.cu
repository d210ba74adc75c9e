/* The CUDA engine of the whole-pixel search: its calls, which hand tasks to a worker
 * (cuda_matcher.cuh). Whole pictures go through the transforms of
 * analysis/correlate/cuda_correlation.cuh, windows through direct sums (cuda_windows.cuh). */
#include "analysis/align/cuda_matcher.cuh"

#include <cstdlib>

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
    if (s->height == 0 || s->width == 0 || s->height > OCT_PICTURE_MOST_SIDE ||
        s->width > OCT_PICTURE_MOST_SIDE || s->max_dy >= s->height || s->max_dx >= s->width)
        return oct_fail(err, OCT_E_ARG,
                        "shifts to %u x %u of pictures of %u x %u pixels cannot be sought",
                        s->max_dy, s->max_dx, s->height, s->width);
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
    const struct oct_matcher_setup *s = &m->setup;
    for (unsigned i = 0; i < n; i++)
        if (windows[i].picture >= m->n || windows[i].radius > s->max_radius ||
            windows[i].n_rows == 0 || windows[i].n_rows > s->max_rows ||
            windows[i].n_rows > s->height || windows[i].y0 > s->height - windows[i].n_rows ||
            (uint32_t)abs(windows[i].dx) > s->max_dx + s->max_radius)
            return oct_fail(err, OCT_E_ARG, "window %u is outside what was set up", i);
    for (unsigned i = 0; i < n;) {
        const unsigned count = fill_launch(m, windows + i, n - i);
        struct oct_match_task task = {OCT_MATCH_LOOK, NULL, m->searches, count, matches + i, NULL};
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
