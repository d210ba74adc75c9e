#include "tools/plot/canvas.h"
#include "tools/plot/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH 1000
#define HEIGHT 640
#define LETTERS 15.0
#define TITLE_LETTERS 17.0
#define INK 0x222222
#define GRID 0xe4e4e4
#define MOST_DOTS 4000 /* more points are drawn smaller */

struct axis {
    double least, most; /* values at both ends */
    double from, to;    /* px */
    double first, step; /* ticks */
};

struct frame {
    struct oct_canvas canvas;
    const struct oct_plot_lines *plot;
    struct axis x, y;
};

static double place(const struct axis *axis, double value)
{
    return axis->from +
           (value - axis->least) / (axis->most - axis->least) * (axis->to - axis->from);
}

/* ---- axes ---- */

static void include(struct axis *axis, double value)
{
    if (!isfinite(value))
        return;
    axis->least = value < axis->least ? value : axis->least;
    axis->most = value > axis->most ? value : axis->most;
}

/* An axis of no length is widened; nothing at all becomes 0 .. 1. */
static void widen(struct axis *axis, double part)
{
    if (axis->least > axis->most) {
        axis->least = 0;
        axis->most = 1;
    }
    double range = axis->most - axis->least;
    if (range <= 1e-12 * fabs(axis->most) || range <= 0) {
        range = axis->most != 0 ? fabs(axis->most) : 1;
        axis->least -= range / 2;
        axis->most += range / 2;
    }
    axis->least -= axis->least == 0 ? 0 : part * range;
    axis->most += part * range;
}

static void set_axes(struct frame *f)
{
    const struct oct_plot_lines *p = f->plot;
    f->x = (struct axis){.least = INFINITY, .most = -INFINITY};
    f->y = f->x;
    for (unsigned s = 0; s < p->n_series; s++)
        for (size_t i = 0; i < p->series[s].n; i++)
            if (isfinite(p->series[s].y[i])) {
                include(&f->x, p->series[s].x[i]);
                include(&f->y, p->series[s].y[i]);
            }
    for (unsigned i = 0; i < p->n_marks; i++) {
        include(&f->x, p->marks[i].x);
        include(&f->y, p->marks[i].y);
    }
    if (p->from_zero) {
        include(&f->x, 0);
        include(&f->y, 0);
    }
    widen(&f->x, 0);
    widen(&f->y, 0.06);
    if (p->has_y) {
        f->y.least = p->y_least;
        f->y.most = p->y_most;
    }
    oct_canvas_ticks(f->x.least, f->x.most, 8, &f->x.first, &f->x.step);
    oct_canvas_ticks(f->y.least, f->y.most, 6, &f->y.first, &f->y.step);
}

/* The widest label of the y axis makes the left margin. */
static void set_margins(struct frame *f)
{
    double widest = 0;
    char text[32];
    for (double v = f->y.first; v <= f->y.most + 1e-9 * f->y.step; v += f->y.step) {
        oct_canvas_tick_text(v, f->y.step, text);
        const double w = oct_canvas_text_width(&f->canvas, LETTERS, false, text);
        widest = w > widest ? w : widest;
    }
    f->x.from = widest + (f->plot->y_label ? 58 : 30);
    f->x.to = WIDTH - 32;
    f->y.from = HEIGHT - (f->plot->x_label ? 70 : 44);
    f->y.to = f->plot->title ? 54 : 24;
}

static void line(struct frame *f, double x0, double y0, double x1, double y1)
{
    cairo_move_to(f->canvas.cairo, x0, y0);
    cairo_line_to(f->canvas.cairo, x1, y1);
    cairo_stroke(f->canvas.cairo);
}

static void draw_ticks(struct frame *f)
{
    struct oct_canvas *c = &f->canvas;
    char text[32];
    for (double v = f->x.first; v <= f->x.most + 1e-9 * f->x.step; v += f->x.step) {
        const double at = floor(place(&f->x, v)) + 0.5;
        oct_canvas_colour(c, GRID);
        line(f, at, f->y.from, at, f->y.to);
        oct_canvas_colour(c, INK);
        line(f, at, f->y.from, at, f->y.from + 6);
        oct_canvas_tick_text(v, f->x.step, text);
        oct_canvas_text(c, at, f->y.from + 20, LETTERS, false, OCT_CANVAS_MIDDLE, false, text);
    }
    for (double v = f->y.first; v <= f->y.most + 1e-9 * f->y.step; v += f->y.step) {
        const double at = floor(place(&f->y, v)) + 0.5;
        oct_canvas_colour(c, fabs(v) < 1e-6 * f->y.step ? 0xa8a8a8 : GRID);
        line(f, f->x.from, at, f->x.to, at);
        oct_canvas_colour(c, INK);
        line(f, f->x.from - 6, at, f->x.from, at);
        oct_canvas_tick_text(v, f->y.step, text);
        oct_canvas_text(c, f->x.from - 11, at, LETTERS, false, OCT_CANVAS_RIGHT, false, text);
    }
}

