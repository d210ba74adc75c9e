/* Tiles beside and below each other. */
#include "plot/canvas.h"

#include <math.h>

#define MOST_WIDTH 1500.0 /* of all tiles */
#define HISTOGRAM_WIDTH 600.0
#define HISTOGRAM_HEIGHT 440.0
#define TITLE 26.0 /* of a tile */
#define SMALL_LETTERS 14.0
#define NOTHING_BLUE 0xa9c8ecu /* that no grey is taken for */
#define PATH_PX 1.4
#define MOST_COLUMNS 8u
#define MOST_ROWS 64u
#define MOST_BINS 1024u

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
    double right;                                 /* where tiles and texts end */
    const struct oct_plot_tile *coloured;         /* one that is; NULL: none */
};

/* ---- sizes ---- */

static double height_of_pixel(const struct oct_plot_tile *t) /* in widths */
{
    return t->um_dx > 0 && t->um_dy > 0 ? t->um_dy / t->um_dx : 1;
}

/* px of the page a pixel's width. */
static double scale_of(const struct page *p, const struct oct_plot_tile *t, unsigned n_columns)
{
    const struct rules *r = p->rules;
    const unsigned n_rows = (p->plot->n_tiles - 1) / n_columns + 1;
    const double wide = (MOST_WIDTH - (n_columns - 1) * r->gap) / n_columns;
    const double high = p->plot->fitted
                            ? (r->most_height - (n_rows - 1) * (r->gap + p->name)) / n_rows
                            : r->most_height;
    return fmin(r->most_scale, fmin(wide / t->width, high / (t->height * height_of_pixel(t))));
}

static struct oct_view view_of(const struct page *p, unsigned i)
{
    const struct oct_plot_tile *t = &p->plot->tiles[i];
    struct oct_view v = {.x = p->x[i % p->n_columns],
                         .y = p->y[i / p->n_columns],
                         .width = HISTOGRAM_WIDTH,
                         .height = HISTOGRAM_HEIGHT,
                         .left = -0.5,
                         .top = -0.5};
    if (t->pixels) {
        v.per_x = scale_of(p, t, p->n_columns);
        v.per_y = v.per_x * height_of_pixel(t);
        v.width = fmax(1, floor(t->width * v.per_x));
        v.height = fmax(1, floor(t->height * v.per_y));
    }
    return v;
}

/* Columns are wide enough for the titles of their tiles, but where tiles are fitted. */
static void lay_out(struct page *p)
{
    const struct oct_plot_sheet *plot = p->plot;
    double width[MOST_COLUMNS] = {0}, height[MOST_ROWS] = {0};
    for (unsigned i = 0; i < plot->n_tiles; i++) {
        const struct oct_plot_tile *t = &plot->tiles[i];
        const unsigned column = i % p->n_columns, row = i / p->n_columns;
        const struct oct_view v = view_of(p, i);
        const double title =
            plot->fitted ? 0 : oct_canvas_text_width(&p->canvas, SMALL_LETTERS, 0, t->title);
        width[column] = fmax(width[column], fmax(v.width, title));
        height[row] = fmax(height[row], v.height);
        p->coloured = t->pixels && t->diverging ? t : p->coloured;
    }
    p->x[0] = OCT_MARGIN;
    p->y[0] = (plot->title || plot->n_legends > 0 ? 52 : OCT_MARGIN) + p->name;
    for (unsigned i = 0; i < p->n_columns; i++)
        p->x[i + 1] = p->x[i] + width[i] + p->rules->gap;
    for (unsigned i = 0; i < p->n_rows; i++)
        p->y[i + 1] = p->y[i] + height[i] + p->rules->gap + p->name;
    p->right = p->x[p->n_columns] - p->rules->gap;
    p->right += p->coloured ? p->rules->gap + OCT_COLOUR_BAR_PX : 0;
}

static void choose_columns(struct page *p)
{
    const struct oct_plot_sheet *plot = p->plot;
    p->name = plot->fitted ? 0 : TITLE;
    for (unsigned i = 0; i < plot->n_tiles; i++)
        p->name = plot->tiles[i].title ? TITLE : p->name;
    p->n_columns = plot->n_columns > 0 ? plot->n_columns : 1;
    for (unsigned n = 2; plot->n_columns == 0 && n <= plot->n_tiles; n++)
        if (scale_of(p, plot->tiles, n) > scale_of(p, plot->tiles, p->n_columns))
            p->n_columns = n;
    p->n_rows = (plot->n_tiles - 1) / p->n_columns + 1;
}

/* ---- tiles ---- */

static void draw_pixels(struct page *p, const struct oct_plot_tile *t, const struct oct_view *view)
{
    const struct oct_canvas_values values = {.values = t->pixels,
                                             .n_y = t->height,
                                             .n_x = t->width,
                                             .lo = t->lo,
                                             .hi = t->hi,
                                             .colours = t->diverging ? OCT_COLOURS_DIVERGING
                                                                     : OCT_COLOURS_GREY,
                                             .tinted = t->tinted,
                                             .nothing = NOTHING_BLUE,
                                             .smooth = p->plot->fitted};
    oct_canvas_values(&p->canvas, view, &values);
    oct_canvas_paths(&p->canvas, view, t->paths, t->n_paths, PATH_PX, false);
    if (t->um_dx > 0 && !p->plot->fitted)
        oct_canvas_scale_bar(&p->canvas, view->x + view->width - 16, view->y + view->height - 17.5,
                             view->width, t->um_dx / view->per_x, false);
}

