#include "plot/axes.h"
#include "plot/plot.h"

#include <math.h>

#define MOST_WIDTH 1500.0 /* of all tiles */
#define HISTOGRAM_WIDTH 600.0
#define HISTOGRAM_HEIGHT 440.0
#define MARGIN 24.0
#define TITLE 26.0 /* of a tile */
#define LETTERS 15.0
#define SMALL_LETTERS 14.0
#define INK 0x222222
#define COLOURS 140.0 /* the width of their scale */
#define PATH_PX 1.4
#define MOST_COLUMNS 8u
#define MOST_ROWS 64u

/* Of tiles with sizes of their own, and of those that are fitted into a page. */
static const struct rules {
    double gap, title_rise;
    double most_height; /* of a tile, of all tiles */
    double most_scale;  /* px of the page a pixel */
    double footer;      /* the height of its row */
} all_rules[] = {{22, 13, 560, 12, 64}, {18, 12, 1100, 6, 46}};

struct page {
    struct oct_canvas canvas;
    const struct oct_plot_sheet *plot;
    const struct rules *rules;
    unsigned n_columns, n_rows;
    double name;                                  /* the height of a tile's title */
    double x[MOST_COLUMNS + 1], y[MOST_ROWS + 1]; /* of columns and rows, and where they end */
    const struct oct_plot_tile *coloured;         /* one that is; NULL: none */
};

/* ---- sizes ---- */

static unsigned rows_of(const struct page *p, unsigned n_columns)
{
    return (p->plot->n_tiles - 1) / n_columns + 1;
}

static double height_of_pixel(const struct oct_plot_tile *t) /* in widths */
{
    return t->um_dx > 0 && t->um_dy > 0 ? t->um_dy / t->um_dx : 1;
}

/* px of the page a pixel's width. */
static double scale_of(const struct page *p, const struct oct_plot_tile *t, unsigned n_columns)
{
    const struct rules *r = p->rules;
    const unsigned n_rows = rows_of(p, n_columns);
    const double wide = (MOST_WIDTH - (n_columns - 1) * r->gap) / n_columns;
    const double high = p->plot->fitted
                            ? (r->most_height - (n_rows - 1) * (r->gap + p->name)) / n_rows
                            : r->most_height;
    return fmin(r->most_scale, fmin(wide / t->width, high / (t->height * height_of_pixel(t))));
}

static void size_of(const struct page *p, const struct oct_plot_tile *t, double *width,
                    double *height)
{
    *width = HISTOGRAM_WIDTH;
    *height = HISTOGRAM_HEIGHT;
    if (!t->pixels)
        return;
    const double scale = scale_of(p, t, p->n_columns);
    *width = fmax(1, floor(t->width * scale));
    *height = fmax(1, floor(t->height * height_of_pixel(t) * scale));
}

static double title_width(struct page *p, const struct oct_plot_tile *t)
{
    return t->title ? oct_canvas_text_width(&p->canvas, SMALL_LETTERS, false, t->title) : 0;
}

/* Columns are wide enough for the titles of their tiles, but where tiles are fitted. */
static void lay_out(struct page *p)
{
    const struct oct_plot_sheet *plot = p->plot;
    double width[MOST_COLUMNS] = {0}, height[MOST_ROWS] = {0};
    for (unsigned i = 0; i < plot->n_tiles; i++) {
        const struct oct_plot_tile *t = &plot->tiles[i];
        const unsigned column = i % p->n_columns, row = i / p->n_columns;
        double w, h;
        size_of(p, t, &w, &h);
        width[column] = fmax(width[column], plot->fitted ? w : fmax(w, title_width(p, t)));
        height[row] = fmax(height[row], h);
        p->coloured = t->pixels && t->diverging ? t : p->coloured;
    }
    p->x[0] = MARGIN;
    p->y[0] = (plot->title || plot->n_legends > 0 ? 52 : MARGIN) + p->name;
    for (unsigned i = 0; i < p->n_columns; i++)
        p->x[i + 1] = p->x[i] + width[i] + p->rules->gap;
    for (unsigned i = 0; i < p->n_rows; i++)
        p->y[i + 1] = p->y[i] + height[i] + p->rules->gap + p->name;
}

