/* The pictures of octctl register-volumes. */
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/analyse/register_volumes.h"
#include "tools/commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_CELLS 10.0 /* of a checkerboard's width */
#define MICRO "\302\265m"

/* ---- slices ---- */

/* The two views of a volume: from above, the mean over the depth, [V][M]; the middle B-scan,
 * [D][M], depth downward. */
enum view { EN_FACE, BSCAN, N_VIEWS };

static double spacing(const struct oct_volumes *v, unsigned axis)
{
    return v->grid.in_um ? v->grid.spacing[axis] : 0;
}

static struct oct_plot_tile tile_of(const struct oct_volumes *v, enum view view)
{
    const uint32_t *dims = v->grid.dims;
    return (struct oct_plot_tile){.height = view == EN_FACE ? dims[0] : dims[2],
                                  .width = dims[1],
                                  .um_dx = spacing(v, 1),
                                  .um_dy = spacing(v, view == EN_FACE ? 0 : 2)};
}

static size_t n_of(const struct oct_plot_tile *tile)
{
    return (size_t)tile->height * tile->width;
}

/* Of n values `step` apart what is finite; NaN: nothing is. */
static double mean_of(const float *values, size_t n, size_t step)
{
    double sum = 0, n_finite = 0;
    for (size_t i = 0; i < n * step; i += step)
        if (isfinite(values[i])) {
            sum += (double)values[i];
            n_finite++;
        }
    return n_finite > 0 ? sum / n_finite : NAN;
}

/* The depth that is brightest in the mean: where the tissue is. */
static uint32_t brightest_depth(const struct oct_volumes *v)
{
    const uint32_t *dims = v->grid.dims;
    uint32_t brightest = dims[2] / 2;
    double most = -INFINITY;
    for (uint32_t d = 0; d < dims[2]; d++) {
        const double mean = mean_of(v->hand.fixed + d, (size_t)dims[0] * dims[1], dims[2]);
        if (mean > most) {
            most = mean;
            brightest = d;
        }
    }
    return brightest;
}

static float *take_view(const struct oct_volumes *v, const float *volume, enum view view)
{
    const uint32_t *dims = v->grid.dims;
    const float *middle = volume + (size_t)(dims[0] / 2) * dims[1] * dims[2];
    const struct oct_plot_tile tile = tile_of(v, view);
    float *to = oct_alloc(n_of(&tile), sizeof(*to));
    for (size_t i = 0; i < n_of(&tile); i++)
        to[i] = view == EN_FACE ? (float)mean_of(volume + i * dims[2], dims[2], 1)
                                : middle[i % dims[1] * dims[2] + i / dims[1]];
    return to;
}

/* [V][M] at one depth. */
static float *take_depth(const struct oct_volumes *v, const float *volume, uint32_t depth)
{
    const uint32_t *dims = v->grid.dims;
    const size_t n = (size_t)dims[0] * dims[1];
    float *to = oct_alloc(n, sizeof(*to));
    for (size_t i = 0; i < n; i++)
        to[i] = volume[i * dims[2] + depth];
    return to;
}

/* Black and white of what is shown. */
static enum oct_err set_limits(struct oct_plot_tile *tile, const float *values,
                               struct oct_error *err)
{
    static const double shares[2] = {0.02, 0.998};
    double limits[2];
    const enum oct_err e = oct_plot_shares(values, n_of(tile), shares, 2, limits, err);
    if (e)
        return e;
    tile->lo = isnan(limits[0]) ? 0 : limits[0];
    tile->hi = limits[1] > tile->lo ? limits[1] : tile->lo + 1;
    return OCT_OK;
}

/* ---- checkerboard ---- */

struct board {
    char title[64];
    float *pixels;
    uint8_t *is_moving;
};

/* Fields of `fixed` over what is there. */
static void mix(struct board *board, const struct oct_plot_tile *tile, const float *fixed)
{
    const double high = tile->um_dx > 0 ? tile->um_dy / tile->um_dx : 1;
    const double cell_x = fmax(1, ceil(tile->width / N_CELLS));
    const double cell_y = fmax(1, round(cell_x / high));
    for (uint32_t y = 0; y < tile->height; y++)
        for (uint32_t x = 0; x < tile->width; x++) {
            const size_t at = (size_t)y * tile->width + x;
            board->is_moving[at] = ((unsigned)(y / cell_y) + (unsigned)(x / cell_x)) % 2 == 0;
            if (!board->is_moving[at])
                board->pixels[at] = fixed[at];
        }
}

