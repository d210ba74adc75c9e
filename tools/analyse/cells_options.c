#include "tools/analyse/cells_options.h"

#include "formats/film_write.h"
#include "tools/commands.h"
#include "tools/picture_options.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NOT_GIVEN UINT64_MAX

static const char *const source_names[] = {"enface", "bscan"};
static const char *const projection_names[] = {"mean", "max", "slab"};
static const enum oct_pictures_projection projections[] = {
    OCT_PICTURES_OVER_ALL, OCT_PICTURES_HIGHEST, OCT_PICTURES_OVER_SHARES};
static const char *const polarity_names[] = {"bright", "dark", "both"};
static const char *const refine_names[] = {"none", "peak", "edge", "spline"};
static const char *const profile_names[] = {"octd", "boyer"};
static const char *const format_names[OCT_CELLS_N_FORMATS] = {"octd", "trackmate", "napari"};

#define N_NAMES(names) (sizeof(names) / sizeof((names)[0]))

void oct_cells_given_init(struct oct_cells_given *given)
{
    *given = (struct oct_cells_given){.radius_um = NAN,
                                      .radius = NAN,
                                      .fps = NAN,
                                      .threshold = NAN,
                                      .smooth = NAN,
                                      .floor = NAN,
                                      .spacing = NAN,
                                      .max_speed = NAN,
                                      .detect_every = NOT_GIVEN,
                                      .memory = NOT_GIVEN,
                                      .min_frames = NOT_GIVEN};
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

static bool is_natural(double value)
{
    return value >= 0 && value <= UINT32_MAX && value == floor(value);
}

/* ---- parameters ---- */

static int read_words(struct oct_cells_given *g, const char *name, struct oct_cells_params *p)
{
    const int source = find_word(g->source, source_names, N_NAMES(source_names));
    const int projection = find_word(g->projection, projection_names, N_NAMES(projection_names));
    const int polarity = find_word(g->polarity, polarity_names, N_NAMES(polarity_names));
    const int refine = find_word(g->refine, refine_names, N_NAMES(refine_names));
    const int format = find_word(g->format, format_names, OCT_CELLS_N_FORMATS);
    if (source < 0)
        return oct_command_misuse(name, "--source needs enface or bscan");
    if (projection < 0)
        return oct_command_misuse(name, "--projection needs mean, max or slab");
    if (polarity < 0)
        return oct_command_misuse(name, "--polarity needs bright, dark or both");
    if (refine < 0)
        return oct_command_misuse(name, "--refine needs none, peak, edge or spline");
    if (format < 0)
        return oct_command_misuse(name, "--format needs octd, trackmate or napari");
    if (format == OCT_CELLS_FORMAT_NAPARI && g->detect_only)
        return oct_command_misuse(name, "--format napari holds tracks, --detect-only makes none");
    if (g->source)
        g->is_bscan = source == 1;
    if (g->projection || g->slab)
        g->which_projection = g->slab ? OCT_PICTURES_OVER_SHARES : projections[projection];
    g->which_format = (enum oct_cells_format)format;
    if (g->polarity)
        p->polarity = (enum oct_cells_polarity)polarity;
    if (g->refine)
        p->refine = (enum oct_cells_refine)refine;
    return 0;
}

static int read_slab(struct oct_cells_given *g, const char *name)
{
    double shares[2];
    if (g->is_bscan && (g->projection || g->slab))
        return oct_command_misuse(name, "--projection and --slab are of --source enface");
    if (g->projection && g->which_projection == OCT_PICTURES_OVER_SHARES && !g->slab)
        return oct_command_misuse(name, "--projection slab needs --slab A:B");
    if (g->slab && g->projection && strcmp(g->projection, "slab") != 0)
        return oct_command_misuse(name, "--slab is of --projection slab");
    if (!g->slab)
        return 0;
    if (!read_numbers(g->slab, ':', shares, 2) || !(shares[0] >= 0) || !(shares[1] > shares[0]) ||
        !(shares[1] <= 1))
        return oct_command_misuse(name, "--slab needs two shares of the depth, A:B, from 0 to 1, A "
                                        "below B");
    g->share_first = shares[0];
    g->share_last = shares[1];
    return 0;
}

static int read_sizes(const struct oct_cells_given *g, const char *name, struct oct_cells_run *run)
{
    struct oct_cells_params *p = &run->film_setup.params;
    double radii[3];
    if (!isnan(g->radius) && !isnan(g->radius_um))
        return oct_command_misuse(name, "--radius and --radius-um exclude one another");
    if (!isnan(g->radius_um) || !isnan(g->radius))
        run->film_setup.radius_um = isnan(g->radius_um) ? 0 : g->radius_um;
    if (g->radii && !read_numbers(g->radii, ':', radii, 3))
        return oct_command_misuse(name, "--radii needs FIRST:LAST:STEP in radii, as 0.8:2:0.2");
    if (g->radii) {
        double circles[OCT_CELLS_MOST_CIRCLES];
        p->first = radii[0];
        p->last = radii[1];
        p->step = radii[2];
        if (oct_cells_circles(p, circles) == 0)
            return oct_command_misuse(name,
                                      "--radii %s: an empty list, or of more than %u circles; "
                                      "FIRST:LAST:STEP ascend from above 0",
                                      g->radii, OCT_CELLS_MOST_CIRCLES);
    }
    if (g->pixel_um && !oct_picture_option_um(g->pixel_um, run->um))
        return oct_command_misuse(name, "--pixel-um needs micrometres of a pixel above 0, X or "
                                        "X,Y");
    run->um_is_given = g->pixel_um != NULL;
    return 0;
}

static int read_places(const struct oct_cells_given *g, const char *name, struct oct_cells_run *run)
{
    double v[4], flow;
    if (g->roi) {
        if (!read_numbers(g->roi, ',', v, 4) || !is_natural(v[0]) || !is_natural(v[1]) ||
            !is_natural(v[2]) || !is_natural(v[3]) || v[2] < 1 || v[3] < 1)
            return oct_command_misuse(name, "--roi needs whole pixels, X,Y,WIDTH,HEIGHT");
        run->film_setup.roi =
            (struct oct_region){(uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2], (uint32_t)v[3]};
    }
    if (g->kymograph && !g->along)
        return oct_command_misuse(name, "--kymograph needs a line, --along X0,Y0,X1,Y1");
    if (g->along) {
        if (!read_numbers(g->along, ',', v, 4))
            return oct_command_misuse(name, "--along needs a line in pixels, X0,Y0,X1,Y1");
        run->has_line = true;
        run->line = (struct oct_cells_line){v[0], v[1], v[2], v[3]};
    }
    if (g->flow)
        run->film_setup.params.flow_deg = NAN;
    if (g->flow && strcmp(g->flow, "none") != 0) {
        if (!oct_option_double(g->flow, &flow) || fabs(flow) > 360)
            return oct_command_misuse(name, "--flow needs degrees from -360 to 360, or none");
        run->film_setup.params.flow_deg = flow;
    }
    return 0;
}

static void read_counts(const struct oct_cells_given *g, struct oct_cells_run *run)
{
    struct oct_cells_params *p = &run->film_setup.params;
    p->threshold = isnan(g->threshold) ? p->threshold : g->threshold;
    p->smooth = isnan(g->smooth) ? p->smooth : g->smooth;
    p->floor = isnan(g->floor) ? p->floor : g->floor;
    p->spacing = isnan(g->spacing) ? p->spacing : g->spacing;
    p->detect_every = g->detect_every == NOT_GIVEN ? p->detect_every : (unsigned)g->detect_every;
    p->memory = g->memory == NOT_GIVEN ? p->memory : (unsigned)g->memory;
    p->min_frames = g->min_frames == NOT_GIVEN ? p->min_frames : (unsigned)g->min_frames;
    run->has_min_frames = run->has_min_frames || g->min_frames != NOT_GIVEN;
    if (!isnan(g->max_speed))
        run->film_setup.max_speed_um_s = g->max_speed;
    run->film_setup.detect_only = g->detect_only;
}

/* What the configuration says, as octd takes it. */
static void take_keys(struct oct_cells_given *g, const struct oct_config *config,
                      struct oct_cells_run *run)
{
    static const double unknown[2] = {NAN, NAN};
    struct oct_cells_settings s = config->cells;
    s.enface = config->enface;
    s.cpu = config->pipeline.backend == OCT_BACKEND_CPU;
    run->film_setup = oct_cells_live_film(&s, 0, 0, unknown);
    run->has_min_frames = oct_config_is_set(config, "cells.min_frames");
    if (!isnan(g->radius))
        run->film_setup.params.radius = g->radius;
    g->is_bscan = s.source == OCT_CELLS_OF_BSCAN;
    g->which_projection = projections[s.enface.projection - OCT_PROJECTION_MEAN];
    g->share_first = s.enface.slab_first;
    g->share_last = s.enface.slab_last;
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
    struct oct_cells_params *p = &run->film_setup.params;
    const int profile = find_word(g->profile, profile_names, N_NAMES(profile_names));
    enum oct_film_format format;
    if (profile < 0)
        return oct_command_misuse(name, "--profile needs octd or boyer");
    if (profile == 1 && find_given_key(config, key)[0])
        return oct_command_misuse(name, "--profile boyer takes options alone, not the key %s", key);
    take_keys(g, config, run);
    if (profile == 1)
        oct_cells_params_boyer(p, p->radius);
    if (g->overlay && oct_film_format_of(g->overlay, &format) && format == OCT_FILM_AVI)
        g->overlay_film = g->overlay;
    else
        g->overlay_folder = g->overlay;
    read_counts(g, run);
    int status = read_words(g, name, p);
    if (!status)
        status = read_slab(g, name);
    if (!status)
        status = read_sizes(g, name, run);
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
        .share_first = g->share_first,
        .share_last = g->share_last,
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
    add(t, "radius_px = %.9g\nradii = %g:%g:%g\noffsets = %s\n", p->radius, p->first, p->last,
        p->step, p->truncated ? "truncated" : "rounded");
    add(t, "polarity = %s\nthreshold = %g\nsmooth = %g\nfloor = %g\nspacing = %g\n",
        polarity_names[p->polarity], p->threshold, p->smooth, p->floor, p->spacing);
    add(t, "refine = %s\ndetect_every = %u\nmemory = %u\nmin_frames = %u\nstop_px = %g\n",
        refine_names[p->refine], p->detect_every, p->memory, p->min_frames, p->stop);
    if (isnan(p->flow_deg))
        add(t, "flow_deg = none\n");
    else
        add(t, "flow_deg = %g\n", p->flow_deg);
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
    if (g->which_projection == OCT_PICTURES_OVER_SHARES)
        add(&t, "slab = %g:%g\n", g->share_first, g->share_last);
    else if (g->projection || g->which_projection == OCT_PICTURES_HIGHEST)
        add(&t, "projection = %s\n", projection_names[g->which_projection == OCT_PICTURES_HIGHEST]);
    if (g->source || g->is_bscan)
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
#define COUNT(option, value, help, low, needed, member)                                            \
    {                                                                                              \
        .name = option, .argument = value, .meaning = help, .kind = OCT_OPTION_COUNT,              \
        .at = offsetof(struct oct_cells_given, member), .least = low, .most = 1e9, .needs = needed \
    }
#define FLAG(option, help, member)                                                                 \
    {                                                                                              \
        .name = option, .meaning = help, .kind = OCT_OPTION_FLAG,                                  \
        .at = offsetof(struct oct_cells_given, member)                                             \
    }

const struct oct_option oct_cells_options[] = {
    WORDS("--source", "WHAT", "of recordings: enface (a picture a volume; default) or bscan",
          "enface or bscan", "enface bscan", source),
    WORDS("--projection", "HOW", "of en face: mean (default), max or slab of the depth",
          "mean, max or slab", "mean max slab", projection),
    TEXT("--slab", "A:B", "the mean from share A to share B of the depth, as 0.3:0.5",
         "two shares, A:B", slab),
    NUMBER("--radius", "PX", "the cells' radius R in pixels (10)", 1.5, 200, "1.5 to 200 pixels",
           radius),
    NUMBER("--radius-um", "UM", "the same in micrometres", OCT_OPTION_ABOVE_0, 1e6,
           "micrometres above 0", radius_um),
    TEXT("--pixel-um", "X[,Y]", "micrometres of a pixel, instead of what the file says",
         "micrometres, X or X,Y", pixel_um),
    NUMBER("--fps", "F", "pictures a second, instead of what the file says", 1e-9, 1e9,
           "a number above 0", fps),
    WORDS("--polarity", "P", "bright (default), dark or both", "bright, dark or both",
          "bright dark both", polarity),
    NUMBER("--threshold", "S", "a cell's score is above S (1.8)", OCT_OPTION_ABOVE_0, 1e9,
           "a number above 0", threshold),
    NUMBER("--smooth", "S", "standard deviation of the Gaussian before, in R (0.2)", 0, 4, "0 to 4",
           smooth),
    NUMBER("--floor", "K", "noise that lowers scores, in standard deviations (1)", 0, 1e6,
           "0 or more", floor),
    NUMBER("--spacing", "D", "two cells are D R apart at least (1.2)", 0, 16, "0 to 16", spacing),
    TEXT("--radii", "A:B:STEP", "circles that are tried, in R (0.8:2:0.2)", "FIRST:LAST:STEP",
         radii),
    WORDS("--refine", "HOW", "none, peak, edge (default) or spline", "none, peak, edge or spline",
          "none peak edge spline", refine),
    COUNT("--detect-every", "N", "search every Nth picture, follow in the others (1)", 1,
          "1 picture or more", detect_every),
    COUNT("--memory", "F", "frames that a track stands without its cell (3)", 0, "0 or more",
          memory),
    COUNT("--min-frames", "F", "a track is seen in F frames at least (3, or all of a shorter film)",
          0, "0 or more", min_frames),
    NUMBER("--max-speed", "UM_S", "um/s of a cell whose motion is not known yet (2 R a frame)",
           OCT_OPTION_ABOVE_0, 1e12, "um/s above 0", max_speed),
    TEXT("--flow", "DEG",
         "where cells go: 0 right, 90 down; none: along their own motion\n"
         "(default)",
         "degrees, or none", flow),
    TEXT("--roi", "X,Y,W,H", "search this part alone", "whole pixels, X,Y,W,H", roi),
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
