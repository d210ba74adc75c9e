#include "tools/analyse/cells_options.h"

#include "formats/film_write.h"
#include "tools/commands.h"
#include "tools/picture_options.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const source_names[] = {"enface", "bscan"};
static const char *const projection_names[] = {"mean", "max", "slab"};
static const enum oct_pictures_projection projections[] = {
    OCT_PICTURES_OVER_ALL, OCT_PICTURES_HIGHEST, OCT_PICTURES_OVER_SHARES};
static const char *const profile_names[] = {"octd", "boyer"};
static const char *const format_names[OCT_CELLS_N_FORMATS] = {"octd", "trackmate", "napari"};

#define N_NAMES(names) (sizeof(names) / sizeof((names)[0]))

void oct_cells_given_init(struct oct_cells_given *given)
{
    *given = (struct oct_cells_given){.fps = NAN};
}

/* ---- words and numbers ---- */

/* The index of `word`, 0 for none; -1: it is not among the names. */
static int find_word(const char *word, const char *const *names, size_t n)
{
    if (!word)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, names[i]) == 0)
            return (int)i;
    return -1;
}

/* n numbers with `sign` between them, nothing before, between or behind. */
static bool read_numbers(const char *text, char sign, double *numbers, int n)
{
    for (int i = 0; i < n; i++) {
        char part[64];
        const char *end = strchr(text, i + 1 < n ? sign : '\0');
        const size_t bytes = end ? (size_t)(end - text) : sizeof(part);
        if (bytes >= sizeof(part))
            return false;
        memcpy(part, text, bytes);
        part[bytes] = '\0';
        if (!oct_option_double(part, &numbers[i]))
            return false;
        text = end + 1;
    }
    return true;
}

/* ---- parameters ---- */

static int read_words(struct oct_cells_given *g, const char *name)
{
    const int projection = find_word(g->projection, projection_names, N_NAMES(projection_names));
    const int format = find_word(g->format, format_names, OCT_CELLS_N_FORMATS);
    if (projection < 0)
        return oct_command_misuse(name, "--projection needs mean, max or slab");
    if (format < 0)
        return oct_command_misuse(name, "--format needs octd, trackmate or napari");
    if (format == OCT_CELLS_FORMAT_NAPARI && g->detect_only)
        return oct_command_misuse(name, "--format napari holds tracks, --detect-only makes none");
    if (g->projection || g->slab)
        g->which_projection = g->slab ? OCT_PICTURES_OVER_SHARES : projections[projection];
    g->which_format = (enum oct_cells_format)format;
    return 0;
}

static int read_slab(struct oct_cells_given *g, const char *name)
{
    if (g->is_bscan && (g->projection || g->slab))
        return oct_command_misuse(name, "--projection and --slab are of --source enface");
    if (g->projection && g->which_projection == OCT_PICTURES_OVER_SHARES && !g->slab)
        return oct_command_misuse(name, "--projection slab needs --slab A:B");
    if (g->slab && g->projection && strcmp(g->projection, "slab") != 0)
        return oct_command_misuse(name, "--slab is of --projection slab");
    return oct_picture_slab_of_cells(name, g->slab, &g->depths);
}

static int read_places(const struct oct_cells_given *g, const char *name, struct oct_cells_run *run)
{
    double v[4];
    if (oct_picture_pixel_um(name, g->pixel_um, 2, run->um))
        return 2;
    run->um_is_given = g->pixel_um != NULL;
    if (g->kymograph && !g->along)
        return oct_command_misuse(name, "--kymograph needs a line, --along X0,Y0,X1,Y1");
    if (g->along) {
        if (!read_numbers(g->along, ',', v, 4))
            return oct_command_misuse(name, "--along needs a line in pixels, X0,Y0,X1,Y1");
        run->has_line = true;
        run->line = (struct oct_cells_line){v[0], v[1], v[2], v[3]};
    }
    return 0;
}

/* What the configuration says, as octd takes it, or the profile, and over it what was given. */
static int read_settings(struct oct_cells_given *g, const struct oct_config *config,
                         const char *name, bool is_boyer, struct oct_cells_run *run)
{
    static const double unknown[2] = {NAN, NAN};
    struct oct_cells_settings s = config->cells;
    const bool has_px = oct_param_text(&oct_cells_search_params, &g->search, "radius_px") != NULL;
    const bool has_um = oct_param_text(&oct_cells_params, &g->own, "radius_um") != NULL;
    if (has_px && has_um)
        return oct_command_misuse(name, "--radius and --radius-um exclude one another");
    if (is_boyer)
        oct_cells_params_boyer(&s.params, 0);
    oct_param_texts_store(&oct_cells_search_params, &g->search, &s.params);
    oct_param_texts_store(&oct_cells_params, &g->own, &s);
    s.radius_um = has_px ? 0 : s.radius_um;
    run->film_setup = oct_cells_live_film(&s, 0, 0, unknown);
    run->film_setup.detect_only = g->detect_only;
    run->has_min_frames =
        oct_config_is_set(config, "cells.min_frames") ||
        oct_param_text(&oct_cells_search_params, &g->search, "min_frames") != NULL;
    g->source_is_given = oct_param_text(&oct_cells_params, &g->own, "source") != NULL;
    g->is_bscan = s.source == OCT_CELLS_OF_BSCAN;
    g->which_projection = projections[config->enface.projection - OCT_PROJECTION_MEAN];
    g->depths = (struct oct_depths){{config->enface.slab_first, OCT_DEPTH_SHARE},
                                    {config->enface.slab_last, OCT_DEPTH_SHARE}};
    return 0;
}

