/* octctl trace: movement of one layer against another, in nm over time. */
#include "analysis/flow/flow.h"
#include "config/analysis.h"
#include "formats/recording.h"
#include "formats/result_files.h"
#include "formats/results.h"
#include "pipeline/plan/plan.h"
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/analyse/job.h"
#include "tools/commands.h"
#include "tools/files/recon_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EVEN 0.01 /* of the mean step: times that differ by less are even */

static const char *const reference_names[] = {"previous", "first", "linked", NULL};

struct trace_options {
    const char *upper, *lower, *reference, *csv, *png, *wavelengths;
    double noise; /* NaN: not given */
    bool m_mode;
    struct oct_job_options job;
};

/* A row of the CSV. */
struct trace_row {
    uint64_t bscan, line;
    double time_s, value, sd;
};

struct trace_job {
    struct oct_job job;
    struct trace_options given;
    struct oct_flow_slab upper, lower;
    enum oct_flow_reference reference;

    /* Of the recording. */
    struct oct_trace_settings settings;
    struct oct_flow_optics optics;
    struct oct_spacing spacing;
    uint32_t n_lines;
    double line_rate_hz;
    bool is_of_lines;
    struct oct_flow_trace *trace;
    uint64_t first_ns;

    /* What was found. */
    struct trace_row *rows; /* [n] */
    uint64_t n, n_room, n_bscans;
    double *amplitude, *hz; /* [n / 2 + 1]; NULL: times are not even */
    uint64_t n_bins;
    double range, sd, rate_hz; /* peak to peak; mean; NaN: times are not even */
    double peak_hz, peak;      /* of the spectrum */
    const char *unit, *reference_name;
};

/* ---- what is found ---- */

#define J struct trace_job
static const struct oct_result_field job_rows[] = {
    {OCT_RESULT("values", J, n), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("bscans", J, n_bscans), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("m_mode", J, is_of_lines)},
    {OCT_RESULT("reference", J, reference_name)},
    {OCT_RESULT("unit", J, unit)},
    {OCT_RESULT("peak_to_peak", J, range)},
    {OCT_RESULT("sd", J, sd)},
    {OCT_RESULT("rate_hz", J, rate_hz), .is_optional = true},
    {OCT_RESULT("peak_hz", J, peak_hz), .is_optional = true},
    {OCT_RESULT("peak", J, peak), .is_optional = true},
    {OCT_RESULT("seconds", J, job.seconds), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("out", J, job.out), .not_in = OCT_RESULT_H5},
};
#undef J
static const struct oct_result_fields job_fields = OCT_RESULT_FIELDS(job_rows);

#define R struct trace_row
static const struct oct_result_field nm_columns[] = {
    {OCT_RESULT("bscan", R, bscan)},
    {OCT_RESULT("line", R, line)},
    {OCT_RESULT("time_s", R, time_s), .unit = "s"},
    {OCT_RESULT("nm", R, value), .unit = "nm", .meaning = "positive: lower went deeper"},
    {OCT_RESULT("sd_nm", R, sd), .unit = "nm", .meaning = "what the noise makes of it"},
};
static const struct oct_result_field rad_columns[] = {
    {OCT_RESULT("bscan", R, bscan)},
    {OCT_RESULT("line", R, line)},
    {OCT_RESULT("time_s", R, time_s), .unit = "s"},
    {OCT_RESULT("rad", R, value), .unit = "rad", .meaning = "of phase: no wavelengths are known"},
    {OCT_RESULT("sd_rad", R, sd), .unit = "rad", .meaning = "what the noise makes of it"},
};
#undef R
static const struct oct_result_fields nm_fields = OCT_RESULT_FIELDS(nm_columns);
static const struct oct_result_fields rad_fields = OCT_RESULT_FIELDS(rad_columns);

static struct oct_result_rows rows_of(const struct trace_job *t)
{
    const struct oct_result_rows rows = OCT_RESULT_ROWS(nm_fields, t->rows, t->n);
    struct oct_result_rows these = rows;
    these.fields = isnan(t->optics.rad_um) ? &rad_fields : &nm_fields;
    return these;
}

