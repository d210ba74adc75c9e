/* The pair of paths through the coarse grid. Costs are whole numbers of 1 / OCT_TRACE_UNIT, so that
 * 16 bits hold them and eight of them are added at once.
 *
 * A state is the ILM's border and its distance to the RPE's. From column to column either moves by
 * at most `step` rows, at a price a row: the least over both is that over the RPE's moves, then
 * over the ILM's (min-plus, separable), each as a sum of moves by fewer rows. */
#include "analysis/surface/trace_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNIT OCT_TRACE_UNIT
#define BIG 28000 /* a state that cannot be */
#define BELOW 0.65F
#define OUTSIDE 6000 /* the cost of a place out of bounds */

/* ---- cells ---- */

/* Replaces what is not finite by the darkest. */
static void clean(struct oct_trace *trace)
{
    uint32_t m = trace->setup.n_lines, depth = trace->setup.depth;
    float darkest = INFINITY;

    for (uint32_t j = 0; j < m; j++) {
        const float *from = trace->pixels + (size_t)j * depth;
        for (uint32_t d = 0; d < depth && oct_trace_has_line(trace, j); d++)
            darkest = isfinite(from[d]) && from[d] < darkest ? from[d] : darkest;
        oct_pause_call(&trace->setup.pause);
    }
    if (isinf(darkest))
        darkest = 0;
    for (uint32_t j = 0; j < m; j++) {
        const float *from = trace->pixels + (size_t)j * depth;
        float *to = trace->clean + (size_t)j * depth;
        for (uint32_t d = 0; d < depth; d++)
            to[d] = isfinite(from[d]) ? fminf(fmaxf(from[d], -1e30F), 1e30F) : darkest;
        oct_pause_call(&trace->setup.pause);
    }
    trace->pixels = trace->clean;
}

/* Returns whether all means are finite. */
static bool fill_blocks(struct oct_trace *trace)
{
    const struct oct_trace_grid *g = &trace->grid;
    uint32_t s = g->depth;
    float share = 1 / (float)s;
    bool finite = true;

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        const float *from = trace->pixels + (size_t)j * trace->setup.depth;
        float *to = trace->blocks + (size_t)j * g->n_rows, total = 0;
        for (uint32_t i = 0; i < g->n_rows; i++, from += s) {
            float sum = 0;
            for (uint32_t k = 0; k < s; k++)
                sum += from[k];
            to[i] = sum * share;
            total += sum;
        }
        for (uint32_t k = g->n_rows * s; k < trace->setup.depth; k++)
            total += trace->pixels[(size_t)j * trace->setup.depth + k];
        finite = finite && (isfinite(total) || !oct_trace_has_line(trace, j));
        oct_pause_call(&trace->setup.pause);
    }
    return finite;
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

bool oct_trace_grid_fill(struct oct_trace *trace)
{
    if (!fill_blocks(trace)) {
        clean(trace);
        fill_blocks(trace);
    }
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

    return (int16_t)lrintf((float)UNIT * (1 - s));
}

/* By how much the brightest band of 16 um below border i outshines a band of brightness `above`: up
 * to `beyond` it may not be nearly as bright, further on not brighter. */
static float outshone(const struct oct_trace_grid *g, const float *sums, int i, float above)
{
    int n = (int)g->n_rows, band = (int)g->band, last = i + (int)g->deep;
    float most = 0;

    for (int k = i + band; k <= last && k + band <= n; k++) {
        float z = (sums[k + band] - sums[k]) / (float)band;
        most = fmaxf(most, z - (k <= i + (int)g->beyond ? BELOW * above : above));
    }
    return most;
}

/* The ILM has bright tissue below and the dark vitreous above, for as far as can be seen. The RPE
 * is the lower border of a bright band, darker below for longer than the gap between the bands of
 * the photoreceptors and the RPE, not outshone from below, and at the end of all these bands, above
 * which the outer nuclear layer is dark. */
