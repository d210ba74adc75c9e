#include "analysis/cells/prepare.h"

#include "kernels/device/workers.h"
#include "numeric/order.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/wide.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 16u  /* of a piece */
#define LANES 16u /* of sums that vectors hold */
#define LINE 16u  /* floats of a cache line */
#define MEDIAN_TO_SIGMA 1.4826

static unsigned n_pieces(uint32_t height)
{
    return (height + ROWS - 1) / ROWS;
}

/* ---- masked pixels ---- */

void oct_cells_mask_init(struct oct_cells_mask *mask, uint32_t height, uint32_t width, double reach)
{
    *mask = (struct oct_cells_mask){.height = height, .width = width, .reach = reach};
}

void oct_cells_mask_finish(struct oct_cells_mask *mask)
{
    free(mask->valid);
    free(mask->near);
    free(mask->gap);
    *mask = (struct oct_cells_mask){0};
}

static bool allocate(struct oct_cells_mask *mask)
{
    const size_t n = (size_t)mask->height * mask->width;
    if (!mask->valid)
        mask->valid = oct_aligned_alloc(64, n, 1);
    if (!mask->near)
        mask->near = oct_aligned_alloc(64, n, 1);
    if (!mask->gap)
        mask->gap = oct_aligned_alloc(64, n, sizeof(*mask->gap));
    return mask->valid && mask->near && mask->gap;
}

/* ---- near ---- */

/* Half the chord of the circle `reach` in rows dy away. */
static int64_t half_chord(const struct oct_cells_mask *mask, int64_t dy)
{
    return (int64_t)floor(sqrt(mask->reach * mask->reach - (double)(dy * dy)));
}

/* Counts in gap[v][x] how many chords about masked runs begin at x, less those that ended: chords
 * of a run first .. last of row y. */
static void paint(struct oct_cells_mask *mask, int64_t y, int64_t first, int64_t last)
{
    const int64_t reach = (int64_t)mask->reach, width = mask->width;
    for (int64_t v = y > reach ? y - reach : 0; v <= y + reach && v < mask->height; v++) {
        const int64_t half = half_chord(mask, v - y);
        uint32_t *row = mask->gap + v * width;
        row[first > half ? first - half : 0]++;
        if (last + half + 1 < width)
            row[last + half + 1]--;
    }
}

static void find_near(struct oct_cells_mask *mask)
{
    const size_t width = mask->width;
    memset(mask->gap, 0, mask->height * width * sizeof(*mask->gap));
    for (uint32_t y = 0; y < mask->height; y++) {
        const uint8_t *valid = mask->valid + y * width;
        for (size_t x = 0; x < width; x++) {
            const size_t first = x;
            while (x < width && !valid[x])
                x++;
            if (x > first)
                paint(mask, y, (int64_t)first, (int64_t)x - 1);
        }
    }
    for (uint32_t y = 0; y < mask->height; y++) {
        uint32_t n = 0;
        for (size_t x = 0; x < width; x++) {
            n += mask->gap[y * width + x];
            mask->near[y * width + x] = n != 0;
        }
    }
}

enum oct_err oct_cells_mask_set(struct oct_cells_mask *mask, const struct oct_picture *picture,
                                struct oct_error *err)
{
    const size_t n = (size_t)mask->height * mask->width, width = mask->width;
    if (!allocate(mask))
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for a mask of %u x %u px",
                        mask->width, mask->height);
    for (uint32_t y = 0; y < mask->height; y++) {
        for (size_t i = y * width; i < (y + 1) * width; i++)
            mask->valid[i] = (!picture->valid || picture->valid[i]) && isfinite(picture->pixels[i]);
    }
    mask->any = memchr(mask->valid, 0, n) != NULL;
    if (mask->any)
        find_near(mask);
    return OCT_OK;
}

bool oct_cells_mask_is_near(const struct oct_cells_mask *mask, double x, double y)
{
    if (!mask->any)
        return false;
    const double top = fmax(ceil(y - mask->reach), 0);
    const double bottom = fmin(floor(y + mask->reach), mask->height - 1);
    for (double v = top; v <= bottom; v++) {
        const double half = sqrt(fmax(mask->reach * mask->reach - (v - y) * (v - y), 0));
        const double left = fmax(ceil(x - half), 0), right = fmin(floor(x + half), mask->width - 1);
        const uint8_t *row = mask->valid + (size_t)v * mask->width;
        if (right >= left && memchr(row + (size_t)left, 0, (size_t)(right - left) + 1))
            return true;
    }
    return false;
}

