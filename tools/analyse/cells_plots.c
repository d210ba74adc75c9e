/* Plots of octctl cells: brightness along a line over time, and the speeds. */
#include "numeric/order.h"
#include "plot/plot.h"
#include "tools/analyse/cells_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ABOUT_BINS 32.0
#define MOST_BINS 4096.0

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* ---- kymograph ---- */

/* How the line and the frames become coordinates of the plot. */
struct scale {
    const struct oct_cells_run *run;
    double ux, uy, length;   /* the line's direction, and its length in px */
    double per_px;           /* um, or 1 */
    double first, per_frame; /* s, or frames */
    bool has_um, has_time;
};

static struct scale scale_of(const struct oct_cells_run *run)
{
    const struct oct_cells_line *l = &run->line;
    const double dx = l->x1 - l->x0, dy = l->y1 - l->y0;
    struct scale s = {.run = run,
                      .length = hypot(dx, dy),
                      .per_px = 1,
                      .per_frame = 1,
                      .has_um = oct_cells_run_has_um(run),
                      .has_time = run->n > 1 && run->last_s > run->first_s};
    s.ux = dx / s.length;
    s.uy = dy / s.length;
    if (s.has_um)
        s.per_px = hypot(s.ux * run->um[1], s.uy * run->um[0]);
    if (s.has_time) {
        s.first = run->first_s;
        s.per_frame = (run->last_s - run->first_s) / (double)(run->n - 1);
    }
    return s;
}

/* Where along the line; false: the cell is a radius away from it, or beyond its ends. */
static bool place(const struct scale *s, const struct oct_cells_row *r, double *x, double *y)
{
    const double dx = r->x_px - s->run->line.x0, dy = r->y_px - s->run->line.y0;
    const double along = dx * s->ux + dy * s->uy, aside = dy * s->ux - dx * s->uy;
    *x = along * s->per_px;
    *y = s->first + (double)r->frame * s->per_frame;
    return along >= 0 && along <= s->length && fabs(aside) <= r->radius_px;
}

struct paths {
    struct oct_plot_path *paths; /* [n] */
    size_t n;
    double *x, *y; /* [rows] */
};

/* Each stretch of a track that is near the line. */
static enum oct_err find_paths(const struct scale *s, struct paths *p, struct oct_error *err)
{
    const struct oct_cells_rows *rows = &s->run->rows;
    size_t *order = oct_cells_rows_by_track(rows), n = 0;
    const size_t room = rows->n + 1;
    p->paths = malloc(room * sizeof(*p->paths));
    p->x = malloc(room * sizeof(*p->x));
    p->y = malloc(room * sizeof(*p->y));
    if (!order || !p->paths || !p->x || !p->y) {
        free(order);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    }
    uint64_t open = 0; /* the track of the last path, while it goes on */
    for (size_t i = 0; i < rows->n; i++) {
        const struct oct_cells_row *r = &rows->rows[order[i]];
        if (r->track == 0 || !place(s, r, &p->x[n], &p->y[n])) {
            open = 0;
            continue;
        }
        if (open != r->track)
            p->paths[p->n++] = (struct oct_plot_path){
                .x = &p->x[n], .y = &p->y[n], .rgb = oct_cells_track_colour(r->track)};
        p->paths[p->n - 1].n++;
        open = r->track;
        n++;
    }
    free(order);
    return OCT_OK;
}

/* Between the darkest and the brightest 0.5 %. */
static enum oct_err find_limits(const struct oct_cells_kymograph *k, double *lo, double *hi,
                                struct oct_error *err)
{
    const size_t n = (size_t)k->n_t * k->n_x;
    size_t n_kept = 0;
    float *kept = malloc((n + 1) * sizeof(*kept));
    if (!kept)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++)
        if (isfinite(k->values[i]))
            kept[n_kept++] = k->values[i];
    oct_floats_sort(kept, n_kept);
    *lo = n_kept > 0 ? (double)kept[n_kept / 200] : 0;
    *hi = n_kept > 0 ? (double)kept[n_kept - 1 - n_kept / 200] : 1;
    if (!(*hi > *lo))
        *hi = *lo + 1;
    free(kept);
    return OCT_OK;
}

