#include "analysis/correlate/flatten.h"

#include "pipeline/base/wide.h"

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

static inline void add_scaled(float *restrict to, const float *restrict from, float weight,
                              uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] += weight * from[i];
}

/* out may be in. Zeros beyond the border. */
OCT_WIDE static void blur(struct blur *b, const float *in, float *out)
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

/* ---- the background, of bins ---- */

/* Sums of the valid pixels of bin x bin, and how many they are. */
static void sum_bins(const struct oct_picture *p, uint32_t bin, uint32_t width, float *sums,
                     float *weights)
{
    for (uint32_t y = 0; y < p->height; y++) {
        const size_t row = (size_t)y * p->width, to = (size_t)(y / bin) * width;
        for (uint32_t i = 0, x = 0; i < width; i++)
            for (uint32_t k = 0; k < bin && x < p->width; k++, x++)
                if (oct_picture_is_valid(p, row + x)) {
                    sums[to + i] += p->pixels[row + x];
                    weights[to + i] += 1;
                }
    }
}

/* Where a pixel lies between the middles of bins; before the first and behind the last: there. */
struct place {
    uint32_t first;
    float part; /* of the way to the next */
};

static struct place place_of(uint32_t i, uint32_t bin, uint32_t n_bins)
{
    const double at = fmax(0, fmin(n_bins - 1.0, ((double)i - (bin - 1) / 2.0) / bin));
    const uint32_t first = at < n_bins - 1.0 ? (uint32_t)at : n_bins - 2;
    return (struct place){first, (float)(at - first)};
}

/* line: [width] of bins, places: [width] of pixels. */
static void subtract_bins(struct oct_picture *p, const float *background, uint32_t bin,
                          uint32_t height, uint32_t width, float *line, struct place *places)
{
    for (uint32_t x = 0; x < p->width; x++)
        places[x] = place_of(x, bin, width);
    for (uint32_t y = 0; y < p->height; y++) {
        const struct place at = place_of(y, bin, height);
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

/* Pixels less about their mean first, so that f32 sums of large values do not cancel. */
static enum oct_err flatten(struct oct_picture *picture, uint32_t bin, double sigma_px,
                            struct oct_error *err)
{
    const uint32_t height = (picture->height - 1) / bin + 1, width = (picture->width - 1) / bin + 1;
    const size_t n = (size_t)height * width, n_pixels = (size_t)picture->height * picture->width;
    struct blur b = {0};
    float *background = calloc(2 * n + width, sizeof(*background));
    struct place *places = malloc(picture->width * sizeof(*places));
    enum oct_err e = OCT_OK;
    if (!background || !places || !blur_init(&b, height, width, sigma_px / bin)) {
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a background");
    } else {
        float *weights = background + n, *line = weights + n;
        const float pivot = (float)oct_picture_pivot(picture);
        for (size_t i = 0; i < n_pixels; i++)
            picture->pixels[i] = oct_picture_is_valid(picture, i) ? picture->pixels[i] - pivot : 0;
        sum_bins(picture, bin, width, background, weights);
        blur(&b, background, background);
        blur(&b, weights, weights);
        for (size_t i = 0; i < n; i++)
            background[i] = weights[i] > 0 ? background[i] / weights[i] : 0;
        subtract_bins(picture, background, bin, height, width, line, places);
        for (size_t i = 0; i < n_pixels && picture->valid; i++)
            picture->pixels[i] = picture->valid[i] ? picture->pixels[i] : 0;
    }
    blur_finish(&b);
    free(background);
    free(places);
    return e;
}

enum oct_err oct_picture_flatten(struct oct_picture *picture, double sigma_px,
                                 struct oct_error *err)
{
    if (!(sigma_px >= 0.5 && sigma_px <= OCT_PICTURE_MOST_SIDE))
        return oct_fail(err, OCT_E_ARG, "a background of %g px; 0.5 to %u can be", sigma_px,
                        OCT_PICTURE_MOST_SIDE);
    return flatten(picture, 1, sigma_px, err);
}

enum oct_err oct_picture_flatten_coarse(struct oct_picture *picture, double sigma_px,
                                        struct oct_error *err)
{
    return flatten(picture, 4, sigma_px, err);
}