/* ---- filling ---- */

#define NONE UINT32_MAX

static void fill_downward(struct oct_cells_mask *mask, float *pixels, size_t stride)
{
    const size_t width = mask->width;
    for (uint32_t y = 0; y < mask->height; y++) {
        const uint8_t *valid = mask->valid + y * width;
        uint32_t *gap = mask->gap + y * width;
        float *row = pixels + y * stride;
        for (size_t x = 0; x < width; x++) {
            const uint32_t above = y > 0 ? (gap - width)[x] : NONE;
            gap[x] = valid[x] ? 0 : above == NONE ? NONE : above + 1;
            if (!valid[x])
                row[x] = above == NONE ? 0 : (row - stride)[x];
        }
    }
}

/* In gap the distance to the valid pixel above, which becomes that to the nearer one. */
static void fill_upward(struct oct_cells_mask *mask, float *pixels, size_t stride)
{
    const size_t width = mask->width;
    for (uint32_t y = mask->height - 1; y-- > 0;) {
        uint32_t *gap = mask->gap + y * width;
        float *row = pixels + y * stride;
        for (size_t x = 0; x < width; x++) {
            const uint32_t below = (gap + width)[x];
            if (below != NONE && below + 1 < gap[x]) {
                gap[x] = below + 1;
                row[x] = (row + stride)[x];
            }
        }
    }
}

/* The column that stands in for column x, which has no valid pixel. */
static size_t stand_in(const struct oct_cells_mask *mask, size_t x)
{
    for (size_t d = 1; d < mask->width; d++) {
        if (d <= x && mask->gap[x - d] != NONE)
            return x - d;
        if (x + d < mask->width && mask->gap[x + d] != NONE)
            return x + d;
    }
    return x;
}

void oct_cells_mask_fill(struct oct_cells_mask *mask, float *pixels, size_t stride)
{
    if (!mask->any)
        return;
    fill_downward(mask, pixels, stride);
    fill_upward(mask, pixels, stride);
    for (size_t x = 0; x < mask->width; x++) {
        if (mask->gap[x] != NONE)
            continue;
        const size_t from = stand_in(mask, x);
        for (uint32_t y = 0; y < mask->height; y++)
            pixels[y * stride + x] = pixels[y * stride + from];
    }
}

/* ---- the median ----
 *
 * A sample of the values gives bounds about the median; what lies between them is collected, what
 * lies below is counted, and the middle values are selected among the former. Where the sample has
 * misled, all values are collected: the result is exact always. */

#define SAMPLED 8192u
#define LEAST_SAMPLED 512u

/* Of the values of a piece. */
struct tally {
    size_t n_valid, n_below, n_within;
};

struct oct_cells_median {
    struct oct_workers *workers;
    const struct oct_cells_gradient *gradient;
    const uint8_t *valid;
    float low, high;
    float *values;       /* a piece's from values[piece * ROWS * 2 * width] on */
    struct tally *tally; /* [pieces] */
};

struct oct_cells_median *oct_cells_median_create(uint32_t height, uint32_t width,
                                                 struct oct_workers *workers)
{
    struct oct_cells_median *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->workers = workers;
    m->values = malloc(2 * (size_t)height * width * sizeof(*m->values));
    m->tally = malloc(n_pieces(height) * sizeof(*m->tally));
    if (m->values && m->tally)
        return m;
    oct_cells_median_destroy(m);
    return NULL;
}

void oct_cells_median_destroy(struct oct_cells_median *m)
{
    if (!m)
        return;
    free(m->values);
    free(m->tally);
    free(m);
}

