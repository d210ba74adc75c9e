#include "analysis/calibrate/sharpen.h"

#include "analysis/calibrate/peak.h"
#include "kernels/device/fftw_planner.h"
#include "numeric/order.h"
#include "pipeline/base/aligned.h"
#include "pipeline/plan/grid.h"

#include <fftw3.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP_A2 2.0 /* of the search grid, rad: half of a maximum's half width at least */
#define STEP_A3 3.0
#define COARSE_LINES 64u
#define N_STARTS 3u
#define ALL N_GROUPS
#define ORDER OCT_MAX_DISPERSION_ORDER

/* Lines k, k + N_GROUPS, ... are group k. */
#define N_GROUPS 4u

struct lines {
    struct oct_plan *plan; /* interpolation = nufft */
    uint32_t n_depth;      /* P2/4: points over k, depths */
    uint32_t first, last;  /* depths that count */
    uint32_t most, n;      /* lines there is room for, and that are there */
    double *t;             /* [n_depth] of sharpen.h, at each point over k */
    float (*signal)[2];    /* [most][n_depth] */
    float *x;              /* [N + n_wrap] */
    double *mean;          /* [N] */
    double *width;         /* [2][most] of the brightest layer of each line, before and after */
    float *intensity;      /* [n_depth] */
    fftwf_complex *grid, *depth, *turned, *phase;
    fftwf_plan spread, back, forward;
};

/* The sums that a sharpness is made of, a group each. */
struct sums {
    double i[N_GROUPS], i2[N_GROUPS], n[N_GROUPS];
};

const struct oct_sharpen_setup oct_sharpen_standard = {.first_px = OCT_SHARPEN_FIRST_PX,
                                                       .n_lines = 512,
                                                       .most_a2 = 100,
                                                       .most_a3 = 24,
                                                       .with_curves = true};

struct oct_sharpen {
    struct oct_sharpen_setup setup;
    struct lines lines;
    uint32_t n_added, n_first, n_saturated; /* B-scans; lines of the first one */
    uint32_t n2, n3;                        /* of the search grid */
    double (*surface)[N_GROUPS + 1];        /* [n3][n2] S of each group and of all */
    const atomic_bool *cancelled;
};

/* ---- the lines as analytic signals over k ---- */

/* The plan's geometry up to the depth that nufft reaches, and its chain on exact tables. */
static enum oct_err make_plan(struct oct_plan **plan, const struct oct_plan *from,
                              struct oct_error *err)
{
    struct oct_geometry g;
    struct oct_chain chain = from->chain;
    enum oct_err e = oct_geometry_init(&g, from->geometry.n_samples, from->geometry.n_lines, 1, 0,
                                       from->geometry.upsampled / 4, OCT_SAMPLE_F32, err);
    if (e)
        return e;
    chain.interpolation = OCT_INTERPOLATION_NUFFT;
    chain.accuracy_db = OCT_STANDARD_ACCURACY_DB;
    return oct_plan_create(plan, &g, &from->calibration, &chain, err);
}

/* Where on the k grid the camera's first and last sample lie. */
static enum oct_err find_ends(const struct oct_plan *plan, double end[2], struct oct_error *err)
{
    const struct oct_geometry *g = &plan->geometry;
    struct oct_k_grid grid;
    enum oct_err e = oct_k_grid_init(&grid, g, &plan->calibration, err);
    if (e == OCT_OK) {
        end[0] = oct_k_grid_place(&grid, 2 * g->left);
        end[1] = oct_k_grid_place(&grid, 2 * (g->left + g->n_samples - 1));
    }
    oct_k_grid_finish(&grid);
    return e;
}

/* The spread grid begins at step 2 * origin of the k grid (spread.h): so do the points over k. */
static enum oct_err place_points(struct lines *l, struct oct_error *err)
{
    double end[2] = {0, 1};
    const enum oct_err e = find_ends(l->plan, end, err);
    const double begin = 2 * ceil(end[0] / 2 - l->plan->spread.n_taps / 2.0);
    for (uint32_t j = 0; j < l->n_depth; j++)
        l->t[j] = 2 * (begin + 4.0 * j - end[0]) / (end[1] - end[0]) - 1;
    return e;
}

