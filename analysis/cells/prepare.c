#include "analysis/cells/find.h"
#include "kernels/device/workers.h"
#include "numeric/order.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/wide.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 16u  /* of a piece */
#define LANES 16u /* of sums that vectors hold; floats of a cache line */

/* ---- masked pixels ---- */

bool oct_cells_mask_init(struct oct_cells_mask *mask, uint32_t height, uint32_t width, double reach)
{
    const size_t n = (size_t)height * width;
    *mask = (struct oct_cells_mask){.height = height,
                                    .width = width,
                                    .reach = reach,
                                    .valid = oct_aligned_alloc(64, n, 1),
                                    .near = oct_aligned_alloc(64, n, 1),
                                    .is_column = malloc(width)};
    return mask->valid && mask->near && mask->is_column;
}

void oct_cells_mask_finish(struct oct_cells_mask *mask)
{
    free(mask->valid);
    free(mask->near);
    free(mask->is_column);
    *mask = (struct oct_cells_mask){0};
}

/* The bits of floats without sign order them as integers. */
static int32_t to_bits(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits & INT32_MAX;
}

/* What lies within reach of the masked pixels first .. last of row y. */
static void mark_near(struct oct_cells_mask *mask, int64_t y, int64_t first, int64_t last)
{
    const int64_t reach = (int64_t)mask->reach, width = mask->width;
    for (int64_t v = y > reach ? y - reach : 0; v <= y + reach && v < mask->height; v++) {
        const double square = mask->reach * mask->reach - (double)((v - y) * (v - y));
        const int64_t half = (int64_t)sqrt(square);
        const int64_t left = first > half ? first - half : 0;
        const int64_t right = last + half < width ? last + half : width - 1;
        memset(mask->near + v * width + left, 1, (size_t)(right - left + 1));
    }
}

