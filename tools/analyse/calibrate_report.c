/* octctl calibrate report: what recordings of a mirror show with a calibration. */
#include "analysis/calibrate/peak.h"
#include "analysis/rolloff/rolloff.h"
#include "formats/result_files.h"
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/analyse/calibrate_measure.h"
#include "tools/analyse/job.h"
#include "tools/commands.h"
#include "tools/picture_options.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FILES 64
#define AROUND_PX 24.0 /* of a peak, in the plot of windows */
#define LEAST_DB (-90.0)

struct report_options {
    const char *picture, *windows, *pixel_um;
    struct oct_job_options job;
};

struct report {
    struct oct_job job;
    struct report_options given;
    double axial_um;           /* NaN: not given */
    struct oct_measure *files; /* [n] */
    unsigned n;
    struct oct_rolloff_line rolloff; /* of the configured chain; NaN with fewer than 3 depths */
};

static bool is_found(const struct oct_measure *m)
{
    return !m->why && m->configured.is_there && m->configured.mirror.state == OCT_MIRROR_FOUND;
}

/* ---- what is found ---- */

#define P struct oct_measure_peak
static const struct oct_result_field peak_fields[] = {
    {OCT_RESULT("window", P, window), .is_optional = true},
    {OCT_RESULT_NAMED("state", P, mirror.state, oct_mirror_state_names)},
    {OCT_RESULT("depth_px", P, mirror.depth_px)},
    {OCT_RESULT("depth_um", P, depth_um)},
    {OCT_RESULT("amplitude_counts", P, amplitude_counts)},
    {OCT_RESULT("peak_db", P, mirror.peak_db)},
    {OCT_RESULT("fwhm_px", P, mirror.fwhm_px)},
    {OCT_RESULT("fwhm_um", P, fwhm_um)},
    {OCT_RESULT("of_limit", P, of_limit)},
    {OCT_RESULT("side_lobe_db", P, mirror.side_lobe_db)},
    {OCT_RESULT("side_lobe_px", P, mirror.side_lobe_px)},
    {OCT_RESULT("snr_db", P, mirror.snr_db)},
    {OCT_RESULT("dynamic_range_db", P, mirror.dynamic_range_db)},
    {OCT_RESULT("tilt_px", P, mirror.tilt_px)},
};
#undef P
static const struct oct_result_fields all_peak_fields = OCT_RESULT_FIELDS(peak_fields);

#define F struct oct_measure
static const struct oct_result_field file_fields[] = {
    {OCT_RESULT("lines", F, n_lines)},      {OCT_RESULT("interpolation", F, interpolation)},
    {OCT_RESULT("at_rest", F, is_at_rest)}, {OCT_RESULT("has_background", F, has_background)},
    {OCT_RESULT("axial_um", F, axial_um)},  {OCT_RESULT("limit_px", F, limit_px)},
    {OCT_RESULT("limit_um", F, limit_um)},
};
#undef F
static const struct oct_result_fields all_file_fields = OCT_RESULT_FIELDS(file_fields);

#define L struct oct_rolloff_line
static const struct oct_result_field rolloff_fields[] = {
    {OCT_RESULT("mirrors", L, n)},
    {OCT_RESULT("zero_db", L, zero_db)},
    {OCT_RESULT("minus_6db_px", L, minus_6db_px)},
    {OCT_RESULT("rms_db", L, rms_db)},
};
#undef L
static const struct oct_result_fields all_rolloff_fields = OCT_RESULT_FIELDS(rolloff_fields);

/* ---- the work ---- */

static void init_report(void *job)
{
    ((struct report *)job)->axial_um = NAN;
}

static int read_given(void *job)
{
    struct report *r = job;
    return oct_picture_pixel_um(r->job.name, r->given.pixel_um, 1, &r->axial_um);
}

static void fit_rolloff(struct report *r)
{
    struct oct_rolloff_point points[OCT_ROLLOFF_MOST_POINTS];
    unsigned n = 0;
    for (unsigned i = 0; i < r->n && n < OCT_ROLLOFF_MOST_POINTS; i++) {
        const struct oct_mirror *m = &r->files[i].configured.mirror;
        if (is_found(&r->files[i]))
            points[n++] = (struct oct_rolloff_point){.depth_px = m->depth_px,
                                                     .peak_db = m->peak_db,
                                                     .fwhm_px = m->fwhm_px,
                                                     .snr_db = m->snr_db};
    }
    r->rolloff = oct_rolloff_fit(points, n, 0);
}