static bool alloc(struct lines *l)
{
    const uint32_t n = l->plan->geometry.n_samples, d = l->n_depth;
    l->t = calloc(d, sizeof(*l->t));
    l->signal = oct_aligned_alloc(64, (size_t)l->most * d, sizeof(*l->signal));
    l->x = calloc((size_t)n + l->plan->spread.n_wrap, sizeof(*l->x));
    l->mean = calloc(n, sizeof(*l->mean));
    l->width = calloc(2 * (size_t)l->most + 1, sizeof(*l->width));
    l->intensity = calloc(d, sizeof(*l->intensity));
    l->grid = oct_aligned_calloc(64, l->plan->spread.n_grid, sizeof(*l->grid));
    l->depth = oct_aligned_calloc(64, d, sizeof(*l->depth));
    l->turned = oct_aligned_calloc(64, d, sizeof(*l->turned));
    l->phase = oct_aligned_calloc(64, d, sizeof(*l->phase));
    return l->t && l->signal && l->x && l->mean && l->width && l->intensity && l->grid &&
           l->depth && l->turned && l->phase;
}

static bool plan_transforms(struct lines *l)
{
    const int n = (int)l->plan->spread.n_grid, d = (int)l->n_depth;
    oct_fftw_planner_lock();
    l->spread = fftwf_plan_dft_1d(n, l->grid, l->grid, FFTW_FORWARD, FFTW_ESTIMATE);
    l->back = fftwf_plan_dft_1d(d, l->depth, l->depth, FFTW_BACKWARD, FFTW_ESTIMATE);
    l->forward = fftwf_plan_dft_1d(d, l->turned, l->depth, FFTW_FORWARD, FFTW_ESTIMATE);
    oct_fftw_planner_unlock();
    return l->spread && l->back && l->forward;
}

static enum oct_err init_lines(struct lines *l, const struct oct_sharpen_setup *setup,
                               struct oct_error *err)
{
    *l = (struct lines){.most = setup->n_lines};
    enum oct_err e = make_plan(&l->plan, setup->plan, err);
    if (e)
        return e;
    l->n_depth = l->plan->geometry.upsampled / 4;
    l->first = setup->first_px ? setup->first_px : 1;
    l->last = setup->last_px && setup->last_px < l->n_depth ? setup->last_px : l->n_depth;
    if (l->first + 16 > l->last)
        return oct_fail(err, OCT_E_ARG, "fewer than 16 depths are left between %u and %u", l->first,
                        l->last);
    if (!alloc(l) || !plan_transforms(l))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u A-lines", l->most);
    return place_points(l, err);
}

/* Of zeroed ones too. */
static void finish_lines(struct lines *l)
{
    oct_fftw_planner_lock();
    fftwf_destroy_plan(l->spread); /* NULL is fine */
    fftwf_destroy_plan(l->back);
    fftwf_destroy_plan(l->forward);
    oct_fftw_planner_unlock();
    free(l->t);
    free(l->signal);
    free(l->x);
    free(l->mean);
    free(l->width);
    free(l->intensity);
    free(l->grid);
    free(l->depth);
    free(l->turned);
    free(l->phase);
    oct_plan_destroy(l->plan);
    *l = (struct lines){0};
}

/* The DC line: the recorded one, none, or the mean over the lines that came. */
static void find_dc(struct lines *l, const uint16_t *spectra, const uint8_t *line_valid)
{
    const uint32_t n = l->plan->geometry.n_samples, m = l->plan->geometry.n_lines;
    uint32_t n_came = 0;
    for (uint32_t i = 0; i < n; i++)
        l->mean[i] = l->plan->chain.dc == OCT_DC_FILE ? (double)l->plan->background[i] : 0;
    if (l->plan->chain.dc == OCT_DC_NONE || l->plan->chain.dc == OCT_DC_FILE)
        return;
    for (uint32_t j = 0; j < m; j++) {
        if (line_valid && !line_valid[j])
            continue;
        n_came++;
        for (uint32_t i = 0; i < n; i++)
            l->mean[i] += spectra[(size_t)j * n + i];
    }
    for (uint32_t i = 0; i < n && n_came; i++)
        l->mean[i] /= n_came;
}

