#include "tools/plot/axes.h"
#include "tools/plot/plot.h"

#include <math.h>

#define MOST_WIDTH 1500.0 /* of all tiles */
#define MOST_TILE 560.0   /* the height of one */
#define MOST_SCALE 12.0   /* px of the page a pixel */
#define HISTOGRAM_WIDTH 600.0
#define HISTOGRAM_HEIGHT 440.0
#define MARGIN 24.0
#define GAP 22.0
#define TITLE 26.0 /* of a tile */
#define LETTERS 15.0
#define SMALL_LETTERS 14.0
#define INK 0x222222
#define COLOURS 140.0 /* the width of their scale */
#define MOST_COLUMNS 8u
#define MOST_ROWS 64u

struct page {
    struct oct_canvas canvas;
    const struct oct_plot_sheet *plot;
    unsigned n_columns, n_rows;
    double x[MOST_COLUMNS + 1], y[MOST_ROWS + 1]; /* of columns and rows, and where they end */
    const struct oct_plot_tile *coloured;         /* one that is; NULL: none */
};

/* ---- sizes ---- */

/* px of the page a pixel's width, and a pixel's height in widths. */
static double scale_of(const struct page *p, const struct oct_plot_tile *t, double *high)
{
    const double wide = (MOST_WIDTH - (p->n_columns - 1) * GAP) / p->n_columns;
    *high = t->um_dx > 0 && t->um_dy > 0 ? t->um_dy / t->um_dx : 1;
    return fmin(MOST_SCALE, fmin(wide / t->width, MOST_TILE / (t->height * *high)));
}

static void size_of(const struct page *p, const struct oct_plot_tile *t, double *width,
                    double *height)
{
    double high;
    *width = HISTOGRAM_WIDTH;
    *height = HISTOGRAM_HEIGHT;
    if (!t->pixels)
        return;
    const double scale = scale_of(p, t, &high);
    *width = fmax(1, floor(t->width * scale));
    *height = fmax(1, floor(t->height * high * scale));
}

/* Wide enough for the titles of its tiles too. */
static void lay_out(struct page *p)
{
    const struct oct_plot_sheet *plot = p->plot;
    double width[MOST_COLUMNS] = {0}, height[MOST_ROWS] = {0};
    for (unsigned i = 0; i < plot->n_tiles; i++) {
        const struct oct_plot_tile *t = &plot->tiles[i];
        const unsigned column = i % p->n_columns, row = i / p->n_columns;
        double w, h;
        size_of(p, t, &w, &h);
        if (t->title)
            w = fmax(w, oct_canvas_text_width(&p->canvas, SMALL_LETTERS, false, t->title));
        width[column] = fmax(width[column], w);
        height[row] = fmax(height[row], h);
        p->coloured = t->pixels && t->diverging ? t : p->coloured;
    }
    p->x[0] = MARGIN;
    p->y[0] = (plot->title ? 52 : MARGIN) + TITLE;
    for (unsigned i = 0; i < p->n_columns; i++)
        p->x[i + 1] = p->x[i] + width[i] + GAP;
    for (unsigned i = 0; i < p->n_rows; i++)
        p->y[i + 1] = p->y[i] + height[i] + GAP + TITLE;
}

/* ---- tiles ---- */

static enum oct_err draw_pixels(struct page *p, const struct oct_plot_tile *t, double x, double y,
                                struct oct_error *err)
{
    double high, width, height;
    size_of(p, t, &width, &height);
    const struct oct_canvas_values values = {.values = t->pixels,
                                             .n_y = t->height,
                                             .n_x = t->width,
                                             .lo = t->lo,
                                             .hi = t->hi,
                                             .diverging = t->diverging,
                                             .tinted = t->tinted,
                                             .blue_nothing = true,
                                             .x = x,
                                             .y = y,
                                             .width = width,
                                             .height = height};
    const enum oct_err e = oct_canvas_draw_values(&p->canvas, &values, err);
    if (!e && t->um_dx > 0)
        oct_canvas_scale_bar(&p->canvas, x, y, width, height, t->um_dx / scale_of(p, t, &high));
    return e;
}

static void draw_bins(struct oct_axes *a, const struct oct_plot_tile *t)
{
    cairo_t *c = a->canvas.cairo;
    const double bin = (t->hi - t->lo) / t->n_bins, floor_px = oct_axis_place(&a->y, 0);
    cairo_set_antialias(c, CAIRO_ANTIALIAS_NONE);
    for (unsigned i = 0; i < t->n_bins; i++) {
        const double left = oct_axis_place(&a->x, t->lo + i * bin);
        const double right = oct_axis_place(&a->x, t->lo + (i + 1) * bin);
        const double top = oct_axis_place(&a->y, t->bins[i]);
        oct_canvas_colour(&a->canvas, t->diverging
                                          ? oct_canvas_diverging_colour((i + 0.5) / t->n_bins)
                                          : oct_canvas_series_colour(0));
        cairo_rectangle(c, left, top, right - left, floor_px - top);
        cairo_fill(c);
    }
    cairo_set_antialias(c, CAIRO_ANTIALIAS_DEFAULT);
}