static enum oct_err measure_all(void *job, struct oct_error *err)
{
    struct report *r = job;
    r->n = r->job.n_inputs;
    r->files = oct_alloc(r->n, sizeof(*r->files));
    for (unsigned i = 0; i < r->n; i++) {
        struct oct_error why = {0};
        const enum oct_err e =
            oct_measure_init(&r->files[i], r->job.inputs[i], r->job.config, r->axial_um, &why);
        if (e)
            return oct_fail(err, e, "mirror %u: %s", i + 1, why.text);
        if (!is_found(&r->files[i]))
            r->job.status = 1;
    }
    fit_rolloff(r);
    return OCT_OK;
}

/* ---- what is said ---- */

/* One line for each recording that is no good mirror. */
static void blame(const void *job)
{
    const struct report *r = job;
    for (unsigned i = 0; i < r->n; i++) {
        const struct oct_measure *m = &r->files[i];
        if (m->why)
            fprintf(stderr, "octctl %s: mirror %u (%s): %s\n", r->job.name, i + 1, m->path, m->why);
        else if (!is_found(m))
            fprintf(stderr, "octctl %s: mirror %u (%s): no peak to measure: %s\n", r->job.name,
                    i + 1, m->path, oct_mirror_state_names[m->configured.mirror.state]);
    }
}

/* "%8.2f", or "-" where it is not known. */
static void print_number(double value, int width, int decimals)
{
    if (isfinite(value))
        printf(" %*.*f", width, decimals, value);
    else
        printf(" %*s", width, "-");
}

static void print_peak(const struct oct_measure_peak *peak)
{
    const struct oct_mirror *mirror = &peak->mirror;
    printf("  %-16s", peak->window ? peak->window : "as configured");
    if (mirror->state != OCT_MIRROR_FOUND) {
        printf(" %s\n", oct_mirror_state_names[mirror->state]);
        return;
    }
    print_number(mirror->fwhm_px, 9, 3);
    print_number(peak->fwhm_um, 9, 3);
    print_number(peak->of_limit, 9, 3);
    print_number(mirror->side_lobe_db, 10, 1);
    print_number(mirror->side_lobe_px, 9, 1);
    print_number(mirror->peak_db, 9, 2);
    print_number(mirror->snr_db, 8, 1);
    printf("\n");
}

static void print_file(const struct oct_measure *m, unsigned number)
{
    printf("%u %s: ", number, m->path);
    if (!is_found(m)) {
        printf("%s%s\n\n", m->why ? "" : "no peak to measure: ",
               m->why ? m->why : oct_mirror_state_names[m->configured.mirror.state]);
        return;
    }
    oct_result_print(stdout,
                     "depth {depth_px:.2f} px[, {depth_um:.2f} um]; amplitude "
                     "{amplitude_counts:.4g} counts",
                     &all_peak_fields, &m->configured);
    printf("; limit of the source %.3f px", m->limit_px);
    if (isfinite(m->axial_um))
        printf(", %.3f um", m->limit_um);
    printf("; %u A-lines%s\n", m->n_lines, m->is_at_rest ? ", at rest" : "");
    printf("  %-16s %9s %9s %9s %10s %9s %9s %8s\n", "window", "width px", "um", "of limit",
           "side lobe", "at px", "peak dB", "SNR dB");
    print_peak(&m->configured);
    for (unsigned w = 0; w < OCT_MEASURE_WINDOWS; w++)
        print_peak(&m->windows[w]);
    printf("\n");
}

