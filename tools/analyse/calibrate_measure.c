#include "tools/analyse/calibrate_measure.h"

#include "analysis/calibrate/fringe.h"
#include "analysis/calibrate/peak.h"
#include "analysis/calibrate/source.h"
#include "config/apply.h"
#include "formats/recording_plan.h"
#include "pipeline/plan/grid.h"
#include "tools/alloc.h"
#include "tools/analyse/one_bscan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
/* Share of the fringe that the mean A-line may hold before the mirror counts as one at rest. */
#define REST_SHARE 0.1

const char *const oct_measure_window_names[OCT_MEASURE_WINDOWS] = {
    "none", "hann", "hamming", "blackman", "gauss", "flat", "hann, flattened"};
static const struct oct_shaping window_shapings[OCT_MEASURE_WINDOWS] = {
    {.window = OCT_WINDOW_NONE},
    {.window = OCT_WINDOW_HANN},
    {.window = OCT_WINDOW_HAMMING},
    {.window = OCT_WINDOW_BLACKMAN},
    {.window = OCT_WINDOW_GAUSS},
    {.window = OCT_WINDOW_FLAT},
    {.window = OCT_WINDOW_HANN, .flatten = true},
};
static const char *const interpolation_names[] = {
    [OCT_INTERPOLATION_LINEAR] = "linear",
    [OCT_INTERPOLATION_CUBIC] = "cubic",
    [OCT_INTERPOLATION_NUFFT] = "nufft",
};

struct work {
    struct oct_measure *m;
    struct oct_config config; /* effective */
    struct oct_plan *plan;    /* of the configuration, every depth up to P2/4 */
    struct oct_fringe fringe;
    uint16_t *lines; /* [n_lines][N]: those that came */
    uint8_t *line_valid;
    uint32_t fine;  /* depths computed for each depth pixel */
    float *picture; /* [n_lines][depth] */
    float *values;  /* [n_lines][depth * fine] */
    double *sums;   /* [depth * fine], as the next, room for oct_mirror_measure */
    float *line;
    double *phase; /* [P2][2] as calibration.dispersion */
};

/* ---- reading ---- */

/* The first B-scan of which at least half of the A-lines came; they move to the front. */
static enum oct_err read_lines(struct work *w, struct oct_recording *recording,
                               struct oct_error *err)
{
    const uint32_t m = oct_recording_n_lines(recording), n = oct_recording_n_samples(recording);
    struct oct_raw_frame frame = {0};
    bool valid;

    w->lines = oct_alloc((size_t)m * n, sizeof(*w->lines));
    w->line_valid = oct_alloc(m, 1);
    frame.spectra = w->lines;
    frame.line_valid = w->line_valid;
    for (uint64_t b = 0; b < oct_recording_n_bscans(recording); b++) {
        enum oct_err e = oct_recording_read(recording, b, &frame, &valid, err);
        uint32_t kept = 0;
        if (e)
            return e;
        for (uint32_t j = 0; valid && j < m; j++)
            if (w->line_valid[j])
                memmove(w->lines + (size_t)n * kept++, w->lines + (size_t)n * j,
                        n * sizeof(*w->lines));
        if (kept < (m + 1) / 2)
            continue;
        w->m->n_lines = kept;
        w->m->n_samples = n;
        memset(w->line_valid, 1, kept);
        return OCT_OK;
    }
    return oct_fail(err, OCT_E_FORMAT, "%s: no B-scan of which half of the A-lines came",
                    w->m->path);
}

/* peak.h is right where the samples fill at most 0.4 of the P2 steps' half. A longer line needs
 * depths between the pixels. */
static uint32_t fineness(const struct oct_geometry *g)
{
    uint32_t fine = 1;

    while (5 * g->n_samples > 2 * g->padded * fine)
        fine *= 2;
    return fine;
}