/* ---- options ---- */

static void init_options(void *job)
{
    ((struct trace_job *)job)->given.noise = NAN;
}

static int read_slab(struct trace_job *t, const char *option, const char *text,
                     struct oct_flow_slab *slab)
{
    struct oct_error err;
    if (!oct_flow_slab_parse(slab, text ? text : "", &err))
        return 0;
    return oct_command_misuse(t->job.name, "%s %s", option, err.text);
}

static int read_options(void *job)
{
    struct trace_job *t = job;
    const int reference = oct_option_word(t->given.reference, reference_names, 3);
    if (!t->job.out || t->job.n_inputs != 1)
        return oct_command_misuse(t->job.name, "one recording and one OUT.h5");
    if (reference < 0)
        return oct_command_misuse(t->job.name, "--reference %s: is previous, first or linked",
                                  t->given.reference);
    t->reference = (enum oct_flow_reference)reference;
    t->reference_name = reference_names[reference];
    const int status = read_slab(t, "--upper", t->given.upper, &t->upper);
    return status ? status : read_slab(t, "--lower", t->given.lower, &t->lower);
}

/* ---- B-scans ---- */

static enum oct_err begin(void *context, const struct oct_config *config,
                          const struct oct_plan *plan, struct oct_recording *recording,
                          struct oct_error *err)
{
    struct trace_job *t = context;
    struct oct_analysis_settings settings;
    (void)recording;
    oct_config_analysis(config, "trace", &settings);
    memcpy(&t->settings, settings.bytes, sizeof(t->settings));
    t->upper = t->given.upper ? t->upper : t->settings.upper;
    t->lower = t->given.lower ? t->lower : t->settings.lower;
    t->reference = t->given.reference ? t->reference : t->settings.reference;
    t->reference_name = reference_names[t->reference];
    t->spacing = oct_config_spacing(config, plan);
    t->line_rate_hz = config->scan.line_rate_hz;
    t->n_lines = plan->geometry.n_lines;
    t->is_of_lines = t->given.m_mode || config->scan.line_repeats == t->n_lines;
    enum oct_err e = oct_flow_check_spans(&t->upper, &t->lower, plan->geometry.depth, err);
    if (!e && t->is_of_lines && t->reference == OCT_FLOW_LINKED)
        e = oct_fail(err, OCT_E_CONFIG, "trace: --reference linked is of B-scans, not of M-mode");
    e = e ? e
          : oct_flow_optics_init(&t->optics, plan, NULL, t->settings.refractive_index,
                                 t->settings.wavelengths == OCT_FLOW_FALLING, err);
    t->unit = isnan(t->optics.rad_um) ? "rad" : "nm";
    return e;
}

static enum oct_err begin_trace(struct trace_job *t, const struct oct_image_frame *bscan,
                                struct oct_error *err)
{
    const struct oct_flow_trace_setup setup = {
        .n_lines = t->n_lines,
        .depth = bscan->form->dims[1],
        .is_of_lines = t->is_of_lines,
        .reference = t->reference,
        .rad_um = t->optics.rad_um,
        .rho2 = t->optics.has_rho ? t->optics.rho2 : NULL,
        .noise = t->given.noise > 0 ? t->given.noise : 0,
        .workers = t->job.workers,
    };
    struct oct_flow_span *spans = oct_alloc(2 * (size_t)t->n_lines, sizeof(*spans));
    enum oct_err e = oct_flow_find_spans(&t->upper, &t->lower, &t->spacing, bscan, spans, err);
    e = e ? e : oct_flow_trace_create(&t->trace, &setup, spans, spans + t->n_lines, err);
    t->first_ns = bscan->info.time_ns;
    free(spans);
    return e;
}