static void print_rolloff(const struct report *report)
{
    const struct oct_rolloff_line *line = &report->rolloff;
    double axial_um = NAN;

    printf("roll-off\n  %9s %10s %9s %9s %8s\n", "depth px", "um", "peak dB", "of limit", "SNR dB");
    for (unsigned i = 0; i < report->n; i++) {
        const struct oct_measure *m = &report->files[i];
        const struct oct_measure_peak *p = &m->configured;
        if (!is_found(m))
            continue;
        axial_um = m->axial_um;
        printf(" ");
        print_number(p->mirror.depth_px, 9, 2);
        print_number(p->depth_um, 10, 2);
        print_number(p->mirror.peak_db, 9, 2);
        print_number(p->of_limit, 9, 3);
        print_number(p->mirror.snr_db, 8, 1);
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

static void print_all(const void *job)
{
    const struct report *r = job;
    for (unsigned i = 0; i < r->n; i++)
        print_file(&r->files[i], i + 1);
    print_rolloff(r);
}

static void add_file(cJSON *o, const struct oct_measure *m, unsigned number)
{
    const struct oct_result_rows windows = {.fields = &all_peak_fields,
                                            .n = OCT_MEASURE_WINDOWS,
                                            .row_bytes = sizeof(m->windows[0]),
                                            .context = m->windows};
    cJSON_AddStringToObject(o, "file", m->path);
    cJSON_AddNumberToObject(o, "number", number);
    if (m->why) {
        cJSON_AddStringToObject(o, "why", m->why);
        return;
    }
    oct_result_json(o, &all_file_fields, m);
    oct_result_json(cJSON_AddObjectToObject(o, "configured"), &all_peak_fields, &m->configured);
    oct_result_json_rows(o, "windows", &windows);
}

static void fill_json(const void *job, cJSON *tree)
{
    const struct report *r = job;
    cJSON *files = cJSON_AddArrayToObject(tree, "files");
    for (unsigned i = 0; i < r->n; i++) {
        cJSON *file = cJSON_CreateObject();
        add_file(file, &r->files[i], i + 1);
        cJSON_AddItemToArray(files, file);
    }
    cJSON *rolloff = cJSON_AddObjectToObject(tree, "rolloff");
    oct_result_json(rolloff, &all_rolloff_fields, &r->rolloff);
    oct_command_add_number(rolloff, "db_per_100px", 100 * r->rolloff.db_per_px);
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

/* The A-lines of all files. */
static enum oct_err draw_peaks(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct report *report = context;
    struct oct_plot_series *series = oct_alloc(report->n, sizeof(*series));
    size_t n_all = 0, at = 0;
    double top_db = -INFINITY;
    unsigned n = 0;

    for (unsigned i = 0; i < report->n; i++)
        if (is_found(&report->files[i])) {
            n_all += report->files[i].depth;
            top_db = fmax(top_db, report->files[i].configured.mirror.peak_db);
        }
    struct oct_plot_mark *marks = oct_alloc(report->n, sizeof(*marks));
    double *x = oct_alloc(2 * n_all, sizeof(*x)), *y = x + n_all;
    for (unsigned i = 0; i < report->n; i++) {
        const struct oct_measure *m = &report->files[i];
        if (!is_found(m))
            continue;
        const uint32_t first = OCT_PEAK_FIRST_PX, n_line = m->depth - first;
        set_series(x + at, y + at, m->configured.line, first, n_line, 0, top_db);
        marks[n] =
            (struct oct_plot_mark){m->configured.mirror.depth_px,
                                   m->configured.mirror.peak_db - top_db, oct_job_base(m->path)};
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
static const struct oct_measure *middle_of(const struct report *report)
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

/* The peak of the file whose depth is in the middle with every window. */
static enum oct_err draw_windows(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct oct_measure *m = middle_of(context);
    struct oct_plot_series series[OCT_MEASURE_WINDOWS];
    const uint32_t room = (uint32_t)(2 * AROUND_PX) + 2;
    double *x = oct_alloc(2 * OCT_MEASURE_WINDOWS * (size_t)room, sizeof(*x));
    char title[128] = "Windows: no mirror was found";
    unsigned n = 0;

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
        snprintf(title, sizeof(title), "Windows, %.60s at %.1f px", oct_job_base(m->path),
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

/* ---- the command ---- */

static enum oct_err list_files(void *job, struct oct_error *err)
{
    struct report *r = job;
    (void)err;
    oct_job_add(&r->job, r->given.picture, draw_peaks, r);
    oct_job_add(&r->job, r->given.windows, draw_windows, r);
    return OCT_OK;
}

#define AT(member) .at = offsetof(struct report_options, member)
static const struct oct_option options[] = {
    {"MIRROR...", NULL, "recordings of a mirror, a depth each", OCT_OPTION_ARGUMENT, .at = 0},
    {"--picture", "FILE", "the A-lines of all files", OCT_OPTION_TEXT, AT(picture)},
    {"--windows", "FILE", "the peak of the middle depth with every window", OCT_OPTION_TEXT,
     AT(windows)},
    {"--pixel-um", "D",
     "optical path of a depth pixel, for um where a k map is configured, which\n"
     "has no scale",
     OCT_OPTION_TEXT, AT(pixel_um), .was = "--axial-um"},
    OCT_JOB_JSON(struct report_options, job),
    OCT_JOB_FORCE(struct report_options, job),
    {NULL},
};

static const struct oct_job_ops report_job = {
    .command = &oct_command_calibrate_report,
    .bytes = sizeof(struct report),
    .values = offsetof(struct report, given),
    .options = offsetof(struct report, given.job),
    .has_no_out = true,
    .takes_names = true,
    .may_be_killed = true,
    .init = init_report,
    .read = read_given,
    .list = list_files,
    .work = measure_all,
    .warn = blame,
    .print = print_all,
    .json = fill_json,
};

static int run_report(struct oct_config *config, int argc, char **argv)
{
    return oct_job_run(&report_job, config, argc, argv);
}

const struct oct_command oct_command_calibrate_report = {
    .name = "calibrate report",
    .usage = "MIRROR...",
    .help = "what recordings of a mirror show with the configured calibration",
    .options = options,
    .n_least = 1,
    .n_most = MOST_FILES,
    .too_few = "no recording of a mirror was named",
    .run = run_report,
};
