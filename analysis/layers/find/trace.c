#include "analysis/layers/find/trace.h"

#include "analysis/layers/find/trace_parts.h"
#include "numeric/order.h"
#include "pipeline/base/wide.h"

#include <stdlib.h>
#include <string.h>

const char *const oct_layer_names[OCT_N_LAYERS] = {"ilm",     "rnfl_gcl", "ipl_inl", "inl_opl",
                                                   "opl_onl", "is_os",    "rpe"};

#define CELL_UM 8.0       /* of the coarse grid */
#define MOST_ROWS 256u    /* of the coarse grid, so that time is bounded */
#define MOST_COLUMNS 128u /* likewise, but for cells of */
#define MOST_LINES 4u     /* A-lines */
#define LEAST_SHARE 0.3   /* of the A-lines outside of a disc must have an RPE: else it is none */
#define MOST_HALF_UM 20.0
#define MOST_REACH_UM 16.0
#define SKIP_UM 30.0 /* of the picture's top say nothing: fixed pattern fills them; and */
#define SKIP_PX 8.0  /* these at least */
#define RPE_STIFFER 2.0
#define RPE_SHARE 0.67
#define LEAST_UM 1e-3 /* of a pixel */
#define MOST_DEPTH_UM 1e3
#define MOST_LINE_UM 1e4
#define LEAST_SIDE 16u
#define MOST_SIDE 16384u

void oct_trace_params_default(struct oct_trace_params *params)
{
    *params = (struct oct_trace_params){
        .depth_um = NAN,
        .line_um = NAN,
        .unit_db = NAN,
        .least_um = 100,
        .most_um = 600,
        .max_slope = 1,
        .price = 0.06,
        .gap_um = 150,
        .min_quality = OCT_TRACE_MIN_QUALITY,
    };
}

/* ---- life ---- */

static bool is_length(double um, double least, double most)
{
    return um >= least && um <= most;
}

static enum oct_err check_setup(struct oct_trace_setup *setup, struct oct_error *err)
{
    struct oct_trace_params *p = &setup->params;

    if (setup->n_lines < LEAST_SIDE || setup->depth < LEAST_SIDE || setup->n_lines > MOST_SIDE ||
        setup->depth > MOST_SIDE)
        return oct_fail(err, OCT_E_ARG,
                        "layers are found in B-scans of %u to %u A-lines and depth pixels, not of "
                        "%u x %u",
                        LEAST_SIDE, MOST_SIDE, setup->n_lines, setup->depth);
    if (isnan(p->depth_um) || p->depth_um == 0)
        p->depth_um = OCT_TRACE_DEPTH_UM;
    if (isnan(p->line_um) || p->line_um == 0)
        p->line_um = OCT_TRACE_LINE_UM;
    if (!is_length(p->depth_um, LEAST_UM, MOST_DEPTH_UM) ||
        !is_length(p->line_um, LEAST_UM, MOST_LINE_UM))
        return oct_fail(err, OCT_E_ARG,
                        "layers are found where depth pixels are %g to %g um and A-lines %g to %g "
                        "um apart, not %g and %g",
                        LEAST_UM, MOST_DEPTH_UM, LEAST_UM, MOST_LINE_UM, p->depth_um, p->line_um);
    if (!(p->least_um > 0 && p->most_um >= p->least_um && p->most_um <= 1e5))
        return oct_fail(err, OCT_E_ARG, "layers: a distance of %g to %g um", p->least_um,
                        p->most_um);
    if (!(p->max_slope > 0 && p->max_slope <= 100 && p->price >= 0 && p->price <= 100 &&
          p->gap_um >= 0 && isfinite(p->gap_um) && isfinite(p->min_quality)))
        return oct_fail(err, OCT_E_ARG,
                        "layers: a slope of %g, a price of %g, gaps of %g um, a quality of %g",
                        p->max_slope, p->price, p->gap_um, p->min_quality);
    return OCT_OK;
}