static enum oct_err make_board(const struct oct_volumes *v, enum view view, bool is_after,
                               struct board *board, struct oct_plot_tile *tile,
                               struct oct_error *err)
{
    const struct oct_volumes_hand *h = &v->hand;
    const struct oct_volumes_pair *pair = &v->pairs[h->i];
    const char *when = is_after ? "after" : "before";
    float *fixed = take_view(v, h->fixed, view);
    *tile = tile_of(v, view);
    board->pixels = take_view(v, is_after ? h->made->warped : h->moving, view);
    board->is_moving = oct_alloc(n_of(tile), 1);
    mix(board, tile, fixed);
    if (view == EN_FACE)
        snprintf(board->title, sizeof(board->title), "From above, %s: NCC %.3f", when,
                 oct_command_shown(is_after ? pair->after.ncc : pair->before.ncc, 3));
    else
        snprintf(board->title, sizeof(board->title), "B-scan %u, %s", v->grid.dims[0] / 2, when);
    tile->title = board->title;
    tile->pixels = board->pixels;
    tile->tinted = board->is_moving;
    const enum oct_err e = set_limits(tile, fixed, err);
    free(fixed);
    return e;
}

enum oct_err oct_volumes_draw_checkerboard(void *volumes, const char *path, bool force,
                                           struct oct_error *err)
{
    const struct oct_volumes *v = volumes;
    struct board boards[2 * N_VIEWS] = {0};
    struct oct_plot_tile tiles[2 * N_VIEWS];
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < 2 * N_VIEWS && !e; i++)
        e = make_board(v, (enum view)(i / 2), i % 2, &boards[i], &tiles[i], err);
    const struct oct_plot_sheet plot = {
        .title = "FIXED (grey) and MOVING (tinted) in turn, as they came and as registered",
        .footer = "What goes on from field to field fits. NCC is of the whole volumes.",
        .tiles = tiles,
        .n_tiles = 2 * N_VIEWS,
        .n_columns = 2};
    e = e ? e : oct_plot_write_sheet(path, force, &plot, err);
    for (unsigned i = 0; i < 2 * N_VIEWS; i++) {
        free(boards[i].pixels);
        free(boards[i].is_moving);
    }
    return e;
}

/* ---- log J ---- */

#define N_BINS 80u
#define N_SAMPLED 1000000u /* for the limits of the colours */
#define LEAST_LIMIT 0.01

static const char jacobian_footer[] =
    "Red: takes more room in MOVING than in FIXED; blue: less. J {jacobian.least:.3f} to "
    "{jacobian.most:.3f}, log J {jacobian.mean_log:.4f} in the mean, sd {jacobian.sd_log:.4f}; J "
    "<= 0 (pale blue) in {100*jacobian.folded:.3g} %";

static float log_of(float j)
{
    return j > 0 ? logf(j) : NAN;
}

static enum oct_err find_limit(const struct oct_volumes *v, double *limit, struct oct_error *err)
{
    static const double shares[2] = {0.002, 0.998};
    const float *j = v->hand.made->jacobian;
    const size_t n = oct_warp_n_voxels(&v->grid), step = n / N_SAMPLED + 1;
    float *sample = oct_alloc(n / step + 1, sizeof(*sample));
    double at[2];
    size_t n_sampled = 0;
    for (size_t i = 0; i < n; i += step)
        sample[n_sampled++] = log_of(j[i]);
    const enum oct_err e = oct_plot_shares(sample, n_sampled, shares, 2, at, err);
    free(sample);
    *limit = fmax(LEAST_LIMIT, fmax(fabs(at[0]), fabs(at[1])));
    *limit = isfinite(*limit) ? *limit : 1;
    return e;
}

/* What is beyond the limits counts at the ends, as it is coloured. */
static void count_bins(const struct oct_volumes *v, double limit, double bins[N_BINS])
{
    const size_t n = oct_warp_n_voxels(&v->grid);
    for (size_t i = 0; i < n; i++) {
        const float value = log_of(v->hand.made->jacobian[i]);
        const double bin = floor(((double)value / limit + 1) / 2 * N_BINS);
        if (isfinite(value))
            bins[(unsigned)fmin(N_BINS - 1, fmax(0, bin))] += 100 / (double)n;
    }
}

/* log J from above, its histogram, log J in a B-scan, and FIXED there. pixels: of the tiles, owned
 * by the caller. */