/* Four standard deviations of a rank are 2 sqrt(n) of n samples. */
static void find_bounds(struct oct_cells_median *m)
{
    const struct oct_cells_gradient *g = m->gradient;
    const size_t width = g->width, n_all = 2 * g->height * width, step = n_all / SAMPLED + 1;
    size_t n = 0;
    for (size_t i = 0; i < n_all; i += step) {
        const size_t y = i / (2 * width), x = i % width;
        if (!m->valid || m->valid[y * width + x])
            m->values[n++] = fabsf(g->values[y * g->row + i / width % 2 * g->plane + x]);
    }
    m->low = 0;
    m->high = FLT_MAX;
    if (n < LEAST_SAMPLED)
        return;
    const size_t spread = 2 * (size_t)sqrt((double)n);
    m->low = oct_floats_select(m->values, n, n / 2 - spread);
    m->high = oct_floats_select(m->values, n, n / 2 + spread);
}

static void tally_rows(void *context, unsigned piece, unsigned worker)
{
    struct oct_cells_median *m = context;
    (void)worker;
    const struct oct_cells_gradient *g = m->gradient;
    const float low = m->low, high = m->high;
    float *to = m->values + (size_t)piece * ROWS * 2 * g->width;
    struct tally t = {0};
    for (uint32_t row = 2 * piece * ROWS; row < 2 * (piece + 1) * ROWS && row / 2 < g->height;
         row++) {
        const float *values = g->values + row / 2 * g->row + row % 2 * g->plane;
        const uint8_t *valid = m->valid ? m->valid + (size_t)(row / 2) * g->width : NULL;
        for (uint32_t x = 0; x < g->width; x++) {
            const float v = fabsf(values[x]);
            const bool counts = !valid || valid[x];
            t.n_valid += counts;
            t.n_below += counts && v < low;
            to[t.n_within] = v;
            t.n_within += counts && v >= low && v <= high;
        }
    }
    m->tally[piece] = t;
}

/* All pieces' values, one after another. */
static struct tally tally_all(struct oct_cells_median *m)
{
    const struct oct_cells_gradient *g = m->gradient;
    struct tally all = {0};
    oct_workers_run(m->workers, n_pieces(g->height), tally_rows, m);
    for (unsigned i = 0; i < n_pieces(g->height); i++) {
        const struct tally *t = &m->tally[i];
        memmove(m->values + all.n_within, m->values + (size_t)i * ROWS * 2 * g->width,
                t->n_within * sizeof(float));
        all.n_valid += t->n_valid;
        all.n_below += t->n_below;
        all.n_within += t->n_within;
    }
    return all;
}

double oct_cells_median_run(struct oct_cells_median *m, const struct oct_cells_gradient *gradient,
                            const uint8_t *valid)
{
    m->gradient = gradient;
    m->valid = valid;
    find_bounds(m);
    struct tally t = tally_all(m);
    if (t.n_valid == 0)
        return 0;
    const size_t upper = t.n_valid / 2, lower = upper - 1; /* ranks of the middle values */
    if (lower < t.n_below || upper >= t.n_below + t.n_within) {
        m->low = 0;
        m->high = FLT_MAX;
        t = tally_all(m);
    }
    const size_t k = lower - t.n_below;
    const double middle = (double)oct_floats_select(m->values, t.n_within, k);
    return (middle + (double)oct_floats_select(m->values, t.n_within, k + 1)) / 2;
}

/* ---- the preparation ---- */

/* Of the valid pixels of a piece. */
struct extent {
    uint64_t n;
    double sum;
    float least, most;
};

struct oct_cells_preparation {
    struct oct_cells_prepared out;
    struct oct_workers *workers;
    struct oct_cells_median *median;
    const struct oct_picture *picture;
    unsigned n_workers;
    struct extent *extent; /* [pieces] */
    double floor, level;
    unsigned n_taps; /* of half the Gaussian, its middle not counted */
    float *taps;     /* [1 + n_taps] */
    float *plain;    /* [height][stride]: the picture; then what is smoothed in both directions */
    float *along;    /* [height][stride]: smoothed in x; not with n_taps 0 */
    float *padded;   /* [n_workers][n_padded]: a row with its border repeated */
    size_t n_padded;
};

/* ---- life ---- */

/* Rows of an odd number of cache lines do not meet in the same sets of a cache. */
static size_t odd_lines(size_t n)
{
    return ((n + LINE - 1) / LINE | 1) * LINE;
}