static enum oct_err choose_columns(struct page *p, const char *path, struct oct_error *err)
{
    const struct oct_plot_sheet *plot = p->plot;
    p->name = plot->fitted ? 0 : TITLE;
    for (unsigned i = 0; i < plot->n_tiles; i++)
        p->name = plot->tiles[i].title ? TITLE : p->name;
    p->n_columns = plot->n_columns > 0 ? plot->n_columns : 1;
    for (unsigned n = 2; plot->n_columns == 0 && n <= plot->n_tiles; n++)
        if (scale_of(p, plot->tiles, n) > scale_of(p, plot->tiles, p->n_columns))
            p->n_columns = n;
    p->n_rows = rows_of(p, p->n_columns);
    return p->n_columns <= MOST_COLUMNS && p->n_rows <= MOST_ROWS
               ? OCT_OK
               : oct_fail(err, OCT_E_ARG, "%s: %u tiles: too many for a sheet", path,
                          plot->n_tiles);
}

/* ---- tiles ---- */

static void draw_path(struct page *p, const struct oct_plot_tile *t,
                      const struct oct_plot_path *path, double x, double y)
{
    cairo_t *c = p->canvas.cairo;
    const double scale = scale_of(p, t, p->n_columns);
    bool is_down = false;
    for (size_t i = 0; i < path->n; i++) {
        const bool is_known = isfinite(path->x[i]) && isfinite(path->y[i]);
        const double to_x = x + scale * (path->x[i] + 0.5);
        const double to_y = y + scale * height_of_pixel(t) * (path->y[i] + 0.5);
        if (is_known && is_down)
            cairo_line_to(c, to_x, to_y);
        else if (is_known)
            cairo_move_to(c, to_x - 0.5, to_y); /* a single A-line shows as a dot */
        if (is_known && !is_down)
            cairo_line_to(c, to_x, to_y);
        is_down = is_known;
    }
    oct_canvas_colour(&p->canvas, path->rgb);
    cairo_set_line_width(c, PATH_PX);
    cairo_stroke(c);
}

static enum oct_err draw_pixels(struct page *p, const struct oct_plot_tile *t, double x, double y,
                                struct oct_error *err)
{
    cairo_t *c = p->canvas.cairo;
    double width, height;
    size_of(p, t, &width, &height);
    const struct oct_canvas_values values = {.values = t->pixels,
                                             .n_y = t->height,
                                             .n_x = t->width,
                                             .lo = t->lo,
                                             .hi = t->hi,
                                             .diverging = t->diverging,
                                             .tinted = t->tinted,
                                             .blue_nothing = true,
                                             .smooth = p->plot->fitted,
                                             .x = x,
                                             .y = y,
                                             .width = width,
                                             .height = height};
    const enum oct_err e = oct_canvas_draw_values(&p->canvas, &values, err);
    if (e)
        return e;
    cairo_save(c);
    cairo_rectangle(c, x, y, width, height);
    cairo_clip(c);
    cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
    for (size_t i = 0; i < t->n_paths; i++)
        draw_path(p, t, &t->paths[i], x, y);
    cairo_restore(c);
    if (t->um_dx > 0 && !p->plot->fitted)
        oct_canvas_scale_bar(&p->canvas, x, y, width, height,
                             t->um_dx / scale_of(p, t, p->n_columns));
    return OCT_OK;
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
        oct_canvas_text(&p->canvas, x, y - p->rules->title_rise, SMALL_LETTERS, false,
                        OCT_CANVAS_LEFT, false, t->title);
    if (t->pixels)
        return draw_pixels(p, t, x, y, err);
    draw_histogram(p, t, x, y);
    return OCT_OK;
}

/* ---- the page ---- */

