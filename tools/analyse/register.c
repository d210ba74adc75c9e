#include "tools/analyse/register.h"

#include "formats/csv.h"
#include "formats/results.h"
#include "numeric/order.h"
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/picture_options.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- settings ---- */

static const char *const as_names[] = {"frames", "bscans", "volume", "mosaic", NULL};
static const struct oct_register_mode *const modes[] = {&oct_register_frames, &oct_register_frames,
                                                        &oct_register_volume, &oct_register_mosaic};
static const char *const model_names[] = {"rigid", "strips", "none", NULL};
static const enum oct_sequence_model models[] = {OCT_SEQUENCE_RIGID, OCT_SEQUENCE_STRIPS,
                                                 OCT_SEQUENCE_NONE};
static const char *const crop_names[] = {"all", "common", NULL};
static const char *const domain_names[] = {"linear", "db", NULL};
static const char *const interpolation_names[] = {"linear", "cubic", "none", NULL};
static const enum oct_resampling interpolations[] = {OCT_RESAMPLING_LINEAR, OCT_RESAMPLING_CUBIC,
                                                     OCT_RESAMPLING_NONE};

#define S struct oct_register_settings
#define OPTION .is_option = true, .is_no_key = true
static const struct oct_param setting_rows[] = {
    {OCT_PARAM_CHOICE("as", S, as, as_names), OPTION, .standard = "frames",
     .meaning = "Pictures one on another; the same of B-scans of one place; each B-scan of a\n"
                "volume onto those before it; pictures that overlap."},
    {OCT_PARAM_CHOICE("model", S, model, model_names), OPTION, .standard = "rigid",
     .meaning = "One shift a frame; motion within frames; frames as they are."},
    {OCT_PARAM("search", S, search), OPTION, .least = 1, .most = 16384, .word = "auto",
     .standard = "auto", .unit = "px",
     .meaning = "Largest shift of a frame (auto: a third of the side), or from strip to strip\n"
                "(auto: 12)."},
    {OCT_PARAM("far", S, far), OPTION, .least = 1, .most = 1024, .standard = "64", .unit = "px",
     .meaning = "Strips that are lost are sought this far from the whole frame."},
    {OCT_PARAM("min_score", S, min_score), OPTION, .least = -1, .most = 1, .standard = "0",
     .meaning = "Correlation below which a frame or a strip is left out, besides what chance\n"
                "makes too."},
    {OCT_PARAM("passes", S, passes), OPTION, .least = 1, .most = 2, .standard = "1",
     .meaning = "2: again, against the average of the first pass."},
    {OCT_PARAM_CHOICE("crop", S, crop, crop_names), OPTION, .standard = "all",
     .meaning = "The canvas holds all frames, or what all cover."},
    {OCT_PARAM_CHOICE("domain", S, domain, domain_names), OPTION, .standard = "linear",
     .meaning = "Frames in dB are averaged as powers, or as they are."},
    {OCT_PARAM_CHOICE("interpolation", S, interpolation, interpolation_names), OPTION,
     .standard = "linear", .meaning = "Of moved frames, between pixels."},
};
#undef S
#undef OPTION
static const struct oct_params setting_params = OCT_PARAMS(setting_rows);

static bool is_given(const struct oct_register *r, const char *name)
{
    return oct_param_text(&setting_params, &r->given.own, name) != NULL;
}

/* ---- options that are not for all ---- */

#define FRAMES 1u /* and --as bscans */
#define VOLUME 2u
#define MOSAIC 4u
#define STRIPS (1u << OCT_SEQUENCE_STRIPS)
#define REGISTERS (STRIPS | 1u << OCT_SEQUENCE_RIGID)
#define NOT_GIVEN (REGISTERS | 1u << OCT_SEQUENCE_NONE)
#define ANY (NOT_GIVEN | 1u << OCT_SEQUENCE_GIVEN)

