/* The work of octctl calibrate kmap. */
#include "tools/analyse/calibrate_kmap.h"

#include "analysis/calibrate/source.h"
#include "config/apply.h"
#include "formats/recording.h"
#include "pipeline/plan/grid.h"
#include "tools/alloc.h"
#include "tools/analyse/one_bscan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define MOST_LINES 512u
#define MOST_LINES_BYTES (64u << 20)
#define MOST_BSCANS 8u
#define MOST_FILLED 0.55 /* of the padded line: up to here peak.h is right */
/* Of two reflectors in one band: 10 dB apart they leave a lobe of 16 dB below the peak. */
#define BEAT_SHARE 0.02
#define LEAST_BEAT_PX 5.0
#define MOST_BEAT_PX 60.0

/* err as it is, with the mirror's number and file before it. */
static enum oct_err of_mirror(const struct oct_kmap_job *run, uint32_t m, enum oct_err e,
                              const struct oct_error *why, struct oct_error *err)
{
    return oct_fail(err, e, "mirror %u (%s): %s", m + 1, run->job.inputs[m], why->text);
}

/* Before each mirror: whoever interrupts wants no files. */
static enum oct_err check_cancel(const struct oct_kmap_job *run, uint32_t m, struct oct_error *err)
{
    return *run->job.cancel
               ? oct_fail(err, OCT_E_STATE, "interrupted at mirror %u of %u", m + 1, run->n)
               : OCT_OK;
}

/* ---- reading ---- */

/* A-lines of up to MOST_BSCANS B-scans, evenly over the recording. */
static enum oct_err read_lines(const struct oct_kmap_job *run, struct oct_recording *recording,
                               struct oct_kmap_file *file, struct oct_error *err)
{
    const uint32_t m = oct_recording_n_lines(recording), n = oct_recording_n_samples(recording);
    const struct oct_span lines = oct_span_of(run->lines, m);
    const uint32_t n_lines = oct_span_count(lines);
    const uint64_t n_bscans = oct_recording_n_bscans(recording);
    const uint32_t n_taken = n_bscans < MOST_BSCANS ? (uint32_t)n_bscans : MOST_BSCANS;
    const size_t fit = MOST_LINES_BYTES / (n * sizeof(uint16_t));
    const uint32_t room = fit < MOST_LINES ? (uint32_t)fit : MOST_LINES;
    const uint32_t share = (room + n_taken - 1) / (n_taken ? n_taken : 1);
    const uint32_t each = share < n_lines ? share : n_lines;
    enum oct_err e = OCT_OK;
    bool valid;
    if (lines.last > m)
        return oct_fail(err, OCT_E_ARG, "its B-scans have %u A-lines, --lines ends at %u", m,
                        lines.last);
    struct oct_raw_frame frame = {.spectra = oct_alloc((size_t)m * n, sizeof(uint16_t)),
                                  .line_valid = oct_alloc(m, 1)};
    file->lines = oct_alloc((size_t)room * n, sizeof(uint16_t));
    for (uint32_t i = 0; i < n_taken && !e; i++) {
        e = oct_recording_read(recording, n_bscans * i / n_taken, &frame, &valid, err);
        for (uint32_t k = 0; k < each && valid && !e && file->n_lines < room; k++) {
            const uint32_t line =
                lines.first + lines.step * (uint32_t)((uint64_t)k * n_lines / each);
            if (frame.line_valid[line])
                memcpy(file->lines + (size_t)file->n_lines++ * n, frame.spectra + (size_t)line * n,
                       n * sizeof(uint16_t));
        }
    }
    free(frame.spectra);
    free(frame.line_valid);
    if (!e && file->n_lines == 0)
        return oct_fail(err, OCT_E_FORMAT, "none of its A-lines came");
    return e;
}

/* The calibration that the recording was made with, if it is the first and there is no other. */
static enum oct_err take_calibration(struct oct_kmap_job *run, struct oct_recording *recording,
                                     struct oct_error *err)
{
    struct oct_calibration recorded = {0};
    if (run->before_cal.n_wavelengths + run->before_cal.n_kmap > 0)
        return OCT_OK;
    enum oct_err e = oct_recording_calibration(recording, &recorded, err);
    if (!e && recorded.n_wavelengths + recorded.n_kmap > 0) {
        oct_calibration_finish(&run->before_cal);
        run->before_cal = recorded;
        run->before_text = "the recording's calibration";
        return OCT_OK;
    }
    oct_calibration_finish(&recorded);
    return e;
}

