/* The CPU engine of the whole-pixel search: pictures, then windows, are pieces for the workers. */
#include "analysis/align/matcher.h"
#include "analysis/align/rows.h"
#include "analysis/align/whole.h"
#include "analysis/align/zncc_sums.h"
#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>

/* What a worker needs for itself. */
struct worker {
    struct oct_whole *whole;
    struct oct_zncc_sums overlap;
    float *scratch;  /* of rows; NULL without windows */
    float *products; /* [6][2 max_radius + 1], sums at one dy */
    float *scores;   /* [2 max_radius + 1][2 max_radius + 1] */
    enum oct_err code;
    struct oct_error err;
};

struct loaded {
    struct oct_level level;
    struct oct_row_spectra spectra;
};

struct oct_matcher {
    struct oct_matcher_setup setup;
    unsigned n_workers;
    struct worker *workers; /* [n_workers] */
    struct loaded *loaded;  /* [n_batch] */
    struct loaded reference;
    struct oct_row_plan *rows;              /* NULL without windows */
    unsigned n;                             /* pictures loaded */
    const struct oct_picture *pictures;     /* while load runs */
    const struct oct_match_window *windows; /* while look runs */
    struct oct_match *matches;              /* while find or look runs */
};

/* ---- life ---- */

static uint32_t side_of(const struct oct_matcher_setup *setup)
{
    return 2 * setup->max_radius + 1;
}

static enum oct_err init_worker(struct oct_matcher *m, struct worker *worker, struct oct_error *err)
{
    enum oct_err e = oct_whole_create(&worker->whole, &m->setup, err);
    if (!e)
        e = oct_zncc_sums_init(&worker->overlap, m->setup.width, err);
    if (e || !m->rows)
        return e;
    size_t side = side_of(&m->setup);
    worker->scratch = oct_row_scratch(m->rows);
    worker->products = calloc(6 * side, sizeof(float));
    worker->scores = calloc(side * side, sizeof(float));
    if (!worker->scratch || !worker->products || !worker->scores)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for searches of %zu pixels", side);
    return OCT_OK;
}

static void finish_worker(struct worker *worker)
{
    oct_whole_destroy(worker->whole);
    oct_zncc_sums_finish(&worker->overlap);
    free(worker->scratch);
    free(worker->products);
    free(worker->scores);
}

static enum oct_err init_loaded(struct oct_matcher *m, struct loaded *loaded, struct oct_error *err)
{
    const struct oct_matcher_setup *s = &m->setup;
    enum oct_err e = oct_level_init(&loaded->level, s->height, s->width, s->masked, err);
    if (!e && m->rows)
        e = oct_row_spectra_init(&loaded->spectra, m->rows, &loaded->level, err);
    return e;
}

static void finish_loaded(struct loaded *loaded)
{
    oct_row_spectra_finish(&loaded->spectra);
    oct_level_finish(&loaded->level);
}

static void destroy(struct oct_matcher *m)
{
    if (!m)
        return;
    for (unsigned i = 0; m->workers && i < m->n_workers; i++)
        finish_worker(&m->workers[i]);
    for (unsigned i = 0; m->loaded && i < m->setup.n_batch; i++)
        finish_loaded(&m->loaded[i]);
    finish_loaded(&m->reference);
    oct_row_plan_destroy(m->rows);
    free(m->workers);
    free(m->loaded);
    free(m);
}

static enum oct_err init(struct oct_matcher *m, struct oct_error *err)
{
    const struct oct_matcher_setup *s = &m->setup;
    enum oct_err e = OCT_OK;
    m->workers = calloc(m->n_workers, sizeof(*m->workers));
    m->loaded = calloc(s->n_batch, sizeof(*m->loaded));
    if (!m->workers || !m->loaded)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    if (s->max_rows)
        e = oct_row_plan_create(&m->rows, s->width, s->max_dx + 2 * s->max_radius, err);
    for (unsigned i = 0; i < m->n_workers && !e; i++)
        e = init_worker(m, &m->workers[i], err);
    for (unsigned i = 0; i < s->n_batch && !e; i++)
        e = init_loaded(m, &m->loaded[i], err);
    return e ? e : init_loaded(m, &m->reference, err);
}

