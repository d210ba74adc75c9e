/* octctl correlate: the correlation of pictures with themselves or others, its average over all
 * directions, and the mean distance of bright features. */
#include "tools/analyse/correlate.h"

#include "formats/result_files.h"
#include "formats/results.h"
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/picture_options.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SHIFT 16383u
#define SAME_SCALE 1e-3 /* of both axes, so that a circle of pixels is a circle */

static const char *const norm_names[] = {"overlap", "eq1", "zncc", NULL};
static const char *const mean_names[] = {"global", "none", NULL};
static const char *const fit_names[] = {"none", "linear", NULL};

#define C struct oct_correlate_choice
static const struct oct_param choice_rows[] = {
    {OCT_PARAM_CHOICE("mean", C, mean, mean_names), .is_option = true, .standard = "global",
     .meaning = "global: less the mean of all pixels; none: as they are."},
    {OCT_PARAM_CHOICE("norm", C, norm, norm_names), .is_option = true, .standard = "overlap",
     .meaning = "What C is divided by."},
    {OCT_PARAM_CHOICE("fit", C, fit, fit_names), .is_option = true, .standard = "none",
     .meaning = "A line through R_max over time, or over the pictures."},
};
#undef C
static const struct oct_params choices = OCT_PARAMS(choice_rows);

/* ---- what is found ---- */

#define J struct oct_correlate_job
static const struct oct_result_field sequence_rows[] = {
    {OCT_RESULT("file", J, source), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("pictures", J, n), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("width", J, width), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("height", J, height), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("max_shift_px", J, max_shift)},
    {OCT_RESULT_NAMED("norm", J, choice.norm, norm_names)},
    {OCT_RESULT_NAMED("mean", J, choice.mean, mean_names)},
    {OCT_RESULT("engine", J, engine), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("seconds", J, job.seconds), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("with", J, given.with), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("flatten_px", J, given.flatten), .not_in = OCT_RESULT_JSON, .is_optional = true},
    {OCT_RESULT_LIST("um_px", J, um), .not_in = OCT_RESULT_JSON},
};
#undef J
static const struct oct_result_fields sequence_fields = OCT_RESULT_FIELDS(sequence_rows);

#define R struct oct_correlate_row
static const struct oct_result_field row_columns[] = {
    {OCT_RESULT("frame", R, frame), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("time_s", R, time_s), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("r_max_px", R, peak.radius_px), .unit = "px"},
    {OCT_RESULT("r_max_um", R, r_max_um), .unit = "um", .not_in = OCT_RESULT_H5},
    {OCT_RESULT("c", R, peak.c)},
    {OCT_RESULT("height", R, peak.height)},
    {OCT_RESULT("trough_px", R, peak.trough_px), .unit = "px"},
    {OCT_RESULT("file", R, path), .not_in = OCT_RESULT_H5},
};
static const struct oct_result_fields row_fields = OCT_RESULT_FIELDS(row_columns);

static const struct oct_result_field frame_columns[] = {
    {OCT_RESULT("time_ns", R, time_ns), .unit = "ns"},
    {OCT_RESULT("number", R, frame)},
};
static const struct oct_result_fields frame_fields = OCT_RESULT_FIELDS(frame_columns);
#undef R

#define F struct oct_correlate_fit
static const struct oct_result_field fit_rows[] = {
    {OCT_RESULT("fit.over", F, over), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("fit.n", F, n), .not_in = OCT_RESULT_H5},
    {OCT_RESULT("fit.slope_px", F, slope)},
    {OCT_RESULT("fit.offset_px", F, offset)},
    {OCT_RESULT("fit.r2", F, r2)},
};
#undef F
static const struct oct_result_fields fit_fields = OCT_RESULT_FIELDS(fit_rows);

/* A clock that stands still, or is 0 throughout, is none. */
static bool has_time(const struct oct_correlate_job *c)
{
    return c->rows[c->n - 1].time_ns > c->rows[0].time_ns;
}

/* Where picture i stands on the axis of the fit and of the plot. */
static double abscissa(const struct oct_correlate_job *c, uint64_t i)
{
    return has_time(c) ? c->rows[i].time_s : (double)i;
}