static bool is_saturated(const uint16_t *line, uint32_t n, uint32_t limit)
{
    for (uint32_t i = 0; limit && i < n; i++)
        if (line[i] >= limit)
            return true;
    return false;
}

/* The line's depths, of them those that count, and back to points over k. */
static void keep(struct lines *l, const uint16_t *line)
{
    const struct oct_spread *s = &l->plan->spread;
    const uint32_t n = l->plan->geometry.n_samples;
    for (uint32_t i = 0; i < n; i++)
        l->x[i] = (float)(line[i] - l->mean[i]);
    memcpy(l->x + n, l->x, s->n_wrap * sizeof(*l->x));
    memset(l->grid, 0, s->n_grid * sizeof(*l->grid));
    for (uint32_t g = 0; g < s->n_used; g++) {
        const float *x = l->x + s->first[g];
        float re = 0, im = 0;
        for (uint32_t t = s->at[g]; t < s->at[g + 1]; t++, x++) {
            re += s->re[t] * *x;
            im += s->im[t] * *x;
        }
        l->grid[g][0] = re;
        l->grid[g][1] = im;
    }
    fftwf_execute(l->spread);
    memset(l->depth, 0, l->n_depth * sizeof(*l->depth));
    for (uint32_t d = l->first; d < l->n_depth; d++) {
        const float gain = sqrtf(s->gain[d]) / (float)l->n_depth;
        l->depth[d][0] = l->grid[d][0] * gain;
        l->depth[d][1] = l->grid[d][1] * gain;
    }
    fftwf_execute(l->back);
    memcpy(l->signal + (size_t)l->n++ * l->n_depth, l->depth, l->n_depth * sizeof(*l->depth));
}

/* Adds at most n_keep lines of a B-scan, evenly spread. Returns how many were left out for a sample
 * of at least `limit` (0: none). */
static uint32_t add_lines(struct lines *l, const uint16_t *spectra, const uint8_t *line_valid,
                          uint32_t n_keep, uint32_t limit)
{
    const uint32_t n = l->plan->geometry.n_samples, m = l->plan->geometry.n_lines;
    uint32_t n_out = 0;
    n_keep = n_keep < m ? n_keep : m;
    find_dc(l, spectra, line_valid);
    for (uint32_t k = 0; k < n_keep && l->n < l->most; k++) {
        const uint32_t j = (uint32_t)((uint64_t)k * m / n_keep);
        const uint16_t *line = spectra + (size_t)j * n;
        if (line_valid && !line_valid[j])
            continue;
        if (is_saturated(line, n, limit))
            n_out++;
        else
            keep(l, line);
    }
    return n_out;
}

/* The phase of all lines until the next call. */
static void turn_lines(struct lines *l, const double b[2])
{
    for (uint32_t j = 0; j < l->n_depth; j++) {
        const double t = l->t[j], theta = t * t * (b[0] + b[1] * t);
        l->phase[j][0] = (float)cos(theta);
        l->phase[j][1] = (float)-sin(theta);
    }
}

/* The line's complex depths [n_depth] with that phase; valid until the next call. */
static const fftwf_complex *depths_of(struct lines *l, uint32_t line)
{
    const float(*s)[2] = (const float(*)[2])(l->signal + (size_t)line * l->n_depth);
    for (uint32_t j = 0; j < l->n_depth; j++) {
        l->turned[j][0] = s[j][0] * l->phase[j][0] - s[j][1] * l->phase[j][1];
        l->turned[j][1] = s[j][0] * l->phase[j][1] + s[j][1] * l->phase[j][0];
    }
    fftwf_execute(l->forward);
    return (const fftwf_complex *)l->depth;
}

