/* The pair of paths through the coarse grid. Costs are whole numbers of 1 / OCT_TRACE_UNIT, so that
 * 16 bits hold them and eight of them are added at once.
 *
 * A state is the ILM's border and its distance to the RPE's. From column to column either moves by
 * at most `step` rows, at a price a row: the least over both is that over the RPE's moves, then
 * over the ILM's (min-plus, separable), each as a sum of moves by fewer rows. With bounds only the
 * states within them are looked at. */
#include "analysis/surface/trace_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNIT OCT_TRACE_UNIT
#define BIG OCT_TRACE_BIG
#define BELOW 0.65F
#define MOST_BRIGHT 1e15F /* beyond any scale of brightness: no number; its squares are still one */
#define OUTSIDE 6000      /* the cost of a place out of bounds */

/* ---- cells ---- */

static bool is_number(float x)
{
    return fabsf(x) <= MOST_BRIGHT;
}

/* Replaces what is no number by the darkest. */
static void clean(struct oct_trace *trace)
{
    uint32_t m = trace->setup.n_lines, depth = trace->setup.depth;
    float darkest = INFINITY;

    for (uint32_t j = 0; j < m; j++) {
        const float *from = trace->pixels + (size_t)j * depth;
        for (uint32_t d = 0; d < depth && oct_trace_has_line(trace, j); d++)
            darkest = is_number(from[d]) && from[d] < darkest ? from[d] : darkest;
    }
    if (isinf(darkest))
        darkest = 0;
    for (uint32_t j = 0; j < m; j++) {
        const float *from = trace->pixels + (size_t)j * depth;
        float *to = trace->clean + (size_t)j * depth;
        for (uint32_t d = 0; d < depth; d++)
            to[d] = is_number(from[d]) ? from[d] : darkest;
    }
    trace->pixels = trace->clean;
}

/* Whether all pixels of an A-line are numbers: NaN and infinities come through the sum. */
static bool are_numbers(const float *line, uint32_t depth)
{
    float sums[8] = {0};
    uint32_t d = 0;

    for (; d + 8 <= depth; d += 8)
        for (int i = 0; i < 8; i++)
            sums[i] += fabsf(line[d + (uint32_t)i]);
    for (; d < depth; d++)
        sums[0] += fabsf(line[d]);
    for (int i = 1; i < 8; i++)
        sums[0] += sums[i];
    return is_number(sums[0]);
}

/* Returns whether all pixels are numbers. */
static bool fill_blocks(struct oct_trace *trace)
{
    const struct oct_trace_grid *g = &trace->grid;
    uint32_t s = g->depth;
    float share = 1 / (float)s;
    bool known = true;

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        const float *from = trace->pixels + (size_t)j * trace->setup.depth;
        float *to = trace->blocks + (size_t)j * g->n_rows;
        known = known && (!oct_trace_has_line(trace, j) || are_numbers(from, trace->setup.depth));
        for (uint32_t i = 0; i < g->n_rows; i++, from += s) {
            float sum = 0;
            for (uint32_t k = 0; k < s; k++)
                sum += from[k];
            to[i] = sum * share;
        }
    }
    return known;
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

/* Borders from `first` to `last`. */
struct rows {
    int first, last;
};

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

    return is_edge(g, i) || i < near + skip ? UNIT : cost_of(under - above - fmaxf(far, 0));
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

    return is_edge(g, i) ? UNIT
                         : cost_of(0.6F * (above - under) + 0.3F * above + 0.4F * complex -
                                   0.7F * far - outshone(g, bands, i, above));
}

/* The costs of the borders that the layers may have in the column; others are out of bounds. */
static void score_column(struct oct_trace *trace, uint32_t column,
                         const struct rows rows[OCT_N_LAYERS])
{
    const struct oct_trace_grid *g = &trace->grid;
    const float *cells = trace->cells + (size_t)column * g->n_rows;
    size_t row = g->n_rows + 1 + g->most;
    int16_t *ilm = trace->costs + column * row;
    int16_t *rpe = ilm + g->n_columns * row;
    float *bands = trace->others;

    trace->sums[0] = 0;
    for (uint32_t i = 0; i < g->n_rows; i++)
        trace->sums[i + 1] = trace->sums[i] + (isnan(cells[i]) ? 0 : cells[i]);
    for (uint32_t i = 0; i + g->band <= g->n_rows; i++)
        bands[i] = (trace->sums[i + g->band] - trace->sums[i]) / (float)g->band;
    for (size_t i = 0; i < row; i++)
        ilm[i] = rpe[i] = OUTSIDE;
    for (int i = rows[OCT_LAYER_ILM].first; i <= rows[OCT_LAYER_ILM].last; i++)
        ilm[i] = isnan(cells[0]) ? UNIT : ilm_cost(g, trace->sums, i);
    for (int i = rows[OCT_LAYER_RPE].first; i <= rows[OCT_LAYER_RPE].last; i++)
        rpe[i] = isnan(cells[0]) ? UNIT : rpe_cost(g, trace->sums, bands, i);
}

