/* The RPE by the whole profile of its bands. The layer is level over some 100 um, where the path of
 * the steepest places wanders by the speckle of single A-lines. So each A-line's place becomes that
 * of a parabola through the path about it, and is then moved to where the A-lines about it fit
 * best to the mean of all A-lines: the largest sum of their correlations with that mean (a matched
 * filter), to a fraction of a pixel by a parabola. Both weigh A-lines by the same Gaussian.
 *
 * Where A-lines fit the mean better about the path as it was, the layer bends, as over a druse:
 * these form stretches of their own, with a narrow Gaussian, and do not count beside them. */
#include "analysis/layers/find/trace_parts.h"

#include <stdlib.h>
#include <string.h>

#define ABOVE_UM 24.0 /* of the profile, from the steepest place on: the bands of RPE and cones */
#define BELOW_UM 14.0 /* the choriocapillaris */
#define SHIFT_UM 7.0  /* moved by this at most, each time */
#define LEVEL_UM 85.0 /* sigma of the Gaussian along the lines, */
#define LEVEL_LINES 8.0
#define BENT_UM 12.0 /* and of a stretch that bends */
#define BENT_LINES 1.5
#define MOST_SIGMA 64.0 /* A-lines, so that time is bounded */
#define N_ROUNDS 2 /* and one more where there are bends: without them what is beside is drawn */
                   /* straight, and their feet show */
/* A bend: the A-lines about the place fit better to the path as it was, by this share of how well
 * they fit in the mean, and lie so far from it. */
#define BETTER 0.15F
#define APART_UM 2.0
#define SEEN_UM 15.0 /* on both sides, or */
#define SEEN_LINES 4
#define WIDER_UM 60.0 /* a stretch grows to where both paths meet, by this at most, or */
#define WIDER_LINES 6

/* ---- life ---- */

void oct_trace_match_init(struct oct_trace *trace)
{
    const struct oct_trace_params *p = &trace->setup.params;
    struct oct_trace_match *f = &trace->match;
    const double um[OCT_TRACE_N_BENDS] = {LEVEL_UM, BENT_UM};
    const double lines[OCT_TRACE_N_BENDS] = {LEVEL_LINES, BENT_LINES};
    size_t m = trace->setup.n_lines;

    f->above = oct_trace_rounded(ceil(ABOVE_UM / p->depth_um), 3, 96);
    f->shift = oct_trace_rounded(ceil(SHIFT_UM / p->depth_um), 2, 24);
    f->n_shifts = 2 * f->shift + 1;
    f->n_profile = f->above + oct_trace_rounded(ceil(BELOW_UM / p->depth_um), 2, 48) + 1;
    f->n_window = f->n_profile + 2 * f->shift;
    f->windows = oct_trace_array(trace, m * f->n_window, sizeof(float));
    f->mean = oct_trace_array(trace, f->n_window, sizeof(float));
    f->filters = oct_trace_array(trace, (size_t)f->n_profile * f->n_shifts, sizeof(float));
    f->fits = oct_trace_array(trace, m * f->n_shifts, sizeof(float));
    f->sums = oct_trace_array(trace, f->n_shifts, sizeof(float));
    f->moments = oct_trace_array(trace, OCT_TRACE_N_MOMENTS * m, sizeof(float));
    f->before = oct_trace_array(trace, m, sizeof(float));
    f->bends = oct_trace_array(trace, m, sizeof(float));
    for (int i = 0; i < 2; i++) {
        double sigma = fmin(fmax(um[i] / p->line_um, lines[i]), MOST_SIGMA);
        f->fit[i] = oct_trace_array(trace, m, sizeof(float));
        f->reach[i] = oct_trace_rounded(ceil(2.5 * sigma), 1, trace->setup.n_lines - 1);
        f->weights[i] = oct_trace_array(trace, (size_t)f->reach[i] + 1, sizeof(float));
        for (uint32_t k = 0; f->weights[i] && k <= f->reach[i]; k++)
            f->weights[i][k] = (float)exp(-(double)k * k / (2 * sigma * sigma));
    }
}

