#include "analysis/align/reference.h"

#include "analysis/align/level.h"
#include "analysis/align/matcher.h"
#include "numeric/order.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_OVERLAP 0.3
#define LEAST_SIDE 16u    /* of binned pictures */
#define LEAST_BETTER 1e-5 /* of two that are alike by turns the first is taken */

/* Halves a picture's sides, twice where that leaves enough. */
static enum oct_err bin(const struct oct_picture *picture, struct oct_picture *binned,
                        struct oct_error *err)
{
    enum oct_err e = oct_picture_init(binned, picture->height / 2, picture->width / 2, true, err);
    if (e)
        return e;
    oct_picture_bin(picture, binned);
    if (binned->height < 2 * LEAST_SIDE || binned->width < 2 * LEAST_SIDE)
        return OCT_OK;
    struct oct_picture half = *binned;
    e = oct_picture_init(binned, half.height / 2, half.width / 2, true, err);
    if (!e)
        oct_picture_bin(&half, binned);
    oct_picture_finish(&half);
    return e;
}

/* The sum of scores of all pictures against picture i, itself with 1. */
static enum oct_err sum_scores(struct oct_matcher *matcher, const struct oct_picture *pictures,
                               unsigned n, unsigned i, double *sum, struct oct_error *err)
{
    struct oct_match matches[OCT_REFERENCE_CANDIDATES];
    enum oct_err e = oct_matcher_cpu.set_reference(matcher, &pictures[i], err);
    if (!e)
        e = oct_matcher_cpu.load(matcher, pictures, n, err);
    if (!e)
        e = oct_matcher_cpu.find(matcher, matches, err);
    *sum = 0;
    for (unsigned k = 0; k < n && !e; k++)
        *sum += isnan(matches[k].score) ? 0 : (double)matches[k].score;
    return e;
}

static enum oct_err compare_all(const struct oct_picture *binned, unsigned n, unsigned *chosen,
                                struct oct_error *err)
{
    const struct oct_matcher_setup setup = {
        .height = binned[0].height,
        .width = binned[0].width,
        .max_dy = binned[0].height / 3,
        .max_dx = binned[0].width / 3,
        .min_overlap = LEAST_OVERLAP,
        .masked = true,
        .n_batch = n,
    };
    struct oct_matcher *matcher;
    double best = -HUGE_VAL;
    enum oct_err e = oct_matcher_cpu.create(&matcher, &setup, err);
    for (unsigned i = 0; i < n && !e; i++) {
        double sum;
        if (!oct_picture_has_contrast(&binned[i]))
            continue;
        e = sum_scores(matcher, binned, n, i, &sum, err);
        if (!e && sum > best + LEAST_BETTER) {
            best = sum;
            *chosen = i;
        }
    }
    if (!e && best == -HUGE_VAL)
        e = oct_fail(err, OCT_E_ARG, "no frame has contrast");
    oct_matcher_cpu.destroy(matcher);
    return e;
}

enum oct_err oct_reference_choose(const struct oct_picture *pictures, unsigned n, unsigned *chosen,
                                  struct oct_error *err)
{
    struct oct_picture binned[OCT_REFERENCE_CANDIDATES] = {{0}};
    enum oct_err e = OCT_OK;
    *chosen = 0;
    for (unsigned i = 0; i < n && !e; i++)
        e = bin(&pictures[i], &binned[i], err);
    if (!e)
        e = compare_all(binned, n, chosen, err);
    for (unsigned i = 0; i < n; i++)
        oct_picture_finish(&binned[i]);
    return e;
}

void oct_reference_motion(double *shifts, uint64_t n_frames, uint32_t height, double *scratch,
                          double *motion)
{
    for (uint64_t i = 0; i < n_frames; i++) {
        double mean = 0, *of_frame = shifts + i * height;
        for (uint32_t y = 0; y < height; y++)
            mean += of_frame[y] / height;
        for (uint32_t y = 0; y < height; y++)
            of_frame[y] -= mean;
    }
    for (uint32_t y = 0; y < height; y++) {
        for (uint64_t i = 0; i < n_frames; i++)
            scratch[i] = shifts[i * height + y];
        motion[y] = n_frames ? -oct_doubles_median(scratch, n_frames) : 0;
    }
}

void oct_reference_undo(const double *motion, uint32_t height, const double *dy, double *shift)
{
    for (uint32_t y = 0; y < height; y++) {
        double at = y + dy[y];
        at = at < 0 ? 0 : at > height - 1 ? height - 1 : at;
        uint32_t first = (uint32_t)at, next = first + 1 < height ? first + 1 : first;
        double part = at - first;
        shift[y] += motion[first] + part * (motion[next] - motion[first]);
    }
}