static void draw_histogram(struct page *p, const struct oct_plot_tile *t,
                           const struct oct_view *view)
{
    double middle[MOST_BINS], most = 0;
    const unsigned n = t->n_bins < MOST_BINS ? t->n_bins : MOST_BINS;
    for (unsigned i = 0; i < n; i++) {
        middle[i] = t->lo + (i + 0.5) * (t->hi - t->lo) / t->n_bins;
        most = fmax(most, t->bins[i]);
    }
    const struct oct_plot_series bars = {middle, t->bins, n, NULL, OCT_PLOT_BARS};
    const struct oct_plot_lines plot = {.x_label = t->x_label,
                                        .y_label = t->y_label,
                                        .series = &bars,
                                        .n_series = 1,
                                        .has_y = true,
                                        .y_most = most > 0 ? 1.06 * most : 1};
    oct_canvas_plot(&p->canvas, &plot, view->x, view->y, view->width, view->height, true,
                    t->diverging);
}

static void draw_tile(struct page *p, unsigned i)
{
    const struct oct_plot_tile *t = &p->plot->tiles[i];
    const struct oct_view view = view_of(p, i);
    oct_canvas_colour(&p->canvas, OCT_INK, 1);
    oct_canvas_text(&p->canvas, view.x, view.y - p->rules->title_rise, SMALL_LETTERS, 0, t->title);
    if (p->plot->fitted)
        p->right =
            fmax(p->right, view.x + oct_canvas_text_width(&p->canvas, SMALL_LETTERS, 0, t->title));
    if (t->pixels)
        draw_pixels(p, t, &view);
    else
        draw_histogram(p, t, &view);
}

/* ---- the page ---- */

double oct_canvas_legends(struct oct_canvas *canvas, double x, double y,
                          const struct oct_plot_legend *legends, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        oct_canvas_colour(canvas, legends[i].rgb, 1);
        oct_canvas_fill(canvas, x, y - 2, 26, 4);
        oct_canvas_colour(canvas, OCT_INK, 1);
        oct_canvas_text(canvas, x + 33, y, OCT_LETTERS, 0, legends[i].label);
        x += 33 + oct_canvas_text_width(canvas, OCT_LETTERS, 0, legends[i].label) + 24;
    }
    return x;
}

/* Title and legends. */
static void draw_heading(struct page *p)
{
    const struct oct_plot_sheet *plot = p->plot;
    struct oct_canvas *c = &p->canvas;
    double x = OCT_MARGIN;
    oct_canvas_colour(c, OCT_INK, 1);
    oct_canvas_text(c, x, 28, OCT_TITLE_LETTERS, OCT_TEXT_BOLD, plot->title);
    if (plot->title)
        x += oct_canvas_text_width(c, OCT_TITLE_LETTERS, OCT_TEXT_BOLD, plot->title) +
             (plot->fitted ? 30 : 0);
    x = oct_canvas_legends(c, x, 28, plot->legends, plot->n_legends);
    p->right = fmax(p->right, x);
}

enum oct_err oct_plot_write_sheet(const char *path, bool force, const struct oct_plot_sheet *plot,
                                  struct oct_error *err)
{
    struct page p = {.plot = plot, .rules = &all_rules[plot->fitted]};
    choose_columns(&p);
    if (p.n_columns > MOST_COLUMNS || p.n_rows > MOST_ROWS)
        return oct_fail(err, OCT_E_ARG, "%s: %u tiles: too many for a sheet", path, plot->n_tiles);
    p.canvas = oct_canvas();
    lay_out(&p);
    const double bottom = p.y[p.n_rows] - p.name - p.rules->gap;
    for (unsigned i = 0; i < plot->n_tiles; i++)
        draw_tile(&p, i);
    if (p.coloured)
        oct_canvas_colour_bar(&p.canvas, p.x[p.n_columns], p.y[0],
                              fmin(HISTOGRAM_HEIGHT, bottom - p.y[0]), p.coloured->lo,
                              p.coloured->hi, OCT_COLOURS_DIVERGING, plot->value_label);
    draw_heading(&p);
    oct_canvas_text(&p.canvas, OCT_MARGIN, bottom + 24, OCT_LETTERS, 0, plot->footer);
    p.right =
        fmax(p.right, OCT_MARGIN + oct_canvas_text_width(&p.canvas, OCT_LETTERS, 0, plot->footer));
    /* One bar for all fitted tiles, below them: in flat B-scans it would cover the tissue. */
    const struct oct_plot_tile *t = plot->tiles;
    const bool has_bar = plot->fitted && t->um_dx > 0;
    const double scale = scale_of(&p, t, p.n_columns);
    if (has_bar)
        oct_canvas_scale_bar(&p.canvas, p.right, bottom + 24, t->width * scale, t->um_dx / scale,
                             true);
    return oct_canvas_write(&p.canvas, ceil(p.right + OCT_MARGIN),
                            bottom + (plot->footer || has_bar ? p.rules->footer : OCT_MARGIN), path,
                            force, err);
}
