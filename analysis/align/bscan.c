#include "analysis/align/bscan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_REACH 10

static bool is_valid(const struct oct_picture *p, size_t at)
{
    return !p->valid || p->valid[at];
}

/* Smooths n pixels from `first` on, `stride` apart. */
static void smooth_line(const struct oct_picture *p, const float *from, float *to, size_t first,
                        uint32_t n, size_t stride, const float *kernel, int reach)
{
    for (int64_t i = 0; i < n; i++) {
        float sum = 0, weight = 0;
        for (int64_t k = -reach; k <= reach; k++) {
            size_t at = first + (size_t)(i + k) * stride;
            if (i + k < 0 || i + k >= n || !is_valid(p, at))
                continue;
            float w = kernel[k < 0 ? -k : k];
            sum += w * from[at];
            weight += w;
        }
        to[first + (size_t)i * stride] = weight > 0 ? sum / weight : 0.0F;
    }
}

enum oct_err oct_bscan_smooth(struct oct_picture *p, double sigma, struct oct_error *err)
{
    size_t n = (size_t)p->height * p->width;
    float kernel[MOST_REACH + 1] = {0}, *scratch = calloc(n, sizeof(float));
    int reach = (int)ceil(3.0 * sigma);

    if (!scratch)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a B-scan of %u x %u", p->height,
                        p->width);
    reach = reach > MOST_REACH ? MOST_REACH : reach;
    for (int k = 0; k <= reach; k++)
        kernel[k] = (float)exp(-0.5 * k * k / (sigma * sigma));
    for (uint32_t y = 0; y < p->height; y++)
        smooth_line(p, p->pixels, scratch, (size_t)y * p->width, p->width, 1, kernel, reach);
    for (uint32_t x = 0; x < p->width; x++)
        smooth_line(p, scratch, p->pixels, x, p->height, p->width, kernel, reach);
    free(scratch);
    return OCT_OK;
}

/* One depth; sum, count: [height + 1], of the A-lines before. */
static void flatten_depth(struct oct_picture *p, uint32_t x, uint32_t half, double *sum,
                          double *count)
{
    sum[0] = count[0] = 0;
    for (uint32_t y = 0; y < p->height; y++) {
        size_t at = (size_t)y * p->width + x;
        sum[y + 1] = sum[y] + (is_valid(p, at) ? (double)p->pixels[at] : 0);
        count[y + 1] = count[y] + is_valid(p, at);
    }
    for (uint32_t y = 0; y < p->height; y++) {
        uint32_t first = y > half ? y - half : 0;
        uint32_t end = p->height - y > half + 1 ? y + half + 1 : p->height;
        double n = count[end] - count[first];
        if (n > 0)
            p->pixels[(size_t)y * p->width + x] -= (float)((sum[end] - sum[first]) / n);
    }
}

enum oct_err oct_bscan_flatten(struct oct_picture *p, uint32_t n_lines, struct oct_error *err)
{
    double *sums = calloc(2 * ((size_t)p->height + 1), sizeof(double));

    if (!sums)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a B-scan of %u x %u", p->height,
                        p->width);
    for (uint32_t x = 0; x < p->width; x++)
        flatten_depth(p, x, n_lines / 2, sums, sums + p->height + 1);
    free(sums);
    return OCT_OK;
}