static void draw_histogram(struct page *p, const struct oct_plot_tile *t, double x, double y)
{
    struct oct_axes a = {.canvas = p->canvas, .x_label = t->x_label, .y_label = t->y_label};
    oct_axis_clear(&a.x);
    oct_axis_clear(&a.y);
    oct_axis_include(&a.y, 0);
    for (unsigned i = 0; i < t->n_bins; i++)
        oct_axis_include(&a.y, t->bins[i]);
    oct_axis_widen(&a.y, 0.06);
    a.x.least = t->lo;
    a.x.most = t->hi;
    cairo_save(p->canvas.cairo);
    cairo_translate(p->canvas.cairo, x, y);
    oct_axes_set(&a, (int)HISTOGRAM_WIDTH, (int)HISTOGRAM_HEIGHT, false);
    oct_canvas_colour(&p->canvas, 0xf6f6f6); /* pale colours of the middle show on it */
    cairo_rectangle(p->canvas.cairo, a.left, a.top, a.right - a.left, a.bottom - a.top);
    cairo_fill(p->canvas.cairo);
    draw_bins(&a, t);
    oct_axes_draw(&a, false);
    cairo_restore(p->canvas.cairo);
}

static enum oct_err draw_tile(struct page *p, unsigned i, struct oct_error *err)
{
    const struct oct_plot_tile *t = &p->plot->tiles[i];
    const double x = p->x[i % p->n_columns], y = p->y[i / p->n_columns];
    oct_canvas_colour(&p->canvas, INK);
    if (t->title)
        oct_canvas_text(&p->canvas, x, y - 13, SMALL_LETTERS, false, OCT_CANVAS_LEFT, false,
                        t->title);
    if (t->pixels)
        return draw_pixels(p, t, x, y, err);
    draw_histogram(p, t, x, y);
    return OCT_OK;
}

/* ---- the page ---- */

static enum oct_err draw(struct page *p, struct oct_error *err)
{
    const struct oct_plot_sheet *plot = p->plot;
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < plot->n_tiles && !e; i++)
        e = draw_tile(p, i, err);
    if (p->coloured)
        oct_canvas_colour_bar(&p->canvas, p->x[p->n_columns], p->y[0],
                              fmin(HISTOGRAM_HEIGHT, p->y[p->n_rows] - p->y[0] - GAP - TITLE),
                              p->coloured->lo, p->coloured->hi, true, plot->value_label);
    oct_canvas_colour(&p->canvas, INK);
    if (plot->title)
        oct_canvas_text(&p->canvas, MARGIN, 28, 17, true, OCT_CANVAS_LEFT, false, plot->title);
    if (plot->footer)
        oct_canvas_text(&p->canvas, MARGIN, p->y[p->n_rows] - TITLE + 2, LETTERS, false,
                        OCT_CANVAS_LEFT, false, plot->footer);
    return e;
}

static double widest_text(struct page *p)
{
    const struct oct_plot_sheet *plot = p->plot;
    double width = 0;
    if (plot->title)
        width = oct_canvas_text_width(&p->canvas, 17, true, plot->title);
    if (plot->footer)
        width = fmax(width, oct_canvas_text_width(&p->canvas, LETTERS, false, plot->footer));
    return width;
}

enum oct_err oct_plot_write_sheet(const char *path, bool force, const struct oct_plot_sheet *plot,
                                  struct oct_error *err)
{
    struct page p = {.plot = plot, .n_columns = plot->n_columns};
    p.n_rows = (plot->n_tiles - 1) / p.n_columns + 1;
    if (p.n_columns > MOST_COLUMNS || p.n_rows > MOST_ROWS)
        return oct_fail(err, OCT_E_ARG, "%s: %u tiles: too many for a sheet", path, plot->n_tiles);
    enum oct_err e = oct_canvas_init(&p.canvas, 1, 1, err);
    if (e)
        return e;
    lay_out(&p);
    const double right =
        fmax(p.x[p.n_columns] - GAP + (p.coloured ? GAP + COLOURS : 0), MARGIN + widest_text(&p));
    const double bottom = p.y[p.n_rows] - TITLE - GAP + (plot->footer ? 40 : 0);
    oct_canvas_finish(&p.canvas);
    e = oct_canvas_init(&p.canvas, (int)ceil(right + MARGIN), (int)ceil(bottom + MARGIN), err);
    if (e)
        return e;
    e = draw(&p, err);
    if (!e)
        e = oct_canvas_write(&p.canvas, path, force, err);
    oct_canvas_finish(&p.canvas);
    return e;
}
