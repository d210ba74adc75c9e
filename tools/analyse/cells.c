/* octctl cells: cells found and followed in films, recordings and pictures. */
#include "tools/analyse/cells.h"

#include "analysis/cells/cells.h"
#include "formats/film_write.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/picture_options.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SAME_SCALE 1e-3
#define KEYS                                                                                       \
    "cells.source cells.radius_um cells.radius_px cells.threshold cells.polarity cells.smooth "    \
    "cells.floor cells.detect_every cells.memory cells.min_frames cells.max_speed_um_s "           \
    "cells.flow_deg cells.roi analysis.enface_projection analysis.enface_slab_first "              \
    "analysis.enface_slab_last"

static const char *const source_names[] = {"enface", "bscan"};
static const char *const projection_names[] = {"mean", "max", "slab", NULL};
static const enum oct_pictures_projection projections[] = {
    OCT_PICTURES_OVER_ALL, OCT_PICTURES_HIGHEST, OCT_PICTURES_OVER_SHARES};
static const char *const profile_names[] = {"octd", "boyer", NULL};
static const char *const format_names[] = {"octd", "trackmate", "napari", NULL};

#define C struct oct_cells_choice
static const struct oct_param choice_rows[] = {
    {OCT_PARAM_CHOICE("projection", C, projection, projection_names), .is_option = true,
     .standard = "mean", .meaning = "Of en face: what becomes of the depth, or of a slab of it."},
    {OCT_PARAM_CHOICE("profile", C, profile, profile_names), .is_option = true, .standard = "octd",
     .meaning = "boyer: as Boyer et al. published it."},
    {OCT_PARAM_CHOICE("format", C, format, format_names), .is_option = true, .standard = "octd",
     .meaning = "Of OUT: octd and napari are CSV, trackmate is XML."},
};
#undef C
static const struct oct_params choices = OCT_PARAMS(choice_rows);

/* ---- options ---- */

static void init_options(void *job)
{
    struct oct_cells_job *c = job;
    c->given.fps = NAN;
    oct_params_set_defaults(&choices, &c->choice);
}

static int read_slab(struct oct_cells_job *c)
{
    const struct oct_cells_options *g = &c->given;
    const bool has_name = c->projection_is_given;
    const bool is_slab = projections[c->choice.projection] == OCT_PICTURES_OVER_SHARES;
    struct oct_pictures_options *o = &c->options;
    if (c->is_bscan && (has_name || g->slab))
        return oct_command_misuse(c->job.name, "--projection and --slab are of --source enface");
    if (is_slab && !g->slab)
        return oct_command_misuse(c->job.name, "--projection slab needs --slab A:B");
    if (g->slab && has_name && !is_slab)
        return oct_command_misuse(c->job.name, "--slab is of --projection slab");
    if (has_name || g->slab)
        o->projection = g->slab ? OCT_PICTURES_OVER_SHARES : projections[c->choice.projection];
    const int status = oct_picture_frames(c->job.name, g->frames, g->slab, &o->frames);
    return status ? status : oct_picture_slab_of_cells(c->job.name, g->slab, &o->slab);
}

static int read_places(struct oct_cells_job *c)
{
    const struct oct_cells_options *g = &c->given;
    double v[4];
    if (oct_picture_pixel_um(c->job.name, g->pixel_um, 2, c->um))
        return 2;
    if (g->kymograph && !g->along)
        return oct_command_misuse(c->job.name, "--kymograph needs a line, --along X0,Y0,X1,Y1");
    if (g->along && oct_option_doubles(g->along, v, 4) != 4)
        return oct_command_misuse(c->job.name, "--along needs a line in pixels, X0,Y0,X1,Y1");
    c->um_is_given = g->pixel_um != NULL;
    c->has_line = g->along != NULL;
    if (c->has_line)
        c->line = (struct oct_cells_line){v[0], v[1], v[2], v[3]};
    return 0;
}