static enum oct_err take_bscan(void *context, const struct oct_image_frame *bscan,
                               struct oct_error *err)
{
    struct trace_job *t = context;
    const uint32_t n = t->is_of_lines ? t->n_lines : 1;
    double *values = oct_alloc(2 * (size_t)n, sizeof(*values));
    enum oct_err e = t->trace ? OCT_OK : begin_trace(t, bscan, err);
    e = e ? e : oct_flow_trace_put(t->trace, bscan->complex_values, values, values + n, err);
    if (t->n + n > t->n_room) {
        t->n_room = 2 * (t->n + n);
        t->rows = oct_alloc_more(t->rows, t->n_room, sizeof(*t->rows));
    }
    for (uint32_t i = 0; i < n && !e; i++)
        t->rows[t->n++] = (struct trace_row){
            .bscan = bscan->info.bscan,
            .line = i,
            .time_s = 1e-9 * (double)(bscan->info.time_ns - t->first_ns) +
                      (t->line_rate_hz > 0 ? i / t->line_rate_hz : 0),
            .value = values[i],
            .sd = values[n + i],
        };
    t->n_bscans++;
    free(values);
    return e;
}

/* ---- what follows from all ---- */

/* The mean step where times are even; NaN: they are not. */
static double even_step(const struct trace_job *t)
{
    const double step =
        t->n > 2 ? (t->rows[t->n - 1].time_s - t->rows[0].time_s) / (double)(t->n - 1) : NAN;
    for (uint64_t i = 1; i < t->n; i++)
        if (!(fabs(t->rows[i].time_s - t->rows[i - 1].time_s - step) <= EVEN * step))
            return NAN;
    return step;
}

static enum oct_err find_spectrum(struct trace_job *t, struct oct_error *err)
{
    const double step = even_step(t);
    double *values = oct_alloc(t->n, sizeof(*values));
    t->rate_hz = 1 / step;
    t->peak_hz = t->peak = NAN;
    for (uint64_t i = 0; i < t->n; i++)
        values[i] = t->rows[i].value;
    enum oct_err e = OCT_OK;
    if (step > 0) {
        t->n_bins = t->n / 2 + 1;
        t->amplitude = oct_alloc(t->n_bins, sizeof(*t->amplitude));
        t->hz = oct_alloc(t->n_bins, sizeof(*t->hz));
        e = oct_flow_spectrum(values, t->n, t->amplitude, err);
        for (uint64_t k = 0; k < t->n_bins; k++) {
            t->hz[k] = (double)k / ((double)t->n * step);
            if (k > 0 && !(t->amplitude[k] <= t->peak)) {
                t->peak = t->amplitude[k];
                t->peak_hz = t->hz[k];
            }
        }
    }
    free(values);
    return e;
}

static enum oct_err look_at_all(struct trace_job *t, struct oct_error *err)
{
    double least = INFINITY, most = -INFINITY, sd = 0;
    bool is_still = true;
    uint64_t n_known = 0;
    if (t->n < 2)
        return oct_fail(err, OCT_E_FORMAT, "%s: a trace has two values at least", t->job.inputs[0]);
    if (!(oct_flow_trace_snr(t->trace) >= OCT_FLOW_TRACE_LEAST_SNR))
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: no light of %s or %s stands out of the noise (SNR %.2g, at least %g): "
                        "take --upper and --lower where there is tissue, or tell --noise",
                        t->job.inputs[0], t->upper.name, t->lower.name,
                        oct_flow_trace_snr(t->trace), OCT_FLOW_TRACE_LEAST_SNR);
    if (t->reference == OCT_FLOW_LINKED) {
        double *nm = oct_alloc(t->n, sizeof(*nm));
        const enum oct_err e = oct_flow_trace_link(t->trace, nm, err);
        for (uint64_t i = 0; i < t->n; i++)
            t->rows[i].value = nm[i];
        free(nm);
        if (e)
            return e;
    }
    for (uint64_t i = 0; i < t->n; i++) {
        least = fmin(least, t->rows[i].value);
        most = fmax(most, t->rows[i].value);
        sd += isfinite(t->rows[i].sd) ? t->rows[i].sd : 0;
        n_known += isfinite(t->rows[i].sd);
        is_still = is_still && !(fabs(t->rows[i].value) > 0);
    }
    if (is_still)
        return oct_fail(err, OCT_E_FORMAT, "%s: B-scans are identical", t->job.inputs[0]);
    t->range = most - least;
    t->sd = n_known ? sd / (double)n_known : INFINITY;
    return find_spectrum(t, err);
}

