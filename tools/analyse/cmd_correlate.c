/* octctl correlate: the correlation of pictures with themselves or others, its average over all
 * directions, and the mean distance of bright features. */
#include "config/config.h"
#include "formats/paths.h"
#include "formats/results.h"
#include "pipeline/base/clock.h"
#include "tools/analyse/correlate_report.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/outputs.h"
#include "tools/picture_options.h"
#include "tools/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_ARGUMENTS 1000000
#define MOST_SHIFT 16383u

struct given {
    uint64_t bscan, max_shift; /* UINT64_MAX: not given */
    const char *slab, *with, *mean, *norm, *mask, *pixel_um, *csv, *png, *fit;
    double invalid, flatten; /* NaN, 0: not given */
    bool frames, exact, c2d, json, force;
};

struct datasets {
    unsigned c1d, c2d, sums, time_ns, number, r_max, c, height, trough;
};

struct job {
    struct given given;
    struct oct_pictures_options options;
    struct oct_paths paths;    /* owns inputs once they are files */
    const char *const *inputs; /* [n_inputs] */
    unsigned n_inputs;
    const char *out; /* NULL: none */
    struct oct_correlate_setup setup;
    struct oct_pictures *pictures, *with;
    struct oct_results *results;
    struct datasets datasets;
    struct oct_correlate_report report;
    struct oct_progress progress;
    char why[256];
};

static const char *const norm_names[] = {"overlap", "eq1", "zncc", NULL};
static const char *const mean_names[] = {"global", "none", NULL};

/* ---- what was asked for ---- */

/* The index of `word`; -1: it is none of them. */
static int find_name(const char *const *names, const char *word)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], word) == 0)
            return i;
    return -1;
}

static int read_what(struct job *job, const char *name)
{
    const struct given *g = &job->given;
    if (g->frames + (g->bscan != UINT64_MAX) + (g->slab != NULL) > 1)
        return oct_command_misuse(name, "--bscan and --slab exclude one another");
    if (g->bscan != UINT64_MAX) {
        job->options.what = OCT_PICTURES_BSCAN;
        job->options.bscan = g->bscan;
    }
    if (g->slab)
        job->options.what = OCT_PICTURES_EN_FACE;
    return oct_picture_slab(name, g->slab, &job->options.slab);
}

static int read_given(struct job *job, const char *name)
{
    const struct given *g = &job->given;
    const int norm = find_name(norm_names, g->norm), mean = find_name(mean_names, g->mean);
    if (norm < 0)
        return oct_command_misuse(name, "--norm needs overlap, eq1 or zncc");
    if (mean < 0)
        return oct_command_misuse(name, "--mean needs global or none");
    if (norm == OCT_CORRELATION_ZNCC && mean == 1)
        return oct_command_misuse(name, "--mean none has no meaning with zncc");
    if (g->exact && (norm == OCT_CORRELATION_ZNCC || g->flatten > 0))
        return oct_command_misuse(name, "--exact sums integers: neither zncc nor --flatten");
    if (g->fit && strcmp(g->fit, "linear") != 0)
        return oct_command_misuse(name, "--fit needs linear");
    if (oct_picture_pixel_um(name, g->pixel_um, 2, job->options.um))
        return 2;
    if (g->c2d && !job->out)
        return oct_command_misuse(name, "--c2d needs an output, OUT.h5");
    job->options.has_invalid = !isnan(g->invalid);
    job->options.invalid = g->invalid;
    job->options.mask_path = g->mask;
    job->options.raw = g->exact;
    job->setup.norm = (enum oct_correlation_norm)norm;
    job->setup.keep_mean = mean == 1;
    job->setup.exact = g->exact;
    job->setup.flatten_px = g->flatten;
    return read_what(job, name);
}

/* ---- files ---- */

static enum oct_err open_pictures(struct job *job, struct oct_error *err)
{
    const char *with = job->given.with;
    enum oct_err e =
        oct_pictures_open(&job->pictures, job->inputs, job->n_inputs, &job->options, err);
    if (e || !with)
        return e;
    struct oct_pictures_options options = job->options;
    options.mask_path = NULL; /* is that of the inputs */
    e = oct_pictures_open(&job->with, &with, 1, &options, err);
    const uint64_t n = e ? 1 : oct_pictures_count(job->with);
    if (n != 1 && n != oct_pictures_count(job->pictures))
        return oct_fail(err, OCT_E_ARG,
                        "%s: has %" PRIu64 " pictures; one is needed, or as many as there are "
                        "inputs (%" PRIu64 ")",
                        with, n, oct_pictures_count(job->pictures));
    return e;
}

