#include "analysis/calibrate/sharpen.h"

#include "analysis/calibrate/peak.h"
#include "analysis/calibrate/sharpen_lines.h"
#include "pipeline/plan/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP_A2 2.0 /* of the search grid, rad: half of a maximum's half width at least */
#define STEP_A3 3.0
#define COARSE_LINES 64u
#define N_STARTS 3u
#define ALL OCT_SHARPEN_N_GROUPS

const struct oct_sharpen_setup oct_sharpen_standard = {.first_px = OCT_SHARPEN_FIRST_PX,
                                                       .n_lines = 512,
                                                       .most_a2 = 100,
                                                       .most_a3 = 24,
                                                       .with_curves = true};

struct oct_sharpen {
    struct oct_sharpen_setup setup;
    struct oct_sharpen_lines lines;
    uint32_t n_added, n_first, n_saturated;      /* B-scans; lines of the first one */
    uint32_t n2, n3;                             /* of the search grid */
    double (*surface)[OCT_SHARPEN_N_GROUPS + 1]; /* [n3][n2] S of each group and of all */
    const atomic_bool *cancelled;
};

enum oct_err oct_sharpen_create(struct oct_sharpen **out, const struct oct_sharpen_setup *setup,
                                struct oct_error *err)
{
    struct oct_sharpen *s = calloc(1, sizeof(*s));
    *out = NULL;
    if (!s)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a search");
    s->setup = *setup;
    s->setup.plan = NULL; /* it may go */
    s->n2 = 2 * (uint32_t)ceil(setup->most_a2 / STEP_A2) + 1;
    s->n3 = 2 * (uint32_t)ceil(setup->most_a3 / STEP_A3) + 1;
    s->surface = calloc((size_t)s->n2 * s->n3, sizeof(*s->surface));
    enum oct_err e = s->surface ? oct_sharpen_lines_init(&s->lines, setup, err)
                                : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a search");
    if (e) {
        oct_sharpen_destroy(s);
        return e;
    }
    *out = s;
    return OCT_OK;
}

void oct_sharpen_destroy(struct oct_sharpen *s)
{
    if (!s)
        return;
    oct_sharpen_lines_finish(&s->lines);
    free(s->surface);
    free(s);
}

void oct_sharpen_add(struct oct_sharpen *s, const uint16_t *spectra, const uint8_t *line_valid)
{
    const uint32_t n_bscans = s->setup.n_bscans ? s->setup.n_bscans : 1;
    const uint32_t n_keep = (s->setup.n_lines + n_bscans - 1) / n_bscans;
    s->n_saturated += oct_sharpen_lines_add(&s->lines, spectra, line_valid, n_keep, s->setup.limit);
    if (s->n_added++ == 0)
        s->n_first = s->lines.n;
}

/* ---- trials ---- */

static bool is_cancelled(const struct oct_sharpen *s)
{
    return s->cancelled && atomic_load(s->cancelled);
}

/* Every step-th line of a group, so that `about` of all groups are looked at. */
static uint32_t step_for(const struct oct_sharpen *s, uint32_t about)
{
    return s->lines.n > about ? s->lines.n / about : 1;
}

static struct oct_sharpen_sums try_phase(struct oct_sharpen *s, const double b[2], uint32_t step)
{
    struct oct_sharpen_sums sums = {{0}, {0}, {0}};
    if (is_cancelled(s))
        return sums;
    oct_sharpen_lines_turn(&s->lines, b);
    oct_sharpen_lines_sum(&s->lines, step, &sums);
    return sums;
}

static double sharpness(struct oct_sharpen *s, const double b[2], unsigned group)
{
    const struct oct_sharpen_sums sums = try_phase(s, b, 1);
    return oct_sharpen_of(&sums, group);
}

/* ---- the coarse search ---- */

static void place_of(const struct oct_sharpen *s, uint32_t at, double b[2])
{
    b[0] = ((double)(at % s->n2) - s->n2 / 2) * STEP_A2;
    b[1] = ((double)(at / s->n2) - s->n3 / 2) * STEP_A3;
}

