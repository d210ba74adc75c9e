#include "analysis/align/whole.h"

#include "analysis/align/subpixel.h"
#include "analysis/align/zncc_sums.h"
#include "analysis/correlate/correlate.h"

#include <math.h>
#include <stdlib.h>

/* Sides and shifts below which binning is not worth it. */
#define LEAST_BINNED_SIDE 48u
#define LEAST_BINNED_SHIFT 4u

/* A binned score below this may be a chance maximum, and the true one may be hidden. */
#define LEAST_BINNED_SCORE 0.15F

/* Binned maxima within this part of the best are climbed; more of them than MOST_MAXIMA mean that
 * binning has lost what tells them apart. */
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

struct oct_whole {
    struct oct_matcher_setup setup;
    struct search full, binned;
    bool bins;
    struct oct_picture picture, g_picture; /* binned; only with `bins` */
    struct oct_zncc_sums overlap;
    float *samples; /* [OCT_MATCH_SAMPLES] */
    const struct oct_level *reference;
};

/* ---- life ---- */

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

static enum oct_err open_binned(struct oct_whole *whole, struct oct_error *err)
{
    const struct oct_correlator_setup *s = &whole->binned.setup;
    enum oct_err e = open_search(&whole->binned, err);
    if (!e)
        e = oct_picture_init(&whole->picture, s->height, s->width, s->masked, err);
    if (!e)
        e = oct_picture_init(&whole->g_picture, s->height, s->width, s->masked, err);
    return e;
}

enum oct_err oct_whole_create(struct oct_whole **out, const struct oct_matcher_setup *setup,
                              struct oct_error *err)
{
    *out = NULL;
    if (!setup->height || !setup->width || setup->max_dy >= setup->height ||
        setup->max_dx >= setup->width)
        return oct_fail(err, OCT_E_ARG,
                        "shifts of up to %u, %u of pictures of %u x %u pixels: at most %u, %u",
                        setup->max_dy, setup->max_dx, setup->height, setup->width,
                        setup->height ? setup->height - 1 : 0, setup->width ? setup->width - 1 : 0);
    struct oct_whole *whole = calloc(1, sizeof(*whole));
    if (!whole)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    whole->setup = *setup;
    describe_search(&whole->full, setup, 1);
    describe_search(&whole->binned, setup, 2);
    uint32_t side = whole->binned.setup.height, shift = whole->binned.setup.max_dy;
    side = side < whole->binned.setup.width ? side : whole->binned.setup.width;
    shift = shift < whole->binned.setup.max_dx ? shift : whole->binned.setup.max_dx;
    whole->bins = side >= LEAST_BINNED_SIDE && shift >= LEAST_BINNED_SHIFT;
    enum oct_err e = oct_zncc_sums_init(&whole->overlap, setup->width, err);
    whole->samples = malloc(OCT_MATCH_SAMPLES * sizeof(float));
    if (!e && !whole->samples)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a registration");
    if (!e)
        e = whole->bins ? open_binned(whole, err) : OCT_OK;
    if (!e && (!whole->bins || setup->plans_ahead))
        e = open_search(&whole->full, err);
    if (e) {
        oct_whole_destroy(whole);
        return e;
    }
    *out = whole;
    return OCT_OK;
}

void oct_whole_destroy(struct oct_whole *whole)
{
    if (!whole)
        return;
    close_search(&whole->full);
    close_search(&whole->binned);
    oct_picture_finish(&whole->picture);
    oct_picture_finish(&whole->g_picture);
    oct_zncc_sums_finish(&whole->overlap);
    free(whole->samples);
    free(whole);
}

/* ---- correlation ---- */

/* A level as a picture. With masks the valid bytes are needed: `valid`, or NULL. */
static enum oct_err picture_of(const struct oct_level *level, struct oct_picture *picture,
                               struct oct_error *err)
{
    size_t n = (size_t)level->height * level->width;
    *picture =
        (struct oct_picture){level->height, level->width, level->planes[OCT_PLANE_VALUES], NULL};
    if (!level->is_masked)
        return OCT_OK;
    picture->valid = malloc(n);
    if (!picture->valid)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a mask");
    for (size_t i = 0; i < n; i++)
        picture->valid[i] = level->planes[OCT_PLANE_VALID][i] != 0.0F;
    return OCT_OK;
}

/* The reference of the full search is only set once the full search is wanted. */
static enum oct_err ready_full(struct oct_whole *whole, struct oct_error *err)
{
    struct oct_picture picture = {0};
    enum oct_err e = open_search(&whole->full, err);
    if (e || whole->full.has_reference)
        return e;
    e = picture_of(whole->reference, &picture, err);
    if (!e)
        e = oct_correlator_cpu.set_reference(whole->full.correlator, &picture, err);
    whole->full.has_reference = !e;
    free(picture.valid);
    return e;
}