/* What the configuration says, as octd takes it, or the profile, and over it what was given. */
static int read_settings(struct oct_cells_job *c)
{
    static const double unknown[2] = {NAN, NAN};
    const struct oct_cells_options *g = &c->given;
    const struct oct_config *config = c->job.config;
    const struct oct_enface_settings *enface = oct_config_settings(config, "enface");
    struct oct_cells_settings s;
    memcpy(&s, oct_config_settings(config, "cells"), sizeof(s));
    const bool has_px = oct_param_text(&oct_cells_search_params, &g->search, "radius_px") != NULL;
    const bool has_um = oct_param_text(&oct_cells_params, &g->own, "radius_um") != NULL;
    if (has_px && has_um)
        return oct_command_misuse(c->job.name, "--radius and --radius-um exclude one another");
    if (c->choice.profile == 1)
        oct_cells_params_boyer(&s.params, 0);
    oct_param_texts_store(&oct_cells_search_params, &g->search, &s.params);
    oct_param_texts_store(&oct_cells_params, &g->own, &s);
    s.radius_um = has_px ? 0 : s.radius_um;
    c->setup = oct_cells_live_film(&s, 0, 0, unknown);
    c->setup.detect_only = g->detect_only;
    c->has_min_frames = oct_config_is_set(config, "cells.min_frames") ||
                        oct_param_text(&oct_cells_search_params, &g->search, "min_frames") != NULL;
    c->source_is_given = oct_param_text(&oct_cells_params, &g->own, "source") != NULL;
    c->is_bscan = s.source == OCT_CELLS_OF_BSCAN;
    c->options = (struct oct_pictures_options){
        .projection = projections[enface->projection - OCT_PROJECTION_MEAN],
        .slab = {{enface->slab_first, OCT_DEPTH_SHARE}, {enface->slab_last, OCT_DEPTH_SHARE}},
        .fps = isnan(g->fps) ? 0 : g->fps,
        .any_side = true, /* the film says what size the radius needs */
        .keeps_whole = true};
    return 0;
}

/* The first of KEYS that somebody gave; "": none. */
static const char *find_given_key(const struct oct_config *config, char key[64])
{
    int n = 0;
    for (const char *at = KEYS; sscanf(at, "%63s%n", key, &n) == 1; at += n)
        if (oct_config_is_set(config, key))
            return key;
    return "";
}

/* A film that stands last is rather an input, and a table was forgotten. */
static int check_out(const struct oct_cells_job *c)
{
    static const char *const films[] = {".tif", ".tiff", ".png", ".avi", ".npy", ".h5", ".hdf5"};
    const char *out = c->job.out, *dot = strrchr(out, '.');
    for (size_t i = 0; dot && i < sizeof(films) / sizeof(films[0]); i++)
        if (strcasecmp(dot, films[i]) == 0)
            return oct_command_misuse(c->job.name, "%s: the last name is that of the table, OUT.%s",
                                      out, c->choice.format == OCT_CELLS_TRACKMATE ? "xml" : "csv");
    return 0;
}

static int read_options(void *job)
{
    struct oct_cells_job *c = job;
    const struct oct_cells_options *g = &c->given;
    char key[64];
    enum oct_film_format format;
    oct_param_texts_store(&choices, &g->choice, &c->choice);
    c->projection_is_given = oct_param_text(&choices, &g->choice, "projection") != NULL;
    c->job.reads[0] = g->mask;
    if (c->choice.profile == 1 && find_given_key(c->job.config, key)[0])
        return oct_command_misuse(c->job.name,
                                  "--profile boyer takes options alone, not the key "
                                  "%s",
                                  key);
    if (c->choice.format == OCT_CELLS_NAPARI && g->detect_only)
        return oct_command_misuse(c->job.name,
                                  "--format napari holds tracks, --detect-only makes none");
    if (g->overlay && oct_film_format_of(g->overlay, &format) && format == OCT_FILM_AVI)
        c->overlay_film = g->overlay;
    else
        c->overlay_folder = g->overlay;
    int status = read_settings(c);
    if (!status)
        status = read_slab(c);
    if (!status)
        status = read_places(c);
    return status ? status : check_out(c);
}

