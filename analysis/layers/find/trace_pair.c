/* Both borders at once: a shortest path, after Chiu et al. 2010, through a coarse grid.
 *
 * A node is a column of the grid with a place of the ILM and a distance to the RPE. It costs what
 * both borders cost there (ilm_cost, rpe_cost). From column to column either border moves by at
 * most `step` rows, at a price a row:
 *
 *     total(c, i, t) = ilm(c, i) + rpe(c, i + t)
 *                      + min over moves of total(c - 1, i + a, t + b - a) + prices of |a|, |b|
 *
 * The path of the least total is read back from the last column. The least over both moves is that
 * over the RPE's, then over the ILM's (min-plus, separable), each as a sum of moves by fewer rows.
 * Costs are whole numbers of 1 / OCT_TRACE_UNIT, so that 16 bits hold them and many of them are
 * added at once; totals are above the least of the column before. With bounds only nodes within
 * them are looked at. */
#include "analysis/layers/find/trace_parts.h"
#include "pipeline/base/wide.h"

#include <stdlib.h>
#include <string.h>

const enum oct_layer oct_trace_pair_layers[OCT_TRACE_N_PAIR] = {OCT_LAYER_ILM, OCT_LAYER_RPE};

#define BELOW 0.65F
#define OUTSIDE 6000    /* the cost of a place out of bounds */
#define NEVER 28013     /* 0x6d6d, the total of a node that cannot be */
#define MOST_LEAD 15000 /* of what leads to a node */

/* ---- cells ---- */

static void fill_blocks(struct oct_trace *trace)
{
    const struct oct_trace_grid *g = &trace->grid;
    float share = 1 / (float)g->depth;

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        const float *from = trace->light + (size_t)j * trace->setup.depth;
        float *to = trace->blocks + (size_t)j * g->n_rows;
        for (uint32_t i = 0; i < g->n_rows; i++, from += g->depth) {
            float sum = 0;
            for (uint32_t k = 0; k < g->depth; k++)
                sum += from[k];
            to[i] = sum * share;
        }
    }
}

/* The mean of a column's A-lines; NaN where it has none. */
static void fill_column(struct oct_trace *trace, uint32_t column)
{
    const struct oct_trace_grid *g = &trace->grid;
    uint32_t first = column * g->lines, last = first + g->lines, n = 0;
    float *to = trace->cells + (size_t)column * g->n_rows;

    last = last < trace->setup.n_lines ? last : trace->setup.n_lines;
    memset(to, 0, g->n_rows * sizeof(*to));
    for (uint32_t j = first; j < last; j++) {
        const float *from = trace->blocks + (size_t)j * g->n_rows;
        if (!oct_trace_has_line(trace, j))
            continue;
        n++;
        for (uint32_t i = 0; i < g->n_rows; i++)
            to[i] += from[i];
    }
    for (uint32_t i = 0; i < g->n_rows; i++)
        to[i] = n ? to[i] / (float)n : NAN;
}

/* Scales the cells from dark to bright. */
static bool scale_cells(struct oct_trace *trace)
{
    size_t n = (size_t)trace->grid.n_columns * trace->grid.n_rows, n_known = 0;
    float *cells = trace->cells;

    for (size_t i = 0; i < n; i++)
        if (!isnan(cells[i]))
            trace->sorted[n_known++] = cells[i];
    if (!n_known)
        return false;
    float dark = oct_trace_select(trace->sorted, n_known, n_known / 10);
    float bright = oct_trace_select(trace->sorted, n_known, n_known - 1 - n_known / 100);
    if (!(bright - dark > 1e-6F * (fabsf(bright) + fabsf(dark))))
        return false;
    trace->dark = dark;
    trace->bright = bright;
    for (size_t i = 0; i < n; i++) {
        float z = (cells[i] - dark) / (bright - dark);
        cells[i] = z < -0.5F ? -0.5F : z > 1.2F ? 1.2F : z;
    }
    return true;
}

bool oct_trace_fill_cells(struct oct_trace *trace)
{
    fill_blocks(trace);
    for (uint32_t c = 0; c < trace->grid.n_columns; c++)
        fill_column(trace, c);
    return scale_cells(trace);
}

/* ---- costs ---- */

