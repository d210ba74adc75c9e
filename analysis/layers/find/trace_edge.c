/* Each layer at full resolution: the slope of the brightness in a corridor about a curve, the path
 * of least cost in it, and its place to a fraction of a pixel; first about the coarse path, then
 * about what that gave. Windows follow the curve, so that smoothing along the lines follows the
 * layer's tilt.
 *
 * Then from the steepest place of a layer to the layer itself. In decibels the ILM's flank is
 * steepest where the resolution's skirt begins, and the RPE's before its band ends: both several
 * micrometres above the layer. How far, the mean of the A-lines says, laid upon one another by
 * their paths: the ILM is where the rise ends, the centre of its thin reflex; the RPE's outer
 * border is where the fall ends, and where the choriocapillaris shows as a rise behind it, halfway
 * up that. */
#include "analysis/layers/find/trace_parts.h"

#include <stdlib.h>
#include <string.h>

#define NEVER 1e6F
/* The price of a step away from the curve, in those of a step. */
#define ILM_PRICE 8
#define RPE_PRICE 20
/* Of the steepest slope: there a flank ends. The RPE's goes over into the choroid's own decay. */
#define ILM_ENDS 0.05F
#define RPE_ENDS 0.3F
#define CLEAR_RISE 0.1F /* of the fall: a rise that counts in full */

/* ---- curves ---- */

/* Smooths a curve over the A-lines by a Gaussian; what lies beyond its ends goes on as a straight
 * line about the end, so that a tilt stays. */
static void smooth_curve(const float *from, float *to, uint32_t n, double sigma)
{
    int reach = (int)ceil(2.5 * sigma), last = (int)n - 1;

    reach = reach < last ? reach : last;
    for (int j = 0; j <= last; j++) {
        double sum = 0, total = 0;
        for (int k = -reach; k <= reach; k++) {
            int i = j + k;
            double w = exp(-k * k / (2 * sigma * sigma));
            double x = i < 0      ? 2 * (double)from[0] - (double)from[-i]
                       : i > last ? 2 * (double)from[last] - (double)from[2 * last - i]
                                  : (double)from[i];
            sum += w * x;
            total += w;
        }
        to[j] = (float)(sum / total);
    }
}

/* The coarse path as a curve over the A-lines. */
static void curve_of_pair(struct oct_trace *trace, int layer)
{
    const struct oct_trace_grid *g = &trace->grid;
    const uint32_t *pair = trace->pair[layer];
    double half = 0.5 * (g->lines - 1);

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        double u = fmin(fmax((j - half) / g->lines, 0), g->n_columns - 1);
        uint32_t c = (uint32_t)u, next = c + 1 < g->n_columns ? c + 1 : c;
        double at = pair[c] + (u - c) * ((double)pair[next] - pair[c]);
        trace->line[j] = (float)(at * g->depth - 0.5);
    }
    smooth_curve(trace->line, trace->path[layer], trace->setup.n_lines, g->lines);
}

/* ---- slopes ---- */

/* The slopes of A-line j, times sign, at centre + w - half, w to 2 half, then the levels above. */
static void slope_line(struct oct_trace *trace, uint32_t j, float centre, uint32_t half, float sign)
{
    int reach = (int)trace->reach, n = 2 * (int)half + 2;
    float start = centre - (float)half, floored = floorf(start), share = start - floored;
    float *slopes = trace->edges[0] + (size_t)j * 2 * (2 * half + 1);
    float *levels = slopes + 2 * half + 1, *window = trace->window, before = 0, level_before = 0;

    for (int i = 0; i < n + 2 * reach; i++)
        window[i] = oct_trace_pixel(trace, j, (int)floored - reach + i);
    for (int w = 0; w < n; w++) {
        float above = 0, under = 0;
        for (int k = 0; k < reach; k++) {
            above += trace->taps[k] * window[w + k];
            under += trace->taps[k] * window[w + 2 * reach - k];
        }
        if (w > 0) {
            slopes[w - 1] = sign * (before + share * (under - above - before));
            levels[w - 1] = level_before + share * (above - level_before);
        }
        before = under - above;
        level_before = above;
    }
}

