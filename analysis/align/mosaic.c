#include "analysis/align/mosaic.h"

#include "analysis/align/level.h"
#include "analysis/align/matcher.h"
#include "analysis/align/prepare.h"
#include "analysis/align/subpixel.h"
#include "analysis/correlate/correlate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COARSE_SIDE 256u
#define MOST_LEVELS 8u

/* Coarse maxima that are followed: the highest this far around, at least this part of the best. */
#define MOST_MAXIMA 6u
#define APART 4
#define LEAST_PART 0.5

/* At every level the shift of the coarser one is sought again this far around. */
#define REACH 2

/* One picture at all resolutions: levels[0] is the picture, each next one is binned 2 x 2. */
struct pyramid {
    struct oct_picture levels[MOST_LEVELS];
};

struct candidate {
    int32_t dy, dx;
    double score;
};

struct overlaps {
    unsigned n, n_levels, first;   /* first: of the pairs that are asked for */
    struct pyramid *pyramids;      /* [n]; levels[0] is borrowed */
    struct oct_picture *padded;    /* [n]: the coarsest level, all of one size */
    struct oct_correlator *coarse; /* of two padded ones */
    struct oct_correlator_setup how;
    float *c2d;
    float *samples; /* [OCT_MATCH_SAMPLES] */
};

/* ---- resolutions ---- */

static enum oct_err make_pyramid(const struct overlaps *f, struct pyramid *pyramid,
                                 const struct oct_picture *picture, struct oct_error *err)
{
    enum oct_err e = OCT_OK;

    pyramid->levels[0] = *picture;
    for (unsigned l = 1; !e && l < f->n_levels; l++) {
        const struct oct_picture *finer = &pyramid->levels[l - 1];
        e = oct_picture_init(&pyramid->levels[l], finer->height / 2, finer->width / 2,
                             finer->valid != NULL, err);
        if (!e)
            oct_picture_bin(finer, &pyramid->levels[l]);
    }
    return e;
}

/* Into the upper left of a larger one, masked elsewhere. */
static enum oct_err pad(struct oct_picture *to, uint32_t height, uint32_t width,
                        const struct oct_picture *from, struct oct_error *err)
{
    enum oct_err e = oct_picture_init(to, height, width, true, err);

    if (e)
        return e;
    memset(to->pixels, 0, (size_t)height * width * sizeof(float));
    memset(to->valid, 0, (size_t)height * width);
    for (uint32_t y = 0; y < from->height; y++)
        for (uint32_t x = 0; x < from->width; x++) {
            size_t at = (size_t)y * from->width + x, there = (size_t)y * width + x;
            to->valid[there] = oct_picture_is_valid(from, at);
            to->pixels[there] = to->valid[there] ? from->pixels[at] : 0.0F;
        }
    return OCT_OK;
}

static void close_overlaps(struct overlaps *f)
{
    for (unsigned i = 0; f->pyramids && i < f->n; i++)
        for (unsigned l = 1; l < MOST_LEVELS; l++)
            oct_picture_finish(&f->pyramids[i].levels[l]);
    for (unsigned i = 0; f->padded && i < f->n; i++)
        oct_picture_finish(&f->padded[i]);
    if (f->coarse)
        oct_correlator_cpu.destroy(f->coarse);
    free(f->pyramids);
    free(f->padded);
    free(f->c2d);
    free(f->samples);
}

static enum oct_err make_coarse(struct overlaps *f, uint32_t height, uint32_t width,
                                double min_overlap, struct oct_error *err)
{
    size_t n_shifts = ((size_t)2 * height - 1) * ((size_t)2 * width - 1);

    f->how = (struct oct_correlator_setup){.height = height,
                                           .width = width,
                                           .g_height = height,
                                           .g_width = width,
                                           .max_dy = height - 1,
                                           .max_dx = width - 1,
                                           .norm = OCT_CORRELATION_ZNCC,
                                           .masked = true,
                                           .min_overlap = min_overlap,
                                           .n_batch = 1};
    f->c2d = malloc(n_shifts * sizeof(float));
    f->samples = malloc(OCT_MATCH_SAMPLES * sizeof(float));
    if (!f->c2d || !f->samples)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a mosaic of %u pictures", f->n);
    return oct_correlator_cpu.create(&f->coarse, &f->how, err);
}

