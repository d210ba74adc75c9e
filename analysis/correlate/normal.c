#include "analysis/correlate/normal.h"

#include <math.h>
#include <string.h>

#define LANES 8u /* sums side by side: one after the other would wait for each addition */

struct sums {
    uint64_t n;
    double sum, squares;
};

static double total(const double lanes[LANES])
{
    double sum = 0;
    for (unsigned k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}

static void add_plain(struct sums *sums, const float *row, uint32_t n, double shift)
{
    double sum[LANES] = {0}, squares[LANES] = {0};
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (unsigned k = 0; k < LANES; k++) {
            const double v = row[i + k] - shift;
            sum[k] += v;
            squares[k] += v * v;
        }
    for (; i < n; i++) {
        const double v = row[i] - shift;
        sum[0] += v;
        squares[0] += v * v;
    }
    sums->n += n;
    sums->sum += total(sum);
    sums->squares += total(squares);
}

static void add_masked(struct sums *sums, const float *row, const uint8_t *valid, uint32_t n,
                       double shift)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!valid[i])
            continue;
        const double v = row[i] - shift;
        sums->n++;
        sums->sum += v;
        sums->squares += v * v;
    }
}

static double some_pixel(const struct oct_picture *picture)
{
    const size_t n = (size_t)picture->height * picture->width;
    for (size_t i = 0; i < n; i++)
        if (!picture->valid || picture->valid[i])
            return picture->pixels[i];
    return 0;
}

void oct_normal_measure(struct oct_normal *normal, const struct oct_picture *picture,
                        bool keep_mean)
{
    const uint32_t width = picture->width;
    const double shift = some_pixel(picture);
    struct sums sums = {0};
    for (uint32_t y = 0; y < picture->height; y++) {
        const size_t at = (size_t)y * width;
        if (picture->valid)
            add_masked(&sums, picture->pixels + at, picture->valid + at, width, shift);
        else
            add_plain(&sums, picture->pixels + at, width, shift);
    }
    *normal = (struct oct_normal){.n_valid = sums.n, .scale = 1};
    if (sums.n == 0)
        return;
    const double n = (double)sums.n, mean = sums.sum / n; /* less shift */
    double square = sums.squares / n - mean * mean;       /* the variance */
    normal->usable =
        sums.squares > 0 && square > 0 && 10 * sums.n >= (uint64_t)picture->height * width;
    normal->offset = keep_mean ? 0 : shift + mean;
    if (keep_mean)
        square += (shift + mean) * (shift + mean);
    if (square > 0)
        normal->scale = 1 / sqrt(square);
}

static void write_plain(const float *restrict from, float *restrict to, uint32_t n, double offset,
                        double scale)
{
    for (uint32_t x = 0; x < n; x++)
        to[x] = (float)((from[x] - offset) * scale);
}

static void write_masked(const float *from, const uint8_t *valid, float *to, uint32_t n,
                         double offset, double scale)
{
    for (uint32_t x = 0; x < n; x++)
        to[x] = valid[x] ? (float)((from[x] - offset) * scale) : 0;
}

void oct_normal_write(const struct oct_normal *normal, const struct oct_picture *picture, float *to,
                      uint8_t *valid)
{
    const uint32_t width = picture->width;
    const double offset = normal->offset, scale = normal->scale;
    for (uint32_t y = 0; y < picture->height; y++) {
        const size_t at = (size_t)y * width;
        const uint8_t *mask = picture->valid ? picture->valid + at : NULL;
        if (mask)
            write_masked(picture->pixels + at, mask, to + at, width, offset, scale);
        else
            write_plain(picture->pixels + at, to + at, width, offset, scale);
        if (valid && mask)
            memcpy(valid + at, mask, width);
        else if (valid)
            memset(valid + at, 1, width);
    }
}