static char *config_text(const struct oct_cells_job *c)
{
    const struct oct_cells_film_setup *s = &c->setup;
    const struct oct_pictures_options *o = &c->options;
    char *text = NULL;
    size_t n;
    FILE *t = oct_alloc_check(open_memstream(&text, &n));
    fprintf(t, "profile = %s\n", profile_names[c->choice.profile]);
    for (unsigned i = 0; i < oct_cells_search_params.n; i++) {
        char value[OCT_PARAM_TEXT_BYTES];
        const struct oct_param *row = &oct_cells_search_params.rows[i];
        oct_param_format(row, c->params, value, sizeof(value));
        fprintf(t, "%s = %s\n", row->name, value[0] ? value : "none");
    }
    fprintf(t, "offsets = %s\nstop_px = %g\n", c->params->truncated ? "truncated" : "rounded",
            c->params->stop);
    if (s->radius_um > 0)
        fprintf(t, "radius_um = %g\n", s->radius_um);
    if (s->max_speed_um_s > 0)
        fprintf(t, "max_speed_um_s = %g\n", s->max_speed_um_s);
    if (s->roi.width > 0)
        fprintf(t, "roi = %u,%u,%u,%u\n", s->roi.x, s->roi.y, s->roi.width, s->roi.height);
    if (oct_cells_has_um(c))
        fprintf(t, "pixel_um = %.9g,%.9g\n", c->um[1], c->um[0]);
    if (o->fps > 0)
        fprintf(t, "fps = %.9g\n", o->fps);
    if (c->given.frames)
        fprintf(t, "frames = %s\n", c->given.frames);
    if (c->given.slab)
        fprintf(t, "slab = %s\n", c->given.slab);
    else if (o->projection == OCT_PICTURES_OVER_SHARES)
        fprintf(t, "slab = %g:%g\n", o->slab.first.at, o->slab.last.at);
    else if (c->projection_is_given || o->projection == OCT_PICTURES_HIGHEST)
        fprintf(t, "projection = %s\n", projection_names[o->projection == OCT_PICTURES_HIGHEST]);
    if (c->source_is_given || c->is_bscan)
        fprintf(t, "source = %s\n", source_names[c->is_bscan]);
    if (c->given.mask)
        fprintf(t, "mask = %s\n", c->given.mask);
    fprintf(t, "detect_only = %s\n", s->detect_only ? "yes" : "no");
    fclose(t);
    return oct_alloc_check(text);
}

/* ---- pictures ---- */

bool oct_cells_has_um(const struct oct_cells_job *c)
{
    return isfinite(c->um[0]) && isfinite(c->um[1]);
}

static enum oct_err apply_mask(const struct oct_picture *mask, struct oct_picture *picture,
                               struct oct_error *err)
{
    const size_t n = (size_t)picture->height * picture->width;
    for (size_t i = 0; i < n; i++)
        if (mask->pixels[i] == 0 || !oct_picture_is_valid(mask, i))
            picture->pixels[i] = NAN;
    return oct_picture_mask_not_finite(picture, err);
}

enum oct_err oct_cells_read(struct oct_cells_job *c, uint64_t frame, struct oct_picture *picture,
                            struct oct_pictures_info *info, struct oct_error *err)
{
    struct oct_pictures_info about;
    enum oct_err e = oct_pictures_read(c->pictures, frame, picture, &about, err);
    if (e)
        return e;
    if (c->is_turned) {
        const double um_y = about.um[0];
        about.um[0] = about.um[1];
        about.um[1] = um_y;
        e = oct_picture_transpose(picture, err);
    }
    if (!e && c->mask.pixels)
        e = apply_mask(&c->mask, picture, err);
    if (e)
        oct_picture_finish(picture);
    else if (info)
        *info = about;
    return e;
}

