#include "analysis/correlate/picture.h"

#include "pipeline/base/aligned.h"

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

/* Two passes: the variance of 60000 +- 50 does not cancel. */
void oct_picture_look(const struct oct_picture *picture, struct oct_picture_statistics *statistics)
{
    struct oct_picture_statistics s = {.least = INFINITY, .most = -INFINITY};
    const size_t n = count(picture);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        if (picture->valid && !picture->valid[i])
            continue;
        const double v = picture->pixels[i];
        s.n_valid++;
        sum += v;
        s.least = v < s.least ? v : s.least;
        s.most = v > s.most ? v : s.most;
    }
    if (s.n_valid == 0) {
        *statistics = (struct oct_picture_statistics){0};
        return;
    }
    s.mean = sum / (double)s.n_valid;
    for (size_t i = 0; i < n; i++)
        if (!picture->valid || picture->valid[i])
            squares += (picture->pixels[i] - s.mean) * (picture->pixels[i] - s.mean);
    s.variance = s.least < s.most ? squares / (double)s.n_valid : 0;
    *statistics = s;
}
