/* A border at full resolution: the slope of the light in a corridor about a curve, the path of
 * least cost in it, and its place to a fraction of a pixel. Windows follow the curve, so that
 * smoothing along the lines follows the border's tilt. */
#include "analysis/layers/find/trace_parts.h"
#include "pipeline/base/wide.h"

#include <stdlib.h>
#include <string.h>

#define NEVER 1e6F
#define PART OCT_TRACE_PART
#define LINES OCT_TRACE_LINES
#define EIGHT 8
#define REFLEX_UM 14.0F  /* of the ILM, whose lower flank is no border of the RNFL */
#define LEAST_HALF 3u    /* px of a corridor */
#define LEAST_SIGMA 0.8F /* px of the derivative */

/* Whether the light rises with depth. */
static const bool rises[OCT_N_LAYERS] = {
    [OCT_LAYER_ILM] = true, [OCT_LAYER_INL_OPL] = true, [OCT_LAYER_IS_OS] = true};

/* ---- curves ---- */

/* What lies beyond the ends goes on as a straight line about the end, so that a tilt stays. */
static float beyond_ends(const float *from, int last, int i)
{
    return i < 0      ? 2 * from[0] - from[-i]
           : i > last ? 2 * from[last] - from[2 * last - i]
                      : from[i];
}

OCT_WIDE void oct_trace_smooth(const float *restrict from, float *restrict to, uint32_t n,
                               double sigma)
{
    int reach = (int)ceil(2.5 * sigma), last = (int)n - 1;
    float taps[64], total = 0;

    reach = reach < last ? reach : last;
    reach = reach < 63 ? reach : 63;
    for (int k = 0; k <= reach; k++) {
        taps[k] = (float)exp(-k * k / (2 * sigma * sigma));
        total += k ? 2 * taps[k] : taps[k];
    }
    memset(to, 0, n * sizeof(*to));
    for (int k = -reach; k <= reach; k++) {
        const float tap = taps[abs(k)];
        const int first = k < 0 ? -k : 0, end = k > 0 ? last - k : last;
        for (int j = 0; j < first; j++)
            to[j] += tap * beyond_ends(from, last, j + k);
        for (int j = first; j <= end; j++)
            to[j] += tap * from[j + k];
        for (int j = end + 1; j <= last; j++)
            to[j] += tap * beyond_ends(from, last, j + k);
    }
    for (int j = 0; j <= last; j++)
        to[j] /= total;
}

/* ---- slopes ---- */

typedef float eight __attribute__((vector_size(EIGHT * sizeof(float)), aligned(sizeof(float))));

/* The derivative of a Gaussian, as the mean of what is below a place less that of what is above;
 * and the Gaussian along the lines. */
static uint32_t plan_taps(struct oct_trace *trace, float sigma, float line_sigma)
{
    uint32_t reach = oct_trace_rounded(ceil(2.5 * (double)sigma), 2, trace->reach);
    float sum = 0;

    for (uint32_t i = 1; i <= reach; i++)
        sum += trace->taps[reach - i] = (float)i * expf(-(float)(i * i) / (2 * sigma * sigma));
    for (uint32_t i = 0; i < reach; i++)
        trace->taps[i] /= sum;
    trace->line_reach =
        oct_trace_rounded(ceil(2.5 * (double)line_sigma), 0, trace->setup.n_lines - 1);
    const int line_reach = (int)trace->line_reach;
    for (int i = -line_reach - LINES; i <= line_reach + LINES; i++)
        trace->line_taps[i] = abs(i) > line_reach ? 0
                              : i ? expf(-(float)(i * i) / (2 * line_sigma * line_sigma))
                                  : 1;
    double total = 0;
    for (int i = 0; i <= line_reach; i++)
        trace->tap_sums[i] = total += (double)trace->line_taps[i];
    return reach;
}

/* The slopes of A-line j, times sign, at centre + w - half, w to 2 half; n_values of twice as many:
 * then the levels above. */
