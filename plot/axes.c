/* Lines, and fields of values, over two axes. */
#include "plot/canvas.h"

#include <math.h>
#include <stdio.h>

#define WIDTH 1000.0
#define HEIGHT 640.0
#define FIELD_HEIGHT 760.0
#define FIELD_PATH_PX 1.2
#define GRID 0xe4e4e4u
#define GRID_AT_0 0xa8a8a8u
#define MARK 0xb00020u
#define PALE 0xf6f6f6u /* pale colours of the middle show on it */
#define MOST_DOTS 4000 /* more points are drawn smaller */
#define LEGEND_ROW 22.0

struct axes {
    struct oct_canvas *canvas;
    struct oct_axis x, y;
    double left, right, top, bottom; /* px: the box */
};

/* ---- an axis ---- */

double oct_axis_place(const struct oct_axis *axis, double value)
{
    return axis->from +
           (value - axis->least) / (axis->most - axis->least) * (axis->to - axis->from);
}

static double first_tick(const struct oct_axis *axis, double *step)
{
    *step = oct_round_step((axis->most - axis->least) / axis->n_ticks);
    return ceil(axis->least / *step - 1e-9) * *step;
}

/* With the digits that steps of `step` need. */
static void print_tick(double value, double step, char text[32])
{
    const int digits = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    if (fabs(value) < step * 1e-6)
        value = 0;
    if (fabs(value) >= 1e6 || digits > 5)
        snprintf(text, 32, "%.4g", value);
    else
        snprintf(text, 32, "%.*f", digits, value);
}

double oct_axis_widest(struct oct_canvas *canvas, const struct oct_axis *axis)
{
    double widest = 0, step;
    char text[32];
    for (double v = first_tick(axis, &step); v <= axis->most + 1e-9 * step; v += step) {
        print_tick(v, step, text);
        widest = fmax(widest, oct_canvas_text_width(canvas, OCT_LETTERS, 0, text));
    }
    return widest;
}

void oct_axis_draw(struct oct_canvas *canvas, const struct oct_axis *axis, bool is_x, double at,
                   double out, double grid)
{
    double step;
    char text[32];
    cairo_set_line_width(canvas->cairo, 1);
    for (double v = first_tick(axis, &step); v <= axis->most + 1e-9 * step; v += step) {
        const double px = floor(oct_axis_place(axis, v)) + 0.5;
        for (int pass = isnan(grid) ? 1 : 0; pass < 2; pass++) {
            const double to = pass ? at + out : grid;
            const bool is_0 = !is_x && fabs(v) < 1e-6 * step;
            oct_canvas_colour(canvas, pass ? OCT_INK : is_0 ? GRID_AT_0 : GRID, 1);
            oct_canvas_line(canvas, is_x ? px : at, is_x ? at : px, is_x ? px : to, is_x ? to : px);
        }
        print_tick(v, step, text);
        oct_canvas_text(canvas, is_x ? px : at + out + (out > 0 ? 4 : -5), is_x ? at + 20 : px,
                        OCT_LETTERS,
                        is_x      ? OCT_TEXT_MIDDLE
                        : out > 0 ? 0
                                  : OCT_TEXT_RIGHT,
                        text);
    }
}

static void include(struct oct_axis *axis, double value)
{
    if (!isfinite(value))
        return;
    axis->least = fmin(axis->least, value);
    axis->most = fmax(axis->most, value);
}

/* By that part at each end that is not 0; an axis of no length becomes one of some, that of no
 * values 0 .. 1. */
static void widen(struct oct_axis *axis, double part)
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

/* ---- the box ---- */

/* The widest label of the y axis makes the left margin. x, y: the corner; downward: y.least is at
 * the top. */
static void set_box(struct axes *a, double x, double y, double width, double height,
                    const char *const labels[3], bool downward)
{
    a->x.n_ticks = 8;
    a->y.n_ticks = 6;
    a->left = x + oct_axis_widest(a->canvas, &a->y) + (labels[2] ? 58 : 30);
    a->right = x + width - 32;
    a->top = y + (labels[0] ? 54 : 24);
    a->bottom = y + height - (labels[1] ? 70 : 44);
    a->x.from = a->left;
    a->x.to = a->right;
    a->y.from = downward ? a->top : a->bottom;
    a->y.to = downward ? a->bottom : a->top;
}