static enum oct_err work(void *job, struct oct_error *err)
{
    struct trace_job *t = job;
    const struct oct_recon_sink sink = {.context = t, .begin = begin, .bscan = take_bscan};
    const struct oct_recon_job run = {.in = t->job.inputs[0],
                                      .sink = &sink,
                                      .progress = oct_progress_show,
                                      .progress_context = &t->job.progress,
                                      .cancel = t->job.cancel};
    struct oct_recon *recon = oct_recon_create(t->job.workers);
    struct oct_recon_result result;
    enum oct_err e = oct_recon_run(recon, t->job.config, &run, &result, err);
    e = e ? e : look_at_all(t, err);
    oct_progress_clear(&t->job.progress);
    oct_flow_trace_destroy(t->trace);
    oct_recon_destroy(recon);
    return e;
}

/* ---- files ---- */

static enum oct_err write_h5(void *job, const char *path, bool force, struct oct_error *err)
{
    struct trace_job *t = job;
    const struct oct_result_rows rows = rows_of(t);
    struct oct_results *f;
    char text[80];
    const enum oct_err e = oct_results_create(&f, path, "trace", force, err);
    if (e)
        return e;
    oct_result_datasets(f, "/trace", &rows);
    if (t->amplitude) {
        oct_results_write(
            f, oct_results_dataset(f, "/trace/spectrum", OCT_RESULTS_F64, 1, &t->n_bins, t->unit),
            t->amplitude);
        oct_results_write(
            f, oct_results_dataset(f, "/trace/frequency_hz", OCT_RESULTS_F64, 1, &t->n_bins, "Hz"),
            t->hz);
    }
    oct_flow_slab_text(&t->upper, text, sizeof(text));
    oct_results_text(f, NULL, "upper", text);
    oct_flow_slab_text(&t->lower, text, sizeof(text));
    oct_results_text(f, NULL, "lower", text);
    oct_result_attributes(f, NULL, &job_fields, t);
    oct_outputs_source(f, t->job.inputs, 1);
    return oct_results_publish(f, err);
}

static enum oct_err write_csv(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_result_rows rows = rows_of(job);
    return oct_result_csv(path, force, &rows, err);
}

/* The trace and two standard deviations on both sides. */
static enum oct_err draw_trace(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct trace_job *t = job;
    double *x = oct_alloc(4 * t->n, sizeof(*x));
    double *y[3] = {x + t->n, x + 2 * t->n, x + 3 * t->n};
    for (uint64_t i = 0; i < t->n; i++) {
        x[i] = t->rows[i].time_s;
        for (int k = 0; k < 3; k++)
            y[k][i] = t->rows[i].value + (k - 1) * 2 * t->rows[i].sd;
    }
    const struct oct_plot_series series[3] = {
        {.x = x, .y = y[0], .n = t->n, .label = "2 sd", .style = OCT_PLOT_DASHES},
        {.x = x, .y = y[2], .n = t->n, .style = OCT_PLOT_DASHES},
        {.x = x, .y = y[1], .n = t->n, .label = t->reference_name, .style = OCT_PLOT_LINE},
    };
    const struct oct_plot_lines plot = {.title = "Movement of the lower layer against the upper",
                                        .x_label = "s",
                                        .y_label = t->unit,
                                        .series = series,
                                        .n_series = 3};
    const enum oct_err e = oct_plot_write_lines(path, force, &plot, err);
    free(x);
    return e;
}

static enum oct_err draw_spectrum(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct trace_job *t = job;
    const double none[1] = {0};
    const struct oct_plot_series series = {.x = t->hz ? t->hz : none,
                                           .y = t->amplitude ? t->amplitude : none,
                                           .n = t->amplitude ? t->n_bins : 1,
                                           .style = OCT_PLOT_LINE};
    const struct oct_plot_lines plot = {.title = t->amplitude ? "Amplitude spectrum"
                                                              : "Times are not even: no spectrum",
                                        .x_label = "Hz",
                                        .y_label = t->unit,
                                        .series = &series,
                                        .n_series = 1,
                                        .from_zero = true};
    return oct_plot_write_lines(path, force, &plot, err);
}