/* pictures: [n], as oct_align_prepare leaves them, borrowed until close. min_overlap: part of the
 * smaller picture. On error close_overlaps is still due. */
static enum oct_err open_overlaps(struct overlaps *f, const struct oct_picture *pictures,
                                  unsigned n, double min_overlap, struct oct_error *err)
{
    uint32_t most = 0, least = UINT32_MAX, height = 0, width = 0;
    enum oct_err e = OCT_OK;

    *f = (struct overlaps){.n = n, .n_levels = 1};
    for (unsigned i = 0; i < n; i++) {
        uint32_t h = pictures[i].height, w = pictures[i].width;
        most = h > most ? h : most;
        most = w > most ? w : most;
        least = h < least ? h : least;
        least = w < least ? w : least;
    }
    while (f->n_levels < MOST_LEVELS && most >> (f->n_levels - 1) > MOST_COARSE_SIDE &&
           least >> f->n_levels >= OCT_PICTURE_LEAST_SIDE)
        f->n_levels++;
    f->pyramids = calloc((size_t)n + 1, sizeof(*f->pyramids));
    f->padded = calloc((size_t)n + 1, sizeof(*f->padded));
    if (!f->pyramids || !f->padded)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a mosaic of %u pictures", n);
    for (unsigned i = 0; !e && i < n; i++) {
        e = make_pyramid(f, &f->pyramids[i], &pictures[i], err);
        const struct oct_picture *coarsest = &f->pyramids[i].levels[f->n_levels - 1];
        height = coarsest->height > height ? coarsest->height : height;
        width = coarsest->width > width ? coarsest->width : width;
    }
    for (unsigned i = 0; !e && i < n; i++)
        e = pad(&f->padded[i], height, width, &f->pyramids[i].levels[f->n_levels - 1], err);
    return e ? e : make_coarse(f, height, width, min_overlap, err);
}

/* ---- one pair ---- */

/* Where b at (dy, dx) of a lies on a, in a's pixels: [y0, y1) x [x0, x1). */
struct common {
    int32_t y0, y1, x0, x1;
};

static struct common common_of(const struct oct_picture *a, const struct oct_picture *b, int32_t dy,
                               int32_t dx)
{
    int32_t h = (int32_t)b->height + dy, w = (int32_t)b->width + dx;

    return (struct common){.y0 = dy > 0 ? dy : 0,
                           .x0 = dx > 0 ? dx : 0,
                           .y1 = h < (int32_t)a->height ? h : (int32_t)a->height,
                           .x1 = w < (int32_t)a->width ? w : (int32_t)a->width};
}

/* ZNCC of b at (dy, dx) of a; NaN where they overlap by less than `least` pixels. Values lie far
 * from 0 and differ little: sums are of differences to the first pair, in double. */
static double zncc(const struct oct_picture *a, const struct oct_picture *b, int32_t dy, int32_t dx,
                   double least)
{
    struct common c = common_of(a, b, dy, dx);
    double n = 0, s_a = 0, s_b = 0, s_aa = 0, s_bb = 0, s_ab = 0, a0 = NAN, b0 = NAN;

    for (int32_t y = c.y0; y < c.y1; y++)
        for (int32_t x = c.x0; x < c.x1; x++) {
            size_t at = (size_t)y * a->width + (size_t)x;
            size_t of_b = (size_t)(y - dy) * b->width + (size_t)(x - dx);
            if (!oct_picture_is_valid(a, at) || !oct_picture_is_valid(b, of_b))
                continue;
            if (n == 0) {
                a0 = (double)a->pixels[at];
                b0 = (double)b->pixels[of_b];
            }
            double u = (double)a->pixels[at] - a0, v = (double)b->pixels[of_b] - b0;
            n++;
            s_a += u;
            s_b += v;
            s_aa += u * u;
            s_bb += v * v;
            s_ab += u * v;
        }
    double spread = (s_aa - s_a * s_a / n) * (s_bb - s_b * s_b / n);
    return n >= least && n > 0 && spread > 0 ? (s_ab - s_a * s_b / n) / sqrt(spread) : (double)NAN;
}

