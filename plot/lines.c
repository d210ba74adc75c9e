#include "plot/axes.h"
#include "plot/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH 1000
#define HEIGHT 640
#define LETTERS OCT_AXES_LETTERS
#define INK OCT_AXES_INK
#define MOST_DOTS 4000 /* more points are drawn smaller */

struct frame {
    struct oct_axes axes;
    const struct oct_plot_lines *plot;
};

/* ---- axes ---- */

/* Of bars: from one middle to the next. */
static double bar_width(const struct oct_plot_series *s)
{
    return s->style == OCT_PLOT_BARS && s->n > 1 ? s->x[1] - s->x[0] : 0;
}

static void set_axes(struct frame *f)
{
    const struct oct_plot_lines *p = f->plot;
    struct oct_axis *x = &f->axes.x, *y = &f->axes.y;
    oct_axis_clear(x);
    oct_axis_clear(y);
    for (unsigned s = 0; s < p->n_series; s++) {
        const double half = bar_width(&p->series[s]) / 2;
        for (size_t i = 0; i < p->series[s].n; i++)
            if (isfinite(p->series[s].y[i])) {
                oct_axis_include(x, p->series[s].x[i] - half);
                oct_axis_include(x, p->series[s].x[i] + half);
                oct_axis_include(y, p->series[s].y[i]);
            }
    }
    for (unsigned i = 0; i < p->n_marks; i++) {
        oct_axis_include(x, p->marks[i].x);
        oct_axis_include(y, p->marks[i].y);
    }
    if (p->from_zero) {
        oct_axis_include(x, 0);
        oct_axis_include(y, 0);
    }
    oct_axis_widen(x, 0);
    oct_axis_widen(y, 0.06);
    if (p->has_y) {
        y->least = p->y_least;
        y->most = p->y_most;
    }
    f->axes.title = p->title;
    f->axes.x_label = p->x_label;
    f->axes.y_label = p->y_label;
    oct_axes_set(&f->axes, WIDTH, HEIGHT, false);
}

/* ---- series ---- */

