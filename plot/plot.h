/* Figures as files, drawn by cairo: lines over axes, and pictures with a scale bar and a map over
 * them. White ground, for papers and pages. A name that ends in .svg or .pdf makes such a file, any
 * other a PNG. Whole or not at all (formats/whole_file.h).
 *
 * Errors: OCT_E_IO, OCT_E_NO_SPACE, OCT_E_NO_MEMORY, those of oct_whole_file_init. Any thread. */
#ifndef OCT_PLOT_PLOT_H
#define OCT_PLOT_PLOT_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- lines ---- */

enum oct_plot_style {
    OCT_PLOT_LINE,
    OCT_PLOT_POINTS,
    OCT_PLOT_DASHES, /* a line beside the others: a fit */
    OCT_PLOT_BARS,   /* from 0 to y about each x, which are as far apart as bars are wide */
};

struct oct_plot_series {
    const double *x, *y; /* [n]; NaN interrupts the line */
    size_t n;
    const char *label; /* in the legend; NULL: none */
    enum oct_plot_style style;
};

/* A point that is marked, with a line down to the x axis. */
struct oct_plot_mark {
    double x, y;
    const char *text; /* beside it */
};

struct oct_plot_lines {
    const char *title, *x_label, *y_label; /* NULL: none */
    const struct oct_plot_series *series;
    unsigned n_series;
    const struct oct_plot_mark *marks;
    unsigned n_marks;
    bool has_y; /* y_least and y_most are given; else the axis holds all values */
    double y_least, y_most;
    bool from_zero; /* both axes begin at 0 at the latest */
};

enum oct_err oct_plot_write_lines(const char *path, bool force, const struct oct_plot_lines *plot,
                                  struct oct_error *err);

/* ---- fields: values over two axes, x to the right and y downward ---- */

struct oct_plot_path {
    const double *x, *y; /* [n], of the axes */
    size_t n;
    unsigned rgb; /* 0xRRGGBB */
};

struct oct_plot_field {
    const char *title, *x_label, *y_label; /* NULL: none */
    const float *values;                   /* [n_y][n_x]; NaN: a pale grey */
    uint32_t n_y, n_x;
    double lo, hi;          /* black and white */
    double x_least, x_most; /* of the axes, at the outer sides of the first and the last column */
    double y_least, y_most; /* and row */
    const struct oct_plot_path *paths; /* drawn thin over it */
    size_t n_paths;
};

enum oct_err oct_plot_write_field(const char *path, bool force, const struct oct_plot_field *plot,
                                  struct oct_error *err);

/* ---- overlays: rings on a picture, a pixel a pixel ---- */

struct oct_plot_ring {
    double x, y, radius_x, radius_y; /* px of the picture; (0, 0) is the middle of the first */
    unsigned rgb;
    bool dashed;
    char text[24];      /* beside it; "": none */
    const double *tail; /* [n_tail][2], x and y: where it came from, the oldest first */
    unsigned n_tail;
};

struct oct_plot_overlay {
    const float *pixels;  /* [height][width] */
    const uint8_t *valid; /* alike; NULL: all are. Others are dark blue. */
    uint32_t height, width;
    double lo, hi; /* black and white */
    const struct oct_plot_ring *rings;
    size_t n_rings;
};

enum oct_err oct_plot_write_overlay(const char *path, bool force,
                                    const struct oct_plot_overlay *overlay, struct oct_error *err);

/* The same as rgb: [height][width][3], red first. OCT_E_NO_MEMORY. */
enum oct_err oct_plot_draw_overlay(uint8_t *rgb, const struct oct_plot_overlay *overlay,
                                   struct oct_error *err);

/* ---- pictures ---- */

/* Values over a picture, in colour, with their scale beside it. */
struct oct_plot_map {
    const double *values; /* [n_y][n_x]; NaN: the picture alone */
    uint32_t n_y, n_x;
    double y, x, step_y, step_x; /* cell (j, i) covers step_y x step_x px from (y + j step_y, x +
                                    i step_x) on, of the picture's pixels */
    const char *label;           /* "cells/mm2" */
};

struct oct_plot_text {
    double y, x; /* px of the picture, of its middle */
    const char *text;
};

struct oct_plot_picture {
    const char *title, *footer; /* NULL: none */
    const float *pixels;        /* [height][width]; NaN is drawn as a pale grey */
    uint32_t height, width;
    double lo, hi;                     /* black and white; both 0: the middle 99 % of the values */
    bool in_colour;                    /* the pixels themselves, with their scale */
    const char *value_label;           /* of the colours' scale; NULL: none */
    double um_dx;                      /* of a pixel, for the scale bar; 0 or NaN: no bar */
    double um_dy;                      /* alike; 0 or NaN: pixels are squares */
    bool smooth;                       /* enlarged pixels go over into each other */
    bool fills;                        /* a page's box, whatever the shape of pixels */
    double least_px;                   /* small pictures are enlarged until their shorter side has
                                       so many px; 0: 400 */
    const struct oct_plot_path *paths; /* lines over it, px of the picture; 0 is the middle of the
                                          first */
    size_t n_paths;
    const char *compass[4];         /* words for up, right, down, left; NULL: none */
    const struct oct_plot_map *map; /* NULL: none */
    const struct oct_plot_text *texts;
    unsigned n_texts;
};

