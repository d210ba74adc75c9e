/* The pictures of octctl surfaces: thickness with the ETDRS grid, B-scans with their layers, the
 * layers in relief, slabs. */
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/analyse/surfaces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define N_ARC 180u /* corners of a circle */
#define GRID_RGB 0x202020
#define LEAST_DRAWN 0.1 /* of a sector: the mean of less is none of it */
#define MAP_PX 620.0    /* the shorter side of a map */
#define MICRO "\302\265m"

static size_t n_places(const struct oct_surfaces_job *s)
{
    return (size_t)s->n_bscans * s->n_lines;
}

/* ---- the ETDRS grid ---- */

#define N_CIRCLES OCT_ETDRS_N_CIRCLES
#define N_SPOKES 4u

struct drawn_grid {
    double x[N_CIRCLES][N_ARC + 1], y[N_CIRCLES][N_ARC + 1];
    double spoke_x[N_SPOKES][2], spoke_y[N_SPOKES][2];
    struct oct_plot_path paths[N_CIRCLES + N_SPOKES];
    char words[OCT_ETDRS_N_SECTORS][24];
    struct oct_plot_text texts[OCT_ETDRS_N_SECTORS];
    unsigned n_texts;
};

static void draw_lines(struct drawn_grid *g, const struct oct_surfaces_job *s)
{
    const double *at = s->grid.fovea_px, *radii = oct_etdrs_radii_mm;
    const double mm_y = s->um[0] / 1000, mm_x = s->um[1] / 1000;
    for (unsigned k = 0; k < N_CIRCLES; k++) {
        for (unsigned i = 0; i <= N_ARC; i++) {
            g->x[k][i] = at[1] + radii[k] * cos(2 * PI * i / N_ARC) / mm_x;
            g->y[k][i] = at[0] + radii[k] * sin(2 * PI * i / N_ARC) / mm_y;
        }
        g->paths[k] = (struct oct_plot_path){g->x[k], g->y[k], N_ARC + 1, GRID_RGB};
    }
    for (unsigned k = 0; k < N_SPOKES; k++) {
        const double angle = PI / 4 + k * PI / 2;
        for (unsigned i = 0; i < 2; i++) {
            g->spoke_x[k][i] = at[1] + radii[2 * i] * cos(angle) / mm_x;
            g->spoke_y[k][i] = at[0] + radii[2 * i] * sin(angle) / mm_y;
        }
        g->paths[N_CIRCLES + k] = (struct oct_plot_path){g->spoke_x[k], g->spoke_y[k], 2, GRID_RGB};
    }
}

/* The sector that an A-line lies in. */
static enum oct_etdrs_sector sector_of(const struct oct_surfaces_job *s, uint32_t b, uint32_t j)
{
    const double down = (b - s->grid.fovea_px[0]) * s->um[0] / 1000;
    const double right = (j - s->grid.fovea_px[1]) * s->um[1] / 1000;
    return oct_etdrs_sector_at(right, s->choice.superior == 1 ? down : -down,
                               s->eye != OCT_SURFACES_EYE_OS);
}

/* A number stands in the middle of what is known of its sector, if that is large enough for it. */
static void write_numbers(struct drawn_grid *g, const struct oct_surfaces_job *s,
                          const struct oct_surfaces_thickness *t, double px)
{
    double y[OCT_ETDRS_N_SECTORS] = {0}, x[OCT_ETDRS_N_SECTORS] = {0};
    double n[OCT_ETDRS_N_SECTORS] = {0};
    const double field_um = fmin(s->n_bscans * s->um[0], s->n_lines * s->um[1]);
    const double word_um2 = 60 * 30 * (field_um / px) * (field_um / px);
    for (uint32_t b = 0; b < s->n_bscans; b++)
        for (uint32_t j = 0; j < s->n_lines; j++) {
            const enum oct_etdrs_sector i = sector_of(s, b, j);
            if (i == OCT_ETDRS_N_SECTORS || !isfinite(t->map[(size_t)b * s->n_lines + j]))
                continue;
            y[i] += b;
            x[i] += j;
            n[i]++;
        }
    for (unsigned i = 0; i < OCT_ETDRS_N_SECTORS; i++) {
        const bool is_half = t->etdrs.covered[i] >= 0.5;
        if (n[i] * s->um[0] * s->um[1] < word_um2 || t->etdrs.covered[i] < LEAST_DRAWN)
            continue;
        snprintf(g->words[i], sizeof(g->words[i]), is_half ? "%.0f" : "(%.0f)",
                 t->etdrs.mean_um[i]);
        g->texts[g->n_texts++] =
            (struct oct_plot_text){y[i] / n[i] + 0.5, x[i] / n[i] + 0.5, g->words[i]};
    }
}