OCT_WIDE static void slope_line(struct oct_trace *trace, uint32_t j, float centre, uint32_t half,
                                uint32_t reach, float sign, float power, uint32_t n_values)
{
    const int n = 2 * (int)half + 2, r = (int)reach;
    const float start = centre - (float)half, floored = floorf(start), share = start - floored;
    float *restrict slopes = trace->edges[0] + (size_t)j * n_values;
    float *restrict window = trace->window, *restrict above = trace->sides[0],
                    *restrict under = trace->sides[1];

    oct_trace_copy_light(trace, j, (int)floored - r, n + 2 * r, window);
    for (int i = 0; power > 0 && i < n + 2 * r; i++)
        window[i] = expf(power * window[i]);
    memset(above, 0, (size_t)n * sizeof(*above));
    memset(under, 0, (size_t)n * sizeof(*under));
    for (int k = 0; k < r; k++) {
        const float tap = trace->taps[k];
        const float *restrict before = window + k, *restrict after = window + 2 * r - k;
        for (int w = 0; w < n; w++) {
            above[w] += tap * before[w];
            under[w] += tap * after[w];
        }
    }
    for (int w = 0; w < n; w++)
        under[w] -= above[w];
    for (int w = 0; w + 1 < n; w++)
        slopes[w] = sign * (under[w] + share * (under[w + 1] - under[w]));
    for (int w = 0; n_values > 2 * half + 1 && w + 1 < n; w++)
        slopes[n - 1 + w] = above[w] + share * (above[w + 1] - above[w]);
}

/* The sum of the taps about A-line j, of A-lines that are there. */
static float sum_taps(const struct oct_trace *trace, int j)
{
    const int last = (int)trace->setup.n_lines - 1, reach = (int)trace->line_reach;
    const int before = j < reach ? j : reach, behind = last - j < reach ? last - j : reach;
    float total = 0;

    if (!trace->line_valid)
        return (float)(trace->tap_sums[before] + trace->tap_sums[behind] - trace->tap_sums[0]);
    for (int i = j - before; i <= j + behind; i++)
        total += oct_trace_has_line(trace, (uint32_t)i) ? trace->line_taps[i - j] : 0;
    return total;
}

/* The weighted sums about A-lines j to j + LINES - 1 of `n_vectors` times EIGHT values from `at`
 * on, which stay in registers; n values an A-line. */
static inline __attribute__((always_inline)) void sum_lines(const struct oct_trace *trace, int j,
                                                            uint32_t n, uint32_t at,
                                                            const int n_vectors,
                                                            float sums[LINES][PART])
{
    const int m = (int)trace->setup.n_lines, reach = (int)trace->line_reach;
    const int last = j + LINES - 1 + reach, end = last < m ? last + 1 : m;
    eight sum[LINES][PART / EIGHT] = {{{0}}};

    for (int i = j > reach ? j - reach : 0; i < end; i++) {
        const float *from = trace->edges[0] + (size_t)i * n + at;
        const float *taps = trace->line_taps + (i - j);
        if (!oct_trace_has_line(trace, (uint32_t)i))
            continue;
        for (int k = 0; k < n_vectors; k++)
            for (int l = 0; l < LINES; l++)
                sum[l][k] += taps[-l] * *(const eight *)(from + k * EIGHT);
    }
    for (int l = 0; l < LINES; l++)
        for (int k = 0; k < n_vectors; k++)
            *(eight *)(sums[l] + k * EIGHT) = sum[l][k];
}

/* The mean over neighbouring A-lines, at the same place about the curve; n values an A-line. */
OCT_WIDE static void smooth_lines(struct oct_trace *trace, uint32_t n)
{
    const int m = (int)trace->setup.n_lines;

    for (int j = 0; j < m; j += LINES) {
        float totals[LINES] = {0};
        for (int l = 0; l < LINES && j + l < m; l++)
            totals[l] = sum_taps(trace, j + l);
        for (uint32_t w = 0; w < n; w += PART) {
            const uint32_t left = n - w;
            float sums[LINES][PART];
            if (left <= EIGHT)
                sum_lines(trace, j, n, w, 1, sums);
            else
                sum_lines(trace, j, n, w, PART / EIGHT, sums);
            for (int l = 0; l < LINES && j + l < m; l++) {
                float *restrict to = trace->edges[1] + (size_t)(j + l) * n + w;
                const float total = totals[l];
                for (uint32_t k = 0; k < PART && k < left; k++)
                    to[k] = total > 0 ? sums[l][k] / total : 0;
            }
        }
    }
}

