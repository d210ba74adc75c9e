#include "tools/analyse/calibrate_report.h"

#include "analysis/calibrate/peak.h"
#include "plot/plot.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AROUND_PX 24.0 /* of a peak, in the plot of windows */
#define LEAST_DB (-90.0)

static bool is_found(const struct oct_measure *m)
{
    return !m->why && m->configured.is_there && m->configured.mirror.state == OCT_MIRROR_FOUND;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

void oct_calibrate_report_init(struct oct_calibrate_report *report, const struct oct_measure *files,
                               unsigned n)
{
    struct oct_rolloff_point points[OCT_ROLLOFF_MOST_POINTS];
    unsigned n_points = 0;

    for (unsigned i = 0; i < n && n_points < OCT_ROLLOFF_MOST_POINTS; i++)
        if (is_found(&files[i])) {
            const struct oct_mirror *m = &files[i].configured.mirror;
            points[n_points++] = (struct oct_rolloff_point){
                .depth_px = m->depth_px,
                .peak_db = m->peak_db,
                .fwhm_px = m->fwhm_px,
                .snr_db = m->snr_db,
            };
        }
    *report = (struct oct_calibrate_report){files, n, oct_rolloff_fit(points, n_points, 0)};
}

/* ---- text ---- */

/* "%8.2f", or "-" where it is not known. */
static void print_number(double value, int width, int decimals)
{
    if (isfinite(value))
        printf(" %*.*f", width, decimals, value);
    else
        printf(" %*s", width, "-");
}

static void print_peak(const char *name, const struct oct_measure *m,
                       const struct oct_measure_peak *peak)
{
    const struct oct_mirror *mirror = &peak->mirror;

    printf("  %-16s", name);
    if (mirror->state != OCT_MIRROR_FOUND) {
        printf(" %s\n", oct_mirror_state_names[mirror->state]);
        return;
    }
    print_number(mirror->fwhm_px, 9, 3);
    print_number(mirror->fwhm_px * m->axial_um, 9, 3);
    print_number(mirror->fwhm_px / m->limit_px, 9, 3);
    print_number(mirror->side_lobe_db, 10, 1);
    print_number(mirror->side_lobe_px, 9, 1);
    print_number(mirror->peak_db, 9, 2);
    print_number(mirror->snr_db, 8, 1);
    printf("\n");
}

static void print_file(const struct oct_measure *m, unsigned number)
{
    const struct oct_mirror *mirror = &m->configured.mirror;

    printf("%u %s: ", number, m->path);
    if (m->why) {
        printf("%s\n\n", m->why);
        return;
    }
    if (mirror->state != OCT_MIRROR_FOUND) {
        printf("no peak to measure: %s\n\n", oct_mirror_state_names[mirror->state]);
        return;
    }
    printf("depth %.2f px", mirror->depth_px);
    if (isfinite(m->axial_um))
        printf(", %.2f um", mirror->depth_px * m->axial_um);
    printf("; amplitude %.4g counts; limit of the source %.3f px", pow(10, mirror->peak_db / 20),
           m->limit_px);
    if (isfinite(m->axial_um))
        printf(", %.3f um", m->limit_px * m->axial_um);
    printf("; %u A-lines%s\n", m->n_lines, m->is_at_rest ? ", at rest" : "");
    printf("  %-16s %9s %9s %9s %10s %9s %9s %8s\n", "window", "width px", "um", "of limit",
           "side lobe", "at px", "peak dB", "SNR dB");
    print_peak("as configured", m, &m->configured);
    for (unsigned w = 0; w < OCT_MEASURE_WINDOWS; w++)
        print_peak(oct_measure_window_names[w], m, &m->windows[w]);
    printf("\n");
}

static void print_rolloff(const struct oct_calibrate_report *report)
{
    const struct oct_rolloff_line *line = &report->rolloff;
    double axial_um = NAN;

    printf("roll-off\n  %9s %10s %9s %9s %8s\n", "depth px", "um", "peak dB", "of limit", "SNR dB");
    for (unsigned i = 0; i < report->n; i++) {
        const struct oct_measure *m = &report->files[i];
        const struct oct_mirror *mirror = &m->configured.mirror;
        if (!is_found(m))
            continue;
        axial_um = m->axial_um;
        printf(" ");
        print_number(mirror->depth_px, 9, 2);
        print_number(mirror->depth_px * m->axial_um, 10, 2);
        print_number(mirror->peak_db, 9, 2);
        print_number(mirror->fwhm_px / m->limit_px, 9, 3);
        print_number(mirror->snr_db, 8, 1);
        printf("\n");
    }
    if (!isfinite(line->db_per_px)) {
        printf("  three mirrors or more at different depths are needed for a line\n");
        return;
    }
    printf("  %.2f dB per 100 px", 100 * line->db_per_px);
    if (isfinite(axial_um))
        printf(", %.2f dB/mm", 1e3 * line->db_per_px / axial_um);
    if (isfinite(line->minus_6db_px))
        printf("; 6 dB lower at %.0f px", line->minus_6db_px);
    if (isfinite(line->minus_6db_px) && isfinite(axial_um))
        printf(", %.3f mm", 1e-3 * line->minus_6db_px * axial_um);
    printf("\n");
}

void oct_calibrate_report_text(const struct oct_calibrate_report *report)
{
    for (unsigned i = 0; i < report->n; i++)
        print_file(&report->files[i], i + 1);
    print_rolloff(report);
}

/* ---- JSON ---- */

static cJSON *peak_json(const char *window, const struct oct_measure *m,
                        const struct oct_measure_peak *peak)
{
    const struct oct_mirror *mirror = &peak->mirror;
    cJSON *o = cJSON_CreateObject();

    if (window)
        cJSON_AddStringToObject(o, "window", window);
    cJSON_AddStringToObject(o, "state", oct_mirror_state_names[mirror->state]);
    oct_command_add_number(o, "depth_px", mirror->depth_px);
    oct_command_add_number(o, "depth_um", mirror->depth_px * m->axial_um);
    oct_command_add_number(o, "amplitude_counts", pow(10, mirror->peak_db / 20));
    oct_command_add_number(o, "peak_db", mirror->peak_db);
    oct_command_add_number(o, "fwhm_px", mirror->fwhm_px);
    oct_command_add_number(o, "fwhm_um", mirror->fwhm_px * m->axial_um);
    oct_command_add_number(o, "of_limit", mirror->fwhm_px / m->limit_px);
    oct_command_add_number(o, "side_lobe_db", mirror->side_lobe_db);
    oct_command_add_number(o, "side_lobe_px", mirror->side_lobe_px);
    oct_command_add_number(o, "snr_db", mirror->snr_db);
    oct_command_add_number(o, "dynamic_range_db", mirror->dynamic_range_db);
    oct_command_add_number(o, "tilt_px", mirror->tilt_px);
    return o;
}

static cJSON *file_json(const struct oct_measure *m, unsigned number)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "file", m->path);
    cJSON_AddNumberToObject(o, "number", number);
    if (m->why) {
        cJSON_AddStringToObject(o, "why", m->why);
        return o;
    }
    cJSON_AddNumberToObject(o, "lines", m->n_lines);
    cJSON_AddStringToObject(o, "interpolation", m->interpolation);
    cJSON_AddBoolToObject(o, "at_rest", m->is_at_rest);
    cJSON_AddBoolToObject(o, "has_background", m->has_background);
    oct_command_add_number(o, "axial_um", m->axial_um);
    oct_command_add_number(o, "limit_px", m->limit_px);
    oct_command_add_number(o, "limit_um", m->limit_px * m->axial_um);
    cJSON_AddItemToObject(o, "configured", peak_json(NULL, m, &m->configured));
    cJSON *windows = cJSON_AddArrayToObject(o, "windows");
    for (unsigned w = 0; w < OCT_MEASURE_WINDOWS; w++)
        cJSON_AddItemToArray(windows, peak_json(oct_measure_window_names[w], m, &m->windows[w]));
    return o;
}

