/* The cells that octd follows: a circle about each, a tail of where it was, and how many there
 * are. */
#include "viewer/draw/areas.h"

#include <math.h>

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

/* The last row of the volume from above that is of a newer volume than the cells: -1 is none of
 * them. False: no row is of theirs. */
static bool first_row(const struct oct_view_cells *c, const struct oct_view_enface *e, double *y)
{
    const bool is_next = e->volume == c->volume + 1;

    *y = is_next ? (e->newest_row + 1.0) * e->n_bscans / e->n_rows - 1 : -1;
    return is_next || e->volume == c->volume;
}

void oct_draw_cells_bscan(struct oct_draw *draw, const struct oct_view_model *model)
{
    const struct oct_view_cells *c = &model->cells;
    const struct oct_picture_header *h = &model->shown.header;
    struct oct_view_rectf place = draw->place;
    struct oct_view_phrase phrase;
    double lines, depth;

    if (!oct_view_model_has_cells(model) || !c->is_bscan || h->n_lines != c->width ||
        h->depth != c->height)
        return;
    oct_view_overlay_belongs(model, c->acquisition_id, c->frame_num, &lines, &depth);
    place.x += lines / h->n_lines * place.w;
    place.y += depth / h->depth * place.h;
    draw_all(draw, c, frame_of(c, place, model->daemon.lateral_um, model->daemon.axial_um),
             draw->picture_rect, -1);
    oct_view_cells_text(model, &phrase);
    oct_draw_corner(draw, phrase.text, RGB_CELL);
}

void oct_draw_cells_enface(struct oct_draw *draw, const struct oct_view_model *model,
                           struct oct_view_rect r, int line)
{
    const struct oct_view_cells *c = &model->cells;
    const struct oct_view_rectf place = {r.x, r.y, r.w, r.h};
    const int height = oct_draw_line_height(draw, OCT_TEXT_NORMAL);
    struct oct_view_phrase phrase;
    double y;

    if (!oct_view_model_has_cells(model) || c->is_bscan || model->enface.n_lines != c->width ||
        model->enface.n_bscans != c->height || !first_row(c, &model->enface, &y))
        return;
    draw_all(draw, c, frame_of(c, place, model->daemon.lateral_um, model->daemon.slow_um), r, y);
    oct_view_cells_text(model, &phrase);
    oct_draw_clip(draw, &r);
    oct_draw_label(draw, r.x + draw->layout.margin, r.y + line * height + draw->layout.margin / 2,
                   phrase.text, RGB_CELL);
    oct_draw_clip(draw, NULL);
}