static void draw_axes(struct frame *f)
{
    struct oct_canvas *c = &f->canvas;
    const struct oct_plot_lines *p = f->plot;
    cairo_set_line_width(c->cairo, 1);
    draw_ticks(f);
    oct_canvas_colour(c, INK);
    cairo_rectangle(c->cairo, floor(f->x.from) + 0.5, floor(f->y.to) + 0.5,
                    floor(f->x.to - f->x.from), floor(f->y.from - f->y.to));
    cairo_stroke(c->cairo);
    if (p->title)
        oct_canvas_text(c, f->x.from, 30, TITLE_LETTERS, true, OCT_CANVAS_LEFT, false, p->title);
    if (p->x_label)
        oct_canvas_text(c, (f->x.from + f->x.to) / 2, f->y.from + 48, LETTERS, false,
                        OCT_CANVAS_MIDDLE, false, p->x_label);
    if (p->y_label) {
        cairo_save(c->cairo);
        cairo_translate(c->cairo, 22, (f->y.from + f->y.to) / 2);
        cairo_rotate(c->cairo, -1.5707963267948966);
        oct_canvas_text(c, 0, 0, LETTERS, false, OCT_CANVAS_MIDDLE, false, p->y_label);
        cairo_restore(c->cairo);
    }
}

/* ---- series ---- */

static void draw_points(struct frame *f, const struct oct_plot_series *s)
{
    const double radius = s->n > MOST_DOTS ? 1.2 : s->n > 200 ? 2.2 : 3.6;
    for (size_t i = 0; i < s->n; i++) {
        if (!isfinite(s->x[i]) || !isfinite(s->y[i]))
            continue;
        cairo_new_sub_path(f->canvas.cairo);
        cairo_arc(f->canvas.cairo, place(&f->x, s->x[i]), place(&f->y, s->y[i]), radius, 0,
                  6.283185307179586);
        cairo_fill(f->canvas.cairo);
    }
}

/* Points that share a column of pixels: drawn as its least and its most, for a long series has no
 * more than that to show. */
struct column {
    double x, least, most;
    bool is_open;
};

static void end_column(cairo_t *c, struct column *column)
{
    if (column->is_open && column->most > column->least) {
        cairo_line_to(c, column->x, column->least);
        cairo_line_to(c, column->x, column->most);
    }
    column->is_open = false;
}

static void draw_line(struct frame *f, const struct oct_plot_series *s)
{
    cairo_t *c = f->canvas.cairo;
    const bool dense = s->n > 8 * WIDTH;
    struct column column = {0};
    bool drawing = false;
    for (size_t i = 0; i < s->n; i++) {
        if (!isfinite(s->x[i]) || !isfinite(s->y[i])) {
            end_column(c, &column);
            drawing = false;
            continue;
        }
        const double x = place(&f->x, s->x[i]), y = place(&f->y, s->y[i]);
        if (dense && column.is_open && fabs(x - column.x) < 0.5) {
            column.least = fmin(column.least, y);
            column.most = fmax(column.most, y);
            continue;
        }
        end_column(c, &column);
        if (drawing)
            cairo_line_to(c, x, y);
        else
            cairo_move_to(c, x, y);
        column = (struct column){x, y, y, true};
        drawing = true;
    }
    end_column(c, &column);
    cairo_stroke(c);
}

static void draw_series(struct frame *f)
{
    cairo_t *c = f->canvas.cairo;
    static const double dashes[] = {8, 6};
    cairo_save(c);
    cairo_rectangle(c, f->x.from - 4, f->y.to - 4, f->x.to - f->x.from + 8,
                    f->y.from - f->y.to + 8);
    cairo_clip(c);
    cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
    for (unsigned i = 0; i < f->plot->n_series; i++) {
        const struct oct_plot_series *s = &f->plot->series[i];
        oct_canvas_colour(&f->canvas, oct_canvas_series_colour(i));
        cairo_set_line_width(c, s->n > 4 * WIDTH ? 1 : 2);
        cairo_set_dash(c, dashes, s->style == OCT_PLOT_DASHES ? 2 : 0, 0);
        if (s->style == OCT_PLOT_POINTS)
            draw_points(f, s);
        else
            draw_line(f, s);
    }
    cairo_restore(c);
}