/* A slope costs the same whatever the pixels are. The RPE, which is level, pays RPE_STIFFER where
 * A-lines are close, and no less where they are not. */
static void plan_prices(struct oct_trace *trace, double row_um)
{
    const struct oct_trace_params *p = &trace->setup.params;
    struct oct_trace_grid *g = &trace->grid;
    double row = p->price * row_um / OCT_TRACE_DEPTH_UM * OCT_TRACE_UNIT;
    double share = OCT_TRACE_LINE_UM / (p->line_um * g->lines);

    g->price[OCT_TRACE_TOP] = (int16_t)oct_trace_rounded(row * share, 0, 2 * OCT_TRACE_UNIT);
    g->price[OCT_TRACE_BOTTOM] = (int16_t)oct_trace_rounded(
        row * RPE_STIFFER * fmax(share, RPE_SHARE), 0, 2 * OCT_TRACE_UNIT);
}

static void plan_grid(struct oct_trace *trace)
{
    const struct oct_trace_setup *s = &trace->setup;
    const struct oct_trace_params *p = &s->params;
    struct oct_trace_grid *g = &trace->grid;
    uint32_t most_depth = s->depth / LEAST_SIDE;

    g->depth = oct_trace_rounded(CELL_UM / p->depth_um, (s->depth + MOST_ROWS - 1) / MOST_ROWS,
                                 most_depth > 1 ? most_depth : 1);
    g->lines = oct_trace_rounded(CELL_UM / p->line_um,
                                 (s->n_lines + MOST_COLUMNS - 1) / MOST_COLUMNS, MOST_LINES);
    g->n_rows = g->depth > 0 ? s->depth / g->depth : 0;
    g->n_columns = (s->n_lines + g->lines - 1) / g->lines;
    double row_um = g->depth * p->depth_um;
    g->least = oct_trace_rounded(p->least_um / row_um, 1, g->n_rows + 1);
    g->most = oct_trace_rounded(p->most_um / row_um, g->least,
                                g->n_rows > g->least ? g->n_rows : g->least);
    g->step = oct_trace_rounded(ceil(p->max_slope * p->line_um * g->lines / row_um), 1,
                                OCT_TRACE_MOST_STEP);
    plan_prices(trace, row_um);
    g->near = oct_trace_rounded(20 / row_um, 2, g->n_rows);
    g->below = oct_trace_rounded(40 / row_um, 2, g->n_rows);
    g->far = oct_trace_rounded(120 / row_um, 3, g->n_rows);
    g->band = oct_trace_rounded(16 / row_um, 1, g->n_rows);
    g->inner = oct_trace_rounded(80 / row_um, 1, g->n_rows);
    g->complex = oct_trace_rounded(60 / row_um, 2, g->n_rows);
    g->deep = oct_trace_rounded(250 / row_um, 2, g->n_rows);
    g->beyond = oct_trace_rounded(80 / row_um, 2, g->n_rows);
    g->skip = oct_trace_rounded(ceil(fmax(SKIP_UM / p->depth_um, SKIP_PX) / g->depth), 1,
                                (g->n_rows + 7) / 8);
    g->outer = oct_trace_rounded(130 / row_um, 2, g->n_rows);
    trace->n_tops = g->least <= g->n_rows ? g->n_rows - g->least + 1 : 1;
    trace->n_gaps = g->most - g->least + 1;
    trace->stride = trace->n_gaps + OCT_TRACE_WIDE - 1 + 2 * OCT_TRACE_GUARD;
    trace->n_nodes = ((size_t)trace->n_tops + 2 * OCT_TRACE_GUARD) * trace->stride;
}

void *oct_trace_array(struct oct_trace *trace, size_t n, size_t bytes)
{
    void *p = calloc(n > 0 ? n : 1, bytes);

    trace->lacks_memory |= !p;
    trace->memory[trace->n_memory++] = p;
    return p;
}

