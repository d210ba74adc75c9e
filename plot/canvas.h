/* What lines and pictures have in common: a canvas of cairo's, its letters, its colours. Private to
 * this room: it shows cairo's types. One thread uses a canvas at a time. */
#ifndef OCT_PLOT_CANVAS_H
#define OCT_PLOT_CANVAS_H

#include "pipeline/base/err.h"

#include <cairo.h>
#include <stdbool.h>
#include <stdint.h>

struct oct_canvas {
    cairo_surface_t *surface;
    cairo_t *cairo;
};

enum oct_canvas_align { OCT_CANVAS_LEFT, OCT_CANVAS_MIDDLE, OCT_CANVAS_RIGHT };

/* White, width x height px. OCT_E_NO_MEMORY; *canvas is empty then. */
enum oct_err oct_canvas_init(struct oct_canvas *canvas, int width, int height,
                             struct oct_error *err);
void oct_canvas_finish(struct oct_canvas *canvas); /* of an empty one too */

/* Writes the PNG file, whole or not at all. */
enum oct_err oct_canvas_write(const struct oct_canvas *canvas, const char *path, bool force,
                              struct oct_error *err);

void oct_canvas_colour(struct oct_canvas *canvas, unsigned rgb); /* 0xRRGGBB */

/* One line of text, its middle at height y. haloed: with a pale rim, on a picture. */
void oct_canvas_text(struct oct_canvas *canvas, double x, double y, double size, bool bold,
                     enum oct_canvas_align align, bool haloed, const char *text);
double oct_canvas_text_width(struct oct_canvas *canvas, double size, bool bold, const char *text);

/* Colour number i of series that stand side by side; told apart by those who see red and green
 * alike (Okabe and Ito 2008). */
unsigned oct_canvas_series_colour(unsigned i);

/* The colour of 0 .. 1 from dark blue to yellow (viridis). */
unsigned oct_canvas_map_colour(double fraction);

/* The colour of 0 .. 1 from blue over white at 0.5 to red, also for those who see red and green
 * alike. */
unsigned oct_canvas_diverging_colour(double fraction);

/* Values as an image, stretched over a box. */
struct oct_canvas_values {
    const float *values; /* [n_y][n_x]; what is not finite is a pale grey */
    uint32_t n_y, n_x;
    double lo, hi;              /* black and white, or the ends of the map's colours */
    bool in_colour;             /* by oct_canvas_map_colour */
    bool diverging;             /* by oct_canvas_diverging_colour */
    const uint8_t *tinted;      /* [n_y][n_x], of grey values: 1: warmer; NULL: none is */
    bool blue_nothing;          /* what is not finite is a pale blue */
    bool smooth;                /* enlarged values go over into each other; else they are boxes */
    double x, y, width, height; /* px: the box */
};
enum oct_err oct_canvas_draw_values(struct oct_canvas *canvas,
                                    const struct oct_canvas_values *values, struct oct_error *err);

/* A bar of about a fifth of a box's width, 1, 2 or 5 times a power of ten long, in its lower right
 * corner with its length above it. um_px: of a px of the canvas. */
void oct_canvas_scale_bar(struct oct_canvas *canvas, double x, double y, double width,
                          double height, double um_px);

/* A bar of the colours of lo to hi, upward, with ticks and, turned, its label (NULL: none). */
void oct_canvas_colour_bar(struct oct_canvas *canvas, double x, double y, double height, double lo,
                           double hi, bool diverging, const char *label);

/* "200 um" or "2 mm", with the right letter. */
void oct_canvas_length_text(double um, char text[48]);

/* Ticks of an axis from least to most: *first, and *step of 1, 2 or 5 times a power of ten, about n
 * of them. least < most. */
void oct_canvas_ticks(double least, double most, unsigned n, double *first, double *step);
/* A tick's value with the digits that steps of `step` need. */
void oct_canvas_tick_text(double value, double step, char text[32]);

#endif