static enum oct_err choose_shift(struct job *job, struct oct_error *err)
{
    uint32_t h, w, least;
    oct_pictures_size(job->pictures, 0, &h, &w);
    least = h < w ? h : w;
    job->report.height = h;
    job->report.width = w;
    if (job->with) {
        oct_pictures_size(job->with, 0, &h, &w);
        least = h < least ? h : least;
        least = w < least ? w : least;
    }
    if (job->given.max_shift == UINT64_MAX)
        job->given.max_shift = least / 3;
    if (job->given.max_shift > least - 1)
        return oct_fail(
            err, OCT_E_ARG, "%s: --max-shift %" PRIu64 ": the largest for %u x %u pixels is %u",
            job->inputs[0], job->given.max_shift, job->report.width, job->report.height, least - 1);
    job->setup.max_shift = (uint32_t)job->given.max_shift;
    return OCT_OK;
}

static enum oct_err create_results(struct job *job, struct oct_error *err)
{
    const uint64_t n = oct_pictures_count(job->pictures), side = 2 * job->given.max_shift + 1;
    const uint64_t line[] = {n, job->given.max_shift + 1}, plane[] = {n, side, side};
    struct datasets *d = &job->datasets;
    if (!job->out)
        return OCT_OK;
    enum oct_err e =
        oct_results_create(&job->results, job->out, "correlation", job->given.force, err);
    if (e)
        return e;
    struct oct_results *r = job->results;
    oct_outputs_source(r, job->inputs, job->n_inputs);
    oct_results_text(r, NULL, "mean", job->given.mean);
    oct_results_text(r, NULL, "norm", job->given.norm);
    oct_results_count(r, NULL, "max_shift_px", job->given.max_shift);
    if (job->given.with)
        oct_results_text(r, NULL, "with", job->given.with);
    if (job->given.flatten > 0)
        oct_results_number(r, NULL, "flatten_px", job->given.flatten);
    d->c1d = oct_results_dataset(r, "/correlation/c1d", OCT_RESULTS_F64, 2, line, NULL);
    if (job->given.c2d)
        d->c2d = oct_results_dataset(r, "/correlation/c2d", OCT_RESULTS_F32, 3, plane, NULL);
    if (job->given.exact)
        d->sums = oct_results_dataset(r, "/correlation/sums", OCT_RESULTS_I64, 3, plane, NULL);
    d->r_max = oct_results_dataset(r, "/length/r_max_px", OCT_RESULTS_F64, 1, &n, "px");
    d->c = oct_results_dataset(r, "/length/c", OCT_RESULTS_F64, 1, &n, NULL);
    d->height = oct_results_dataset(r, "/length/height", OCT_RESULTS_F64, 1, &n, NULL);
    d->trough = oct_results_dataset(r, "/length/trough_px", OCT_RESULTS_F64, 1, &n, "px");
    d->time_ns = oct_results_dataset(r, "/frames/time_ns", OCT_RESULTS_U64, 1, &n, "ns");
    d->number = oct_results_dataset(r, "/frames/number", OCT_RESULTS_U64, 1, &n, NULL);
    return oct_results_error(r, err);
}

/* ---- results ---- */

/* With the first picture: what is the same for all. */
static void write_common(struct job *job, const struct oct_correlate_result *result)
{
    struct oct_results *r = job->results;
    const uint64_t n = job->given.max_shift + 1;
    const unsigned radius =
        oct_results_dataset(r, "/correlation/radius_px", OCT_RESULTS_F64, 1, &n, "px");
    oct_results_write(r, radius, result->radius);
    const unsigned shifts =
        oct_results_dataset(r, "/correlation/shifts", OCT_RESULTS_U32, 1, &n, NULL);
    oct_results_write(r, shifts, result->shifts);
    oct_results_numbers(r, NULL, "um_px", result->info.um, 2); /* dy, dx */
}

