#include "analysis/average/prepare.h"

#include "analysis/average/pixels.h"
#include "pipeline/base/wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMOOTH_PX 1.5
#define NEIGHBOURS 201u /* A-lines */
#define MOST_BIN 4u
/* More pixels say little more of a shift, and take longer. */
#define MOST_PIXELS 40000u
#define MOST_RADIUS 8

enum oct_err oct_average_prepare_check(uint32_t n_lines, uint32_t depth, struct oct_error *err)
{
    if (n_lines >= OCT_PICTURE_LEAST_SIDE && depth >= OCT_PICTURE_LEAST_SIDE)
        return OCT_OK;
    return oct_fail(err, OCT_E_CONFIG,
                    "average: a B-scan of %u x %u is too small to be registered (%u at least): "
                    "set average.register to none",
                    n_lines, depth, OCT_PICTURE_LEAST_SIDE);
}

enum oct_err oct_average_prepare_init(struct oct_average_prepare *p, uint32_t n_lines,
                                      uint32_t depth, struct oct_error *err)
{
    *p = (struct oct_average_prepare){
        .n_lines = n_lines, .depth = depth, .bin_lines = 1, .bin_depth = 1};
    enum oct_err e = oct_average_prepare_check(n_lines, depth, err);
    if (e)
        return e;
    /* Depth first: its pixels are the finer ones. */
    while ((uint64_t)(n_lines / p->bin_lines) * (depth / p->bin_depth) > MOST_PIXELS) {
        bool may_depth = p->bin_depth < MOST_BIN && depth / (2 * p->bin_depth) >= 64;
        bool may_lines = p->bin_lines < MOST_BIN && n_lines / (2 * p->bin_lines) >= 64;
        if (!may_depth && !may_lines)
            break;
        if (may_depth && (p->bin_depth <= p->bin_lines || !may_lines))
            p->bin_depth *= 2;
        else
            p->bin_lines *= 2;
    }
    const uint32_t height = n_lines / p->bin_lines, width = depth / p->bin_depth;
    e = oct_picture_init(&p->picture, height, width, false, err);
    if (e)
        return e;
    p->scratch = malloc(((size_t)height + 1) * width * sizeof(*p->scratch));
    p->n_added = calloc(height, 1);
    if (p->scratch && p->n_added)
        return OCT_OK;
    oct_average_prepare_finish(p);
    return oct_fail(err, OCT_E_NO_MEMORY, "average: out of memory");
}

void oct_average_prepare_finish(struct oct_average_prepare *p)
{
    oct_picture_finish(&p->picture);
    free(p->scratch);
    free(p->n_added);
    *p = (struct oct_average_prepare){.n_lines = 0};
}

static float *row_of(struct oct_average_prepare *p, int64_t y)
{
    return p->picture.pixels + (size_t)y * p->picture.width;
}

void oct_average_prepare_begin(struct oct_average_prepare *p)
{
    memset(p->picture.pixels, 0,
           (size_t)p->picture.height * p->picture.width * sizeof(*p->picture.pixels));
    memset(p->n_added, 0, p->picture.height);
}

void oct_average_prepare_add(struct oct_average_prepare *p, uint32_t line, const float *intensity)
{
    const uint32_t y = line / p->bin_lines;
    if (y >= p->picture.height)
        return;
    oct_pixels_bin(row_of(p, y), intensity, p->picture.width, p->bin_depth);
    p->n_added[y]++;
}

/* ---- smoothing ---- */

struct kernel {
    int radius; /* 0: none */
    float weights[2 * MOST_RADIUS + 1];
};

/* The bins themselves have smoothed by bin / sqrt(12) px. */
static struct kernel make_kernel(uint32_t bin)
{
    struct kernel k = {.radius = 0};
    double variance = (SMOOTH_PX * SMOOTH_PX - bin * bin / 12.0) / (bin * bin), sum = 0;
    if (variance < 0.04)
        return k;
    k.radius = (int)ceil(2.5 * sqrt(variance));
    k.radius = k.radius < MOST_RADIUS ? k.radius : MOST_RADIUS;
    for (int i = -k.radius; i <= k.radius; i++)
        sum += exp(-i * i / (2 * variance));
    for (int i = -k.radius; i <= k.radius; i++)
        k.weights[i + k.radius] = (float)(exp(-i * i / (2 * variance)) / sum);
    return k;
}