enum oct_err oct_cells_report_kymograph(void *context, const char *path, bool force,
                                        struct oct_error *err)
{
    const struct oct_cells_report *report = context;
    const struct oct_cells_run *run = report->run;
    const struct oct_cells_kymograph *k = &run->kymograph;
    const struct scale s = scale_of(run);
    const double half_px = s.length / (k->n_x - 1) / 2;
    struct paths paths = {0};
    struct oct_plot_field plot = {
        .title = name_of(report->inputs[0]),
        .x_label = s.has_um ? "along the line (\302\265m)" : "along the line (px)",
        .y_label = s.has_time ? "time (s)" : "frame",
        .values = k->values,
        .n_y = k->n_t,
        .n_x = k->n_x,
        .x_least = -half_px * s.per_px,
        .x_most = (s.length + half_px) * s.per_px,
        .y_least = s.first - s.per_frame / 2,
        .y_most = s.first + ((double)k->n_t * (double)k->frames_a_row - 0.5) * s.per_frame};
    enum oct_err e = find_paths(&s, &paths, err);
    if (!e)
        e = find_limits(k, &plot.lo, &plot.hi, err);
    plot.paths = paths.paths;
    plot.n_paths = paths.n;
    if (!e)
        e = oct_plot_write_field(path, force, &plot, err);
    free(paths.paths);
    free(paths.x);
    free(paths.y);
    return e;
}

/* ---- histogram ---- */

struct bins {
    double first, width; /* of the first bin: its left side */
    size_t n;
    double *x, *y; /* [n]: middles, counts */
};

static double speed_of(const struct oct_cells_row *r, bool in_um)
{
    const double speed = in_um ? r->speed_um_s : r->speed_px;
    return r->how == OCT_CELLS_COASTED ? NAN : speed;
}

/* 1, 2 or 5 times a power of ten. */
static double round_width(double raw)
{
    const double power = pow(10, floor(log10(raw))), digit = raw / power;
    return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

static enum oct_err make_bins(const struct oct_cells_rows *rows, bool in_um, struct bins *b,
                              struct oct_error *err)
{
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < rows->n; i++) {
        const double speed = speed_of(&rows->rows[i], in_um);
        least = fmin(least, speed);
        most = fmax(most, speed);
    }
    if (!(most >= least))
        return OCT_OK;
    const double range = most - least > 1e-9 * most ? most - least : fmax(most, 1e-9);
    b->width = round_width(range / ABOUT_BINS);
    b->first = floor(least / b->width) * b->width;
    b->n = (size_t)fmin(MOST_BINS, floor((most - b->first) / b->width) + 1);
    b->n = b->n < 2 ? 2 : b->n; /* the second says how wide the first is */
    b->x = calloc(b->n, sizeof(*b->x));
    b->y = calloc(b->n, sizeof(*b->y));
    if (!b->x || !b->y)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < b->n; i++)
        b->x[i] = b->first + ((double)i + 0.5) * b->width;
    for (size_t i = 0; i < rows->n; i++) {
        const double speed = speed_of(&rows->rows[i], in_um);
        const size_t at = isnan(speed) ? b->n : (size_t)((speed - b->first) / b->width);
        if (!isnan(speed))
            b->y[at < b->n ? at : b->n - 1]++;
    }
    return OCT_OK;
}

enum oct_err oct_cells_report_histogram(void *context, const char *path, bool force,
                                        struct oct_error *err)
{
    const struct oct_cells_report *report = context;
    const bool in_um = report->summary->um_s.n > 0;
    const struct oct_cells_speeds *speeds =
        in_um ? &report->summary->um_s : &report->summary->px_frame;
    struct bins bins = {0};
    char text[64];
    enum oct_err e = make_bins(&report->run->rows, in_um, &bins, err);
    double highest = 0;
    for (size_t i = 0; i < bins.n && !e; i++)
        highest = fmax(highest, bins.y[i]);
    snprintf(text, sizeof(text), "median %.4g %s", speeds->p50,
             in_um ? "\302\265m/s" : "px a frame");
    const struct oct_plot_series series = {
        .x = bins.x, .y = bins.y, .n = bins.n, .style = OCT_PLOT_BARS};
    const struct oct_plot_mark mark = {speeds->p50, 1.04 * highest, text};
    const struct oct_plot_lines plot = {.title = name_of(report->inputs[0]),
                                        .x_label =
                                            in_um ? "speed (\302\265m/s)" : "speed (px a frame)",
                                        .y_label = "cells, each frame counted",
                                        .series = &series,
                                        .n_series = 1,
                                        .marks = &mark,
                                        .n_marks = speeds->n > 0,
                                        .has_y = true,
                                        .y_most = fmax(1, 1.12 * highest)};
    if (!e)
        e = oct_plot_write_lines(path, force, &plot, err);
    free(bins.x);
    free(bins.y);
    return e;
}