enum oct_err oct_whole_set_reference(struct oct_whole *whole, const struct oct_level *reference,
                                     struct oct_error *err)
{
    whole->reference = reference;
    oct_zncc_sums_forget(&whole->overlap);
    whole->full.has_reference = whole->binned.has_reference = false;
    if (!whole->bins)
        return ready_full(whole, err);
    oct_level_bin(reference, &whole->g_picture);
    /* A pattern of single pixels has no contrast once binned: the full search is left. */
    if (oct_picture_has_contrast(&whole->g_picture)) {
        enum oct_err e =
            oct_correlator_cpu.set_reference(whole->binned.correlator, &whole->g_picture, err);
        whole->binned.has_reference = !e;
        return e;
    }
    return OCT_OK;
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

static bool is_sought(const struct search *search, int64_t dy, int64_t dx)
{
    return llabs(dy) <= search->sought_dy && llabs(dx) <= search->sought_dx;
}

/* Of a score at (dy, dx) of a resolution, in its pixels. */
static float significance_of(const struct oct_whole *whole, const struct search *search,
                             float score, int32_t dy, int32_t dx)
{
    const struct oct_correlator_setup *s = &search->setup;
    const size_t width = (size_t)2 * s->max_dx + 1, n = width * ((size_t)2 * s->max_dy + 1);
    for (uint32_t k = 0; k < OCT_MATCH_SAMPLES; k++) {
        const size_t at = oct_match_sample(k, n);
        const int32_t at_dy = (int32_t)(at / width) - (int32_t)s->max_dy;
        const int32_t at_dx = (int32_t)(at % width) - (int32_t)s->max_dx;
        whole->samples[k] =
            oct_match_value(search->c2d[at], oct_match_part(at_dy, at_dx, s->height, s->width));
    }
    return oct_match_significance(
        whole->samples, oct_match_value(score, oct_match_part(dy, dx, s->height, s->width)));
}

static enum oct_err find_full(struct oct_whole *whole, const struct oct_level *moving,
                              struct oct_match *match, struct oct_error *err)
{
    struct oct_picture picture = {0};
    enum oct_err e = ready_full(whole, err);
    if (!e)
        e = picture_of(moving, &picture, err);
    if (!e)
        e = correlate(&whole->full, &picture, err);
    free(picture.valid);
    if (e)
        return e;
    const struct oct_correlator_setup *s = &whole->full.setup;
    size_t width = (size_t)2 * s->max_dx + 1, n = width * ((size_t)2 * s->max_dy + 1);
    for (size_t i = 0; i < n; i++) {
        const int32_t dy = (int32_t)(i / width) - (int32_t)s->max_dy;
        const int32_t dx = (int32_t)(i % width) - (int32_t)s->max_dx;
        if (is_sought(&whole->full, dy, dx) && !isnan(whole->full.c2d[i]) &&
            !(match->score >= whole->full.c2d[i])) {
            match->score = whole->full.c2d[i];
            match->dy = dy;
            match->dx = dx;
        }
    }
    if (!isnan(match->score))
        match->significance =
            significance_of(whole, &whole->full, match->score, match->dy, match->dx);
    return OCT_OK;
}

/* ---- binned maxima, and how each is climbed ---- */

struct maximum {
    int32_t dy, dx; /* binned pixels */
    float score;
};

static bool is_maximum(const float *c2d, int64_t y, int64_t x, int64_t height, int64_t width)
{
    float here = c2d[y * width + x];
    for (int64_t v = y > 0 ? y - 1 : 0; v <= y + 1 && v < height; v++)
        for (int64_t u = x > 0 ? x - 1 : 0; u <= x + 1 && u < width; u++)
            if (c2d[v * width + u] > here)
                return false;
    return true;
}

/* Of the shifts that are sought. */
static float largest_of(const struct search *search)
{
    const int32_t max_dy = (int32_t)search->setup.max_dy, max_dx = (int32_t)search->setup.max_dx;
    float best = -2.0F;
    for (int32_t dy = -search->sought_dy; dy <= search->sought_dy; dy++) {
        const float *row =
            search->c2d + (size_t)(dy + max_dy) * (2 * (size_t)max_dx + 1) + (size_t)max_dx;
        for (int32_t dx = -search->sought_dx; dx <= search->sought_dx; dx++)
            best = row[dx] > best ? row[dx] : best; /* NaN is never larger */
    }
    return best;
}

/* Returns how many there are; MOST_MAXIMA + 1: too many. */
static unsigned list_maxima(const struct search *search, struct maximum *maxima)
{
    const struct oct_correlator_setup *s = &search->setup;
    int64_t width = 2 * (int64_t)s->max_dx + 1, height = 2 * (int64_t)s->max_dy + 1;
    float best = largest_of(search);
    float least = best * (1.0F - MARGIN);
    unsigned n = 0;
    if (best < LEAST_BINNED_SCORE)
        return MOST_MAXIMA + 1;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            float score = search->c2d[y * width + x];
            if (!(score >= least) || !is_sought(search, y - s->max_dy, x - s->max_dx) ||
                !is_maximum(search->c2d, y, x, height, width))
                continue;
            if (n == MOST_MAXIMA)
                return MOST_MAXIMA + 1;
            maxima[n++] =
                (struct maximum){(int32_t)(y - s->max_dy), (int32_t)(x - s->max_dx), score};
        }
    return n;
}