/* The same at the whole pixel nearest to (dy, dx). */
static double score_at(const struct oct_picture *a, const struct oct_picture *b, double dy,
                       double dx)
{
    return zncc(a, b, (int32_t)lround(dy), (int32_t)lround(dx), 1);
}

static double least_pixels(const struct oct_picture *a, const struct oct_picture *b, double part)
{
    double n_a = (double)a->height * a->width, n_b = (double)b->height * b->width;

    return part * (n_a < n_b ? n_a : n_b);
}

/* Of the coarse correlation; NaN: not defined, or beyond all shifts. */
static float score_of(const struct overlaps *f, int32_t dy, int32_t dx)
{
    const int32_t max_dy = (int32_t)f->how.max_dy, max_dx = (int32_t)f->how.max_dx;

    if (abs(dy) > max_dy || abs(dx) > max_dx)
        return NAN;
    return f->c2d[(size_t)(dy + max_dy) * (2 * (size_t)max_dx + 1) + (size_t)(dx + max_dx)];
}

/* Whether the score of a shift is the highest within APART of it. */
static bool is_highest(const struct overlaps *f, int32_t dy, int32_t dx)
{
    const float here = score_of(f, dy, dx);

    for (int32_t v = -APART; v <= APART; v++)
        for (int32_t u = -APART; u <= APART; u++)
            if (score_of(f, dy + v, dx + u) > here) /* false of NaN */
                return false;
    return true;
}

static void put_in(struct candidate *list, unsigned *n, struct candidate c)
{
    unsigned at = *n < MOST_MAXIMA ? (*n)++ : MOST_MAXIMA - 1;

    for (; at > 0 && list[at - 1].score < c.score; at--)
        list[at] = list[at - 1];
    list[at] = c;
}

/* Pixels that both have at a shift of the coarse correlation, as part of the smaller one. */
static float part_at(const struct overlaps *f, unsigned second, int32_t dy, int32_t dx)
{
    const struct oct_picture *a = &f->pyramids[f->first].levels[f->n_levels - 1];
    const struct oct_picture *b = &f->pyramids[second].levels[f->n_levels - 1];
    const struct common c = common_of(a, b, dy, dx);
    const double n = fmax(0, c.y1 - c.y0) * fmax(0, c.x1 - c.x0);
    return (float)(n / least_pixels(a, b, 1));
}

static double significance_of(const struct overlaps *f, unsigned second, const struct candidate *c)
{
    const int32_t max_dy = (int32_t)f->how.max_dy, max_dx = (int32_t)f->how.max_dx;
    const size_t width = 2 * (size_t)max_dx + 1, n = width * (2 * (size_t)max_dy + 1);
    for (int32_t i = 0; i < 9; i++)
        if (isnan(score_of(f, c->dy + i / 3 - 1, c->dx + i % 3 - 1)))
            return -1;
    for (uint32_t k = 0; k < OCT_MATCH_SAMPLES; k++) {
        const size_t at = oct_match_sample(k, n);
        f->samples[k] =
            oct_match_value(f->c2d[at], part_at(f, second, (int32_t)(at / width) - max_dy,
                                                (int32_t)(at % width) - max_dx));
    }
    const float part = part_at(f, second, c->dy, c->dx);
    return (double)oct_match_significance(f->samples, oct_match_value((float)c->score, part));
}

/* The highest maxima of the coarse correlation, the highest first. */
static unsigned list_maxima(const struct overlaps *f, struct candidate list[MOST_MAXIMA])
{
    const int32_t max_dy = (int32_t)f->how.max_dy, max_dx = (int32_t)f->how.max_dx;
    unsigned n = 0, kept = 0;

    for (int32_t dy = -max_dy; dy <= max_dy; dy++)
        for (int32_t dx = -max_dx; dx <= max_dx; dx++) {
            const double score = (double)score_of(f, dy, dx);
            const bool may = score > 0 && (n < MOST_MAXIMA || score > list[n - 1].score);
            if (may && is_highest(f, dy, dx))
                put_in(list, &n, (struct candidate){dy, dx, score});
        }
    while (kept < n && list[kept].score >= LEAST_PART * list[0].score)
        kept++;
    return kept;
}

