/* The borders between the ILM and the ellipsoid zone, coarsely: those of the RNFL, IPL/INL,
 * INL/OPL and OPL/ONL, from the light of the tissues between them.
 *
 * Cells are means of the light over `lines` A-lines and `depth` pixels, in columns that are level
 * with the ellipsoid zone. Each tissue has a level, that of a usual retina as bright as the
 * column's outer layers are. A state of a column is the row of IPL/INL, the thickness of the INL
 * and that of the OPL; it costs what its cells differ from the levels of their tissues (after Chan
 * and Vese, IEEE Trans. Image Process. 10 (2001) 266), less the step of the light at each border,
 * and more the further each thickness is from that of a retina that is so thick: in the fovea's
 * pit all lie on the ILM. From column to column each border moves at a price a row: the least
 * total of all states (min-plus, separable), read back from the last column. The border of the
 * RNFL, whose thickness is anything, is a path of its own: first down to the OPL, so that IPL/INL
 * lies below it, then to IPL/INL; the levels of the RNFL and of GCL with IPL are then those just
 * below the ILM and just above IPL/INL, where they differ so. Levels are then moved to those that
 * were found, and all is done once more. */
#include "analysis/layers/find/trace_parts.h"
#include "pipeline/base/wide.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { RNFL_GCL, IPL_INL, INL_OPL, OPL_ONL, N_BORDERS };
enum { N_TISSUES = N_BORDERS + 1 }; /* RNFL, GCL with IPL, INL, OPL, ONL */

/* The light of the tissues, over that of the RNFL: about what real eyes show. */
static const double reflects[N_TISSUES] = {0.4, 0.15, 0.05, 0.14, 0.02};

#define ROW_UM 5.0
#define COLUMN_UM 30.0
#define MOST_ROWS 90u
#define MOST_COLUMNS 160u
#define N_SMOOTH 2     /* rounds of 1, 2, 1 over neighbouring columns */
#define N_ROUNDS 2     /* with levels guessed, then measured */
#define MEASURED 0.35F /* of the way from guessed levels to measured ones */
/* What is usual, from the ILM to the ellipsoid zone: */
#define PIT_UM 115.0        /* where the inner layers begin, */
#define RIM_UM 210.0        /* where all are as thick as anywhere, */
#define GCIPL_UM 30.0       /* what of GCL and IPL is measured, */
#define LEAST_GCIPL_UM 10.0 /* of both, but in the pit, */
#define INL_UM 38.0
#define OPL_UM 27.0
#define ONL_UM 75.0      /* with the inner segments, */
#define ONL_MORE_UM 55.0 /* and more of it in the pit; */
#define SPREAD_UM 13.0   /* of INL and OPL, and */
#define ONL_SPREAD_UM 25.0
#define MOST_INL_UM 70.0
#define MOST_OPL_UM 60.0
#define MOST_INL 20 /* rows */
#define MOST_OPL 15 /* so that all thicknesses are added at once */
/* Costs. */
#define PRICE 0.3F /* of a row of ROW_UM between columns of COLUMN_UM */
#define MAX_SLOPE 0.6
#define MOST_STEPS 4u
#define WEIGHT 1.5F       /* of a squared neper over ROW_UM */
#define MOST_MISFIT 0.6F  /* squared nepers: what is far from all levels says nothing */
#define SIDE_UM 14.0      /* of a border, whose light is compared */
#define LEAST_WEIGHT 0.1F /* of a column in a shadow */
/* The border of the RNFL. */
#define FIBRE_UM 25.0     /* to each side, that is compared */
#define FIBRE_LEVELS 0.6F /* shares of both costs */
#define FIBRE_STEP 1.5F
#define FIBRE_TOP_UM 10.0 /* below the ILM, where fibres are measured, and */
#define FIBRE_LOW_UM 30.0 /* above IPL/INL, what lies below them */
#define FIBRE_CLEAR 0.2F  /* least difference of both, nepers */
#define FIBRE_THIN 0.6F   /* most of that difference that is left halfway */
#define FIBRE_REACH 4     /* rows from column to column */
#define ABOVE_ONL 6       /* rows that IPL/INL and INL/OPL need beneath it */
#define BELOW_FIBRES 2
/* Levels. */
#define LEVEL_UM 400.0 /* sigma, along the columns, */
#define PARTS_UM 150.0 /* and of what is measured of the fibres and below them */
#define FAR_UM 120.0   /* of the vitreous above the ILM, and */
#define NEAR_UM 15.0
#define N_GAINS 48
#define LEAST_GAIN 0.02
#define GAIN_STEP 1.3
#define OUT_OF_BOUNDS 20.0F /* cost of a border in a column */
#define NEVER 1e9F
/* Of states, whose costs are whole numbers, so that many are added at once: */
#define UNITS 256.0F   /* of a cost of 1 */
#define NO_STATE 24929 /* 0x6161, the total of a state that cannot be; the greatest */
#define MOST_LEAD 7600 /* total that leads to one, and */
#define MOST_COST 7000 /* cost of a border or a thickness */
#define MOST_PRICE 4000
#define GUARD 2u /* so that MOST_STEPS lead from no state around to another */

static void forget(uint16_t *totals, size_t n)
{
    memset(totals, NO_STATE & 0xff, n * sizeof(*totals));
}

/* A cost in whole numbers. */
static uint16_t units_of(float cost, uint16_t most)
{
    const float x = cost * UNITS + 0.5F;
    return x < (float)most ? (uint16_t)x : most;
}