void oct_cells_mask_set(struct oct_cells_mask *mask, const struct oct_picture *picture)
{
    const size_t width = mask->width, n = mask->height * width;
    int32_t most = 0;
    for (size_t i = 0; i < n; i++)
        most = to_bits(picture->pixels[i]) > most ? to_bits(picture->pixels[i]) : most;
    mask->any = mask->is_empty = false;
    if (most <= to_bits(FLT_MAX) && (!picture->valid || !memchr(picture->valid, 0, n)))
        return;
    for (size_t i = 0; i < n; i++)
        mask->valid[i] = oct_picture_is_valid(picture, i) && isfinite(picture->pixels[i]);
    mask->is_empty = !memchr(mask->valid, 1, n);
    mask->any = !mask->is_empty && memchr(mask->valid, 0, n);
    memset(mask->near, 0, n);
    for (uint32_t y = 0; mask->any && y < mask->height; y++)
        for (size_t x = 0; x < width; x++) {
            const uint8_t *valid = mask->valid + y * width;
            const size_t first = x;
            while (x < width && !valid[x])
                x++;
            if (x > first)
                mark_near(mask, y, (int64_t)first, (int64_t)x - 1);
        }
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

/* False: it has no valid pixel. */
static bool fill_column(const struct oct_cells_mask *mask, float *column, size_t stride, size_t x)
{
    const int64_t height = mask->height;
    int64_t above = -1; /* the last valid one */
    for (int64_t y = 0; y <= height; y++) {
        if (y < height && !mask->valid[(size_t)y * mask->width + x])
            continue;
        if (above < 0 && y == height)
            return false;
        for (int64_t v = above + 1; v < y; v++) {
            const bool is_above = above >= 0 && (y == height || v - above <= y - v);
            column[(size_t)v * stride] = column[(size_t)(is_above ? above : y) * stride];
        }
        above = y;
    }
    return true;
}

/* The column that stands in for column x, which has no valid pixel. */
static size_t stand_in(const struct oct_cells_mask *mask, size_t x)
{
    for (size_t d = 1;; d++) {
        if (d <= x && mask->is_column[x - d])
            return x - d;
        if (x + d < mask->width && mask->is_column[x + d])
            return x + d;
    }
}

void oct_cells_mask_fill(const struct oct_cells_mask *mask, float *pixels, size_t stride)
{
    if (!mask->any)
        return;
    for (size_t x = 0; x < mask->width; x++)
        mask->is_column[x] = fill_column(mask, pixels + x, stride, x);
    for (size_t x = 0; x < mask->width; x++) {
        const size_t from = mask->is_column[x] ? x : stand_in(mask, x);
        for (size_t y = 0; y < mask->height && from != x; y++)
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

struct sift {
    int32_t low, high; /* bits of the bounds */
    size_t n_valid, n_below, n_within;
    float *within;
};

/* n of at most LANES, a constant but for a row's rest. No branch depends on one value: half of them
 * would be mispredicted. */
static inline void sift_some(struct sift *s, const float *values, uint32_t n)
{
    uint32_t n_below = 0, n_within = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_below += to_bits(values[i]) < s->low;
        n_within += to_bits(values[i]) >= s->low && to_bits(values[i]) <= s->high;
    }
    s->n_below += n_below;
    for (uint32_t i = 0; n_within > 0 && i < n; i++) {
        s->within[s->n_within] = fabsf(values[i]);
        s->n_within += (to_bits(values[i]) >= s->low) & (to_bits(values[i]) <= s->high);
    }
}

OCT_WIDE static void sift_row(struct sift *s, const float *values, uint32_t n)
{
    uint32_t x = 0;
    for (; x + LANES <= n; x += LANES)
        sift_some(s, values + x, LANES);
    sift_some(s, values + x, n - x);
    s->n_valid += n;
}

static struct sift sift_all(const struct oct_cells_slopes *g, const uint8_t *valid, float low,
                            float high, float *values)
{
    const size_t width = (size_t)g->width, height = (size_t)g->height;
    float *row = values + 2 * height * width;
    struct sift s = {.low = to_bits(low), .high = to_bits(high), .within = values};
    for (size_t i = 0; i < 2 * height; i++) {
        const float *all = (i % 2 ? g->gy : g->gx) + i / 2 * g->row;
        uint32_t n = valid ? 0 : (uint32_t)width;
        for (size_t x = 0; valid && x < width; x++) {
            row[n] = all[x];
            n += valid[i / 2 * width + x];
        }
        sift_row(&s, valid ? row : all, n);
    }
    return s;
}

/* Three standard deviations of a rank are 1.5 sqrt(n) of n samples. */
static void find_bounds(const struct oct_cells_slopes *g, const uint8_t *valid, float *values,
                        float *low, float *high)
{
    const size_t width = (size_t)g->width, n_all = 2 * (size_t)g->height * width;
    size_t n = 0;
    for (size_t i = 0; i < n_all; i += n_all / SAMPLED + 1) {
        const size_t y = i / (2 * width), x = i % width;
        if (!valid || valid[y * width + x])
            values[n++] = fabsf((i / width % 2 ? g->gy : g->gx)[y * g->row + x]);
    }
    const size_t spread = (size_t)(1.5 * sqrt((double)n));
    *low = n < LEAST_SAMPLED ? 0 : oct_floats_select(values, n, n / 2 - spread);
    *high = n < LEAST_SAMPLED ? FLT_MAX : oct_floats_select(values, n, n / 2 + spread);
}

double oct_cells_median(const struct oct_cells_slopes *slopes, const uint8_t *valid, float *values)
{
    float low, high;
    find_bounds(slopes, valid, values, &low, &high);
    struct sift s = sift_all(slopes, valid, low, high, values);
    if (s.n_valid == 0)
        return 0;
    const size_t upper = s.n_valid / 2, lower = upper - 1; /* ranks of the middle values */
    if (lower < s.n_below || upper >= s.n_below + s.n_within)
        s = sift_all(slopes, valid, 0, FLT_MAX, values);
    const size_t k = lower - s.n_below;
    const double middle = (double)oct_floats_select(values, s.n_within, k);
    return (middle + (double)oct_floats_select(values, s.n_within, k + 1)) / 2;
}

/* ---- life ---- */

/* Rows of an odd number of cache lines do not meet in the same sets of a cache. */
static size_t odd_lines(size_t n)
{
    return ((n + LANES - 1) / LANES | 1) * LANES;
}

unsigned oct_cells_taps(double sigma, float *taps)
{
    const unsigned n = oct_cells_most_taps(sigma);
    double sum = 1;
    for (unsigned t = 1; t <= n; t++)
        sum += 2 * exp(-0.5 * t * t / (sigma * sigma));
    taps[0] = (float)(1 / sum);
    for (unsigned t = 1; t <= n; t++)
        taps[t] = (float)(exp(-0.5 * t * t / (sigma * sigma)) / sum);
    return n;
}

bool oct_cells_prepared_init(struct oct_cells_prepared *p, const struct oct_cells_params *params,
                             uint32_t height, uint32_t width, struct oct_workers *workers)
{
    const double sigma = params->smooth * params->radius;
    const size_t plane = odd_lines((size_t)width + OCT_CELLS_GICOV_BEYOND), n_rows = height;
    const size_t n_taps = oct_cells_most_taps(sigma), stride = odd_lines(width);
    const unsigned n_workers = workers ? oct_workers_n_threads(workers) + 1 : 1;
    *p = (struct oct_cells_prepared){
        .workers = workers,
        .floor = params->floor,
        .stride = stride,
        .n_padded = odd_lines(width + 2 * n_taps + LANES),
        .taps = malloc((1 + n_taps) * sizeof(float)),
        .pixels = oct_aligned_calloc(64, n_rows * stride, sizeof(float)),
        .along = oct_aligned_calloc(64, n_rows * stride, sizeof(float)),
        .gradient = oct_aligned_calloc(64, n_rows * 3 * plane, sizeof(float)),
        .values = malloc((2 * n_rows + 1) * width * sizeof(float)),
    };
    p->padded = oct_aligned_calloc(64, n_workers * p->n_padded, sizeof(float));
    p->slopes = (struct oct_cells_slopes){.gx = p->gradient,
                                          .gy = p->gradient + plane,
                                          .row = 3 * plane,
                                          .height = (int32_t)height,
                                          .width = (int32_t)width};
    if (!oct_cells_mask_init(&p->mask, height, width, 2 * params->radius) || !p->taps ||
        !p->pixels || !p->along || !p->gradient || !p->values || !p->padded)
        return false;
    p->n_taps = oct_cells_taps(sigma, p->taps);
    return true;
}

void oct_cells_prepared_finish(struct oct_cells_prepared *p)
{
    oct_cells_mask_finish(&p->mask);
    free(p->taps);
    free(p->pixels);
    free(p->along);
    free(p->gradient);
    free(p->values);
    free(p->padded);
}

/* ---- rows ---- */

struct pass {
    struct oct_cells_prepared *p;
    void (*row)(struct oct_cells_prepared *p, uint32_t y, unsigned worker);
};

static void run_rows(void *context, unsigned piece, unsigned worker)
{
    const struct pass *pass = context;
    for (uint32_t y = piece * ROWS; y < (piece + 1) * ROWS && y < pass->p->mask.height; y++)
        pass->row(pass->p, y, worker);
}

static void each_row(struct oct_cells_prepared *p,
                     void (*row)(struct oct_cells_prepared *p, uint32_t y, unsigned worker))
{
    struct pass pass = {p, row};
    oct_workers_run(p->workers, (p->mask.height + ROWS - 1) / ROWS, run_rows, &pass);
}

OCT_WIDE static void shift(float *restrict out, const float *restrict row, uint32_t n, double level,
                           double scale)
{
    for (uint32_t x = 0; x < n; x++)
        out[x] = (float)(((double)row[x] - level) * scale);
}

static void shift_row(struct oct_cells_prepared *p, uint32_t y, unsigned worker)
{
    const struct oct_picture *picture = p->picture;
    (void)worker;
    shift(p->pixels + y * p->stride, picture->pixels + (size_t)y * picture->width, picture->width,
          p->level, p->scale);
}

OCT_WIDE static void scale_by(float *restrict out, const float *restrict row, float tap, uint32_t n)
{
    for (uint32_t x = 0; x < n; x++)
        out[x] = tap * row[x];
}

OCT_WIDE static void add_both(float *restrict out, const float *restrict a, const float *restrict b,
                              float tap, uint32_t n)
{
    for (uint32_t x = 0; x < n; x++)
        out[x] += tap * (a[x] + b[x]);
}

static void smooth_along(struct oct_cells_prepared *p, uint32_t y, unsigned worker)
{
    const uint32_t width = p->mask.width;
    const float *row = p->pixels + y * p->stride;
    float *padded = p->padded + worker * p->n_padded, *middle = padded + p->n_taps;
    float *out = p->along + y * p->stride;
    memcpy(middle, row, width * sizeof(*row));
    for (unsigned t = 0; t < p->n_taps; t++) {
        padded[t] = row[0];
        middle[width + t] = row[width - 1];
    }
    scale_by(out, middle, p->taps[0], width);
    for (unsigned t = 1; t <= p->n_taps; t++)
        add_both(out, middle - t, middle + t, p->taps[t], width);
}

static void smooth_across(struct oct_cells_prepared *p, uint32_t y, unsigned worker)
{
    const uint32_t last = p->mask.height - 1, width = p->mask.width;
    float *out = p->pixels + y * p->stride;
    (void)worker;
    scale_by(out, p->along + y * p->stride, p->taps[0], width);
    for (unsigned t = 1; t <= p->n_taps; t++)
        add_both(out, p->along + (y > t ? y - t : 0) * p->stride,
                 p->along + (last - y > t ? y + t : last) * p->stride, p->taps[t], width);
}

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

static void differentiate_row(struct oct_cells_prepared *p, uint32_t y, unsigned worker)
{
    const uint32_t above = y > 0 ? y - 1 : 0, below = y + 1 < p->mask.height ? y + 1 : y;
    const size_t plane = (size_t)(p->slopes.gy - p->slopes.gx);
    float *gx = p->gradient + y * p->slopes.row;
    (void)worker;
    differentiate(gx, gx + plane, gx + 2 * plane, p->pixels + y * p->stride,
                  p->pixels + above * p->stride, p->pixels + below * p->stride,
                  below - above == 2 ? 0.5f : 1, p->mask.width);
}

/* ---- the whole ---- */

static void find_scale(struct oct_cells_prepared *p)
{
    struct oct_picture finite = *p->picture;
    struct oct_picture_statistics all;
    finite.valid = p->mask.any ? p->mask.valid : NULL;
    oct_picture_look(&finite, &all);
    p->level = all.least;
    p->scale = 1;
    if (all.least == all.most)
        return;
    /* The level is a multiple of a 256th of the range at most: whole or half of a grey level. */
    int exponent;
    frexp(all.most - all.least, &exponent);
    const double unit = ldexp(1, exponent - 9);
    p->level = round(all.mean / unit) * unit;
    p->scale = ldexp(1, -exponent);
}

void oct_cells_prepare(struct oct_cells_prepared *p, const struct oct_picture *picture)
{
    p->picture = picture;
    p->scale = 1;
    oct_cells_mask_set(&p->mask, picture);
    if (p->mask.is_empty) {
        memset(p->pixels, 0, p->mask.height * p->stride * sizeof(float));
    } else {
        find_scale(p);
        each_row(p, shift_row);
    }
    oct_cells_mask_fill(&p->mask, p->pixels, p->stride);
    each_row(p, smooth_along);
    each_row(p, smooth_across);
    each_row(p, differentiate_row);
    const double sigma =
        p->floor > 0
            ? OCT_CELLS_MEDIAN_TO_SIGMA *
                  oct_cells_median(&p->slopes, p->mask.any ? p->mask.valid : NULL, p->values)
            : 0;
    p->v0 = (float)(p->floor * sigma * p->floor * sigma);
}