bool oct_calibrate_report_json(const struct oct_calibrate_report *report)
{
    const struct oct_rolloff_line *line = &report->rolloff;
    cJSON *o = cJSON_CreateObject(), *files = cJSON_AddArrayToObject(o, "files");

    for (unsigned i = 0; i < report->n; i++)
        cJSON_AddItemToArray(files, file_json(&report->files[i], i + 1));
    cJSON *rolloff = cJSON_AddObjectToObject(o, "rolloff");
    cJSON_AddNumberToObject(rolloff, "mirrors", line->n);
    oct_command_add_number(rolloff, "zero_db", line->zero_db);
    oct_command_add_number(rolloff, "db_per_100px", 100 * line->db_per_px);
    oct_command_add_number(rolloff, "minus_6db_px", line->minus_6db_px);
    oct_command_add_number(rolloff, "rms_db", line->rms_db);
    const bool is_printed = oct_command_print_json(o);
    cJSON_Delete(o);
    return is_printed;
}

/* ---- plots ---- */

/* dB of n intensities of a line from `first` on, relative to `top_db`. */
static void set_series(double *x, double *y, const double *line, uint32_t first, uint32_t n,
                       double x_zero, double top_db)
{
    for (uint32_t i = 0; i < n; i++) {
        x[i] = first + i - x_zero;
        y[i] = fmax(10 * log10(fmax(line[first + i], 1e-30)) - top_db, LEAST_DB);
    }
}