static enum oct_err create(struct oct_matcher **out, const struct oct_matcher_setup *setup,
                           struct oct_error *err)
{
    *out = NULL;
    struct oct_matcher *m = calloc(1, sizeof(*m));
    if (!m)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    m->setup = *setup;
    m->setup.n_batch = setup->n_batch ? setup->n_batch : 1;
    /* More workers than pictures or windows at once have nothing to do, but pieces go to any. */
    m->n_workers = setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1;
    enum oct_err e = init(m, err);
    if (e) {
        destroy(m);
        return e;
    }
    *out = m;
    return OCT_OK;
}

/* Runs the pieces, and returns the error of one that failed. */
static enum oct_err run(struct oct_matcher *m, unsigned n_pieces,
                        void (*piece)(void *context, unsigned piece, unsigned worker),
                        struct oct_error *err)
{
    for (unsigned i = 0; i < m->n_workers; i++)
        m->workers[i].code = OCT_OK;
    oct_workers_run(m->setup.workers, n_pieces, piece, m);
    for (unsigned i = 0; i < m->n_workers; i++)
        if (m->workers[i].code)
            return oct_fail(err, m->workers[i].code, "%s", m->workers[i].err.text);
    return OCT_OK;
}

/* ---- pictures ---- */

static void set_loaded(struct oct_matcher *m, struct loaded *loaded,
                       const struct oct_picture *picture, float *scratch)
{
    oct_level_set(&loaded->level, picture);
    if (m->rows && loaded->level.has_contrast)
        oct_row_spectra_set(&loaded->spectra, m->rows, scratch);
}

static void set_worker_reference(void *context, unsigned piece, unsigned worker)
{
    struct oct_matcher *m = context;
    struct worker *w = &m->workers[worker];
    oct_zncc_sums_forget(&m->workers[piece].overlap);
    enum oct_err e = oct_whole_set_reference(m->workers[piece].whole, &m->reference.level, &w->err);
    w->code = e ? e : w->code;
}

static enum oct_err set_reference(struct oct_matcher *m, const struct oct_picture *reference,
                                  struct oct_error *err)
{
    set_loaded(m, &m->reference, reference, m->workers[0].scratch);
    if (!m->reference.level.has_contrast)
        return oct_fail(err, OCT_E_ARG, "the reference has no contrast");
    return run(m, m->n_workers, set_worker_reference, err);
}

static void load_one(void *context, unsigned piece, unsigned worker)
{
    struct oct_matcher *m = context;
    set_loaded(m, &m->loaded[piece], &m->pictures[piece], m->workers[worker].scratch);
}

static enum oct_err load(struct oct_matcher *m, const struct oct_picture *pictures, unsigned n,
                         struct oct_error *err)
{
    m->pictures = pictures;
    m->n = n;
    return run(m, n, load_one, err);
}

static void find_one(void *context, unsigned piece, unsigned worker)
{
    struct oct_matcher *m = context;
    struct worker *w = &m->workers[worker];
    enum oct_err e = oct_whole_find(w->whole, &m->loaded[piece].level, &m->matches[piece], &w->err);
    w->code = e ? e : w->code;
}

static enum oct_err find(struct oct_matcher *m, struct oct_match *matches, struct oct_error *err)
{
    m->matches = matches;
    return run(m, m->n, find_one, err);
}

/* ---- windows ---- */