void oct_trace_inner_init(struct oct_trace *trace)
{
    const struct oct_trace_params *p = &trace->setup.params;
    struct oct_trace_inner *f = &trace->inner;
    const uint32_t m = trace->setup.n_lines;

    f->depth = oct_trace_rounded(ROW_UM / p->depth_um, 1, 64);
    while (p->most_um / (f->depth * p->depth_um) > MOST_ROWS)
        f->depth++;
    f->lines =
        oct_trace_rounded(COLUMN_UM / p->line_um, (m + MOST_COLUMNS - 1) / MOST_COLUMNS, m / 8);
    f->n_columns = (m + f->lines - 1) / f->lines;
    const double row_um = f->depth * p->depth_um;
    f->n_rows = oct_trace_rounded(p->most_um / row_um, 4, MOST_ROWS);
    f->most_inl = oct_trace_rounded(MOST_INL_UM / row_um, 1, MOST_INL);
    f->most_opl = oct_trace_rounded(MOST_OPL_UM / row_um, 1, MOST_OPL);
    f->steps = oct_trace_rounded(MAX_SLOPE * p->line_um * f->lines / row_um, 1, MOST_STEPS);
    f->fibre_price =
        PRICE * (float)(row_um / ROW_UM * fmin(COLUMN_UM / (p->line_um * f->lines), 4));
    f->price = units_of(f->fibre_price, MOST_PRICE);
    f->n_nodes = (size_t)(f->n_rows + 1 + 2 * MOST_STEPS) * (f->most_inl + 1 + 2 * GUARD) *
                 (f->most_opl + 1 + 2 * GUARD);
    f->cells = oct_trace_array(trace, (size_t)f->n_columns * f->n_rows, sizeof(float));
    f->costs = oct_trace_array(trace, N_BORDERS * ((size_t)f->n_rows + 1), sizeof(float));
    f->least = oct_trace_array(trace, f->n_columns, sizeof(uint16_t));
    f->levels = oct_trace_array(trace, (size_t)N_TISSUES * f->n_columns, sizeof(float));
    f->known = oct_trace_array(trace, N_GAINS * N_TISSUES, sizeof(float));
    for (int i = 0; f->known && i < N_GAINS * N_TISSUES; i++)
        f->known[i] =
            (float)log1p(LEAST_GAIN * pow(GAIN_STEP, i / N_TISSUES) * reflects[i % N_TISSUES]);
    f->weights = oct_trace_array(trace, f->n_columns, sizeof(float));
    f->gains = oct_trace_array(trace, f->n_columns, sizeof(float));
    for (int i = 0; i < 3; i++)
        f->light[i] = oct_trace_array(trace, f->n_columns, sizeof(float));
    f->bounds = oct_trace_array(trace, N_BORDERS * (size_t)f->n_columns, sizeof(*f->bounds));
    f->ilm = oct_trace_array(trace, f->n_columns, sizeof(int));
    f->base = oct_trace_array(trace, f->n_columns, sizeof(int));
    f->units =
        oct_trace_array(trace, N_BORDERS * ((size_t)f->n_rows + 1 + MOST_OPL), sizeof(uint16_t));
    f->totals = oct_trace_array(trace, f->n_columns * f->n_nodes, sizeof(uint16_t));
    for (int i = 0; i < 2; i++)
        f->moved[i] = oct_trace_array(trace, f->n_nodes, sizeof(uint16_t));
    if (!trace->lacks_memory)
        forget(f->totals, f->n_columns * f->n_nodes); /* guards stay as they are */
    f->fibres = oct_trace_array(trace, f->n_columns * ((size_t)f->n_rows + 1), sizeof(float));
    f->scratch = oct_trace_array(trace, f->n_columns + (size_t)f->n_rows * f->depth, sizeof(float));
    f->rows = oct_trace_array(trace, N_BORDERS * (size_t)f->n_columns, sizeof(uint16_t));
}

/* ---- cells ---- */

/* The mean of a path over the A-lines of a column. */
static float path_at(const struct oct_trace *trace, const float *path, uint32_t column,
                     uint32_t *first, uint32_t *end)
{
    float sum = 0;

    *first = column * trace->inner.lines;
    *end = *first + trace->inner.lines;
    *end = *end < trace->setup.n_lines ? *end : trace->setup.n_lines;
    for (uint32_t j = *first; j < *end; j++)
        sum += path[j];
    return sum / (float)(*end - *first);
}

/* Rows above the ellipsoid zone; those above the ILM are dark. */
static void fill_column(struct oct_trace *trace, uint32_t c)
{
    struct oct_trace_inner *f = &trace->inner;
    float *cells = f->cells + (size_t)c * f->n_rows;
    const int height = (int)(f->n_rows * f->depth);
    uint32_t first, end, n = 0;
    const float zone = path_at(trace, trace->path[OCT_LAYER_IS_OS], c, &first, &end);
    const float ilm = path_at(trace, trace->path[OCT_LAYER_ILM], c, &first, &end);

    f->base[c] = (int)lroundf(zone) - height;
    f->ilm[c] = (int)lroundf((ilm + 0.5F - (float)f->base[c]) / (float)f->depth);
    f->ilm[c] = f->ilm[c] < 0 ? 0 : f->ilm[c] > (int)f->n_rows ? (int)f->n_rows : f->ilm[c];
    memset(cells, 0, f->n_rows * sizeof(*cells));
    for (uint32_t j = first; j < end; j++) {
        if (!oct_trace_has_line(trace, j))
            continue;
        const int base = (int)lroundf(trace->path[OCT_LAYER_IS_OS][j]) - height;
        const float *light = f->scratch;
        n++;
        oct_trace_copy_light(trace, j, base, height, f->scratch);
        for (uint32_t i = 0; i < f->n_rows; i++) {
            float sum = cells[i];
            for (uint32_t k = 0; k < f->depth; k++)
                sum += *light++;
            cells[i] = sum;
        }
    }
    for (uint32_t i = 0; i < f->n_rows; i++)
        cells[i] = n ? cells[i] / (float)(n * f->depth) : 0;
}

