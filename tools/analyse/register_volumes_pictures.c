#include "tools/analyse/register_volumes_pictures.h"

#include "plot/plot.h"
#include "tools/commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N_CELLS 10.0 /* of a checkerboard's width */
#define MICRO "\302\265m"

static enum oct_err no_memory(struct oct_error *err)
{
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a plot");
}

static double spacing(const struct oct_volumes_run *run, unsigned axis)
{
    return run->grid.in_um ? run->grid.spacing[axis] : 0;
}

/* ---- slices ---- */

/* The depth that is brightest in the mean: where the tissue is. */
static uint32_t brightest_depth(const struct oct_volumes_report *r)
{
    const uint32_t *dims = r->run->grid.dims;
    const size_t rows = (size_t)dims[0] * dims[1], depth = dims[2];
    uint32_t brightest = dims[2] / 2;
    double most = -INFINITY;
    for (uint32_t d = 0; d < depth; d++) {
        double sum = 0, n = 0;
        for (size_t i = 0; i < rows; i++)
            if (isfinite(r->result->fixed[i * depth + d])) {
                sum += (double)r->result->fixed[i * depth + d];
                n++;
            }
        if (n > 0 && sum / n > most) {
            most = sum / n;
            brightest = d;
        }
    }
    return brightest;
}

/* [V][M]: the mean over the depth. */
static void take_en_face(const struct oct_volumes_report *r, const float *volume, float *to)
{
    const uint32_t *dims = r->run->grid.dims;
    for (size_t i = 0; i < (size_t)dims[0] * dims[1]; i++) {
        double sum = 0, n = 0;
        for (uint32_t d = 0; d < dims[2]; d++) {
            const float value = volume[i * dims[2] + d];
            if (isfinite(value)) {
                sum += (double)value;
                n++;
            }
        }
        to[i] = n > 0 ? (float)(sum / n) : NAN;
    }
}

/* [D][M] of the middle B-scan, depth downward. */
static void take_bscan(const struct oct_volumes_report *r, const float *volume, float *to)
{
    const uint32_t *dims = r->run->grid.dims;
    const float *from = volume + (size_t)(dims[0] / 2) * dims[1] * dims[2];
    for (uint32_t j = 0; j < dims[1]; j++)
        for (uint32_t d = 0; d < dims[2]; d++)
            to[(size_t)d * dims[1] + j] = from[(size_t)j * dims[2] + d];
}

/* The two views of a volume, and the tile that each makes. */
enum view { EN_FACE, BSCAN, N_VIEWS };

static struct oct_plot_tile tile_of(const struct oct_volumes_run *run, enum view view)
{
    const uint32_t *dims = run->grid.dims;
    return (struct oct_plot_tile){.height = view == EN_FACE ? dims[0] : dims[2],
                                  .width = dims[1],
                                  .um_dx = spacing(run, 1),
                                  .um_dy = spacing(run, view == EN_FACE ? 0 : 2)};
}

static size_t n_of(const struct oct_plot_tile *tile)
{
    return (size_t)tile->height * tile->width;
}

static void take_view(const struct oct_volumes_report *r, const float *volume, enum view view,
                      float *to)
{
    (view == EN_FACE ? take_en_face : take_bscan)(r, volume, to);
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
    struct oct_plot_tile tile;
    char title[64];
    float *pixels;
    uint8_t *is_moving;
};