/* The best shift within REACH of `c` at a level. */
static struct candidate improve(const struct oct_picture *a, const struct oct_picture *b,
                                struct candidate c, double part)
{
    struct candidate best = {.dy = c.dy, .dx = c.dx, .score = NAN};
    double least = least_pixels(a, b, part);

    for (int32_t dy = c.dy - REACH; dy <= c.dy + REACH; dy++)
        for (int32_t dx = c.dx - REACH; dx <= c.dx + REACH; dx++) {
            double score = zncc(a, b, dy, dx, least);
            if (score > best.score || (isnan(best.score) && !isnan(score)))
                best = (struct candidate){dy, dx, score};
        }
    return best;
}

/* The common part of the two, c on a; masked where either is. */
static enum oct_err cut(const struct oct_picture *a, const struct oct_picture *b, struct common c,
                        int32_t dy, int32_t dx, struct oct_picture parts[2], struct oct_error *err)
{
    uint32_t height = (uint32_t)(c.y1 - c.y0), width = (uint32_t)(c.x1 - c.x0);
    bool masked = a->valid || b->valid;
    enum oct_err e = oct_picture_init(&parts[0], height, width, masked, err);

    e = e ? e : oct_picture_init(&parts[1], height, width, masked, err);
    for (uint32_t y = 0; !e && y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            size_t at = (size_t)y * width + x;
            size_t on_a = (size_t)(c.y0 + (int32_t)y) * a->width + (size_t)(c.x0 + (int32_t)x);
            size_t on_b =
                (size_t)(c.y0 + (int32_t)y - dy) * b->width + (size_t)(c.x0 + (int32_t)x - dx);
            parts[0].pixels[at] = a->pixels[on_a];
            parts[1].pixels[at] = b->pixels[on_b];
            if (masked)
                parts[0].valid[at] = parts[1].valid[at] =
                    oct_picture_is_valid(a, on_a) && oct_picture_is_valid(b, on_b);
        }
    return e;
}

/* Adds the fraction of a pixel to an edge of a and b that is right to the pixel. */
static enum oct_err refine(const struct oct_picture *a, const struct oct_picture *b,
                           struct oct_mosaic_edge *edge, struct oct_error *err)
{
    int32_t dy = (int32_t)lround(edge->dy), dx = (int32_t)lround(edge->dx);
    struct oct_picture parts[2] = {{0}};
    struct oct_level levels[2] = {{0}};
    struct oct_subpixel *subpixel = NULL;
    struct oct_fraction fraction = {.y = 0};
    enum oct_err e = cut(a, b, common_of(a, b, dy, dx), dy, dx, parts, err);

    for (int i = 0; !e && i < 2; i++) {
        e = oct_level_init(&levels[i], parts[i].height, parts[i].width, parts[i].valid != NULL,
                           err);
        if (!e)
            oct_level_set(&levels[i], &parts[i]);
    }
    if (!e)
        e = oct_subpixel_create(&subpixel, parts[0].height, parts[0].width, err);
    if (!e && levels[0].has_contrast && levels[1].has_contrast) {
        oct_subpixel_even(subpixel);
        oct_subpixel_find(subpixel, &levels[1], &levels[0], 0, 0, &fraction);
        edge->dy += fraction.y;
        edge->dx += fraction.x;
    }
    oct_subpixel_destroy(subpixel);
    for (int i = 0; i < 2; i++) {
        oct_level_finish(&levels[i]);
        oct_picture_finish(&parts[i]);
    }
    return e;
}

/* The best whole-pixel shift of an edge's second picture on the first. Its significance is that of
 * the binned pictures, -1 at the border of what may overlap, where the true maximum may lie beyond;
 * it stays where none was found. */
static enum oct_err find_overlap(struct overlaps *f, struct oct_mosaic_edge *edge,
                                 struct oct_error *err)
{
    const struct pyramid *a = &f->pyramids[f->first], *b = &f->pyramids[edge->b];
    struct candidate list[MOST_MAXIMA] = {{0}};
    unsigned which, best = 0;
    enum oct_err e = oct_correlator_cpu.run(f->coarse, &f->padded[edge->b], 1, f->c2d, &which, err);

