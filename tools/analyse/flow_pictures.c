/* The figures of octctl flow: angiograms beside the structure, B-scans and velocities in colour. */
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/analyse/flow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_Z 20.0 /* white in angiograms, at most */

static enum oct_err set_limits(const float *values, size_t n, double limits[2],
                               struct oct_error *err)
{
    static const double shares[2] = {0.02, 0.998};
    const enum oct_err e = oct_plot_shares(values, n, shares, 2, limits, err);
    if (!e && !(limits[1] > limits[0])) {
        limits[0] = isnan(limits[0]) ? 0 : limits[0];
        limits[1] = limits[0] + 1;
    }
    return e;
}

/* 0: not known. */
static double known(double um)
{
    return um > 0 ? um : 0;
}

enum oct_err oct_flow_draw_slabs(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_flow_job *f = job;
    const size_t n = (size_t)f->n_places * f->n_lines;
    struct oct_plot_tile tiles[2 * OCT_FLOW_MOST_SLABS];
    char titles[2 * OCT_FLOW_MOST_SLABS][96], footer[128];
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < f->n_slabs && !e; i++) {
        const struct oct_flow_job_slab *slab = &f->slab[i];
        double limits[2][2];
        e = set_limits(slab->z, n, limits[0], err);
        e = e ? e : set_limits(slab->structure, n, limits[1], err);
        limits[0][0] = 0;
        limits[0][1] = fmin(fmax(limits[0][1], 2 * f->settings.min_z), LARGEST_Z);
        snprintf(titles[2 * i], sizeof(titles[0]), "Flow, %s: z 0 to %.3g", slab->name,
                 limits[0][1]);
        snprintf(titles[2 * i + 1], sizeof(titles[0]), "Structure, %s", slab->name);
        for (unsigned k = 0; k < 2; k++)
            tiles[2 * i + k] = (struct oct_plot_tile){.title = titles[2 * i + k],
                                                      .pixels = k ? slab->structure : slab->z,
                                                      .height = f->n_places,
                                                      .width = f->n_lines,
                                                      .lo = limits[k][0],
                                                      .hi = limits[k][1],
                                                      .um_dx = known(f->spacing.line_um),
                                                      .um_dy = known(f->spacing.bscan_um)};
    }
    snprintf(footer, sizeof(footer), "Pale blue: not known, or moved (%llu of %u places)",
             (unsigned long long)f->n_moved, f->n_places);
    const struct oct_plot_sheet plot = {.title = "Angiograms",
                                        .footer = footer,
                                        .tiles = tiles,
                                        .n_tiles = 2 * f->n_slabs,
                                        .n_columns = 2,
                                        .fitted = true};
    return e ? e : oct_plot_write_sheet(path, force, &plot, err);
}

/* ---- B-scans, depth downward ---- */

static void turn(const struct oct_flow_job *f, const float *from, float *to)
{
    for (uint32_t j = 0; j < f->n_lines; j++)
        for (uint32_t d = 0; d < f->depth; d++)
            to[(size_t)d * f->n_lines + j] = from[(size_t)j * f->depth + d];
}

struct bscans {
    float *pixels[OCT_FLOW_N_SHOWN];
    uint8_t *tinted[OCT_FLOW_N_SHOWN];
    char titles[OCT_FLOW_N_SHOWN][64];
    struct oct_plot_tile tiles[OCT_FLOW_N_SHOWN];
};

static void lay_tile(const struct oct_flow_job *f, struct bscans *b, unsigned i)
{
    const struct oct_flow_row *row = &f->rows[f->shown[i].place];
    snprintf(b->titles[i], sizeof(b->titles[i]), "Place %u%s", f->shown[i].place,
             row->moved ? " (moved)" : "");
    b->tiles[i] = (struct oct_plot_tile){.title = b->titles[i],
                                         .pixels = b->pixels[i],
                                         .tinted = b->tinted[i],
                                         .height = f->depth,
                                         .width = f->n_lines,
                                         .um_dx = known(f->spacing.line_um),
                                         .um_dy = known(f->spacing.depth_um)};
}

static void finish_bscans(struct bscans *b)
{
    for (unsigned i = 0; i < OCT_FLOW_N_SHOWN; i++) {
        free(b->pixels[i]);
        free(b->tinted[i]);
    }
}

enum oct_err oct_flow_draw_bscans(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_flow_job *f = job;
    const size_t n = (size_t)f->n_lines * f->depth;
    const float min_z = (float)f->settings.min_z;
    struct bscans b = {.pixels = {NULL}};
    char footer[96];
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < f->n_shown && !e; i++) {
        double limits[2] = {0, 1};
        float *z = oct_alloc(n, sizeof(*z));
        b.pixels[i] = oct_alloc(n, sizeof(float));
        b.tinted[i] = oct_alloc(n, 1);
        turn(f, f->shown[i].db, b.pixels[i]);
        turn(f, f->shown[i].z, z);
        for (size_t k = 0; k < n; k++)
            b.tinted[i][k] = z[k] >= min_z;
        free(z);
        e = set_limits(b.pixels[i], n, limits, err);
        lay_tile(f, &b, i);
        b.tiles[i].lo = limits[0];
        b.tiles[i].hi = limits[1];
    }
    snprintf(footer, sizeof(footer), "In colour: flow, z of %.3g and more", f->settings.min_z);
    const struct oct_plot_sheet plot = {.title = "Flow in B-scans",
                                        .footer = footer,
                                        .tiles = b.tiles,
                                        .n_tiles = f->n_shown,
                                        .fitted = true};
    e = e ? e : oct_plot_write_sheet(path, force, &plot, err);
    finish_bscans(&b);
    return e;
}

enum oct_err oct_flow_draw_velocity(void *job, const char *path, bool force, struct oct_error *err)
{
    const struct oct_flow_job *f = job;
    const size_t n = (size_t)f->n_lines * f->depth;
    struct bscans b = {.pixels = {NULL}};
    char label[64];
    for (unsigned i = 0; i < f->n_shown; i++) {
        b.pixels[i] = oct_alloc(n, sizeof(float));
        turn(f, f->shown[i].velocity, b.pixels[i]);
        for (size_t k = 0; k < n; k++) /* red is towards the beam, as in all of Doppler */
            b.pixels[i][k] = -b.pixels[i][k];
        lay_tile(f, &b, i);
        b.tiles[i].diverging = true;
        b.tiles[i].lo = -f->ambiguous_mm_s;
        b.tiles[i].hi = f->ambiguous_mm_s;
    }
    snprintf(label, sizeof(label), "%s towards the beam", f->velocity_unit);
    const struct oct_plot_sheet plot = {.title = "Velocity along the beam",
                                        .footer = "The scale ends where speeds become ambiguous",
                                        .value_label = label,
                                        .tiles = b.tiles,
                                        .n_tiles = f->n_shown,
                                        .fitted = true};
    const enum oct_err e = oct_plot_write_sheet(path, force, &plot, err);
    finish_bscans(&b);
    return e;
}
