/* The CPU engine of the whole-pixel search: pictures, then windows, are pieces for the workers.
 *
 * Of whole pictures every maximum of the ZNCC of 2 x 2 binned ones that might be the largest is
 * climbed at full resolution, and the best is taken. Where the binned pictures do not decide (small
 * ones, a low score, many maxima alike), all shifts are searched at full resolution: the answer is
 * that of the full search except for noise. */
#include "analysis/align/level.h"
#include "analysis/align/matcher.h"
#include "analysis/align/rows.h"
#include "analysis/align/subpixel.h"
#include "analysis/correlate/correlate.h"
#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>

/* Sides and shifts below which binning is not worth it. */
#define LEAST_BINNED_SIDE 48u
#define LEAST_BINNED_SHIFT 4u

/* A binned score below this may be a chance maximum, and the true one may be hidden. */
#define LEAST_BINNED_SCORE 0.15F

/* Binned maxima within this part of the best are climbed; more of them than MOST_MAXIMA mean that
 * binning has lost what distinguishes them. */
#define MARGIN 0.25F
#define MOST_MAXIMA 8u

/* One resolution. */
struct search {
    struct oct_correlator *correlator; /* NULL: not made yet */
    struct oct_correlator_setup setup;
    float *c2d;                   /* [2 max_dy + 1][2 max_dx + 1], wider than what is sought */
    int32_t sought_dy, sought_dx; /* of its pixels */
    bool has_reference;
};

struct whole {
    struct oct_matcher_setup setup;
    struct search full, binned;
    bool bins;
    struct oct_picture picture; /* binned; only with `bins` */
    struct oct_zncc_sums overlap;
    float *samples; /* [OCT_MATCH_SAMPLES] */
    const struct oct_level *reference;
    const struct oct_picture *g; /* the same */
};

/* ---- whole pictures ---- */

static void describe_search(struct search *search, const struct oct_matcher_setup *s, uint32_t by)
{
    uint32_t height = s->height / by, width = s->width / by;
    uint32_t dy = (oct_match_reach(s->max_dy, s->height) + by - 1) / by;
    uint32_t dx = (oct_match_reach(s->max_dx, s->width) + by - 1) / by;
    search->sought_dy = (int32_t)((s->max_dy + by - 1) / by);
    search->sought_dx = (int32_t)((s->max_dx + by - 1) / by);
    search->setup = (struct oct_correlator_setup){
        .height = height,
        .width = width,
        .g_height = height,
        .g_width = width,
        .max_dy = dy < height ? dy : height - 1,
        .max_dx = dx < width ? dx : width - 1,
        .norm = OCT_CORRELATION_ZNCC,
        .masked = s->masked,
        .min_overlap = s->min_overlap,
        .n_batch = 1,
    };
}

static enum oct_err open_search(struct search *search, struct oct_error *err)
{
    const struct oct_correlator_setup *s = &search->setup;
    if (search->correlator)
        return OCT_OK;
    size_t n = ((size_t)2 * s->max_dy + 1) * ((size_t)2 * s->max_dx + 1);
    search->c2d = malloc(n * sizeof(float));
    if (!search->c2d)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for shifts of up to %u, %u pixels",
                        s->max_dy, s->max_dx);
    enum oct_err e = oct_correlator_cpu.create(&search->correlator, s, err);
    if (e) {
        free(search->c2d);
        search->c2d = NULL;
    }
    return e;
}

static void close_search(struct search *search)
{
    if (search->correlator)
        oct_correlator_cpu.destroy(search->correlator);
    free(search->c2d);
}

static enum oct_err open_binned(struct whole *whole, struct oct_error *err)
{
    const struct oct_correlator_setup *s = &whole->binned.setup;
    enum oct_err e = open_search(&whole->binned, err);
    if (!e)
        e = oct_picture_init(&whole->picture, s->height, s->width, s->masked, err);
    return e;
}

static enum oct_err open_whole(struct whole *whole, const struct oct_matcher_setup *setup,
                               struct oct_error *err)
{
    whole->setup = *setup;
    describe_search(&whole->full, setup, 1);
    describe_search(&whole->binned, setup, 2);
    const struct oct_correlator_setup *s = &whole->binned.setup;
    const uint32_t side = s->height < s->width ? s->height : s->width;
    const uint32_t shift = s->max_dy < s->max_dx ? s->max_dy : s->max_dx;
    whole->bins = side >= LEAST_BINNED_SIDE && shift >= LEAST_BINNED_SHIFT;
    enum oct_err e = oct_zncc_sums_init(&whole->overlap, setup->width, err);
    whole->samples = malloc(OCT_MATCH_SAMPLES * sizeof(float));
    if (!e && !whole->samples)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    if (!e && whole->bins)
        e = open_binned(whole, err);
    if (!e && (!whole->bins || setup->plans_ahead))
        e = open_search(&whole->full, err);
    return e;
}