/* Title and legends; where they end. */
static double draw_heading(struct page *p)
{
    double x = MARGIN;
    oct_canvas_colour(&p->canvas, INK);
    if (p->plot->title) {
        oct_canvas_text(&p->canvas, x, 28, 17, true, OCT_CANVAS_LEFT, false, p->plot->title);
        x += oct_canvas_text_width(&p->canvas, 17, true, p->plot->title) +
             (p->plot->fitted ? 30 : 0);
    }
    for (unsigned i = 0; i < p->plot->n_legends; i++) {
        const struct oct_plot_legend *legend = &p->plot->legends[i];
        oct_canvas_colour(&p->canvas, legend->rgb);
        cairo_rectangle(p->canvas.cairo, x, 26, 26, 4);
        cairo_fill(p->canvas.cairo);
        oct_canvas_colour(&p->canvas, INK);
        oct_canvas_text(&p->canvas, x + 33, 28, LETTERS, false, OCT_CANVAS_LEFT, false,
                        legend->label);
        x += 33 + oct_canvas_text_width(&p->canvas, LETTERS, false, legend->label) + 24;
    }
    return x;
}

/* One bar for all fitted tiles, below them: in flat B-scans it would cover the tissue. */
static bool has_bar(const struct page *p)
{
    return p->plot->fitted && p->plot->tiles[0].um_dx > 0;
}

static void draw_bar(struct page *p, double right, double y)
{
    const struct oct_plot_tile *t = p->plot->tiles;
    struct oct_canvas *c = &p->canvas;
    double first, um;
    char text[48];
    oct_canvas_ticks(0, t->width * t->um_dx, 5, &first, &um);
    const double length = um / t->um_dx * scale_of(p, t, p->n_columns);
    oct_canvas_colour(c, INK);
    cairo_rectangle(c->cairo, right - length, y - 2, length, 4);
    cairo_fill(c->cairo);
    oct_canvas_length_text(um, text);
    oct_canvas_text(c, right - length - 10, y, LETTERS, true, OCT_CANVAS_RIGHT, false, text);
}

static enum oct_err draw(struct page *p, double right, double bottom, struct oct_error *err)
{
    const struct oct_plot_sheet *plot = p->plot;
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < plot->n_tiles && !e; i++)
        e = draw_tile(p, i, err);
    if (p->coloured)
        oct_canvas_colour_bar(&p->canvas, p->x[p->n_columns], p->y[0],
                              fmin(HISTOGRAM_HEIGHT, bottom - p->y[0]), p->coloured->lo,
                              p->coloured->hi, true, plot->value_label);
    draw_heading(p);
    if (plot->footer)
        oct_canvas_text(&p->canvas, MARGIN, bottom + 24, LETTERS, false, OCT_CANVAS_LEFT, false,
                        plot->footer);
    if (has_bar(p))
        draw_bar(p, right, bottom + 24);
    return e;
}

/* Where tiles and texts end. */
static double find_right(struct page *p)
{
    const struct oct_plot_sheet *plot = p->plot;
    const double tiles = p->x[p->n_columns] - p->rules->gap;
    double right = fmax(tiles + (p->coloured ? p->rules->gap + COLOURS : 0), draw_heading(p));
    if (plot->footer)
        right =
            fmax(right, MARGIN + oct_canvas_text_width(&p->canvas, LETTERS, false, plot->footer));
    for (unsigned i = 0; i < plot->n_tiles && plot->fitted; i++)
        right = fmax(right, p->x[i % p->n_columns] + title_width(p, &plot->tiles[i]));
    return right;
}

enum oct_err oct_plot_write_sheet(const char *path, bool force, const struct oct_plot_sheet *plot,
                                  struct oct_error *err)
{
    struct page p = {.plot = plot, .rules = &all_rules[plot->fitted]};
    enum oct_err e = choose_columns(&p, path, err);
    if (!e)
        e = oct_canvas_init(&p.canvas, 1, 1, err); /* to measure texts on */
    if (e)
        return e;
    lay_out(&p);
    const double right = find_right(&p), bottom = p.y[p.n_rows] - p.name - p.rules->gap;
    const double below = plot->footer || has_bar(&p) ? p.rules->footer : MARGIN;
    oct_canvas_finish(&p.canvas);
    e = oct_canvas_init(&p.canvas, (int)ceil(right + MARGIN), (int)ceil(bottom + below), err);
    if (e)
        return e;
    e = draw(&p, right, bottom, err);
    if (!e)
        e = oct_canvas_write(&p.canvas, path, force, err);
    oct_canvas_finish(&p.canvas);
    return e;
}