/* labels: the title, that of x, that of y; NULL: none. */
static void draw_axes(struct axes *a, const char *const labels[3], double x, bool with_grid)
{
    cairo_t *c = a->canvas->cairo;
    oct_axis_draw(a->canvas, &a->x, true, a->bottom, 6, with_grid ? a->top : NAN);
    oct_axis_draw(a->canvas, &a->y, false, a->left, -6, with_grid ? a->right : NAN);
    oct_canvas_colour(a->canvas, OCT_INK, 1);
    cairo_rectangle(c, floor(a->left) + 0.5, floor(a->top) + 0.5, floor(a->right - a->left),
                    floor(a->bottom - a->top));
    cairo_stroke(c);
    oct_canvas_text(a->canvas, a->left, a->top - 24, OCT_TITLE_LETTERS, OCT_TEXT_BOLD, labels[0]);
    oct_canvas_text(a->canvas, (a->left + a->right) / 2, a->bottom + 48, OCT_LETTERS,
                    OCT_TEXT_MIDDLE, labels[1]);
    oct_canvas_text(a->canvas, x + 22, (a->top + a->bottom) / 2, OCT_LETTERS,
                    OCT_TEXT_MIDDLE | OCT_TEXT_UPWARD, labels[2]);
}

/* ---- series ---- */

/* Of bars: from one middle to the next. */
static double bar_width(const struct oct_plot_series *s)
{
    return s->style == OCT_PLOT_BARS && s->n > 1 ? s->x[1] - s->x[0] : 0;
}