/* ---- the profile ---- */

/* What the A-lines show about a curve, less the dark. */
static void cut_windows(struct oct_trace *trace, const float *curve)
{
    const struct oct_trace_match *f = &trace->match;
    const int n = (int)f->n_window;

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        float start = curve[j] - (float)(f->above + f->shift), floored = floorf(start);
        float share = start - floored, *to = f->windows + (size_t)j * f->n_window;
        float here = oct_trace_pixel(trace, j, (int)floored);
        for (int k = 0; k < n; k++) {
            float next = oct_trace_pixel(trace, j, (int)floored + k + 1);
            to[k] = here - trace->dark + share * (next - here);
            here = next;
        }
    }
}

/* The mean of the A-lines that do not bend. */
static void fill_mean(struct oct_trace *trace)
{
    const struct oct_trace_match *f = &trace->match;
    float n = 0;

    memset(f->mean, 0, f->n_window * sizeof(float));
    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        if (!oct_trace_has_line(trace, j) || f->bends[j] > 0)
            continue;
        n++;
        for (uint32_t k = 0; k < f->n_window; k++)
            f->mean[k] += f->windows[(size_t)j * f->n_window + k];
    }
    for (uint32_t k = 0; n > 0 && k < f->n_window; k++)
        f->mean[k] /= n;
}

/* The mean as it is moved, of each place in turn: without its own mean, of length 1. */
static void fill_filters(struct oct_trace *trace)
{
    const struct oct_trace_match *f = &trace->match;

    for (uint32_t s = 0; s < f->n_shifts; s++) {
        const float *from = f->mean + 2 * f->shift - s;
        double mean = 0, squares = 0;
        for (uint32_t k = 0; k < f->n_profile; k++)
            mean += (double)from[k] / f->n_profile;
        for (uint32_t k = 0; k < f->n_profile; k++)
            squares += ((double)from[k] - mean) * ((double)from[k] - mean);
        double scale = squares > 0 ? 1 / sqrt(squares) : 0;
        for (uint32_t k = 0; k < f->n_profile; k++)
            f->filters[(size_t)k * f->n_shifts + s] = (float)(((double)from[k] - mean) * scale);
    }
}

/* How well each A-line fits as the mean is moved. */
static void fill_fits(struct oct_trace *trace)
{
    const struct oct_trace_match *f = &trace->match;

    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        const float *window = f->windows + (size_t)j * f->n_window + f->shift;
        float *restrict to = f->fits + (size_t)j * f->n_shifts;
        memset(to, 0, f->n_shifts * sizeof(float));
        for (uint32_t k = 0; oct_trace_has_line(trace, j) && k < f->n_profile; k++) {
            const float *filter = f->filters + (size_t)k * f->n_shifts;
            for (uint32_t s = 0; s < f->n_shifts; s++)
                to[s] += window[k] * filter[s];
        }
    }
}

/* How well each A-line fits where it is. */
static void fill_fit(struct oct_trace *trace, const float *curve, float *fit)
{
    const struct oct_trace_match *f = &trace->match;

    cut_windows(trace, curve);
    for (uint32_t j = 0; j < trace->setup.n_lines; j++) {
        const float *window = f->windows + (size_t)j * f->n_window + f->shift;
        float sum = 0;
        for (uint32_t k = 0; oct_trace_has_line(trace, j) && k < f->n_profile; k++)
            sum += window[k] * f->filters[(size_t)k * f->n_shifts + f->shift];
        fit[j] = sum;
    }
}

/* ---- along the lines ---- */

/* The moments of the weighed A-lines about each one that bends, or does not: of x, up to the fourth
 * power, then of y, up to the second; x in units of the reach. */