/* Lies as the pictures are shown. */
static enum oct_err read_mask(struct oct_cells_job *c, struct oct_error *err)
{
    const struct oct_pictures_options plain = {.raw = true, .any_side = true};
    struct oct_pictures *pictures;
    if (!c->given.mask)
        return OCT_OK;
    enum oct_err e = oct_pictures_open(&pictures, &c->given.mask, 1, &plain, err);
    if (!e)
        e = oct_pictures_read(pictures, 0, &c->mask, NULL, err);
    oct_pictures_close(pictures);
    if (!e && (c->mask.height != c->height || c->mask.width != c->width))
        e = oct_fail(err, OCT_E_ARG, "%s: a mask of %u x %u px, but the pictures have %u x %u",
                     c->given.mask, c->mask.width, c->mask.height, c->width, c->height);
    return e;
}

/* What recordings show; other files are films. */
static enum oct_err choose_pictures(struct oct_cells_job *c, struct oct_error *err)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->job.n_inputs; i++)
        n += !strstr(c->job.inputs[i], ":/") && oct_pictures_is_volume(c->job.inputs[i]);
    if (n > 0 && n < c->job.n_inputs)
        return oct_fail(err, OCT_E_ARG,
                        "recordings and films together: name one kind; see octctl %s --help",
                        c->job.name);
    if (n == 0 && (c->source_is_given || c->projection_is_given || c->given.slab))
        return oct_fail(err, OCT_E_ARG,
                        "--source, --projection and --slab are of recordings; see octctl %s --help",
                        c->job.name);
    if (n > 0 && !c->is_bscan && c->given.frames)
        return oct_fail(err, OCT_E_ARG,
                        "--frames is of films and of --source bscan; see octctl %s --help",
                        c->job.name);
    c->options.what = n > 0 && !c->is_bscan ? OCT_PICTURES_EN_FACE : OCT_PICTURES_FRAMES;
    c->is_turned = n > 0 && c->is_bscan;
    return OCT_OK;
}

/* Pictures of different sizes are a mistake of the command line; damaged ones are not: without the
 * demand of one size they would open. */
static bool differ_in_size(const struct oct_cells_job *c)
{
    struct oct_pictures *pictures;
    struct oct_pictures_options options = c->options;
    options.allow_sizes = true;
    const enum oct_err e =
        oct_pictures_open(&pictures, c->job.inputs, c->job.n_inputs, &options, NULL);
    oct_pictures_close(pictures);
    return e == OCT_OK;
}

/* Of what size the pictures are, and their pixels. */
static enum oct_err look_at_first(struct oct_cells_job *c, struct oct_error *err)
{
    struct oct_picture first = {0};
    struct oct_pictures_info info;
    enum oct_err e = oct_cells_read(c, 0, &first, &info, err);
    if (e)
        return e;
    c->height = first.height;
    c->width = first.width;
    c->is_u8 = info.bits == 8 && info.is_integer && !info.is_db;
    for (int axis = 0; axis < 2 && !c->um_is_given; axis++)
        c->um[axis] = info.um[axis] > 0 && info.um[1 - axis] > 0 ? info.um[axis] : NAN;
    oct_picture_finish(&first);
    e = oct_pictures_times(c->pictures, 0, &c->times, err);
    c->first_s = c->times.start_s;
    if (!e && c->setup.max_speed_um_s > 0 && isnan(c->first_s))
        e = oct_fail(err, OCT_E_ARG, "--max-speed needs times: give --fps, the pictures a second");
    return e;
}

static enum oct_err open_pictures(struct oct_cells_job *c, struct oct_error *err)
{
    enum oct_err e = choose_pictures(c, err);
    if (e)
        return e;
    e = oct_pictures_open(&c->pictures, c->job.inputs, c->job.n_inputs, &c->options, err);
    if (e == OCT_E_FORMAT && differ_in_size(c))
        e = OCT_E_ARG;
    return e ? e : look_at_first(c, err);
}

