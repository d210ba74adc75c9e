#include "tools/plot/canvas.h"
#include "tools/plot/plot.h"

#include <math.h>

#define MOST_WIDTH 1500.0 /* of all panels */
#define MOST_HEIGHT 1100.0
#define MOST_SCALE 6.0 /* px of the page a pixel */
#define MARGIN 24.0
#define GAP 18.0
#define TITLE 26.0 /* of a panel */
#define LETTERS 15.0
#define SMALL_LETTERS 14.0
#define INK 0x222222
#define PATH_PX 1.4

struct page {
    struct oct_canvas canvas;
    const struct oct_plot_panels *plot;
    unsigned n_columns, n_rows;
    double high;                   /* of a pixel, in widths */
    double scale;                  /* px of the page a pixel's width */
    double width, height, y, name; /* of a panel, the first one's top, the height of its title */
};

static double scale_of(const struct page *p, unsigned n_columns)
{
    const struct oct_plot_panels *plot = p->plot;
    const unsigned n_rows = (plot->n_panels - 1) / n_columns + 1;
    const double wide = (MOST_WIDTH - (n_columns - 1) * GAP) / n_columns;
    const double high = (MOST_HEIGHT - (n_rows - 1) * (GAP + p->name)) / n_rows;
    return fmin(MOST_SCALE, fmin(wide / plot->width, high / (plot->height * p->high)));
}

static void set_size(struct page *p)
{
    const struct oct_plot_panels *plot = p->plot;
    p->high = plot->um_dx > 0 && plot->um_dy > 0 ? plot->um_dy / plot->um_dx : 1;
    p->name = 0;
    for (unsigned i = 0; i < plot->n_panels; i++)
        p->name = plot->panels[i].title ? TITLE : p->name;
    p->n_columns = plot->n_columns > 0 ? plot->n_columns : 1;
    for (unsigned n = 2; plot->n_columns == 0 && n <= plot->n_panels; n++)
        if (scale_of(p, n) > scale_of(p, p->n_columns))
            p->n_columns = n;
    p->n_rows = (plot->n_panels - 1) / p->n_columns + 1;
    p->scale = scale_of(p, p->n_columns);
    p->width = fmax(1, floor(plot->width * p->scale));
    p->height = fmax(1, floor(plot->height * p->high * p->scale));
    p->y = (plot->title || plot->n_legends > 0 ? 52 : MARGIN) + p->name;
}

/* ---- a panel ---- */

