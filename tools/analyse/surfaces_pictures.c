#include "tools/analyse/surfaces_pictures.h"

#include "plot/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define N_ARC 180u /* corners of a circle */
#define GRID_RGB 0x202020
#define MAP_PX 620.0 /* the shorter side of a map */
#define MICRO "\302\265m"

static const char *const layer_labels[OCT_N_LAYERS] = {"ILM", "RPE"};

static enum oct_err no_memory(struct oct_error *err)
{
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a plot");
}

/* ---- the ETDRS grid ---- */

#define N_CIRCLES 3u
#define N_SPOKES 4u
static const double radii_um[N_CIRCLES] = {500, 1500, 3000};

struct grid {
    double x[N_CIRCLES][N_ARC + 1], y[N_CIRCLES][N_ARC + 1];
    double spoke_x[N_SPOKES][2], spoke_y[N_SPOKES][2];
    struct oct_plot_path paths[N_CIRCLES + N_SPOKES];
    char words[OCT_ETDRS_N_SECTORS][24];
    struct oct_plot_text texts[OCT_ETDRS_N_SECTORS];
    unsigned n_texts;
};

static void draw_lines(struct grid *g, const struct oct_surfaces_run *run)
{
    const double *at = run->fovea_px, um_y = run->um[0], um_x = run->um[1];
    for (unsigned k = 0; k < N_CIRCLES; k++) {
        for (unsigned i = 0; i <= N_ARC; i++) {
            g->x[k][i] = at[1] + radii_um[k] * cos(2 * PI * i / N_ARC) / um_x;
            g->y[k][i] = at[0] + radii_um[k] * sin(2 * PI * i / N_ARC) / um_y;
        }
        g->paths[k] = (struct oct_plot_path){g->x[k], g->y[k], N_ARC + 1, GRID_RGB};
    }
    for (unsigned k = 0; k < N_SPOKES; k++) {
        const double angle = PI / 4 + k * PI / 2;
        for (unsigned i = 0; i < 2; i++) {
            g->spoke_x[k][i] = at[1] + radii_um[2 * i] * cos(angle) / um_x;
            g->spoke_y[k][i] = at[0] + radii_um[2 * i] * sin(angle) / um_y;
        }
        g->paths[N_CIRCLES + k] = (struct oct_plot_path){g->spoke_x[k], g->spoke_y[k], 2, GRID_RGB};
    }
}

/* The sector that an A-line lies in. */
static enum oct_etdrs_sector sector_of(const struct oct_surfaces_run *run, uint32_t b, uint32_t j)
{
    const double down = (b - run->fovea_px[0]) * run->um[0] / 1000;
    const double right = (j - run->fovea_px[1]) * run->um[1] / 1000;
    return oct_etdrs_sector_at(right, run->given->superior_is_last ? down : -down,
                               run->eye != OCT_SURFACES_EYE_OS);
}

/* A number stands in the middle of what is known of its sector, if that is large enough for it. */
static void write_numbers(struct grid *g, const struct oct_surfaces_run *run)
{
    double y[OCT_ETDRS_N_SECTORS] = {0}, x[OCT_ETDRS_N_SECTORS] = {0};
    double n[OCT_ETDRS_N_SECTORS] = {0};
    const double field_um = fmin(run->n_bscans * run->um[0], run->n_lines * run->um[1]);
    const double word_um2 = 60 * 30 * (field_um / MAP_PX) * (field_um / MAP_PX);
    for (uint32_t b = 0; b < run->n_bscans; b++)
        for (uint32_t j = 0; j < run->n_lines; j++) {
            const enum oct_etdrs_sector i = sector_of(run, b, j);
            if (i == OCT_ETDRS_N_SECTORS || !isfinite(run->thickness[(size_t)b * run->n_lines + j]))
                continue;
            y[i] += b;
            x[i] += j;
            n[i]++;
        }
    for (unsigned i = 0; i < OCT_ETDRS_N_SECTORS; i++) {
        const bool is_half = run->etdrs.covered[i] >= 0.5;
        if (n[i] * run->um[0] * run->um[1] < word_um2)
            continue;
        snprintf(g->words[i], sizeof(g->words[i]), is_half ? "%.0f" : "(%.0f)",
                 run->etdrs.mean_um[i]);
        g->texts[g->n_texts++] =
            (struct oct_plot_text){y[i] / n[i] + 0.5, x[i] / n[i] + 0.5, g->words[i]};
    }
}

/* ---- maps ---- */