    if (e)
        return e;
    unsigned n = list_maxima(f, list);
    for (unsigned i = 0; i < n; i++) {
        struct candidate c = list[i];
        for (unsigned l = f->n_levels - 1; l-- > 0;) {
            c.dy *= 2;
            c.dx *= 2;
            /* The level above may have counted a little more of an overlap at the limit. */
            c = improve(&a->levels[l], &b->levels[l], c, 0.9 * f->how.min_overlap);
        }
        if (!(c.score <= edge->score) && !isnan(c.score)) {
            edge->dy = c.dy;
            edge->dx = c.dx;
            edge->score = c.score;
            best = i;
        }
    }
    if (!isnan(edge->score))
        edge->significance = significance_of(f, edge->b, &list[best]);
    return OCT_OK;
}

/* ---- pairs ---- */

/* Scores are of the pictures as they are. */
static enum oct_err find_edges(struct oct_mosaic *m, const struct oct_picture *pictures,
                               struct overlaps *overlaps, oct_mosaic_progress_fn *progress,
                               void *arg, struct oct_error *err)
{
    unsigned k = 0;

    for (unsigned a = 0; m->edges && a < m->n; a++) {
        const bool is_blank = !oct_picture_has_contrast(&pictures[a]);
        enum oct_err e = is_blank ? OCT_OK
                                  : oct_correlator_cpu.set_reference(overlaps->coarse,
                                                                     &overlaps->padded[a], err);
        overlaps->first = a;
        for (unsigned b = a + 1; !e && b < m->n; b++, k++) {
            if (progress && !progress(arg, k, m->n_edges))
                return oct_fail(err, OCT_E_AGAIN, "cancelled");
            struct oct_mosaic_edge *edge = &m->edges[k];
            *edge = (struct oct_mosaic_edge){.a = a, .b = b, .score = NAN, .significance = NAN};
            if (!is_blank && oct_picture_has_contrast(&pictures[b]))
                e = find_overlap(overlaps, edge, err);
            if (edge->significance >= OCT_MATCH_LEAST_SIGNIFICANCE)
                edge->score = score_at(&pictures[a], &pictures[b], edge->dy, edge->dx);
        }
        if (e)
            return e;
    }
    return OCT_OK;
}

/* Copies by which pictures are matched; the caller finishes them. */
static struct oct_picture *prepare(const struct oct_picture *pictures, unsigned n, enum oct_err *e,
                                   struct oct_error *err)
{
    struct oct_picture *copies = calloc(n, sizeof(*copies));
    unsigned n_seen = 0;

    if (!copies) {
        *e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a mosaic of %u pictures", n);
        return NULL;
    }
    for (unsigned i = 0; !*e && i < n; i++) {
        const struct oct_picture *p = &pictures[i];
        *e = oct_picture_copy(&copies[i], p, err);
        if (*e)
            break;
        n_seen += oct_picture_has_contrast(p);
        *e = oct_align_prepare(&copies[i], err);
    }
    if (!*e && n_seen < 2)
        *e = oct_fail(err, OCT_E_ARG, "fewer than two pictures have contrast");
    return copies;
}

/* ---- the tree ---- */

static bool is_edge(const struct oct_mosaic *m, const struct oct_mosaic_edge *edge)
{
    return edge->score >= m->setup.min_score && edge->significance >= OCT_MATCH_LEAST_SIGNIFICANCE;
}

/* Prim's algorithm from `first`: joins, one by one, the picture with the highest edge to what is
 * there. */
