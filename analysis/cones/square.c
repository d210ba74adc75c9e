#include "analysis/cones/square.h"

#include <math.h>

#define EQUAL 1e-3

static void plan_axis(double ratio, uint32_t *merge, double *scale)
{
    *merge = 1;
    for (; ratio >= 2; ratio /= 2)
        *merge *= 2;
    *scale = ratio > 1 + EQUAL ? ratio : 1;
}

static uint32_t scaled(uint32_t n, double scale)
{
    return n > 0 ? (uint32_t)((n - 1) * scale + 1e-9) + 1 : 0;
}

void oct_square_plan(struct oct_square *s, uint32_t height, uint32_t width, double um_y,
                     double um_x)
{
    *s = (struct oct_square){height, width, 1, 1, 1, 1, 0, 0, 0};
    /* Of the finer axis pixels are merged, in the coarser one they are interpolated. */
    if (um_y > um_x)
        plan_axis(um_y / um_x, &s->merge_x, &s->scale_y);
    else
        plan_axis(um_x / um_y, &s->merge_y, &s->scale_x);
    s->um = um_y > um_x ? um_x * s->merge_x : um_y * s->merge_y;
    s->out_height = scaled(height / s->merge_y, s->scale_y);
    s->out_width = scaled(width / s->merge_x, s->scale_x);
}

static void merge(const struct oct_square *s, const float *values, float *merged)
{
    const uint32_t rows = s->height / s->merge_y, columns = s->width / s->merge_x;
    const uint32_t n = s->merge_y * s->merge_x;
    for (uint32_t y = 0; y < rows; y++)
        for (uint32_t x = 0; x < columns; x++) {
            double sum = 0;
            uint32_t n_there = 0;
            for (uint32_t i = 0; i < n; i++) {
                const size_t row = (size_t)y * s->merge_y + i / s->merge_x;
                const float v = values[row * s->width + x * s->merge_x + i % s->merge_x];
                if (isfinite(v)) {
                    sum += (double)v;
                    n_there++;
                }
            }
            merged[(size_t)y * columns + x] = 2 * n_there >= n ? (float)(sum / n_there) : NAN;
        }
}

/* Between b and c; where a or d is missing, its neighbour stands in. */
static float interpolate(float a, float b, float c, float d, float t)
{
    if (!isfinite(b) || !isfinite(c))
        return t == 0 ? b : NAN;
    a = isfinite(a) ? a : b;
    d = isfinite(d) ? d : c;
    return b + t / 2 * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
}

/* The value at place `at` of n values that lie `stride` apart. */
static float value_at(const float *first, uint32_t n, size_t stride, double at)
{
    const uint32_t b = (uint32_t)at, last = n - 1;
    const uint32_t a = b > 0 ? b - 1 : b, c = b < last ? b + 1 : last, d = c < last ? c + 1 : last;
    return interpolate(first[a * stride], first[b * stride], first[c * stride], first[d * stride],
                       (float)(at - b));
}

void oct_square_run(const struct oct_square *s, const float *values, float *merged,
                    struct oct_picture *out)
{
    const uint32_t rows = s->height / s->merge_y, columns = s->width / s->merge_x;
    merge(s, values, merged);
    for (uint32_t y = 0; y < out->height; y++)
        for (uint32_t x = 0; x < out->width; x++) {
            const float value = s->scale_y > 1 ? value_at(merged + x, rows, columns,
                                                          fmin(y / s->scale_y, rows - 1.0))
                                               : value_at(merged + (size_t)y * columns, columns, 1,
                                                          fmin(x / s->scale_x, columns - 1.0));
            const size_t at = (size_t)y * out->width + x;
            out->valid[at] = isfinite(value);
            out->pixels[at] = out->valid[at] ? value : 0;
        }
}