/* The borders that some A-line of the column may have; all where none is in bounds. */
static struct rows rows_of(const struct oct_trace *trace, uint32_t column, int layer,
                           const struct oct_trace_bounds *bounds)
{
    const struct oct_trace_grid *g = &trace->grid;
    const struct rows all = {0, (int)g->n_rows};
    const float *least = bounds ? bounds->least[layer] : NULL;
    const float *most = bounds ? bounds->most[layer] : NULL;
    float half = 0.5F * (float)g->depth, lowest = INFINITY, highest = -INFINITY;
    float first = (float)(OCT_TRACE_FLANK_UM / trace->setup.params.depth_um) - 0.5F;
    uint32_t last = (column + 1) * g->lines;

    last = last < trace->setup.n_lines ? last : trace->setup.n_lines;
    for (uint32_t j = column * g->lines; j < last; j++) {
        float a = least ? least[j] : NAN, b = most ? most[j] : NAN;
        lowest = isnan(a) || a - half < lowest ? (isnan(a) ? -INFINITY : a - half) : lowest;
        highest = isnan(b) || b + half > highest ? (isnan(b) ? INFINITY : b + half) : highest;
    }
    const float from = fmaxf(ceilf((lowest - first) / (float)g->depth), 0);
    const float to = fminf(floorf((highest - first) / (float)g->depth), (float)g->n_rows);
    return from <= to ? (struct rows){(int)from, (int)to} : all;
}

/* ---- the pair ---- */

/* States that are looked at: all others cannot be. */
struct part {
    struct rows tops, gaps;
};

static size_t stride_of(const struct oct_trace *trace)
{
    return trace->n_gaps + 2 * OCT_TRACE_GUARD;
}

/* The states of one place of the ILM, from the least distance on. */
static size_t row_at(const struct oct_trace *trace, uint32_t top)
{
    return (top + OCT_TRACE_GUARD) * stride_of(trace) + OCT_TRACE_GUARD;
}

static struct oct_trace_rows rows_of_part(const struct oct_trace *trace, const struct part *part,
                                          const int16_t *from, int16_t *to)
{
    size_t first = row_at(trace, (uint32_t)part->tops.first) + (size_t)part->gaps.first;

    return (struct oct_trace_rows){.from = from + first,
                                   .to = to + first,
                                   .stride = stride_of(trace),
                                   .n_rows = part->tops.last - part->tops.first + 1,
                                   .n = part->gaps.last - part->gaps.first + 1};
}

/* The least over a layer's moves by `rows` up, by none, and down. Where the ILM moves and the RPE
 * stays, their distance changes too. */
static void move(const struct oct_trace *trace, const struct part *part, int layer, uint32_t rows,
                 const int16_t *from, int16_t *to)
{
    size_t away = layer == OCT_LAYER_ILM ? rows * (stride_of(trace) - 1) : rows;
    const struct oct_trace_rows states = rows_of_part(trace, part, from, to);

    trace->vectors->move(&states, away, (int16_t)((uint32_t)trace->grid.price[layer] * rows));
}

/* The least over all moves by up to `step` rows: each is a sum of moves by fewer. Returns where it
 * is, a or b. */
static int16_t *move_all(const struct oct_trace *trace, const struct part *part,
                         const int16_t *from, int16_t *a, int16_t *b)
{
    static const uint8_t parts[OCT_TRACE_MOST_STEP + 1][3] = {
        {0}, {1}, {1, 1}, {1, 2}, {1, 1, 2}, {1, 2, 2}, {1, 2, 3}};
    const uint8_t *rows = parts[trace->grid.step];

    for (int layer = 0; layer < OCT_N_LAYERS; layer++)
        for (int k = 0; k < 3 && rows[k]; k++) {
            move(trace, part, layer, rows[k], from, a);
            int16_t *done = a;
            a = b;
            b = done;
            from = done;
        }
    return b;
}