/* ---- options ---- */

static void init_options(void *job)
{
    struct oct_correlate_options *g = &((struct oct_correlate_job *)job)->given;
    g->max_shift = UINT64_MAX;
    g->invalid = g->flatten = NAN;
}

static int read_options(void *job)
{
    struct oct_correlate_job *c = job;
    const struct oct_correlate_options *g = &c->given;
    struct oct_pictures_options *o = &c->options;
    const char *name = c->job.name;
    oct_params_set_defaults(&choices, &c->choice);
    oct_param_texts_store(&choices, &g->choice, &c->choice);
    o->has_invalid = !isnan(g->invalid);
    o->invalid = g->invalid;
    o->mask_path = c->job.reads[0] = g->mask;
    c->job.reads[1] = g->with;
    o->raw = g->exact;
    if (c->choice.norm == OCT_CORRELATION_ZNCC && c->choice.mean == 1)
        return oct_command_misuse(name, "--mean none has no meaning with zncc");
    if (g->exact && (c->choice.norm == OCT_CORRELATION_ZNCC || g->flatten > 0))
        return oct_command_misuse(name, "--exact sums integers: neither zncc nor --flatten");
    if (oct_picture_pixel_um(name, g->pixel_um, 2, o->um))
        return 2;
    if (g->c2d && !c->job.out)
        return oct_command_misuse(name, "--c2d needs an output, OUT.h5");
    if (g->slab)
        o->what = OCT_PICTURES_EN_FACE;
    const int status = oct_picture_slab(name, g->slab, &o->slab);
    return status ? status : oct_picture_frames(name, g->frames, g->slab, &o->frames);
}

/* ---- the work ---- */

static enum oct_err open_pictures(struct oct_correlate_job *c, struct oct_error *err)
{
    const char *with = c->given.with;
    enum oct_err e =
        oct_pictures_open(&c->pictures, c->job.inputs, c->job.n_inputs, &c->options, err);
    if (e)
        return e;
    c->n = oct_pictures_count(c->pictures);
    if (!with)
        return OCT_OK;
    struct oct_pictures_options options = c->options;
    options.mask_path = NULL; /* is that of the inputs */
    e = oct_pictures_open(&c->with, &with, 1, &options, err);
    const uint64_t n = e ? 1 : oct_pictures_count(c->with);
    if (n != 1 && n != c->n)
        return oct_fail(err, OCT_E_ARG,
                        "%s: has %" PRIu64 " pictures; one is needed, or as many as there are "
                        "inputs (%" PRIu64 ")",
                        with, n, c->n);
    return e;
}

static enum oct_err choose_shift(struct oct_correlate_job *c, struct oct_error *err)
{
    uint32_t least, h, w;
    oct_pictures_size(c->pictures, 0, &c->height, &c->width);
    least = c->height < c->width ? c->height : c->width;
    if (c->with) {
        oct_pictures_size(c->with, 0, &h, &w);
        least = h < least ? h : least;
        least = w < least ? w : least;
    }
    const uint64_t shift = c->given.max_shift == UINT64_MAX ? least / 3 : c->given.max_shift;
    if (shift > least - 1)
        return oct_fail(err, OCT_E_ARG,
                        "%s: --max-shift %" PRIu64 ": the largest for %u x %u pixels is %u",
                        c->source, shift, c->width, c->height, least - 1);
    c->max_shift = (uint32_t)shift;
    return OCT_OK;
}

/* Radius and shifts are those of any picture. */
static void make_memory(struct oct_correlate_job *c)
{
    const size_t n = (size_t)c->max_shift + 1, side = 2 * (size_t)c->max_shift + 1;
    float *c2d = oct_alloc(side * side, sizeof(*c2d));
    c->rows = oct_alloc(c->n, sizeof(*c->rows));
    c->radius = oct_alloc(n, sizeof(*c->radius));
    c->shifts = oct_alloc(n, sizeof(*c->shifts));
    c->c1d = oct_alloc(n, sizeof(*c->c1d));
    oct_profile(c2d, c->max_shift, c->radius, c->shifts, c->c1d);
    free(c2d);
}

