/* octctl cones: photoreceptors in pictures from above, counted; their spacing, and its map. */
#include "analysis/cones/map.h"
#include "analysis/cones/square.h"
#include "formats/pictures.h"
#include "formats/result_files.h"
#include "formats/results.h"
#include "kernels/device/workers.h"
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/analyse/job.h"
#include "tools/commands.h"
#include "tools/picture_options.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BATCH 64u
#define MOST_BATCH_PIXELS (64u << 20) /* pictures held at once, but for the first */
#define SAME_SCALE 1e-3
#define RING_SHARE 0.35 /* of a ring around a cone, of the distance to the nearest */
#define WHOLE_RGB 0x00c040
#define CUT_RGB 0xe08000

/* ---- what is found ---- */

/* In a picture, or in a tile of one. */
struct cone_row {
    uint64_t frame;
    const char *file;
    uint32_t tile_y, tile_x;
    double spacing_um, rows_um, per_px2, per_mm2, per_mm2_se, nearest_um;
    struct oct_cones_result found;
};

#define R struct cone_row
static const struct oct_result_field row_fields[] = {
    {OCT_RESULT("frame", R, frame)},
    {OCT_RESULT("tile_y", R, tile_y)},
    {OCT_RESULT("tile_x", R, tile_x)},
    {OCT_RESULT("spacing_px", R, found.spacing_px), .unit = "px"},
    {OCT_RESULT("spacing_um", R, spacing_um), .unit = "um"},
    {OCT_RESULT("rows_um", R, rows_um), .unit = "um"},
    {OCT_RESULT("cells_per_mm2", R, per_mm2), .unit = "1/mm^2"},
    {OCT_RESULT("strength", R, found.strength)},
    {OCT_RESULT("ring_spacing_px", R, found.ring_spacing_px), .unit = "px"},
    {OCT_RESULT("cones", R, found.count.n), .zero_is_none = true},
    {OCT_RESULT("whole_cells", R, found.count.n_whole), .zero_is_none = true},
    {OCT_RESULT("spacing_se_px", R, found.count.spacing_se), .unit = "px"},
    {OCT_RESULT("cells_per_px2", R, per_px2), .unit = "1/px^2"},
    {OCT_RESULT("cells_per_mm2_se", R, per_mm2_se), .unit = "1/mm^2"},
    {OCT_RESULT("nearest_px", R, found.count.nearest), .unit = "px"},
    {OCT_RESULT("nearest_um", R, nearest_um), .unit = "um"},
    {OCT_RESULT("regularity", R, found.count.regularity)},
    {OCT_RESULT("six_sided", R, found.count.six_sided)},
    {OCT_RESULT("file", R, file)},
    {OCT_RESULT("is_split", R, found.is_split), .not_in = OCT_RESULT_CSV},
    {OCT_RESULT("seen_px", R, found.seen_px), .unit = "px", .not_in = OCT_RESULT_CSV},
    {OCT_RESULT("seen_strength", R, found.seen_strength), .not_in = OCT_RESULT_CSV},
    {OCT_RESULT("needed", R, found.needed), .not_in = OCT_RESULT_CSV | OCT_RESULT_JSON},
};
#undef R
static const struct oct_result_fields cone_fields = OCT_RESULT_FIELDS(row_fields);

/* A cone, as --places and /places have it. */
struct place_row {
    uint64_t frame;
    const char *file;
    uint32_t tile_y, tile_x;
    double y_um, x_um, nearest_um;
    struct oct_cone_place at;
};