static void allocate(struct oct_trace *t)
{
    const struct oct_trace_grid *g = &t->grid;
    const size_t m = t->setup.n_lines, width = 2 * (size_t)t->half + 1,
                 blocks = m * (g->n_rows + 1),
                 n_moved = OCT_TRACE_ROWS * (t->stride + OCT_TRACE_GUARD),
                 n_bands = (size_t)g->n_rows + g->beyond + 2 + g->deep;
    const struct {
        float **to;
        size_t n;
    } floats[] = {{&t->blocks, m * g->n_rows},
                  {&t->cells, (size_t)g->n_columns * g->n_rows},
                  {&t->sorted, blocks},
                  {&t->sums, 3 * (size_t)g->n_rows + 1},
                  {&t->bands[0], n_bands},
                  {&t->bands[1], n_bands},
                  {&t->bands[2], n_bands},
                  {&t->line, m},
                  {&t->line2, m},
                  {&t->region, m},
                  {&t->taps, t->reach},
                  {&t->line_taps, 2 * (m + OCT_TRACE_LINES) + 1},
                  {&t->window, 2 * width + 1 + 2 * (size_t)t->reach},
                  {&t->scores, m * width},
                  {&t->leads, m * width}};

    for (size_t i = 0; i < sizeof(floats) / sizeof(*floats); i++)
        *floats[i].to = oct_trace_array(t, floats[i].n, sizeof(float));
    if (t->line_taps)
        t->line_taps += m + OCT_TRACE_LINES;
    t->tap_sums = oct_trace_array(t, m, sizeof(double));
    t->costs = oct_trace_array(
        t, 2 * (size_t)g->n_columns * (g->n_rows + 1 + g->most) + OCT_TRACE_WIDE, sizeof(int16_t));
    t->totals = oct_trace_array(t, (size_t)g->n_columns * t->n_nodes, sizeof(int16_t));
    t->filled = oct_trace_array(t, g->n_columns, sizeof(*t->filled));
    t->least = oct_trace_array(t, n_moved, sizeof(int16_t));
    for (int i = 0; i < 2; i++) {
        t->scratch[i] = oct_trace_array(t, t->n_nodes, sizeof(int16_t));
        t->moved[i] = oct_trace_array(t, n_moved, sizeof(int16_t));
        t->beside[i] = oct_trace_array(t, m, sizeof(float));
        t->sides[i] = oct_trace_array(t, width + 1, sizeof(float));
        t->edges[i] = oct_trace_array(t, 2 * m * width + OCT_TRACE_PART, sizeof(float));
        t->borders[i] = oct_trace_array(t, g->n_columns, sizeof(struct oct_trace_range));
        t->pair[i] = oct_trace_array(t, g->n_columns, sizeof(uint32_t));
    }
    for (int i = 0; i < OCT_N_LAYERS; i++)
        t->path[i] = oct_trace_array(t, m, sizeof(float));
    oct_trace_light_init(t);
    oct_trace_pair_init(t);
    oct_trace_refine_init(t);
    oct_trace_inner_init(t);
}

enum oct_err oct_trace_create(struct oct_trace **out, const struct oct_trace_setup *setup,
                              struct oct_error *err)
{
    struct oct_trace_setup checked = *setup;

    *out = NULL;
    enum oct_err e = check_setup(&checked, err);
    if (e)
        return e;
    struct oct_trace *trace = calloc(1, sizeof(*trace));
    if (!trace)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the layers of a B-scan");
    trace->setup = checked;
    const struct oct_trace_params *p = &trace->setup.params;
    plan_grid(trace);
    trace->reach = oct_trace_rounded(ceil(MOST_REACH_UM / p->depth_um), 3, setup->depth / 4);
    trace->wide = oct_trace_rounded(40 / p->line_um, 5, setup->n_lines / 5);
    trace->narrow = oct_trace_rounded(8 / p->line_um, 1, setup->n_lines / 8);
    trace->half = oct_trace_rounded(ceil(fmax(1.5 * trace->grid.depth, MOST_HALF_UM / p->depth_um)),
                                    4, setup->depth);
    allocate(trace);
    if (trace->lacks_memory) {
        oct_trace_destroy(trace);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the layers of %u x %u pixels",
                        setup->n_lines, setup->depth);
    }
    *out = trace;
    return OCT_OK;
}