static int64_t inside(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

OCT_WIDE static void add_row(float *restrict to, const float *restrict from, float weight,
                             int64_t n)
{
    for (int64_t x = 0; x < n; x++)
        to[x] += weight * from[x];
}

/* Beyond the border the border goes on. */
static void smooth_row(float *to, const float *from, int64_t n, const struct kernel *k)
{
    memset(to, 0, (size_t)n * sizeof(*to));
    for (int i = -k->radius; i <= k->radius; i++) {
        const float weight = k->weights[i + k->radius];
        const int64_t first = i < 0 ? -i : 0, end = i > 0 ? n - i : n;
        for (int64_t x = 0; x < first; x++)
            to[x] += weight * from[0];
        add_row(to + first, from + first + i, weight, end - first);
        for (int64_t x = end > first ? end : first; x < n; x++)
            to[x] += weight * from[n - 1];
    }
}

static void smooth(struct oct_average_prepare *p)
{
    const int64_t height = p->picture.height, width = p->picture.width;
    const size_t row_bytes = (size_t)width * sizeof(float);
    const struct kernel along = make_kernel(p->bin_depth), across = make_kernel(p->bin_lines);
    for (int64_t y = 0; y < height; y++)
        smooth_row(p->scratch + y * width, row_of(p, y), width, &along);
    for (int64_t y = 0; y < height; y++) {
        float *to = row_of(p, y);
        if (across.radius == 0) {
            memcpy(to, p->scratch + y * width, row_bytes);
            continue;
        }
        memset(to, 0, row_bytes);
        for (int i = -across.radius; i <= across.radius; i++)
            add_row(to, p->scratch + inside(y + i, height) * width,
                    across.weights[i + across.radius], width);
    }
}

/* ---- the mean of neighbouring A-lines ---- */

static void subtract_neighbours(struct oct_average_prepare *p)
{
    const int64_t height = p->picture.height, width = p->picture.width;
    const int64_t radius = NEIGHBOURS / 2 / p->bin_lines;
    float *sum = p->scratch + height * width;
    memcpy(p->scratch, p->picture.pixels, (size_t)(height * width) * sizeof(*p->scratch));
    memset(sum, 0, (size_t)width * sizeof(*sum));
    int64_t first = 0, end = 0; /* of the rows in `sum` */
    for (int64_t y = 0; y < height; y++) {
        for (; end < height && end <= y + radius; end++)
            add_row(sum, p->scratch + end * width, 1, width);
        for (; first < y - radius; first++)
            add_row(sum, p->scratch + first * width, -1, width);
        add_row(row_of(p, y), sum, -1.0f / (float)(end - first), width);
    }
}

/* Rows without A-lines become the mean of the others, so that smoothing carries nothing from there;
 * later they are 0. Rows of fewer A-lines are as bright as others. */
static void mend_rows(struct oct_average_prepare *p)
{
    const int64_t height = p->picture.height, width = p->picture.width;
    float *mean = p->scratch + height * width;
    int64_t n = 0;
    memset(mean, 0, (size_t)width * sizeof(*mean));
    for (int64_t y = 0; y < height; y++) {
        const float short_db = p->n_added[y] ? 10 * log10f((float)p->bin_lines / p->n_added[y]) : 0;
        for (int64_t x = 0; x < width && p->n_added[y] < p->bin_lines; x++)
            row_of(p, y)[x] += short_db;
        n += p->n_added[y] > 0;
        add_row(mean, row_of(p, y), p->n_added[y] > 0, width);
    }
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width && p->n_added[y] == 0 && n > 0; x++)
            row_of(p, y)[x] = mean[x] / (float)n;
}

void oct_average_prepare_end(struct oct_average_prepare *p)
{
    const size_t n = (size_t)p->picture.height * p->picture.width;
    oct_pixels_to_db(p->scratch, p->picture.pixels, n);
    memcpy(p->picture.pixels, p->scratch, n * sizeof(*p->scratch));
    mend_rows(p);
    smooth(p);
    subtract_neighbours(p);
    for (int64_t y = 0; y < p->picture.height; y++)
        if (p->n_added[y] == 0)
            memset(row_of(p, y), 0, p->picture.width * sizeof(float));
}