static int check_use(const struct oct_register *r)
{
    static const char *const shown_models[] = {"--model rigid", "--model strips", "--model none",
                                               "--shifts"};
    static const unsigned uses[] = {FRAMES, FRAMES, VOLUME, MOSAIC};
    const struct oct_register_given *g = &r->given;
    const unsigned use = uses[r->settings.as];
    const struct {
        const char *name;
        bool is_given;
        unsigned modes, models; /* the models matter to frames alone */
    } rows[] = {
        {"--model", is_given(r, "model"), FRAMES, NOT_GIVEN},
        {"--reference", g->reference, FRAMES, REGISTERS},
        {"--strip", g->strip, FRAMES, STRIPS},
        {"--far", is_given(r, "far"), FRAMES, STRIPS},
        {"--search", is_given(r, "search"), FRAMES | VOLUME, REGISTERS},
        {"--min-score", is_given(r, "min_score"), FRAMES | VOLUME | MOSAIC, REGISTERS},
        {"--passes 2", r->settings.passes > 1, FRAMES, REGISTERS},
        {"--roi", g->roi, FRAMES, REGISTERS},
        {"--frames", g->frames, FRAMES, ANY},
        {"--skip", g->skip, FRAMES | VOLUME, ANY},
        {"--shifts", g->shifts, FRAMES | VOLUME, ANY},
        {"--crop", is_given(r, "crop"), FRAMES | VOLUME, ANY},
        {"--domain", is_given(r, "domain"), FRAMES | VOLUME, ANY},
        {"--interpolation", is_given(r, "interpolation"), FRAMES | VOLUME, ANY},
        {"--slab", g->slab, FRAMES | MOSAIC, ANY},
        {"--lateral", g->lateral, VOLUME, ANY},
        {"--stack", g->stack, FRAMES, ANY},
    };
    const char *name = r->job.name;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].is_given && !(rows[i].modes & use))
            return oct_command_misuse(name, "--as %s takes no %s", as_names[r->settings.as],
                                      rows[i].name);
        if (rows[i].is_given && use == FRAMES && !(rows[i].models >> r->setup.model & 1))
            return oct_command_misuse(name, "%s takes no %s", shown_models[r->setup.model],
                                      rows[i].name);
    }
    if (g->shifts && g->shifts_only)
        return oct_command_misuse(name, "--shifts and --shifts-only leave nothing to do");
    if (g->stack && g->shifts_only)
        return oct_command_misuse(name, "--stack and --shifts-only exclude one another");
    if (use == MOSAIC && g->shifts_only && g->png)
        return oct_command_misuse(
            name, "--as mosaic: --png shows the average, which --shifts-only leaves out");
    return 0;
}

/* ---- the command line ---- */

static void init_register(void *job)
{
    struct oct_register *r = job;
    r->given.invalid = NAN;
}

static int read_parts(struct oct_register *r)
{
    const struct oct_register_given *g = &r->given;
    struct oct_sequence_setup *s = &r->setup;
    struct oct_region roi = {.width = 0};
    char colon, end;
    s->rows = OCT_STRIP_ROWS;
    s->step = OCT_STRIP_STEP;
    if (g->strip && (strspn(g->strip, "0123456789:") != strlen(g->strip) ||
                     sscanf(g->strip, "%8u%c%8u%c", &s->rows, &colon, &s->step, &end) != 3 ||
                     s->rows < 2 || s->step < 1))
        return oct_command_misuse(r->job.name, "--strip needs LINES:STEP, as 32:8, at least 2:1");
    int status = oct_picture_roi(r->job.name, g->roi, &roi);
    status = status ? status : oct_picture_slab(r->job.name, g->slab, &r->options.slab);
    status =
        status ? status : oct_picture_frames(r->job.name, g->frames, g->slab, &r->options.frames);
    s->roi[0] = roi.x;
    s->roi[1] = roi.y;
    s->roi[2] = roi.width;
    s->roi[3] = roi.height;
    r->options.what = g->slab ? OCT_PICTURES_EN_FACE : OCT_PICTURES_FRAMES;
    return status ? status : oct_picture_pixel_um(r->job.name, g->pixel_um, 2, r->options.um);
}

static void read_reference(struct oct_register *r)
{
    const char *text = r->given.reference;
    if (!text || strcmp(text, "auto") == 0)
        return;
    r->setup.has_number = oct_option_u64(text, &r->setup.number);
    if (!r->setup.has_number)
        r->reference_path = text;
}

/* The last argument is the file to make; with --shifts-only only if it is named .h5. */
static int find_out(struct oct_register *r)
{
    if (r->job.out || r->given.shifts_only)
        return 0;
    if (r->job.n_inputs < 2)
        return oct_command_misuse(r->job.name, "say where to: IN... OUT.h5");
    r->job.out = r->job.inputs[--r->job.n_inputs];
    return 0;
}

