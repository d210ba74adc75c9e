/* The cells that octd follows: a circle about each, a tail of where it was, and how many there
 * are. */
#include "pipeline/base/clock.h"
#include "viewer/draw/pen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_TRACK 16777215.0 /* whole numbers of a float */
#define MOST_SIDE (1 << 20)
#define COASTED 2
#define MORE_NS (2 * OCT_NS_PER_S)

enum column { TRACK, X, Y, RADIUS, HOW, N_COLUMNS };
static const char *const names[N_COLUMNS] = {"track", "x_px", "y_px", "radius_px", "how"};

static enum oct_err check(const struct oct_image_header *header, struct oct_error *err)
{
    if (!oct_view_image_is_table(header, OCT_VIEW_CELLS_MOST))
        return oct_fail(err, OCT_E_FORMAT,
                        "%.40s: cells are a table of labelled f32 numbers, of %u rows at most",
                        header->dataset, OCT_VIEW_CELLS_MOST);
    return OCT_OK;
}

/* ---- one table ---- */

/* False: the row is no cell of such a picture. A number that is none compares false. */
static bool read_row(const struct oct_view_cells *cells, const struct oct_image_header *h,
                     const float *row, struct oct_view_track *track)
{
    double v[N_COLUMNS];
    for (int i = 0; i < N_COLUMNS; i++)
        v[i] = oct_image_header_value(h, row, names[i]);
    if (!(v[TRACK] >= 1 && v[TRACK] <= MOST_TRACK) || !(v[X] >= 0 && v[X] < cells->width) ||
        !(v[Y] >= 0 && v[Y] < cells->height) ||
        !(v[RADIUS] > 0 && v[RADIUS] <= fmax(cells->width, cells->height)))
        return false;
    *track = (struct oct_view_track){.track = (uint32_t)v[TRACK],
                                     .n = 1,
                                     .x = {(float)v[X]},
                                     .y = {(float)v[Y]},
                                     .radius = (float)v[RADIUS],
                                     .is_coasting = v[HOW] >= COASTED};
    return true;
}

static const struct oct_view_track *find(const struct oct_view_cells *cells, uint32_t track)
{
    for (unsigned i = 0; i < cells->n; i++)
        if (cells->tracks[i].track == track)
            return &cells->tracks[i];
    return NULL;
}

/* Puts the positions of before in front of the one that is new. */
static void go_on(struct oct_view_track *track, const struct oct_view_track *before)
{
    const unsigned most = OCT_VIEW_CELLS_TAIL - 1, n = before->n < most ? before->n : most;
    const float x = track->x[0], y = track->y[0];
    memcpy(track->x, before->x + before->n - n, n * sizeof(*track->x));
    memcpy(track->y, before->y + before->n - n, n * sizeof(*track->y));
    track->x[n] = x;
    track->y[n] = y;
    track->n = n + 1;
}

static uint32_t side_of(const struct oct_image_header *h, const char *name)
{
    const double side = oct_image_header_number(h, name, 0);
    return side >= 1 && side <= MOST_SIDE ? (uint32_t)side : 0;
}

void oct_view_cells_set(struct oct_view_cells *cells, const struct oct_view_image *table)
{
    const struct oct_image_header *h = &table->header;
    const float *row = table->values;
    struct oct_view_cells next = {.n = 0};
    if (check(h, NULL))
        return;
    next.count = oct_image_header_number(h, "count", 0);
    next.median_um_s = oct_image_header_number(h, "median_speed_um_s", 0);
    next.width = side_of(h, "width");
    next.height = side_of(h, "height");
    next.is_bscan = oct_image_header_number(h, "is_bscan", 0) > 0;
    next.of = oct_view_of_image(h);
    next.volume = h->volume;
    next.arrival_ns = table->arrival_ns;
    const bool anew = strcmp(cells->of.acquisition_id, next.of.acquisition_id) != 0 ||
                      cells->width != next.width || cells->height != next.height ||
                      cells->is_bscan != next.is_bscan || next.of.frame_num < cells->of.frame_num;
    if (!anew && cells->arrival_ns && next.arrival_ns > cells->arrival_ns)
        next.interval_ns = next.arrival_ns - cells->arrival_ns;
    for (uint32_t i = 0; i < h->dims[0]; i++, row += h->dims[1]) {
        struct oct_view_track *track = &next.tracks[next.n];
        if (!read_row(&next, h, row, track) || find(&next, track->track))
            continue;
        const struct oct_view_track *before = anew ? NULL : find(cells, track->track);
        if (before)
            go_on(track, before);
        next.n++;
    }
    *cells = next;
}

bool oct_view_cells_are_new(const struct oct_view_cells *cells, uint64_t now_ns)
{
    const uint64_t most_ns = 2 * cells->interval_ns + MORE_NS;
    return cells->arrival_ns > 0 &&
           (now_ns < cells->arrival_ns || now_ns - cells->arrival_ns < most_ns);
}

/* ---- of the shown picture ---- */

static void take(struct oct_view_model *model, struct oct_view_image *image)
{
    oct_view_cells_set(&model->cells, image);
}

bool oct_view_model_has_cells(const struct oct_view_model *model)
{
    const struct oct_view_cells *c = &model->cells;
    if (!model->settings.cells || !model->has_picture || c->width == 0)
        return false;
    if (c->is_bscan)
        return oct_view_overlay_is_drawn(model, &c->of);
    return strcmp(c->of.acquisition_id, model->shown.header.acquisition_id) == 0 &&
           oct_view_cells_are_new(c, model->now_ns);
}