/* The mean over neighbouring A-lines, at the same place about the curve; n values an A-line. */
static void smooth_lines(struct oct_trace *trace, int layer, uint32_t n)
{
    int m = (int)trace->setup.n_lines, reach = (int)trace->line_reach[layer];

    for (int j = 0; j < m; j++) {
        float *restrict to = trace->edges[1] + (size_t)j * n, total = 0;
        memset(to, 0, n * sizeof(*to));
        for (int i = j > reach ? j - reach : 0; i <= j + reach && i < m; i++) {
            const float *from = trace->edges[0] + (size_t)i * n;
            const float tap = trace->line_taps[layer][abs(i - j)];
            if (!oct_trace_has_line(trace, (uint32_t)i))
                continue;
            total += tap;
            for (uint32_t w = 0; w < n; w++)
                to[w] += tap * from[w];
        }
        for (uint32_t w = 0; total > 0 && w < n; w++)
            to[w] /= total;
    }
}

/* An edge counts by how dark it is above the ILM, how bright above the RPE's border: the edges
 * within the nerve fibre layer and below the choriocapillaris are next to them. */
static void weigh(struct oct_trace *trace, int layer, uint32_t width)
{
    float scale = 1 / (trace->bright - trace->dark);

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        const float *slopes = trace->edges[1] + (size_t)j * 2 * width, *levels = slopes + width;
        float *scores = trace->scores + (size_t)j * width;
        for (uint32_t w = 0; w < width; w++) {
            float z = (levels[w] - trace->dark) * scale;
            z = layer == OCT_LAYER_ILM ? 1.1F - z : z;
            z = z < 0.1F ? 0.1F : z > 1.1F ? 1.1F : z;
            scores[w] = slopes[w] * (layer == OCT_LAYER_ILM ? z : z * z * z * z * z);
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
            most = fmaxf(most, trace->scores[(size_t)j * width + w]);
        if (oct_trace_has_line(trace, j))
            trace->sorted[n++] = most;
    }
    return n ? oct_trace_select(trace->sorted, n, n / 2) : 0;
}

static bool is_outside(const struct oct_trace_bounds *bounds, int layer, uint32_t j, float at)
{
    if (!bounds)
        return false;
    const float *least = bounds->least[layer], *most = bounds->most[layer];
    float a = least ? least[j] : NAN, b = most ? most[j] : NAN;
    return !(a > b) && ((!isnan(a) && at < a) || (!isnan(b) && at > b));
}

/* The least total that leads to each place, from those of the A-line before: a sweep down and one
 * up. Away from the curve the price alone bounds a step. */
static void lead(const float *before, float price, uint32_t width, float *now)
{
    now[0] = before[0];
    for (uint32_t w = 1; w < width; w++)
        now[w] = fminf(before[w], now[w - 1] + price);
    for (uint32_t w = width - 1; w-- > 0;)
        now[w] = fminf(now[w], now[w + 1] + price);
}

static void follow_back(const struct oct_trace *trace, uint32_t width, float price, float *path)
{
    int best = 0;

    for (uint32_t j = trace->setup.n_lines; j-- > 0;) {
        const float *now = trace->leads + (size_t)j * width;
        bool is_last = j == trace->setup.n_lines - 1;
        int was = best;
        float least = INFINITY;
        for (int v = 0; v < (int)width; v++) {
            float x = now[v] + (is_last ? 0 : price * (float)abs(v - was));
            if (x < least) {
                least = x;
                best = v;
            }
        }
        path[j] = (float)best;
    }
}

/* The path of least cost about the layer's, to line. */
static void follow(struct oct_trace *trace, int layer, uint32_t half,
                   const struct oct_trace_bounds *bounds)
{
    uint32_t width = 2 * half + 1;
    float price =
        (float)trace->setup.params.price * (layer == OCT_LAYER_ILM ? ILM_PRICE : RPE_PRICE);
    float depth = (float)trace->setup.depth - 0.5F, never = NEVER / (float)trace->setup.n_lines;
    float flank = (float)(OCT_TRACE_FLANK_UM / trace->setup.params.depth_um);
    float scale = steepest(trace, width);

    scale = scale > 0 ? 1 / scale : 0;
    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        float *now = trace->leads + (size_t)j * width;
        if (j)
            lead(now - width, price, width, now);
        else
            memset(now, 0, width * sizeof(*now));
        for (uint32_t w = 0; w < width; w++) {
            float at = trace->path[layer][j] + (float)w - (float)half;
            now[w] += 1 - scale * trace->scores[(size_t)j * width + w];
            if (at < -0.5F || at > depth || is_outside(bounds, layer, j, at + flank))
                now[w] += never;
        }
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

static void refine(struct oct_trace *trace, int layer, uint32_t half,
                   const struct oct_trace_bounds *bounds)
{
    uint32_t m = trace->setup.n_lines, width = 2 * half + 1;
    float *path = trace->path[layer];

    for (uint32_t j = 0; j < m; j++)
        if (oct_trace_has_line(trace, j))
            slope_line(trace, j, path[j], half, layer == OCT_LAYER_ILM ? 1 : -1);
    smooth_lines(trace, layer, 2 * width);
    weigh(trace, layer, width);
    follow(trace, layer, half, bounds);
    for (uint32_t j = 0; j < m; j++)
        path[j] += peak_near(trace->edges[1] + (size_t)j * 2 * width, width, (int)trace->line[j]) -
                   (float)half;
}

void oct_trace_refine(struct oct_trace *trace, const struct oct_trace_bounds *bounds)
{
    uint32_t m = trace->setup.n_lines;

    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        curve_of_pair(trace, layer);
        refine(trace, layer, trace->half, bounds);
        smooth_curve(trace->path[layer], trace->line2, m,
                     fmax(1, trace->setup.params.smooth_line_um / trace->setup.params.line_um));
        memcpy(trace->path[layer], trace->line2, m * sizeof(float));
        refine(trace, layer, trace->half / 3 > 4 ? trace->half / 3 : 4, bounds);
    }
}

