/* Each layer at full resolution: the slope of the brightness in a corridor about a curve, the path
 * of least cost in it, and its place to a fraction of a pixel; first about the coarse path, then
 * about what that gave. Windows follow the curve, so that smoothing along the lines follows the
 * layer's tilt. */
#include "analysis/surface/trace_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEVER 1e6F
/* The price of a step away from the curve, in those of a step. */
#define ILM_PRICE 8
#define RPE_PRICE 20

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
        double u = (j - half) / g->lines;
        u = fmin(fmax(u, 0), g->n_columns - 1);
        uint32_t c = (uint32_t)u, next = c + 1 < g->n_columns ? c + 1 : c;
        double at = pair[c] + (u - c) * ((double)pair[next] - pair[c]);
        trace->line[j] = (float)(at * g->depth - 0.5);
    }
    smooth_curve(trace->line, trace->path[layer], trace->setup.n_lines, g->lines);
}

/* ---- slopes ---- */

/* The slope of A-line j, times sign, at centre + w - half, w to 2 half, and the level above. */
static void slope_line(struct oct_trace *trace, uint32_t j, float centre, uint32_t half, float sign,
                       float *to, float *level)
{
    int depth = (int)trace->setup.depth, reach = (int)trace->reach, n = 2 * (int)half + 2;
    float start = centre - (float)half, floored = floorf(start), share = start - floored;
    const float *line = trace->pixels + (size_t)j * trace->setup.depth;
    float *window = trace->window, before = 0, level_before = 0;
    int first = (int)floored - reach;

    for (int i = 0; i < n + 2 * reach; i++) {
        int d = first + i;
        window[i] = line[d < 0 ? 0 : d >= depth ? depth - 1 : d];
    }
    for (int w = 0; w < n; w++) {
        float above = 0, under = 0;
        for (int k = 0; k < reach; k++) {
            above += trace->taps[k] * window[w + k];
            under += trace->taps[k] * window[w + 2 * reach - k];
        }
        if (w > 0) {
            to[w - 1] = sign * (before + share * (under - above - before));
            level[w - 1] = level_before + share * (above - level_before);
        }
        before = under - above;
        level_before = above;
    }
}

/* The mean over neighbouring A-lines, at the same place about the curve. */
static void smooth_lines(const struct oct_trace *trace, int layer, const float *from,
                         uint32_t width, float *to)
{
    int n = (int)trace->setup.n_lines, reach = (int)trace->line_reach[layer];

    for (int j = 0; j < n; j++) {
        float *row = to + (size_t)j * width, total = 0;
        memset(row, 0, width * sizeof(*row));
        for (int k = -reach; k <= reach; k++) {
            int i = j + k;
            if (i < 0 || i >= n || !oct_trace_has_line(trace, (uint32_t)i))
                continue;
            const float *other = from + (size_t)i * width;
            float tap = trace->line_taps[layer][k < 0 ? -k : k];
            total += tap;
            for (uint32_t w = 0; w < width; w++)
                row[w] += tap * other[w];
        }
        for (uint32_t w = 0; total > 0 && w < width; w++)
            row[w] /= total;
    }
}

/* ---- the path in the corridor ---- */

/* The scale of what is steep: the median over A-lines of the steepest place. */
static float steepest(struct oct_trace *trace, const float *slopes, uint32_t width)
{
    size_t n = 0;

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        float most = 0;
        for (uint32_t w = 0; w < width; w++)
            most = fmaxf(most, slopes[(size_t)j * width + w]);
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

struct corridor {
    const float *scores, *centre;
    uint32_t half;
    int layer;
    const struct oct_trace_bounds *bounds;
};

static float price_of(const struct oct_trace *trace, int layer)
{
    return (float)trace->setup.params.price * (layer == OCT_LAYER_ILM ? ILM_PRICE : RPE_PRICE);
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
        const float *now = trace->totals + (size_t)j * width;
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

static void follow(struct oct_trace *trace, const struct corridor *c, float *path)
{
    uint32_t width = 2 * c->half + 1;
    float price = price_of(trace, c->layer), scale = steepest(trace, c->scores, width);
    float depth = (float)trace->setup.depth - 0.5F, never = NEVER / (float)trace->setup.n_lines;
    float flank = (float)(OCT_TRACE_FLANK_UM / trace->setup.params.depth_um);

    scale = scale > 0 ? 1 / scale : 0;
    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        float *now = trace->totals + (size_t)j * width;
        if (j)
            lead(now - width, price, width, now);
        else
            memset(now, 0, width * sizeof(*now));
        for (uint32_t w = 0; w < width; w++) {
            float at = c->centre[j] + (float)w - (float)c->half;
            now[w] += 1 - scale * c->scores[(size_t)j * width + w];
            if (at < -0.5F || at > depth || is_outside(c->bounds, c->layer, j, at + flank))
                now[w] += never;
        }
    }
    follow_back(trace, width, price, path);
}

/* The peak of the slope nearest to the path's place, by a parabola; the place itself where the
 * slope has no peak within 2 px. */
static float peak_near(const float *slopes, uint32_t width, int at)
{
    for (int k = 0; k < 2; k++) {
        int w = at;
        if (w > 0 && slopes[w - 1] > slopes[w])
            w--;
        else if (w + 1 < (int)width && slopes[w + 1] > slopes[w])
            w++;
        at = w;
    }
    if (at <= 0 || at + 1 >= (int)width)
        return (float)at;
    float a = slopes[at - 1], b = slopes[at], c = slopes[at + 1], curve = a - 2 * b + c;
    if (!(b >= a && b >= c && curve < 0))
        return (float)at;
    return (float)at + 0.5F * (a - c) / curve;
}

/* An edge counts by how dark it is above the ILM, how bright above the RPE's border: the edges
 * within the nerve fibre layer and below the choriocapillaris are next to them. */
static void weigh(struct oct_trace *trace, int layer, size_t n)
{
    float scale = 1 / (trace->bright - trace->dark);

    for (size_t i = 0; i < n; i++) {
        float z = (trace->levels[1][i] - trace->dark) * scale;
        z = layer == OCT_LAYER_ILM ? 1.1F - z : z;
        z = z < 0.1F ? 0.1F : z > 1.1F ? 1.1F : z;
        trace->scores[i] = trace->slopes[1][i] * (layer == OCT_LAYER_ILM ? z : z * z * z * z * z);
    }
}

static void refine(struct oct_trace *trace, int layer, uint32_t half,
                   const struct oct_trace_bounds *bounds)
{
    uint32_t m = trace->setup.n_lines, width = 2 * half + 1;
    float sign = layer == OCT_LAYER_ILM ? 1 : -1, *path = trace->path[layer];
    const struct corridor corridor = {
        .scores = trace->scores, .centre = path, .half = half, .layer = layer, .bounds = bounds};

    for (uint32_t j = 0; j < m; j++) {
        size_t at = (size_t)j * width;
        if (oct_trace_has_line(trace, j))
            slope_line(trace, j, path[j], half, sign, trace->slopes[0] + at, trace->levels[0] + at);
    }
    smooth_lines(trace, layer, trace->slopes[0], width, trace->slopes[1]);
    smooth_lines(trace, layer, trace->levels[0], width, trace->levels[1]);
    weigh(trace, layer, (size_t)m * width);
    follow(trace, &corridor, trace->line);
    for (uint32_t j = 0; j < m; j++)
        path[j] += peak_near(trace->slopes[1] + (size_t)j * width, width, (int)trace->line[j]) -
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