static void draw_path(struct page *p, const struct oct_plot_path *path, double x, double y)
{
    cairo_t *c = p->canvas.cairo;
    bool is_down = false;
    for (size_t i = 0; i < path->n; i++) {
        const bool is_known = isfinite(path->x[i]) && isfinite(path->y[i]);
        const double to_x = x + p->scale * (path->x[i] + 0.5);
        const double to_y = y + p->scale * p->high * (path->y[i] + 0.5);
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

static enum oct_err draw_panel(struct page *p, unsigned i, struct oct_error *err)
{
    const struct oct_plot_panel *panel = &p->plot->panels[i];
    const double x = MARGIN + (i % p->n_columns) * (p->width + GAP);
    const double y = p->y + (i / p->n_columns) * (p->height + GAP + p->name);
    cairo_t *c = p->canvas.cairo;
    const struct oct_canvas_values values = {.values = panel->pixels,
                                             .n_y = p->plot->height,
                                             .n_x = p->plot->width,
                                             .lo = panel->lo,
                                             .hi = panel->hi,
                                             .blue_nothing = true,
                                             .smooth = true,
                                             .x = x,
                                             .y = y,
                                             .width = p->width,
                                             .height = p->height};
    const enum oct_err e = oct_canvas_draw_values(&p->canvas, &values, err);
    if (e)
        return e;
    cairo_save(c);
    cairo_rectangle(c, x, y, p->width, p->height);
    cairo_clip(c);
    cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
    for (size_t k = 0; k < panel->n_paths; k++)
        draw_path(p, &panel->paths[k], x, y);
    cairo_restore(c);
    oct_canvas_colour(&p->canvas, INK);
    if (panel->title)
        oct_canvas_text(&p->canvas, x, y - 12, SMALL_LETTERS, false, OCT_CANVAS_LEFT, false,
                        panel->title);
    return OCT_OK;
}

/* ---- beside them ---- */

static double draw_title(struct page *p)
{
    double x = MARGIN;
    oct_canvas_colour(&p->canvas, INK);
    if (p->plot->title) {
        oct_canvas_text(&p->canvas, x, 28, 17, true, OCT_CANVAS_LEFT, false, p->plot->title);
        x += oct_canvas_text_width(&p->canvas, 17, true, p->plot->title) + 30;
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

/* One bar for all panels, below them: in flat B-scans it would cover the tissue. */
static void draw_scale_bar(struct page *p, double right, double y)
{
    struct oct_canvas *c = &p->canvas;
    double first, um;
    char text[48];
    oct_canvas_ticks(0, p->plot->width * p->plot->um_dx, 5, &first, &um);
    const double length = um / p->plot->um_dx * p->scale;
    oct_canvas_colour(c, INK);
    cairo_rectangle(c->cairo, right - length, y - 2, length, 4);
    cairo_fill(c->cairo);
    oct_canvas_length_text(um, text);
    oct_canvas_text(c, right - length - 10, y, LETTERS, true, OCT_CANVAS_RIGHT, false, text);
}

static bool has_bar(const struct page *p)
{
    return p->plot->um_dx > 0;
}

static enum oct_err draw(struct page *p, double right, double bottom, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < p->plot->n_panels && !e; i++)
        e = draw_panel(p, i, err);
    draw_title(p);
    if (p->plot->footer)
        oct_canvas_text(&p->canvas, MARGIN, bottom + 24, LETTERS, false, OCT_CANVAS_LEFT, false,
                        p->plot->footer);
    if (has_bar(p))
        draw_scale_bar(p, right, bottom + 24);
    return e;
}

/* Of title, legends and footer, as they will be drawn. */
static enum oct_err widest_text(struct page *p, double *width, struct oct_error *err)
{
    const enum oct_err e = oct_canvas_init(&p->canvas, 1, 1, err);
    if (e)
        return e;
    *width = draw_title(p);
    if (p->plot->footer)
        *width = fmax(*width,
                      MARGIN + oct_canvas_text_width(&p->canvas, LETTERS, false, p->plot->footer));
    for (unsigned i = 0; i < p->plot->n_panels; i++)
        if (p->plot->panels[i].title)
            *width = fmax(*width, MARGIN + (i % p->n_columns) * (p->width + GAP) +
                                      oct_canvas_text_width(&p->canvas, SMALL_LETTERS, false,
                                                            p->plot->panels[i].title));
    oct_canvas_finish(&p->canvas);
    return OCT_OK;
}

enum oct_err oct_plot_write_panels(const char *path, bool force, const struct oct_plot_panels *plot,
                                   struct oct_error *err)
{
    struct page p = {.plot = plot};
    double text;
    set_size(&p);
    enum oct_err e = widest_text(&p, &text, err);
    if (e)
        return e;
    const double right = fmax(text, MARGIN + p.n_columns * (p.width + GAP) - GAP);
    const bool has_row = plot->footer || has_bar(&p); /* below the panels */
    const double bottom = p.y + p.n_rows * p.height + (p.n_rows - 1) * (GAP + p.name);
    e = oct_canvas_init(&p.canvas, (int)ceil(right + MARGIN),
                        (int)ceil(bottom + (has_row ? 46 : MARGIN)), err);
    if (e)
        return e;
    e = draw(&p, right, bottom, err);
    if (!e)
        e = oct_canvas_write(&p.canvas, path, force, err);
    oct_canvas_finish(&p.canvas);
    return e;
}