/* Each column with its neighbours. */
static void smooth_columns(struct oct_trace_inner *f)
{
    const size_t n = f->n_rows;

    for (int round = 0; round < N_SMOOTH; round++) {
        float *before = f->scratch; /* of the column before, as it was */
        memcpy(before, f->cells, n * sizeof(float));
        for (uint32_t c = 0; c < f->n_columns; c++) {
            float *own = f->cells + c * n, *next = c + 1 < f->n_columns ? own + n : own;
            for (size_t i = 0; i < n; i++) {
                const float was = own[i];
                own[i] = 0.25F * before[i] + 0.5F * was + 0.25F * next[i];
                before[i] = was;
            }
        }
    }
}

/* ---- bounds ---- */

/* The rows that some A-line of the column leaves a border; all where bounds leave none. */
static struct oct_trace_range rows_in(const struct oct_trace *trace, uint32_t c, int border,
                                      const struct oct_trace_bounds *bounds)
{
    const struct oct_trace_inner *f = &trace->inner;
    const float *least = bounds ? bounds->least[OCT_LAYER_RNFL_GCL + border] : NULL;
    const float *most = bounds ? bounds->most[OCT_LAYER_RNFL_GCL + border] : NULL;
    const uint32_t first = c * f->lines;
    const float height = (float)(f->n_rows * f->depth), all = (float)f->n_rows;
    float low = INFINITY, high = -INFINITY;

    for (uint32_t j = first; j < first + f->lines && j < trace->setup.n_lines; j++) {
        const float base = trace->path[OCT_LAYER_IS_OS][j] - height - 0.5F;
        const float a = least ? (least[j] - base) / (float)f->depth : NAN;
        const float b = most ? (most[j] - base) / (float)f->depth : NAN;
        low = fminf(low, isnan(a) ? 0 : floorf(a));
        high = fmaxf(high, isnan(b) ? all : ceilf(b));
    }
    return low <= high && low <= all && high >= 0 ? (struct oct_trace_range){(int)low, (int)high}
                                                  : (struct oct_trace_range){0, (int)f->n_rows};
}

static float out_of_bounds(const struct oct_trace_inner *f, uint32_t c, int border, int row)
{
    const struct oct_trace_range *rows = &f->bounds[(size_t)border * f->n_columns + c];
    return row < rows->first || row > rows->last ? OUT_OF_BOUNDS : 0;
}

/* ---- levels ---- */

/* The mean light of the vitreous, in the picture above the ILM. */
static float vitreous_level(const struct oct_trace *trace)
{
    const double um = trace->setup.params.depth_um;
    const int far = (int)lround(FAR_UM / um), near = (int)lround(NEAR_UM / um);
    double sum = 0;
    size_t n = 0;

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        const int ilm = (int)floorf(trace->path[OCT_LAYER_ILM][j]);
        for (int d = ilm > far ? ilm - far : 0; d < ilm - near && oct_trace_has_line(trace, j);
             d++) {
            sum += (double)oct_trace_light_at(trace, j, d);
            n++;
        }
    }
    return n ? (float)(sum / (double)n) : trace->dark;
}

/* What a thickness costs that is not the usual one. */
static float thickness_cost(double rows, double row_um, double usual_um, double spread_um)
{
    const double z = (rows * row_um - usual_um) / spread_um;
    return (float)fmin(0.3 * z * z, 3);
}

/* From 0 in the fovea's pit to 1 where all layers are as thick as usual. */
static double rim_share(const struct oct_trace_inner *f, uint32_t c, double row_um)
{
    const double um = ((int)f->n_rows - f->ilm[c]) * row_um;
    return fmin(fmax((um - PIT_UM) / (RIM_UM - PIT_UM), 0), 1);
}

/* Of the outer layers of a column, as thick as usual: how much each is of what is measured, whose
 * rows are returned. */
static uint32_t outer_shares(const struct oct_trace_inner *f, uint32_t c, double row_um,
                             float share[N_TISSUES])
{
    const double rim = rim_share(f, c, row_um);
    const double thick[N_TISSUES] = {0, GCIPL_UM * rim, INL_UM * rim, OPL_UM * rim,
                                     ONL_UM + (1 - rim) * ONL_MORE_UM};
    const double room = ((int)f->n_rows - f->ilm[c]) * row_um;
    double sum = 0;

    for (int k = N_TISSUES - 1; k >= 0; k--) {
        share[k] = (float)fmin(thick[k], fmax(room - sum, 0));
        sum += (double)share[k];
    }
    for (int k = 0; k < N_TISSUES; k++)
        share[k] = sum > 0 ? share[k] / (float)sum : 0;
    return oct_trace_rounded(sum / row_um, 1, f->n_rows);
}