#define R struct place_row
static const struct oct_result_field place_row_fields[] = {
    {OCT_RESULT("frame", R, frame)},
    {OCT_RESULT("tile_y", R, tile_y)},
    {OCT_RESULT("tile_x", R, tile_x)},
    {OCT_RESULT("y_px", R, at.y), .unit = "px", .meaning = "0: the middle of the first pixel"},
    {OCT_RESULT("x_px", R, at.x), .unit = "px", .meaning = "0: the middle of the first pixel"},
    {OCT_RESULT("y_um", R, y_um), .unit = "um"},
    {OCT_RESULT("x_um", R, x_um), .unit = "um"},
    {OCT_RESULT("nearest_px", R, at.nearest), .unit = "px", .meaning = "to the nearest other cone"},
    {OCT_RESULT("nearest_um", R, nearest_um), .unit = "um", .meaning = "to the nearest other cone"},
    {OCT_RESULT("cell_px2", R, at.area), .unit = "px^2",
     .meaning = "of its cell, where it is whole"},
    {OCT_RESULT("cell_sides", R, at.n_sides), .zero_is_none = true},
    {OCT_RESULT("file", R, file), .not_in = OCT_RESULT_H5},
};
#undef R
static const struct oct_result_fields place_fields = OCT_RESULT_FIELDS(place_row_fields);

/* Datasets /cones/NAME, a map a picture. */
static const char *const map_names[] = {"spacing_px", "cells_per_mm2", "strength",
                                        "ring_spacing_px", "cones"};
#define N_MAPS (sizeof(map_names) / sizeof(map_names[0]))

static const char found_sentence[] =
    "spacing {spacing_px:.2f} px[, {spacing_um:.2f} um, rows {rows_um:.2f} um, "
    "{cells_per_mm2:.0f} cells/mm2], strength {strength:.3f}; ring {ring_spacing_px:.2f} px, "
    "{cones} cones[, regularity {regularity:.1f}]";
static const char none_sentence[] =
    "no ring[{is_split?} (pairs of light and dark)][{is_split!} (strongest {seen_strength:.3f} at "
    "{seen_px:.2f} px, {needed:.3f} is needed)]";

/* ---- the command ---- */

struct cone_options {
    const char *frames, *slab, *spacing, *mask, *pixel_um, *csv, *places, *png;
    uint64_t tile, step;
    double invalid; /* NaN: not given */
    bool is_db;
    struct oct_job_options job;
};

struct cone_frame {
    char *left_out;          /* why: it has one row, without a ring. NULL: it is not */
    uint64_t time_ns, index; /* of oct_pictures_info */
    double um;               /* of a square pixel; NaN: unknown */
    const char *path;
    uint64_t first; /* its first row */
    uint32_t rows, columns;
};

struct cones {
    struct oct_job job;
    struct cone_options given;
    struct oct_pictures_options options;
    struct oct_cones_setup finder;
    struct oct_pictures *pictures;
    struct oct_cones_map *map; /* of the pictures at hand */
    uint32_t tile, step;       /* px; tile 0: whole pictures */

    uint64_t n, n_rows;
    struct cone_frame *frames; /* [n] */
    struct cone_row *rows;     /* [n_rows] */
    struct place_row *places;  /* [n_places], in the order of rows */
    size_t n_places, room_for_places;

    /* Pictures of one kind, read and not searched yet. */
    struct oct_picture batch[MOST_BATCH];
    unsigned n_batch, most_batch;
    uint64_t first;       /* the number of the first of them */
    bool is_db, has_mask; /* of all of them */

    /* Of the first picture that was not left out, for the plot. */
    uint64_t n_shown; /* its number */
    struct oct_picture shown;
    double *radius, *c1d; /* [n_profile]; 0 with tiles */
    uint32_t n_profile;
};

static void init_cones(void *job)
{
    ((struct cones *)job)->given.invalid = NAN;
}

static int read_options(void *job)
{
    struct cones *c = job;
    const struct cone_options *g = &c->given;
    struct oct_pictures_options *o = &c->options;
    const char *name = c->job.name;
    o->allow_sizes = true;
    o->mask_path = c->job.reads[0] = g->mask;
    o->has_invalid = !isnan(g->invalid);
    o->invalid = g->invalid;
    c->tile = (uint32_t)g->tile;
    c->step = (uint32_t)(g->step > 0 ? g->step : (g->tile + 1) / 2);
    o->what = g->slab ? OCT_PICTURES_EN_FACE : OCT_PICTURES_FRAMES;
    int status = oct_picture_slab(name, g->slab, &o->slab);
    status = status ? status : oct_picture_frames(name, g->frames, g->slab, &o->frames);
    status = status ? status : oct_picture_pixel_um(name, g->pixel_um, 2, o->um);
    if (status)
        return status;
    if (g->spacing &&
        (!oct_picture_option_pair(g->spacing, &c->finder.least_px, &c->finder.most_px) ||
         !(c->finder.least_px >= 2) || !(c->finder.most_px > c->finder.least_px)))
        return oct_command_misuse(name, "--spacing needs two lengths in pixels, MIN:MAX, 2 at "
                                        "least and MIN below MAX");
    if (g->step > 0 && g->tile == 0)
        return oct_command_misuse(name, "--step needs --tile");
    return 0;
}

