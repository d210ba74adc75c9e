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

static inline __attribute__((always_inline)) void
mean_blocks(const float *restrict from, float *restrict to, uint32_t n, uint32_t depth)
{
    const float share = 1 / (float)depth;

    for (uint32_t i = 0; i < n; i++) {
        float sum = 0;
        for (uint32_t k = 0; k < depth; k++)
            sum += from[i * depth + k];
        to[i] = sum * share;
    }
}

/* Of usual depths the number is known to the compiler. */
OCT_WIDE static void fill_blocks(struct oct_trace *trace)
{
    const uint32_t n = trace->grid.n_rows, depth = trace->grid.depth;

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        const float *from = trace->light + (size_t)j * trace->setup.depth;
        float *to = trace->blocks + (size_t)j * n;
        if (depth == 2)
            mean_blocks(from, to, n, 2);
        else if (depth == 4)
            mean_blocks(from, to, n, 4);
        else if (depth == 8)
            mean_blocks(from, to, n, 8);
        else
            mean_blocks(from, to, n, depth);
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
    float dark, bright;
    oct_trace_select_both(trace->sorted, n_known, n_known / 10, &dark, n_known - 1 - n_known / 100,
                          &bright);
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

/* Of border i the rows in `windows` about it, whose means count for the RPE: sums go on beyond the
 * picture's ends as they are there, and means are of what lies in it. */
enum { UNDER_RPE, ABOVE_ONL, ONL, COMPLEX, N_WINDOWS };

static struct oct_trace_range window_of(const struct oct_trace_grid *g, int window)
{
    const int outer = (int)g->outer, inner = (int)g->inner, middle = (outer + inner) / 2;
    const struct oct_trace_range windows[N_WINDOWS] = {[UNDER_RPE] = {0, (int)g->below},
                                                       [ABOVE_ONL] = {-outer, -middle},
                                                       [ONL] = {-middle, -inner},
                                                       [COMPLEX] = {-(int)g->complex, 0}};
    return windows[window];
}

static inline int16_t cost_of(float score)
{
    const float s = score < -1 ? -1 : score > 1 ? 1 : score;

    return (int16_t)((float)OCT_TRACE_UNIT * (1 - s) + 0.5F);
}

/* to[k] = the greatest of the `width` values from from[k] on, of n; -INFINITY: width is 0. from has
 * width values more than n. */
OCT_WIDE static void greatest_of(const float *restrict from, float *restrict to, size_t n,
                                 size_t width)
{
    size_t have = 1;

    for (size_t k = 0; k < n + width; k++)
        to[k] = width > 0 ? from[k] : -INFINITY;
    for (; 2 * have <= width; have *= 2)
        for (size_t k = 0; k < n + width - have; k++)
            to[k] = to[k] > to[k + have] ? to[k] : to[k + have];
    for (size_t k = 0; width > have && k < n; k++)
        to[k] = to[k] > to[k + width - have] ? to[k] : to[k + width - have];
}

/* Of each row the mean of a band of 16 um that begins there, the brightest of those up to `beyond`
 * further down, and the brightest of those from there to `deep`. */
OCT_WIDE static void fill_bands(struct oct_trace *trace)
{
    const struct oct_trace_grid *g = &trace->grid;
    const float *restrict sums = trace->sums + g->n_rows;
    float *restrict *bands = trace->bands;

    const size_t n = (size_t)g->n_rows + g->beyond + 2, band = g->band;
    const size_t n_within = g->n_rows + 1 - band;
    for (size_t i = 0; i < n_within; i++)
        bands[0][i] = (sums[i + band] - sums[i]) / (float)band;
    for (size_t i = n_within; i < n + g->deep; i++)
        bands[0][i] = -INFINITY;
    greatest_of(bands[0], bands[1], n, g->beyond - g->band + 1);
    greatest_of(bands[0], bands[2], n, g->deep > g->beyond ? g->deep - g->beyond : 0);
}

/* By how much the brightest band of 16 um below border i outshines a band of brightness `above`: up
 * to `beyond` it may not be nearly as bright, further on not brighter. */
static inline float outshone(const struct oct_trace_grid *g, const float *restrict beyond,
                             const float *restrict deep, int i, float above)
{
    const float near = beyond[i + (int)g->band] - BELOW * above;
    const float far = deep[i + (int)g->beyond + 1] - above;
    const float most = near > far ? near : far;

    return most > 0 ? most : 0;
}

/* The places of a range at which a border has `above` rows above it and `below` rows below it; at
 * the others it costs what a place without contrast does. */
static struct oct_trace_range within(const struct oct_trace_grid *g, struct oct_trace_range range,
                                     uint32_t above, uint32_t below, int16_t *costs)
{
    const int least = (int)above, most = (int)g->n_rows - (int)below;

    for (int i = range.first; i <= range.last; i++)
        costs[i] = OCT_TRACE_UNIT;
    return (struct oct_trace_range){range.first > least ? range.first : least,
                                    range.last < most ? range.last : most};
}

/* The ILM has bright tissue below and the dark vitreous above, for as far as can be seen. */
OCT_WIDE static void score_ilm(const struct oct_trace_grid *g, const float *restrict s,
                               struct oct_trace_range range, int16_t *restrict costs)
{
    const int near = (int)g->near, far = (int)g->far, skip = (int)g->skip;
    const float share = (float)near;

    range = within(g, range, g->near + g->skip, g->near, costs);
    for (int i = range.first; i <= range.last; i++) {
        const float above = (s[i] - s[i - near]) / share, under = (s[i + near] - s[i]) / share;
        const int high = i - far > skip ? i - far : skip;
        const float vitreous = (s[i] - s[high]) / (float)(i - high);
        costs[i] = cost_of(under - above - (vitreous > 0 ? vitreous : 0));
    }
}

/* The RPE is the lower border of a bright band, darker below for longer than the gap between the
 * bands of the photoreceptors and the RPE, not outshone from below, and at the end of all these
 * bands, above which the outer nuclear layer is dark. */
OCT_WIDE static void score_rpe(const struct oct_trace *trace, struct oct_trace_range range,
                               int16_t *restrict costs)
{
    const struct oct_trace_grid *g = &trace->grid;
    const float *restrict s = trace->sums + g->n_rows;
    const float *restrict beyond = trace->bands[1], *restrict deep = trace->bands[2];
    const float *restrict shares = trace->shares, share = (float)g->near;
    const int n = (int)g->n_rows + 1, near = (int)g->near, inner = (int)g->inner;
    const int below = (int)g->below, outer = (int)g->outer, middle = (outer + inner) / 2;
    const int complex = (int)g->complex;

    range = within(g, range, g->near, g->near, costs);
    for (int i = range.first; i <= range.last; i++) {
        const float above = (s[i] - s[i - near]) / share;
        const float under = (s[i + below] - s[i]) / shares[UNDER_RPE * n + i];
        const float high = (s[i - middle] - s[i - outer]) / shares[ABOVE_ONL * n + i];
        const float low = (s[i - inner] - s[i - middle]) / shares[ONL * n + i];
        const float all = (s[i] - s[i - complex]) / shares[COMPLEX * n + i];
        costs[i] = cost_of(0.6F * (above - under) + 0.3F * above + 0.4F * all -
                           0.7F * (high > low ? high : low) - outshone(g, beyond, deep, i, above));
    }
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
    float *sums = trace->sums + g->n_rows; /* with room above and below */

    sums[0] = 0;
    for (uint32_t i = 0; i < g->n_rows; i++)
        sums[i + 1] = sums[i] + (isnan(cells[i]) ? 0 : cells[i]);
    for (uint32_t i = g->n_rows + 1; i <= 2 * g->n_rows; i++)
        sums[i] = sums[g->n_rows];
    fill_bands(trace);
    for (int layer = 0; layer < OCT_TRACE_N_PAIR; layer++) {
        const struct oct_trace_range range = trace->borders[layer][column];
        int16_t *costs = costs_of(trace, layer, column);
        for (size_t i = 0; i < g->n_rows + 1 + g->most; i++)
            costs[i] = OUTSIDE;
        for (int i = range.first; isnan(cells[0]) && i <= range.last; i++)
            costs[i] = OCT_TRACE_UNIT;
        if (isnan(cells[0]))
            continue;
        if (layer == OCT_TRACE_TOP)
            score_ilm(g, sums, range, costs);
        else
            score_rpe(trace, range, costs);
    }
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

/* Nodes of a column that are looked at: n_rows places of the ILM, of n distances each, `stride`
 * from place to place. Moves are of n_wide of them, so that many at once leave no few over: what
 * lies beyond n counts for a move on the way alone. */
struct nodes {
    size_t stride;
    int n_rows, n, n_wide;
};

static size_t node_at(const struct oct_trace *trace, int top, int gap)
{
    return ((size_t)top + OCT_TRACE_GUARD) * trace->stride + OCT_TRACE_GUARD + (size_t)gap;
}

/* From the first of a place on, of these places, with guards. */
static size_t n_nodes_of(const struct oct_trace *trace, struct oct_trace_range tops)
{
    return (size_t)(tops.last - tops.first + 1) * trace->stride;
}

static struct nodes nodes_of(const struct oct_trace *trace, struct oct_trace_range tops)
{
    const int n = trace->gaps.last - trace->gaps.first + 1;
    return (struct nodes){.stride = trace->stride,
                          .n_rows = tops.last - tops.first + 1,
                          .n = n,
                          .n_wide = (n + OCT_TRACE_WIDE - 1) / OCT_TRACE_WIDE * OCT_TRACE_WIDE};
}

/* to = min(from, min(from - away, from + away) + price); to has a stride of its own. */
OCT_WIDE static void move_top(const struct nodes *nodes, const int16_t *from, int16_t *to,
                              size_t to_stride, size_t away, int16_t price)
{
    for (int i = 0; i < nodes->n_rows; i++) {
        const int16_t *restrict a = from + (size_t)i * nodes->stride;
        const int16_t *restrict up = a - away, *restrict down = a + away;
        int16_t *restrict b = to + (size_t)i * to_stride;
        for (int t = 0; t < nodes->n_wide; t++) {
            int16_t side = (int16_t)((up[t] < down[t] ? up[t] : down[t]) + price);
            b[t] = a[t] < side ? a[t] : side;
        }
    }
}

/* The same along the distances, but never less than `least`, which keeps the guards: n nodes one
 * after the other. */
OCT_WIDE static void move_bottom(const int16_t *restrict from, int16_t *restrict to, size_t n,
                                 size_t away, int16_t price, const int16_t *restrict least)
{
    const int16_t *restrict up = from - away, *restrict down = from + away;

    for (size_t k = 0; k < n; k++) {
        int16_t x = (int16_t)((up[k] < down[k] ? up[k] : down[k]) + price);
        x = from[k] < x ? from[k] : x;
        to[k] = x > least[k] ? x : least[k];
    }
}

OCT_WIDE static int16_t least_of(const int16_t *totals, size_t n)
{
    int16_t x = NEVER;

    for (size_t i = 0; i < n; i++)
        x = totals[i] < x ? totals[i] : x;
    return x;
}

/* to = from - least + both costs, as far as 16 bits hold them. ilm, rpe: of the first node. */
OCT_WIDE static void add(const struct nodes *nodes, const int16_t *from, int16_t least, int16_t *to,
                         size_t to_stride, const int16_t *ilm, const int16_t *rpe)
{
    for (int i = 0; i < nodes->n_rows; i++) {
        const int16_t *restrict a = from + (size_t)i * nodes->stride;
        const int16_t *restrict c = rpe + i;
        int16_t *restrict b = to + (size_t)i * to_stride;
        const int16_t own = (int16_t)(ilm[i] - least);
        for (int t = 0; t < nodes->n_wide; t++) {
            int16_t lead = a[t] < MOST_LEAD ? a[t] : MOST_LEAD;
            int16_t x = (int16_t)(lead + own + c[t]);
            b[t] = x < NEVER ? x : NEVER;
        }
        memset(b + nodes->n, NEVER & 0xff, OCT_TRACE_WIDE * sizeof(*b));
    }
}

static void forget(int16_t *totals, size_t n)
{
    memset(totals, NEVER & 0xff, n * sizeof(*totals));
}

/* A move by up to `step` rows is a sum of moves by fewer. */
static const uint8_t parts[OCT_TRACE_MOST_STEP + 1][4] = {{0},       {1},       {1, 1},   {1, 2},
                                                          {1, 1, 2}, {1, 2, 2}, {1, 2, 3}};

/* All moves of the ILM but the last, to a scratch. Where the ILM moves and the RPE stays, their
 * distance changes too. Moves read beside the nodes, where a column with other tops has left its
 * totals. */
static const int16_t *move_tops(const struct oct_trace *trace, struct oct_trace_range tops,
                                const int16_t *from)
{
    const struct nodes nodes = nodes_of(trace, tops);
    const size_t side = OCT_TRACE_GUARD * nodes.stride;
    const size_t first = node_at(trace, tops.first, trace->gaps.first);

    for (const uint8_t *rows = parts[trace->grid.step]; rows[1]; rows++) {
        int16_t *to = trace->scratch[from == trace->scratch[0]];
        forget(to + (size_t)tops.first * nodes.stride, side);
        forget(to + (size_t)(tops.last + 1) * nodes.stride + side, side);
        move_top(&nodes, from + first, to + first, nodes.stride, *rows * (nodes.stride - 1),
                 (int16_t)(trace->grid.price[OCT_TRACE_TOP] * *rows));
        from = to;
    }
    return from;
}

static int16_t *totals_of(const struct oct_trace *trace, uint32_t column)
{
    return trace->totals + column * trace->n_nodes;
}

/* The last move of the ILM and those of the RPE, of a few tops. Returns what leads to the first
 * node; *stride: from top to top. */
static const int16_t *move_few(const struct oct_trace *trace, struct oct_trace_range tops,
                               const int16_t *from, size_t *stride)
{
    const struct oct_trace_grid *g = &trace->grid;
    const struct nodes nodes = nodes_of(trace, tops);
    const uint8_t *last = parts[g->step];
    int k = 0;

    while (last[1])
        last++;
    *stride = (size_t)nodes.n_wide + OCT_TRACE_GUARD;
    move_top(&nodes, from + node_at(trace, tops.first, trace->gaps.first),
             trace->moved[k] + OCT_TRACE_GUARD, *stride, *last * (nodes.stride - 1),
             (int16_t)(g->price[OCT_TRACE_TOP] * *last));
    for (const uint8_t *rows = parts[g->step]; *rows; rows++, k = !k)
        move_bottom(trace->moved[k] + OCT_TRACE_GUARD, trace->moved[!k] + OCT_TRACE_GUARD,
                    (size_t)nodes.n_rows * *stride, *rows,
                    (int16_t)(g->price[OCT_TRACE_BOTTOM] * *rows), trace->least);
    return trace->moved[k] + OCT_TRACE_GUARD;
}

/* What leads to the nodes of a column, and its costs: a few tops after the other, so that what lies
 * between moves stays near. */
static void move_and_add(const struct oct_trace *trace, uint32_t c, struct oct_trace_range tops,
                         const int16_t *from, int16_t least)
{
    int16_t *to = totals_of(trace, c);

    for (int top = tops.first; top <= tops.last; top += OCT_TRACE_ROWS) {
        const int end = top + OCT_TRACE_ROWS - 1;
        const struct oct_trace_range few = {top, end < tops.last ? end : tops.last};
        struct nodes nodes = nodes_of(trace, few);
        const size_t first = node_at(trace, top, trace->gaps.first), stride = nodes.stride;
        const int16_t *now = c > 0 ? move_few(trace, few, from, &nodes.stride) : from + first;
        add(&nodes, now, least, to + first, stride, costs_of(trace, OCT_TRACE_TOP, c) + top,
            costs_of(trace, OCT_TRACE_BOTTOM, c) + top + (int)trace->grid.least +
                trace->gaps.first);
    }
}

/* Guards of the few tops at once: what lies between their nodes cannot be. */
static void guard_moved(struct oct_trace *trace)
{
    const struct nodes nodes = nodes_of(trace, (struct oct_trace_range){0, 0});
    const size_t n = OCT_TRACE_ROWS * ((size_t)nodes.n_wide + OCT_TRACE_GUARD);

    for (int i = 0; i < 2; i++)
        forget(trace->moved[i], n + 2 * OCT_TRACE_GUARD);
    forget(trace->least, n);
    for (size_t i = 0; i < OCT_TRACE_ROWS; i++)
        for (int t = 0; t < nodes.n_wide; t++)
            trace->least[i * ((size_t)nodes.n_wide + OCT_TRACE_GUARD) + (size_t)t] = INT16_MIN;
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

void oct_trace_pair_init(struct oct_trace *trace)
{
    const int n = (int)trace->grid.n_rows;

    for (uint32_t c = 0; !trace->lacks_memory && c < trace->grid.n_columns; c++) {
        forget(totals_of(trace, c), trace->n_nodes);
        trace->filled[c] = (struct oct_trace_range){0, (int)trace->n_tops - 1};
    }
    trace->shares = oct_trace_array(trace, N_WINDOWS * ((size_t)n + 1), sizeof(float));
    for (int w = 0; trace->shares && w < N_WINDOWS; w++)
        for (int i = 0; i <= n; i++) {
            const struct oct_trace_range range = window_of(&trace->grid, w);
            const int first = i + range.first > 0 ? i + range.first : 0;
            const int last = i + range.last < n ? i + range.last : n;
            trace->shares[w * (n + 1) + i] = (float)(last - first > 1 ? last - first : 1);
        }
}

void oct_trace_pair(struct oct_trace *trace, const struct oct_trace_bounds *bounds)
{
    struct oct_trace_range tops = {0, 0};

    find_borders(trace, bounds);
    memset(trace->scratch[0], 0, trace->n_nodes * sizeof(int16_t));
    forget(trace->scratch[1], trace->n_nodes);
    guard_moved(trace);
    for (uint32_t c = 0; c < trace->grid.n_columns; c++) {
        int16_t *totals = totals_of(trace, c);
        const struct oct_trace_range before = tops;
        const int16_t *from = trace->scratch[0];
        int16_t least = 0;

        tops = tops_in(trace, c, c > 0 ? &before : NULL);
        if (c > 0) {
            const int16_t *last = totals - trace->n_nodes;
            least = least_of(last + node_at(trace, before.first, 0), n_nodes_of(trace, before));
            from = move_tops(trace, hull(tops, before), last);
        }
        score_column(trace, c);
        if (bounds || trace->had_bounds) /* else all but the guards is written anew */
            forget(totals + node_at(trace, trace->filled[c].first, 0),
                   n_nodes_of(trace, trace->filled[c]));
        trace->filled[c] = tops;
        move_and_add(trace, c, tops, from, least);
        if (c == 0)
            forget(trace->scratch[0], trace->n_nodes);
    }
    trace->had_bounds = bounds;
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
