#include "analysis/align/level.h"

#include "analysis/align/matcher.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Below this part of the squared mean a variance is rounding. */
#define LEAST_CONTRAST 1e-13

enum oct_err oct_level_init(struct oct_level *level, uint32_t height, uint32_t width, bool masked,
                            struct oct_error *err)
{
    *level = (struct oct_level){.height = height, .width = width};
    for (unsigned i = 0; i < (masked ? OCT_N_PLANES : 1); i++) {
        level->planes[i] = oct_aligned_calloc(64, (size_t)height * width, sizeof(float));
        if (!level->planes[i]) {
            oct_level_finish(level);
            return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for pictures of %u x %u pixels",
                            height, width);
        }
    }
    return OCT_OK;
}

void oct_level_finish(struct oct_level *level)
{
    for (unsigned i = 0; i < OCT_N_PLANES; i++)
        free(level->planes[i]);
    *level = (struct oct_level){0};
}

static bool has_contrast(const struct oct_picture *picture,
                         const struct oct_picture_statistics *statistics)
{
    uint64_t n = (uint64_t)picture->height * picture->width;
    return statistics->n_valid * 10 >= n && statistics->most > statistics->least &&
           statistics->variance > LEAST_CONTRAST * statistics->mean * statistics->mean;
}

bool oct_picture_has_contrast(const struct oct_picture *picture)
{
    struct oct_picture_statistics statistics;
    oct_picture_look(picture, &statistics);
    return has_contrast(picture, &statistics);
}

static void set_masked(struct oct_level *level, const struct oct_picture *picture, float mean,
                       float scale)
{
    size_t n = (size_t)level->height * level->width;
    for (size_t i = 0; i < n; i++) {
        bool valid = !picture->valid || picture->valid[i];
        float value = valid ? (picture->pixels[i] - mean) * scale : 0.0F;
        level->planes[OCT_PLANE_VALUES][i] = value;
        level->planes[OCT_PLANE_SQUARES][i] = value * value;
        level->planes[OCT_PLANE_VALID][i] = valid ? 1.0F : 0.0F;
    }
}

void oct_level_set(struct oct_level *level, const struct oct_picture *picture)
{
    struct oct_picture_statistics statistics;
    size_t n = (size_t)level->height * level->width;
    oct_picture_look(picture, &statistics);
    level->n_valid = statistics.n_valid;
    level->is_masked = statistics.n_valid < n;
    level->has_contrast = has_contrast(picture, &statistics);
    if (!level->has_contrast)
        return;
    float mean = (float)statistics.mean, scale = (float)(1.0 / sqrt(statistics.variance));
    if (level->planes[OCT_PLANE_VALID]) {
        set_masked(level, picture, mean, scale);
        return;
    }
    float *restrict to = level->planes[OCT_PLANE_VALUES];
    const float *restrict from = picture->pixels;
    for (size_t i = 0; i < n; i++)
        to[i] = (from[i] - mean) * scale;
}

static void bin_masked(const struct oct_picture *picture, struct oct_picture *binned)
{
    for (uint32_t y = 0; y < binned->height; y++)
        for (uint32_t x = 0; x < binned->width; x++) {
            const size_t at = (size_t)2 * y * picture->width + (size_t)2 * x;
            const size_t four[4] = {at, at + 1, at + picture->width, at + picture->width + 1};
            float sum = 0, n = 0;
            for (unsigned i = 0; i < 4; i++)
                if (picture->valid[four[i]]) {
                    sum += picture->pixels[four[i]];
                    n++;
                }
            const size_t to = (size_t)y * binned->width + x;
            binned->valid[to] = n >= 2;
            binned->pixels[to] = n >= 2 ? sum / n : 0;
        }
}

void oct_picture_bin(const struct oct_picture *picture, struct oct_picture *binned)
{
    if (picture->valid) {
        bin_masked(picture, binned);
        return;
    }
    for (uint32_t y = 0; y < binned->height; y++) {
        const float *a = picture->pixels + (size_t)2 * y * picture->width;
        const float *b = a + picture->width;
        float *restrict to = binned->pixels + (size_t)y * binned->width;
        for (uint32_t x = 0; x < binned->width; x++)
            to[x] = 0.25F * (a[2 * x] + a[2 * x + 1] + b[2 * x] + b[2 * x + 1]);
    }
    if (binned->valid)
        memset(binned->valid, 1, (size_t)binned->height * binned->width);
}
