/* B-scans with their layers drawn over them. */
#include "plot/plot.h"
#include "tools/analyse/surfaces_pictures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N_SHOWN 5u
#define ABOVE_UM 120.0 /* what is shown above the first layer and below the last */
#define BELOW_UM 220.0
#define ABOVE_PX 50.0
#define BELOW_PX 90.0
#define MICRO "\302\265m"

static const unsigned layer_rgb[OCT_N_LAYERS] = {0x35c4ff, 0xffa01e};
static const char *const layer_labels[OCT_N_LAYERS] = {"ILM", "RPE"};

struct shown {
    const struct oct_surfaces_run *run;
    uint32_t bscan[N_SHOWN];
    unsigned n;
    uint32_t first, depth; /* of the depths that are shown */
    float *pixels;         /* [n][depth][M] */
    double *line;          /* [M]: 0, 1, ... */
    double *place;         /* [n][layers][M] from `first` on */
    char titles[N_SHOWN][64];
    struct oct_plot_path paths[N_SHOWN][OCT_N_LAYERS];
    struct oct_plot_tile tiles[N_SHOWN];
};

/* The first, the last and those between them. */
static void choose(struct shown *s)
{
    for (unsigned i = 0; i < N_SHOWN; i++) {
        const uint32_t b = (uint32_t)llround((s->run->n_bscans - 1.0) * i / (double)(N_SHOWN - 1));
        if (s->n == 0 || s->bscan[s->n - 1] != b)
            s->bscan[s->n++] = b;
    }
}

/* The depths about the layers; all where there is none. */
static void crop(struct shown *s)
{
    const struct oct_surfaces_run *run = s->run;
    const double um = run->um[2];
    double least = INFINITY, most = -INFINITY;
    for (unsigned i = 0; i < s->n; i++)
        for (unsigned k = 0; k < OCT_N_LAYERS; k++)
            for (uint32_t j = 0; j < run->n_lines; j++) {
                const float at = run->surfaces.position[k][(size_t)s->bscan[i] * run->n_lines + j];
                if (run->given->has_layer[k] && isfinite(at)) {
                    least = fmin(least, (double)at);
                    most = fmax(most, (double)at);
                }
            }
    s->first = 0;
    s->depth = run->depth;
    if (!(least <= most))
        return;
    least -= isnan(um) ? ABOVE_PX : ABOVE_UM / um;
    most += isnan(um) ? BELOW_PX : BELOW_UM / um;
    /* Where pixels are large, a layer that is placed beyond an end has no room about it. */
    s->first = (uint32_t)fmin(fmax(least, 0), run->depth - 1.0);
    s->depth = (uint32_t)fmin(fmax(most, s->first), run->depth - 1.0) + 1 - s->first;
}

static enum oct_err make_room(struct shown *s, struct oct_error *err)
{
    const size_t m = s->run->n_lines;
    s->pixels = malloc(s->n * s->depth * m * sizeof(float));
    s->line = malloc(m * sizeof(double));
    s->place = malloc(s->n * OCT_N_LAYERS * m * sizeof(double));
    if (!s->pixels || !s->line || !s->place)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a plot");
    for (size_t j = 0; j < m; j++)
        s->line[j] = (double)j;
    return OCT_OK;
}

/* Reads a B-scan, turned as it is shown: depth downward. */
static enum oct_err take(struct shown *s, struct oct_surfaces_run *run, unsigned i,
                         struct oct_error *err)
{
    const size_t m = run->n_lines;
    float *pixels = s->pixels + i * s->depth * m;
    struct oct_picture picture;
    const enum oct_err e = oct_surfaces_run_read(run, s->bscan[i], &picture, err);
    if (e)
        return e;
    for (size_t j = 0; j < m; j++)
        for (size_t d = 0; d < s->depth; d++) {
            const size_t at = j * run->depth + s->first + d;
            pixels[d * m + j] = oct_picture_is_valid(&picture, at) ? picture.pixels[at] : NAN;
        }
    oct_picture_finish(&picture);
    return OCT_OK;
}