static void fill_surface(struct oct_sharpen *s)
{
    const uint32_t step = step_for(s, COARSE_LINES);
    for (uint32_t at = 0; at < s->n2 * s->n3 && !is_cancelled(s); at++) {
        double b[2];
        place_of(s, at, b);
        const struct oct_sharpen_sums sums = try_phase(s, b, step);
        for (unsigned group = 0; group <= ALL; group++)
            s->surface[at][group] = oct_sharpen_of(&sums, group);
    }
}

static double correlation(const struct oct_sharpen *s, unsigned a, unsigned b)
{
    const uint32_t n = s->n2 * s->n3;
    double mean_a = 0, mean_b = 0, aa = 0, bb = 0, ab = 0;
    for (uint32_t at = 0; at < n; at++) {
        mean_a += s->surface[at][a] / n;
        mean_b += s->surface[at][b] / n;
    }
    for (uint32_t at = 0; at < n; at++) {
        const double x = s->surface[at][a] - mean_a, y = s->surface[at][b] - mean_b;
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

static double find_agreement(const struct oct_sharpen *s)
{
    double sum = 0;
    unsigned n = 0;
    for (unsigned a = 0; a < OCT_SHARPEN_N_GROUPS; a++)
        for (unsigned b = 0; b < a; b++, n++)
            sum += correlation(s, a, b);
    return sum / n;
}

static bool is_maximum(const struct oct_sharpen *s, uint32_t at)
{
    const uint32_t x = at % s->n2, y = at / s->n2;
    for (uint32_t v = y ? y - 1 : 0; v <= y + 1 && v < s->n3; v++)
        for (uint32_t u = x ? x - 1 : 0; u <= x + 1 && u < s->n2; u++)
            if (s->surface[v * s->n2 + u][ALL] > s->surface[at][ALL])
                return false;
    return true;
}

/* The highest maxima of the surface, the highest first. Returns how many there are. */
static unsigned find_starts(const struct oct_sharpen *s, uint32_t start[N_STARTS])
{
    unsigned n = 0;
    for (uint32_t at = 0; at < s->n2 * s->n3; at++) {
        if (!is_maximum(s, at))
            continue;
        unsigned k = n < N_STARTS ? n++ : N_STARTS;
        while (k > 0 && s->surface[at][ALL] > s->surface[start[k - 1]][ALL]) {
            if (k < N_STARTS)
                start[k] = start[k - 1];
            k--;
        }
        if (k < N_STARTS)
            start[k] = at;
    }
    return n;
}

/* ---- the local search ---- */

struct corner {
    double b[2], value; /* value: -S */
};

static struct corner corner_at(struct oct_sharpen *s, unsigned group, double b2, double b3)
{
    struct corner c = {{b2, b3}, 0};
    c.value = -sharpness(s, c.b, group);
    return c;
}

static void sort_corners(struct corner c[3])
{
    for (int i = 1; i < 3; i++)
        for (int k = i; k > 0 && c[k].value < c[k - 1].value; k--) {
            struct corner swap = c[k];
            c[k] = c[k - 1];
            c[k - 1] = swap;
        }
}

/* A point on the line from the worst corner through the middle of the two others. */
static struct corner reflected(struct oct_sharpen *s, unsigned group, const struct corner c[3],
                               double by)
{
    const double m2 = (c[0].b[0] + c[1].b[0]) / 2, m3 = (c[0].b[1] + c[1].b[1]) / 2;
    return corner_at(s, group, m2 + by * (m2 - c[2].b[0]), m3 + by * (m3 - c[2].b[1]));
}

/* Nelder and Mead's downhill simplex with their factors, until it is smaller than 0.01 rad. */
static struct corner climb(struct oct_sharpen *s, unsigned group, const double from[2], double size)
{
    struct corner c[3] = {corner_at(s, group, from[0], from[1]),
                          corner_at(s, group, from[0] + size, from[1]),
                          corner_at(s, group, from[0], from[1] + 1.5 * size)};
    for (int turn = 0; turn < 60 && !is_cancelled(s); turn++) {
        sort_corners(c);
        const double wide = fmax(hypot(c[1].b[0] - c[0].b[0], c[1].b[1] - c[0].b[1]),
                                 hypot(c[2].b[0] - c[0].b[0], c[2].b[1] - c[0].b[1]));
        if (wide < 0.01)
            break;
        struct corner next = reflected(s, group, c, 1);
        if (next.value < c[0].value) {
            const struct corner far = reflected(s, group, c, 2);
            c[2] = far.value < next.value ? far : next;
        } else if (next.value < c[1].value) {
            c[2] = next;
        } else {
            next = reflected(s, group, c, next.value < c[2].value ? 0.5 : -0.5);
            if (next.value < c[2].value) {
                c[2] = next;
                continue;
            }
            for (int k = 1; k < 3; k++)
                c[k] =
                    corner_at(s, group, (c[k].b[0] + c[0].b[0]) / 2, (c[k].b[1] + c[0].b[1]) / 2);
        }
    }
    sort_corners(c);
    return c[0];
}

static struct corner find_best(struct oct_sharpen *s)
{
    uint32_t start[N_STARTS];
    const unsigned n = find_starts(s, start);
    struct corner best = {.value = INFINITY};
    for (unsigned k = 0; k < n; k++) {
        double from[2];
        place_of(s, start[k], from);
        const struct corner c = climb(s, ALL, from, STEP_A2 / 2);
        best = c.value < best.value ? c : best;
    }
    return best;
}

/* Of the mean of the groups' own optima: their spread over the root of their number. */
static void find_error(struct oct_sharpen *s, const double best[2], double error[2])
{
    double sum[2] = {0, 0}, sum2[2] = {0, 0};
    const double n = OCT_SHARPEN_N_GROUPS;
    for (unsigned group = 0; group < OCT_SHARPEN_N_GROUPS; group++) {
        const struct corner c = climb(s, group, best, 0.5);
        for (int m = 0; m < 2; m++) {
            sum[m] += c.b[m] - best[m];
            sum2[m] += (c.b[m] - best[m]) * (c.b[m] - best[m]);
        }
    }
    for (int m = 0; m < 2; m++)
        error[m] = sqrt(fmax(0, sum2[m] - sum[m] * sum[m] / n) / (n - 1) / n);
}

/* ---- what is told ---- */

static void draw_curves(struct oct_sharpen *s, struct oct_sharpen_result *r)
{
    const double most[2] = {s->setup.most_a2, s->setup.most_a3};
    for (int m = 0; m < 2; m++)
        for (uint32_t k = 0; k < OCT_SHARPEN_CURVE; k++) {
            double b[2] = {r->remaining[0], r->remaining[1]};
            b[m] = most[m] * (2.0 * k / (OCT_SHARPEN_CURVE - 1) - 1);
            r->curve[m].at[k] = b[m];
            r->curve[m].s[k] = sharpness(s, b, ALL);
        }
}

/* [n_depth] of one line with the phase that was last turned to. */
static void line_intensity(struct oct_sharpen *s, uint32_t line, float *intensity)
{
    const fftwf_complex *b = oct_sharpen_lines_depths(&s->lines, line);
    for (uint32_t d = 0; d < s->lines.n_depth; d++)
        intensity[d] = d < s->lines.first ? 0 : b[d][0] * b[d][0] + b[d][1] * b[d][1];
}

/* Widths of the brightest layer of each line, NaN where it has none. */
static void measure_widths(struct oct_sharpen *s, const double b[2], float *line, double *width)
{
    const uint32_t first = s->lines.first, depth = s->lines.last;
    oct_sharpen_lines_turn(&s->lines, b);
    for (uint32_t k = 0; k < s->lines.n; k++) {
        struct oct_peak peak;
        line_intensity(s, k, line);
        width[k] = oct_peak_find(&peak, line + first, depth - first, NULL) == OCT_PEAK_FOUND
                       ? peak.fwhm_px
                       : NAN;
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint32_t n)
{
    qsort(values, n, sizeof(*values), by_value);
    return n ? (values[(n - 1) / 2] + values[n / 2]) / 2 : NAN;
}

static enum oct_err find_widths(struct oct_sharpen *s, struct oct_sharpen_result *r,
                                struct oct_error *err)
{
    const double none[2] = {0, 0};
    const uint32_t n = s->lines.n;
    double *before = calloc(2 * (size_t)n, sizeof(*before)), *after = before ? before + n : NULL;
    float *line = malloc(s->lines.n_depth * sizeof(*line));
    uint32_t n_both = 0;
    if (before && line) {
        measure_widths(s, none, line, before);
        measure_widths(s, r->remaining, line, after);
        for (uint32_t k = 0; k < n; k++) {
            if (isnan(before[k]) || isnan(after[k]))
                continue;
            before[n_both] = before[k];
            after[n_both++] = after[k];
        }
        r->n_widths = n_both;
        r->width_before_px = median(before, n_both);
        r->width_after_px = median(after, n_both);
    }
    const bool has_memory = before && line;
    free(before);
    free(line);
    return has_memory ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for widths");
}

static enum oct_sharpen_state judge(const struct oct_sharpen *s, const struct oct_sharpen_result *r)
{
    if (!(r->agreement >= OCT_SHARPEN_LEAST_AGREEMENT))
        return OCT_SHARPEN_NOTHING;
    return fabs(r->remaining[0]) > s->setup.most_a2 || fabs(r->remaining[1]) > s->setup.most_a3
               ? OCT_SHARPEN_AT_BOUND
               : OCT_SHARPEN_FOUND;
}

enum oct_err oct_sharpen_run(struct oct_sharpen *s, const atomic_bool *cancelled,
                             struct oct_sharpen_result *r, struct oct_error *err)
{
    const double none[2] = {0, 0};
    *r = (struct oct_sharpen_result){.n_lines = s->lines.n, .n_saturated = s->n_saturated};
    s->cancelled = cancelled;
    if (s->lines.n < 2 * OCT_SHARPEN_N_GROUPS)
        return oct_fail(err, OCT_E_ARG,
                        "%u A-lines are too few (%u reach the camera's largest value): at least %u "
                        "are needed",
                        s->lines.n, s->n_saturated, 2 * OCT_SHARPEN_N_GROUPS);
    r->before = sharpness(s, none, ALL);
    if (!isfinite(r->before) && !is_cancelled(s))
        return oct_fail(err, OCT_E_ARG, "all A-lines are the same: there is nothing in them");
    fill_surface(s);
    r->agreement = find_agreement(s);
    const struct corner best = find_best(s);
    memcpy(r->remaining, best.b, sizeof(r->remaining));
    r->after = -best.value;
    find_error(s, best.b, r->error);
    if (s->setup.with_curves)
        draw_curves(s, r);
    enum oct_err e = find_widths(s, r, err);
    if (is_cancelled(s))
        return oct_fail(err, OCT_E_STATE, "cancelled");
    r->state = judge(s, r);
    return e;
}

const struct oct_plan *oct_sharpen_plan(const struct oct_sharpen *s)
{
    return s->lines.plan;
}

uint32_t oct_sharpen_picture_lines(const struct oct_sharpen *s)
{
    return s->n_first;
}

uint32_t oct_sharpen_depth(const struct oct_sharpen *s)
{
    return s->lines.n_depth;
}

void oct_sharpen_picture(struct oct_sharpen *s, const double remaining[2], float *intensity)
{
    oct_sharpen_lines_turn(&s->lines, remaining);
    for (uint32_t k = 0; k < s->n_first; k++)
        line_intensity(s, k, intensity + (size_t)k * s->lines.n_depth);
}