/* Takes the plan of the recording anew: the lines that came, all depths, floats. */
static enum oct_err make_plan(struct work *w, struct oct_recording *recording,
                              struct oct_error *err)
{
    /* The configuration's crop may not be one that suits every chain. */
    static const char *const ours[][2] = {{"pipeline.crop_first", "0"},
                                          {"pipeline.crop_last", "auto"}};
    struct oct_plan *recorded = NULL;
    struct oct_geometry g;
    enum oct_err e = OCT_OK;

    for (size_t i = 0; !e && i < sizeof(ours) / sizeof(ours[0]); i++)
        e = oct_config_set(&w->config, ours[i][0], ours[i][1], "report", err);
    /* A single A-line is its own mean. */
    if (!e && (w->m->n_lines == 1 || oct_recording_n_lines(recording) == 1))
        e = oct_config_set(&w->config, "pipeline.dc", "none", "report", err);
    if (!e)
        e = oct_recording_plan(&recorded, &w->config, recording, err);
    if (e)
        return e;
    e = oct_geometry_init(&g, w->m->n_samples, w->m->n_lines, 1, 0,
                          recorded->geometry.upsampled / 4, OCT_SAMPLE_F32, err);
    if (!e)
        e = oct_plan_create(&w->plan, &g, &recorded->calibration, &recorded->chain, err);
    oct_plan_destroy(recorded);
    if (e)
        return e;
    w->m->depth = g.depth;
    w->m->has_background = w->plan->calibration.n_background > 0;
    if (isfinite(w->plan->axial_um))
        w->m->axial_um = w->plan->axial_um;
    w->m->interpolation = interpolation_names[w->plan->chain.interpolation];
    w->fine = fineness(&g);
    w->picture = oct_alloc((size_t)g.n_lines * g.depth, sizeof(*w->picture));
    w->values = oct_alloc((size_t)g.n_lines * g.depth * w->fine, sizeof(*w->values));
    w->sums = oct_alloc((size_t)g.depth * w->fine, sizeof(*w->sums));
    w->line = oct_alloc((size_t)g.depth * w->fine, sizeof(*w->line));
    w->phase = oct_alloc((size_t)g.upsampled * 2, sizeof(*w->phase));
    return OCT_OK;
}

static enum oct_err read_recording(struct work *w, struct oct_error *err)
{
    struct oct_recording *recording = NULL;
    enum oct_err e = oct_recording_open(&recording, w->m->path, &w->config, err);

    if (!e)
        e = read_lines(w, recording, err);
    if (!e)
        e = make_plan(w, recording, err);
    oct_recording_close(recording);
    return e;
}

/* ---- the fringe ---- */

/* Mean and source differ by the fringe that all A-lines have in common:
 * mean - source = share * Re F + ... */
static bool is_at_rest(const struct oct_fringe *f)
{
    double re = 0, im = 0, whole = 0;

    for (uint32_t i = 0; i < f->n_samples; i++) {
        double x = f->mean[i] - f->source[i];
        re += 2 * x * f->re[i];
        im += 2 * x * f->im[i];
        whole += f->re[i] * f->re[i] + f->im[i] * f->im[i];
    }
    return hypot(re, im) > REST_SHARE * whole;
}

/* OCT_E_FORMAT becomes a sentence of the measure. */
static enum oct_err find_fringe(struct work *w, struct oct_error *err)
{
    struct oct_error why = {0};
    enum oct_err e = oct_fringe_find(&w->fringe, w->lines, w->m->n_lines, w->m->n_samples, NULL,
                                     w->config.camera.bits, &why);

    if (e == OCT_E_FORMAT)
        w->m->why = oct_alloc_text("%s", why.text);
    else if (e)
        return oct_fail(err, e, "%s: %s", w->m->path, why.text);
    else
        w->m->is_at_rest = is_at_rest(&w->fringe);
    return OCT_OK;
}

/* ---- reconstructions ---- */

