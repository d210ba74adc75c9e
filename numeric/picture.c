#include "numeric/picture.h"

#include "pipeline/base/aligned.h"
#include "pipeline/base/wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t count(const struct oct_picture *picture)
{
    return (size_t)picture->height * picture->width;
}

static enum oct_err add_mask(struct oct_picture *picture, struct oct_error *err)
{
    picture->valid = oct_aligned_alloc(64, count(picture), 1);
    if (!picture->valid)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the mask of a picture of %u x %u",
                        picture->height, picture->width);
    memset(picture->valid, 1, count(picture));
    return OCT_OK;
}

enum oct_err oct_picture_init(struct oct_picture *picture, uint32_t height, uint32_t width,
                              bool masked, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    *picture = (struct oct_picture){.height = height, .width = width};
    picture->pixels = oct_aligned_alloc(64, count(picture), sizeof(float));
    if (!picture->pixels)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a picture of %u x %u", height, width);
    else if (masked)
        e = add_mask(picture, err);
    if (e)
        oct_picture_finish(picture);
    return e;
}

void oct_picture_finish(struct oct_picture *picture)
{
    free(picture->pixels);
    free(picture->valid);
    *picture = (struct oct_picture){0};
}

enum oct_err oct_picture_copy(struct oct_picture *copy, const struct oct_picture *picture,
                              struct oct_error *err)
{
    const bool masked = picture->valid != NULL;
    const enum oct_err e = oct_picture_init(copy, picture->height, picture->width, masked, err);
    if (e)
        return e;
    memcpy(copy->pixels, picture->pixels, count(picture) * sizeof(float));
    if (masked)
        memcpy(copy->valid, picture->valid, count(picture));
    return OCT_OK;
}

enum oct_err oct_picture_transpose(struct oct_picture *picture, struct oct_error *err)
{
    struct oct_picture turned;
    const uint32_t h = picture->height, w = picture->width;
    const enum oct_err e = oct_picture_init(&turned, w, h, picture->valid != NULL, err);
    if (e)
        return e;
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            const size_t from = (size_t)y * w + x, to = (size_t)x * h + y;
            turned.pixels[to] = picture->pixels[from];
            if (picture->valid)
                turned.valid[to] = picture->valid[from];
        }
    oct_picture_finish(picture);
    *picture = turned;
    return OCT_OK;
}

enum oct_err oct_picture_mask_not_finite(struct oct_picture *picture, struct oct_error *err)
{
    const size_t n = count(picture);
    for (size_t i = 0; i < n; i++) {
        if (isfinite(picture->pixels[i]))
            continue;
        enum oct_err e = picture->valid ? OCT_OK : add_mask(picture, err);
        if (e)
            return e;
        picture->valid[i] = 0;
    }
    return OCT_OK;
}

/* ---- statistics ---- */

/* Side by side: vectors no larger than AVX2 has them, and two of each, as one would wait for each
 * addition. */
#define LANES 4u
typedef float floats __attribute__((vector_size(16), aligned(4)));
typedef int32_t integers __attribute__((vector_size(16)));
typedef double doubles __attribute__((vector_size(32)));

/* About a pivot. */
struct sums {
    double sum, squares;
    float least, most;
};

double oct_picture_pivot(const struct oct_picture *p)
{
    const size_t n = count(p), step = n / 1009 + 1;
    double sum = 0;
    size_t n_taken = 0;
    for (size_t i = 0; i < n; i += step)
        if (!p->valid || p->valid[i]) {
            sum += (double)p->pixels[i];
            n_taken++;
        }
    return n_taken ? sum / (double)n_taken : 0;
}

/* n: whole pairs of lanes. */
OCT_WIDE static void add_all(struct sums *total, const float *pixels, size_t n, double pivot)
{
    doubles sum[2] = {{0}}, squares[2] = {{0}};
    floats least[2] = {{0}}, most[2] = {{0}};
    for (unsigned k = 0; k < 2; k++) {
        least[k] += total->least;
        most[k] += total->most;
    }
    for (size_t i = 0; i < n; i += 2 * LANES)
#pragma GCC unroll 2
        for (unsigned k = 0; k < 2; k++) {
            const floats v = *(const floats *)(pixels + i + k * LANES);
            const doubles d = __builtin_convertvector(v, doubles) - pivot;
            const integers below = v<least[k], above = v> most[k];
            sum[k] += d;
            squares[k] += d * d;
            least[k] = (floats)(((integers)v & below) | ((integers)least[k] & ~below));
            most[k] = (floats)(((integers)v & above) | ((integers)most[k] & ~above));
        }
    for (unsigned i = 0; i < 2 * LANES; i++) {
        const unsigned k = i / LANES, j = i % LANES;
        total->sum += sum[k][j];
        total->squares += squares[k][j];
        total->least = least[k][j] < total->least ? least[k][j] : total->least;
        total->most = most[k][j] > total->most ? most[k][j] : total->most;
    }
}

static void add_valid(struct sums *s, const float *pixels, const uint8_t *valid, size_t n,
                      double pivot)
{
    for (size_t i = 0; i < n; i++) {
        if (valid && !valid[i])
            continue;
        const double d = (double)pixels[i] - pivot;
        s->sum += d;
        s->squares += d * d;
        s->least = pixels[i] < s->least ? pixels[i] : s->least;
        s->most = pixels[i] > s->most ? pixels[i] : s->most;
    }
}

static uint64_t count_valid(const struct oct_picture *picture)
{
    const size_t n = count(picture);
    uint64_t n_valid = 0;
    for (size_t i = 0; i < n && picture->valid; i++)
        n_valid += picture->valid[i] != 0;
    return picture->valid ? n_valid : n;
}

void oct_picture_look(const struct oct_picture *picture, struct oct_picture_statistics *statistics)
{
    const size_t n = count(picture), whole = picture->valid ? 0 : n - n % (2 * (size_t)LANES);
    const double pivot = oct_picture_pivot(picture);
    const uint64_t n_valid = count_valid(picture);
    struct sums s = {.least = INFINITY, .most = -INFINITY};
    *statistics = (struct oct_picture_statistics){0};
    if (n_valid == 0)
        return;
    add_all(&s, picture->pixels, whole, pivot);
    add_valid(&s, picture->pixels + whole, picture->valid, n - whole, pivot);
    const double squares = s.squares - s.sum * s.sum / (double)n_valid;
    const bool is_flat = s.least == s.most && isfinite(s.squares); /* NaN has no order */
    *statistics = (struct oct_picture_statistics){
        .n_valid = n_valid,
        .mean = pivot + s.sum / (double)n_valid,
        .variance = is_flat || squares < 0 ? 0 : squares / (double)n_valid,
        .least = (double)s.least,
        .most = (double)s.most,
    };
}