static enum oct_err read_file(struct oct_kmap_job *run, uint32_t m, struct oct_error *err)
{
    struct oct_config config = *run->job.config;
    struct oct_recording *recording = NULL;
    struct oct_kmap_file *file = &run->files[m];
    file->path = run->job.inputs[m];
    file->position_um = run->has_positions ? run->positions_um[m] : NAN;
    file->off_um = NAN;
    struct oct_error why = {.text = ""};
    enum oct_err e = oct_recording_open(&recording, file->path, &config, &why);
    if (e) /* names the file */
        return oct_fail(err, e, "mirror %u: %s", m + 1, why.text);
    const uint32_t n = oct_recording_n_samples(recording);
    e = read_lines(run, recording, file, &why);
    if (!e && m > 0 && n != run->geometry.n_samples)
        e = oct_fail(&why, OCT_E_FORMAT,
                     "has %u samples an A-line, mirror 1 has %u: one spectrometer at a time", n,
                     run->geometry.n_samples);
    if (!e && m == 0)
        e = oct_geometry_init(&run->geometry, n, 1, 1, 0, oct_geometry_padded(n) / 2,
                              OCT_SAMPLE_F32, &why);
    if (!e && m == 0)
        e = take_calibration(run, recording, &why);
    oct_recording_close(recording);
    return e ? of_mirror(run, m, e, &why, err) : OCT_OK;
}

static enum oct_err find_fringe(struct oct_kmap_job *run, uint32_t m, const double *background,
                                struct oct_error *err)
{
    struct oct_kmap_file *file = &run->files[m];
    struct oct_error why = {.text = ""};
    const enum oct_err e =
        oct_fringe_find(&run->fringes[m], file->lines, file->n_lines, run->geometry.n_samples,
                        background, run->job.config->camera.bits, &why);
    return e ? of_mirror(run, m, e, &why, err) : OCT_OK;
}

static enum oct_err read_files(struct oct_kmap_job *run, struct oct_error *err)
{
    enum oct_err e = oct_config_calibration(run->job.config, &run->before_cal, err);
    double *background = run->before_cal.background;
    const size_t n_background = run->before_cal.n_background;
    run->before_text = "the configuration's calibration";
    run->before_cal.background = NULL;
    run->before_cal.n_background = 0;
    for (uint32_t m = 0; m < run->n && !e; m++) {
        e = check_cancel(run, m, err);
        e = e ? e : read_file(run, m, err);
        if (!e && background && n_background != run->geometry.n_samples)
            e = oct_fail_key(err, OCT_E_CONFIG, "calibration.background",
                             "calibration.background has %zu values: the recordings have %u "
                             "samples an A-line",
                             n_background, run->geometry.n_samples);
        e = e ? e : find_fringe(run, m, background, err);
    }
    free(background);
    return e;
}

/* Two fringes close together make one band, and beat: the transform of its envelope has a lobe at
 * their distance that the same source in other recordings has not. */
static double beat_px(const struct oct_kmap_job *run, const double *place, uint32_t m)
{
    const uint32_t n = run->geometry.n_samples, p2 = run->geometry.upsampled;
    for (double d = LEAST_BEAT_PX; d < MOST_BEAT_PX; d += 0.25) {
        const double lobe = oct_source_psf(run->fringes[m].envelope, place, n, p2, d);
        double least = INFINITY;
        for (uint32_t i = 0; i < run->n && lobe > BEAT_SHARE; i++)
            if (i != m)
                least = fmin(least, oct_source_psf(run->fringes[i].envelope, place, n, p2, d));
        if (lobe > BEAT_SHARE && lobe > 4 * least)
            return d;
    }
    return NAN;
}

static enum oct_err check_beats(const struct oct_kmap_job *run, struct oct_error *err)
{
    const uint32_t n = run->geometry.n_samples;
    struct oct_error why = {.text = ""};
    enum oct_err e = OCT_OK;
    double *place = oct_alloc(n, sizeof(*place)); /* as if samples were even in k */
    for (uint32_t i = 0; i < n; i++)
        place[i] = 2.0 * i;
    for (uint32_t m = 0; m < run->n && run->n > 1; m++) {
        if ((e = check_cancel(run, m, err)))
            break;
        const double beat = beat_px(run, place, m);
        if (isnan(beat))
            continue;
        oct_fail(
            &why, OCT_E_FORMAT,
            "two fringes: its envelope beats as that of two reflectors about %.0f depth pixels "
            "apart does, and not in every recording; block the second reflector",
            beat);
        e = of_mirror(run, m, OCT_E_FORMAT, &why, err);
        break;
    }
    free(place);
    return e;
}