static enum oct_err grow(struct oct_mosaic *m, const struct oct_picture *pictures, unsigned first,
                         bool *placed, struct oct_error *err)
{
    unsigned component = m->n_components++;

    m->places[first] = (struct oct_mosaic_place){
        .component = component, .is_first = true, .with = first, .score = NAN};
    placed[first] = true;
    for (;;) {
        struct oct_mosaic_edge *best = NULL;
        for (unsigned k = 0; k < m->n_edges; k++) {
            struct oct_mosaic_edge *edge = &m->edges[k];
            bool a = placed[edge->a] && m->places[edge->a].component == component;
            bool b = placed[edge->b] && m->places[edge->b].component == component;
            if (a != b && is_edge(m, edge) && (!best || edge->score > best->score))
                best = edge;
        }
        if (!best)
            return OCT_OK;
        enum oct_err e = refine(&pictures[best->a], &pictures[best->b], best, err);
        if (e)
            return e;
        unsigned from = placed[best->a] ? best->a : best->b,
                 to = from == best->a ? best->b : best->a;
        double sign = from == best->a ? 1 : -1;
        best->in_tree = true;
        placed[to] = true;
        m->places[to] = (struct oct_mosaic_place){.y = m->places[from].y + sign * best->dy,
                                                  .x = m->places[from].x + sign * best->dx,
                                                  .component = component,
                                                  .with = from,
                                                  .score = best->score};
    }
}

/* Numbers the components anew: 0 is the one of most pictures, of two equal ones the earlier. */
static void put_largest_first(struct oct_mosaic *m)
{
    unsigned largest = 0;

    m->n_placed = 0;
    for (unsigned c = 0; c < m->n_components; c++) {
        unsigned n = 0;
        for (unsigned i = 0; i < m->n; i++)
            n += m->places[i].component == c;
        if (n > m->n_placed) {
            m->n_placed = n;
            largest = c;
        }
    }
    for (unsigned i = 0; i < m->n; i++) {
        unsigned *c = &m->places[i].component;
        *c = *c == largest ? 0 : *c < largest ? *c + 1 : *c;
    }
}

static enum oct_err place(struct oct_mosaic *m, const struct oct_picture *pictures,
                          struct oct_error *err)
{
    bool *placed = calloc(m->n, sizeof(bool));
    enum oct_err e = OCT_OK;

    if (!placed)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a mosaic of %u pictures", m->n);
    for (unsigned i = 0; !e && i < m->n; i++)
        if (!placed[i])
            e = grow(m, pictures, i, placed, err);
    free(placed);
    if (!e)
        put_largest_first(m);
    return e;
}

void oct_mosaic_finish(struct oct_mosaic *mosaic)
{
    free(mosaic->places);
    free(mosaic->edges);
    *mosaic = (struct oct_mosaic){0};
}

enum oct_err oct_mosaic_find(struct oct_mosaic *m, const struct oct_picture *pictures, unsigned n,
                             const struct oct_mosaic_setup *setup, oct_mosaic_progress_fn *progress,
                             void *arg, struct oct_error *err)
{
    struct overlaps overlaps = {0};
    enum oct_err e = OCT_OK;

    *m = (struct oct_mosaic){.n = n, .n_edges = n > 1 ? n * (n - 1) / 2 : 0, .setup = *setup};
    if (n < 2)
        return oct_fail(err, OCT_E_ARG, "a mosaic needs two pictures at least");
    m->setup.min_overlap = setup->min_overlap > 0 ? setup->min_overlap : 0.125;
    m->setup.feather_px = setup->feather_px ? setup->feather_px : 64;
    m->places = calloc(n, sizeof(*m->places));
    m->edges = calloc(m->n_edges, sizeof(*m->edges));
    if (!m->places || !m->edges)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a mosaic of %u pictures", n);
    struct oct_picture *prepared = e ? NULL : prepare(pictures, n, &e, err);
    if (!e)
        e = open_overlaps(&overlaps, prepared, n, m->setup.min_overlap, err);
    if (!e)
        e = find_edges(m, pictures, &overlaps, progress, arg, err);
    if (!e)
        e = place(m, pictures, err);
    close_overlaps(&overlaps);
    for (unsigned i = 0; prepared && i < n; i++)
        oct_picture_finish(&prepared[i]);
    free(prepared);
    if (e)
        oct_mosaic_finish(m);
    return e;
}

/* ---- the canvas ---- */

/* The weight of a place (y, x) of a picture: 1 in the middle, falling towards the border. */
static double weight_at(const struct oct_picture *p, double y, double x, double feather)
{
    double from_side = fmin(fmin(y, p->height - 1 - y), fmin(x, p->width - 1 - x)) + 1;

    return fmin(from_side / (feather + 1), 1);
}

