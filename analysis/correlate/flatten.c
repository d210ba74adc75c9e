#include "analysis/correlate/flatten.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct blur {
    uint32_t height, width, radius;
    float *weights; /* [2 radius + 1] */
    float *rows;    /* [height][width]: blurred along x */
    float *line;    /* [width + 2 radius] */
};

static void blur_finish(struct blur *b)
{
    free(b->weights);
    free(b->rows);
    free(b->line);
}

static bool blur_init(struct blur *b, uint32_t height, uint32_t width, double sigma)
{
    const uint32_t most = height > width ? height : width;
    const double radius = ceil(4 * sigma);
    *b = (struct blur){
        .height = height, .width = width, .radius = radius < most ? (uint32_t)radius : most};
    b->weights = malloc((2 * (size_t)b->radius + 1) * sizeof(*b->weights));
    b->rows = malloc((size_t)height * width * sizeof(*b->rows));
    b->line = calloc(width + 2 * (size_t)b->radius, sizeof(*b->line));
    if (!b->weights || !b->rows || !b->line)
        return false;
    double sum = 0;
    for (uint32_t i = 0; i <= 2 * b->radius; i++) {
        const double x = ((double)i - b->radius) / sigma;
        sum += exp(-x * x / 2);
    }
    for (uint32_t i = 0; i <= 2 * b->radius; i++) {
        const double x = ((double)i - b->radius) / sigma;
        b->weights[i] = (float)(exp(-x * x / 2) / sum);
    }
    return true;
}

static void add_scaled(float *restrict to, const float *restrict from, float weight, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] += weight * from[i];
}

/* out may be in. Zeros beyond the border. */
static void blur(struct blur *b, const float *in, float *out)
{
    const size_t w = b->width;
    memset(b->rows, 0, b->height * w * sizeof(*b->rows));
    for (uint32_t y = 0; y < b->height; y++) {
        memcpy(b->line + b->radius, in + y * w, w * sizeof(*b->line));
        for (uint32_t i = 0; i <= 2 * b->radius; i++)
            add_scaled(b->rows + y * w, b->line + i, b->weights[i], b->width);
    }
    memset(out, 0, b->height * w * sizeof(*out));
    for (uint32_t y = 0; y < b->height; y++)
        for (uint32_t i = 0; i <= 2 * b->radius; i++) {
            const int64_t from = (int64_t)y + i - b->radius;
            if (from >= 0 && from < b->height)
                add_scaled(out + y * w, b->rows + (size_t)from * w, b->weights[i], b->width);
        }
}

/* Less the mean first, so that f32 sums of large values do not cancel. */
static void prepare(struct oct_picture *p, float *valid)
{
    struct oct_picture_statistics statistics;
    const size_t n = (size_t)p->height * p->width;
    oct_picture_look(p, &statistics);
    for (size_t i = 0; i < n; i++) {
        valid[i] = !p->valid || p->valid[i] ? 1.0f : 0.0f;
        p->pixels[i] = valid[i] > 0 ? (float)(p->pixels[i] - statistics.mean) : 0.0f;
    }
}

enum oct_err oct_picture_flatten(struct oct_picture *picture, double sigma_px,
                                 struct oct_error *err)
{
    const size_t n = (size_t)picture->height * picture->width;
    enum oct_err e = OCT_OK;
    struct blur b = {0};
    if (!(sigma_px >= 0.5 && sigma_px <= OCT_PICTURE_MOST_SIDE))
        return oct_fail(err, OCT_E_ARG, "a background of %g px; 0.5 to %u can be", sigma_px,
                        OCT_PICTURE_MOST_SIDE);
    float *background = malloc(n * sizeof(*background)), *weight = malloc(n * sizeof(*weight));
    if (!background || !weight || !blur_init(&b, picture->height, picture->width, sigma_px)) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a background");
    } else {
        prepare(picture, weight);
        blur(&b, picture->pixels, background);
        blur(&b, weight, weight);
        for (size_t i = 0; i < n; i++)
            if (!picture->valid || picture->valid[i])
                picture->pixels[i] -= background[i] / weight[i];
    }
    blur_finish(&b);
    free(background);
    free(weight);
    return e;
}