/* The mean of n cells, of which none counts as brighter than a level. */
static float capped_mean(const float *cells, uint32_t n, float most)
{
    float sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += cells[i] < most ? cells[i] : most;
    return sum / (float)n;
}

/* The highest place among `known` levels at which the shares have the mean of the cells. Where the
 * layers are thinner than usual some of these cells are fibres: none counts as brighter than what
 * lies below fibres. */
static float gain_of(float known[N_GAINS][N_TISSUES], const float share[N_TISSUES],
                     const float *cells, uint32_t n)
{
    float above = 0;

    for (int g = N_GAINS - 1; g >= 0; g--) {
        float more = -capped_mean(cells, n, known[g][1]);
        for (int k = 0; k < N_TISSUES; k++)
            more += share[k] * known[g][k];
        if (more < 0)
            return g < N_GAINS - 1 ? (float)g + more / (more - above) : N_GAINS - 1;
        above = more;
    }
    return 0;
}

/* The levels of the tissues in each column: the usual ones that have the mean of the outer layers
 * about it, so that neither shadows nor the beam's angle make one tissue of another. */
static void guess_levels(struct oct_trace *trace)
{
    struct oct_trace_inner *f = &trace->inner;
    const double row_um = f->depth * trace->setup.params.depth_um;
    const double line_um = trace->setup.params.line_um * f->lines;
    float known[N_GAINS][N_TISSUES];

    f->vitreous = vitreous_level(trace);
    for (int g = 0; g < N_GAINS; g++)
        for (int k = 0; k < N_TISSUES; k++)
            known[g][k] = f->vitreous + f->known[g * N_TISSUES + k];
    for (uint32_t c = 0; c < f->n_columns; c++) {
        const float *cells = f->cells + (size_t)c * f->n_rows;
        float share[N_TISSUES];
        const uint32_t n = outer_shares(f, c, row_um, share);
        f->gains[c] = gain_of(known, share, cells + f->n_rows - n, n);
    }
    oct_trace_smooth(f->gains, f->scratch, f->n_columns, fmax(LEVEL_UM / line_um, 0.7));
    for (uint32_t c = 0; c < f->n_columns; c++) {
        const float at = fminf(fmaxf(f->scratch[c], 0), N_GAINS - 1.01F);
        const int g = (int)at;
        for (int k = 0; k < N_TISSUES; k++)
            f->levels[c * N_TISSUES + (size_t)k] =
                known[g][k] + (at - (float)g) * (known[g + 1][k] - known[g][k]);
    }
}

/* What each column weighs: less where a vessel shades it. */
static void weigh_columns(struct oct_trace *trace)
{
    struct oct_trace_inner *f = &trace->inner;
    double sum = 0;

    for (uint32_t c = 0; c < f->n_columns; c++) {
        const float *cells = f->cells + (size_t)c * f->n_rows;
        const uint32_t first = (uint32_t)f->ilm[c];
        float total = 0;
        for (uint32_t i = first; i < f->n_rows; i++)
            total += cells[i] - f->vitreous;
        f->weights[c] = total / (float)(f->n_rows - first + 1);
        sum += (double)f->weights[c];
    }
    const float usual = (float)(sum / f->n_columns);
    const float weight = WEIGHT * (float)(f->depth * trace->setup.params.depth_um / ROW_UM);
    for (uint32_t c = 0; c < f->n_columns; c++) {
        float share = usual > 0 ? f->weights[c] / usual : 1;
        share = share < LEAST_WEIGHT ? LEAST_WEIGHT : share > 1 ? 1 : share;
        f->weights[c] = weight * share * share;
    }
}

/* Moves the levels to those of the tissues as they were found. */
static void measure_levels(struct oct_trace_inner *f)
{
    double sum[N_TISSUES] = {0};
    size_t n[N_TISSUES] = {0};

    for (uint32_t c = 0; c < f->n_columns; c++) {
        int tissue = 0;
        for (int i = f->ilm[c]; i < (int)f->n_rows; i++) {
            while (tissue < N_BORDERS && i >= (int)f->rows[(size_t)tissue * f->n_columns + c])
                tissue++;
            sum[tissue] += (double)(f->cells[(size_t)c * f->n_rows + (size_t)i] -
                                    f->levels[c * N_TISSUES + (size_t)tissue]);
            n[tissue]++;
        }
    }
    for (int k = 0; k < N_TISSUES; k++)
        for (uint32_t c = 0; n[k] >= f->n_columns / 4 && c < f->n_columns; c++)
            f->levels[c * N_TISSUES + (size_t)k] += MEASURED * (float)(sum[k] / (double)n[k]);
}

/* ---- costs ---- */

/* Of a cell, as a tissue of a level; what is far from all levels says nothing. */
static float misfit(float cell, float level)
{
    const float d = cell - level;
    return d * d < MOST_MISFIT ? d * d : MOST_MISFIT;
}

/* The mean of the rows from first to before end, of those between the ILM and the zone. */
static float mean_rows(const float *sums, int first, int end, int ilm, int n)
{
    first = first < ilm ? ilm : first;
    end = end > n ? n : end;
    return end > first ? (sums[end] - sums[first]) / (float)(end - first) : 0;
}

/* By how much the light falls with depth at a row. */
static float fall_at(const float *sums, int i, int side, int ilm, int n)
{
    return i <= ilm || i >= n
               ? 0
               : mean_rows(sums, i - side, i, ilm, n) - mean_rows(sums, i, i + side, ilm, n);
}