static enum oct_err make_film(struct oct_cells_job *c, struct oct_error *err)
{
    struct oct_cells_film_setup *s = &c->setup;
    c->n_all = oct_pictures_count(c->pictures);
    if (!c->has_min_frames && s->params.min_frames > c->n_all)
        s->params.min_frames = (unsigned)c->n_all; /* a pair of pictures has tracks, too */
    s->height = c->height;
    s->width = c->width;
    memcpy(s->um, c->um, sizeof(s->um));
    s->keeps_fields = c->given.maps && !s->detect_only;
    s->workers = c->job.workers;
    s->backend = c->job.backend;
    s->gpus = c->job.gpus;
    enum oct_err e = read_mask(c, err);
    if (!e)
        e = oct_cells_shown_begin(c, err);
    if (!e)
        e = oct_cells_film_create(&c->film, s, err);
    if (e)
        return e;
    oct_cells_film_grid(c->film, &c->grid);
    c->params = oct_cells_film_params(c->film);
    c->rows.min_frames = c->params->min_frames;
    return c->given.maps ? oct_cells_maps_begin(c, err) : OCT_OK;
}

/* ---- the search ---- */

static enum oct_err check_scale(const struct oct_cells_job *c, const struct oct_pictures_info *info,
                                struct oct_error *err)
{
    for (int axis = 0; axis < 2; axis++)
        if (!c->um_is_given && c->um[axis] > 0 &&
            !(fabs(info->um[axis] / c->um[axis] - 1) < SAME_SCALE))
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: pixels of %g x %g um, those before of %g x %g um: --pixel-um "
                            "says which are right",
                            info->path, info->um[1], info->um[0], c->um[1], c->um[0]);
    return OCT_OK;
}

static enum oct_err search_picture(struct oct_cells_job *c, uint64_t frame,
                                   const struct oct_picture *picture, struct oct_error *err)
{
    const struct oct_cells_found *found;
    struct oct_picture_statistics s;
    unsigned n;
    enum oct_err e = oct_pictures_times(c->pictures, frame, &c->times, err);
    const struct oct_cells_times times = {
        .time_s = c->times.time_s, .of_columns = c->is_turned, .start_s = c->times.start_s};
    if (!e)
        e = oct_cells_film_push(c->film, picture, &times, 0, &found, &n, err);
    if (e)
        return e;
    oct_cells_rows_add(&c->rows, frame, found, n);
    if (c->maps && (e = oct_cells_maps_add(c, frame, err)))
        return e;
    oct_picture_look(picture, &s);
    c->n_blank += s.n_valid == 0 || !(s.most > s.least);
    c->valid_share += (double)s.n_valid / ((double)picture->height * picture->width);
    oct_cells_shown_add(c, frame, picture);
    c->last_s = c->times.start_s;
    c->n = frame + 1;
    return OCT_OK;
}

static enum oct_err search_frame(struct oct_cells_job *c, uint64_t frame, struct oct_error *err)
{
    struct oct_picture picture = {0};
    struct oct_pictures_info info;
    enum oct_err e = oct_cells_read(c, frame, &picture, &info, err);
    if (!e)
        e = check_scale(c, &info, err);
    if (!e)
        e = search_picture(c, frame, &picture, err);
    oct_picture_finish(&picture);
    return e;
}

/* A picture that cannot be read ends the film; what was found before it is used. */
static enum oct_err search_film(struct oct_cells_job *c, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (uint64_t i = 0; i < c->n_all && !e; i++) {
        e = oct_job_go_on(&c->job, err);
        if (!e)
            e = search_frame(c, i, err);
        oct_progress_show(&c->job.progress, c->n, c->n_all);
    }
    if (c->n > 0 && (e == OCT_E_FORMAT || e == OCT_E_IO)) {
        oct_error_go_on(err, e, "", "; the %" PRIu64 " of %" PRIu64 " pictures before it are used",
                        c->n, c->n_all);
        c->damage = *err;
        e = OCT_OK;
    }
    if (e)
        return e;
    c->valid_share = c->n > 0 ? c->valid_share / (double)c->n : 0;
    c->job.status = c->damage.code || oct_pictures_warning(c->pictures);
    oct_cells_rows_end(&c->rows);
    oct_cells_shown_end(c);
    oct_cells_summarise(c);
    c->config = config_text(c);
    oct_progress_end(&c->job.progress, c->n, c->n_all);
    return OCT_OK;
}