/* One row of scores: all dx of the window at dy. */
static void score_row(const struct oct_matcher *m, struct worker *w, const struct loaded *f,
                      const struct oct_match_window *window, int32_t dy, float *scores)
{
    static const enum oct_plane pairs[6][2] = {
        {OCT_PLANE_VALUES, OCT_PLANE_VALUES}, {OCT_PLANE_VALID, OCT_PLANE_VALID},
        {OCT_PLANE_VALUES, OCT_PLANE_VALID},  {OCT_PLANE_VALID, OCT_PLANE_VALUES},
        {OCT_PLANE_SQUARES, OCT_PLANE_VALID}, {OCT_PLANE_VALID, OCT_PLANE_SQUARES},
    };
    uint32_t side = 2 * window->radius + 1;
    int32_t dx0 = window->dx - (int32_t)window->radius;
    oct_zncc_sums_move(&w->overlap, dy);
    unsigned n_pairs = oct_zncc_sums_is_masked(&w->overlap) ? 6 : 1;
    bool meets = w->overlap.end > w->overlap.first;
    for (unsigned i = 0; i < n_pairs && meets; i++)
        oct_row_products(m->rows, &f->spectra, pairs[i][0], &m->reference.spectra, pairs[i][1],
                         w->overlap.first, w->overlap.end, dy, dx0, side, w->scratch,
                         w->products + (size_t)i * side);
    for (uint32_t i = 0; i < side; i++) {
        struct oct_products p = {.values = (double)w->products[i]};
        if (n_pairs == 6) {
            p.n = round((double)w->products[side + i]);
            p.f = (double)w->products[2 * side + i];
            p.g = (double)w->products[3 * side + i];
            p.f_f = (double)w->products[4 * side + i];
            p.g_g = (double)w->products[5 * side + i];
        }
        scores[i] = oct_zncc_sums_score(&w->overlap, dx0 + (int32_t)i, &p);
    }
}

static struct oct_match best_of(const struct oct_match_window *window, const float *scores)
{
    int32_t side = 2 * (int32_t)window->radius + 1, best = -1;
    struct oct_match match = {.score = NAN, .significance = NAN};
    for (int32_t i = 0; i < side * side; i++)
        if (!isnan(scores[i]) && (best < 0 || scores[i] > scores[best]))
            best = i;
    int32_t y = best < 0 ? 0 : best / side, x = best < 0 ? 0 : best % side;
    for (int32_t i = 0; i < 9; i++) {
        int32_t v = y + i / 3 - 1, u = x + i % 3 - 1;
        bool inside = best >= 0 && v >= 0 && v < side && u >= 0 && u < side;
        match.around[i / 3][i % 3] = inside ? scores[v * side + u] : NAN;
    }
    if (best < 0)
        return match;
    match.score = scores[best];
    match.dy = window->dy + y - (int32_t)window->radius;
    match.dx = window->dx + x - (int32_t)window->radius;
    return match;
}

static void look_one(void *context, unsigned piece, unsigned worker)
{
    struct oct_matcher *m = context;
    struct worker *w = &m->workers[worker];
    const struct oct_match_window *window = &m->windows[piece];
    const struct loaded *f = &m->loaded[window->picture];
    size_t side = 2 * (size_t)window->radius + 1;
    if (f->level.has_contrast) {
        oct_zncc_sums_begin(&w->overlap, &f->level, &m->reference.level, window->y0, window->n_rows,
                            m->setup.min_window_overlap);
        for (size_t i = 0; i < side; i++)
            score_row(m, w, f, window, window->dy - (int32_t)window->radius + (int32_t)i,
                      w->scores + i * side);
    } else {
        for (size_t i = 0; i < side * side; i++)
            w->scores[i] = NAN;
    }
    m->matches[piece] = best_of(window, w->scores);
}

static enum oct_err look(struct oct_matcher *m, const struct oct_match_window *windows, unsigned n,
                         struct oct_match *matches, struct oct_error *err)
{
    const struct oct_matcher_setup *s = &m->setup;
    for (unsigned i = 0; i < n; i++)
        if (windows[i].picture >= m->n || windows[i].radius > s->max_radius ||
            windows[i].n_rows > s->height || windows[i].y0 > s->height - windows[i].n_rows ||
            (uint32_t)abs(windows[i].dx) > s->max_dx + s->max_radius)
            return oct_fail(err, OCT_E_ARG, "window %u is outside what was set up", i);
    m->windows = windows;
    m->matches = matches;
    return run(m, n, look_one, err);
}

static const struct oct_level *level(const struct oct_matcher *m, unsigned i)
{
    return i == UINT32_MAX ? &m->reference.level : &m->loaded[i].level;
}

const struct oct_matcher_ops oct_matcher_cpu = {
    .name = "cpu",
    .create = create,
    .set_reference = set_reference,
    .load = load,
    .find = find,
    .look = look,
    .level = level,
    .destroy = destroy,
};