static void name(struct shown *s, unsigned i)
{
    const double y_um = s->bscan[i] * s->run->um[0];
    const char *left = s->run->surfaces.fate[s->bscan[i]] == OCT_VOLUME_USED
                           ? ""
                           : oct_volume_fate_text(s->run->surfaces.fate[s->bscan[i]]);
    int n = snprintf(s->titles[i], sizeof(s->titles[i]), "B-scan %u", s->bscan[i]);
    if (!isnan(y_um))
        n +=
            snprintf(s->titles[i] + n, sizeof(s->titles[i]) - (size_t)n, ", y = %.0f " MICRO, y_um);
    if (*left)
        snprintf(s->titles[i] + n, sizeof(s->titles[i]) - (size_t)n, " (%s)", left);
}

static void lay_paths(struct shown *s, unsigned i)
{
    const struct oct_surfaces_run *run = s->run;
    const size_t m = run->n_lines;
    for (unsigned k = 0; k < OCT_N_LAYERS; k++) {
        double *place = s->place + (i * OCT_N_LAYERS + k) * m;
        for (size_t j = 0; j < m; j++)
            place[j] = run->given->has_layer[k]
                           ? (double)run->surfaces.position[k][s->bscan[i] * m + j] - s->first
                           : NAN;
        s->paths[i][k] = (struct oct_plot_path){s->line, place, m, layer_rgb[k]};
    }
}

static bool has_scale(const struct oct_surfaces_run *run)
{
    return run->um[1] > 0 && run->um[2] > 0;
}

static enum oct_err lay_tiles(struct shown *s, struct oct_error *err)
{
    static const double shares[2] = {0.02, 0.998};
    const size_t n = (size_t)s->depth * s->run->n_lines;
    const bool has_um = has_scale(s->run);
    double limits[2] = {NAN, NAN};
    const enum oct_err e = oct_plot_shares(s->pixels, s->n * n, shares, 2, limits, err);
    if (e)
        return e;
    if (!(limits[1] > limits[0])) {
        limits[0] = isnan(limits[0]) ? 0 : limits[0];
        limits[1] = limits[0] + 1;
    }
    for (unsigned i = 0; i < s->n; i++) {
        name(s, i);
        lay_paths(s, i);
        s->tiles[i] = (struct oct_plot_tile){.title = s->titles[i],
                                             .pixels = s->pixels + i * n,
                                             .height = s->depth,
                                             .width = s->run->n_lines,
                                             .um_dx = has_um ? s->run->um[1] : 0,
                                             .um_dy = has_um ? s->run->um[2] : 0,
                                             .lo = limits[0],
                                             .hi = limits[1],
                                             .paths = s->paths[i],
                                             .n_paths = OCT_N_LAYERS};
    }
    return OCT_OK;
}

static enum oct_err write_page(const struct shown *s, const char *path, bool force,
                               struct oct_error *err)
{
    const struct oct_surfaces_run *run = s->run;
    struct oct_plot_legend legends[OCT_N_LAYERS];
    unsigned n_legends = 0;
    char footer[128];
    for (unsigned k = 0; k < OCT_N_LAYERS; k++)
        if (run->given->has_layer[k])
            legends[n_legends++] = (struct oct_plot_legend){layer_labels[k], layer_rgb[k]};
    snprintf(footer, sizeof(footer), "Depth pixels %u to %u of 0 to %u%s", s->first,
             s->first + s->depth - 1, run->depth - 1,
             has_scale(run) ? ", depth and width at one scale" : ", a pixel a pixel");
    const struct oct_plot_sheet plot = {.title = "Layers in B-scans",
                                        .footer = footer,
                                        .tiles = s->tiles,
                                        .n_tiles = s->n,
                                        .fitted = true,
                                        .legends = legends,
                                        .n_legends = n_legends};
    return oct_plot_write_sheet(path, force, &plot, err);
}

enum oct_err oct_surfaces_draw_bscans(void *report, const char *path, bool force,
                                      struct oct_error *err)
{
    struct oct_surfaces_run *run = ((const struct oct_surfaces_report *)report)->run;
    struct shown s = {.run = run};
    choose(&s);
    crop(&s);
    enum oct_err e = make_room(&s, err);
    for (unsigned i = 0; i < s.n && !e; i++)
        e = take(&s, run, i, err);
    e = e ? e : lay_tiles(&s, err);
    e = e ? e : write_page(&s, path, force, err);
    free(s.pixels);
    free(s.line);
    free(s.place);
    return e;
}