/* The mean of the rows from `first` to before `last`, cut off at the picture's ends. */
static float mean(const float *sums, int first, int last, int n_rows)
{
    first = first < 0 ? 0 : first;
    last = last > n_rows ? n_rows : last;
    return last > first ? (sums[last] - sums[first]) / (float)(last - first) : 0;
}

static int16_t cost_of(float score)
{
    float s = score < -1 ? -1 : score > 1 ? 1 : score;

    return (int16_t)lrintf((float)OCT_TRACE_UNIT * (1 - s));
}

/* The brightest of the bands that begin from `first` to `last`; -INFINITY: there is none. */
static float brightest(const float *bands, int first, int last)
{
    float most = -INFINITY;

    for (int k = first; k <= last; k++)
        most = bands[k] > most ? bands[k] : most;
    return most;
}

/* By how much the brightest band of 16 um below border i outshines a band of brightness `above`: up
 * to `beyond` it may not be nearly as bright, further on not brighter. bands: of each row the mean
 * of a band that begins there. */
static float outshone(const struct oct_trace_grid *g, const float *bands, int i, float above)
{
    int first = i + (int)g->band, beyond = i + (int)g->beyond, last = i + (int)g->deep;
    int end = (int)g->n_rows - (int)g->band;

    last = last < end ? last : end;
    beyond = beyond < last ? beyond : last;
    float most = brightest(bands, first, beyond) - BELOW * above;
    float deep = brightest(bands, beyond < first ? first : beyond + 1, last) - above;
    most = most > deep ? most : deep;
    return most > 0 ? most : 0;
}

static bool is_edge(const struct oct_trace_grid *g, int i)
{
    return i < (int)g->near || i > (int)(g->n_rows - g->near);
}

/* The ILM has bright tissue below and the dark vitreous above, for as far as can be seen. */
static int16_t ilm_cost(const struct oct_trace_grid *g, const float *s, int i)
{
    int n = (int)g->n_rows, near = (int)g->near, skip = (int)g->skip;
    int top = i - near > skip ? i - near : skip, high = i - (int)g->far;
    float above = mean(s, top, i, n), under = mean(s, i, i + near, n);
    float far = mean(s, high > skip ? high : skip, i, n);

    return is_edge(g, i) || i < near + skip ? OCT_TRACE_UNIT
                                            : cost_of(under - above - fmaxf(far, 0));
}

/* The RPE is the lower border of a bright band, darker below for longer than the gap between the
 * bands of the photoreceptors and the RPE, not outshone from below, and at the end of all these
 * bands, above which the outer nuclear layer is dark. */
static int16_t rpe_cost(const struct oct_trace_grid *g, const float *s, const float *bands, int i)
{
    int n = (int)g->n_rows, outer = (int)g->outer, near_onl = (int)g->inner;
    float under = mean(s, i, i + (int)g->below, n), above = mean(s, i - (int)g->near, i, n);
    float far = fmaxf(mean(s, i - outer, i - (outer + near_onl) / 2, n),
                      mean(s, i - (outer + near_onl) / 2, i - near_onl, n));
    float complex = mean(s, i - (int)g->complex, i, n);

    return is_edge(g, i) ? OCT_TRACE_UNIT
                         : cost_of(0.6F * (above - under) + 0.3F * above + 0.4F * complex -
                                   0.7F * far - outshone(g, bands, i, above));
}

/* The costs of a layer's borders, from the one at 0 on. */
static int16_t *costs_of(const struct oct_trace *trace, int layer, uint32_t column)
{
    const struct oct_trace_grid *g = &trace->grid;

    return trace->costs + ((size_t)layer * g->n_columns + column) * (g->n_rows + 1 + g->most);
}