void oct_view_cells_text(const struct oct_view_model *model, struct oct_view_phrase *phrase)
{
    const struct oct_view_cells *c = &model->cells;
    oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "%s", "");
    if (!oct_view_model_has_cells(model))
        return;
    const double count = c->count >= c->n && c->count < 1e6 ? c->count : c->n;
    const double um_s = c->median_um_s;
    if (um_s > 0 && um_s < 1e9) /* three digits at least */
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "cells %.0f, median %.*f um/s", count,
                            (int)fmin(fmax(2 - floor(log10(um_s)), 0), 6), um_s);
    else
        oct_view_phrase_set(phrase, OCT_TONE_PLAIN, "cells %.0f", count);
}

/* ---- drawing ---- */

#define N_SIDES 32
#define DIM 110 /* of 255: a cell that was not seen in the newest picture */

/* Where a picture's pixels lie in the window: their centres are whole numbers. */
struct frame {
    double x, y, dx, dy; /* of pixel (0, 0)'s corner, and of a pixel */
    double rx, ry;       /* of a radius of 1 px */
};

/* um_x, um_y of a pixel: where both are known, radii are in pixels of the finer axis. */
static struct frame frame_of(const struct oct_view_cells *cells, struct oct_view_rectf place,
                             double um_x, double um_y)
{
    struct frame f = {place.x, place.y, place.w / cells->width, place.h / cells->height, 0, 0};
    const bool is_known = um_x > 0 && um_y > 0 && isfinite(um_x) && isfinite(um_y);
    const double fine = is_known ? fmin(um_x, um_y) : 1;
    f.rx = is_known ? f.dx * fine / um_x : f.dx;
    f.ry = is_known ? f.dy * fine / um_y : f.dy;
    return f;
}

static void draw_track(struct oct_draw *draw, const struct frame *f, const struct oct_view_track *t)
{
    const double pi = 3.14159265358979323846;
    const unsigned last = t->n - 1;
    const double cx = f->x + ((double)t->x[last] + 0.5) * f->dx;
    const double cy = f->y + ((double)t->y[last] + 0.5) * f->dy;
    const double rx = fmax((double)t->radius * f->rx, 2), ry = fmax((double)t->radius * f->ry, 2);
    for (unsigned i = 0; i < last; i++) /* the older, the fainter */
        oct_draw_line(
            draw, f->x + ((double)t->x[i] + 0.5) * f->dx, f->y + ((double)t->y[i] + 0.5) * f->dy,
            f->x + ((double)t->x[i + 1] + 0.5) * f->dx, f->y + ((double)t->y[i + 1] + 0.5) * f->dy,
            RGB_CELL, 60 + 140 * (i + 1) / t->n);
    for (int i = 0; i < N_SIDES; i++) {
        const double a = 2 * pi * i / N_SIDES, b = 2 * pi * (i + 1) / N_SIDES;
        oct_draw_line(draw, cx + rx * cos(a), cy + ry * sin(a), cx + rx * cos(b), cy + ry * sin(b),
                      RGB_CELL, t->is_coasting ? DIM : 255);
    }
}

/* Those that lie below `y` of the picture. */
static void draw_all(struct oct_draw *draw, const struct oct_view_cells *cells, struct frame f,
                     struct oct_view_rect seen, double y)
{
    oct_draw_clip(draw, &seen);
    for (unsigned i = 0; i < cells->n; i++)
        if ((double)cells->tracks[i].y[cells->tracks[i].n - 1] > y)
            draw_track(draw, &f, &cells->tracks[i]);
    oct_draw_clip(draw, NULL);
}

static void draw_bscan(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_cells *c = &model->cells;
    const struct oct_picture_header *h = &model->shown.header;
    struct oct_view_phrase phrase;
    if (!oct_view_model_has_cells(model) || !c->is_bscan || h->n_lines != c->width ||
        h->depth != c->height)
        return;
    draw_all(draw, c,
             frame_of(c, oct_view_overlay_place(draw, model, &c->of), model->daemon.lateral_um,
                      model->daemon.axial_um),
             oct_draw_layout(draw)->picture, -1);
    oct_view_cells_text(model, &phrase);
    oct_draw_corner(draw, phrase.text, RGB_CELL);
}

static bool draw_enface(struct oct_draw *draw, const struct oct_view_model *model,
                        struct oct_view_rect r, int line)
{
    const struct oct_view_cells *c = &model->cells;
    const struct oct_view_rectf place = {r.x, r.y, r.w, r.h};
    const struct oct_view_enface *e = &model->enface;
    const bool is_next = e->volume == c->volume + 1;
    struct oct_view_phrase phrase;
    if (!oct_view_model_has_cells(model) || c->is_bscan || e->n_lines != c->width ||
        e->n_bscans != c->height || (!is_next && e->volume != c->volume))
        return false;
    /* The last row that is of a newer volume than the cells: -1 is none of them. */
    const double y = is_next ? (e->newest_row + 1.0) * e->n_bscans / e->n_rows - 1 : -1;
    draw_all(draw, c, frame_of(c, place, model->daemon.lateral_um, model->daemon.slow_um), r, y);
    oct_view_cells_text(model, &phrase);
    oct_draw_clip(draw, &r);
    oct_draw_words_below(draw, r, line, phrase.text, RGB_CELL);
    oct_draw_clip(draw, NULL);
    return true;
}

const struct oct_view_overlay oct_view_overlay_cells = {
    .topic = "cells",
    .check = check,
    .take = take,
    .leads = 3,
    .draw = draw_bscan,
    .draw_enface = draw_enface,
    .action = OCT_ACTION_CELLS,
    .key = 'C',
    .setting = offsetof(struct oct_view_settings, cells),
    .setting_name = "cells",
    .what = "follows no cells",
    .drawn = "cells that octd follows",
    .not_drawn = "cells are not drawn",
};