/* ---- maps ---- */

/* Where superior and nasal are, as far as that is known. */
static void set_compass(struct oct_plot_picture *plot, const struct oct_surfaces_job *s)
{
    const bool is_down = s->choice.superior == 1;
    plot->compass[0] = is_down ? "I" : "S";
    plot->compass[2] = is_down ? "S" : "I";
    if (s->eye == OCT_SURFACES_EYE_UNKNOWN)
        return;
    plot->compass[1] = s->eye == OCT_SURFACES_EYE_OD ? "N" : "T";
    plot->compass[3] = s->eye == OCT_SURFACES_EYE_OD ? "T" : "N";
}

/* A picture of values, a pixel an A-line. */
static struct oct_plot_picture plot_of(const struct oct_surfaces_job *s, const char *title,
                                       const float *values)
{
    return (struct oct_plot_picture){
        .title = title,
        .pixels = values,
        .height = s->n_bscans,
        .width = s->n_lines,
        .um_dx = s->um[0] > 0 ? s->um[1] : 0, /* without both the bar would be of one axis */
        .um_dy = s->um[0],
        .least_px = MAP_PX};
}

/* In colour; `part` of the values lie beyond each end of the scale. */
static enum oct_err set_colours(const struct oct_surfaces_job *s, struct oct_plot_picture *plot,
                                double part, struct oct_error *err)
{
    const double shares[2] = {part, 1 - part};
    double limits[2] = {NAN, NAN};
    const enum oct_err e = oct_plot_shares(plot->pixels, n_places(s), shares, 2, limits, err);
    plot->in_colour = true;
    plot->lo = isnan(limits[0]) ? 0 : limits[0];
    plot->hi = isnan(limits[1]) ? 1 : limits[1];
    if (!(plot->hi - plot->lo >= 1)) {
        plot->lo -= 0.5;
        plot->hi += 0.5;
    }
    return e;
}

void oct_surfaces_figure_finish(struct oct_surfaces_figure *figure)
{
    for (unsigned i = 0; i < sizeof(figure->held) / sizeof(figure->held[0]); i++)
        free(figure->held[i]);
}

enum oct_err oct_surfaces_figure_map(const struct oct_surfaces_job *s, unsigned i, double px,
                                     struct oct_surfaces_figure *figure, struct oct_error *err)
{
    static const char *const titles[OCT_SURFACES_N_THICKNESSES] = {
        "Retinal thickness, ILM to RPE", "Thickness of the nerve fibre layer"};
    const struct oct_surfaces_thickness *t = &s->thickness[i];
    struct drawn_grid *grid = oct_alloc(1, sizeof(*grid));
    snprintf(figure->title, sizeof(figure->title), "%s%s", titles[i] ? titles[i] : t->name,
             s->eye == OCT_SURFACES_EYE_OD   ? ", right eye (OD)"
             : s->eye == OCT_SURFACES_EYE_OS ? ", left eye (OS)"
                                             : "");
    figure->held[0] = grid;
    figure->plot = plot_of(s, figure->title, t->map);
    struct oct_plot_picture *plot = &figure->plot;
    plot->value_label = isnan(s->um[2]) ? "thickness (px)" : "thickness (" MICRO ")";
    if (s->grid.is_measured) {
        draw_lines(grid, s);
        write_numbers(grid, s, t, px);
        plot->paths = grid->paths;
        plot->n_paths = N_CIRCLES + N_SPOKES;
        plot->texts = grid->texts;
        plot->n_texts = grid->n_texts;
        set_compass(plot, s);
        plot->footer = "ETDRS grid, 1, 3 and 6 mm, means in " MICRO
                       " (in brackets: less than half of the sector is known)";
    }
    return set_colours(s, plot, 0.002, err); /* a pit is small */
}

static enum oct_err draw_thickness(const struct oct_surfaces_job *s, const char *path, bool force,
                                   struct oct_error *err)
{
    struct oct_surfaces_figure figure = {.title = ""};
    enum oct_err e = oct_surfaces_figure_map(s, 0, MAP_PX, &figure, err);
    e = e ? e : oct_plot_write_picture(path, force, &figure.plot, err);
    oct_surfaces_figure_finish(&figure);
    return e;
}