/* exp(-t^2 / 2 sigma^2) up to 4 sigma, of sum 1. */
static bool init_taps(struct oct_cells_preparation *p, double sigma)
{
    double sum = 1;
    p->n_taps = (unsigned)(4 * sigma + 0.5);
    p->taps = calloc(1 + (size_t)p->n_taps, sizeof(*p->taps));
    if (!p->taps)
        return false;
    for (unsigned t = 1; t <= p->n_taps; t++)
        sum += 2 * exp(-0.5 * t * t / (sigma * sigma));
    p->taps[0] = (float)(1 / sum);
    for (unsigned t = 1; t <= p->n_taps; t++)
        p->taps[t] = (float)(exp(-0.5 * t * t / (sigma * sigma)) / sum);
    return true;
}

static bool init(struct oct_cells_preparation *p)
{
    struct oct_cells_prepared *out = &p->out;
    struct oct_cells_gradient *g = &out->gradient;
    out->stride = odd_lines(out->width);
    g->plane = odd_lines((size_t)out->width + OCT_CELLS_GICOV_BEYOND);
    g->row = 3 * g->plane;
    p->n_padded = odd_lines((size_t)out->width + 2 * (size_t)p->n_taps + LANES);
    p->extent = calloc(n_pieces(out->height), sizeof(*p->extent));
    p->plain = oct_aligned_calloc(64, out->height * out->stride, sizeof(float));
    p->padded = oct_aligned_calloc(64, p->n_workers * p->n_padded, sizeof(float));
    g->values = oct_aligned_calloc(64, (size_t)out->height * g->row, sizeof(float));
    p->median = oct_cells_median_create(out->height, out->width, p->workers);
    if (p->n_taps > 0)
        p->along = oct_aligned_calloc(64, out->height * out->stride, sizeof(float));
    out->pixels = p->plain;
    return p->extent && p->plain && p->padded && g->values && p->median &&
           (p->along || p->n_taps == 0);
}

enum oct_err oct_cells_preparation_create(struct oct_cells_preparation **preparation,
                                          const struct oct_cells_params *params, uint32_t height,
                                          uint32_t width, struct oct_workers *workers,
                                          struct oct_error *err)
{
    struct oct_cells_preparation *p = calloc(1, sizeof(*p));
    *preparation = p;
    if (!p)
        goto fail;
    p->workers = workers;
    p->n_workers = workers ? oct_workers_n_threads(workers) + 1 : 1;
    p->floor = params->floor;
    p->out.height = p->out.gradient.height = height;
    p->out.width = p->out.gradient.width = width;
    oct_cells_mask_init(&p->out.mask, height, width, 2 * params->radius);
    if (init_taps(p, params->smooth * params->radius) && init(p))
        return OCT_OK;
fail:
    oct_cells_preparation_destroy(p);
    *preparation = NULL;
    return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory for pictures of %u x %u px", width,
                    height);
}

void oct_cells_preparation_destroy(struct oct_cells_preparation *p)
{
    if (!p)
        return;
    oct_cells_mask_finish(&p->out.mask);
    oct_cells_median_destroy(p->median);
    free(p->out.gradient.values);
    free(p->extent);
    free(p->taps);
    free(p->plain);
    free(p->along);
    free(p->padded);
    free(p);
}

const struct oct_cells_prepared *
oct_cells_prepared_of(const struct oct_cells_preparation *preparation)
{
    return &preparation->out;
}

/* ---- level and scale ---- */

struct lanes {
    double sum[LANES];
    float least[LANES], most[LANES];
    uint32_t n[LANES];
};

OCT_WIDE static void look_at_lanes(struct lanes *lanes, const float *restrict row, uint32_t n)
{
    for (uint32_t x = 0; x + LANES <= n; x += LANES)
        for (uint32_t i = 0; i < LANES; i++) {
            const float v = row[x + i];
            const bool ok = fabsf(v) <= FLT_MAX;
            lanes->n[i] += ok;
            lanes->sum[i] += (double)(ok ? v : 0);
            lanes->least[i] = v < lanes->least[i] && ok ? v : lanes->least[i];
            lanes->most[i] = v > lanes->most[i] && ok ? v : lanes->most[i];
        }
}

static void look_at(struct lanes *lanes, float v, bool valid)
{
    if (!valid || !isfinite(v))
        return;
    lanes->n[0]++;
    lanes->sum[0] += (double)v;
    lanes->least[0] = fminf(lanes->least[0], v);
    lanes->most[0] = fmaxf(lanes->most[0], v);
}