static enum oct_err find_cells(void *job, struct oct_error *err)
{
    struct oct_cells_job *c = job;
    enum oct_err e = open_pictures(c, err);
    if (!e)
        e = make_film(c, err);
    if (e == OCT_E_ARG) /* what was asked for does not fit the pictures */
        err->code = OCT_E_CONFIG;
    return e ? e : search_film(c, err);
}

/* ---- files ---- */

static enum oct_err list_files(void *job, struct oct_error *err)
{
    static oct_output_writer *const tables[] = {[OCT_CELLS_CSV] = oct_cells_write_csv,
                                                [OCT_CELLS_TRACKMATE] = oct_cells_write_trackmate,
                                                [OCT_CELLS_NAPARI] = oct_cells_write_napari};
    struct oct_cells_job *c = job;
    const struct oct_cells_options *g = &c->given;
    enum oct_err e = OCT_OK;
    oct_job_add(&c->job, c->job.out, tables[c->choice.format], c);
    oct_job_add(&c->job, g->tracks, oct_cells_write_h5, c);
    oct_job_add(&c->job, g->kymograph, oct_cells_draw_kymograph, c);
    oct_job_add(&c->job, g->histogram, oct_cells_draw_histogram, c);
    oct_job_add(&c->job, g->summary, oct_cells_write_summary, c);
    oct_job_add(&c->job, c->overlay_film, oct_cells_draw_film, c);
    oct_job_add(&c->job, g->maps, oct_cells_maps_publish, c);
    if (c->overlay_folder)
        e = oct_cells_check_folder(c->overlay_folder, g->job.force, err);
    if (!e && g->into)
        e = oct_cells_check_into(c, err);
    return e == OCT_E_FORMAT ? OCT_E_ARG : e;
}

static enum oct_err write_more(void *job, struct oct_error *err)
{
    struct oct_cells_job *c = job;
    const enum oct_err e = c->overlay_folder ? oct_cells_draw_folder(c, err) : OCT_OK;
    return e || !c->given.into ? e : oct_cells_write_into(c, err);
}

/* ---- what is said ---- */

static void warn_of_units(const struct oct_cells_job *c)
{
    if (!oct_cells_has_um(c))
        fprintf(stderr,
                "octctl %s: the size of a pixel is unknown: no columns in um; --pixel-um "
                "gives it\n",
                c->job.name);
    else if (isnan(c->first_s) && c->n_all > 1)
        fprintf(stderr, "octctl %s: times are unknown: no speeds in um/s; --fps gives them\n",
                c->job.name);
}

/* What was not found, a line each. */
static void warn_of_frames(const struct oct_cells_job *c)
{
    const double highest = c->summary.highest;
    if (c->n_blank > 0)
        fprintf(stderr,
                "octctl %s: %" PRIu64 " of %" PRIu64 " frames are flat, saturated or without any "
                "valid pixel: no cells in them\n",
                c->job.name, c->n_blank, c->n);
    if (c->rows.n == 0)
        fprintf(stderr,
                "octctl %s: no cells: the highest score seen is %.3g, the threshold %.3g%s\n",
                c->job.name, highest, c->params->threshold,
                highest > c->params->threshold ? "; no track was long enough (--min-frames)" : "");
}

/* Of a film that ends early one line says so, and none speaks of units. */
static void warn_of_all(const void *job)
{
    const struct oct_cells_job *c = job;
    const char *warning = oct_pictures_warning(c->pictures);
    if (c->damage.code)
        oct_command_fail(c->job.name, &c->damage);
    else if (!warning)
        warn_of_units(c);
    warn_of_frames(c);
    if (warning)
        fprintf(stderr, "octctl %s: %s\n", c->job.name, warning);
}