static int read_settings(void *job)
{
    struct oct_register *r = job;
    const struct oct_register_given *g = &r->given;
    struct oct_register_settings *given = &r->settings;
    struct oct_sequence_setup *s = &r->setup;
    int status = find_out(r);
    status = status ? status : read_parts(r);
    if (status)
        return status;
    oct_params_set_defaults(&setting_params, given);
    oct_param_texts_store(&setting_params, &g->own, given);
    r->mode = modes[given->as];
    r->is_linear = given->domain == 0;
    s->model = g->shifts ? OCT_SEQUENCE_GIVEN : models[given->model];
    s->common = given->crop == 1;
    s->interpolation = interpolations[given->interpolation];
    const bool by_strips = s->model == OCT_SEQUENCE_STRIPS;
    s->search = given->search && by_strips ? given->search : OCT_STRIP_SEARCH;
    s->max_dy = s->max_dx = by_strips ? 0 : given->search;
    s->far = given->far;
    s->min_score = given->min_score;
    s->n_passes = given->passes;
    s->backend = r->job.backend;
    s->gpus = r->job.gpus;
    read_reference(r);
    r->options.mask_path = g->mask;
    r->options.has_invalid = !isnan(g->invalid);
    r->options.invalid = g->invalid;
    s->masked = g->mask || r->options.has_invalid;
    return check_use(r);
}

/* ---- what is read ---- */

enum oct_err oct_register_open(struct oct_register *r, struct oct_error *err)
{
    struct oct_picture first = {0};
    struct oct_pictures_info info;
    enum oct_err e =
        oct_pictures_open(&r->pictures, r->job.inputs, r->job.n_inputs, &r->options, err);
    e = e ? e : oct_pictures_read(r->pictures, 0, &first, &info, err);
    if (e)
        return e;
    r->n = oct_pictures_count(r->pictures);
    r->height = first.height;
    r->width = first.width;
    r->um[0] = info.um[0];
    r->um[1] = info.um[1];
    r->is_db = info.is_db;
    r->time_ns = oct_alloc(r->n, sizeof(*r->time_ns));
    r->is_read = oct_alloc(r->n, sizeof(*r->is_read));
    oct_picture_finish(&first);
    return oct_picture_skip(r->given.skip, r->n, &r->skip, err);
}

enum oct_err oct_register_read(struct oct_register *r, uint64_t i, struct oct_picture *picture,
                               struct oct_error *err)
{
    struct oct_pictures_info info;
    enum oct_err e = oct_job_go_on(&r->job, err);
    e = e ? e : oct_pictures_read(r->pictures, i, picture, &info, err);
    if (!e) {
        r->time_ns[i] = info.time_ns;
        r->is_read[i] = 1;
    }
    return e;
}

void oct_register_show(void *r, uint64_t done, uint64_t all)
{
    oct_progress_show(&((struct oct_register *)r)->job.progress, done, all);
}

/* ---- rows ---- */

/* Seconds of frame i since the first one that was read. NaN: it was not read, or the clock stands
 * still, as that of pictures without times. */
static double seconds_of(const struct oct_register *r, uint64_t i)
{
    uint64_t first = 0, last = r->n - 1;
    while (first < last && !r->is_read[first])
        first++;
    while (last > first && !r->is_read[last])
        last--;
    if (r->time_ns[last] <= r->time_ns[first] || !r->is_read[i])
        return NAN;
    return (double)(int64_t)(r->time_ns[i] - r->time_ns[first]) * 1e-9;
}

void oct_register_put_row(const struct oct_register *r, struct oct_csv *csv, uint64_t frame,
                          uint32_t line, double dy, double dx, const double sd[2], double score)
{
    const double numbers[] = {seconds_of(r, frame), dy,    dx,    dy * r->um[0],
                              dx * r->um[1],        sd[0], sd[1], score};
    oct_csv_count(csv, frame);
    oct_csv_count(csv, line);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        oct_csv_number(csv, numbers[i]);
    oct_csv_text(csv, oct_pictures_path(r->pictures, frame));
    oct_csv_end_row(csv);
}

void oct_register_write_pairs(struct oct_register *r, const char *name, const char *axes,
                              void (*pair_of)(const void *own, uint64_t i, double pair[2]))
{
    const uint64_t dims[2] = {r->n, 2};
    const unsigned dataset = oct_results_dataset(r->h5, name, OCT_RESULTS_F64, 2, dims, "px");
    double pair[2];
    oct_results_text(r->h5, name, "axes", axes);
    for (uint64_t i = 0; i < r->n; i++) {
        pair_of(r->own, i, pair);
        oct_results_write_rows(r->h5, dataset, i, 1, pair);
    }
}

void oct_register_range_grow(struct oct_register_range *range, double dy, double dx)
{
    range->dy[0] = fmin(range->dy[0], dy);
    range->dy[1] = fmax(range->dy[1], dy);
    range->dx[0] = fmin(range->dx[0], dx);
    range->dx[1] = fmax(range->dx[1], dx);
}

