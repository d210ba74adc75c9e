/* How sure each A-line is: the step of brightness across the layer, in standard deviations of the
 * same measure beside the layers, where there is nothing but noise.
 *
 * A step is the mean of `near` rows on the bright side of the layer less that of `below` rows,
 * twice as many, on its dark side. A path over noise goes from one chance maximum to the next, so
 * single A-lines say nothing: steps are averaged over wide windows along the path, and over narrow
 * ones, by which a layer ends where it ends. Both are measured beside the layers in windows of the
 * same width, so that neighbours that are alike count as what they are.
 */
#include "analysis/layers/find/trace_parts.h"

#include <stdlib.h>
#include <string.h>

#define NARROW_SHARE 0.5F /* of the quality that narrow windows must reach */
#define LEAST_NOISE 0.02F /* of the B-scan's contrast: less than this is no noise, but black */
#define QUANTILE 0.7      /* of |noise|, and where it lies, in standard deviations */
#define QUANTILE_SIGMA 1.036F
#define DARK 0.3F   /* of the contrast: the vitreous is darker, */
#define DARKER 0.4F /* and than this share of the tissue below: the outer nuclear layer is not */
#define LEAST_STEP 0.2F /* of the contrast: the ILM is more, the outer limiting membrane less */
#define VEILED 0.6F /* a band above that is so bright, relative to that below, is a layer itself */

/* Steps of all A-lines at all borders; 0 where a side is cut off. */
static void fill_beside(struct oct_trace *trace)
{
    const struct oct_trace_grid *g = &trace->grid;
    uint32_t n = g->n_rows, near = g->near, below = g->below;
    float share = 1 / (float)near, dark_share = 1 / (float)below;

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        const float *blocks = trace->blocks + (size_t)j * n;
        float *to = trace->beside + (size_t)j * (n + 1), *sums = trace->sums;
        sums[0] = 0;
        for (uint32_t i = 0; i < n; i++)
            sums[i + 1] = sums[i] + (blocks[i] - trace->dark);
        memset(to, 0, (n + 1) * sizeof(*to));
        for (uint32_t i = near; i + below <= n; i++)
            to[i] = (sums[i] - sums[i - near]) * share - (sums[i + below] - sums[i]) * dark_share;
    }
}

/* Steps averaged over the A-lines about `line`, at all borders. */
static void window_steps(const struct oct_trace *trace, uint32_t line, uint32_t half, float *to)
{
    uint32_t m = trace->setup.n_lines, n_sums = trace->grid.n_rows + 1;
    uint32_t first = line > half ? line - half : 0, last = line + half < m ? line + half : m - 1;
    float count = 0;

    memset(to, 0, n_sums * sizeof(float));
    for (uint32_t k = first; k <= last; k++) {
        const float *from = trace->beside + (size_t)k * n_sums;
        if (!oct_trace_has_line(trace, k))
            continue;
        count++;
        for (uint32_t i = 0; i < n_sums; i++)
            to[i] += from[i];
    }
    for (uint32_t i = 0; i < n_sums; i++)
        to[i] = count > 0 ? to[i] / count : NAN;
}

/* Adds the differences of two windows that touch to `sorted`: of those rows that are beside the
 * layers of both, or of all rows. */
static size_t add_differences(struct oct_trace *trace, uint32_t j, uint32_t next, bool everywhere,
                              size_t n)
{
    const struct oct_trace_grid *g = &trace->grid;
    const float *ilm = trace->path[OCT_LAYER_ILM], *rpe = trace->path[OCT_LAYER_RPE];
    float margin = (float)((g->near + g->below) * g->depth);
    float top = fminf(ilm[j], ilm[next]) - margin, bottom = fmaxf(rpe[j], rpe[next]) + margin;

    for (uint32_t i = g->near; i + g->below <= g->n_rows; i++) {
        float at = (float)(i * g->depth), d = fabsf(trace->sums[i] - trace->others[i]);
        if ((everywhere || at < top || at > bottom) && !isnan(d))
            trace->sorted[n++] = d;
    }
    return n;
}

/* The standard deviation of steps averaged over 2 half + 1 A-lines, where there is no layer: from
 * the differences of windows beside one another, in which what is level cancels. */
