/* Axes about a box of a canvas: ticks, their numbers, labels and a title. Private to this room. One
 * thread uses axes at a time. */
#ifndef OCT_PLOT_AXES_H
#define OCT_PLOT_AXES_H

#include "plot/canvas.h"

#define OCT_AXES_LETTERS 15.0
#define OCT_AXES_INK 0x222222

struct oct_axis {
    double least, most; /* values at both ends */
    double from, to;    /* px of the canvas, of least and of most */
    double first, step; /* ticks */
};

struct oct_axes {
    struct oct_canvas canvas;
    const char *title, *x_label, *y_label; /* NULL: none */
    struct oct_axis x, y;
    double left, right, top, bottom; /* px: the box */
};

/* px of a value. */
double oct_axis_place(const struct oct_axis *axis, double value);

/* From an axis without any value, which this makes, to one that holds these; what is not finite is
 * left out. */
void oct_axis_clear(struct oct_axis *axis);
void oct_axis_include(struct oct_axis *axis, double value);

/* Widens it by that part at each end that is not 0; an axis of no length becomes one of some, that
 * of no values 0 .. 1. */
void oct_axis_widen(struct oct_axis *axis, double part);

/* Ticks and the box, for a canvas of width x height px. downward: y.least is at the top. */
void oct_axes_set(struct oct_axes *axes, int width, int height, bool downward);

/* with_grid: lines across the box at the ticks. */
void oct_axes_draw(struct oct_axes *axes, bool with_grid);

void oct_axes_line(struct oct_axes *axes, double x0, double y0, double x1, double y1); /* px */

#endif
