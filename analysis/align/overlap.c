#include "analysis/align/overlap.h"

#include "analysis/align/level.h"
#include "analysis/align/matcher.h"
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

struct oct_overlaps {
    unsigned n, n_levels, first;   /* first: of the pairs that are asked for */
    struct pyramid *pyramids;      /* [n]; levels[0] is borrowed */
    struct oct_picture *padded;    /* [n]: the coarsest level, all of one size */
    struct oct_correlator *coarse; /* of two padded ones */
    struct oct_correlator_setup how;
    float *c2d;
    float *samples; /* [OCT_MATCH_SAMPLES] */
};

/* ---- resolutions ---- */

/* The mean of the valid ones of 2 x 2 pixels; valid where there are two of them. */
static void bin(const struct oct_picture *from, struct oct_picture *to)
{
    for (uint32_t y = 0; y < to->height; y++)
        for (uint32_t x = 0; x < to->width; x++) {
            size_t at = (size_t)2 * y * from->width + (size_t)2 * x, n = 0;
            const size_t four[4] = {at, at + 1, at + from->width, at + from->width + 1};
            float sum = 0;
            for (int i = 0; i < 4; i++)
                if (oct_picture_is_valid(from, four[i])) {
                    sum += from->pixels[four[i]];
                    n++;
                }
            at = (size_t)y * to->width + x;
            to->pixels[at] = n ? sum / (float)n : 0.0F;
            if (to->valid)
                to->valid[at] = n >= 2;
        }
}

