/* octctl cones: the spacing of photoreceptors in pictures from above, and its map. */
#include "analysis/cones/map.h"
#include "analysis/cones/square.h"
#include "formats/paths.h"
#include "formats/recording.h"
#include "kernels/device/workers.h"
#include "pipeline/base/clock.h"
#include "tools/analyse/cones_report.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/outputs.h"
#include "tools/picture_options.h"
#include "tools/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ARGUMENTS 1000000
#define MOST_BATCH 64u
#define MOST_BATCH_PIXELS (64u << 20) /* pictures held at once, but for the first */
#define SAME_SCALE 1e-3

struct given {
    const char *en_face, *spacing, *mask, *um, *csv, *png;
    uint64_t tile, step;
    double invalid; /* NaN: not given */
    bool is_db, json, force;
};

struct job {
    struct given given;
    struct oct_pictures_options options;
    struct oct_paths files;    /* owns inputs once they are files */
    const char *const *inputs; /* [n_inputs] */
    unsigned n_inputs;
    const char *out; /* NULL: none */
    struct oct_cones_setup finder;
    struct oct_pictures *pictures;
    struct oct_workers *workers;
    struct oct_cones_map *map; /* of the pictures at hand */
    struct oct_cones_report report;
    struct oct_progress progress;

    /* Pictures of one kind, read and not looked at yet. */
    struct oct_picture batch[MOST_BATCH];
    unsigned n_batch, most_batch;
    uint64_t first;       /* the number of the first of them */
    bool is_db, has_mask; /* of all of them */
};

/* ---- what was asked for ---- */

/* "A:B" */
static bool read_pair(const char *text, double *first, double *second)
{
    char end, sign;
    return sscanf(text, "%lf%c%lf%c", first, &sign, second, &end) == 3 && sign == ':' &&
           isfinite(*first) && isfinite(*second);
}

static int read_given(struct job *job, const char *name)
{
    const struct given *g = &job->given;
    struct oct_pictures_options *o = &job->options;
    o->allow_sizes = true;
    o->mask_path = g->mask;
    o->has_invalid = !isnan(g->invalid);
    o->invalid = g->invalid;
    if (g->en_face) {
        o->what = OCT_PICTURES_EN_FACE;
        if (!oct_picture_option_slab(g->en_face, &o->slab_first, &o->slab_last))
            return oct_command_misuse(name, "--en-face needs two depths, A:B, A below B");
    }
    if (g->um && !oct_picture_option_um(g->um, o->um))
        return oct_command_misuse(name, "--um needs micrometres of a pixel, DX or DX,DY");
    if (g->spacing &&
        (!read_pair(g->spacing, &job->finder.least_px, &job->finder.most_px) ||
         !(job->finder.least_px >= 2) || !(job->finder.most_px > job->finder.least_px)))
        return oct_command_misuse(name, "--spacing needs two lengths in pixels, MIN:MAX, 2 at "
                                        "least and MIN below MAX");
    if (g->step > 0 && g->tile == 0)
        return oct_command_misuse(name, "--step needs --tile");
    return 0;
}

/* Without --en-face files of B-scans are refused: there is no looking at them from above. */
static enum oct_err check_inputs(const struct job *job, struct oct_error *err)
{
    for (unsigned i = 0; i < job->n_inputs && !job->given.en_face; i++)
        if (!strstr(job->inputs[i], ".h5:/") && oct_recording_is_volume(job->inputs[i]))
            return oct_fail(err, OCT_E_ARG,
                            "%s: holds B-scans; --en-face A:B says from which depths to look",
                            job->inputs[i]);
    return OCT_OK;
}

/* ---- pictures ---- */

/* *picture with square pixels, of *um um each. */
static enum oct_err make_square(struct oct_picture *picture, const double um[2], double *um_square,
                                struct oct_error *err)
{
    const bool has_um = um[0] > 0 && um[1] > 0 && isfinite(um[0]) && isfinite(um[1]);
    const size_t n = (size_t)picture->height * picture->width;
    *um_square = has_um ? um[1] : NAN;
    if (!has_um || fabs(um[0] / um[1] - 1) < SAME_SCALE)
        return OCT_OK;
    struct oct_square square;
    struct oct_picture out;
    oct_square_plan(&square, picture->height, picture->width, um[0], um[1]);
    *um_square = square.um;
    float *merged = malloc(n * sizeof(*merged));
    if (!merged)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < n && picture->valid; i++)
        picture->pixels[i] = picture->valid[i] ? picture->pixels[i] : NAN;
    enum oct_err e = oct_picture_init(&out, square.out_height, square.out_width, true, err);
    if (!e) {
        oct_square_run(&square, picture->pixels, merged, &out);
        oct_picture_finish(picture);
        *picture = out;
    }
    free(merged);
    return e;
}