double oct_register_median(double *scores, size_t n)
{
    if (n == 0)
        return NAN;
    oct_doubles_sort(scores, n);
    return scores[n / 2];
}

/* ---- files ---- */

static const char *path_of(const void *pictures, uint64_t frame)
{
    return oct_pictures_path(pictures, frame);
}

static void write_text(struct oct_results *results, const char *name, const char *text)
{
    if (text)
        oct_results_text(results, NULL, name, text);
}

/* What decides how strips and frames are found. */
static void write_search(const struct oct_register *r, bool is_volume)
{
    struct oct_results *f = r->h5;
    const struct oct_sequence_setup *s = &r->setup;
    const bool by_strips = s->model == OCT_SEQUENCE_STRIPS;
    if (by_strips || s->max_dy) /* else a third of the sides */
        oct_results_count(f, NULL, "search_px", by_strips ? s->search : s->max_dy);
    if (is_volume)
        return;
    write_text(f, "reference", r->given.reference ? r->given.reference : "auto");
    oct_results_count(f, NULL, "passes", s->n_passes);
    if (!by_strips)
        return;
    oct_results_count(f, NULL, "strip_lines", s->rows);
    oct_results_count(f, NULL, "strip_step", s->step);
    oct_results_count(f, NULL, "far_px", s->far);
}

/* All settings, given or not, of the options that the mode takes. */
static void write_settings(const struct oct_register *r)
{
    struct oct_results *f = r->h5;
    const struct oct_register_given *g = &r->given;
    const struct oct_register_settings *s = &r->settings;
    const bool registers =
        r->setup.model == OCT_SEQUENCE_RIGID || r->setup.model == OCT_SEQUENCE_STRIPS;
    const bool is_mosaic = r->mode == &oct_register_mosaic;
    oct_outputs_source(f, r->job.inputs, r->job.n_inputs);
    write_text(f, "as", as_names[s->as]);
    write_text(f, "asked_backend", r->job.backend);
    if (registers)
        oct_results_number(f, NULL, "min_score", s->min_score);
    if (registers && !is_mosaic)
        write_search(r, r->mode == &oct_register_volume);
    if (!is_mosaic) {
        write_text(f, "crop", crop_names[s->crop]);
        write_text(f, "domain", domain_names[s->domain]);
        write_text(f, "interpolation", interpolation_names[s->interpolation]);
    }
    write_text(f, "roi", g->roi);
    write_text(f, "mask", g->mask);
    write_text(f, "frames", g->frames);
    write_text(f, "skip", g->skip);
    write_text(f, "shifts", g->shifts);
    write_text(f, "en_face", g->slab);
    write_text(f, "um", g->pixel_um);
    if (!isnan(g->invalid))
        oct_results_number(f, NULL, "invalid", g->invalid);
    oct_results_numbers(f, NULL, "um_px", r->um, 2);
    oct_results_texts(f, is_mosaic ? "/pictures/files" : "/frames/files", r->n, path_of,
                      r->pictures);
}

static enum oct_err write_h5(void *job, const char *path, bool force, struct oct_error *err)
{
    struct oct_register *r = job;
    struct oct_results *f = r->h5;
    (void)force;
    r->mode->write_h5(r);
    write_settings(r);
    r->h5 = NULL;
    return oct_results_publish_as(f, path, err);
}

static enum oct_err list_files(void *job, struct oct_error *err)
{
    struct oct_register *r = job;
    const struct oct_register_given *g = &r->given;
    (void)err;
    r->job.reads[0] = g->mask;
    r->job.reads[1] = r->reference_path;
    r->job.reads[2] = g->shifts;
    oct_job_add(&r->job, r->job.out, write_h5, r);
    oct_job_add(&r->job, g->csv, r->mode->write_csv, r);
    if (!g->png)
        return OCT_OK;
    if (r->mode == &oct_register_volume || !g->shifts_only)
        oct_job_add(&r->job, g->png, r->mode->draw, r);
    if (r->mode->draw_motion)
        oct_job_add(&r->job, oct_job_beside(g->png, ".png", "motion"), r->mode->draw_motion, r);
    return OCT_OK;
}

static enum oct_err register_all(void *job, struct oct_error *err)
{
    struct oct_register *r = job;
    r->own = oct_alloc(1, r->mode->bytes);
    r->job.progress.what = r->mode->counted;
    return r->mode->work(r, err);
}