/* ---- the layer's place ---- */

/* The mean over A-lines with a position of the brightness at position + (k - 2) / 2 px. */
static uint32_t mean_profile(struct oct_trace *trace, const float *position)
{
    uint32_t n_lines = 0;

    memset(trace->profile, 0, trace->n_profile * sizeof(*trace->profile));
    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        if (isnan(position[j]))
            continue;
        n_lines++;
        for (uint32_t k = 0; k < trace->n_profile; k++) {
            float at = position[j] + 0.5F * ((float)k - 2), floored = floorf(at);
            float a = oct_trace_pixel(trace, j, (int)floored);
            float b = oct_trace_pixel(trace, j, (int)floored + 1);
            trace->profile[k] += a - trace->dark + (at - floored) * (b - a);
        }
    }
    return n_lines;
}

/* Where the flank ends, in samples from the profile's first: its slope falls to a small part of the
 * steepest one, or, where another flank follows before it does, to its least. 2, which is the
 * position itself: there is no flank. */
static float flank_end(const float *profile, uint32_t n, float sign, float ends)
{
    float steepest = 0, before = 0, least = INFINITY;
    uint32_t from = 0, flattest = 0;

    for (uint32_t k = 0; k < 5 && k + 1 < n; k++) {
        float slope = sign * (profile[k + 1] - profile[k]);
        if (slope > steepest) {
            steepest = slope;
            from = k;
        }
    }
    if (!(steepest > 0))
        return 2;
    for (uint32_t k = from; k + 1 < n; k++) {
        float slope = sign * (profile[k + 1] - profile[k]) - ends * steepest;
        if (k > from && slope <= 0)
            return (float)k + 0.5F - (before > slope ? -slope / (before - slope) : 0);
        before = slope;
        if (slope < least) {
            least = slope;
            flattest = k;
        }
    }
    return (float)flattest + 0.5F;
}

/* How much further the middle of the rise behind the foot of a fall is; 0: there is no rise. */
static float to_middle_of_rise(const float *profile, uint32_t n, float foot)
{
    uint32_t first = (uint32_t)floorf(foot);

    while (first + 1 < n && profile[first + 1] < profile[first])
        first++;
    uint32_t top = first;
    float least = profile[first], fall = profile[0] - least;
    for (uint32_t k = first; k < n && profile[k] >= profile[top] - 0.02F * fall; k++)
        top = profile[k] > profile[top] ? k : top;
    float rise = profile[top] - least;
    if (!(rise > 0 && fall > 0))
        return 0;
    uint32_t k = top;
    while (k > first && profile[k] > least + 0.5F * rise)
        k--;
    float step = profile[k + 1] - profile[k];
    float middle = (float)k + (step > 0 ? (least + 0.5F * rise - profile[k]) / step : 0);
    return (middle > foot ? middle - foot : 0) * fminf(rise / (CLEAR_RISE * fall), 1);
}

void oct_trace_place(struct oct_trace *trace, int layer, float *position)
{
    const bool is_ilm = layer == OCT_LAYER_ILM;
    float most = 0.5F * ((float)trace->n_profile - 3);

    if (!mean_profile(trace, position))
        return;
    float end =
        flank_end(trace->profile, trace->n_profile, is_ilm ? 1 : -1, is_ilm ? ILM_ENDS : RPE_ENDS);
    if (!is_ilm)
        end += to_middle_of_rise(trace->profile, trace->n_profile, end);
    float offset = fminf(0.5F * (end - 2), most);
    for (uint32_t j = 0; j < trace->setup.n_lines; j++)
        position[j] += offset;
}
