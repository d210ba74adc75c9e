#include "analysis/surface/course.h"

#include <math.h>
#include <string.h>

#define N_COMPARED 64u /* A-lines */

void oct_course_fill(float *position, uint32_t n_lines, uint32_t most_gap)
{
    uint32_t before = n_lines; /* the newest that is known */
    for (uint32_t j = 0; j < n_lines; j++) {
        if (isnan(position[j]))
            continue;
        const uint32_t n = before < j ? j - before : 0;
        for (uint32_t i = 1; i < n && n - 1 <= most_gap; i++)
            position[before + i] =
                position[before] + (position[j] - position[before]) * (float)i / (float)n;
        before = j;
    }
}

/* prefix[d]: the sum of the finite pixels above d. */
static void sum_up(const float *pixels, uint32_t depth, double *prefix)
{
    double sum = 0;
    prefix[0] = 0;
    for (uint32_t d = 0; d < depth; d++) {
        sum += isfinite(pixels[d]) ? (double)pixels[d] : 0;
        prefix[d + 1] = sum;
    }
}

/* The sum of `side` pixels from z on, less that of those before it. */
static double step_at(const double *prefix, int64_t z, int64_t side)
{
    return prefix[z + side] - 2 * prefix[z] + prefix[z - side];
}

static void add_line(const double *prefix, const int64_t place[OCT_N_LAYERS],
                     const struct oct_course_picture *picture, uint32_t most_shift, double *sums,
                     uint32_t *counts)
{
    const int64_t side = picture->side, most = most_shift;
    for (int64_t s = -most; s <= most; s++) {
        const int64_t ilm = place[OCT_LAYER_ILM] + s, rpe = place[OCT_LAYER_RPE] + s;
        if (ilm < side || rpe < side || ilm + side > picture->depth || rpe + side > picture->depth)
            continue;
        sums[s + most] += step_at(prefix, ilm, side) - step_at(prefix, rpe, side);
        counts[s + most]++;
    }
}

/* The greatest mean among shifts at which half of the A-lines or more lie in the picture; of equals
 * the smallest shift. */
static struct oct_course_fit choose(const double *sums, const uint32_t *counts, uint32_t most_shift,
                                    uint32_t n_added, uint32_t side)
{
    struct oct_course_fit fit = {.found = false};
    for (uint32_t i = 0; i < 2 * most_shift + 1; i++) {
        const int s = (int)((i + 1) / 2) * (i % 2 ? 1 : -1);
        const uint32_t n = counts[s + (int)most_shift];
        if (n == 0 || 2 * n < n_added)
            continue;
        const double contrast = sums[s + (int)most_shift] / ((double)n * side);
        if (!fit.found || contrast > fit.contrast)
            fit = (struct oct_course_fit){.shift = s, .contrast = contrast, .found = true};
    }
    return fit;
}

struct oct_course_fit oct_course_find(const struct oct_course *course,
                                      const struct oct_course_picture *picture, uint32_t most_shift,
                                      double *sums, uint32_t *counts, double *prefix)
{
    const uint32_t step = (picture->n_lines + N_COMPARED - 1) / N_COMPARED;
    uint32_t n_added = 0;
    memset(sums, 0, (2 * (size_t)most_shift + 1) * sizeof(*sums));
    memset(counts, 0, (2 * (size_t)most_shift + 1) * sizeof(*counts));
    for (uint32_t j = step / 2; j < picture->n_lines; j += step) {
        const float ilm = course->position[OCT_LAYER_ILM][j];
        const float rpe = course->position[OCT_LAYER_RPE][j];
        if (isnan(ilm) || isnan(rpe) || (picture->line_valid && !picture->line_valid[j]))
            continue;
        const int64_t place[OCT_N_LAYERS] = {
            [OCT_LAYER_ILM] = (int64_t)ceilf(ilm), [OCT_LAYER_RPE] = (int64_t)ceilf(rpe)};
        sum_up(picture->pixels + (size_t)j * picture->depth, picture->depth, prefix);
        add_line(prefix, place, picture, most_shift, sums, counts);
        n_added++;
    }
    return choose(sums, counts, most_shift, n_added, picture->side);
}

void oct_course_bounds(const float *position, uint32_t n_lines, double shift, double slack,
                       uint32_t reach, float *least, float *most)
{
    for (uint32_t j = 0; j < n_lines; j++) {
        const uint32_t first = j > reach ? j - reach : 0;
        const uint32_t end = j + reach < n_lines ? j + reach + 1 : n_lines;
        float lowest = position[j], highest = position[j];
        for (uint32_t i = first; i < end; i++) {
            lowest = position[i] < lowest ? position[i] : lowest;
            highest = position[i] > highest ? position[i] : highest;
        }
        least[j] = (float)((double)lowest + shift - slack);
        most[j] = (float)((double)highest + shift + slack);
    }
}