enum oct_err oct_register_create_h5(struct oct_register *r, struct oct_error *err)
{
    return r->job.out
               ? oct_results_create(&r->h5, r->job.out, r->mode->kind, r->given.job.force, err)
               : OCT_OK;
}

enum oct_err oct_register_draw_motion(const char *path, bool force, const char *x_label,
                                      const struct oct_plot_series *series, unsigned n_series,
                                      struct oct_error *err)
{
    const struct oct_plot_lines plot = {.title = "Motion",
                                        .x_label = x_label,
                                        .y_label = "shift (px)",
                                        .series = series,
                                        .n_series = n_series};
    return oct_plot_write_lines(path, force, &plot, err);
}

/* ---- what is said ---- */

static void print_summary(const void *job)
{
    const struct oct_register *r = job;
    if (r->job.out)
        printf("%s: ", r->job.out);
    r->mode->print(r);
    printf("\n");
}

static void fill_json(const void *job, cJSON *tree)
{
    const struct oct_register *r = job;
    r->mode->json(r, tree);
    if (r->job.out)
        cJSON_AddStringToObject(tree, "out", r->job.out);
}

static void finish_register(void *job)
{
    struct oct_register *r = job;
    oct_results_discard(r->h5);
    oct_pictures_close(r->pictures);
}

/* ---- the command ---- */

#define AT(member) .at = offsetof(struct oct_register_given, member)
static const struct oct_option options[] = {
    {.kind = OCT_OPTION_PARAMS, .params = &setting_params, AT(own)},
    {"--reference", "R", "auto, the number of a frame from 0, or a picture's FILE (auto)",
     OCT_OPTION_TEXT, AT(reference), .words = OCT_WORDS_FILES},
    {"--strip", "LINES:STEP", "strips of LINES lines, one every STEP (32:8)", OCT_OPTION_TEXT,
     AT(strip)},
    {"--roi", "X,Y,W,H", "register by this part of the frames; all of them is moved",
     OCT_OPTION_TEXT, AT(roi)},
    {"--mask", "FILE", "a picture of the frames' size: 0 is not valid", OCT_OPTION_TEXT, AT(mask)},
    {"--invalid", "VALUE", "pixels of this value are not valid", OCT_OPTION_NUMBER, AT(invalid)},
    {OCT_PICTURE_FRAMES(struct oct_register_given, frames)},
    {"--skip", "N,N-M", "leave out these frames", OCT_OPTION_TEXT, AT(skip)},
    {"--shifts", "FILE.csv", "move by these shifts, found on another channel", OCT_OPTION_TEXT,
     AT(shifts)},
    {"--shifts-only", NULL, "no average; OUT.h5 may be left out", OCT_OPTION_FLAG, AT(shifts_only)},
    {"--slab", "A:B", "of volumes: the mean over the depths A to B", OCT_OPTION_TEXT, AT(slab),
     .was = "--en-face"},
    {"--lateral", NULL, "volume: also along the A-lines, not in depth alone", OCT_OPTION_FLAG,
     AT(lateral)},
    {"--stack", NULL, "also the moved frames, as /registered", OCT_OPTION_FLAG, AT(stack)},
    {"--csv", "FILE", "the shifts as a table", OCT_OPTION_TEXT, AT(csv)},
    {"--png", "FILE", "the average as a picture, and FILE-motion.png, motion over time",
     OCT_OPTION_TEXT, AT(png)},
    {"--pixel-um", "X[,Y]", "micrometres of a pixel, instead of what the file says",
     OCT_OPTION_TEXT, AT(pixel_um), .was = "--um"},
    OCT_JOB_JSON(struct oct_register_given, job),
    OCT_JOB_FORCE(struct oct_register_given, job),
    {NULL},
};

static const struct oct_job_ops register_job = {
    .command = &oct_command_register,
    .bytes = sizeof(struct oct_register),
    .values = offsetof(struct oct_register, given),
    .options = offsetof(struct oct_register, given.job),
    .may_lack_out = true,
    .init = init_register,
    .read = read_settings,
    .list = list_files,
    .work = register_all,
    .print = print_summary,
    .json = fill_json,
    .finish = finish_register,
};

static int run_register(struct oct_config *config, int argc, char **argv)
{
    return oct_job_run(&register_job, config, argc, argv);
}

const struct oct_command oct_command_register = {
    .name = "register",
    .usage = "IN... OUT.h5",
    .keys = "",
    .help = "puts frames onto one another and averages them",
    .options = options,
    .n_least = 1,
    .n_most = 1 << 20,
    .too_few = "which files? IN... OUT.h5",
    .run = run_register,
};