/* ---- reconstructions ---- */

static void mean_over_lines(const struct oct_geometry *g, const float *values, float *mean)
{
    for (uint32_t d = 0; d < g->depth; d++) {
        double sum = 0;
        for (uint32_t j = 0; j < g->n_lines; j++)
            sum += (double)values[(size_t)j * g->depth + d];
        mean[d] = (float)(sum / g->n_lines);
    }
}

/* The mean of |B|^2 over mirror m's lines: the source is taken off as a recorded background. */
static enum oct_err reconstruct(const struct oct_kmap_job *run, uint32_t m,
                                const struct oct_calibration *by, float *mean,
                                struct oct_error *err)
{
    const struct oct_kmap_file *file = &run->files[m];
    const struct oct_chain chain = {.dc = OCT_DC_FILE, .interpolation = OCT_INTERPOLATION_NUFFT};
    struct oct_geometry g = run->geometry;
    struct oct_calibration cal = *by; /* borrows its arrays */
    struct oct_plan *plan = NULL;
    cal.background = run->fringes[m].background;
    cal.n_background = g.n_samples;
    enum oct_err e = oct_geometry_init(&g, g.n_samples, file->n_lines, 1, 0, g.upsampled / 4,
                                       OCT_SAMPLE_F32, err);
    e = e ? e : oct_plan_create(&plan, &g, &cal, &chain, err);
    if (e)
        return e;
    float *values = oct_alloc((size_t)g.n_lines * g.depth, sizeof(*values));
    uint8_t *line_valid = oct_alloc(g.n_lines, 1);
    memset(line_valid, 1, g.n_lines);
    e = oct_one_bscan(plan, run->job.config, file->lines, line_valid, values, err);
    mean_over_lines(&g, values, mean);
    free(line_valid);
    free(values);
    oct_plan_destroy(plan);
    return e;
}

/* From the outermost pixel above half the largest to that on the other side, beyond what is left of
 * the source: a fringe that is smeared has several tops. */
static void outer_half(struct oct_kmap_file *file, uint32_t depth)
{
    double first, last;
    double *values = oct_alloc(depth, sizeof(*values));
    for (uint32_t d = OCT_PEAK_FIRST_PX; d < depth; d++)
        values[d] = (double)file->before[d];
    oct_source_half(values, depth, &first, &last);
    file->before_fwhm_px = last - first;
    file->before_px = 0.5 * (first + last);
    free(values);
}

/* Whether the source of every mirror explains so high a lobe so far off. */
static bool is_explained(const struct oct_kmap_job *run, const struct oct_peak *peak)
{
    const double off = peak->side_lobe_px - peak->depth_px;
    double least = INFINITY;
    for (uint32_t m = 0; m < run->n; m++)
        least = fmin(least, oct_source_psf(run->fringes[m].envelope, run->place,
                                           run->geometry.n_samples, run->geometry.upsampled, off));
    return 10 * log10(least) > peak->side_lobe_db - 3;
}

/* Depth pixels are too coarse for a line that fills its padding: the sum of contract section 6 over
 * the fringe's coherent average, between pixels. */
static void measure_between(struct oct_kmap_job *run, uint32_t m)
{
    const uint32_t n = run->geometry.n_samples;
    const struct oct_fringe *f = &run->fringes[m];
    struct oct_peak *peak = &run->files[m].peak;
    double *re = oct_alloc(2 * (size_t)n, sizeof(*re)), *im = re + n, at;
    for (uint32_t i = 0; i < n; i++) {
        re[i] = f->average[i] * cos(run->kmap.theta[i]);
        im[i] = -run->kmap.mirrors[m].side * f->average[i] * sin(run->kmap.theta[i]);
    }
    peak->fwhm_px =
        oct_source_peak_px(re, im, run->place, n, run->geometry.upsampled, peak->depth_px, &at);
    peak->depth_px = at;
    free(re);
}

static enum oct_err measure(struct oct_kmap_job *run, uint32_t m, struct oct_error *err)
{
    struct oct_kmap_file *file = &run->files[m];
    const struct oct_peak_search search = {OCT_PEAK_FIRST_PX, file->n_lines, OCT_PEAK_MIN_SNR_DB};
    const uint32_t depth = run->geometry.depth;
    if (oct_peak_find(&file->peak, file->after, depth, &search) != OCT_PEAK_FOUND)
        return oct_fail(err, OCT_E_FORMAT, "with the k map found there is no peak: %s",
                        oct_peak_state_text(file->peak.state));
    if (file->peak.side_lobe_stands_out && file->peak.side_lobe_db > OCT_FRINGE_SECOND_DB &&
        !is_explained(run, &file->peak))
        return oct_fail(
            err, OCT_E_FORMAT,
            "two fringes: peaks at depths %.1f and %.1f px, %.1f dB between them; block "
            "the second reflector",
            file->peak.depth_px, file->peak.side_lobe_px, -file->peak.side_lobe_db);
    file->limit_px = oct_source_limit_px(run->fringes[m].envelope, run->place,
                                         run->geometry.n_samples, run->geometry.upsampled);
    outer_half(file, depth);
    if (run->geometry.n_samples > MOST_FILLED * run->geometry.padded)
        measure_between(run, m);
    return OCT_OK;
}