static bool is_searched(const struct oct_whole *whole, int32_t dy, int32_t dx)
{
    return (uint32_t)abs(dy) <= whole->setup.max_dy && (uint32_t)abs(dx) <= whole->setup.max_dx;
}

static float score_at(struct oct_whole *whole, int32_t dy, int32_t dx)
{
    return is_searched(whole, dy, dx) ? oct_zncc_sums_score_at(&whole->overlap, dy, dx) : NAN;
}

static void score_around(struct oct_whole *whole, int32_t dy, int32_t dx, float around[3][3])
{
    oct_zncc_sums_score_around(&whole->overlap, dy, dx, around);
    for (int32_t i = 0; i < 9; i++)
        if (!is_searched(whole, dy + i / 3 - 1, dx + i % 3 - 1))
            around[i / 3][i % 3] = NAN;
}

/* Climbs from *match to where no neighbour is higher. `around` holds the scores there. */
static void climb(struct oct_whole *whole, struct oct_match *match)
{
    float(*around)[3] = match->around;
    score_around(whole, match->dy, match->dx, around);
    match->score = around[1][1];
    for (unsigned step = 0; step < 8; step++) {
        unsigned best = 4;
        for (unsigned i = 0; i < 9; i++) {
            float *score = &around[i / 3][i % 3];
            if (isnan(*score))
                *score = score_at(whole, match->dy + (int32_t)(i / 3) - 1,
                                  match->dx + (int32_t)(i % 3) - 1);
            if (!isnan(*score) && !(around[best / 3][best % 3] >= *score))
                best = i;
        }
        int32_t by = (int32_t)(best / 3) - 1, bx = (int32_t)(best % 3) - 1;
        if (best == 4)
            return;
        struct oct_match next = no_match();
        next.dy = match->dy + by;
        next.dx = match->dx + bx;
        for (int32_t y = 0; y < 3; y++)
            for (int32_t x = 0; x < 3; x++)
                if (y + by >= 0 && y + by < 3 && x + bx >= 0 && x + bx < 3)
                    next.around[y][x] = around[y + by][x + bx];
        next.score = next.around[1][1];
        *match = next;
        around = match->around;
    }
}

/* The whole pixel nearest to the top of a binned maximum: rarely more than one step away from the
 * maximum at full resolution. */
static struct oct_match start_of(const struct search *search, const struct maximum *maximum)
{
    const int32_t max_dy = (int32_t)search->setup.max_dy, max_dx = (int32_t)search->setup.max_dx;
    struct oct_match binned = no_match(), start = no_match();
    double y = 0, x = 0;
    for (int32_t i = 0; i < 9; i++) {
        const int32_t v = maximum->dy + i / 3 - 1, u = maximum->dx + i % 3 - 1;
        if (abs(v) <= max_dy && abs(u) <= max_dx)
            binned.around[i / 3][i % 3] = search->c2d[(v + max_dy) * (2 * max_dx + 1) + u + max_dx];
    }
    oct_subpixel_parabola(&binned, &y, &x);
    start.dy = (int32_t)lround(2 * (maximum->dy + fmax(-1, fmin(1, y))));
    start.dx = (int32_t)lround(2 * (maximum->dx + fmax(-1, fmin(1, x))));
    return start;
}

static enum oct_err find_binned(struct oct_whole *whole, const struct oct_level *moving,
                                struct oct_match *match, bool *found, struct oct_error *err)
{
    struct maximum maxima[MOST_MAXIMA], *best = NULL;
    *found = false;
    oct_level_bin(moving, &whole->picture);
    if (!whole->binned.has_reference)
        return OCT_OK;
    enum oct_err e = correlate(&whole->binned, &whole->picture, err);
    if (e) /* OCT_E_ARG: a pattern of single pixels has no contrast once binned */
        return e == OCT_E_ARG ? OCT_OK : e;
    unsigned n = list_maxima(&whole->binned, maxima);
    if (n > MOST_MAXIMA)
        return OCT_OK;
    for (unsigned i = 0; i < n; i++) {
        struct oct_match one = start_of(&whole->binned, &maxima[i]);
        climb(whole, &one);
        if (isnan(match->score) || one.score > match->score) {
            *match = one;
            best = &maxima[i];
        }
    }
    if (best && !isnan(match->score))
        match->significance =
            significance_of(whole, &whole->binned, best->score, best->dy, best->dx);
    *found = !isnan(match->score);
    return OCT_OK;
}

enum oct_err oct_whole_find(struct oct_whole *whole, const struct oct_level *moving,
                            struct oct_match *match, struct oct_error *err)
{
    bool found = false;
    enum oct_err e = OCT_OK;
    *match = no_match();
    if (!moving->has_contrast)
        return OCT_OK;
    oct_zncc_sums_begin(&whole->overlap, moving, whole->reference, 0, moving->height,
                        whole->setup.min_overlap);
    if (whole->bins)
        e = find_binned(whole, moving, match, &found, err);
    if (!e && !found) {
        e = find_full(whole, moving, match, err);
        if (!e && !isnan(match->score))
            climb(whole, match);
    }
    return e;
}
