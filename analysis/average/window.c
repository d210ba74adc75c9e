#include "analysis/average/window.h"

#include "analysis/average/pixels.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CACHE_LINE 64u
#define SHARE_OF_MEMORY 0.25
#define N_ANEW 64u /* B-scans within which all sums are made anew */

/* ---- life ---- */

static size_t n_pixels(const struct oct_average_window *w)
{
    return (size_t)w->n_lines * w->depth;
}

enum oct_err oct_average_window_check(uint32_t n_lines, uint32_t depth, uint32_t n_most,
                                      struct oct_error *err)
{
    double there = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    double bytes = (double)n_lines * depth * (4.0 * n_most + 16);
    if (bytes <= SHARE_OF_MEMORY * there)
        return OCT_OK;
    return oct_fail(err, OCT_E_CONFIG,
                    "average: %u B-scans of %u x %u take %.1f GB, more than a quarter of this "
                    "machine's memory: lower average.bscans",
                    n_most, n_lines, depth, bytes * 1e-9);
}

enum oct_err oct_average_window_init(struct oct_average_window *w, uint32_t n_lines, uint32_t depth,
                                     uint32_t n_most, struct oct_error *err)
{
    *w = (struct oct_average_window){.n_lines = n_lines, .depth = depth, .n_most = n_most};
    enum oct_err e = oct_average_window_check(n_lines, depth, n_most, err);
    if (e)
        return e;
    w->frames = oct_aligned_alloc(CACHE_LINE, n_pixels(w) * n_most, sizeof(*w->frames));
    w->line_weights = calloc((size_t)n_most * n_lines, sizeof(*w->line_weights));
    w->depth_weights = calloc((size_t)n_most * depth, sizeof(*w->depth_weights));
    w->sum = oct_aligned_alloc(CACHE_LINE, n_pixels(w), sizeof(*w->sum));
    w->weight = oct_aligned_alloc(CACHE_LINE, n_pixels(w), sizeof(*w->weight));
    w->scratch = calloc(5 * (size_t)depth, sizeof(*w->scratch));
    if (!w->frames || !w->line_weights || !w->depth_weights || !w->sum || !w->weight ||
        !w->scratch) {
        oct_average_window_finish(w);
        return oct_fail(err, OCT_E_NO_MEMORY, "average: out of memory for %u B-scans of %u x %u",
                        n_most, n_lines, depth);
    }
    oct_average_window_clear(w);
    return OCT_OK;
}

void oct_average_window_finish(struct oct_average_window *w)
{
    free(w->frames);
    free(w->line_weights);
    free(w->depth_weights);
    free(w->sum);
    free(w->weight);
    free(w->scratch);
    *w = (struct oct_average_window){.n = 0};
}

void oct_average_window_clear(struct oct_average_window *w)
{
    w->n = w->next = w->next_sum = 0;
    memset(w->sum, 0, n_pixels(w) * sizeof(*w->sum));
    memset(w->weight, 0, n_pixels(w) * sizeof(*w->weight));
}

/* ---- a B-scan comes in ---- */

/* Pixel i of what is moved lies at i - shift in the source, between its pixels i + first and the
 * next. */
struct taps {
    int64_t first;
    float here, next; /* weights of the two */
};

static struct taps taps_of(double shift)
{
    double at = -shift, whole = floor(at);
    float part = (float)(at - whole);
    return (struct taps){(int64_t)whole, 1 - part, part};
}

/* 0 outside and for a line that never came. */
static float weight_of_line(const struct oct_average_window *w, const uint8_t *line_valid,
                            int64_t line)
{
    return line >= 0 && line < w->n_lines && line_valid[line] ? 1 : 0;
}

static void weigh_depths(const struct oct_average_window *w, struct taps taps, float *weights)
{
    for (int64_t d = 0; d < w->depth; d++) {
        int64_t at = d + taps.first;
        weights[d] = (at >= 0 && at < w->depth ? taps.here : 0) +
                     (at + 1 >= 0 && at + 1 < w->depth ? taps.next : 0);
    }
}

/* Line `line` of the moved B-scan, times its weights. The margins of the scratch stay zero. */
static float move_line(const struct oct_average_window *w, const float *values,
                       const uint8_t *line_valid, uint32_t line, struct taps lines,
                       struct taps depths, float *to)
{
    const int64_t at = (int64_t)line + lines.first;
    const float here = lines.here * weight_of_line(w, line_valid, at);
    const float next = lines.next * weight_of_line(w, line_valid, at + 1);
    const size_t n = w->depth;
    if (!(here + next > 0) || depths.first < -(int64_t)n || depths.first >= (int64_t)n) {
        memset(to, 0, n * sizeof(*to));
        return 0;
    }
    const float *first = values + (here > 0 ? at : at + 1) * (int64_t)n;
    const float *second = values + (next > 0 ? at + 1 : at) * (int64_t)n;
    if (depths.first == 0 && !(depths.next > 0)) { /* not moved in depth */
        oct_pixels_blend(to, first, here, second, next, n);
        return here + next;
    }
    float *middle = w->scratch + 2 * n; /* margins of two lines before and behind it */
    oct_pixels_blend(middle, first, here, second, next, n);
    oct_pixels_blend(to, middle + depths.first, depths.here, middle + depths.first + 1, depths.next,
                     n);
    return here + next;
}

/* Of A-lines that take turns, from what is kept. */
static void sum_anew(struct oct_average_window *w)
{
    const uint32_t n_lines = (w->n_lines + N_ANEW - 1) / N_ANEW;
    for (uint32_t i = 0; i < n_lines; i++) {
        const size_t at = (size_t)w->next_sum * w->depth;
        memset(w->sum + at, 0, w->depth * sizeof(*w->sum));
        for (uint32_t k = 0; k < w->n; k++)
            oct_pixels_add(w->sum + at, w->frames + k * n_pixels(w) + at, w->depth);
        w->next_sum = (w->next_sum + 1) % w->n_lines;
    }
}

void oct_average_window_add(struct oct_average_window *w, const float *values,
                            const uint8_t *line_valid, struct oct_average_shift shift)
{
    const struct taps lines = taps_of(shift.lines), depths = taps_of(shift.depth);
    const bool is_full = w->n == w->n_most;
    float *frame = w->frames + w->next * n_pixels(w), *moved = w->scratch;
    float *line_weights = w->line_weights + (size_t)w->next * w->n_lines;
    float *depth_weights = w->depth_weights + (size_t)w->next * w->depth;
    float *new_weights = w->scratch + 4 * (size_t)w->depth;
    weigh_depths(w, depths, new_weights);
    for (uint32_t j = 0; j < w->n_lines; j++) {
        const size_t at = (size_t)j * w->depth;
        float part = move_line(w, values, line_valid, j, lines, depths, moved);
        if (is_full) {
            oct_pixels_replace(w->sum + at, moved, frame + at, w->depth);
        } else {
            oct_pixels_add(w->sum + at, moved, w->depth);
            memcpy(frame + at, moved, w->depth * sizeof(*frame));
        }
        oct_pixels_weigh(w->weight + at, new_weights, part, depth_weights,
                         is_full ? line_weights[j] : 0, w->depth);
        line_weights[j] = part;
    }
    memcpy(depth_weights, new_weights, w->depth * sizeof(*depth_weights));
    w->n += w->n < w->n_most;
    w->next = (w->next + 1) % w->n_most;
    sum_anew(w);
}

void oct_average_window_mean(const struct oct_average_window *w, uint32_t line, float *mean)
{
    const size_t at = (size_t)line * w->depth;
    oct_pixels_mean(mean, w->sum + at, w->weight + at, w->depth);
}