enum oct_err oct_plot_write_picture(const char *path, bool force,
                                    const struct oct_plot_picture *plot, struct oct_error *err);

/* ---- sheets: pictures and histograms beside and below each other ---- */

struct oct_plot_tile {
    const char *title;   /* above it; NULL: none */
    const float *pixels; /* [height][width]; NaN is drawn as a pale blue */
    uint32_t height, width;
    double lo, hi;         /* black and white */
    const uint8_t *tinted; /* [height][width], of grey pixels: 1: warmer; NULL: none is */
    bool diverging;        /* from blue over white in the middle of lo .. hi to red; else grey */
    double um_dx, um_dy;   /* of a pixel, for its shape and a scale bar; 0 or NaN: squares */
    const struct oct_plot_path *paths; /* thin lines over it, px as those of oct_plot_picture; NaN
                                          interrupts them */
    size_t n_paths;

    /* A histogram in place of pixels (NULL): n_bins from lo to hi. */
    const double *bins;
    unsigned n_bins;
    const char *x_label, *y_label;
};

struct oct_plot_legend {
    const char *label;
    unsigned rgb;
};

struct oct_plot_sheet {
    const char *title, *footer, *value_label; /* NULL: none; the label of diverging colours, which
                                                 are the same in all tiles */
    const struct oct_plot_tile *tiles;
    unsigned n_tiles;
    unsigned n_columns; /* 0, of fitted tiles: as many as make them largest */
    bool fitted;        /* pictures of one size, which fill a page, smooth, above one scale bar */
    const struct oct_plot_legend *legends;
    unsigned n_legends;
};

enum oct_err oct_plot_write_sheet(const char *path, bool force, const struct oct_plot_sheet *plot,
                                  struct oct_error *err);

/* ---- a page: figures in boxes, to be printed ---- */

/* The units of a page: half a point. A4. */
#define OCT_PLOT_PAGE_WIDTH 1190.55
#define OCT_PLOT_PAGE_HEIGHT 1683.78

struct oct_plot_box {
    double x, y, width, height;
    const struct oct_plot_picture *picture; /* one of these; */
    const struct oct_plot_lines *lines;
    const char *title, *why;               /* where there is neither: what is missing, and why */
    const struct oct_plot_legend *legends; /* below the box */
    unsigned n_legends;
};

/* What a page says in words; what is too long for its place is shortened by an ellipsis. */
struct oct_plot_fact {
    const char *label, *text;
    unsigned columns; /* of the heading that it takes; 0: one */
};

struct oct_plot_page {
    const char *title, *right;        /* of the heading: to the left and to the right */
    const struct oct_plot_fact *head; /* below it, OCT_PLOT_HEAD_COLUMNS a row */
    unsigned n_head;
    const struct oct_plot_box *boxes;
    unsigned n_boxes;
    const struct oct_plot_fact *facts; /* a row each, from facts_y on */
    unsigned n_facts;
    double facts_y;
    const char *foot;
    const char *date; /* when the document was made, ISO 8601; NULL: it says no date */
};
#define OCT_PLOT_HEAD_COLUMNS 4u
#define OCT_PLOT_HEAD_ROW 48.0 /* the first begins at 98 */
#define OCT_PLOT_MARGIN 60.0

/* One page of A4 as a PDF: *pdf is the caller's, from malloc. OCT_E_NO_MEMORY, OCT_E_IO. */
enum oct_err oct_plot_page_pdf(const struct oct_plot_page *page, unsigned char **pdf, size_t *n,
                               struct oct_error *err);

/* The values that these shares of the n finite ones are below; NaN: there is none. */
enum oct_err oct_plot_shares(const float *values, size_t n, const double *shares, unsigned n_shares,
                             double *at, struct oct_error *err);

/* Lambert's shading of a surface that is lit from the upper left, 45 degrees above it: the cosine
 * between light and normal, 0 to 1; of a level surface sqrt(1 / 2). NaN where a height or both of
 * its neighbours along an axis are. Heights point to the viewer and are multiplied by `gain`;
 * spacing in the same unit. May not be done in place. */
void oct_plot_shade(const float *heights, uint32_t n_y, uint32_t n_x, double spacing_y,
                    double spacing_x, double gain, float *shade);

#endif