static void draw_points(struct axes *a, const struct oct_plot_series *s)
{
    const double radius = s->n > MOST_DOTS ? 1.2 : s->n > 200 ? 2.2 : 3.6;
    for (size_t i = 0; i < s->n; i++)
        if (isfinite(s->x[i]) && isfinite(s->y[i]))
            oct_canvas_dot(a->canvas, oct_axis_place(&a->x, s->x[i]),
                           oct_axis_place(&a->y, s->y[i]), radius);
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

static void draw_line(struct axes *a, const struct oct_plot_series *s)
{
    cairo_t *c = a->canvas->cairo;
    const bool dense = s->n > 8 * (size_t)WIDTH;
    struct column column = {0};
    for (size_t i = 0; i < s->n; i++) {
        const double x = oct_axis_place(&a->x, s->x[i]), y = oct_axis_place(&a->y, s->y[i]);
        if (!isfinite(x) || !isfinite(y)) {
            end_column(c, &column);
            cairo_new_sub_path(c);
            continue;
        }
        if (dense && column.is_open && fabs(x - column.x) < 0.5) {
            column.least = fmin(column.least, y);
            column.most = fmax(column.most, y);
            continue;
        }
        end_column(c, &column);
        cairo_line_to(c, x, y);
        column = (struct column){x, y, y, true};
    }
    end_column(c, &column);
    cairo_stroke(c);
}

static void draw_bars(struct axes *a, const struct oct_plot_series *s, bool diverging)
{
    const double half = bar_width(s) / 2, floor_px = oct_axis_place(&a->y, 0);
    const double gap = diverging ? 0 : 0.5;
    cairo_set_antialias(a->canvas->cairo,
                        diverging ? CAIRO_ANTIALIAS_NONE : CAIRO_ANTIALIAS_DEFAULT);
    for (size_t i = 0; i < s->n; i++) {
        const double left = oct_axis_place(&a->x, s->x[i] - half) + gap;
        const double right = oct_axis_place(&a->x, s->x[i] + half) - gap;
        const double top = oct_axis_place(&a->y, s->y[i]);
        if (diverging)
            oct_canvas_colour(
                a->canvas,
                oct_canvas_shade(OCT_COLOURS_DIVERGING, ((double)i + 0.5) / (double)s->n), 1);
        oct_canvas_fill(a->canvas, left, top, right - left, floor_px - top);
    }
}

static void draw_series(struct axes *a, const struct oct_plot_lines *plot, bool diverging)
{
    const struct oct_view around = {
        a->left - 4, a->top - 4, a->right - a->left + 8, a->bottom - a->top + 8, 0, 0, 1, 1};
    oct_view_clip(a->canvas, &around);
    for (unsigned i = 0; i < plot->n_series; i++) {
        const struct oct_plot_series *s = &plot->series[i];
        oct_canvas_colour(a->canvas, oct_canvas_series_colour(i), 1);
        cairo_set_line_width(a->canvas->cairo, s->n > 4 * (size_t)WIDTH ? 1 : 2);
        oct_canvas_dash(a->canvas, s->style == OCT_PLOT_DASHES, 8, 6);
        if (s->style == OCT_PLOT_POINTS)
            draw_points(a, s);
        else if (s->style == OCT_PLOT_BARS)
            draw_bars(a, s, diverging);
        else
            draw_line(a, s);
    }
    cairo_restore(a->canvas->cairo);
}

static void draw_mark(struct axes *a, const struct oct_plot_mark *mark)
{
    const double x = oct_axis_place(&a->x, mark->x), y = oct_axis_place(&a->y, mark->y);
    if (!isfinite(x) || !isfinite(y))
        return;
    oct_canvas_colour(a->canvas, MARK, 1);
    cairo_set_line_width(a->canvas->cairo, 1.5);
    oct_canvas_dash(a->canvas, true, 3, 4);
    oct_canvas_line(a->canvas, x, y, x, a->bottom);
    oct_canvas_dash(a->canvas, false, 0, 0);
    oct_canvas_dot(a->canvas, x, y, 5);
    const double width = oct_canvas_text_width(a->canvas, OCT_LETTERS, OCT_TEXT_BOLD, mark->text);
    const bool left = x + 12 + width > a->right - 8;
    oct_canvas_text(a->canvas, left ? x - 10 : x + 10, y - 20 < a->top + 10 ? y + 20 : y - 20,
                    OCT_LETTERS, OCT_TEXT_BOLD | OCT_TEXT_HALOED | (left ? OCT_TEXT_RIGHT : 0),
                    mark->text);
}

/* ---- the legend ---- */

/* Points of all series within the box. */
static size_t count_inside(const struct axes *a, const struct oct_plot_lines *plot, double x,
                           double y, double width, double height)
{
    size_t n = 0;
    for (unsigned s = 0; s < plot->n_series; s++)
        for (size_t i = 0; i < plot->series[s].n; i++) {
            const double at_x = oct_axis_place(&a->x, plot->series[s].x[i]);
            const double at_y = oct_axis_place(&a->y, plot->series[s].y[i]);
            n += at_x >= x && at_x <= x + width && at_y >= y && at_y <= y + height;
        }
    return n;
}

/* The corner where it hides the fewest points: top right, if that is one. */
static void choose_corner(const struct axes *a, const struct oct_plot_lines *plot, double width,
                          double height, double *x, double *y)
{
    size_t fewest = SIZE_MAX;
    for (unsigned corner = 0; corner < 4; corner++) {
        const double at_x = corner & 1 ? a->left + 12 : a->right - width - 12;
        const double at_y = corner & 2 ? a->bottom - height - 12 : a->top + 10;
        const size_t n = count_inside(a, plot, at_x, at_y, width, height);
        if (n >= fewest)
            continue;
        fewest = n;
        *x = at_x;
        *y = at_y;
    }
}

static void draw_legend(struct axes *a, const struct oct_plot_lines *plot)
{
    double widest = 0, x = 0, y = 0;
    unsigned n = 0;
    for (unsigned i = 0; i < plot->n_series; i++) {
        const char *label = plot->series[i].label;
        widest = fmax(widest, oct_canvas_text_width(a->canvas, OCT_LETTERS, 0, label));
        n += label != NULL;
    }
    if (n == 0)
        return;
    choose_corner(a, plot, widest + 60, LEGEND_ROW * n + 8, &x, &y);
    oct_canvas_colour(a->canvas, 0xffffff, 0.85);
    oct_canvas_fill(a->canvas, x, y, widest + 60, LEGEND_ROW * n + 8);
    y += 15;
    for (unsigned i = 0; i < plot->n_series; i++) {
        const struct oct_plot_series *s = &plot->series[i];
        if (!s->label)
            continue;
        oct_canvas_colour(a->canvas, oct_canvas_series_colour(i), 1);
        cairo_set_line_width(a->canvas->cairo, 2);
        oct_canvas_dash(a->canvas, s->style == OCT_PLOT_DASHES, 8, 6);
        if (s->style == OCT_PLOT_POINTS)
            oct_canvas_dot(a->canvas, x + 25, y, 3.6);
        else
            oct_canvas_line(a->canvas, x + 8, y, x + 42, y);
        oct_canvas_dash(a->canvas, false, 0, 0);
        oct_canvas_colour(a->canvas, OCT_INK, 1);
        oct_canvas_text(a->canvas, x + 52, y, OCT_LETTERS, 0, s->label);
        y += LEGEND_ROW;
    }
}

/* ---- the figures ---- */

static void find_range(struct axes *a, const struct oct_plot_lines *p)
{
    a->x = a->y = (struct oct_axis){.least = INFINITY, .most = -INFINITY};
    for (unsigned s = 0; s < p->n_series; s++) {
        const double half = bar_width(&p->series[s]) / 2;
        for (size_t i = 0; i < p->series[s].n; i++)
            if (isfinite(p->series[s].y[i])) {
                include(&a->x, p->series[s].x[i] - half);
                include(&a->x, p->series[s].x[i] + half);
                include(&a->y, p->series[s].y[i]);
            }
    }
    for (unsigned i = 0; i < p->n_marks; i++) {
        include(&a->x, p->marks[i].x);
        include(&a->y, p->marks[i].y);
    }
    include(&a->x, p->from_zero ? 0 : NAN);
    include(&a->y, p->from_zero ? 0 : NAN);
    widen(&a->x, 0);
    widen(&a->y, 0.06);
    if (p->has_y) {
        a->y.least = p->y_least;
        a->y.most = p->y_most;
    }
}

void oct_canvas_plot(struct oct_canvas *canvas, const struct oct_plot_lines *plot, double x,
                     double y, double width, double height, bool in_tile, bool diverging)
{
    const char *const labels[3] = {plot->title, plot->x_label, plot->y_label};
    struct axes a = {.canvas = canvas};
    find_range(&a, plot);
    set_box(&a, x, y, width, height, labels, false);
    oct_canvas_colour(canvas, in_tile ? PALE : 0xffffff, 1);
    oct_canvas_fill(canvas, a.left, a.top, a.right - a.left, a.bottom - a.top);
    if (!in_tile)
        draw_axes(&a, labels, x, true);
    draw_series(&a, plot, diverging);
    if (in_tile)
        draw_axes(&a, labels, x, false);
    draw_legend(&a, plot);
    for (unsigned i = 0; i < plot->n_marks; i++)
        draw_mark(&a, &plot->marks[i]);
}

enum oct_err oct_plot_write_lines(const char *path, bool force, const struct oct_plot_lines *plot,
                                  struct oct_error *err)
{
    struct oct_canvas canvas = oct_canvas();
    oct_canvas_plot(&canvas, plot, 0, 0, WIDTH, HEIGHT, false, false);
    return oct_canvas_write(&canvas, WIDTH, HEIGHT, path, force, err);
}

enum oct_err oct_plot_write_field(const char *path, bool force, const struct oct_plot_field *plot,
                                  struct oct_error *err)
{
    const char *const labels[3] = {plot->title, plot->x_label, plot->y_label};
    struct oct_canvas canvas = oct_canvas();
    struct axes a = {.canvas = &canvas,
                     .x = {.least = plot->x_least, .most = plot->x_most},
                     .y = {.least = plot->y_least, .most = plot->y_most}};
    set_box(&a, 0, 0, WIDTH, FIELD_HEIGHT, labels, true);
    const double width = a.right - a.left, height = a.bottom - a.top;
    const struct oct_view view = {a.left,
                                  a.top,
                                  width,
                                  height,
                                  plot->x_least,
                                  plot->y_least,
                                  width / (plot->x_most - plot->x_least),
                                  height / (plot->y_most - plot->y_least)};
    const struct oct_canvas_values values = {.values = plot->values,
                                             .n_y = plot->n_y,
                                             .n_x = plot->n_x,
                                             .lo = plot->lo,
                                             .hi = plot->hi,
                                             .nothing = OCT_NOTHING};
    oct_canvas_values(&canvas, &view, &values);
    oct_canvas_paths(&canvas, &view, plot->paths, plot->n_paths, FIELD_PATH_PX, false);
    draw_axes(&a, labels, 0, false);
    return oct_canvas_write(&canvas, WIDTH, FIELD_HEIGHT, path, force, err);
}