static void close_whole(struct whole *whole)
{
    close_search(&whole->full);
    close_search(&whole->binned);
    oct_picture_finish(&whole->picture);
    oct_zncc_sums_finish(&whole->overlap);
    free(whole->samples);
}

/* ---- correlation ---- */

/* The reference of the full search is only set once the full search is wanted. */
static enum oct_err ready_full(struct whole *whole, struct oct_error *err)
{
    enum oct_err e = open_search(&whole->full, err);
    if (e || whole->full.has_reference)
        return e;
    e = oct_correlator_cpu.set_reference(whole->full.correlator, whole->g, err);
    whole->full.has_reference = !e;
    return e;
}

static enum oct_err set_whole_reference(struct whole *whole, const struct oct_level *reference,
                                        const struct oct_picture *g, struct oct_error *err)
{
    whole->reference = reference;
    whole->g = g;
    oct_zncc_sums_forget(&whole->overlap);
    whole->full.has_reference = whole->binned.has_reference = false;
    if (!whole->bins)
        return ready_full(whole, err);
    oct_picture_bin(g, &whole->picture);
    /* A pattern of single pixels has no contrast once binned: the full search is left. */
    if (!oct_picture_has_contrast(&whole->picture))
        return OCT_OK;
    const enum oct_err e =
        oct_correlator_cpu.set_reference(whole->binned.correlator, &whole->picture, err);
    whole->binned.has_reference = !e;
    return e;
}

static enum oct_err correlate(struct search *search, const struct oct_picture *picture,
                              struct oct_error *err)
{
    unsigned which;
    return oct_correlator_cpu.run(search->correlator, picture, 1, search->c2d, &which, err);
}

static struct oct_match no_match(void)
{
    struct oct_match match = {.score = NAN, .significance = NAN};
    for (unsigned i = 0; i < 9; i++)
        match.around[i / 3][i % 3] = NAN;
    return match;
}

/* ---- scores of a resolution ---- */

struct maximum {
    int32_t dy, dx; /* pixels of that resolution */
    float score;
};

/* NaN: it is not defined, or beyond the window. */
static float score_of(const struct search *search, int32_t dy, int32_t dx)
{
    const int32_t max_dy = (int32_t)search->setup.max_dy, max_dx = (int32_t)search->setup.max_dx;
    if (abs(dy) > max_dy || abs(dx) > max_dx)
        return NAN;
    return search->c2d[(size_t)(dy + max_dy) * (2 * (size_t)max_dx + 1) + (size_t)(dx + max_dx)];
}

static float significance_of(const struct whole *whole, const struct search *search,
                             const struct maximum *m)
{
    const struct oct_correlator_setup *s = &search->setup;
    const size_t width = (size_t)2 * s->max_dx + 1, n = width * ((size_t)2 * s->max_dy + 1);
    for (uint32_t k = 0; k < OCT_MATCH_SAMPLES; k++) {
        const size_t at = oct_match_sample(k, n);
        const int32_t dy = (int32_t)(at / width) - (int32_t)s->max_dy;
        const int32_t dx = (int32_t)(at % width) - (int32_t)s->max_dx;
        whole->samples[k] =
            oct_match_value(search->c2d[at], oct_match_part(dy, dx, s->height, s->width));
    }
    return oct_match_significance(
        whole->samples,
        oct_match_value(m->score, oct_match_part(m->dy, m->dx, s->height, s->width)));
}

/* Of the shifts that are sought, the first of equals. Score NaN: none is defined. */
static struct maximum largest_of(const struct search *search)
{
    struct maximum best = {0, 0, NAN};
    for (int32_t dy = -search->sought_dy; dy <= search->sought_dy; dy++)
        for (int32_t dx = -search->sought_dx; dx <= search->sought_dx; dx++) {
            const float score = score_of(search, dy, dx);
            if (score > best.score || (isnan(best.score) && !isnan(score)))
                best = (struct maximum){dy, dx, score};
        }
    return best;
}