static void forget_batch(struct job *job)
{
    for (unsigned i = 0; i < job->n_batch; i++)
        oct_picture_finish(&job->batch[i]);
    job->n_batch = 0;
    oct_cones_map_destroy(job->map);
    job->map = NULL;
}

/* Of the first picture that was looked at, alone in its batch: itself, and its C1D. */
static enum oct_err keep_first(struct job *job, struct oct_error *err)
{
    struct oct_cones_report *r = &job->report;
    const struct oct_picture *picture = &job->batch[0];
    const double *radius, *c1d;
    const size_t n = (size_t)picture->height * picture->width;
    r->n_first = job->first;
    enum oct_err e = oct_picture_init(&r->first, picture->height, picture->width, false, err);
    if (e)
        return e;
    for (size_t i = 0; i < n; i++)
        r->first.pixels[i] = picture->valid && !picture->valid[i] ? NAN : picture->pixels[i];
    r->n_profile = oct_cones_map_profile(job->map, &radius, &c1d);
    r->radius = calloc(r->n_profile + 1, sizeof(double));
    r->c1d = calloc(r->n_profile + 1, sizeof(double));
    if (!r->radius || !r->c1d)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    if (r->n_profile > 0) {
        memcpy(r->radius, radius, r->n_profile * sizeof(double));
        memcpy(r->c1d, c1d, r->n_profile * sizeof(double));
    }
    return OCT_OK;
}

static enum oct_err open_map(struct job *job, struct oct_error *err)
{
    struct oct_cones_map_setup setup = {.finder = job->finder,
                                        .tile = (uint32_t)job->given.tile,
                                        .step = (uint32_t)job->given.step,
                                        .workers = job->workers};
    setup.finder.height = job->batch[0].height;
    setup.finder.width = job->batch[0].width;
    setup.finder.is_db = job->is_db;
    setup.finder.masked = job->has_mask;
    return oct_cones_map_create(&job->map, &setup, err);
}

/* Picture i of the batch has these results, n of them, or is left out for that reason. */
static enum oct_err note_picture(struct job *job, unsigned i, const struct oct_cones_result *found,
                                 uint32_t rows, uint32_t columns, const struct oct_error *why,
                                 struct oct_error *err)
{
    struct oct_cones_frame *f = &job->report.frames[job->first + i];
    const size_t n = why->code ? 1 : (size_t)rows * columns;
    f->rows = why->code ? 1 : rows;
    f->columns = why->code ? 1 : columns;
    f->left_out = why->code ? strdup(why->text) : NULL;
    f->results = malloc(n * sizeof(*f->results));
    if (!f->results || (why->code && !f->left_out))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    f->results[0] = oct_cones_none;
    if (!why->code && found)
        memcpy(f->results, found, n * sizeof(*found));
    return why->code || job->report.first.pixels ? OCT_OK : keep_first(job, err);
}

static enum oct_err look_at_batch(struct job *job, struct oct_error *err)
{
    struct oct_error why[MOST_BATCH] = {{.code = OCT_OK}};
    struct oct_cones_result *results = NULL;
    uint32_t rows = 1, columns = 1;
    if (job->n_batch == 0)
        return OCT_OK;
    enum oct_err e = open_map(job, &why[0]);
    if (e == OCT_E_ARG) { /* pictures of that size are too small for what was asked for */
        for (unsigned i = 1; i < job->n_batch; i++)
            why[i] = why[0];
    } else if (e) {
        return oct_fail(err, e, "%s", why[0].text);
    } else {
        oct_cones_map_size(job->map, &rows, &columns);
        results = malloc((size_t)job->n_batch * rows * columns * sizeof(*results));
        if (!results)
            return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
        if ((e = oct_cones_map_run(job->map, job->batch, job->n_batch, results, why, err))) {
            free(results);
            return e;
        }
    }
    const size_t n = (size_t)rows * columns;
    e = OCT_OK;
    for (unsigned i = 0; i < job->n_batch && !e; i++)
        e = note_picture(job, i, results ? results + i * n : NULL, rows, columns, &why[i], err);
    free(results);
    return e;
}