/* Where superior and nasal are, as far as that is known. */
static void set_compass(struct oct_plot_picture *plot, const struct oct_surfaces_run *run)
{
    const bool is_down = run->given->superior_is_last;
    plot->compass[0] = is_down ? "I" : "S";
    plot->compass[2] = is_down ? "S" : "I";
    if (run->eye == OCT_SURFACES_EYE_UNKNOWN)
        return;
    plot->compass[1] = run->eye == OCT_SURFACES_EYE_OD ? "N" : "T";
    plot->compass[3] = run->eye == OCT_SURFACES_EYE_OD ? "T" : "N";
}

static void set_limits(struct oct_plot_picture *plot, const double limits[2])
{
    plot->lo = isnan(limits[0]) ? 0 : limits[0];
    plot->hi = isnan(limits[1]) ? 1 : limits[1];
    if (!(plot->hi - plot->lo >= 1)) {
        plot->lo -= 0.5;
        plot->hi += 0.5;
    }
}

static void set_volume(struct oct_plot_picture *plot, const struct oct_surfaces_run *run)
{
    plot->height = run->n_bscans;
    plot->width = run->n_lines;
    plot->um_dx = run->um[0] > 0 ? run->um[1] : 0; /* without both the bar would be of one axis */
    plot->um_dy = run->um[0];
    plot->least_px = MAP_PX;
}

static enum oct_err draw_thickness(const struct oct_surfaces_run *run, const char *path, bool force,
                                   struct oct_error *err)
{
    static const double shares[2] = {0.002, 0.998}; /* a pit is small */
    struct grid *grid = calloc(1, sizeof(*grid));
    char title[96], footer[192];
    double limits[2] = {NAN, NAN};
    if (!grid)
        return no_memory(err);
    enum oct_err e = oct_plot_shares(run->thickness, (size_t)run->n_bscans * run->n_lines, shares,
                                     2, limits, err);
    snprintf(title, sizeof(title), "Retinal thickness, ILM to RPE%s",
             run->eye == OCT_SURFACES_EYE_OD   ? ", right eye (OD)"
             : run->eye == OCT_SURFACES_EYE_OS ? ", left eye (OS)"
                                               : "");
    struct oct_plot_picture plot = {.title = title,
                                    .pixels = run->thickness,
                                    .in_colour = true,
                                    .value_label = isnan(run->um[2]) ? "thickness (px)"
                                                                     : "thickness (" MICRO ")"};
    set_volume(&plot, run);
    set_limits(&plot, limits);
    if (run->has_etdrs) {
        draw_lines(grid, run);
        write_numbers(grid, run);
        plot.paths = grid->paths;
        plot.n_paths = N_CIRCLES + N_SPOKES;
        plot.texts = grid->texts;
        plot.n_texts = grid->n_texts;
        set_compass(&plot, run);
        snprintf(footer, sizeof(footer),
                 "ETDRS grid, 1, 3 and 6 mm, means in " MICRO
                 " (in brackets: less than half of the "
                 "sector is known)");
        plot.footer = footer;
    }
    e = e ? e : oct_plot_write_picture(path, force, &plot, err);
    free(grid);
    return e;
}

/* px, or um where known, downward; as aligned. */
static enum oct_err heights_of(const struct oct_surfaces_run *run, const float *positions,
                               double sign, float **heights, struct oct_error *err)
{
    const size_t m = run->n_lines, n = run->n_bscans * m;
    const double um = sign * (isnan(run->um[2]) ? 1 : run->um[2]);
    *heights = calloc(n + 1, sizeof(float));
    if (!*heights)
        return no_memory(err);
    for (size_t b = 0; b < run->n_bscans; b++)
        for (size_t i = b * m; i < (b + 1) * m; i++)
            (*heights)[i] = (float)(((double)positions[i] + run->surfaces.shift_px[b]) * um);
    return OCT_OK;
}

static enum oct_err draw_depth(const struct oct_surfaces_run *run, const char *path, bool force,
                               struct oct_error *err)
{
    static const double shares[2] = {0.01, 0.99};
    const enum oct_layer layer = oct_surfaces_run_first(run);
    float *heights = NULL;
    char title[64];
    double limits[2] = {NAN, NAN};
    enum oct_err e = heights_of(run, run->surfaces.position[layer], 1, &heights, err);
    e = e ? e
          : oct_plot_shares(heights, (size_t)run->n_bscans * run->n_lines, shares, 2, limits, err);
    snprintf(title, sizeof(title), "Depth of the %s%s", layer_labels[layer],
             run->given->no_align ? "" : ", B-scans aligned");
    struct oct_plot_picture plot = {.title = title,
                                    .pixels = heights,
                                    .in_colour = true,
                                    .value_label =
                                        isnan(run->um[2]) ? "depth (px)" : "depth (" MICRO ")"};
    set_volume(&plot, run);
    set_limits(&plot, limits);
    e = e ? e : oct_plot_write_picture(path, force, &plot, err);
    free(heights);
    return e;
}