static enum oct_err create_results(struct oct_correlate_job *c, struct oct_error *err)
{
    const uint64_t side = 2 * (uint64_t)c->max_shift + 1, n_bins = (uint64_t)c->max_shift + 1;
    const uint64_t line[] = {c->n, n_bins}, plane[] = {c->n, side, side};
    if (!c->job.out)
        return OCT_OK;
    const enum oct_err e =
        oct_results_create(&c->results, c->job.out, "correlation", c->given.job.force, err);
    if (e)
        return e;
    struct oct_results *r = c->results;
    oct_outputs_source(r, c->job.inputs, c->job.n_inputs);
    c->h5_c1d = oct_results_dataset(r, "/correlation/c1d", OCT_RESULTS_F64, 2, line, NULL);
    if (c->given.c2d)
        c->h5_c2d = oct_results_dataset(r, "/correlation/c2d", OCT_RESULTS_F32, 3, plane, NULL);
    if (c->given.exact)
        c->h5_sums = oct_results_dataset(r, "/correlation/sums", OCT_RESULTS_I64, 3, plane, NULL);
    const unsigned radius =
        oct_results_dataset(r, "/correlation/radius_px", OCT_RESULTS_F64, 1, &n_bins, "px");
    oct_results_write(r, radius, c->radius);
    const unsigned shifts =
        oct_results_dataset(r, "/correlation/shifts", OCT_RESULTS_U32, 1, &n_bins, NULL);
    oct_results_write(r, shifts, c->shifts);
    return oct_results_error(r, err);
}

enum oct_err oct_correlate_add(struct oct_correlate_job *c,
                               const struct oct_correlate_result *result, struct oct_error *err)
{
    const uint64_t i = result->info.frame;
    const double *um = result->info.um;
    struct oct_results *r = c->results;
    const bool is_square = fabs(um[0] - um[1]) <= SAME_SCALE * um[0];
    c->rows[i] = (struct oct_correlate_row){
        .frame = i,
        .time_ns = result->info.time_ns,
        .path = result->info.path,
        .left_out = result->left_out ? oct_alloc_text("%s", result->left_out) : NULL,
        .peak = result->peak,
        .r_max_um = is_square ? result->peak.radius_px * um[1] : NAN,
    };
    oct_progress_show(&c->job.progress, i + 1, c->n);
    if (i == 0) {
        memcpy(c->um, um, sizeof(c->um));
        memcpy(c->c1d, result->c1d, ((size_t)c->max_shift + 1) * sizeof(double));
    }
    if (!r)
        return OCT_OK;
    oct_results_write_rows(r, c->h5_c1d, i, 1, result->c1d);
    if (c->given.c2d)
        oct_results_write_rows(r, c->h5_c2d, i, 1, result->c2d);
    if (c->given.exact)
        oct_results_write_rows(r, c->h5_sums, i, 1, result->sums);
    return oct_results_error(r, err);
}

static void find_times(struct oct_correlate_job *c)
{
    const uint64_t first = c->rows[0].time_ns;
    const bool is_known = has_time(c);
    for (uint64_t i = 0; i < c->n; i++) {
        const uint64_t now = c->rows[i].time_ns;
        c->rows[i].time_s = !is_known      ? NAN
                            : now >= first ? (double)(now - first) * 1e-9
                                           : -(double)(first - now) * 1e-9;
    }
}

static void fit_line(struct oct_correlate_job *c)
{
    struct oct_correlate_fit fit = {
        .over = has_time(c) ? "time_s" : "frame", .slope = NAN, .offset = NAN, .r2 = NAN};
    double x_mean = 0, y_mean = 0, xx = 0, xy = 0, yy = 0;
    for (uint64_t i = 0; i < c->n; i++)
        if (c->rows[i].peak.found) {
            fit.n++;
            x_mean += abscissa(c, i);
            y_mean += c->rows[i].peak.radius_px;
        }
    x_mean /= (double)fit.n;
    y_mean /= (double)fit.n;
    for (uint64_t i = 0; i < c->n; i++)
        if (c->rows[i].peak.found) {
            const double x = abscissa(c, i) - x_mean;
            const double y = c->rows[i].peak.radius_px - y_mean;
            xx += x * x;
            xy += x * y;
            yy += y * y;
        }
    if (fit.n >= 2 && xx > 0) {
        fit.slope = xy / xx;
        fit.offset = y_mean - fit.slope * x_mean;
        fit.r2 = yy > 0 ? xy * xy / (xx * yy) : 1;
    }
    c->fit = fit;
}

