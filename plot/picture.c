/* A picture with what lies on it and beside it. */
#include "plot/canvas.h"

#include <math.h>

#define MOST_WIDTH 1200.0 /* of the picture on the page */
#define MOST_HEIGHT 900.0
#define LEAST_SIDE 400.0 /* small pictures are enlarged */
#define MAP_ALPHA 0.55
#define PATH_PX 1.3

struct page {
    struct oct_canvas canvas;
    const struct oct_plot_picture *plot;
    struct oct_view view;
    double lo, hi;         /* of the pixels */
    double map_lo, map_hi; /* of the map */
    bool has_compass;
    double title_y, title_width, text_width; /* that texts above and below it may take */
    double compass_x, compass_y;
};

/* ---- limits ---- */

static enum oct_err find_limits(struct page *p, struct oct_error *err)
{
    static const double shares[2] = {0.005, 0.995};
    double limits[2] = {p->plot->lo, p->plot->hi};
    const size_t n = (size_t)p->plot->height * p->plot->width;
    if (limits[0] == 0 && limits[1] == 0) {
        const enum oct_err e = oct_plot_shares(p->plot->pixels, n, shares, 2, limits, err);
        if (e)
            return e;
        limits[0] = isnan(limits[0]) ? 0 : limits[0];
        limits[1] = limits[1] > limits[0] ? limits[1] : limits[0] + 1;
    }
    p->lo = limits[0];
    p->hi = limits[1];
    return OCT_OK;
}

static void find_map_limits(struct page *p)
{
    const struct oct_plot_map *m = p->plot->map;
    double lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; m && i < (size_t)m->n_y * m->n_x; i++)
        if (isfinite(m->values[i])) {
            lo = fmin(lo, m->values[i]);
            hi = fmax(hi, m->values[i]);
        }
    const bool is_empty = lo > hi;
    const double half = hi > lo ? 0 : lo != 0 ? 0.05 * fabs(lo) : 0.5;
    p->map_lo = is_empty ? 0 : lo - half;
    p->map_hi = is_empty ? 1 : hi + half;
}

/* As large as the page allows; squares are enlarged by whole numbers alone, so that they stay
 * squares. */
static void set_view(struct page *p)
{
    const struct oct_plot_picture *plot = p->plot;
    const double high =
        plot->um_dx > 0 && plot->um_dy > 0 ? plot->um_dy / plot->um_dx : 1; /* of a pixel */
    const double w = plot->width, h = plot->height * high;
    const double most = fmin(MOST_WIDTH / w, MOST_HEIGHT / h);
    const bool is_square = fabs(high - 1) < 1e-6;
    double wanted = (plot->least_px > 0 ? plot->least_px : LEAST_SIDE) / fmin(w, h);
    wanted = is_square ? ceil(wanted) : wanted;
    double scale = fmin(1, most);
    if (most > 1 && wanted > 1)
        scale = fmin(is_square ? floor(most) : most, wanted);
    p->title_y = 30;
    p->title_width = p->text_width = INFINITY;
    p->view = (struct oct_view){.x = OCT_MARGIN,
                                .y = p->has_compass ? 68
                                     : plot->title  ? 56
                                                    : OCT_MARGIN,
                                .width = fmax(1, floor(w * scale)),
                                .height = fmax(1, floor(h * scale)),
                                .left = -0.5,
                                .top = -0.5,
                                .per_x = scale,
                                .per_y = scale * high};
    p->compass_x = p->view.x + p->view.width - 30;
    p->compass_y = p->view.y - 31;
}

/* As large as the box allows, which its texts do not leave. */
static void fit_view(struct page *p, const struct oct_view *box)
{
    const struct oct_plot_picture *plot = p->plot;
    const double high = plot->um_dx > 0 && plot->um_dy > 0 ? plot->um_dy / plot->um_dx : 1;
    const double top = plot->title ? 30 : 0;
    const double bottom = plot->footer ? 34 : 0;
    const double right = plot->map || plot->in_colour ? OCT_COLOUR_BAR_PX : 0;
    const double scale = fmin((box->width - right) / plot->width,
                              (box->height - top - bottom) / (plot->height * high));
    p->title_y = box->y + 12;
    p->text_width = box->width;
    p->title_width = box->width - (p->has_compass ? 70 : 0);
    p->compass_x = box->x + box->width - 28;
    p->compass_y = box->y + 28;
    p->view = (struct oct_view){.x = box->x,
                                .y = box->y + top,
                                .left = -0.5,
                                .top = -0.5,
                                .per_x = scale,
                                .per_y = scale * high};
    if (plot->fills) {
        p->view.per_x = (box->width - right) / plot->width;
        p->view.per_y = (box->height - top - bottom) / plot->height;
    }
    p->view.width = p->view.per_x * plot->width;
    p->view.height = p->view.per_y * plot->height;
}

/* ---- drawing ---- */

static void draw_map(struct page *p)
{
    const struct oct_plot_map *m = p->plot->map;
    const struct oct_view *v = &p->view;
    oct_view_clip(&p->canvas, v);
    cairo_set_antialias(p->canvas.cairo, CAIRO_ANTIALIAS_NONE);
    for (uint32_t j = 0; j < m->n_y; j++)
        for (uint32_t i = 0; i < m->n_x; i++) {
            const double value = m->values[(size_t)j * m->n_x + i];
            if (!isfinite(value))
                continue;
            oct_canvas_colour(
                &p->canvas,
                oct_canvas_shade(OCT_COLOURS_MAP, (value - p->map_lo) / (p->map_hi - p->map_lo)),
                MAP_ALPHA);
            oct_canvas_fill(&p->canvas, v->x + v->per_x * (m->x + i * m->step_x),
                            v->y + v->per_y * (m->y + j * m->step_y), v->per_x * m->step_x,
                            v->per_y * m->step_y);
        }
    cairo_restore(p->canvas.cairo);
}

