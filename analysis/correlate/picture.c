#include "analysis/correlate/picture.h"

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

#define LANES 8u

/* About a pivot; in lanes that gcc makes vectors of. */
struct sums {
    double sum[LANES], squares[LANES];
    float least[LANES], most[LANES];
};

/* The mean of some pixels that are spread over the picture: near enough to the mean of all that
 * the variance of 60000 +- 50 does not cancel. Equal pixels give exactly their value. */
static double find_pivot(const struct oct_picture *p)
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

/* n: whole lanes. */
OCT_WIDE static void add_all(struct sums *total, const float *pixels, size_t n, double pivot)
{
    struct sums s = *total;
    for (size_t i = 0; i < n; i += LANES)
        for (unsigned j = 0; j < LANES; j++) {
            const float v = pixels[i + j];
            const double d = (double)v - pivot;
            s.sum[j] += d;
            s.squares[j] += d * d;
            s.least[j] = v < s.least[j] ? v : s.least[j];
            s.most[j] = v > s.most[j] ? v : s.most[j];
        }
    *total = s;
}

static void add_valid(struct sums *s, const float *pixels, const uint8_t *valid, size_t n,
                      double pivot)
{
    for (size_t i = 0; i < n; i++) {
        if (valid && !valid[i])
            continue;
        const double d = (double)pixels[i] - pivot;
        const unsigned j = i % LANES;
        s->sum[j] += d;
        s->squares[j] += d * d;
        s->least[j] = pixels[i] < s->least[j] ? pixels[i] : s->least[j];
        s->most[j] = pixels[i] > s->most[j] ? pixels[i] : s->most[j];
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
    const size_t n = count(picture), whole = picture->valid ? 0 : n - n % LANES;
    const double pivot = find_pivot(picture), n_valid = (double)count_valid(picture);
    struct oct_picture_statistics look = {.least = INFINITY, .most = -INFINITY};
    struct sums s = {.sum = {0}};
    double sum = 0, squares = 0;
    for (unsigned j = 0; j < LANES; j++) {
        s.least[j] = INFINITY;
        s.most[j] = -INFINITY;
    }
    add_all(&s, picture->pixels, whole, pivot);
    add_valid(&s, picture->pixels + whole, picture->valid, n - whole, pivot);
    for (unsigned j = 0; j < LANES; j++) {
        sum += s.sum[j];
        squares += s.squares[j];
        look.least = s.least[j] < look.least ? (double)s.least[j] : look.least;
        look.most = s.most[j] > look.most ? (double)s.most[j] : look.most;
    }
    *statistics = (struct oct_picture_statistics){0};
    if (n_valid < 1)
        return;
    look.n_valid = (uint64_t)n_valid;
    look.mean = pivot + sum / n_valid;
    look.variance = look.least < look.most ? fmax(0, squares - sum * sum / n_valid) / n_valid : 0;
    *statistics = look;
}