/* Sums over every `step`-th line of each group, with that phase. */
static void sum_lines(struct lines *l, uint32_t step, struct sums *sums)
{
    const uint32_t stride = step * N_GROUPS;
    *sums = (struct sums){0};
    for (uint32_t line = 0; line < l->n; line++) {
        if (line % stride >= N_GROUPS)
            continue;
        const unsigned group = line % N_GROUPS;
        const fftwf_complex *b = depths_of(l, line);
        float sum = 0, sum2 = 0;
        for (uint32_t d = l->first; d < l->last; d++) {
            const float i = b[d][0] * b[d][0] + b[d][1] * b[d][1];
            sum += i;
            sum2 += i * i;
        }
        sums->i[group] += sum;
        sums->i2[group] += sum2;
        sums->n[group] += l->last - l->first;
    }
}

/* S of one group, or of all (group = ALL). NaN without light. */
static double sharpness_of(const struct sums *sums, unsigned group)
{
    double i = 0, i2 = 0, n = 0;
    for (unsigned g = 0; g < N_GROUPS; g++)
        if (g == group || group == N_GROUPS) {
            i += sums->i[g];
            i2 += sums->i2[g];
            n += sums->n[g];
        }
    return i > 0 ? n * i2 / (i * i) : NAN;
}

/* ---- life ---- */

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
    enum oct_err e = s->surface ? init_lines(&s->lines, setup, err)
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
    finish_lines(&s->lines);
    free(s->surface);
    free(s);
}

void oct_sharpen_add(struct oct_sharpen *s, const uint16_t *spectra, const uint8_t *line_valid)
{
    const uint32_t n_bscans = s->setup.n_bscans ? s->setup.n_bscans : 1;
    const uint32_t n_keep = (s->setup.n_lines + n_bscans - 1) / n_bscans;
    s->n_saturated += add_lines(&s->lines, spectra, line_valid, n_keep, s->setup.limit);
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

static struct sums try_phase(struct oct_sharpen *s, const double b[2], uint32_t step)
{
    struct sums sums = {{0}, {0}, {0}};
    if (is_cancelled(s))
        return sums;
    turn_lines(&s->lines, b);
    sum_lines(&s->lines, step, &sums);
    return sums;
}

static double sharpness(struct oct_sharpen *s, const double b[2], unsigned group)
{
    const struct sums sums = try_phase(s, b, 1);
    return sharpness_of(&sums, group);
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
        const struct sums sums = try_phase(s, b, step);
        for (unsigned group = 0; group <= ALL; group++)
            s->surface[at][group] = sharpness_of(&sums, group);
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
    for (unsigned a = 0; a < N_GROUPS; a++)
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
    const double n = N_GROUPS;
    for (unsigned group = 0; group < N_GROUPS; group++) {
        const struct corner c = climb(s, group, best, 0.5);
        for (int m = 0; m < 2; m++) {
            sum[m] += c.b[m] - best[m];
            sum2[m] += (c.b[m] - best[m]) * (c.b[m] - best[m]);
        }
    }
    for (int m = 0; m < 2; m++)
        error[m] = sqrt(fmax(0, sum2[m] - sum[m] * sum[m] / n) / (n - 1) / n);
}

/* ---- the report ---- */

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
    const fftwf_complex *b = depths_of(&s->lines, line);
    for (uint32_t d = 0; d < s->lines.n_depth; d++)
        intensity[d] = d < s->lines.first ? 0 : b[d][0] * b[d][0] + b[d][1] * b[d][1];
}

/* Widths of the brightest layer of each line, NaN where it has none. */
static void measure_widths(struct oct_sharpen *s, const double b[2], double *width)
{
    struct lines *l = &s->lines;
    turn_lines(l, b);
    for (uint32_t k = 0; k < l->n; k++) {
        struct oct_peak peak;
        line_intensity(s, k, l->intensity);
        width[k] = oct_peak_find(&peak, l->intensity + l->first, l->last - l->first, NULL) ==
                           OCT_PEAK_FOUND
                       ? peak.fwhm_px
                       : NAN;
    }
}