/* Where up, right, down and left are. */
static void draw_compass(struct page *p)
{
    static const int dx[4] = {0, 1, 0, -1}, dy[4] = {-1, 0, 1, 0};
    const double x = p->compass_x, y = p->compass_y;
    cairo_set_line_width(p->canvas.cairo, 1);
    for (unsigned i = 0; i < 4; i++) {
        if (!p->plot->compass[i])
            continue;
        oct_canvas_line(&p->canvas, x, y, x + 10 * dx[i], y + 10 * dy[i]);
        oct_canvas_text(&p->canvas, x + 20 * dx[i], y + 19 * dy[i], OCT_LETTERS,
                        OCT_TEXT_BOLD | OCT_TEXT_MIDDLE, p->plot->compass[i]);
    }
}

static void draw_texts(struct page *p)
{
    const struct oct_plot_picture *plot = p->plot;
    const struct oct_view *v = &p->view;
    oct_canvas_colour(&p->canvas, OCT_INK, 1);
    for (unsigned i = 0; i < plot->n_texts; i++) {
        const struct oct_plot_text *t = &plot->texts[i];
        const double half =
            oct_canvas_text_width(&p->canvas, OCT_LETTERS, OCT_TEXT_BOLD, t->text) / 2 + 4;
        const double x = fmax(half, fmin(v->width - half, v->per_x * t->x)); /* within it */
        oct_canvas_text(&p->canvas, v->x + x, v->y + v->per_y * t->y, OCT_LETTERS,
                        OCT_TEXT_BOLD | OCT_TEXT_MIDDLE | OCT_TEXT_HALOED, t->text);
    }
    oct_canvas_text_within(&p->canvas, v->x, p->title_y, p->title_width, OCT_TITLE_LETTERS,
                           OCT_TEXT_BOLD, plot->title);
    oct_canvas_text_within(&p->canvas, v->x, v->y + v->height + 26, p->text_width, OCT_LETTERS, 0,
                           plot->footer);
    if (p->has_compass)
        draw_compass(p);
}

static void draw_picture(struct page *p)
{
    const struct oct_plot_picture *plot = p->plot;
    const struct oct_plot_map *map = plot->map;
    const struct oct_view *v = &p->view;
    const struct oct_canvas_values values = {.values = plot->pixels,
                                             .n_y = plot->height,
                                             .n_x = plot->width,
                                             .lo = p->lo,
                                             .hi = p->hi,
                                             .colours = plot->in_colour ? OCT_COLOURS_MAP
                                                                        : OCT_COLOURS_GREY,
                                             .nothing = OCT_NOTHING,
                                             .smooth = plot->smooth};
    oct_canvas_values(&p->canvas, v, &values);
    if (map)
        draw_map(p);
    if (map || plot->in_colour)
        oct_canvas_colour_bar(&p->canvas, v->x + v->width + 22, v->y, v->height,
                              map ? p->map_lo : p->lo, map ? p->map_hi : p->hi, OCT_COLOURS_MAP,
                              map ? map->label : plot->value_label);
    oct_canvas_paths(&p->canvas, v, plot->paths, plot->n_paths, PATH_PX, true);
    if (plot->um_dx > 0)
        oct_canvas_scale_bar(&p->canvas, v->x + v->width - 16, v->y + v->height - 17.5, v->width,
                             plot->um_dx / v->per_x, false);
    draw_texts(p);
}

/* All but view and canvas. */
static enum oct_err begin_page(struct page *p, const struct oct_plot_picture *plot,
                               struct oct_error *err)
{
    *p = (struct page){.plot = plot};
    for (unsigned i = 0; i < 4; i++)
        p->has_compass = p->has_compass || plot->compass[i];
    find_map_limits(p);
    return find_limits(p, err);
}

enum oct_err oct_canvas_picture(struct oct_canvas *canvas, const struct oct_plot_picture *plot,
                                const struct oct_view *box, struct oct_error *err)
{
    struct page p;
    const enum oct_err e = begin_page(&p, plot, err);
    if (e)
        return e;
    p.canvas = *canvas;
    fit_view(&p, box);
    draw_picture(&p);
    return OCT_OK;
}

enum oct_err oct_plot_write_picture(const char *path, bool force,
                                    const struct oct_plot_picture *plot, struct oct_error *err)
{
    struct page p;
    const enum oct_err e = begin_page(&p, plot, err);
    if (e)
        return e;
    set_view(&p);
    p.canvas = oct_canvas();
    draw_picture(&p);
    /* Wide enough for title and footer too. */
    const double title =
        oct_canvas_text_width(&p.canvas, OCT_TITLE_LETTERS, OCT_TEXT_BOLD, plot->title);
    double width = p.view.width + (plot->map || plot->in_colour ? OCT_COLOUR_BAR_PX + 10 : 0);
    width = fmax(width, title + (p.has_compass ? 80 : 0));
    width = fmax(width, oct_canvas_text_width(&p.canvas, OCT_LETTERS, 0, plot->footer));
    return oct_canvas_write(&p.canvas, ceil(width) + 2 * OCT_MARGIN,
                            p.view.y + p.view.height + (plot->footer ? 48 : OCT_MARGIN), path,
                            force, err);
}