static void draw_mark(struct frame *f, const struct oct_plot_mark *mark)
{
    static const double dots[] = {3, 4};
    cairo_t *c = f->canvas.cairo;
    const double x = place(&f->x, mark->x), y = place(&f->y, mark->y);
    if (!isfinite(x) || !isfinite(y))
        return;
    cairo_save(c);
    oct_canvas_colour(&f->canvas, 0xb00020);
    cairo_set_line_width(c, 1.5);
    cairo_set_dash(c, dots, 2, 0);
    line(f, x, y, x, f->y.from);
    cairo_restore(c);
    oct_canvas_colour(&f->canvas, 0xb00020);
    cairo_arc(c, x, y, 5, 0, 6.283185307179586);
    cairo_fill(c);
    if (!mark->text)
        return;
    const double width = oct_canvas_text_width(&f->canvas, LETTERS, true, mark->text);
    const bool left = x + 12 + width > f->x.to - 8;
    const double above = y - 20 < f->y.to + 10 ? y + 20 : y - 20;
    oct_canvas_text(&f->canvas, left ? x - 10 : x + 10, above, LETTERS, true,
                    left ? OCT_CANVAS_RIGHT : OCT_CANVAS_LEFT, true, mark->text);
}

/* Points of all series within the box. */
static size_t count_inside(const struct frame *f, double x, double y, double width, double height)
{
    size_t n = 0;
    for (unsigned s = 0; s < f->plot->n_series; s++)
        for (size_t i = 0; i < f->plot->series[s].n; i++) {
            const double at_x = place(&f->x, f->plot->series[s].x[i]);
            const double at_y = place(&f->y, f->plot->series[s].y[i]);
            n += at_x >= x && at_x <= x + width && at_y >= y && at_y <= y + height;
        }
    return n;
}

/* The corner where it hides the fewest points: top right, if that is one. */
static void choose_corner(const struct frame *f, double width, double height, double *x, double *y)
{
    size_t fewest = SIZE_MAX;
    for (unsigned corner = 0; corner < 4; corner++) {
        const double at_x = corner & 1 ? f->x.from + 12 : f->x.to - width - 12;
        const double at_y = corner & 2 ? f->y.from - height - 12 : f->y.to + 10;
        const size_t n = count_inside(f, at_x, at_y, width, height);
        if (n >= fewest)
            continue;
        fewest = n;
        *x = at_x;
        *y = at_y;
    }
}

static void draw_legend_row(struct frame *f, unsigned i, double x, double y)
{
    static const double dashes[] = {8, 6};
    struct oct_canvas *c = &f->canvas;
    const struct oct_plot_series *s = &f->plot->series[i];
    oct_canvas_colour(c, oct_canvas_series_colour(i));
    cairo_set_line_width(c->cairo, 2);
    cairo_set_dash(c->cairo, dashes, s->style == OCT_PLOT_DASHES ? 2 : 0, 0);
    if (s->style == OCT_PLOT_POINTS) {
        cairo_arc(c->cairo, x + 17, y, 3.6, 0, 6.283185307179586);
        cairo_fill(c->cairo);
    } else {
        line(f, x, y, x + 34, y);
    }
    cairo_set_dash(c->cairo, NULL, 0, 0);
    oct_canvas_colour(c, INK);
    oct_canvas_text(c, x + 44, y, LETTERS, false, OCT_CANVAS_LEFT, false, s->label);
}

static void draw_legend(struct frame *f)
{
    cairo_t *c = f->canvas.cairo;
    double widest = 0, x = 0, y = 0;
    unsigned n = 0;
    for (unsigned i = 0; i < f->plot->n_series; i++) {
        const char *label = f->plot->series[i].label;
        const double w = label ? oct_canvas_text_width(&f->canvas, LETTERS, false, label) : 0;
        widest = w > widest ? w : widest;
        n += label != NULL;
    }
    if (n == 0)
        return;
    const double width = widest + 60, height = 22.0 * n + 8;
    choose_corner(f, width, height, &x, &y);
    cairo_set_source_rgba(c, 1, 1, 1, 0.85);
    cairo_rectangle(c, x, y, width, height);
    cairo_fill(c);
    y += 15;
    for (unsigned i = 0; i < f->plot->n_series; i++)
        if (f->plot->series[i].label) {
            draw_legend_row(f, i, x + 8, y);
            y += 22;
        }
}

enum oct_err oct_plot_write_lines(const char *path, bool force, const struct oct_plot_lines *plot,
                                  struct oct_error *err)
{
    struct frame f = {.plot = plot};
    enum oct_err e = oct_canvas_init(&f.canvas, WIDTH, HEIGHT, err);
    if (e)
        return e;
    set_axes(&f);
    set_margins(&f);
    draw_axes(&f);
    draw_series(&f);
    draw_legend(&f);
    for (unsigned i = 0; i < plot->n_marks; i++)
        draw_mark(&f, &plot->marks[i]);
    e = oct_canvas_write(&f.canvas, path, force, err);
    oct_canvas_finish(&f.canvas);
    return e;
}