/* Depth pixels are `fine` of the values' apart. */
static void scale_depths(struct oct_mirror *mirror, double fine)
{
    mirror->depth_px /= fine;
    mirror->fwhm_px /= fine;
    mirror->side_lobe_px /= fine;
    mirror->tilt_px /= fine;
}

static void measure_values(struct work *w, struct oct_measure_peak *peak)
{
    const uint32_t depth = w->m->depth, all = depth * w->fine, n = w->m->n_lines;
    const struct oct_mirror_setup setup = {
        .n_lines = n,
        .depth = all,
        .first_px = OCT_PEAK_FIRST_PX * w->fine,
        .min_snr_db = OCT_PEAK_MIN_SNR_DB,
    };

    peak->line = oct_alloc(depth, sizeof(*peak->line));
    oct_mirror_measure(&peak->mirror, &setup, w->values, w->sums, w->line);
    scale_depths(&peak->mirror, w->fine);
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t d = 0; d < depth; d++)
            peak->line[d] += (double)w->values[(size_t)j * all + (size_t)d * w->fine] / n;
    peak->is_there = true;
}

/* The plan's own dispersion, times what moves all depths by `shift_px` towards 0. */
static void set_phase(struct work *w, double shift_px)
{
    const struct oct_calibration *cal = &w->plan->calibration;
    const uint32_t p2 = w->plan->geometry.upsampled;

    for (uint32_t q = 0; q < p2; q++) {
        double turn = -2 * PI * shift_px * q / p2, re = 1, im = 0;
        if (cal->n_dispersion) {
            re = cal->dispersion[2 * q];
            im = cal->dispersion[2 * q + 1];
        } else {
            turn -= oct_plan_theta(w->plan, q);
        }
        w->phase[2 * q] = re * cos(turn) - im * sin(turn);
        w->phase[2 * q + 1] = re * sin(turn) + im * cos(turn);
    }
}

/* All depths, those between the pixels by a chain of their own. */
static enum oct_err reconstruct_fine(struct work *w, const struct oct_calibration *with,
                                     const struct oct_chain *chain, struct oct_error *err)
{
    struct oct_calibration cal = *with;
    const size_t n = (size_t)w->m->n_lines * w->m->depth;
    enum oct_err e = OCT_OK;

    for (uint32_t part = 0; !e && part < w->fine; part++) {
        struct oct_plan *plan = NULL;
        if (part > 0) {
            set_phase(w, (double)part / w->fine);
            cal.dispersion = w->phase;
            cal.n_dispersion = w->plan->geometry.upsampled;
        }
        e = oct_plan_create(&plan, &w->plan->geometry, &cal, chain, err);
        if (!e)
            e = oct_one_bscan(plan, &w->config, w->lines, w->line_valid, w->picture, err);
        for (size_t i = 0; !e && i < n; i++)
            w->values[i * w->fine + part] = w->picture[i];
        oct_plan_destroy(plan);
    }
    return e;
}

/* The chain with this shaping. A background that the recording gives itself is its smooth source:
 * of a mirror at rest it is what is taken off, and always what `flat` divides by. */
static enum oct_err measure_chain(struct work *w, const struct oct_shaping *shaping,
                                  struct oct_measure_peak *peak, struct oct_error *err)
{
    struct oct_chain chain = w->plan->chain;
    struct oct_calibration cal = w->plan->calibration; /* borrows all but the background */

    if (shaping)
        chain.shaping = *shaping;
    if (chain.dc == OCT_DC_RUNNING) /* of a single B-scan that is its mean */
        chain.dc = OCT_DC_BSCAN;
    if (w->m->is_at_rest)
        chain.dc = OCT_DC_FILE;
    if (w->m->is_at_rest || !w->m->has_background) {
        cal.background = w->fringe.source;
        cal.n_background = w->m->n_samples;
    }
    const enum oct_err e = reconstruct_fine(w, &cal, &chain, err);
    if (!e)
        measure_values(w, peak);
    return e;
}