/* The costs of the borders that the layers may have in the column; others are out of bounds. */
static void score_column(struct oct_trace *trace, uint32_t column)
{
    const struct oct_trace_grid *g = &trace->grid;
    const float *cells = trace->cells + (size_t)column * g->n_rows;
    int16_t *ilm = costs_of(trace, OCT_TRACE_TOP, column);
    int16_t *rpe = costs_of(trace, OCT_TRACE_BOTTOM, column);
    const struct oct_trace_range top = trace->borders[OCT_TRACE_TOP][column];
    const struct oct_trace_range bottom = trace->borders[OCT_TRACE_BOTTOM][column];
    float *bands = trace->others;

    trace->sums[0] = 0;
    for (uint32_t i = 0; i < g->n_rows; i++)
        trace->sums[i + 1] = trace->sums[i] + (isnan(cells[i]) ? 0 : cells[i]);
    for (uint32_t i = 0; i + g->band <= g->n_rows; i++)
        bands[i] = (trace->sums[i + g->band] - trace->sums[i]) / (float)g->band;
    for (size_t i = 0; i < g->n_rows + 1 + g->most; i++)
        ilm[i] = rpe[i] = OUTSIDE;
    for (int i = top.first; i <= top.last; i++)
        ilm[i] = isnan(cells[0]) ? OCT_TRACE_UNIT : ilm_cost(g, trace->sums, i);
    for (int i = bottom.first; i <= bottom.last; i++)
        rpe[i] = isnan(cells[0]) ? OCT_TRACE_UNIT : rpe_cost(g, trace->sums, bands, i);
}

/* ---- what is in bounds ---- */

static struct oct_trace_range hull(struct oct_trace_range a, struct oct_trace_range b)
{
    return (struct oct_trace_range){a.first < b.first ? a.first : b.first,
                                    a.last > b.last ? a.last : b.last};
}

/* The borders that some A-line of the column may have; all where none is in bounds. */
static struct oct_trace_range borders_in(const struct oct_trace *trace, uint32_t column, int layer,
                                         const struct oct_trace_bounds *bounds)
{
    const struct oct_trace_grid *g = &trace->grid;
    const float *least = bounds ? bounds->least[oct_trace_pair_layers[layer]] : NULL;
    const float *most = bounds ? bounds->most[oct_trace_pair_layers[layer]] : NULL;
    float half = 0.5F * (float)g->depth, lowest = INFINITY, highest = -INFINITY;
    float first = -0.5F;

    for (uint32_t j = column * g->lines; j < (column + 1) * g->lines; j++) {
        if (j >= trace->setup.n_lines)
            break;
        float a = least ? least[j] : NAN, b = most ? most[j] : NAN;
        lowest = fminf(lowest, isnan(a) ? -INFINITY : a - half);
        highest = fmaxf(highest, isnan(b) ? INFINITY : b + half);
    }
    const float from = fmaxf(ceilf((lowest - first) / (float)g->depth), 0);
    const float to = fminf(floorf((highest - first) / (float)g->depth), (float)g->n_rows);
    return from <= to ? (struct oct_trace_range){(int)from, (int)to}
                      : (struct oct_trace_range){0, (int)g->n_rows};
}

/* Of each column the borders, of all the distances that bounds leave in some. */
static void find_borders(struct oct_trace *trace, const struct oct_trace_bounds *bounds)
{
    const int most = (int)trace->n_gaps - 1, least = (int)trace->grid.least;
    struct oct_trace_range gaps = {most, 0};

    for (uint32_t c = 0; c < trace->grid.n_columns; c++) {
        const struct oct_trace_range ilm = borders_in(trace, c, OCT_TRACE_TOP, bounds);
        const struct oct_trace_range rpe = borders_in(trace, c, OCT_TRACE_BOTTOM, bounds);
        trace->borders[OCT_TRACE_TOP][c] = ilm;
        trace->borders[OCT_TRACE_BOTTOM][c] = rpe;
        gaps = hull(gaps, (struct oct_trace_range){rpe.first - ilm.last - least,
                                                   rpe.last - ilm.first - least});
    }
    gaps.first = gaps.first > 0 ? gaps.first : 0;
    gaps.last = gaps.last < most ? gaps.last : most;
    trace->gaps = gaps.first <= gaps.last ? gaps : (struct oct_trace_range){0, most};
}

/* The ILM's places that are looked at in a column: those in bounds, and what lies between them and
 * those of the column before where no step leads from one to the other. */
static struct oct_trace_range tops_in(const struct oct_trace *trace, uint32_t column,
                                      const struct oct_trace_range *before)
{
    const struct oct_trace_range ilm = trace->borders[OCT_TRACE_TOP][column];
    const int most = (int)trace->n_tops - 1, step = (int)trace->grid.step;
    struct oct_trace_range tops = {0, most};

    if (ilm.first <= most)
        tops = (struct oct_trace_range){ilm.first, ilm.last < most ? ilm.last : most};
    return before && (tops.first > before->last + step || before->first > tops.last + step)
               ? hull(tops, *before)
               : tops;
}

/* ---- the shortest path ---- */

