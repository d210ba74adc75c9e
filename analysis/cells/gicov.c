#include "analysis/cells/gicov.h"

#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int32_t to_pixel(double offset, bool truncated)
{
    return (int32_t)(truncated ? trunc(offset) : round(offset));
}

void oct_cells_circles_init(struct oct_cells_circles *circles,
                            const struct oct_cells_params *params)
{
    static const double pi = 3.14159265358979323846;
    double radius[OCT_CELLS_MOST_CIRCLES];
    *circles = (struct oct_cells_circles){
        .n = oct_cells_circles(params, radius),
        .border = oct_cells_border(params),
    };
    for (unsigned i = 0; i < OCT_CELLS_SAMPLES; i++) {
        const double t = 2 * pi * i / OCT_CELLS_SAMPLES;
        circles->cosine[i] = cos(t);
        circles->sine[i] = sin(t);
    }
    for (unsigned k = 0; k < circles->n; k++) {
        struct oct_cells_circle *circle = &circles->circle[k];
        circle->radius = radius[k];
        for (unsigned i = 0; i < OCT_CELLS_SAMPLES; i++) {
            circle->dx[i] = to_pixel(radius[k] * circles->cosine[i], params->truncated);
            circle->dy[i] = to_pixel(radius[k] * circles->sine[i], params->truncated);
        }
    }
}

/* The sums over samples that fall onto one pixel. */
struct together {
    double x, y;                /* of e: their direction, times `length` */
    double length;              /* |sum e| */
    double along, across, skew; /* sums of squares in that direction, across, and of products */
};

static struct together join(const struct oct_cells_circles *circles, const unsigned *samples,
                            unsigned n)
{
    struct together t = {0};
    for (unsigned i = 0; i < n; i++) {
        t.x += circles->cosine[samples[i]];
        t.y += circles->sine[samples[i]];
    }
    t.length = hypot(t.x, t.y);
    for (unsigned i = 0; i < n && t.length > 0; i++) {
        const double c = circles->cosine[samples[i]], s = circles->sine[samples[i]];
        const double u = (c * t.x + s * t.y) / t.length, v = (s * t.x - c * t.y) / t.length;
        t.along += u * u;
        t.across += v * v;
        t.skew += u * v;
    }
    return t;
}

static struct oct_cells_group group_of(const struct together *t, ptrdiff_t offset)
{
    const double root = sqrt(t->along - t->across);
    return (struct oct_cells_group){
        .offset = offset,
        .a = (float)(root * t->x / t->length),
        .b = (float)(root * t->y / t->length),
        .w = (float)(t->length / root),
        .c = (float)t->across,
    };
}

/* Samples at the place of sample i, from i on. */
static unsigned same_pixel(const struct oct_cells_circle *circle, unsigned i, unsigned *samples)
{
    unsigned n = 0;
    for (unsigned j = i; j < OCT_CELLS_SAMPLES; j++)
        if (circle->dx[j] == circle->dx[i] && circle->dy[j] == circle->dy[i])
            samples[n++] = j;
    return n;
}

static void init_circle(struct oct_cells_gicov_circle *out, const struct oct_cells_circles *circles,
                        const struct oct_cells_circle *circle, size_t row)
{
    struct oct_cells_group joint[OCT_CELLS_SAMPLES];
    bool done[OCT_CELLS_SAMPLES] = {false};
    double excess = 0;
    for (unsigned i = 0; i < OCT_CELLS_SAMPLES; i++) {
        unsigned samples[OCT_CELLS_SAMPLES];
        if (done[i])
            continue;
        const unsigned n = same_pixel(circle, i, samples);
        const ptrdiff_t offset = circle->dy[i] * (ptrdiff_t)row + circle->dx[i];
        const struct together t = join(circles, samples, n);
        /* Angles that are not symmetric about their mean cannot be joined this way. */
        const bool joins = n > 1 && t.along - t.across > 0.1 && fabs(t.skew) < 1e-9;
        for (unsigned j = 0; j < n; j++) {
            const struct oct_cells_group single = {offset, (float)circles->cosine[samples[j]],
                                                   (float)circles->sine[samples[j]], 1, 0};
            done[samples[j]] = true;
            if (!joins)
                out->group[out->n_single++] = single;
        }
        if (joins) {
            joint[out->n_joint++] = group_of(&t, offset);
            excess += n - t.length * t.length / (t.along - t.across);
        }
    }
    out->excess = (float)excess;
    memcpy(out->group + out->n_single, joint, out->n_joint * sizeof(*joint));
    for (unsigned i = 0; i < OCT_CELLS_SCOUTS; i++) {
        const unsigned s = i * OCT_CELLS_SAMPLES / OCT_CELLS_SCOUTS;
        out->scout[i] = (struct oct_cells_group){
            .offset = circle->dy[s] * (ptrdiff_t)row + circle->dx[s],
            .a = (float)(circles->cosine[s] / OCT_CELLS_SCOUTS),
            .b = (float)(circles->sine[s] / OCT_CELLS_SCOUTS),
        };
    }
}

