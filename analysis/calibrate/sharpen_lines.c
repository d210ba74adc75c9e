#include "analysis/calibrate/sharpen_lines.h"

#include "kernels/device/fftw_planner.h"
#include "pipeline/base/aligned.h"
#include "pipeline/plan/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* The spread grid begins at step 2 * origin of the k grid (spread.h): so do the points over k. */
static enum oct_err place_points(struct oct_sharpen_lines *l, struct oct_error *err)
{
    const struct oct_geometry *g = &l->plan->geometry;
    struct oct_k_grid grid;
    enum oct_err e = oct_k_grid_init(&grid, g, &l->plan->calibration, err);
    if (e == OCT_OK) {
        const double first = oct_k_grid_place(&grid, 2 * g->left);
        const double last = oct_k_grid_place(&grid, 2 * (g->left + g->n_samples - 1));
        const double begin = 2 * ceil(first / 2 - l->plan->spread.n_taps / 2.0);
        for (uint32_t j = 0; j < l->n_depth; j++)
            l->t[j] = 2 * (begin + 4.0 * j - first) / (last - first) - 1;
    }
    oct_k_grid_finish(&grid);
    return e;
}

static bool alloc(struct oct_sharpen_lines *l)
{
    const uint32_t n = l->plan->geometry.n_samples, d = l->n_depth;
    l->t = calloc(d, sizeof(*l->t));
    l->signal = oct_aligned_alloc(64, (size_t)l->most * d, sizeof(*l->signal));
    l->x = calloc((size_t)n + l->plan->spread.n_wrap, sizeof(*l->x));
    l->mean = calloc(n, sizeof(*l->mean));
    l->grid = oct_aligned_calloc(64, l->plan->spread.n_grid, sizeof(*l->grid));
    l->depth = oct_aligned_calloc(64, d, sizeof(*l->depth));
    l->turned = oct_aligned_calloc(64, d, sizeof(*l->turned));
    l->phase = oct_aligned_calloc(64, d, sizeof(*l->phase));
    return l->t && l->signal && l->x && l->mean && l->grid && l->depth && l->turned && l->phase;
}

static bool plan_transforms(struct oct_sharpen_lines *l)
{
    const int n = (int)l->plan->spread.n_grid, d = (int)l->n_depth;
    oct_fftw_planner_lock();
    l->spread = fftwf_plan_dft_1d(n, l->grid, l->grid, FFTW_FORWARD, FFTW_ESTIMATE);
    l->back = fftwf_plan_dft_1d(d, l->depth, l->depth, FFTW_BACKWARD, FFTW_ESTIMATE);
    l->forward = fftwf_plan_dft_1d(d, l->turned, l->depth, FFTW_FORWARD, FFTW_ESTIMATE);
    oct_fftw_planner_unlock();
    return l->spread && l->back && l->forward;
}

enum oct_err oct_sharpen_lines_init(struct oct_sharpen_lines *l,
                                    const struct oct_sharpen_setup *setup, struct oct_error *err)
{
    *l = (struct oct_sharpen_lines){.most = setup->n_lines};
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

void oct_sharpen_lines_finish(struct oct_sharpen_lines *l)
{
    oct_fftw_planner_lock();
    if (l->spread)
        fftwf_destroy_plan(l->spread);
    if (l->back)
        fftwf_destroy_plan(l->back);
    if (l->forward)
        fftwf_destroy_plan(l->forward);
    oct_fftw_planner_unlock();
    free(l->t);
    free(l->signal);
    free(l->x);
    free(l->mean);
    free(l->grid);
    free(l->depth);
    free(l->turned);
    free(l->phase);
    oct_plan_destroy(l->plan);
    *l = (struct oct_sharpen_lines){0};
}

/* ---- lines in ---- */

static bool came(const uint8_t *line_valid, uint32_t line)
{
    return !line_valid || line_valid[line];
}

/* The DC line: the recorded one, none, or the mean over the lines that came. */
static void find_dc(struct oct_sharpen_lines *l, const uint16_t *spectra, const uint8_t *line_valid)
{
    const uint32_t n = l->plan->geometry.n_samples, m = l->plan->geometry.n_lines;
    uint32_t n_came = 0;
    memset(l->mean, 0, n * sizeof(*l->mean));
    if (l->plan->chain.dc == OCT_DC_NONE)
        return;
    if (l->plan->chain.dc == OCT_DC_FILE) {
        for (uint32_t i = 0; i < n; i++)
            l->mean[i] = l->plan->background[i];
        return;
    }
    for (uint32_t j = 0; j < m; j++) {
        if (!came(line_valid, j))
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
static void keep(struct oct_sharpen_lines *l, const uint16_t *line)
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

uint32_t oct_sharpen_lines_add(struct oct_sharpen_lines *l, const uint16_t *spectra,
                               const uint8_t *line_valid, uint32_t n_keep, uint32_t limit)
{
    const uint32_t n = l->plan->geometry.n_samples, m = l->plan->geometry.n_lines;
    uint32_t n_out = 0;
    n_keep = n_keep < m ? n_keep : m;
    find_dc(l, spectra, line_valid);
    for (uint32_t k = 0; k < n_keep && l->n < l->most; k++) {
        const uint32_t j = (uint32_t)((uint64_t)k * m / n_keep);
        const uint16_t *line = spectra + (size_t)j * n;
        if (!came(line_valid, j))
            continue;
        if (is_saturated(line, n, limit))
            n_out++;
        else
            keep(l, line);
    }
    return n_out;
}

/* ---- a trial ---- */

void oct_sharpen_lines_turn(struct oct_sharpen_lines *l, const double b[2])
{
    for (uint32_t j = 0; j < l->n_depth; j++) {
        const double t = l->t[j], theta = t * t * (b[0] + b[1] * t);
        l->phase[j][0] = (float)cos(theta);
        l->phase[j][1] = (float)-sin(theta);
    }
}

const fftwf_complex *oct_sharpen_lines_depths(struct oct_sharpen_lines *l, uint32_t line)
{
    const float(*s)[2] = (const float(*)[2])(l->signal + (size_t)line * l->n_depth);
    for (uint32_t j = 0; j < l->n_depth; j++) {
        l->turned[j][0] = s[j][0] * l->phase[j][0] - s[j][1] * l->phase[j][1];
        l->turned[j][1] = s[j][0] * l->phase[j][1] + s[j][1] * l->phase[j][0];
    }
    fftwf_execute(l->forward);
    return (const fftwf_complex *)l->depth;
}

void oct_sharpen_lines_sum(struct oct_sharpen_lines *l, uint32_t step,
                           struct oct_sharpen_sums *sums)
{
    const uint32_t stride = step * OCT_SHARPEN_N_GROUPS;
    *sums = (struct oct_sharpen_sums){0};
    for (uint32_t line = 0; line < l->n; line++) {
        if (line % stride >= OCT_SHARPEN_N_GROUPS)
            continue;
        const unsigned group = line % OCT_SHARPEN_N_GROUPS;
        const fftwf_complex *b = oct_sharpen_lines_depths(l, line);
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

double oct_sharpen_of(const struct oct_sharpen_sums *sums, unsigned group)
{
    double i = 0, i2 = 0, n = 0;
    for (unsigned g = 0; g < OCT_SHARPEN_N_GROUPS; g++)
        if (g == group || group == OCT_SHARPEN_N_GROUPS) {
            i += sums->i[g];
            i2 += sums->i2[g];
            n += sums->n[g];
        }
    return i > 0 ? n * i2 / (i * i) : NAN;
}