/* Adds the column's costs to what leads to it, above the least of it. */
static void add_costs(const struct oct_trace *trace, const struct part *part, uint32_t column,
                      const int16_t *from, int16_t *to)
{
    const struct oct_trace_grid *g = &trace->grid;
    size_t row = g->n_rows + 1 + g->most;
    const int16_t *ilm = trace->costs + column * row;
    const int16_t *rpe = ilm + g->n_columns * row;
    const struct oct_trace_rows states = rows_of_part(trace, part, from, to);
    const int first = part->tops.first;

    trace->vectors->add(&states, ilm + first, rpe + first + (int)g->least + part->gaps.first,
                        trace->vectors->least(&states));
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

/* What moves read beside the part, left there by a column with other tops. */
static void guard_sides(const struct oct_trace *trace, const struct part *part, int16_t *states)
{
    const size_t n = OCT_TRACE_GUARD * stride_of(trace);
    int16_t *above = states + (size_t)part->tops.first * stride_of(trace);
    int16_t *below =
        above + (size_t)(part->tops.last + 1 - part->tops.first) * stride_of(trace) + n;

    for (size_t t = 0; t < n; t++)
        above[t] = below[t] = BIG;
}

/* The ILM's borders in a column as the pair has them. */
static struct rows tops_of(const struct oct_trace *trace, const struct rows *ilm)
{
    const int most = (int)trace->n_tops - 1;
    const struct rows all = {0, most};

    return ilm->first > most ? all : (struct rows){ilm->first, ilm->last < most ? ilm->last : most};
}

static struct rows hull(const struct rows *a, const struct rows *b)
{
    return (struct rows){a->first < b->first ? a->first : b->first,
                         a->last > b->last ? a->last : b->last};
}

/* The distances that bounds leave in some column. */
static struct rows gaps_of(const struct oct_trace *trace, const struct oct_trace_bounds *bounds)
{
    const int most = (int)trace->n_gaps - 1, least = (int)trace->grid.least;
    struct rows gaps = {most, 0};

    for (uint32_t c = 0; bounds && c < trace->grid.n_columns; c++) {
        const struct rows ilm = rows_of(trace, c, OCT_LAYER_ILM, bounds);
        const struct rows rpe = rows_of(trace, c, OCT_LAYER_RPE, bounds);
        const struct rows own = {rpe.first - ilm.last - least, rpe.last - ilm.first - least};
        gaps = hull(&gaps, &own);
    }
    gaps.first = gaps.first > 0 ? gaps.first : 0;
    gaps.last = gaps.last < most ? gaps.last : most;
    return bounds && gaps.first <= gaps.last ? gaps : (struct rows){0, most};
}

/* The states of a column from those of the one before, whose tops are `before`. */
static void lead(struct oct_trace *trace, uint32_t column, const struct part *part,
                 const struct rows *before)
{
    int16_t *a = trace->scratch[0], *b = trace->scratch[1];
    int16_t *states = trace->states + column * trace->n_states;
    const struct part both = {hull(&part->tops, before), part->gaps};

    guard_sides(trace, &both, a);
    guard_sides(trace, &both, b);
    add_costs(trace, part, column, move_all(trace, &both, states - trace->n_states, a, b), states);
}

/* The tops of a column: those in bounds, and what lies between them and those of the column before
 * where no step leads from one to the other. */
static struct rows tops_after(const struct oct_trace *trace, const struct rows *ilm,
                              const struct rows *before)
{
    const struct rows tops = tops_of(trace, ilm);
    const int step = (int)trace->grid.step;

    return tops.first > before->last + step || before->first > tops.last + step
               ? hull(&tops, before)
               : tops;
}

void oct_trace_pair(struct oct_trace *trace, const struct oct_trace_bounds *bounds)
{
    struct part part = {.gaps = gaps_of(trace, bounds)};
    struct rows before = {0, 0};

    guard(trace, trace->scratch[1]);
    for (size_t i = 0; i < trace->n_states; i++)
        trace->scratch[0][i] = 0;
    for (uint32_t c = 0; c < trace->grid.n_columns; c++) {
        int16_t *states = trace->states + c * trace->n_states;
        const struct rows rows[OCT_N_LAYERS] = {rows_of(trace, c, OCT_LAYER_ILM, bounds),
                                                rows_of(trace, c, OCT_LAYER_RPE, bounds)};
        score_column(trace, c, rows);
        guard(trace, states);
        if (c == 0) {
            part.tops = tops_of(trace, &rows[OCT_LAYER_ILM]);
            add_costs(trace, &part, c, trace->scratch[0], states);
            guard(trace, trace->scratch[0]);
        } else {
            part.tops = tops_after(trace, &rows[OCT_LAYER_ILM], &before);
            lead(trace, c, &part, &before);
        }
        before = part.tops;
    }
    follow_back(trace);
}