void oct_trace_destroy(struct oct_trace *trace)
{
    for (unsigned i = 0; trace && i < trace->n_memory; i++)
        free(trace->memory[i]);
    free(trace);
}

/* ---- run ---- */

#define N_BINS 1024u
#define FEW 2048u /* values that are not worth a histogram */
#define PART 16u  /* values at once */

struct bins {
    float least, scale; /* of values, to bins */
    uint32_t n[N_BINS];
};

/* False: the values are all alike, or no numbers. */
OCT_WIDE static bool fill_bins(const float *restrict values, size_t n, struct bins *restrict bins)
{
    float least[PART], most[PART];
    size_t i = 0;

    *bins = (struct bins){.scale = 0};
    for (unsigned k = 0; k < PART; k++)
        least[k] = most[k] = values[0];
    for (; i + PART <= n; i += PART)
        for (unsigned k = 0; k < PART; k++) {
            least[k] = oct_trace_lesser(values[i + k], least[k]);
            most[k] = oct_trace_greater(values[i + k], most[k]);
        }
    for (; i < n; i++) {
        least[0] = oct_trace_lesser(values[i], least[0]);
        most[0] = oct_trace_greater(values[i], most[0]);
    }
    for (unsigned k = 1; k < PART; k++) {
        least[0] = oct_trace_lesser(least[k], least[0]);
        most[0] = oct_trace_greater(most[k], most[0]);
    }
    bins->least = least[0];
    bins->scale = (float)(N_BINS - 1) / (most[0] - least[0]);
    if (!(bins->scale > 0 && bins->scale < 1e30F))
        return false;
    for (i = 0; i < n; i++)
        bins->n[(uint32_t)(int32_t)((values[i] - bins->least) * bins->scale) % N_BINS]++;
    return true;
}

/* The k-th smallest, from those of its bin, which are brought to the front. */
OCT_WIDE static float select_in_bin(float *values, size_t n, size_t k, const struct bins *bins)
{
    const float least = bins->least, scale = bins->scale;
    size_t before = 0, n_here = 0;
    int32_t bin = 0;

    while (before + bins->n[bin] <= k)
        before += bins->n[bin++];
    for (size_t i = 0; i < n; i += PART) {
        const size_t end = i + PART <= n ? i + PART : n;
        int32_t hits = 0; /* in few parts there are any */
        for (size_t j = i; j < end; j++)
            hits += (int32_t)((values[j] - least) * scale) % (int32_t)N_BINS == bin;
        for (size_t j = i; hits && j < end; j++) {
            const float x = values[j];
            if ((int32_t)((x - least) * scale) % (int32_t)N_BINS != bin)
                continue;
            values[j] = values[n_here];
            values[n_here++] = x;
        }
    }
    return oct_floats_select(values, n_here, k - before);
}

/* By a histogram, which needs no branches that cannot be foreseen; then in the bin. */
float oct_trace_select(float *values, size_t n, size_t k)
{
    struct bins bins;
    return n > FEW && fill_bins(values, n, &bins) ? select_in_bin(values, n, k, &bins)
                                                  : oct_floats_select(values, n, k);
}

void oct_trace_select_both(float *values, size_t n, size_t low, float *at_low, size_t high,
                           float *at_high)
{
    struct bins bins;
    const bool has_bins = n > FEW && fill_bins(values, n, &bins);
    *at_low = has_bins ? select_in_bin(values, n, low, &bins) : oct_floats_select(values, n, low);
    *at_high =
        has_bins ? select_in_bin(values, n, high, &bins) : oct_floats_select(values, n, high);
}