/* The value of a picture between its pixels; NaN beyond it or beside a masked one. */
static double value_at(const struct oct_picture *p, double y, double x)
{
    double y0 = floor(y), x0 = floor(x), v = y - y0, u = x - x0, sum = 0;

    for (int i = 0; i < 4; i++) {
        double w = (i / 2 ? v : 1 - v) * (i % 2 ? u : 1 - u), row = y0 + i / 2, column = x0 + i % 2;
        if (w == 0)
            continue;
        if (row < 0 || column < 0 || row >= p->height || column >= p->width)
            return (double)NAN;
        size_t at = (size_t)row * p->width + (size_t)column;
        if (!oct_picture_is_valid(p, at))
            return (double)NAN;
        sum += w * (double)p->pixels[at];
    }
    return sum;
}

/* Adds a picture whose pixel (0, 0) lies at (top, left) of the canvas. */
static void add_picture(struct oct_picture *canvas, float *weight, const struct oct_picture *p,
                        double top, double left, double feather)
{
    int64_t y0 = (int64_t)ceil(top), x0 = (int64_t)ceil(left);
    int64_t y1 = (int64_t)floor(top + p->height - 1), x1 = (int64_t)floor(left + p->width - 1);

    for (int64_t y = y0; y <= y1; y++)
        for (int64_t x = x0; x <= x1; x++) {
            double v = (double)y - top, u = (double)x - left, value = value_at(p, v, u);
            size_t at = (size_t)y * canvas->width + (size_t)x;
            if (isnan(value))
                continue;
            double w = weight_at(p, v, u, feather);
            canvas->pixels[at] += (float)(w * value);
            weight[at] += (float)w;
        }
}

struct box {
    double y0, y1, x0, x1;
};

static struct box box_of(const struct oct_mosaic *m, const struct oct_picture *pictures)
{
    struct box b = {INFINITY, -INFINITY, INFINITY, -INFINITY};

    for (unsigned i = 0; i < m->n; i++) {
        const struct oct_mosaic_place *p = &m->places[i];
        if (p->component != 0)
            continue;
        b.y0 = fmin(b.y0, p->y);
        b.x0 = fmin(b.x0, p->x);
        b.y1 = fmax(b.y1, p->y + pictures[i].height);
        b.x1 = fmax(b.x1, p->x + pictures[i].width);
    }
    return b;
}

enum oct_err oct_mosaic_blend(const struct oct_mosaic *m, const struct oct_picture *pictures,
                              struct oct_picture *canvas, float **weight, double *origin_y,
                              double *origin_x, struct oct_error *err)
{
    struct box box = box_of(m, pictures);
    double height = ceil(box.y1) - floor(box.y0), width = ceil(box.x1) - floor(box.x0);

    *weight = NULL;
    *canvas = (struct oct_picture){0};
    if (!(height >= 1) || !(width >= 1) || height > OCT_PICTURE_MOST_SIDE ||
        width > OCT_PICTURE_MOST_SIDE)
        return oct_fail(err, OCT_E_ARG, "a mosaic of %.0f x %.0f pixels: a side may have %u",
                        height, width, OCT_PICTURE_MOST_SIDE);
    enum oct_err e = oct_picture_init(canvas, (uint32_t)height, (uint32_t)width, true, err);
    if (e)
        return e;
    size_t n = (size_t)canvas->height * canvas->width;
    *weight = calloc(n, sizeof(float));
    if (!*weight) {
        oct_picture_finish(canvas);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a mosaic of %.0f x %.0f pixels",
                        height, width);
    }
    memset(canvas->pixels, 0, n * sizeof(float));
    *origin_y = -floor(box.y0);
    *origin_x = -floor(box.x0);
    for (unsigned i = 0; i < m->n; i++)
        if (m->places[i].component == 0)
            add_picture(canvas, *weight, &pictures[i], m->places[i].y + *origin_y,
                        m->places[i].x + *origin_x, m->setup.feather_px);
    for (size_t i = 0; i < n; i++) {
        canvas->valid[i] = (*weight)[i] > 0;
        canvas->pixels[i] = canvas->valid[i] ? canvas->pixels[i] / (*weight)[i] : NAN;
    }
    return OCT_OK;
}