static enum oct_err measure_all(struct work *w, struct oct_error *err)
{
    enum oct_err e = measure_chain(w, NULL, &w->m->configured, err);

    for (unsigned i = 0; !e && i < OCT_MEASURE_WINDOWS; i++) {
        struct oct_shaping shaping = window_shapings[i];
        shaping.width = w->plan->chain.shaping.width;
        w->m->windows[i].window = oct_measure_window_names[i];
        e = measure_chain(w, &shaping, &w->m->windows[i], err);
    }
    return e;
}

/* ---- the limit ---- */

/* The phase that a mirror at this depth has with this calibration, at place q. */
static double phase_at(const struct oct_plan *plan, double depth_px, double q)
{
    const struct oct_calibration *cal = &plan->calibration;
    const double turns = depth_px * q / plan->geometry.upsampled;

    if (cal->n_dispersion == 0)
        return 2 * PI * turns + oct_plan_theta(plan, q);
    const size_t at = (size_t)fmin(fmax(q + 0.5, 0), (double)cal->n_dispersion - 1);
    return 2 * PI * turns - atan2(cal->dispersion[2 * at + 1], cal->dispersion[2 * at]);
}

/* The width that the fringe's amplitude allows on the plan's k grid. The amplitude is taken anew,
 * with the calibrated phase as its model: a fringe that is not chirped needs less smoothing. */
static enum oct_err find_limit(struct work *w, struct oct_error *err)
{
    const struct oct_geometry *g = &w->plan->geometry;
    const struct oct_mirror *mirror = &w->m->configured.mirror;
    struct oct_k_grid grid;
    double *place = oct_alloc(2 * (size_t)g->n_samples, sizeof(*place));
    double *phase = place + g->n_samples;
    enum oct_err e = oct_k_grid_init(&grid, g, &w->plan->calibration, err);
    for (uint32_t i = 0; !e && i < g->n_samples; i++) {
        place[i] = oct_k_grid_place(&grid, 2 * (g->left + i));
        phase[i] = phase_at(w->plan, mirror->depth_px, place[i]);
    }
    if (!e && mirror->state == OCT_MIRROR_FOUND)
        e = oct_fringe_refine(&w->fringe, phase, err);
    if (!e)
        w->m->limit_px = oct_source_limit_px(w->fringe.envelope, place, g->n_samples, g->upsampled);
    oct_k_grid_finish(&grid);
    free(place);
    return e;
}

static void derive_numbers(const struct oct_measure *m, struct oct_measure_peak *peak)
{
    peak->depth_um = peak->mirror.depth_px * m->axial_um;
    peak->fwhm_um = peak->mirror.fwhm_px * m->axial_um;
    peak->of_limit = peak->mirror.fwhm_px / m->limit_px;
    peak->amplitude_counts = pow(10, peak->mirror.peak_db / 20);
}

enum oct_err oct_measure_init(struct oct_measure *measure, const char *path,
                              const struct oct_config *config, double axial_um,
                              struct oct_error *err)
{
    struct work *w = oct_alloc(1, sizeof(*w));

    *measure = (struct oct_measure){.path = path, .axial_um = axial_um, .limit_px = NAN};
    w->m = measure;
    w->config = *config;
    enum oct_err e = read_recording(w, err);
    if (!e)
        e = find_fringe(w, err);
    if (!e && !measure->why)
        e = measure_all(w, err);
    if (!e && !measure->why)
        e = find_limit(w, err);
    measure->limit_um = measure->limit_px * measure->axial_um;
    derive_numbers(measure, &measure->configured);
    for (unsigned i = 0; i < OCT_MEASURE_WINDOWS; i++)
        derive_numbers(measure, &measure->windows[i]);
    oct_fringe_finish(&w->fringe);
    oct_plan_destroy(w->plan);
    free(w->lines);
    free(w->line_valid);
    free(w->picture);
    free(w->values);
    free(w->sums);
    free(w->line);
    free(w->phase);
    free(w);
    return e;
}