static void score_column(struct oct_trace *trace, uint32_t column)
{
    const struct oct_trace_grid *g = &trace->grid;
    const float *cells = trace->cells + (size_t)column * g->n_rows;
    size_t row = g->n_rows + 1 + g->most;
    int16_t *ilm = trace->costs + column * row;
    int16_t *rpe = ilm + g->n_columns * row;
    int n = (int)g->n_rows, near = (int)g->near, below = (int)g->below, outer = (int)g->outer;
    int near_onl = (int)g->inner;
    int skip = (int)g->skip;

    trace->sums[0] = 0;
    for (int i = 0; i < n; i++)
        trace->sums[i + 1] = trace->sums[i] + (isnan(cells[i]) ? 0 : cells[i]);
    const float *s = trace->sums;
    for (int i = 0; i <= n; i++) {
        int top = i - near > skip ? i - near : skip, high = i - (int)g->far;
        float above = mean(s, top, i, n), under = mean(s, i, i + near, n);
        float far = mean(s, high > skip ? high : skip, i, n);
        ilm[i] = i < near + skip || i > n - near ? UNIT : cost_of(under - above - fmaxf(far, 0));
        under = mean(s, i, i + below, n);
        above = mean(s, i - near, i, n);
        far = fmaxf(mean(s, i - outer, i - (outer + near_onl) / 2, n),
                    mean(s, i - (outer + near_onl) / 2, i - near_onl, n));
        float complex = mean(s, i - (int)g->complex, i, n);
        rpe[i] = i < near || i > n - near
                     ? UNIT
                     : cost_of(0.6F * (above - under) + 0.3F * above + 0.4F * complex - 0.7F * far -
                               outshone(g, s, i, above));
        if (isnan(cells[0]))
            ilm[i] = rpe[i] = UNIT;
    }
    for (size_t i = (size_t)n + 1; i < row; i++)
        ilm[i] = rpe[i] = OUTSIDE;
}

/* Adds to the costs of places where no A-line of the column may have the layer. */
static void bound_column(struct oct_trace *trace, uint32_t column, int layer, const float *least,
                         const float *most)
{
    const struct oct_trace_grid *g = &trace->grid;
    size_t row = g->n_rows + 1 + g->most;
    int16_t *cost = trace->costs + ((size_t)layer * g->n_columns + column) * row;
    float half = 0.5F * (float)g->depth, lowest = INFINITY, highest = -INFINITY;
    float flank = (float)(OCT_TRACE_FLANK_UM / trace->setup.params.depth_um);
    uint32_t last = (column + 1) * g->lines;

    last = last < trace->setup.n_lines ? last : trace->setup.n_lines;
    for (uint32_t j = column * g->lines; j < last; j++) {
        float a = least ? least[j] : NAN, b = most ? most[j] : NAN;
        lowest = isnan(a) || a - half < lowest ? (isnan(a) ? -INFINITY : a - half) : lowest;
        highest = isnan(b) || b + half > highest ? (isnan(b) ? INFINITY : b + half) : highest;
    }
    if (!(lowest <= highest))
        return;
    for (uint32_t i = 0; i <= g->n_rows; i++) {
        float at = (float)(i * g->depth) - 0.5F + flank;
        if (at < lowest || at > highest)
            cost[i] = OUTSIDE;
    }
}

/* ---- the pair ---- */

static size_t stride_of(const struct oct_trace *trace)
{
    return trace->n_gaps + 2 * OCT_TRACE_GUARD;
}

/* The states of one place of the ILM, from the least distance on. */
static size_t row_at(const struct oct_trace *trace, uint32_t top)
{
    return (top + OCT_TRACE_GUARD) * stride_of(trace) + OCT_TRACE_GUARD;
}

/* The least over a layer's moves by `rows` up, by none, and down. Where the ILM moves and the RPE
 * stays, their distance changes too. */
static void move(const struct oct_trace *trace, int layer, uint32_t rows, const int16_t *from,
                 int16_t *to)
{
    size_t away = layer == OCT_LAYER_ILM ? rows * (stride_of(trace) - 1) : rows;
    int16_t price = (int16_t)((uint32_t)trace->grid.price[layer] * rows);

    for (uint32_t i = 0; i < trace->n_tops; i++) {
        const int16_t *restrict a = from + row_at(trace, i);
        const int16_t *restrict up = a - away, *restrict down = a + away;
        int16_t *restrict b = to + row_at(trace, i);
        for (uint32_t t = 0; t < trace->n_gaps; t++) {
            int16_t side = (int16_t)((up[t] < down[t] ? up[t] : down[t]) + price);
            b[t] = a[t] < side ? a[t] : side;
        }
    }
}

/* The least over all moves by up to `step` rows: each is a sum of moves by fewer. Returns where it
 * is, a or b. */
static int16_t *move_all(const struct oct_trace *trace, const int16_t *from, int16_t *a, int16_t *b)
{
    static const uint8_t parts[OCT_TRACE_MOST_STEP + 1][3] = {
        {0}, {1}, {1, 1}, {1, 2}, {1, 1, 2}, {1, 2, 2}, {1, 2, 3}};
    const uint8_t *rows = parts[trace->grid.step];

    for (int layer = 0; layer < OCT_N_LAYERS; layer++)
        for (int k = 0; k < 3 && rows[k]; k++) {
            move(trace, layer, rows[k], from, a);
            int16_t *done = a;
            a = b;
            b = done;
            from = done;
        }
    return b;
}