static enum oct_err make_pyramid(const struct oct_overlaps *f, struct pyramid *pyramid,
                                 const struct oct_picture *picture, struct oct_error *err)
{
    enum oct_err e = OCT_OK;

    pyramid->levels[0] = *picture;
    for (unsigned l = 1; !e && l < f->n_levels; l++) {
        const struct oct_picture *finer = &pyramid->levels[l - 1];
        e = oct_picture_init(&pyramid->levels[l], finer->height / 2, finer->width / 2,
                             finer->valid != NULL, err);
        if (!e)
            bin(finer, &pyramid->levels[l]);
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

void oct_overlaps_destroy(struct oct_overlaps *f)
{
    if (!f)
        return;
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
    free(f);
}

static enum oct_err make_coarse(struct oct_overlaps *f, uint32_t height, uint32_t width,
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

static enum oct_err fill(struct oct_overlaps *f, const struct oct_picture *pictures, unsigned n,
                         double min_overlap, struct oct_error *err)
{
    uint32_t most = 0, least = UINT32_MAX, height = 0, width = 0;
    enum oct_err e = OCT_OK;

    *f = (struct oct_overlaps){.n = n, .n_levels = 1};
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

enum oct_err oct_overlaps_create(struct oct_overlaps **overlaps, const struct oct_picture *pictures,
                                 unsigned n, double min_overlap, struct oct_error *err)
{
    struct oct_overlaps *f = malloc(sizeof(*f));
    *overlaps = NULL;
    if (!f)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a mosaic of %u pictures", n);
    enum oct_err e = fill(f, pictures, n, min_overlap, err);
    if (e) {
        oct_overlaps_destroy(f);
        return e;
    }
    *overlaps = f;
    return OCT_OK;
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

double oct_overlap_score(const struct oct_picture *a, const struct oct_picture *b, double dy,
                         double dx)
{
    return zncc(a, b, (int32_t)lround(dy), (int32_t)lround(dx), 1);
}

static double least_pixels(const struct oct_picture *a, const struct oct_picture *b, double part)
{
    double n_a = (double)a->height * a->width, n_b = (double)b->height * b->width;

    return part * (n_a < n_b ? n_a : n_b);
}

/* Whether shift (y, x) of the coarse correlation is the highest within APART of it. */
static bool is_highest(const struct oct_overlaps *f, int64_t y, int64_t x)
{
    int64_t height = 2 * (int64_t)f->how.max_dy + 1, width = 2 * (int64_t)f->how.max_dx + 1;
    float here = f->c2d[y * width + x];

    for (int64_t v = y > APART ? y - APART : 0; v <= y + APART && v < height; v++)
        for (int64_t u = x > APART ? x - APART : 0; u <= x + APART && u < width; u++)
            if (f->c2d[v * width + u] > here) /* false of NaN */
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
static float part_at(const struct oct_overlaps *f, unsigned second, int32_t dy, int32_t dx)
{
    const struct oct_picture *a = &f->pyramids[f->first].levels[f->n_levels - 1];
    const struct oct_picture *b = &f->pyramids[second].levels[f->n_levels - 1];
    const struct common c = common_of(a, b, dy, dx);
    const double n = fmax(0, c.y1 - c.y0) * fmax(0, c.x1 - c.x0);
    return (float)(n / least_pixels(a, b, 1));
}

static double significance_of(const struct oct_overlaps *f, unsigned second,
                              const struct candidate *c)
{
    const int32_t max_dy = (int32_t)f->how.max_dy, max_dx = (int32_t)f->how.max_dx;
    const size_t width = 2 * (size_t)max_dx + 1, n = width * (2 * (size_t)max_dy + 1);
    for (int32_t i = 0; i < 9; i++) {
        const int32_t y = c->dy + i / 3 - 1 + max_dy, x = c->dx + i % 3 - 1 + max_dx;
        if (y < 0 || x < 0 || y > 2 * max_dy || x > 2 * max_dx ||
            isnan(f->c2d[(size_t)y * width + (size_t)x]))
            return -1;
    }
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
static unsigned list_maxima(const struct oct_overlaps *f, struct candidate list[MOST_MAXIMA])
{
    int64_t height = 2 * (int64_t)f->how.max_dy + 1, width = 2 * (int64_t)f->how.max_dx + 1;
    unsigned n = 0, kept = 0;

    if (!f->c2d)
        return 0;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            double score = (double)f->c2d[y * width + x];
            bool may = score > 0 && (n < MOST_MAXIMA || score > list[n - 1].score);
            if (may && is_highest(f, y, x))
                put_in(list, &n,
                       (struct candidate){(int32_t)(y - f->how.max_dy),
                                          (int32_t)(x - f->how.max_dx), score});
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

enum oct_err oct_overlap_refine(const struct oct_picture *a, const struct oct_picture *b,
                                struct oct_overlap *overlap, struct oct_error *err)
{
    int32_t dy = (int32_t)lround(overlap->dy), dx = (int32_t)lround(overlap->dx);
    struct oct_picture parts[2] = {{0}};
    struct oct_level levels[2] = {{0}};
    struct oct_subpixel *subpixel = NULL;
    double y = 0, x = 0;
    enum oct_err e = cut(a, b, common_of(a, b, dy, dx), dy, dx, parts, err);

    for (int i = 0; !e && i < 2; i++) {
        e = oct_level_init(&levels[i], parts[i].height, parts[i].width, parts[i].valid != NULL,
                           err);
        if (!e)
            oct_level_set(&levels[i], &parts[i]);
    }
    if (!e)
        e = oct_subpixel_create(&subpixel, parts[0].height, parts[0].width, true, err);
    if (!e && levels[0].has_contrast && levels[1].has_contrast) {
        oct_subpixel_find(subpixel, &levels[1], &levels[0], 0, 0, 0, &y, &x);
        overlap->dy += y;
        overlap->dx += x;
    }
    oct_subpixel_destroy(subpixel);
    for (int i = 0; i < 2; i++) {
        oct_level_finish(&levels[i]);
        oct_picture_finish(&parts[i]);
    }
    return e;
}

enum oct_err oct_overlaps_set_first(struct oct_overlaps *f, unsigned first, struct oct_error *err)
{
    f->first = first;
    return oct_correlator_cpu.set_reference(f->coarse, &f->padded[first], err);
}

enum oct_err oct_overlaps_find(struct oct_overlaps *f, unsigned second, struct oct_overlap *overlap,
                               struct oct_error *err)
{
    const struct pyramid *a = &f->pyramids[f->first], *b = &f->pyramids[second];
    struct candidate list[MOST_MAXIMA] = {{0}};
    unsigned which, best = 0;
    enum oct_err e = oct_correlator_cpu.run(f->coarse, &f->padded[second], 1, f->c2d, &which, err);

    *overlap = (struct oct_overlap){.score = NAN, .significance = NAN};
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
        if (!(c.score <= overlap->score) && !isnan(c.score)) {
            overlap->dy = c.dy;
            overlap->dx = c.dx;
            overlap->score = c.score;
            best = i;
        }
    }
    if (!isnan(overlap->score))
        overlap->significance = significance_of(f, second, &list[best]);
    return OCT_OK;
}