static void look_at_rows(void *context, unsigned piece, unsigned worker)
{
    struct oct_cells_preparation *p = context;
    (void)worker;
    const struct oct_picture *picture = p->picture;
    struct extent *extent = &p->extent[piece];
    struct lanes lanes = {0};
    for (unsigned i = 0; i < LANES; i++) {
        lanes.least[i] = FLT_MAX;
        lanes.most[i] = -FLT_MAX;
    }
    for (uint32_t y = piece * ROWS; y < (piece + 1) * ROWS && y < picture->height; y++) {
        const float *row = picture->pixels + (size_t)y * picture->width;
        const uint8_t *valid = picture->valid ? picture->valid + (size_t)y * picture->width : NULL;
        if (!valid)
            look_at_lanes(&lanes, row, picture->width);
        for (uint32_t x = valid ? 0 : picture->width / LANES * LANES; x < picture->width; x++)
            look_at(&lanes, row[x], !valid || valid[x]);
    }
    *extent = (struct extent){.least = FLT_MAX, .most = -FLT_MAX};
    for (unsigned i = 0; i < LANES; i++) {
        extent->n += lanes.n[i];
        extent->sum += lanes.sum[i];
        extent->least = fminf(extent->least, lanes.least[i]);
        extent->most = fmaxf(extent->most, lanes.most[i]);
    }
}

/* Sets level and scale; returns how many pixels are valid. */
static uint64_t find_scale(struct oct_cells_preparation *p)
{
    struct extent all = {.least = FLT_MAX, .most = -FLT_MAX};
    oct_workers_run(p->workers, n_pieces(p->out.height), look_at_rows, p);
    for (unsigned i = 0; i < n_pieces(p->out.height); i++) {
        all.n += p->extent[i].n;
        all.sum += p->extent[i].sum;
        all.least = fminf(all.least, p->extent[i].least);
        all.most = fmaxf(all.most, p->extent[i].most);
    }
    p->out.is_flat = all.n == 0 || all.least == all.most;
    if (p->out.is_flat)
        return all.n;
    /* The level is a multiple of a 256th of the range at most: whole or half of a grey level. */
    int exponent;
    frexp((double)all.most - (double)all.least, &exponent);
    const double unit = ldexp(1, exponent - 9);
    p->level = round(all.sum / (double)all.n / unit) * unit;
    p->out.scale = ldexp(1, -exponent);
    return all.n;
}

/* ---- smoothing ---- */

OCT_WIDE static void shift_row(float *restrict out, const float *restrict row, uint32_t n,
                               double level, double scale)
{
    for (uint32_t x = 0; x < n; x++)
        out[x] = (float)(((double)row[x] - level) * scale);
}

static void shift_rows(void *context, unsigned piece, unsigned worker)
{
    const struct oct_cells_preparation *p = context;
    (void)worker;
    const struct oct_picture *picture = p->picture;
    for (uint32_t y = piece * ROWS; y < (piece + 1) * ROWS && y < picture->height; y++) {
        shift_row(p->plain + y * p->out.stride, picture->pixels + (size_t)y * picture->width,
                  picture->width, p->level, p->out.scale);
    }
}

OCT_WIDE static void scale_row(float *restrict out, const float *restrict row, float tap,
                               uint32_t n)
{
    for (uint32_t x = 0; x < n; x++)
        out[x] = tap * row[x];
}

OCT_WIDE static void add_rows(float *restrict out, const float *restrict a, const float *restrict b,
                              float tap, uint32_t n)
{
    for (uint32_t x = 0; x < n; x++)
        out[x] += tap * (a[x] + b[x]);
}

static void smooth_along(void *context, unsigned piece, unsigned worker)
{
    const struct oct_cells_preparation *p = context;
    const uint32_t width = p->out.width;
    float *padded = p->padded + worker * p->n_padded, *middle = padded + p->n_taps;
    for (uint32_t y = piece * ROWS; y < (piece + 1) * ROWS && y < p->out.height; y++) {
        const float *row = p->plain + y * p->out.stride;
        float *out = p->along + y * p->out.stride;
        memcpy(middle, row, width * sizeof(*row));
        for (unsigned t = 0; t < p->n_taps; t++) {
            padded[t] = row[0];
            middle[width + t] = row[width - 1];
        }
        scale_row(out, middle, p->taps[0], width);
        for (unsigned t = 1; t <= p->n_taps; t++)
            add_rows(out, middle - t, middle + t, p->taps[t], width);
    }
}