/* Without --slab files of B-scans are refused: there is no looking at them from above. */
static enum oct_err check_inputs(const struct cones *c, struct oct_error *err)
{
    for (unsigned i = 0; i < c->job.n_inputs && !c->given.slab; i++)
        if (!strstr(c->job.inputs[i], ".h5:/") && oct_pictures_is_volume(c->job.inputs[i]))
            return oct_fail(err, OCT_E_ARG,
                            "%s: holds B-scans; --slab A:B says from which depths to look",
                            c->job.inputs[i]);
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
    float *merged = oct_alloc(n, sizeof(*merged));
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

static void drop_batch(struct cones *c)
{
    for (unsigned i = 0; i < c->n_batch; i++)
        oct_picture_finish(&c->batch[i]);
    c->n_batch = 0;
    oct_cones_map_destroy(c->map);
    c->map = NULL;
}

/* Of the first picture that was searched, alone in its batch: itself, and its C1D. */
static enum oct_err keep_shown(struct cones *c, struct oct_error *err)
{
    const double *radius, *c1d;
    const enum oct_err e = oct_picture_copy(&c->shown, &c->batch[0], err);
    if (e)
        return e;
    const size_t n = (size_t)c->shown.height * c->shown.width;
    for (size_t i = 0; i < n; i++)
        c->shown.pixels[i] = oct_picture_is_valid(&c->shown, i) ? c->shown.pixels[i] : NAN;
    c->n_shown = c->first;
    c->n_profile = oct_cones_map_profile(c->map, &radius, &c1d);
    c->radius = oct_alloc(c->n_profile, sizeof(double));
    c->c1d = oct_alloc(c->n_profile, sizeof(double));
    for (uint32_t i = 0; i < c->n_profile; i++) {
        c->radius[i] = radius[i];
        c->c1d[i] = c1d[i];
    }
    return OCT_OK;
}

static enum oct_err create_map(struct cones *c, struct oct_error *err)
{
    struct oct_cones_map_setup setup = {
        .finder = c->finder, .tile = c->tile, .step = c->step, .workers = c->job.workers};
    setup.finder.height = c->batch[0].height;
    setup.finder.width = c->batch[0].width;
    setup.finder.is_db = c->is_db;
    setup.finder.masked = c->has_mask;
    return oct_cones_map_create(&c->map, &setup, err);
}

static void add_places(struct cones *c, const struct cone_row *r, struct oct_cones_map_places *from)
{
    const double um = c->frames[r->frame].um;
    c->places =
        oct_alloc_room(c->places, &c->room_for_places, c->n_places + from->n, sizeof(*c->places));
    for (uint32_t i = 0; i < from->n; i++) {
        const struct oct_cone_place *at = &from->place[i];
        c->places[c->n_places++] = (struct place_row){
            r->frame, r->file, r->tile_y, r->tile_x, at->y * um, at->x * um, at->nearest * um, *at};
    }
    free(from->place);
}

/* Picture i of the batch has these results, or is left out for that reason. */
static enum oct_err add_rows(struct cones *c, unsigned i, const struct oct_cones_result *found,
                             struct oct_cones_map_places *places, uint32_t rows, uint32_t columns,
                             const struct oct_error *why, struct oct_error *err)
{
    struct cone_frame *f = &c->frames[c->first + i];
    f->rows = why->code ? 1 : rows;
    f->columns = why->code ? 1 : columns;
    f->left_out = why->code ? oct_alloc_text("%s", why->text) : NULL;
    f->first = c->n_rows;
    c->n_rows += (uint64_t)f->rows * f->columns;
    c->rows = oct_alloc_more(c->rows, c->n_rows, sizeof(*c->rows));
    for (uint32_t k = 0; k < f->rows * f->columns; k++) {
        const struct oct_cones_result *r = why->code ? &oct_cones_none : &found[k];
        const double um = r->spacing_px * f->um, mm2_per_px2 = f->um * f->um / OCT_UM2_PER_MM2;
        c->rows[f->first + k] =
            (struct cone_row){.frame = c->first + i,
                              .file = f->path,
                              .tile_y = k / f->columns,
                              .tile_x = k % f->columns,
                              .spacing_um = um,
                              .rows_um = oct_cones_rows(um),
                              .per_px2 = oct_cones_per_area(r->spacing_px),
                              .per_mm2 = oct_cones_per_area(um) * OCT_UM2_PER_MM2,
                              .per_mm2_se = r->count.per_px2_se / mm2_per_px2,
                              .nearest_um = r->count.nearest * f->um,
                              .found = *r};
        if (places && !why->code)
            add_places(c, &c->rows[f->first + k], &places[k]);
    }
    return why->code || c->shown.pixels ? OCT_OK : keep_shown(c, err);
}

static enum oct_err search_batch(struct cones *c, struct oct_error *err)
{
    struct oct_error why[MOST_BATCH] = {{.code = OCT_OK}};
    struct oct_cones_result *results = NULL;
    struct oct_cones_map_places *places = NULL;
    uint32_t rows = 1, columns = 1;
    if (c->n_batch == 0)
        return OCT_OK;
    enum oct_err e = create_map(c, &why[0]);
    if (e && e != OCT_E_ARG)
        return oct_fail(err, e, "%s", why[0].text);
    if (e) { /* pictures of that size are too small for what was asked for */
        for (unsigned i = 1; i < c->n_batch; i++)
            why[i] = why[0];
        e = OCT_OK;
    } else {
        oct_cones_map_size(c->map, &rows, &columns);
        results = oct_alloc((size_t)c->n_batch * rows * columns, sizeof(*results));
        if (c->job.out || c->given.places || c->given.png)
            places = oct_alloc((size_t)c->n_batch * rows * columns, sizeof(*places));
        e = oct_cones_map_run(c->map, c->batch, c->n_batch, results, places, why, err);
    }
    const size_t n = (size_t)rows * columns;
    for (unsigned i = 0; i < c->n_batch && !e; i++)
        e = add_rows(c, i, results ? results + i * n : NULL, places ? places + i * n : NULL, rows,
                     columns, &why[i], err);
    free(results);
    free(places);
    return e;
}

/* Puts picture i into the batch, which is searched first where it is full or of another kind. */
static enum oct_err read_picture(struct cones *c, uint64_t i, struct oct_error *err)
{
    struct oct_picture picture = {0};
    struct oct_pictures_info info = {.frame = i};
    struct cone_frame *f = &c->frames[i];
    enum oct_err e = oct_pictures_read(c->pictures, i, &picture, &info, err);
    if (!e)
        e = make_square(&picture, info.um, &f->um, err);
    const bool is_db = info.is_db || c->given.is_db, has_mask = picture.valid != NULL;
    const bool fits = c->n_batch > 0 && c->shown.pixels && c->n_batch < c->most_batch &&
                      (uint64_t)picture.height * picture.width * c->n_batch < MOST_BATCH_PIXELS &&
                      picture.height == c->batch[0].height && picture.width == c->batch[0].width &&
                      is_db == c->is_db && has_mask == c->has_mask;
    if (!e && !fits) {
        e = search_batch(c, err);
        drop_batch(c);
        c->first = i;
        c->is_db = is_db;
        c->has_mask = has_mask;
    }
    if (e) {
        oct_picture_finish(&picture);
        return e;
    }
    f->time_ns = info.time_ns;
    f->index = info.index;
    f->path = info.path;
    c->batch[c->n_batch++] = picture;
    return OCT_OK;
}

static enum oct_err measure_pictures(void *job, struct oct_error *err)
{
    struct cones *c = job;
    enum oct_err e = check_inputs(c, err);
    if (!e)
        e = oct_pictures_open(&c->pictures, c->job.inputs, c->job.n_inputs, &c->options, err);
    if (e)
        return e;
    c->n = oct_pictures_count(c->pictures);
    c->frames = oct_alloc(c->n, sizeof(*c->frames));
    c->most_batch = 2 * (oct_workers_n_threads(c->job.workers) + 1);
    c->most_batch = c->most_batch < MOST_BATCH ? c->most_batch : MOST_BATCH;
    for (uint64_t i = 0; i < c->n && !e; i++) {
        e = oct_job_go_on(&c->job, err);
        if (!e)
            e = read_picture(c, i, err);
        oct_progress_show(&c->job.progress, i, c->n);
    }
    if (!e)
        e = search_batch(c, err);
    drop_batch(c);
    if (!e && !c->shown.pixels)
        e = oct_fail(err, OCT_E_ARG, "%s: frame 0: %s", c->frames[0].path, c->frames[0].left_out);
    if (!e)
        oct_progress_end(&c->job.progress, c->n, c->n);
    return e;
}

/* ---- files ---- */

static enum oct_err write_csv(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct cones *c = job;
    const struct oct_result_rows rows = OCT_RESULT_ROWS(cone_fields, c->rows, c->n_rows);
    return oct_result_csv(path, force, &rows, err);
}

static enum oct_err write_places(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct cones *c = job;
    const struct oct_result_rows rows = OCT_RESULT_ROWS(place_fields, c->places, c->n_places);
    return oct_result_csv(path, force, &rows, err);
}

static const char *path_of(const void *job, uint64_t i)
{
    return ((const struct cones *)job)->frames[i].path;
}

/* [n][rows][columns]; where a picture has fewer tiles than another: NaN. */
static void write_map(const struct cones *c, struct oct_results *r, const char *name, uint32_t rows,
                      uint32_t columns)
{
    const struct oct_result_field *field = oct_result_find(&cone_fields, name);
    const uint64_t dims[3] = {c->n, rows, columns};
    const double step_um = c->step > 0 ? c->step * c->frames[0].um : NAN;
    const size_t n = (size_t)rows * columns;
    char *path = oct_alloc_text("/cones/%s", name);
    double *values = oct_alloc(n, sizeof(*values));
    const unsigned dataset = oct_results_dataset(r, path, OCT_RESULTS_F64, 3, dims, field->unit);
    oct_results_axes(r, dataset, (const char *const[3]){"frame", "row", "column"},
                     (const double[3]){NAN, step_um, step_um});
    for (uint64_t i = 0; i < c->n; i++) {
        const struct cone_frame *f = &c->frames[i];
        for (size_t k = 0; k < n; k++)
            values[k] = NAN;
        for (uint32_t k = 0; k < f->rows * f->columns; k++)
            if (oct_result_is_known(field, &c->rows[f->first + k]))
                values[(size_t)(k / f->columns) * columns + k % f->columns] =
                    oct_result_number(field, &c->rows[f->first + k], 0);
        oct_results_write_rows(r, dataset, i, 1, values);
    }
    free(values);
    free(path);
}

static enum oct_err write_h5(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct cones *c = job;
    uint32_t rows = 1, columns = 1;
    struct oct_results *r;
    for (uint64_t i = 0; i < c->n; i++) {
        rows = c->frames[i].rows > rows ? c->frames[i].rows : rows;
        columns = c->frames[i].columns > columns ? c->frames[i].columns : columns;
    }
    const enum oct_err e = oct_results_create(&r, path, "cones", force, err);
    if (e)
        return e;
    oct_outputs_source(r, c->job.inputs, c->job.n_inputs);
    oct_results_number(r, NULL, "um_px", c->frames[0].um);
    oct_results_count(r, NULL, "tile_px", c->tile);
    oct_results_count(r, NULL, "step_px", c->step);
    for (unsigned k = 0; k < N_MAPS; k++)
        write_map(c, r, map_names[k], rows, columns);
    const unsigned time_ns =
        oct_results_dataset(r, "/frames/time_ns", OCT_RESULTS_U64, 1, &c->n, "ns");
    const unsigned number =
        oct_results_dataset(r, "/frames/number", OCT_RESULTS_U64, 1, &c->n, NULL);
    for (uint64_t i = 0; i < c->n; i++) {
        oct_results_write_rows(r, time_ns, i, 1, &c->frames[i].time_ns);
        oct_results_write_rows(r, number, i, 1, &c->frames[i].index);
    }
    const struct oct_result_rows places = OCT_RESULT_ROWS(place_fields, c->places, c->n_places);
    oct_result_datasets(r, "/places", &places);
    oct_results_texts(r, "/files", c->n, path_of, c);
    return oct_results_publish(r, err);
}

static enum oct_err plot_profile(const struct cones *c, const char *path, bool force,
                                 struct oct_error *err)
{
    const struct cone_frame *f = &c->frames[c->n_shown];
    const struct cone_row *r = &c->rows[f->first];
    const double spacing_px = r->found.ring_spacing_px;
    const bool is_found = !isnan(spacing_px);
    char text[96];
    if (isnan(f->um))
        snprintf(text, sizeof(text), "cones %.2f px apart", spacing_px);
    else
        snprintf(text, sizeof(text), "cones %.2f px apart (%.3g \302\265m)", spacing_px,
                 spacing_px * f->um);
    const struct oct_plot_series series = {.x = c->radius, .y = c->c1d, .n = c->n_profile};
    const struct oct_plot_mark mark = {r->found.ring_px, r->found.strength, text};
    const struct oct_plot_lines plot = {.title = oct_job_base(f->path),
                                        .x_label = "R (px)",
                                        .y_label = "C1D of the whitened picture",
                                        .series = &series,
                                        .n_series = 1,
                                        .marks = &mark,
                                        .n_marks = is_found,
                                        .has_y = true,
                                        .y_least = -0.4,
                                        .y_most = 0.5,
                                        .from_zero = true};
    return oct_plot_write_lines(path, force, &plot, err);
}

/* Each tile colours a square of one step around its middle. */
static enum oct_err plot_map(const struct cones *c, const char *path, bool force,
                             struct oct_error *err)
{
    const struct cone_frame *f = &c->frames[c->n_shown];
    const size_t n = (size_t)f->rows * f->columns;
    const double first = (c->tile - (double)c->step) / 2;
    const bool has_um = !isnan(f->um);
    double *values = oct_alloc(n, sizeof(*values));
    for (size_t k = 0; k < n; k++) {
        const struct cone_row *r = &c->rows[f->first + k];
        values[k] = has_um ? r->per_mm2 : r->found.spacing_px;
    }
    const struct oct_plot_map map = {.values = values,
                                     .n_y = f->rows,
                                     .n_x = f->columns,
                                     .y = first,
                                     .x = first,
                                     .step_y = c->step,
                                     .step_x = c->step,
                                     .label = has_um ? "cells/mm\302\262" : "spacing (px)"};
    const struct oct_plot_picture plot = {.title = oct_job_base(f->path),
                                          .pixels = c->shown.pixels,
                                          .height = c->shown.height,
                                          .width = c->shown.width,
                                          .um_dx = f->um,
                                          .map = &map};
    const enum oct_err e = oct_plot_write_picture(path, force, &plot, err);
    free(values);
    return e;
}

/* C1D of the first picture, its ring marked; with tiles the map over it. */
static enum oct_err write_png(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct cones *c = job;
    return c->tile > 0 ? plot_map(c, path, force, err) : plot_profile(c, path, force, err);
}

/* The first picture with a ring around each cone, green where its cell is whole. */
static enum oct_err write_marked(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct cones *c = job;
    const size_t n_pixels = (size_t)c->shown.height * c->shown.width;
    struct oct_plot_ring *rings = oct_alloc(c->n_places + 1, sizeof(*rings));
    struct oct_plot_overlay plot = {.pixels = c->shown.pixels,
                                    .valid = c->shown.valid,
                                    .height = c->shown.height,
                                    .width = c->shown.width,
                                    .rings = rings};
    double limits[2] = {0, 1};
    enum oct_err e =
        oct_plot_shares(plot.pixels, n_pixels, (const double[2]){0.005, 0.995}, 2, limits, err);
    plot.lo = limits[0];
    plot.hi = limits[1];
    for (size_t i = 0; i < c->n_places && c->places[i].frame <= c->n_shown; i++) {
        const struct oct_cone_place *at = &c->places[i].at;
        const double radius = RING_SHARE * at->nearest;
        const unsigned rgb = isnan(at->area) ? CUT_RGB : WHOLE_RGB;
        if (c->places[i].frame == c->n_shown && radius > 0)
            rings[plot.n_rings++] = (struct oct_plot_ring){
                .x = at->x, .y = at->y, .radius_x = radius, .radius_y = radius, .rgb = rgb};
    }
    e = e ? e : oct_plot_write_overlay(path, force, &plot, err);
    free(rings);
    return e;
}

static enum oct_err list_files(void *job, struct oct_error *err)
{
    struct cones *c = job;
    (void)err;
    oct_job_add(&c->job, c->job.out, write_h5, c);
    oct_job_add(&c->job, c->given.csv, write_csv, c);
    oct_job_add(&c->job, c->given.places, write_places, c);
    oct_job_add(&c->job, c->given.png, write_png, c);
    if (c->given.png)
        oct_job_add(&c->job, oct_job_beside(c->given.png, ".png", "cones"), write_marked, c);
    return OCT_OK;
}

/* ---- what is said ---- */

static const char *what_is_counted(const struct cones *c, const char *whole)
{
    return c->tile > 0 ? "tiles" : whole;
}

static void warn_of_doubts(const void *job)
{
    const struct cones *c = job;
    uint64_t n_split = 0, n_differ = 0;
    double most = 0;
    for (uint64_t i = 0; i < c->n_rows; i++) {
        const struct oct_cones_result *r = &c->rows[i].found;
        n_split += r->is_split;
        n_differ += oct_cones_differ(r);
        most = fmax(most, 100 * fabs(r->spacing_px / r->ring_spacing_px - 1));
    }
    if (n_split > 0)
        fprintf(stderr,
                "octctl %s: %" PRIu64 " of %" PRIu64 " %s show cones as pairs of light and dark, "
                "as a split detector does: their rings are no spacings, none is given; take the "
                "confocal channel\n",
                c->job.name, n_split, c->n_rows, what_is_counted(c, "pictures"));
    if (n_differ > 0)
        fprintf(stderr,
                "octctl %s: in %" PRIu64 " of %" PRIu64 " %s the spacing of the cones counted and "
                "that of the ring differ by more than %.0f %%, by %.1f %% at most: look at them "
                "before you trust either\n",
                c->job.name, n_differ, c->n_rows, what_is_counted(c, "pictures"),
                100 * OCT_CONES_USUAL_DIFFERENCE, most);
}

static const char *why_left_out(const void *job, uint64_t i)
{
    return ((const struct cones *)job)->frames[i].left_out;
}

static void print_one(const struct cones *c)
{
    const struct cone_row *r = &c->rows[0];
    const bool has_seen = r->found.is_split || !isnan(r->found.seen_px);
    printf("%s: ", c->job.inputs[0]);
    oct_result_print(stdout, r->found.found ? found_sentence : none_sentence, &cone_fields, r);
    if (!r->found.found && !has_seen)
        printf(" (none seen)");
    printf("; %.2f s\n", c->job.seconds);
}

static void print_all(const void *job)
{
    const struct cones *c = job;
    double least = INFINITY, most = -INFINITY;
    uint64_t n_used = 0, n_found = 0;
    if (c->n == 1 && c->tile == 0) {
        print_one(c);
        return;
    }
    for (uint64_t i = 0; i < c->n_rows; i++) {
        const double px = c->rows[i].found.spacing_px;
        n_used += !c->frames[c->rows[i].frame].left_out;
        n_found += isnan(px) ? 0 : 1;
        least = fmin(least, px);
        most = fmax(most, px);
    }
    printf("%" PRIu64 " picture%s, %" PRIu64 " %s: ", c->n, c->n > 1 ? "s" : "", n_used,
           what_is_counted(c, "spacings"));
    if (n_found > 0)
        printf("%.2f to %.2f px, ", least, most);
    printf("no ring in %" PRIu64, n_used - n_found);
    oct_command_print_left_out(c->n, why_left_out, c);
    printf("; %.2f s\n", c->job.seconds);
}

static void fill_json(const void *job, cJSON *tree)
{
    const struct cones *c = job;
    const struct oct_result_rows rows = OCT_RESULT_ROWS(cone_fields, c->rows, c->n_rows);
    cJSON_AddStringToObject(tree, "file", c->job.inputs[0]);
    cJSON_AddNumberToObject(tree, "pictures", (double)c->n);
    cJSON_AddNumberToObject(tree, "tile_px", c->tile);
    cJSON_AddNumberToObject(tree, "step_px", c->step);
    cJSON_AddNumberToObject(tree, "seconds", c->job.seconds);
    oct_result_json_rows(tree, "spacings", &rows);
    oct_command_add_left_out(tree, c->n, why_left_out, c);
}

static void finish_cones(void *job)
{
    struct cones *c = job;
    drop_batch(c);
    oct_pictures_close(c->pictures);
}

#define AT(member) .at = offsetof(struct cone_options, member)
static const struct oct_option options[] = {
    {OCT_PICTURE_FRAMES(struct cone_options, frames)},
    {"--slab", "A:B", "of recordings: the mean over the depths A to B, around IS/OS",
     OCT_OPTION_TEXT, AT(slab), .was = "--en-face"},
    {"--tile", "PX", "a density map of tiles of PX x PX pixels", OCT_OPTION_COUNT, AT(tile),
     .least = 16, .most = OCT_PICTURE_MOST_SIDE},
    {"--step", "PX", "from a tile to the next (half a tile)", OCT_OPTION_COUNT, AT(step),
     .least = 1, .most = OCT_PICTURE_MOST_SIDE},
    {"--spacing", "MIN:MAX", "look for spacings of MIN to MAX px (4 to 1/6 of the shorter side)",
     OCT_OPTION_TEXT, AT(spacing)},
    {"--db", NULL, "pixels are logarithmic already", OCT_OPTION_FLAG, AT(is_db)},
    {"--mask", "FILE", "a picture of which 0 is left out", OCT_OPTION_TEXT, AT(mask)},
    {"--invalid", "VALUE", "leave out pixels of this value", OCT_OPTION_NUMBER, AT(invalid)},
    {"--pixel-um", "X[,Y]", "micrometres of a pixel, instead of what the file says",
     OCT_OPTION_TEXT, AT(pixel_um), .was = "--um"},
    {"--csv", "FILE", "a row a picture, or a tile", OCT_OPTION_TEXT, AT(csv)},
    {"--places", "FILE", "a table of all cones: where, and how near the nearest is",
     OCT_OPTION_TEXT, AT(places)},
    {"--png", "FILE",
     "of the first picture C1D, or with --tile the map; and FILE-cones.png, the cones in it",
     OCT_OPTION_TEXT, AT(png)},
    OCT_JOB_JSON(struct cone_options, job),
    OCT_JOB_FORCE(struct cone_options, job),
    {NULL},
};

static const struct oct_job_ops cones_job = {
    .command = &oct_command_cones,
    .bytes = sizeof(struct cones),
    .values = offsetof(struct cones, given),
    .options = offsetof(struct cones, given.job),
    .may_lack_out = true,
    .progress = "pictures",
    .init = init_cones,
    .read = read_options,
    .list = list_files,
    .work = measure_pictures,
    .warn = warn_of_doubts,
    .print = print_all,
    .json = fill_json,
    .finish = finish_cones,
};

static int run_cones(struct oct_config *config, int argc, char **argv)
{
    return oct_job_run(&cones_job, config, argc, argv);
}

const struct oct_command oct_command_cones = {
    .name = "cones",
    .usage = "IN... [OUT.h5]",
    .keys = "",
    .help = "counts photoreceptors in pictures from above and measures their spacing",
    .options = options,
    .n_least = 1,
    .n_most = INT_MAX,
    .too_few = "which pictures?",
    .run = run_cones,
};