/* An edge counts by how dark it is above the ILM, how bright above the RPE's border: the edges
 * within the nerve fibre layer and below the choriocapillaris are next to them. */
OCT_WIDE static void weigh(struct oct_trace *trace, enum oct_layer layer, uint32_t width,
                           uint32_t n_values)
{
    float scale = 1 / (trace->bright - trace->dark);

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        const float *restrict slopes = trace->edges[1] + (size_t)j * n_values;
        const float *restrict levels = slopes + width;
        float *restrict scores = trace->scores + (size_t)j * width;
        for (uint32_t w = 0; w < width; w++) {
            float z = n_values > width ? (levels[w] - trace->dark) * scale : 1;
            z = layer == OCT_LAYER_ILM ? 1.1F - z : z;
            z = z < 0.1F ? 0.1F : z > 1.1F ? 1.1F : z;
            if (layer == OCT_LAYER_RNFL_GCL) {
                float away = (trace->path[layer][j] + (float)w - (float)(width / 2) -
                              trace->path[OCT_LAYER_ILM][j]) *
                             (float)trace->setup.params.depth_um / REFLEX_UM;
                z = away < 0.1F ? 0.1F : away > 1 ? 1 : away;
                scores[w] = slopes[w] * z * z;
                continue;
            }
            scores[w] = layer == OCT_LAYER_ILM   ? slopes[w] * z
                        : layer == OCT_LAYER_RPE ? slopes[w] * z * z * z
                                                 : slopes[w];
        }
    }
}

/* ---- the path in the corridor ---- */

/* The scale of what is steep: the median over A-lines of the steepest place. */
static float steepest(struct oct_trace *trace, uint32_t width)
{
    size_t n = 0;

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        float most = 0;
        for (uint32_t w = 0; w < width; w++)
            most = oct_trace_greater(trace->scores[(size_t)j * width + w], most);
        if (oct_trace_has_line(trace, j))
            trace->sorted[n++] = most;
    }
    return n ? oct_trace_select(trace->sorted, n, n / 2) : 0;
}

static bool is_outside(const struct oct_trace *trace, const struct oct_trace_bounds *bounds,
                       enum oct_layer layer, uint32_t j, float at)
{
    if (at < -0.5F || at > (float)trace->setup.depth - 0.5F)
        return true;
    if (!bounds)
        return false;
    const float *least = bounds->least[layer], *most = bounds->most[layer];
    float a = least ? least[j] : NAN, b = most ? most[j] : NAN;
    return !(a > b) && ((!isnan(a) && at < a) || (!isnan(b) && at > b));
}

/* The least total that leads to each place, from those of the A-line before: the least of what lies
 * before it and behind it, less the price from the one end and the other. Away from the curve the
 * price alone bounds a step. room: [2 width]. */
OCT_WIDE static void lead(const float *restrict before, float price, uint32_t width,
                          float *restrict now, float *restrict room)
{
    float *restrict down = room, *restrict up = room + width;
    float least_down = INFINITY, least_up = INFINITY;

    for (uint32_t w = 0; w < width; w++) {
        down[w] = before[w] - price * (float)w;
        up[w] = before[w] + price * (float)w;
    }
    for (uint32_t w = 0; w < width; w++) {
        down[w] = least_down = oct_trace_lesser(least_down, down[w]);
        up[width - 1 - w] = least_up = oct_trace_lesser(least_up, up[width - 1 - w]);
    }
    for (uint32_t w = 0; w < width; w++)
        now[w] = oct_trace_lesser(down[w] + price * (float)w, up[w] - price * (float)w);
}