/* Fields of `fixed` over what is there. */
static void mix(struct board *board, const float *fixed)
{
    const struct oct_plot_tile *tile = &board->tile;
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

static enum oct_err make_board(const struct oct_volumes_report *r, enum view view, bool is_after,
                               struct board *board, float *fixed, struct oct_error *err)
{
    const struct oct_volumes_result *result = r->result;
    const struct oct_volumes_pair *pair = &r->run->pairs[r->pair];
    const char *when = is_after ? "after" : "before";
    board->tile = tile_of(r->run, view);
    board->pixels = malloc(n_of(&board->tile) * sizeof(*board->pixels));
    board->is_moving = malloc(n_of(&board->tile));
    if (!board->pixels || !board->is_moving)
        return no_memory(err);
    take_view(r, result->fixed, view, fixed);
    take_view(r, is_after ? result->pair->warped : result->moving, view, board->pixels);
    mix(board, fixed);
    if (view == EN_FACE)
        snprintf(board->title, sizeof(board->title), "From above, %s: NCC %.3f", when,
                 oct_command_shown(is_after ? pair->after.ncc : pair->before.ncc, 3));
    else
        snprintf(board->title, sizeof(board->title), "B-scan %u, %s", r->run->grid.dims[0] / 2,
                 when);
    board->tile.title = board->title;
    board->tile.pixels = board->pixels;
    board->tile.tinted = board->is_moving;
    return set_limits(&board->tile, fixed, err);
}

static size_t largest_view(const struct oct_volumes_run *run)
{
    const uint32_t *dims = run->grid.dims;
    return (size_t)dims[1] * (dims[0] > dims[2] ? dims[0] : dims[2]);
}

enum oct_err oct_volumes_draw_checkerboard(void *report, const char *path, bool force,
                                           struct oct_error *err)
{
    const struct oct_volumes_report *r = report;
    float *fixed = malloc(largest_view(r->run) * sizeof(*fixed));
    struct board boards[2 * N_VIEWS] = {0};
    struct oct_plot_tile tiles[2 * N_VIEWS];
    enum oct_err e = OCT_OK;
    if (!fixed)
        return no_memory(err);
    for (unsigned i = 0; i < 2 * N_VIEWS && !e; i++) {
        e = make_board(r, (enum view)(i / 2), i % 2, &boards[i], fixed, err);
        tiles[i] = boards[i].tile;
    }
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
    free(fixed);
    return e;
}

/* ---- log J ---- */

#define N_BINS 80u
#define N_SAMPLED 1000000u /* for the limits of the colours */
#define LEAST_LIMIT 0.01

static float log_of(float j)
{
    return j > 0 ? logf(j) : NAN;
}

struct jacobian {
    struct oct_plot_tile tiles[4];
    float *pixels[4];
    double bins[N_BINS], limit;
    char title[64];
};

static enum oct_err find_limit(const struct oct_volumes_report *r, double *limit,
                               struct oct_error *err)
{
    static const double shares[2] = {0.002, 0.998};
    const float *j = r->result->pair->jacobian;
    const size_t n = oct_warp_n_voxels(&r->run->grid), step = n / N_SAMPLED + 1;
    float *sample = malloc((n / step + 1) * sizeof(*sample));
    double at[2];
    size_t n_sampled = 0;
    if (!sample)
        return no_memory(err);
    for (size_t i = 0; i < n; i += step)
        sample[n_sampled++] = log_of(j[i]);
    const enum oct_err e = oct_plot_shares(sample, n_sampled, shares, 2, at, err);
    free(sample);
    *limit = fmax(LEAST_LIMIT, fmax(fabs(at[0]), fabs(at[1])));
    *limit = isfinite(*limit) ? *limit : 1;
    return e;
}

/* What is beyond the limits counts at the ends, as it is coloured. */
static void count_bins(const struct oct_volumes_report *r, struct jacobian *page)
{
    const size_t n = oct_warp_n_voxels(&r->run->grid);
    for (size_t i = 0; i < n; i++) {
        const float value = log_of(r->result->pair->jacobian[i]);
        const double bin = floor(((double)value / page->limit + 1) / 2 * N_BINS);
        if (isfinite(value))
            page->bins[(unsigned)fmin(N_BINS - 1, fmax(0, bin))] += 100 / (double)n;
    }
}

/* [V][M] at one depth. */
static void take_depth(const struct oct_volumes_report *r, const float *volume, uint32_t depth,
                       float *to)
{
    const uint32_t *dims = r->run->grid.dims;
    for (size_t i = 0; i < (size_t)dims[0] * dims[1]; i++)
        to[i] = volume[i * dims[2] + depth];
}

static enum oct_err lay_jacobian(const struct oct_volumes_report *r, struct jacobian *page,
                                 struct oct_error *err)
{
    static const enum view views[4] = {EN_FACE, EN_FACE, BSCAN, BSCAN};
    const float *j = r->result->pair->jacobian;
    const uint32_t depth = brightest_depth(r);
    for (unsigned i = 0; i < 4; i++) {
        struct oct_plot_tile *tile = &page->tiles[i];
        *tile = tile_of(r->run, views[i]);
        page->pixels[i] = malloc(n_of(tile) * sizeof(float));
        if (!page->pixels[i])
            return no_memory(err);
        tile->diverging = i < 3;
        tile->lo = -page->limit;
        tile->hi = page->limit;
        tile->pixels = i == 1 ? NULL : page->pixels[i];
    }
    take_depth(r, j, depth, page->pixels[0]);
    take_bscan(r, j, page->pixels[2]);
    take_bscan(r, r->result->fixed, page->pixels[3]);
    for (unsigned i = 0; i < 3; i += 2)
        for (size_t k = 0; k < n_of(&page->tiles[i]); k++)
            page->pixels[i][k] = log_of(page->pixels[i][k]);
    snprintf(page->title, sizeof(page->title), "From above, at depth pixel %u", depth);
    page->tiles[0].title = page->title;
    page->tiles[1].title = "All voxels";
    page->tiles[1].bins = page->bins;
    page->tiles[1].n_bins = N_BINS;
    page->tiles[1].x_label = "log J";
    page->tiles[1].y_label = "share of voxels (%)";
    page->tiles[2].title = "The middle B-scan";
    page->tiles[3].title = "FIXED there";
    return set_limits(&page->tiles[3], page->pixels[3], err);
}

static void print_footer(const struct oct_volumes_pair *pair, char *to, size_t n)
{
    const struct oct_warp_volume_change *change = &pair->change;
    snprintf(to, n,
             "Red: takes more room in MOVING than in FIXED; blue: less. J %.3f to %.3f, log J "
             "%.4f in the mean, sd %.4f; J <= 0 (pale blue) in %.3g %%",
             change->least, change->most, oct_command_shown(change->mean_log, 4), change->sd_log,
             100 * change->folded);
}

enum oct_err oct_volumes_draw_jacobian(void *report, const char *path, bool force,
                                       struct oct_error *err)
{
    const struct oct_volumes_report *r = report;
    struct jacobian *page = calloc(1, sizeof(*page));
    char footer[192];
    if (!page)
        return no_memory(err);
    enum oct_err e = find_limit(r, &page->limit, err);
    e = e ? e : lay_jacobian(r, page, err);
    if (!e)
        count_bins(r, page);
    print_footer(&r->run->pairs[r->pair], footer, sizeof(footer));
    const struct oct_plot_sheet plot = {.title = "Change of volume, log J",
                                        .footer = footer,
                                        .value_label = "log J",
                                        .tiles = page->tiles,
                                        .n_tiles = 4,
                                        .n_columns = 2};
    e = e ? e : oct_plot_write_sheet(path, force, &plot, err);
    for (unsigned i = 0; i < 4; i++)
        free(page->pixels[i]);
    free(page);
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
    double *xs = a->corners[i][0], *ys = a->corners[i][1];
    const double tip_x = x + dx, tip_y = y + dy;
    const unsigned sides[2] = {2, 4};
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

/* u: [2][V][M] along the B-scans and the A-lines. */
static enum oct_err make_arrows(const struct oct_volumes_run *run, const float *u, struct arrows *a,
                                struct oct_error *err)
{
    const uint32_t v = run->grid.dims[0], m = run->grid.dims[1];
    const double high = run->grid.in_um ? run->grid.spacing[0] / run->grid.spacing[1] : 1;
    const double step = fmax(1, fmax(m, v * high) / N_ARROWS); /* widths of a pixel */
    const size_t n = (size_t)v * m;
    a->n_x = (unsigned)fmax(1, floor(m / step));
    a->n_y = (unsigned)fmin(v, fmax(1, floor(v * high / step)));
    a->step_x = (double)m / a->n_x;
    a->step_y = (double)v / a->n_y;
    const size_t n_arrows = (size_t)a->n_x * a->n_y;
    a->corners = malloc(n_arrows * sizeof(*a->corners));
    a->paths = malloc(n_arrows * sizeof(*a->paths));
    if (!a->corners || !a->paths)
        return no_memory(err);
    a->longest = 0;
    for (size_t i = 0; i < n; i++)
        a->longest = fmax(a->longest, hypot((double)u[n + i], (double)u[i] * high));
    a->gain = a->longest > 0 ? round_down(1.5 * step / a->longest) : 1;
    for (size_t i = 0; i < n_arrows; i++) {
        const double y = ((double)(i / a->n_x) + 0.5) * a->step_y;
        const double x = ((double)(i % a->n_x) + 0.5) * a->step_x;
        const size_t at = (size_t)y * m + (size_t)x;
        draw_arrow(a, (unsigned)i, floor(x), floor(y), -a->gain * (double)u[n + at],
                   -a->gain * (double)u[at], high);
    }
    return OCT_OK;
}

static enum oct_err draw_field(const struct oct_volumes_report *r, const float *en_face,
                               const double *deeper, const struct arrows *a, uint32_t depth,
                               const char *path, bool force, struct oct_error *err)
{
    const struct oct_volumes_run *run = r->run;
    const uint32_t v = run->grid.dims[0], m = run->grid.dims[1];
    const bool in_um = run->grid.in_um;
    char footer[160];
    snprintf(footer, sizeof(footer),
             "Arrows: from FIXED to MOVING, %.3g times as long; the longest "
             "%.2f %s. Colours: deeper in MOVING.",
             a->gain, a->longest * (in_um ? run->grid.spacing[1] : 1), in_um ? MICRO : "px");
    char title[64];
    snprintf(title, sizeof(title), "Displacement at depth pixel %u", depth);
    const struct oct_plot_map map = {.values = deeper,
                                     .n_y = v,
                                     .n_x = m,
                                     .step_y = 1,
                                     .step_x = 1,
                                     .label = in_um ? "along the depth (" MICRO ")"
                                                    : "along the depth (px)"};
    const struct oct_plot_picture plot = {.title = title,
                                          .footer = footer,
                                          .pixels = en_face,
                                          .height = v,
                                          .width = m,
                                          .um_dx = spacing(run, 1),
                                          .um_dy = spacing(run, 0),
                                          .least_px = 640,
                                          .paths = a->paths,
                                          .n_paths = (size_t)a->n_x * a->n_y,
                                          .map = &map};
    return oct_plot_write_picture(path, force, &plot, err);
}

enum oct_err oct_volumes_draw_displacement(void *report, const char *path, bool force,
                                           struct oct_error *err)
{
    const struct oct_volumes_report *r = report;
    const struct oct_warp_grid *grid = &r->run->grid;
    const size_t n = (size_t)grid->dims[0] * grid->dims[1], all = oct_warp_n_voxels(grid);
    const uint32_t depth = brightest_depth(r);
    float *u = malloc(4 * n * sizeof(*u));
    double *deeper = malloc(n * sizeof(*deeper));
    struct arrows arrows = {0};
    if (!u || !deeper) {
        free(u);
        free(deeper);
        return no_memory(err);
    }
    for (unsigned k = 0; k < 3; k++)
        take_depth(r, r->result->pair->displacement + k * all, depth, u + k * n);
    for (size_t i = 0; i < n; i++)
        deeper[i] = -(double)u[2 * n + i] * grid->spacing[2];
    take_en_face(r, r->result->fixed, u + 3 * n);
    enum oct_err e = make_arrows(r->run, u, &arrows, err);
    e = e ? e : draw_field(r, u + 3 * n, deeper, &arrows, depth, path, force, err);
    free(u);
    free(deeper);
    free(arrows.corners);
    free(arrows.paths);
    return e;
}