static enum oct_err lay_jacobian(const struct oct_volumes *v, uint32_t depth, double limit,
                                 const double bins[N_BINS], struct oct_plot_tile tiles[4],
                                 float *pixels[4], struct oct_error *err)
{
    const float *j = v->hand.made->jacobian;
    pixels[0] = take_depth(v, j, depth);
    pixels[2] = take_view(v, j, BSCAN);
    pixels[3] = take_view(v, v->hand.fixed, BSCAN);
    for (unsigned i = 0; i < 4; i++) {
        tiles[i] = tile_of(v, i < 2 ? EN_FACE : BSCAN);
        tiles[i].diverging = i < 3;
        tiles[i].lo = -limit;
        tiles[i].hi = limit;
        tiles[i].pixels = pixels[i];
        for (size_t k = 0; i < 3 && pixels[i] && k < n_of(&tiles[i]); k++)
            pixels[i][k] = log_of(pixels[i][k]);
    }
    tiles[1].title = "All voxels";
    tiles[1].bins = bins;
    tiles[1].n_bins = N_BINS;
    tiles[1].x_label = "log J";
    tiles[1].y_label = "share of voxels (%)";
    tiles[2].title = "The middle B-scan";
    tiles[3].title = "FIXED there";
    return set_limits(&tiles[3], pixels[3], err);
}

enum oct_err oct_volumes_draw_jacobian(void *volumes, const char *path, bool force,
                                       struct oct_error *err)
{
    const struct oct_volumes *v = volumes;
    const uint32_t depth = brightest_depth(v);
    struct oct_plot_tile tiles[4];
    float *pixels[4] = {NULL};
    double limit, bins[N_BINS] = {0};
    char footer[192] = "", *title = oct_alloc_text("From above, at depth pixel %u", depth);
    FILE *text = oct_alloc_check(fmemopen(footer, sizeof(footer), "w"));
    oct_result_print(text, jacobian_footer, &oct_volumes_pair_fields, &v->pairs[v->hand.i]);
    fclose(text);
    enum oct_err e = find_limit(v, &limit, err);
    e = e ? e : lay_jacobian(v, depth, limit, bins, tiles, pixels, err);
    tiles[0].title = title;
    if (!e)
        count_bins(v, limit, bins);
    const struct oct_plot_sheet plot = {.title = "Change of volume, log J",
                                        .footer = footer,
                                        .value_label = "log J",
                                        .tiles = tiles,
                                        .n_tiles = 4,
                                        .n_columns = 2};
    e = e ? e : oct_plot_write_sheet(path, force, &plot, err);
    for (unsigned i = 0; i < 4; i++)
        free(pixels[i]);
    free(title);
    return e;
}

/* ---- displacement ---- */

#define N_ARROWS 22u /* along the longer side */
#define N_CORNERS 5u
#define HEAD 0.3 /* of an arrow's length */
#define ARROW_RGB 0xb03000

struct arrows {
    unsigned n_x, n_y;
    double step_x, step_y;           /* px of the picture */
    double gain, longest;            /* how much longer they are drawn; of the longest, px */
    double (*corners)[2][N_CORNERS]; /* x and y of each */
    struct oct_plot_path *paths;
};

/* From (x, y) by (dx, dy), with a head; `high`: of a pixel, in widths. */
static void draw_arrow(struct arrows *a, unsigned i, double x, double y, double dx, double dy,
                       double high)
{
    static const double turn[2] = {2.6, -2.6}; /* radians, of the head's sides */
    static const unsigned sides[2] = {2, 4};
    double *xs = a->corners[i][0], *ys = a->corners[i][1];
    const double tip_x = x + dx, tip_y = y + dy;
    xs[0] = x, ys[0] = y;
    xs[1] = xs[3] = tip_x, ys[1] = ys[3] = tip_y;
    for (unsigned k = 0; k < 2; k++) {
        const double c = HEAD * cos(turn[k]), s = HEAD * sin(turn[k]);
        xs[sides[k]] = tip_x + c * dx - s * dy * high;
        ys[sides[k]] = tip_y + (s * dx + c * dy * high) / high;
    }
    a->paths[i] = (struct oct_plot_path){xs, ys, N_CORNERS, ARROW_RGB};
}

/* To 1, 2 or 5 times a power of ten. */
static double round_down(double value)
{
    const double power = pow(10, floor(log10(value))), digit = value / power;
    return power * (digit >= 5 ? 5 : digit >= 2 ? 2 : 1);
}