/* px, or um where known, downward; as aligned. */
static float *heights_of(const struct oct_surfaces_job *s, const float *positions, double scale)
{
    const size_t m = s->n_lines, n = n_places(s);
    float *heights = oct_alloc(n, sizeof(*heights));
    for (size_t i = 0; i < n; i++)
        heights[i] = (float)(((double)positions[i] + s->surfaces.shift_px[i / m]) * scale);
    return heights;
}

static enum oct_err draw_depth(const struct oct_surfaces_job *s, const char *path, bool force,
                               struct oct_error *err)
{
    const bool has_um = !isnan(s->um[2]);
    float *heights = heights_of(s, s->surfaces.position[s->first], has_um ? s->um[2] : 1);
    char title[64];
    snprintf(title, sizeof(title), "Depth of the %s%s", s->layer[s->first].label,
             s->is_aligned ? ", B-scans aligned" : "");
    struct oct_plot_picture plot = plot_of(s, title, heights);
    plot.value_label = has_um ? "depth (" MICRO ")" : "depth (px)";
    enum oct_err e = set_colours(s, &plot, 0.01, err);
    e = e ? e : oct_plot_write_picture(path, force, &plot, err);
    free(heights);
    return e;
}

void oct_surfaces_plot_circle(const struct oct_surfaces_job *s, struct oct_plot_series series[2],
                              struct oct_plot_lines *plot)
{
    const struct oct_surfaces_circle *c = &s->circle;
    series[0] =
        (struct oct_plot_series){c->angle_deg, c->rnfl_um, s->n_lines, "found", OCT_PLOT_LINE};
    series[1] = (struct oct_plot_series){c->angle_deg, c->device_um, s->n_lines, "the device's",
                                         OCT_PLOT_DASHES};
    *plot = (struct oct_plot_lines){
        .title = "Nerve fibres about the optic disc",
        .x_label = "angle (degrees; 0 temporal, 90 superior, 180 nasal, 270 inferior)",
        .y_label = "thickness (" MICRO ")",
        .series = series,
        .n_series = c->device_um ? 2 : 1,
        .from_zero = true};
}

static enum oct_err draw_circle(const struct oct_surfaces_job *s, const char *path, bool force,
                                struct oct_error *err)
{
    struct oct_plot_series series[2];
    struct oct_plot_lines plot;
    oct_surfaces_plot_circle(s, series, &plot);
    return oct_plot_write_lines(path, force, &plot, err);
}

enum oct_err oct_surfaces_draw_map(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_surfaces_job *s = job;
    if (s->circle.is_measured)
        return draw_circle(s, path, force, err);
    return s->thickness[0].map ? draw_thickness(s, path, force, err)
                               : draw_depth(s, path, force, err);
}

enum oct_err oct_surfaces_draw_slab(void *slab, const char *path, bool force, struct oct_error *err)
{
    const struct oct_surfaces_slab *of = slab;
    char title[96];
    snprintf(title, sizeof(title), "En face, %s (" MICRO ")", of->name);
    const struct oct_plot_picture plot = plot_of(of->s, title, of->values);
    return oct_plot_write_picture(path, force, &plot, err);
}

/* ---- in relief ---- */

/* How much steeper heights are drawn, so that a tenth of the denoised surface is steeper than this
 * slope: a retina that is scanned coarsely is flat. */
#define SLOPE 0.5
#define MOST_GAIN 50.0

static enum oct_err choose_gain(const struct oct_surfaces_job *s, const float *heights,
                                const double um[2], double *gain, struct oct_error *err)
{
    static const double share = 0.9;
    const size_t m = s->n_lines;
    float *slopes = oct_alloc(n_places(s), sizeof(*slopes));
    size_t n = 0;
    double steep = NAN;
    for (size_t b = 0; b + 1 < s->n_bscans; b++)
        for (size_t j = 0; j + 1 < m; j++) {
            const float *at = heights + b * m + j;
            slopes[n++] =
                (float)hypot((double)(at[m] - at[0]) / um[0], (double)(at[1] - at[0]) / um[1]);
        }
    const enum oct_err e = oct_plot_shares(slopes, n, &share, 1, &steep, err);
    free(slopes);
    *gain = steep > 0 ? fmin(MOST_GAIN, fmax(1, round(SLOPE / steep))) : 1;
    return e;
}

struct relief {
    float *shades[2 * OCT_N_LAYERS];
    char titles[2 * OCT_N_LAYERS][96];
    struct oct_plot_tile tiles[2 * OCT_N_LAYERS];
    unsigned n;
};