static enum oct_err correlate_pictures(void *job, struct oct_error *err)
{
    struct oct_correlate_job *c = job;
    c->source = c->job.inputs[0];
    c->engine = c->why;
    enum oct_err e = open_pictures(c, err);
    if (!e)
        e = choose_shift(c, err);
    if (e)
        return e;
    make_memory(c);
    e = create_results(c, err);
    if (!e)
        e = oct_correlate_run(c, err);
    if (e)
        return e;
    oct_progress_end(&c->job.progress, c->n, c->n);
    find_times(c);
    if (c->choice.fit)
        fit_line(c);
    return OCT_OK;
}

/* ---- files ---- */

static const char *path_of(const void *job, uint64_t i)
{
    return ((const struct oct_correlate_job *)job)->rows[i].path;
}

/* The file was begun before the first picture. */
static enum oct_err publish_results(void *job, const char *path, bool force, struct oct_error *err)
{
    struct oct_correlate_job *c = job;
    struct oct_results *r = c->results;
    const struct oct_result_rows rows = OCT_RESULT_ROWS(row_fields, c->rows, c->n);
    const struct oct_result_rows frames = OCT_RESULT_ROWS(frame_fields, c->rows, c->n);
    (void)force;
    c->results = NULL;
    oct_result_attributes(r, NULL, &sequence_fields, c);
    oct_result_datasets(r, "/length", &rows);
    oct_result_datasets(r, "/frames", &frames);
    if (c->choice.fit)
        oct_result_attributes(r, "/length", &fit_fields, &c->fit);
    oct_results_texts(r, "/files", c->n, path_of, c);
    return oct_results_publish_as(r, path, err);
}

static enum oct_err write_csv(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_correlate_job *c = job;
    const struct oct_result_rows rows = OCT_RESULT_ROWS(row_fields, c->rows, c->n);
    return oct_result_csv(path, force, &rows, err);
}

/* C1D of one picture, with R_max as in Fig. 5 of Lu et al. */
static enum oct_err plot_profile(const struct oct_correlate_job *c, const char *path, bool force,
                                 struct oct_error *err)
{
    const struct oct_correlate_row *row = &c->rows[0];
    char title[160], text[96];
    snprintf(title, sizeof(title), "%.120s", oct_job_base(c->source));
    if (isnan(row->r_max_um))
        snprintf(text, sizeof(text), "R_max = %.2f px", row->peak.radius_px);
    else
        snprintf(text, sizeof(text), "R_max = %.2f px (%.4g \302\265m)", row->peak.radius_px,
                 row->r_max_um);
    const struct oct_plot_series series = {
        .x = c->radius, .y = c->c1d, .n = (size_t)c->max_shift + 1};
    const struct oct_plot_mark mark = {row->peak.radius_px, row->peak.c, text};
    const struct oct_plot_lines plot = {.title = title,
                                        .x_label = "R (px)",
                                        .y_label = "C1D",
                                        .series = &series,
                                        .n_series = 1,
                                        .marks = &mark,
                                        .n_marks = row->peak.found ? 1 : 0,
                                        .from_zero = true};
    return oct_plot_write_lines(path, force, &plot, err);
}