/* Whether one picture at least was not left out. */
static enum oct_err check_any(const struct job *job, struct oct_error *err)
{
    const struct oct_cones_frame *f = &job->report.frames[0];
    return job->report.first.pixels
               ? OCT_OK
               : oct_fail(err, OCT_E_ARG, "%s: frame 0: %s", f->path, f->left_out);
}

/* Puts picture i into the batch, which is looked at first where it is full or of another kind. */
static enum oct_err take_picture(struct job *job, uint64_t i, struct oct_error *err)
{
    struct oct_picture picture = {0};
    struct oct_pictures_info info = {.frame = i};
    struct oct_cones_frame *f = &job->report.frames[i];
    enum oct_err e = oct_pictures_read(job->pictures, i, &picture, &info, err);
    if (!e)
        e = make_square(&picture, info.um, &f->um, err);
    const bool is_db = info.is_db || job->given.is_db, has_mask = picture.valid != NULL;
    const bool fits =
        job->n_batch > 0 && job->report.first.pixels && job->n_batch < job->most_batch &&
        (uint64_t)picture.height * picture.width * job->n_batch < MOST_BATCH_PIXELS &&
        picture.height == job->batch[0].height && picture.width == job->batch[0].width &&
        is_db == job->is_db && has_mask == job->has_mask;
    if (!e && !fits) {
        e = look_at_batch(job, err);
        forget_batch(job);
        job->first = i;
        job->is_db = is_db;
        job->has_mask = has_mask;
    }
    if (e) {
        oct_picture_finish(&picture);
        return e;
    }
    f->time_ns = info.time_ns;
    f->index = info.index;
    f->path = info.path;
    job->batch[job->n_batch++] = picture;
    return OCT_OK;
}

static enum oct_err look_at_all(struct job *job, struct oct_error *err)
{
    const volatile sig_atomic_t *cancel = oct_interrupt_watch();
    const uint64_t n = oct_pictures_count(job->pictures);
    enum oct_err e = OCT_OK;
    for (uint64_t i = 0; i < n && !e; i++) {
        e = *cancel ? oct_fail(err, OCT_E_STATE, "interrupted; nothing was written")
                    : take_picture(job, i, err);
        oct_progress_show(&job->progress, i, n);
    }
    if (!e)
        e = look_at_batch(job, err);
    forget_batch(job);
    return e ? e : check_any(job, err);
}

/* ---- the command ---- */

static enum oct_err measure(struct job *job, struct oct_error *err)
{
    enum oct_err e = oct_paths_expand(&job->files, job->inputs, job->n_inputs, err);
    if (e)
        return e;
    job->inputs = (const char *const *)job->files.path;
    job->n_inputs = job->files.n;
    const struct oct_output_file files[] = {{job->out, oct_cones_report_h5, &job->report},
                                            {job->given.csv, oct_cones_report_csv, &job->report},
                                            {job->given.png, oct_cones_report_plot, &job->report}};
    const struct oct_input_files read = {job->inputs, job->n_inputs, {job->given.mask}};
    e = oct_outputs_check(files, 3, job->given.force, &read, err);
    if (!e)
        e = check_inputs(job, err);
    if (!e)
        e = oct_pictures_open(&job->pictures, job->inputs, job->n_inputs, &job->options, err);
    if (!e)
        e = oct_cones_report_init(&job->report, oct_pictures_count(job->pictures), err);
    if (!e)
        e = oct_workers_create(&job->workers, 0, err);
    if (e)
        return e;
    job->report.inputs = job->inputs;
    job->report.n_inputs = job->n_inputs;
    job->report.tile = (uint32_t)job->given.tile;
    job->report.step =
        (uint32_t)(job->given.step > 0 ? job->given.step : (job->given.tile + 1) / 2);
    job->given.step = job->report.step;
    job->most_batch = 2 * (oct_workers_n_threads(job->workers) + 1);
    job->most_batch = job->most_batch < MOST_BATCH ? job->most_batch : MOST_BATCH;
    job->progress.what = "pictures";
    job->progress.started_ns = oct_clock_ns();
    if ((e = look_at_all(job, err)))
        return e;
    job->report.seconds = oct_progress_seconds(&job->progress);
    oct_progress_end(&job->progress, job->report.n, job->report.n);
    return oct_outputs_write(files, 3, job->given.force, err);
}

