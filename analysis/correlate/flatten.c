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

/* ---- on binned pixels ---- */

#define BIN 4u

/* Sums of the valid pixels of BIN x BIN, and how many they are. */
static void bin(const struct oct_picture *p, uint32_t width, float *sums, float *weights)
{
    for (uint32_t y = 0; y < p->height; y++) {
        const size_t row = (size_t)y * p->width, to = (size_t)(y / BIN) * width;
        for (uint32_t x = 0; x < p->width; x++)
            if (oct_picture_is_valid(p, row + x)) {
                sums[to + x / BIN] += p->pixels[row + x];
                weights[to + x / BIN] += 1;
            }
    }
}

/* Where a pixel lies between the middles of bins; before the first and behind the last: there. */
struct place {
    uint32_t first;
    float part; /* of the way to the next */
};

static struct place place_of(uint32_t i, uint32_t n_bins)
{
    const double at = fmax(0, fmin(n_bins - 1.0, ((double)i - (BIN - 1) / 2.0) / BIN));
    const uint32_t first = at < n_bins - 1.0 ? (uint32_t)at : n_bins - 2;
    return (struct place){first, (float)(at - first)};
}

/* line: [width] of bins, places: [width] of pixels. */
static void subtract_bins(struct oct_picture *p, const float *background, uint32_t height,
                          uint32_t width, float *line, struct place *places)
{
    for (uint32_t x = 0; x < p->width; x++)
        places[x] = place_of(x, width);
    for (uint32_t y = 0; y < p->height; y++) {
        const struct place at = place_of(y, height);
        const float *from = background + (size_t)at.first * width, *next = from + width;
        float *to = p->pixels + (size_t)y * p->width;
        for (uint32_t i = 0; i < width; i++)
            line[i] = from[i] + at.part * (next[i] - from[i]);
        for (uint32_t x = 0; x < p->width; x++) {
            const float *here = line + places[x].first;
            to[x] -= here[0] + places[x].part * (here[1] - here[0]);
        }
    }
}

enum oct_err oct_picture_flatten_coarse(struct oct_picture *picture, double sigma_px,
                                        struct oct_error *err)
{
    const uint32_t height = (picture->height - 1) / BIN + 1, width = (picture->width - 1) / BIN + 1;
    const size_t n = (size_t)height * width, n_pixels = (size_t)picture->height * picture->width;
    struct blur b = {0};
    float *background = calloc(n, sizeof(*background)), *weights = calloc(n, sizeof(*weights));
    float *line = malloc(width * sizeof(*line));
    struct place *places = malloc(picture->width * sizeof(*places));
    enum oct_err e = OCT_OK;
    if (!background || !weights || !line || !places ||
        !blur_init(&b, height, width, sigma_px / BIN)) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a background");
    } else {
        const float pivot = (float)oct_picture_pivot(picture);
        for (size_t i = 0; i < n_pixels; i++)
            picture->pixels[i] = oct_picture_is_valid(picture, i) ? picture->pixels[i] - pivot : 0;
        bin(picture, width, background, weights);
        blur(&b, background, background);
        blur(&b, weights, weights);
        for (size_t i = 0; i < n; i++)
            background[i] = weights[i] > 0 ? background[i] / weights[i] : 0;
        subtract_bins(picture, background, height, width, line, places);
        for (size_t i = 0; i < n_pixels && picture->valid; i++)
            picture->pixels[i] = picture->valid[i] ? picture->pixels[i] : 0;
    }
    blur_finish(&b);
    free(background);
    free(weights);
    free(line);
    free(places);
    return e;
}