/* R_max of many pictures over time, as in Fig. 10. */
static enum oct_err plot_lengths(const struct oct_correlate_job *c, const char *path, bool force,
                                 struct oct_error *err)
{
    const size_t n = c->n;
    double *x = oct_alloc(3 * n, sizeof(*x)), *y = x + n, *line = y + n;
    char label[96];
    for (size_t i = 0; i < n; i++) {
        x[i] = abscissa(c, i);
        y[i] = c->rows[i].peak.radius_px;
        line[i] = c->fit.offset + c->fit.slope * x[i];
    }
    snprintf(label, sizeof(label), "%.4g + %.4g %s, r\302\262 %.5f", c->fit.offset, c->fit.slope,
             has_time(c) ? "px/s" : "px a picture", c->fit.r2);
    const struct oct_plot_series series[] = {
        {x, y, n, c->choice.fit ? "R_max" : NULL, OCT_PLOT_POINTS},
        {x, line, n, label, OCT_PLOT_DASHES},
    };
    const struct oct_plot_lines plot = {.title = "R_max, mean distance of bright features",
                                        .x_label = has_time(c) ? "time (s)" : "picture",
                                        .y_label = "R_max (px)",
                                        .series = series,
                                        .n_series = c->choice.fit ? 2 : 1,
                                        .from_zero = true};
    const enum oct_err e = oct_plot_write_lines(path, force, &plot, err);
    free(x);
    return e;
}

static enum oct_err write_png(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_correlate_job *c = job;
    return c->n == 1 ? plot_profile(c, path, force, err) : plot_lengths(c, path, force, err);
}

static enum oct_err list_files(void *job, struct oct_error *err)
{
    struct oct_correlate_job *c = job;
    (void)err;
    oct_job_add(&c->job, c->job.out, publish_results, c);
    oct_job_add(&c->job, c->given.csv, write_csv, c);
    oct_job_add(&c->job, c->given.png, write_png, c);
    return OCT_OK;
}

/* ---- what is said ---- */

static void warn_of_length(const void *job)
{
    const struct oct_correlate_job *c = job;
    const uint32_t side = c->height < c->width ? c->height : c->width;
    uint64_t n_far = 0;
    for (uint64_t i = 0; i < c->n; i++)
        n_far += c->rows[i].peak.found && c->rows[i].peak.radius_px > side / 4.0;
    if (n_far > 0)
        fprintf(stderr,
                "octctl %s: R_max of %" PRIu64 " of %" PRIu64 " pictures is more than a quarter of "
                "the smaller side: it scatters by several percent\n",
                c->job.name, n_far, c->n);
}

static const char *why_left_out(const void *job, uint64_t i)
{
    return ((const struct oct_correlate_job *)job)->rows[i].left_out;
}

static void print_one(const struct oct_correlate_job *c)
{
    oct_result_print(stdout,
                     c->rows[0].peak.found
                         ? "{file}: R_max {r_max_px:.2f} px[ ({r_max_um:.4g} um)], C {c:.4f}, "
                           "{height:.4f} above the trough at {trough_px:.1f} px"
                         : "{file}: R_max none",
                     &row_fields, &c->rows[0]);
}

static void print_many(const struct oct_correlate_job *c)
{
    double least = INFINITY, most = -INFINITY;
    uint64_t n = 0, n_used = 0;
    for (uint64_t i = 0; i < c->n; i++) {
        const struct oct_ring_peak *peak = &c->rows[i].peak;
        n_used += !c->rows[i].left_out;
        n += peak->found;
        least = fmin(least, peak->radius_px);
        most = fmax(most, peak->radius_px);
    }
    printf("%" PRIu64 " pictures: R_max ", c->n);
    if (n == 0)
        printf("none");
    else
        printf("%.2f to %.2f px", least, most);
    if (n > 0 && n < n_used)
        printf(", none in %" PRIu64, n_used - n);
    oct_command_print_left_out(c->n, why_left_out, c);
}

static void print_all(const void *job)
{
    const struct oct_correlate_job *c = job;
    if (c->n == 1)
        print_one(c);
    else
        print_many(c);
    if (c->choice.fit)
        oct_result_print(stdout,
                         c->fit.n < 2 ? "; no fit, too few R_max"
                         : has_time(c)
                             ? "; {fit.offset_px:.5g} + {fit.slope_px:.5g} px/s, r2 {fit.r2:.5f}"
                             : "; {fit.offset_px:.5g} + {fit.slope_px:.5g} px a picture, r2 "
                               "{fit.r2:.5f}",
                         &fit_fields, &c->fit);
    oct_result_print(stdout,
                     "; {width} x {height}, R 0 to {max_shift_px}, {norm}, mean {mean}, "
                     "{seconds:.2f} s\n",
                     &sequence_fields, c);
}