static enum oct_err find_full(struct whole *whole, const struct oct_picture *moving,
                              struct oct_match *match, struct oct_error *err)
{
    enum oct_err e = ready_full(whole, err);
    if (!e)
        e = correlate(&whole->full, moving, err);
    if (e)
        return e;
    const struct maximum best = largest_of(&whole->full);
    match->dy = best.dy;
    match->dx = best.dx;
    match->score = best.score;
    if (!isnan(best.score))
        match->significance = significance_of(whole, &whole->full, &best);
    return OCT_OK;
}

/* ---- binned maxima, and how each is climbed ---- */

static bool is_maximum(const struct search *search, const struct maximum *m)
{
    for (int32_t i = 0; i < 9; i++)
        if (score_of(search, m->dy + i / 3 - 1, m->dx + i % 3 - 1) > m->score)
            return false;
    return true;
}

/* Returns how many there are; MOST_MAXIMA + 1: too many. */
static unsigned list_maxima(const struct search *search, struct maximum *maxima)
{
    const float best = largest_of(search).score, least = best * (1.0F - MARGIN);
    unsigned n = 0;
    if (!(best >= LEAST_BINNED_SCORE))
        return MOST_MAXIMA + 1;
    for (int32_t dy = -search->sought_dy; dy <= search->sought_dy; dy++)
        for (int32_t dx = -search->sought_dx; dx <= search->sought_dx; dx++) {
            const struct maximum m = {dy, dx, score_of(search, dy, dx)};
            if (!(m.score >= least) || !is_maximum(search, &m))
                continue;
            if (n == MOST_MAXIMA)
                return MOST_MAXIMA + 1;
            maxima[n++] = m;
        }
    return n;
}

/* The whole pixel nearest to the top of a binned maximum: rarely more than one step away from the
 * maximum at full resolution. */
static struct oct_match start_of(const struct search *search, const struct maximum *maximum)
{
    struct oct_match binned = no_match(), start = no_match();
    double y = 0, x = 0;
    for (int32_t i = 0; i < 9; i++)
        binned.around[i / 3][i % 3] =
            score_of(search, maximum->dy + i / 3 - 1, maximum->dx + i % 3 - 1);
    oct_subpixel_parabola(&binned, &y, &x);
    start.dy = (int32_t)lround(2 * (maximum->dy + fmax(-1, fmin(1, y))));
    start.dx = (int32_t)lround(2 * (maximum->dx + fmax(-1, fmin(1, x))));
    return start;
}

static enum oct_err find_binned(struct whole *whole, const struct oct_picture *moving,
                                struct oct_match *match, bool *found, struct oct_error *err)
{
    struct maximum maxima[MOST_MAXIMA], *best = NULL;
    *found = false;
    if (!whole->binned.has_reference)
        return OCT_OK;
    oct_picture_bin(moving, &whole->picture);
    enum oct_err e = correlate(&whole->binned, &whole->picture, err);
    if (e) /* OCT_E_ARG: a pattern of single pixels has no contrast once binned */
        return e == OCT_E_ARG ? OCT_OK : e;
    unsigned n = list_maxima(&whole->binned, maxima);
    if (n > MOST_MAXIMA)
        return OCT_OK;
    for (unsigned i = 0; i < n; i++) {
        struct oct_match one = start_of(&whole->binned, &maxima[i]);
        oct_zncc_sums_climb(&whole->overlap, &one, whole->setup.max_dy, whole->setup.max_dx, 8);
        if (isnan(match->score) || one.score > match->score) {
            *match = one;
            best = &maxima[i];
        }
    }
    if (best && !isnan(match->score))
        match->significance = significance_of(whole, &whole->binned, best);
    *found = !isnan(match->score);
    return OCT_OK;
}

static enum oct_err find_whole(struct whole *whole, const struct oct_level *moving,
                               const struct oct_picture *picture, struct oct_match *match,
                               struct oct_error *err)
{
    bool found = false;
    enum oct_err e = OCT_OK;
    *match = no_match();
    if (!moving->has_contrast)
        return OCT_OK;
    oct_zncc_sums_begin(&whole->overlap, moving, whole->reference, 0, moving->height,
                        whole->setup.min_overlap);
    if (whole->bins)
        e = find_binned(whole, picture, match, &found, err);
    if (!e && !found) {
        e = find_full(whole, picture, match, err);
        if (!e && !isnan(match->score))
            oct_zncc_sums_climb(&whole->overlap, match, whole->setup.max_dy, whole->setup.max_dx,
                                8);
    }
    return e;
}

