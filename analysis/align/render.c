#include "analysis/align/render.h"

#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A pixel of which less is covered is not. */
#define LEAST_WEIGHT 1e-3

static int32_t least_of(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t most_of(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

void oct_render_grow(struct oct_render_box *box, uint32_t height, uint32_t width, const double *dy,
                     const double *dx)
{
    double y0 = HUGE_VAL, y1 = -HUGE_VAL, x0 = HUGE_VAL, x1 = -HUGE_VAL;
    for (uint32_t y = 0; y < height; y++) {
        y0 = fmin(y0, y + dy[y]);
        y1 = fmax(y1, y + dy[y]);
        x0 = fmin(x0, dx[y]);
        x1 = fmax(x1, dx[y]);
    }
    const int32_t last = (int32_t)width - 1;
    if (!box->is_set)
        *box = (struct oct_render_box){INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, true,
                                       INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX};
    box->y0 = least_of(box->y0, (int32_t)floor(y0));
    box->y1 = most_of(box->y1, (int32_t)ceil(y1));
    box->x0 = least_of(box->x0, (int32_t)floor(x0));
    box->x1 = most_of(box->x1, (int32_t)ceil(x1) + last);
    box->common_y0 = most_of(box->common_y0, (int32_t)ceil(y0));
    box->common_y1 = least_of(box->common_y1, (int32_t)floor(y1));
    box->common_x0 = most_of(box->common_x0, (int32_t)ceil(x1));
    box->common_x1 = least_of(box->common_x1, (int32_t)floor(x0) + last);
}

void oct_render_finish(struct oct_render *r)
{
    free(r->sum);
    free(r->weight);
    free(r->line);
    free(r->cover);
    *r = (struct oct_render){0};
}

enum oct_err oct_render_init(struct oct_render *r, int32_t y0, int32_t y1, int32_t x0, int32_t x1,
                             enum oct_resampling interpolation, bool as_power,
                             struct oct_error *err)
{
    *r = (struct oct_render){0};
    int64_t height = (int64_t)y1 - y0 + 1, width = (int64_t)x1 - x0 + 1;
    if (height < 1 || width < 1)
        return oct_fail(err, OCT_E_ARG, "no pixel is covered by all frames: use --crop all");
    if (height > 2 * OCT_PICTURE_MOST_SIDE || width > 2 * OCT_PICTURE_MOST_SIDE)
        return oct_fail(err, OCT_E_ARG, "moved frames reach over %lld x %lld pixels",
                        (long long)width, (long long)height);
    size_t n = (size_t)(height * width);
    *r = (struct oct_render){
        .height = (uint32_t)height,
        .width = (uint32_t)width,
        .origin_y = -y0,
        .origin_x = -x0,
        .interpolation = interpolation,
        .as_power = as_power,
        .sum = oct_aligned_calloc(64, n, sizeof(double)),
        .weight = oct_aligned_calloc(64, n, sizeof(double)),
        .line = oct_aligned_calloc(64, (size_t)width, sizeof(float)),
        .cover = oct_aligned_calloc(64, (size_t)width, sizeof(float)),
    };
    if (r->sum && r->weight && r->line && r->cover)
        return OCT_OK;
    oct_render_finish(r);
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for an average of %lld x %lld pixels",
                    (long long)height, (long long)width);
}

void oct_render_clear(struct oct_render *r)
{
    size_t bytes = (size_t)r->height * r->width * sizeof(double);
    memset(r->sum, 0, bytes);
    memset(r->weight, 0, bytes);
}

/* Weights of the pixels first .. first + n - 1 around a place `fraction` behind pixel 1 of four, or
 * pixel 0 of two. */
struct taps {
    int first, n;
    double weights[4];
};

static struct taps taps_at(enum oct_resampling interpolation, double fraction)
{
    double t = fraction;
    if (interpolation == OCT_RESAMPLING_NONE || t == 0)
        return (struct taps){0, 1, {1}};
    if (interpolation == OCT_RESAMPLING_LINEAR)
        return (struct taps){0, 2, {1 - t, t}};
    return (struct taps){-1,
                         4,
                         {((-0.5 * t + 1) * t - 0.5) * t, (1.5 * t - 2.5) * t * t + 1,
                          ((-1.5 * t + 2) * t + 0.5) * t, (0.5 * t - 0.5) * t * t}};
}

/* The whole part of a shift and what is left, 0 <= *fraction < 1. */
static int64_t split(enum oct_resampling interpolation, double shift, double *fraction)
{
    double whole = interpolation == OCT_RESAMPLING_NONE ? floor(shift + 0.5) : floor(shift);
    *fraction = interpolation == OCT_RESAMPLING_NONE ? 0 : shift - whole;
    return (int64_t)whole;
}

static float value_of(const struct oct_render *r, float pixel)
{
    return r->as_power ? powf(10.0F, pixel * 0.1F) : pixel;
}

/* Fills line and cover for columns *first .. *end - 1 of the canvas. */
static void sample_line(struct oct_render *r, const struct oct_picture *picture, uint32_t y,
                        double dx, int64_t *first, int64_t *end)
{
    const float *pixels = picture->pixels + (size_t)y * picture->width;
    const uint8_t *valid = picture->valid ? picture->valid + (size_t)y * picture->width : NULL;
    double fraction;
    /* The canvas' column X shows the picture's column X - origin - dx. */
    int64_t off = split(r->interpolation, -dx, &fraction) - r->origin_x, width = picture->width;
    struct taps taps = taps_at(r->interpolation, fraction);
    struct taps at_side = taps.n == 4 ? taps_at(OCT_RESAMPLING_LINEAR, fraction) : taps;
    *first = -off - 1 > 0 ? -off - 1 : 0;
    *end = width - off < (int64_t)r->width ? width - off : (int64_t)r->width;
    for (int64_t x = *first; x < *end; x++) {
        int64_t at = x + off;
        bool is_inside = at + taps.first >= 0 && at + taps.first + taps.n <= width;
        const struct taps *t = is_inside ? &taps : &at_side;
        double sum = 0, weight = 0;
        for (int i = 0; i < t->n; i++) {
            int64_t from = at + t->first + i;
            if (from < 0 || from >= width || (valid && !valid[from]))
                continue;
            sum += t->weights[i] * (double)value_of(r, pixels[from]);
            weight += t->weights[i];
        }
        bool is_covered = weight > LEAST_WEIGHT;
        r->line[x] = is_covered ? (float)(sum / weight) : 0.0F;
        r->cover[x] = is_covered ? (float)(weight < 1 ? weight : 1) : 0.0F;
    }
}

static void add_line(struct oct_render *r, int64_t row, double weight, int64_t first, int64_t end)
{
    if (row < 0 || row >= (int64_t)r->height || weight == 0)
        return;
    double *restrict sum = r->sum + (size_t)row * r->width;
    double *restrict total = r->weight + (size_t)row * r->width;
    const float *restrict line = r->line, *restrict cover = r->cover;
    for (int64_t x = first; x < end; x++) {
        double w = weight * (double)cover[x];
        sum[x] += w * (double)line[x];
        total[x] += w;
    }
}

void oct_render_add(struct oct_render *r, const struct oct_picture *picture, const double *dy,
                    const double *dx)
{
    for (uint32_t y = 0; y < picture->height; y++) {
        int64_t first, end;
        double fraction;
        /* The first and the last lines have no neighbours on one side to take back what the outer
         * weights of a cubic add. */
        bool is_outer = y < 2 || y + 2 >= picture->height;
        enum oct_resampling interpolation = r->interpolation;
        if (is_outer && interpolation == OCT_RESAMPLING_CUBIC)
            interpolation = OCT_RESAMPLING_LINEAR;
        int64_t row = (int64_t)y + r->origin_y + split(interpolation, dy[y], &fraction);
        struct taps taps = taps_at(interpolation, fraction);
        sample_line(r, picture, y, dx[y], &first, &end);
        for (int i = 0; i < taps.n && first < end; i++)
            add_line(r, row + taps.first + i, taps.weights[i], first, end);
    }
}

void oct_render_average(const struct oct_render *r, float *average, float *weight)
{
    size_t n = (size_t)r->height * r->width;
    for (size_t i = 0; i < n; i++) {
        double w = r->weight[i], value = w > LEAST_WEIGHT ? r->sum[i] / w : (double)NAN;
        average[i] = (float)(r->as_power ? 10 * log10(value > 0 ? value : 1e-30) : value);
        if (isnan(value))
            average[i] = NAN;
        if (weight)
            weight[i] = w > LEAST_WEIGHT ? (float)w : 0.0F;
    }
}