static void draw_points(struct frame *f, const struct oct_plot_series *s)
{
    const double radius = s->n > MOST_DOTS ? 1.2 : s->n > 200 ? 2.2 : 3.6;
    for (size_t i = 0; i < s->n; i++) {
        if (!isfinite(s->x[i]) || !isfinite(s->y[i]))
            continue;
        cairo_new_sub_path(f->axes.canvas.cairo);
        cairo_arc(f->axes.canvas.cairo, oct_axis_place(&f->axes.x, s->x[i]),
                  oct_axis_place(&f->axes.y, s->y[i]), radius, 0, 6.283185307179586);
        cairo_fill(f->axes.canvas.cairo);
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
    cairo_t *c = f->axes.canvas.cairo;
    const bool dense = s->n > 8 * WIDTH;
    struct column column = {0};
    bool drawing = false;
    for (size_t i = 0; i < s->n; i++) {
        if (!isfinite(s->x[i]) || !isfinite(s->y[i])) {
            end_column(c, &column);
            drawing = false;
            continue;
        }
        const double x = oct_axis_place(&f->axes.x, s->x[i]),
                     y = oct_axis_place(&f->axes.y, s->y[i]);
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

static void draw_bars(struct frame *f, const struct oct_plot_series *s)
{
    cairo_t *c = f->axes.canvas.cairo;
    const double half = bar_width(s) / 2, floor_px = oct_axis_place(&f->axes.y, 0);
    for (size_t i = 0; i < s->n; i++) {
        const double left = oct_axis_place(&f->axes.x, s->x[i] - half) + 0.5;
        const double right = oct_axis_place(&f->axes.x, s->x[i] + half) - 0.5;
        const double top = oct_axis_place(&f->axes.y, s->y[i]);
        cairo_rectangle(c, left, top, right - left, floor_px - top);
        cairo_fill(c);
    }
}

static void draw_series(struct frame *f)
{
    cairo_t *c = f->axes.canvas.cairo;
    static const double dashes[] = {8, 6};
    cairo_save(c);
    cairo_rectangle(c, f->axes.left - 4, f->axes.top - 4, f->axes.right - f->axes.left + 8,
                    f->axes.bottom - f->axes.top + 8);
    cairo_clip(c);
    cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
    for (unsigned i = 0; i < f->plot->n_series; i++) {
        const struct oct_plot_series *s = &f->plot->series[i];
        oct_canvas_colour(&f->axes.canvas, oct_canvas_series_colour(i));
        cairo_set_line_width(c, s->n > 4 * WIDTH ? 1 : 2);
        cairo_set_dash(c, dashes, s->style == OCT_PLOT_DASHES ? 2 : 0, 0);
        if (s->style == OCT_PLOT_POINTS)
            draw_points(f, s);
        else if (s->style == OCT_PLOT_BARS)
            draw_bars(f, s);
        else
            draw_line(f, s);
    }
    cairo_restore(c);
}

static void draw_mark(struct frame *f, const struct oct_plot_mark *mark)
{
    static const double dots[] = {3, 4};
    cairo_t *c = f->axes.canvas.cairo;
    const double x = oct_axis_place(&f->axes.x, mark->x), y = oct_axis_place(&f->axes.y, mark->y);
    if (!isfinite(x) || !isfinite(y))
        return;
    cairo_save(c);
    oct_canvas_colour(&f->axes.canvas, 0xb00020);
    cairo_set_line_width(c, 1.5);
    cairo_set_dash(c, dots, 2, 0);
    oct_axes_line(&f->axes, x, y, x, f->axes.bottom);
    cairo_restore(c);
    oct_canvas_colour(&f->axes.canvas, 0xb00020);
    cairo_arc(c, x, y, 5, 0, 6.283185307179586);
    cairo_fill(c);
    if (!mark->text)
        return;
    const double width = oct_canvas_text_width(&f->axes.canvas, LETTERS, true, mark->text);
    const bool left = x + 12 + width > f->axes.right - 8;
    const double above = y - 20 < f->axes.top + 10 ? y + 20 : y - 20;
    oct_canvas_text(&f->axes.canvas, left ? x - 10 : x + 10, above, LETTERS, true,
                    left ? OCT_CANVAS_RIGHT : OCT_CANVAS_LEFT, true, mark->text);
}

/* Points of all series within the box. */
static size_t count_inside(const struct frame *f, double x, double y, double width, double height)
{
    size_t n = 0;
    for (unsigned s = 0; s < f->plot->n_series; s++)
        for (size_t i = 0; i < f->plot->series[s].n; i++) {
            const double at_x = oct_axis_place(&f->axes.x, f->plot->series[s].x[i]);
            const double at_y = oct_axis_place(&f->axes.y, f->plot->series[s].y[i]);
            n += at_x >= x && at_x <= x + width && at_y >= y && at_y <= y + height;
        }
    return n;
}

/* The corner where it hides the fewest points: top right, if that is one. */
static void choose_corner(const struct frame *f, double width, double height, double *x, double *y)
{
    size_t fewest = SIZE_MAX;
    for (unsigned corner = 0; corner < 4; corner++) {
        const double at_x = corner & 1 ? f->axes.left + 12 : f->axes.right - width - 12;
        const double at_y = corner & 2 ? f->axes.bottom - height - 12 : f->axes.top + 10;
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
    struct oct_canvas *c = &f->axes.canvas;
    const struct oct_plot_series *s = &f->plot->series[i];
    oct_canvas_colour(c, oct_canvas_series_colour(i));
    cairo_set_line_width(c->cairo, 2);
    cairo_set_dash(c->cairo, dashes, s->style == OCT_PLOT_DASHES ? 2 : 0, 0);
    if (s->style == OCT_PLOT_POINTS) {
        cairo_arc(c->cairo, x + 17, y, 3.6, 0, 6.283185307179586);
        cairo_fill(c->cairo);
    } else {
        oct_axes_line(&f->axes, x, y, x + 34, y);
    }
    cairo_set_dash(c->cairo, NULL, 0, 0);
    oct_canvas_colour(c, INK);
    oct_canvas_text(c, x + 44, y, LETTERS, false, OCT_CANVAS_LEFT, false, s->label);
}

static void draw_legend(struct frame *f)
{
    cairo_t *c = f->axes.canvas.cairo;
    double widest = 0, x = 0, y = 0;
    unsigned n = 0;
    for (unsigned i = 0; i < f->plot->n_series; i++) {
        const char *label = f->plot->series[i].label;
        const double w = label ? oct_canvas_text_width(&f->axes.canvas, LETTERS, false, label) : 0;
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
    enum oct_err e = oct_canvas_init(&f.axes.canvas, WIDTH, HEIGHT, err);
    if (e)
        return e;
    set_axes(&f);
    oct_axes_draw(&f.axes, true);
    draw_series(&f);
    draw_legend(&f);
    for (unsigned i = 0; i < plot->n_marks; i++)
        draw_mark(&f, &plot->marks[i]);
    e = oct_canvas_write(&f.axes.canvas, path, force, err);
    oct_canvas_finish(&f.axes.canvas);
    return e;
}