static float noise_beside(struct oct_trace *trace, uint32_t half)
{
    uint32_t m = trace->setup.n_lines, lag = 2 * half + 1, stride = half > 1 ? half : 1;
    float least = LEAST_NOISE * (trace->bright - trace->dark);
    size_t n = 0, least_n = trace->grid.n_rows * (size_t)(m / stride) / 8;

    for (int everywhere = 0; everywhere < 2 && n <= least_n; everywhere++) {
        n = 0;
        for (uint32_t j = 0; j + lag < m; j += stride) {
            window_steps(trace, j, half, trace->sums);
            window_steps(trace, j + lag, half, trace->others);
            n = add_differences(trace, j, j + lag, everywhere, n);
        }
    }
    if (!n)
        return INFINITY;
    float noise = oct_trace_select(trace->sorted, n, (size_t)(QUANTILE * (double)(n - 1)));
    return fmaxf(noise / (QUANTILE_SIGMA * sqrtf(2)), least);
}

static float mean_px(const struct oct_trace *trace, uint32_t j, int first, int last)
{
    const float *line = trace->pixels + (size_t)j * trace->setup.depth;
    int depth = (int)trace->setup.depth;
    float sum = 0;

    first = first < 0 ? 0 : first;
    last = last > depth ? depth : last;
    for (int d = first; d < last; d++)
        sum += line[d] - trace->dark;
    return last > first ? sum / (float)(last - first) : 0;
}

/* The brightest `band` rows above the place, but for the picture's first ones. */
static float brightest_above(const struct oct_trace *trace, uint32_t j, int at)
{
    const struct oct_trace_grid *g = &trace->grid;
    const float *cells = trace->cells + (size_t)(j / g->lines) * g->n_rows;
    int band = (int)g->band, last = at / (int)g->depth - 1 - band;
    int first = last - 2 * (int)g->far;
    float most = 0;

    for (int i = first > (int)g->skip ? first : (int)g->skip; i + band <= last + 1; i++) {
        float sum = 0;
        for (int k = 0; k < band; k++)
            sum += cells[i + k];
        most = fmaxf(most, sum / (float)band);
    }
    return most;
}

/* Steps along a path, 0 where there is none to be seen: the layer at an end of the picture, or
 * tissue above the ILM. */
static void fill_steps(struct oct_trace *trace, int layer, float *steps)
{
    int size = (int)(trace->grid.near * trace->grid.depth);
    int dark_size = (int)(trace->grid.below * trace->grid.depth);
    int skip = (int)(trace->grid.skip * trace->grid.depth);
    float contrast = trace->bright - trace->dark;

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        int at = (int)ceilf(trace->path[layer][j]), depth = (int)trace->setup.depth;
        steps[j] = 0;
        if (!oct_trace_has_line(trace, j) || at < size / 2 || at > depth - size / 2)
            continue;
        if (layer == OCT_LAYER_RPE) {
            steps[j] = mean_px(trace, j, at - size, at) - mean_px(trace, j, at, at + dark_size);
            continue;
        }
        float under = mean_px(trace, j, at, at + size);
        int top = at - dark_size > skip ? at - dark_size : skip;
        float above = mean_px(trace, j, top, at);
        if (at >= skip + size / 2 && above < fminf(DARK * contrast, DARKER * under) &&
            brightest_above(trace, j, at) * contrast <= VEILED * fmaxf(under, 0.5F * contrast))
            steps[j] = under - above;
    }
}

/* The mean over 2 half + 1 A-lines, of those that are there. */
static void average(const struct oct_trace *trace, const float *steps, uint32_t half, float *to)
{
    int n = (int)trace->setup.n_lines, h = (int)half;
    double sum = 0;
    int count = 0;

    for (int k = -h; k < n; k++) {
        int in = k + h, out = k - h - 1;
        if (in < n && oct_trace_has_line(trace, (uint32_t)in)) {
            sum += (double)steps[in];
            count++;
        }
        if (out >= 0 && oct_trace_has_line(trace, (uint32_t)out)) {
            sum -= (double)steps[out];
            count--;
        }
        if (k >= 0)
            to[k] = count ? (float)(sum / count) : 0;
    }
}

void oct_trace_judge(struct oct_trace *trace, const struct oct_traced *result)
{
    fill_beside(trace);
    float wide = noise_beside(trace, trace->wide), narrow = noise_beside(trace, trace->narrow);

    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        float *quality = result->quality[layer];
        fill_steps(trace, layer, trace->line);
        average(trace, trace->line, trace->wide, quality);
        average(trace, trace->line, trace->narrow, trace->line2);
        for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
            float q = wide > 0 ? quality[j] / wide : 0;
            float end = narrow > 0 ? trace->line2[j] / narrow / NARROW_SHARE : 0;
            q = q < end ? q : end;
            if (layer == OCT_LAYER_ILM && quality[j] < LEAST_STEP * (trace->bright - trace->dark))
                q = 0;
            quality[j] = oct_trace_has_line(trace, j) && q > 0 ? q : 0;
        }
    }
}