static void add_moments(struct oct_trace *trace, int bent, const float *path)
{
    const struct oct_trace_match *f = &trace->match;
    const int m = (int)trace->setup.n_lines, reach = (int)f->reach[bent];
    const float level = path[m / 2];

    memset(f->moments, 0, OCT_TRACE_N_MOMENTS * (size_t)m * sizeof(float));
    for (int k = -reach; k <= reach; k++) {
        const float x = (float)k / (float)reach;
        float weight = f->weights[bent][abs(k)];
        for (int power = 0; power < 5; power++, weight *= x) {
            float *restrict of_x = f->moments + (size_t)power * (size_t)m;
            float *restrict of_y = of_x + 5 * (size_t)m;
            for (int j = k < 0 ? -k : 0; j < (k < 0 ? m : m - k); j++) {
                const float here = bent ? f->bends[j + k] : 1 - f->bends[j + k];
                of_x[j] += weight * here;
                if (power < 3)
                    of_y[j] += weight * (here * (path[j + k] - level));
            }
        }
    }
}

/* The parabola's height at x = 0, a line's where a parabola is not determined or not wanted; false:
 * neither is. */
static bool fit_at(const struct oct_trace *trace, uint32_t j, bool line, double *height)
{
    double of[OCT_TRACE_N_MOMENTS];

    for (unsigned i = 0; i < OCT_TRACE_N_MOMENTS; i++)
        of[i] = (double)trace->match.moments[(size_t)i * trace->setup.n_lines + j];
    double n = of[0], x = of[1], xx = of[2], x3 = of[3], x4 = of[4];
    double y = of[5], xy = of[6], xxy = of[7];
    double a = xx * x4 - x3 * x3, b = x * x4 - xx * x3, c = x * x3 - xx * xx;
    double det = n * a - x * b + xx * c, line_det = n * xx - x * x;

    if (!line && det > 1e-3 * n * xx * x4) {
        *height = (y * a - xy * b + xxy * c) / det;
        return true;
    }
    *height = line_det > 0 ? (y * xx - xy * x) / line_det : 0;
    return line_det > 1e-4 * n * xx;
}

/* Parabolas through the path, at each A-line; lines where it bends. */
static void straighten(struct oct_trace *trace, const float *path, float *to)
{
    const struct oct_trace_match *f = &trace->match;
    const float level = path[trace->setup.n_lines / 2];
    double height;

    for (int bent = 0; bent < OCT_TRACE_N_BENDS; bent++) {
        add_moments(trace, bent, path);
        for (uint32_t j = 0; j < trace->setup.n_lines; j++)
            if ((f->bends[j] > 0) == (bent > 0))
                to[j] = fit_at(trace, j, bent, &height) ? level + (float)height : path[j];
    }
}

/* The highest place that goes down on both sides, from the middle on upward. */
static float summit(const float *sums, uint32_t n)
{
    uint32_t s = n / 2;

    while (s + 1 < n && sums[s + 1] > sums[s])
        s++;
    while (s > 0 && sums[s - 1] > sums[s])
        s--;
    if (s == 0 || s + 1 == n)
        return (float)s;
    return (float)s + oct_trace_top(sums[s - 1], sums[s], sums[s + 1]);
}

/* From `base` to where the A-lines about each one fit best. */
static void move(struct oct_trace *trace, const float *base, float *path)
{
    const struct oct_trace_match *f = &trace->match;
    int m = (int)trace->setup.n_lines;
    float *restrict sums = f->sums;

    for (int j = 0; j < m; j++) {
        const int bent = f->bends[j] > 0, reach = (int)f->reach[bent];
        memset(sums, 0, f->n_shifts * sizeof(float));
        for (int i = j > reach ? j - reach : 0; i <= j + reach && i < m; i++) {
            const float *fits = f->fits + (size_t)i * f->n_shifts;
            const float weight = f->weights[bent][abs(i - j)];
            for (uint32_t s = 0; (f->bends[i] > 0) == bent && s < f->n_shifts; s++)
                sums[s] += weight * fits[s];
        }
        path[j] = base[j] + summit(sums, f->n_shifts) - (float)f->shift;
    }
}