static enum oct_err take(void *context, const struct oct_correlate_result *result,
                         struct oct_error *err)
{
    struct job *job = context;
    const struct datasets *d = &job->datasets;
    struct oct_results *r = job->results;
    const uint64_t i = result->info.frame;
    enum oct_err e = oct_correlate_report_take(&job->report, result, err);
    oct_progress_show(&job->progress, i + 1, job->report.n);
    if (e || !r)
        return e;
    if (i == 0)
        write_common(job, result);
    oct_results_write_rows(r, d->c1d, i, 1, result->c1d);
    if (job->given.c2d)
        oct_results_write_rows(r, d->c2d, i, 1, result->c2d);
    if (job->given.exact)
        oct_results_write_rows(r, d->sums, i, 1, result->sums);
    oct_results_write_rows(r, d->r_max, i, 1, &result->peak.radius_px);
    oct_results_write_rows(r, d->c, i, 1, &result->peak.c);
    oct_results_write_rows(r, d->height, i, 1, &result->peak.height);
    oct_results_write_rows(r, d->trough, i, 1, &result->peak.trough_px);
    oct_results_write_rows(r, d->time_ns, i, 1, &result->info.time_ns);
    oct_results_write_rows(r, d->number, i, 1, &i);
    return oct_results_error(r, err);
}

static void write_fit(const struct job *job, struct oct_results *results)
{
    const struct oct_correlate_fit *fit = &job->report.fit;
    if (!job->report.has_fit)
        return;
    oct_results_number(results, "/length", "fit_slope_px", fit->slope);
    oct_results_number(results, "/length", "fit_offset_px", fit->offset);
    oct_results_number(results, "/length", "fit_r2", fit->r2);
}

/* The file was begun before the first picture. */
static enum oct_err publish_results(void *context, const char *path, bool force,
                                    struct oct_error *err)
{
    struct job *job = context;
    (void)force;
    struct oct_results *results = job->results;
    job->results = NULL;
    write_fit(job, results);
    oct_results_texts(results, "/files", job->report.n, oct_correlate_report_path, &job->report);
    return oct_results_publish_as(results, path, err);
}

static enum oct_err correlate(struct job *job, struct oct_error *err)
{
    job->setup.cancel = oct_interrupt_watch(); /* before there is anything to clean up */
    enum oct_err e = oct_paths_expand(&job->paths, job->inputs, job->n_inputs, err);
    if (e)
        return e;
    job->inputs = (const char *const *)job->paths.path;
    job->n_inputs = job->paths.n;
    const struct oct_output_file files[] = {
        {job->out, publish_results, job},
        {job->given.csv, oct_correlate_report_csv, &job->report},
        {job->given.png, oct_correlate_report_plot, &job->report}};
    const struct oct_input_files read = {
        job->inputs, job->n_inputs, {job->given.mask, job->given.with}};
    e = oct_outputs_check(files, 3, job->given.force, &read, err);
    if (e || (e = open_pictures(job, err)) || (e = choose_shift(job, err)))
        return e;
    const struct oct_correlate_report sizes = job->report;
    e = oct_correlate_report_init(&job->report, oct_pictures_count(job->pictures),
                                  job->setup.max_shift, err);
    if (e || (e = create_results(job, err)))
        return e;
    job->report.source = job->inputs[0];
    job->report.height = sizes.height;
    job->report.width = sizes.width;
    job->report.norm = job->given.norm;
    job->report.mean = job->given.mean;
    job->report.engine = job->why;
    job->setup.pictures = job->pictures;
    job->setup.with = job->with;
    job->setup.take = take;
    job->setup.context = job;
    job->progress.what = "pictures";
    job->progress.started_ns = oct_clock_ns();
    e = oct_correlate_run(&job->setup, job->why, sizeof(job->why), err);
    if (e)
        return e;
    job->report.seconds = oct_progress_seconds(&job->progress);
    oct_progress_end(&job->progress, job->report.n, job->report.n);
    if (job->given.fit)
        oct_correlate_report_fit(&job->report);
    return oct_outputs_write(files, 3, job->given.force, err);
}

/* ---- the command ---- */