/* What a cell costs as the tissue above a border, less what it costs as that below. */
static float excess(const struct oct_trace_inner *f, uint32_t c, int border, float cell)
{
    const float *levels = f->levels + (size_t)c * N_TISSUES + border;
    return f->weights[c] * (misfit(cell, levels[0]) - misfit(cell, levels[1]));
}

static void sum_up(const struct oct_trace_inner *f, uint32_t c, float sums[MOST_ROWS + 1])
{
    sums[0] = 0;
    for (uint32_t i = 0; i < f->n_rows; i++)
        sums[i + 1] = sums[i] + f->cells[(size_t)c * f->n_rows + i];
}

/* Of each border above each row: what the rows above cost as the tissue above it, less what they
 * would cost as the tissue below it. IPL/INL has the best border of the RNFL above it, with the
 * least thickness of GCL and IPL between them. */
static void score_column(struct oct_trace *trace, uint32_t c)
{
    static const float signs[N_BORDERS] = {0, 1, -1, 1}; /* of the fall at the border */
    struct oct_trace_inner *f = &trace->inner;
    const double row_um = f->depth * trace->setup.params.depth_um;
    const double rim = rim_share(f, c, row_um), usual_onl = ONL_UM + (1 - rim) * ONL_MORE_UM;
    const int n = (int)f->n_rows, ilm = f->ilm[c], side = (int)fmax(1, SIDE_UM / row_um + 0.5);
    float sums[N_BORDERS] = {0}, least = 0, light[MOST_ROWS + 1], fibres[MOST_ROWS + 1];
    const int thin = (int)(LEAST_GCIPL_UM * rim / row_um + 0.5);

    sum_up(f, c, light);
    for (int i = 0; i <= n; i++) {
        float *cost = f->costs + i;
        const float fall = fall_at(light, i, side, ilm, n);
        for (int k = 0; k < N_BORDERS; k++)
            cost[(size_t)k * (f->n_rows + 1)] =
                i < ilm ? NEVER : sums[k] - signs[k] * fall + out_of_bounds(f, c, k, i);
        fibres[i] = sums[RNFL_GCL];
        least = i - thin >= ilm ? oct_trace_lesser(fibres[i - thin], least) : least;
        cost[(size_t)IPL_INL * (f->n_rows + 1)] += least;
        cost[(size_t)OPL_ONL * (f->n_rows + 1)] +=
            thickness_cost(n - i, row_um, usual_onl, ONL_SPREAD_UM);
        for (int k = 0; k < N_BORDERS && i >= ilm && i < n; k++)
            sums[k] += excess(f, c, k, f->cells[(size_t)c * f->n_rows + (size_t)i]);
    }
}

/* ---- states ---- */

struct states {
    /* From a state to that where a border lies a row deeper; the RNFL's is in none. */
    size_t away[N_BORDERS];
    size_t row, inl;    /* strides */
    size_t first, last; /* the states that are looked at, and before which */
};

static struct states states_of(const struct oct_trace_inner *f)
{
    struct states s = {.inl = f->most_opl + 1 + 2 * GUARD};
    s.row = s.inl * (f->most_inl + 1 + 2 * GUARD);
    s.away[IPL_INL] = s.row - s.inl;
    s.away[INL_OPL] = s.inl - 1;
    s.away[OPL_ONL] = 1;
    s.first = ((size_t)f->first + MOST_STEPS) * s.row;
    s.last = ((size_t)f->n_rows + 1 + MOST_STEPS) * s.row;
    return s;
}

static size_t state_at(const struct states *s, int row, int inl, int opl)
{
    return ((size_t)row + MOST_STEPS) * s->row + ((size_t)inl + GUARD) * s->inl + (size_t)opl +
           GUARD;
}

/* to = the least of from up to `steps` times `away` on either side, at a price a step */
static inline __attribute__((always_inline)) void move_by(const uint16_t *restrict from,
                                                          uint16_t *restrict to, size_t n,
                                                          size_t away, uint16_t price, size_t steps)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t *at = from + i;
        uint16_t best = NO_STATE;
        for (size_t k = steps; k > 0; k--) {
            const uint16_t up = *(at - k * away), down = at[k * away];
            best = best < up ? best : up;
            best = (uint16_t)((best < down ? best : down) + price);
        }
        to[i] = best < *at ? best : *at;
    }
}

OCT_WIDE static void move_border(const uint16_t *from, uint16_t *to, size_t n, size_t away,
                                 uint16_t price, uint32_t steps)
{
    switch (steps) {
    case 1:
        move_by(from, to, n, away, price, 1);
        break;
    case 2:
        move_by(from, to, n, away, price, 2);
        break;
    case 3:
        move_by(from, to, n, away, price, 3);
        break;
    default:
        move_by(from, to, n, away, price, MOST_STEPS);
        break;
    }
}

OCT_WIDE static uint16_t least_of(const uint16_t *totals, size_t n)
{
    uint16_t least = NO_STATE;

    for (size_t i = 0; i < n; i++)
        least = totals[i] < least ? totals[i] : least;
    return least;
}

/* The costs of a column in whole numbers, above the least of each; of what is no state NO_STATE. */
struct units {
    const uint16_t *border[N_BORDERS];             /* of rows, and MOST_OPL below the last */
    uint16_t inl[MOST_INL + 1], opl[MOST_OPL + 1]; /* of a thickness in rows */
    uint16_t least;                                /* total that leads to a state */
};