enum oct_err oct_calibrate_report_peaks(void *context, const char *path, bool force,
                                        struct oct_error *err)
{
    const struct oct_calibrate_report *report = context;
    struct oct_plot_series *series = calloc(report->n, sizeof(*series));
    size_t n_all = 0, at = 0;
    double top_db = -INFINITY;
    unsigned n = 0;

    for (unsigned i = 0; i < report->n; i++)
        if (is_found(&report->files[i])) {
            n_all += report->files[i].depth;
            top_db = fmax(top_db, report->files[i].configured.mirror.peak_db);
        }
    struct oct_plot_mark *marks = calloc(report->n, sizeof(*marks));
    double *x = calloc(n_all ? 2 * n_all : 1, sizeof(*x)), *y = x ? x + n_all : NULL;
    if (!series || !marks || !x) {
        free(series);
        free(marks);
        free(x);
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    }
    for (unsigned i = 0; i < report->n; i++) {
        const struct oct_measure *m = &report->files[i];
        if (!is_found(m))
            continue;
        const uint32_t first = OCT_PEAK_FIRST_PX, n_line = m->depth - first;
        set_series(x + at, y + at, m->configured.line, first, n_line, 0, top_db);
        marks[n] = (struct oct_plot_mark){m->configured.mirror.depth_px,
                                          m->configured.mirror.peak_db - top_db, name_of(m->path)};
        series[n++] = (struct oct_plot_series){x + at, y + at, n_line, NULL, OCT_PLOT_LINE};
        at += n_line;
    }
    const struct oct_plot_lines plot = {
        .title = "Mirrors, as configured",
        .x_label = "depth, px",
        .y_label = "dB below the highest peak",
        .series = series,
        .n_series = n,
        .marks = marks,
        .n_marks = n,
    };
    const enum oct_err e = oct_plot_write_lines(path, force, &plot, err);
    free(series);
    free(marks);
    free(x);
    return e;
}

/* The file whose depth has as many below it as above; NULL: there is none. */
static const struct oct_measure *middle_of(const struct oct_calibrate_report *report)
{
    unsigned n_found = 0;

    for (unsigned i = 0; i < report->n; i++)
        n_found += is_found(&report->files[i]);
    for (unsigned i = 0; i < report->n; i++) {
        unsigned n_below = 0;
        for (unsigned j = 0; j < report->n; j++)
            n_below += is_found(&report->files[j]) &&
                       (report->files[j].configured.mirror.depth_px <
                            report->files[i].configured.mirror.depth_px ||
                        (j < i && report->files[j].configured.mirror.depth_px ==
                                      report->files[i].configured.mirror.depth_px));
        if (is_found(&report->files[i]) && n_below == n_found / 2)
            return &report->files[i];
    }
    return NULL;
}

enum oct_err oct_calibrate_report_windows(void *context, const char *path, bool force,
                                          struct oct_error *err)
{
    const struct oct_measure *m = middle_of(context);
    struct oct_plot_series series[OCT_MEASURE_WINDOWS];
    const uint32_t room = (uint32_t)(2 * AROUND_PX) + 2;
    double *x = calloc(2 * OCT_MEASURE_WINDOWS * (size_t)room, sizeof(*x));
    char title[128] = "Windows: no mirror was found";
    unsigned n = 0;

    if (!x)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    for (unsigned w = 0; m && w < OCT_MEASURE_WINDOWS; w++) {
        const struct oct_measure_peak *peak = &m->windows[w];
        if (peak->mirror.state != OCT_MIRROR_FOUND)
            continue;
        const double centre = peak->mirror.depth_px;
        const uint32_t first = (uint32_t)fmax(centre - AROUND_PX, 0);
        const uint32_t last = (uint32_t)fmin(centre + AROUND_PX, m->depth - 1.0);
        double *to = x + 2 * (size_t)room * w;
        set_series(to, to + room, peak->line, first, last - first + 1, centre,
                   peak->mirror.peak_db);
        series[n++] = (struct oct_plot_series){to, to + room, last - first + 1,
                                               oct_measure_window_names[w], OCT_PLOT_LINE};
    }
    if (m)
        snprintf(title, sizeof(title), "Windows, %.60s at %.1f px", name_of(m->path),
                 m->configured.mirror.depth_px);
    const struct oct_plot_lines plot = {
        .title = title,
        .x_label = "px from the peak",
        .y_label = "dB below the peak",
        .series = series,
        .n_series = n,
    };
    const enum oct_err e = oct_plot_write_lines(path, force, &plot, err);
    free(x);
    return e;
}