static void smooth_across(void *context, unsigned piece, unsigned worker)
{
    const struct oct_cells_preparation *p = context;
    (void)worker;
    const size_t stride = p->out.stride;
    const uint32_t last = p->out.height - 1;
    for (uint32_t y = piece * ROWS; y < (piece + 1) * ROWS && y <= last; y++) {
        float *out = p->plain + y * stride;
        scale_row(out, p->along + y * stride, p->taps[0], p->out.width);
        for (unsigned t = 1; t <= p->n_taps; t++)
            add_rows(out, p->along + (y > t ? y - t : 0) * stride,
                     p->along + (last - y > t ? y + t : last) * stride, p->taps[t], p->out.width);
    }
}

/* ---- gradient ---- */

OCT_WIDE static void differentiate(float *restrict gx, float *restrict gy, float *restrict squares,
                                   const float *row, const float *above, const float *below,
                                   float half, uint32_t n)
{
    gx[0] = row[1] - row[0];
    for (uint32_t x = 1; x + 1 < n; x++)
        gx[x] = 0.5f * (row[x + 1] - row[x - 1]);
    gx[n - 1] = row[n - 1] - row[n - 2];
    for (uint32_t x = 0; x < n; x++)
        gy[x] = half * (below[x] - above[x]);
    for (uint32_t x = 0; x < n; x++)
        squares[x] = gx[x] * gx[x] + gy[x] * gy[x];
}

static void differentiate_rows(void *context, unsigned piece, unsigned worker)
{
    const struct oct_cells_preparation *p = context;
    (void)worker;
    const struct oct_cells_gradient *g = &p->out.gradient;
    const size_t stride = p->out.stride;
    for (uint32_t y = piece * ROWS; y < (piece + 1) * ROWS && y < g->height; y++) {
        const uint32_t above = y > 0 ? y - 1 : 0, below = y + 1 < g->height ? y + 1 : y;
        float *gx = g->values + y * g->row;
        differentiate(gx, gx + g->plane, gx + 2 * g->plane, p->plain + y * stride,
                      p->plain + above * stride, p->plain + below * stride,
                      below - above == 2 ? 0.5f : 1, g->width);
    }
}

/* ---- the whole ---- */

static void forget(struct oct_cells_preparation *p)
{
    struct oct_cells_gradient *g = &p->out.gradient;
    memset(p->plain, 0, p->out.height * p->out.stride * sizeof(float));
    memset(g->values, 0, g->height * g->row * sizeof(float));
    p->out.scale = 1;
    p->out.v0 = 0;
    p->out.mask.any = false;
}

enum oct_err oct_cells_prepare(struct oct_cells_preparation *p, const struct oct_picture *picture,
                               struct oct_error *err)
{
    struct oct_cells_prepared *out = &p->out;
    p->picture = picture;
    const uint64_t n_valid = find_scale(p);
    if (out->is_flat) {
        forget(p);
        return OCT_OK;
    }
    out->mask.any = false;
    if (n_valid < (uint64_t)out->height * out->width) {
        const enum oct_err e = oct_cells_mask_set(&out->mask, picture, err);
        if (e)
            return e;
    }
    oct_workers_run(p->workers, n_pieces(p->out.height), shift_rows, p);
    if (out->mask.any)
        oct_cells_mask_fill(&out->mask, p->plain, out->stride);
    if (p->n_taps > 0) {
        oct_workers_run(p->workers, n_pieces(p->out.height), smooth_along, p);
        oct_workers_run(p->workers, n_pieces(p->out.height), smooth_across, p);
    }
    oct_workers_run(p->workers, n_pieces(p->out.height), differentiate_rows, p);
    out->v0 = 0;
    if (p->floor > 0) {
        const uint8_t *valid = out->mask.any ? out->mask.valid : NULL;
        const double sigma =
            MEDIAN_TO_SIGMA * oct_cells_median_run(p->median, &out->gradient, valid);
        out->v0 = (float)(p->floor * sigma * p->floor * sigma);
    }
    return OCT_OK;
}