/* along_b, along_j: [V][M] of the displacement. */
static void make_arrows(const struct oct_volumes *v, const float *along_b, const float *along_j,
                        struct arrows *a)
{
    const uint32_t n_b = v->grid.dims[0], n_j = v->grid.dims[1];
    const double high = v->grid.in_um ? v->grid.spacing[0] / v->grid.spacing[1] : 1;
    const double step = fmax(1, fmax(n_j, n_b * high) / N_ARROWS); /* widths of a pixel */
    a->n_x = (unsigned)fmax(1, floor(n_j / step));
    a->n_y = (unsigned)fmin(n_b, fmax(1, floor(n_b * high / step)));
    a->step_x = (double)n_j / a->n_x;
    a->step_y = (double)n_b / a->n_y;
    const size_t n_arrows = (size_t)a->n_x * a->n_y;
    a->corners = oct_alloc(n_arrows, sizeof(*a->corners));
    a->paths = oct_alloc(n_arrows, sizeof(*a->paths));
    a->longest = 0;
    for (size_t i = 0; i < (size_t)n_b * n_j; i++)
        a->longest = fmax(a->longest, hypot((double)along_j[i], (double)along_b[i] * high));
    a->gain = a->longest > 0 ? round_down(1.5 * step / a->longest) : 1;
    for (size_t i = 0; i < n_arrows; i++) {
        const double y = ((double)(i / a->n_x) + 0.5) * a->step_y;
        const double x = ((double)(i % a->n_x) + 0.5) * a->step_x;
        const size_t at = (size_t)y * n_j + (size_t)x;
        draw_arrow(a, (unsigned)i, floor(x), floor(y), -a->gain * (double)along_j[at],
                   -a->gain * (double)along_b[at], high);
    }
}

static enum oct_err draw_field(const struct oct_volumes *v, const float *en_face,
                               const double *deeper, const struct arrows *a, uint32_t depth,
                               const char *path, bool force, struct oct_error *err)
{
    const bool in_um = v->grid.in_um;
    char footer[160], title[64];
    snprintf(footer, sizeof(footer),
             "Arrows: from FIXED to MOVING, %.3g times as long; the longest "
             "%.2f %s. Colours: deeper in MOVING.",
             a->gain, a->longest * (in_um ? v->grid.spacing[1] : 1), in_um ? MICRO : "px");
    snprintf(title, sizeof(title), "Displacement at depth pixel %u", depth);
    const struct oct_plot_map map = {.values = deeper,
                                     .n_y = v->grid.dims[0],
                                     .n_x = v->grid.dims[1],
                                     .step_y = 1,
                                     .step_x = 1,
                                     .label = in_um ? "along the depth (" MICRO ")"
                                                    : "along the depth (px)"};
    const struct oct_plot_picture plot = {.title = title,
                                          .footer = footer,
                                          .pixels = en_face,
                                          .height = v->grid.dims[0],
                                          .width = v->grid.dims[1],
                                          .um_dx = spacing(v, 1),
                                          .um_dy = spacing(v, 0),
                                          .least_px = 640,
                                          .paths = a->paths,
                                          .n_paths = (size_t)a->n_x * a->n_y,
                                          .map = &map};
    return oct_plot_write_picture(path, force, &plot, err);
}

enum oct_err oct_volumes_draw_displacement(void *volumes, const char *path, bool force,
                                           struct oct_error *err)
{
    const struct oct_volumes *v = volumes;
    const size_t n = (size_t)v->grid.dims[0] * v->grid.dims[1], all = oct_warp_n_voxels(&v->grid);
    const uint32_t depth = brightest_depth(v);
    float *u[3], *en_face = take_view(v, v->hand.fixed, EN_FACE);
    double *deeper = oct_alloc(n, sizeof(*deeper));
    struct arrows arrows;
    for (unsigned k = 0; k < 3; k++)
        u[k] = take_depth(v, v->hand.made->displacement + k * all, depth);
    for (size_t i = 0; i < n; i++)
        deeper[i] = -(double)u[2][i] * v->grid.spacing[2];
    make_arrows(v, u[0], u[1], &arrows);
    const enum oct_err e = draw_field(v, en_face, deeper, &arrows, depth, path, force, err);
    for (unsigned k = 0; k < 3; k++)
        free(u[k]);
    free(en_face);
    free(deeper);
    free(arrows.corners);
    free(arrows.paths);
    return e;
}
