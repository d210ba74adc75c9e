#include "analysis/cells/find.h"

#include <stdlib.h>
#include <string.h>

/* ---- circles ---- */

struct sample {
    double cosine, sine;
    int32_t dx, dy;
    bool is_taken;
};

/* What samples that fall onto one pixel make together. */
struct together {
    unsigned n;
    double x, y;                /* of e: their direction, times `length` */
    double length;              /* |sum e| */
    double along, across, skew; /* sums of squares in that direction, across, and of products */
};

static bool are_same(const struct sample *a, const struct sample *b)
{
    return a->dx == b->dx && a->dy == b->dy;
}

/* The samples from i on at the place of sample i. */
static struct together join(const struct sample *samples, unsigned i)
{
    struct together t = {0};
    for (unsigned j = i; j < OCT_CELLS_SAMPLES; j++) {
        if (!are_same(&samples[i], &samples[j]))
            continue;
        t.n++;
        t.x += samples[j].cosine;
        t.y += samples[j].sine;
    }
    t.length = hypot(t.x, t.y);
    for (unsigned j = i; j < OCT_CELLS_SAMPLES && t.length > 0; j++) {
        const double c = samples[j].cosine, s = samples[j].sine;
        const double u = (c * t.x + s * t.y) / t.length, v = (s * t.x - c * t.y) / t.length;
        if (!are_same(&samples[i], &samples[j]))
            continue;
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

static void init_circle(struct oct_cells_gicov_circle *out, struct sample *samples, size_t row)
{
    struct oct_cells_group joint[OCT_CELLS_SAMPLES];
    double excess = 0;
    for (unsigned i = 0; i < OCT_CELLS_SAMPLES; i++) {
        const ptrdiff_t offset = samples[i].dy * (ptrdiff_t)row + samples[i].dx;
        const struct together t = join(samples, i);
        /* Angles that are not symmetric about their mean cannot be joined this way. */
        const bool joins = t.n > 1 && t.along - t.across > 0.1 && fabs(t.skew) < 1e-9;
        if (samples[i].is_taken)
            continue;
        if (joins) {
            joint[out->n_joint++] = group_of(&t, offset);
            excess += t.n - t.length * t.length / (t.along - t.across);
        }
        for (unsigned j = i; j < OCT_CELLS_SAMPLES; j++) {
            if (!are_same(&samples[i], &samples[j]))
                continue;
            samples[j].is_taken = true;
            if (!joins)
                out->group[out->n_single++] = (struct oct_cells_group){
                    offset, (float)samples[j].cosine, (float)samples[j].sine, 1, 0};
        }
    }
    out->excess = (float)excess;
    memcpy(out->group + out->n_single, joint, out->n_joint * sizeof(*joint));
    for (unsigned i = 0; i < OCT_CELLS_SCOUTS; i++) {
        const struct sample *s = &samples[i * OCT_CELLS_SAMPLES / OCT_CELLS_SCOUTS];
        out->scout[i] = (struct oct_cells_group){
            .offset = s->dy * (ptrdiff_t)row + s->dx,
            .a = (float)(s->cosine / OCT_CELLS_SCOUTS),
            .b = (float)(s->sine / OCT_CELLS_SCOUTS),
        };
    }
}

static int32_t to_pixel(double offset, bool truncated)
{
    return (int32_t)(truncated ? trunc(offset) : round(offset));
}

void oct_cells_gicov_init(struct oct_cells_gicov *gicov, const struct oct_cells_params *params,
                          size_t row, size_t plane)
{
    *gicov = (struct oct_cells_gicov){.row = row, .plane = plane};
    gicov->n = oct_cells_circles(params, gicov->radius);
    for (unsigned k = 0; k < gicov->n; k++) {
        struct sample samples[OCT_CELLS_SAMPLES];
        for (unsigned i = 0; i < OCT_CELLS_SAMPLES; i++) {
            const double t = 2 * 3.14159265358979323846 * i / OCT_CELLS_SAMPLES;
            const double dx = gicov->radius[k] * cos(t), dy = gicov->radius[k] * sin(t);
            samples[i] = (struct sample){cos(t), sin(t), to_pixel(dx, params->truncated),
                                         to_pixel(dy, params->truncated), false};
        }
        init_circle(&gicov->circle[k], samples, row);
    }
}

const struct oct_cells_scorer *oct_cells_scorer_select(const char *name)
{
    static const struct oct_cells_scorer *const sets[OCT_N_SIMD + 1] = {
        OCT_SIMD_ALL(oct_cells_scorer)};
    return sets[oct_simd_choose(name)];
}

/* ---- peaks ---- */

static int nearer(const void *a, const void *b)
{
    const struct oct_cells_offset *p = a, *q = b;
    const int64_t d = (int64_t)p->dx * p->dx + (int64_t)p->dy * p->dy -
                      ((int64_t)q->dx * q->dx + (int64_t)q->dy * q->dy);
    return d < 0 ? -1 : d > 0;
}

struct oct_cells_offset *oct_cells_disk(const struct oct_cells_params *params, size_t *n)
{
    const int64_t r = lround(params->spacing * params->radius);
    const size_t side = 2 * (size_t)r + 1;
    struct oct_cells_offset *disk = malloc(side * side * sizeof(*disk));
    *n = 0;
    for (int64_t dy = -r; disk && dy <= r; dy++)
        for (int64_t dx = -r; dx <= r; dx++)
            if (dx * dx + dy * dy <= r * r && (dx != 0 || dy != 0))
                disk[(*n)++] = (struct oct_cells_offset){(int32_t)dx, (int32_t)dy};
    if (disk)
        qsort(disk, *n, sizeof(*disk), nearer);
    return disk;
}

bool oct_cells_peaks_init(struct oct_cells_peaks *peaks, const struct oct_cells_params *params,
                          uint32_t height, uint32_t width)
{
    *peaks = (struct oct_cells_peaks){.params = *params, .height = height, .width = width};
    peaks->disk = oct_cells_disk(params, &peaks->n_disk);
    return peaks->disk;
}

void oct_cells_peaks_finish(struct oct_cells_peaks *peaks)
{
    free(peaks->disk);
    free(peaks->cells);
}

static bool is_sought(enum oct_cells_polarity polarity, float s)
{
    return polarity == OCT_CELLS_BOTH || (polarity == OCT_CELLS_DARK ? s > 0 : s < 0);
}

static bool is_largest(const struct oct_cells_peaks *p, const float *score, int64_t x, int64_t y)
{
    const int64_t width = p->width, height = p->height;
    const float own = fabsf(score[y * width + x]);
    for (size_t i = 0; i < p->n_disk; i++) {
        const int64_t u = x + p->disk[i].dx, v = y + p->disk[i].dy;
        if (u >= 0 && v >= 0 && u < width && v < height && fabsf(score[v * width + u]) > own)
            return false;
    }
    return true;
}

bool oct_cells_is_merged(const struct oct_cells_params *params, const struct oct_cell *before,
                         size_t n, int32_t x, int32_t y)
{
    const double reach = OCT_CELLS_MERGED * params->radius;
    while (params->merges && n-- > 0) {
        const double dx = x - before[n].peak_x, dy = y - before[n].peak_y;
        if (dy > reach)
            return false;
        if (dx * dx + dy * dy <= reach * reach)
            return true;
    }
    return false;
}

static enum oct_err keep_peak(struct oct_cells_peaks *p, float score, uint32_t x, uint32_t y,
                              struct oct_error *err)
{
    if (oct_cells_is_merged(&p->params, p->cells, p->n, (int32_t)x, (int32_t)y))
        return OCT_OK;
    if (p->n == p->room) {
        const unsigned room = p->room ? 2 * p->room : 256;
        struct oct_cell *cells = realloc(p->cells, room * sizeof(*cells));
        if (!cells)
            return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for %u peaks", room);
        p->cells = cells;
        p->room = room;
    }
    p->cells[p->n++] =
        (struct oct_cell){.score = score, .peak_x = (int32_t)x, .peak_y = (int32_t)y};
    return OCT_OK;
}

enum oct_err oct_cells_peaks_find(struct oct_cells_peaks *p, const float *score,
                                  const uint8_t *near, struct oct_error *err)
{
    const uint32_t border = oct_cells_border(&p->params), right = p->width - border;
    enum oct_err e = OCT_OK;
    p->n = 0;
    p->highest = 0;
    for (uint32_t y = border; y + border < p->height; y++)
        for (uint32_t x = border; x < right && !e; x++) {
            const size_t at = (size_t)y * p->width + x;
            const double s = fabs((double)score[at]);
            if ((s <= p->highest && !(s > p->params.threshold)) ||
                !is_sought(p->params.polarity, score[at]) || (near && near[at]))
                continue;
            p->highest = fmax(p->highest, s);
            if (s > p->params.threshold && is_largest(p, score, x, y))
                e = keep_peak(p, score[at], x, y, err);
        }
    return e;
}