/* The denoised one says how steep both are drawn. */
static enum oct_err shade_layer(struct relief *relief, const struct oct_surfaces_job *s,
                                unsigned layer, struct oct_error *err)
{
    const bool has_um = oct_surfaces_has_um(s), has_bar = s->um[0] > 0 && s->um[1] > 0;
    const double um[2] = {has_um ? s->um[0] : 1, has_um ? s->um[1] : 1};
    const float *const positions[2] = {s->layer[layer].found, s->surfaces.position[layer]};
    double gain = 1;
    enum oct_err e = OCT_OK;
    for (unsigned k = 2; k-- > (s->is_denoised ? 0 : 1) && !e;) {
        const unsigned i = relief->n + (s->is_denoised ? k : 0);
        char *title = relief->titles[i];
        float *heights = heights_of(s, positions[k], !has_um || isnan(s->um[2]) ? -1 : -s->um[2]);
        if (k == 1)
            e = choose_gain(s, heights, um, &gain, err);
        relief->shades[i] = oct_alloc(n_places(s), sizeof(float));
        oct_plot_shade(heights, s->n_bscans, s->n_lines, um[0], um[1], gain, relief->shades[i]);
        free(heights);
        snprintf(title, sizeof(relief->titles[i]), "%s, %s", s->layer[layer].label,
                 k == 0 || !s->is_denoised ? "as found" : "denoised");
        if (gain > 1)
            snprintf(title + strlen(title), 32, ", heights x %.0f", gain);
        relief->tiles[i] = (struct oct_plot_tile){.title = title,
                                                  .pixels = relief->shades[i],
                                                  .height = s->n_bscans,
                                                  .width = s->n_lines,
                                                  .um_dx = has_bar ? s->um[1] : 0,
                                                  .um_dy = has_bar ? s->um[0] : 0,
                                                  .hi = 1};
    }
    relief->n += s->is_denoised ? 2 : 1;
    return e;
}

enum oct_err oct_surfaces_draw_relief(void *job, const char *path, bool force,
                                      struct oct_error *err)
{
    const struct oct_surfaces_job *s = job;
    struct relief relief = {.n = 0};
    enum oct_err e = OCT_OK;
    for (unsigned k = 0; k < OCT_N_LAYERS && !e; k++)
        if (s->layer[k].is_asked)
            e = shade_layer(&relief, s, k, err);
    const struct oct_plot_sheet plot = {
        .title = s->is_aligned ? "Layers in relief, B-scans aligned, lit from the upper left"
                               : "Layers in relief, lit from the upper left",
        .footer = "Pale blue: not found",
        .tiles = relief.tiles,
        .n_tiles = relief.n,
        .n_columns = s->is_denoised ? 2 : 0,
        .fitted = true};
    if (!e)
        e = oct_plot_write_sheet(path, force, &plot, err);
    for (unsigned i = 0; i < 2 * OCT_N_LAYERS; i++)
        free(relief.shades[i]);
    return e;
}

/* ---- B-scans ---- */

#define N_SHOWN 5u
#define ABOVE_UM 120.0 /* what is shown above the first layer and below the last */
#define BELOW_UM 220.0
#define ABOVE_PX 50.0
#define BELOW_PX 90.0

static const unsigned layer_rgb[OCT_N_LAYERS] = {0x35c4ff, 0xf5e663, 0x6fdc5a, 0x2fb68f,
                                                 0xb388ff, 0xff6f91, 0xffa01e},
                      device_rgb = 0x9a9a9a;
#define MOST_PATHS (OCT_N_LAYERS + OCT_SURFACES_MOST_DEVICE)

struct shown {
    struct oct_surfaces_job *s;
    uint32_t bscan[N_SHOWN];
    unsigned n;
    uint32_t first, depth; /* of the depths that are shown */
    float *pixels;         /* [n][depth][M] */
    double *line;          /* [M]: 0, 1, ... */
    unsigned n_paths;      /* of the device, then ours */
    double *place;         /* [n][n_paths][M] from `first` on */
    char titles[N_SHOWN][64];
    struct oct_plot_path paths[N_SHOWN][MOST_PATHS];
    struct oct_plot_tile tiles[N_SHOWN];
};