/* ---- bends ---- */

static bool is_bent(const struct oct_trace *trace, const float *path, int line, float least)
{
    const struct oct_trace_match *f = &trace->match;
    const struct oct_trace_params *p = &trace->setup.params;
    int m = (int)trace->setup.n_lines;
    int seen = (int)oct_trace_rounded(ceil(SEEN_UM / p->line_um), SEEN_LINES, 64);
    float better = 0, apart = 0, n = 0;

    for (int i = line > seen ? line - seen : 0; i <= line + seen && i < m; i++) {
        better += f->fit[0][i] - f->fit[1][i];
        apart += f->before[i] - path[i];
        n++;
    }
    return better > least * n && fabsf(apart) > (float)(APART_UM / p->depth_um) * n;
}

/* From an A-line that bends on to where the path as it was meets the other. */
static void mark_on(struct oct_trace *trace, const float *path, int line, int side, int most)
{
    const struct oct_trace_match *f = &trace->match;
    int m = (int)trace->setup.n_lines;
    bool below = f->before[line] > path[line];

    for (int i = line; i >= 0 && i < m && abs(i - line) <= most; i += side) {
        if ((f->before[i] > path[i]) != below)
            return;
        f->bends[i] = 1;
    }
}

/* The foot of a stretch that was marked before: the path leaps there. */
static bool is_foot(const struct oct_trace *trace, const float *path, int line)
{
    const struct oct_trace_match *f = &trace->match;
    bool after = line > 0 && f->bends[line - 1] > 0;
    bool ahead = line + 1 < (int)trace->setup.n_lines && f->bends[line + 1] > 0;
    float apart = fabsf(f->before[line] - path[line]);

    return f->bends[line] <= 0 && (after || ahead) &&
           apart > (float)(APART_UM / trace->setup.params.depth_um);
}

/* Marks A-lines that fit better about the path as it was, which they get back. Returns whether
 * there are any. */
static bool mark_bends(struct oct_trace *trace, float *path)
{
    const struct oct_trace_match *f = &trace->match;
    int m = (int)trace->setup.n_lines;
    double wider = ceil(WIDER_UM / trace->setup.params.line_um);
    int most = (int)oct_trace_rounded(wider, WIDER_LINES, 64);
    float sum = 0;

    cut_windows(trace, path);
    fill_mean(trace);
    fill_filters(trace);
    fill_fit(trace, path, f->fit[1]);
    fill_fit(trace, f->before, f->fit[0]);
    for (int j = 0; j < m; j++)
        sum += f->fit[1][j];
    for (int j = 0; j < m; j++)
        if (is_foot(trace, path, j) || is_bent(trace, path, j, BETTER * fmaxf(sum, 0) / (float)m)) {
            mark_on(trace, path, j, 1, most);
            mark_on(trace, path, j, -1, most);
        }
    bool any = false;
    for (int j = 0; j < m; j++) {
        any = any || f->bends[j] > 0;
        path[j] = f->bends[j] > 0 ? f->before[j] : path[j];
    }
    return any;
}

void oct_trace_match(struct oct_trace *trace)
{
    struct oct_trace_match *f = &trace->match;
    float *path = trace->path[OCT_LAYER_RPE], *base = trace->line;
    size_t m = trace->setup.n_lines;

    memcpy(f->before, path, m * sizeof(*path));
    memset(f->bends, 0, m * sizeof(*f->bends));
    int n_rounds = N_ROUNDS;
    for (int round = 0; round < n_rounds; round++) {
        straighten(trace, path, base);
        cut_windows(trace, base);
        fill_mean(trace);
        fill_filters(trace);
        fill_fits(trace);
        move(trace, base, path);
        if ((round == 0 || round < n_rounds - 1) && mark_bends(trace, path))
            n_rounds = N_ROUNDS + 1;
    }
}