/* The first of the least totals, with the price of a step from there to `was`. */
OCT_WIDE static int first_least(const float *restrict now, float price, int was, int width,
                                float *restrict totals)
{
    float least = INFINITY;
    int first = 0;

    for (int v = 0; v < width; v++)
        totals[v] = now[v] + price * (float)abs(v - was);
    for (int v = 0; v < width; v++)
        least = oct_trace_lesser(totals[v], least);
    while (first < width - 1 && totals[first] > least)
        first++;
    return first;
}

static void follow_back(const struct oct_trace *trace, uint32_t width, float price, float *path)
{
    const uint32_t last = trace->setup.n_lines - 1;
    int best = 0;

    for (uint32_t j = last + 1; j-- > 0; path[j] = (float)best)
        best = first_least(trace->leads + (size_t)j * width, j < last ? price : 0, best, (int)width,
                           trace->window);
}

/* The path of least cost about the layer's, to line. */
static void follow(struct oct_trace *trace, enum oct_layer layer, uint32_t half, float price,
                   const struct oct_trace_bounds *bounds)
{
    uint32_t width = 2 * half + 1;
    float never = NEVER / (float)trace->setup.n_lines, scale = steepest(trace, width);
    const float *path = trace->path[layer], end = (float)trace->setup.depth - 1;

    scale = scale > 0 ? 1 / scale : 0;
    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        float *now = trace->leads + (size_t)j * width;
        if (j)
            lead(now - width, price, width, now, trace->window);
        else
            memset(now, 0, width * sizeof(*now));
        const float *scores = trace->scores + (size_t)j * width;
        const bool may_leave = bounds || !(path[j] > (float)half && path[j] + (float)half < end);
        for (uint32_t w = 0; w < width; w++)
            now[w] += 1 - scale * scores[w];
        for (uint32_t w = 0; may_leave && w < width; w++)
            if (is_outside(trace, bounds, layer, j, path[j] + (float)w - (float)half))
                now[w] += never;
    }
    follow_back(trace, width, price, trace->line);
}

/* The peak of the slope nearest to the path's place, by a parabola; the place itself where the
 * slope has no peak within 2 px. */
static float peak_near(const float *slopes, uint32_t width, int at)
{
    for (int k = 0; k < 2; k++) {
        if (at > 0 && slopes[at - 1] > slopes[at])
            at--;
        else if (at + 1 < (int)width && slopes[at + 1] > slopes[at])
            at++;
    }
    if (at <= 0 || at + 1 >= (int)width || slopes[at] < slopes[at - 1] ||
        slopes[at] < slopes[at + 1])
        return (float)at;
    return (float)at + oct_trace_top(slopes[at - 1], slopes[at], slopes[at + 1]);
}

void oct_trace_edge(struct oct_trace *trace, enum oct_layer layer,
                    const struct oct_trace_search *search, const struct oct_trace_bounds *bounds)
{
    const struct oct_trace_params *p = &trace->setup.params;
    const uint32_t m = trace->setup.n_lines;
    const uint32_t half =
        oct_trace_rounded((double)search->half_um / p->depth_um, LEAST_HALF, trace->half);
    const uint32_t width = 2 * half + 1;
    float *path = trace->path[layer];
    float line_sigma = fmaxf(search->line_um / (float)p->line_um, search->least_lines);
    const uint32_t reach =
        plan_taps(trace, fmaxf(search->depth_um / (float)p->depth_um, LEAST_SIGMA),
                  fminf(line_sigma, OCT_TRACE_MOST_SIGMA));

    const uint32_t n_values = layer == OCT_LAYER_ILM || layer == OCT_LAYER_RPE ? 2 * width : width;
    for (uint32_t j = 0; j < m; j++)
        if (oct_trace_has_line(trace, j))
            slope_line(trace, j, path[j], half, reach, rises[layer] ? 1 : -1, search->power,
                       n_values);
    smooth_lines(trace, n_values);
    weigh(trace, layer, width, n_values);
    follow(trace, layer, half, search->price, bounds);
    for (uint32_t j = 0; j < m; j++)
        path[j] += peak_near(trace->edges[1] + (size_t)j * n_values, width, (int)trace->line[j]) -
                   (float)half;
}
