#include "analysis/align/strips.h"

#include "analysis/align/matcher.h"
#include "analysis/align/subpixel.h"
#include "numeric/order.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_STRIP_OVERLAP 0.5
#define LEAST_PICTURE_OVERLAP 0.3
#define FAR_PART 0.8
#define MOST_JUMP 1.5 /* px a line */

/* Where a picture's search stands. */
struct track {
    struct oct_match whole;
    double chance; /* standard deviation of values of scores (oct_match_value) by chance */
    int32_t up_y, up_x, down_y, down_x; /* shift of the last good strip in each direction */
};

struct oct_strips {
    struct oct_strips_setup setup;
    uint32_t n_strips;
    const struct oct_matcher_ops *ops;
    struct oct_matcher *matcher;
    struct track *tracks;             /* [n_batch] */
    struct oct_match_window *windows; /* [n_batch][n_strips] */
    struct oct_match *matches;        /* likewise */
    uint32_t *sought;                 /* likewise: the strip of each window */
    float *scores;                    /* likewise: for medians */
};

uint32_t oct_strips_count(uint32_t height, uint32_t rows, uint32_t step)
{
    return rows < 2 || rows > height || step == 0 ? 0 : (height - rows) / step + 1;
}

static bool allocate(struct oct_strips *s)
{
    size_t n = s->setup.n_batch, all = n * s->n_strips;
    s->tracks = calloc(n, sizeof(*s->tracks));
    s->windows = calloc(all, sizeof(*s->windows));
    s->matches = calloc(all, sizeof(*s->matches));
    s->sought = calloc(all, sizeof(*s->sought));
    s->scores = calloc(all, sizeof(*s->scores));
    return s->tracks && s->windows && s->matches && s->sought && s->scores;
}

static enum oct_err init(struct oct_strips *s, struct oct_error *err)
{
    const struct oct_strips_setup *setup = &s->setup;
    const struct oct_matcher_setup matcher = {
        .height = setup->height,
        .width = setup->width,
        .max_dy = setup->max_dy,
        .max_dx = setup->max_dx,
        .min_overlap = LEAST_PICTURE_OVERLAP,
        .max_rows = setup->rows,
        .max_radius = setup->far > setup->search ? setup->far : setup->search,
        .min_window_overlap = LEAST_STRIP_OVERLAP,
        .masked = setup->masked,
        .n_batch = setup->n_batch,
        .workers = setup->workers,
        .gpus = setup->gpus,
        .deadline_ms = setup->deadline_ms,
    };
    if (!allocate(s))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for strips");
    return oct_matcher_select(&s->ops, &s->matcher, setup->backend, &matcher, err);
}

enum oct_err oct_strips_create(struct oct_strips **out, const struct oct_strips_setup *setup,
                               struct oct_error *err)
{
    *out = NULL;
    uint32_t n_strips = oct_strips_count(setup->height, setup->rows, setup->step);
    if (n_strips == 0 || setup->search == 0)
        return oct_fail(err, OCT_E_ARG,
                        "strips of %u lines every %u, search %u px: at least 2, 1 and 1, and at "
                        "most the %u lines of a picture",
                        setup->rows, setup->step, setup->search, setup->height);
    struct oct_strips *s = calloc(1, sizeof(*s));
    if (!s)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for strips");
    s->setup = *setup;
    s->setup.n_batch = setup->n_batch ? setup->n_batch : 1;
    s->n_strips = n_strips;
    enum oct_err e = init(s, err);
    if (e) {
        oct_strips_destroy(s);
        return e;
    }
    *out = s;
    return OCT_OK;
}

void oct_strips_destroy(struct oct_strips *s)
{
    if (!s)
        return;
    if (s->matcher)
        s->ops->destroy(s->matcher);
    free(s->tracks);
    free(s->windows);
    free(s->matches);
    free(s->sought);
    free(s->scores);
    free(s);
}

enum oct_err oct_strips_set_reference(struct oct_strips *s, const struct oct_picture *reference,
                                      struct oct_error *err)
{
    if (!oct_picture_has_contrast(reference))
        return oct_fail(err, OCT_E_ARG,
                        "the reference has no contrast, or less than a tenth of it is valid");
    return s->ops->set_reference(s->matcher, reference, err);
}

const char *oct_strips_running(const struct oct_strips *s)
{
    return s->ops->running ? s->ops->running(s->matcher) : s->ops->name;
}

/* ---- the search ---- */

static int32_t clamp(int32_t value, uint32_t most)
{
    int32_t m = (int32_t)most;
    return value < -m ? -m : value > m ? m : value;
}