static const struct oct_option options[] = {
    {"--bscan", "N", "B-scan N of each recording, from 0", OCT_OPTION_COUNT,
     .at = offsetof(struct given, bscan), .needs = "a whole number"},
    {"--slab", "A:B", "the mean over the depths A to B of each recording", OCT_OPTION_TEXT,
     .at = offsetof(struct given, slab), .was = "--en-face"},
    {.was = "--frames",
     .meaning = "every picture is taken anyway",
     .kind = OCT_OPTION_FLAG,
     .at = offsetof(struct given, frames)},
    {"--with", "OTHER", "correlate with the picture OTHER, or with as many pictures",
     OCT_OPTION_TEXT, .at = offsetof(struct given, with), .words = OCT_WORDS_FILES},
    {"--max-shift", "R", "largest shift in pixels (a third of the smaller side)", OCT_OPTION_COUNT,
     .at = offsetof(struct given, max_shift), .least = 1, .most = MOST_SHIFT,
     .needs = "a whole number from 1 to 16383"},
    {"--mean", "HOW", "global: less the mean of all pixels (default); none: as they are",
     OCT_OPTION_TEXT, .at = offsetof(struct given, mean), .needs = "global or none",
     .words = "global none"},
    {"--norm", "HOW", "overlap (default), eq1 or zncc", OCT_OPTION_TEXT,
     .at = offsetof(struct given, norm), .needs = "overlap, eq1 or zncc",
     .words = "overlap eq1 zncc"},
    {"--mask", "FILE", "a picture of which 0 is left out", OCT_OPTION_TEXT,
     .at = offsetof(struct given, mask), .needs = "a file"},
    {"--invalid", "VALUE", "leave out pixels of this value", OCT_OPTION_NUMBER,
     .at = offsetof(struct given, invalid), .needs = "a number"},
    {"--flatten", "PX", "subtract a Gaussian background of this standard deviation",
     OCT_OPTION_NUMBER, .at = offsetof(struct given, flatten), .least = 0.5, .most = 16384,
     .needs = "0.5 to 16384 pixels"},
    {"--exact", NULL, "integer sums, equal to the direct sum in every bit", OCT_OPTION_FLAG,
     .at = offsetof(struct given, exact)},
    {"--c2d", NULL, "write C of every shift to OUT.h5", OCT_OPTION_FLAG,
     .at = offsetof(struct given, c2d)},
    {"--fit", "linear", "fit a line to R_max over time, or over the pictures", OCT_OPTION_TEXT,
     .at = offsetof(struct given, fit), .needs = "linear", .words = "linear"},
    {"--pixel-um", "X[,Y]", "micrometres of a pixel, instead of what the file says",
     OCT_OPTION_TEXT, .at = offsetof(struct given, pixel_um), .was = "--um"},
    {"--csv", "FILE", "a row a picture", OCT_OPTION_TEXT, .at = offsetof(struct given, csv),
     .needs = "a file"},
    {"--png", "FILE", "a plot: C1D, or of several pictures R_max", OCT_OPTION_TEXT,
     .at = offsetof(struct given, png), .needs = "a file"},
    {"--json", NULL, "print the result as JSON", OCT_OPTION_FLAG,
     .at = offsetof(struct given, json)},
    {"--force", NULL, "replace outputs that exist, once the new ones are whole", OCT_OPTION_FLAG,
     .at = offsetof(struct given, force)},
    {NULL},
};

static void warn(const struct job *job, const char *name)
{
    const uint64_t n_far = oct_correlate_report_n_far(&job->report);
    if (n_far > 0)
        fprintf(stderr,
                "octctl %s: R_max of %" PRIu64 " of %" PRIu64 " pictures is more than a quarter of "
                "the smaller side: it scatters by several percent\n",
                name, n_far, job->report.n);
}

static int run(struct oct_config *config, int argc, char **argv)
{
    struct job job = {.given = {.bscan = UINT64_MAX,
                                .max_shift = UINT64_MAX,
                                .mean = "global",
                                .norm = "overlap",
                                .invalid = NAN}};
    struct oct_error err;
    int status = oct_options_read(&oct_command_correlate, &job.given, &argc, argv);
    if (status)
        return status;
    oct_picture_option_names(argc, argv, &job.inputs, &job.n_inputs, &job.out);
    status = read_given(&job, argv[0]);
    if (status)
        return status;
    job.progress.quiet = config->quiet;
    job.setup.backend = oct_config_backend_names[config->pipeline.backend];
    job.setup.gpus = config->pipeline.gpus;
    if (correlate(&job, &err)) {
        status = oct_command_fail_at_work(argv[0], &err);
    } else {
        warn(&job, argv[0]);
        if (job.given.json)
            status = oct_command_printed(argv[0], oct_correlate_report_print_json(&job.report));
        else
            oct_correlate_report_print(&job.report);
    }
    oct_results_discard(job.results);
    oct_pictures_close(job.pictures);
    oct_pictures_close(job.with);
    oct_paths_finish(&job.paths);
    oct_correlate_report_finish(&job.report);
    return status;
}

const struct oct_command oct_command_correlate = {
    .name = "correlate",
    .usage = "IN... [OUT.h5]",
    .keys = "",
    .help = "correlates pictures with themselves or others",
    .options = options,
    .n_least = 1,
    .n_most = MOST_ARGUMENTS,
    .too_few = "which pictures?",
    .run = run,
};