enum oct_err oct_surfaces_draw_map(void *report, const char *path, bool force,
                                   struct oct_error *err)
{
    const struct oct_surfaces_run *run = ((const struct oct_surfaces_report *)report)->run;
    return run->thickness ? draw_thickness(run, path, force, err)
                          : draw_depth(run, path, force, err);
}

enum oct_err oct_surfaces_draw_slab(void *report, const char *path, bool force,
                                    struct oct_error *err)
{
    const struct oct_surfaces_report *r = report;
    char text[64], title[96];
    oct_slab_text(&r->run->given->slab[r->which_slab], text, sizeof(text));
    snprintf(title, sizeof(title), "En face, %s (" MICRO ")", text);
    struct oct_plot_picture plot = {.title = title, .pixels = r->run->slab[r->which_slab]};
    set_volume(&plot, r->run);
    return oct_plot_write_picture(path, force, &plot, err);
}

/* ---- in relief ---- */

/* How much steeper heights are drawn, so that a tenth of the denoised surface is steeper than this
 * slope: a retina that is scanned coarsely is flat. */
#define SLOPE 0.5
#define MOST_GAIN 50.0

static enum oct_err choose_gain(const struct oct_surfaces_run *run, const float *heights,
                                const double um[2], double *gain, struct oct_error *err)
{
    static const double share = 0.9;
    const size_t m = run->n_lines;
    float *slopes = calloc((size_t)run->n_bscans * m + 1, sizeof(*slopes));
    size_t n = 0;
    double steep = NAN;
    if (!slopes)
        return no_memory(err);
    for (size_t b = 0; b + 1 < run->n_bscans; b++)
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

static enum oct_err shade_layer(struct relief *relief, const struct oct_surfaces_run *run,
                                unsigned layer, struct oct_error *err)
{
    const bool has_um = oct_surfaces_run_has_um(run), is_denoised = run->given->is_denoised;
    const double um[2] = {has_um ? run->um[0] : 1, has_um ? run->um[1] : 1};
    const float *const positions[2] = {run->found[layer], run->surfaces.position[layer]};
    double gain = 1;
    enum oct_err e = OCT_OK;
    for (int k = 1; k >= 0 && !e; k--) { /* the denoised one says how steep both are drawn */
        const unsigned i = relief->n + (is_denoised ? (unsigned)k : 0);
        float *heights = NULL;
        if (k == 0 && !is_denoised)
            continue;
        e = heights_of(run, positions[k], has_um ? -1 : -1 / (isnan(run->um[2]) ? 1 : run->um[2]),
                       &heights, err);
        if (!e && k == 1)
            e = choose_gain(run, heights, um, &gain, err);
        if (!e && !(relief->shades[i] = malloc((size_t)run->n_bscans * run->n_lines * 4)))
            e = no_memory(err);
        if (!e)
            oct_plot_shade(heights, run->n_bscans, run->n_lines, um[0], um[1], gain,
                           relief->shades[i]);
        free(heights);
        snprintf(relief->titles[i], sizeof(relief->titles[i]), "%s, %s", layer_labels[layer],
                 k == 0 || !is_denoised ? "as found" : "denoised");
        if (gain > 1)
            snprintf(relief->titles[i] + strlen(relief->titles[i]), 32, ", heights x %.0f", gain);
        relief->tiles[i] =
            (struct oct_plot_tile){.title = relief->titles[i],
                                   .pixels = relief->shades[i],
                                   .height = run->n_bscans,
                                   .width = run->n_lines,
                                   .um_dx = run->um[0] > 0 && run->um[1] > 0 ? run->um[1] : 0,
                                   .um_dy = run->um[0] > 0 && run->um[1] > 0 ? run->um[0] : 0,
                                   .hi = 1};
    }
    relief->n += is_denoised ? 2 : 1;
    return e;
}

enum oct_err oct_surfaces_draw_relief(void *report, const char *path, bool force,
                                      struct oct_error *err)
{
    const struct oct_surfaces_run *run = ((const struct oct_surfaces_report *)report)->run;
    struct relief relief = {.n = 0};
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < OCT_N_LAYERS && !e; i++)
        if (run->given->has_layer[i])
            e = shade_layer(&relief, run, i, err);
    const struct oct_plot_sheet plot = {
        .title = run->given->no_align
                     ? "Layers in relief, lit from the upper left"
                     : "Layers in relief, B-scans aligned, lit from the upper left",
        .footer = "Pale blue: not found",
        .tiles = relief.tiles,
        .n_tiles = relief.n,
        .n_columns = run->given->is_denoised ? 2 : 0,
        .fitted = true};
    e = e ? e : oct_plot_write_sheet(path, force, &plot, err);
    for (unsigned i = 0; i < 2 * OCT_N_LAYERS; i++)
        free(relief.shades[i]);
    return e;
}