static void finish_cells(void *job)
{
    struct oct_cells_job *c = job;
    oct_cells_maps_discard(c->maps);
    oct_cells_film_destroy(c->film);
    oct_pictures_close(c->pictures);
}

#define AT(member) .at = offsetof(struct oct_cells_options, member)
static const struct oct_option options[] = {
    {.kind = OCT_OPTION_PARAMS, .params = &oct_cells_params, AT(own)},
    {.kind = OCT_OPTION_PARAMS, .params = &oct_cells_search_params, AT(search)},
    {.kind = OCT_OPTION_PARAMS, .params = &choices, AT(choice)},
    {OCT_PICTURE_FRAMES(struct oct_cells_options, frames)},
    {"--slab", "A:B", "the mean from A to B of the depth, as 30%:50%", OCT_OPTION_TEXT, AT(slab)},
    {"--pixel-um", "X[,Y]", "micrometres of a pixel, instead of what the file says",
     OCT_OPTION_TEXT, AT(pixel_um)},
    {"--fps", "F", "pictures a second, instead of what the file says", OCT_OPTION_NUMBER, AT(fps),
     .least = 1e-9, .most = 1e9},
    {"--mask", "FILE", "a picture of which 0 is left out", OCT_OPTION_TEXT, AT(mask)},
    {"--detect-only", NULL, "no tracks: the cells of each picture", OCT_OPTION_FLAG,
     AT(detect_only)},
    {"--tracks", "FILE.h5", "the table as datasets of /tracks", OCT_OPTION_TEXT, AT(tracks)},
    {"--into", "FILE.h5", "add /tracks to a file of results", OCT_OPTION_TEXT, AT(into)},
    {"--overlay", "D", "pictures with their cells, as PNG files, or as OUT.avi", OCT_OPTION_TEXT,
     AT(overlay), .needs = "a folder, or OUT.avi", .words = OCT_WORDS_FOLDERS},
    {"--along", "X,Y,X,Y", "a line in pixels, for the kymograph and the flux", OCT_OPTION_TEXT,
     AT(along), .needs = "X0,Y0,X1,Y1"},
    {"--kymograph", "FILE", "a PNG: brightness along the line over time", OCT_OPTION_TEXT,
     AT(kymograph)},
    {"--histogram", "FILE", "a PNG: the speeds", OCT_OPTION_TEXT, AT(histogram)},
    {"--summary", "FILE", "the numbers that are printed, as JSON", OCT_OPTION_TEXT, AT(summary)},
    {"--maps", "FILE.h5", "scores of all pixels and MGVF fields, for tests", OCT_OPTION_TEXT,
     AT(maps)},
    OCT_JOB_FORCE(struct oct_cells_options, job),
    {NULL},
};

static const struct oct_job_ops cells_job = {
    .command = &oct_command_cells,
    .bytes = sizeof(struct oct_cells_job),
    .values = offsetof(struct oct_cells_job, given),
    .options = offsetof(struct oct_cells_job, given.job),
    .strict_names = true,
    .progress = "pictures",
    .init = init_options,
    .read = read_options,
    .list = list_files,
    .work = find_cells,
    .write_more = write_more,
    .warn = warn_of_all,
    .print = oct_cells_print,
    .finish = finish_cells,
};

static int run_cells(struct oct_config *config, int argc, char **argv)
{
    return oct_job_run(&cells_job, config, argc, argv);
}

const struct oct_command oct_command_cells = {
    .name = "cells",
    .usage = "IN... OUT.csv",
    .help = "finds cells in films and recordings, and follows them",
    .options = options,
    .keys = KEYS,
    .n_least = 2,
    .n_most = INT_MAX,
    .too_few = "which film, and which OUT.csv?",
    .run = run_cells,
};