static void ask(struct oct_strips *s, unsigned *n, unsigned picture, uint32_t strip, int32_t dy,
                int32_t dx, uint32_t radius)
{
    const struct oct_strips_setup *setup = &s->setup;
    s->sought[*n] = strip;
    s->windows[(*n)++] = (struct oct_match_window){
        .picture = picture,
        .y0 = strip * setup->step,
        .n_rows = setup->rows,
        .dy = clamp(dy, setup->max_dy + setup->search),
        .dx = clamp(dx, setup->max_dx + setup->search),
        .radius = radius,
    };
}

static void keep(struct oct_strip *strip, const struct oct_match *match)
{
    double y, x;
    oct_subpixel_parabola(match, &y, &x);
    *strip = (struct oct_strip){(float)(match->dy + y), (float)(match->dx + x), match->score, true};
}

/* The score that has the whole picture's significance has so many standard deviations. */
static double chance_of(const struct oct_strips *s, const struct oct_match *whole)
{
    const struct oct_strips_setup *setup = &s->setup;
    const float part = oct_match_part(whole->dy, whole->dx, setup->height, setup->width);
    /* NaN: nothing stands out of it. */
    return (double)(oct_match_value(whole->score, part) / whole->significance);
}

/* As many pixels as a window has on the reference, as part of the picture's. */
static double part_of(const struct oct_strips *s, const struct oct_match_window *window,
                      const struct oct_match *match)
{
    const struct oct_strips_setup *setup = &s->setup;
    const int64_t top = (int64_t)window->y0 + match->dy, end = top + window->n_rows;
    const int64_t rows = (end < setup->height ? end : setup->height) - (top > 0 ? top : 0);
    return (double)rows / setup->height * (1 - fabs((double)match->dx) / setup->width);
}

static bool is_match(const struct oct_strips *s, const struct oct_match_window *window,
                     const struct oct_match *match, double stands_out)
{
    const double score = (double)match->score;
    const double least = stands_out * s->tracks[window->picture].chance;
    const float part = (float)fmax(0, part_of(s, window, match));
    return score >= s->setup.min_score && (double)oct_match_value(match->score, part) >= least &&
           oct_match_is_inside(match, window->radius, window->radius);
}

/* One round of step 2: the strips `off` away from the middle, of all pictures. */
static enum oct_err search_near(struct oct_strips *s, unsigned n_pictures, uint32_t off,
                                struct oct_strip *found, struct oct_error *err)
{
    uint32_t middle = s->n_strips / 2;
    unsigned n = 0;
    for (unsigned i = 0; i < n_pictures; i++) {
        const struct track *t = &s->tracks[i];
        if (isnan(t->whole.score))
            continue;
        if (off <= middle)
            ask(s, &n, i, middle - off, t->up_y, t->up_x, s->setup.search);
        if (off > 0 && middle + off < s->n_strips)
            ask(s, &n, i, middle + off, t->down_y, t->down_x, s->setup.search);
    }
    enum oct_err e = s->ops->look(s->matcher, s->windows, n, s->matches, err);
    for (unsigned i = 0; i < n && !e; i++) {
        const struct oct_match *match = &s->matches[i];
        struct track *t = &s->tracks[s->windows[i].picture];
        uint32_t strip = s->sought[i];
        if (!is_match(s, &s->windows[i], match, OCT_STRIP_STANDS_OUT_NEAR))
            continue;
        keep(&found[(size_t)s->windows[i].picture * s->n_strips + strip], match);
        if (strip <= middle) {
            t->up_y = match->dy;
            t->up_x = match->dx;
        }
        if (strip >= middle) {
            t->down_y = match->dy;
            t->down_x = match->dx;
        }
    }
    return e;
}

static double median_score(const struct oct_strip *strips, size_t n_strips, float *scratch)
{
    size_t n = 0;
    for (size_t i = 0; i < n_strips; i++)
        if (strips[i].ok)
            scratch[n++] = strips[i].score;
    return oct_floats_median(scratch, n);
}

double oct_strips_score(const struct oct_strip *strips, uint32_t n_strips)
{
    float *scratch = malloc((n_strips + 1) * sizeof(float));
    double score = scratch ? median_score(strips, n_strips, scratch) : (double)NAN;
    free(scratch);
    return score;
}