void oct_cells_gicov_init(struct oct_cells_gicov *gicov, const struct oct_cells_circles *circles,
                          const struct oct_cells_gradient *gradient)
{
    *gicov = (struct oct_cells_gicov){
        .n = circles->n,
        .border = circles->border,
        .row = gradient->row,
        .plane = gradient->plane,
    };
    for (unsigned k = 0; k < circles->n; k++)
        init_circle(&gicov->circle[k], circles, &circles->circle[k], gradient->row);
}

const struct oct_cells_scorer *oct_cells_scorer_select(const char *name)
{
    static const struct oct_cells_scorer *const sets[OCT_N_SIMD + 1] = {
        [OCT_SIMD_PLAIN] = &oct_cells_scorer_plain,
#if defined(__x86_64__)
        [OCT_SIMD_AVX2] = &oct_cells_scorer_avx2,
        [OCT_SIMD_AVX512] = &oct_cells_scorer_avx512,
#endif
    };
    return sets[oct_simd_choose(name)];
}

#define ROWS 16u /* of a piece */

struct offset {
    int32_t dx, dy;
};

struct oct_cells_peaks {
    uint32_t height, width, border;
    struct oct_workers *workers;
    double threshold, merged; /* px; below 0: none are merged */
    enum oct_cells_polarity polarity;
    struct offset
        *disk; /* [n_disk], the nearest first, so that most pixels see a larger one soon */
    size_t n_disk;
    int32_t disk_radius;
    uint8_t *is_peak;   /* [height][width] */
    float *row_highest; /* [height] */
    struct oct_cells_peak *found;
    size_t n, room;
    const float *score;
    const uint8_t *near;
};

/* ---- life ---- */

static int nearer(const void *a, const void *b)
{
    const struct offset *p = a, *q = b;
    const int64_t d = (int64_t)p->dx * p->dx + (int64_t)p->dy * p->dy -
                      ((int64_t)q->dx * q->dx + (int64_t)q->dy * q->dy);
    return d < 0 ? -1 : d > 0;
}

static bool init_disk(struct oct_cells_peaks *p)
{
    const int64_t r = p->disk_radius;
    const size_t side = 2 * (size_t)r + 1;
    p->disk = malloc(side * side * sizeof(*p->disk));
    if (!p->disk)
        return false;
    for (int64_t dy = -r; dy <= r; dy++)
        for (int64_t dx = -r; dx <= r; dx++)
            if (dx * dx + dy * dy <= r * r && (dx != 0 || dy != 0))
                p->disk[p->n_disk++] = (struct offset){(int32_t)dx, (int32_t)dy};
    qsort(p->disk, p->n_disk, sizeof(*p->disk), nearer);
    return true;
}

enum oct_err oct_cells_peaks_create(struct oct_cells_peaks **peaks,
                                    const struct oct_cells_params *params, uint32_t height,
                                    uint32_t width, struct oct_workers *workers,
                                    struct oct_error *err)
{
    struct oct_cells_peaks *p = calloc(1, sizeof(*p));
    *peaks = p;
    if (!p)
        goto fail;
    *p = (struct oct_cells_peaks){
        .height = height,
        .width = width,
        .border = oct_cells_border(params),
        .workers = workers,
        .threshold = params->threshold,
        .merged = params->merges ? OCT_CELLS_MERGED * params->radius : -1,
        .polarity = params->polarity,
        .disk_radius = (int32_t)lround(params->spacing * params->radius),
        .is_peak = oct_aligned_calloc(64, height, width),
        .row_highest = calloc(height, sizeof(float)),
    };
    if (init_disk(p) && p->is_peak && p->row_highest)
        return OCT_OK;
fail:
    oct_cells_peaks_destroy(p);
    *peaks = NULL;
    return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for peaks in %u x %u px", width,
                    height);
}