/* Adds the column's costs to what leads to it, above the least of it. */
static void add_costs(const struct oct_trace *trace, uint32_t column, const int16_t *from,
                      int16_t *to)
{
    const struct oct_trace_grid *g = &trace->grid;
    size_t row = g->n_rows + 1 + g->most;
    const int16_t *ilm = trace->costs + column * row;
    const int16_t *rpe = ilm + g->n_columns * row;
    int16_t least = BIG;

    for (uint32_t i = 0; i < trace->n_tops; i++) {
        const int16_t *a = from + row_at(trace, i);
        for (uint32_t t = 0; t < trace->n_gaps; t++)
            least = a[t] < least ? a[t] : least;
    }
    for (uint32_t i = 0; i < trace->n_tops; i++) {
        const int16_t *restrict a = from + row_at(trace, i);
        const int16_t *restrict c = rpe + i + g->least;
        int16_t *restrict b = to + row_at(trace, i);
        int16_t own = (int16_t)(ilm[i] - least);
        for (uint32_t t = 0; t < trace->n_gaps; t++) {
            int16_t x = (int16_t)((a[t] < 15000 ? a[t] : 15000) + own + c[t]);
            b[t] = x < BIG ? x : BIG;
        }
    }
}

static int16_t least_lead(const struct oct_trace *trace, const int16_t *states, int top, int bottom,
                          int *best_top, int *best_bottom)
{
    const struct oct_trace_grid *g = &trace->grid;
    int step = (int)g->step;
    int16_t best = INT16_MAX;

    for (int da = -step; da <= step; da++)
        for (int db = -step; db <= step; db++) {
            int a = top + da, t = bottom + db - a - (int)g->least;
            if (a < 0 || a >= (int)trace->n_tops || t < 0 || t >= (int)trace->n_gaps)
                continue;
            int x = states[row_at(trace, (uint32_t)a) + (uint32_t)t] +
                    abs(da) * g->price[OCT_LAYER_ILM] + abs(db) * g->price[OCT_LAYER_RPE];
            if (x < best) {
                best = (int16_t)x;
                *best_top = a;
                *best_bottom = bottom + db;
            }
        }
    return best;
}

/* Follows the least total back from the last column. */
static void follow_back(struct oct_trace *trace)
{
    const struct oct_trace_grid *g = &trace->grid;
    const int16_t *states = trace->states + (g->n_columns - 1) * trace->n_states;
    int top = 0, bottom = (int)g->least;
    int16_t best = INT16_MAX;

    for (uint32_t i = 0; i < trace->n_tops; i++)
        for (uint32_t t = 0; t < trace->n_gaps; t++)
            if (states[row_at(trace, i) + t] < best) {
                best = states[row_at(trace, i) + t];
                top = (int)i;
                bottom = (int)(i + t + g->least);
            }
    for (uint32_t c = g->n_columns; c-- > 0;) {
        trace->pair[OCT_LAYER_ILM][c] = (uint32_t)top;
        trace->pair[OCT_LAYER_RPE][c] = (uint32_t)bottom;
        if (c > 0)
            least_lead(trace, trace->states + (c - 1) * trace->n_states, top, bottom, &top,
                       &bottom);
    }
}

static void guard(const struct oct_trace *trace, int16_t *states)
{
    for (size_t i = 0; i < trace->n_states; i++)
        states[i] = BIG;
}

void oct_trace_pair(struct oct_trace *trace, const struct oct_trace_bounds *bounds)
{
    int16_t *a = trace->scratch[0], *b = trace->scratch[1];

    guard(trace, a);
    guard(trace, b);
    for (size_t i = 0; i < trace->n_states; i++)
        a[i] = 0;
    for (uint32_t c = 0; c < trace->grid.n_columns; c++) {
        int16_t *states = trace->states + c * trace->n_states;
        score_column(trace, c);
        for (int layer = 0; bounds && layer < OCT_N_LAYERS; layer++)
            bound_column(trace, c, layer, bounds->least[layer], bounds->most[layer]);
        guard(trace, states);
        if (c == 0) {
            add_costs(trace, c, a, states);
            guard(trace, a);
            continue;
        }
        add_costs(trace, c, move_all(trace, states - trace->n_states, a, b), states);
        oct_pause_call(&trace->setup.pause);
    }
    follow_back(trace);
}