static enum oct_err reconstruct_all(struct oct_kmap_job *run, struct oct_error *err)
{
    const uint32_t depth = run->geometry.depth;
    struct oct_calibration other = {0}; /* theta turned around */
    struct oct_error why = {.text = ""};
    enum oct_err e = oct_kmap_calibration(&run->kmap, &run->geometry, -1, &other, err);
    for (uint32_t m = 0; m < run->n && !e; m++) {
        struct oct_kmap_file *file = &run->files[m];
        if ((e = check_cancel(run, m, err)))
            break;
        file->before = oct_alloc(2 * (size_t)depth, sizeof(float));
        file->after = file->before + depth;
        e = reconstruct(run, m, &run->before_cal, file->before, &why);
        e = e ? e
              : reconstruct(run, m, run->kmap.mirrors[m].side > 0 ? &run->cal : &other, file->after,
                            &why);
        e = e ? e : measure(run, m, &why);
        if (e)
            of_mirror(run, m, e, &why, err);
    }
    oct_calibration_finish(&other);
    return e;
}

/* ---- what follows from the map ---- */

struct oct_kmap_line oct_kmap_fit_line(const double *x, const double *y, const double *weight,
                                       size_t n)
{
    struct oct_kmap_line line = {0};
    double sum = 0, xy = 0;
    for (size_t i = 0; i < n; i++) {
        sum += weight[i];
        line.mean_x += weight[i] * x[i];
        line.mean_y += weight[i] * y[i];
    }
    line.mean_x /= sum;
    line.mean_y /= sum;
    for (size_t i = 0; i < n; i++) {
        line.xx += weight[i] * (x[i] - line.mean_x) * (x[i] - line.mean_x);
        xy += weight[i] * (x[i] - line.mean_x) * (y[i] - line.mean_y);
    }
    line.slope = xy / line.xx;
    return line;
}

/* How far the coordinates of equal steps lie from the straight line through them, in the light. */
static double curvature_px(const struct oct_kmap *kmap)
{
    double *sample = oct_alloc(kmap->n_samples, sizeof(*sample)), most = 0;
    const uint32_t first = kmap->first, last = kmap->last;
    for (uint32_t i = first; i <= last; i++)
        sample[i] = i;
    const struct oct_kmap_line line =
        oct_kmap_fit_line(kmap->k + first, sample + first, kmap->weight + first, last - first + 1);
    for (uint32_t i = first; i <= last; i++)
        most = fmax(most, fabs(oct_kmap_off_line(&line, kmap->k[i], i)));
    free(sample);
    return most;
}

static enum oct_err find_places(struct oct_kmap_job *run, struct oct_error *err)
{
    const struct oct_geometry *g = &run->geometry;
    struct oct_k_grid grid = {0};
    run->place = oct_alloc(g->n_samples, sizeof(double));
    enum oct_err e = oct_k_grid_init(&grid, g, &run->cal, err);
    for (uint32_t i = 0; i < g->n_samples && !e; i++)
        run->place[i] = oct_k_grid_place(&grid, 2 * (g->left + i));
    oct_k_grid_finish(&grid);
    return e;
}

/* Optical path a depth pixel by the wavelengths of the calibration before, if it has any: the slope
 * of k over the places found. */
static enum oct_err scale_by_wavelengths(struct oct_kmap_job *run, struct oct_error *err)
{
    const struct oct_geometry *g = &run->geometry;
    struct oct_k_grid grid = {0};
    if (run->before_cal.n_wavelengths == 0)
        return OCT_OK;
    const enum oct_err e = oct_k_grid_init(&grid, g, &run->before_cal, err);
    double *k = oct_alloc(g->n_samples, sizeof(*k));
    for (uint32_t i = 0; i < g->n_samples && !e; i++)
        k[i] = 2 * PI / grid.axis[2 * (g->left + i)];
    if (!e) {
        const double slope = oct_kmap_fit_line(run->place, k, run->kmap.weight, g->n_samples).slope;
        run->axial_um = 1e-3 * PI / (fabs(slope) * g->upsampled);
        run->axial_text = "by the wavelengths";
    }
    free(k);
    oct_k_grid_finish(&grid);
    return e;
}