static const struct oct_option options[] = {
    {"--en-face", "A:B", "of recordings: the mean over the depths A to B - 1, around IS/OS",
     OCT_OPTION_TEXT, .at = offsetof(struct given, en_face), .needs = "two depths, A:B"},
    {"--tile", "PX", "a density map of tiles of PX x PX pixels", OCT_OPTION_COUNT,
     .at = offsetof(struct given, tile), .least = 16, .most = OCT_PICTURE_MOST_SIDE,
     .needs = "16 to 16384 pixels"},
    {"--step", "PX", "from a tile to the next (half a tile)", OCT_OPTION_COUNT,
     .at = offsetof(struct given, step), .least = 1, .most = OCT_PICTURE_MOST_SIDE,
     .needs = "1 to 16384 pixels"},
    {"--spacing", "MIN:MAX", "look for spacings of MIN to MAX px (4 to 1/6 of the shorter side)",
     OCT_OPTION_TEXT, .at = offsetof(struct given, spacing), .needs = "two lengths, MIN:MAX"},
    {"--db", NULL, "pixels are logarithmic already", OCT_OPTION_FLAG,
     .at = offsetof(struct given, is_db)},
    {"--mask", "FILE", "a picture of which 0 is left out", OCT_OPTION_TEXT,
     .at = offsetof(struct given, mask), .needs = "a file"},
    {"--invalid", "VALUE", "leave out pixels of this value", OCT_OPTION_NUMBER,
     .at = offsetof(struct given, invalid), .needs = "a number"},
    {"--um", "DX[,DY]", "micrometres of a pixel, instead of what the file says", OCT_OPTION_TEXT,
     .at = offsetof(struct given, um), .needs = "micrometres, DX or DX,DY"},
    {"--csv", "FILE", "a row a picture, or a tile", OCT_OPTION_TEXT,
     .at = offsetof(struct given, csv), .needs = "a file"},
    {"--png", "FILE", "a plot of the first picture: C1D, or with --tile the map", OCT_OPTION_TEXT,
     .at = offsetof(struct given, png), .needs = "a file"},
    {"--json", NULL, "print the result as JSON", OCT_OPTION_FLAG,
     .at = offsetof(struct given, json)},
    {"--force", NULL, "replace outputs that exist, once the new ones are whole", OCT_OPTION_FLAG,
     .at = offsetof(struct given, force)},
    {NULL},
};

static int run(struct oct_config *config, int argc, char **argv)
{
    struct oct_error err;
    struct job *job = calloc(1, sizeof(*job));
    if (!job) {
        oct_fail(&err, OCT_E_NO_MEMORY, "out of memory");
        return oct_command_fail(argv[0], &err);
    }
    job->given.invalid = NAN;
    job->progress.quiet = config->quiet;
    int status = oct_options_read(&oct_command_cones, &job->given, &argc, argv);
    if (!status) {
        oct_picture_option_names(argc, argv, &job->inputs, &job->n_inputs, &job->out);
        status = read_given(job, argv[0]);
    }
    if (!status && measure(job, &err))
        status = oct_command_fail_at_work(argv[0], &err);
    if (!status)
        oct_cones_report_warn(&job->report, argv[0]);
    if (!status && job->given.json) {
        status = oct_command_printed(argv[0], oct_cones_report_print_json(&job->report));
    } else if (!status) {
        oct_cones_report_print(&job->report);
    }
    oct_pictures_close(job->pictures);
    oct_paths_finish(&job->files);
    oct_workers_destroy(job->workers);
    oct_cones_report_finish(&job->report);
    free(job);
    return status;
}

const struct oct_command oct_command_cones = {
    .name = "cones",
    .usage = "IN... [OUT.h5]",
    .keys = "",
    .help = "measures the spacing of photoreceptors in pictures from above",
    .options = options,
    .n_least = 1,
    .n_most = MOST_ARGUMENTS,
    .too_few = "which pictures?",
    .run = run,
};
