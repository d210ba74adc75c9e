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
    float kernel[MOST_REACH + 1], *scratch = calloc(n, sizeof(float));
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

enum oct_err oct_bscan_flatten(struct oct_picture *p, uint32_t n_lines, struct oct_error *err)
{
    uint32_t half = n_lines / 2;
    double *sum = calloc((size_t)p->height + 1, sizeof(double));
    double *count = calloc((size_t)p->height + 1, sizeof(double));
    enum oct_err e = OCT_OK;

    if (!sum || !count)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a B-scan of %u x %u", p->height,
                     p->width);
    for (uint32_t x = 0; !e && x < p->width; x++) {
        for (uint32_t y = 0; y < p->height; y++) { /* running sums of the lines before y + 1 */
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
    free(sum);
    free(count);
    return e;
}