static enum oct_err list_files(void *job, struct oct_error *err)
{
    struct trace_job *t = job;
    (void)err;
    oct_job_add(&t->job, t->job.out, write_h5, t);
    oct_job_add(&t->job, t->given.csv, write_csv, t);
    oct_job_add(&t->job, t->given.png, draw_trace, t);
    if (t->given.png)
        oct_job_add(&t->job, oct_job_beside(t->given.png, ".png", "spectrum"), draw_spectrum, t);
    return OCT_OK;
}

/* ---- the command ---- */

static void warn(const void *job)
{
    const struct trace_job *t = job;
    if (isnan(t->optics.rad_um))
        fprintf(stderr, "octctl trace: no wavelengths are known, nor scan.lambda_nm: values are "
                        "rad\n");
    else if (!t->optics.is_sign_known)
        fprintf(stderr,
                "octctl trace: a k map does not say whether wavelengths rise: taken as %s "
                "(flow.wavelengths)\n",
                t->settings.wavelengths == OCT_FLOW_FALLING ? "falling" : "rising");
}

static void print(const void *job)
{
    oct_result_print(stdout,
                     "{out}: {values} value{values:s} of {bscans} B-scan{bscans:s}, "
                     "{peak_to_peak:.3g} {unit} peak to peak, sd {sd:.3g} {unit}[, most at "
                     "{peak_hz:.4g} Hz: {peak:.3g}]\n",
                     &job_fields, job);
}

static void json(const void *job, struct cJSON *tree)
{
    oct_result_json(tree, &job_fields, job);
}

#define AT(member) .at = offsetof(struct trace_options, member)
static const struct oct_option options[] = {
    {"--upper", "A:B", "what is taken to be at rest, as 120:140 (pixels) or ilm:ilm+20",
     OCT_OPTION_TEXT, AT(upper)},
    {"--lower", "A:B", "what is followed; deeper is positive", OCT_OPTION_TEXT, AT(lower)},
    {"--reference", "WORD",
     "each B-scan against the one before (previous), the first one (first), or\n"
     "all against all (linked)",
     OCT_OPTION_TEXT, AT(reference), .words = "previous first linked"},
    {"--m-mode", NULL, "all A-lines look at one point: a value each (scan.line_repeats)",
     OCT_OPTION_FLAG, AT(m_mode)},
    {"--noise", "COUNTS2", "mean |B|^2 without light from the sample (found in the recording)",
     OCT_OPTION_NUMBER, AT(noise), .least = OCT_OPTION_ABOVE_0, .most = 1e12},
    {"--csv", "FILE", "a row a value", OCT_OPTION_TEXT, AT(csv)},
    {"--png", "FILE", "the trace with two standard deviations, and FILE-spectrum.png",
     OCT_OPTION_TEXT, AT(png)},
    OCT_JOB_JSON(struct trace_options, job),
    OCT_JOB_FORCE(struct trace_options, job),
    {NULL},
};

static const struct oct_job_ops trace_job = {
    .command = &oct_command_trace,
    .bytes = sizeof(struct trace_job),
    .values = offsetof(struct trace_job, given),
    .options = offsetof(struct trace_job, given.job),
    .takes_names = true,
    .progress = "B-scans",
    .init = init_options,
    .read = read_options,
    .list = list_files,
    .work = work,
    .warn = warn,
    .print = print,
    .json = json,
};

static int run(struct oct_config *config, int argc, char **argv)
{
    return oct_job_run(&trace_job, config, argc, argv);
}

const struct oct_command oct_command_trace = {
    .name = "trace",
    .usage = "IN OUT.h5",
    .keys = "trace.upper trace.lower trace.reference flow.wavelengths",
    .help = "follows one layer against another, in nm over time",
    .options = options,
    .n_least = 2,
    .n_most = 2,
    .too_few = "which recording, and which OUT.h5?",
    .run = run,
};