/* The first, the last and those between them. */
static void choose_bscans(struct shown *p)
{
    for (unsigned i = 0; i < N_SHOWN; i++) {
        const uint32_t b = (uint32_t)llround((p->s->n_bscans - 1.0) * i / (double)(N_SHOWN - 1));
        if (p->n == 0 || p->bscan[p->n - 1] != b)
            p->bscan[p->n++] = b;
    }
}

/* Where the layers lie in B-scan i, NaN: nowhere. */
static double position_of(const struct shown *p, unsigned i, unsigned k, uint32_t j)
{
    const struct oct_surfaces_job *s = p->s;
    return s->layer[k].is_asked
               ? (double)s->surfaces.position[k][(size_t)p->bscan[i] * s->n_lines + j]
               : NAN;
}

/* The depths about the layers; all where there is none. */
static void crop_depths(struct shown *p)
{
    const struct oct_surfaces_job *s = p->s;
    const double um = s->um[2];
    double least = INFINITY, most = -INFINITY;
    for (unsigned i = 0; i < p->n; i++)
        for (unsigned k = 0; k < OCT_N_LAYERS; k++)
            for (uint32_t j = 0; j < s->n_lines; j++) {
                least = fmin(least, position_of(p, i, k, j));
                most = fmax(most, position_of(p, i, k, j));
            }
    p->depth = s->depth;
    if (!(least <= most))
        return;
    least -= isnan(um) ? ABOVE_PX : ABOVE_UM / um;
    most += isnan(um) ? BELOW_PX : BELOW_UM / um;
    /* Where pixels are large, a layer that is placed beyond an end has no room about it. */
    p->first = (uint32_t)fmin(fmax(least, 0), s->depth - 1.0);
    p->depth = (uint32_t)fmin(fmax(most, p->first), s->depth - 1.0) + 1 - p->first;
}

/* B-scan i with its title and its layers, turned as it is shown: depth downward. */
static enum oct_err lay_bscan(struct shown *p, unsigned i, struct oct_error *err)
{
    struct oct_surfaces_job *s = p->s;
    const size_t m = s->n_lines;
    const uint32_t b = p->bscan[i];
    const double y_um = b * s->um[0];
    const enum oct_volume_fate fate = s->surfaces.fate[b];
    float *pixels = p->pixels + i * p->depth * m;
    char *title = p->titles[i];
    struct oct_picture picture;
    const enum oct_err e = oct_surfaces_read(s, b, &picture, err);
    if (e)
        return e;
    for (size_t j = 0; j < m; j++)
        for (size_t d = 0; d < p->depth; d++) {
            const size_t at = j * s->depth + p->first + d;
            pixels[d * m + j] = oct_picture_is_valid(&picture, at) ? picture.pixels[at] : NAN;
        }
    oct_picture_finish(&picture);
    int n = snprintf(title, sizeof(p->titles[i]), "B-scan %u", b);
    if (!isnan(y_um))
        n += snprintf(title + n, sizeof(p->titles[i]) - (size_t)n, ", y = %.0f " MICRO, y_um);
    if (fate != OCT_VOLUME_USED && oct_volume_fate_text(fate)[0])
        snprintf(title + n, sizeof(p->titles[i]) - (size_t)n, " (%s)", oct_volume_fate_text(fate));
    for (unsigned k = 0; k < p->n_paths; k++) {
        const unsigned n_device = s->device.n;
        double *place = p->place + (i * p->n_paths + k) * m;
        for (uint32_t j = 0; j < m; j++)
            place[j] = (k < n_device ? (double)s->device.px[((size_t)k * s->n_bscans + b) * m + j]
                                     : position_of(p, i, k - n_device, j)) -
                       p->first;
        p->paths[i][k] = (struct oct_plot_path){
            p->line, place, m, k < n_device ? device_rgb : layer_rgb[k - n_device]};
    }
    return OCT_OK;
}

/* Black and white of B-scans: of all that are shown. */
static enum oct_err find_greys(const struct shown *p, double limits[2], struct oct_error *err)
{
    static const double shares[2] = {0.02, 0.998};
    const size_t n = (size_t)p->n * p->depth * p->s->n_lines;
    const enum oct_err e = oct_plot_shares(p->pixels, n, shares, 2, limits, err);
    if (e)
        return e;
    if (!(limits[1] > limits[0])) {
        limits[0] = isnan(limits[0]) ? 0 : limits[0];
        limits[1] = limits[0] + 1;
    }
    return OCT_OK;
}

