#include "analysis/average/prepare.h"

#include "analysis/align/prepare.h"
#include "analysis/average/pixels.h"
#include "pipeline/base/wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMOOTH_PX 1.5
#define MOST_BIN 4u
/* More pixels say little more of a shift, and take longer. */
#define MOST_PIXELS 40000u

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

OCT_WIDE static void add_row(float *restrict to, const float *restrict from, float weight,
                             int64_t n)
{
    for (int64_t x = 0; x < n; x++)
        to[x] += weight * from[x];
}

/* Rows without A-lines become the mean of the others, so that the background has nothing from
 * there; later they are 0. Rows of fewer A-lines are as bright as others. */
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

double oct_average_prepare_smoothing(const struct oct_average_prepare *p)
{
    return SMOOTH_PX / (p->bin_lines > p->bin_depth ? p->bin_lines : p->bin_depth);
}

enum oct_err oct_average_prepare_end(struct oct_average_prepare *p, struct oct_error *err)
{
    const size_t n = (size_t)p->picture.height * p->picture.width;
    oct_pixels_to_db(p->scratch, p->picture.pixels, n);
    memcpy(p->picture.pixels, p->scratch, n * sizeof(*p->scratch));
    mend_rows(p);
    const enum oct_err e = oct_align_prepare(&p->picture, err);
    for (int64_t y = 0; y < p->picture.height; y++)
        if (p->n_added[y] == 0)
            memset(row_of(p, y), 0, p->picture.width * sizeof(float));
    return e;
}