static void fill_units(struct oct_trace *trace, uint32_t c, struct units *units)
{
    struct oct_trace_inner *f = &trace->inner;
    const double row_um = f->depth * trace->setup.params.depth_um;
    const double share = rim_share(f, c, row_um);
    const size_t n = f->n_rows + 1 + MOST_OPL;

    forget(f->units, N_BORDERS * n);
    forget(units->opl, MOST_OPL + 1);
    for (int k = IPL_INL; k < N_BORDERS; k++) {
        const float *cost = f->costs + (size_t)k * (f->n_rows + 1);
        uint16_t *to = f->units + (size_t)k * n;
        float least = INFINITY;
        for (int i = f->ilm[c]; i <= (int)f->n_rows; i++)
            least = oct_trace_lesser(cost[i], least);
        for (int i = f->ilm[c]; i <= (int)f->n_rows; i++)
            to[i] = units_of(cost[i] - least, MOST_COST);
        units->border[k] = to;
    }
    for (uint32_t i = 0; i <= f->most_inl; i++)
        units->inl[i] = units_of(thickness_cost(i, row_um, share * INL_UM, SPREAD_UM), MOST_COST);
    for (uint32_t i = 0; i <= f->most_opl; i++)
        units->opl[i] = units_of(thickness_cost(i, row_um, share * OPL_UM, SPREAD_UM), MOST_COST);
}

/* to = from - least + all costs, as far as 16 bits hold them, of the states of a row; those of
 * thicker OPLs, as many as are added at once, are none. */
OCT_WIDE static void add_row(const struct oct_trace_inner *f, const struct units *units, int a,
                             const uint16_t *restrict from, uint16_t *restrict to)
{
    const struct states s = states_of(f);
    int t = 0;

    for (; t <= (int)f->most_inl && a + t <= (int)f->n_rows; t++) {
        const int border = units->border[IPL_INL][a] + units->border[INL_OPL][a + t];
        const uint16_t own = (uint16_t)((border < MOST_COST ? border : MOST_COST) + units->inl[t]);
        const size_t at = ((size_t)t + GUARD) * s.inl + GUARD;
        const uint16_t *restrict in = from + at, *restrict opl = units->opl;
        const uint16_t *restrict last = units->border[OPL_ONL] + a + t;
        uint16_t *restrict out = to + at;
        for (int u = 0; u <= MOST_OPL; u++) {
            uint16_t x = (uint16_t)(in[u] - units->least);
            x = (uint16_t)((x < MOST_LEAD ? x : MOST_LEAD) + own + last[u] + opl[u]);
            out[u] = x < NO_STATE ? x : NO_STATE;
        }
    }
    forget(to + ((size_t)t + GUARD) * s.inl, (f->most_inl + 1 - (size_t)t) * s.inl);
}

static void add_column(struct oct_trace *trace, uint32_t c, const uint16_t *from, uint16_t *to)
{
    const struct oct_trace_inner *f = &trace->inner;
    const struct states s = states_of(f);
    struct units units = {.least = least_of(from + s.first, s.last - s.first)};

    if (c > 0)
        f->least[c - 1] = units.least; /* moves lead to no less */
    fill_units(trace, c, &units);
    const int fibres = f->rows[c] > f->ilm[c] + 1 ? f->rows[c] + BELOW_FIBRES : f->ilm[c];
    forget(to + s.first - MOST_STEPS * s.row,
           (size_t)(fibres - f->first + (int)MOST_STEPS) * s.row);
    forget(to + s.last, MOST_STEPS * s.row);
    for (int a = fibres; a <= (int)f->n_rows; a++) {
        const size_t row = ((size_t)a + MOST_STEPS) * s.row;
        add_row(f, &units, a, from + row, to + row);
    }
}

/* From the borders of one column to those of the column before that lead to them. least: of its
 * totals. */
static void step_back(const struct oct_trace_inner *f, const uint16_t *totals, int least, int at[3])
{
    const struct states s = states_of(f);
    const int own[3] = {at[0], at[1], at[2]}, steps = (int)f->steps, price = f->price;
    /* The same borders lead there too, at no price. */
    int best = totals[state_at(&s, own[0], own[1] - own[0], own[2] - own[1])] + 1;

    for (int da = -steps; da <= steps; da++)
        for (int db = -steps; db <= steps; db++) {
            const int a = own[0] + da, b = own[1] + db, side = price * (abs(da) + abs(db));
            if (a < f->first || a > (int)f->n_rows || b < a || b > a + (int)f->most_inl ||
                least + side >= best)
                continue;
            const uint16_t *line = totals + state_at(&s, a, b - a, 0);
            for (int d = own[2] - steps; d <= own[2] + steps; d++) {
                if (d < b || d > b + (int)f->most_opl)
                    continue;
                const int x = line[d - b] + side + price * abs(d - own[2]);
                if (x < best) {
                    best = x;
                    at[0] = a;
                    at[1] = b;
                    at[2] = d;
                }
            }
        }
}