unsigned oct_surfaces_legends(const struct oct_surfaces_job *s,
                              struct oct_plot_legend legends[OCT_N_LAYERS + 1])
{
    unsigned n = 0;
    for (unsigned k = 0; k < OCT_N_LAYERS; k++)
        if (s->layer[k].is_asked)
            legends[n++] = (struct oct_plot_legend){s->layer[k].label, layer_rgb[k]};
    if (s->device.n > 0)
        legends[n++] = (struct oct_plot_legend){"the device's", device_rgb};
    return n;
}

static enum oct_err write_bscans(struct shown *p, const char *path, bool force,
                                 struct oct_error *err)
{
    const struct oct_surfaces_job *s = p->s;
    const size_t n = (size_t)p->depth * s->n_lines;
    const bool has_um = s->um[1] > 0 && s->um[2] > 0;
    struct oct_plot_legend legends[OCT_N_LAYERS + 1];
    const unsigned n_legends = oct_surfaces_legends(s, legends);
    char footer[128];
    double limits[2];
    const enum oct_err e = find_greys(p, limits, err);
    if (e)
        return e;
    for (unsigned i = 0; i < p->n; i++)
        p->tiles[i] = (struct oct_plot_tile){.title = p->titles[i],
                                             .pixels = p->pixels + i * n,
                                             .height = p->depth,
                                             .width = s->n_lines,
                                             .um_dx = has_um ? s->um[1] : 0,
                                             .um_dy = has_um ? s->um[2] : 0,
                                             .lo = limits[0],
                                             .hi = limits[1],
                                             .paths = p->paths[i],
                                             .n_paths = p->n_paths};
    snprintf(footer, sizeof(footer), "Depth pixels %u to %u of 0 to %u%s", p->first,
             p->first + p->depth - 1, s->depth - 1,
             has_um ? ", depth and width at one scale" : ", a pixel a pixel");
    const struct oct_plot_sheet plot = {.title = "Layers in B-scans",
                                        .footer = footer,
                                        .tiles = p->tiles,
                                        .n_tiles = p->n,
                                        .fitted = true,
                                        .legends = legends,
                                        .n_legends = n_legends};
    return oct_plot_write_sheet(path, force, &plot, err);
}

/* Its B-scans, with all that is drawn of them. */
static enum oct_err lay_bscans(struct shown *p, struct oct_error *err)
{
    const size_t m = p->s->n_lines;
    enum oct_err e = OCT_OK;
    crop_depths(p);
    p->pixels = oct_alloc(p->n * p->depth * m, sizeof(float));
    p->line = oct_alloc(m, sizeof(double));
    p->n_paths = OCT_N_LAYERS + p->s->device.n;
    p->place = oct_alloc((size_t)p->n * p->n_paths * m, sizeof(double));
    for (size_t j = 0; j < m; j++)
        p->line[j] = (double)j;
    for (unsigned i = 0; i < p->n && !e; i++)
        e = lay_bscan(p, i, err);
    return e;
}

enum oct_err oct_surfaces_draw_bscans(void *job, const char *path, bool force,
                                      struct oct_error *err)
{
    struct shown p = {.s = job};
    choose_bscans(&p);
    enum oct_err e = lay_bscans(&p, err);
    if (!e)
        e = write_bscans(&p, path, force, err);
    free(p.pixels);
    free(p.line);
    free(p.place);
    return e;
}

enum oct_err oct_surfaces_figure_bscan(struct oct_surfaces_job *s, uint32_t b,
                                       struct oct_surfaces_figure *figure, struct oct_error *err)
{
    struct shown *p = oct_alloc(1, sizeof(*p));
    const bool has_um = s->um[1] > 0 && s->um[2] > 0;
    double limits[2] = {0, 1};
    *p = (struct shown){.s = s, .bscan = {b}, .n = 1};
    enum oct_err e = lay_bscans(p, err);
    e = e ? e : find_greys(p, limits, err);
    snprintf(figure->title, sizeof(figure->title), "%s", p->titles[0]);
    figure->plot = (struct oct_plot_picture){.title = figure->title,
                                             .pixels = p->pixels,
                                             .height = p->depth,
                                             .width = s->n_lines,
                                             .lo = limits[0],
                                             .hi = limits[1],
                                             .um_dx = has_um ? s->um[1] : 0,
                                             .um_dy = has_um ? s->um[2] : 0,
                                             .smooth = true,
                                             .paths = p->paths[0],
                                             .n_paths = p->n_paths};
    memcpy(figure->held, ((void *[]){p, p->pixels, p->line, p->place}), sizeof(figure->held));
    return e;
}