/* The first of OCT_CELLS_KEYS that somebody gave; "": none. */
static const char *find_given_key(const struct oct_config *config, char key[64])
{
    int n = 0;
    for (const char *at = OCT_CELLS_KEYS; sscanf(at, "%63s%n", key, &n) == 1; at += n)
        if (oct_config_is_set(config, key))
            return key;
    return "";
}

int oct_cells_given_read(struct oct_cells_given *given, const struct oct_config *config,
                         const char *name, struct oct_cells_run *run)
{
    char key[64];
    struct oct_cells_given *g = given;
    const int profile = find_word(g->profile, profile_names, N_NAMES(profile_names));
    enum oct_film_format format;
    if (profile < 0)
        return oct_command_misuse(name, "--profile needs octd or boyer");
    if (profile == 1 && find_given_key(config, key)[0])
        return oct_command_misuse(name, "--profile boyer takes options alone, not the key %s", key);
    if (g->overlay && oct_film_format_of(g->overlay, &format) && format == OCT_FILM_AVI)
        g->overlay_film = g->overlay;
    else
        g->overlay_folder = g->overlay;
    int status = read_settings(g, config, name, profile == 1, run);
    if (!status)
        status = read_words(g, name);
    if (!status)
        status = read_slab(g, name);
    return status ? status : read_places(g, name, run);
}

int oct_cells_given_out(const struct oct_cells_given *given, const char *name, const char *out)
{
    static const char *const films[] = {".tif", ".tiff", ".png", ".avi", ".npy", ".h5", ".hdf5"};
    const char *dot = strrchr(out, '.');
    for (size_t i = 0; dot && i < N_NAMES(films); i++)
        if (strcasecmp(dot, films[i]) == 0)
            return oct_command_misuse(name, "%s: the last name is that of the table, OUT.%s", out,
                                      given->which_format == OCT_CELLS_FORMAT_TRACKMATE ? "xml"
                                                                                        : "csv");
    return 0;
}

void oct_cells_given_pictures(const struct oct_cells_given *given, bool of_recordings,
                              struct oct_pictures_options *options)
{
    const struct oct_cells_given *g = given;
    *options = (struct oct_pictures_options){
        .what = of_recordings && !g->is_bscan ? OCT_PICTURES_EN_FACE : OCT_PICTURES_FRAMES,
        .projection = g->which_projection,
        .slab = g->depths,
        .fps = isnan(g->fps) ? 0 : g->fps,
        .any_side = true, /* the film says what size the radius needs */
        .keeps_whole = true};
}

/* ---- as text ---- */

struct text {
    char *text;
    size_t n, room;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(t->text + t->n, t->room - t->n, format, arguments);
    va_end(arguments);
    if (n > 0)
        t->n = t->n + (size_t)n < t->room ? t->n + (size_t)n : t->room - 1;
}

static void add_search(struct text *t, const struct oct_cells_params *p)
{
    for (unsigned i = 0; i < oct_cells_search_params.n; i++) {
        char value[OCT_PARAM_TEXT_BYTES];
        const struct oct_param *row = &oct_cells_search_params.rows[i];
        oct_param_format(row, p, value, sizeof(value));
        add(t, "%s = %s\n", row->name, value[0] ? value : "none");
    }
    add(t, "offsets = %s\nstop_px = %g\n", p->truncated ? "truncated" : "rounded", p->stop);
}