static void follow_back(struct oct_trace_inner *f)
{
    const struct states s = states_of(f);
    const uint16_t *totals = f->totals + (size_t)(f->n_columns - 1) * f->n_nodes;
    const uint16_t least = least_of(totals + s.first, s.last - s.first);
    size_t best = state_at(&s, f->first, 0, 0);

    while (totals[best] != least)
        best++;
    int at[3] = {(int)(best / s.row) - (int)MOST_STEPS, 0, 0};
    at[1] = at[0] + (int)(best % s.row / s.inl) - (int)GUARD;
    at[2] = at[1] + (int)(best % s.inl) - (int)GUARD;
    for (uint32_t c = f->n_columns; c-- > 0;) {
        for (int k = 0; k < 3; k++)
            f->rows[(size_t)(IPL_INL + k) * f->n_columns + c] = (uint16_t)at[k];
        if (c > 0)
            step_back(f, f->totals + (size_t)(c - 1) * f->n_nodes, f->least[c - 1], at);
    }
}

/* ---- curves ---- */

/* A border of the columns as a curve over the A-lines. */
static void curve_of(struct oct_trace *trace, int border, float *path)
{
    const struct oct_trace_inner *f = &trace->inner;
    const uint16_t *rows = f->rows + (size_t)border * f->n_columns;
    const float half = 0.5F * (float)(f->lines - 1), height = (float)(f->n_rows * f->depth);

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        float u = ((float)j - half) / (float)f->lines;
        u = u < 0 ? 0 : u > (float)(f->n_columns - 1) ? (float)(f->n_columns - 1) : u;
        uint32_t c = (uint32_t)u, next = c + 1 < f->n_columns ? c + 1 : c;
        float row = (float)rows[c] + (u - (float)c) * ((float)rows[next] - (float)rows[c]);
        trace->line[j] = row * (float)f->depth - height - 0.5F;
    }
    oct_trace_smooth(trace->line, path, trace->setup.n_lines, fmax(0.5 * f->lines, 0.7));
    for (uint32_t j = 0; j < trace->setup.n_lines; j++)
        path[j] += trace->path[OCT_LAYER_IS_OS][j];
}

/* IPL/INL, INL/OPL and OPL/ONL at the levels. */
static void find_states(struct oct_trace *trace)
{
    struct oct_trace_inner *f = &trace->inner;

    f->first = (int)f->n_rows;
    for (uint32_t c = 0; c < f->n_columns; c++)
        f->first = f->ilm[c] < f->first ? f->ilm[c] : f->first;
    const struct states s = states_of(f);
    const size_t n = s.last - s.first;
    memset(f->moved[0], 0, f->n_nodes * sizeof(uint16_t));
    for (uint32_t c = 0; c < f->n_columns; c++) {
        uint16_t *totals = f->totals + (size_t)c * f->n_nodes;
        const uint16_t *from = f->moved[0];
        for (int k = c > 0 ? IPL_INL : N_BORDERS; k < N_BORDERS; k++) {
            from = k == IPL_INL ? totals - f->n_nodes : from;
            uint16_t *to = f->moved[k % 2];
            forget(to + s.first - MOST_STEPS * s.inl, MOST_STEPS * s.inl);
            forget(to + s.last, MOST_STEPS * s.inl);
            move_border(from + s.first, to + s.first, n, s.away[k], f->price, f->steps);
            from = to;
        }
        score_column(trace, c);
        add_column(trace, c, from, totals);
    }
    follow_back(f);
}

/* ---- the border of the RNFL ---- */

/* How much brighter the fibres above a row are than what lies below, the more the longer both
 * are. */
static float fibre_step(const float *sums, int i, int side, int ilm, int last, int n)
{
    const int first = i - side > ilm ? i - side : ilm, end = i + side < last ? i + side : last;
    const float above = (float)(i - first), under = (float)(end - i);

    if (i <= ilm || end <= i)
        return 0;
    return (mean_rows(sums, first, i, ilm, n) - mean_rows(sums, i, end, ilm, n)) *
           sqrtf(above * under / (above + under));
}

/* The least total that leads from the column before to each row; steps towards the ILM or away from
 * it have a price. */
OCT_WIDE static void lead_fibres(const struct oct_trace_inner *f, uint32_t c, float *restrict now)
{
    const int n = (int)f->n_rows + 1, shift = c > 0 ? f->ilm[c] - f->ilm[c - 1] : 0;

    for (int i = 0; i < n; i++)
        now[i] = c > 0 ? NEVER : 0;
    for (int d = -FIBRE_REACH; c > 0 && d <= FIBRE_REACH; d++) {
        const float price = f->fibre_price * (float)abs(d);
        const int away = d - shift, first = away < 0 ? -away : 0, end = away > 0 ? n - away : n;
        const float *restrict before = f->fibres + (size_t)(c - 1) * (size_t)n;
        for (int i = first; i < end; i++)
            now[i] = oct_trace_lesser(before[i + away] + price, now[i]);
    }
}

static void add_fibres(const struct oct_trace_inner *f, uint32_t c, int last, int side, float *now)
{
    const int n = (int)f->n_rows, ilm = f->ilm[c];
    float sum = 0, light[MOST_ROWS + 1];

    sum_up(f, c, light);
    last = last > ilm ? last : ilm;
    for (int i = 0; i <= n; i++) {
        if (i < ilm || i > last) {
            now[i] = NEVER;
            continue;
        }
        now[i] += FIBRE_LEVELS * sum + out_of_bounds(f, c, RNFL_GCL, i) -
                  FIBRE_STEP * f->weights[c] * fibre_step(light, i, side, ilm, last, n);
        if (i < n)
            sum += excess(f, c, RNFL_GCL, f->cells[(size_t)c * f->n_rows + (size_t)i]);
    }
}