static void fill_json(const void *job, cJSON *tree)
{
    const struct oct_correlate_job *c = job;
    const struct oct_result_rows rows = OCT_RESULT_ROWS(row_fields, c->rows, c->n);
    oct_result_json(tree, &sequence_fields, c);
    oct_result_json_rows(tree, "frames", &rows);
    oct_command_add_left_out(tree, c->n, why_left_out, c);
    if (c->choice.fit)
        oct_result_json(tree, &fit_fields, &c->fit);
}

static void finish_correlate(void *job)
{
    struct oct_correlate_job *c = job;
    oct_results_discard(c->results);
    oct_pictures_close(c->pictures);
    oct_pictures_close(c->with);
}

#define AT(member) .at = offsetof(struct oct_correlate_options, member)
static const struct oct_option options[] = {
    {OCT_PICTURE_FRAMES(struct oct_correlate_options, frames), .was = "--bscan",
     .from_was = oct_picture_one_frame},
    {"--slab", "A:B", "the mean over the depths A to B of each recording", OCT_OPTION_TEXT,
     AT(slab), .was = "--en-face"},
    {"--with", "OTHER", "correlate with the picture OTHER, or with as many pictures",
     OCT_OPTION_TEXT, AT(with), .words = OCT_WORDS_FILES},
    {"--max-shift", "R", "largest shift in pixels (a third of the smaller side)", OCT_OPTION_COUNT,
     AT(max_shift), .least = 1, .most = MOST_SHIFT},
    {.kind = OCT_OPTION_PARAMS, .params = &choices, AT(choice)},
    {"--mask", "FILE", "a picture of which 0 is left out", OCT_OPTION_TEXT, AT(mask)},
    {"--invalid", "VALUE", "leave out pixels of this value", OCT_OPTION_NUMBER, AT(invalid)},
    {"--flatten", "PX", "subtract a Gaussian background of this standard deviation",
     OCT_OPTION_NUMBER, AT(flatten), .least = 0.5, .most = 16384},
    {"--exact", NULL, "integer sums, equal to the direct sum in every bit", OCT_OPTION_FLAG,
     AT(exact)},
    {"--c2d", NULL, "write C of every shift to OUT.h5", OCT_OPTION_FLAG, AT(c2d)},
    {"--pixel-um", "X[,Y]", "micrometres of a pixel, instead of what the file says",
     OCT_OPTION_TEXT, AT(pixel_um), .was = "--um"},
    {"--csv", "FILE", "a row a picture", OCT_OPTION_TEXT, AT(csv)},
    {"--png", "FILE", "a plot: C1D, or of several pictures R_max", OCT_OPTION_TEXT, AT(png)},
    OCT_JOB_JSON(struct oct_correlate_options, job),
    OCT_JOB_FORCE(struct oct_correlate_options, job),
    {NULL},
};

static const struct oct_job_ops correlate_job = {
    .command = &oct_command_correlate,
    .bytes = sizeof(struct oct_correlate_job),
    .values = offsetof(struct oct_correlate_job, given),
    .options = offsetof(struct oct_correlate_job, given.job),
    .may_lack_out = true,
    .progress = "pictures",
    .init = init_options,
    .read = read_options,
    .list = list_files,
    .work = correlate_pictures,
    .warn = warn_of_length,
    .print = print_all,
    .json = fill_json,
    .finish = finish_correlate,
};

static int run_correlate(struct oct_config *config, int argc, char **argv)
{
    return oct_job_run(&correlate_job, config, argc, argv);
}

const struct oct_command oct_command_correlate = {
    .name = "correlate",
    .usage = "IN... [OUT.h5]",
    .keys = "",
    .help = "correlates pictures with themselves or others",
    .options = options,
    .n_least = 1,
    .n_most = INT_MAX,
    .too_few = "which pictures?",
    .run = run_correlate,
};