/* Step 3. A picture without any good strip is measured by the others of the call. */
static enum oct_err search_far(struct oct_strips *s, unsigned n_pictures, struct oct_strip *found,
                               struct oct_error *err)
{
    double of_all = median_score(found, (size_t)n_pictures * s->n_strips, s->scores);
    unsigned n = 0;
    for (unsigned i = 0; i < n_pictures; i++)
        for (uint32_t k = 0; k < s->n_strips && !isnan(s->tracks[i].whole.score); k++)
            if (!found[i * s->n_strips + k].ok)
                ask(s, &n, i, k, s->tracks[i].whole.dy, s->tracks[i].whole.dx, s->setup.far);
    enum oct_err e = n ? s->ops->look(s->matcher, s->windows, n, s->matches, err) : OCT_OK;
    unsigned last = UINT32_MAX;
    double least = 0;
    for (unsigned i = 0; i < n && !e; i++) {
        const struct oct_match *match = &s->matches[i];
        unsigned picture = s->windows[i].picture;
        if (picture != last) { /* windows of a picture follow one another */
            least = median_score(found + (size_t)picture * s->n_strips, s->n_strips, s->scores);
            least = FAR_PART * (isnan(least) ? of_all : least);
            last = picture;
        }
        bool is_good = is_match(s, &s->windows[i], match, OCT_STRIP_STANDS_OUT_FAR) &&
                       (double)match->score >= least; /* never, where there is no median */
        struct oct_strip *strip = &found[(size_t)picture * s->n_strips + s->sought[i]];
        keep(strip, match);
        strip->ok = is_good;
    }
    return e;
}

static bool jumps(const struct oct_strip *a, const struct oct_strip *b, uint32_t lines)
{
    double most = MOST_JUMP * lines;
    return fabs((double)a->dy - (double)b->dy) > most || fabs((double)a->dx - (double)b->dx) > most;
}

/* The next good strip in a direction, or -1. */
static int64_t neighbour(const struct oct_strip *strips, int64_t n, int64_t i, int64_t by)
{
    for (i += by; i >= 0 && i < n; i += by)
        if (strips[i].ok)
            return i;
    return -1;
}

/* Step 4: first those between two others, then the outermost. */
static void drop_jumps(struct oct_strip *strips, uint32_t n, uint32_t step)
{
    for (unsigned pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++) {
            int64_t a = neighbour(strips, n, i, -1), b = neighbour(strips, n, i, 1);
            bool is_outermost = a < 0 || b < 0;
            if (!strips[i].ok || (pass == 0 && is_outermost) || (a < 0 && b < 0))
                continue;
            bool from_a = a < 0 || jumps(&strips[i], &strips[a], (i - (uint32_t)a) * step);
            bool from_b = b < 0 || jumps(&strips[i], &strips[b], ((uint32_t)b - i) * step);
            if (from_a && from_b)
                strips[i].ok = false;
        }
}

enum oct_err oct_strips_find(struct oct_strips *s, const struct oct_picture *pictures, unsigned n,
                             struct oct_strip *found, struct oct_error *err)
{
    enum oct_err e = s->ops->load(s->matcher, pictures, n, err);
    if (!e)
        e = s->ops->find(s->matcher, s->matches, err);
    for (unsigned i = 0; i < n && !e; i++) {
        const struct oct_match *w = &s->matches[i];
        s->tracks[i] = (struct track){*w, chance_of(s, w), w->dy, w->dx, w->dy, w->dx};
    }
    for (size_t i = 0; i < (size_t)n * s->n_strips; i++)
        found[i] = (struct oct_strip){.score = NAN};
    for (uint32_t off = 0; off <= s->n_strips / 2 && !e; off++)
        e = search_near(s, n, off, found, err);
    if (!e && s->setup.far > s->setup.search)
        e = search_far(s, n, found, err);
    for (unsigned i = 0; i < n && !e; i++)
        drop_jumps(found + (size_t)i * s->n_strips, s->n_strips, s->setup.step);
    return e;
}

/* ---- lines ---- */

bool oct_strips_lines(const struct oct_strip *strips, uint32_t n_strips, uint32_t rows,
                      uint32_t step, uint32_t first_row, uint32_t height, double *dy, double *dx)
{
    uint32_t n_ok = 0;
    for (uint32_t i = 0; i < n_strips; i++)
        n_ok += strips[i].ok;
    if (n_ok * 2 < n_strips || n_ok == 0)
        return false;
    int64_t before = -1, after = neighbour(strips, n_strips, -1, 1);
    for (uint32_t y = 0; y < height; y++) {
        double at = (y - (double)first_row - 0.5 * (rows - 1)) / step; /* in strips */
        while (after >= 0 && at >= (double)after) {
            before = after;
            after = neighbour(strips, n_strips, after, 1);
        }
        const struct oct_strip *a = &strips[before < 0 ? after : before];
        const struct oct_strip *b = &strips[after < 0 ? before : after];
        double part = a == b ? 0 : (at - (double)before) / (double)(after - before);
        dy[y] = (double)a->dy + part * ((double)b->dy - (double)a->dy);
        dx[y] = (double)a->dx + part * ((double)b->dx - (double)a->dx);
    }
    return true;
}