/* Nodes of a column that are looked at: n_rows places of the ILM, of n distances each. */
struct nodes {
    size_t first, stride;
    int n_rows, n;
};

static size_t stride_of(const struct oct_trace *trace)
{
    return trace->n_gaps + 2 * OCT_TRACE_GUARD;
}

static size_t node_at(const struct oct_trace *trace, int top, int gap)
{
    return ((size_t)top + OCT_TRACE_GUARD) * stride_of(trace) + OCT_TRACE_GUARD + (size_t)gap;
}

static struct nodes nodes_of(const struct oct_trace *trace, struct oct_trace_range tops)
{
    return (struct nodes){.first = node_at(trace, tops.first, trace->gaps.first),
                          .stride = stride_of(trace),
                          .n_rows = tops.last - tops.first + 1,
                          .n = trace->gaps.last - trace->gaps.first + 1};
}

/* to = min(from, min(from - away, from + away) + price) */
OCT_WIDE static void move(const struct nodes *nodes, const int16_t *from, int16_t *to, size_t away,
                          int16_t price)
{
    for (int i = 0; i < nodes->n_rows; i++) {
        const int16_t *restrict a = from + nodes->first + (size_t)i * nodes->stride;
        const int16_t *restrict up = a - away, *restrict down = a + away;
        int16_t *restrict b = to + nodes->first + (size_t)i * nodes->stride;
        for (int t = 0; t < nodes->n; t++) {
            int16_t side = (int16_t)((up[t] < down[t] ? up[t] : down[t]) + price);
            b[t] = a[t] < side ? a[t] : side;
        }
    }
}

OCT_WIDE static int16_t least_of(const struct nodes *nodes, const int16_t *totals)
{
    int16_t x = NEVER;

    for (int i = 0; i < nodes->n_rows; i++) {
        const int16_t *a = totals + nodes->first + (size_t)i * nodes->stride;
        for (int t = 0; t < nodes->n; t++)
            x = a[t] < x ? a[t] : x;
    }
    return x;
}

/* to = from - least + both costs, as far as 16 bits hold them. ilm, rpe: of the first node. */
OCT_WIDE static void add(const struct nodes *nodes, const int16_t *from, int16_t *to,
                         const int16_t *ilm, const int16_t *rpe)
{
    const int16_t least = least_of(nodes, from);

    for (int i = 0; i < nodes->n_rows; i++) {
        const int16_t *restrict a = from + nodes->first + (size_t)i * nodes->stride;
        const int16_t *restrict c = rpe + i;
        int16_t *restrict b = to + nodes->first + (size_t)i * nodes->stride;
        const int16_t own = (int16_t)(ilm[i] - least);
        for (int t = 0; t < nodes->n; t++) {
            int16_t lead = a[t] < MOST_LEAD ? a[t] : MOST_LEAD;
            int16_t x = (int16_t)(lead + own + c[t]);
            b[t] = x < NEVER ? x : NEVER;
        }
    }
}

static void forget(int16_t *totals, size_t n)
{
    memset(totals, NEVER & 0xff, n * sizeof(*totals));
}

/* The least over all moves of both layers by up to `step` rows, each a sum of moves by fewer; in a
 * scratch. Where the ILM moves and the RPE stays, their distance changes too. Moves read beside the
 * nodes, where a column with other tops has left its totals. */
static const int16_t *move_both(const struct oct_trace *trace, struct oct_trace_range tops,
                                const int16_t *from)
{
    static const uint8_t parts[OCT_TRACE_MOST_STEP + 1][4] = {
        {0}, {1}, {1, 1}, {1, 2}, {1, 1, 2}, {1, 2, 2}, {1, 2, 3}};
    const struct nodes nodes = nodes_of(trace, tops);
    const size_t side = OCT_TRACE_GUARD * nodes.stride;
    int16_t *to = trace->scratch[0];

    for (int i = 0; i < 2; i++) {
        forget(trace->scratch[i] + (size_t)tops.first * nodes.stride, side);
        forget(trace->scratch[i] + (size_t)(tops.last + 1) * nodes.stride + side, side);
    }
    for (int layer = 0; layer < OCT_TRACE_N_PAIR; layer++)
        for (const uint8_t *rows = parts[trace->grid.step]; *rows; rows++) {
            size_t away = *rows * (layer == OCT_TRACE_TOP ? nodes.stride - 1 : 1);
            move(&nodes, from, to, away, (int16_t)(trace->grid.price[layer] * *rows));
            from = to;
            to = trace->scratch[to == trace->scratch[0]];
        }
    return from;
}