static void follow_fibres(struct oct_trace_inner *f)
{
    const int n = (int)f->n_rows + 1;
    int at = 0;

    for (uint32_t c = f->n_columns; c-- > 0;) {
        const float *now = f->fibres + (size_t)c * (size_t)n;
        const bool is_last = c + 1 == f->n_columns;
        const int was = is_last ? 0 : at - (f->ilm[c + 1] - f->ilm[c]);
        const int first = is_last ? 0 : was - FIBRE_REACH,
                  end = is_last ? n : was + FIBRE_REACH + 1;
        float best = INFINITY;
        for (int i = first > 0 ? first : 0; i < end && i < n; i++) {
            const float x = now[i] + (is_last ? 0 : f->fibre_price * (float)abs(i - was));
            if (x < best) {
                best = x;
                at = i;
            }
        }
        f->rows[c] = (uint16_t)at;
    }
}

enum { TOP, MIDDLE, LOW, N_PARTS };

/* light = that of each column just below the ILM, halfway to IPL/INL and just above it, smoothed
 * along the columns. A column without such rows has that of the one before. False: no column has
 * any. */
static bool measure_parts(struct oct_trace *trace)
{
    struct oct_trace_inner *f = &trace->inner;
    const double row_um = f->depth * trace->setup.params.depth_um;
    const double line_um = trace->setup.params.line_um * f->lines;
    const int top = (int)fmax(1, FIBRE_TOP_UM / row_um + 0.5);
    const int low = (int)fmax(1, FIBRE_LOW_UM / row_um + 0.5), n = (int)f->n_rows;
    float sums[MOST_ROWS + 1], known[N_PARTS] = {NAN, NAN, NAN};

    for (int round = 0; round < 2; round++) /* the first ones have that of the last */
        for (uint32_t c = 0; c < f->n_columns; c++) {
            const int ilm = f->ilm[c], last = f->rows[(size_t)IPL_INL * f->n_columns + c];
            const int middle = (2 * ilm + last) / 3;
            if (last > ilm) {
                sum_up(f, c, sums);
                known[TOP] = mean_rows(sums, ilm, ilm + top, ilm, n);
                known[MIDDLE] = mean_rows(sums, middle, middle + (last - ilm + 2) / 3, ilm, n);
                known[LOW] = mean_rows(sums, last - low, last, ilm, n);
            }
            for (int part = 0; part < N_PARTS; part++)
                f->light[part][c] = known[part];
        }
    for (int part = 0; part < N_PARTS; part++) {
        oct_trace_smooth(f->light[part], f->gains, f->n_columns, fmax(PARTS_UM / line_um, 0.7));
        memcpy(f->light[part], f->gains, f->n_columns * sizeof(float));
    }
    return !isnan(known[TOP]);
}

/* Where the light just below the ILM is above that just above IPL/INL, and halfway between them it
 * is about the latter, fibres are thin, and these are their level and that of what lies below them,
 * whatever is usual: fibres that are hardly brighter than that would all be taken for it, or it for
 * them. Thick fibres darken with depth, and keep the levels that they have. What is measured in the
 * first round also moves IPL/INL of the second. */
static void measure_fibres(struct oct_trace *trace)
{
    struct oct_trace_inner *f = &trace->inner;

    if (!measure_parts(trace))
        return;
    for (uint32_t c = 0; c < f->n_columns; c++) {
        const float top = f->light[TOP][c], low = f->light[LOW][c];
        if (top - low > FIBRE_CLEAR && f->light[MIDDLE][c] - low < FIBRE_THIN * (top - low)) {
            f->levels[(size_t)c * N_TISSUES] = top;
            f->levels[(size_t)c * N_TISSUES + 1] = low;
        }
    }
}

/* Above IPL/INL; at first, as far down as the OPL may reach. */
static void find_fibres(struct oct_trace *trace, bool is_last)
{
    struct oct_trace_inner *f = &trace->inner;
    const int side = (int)fmax(1, FIBRE_UM / (f->depth * trace->setup.params.depth_um) + 0.5);

    measure_fibres(trace);
    for (uint32_t c = 0; c < f->n_columns; c++) {
        float *now = f->fibres + (size_t)c * (f->n_rows + 1);
        const int last = is_last ? f->rows[(size_t)IPL_INL * f->n_columns + c]
                                 : f->rows[(size_t)OPL_ONL * f->n_columns + c] - ABOVE_ONL;
        lead_fibres(f, c, now);
        add_fibres(f, c, last, side, now);
    }
    follow_fibres(f);
}

void oct_trace_inner(struct oct_trace *trace, const struct oct_trace_bounds *bounds)
{
    struct oct_trace_inner *f = &trace->inner;

    for (uint32_t c = 0; c < f->n_columns; c++) {
        fill_column(trace, c);
        for (int k = 0; k < N_BORDERS; k++)
            f->bounds[(size_t)k * f->n_columns + c] = rows_in(trace, c, k, bounds);
    }
    smooth_columns(f);
    memset(f->rows, 0, f->n_columns * sizeof(*f->rows));
    guess_levels(trace);
    weigh_columns(trace);
    for (int round = 0; round < N_ROUNDS; round++) {
        if (round > 0)
            measure_levels(f);
        find_states(trace);
        find_fibres(trace, round + 1 == N_ROUNDS);
    }
    for (int k = 0; k < N_BORDERS; k++)
        curve_of(trace, k, trace->path[OCT_LAYER_RNFL_GCL + k]);
}