/* By positions: the straight line of position over depth, on either side of zero delay. What they
 * do not say well enough leaves the scale as it is. */
static void scale_by_positions(struct oct_kmap_job *run)
{
    double depth[OCT_KMAP_MOST_MIRRORS], ones[OCT_KMAP_MOST_MIRRORS], square = 0;
    if (!run->has_positions || run->n < 2)
        return;
    for (uint32_t m = 0; m < run->n; m++) {
        depth[m] = run->kmap.mirrors[m].side * run->files[m].peak.depth_px;
        ones[m] = 1;
    }
    const struct oct_kmap_line line = oct_kmap_fit_line(depth, run->positions_um, ones, run->n);
    for (uint32_t m = 0; m < run->n; m++) {
        run->files[m].off_um = oct_kmap_off_line(&line, depth[m], run->positions_um[m]);
        square += run->files[m].off_um * run->files[m].off_um / run->n;
    }
    if (run->n > 2) { /* two lie on any line */
        run->axial_rms_um = sqrt(square);
        run->axial_error = sqrt(square * run->n / ((run->n - 2) * line.xx)) / fabs(line.slope);
    }
    if (run->axial_error > OCT_KMAP_MOST_AXIAL_ERROR)
        return;
    run->axial_um = fabs(line.slope);
    run->axial_text = "by the positions";
}

/* What is said of each mirror beside what was measured. */
static void derive_numbers(struct oct_kmap_job *run)
{
    const double um = run->axial_um;
    for (uint32_t m = 0; m < run->n; m++) {
        struct oct_kmap_file *f = &run->files[m];
        f->cycles = run->fringes[m].cycles;
        f->contrast_db = run->fringes[m].contrast_db;
        f->coherence = run->fringes[m].coherence;
        f->residual_rad = run->kmap.mirrors[m].rms_rad;
        f->side = run->kmap.mirrors[m].side;
        f->ratio = f->peak.fwhm_px / f->limit_px;
        f->fwhm_um = f->peak.fwhm_px * um;
        f->limit_um = f->limit_px * um;
        /* Depths before and after are those of one place, on two scales. */
        f->before_fwhm_um = f->before_fwhm_px * um * f->peak.depth_px / f->before_px;
    }
}

/* ---- all of it ---- */

static enum oct_err find_map(struct oct_kmap_job *run, struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    uint32_t which = run->n;
    enum oct_err e = oct_kmap_find(&run->kmap, run->fringes, run->n, &run->setup, &which, &why);
    if (e)
        return which < run->n ? of_mirror(run, which, e, &why, err)
                              : oct_fail(err, e, "%s", why.text);
    e = oct_kmap_calibration(&run->kmap, &run->geometry, 1, &run->cal, err);
    e = e ? e : find_places(run, err);
    oct_kmap_coefficients(&run->kmap, run->coefficient, &run->coefficient_rms_rad);
    run->curved_px = curvature_px(&run->kmap);
    return e;
}

/* Without any calibration before: samples are taken to be even in k. */
static void even_before(struct oct_kmap_job *run)
{
    if (run->before_cal.n_wavelengths + run->before_cal.n_kmap > 0)
        return;
    oct_calibration_finish(&run->before_cal);
    run->before_cal.kmap_px = oct_alloc(2, sizeof(double));
    run->before_cal.n_kmap = 2;
    run->before_cal.kmap_px[1] = run->geometry.n_samples - 1;
    run->before_text = "no calibration (samples even in k)";
}

enum oct_err oct_kmap_run(struct oct_kmap_job *job, struct oct_error *err)
{
    struct oct_kmap_job *run = job;
    run->axial_um = run->axial_rms_um = run->axial_error = NAN;
    run->files = oct_alloc(run->n, sizeof(*run->files));
    run->fringes = oct_alloc(run->n, sizeof(*run->fringes));
    enum oct_err e = read_files(run, err);
    if (!e)
        even_before(run);
    e = e ? e : check_beats(run, err);
    e = e ? e : find_map(run, err);
    e = e ? e : scale_by_wavelengths(run, err);
    e = e ? e : reconstruct_all(run, err);
    e = e ? e : check_cancel(run, run->n - 1, err);
    if (e)
        return e;
    scale_by_positions(run);
    derive_numbers(run);
    return OCT_OK;
}