static int16_t *totals_of(const struct oct_trace *trace, uint32_t column)
{
    return trace->totals + column * trace->n_nodes;
}

/* From borders of one column to those of the column before that lead to them. */
static void step_back(const struct oct_trace *trace, const int16_t *totals, int *top, int *bottom)
{
    const struct oct_trace_grid *g = &trace->grid;
    const int own_top = *top, own_bottom = *bottom, step = (int)g->step;
    int best = INT16_MAX;

    for (int da = -step; da <= step; da++)
        for (int db = -step; db <= step; db++) {
            int a = own_top + da, t = own_bottom + db - a - (int)g->least;
            if (a < 0 || a >= (int)trace->n_tops || t < 0 || t >= (int)trace->n_gaps)
                continue;
            int x = totals[node_at(trace, a, t)] + abs(da) * g->price[OCT_TRACE_TOP] +
                    abs(db) * g->price[OCT_TRACE_BOTTOM];
            if (x < best) {
                best = x;
                *top = a;
                *bottom = own_bottom + db;
            }
        }
}

/* Follows the least total back from the last column. */
static void follow_back(struct oct_trace *trace)
{
    const struct oct_trace_grid *g = &trace->grid;
    const int16_t *totals = totals_of(trace, g->n_columns - 1);
    int top = 0, bottom = (int)g->least;
    int16_t best = INT16_MAX;

    for (int i = 0; i < (int)trace->n_tops; i++)
        for (int t = 0; t < (int)trace->n_gaps; t++)
            if (totals[node_at(trace, i, t)] < best) {
                best = totals[node_at(trace, i, t)];
                top = i;
                bottom = i + t + (int)g->least;
            }
    for (uint32_t c = g->n_columns; c-- > 0;) {
        trace->pair[OCT_TRACE_TOP][c] = (uint32_t)top;
        trace->pair[OCT_TRACE_BOTTOM][c] = (uint32_t)bottom;
        if (c > 0)
            step_back(trace, totals_of(trace, c - 1), &top, &bottom);
    }
}

void oct_trace_pair(struct oct_trace *trace, const struct oct_trace_bounds *bounds)
{
    struct oct_trace_range tops = {0, 0};

    find_borders(trace, bounds);
    memset(trace->scratch[0], 0, trace->n_nodes * sizeof(int16_t));
    forget(trace->scratch[1], trace->n_nodes);
    for (uint32_t c = 0; c < trace->grid.n_columns; c++) {
        int16_t *totals = totals_of(trace, c);
        const struct oct_trace_range before = tops;
        const int16_t *from = trace->scratch[0];

        tops = tops_in(trace, c, c > 0 ? &before : NULL);
        if (c > 0)
            from = move_both(trace, hull(tops, before), totals - trace->n_nodes);
        const struct nodes nodes = nodes_of(trace, tops);
        score_column(trace, c);
        forget(totals, trace->n_nodes);
        add(&nodes, from, totals, costs_of(trace, OCT_TRACE_TOP, c) + tops.first,
            costs_of(trace, OCT_TRACE_BOTTOM, c) + tops.first + (int)trace->grid.least +
                trace->gaps.first);
        if (c == 0)
            forget(trace->scratch[0], trace->n_nodes);
    }
    follow_back(trace);
}

/* The coarse path as a curve over the A-lines. */
void oct_trace_pair_curves(struct oct_trace *trace)
{
    const struct oct_trace_grid *g = &trace->grid;
    double half = 0.5 * (g->lines - 1);

    for (int layer = 0; layer < OCT_TRACE_N_PAIR; layer++) {
        const uint32_t *pair = trace->pair[layer];
        for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
            double u = fmin(fmax((j - half) / g->lines, 0), g->n_columns - 1);
            uint32_t c = (uint32_t)u, next = c + 1 < g->n_columns ? c + 1 : c;
            double at = pair[c] + (u - c) * ((double)pair[next] - pair[c]);
            trace->line[j] = (float)(at * g->depth - 0.5);
        }
        oct_trace_smooth(trace->line, trace->path[oct_trace_pair_layers[layer]],
                         trace->setup.n_lines, g->lines);
    }
}