void oct_cells_given_text(const struct oct_cells_given *given, const struct oct_cells_run *run,
                          char *text, size_t text_bytes)
{
    const struct oct_cells_given *g = given;
    const struct oct_cells_film_setup *s = &run->film_setup;
    struct text t = {.text = text, .room = text_bytes};
    add(&t, "profile = %s\n", g->profile ? g->profile : profile_names[0]);
    add_search(&t, &run->params);
    if (s->radius_um > 0)
        add(&t, "radius_um = %g\n", s->radius_um);
    if (s->max_speed_um_s > 0)
        add(&t, "max_speed_um_s = %g\n", s->max_speed_um_s);
    if (s->roi.width > 0)
        add(&t, "roi = %u,%u,%u,%u\n", s->roi.x, s->roi.y, s->roi.width, s->roi.height);
    if (oct_cells_run_has_um(run))
        add(&t, "pixel_um = %.9g,%.9g\n", run->um[1], run->um[0]);
    if (!isnan(g->fps))
        add(&t, "fps = %.9g\n", g->fps);
    if (g->slab)
        add(&t, "slab = %s\n", g->slab);
    else if (g->which_projection == OCT_PICTURES_OVER_SHARES)
        add(&t, "slab = %g:%g\n", g->depths.first.at, g->depths.last.at);
    else if (g->projection || g->which_projection == OCT_PICTURES_HIGHEST)
        add(&t, "projection = %s\n", projection_names[g->which_projection == OCT_PICTURES_HIGHEST]);
    if (g->source_is_given || g->is_bscan)
        add(&t, "source = %s\n", source_names[g->is_bscan]);
    if (g->mask)
        add(&t, "mask = %s\n", g->mask);
    add(&t, "detect_only = %s\n", g->detect_only ? "yes" : "no");
}

/* ---- the table ---- */

#define TEXT(option, value, help, needed, member)                                                  \
    {                                                                                              \
        .name = option, .argument = value, .meaning = help, .kind = OCT_OPTION_TEXT,               \
        .at = offsetof(struct oct_cells_given, member), .needs = needed                            \
    }
#define WORDS(option, value, help, needed, taken, member)                                          \
    {                                                                                              \
        .name = option, .argument = value, .meaning = help, .kind = OCT_OPTION_TEXT,               \
        .at = offsetof(struct oct_cells_given, member), .needs = needed, .words = taken            \
    }
#define NUMBER(option, value, help, low, high, needed, member)                                     \
    {                                                                                              \
        .name = option, .argument = value, .meaning = help, .kind = OCT_OPTION_NUMBER,             \
        .at = offsetof(struct oct_cells_given, member), .least = low, .most = high,                \
        .needs = needed                                                                            \
    }
#define FLAG(option, help, member)                                                                 \
    {                                                                                              \
        .name = option, .meaning = help, .kind = OCT_OPTION_FLAG,                                  \
        .at = offsetof(struct oct_cells_given, member)                                             \
    }

const struct oct_option oct_cells_options[] = {
    {.kind = OCT_OPTION_PARAMS,
     .params = &oct_cells_params,
     .at = offsetof(struct oct_cells_given, own)},
    {.kind = OCT_OPTION_PARAMS,
     .params = &oct_cells_search_params,
     .at = offsetof(struct oct_cells_given, search)},
    WORDS("--projection", "HOW", "of en face: mean (default), max or slab of the depth",
          "mean, max or slab", "mean max slab", projection),
    TEXT("--slab", "A:B", "the mean from A to B of the depth, as 30%:50%", NULL, slab),
    TEXT("--pixel-um", "X[,Y]", "micrometres of a pixel, instead of what the file says",
         "micrometres, X or X,Y", pixel_um),
    NUMBER("--fps", "F", "pictures a second, instead of what the file says", 1e-9, 1e9,
           "a number above 0", fps),
    TEXT("--mask", "FILE", "a picture of which 0 is left out", "a file", mask),
    WORDS("--profile", "NAME", "octd (default), or boyer: as Boyer et al. published it",
          "octd or boyer", "octd boyer", profile),
    FLAG("--detect-only", "no tracks: the cells of each picture", detect_only),
    WORDS("--format", "NAME", "of OUT: octd (CSV, default), trackmate (XML) or napari (CSV)",
          "octd, trackmate or napari", "octd trackmate napari", format),
    TEXT("--tracks", "FILE.h5", "the table as datasets of /tracks", "a file", tracks),
    TEXT("--into", "FILE.h5", "add /tracks to a file of results", "a file", into),
    WORDS("--overlay", "DIR", "pictures with their cells, as PNG files, or as OUT.avi",
          "a folder, or OUT.avi", OCT_WORDS_FOLDERS, overlay),
    TEXT("--along", "X,Y,X,Y", "a line in pixels, for the kymograph and the flux", "X0,Y0,X1,Y1",
         along),
    TEXT("--kymograph", "FILE", "a PNG: brightness along the line over time", "a file", kymograph),
    TEXT("--histogram", "FILE", "a PNG: the speeds", "a file", histogram),
    TEXT("--summary", "FILE", "the numbers that are printed, as JSON", "a file", summary),
    TEXT("--maps", "FILE.h5", "scores of all pixels and MGVF fields, for tests", "a file", maps),
    FLAG("--force", "replace outputs that exist, once the new ones are whole", force),
    {NULL},
};