/* ---- the engine ---- */

/* What a worker needs for itself. */
struct worker {
    struct whole whole;
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
    struct oct_picture reference_copy;
    struct oct_row_plan *rows;              /* NULL without windows */
    unsigned n;                             /* pictures loaded */
    const struct oct_picture *pictures;     /* [n] */
    const struct oct_match_window *windows; /* while look runs */
    struct oct_match *matches;              /* while find or look runs */
};

static uint32_t side_of(const struct oct_matcher_setup *setup)
{
    return 2 * setup->max_radius + 1;
}

static enum oct_err init_worker(struct oct_matcher *m, struct worker *worker, struct oct_error *err)
{
    const enum oct_err e = open_whole(&worker->whole, &m->setup, err);
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
    close_whole(&worker->whole);
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
    oct_picture_finish(&m->reference_copy);
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
    enum oct_err e = oct_matcher_check(setup, err);
    if (e)
        return e;
    struct oct_matcher *m = calloc(1, sizeof(*m));
    if (!m)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    m->setup = *setup;
    m->setup.n_batch = setup->n_batch ? setup->n_batch : 1;
    /* More workers than pictures or windows at once have nothing to do, but pieces go to any. */
    m->n_workers = setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1;
    e = init(m, err);
    if (e) {
        destroy(m);
        return e;
    }
    *out = m;
    return OCT_OK;
}

/* Runs the pieces, and returns the error of one that failed. */
static enum oct_err run_pieces(struct oct_matcher *m, unsigned n_pieces,
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
    enum oct_err e = set_whole_reference(&m->workers[piece].whole, &m->reference.level,
                                         &m->reference_copy, &w->err);
    w->code = e ? e : w->code;
}

static enum oct_err set_reference(struct oct_matcher *m, const struct oct_picture *reference,
                                  struct oct_error *err)
{
    set_loaded(m, &m->reference, reference, m->workers[0].scratch);
    if (!m->reference.level.has_contrast)
        return oct_fail(err, OCT_E_ARG, "the reference has no contrast");
    oct_picture_finish(&m->reference_copy);
    const enum oct_err e = oct_picture_copy(&m->reference_copy, reference, err);
    return e ? e : run_pieces(m, m->n_workers, set_worker_reference, err);
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
    return run_pieces(m, n, load_one, err);
}

static void find_one(void *context, unsigned piece, unsigned worker)
{
    struct oct_matcher *m = context;
    struct worker *w = &m->workers[worker];
    enum oct_err e = find_whole(&w->whole, &m->loaded[piece].level, &m->pictures[piece],
                                &m->matches[piece], &w->err);
    w->code = e ? e : w->code;
}

static enum oct_err find(struct oct_matcher *m, struct oct_match *matches, struct oct_error *err)
{
    m->matches = matches;
    return run_pieces(m, m->n, find_one, err);
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
    struct oct_zncc_sums *overlap = &w->whole.overlap;
    oct_zncc_sums_move(overlap, dy);
    unsigned n_pairs = oct_zncc_sums_is_masked(overlap) ? 6 : 1;
    bool meets = overlap->end > overlap->first;
    for (unsigned i = 0; i < n_pairs && meets; i++)
        oct_row_products(m->rows, &f->spectra, pairs[i][0], &m->reference.spectra, pairs[i][1],
                         overlap->first, overlap->end, dy, dx0, side, w->scratch,
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
        scores[i] = oct_zncc_sums_score(overlap, dx0 + (int32_t)i, &p);
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
        oct_zncc_sums_begin(&w->whole.overlap, &f->level, &m->reference.level, window->y0,
                            window->n_rows, m->setup.min_window_overlap);
        for (size_t i = 0; i < side; i++)
            score_row(m, w, f, window, window->dy - (int32_t)window->radius + (int32_t)i,
                      w->scores + i * side);
    } else {
        for (size_t i = 0; i < side * side; i++)
            w->scores[i] = NAN;
    }
    m->matches[piece] = best_of(window, w->scores);
}

static enum oct_err look_at_windows(struct oct_matcher *m, const struct oct_match_window *windows,
                                    unsigned n, struct oct_match *matches, struct oct_error *err)
{
    const enum oct_err e = oct_matcher_check_windows(&m->setup, m->n, windows, n, err);
    if (e)
        return e;
    m->windows = windows;
    m->matches = matches;
    return run_pieces(m, n, look_one, err);
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
    .look = look_at_windows,
    .level = level,
    .destroy = destroy,
};