void oct_cells_peaks_destroy(struct oct_cells_peaks *p)
{
    if (!p)
        return;
    free(p->disk);
    free(p->is_peak);
    free(p->row_highest);
    free(p->found);
    free(p);
}

/* ---- peaks of a row ---- */

static bool is_sought(const struct oct_cells_peaks *p, float s)
{
    return p->polarity == OCT_CELLS_BOTH || (p->polarity == OCT_CELLS_DARK ? s > 0 : s < 0);
}

static bool is_largest(const struct oct_cells_peaks *p, uint32_t x, uint32_t y)
{
    const float *at = p->score + (size_t)y * p->width + x;
    const float s = fabsf(*at);
    const uint32_t r = (uint32_t)p->disk_radius;
    const bool inside = x >= r && y >= r && x + r < p->width && y + r < p->height;
    for (size_t i = 0; i < p->n_disk; i++) {
        const int64_t dx = p->disk[i].dx, dy = p->disk[i].dy;
        if (!inside && (x + dx < 0 || y + dy < 0 || x + dx >= p->width || y + dy >= p->height))
            continue;
        if (fabsf(at[dy * p->width + dx]) > s)
            return false;
    }
    return true;
}

static void search_row(struct oct_cells_peaks *p, uint32_t y)
{
    const float *score = p->score + (size_t)y * p->width;
    const uint8_t *near = p->near ? p->near + (size_t)y * p->width : NULL;
    uint8_t *is_peak = p->is_peak + (size_t)y * p->width;
    float highest = 0;
    memset(is_peak, 0, p->width);
    for (uint32_t x = p->border; x + p->border < p->width; x++) {
        const float s = fabsf(score[x]);
        if (s <= highest && !((double)s > p->threshold))
            continue;
        if (!is_sought(p, score[x]) || (near && near[x]))
            continue;
        highest = s > highest ? s : highest;
        if ((double)s > p->threshold && is_largest(p, x, y))
            is_peak[x] = 1;
    }
    p->row_highest[y] = highest;
}

static void search_rows(void *context, unsigned piece, unsigned worker)
{
    struct oct_cells_peaks *p = context;
    (void)worker;
    const uint32_t first = p->border + piece * ROWS, end = p->height - p->border;
    for (uint32_t y = first; y < first + ROWS && y < end; y++) {
        search_row(p, y);
    }
}

/* ---- the list ---- */

/* Whether a peak that stays lies within `merged` of (x, y). */
static bool is_merged(const struct oct_cells_peaks *p, uint32_t x, uint32_t y)
{
    for (size_t i = p->n; i-- > 0;) {
        const double dx = (double)x - p->found[i].x, dy = (double)y - p->found[i].y;
        if (dy > p->merged)
            return false;
        if (dx * dx + dy * dy <= p->merged * p->merged)
            return true;
    }
    return false;
}

static enum oct_err keep(struct oct_cells_peaks *p, uint32_t x, uint32_t y, struct oct_error *err)
{
    if (p->merged >= 0 && is_merged(p, x, y))
        return OCT_OK;
    if (p->n == p->room) {
        const size_t room = p->room ? 2 * p->room : 256;
        struct oct_cells_peak *found = realloc(p->found, room * sizeof(*found));
        if (!found)
            return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for %zu peaks", room);
        p->found = found;
        p->room = room;
    }
    p->found[p->n++] = (struct oct_cells_peak){x, y};
    return OCT_OK;
}

enum oct_err oct_cells_peaks_find(struct oct_cells_peaks *p, const float *score,
                                  const uint8_t *near, const struct oct_cells_peak **found,
                                  unsigned *n, double *highest, struct oct_error *err)
{
    const uint32_t end = p->height - p->border;
    p->score = score;
    p->near = near;
    p->n = 0;
    *highest = 0;
    oct_workers_run(p->workers, (end - p->border + ROWS - 1) / ROWS, search_rows, p);
    for (uint32_t y = p->border; y < end; y++) {
        const uint8_t *row = p->is_peak + (size_t)y * p->width, *after = row + p->width;
        for (const uint8_t *at = row; (at = memchr(at, 1, (size_t)(after - at))); at++) {
            const enum oct_err e = keep(p, (uint32_t)(at - row), y, err);
            if (e)
                return e;
        }
        *highest = fmax(*highest, (double)p->row_highest[y]);
    }
    *found = p->found;
    *n = (unsigned)p->n;
    return OCT_OK;
}