static uint32_t nothing(const struct oct_trace *trace, const struct oct_traced *result)
{
    for (int layer = 0; layer < OCT_N_LAYERS; layer++)
        for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
            result->position[layer][j] = NAN;
            result->quality[layer][j] = 0;
        }
    return 0;
}

static void give_paths(const struct oct_trace *trace, bool any, const struct oct_traced *result)
{
    for (int layer = 0; layer < OCT_N_LAYERS; layer++)
        for (uint32_t j = 0; result->path[layer] && j < trace->setup.n_lines; j++)
            result->path[layer][j] = any ? trace->path[layer][j] : NAN;
}

/* Forgets stretches that are shorter than a wide window: chance makes such. */
static void drop_short(const struct oct_trace *trace, float *position)
{
    uint32_t n = trace->setup.n_lines, first = 0;

    for (uint32_t j = 0; j <= n; j++) {
        if (j < n && (!isnan(position[j]) || !oct_trace_has_line(trace, j)))
            continue;
        for (uint32_t i = first; j - first < 2 * trace->wide && i < j; i++)
            position[i] = NAN;
        first = j + 1;
    }
}

/* Carries the path across gaps that are narrow enough. */
static void cross_gaps(const struct oct_trace *trace, const float *path, float *position)
{
    const struct oct_trace_params *p = &trace->setup.params;
    uint32_t n = trace->setup.n_lines, gap = (uint32_t)fmin(p->gap_um / p->line_um, n);
    uint32_t after = 0; /* the A-line behind the last that is found */
    bool any = false;

    for (uint32_t j = 0; j < n; j++) {
        if (isnan(position[j]))
            continue;
        for (uint32_t i = after; any && j - after <= gap && i < j; i++)
            position[i] = oct_trace_has_line(trace, i) ? path[i] : NAN;
        after = j + 1;
        any = true;
    }
}

/* Keeps A-lines of enough quality. */
static void mark(const struct oct_trace *trace, int layer, const struct oct_traced *result)
{
    const float *path = trace->path[layer];
    float *position = result->position[layer];

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        bool found = oct_trace_has_line(trace, j) &&
                     result->quality[layer][j] >= (float)trace->setup.params.min_quality;
        position[j] = found ? path[j] : NAN;
    }
    cross_gaps(trace, path, position);
    drop_short(trace, position);
}

uint32_t oct_trace_run(struct oct_trace *trace, const float *pixels, const uint8_t *line_valid,
                       const struct oct_trace_bounds *bounds, const struct oct_traced *result)
{
    uint32_t n_both = 0, n_came = 0, n_rpe = 0;

    trace->line_valid = line_valid;
    const bool any = trace->grid.least <= trace->grid.n_rows && oct_trace_light(trace, pixels) &&
                     oct_trace_fill_cells(trace);
    if (any) {
        oct_trace_pair(trace, bounds);
        oct_trace_pair_curves(trace);
        oct_trace_refine(trace, bounds);
        oct_trace_judge(trace, result);
    }
    give_paths(trace, any, result);
    for (int layer = 0; any && layer < OCT_N_LAYERS; layer++)
        mark(trace, layer, result);
    for (uint32_t j = 0; any && j < trace->setup.n_lines; j++) {
        const bool has_rpe = !isnan(result->position[OCT_LAYER_RPE][j]);
        n_came += oct_trace_has_line(trace, j);
        n_rpe += has_rpe;
        n_both += has_rpe && !isnan(result->position[OCT_LAYER_ILM][j]);
    }
    /* A disc counts as half of the picture at most, so that a plate is no retina. */
    const uint32_t n_other = any ? n_came - trace->n_disc : 0;
    const bool is_retina = any && n_rpe >= LEAST_SHARE * fmax(n_other, 0.5 * n_came);
    return is_retina ? n_both : nothing(trace, result);
}
