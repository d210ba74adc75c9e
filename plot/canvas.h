/* What all figures are drawn with: cairo's page, letters, colours, axes. Private to this room: it
 * shows cairo's types. Drawing does not fail: what goes wrong (memory) is told when the page is
 * written. One thread uses a canvas at a time. */
#ifndef OCT_PLOT_CANVAS_H
#define OCT_PLOT_CANVAS_H

#include "plot/plot.h"

#include <cairo.h>

#define OCT_LETTERS 15.0
#define OCT_TITLE_LETTERS 17.0
#define OCT_INK 0x222222u
#define OCT_NOTHING 0xd8d8d8u /* the colour of NaN */
#define OCT_MARGIN 24.0
#define OCT_COLOUR_BAR_PX 140.0 /* its width, with ticks and label */

/* A page without bounds, in px, that remembers what is drawn on it. */
struct oct_canvas {
    cairo_surface_t *surface;
    cairo_t *cairo;
};

struct oct_canvas oct_canvas(void);

/* width x height px of it, on white, as a file, whole or not at all: PNG, or by the path's ending
 * .svg or .pdf. Finishes the canvas. OCT_E_NO_MEMORY, OCT_E_IO, those of oct_whole_file_init. */
enum oct_err oct_canvas_write(struct oct_canvas *canvas, double width, double height,
                              const char *path, bool force, struct oct_error *err);
/* The same as rgb, [height][width][3], red first. */
enum oct_err oct_canvas_read(struct oct_canvas *canvas, uint32_t width, uint32_t height,
                             uint8_t *rgb, struct oct_error *err);

/* ---- lines and letters ---- */

void oct_canvas_colour(struct oct_canvas *canvas, unsigned rgb, double alpha); /* 0xRRGGBB */
void oct_canvas_line(struct oct_canvas *canvas, double x0, double y0, double x1, double y1);
void oct_canvas_fill(struct oct_canvas *canvas, double x, double y, double width, double height);
void oct_canvas_dot(struct oct_canvas *canvas, double x, double y, double radius);
void oct_canvas_dash(struct oct_canvas *canvas, bool dashed, double on, double off);

enum oct_canvas_style {
    OCT_TEXT_BOLD = 1,
    OCT_TEXT_MIDDLE = 2, /* x is its middle, or its right end; else its left one */
    OCT_TEXT_RIGHT = 4,
    OCT_TEXT_HALOED = 8,  /* with a pale rim, on a picture */
    OCT_TEXT_UPWARD = 16, /* turned */
};

/* One line of text, its middle at height y; NULL: none. */
void oct_canvas_text(struct oct_canvas *canvas, double x, double y, double size, unsigned style,
                     const char *text);
/* Shortened to this width by an ellipsis at its end; any bytes. Returns the width that it takes. */
double oct_canvas_text_within(struct oct_canvas *canvas, double x, double y, double width,
                              double size, unsigned style, const char *text);
double oct_canvas_text_width(struct oct_canvas *canvas, double size, unsigned style,
                             const char *text); /* 0 of NULL */

/* ---- colours ---- */

enum oct_colours {
    OCT_COLOURS_GREY,
    OCT_COLOURS_MAP,       /* from dark blue to yellow (viridis) */
    OCT_COLOURS_DIVERGING, /* from blue over white to red, also for those who see both alike */
};

/* The colour of 0 .. 1. */
unsigned oct_canvas_shade(enum oct_colours colours, double fraction);

/* Of series that stand side by side; told apart by those who see red and green alike (Okabe and Ito
 * 2008). */
unsigned oct_canvas_series_colour(unsigned i);

/* ---- values in a box ---- */

/* A box of the canvas, px; at its upper left corner lie the values `left` and `top` of its axes, of
 * which a unit has per_x and per_y px. */
struct oct_view {
    double x, y, width, height;
    double left, top, per_x, per_y;
};

void oct_view_clip(struct oct_canvas *canvas, const struct oct_view *view); /* and cairo_save */

struct oct_canvas_values {
    const float *values; /* [n_y][n_x] */
    uint32_t n_y, n_x;
    double lo, hi; /* the ends of the colours */
    enum oct_colours colours;
    const uint8_t *tinted; /* [n_y][n_x], of grey values: 1: warmer; NULL: none is */
    const uint8_t *valid;  /* alike: 0: nothing is there; NULL: all are */
    unsigned nothing;      /* the colour of that and of what is not finite */
    bool smooth;           /* enlarged values go over into each other; else they are boxes */
};

/* Stretched over the box. */
void oct_canvas_values(struct oct_canvas *canvas, const struct oct_view *view,
                       const struct oct_canvas_values *values);

/* Lines of px width, cut off at the box; NaN interrupts them. A single point is a dot. rimmed: with
 * a pale rim, so that they show on all colours. */
void oct_canvas_paths(struct oct_canvas *canvas, const struct oct_view *view,
                      const struct oct_plot_path *paths, size_t n, double px, bool rimmed);

/* 1, 2 or 5 times a power of ten. */
double oct_round_step(double about);

/* A bar of about a fifth of `width` px that ends at `right`;
 * its length above it or, on a page, beside it. */
void oct_canvas_scale_bar(struct oct_canvas *canvas, double right, double y, double width,
                          double um_px, bool on_page);

/* A bar of the colours of lo to hi, upward, with ticks and, turned, its label (NULL: none). */
void oct_canvas_colour_bar(struct oct_canvas *canvas, double x, double y, double height, double lo,
                           double hi, enum oct_colours colours, const char *label);

/* A line of colour and a label each, from x on; returns where they end (sheet.c). */
double oct_canvas_legends(struct oct_canvas *canvas, double x, double y,
                          const struct oct_plot_legend *legends, unsigned n);

/* Into a box of the canvas, with all that belongs to it, as large as it becomes (picture.c);
 * least_px does nothing. OCT_E_NO_MEMORY. */
enum oct_err oct_canvas_picture(struct oct_canvas *canvas, const struct oct_plot_picture *plot,
                                const struct oct_view *box, struct oct_error *err);

/* ---- lines over axes (axes.c) ---- */

/* Into a box of the canvas. diverging: bars have these colours along x, on a pale ground; then
 * there is no grid. */
void oct_canvas_plot(struct oct_canvas *canvas, const struct oct_plot_lines *plot, double x,
                     double y, double width, double height, bool in_tile, bool diverging);

struct oct_axis {
    double least, most; /* values at both ends */
    double from, to;    /* px of the canvas, of least and of most */
    unsigned n_ticks;   /* about so many */
};

double oct_axis_place(const struct oct_axis *axis, double value);

/* Ticks of `out` px from `at` on, with their numbers; grid: where lines end; NaN: none. */
void oct_axis_draw(struct oct_canvas *canvas, const struct oct_axis *axis, bool is_x, double at,
                   double out, double grid);
/* px of the widest number. */
double oct_axis_widest(struct oct_canvas *canvas, const struct oct_axis *axis);

#endif