static void find_widths(struct oct_sharpen *s, struct oct_sharpen_result *r)
{
    const double none[2] = {0, 0};
    double *before = s->lines.width, *after = before + s->lines.most;
    measure_widths(s, none, before);
    measure_widths(s, r->remaining, after);
    for (uint32_t k = 0; k < s->lines.n; k++) {
        if (isnan(before[k]) || isnan(after[k]))
            continue;
        before[r->n_widths] = before[k];
        after[r->n_widths++] = after[k];
    }
    r->width_before_px = oct_doubles_median(before, r->n_widths);
    r->width_after_px = oct_doubles_median(after, r->n_widths);
}

static enum oct_sharpen_state judge_search(const struct oct_sharpen *s,
                                           const struct oct_sharpen_result *r)
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
    if (s->lines.n < 2 * N_GROUPS)
        return oct_fail(err, OCT_E_ARG,
                        "%u A-lines are too few (%u reach the camera's largest value): at least %u "
                        "are needed",
                        s->lines.n, s->n_saturated, 2 * N_GROUPS);
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
    find_widths(s, r);
    if (is_cancelled(s))
        return oct_fail(err, OCT_E_STATE, "cancelled");
    r->state = judge_search(s, r);
    return OCT_OK;
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
    turn_lines(&s->lines, remaining);
    for (uint32_t k = 0; k < s->n_first; k++)
        line_intensity(s, k, intensity + (size_t)k * s->lines.n_depth);
}

/* ---- the plan's dispersion and what remains, as one ---- */

/* Adds sum a_m t^m, t = scale * u + shift, as the coefficients of u^2 and higher. */
static void add_in(double *to, const double *a, double scale, double shift)
{
    for (int m = 2; m <= ORDER; m++) {
        double binomial = 1; /* m over k */
        for (int k = 0; k <= m; k++) {
            if (k >= 2)
                to[k] += a[m] * binomial * pow(scale, k) * pow(shift, m - k);
            binomial = binomial * (m - k) / (k + 1);
        }
    }
}

static enum oct_err combine_table(const struct oct_plan *plan, const double end[2],
                                  const double b[2], struct oct_sharpen_dispersion *c,
                                  struct oct_error *err)
{
    const double *from = plan->calibration.dispersion;
    c->n = plan->geometry.upsampled;
    c->table = malloc(2 * (size_t)c->n * sizeof(*c->table));
    if (!c->table)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a dispersion phase");
    for (uint32_t q = 0; q < c->n; q++) {
        const double t = 2 * (q - end[0]) / (end[1] - end[0]) - 1;
        const double theta = t * t * (b[0] + b[1] * t), re = cos(theta), im = -sin(theta);
        const double *f = from + 2 * (size_t)q;
        c->table[2 * (size_t)q] = f[0] * re - f[1] * im;
        c->table[2 * (size_t)q + 1] = f[0] * im + f[1] * re;
    }
    return OCT_OK;
}

enum oct_err oct_sharpen_combine(const struct oct_plan *plan, const double b[2],
                                 struct oct_sharpen_dispersion *c, struct oct_error *err)
{
    const struct oct_calibration *cal = &plan->calibration;
    double end[2];
    *c = (struct oct_sharpen_dispersion){.is_table = cal->n_dispersion > 0};
    enum oct_err e = find_ends(plan, end, err);
    if (e || c->is_table)
        return e ? e : combine_table(plan, end, b, c, err);
    const double last = plan->geometry.upsampled - 1, remaining[ORDER + 1] = {[2] = b[0], b[1]};
    /* t over the spectrum = scale * t over the grid + shift */
    const double scale = last / (end[1] - end[0]);
    const double shift = (last - end[0] - end[1]) / (end[1] - end[0]);
    const bool over_grid = cal->dispersion_over == OCT_DISPERSION_OVER_GRID;
    add_in(c->over_spectrum, remaining, 1, 0);
    add_in(c->over_grid, remaining, scale, shift);
    add_in(c->over_grid, cal->coefficient, over_grid ? 1 : scale, over_grid ? 0 : shift);
    add_in(c->over_spectrum, cal->coefficient, over_grid ? 1 / scale : 1,
           over_grid ? -shift / scale : 0);
    return OCT_OK;
}
