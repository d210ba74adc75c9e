#include "plot/axes.h"

#include <math.h>

#define TITLE_LETTERS 17.0
#define GRID 0xe4e4e4
#define GRID_AT_0 0xa8a8a8

double oct_axis_place(const struct oct_axis *axis, double value)
{
    return axis->from +
           (value - axis->least) / (axis->most - axis->least) * (axis->to - axis->from);
}

/* ---- what an axis holds ---- */

void oct_axis_clear(struct oct_axis *axis)
{
    *axis = (struct oct_axis){.least = INFINITY, .most = -INFINITY};
}

void oct_axis_include(struct oct_axis *axis, double value)
{
    if (!isfinite(value))
        return;
    axis->least = value < axis->least ? value : axis->least;
    axis->most = value > axis->most ? value : axis->most;
}

void oct_axis_widen(struct oct_axis *axis, double part)
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

/* The widest label of the y axis makes the left margin. */
void oct_axes_set(struct oct_axes *a, int width, int height, bool downward)
{
    double widest = 0;
    char text[32];
    oct_canvas_ticks(a->x.least, a->x.most, 8, &a->x.first, &a->x.step);
    oct_canvas_ticks(a->y.least, a->y.most, 6, &a->y.first, &a->y.step);
    for (double v = a->y.first; v <= a->y.most + 1e-9 * a->y.step; v += a->y.step) {
        oct_canvas_tick_text(v, a->y.step, text);
        widest = fmax(widest, oct_canvas_text_width(&a->canvas, OCT_AXES_LETTERS, false, text));
    }
    a->left = widest + (a->y_label ? 58 : 30);
    a->right = width - 32;
    a->top = a->title ? 54 : 24;
    a->bottom = height - (a->x_label ? 70 : 44);
    a->x.from = a->left;
    a->x.to = a->right;
    a->y.from = downward ? a->top : a->bottom;
    a->y.to = downward ? a->bottom : a->top;
}

/* ---- drawing ---- */

void oct_axes_line(struct oct_axes *axes, double x0, double y0, double x1, double y1)
{
    cairo_move_to(axes->canvas.cairo, x0, y0);
    cairo_line_to(axes->canvas.cairo, x1, y1);
    cairo_stroke(axes->canvas.cairo);
}

static void draw_x_ticks(struct oct_axes *a, bool with_grid)
{
    struct oct_canvas *c = &a->canvas;
    char text[32];
    for (double v = a->x.first; v <= a->x.most + 1e-9 * a->x.step; v += a->x.step) {
        const double at = floor(oct_axis_place(&a->x, v)) + 0.5;
        oct_canvas_colour(c, GRID);
        if (with_grid)
            oct_axes_line(a, at, a->bottom, at, a->top);
        oct_canvas_colour(c, OCT_AXES_INK);
        oct_axes_line(a, at, a->bottom, at, a->bottom + 6);
        oct_canvas_tick_text(v, a->x.step, text);
        oct_canvas_text(c, at, a->bottom + 20, OCT_AXES_LETTERS, false, OCT_CANVAS_MIDDLE, false,
                        text);
    }
}

static void draw_y_ticks(struct oct_axes *a, bool with_grid)
{
    struct oct_canvas *c = &a->canvas;
    char text[32];
    for (double v = a->y.first; v <= a->y.most + 1e-9 * a->y.step; v += a->y.step) {
        const double at = floor(oct_axis_place(&a->y, v)) + 0.5;
        oct_canvas_colour(c, fabs(v) < 1e-6 * a->y.step ? GRID_AT_0 : GRID);
        if (with_grid)
            oct_axes_line(a, a->left, at, a->right, at);
        oct_canvas_colour(c, OCT_AXES_INK);
        oct_axes_line(a, a->left - 6, at, a->left, at);
        oct_canvas_tick_text(v, a->y.step, text);
        oct_canvas_text(c, a->left - 11, at, OCT_AXES_LETTERS, false, OCT_CANVAS_RIGHT, false,
                        text);
    }
}

void oct_axes_draw(struct oct_axes *a, bool with_grid)
{
    struct oct_canvas *c = &a->canvas;
    cairo_set_line_width(c->cairo, 1);
    draw_x_ticks(a, with_grid);
    draw_y_ticks(a, with_grid);
    oct_canvas_colour(c, OCT_AXES_INK);
    cairo_rectangle(c->cairo, floor(a->left) + 0.5, floor(a->top) + 0.5, floor(a->right - a->left),
                    floor(a->bottom - a->top));
    cairo_stroke(c->cairo);
    if (a->title)
        oct_canvas_text(c, a->left, 30, TITLE_LETTERS, true, OCT_CANVAS_LEFT, false, a->title);
    if (a->x_label)
        oct_canvas_text(c, (a->left + a->right) / 2, a->bottom + 48, OCT_AXES_LETTERS, false,
                        OCT_CANVAS_MIDDLE, false, a->x_label);
    if (!a->y_label)
        return;
    cairo_save(c->cairo);
    cairo_translate(c->cairo, 22, (a->top + a->bottom) / 2);
    cairo_rotate(c->cairo, -1.5707963267948966);
    oct_canvas_text(c, 0, 0, OCT_AXES_LETTERS, false, OCT_CANVAS_MIDDLE, false, a->y_label);
    cairo_restore(c->cairo);
}
